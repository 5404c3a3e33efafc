"""SDF worlds: cuts of solids, models, robots, lasers, includes, and every key."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import BudgetError, FormatError
from botyard.formats.base import Options, Source
from botyard.formats.budget import Budget
from botyard.formats.importers import solids
from botyard.formats.importers.sdf import CUT, read
from botyard.formats.importers.sdfkeys import KEYS, ROLLING, STEERING
from botyard.formats.importers.solids import Frame, Rotation
from botyard.formats.registry import format_of, read_world
from botyard.geometry import Outline, Pose
from botyard.model.kinematics import Axes, Drive, Steering
from botyard.model.scene import GeoReference, in_polygon
from botyard.model.world import World
from tests.formats.importers.checks import (
    all_keys,
    check_page,
    description,
    load,
    loaded,
    run,
)
from tests.formats.importers.xmls import check_xml_key


def collision(shape: str, pose: str = "0 0 0 0 0 0") -> str:
    return f"<collision name='c'><pose>{pose}</pose><geometry>{shape}</geometry></collision>"


def model(inner: str, pose: str = "0 0 0 0 0 0", *, static: bool = True) -> str:
    return (
        f"<model name='m'><static>{str(static).lower()}</static><pose>{pose}</pose>"
        f"<link name='l'>{inner}</link></model>"
    )


def world(inner: str, told: list[str] | None = None, name: str = "my.sdf") -> World:
    return loaded(
        f"<sdf version='1.9'><world name='w'>{inner}</world></sdf>", name, told
    )


def corners(made: World) -> set[tuple[float, float]]:
    return {
        (round(x, 6) + 0.0, round(y, 6) + 0.0)
        for x, y in made.scene.segments[:, :2].tolist()
    }


def area(outline: Outline) -> float:
    x, y = np.array(outline).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2.0


BOX = "<box><size>2 1 1</size></box>"


# -- solids

angle = st.floats(-4, 4)
place = st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(-1, 1))
side = st.floats(0.1, 4)


@given(at=place, roll=angle, pitch=angle, yaw=angle, x=side, y=side, z=side)
def test_the_cut_of_a_box_is_what_lies_in_it_at_that_height(
    at: tuple[float, float, float],
    roll: float,
    pitch: float,
    yaw: float,
    x: float,
    y: float,
    z: float,
) -> None:
    frame = Frame(at, Rotation.of_angles(roll, pitch, yaw))
    outline = solids.cut(solids.box(x, y, z), frame, CUT)
    m = np.array(frame.turn)
    half = np.array([x, y, z]) / 2.0
    steps = np.linspace(-5, 5, 21)
    for px in at[0] + steps:
        for py in at[1] + steps:
            local = m.T @ (np.array([px, py, CUT]) - at)
            depth = (half - np.abs(local)).min()
            if depth > 1e-6:
                assert in_polygon(outline, px, py)
            elif depth < -1e-6:
                assert not in_polygon(outline, px, py)
    assert not outline or area(outline) > 0.0


@given(q=st.tuples(*[st.floats(-1, 1)] * 4))
def test_quaternions_and_angles_are_rotations(
    q: tuple[float, float, float, float],
) -> None:
    m = np.array(Rotation.of_quaternion(*q))
    assert np.allclose(m @ m.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(m) == pytest.approx(1.0)


def test_a_rotation_is_fixed_axis_roll_pitch_yaw() -> None:
    m = np.array(Rotation.of_angles(0.3, -0.5, 1.1))

    def about(axis: int, th: float) -> np.ndarray:
        c, s = math.cos(th), math.sin(th)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        r = np.eye(3)
        r[i, i] = r[j, j] = c
        r[i, j], r[j, i] = -s, s
        return r

    assert np.allclose(m, about(2, 1.1) @ about(1, -0.5) @ about(0, 0.3))
    half = [math.sin(0.4), math.cos(0.4)]
    spun = np.array(Rotation.of_quaternion(0.0, 0.0, half[0], half[1]))
    assert np.allclose(spun, about(2, 0.8))


@given(height=st.floats(-2, 2))
def test_round_solids_have_the_area_of_their_circle(height: float) -> None:
    ball = world(
        model(collision("<sphere><radius>1</radius></sphere>", f"0 0 {height} 0 0 0"))
    )
    squared = 1.0 - (CUT - height) ** 2
    outline = tuple(map(tuple, ball.scene.segments[:, :2].tolist()))
    if squared < 1e-9:
        assert squared < -1e-9 or len(outline) < 100
    else:
        assert area(outline) == pytest.approx(math.pi * squared, rel=1e-6)


def test_a_tilted_cylinder_is_an_ellipse() -> None:
    tilted = world(
        model(
            collision(
                "<cylinder><radius>0.5</radius><length>10</length></cylinder>",
                f"0 0 {CUT} 0 1.0471975512 0",
            )
        )
    )
    x, y = np.abs(tilted.scene.segments[:, :2]).max(axis=0)
    assert (x, y) == pytest.approx((0.5 / math.cos(math.pi / 3), 0.5), rel=0.01)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ("<ellipsoid><radii>2 1 0.5</radii></ellipsoid>", (2.0, 1.0)),
        ("<capsule><radius>0.5</radius><length>2</length></capsule>", (0.5, 0.5)),
        ("<cone><radius>1</radius><length>1</length></cone>", (0.5, 0.5)),
    ],
)
def test_further_shapes(shape: str, found: tuple[float, float]) -> None:
    made = world(model(collision(shape, f"0 0 {CUT} 0 0 0")))
    assert np.abs(made.scene.segments[:, :2]).max(axis=0) == pytest.approx(
        found, rel=0.02
    )


def test_a_polyline_is_extruded_upward() -> None:
    shape = (
        "<polyline><point>0 0</point><point>2 0</point><point>0 1</point>"
        "<height>1</height></polyline>"
    )
    made = world(model(collision(shape), "1 1 0 0 0 1.5707963267948966"))
    assert corners(made) == {(1, 1), (1, 3), (0, 1)}
    assert corners(world(model(collision(shape), "0 0 0.3 0 0 0"))) == set()
    told: list[str] = []
    assert corners(world(model(collision(shape), "0 0 0 0.3 0 0"), told)) == set()
    assert "a polyline that is tilted is left out" in told[0]


def test_a_plane_is_a_wall_if_it_stands() -> None:
    lying = "<plane><normal>0 0 1</normal><size>9 9</size></plane>"
    standing = "<plane><normal>1 0 0</normal><size>4 9</size></plane>"
    assert len(world(model(collision(lying))).scene.segments) == 0
    (wall,) = world(model(collision(standing), "3 0 0 0 0 0")).scene.segments
    assert sorted(map(tuple, wall.reshape(2, 2).tolist())) == [(3, -2), (3, 2)]


# -- models


def test_static_models_are_walls_where_the_plane_cuts_them() -> None:
    made = world(model(collision(BOX), "3 2 0.5 0 0 1.5707963267948966"))
    assert corners(made) == {(2.5, 1), (3.5, 1), (3.5, 3), (2.5, 3)}
    # The table's plate is above the plane.
    assert corners(world(model(collision(BOX), "3 2 1.0 0 0 0"))) == set()
    assert made.robots == ()


def test_poses_of_models_links_and_shapes_add_up() -> None:
    made = world(
        "<model name='a'><static>1</static><pose>1 0 0 0 0 1.5707963267948966</pose>"
        "<frame name='f'><pose>0 1 0 0 0 0</pose></frame>"
        "<link name='l'><pose relative_to='f'>2 0 0 0 0 0</pose>"
        f"{collision('<box><size>1 1 1</size></box>', '0 0 0.5 0 0 0')}</link>"
        "<model name='b'><pose degrees='true'>0 0 0 0 0 90</pose><link name='l'>"
        f"{collision('<box><size>1 1 1</size></box>', '5 0 0.5 0 0 0')}</link></model></model>"
    )
    centres = np.round(made.scene.segments[:, :2].reshape(2, 4, 2).mean(axis=1), 6)
    assert centres.tolist() == [[0, 2], [-4, 0]]


def test_frames_that_turn_in_a_circle_or_are_missing() -> None:
    text = (
        "<model name='a'><static>1</static>"
        "<frame name='f' attached_to='g'/><frame name='g' attached_to='f'/>"
        "<link name='l'><pose relative_to='f'>2 0 0 0 0 0</pose></link></model>"
    )
    with pytest.raises(
        FormatError, match="50 frames relative to each other, found a longer one"
    ):
        world(text)
    told: list[str] = []
    world(text.replace("attached_to='g'", "attached_to='h'"), told)
    assert any('the frame "h" is not found' in t for t in told)


def test_a_model_with_a_mass_is_an_object() -> None:
    made = world(
        model(
            f"<inertial><mass>3</mass></inertial>{collision(BOX)}",
            "1 2 0.5 0 0 0.5",
            static=False,
        )
    )
    (box,) = made.scene.boxes
    assert box.dynamics is not None
    assert (box.name, box.dynamics.mass) == ("m", 3.0)
    assert box.pose == pytest.approx(Pose(1.0, 2.0, 0.5))
    assert np.allclose(
        sorted(box.parts[0]), sorted([(-1, -0.5), (1, -0.5), (1, 0.5), (-1, 0.5)])
    )
    run(made)


ROBOT = """<model name='bot'><pose>1 2 0.05 0 0 0.5</pose><link name='base'>
<collision name='c'><geometry><box><size>0.4 0.3 0.1</size></box></geometry></collision>
<sensor name='s' type='gpu_lidar'><pose>0.1 0 0.1 0 0 0</pose><update_rate>10</update_rate>
<lidar><scan><horizontal><samples>91</samples><min_angle>0</min_angle><max_angle>1.5</max_angle>
</horizontal></scan><range><min>0.1</min><max>8</max></range>
<noise><type>gaussian</type><stddev>0.02</stddev></noise></lidar></sensor>
<sensor name='i' type='imu'/></link>
<plugin filename='gz-sim-diff-drive-system' name='gz::sim::systems::DiffDrive'>
<wheel_separation>0.35</wheel_separation><max_linear_velocity>0.7</max_linear_velocity>
<max_angular_velocity>1.2</max_angular_velocity>
<max_linear_acceleration>2</max_linear_acceleration></plugin></model>"""


def test_a_model_with_a_drive_is_a_robot() -> None:
    told: list[str] = []
    made = world(ROBOT, told)
    (robot,) = made.robots
    assert robot.name == "bot"
    assert robot.pose == pytest.approx(Pose(1.0, 2.0, 0.5))
    spec = robot.spec
    assert (spec.drive, spec.track) == (Drive.DIFF, 0.35)
    assert spec.limits.max_speed == Axes(0.7, 0.0, 1.2)
    assert spec.limits.accel.x == 2.0
    # The whole body counts, although the plane passes above it.
    assert np.allclose(np.ptp(spec.outline, axis=0), (0.4, 0.3))
    (laser,) = spec.lasers
    assert laser.pose == pytest.approx(Pose(0.1, 0.0, 0.75))
    assert (laser.fov, laser.samples, laser.update_rate) == (1.5, 91, 10.0)
    assert (laser.range_min, laser.range_max, laser.range_deviation) == (0.1, 8, 0.02)
    assert told == ['my.sdf:7: a sensor "imu" is left out: only lidars are read']
    run(made)


@pytest.mark.parametrize(
    ("plugin", "drive"),
    [
        ("libgazebo_ros_planar_move.so", Drive.OMNI),
        ("libgazebo_ros_diff_drive.so", Drive.DIFF),
        ("libgazebo_ros_skid_steer_drive.so", Drive.DIFF),
        ("gz-sim-mecanum-drive-system", Drive.OMNI),
        ("gz-sim-ackermann-steering-system", Drive.ACKERMANN),
        ("libgazebo_ros_tricycle_drive.so", Drive.TRICYCLE),
    ],
)
def test_plugins_name_the_drive(plugin: str, drive: Drive) -> None:
    told: list[str] = []
    text = ROBOT.replace("gz-sim-diff-drive-system", plugin)
    made = world(text.replace("gz::sim::systems::DiffDrive", "p"), told)
    assert made.robots[0].spec.drive == drive
    run(made)


CAR = """<model name='car'><pose>5 1 0 0 0 1.5707963267948966</pose><link name='base'>
<collision name='c'><geometry><box><size>4 1.6 1</size></box></geometry></collision></link>
<link name='fl'><pose>1.2 0.7 0.3 0 0 0</pose></link><link name='fr'><pose>1.2 -0.7 0.3 0 0 0</pose></link>
<link name='rl'><pose>-1.3 0.7 0.3 0 0 0</pose></link><link name='rr'><pose>-1.3 -0.7 0.3 0 0 0</pose></link>
<joint name='sl' type='revolute'><parent>base</parent><child>fl</child></joint>
<joint name='sr' type='revolute'><parent>base</parent><child>fr</child></joint>
<joint name='wl' type='revolute'><parent>base</parent><child>rl</child></joint>
<joint name='wr' type='revolute'><parent>base</parent><child>rr</child></joint>
<plugin filename='gz-sim-ackermann-steering-system' name='a'>
<left_joint>wl</left_joint><right_joint>wr</right_joint>
<left_steering_joint>sl</left_steering_joint><right_steering_joint>sr</right_steering_joint>
<wheel_separation>1.4</wheel_separation><wheel_radius>0.3</wheel_radius>
<steering_limit>0.6</steering_limit><max_velocity>2</max_velocity></plugin></model>"""


def test_a_car_steers_about_the_middle_of_its_rear_axle() -> None:
    made = world(CAR)
    (robot,) = made.robots
    spec = robot.spec
    assert (spec.drive, spec.track, spec.wheel_radius) == (Drive.ACKERMANN, 1.4, 0.3)
    assert spec.steering == Steering(wheelbase=2.5, limit=0.6)
    # The model stands at (5, 1) and faces +y; its rear axle is 1.3 m behind.
    assert robot.pose == pytest.approx(Pose(5.0, -0.3, math.pi / 2))
    assert (spec.front, min(x for x, _ in spec.outline)) == pytest.approx((3.3, -0.7))
    assert spec.limits.max_speed.a == pytest.approx(2.0 * math.tan(0.6) / 2.5)
    run(made)
    # A wheelbase of the plugin has precedence.
    (robot,) = world(CAR.replace("<max_", "<wheel_base>2</wheel_base><max_")).robots
    assert robot.spec.steering == Steering(wheelbase=2.0, limit=0.6)
    assert robot.spec.limits.max_speed.a == pytest.approx(2.0 * math.tan(0.6) / 2.0)
    # Without a fixed axle, the wheelbase leads from the steered one to the origin.
    (robot,) = world(CAR.replace(">wl<", "><").replace(">wr<", "><")).robots
    assert robot.spec.steering == Steering(wheelbase=1.0, limit=0.6)
    assert robot.pose == pytest.approx(Pose(5.0, 1.2, math.pi / 2))


def test_the_origin_is_the_middle_of_the_driven_axle() -> None:
    text = CAR.replace("ackermann-steering", "diff-drive")
    (robot,) = world(text).robots
    assert robot.spec.drive == Drive.DIFF
    assert robot.pose == pytest.approx(Pose(5.0, -0.3, math.pi / 2))
    laser = LASER_AT.format(x="0.4")
    (robot,) = world(text.replace("</link>", laser + "</link>", 1)).robots
    assert robot.spec.lasers[0].pose == pytest.approx(Pose(1.7, 0.0, 0.0))


LASER_AT = """<sensor name='s' type='ray'><pose>{x} 0 0 0 0 0</pose><ray><scan><horizontal>
<samples>9</samples><min_angle>-1</min_angle><max_angle>1</max_angle></horizontal></scan></ray></sensor>"""


def test_the_settings_and_the_place_on_earth() -> None:
    made = world(
        "<physics type='ode'><max_step_size>0.02</max_step_size>"
        "<real_time_factor>2</real_time_factor></physics><spherical_coordinates>"
        "<latitude_deg>48.1</latitude_deg><longitude_deg>11.6</longitude_deg>"
        f"<elevation>520</elevation></spherical_coordinates>{model(collision(BOX))}"
    )
    assert (made.settings.step, made.settings.speed) == (0.02, 2.0)
    assert made.scene.georeference == GeoReference(48.1, 11.6, 520.0)


# -- other files


def test_models_next_to_the_world_are_included(tmp_path: Path) -> None:
    (tmp_path / "models/shelf").mkdir(parents=True)
    shelf = (
        f"<sdf version='1.6'><model name='shelf'><static>1</static><pose>9 9 9 0 0 0</pose>"
        f"<link name='l'>{collision(BOX)}</link></model></sdf>"
    )
    (tmp_path / "models/shelf/model.sdf").write_text(shelf)
    (tmp_path / "w.world").write_text(
        "<sdf version='1.6'><world name='w'>"
        "<include><uri>model://sun</uri></include>"
        "<include><uri>model://shelf</uri><pose>1 0 0 0 0 0</pose></include>"
        "<include><uri>model://shelf</uri><name>two</name><pose>5 0 0 0 0 0</pose></include>"
        "<include><uri>https://fuel.gazebosim.org/1.0/chair</uri></include>"
        "</world></sdf>"
    )
    told: list[str] = []
    made = load(tmp_path / "w.world", told)
    assert corners(made) == {
        (x + dx, y) for x in (1, 5) for dx in (-1, 1) for y in (-0.5, 0.5)
    }
    (text,) = told
    assert 'the model "https://fuel.gazebosim.org/1.0/chair" is left out' in text


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.sdf").write_text(
            f"<sdf><model name='{name}'><include><uri>model://{other}</uri></include>"
            f"<include><uri>model://{other}</uri></include></model></sdf>"
        )
    (tmp_path / "w.sdf").write_text(
        "<sdf><world><include><uri>model://a</uri></include></world></sdf>"
    )
    with pytest.raises(
        FormatError, match="expected no file that includes itself, found"
    ):
        load(tmp_path / "w.sdf")


def test_an_upload_reads_no_other_file(tmp_path: Path) -> None:
    secret = tmp_path / "model.sdf"
    secret.write_text(
        f"<sdf><model name='m'><link name='l'>{collision(BOX)}</link></model></sdf>"
    )
    told: list[str] = []
    made = world(f"<include><uri>{secret}</uri></include>", told)
    assert len(made.scene.segments) == 0 and not made.scene.boxes
    assert "is left out" in told[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<sdf><world>", "my.sdf:1: not XML"),
        ("<sdf/>", "a world or a model"),
        (
            '<!DOCTYPE sdf [<!ENTITY a "x">]><sdf><world name="&a;"/></sdf>',
            "a file without entities",
        ),
        (
            '<!DOCTYPE sdf [<!ENTITY a SYSTEM "file:///etc/passwd">]><sdf>&a;</sdf>',
            "a file without entities",
        ),
        (f"<sdf>{model(collision('<box/>'))}</sdf>", "box: expected size"),
        (
            f"<sdf>{model(collision('<box><size>1 1 0</size></box>'))}</sdf>",
            "3 numbers greater than 0",
        ),
        (
            f"<sdf>{model(collision('<sphere><radius>x</radius></sphere>'))}</sdf>",
            "radius: expected a number greater than 0, at most 100000, found x",
        ),
        (f"<sdf>{model('<pose>1 2</pose>')}</sdf>", "expected 6 numbers"),
        ("<sdf>" + "<model>" * 200 + "</model>" * 200 + "</sdf>", "nested levels"),
    ],
)
def test_files_that_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        loaded(text, "my.sdf")
    assert complaint in str(error.value)
    assert "root:" not in str(error.value)


def test_elements_are_counted() -> None:
    text = f"<sdf><world>{'<light/>' * 100}</world></sdf>".encode()
    with pytest.raises(BudgetError, match="entities"):
        read_world(Source("a.sdf", text), Options(budget=Budget(entities=400)))


def test_files_are_told_apart_by_their_first_element() -> None:
    for text, name in (
        ("<?xml version='1.0'?>\n<!-- a > b -->\n<sdf version='1.6'/>", "sdf"),
        ("<gazebo version='1.0'/>", "sdf"),
        ("define wall model ( )\nwall ( )", "stage"),
    ):
        assert format_of(Source("a.world", text.encode())).name == name


# -- every key

BASE = f"""<sdf version='1.9'><world name='w'>
<model name='bot'><link name='base'><inertial><mass>1</mass></inertial>
<collision name='c'><geometry><box><size>1 2 3</size></box></geometry></collision>
<sensor name='s' type='ray'><ray><scan><horizontal><samples>9</samples><max_angle>1</max_angle>
</horizontal></scan><range/><noise><stddev>0.1</stddev></noise></ray></sensor></link>
<frame name='f'><pose>1 1 1 0 0 0</pose></frame>
<plugin name='p' filename='diff_drive'/></model>
<include><uri>model://none</uri></include><physics/><spherical_coordinates/>
{ROBOT.replace("'bot'", "'ann'")}</world></sdf>"""
MODEL = "world/model"
SHAPE = f"{MODEL}/link/collision/geometry"
PATHS = {
    "sdf": "",
    "world": "world",
    "physics": "world/physics",
    "spherical_coordinates": "world/spherical_coordinates",
    "include": "world/include",
    "model": MODEL,
    "frame": f"{MODEL}/frame",
    "link": f"{MODEL}/link",
    "inertial": f"{MODEL}/link/inertial",
    "collision": f"{MODEL}/link/collision",
    "geometry": SHAPE,
    "shape": f"{SHAPE}/box",
    "sensor": f"{MODEL}/link/sensor",
    "ray": f"{MODEL}/link/sensor/ray",
    "scan": f"{MODEL}/link/sensor/ray/scan",
    "horizontal": f"{MODEL}/link/sensor/ray/scan/horizontal",
    "range": f"{MODEL}/link/sensor/ray/range",
    "noise": f"{MODEL}/link/sensor/ray/noise",
    "plugin": f"{MODEL}/plugin",
}
ATTRIBUTES = frozenset(
    {
        ("sdf", "version"),
        ("sensor", "type"),
        ("frame", "attached_to"),
        ("plugin", "filename"),
        ("include", "name"),
        *((kind, "name") for kind in PATHS if kind not in ("include", "sdf")),
    }
)
POSE = "1 2 0.1 0 0 1"
LINK = "<link name='x'><collision><geometry><box><size>1 1 1</size></box></geometry></collision></link>"
VALUES = {
    ("sdf", "world"): "<world name='v'/>",
    ("sdf", "model"): "<model/>",
    ("world", "model"): f"<model name='z'>{LINK}</model>",
    ("world", "include"): "<include><uri>model://other</uri></include>",
    ("world", "physics"): "<physics><max_step_size>0.5</max_step_size></physics>",
    ("world", "spherical_coordinates"): (
        "<spherical_coordinates><elevation>3</elevation></spherical_coordinates>"
    ),
    ("include", "uri"): "model://other",
    ("model", "link"): LINK.replace("1 1 1", "2 2 2"),
    ("model", "model"): f"<model name='in'>{LINK}</model>",
    ("model", "include"): "<include><uri>model://other</uri></include>",
    ("model", "plugin"): "<plugin filename='planar_move'/>",
    ("model", "static"): "true",
    ("frame", "attached_to"): "base",
    ("link", "inertial"): "<inertial><mass>4</mass></inertial>",
    ("link", "collision"): (
        "<collision><geometry><sphere><radius>1</radius></sphere></geometry></collision>"
    ),
    ("link", "sensor"): "<sensor type='camera'/>",
    (
        "collision",
        "geometry",
    ): "<geometry><sphere><radius>1</radius></sphere></geometry>",
    ("geometry", "box"): "<box><size>3 3 3</size></box>",
    ("geometry", "sphere"): "<sphere><radius>1</radius></sphere>",
    ("geometry", "ellipsoid"): "<ellipsoid><radii>1 1 1</radii></ellipsoid>",
    ("geometry", "plane"): "<plane><normal>1 0 0</normal></plane>",
    ("geometry", "polyline"): (
        "<polyline><point>0 0</point><point>1 0</point><point>0 1</point>"
        "<height>1</height></polyline>"
    ),
    **{
        ("geometry", tag): f"<{tag}><radius>1</radius><length>1</length></{tag}>"
        for tag in ("cylinder", "capsule", "cone")
    },
    ("shape", "size"): "3 3 3",
    ("sensor", "type"): "camera",
    ("sensor", "ray"): "<ray/>",
    ("sensor", "lidar"): "<lidar><range><max>3</max></range></lidar>",
    ("scan", "horizontal"): "<horizontal><samples>5</samples></horizontal>",
    ("range", "min"): "0.5",
    ("ray", "range"): "<range><max>3</max></range>",
    ("plugin", "max_angular_velocity"): "3",
    ("horizontal", "min_angle"): "-1",
    ("noise", "type"): "none",
    ("noise", "stddev"): "0.5",
    ("plugin", "filename"): "ackermann",
    ("plugin", "name"): "planar_move",
    ("plugin", "min_velocity"): "-1",
    **{(kind, "pose"): POSE for kind in PATHS},
    **{(kind, "name"): "ann_b" for kind in PATHS},
    ("inertial", "pose"): POSE,
    ("inertial", "mass"): "7",
}
SHAPES = {
    "radius": "<sphere><radius>1</radius></sphere>",
    "length": "<cylinder><radius>1</radius><length>1</length></cylinder>",
    "radii": "<ellipsoid><radii>1 1 1</radii></ellipsoid>",
    "normal": "<plane><normal>1 0 0</normal></plane>",
    "point": (
        "<polyline><point>0 0</point><point>1 0</point><point>0 1</point>"
        "<height>1</height></polyline>"
    ),
}
SHAPES["height"] = SHAPES["point"]
CHANGED = {
    "radius": "2",
    "radii": "2 2 2",
    "length": "0.2",
    "normal": "0 1 0",
    "point": "5 5",
    "height": "0.1",
}
# Names of these elements have no effect of their own.
INERT = {
    ("sdf", "version"),
    ("collision", "name"),
    ("sensor", "name"),
    ("link", "name"),
    ("model", "frame"),
    ("frame", "name"),
    ("frame", "pose"),
    ("frame", "attached_to"),
    ("world", "frame"),
    ("include", "pose"),
    ("include", "name"),
    ("include", "static"),
    ("include", "plugin"),
    ("geometry", "empty"),
    ("sdf", "model"),
    ("sdf", "world"),
}


@pytest.mark.parametrize(("kind", "key"), [k for k in all_keys(KEYS) if k not in INERT])
def test_each_key_is_read_or_named(kind: str, key: str) -> None:
    base, paths, values = BASE, dict(PATHS), dict(VALUES)
    if kind in ("inertial",) or (kind, key) in (("link", "inertial"),):
        # The mass of a robot has no effect.
        base = base.replace("<plugin name='p' filename='diff_drive'/>", "")
    if kind == "geometry" and key == "plane":
        base = base.replace(
            "<model name='bot'>", "<model name='bot'><static>1</static>"
        )
    if kind == "shape" and key in SHAPES:
        shape = SHAPES[key]
        base = BASE.replace("<box><size>1 2 3</size></box>", shape).replace(
            "<model name='bot'>", "<model name='bot'><static>1</static>"
        )
        paths["shape"] = f"{SHAPE}/{shape[1 : shape.index('>')]}"
        values["shape", key] = CHANGED[key]
    if (kind, key) == ("sensor", "lidar"):
        base = base.replace("<ray>", "<lidar>").replace("</ray>", "</lidar>")
    if (kind, key) == ("plugin", "name"):
        base = base.replace("name='p' filename='diff_drive'", "filename='lamp'")
    if kind == "plugin" and key in (
        "wheel_base",
        "wheelbase",
        "steering_limit",
        "max_steer",
        "max_steering_speed",
        *STEERING,
    ):
        base = base.replace("'diff_drive'", "'ackermann'")
        values["plugin", key] = "0.7"
    if kind == "plugin" and key in (*ROLLING, *STEERING):
        wheel = (
            "<link name='wheel'><pose>0.3 0 0 0 0 0</pose></link>"
            "<joint name='j'><parent>base</parent><child>wheel</child></joint><frame"
        )
        base = base.replace("<frame", wheel, 1)
        values["plugin", key] = "j"
    check_xml_key(KEYS, kind, key, read, "my.sdf", base, paths, values, ATTRIBUTES)


def test_keys_that_only_name_or_place_something_are_read() -> None:
    """The other tests of this file use them; no warning names them."""
    text = BASE.replace(
        "<include><uri>model://none</uri></include>",
        "<frame name='q'/><include name='n'><uri>model://sun</uri><pose>0 0 0 0 0 0</pose>"
        "<static>1</static><plugin/></include>",
    ).replace("<geometry>", "<geometry><empty/>", 1)
    told: list[str] = []
    made = read(Source("a.sdf", text.encode()), Options(warn=told.append))
    assert [t for t in told if any(f'"{k}" of {kind} ' in t for kind, k in INERT)] == []
    assert description(made)


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "sdf")
