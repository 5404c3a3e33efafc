"""Reader of CSV tables with named columns and units as logs."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from botyard.calibration.choice import Choice, one_of
from botyard.calibration.log import Log, Series
from botyard.calibration.planar import F8, arc
from botyard.errors import FormatError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.model.robot import RobotSpec
from botyard.names import shown

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "m": ("m", 1.0),
    "cm": ("m", 1e-2),
    "mm": ("m", 1e-3),
    "rad": ("rad", 1.0),
    "deg": ("rad", math.pi / 180.0),
    "°": ("rad", math.pi / 180.0),
    "m/s": ("m/s", 1.0),
    "mm/s": ("m/s", 1e-3),
    "cm/s": ("m/s", 1e-2),
    "rad/s": ("rad/s", 1.0),
    "deg/s": ("rad/s", math.pi / 180.0),
    "°/s": ("rad/s", math.pi / 180.0),
}
"""Units that a column title may have: SI unit of the quantity, and factor to that unit."""
_COLUMNS: Final[Mapping[str, str]] = {
    "time": "s",
    "x": "m",
    "y": "m",
    "heading": "rad",
    "vx": "m/s",
    "vy": "m/s",
    "yaw rate": "rad/s",
    "odom x": "m",
    "odom y": "m",
    "odom heading": "rad",
    "left wheel": "m",
    "right wheel": "m",
    "command vx": "m/s",
    "command vy": "m/s",
    "command yaw rate": "rad/s",
}
"""Names of known columns with the SI unit of their quantity, which is the default unit.

True poses are in ``x``, ``y``, ``heading``, as `botyard export` writes them.
"""
_WORDS: Final[Mapping[str, str]] = {
    "yaw": "heading",
    "theta": "heading",
    "th": "heading",
    "t": "time",
    "timestamp": "time",
    "stamp": "time",
}
_SEPARATORS: Final = ",;\t"
_HEADER: Final = re.compile(r"^\s*(.*?)\s*(?:[\[(]([^\])]*)[\])])?\s*$")


def _parse_header(header: list[str], path: Path) -> dict[str, tuple[int, float]]:
    """Return the index and the unit's factor of each known column.

    Parameters
    ----------
    header : list of str
        Titles, such as ``odom x [mm]``. Unknown ones are ignored.
    path : Path
        File, for the error.

    Returns
    -------
    dict of str to (int, float)
        Index of the column and factor to SI units, by column name in `_COLUMNS`.

    Raises
    ------
    FormatError
        A unit belongs to another quantity, a column occurs twice, or there is no time.
    """
    found: dict[str, tuple[int, float]] = {}
    for place, text in enumerate(header):
        match = _HEADER.match(text)
        assert match is not None
        words = match[1].lower().replace("_", " ").split()
        name = (
            " ".join([*words[:-1], _WORDS.get(words[-1], words[-1])]) if words else ""
        )
        if name not in _COLUMNS:
            continue
        usual = _COLUMNS[name]
        # The unit of another quantity is an error: otherwise a wrong column would pass
        # unnoticed.
        kind, size = _UNITS.get((match[2] or usual).strip(), ("", 0.0))
        if kind != usual:
            units = ", ".join(
                unit for unit, (what, _) in _UNITS.items() if what == usual
            )
            raise FormatError(
                f'column "{shown(text)}": expected one of the units {units}', path, 1
            )

        if name in found:
            raise FormatError(f'expected one column "{name}", found two', path, 1)
        found[name] = place, size

    if "time" not in found:
        listed = ", ".join(shown(text, 40) for text in header[:20])
        raise FormatError(
            f'expected a column "time [s]", found {listed or "none"}', path, 1
        )

    return found


def read_csv(path: Path, spec: RobotSpec, choice: Choice, budget: Budget) -> Log:
    """Read a log from a CSV table with a header.

    Unknown columns are ignored, and empty cells are missing values. The separator is
    the most frequent one in the header: comma, semicolon or tab. If it is not the
    comma, cells may have a decimal comma.

    Parameters
    ----------
    path : Path
        File to read, in UTF-8.
    spec : RobotSpec
        The robot, for the nominal wheel separation.
    choice : Choice
        Robot, where a column ``robot`` names several.
    budget : Budget
        Limits of bytes and cells.

    Raises
    ------
    FormatError
        The table is not valid; the message has the line.
    CalibrationError
        The table has several robots and none is chosen, or lacks the chosen one.
    """
    data = read_bytes(path, Meter(budget, str(path), FormatError), FormatError)
    try:
        lines = data.decode("utf-8-sig").splitlines()
        separator = max(_SEPARATORS, key=lines[0].count) if lines else ","
        rows = csv.reader(lines, delimiter=separator)
        header = next(rows, [])
        columns = _parse_header(header, path)
        names = [text.strip().lower() for text in header]
        robot = names.index("robot") if "robot" in names else None
        meter = Meter(budget, str(path), FormatError)
        robots: dict[str, list[list[float]]] = {}
        for row in rows:
            if not row:
                continue
            # Count the cells of each row, so that a huge file stops early.
            meter.add("cells", len(columns), rows.line_num)
            if len(row) < len(header):
                raise FormatError(
                    f"expected {len(header)} values, found {len(row)}",
                    path,
                    rows.line_num,
                )

            cells = (
                row if separator == "," else [cell.replace(",", ".") for cell in row]
            )
            values = [
                _parse_number(cells[place], size, header[place], path, rows.line_num)
                for place, size in columns.values()
            ]
            robots.setdefault("" if robot is None else row[robot], []).append(values)
    except UnicodeDecodeError as error:
        raise FormatError(f"cannot be read: {error}", path) from None
    except csv.Error as error:
        raise FormatError(f"cannot be read: {error}", path, rows.line_num) from None

    name = one_of(robots, choice.robot, "robots", path, "--of")
    table = dict(zip(columns, np.array(robots[name], np.float64).T, strict=True))
    return _log_from_columns(table, path, name, spec)


def _parse_number(text: str, size: float, column: str, path: Path, line: int) -> float:
    if not text.strip():
        return math.nan
    try:
        return float(text) * size
    except ValueError:
        raise FormatError(
            f'column "{shown(column)}": expected a number, found "{shown(text)}"',
            path,
            line,
        ) from None


def _log_from_columns(
    table: Mapping[str, F8], path: Path, name: str, spec: RobotSpec
) -> Log:
    time = table["time"]

    def series(*names: str) -> Series:
        has = [one for one in names if one in table]
        if not has:
            return Series()
        if names[0] not in has or names[2] not in has:
            listed, found = (
                ", ".join(f'"{one}"' for one in names),
                ", ".join(f'"{one}"' for one in has),
            )
            raise FormatError(
                f"expected the columns {listed}, found only {found}", path, 1
            )

        none = np.zeros(len(time))
        return Series.of(
            time, np.stack([table.get(one, none) for one in names], axis=1)
        )

    odometry = series("odom x", "odom y", "odom heading")
    # Travel of the wheels is more exact than poses derived from it.
    # Two wheels do not define the motion of a drive that also moves sideways.
    kinematics = spec.kinematics
    if {"left wheel", "right wheel"} <= {*table} and not kinematics.moves_sideways:
        odometry = _odometry_from_wheels(
            time, table["left wheel"], table["right wheel"], 2.0 * kinematics.lever
        )

    return Log(
        source=str(path),
        robot=name,
        odometry=odometry,
        velocities=series("vx", "vy", "yaw rate"),
        commands=series("command vx", "command vy", "command yaw rate"),
        truth=series("x", "y", "heading"),
    )


def _odometry_from_wheels(time: F8, left: F8, right: F8, separation: float) -> Series:
    """Return odometry from the travel of two wheels.

    Parameters
    ----------
    time : (n,) float64
        Times, s.
    left, right : (n,) float64
        Travel of each wheel since its start, m. Rows that are not finite are left out.
    separation : float
        Nominal distance between the wheels, of scrubbing wheels the effective one, m.

    Returns
    -------
    Series
        Poses from 0, 0, 0 on: m, m, rad.
    """
    good = np.isfinite(time) & np.isfinite(left) & np.isfinite(right)
    time, left, right = time[good], left[good], right[good]
    turned = np.diff(right - left) / separation
    twists = np.stack(
        [np.diff(left + right) / 2.0, np.zeros(len(turned)), turned], axis=1
    )
    heading = np.concatenate([[0.0], np.cumsum(turned)])[: len(time)]
    steps = arc(twists)
    c, s = np.cos(heading[:-1]), np.sin(heading[:-1])
    x = np.concatenate([[0.0], np.cumsum(c * steps[:, 0] - s * steps[:, 1])])
    y = np.concatenate([[0.0], np.cumsum(s * steps[:, 0] + c * steps[:, 1])])
    return Series.of(time, np.stack([x[: len(time)], y[: len(time)], heading], axis=1))


__all__ = ["read_csv"]
