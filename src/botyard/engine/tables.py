"""Tables: what changes of devices, in columns; one row for each battery, gripper, joint.

`State` holds what all bodies have. What only some of them carry stands in a `Table` of its kind: a row belongs to a body and goes with
it, and a column may refer to bodies. Array code and kernels work on whole columns; a `Row` is the view of one row that a Python program
holds. Nothing that changes may stand anywhere else, or it is lost when a world is saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.arguments import found
from botyard.engine.layout import I8
from botyard.errors import ArgumentError

T = TypeVar("T")
NOBODY: Final = -1
"""In a column that refers to bodies: none."""
LARGEST: Final = 1e15
"""No number of a state is larger, but those that may be infinite."""
FEW: Final = 8
"""So many rows are removed one by one, each by moving those behind it; more at once by picking those that stay."""
VERSION: Final = "version"
"""A column of this name, if a table has one, grows with every write to its row."""


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    dtype : dtype
        Type of its numbers.
    width : int
        Numbers in a row; 0: one, and the column is one-dimensional.
    start : float
        What a new row has.
    refers : bool
        It holds rows of bodies (`NOBODY`: none), which are numbered anew when bodies are removed.
    low, high : float
        What may stand in it: a state that was saved by somebody else is checked by that.
    unbounded : bool
        What is no number, or infinite, may stand in it, too.
    saved : bool
        It is a part of the world's state; others follow from something else.
    """

    dtype: DTypeLike
    width: int = 0
    start: float = 0
    refers: bool = False
    low: float = -math.inf
    high: float = math.inf
    unbounded: bool = False
    saved: bool = True

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest number that may stand in it."""
        kind = np.dtype(self.dtype)
        if self.refers or kind.kind == "f":
            return (self.low, self.high) if self.unbounded else (max(self.low, -LARGEST), min(self.high, LARGEST))
        whole = np.iinfo(kind)
        return max(self.low, float(whole.min)), min(self.high, float(whole.max))

    def check(self, name: str, value: object) -> None:
        """Refuse what cannot stand in it: no numbers, too many of them, or beyond its bounds. Raises ArgumentError."""
        given = np.asarray(value)
        low, high = self.bounds
        if given.dtype.kind not in "biuf" or given.shape not in ((), (self.width or 1,)[: bool(self.width)]):
            raise ArgumentError(f"{name}: expected {self.width or 'one'} numbers, found {found(value)}")
        if self.unbounded:
            return
        if not bool(((given >= low) & (given <= high)).all()):  # also where one is no number
            raise ArgumentError(f"{name}: expected {low:g} … {high:g}, found {found(value)}")


def renumber(references: I8, new: I8) -> None:
    """Let references to bodies follow them: `new` has the new row of each old one. `NOBODY` stays."""
    references[:] = np.append(new, NOBODY)[references]  # `NOBODY` is the last one from behind


class Table:
    """Rows of one kind of device, in columns; subclasses say which.

    Attributes
    ----------
    name : str
        Unique among the tables of an engine.
    columns : mapping of str to Column
        Its columns; each is an attribute, (n,) or (n, width).
    saved : mapping of str to Column
        The columns that are a part of the world's state.
    body : (n,) int64
        Row in `State` of the body that each row belongs to.
    layout : int
        Grows when rows come, go or are numbered anew.
    """

    name: ClassVar[str]
    columns: ClassVar[Mapping[str, Column]]
    optional: ClassVar[bool] = False
    """It is there only while it has rows: tables of devices that most worlds do not have."""
    body: I8

    def __init__(self) -> None:
        self._columns = {"body": Column(np.int64, start=NOBODY, refers=True, saved=False), **self.columns}
        self.saved = {name: column for name, column in self._columns.items() if column.saved}
        self._room: dict[str, NDArray[Any]] = {}
        self._rows: list[Row[Any]] = []
        self.layout = 0
        self.failure: Exception | None = None
        """What its `act` or `plan` has raised, if it is optional: it does nothing any more then."""
        self.on_write: Callable[[Row[Any], Mapping[str, Any]], None] | None = None
        """Told of everything that is written to a row from outside."""
        self._reserve(4)
        self._fit(0)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Row[Any]]:
        """The views of all rows, in order. Not to be changed."""
        return self._rows

    def add(self, row: Row[Any], body: int, **values: object) -> int:
        """Add a row that belongs to a body (its row in `State`), and its view; the number of the new row. `values`: of its columns."""
        n = len(self._rows)
        if n == len(self._room["body"]):
            self._reserve(2 * n)
        self._fit(n + 1)
        for name, column in self._columns.items():
            self._room[name][n] = values.get(name, column.start)
        self.body[n] = body
        self._rows.append(row)
        return n

    def renumber(self, new: I8) -> None:
        """Bodies were removed: `new` has the new row of each old one, and `NOBODY` for those that are gone, whose rows go with them."""
        n = len(self._rows)
        if not n:
            return
        stays = np.append(new, 0)[self.body] != NOBODY  # what belongs to nobody stays
        gone = np.flatnonzero(~stays)
        for i in gone.tolist():
            self._rows[i].detach()
        m = n - len(gone)
        for name, column in self._columns.items():
            room = self._room[name]
            if len(gone) <= FEW:
                for i in gone[::-1].tolist():
                    room[i : n - 1] = room[i + 1 : n]
            else:
                room[:m] = room[:n][stays]
            if column.refers:
                renumber(room[:m], new)
        for i in gone[::-1].tolist():
            del self._rows[i]
        first = int(gone[0]) if len(gone) else n  # rows before this one keep their numbers
        for i, row in enumerate(self._rows[first:], start=first):
            row.number = i
        self._fit(m)

    def arrange(self, order: Sequence[int]) -> None:
        """Put the rows into another order: `order` has the present number of each; those that are not in it go."""
        index = np.array(order, np.int64)
        stay = set(order)
        for i, row in enumerate(self._rows):
            if i not in stay:
                row.detach()
        for room in self._room.values():
            room[: len(index)] = room[index]
        self._rows = [self._rows[i] for i in order]
        for i, row in enumerate(self._rows):
            row.number = i
        self._fit(len(index))

    def _reserve(self, size: int) -> None:
        for name, column in self._columns.items():
            room = np.zeros((size, column.width) if column.width else size, column.dtype)
            old = self._room.get(name)
            if old is not None:
                room[: len(old)] = old
            self._room[name] = room

    def _fit(self, n: int) -> None:
        """Let the columns show the first `n` rows."""
        self.layout += 1
        for name, room in self._room.items():
            setattr(self, name, room[:n])


K = TypeVar("K", bound=Table)


class Row(Generic[K]):
    """One row of a table: the view that a Python program holds of a device. It stays the same row while others come and go.

    Attributes
    ----------
    table : Table
        Where it stands. After its body was removed, a table of its own that keeps its last values.
    number : int
        Which row it is at present.
    key : hashable
        What tells it from other rows of its table for ever: the name of what it is a part of.
    """

    def __init__(self, table: K, body: int, key: Hashable = "", **values: object) -> None:
        self.table = table
        self.key = key
        self.number = table.add(self, body, **values)

    def write(self, **values: Any) -> None:
        """Set columns of this row from outside of the world: this is the door that the journal watches.

        Raises
        ------
        ArgumentError
            A value is none that the column can hold; then nothing is written.
        """
        table, number = self.table, self.number
        for name, value in values.items():
            table.columns[name].check(name, value)
        for name, value in values.items():
            getattr(table, name)[number] = value
        if VERSION in table.columns:
            getattr(table, VERSION)[number] += 1
        if table.on_write is not None:
            table.on_write(self, values)

    def detach(self) -> None:
        """Its body is gone: keep what it was."""
        old, number = self.table, self.number
        self.table = alone = type(old)()
        self.number = alone.add(self, NOBODY, **{name: getattr(old, name)[number] for name in old.columns})


class _Cell(Generic[T]):
    """An attribute of a `Row` that is a number in its table's column of the same name."""

    def __init__(self, kind: type[T], column: str) -> None:
        self._kind = kind
        self._name = column

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = self._name or name

    def __get__(self, row: Row[Any], owner: type) -> T:
        return self._kind(getattr(row.table, self._name)[row.number])  # type: ignore[call-arg]

    def __set__(self, row: Row[Any], value: T) -> None:
        row.write(**{self._name: value})


def cell(kind: type[T], column: str = "") -> T:
    """Declare an attribute of a `Row`: a bool, int or float that stands in a column, by default that of the same name."""
    return cast(T, _Cell(kind, column))


__all__ = ["LARGEST", "NOBODY", "Column", "Row", "Table", "cell", "renumber"]
