"""Robots of factories are made and removed in a share of the time, in batches, with
turns for addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from botyard.control import Control
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.packet import command, frame
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.hub import Hub
from botyard.servers.pioneer import factory as module
from botyard.servers.pioneer.factory import (
    CREATION_BATCH,
    MAX_WAITING,
    REMOVAL_BATCH,
    FactoryServer,
    Workshop,
)
from botyard.sim.simulation import Simulation
from tests.waiting import PATIENCE

HELLO = frame(0) + frame(1) + frame(2) + command(1, 1)


OPEN: list[asyncio.StreamWriter] = []


class Clock:
    """A clock that making robots advances."""

    now = 0.0
    cost = 0.0

    def __call__(self) -> float:
        self.now += self.cost
        return self.now


async def served(
    act: Callable[[Hub, FactoryServer, Clock, list[int]], Awaitable[None]],
) -> None:
    """A factory on a port; `act` gets the numbers of robots made together."""
    hub = Hub(Simulation(), interval=0.02)
    clock = Clock()
    workshop = Workshop(hub, clock)
    spec = hub.sim.add_robot("p3dx", "there").spec
    desk = PioneerRequests(Control(hub.sim))
    factory = FactoryServer(
        hub, spec, PioneerSettings(), desk, hub.sim.core.places.next, workshop
    )
    made: list[int] = []
    make = factory.make
    factory.make = lambda clients: (made.append(len(clients)), make(clients))[1]  # type: ignore[method-assign]
    await factory.listen("127.0.0.1", 0)
    run = asyncio.ensure_future(hub.run())
    OPEN.clear()
    try:
        await act(hub, factory, clock, made)
    finally:
        for writer in OPEN:
            writer.transport.abort()
        factory.close()
        hub.stop()
        await run


def in_loop(
    act: Callable[[Hub, FactoryServer, Clock, list[int]], Awaitable[None]],
) -> None:
    asyncio.run(asyncio.wait_for(served(act), 100.0))


async def connect(
    factory: FactoryServer, source: str = "127.0.0.1"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(
        *factory.address, local_addr=(source, 0)
    )
    OPEN.append(writer)
    writer.write(HELLO)
    return reader, writer


async def until(holds: Callable[[], Any]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


def robots(hub: Hub) -> int:
    return len(hub.sim.robots) - 1


def test_many_at_once_are_made_together_and_removed_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(
        hub: Hub, factory: FactoryServer, clock: Clock, made: list[int]
    ) -> None:
        removed: list[int] = []
        remove = hub.sim.remove_robots

        def removing(names: Any) -> None:
            removed.append(len(names))
            remove(names)

        monkeypatch.setattr(hub.sim, "remove_robots", removing)
        clock.cost = 0.06
        ends = [await connect(factory) for _ in range(40)]
        await until(lambda: robots(hub) == 40)
        assert made[0] == 1, "the first is served at once"
        assert max(made) > 5, "those who wait are served together"
        assert max(made) <= CREATION_BATCH
        assert len({n for n in hub.sim.robots}) == 41
        clock.cost = 0.0
        for reader, _ in ends:
            assert (await reader.readexactly(6)) == frame(0)
        for _, writer in ends:
            writer.close()
        await until(lambda: robots(hub) == 0)
        assert len(removed) <= 20

    in_loop(act)


def test_work_has_a_part_of_the_time() -> None:
    async def act(
        hub: Hub, factory: FactoryServer, clock: Clock, made: list[int]
    ) -> None:
        # Each creation takes so long that no other follows the first one for minutes.
        clock.cost = 10.0
        await connect(factory)
        await until(lambda: made == [1])
        others = [await connect(factory) for _ in range(5)]
        await asyncio.sleep(0.3)
        assert made == [1]
        assert robots(hub) == 1
        for _, writer in others:
            writer.close()
        await until(lambda: not factory._workshop._count)
        assert not factory._workshop._waiting, "who goes waits no more"

    in_loop(act)


def test_addresses_take_turns_and_have_a_rate_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(
        hub: Hub, factory: FactoryServer, clock: Clock, made: list[int]
    ) -> None:
        clock.cost = 10.0
        await connect(factory)
        await until(lambda: made == [1])
        for _ in range(40):
            await connect(factory, "127.0.0.1")
        await connect(factory, "127.0.0.9")
        await until(lambda: factory._workshop._count == 41)
        clock.cost = 0.0
        # A full bucket acts as if minutes had passed.
        factory._workshop._room = TokenBucket(1.0, 1.0)
        await until(lambda: "127.0.0.9" in hub.sim.robots)
        assert made[1:3] == [CREATION_BATCH, 1], (
            "the second address comes before the rest of the first"
        )
        await until(lambda: robots(hub) == 42)
        monkeypatch.setattr(factory._workshop._sources, "_burst", 3.0)
        monkeypatch.setattr(factory._workshop._sources, "_buckets", {})
        monkeypatch.setattr(factory._workshop._sources, "_rate", 1e-6)
        for _ in range(6):
            await connect(factory, "127.0.0.1")
        await connect(factory, "127.0.0.9")
        await until(lambda: robots(hub) == 46)
        await asyncio.sleep(0.1)
        assert robots(hub) == 46, (
            "three of one address, one of the other; the rest waits"
        )

    in_loop(act)


def test_who_cannot_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 3)

    async def act(
        hub: Hub, factory: FactoryServer, clock: Clock, made: list[int]
    ) -> None:
        clock.cost = 10.0
        await connect(factory)
        await until(lambda: made == [1])
        ends = [await connect(factory) for _ in range(4)]
        assert await ends[3][0].read(100) == b"", "politely"
        assert factory._workshop._count == 3

    assert MAX_WAITING > 3
    in_loop(act)


def test_a_world_that_takes_no_robot_refuses(caplog: pytest.LogCaptureFixture) -> None:
    async def act(
        hub: Hub, factory: FactoryServer, clock: Clock, made: list[int]
    ) -> None:
        factory._places = lambda spec, count: [(float("nan"), 0.0, 0.0)] * count  # type: ignore[assignment,return-value]
        reader, _ = await connect(factory)
        assert await reader.read(100) == b""
        assert robots(hub) == 0

    in_loop(act)


def test_hundreds_are_removed_a_part_at_a_time() -> None:
    """The world goes on in between; removal of all at once is also possible."""

    async def act(
        hub: Hub, factory: FactoryServer, clock: Clock, made: list[int]
    ) -> None:
        sim, workshop = hub.sim, factory._workshop
        places = [
            (3.0 * (k % 20), 3.0 * (k // 20), 0.0) for k in range(4 * REMOVAL_BATCH)
        ]
        many = sim.add_robots(sim.robots["there"].spec, places)
        seen: list[int] = []
        remove = sim.remove_robots
        sim.remove_robots = lambda names: (seen.append(len(names)), remove(names))[1]  # type: ignore[method-assign,assignment]
        for robot in many[: 2 * REMOVAL_BATCH + 10]:
            workshop.remove(robot)
        async with asyncio.timeout(PATIENCE):
            while len(sim.robots) > 2 * REMOVAL_BATCH - 10 + 1:
                await asyncio.sleep(0.001)

        assert seen == [REMOVAL_BATCH, REMOVAL_BATCH, 10]
        for robot in many[2 * REMOVAL_BATCH + 10 :]:
            workshop.remove(robot)
        workshop.clear()
        assert list(sim.robots) == ["there"]

    asyncio.run(served(act))
