"""Kernels that find the sessions with due reports or timeouts, in the columns of a `Roster`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.protocols.pioneer.kernels.jit import entry_kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

OPEN: Final = 1
"""Flag: the session has sent OPEN, so that it gets reports."""
BOARD: Final = 2
"""Flag: functions of the controller board must run after each step."""
SILENT: Final = 4
"""Flag: the client has been silent for so long that it gets no reports."""
EXTRA: Final = 8
"""Flag: the session sends other packets together with its reports."""
PLAIN: Final = 16
"""Flag: the kernel `write_reports` can make the reports."""
PROMPT: Final = 32
"""Flag: the kernel `take_commands` may execute the client's commands."""

NEXT_SIP, LAST, HEARD, WATCHDOG, TIMES = 0, 1, 2, 3, 4
"""Columns of simulated times, µs, and (`TIMES`) their number.

The times are: next SIP, last step, last packet of the client, and the watchdog's
timeout.
"""
SENT, REPEAT, DEADLINE, SPOKE, WALLS = 0, 1, 2, 3, 4
"""Columns of wall times, s, and (`WALLS`) their number.

The times are: last report, repetition of the report, next timeout, last packet of the
client.
"""
NEVER: Final = 1 << 62
"""Simulated time that is never reached, µs.

In the column HEARD it means that the watchdog has fired.
"""
SIP_PERIOD_US: Final = 100_000
"""Period of SIPs, µs of simulated time. If steps are longer, each step has one SIP."""
MIN_WALL_PERIOD: Final = 0.01
"""Minimum wall time between SIPs, s, for runs faster than real time."""
REPEAT_PERIOD: Final = 0.1
"""Period of repeated reports, s, so that clients do not time out."""


@entry_kernel
def find_due(
    span: I8,
    time_us: int,
    now: float,
    repeat_after: float,
    apart: float,
    times: I8,
    walls: F8,
    flags: I8,
    found: I8,
    counts: I8,
) -> float:
    """Find the sessions with a due report after a step; return the time of the next timer, s.

    The next reports of these sessions are scheduled. The next timer is the earliest
    time at which `find_expired` has work; it is in the past if a timer has expired.

    Parameters
    ----------
    span : (2,) array
        First row, and row after the last one.
    time_us : int
        Simulated time, µs.
    now : float
        Wall time, s.
    repeat_after : float
        Wall time after which a report is repeated if no step follows, s.
    apart : float
        Least wall time between two reports, s.
    times, walls, flags : arrays
        Columns of the sessions.
    found : (2, n) array
        Output: rows with a due report; rows whose session must do other work.
    counts : (2,) array
        Output: numbers of rows in the two rows of `found`.
    """
    due = asking = 0
    wake = math.inf
    for i in range(span[0], span[1]):
        flag = flags[i]
        wake = min(wake, walls[i, DEADLINE])
        if not flag & OPEN:
            wake = min(wake, walls[i, REPEAT])
            continue
        # The simulation has gone back to an earlier moment.
        if time_us < times[i, LAST]:
            times[i, NEXT_SIP] = 0
            if times[i, HEARD] != NEVER:
                times[i, HEARD] = time_us

        times[i, LAST] = time_us
        if flag & BOARD or time_us - times[i, HEARD] > times[i, WATCHDOG]:
            found[1, asking] = i
            asking += 1

        # In fast runs clients could not read a SIP for each simulated period.
        waited = now - walls[i, SENT]
        if time_us < times[i, NEXT_SIP] or 0.0 <= waited < apart:
            wake = min(wake, walls[i, REPEAT])
            continue
        # Add the period to the due time, not to the present time, so that SIPs do not
        # drift.
        times[i, NEXT_SIP] += SIP_PERIOD_US
        # Skip missed periods after a long step, and start at the first SIP.
        if times[i, NEXT_SIP] <= time_us:
            times[i, NEXT_SIP] = time_us - time_us % SIP_PERIOD_US + SIP_PERIOD_US
        walls[i, REPEAT] = now + repeat_after
        wake = min(wake, walls[i, REPEAT])
        if flag & SILENT:
            walls[i, SENT] = now
        else:
            found[0, due] = i
            due += 1

    counts[0], counts[1] = due, asking
    return wake


@entry_kernel
def find_expired(
    span: I8, now: float, walls: F8, flags: I8, found: I8, counts: I8
) -> float:
    """Find the sessions with an expired timer; return the time of the next timer, s.

    Parameters
    ----------
    span, now, walls, flags
        See `find_due`.
    found : (2, n) array
        Output: rows whose report must be repeated; rows with a timeout.
    counts : (2,) array
        Output: numbers of rows in the two rows of `found`.
    """
    due = asking = 0
    wake = math.inf
    for i in range(span[0], span[1]):
        if walls[i, DEADLINE] <= now:
            found[1, asking] = i
            asking += 1
        elif walls[i, REPEAT] <= now:
            walls[i, REPEAT] = now + REPEAT_PERIOD
            if flags[i] & SILENT:
                walls[i, SENT] = now
            else:
                found[0, due] = i
                due += 1
        else:
            wake = min(wake, walls[i, DEADLINE], walls[i, REPEAT])

    counts[0], counts[1] = due, asking
    return wake


__all__ = ["find_due", "find_expired"]
