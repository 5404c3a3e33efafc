"""What Foxglove's protocol sends: operations as JSON, and binary messages
(foxglove/ws-protocol, docs/spec.md).

Binary messages begin with an opcode of one byte; numbers are little-endian. Unknown
fields of JSON are ignored, as the specification asks.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from botyard.errors import PeerError
from botyard.names import shown

MESSAGE_DATA: Final = 1
"""Server: opcode, subscription id (uint32), time (uint64, ns), payload. Client: opcode,
channel id (uint32), payload.
"""
TIME: Final = 2
"""Server: opcode, time (uint64, ns)."""
SERVICE_CALL: Final = 2
"""Client: opcode, service id (uint32), call id (uint32), length of the encoding's name
(uint32), the name, payload.
"""
SERVICE_RESPONSE: Final = 3
"""Server: as `SERVICE_CALL`."""
_U32: Final = 2**32
_DATA: Final = struct.Struct("<BIQ")
_TIME: Final = struct.Struct("<BQ")
_CALL: Final = struct.Struct("<BIII")
_CHANNEL: Final = struct.Struct("<BI")


MAX_NAME: Final = 256
"""Longest name of a topic, encoding, schema or parameter, and longest id, characters.
"""
MAX_URI: Final = 2000
"""Longest address of an asset, characters."""

Name = Annotated[str, Meta(max_length=MAX_NAME)]


class Operation(msgspec.Struct, tag_field="op", rename="camel"):
    """An operation in JSON."""


class SubscriptionRequest(msgspec.Struct, rename="camel"):
    """A subscription: the client's id of it, and the channel."""

    id: int
    channel_id: int


class Subscribe(Operation, tag="subscribe"):
    """Subscribe to channels."""

    subscriptions: list[SubscriptionRequest]


class Unsubscribe(Operation, tag="unsubscribe"):
    """End subscriptions."""

    subscription_ids: list[int]


class ClientChannel(msgspec.Struct, rename="camel"):
    """A topic that a client publishes; its schema is the topic's, whatever text the
    client sends.
    """

    id: int
    topic: Name
    encoding: Name
    schema_name: Name


class Advertise(Operation, tag="advertise"):
    """The client is going to publish."""

    channels: list[ClientChannel]


class Unadvertise(Operation, tag="unadvertise"):
    """It does not publish any more."""

    channel_ids: list[int]


class GetParameters(Operation, tag="getParameters"):
    """Ask for parameters; without names: all."""

    parameter_names: list[Name] = []
    id: Name | None = None


class Parameter(msgspec.Struct, omit_defaults=True):
    """A parameter. `type` is ``float64`` for numbers that JSON would show as integers."""

    name: Name
    value: Any = None
    type: Name | None = None


class SetParameters(Operation, tag="setParameters"):
    """Set parameters."""

    parameters: list[Parameter]
    id: Name | None = None


class SubscribeParameters(Operation, tag="subscribeParameterUpdates"):
    """Get parameters when they change; without names: all."""

    parameter_names: list[Name] = []


class UnsubscribeParameters(Operation, tag="unsubscribeParameterUpdates"):
    """Not any more; without names: none."""

    parameter_names: list[Name] = []


class SubscribeGraph(Operation, tag="subscribeConnectionGraph"):
    """Get who publishes, subscribes and serves what."""


class UnsubscribeGraph(Operation, tag="unsubscribeConnectionGraph"):
    """Not any more."""


class FetchAsset(Operation, tag="fetchAsset"):
    """Ask for a file; the server announces no such capability."""

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
    """A message that a client publishes."""

    channel: int
    payload: bytes


class ServiceCall(msgspec.Struct):
    """A client calls a service."""

    service: int
    call: int
    encoding: str
    payload: bytes


class Schema(msgspec.Struct, rename="camel"):
    """A request's or response's encoding and schema."""

    encoding: str
    schema_name: str
    schema_encoding: str
    schema: str


class Channel(msgspec.Struct, rename="camel"):
    """A topic of the server."""

    id: int
    topic: str
    encoding: str
    schema_name: str
    schema: str
    schema_encoding: str


class Service(msgspec.Struct, rename="camel"):
    """A service of the server. `request_schema` and `response_schema` are what older
    clients read.
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
    """Read an operation in JSON.

    Raises
    ------
    PeerError
        It is not one.
    """
    try:
        found: AnyOperation = _operations.decode(data)
        return found
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"foxglove: {shown(error, 200)}") from None


def read_binary(data: bytes) -> ClientMessage | ServiceCall:
    """Read a binary message of a client.

    Raises
    ------
    PeerError
        It is not one.
    """
    kind = data[0] if data else 0
    if kind == MESSAGE_DATA and len(data) >= _CHANNEL.size:
        return ClientMessage(_CHANNEL.unpack_from(data)[1], data[_CHANNEL.size :])
    if kind == SERVICE_CALL and len(data) >= _CALL.size:
        _, service, call, length = _CALL.unpack_from(data)
        end = _CALL.size + length
        if end <= len(data):
            return ServiceCall(
                service,
                call,
                data[_CALL.size : end].decode("utf-8", "replace"),
                data[end:],
            )

    raise PeerError(
        "foxglove: expected a message or a service call, found "
        f"{shown(data[:16].hex())} ({len(data)} bytes)"
    )


def text_of(operation: str, **fields: Any) -> str:
    """An operation of the server as JSON."""
    return msgspec.json.encode({"op": operation, **fields}).decode()


def message_head(subscription: int, time_ns: int) -> bytes:
    """What stands before the payload of a message."""
    return _DATA.pack(MESSAGE_DATA, subscription, time_ns)


def time_message(time_ns: int) -> bytes:
    """The server's time."""
    return _TIME.pack(TIME, time_ns)


def service_response(call: ServiceCall, encoding: str, payload: bytes) -> bytes:
    """The response to a call."""
    name = encoding.encode()
    return (
        _CALL.pack(SERVICE_RESPONSE, call.service, call.call, len(name))
        + name
        + payload
    )


def is_id(number: int) -> bool:
    """Whether it fits into an id of the binary messages (uint32)."""
    return 0 <= number < _U32
