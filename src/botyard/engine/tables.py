"""Tables: the state of devices in columns.

A battery, a gripper or a joint has one row.

`State` holds the values that all bodies have. The state of devices, which only some
bodies carry, is in a `Table` of their kind. A row belongs to a body and is removed with
it, and a column may refer to bodies. Array code and kernels work on whole columns. A
`Row` is the view of one row for Python programs. State outside of tables is not
saved with a world.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from botyard.api.arguments import found
from botyard.engine.layout import I8
from botyard.errors import ArgumentError

T = TypeVar("T")
NOBODY: Final = -1
"""Value of a reference that refers to no body."""
MAX_STATE_NUMBER: Final = 1e15
"""Largest magnitude of a number in a saved state, except in `unbounded` columns."""
MAX_ONE_BY_ONE: Final = 8
"""Highest number of rows that are removed one by one by moving later rows up.

If more rows are removed at once, the remaining rows are copied.
"""
VERSION: Final = "version"
"""Name of the optional column that counts the writes to a row."""


class Column(NamedTuple):
    """Column of a table.

    Attributes
    ----------
    dtype : dtype
        Type of its numbers.
    width : int
        Count of numbers in a row; 0: one, and the column is one-dimensional.
    start : float
        Value of a new row.
    refers : bool
        Whether it holds rows of bodies (`NOBODY`: none), which are renumbered when bodies
        are removed.
    low, high : float
        Least and greatest value, for checks of states from files and callers.
    unbounded : bool
        Whether NaN and infinite values are allowed.
    saved : bool
        Whether it is a part of the world's state. Other columns are computed from other
        data.
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
        """Least and greatest value that type and declaration allow."""
        kind = np.dtype(self.dtype)
        if self.refers or kind.kind == "f":
            return (
                (self.low, self.high)
                if self.unbounded
                else (
                    max(self.low, -MAX_STATE_NUMBER),
                    min(self.high, MAX_STATE_NUMBER),
                )
            )

        whole = np.iinfo(kind)
        return max(self.low, float(whole.min)), min(self.high, float(whole.max))

    def check(self, name: str, value: object) -> None:
        """Check that values fit the column.

        Parameters
        ----------
        name : str
            Name of the column, for the message.
        value : object
            Number, or `width` numbers.

        Raises
        ------
        ArgumentError
            The values are not numbers, of another shape, or out of bounds.
        """
        given = np.asarray(value)
        low, high = self.bounds
        if given.dtype.kind not in "biuf" or given.shape not in (
            (),
            (self.width or 1,)[: bool(self.width)],
        ):
            raise ArgumentError(
                f"{name}: expected {f'{self.width} numbers' if self.width else 'a number'}, "
                f"found {found(value)}"
            )

        if self.unbounded:
            return
        # NaN also fails the comparison.
        if not bool(((given >= low) & (given <= high)).all()):
            raise ArgumentError(
                f"{name}: expected {low:g} … {high:g}, found {found(value)}"
            )


def renumber(references: I8, new: I8) -> None:
    """Renumber references to bodies in place; `NOBODY` stays unchanged.

    Parameters
    ----------
    references : (k,) int64
        Rows of bodies. In-place.
    new : (n,) int64
        New row of each old row; `NOBODY` for a removed body.
    """
    # `NOBODY` is −1, which is the index of the appended element.
    references[:] = np.append(new, NOBODY)[references]


class Table:
    """Rows of one kind of device in columns; subclasses define the kind.

    Attributes
    ----------
    name : str
        Unique name among the tables of an engine.
    columns : mapping of str to Column
        Columns of the table; each is an attribute, (n,) or (n, width).
    saved : mapping of str to Column
        Columns that are a part of the world's state.
    body : (n,) int64
        Row in `State` of the body that each row belongs to.
    layout : int
        Counter of additions, removals and renumberings of rows.
    """

    name: ClassVar[str]
    columns: ClassVar[Mapping[str, Column]]
    optional: ClassVar[bool] = False
    """Whether the table exists only while it has rows.

    Tables of devices that few worlds have are optional.
    """
    measures: ClassVar[bool] = False
    """Whether the table affects only readings of its devices, and its saved columns start at 0.

    An episode starts with zeros. Batches of worlds leave such devices out.
    """
    inhibits: ClassVar[bool] = False
    """Whether its devices can keep the motors of their bodies off, see `inhibited`."""
    brakes: ClassVar[bool] = False
    """Whether bodies with inhibited motors stop with the highest deceleration.

    Otherwise they stop by their ramps.
    """
    body: I8

    def __init__(self) -> None:
        self._columns = {
            "body": Column(np.int64, start=NOBODY, refers=True, saved=False),
            **self.columns,
        }
        self.saved = {
            name: column for name, column in self._columns.items() if column.saved
        }
        self._starts = [
            (name, column.start)
            for name, column in self._columns.items()
            if column.start
        ]
        self._room: dict[str, NDArray[Any]] = {}
        self._rows: list[Row[Any]] = []
        self.layout = 0
        self.failure: Exception | None = None
        """Exception that `act` or `plan` of an optional table has raised.

        Neither method is called again.
        """
        self.on_write: Callable[[Row[Any], Mapping[str, Any]], None] | None = None
        """Callback for each write to a row by `Row.write`."""
        self._fitted = 0
        """Number of rows in the arrays of the columns; more than `len(self)` while rows
        are added.
        """
        self._reserve(4)
        self._fit(0)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_idle(self) -> bool:
        """Whether `act` and `plan`, if there are any, do nothing in the next steps."""
        return not len(self) or not (hasattr(self, "act") or hasattr(self, "plan"))

    def inhibited(self) -> I8:
        """Return rows of bodies whose motors its devices keep off, (k,) int64.

        The engine calls it after each step's commands if the table `inhibits`.
        """
        raise NotImplementedError

    @property
    def rows(self) -> list[Row[Any]]:
        """Views of all rows in order, not to be changed."""
        return self._rows

    def add(self, row: Row[Any], body: int, **values: object) -> int:
        """Add a row for a body.

        Parameters
        ----------
        row : Row
            View of the new row.
        body : int
            Row of the body in `State`, or `NOBODY`.
        **values
            Values of columns by name; others get their `Column.start`. They are not
            checked.

        Returns
        -------
        int
            Number of the new row, which is the last one.
        """
        n = len(self._rows)
        if n == len(self._room["body"]):
            # Doubling keeps the cost of an added row constant on average.
            self._reserve(2 * n)
        if n >= self._fitted:
            self._fit(n + 1)

        # Spare rows are zero.
        for name, start in self._starts:
            self._room[name][n] = start
        for name, value in values.items():
            self._room[name][n] = value
        self.body[n] = body
        self._rows.append(row)
        return n

    @contextlib.contextmanager
    def adding(self, count: int) -> Iterator[None]:
        """Make room for about `count` rows that are added until the end of the context.

        Columns are then cut to size once, not for each row.

        Parameters
        ----------
        count : int
            Expected number of rows. More rows may be added, at a higher cost.
        """
        n = len(self._rows)
        if n + count > len(self._room["body"]):
            self._reserve(n + count)
        self._fit(n + count)
        try:
            yield
        finally:
            self._fit(len(self._rows))

    def renumber(self, new: I8) -> None:
        """Renumber and remove rows after bodies were removed or permuted.

        Parameters
        ----------
        new : (n,) int64
            New row of each old body; `NOBODY` for removed bodies, whose rows are
            removed.
        """
        n = len(self._rows)
        if not n:
            return
        # Rows that belong to no body stay.
        stays = np.append(new, 0)[self.body] != NOBODY
        gone = np.flatnonzero(~stays)

        for i in gone.tolist():
            self._rows[i].detach()
        m = n - len(gone)
        for name, column in self._columns.items():
            room = self._room[name]
            if len(gone) <= MAX_ONE_BY_ONE:
                for i in gone[::-1].tolist():
                    room[i : n - 1] = room[i + 1 : n]
            else:
                room[:m] = room[:n][stays]
            room[m:n] = 0

            if column.refers:
                renumber(room[:m], new)

        for i in gone[::-1].tolist():
            del self._rows[i]
        # Rows before this one keep their numbers.
        first = int(gone[0]) if len(gone) else n
        for i, row in enumerate(self._rows[first:], start=first):
            row.number = i
        self._fit(m)

    def arrange(self, order: Sequence[int]) -> None:
        """Permute the rows, and remove rows that the new order does not have.

        Parameters
        ----------
        order : sequence of int
            Present number of each new row.
        """
        index = np.array(order, np.int64)
        stay = set(order)
        for i, row in enumerate(self._rows):
            if i not in stay:
                row.detach()

        for room in self._room.values():
            room[: len(index)] = room[index]
            room[len(index) : len(self._rows)] = 0
        self._rows = [self._rows[i] for i in order]
        for i, row in enumerate(self._rows):
            row.number = i
        self._fit(len(index))

    def _reserve(self, size: int) -> None:
        for name, column in self._columns.items():
            room = np.zeros(
                (size, column.width) if column.width else size, column.dtype
            )
            old = self._room.get(name)
            if old is not None:
                room[: len(old)] = old
            self._room[name] = room

    def _fit(self, n: int) -> None:
        """Make the attributes of the columns views of the first `n` rows.

        Parameters
        ----------
        n : int
            Number of rows. The views are new objects: kernels and callers must not keep
            old ones.
        """
        self.layout += 1
        self._fitted = n
        vars(self).update((name, room[:n]) for name, room in self._room.items())


K = TypeVar("K", bound=Table)


class Row(Generic[K]):
    """View of one row of a table, which represents a device for Python programs.

    The view stays valid when other rows are removed.

    Parameters
    ----------
    table : Table
        Table that gets the new row.
    body : int
        Row of the body that it belongs to, or `NOBODY`.
    **values
        Values of columns by name.

    Attributes
    ----------
    table : Table
        Table of the row. After its body was removed, a table of its own with its last
        values.
    number : int
        Present number in the table.
    key : hashable
        Identity among the rows of its table, also in saved states: the name of the
        owner.
    """

    def __init__(
        self, table: K, body: int, key: Hashable = "", **values: object
    ) -> None:
        self.table = table
        self.key = key
        self.number = table.add(self, body, **values)

    def write(self, **values: Any) -> None:
        """Set columns of this row from outside of the step; the journal records it.

        Parameters
        ----------
        **values
            Numbers by name of the column.

        Raises
        ------
        ArgumentError
            A value does not fit its column. In this case, nothing is written.
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
        """Move the last values of this row to a separate table after its body was removed."""
        # Handles of removed robots must still be readable, for example by a program's
        # last call.
        old, number = self.table, self.number
        self.table = alone = type(old)()
        self.number = alone.add(
            self, NOBODY, **{name: getattr(old, name)[number] for name in old.columns}
        )


class _Cell(Generic[T]):
    """Descriptor of an attribute of a `Row`: the number in a column of its table."""

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
    """Declare an attribute of a `Row`: a bool, int or float in a column.

    The default column has the name of the attribute.

    Parameters
    ----------
    kind : type
        bool, int or float. Reading returns it; writing goes through `Row.write`.
    column : str
        Name of the column; the default is the name of the attribute.
    """
    return cast(T, _Cell(kind, column))


__all__ = ["MAX_STATE_NUMBER", "NOBODY", "Column", "Row", "Table", "cell", "renumber"]
