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
"""Longest quotation of an invalid operation in an error message, characters."""

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
    """Withdrawal of an announcement to publish."""

    topic: Name


class Publish(Operation, tag="publish"):
    """Message that the client publishes."""

    topic: Name
    msg: dict[str, Any] = {}


class Subscribe(Operation, tag="subscribe"):
    """Subscription to a topic.

    The client gets at most one message each `throttle_rate` ms, and `queue_length`
    messages may wait.

    Attributes
    ----------
    topic, type : str
        Name, and expected type; None for any.
    throttle_rate : float or None
        Shortest interval of messages, ms, despite its name.
    queue_length : int or None
        Number of messages that may wait because of `throttle_rate`; 0 drops them.
    fragment_size : int or None
        Longest piece of a message, characters; None for whole messages.
    compression : str or None
        ``none``, ``png``, ``cbor`` or ``cbor-raw``.
    """

    topic: Name
    type: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    throttle_rate: float | None = None
    queue_length: int | None = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None


class Unsubscribe(Operation, tag="unsubscribe"):
    """End of a subscription; without `id`, end of all subscriptions to the topic."""

    topic: Name


class CallService(Operation, tag="call_service"):
    """Service call.

    Attributes
    ----------
    service : str
        Name of the service.
    args : dict, list or None
        Fields of the request, or their values in order.
    timeout : float or None
        Time after which the call fails, s; None or 0 for no limit.
    """

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
    """Goal that the client sends to an action."""

    action: Name
    action_type: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    args: Values = None
    feedback: bool | None = None
    fragment_size: int | None = None
    compression: Annotated[str, Meta(max_length=MAX_ID)] | None = None


class CancelActionGoal(Operation, tag="cancel_action_goal"):
    """Cancellation of the goal that the client has sent with the same `id`."""

    action: Name


class AdvertiseAction(Operation, tag="advertise_action"):
    """Offer of an action by the client."""

    action: Name
    type: Name


class UnadvertiseAction(Operation, tag="unadvertise_action"):
    """End of the offer of an action."""

    action: Name


class ActionFeedback(Operation, tag="action_feedback"):
    """Feedback of the goal that the client has received with the same `id`."""

    action: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    values: Any = None


class ActionResult(Operation, tag="action_result"):
    """Result of the goal with the same `id`: values, or an error text if `result` is false."""

    action: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    # The states of action_msgs/GoalStatus, UNKNOWN (0) to ABORTED (6).
    status: Annotated[int, Meta(ge=0, le=6)] = 0
    result: bool = True
    values: Any = None


class Fragment(Operation, tag="fragment"):
    """Piece of the JSON text of an operation; rosbridge_suite's `total` is a float.

    Attributes
    ----------
    id : str or int
        Id that all fragments of one operation have.
    data : str
        Piece of the text.
    num : int
        Number of the piece, from 0.
    total : float
        Number of pieces.
    """

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
    """Status message of the client about messages that it received."""


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
    """Return a copy of a call or goal without its arguments, to be kept until it is answered.

    The arguments may be large, and are needed only when the request is passed on.

    Parameters
    ----------
    request : CallService or SendActionGoal
        The request. It is not changed.
    """
    return msgspec.structs.replace(request, args=None)


_DECODER: Final[msgspec.json.Decoder[AnyOperation]] = msgspec.json.Decoder(AnyOperation)
_NOT_FINITE: Final = (b"NaN", b"Infinity")


def read_operation(data: bytes) -> AnyOperation:
    """Read an operation.

    NaN and Infinity, which Python's clients write, are accepted as well.

    Parameters
    ----------
    data : bytes
        JSON in UTF-8. Its length must be checked before.

    Raises
    ------
    PeerError
        The data is not an operation, or not JSON.
    """
    try:
        return _DECODER.decode(data)
    # The data is JSON, but not a valid operation.
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
        # Python's reader accepts texts that are not valid Unicode; encoding them raises
        # an error.
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
