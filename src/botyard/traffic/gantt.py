"""Gantt charts of runs: motion and waits of robots, and occupied sectors."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Final

from botyard.errors import FormatError, WorldError
from botyard.extras import lacking
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.formats.jsonfile import loads
from botyard.names import shown
from botyard.processes.safefile import MARK, replacing, write_text

FORMATS: Final = (".svg", ".html", ".png", ".pdf")
MAX_SECTORS: Final = 60
"""Largest number of sectors in a chart; it shows the longest occupied ones."""
MAX_TITLE: Final = 200
"""Longest title, characters."""
MAX_ROWS_HEIGHT_IN: Final = 100.0
"""Largest height of all robot rows together, inches.

Rows of many robots become narrower.
"""
_COLORS: Final = {
    "goes": "#4c8dd6",
    "waits": "#d9534f",
    "occupied": "#8fbf7f",
    "critical": "#555555",
}


@dataclass(frozen=True, slots=True)
class Chart:
    """Contents of a Gantt chart; times in s.

    Attributes
    ----------
    robots : int
        Number of robots.
    end : float
        End of the run.
    goes, waits : list of (robot, start, end)
        Intervals in which a robot moves, and in which it must stand still.
    sectors : list of (robot, sector, start, end)
        Intervals in which a robot occupies a sector.
    grants : list of (robot, sector, start, end)
        Intervals in which a robot may enter a sector but has not entered it yet.
    asks : list of (robot, time)
        Times at which a robot passes a critical point, where it asks for a sector.
    title : str
        Title: the outcome.
    holders : list of (robot, start, robots)
        Waiting robot, start of the wait, and the robots it waits for, if these are
        known.
    """

    robots: int
    end: float
    goes: list[tuple[int, float, float]]
    waits: list[tuple[int, float, float]]
    sectors: list[tuple[int, int, float, float]]
    grants: list[tuple[int, int, float, float]]
    asks: list[tuple[int, float]]
    title: str
    holders: list[tuple[int, float, tuple[int, ...]]] = field(default_factory=list)


def chart_of(
    rows: Iterable[dict[str, Any]],
    robots: int,
    end: float,
    title: str = "",
    starts: Sequence[tuple[int, int]] | None = None,
) -> Chart:
    """Make a chart from events.

    Parameters
    ----------
    rows : iterable of dict
        Events in order of time with ``t``, s, ``robot``, ``kind``, ``sector``; events
        of the kind ``stop`` can have ``waits_for``.
    robots : int
        Number of robots.
    end : float
        End of the run, s, at which open intervals end.
    title : str
        Title of the chart.
    starts : sequence of (first, last), optional
        Sectors that each robot occupies at the start; by default its first one.
    """
    goes: list[tuple[int, float, float]] = []
    waits: list[tuple[int, float, float]] = []
    sectors: list[tuple[int, int, float, float]] = []
    grants: list[tuple[int, int, float, float]] = []
    asks: list[tuple[int, float]] = []
    holders: list[tuple[int, float, tuple[int, ...]]] = []
    since, state = [0.0] * robots, ["goes"] * robots
    spans = [(0, 0)] * robots if starts is None else starts
    inside = {
        (i, s): 0.0
        for i, (first, last) in enumerate(spans)
        for s in range(first, last + 1)
    }
    granted: dict[tuple[int, int], float] = {}

    def turn(i: int, t: float, to: str) -> None:
        # A robot that has finished neither moves nor waits, so its last interval stays
        # closed.
        if state[i] != "done" and t > since[i]:
            (goes if state[i] == "goes" else waits).append((i, since[i], t))
        if state[i] != "done":
            since[i], state[i] = t, to

    for row in rows:
        t, i, kind, sector = (
            float(row["t"]),
            int(row["robot"]),
            row["kind"],
            int(row.get("sector", -1)),
        )
        if kind == "stop":
            turn(i, t, "waits")
            if row.get("waits_for"):
                holders.append((i, t, tuple(row["waits_for"])))
        elif kind == "start":
            turn(i, t, "goes")
        elif kind == "finish":
            turn(i, t, "done")
        elif kind == "grant":
            granted[i, sector] = t
        elif kind == "enter":
            inside[i, sector] = t
            # A grant at the moment of entry would be a bar without length.
            if (begin := granted.pop((i, sector), t)) < t:
                grants.append((i, sector, begin, t))
        elif kind == "release":
            sectors.append((i, sector, inside.pop((i, sector), 0.0), t))
        elif kind == "critical":
            asks.append((i, t))

    for i in range(robots):
        turn(i, end, "done")
    sectors += [(i, sector, t, end) for (i, sector), t in inside.items() if end > t]
    grants += [(i, sector, t, end) for (i, sector), t in granted.items() if end > t]
    return Chart(robots, end, goes, waits, sectors, grants, asks, title, holders)


def draw(source: Any, path: Path, *, overwrite: bool = False) -> None:
    """Draw a run to a file in the format of its suffix.

    Parameters
    ----------
    source : Outcome or dict
        Outcome, or result as `Outcome.to_json` writes it, with its events.
    path : Path
        File to write. Its suffix is one of `FORMATS`.
    overwrite : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    KeptFileError
        The path is a file that botyard did not write, and `overwrite` is False.
    WorldError
        matplotlib is not installed; the suffix is unknown; the result has no events;
        the file cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise WorldError(
            f"{path}: expected a file name that ends in {', '.join(FORMATS)}"
        )

    result = (
        source
        if isinstance(source, dict)
        else source.to_json() | {"text": source.describe()}
    )
    if "events" not in result or "metrics" not in result:
        raise WorldError(
            "expected a result with its events, as --result writes it, found a "
            "result without events"
        )

    title = shown(result.get("text") or result["outcome"], MAX_TITLE)
    starts = (
        None
        if isinstance(source, dict)
        else [v.occupied() for v in source.task.vehicles]
    )
    chart = chart_of(
        result["events"],
        int(result["metrics"]["robots"]),
        float(result["time_s"]),
        title,
        starts,
    )
    try:
        if path.suffix.lower() == ".html":
            write_text(path, page(chart, result), force=overwrite)
            return

        kind = path.suffix.lower().removeprefix(".")
        with replacing(path, force=overwrite) as file:
            _figure(chart).savefig(
                file,
                format=kind,
                metadata={"Software" if kind == "png" else "Creator": MARK},
            )
    except OSError as error:
        raise WorldError(f"{path}: cannot be written: {error.strerror}") from None


def load_result(path: Path, budget: Budget = Budget()) -> dict[str, Any]:
    """Read a result file.

    Parameters
    ----------
    path : Path
        File that ``botyard traffic run --result`` wrote.
    budget : Budget
        Limits for reading the file.

    Returns
    -------
    dict
        Result as `Outcome.to_json` makes it. Only the key ``outcome`` is checked.

    Raises
    ------
    FormatError
        The file is not a result file.
    """
    meter = Meter(budget, str(path), FormatError)
    try:
        text = read_bytes(path, meter, FormatError).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"expected JSON in UTF-8, found other bytes: {error}", path
        ) from None

    data = loads(text, meter, FormatError)
    if not isinstance(data, dict) or "outcome" not in data:
        raise FormatError(
            'expected a result of "botyard traffic run --result", found another document',
            path,
        )
    return data


def _figure(chart: Chart) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise WorldError(lacking("a chart", "plots")) from None

    longest: dict[tuple[int, int], float] = {}
    for i, sector, begin, end in chart.sectors:
        longest[i, sector] = longest.get((i, sector), 0.0) + end - begin
    # Choose the sectors by duration, then order them by number for the reader.
    listed = sorted(sorted(longest, key=lambda s: -longest[s])[:MAX_SECTORS])
    rows = {s: n for n, s in enumerate(listed)}
    # A figure of many thousand rows would be larger than matplotlib can write.
    high = min(0.22 * chart.robots, MAX_ROWS_HEIGHT_IN)
    figure = Figure(
        figsize=(12.0, 1.6 + high + 0.16 * len(listed)), layout="constrained"
    )
    top, bottom = figure.subplots(
        2, 1, sharex=True, height_ratios=[high + 0.3, 0.16 * len(listed) + 0.3]
    )
    for bars, name in ((chart.goes, "goes"), (chart.waits, "waits")):
        top.barh(
            [b[0] for b in bars],
            [b[2] - b[1] for b in bars],
            left=[b[1] for b in bars],
            color=_COLORS[name],
            height=0.7,
            label=name,
        )

    top.plot(
        [a[1] for a in chart.asks],
        [a[0] for a in chart.asks],
        "|",
        color=_COLORS["critical"],
        label="asks",
    )
    # Rows that became narrow get fewer labels, so that the labels do not overlap.
    named = range(
        0, chart.robots, math.ceil(0.22 * chart.robots / MAX_ROWS_HEIGHT_IN) or 1
    )
    top.set_yticks(named, [f"robot {i}" for i in named], fontsize=7)
    top.invert_yaxis()
    top.legend(loc="upper right", fontsize=7, ncols=3)
    top.set_title(chart.title, fontsize=10, parse_math=False)
    visible = [s for s in chart.sectors if (s[0], s[1]) in rows]
    bottom.barh(
        [rows[s[0], s[1]] for s in visible],
        [s[3] - s[2] for s in visible],
        left=[s[2] for s in visible],
        color=_COLORS["occupied"],
        height=0.8,
    )
    bottom.set_yticks(range(len(listed)), [f"{i}:{s}" for i, s in listed], fontsize=6)
    bottom.set_ylabel("robot : sector", fontsize=8)
    bottom.margins(y=0.01)
    bottom.invert_yaxis()
    bottom.set_xlabel("simulated time, s")
    bottom.set_xlim(0.0, max(chart.end, 1e-9))
    return figure


def page(chart: Chart, result: dict[str, Any]) -> str:
    """Return a self-contained HTML page with the chart and a table of the metrics.

    Parameters
    ----------
    chart : Chart
        Contents of the chart.
    result : dict
        Result whose ``metrics`` are the rows of the table.

    Raises
    ------
    WorldError
        matplotlib is not installed.
    """
    text = StringIO()
    _figure(chart).savefig(text, format="svg")
    svg = text.getvalue()
    # The XML declaration before the SVG element is not valid inside HTML.
    svg = svg[svg.index("<svg") :]
    numbers = "".join(
        f"<tr><td>{html.escape(str(k).replace('_', ' '))}</td><td>{html.escape(f'{v:.6g}' if isinstance(v, float) else str(v))}</td></tr>"
        for k, v in result["metrics"].items()
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=generator content='{MARK}'>"
        "<meta name=viewport "
        f"content='width=device-width'><title>{html.escape(chart.title)}</title>"
        f"<style>body{{font:14px system-ui,sans-serif;margin:24px}}svg{{max-width:100%;"
        f"height:auto}}td{{padding:2px 16px 2px "
        f"0}}</style><h1>{html.escape(chart.title)}</h1>{svg}<table>{numbers}</table></html>\n"
    )


__all__ = ["FORMATS", "Chart", "chart_of", "draw", "load_result", "page"]
