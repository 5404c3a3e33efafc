"""Events of a Pioneer session for the program that runs it.

They are flat values, read with `Session.next_event`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Level of a log line; values are the levels of the standard library's logging."""

    DEBUG = 10
    INFO = 20
    WARNING = 30


@dataclass(frozen=True, slots=True)
class LogLine:
    """Line for the robot's log.

    Attributes
    ----------
    level : Level
        Severity of the line.
    text : str
        The line. Text that the client has sent is in quotes, without control
        characters.
    """

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """Event: the handshake is complete, and the client has sent OPEN."""


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """Event: the session is over; close the connection after `data_to_send` is empty.

    Attributes
    ----------
    reason : str
        Reason, for the log.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ExitRequested:
    """Request to exit the whole simulation; the server checks whether the client may do so.

    Attributes
    ----------
    status : int
        Exit status of the simulator's process.
    command : str
        Name of the command, for the log.
    crash : bool
        Whether the simulator exits as if it had crashed.
    """

    status: int
    command: str = "SIM_EXIT"
    crash: bool = False


@dataclass(frozen=True, slots=True)
class MapRequested:
    """Request to load another map, which affects all clients.

    Attributes
    ----------
    name : str
        File name as the client gave it.
    master : bool
        Whether the client requests exclusive control of the map (SIM_CTRL 2).
    """

    name: str
    master: bool


@dataclass(frozen=True, slots=True)
class MasterCleared:
    """Event: exclusive control of the map is released (SIM_CTRL 3)."""


@dataclass(frozen=True, slots=True)
class LogRotationRequested:
    """Request to rotate the log file (SIM_CTRL 4)."""


@dataclass(frozen=True, slots=True)
class SnapshotRequested:
    """Request for a picture of the world in a file (SIM_CTRL 8).

    Attributes
    ----------
    name : str
        File name; empty if the server shall choose.
    """

    name: str


@dataclass(frozen=True, slots=True)
class StepsRequested:
    """Request to step the world (SIM_CTRL 207), or to let it run freely (208).

    Attributes
    ----------
    count : int or None
        Number of steps; None to run freely.
    """

    count: int | None


Request = (
    ExitRequested
    | MapRequested
    | MasterCleared
    | LogRotationRequested
    | SnapshotRequested
    | StepsRequested
)
"""Requests that concern the whole simulator."""

Event = LogLine | SessionOpened | SessionClosed | Request
