"""Types of kernel arguments, and their encoding as a row of 64-bit words.

See `botyard.native.kernels`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """Type of a C-contiguous array.

    Attributes
    ----------
    dtype : str
        Type of its elements in NumPy's notation ("f8").
    ndim : int
        Number of dimensions.
    """

    dtype: str
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype}[{self.ndim}]"

    @property
    def words(self) -> int:
        """Number of words of a value."""
        return 1 + self.ndim


@dataclass(frozen=True, slots=True)
class ScalarKind:
    """Type of a number, one word.

    `code` is ``q`` (int64), ``Q`` (uint64), ``d`` (float64) or ``?`` (bool).
    """

    code: str

    def __str__(self) -> str:
        return self.code

    @property
    def words(self) -> int:
        """Number of words of a value."""
        return 1


@dataclass(frozen=True, slots=True)
class TupleKind:
    """Type of a NamedTuple: the words of its fields in order."""

    cls: type[Any]
    fields: tuple[Kind, ...]

    def __str__(self) -> str:
        return f"{self.cls.__name__}({','.join(map(str, self.fields))})"

    @property
    def words(self) -> int:
        """Number of words of a value."""
        return sum(field.words for field in self.fields)


@dataclass(frozen=True, slots=True)
class PackKind:
    """Type of the address of a `Pack`."""

    of: TupleKind

    def __str__(self) -> str:
        return f"*{self.of}"

    @property
    def words(self) -> int:
        """Number of words of a value."""
        return 1


Kind = ArrayKind | ScalarKind | TupleKind | PackKind

_DTYPES: Final = {
    np.dtype(name): name
    for name in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
}
SCALARS: Final = {
    int: ScalarKind("q"),
    np.uint64: ScalarKind("Q"),
    float: ScalarKind("d"),
    bool: ScalarKind("?"),
}
_NUMBERS: Final = {code: struct.Struct("<" + code) for code in "qQd?"}
_RANGES: Final = {
    "q": "a whole number of 64 bits",
    "Q": "a whole number of 64 bits from 0",
    "d": "a number",
    "?": "True or False",
}
_NO_BYTES: Final = ctypes.c_char * 0


def kind_of(value: Any) -> Kind:
    """Return the argument type of a value.

    Raises
    ------
    TypeError
        Kernels do not accept such values.
    """
    if isinstance(value, np.ndarray):
        dtype = _DTYPES.get(value.dtype)
        if dtype is None:
            raise TypeError(f"kernels do not accept arrays of {value.dtype}")
        return ArrayKind(dtype, value.ndim)

    if isinstance(value, Pack):
        return PackKind(value.kind)
    if isinstance(value, tuple):
        return _tuple_kind(value)
    if isinstance(value, np.uint64):
        return SCALARS[np.uint64]
    for cls, number in (
        # bool comes first, because it is a subclass of int.
        (bool | np.bool_, bool),
        (int | np.integer, int),
        (float, float),
    ):
        if isinstance(value, cls):
            return SCALARS[number]

    raise TypeError(
        f"kernels accept arrays, numbers and named tuples of them, not {type(value).__name__}"
    )


def _tuple_kind(value: tuple[Any, ...]) -> TupleKind:
    if not hasattr(value, "_fields"):
        raise TypeError("kernels accept named tuples only")
    return TupleKind(type(value), tuple(map(kind_of, value)))


def words_of(value: Any, kind: Kind) -> tuple[int | float, ...]:
    """Return the words of a value.

    Raises
    ------
    TypeError
        The value has another type, or an array is not contiguous in memory.
    """
    if isinstance(kind, ArrayKind):
        if not isinstance(value, np.ndarray):
            raise TypeError(f"expected an array {kind}, found {type(value).__name__}")
        if _DTYPES.get(value.dtype) != kind.dtype or value.ndim != kind.ndim:
            raise TypeError(
                f"expected an array {kind}, found {value.dtype.name}[{value.ndim}]"
            )

        return (address_of(value), *value.shape)

    if isinstance(kind, TupleKind):
        if type(value) is not kind.cls:
            raise TypeError(
                f"expected {kind.cls.__name__}, found {type(value).__name__}"
            )

        words: list[int | float] = []
        for name, field, sort in zip(kind.cls._fields, value, kind.fields, strict=True):
            try:
                words += words_of(field, sort)
            except TypeError as error:
                raise TypeError(f"{kind.cls.__name__}.{name}: {error}") from None

        return tuple(words)

    if isinstance(kind, PackKind):
        if not isinstance(value, Pack) or value.kind != kind.of:
            raise TypeError(f"expected a pack of {kind.of}, found {value!r}")
        return (value.address,)

    try:
        _NUMBERS[kind.code].pack(value)
    except (struct.error, OverflowError, ValueError):
        raise TypeError(f"expected {_RANGES[kind.code]}, found {value!r}") from None

    return (value,)


def address_of(array: Any) -> int:
    """Return the address of a C-contiguous array's elements or of a ``bytearray``.

    Raises
    ------
    TypeError
        The array is not contiguous.
    """
    try:
        return ctypes.addressof(_NO_BYTES.from_buffer(array))
    except TypeError:
        # `from_buffer` is fast but refuses read-only arrays.
        if isinstance(array, np.ndarray) and array.flags.c_contiguous:
            return int(array.ctypes.data)

        raise TypeError("an array must be contiguous in memory for kernels") from None


def format_of(kinds: Iterable[Kind]) -> str:
    """Return the format of `struct` for the words of these types."""
    codes = []
    for kind in kinds:
        if isinstance(kind, ScalarKind):
            codes.append("?7x" if kind.code == "?" else kind.code)
        elif isinstance(kind, ArrayKind):
            codes.append("Q" + "q" * kind.ndim)
        elif isinstance(kind, PackKind):
            codes.append("Q")
        else:
            codes.append(format_of(kind.fields))

    return "".join(codes)


class Pack(Generic[T]):
    """A named tuple of arrays, encoded once; kernels get the address of its words.

    Parameters
    ----------
    value : NamedTuple
        Arrays, numbers, and other packs. Arrays must not be reallocated while the pack
        is used; their elements may change.

    Attributes
    ----------
    source : NamedTuple
        The argument `value`.
    value : NamedTuple
        `value` with nested packs replaced by their values: the kernel's argument in
        Python.
    kind : TupleKind
        Type of the tuple.
    address : int
        Address of the encoded words.
    """

    __slots__ = ("_words", "address", "kind", "source", "value")

    def __init__(self, value: T) -> None:
        parts: tuple[Any, ...] = value  # type: ignore[assignment]
        # The type of a class of tuples never changes, and finding it costs more than
        # the encoding.
        kind = _PACKED.get(type(value))
        if kind is None:
            kind = _tuple_kind(parts)
        form = _FORMATS.get(kind)
        if form is None:
            form = _FORMATS[kind] = struct.Struct("<" + format_of([kind]))
        self._words = bytearray(form.pack(*words_of(parts, kind)))
        _PACKED[type(value)] = kind
        self.source = value
        self.kind = kind
        self.address = address_of(self._words)
        self.value: T = (
            type(value)(
                *(part.value if isinstance(part, Pack) else part for part in parts)
            )
            if any(isinstance(part, Pack) for part in parts)
            else value
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy encodes its own words, because the words contain the addresses of its
        # arrays.
        return type(self), (self.source,)

    def __repr__(self) -> str:
        return f"<pack of {self.kind.cls.__name__}>"


class LastPack(Generic[T]):
    """A cache of one pack, which encodes a tuple again only if it is another object."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Pack[T] | None = None

    def __call__(self, value: T) -> Pack[T]:
        """Return the pack of `value`."""
        last = self._last
        if last is None or last.source is not value:
            last = self._last = Pack(value)
        return last


_PACKED: Final[dict[type[Any], TupleKind]] = {}
"""Cached type of each class of tuples for `Pack`: it never changes."""
_FORMATS: Final[dict[TupleKind, struct.Struct]] = {}


__all__ = [
    "SCALARS",
    "ArrayKind",
    "Kind",
    "LastPack",
    "Pack",
    "PackKind",
    "ScalarKind",
    "TupleKind",
    "address_of",
    "format_of",
    "kind_of",
    "words_of",
]
