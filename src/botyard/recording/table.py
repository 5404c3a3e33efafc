"""Recordings as tables with a row for each time and robot: CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ArgumentError
from botyard.processes.safefile import replacing
from botyard.recording.arrays import Recording

ROWS_AT_ONCE: Final = 20_000
"""Number of CSV rows to make at once; it limits the memory."""
_AXES: Final = {
    "poses": ("x [m]", "y [m]", "heading [rad]"),
    "velocities": ("vx [m/s]", "vy [m/s]", "yaw rate [rad/s]"),
    "odometry": ("odom x [m]", "odom y [m]", "odom heading [rad]"),
    "commands": ("command vx [m/s]", "command vy [m/s]", "command yaw rate [rad/s]"),
}
"""Column names of each array of a `Recording`."""


def columns_of(run: Recording) -> dict[str, NDArray[Any]]:
    """Return the columns of the table by name, with units.

    A robot has no row for a time at which it is not in the world.

    Returns
    -------
    mapping
        ``time [s]``, ``robot`` (its name), and the numbers of the recording's arrays;
        NaN if a number was not recorded.
    """
    there = ~np.isnan(
        np.concatenate([run.poses, run.velocities, run.odometry], axis=2)
    ).all(axis=2)
    rows, robots = np.nonzero(there)
    columns: dict[str, NDArray[Any]] = {
        "time [s]": run.time[rows],
        "robot": np.array(run.robots, object)[robots]
        if run.robots
        else np.zeros(0, object),
    }
    for array, names in _AXES.items():
        values = getattr(run, array)[rows, robots]
        columns |= {name: values[:, k] for k, name in enumerate(names)}

    return columns


def _csv(columns: Mapping[str, NDArray[Any]], file: BinaryIO) -> None:
    """Write columns as CSV (RFC 4180): numbers with all digits, missing ones empty.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        Columns by title.
    file : file
        Binary file, which stays open.
    """
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(columns)
    count = len(next(iter(columns.values())))
    for first in range(0, count, ROWS_AT_ONCE):
        some = [
            _written(values[first : first + ROWS_AT_ONCE])
            for values in columns.values()
        ]
        writer.writerows(zip(*some, strict=True))

    # Closing the wrapper would close the caller's file.
    text.detach()


def _written(values: NDArray[Any]) -> list[Any]:
    if values.dtype == object:
        # A spreadsheet would read such a name as a formula, so it gets an apostrophe.
        return [
            f"'{name}" if name[:1] in "=+-@\t\r" else name for name in values.tolist()
        ]

    # Only NaN differs from itself.
    return ["" if value != value else value for value in values.tolist()]


def _table(columns: Mapping[str, NDArray[Any]], run: Recording) -> Any:
    import pyarrow as pa

    arrays = {
        name: pa.array(values, from_pandas=True)
        for name, values in columns.items()
        if name != "robot"
    }
    # Names repeat in every row; a dictionary stores each of them once.
    robots = pa.array(columns["robot"].tolist(), pa.string()).dictionary_encode()
    fields = [
        ("robot", robots) if name == "robot" else (name, arrays[name])
        for name in columns
    ]
    table = pa.table(dict(fields))
    return table.replace_schema_metadata(
        {f"botyard {key}": value for key, value in run.metadata.items()}
    )


def _parquet(
    columns: Mapping[str, NDArray[Any]], file: BinaryIO, run: Recording
) -> None:
    import pyarrow.parquet

    # pyarrow has no type annotations.
    parquet: Any = pyarrow.parquet
    parquet.write_table(_table(columns, run), file, compression="zstd")


def _arrow(columns: Mapping[str, NDArray[Any]], file: BinaryIO, run: Recording) -> None:
    import pyarrow

    table = _table(columns, run)
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


_WRITERS: Final[
    Mapping[str, Callable[[Mapping[str, NDArray[Any]], BinaryIO, Recording], None]]
] = {
    ".csv": lambda columns, file, run: _csv(columns, file),
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}
SUFFIXES: Final = tuple(_WRITERS)
NEED_PYARROW: Final = (".parquet", ".arrow", ".feather")


def export(
    run: Recording, path: str | PathLike[str], *, overwrite: bool = False
) -> int:
    """Write a recording as a table in the format of the suffix; return the row count.

    Parameters
    ----------
    run : Recording
        Recording to export.
    path : path-like
        Path of the file: ``.csv``, ``.parquet``, ``.arrow`` or ``.feather``; all but
        the first need the extra ``tables``.
    overwrite : bool
        Replace a file that botyard did not write.

    Raises
    ------
    ArgumentError
        The suffix is not one of these.
    KeptFileError
        The path is a file that botyard did not write.
    OSError
        The file cannot be written.
    ImportError
        The extra is missing.
    """
    write = _WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise ArgumentError(
            f'path: expected one of the suffixes {" ".join(SUFFIXES)}, found "{Path(path).suffix}"'
        )

    columns = columns_of(run)
    with replacing(path, force=overwrite) as file:
        write(columns, file, run)
    return len(columns["robot"])


__all__ = ["NEED_PYARROW", "SUFFIXES", "columns_of", "export"]
