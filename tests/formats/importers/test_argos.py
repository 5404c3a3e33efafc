"""Experiment files of ARGoS: arena, entities, drawn places, and every key."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from botyard.devices.leds import ring
from botyard.errors import FormatError
from botyard.formats.base import Source
from botyard.formats.importers.argos import ROBOTS, read
from botyard.formats.importers.argoskeys import KEYS
from botyard.formats.registry import format_of
from botyard.geometry import Pose
from botyard.model.library import load_robot
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

HEAD = "<argos-configuration><framework><experiment {}/></framework>"


def world(arena: str, told: list[str] | None = None, experiment: str = "") -> World:
    text = (
        HEAD.format(experiment)
        + f"<arena size='8,6,1' center='1,0,0'>{arena}</arena></argos-configuration>"
    )
    return loaded(text, "my.argos", told)


def drawn(method: str, entity: str = "quantity='9' max_trials='100'") -> str:
    return (
        f"<distribute><position {method}/><orientation method='constant' values='90,0,0'/>"
        f"<entity {entity}><e-puck id='ep'/></entity></distribute>"
    )


def test_boxes_and_cylinders_are_walls_or_objects() -> None:
    told: list[str] = []
    made = world(
        "<box id='w' size='4,2,0.5' movable='false'>"
        "<body position='1,2,0' orientation='90,0,0'/></box>"
        "<cylinder id='c' radius='0.5' movable='true' mass='2.5'>"
        "<body position='-1,0,0' orientation='0,0,0'/></cylinder>",
        told,
        "length='60' ticks_per_second='20' random_seed='7'",
    )
    assert told == []
    ends = made.scene.segments[:, :2]
    assert np.allclose(ends.min(axis=0), (0, 0))
    assert np.allclose(ends.max(axis=0), (2, 4))
    (box,) = made.scene.boxes
    assert box.dynamics is not None
    assert (box.name, box.dynamics.mass) == ("c", 2.5)
    assert box.pose == pytest.approx(Pose(-1.0, 0.0))
    assert made.scene.view == (-3.0, -3.0, 5.0, 3.0)
    assert (made.settings.step, made.settings.duration) == (0.05, 60.0)
    assert made.settings.seed == 7
    run(made)


@pytest.mark.parametrize("kind", list(ROBOTS))
def test_robots_are_the_shipped_models_with_their_sensors(kind: str) -> None:
    made = world(
        f"<{kind} id='r'><body position='1,2,0' orientation='90,0,0'/></{kind}>"
    )
    (robot,) = made.robots
    assert robot.pose == pytest.approx(Pose(1.0, 2.0, math.pi / 2))
    assert robot.spec == load_robot(ROBOTS[kind])
    assert robot.spec.sonar is not None
    assert len(robot.spec.sonar.transducers) >= 8
    run(made)


def test_leds_and_cameras_are_devices_of_robots_whose_controller_uses_them() -> None:
    told: list[str] = []
    text = """<argos-configuration>
<controllers>
  <lua_controller id='lit'><actuators><leds medium='leds'/><differential_steering/></actuators>
    <sensors><colored_blob_omnidirectional_camera medium='leds'/></sensors></lua_controller>
  <lua_controller id='dark'><actuators><range_and_bearing/></actuators>
    <sensors><footbot_light/></sensors></lua_controller>
</controllers>
<arena size='9,9,1'>
<foot-bot id='a'><body position='0,0,0'/><controller config='lit'/></foot-bot>
<foot-bot id='b' rab_range='2.5'><body position='1,0,0'/><controller config='dark'/></foot-bot>
<e-puck id='c'><body position='0,0.8,0'/><controller config='lit'/></e-puck>
<kheperaiv id='d'><body position='0,2,0'/><controller config='gone'/></kheperaiv>
<light id='l' position='1,1,1' intensity='2' medium='leds'/>
</arena></argos-configuration>"""
    made = loaded(text, "my.argos", told)
    specs = {
        one.name: {device.type: device for device in one.spec.devices}
        for one in made.robots
    }
    rings = {
        name: getattr(kinds.get("leds"), "count", 0) for name, kinds in specs.items()
    }
    assert rings == {"a": 12, "b": 0, "c": 8, "d": 0}
    assert [name for name, kinds in specs.items() if "omni_camera" in kinds] == [
        "a",
        "c",
    ]
    assert specs["b"]["range_and_bearing"].range_max == 2.5  # type: ignore[attr-defined]
    assert [line.partition(": ")[2] for line in told] == [
        '"light" of arena is left out: only robots have lamps: the device `leds` of a model',
        '"footbot_light" of sensors is left out: lights are not simulated',
        'the controller "gone" is left out: no controller of the file has this id',
    ]
    sim = run(made)
    sim.robots["a"].devices["leds"].write(**ring("red"))
    sim.step(2)
    (blob,) = sim.robots["c"].devices["omni_camera"].read()
    # The first LED of the foot-bot is 8.5 cm ahead of its centre.
    assert (blob.color, blob.range) == (0xFF0000, pytest.approx(math.hypot(0.085, 0.8)))


@given(seed=st.integers(0, 10_000))
def test_uniform_places_are_clear_of_each_other_and_repeat(seed: int) -> None:
    arena = drawn("method='uniform' min='-1,-2,0' max='1,2,0'")
    experiment = f"random_seed='{seed}'"
    made = world(arena, None, experiment)
    found = np.array([r.pose[:2] for r in made.robots if r.pose is not None])
    assert found.shape == (9, 2)
    assert (np.abs(found) <= (1, 2)).all()
    apart = np.hypot(*(found[:, None] - found[None]).transpose(2, 0, 1))
    assert apart[~np.eye(9, dtype=bool)].min() >= 2 * 0.0346
    assert description(made) == description(world(arena, None, experiment))


def test_a_grid_and_a_constant_are_exact() -> None:
    made = world(drawn("method='grid' center='1,0,0' distances='1,2,0' layout='3,3,1'"))
    found = {(r.pose.x, r.pose.y) for r in made.robots if r.pose is not None}
    assert found == {(x, y) for x in (0, 1, 2) for y in (-2, 0, 2)}
    assert [r.name for r in made.robots][:2] == ["ep0", "ep1"]
    made = world(drawn("method='constant' values='3,2,0'", "quantity='1' base_num='5'"))
    (robot,) = made.robots
    assert robot.pose == pytest.approx(Pose(3.0, 2.0, math.pi / 2))
    assert robot.name == "ep5"


def test_gaussian_places_have_their_mean() -> None:
    made = world(
        drawn(
            "method='gaussian' mean='3,-2,0' std_dev='100,50,0'",
            "quantity='2000' max_trials='100'",
        )
    )
    found = np.array([r.pose[:2] for r in made.robots if r.pose is not None])
    assert np.allclose(found.mean(axis=0), (3, -2), atol=10)
    assert np.allclose(found.std(axis=0), (100, 50), atol=5)


@pytest.mark.parametrize(
    ("arena", "complaint"),
    [
        ("<box id='a' size='1,1,1'/>", "box: expected a body"),
        ("<box id='a'><body/></box>", "box: expected size"),
        ("<box size='1,0,1'><body/></box>", "sides greater than 0"),
        ("<cylinder radius='x'><body/></cylinder>", "radius: expected a number"),
        ("<distribute/>", "distribute: expected an entity"),
        (drawn("method='dice'"), '"uniform" or "gaussian"'),
        (drawn("method='uniform' min='0,0,0'"), "position: expected max"),
        (drawn("method='grid'", "quantity='1e9'"), "from 0 to 20000"),
    ],
)
def test_files_that_are_refused(arena: str, complaint: str) -> None:
    with pytest.raises(FormatError) as error:
        world(arena)
    assert complaint in str(error.value)
    assert "my.argos:1" in str(error.value)


@pytest.mark.parametrize("robot", list(ROBOTS))
def test_entities_without_a_free_place_are_left_out(robot: str) -> None:
    told: list[str] = []
    arena = drawn(
        "method='uniform' min='-.1,-.1,0' max='.1,.1,0'",
        "quantity='20' max_trials='1000'",
    ).replace("e-puck", robot)
    made = world(arena, told)
    found = np.array([r.pose[:2] for r in made.robots if r.pose is not None])
    assert 0 < len(found) < 20
    apart = np.hypot(*(found[:, None] - found[None]).transpose(2, 0, 1))
    least = 2.0 * max(x for x, _ in made.robots[0].spec.outline)
    assert (apart[~np.eye(len(found), dtype=bool)] >= least).all()
    missing = f"{20 - len(found)} of 20 entities {robot} are left out: no free place"
    assert any(missing in text for text in told), told
    run(made)


def test_a_file_cannot_ask_for_endless_tries() -> None:
    told: list[str] = []
    made = world(
        drawn(
            "method='constant' values='0,0,0'", "quantity='20000' max_trials='1000000'"
        ),
        told,
    )
    assert len(made.robots) == 1
    assert "19999 of 20000 entities e-puck" in " ".join(told)


def floor(folder: Path, size: tuple[int, int], picture: str = "f.png") -> World:
    pixels = np.zeros((*size, 3), np.uint8)
    pixels[0, 0] = 255, 0, 0
    Image.fromarray(pixels).save(folder / "f.png")
    (folder / "a.argos").write_text(
        HEAD.format("") + "<arena size='8,6,1' center='1,0,0'>"
        f"<floor id='floor' source='image' path='{picture}' pixels_per_meter='10'/>"
        "</arena></argos-configuration>"
    )
    return load(folder / "a.argos")


# The second picture has half of the rows, and ARGoS stretches it.
@pytest.mark.parametrize(("rows", "repeats"), [(60, 1), (30, 2)])
def test_the_picture_of_the_floor_covers_the_arena(
    tmp_path: Path, rows: int, repeats: int
) -> None:
    found = floor(tmp_path, (rows, 80)).scene.floor
    assert found is not None
    assert found.picture is not None
    assert found.picture.origin == Pose(-3.0, -3.0)
    assert found.picture.size == pytest.approx((8.0, 6.0))
    red = found.picture.pixels[:, :, 0]
    assert np.argwhere(red == 255).tolist() == [[k, 0] for k in range(repeats)]


def test_a_floor_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.argos:1: floor: expected a picture"):
        floor(tmp_path, (6, 8), "missing.png")
    with pytest.raises(FormatError, match="square pixels on the arena"):
        # One column of 8 m needs less than a row; 16000 columns need 12000 rows.
        floor(tmp_path, (1, 16000))


def test_a_floor_of_loop_functions_is_named() -> None:
    told: list[str] = []
    assert world("<floor source='loop_functions'/>", told).scene.floor is None
    assert "the floor is left out: loop functions" in told[0]


def test_experiments_are_recognised_by_their_first_element() -> None:
    text = b"<?xml version='1.0'?><argos-configuration/>"
    assert format_of(Source("a.argos", text)).name == "argos"
    with pytest.raises(FormatError, match="an arena"):
        loaded(text, "a.argos")


# -- every key

BASE = (
    HEAD.format("length='9' ticks_per_second='10' random_seed='1'")
    + """<controllers><code id='c'><actuators/><sensors/></code></controllers>
<arena size='5,5,1' center='0,0,0'>
<box id='b' size='1,2,1' movable='true' mass='3'><body position='2,2,0' orientation='5,0,0'/></box>
<cylinder id='c' radius='0.5' movable='true' mass='3'><body position='-2,2,0'/></cylinder>
<foot-bot id='f'><body position='0,0,0'/></foot-bot>
<floor id='floor' source='image'/>
<distribute><position method='uniform' min='-2,-2,0' max='2,0,0' mean='0,0,0' std_dev='1,1,1'
 values='1,1,1' center='0,0,0' distances='1,1,1' layout='2,2,1'/>
<orientation method='uniform' min='0,0,0' max='90,0,0'/>
<entity quantity='3' max_trials='50'><e-puck id='e'/></entity></distribute>
</arena></argos-configuration>"""
)
PATHS = {
    "argos-configuration": "",
    "experiment": "framework/experiment",
    "arena": "arena",
    "floor": "arena/floor",
    "box": "arena/box",
    "cylinder": "arena/cylinder",
    "robot": "arena/foot-bot",
    "controller": "controllers/code",
    "actuators": "controllers/code/actuators",
    "sensors": "controllers/code/sensors",
    "body": "arena/box/body",
    "distribute": "arena/distribute",
    "method": "arena/distribute/position",
    "entity": "arena/distribute/entity",
}
BODY = "<body position='1,1,0'/>"
LIT = "<actuators><leds/></actuators>"
SEEING = "<sensors><colored_blob_omnidirectional_camera/></sensors>"
VALUES = {
    (
        "argos-configuration",
        "controllers",
    ): f"<controllers><code id='c'>{LIT}</code></controllers>",
    ("controller", "actuators"): LIT,
    ("controller", "sensors"): SEEING,
    ("robot", "controller"): "<controller config='c'/>",
    ("argos-configuration", "framework"): "<framework/>",
    ("argos-configuration", "arena"): "<arena/>",
    ("experiment", "random_seed"): "9",
    ("arena", "floor"): "<floor source='loop_functions'/>",
    ("floor", "source"): "loop_functions",
    ("arena", "size"): "7,7,1",
    ("arena", "center"): "1,1,1",
    ("arena", "box"): f"<box size='2,2,2'>{BODY}</box>",
    ("arena", "cylinder"): f"<cylinder radius='1'>{BODY}</cylinder>",
    **{("arena", robot): f"<{robot} id='n'>{BODY}</{robot}>" for robot in ROBOTS},
    (
        "arena",
        "distribute",
    ): "<distribute><entity><box size='1,1,1'/></entity></distribute>",
    ("box", "body"): BODY,
    ("cylinder", "body"): BODY,
    ("robot", "body"): BODY,
    ("box", "movable"): "false",
    ("cylinder", "movable"): "false",
    ("box", "size"): "3,3,3",
    ("body", "position"): "1,1,1",
    ("body", "orientation"): "45,0,0",
    ("distribute", "position"): "<position method='constant' values='1,1,0'/>",
    ("distribute", "orientation"): "<orientation method='constant' values='9,0,0'/>",
    ("distribute", "entity"): "<entity><kheperaiv id='k'/></entity>",
    ("method", "method"): "grid",
    **{("method", key): "3,3,1" for key in ("min", "max", "mean", "std_dev", "values")},
    **{("method", key): "3,3,1" for key in ("center", "distances", "layout")},
    **{
        ("entity", tag): f"<{tag} id='x' size='1,1,1' radius='0.3'/>"
        for tag in ("box", "cylinder", *ROBOTS)
    },
    ("entity", "e-puck"): "<e-puck id='other'/>",
}
CHILDREN = {
    *("body", "leds", "position", "controller", "entity", "orientation", "params"),
    *KEYS.kinds["actuators"],
    *KEYS.kinds["sensors"],
}
METHODS = {
    "mean": "gaussian",
    "std_dev": "gaussian",
    "values": "constant",
    "center": "grid",
    "distances": "grid",
    "layout": "grid",
}


# A picture needs a file; see the tests of the floor.
@pytest.mark.parametrize(
    ("kind", "key"), [k for k in all_keys(KEYS) if k != ("floor", "path")]
)
def test_each_key_is_read_or_named(kind: str, key: str) -> None:
    base = BASE
    if kind == "method" and key in METHODS:
        base = BASE.replace(
            "<position method='uniform'", f"<position method='{METHODS[key]}'"
        )
    if kind == "entity" and key in ("box", "cylinder", *ROBOTS) and key != "e-puck":
        base = BASE.replace("<e-puck id='e'/>", "")
    robot = "<foot-bot id='f'>"
    if kind == "robot" and key == "controller":
        base = BASE.replace("<actuators/>", LIT)
    elif kind in ("controller", "actuators", "sensors") or key == "controllers":
        base = BASE.replace(robot, f"{robot}<controller config='c'/>")
    if key == "max_trials":
        # Few places are free here, so the number of trials decides how many fit.
        base = BASE.replace("min='-2,-2,0' max='2,0,0'", "min='0,0,0' max='.13,.13,0'")
    attribute = not VALUES.get((kind, key), "").startswith("<") and (
        key not in CHILDREN or kind == "body"
    )
    if kind in ("argos-configuration", "arena") and key not in ("size", "center"):
        attribute = False
    check_xml_key(
        KEYS,
        kind,
        key,
        read,
        "my.argos",
        base,
        PATHS,
        VALUES,
        frozenset({(kind, key)} if attribute else ()),
    )


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "argos")
