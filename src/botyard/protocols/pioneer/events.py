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
    """The client asks for the end of the whole simulation (SIM_EXIT); whether it may is the server's decision.

    Attributes
    ----------
    status : int
        Exit status.
    """

    status: int


Event = LogLine | SessionOpened | SessionClosed | ExitRequested
