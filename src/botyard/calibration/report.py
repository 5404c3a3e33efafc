"""Reports of calibrations: a table for the terminal, and a self-contained HTML page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from botyard.calibration.calibration import Calibration
from botyard.calibration.fitting import UNTOLD_SHARE, Fit, Value
from botyard.calibration.motion import MotionFit
from botyard.calibration.odometry import OdometryFit
from botyard.calibration.ranges import RangeFit
from botyard.calibration.reflectors import ReflectorFit
from botyard.errors import CommandLineError
from botyard.extras import is_there, lacking
from botyard.pictures.reportpage import document, escaped, image, plain_table
from botyard.processes.safefile import write_text

BINS: Final = 60
HEADS: Final = ("value", "fitted", "95 % interval", "before", "unit", "description")


def value_rows(values: tuple[Value, ...]) -> list[tuple[str, ...]]:
    """Return a table row for each value, with the columns `HEADS`."""
    rows: list[tuple[str, ...]] = []
    for one in values:
        before = "" if math.isnan(one.before) else f"{one.before:.5g}"
        fitted, interval = (
            "undetermined",
            "" if math.isnan(one.low) else f"at least {one.low:.5g}",
        )
        if one.is_determined:
            fitted, interval = f"{one.value:.5g}", f"{one.low:.5g} … {one.high:.5g}"
        rows.append((one.name, fitted, interval, before, one.unit, one.about))

    return rows


def write_report(found: Calibration, path: Path, *, force: bool = False) -> None:
    """Write the report of a calibration as an HTML page.

    Parameters
    ----------
    found : Calibration
        Result to show.
    path : Path
        File to write. It needs no other files.
    force : bool
        Whether to replace a file that botyard did not write.

    Raises
    ------
    CommandLineError
        matplotlib is not installed.
    KeptFileError
        The file exists, botyard did not write it, and `force` is False.
    OSError
        The file cannot be written.
    """
    if not is_there("matplotlib"):
        raise CommandLineError(lacking("a report", "calibrate"))
    write_text(path, _page(found), force=force)


def _page(found: Calibration) -> str:
    logs = ", ".join(escaped(log.source, 200) for log in found.logs)
    parts = [f"<p>Model {escaped(found.base.name)}, fitted to {logs}.</p>"]
    if found.notes:
        parts += [
            "<h2>Notes</h2><ul>",
            *(f"<li>{escaped(note, 1000)}</li>" for note in found.notes),
            "</ul>",
        ]

    for name, fit in found.groups:
        parts += [
            f"<h2>{name.capitalize()}</h2>",
            plain_table(HEADS, value_rows(fit.values), is_last_text=True),
        ]
        if isinstance(fit, ReflectorFit):
            parts.append(
                f"<p>{fit.returned} of {fit.beams} beams on reflectors were reported as such.</p>"
            )
        elif isinstance(fit, RangeFit):
            parts.append(
                f"<p>{fit.ranges} ranges of {fit.scans} scans, {fit.outliers} "
                "outliers excluded; the map does not explain "
                f"{100 * fit.unexplained:.1f} % of the ranges.</p>"
            )
        else:
            parts.append(_identifiability(fit.fit))

    if found.held_out:
        rows = [
            (one.name, one.unit, f"{one.before:.4g}", f"{one.after:.4g}")
            for one in found.held_out
        ]
        parts += [
            "<h2>Held out</h2><p>RMS errors in a part of the "
            "logs that was not used, before and with the values fitted to "
            "the rest.</p>",
            plain_table(("error", "unit", "before", "after"), rows),
        ]

    parts += [image(figure, name) for name, figure in _figures(found)]
    return document(f"Calibration of {found.base.name}", parts)


def _identifiability(fit: Fit) -> str:
    """Return an HTML table of the information matrix's eigenvalues with their parameters."""
    rows = []
    for one in fit.directions:
        # Three parameters name a combination well enough.
        main = sorted(one.weights.items(), key=lambda item: -item[1])[:3]
        mix = ", ".join(
            f"{name} {100 * weight:.0f} %" for name, weight in main if weight > 0.05
        )
        # Ratio of the posterior to the prior standard deviation.
        known = 1.0 / math.sqrt(1.0 + one.information)
        rows.append(
            (
                mix,
                f"{one.information:.3g}",
                f"{known:.2g}",
                "no" if known > UNTOLD_SHARE else "yes",
            )
        )

    return (
        "<p>Information in the logs: eigenvalues of the information matrix, in units "
        "of the prior uncertainties, in ascending order. "
        "The remaining uncertainty is relative to the prior.</p>"
        + plain_table(
            ("combination", "information", "remaining uncertainty", "determined"), rows
        )
    )


def _figures(found: Calibration) -> Any:
    """Return the figures of the report with their titles."""
    if found.paths is not None:
        figure, axes = _axes("x [m]", "y [m]")
        truth, before, after = found.paths
        for line, label in (
            (truth, "true"),
            (before, "odometry"),
            (after, "corrected odometry"),
        ):
            axes.plot(line[:, 0], line[:, 1], lw=1.0, label=label)

        axes.set_aspect("equal")
        axes.legend(fontsize=8)
        yield "path by truth and odometry", figure

    for name, fit in found.groups:
        if isinstance(fit, (OdometryFit, MotionFit)):
            values, label = (
                fit.fit.residuals,
                f"residuals of {name} in standard deviations",
            )
            figure, axes = _axes(label, "number")
            # Outliers collect in the outer bins instead of stretching the axis.
            axes.hist(np.clip(values, -6.0, 6.0), BINS)
        elif isinstance(fit, ReflectorFit):
            continue
        else:
            label = "residuals of ranges [m]"
            figure, axes = _axes(label, "number")
            axes.hist(fit.residuals, BINS)

        yield label, figure


def _axes(x: str, y: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, alpha=0.3)
    return figure, axes


__all__ = ["HEADS", "value_rows", "write_report"]
