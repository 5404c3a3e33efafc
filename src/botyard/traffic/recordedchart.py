"""Chart of a recorded run of traffic (`botyard.traffic.recorded`), from its events.

A recording comes from outside, and any program can write events into it. Events that
are not valid are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from botyard.errors import RecordingError
from botyard.names import shown
from botyard.recording.own_channels import unpack_json
from botyard.recording.track import Track
from botyard.traffic.gantt import MAX_TITLE, Chart, chart_of
from botyard.traffic.outcome import KINDS
from botyard.traffic.recorded import BEGIN, END

MAX_ROBOTS: Final = 20_000
"""Largest number of robots in a chart; events of further robots are left out."""
MAX_SECTOR: Final = 1_000_000
"""Largest number of a sector that an event may have."""
MAX_OCCUPIED: Final = 1_000
"""Largest number of sectors that a robot may occupy at the start."""
MAX_HOLDERS: Final = 100
"""Largest number of robots for which one robot may wait at a time."""
MAX_NAME: Final = 100
"""Longest name of a robot, characters."""


class RecordedChart(NamedTuple):
    """Chart of a recording, and the names of its robots by their numbers."""

    chart: Chart
    names: tuple[str, ...]


def recorded_chart(track: Track) -> RecordedChart | None:
    """Return the chart of the traffic in a recording.

    Parameters
    ----------
    track : Track
        Recording that was read, with its events.

    Returns
    -------
    RecordedChart or None
        None if the recording has no traffic.
    """
    begin: Mapping[str, Any] = {}
    rows: list[dict[str, Any]] = []
    title, end = "", 0.0
    for event in _events(track):
        kind = event.get("event")
        if kind == BEGIN:
            begin = event
        elif kind == END:
            title = shown(str(event.get("text", "")), MAX_TITLE)
            end = _number(event.get("t"))
        elif (row := _row(event)) is not None:
            rows.append(row)

    if not rows:
        return None
    highest = max(max(row["robot"], *row.get("waits_for", ()), 0) for row in rows)
    names = _names(begin.get("robots"), highest + 1)
    spans = _spans(begin.get("occupied"), len(names))
    # A recording that was cut off has no last event; it ends with its last tick.
    end = max(
        end if end > 0.0 else track.end * track.step, max(row["t"] for row in rows)
    )
    return RecordedChart(chart_of(rows, len(names), end, title, spans), names)


def _events(track: Track) -> Iterator[dict[str, Any]]:
    for data in track.said:
        try:
            yield unpack_json(data)
        except RecordingError:
            continue


def _row(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an event of traffic in the form that `chart_of` expects.

    Parameters
    ----------
    event : mapping
        Event as any program may have written it.

    Returns
    -------
    dict or None
        Time ``t``, s, ``robot``, ``kind`` and ``sector``, of a stop also ``waits_for``.
        None for other events, and for an invalid event.
    """
    kind, robot, sector = (
        event.get("event"),
        event.get("robot"),
        event.get("sector", event.get("other")),
    )
    time = _number(event.get("t"))
    if (
        kind not in KINDS
        or time < 0.0
        or not _is_index(robot, MAX_ROBOTS)
        or not _is_index(sector, MAX_SECTOR)
    ):
        return None

    row = {"t": time, "robot": robot, "kind": kind, "sector": sector}
    given = event.get("waits_for")
    if isinstance(given, list) and kind == "stop":
        row["waits_for"] = [
            other for other in given[:MAX_HOLDERS] if _is_index(other, MAX_ROBOTS)
        ]

    return row


def _number(value: Any) -> float:
    """Return a time, s; −1 if the value is not valid."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0.0 <= value < math.inf else -1.0


def _is_index(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit


def _names(robots: Any, least: int) -> tuple[str, ...]:
    """Return at least `least` names of robots; missing names are the numbers."""
    given = robots[:MAX_ROBOTS] if isinstance(robots, list) else []
    found = [
        shown(name, MAX_NAME) if isinstance(name, str) else f"robot {i}"
        for i, name in enumerate(given)
    ]
    return (*found, *(f"robot {i}" for i in range(len(found), least)))


def _spans(occupied: Any, robots: int) -> list[tuple[int, int]]:
    """Return the first and the last sector that each robot occupies at the start."""
    given = occupied if isinstance(occupied, list) else []
    return [_span(given[i]) if i < len(given) else (0, 0) for i in range(robots)]


def _span(value: Any) -> tuple[int, int]:
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(_is_index(sector, MAX_SECTOR) for sector in value)
    ):
        first, last = value
        return first, min(last, first + MAX_OCCUPIED - 1)

    return 0, 0


__all__ = ["RecordedChart", "recorded_chart"]
