"""Codec of descriptions and changes: frozen dataclasses with arrays.

Bytes are pure data: they name no code. Layout of a message: length of the head (4
bytes, little-endian); the head in MessagePack: version, kind, type and shape of each
array, and the body; then the numbers of the arrays (little-endian, in C order). In the
body

- a dataclass is a map of all its fields by name, so that a later version can add a
  field with a default;
- a named tuple (a pose) is a list, a member of an enumeration its number;
- an array is its index in the head;
- a value of one of several classes is a list with the name of the class and its fields;
  the kind of a device is its field ``type``.

Floats keep their bits. An integer in the place of a declared float stays an integer, so
that a model keeps its digest.

Readers get bytes from outside. msgspec rejects wrong types before it makes objects, so
the length of a message limits its cost. `MAX_HEAD` and `Budget.bytes` limit the length,
and `MAX_FREE` limits values without a declared type.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from botyard.errors import RecordingError
from botyard.formats.budget import Budget
from botyard.model.devices import DeviceSpec, find_device
from botyard.names import shown

VERSION: Final = 1
MAX_HEAD: Final = 32 * 2**20
"""Longest head (all data except arrays), bytes.

The largest readable worlds (`Budget.robots`) need a quarter of it.
"""
MAX_FREE: Final = 4 * 2**20
"""Largest size of values without a declared type in a message, bytes.

Such values (options, values of columns) can become any objects.
"""
MAX_ARRAYS: Final = 100
"""Largest number of arrays of a message; a scene has two, fleet velocities four."""
MAX_NESTING: Final = 100
"""Largest depth of values without a declared type."""
_LENGTH: Final = struct.Struct("<I")
_NUMBERS: Final = frozenset(np.dtype(c).newbyteorder("<").str for c in "bBhHiIqQfd?")
"""Types of arrays that a message can have."""

Classes = Mapping[str, Any]
"""Allowed classes by name."""


class _Version(msgspec.Struct, array_like=True):
    """First value of a head, which all versions have; the rest is ignored."""

    version: int


class _Kind(msgspec.Struct):
    """Kind of a device; its other fields are ignored."""

    type: str


class _Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    kind: str
    arrays: Annotated[
        list[tuple[str, tuple[int, ...]]], msgspec.Meta(max_length=MAX_ARRAYS)
    ]
    body: msgspec.Raw


class _Reader:
    """Arrays of a message, and the remaining budget for free values."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = arrays
        self._free = MAX_FREE

    def free(self, raw: msgspec.Raw) -> Any:
        """Decode a value without a declared type.

        It consists of numbers, strings, bytes, lists and mappings.
        """
        # Few bytes of MessagePack can become many objects, so limit them.
        self._free -= len(raw)
        if self._free < 0:
            raise ValueError(
                f"expected at most {MAX_FREE} bytes of values without a declared type, found more"
            )

        value = msgspec.msgpack.decode(raw)
        _check_plain(value, MAX_NESTING)
        return value


def _check_plain(value: Any, depth: int) -> None:
    if depth < 0:
        raise ValueError(
            f"expected values nested at most {MAX_NESTING} deep, found deeper ones"
        )

    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"expected strings as keys, found {shown(repr(key), 40)}"
                )

            _check_plain(one, depth - 1)
    elif isinstance(value, list):
        for one in value:
            _check_plain(one, depth - 1)
    elif not isinstance(value, (bool, int, float, str, bytes, NoneType)):
        raise ValueError(f"expected a plain value, found {type(value).__name__}")


def _plain_number(value: object) -> object:
    """Convert a number of NumPy to Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"{type(value).__qualname__} is not data")


class _Form(NamedTuple):
    """Encoding of the values of a declared type.

    Attributes
    ----------
    wire : type
        Type in the message, for msgspec.
    write : callable or None
        Converts a value for msgspec; None: msgspec writes it directly.
    read : callable or None
        Converts a value from msgspec; None: no conversion.
    """

    wire: Any
    write: Callable[[Any], Any] | None
    read: Callable[[Any, _Reader], Any] | None


_declared: dict[Any, Callable[[], Classes]] = {}


def declare(hint: Any, classes: Callable[[], Classes]) -> None:
    """Register the classes allowed for `hint`: a protocol, a base class or object."""
    _declared[hint] = classes


# -- messages


def encode(kind: str, body: Any, form: Any) -> bytes:
    """Encode a message.

    Parameters
    ----------
    kind : str
        Kind of the message, such as ``scene``.
    body : value
        A value of the type `form`.

    Raises
    ------
    RecordingError
        A value in it cannot be written as data.
    """
    arrays: list[NDArray[Any]] = []
    write = _form(form).write

    def plain(value: object) -> object:
        """Convert a value of a type that msgspec does not know."""
        if isinstance(value, np.ndarray):
            # The file has one byte order, whatever the machine.
            array = np.asarray(value, value.dtype.newbyteorder("<"), order="C")
            if array.dtype.str not in _NUMBERS:
                raise NotImplementedError(f"arrays of {value.dtype} are not supported")
            arrays.append(array)
            return len(arrays) - 1

        return dict(value) if isinstance(value, Mapping) else _plain_number(value)

    try:
        inside = msgspec.msgpack.encode(
            body if write is None else write(body), enc_hook=plain
        )
        described = [(a.dtype.str, a.shape) for a in arrays]
        head = msgspec.msgpack.encode(
            _Head(VERSION, kind, described, msgspec.Raw(inside))
        )
    except (
        msgspec.MsgspecError,
        NotImplementedError,
        ValueError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise RecordingError(f"{kind}: it cannot be recorded: {error}") from None

    return b"".join((_LENGTH.pack(len(head)), head, *(a.tobytes() for a in arrays)))


def encode_plain(kind: str, body: Any) -> bytes:
    """Encode a message whose body is already plain data, for frequent messages.

    The body has numbers, strings, lists and mappings in the form of its type. For
    errors see `encode`.
    """
    try:
        inside = _beginning(kind) + _encode_plain(body)
    except (
        msgspec.MsgspecError,
        NotImplementedError,
        ValueError,
        TypeError,
        OverflowError,
    ) as error:
        raise RecordingError(f"{kind}: it cannot be recorded: {error}") from None

    return _LENGTH.pack(len(inside)) + inside


@cache
def _beginning(kind: str) -> bytes:
    """Return the bytes of a head without arrays, up to its body."""
    nothing = msgspec.msgpack.encode(None)
    return msgspec.msgpack.encode(
        _Head(VERSION, kind, [], msgspec.Raw(nothing))
    ).removesuffix(nothing)


_encode_plain: Final = msgspec.msgpack.Encoder(enc_hook=_plain_number).encode


def decode(
    data: bytes | memoryview, kind: str, form: Any, budget: Budget = Budget()
) -> Any:
    """Decode the body of a message, a value of the type `form`.

    Raises
    ------
    RecordingError
        The bytes are not such a message, are damaged, have a newer version, exceed
        `budget.bytes`, or contain a description that is not valid.
    """
    if len(data) > budget.bytes:
        raise RecordingError(
            f"{kind}: expected at most {budget.bytes} bytes, found {len(data)} "
            "(budget.bytes raises this limit)"
        )

    try:
        return _decode(memoryview(data), kind, form)
    except RecordingError:
        raise
    # Catch errors of msgspec and of the checks of descriptions, also of devices in
    # plug-ins.
    except Exception as error:
        raise RecordingError(f"{kind}: {error or type(error).__name__}") from None


def _decode(data: memoryview, kind: str, form: Any) -> Any:
    begin = _LENGTH.size
    if len(data) < begin or (size := _LENGTH.unpack_from(data)[0]) > min(
        len(data) - begin, MAX_HEAD
    ):
        raise RecordingError(
            f"{kind}: expected a message with a head of at most {MAX_HEAD} "
            f"bytes, found {len(data)} other bytes"
        )

    # Read the version alone first, because a later version can have another head.
    version = msgspec.msgpack.decode(data[begin : begin + size], type=_Version).version
    if version != VERSION:
        raise RecordingError(
            f"{kind}: expected version {VERSION}, found {version}: another "
            "version of botyard wrote it"
        )

    head = msgspec.msgpack.decode(data[begin : begin + size], type=_Head)
    if head.kind != kind:
        raise RecordingError(
            f'{kind}: expected a message of this kind, found "{shown(head.kind, 40)}"'
        )

    return _value(head.body, form, _Reader(_arrays(data[begin + size :], head.arrays)))


def _arrays(
    data: memoryview, described: Sequence[tuple[str, tuple[int, ...]]]
) -> list[NDArray[Any]]:
    arrays, at = [], 0
    for dtype, shape in described:
        if (
            dtype not in _NUMBERS
            or len(shape) > 8
            or any(not 0 <= n < 2**48 for n in shape)
        ):
            raise ValueError(
                f"expected an array of numbers, found {shown(dtype, 20)} with "
                f"the shape {shown(str(shape), 40)}"
            )

        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if at + size > len(data):
            raise ValueError("the data of its arrays are cut short")
        # A view would be read-only, and would keep the whole message in memory.
        arrays.append(np.frombuffer(data[at : at + size], kind).reshape(shape).copy())
        at += size

    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow its arrays")
    return arrays


# -- forms


def _form(hint: Any) -> _Form:
    return _cached_form(cast(Hashable, hint))


@cache
def _cached_form(hint: Any) -> _Form:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Form(msgspec.Raw, _plain, lambda raw, reader: reader.free(raw))
    # An integer in the place of a float must stay one, or the digest changes.
    if hint is float:
        return _Form(int | float, None, None)
    if hint in (int, str, bool, bytes, NoneType):
        return _Form(hint, None, None)
    if hint in _declared:
        return _one_of(_declared[hint])
    if origin in (Union, UnionType):
        return _optional([_form(a) for a in args])
    if origin is np.ndarray:
        return _Form(int, None, _read_array)
    if origin is tuple and args[1:] != (...,):
        return _row(tuple, [_form(a) for a in args])
    if origin in (tuple, cast(Any, Sequence)) or origin is list:
        return _many(_form(args[0]), list if origin is list else tuple)
    if origin is cast(Any, Mapping) or origin is dict:
        return _mapping(_form(args[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(int, int, lambda v, _: hint(v))
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        hints = get_type_hints(hint)
        return _row(hint, [_form(hints[name]) for name in hint._fields])

    if hint is DeviceSpec:
        return _Form(msgspec.Raw, _write_device, _read_device)
    if is_dataclass(hint):
        return _fields(cast(type[Any], hint))
    raise TypeError(f"{hint} has no form as bytes")


def _plain(value: Any) -> Any:
    """Convert a value without a declared type to plain data."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _write_device(device: DeviceSpec) -> Any:
    write = _form(type(device)).write
    return device if write is None else write(device)


def _read_device(raw: msgspec.Raw, reader: _Reader) -> Any:
    return _value(
        raw, find_device(msgspec.msgpack.decode(raw, type=_Kind).type).spec, reader
    )


def _value(raw: msgspec.Raw, hint: Any, reader: _Reader) -> Any:
    form = _form(hint)
    found = msgspec.msgpack.decode(raw, type=form.wire)
    return found if form.read is None else form.read(found, reader)


def _one_of(classes: Callable[[], Classes]) -> _Form:
    checked: dict[type[Any], Callable[[Any], Any] | None] = {}
    # Collecting all classes for each value takes longer than reading the value.
    known: dict[str, type[Any]] = {}

    def write(value: Any) -> Any:
        kind = type(value)
        if kind not in checked:
            if classes().get(kind.__name__) is not kind:
                raise NotImplementedError(
                    f"{kind.__qualname__} is not one of {', '.join(classes())}"
                )

            checked[kind] = _form(kind).write
            known.clear()

        one = checked[kind]
        return [kind.__name__, value if one is None else one(value)]

    def read(found: tuple[str, msgspec.Raw], reader: _Reader) -> Any:
        kind = known.get(found[0])
        if kind is None:
            known.update(classes())
            kind = known.get(found[0])

        if kind is None:
            raise ValueError(
                f'expected one of {", ".join(classes())}, found "{shown(found[0], 40)}"'
            )

        return _value(found[1], kind, reader)

    return _Form(tuple[str, msgspec.Raw], write, read)


def _read_array(index: int, reader: _Reader) -> NDArray[Any]:
    if not 0 <= index < len(reader.arrays):
        raise ValueError(f"expected one of {len(reader.arrays)} arrays, found {index}")
    return reader.arrays[index]


def _optional(forms: Sequence[_Form]) -> _Form:
    """Return the form of a union, of which at most one type needs a conversion."""
    wire = Union.__getitem__(tuple(f.wire for f in forms))
    (special,) = [f for f in forms if f.read or f.write] or [_Form(None, None, None)]
    write, read = special.write, special.read
    return _Form(
        wire,
        write and (lambda v: None if v is None else write(v)),
        read and (lambda v, reader: None if v is None else read(v, reader)),
    )


def _many(form: _Form, kind: Callable[[Any], Any]) -> _Form:
    write, read = form.write, form.read
    if read is None:
        return _Form(
            _generic(kind, form.wire, ...)
            if kind is tuple
            else _generic(kind, form.wire),
            None,
            None,
        )

    return _Form(
        _generic(list, form.wire),
        write and (lambda v: [*map(write, v)]),
        lambda v, reader: kind([read(x, reader) for x in v]),
    )


def _generic(kind: Any, *parameters: Any) -> Any:
    return kind.__class_getitem__(parameters)


def _row(kind: Any, forms: Sequence[_Form]) -> _Form:
    """Return the form of a tuple with different types, whose class is `kind`."""
    wire = _generic(tuple, *(f.wire for f in forms))
    writes = [f.write for f in forms]
    reads = [f.read for f in forms]
    make = tuple if kind is tuple else kind._make

    def write(values: Any) -> Any:
        return [
            v if one is None else one(v) for v, one in zip(values, writes, strict=True)
        ]

    def read(values: Any, reader: _Reader) -> Any:
        return make(
            v if one is None else one(v, reader)
            for v, one in zip(values, reads, strict=True)
        )

    return _Form(
        wire,
        write if any(writes) else None,
        None if kind is tuple and not any(reads) else read,
    )


def _mapping(form: _Form) -> _Form:
    write, read = form.write, form.read
    return _Form(
        _generic(dict, str, form.wire),
        write and (lambda v: {key: write(one) for key, one in v.items()}),
        read and (lambda v, reader: {key: read(one, reader) for key, one in v.items()}),
    )


def _member(name: str, wire: Any, is_needed: bool) -> Any:
    """Return the declaration of a struct field.

    msgspec has no union with Raw, so an empty Raw stands for a missing value.
    """
    if is_needed:
        return name, wire
    return (
        (name, wire, msgspec.Raw())
        if wire is msgspec.Raw
        else (name, wire | UnsetType, UNSET)
    )


def _fields(kind: type[Any]) -> _Form:
    """Return the form of a dataclass: a map of its fields.

    Fields that its constructor does not accept must have their fixed value.
    """
    hints = get_type_hints(kind)
    forms = {f.name: _form(hints[f.name]) for f in fields(kind)}
    fixed = {f.name: f.default for f in fields(kind) if not f.init}
    needed = {
        f.name
        for f in fields(kind)
        if f.default is MISSING and f.default_factory is MISSING
    }
    wire = msgspec.defstruct(
        kind.__name__,
        [_member(name, form.wire, name in needed) for name, form in forms.items()],
        kw_only=True,
        forbid_unknown_fields=True,
        module=__name__,
    )
    writes = {name: form.write for name, form in forms.items()}

    def write(value: Any) -> Any:
        return {
            name: getattr(value, name) if one is None else one(getattr(value, name))
            for name, one in writes.items()
        }

    def read(found: Any, reader: _Reader) -> Any:
        values = {}
        for name, form in forms.items():
            value = getattr(found, name)
            # The writer did not know this field yet, so its default applies.
            if value is UNSET or (isinstance(value, msgspec.Raw) and not value):
                continue
            if name not in fixed:
                values[name] = value if form.read is None else form.read(value, reader)
            elif value != fixed[name]:
                raise ValueError(
                    f'{name}: expected "{fixed[name]}", found "{shown(str(value), 40)}"'
                )

        return kind(**values)

    return _Form(wire, write if any(writes.values()) else None, read)


__all__ = ["MAX_FREE", "MAX_HEAD", "VERSION", "declare", "decode", "encode"]
