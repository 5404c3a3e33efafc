"""Messages: values of declared types as bytes, for files and for streams.

Bytes are pure data: they name no code. With pickle, a worker that a hostile file has
taken over could run code in its parent.

Layout of a message: length of the head (4 bytes, little-endian); the head in
MessagePack: version, kind, type and shape of each array, and the body; then the numbers
of the arrays (little-endian, in C order). `botyard.codec.forms` encodes the body in the
style "exact": arrays are referred to by index, and no bits are lost.

`Limits` bounds the size of a message that comes from outside. A reader checks each size
in the message before it allocates memory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import IO, Annotated, Any, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from botyard.codec.forms import MAX_FREE, Reader, plain_number, written
from botyard.names import shown

# Increment this version when an older reader would misunderstand the head. New fields
# of a body need no new version.
VERSION: Final = 1
MAX_HEAD: Final = 32 * 2**20
"""Longest head of a recorded message (all data except arrays), bytes.

The largest readable worlds (`Budget.robots`) need a quarter of it.
"""
MAX_ARRAYS: Final = 100
"""Largest number of arrays of a recorded message.

A message with a scene has two, a message with the velocities of a fleet four.
"""
MAX_TOTAL_BYTES: Final = 2**40
"""Default limit of all messages on a channel together, bytes."""
_LENGTH: Final = struct.Struct("<I")
_NUMBERS: Final = frozenset(np.dtype(c).newbyteorder("<").str for c in "bBhHiIqQfd?")
"""NumPy types of numbers that an array in a message can have."""

Types = Mapping[str, Any]
"""Expected kinds of messages, each with the declared type of the body."""
Take = Callable[[int], NDArray[np.uint8]]
"""Function that returns the next bytes of a message, as a new array."""


class NotDataError(Exception):
    """A value cannot be written as data."""


class DamagedMessage(Exception):
    """The received bytes are not one of the expected messages."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a message from outside.

    Attributes
    ----------
    head : int
        Longest head, bytes.
    arrays : int
        Largest number of arrays.
    free : int
        Largest size of values without a declared type, bytes.
    """

    head: int = MAX_HEAD
    arrays: int = MAX_ARRAYS
    free: int = MAX_FREE


RECORDED: Final = Limits()
"""Limits of a message in a recording."""


class Writable(Protocol):
    """Binary stream that messages are written to."""

    def write(self, data: Any, /) -> object:
        """Write bytes, or an object with the buffer protocol."""


class _Version(msgspec.Struct, array_like=True):
    """Start of a head: the format version, which stands first in all versions of the format."""

    version: int


class _Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    kind: str
    arrays: msgspec.Raw
    body: msgspec.Raw


# -- writing


def encode(kind: str, body: Any, hint: Any) -> bytes:
    """Encode a message.

    Parameters
    ----------
    kind : str
        Kind of the message, such as ``scene``.
    body : value
        A value of the type `hint`.
    hint : type
        Declared type of the body; its form is in `botyard.codec.forms`.

    Raises
    ------
    NotDataError
        A value in the body cannot be written as data.
    """
    return b"".join(_pieces(kind, body, hint))


def encode_plain(kind: str, body: Any) -> bytes:
    """Encode a message whose body is already plain data, for frequent messages.

    The body has numbers, strings, lists and mappings in the form of its type. For
    errors see `encode`.

    Parameters
    ----------
    kind : str
        Kind of the message.
    body : value
        Plain data without arrays.

    Returns
    -------
    bytes
        Message with its length.
    """
    try:
        inside = _beginning(kind) + _encode_plain(body)
    except _NOT_DATA as error:
        raise NotDataError(str(error)) from None

    return _LENGTH.pack(len(inside)) + inside


def write_message(file: Writable, kind: str, body: Any, hint: Any) -> None:
    """Write a message to a stream; for the arguments and errors see `encode`.

    Parameters
    ----------
    file : Writable
        Binary stream. Arrays are written without a copy.
    kind, body, hint
        See `encode`.

    Raises
    ------
    NotDataError
        A value cannot be written as data; nothing is written then.
    """
    for piece in _pieces(kind, body, hint):
        file.write(piece)


def _pieces(kind: str, body: Any, hint: Any) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a message; nothing if a value in it is not data.

    Parameters
    ----------
    kind, body, hint
        See `encode`.

    Yields
    ------
    bytes or memoryview
        Length, head, and the numbers of each array.

    Raises
    ------
    NotDataError
        A value cannot be written as data; it is raised before the first piece.
    """
    arrays: list[NDArray[Any]] = []

    def plain(value: object) -> object:
        """Convert a value that msgspec cannot write to plain data, as a hook of msgspec."""
        if not isinstance(value, np.ndarray):
            return plain_number(value)
        # The message has one byte order, whatever the machine.
        array = np.asarray(value, value.dtype.newbyteorder("<"), order="C")
        if array.dtype.str not in _NUMBERS:
            raise NotImplementedError(f"arrays of {value.dtype} are not supported")
        # The body contains only the index: the numbers follow the head without a copy.
        arrays.append(array)
        return len(arrays) - 1

    try:
        inside = msgspec.msgpack.encode(written(body, hint), enc_hook=plain)
        head = _head(kind, [(a.dtype.str, a.shape) for a in arrays], inside)
    except _NOT_DATA as error:
        raise NotDataError(str(error)) from None

    yield _LENGTH.pack(len(head))
    yield head
    yield from (a.reshape(-1).view(np.uint8).data for a in arrays)


_NOT_DATA: Final = (
    msgspec.MsgspecError,
    NotImplementedError,
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
)


@cache
def _beginning(kind: str) -> bytes:
    """Return the head of a message without arrays, except for its last part, the body."""
    nothing = msgspec.msgpack.encode(None)
    return _head(kind, [], nothing).removesuffix(nothing)


def _head(kind: str, arrays: list[tuple[str, tuple[int, ...]]], body: bytes) -> bytes:
    described = msgspec.msgpack.encode(arrays)
    return msgspec.msgpack.encode(
        _Head(VERSION, kind, msgspec.Raw(described), msgspec.Raw(body))
    )


_encode_plain: Final = msgspec.msgpack.Encoder(enc_hook=plain_number).encode


# -- reading


def decode(
    data: bytes | memoryview, kind: str, hint: Any, limits: Limits = RECORDED
) -> Any:
    """Decode the body of a message, a value of the type `hint`.

    Parameters
    ----------
    data : bytes-like
        Whole message, without further bytes.
    kind : str
        Expected kind of message.
    hint : type
        Declared type of the body.
    limits : Limits
        Limits for a message from outside.

    Returns
    -------
    object
        Value of the type `hint`. Its arrays are copies, which may be changed.

    Raises
    ------
    DamagedMessage
        The bytes are not such a message, are damaged, have a newer version, exceed a
        limit, or contain a value that is not valid.
    """
    view, at = memoryview(data), 0

    def take(size: int) -> NDArray[np.uint8]:
        nonlocal at
        at += size
        if at > len(view):
            raise DamagedMessage("the message ends within an array")
        # A view would be read-only, and would keep the whole message in memory.
        return np.frombuffer(view[at - size : at], np.uint8).copy()

    value = _read(take, {kind: hint}, limits)[1]
    if at != len(view):
        raise DamagedMessage(
            f"expected no bytes after its arrays, found {len(view) - at} bytes"
        )
    return value


class Channel:
    """Reader of messages from a stream, within a byte budget.

    Parameters
    ----------
    file : binary file
        The stream.
    types : mapping
        Expected kinds of messages, and the type of the body of each kind.
    max_bytes : int
        Limit of all messages together, bytes.
    """

    def __init__(
        self, file: IO[bytes], types: Types, max_bytes: int = MAX_TOTAL_BYTES
    ) -> None:
        self._file = file
        self._types = types
        self._budget = max_bytes
        self._limits = Limits(max_bytes, max_bytes, max_bytes)

    def read(self) -> tuple[str, Any] | None:
        """Return the kind and body of the next message.

        None at the end of the stream.

        Raises
        ------
        DamagedMessage
            The message is truncated, exceeds the budget or is of an unknown kind, or
            its body does not match its type.
        """
        first = self._file.read(1)
        if not first:
            return None

        def take(size: int) -> NDArray[np.uint8]:
            """Read exactly `size` bytes from the stream, and subtract them from the budget."""
            nonlocal first
            self._budget -= size
            if self._budget < 0:
                raise DamagedMessage(
                    "the message exceeds its size limit (of all messages of the stream "
                    f"together) by {-self._budget} bytes"
                )
            # NumPy does not fill the memory with zeros first, unlike bytearray.
            data = np.empty(size, np.uint8)
            room = data.data
            room[: len(first)] = first
            room = room[len(first) :]
            first = b""
            while room:
                n = self._file.readinto(room)  # type: ignore[attr-defined]
                if not n:
                    raise DamagedMessage("the file ends within the message")
                room = room[n:]

            return data

        return _read(take, self._types, self._limits)


def _read(take: Take, types: Types, limits: Limits) -> tuple[str, Any]:
    """Read one message from a stream; return its kind and its body.

    Parameters
    ----------
    take : callable
        Returns the next bytes of the message.
    types : mapping of str to type
        Expected kinds, with the type of the body of each.
    limits : Limits
        Limits of the message.

    Raises
    ------
    DamagedMessage
        The bytes are not one of the expected messages, or exceed a limit.
    """
    (size,) = _LENGTH.unpack(take(_LENGTH.size).data)
    # Check the size before memory is allocated: four hostile bytes could request 4 GiB.
    if size > limits.head:
        raise DamagedMessage(
            f"expected a head of at most {limits.head} bytes, found {size} bytes"
        )
    data = take(size).data
    try:
        # Read the version alone first, because a later version can have another head.
        version = msgspec.msgpack.decode(data, type=_Version).version
        if version != VERSION:
            raise DamagedMessage(
                f"expected version {VERSION}, found {version}: another version of "
                "botyard wrote it"
            )

        head = msgspec.msgpack.decode(data, type=_Head)
        # The kind selects the type, so an unexpected one must not reach a decoder.
        if head.kind not in types:
            raise DamagedMessage(
                f'expected a message of kind {", ".join(types)}, found "{shown(head.kind, 40)}"'
            )
        described = _described(limits.arrays).decode(head.arrays)
        arrays = [_array(take, *one) for one in described]
        return head.kind, Reader(arrays, limits.free).value(head.body, types[head.kind])
    except (DamagedMessage, MemoryError):
        raise
    # Catch all errors of msgspec and of the validation of descriptions, including
    # descriptions from plug-ins.
    except Exception as error:
        raise DamagedMessage(str(error) or type(error).__name__) from None


@cache
def _described(most: int) -> msgspec.msgpack.Decoder[list[tuple[str, tuple[int, ...]]]]:
    """Return a decoder for the head's list of arrays (type and shape), of at most `most`
    entries.
    """
    # msgspec refuses more arrays before it makes objects.
    limit = msgspec.Meta(max_length=most)
    return msgspec.msgpack.Decoder(Annotated[list[tuple[str, tuple[int, ...]]], limit])


def _array(take: Take, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read the numbers of one array of a message.

    Parameters
    ----------
    take : callable
        Returns the next bytes of the message.
    dtype : str
        Type string of NumPy, from the message.
    shape : tuple of int
        Shape, from the message.

    Raises
    ------
    DamagedMessage
        The type or shape is not allowed, or bytes are missing.
    """
    if (
        dtype not in _NUMBERS
        or len(shape) > 8
        # The bound refuses sizes beyond any memory before they are multiplied.
        or any(not 0 <= n < 2**48 for n in shape)
    ):
        raise DamagedMessage(
            f"expected an array of numbers, found {shown(dtype, 20)} with the shape "
            f"{shown(str(shape), 40)}"
        )

    kind = np.dtype(dtype)
    # Python's integers cannot overflow here, unlike NumPy's product.
    return take(math.prod(shape) * kind.itemsize).view(kind).reshape(shape)


__all__ = [
    "MAX_HEAD",
    "MAX_TOTAL_BYTES",
    "RECORDED",
    "VERSION",
    "Channel",
    "DamagedMessage",
    "Limits",
    "NotDataError",
    "Types",
    "decode",
    "encode",
    "encode_plain",
    "write_message",
]
