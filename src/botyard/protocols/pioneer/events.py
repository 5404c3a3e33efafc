"""Events of a Pioneer session for the program that runs it; flat values, read with
`Session.next_event`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Level of a log line; values are those of the standard library's logging."""

    DEBUG = 10
    INFO = 20
    WARNING = 30


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line for the robot's log.

    Attributes
    ----------
    level : Level
        Severity.
    text : str
        The line. Text that came from the client is marked as such and has no control
        characters.
    """

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The handshake is complete and the client has sent OPEN."""


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session is over; the connection is to be closed once `data_to_send` is empty.

    Attributes
    ----------
    reason : str
        For the log.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ExitRequested:
    """The client requests the end of the whole simulation; the server decides whether
    it is permitted.

    Attributes
    ----------
    status : int
        Exit status.
    command : str
        Which command it was, for the log.
    crash : bool
        End as in a crash of the simulator.
    """

    status: int
    command: str = "SIM_EXIT"
    crash: bool = False


@dataclass(frozen=True, slots=True)
class MapRequested:
    """The client requests another map, for all clients.

    Attributes
    ----------
    name : str
        File name as the client gave it.
    master : bool
        It requests exclusive control of the map (SIM_CTRL 2).
    """

    name: str
    master: bool


@dataclass(frozen=True, slots=True)
class MasterCleared:
    """Exclusive control of the map is released (SIM_CTRL 3)."""


@dataclass(frozen=True, slots=True)
class LogRotationRequested:
    """The client requests a rotation of the log file (SIM_CTRL 4)."""


@dataclass(frozen=True, slots=True)
class SnapshotRequested:
    """The client requests a picture of the world, written to a file (SIM_CTRL 8).

    Attributes
    ----------
    name : str
        File name; empty: the server chooses.
    """

    name: str


@dataclass(frozen=True, slots=True)
class StepsRequested:
    """The client steps the world (SIM_CTRL 207), or lets it run free (208).

    Attributes
    ----------
    count : int or None
        Number of steps; None: run freely.
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
