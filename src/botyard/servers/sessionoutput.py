"""Output and timers of sessions, checked because sessions may come from other packages."""

from __future__ import annotations

import math
from typing import Final

from botyard.interfaces.interface import Session
from botyard.names import shown

MIN_TIMER_S: Final = 0.001
"""Minimum delay of a session's timer, s.

A session that is always due must not use up the time of other sessions.
"""


def bytes_of(session: Session) -> bytes:
    """Return the bytes that a session has to send.

    Raises
    ------
    TypeError
        The session returns another type.
    """
    return as_bytes(session.data_to_send())


def as_bytes(found: object) -> bytes:
    """Check that output of a session is bytes, and return it.

    Raises
    ------
    TypeError
        The output has another type.
    """
    if not isinstance(found, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"data_to_send: expected bytes, found {shown(repr(found), 100)}"
        )

    return bytes(found)


def timer_of(session: Session, now: float) -> float | None:
    """Return the time of a session's next timer on the loop's clock, s; None if unset.

    Parameters
    ----------
    session : Session
        Session of an interface. Its result is checked, because it may come from another
        package.
    now : float
        Time of the event loop, s.

    Raises
    ------
    TypeError
        The session returns another type or NaN. The event loop sorts its timers by
        these times, so NaN would break the order of all timers.
    """
    when = session.next_timer()
    if when is None or when == math.inf:
        return None
    if not isinstance(when, (int, float)) or math.isnan(when):
        raise TypeError(
            f"next_timer: expected a time or None, found {shown(repr(when), 100)}"
        )

    return max(float(when), now + MIN_TIMER_S)


__all__ = ["MIN_TIMER_S", "as_bytes", "bytes_of", "timer_of"]
