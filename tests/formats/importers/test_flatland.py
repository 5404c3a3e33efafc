"""Worlds of Flatland: layers, models, joints, drives, lasers, tweens, and every key."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from botyard.errors import FormatError
from botyard.formats.base import Options, Source
from botyard.formats.importers.flatland import read
from botyard.formats.importers.flatlandkeys import KEYS
from botyard.formats.registry import format_of, load_world, read_world
from botyard.geometry import Pose, transform_point
from botyard.model.kinematics import Axes, Drive, Steering
from botyard.model.world import World
from tests.formats.importers.checks import all_keys, check_key, check_page, run
from tests.formats.test_readers import bundle

Files = dict[str, Any]
WORLD: dict[str, Any] = {
    "properties": {},
    "layers": [{"name": "2d", "map": "map.yaml"}],
    "models": [{"name": "bot", "pose": [1, 2, 0.5], "model": "bot.yaml"}],
}
MAP: dict[str, Any] = {
    "type": "line_segments",
    "data": "lines.dat",
    "scale": 0.5,
    "origin": [1, 0, math.pi / 2],
}
LINES = "0 0 4 0\n\n4 0 4 2\n"
BOT: dict[str, Any] = {
    "bodies": [
        {
            "name": "base",
            "pose": [0, 0, 0],
            "color": [1, 0, 0, 0.5],
            "footprints": [
                {"type": "circle", "radius": 0.3, "density": 2},
                {"type": "circle", "radius": 0.9, "sensor": True},
            ],
        }
    ],
    "plugins": [
        {
            "type": "DiffDrive",
            "name": "drive",
            "body": "base",
            "linear_dynamics": {"velocity_limit": 0.8, "acceleration_limit": 1.5},
        },
        {
            "type": "Laser",
            "name": "scan",
            "body": "base",
            "range": 10,
            "origin": [0.1, 0, 0],
            "angle": {"min": -1, "max": 1, "increment": 0.1},
            "noise_std_dev": 0.02,
            "update_rate": ".inf",
        },
    ],
}
FILES: Files = {
    "world.yaml": WORLD,
    "map.yaml": MAP,
    "lines.dat": LINES,
    "bot.yaml": BOT,
}


def write(folder: Path, files: Files) -> Source:
    for name, data in files.items():
        text = data if isinstance(data, str) else yaml.safe_dump(data)
        (folder / name).write_text(text.replace("'.inf'", ".inf"))
    path = folder / "world.yaml"
    return Source(str(path), path.read_bytes(), path)


def world(folder: Path, told: list[str] | None = None, **changes: Any) -> World:
    files = copy.deepcopy(FILES)
    files |= {name.replace("_yaml", ".yaml"): data for name, data in changes.items()}
    warn = (told if told is not None else []).append
    return read(write(folder, files), Options(warn=warn))


def body(**keys: Any) -> dict[str, Any]:
    return {
        "name": "base",
        "footprints": [{"type": "circle", "radius": 0.3, "density": 2}],
        **keys,
    }


def test_a_world_has_walls_and_a_robot(tmp_path: Path) -> None:
    told: list[str] = []
    made = world(tmp_path, told)
    assert told == []
    assert np.allclose(made.scene.segments, [[1, 0, 1, 2], [1, 2, 0, 2]])
    (robot,) = made.robots
    assert (robot.name, robot.pose) == ("bot", Pose(1.0, 2.0, 0.5))
    spec = robot.spec
    assert spec.drive == Drive.DIFF
    # The sensor footprint is no part of the body.
    assert spec.radius == pytest.approx(0.3, rel=0.02)
    assert spec.color == "#ff0000"
    assert spec.limits.max_speed == Axes(0.8, 0.0, 7.85)
    assert (spec.limits.accel.x, spec.limits.decel.x) == (1.5, 1.5)
    (laser,) = spec.lasers
    assert (laser.samples, laser.range_max) == (21, 10.0)
    assert laser.fov == pytest.approx(2.0)
    assert laser.range_deviation == 0.02
    assert laser.pose == pytest.approx(Pose(0.1, 0.0, 0.0))
    assert laser.update_rate == 0.0
    run(made)


def test_pictures_are_walls(tmp_path: Path) -> None:
    pixels = np.full((4, 6), 255, np.uint8)
    pixels[3, 1] = 0
    Image.fromarray(pixels).save(tmp_path / "m.png")
    made = world(
        tmp_path,
        map_yaml={
            "image": "m.png",
            "resolution": 0.5,
            "origin": [10, 20, 0],
            "negate": 0,
            "occupied_thresh": 0.65,
            "free_thresh": 0.2,
        },
    )
    ends = made.scene.segments.reshape(-1, 2)
    assert (ends.min(axis=0).tolist(), ends.max(axis=0).tolist()) == (
        [10.5, 20],
        [11, 20.5],
    )
    assert len(made.scene.traced) == 1


def test_layers_are_for_lasers_or_for_bodies(tmp_path: Path) -> None:
    bot = copy.deepcopy(BOT)
    bot["bodies"][0]["footprints"][0]["layers"] = ["low"]
    bot["plugins"][1]["layers"] = ["high"]
    layers = [{"name": name, "map": "map.yaml"} for name in ("low", "high")]
    made = world(tmp_path, world_yaml=WORLD | {"layers": layers}, bot_yaml=bot)
    low, high = made.scene.special_walls
    assert (low.first, low.last, high.first, high.last) == (0, 2, 2, 4)
    assert (low.returns.obstacle, low.returns.laser) == (True, 0)
    assert (high.returns.obstacle, high.returns.laser) == (False, 1)


def test_joints_fix_bodies_to_the_driven_one(tmp_path: Path) -> None:
    bot = copy.deepcopy(BOT)
    corners = [[-0.1, -0.05], [0.1, -0.05], [0.1, 0.05]]
    bot["bodies"] += [
        {"name": name, "footprints": [{"type": "polygon", "points": corners}]}
        for name in ("wheel", "loose")
    ]
    bot["joints"] = [
        {
            "type": "weld",
            "name": "w",
            "angle": math.pi / 2,
            "bodies": [
                {"name": "base", "anchor": [0.5, 0.2]},
                {"name": "wheel", "anchor": [0.1, 0]},
            ],
        }
    ]
    told: list[str] = []
    made = world(tmp_path, told, bot_yaml=bot)
    (part,) = made.robots[0].spec.parts
    # The wheel is turned by 90°, and its anchor lies on the anchor of the base.
    assert np.allclose(part, [(0.55, 0.0), (0.55, 0.2), (0.45, 0.2)])
    assert any('the body "loose" is left out' in text for text in told)


def test_a_tricycle_steers_about_its_rear_axle(tmp_path: Path) -> None:
    bot = copy.deepcopy(BOT)
    wheels = {"front": [0, 0], "left": [-1, 0.5], "right": [-1, -0.5]}
    bot["bodies"] += [
        {"name": name, "footprints": [{"type": "circle", "radius": 0.1}]}
        for name in wheels
    ]
    bot["joints"] = [
        {
            "type": "weld",
            "name": f"{name}_joint",
            "bodies": [{"name": name}, {"name": "base", "anchor": anchor}],
        }
        for name, anchor in wheels.items()
    ]
    bot["plugins"] = [
        {
            "type": "TricycleDrive",
            "name": "drive",
            "body": "base",
            "front_wheel_joint": "front_joint",
            "rear_left_wheel_joint": "left_joint",
            "rear_right_wheel_joint": "right_joint",
            "max_steer_angle": 0.5,
            "max_steer_velocity": 0.8,
        },
        *BOT["plugins"][1:],
    ]
    told: list[str] = []
    made = world(tmp_path, told, bot_yaml=bot)
    spec = made.robots[0].spec
    assert (spec.drive, spec.track) == (Drive.TRICYCLE, 1.0)
    # The turn rate of a Twist is the steering angle.
    assert spec.steering == Steering(wheelbase=1.0, limit=0.5, rate=0.8, by_angle=True)
    assert spec.limits.max_speed.a == pytest.approx(3.0 * math.tan(0.5))
    assert len(spec.parts) == 3
    # The origin of the body is the front wheel.
    before = world(tmp_path).robots[0]
    assert before.pose is not None and made.robots[0].pose is not None
    assert transform_point(made.robots[0].pose, 1.0, 0.0) == pytest.approx(
        before.pose[:2]
    )
    assert spec.front == pytest.approx(1.0 + before.spec.front)
    assert spec.lasers[0].pose.x == pytest.approx(1.0 + before.spec.lasers[0].pose.x)
    run(made)


def test_models_without_a_drive_are_walls_objects_or_movers(tmp_path: Path) -> None:
    made = world(tmp_path, bot_yaml={"bodies": [body(type="static")]})
    assert len(made.scene.segments) == 2 + 24
    (box,) = world(tmp_path, bot_yaml={"bodies": [body()]}).scene.boxes
    assert box.dynamics is not None and box.name == "bot"
    assert box.dynamics.mass == pytest.approx(2 * math.pi * 0.3**2)
    tween = {
        "type": "Tween",
        "name": "t",
        "body": "base",
        "delta": [2, 0, 0],
        "duration": 4,
    }
    made = world(tmp_path, bot_yaml={"bodies": [body()], "plugins": [tween]})
    (mover,) = made.robots
    assert mover.program is not None and not mover.served
    options: dict[str, Any] = dict(mover.program.options)
    assert (options["speed"], options["order"]) == (0.5, "back")
    assert np.allclose(
        options["points"],
        [[1.0, 2.0], [1 + 2 * math.cos(0.5), 2 + 2 * math.sin(0.5)]],
    )
    run(made, 50)


@given(
    x=st.floats(-50, 50),
    y=st.floats(-50, 50),
    th=st.floats(-4, 4),
    scale=st.floats(0.01, 10),
    rows=st.lists(st.tuples(*[st.floats(-100, 100)] * 4), min_size=1, max_size=9),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_line_segments_are_scaled_then_placed(
    tmp_path: Path,
    x: float,
    y: float,
    th: float,
    scale: float,
    rows: list[tuple[float, ...]],
) -> None:
    files = copy.deepcopy(FILES)
    files["map.yaml"] = MAP | {"scale": scale, "origin": [x, y, th]}
    files["lines.dat"] = "\n".join(" ".join(map(repr, row)) for row in rows)
    made = read(write(tmp_path, files), Options())
    ends = np.array(rows).reshape(-1, 2) * scale
    c, s = math.cos(th), math.sin(th)
    placed = ends @ np.array([[c, s], [-s, c]]) + (x, y)
    assert np.allclose(made.scene.segments.reshape(-1, 2), placed, atol=1e-9)


def test_an_archive_holds_all_files(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    packed = bundle(
        **{name.replace(".", "_"): (tmp_path / name).read_bytes() for name in FILES}
    )
    assert len(read_world(packed).robots) == 1
    outside = (
        (tmp_path / "world.yaml").read_bytes().replace(b"bot.yaml", b"/etc/passwd")
    )
    with pytest.raises(FormatError, match="not in the archive"):
        read_world(bundle(a_yaml=outside))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"bot_yaml": {"bodies": []}}, "a model with bodies"),
        ({"bot_yaml": {"bodies": [{"footprints": [{"type": "star"}]}]}}, '"circle"'),
        ({"bot_yaml": {"bodies": [{"footprints": [{"type": "circle"}]}]}}, "a radius"),
        (
            {"bot_yaml": {"bodies": [body()], "joints": [{"bodies": []}]}},
            "a joint of two bodies",
        ),
        (
            {
                "bot_yaml": {
                    "bodies": [body()],
                    "plugins": [{"type": "DiffDrive", "body": "x"}],
                }
            },
            'body: expected the name of a body of this model, found "x"',
        ),
        ({"map_yaml": MAP | {"data": "none.dat"}}, "does not exist"),
        ({"map_yaml": MAP | {"scale": 0}}, "scale: expected a number greater than 0"),
        ({"world_yaml": WORLD | {"models": [{"name": "x"}]}}, "the file of a model"),
        ({"world_yaml": WORLD | {"layers": [{"map": "x.yaml"}]}}, "does not exist"),
    ],
)
def test_files_that_are_refused(changes: Files, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        world(tmp_path, **changes)
    assert complaint in str(error.value)


def test_a_line_that_is_not_four_numbers(tmp_path: Path) -> None:
    files = FILES | {"lines.dat": "0 0 1 1\n0 0 1\n"}
    with pytest.raises(FormatError, match=r"lines\.dat:2: expected four numbers"):
        read(write(tmp_path, files), Options())


def test_a_laser_with_too_many_rays(tmp_path: Path) -> None:
    bot = copy.deepcopy(BOT)
    bot["plugins"][1]["angle"]["increment"] = 1e-9
    with pytest.raises(FormatError, match="at most 100000 rays"):
        world(tmp_path, bot_yaml=bot)


def test_worlds_are_recognised_by_their_layers() -> None:
    for text, name in (
        ("properties: {}\nlayers: []\n", "flatland"),
        ("layers: []\nlevels: {}\nname: a\n", "rmf"),
        ("layers: []\nbotyard: 1\n", "scenario"),
    ):
        assert format_of(Source("a.yaml", text.encode())).name == name


# -- every key

TRICYCLE = {
    "type": "TricycleDrive",
    "name": "drive",
    "body": "base",
    "front_wheel_joint": "a",
    "rear_left_wheel_joint": "b",
    "rear_right_wheel_joint": "c",
}
TWEEN = {"type": "Tween", "name": "t", "body": "base", "delta": [1, 0, 0]}
OTHER = {"type": "circle", "radius": 0.5}
WITH: dict[tuple[str, str], Any] = {
    ("world", "layers"): [],
    ("world", "models"): [],
    ("world", "properties"): {"substeps": 4},
    ("layer", "name"): "other",
    ("layer", "map"): "other.yaml",
    ("line map", "data"): "other.dat",
    ("line map", "origin"): [5, 5, 0],
    ("placed model", "name"): "ann",
    ("placed model", "model"): "other.yaml.model",
    ("placed model", "pose"): [3, 3, 0],
    ("placed model", "namespace"): "a",
    ("model", "bodies"): [body(name="base", color=[0, 0, 1])],
    ("model", "plugins"): [],
    ("body", "name"): "other",
    ("body", "pose"): [1, 1, 1],
    ("body", "origin"): [1, 1, 1],
    ("body", "type"): "static",
    ("body", "color"): [0, 1, 0, 1],
    ("body", "footprints"): [OTHER],
    ("footprint", "type"): "polygon",
    ("footprint", "center"): [1, 1],
    ("footprint", "points"): [[0, 0], [2, 0], [0, 2]],
    ("footprint", "restitution"): 0.5,
    ("footprint", "density"): 7,
    ("footprint", "sensor"): True,
    ("footprint", "is_sensor"): True,
    ("footprint", "collision"): False,
    ("footprint", "layers"): ["none"],
    ("footprint", "self_collide"): True,
    ("joint", "type"): "revolute",
    ("joint", "bodies"): [{"name": "base"}, {"name": "arm", "anchor": [1, 0]}],
    ("Laser", "origin"): [0.5, 0, 0],
    ("Laser", "angle"): {"min": 0, "max": 1, "increment": 0.1},
    ("Laser", "layers"): ["none"],
    ("Laser", "upside_down"): True,
    ("Tween", "delta"): [3, 0, 0],
    ("Tween", "mode"): "once",
    ("Tween", "easing"): "cubicIn",
    ("dynamics", "deceleration_limit"): 0.7,
    ("DiffDrive", "linear_dynamics"): {"velocity_limit": 3.5},
    ("DiffDrive", "angular_dynamics"): {"velocity_limit": 3.5},
    ("TricycleDrive", "linear_dynamics"): {"velocity_limit": 3.5},
    ("TricycleDrive", "max_steer_angle"): 0.3,
    ("TricycleDrive", "angular_dynamics"): {"velocity_limit": 0.5},
}
# Keys whose value only names something; the other tests read them.
INERT = {
    ("line map", "type"),
    ("joint", "type"),
    ("body", "name"),
    *((kind, key) for kind in ("Laser", "DiffDrive") for key in ("name", "body")),
    *((kind, key) for kind in ("TricycleDrive", "Tween") for key in ("name", "body")),
    *((kind, "type") for kind in ("Laser", "DiffDrive", "TricycleDrive", "Tween")),
    ("footprint", "points"),
}


def place_of(files: Files, kind: str) -> dict[str, Any]:
    world, bot = files["world.yaml"], files["bot.yaml"]
    plugin = bot["plugins"][0] if bot["plugins"] else {}
    found: dict[str, Any] = {
        "world": world,
        "layer": world["layers"][0],
        "placed model": world["models"][0],
        "line map": files["map.yaml"],
        "model": bot,
        "body": bot["bodies"][0],
        "footprint": bot["bodies"][0]["footprints"][0],
        "joint": bot["joints"][0] if bot["joints"] else {},
        "Laser": bot["plugins"][-1] if bot["plugins"] else {},
        "dynamics": plugin.get("linear_dynamics", {}),
    }.get(kind, plugin)
    return found


@pytest.mark.parametrize(("kind", "key"), [k for k in all_keys(KEYS) if k not in INERT])
def test_each_key_is_read_or_named(kind: str, key: str, tmp_path: Path) -> None:
    files = copy.deepcopy(FILES)
    files["other.yaml"] = MAP | {"scale": 3}
    files["other.dat"] = "1 1 2 2"
    files["other.yaml.model"] = {"bodies": [body()]}
    bot = files["bot.yaml"]
    bot["bodies"].append({"name": "arm", "footprints": [OTHER]})
    bot["joints"] = [
        {"name": n, "bodies": [{"name": "base", "anchor": [k, 0]}, {"name": "arm"}]}
        for k, n in enumerate("abc")
    ]
    if kind in ("joint", "model"):
        bot["joints"] = bot["joints"][:1]
    if kind == "layer":
        bot["bodies"][0]["footprints"][0]["layers"] = ["2d"]
        bot["bodies"][1]["footprints"][0] = OTHER | {"layers": ["2d"]}
    if (kind, key) in (("Laser", "layers"), ("footprint", "layers")):
        bot["bodies"].pop()
        bot["joints"] = []
    if kind == "TricycleDrive":
        bot["plugins"][0] = dict(TRICYCLE)
    if kind == "Tween":
        bot["plugins"] = [dict(TWEEN)]
    if (kind, key) in (
        ("body", "type"),
        ("footprint", "density"),
        ("footprint", "friction"),
        ("footprint", "restitution"),
    ):
        bot["plugins"] = []
    if (kind, key) == ("body", "enabled"):
        # The plugins need the first body.
        bot["bodies"].insert(0, {"name": "tail", "footprints": [OTHER]})
        bot["joints"].append(
            {"name": "t", "bodies": [{"name": "base"}, {"name": "tail"}]}
        )
    if (kind, key) == ("footprint", "type"):
        bot["bodies"][0]["footprints"][0]["points"] = [[0, 0], [2, 0], [0, 2]]
    fuller = copy.deepcopy(files)
    if (kind, key) == ("model", "joints"):
        fuller["bot.yaml"]["joints"] = []
    else:
        other: Any = False if key == "enabled" else 2
        if key.endswith("_joint"):
            other = "c" if key == "front_wheel_joint" else "a"
        place_of(fuller, kind)[key] = WITH.get((kind, key), other)

    def made(one: Files, told: list[str]) -> World:
        return read(write(tmp_path, one), Options(warn=told.append))

    check_key(
        KEYS, kind, key, lambda told: made(fuller, told), lambda told: made(files, told)
    )


def test_the_page_has_the_table_of_the_keys() -> None:
    check_page(KEYS, "flatland")


@pytest.mark.parametrize(
    "text", ["secret:x:0:0:secret:/secret\n", "- secret\n- secret\n"]
)
@pytest.mark.parametrize(
    "world",
    [
        "layers: [{name: m, map: m.yaml}]",
        "layers: []\nmodels: [{name: a, model: other}]",
        "layers: [{name: m, map: other}]",
        "layers: [{name: m, map: lines.yaml}]",
    ],
)
def test_errors_have_no_contents_of_files_of_another_kind(
    tmp_path: Path, text: str, world: str
) -> None:
    (tmp_path / "other").write_text(text)
    (tmp_path / "m.yaml").write_text(
        "image: other\nresolution: 0.05\norigin: [0, 0, 0]\n"
        "occupied_thresh: 0.6\nfree_thresh: 0.2\nnegate: 0\n"
    )
    (tmp_path / "lines.yaml").write_text(
        "type: line_segments\ndata: other\nscale: 1\norigin: [0, 0, 0]\n"
    )
    (tmp_path / "w.yaml").write_text(f"properties: {{}}\n{world}\n")
    with pytest.raises(FormatError, match="other") as error:
        load_world(tmp_path / "w.yaml")
    assert "secret" not in str(error.value)
