"""ROS messages as plain values, and back: rosbridge's JSON form of ROS 2 types.

Sent times are ``{sec, nanosec}``, uint8[] is base64, and numbers that are not finite
are null. Received values may also be ``{secs, nsecs}``, ``"now"``, lists of bytes, and
null for NaN. Missing fields are zero or empty, and a missing header gets the present
time. Sources: ROSBRIDGE_PROTOCOL.md, section 3, and rosbridge_library's conversions.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta

from botyard.errors import PeerError, did_you_mean
from botyard.names import shown
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import Types

Plain = Callable[[Any], Any]
Read = Callable[[Any, str], Any]

MAX_FLOAT32: Final = float(np.finfo(np.float32).max)
"""Largest number of a float32."""
# Clients may send very long values, so limit quotations.
MAX_TEXT: Final = 60
"""Longest quotation of an invalid value in an error message, characters."""
_BASE, _MESSAGE, _ARRAY = 1, 2, 3
"""Kinds of fields, as rosbags numbers them; 4 is a sequence."""
_TIME, _DURATION, _HEADER = (
    "builtin_interfaces/msg/Time",
    "builtin_interfaces/msg/Duration",
    "std_msgs/msg/Header",
)
FILLER: Final = "structure_needs_at_least_one_member"
"""Field that rosidl adds to types without fields, and that rosbridge does not show."""
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    **{f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
    "byte": (0, 255), "octet": (0, 255), "char": (0, 255),
}  # fmt: skip


def _of_hook(value: Any) -> Any:
    """Return the JSON value of a NumPy array or number."""
    if isinstance(value, np.ndarray):
        if value.dtype == np.uint8:
            # The protocol has base64 for uint8[] only; other arrays are lists.
            return base64.b64encode(value.tobytes()).decode()
        return value.tolist()

    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"JSON: expected a plain value or an array, found {type(value).__name__}"
    )


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_of_hook)


def json_of(plain: Any) -> bytes:
    """Return the JSON text of plain values.

    NaN and infinities are null, arrays are lists, and uint8 arrays are base64.

    Parameters
    ----------
    plain : object
        Dictionaries, lists, texts, numbers, None, bytes and NumPy arrays.

    Raises
    ------
    TypeError
        The value holds another type.
    """
    return _ENCODER.encode(plain)


def _wrong(where: str, expected: str, value: Any) -> PeerError:
    """Return the error of a value that does not fit.

    Parameters
    ----------
    where : str
        Path of the field, such as ``pose.position.x``.
    expected : str
        Description of a valid value.
    value : object
        The value, of which at most `MAX_TEXT` characters are shown.
    """
    return PeerError(
        f"{where}: expected {expected}, found {shown(repr(value)[: 4 * MAX_TEXT], MAX_TEXT)}"
    )


class Values:
    """Converts messages of ROS 2 types to plain values and back.

    Parameters
    ----------
    types : Types
        Message types of the distribution.
    now : callable
        Returns the present time, for time stamps that a client leaves out.
    """

    def __init__(self, types: Types, now: Callable[[], Stamp]) -> None:
        self._types = types
        self._now = now
        # Build the converter of a type once, because looking up its fields is slow.
        self._plain: dict[str, Plain] = {}
        self._read: dict[str, Read] = {}

    def plain(self, message: Any, name: str) -> dict[str, Any]:
        """Return a message as dictionaries, lists and NumPy arrays.

        Parameters
        ----------
        message : object
            Message of any class with the fields of the type.
        name : str
            Type of the message.

        Returns
        -------
        dict
            Values by field name. Arrays are not copied, so the message must not change.

        Raises
        ------
        PeerError
            The type does not exist.
        """
        found = self._plain.get(name) or self._make_plain(name)
        plain: dict[str, Any] = found(message)
        return plain

    def message(self, values: Any, name: str) -> Any:
        """Return a message of a ROS 2 type from plain values.

        The values are an object, or a list of the fields in their order.

        Parameters
        ----------
        values : dict, list or None
            Plain values from JSON; None for a message of defaults.
        name : str
            Type of the message.

        Raises
        ------
        PeerError
            A value does not fit, or the field or type does not exist.
        """
        # Service calls may have their arguments as a list.
        if isinstance(values, list):
            fields = [f for f, _ in self.fields(name)]
            if len(values) > len(fields):
                raise PeerError(
                    f"{name}: expected at most {len(fields)} values, found {len(values)}"
                )

            # Fewer values than fields are valid: the other fields keep their defaults.
            values = dict(zip(fields, values, strict=False))

        return (self._read.get(name) or self._make_read(name))(
            {} if values is None else values, ""
        )

    def fields(self, name: str) -> list[tuple[str, Any]]:
        """Return names and kinds of a type's fields, as rosbags describes them.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        PeerError
            The type does not exist.
        """
        try:
            return [
                (field, kind)
                for field, kind in self._types.fields(name)
                if field != FILLER
            ]
        except KeyError:
            raise PeerError(f'no ROS message type "{shown(name, MAX_TEXT)}"') from None

    # -- out

    def _make_plain(self, name: str) -> Plain:
        parts = [(field, self._plain_of(kind)) for field, kind in self.fields(name)]

        def plain(message: Any) -> dict[str, Any]:
            return {
                field: getattr(message, field)
                if part is None
                else part(getattr(message, field))
                for field, part in parts
            }

        self._plain[name] = plain
        return plain

    def _plain_of(self, kind: Any) -> Plain | None:
        """Return the function that converts a field's value to a plain value, or None."""
        sort, what = int(kind[0]), kind[1]
        if sort == _BASE:
            return None
        if sort == _MESSAGE:
            return self._plain.get(what) or self._make_plain(what)
        item = what[0]
        if int(item[0]) == _MESSAGE:
            part = self._plain.get(item[1]) or self._make_plain(item[1])
            return lambda values: [part(one) for one in values]

        base = item[1][0]
        if "string" in base:
            return list
        # Other numbers become a list: only uint8 and char are base64.
        if base in (
            "byte",
            "octet",
        ):
            return lambda values: np.asarray(values, np.uint8).tolist()

        dtype = np.dtype("uint8" if base == "char" else base)
        return lambda values: np.asarray(values, dtype)

    # -- in

    def _make_read(self, name: str) -> Read:
        fields = self.fields(name)
        parts = {field: self._read_of(kind) for field, kind in fields}
        stamped = [
            field
            for field, kind in fields
            if int(kind[0]) == _MESSAGE and kind[1] == _HEADER
        ]

        def read(values: Any, where: str) -> Any:
            if not isinstance(values, Mapping):
                raise _wrong(where or name, "an object", values)
            found = {}
            for field, value in values.items():
                part = parts.get(field)
                if part is None:
                    raise PeerError(
                        f'{where or name}: no field "{shown(str(field), MAX_TEXT)}"{did_you_mean(str(field)[:MAX_TEXT], parts)}'
                    )

                found[field] = part(value, f"{where}.{field}" if where else field)

            for field in stamped:
                if field not in found:
                    # A missing header gets the present time, as if it were an empty
                    # object.
                    found[field] = parts[field]({}, field)

            if name == _HEADER and "stamp" not in found:
                found["stamp"] = self._time(_TIME, self._now())
            return self._types.filled(name, found)

        made = self._clock(name) if name in (_TIME, _DURATION) else read
        self._read[name] = made
        return made

    def _time(self, name: str, stamp: Stamp) -> Any:
        return self._types.filled(name, {"sec": stamp.sec, "nanosec": stamp.nanosec})

    def _clock(self, name: str) -> Read:
        """Return the function that converts a plain value to a time or a duration.

        Parameters
        ----------
        name : str
            Type: builtin_interfaces/Time or Duration. ``"now"`` is valid for a time
            only.
        """
        names = {"sec": "sec", "secs": "sec", "nanosec": "nanosec", "nsecs": "nanosec"}
        low, high = _RANGES["int32"]

        def read(value: Any, where: str) -> Any:
            if value == "now" and name == _TIME:
                return self._time(name, self._now())
            if not isinstance(value, Mapping) or not all(key in names for key in value):
                raise _wrong(
                    where,
                    '{sec, nanosec} or "now"' if name == _TIME else "{sec, nanosec}",
                    value,
                )

            found = {names[key]: one for key, one in value.items()}
            sec = _integer(found.get("sec", 0), f"{where}.sec", low, high)
            nanosec = _integer(
                found.get("nanosec", 0), f"{where}.nanosec", 0, 999_999_999
            )
            return self._time(name, Stamp(sec, nanosec))

        return read

    def _read_of(self, kind: Any) -> Read:
        """Return the function that converts a plain value to a field's value.

        Parameters
        ----------
        kind : object
            Kind of the field, as in `Types.fields`.

        Returns
        -------
        callable
            Function of a plain value and its path that returns the field's value, or
            raises PeerError.
        """
        sort, what = int(kind[0]), kind[1]
        if sort == _BASE:
            return _reader(what[0])
        if sort == _MESSAGE:
            return self._read.get(what) or self._make_read(what)
        item, count = what
        count = count if sort == _ARRAY else None
        if int(item[0]) == _BASE and "string" not in item[1][0]:
            return _numbers(item[1][0], count)
        part = self._read_of(item)

        def read(value: Any, where: str) -> list[Any]:
            if not isinstance(value, list) or count not in (None, len(value)):
                raise _wrong(
                    where, "a list" if count is None else f"a list of {count}", value
                )

            return [part(one, f"{where}[{k}]") for k, one in enumerate(value)]

        return read


def _integer(value: Any, where: str, low: int, high: int) -> int:
    """Return an integer within bounds; a float without a fraction is also valid.

    Parameters
    ----------
    value : object
        Value from JSON.
    where : str
        Path of the field, for the error.
    low, high : int
        Bounds, inclusive.

    Raises
    ------
    PeerError
        The value is not such an integer.
    """
    # JavaScript has no integers, and some clients write 1.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        raise _wrong(where, f"an integer from {low} to {high}", value)
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "a text", value)
    return value


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return value


def _real(value: Any, where: str) -> float:
    """Convert a plain value to a float; null becomes NaN."""
    # JSON has no NaN; rosbridge writes null in its place.
    if value is None:
        return math.nan
    # In Python, bool is a subclass of int, but true is no number in JSON.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(where, "a number", value)
    try:
        return float(value)
    except OverflowError:
        # JSON integers have any length in Python.
        raise _wrong(where, "a number that a double holds", value) from None


def _single(value: Any, where: str) -> float:
    """Convert a plain value to a number that fits into a float32, or is infinite or NaN."""
    number = _real(value, where)
    if MAX_FLOAT32 < abs(number) < math.inf:
        raise _wrong(where, "a number that a float32 holds", value)
    return number


def _reader(base: str) -> Read:
    """Return the function that converts a plain value to a value of a base type."""
    if "string" in base:
        return _text
    if base == "bool":
        return _boolean
    if base in _RANGES:
        low, high = _RANGES[base]
        return lambda value, where: _integer(value, where, low, high)

    return _single if base == "float32" else _real


def _numbers(base: str, count: int | None) -> Read:
    """Return the function that converts a list, or base64 of bytes, to an array of numbers.

    Parameters
    ----------
    base : str
        Base type of the elements.
    count : int or None
        Fixed length; None for a sequence.
    """
    dtype = np.dtype("uint8" if base in ("byte", "octet", "char") else base)
    kind: Any = float | None
    if base == "bool":
        kind = bool
    elif base in _RANGES:
        low, high = _RANGES[base]
        # msgspec's bounds are signed 64-bit numbers.
        kind = (
            Annotated[int, Meta(ge=low, le=high)]
            if high < 1 << 63
            else Annotated[int, Meta(ge=0)]
        )

    def read(value: Any, where: str) -> Any:
        if dtype == np.uint8 and isinstance(value, str):
            try:
                found = np.frombuffer(base64.b64decode(value, validate=True), np.uint8)
            except (binascii.Error, ValueError):
                raise _wrong(where, "base64", value) from None
        else:
            try:
                # msgspec checks the whole list in C, which matters for point clouds.
                listed = msgspec.convert(value, list[kind])
                if kind == float | None:
                    # JSON has no NaN; rosbridge writes null in its place.
                    listed = [math.nan if x is None else x for x in listed]
                if dtype == np.float32:
                    listed = [_single(x, f"{where}[{k}]") for k, x in enumerate(listed)]
                found = np.array(listed, dtype)
            except (msgspec.ValidationError, OverflowError) as error:
                raise PeerError(f"{where}: {shown(error, 2 * MAX_TEXT)}") from None

        if count not in (None, len(found)):
            raise PeerError(f"{where}: expected {count} numbers, found {len(found)}")
        return found

    return read


__all__ = ["FILLER", "Values", "json_of"]
