"""Registration, start and stop of all interfaces of a run.

Built-in interfaces and interfaces of other packages are treated alike.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping
from typing import Any

from botyard.app.builtin import INTERFACE_OPTIONS, NO_OPTIONS
from botyard.app.options import RunOptions
from botyard.app.served import PumpService, Run
from botyard.errors import PortError, WorldError
from botyard.interfaces.interface import Interface, Switch
from botyard.interfaces.registry import BUILT_IN, find_interface, parse_choice, plug_ins
from botyard.servers.addresses import is_loopback
from botyard.servers.pioneer.robot_servers import RobotServers

log = logging.getLogger("botyard.interfaces")


def _given(o: RunOptions) -> dict[str, dict[str, Any]]:
    """Return the values given by ``--interface``: options by name, for each named interface."""
    return {
        interface.name: given for interface, given in map(parse_choice, o.interface)
    }


def _switch(interface: Interface, given: Mapping[str, Any], run: Run) -> Switch:
    """Return the object that starts and stops an interface."""
    if interface.server is not None:
        return interface.server(run, interface)
    options = interface.chosen(given)
    if (
        "everybody" in options
        and "everybody" not in given
        and interface.name in BUILT_IN
    ):
        # The robots' own listening address decides whether other computers may connect.
        options["everybody"] = not is_loopback(run.o.bind_to_address)

    return PumpService(
        interface, options, options.get("port", interface.port), run.parts
    ).switch()


async def begin_interfaces(
    stack: contextlib.AsyncExitStack, run: Run, rest: Collection[str] = ()
) -> Mapping[str, Switch]:
    """Register all interfaces, and start the selected ones; they stop when `stack` is closed.

    Interfaces in `rest` are not started.

    Raises
    ------
    CommandLineError
        An interface or an option is unknown.
    BotyardError
        A selected interface cannot be started.
    """
    o, robot_servers, given = run.o, run.parts.robot_servers, _given(run.o)
    stack.push_async_callback(run.ros.close)
    asked: list[str] = []
    for name in BUILT_IN:
        interface, chosen_by = (
            find_interface(name),
            INTERFACE_OPTIONS.get(name, NO_OPTIONS),
        )
        if interface.command or not chosen_by.is_offered(o):
            continue
        _register(
            stack, robot_servers, name, _switch(interface, given.get(name, {}), run)
        )
        # Start only after all interfaces are registered: starting one may look up
        # another.
        asked += [name] if chosen_by.is_asked(o) and name not in rest else []

    others = {i.name: i for i in plug_ins()} | {
        n: find_interface(n) for n in given if n not in BUILT_IN
    }
    for name, interface in others.items():
        try:
            _register(
                stack, robot_servers, name, _switch(interface, given.get(name, {}), run)
            )
        except Exception as error:
            # Third-party declarations may raise any error.
            if name in given:
                raise
            log.warning("interface %s is not available: %r", name, error)

    for name in (*asked, *(n for n in given if n not in BUILT_IN)):
        await _start(robot_servers, name, o)
    return robot_servers.interfaces


def _register(
    stack: contextlib.AsyncExitStack,
    robot_servers: RobotServers,
    name: str,
    switch: Switch,
) -> None:
    """Register an interface, and stop it when the stack closes."""

    async def end() -> None:
        with contextlib.suppress(WorldError):
            await robot_servers.interfaces.switch(name, False)

    robot_servers.interfaces[name] = switch
    stack.push_async_callback(end)


async def _start(robot_servers: RobotServers, name: str, o: RunOptions) -> None:
    """Start an interface; only warn about a port in use if the interface allows that."""
    try:
        await robot_servers.interfaces.switch(name, True)
    except PortError as error:
        hint = INTERFACE_OPTIONS.get(name, NO_OPTIONS).tolerated(o)
        if hint is None:
            raise
        log.warning("%s; %s", error, hint)


__all__ = ["begin_interfaces"]
