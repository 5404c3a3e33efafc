"""Operations on single bodies in the terms of simulation_interfaces.

They set the state (pose and velocity) and client-defined information.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from botyard.api.arguments import found
from botyard.control.caller import Caller
from botyard.control.holds import check_hand
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
"""Maximum number of tags of a body."""


def a_twist(value: Any, what: str, /) -> Twist:
    """Return a velocity, checked to be three finite numbers within the engine's range.

    Parameters
    ----------
    value : tuple or list
        Velocity, m/s, m/s, rad/s.
    what : str
        Name of the argument, for the error.

    Raises
    ------
    ArgumentError
        The value is not three finite numbers within the engine's range.
    """
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        raise ArgumentError(
            f"{what}: expected three numbers, m/s, m/s and rad/s, found {found(value)}"
        )
    try:
        twist = Twist(*map(float, value))
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{what}: expected three numbers, m/s, m/s and rad/s, found {found(value)}"
        ) from None

    # The command checks the range of the twist.
    SetTwist(twist)
    return twist


@dataclass(frozen=True, kw_only=True)
class SetBodyState(Operation[None]):
    """Set the true pose or velocity of a robot or box, or both.

    The pose is in m, m, rad; the velocity in m/s, m/s, rad/s, in the axes of the world.

    Parameters
    ----------
    body : str
        Name of a robot or box.
    pose : Pose, optional
        True pose; None keeps it.
    twist : Twist, optional
        Velocity; None keeps it.
    """

    body: str = argument(name)
    pose: Pose | None = argument(optional(a_pose), None)
    twist: Twist | None = argument(optional(a_twist), None)

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the pose and the velocity of the body.

        Raises
        ------
        UnknownNameError
            No body has this name.
        CommandError
            The pose is out of range, or too many bodies are at one place.
        WorldError
            The body is static.
        NotNowError
            Another client holds the body.
        """
        sim, body = control.sim, self.body
        if body not in sim.snapshot.rows and body not in sim.fleet.rows:
            raise control.unknown(body)
        check_hand(control, body, caller)
        # Zero is a valid velocity of a static body, for clients that always send a
        # velocity.
        if self.twist is not None and any(self.twist) and not control.is_movable(body):
            raise WorldError(
                f"{shown(body)} is static: without a drive or a mass it has no velocity"
            )

        # Set the pose before the velocity, because a placement stops the body.
        if self.pose is not None:
            if not caller.ignores_crowd_limit:
                sim.core.overlap_limit.enter(body, self.pose.x, self.pose.y)
            sim.put(body, self.pose, caller.source)

        if self.twist is not None and control.is_movable(body):
            sim.core.accept_command(body, SetTwist(self.twist), caller.source)


@dataclass(frozen=True, kw_only=True)
class SetBodyInfo(Operation[None]):
    """Set client-defined information on a body.

    The information is a category (a number of simulation_interfaces), a description,
    and tags. It has no effect on the simulation.

    Parameters
    ----------
    body : str
        Name of a robot or box.
    category : int
        Category of simulation_interfaces (EntityCategory).
    description : str
        Text of at most 1000 characters.
    tags : tuple of str
        At most `MAX_TAGS` tags of at most 100 characters.
    """

    body: str = argument(name)
    category: int = argument(count(0, 255))
    description: str = argument(text(1000), "")
    tags: tuple[str, ...] = argument(each(text(100), MAX_TAGS), ())
    settles = False

    def perform(self, control: Site, caller: Caller) -> None:
        """Store the information on the body.

        Raises
        ------
        UnknownNameError
            No body has this name.
        """
        rows = control.sim.core.engine.rows
        if self.body not in rows:
            raise control.unknown(self.body)
        # Drop information on bodies that no longer exist, so that it cannot accumulate.
        control.infos = {
            body: entry for body, entry in control.infos.items() if body in rows
        }
        said = BodyInfo(self.category, self.description, self.tags)
        control.infos[self.body] = control.identity(self.body), said


__all__ = ["MAX_TAGS", "SetBodyInfo", "SetBodyState"]
