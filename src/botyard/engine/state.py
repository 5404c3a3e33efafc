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

from botyard.engine.commands import MAX_COORDINATE
from botyard.engine.layout import Control, Mode, OdometryErrorMode, State
from botyard.engine.masslayout import Impulses, MassState, impulses, mass_state
from botyard.engine.tables import MAX_STATE_NUMBER, NOBODY, Column, Table
from botyard.errors import StateError
from botyard.model.kinematics import Drive
from botyard.model.shapes import digested
from botyard.names import shown

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine

MAGIC: Final = b"botyard\x01"
MIN_VIEWED_BYTES: Final = 4096
"""Size from which columns are written from a view, bytes; smaller ones are copied."""
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
"""Versions that can be read."""
DIGESTED: Final = (1, "0.1.0")
"""Version and program in a head whose digest is computed.

The same world has the same digest in every version.
"""
CHECKSUM: Final = 8
"""Size of the checksum at the end, bytes."""
MAX_TICK: Final = 10**15
"""Highest number of a step."""
MIN_SUBSTEP: Final = 1e-9
MAX_SPAN: Final = 60.0
"""Least and greatest length of a substep of bodies with mass, s."""
UNSAVED: Final = {"uid"}
"""Columns of `State` that are not saved: `uid` is computed from the body's name."""
H = TypeVar("H")

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "mode_x": (0, max(Mode)),
    "mode_a": (0, max(Mode)),
    "stall": (0, 1),
    "estop": (0, 1),
    "motors": (0, 1),
    "held": (0, 1),
    "drive": (0, max(Drive)),
    "err_mode": (0, max(OdometryErrorMode)),
    "control": (0, max(Control)),
}
"""Least and greatest value of the columns of `State` that are flags or enumerations."""


class Begin(msgspec.Struct, array_like=True):
    """Fields with which a head of every version starts."""

    version: int
    program: str


class Declared(NamedTuple):
    """Saved column: name, type, shape of a row, table column, and count of rows.

    `column` is None outside of tables. `rows` names the count of rows that is its
    length.
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
_ANY: Final = Column(np.float64, unbounded=True)
_ANY_FINITE: Final = (-MAX_STATE_NUMBER, MAX_STATE_NUMBER)
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
        ((0, 0), _ANY_FINITE, (0, 1), _ANY_FINITE, _ANY_FINITE),
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
    engine: Engine, *, masses: bool, tables: Iterable[Table] | None = None
) -> list[Declared]:
    """Return the saved columns in a fixed order.

    `masses` includes the columns of bodies with mass. `tables` replaces the engine's.
    """
    found = [
        Declared(n, a.dtype, a.shape[1:], None, BODIES)
        for n, a in engine.state._asdict().items()
        if n not in UNSAVED
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
    """Yield the numbers of the saved columns, in the order of `declared`."""
    for name, array in engine.state._asdict().items():
        if name not in UNSAVED:
            yield array

    for table in engine.tables.values():
        for name in table.saved:
            yield getattr(table, name)

    dynamics = engine.dynamics
    if dynamics is not None:
        yield from dynamics.state
        count = int(dynamics.table.size[0])
        yield from (dynamics.table.key[:count], dynamics.table.impulse[:count])


def schema(engine: Engine, tables: Iterable[Table] | None = None) -> bytes:
    """Return a digest of the names and types of all columns.

    It reveals states with other columns. `tables`: see `declared`.
    """
    text = ";".join(
        f"{d.name}:{d.dtype.str}:{d.shape}"
        for d in declared(engine, masses=True, tables=tables)
    )
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def join(head: bytes, columns: Sequence[NDArray[Any]]) -> bytes:
    """Return the state bytes of a head and columns."""
    parts = [MAGIC, struct.pack("<I", len(head)), head, *map(_numbers, columns)]
    checksum = hashlib.blake2b(digest_size=CHECKSUM)
    for part in parts:
        checksum.update(part)
    return b"".join([*parts, checksum.digest()])


def _numbers(column: NDArray[Any]) -> bytes | memoryview:
    """Return the bytes of a column, as a view if it is large.

    Another copy of all columns takes as long as their checksum.
    """
    return (
        column.tobytes()
        if column.nbytes < MIN_VIEWED_BYTES
        else np.ascontiguousarray(column).data.cast("B")
    )


def split(state: bytes, kind: type[H], max_bytes: int) -> tuple[H, memoryview]:
    """Split a state into its head, decoded as `kind`, and the bytes of its columns.

    Raises
    ------
    StateError
        The bytes are not a state, are damaged, of an unsupported version, or longer than
        `max_bytes`.
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
            "(budget.bytes raises that)"
        )

    begin = len(MAGIC) + 4
    if len(data) < begin + CHECKSUM or bytes(data[: len(MAGIC)]) != MAGIC:
        raise StateError("state: expected bytes of save_state, found other data")
    if (
        hashlib.blake2b(data[:-CHECKSUM], digest_size=CHECKSUM).digest()
        != data[-CHECKSUM:]
    ):
        raise StateError("state: it is damaged: its checksum does not match")

    (size,) = struct.unpack("<I", data[len(MAGIC) : begin])
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
    try:
        return msgspec.msgpack.decode(head, type=kind)
    # A class that checks its values raises ValueError.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StateError(f"state: {error}") from None


def program(version: str) -> str:
    """Return the name of a program that wrote a state."""
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
        Number of rows of each table, of `BODIES` and of `CONTACTS`.
    masses : bool
        Whether there are columns of bodies with mass.
    tables : iterable of Table, optional
        See `declared`.

    Raises
    ------
    StateError
        The number of bytes does not match, or a number is out of range.
    """
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for one in declared(engine, masses=masses, tables=tables):
        n = rows.get(one.rows, 0)
        size = one.dtype.itemsize * n * math.prod(one.shape)
        if n < 0 or at + size > len(data):
            raise StateError(f"state: it ends within the column {one.name}")
        values = np.frombuffer(data[at : at + size], one.dtype).reshape(n, *one.shape)
        # Each column is checked before any is used, so that a bad state changes
        # nothing.
        _check(one.name, values, one.column, rows[BODIES])
        found[one.name] = values
        at += size

    if at != len(data):
        raise StateError(
            f"state: expected no bytes after the columns, found {len(data) - at}"
        )
    _check_poses(found["pose"])
    _check_carriers(found["carrier"])
    return found


def check_written(state: State, masses: tuple[MassState, Impulses] | None) -> None:
    """Check columns that callers have written, as `read_columns` does, for kernels.

    Raises
    ------
    StateError
        A number is out of range.
    """
    count = len(state.pose)
    for name, values in state._asdict().items():
        if name not in UNSAVED:
            _check(name, values, None, count)

    _check_poses(state.pose)
    _check_carriers(state.carrier)
    if masses is not None:
        mass, contacts = masses
        for one in _MASS:
            _check(
                one.name,
                getattr(mass, one.name.removeprefix("mass.")),
                one.column,
                count,
            )

        size, span = int(contacts.size[0]), float(contacts.span[0])
        if not 0 <= size <= len(contacts.key) or not is_span(span):
            raise StateError(
                "state: contacts of bodies with mass: expected at most "
                f"{len(contacts.key)}, found {size}"
            )

        _check("contact.impulse", contacts.impulse[:size], _CONTACTS[1].column, count)


def is_span(span: float) -> bool:
    """Return whether a value of `Impulses.span`, s, is possible."""
    return span == 0.0 or MIN_SUBSTEP <= span <= MAX_SPAN


def write_columns(engine: Engine, found: Mapping[str, NDArray[Any]]) -> None:
    """Copy columns of `read_columns` into an engine with the same numbers of rows.

    `write_masses` copies the rest.
    """
    for name, array in engine.state._asdict().items():
        if name not in UNSAVED:
            array[...] = found[name]

    for table in engine.tables.values():
        for name in table.saved:
            getattr(table, name)[...] = found[f"{table.name}.{name}"]


def write_masses(
    engine: Engine, found: Mapping[str, NDArray[Any]], span: float
) -> None:
    """Copy the columns of bodies with mass into an engine, after outlines are restored.

    `span`: see `Impulses`.
    """
    if engine.dynamics is not None:
        key = found["contact.key"]
        contacts = Impulses(
            np.array([len(key)]), np.array([span]), key, found["contact.impulse"]
        )
        engine.dynamics.load(MassState(*(found[one.name] for one in _MASS)), contacts)


def _check(name: str, values: NDArray[Any], column: Column | None, bodies: int) -> None:
    low, high = (
        _RANGES.get(name, (-math.inf, math.inf))
        if column is None
        else (column.low, column.high)
    )
    if column is not None and column.refers:
        low, high = NOBODY, bodies - 1
    elif values.dtype.kind == "f" and not (column is not None and column.unbounded):
        low, high = max(low, -MAX_STATE_NUMBER), min(high, MAX_STATE_NUMBER)
    elif column is not None and column.unbounded:
        return

    # NaN also fails the comparison.
    if values.size and not (float(values.min()) >= low and float(values.max()) <= high):
        wrong = values[~((values >= low) & (values <= high))]
        raise StateError(
            f"state: {name}: expected {low:g} … {high:g}, found {wrong.flat[0]}"
        )


def _check_poses(pose: NDArray[Any]) -> None:
    if len(pose) and not (
        np.abs(pose[:, :2]).max() <= MAX_COORDINATE
        and np.abs(pose[:, 2]).max() <= math.pi
    ):
        raise StateError(
            f"state: pose: expected coordinates within ±{MAX_COORDINATE:g} m and "
            "headings within ±π"
        )


def _check_carriers(carrier: NDArray[Any]) -> None:
    """Check that carried bodies carry nothing, and hence that no body carries itself."""
    if len(carrier) and not (
        int(carrier.min()) >= NOBODY and int(carrier.max()) < len(carrier)
    ):
        raise StateError("state: carrier: expected rows of bodies")

    carried = carrier[carrier != NOBODY]
    # Chains of carriers would need several passes per step, and could be circular.
    if (carrier[carried] != NOBODY).any():
        raise StateError("state: carrier: expected that carried bodies carry nothing")


def digest_of(head: bytes, columns: Iterable[NDArray[Any]]) -> int:
    """Return a 64-bit digest of a head and columns."""
    digest = hashlib.blake2b(head, digest_size=8)
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    return int.from_bytes(digest.digest(), "little")


def object_digest(value: object) -> bytes:
    """Return the digest of a description, 16 bytes.

    A description is a frozen dataclass of the model, with arrays.
    `botyard.model.shapes` defines what the digest covers.
    """
    return hashlib.blake2b(
        msgspec.msgpack.encode(digested(value), enc_hook=_plain), digest_size=16
    ).digest()


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [
            value.dtype.str,
            list(value.shape),
            np.ascontiguousarray(value).tobytes(),
        ]

    if isinstance(value, np.generic):
        return value.item()
    return str(value)


def row_keys(table: Table) -> list[Any]:
    """Return `Row.key` of all rows of a table, in order."""
    return [row.key for row in table.rows]


__all__ = [
    "BODIES",
    "CONTACTS",
    "DIGESTED",
    "READS",
    "VERSION",
    "Begin",
    "columns_of",
    "declared",
    "digest_of",
    "join",
    "object_digest",
    "program",
    "read_columns",
    "row_keys",
    "schema",
    "split",
    "write_columns",
    "write_masses",
]
