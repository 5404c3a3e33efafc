"""Interfaces of other packages in a running simulator: to be switched on the page, or on from the start."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from botyard.app.compose import Parts
from botyard.errors import WorldError
from botyard.interfaces.registry import Interface, Switch, parse_choice, plug_ins
from botyard.servers.pump import Pump, pump_of

log = logging.getLogger("botyard.interfaces")


class PlugIn:
    """An interface with its options, and what carries it while it is on.

    Parameters
    ----------
    interface : Interface
        What it is.
    options : mapping of str to object
        All of its options (`Interface.chosen`).
    parts : Parts
        The simulator.
    """

    def __init__(self, interface: Interface, options: Mapping[str, Any], parts: Parts) -> None:
        self.interface = interface
        self.pump: Pump | None = None
        self._options = options
        self._parts = parts

    async def start(self) -> None:
        """Serve clients.

        Raises
        ------
        WorldError
            Something that it needs is not installed.
        PortError
            Its port cannot be had.
        """
        lacks = self.interface.lacks()
        if lacks:
            raise WorldError(lacks)
        if self.pump is not None:
            return
        pump = pump_of(self.interface, self._options, self._parts.hub, self._parts.control)
        await pump.start(self._parts.yard.host, self._options["port"])
        self.pump = pump
        log.info("%s: port %d of %s", self.interface.about, pump.address[1], pump.address[0])

    async def stop(self) -> None:
        """Serve nobody any more."""
        pump, self.pump = self.pump, None
        if pump is not None:
            await pump.stop()

    def switch(self) -> Switch:
        """What the page shows."""
        return Switch(self.interface.about, False, self.start, self.stop, self.interface.lacks)


async def begin_plugins(stack: contextlib.AsyncExitStack, parts: Parts, choices: Iterable[str]) -> dict[str, PlugIn]:
    """Register the interfaces of other packages, and start those of `choices` (``NAME:OPTION=VALUE,…``), until the stack is left.

    Raises
    ------
    CommandLineError
        There is no such interface, or it does not know an option.
    BotyardError
        One that was asked for cannot be started.
    """
    wanted = dict((interface.name, (interface, options)) for interface, options in map(parse_choice, choices))
    known = {i.name: (i, i.chosen({})) for i in plug_ins() if i.carrier.value != "own"} | wanted
    found = {name: PlugIn(interface, options, parts) for name, (interface, options) in known.items()}
    for name, plugin in found.items():
        parts.yard.interfaces[name] = plugin.switch()
        stack.push_async_callback(plugin.stop)
    for name in wanted:
        await parts.yard.switch(name, True)
    return found


__all__ = ["PlugIn", "begin_plugins"]
