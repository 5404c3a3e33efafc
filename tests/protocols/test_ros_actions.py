"""The server side of ROS 2 actions without a network:

all messages are encoded, and time is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PeerError, WorldError
from botyard.protocols.ros_messages import typenames
from botyard.protocols.ros_messages.actions import (
    MAX_ACTIVE_GOALS,
    MAX_GOALS,
    MAX_RESULT_REQUESTS,
    RESULT_TIMEOUT_S,
    ActionServer,
    CancelCode,
    Goal,
    Status,
)
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.rosidl import add_action
from botyard.protocols.ros_messages.types import Types, types

TYPES = types()
KIND = "simulation_interfaces/action/SimulateSteps"


NEVER = Stamp(0, 0)


class Bench:
    """An action server, its clock, and a client of all its endpoints."""

    def __init__(self, execute: Callable[[Goal], None] | None = None) -> None:
        self.now = 0.0
        self.stamp = Stamp(1, 0)
        self.begun: list[Goal] = []
        self.later: list[Callable[[], None]] = []
        self.server = ActionServer(
            "/n/act",
            "simulation_interfaces/SimulateSteps",
            TYPES,
            execute or self.begun.append,
            stamp=lambda: self.stamp,
            clock=lambda: self.now,
            defer=self.later.append,
            about="acts",
            unbegun=lambda: passed("never begun"),
        )
        self._ends = {s.name.rpartition("/")[2]: s for s in self.server.services}
        self.feedback: list[tuple[bytes, int]] = []
        self.statuses: list[dict[bytes, int]] = []
        feedback, status = self.server.topics

        def hear_feedback() -> None:
            heard = self._through(f"{KIND}_FeedbackMessage", feedback.make(self.stamp))
            self.feedback.append(
                (bytes(heard.goal_id.uuid), heard.feedback.completed_steps)
            )

        feedback.publish = hear_feedback
        status.publish = lambda: self.statuses.append(self.status)

    @staticmethod
    def _through(kind: str, message: Any) -> Any:
        return TYPES.decode_cdr(TYPES.encode_cdr(message, kind), kind)

    @property
    def status(self) -> dict[bytes, int]:
        """Return the current status topic."""
        listed = self._through(
            "action_msgs/msg/GoalStatusArray", self.server.topics[1].make(self.stamp)
        ).status_list
        return {bytes(one.goal_info.goal_id.uuid): one.status for one in listed}

    def call(self, end: str, **fields: Any) -> Any:
        service = self._ends[end]
        kind = typenames.service_name(service.type_name)
        answer = service.serve(
            self._through(f"{kind}_Request", TYPES.filled(f"{kind}_Request", fields))
        )
        return (
            answer
            if isinstance(answer, Future)
            else self._through(f"{kind}_Response", answer)
        )

    def send(self, key: bytes, steps: int = 3, begin: bool = True) -> bool:
        goal = TYPES.filled(f"{KIND}_Goal", {"steps": steps})
        accepted = bool(self.call("send_goal", goal_id=uuid(key), goal=goal).accepted)
        while begin and self.later:
            self.later.pop(0)()
        return accepted

    def cancel(
        self, key: bytes = bytes(16), until: Stamp = NEVER
    ) -> tuple[int, list[bytes]]:
        stamp = TYPES["builtin_interfaces/Time"](*until)
        info = TYPES.filled(
            "action_msgs/msg/GoalInfo", {"goal_id": uuid(key), "stamp": stamp}
        )
        answer = self.call("cancel_goal", goal_info=info)
        return answer.return_code, [
            bytes(one.goal_id.uuid) for one in answer.goals_canceling
        ]

    def result(self, key: bytes) -> Any:
        return self.call("get_result", goal_id=uuid(key))


def uuid(key: bytes) -> Any:
    return TYPES.filled(
        "unique_identifier_msgs/msg/UUID", {"uuid": np.frombuffer(key, np.uint8)}
    )


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def passed(text: str = "") -> dict[str, Any]:
    return {
        "result": TYPES.two("simulation_interfaces/Result")(
            result=1, error_message=text
        )
    }


def test_the_types_have_the_hashes_that_rosidl_gives_them() -> None:
    """The hashes of an action compiled for Jazzy, and of CancelGoal."""
    store = Types("jazzy")
    store.encode_cdr(
        store.filled("action_msgs/msg/GoalInfo", {}), "action_msgs/msg/GoalInfo"
    )
    add_action(
        store._two,
        store._parse,
        "rob599_msgs/action/Fibonacci",
        "int64 number",
        "int64[] sequence",
        "int64 progress",
    )
    for name, digest in {
        "rob599_msgs/action/Fibonacci_Goal": "834005bd2bbbb0ec2dbe2754ce54e9d8c4788812c743ba04dd1eadb29694b74d",
        "rob599_msgs/action/Fibonacci_SendGoal": "3d7412ff91ff9c5abfbf9f7f5dc2171a3f32cf6da2414b2c2c82f034d176fa01",
        "rob599_msgs/action/Fibonacci_SendGoal_Response": "d8af5e3d666fb61ed4635ec25692dd96e9343b1b51c4ed9843011b03adf8fccf",
        "rob599_msgs/action/Fibonacci_GetResult": "8ebe968757e1b88d729ad53e9aca6d14e4b2f113272786f55541cfb26acc91fc",
        "rob599_msgs/action/Fibonacci_GetResult_Event": "0404d58e6597bbe6dbaef508f0affd941624d8c93dcf59b5dce578ea9a6d0e2b",
        "rob599_msgs/action/Fibonacci_FeedbackMessage": "a941cc541674f910f08c54c0d6a8a5a63be0ee7697a74928f342b2583dcfa88a",
    }.items():
        assert store.hash(name) == f"RIHS01_{digest}", name

    assert store.hash("action_msgs/srv/CancelGoal").startswith(
        "RIHS01_573d8b0a534451d7bc2ac8c5ffde8ac14b"
    )


def test_its_ends_are_those_that_clients_look_for() -> None:
    server = Bench().server
    ends = {(one.name, one.type_name) for one in (*server.services, *server.topics)}
    assert ends == {
        ("/n/act/_action/send_goal", f"{KIND}_SendGoal"),
        ("/n/act/_action/get_result", f"{KIND}_GetResult"),
        ("/n/act/_action/cancel_goal", "action_msgs/CancelGoal"),
        ("/n/act/_action/feedback", f"{KIND}_FeedbackMessage"),
        ("/n/act/_action/status", "action_msgs/GoalStatusArray"),
    }
    assert [topic.latched for topic in server.topics] == [False, True]
    assert all(one.only == "cdr" for one in (*server.services, *server.topics))


def test_feedback_fits_in_a_queue_of_ten_messages() -> None:
    """Steps are faster than readers:

    eight messages at once, then 100 a second, and always the last one.
    """
    bench = Bench()
    bench.send(key(7), steps=1000)
    (goal,) = bench.begun
    for n in range(1, 1001):
        # All thousand steps take a tenth of a second.
        bench.now += 1e-4
        goal.feedback(completed_steps=n, remaining_steps=1000 - n)
    goal.end(Status.SUCCEEDED, **passed("well"))
    heard = [steps for _, steps in bench.feedback]
    assert heard[:8] == list(range(1, 9)) and heard[-1] == 1000
    assert heard == sorted(set(heard)) and len(heard) <= 8 + 10 + 1


def test_a_goal_from_its_beginning_to_its_end() -> None:
    bench = Bench()
    assert bench.send(key(7), steps=5, begin=False)
    assert bench.status == {key(7): Status.ACCEPTED} and not bench.begun, (
        "work begins when the client has its answer"
    )
    bench.later.pop()()
    (goal,) = bench.begun
    assert (goal.identifier, goal.stamp, goal.request.steps) == (key(7), Stamp(1, 0), 5)
    assert bench.status == {key(7): Status.EXECUTING}
    waiting = bench.result(key(7))
    assert isinstance(waiting, Future) and not waiting.done()
    goal.feedback(completed_steps=1, remaining_steps=4)
    assert bench.feedback == [(key(7), 1)]
    goal.end(Status.SUCCEEDED, **passed("well"))
    goal.end(Status.ABORTED)
    goal.feedback(completed_steps=9)
    assert (waiting.result().status, waiting.result().result.result.error_message) == (
        Status.SUCCEEDED,
        "well",
    )
    assert bench.result(key(7)).result.result.error_message == "well", (
        "who asks later gets it, too"
    )
    assert len(bench.feedback) == 1
    assert [s[key(7)] for s in bench.statuses] == [
        Status.ACCEPTED,
        Status.EXECUTING,
        Status.SUCCEEDED,
    ]
    assert bench.result(key(8)).status == Status.UNKNOWN


def test_who_fails_aborts() -> None:
    def refuse(_goal: Goal) -> None:
        raise WorldError("not today")

    bench = Bench(refuse)
    assert bench.send(key(1))
    assert bench.result(key(1)).status == Status.ABORTED

    def break_down(_goal: Goal) -> None:
        raise ZeroDivisionError

    bench = Bench(break_down)
    with pytest.raises(ZeroDivisionError):
        bench.send(key(1))
    assert bench.result(key(1)).status == Status.ABORTED, (
        "nobody waits for ever for what a fault of ours has ended"
    )


def test_goals_are_canceled_as_identifier_and_stamp_say() -> None:
    bench = Bench()
    for number in range(1, 6):
        bench.stamp = Stamp(number, 0)
        assert bench.send(key(number), begin=number != 5)

    assert bench.cancel(key(2)) == (CancelCode.NONE, [key(2)])
    assert bench.begun[1].is_canceling and bench.status[key(2)] == Status.CANCELING
    assert bench.cancel(key(4), Stamp(1, 0)) == (CancelCode.NONE, [key(1), key(4)])
    assert bench.cancel(key(9)) == (CancelCode.UNKNOWN_GOAL_ID, [])
    bench.begun[1].end(Status.CANCELED)
    assert bench.cancel(key(2)) == (CancelCode.GOAL_TERMINATED, [])
    assert bench.cancel()[1] == [key(1), key(3), key(4), key(5)]
    bench.later.pop()()
    assert bench.status[key(5)] == Status.CANCELED and len(bench.begun) == 4, (
        "it never began"
    )
    assert bench.result(key(5)).result.result.error_message == "never begun"
    for goal in bench.begun:
        goal.end(Status.CANCELED)
    assert bench.cancel() == (CancelCode.NONE, [])


def test_results_expire() -> None:
    bench = Bench()
    bench.send(key(1))
    bench.send(key(2))
    bench.begun[0].end(Status.SUCCEEDED)
    bench.now = RESULT_TIMEOUT_S
    bench.server.expire()
    assert bench.statuses[-1] == {key(2): Status.EXECUTING}, (
        "one that is under way never does"
    )
    assert bench.result(key(1)).status == Status.UNKNOWN
    assert bench.send(key(1)), "its identifier is free again"


def test_what_clients_may_cost_is_bounded() -> None:
    bench = Bench()
    # Ignore the published states: decoding each would take too long.
    bench.server.topics[1].publish = lambda: None
    assert not bench.send(bytes(16)), "all goals are meant by that"
    assert bench.send(key(1)) and not bench.send(key(1)), "it is there already"
    assert [bench.send(key(n)) for n in range(2, 30)].count(
        True
    ) == MAX_ACTIVE_GOALS - 1
    for _ in range(MAX_RESULT_REQUESTS):
        bench.result(key(1))
    with pytest.raises(PeerError, match="waiting requests for one result"):
        bench.result(key(1))
    for goal in bench.begun:
        goal.end(Status.SUCCEEDED)
    for number in range(100, 100 + 3 * MAX_GOALS):
        assert bench.send(key(number))
        bench.begun[-1].end(Status.SUCCEEDED)

    assert len(bench.server.goals) == MAX_GOALS and bench.server.goals[
        -1
    ].identifier == key(99 + 3 * MAX_GOALS)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(0, 14)),
            st.tuples(st.just("end"), st.integers(0, 20)),
            st.tuples(st.just("cancel"), st.integers(0, 14)),
            st.tuples(st.just("wait"), st.sampled_from([1, 500, 1000])),
        ),
        max_size=60,
    )
)
def test_whatever_clients_do_the_states_are_those_of_the_design(
    acts: list[tuple[str, int]],
) -> None:
    """A naive twin keeps each goal's state in a dictionary."""
    bench = Bench()
    # Simulated time starts with `NEVER`.
    bench.stamp = NEVER
    twin: dict[bytes, tuple[int, float]] = {}
    for act, number in acts:
        twin = {
            k: v
            for k, v in twin.items()
            if v[0] < 4 or v[1] > bench.now - RESULT_TIMEOUT_S
        }
        if act == "send":
            active = sum(status < 4 for status, _ in twin.values())
            fits = number > 0 and key(number) not in twin and active < MAX_ACTIVE_GOALS
            assert bench.send(key(number)) == fits
            if fits:
                twin[key(number)] = Status.EXECUTING, 0.0
        elif act == "end" and bench.begun:
            goal = bench.begun[number % len(bench.begun)]
            if goal in bench.server.goals and goal.is_active:
                twin[goal.identifier] = Status.SUCCEEDED, bench.now
            goal.end(Status.SUCCEEDED)
        elif act == "cancel":
            bench.cancel(key(number))
            for one in [key(number)] if number else list(twin):
                if twin.get(one, (9, 0.0))[0] < 4:
                    twin[one] = Status.CANCELING, 0.0
        else:
            bench.now += number

        bench.server.expire()
        twin = {
            k: v
            for k, v in twin.items()
            if v[0] < 4 or v[1] > bench.now - RESULT_TIMEOUT_S
        }
        assert bench.status == {k: status for k, (status, _) in twin.items()}
