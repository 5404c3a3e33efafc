"""CBOR encoding (RFC 8949) of rosbridge's messages, with typed arrays (RFC 8746).

Clients send JSON, so there is no decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG = range(7)
"""Major types of CBOR items (RFC 8949, §3.1)."""
_POSITIVE_BIGNUM, _NEGATIVE_BIGNUM = 2, 3
"""Tags of integers of more than 64 bits, which are byte strings (RFC 8949, §3.4.3)."""
_FALSE, _TRUE, _NULL, _FLOAT64 = b"\xf4", b"\xf5", b"\xf6", b"\xfb"
TYPED_ARRAYS: Final[Mapping[str, int]] = {
    "<u2": 69,
    "<u4": 70,
    "<u8": 71,
    "|i1": 72,
    "<i2": 77,
    "<i4": 78,
    "<i8": 79,
    "<f4": 85,
    "<f8": 86,
}
"""Tags of little-endian typed arrays by NumPy's type strings.

``|u1`` is a plain byte string.
"""
MAX_KEYS: Final = 4096
"""Limit of the cached encoded texts (names of fields)."""

_DOUBLE = struct.Struct(">d").pack


def _head(major: int, n: int) -> bytes:
    """Return initial byte and argument of an item (RFC 8949, §3).

    Parameters
    ----------
    major : int
        Major type, 0 to 7.
    n : int
        Argument: a number, a length or a tag; 0 to 2⁶⁴ − 1.
    """
    major <<= 5
    if n < 24:
        return bytes((major | n,))
    # The argument has its shortest form, as RFC 8949 prefers it (§4.1).
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 1 << (8 * size):
            return bytes((major | code,)) + n.to_bytes(size, "big")

    raise ValueError(f"CBOR: expected a length below 2**64, found {n}")


@lru_cache(MAX_KEYS)
def _key(text: str) -> bytes:
    return _text(text)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    return _head(_TEXT, len(data)) + data


def _integer(value: int) -> bytes:
    """Return an integer of any size; beyond 64 bits as a bignum (RFC 8949, §3.4.3)."""
    argument = value if value >= 0 else -1 - value
    # The head of an item holds at most 64 bits.
    if argument < 1 << 64:
        return _head(_UNSIGNED if value >= 0 else _NEGATIVE, argument)
    data = argument.to_bytes(-(-argument.bit_length() // 8), "big")
    return (
        _head(_TAG, _POSITIVE_BIGNUM if value >= 0 else _NEGATIVE_BIGNUM)
        + _head(_BYTES, len(data))
        + data
    )


def _array(values: NDArray[Any]) -> bytes:
    """Return a numeric array: a byte string of uint8, or a typed array.

    Booleans have no typed array and become a list.

    Parameters
    ----------
    values : (n,) array
        Numbers or booleans.
    """
    # Send little-endian numbers, which nearly all clients read without swapping bytes.
    kind = values.dtype.newbyteorder("<").str
    data: bytes = values.astype(kind, copy=False).tobytes()
    if kind == "|u1":
        return _head(_BYTES, len(data)) + data
    tag = TYPED_ARRAYS.get(kind)
    if tag is None:
        return encode(values.tolist())
    return _head(_TAG, tag) + _head(_BYTES, len(data)) + data


def _put(value: Any, add: Callable[[bytes], object]) -> None:
    """Append the encoding of a value, piece by piece.

    Parameters
    ----------
    value : object
        Value of a type that `encode` accepts.
    add : callable
        Gets the pieces in order.

    Raises
    ------
    TypeError
        The value holds another type.
    """
    # Compare exact types, the most frequent first: with isinstance, a bool would be an
    # int.
    kind = type(value)
    if kind is float:
        add(_FLOAT64 + _DOUBLE(value))
    elif kind is dict:
        add(_head(_MAP, len(value)))
        for name, one in value.items():
            add(_key(name))
            _put(one, add)
    elif kind is str:
        add(_text(value))
    elif kind is bool:
        add(_TRUE if value else _FALSE)
    elif kind is int:
        add(_integer(value))
    elif kind is np.ndarray:
        add(_array(value))
    elif kind is list:
        add(_head(_ARRAY, len(value)))
        for one in value:
            _put(one, add)
    elif kind is bytes:
        add(_head(_BYTES, len(value)) + value)
    elif value is None:
        add(_NULL)
    elif isinstance(value, np.generic):
        _put(value.item(), add)
    else:
        raise TypeError(
            f"CBOR: expected a number, text, bytes, list, mapping or array, found {kind.__name__}"
        )


def encode(value: Any) -> bytes:
    """Encode a value.

    The value may hold dictionaries with text keys, lists, texts, bytes, numbers, None
    and one-dimensional NumPy arrays.

    Parameters
    ----------
    value : object
        The value. NumPy arrays become typed arrays (RFC 8746), which clients read
        without a conversion of each number.

    Raises
    ------
    TypeError
        The value holds another type.
    """
    parts: list[bytes] = []
    _put(value, parts.append)
    return b"".join(parts)


__all__ = ["TYPED_ARRAYS", "encode"]
