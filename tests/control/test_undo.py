"""Undo and redo by their effect on the world, with the real robot ports and map loader."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.app.compose import Parts, compose
from botyard.control import (
    USER,
    AddRobot,
    AddRobots,
    Branch,
    Caller,
    ClearMap,
    CloneRobots,
    EnableMotors,
    Level,
    LoadMap,
    Place,
    PressEmergencyStop,
    Redo,
    Remove,
    RenameRobots,
    Reset,
    SendMap,
    Undo,
)
from botyard.control import undo as undo_module
from botyard.control.driving import client_left
from botyard.errors import BotyardError, NotNowError, WorldError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Scene
from botyard.model.world import Program
from botyard.sim.journal import Entry
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Simulation

ROOM = np.array([[0, 0, 16, 0], [16, 0, 16, 10], [16, 10, 0, 10], [0, 10, 0, 0]], float)
BOXES = (
    BoxObject(name="Box:1", pose=Pose(12, 8, 0.5), length=1.0, width=0.6),
    BoxObject(
        name="Box:2",
        pose=Pose(2, 8, 0),
        length=0.5,
        width=0.5,
        dynamics=DynamicsSpec(mass=4.0),
    ),
)
MAP = b"2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 7000\nNumLines: 1\nLINES\n0 0 9000 0\nDATA\n"
PAGE = Caller("page", Level.OWN, "a page", key="page", undo_group=0)
OTHER = Caller("page", Level.OWN, "another page", key="other", undo_group=0)


def world() -> Simulation:
    sim = Simulation(
        Scene(name="room", segments=ROOM, boxes=BOXES),
        step=0.05,
        odometry_error="constant",
    )
    sim.add_robot("p3dx", "ann", pose=(3, 3, 0))
    sim.add_robot("amigo", "bob", pose=(6, 5, 1))
    return sim


class RequestHandler:
    """A simulator that makes a step after every operation."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.control, self.sim = parts, parts.control, parts.hub.sim

    async def do(self, operation: Any, caller: Caller = PAGE) -> Any:
        result = self.control.do(caller, operation)
        if hasattr(result, "add_done_callback"):
            result = await asyncio.wrap_future(result)
        self.parts.hub.step_once()
        await asyncio.sleep(0)
        return result

    async def undo(self, caller: Caller = PAGE) -> str:
        return str(await self.do(Undo(), caller))

    async def redo(self, caller: Caller = PAGE) -> str:
        return str(await self.do(Redo(), caller))

    def there(self) -> dict[str, tuple[float, ...]]:
        """Return true pose and odometry pose of all bodies, rounded.

        The frame of odometry has rounding errors.
        """
        state, rows = self.sim.snapshot.state, self.sim.snapshot.rows
        found = {n: state.pose[row].tolist() for n, row in rows.items()}
        for name, robot in self.sim.robots.items():
            found[name] += [*robot.odom, *robot.odom_in_world, *robot.start]
        return {
            name: tuple(round(value, 9) for value in values)
            for name, values in found.items()
        }


def run(
    test: Callable[[RequestHandler], Coroutine[Any, Any, None]],
    sim: Simulation | None = None,
) -> None:
    async def main() -> None:
        parts = compose(world() if sim is None else sim, limits=None)
        parts.robot_servers.is_serving = False
        parts.robot_servers.adopt()
        parts.hub.step_once()
        try:
            await test(RequestHandler(parts))
        finally:
            parts.close()
            await parts.ended()

    asyncio.run(main())


def placing(*names: str, x: float = 9.0) -> Place:
    return Place(
        to=tuple((name, Pose(x + i, 2.0, 0.3)) for i, name in enumerate(names))
    )


OPERATIONS = st.one_of(
    st.builds(
        lambda names, x: placing(*names, x=x),
        st.lists(
            st.sampled_from(["ann", "bob", "Box:1", "Box:2"]), min_size=1, unique=True
        ),
        st.floats(1.0, 9.0),
    ),
    st.builds(
        lambda names: Remove(names=tuple(names)),
        st.lists(st.sampled_from(["ann", "bob", "Box:1"]), min_size=1, unique=True),
    ),
    st.just(AddRobot(model="amigo", robot="eve", rename=True)),
    st.just(AddRobots(model="p3dx", number=2)),
    st.just(CloneRobots(robots=("bob",))),
    st.just(RenameRobots(names=(("ann", "anna"),))),
    st.just(RenameRobots(names=(("bob", "ann"), ("ann", "bob")))),
    st.just(Reset()),
    st.just(ClearMap()),
    st.just(SendMap(map="small.map", data=MAP)),
)


@given(st.lists(OPERATIONS, min_size=1, max_size=8))
@settings(max_examples=60)
def test_undoing_all_gives_the_world_before_and_doing_all_again_the_one_after(
    operations: list[Any],
) -> None:
    async def test(desk: RequestHandler) -> None:
        moments = [(desk.there(), desk.sim.scene.name)]
        for operation in operations:
            # An operation may fail, for example on a removed body; the change is a step of the
            # history all the same.
            with suppress(BotyardError):
                await desk.do(operation)

            now = (desk.there(), desk.sim.scene.name)
            if now != moments[-1]:
                moments.append(now)

        for before in reversed(moments[:-1]):
            while (desk.there(), desk.sim.scene.name) != before:
                await desk.undo()

        for after in moments[1:]:
            while (desk.there(), desk.sim.scene.name) != after:
                await desk.redo()

    run(test)


def test_a_drag_is_one_step_and_a_new_change_ends_what_can_be_done_again() -> None:
    async def test(desk: RequestHandler) -> None:
        hand = Caller("page", Level.OWN, "a page", key="page", undo_group=7)
        before = desk.there()
        for x in (4.0, 5.0, 6.0):
            await desk.do(placing("ann", "Box:1", x=x), hand)
        await desk.do(placing("ann", x=7.0))
        assert (await desk.undo()) == "undone: moving ann"
        assert desk.there()["ann"][:2] == (6.0, 2.0)
        assert (await desk.undo()) == "undone: moving ann, Box:1"
        assert desk.there() == before
        await desk.redo()
        assert desk.there()["ann"][:2] == (6.0, 2.0)
        await desk.do(placing("bob"))
        with pytest.raises(NotNowError, match="nothing to redo"):
            await desk.redo()

    run(test)


def test_new_names_are_taken_back_with_the_steps_before_them() -> None:
    async def test(desk: RequestHandler) -> None:
        before = desk.there()
        await desk.do(placing("ann"))
        moved = desk.there()
        both = (("ann", "bob"), ("bob", "carl"))
        await desk.do(RenameRobots(names=both))
        assert desk.there()["bob"] == moved["ann"]
        await desk.do(placing("bob", x=4.0))
        assert (await desk.undo()) == "undone: moving bob"
        assert (await desk.undo()) == "undone: renaming ann, bob"
        assert desk.there() == moved
        assert (await desk.redo()) == "redone: renaming ann, bob"
        assert desk.there()["bob"] == moved["ann"]
        await desk.undo()
        assert (await desk.undo()) == "undone: moving ann"
        assert desk.there() == before
        # Another robot has the old name meanwhile.
        await desk.do(RenameRobots(names=(("ann", "anna"),)))
        await desk.do(AddRobot(model="amigo", robot="ann"), OTHER)
        with pytest.raises(WorldError, match='a body named "ann" already exists'):
            await desk.undo()

    run(test)


def test_what_others_have_done_stays() -> None:
    async def test(desk: RequestHandler) -> None:
        await desk.do(placing("ann", "bob", "Box:1"))
        # Place bob as a client does, not through the page.
        desk.sim.robots["bob"].port("pioneer").set_pose(Pose(1.0, 1.0, 0.0))
        await desk.do(placing("Box:1", x=14.0), OTHER)
        assert (
            (await desk.undo())
            == "undone: moving ann, bob, Box:1; bob, Box:1 were moved "
            "by other clients and stay"
        )
        assert [desk.there()[n][:2] for n in ("ann", "bob", "Box:1")] == [
            (3.0, 3.0),
            (1.0, 1.0),
            (14.0, 2.0),
        ]
        await desk.redo()
        assert [desk.there()[n][:2] for n in ("ann", "bob", "Box:1")] == [
            (9.0, 2.0),
            (1.0, 1.0),
            (14.0, 2.0),
        ]
        assert (await desk.undo(OTHER)) == "undone: moving Box:1"
        assert desk.there()["Box:1"][:2] == (11.0, 2.0)
        desk.sim.put("ann", (5.0, 5.0, 0.0))
        with pytest.raises(
            WorldError,
            match="moving ann, bob, Box:1 cannot be undone: ann was moved by another client",
        ):
            await desk.undo()

        with pytest.raises(NotNowError, match="nothing to undo"):
            await desk.undo()

    run(test)


def test_a_robot_that_has_driven_is_put_back() -> None:
    async def test(desk: RequestHandler) -> None:
        await desk.do(placing("ann"))
        desk.sim.robots["ann"].command(v=0.4)
        for _ in range(40):
            desk.parts.hub.step_once()
        assert desk.there()["ann"][0] > 9.5
        desk.sim.robots["ann"].command.stop()
        await desk.undo()
        assert math.dist(desk.there()["ann"][:2], (3.0, 3.0)) < 0.1

    run(test)


def test_a_robot_comes_back_with_what_it_had_and_steps_before_still_hold() -> None:
    async def test(desk: RequestHandler) -> None:
        sim = desk.sim
        from botyard.sim.programs import employ

        employ(sim.robots["bob"], Program(name="wander"))
        sim.core.unserve(["bob"])
        sim.robots["ann"].ghost()
        await desk.do(placing("ann"))
        old = sim.robots["ann"]
        await desk.do(Remove(names=("ann", "bob")))
        assert not sim.robots
        await desk.undo()
        assert (
            sim.robots["ann"] is not old
            and sim.robots["ann"].start == Pose(3, 3, 0)
            and sim.robots["ann"].is_ghost
        )
        assert (
            sim.core.programs.by_robot["bob"].name == "wander"
            and not sim.core.is_served("bob")
            and "bob" not in desk.parts.robot_servers.servers
        )
        assert desk.there()["ann"][:2] == (9.0, 2.0)
        await desk.undo()
        assert desk.there()["ann"][:2] == (3.0, 3.0), (
            "the step before the removal holds for the robot that came back"
        )

    run(test)


def test_a_stopped_robot_stays_stopped_when_its_removal_is_undone() -> None:
    async def test(desk: RequestHandler) -> None:
        for name in ("ann", "bob"):
            desk.sim.robots[name].set_controller("wander")
        await desk.do(PressEmergencyStop(robots=("ann",), on=True))
        await desk.do(EnableMotors(robots=("bob",), on=False))
        for _ in range(20):
            desk.parts.hub.step_once()
        await desk.do(Remove(names=("ann", "bob")))
        await desk.undo()
        there = {name: desk.sim.robots[name].truth for name in ("ann", "bob")}
        for _ in range(40):
            desk.parts.hub.step_once()
        assert {n: desk.sim.robots[n].truth for n in there} == there
        assert desk.sim.robots["ann"].motors_inhibited
        await desk.do(EnableMotors(robots=("bob",), on=True))
        for _ in range(40):
            desk.parts.hub.step_once()
        assert desk.sim.robots["bob"].truth != there["bob"]

    run(test)


def test_a_name_that_is_taken_and_a_robot_that_is_gone() -> None:
    async def test(desk: RequestHandler) -> None:
        await desk.do(Remove(names=("ann", "bob")))
        desk.sim.add_robot("p3at", "ann", pose=(8, 8, 0))
        assert (
            await desk.undo()
        ) == "undone: removing ann, bob; ann is now the name of another body"
        assert desk.sim.robots["ann"].spec.name == "p3at"
        added = await desk.do(AddRobot(model="amigo", robot="eve"))
        assert added.robots == ("eve",)
        desk.sim.remove_robot("eve")
        with pytest.raises(
            WorldError, match="adding eve cannot be undone: eve was already removed"
        ):
            await desk.undo()

    run(test)


def test_a_map_takes_its_renamed_robots_along() -> None:
    scenario = b"botyard: 1\nrobots:\n- {name: zoe, model: amigo, pose: [2, 2, 0]}\n"

    async def test(desk: RequestHandler) -> None:
        before = desk.there()
        await desk.do(SendMap(map="place.yaml", data=scenario))
        await desk.do(RenameRobots(names=(("zoe", "zac"),)))
        await desk.undo()
        await desk.do(RenameRobots(names=(("zoe", "zac"),)), OTHER)
        assert (await desk.undo()) == "undone: loading place"
        assert desk.there() == before

    run(test)


def test_a_map_takes_its_robots_along_and_puts_back_what_it_has_moved() -> None:
    scenario = (
        b"botyard: 1\nrobots:\n- {name: ann, model: p3dx, pose: [1, 1, "
        b"0]}\n- {name: zoe, model: amigo, pose: [2, 2, 0]}\n"
    )

    async def test(desk: RequestHandler) -> None:
        await desk.do(Remove(names=("Box:2",)))
        await desk.do(placing("Box:1"))
        before = desk.there()
        await desk.do(SendMap(map="place.yaml", data=scenario))
        assert desk.there().keys() == {"ann", "bob", "zoe"} and desk.there()["ann"][
            :2
        ] == (1.0, 1.0)
        after = desk.there()
        await desk.undo()
        assert desk.there() == before and desk.sim.scene.name == "room"
        await desk.redo()
        assert desk.there() == after
        await desk.undo()
        await desk.undo()
        assert desk.there()["Box:1"][:2] == (12.0, 8.0)

    run(test)


def test_going_on_from_a_moment_is_taken_back_as_a_whole() -> None:
    """Undo takes back the branch with the changes made in it.

    Changes noted before belong to another run.
    """

    async def test(desk: RequestHandler) -> None:
        sim = desk.sim
        sim.history.keep()
        sim.robots["ann"].command(v=0.3)
        sim.step(40)
        sim.robots["ann"].command(v=0.0)
        sim.step(40)
        past = desk.there()
        time = sim.time
        await desk.do(placing("bob"), OTHER)
        await desk.do(Remove(names=("Box:1",)))
        await desk.do(AddRobot(model="amigo", robot="eve", pose=Pose(5, 8, 0)))
        await desk.do(SendMap(map="small.map", data=MAP), OTHER)
        sim.step(40)
        before, when = desk.there(), sim.time
        assert (await desk.do(Branch(time=time))).time == time
        assert {n: p[:3] for n, p in desk.there().items()} == {
            n: p[:3] for n, p in past.items()
        } and sim.scene.name == "room"
        sim.step(3)
        with pytest.raises(NotNowError, match="nothing to undo"):
            await desk.undo(OTHER)
        await desk.do(placing("ann"))
        await desk.do(placing("bob", x=4.0), OTHER)
        assert "ann" in await desk.undo()
        gone_on, later = desk.there(), sim.time
        assert await desk.undo() == f"undone: continuing from {time:.1f} s"
        assert sim.time == pytest.approx(when + sim.dt) and sim.scene.name == "small"
        assert (
            desk.there().keys() == before.keys()
            and desk.there()["bob"][:3] == before["bob"][:3]
        )
        times = [moment.time for moment in sim.history.moments]
        assert (
            times == sorted(set(times))
            and times[-1] > when
            and not any(time < t <= when for t in times)
        )
        with pytest.raises(NotNowError, match="nothing to undo"):
            await desk.undo(OTHER)
        with pytest.raises(NotNowError, match="nothing to undo"):
            await desk.undo()
        assert await desk.redo() == f"redone: continuing from {time:.1f} s"
        assert (
            sim.time == pytest.approx(later + sim.dt)
            and desk.there()["ann"][:3] == gone_on["ann"][:3]
        )
        assert sim.scene.name == "room"
        await desk.undo()
        assert sim.scene.name == "small"

    run(test)


def test_what_was_done_without_a_step_to_undo() -> None:
    async def test(desk: RequestHandler) -> None:
        await desk.do(placing("ann"), USER)
        await desk.do(Place(to=()))
        with pytest.raises(BotyardError):
            await desk.do(LoadMap(map="no such map"))
        with pytest.raises(NotNowError, match="nothing to undo"):
            await desk.undo()
        await desk.do(placing("bob"))
        client_left(desk.control, "page")
        with pytest.raises(NotNowError, match="nothing to undo"):
            await desk.undo()

    run(test)


def test_no_more_is_kept_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(desk: RequestHandler) -> None:
        monkeypatch.setattr(undo_module, "MAX_STEPS", 5)
        for x in range(8):
            await desk.do(placing("ann", x=1.0 + x))
        undone = [await desk.undo() for _ in range(5)]
        assert len(undone) == 5 and desk.there()["ann"][0] == 3.0
        with pytest.raises(NotNowError):
            await desk.undo()
        monkeypatch.setattr(undo_module, "MAX_BODIES", 3)
        await desk.do(placing("ann", "bob"))
        await desk.do(placing("ann", "Box:1"))
        await desk.undo()
        with pytest.raises(NotNowError):
            await desk.undo()
        monkeypatch.setattr(undo_module, "MAX_MAP_BYTES", 100)
        await desk.do(ClearMap())
        with pytest.raises(NotNowError):
            await desk.undo()

    run(test)


def test_undo_is_in_the_journal_as_what_it_did() -> None:
    sim, twin, told = world(), world(), list[Entry]()
    sim.core.journal.listen(told.append)

    async def test(desk: RequestHandler) -> None:
        await desk.do(Remove(names=("ann", "Box:1", "Box:2")))
        await desk.do(Reset())
        await desk.undo()
        await desk.undo()
        await desk.redo()
        await desk.undo()

    run(test, sim)
    *_, last = resimulate(twin, told, sim.tick)
    assert last == sim.digest() and {e.source for e in told} == {"page"}
