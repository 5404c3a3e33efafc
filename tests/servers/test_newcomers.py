"""Many robots added at once to a running world are added in portions, between which it
runs on.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from botyard.app.compose import compose
from botyard.control import USER, AddRobots, adding
from botyard.errors import WorldError
from botyard.formats.budget import Budget
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.model.world import PlacedRobot, Program, World, thing
from botyard.servers.jobs import maploading
from botyard.servers.pioneer.robot_servers import ROBOTS_PER_BATCH, RobotServers
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate
from tests.ports import free_port
from tests.protocols.lines import Client, named


@pytest.mark.parametrize(
    ("model", "count"), [("p3dx", 12), ("seekur", 5), ("amigo", 60)]
)
def test_robots_without_poses_stand_where_they_stand_one_by_one(
    model: str, count: int
) -> None:
    one, other = Simulation.load("office"), Simulation.load("office")
    spec = find_robot(model)
    for _ in range(count):
        one.add_robot(spec)
    robots = populate(
        other, World(scene=one.scene, robots=(PlacedRobot(spec=spec),) * count)
    )
    assert [r.name for r in robots] == list(one.robots)
    assert [r.truth for r in robots] == [r.truth for r in one.robots.values()]


def test_many_large_ones_stand_apart() -> None:
    sim = Simulation()
    populate(
        sim,
        World(
            scene=Scene(),
            robots=tuple(
                PlacedRobot(spec=find_robot("seekur"), name=f"s{i}") for i in range(60)
            ),
        ),
    )
    assert list(sim.robots) == [f"s{i}" for i in range(60)]
    assert all(sim.core.places.is_free_for(r)(r.truth) for r in sim.robots.values())


def test_a_world_of_many_comes_in_portions() -> None:
    async def come() -> None:
        sim = Simulation()
        sim.add_robot("p3dx", "r7", pose=(50.0, 50.0, 0.0))
        parts = compose(sim, port=free_port(120))
        hub, place = parts.hub, parts.robot_servers
        spec = thing()
        follow = Program(name="follow", options={"path": [[0, 0], [1, 0]]})
        robots = [
            PlacedRobot(
                spec=spec,
                name=f"r{i}",
                pose=Pose(float(i), 0.0, 0.0),
                program=Program(name="walk") if i % 2 else None,
            )
            for i in range(ROBOTS_PER_BATCH + 20)
        ]
        bad = PlacedRobot(spec=spec, name="bad", pose=Pose(0.0, 5.0), program=follow)
        place.add_robots_of(World(scene=sim.scene, robots=(*robots, bad)))
        seen = []
        while hub.background:
            seen.append(len(sim.robots))
            await asyncio.sleep(0)

        assert (
            max(b - a for a, b in zip([1, *seen], seen, strict=False))
            <= ROBOTS_PER_BATCH
        )
        assert len(sim.robots) == ROBOTS_PER_BATCH + 21
        sim.step()
        assert sim.robots["r7"].truth.x == pytest.approx(7.0), (
            "who was there already is put there"
        )
        walking = {
            name
            for name, program in sim.core.programs.by_robot.items()
            if program.name == "walk"
        }
        assert walking == {f"r{i}" for i in range(1, ROBOTS_PER_BATCH + 20, 2)} - {"r7"}
        more = AddRobots(
            model="amigo", number=ROBOTS_PER_BATCH + 5, pose=Pose(-100.0, 0.0)
        )
        assert (
            len((await asyncio.wrap_future(parts.control.do(USER, more))).robots)
            == ROBOTS_PER_BATCH + 5
        )
        assert (
            len({tuple(r.truth) for r in sim.robots.values()})
            == 2 * ROBOTS_PER_BATCH + 26
        ), "each has its own place"
        place.close()

    asyncio.run(come())


def test_there_is_room_for_so_many_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sim = Simulation()
    made = compose(sim).robot_servers
    monkeypatch.setattr(adding, "MAX_ROBOTS", 4)
    # Maps that do not name their robots add new robots at each load.
    for _ in range(3):
        world = World(
            scene=Scene(source="a.yaml"),
            robots=(PlacedRobot(spec=thing(), served=False),) * 2,
        )
        asyncio.run(received(made, world))

    assert len(sim.robots) == 4
    assert (
        "the robots of a.yaml were not added: clients may add robots up to 4, there are already 4"
        in caplog.text
    )


async def received(made: RobotServers, world: World) -> None:
    made.add_robots_of(world)
    while made.hub.background:
        await asyncio.sleep(0)


def test_another_map_ends_the_coming() -> None:
    async def come() -> int:
        sim = Simulation()
        parts = compose(sim)
        hub, place = parts.hub, parts.robot_servers
        spec = thing()
        place.add_robots_of(
            World(
                scene=sim.scene,
                robots=tuple(
                    PlacedRobot(spec=spec, name=f"r{i}", pose=Pose(i))
                    for i in range(3 * ROBOTS_PER_BATCH)
                ),
            )
        )
        await asyncio.sleep(0)
        sim.replace_scene(Scene())
        while hub.background:
            await asyncio.sleep(0)
        return len(sim.robots)

    assert asyncio.run(come()) == ROBOTS_PER_BATCH


ROBOTS = "robots: [{model: amigo, count: 1001, pose: [0, 0, 0]}]"
BOXES = "obstacles:\n" + "\n".join(
    f"  - {{name: b{i}, box: [1, 1], pose: [{2 * i}, 0, 0]}}" for i in range(12)
)
POLYGON = "obstacles: [{name: a, polygon: [[0, 0], [1, 0], [1, 1], [0.5, 2], [0, 1]]}]"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ROBOTS, "1001 robots, expected at most 1000"),
        (BOXES, "12 movable objects, expected at most 10"),
        (POLYGON, "5 corners of robots and movable objects, expected at most 4"),
    ],
)
def test_worlds_that_would_hold_up_a_step_are_refused(
    text: str,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(maploading, "MAX_BOXES", 10)
    monkeypatch.setattr(maploading, "MAX_CORNERS", 4 if "polygon" in text else 20_000)
    (tmp_path / "a.yaml").write_text(f"botyard: 1\n{text}\n")
    c = Client(folders=(tmp_path,))
    scene = c.sim.scene
    c.ctrl(1, named("a.yaml"))
    assert c.sim.scene is scene
    assert f"found {found} in a map that is loaded into a running world" in caplog.text


def test_the_user_may_say_how_many_robots_come() -> None:
    world = World(scene=Scene(), robots=(PlacedRobot(spec=thing()),) * 1200)
    with pytest.raises(WorldError, match="found 1200 robots, expected at most 1000"):
        maploading._check_size(world, Budget())
    maploading._check_size(world, Budget(robots=1200))
    box = BoxObject(name="b", pose=Pose(), length=1.0, width=1.0)
    with pytest.raises(WorldError, match="1001 movable"):
        maploading._check_size(World(scene=Scene(boxes=(box,) * 1001)), Budget())
