"""Server side of a ROS 2 action: three services and two topics, for any transport.

The module has no transport and no clock of its own, and no call
blocks. States and endpoints:
https://design.ros2.org/articles/actions.html; messages: action_msgs.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import Any, Final

import numpy as np

from botyard.errors import BotyardError, PeerError
from botyard.names import shown
from botyard.protocols.ros_messages.graphoffers import Service, Topic
from botyard.protocols.ros_messages.limits import MAX_TEXT
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.typenames import action_name
from botyard.protocols.ros_messages.types import Types
from botyard.protocols.tokenbucket import TokenBucket

RESULT_TIMEOUT_S: Final = 900.0
"""Wall time for which the result of an ended goal is kept, s.

rcl keeps results for 15 minutes up to Iron, and for 10 s in later distributions.
"""
MAX_ACTIVE_GOALS: Final = 10
"""Limit of a server's unfinished goals; further goals are rejected."""
# Ended goals are kept for minutes, so busy clients would otherwise fill the memory.
MAX_GOALS: Final = 100
"""Limit of the goals that a server keeps; the oldest ended goal is dropped first."""
MAX_RESULT_REQUESTS: Final = 10
"""Limit of waiting requests for one result; further requests get no answer."""
FEEDBACK_RATE: Final = 100.0
"""Limit of a server's sustained rate of feedback, messages per second of wall time."""
FEEDBACK_BURST: Final = 8
"""Number of feedback messages that may be published at once.

Together with the last feedback of a goal, these messages fit into a subscriber's queue
of ten messages, the default of rclpy and rclcpp.
"""
UUID_BYTES: Final = 16
_NO_UUID: Final = bytes(UUID_BYTES)
_NO_STAMP: Final = Stamp(0, 0)

log = logging.getLogger("botyard.ros")


class Status(IntEnum):
    """States of a goal (action_msgs/GoalStatus)."""

    UNKNOWN = 0
    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6


class CancelCode(IntEnum):
    """Answers to a request to cancel (action_msgs/CancelGoal)."""

    NONE = 0
    UNKNOWN_GOAL_ID = 2
    GOAL_TERMINATED = 3


class Goal:
    """Accepted goal; made by `ActionServer`.

    Parameters
    ----------
    server : ActionServer
        Server of the action.
    identifier : bytes
        UUID that the client chose, 16 bytes.
    stamp : Stamp
        Time of acceptance.
    request : object
        The goal's message.

    Attributes
    ----------
    identifier : bytes
        UUID that the client chose, 16 bytes.
    stamp : Stamp
        Time of acceptance.
    request : object
        The goal's message.
    status : Status
        Present state of the goal.
    """

    def __init__(
        self, server: ActionServer, identifier: bytes, stamp: Stamp, request: Any
    ) -> None:
        self.identifier = identifier
        self.stamp = stamp
        self.request = request
        self.status = Status.ACCEPTED
        self._server = server
        self._result: Any = None
        self._ended = 0.0
        self._waiting: list[Future[Any]] = []
        self._unsent: dict[str, Any] | None = None

    @property
    def is_active(self) -> bool:
        """Whether the goal has not ended."""
        return self.status in (Status.ACCEPTED, Status.EXECUTING, Status.CANCELING)

    @property
    def is_canceling(self) -> bool:
        """Whether a client has requested to cancel the goal."""
        return self.status is Status.CANCELING

    def feedback(self, **fields: Any) -> None:
        """Publish feedback; ignored after the goal has ended.

        If feedback comes faster than `FEEDBACK_RATE`, some is dropped, but never the
        last feedback of a goal.

        Parameters
        ----------
        **fields : object
            Fields of the action's feedback. Fields that are left out keep their
            defaults.
        """
        if self.is_active:
            is_sent = self._server.publish_feedback(self, fields)
            self._unsent = None if is_sent else fields

    def end(self, status: Status, **fields: Any) -> None:
        """End the goal as succeeded, aborted or canceled, with a result.

        Only the first call counts.

        Parameters
        ----------
        status : Status
            ``SUCCEEDED``, ``CANCELED`` or ``ABORTED``.
        **fields : object
            Fields of the action's result. Fields that are left out keep their defaults.
        """
        # A goal ends once: late reports of its work are ignored.
        if self.is_active:
            if self._unsent is not None:
                self._server.publish_feedback(self, self._unsent, is_last=True)
            self._result = fields
            self._server.end(self, status)


class ActionServer:
    """Action that ROS 2 clients can call.

    Parameters
    ----------
    name : str
        Absolute name, for example ``/botyard/simulate_steps``.
    type_name : str
        Type, for example ``simulation_interfaces/SimulateSteps``.
    types : Types
        Message types of the distribution.
    execute : callable
        Starts the work on a goal, and returns. The work must call `Goal.end` when it is
        done.
    stamp : callable
        Returns the present ROS time.
    clock : callable
        Returns the wall time, s.
    defer : callable
        Calls a function soon, after the present request has been answered.
    about : str
        One line of description.
    operation : type, optional
        Operation of the control surface.
    unbegun : callable, optional
        Returns the fields of the result of a goal that was cancelled before it started.
    canceled : callable, optional
        Called soon after a request to cancel goals has been accepted.
    """

    def __init__(
        self,
        name: str,
        type_name: str,
        types: Types,
        execute: Callable[[Goal], None],
        *,
        stamp: Callable[[], Stamp],
        clock: Callable[[], float],
        defer: Callable[[Callable[[], None]], object],
        about: str,
        operation: type[Any] | None = None,
        unbegun: Callable[[], dict[str, Any]] = dict,
        canceled: Callable[[], None] | None = None,
    ) -> None:
        self._types = types
        self._unbegun = unbegun
        self._canceled = canceled
        self._execute = execute
        self._stamp = stamp
        self._clock = clock
        # All goals share the limit of the rate, because they share the topic and its
        # subscribers' queues.
        self._feedback_bucket = TokenBucket(FEEDBACK_RATE, FEEDBACK_BURST)
        self._defer = defer

        self._kind = kind = action_name(type_name)
        self._goals: dict[bytes, Goal] = {}
        self._revision = 0
        self._said: deque[Any] = deque()

        prefix = f"{name}/_action/"
        serving = (
            ("send_goal", f"{kind}_SendGoal", self._send_goal, about),
            (
                "cancel_goal",
                "action_msgs/CancelGoal",
                self._cancel_goal,
                "cancel its goals",
            ),
            (
                "get_result",
                f"{kind}_GetResult",
                self._get_result,
                "result of a goal, after its end",
            ),
        )

        self.services = [
            Service(prefix + end, sort, act, text, only="cdr", operation=operation)
            for end, sort, act, text in serving
        ]
        """Services ``send_goal``, ``cancel_goal`` and ``get_result``."""

        self._feedback = Topic(
            f"{prefix}feedback",
            f"{kind}_FeedbackMessage",
            lambda _: self._said.popleft() if self._said else None,
            "progress of its goals",
            only="cdr",
        )

        # Only the newest statuses matter, so the queue has one message; it is latched
        # as in rcl.
        self._status = Topic(
            f"{prefix}status",
            "action_msgs/GoalStatusArray",
            self._statuses,
            "states of its goals",
            version=lambda: self._revision,
            queue=1,
            only="cdr",
        )

        self.topics = [self._feedback, self._status]
        """Topics ``feedback`` and ``status``."""

    @property
    def goals(self) -> list[Goal]:
        """Goals that the server keeps, in the order of acceptance."""
        return list(self._goals.values())

    # -- requests

    def _send_goal(self, request: Any) -> Any:
        stamp = self._stamp()
        identifier = _identifier(request.goal_id)
        # Answer that the goal is rejected, instead of raising an error, which would
        # look like a broken server.
        accepted = self._has_room(identifier)
        if accepted:
            goal = self._goals[identifier] = Goal(self, identifier, stamp, request.goal)
            self._changed()
            # The client must get the acceptance before the first feedback.
            self._defer(lambda: self._begin(goal))

        return self._made(
            f"{self._kind}_SendGoal_Response",
            accepted=accepted,
            stamp=self._time(stamp),
        )

    def _has_room(self, identifier: bytes) -> bool:
        """Return whether another goal fits, and make room for it.

        Parameters
        ----------
        identifier : bytes
            UUID of the new goal, 16 bytes.
        """
        self.expire()
        # As in rcl, refuse a goal without an id, or with the id of another goal.
        if identifier == _NO_UUID or identifier in self._goals:
            return False
        if sum(goal.is_active for goal in self._goals.values()) >= MAX_ACTIVE_GOALS:
            return False
        # There is always an ended goal, because MAX_ACTIVE_GOALS is lower than
        # MAX_GOALS.
        while len(self._goals) >= MAX_GOALS:
            del self._goals[
                next(key for key, goal in self._goals.items() if not goal.is_active)
            ]

        return True

    def _begin(self, goal: Goal) -> None:
        # The goal was cancelled before it started, so it must not run at all.
        if goal.status is Status.CANCELING:
            goal.end(Status.CANCELED, **self._unbegun())
            return

        # Set the status before the work starts, because short work ends the goal within
        # the call.
        goal.status = Status.EXECUTING
        self._changed()
        try:
            self._execute(goal)
        except Exception as error:
            # End the goal in any case: otherwise the client would wait for ever.
            goal.end(Status.ABORTED)
            # Other errors are bugs, which the caller's error barrier logs.
            if not isinstance(error, BotyardError):
                raise
            log.warning(
                "ROS 2: a goal of %s: %s", self.services[0].name, shown(error, MAX_TEXT)
            )

    def _cancel_goal(self, request: Any) -> Any:
        """Cancel one goal, all goals, or goals accepted up to a time.

        The identifier and the stamp of the request select them
        (action_msgs/CancelGoal).
        """
        self.expire()

        wanted = _identifier(request.goal_info.goal_id)
        until = Stamp(
            int(request.goal_info.stamp.sec), int(request.goal_info.stamp.nanosec)
        )

        # Without identifier and time, the request means all goals.
        every = wanted == _NO_UUID and until == _NO_STAMP
        named = self._goals.get(wanted)
        chosen = [
            goal
            for goal in self._goals.values()
            if goal.is_active
            and (every or goal is named or (until != _NO_STAMP and goal.stamp <= until))
        ]

        for goal in chosen:
            goal.status = Status.CANCELING
        if chosen:
            self._changed()
            # Call the function, because no step may follow that would notice the
            # cancellation. Defer it, so that the client gets this answer before the
            # result.
            if self._canceled is not None:
                self._defer(self._canceled)
        code = (
            # As in rcl, a request for several goals is not an error if there is no such
            # goal.
            CancelCode.NONE
        )
        if not chosen and wanted != _NO_UUID and until == _NO_STAMP:
            code = (
                CancelCode.UNKNOWN_GOAL_ID
                if named is None
                else CancelCode.GOAL_TERMINATED
            )

        return self._made(
            "action_msgs/srv/CancelGoal_Response",
            return_code=int(code),
            goals_canceling=[self._info(g) for g in chosen],
        )

    def _get_result(self, request: Any) -> Any:
        self.expire()
        goal = self._goals.get(_identifier(request.goal_id))
        # An unknown goal is answered at once with the state UNKNOWN, as in rcl.
        if goal is None or not goal.is_active:
            return self._result(goal)
        # Limit the waiting requests, because each keeps a future until the goal ends.
        if len(goal._waiting) >= MAX_RESULT_REQUESTS:
            raise PeerError(
                f"expected at most {MAX_RESULT_REQUESTS} waiting requests for one result"
            )

        answer: Future[Any] = Future()
        # After this call the transport cannot cancel the future, so `set_result` never
        # raises.
        answer.set_running_or_notify_cancel()
        goal._waiting.append(answer)
        return answer

    def _result(self, goal: Goal | None) -> Any:
        status = Status.UNKNOWN if goal is None else goal.status
        result = self._made(
            f"{self._kind}_Result",
            **((goal._result if goal is not None else None) or {}),
        )
        return self._made(
            f"{self._kind}_GetResult_Response", status=int(status), result=result
        )

    # -- feedback and ends of goals

    def publish_feedback(
        self, goal: Goal, fields: dict[str, Any], *, is_last: bool = False
    ) -> bool:
        """Publish feedback of a goal now; late subscribers do not get it.

        Return False if nothing is published because of `FEEDBACK_RATE`. The limit does
        not apply to the last feedback of a goal.

        Parameters
        ----------
        goal : Goal
            Goal to which the feedback belongs.
        fields : dict
            Fields of the action's feedback.
        is_last : bool
            Whether the goal ends now.
        """
        # Steps with feedback may follow each other faster than subscribers read.
        if not (self._feedback_bucket.take(self._clock()) or is_last):
            return False
        feedback = self._made(f"{self._kind}_Feedback", **fields)
        # `publish` calls `make` of the topic, which takes the message from this queue.
        self._said.append(
            self._made(
                f"{self._kind}_FeedbackMessage",
                goal_id=self._uuid(goal.identifier),
                feedback=feedback,
            )
        )
        self._feedback.publish()
        # Without subscribers `make` is not called: drop the feedback, so that it does
        # not appear later.
        self._said.clear()
        return True

    def end(self, goal: Goal, status: Status) -> None:
        """End a goal and send its result to the clients that wait for it.

        Parameters
        ----------
        goal : Goal
            An active goal.
        status : Status
            ``SUCCEEDED``, ``CANCELED`` or ``ABORTED``.
        """
        goal.status = status
        # Results are kept for late requests; see `RESULT_TIMEOUT_S`.
        goal._ended = self._clock()
        self._changed()
        # Replace the list first: a result may cause a new request, which must not
        # extend the loop.
        waiting, goal._waiting = goal._waiting, []
        # The statuses were published above, so that a client that gets the result finds
        # the goal ended.
        for answer in waiting:
            answer.set_result(self._result(goal))

    def expire(self) -> None:
        """Drop goals that ended `RESULT_TIMEOUT_S` ago."""
        # Results expire by wall time, because clients also wait while the simulation is
        # paused.
        latest = self._clock() - RESULT_TIMEOUT_S
        gone = [
            key
            for key, goal in self._goals.items()
            if not goal.is_active and goal._ended <= latest
        ]
        for key in gone:
            del self._goals[key]
        if gone:
            self._changed()

    def _changed(self) -> None:
        self._revision += 1
        self._status.publish()

    # -- messages

    def _statuses(self, _stamp: Stamp) -> Any:
        status = self._types.two("action_msgs/GoalStatus")
        listed = [
            status(goal_info=self._info(g), status=int(g.status))
            for g in self._goals.values()
        ]
        return self._made("action_msgs/msg/GoalStatusArray", status_list=listed)

    def _info(self, goal: Goal) -> Any:
        return self._made(
            "action_msgs/msg/GoalInfo",
            goal_id=self._uuid(goal.identifier),
            stamp=self._time(goal.stamp),
        )

    def _uuid(self, identifier: bytes) -> Any:
        return self._made(
            "unique_identifier_msgs/msg/UUID", uuid=np.frombuffer(identifier, np.uint8)
        )

    def _time(self, stamp: Stamp) -> Any:
        return self._types["builtin_interfaces/Time"](*stamp)

    def _made(self, kind: str, **fields: Any) -> Any:
        return self._types.filled(kind, fields)


def _identifier(message: Any) -> bytes:
    """Return the bytes of a unique_identifier_msgs/UUID."""
    return bytes(message.uuid)


__all__ = [
    "MAX_ACTIVE_GOALS",
    "MAX_GOALS",
    "MAX_RESULT_REQUESTS",
    "RESULT_TIMEOUT_S",
    "ActionServer",
    "CancelCode",
    "Goal",
    "Status",
]
