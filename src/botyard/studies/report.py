"""Report of a study: one self-contained HTML page with a table and plots.

Means and shares have 95 % confidence intervals.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from botyard.errors import CommandLineError
from botyard.extras import is_there, lacking
from botyard.names import shown
from botyard.pictures.reportpage import MAX_NAME, document, image
from botyard.processes.safefile import write_text
from botyard.studies.statistics import Interval
from botyard.studies.study import Study
from botyard.studies.summary import Group, Quantity, groups_of, quantities_of
from botyard.studies.table import Table

MAX_GROUPS: Final = 1000
"""Maximum number of rows in the report's table."""
MAX_PLOTS: Final = 60
"""Maximum number of plots."""
MAX_LINES: Final = 12
"""Maximum number of lines in a plot."""
MAX_DOTS: Final = 5000
"""Maximum number of runs shown as dots; beyond it, only every n-th run is drawn."""
MAX_BAD: Final = 50
"""Maximum number of listed runs that are not ok."""
BINS: Final = 10
"""Number of bins of a sampled parameter; each bin holds the same number of runs."""


def write_report(study: Study, path: Path, *, force: bool = False) -> None:
    """Write the report of all runs that have ended.

    Parameters
    ----------
    study : Study
        Study with its runs and results.
    path : Path
        File of the report.
    force : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    CommandLineError
        No run has ended, or matplotlib is not installed.
    KeptFileError
        The file exists, botyard did not write it, and `force` is False.
    OSError
        The file cannot be written.
    """
    if not is_there("matplotlib"):
        raise CommandLineError(lacking("a report", "studies"))
    table = study.table()
    write_text(path, _page(study, table), force=force)


def _page(study: Study, table: Table) -> str:
    """Return the HTML of the report.

    Parameters
    ----------
    study : Study
        The study, for the counts and the runs that are not ok.
    table : Table
        Table of the study's results.
    """
    grid = list(study.plan.keys.grid)
    quantities = quantities_of(table)
    counts = ", ".join(
        f"{number} {name}" for name, number in study.counts().items() if number
    )
    pictures = [
        image(figure, name)
        for name, figure in itertools.islice(
            _figures(study, table, quantities), MAX_PLOTS
        )
    ]
    parts = [
        f"<p>{len(study.runs)} runs: {counts}.",
        "Means of the runs that are ok, with 95 % intervals (Student's t); "
        "shares with Wilson's intervals.</p>",
        _table(groups_of(table, grid), grid, quantities, table.units),
        *pictures,
        _bad(study),
    ]
    return document(study.plan.name, parts)


# -- the table


def _table(
    groups: Sequence[Group],
    grid: Sequence[str],
    quantities: Sequence[Quantity],
    units: dict[str, str],
) -> str:
    """Return an HTML table of means and shares, with a row for each point of the grid.

    Parameters
    ----------
    groups : sequence of Group
        Points of the grid; the first `MAX_GROUPS` are shown.
    grid : sequence of str
        Names of the parameters of the grid.
    quantities : sequence of Quantity
        Results, one column each.
    units : dict
        Units of the parameters that have one.

    Returns
    -------
    str
        HTML; all names and values are escaped.
    """
    heads = [
        *(f"<th class='t'>{_label(name, units.get(name, ''))}</th>" for name in grid),
        "<th>runs</th>",
        "<th>ok</th>",
    ]
    heads += [f"<th>{_label(q.name, q.unit)}</th>" for q in quantities]
    rows = [f"<tr>{''.join(heads)}</tr>"]
    for group in groups[:MAX_GROUPS]:
        cells = [
            f"<td class='t'>{html.escape(shown(str(value), MAX_NAME))}</td>"
            for value in group.values.values()
        ]
        cells += [f"<td>{group.count}</td>", f"<td>{len(group.rows)}</td>"]
        cells += [
            f"<td>{_words(q.interval(group.rows), q.is_share)}</td>" for q in quantities
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")

    more = (
        f"<p>… and {len(groups) - MAX_GROUPS} more points.</p>"
        if len(groups) > MAX_GROUPS
        else ""
    )
    return f"<table>{''.join(rows)}</table>{more}"


def _label(name: str, unit: str) -> str:
    """Return a name with its unit, escaped for HTML.

    Parameters
    ----------
    name : str
        Name of a parameter or result, which is cut if it is long.
    unit : str
        Its unit; empty: none.
    """
    return html.escape(shown(f"{name} [{unit}]" if unit else name, MAX_NAME))


def _words(one: Interval, is_share: bool) -> str:
    """Return an estimate with its interval and the number of values.

    Parameters
    ----------
    one : Interval
        The estimate. Without values the text is a dash, and without an interval the
        estimate alone.
    is_share : bool
        Whether the estimate is a share, which is shown in percent.

    Returns
    -------
    str
        HTML.
    """
    if not one.number:
        return "–"
    scale, sign = (100.0, " %") if is_share else (1.0, "")
    if math.isnan(one.low):
        return f"{scale * one.value:.4g}{sign}"
    text = f"{scale * one.low:.4g} … {scale * one.high:.4g}"
    return (
        f"{scale * one.value:.4g}{sign} <span class='i'>({text}; {one.number})</span>"
    )


def _bad(study: Study) -> str:
    """Return an HTML list of the runs that are not ok.

    Parameters
    ----------
    study : Study
        The study; the first `MAX_BAD` of these runs are shown, in the plan's order.

    Returns
    -------
    str
        HTML; empty if all runs that have ended are ok.
    """
    bad = [
        row
        for run in study.runs
        if (row := study.rows.get(run.key)) is not None and row.status != "ok"
    ]
    if not bad:
        return ""
    lines = []
    for row in bad[:MAX_BAD]:
        values = ", ".join(
            f"{name}={value}"
            for name, value in [*row.values.items(), ("seed", row.seed)]
        )
        cells = (row.status, values, row.error, str(study.folder.log(row.key)))
        lines.append(
            "<tr>"
            + "".join(
                f"<td class='t'>{html.escape(shown(cell, 300))}</td>" for cell in cells
            )
            + "</tr>"
        )

    more = f"<p>… and {len(bad) - MAX_BAD} more.</p>" if len(bad) > MAX_BAD else ""
    heads = "".join(
        f"<th class='t'>{word}</th>" for word in ("status", "run", "error", "log")
    )
    return f"<h2>Not ok</h2><table><tr>{heads}</tr>{''.join(lines)}</table>{more}"


# -- plots


def _figures(study: Study, table: Table, quantities: Sequence[Quantity]) -> Any:
    """Yield plots with their names.

    Each quantity is plotted over the main parameter of the grid, and over each sampled
    parameter.

    Parameters
    ----------
    study : Study
        The study, for the parameters of its plan.
    table : Table
        Table of the study's results.
    quantities : sequence of Quantity
        Results to plot.

    Yields
    ------
    figure : Figure
        The plot.
    name : str
        Its name: ``result over parameter``.
    """
    grid = study.plan.keys.grid
    # The main parameter is the numeric one with the most values.
    along = max(
        grid, key=lambda name: (_are_numbers(grid[name]), len(grid[name])), default=None
    )
    samples = list(study.plan.keys.sample.values) if study.plan.keys.sample else []
    for q in quantities:
        if along is not None and len(grid[along]) > 1:
            yield (
                f"{q.name} over {along}",
                _over_grid(table, q, along, [name for name in grid if name != along]),
            )

        for name in samples:
            assert study.plan.keys.sample is not None
            is_log = study.plan.keys.sample.values[name].log is not None
            yield f"{q.name} over {name}", _over_sample(table, q, name, is_log)


def _are_numbers(values: Sequence[Any]) -> bool:
    """Return whether all values are numbers; booleans are not."""
    return all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
    )


def _axes(table: Table, q: Quantity, name: str) -> tuple[Any, Any]:
    """Return a figure and its labelled axes.

    Parameters
    ----------
    table : Table
        Table, for the unit of the parameter.
    q : Quantity
        Quantity of the vertical axis.
    name : str
        Parameter of the horizontal axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    unit = table.units.get(name, "")
    # Math mode is off: a name with dollar signs would raise an error or look different.
    axes.set_xlabel(
        shown(f"{name} [{unit}]" if unit else name, MAX_NAME), parse_math=False
    )
    axes.set_ylabel(
        shown(f"{q.name} [{q.unit}]" if q.unit else q.name, MAX_NAME), parse_math=False
    )
    axes.grid(True, alpha=0.3)
    if q.is_share:
        # A small margin keeps points at 0 and 1 visible.
        axes.set_ylim(-0.03, 1.03)
    return figure, axes


def _over_grid(table: Table, q: Quantity, along: str, others: Sequence[str]) -> Any:
    """Plot a quantity over one parameter, with a line per value of the others.

    Parameters
    ----------
    table : Table
        Table of the study's results.
    q : Quantity
        Quantity to plot.
    along : str
        Parameter of the horizontal axis. Values that are not numbers get equal spacing.
    others : sequence of str
        Other parameters of the grid. Each combination of their values is a line; the
        first `MAX_LINES` are drawn.
    """
    figure, axes = _axes(table, q, along)
    values = list(dict.fromkeys(str(value) for value in table.columns[along]))
    are_numbers = _are_numbers(table.columns[along])
    lines: dict[str, list[tuple[float, Interval]]] = {}
    for group in groups_of(table, [*others, along]):
        value = group.values[along]
        one = q.interval(group.rows)
        if one.number:
            label = ", ".join(f"{name} {group.values[name]}" for name in others)
            lines.setdefault(label, []).append(
                (float(value) if are_numbers else values.index(str(value)), one)
            )

    for label, line in itertools.islice(lines.items(), MAX_LINES):
        _bars(axes, sorted(line), shown(label, MAX_NAME).replace("$", r"\$"))
    if not are_numbers:
        axes.set_xticks(
            range(len(values)), [shown(value, 20) for value in values], parse_math=False
        )

    if others and lines:
        axes.legend(fontsize=7)
    if len(lines) > MAX_LINES:
        axes.set_title(f"the first {MAX_LINES} of {len(lines)} lines", fontsize=8)
    return figure


def _over_sample(table: Table, q: Quantity, name: str, is_log: bool) -> Any:
    """Plot runs as dots, and means of bins that hold the same number of runs.

    Parameters
    ----------
    table : Table
        Table of the study's results.
    q : Quantity
        Quantity to plot.
    name : str
        Sampled parameter of the horizontal axis.
    is_log : bool
        Whether the axis is logarithmic, as for a log-uniform parameter.
    """
    figure, axes = _axes(table, q, name)
    if is_log:
        axes.set_xscale("log")
    rows = [
        row
        for row in range(len(table))
        if q.values[row] is not None and table.columns["status"][row] == "ok"
    ]
    rows.sort(key=lambda row: (table.columns[name][row], row))
    shown_rows = rows[:: 1 + len(rows) // MAX_DOTS]
    axes.plot(
        [table.columns[name][row] for row in shown_rows],
        [float(q.values[row]) for row in shown_rows],
        ".",
        ms=3,
        alpha=0.3,
        color="gray",
    )
    size = max(2, math.ceil(len(rows) / BINS))
    line = []
    for begin in range(0, len(rows), size):
        some = rows[begin : begin + size]
        line.append(
            (float(table.columns[name][some[len(some) // 2]]), q.interval(some))
        )

    _bars(axes, line, "")
    return figure


def _bars(axes: Any, line: Sequence[tuple[float, Interval]], label: str) -> None:
    """Draw a line of estimates with their intervals as error bars.

    Parameters
    ----------
    axes : Axes
        Axes of matplotlib.
    line : sequence of (float, Interval)
        Places on the horizontal axis, with their estimates.
    label : str
        Text of the legend; empty: none.
    """
    x = [place for place, _ in line]
    y = [one.value for _, one in line]
    down = [
        0.0 if math.isnan(one.low) else max(0.0, one.value - one.low) for _, one in line
    ]
    up = [
        0.0 if math.isnan(one.high) else max(0.0, one.high - one.value)
        for _, one in line
    ]
    axes.errorbar(
        x, y, yerr=[down, up], marker="o", ms=4, capsize=3, lw=1.2, label=label or None
    )


__all__ = ["write_report"]
