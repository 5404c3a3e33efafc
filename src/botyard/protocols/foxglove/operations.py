"""Operations and binary messages of Foxglove's protocol.

Operations are JSON. Binary messages start with an opcode of one byte; numbers are
little-endian. Unknown fields of JSON are ignored, as the specification demands. Source:
foxglove/ws-protocol, docs/spec.md.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from botyard.errors import PeerError
from botyard.names import shown

MESSAGE_DATA: Final = 1
"""Opcode of a message of a topic.

Layout from the server: opcode, subscription id (uint32), time (uint64, ns), payload.
Layout from a client: opcode, channel id (uint32), payload.
"""
TIME: Final = 2
"""Opcode of a message with the server's time. Layout: opcode, time (uint64, ns)."""
SERVICE_CALL: Final = 2
"""Opcode of a client's service call.

Layout: opcode, service id (uint32), call id (uint32), length of the encoding's name
(uint32), the name, payload.
"""
SERVICE_RESPONSE: Final = 3
"""Opcode of the server's response to a call, with the same layout as `SERVICE_CALL`."""
_U32: Final = 2**32
_DATA: Final = struct.Struct("<BIQ")
_TIME: Final = struct.Struct("<BQ")
_CALL: Final = struct.Struct("<BIII")
_CHANNEL: Final = struct.Struct("<BI")


MAX_NAME: Final = 256
"""Longest name of a topic, encoding, schema or parameter, and longest id, characters."""
MAX_URI: Final = 2000
"""Longest address of an asset, characters."""

Name = Annotated[str, Meta(max_length=MAX_NAME)]


class Operation(msgspec.Struct, tag_field="op", rename="camel"):
    """Operation of the protocol that a client sends as JSON."""


class SubscriptionRequest(msgspec.Struct, rename="camel"):
    """Subscription that a client requests: an id of its choice, and the channel.

    Attributes
    ----------
    id : int
        Number that the client chooses; messages of the server carry it (uint32).
    channel_id : int
        Id of a `Channel`.
    """

    id: int
    channel_id: int


class Subscribe(Operation, tag="subscribe"):
    """Operation: subscribe to channels."""

    subscriptions: list[SubscriptionRequest]


class Unsubscribe(Operation, tag="unsubscribe"):
    """Operation: end subscriptions."""

    subscription_ids: list[int]


class ClientChannel(msgspec.Struct, rename="camel"):
    """Topic that a client publishes.

    The schema follows from the type; a schema text of the client is ignored.

    Attributes
    ----------
    id : int
        Number that the client chooses; its messages carry it.
    topic : str
        Absolute ROS name.
    encoding : str
        ``cdr`` or ``json``.
    schema_name : str
        Name of the type.
    """

    id: int
    topic: Name
    encoding: Name
    schema_name: Name


class Advertise(Operation, tag="advertise"):
    """Operation: announce topics that the client is going to publish."""

    channels: list[ClientChannel]


class Unadvertise(Operation, tag="unadvertise"):
    """Operation: end announcements of `Advertise`."""

    channel_ids: list[int]


class GetParameters(Operation, tag="getParameters"):
    """Operation: request the values of parameters; without names, of all parameters."""

    parameter_names: list[Name] = []
    id: Name | None = None


class Parameter(msgspec.Struct, omit_defaults=True):
    """Name and value of a parameter; `type` is ``float64`` for numbers that JSON would
    show as integers.
    """

    name: Name
    value: Any = None
    type: Name | None = None


class SetParameters(Operation, tag="setParameters"):
    """Operation: set parameters."""

    parameters: list[Parameter]
    id: Name | None = None


class SubscribeParameters(Operation, tag="subscribeParameterUpdates"):
    """Operation: subscribe to changes of parameters; without names, of all parameters."""

    parameter_names: list[Name] = []


class UnsubscribeParameters(Operation, tag="unsubscribeParameterUpdates"):
    """Operation: end subscriptions to parameters; without names, all of them."""

    parameter_names: list[Name] = []


class SubscribeGraph(Operation, tag="subscribeConnectionGraph"):
    """Operation: subscribe to the graph of publishers, subscribers and services."""


class UnsubscribeGraph(Operation, tag="unsubscribeConnectionGraph"):
    """Operation: end the subscription to the graph."""


# The server offers no files. The operation is declared so that a client that requests a
# file gets this reason, instead of a parse error.
class FetchAsset(Operation, tag="fetchAsset"):
    """Operation: request a file; this server refuses it and does not announce ``assets``."""

    uri: Annotated[str, Meta(max_length=MAX_URI)] = ""
    request_id: int = 0


AnyOperation = (
    Subscribe
    | Unsubscribe
    | Advertise
    | Unadvertise
    | GetParameters
    | SetParameters
    | SubscribeParameters
    | UnsubscribeParameters
    | SubscribeGraph
    | UnsubscribeGraph
    | FetchAsset
)


class ClientMessage(msgspec.Struct):
    """Message that a client publishes.

    Attributes
    ----------
    channel : int
        Id of the advertised channel.
    payload : bytes
        Message in the channel's encoding.
    """

    channel: int
    payload: bytes


class ServiceCall(msgspec.Struct):
    """Service call of a client.

    Attributes
    ----------
    service : int
        Id of a `Service`.
    call : int
        Number that the client chooses; the response repeats it.
    encoding : str
        ``cdr`` or ``json``.
    payload : bytes
        Request in the encoding.
    """

    service: int
    call: int
    encoding: str
    payload: bytes


class Schema(msgspec.Struct, rename="camel"):
    """Encoding and schema of a service's request or response."""

    encoding: str
    schema_name: str
    schema_encoding: str
    schema: str


class Channel(msgspec.Struct, rename="camel"):
    """Topic that the server offers to clients."""

    id: int
    topic: str
    encoding: str
    schema_name: str
    schema: str
    schema_encoding: str


class Service(msgspec.Struct, rename="camel"):
    """Service that the server offers to clients.

    `request_schema` and `response_schema` are for older clients.
    """

    id: int
    name: str
    type: str
    request: Schema
    response: Schema
    request_schema: str
    response_schema: str


_operations: Final = msgspec.json.Decoder(AnyOperation)


def read_text(data: bytes) -> AnyOperation:
    """Return an operation from JSON.

    Parameters
    ----------
    data : bytes
        UTF-8. Names are at most `MAX_NAME` characters.

    Raises
    ------
    PeerError
        The data is not a valid operation.
    """
    try:
        found: AnyOperation = _operations.decode(data)
        return found
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"foxglove: {shown(error, 200)}") from None


def read_binary(data: bytes) -> ClientMessage | ServiceCall:
    """Return the binary message of a client.

    Parameters
    ----------
    data : bytes
        Message with its opcode.

    Returns
    -------
    ClientMessage or ServiceCall
        The payload is a copy, in the encoding that the channel or the call names.

    Raises
    ------
    PeerError
        The data is not a valid message.
    """
    kind = data[0] if data else 0
    # Each layout is checked for its length before it is unpacked.
    if kind == MESSAGE_DATA and len(data) >= _CHANNEL.size:
        return ClientMessage(_CHANNEL.unpack_from(data)[1], data[_CHANNEL.size :])
    if kind == SERVICE_CALL and len(data) >= _CALL.size:
        _, service, call, length = _CALL.unpack_from(data)
        end = _CALL.size + length
        # The length comes from the client, so it is checked against the message.
        if end <= len(data):
            return ServiceCall(
                service,
                call,
                # Accept an invalid name here: the call is refused later, with an
                # answer.
                data[_CALL.size : end].decode("utf-8", "replace"),
                data[end:],
            )

    raise PeerError(
        "foxglove: expected a binary message with the opcode 1 (message) or 2 (service "
        f"call) and complete fields, found {shown(data[:16].hex())} ({len(data)} bytes)"
    )


def text_of(operation: str, **fields: Any) -> str:
    """Return an operation of the server as JSON.

    Parameters
    ----------
    operation : str
        Value of ``op``, such as ``advertise``.
    **fields : object
        Further fields, with the names of the specification.
    """
    return msgspec.json.encode({"op": operation, **fields}).decode()


def message_head(subscription: int, time_ns: int) -> bytes:
    """Return the bytes before the payload of a message.

    Parameters
    ----------
    subscription : int
        Id that the client has chosen for its subscription, uint32; see `is_id`.
    time_ns : int
        Time of the message, ns.

    Returns
    -------
    bytes
        13 bytes; see `MESSAGE_DATA`.
    """
    return _DATA.pack(MESSAGE_DATA, subscription, time_ns)


def time_message(time_ns: int) -> bytes:
    """Return the message with the server's time.

    Parameters
    ----------
    time_ns : int
        Present time, ns.
    """
    return _TIME.pack(TIME, time_ns)


def service_response(call: ServiceCall, encoding: str, payload: bytes) -> bytes:
    """Return the binary message with the response to a service call.

    Parameters
    ----------
    call : ServiceCall
        The call, whose ids the response repeats.
    encoding : str
        Encoding of the response.
    payload : bytes
        Response in this encoding.
    """
    name = encoding.encode()
    return (
        _CALL.pack(SERVICE_RESPONSE, call.service, call.call, len(name))
        + name
        + payload
    )


def is_id(number: int) -> bool:
    """Return whether a number fits into an id of the binary messages (uint32)."""
    return 0 <= number < _U32


class Level(IntEnum):
    """Levels of status messages, by severity."""

    INFO = 0
    WARNING = 1
    ERROR = 2


__all__ = ["Level"]
