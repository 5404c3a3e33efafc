"""State of an engine as bytes: a head that describes the world, then all columns.

Layout: `MAGIC` (8 bytes), length of the head (4 bytes, little-endian), the head
(MessagePack), the numbers of all columns (little-endian, in C order, in the order of
`columns_of`), and a checksum of all these bytes (BLAKE2b, 8 bytes). Lengths of columns
follow from the head's counts of bodies and rows. The head's digest of names and types
of columns reveals states of other versions.

The bytes contain no code, and all numbers are checked: kernels use some of them as
indices without a bounds check.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import STEER_COLUMNS, State
from botyard.engine.masslayout import Impulses, MassState, impulses, mass_state
from botyard.engine.tables import Column, Table
from botyard.errors import StateError
from botyard.names import shown

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine
from botyard.engine.columnchecks import (
    ANY_FINITE,
    MAX_SPAN,
    MIN_SUBSTEP,
    check_carriers,
    check_column,
    check_poses,
    check_steering,
    is_span,
)

# The last byte is no letter, so that text files never match.
MAGIC: Final = b"botyard\x01"
"""First bytes of every state, by which other files are recognized."""
# A view of a small column costs more than a copy of it.
MIN_VIEWED_BYTES: Final = 4096
"""Least size of a column that is written without a copy, bytes."""
VERSION: Final = 2
"""Version of the format that is written.

If you add, remove or change columns, or fields of the head, increase it, list the
readable formats in `READS`, and make files of the new one with ``python -m
tools.corpus``.

1: up to November 2026; its digests of descriptions depend on the classes of the program
that wrote it. 2: digests of descriptions do not depend on the shape of classes
(`botyard.model.shapes`).
"""
READS: Final = (1, 2)
"""Versions of the format that can be read."""
DIGESTED: Final = (1, "0.1.0")
"""Values that replace version and program of a head when its digest is computed.

Thus the same world has the same digest in every version.
"""
# The checksum detects damage, not forgery: eight bytes are enough.
CHECKSUM: Final = 8
"""Size of the checksum at the end, bytes."""
UNSAVED: Final = {"uid"}
"""Columns of `State` that are not saved: `uid` is computed from the body's name."""
H = TypeVar("H")


class Begin(msgspec.Struct, array_like=True):
    """First fields of a head, which are the same in every version of the format.

    Attributes
    ----------
    version : int
        Version of the format.
    program : str
        Version of the program that wrote it.
    """

    version: int
    program: str


class Declared(NamedTuple):
    """Saved column.

    Attributes
    ----------
    name : str
        Name, with the name of its table in front.
    dtype : dtype
        Type of its numbers.
    shape : tuple of int
        Shape of a row.
    column : Column or None
        Declaration in a table; None outside of tables.
    rows : str
        Name of the count of rows that is its length: a table, `BODIES`, `CONTACTS` or
        `STEERED`.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    column: Column | None
    rows: str


BODIES: Final = ""
"""Value of `Declared.rows`: a row for each body."""
CONTACTS: Final = "contact"
"""Value of `Declared.rows`: a row for each contact of a body with mass."""
STEERED: Final = "steer"
"""Value of `Declared.rows`: a row for each body if one of them has a row of wheels (it
steers or has a Mecanum drive), otherwise none.

States without such a body lack the column, so that they equal the states of versions
that did not have the column.
"""
_ANY: Final = Column(np.float64, unbounded=True)
_MASS: Final = tuple(
    Declared(
        f"mass.{name}",
        array.dtype,
        array.shape[1:],
        Column(array.dtype, low=low, high=high, unbounded=name == "seen"),
        BODIES,
    )
    for (name, array), (low, high) in zip(
        mass_state(0)._asdict().items(),
        # In the order of `MassState`; `seen` is unbounded, because NaN marks new bodies.
        ((0, 0), ANY_FINITE, (0, 1), ANY_FINITE, ANY_FINITE),
        strict=True,
    )
)
_CONTACTS: Final = tuple(
    Declared(f"contact.{name}", array.dtype, array.shape[1:], column, CONTACTS)
    for name, array, column in (
        ("key", impulses(0).key, _ANY),
        ("impulse", impulses(0).impulse, Column(np.float64)),
    )
)


def declared(
    engine: Engine,
    *,
    masses: bool,
    steers: bool,
    tables: Iterable[Table] | None = None,
) -> list[Declared]:
    """Return the declarations of all saved columns in a fixed order.

    The order is a part of the format: columns of `State`, of the tables, of bodies with
    mass.

    Parameters
    ----------
    engine : Engine
        Engine whose columns are declared.
    masses : bool
        Whether columns of bodies with mass are included.
    steers : bool
        Whether the column of wheels is included.
    tables : iterable of Table, optional
        Tables to declare instead of the engine's own, such as the ones of a saved
        world.
    """
    found = [
        Declared(n, a.dtype, a.shape[1:], None, STEERED if n == STEERED else BODIES)
        for n, a in engine.state._asdict().items()
        if n not in UNSAVED and (steers or n != STEERED)
    ]

    for table in engine.tables.values() if tables is None else tables:
        for name, column in table.saved.items():
            array = getattr(table, name)
            found.append(
                Declared(
                    f"{table.name}.{name}",
                    array.dtype,
                    array.shape[1:],
                    column,
                    table.name,
                )
            )

    return [*found, *_MASS, *_CONTACTS] if masses else found


def columns_of(engine: Engine) -> Iterator[NDArray[Any]]:
    """Yield the numbers of the saved columns, in the order of `declared`.

    Parameters
    ----------
    engine : Engine
        Engine whose state is saved. The arrays are its own, not copies.
    """
    # The columns are written in the order in which they are read, without names.
    for name, array in engine.state._asdict().items():
        if name not in UNSAVED and (name != STEERED or len(array)):
            yield array

    for table in engine.tables.values():
        for name in table.saved:
            yield getattr(table, name)

    # The number of contacts varies, so that only used rows are saved.
    dynamics = engine.dynamics
    if dynamics is not None:
        yield from dynamics.state
        count = int(dynamics.table.size[0])
        yield from (dynamics.table.key[:count], dynamics.table.impulse[:count])


def schema(
    engine: Engine, *, steers: bool, tables: Iterable[Table] | None = None
) -> bytes:
    """Return a digest of the names and types of all columns, 8 bytes.

    A state with other columns has another digest.

    Parameters
    ----------
    engine : Engine
        Engine whose columns are declared.
    steers : bool
        Whether a body has a row of wheels.
    tables : iterable of Table, optional
        See `declared`.
    """
    text = ";".join(
        f"{d.name}:{d.dtype.str}:{d.shape}"
        for d in declared(engine, masses=True, steers=steers, tables=tables)
    )
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def join(head: bytes, columns: Sequence[NDArray[Any]]) -> bytes:
    """Return the state bytes of a head and columns.

    Parameters
    ----------
    head : bytes
        Encoded head, MessagePack.
    columns : sequence of array
        Columns in the order of `declared`.

    Returns
    -------
    bytes
        State in the layout that the module describes, with its checksum.
    """
    parts = [MAGIC, struct.pack("<I", len(head)), head, *map(_numbers, columns)]
    checksum = hashlib.blake2b(digest_size=CHECKSUM)
    for part in parts:
        # Part by part, because joining first would need another copy of all bytes.
        checksum.update(part)
    return b"".join([*parts, checksum.digest()])


def _numbers(column: NDArray[Any]) -> bytes | memoryview:
    """Return the bytes of a column, as a view if it is large.

    A copy of all columns would take as long as their checksum.
    """
    return (
        column.tobytes()
        if column.nbytes < MIN_VIEWED_BYTES
        else np.ascontiguousarray(column).data.cast("B")
    )


def split(state: bytes, kind: type[H], max_bytes: int) -> tuple[H, memoryview]:
    """Split a state into its head, decoded as `kind`, and the bytes of its columns.

    Parameters
    ----------
    state : bytes
        State, as from `join`.
    kind : type
        Class of the head.
    max_bytes : int
        Greatest size that is read, bytes.

    Returns
    -------
    tuple of (head, memoryview)
        Decoded head, and the bytes of the columns, which are not copied.

    Raises
    ------
    StateError
        The bytes are not a state, are damaged, of an unsupported version, or longer
        than `max_bytes`.
    """
    if not isinstance(state, (bytes, bytearray, memoryview)):
        raise StateError(
            f"state: expected bytes of save_state, found {type(state).__name__}"
        )

    data = memoryview(state)
    # The size is checked before the checksum, whose time grows with it.
    if len(data) > max_bytes:
        raise StateError(
            f"state: expected at most {max_bytes} bytes, found {len(data)} "
            "(budget.bytes raises this limit)"
        )

    # Four bytes hold the length of the head.
    begin = len(MAGIC) + 4
    if len(data) < begin + CHECKSUM or bytes(data[: len(MAGIC)]) != MAGIC:
        raise StateError("state: expected bytes of save_state, found other data")
    if (
        hashlib.blake2b(data[:-CHECKSUM], digest_size=CHECKSUM).digest()
        != data[-CHECKSUM:]
    ):
        raise StateError("state: it is damaged: its checksum does not match")

    (size,) = struct.unpack("<I", data[len(MAGIC) : begin])
    # The length may be forged: a checksum proves nothing about its author.
    if size > len(data) - begin - CHECKSUM:
        raise StateError(
            f"state: expected a head of {size} bytes, found "
            f"{len(data) - begin - CHECKSUM}"
        )

    # The version decides whether the rest of the head can be decoded.
    begins = data[begin : begin + size]
    said = _decoded(begins, Begin)
    if said.version not in READS:
        reads = " or ".join(map(str, READS))
        raise StateError(
            f"state: expected version {reads} of the format, found "
            f"{said.version} ({program(said.program)} wrote it)"
        )

    return _decoded(begins, kind), data[begin + size : -CHECKSUM]


def _decoded(head: memoryview, kind: type[H]) -> H:
    """Return the decoded head of a state.

    Parameters
    ----------
    head : memoryview
        Encoded head, MessagePack.
    kind : type
        Class of the head, or `Begin` for its first fields.

    Raises
    ------
    StateError
        The bytes are not such a head.
    """
    try:
        return msgspec.msgpack.decode(head, type=kind)
    # A class that checks its values raises ValueError.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StateError(f"state: {error}") from None


def program(version: str) -> str:
    """Return the name of a program that wrote a state.

    Parameters
    ----------
    version : str
        Version in the head; it may come from a foreign file, and is shortened for
        messages.
    """
    return f"botyard {shown(version, 40)}"


def read_columns(
    engine: Engine,
    data: memoryview,
    rows: Mapping[str, int],
    *,
    masses: bool,
    tables: Iterable[Table] | None = None,
) -> dict[str, NDArray[Any]]:
    """Read the columns in `data`, and check all numbers, so that kernels may use them.

    Parameters
    ----------
    engine : Engine
        Engine that declares the columns.
    data : memoryview
        Bytes of the columns.
    rows : mapping of str to int
        Number of rows of each table, of `BODIES`, of `CONTACTS` and of `STEERED`.
    masses : bool
        Whether there are columns of bodies with mass.
    tables : iterable of Table, optional
        See `declared`.

    Returns
    -------
    dict of str to array
        Read-only views of `data` by the names of `declared`.

    Raises
    ------
    StateError
        The number of bytes does not match, or a number is out of range.
    """
    found: dict[str, NDArray[Any]] = {}
    at = 0
    steers = rows.get(STEERED, 0) > 0
    for one in declared(engine, masses=masses, steers=steers, tables=tables):
        n = rows.get(one.rows, 0)
        size = one.dtype.itemsize * n * math.prod(one.shape)
        if n < 0 or at + size > len(data):
            raise StateError(f"state: it ends within the column {one.name}")
        values = np.frombuffer(data[at : at + size], one.dtype).reshape(n, *one.shape)
        # Each column is checked before any is used, so that a bad state changes
        # nothing.
        check_column(one.name, values, one.column, rows[BODIES])
        found[one.name] = values
        at += size

    if at != len(data):
        raise StateError(
            f"state: expected no bytes after the columns, found {len(data) - at}"
        )
    # Writers need the column, also without rows.
    found.setdefault(STEERED, np.zeros((0, STEER_COLUMNS)))
    check_poses(found["pose"])
    check_carriers(found["carrier"])
    check_steering(found["drive"], found[STEERED])
    return found


def check_written(state: State, masses: tuple[MassState, Impulses] | None) -> None:
    """Check columns that callers have written, as `read_columns` does, for kernels.

    Parameters
    ----------
    state : State
        State of all bodies.
    masses : tuple of (MassState, Impulses), optional
        Data of bodies with mass; None without any.

    Raises
    ------
    StateError
        A number is out of range.
    """
    # Worlds have no head, so that their arrays give the counts.
    count = len(state.pose)
    for name, values in state._asdict().items():
        if name not in UNSAVED:
            check_column(name, values, None, count)

    check_poses(state.pose)
    check_carriers(state.carrier)
    check_steering(state.drive, state.steer)
    if masses is not None:
        mass, contacts = masses
        for one in _MASS:
            check_column(
                one.name,
                getattr(mass, one.name.removeprefix("mass.")),
                one.column,
                count,
            )

        size, span = int(contacts.size[0]), float(contacts.span[0])
        # Kernels loop up to `size` without a bounds check.
        if not 0 <= size <= len(contacts.key) or not is_span(span):
            raise StateError(
                "state: contacts of bodies with mass: expected 0 to "
                f"{len(contacts.key)} contacts, and a substep of 0 s (none yet) or "
                f"{MIN_SUBSTEP:g} to {MAX_SPAN:g} s, found {size} and {span} s"
            )

        check_column(
            "contact.impulse", contacts.impulse[:size], _CONTACTS[1].column, count
        )


def write_columns(engine: Engine, found: Mapping[str, NDArray[Any]]) -> None:
    """Copy columns of `read_columns` into an engine with the same numbers of rows.

    `write_masses` copies the rest.

    Parameters
    ----------
    engine : Engine
        Engine with the same bodies and devices in the same rows. In-place: `state` and
        tables.
    found : mapping of str to array
        Result of `read_columns`.
    """
    # Copy in place, because kernels and snapshots hold these arrays.
    for name, array in engine.state._asdict().items():
        if name not in UNSAVED:
            array[...] = found[name]

    for table in engine.tables.values():
        for name in table.saved:
            getattr(table, name)[...] = found[f"{table.name}.{name}"]


def write_masses(
    engine: Engine, found: Mapping[str, NDArray[Any]], span: float
) -> None:
    """Copy the columns of bodies with mass into an engine.

    Restore outlines before this call, because a change of outlines would wake the
    bodies.

    Parameters
    ----------
    engine : Engine
        Engine with the same bodies. In-place: `dynamics`; without it nothing is done.
    found : mapping of str to array
        Result of `read_columns` with `masses`.
    span : float
        `Impulses.span`: length of the last substep, s.
    """
    if engine.dynamics is not None:
        key = found["contact.key"]
        contacts = Impulses(
            np.array([len(key)]), np.array([span]), key, found["contact.impulse"]
        )
        engine.dynamics.load(MassState(*(found[one.name] for one in _MASS)), contacts)


def digest_of(head: bytes, columns: Iterable[NDArray[Any]]) -> int:
    """Return a 64-bit digest of a head and columns.

    Parameters
    ----------
    head : bytes
        Encoded head; version and program in it are `DIGESTED`.
    columns : iterable of array
        Columns in the order of `declared`.
    """
    digest = hashlib.blake2b(head, digest_size=8)
    for column in columns:
        # Strides of views must not change the digest.
        digest.update(np.ascontiguousarray(column).data)
    return int.from_bytes(digest.digest(), "little")


def row_keys(table: Table) -> list[Any]:
    """Return `Row.key` of all rows of a table, in order.

    Parameters
    ----------
    table : Table
        Table of devices.
    """
    return [row.key for row in table.rows]


__all__ = [
    "BODIES",
    "CONTACTS",
    "DIGESTED",
    "READS",
    "STEERED",
    "VERSION",
    "Begin",
    "columns_of",
    "declared",
    "digest_of",
    "join",
    "program",
    "read_columns",
    "row_keys",
    "schema",
    "split",
    "write_columns",
    "write_masses",
]
