"""Operations of the rosbridge protocol v2 that clients send (ROSBRIDGE_PROTOCOL.md,
section 3), read from JSON.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from botyard.errors import PeerError
from botyard.names import shown

MAX_NAME: Final = 256
"""Longest name of a topic, service, action or type, characters."""
MAX_ID: Final = 256
"""Longest id of an operation, characters."""
MAX_QUEUE: Final = 100
"""Longest queue of a subscription, messages."""
MAX_THROTTLE_MS: Final = 3_600_000
"""Longest throttling of a subscription, ms."""
MAX_TEXT: Final = 200
"""Longest part of a wrong operation in a message, characters."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Id = Annotated[str, Meta(max_length=MAX_ID)] | int | float | None
Values = dict[str, Any] | list[Any] | None


class Operation(Struct, tag_field="op", kw_only=True):
    """What all have. `id` is repeated in what answers; unknown fields are passed over."""

    id: Id = None


class Advertise(Operation, tag="advertise"):
    """The client is going to publish."""

    topic: Name
    type: Name
    latch: bool | None = None


class Unadvertise(Operation, tag="unadvertise"):
    """It will not any more."""

    topic: Name


class Publish(Operation, tag="publish"):
    """A message."""

    topic: Name
    msg: dict[str, Any] = {}


class Subscribe(Operation, tag="subscribe"):
    """The client wants messages of a topic: at most one each `throttle_rate` ms,
    `queue_length` of them waiting.
    """

    topic: Name
    type: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    throttle_rate: float | None = None
    queue_length: int | None = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None


class Unsubscribe(Operation, tag="unsubscribe"):
    """It wants no more; without `id` this ends all of its subscriptions of the topic."""

    topic: Name


class CallService(Operation, tag="call_service"):
    """A request."""

    service: Name
    args: Values = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None
    timeout: float | None = None


class AdvertiseService(Operation, tag="advertise_service"):
    """The client answers requests."""

    service: Name
    type: Name


class UnadvertiseService(Operation, tag="unadvertise_service"):
    """It does not any more."""

    service: Name


class ServiceResponse(Operation, tag="service_response"):
    """It has answered: values; or, if `result` is false, a text that says why not."""

    service: Name
    result: bool = True
    values: Any = None


class SendActionGoal(Operation, tag="send_action_goal"):
    """A goal of an action."""

    action: Name
    action_type: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    args: Values = None
    feedback: bool | None = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None


class CancelActionGoal(Operation, tag="cancel_action_goal"):
    """Cancel the goal of this id."""

    action: Name


class AdvertiseAction(Operation, tag="advertise_action"):
    """The client serves an action."""

    action: Name
    type: Name


class UnadvertiseAction(Operation, tag="unadvertise_action"):
    """It does not any more."""

    action: Name


class ActionFeedback(Operation, tag="action_feedback"):
    """How far the client is with the goal of this id."""

    action: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    values: Any = None


class ActionResult(Operation, tag="action_result"):
    """It has ended the goal of this id: values; or, if `result` is false, a text that
    says why there are none.
    """

    action: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    status: Annotated[int, Meta(ge=0, le=6)] = 0
    result: bool = True
    values: Any = None


class Fragment(Operation, tag="fragment"):
    """A piece of the JSON text of an operation. rosbridge's own `total` is a float."""

    id: Annotated[str, Meta(max_length=MAX_ID)] | int
    data: str
    num: int
    total: float


class SetLevel(Operation, tag="set_level"):
    """From which level on the client wants status messages."""

    level: str | None = None


class Auth(Operation, tag="auth"):
    """Of rosauth, for servers of ROS 1: taken and ignored; a token in the address is
    our way.
    """


class Status(Operation, tag="status"):
    """What the client says of what we sent."""


AnyOperation = (
    Advertise
    | Unadvertise
    | Publish
    | Subscribe
    | Unsubscribe
    | CallService
    | AdvertiseService
    | UnadvertiseService
    | ServiceResponse
    | SendActionGoal
    | CancelActionGoal
    | AdvertiseAction
    | UnadvertiseAction
    | ActionFeedback
    | ActionResult
    | Fragment
    | SetLevel
    | Auth
    | Status
)

W = TypeVar("W", CallService, SendActionGoal)


def kept(wish: W) -> W:
    """What is kept of a call or goal until it is answered: not its arguments, which are
    handed on.
    """
    return msgspec.structs.replace(wish, args=None)


_DECODER: Final[msgspec.json.Decoder[AnyOperation]] = msgspec.json.Decoder(AnyOperation)
_NOT_FINITE: Final = (b"NaN", b"Infinity")


def read_operation(data: bytes) -> AnyOperation:
    """Read an operation; NaN and Infinity, which Python's clients write, are taken as
    well.

    Raises
    ------
    PeerError
        It is none, or not JSON.
    """
    try:
        return _DECODER.decode(data)
    except msgspec.ValidationError as error:  # it is JSON
        raise PeerError(f"rosbridge: {shown(error, MAX_TEXT)}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        if not any(word in data for word in _NOT_FINITE):
            raise PeerError(
                f"rosbridge: expected JSON: {shown(error, MAX_TEXT)}"
            ) from None

    try:
        found = json.loads(data)
        msgspec.json.encode(
            found
        )  # finds texts that are no Unicode, which only Python's reader takes
        operation: AnyOperation = msgspec.convert(found, AnyOperation)
        return operation
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise PeerError(
            f"rosbridge: expected an operation in JSON: {shown(error, MAX_TEXT)}"
        ) from None


__all__ = [
    "ActionFeedback",
    "ActionResult",
    "Advertise",
    "AdvertiseAction",
    "AdvertiseService",
    "AnyOperation",
    "Auth",
    "CallService",
    "CancelActionGoal",
    "Fragment",
    "Operation",
    "Publish",
    "SendActionGoal",
    "ServiceResponse",
    "SetLevel",
    "Status",
    "Subscribe",
    "Unadvertise",
    "UnadvertiseAction",
    "UnadvertiseService",
    "Unsubscribe",
    "kept",
    "read_operation",
]
