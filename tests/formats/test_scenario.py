"""Scenario files:

their content, their errors, and a saved world that reads back the same.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.cli.scenario import EXAMPLE
from botyard.controllers.registry import is_controller
from botyard.errors import BudgetError, FormatError, WorldFileError
from botyard.formats import scenariokeys
from botyard.formats.base import Options, Source
from botyard.formats.budget import Budget
from botyard.formats.mapsearch import client_maps
from botyard.formats.registry import load_scene, load_world, read_world
from botyard.geometry import Pose
from botyard.model.kinematics import Drive
from botyard.model.obstacles import BoxObject, Returns, Visible, disc
from botyard.model.scene import GeoReference, Place, Scene, SpecialWalls
from botyard.model.world import Program, World
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate


def read(text: str, folder: Path | None = None) -> World:
    path = None if folder is None else folder / "s.yaml"
    return read_world(
        Source("s.yaml", text.encode(), path), Options(is_program=is_controller)
    )


def test_everything_that_a_scenario_can_say(tmp_path: Path) -> None:
    (tmp_path / "hall.map").write_text("2D-Map\nLINES\n0 0 10000 0\n")
    (tmp_path / "big.toml").write_text(
        'extends = "p3dx"\noutline = [[-1, -1], [1, -1], [1, 1], [-1, 1]]\n'
    )
    world = read(
        """
        botyard: 1
        name: test
        map: hall.map
        seed: 7
        step: 0.05
        speed: 2
        duration: 60
        paused: true
        odometry_error: none
        sensor_noise: false
        threads: 2
        home: [1, 2, 90]
        georeference: [48.1, 11.5, 500]
        models:
          mine: {extends: amigo, color: green}
        robots:
          - {model: p3dx, name: ann, pose: [1, 2, 45], color: blue, fiducial: 4, controller: wander}
          - {model: mine, count: 3, pose: [5, 5, 0]}
          - model: {extends: p3dx, name: special, limits: {max_speed: [0.3, 0, 50]}}
            lasers: [lms100, {type: lms200, pose: [-0.2, 0, 180]}, {type: own, samples: 7, range: [0.1, 3], fov_deg: 60}]
            controller: {name: follow, leader: ann}
          - {model: big.toml, name: big}
        obstacles:
          - {name: crate, box: [1, 0.5], pose: [3, 3, 30], color: gray50, returns: {laser: 0, fiducial: 9}}
          - {name: pillar, disc: 0.2, fixed: true, pose: [8, 8, 0], returns: {sonar: false}}
          - {name: wedge, polygon: [[0, 0], [1, 0], [0, 1]]}
          - {disc: 0.25, controller: {name: walk, speed: 1}}
        walls:
          - [[0, 5], [5, 5], [5, 0]]
          - {line: [[1, 1], [2, 1], [2, 2]], closed: true, returns: {obstacle: false}}
        places:
          - {kind: Dock, name: D, pose: [1, 1, 180]}
          - {name: G, pose: [2, 2]}
        areas:
          - {kind: ForbiddenArea, corners: [[0, 0], [1, 0], [1, 1]]}
        options: {update-interval: 50, fast: true}
        """,
        tmp_path,
    )
    s = world.settings
    assert (
        s.seed,
        s.step,
        s.speed,
        s.duration,
        s.paused,
        s.odometry_error,
        s.sensor_noise,
        s.threads,
    ) == (
        7,
        0.05,
        2.0,
        60.0,
        True,
        "none",
        False,
        2,
    )
    assert world.options == {"update-interval": 50, "fast": True}
    scene = world.scene
    assert (scene.name, scene.start, scene.georeference) == (
        "test",
        Pose(1, 2, math.pi / 2),
        GeoReference(48.1, 11.5, 500),
    )
    assert scene.segments[:3].tolist() == [[0, 0, 10, 0], [0, 5, 5, 5], [5, 5, 5, 0]]
    assert [(w.last - w.first, w.returns) for w in scene.special_walls] == [
        (3, Returns(obstacle=False)),
        (24, Returns(sonar=False)),
    ]
    crate, wedge = scene.boxes
    assert (
        crate.name,
        crate.length,
        crate.color,
        crate.returns.laser,
        crate.returns.fiducial,
    ) == (
        "crate",
        1.0,
        "gray50",
        0,
        9,
    )
    assert crate.pose.th == pytest.approx(math.pi / 6)
    assert wedge.parts == (((0, 0), (1, 0), (0, 1)),)
    assert [(p.kind, p.name, p.has_heading) for p in scene.places] == [
        ("Dock", "D", True),
        ("Goal", "G", False),
    ]
    assert [a.kind for a in scene.areas] == ["ForbiddenArea"]
    walker, ann, m1, m2, m3, special, big = world.robots
    assert (walker.name, walker.served, walker.spec.drive) == (
        "obstacle",
        False,
        Drive.OMNI,
    )
    assert walker.program == Program(name="walk", options={"speed": 1})
    assert (ann.name, ann.spec.color, ann.spec.returns.fiducial, ann.program) == (
        "ann",
        "blue",
        4,
        Program(name="wander"),
    )
    assert [m.name for m in (m1, m2, m3)] == ["mine", "mine_002", "mine_003"]
    assert m3.pose == Pose(5, 3, 0), "in a line, 1 m apart"
    assert special.spec.limits.max_speed.x == 0.3
    assert [(x.type_name, x.samples) for x in special.spec.lasers] == [
        ("sicklms100", 271),
        ("sicklms200", 181),
        ("own", 7),
    ]
    assert special.spec.lasers[1].pose.th == pytest.approx(math.pi, abs=1e-9)
    assert big.spec.outline[2] == (1, 1)
    sim = Simulation(world.scene)
    populate(sim, world)
    sim.step(20)


@pytest.mark.parametrize(
    ("change", "line", "complaint"),
    [
        (
            "colour: red",
            6,
            'models.a: there is no key "colour" here; did you mean "color"?',
        ),
        (
            "battery:\n      kind: gas",
            7,
            'models.a.battery.kind: expected "voltage" or "charge", found "gas"',
        ),
        (
            "bumpers:\n      front: x",
            7,
            "models.a.bumpers.front: expected a whole number, found a text",
        ),
        (
            "lasers:\n    - type: urg\n      pose: [1]",
            8,
            "models.a.lasers[0].pose: expected a list of length 3, found 1",
        ),
        (
            "dynamics: {mass: 1,\n      controller: {output: x}}",
            7,
            'controller.output: expected "velocity" or "force"',
        ),
        (
            "dynamics: {mass: 1,\n      friction: -1}",
            7,
            "models.a.dynamics.friction: expected 0 … 1000, found -1",
        ),
        (
            "bumpers:\n      front: 8",
            7,
            "models.a.bumpers.front: expected 0 … 7, found 8",
        ),
        (
            "wandering_odometry:\n      time: 0",
            7,
            "models.a.wandering_odometry.time: expected 0.001 … 1e+09 s, found 0 s",
        ),
        (
            "normal_errors:\n      bearing_deviation_deg: 181",
            7,
            "bearing_deviation_deg: expected 0 … 180 °, found 181 °",
        ),
        (
            "sonar: {rays: 0}",
            4,
            "rays must be from 1 to 1000, found 0",
            # The error of the whole model names the line at which the model starts.
        ),
    ],
)
def test_errors_in_models_name_the_line_and_the_key(
    change: str, line: int, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(WorldFileError) as error:
        read(
            f"botyard: 1\nrobots: [{{model: a}}]\nmodels:\n  a:\n    extends: p3dx\n    {change}\n",
            tmp_path,
        )

    assert str(error.value).startswith(f"s.yaml:{line}: models.a")
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (
            "botyard: 1\nrobtos: []",
            2,
            'there is no key "robtos" here; did you mean "robots"?',
        ),
        (
            "botyard: 1\nrobots:\n- model: p3dx\n  poes: [1, 2, 3]",
            4,
            'did you mean "pose"?',
        ),
        (
            "botyard: 1\nrobots:\n- model: p3dy",
            3,
            'no robot model "p3dy"; did you mean',
        ),
        (
            "botyard: 1\nrobots:\n- {model: p3dx,\n   pose: [1, 2]}",
            4,
            "expected a list of length 3",
        ),
        (
            "botyard: 1\nrobots:\n- pose: [1, here, 3]",
            3,
            "expected a number, found a text",
        ),
        ("botyard: 1\nseed: [", 2, "not YAML"),
        ("botyard: 1\nseed: 1.5", 2, "expected a whole number"),
        ("botyard: 1\nstep: 0", 2, "step: expected 1e-06 … 60 s, found 0 s"),
        ("botyard: 1\nspeed: .nan", 2, "expected a finite number"),
        ("botyard: 2", 1, "expected version 1 of the format, found 2"),
        ("botyard: 1\nmap: nowhere.map", 2, "no such map file"),
        (
            "botyard: 1\nodometry_error: big",
            2,
            'odometry_error: expected "random_each_update", "random_init"',
        ),
        (
            "botyard: 1\nrobots:\n- {name: a}\n- {name: a}",
            4,
            'expected an unused name, found "a" a second time',
        ),
        ("botyard: 1\nrobots:\n- {count: 0}", 3, "expected 1 or more, found 0"),
        (
            "botyard: 1\nrobots:\n- controller: wandr",
            3,
            'there is no controller "wandr"',
        ),
        ("botyard: 1\nrobots:\n- lasers: [lms999]", 3, 'no laser model "lms999"'),
        ("botyard: 1\nrobots:\n- lasers:\n  - {type: odd}", 3, 'no laser model "odd"'),
        (
            "botyard: 1\nobstacles:\n- {box: [1, 1], disc: 2}",
            3,
            "expected one of box, disc, polygon and parts",
        ),
        ("botyard: 1\nobstacles:\n- {disc: -1}", 3, "expected a radius"),
        ("botyard: 1\nobstacles:\n- {polygon: [[0, 0]]}", 3, "at least 3 corners"),
        (
            "botyard: 1\nobstacles:\n- {fixed: true, controller: walk}",
            3,
            "cannot have a controller",
        ),
        ("botyard: 1\nwalls:\n- [[0, 0]]", 3, "at least 2 points"),
        ("botyard: 1\nplaces:\n- {pose: [1]}", 3, "found 1 numbers"),
        ("botyard: 1\nareas:\n- {kind: x, corners: []}", 3, "at least 2 points"),
        (
            "botyard: 1\nareas:\n- {corners: [[0, 0], [1, 1]]}",
            3,
            'expected the key "kind", found none',
        ),
        ("botyard: 1\nx: &a [*a]", 2, "contains itself"),
    ],
)
def test_errors_name_the_line_and_what_may_have_been_meant(
    text: str, line: int, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(WorldFileError) as error:
        read(text, tmp_path)
    assert str(error.value).startswith(f"s.yaml:{line}: ")
    assert complaint in str(error.value)


def test_a_few_lines_of_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["botyard: 1", "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [
        f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]"
        for p, c in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    with pytest.raises(
        WorldFileError, match="11111111 entities described, expected at most 5000000"
    ):
        read("\n".join(lines))


@given(st.text(alphabet="botyard: 1\n-[]{}&*'\"#robtsmpe,0.", max_size=80))
def test_any_text_is_a_scenario_or_refused(text: str) -> None:
    try:
        read("botyard: 1\n" + text)
    except FormatError as error:
        where = str(error)
    else:
        where = "s.yaml"

    assert where.startswith("s.yaml")


def test_options_of_a_controller_are_checked() -> None:
    for options, complaint in (
        ("points: [[1, 2]], sped: 1", 'no option "sped"; did you mean "speed"'),
        ("speed: 1", 'expected the option "points", found none'),
        ("points: [[1]]", "waypoints: "),
        ("points: [[1, 2]], order: sideways", "expected one of loop, back, once"),
    ):
        world = read(
            f"botyard: 1\nrobots:\n- controller: {{name: waypoints, {options}}}"
        )
        with pytest.raises(FormatError.__mro__[1], match="waypoints") as error:
            populate(Simulation(world.scene), world)
        assert complaint in str(error.value)


def test_the_map_may_be_any_file_or_a_shipped_one_but_no_scenario(
    tmp_path: Path,
) -> None:
    assert len(read("botyard: 1\nmap: office").scene.segments) > 100
    (tmp_path / "a.wld").write_text("0 0 1000 0\n")
    assert read("botyard: 1\nmap: a.wld", tmp_path).scene.segments.tolist() == [
        [0, 0, 1, 0]
    ]
    (tmp_path / "other.yaml").write_text("botyard: 1\nmap: other.yaml\n")
    with pytest.raises(WorldFileError, match="found a scenario"):
        read("botyard: 1\nmap: other.yaml", tmp_path)
    with pytest.raises(WorldFileError, match=r"in one \.zip"):
        read("botyard: 1\nmap: secret.map")


def test_the_example_is_good(tmp_path: Path) -> None:
    (tmp_path / "ex.yaml").write_text(EXAMPLE)
    sim = Simulation.load(tmp_path / "ex.yaml")
    before = sim.poses
    sim.step(100)
    moved = np.hypot(*(sim.poses - before)[:, :2].T)
    assert sim.seed == 7
    assert list(sim.robots) == ["visitor", "cart", "guide", "pupil"]
    assert (moved > 0.3).all(), moved
    assert math.dist(sim.robots["pupil"].truth[:2], sim.robots["guide"].truth[:2]) < 2.5
    assert ("ex.yaml", False) in client_maps([tmp_path.resolve()])


def test_the_schema_is_json_schema() -> None:
    schema = json.loads(json.dumps(scenariokeys.schema()))
    file = schema["$defs"]["ScenarioFile"]
    assert {"botyard", "map", "robots", "obstacles", "walls", "options"} <= set(
        file["properties"]
    )
    assert file["required"] == ["botyard"]
    assert file["additionalProperties"] is False


# -- saving


def world_of(sim: Simulation) -> tuple[object, ...]:
    """Return the content of a world, with numbers rounded to the precision of a file."""

    def near(value):
        return np.round(np.asarray(value, float), 6).tolist()

    state, rows = sim.snapshot.state, sim.snapshot.rows
    scene = sim.scene
    boxes = {
        name: (near(state.pose[rows[name]]), near(box.outlines), box.returns, box.color)
        for name, box in zip(sim.core.box_names, scene.boxes, strict=True)
    }
    kinds = np.full(len(scene.segments), int(Visible.ALL))
    for wall in scene.special_walls:
        kinds[wall.first : wall.last] = int(wall.returns.mask)
    walls = sorted(
        (*near(s), int(k)) for s, k in zip(scene.segments, kinds, strict=True)
    )
    robots = {
        n: (near(r.truth), r.spec.returns, r.spec.drive, near(r.spec.outline))
        for n, r in sim.robots.items()
    }
    sensors = {
        n: ([(x.samples, near(x.pose)) for x in r.spec.lasers], r.spec.sonar is None)
        for n, r in sim.robots.items()
    }
    places = sorted((p.kind, p.name, near(p.pose)) for p in scene.places)
    return (
        boxes,
        walls,
        sorted(near(scene.points)),
        robots,
        sensors,
        places,
        scene.georeference,
        sim.seed,
        sim.dt,
        dict(sim.core.programs.by_robot),
        sim.core.sensor_noise,
        near(sim.core.places.home),
    )


def test_a_saved_world_is_the_same_world(tmp_path: Path) -> None:
    (tmp_path / "ex.yaml").write_text(EXAMPLE)
    sim = Simulation.load(tmp_path / "ex.yaml", step=0.05, sensor_noise=False)
    sim.step(40)
    sim.put("Box:1", (20.0, 14.0, 1.0))
    sim.step()
    sim.save_scenario(tmp_path / "saved.yaml")
    again = Simulation.load(tmp_path / "saved.yaml")
    assert world_of(again) == world_of(sim)
    again.save_scenario(tmp_path / "twice.yaml")
    assert (tmp_path / "twice.yaml").read_text().replace("twice.map", "saved.map") == (
        tmp_path / "saved.yaml"
    ).read_text()


def test_worlds_without_a_file_are_saved_with_all_that_is_in_them(
    tmp_path: Path,
) -> None:
    square = np.array(
        [[0.0, 0, 9, 0], [9, 0, 9, 9], [9, 9, 0, 9], [0, 9, 0, 0], [4, 1, 4, 3]]
    )
    scene = Scene(
        segments=square,
        special_walls=(SpecialWalls(first=4, last=5, returns=Returns(laser=0)),),
        points=np.array([[1.0, 1.0], [1.02, 1.0]]),
        boxes=(
            BoxObject(
                name="stone",
                pose=Pose(6, 6, 0.5),
                length=1,
                width=1,
                parts=(disc(0.5, 8),),
                returns=Returns(fiducial=3),
            ),
        ),
        places=(Place(kind="Goal", name="G", pose=Pose(1, 2, 0), has_heading=False),),
        start=Pose(2, 2, 0.25),
        georeference=GeoReference(48.0, 11.0, 500.0),
    )
    sim = Simulation(scene, seed=3)
    base = sim.add_robot("p3dx-equipped", "one", pose=(3, 3, 1)).spec
    sim.add_robot(
        replace(base, name="own", color="#123456", parts=(disc(0.1, 5),)),
        "two",
        pose=(5, 3, 1),
    )
    notes = sim.save_scenario(tmp_path / "w.yaml")
    assert notes == []
    again = Simulation.load(tmp_path / "w.yaml")
    assert world_of(again) == world_of(sim)
    assert again.robots["two"].spec.color == "#123456"
    assert again.robots["two"].spec.parts == sim.robots["two"].spec.parts
    assert again.robots["one"].spec == base


@pytest.mark.shared
@pytest.mark.parametrize("name", ["fasr", "everything", "autolab"])
def test_stage_worlds_are_saved_as_scenarios(
    shared: Path, tmp_path: Path, name: str
) -> None:
    sim = Simulation.load(shared / f"data/worlds/{name}.world")
    sim.save_scenario(tmp_path / "w.yaml")
    assert world_of(Simulation.load(tmp_path / "w.yaml")) == world_of(sim)


def test_a_scenario_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    sim = Simulation()
    with pytest.raises(WorldFileError, match="cannot be written"):
        sim.save_scenario(tmp_path / "none" / "a.yaml")


def test_a_scene_of_a_scenario_has_no_robots(tmp_path: Path) -> None:
    (tmp_path / "ex.yaml").write_text(EXAMPLE)
    assert load_scene(tmp_path / "ex.yaml").boxes
    assert load_world(tmp_path / "ex.yaml").robots


@pytest.mark.parametrize(
    "key", ["polygon: {0}", "parts: [[[0, 0], [1, 0], [0, 1]], {0}]"]
)
@pytest.mark.parametrize("fixed", ["false", "true"])
@pytest.mark.parametrize(
    ("corners", "number"),
    [("[[1, 1], [1, 1], [1, 1]]", 1), ("[[1, 1], [1, 2], [1, 1], [1, 2.0]]", 2)],
)
def test_polygons_have_corners_apart(
    key: str, fixed: str, corners: str, number: int
) -> None:
    text = f"botyard: 1\nobstacles:\n- {key.format(corners)}\n  fixed: {fixed}\n"
    with pytest.raises(
        WorldFileError,
        match=r"a.yaml:3: obstacles\[0\]: expected polygons of at least 3 "
        rf"different corners, found {number}",
    ):
        read_world(Source("a.yaml", text.encode()))


def test_values_are_counted_by_what_it_takes_to_read_them() -> None:
    text = "botyard: 1\nwalls:\n" + "- [[0, 0], [1, 2]]\n" * 30
    assert (
        len(
            read_world(
                Source("a.yaml", text.encode()), Options(budget=Budget(entities=1100))
            ).scene.segments
        )
        == 30
    )
    with pytest.raises(BudgetError, match="--max-read entities"):
        read_world(
            Source("a.yaml", text.encode()), Options(budget=Budget(entities=1000))
        )
