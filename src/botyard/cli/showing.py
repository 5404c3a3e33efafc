"""Serving of a simulation that a command has made: ``replay`` and ``demo``."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import click

from botyard.app.options import RunOptions
from botyard.cli import interrupts

if TYPE_CHECKING:
    from botyard.app.compose import Parts
    from botyard.app.page import Page
    from botyard.sim.simulation import Simulation


async def show(
    sim: Simulation,
    o: RunOptions,
    ready: Callable[[str | None], str],
    *,
    rest: Collection[str] = (),
    prepare: Callable[[Parts], None] = lambda parts: None,
    on_page: Callable[[Parts, Page], None] = lambda parts, page: None,
) -> int:
    """Serve a simulation with its robots until a signal or the page ends the program.

    Parameters
    ----------
    sim : Simulation
        World with its robots.
    o : RunOptions
        Options of the command.
    ready : callable
        Returns the line to print when the simulation runs. Its argument is the URL of
        the page; None: there is no page.
    rest : collection of str
        Names of the interfaces that are not started.
    prepare : callable
        Called with the assembled simulator (`botyard.app.assembly`) before its ports open.
    on_page : callable
        Called with the assembled simulator and its page, before a browser opens the page.

    Returns
    -------
    int
        Exit status.
    """
    import asyncio

    from botyard.app.assembly import assemble, open_interfaces
    from botyard.model.world import Settings, World
    from botyard.servers.throttledlog import watch_over

    watch_over(asyncio.get_running_loop(), logging.getLogger("botyard"))
    place = World(scene=sim.scene, settings=Settings(step=sim.dt))
    parts = assemble(sim, place, o, None)
    prepare(parts)
    async with contextlib.AsyncExitStack() as stack:
        try:
            parts.robot_servers.adopt()
            doors = await open_interfaces(stack, parts, o, {}, rest=rest)
            url = None
            if not o.no_gui:
                from botyard.cli.page import greet

                page = doors.page()
                on_page(parts, page)
                greet(stack, page, parts.robot_servers, o, False, lambda: "")
                url = page.url

            interrupts.ready(parts.hub.stop)
            click.echo(ready(url))
            return await parts.hub.run()
        finally:
            parts.close()
            # One turn of the event loop sends the last bytes.
            await asyncio.sleep(0)

    # Never reached: the stack suppresses no exception.
    raise AssertionError


__all__ = ["show"]
