"""Operations of rosbridge v2 that clients send, read from JSON.

Source: ROSBRIDGE_PROTOCOL.md, section 3.
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
"""Longest throttle interval of a subscription, ms."""
MAX_TEXT: Final = 200
"""Longest part of an invalid operation in a message, characters."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
# Libraries use texts or counters, and some of them write counters as floats.
Id = Annotated[str, Meta(max_length=MAX_ID)] | int | float | None
Values = dict[str, Any] | list[Any] | None


class Operation(Struct, tag_field="op", kw_only=True):
    """Fields of all operations; answers repeat `id`, and unknown fields are ignored."""

    id: Id = None


class Advertise(Operation, tag="advertise"):
    """Announcement that the client is going to publish."""

    topic: Name
    type: Name
    latch: bool | None = None


class Unadvertise(Operation, tag="unadvertise"):
    """End of an announcement to publish."""

    topic: Name


class Publish(Operation, tag="publish"):
    """Message of a topic."""

    topic: Name
    msg: dict[str, Any] = {}


class Subscribe(Operation, tag="subscribe"):
    """Subscription to a topic.

    The client gets at most one message each `throttle_rate` ms, and `queue_length`
    messages may wait.
    """

    topic: Name
    type: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    throttle_rate: float | None = None
    queue_length: int | None = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None


class Unsubscribe(Operation, tag="unsubscribe"):
    """End of a subscription; without `id`, of all to the topic."""

    topic: Name


class CallService(Operation, tag="call_service"):
    """Service call."""

    service: Name
    args: Values = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None
    timeout: float | None = None


class AdvertiseService(Operation, tag="advertise_service"):
    """Offer of a service by the client."""

    service: Name
    type: Name


class UnadvertiseService(Operation, tag="unadvertise_service"):
    """End of the offer of a service."""

    service: Name


class ServiceResponse(Operation, tag="service_response"):
    """Response to a service call: values, or an error text if `result` is false."""

    service: Name
    result: bool = True
    values: Any = None


class SendActionGoal(Operation, tag="send_action_goal"):
    """Goal of an action."""

    action: Name
    action_type: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    args: Values = None
    feedback: bool | None = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None


class CancelActionGoal(Operation, tag="cancel_action_goal"):
    """Cancellation of the goal with this id."""

    action: Name


class AdvertiseAction(Operation, tag="advertise_action"):
    """Offer of an action by the client."""

    action: Name
    type: Name


class UnadvertiseAction(Operation, tag="unadvertise_action"):
    """End of the offer of an action."""

    action: Name


class ActionFeedback(Operation, tag="action_feedback"):
    """Feedback of the goal with this id."""

    action: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    values: Any = None


class ActionResult(Operation, tag="action_result"):
    """Result of the goal with this id: values, or an error text if `result` is false."""

    action: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    # The states of action_msgs/GoalStatus, UNKNOWN (0) to ABORTED (6).
    status: Annotated[int, Meta(ge=0, le=6)] = 0
    result: bool = True
    values: Any = None


class Fragment(Operation, tag="fragment"):
    """Piece of the JSON text of an operation; rosbridge's own `total` is a float."""

    id: Annotated[str, Meta(max_length=MAX_ID)] | int
    data: str
    num: int
    total: float


class SetLevel(Operation, tag="set_level"):
    """Lowest level of the status messages that the client gets."""

    level: str | None = None


class Auth(Operation, tag="auth"):
    """Authentication of rosauth for ROS 1 servers, which is ignored.

    botyard uses a token in the address instead.
    """


class Status(Operation, tag="status"):
    """Status message of the client about sent messages."""


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


def kept(request: W) -> W:
    """Return a call or goal without its arguments, to be kept until it is answered.

    The arguments are passed on, and may be large.
    """
    return msgspec.structs.replace(request, args=None)


_DECODER: Final[msgspec.json.Decoder[AnyOperation]] = msgspec.json.Decoder(AnyOperation)
_NOT_FINITE: Final = (b"NaN", b"Infinity")


def read_operation(data: bytes) -> AnyOperation:
    """Read an operation.

    NaN and Infinity, which Python's clients write, are accepted as well.

    Raises
    ------
    PeerError
        The data is not an operation, or not JSON.
    """
    try:
        return _DECODER.decode(data)
    # It is JSON, but not a valid operation.
    except msgspec.ValidationError as error:
        raise PeerError(f"rosbridge: {shown(error, MAX_TEXT)}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        if not any(word in data for word in _NOT_FINITE):
            raise PeerError(
                f"rosbridge: expected JSON: {shown(error, MAX_TEXT)}"
            ) from None

    try:
        # Python's reader accepts NaN and Infinity, which msgspec refuses.
        found = json.loads(data)
        # Finds texts that are not valid Unicode, which only Python's reader accepts.
        msgspec.json.encode(found)
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
