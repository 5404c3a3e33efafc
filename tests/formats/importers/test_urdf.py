"""Models of URDF: drives, bodies, lasers, the way back, every key, and hostile files."""

from __future__ import annotations

import math
import struct
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import botyard
from botyard.app.firstworld import check_models
from botyard.app.kinds import RobotChoice
from botyard.app.options import RunOptions
from botyard.cli.models import command
from botyard.errors import BudgetError, ModelFileError
from botyard.formats.budget import Budget
from botyard.formats.importers.urdf import Imported, read_urdf
from botyard.formats.importers.urdfkeys import KEYS
from botyard.formats.models import find_robot, read_models
from botyard.formats.urdf import to_urdf
from botyard.geometry import Outline, Pose
from botyard.model.accessories import GripperSpec
from botyard.model.fourwheels import FourWheels
from botyard.model.kinematics import (
    MAX_STEERING,
    Axes,
    Drive,
    MotionLimits,
    Steering,
)
from botyard.model.library import load_robot, robot_names
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.robottext import tables_equal
from botyard.model.sensors import LaserSpec
from botyard.sim.simulation import Simulation
from tests.formats.importers.checks import all_keys, check_page
from tests.formats.importers.xmls import changed

BOX = (
    "<link name='base_link'><collision><origin xyz='0.05 0 0.2'/><geometry>"
    "<box size='0.6 0.4 0.2'/></geometry></collision></link>"
)
LIDAR = """<link name='scan'/><joint name='scan_joint' type='fixed'><origin xyz='0.1 0 0.25'/>
<parent link='base_link'/><child link='scan'/></joint>
<gazebo reference='scan'><sensor name='s' type='gpu_lidar'><update_rate>10</update_rate><lidar><scan>
<horizontal><samples>91</samples><min_angle>0</min_angle><max_angle>1.5</max_angle></horizontal></scan>
<range><min>0.1</min><max>8</max></range></lidar></sensor></gazebo>"""


def wheel(
    name: str,
    x: float,
    y: float,
    *,
    radius: float = 0.1,
    parent: str = "base_link",
    limit: str = "",
) -> str:
    """Return a wheel that turns about the y axis."""
    return (
        f"<link name='{name}'><collision><origin rpy='1.5707963267948966 0 0'/><geometry>"
        f"<cylinder radius='{radius}' length='0.04'/></geometry></collision></link>"
        f"<joint name='{name}_joint' type='continuous'><origin xyz='{x} {y} {radius}'/>"
        f"<parent link='{parent}'/><child link='{name}'/><axis xyz='0 1 0'/>{limit}</joint>"
    )


def steered(name: str, x: float, y: float, *, most: float = 0.6) -> str:
    """Return a wheel with a steering joint."""
    return (
        f"<link name='{name}_knuckle'/><joint name='{name}_steer' type='revolute'>"
        f"<origin xyz='{x} {y} 0'/><parent link='base_link'/><child link='{name}_knuckle'/>"
        f"<axis xyz='0 0 1'/><limit lower='-{most}' upper='{most}' velocity='0.8' effort='1'/>"
        f"</joint>{wheel(name, 0, 0, parent=f'{name}_knuckle')}"
    )


PAIR = wheel("left_wheel", 0, 0.25) + wheel("right_wheel", 0, -0.25)
FRONT = steered("fl_wheel", 1.0, 0.25) + steered("fr_wheel", 1.0, -0.25)


def imported(inner: str, **options: object) -> Imported:
    text = f"<robot name='bot'>{BOX}{inner}</robot>"
    return read_urdf("bot.urdf", data=text.encode(), **options)  # type: ignore[arg-type]


def spec_of(inner: str, **options: object) -> RobotSpec:
    return imported(inner, **options).spec


def plugin(name: str, inner: str) -> str:
    return f"<gazebo><plugin filename='{name}' name='drive'>{inner}</plugin></gazebo>"


def drives(spec: RobotSpec) -> None:
    """Simulate a robot for some steps: it moves forward."""
    robot = Simulation(step=0.05).add_robot(spec, "ann")
    robot.command(v=0.3, w=0.0)
    robot.simulation.step(20)
    assert robot.truth.x > 0.1


# -- drives


def test_two_wheels_are_a_differential_drive() -> None:
    made = imported(PAIR)
    spec = made.spec
    assert (spec.name, spec.drive) == ("bot", Drive.DIFF)
    assert spec.track == pytest.approx(0.5)
    assert spec.wheel_radius == pytest.approx(0.1)
    assert any("1 m/s and 2 rad/s are assumed" in text for text in made.remarks)
    drives(spec)


def test_speeds_follow_from_limits_of_wheels() -> None:
    limit = "<limit velocity='8' effort='1'/>"
    made = imported(
        wheel("l_wheel", -0.2, 0.25, limit=limit)
        + wheel("r_wheel", -0.2, -0.25, limit=limit)
    )
    assert made.spec.limits.max_speed == pytest.approx(Axes(0.8, 0.0, 3.2))
    # The origin is the middle of the axle.
    assert (made.spec.front, made.spec.outline[0][0]) == pytest.approx((0.55, -0.05))
    assert any("the origin is the middle of the axle" in t for t in made.remarks)


def test_casters_do_not_drive() -> None:
    swivel = (
        "<link name='fork'/><joint name='fork_joint' type='continuous'>"
        "<origin xyz='-0.3 0 0'/><parent link='base_link'/><child link='fork'/>"
        f"<axis xyz='0 0 1'/></joint>{wheel('caster', 0, 0, radius=0.05, parent='fork')}"
    )
    spec = spec_of(PAIR + swivel)
    assert spec.drive == Drive.DIFF
    assert spec.track == pytest.approx(0.5)


def test_four_wheels_skid() -> None:
    four = PAIR + wheel("lr", -0.4, 0.25) + wheel("rr", -0.4, -0.25)
    spec = spec_of(four)
    assert (spec.drive, spec.wheels) == (Drive.SKID, FourWheels(wheelbase=0.4))
    assert spec.track == pytest.approx(0.5)
    # The origin is the middle of the wheels.
    assert spec.front == pytest.approx(0.35 + 0.2)
    drives(spec)
    # The plugin's separation is the effective one.
    rear = "<left_joint>lr_joint</left_joint><right_joint>rr_joint</right_joint>"
    wide = "<wheel_separation>0.75</wheel_separation>"
    spec = spec_of(four + plugin("gz-sim-diff-drive-system", DIFF + rear + wide))
    assert spec.track == pytest.approx(0.5)
    assert spec.wheels == FourWheels(wheelbase=0.4, track_factor=1.5)


def test_mecanum_wheels_have_two_axles() -> None:
    joints = "".join(
        f"<{end}_{side}_joint>{name}_joint</{end}_{side}_joint>"
        for end, side, name in (
            ("front", "left", "left_wheel"),
            ("front", "right", "right_wheel"),
            ("back", "left", "lr"),
            ("back", "right", "rr"),
        )
    )
    four = PAIR + wheel("lr", -0.4, 0.25) + wheel("rr", -0.4, -0.25)
    spec = spec_of(four + plugin("gz-sim-mecanum-drive-system", joints))
    assert (spec.drive, spec.wheels) == (Drive.MECANUM, FourWheels(wheelbase=0.4))
    assert (spec.track, spec.front) == pytest.approx((0.5, 0.55))
    drives(spec)


def test_steered_wheels_make_a_car() -> None:
    spec = spec_of(PAIR + FRONT)
    assert spec.drive == Drive.ACKERMANN
    assert spec.track == pytest.approx(0.5)
    assert spec.steering is not None
    assert spec.steering.wheelbase == pytest.approx(1.0)
    assert spec.steering.rate == 0.8
    # The joint's limit is the angle of the inner wheel.
    inner, _ = spec.kinematics.wheel_angles(spec.steering.limit)
    assert inner == pytest.approx(0.6)
    drives(spec)


def test_one_steered_wheel_makes_a_tricycle_and_a_rear_one_a_forklift() -> None:
    front = spec_of(PAIR + steered("wheel", 1.2, 0, most=1.2))
    assert front.drive == Drive.TRICYCLE
    assert front.steering == Steering(wheelbase=1.2, limit=1.2, rate=0.8)
    rear = spec_of(PAIR + steered("wheel", -1.2, 0, most=1.2))
    assert rear.steering == Steering(wheelbase=-1.2, limit=1.2, rate=0.8)
    drives(rear)


def test_a_robot_on_legs_slides_to_all_sides() -> None:
    made = imported(
        "<link name='leg'/><joint name='hip' type='revolute'><origin xyz='0.2 0.1 0.2'/>"
        "<parent link='base_link'/><child link='leg'/><axis xyz='0 1 0'/>"
        "<limit lower='-1' upper='1' velocity='1' effort='1'/></joint>"
    )
    assert made.spec.drive == Drive.OMNI
    assert any("has fewer than two driven wheels" in text for text in made.remarks)


DIFF = """<left_joint>left_wheel_joint</left_joint><right_joint>right_wheel_joint</right_joint>
<max_linear_velocity>0.7</max_linear_velocity><max_angular_velocity>1.2</max_angular_velocity>
<max_linear_acceleration>2</max_linear_acceleration>"""
STEER = """<left_joint>left_wheel_joint</left_joint><right_joint>right_wheel_joint</right_joint>
<left_steering_joint>fl_wheel_steer</left_steering_joint>
<right_steering_joint>fr_wheel_steer</right_steering_joint><steering_limit>0.4</steering_limit>"""


@pytest.mark.parametrize(
    ("name", "inner", "drive"),
    [
        ("gz-sim-diff-drive-system", DIFF, Drive.DIFF),
        ("libgazebo_ros_diff_drive.so", DIFF, Drive.DIFF),
        ("libgazebo_ros_skid_steer_drive.so", DIFF, Drive.DIFF),
        ("gz-sim-ackermann-steering-system", STEER, Drive.ACKERMANN),
        ("libgazebo_ros_ackermann_drive.so", STEER, Drive.ACKERMANN),
        ("libgazebo_ros_planar_move.so", "", Drive.OMNI),
        ("gz-sim-mecanum-drive-system", "", Drive.OMNI),
    ],
)
def test_plugins_name_the_drive(name: str, inner: str, drive: Drive) -> None:
    spec = spec_of(PAIR + FRONT + plugin(name, inner))
    assert spec.drive == drive
    drives(spec)


def test_a_plugin_has_speeds_and_the_joints_its_track() -> None:
    spec = spec_of(PAIR + plugin("gz-sim-diff-drive-system", DIFF))
    assert spec.limits.max_speed == Axes(0.7, 0.0, 1.2)
    assert spec.limits.accel.x == 2.0
    assert (spec.track, spec.wheel_radius) == pytest.approx((0.5, 0.1))
    spec = spec_of(PAIR + FRONT + plugin("gz-sim-ackermann-steering-system", STEER))
    assert spec.steering == Steering(wheelbase=1.0, limit=0.4, rate=0.8)
    made = imported(
        PAIR
        + plugin("gz-sim-diff-drive-system", DIFF.replace("left_wheel_joint", "none"))
    )
    assert any('do not exist or do not move: "none"' in t for t in made.remarks)


def test_replaced_and_cut_values_of_a_plugin_are_named() -> None:
    made = imported(
        PAIR
        + plugin(
            "gz-sim-ackermann-steering-system",
            "<wheel_base>0</wheel_base>\n<steering_limit>1e9</steering_limit>\n"
            "<max_acceleration>inf</max_acceleration>\n<wheel_radius>0</wheel_radius>\n"
            "<max_velocity>1e9</max_velocity>",
        )
    )
    assert made.spec.steering == Steering(wheelbase=1.0, limit=MAX_STEERING)
    for text in (
        "wheel_base is 0: 1 is assumed",
        "steering_limit is 1e+09: it is cut to 1.553 rad, 89°",
        "max_acceleration is inf: the acceleration has no limit",
        "wheel_radius is 0: it counts as unknown",
        "max_velocity is 1e+09: it is cut to 1000",
        "the plugin names no steered joints",
    ):
        assert any(text in told for told in made.remarks), text
    assert any("bot.urdf:2: steering_limit" in told for told in made.remarks)


def test_cut_limits_of_steered_joints_are_named() -> None:
    wide = steered("fl_wheel", 1.0, 0.25, most=2.5) + steered(
        "fr_wheel", 1.0, -0.25, most=0.6
    )
    made = imported(PAIR + wide)
    assert made.spec.steering is not None
    cut = [told for told in made.remarks if "cut" in told]
    assert len(cut) == 1
    assert '"fl_wheel_steer": the limit 2.5 is cut to 1.553 rad, 89°' in cut[0]


CONTROL = """
controller_manager:
  ros__parameters:
    update_rate: 50
    joint_state_broadcaster: {type: joint_state_broadcaster/JointStateBroadcaster}
    base: {type: KIND}
base:
  ros__parameters:
"""


def controlled(tmp_path: Path, kind: str, parameters: str, inner: str) -> Imported:
    path = tmp_path / "control.yaml"
    lines = "".join(f"    {line}\n" for line in parameters.splitlines())
    path.write_text(CONTROL.replace("KIND", kind) + lines)
    return imported(inner, controllers=path)


def test_controllers_of_ros2_control_name_the_drive(tmp_path: Path) -> None:
    made = controlled(
        tmp_path,
        "diff_drive_controller/DiffDriveController",
        "left_wheel_names: [left_wheel_joint]\nright_wheel_names: [right_wheel_joint]\n"
        "wheel_separation: 0.4\nwheel_separation_multiplier: 1.5\nwheel_radius: 0.08\n"
        "linear.x.max_velocity: 0.9\nlinear: {x: {max_acceleration: 1.5}}\n"
        "angular.z.max_acceleration: 3.0",
        PAIR,
    )
    spec = made.spec
    assert (spec.drive, spec.wheel_radius) == (Drive.DIFF, 0.08)
    assert spec.track == pytest.approx(0.6)
    assert spec.limits.max_speed == Axes(0.9, 0.0, 2.0)
    assert spec.limits.accel == Axes(1.5, 0.0, 3.0)
    assert any("joint_state_broadcaster" in text for text in made.remarks)

    made = controlled(
        tmp_path,
        "ackermann_steering_controller/AckermannSteeringController",
        "traction_joints_names: [left_wheel_joint, right_wheel_joint]\n"
        "steering_joints_names: [fl_wheel_steer, fr_wheel_steer]\n"
        "wheelbase: 0.9\ntraction_track_width: 0.5\ntraction_wheels_radius: 0.1",
        PAIR + FRONT,
    )
    assert made.spec.drive == Drive.ACKERMANN
    assert made.spec.steering is not None
    assert made.spec.steering.wheelbase == pytest.approx(0.9)

    made = controlled(
        tmp_path,
        "tricycle_controller/TricycleController",
        "traction_joint_name: wheel_joint\nsteering_joint_name: wheel_steer\nwheelbase: 1.2\n"
        "steering: {max_position: 0.9, max_velocity: 0.5}\ntraction: {max_velocity: 2.0}",
        PAIR + steered("wheel", 1.2, 0),
    )
    assert made.spec.drive == Drive.TRICYCLE
    assert made.spec.steering == Steering(wheelbase=1.2, limit=0.9, rate=0.8)
    assert made.spec.limits.max_speed.x == 2.0

    made = controlled(
        tmp_path,
        "mecanum_drive_controller/MecanumDriveController",
        "kinematics: {wheels_radius: 0.05}",
        PAIR,
    )
    assert (made.spec.drive, made.spec.wheel_radius) == (Drive.OMNI, 0.05)
    with pytest.raises(ModelFileError, match="expected a drive of ros2_controllers"):
        controlled(tmp_path, "none/None", "a: 1", PAIR)


def test_commanded_joints_are_the_driven_ones() -> None:
    """A passive pair of wheels is no drive, if the file says which joints are commanded."""
    passive = wheel("lp", -0.4, 0.2) + wheel("rp", -0.4, -0.2)
    control = "".join(
        f"<joint name='{side}_wheel_joint'><command_interface name='velocity'/></joint>"
        for side in ("left", "right")
    )
    made = imported(
        PAIR
        + passive
        + f"<ros2_control name='c' type='system'>{control}<joint name='lp_joint'/></ros2_control>"
    )
    assert made.spec.drive == Drive.DIFF
    assert any("--controllers FILE" in text for text in made.remarks)
    moved = "".join(
        f"<transmission name='{side}'><type>t</type><joint name='{side}_wheel_joint'/>"
        "</transmission>"
        for side in ("left", "right")
    )
    assert spec_of(PAIR + passive + moved).drive == Drive.DIFF
    assert spec_of(PAIR + passive).drive == Drive.SKID


# -- bodies and lasers


def extent(spec: RobotSpec) -> list[float]:
    xs, ys = zip(
        *(p for part in (spec.outline, *spec.parts) for p in part), strict=True
    )
    return [min(xs), max(xs), min(ys), max(ys)]


MAST = (
    "<link name='mast'><collision><origin xyz='0.6 0 1'/><geometry><sphere radius='0.1'/>"
    "</geometry></collision></link><joint name='m' type='fixed'><parent link='base_link'/>"
    "<child link='mast'/></joint>"
)


def test_the_body_is_what_lies_between_the_floor_and_the_lidar() -> None:
    made = imported(PAIR + MAST + LIDAR)
    assert extent(made.spec) == pytest.approx([-0.25, 0.35, -0.27, 0.27])
    assert any('the shapes of "mast" above 0.25 m' in text for text in made.remarks)
    # Without a lidar all shapes count, and with a height those below it.
    assert extent(spec_of(PAIR + MAST))[1] == pytest.approx(0.7)
    assert extent(spec_of(PAIR + MAST + LIDAR, height=2.0))[1] == pytest.approx(0.7)
    # Below the box, only the wheels are left.
    assert extent(spec_of(PAIR + LIDAR, height=0.08)) == pytest.approx(
        [-0.098, 0.098, -0.27, 0.27], abs=2e-3
    )


def test_parts_within_a_larger_one_are_left_out() -> None:
    inner = wheel("l_wheel", 0, 0.1) + wheel("r_wheel", 0, -0.1)
    assert spec_of(inner).parts == ()
    assert len(spec_of(PAIR).parts) == 2


def test_a_shape_is_cut_at_the_height_of_the_lidar() -> None:
    """The upper half of a ball is wider above the plane than at it."""
    ball = (
        "<link name='ball'><collision><origin xyz='1 0 0.5'/><geometry><sphere radius='0.5'/>"
        "</geometry></collision></link><joint name='b' type='fixed'><parent link='base_link'/>"
        "<child link='ball'/></joint>"
    )
    spec = spec_of(PAIR + ball, height=0.25)
    assert extent(spec)[1] == pytest.approx(1.0 + math.sqrt(0.25 - 0.0625), rel=0.01)


def test_lasers_follow_from_sensors() -> None:
    (laser,) = spec_of(PAIR + LIDAR).lasers
    assert laser.pose == pytest.approx(Pose(0.1, 0.0, 0.75))
    assert (laser.fov, laser.samples, laser.update_rate) == (1.5, 91, 10.0)
    assert (laser.range_min, laser.range_max, laser.flipped) == (0.1, 8.0, False)
    # Upside down, the scan turns the other way.
    over = LIDAR.replace("xyz='0.1 0 0.25'", f"xyz='0.1 0 0.25' rpy='{math.pi} 0 0'")
    (laser,) = spec_of(PAIR + over).lasers
    assert laser.flipped and laser.pose == pytest.approx(Pose(0.1, 0.0, -0.75))
    tilted = LIDAR.replace("xyz='0.1 0 0.25'", "xyz='0.1 0 0.25' rpy='0 0.3 0'")
    assert any("is tilted" in text for text in imported(PAIR + tilted).remarks)
    camera = LIDAR.replace("gpu_lidar", "camera")
    made = imported(PAIR + camera)
    assert made.spec.lasers == () and any('"camera"' in text for text in made.remarks)


def test_a_lidar_without_a_tag_is_named_with_its_place() -> None:
    made = imported(PAIR + MAST + LIDAR.partition("<gazebo")[0])
    assert any("pose = [0.1, 0, 0]" in text for text in made.remarks)
    # Its plane cuts the body all the same.
    assert extent(made.spec)[1] == pytest.approx(0.35)


def test_the_sensor_element_of_urdf_is_a_laser() -> None:
    head, _, _ = LIDAR.partition("<gazebo")
    tag = (
        "<sensor name='s'><parent link='scan'/><origin xyz='0.1 0 0'/><ray><horizontal "
        "samples='11' min_angle='-1' max_angle='1'/></ray></sensor>"
    )
    (laser,) = spec_of(PAIR + head + tag).lasers
    assert (laser.samples, laser.fov) == (11, 2.0)
    assert laser.pose == pytest.approx(Pose(0.2, 0.0, 0.0))


def stl(corners: Sequence[tuple[float, float, float]]) -> bytes:
    """Return a binary STL file of triangles."""
    data = bytes(80) + struct.pack("<I", len(corners) // 3)
    for k in range(0, len(corners), 3):
        three = [v for corner in corners[k : k + 3] for v in corner]
        data += struct.pack("<12fH", 0, 0, 0, *three, 0)
    return data


TRIANGLES = [(0, 0, 0), (2, 0, 0), (0, 1, 0.3), (0, 0, 0), (2, 0, 0), (0, 0, 0.3)]
MESH = """<link name='hull'><collision><geometry><mesh filename='NAME' scale='0.5 0.5 1'/></geometry>
</collision></link><joint name='h' type='fixed'><parent link='base_link'/><child link='hull'/></joint>"""


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("hull.stl", "hull.stl"),
        ("meshes/hull.STL", "meshes/hull.STL"),
        ("package://bot_description/meshes/hull.stl", "../meshes/hull.stl"),
    ],
)
def test_meshes_next_to_the_file_are_bodies(
    tmp_path: Path, name: str, file: str
) -> None:
    folder = tmp_path / "bot_description" / "urdf"
    (folder / file).parent.mkdir(parents=True)
    folder.mkdir(exist_ok=True)
    (folder / file).write_bytes(stl(TRIANGLES))
    path = folder / "bot.urdf"
    text = f"<robot name='bot'>{BOX}{PAIR}{MESH.replace('NAME', name)}</robot>"
    path.write_text(text)
    made = read_urdf(path)
    assert extent(made.spec)[1] == pytest.approx(1.0)
    assert extent(made.spec)[3] == pytest.approx(0.5)
    lines = "".join(f"vertex {x} {y} {z}\n" for x, y, z in TRIANGLES)
    (folder / file).write_text(f"solid a\n{lines}endsolid a\n")
    assert read_urdf(path).spec.outline == made.spec.outline
    for bad in (
        b"solid a\nvertex 1 2\n",
        b"vertex a b c\n" * 3,
        bytes(80) + b"\xff" * 4,
    ):
        (folder / file).write_bytes(bad)
        with pytest.raises(ModelFileError, match="hull"):
            read_urdf(path)


@pytest.mark.parametrize(
    "name",
    ["/etc/hull.stl", "../hull.stl", "hull.dae", "file:///hull.stl", "a\x01.stl"],
)
def test_other_meshes_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "hull.stl").write_bytes(stl(TRIANGLES))
    folder = tmp_path / "inner"
    folder.mkdir()
    path = folder / "bot.urdf"
    text = f"<robot name='bot'>{BOX}{PAIR}{MESH.replace('NAME', name)}</robot>"
    path.write_text(text.replace("\x01", "&#x7f;"))
    made = read_urdf(path)
    assert any("is left out: no STL file" in text for text in made.remarks)
    assert extent(made.spec)[1] == pytest.approx(0.35)


# -- there and back


def same(a: RobotSpec, b: RobotSpec) -> bool:
    return tables_equal(to_table(a), to_table(b), 1e-9)


@pytest.mark.parametrize(
    "name", [n for n in robot_names() if load_robot(n).kinematics.drives]
)
def test_each_model_comes_back(name: str) -> None:
    spec = load_robot(name)
    # Names of frames have no effect.
    profile = "nav2" if len(name) % 2 else "default"
    text = to_urdf(spec, name, profile=profile, footprint="base_footprint")
    made = read_urdf(f"{name}.urdf", data=text.encode())
    assert same(made.spec, spec)
    assert made.remarks == ()


CORNER = st.tuples(st.floats(-2, 2), st.floats(-2, 2))
SIZES = st.floats(0.01, 5.0)
POSES = st.builds(Pose, st.floats(-1, 1), st.floats(-1, 1), st.floats(-3, 3))


@st.composite
def models(draw: st.DrawFn) -> RobotSpec:
    """Draw robot models of all kinds of drives."""
    drive = draw(st.sampled_from([d for d in Drive if d is not Drive.NONE]))
    base = load_robot(
        {Drive.ACKERMANN: "car", Drive.TRICYCLE: "tugger"}.get(drive, "p3dx")
    )
    shape: Outline = tuple(draw(st.lists(CORNER, min_size=3, max_size=9, unique=True)))
    lasers = tuple(
        LaserSpec(
            type_name="lidar",
            pose=draw(POSES),
            fov=draw(st.floats(0.1, 6.28)),
            samples=draw(st.integers(2, 500)),
            range_min=draw(st.floats(0.0, 0.5)),
            range_max=draw(st.floats(1.0, 100.0)),
            range_deviation=draw(st.sampled_from([0.0, 0.01])),
            flipped=draw(st.booleans()),
            update_rate=draw(st.sampled_from([0.0, 5.0])),
            measurement_rate=draw(st.sampled_from([0.0, 40.0])),
        )
        for _ in range(draw(st.integers(0, 3)))
    )
    steering = None
    track = draw(st.floats(0.05, 1.0))
    if base.steering is not None:
        sign = draw(st.sampled_from([-1.0, 1.0]))
        steering = Steering(
            wheelbase=sign * draw(st.floats(1.0, 5.0)),
            limit=draw(st.floats(0.05, 1.0)),
            rate=draw(st.sampled_from([0.0, 0.5])),
            by_angle=draw(st.booleans()),
        )
    top = Axes(draw(SIZES), draw(SIZES), draw(SIZES))
    ramps = Axes(draw(st.sampled_from([0.0, 0.5])), 0.3, draw(SIZES))
    return replace(
        base,
        name="drawn",
        pioneer=replace(base.pioneer, subclass="drawn"),
        drive=drive,
        outline=shape,
        track=track,
        wheel_radius=draw(st.floats(0.01, 0.5)),
        steering=steering,
        wheels=FourWheels(
            wheelbase=draw(st.floats(0.1, 2.0)),
            track_factor=draw(st.floats(1.0, 2.0)) if drive is Drive.SKID else 1.0,
            slip=draw(st.sampled_from([0.0, 0.1])),
        )
        if drive in (Drive.SKID, Drive.MECANUM)
        else None,
        lasers=lasers,
        limits=MotionLimits(max_speed=top, accel=ramps, decel=ramps),
        gripper=draw(st.sampled_from([None, GripperSpec()])),
    )


@given(models())
def test_any_model_comes_back(spec: RobotSpec) -> None:
    made = read_urdf("drawn.urdf", data=to_urdf(spec, "drawn").encode())
    assert same(made.spec, spec)


@given(models())
def test_the_plain_elements_describe_drive_and_lasers(spec: RobotSpec) -> None:
    """Without the element ``robot_file``, as other programs see the description."""
    made = read_urdf("drawn.urdf", data=to_urdf(spec, "drawn", whole=False).encode())
    found = made.spec
    assert found.drive == spec.drive
    assert (found.track, found.wheel_radius) == pytest.approx(
        (spec.track, spec.wheel_radius), rel=1e-6
    )
    if spec.wheels is not None:
        assert found.wheels is not None
        assert found.wheels.wheelbase == pytest.approx(spec.wheels.wheelbase)
        assert found.wheels.track_factor == pytest.approx(spec.wheels.track_factor)
    if spec.steering is not None:
        assert found.steering is not None
        assert found.steering.wheelbase == pytest.approx(spec.steering.wheelbase)
        assert found.steering.limit == pytest.approx(spec.steering.limit)
        assert found.steering.rate == pytest.approx(spec.steering.rate)
    assert found.limits.max_speed.x == pytest.approx(spec.limits.max_speed.x)
    assert len(found.lasers) == len(spec.lasers)
    for ours, theirs in zip(found.lasers, spec.lasers, strict=True):
        assert ours.pose == pytest.approx(theirs.pose, abs=1e-6)
        assert (ours.samples, ours.flipped) == (theirs.samples, theirs.flipped)
        assert ours.fov == pytest.approx(theirs.fov)


def edited(text: str, old: str, new: str) -> RobotSpec:
    assert text.count(old) >= 1
    return read_urdf("a.urdf", data=text.replace(old, new).encode()).spec


def test_changes_of_a_written_file_count() -> None:
    """The element ``robot_file`` completes the file; it does not overrule its elements."""
    spec = load_robot("turtlebot4")
    text = to_urdf(spec, "turtlebot4")
    made = edited(text, "<max_linear_velocity>0.306<", "<max_linear_velocity>0.46<")
    assert made.limits.max_speed == replace(spec.limits.max_speed, x=0.46)
    assert same(replace(made, limits=spec.limits), spec), (
        "and all else stays: sonar, bumper, odometry"
    )
    made = edited(text, "<samples>360<", "<samples>180<")
    assert made.lasers == (replace(spec.lasers[0], samples=180),)
    made = edited(text, 'xyz="0 0.1165 0.03575"', 'xyz="0 0.2 0.03575"')
    assert made.track == spec.track, "the plugin's wheel_separation has precedence"
    # Another body replaces the outline, which boxes cannot hold exactly.
    root = ET.fromstring(text)
    shape = root.find("link[@name='base_link']/collision/geometry")
    assert shape is not None
    shape.clear()
    ET.SubElement(shape, "box", size="0.6 0.5 0.1")
    made = read_urdf("a.urdf", data=ET.tostring(root)).spec
    assert extent(made) == pytest.approx([-0.3, 0.3, -0.25, 0.25])
    assert made.sonar == spec.sonar


def test_a_robot_file_within_a_description_names_no_parent(tmp_path: Path) -> None:
    text = to_urdf(load_robot("p3dx"), "p3dx")
    for line in ('extends = "seekur"', '"extends" = "seekur"', "'extends' = 'no_such'"):
        made = edited(text, "\ndescription = ", f"\n{line}\ndescription = ")
        assert same(made, load_robot("p3dx"))
    with pytest.raises(ModelFileError, match=r"a\.urdf:\d+: .*not a TOML file"):
        edited(text, "\ndescription = ", "\n= ")


# -- every key

WHOLE = f"""<robot name='bot'>{BOX}{PAIR}{FRONT}{LIDAR}
<gazebo><plugin name='p' filename='diff_drive'/></gazebo><ros2_control name='c'/><transmission name='t'/>
</robot>"""
PATHS = {
    "robot": "",
    "link": "link",
    "collision": "link/collision",
    "geometry": "link/collision/geometry",
    "shape": "link/collision/geometry/box",
    "origin": "link/collision/origin",
    "joint": "joint[@name='fl_wheel_steer']",
    "limit": "joint[@name='fl_wheel_steer']/limit",
    "gazebo": "gazebo",
    "ros2_control": "ros2_control",
    "transmission": "transmission",
}
ATTRIBUTES = {
    ("robot", "name"),
    ("robot", "version"),
    ("link", "name"),
    ("link", "type"),
    ("collision", "name"),
    ("origin", "xyz"),
    ("origin", "rpy"),
    ("joint", "name"),
    ("joint", "type"),
    ("gazebo", "reference"),
    *(("limit", k) for k in KEYS.kinds["limit"]),
    *(("shape", k) for k in KEYS.kinds["shape"]),
    *((k, n) for k in ("ros2_control", "transmission") for n in ("name", "type")),
}
VALUES = {
    ("robot", "name"): "ann",
    ("robot", "link"): "<link name='laser_2'/>",
    ("robot", "gazebo"): "<gazebo><plugin name='x' filename='lamp'/></gazebo>",
    ("link", "collision"): (
        "<collision><geometry><box size='2 2 0.1'/></geometry></collision>"
    ),
    ("geometry", "box"): "<box size='2 2 0.1'/>",
    ("geometry", "cylinder"): "<cylinder radius='1' length='0.2'/>",
    ("geometry", "sphere"): "<sphere radius='1'/>",
    ("geometry", "capsule"): "<capsule radius='1' length='0.2'/>",
    ("geometry", "mesh"): "<mesh filename='a.stl'/>",
    ("shape", "size"): "2 2 2",
    ("origin", "xyz"): "1 1 0",
    ("origin", "rpy"): "0 0 1",
    ("collision", "origin"): "<origin xyz='1 0 0'/>",
    ("collision", "geometry"): "<geometry><box size='2 2 0.1'/></geometry>",
    ("joint", "type"): "fixed",
    ("joint", "origin"): "<origin xyz='2 0.25 0'/>",
    ("joint", "axis"): "<axis xyz='1 0 0'/>",
    ("joint", "limit"): "<limit lower='-0.9' upper='0.9'/>",
    ("limit", "lower"): "-0.9",
    ("limit", "upper"): "0.9",
    ("limit", "velocity"): "0.3",
    ("gazebo", "plugin"): "<plugin name='x' filename='planar_move'/>",
    ("gazebo", "sensor"): "<sensor name='b' type='camera'/>",
    ("robot", "sensor"): "<sensor type='ray'><parent link='base_link'/></sensor>",
    ("ros2_control", "joint"): (
        "<joint name='left_wheel_joint'><command_interface/></joint>"
    ),
    ("transmission", "joint"): "<joint name='left_wheel_joint'/>",
}
# Other tests read them: they name something, or count only together with others.
INERT = {
    ("robot", "joint"),
    ("robot", "transmission"),
    ("robot", "ros2_control"),
    ("link", "name"),
    ("joint", "name"),
    ("joint", "parent"),
    ("joint", "child"),
    ("gazebo", "reference"),
    ("gazebo", "robot_file"),
    *(("shape", key) for key in ("radius", "length", "filename", "scale")),
}


@pytest.mark.parametrize(("kind", "key"), [k for k in all_keys(KEYS) if k not in INERT])
def test_each_key_is_read_or_named(kind: str, key: str) -> None:
    base, value = WHOLE, VALUES.get((kind, key), "2")
    if kind in ("joint", "limit", "ros2_control", "transmission"):
        # A plugin has precedence over joints.
        base = base.replace("<plugin name='p' filename='diff_drive'/>", "")
    if (kind, key) == ("gazebo", "plugin"):
        base = base.replace("<plugin name='p' filename='diff_drive'/>", "")
    if (kind, key) == ("robot", "link"):
        # A link needs a joint.
        base = base.replace(
            "<ros2_control",
            "<joint name='j' type='fixed'><parent link='base_link'/><child link='laser_2'/>"
            "</joint><ros2_control",
        )
        with pytest.raises(ModelFileError, match="laser_2"):
            read_urdf("a.urdf", data=base.encode())
        read_urdf(
            "a.urdf",
            data=base.replace("<gazebo>", "<link name='laser_2'/><gazebo>", 1).encode(),
        )
        return

    def made(given: str | None) -> Imported:
        text = changed(
            base, PATHS[kind], key, given, attribute=(kind, key) in ATTRIBUTES
        )
        return read_urdf("a.urdf", data=text.encode())

    now, before = made(value), made(None)
    use = KEYS.kinds[kind][key]
    note = f'"{key}" of {kind} is left out'
    if use.is_read:
        assert not any(note in text for text in now.remarks)
        assert (now.spec, now.remarks) != (before.spec, before.remarks)
    else:
        assert now.spec == before.spec
        silent = bool(use.harmless) and use.harmless[0] == object()
        assert any(note in text for text in now.remarks) is not silent


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "urdf")


# -- hostile files


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<robot", "not XML"),
        ("<sdf/>", "expected the element robot"),
        ("<robot name='a'/>", "0 roots"),
        ("<robot name='a'><link/></robot>", "expected a name"),
        ("<robot name='a'><link name='b'/><link name='b'/></robot>", "twice"),
        ("<robot name='a'><link name='b'/><link name='c'/></robot>", "2 roots"),
        (
            "<robot name='a'><link name='b'/><joint name='j'><parent link='b'/>"
            "<child link='x'/></joint></robot>",
            'the name of a link as child, found "x"',
        ),
        (
            "<robot name='a'><link name='b'/><link name='c'/><link name='d'/>"
            "<joint name='j'><parent link='c'/><child link='d'/></joint>"
            "<joint name='k'><parent link='d'/><child link='c'/></joint></robot>",
            "a circle",
        ),
        (
            "<robot name='a'><link name='b'/><link name='c'/>"
            "<joint name='j'><parent link='b'/><child link='c'/></joint>"
            "<joint name='k'><parent link='b'/><child link='c'/></joint></robot>",
            "links with one parent",
        ),
        (
            "<robot name='a'><link name='b'/><link name='c'/><joint name='j' type='warp'>"
            "<parent link='b'/><child link='c'/></joint></robot>",
            "found warp",
        ),
        (
            "<robot name='a'><link name='b'/></robot>",
            "a collision shape near the floor",
        ),
        (f"<robot name='{'x' * 65}'>{BOX}{PAIR}</robot>", "1 to 64 printable"),
        (
            f"<robot name='a'>{BOX}{PAIR}".replace("0.6 0.4 0.2", "0.6 0.4 nan")
            + "</robot>",
            "3 numbers",
        ),
        (
            "<!DOCTYPE robot [<!ENTITY x 'y'>]><robot name='a'>&x;</robot>",
            "a file without entities",
        ),
        (
            "<robot xmlns:xacro='http://www.ros.org/wiki/xacro'><xacro:macro/></robot>",
            "without macros",
        ),
    ],
)
def test_wrong_files_say_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ModelFileError) as error:
        read_urdf("my.urdf", data=text.encode())
    assert complaint in str(error.value) and "my.urdf" in str(error.value)


def test_reading_has_limits(tmp_path: Path) -> None:
    path = tmp_path / "big.urdf"
    path.write_text(f"<robot name='a'>{BOX}{PAIR}</robot>")
    for limit in ("bytes", "entities", "nesting"):
        with pytest.raises(BudgetError, match=f"--max-read {limit}"):
            read_urdf(path, replace(Budget(), **{limit: 2}))
    shapes = BOX[BOX.index("<collision>") : BOX.index("</link>")] * 501
    many = f"<robot name='a'><link name='b'>{shapes}</link></robot>"
    with pytest.raises(ModelFileError, match="at most 500 collision shapes"):
        read_urdf("my.urdf", data=many.encode())
    # A chain of links is no recursion.
    chain = "".join(
        f"<link name='l{k}'/><joint name='j{k}' type='fixed'><parent link='{p}'/>"
        f"<child link='l{k}'/></joint>"
        for k, p in ((k, f"l{k - 1}" if k else "base_link") for k in range(3000))
    )
    assert spec_of(PAIR + chain).drive == Drive.DIFF


@given(st.data())
def test_damaged_files_give_one_error(data: st.DataObject) -> None:
    text = to_urdf(load_robot("car"), "car").encode()
    at = data.draw(st.integers(0, len(text) - 1))
    size = data.draw(st.integers(0, 40))
    new = data.draw(st.binary(max_size=10))
    try:
        read_urdf("car.urdf", data=text[:at] + new + text[at + size :])
    except ModelFileError as error:
        found = str(error)
    else:
        return
    assert "car.urdf" in found


# -- the command line


def test_a_description_is_a_model_wherever_models_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bot.urdf"
    path.write_text(f"<robot name='bot'>{BOX}{PAIR}{LIDAR}</robot>")
    assert find_robot(path).name == botyard.load_robot(path).name == "bot"
    found = read_models(path)
    assert found.remarks and found.robots[0].drive == Drive.DIFF
    robot = Simulation().add_robot(str(path), "ann")
    assert robot.spec.lasers


def test_import_writes_a_robot_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.urdf").write_text(f"<robot name='bot'>{BOX}{PAIR}{MAST}</robot>")
    done = CliRunner().invoke(
        command, ["import", "bot.urdf", "--height", "0.5"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "botyard: warning: bot.urdf:" in done.output
    assert "written: bot.toml" in done.output
    spec = botyard.load_robot(tmp_path / "bot.toml")
    assert (spec.name, spec.drive, spec.front) == ("bot", Drive.DIFF, 0.35)
    done = CliRunner().invoke(command, ["import", "bot.urdf", "-o", "mine.toml"])
    assert botyard.load_robot(tmp_path / "mine.toml").front == pytest.approx(0.7)
    for output, hint in (
        (tmp_path / "own.toml", str(tmp_path / "own.toml")),
        (Path("two words.toml"), "'./two words.toml'"),
    ):
        done = CliRunner().invoke(command, ["import", "bot.urdf", "-o", str(output)])
        assert done.output.endswith(f"botyard -r {hint}\n")
    for arguments, complaint in (
        (["-o", "mine.txt"], "expected a .toml file"),
        (["--argument", "a:=b"], "--argument needs a .xacro file, found bot.urdf"),
    ):
        done = CliRunner().invoke(command, ["import", "bot.urdf", *arguments])
        assert complaint in str(done.exception)


XACRO = f"""<robot name="bot" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="width" default="0.4"/><xacro:property name="length" value="0.6"/>
<link name="base_link"><collision><origin xyz="0 0 0.2"/><geometry>
<box size="${{length + 0.2}} $(arg width) 0.2"/></geometry></collision></link>{PAIR}</robot>"""


def test_xacro_files_are_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xacro")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.urdf.xacro").write_text(XACRO)
    # A file of this name in the folder of a description must not run.
    (tmp_path / "xacro.py").write_text("raise SystemExit(3)")

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(command, ["import", "bot.urdf.xacro", *arguments])
        return done.exit_code, f"{done.output} {done.exception}"

    assert run()[0] == 0
    assert extent(botyard.load_robot(tmp_path / "bot.toml"))[:2] == [-0.4, 0.4]
    assert run("--argument", "width:=0.8")[0] == 0
    assert extent(botyard.load_robot(tmp_path / "bot.toml"))[2:] == [-0.4, 0.4]
    assert "NAME:=VALUE" in run("--argument", "width=0.8")[1]
    loop = "<xacro:macro name='m'><xacro:m/></xacro:macro><xacro:m/></robot>"
    (tmp_path / "bot.urdf.xacro").write_text(XACRO.replace("</robot>", loop))
    assert "xacro: expected includes and macros that end" in run()[1]
    include = "<xacro:include filename='bot.urdf.xacro'/></robot>"
    (tmp_path / "bot.urdf.xacro").write_text(XACRO.replace("</robot>", include))
    assert "xacro: expected includes and macros that end" in run()[1]


def test_models_of_xacro_files_are_refused_with_the_command_that_imports_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bot.urdf.xacro"
    path.write_text(XACRO)
    with pytest.raises(ModelFileError) as error:
        botyard.load_robot(path)
    assert "botyard models import bot.urdf.xacro" in str(error.value)


def test_a_run_prints_the_remarks_of_an_import(tmp_path: Path) -> None:
    path = tmp_path / "bot.urdf"
    path.write_text(f"<robot name='bot'>{BOX}{PAIR}{MAST}</robot>")
    told: list[str] = []
    choice = RobotChoice(str(path), None)
    check_models(RunOptions(robots=(choice, choice)), told.append)
    assert told == list(read_models(path).remarks)
    assert told


def test_an_expansion_that_takes_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xacro")
    path = tmp_path / "bot.xacro"
    path.write_text(XACRO)

    def late(*_: object, **options: object) -> None:
        raise subprocess.TimeoutExpired("xacro", float(str(options["timeout"])))

    monkeypatch.setattr(subprocess, "run", late)
    done = CliRunner().invoke(command, ["import", str(path)])
    assert "expand within 30 s" in str(done.exception)
