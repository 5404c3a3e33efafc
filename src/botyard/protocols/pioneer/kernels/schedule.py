"""Kernels that find the sessions with something to do, in the columns of a `Roster`."""

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
"""Flag: the session sends further packets with its reports."""
PLAIN: Final = 16
"""Flag: the kernel `write_reports` can make the reports."""
PROMPT: Final = 32
"""Flag: the kernel `take_commands` can take commands."""

NEXT_SIP, LAST, HEARD, WATCHDOG, TIMES = 0, 1, 2, 3, 4
"""Columns of simulated times, µs, and their number.

They are the time of the next SIP, of the last step and of the last packet, and the
timeout of the watchdog.
"""
SENT, REPEAT, DEADLINE, SPOKE, WALLS = 0, 1, 2, 3, 4
"""Columns of wall times, s, and their number.

They are the times of the last report, of its repetition, of the next timeout, and of
the client's last packet.
"""
NEVER: Final = 1 << 62
"""Simulated time that is never reached, µs.

As the time of the last packet it shows that the watchdog has fired.
"""
SIP_PERIOD_US: Final = 100_000
"""Period of SIPs, µs of simulated time; longer steps have one SIP each."""
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
    """Find the sessions with a report after a step; return the time of the next timer, s.

    Their next reports are planned. The next timer is as of `find_expired`, and in the
    past if one has expired.

    Parameters
    ----------
    span : (2,) array
        First row, and end of the rows.
    time_us : int
        Simulated time, µs.
    now, repeat_after, apart : float
        Wall time, the time after which a report is repeated if no step follows, and the
        minimum time between two reports, s.
    times, walls, flags : arrays
        Columns of the sessions.
    found : (2, n) array
        Output: rows with a due report, and rows with work for the session itself.
    counts : (2,) array
        Output: the number of each.
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
        # The period is added to the due time, not to the present one, so that SIPs do
        # not drift.
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
        Output: rows whose report is repeated, and rows with a timeout.
    counts : (2,) array
        Output: the number of each.
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
