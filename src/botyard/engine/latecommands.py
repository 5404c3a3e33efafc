"""Delayed commands of motion as rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from botyard.engine.commands import (
    Command,
    EmergencyStop,
    MoveBy,
    SetVelocity,
    Stop,
    TurnBy,
    TurnTo,
)
from botyard.engine.steering import SetSteering

# Only the end may grow: states of older versions have the numbers.
LATE: Final = (
    SetVelocity,
    MoveBy,
    TurnTo,
    TurnBy,
    Stop,
    EmergencyStop,
    SetSteering,
)
"""Classes of motion commands, which a channel can delay."""
KINDS: Final[dict[type, int]] = {kind: number for number, kind in enumerate(LATE)}
VELOCITY: Final = KINDS[SetVelocity]
"""Value of the mark `KIND` for a velocity command."""
KIND, SOURCE, SEQUENCE = 0, 1, 2
"""Marks of a command under way.

The marks are its index in `LATE`, the number of its source in `Channels`, and its number
among the commands of the engine.
"""
WIDTH: Final = 3
"""Number of values, and of marks, of a command under way."""


def encode(command: Command) -> tuple[float, float, float]:
    """Return the values that represent a command in a ring; see `Channels`."""
    given: tuple[float | None, ...] = ()
    if isinstance(command, SetVelocity):
        given = command.v, command.vy, command.w
    elif isinstance(command, MoveBy):
        given = (command.distance,)
    elif isinstance(command, TurnTo):
        given = (command.heading,)
    elif isinstance(command, TurnBy):
        given = (command.angle,)
    elif isinstance(command, SetSteering):
        given = command.angle, command.v, command.rate
    a, b, c = (math.nan if x is None else float(x) for x in (*given, *(None,) * 3)[:3])
    return a, b, c


def decode(kind: int, values: Sequence[float]) -> Command:
    """Return the command that a kind and the values in a ring represent."""
    a, b, c = (None if math.isnan(value) else value for value in values)
    made = LATE[kind]
    if made is SetVelocity:
        return SetVelocity(v=a, vy=b, w=c)
    if made is SetSteering:
        assert a is not None
        return SetSteering(a, b, c)
    # A command to stop has no value.
    return made() if a is None else made(a)  # type: ignore[call-arg]


def scaled(command: SetVelocity, x: float, y: float, a: float) -> SetVelocity:
    """Return a velocity command multiplied by the scale of a channel.

    Parameters
    ----------
    command : SetVelocity
        Velocity: m/s, m/s, rad/s.
    x, y, a : float
        Factors of forward, left and turn; 1 for a channel that does not scale.

    Returns
    -------
    SetVelocity
        `command` itself if all factors are 1.
    """
    if x == y == a == 1.0:
        return command
    return replace(
        command,
        v=None if command.v is None else command.v * x,
        vy=None if command.vy is None else command.vy * y,
        w=None if command.w is None else command.w * a,
    )


__all__ = [
    "KIND",
    "KINDS",
    "LATE",
    "SEQUENCE",
    "SOURCE",
    "VELOCITY",
    "WIDTH",
    "decode",
    "encode",
    "scaled",
]
