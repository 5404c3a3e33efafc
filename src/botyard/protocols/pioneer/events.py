"""What a Pioneer session tells the program that runs it; flat values, read with `Session.next_event`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Weight of a log line; the numbers of the standard library's logging."""

    DEBUG = 10
    INFO = 20
    WARNING = 30


@dataclass(frozen=True, slots=True)
class LogLine:
    """Something for the log of this robot.

    Attributes
    ----------
    level : Level
        Weight.
    text : str
        The line. Text that came from the client is marked as such and has no control characters.
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
    """The client asks for the end of the whole simulation; whether it may is the server's decision.

    Attributes
    ----------
    status : int
        Exit status.
    command : str
        Which command it was, for the log.
    crash : bool
        It is to be as if the simulator had died.
    """

    status: int
    command: str = "SIM_EXIT"
    crash: bool = False


@dataclass(frozen=True, slots=True)
class MapRequested:
    """The client asks for another map, for everybody.

    Attributes
    ----------
    name : str
        File name as the client gave it.
    master : bool
        It wants to be the only one who chooses maps from now on (SIM_CTRL 2).
    """

    name: str
    master: bool


@dataclass(frozen=True, slots=True)
class MasterCleared:
    """Everybody may choose maps again (SIM_CTRL 3)."""


@dataclass(frozen=True, slots=True)
class LogRotationRequested:
    """The client asks for a new log file (SIM_CTRL 4)."""


@dataclass(frozen=True, slots=True)
class SnapshotRequested:
    """The client asks for a picture of the world, to be written to a file (SIM_CTRL 8).

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
        Steps to be made; None: time goes on by itself.
    """

    count: int | None


Request = ExitRequested | MapRequested | MasterCleared | LogRotationRequested | SnapshotRequested | StepsRequested
"""What a client may ask of the whole simulator."""

Event = LogLine | SessionOpened | SessionClosed | Request
