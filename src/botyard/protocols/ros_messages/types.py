"""ROS message types: classes, encoding, definitions and MD5 sums.

rosbags encodes them for ROS 1 (its own wire format) and ROS 2 (CDR). Messages are
objects of the ROS 1 classes for all transports: they have all fields of the ROS 2
types, plus ``header.seq``. A message is therefore built once, and encoded once per wire
format. Type names are ROS 1 names, such as ``nav_msgs/Odometry``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from botyard.errors import PeerError, WorldError
from botyard.geometry import Pose
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ros_messages import simulation_interfaces as simulation
from botyard.protocols.ros_messages.typedefinitions import (
    ACTIONS,
    EXTRA,
    ROS1_PACKAGES,
    ROS2_SERVICES,
    SERVICES,
)

_NUMBERS: Final[Mapping[str, Any]] = {
    "string": str,
    "wstring": str,
    "bool": bool,
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "byte": int,
    "octet": int,
    "char": int,
}
_FIELD: Final = re.compile(r"^\s*([A-Za-z][\w/]*)(\[\d*\])?\s+(\w+)\s*(=.*)?$")
_PLAIN: Final = frozenset(
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["bool", "byte", "char", "float32", "float64", "string", "time", "duration"]
)


def full(name: str) -> str:
    """Return the ROS 2 name of a type: ``nav_msgs/Path`` → ``nav_msgs/msg/Path``.

    rosbags uses the same names.
    """
    return name if name.count("/") > 1 else name.replace("/", "/msg/")


def service_name(name: str) -> str:
    """Return a service's ROS 2 name: ``std_srvs/Empty`` → ``std_srvs/srv/Empty``."""
    return name if name.count("/") > 1 else name.replace("/", "/srv/")


def action_name(name: str) -> str:
    """Return an action's ROS 2 name: ``nav2_msgs/Spin`` → ``nav2_msgs/action/Spin``."""
    return name if name.count("/") > 1 else name.replace("/", "/action/")


@dataclass(frozen=True, slots=True)
class ServiceType:
    """Service type.

    Attributes
    ----------
    name : str
        Name, for example ``std_srvs/Empty``.
    request, response : str
        Names of its messages.
    md5 : str
        MD5 sum of its definition (ROS 1).
    """

    name: str
    request: str
    response: str
    md5: str


_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "geometry_msgs/msg/Quaternion": {"w": 1.0}
}
"""Default values in definitions of ROS 2, except zero; rosbags does not keep them."""


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
        # Imported late, because rosbags takes long to import, and runs without ROS do
        # not need it.
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
        # A wrong distribution would only show as unreadable messages.
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
            self._add(self._one, name, text)
        for name, (request, response) in SERVICES.items():
            self._add(self._one, f"{name}Request", request)
            self._add(self._one, f"{name}Response", response)

        # Definitions are needed for each new subscriber, and take long to make.
        self._definitions: dict[str, tuple[str, str]] = {}

    def learn(self, definitions: Mapping[str, str]) -> None:
        """Register further types: definitions by name, in the order of dependency.

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
                self._add(self._two, name, text)

    def has_header(self, name: str) -> bool:
        """Return whether messages of a type have a field ``header``."""
        return any(field == "header" for field, _ in self._one.fielddefs[full(name)][1])

    def begins_with_header(self, name: str) -> bool:
        """Return whether messages of a type start with a std_msgs/Header.

        ROS 1's publishers set its ``seq``.
        """
        return [kind[1] for _, kind in self._one.fielddefs[full(name)][1][:1]] == [
            full("std_msgs/Header")
        ]

    def made(self, name: str, values: Mapping[str, Any]) -> Any:
        """Return a message from values by field name.

        Nested messages are mappings or objects; a `Pose` becomes a geometry_msgs/Pose.

        Raises
        ------
        WorldError
            The type has no such field, or a value does not fit.
        """
        fields = dict(self._one.fielddefs[full(name)][1])
        for field in values:
            if field not in fields:
                raise WorldError(f'{name} has no field "{field}"')

        filled = {
            field: self._value(kind, values[field])
            if field in values
            else self._zero(kind, self._blank)
            for field, kind in fields.items()
        }
        return self._one.types[full(name)](**filled)

    def _value(self, kind: Any, value: Any) -> Any:
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

    def _add(self, store: Any, name: str, text: str) -> None:
        if full(name) not in store.types:
            store.register(self._parse(text + "\n", full(name)))

    @property
    def _ros2(self) -> Any:
        """Store of ROS 2 types, built on first use."""
        if self._two is None:
            store = self._two = self._get_typestore(self._two_store)
            standard, package = simulation.services(self.distro), simulation.PACKAGE
            messages = {
                f"{package}/{name}": text
                for name, text in simulation.messages(self.distro).items()
            }
            for name, text in (EXTRA | self._more | messages).items():
                self._add(store, name, text)
            for name, texts in (
                SERVICES
                | ROS2_SERVICES
                | {f"{package}/{n}": t for n, t in standard.items()}
            ).items():
                if name.split("/")[0] not in ROS1_PACKAGES:
                    self._add_service(store, service_name(name), *texts)

            for name, parts in ACTIONS.items():
                self._add_action(store, action_name(name), *parts)
            # Hashes of types (REP-2011) depend on rosidl's names of kinds.
            for name, (constants, fields) in store.fielddefs.items():
                store.fielddefs[name] = (
                    constants,
                    [(field, _as_rosidl(kind)) for field, kind in fields],
                )

        return self._two

    def _add_service(self, store: Any, name: str, request: str, response: str) -> None:
        """Register a service type as rosidl describes it.

        It has a request, a response, an introspection event, and a type that holds all
        three.
        """
        event = (
            f"service_msgs/ServiceEventInfo info\n{name}_Request[<=1] "
            f"request\n{name}_Response[<=1] response"
        )
        parts = {f"{name}_Request": request, f"{name}_Response": response}
        # Humble has no introspection of services.
        if "service_msgs/msg/ServiceEventInfo" in store.types:
            parts[f"{name}_Event"] = event
            parts[name] = (
                f"{name}_Request request_message\n{name}_Response "
                f"response_message\n{name}_Event event_message"
            )

        for part, text in parts.items():
            ((constants, fields),) = self._parse(text + "\n", part).values()
            store.register(
                {
                    part: (
                        constants,
                        [(field, _as_rosidl(kind)) for field, kind in fields],
                    )
                }
            )

    def _add_action(
        self, store: Any, name: str, goal: str, result: str, feedback: str
    ) -> None:
        """Register an action type as rosidl describes it.

        It has three parts, two services, and the message of its feedback.
        """
        uuid = "unique_identifier_msgs/UUID goal_id"
        for part, text in (("Goal", goal), ("Result", result), ("Feedback", feedback)):
            self._add(store, f"{name}_{part}", text)
        accepted = "bool accepted\nbuiltin_interfaces/Time stamp"
        self._add_service(
            store, f"{name}_SendGoal", f"{uuid}\n{name}_Goal goal", accepted
        )
        self._add_service(
            store, f"{name}_GetResult", uuid, f"int8 status\n{name}_Result result"
        )
        self._add(store, f"{name}_FeedbackMessage", f"{uuid}\n{name}_Feedback feedback")

    def __getitem__(self, name: str) -> Any:
        """Return the class of a type.

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
        """Return the bytes of a message in ROS 1's format."""
        return bytes(self._one.serialize_ros1(message, full(name)))

    def decode_ros1(self, data: bytes, name: str) -> Any:
        """Return the message in bytes of ROS 1's format.

        Raises
        ------
        PeerError
            The bytes are not of this type.
        """
        return _decoded(
            lambda: self._one.deserialize_ros1(data, full(name)), data, name
        )

    def encode_cdr(self, message: Any, name: str) -> bytes:
        """Return a message as little-endian CDR, with its 4-byte header."""
        return bytes(self._ros2.serialize_cdr(message, full(name)))

    def decode_cdr(self, data: bytes, name: str) -> Any:
        """Return the message in CDR bytes.

        Raises
        ------
        PeerError
            The bytes are not of this type.
        """
        return _decoded(
            lambda: self._ros2.deserialize_cdr(data, full(name)), data, name
        )

    def two(self, name: str) -> Any:
        """Return the class of a type that only ROS 2 has; KeyError if it is unknown."""
        return self._ros2.types[full(name)]

    def fields(self, name: str) -> list[tuple[str, Any]]:
        """Return names and kinds of a ROS 2 type's fields, as rosbags describes them."""
        return list(self._ros2.fielddefs[full(name)][1])

    def constants(self, name: str) -> list[tuple[str, Any]]:
        """Return names and values of a ROS 2 type's constants, or raise KeyError."""
        return [
            (constant, value)
            for constant, _, value in self._ros2.fielddefs[full(name)][0]
        ]

    def definition2(self, name: str) -> str:
        """Return the full ROS 2 definition of a message, request or response.

        It is empty for parts of actions.

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
            # rosbags generates definitions of messages only.
            f"{package}/msg/{plain}"
        )
        store.fielddefs[as_message] = store.fielddefs[full(name)]
        try:
            return str(store.generate_msgdef(as_message, ros_version=2)[0])
        finally:
            # The temporary entry must not be seen as a type of its own.
            del store.fielddefs[as_message]

    def filled(self, name: str, fields: Mapping[str, Any]) -> Any:
        """Return a message of a ROS 2 type with these fields.

        The others have the default values of their definitions, as in ROS 2.
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

        Kinds are numbered as in `fields`: 1 base, 2 message, 3 array, 4 sequence.
        `filled` makes nested messages; without it they are ROS 2 messages.
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

        It is empty for Humble, which has no hashes.
        """
        if self.distro == "humble":
            return ""
        return str(self._ros2.hash_rihs01(full(name)))

    def definition(self, name: str) -> tuple[str, str]:
        """Return the full text of a message's definition, and its MD5 sum (ROS 1)."""
        if name not in self._definitions:
            text, md5 = self._one.generate_msgdef(full(name))
            self._definitions[name] = (text, md5)

        return self._definitions[name]

    def service(self, name: str) -> ServiceType:
        """Return a service type by its name; KeyError if it is unknown."""
        request, response = SERVICES[name]
        text = self._md5_text(request) + self._md5_text(response)
        return ServiceType(
            name,
            f"{name}Request",
            f"{name}Response",
            hashlib.md5(text.encode()).hexdigest(),
        )

    def _md5_text(self, text: str) -> str:
        """Return the text that is hashed for a service's MD5 sum.

        Message types are replaced by their own sums, as in ROS 1's gentools.
        """
        lines = []
        for line in text.split("\n"):
            match = _FIELD.match(line)
            # Comments and blank lines are not part of the sum.
            if match is None:
                continue
            kind, array, field, _ = match.groups()
            lines.append(
                f"{kind}{array or ''} {field}"
                if kind in _PLAIN
                else f"{self.definition(kind)[1]} {field}"
            )

        return "\n".join(lines)


def _as_rosidl(kind: Any) -> Any:
    """Return a field's kind as rosidl hashes it.

    ``char`` is ``uint8``, and messages of services are not in ``msg``.
    """
    if isinstance(kind, tuple):
        if kind and kind[0] == "char":
            return ("uint8", *kind[1:])
        return tuple(_as_rosidl(part) for part in kind)

    return kind.replace("/srv/msg/", "/srv/") if isinstance(kind, str) else kind


def _decoded(decode: Any, data: bytes, name: str) -> Any:
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

    Raises
    ------
    WorldError
        The distribution is unknown.
    """
    return Types(distro)
