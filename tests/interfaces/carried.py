"""A running simulator with an interface on a port, for tests of pumps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from botyard import Simulation
from botyard.app.compose import Parts, compose
from botyard.interfaces.interface import Interface
from botyard.servers.carriers import pump_of
from botyard.servers.pump import Pump
from tests.waiting import PATIENCE


@contextlib.asynccontextmanager
async def carried(
    interface: Interface, read_only: bool = False
) -> AsyncIterator[tuple[Parts, Pump]]:
    """Start two robots, ann and bob; the time of the block is limited."""
    sim = Simulation()
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(3.0, 0.0, 0.0))
    parts = compose(sim, interval=0.002, read_only=read_only)
    pump = pump_of(interface, interface.chosen({}), parts.hub, parts.control)
    assert isinstance(pump, Pump)
    await pump.start("127.0.0.1", 0)
    run = asyncio.create_task(parts.hub.run())
    try:
        async with asyncio.timeout(PATIENCE):
            yield parts, pump
    finally:
        await pump.stop()
        parts.hub.stop()
        await run
        parts.close()


async def until(what: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not what():
            await asyncio.sleep(0.001)
