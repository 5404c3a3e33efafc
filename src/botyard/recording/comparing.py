"""Differences between two states of a world: body, column and both values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import (
    FIRST_WITH_WHEELS,
    STEER_COLUMNS,
    State,
    allocate_state,
)
from botyard.engine.simulation import Engine
from botyard.engine.state import (
    BODIES,
    CONTACTS,
    STEERED,
    UNSAVED,
    Begin,
    columns_of,
    declared,
    digest_of,
    row_keys,
    split,
)
from botyard.errors import StateError
from botyard.formats.budget import Budget
from botyard.sim.simulation import Simulation
from botyard.sim.statechecks import check_columns
from botyard.sim.statehead import Head, Roster, digested_head

_PLAIN: Final = (
    "tick",
    "seed",
    "step_us",
    "error_mode",
    "contacts",
    "span",
    "teleports",
    "claims",
    "rays",
    "queue",
    "holds",
    "sequence",
)
"""Fields of the head of a saved state that are compared; the roster is compared separately."""
_AXES: Final[Mapping[tuple[int, ...], tuple[str, ...]]] = {
    (3,): (".x", ".y", ".a"),
    (2,): (".forward", ".turned"),
    (STEER_COLUMNS,): (
        ".angle",
        ".rate",
        ".top_rate",
        ".limit",
        ".wheelbase",
        ".offset",
        ".by_angle",
    ),
}
"""Names of the numbers in a row of `botyard.engine.layout.State`."""


WORD: Final = 8
"""Size of a word, bytes."""
_ZEROS: Final = bytes(WORD)
_STEADY: Final = frozenset(State._fields[State._fields.index("max_vel") :]) - {STEERED}
"""Columns that no step changes; a difference there is a cause, not a consequence."""


class Difference(NamedTuple):
    """Value that differs.

    Attributes
    ----------
    body : str
        Robot, box or device; empty for a value of the world.
    column : str
        Name of the column: ``pose.x``, ``battery.charge``, ``claims``.
    recorded, again : value
        Recorded value, and value of the repeated run.
    """

    body: str
    column: str
    recorded: Any
    again: Any

    def __str__(self) -> str:
        whose = f"{self.body}: " if self.body else ""
        return f"{whose}{self.column}: recorded {_shown(self.recorded)}, now {_shown(self.again)}"


def _shown(value: Any) -> str:
    text = repr(value)
    # A column can hold thousands of numbers.
    return text if len(text) <= 200 else f"{text[:199]}…"


class _Parts(NamedTuple):
    head: Head
    roster: Roster
    columns: dict[str, NDArray[Any]]


class Layout(NamedTuple):
    """Layout of the bytes of `Columns.copy`.

    Attributes
    ----------
    columns : tuple of (name, dtype, shape)
        The columns in order.
    rows : mapping of str to sequence
        Key of each row, by name of the table. In the table `BODIES` the keys are names of bodies.
    """

    columns: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
    rows: Mapping[str, Sequence[Any]]


class Columns:
    """Columns of an engine, for a copy after every step.

    Parameters
    ----------
    engine : Engine
        Engine whose columns are copied.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._of: tuple[object, list[int], object] = None, [], None
        self._parts: list[Any] = []
        self._layout: Layout | None = None

    def copy(self) -> bytes:
        """Return the bytes of all columns one after another.

        Zeros fill each column up to a whole word, so that no word holds two columns.
        """
        engine = self._engine
        version = [id(engine.rows), *(table.layout for table in engine.tables.values())]
        # Contacts of bodies with mass appear and disappear in each step.
        # The parts are views of the engine's memory: they stay valid until an array is
        # replaced.
        if (
            engine.state is not self._of[0]
            or version != self._of[1]
            or engine.dynamics is not None
        ):
            # Keep references to both objects, so that no new object can reuse their
            # identity.
            self._of, self._parts, self._layout = (
                (engine.state, version, engine.rows),
                [],
                None,
            )
            for column in columns_of(engine):
                self._parts.append(np.ascontiguousarray(column).data)
                # Zeros fill the last word, so that no word holds two columns.
                if rest := column.nbytes % WORD:
                    self._parts.append(_ZEROS[rest:])

        return b"".join(self._parts)

    @property
    def layout(self) -> Layout:
        """Layout of the bytes that the last call of `copy` returned."""
        if self._layout is None:
            engine = self._engine
            names = [
                one.name
                for one in declared(
                    engine,
                    masses=engine.dynamics is not None,
                    steers=len(engine.state.steer) > 0,
                )
            ]
            columns = tuple(
                (n, a.dtype, a.shape)
                for n, a in zip(names, columns_of(engine), strict=True)
            )
            tables = {table.name: row_keys(table) for table in engine.tables.values()}
            self._layout = Layout(
                columns,
                tables | {BODIES: sorted(engine.rows, key=engine.rows.__getitem__)},
            )

        return self._layout


def differences_of_columns(
    layout: Layout, recorded: bytes, again: bytes
) -> Iterator[Difference]:
    """Yield the differences between bytes of columns, ordered as in `differences`.

    Parameters
    ----------
    layout : Layout
        Layout of the bytes of both runs.
    recorded, again : bytes
        Columns of the recorded and of the repeated run, as `Columns.copy` returns them.
    """
    at, found = 0, list[tuple[str, NDArray[Any], NDArray[Any]]]()
    for name, dtype, shape in layout.columns:
        size = dtype.itemsize * math.prod(shape)
        one, other = recorded[at : at + size], again[at : at + size]
        # Columns are padded to whole words, see `Columns.copy`.
        at += -(-size // WORD) * WORD
        if one != other:
            then, now = (
                np.frombuffer(data, dtype).reshape(shape) for data in (one, other)
            )
            found.append((name, then, now))

    # Columns that no step changes are first, because they name the cause.
    for name, one_column, other_column in sorted(
        found, key=lambda item: item[0] not in _STEADY
    ):
        yield from _of_rows(
            name, _rows_of(name, layout.rows, len(one_column)), one_column, other_column
        )


def _rows_of(
    column: str, rows: Mapping[str, Sequence[Any]], count: int
) -> Sequence[Any]:
    """Return the key of each row of a column, taken from the table that has the column.

    In a table without keys, the name of the table and a number stand for each key.

    Parameters
    ----------
    column : str
        Name of the column: ``table.column``, or a name alone for a column of `BODIES`.
    rows : mapping of str to sequence
        See `Layout.rows`.
    count : int
        Number of rows.
    """
    # The columns of "mass" have a row for each body, without a table of their own.
    table = column.partition(".")[0] if "." in column else BODIES
    return rows.get(BODIES if table == "mass" else table) or [
        f"{table} {i}" for i in range(count)
    ]


def state_digest(state: bytes, budget: Budget = Budget()) -> int:
    """Return the `Simulation.digest` of the simulation of a state.

    Parameters
    ----------
    state : bytes
        Result of `Simulation.save_state`.
    budget : Budget
        Limit of the bytes of the state.

    Raises
    ------
    StateError
        The bytes are not a valid state.
    """
    head, data = split(state, Head, budget.bytes)
    return digest_of(digested_head(head), [np.frombuffer(data, np.uint8)])


def roster_of(state: bytes, budget: Budget = Budget()) -> Roster:
    """Return the roster of a state: its bodies, and the rows of its tables.

    Parameters
    ----------
    state : bytes
        Result of `Simulation.save_state`.
    budget : Budget
        Limit of the bytes of the state.

    Raises
    ------
    StateError
        The bytes are not a valid state, or have another version.
    """
    head, _ = split(state, Head, budget.bytes)
    return _roster(head)


def tick_of(state: bytes, budget: Budget = Budget()) -> int:
    """Return the number of steps of a state.

    Raises
    ------
    StateError
        The bytes are not a valid state.
    """
    return split(state, Head, budget.bytes)[0].tick


def _roster(head: Head) -> Roster:
    try:
        return msgspec.msgpack.decode(head.roster, type=Roster)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StateError(f"state: {error}") from None


def body_columns(
    state: bytes, budget: Budget = Budget()
) -> tuple[dict[str, int], dict[str, NDArray[Any]]]:
    """Return the columns of all bodies in a state.

    Parameters
    ----------
    state : bytes
        Result of `Simulation.save_state`.
    budget : Budget
        Limit of the bytes of the state.

    Returns
    -------
    rows : dict of str to int
        Row of each robot.
    columns : dict of str to array
        Columns of `State` by name, with a row for each robot and box. They are
        read-only.

    Raises
    ------
    StateError
        The bytes are not a valid state.
    """
    head, data = split(state, Head, budget.bytes)
    roster = _roster(head)
    _check_columns(roster.schema, tuple(roster.keys), head.version, head.program)
    bodies = roster.bodies
    columns, at = dict[str, NDArray[Any]](), 0
    # The layout of an empty engine gives dtype and shape of each column.
    for name, empty in allocate_state(0)[0]._asdict().items():
        # Names of bodies determine these columns, so states leave them out.
        if name in UNSAVED:
            continue
        # Only states with a body that steers have this column.
        if name == STEERED and not _steers(columns["drive"]):
            continue
        shape = (len(bodies), *empty.shape[1:])
        size = empty.dtype.itemsize * math.prod(shape)
        # A crafted head may announce more bodies than the data hold.
        if at + size > len(data):
            raise StateError(
                f"state: expected the complete column {name}, found the end of the data"
            )

        columns[name] = np.frombuffer(data[at : at + size], empty.dtype).reshape(shape)
        at += size

    return {
        body.name: i for i, body in enumerate(bodies) if body.start is not None
    }, columns


def _steers(drive: NDArray[Any]) -> bool:
    """Return whether a body has a row of wheels, so that a state has the column of steering.

    Parameters
    ----------
    drive : (n,) int8
        `State.drive` of all bodies.
    """
    return bool((drive >= FIRST_WITH_WHEELS).any())


@lru_cache(maxsize=16)
def _check_columns(
    schema: bytes, tables: tuple[str, ...], version: int, program: str
) -> None:
    """Check that a state with these tables has the columns of this program.

    Raises
    ------
    StateError
        The state has other columns.
    """
    # An empty simulation declares the same columns, and the cache runs this check once.
    roster = Roster(schema, b"", "", b"", [], {name: [] for name in tables}, [])
    check_columns(Simulation().core, Begin(version, program), roster)


def differences(
    sim: Simulation, state: bytes, budget: Budget = Budget()
) -> Iterator[Difference]:
    """Yield the differences between a recorded state and the present one, bit by bit.

    The values 0.0 and −0.0 differ. The order is: bodies, then columns that no step
    changes (limits, masks), then the other columns in the order of `State`, poses
    first.

    Parameters
    ----------
    sim : Simulation
        Simulation that repeats the run.
    state : bytes
        Recorded state of the same tick.
    budget : Budget
        Limit of the bytes of the state.

    Raises
    ------
    StateError
        The bytes are not a valid state, or another version of botyard wrote them.
    """
    head, data = split(state, Head, budget.bytes)
    mine, roster = _present(sim), _roster(head)
    check_columns(sim.core, head, roster)
    yield from _of_rosters(roster, mine.roster)
    # Rows can only be compared if they belong to the same bodies.
    if [body.name for body in roster.bodies] == [
        body.name for body in mine.roster.bodies
    ] and roster.keys == mine.roster.keys:
        theirs = _Parts(head, roster, _columns(sim, head, roster, data))
        yield from _of_columns(theirs, mine)

    yield from _of_heads(
        head, mine.head, [body.name for body in roster.bodies if body.start is not None]
    )


def _present(sim: Simulation) -> _Parts:
    # A recording holds commands of controllers, not their programs, so these cannot be
    # compared.
    head, _ = split(sim.save_state(programs=False), Head, 2**62)
    names = [
        one.name
        for one in declared(
            sim.core.engine,
            masses=sim.core.engine.dynamics is not None,
            steers=len(sim.core.engine.state.steer) > 0,
        )
    ]
    return _Parts(
        head, _roster(head), dict(zip(names, columns_of(sim.core.engine), strict=True))
    )


def _columns(
    sim: Simulation, head: Head, roster: Roster, data: memoryview
) -> dict[str, NDArray[Any]]:
    rows = {name: len(keys) for name, keys in roster.keys.items()} | {
        BODIES: len(roster.bodies),
        CONTACTS: max(head.contacts, 0),
    }
    found, at = dict[str, NDArray[Any]](), 0
    for one in declared(sim.core.engine, masses=head.contacts >= 0, steers=True):
        if one.rows == STEERED:
            if not _steers(found["drive"]):
                continue
            rows[STEERED] = len(roster.bodies)

        shape = (rows.get(one.rows, 0), *one.shape)
        size = one.dtype.itemsize * math.prod(shape)
        if at + size > len(data):
            raise StateError(
                f"state: expected the complete column {one.name}, found the end of the data"
            )

        found[one.name] = np.frombuffer(data[at : at + size], one.dtype).reshape(shape)
        at += size

    return found


def _of_rosters(theirs: Roster, mine: Roster) -> Iterator[Difference]:
    recorded, again = (
        {body.name: body for body in roster.bodies} for roster in (theirs, mine)
    )
    for name in [*recorded, *(name for name in again if name not in recorded)]:
        one, other = recorded.get(name), again.get(name)
        if one is None or other is None:
            yield Difference(name, "is there", one is not None, other is not None)
        elif (one.model, one.digest) != (other.model, other.digest):
            yield Difference(
                name,
                "model",
                f"{one.model} {one.digest.hex()}",
                f"{other.model} {other.digest.hex()}",
            )
        elif one.start != other.start:
            yield Difference(name, "start", one.start, other.start)

    if list(recorded) != list(again) and recorded.keys() == again.keys():
        yield Difference("", "order of bodies", list(recorded), list(again))
    for what in ("scene", "described"):
        one, other = getattr(theirs, what), getattr(mine, what)
        if one != other:
            yield Difference("", what, one.hex(), other.hex())

    for what in ("keys", "unserved"):
        one, other = getattr(theirs, what), getattr(mine, what)
        if one != other:
            yield Difference(
                "", "rows of tables" if what == "keys" else what, one, other
            )


def _of_columns(theirs: _Parts, mine: _Parts) -> Iterator[Difference]:
    rows = {**theirs.roster.keys, BODIES: [body.name for body in theirs.roster.bodies]}
    for name, recorded in sorted(
        theirs.columns.items(), key=lambda item: item[0] not in _STEADY
    ):
        again = mine.columns.get(name)
        if (
            again is None
            or again.shape != recorded.shape
            or again.dtype != recorded.dtype
        ):
            # Another number of contacts, or mass in only one state; `_of_heads` reports this
            # difference.
            continue

        yield from _of_rows(name, _rows_of(name, rows, len(recorded)), recorded, again)


def _of_rows(
    name: str, rows: Sequence[Any], recorded: NDArray[Any], again: NDArray[Any]
) -> Iterator[Difference]:
    """Yield the differences between two columns.

    Parameters
    ----------
    name : str
        Name of the column.
    rows : sequence
        Key of each row: a name, or a list of its parts.
    recorded, again : (n, …) array
        Both columns, of one type and shape.
    """
    if not recorded.size:
        return
    # Compare bytes, because NaN differs from itself and 0.0 equals -0.0.
    bits = (
        a.view(np.uint8).reshape(*a.shape, a.dtype.itemsize)
        for a in map(np.ascontiguousarray, (recorded, again))
    )
    one, other = bits
    names = _AXES.get(recorded.shape[1:]) if "." not in name else None
    for where in np.argwhere((one != other).any(axis=-1)).tolist():
        row, inner = where[0], where[1:]
        behind = (
            ""
            if not inner
            else names[inner[0]]
            if names is not None
            else f"[{inner[0]}]"
        )
        key = rows[row]
        whose = ".".join(map(str, key)) if isinstance(key, list) else str(key)
        yield Difference(
            whose,
            name + behind,
            recorded[tuple(where)].item(),
            again[tuple(where)].item(),
        )


def _of_heads(theirs: Head, mine: Head, robots: Sequence[str]) -> Iterator[Difference]:
    for what in _PLAIN:
        one, other = getattr(theirs, what), getattr(mine, what)
        # Compare the bits of the encoding: NaN equals NaN, and −0 is not 0.
        if msgspec.msgpack.encode(one) == msgspec.msgpack.encode(other):
            continue
        if what == "teleports" and len(one) == len(other) == len(robots):
            for robot, a, b in zip(robots, one, other, strict=True):
                if a != b:
                    yield Difference(robot, "teleports", a, b)
        elif isinstance(one, dict):
            for robot in sorted(one.keys() | other.keys()):
                if one.get(robot) != other.get(robot):
                    yield Difference(
                        robot, what, one.get(robot, []), other.get(robot, [])
                    )
        else:
            yield Difference("", what, one, other)


__all__ = [
    "WORD",
    "Columns",
    "Difference",
    "Layout",
    "body_columns",
    "differences",
    "differences_of_columns",
    "roster_of",
    "state_digest",
    "tick_of",
]
