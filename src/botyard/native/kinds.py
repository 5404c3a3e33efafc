"""Types of kernel arguments, and their encoding as a row of 64-bit words.

See `botyard.native.kernels`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """Type of a kernel argument that is a C-contiguous array.

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
        """Number of words that encode an array."""
        return 1 + self.ndim


@dataclass(frozen=True, slots=True)
class ScalarKind:
    """Type of a kernel argument that is a number, one word.

    Attributes
    ----------
    code : str
        Format of `struct`: ``q`` (int64), ``Q`` (uint64), ``d`` (float64) or ``?``
        (bool).
    """

    code: str

    def __str__(self) -> str:
        return self.code

    @property
    def words(self) -> int:
        """Number of words that encode a number."""
        return 1


@dataclass(frozen=True, slots=True)
class TupleKind:
    """Type of a kernel argument that is a NamedTuple: the words of its fields in order.

    Attributes
    ----------
    cls : type
        Class of the tuple.
    fields : tuple of Kind
        Types of its fields.
    """

    cls: type[Any]
    fields: tuple[Kind, ...]

    def __str__(self) -> str:
        return f"{self.cls.__name__}({','.join(map(str, self.fields))})"

    @property
    def words(self) -> int:
        """Number of words that encode the tuple."""
        return sum(field.words for field in self.fields)


@dataclass(frozen=True, slots=True)
class PackKind:
    """Type of a kernel argument that is a `Pack`: the address of the packed words.

    Attributes
    ----------
    of : TupleKind
        Type of the packed tuple.
    """

    of: TupleKind

    def __str__(self) -> str:
        return f"*{self.of}"

    @property
    def words(self) -> int:
        """Number of words that encode the address."""
        return 1


Kind = ArrayKind | ScalarKind | TupleKind | PackKind

_DTYPES: Final = {
    # Complex numbers, texts and other byte orders have no form in kernels.
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
    """Return the type of a kernel argument, given its value.

    Parameters
    ----------
    value : object
        Argument of a kernel.

    Returns
    -------
    Kind
        Type that all later calls must have.

    Raises
    ------
    TypeError
        Kernels do not accept such values.
    """
    if isinstance(value, np.ndarray):
        dtype = _DTYPES.get(value.dtype)
        # Refused here: a kernel would read the bytes as other numbers.
        if dtype is None:
            raise TypeError(f"kernels do not accept arrays of {value.dtype}")
        return ArrayKind(dtype, value.ndim)

    if isinstance(value, Pack):
        return PackKind(value.kind)
    if isinstance(value, tuple):
        return _tuple_kind(value)
    # Before `np.integer`, of which it is a subclass.
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
        raise TypeError(
            "kernels accept named tuples, found a tuple without names of fields"
        )
    return TupleKind(type(value), tuple(map(kind_of, value)))


def words_of(value: Any, kind: Kind) -> tuple[int | float, ...]:
    """Return the words that encode a value.

    Parameters
    ----------
    value : object
        Argument of a kernel.
    kind : Kind
        Its type.

    Returns
    -------
    tuple of int or float
        One word for a number or a pack; address and shape for an array; the words of
        all fields for a named tuple.

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
        # Tuples of other classes may have the same fields in another order.
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
        # The trial finds numbers beyond 64 bits, which the caller's pack would report
        # without a name.
        _NUMBERS[kind.code].pack(value)
    except (struct.error, OverflowError, ValueError):
        raise TypeError(f"expected {_RANGES[kind.code]}, found {value!r}") from None

    return (value,)


def address_of(array: Any) -> int:
    """Return the address in memory of an array's elements or of a ``bytearray``.

    Parameters
    ----------
    array : array or bytearray
        Object that stays alive while the address is used.

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


class _Source:
    """Generated source of an encoder.

    Attributes
    ----------
    known : dict of str to object
        Objects that the source names.
    steps : list of str
        Statements that take arguments apart.
    checks : list of str
        Conditions under which the words below are valid.
    words : list of str
        An expression for each word.
    """

    def __init__(self) -> None:
        self.known: dict[str, Any] = {
            "address_": ctypes.addressof,
            "bytes_": _NO_BYTES.from_buffer,
        }
        self.steps: list[str] = []
        self.checks: list[str] = []
        self.words: list[str] = []

    def add(self, name: str, kind: Kind) -> None:
        """Add the words of an argument.

        Parameters
        ----------
        name : str
            Name of a variable, which holds the argument.
        kind : Kind
            Its type.
        """
        if isinstance(kind, ScalarKind):
            self.words.append(name)
        elif isinstance(kind, PackKind):
            self.known[f"{name}_kind"] = kind.of
            # The words of a pack of another type would be used as other addresses.
            self.checks.append(f"{name}.kind is {name}_kind")
            self.words.append(f"{name}.address")
        elif isinstance(kind, ArrayKind):
            sizes = [f"{name}__{axis}" for axis in range(kind.ndim)]
            # Assignment fails if the array has another number of dimensions.
            self.steps.append(f"[{', '.join(sizes)}] = {name}.shape")
            self.known[f"{name}_type"] = np.dtype(kind.dtype)
            self.checks.append(f"{name}.dtype is {name}_type")
            self.words += [f"address_(bytes_({name}))", *sizes]
        else:
            fields = [f"{name}__{field}" for field in kind.cls._fields]
            self.known[f"{name}_cls"] = kind.cls
            # Tuples of other classes may have the same fields in another order.
            self.checks.append(f"type({name}) is {name}_cls")
            self.steps.append(f"[{', '.join(fields)}] = {name}")
            for field, sort in zip(fields, kind.fields, strict=True):
                self.add(field, sort)


def encoder(kinds: Iterable[Kind], names: Iterable[str]) -> Callable[..., bytes]:
    """Return a function that encodes arguments of these types as a row of words.

    Parameters
    ----------
    kinds : iterable of Kind
        Types of the arguments, in order.
    names : iterable of str
        Names of the arguments.

    Returns
    -------
    callable
        Takes the arguments and returns their words, bytes. It raises the errors of
        `words_of`.
    """
    kinds, names = tuple(kinds), tuple(names)
    takes = ", ".join(names)
    pack = struct.Struct("<" + format_of(kinds)).pack

    def encode(*args: Any) -> bytes:
        return pack(
            *[
                word
                for arg, kind in zip(args, kinds, strict=True)
                for word in words_of(arg, kind)
            ]
        )

    source = _Source()
    source.known |= {"pack_": pack, "encode_": encode}
    for name, kind in zip(names, kinds, strict=True):
        source.add(name, kind)

    lines = [
        *source.steps,
        f"if {' and '.join(source.checks) or True}:",
        f" return pack_({', '.join(source.words)})",
    ]
    # Source with a fixed list of words is faster than any loop over them. The slow
    # function explains errors, and accepts read-only arrays and other forms of a type.
    code = "\n  ".join(
        [f"def fast({takes}):\n try:", *lines, "\n except Exception:\n  pass"]
    )
    exec(f"{code}\n return encode_({takes})\n", source.known)
    fast: Callable[..., bytes] = source.known["fast"]

    return fast


def format_of(kinds: Iterable[Kind]) -> str:
    """Return the format of `struct` for the words of these types.

    Parameters
    ----------
    kinds : iterable of Kind
        Types of the arguments, in order.

    Returns
    -------
    str
        Format without byte order; each word has 8 bytes.
    """
    codes = []
    for kind in kinds:
        if isinstance(kind, ScalarKind):
            # One byte and seven of padding make a word.
            codes.append("?7x" if kind.code == "?" else kind.code)
        elif isinstance(kind, ArrayKind):
            codes.append("Q" + "q" * kind.ndim)
        elif isinstance(kind, PackKind):
            codes.append("Q")
        else:
            codes.append(format_of(kind.fields))

    return "".join(codes)


class Pack(Generic[T]):
    """Named tuple of arrays that is encoded once; kernels get the address of its words.

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
        encode = _ENCODERS.get(kind)
        if encode is None:
            encode = _ENCODERS[kind] = encoder([kind], ["pack"])
        self._words = bytearray(encode(value))
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
        """Return the pack of `value`.

        Parameters
        ----------
        value : NamedTuple
            Arrays, numbers and packs. It is compared by identity: a new tuple of the
            same arrays is encoded again.
        """
        last = self._last
        # Identity is enough: tuples do not change, and arrays keep their addresses.
        if last is None or last.source is not value:
            last = self._last = Pack(value)
        return last


_PACKED: Final[dict[type[Any], TupleKind]] = {}
"""Cached type of each class of tuples for `Pack`: it never changes."""
_ENCODERS: Final[dict[TupleKind, Callable[..., bytes]]] = {}
"""Encoder of each type of tuples for `Pack`."""


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
    "encoder",
    "format_of",
    "kind_of",
    "words_of",
]
