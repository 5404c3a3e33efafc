"""The state of an engine as bytes: all columns, one behind the other, with a head that says what they are of.

Layout: `MAGIC` (8 bytes), length of the head (4 bytes, little-endian), the head (MessagePack), the numbers of all columns (little-endian,
in C order, in the order of `columns_of`), and a checksum of all that (BLAKE2b, 8 bytes). How long each column is follows from the head's
count of bodies and rows; whether they are the columns of this version, from its digest of their names and types.

Nothing in such bytes is code, and no number in them is believed: kernels index by some of them.
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

from botyard.engine.commands import FARTHEST
from botyard.engine.layout import Control, Mode, OdometryErrorMode
from botyard.engine.masslayout import Impulses, MassState, impulses, mass_state
from botyard.engine.tables import LARGEST, NOBODY, Column, Table
from botyard.errors import StateError
from botyard.model.robot import Drive

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine

MAGIC: Final = b"botyard\x01"
LARGE: Final = 4096
"""Columns of so many bytes are looked at where they are, and not copied first."""
CHECKSUM: Final = 8
"""Bytes of the checksum at the end."""
UNSAVED: Final = {"uid"}
"""Columns of `State` that follow from something else: from a body's name."""
H = TypeVar("H")

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "mode_x": (0, max(Mode)), "mode_a": (0, max(Mode)), "stall": (0, 1), "estop": (0, 1), "motors": (0, 1), "held": (0, 1),
    "drive": (0, max(Drive)), "err_mode": (0, max(OdometryErrorMode)), "control": (0, max(Control)),
}  # fmt: skip
"""What may stand in columns of `State` that choose between branches."""


class Declared(NamedTuple):
    """A column of a state: its name, type, the shape of a row, of a table its declaration, and whose rows it has."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    column: Column | None
    rows: str


BODIES: Final = ""
"""For `Declared.rows`: a row for each body."""
CONTACTS: Final = "contact"
"""A row for each contact of a body with mass."""
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
        ((0, 0), (-LARGEST, LARGEST), (0, 1), (-LARGEST, LARGEST), (-LARGEST, LARGEST)),
        strict=True,
    )
)
_CONTACTS: Final = tuple(
    Declared(f"contact.{name}", array.dtype, array.shape[1:], column, CONTACTS)
    for name, array, column in (("key", impulses(0).key, _ANY), ("impulse", impulses(0).impulse, Column(np.float64)))
)


def declared(engine: Engine, *, masses: bool, tables: Iterable[Table] | None = None) -> list[Declared]:
    """The columns that are saved, in a fixed order; `masses`: there are bodies with mass; `tables`: not those of the engine."""
    found = [
        Declared(n, a.dtype, a.shape[1:], None, BODIES) for n, a in engine.state._asdict().items() if n not in UNSAVED
    ]
    for table in engine.tables.values() if tables is None else tables:
        for name, column in table.saved.items():
            array = getattr(table, name)
            found.append(Declared(f"{table.name}.{name}", array.dtype, array.shape[1:], column, table.name))
    return [*found, *_MASS, *_CONTACTS] if masses else found


def columns_of(engine: Engine) -> Iterator[NDArray[Any]]:
    """The numbers of the columns that are saved, in the order of `declared`."""
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
    """Digest of the names and types of all columns: states of other versions have another one. `tables`: see `declared`."""
    text = ";".join(f"{d.name}:{d.dtype.str}:{d.shape}" for d in declared(engine, masses=True, tables=tables))
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def join(head: bytes, columns: Sequence[NDArray[Any]]) -> bytes:
    """State bytes of a head and columns."""
    parts = [MAGIC, struct.pack("<I", len(head)), head, *map(_numbers, columns)]
    checksum = hashlib.blake2b(digest_size=CHECKSUM)
    for part in parts:
        checksum.update(part)
    return b"".join([*parts, checksum.digest()])


def _numbers(column: NDArray[Any]) -> bytes | memoryview:
    """The bytes of a column; of a large one a view, as another copy of all columns takes as long as their checksum."""
    return column.tobytes() if column.nbytes < LARGE else np.ascontiguousarray(column).data.cast("B")


def split(state: bytes, kind: type[H], max_bytes: int) -> tuple[H, memoryview]:
    """Head, as `kind`, and the columns' bytes of a state.

    Raises
    ------
    StateError
        It is no state, is damaged, or has more than `max_bytes`.
    """
    if not isinstance(state, (bytes, bytearray, memoryview)):
        raise StateError(f"state: expected bytes of save_state, found {type(state).__name__}")
    data = memoryview(state)
    if len(data) > max_bytes:
        raise StateError(f"state: expected at most {max_bytes} bytes, found {len(data)} (budget.bytes raises that)")
    begin = len(MAGIC) + 4
    if len(data) < begin + CHECKSUM or bytes(data[: len(MAGIC)]) != MAGIC:
        raise StateError("state: expected bytes of save_state, found something else")
    if hashlib.blake2b(data[:-CHECKSUM], digest_size=CHECKSUM).digest() != data[-CHECKSUM:]:
        raise StateError("state: it is damaged: its checksum is another one")
    (size,) = struct.unpack("<I", data[len(MAGIC) : begin])
    if size > len(data) - begin - CHECKSUM:
        raise StateError(f"state: a head of {size} bytes was announced, and there are {len(data) - begin - CHECKSUM}")
    try:
        head = msgspec.msgpack.decode(data[begin : begin + size], type=kind)
    except (
        msgspec.MsgspecError,
        ValueError,
        RecursionError,
    ) as error:  # what a class says of its values is a ValueError
        raise StateError(f"state: {error}") from None
    return head, data[begin + size : -CHECKSUM]


def read_columns(
    engine: Engine, data: memoryview, rows: Mapping[str, int], *, masses: bool, tables: Iterable[Table] | None = None
) -> dict[str, NDArray[Any]]:
    """The columns of `data`, checked, so that kernels may use them.

    Parameters
    ----------
    rows : mapping of str to int
        How many rows each table has, and of `BODIES` and `CONTACTS`.
    masses : bool
        There are bodies with mass.
    tables : iterable of Table, optional
        See `declared`.

    Raises
    ------
    StateError
        There is more or less than that, or a number that no state has.
    """
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for one in declared(engine, masses=masses, tables=tables):
        n = rows.get(one.rows, 0)
        size = one.dtype.itemsize * n * math.prod(one.shape)
        if n < 0 or at + size > len(data):
            raise StateError(f"state: it ends in the column {one.name}")
        values = np.frombuffer(data[at : at + size], one.dtype).reshape(n, *one.shape)
        _check(one.name, values, one.column, rows[BODIES])
        found[one.name] = values
        at += size
    if at != len(data):
        raise StateError(f"state: {len(data) - at} bytes more than its columns have")
    _check_poses(found["pose"])
    _check_carriers(found["carrier"])
    return found


def write_columns(engine: Engine, found: Mapping[str, NDArray[Any]]) -> None:
    """Let columns that `read_columns` has checked be the engine's, which has as many bodies and rows; but for `write_masses`."""
    for name, array in engine.state._asdict().items():
        if name not in UNSAVED:
            array[...] = found[name]
    for table in engine.tables.values():
        for name in table.saved:
            getattr(table, name)[...] = found[f"{table.name}.{name}"]


def write_masses(engine: Engine, found: Mapping[str, NDArray[Any]], span: float) -> None:
    """Let the columns of bodies with mass be the engine's, when all outlines are as they were. `span`: see `Impulses`."""
    if engine.dynamics is not None:
        key = found["contact.key"]
        contacts = Impulses(np.array([len(key)]), np.array([span]), key, found["contact.impulse"])
        engine.dynamics.load(MassState(*(found[one.name] for one in _MASS)), contacts)


def _check(name: str, values: NDArray[Any], column: Column | None, bodies: int) -> None:
    low, high = _RANGES.get(name, (-math.inf, math.inf)) if column is None else (column.low, column.high)
    if column is not None and column.refers:
        low, high = NOBODY, bodies - 1
    elif values.dtype.kind == "f" and not (column is not None and column.unbounded):
        low, high = max(low, -LARGEST), min(high, LARGEST)
    elif column is not None and column.unbounded:
        return
    if values.size and not (float(values.min()) >= low and float(values.max()) <= high):  # also where one is no number
        wrong = values[~((values >= low) & (values <= high))]
        raise StateError(f"state: {name}: expected {low:g} … {high:g}, found {wrong.flat[0]}")


def _check_poses(pose: NDArray[Any]) -> None:
    if len(pose) and not (np.abs(pose[:, :2]).max() <= FARTHEST and np.abs(pose[:, 2]).max() <= math.pi):
        raise StateError(f"state: pose: expected coordinates within ±{FARTHEST:g} m and headings within ±π")


def _check_carriers(carrier: NDArray[Any]) -> None:
    """What is carried carries nothing, and nothing carries itself."""
    if len(carrier) and not (int(carrier.min()) >= NOBODY and int(carrier.max()) < len(carrier)):
        raise StateError("state: carrier: expected rows of bodies")
    carried = carrier[carrier != NOBODY]
    if (carrier[carried] != NOBODY).any():
        raise StateError("state: carrier: what is carried can carry nothing")


def digest_of(head: bytes, columns: Iterable[NDArray[Any]]) -> int:
    """64 bits that differ when heads or columns do."""
    digest = hashlib.blake2b(head, digest_size=8)
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    return int.from_bytes(digest.digest(), "little")


def object_digest(value: object) -> bytes:
    """Digest of a description (a frozen dataclass of the model, with arrays): 16 bytes that differ when descriptions do."""
    return hashlib.blake2b(msgspec.msgpack.encode(value, enc_hook=_plain), digest_size=16).digest()


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def row_keys(table: Table) -> list[Any]:
    """What tells the rows of a table apart, in order."""
    return [row.key for row in table.rows]


__all__ = [
    "BODIES",
    "CONTACTS",
    "columns_of",
    "declared",
    "digest_of",
    "join",
    "object_digest",
    "read_columns",
    "row_keys",
    "schema",
    "split",
    "write_columns",
    "write_masses",
]
