"""Operation that gives robots other names."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from botyard.api.arguments import found
from botyard.control.caller import Caller
from botyard.control.operation import Operation, argument, each, name
from botyard.control.site import Site
from botyard.errors import ArgumentError, NotNowError
from botyard.names import shown


def _pair(value: Any, what: str, /) -> tuple[str, str]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ArgumentError(f"{what}: expected two names, found {found(value)}")
    return name(value[0], what), name(value[1], what)


@dataclass(frozen=True, kw_only=True)
class RenameRobots(Operation[None]):
    """Give robots other names.

    A robot keeps its pose, sensors, controller, port and everything else. Its topics
    have the new name. From then on it has other random draws, because its name
    identifies it in them. Trailers are renamed with the robot that pulls them.

    A name stays while others use it: while a client is connected to the robot or commands
    it, a ROS node reads its topics, a client or a user holds it, a traffic run drives it,
    or the controller of another robot refers to it. Recordings continue: they hold the
    change.

    Parameters
    ----------
    names : tuple of (str, str)
        Present name and new name of each robot. Two robots can swap their names.
    """

    names: tuple[tuple[str, str], ...] = argument(each(_pair))
    audit = logging.INFO
    tells = (
        "the topics of the robots, their fields in metrics and their entries on the page "
        "have the new names; ports keep their numbers"
    )

    def perform(self, control: Site, caller: Caller) -> None:
        """Rename the robots: all of them, or none after an error.

        Raises
        ------
        UnknownNameError
            A robot does not exist.
        NameRuleError, NameTakenError
            A new name is not valid, or is the name of another body.
        NotNowError
            A name is in use.
        WorldError
            A robot is a trailer.
        """
        names = dict(self.names)
        if len(names) < len(self.names):
            raise ArgumentError(
                f"names: expected each robot once, found {len(self.names)} new names "
                f"for {len(names)} robots"
            )
        names = {old: new for old, new in names.items() if old != new}
        for old in names:
            if old not in control.sim.robots:
                raise control.unknown(old)
        for old, reason in uses_of(control, names):
            raise NotNowError(f"{shown(old)} keeps its name: {reason}")
        host = control.robot_host
        before = dict(control.sim.robots)
        renamed = control.sim.core.states.rename_robots(names)
        if control.undoing is not None:
            control.undoing.renamed(
                {
                    (old, before[old]): (new, control.identity(new))
                    for old, new in renamed.items()
                }
            )
        if host is not None:
            host.keep_ports({before[old]: new for old, new in names.items()})
        spawned = {new: control.spawned.pop(old, None) for old, new in names.items()}
        control.spawned.update(
            (n, one) for n, one in spawned.items() if one is not None
        )
        loaded = {names[old] for old in names.keys() & control.of_world}
        control.of_world = (control.of_world - names.keys()) | loaded
        infos = {new: control.infos.pop(old, None) for old, new in names.items()}
        for new, info in infos.items():
            if info is not None:
                control.infos[new] = control.identity(new), info[1]

    def summary(self, result: Any) -> str:
        """Return the line for the audit log."""
        if not self.names:
            return "no robot renamed"
        old, new = self.names[0]
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return f"{shown(old)} renamed {shown(new)}{more}"


def uses_of(control: Site, robots: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the reasons why robots keep their names.

    Parameters
    ----------
    control : Site
        Context of the operation.
    robots : collection of str
        Names of robots, with a fast test of membership.

    Yields
    ------
    (str, str)
        Name of a robot, and a reason.
    """
    sim = control.sim
    if control.robot_host is not None:
        yield from control.robot_host.uses_of(robots)
    driven = () if control.traffic is None else control.traffic.paths
    for robot in robots:
        if sources := sim.robots[robot].clients:
            yield robot, f"{shown(', '.join(sources), 100)} commands it"
        if robot in control.held or sim.core.holders(robot):
            yield robot, "it is held"
        if robot in driven:
            yield robot, "it has a path in the traffic run, which ends first"
    for other, program in sim.core.programs.by_robot.items():
        for text in _texts(program.options):
            if text != other and text in robots:
                yield (
                    text,
                    f"the controller {shown(program.name)} of {shown(other)} refers to it",
                )


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in an option of a controller, which may be names of robots."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)


__all__ = ["RenameRobots", "uses_of"]
