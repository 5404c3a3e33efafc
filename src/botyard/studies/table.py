"""Table of a study: a row for each finished run, in the plan's order.

The file is Parquet, or CSV without pyarrow. It contains nothing that differs between
two executions of the same runs: no wall times, processes or dates.
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
"""Number of digits of a run's hash in the table and in names of logs and recordings."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a study's table.

    Attributes
    ----------
    columns : dict
        Values of each column by name; None: missing.
    units : dict
        Units of the columns that have one.
    parameters, results : list of str
        Names of the columns that are parameters, and of those that are results.
    """

    columns: dict[str, list[Any]]
    units: dict[str, str]
    parameters: list[str]
    results: list[str]

    def __len__(self) -> int:
        return len(self.columns[KEY])


def make_table(plan: Plan, runs: Sequence[Run], rows: Mapping[str, Row]) -> Table:
    """Join runs with their rows; leave out runs that have not ended.

    Parameters
    ----------
    plan : Plan
        Plan of the runs: names and units of its parameters.
    runs : sequence of Run
        Runs in the order of the table's rows.
    rows : mapping of str to Row
        Results by hash of the run; rows of other runs are ignored.

    Returns
    -------
    Table
        Columns ``key``, the parameters, ``seed``, ``status``, ``error`` and the
        results, in this order. A result that has the name of another column is called
        ``result.NAME``. Units come from the plan. Measures and traffic results have
        units of their own.
    """
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
                # A result may have the name of a parameter or of a fixed column.
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
    """Return values of one type: bool, 64-bit integers, floats or texts.

    Parameters
    ----------
    values : list
        Values of a column: bool, int, float, str, plain lists, or None.

    Returns
    -------
    list
        The values themselves if they have one type; integers mixed with floats as
        floats; everything else as JSON texts, with texts unchanged. None stays None.
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
    """Write ``table.parquet`` (or ``table.csv``) into a folder and return its path.

    Parquet stores units in the metadata of the columns (``unit``) and of the file
    (``botyard units``). An existing table is replaced: `Folder.check_table` has checked
    it before the first run.

    Parameters
    ----------
    table : Table
        Table of the study's results.
    plan : Plan
        Plan whose name the file states.
    folder : Path
        The folder; it exists.

    Returns
    -------
    Path
        The written file; CSV only if pyarrow is not installed.

    Raises
    ------
    OSError
        The table cannot be written.
    """
    if not is_there("pyarrow"):
        return write_csv(table, folder / "table.csv")
    import pyarrow as pa
    import pyarrow.parquet

    # pyarrow ships no type annotations.
    parquet: Any = pyarrow.parquet
    fields, arrays = [], []
    for name, values in table.columns.items():
        typed = _typed(values)
        is_large = any(
            isinstance(value, int) and value >= 2**63
            for value in typed
            # Some integers, for example seeds, use all 64 bits.
        )
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
    """Write a table as CSV (RFC 4180) and return its path.

    Units are part of the column names: ``distance [m]``. Missing values are empty.
    Texts that a spreadsheet would run as a formula have an apostrophe in front.

    Parameters
    ----------
    table : Table
        Table of the study's results.
    path : Path
        The file; an existing one is replaced.

    Raises
    ------
    OSError
        The file cannot be written.
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
    """Return a value as CSV text.

    Parameters
    ----------
    value : bool, int, float, str or None
        The value, as from `_typed`.

    Returns
    -------
    str, int or float
        Numbers are returned unchanged, because the writer formats them exactly.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value[:1] in "=+-@\t\r":
        # A spreadsheet would run such a text as a formula.
        return f"'{value}" if value else ""

    return value


__all__ = ["ERROR", "KEY", "STATUS", "Table", "make_table", "write_csv", "write_table"]
