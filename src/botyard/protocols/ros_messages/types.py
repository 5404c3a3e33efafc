"""ROS message types: classes, encoding, definitions and MD5 sums.

The library rosbags encodes messages for ROS 1 (its own wire format) and ROS 2 (CDR).
Messages are objects of the ROS 1 classes for all transports: these classes have all
fields of the ROS 2 types, plus ``header.seq``. A message is therefore built once, and
encoded once for each wire
format. Type names are ROS 1 names, such as ``nav_msgs/Odometry``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from botyard.errors import PeerError, WorldError
from botyard.geometry import Pose
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ros_messages.rosidl import add_type, fill_store
from botyard.protocols.ros_messages.servicetypes import ServiceType, service_type
from botyard.protocols.ros_messages.typedefinitions import (
    EXTRA,
    SERVICES,
)
from botyard.protocols.ros_messages.typenames import full

_NUMBERS: Final[Mapping[str, Any]] = {
    "string": str,
    "wstring": str,
    "bool": bool,
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "byte": int,
    "octet": int,
    "char": int,
}


_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "geometry_msgs/msg/Quaternion": {"w": 1.0}
}
"""Default values of fields in ROS 2's definitions, except zero, because rosbags drops them."""
_CDR_ORDERS: Final = (b"\0\0", b"\0\1")
"""Headers of plain CDR: big-endian and little-endian. Source: DDSI-RTPS 2.5, table 10.3."""


LATER_FIELDS: Final[Mapping[str, Mapping[str, float]]] = {
    "sensor_msgs/Range": {"variance": 0.0}
}
"""Fields of numbers that newer distributions of ROS 2 have added to types, with their defaults."""


class Types:
    """All message types.

    Parameters
    ----------
    distro : str
        Distribution of ROS 2.
    more : mapping
        Definitions of further types by name, in the order of dependency.

    Raises
    ------
    WorldError
        The distribution is unknown.
    """

    def __init__(
        self, distro: str = "jazzy", more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        # Imported late, because the import of rosbags takes long, and runs without ROS
        # do not need it.
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        self._one = get_typestore(Stores.ROS1_NOETIC)
        stores = {
            "humble": Stores.ROS2_HUMBLE,
            "jazzy": Stores.ROS2_JAZZY,
            "kilted": Stores.ROS2_KILTED,
            # Older releases of rosbags lack Lyrical; Kilted has the same types as far
            # as they are used here.
            "lyrical": getattr(Stores, "ROS2_LYRICAL", Stores.ROS2_KILTED),
        }
        # Check the name here: a wrong distribution would otherwise only show in
        # unreadable messages.
        if distro not in stores:
            raise WorldError(
                f'ROS 2 distribution: expected one of {", ".join(stores)}, found "{distro}"'
            )

        self.distro = distro
        self._two_store = stores[distro]
        self._two: Any = None
        self._get_typestore = get_typestore
        self._parse = get_types_from_msg
        self._more = dict(more)
        for name, text in (EXTRA | self._more).items():
            add_type(self._one, self._parse, name, text)
        for name, (request, response) in SERVICES.items():
            add_type(self._one, self._parse, f"{name}Request", request)
            add_type(self._one, self._parse, f"{name}Response", response)

        # Keep definitions: each new subscriber needs one, and making it takes long.
        self._definitions: dict[str, tuple[str, str]] = {}

    def learn(self, definitions: Mapping[str, str]) -> None:
        """Register further types: definitions by name, in the order of dependency.

        Parameters
        ----------
        definitions : mapping of str to str
            Texts of definitions in the message language of ROS, by names such as
            ``my_msgs/Reading``. A type that is known with the same fields is skipped.

        Raises
        ------
        WorldError
            A definition is invalid, or differs from a known one of that name.
        """
        for name, text in definitions.items():
            try:
                parsed = self._parse(text + "\n", full(name))
                if full(name) in self._one.types:
                    if dict(self._one.fielddefs[full(name)][1]) != dict(
                        parsed[full(name)][1]
                    ):
                        raise WorldError(
                            f"another ROS message type already has the name {name}"
                        )

                    continue

                self._one.register(parsed)
            except WorldError:
                raise
            except Exception as error:
                # The text is untrusted, and rosbags raises all kinds of exceptions.
                raise WorldError(f"ROS message type {name}: {error!r}"[:300]) from None

            self._more[name] = text
            if self._two is not None:
                add_type(self._two, self._parse, name, text)

    def has_header(self, name: str) -> bool:
        """Return whether messages of a type have a field ``header``.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        return any(field == "header" for field, _ in self._one.fielddefs[full(name)][1])

    def begins_with_header(self, name: str) -> bool:
        """Return whether messages of a type start with a std_msgs/Header.

        In such messages, publishers of ROS 1 set the header's ``seq``.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        return [kind[1] for _, kind in self._one.fielddefs[full(name)][1][:1]] == [
            full("std_msgs/Header")
        ]

    def made(self, name: str, values: Mapping[str, Any]) -> Any:
        """Return a message from values by field name.

        Nested messages are mappings or objects; a `Pose` becomes a geometry_msgs/Pose.

        Parameters
        ----------
        name : str
            Name of the type.
        values : mapping of str to object
            Values of fields. Fields that are left out are zero or empty.

        Raises
        ------
        WorldError
            The type has no such field, or a value does not fit.
        """
        fields = dict(self._one.fielddefs[full(name)][1])
        later = LATER_FIELDS.get(name, {})
        for field in values:
            if field not in fields and field not in later:
                raise WorldError(f'{name} has no field "{field}"')

        filled = {
            field: self._value(kind, values[field])
            if field in values
            else self._zero(kind, self._blank)
            for field, kind in fields.items()
        }
        message = self._one.types[full(name)](**filled)
        # Set newer fields as attributes: ROS 2's encoder reads them, ROS 1's ignores
        # them.
        for field, usual in later.items():
            setattr(message, field, float(values.get(field, usual)))
        return message

    def _value(self, kind: Any, value: Any) -> Any:
        """Return a field's value in the form that rosbags encodes.

        Parameters
        ----------
        kind : object
            Kind of the field, as in `fields`.
        value : object
            Number, text, sequence, mapping, message or `Pose`.

        Raises
        ------
        WorldError
            The value does not fit the kind.
        """
        sort, what = int(kind[0]), kind[1]
        try:
            if sort == 1:
                return _NUMBERS.get(what[0], float)(value)
            if sort == 2:
                # Devices may give their poses in botyard's own type.
                if isinstance(value, Pose):
                    turn = dict(zip("wz", cosine_sine(value.th / 2.0), strict=True))
                    value = {
                        "position": {"x": value.x, "y": value.y},
                        "orientation": turn,
                    }

                return self.made(what, value) if isinstance(value, Mapping) else value

            item, _ = what
            # Arrays of numbers are NumPy arrays in rosbags; arrays of texts are lists.
            if int(item[0]) == 1 and "string" not in item[1][0]:
                kinds = {"byte": "uint8", "octet": "uint8", "char": "uint8"}
                return np.asarray(value, kinds.get(item[1][0], item[1][0]))

            return [self._value(item, one) for one in value]
        except (TypeError, ValueError, OverflowError) as error:
            raise WorldError(
                f"ROS message: expected {what}, found {type(value).__name__}: {error}"
            ) from None

    @property
    def _ros2(self) -> Any:
        """Store of ROS 2 types of rosbags, built on first use."""
        if self._two is None:
            self._two = self._get_typestore(self._two_store)
            fill_store(self._two, self._parse, self.distro, self._more)

        return self._two

    def __getitem__(self, name: str) -> Any:
        """Return the message class of a type, by its ROS 1 name.

        Raises
        ------
        WorldError
            The type is unknown.
        """
        found = self._one.types.get(full(name))
        if found is None:
            raise WorldError(f'no ROS message type "{name}"')
        return found

    def empty(self, name: str) -> Any:
        """Return a message of a type without fields (rosbags adds a placeholder field)."""
        kind = self[name]
        fillers = [f for f in kind.__dataclass_fields__ if not f.startswith("__")]
        return kind(*(0 for _ in fillers))

    def knows(self, name: str) -> bool:
        """Return whether a type is known."""
        return full(name) in self._one.types

    def encode_ros1(self, message: Any, name: str) -> bytes:
        """Return the bytes of a message in ROS 1's format.

        Parameters
        ----------
        message : object
            Message of the ROS 1 classes.
        name : str
            Type of the message.
        """
        return bytes(self._one.serialize_ros1(message, full(name)))

    def decode_ros1(self, data: bytes, name: str) -> Any:
        """Return the message in bytes of ROS 1's format.

        Parameters
        ----------
        data : bytes
            Message without a length in front.
        name : str
            Type of the message.

        Raises
        ------
        PeerError
            The bytes are not of this type.
        """
        return _decoded(
            lambda: self._one.deserialize_ros1(data, full(name)), data, name
        )

    def encode_cdr(self, message: Any, name: str) -> bytes:
        """Return a message as little-endian CDR, with its 4-byte header.

        Parameters
        ----------
        message : object
            Message of the ROS 1 classes, or of a class of `two`.
        name : str
            Type of the message.
        """
        return bytes(self._ros2.serialize_cdr(message, full(name)))

    def decode_cdr(self, data: bytes, name: str) -> Any:
        """Return the message in CDR bytes.

        Parameters
        ----------
        data : bytes
            CDR of either byte order, with its 4-byte header. Bytes behind the message
            are ignored, as in Fast CDR and Cyclone DDS, because rclpy's
            ``serialize_message`` may append unused bytes.
        name : str
            Type of the message.

        Raises
        ------
        PeerError
            The bytes are not of this type.
        """
        return _decoded(lambda: self._from_cdr(data, full(name)), data, name)

    def _from_cdr(self, data: bytes, name: str) -> Any:
        head = bytes(data[:2])
        if head not in _CDR_ORDERS:
            raise ValueError(f"expected a header of plain CDR, found {head.hex(' ')}")
        definition = self._ros2.get_msgdef(name)
        # `deserialize_cdr` refuses more than three bytes behind the message.
        decode = (
            definition.deserialize_cdr_le
            if head == _CDR_ORDERS[1]
            else definition.deserialize_cdr_be
        )
        return decode(data[4:], 0, definition.cls, self._ros2)[0]

    def two(self, name: str) -> Any:
        """Return the class of a type that only ROS 2 has.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        return self._ros2.types[full(name)]

    def fields(self, name: str) -> list[tuple[str, Any]]:
        """Return names and kinds of a ROS 2 type's fields, as rosbags describes them.

        Parameters
        ----------
        name : str
            Name of the type.

        Returns
        -------
        list of (str, tuple)
            Names and kinds. A kind is a pair: 1 base type, 2 message, 3 array or 4
            sequence; and details such as the type's name. Source: rosbags,
            ``Nodetype``.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        return list(self._ros2.fielddefs[full(name)][1])

    def constants(self, name: str) -> list[tuple[str, Any]]:
        """Return names and values of a ROS 2 type's constants.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        return [
            (constant, value)
            for constant, _, value in self._ros2.fielddefs[full(name)][0]
        ]

    def definition2(self, name: str) -> str:
        """Return the full ROS 2 definition of a message, request or response.

        The result is empty for the parts of an action.

        Parameters
        ----------
        name : str
            Name of the type, such as ``std_srvs/srv/Trigger_Request``.

        Returns
        -------
        str
            The definition, followed by the definitions of nested types.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        store = self._ros2
        package, kind, plain = full(name).split("/", 2)
        if kind == "msg":
            return str(store.generate_msgdef(full(name), ros_version=2)[0])
        # Clients get the parts of actions through their services and topics.
        if kind == "action":
            return ""
        as_message = (
            # rosbags generates definitions of messages only, so register the part of a
            # service as a message for a moment.
            f"{package}/msg/{plain}"
        )
        store.fielddefs[as_message] = store.fielddefs[full(name)]
        try:
            return str(store.generate_msgdef(as_message, ros_version=2)[0])
        finally:
            # Remove the entry, so that it is not found as a type of its own.
            del store.fielddefs[as_message]

    def filled(self, name: str, fields: Mapping[str, Any]) -> Any:
        """Return a message of a ROS 2 type with these fields.

        The other fields have the default values of their definitions, as in ROS 2.

        Parameters
        ----------
        name : str
            Name of the type.
        fields : mapping of str to object
            Values of fields. Names that the type does not have are ignored.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        defaults = _DEFAULTS.get(full(name), {})
        return self.two(name)(
            **{
                n: fields[n] if n in fields else defaults.get(n, self._zero(kind))
                for n, kind in self.fields(name)
            }
        )

    def blank(self, name: str) -> Any:
        """Return a message of a ROS 1 type with all fields zero or empty.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        return self._blank(full(name))

    def _blank(self, name: str) -> Any:
        fields = self._one.fielddefs[name][1]
        return self._one.types[name](
            **{field: self._zero(kind, self._blank) for field, kind in fields}
        )

    def _zero(self, kind: Any, filled: Callable[[str], Any] | None = None) -> Any:
        """Return the default value of a field.

        Parameters
        ----------
        kind : object
            Kind of the field, as in `fields`.
        filled : callable, optional
            Makes a nested message from the name of its type; by default a ROS 2
            message.
        """
        sort, what = int(kind[0]), kind[1]
        if sort == 1:
            return {
                "string": "",
                "wstring": "",
                "bool": False,
                "float32": 0.0,
                "float64": 0.0,
            }.get(what[0], 0)

        if sort == 2:
            return self.filled(what, {}) if filled is None else filled(what)
        item, count = what
        count = count if sort == 3 else 0
        if int(item[0]) == 1 and "string" not in item[1][0]:
            return np.zeros(
                count,
                "uint8" if item[1][0] in ("byte", "octet", "char") else item[1][0],
            )

        return [self._zero(item, filled) for _ in range(count)]

    def hash(self, name: str) -> str:
        """Return the ``RIHS01_…`` hash of a ROS 2 message or service type (REP-2011).

        The result is empty for Humble, which has no hashes.

        Parameters
        ----------
        name : str
            Name of the type.

        Raises
        ------
        KeyError
            The type is unknown.
        """
        if self.distro == "humble":
            return ""
        return str(self._ros2.hash_rihs01(full(name)))

    def definition(self, name: str) -> tuple[str, str]:
        """Return the full text of a message's definition, and its MD5 sum (ROS 1).

        Parameters
        ----------
        name : str
            Name of the type.

        Returns
        -------
        tuple of (str, str)
            The text includes the definitions of nested types, as ROS 1's connection
            headers contain it.

        Raises
        ------
        rosbags.typesys.TypesysError
            The type is unknown.
        """
        if name not in self._definitions:
            text, md5 = self._one.generate_msgdef(full(name))
            self._definitions[name] = (text, md5)

        return self._definitions[name]

    def service(self, name: str) -> ServiceType:
        """Return a service type; see `service_type`."""
        return service_type(name, self.definition)


def _decoded(decode: Any, data: bytes, name: str) -> Any:
    """Decode a message; errors of the decoder become a `PeerError`.

    Parameters
    ----------
    decode : callable
        Decodes the bytes.
    data : bytes
        The bytes, for the error text.
    name : str
        The expected type.
    """
    try:
        return decode()
    except Exception as error:
        # rosbags raises many kinds of errors for invalid bytes: IndexError,
        # struct.error, UnicodeDecodeError, AssertionError and others.
        raise PeerError(
            f"expected a message of type {name}, found {len(data)} invalid bytes: {error!r}"[
                :300
            ]
        ) from None


@cache
def types(distro: str = "jazzy") -> Types:
    """Return the types of a distribution, built once.

    Parameters
    ----------
    distro : str
        Distribution of ROS 2. All callers share the result, with types that
        `Types.learn` adds.

    Raises
    ------
    WorldError
        The distribution is unknown.
    """
    return Types(distro)
