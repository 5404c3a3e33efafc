"""Tasks: robots as disks on paths that are divided into sectors, some in conflict.

See the reference mmrs.md §1 and §2. A task file is the JSON of the original program.
botyard adds three keys that the original program ignores:

* ``Parameters``: ``Default`` and ``Vehicle<i>`` with ``Radius`` (m), ``Velocity``
  (m/s), ``Acceleration``, ``Deceleration`` (m/s²) and ``Start`` (m along the path),
* ``Geometry``: ``Vehicle<i>`` with the corners of the path, ``[[x, y], …]``, m; used
  for pictures and for robots of the 2-D engine,
* ``Order``: ``[[robot, sector], …]``, the order of a plan in which robots enter
  conflicting sectors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import FormatError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.formats.jsonfile import loads
from botyard.processes.safefile import MARK, write_text

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

MAX_VEHICLES: Final = 1_000_000
"""Largest number of vehicles in a task file."""
_PARAMETERS: Final = {
    "Radius": "radius",
    "Velocity": "velocity",
    "Acceleration": "acceleration",
    "Deceleration": "deceleration",
    "Start": "start",
}


class TaskError(FormatError):
    """Invalid task file; the message names the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vehicle:
    """Robot and its path.

    The defaults are constants of the original program (mmrs.md §2).

    Attributes
    ----------
    ends : (n,) float64 array
        End of each sector, m along the path; increasing.
    radius, velocity, acceleration, deceleration : float
        Radius of the disk, m; greatest speed, m/s; acceleration and deceleration, m/s².
    start : float
        Start position, m along the path.
    path : (k, 2) float64 array or None
        Corners of the path in the plane, m, for pictures and for robots of the 2-D
        engine.
    """

    ends: F8
    radius: float = 0.5
    velocity: float = 0.65
    acceleration: float = 0.2
    deceleration: float = 0.6
    start: float = 0.0
    path: F8 | None = None

    @property
    def braking_distance(self) -> float:
        """Braking distance from full speed, m."""
        return self.velocity * self.velocity / (2.0 * self.deceleration)

    def first_sector(self) -> int:
        """Return the sector in which the robot starts."""
        return min(
            int(np.searchsorted(self.ends, self.start, side="right")),
            len(self.ends) - 1,
        )

    def occupied(self) -> tuple[int, int]:
        """Return the oldest and the newest sector that the robot occupies at the start.

        Returns
        -------
        tail, head : int
            Numbers of the sectors. `head` is the sector of its centre; the robot enters
            the sectors under its front at time 0.
        """
        # The rear leaves a sector one radius after the centre has passed its end.
        head = self.first_sector()
        return min(
            int(np.searchsorted(self.ends + self.radius, self.start, side="right")),
            head,
        ), head


@dataclass(frozen=True, eq=False)
class Task:
    """A traffic task: robots, their paths and the conflicts of sectors.

    Attributes
    ----------
    vehicles : tuple of Vehicle
        Robots; their indices are the robot numbers.
    listed : (m, 4) int64 array
        Conflicts as listed in the file: robot, sector, other robot, other sector.
    order : tuple of (int, int)
        Order (robot, sector) in which robots enter conflicting sectors; empty if the
        file gives none.
    name : str
        Name of the source, for messages.
    """

    vehicles: tuple[Vehicle, ...]
    listed: I8 = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    order: tuple[tuple[int, int], ...] = ()
    name: str = "task"

    def __len__(self) -> int:
        return len(self.vehicles)

    @cached_property
    def first(self) -> I8:
        """Global number of each robot's sector 0, (n + 1,) int64.

        Sector k of robot i is ``first[i] + k``; the last element is the number of all
        sectors.
        """
        return np.concatenate(
            [[0], np.cumsum([len(v.ends) for v in self.vehicles])]
        ).astype(np.int64)

    @property
    def n_sectors(self) -> int:
        """Number of sectors of all robots."""
        return int(self.first[-1])

    @cached_property
    def conflicts(self) -> tuple[I8, I8]:
        """Symmetric closure of the conflicts, by global numbers.

        The conflicts of sector g are ``others[starts[g]:starts[g + 1]]``, ascending.
        """
        # Conflicts are listed by robot and sector; the arrays number all sectors in a
        # row.
        a = self.first[self.listed[:, 0]] + self.listed[:, 1]
        b = self.first[self.listed[:, 2]] + self.listed[:, 3]
        n = self.n_sectors
        # Sort and drop duplicates here: np.unique holds the GIL and blocks other
        # threads.
        codes = np.sort(np.concatenate([a * n + b, b * n + a]))
        codes = codes[np.diff(codes, prepend=-1) > 0]
        starts = np.searchsorted(codes, np.arange(n + 1) * n)
        return starts.astype(np.int64), (codes % max(n, 1)).astype(np.int64)

    @cached_property
    def start_conflicts(self) -> I8:
        """Conflicts that exist at the start, (m, 4).

        Columns: robot, occupied sector, other robot, its occupied sector; the lower
        robot comes first. `Vehicle.occupied` gives the occupied sectors.
        """
        spans = np.array([v.occupied() for v in self.vehicles], np.int64).reshape(-1, 2)
        # Each sector of the row belongs to the last robot that starts at or before it.
        robot = np.searchsorted(self.first, np.arange(self.n_sectors), side="right") - 1
        sector = np.arange(self.n_sectors) - self.first[robot]
        occupied = (spans[robot, 0] <= sector) & (sector <= spans[robot, 1])
        starts, others = self.conflicts
        # Each pair is listed from both sides; only the one with a < others counts.
        a = np.repeat(np.arange(self.n_sectors), np.diff(starts))
        both = (a < others) & occupied[a] & occupied[others]
        a, b = a[both], others[both]
        return np.stack([robot[a], sector[a], robot[b], sector[b]], axis=1).astype(
            np.int64
        )

    @cached_property
    def one_sided(self) -> I8:
        """Conflicts that only one of the two sectors lists, as rows of `listed`."""
        a = self.first[self.listed[:, 0]] + self.listed[:, 1]
        b = self.first[self.listed[:, 2]] + self.listed[:, 3]
        n = max(self.n_sectors, 1)
        lonely: I8 = self.listed[~np.isin(a * n + b, b * n + a)]
        return lonely

    def robot_of(self, sector: int) -> tuple[int, int]:
        """Return robot and sector for a global number of a sector.

        Parameters
        ----------
        sector : int
            Global number, see `first`.

        Returns
        -------
        robot, sector : int
            Number of the robot, and of the sector on its path.
        """
        robot = int(np.searchsorted(self.first, sector, side="right")) - 1
        return robot, int(sector - self.first[robot])

    def to_json(self) -> dict[str, Any]:
        """Return the task in the form of its file."""
        colliding: dict[tuple[int, int], list[list[int]]] = {}
        for robot, sector, other, where in self.listed.tolist():
            colliding.setdefault((robot, sector), []).append([other, where])
        vehicles = {
            f"Vehicle{i}": [
                {"Colliding": colliding.get((i, k), []), "Endpoint": _plain(end)}
                for k, end in enumerate(v.ends.tolist())
            ]
            for i, v in enumerate(self.vehicles)
        }
        out: dict[str, Any] = {"NumberOfVehicles": len(self), "Vehicles": vehicles}
        parameters = {f"Vehicle{i}": _changed(v) for i, v in enumerate(self.vehicles)}
        if parameters := {k: p for k, p in parameters.items() if p}:
            out["Parameters"] = parameters
        if geometry := {
            f"Vehicle{i}": v.path.tolist()
            for i, v in enumerate(self.vehicles)
            if v.path is not None
        }:
            out["Geometry"] = geometry

        if self.order:
            out["Order"] = [list(entry) for entry in self.order]
        return out

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the task file.

        Parameters
        ----------
        path : str or Path
            File to write.
        overwrite : bool
            Whether to replace a file that botyard did not write.

        Raises
        ------
        KeptFileError
            The path is a file that botyard did not write, and `overwrite` is False.
        TaskError
            The file cannot be written.
        """
        try:
            text = json.dumps(
                self.to_json() | {"Generator": MARK}, separators=(",", ":")
            )
            write_text(path, f"{text}\n", force=overwrite)
        except OSError as error:
            raise TaskError(f"cannot be written: {error.strerror}", path) from None


def _plain(value: float) -> float | int:
    # Whole numbers without a decimal point keep the file short.
    return int(value) if value == int(value) else value


def _changed(vehicle: Vehicle) -> dict[str, float]:
    """Return the motion parameters of a vehicle that differ from the defaults."""
    usual = Vehicle(ends=vehicle.ends)
    return {
        k: getattr(vehicle, a)
        for k, a in _PARAMETERS.items()
        if getattr(vehicle, a) != getattr(usual, a)
    }


class _Reader:
    """Validates the parts of a task document; error messages name the key.

    Parameters
    ----------
    path : str
        Path of the file, for messages.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, key: str, expected: str, found: Any) -> TaskError:
        """Return the error for a key."""
        text = json.dumps(found, default=str)
        return TaskError(
            f"{key}: expected {expected}, found {text if len(text) < 60 else text[:57] + '...'}",
            self.path,
        )

    def number(self, value: Any, key: str, *, positive: bool = True) -> float:
        """Validate a finite number of at most 1e9."""
        good = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
        )
        if not good or abs(value) > 1e9 or (positive and value <= 0.0) or value < 0.0:
            raise self.fail(
                key,
                "a number greater than 0, at most 1e9"
                if positive
                else "a number from 0 to 1e9",
                value,
            )

        return float(value)

    def table(self, value: Any, key: str) -> Mapping[str, Any]:
        """Validate a JSON object."""
        if not isinstance(value, dict):
            raise self.fail(key, "an object {…}", value)
        return value

    def rows(self, value: Any, key: str) -> list[Any]:
        """Validate a JSON array."""
        if not isinstance(value, list):
            raise self.fail(key, "an array […]", value)
        return value

    def ends(self, sectors: Any, key: str) -> F8:
        """Read the ends of a vehicle's sectors, m."""
        rows = self.rows(sectors, key)
        if not rows:
            raise self.fail(key, "at least one sector", rows)
        # Sectors follow each other without gaps: each starts at the end of the previous
        # one.
        ends = np.zeros(len(rows))
        before = 0.0
        for k, row in enumerate(rows):
            where = f"{key}[{k}]"
            if "Endpoint" not in self.table(row, where):
                raise self.fail(where, "the keys Endpoint and Colliding", row)
            end = self.number(row["Endpoint"], f"{where}.Endpoint")
            if end <= before:
                raise self.fail(
                    f"{where}.Endpoint",
                    f"more than the end of the previous sector ({before:g} m)",
                    end,
                )

            ends[k] = before = end

        return ends

    def conflicts(
        self, sectors: Sequence[Any], i: int, key: str, lengths: Sequence[int]
    ) -> list[tuple[int, int, int, int]]:
        """Read the conflicts that a vehicle's sectors list."""
        found = []
        for k, row in enumerate(sectors):
            if "Colliding" not in row:
                raise self.fail(
                    f"{key}[{k}]", "the key Colliding (an array, possibly empty)", row
                )
            for j, pair in enumerate(
                self.rows(row["Colliding"], f"{key}[{k}].Colliding")
            ):
                where = f"{key}[{k}].Colliding[{j}]"
                if not (
                    isinstance(pair, list)
                    and len(pair) == 2
                    # A bool is also an int in Python, hence the exact type.
                    and all(type(p) is int for p in pair)
                ):
                    raise self.fail(where, "[robot, sector]", pair)

                robot, sector = pair
                if not 0 <= robot < len(lengths):
                    raise self.fail(
                        where, f"a robot from 0 to {len(lengths) - 1}", pair
                    )

                if not 0 <= sector < lengths[robot]:
                    raise self.fail(
                        where,
                        f"a sector of robot {robot}, from 0 to {lengths[robot] - 1}",
                        pair,
                    )

                # Sectors of one robot never conflict, because the robot passes one
                # after the other.
                if robot == i:
                    raise self.fail(where, "a sector of another robot", pair)
                found.append((i, k, robot, sector))

        return found

    def parameters(self, value: Any, key: str) -> dict[str, float]:
        """Read a vehicle's parameters."""
        found = {}
        for name, number in self.table(value, key).items():
            if name not in _PARAMETERS:
                raise self.fail(
                    f"{key}.{name}", f"one of {', '.join(_PARAMETERS)}", name
                )

            found[_PARAMETERS[name]] = self.number(
                # A robot may start at the start of its path, but no other value may be
                # 0.
                number,
                f"{key}.{name}",
                positive=name != "Start",
            )

        return found

    def corners(self, value: Any, key: str) -> F8:
        """Read the corners of a path in the plane, m."""
        rows = self.rows(value, key)
        for k, row in enumerate(rows):
            good = (
                isinstance(row, list)
                and len(row) == 2
                and all(isinstance(c, int | float) and math.isfinite(c) for c in row)
            )
            if not good:
                raise self.fail(f"{key}[{k}]", "[x, y]", row)

        if len(rows) < 2:
            raise self.fail(key, "at least two corners", value)
        return np.array(rows, np.float64)


def parse_task(
    data: Any, name: str = "task", warn: Callable[[str], None] = lambda _: None
) -> Task:
    """Make a task from a parsed JSON document.

    Parameters
    ----------
    data : object
        The JSON document.
    name : str
        Name of the source, for messages.
    warn : callable
        Called with a warning if only one of two sectors lists a conflict.

    Raises
    ------
    TaskError
        The document is not a valid task. The message gives the path of the key, what
        was expected and what was found.
    """
    r = _Reader(name)
    top = r.table(data, "the file")
    count = top.get("NumberOfVehicles")
    # isinstance would accept True, which is also an int.
    if type(count) is not int or not 0 <= count <= MAX_VEHICLES:
        raise r.fail(
            "NumberOfVehicles", f"a number of vehicles from 0 to {MAX_VEHICLES}", count
        )

    tables = r.table(top.get("Vehicles"), "Vehicles")
    keys = [f"Vehicle{i}" for i in range(count)]
    for key in keys:
        if key not in tables:
            raise TaskError(
                f"Vehicles: expected {key} (NumberOfVehicles is {count}), found none",
                name,
            )

    ends = [r.ends(tables[key], f"Vehicles.{key}") for key in keys]
    lengths = [len(e) for e in ends]
    listed = [
        c
        for i, key in enumerate(keys)
        for c in r.conflicts(tables[key], i, f"Vehicles.{key}", lengths)
    ]

    # Both tables may be missing: files of the original program have neither.
    given = r.table(top.get("Parameters", {}), "Parameters")
    geometry = r.table(top.get("Geometry", {}), "Geometry")
    for where, table in (("Parameters", given), ("Geometry", geometry)):
        for key in table:
            if key not in tables and not (key == "Default" and where == "Parameters"):
                raise r.fail(f"{where}.{key}", "the name of a vehicle", key)

    default = r.parameters(given.get("Default", {}), "Parameters.Default")
    vehicles = []
    for i, key in enumerate(keys):
        # The robot's own values override the defaults of the file.
        own = default | r.parameters(given.get(key, {}), f"Parameters.{key}")
        path = r.corners(geometry[key], f"Geometry.{key}") if key in geometry else None
        # A robot that starts at its end has no sector left to enter.
        if own.get("start", 0.0) >= ends[i][-1]:
            raise r.fail(
                f"Parameters.{key}.Start",
                f"less than the end of the path, {ends[i][-1]:g} m",
                own["start"],
            )

        vehicles.append(Vehicle(ends=ends[i], path=path, **own))

    order = _order(r, top.get("Order", []), lengths)
    task = Task(tuple(vehicles), np.array(listed, np.int64).reshape(-1, 4), order, name)
    # The task is still safe: a conflict listed by one side counts for both.
    if len(task.one_sided):
        robot, sector, other, where_ = task.one_sided[0].tolist()
        warn(
            f"{name}: {len(task.one_sided)} conflicts are listed by one side "
            f"only and count for both: the first is sector {sector} of "
            f"robot {robot} with sector {where_} of robot {other}"
        )

    return task


def _order(
    r: _Reader, value: Any, lengths: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    found = []
    for k, pair in enumerate(r.rows(value, "Order")):
        good = (
            isinstance(pair, list)
            and len(pair) == 2
            and all(type(p) is int for p in pair)
        )
        if (
            not good
            or not 0 <= pair[0] < len(lengths)
            or not 0 <= pair[1] < lengths[pair[0]]
        ):
            raise r.fail(f"Order[{k}]", "[robot, sector] of this task", pair)

        found.append((pair[0], pair[1]))

    # Two places of one sector would make the order of entry ambiguous.
    if len(set(found)) != len(found):
        raise r.fail("Order", "each sector at most once", "a sector twice")
    return tuple(found)


def load_task(
    path: str | Path,
    warn: Callable[[str], None] = lambda _: None,
    budget: Budget = Budget(),
) -> Task:
    """Read a task file.

    Parameters
    ----------
    path : str or Path
        File to read.
    warn : callable
        Called with a warning if only one of two sectors lists a conflict.
    budget : Budget
        Limits of its bytes and of the numbers of its sectors and robots.

    Raises
    ------
    TaskError
        The file cannot be read, is not JSON, or is not a valid task (see `parse_task`).
    """
    meter = Meter(budget, str(path), TaskError)
    try:
        text = read_bytes(path, meter, TaskError).decode("utf-8")
    except UnicodeDecodeError:
        raise TaskError("expected text in UTF-8, found other bytes", path) from None

    data = loads(text, meter, TaskError)
    return parse_task(data, str(path), warn)
