"""A saved world reads back as the same world, and saving overwrites no other file."""

from __future__ import annotations

import io
import math
import os
import tempfile
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from botyard.api.arguments import MAX_SEED, MIN_SEED
from botyard.errors import KeptFileError
from botyard.formats import saving
from botyard.formats.base import Options, Source
from botyard.formats.models import find_robot
from botyard.formats.registry import load_world, read_world
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject, Returns, disc
from botyard.model.robot import RobotSpec
from botyard.model.scene import Area, GeoReference, Place, Scene, SpecialWalls
from botyard.model.world import PlacedRobot, Program, Settings, World, thing
from botyard.processes.safefile import MARK
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.worldfiles import world_of
from tests.cli.test_cli import FAST, call
from tests.ports import free_port

MAP = """2D-Map-Ex
LineMinPos: 0 0
LineMaxPos: 8000 6000
NumLines: 2
MapInfo: SectorType Name=Crate Label=Kiste "Desc=a crate that must stay" Sim.Obstacle=yes Sim.LaserReflect=1 Color0=0x804020
Cairn: GoalWithHeading 1000 2000 90 "where the coffee is" ICON "kitchen"
Cairn: Crate 0 0 0 "fragile" ICON "box one" 3000 3000 3500 3400
Cairn: ForbiddenArea 0 0 0 "wet floor" ICON "" 5000 1000 6000 2000
LINES
0 0 8000 0
8000 0 8000 6000
DATA
"""


# -- equal worlds


def near(a: Any, b: Any) -> bool:
    """Return whether values are equal, numbers to 10⁻⁸."""
    if (
        isinstance(a, float | int)
        and not isinstance(a, bool)
        and isinstance(b, float | int)
    ):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-8)

    if isinstance(a, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=1e-8)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(near, a, b))
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(
            near(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
        )

    return bool(a == b)


def differences(a: World, b: World) -> list[str]:
    """Return the differences of two worlds."""
    found = []
    x, y = a.scene, b.scene
    for name in (
        "name",
        "points",
        "boxes",
        "places",
        "areas",
        "view",
        "start",
        "georeference",
    ):
        if not near(getattr(x, name), getattr(y, name)):
            found.append(f"{name}: {getattr(x, name)!r} became {getattr(y, name)!r}")

    if not near(x.resolution, y.resolution):
        found.append(f"resolution: {x.resolution} became {y.resolution}")

    def walls(s: Scene) -> tuple[Any, list[Any]]:
        plain = np.ones(len(s.segments), np.bool_)
        for w in s.special_walls:
            plain[w.first : w.last] = False
        return s.segments[plain], [
            (s.segments[w.first : w.last], w.returns)
            for w in s.special_walls
            if w.last > w.first
        ]

    if not near(walls(x), walls(y)):
        found.append(f"walls: {walls(x)} became {walls(y)}")
    robots, others = {r.name: r for r in a.robots}, {r.name: r for r in b.robots}
    if set(robots) != set(others):
        found.append(f"robots: {set(robots)} became {set(others)}")
    for name in set(robots) & set(others):
        one, two = robots[name], others[name]
        same = replace(
            one,
            spec=replace(
                one.spec, name=two.spec.name, description=two.spec.description
            ),
        )
        if not near(same, two):
            found.append(f"robot {one!r} became {two!r}")

    if [r.name for r in a.robots if r.served] != [r.name for r in b.robots if r.served]:
        found.append("the order of robots with ports")
    if not near(a.settings, b.settings):
        found.append(f"{a.settings} became {b.settings}")
    if dict(a.options) != dict(b.options):
        found.append(f"{a.options} became {b.options}")
    return found


metres = st.floats(-500, 500, width=32)
sides = st.floats(0.015625, 20, width=32)
poses = st.builds(Pose, metres, metres, st.floats(-3.14, 3.14))
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
good_names = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S")),
    min_size=1,
    max_size=12,
).filter(str.isprintable)
returns = st.builds(
    Returns,
    obstacle=st.booleans(),
    laser=st.integers(0, 40),
    sonar=st.booleans(),
    fiducial=st.integers(0, 99),
    blob=st.booleans(),
)
colors = st.sampled_from(["red", "light green", "#123456", "gray50"])
masses = st.none() | st.builds(
    DynamicsSpec,
    mass=st.floats(0.1, 100),
    friction=st.floats(0, 2),
    floor_friction=st.floats(0, 2),
)
corners = (
    st.lists(st.tuples(metres, metres), min_size=3, max_size=6)
    .map(tuple)
    .filter(lambda found: len(set(found)) > 2)
)


@st.composite
def boxes(draw: st.DrawFn) -> BoxObject:
    parts = draw(st.just(()) | st.lists(corners, min_size=1, max_size=2).map(tuple))
    length, width = draw(sides), draw(sides)
    if parts:
        xs, ys = zip(*(c for part in parts for c in part), strict=True)
        length, width = max(xs) - min(xs), max(ys) - min(ys)

    return BoxObject(
        name="",
        pose=draw(poses),
        length=length,
        width=width,
        returns=draw(returns),
        color=draw(colors),
        parts=parts,
        dynamics=draw(masses),
    )


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    rows = draw(
        st.lists(
            st.tuples(metres, metres, metres, metres).filter(
                lambda r: math.dist(r[:2], r[2:]) > 1e-3
            ),
            max_size=6,
        )
    )
    special: list[SpecialWalls] = []
    at = 0
    while at < len(rows) and draw(st.booleans()):
        first = draw(st.integers(at, len(rows) - 1))
        last = draw(st.integers(first + 1, len(rows)))
        seen = draw(returns.filter(lambda r: r != Returns()))
        special.append(SpecialWalls(first=first, last=last, returns=seen))
        at = last

    points = draw(st.lists(st.tuples(metres, metres), max_size=4))
    things = [
        replace(b, name=f"{n} {i}"[-64:])
        for i, (b, n) in enumerate(
            draw(st.lists(st.tuples(boxes(), texts), max_size=3))
        )
    ]
    kinds = st.sampled_from(["Goal", "GoalWithHeading", "Dock", "RobotHome"]) | texts
    places = draw(
        st.lists(
            st.builds(
                Place,
                kind=kinds,
                name=texts | st.just(""),
                pose=poses,
                has_heading=st.booleans(),
            ),
            max_size=3,
        )
    )
    shapes = st.lists(st.tuples(metres, metres), min_size=2, max_size=6).map(tuple)
    areas = draw(
        st.lists(st.builds(Area, kind=texts, name=texts, corners=shapes), max_size=3)
    )
    degrees = st.floats(-80, 80)
    return Scene(
        name=draw(texts | st.just("")),
        segments=np.array(rows, np.float64).reshape(-1, 4),
        special_walls=tuple(special),
        points=np.array(points, np.float64).reshape(-1, 2),
        resolution=draw(st.sampled_from([0.02, 0.05, 0.0125])),
        boxes=tuple(things),
        places=tuple(places),
        areas=tuple(areas),
        view=draw(st.none() | st.tuples(metres, metres, metres, metres)),
        start=draw(st.none() | poses),
        georeference=draw(
            st.none() | st.builds(GeoReference, degrees, degrees, st.floats(-100, 4000))
        ),
    )


def specs() -> st.SearchStrategy[RobotSpec]:
    known = st.sampled_from(["p3dx", "amigo", "seekur", "p3dx-equipped", "lynx"]).map(
        find_robot
    )
    changed = st.builds(
        lambda spec, color, part, seen, mass: replace(
            spec, color=color, parts=(*spec.parts, part), returns=seen, dynamics=mass
        ),
        known,
        colors,
        corners,
        returns,
        masses,
    )
    things = st.builds(
        lambda o, c, r, s, m: replace(
            thing(o, color=c, returns=r, max_speed=s), dynamics=m
        ),
        corners,
        colors,
        returns,
        sides,
        masses,
    )
    return known | changed | things


WAYS = Program(name="waypoints", options={"points": [[1.5, 2], [3, 4]], "speed": 0.25})
programs = st.none() | st.sampled_from(
    [Program(name="wander"), WAYS, Program(name="walk", options={"speed": 1})]
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    scene = draw(scenes())
    given = draw(
        st.lists(
            st.tuples(specs(), st.none() | poses, programs, st.booleans(), good_names),
            max_size=4,
        )
    )
    robots = [
        PlacedRobot(
            spec=spec, name=f"{name}{i}", pose=pose, program=program, served=served
        )
        for i, (spec, pose, program, served, name) in enumerate(given)
    ]
    held = Settings(
        seed=draw(st.none() | st.integers(MIN_SEED, MAX_SEED)),
        step=draw(st.none() | st.sampled_from([0.1, 0.005, 0.0001])),
        speed=draw(st.none() | st.floats(0, 1000)),
        duration=draw(st.none() | st.floats(0.001, 1e6)),
        paused=draw(st.booleans()),
        odometry_error=draw(st.sampled_from([None, "none", "constant"])),
        sensor_noise=draw(st.none() | st.booleans()),
        threads=draw(st.none() | st.integers(1, 256)),
    )
    options = draw(
        st.sampled_from(
            [
                {},
                {"robot-name": "MobileSim", "update-interval": 50},
                {"robot-factory": ["p3dx"], "fast": True},
            ]
        )
    )
    return World(scene=scene, robots=tuple(robots), settings=held, options=options)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(worlds())
def test_any_world_is_saved_and_read_as_it_was(world: World) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.yaml"
        names = [b.name for b in world.scene.boxes] + [r.name for r in world.robots]
        notes = saving.save(world, path)
        assert notes == [] or len(set(names)) < len(names)
        again = load_world(path)
        if not notes:
            assert differences(world, again) == []
        # The second file has no note, because botyard wrote the first one.
        saving.save(again, path)
        assert differences(again, load_world(path)) == []


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(world=worlds(), extra=scenes())
def test_a_world_on_a_map_of_a_file_refers_to_it(world: World, extra: Scene) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "lab.map").write_text(MAP)
        base = load_world(home / "lab.map").scene
        n = len(base.segments)
        scene = replace(
            world.scene,
            source=base.source,
            segments=np.concatenate([base.segments, extra.segments]),
            special_walls=tuple(
                replace(w, first=w.first + n, last=w.last + n)
                for w in extra.special_walls
            ),
            points=base.points,
            resolution=base.resolution,
            places=(*base.places, *extra.places),
            areas=(*base.areas, *extra.areas),
            boxes=(*base.boxes, *world.scene.boxes),
        )
        world = replace(world, scene=scene)
        notes = saving.save(world, home / "lab.yaml")
        assert (home / "lab.map").read_text() == MAP
        assert sorted(os.listdir(folder)) == ["lab.map", "lab.yaml"]
        assert yaml.safe_load((home / "lab.yaml").read_text())["map"] == "lab.map"
        if not notes:
            assert differences(world, load_world(home / "lab.yaml")) == []
        again = load_world(home / "lab.yaml")
        saving.save(again, home / "twice.yaml")
        assert yaml.safe_load((home / "twice.yaml").read_text())["map"] == "lab.map", (
            "not the scenario, and no copy"
        )
        assert differences(again, load_world(home / "twice.yaml")) == []


def test_all_that_a_running_simulation_has_of_it(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "botyard: 1\nmap: office\nspeed: 2\nrobots:\n- {name: a, served: false, "
        "pose: [2, 14, 0]}\n- {name: b, pose: [4, 14, 0]}\n"
    )
    sim = Simulation.load(tmp_path / "s.yaml", seed=2**40)
    sim.add_robot(thing(disc(0.2), max_speed=0.5), "bin", pose=(8, 14, 0))
    sim.step(3)
    assert sim.save_scenario(tmp_path / "t.yaml") == []
    again = load_world(tmp_path / "t.yaml")
    assert {r.name: r.served for r in again.robots} == {
        "a": False,
        "b": True,
        "bin": False,
    }
    assert yaml.safe_load((tmp_path / "t.yaml").read_text())["map"] == "office"
    assert differences(world_of(sim), again) == []


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    box = BoxObject(name="x", pose=Pose(), length=1, width=1)
    world = World(
        scene=Scene(
            boxes=(box, box), areas=(Area(kind="k", name="dot", corners=((0, 0),)),)
        ),
        robots=(
            PlacedRobot(
                spec=find_robot("p3dx"),
                name="r",
                program=Program(name="wander", options={"f": object()}),
            ),
        ),
        options={"log-file": "/etc/x", "fast": True},
        beside=("3 joints",),
    )
    notes = "\n".join(saving.save(world, tmp_path / "w.yaml"))
    for words in (
        'the second "x" is renamed "x_002"',
        "the area dot is not written: it has fewer than 2 corners",
        "r: the option f of its controller",
        "the option log-file is not written",
        "3 joints",
    ):
        assert words in notes

    assert load_world(tmp_path / "w.yaml").options == {"fast": True}


# -- the user's files


def lab(folder: Path) -> Path:
    path = folder / "lab.map"
    path.write_text(MAP)
    return path


def test_saving_beside_the_map_keeps_the_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab(tmp_path)
    code, _, err = call(
        "-m",
        "lab.map",
        "-r",
        "p3dx:ann",
        "--save-scenario",
        "lab.yaml",
        *FAST,
        str(free_port()),
        capsys=capsys,
    )
    assert code == 0, err
    assert Path("lab.map").read_text() == MAP
    assert yaml.safe_load(Path("lab.yaml").read_text())["map"] == "lab.map"
    world = load_world("lab.yaml")
    assert [b.name for b in world.scene.boxes] == ["Box:1"] and [
        p.name for p in world.scene.places
    ] == ["kitchen"]
    # Save once more, over the file just written.
    assert (
        call(
            "lab.yaml",
            "--save-scenario",
            "lab.yaml",
            *FAST,
            str(free_port()),
            capsys=capsys,
        )[0]
        == 0
    )
    assert Path("lab.map").read_text() == MAP and sorted(os.listdir()) == [
        "lab.map",
        "lab.yaml",
    ]


def test_an_unrelated_map_of_the_same_name_is_kept(tmp_path: Path) -> None:
    lab(tmp_path)
    sim = Simulation(Scene(segments=np.array([[0.0, 0, 5, 0]])))
    for _ in range(2):
        sim.save_scenario(tmp_path / "lab.yaml")
        assert (tmp_path / "lab.map").read_text() == MAP
        assert sorted(os.listdir(tmp_path)) == ["lab-2.map", "lab.map", "lab.yaml"], (
            "its own map of before is replaced"
        )

    (tmp_path / "lab-2.map").write_text(f"2D-Map\nComment: {MARK}\nLINES\n1 1 2 2\n")
    sim.save_scenario(tmp_path / "other.yaml")
    (tmp_path / "third.map").write_text(f"2D-Map\nComment: {MARK}\nLINES\n1 1 2 2\n")
    sim.save_scenario(tmp_path / "third.yaml")
    assert "1 1 2 2" in (tmp_path / "third.map").read_text(), (
        "a map that was converted is no map of this scenario"
    )
    assert differences(world_of(sim), load_world(tmp_path / "third.yaml")) == []


def test_a_scenario_of_the_user_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = "botyard: 1\nname: by hand  # with remarks\n"
    Path("s.yaml").write_text(mine)
    sim = Simulation()
    with pytest.raises(KeptFileError):
        sim.save_scenario("s.yaml")
    code, out, err = call(
        "--nomap", "--save-scenario", "s.yaml", *FAST, str(free_port()), capsys=capsys
    )
    assert code == 255 and "--save-scenario: s.yaml: was not written by botyard" in err
    assert "ready" not in out, "that is found before anything runs"
    assert Path("s.yaml").read_text() == mine
    assert (
        call(
            "--nomap",
            "--save-scenario",
            "s.yaml",
            "--force",
            *FAST,
            str(free_port()),
            capsys=capsys,
        )[0]
        == 0
    )
    assert Path("s.yaml").read_text().startswith(f"# {MARK}\n")
    sim.save_scenario("s.yaml")
    Path("s.yaml").write_text(mine)
    sim.save_scenario("s.yaml", overwrite=True)
    assert load_world("s.yaml").settings.seed == sim.seed


def test_a_changed_or_absent_map_is_written(tmp_path: Path) -> None:
    path = lab(tmp_path)
    sim = Simulation.load(path)
    path.write_text(MAP.replace("0 0 8000 0\n", "0 0 7000 0\n"))
    sim.save_scenario(tmp_path / "w.yaml")
    assert differences(world_of(sim), load_world(tmp_path / "w.yaml")) == []
    path.unlink()
    sim.save_scenario(tmp_path / "v.yaml")
    assert differences(world_of(sim), load_world(tmp_path / "v.yaml")) == []


def test_maps_of_other_formats_and_resolutions_are_referred_to(tmp_path: Path) -> None:
    Image.fromarray(
        np.kron(np.eye(4, dtype=np.uint8) * 255, np.ones((5, 5), np.uint8))
    ).save(tmp_path / "plan.png")
    (tmp_path / "sub").mkdir()
    for resolution in (0.05, 0.25):
        world = load_world(tmp_path / "plan.png", Options(resolution=resolution))
        saving.save(world, tmp_path / "sub" / "w.yaml")
        assert os.listdir(tmp_path / "sub") == ["w.yaml"]
        assert (
            yaml.safe_load((tmp_path / "sub" / "w.yaml").read_text())["map"]
            == "../plan.png"
        )
        assert differences(world, load_world(tmp_path / "sub" / "w.yaml")) == []


def test_what_the_page_saves_holds_its_map(tmp_path: Path) -> None:
    world = load_world(lab(tmp_path))
    data = saving.packed(world)
    assert {m.filename for m in zipfile.ZipFile(io.BytesIO(data)).infolist()} == {
        "world.map",
        "world.yaml",
    }
    assert differences(world, read_world(Source("w.zip", data), Options())) == []
    office = load_world("office")
    assert [
        m.filename
        for m in zipfile.ZipFile(io.BytesIO(saving.packed(office))).infolist()
    ] == ["world.yaml"]


def test_a_controller_that_nobody_else_can_import_is_left_out_and_said(
    tmp_path: Path,
) -> None:
    def local(robot: Robot) -> None:
        robot.command(v=0.1)

    def main(robot: Robot) -> None:
        robot.command(v=0.2)

    main.__module__, main.__qualname__ = "__main__", "main"
    driver = tmp_path / "driver.py"
    driver.write_text("def drive(robot):\n    robot.command(v=0.3)\n")
    sim = Simulation()
    controllers = {
        "a": local,
        "b": lambda robot: None,
        "c": main,
        "d": f"{driver}:drive",
        "e": "walk",
    }
    for k, (name, controller) in enumerate(controllers.items()):
        sim.add_robot("p3dx", name, pose=(0, 3 * k, 0), controller=controller)
    notes = sim.save_scenario(tmp_path / "w.yaml")
    assert [(note[:2], "cannot import it by that name" in note) for note in notes] == [
        ("a:", True),
        ("b:", True),
        ("c:", True),
    ]
    again = Simulation.load(tmp_path / "w.yaml", allow_code=True)
    assert list(again.core.programs.by_robot) == ["d", "e"] and list(
        again.robots
    ) == list("abcde")
