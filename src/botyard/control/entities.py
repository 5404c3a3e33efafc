"""Operations on single bodies in the terms of simulation_interfaces: state (pose and
velocity), and what people say of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from botyard.control.caller import Caller
from botyard.control.operation import (
    Operation,
    a_pose,
    argument,
    count,
    each,
    name,
    optional,
    text,
)
from botyard.control.site import BodyInfo, Site
from botyard.errors import ArgumentError, WorldError
from botyard.geometry import Pose, Twist
from botyard.names import shown
from botyard.sim.twist import SetTwist

MAX_TAGS: Final = 100
"""Most tags of a body."""


def a_twist(value: Any, what: str, /) -> Twist:
    """A velocity of three numbers; their range is checked by the command."""
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        raise ArgumentError(f"{what}: expected three numbers, m/s, m/s and rad/s")
    try:
        twist = Twist(*map(float, value))
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{what}: expected three numbers, m/s, m/s and rad/s"
        ) from None

    SetTwist(twist)
    return twist


@dataclass(frozen=True, kw_only=True)
class SetBodyState(Operation[None]):
    """Set the true pose (m, m, rad) of a robot or box, its true velocity (m/s, m/s,
    rad/s, in the world's axes), or both.
    """

    body: str = argument(name)
    pose: Pose | None = argument(optional(a_pose), None)
    twist: Twist | None = argument(optional(a_twist), None)

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out. UnknownNameError, CommandError (an absurd pose, too many on one
        place), WorldError (it is static).
        """
        sim, body = control.sim, self.body
        if body not in sim.snapshot.rows and body not in sim.fleet.rows:
            raise control.unknown(body)
        if self.twist is not None and any(self.twist) and not control.is_movable(body):
            raise WorldError(
                f"{shown(body)} is static: it has neither a drive nor a mass, and no velocity"
            )

        if self.pose is not None:
            if not caller.ignores_crowd_limit:
                sim.crowd.enter(body, self.pose.x, self.pose.y)
            sim.put(body, self.pose, caller.source)

        if self.twist is not None and control.is_movable(body):
            sim.submit(body, SetTwist(self.twist), caller.source)


@dataclass(frozen=True, kw_only=True)
class SetBodyInfo(Operation[None]):
    """Set what others are told of a body: a category (a number of
    simulation_interfaces), a description, tags. Nothing moves by it.
    """

    body: str = argument(name)
    category: int = argument(count(0, 255))
    description: str = argument(text(1000), "")
    tags: tuple[str, ...] = argument(each(text(100), MAX_TAGS), ())
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Carry it out. UnknownNameError."""
        rows = control.sim.engine.rows
        if self.body not in rows:
            raise control.unknown(self.body)
        control.infos = {
            body: entry for body, entry in control.infos.items() if body in rows
        }
        said = BodyInfo(self.category, self.description, self.tags)
        control.infos[self.body] = control.identity(self.body), said


__all__ = ["MAX_TAGS", "SetBodyInfo", "SetBodyState"]
