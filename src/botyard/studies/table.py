"""The table of a study: a row for each run of the plan that has ended, in the plan's
order; Parquet, or CSV where pyarrow is not installed.

It holds nothing that differs between two executions of the same runs: no wall times, no
processes, no dates.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.extras import is_there
from botyard.processes.safefile import replacing
from botyard.studies.plan import ERROR, KEY, SEED, STATUS, Plan
from botyard.studies.results import Row
from botyard.studies.run_hash import Run
from botyard.studies.run_spec import MEASURES, TRAFFIC_UNITS

KEY_DIGITS: Final = 16
"""Digits of a key in the table, and in names of logs and recordings."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a study.

    Attributes
    ----------
    columns : dict
        Values of each column by its name; None: missing.
    units : dict
        Units of columns, where they have one.
    parameters, results : list of str
        Which columns are parameters, and which results.
    """

    columns: dict[str, list[Any]]
    units: dict[str, str]
    parameters: list[str]
    results: list[str]

    def __len__(self) -> int:
        return len(self.columns[KEY])


def make_table(plan: Plan, runs: Sequence[Run], rows: Mapping[str, Row]) -> Table:
    """Join runs with their rows; runs that have not ended are left out."""
    ended = [(run, rows[run.key]) for run in runs if run.key in rows]
    columns: dict[str, list[Any]] = {KEY: [run.key[:KEY_DIGITS] for run, _ in ended]}
    for name in plan.parameters:
        columns[name] = [run.values[name] for run, _ in ended]
    columns[SEED] = [run.seed for run, _ in ended]
    columns[STATUS] = [row.status for _, row in ended]
    columns[ERROR] = [row.error for _, row in ended]
    results: dict[str, str] = {}
    for _, row in ended:
        for name in row.result:
            if name not in results:
                results[name] = f"result.{name}" if name in columns else name

    for name, column in results.items():
        columns[column] = [row.result.get(name) for _, row in ended]
    known = {} if plan.setup.get("run") else {**MEASURES, **TRAFFIC_UNITS}
    units = {
        column: known.get(column.rpartition(".")[2], "") for column in columns
    } | plan.keys.units
    units = {
        column: unit for column, unit in units.items() if unit and column in columns
    }
    return Table(columns, units, plan.parameters, list(results.values()))


def _typed(values: list[Any]) -> list[Any]:
    """Values of one type: true or false, whole numbers of 64 bits, numbers, or texts;
    other values as JSON.
    """
    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there):
        return values
    if all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in there
    ):
        if all(isinstance(value, int) for value in there):
            low, high = min(there, default=0), max(there, default=0)
            if low >= -(2**63) and high < (2**63 if low < 0 else 2**64):
                return values
        elif all(abs(value) < 2**64 for value in there):
            return [None if value is None else float(value) for value in values]

    return [
        None
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value)
        for value in values
    ]


def write_table(table: Table, plan: Plan, folder: Path) -> Path:
    """Write ``table.parquet``, or ``table.csv``, into a folder; its path.

    Parquet has the units of columns in their metadata (``unit``), and in that of the
    file (``botyard units``).

    One that is there is replaced (`Folder.check_table` looks before the first run).
    OSError: it cannot be written.
    """
    if not is_there("pyarrow"):
        return write_csv(table, folder / "table.csv")
    import pyarrow as pa
    import pyarrow.parquet

    parquet: Any = pyarrow.parquet  # which has no types
    fields, arrays = [], []
    for name, values in table.columns.items():
        typed = _typed(values)
        is_large = any(
            isinstance(value, int) and value >= 2**63 for value in typed
        )  # such as seeds
        array = pa.array(typed, pa.uint64() if is_large else None)
        unit = table.units.get(name)
        fields.append(
            pa.field(name, array.type, metadata={"unit": unit} if unit else None)
        )
        arrays.append(array)

    about = {
        "botyard": "Written by botyard",
        "botyard study": plan.name,
        "botyard units": json.dumps(table.units),
        "botyard parameters": json.dumps(table.parameters),
        "botyard results": json.dumps(table.results),
    }
    path = folder / "table.parquet"
    with replacing(path, force=True) as file:
        parquet.write_table(
            pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=about)),
            file,
            compression="zstd",
        )

    return path


def write_csv(table: Table, path: Path) -> Path:
    """Write a table as CSV (RFC 4180), units in the names of columns: ``distance [m]``.
    Returns the path.
    """
    columns = {
        f"{name} [{table.units[name]}]" if name in table.units else name: [
            _written(value) for value in _typed(values)
        ]
        for name, values in table.columns.items()
    }
    with replacing(path, force=True) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        text.detach()

    return path


def _written(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value[:1] in "=+-@\t\r":
        # a spreadsheet would take it for a formula
        return f"'{value}" if value else ""

    return value


__all__ = ["ERROR", "KEY", "STATUS", "Table", "make_table", "write_csv", "write_table"]
