"""Worlds of MVSim: vehicles, blocks, maps, the flow of a file, and every key."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from botyard.errors import BudgetError, FormatError
from botyard.formats.base import Options, Source
from botyard.formats.budget import Budget
from botyard.formats.importers.expressions import Calculator, ExpressionError
from botyard.formats.importers.mvsim import read
from botyard.formats.importers.mvsimkeys import KEYS
from botyard.formats.registry import format_of
from botyard.geometry import Pose
from botyard.model.fourwheels import FourWheels
from botyard.model.kinematics import Drive, Steering
from botyard.model.scene import GeoReference
from botyard.model.world import World
from tests.formats.importers.checks import all_keys, check_page, load, loaded, run
from tests.formats.importers.xmls import check_xml_key

WHEELS = (
    "<l_wheel pos='0.1 0.25' diameter='0.2'/><r_wheel pos='0.1 -0.25' diameter='0.2'/>"
)
SHAPE = "<shape><pt>-0.4 -0.2</pt><pt>0.4 -0.2</pt><pt>0.4 0.2</pt><pt>-0.4 0.2</pt></shape>"
LASER = (
    "<sensor class='laser' name='s'><pose_3d>0.3 0.1 0.5 90 0 0</pose_3d><fov_degrees>270</fov_degrees>"
    "<nrays>271</nrays><sensor_period>0.1</sensor_period><range_std_noise>0.02</range_std_noise>"
    "<max_range>12</max_range></sensor>"
)
BOT = (
    f"<vehicle:class name='bot'><dynamics class='differential'>{WHEELS}<chassis>{SHAPE}</chassis>"
    f"</dynamics>{LASER}</vehicle:class>"
)
RIDE = "<vehicle name='ann' class='bot'><init_pose>1 2 90</init_pose></vehicle>"
BOX = "<geometry type='box' lx='2' ly='1' lz='1'/>"


def world(inner: str, told: list[str] | None = None) -> World:
    return loaded(f"<mvsim_world>{inner}</mvsim_world>", "my.world.xml", told)


def corners(made: World) -> set[tuple[float, float]]:
    return {
        (round(x, 6), round(y, 6))
        for x, y in made.scene.segments.reshape(-1, 2).tolist()
    }


def test_a_vehicle_of_a_class_is_a_robot() -> None:
    told: list[str] = []
    (robot,) = world(BOT + RIDE, told).robots
    assert robot.name == "ann"
    # The origin is the middle of the axle, 0.1 m ahead.
    assert robot.pose == pytest.approx(Pose(1.0, 2.1, math.pi / 2))
    spec = robot.spec
    assert (spec.drive, spec.track, spec.wheel_radius) == (Drive.DIFF, 0.5, 0.1)
    assert (spec.front, min(x for x, _ in spec.outline)) == pytest.approx((0.3, -0.5))
    (laser,) = spec.lasers
    assert laser.pose == pytest.approx(Pose(0.2, 0.1, math.pi / 2))
    assert (laser.samples, laser.range_max, laser.update_rate) == (271, 12.0, 10.0)
    assert math.degrees(laser.fov) == pytest.approx(270.0)
    assert any("vehicles have no top speed" in text for text in told)


def test_sensors_of_the_class_and_of_the_vehicle_count() -> None:
    more = RIDE.replace("</vehicle>", f"{LASER}<sensor class='camera'/></vehicle>")
    told: list[str] = []
    (robot,) = world(BOT + more, told).robots
    assert len(robot.spec.lasers) == 2
    assert any('a sensor "camera" is left out' in text for text in told)


def test_a_car_steers_about_its_rear_axle() -> None:
    (robot,) = world(
        "<vehicle name='c'><dynamics class='ackermann'><rl_wheel pos='-0.5 0.8' diameter='0.6'/>"
        "<rr_wheel pos='-0.5 -0.8' diameter='0.6'/><f_wheels_x>1.5</f_wheels_x>"
        "<f_wheels_d>1.6</f_wheels_d><max_steer_ang_deg>35</max_steer_ang_deg></dynamics></vehicle>"
    ).robots
    spec = robot.spec
    assert spec.drive == Drive.ACKERMANN
    assert spec.steering == Steering(wheelbase=2.0, limit=math.radians(35.0))
    assert (spec.track, spec.wheel_radius) == pytest.approx((1.6, 0.3))
    assert robot.pose == pytest.approx(Pose(-0.5, 0.0, 0.0))
    assert spec.front == pytest.approx(2.3)


def test_four_wheels_skid_and_bound_a_body_of_a_mesh() -> None:
    wheels = "".join(
        f"<{side}{end}_wheel pos='{x} {y}' diameter='0.2'/>"
        for side, y in (("l", 0.2), ("r", -0.2))
        for end, x in (("f", 0.15), ("r", -0.15))
    )
    told: list[str] = []
    (robot,) = world(
        f"<vehicle name='j'><dynamics class='differential_4_wheels'>{wheels}<chassis>"
        "<shape_from_visual/></chassis></dynamics></vehicle>",
        told,
    ).robots
    spec = robot.spec
    assert (spec.drive, spec.track) == (Drive.SKID, 0.4)
    assert spec.wheels == FourWheels(wheelbase=0.3)
    assert np.ptp(spec.outline, axis=0) == pytest.approx([0.6, 0.5])
    assert any("shape_from_visual" in text for text in told)


def test_blocks_are_objects_or_walls() -> None:
    made = world(
        f"<block:class name='crate'><mass>7</mass>{BOX}</block:class>"
        "<block class='crate' name='a'><init_pose>1 1 90</init_pose></block>"
        "<block class='crate'><static>true</static><init_pose3d>5 0 0 0 0 0</init_pose3d></block>"
        f"<block><intangible>1</intangible>{BOX}</block>"
        f"<block name='low'><zmax>0.1</zmax>{SHAPE}</block>"
        "<block name='round'><geometry type='cylinder' radius='0.5' length='1'/></block>"
    )
    crate, low, pillar = made.scene.boxes
    assert crate.dynamics is not None and crate.dynamics.mass == 7.0
    assert crate.pose == pytest.approx(Pose(1.0, 1.0, math.pi / 2))
    assert corners(made) == {(4.0, -0.5), (6.0, -0.5), (6.0, 0.5), (4.0, 0.5)}
    # A laser looks over a low block.
    assert (crate.returns.laser, low.returns.laser, low.returns.obstacle) == (
        1,
        0,
        True,
    )
    assert pillar.name == "round" and pillar.length == pytest.approx(1.0, rel=0.02)


def test_planes_maps_and_settings(tmp_path: Path) -> None:
    pixels = np.full((4, 4), 255, np.uint8)
    pixels[3, 0] = 0
    Image.fromarray(pixels).save(tmp_path / "m.png")
    (tmp_path / "m.yaml").write_text(
        "image: m.png\nresolution: 0.5\norigin: [1, 1, 0]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.2\n"
    )
    grid = "<element class='occupancy_grid'><file>m.png</file><resolution>0.5</resolution></element>"
    (tmp_path / "w.world.xml").write_text(
        f"<mvsim_world><simul_timestep>0.02</simul_timestep>{grid}<georeference><latitude>36.9"
        "</latitude><longitude>-2.3</longitude><height>100</height></georeference></mvsim_world>"
    )
    made = load(tmp_path / "w.world.xml")
    # Without a pixel for it, the origin is the middle of the picture.
    assert corners(made) == {(x, y) for x in (-1.0, -0.5) for y in (-1.0, -0.5)}
    assert made.settings.step == 0.02
    assert made.scene.georeference == GeoReference(36.9, -2.3, 100.0)
    (tmp_path / "w.world.xml").write_text(
        f"<mvsim_world>{grid.replace('m.png', 'm.yaml')}</mvsim_world>"
    )
    assert corners(load(tmp_path / "w.world.xml")) == {
        (x, y) for x in (1.0, 1.5) for y in (1.0, 1.5)
    }
    plane = (
        "<element class='vertical_plane'><x0>0</x0><y0>1</y0><x1>4</x1><y1>1</y1><z>{z}</z>"
        "<height>1</height></element>"
    )
    assert len(world(plane.format(z=0)).scene.segments) == 1
    assert len(world(plane.format(z=2)).scene.segments) == 0


def test_an_actor_walks_its_path() -> None:
    made = world(
        "<actor:class name='p'><walking_speed>0.9</walking_speed></actor:class>"
        "<actor name='eve' class='p'><init_pose>1 1 0</init_pose><path loop='true'>"
        "<waypoint>1 1 0</waypoint><waypoint>5 1 0</waypoint></path></actor>"
    )
    (actor,) = made.robots
    assert not actor.served and actor.program is not None
    assert actor.program.options == {
        "points": [[1.0, 1.0], [5.0, 1.0]],
        "order": "loop",
        "speed": 0.9,
    }


# -- the flow of a file


def test_variables_loops_and_conditions() -> None:
    made = world(
        "<variable name='n' value='4'/><for var='i' from='1' to='${n}'><if condition='$f{i % 2 == 0}'>"
        f"<block name='b${{i}}'>{BOX}<init_pose>$f{{i*3}} ${{far|-7}} $f{{90*cos(0)}}</init_pose></block>"
        f"</if></for><if condition='false'><block>{BOX}</block></if>"
    )
    assert [b.name for b in made.scene.boxes] == ["b2", "b4"]
    for x, block in zip((6.0, 12.0), made.scene.boxes, strict=True):
        assert block.pose == pytest.approx(Pose(x, -7.0, math.pi / 2))


def test_files_are_included_with_values(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/bot.xml").write_text(
        "<?xml version='1.0'?>\n<!-- two roots, as MVSim reads them -->\n"
        + BOT.replace("0.3 0.1 0.5 90", "${at|0.3} 0 0 0")
        + f"<block name='b'>{BOX}</block>"
    )
    path = tmp_path / "w.world.xml"
    path.write_text(
        f"<mvsim_world><include file='parts/bot.xml' at='0.25'/>{RIDE}</mvsim_world>"
    )
    made = load(path)
    assert made.robots[0].spec.lasers[0].pose.x == pytest.approx(0.15)
    assert [b.name for b in made.scene.boxes] == ["b"]
    path.write_text("<mvsim_world><include file='w.world.xml'/></mvsim_world>")
    with pytest.raises(
        FormatError, match="expected no file that includes itself, found"
    ):
        load(path)
    for name, complaint in (
        ("none.xml", "does not exist"),
        ("../w.xml", "does not exist"),
    ):
        path.write_text(f"<mvsim_world><include file='{name}'/></mvsim_world>")
        with pytest.raises(FormatError, match=complaint):
            load(path)


def test_nothing_is_run_or_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "7")
    told: list[str] = []
    world(
        "<include file='$(ros2 pkg prefix mvsim)/a.xml'/><include file='https://a/b.xml'/>",
        told,
    )
    assert sum("runs no programs and fetches no files" in text for text in told) == 2
    made = world(
        f"<block name='b'>{BOX}<init_pose>$env{{SECRET|3}} 0 0</init_pose></block>"
    )
    assert made.scene.boxes[0].pose.x == 3.0
    with pytest.raises(FormatError, match="environment with a default"):
        world(f"<block>{BOX}<init_pose>$env{{SECRET}} 0 0</init_pose></block>")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3 - 4/2", 5.0),
        ("-2^2", -4.0),
        ("2^3^2", 512.0),
        ("(1+2)*3 % 4", 1.0),
        ("not (1 < 2) or 3 >= 3 and 1 != 2", 1.0),
        ("sqrt(x*x) + abs(-1)", 4.0),
        ("atan2(1, 1)*4/M_PI", 1.0),
        ("floor(2.7) + ceil(2.1) + round(0.5) + int(-1.5)", 5.0),
        ("max(1, 2) + min(1, 2) + pow(2, 3)", 11.0),
        (".5e1 + 1.", 6.0),
    ],
)
def test_expressions(text: str, value: float) -> None:
    assert Calculator("a").value(text, {"x": "3"}) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "1 2",
        "(1",
        "sin(1, 2)",
        "unknown",
        "run(1)",
        "1/0",
        "5 % 0",
        "sqrt(-1)",
        "(-1)^0.5",
        "9^9^9^9",
        "1;2",
        "x.__class__",
        "__import__('os')",
        "(" * 60 + "1" + ")" * 60,
        "1" * 2001,
    ],
)
def test_wrong_expressions_are_errors(text: str) -> None:
    with pytest.raises(ExpressionError):
        Calculator("a").value(text, {"x": "word"})


@given(st.text(alphabet="0123456789.+-*/%^()<>=!,abcdeinorst _", max_size=40))
def test_any_expression_gives_a_number_or_an_error(text: str) -> None:
    try:
        found = Calculator("a").value(text, {"a": "1", "b": "x"})
    except ExpressionError:
        return
    assert math.isfinite(found)


def test_random_numbers_are_the_same_in_each_run() -> None:
    text = f"<block>{BOX}<init_pose>$f{{rand()}} $f{{randn()}} $f{{unifrnd(0, 9)}}</init_pose></block>"
    (first,), (second,) = world(text * 1).scene.boxes, world(text).scene.boxes
    assert first.pose == second.pose
    assert 0.0 <= first.pose.x <= 1.0


# -- every key

BASE = (
    f"<mvsim_world><georeference/><vehicle name='v'><dynamics class='differential'>{WHEELS}"
    f"<chassis>{SHAPE}</chassis></dynamics>{LASER}</vehicle>"
    f"<block name='b'>{BOX}</block><actor name='a'><path><waypoint>1 1</waypoint></path></actor>"
    "<element class='vertical_plane'><x0>0</x0><y0>1</y0><x1>4</x1><y1>1</y1></element>"
    "</mvsim_world>"
)
CLASSES = (
    b"<block:class name='k'><mass>3</mass></block:class>"
    b"<vehicle:class name='k'><init_pose>7 7 7</init_pose></vehicle:class>"
    b"<actor:class name='k'><walking_speed>0.7</walking_speed></actor:class>"
)
PATHS = {
    "world": "",
    "georeference": "georeference",
    "element": "element",
    "vehicle": "vehicle",
    "dynamics": "vehicle/dynamics",
    "wheel": "vehicle/dynamics/l_wheel",
    "chassis": "vehicle/dynamics/chassis",
    "sensor": "vehicle/sensor",
    "block": "block",
    "geometry": "block/geometry",
    "actor": "actor",
    "path": "actor/path",
}
ATTRIBUTES = frozenset(
    {
        ("world", "version"),
        *(
            (k, "class")
            for k in ("element", "vehicle", "dynamics", "sensor", "block", "actor")
        ),
        *((k, "name") for k in ("vehicle", "block", "actor", "sensor", "element")),
        *(("wheel", k) for k in ("pos", "diameter")),
        *(("geometry", k) for k in KEYS.kinds["geometry"]),
        ("path", "loop"),
    }
)
CAR = "class='ackermann'"
PLANE = "<x0>0</x0><y0>1</y0><x1>4</x1><y1>1</y1>"
VALUES = {
    ("world", "simul_timestep"): "0.5",
    (
        "world",
        "element",
    ): f"<element class='vertical_plane'>{PLANE.replace('4', '7')}</element>",
    (
        "world",
        "vehicle",
    ): "<vehicle name='w'><dynamics class='differential'/></vehicle>",
    ("world", "block"): f"<block name='w'>{BOX}</block>",
    ("world", "actor"): "<actor name='w'/>",
    ("world", "georeference"): "<georeference><latitude>9</latitude></georeference>",
    ("element", "class"): "skybox",
    ("element", "z"): "0.5",
    ("element", "height"): "0.1",
    **{(kind, "class"): "k" for kind in ("vehicle", "block", "actor")},
    **{(kind, "name"): "w" for kind in ("vehicle", "block", "actor")},
    **{(kind, "init_pose"): "3 2 10" for kind in ("vehicle", "block", "actor")},
    **{(kind, "init_pose3d"): "3 2 0 10 0 0" for kind in ("vehicle", "block", "actor")},
    ("vehicle", "dynamics"): "<dynamics class='ackermann'/>",
    ("vehicle", "sensor"): "<sensor class='laser'/>",
    ("dynamics", "class"): "ackermann",
    ("dynamics", "chassis"): "<chassis/>",
    **{("dynamics", f"{s}_wheel"): f"<{s}_wheel pos='0.3 0.4'/>" for s in ("l", "r")},
    **{
        ("dynamics", f"{s}_wheel"): f"<{s}_wheel pos='0.3 0.4'/>"
        for s in ("lf", "rf", "lr", "rr")
    },
    ("dynamics", "rl_wheel"): "<rl_wheel pos='0.3 0.4'/>",
    ("wheel", "pos"): "0.2 0.3",
    ("wheel", "diameter"): "0.4",
    ("chassis", "shape"): SHAPE.replace("0.4", "0.7"),
    ("chassis", "color"): "#00ff00",
    ("sensor", "class"): "camera",
    ("sensor", "pose"): "1 1 0",
    ("sensor", "pose_3d"): "1 1 0 0 0 0",
    ("block", "static"): "true",
    ("block", "intangible"): "true",
    ("block", "restitution"): "0.5",
    ("block", "shape"): SHAPE,
    ("block", "geometry"): "<geometry type='sphere' radius='1'/>",
    ("block", "zmax"): "0.1",
    ("block", "color"): "#00ff00",
    ("geometry", "type"): "sphere",
    ("geometry", "lx"): "3",
    ("dynamics", "f_wheels_d"): "1.6",
    ("geometry", "lz"): "0.1",
    ("actor", "path"): "<path><waypoint>5 5</waypoint></path>",
    ("path", "loop"): "false",
    ("path", "waypoint"): "<waypoint>3 3</waypoint>",
}
INERT = {
    ("world", "version"),
    # Tests above read them.
    ("world", "class"),
    *(("element", k) for k in ("file", "resolution", "centerpixel_x", "centerpixel_y")),
    ("geometry", "length"),
}


@pytest.mark.parametrize(("kind", "key"), [k for k in all_keys(KEYS) if k not in INERT])
def test_each_key_is_read_or_named(kind: str, key: str) -> None:
    base, values = BASE, dict(VALUES)
    if kind == "dynamics" and (key[:2] in ("rl", "f_") or key.startswith("max")):
        base = base.replace("class='differential'", CAR)
    if kind == "dynamics" and key in ("lf_wheel", "rf_wheel", "lr_wheel", "rr_wheel"):
        base = base.replace("class='differential'", "class='differential_4_wheels'")
    if (kind, key) == ("geometry", "type"):
        base = base.replace("type='box'", "type='box' radius='1'")
    if (kind, key) == ("geometry", "radius"):
        base = base.replace("type='box'", "type='sphere' radius='1'")
    if (kind, key) == ("path", "loop"):
        base = base.replace("</path>", "<waypoint>2 2</waypoint></path>")
    if (kind, key) == ("sensor", "pose"):
        base = base.replace("<pose_3d>0.3 0.1 0.5 90 0 0</pose_3d>", "")
    if kind == "vehicle" and key == "class":
        base = base.replace(" name='v'>", " name='v'>")

    def with_classes(source: Source, options: Options) -> World:
        # ElementTree does not write elements with prefixes.
        data = source.data.replace(b"<georeference", CLASSES + b"<georeference", 1)
        return read(replace(source, data=data), options)

    check_xml_key(
        KEYS, kind, key, with_classes, "my.xml", base, PATHS, values, ATTRIBUTES
    )


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "mvsim")


# -- hostile files


def test_worlds_are_recognised_by_their_first_element() -> None:
    assert format_of(Source("a.xml", b"<?xml?><mvsim_world/>")).name == "mvsim"


@pytest.mark.parametrize(
    ("inner", "complaint"),
    [
        ("<vehicle/>", "expected dynamics"),
        ("<vehicle class='none'/>", 'a class of vehicle, found "none"'),
        ("<for var='i' from='1' to='x'/>", 'invalid expression "x"'),
        ("<if condition='nonsense'/>", 'invalid expression "nonsense"'),
        (f"<block>{BOX}<init_pose>a b</init_pose></block>", "2 to 6 numbers"),
        ("<block><shape><pt>1 1</pt></shape></block>", "at least 3 different points"),
        (
            "<vehicle><dynamics class='ackermann'><f_wheels_x>0</f_wheels_x></dynamics></vehicle>",
            "axles",
        ),
        ("<element class='occupancy_grid'/>", "expected a file"),
    ],
)
def test_wrong_worlds_say_what_is_wrong(inner: str, complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        world(inner)
    assert complaint in str(error.value) and "my.world.xml:1" in str(error.value)


@pytest.mark.parametrize(
    "inner",
    [
        "<for var='i' from='1' to='1e9'/>",
        "<for var='i' from='1' to='999'><for var='j' from='1' to='9999'><block/></for></for>",
        "<variable name='a' value='xxxxxxxxxx'/>"
        + "".join(f"<variable name='a' value='{'${a}' * 10}'/>" for _ in range(9)),
    ],
)
def test_small_files_that_stand_for_much_are_refused(inner: str) -> None:
    text = f"<mvsim_world>{inner}</mvsim_world>"
    with pytest.raises(FormatError) as error:
        read(Source("my.xml", text.encode()), Options(budget=Budget(entities=100_000)))
    assert isinstance(error.value, BudgetError) or "characters" in str(error.value)


def test_a_world_runs() -> None:
    run(
        world(BOT + RIDE + f"<block name='b'>{BOX}<init_pose>5 5 0</init_pose></block>")
    )
