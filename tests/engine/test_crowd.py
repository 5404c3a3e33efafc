"""Clients that may place robots anywhere cannot heap them up:

the cost would grow with the square of their number.
"""

from __future__ import annotations

import asyncio
import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.app.compose import compose
from botyard.control import USER, AddRobot, Caller
from botyard.control.control import Control
from botyard.control.later import resolved
from botyard.engine.overlap_limit import MAX_PER_PLACE, PLACE_RADIUS
from botyard.errors import CommandError
from botyard.geometry import Pose
from botyard.interfaces.ambf.ambf import Ambf
from botyard.protocols.ambf.messages import definitions
from botyard.protocols.pioneer.packet import command, frame
from botyard.protocols.ros_messages.types import Types
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation


def world(n: int) -> Simulation:
    sim = Simulation()
    sim.add_robots(
        "p3dx", [Pose(3.0 * i, 0.0, 0.0) for i in range(n)], [f"r{i}" for i in range(n)]
    )
    return sim


def test_a_place_takes_so_many_and_no_more() -> None:
    sim = world(8)
    for i in range(1, MAX_PER_PLACE):
        # The body r0 is on the place already.
        sim.core.overlap_limit.enter(f"r{i}", 0.1, 0.0)
    with pytest.raises(
        CommandError,
        match=f"{MAX_PER_PLACE} other bodies already overlap at that place",
    ):
        sim.core.overlap_limit.enter("r7", 0.0, 0.0)

    sim.core.overlap_limit.enter("r7", PLACE_RADIUS + 0.15, 0.0)
    sim.core.overlap_limit.enter("r1", 0.05, 0.0)
    # A robot that leaves the place makes room for another one.
    sim.core.overlap_limit.enter("r2", 50.0, 0.0)
    sim.core.overlap_limit.enter("r6", 0.0, 0.0)
    assert sim.core.overlap_limit.place("r2") == (50.0, 0.0)
    with pytest.raises(KeyError):
        sim.core.overlap_limit.enter("nobody", 0.0, 0.0)
    sim.step()
    assert sim.core.overlap_limit.place("r2") == (6.0, 0.0), (
        "it looks at the state; nobody was put there in the end"
    )


spots = st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8))


@given(
    st.lists(spots, min_size=3, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), spots), max_size=20),
)
def test_who_may_enter_a_place_is_as_counting_all_distances_says(
    start: list[tuple[float, float]], moves: list[tuple[int, tuple[float, float]]]
) -> None:
    """The twin has no cells and measures all distances."""
    sim = Simulation(warn=lambda text: None)
    names = [f"r{i}" for i in range(len(start))]
    sim.add_robots("p3dx", [(x, y, 0.0) for x, y in start], names)
    places = dict(zip(names, start, strict=True))
    for index, to in moves:
        name = names[index % len(names)]
        others = sum(
            n != name and math.dist(place, to) < PLACE_RADIUS
            for n, place in places.items()
        )
        if others >= MAX_PER_PLACE:
            with pytest.raises(
                CommandError,
                match=f": {others} other bodies already overlap at that place",
            ):
                sim.core.overlap_limit.enter(name, *to)
        else:
            sim.core.overlap_limit.enter(name, *to)
            places[name] = to

        assert sim.core.overlap_limit.place(name) == places[name]


@pytest.mark.parametrize("to", [(math.nan, 0.0), (0.0, math.inf)])
def test_a_place_that_is_none_is_left_to_the_command(to: tuple[float, float]) -> None:
    sim = world(1)
    sim.core.overlap_limit.enter("r0", *to)
    assert sim.core.overlap_limit.place("r0") == (0.0, 0.0)


@pytest.mark.parametrize("way", ["pose", "axes"])
def test_clients_that_heap_up_their_robots_are_told(way: str) -> None:
    from botyard.protocols.pioneer.conversation import PioneerSettings

    sim = world(12)
    modem = NullModem(sim, PioneerSettings(srisim_compat=True))
    lines = [modem.connect(f"r{i}") for i in range(12)]
    for line in lines:
        line.send(frame(0) + frame(1) + frame(2) + command(1, 1))
        if way == "pose":
            line.send(
                frame(
                    224,
                    bytes([0])
                    + b"".join(
                        v.to_bytes(4, "little", signed=True) for v in (50_000, 9_000, 0)
                    ),
                )
            )
        else:
            line.send(command(67, 9_000) + command(66, 50_000))

    modem.run(0.1)
    there = sum(
        math.dist(sim.robots[f"r{i}"].truth[:2], (50.0, 9.0)) < 0.01 for i in range(12)
    )
    assert there == MAX_PER_PLACE
    assert (
        sum(
            "other bodies already overlap at that place" in text
            for line in lines
            for text in line.log
        )
        == 12 - there
    )
    back = command(225)
    for line in lines:
        line.send(back)
    modem.run(0.1)
    assert all(
        sim.robots[f"r{i}"].truth == Pose(3.0 * i, 0.0, 0.0) for i in range(12)
    ), "reset is always possible"


def test_a_restored_world_is_looked_at_anew() -> None:
    sim = world(2)
    state = sim.save_state()
    sim.put("r1", (7.0, 0.0, 0.0))
    sim.settle()
    there = sim.save_state()
    assert sim.core.overlap_limit.place("r1") == (7.0, 0.0)
    # The restored state has the same tick, so the tick alone does not show the change.
    sim.restore(state)
    assert sim.core.overlap_limit.place("r1") == (3.0, 0.0)
    sim.restore(there)
    assert sim.core.overlap_limit.place("r1") == (7.0, 0.0)


def test_who_may_be_added_where() -> None:
    sim = world(MAX_PER_PLACE)
    control = Control(sim)
    parts = SimpleNamespace(
        equip=lambda spec: spec,
        add_robots=sim.add_robots,
        serve=lambda robots: resolved(None),
    )
    control.robot_host = parts  # type: ignore[assignment]
    wild = Caller("ros", ignores_crowd_limit=False)
    for _ in range(MAX_PER_PLACE - 1):
        control.do(wild, AddRobot(model="p3dx", pose=Pose(0.1, 0.0, 0.0)))
    before = len(sim.robots)
    with pytest.raises(
        CommandError,
        match=f"{MAX_PER_PLACE} other bodies already overlap at that place",
    ):
        control.do(wild, AddRobot(model="p3dx", pose=Pose()))

    assert len(sim.robots) == before
    control.do(USER, AddRobot(model="p3dx", pose=Pose()))
    control.do(wild, AddRobot(model="p3dx", pose=Pose(), near=True))


def test_programs_of_forces_do_not_heap_up_bodies_either(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        sim = world(MAX_PER_PLACE + 2)
        parts = compose(sim, port=0)
        ambf = Ambf(
            parts.hub,
            parts.control,
            parts.lockstep,
            Types("jazzy", definitions("2.0")),
            "2.0",
        )
        ambf._sync()
        bodies = [
            thing
            for key, thing in ambf._objects.items()
            if key[0] == "body" and key[1] in sim.robots
        ]  # type: ignore[index]
        with caplog.at_level(logging.WARNING):
            for n, body in enumerate(bodies):
                body.put(Pose(0.01 * n, 0.0, 0.0))  # type: ignore[attr-defined]
            for _ in range(20):
                bodies[-1].put(Pose(0.001, 0.0, 0.0))  # type: ignore[attr-defined]
                bodies[-1].put(Pose(1e300, 0.0, 0.0))  # type: ignore[attr-defined]

        sim.step()
        assert (
            sum(
                math.hypot(*robot.truth[:2]) < PLACE_RADIUS
                for robot in sim.robots.values()
            )
            == MAX_PER_PLACE
        )
        assert caplog.text.count("cannot be put") == 2, "of each the first"
        last: Any = bodies[-1]
        last.set_step_hook("twist", lambda: last._advance((-1e300, 0.0, 0.0)))
        ambf._before_step()
        ambf._before_step()
        assert not bodies[-1].has_step_hook("twist"), "the command is dropped"  # type: ignore[attr-defined]
        ambf.close()
        parts.close()

    asyncio.run(main())
