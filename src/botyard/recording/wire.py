"""Descriptions and changes (frozen dataclasses with arrays) as bytes and back. Bytes
are data: they name no code.

Layout of a message: length of the head (4 bytes, little-endian); the head, which is
MessagePack: version, kind, type and shape of each array, and the body; then the arrays'
numbers (little-endian, in C order). In the body

- a dataclass is a map of all its fields by name, so that a later version can add a
  field with a default;
- a tuple with names (a pose) is a list, a member of an enumeration its number;
- an array is its index in the head;
- a value of one of several classes is a list of two: the class's name and its fields;
  the kind of a device is its field ``type``.

Floats keep their bits, and a whole number that stands where a float is declared stays
one: a model has the same digest as before.

Readers take bytes from strangers. msgspec refuses by type what does not belong there
before it becomes an object, so what a message costs is bounded by its length;
`MAX_HEAD` and `Budget.bytes` bound that, and `MAX_FREE` what has no declared type.
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
"""Longest head, bytes: what is not an array. The largest worlds that can be read
(`Budget.robots`) have a quarter of that.
"""
MAX_FREE: Final = 4 * 2**20
"""Most bytes of a message whose type is not declared (options, values of columns): any
objects can be made of them.
"""
MAX_ARRAYS: Final = 100
"""Most arrays of a message; a scene has two, the velocities of a fleet four."""
MAX_NESTING: Final = 100
"""Depth of values whose type is not declared."""
_LENGTH: Final = struct.Struct("<I")
_NUMBERS: Final = frozenset(np.dtype(c).newbyteorder("<").str for c in "bBhHiIqQfd?")
"""Types of arrays that a message may have."""

Classes = Mapping[str, Any]
"""Classes that may stand in one place, by their names."""


class _Version(msgspec.Struct, array_like=True):
    """The first value of a head, which all versions have; what follows is passed over."""

    version: int


class _Kind(msgspec.Struct):
    """The kind of a device; its other fields are passed over."""

    type: str


class _Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    kind: str
    arrays: Annotated[
        list[tuple[str, tuple[int, ...]]], msgspec.Meta(max_length=MAX_ARRAYS)
    ]
    body: msgspec.Raw


class _Reader:
    """The arrays of a message, and what may still be read of it."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = arrays
        self._free = MAX_FREE

    def free(self, raw: msgspec.Raw) -> Any:
        """A value whose type is not declared: numbers, texts, bytes, lists and
        mappings.
        """
        self._free -= len(raw)
        if self._free < 0:
            raise ValueError(
                f"more than {MAX_FREE} bytes of values without a declared type"
            )

        value = msgspec.msgpack.decode(raw)
        _check_plain(value, MAX_NESTING)
        return value


def _check_plain(value: Any, depth: int) -> None:
    if depth < 0:
        raise ValueError(f"values are nested deeper than {MAX_NESTING}")
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"expected texts as keys, found {shown(repr(key), 40)}"
                )

            _check_plain(one, depth - 1)
    elif isinstance(value, list):
        for one in value:
            _check_plain(one, depth - 1)
    elif not isinstance(value, (bool, int, float, str, bytes, NoneType)):
        raise ValueError(f"expected a plain value, found {type(value).__name__}")


def _plain_number(value: object) -> object:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"{type(value).__qualname__} is not data")


class _Form(NamedTuple):
    """How values of a declared type are written and read.

    Attributes
    ----------
    wire : type
        Its type in the message, for msgspec.
    write : callable or None
        Makes of a value what msgspec writes; None: it writes the value itself.
    read : callable or None
        Makes a value of what msgspec has read; None: that is the value.
    """

    wire: Any
    write: Callable[[Any], Any] | None
    read: Callable[[Any, _Reader], Any] | None


_declared: dict[Any, Callable[[], Classes]] = {}


def declare(hint: Any, classes: Callable[[], Classes]) -> None:
    """Say which classes may stand where `hint` is declared: a protocol, a base class,
    or object.
    """
    _declared[hint] = classes


# -- messages


def encode(kind: str, body: Any, form: Any) -> bytes:
    """A message.

    Parameters
    ----------
    kind : str
        What it is, such as ``scene``.
    body : value
        A value of the type `form`.

    Raises
    ------
    RecordingError
        Something in it cannot be written as data.
    """
    arrays: list[NDArray[Any]] = []
    write = _form(form).write

    def plain(value: object) -> object:
        """What msgspec does not know."""
        if isinstance(value, np.ndarray):
            array = np.asarray(value, value.dtype.newbyteorder("<"), order="C")
            if array.dtype.str not in _NUMBERS:
                raise NotImplementedError(f"an array of {value.dtype}")
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
    """A message whose body is given as numbers, texts, lists and mappings, as the form
    of its type writes them: for what is written often.

    RecordingError: see `encode`.
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
    """The bytes of a head without arrays that stand before its body."""
    nothing = msgspec.msgpack.encode(None)
    return msgspec.msgpack.encode(
        _Head(VERSION, kind, [], msgspec.Raw(nothing))
    ).removesuffix(nothing)


_encode_plain: Final = msgspec.msgpack.Encoder(enc_hook=_plain_number).encode


def decode(
    data: bytes | memoryview, kind: str, form: Any, budget: Budget = Budget()
) -> Any:
    """The body of a message, a value of the type `form`.

    Raises
    ------
    RecordingError
        The bytes are no such message, are damaged, of a newer version, or more than
        `budget.bytes`; the description in them makes no sense.
    """
    if len(data) > budget.bytes:
        raise RecordingError(
            f"{kind}: expected at most {budget.bytes} bytes, found {len(data)} "
            "(budget.bytes raises that)"
        )

    try:
        return _decode(memoryview(data), kind, form)
    except RecordingError:
        raise
    # msgspec's errors and those of the descriptions' own checks, of plug-ins' devices,
    # too
    except Exception as error:
        raise RecordingError(f"{kind}: {error or type(error).__name__}") from None


def _decode(data: memoryview, kind: str, form: Any) -> Any:
    begin = _LENGTH.size
    if len(data) < begin or (size := _LENGTH.unpack_from(data)[0]) > min(
        len(data) - begin, MAX_HEAD
    ):
        raise RecordingError(
            f"{kind}: expected a message with a head of at most {MAX_HEAD} "
            f"bytes, found {len(data)} bytes of something else"
        )

    version = msgspec.msgpack.decode(data[begin : begin + size], type=_Version).version
    if version != VERSION:
        raise RecordingError(
            f"{kind}: expected version {VERSION}, found {version}: another "
            "version of botyard wrote it"
        )

    head = msgspec.msgpack.decode(data[begin : begin + size], type=_Head)
    if head.kind != kind:
        raise RecordingError(f'{kind}: found "{shown(head.kind, 40)}" instead')
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
                f"an array of {shown(dtype, 20)} with the shape {shown(str(shape), 40)}"
            )

        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if at + size > len(data):
            raise ValueError("it is cut short")
        arrays.append(np.frombuffer(data[at : at + size], kind).reshape(shape).copy())
        at += size

    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes more than its arrays have")
    return arrays


# -- forms


def _form(hint: Any) -> _Form:
    return _cached_form(cast(Hashable, hint))


@cache
def _cached_form(hint: Any) -> _Form:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Form(msgspec.Raw, _plain, lambda raw, reader: reader.free(raw))
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
    raise TypeError(f"no form of {hint} as bytes")


def _plain(value: Any) -> Any:
    """A value without a declared type, as numbers, texts, lists and mappings."""
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
    known: dict[
        str, type[Any]
    ] = {}  # to look for all of them for each value takes longer than to read it

    def write(value: Any) -> Any:
        kind = type(value)
        if kind not in checked:
            if classes().get(kind.__name__) is not kind:
                raise NotImplementedError(
                    f"{kind.__qualname__} is none of {', '.join(classes())}"
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
    """One of several types, of which at most one needs more than msgspec."""
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
    """Values of different types in a row, whose class is `kind`."""
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
    """Declaration of a field of a structure; msgspec knows no union with Raw, of which
    an empty one is what is missing.
    """
    if is_needed:
        return name, wire
    return (
        (name, wire, msgspec.Raw())
        if wire is msgspec.Raw
        else (name, wire | UnsetType, UNSET)
    )


def _fields(kind: type[Any]) -> _Form:
    """A dataclass as a map of its fields. Fields that its constructor does not take
    must have their one value.
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
