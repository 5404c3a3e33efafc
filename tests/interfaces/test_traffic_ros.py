"""A traffic task as ROS sees it, without ROS:

the transport is a list, the clock belongs to the test.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from botyard.errors import WorldError
from botyard.interfaces.ros.traffic import MAX_ID, Relay, TrafficNode, check_ids
from botyard.protocols.ros_messages.types import types
from botyard.sim.simulation import Simulation
from botyard.traffic.engine import Traffic
from botyard.traffic.live import LiveTraffic
from botyard.traffic.mirrored import MirroredTraffic
from botyard.traffic.outcome import Ending
from botyard.traffic.rules import Rules
from botyard.traffic.task import Task, Vehicle

TYPES = types()


class Topic:
    """A topic that stores messages in a list."""

    replays_latched = False

    def __init__(self, name: str, changed: Callable[[], None]) -> None:
        self.name, self._changed = name, changed
        self.said: list[int] = []
        self.is_wanted = self.is_closed = False

    def read(self, on: bool) -> None:
        self.is_wanted = on
        self._changed()

    def send(self, message: Any) -> None:
        self.said.append(int.from_bytes(message.ros1, "little"))

    def close(self) -> None:
        self.is_closed = True


class Ros:
    """A transport that stores topics in a list."""

    wire = "ros1"

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.inputs: dict[str, Any] = {}

    def advertise(
        self, node: str, topic: Any, fresh: Any, changed: Callable[[], None]
    ) -> Topic:
        return self.topics.setdefault(topic.name, Topic(topic.name, changed))

    def listen(self, node: str, entry: Any) -> Any:
        self.inputs[entry.name] = entry
        return SimpleNamespace(close=lambda: self.inputs.pop(entry.name))

    def permit(self, robot: int) -> None:
        self.inputs["/lab/move_permissions"].take(SimpleNamespace(data=robot))


def made(idle_limit: float = 10.0) -> tuple[TrafficNode, Ros, Traffic]:
    relay, ros = Relay(), Ros()
    node = TrafficNode(TYPES, relay, "lab")
    node.add(ros)  # type: ignore[arg-type]
    vehicles = tuple(Vehicle(ends=np.array([4.0, 6.0, 10.0])) for _ in range(2))
    traffic = Traffic(
        Task(vehicles, np.zeros((0, 4), np.int64), (), "two"), relay, Rules()
    )
    ros.topics["/lab/critical_points"].read(True)
    node.begin(traffic, 50.0, idle_limit=idle_limit)
    return node, ros, traffic


def go_on(node: TrafficNode, begin: float, end: float) -> Ending | None:
    for now in np.arange(begin, end, 0.1):
        ending = node.advance(float(now))
        if ending is not None:
            return ending

    return None


def test_permissions_let_robots_go_on() -> None:
    node, ros, traffic = made()
    asked = ros.topics["/lab/critical_points"].said
    for now in np.arange(50.0, 120.0, 0.1):
        if node.advance(float(now)) is not None:
            break
        while asked:
            ros.permit(asked.pop(0))

    outcome = traffic.finish(Ending.COMPLETED)
    assert outcome.metrics["finished"] == 2
    assert not ros.topics["/lab/release_points"].said, "nobody reads them"


def test_all_standing_still_is_a_deadlock() -> None:
    node, ros, _ = made(idle_limit=2.0)
    assert go_on(node, 50.0, 200.0) is Ending.DEADLOCK
    node, ros, _ = made(idle_limit=0.0)
    assert go_on(node, 50.0, 200.0) is None, "0: never"
    ros.permit(0)
    node.advance(200.0)


def test_who_comes_late_is_told_who_waits() -> None:
    node, ros, _ = made(idle_limit=0.0)
    go_on(node, 50.0, 80.0)
    topic = ros.topics["/lab/critical_points"]
    before = sorted(topic.said)
    assert before == [0, 1]
    topic.read(False)
    topic.said.clear()
    node.advance(81.0)
    assert topic.said == []
    topic.read(True)
    assert node.has_supervisor
    node.advance(82.0)
    assert sorted(topic.said) == before


def test_permissions_for_nobody_are_told_and_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node, ros, _ = made()
    ros.permit(7)
    with caplog.at_level(logging.WARNING):
        node.advance(50.1)
    assert (
        "/lab/move_permissions: " in caplog.text
        and "expected a robot from 0 to" in caplog.text
    )


def test_what_ends_is_there_no_longer() -> None:
    node, ros, _ = made()
    node.close()
    assert all(t.is_closed for t in ros.topics.values())
    assert not ros.inputs


def test_ids_that_cannot_be_said_are_refused() -> None:
    check_ids(MAX_ID + 1)
    with pytest.raises(WorldError, match=r"at most 32768 robots .* found 32769"):
        check_ids(MAX_ID + 2)


def test_a_world_shows_the_run_of_a_ros_supervisor() -> None:
    """Discs move with the exact engine; its permissions are held and let through."""
    relay, ros = Relay(), Ros()
    node = TrafficNode(TYPES, relay, "lab")
    node.add(ros)  # type: ignore[arg-type]
    vehicles = tuple(Vehicle(ends=np.array([4.0, 6.0, 10.0])) for _ in range(2))
    crossing = np.array([[0, 1, 1, 1], [1, 1, 0, 1]], np.int64)
    traffic = Traffic(Task(vehicles, crossing, (), "two"), relay, Rules())
    sim = Simulation(odometry_error="none")
    mirrored = MirroredTraffic(traffic, sim)
    mirrored.on_step = node.advance
    live = LiveTraffic(sim)
    live.attach(mirrored, "a ROS node")
    ros.topics["/lab/critical_points"].read(True)
    node.begin(mirrored, sim.time, idle_limit=0.0)

    def until(holds: Callable[[], object]) -> None:
        end = sim.time + 60.0
        while not holds():
            assert sim.time < end
            sim.step()

    def at(robot: int) -> float:
        return sim.robots[f"traffic{robot}"].truth.x

    # Both stop before their second sector, and ask.
    until(lambda: at(0) == pytest.approx(3.5, abs=1e-6))
    assert sorted(ros.topics["/lab/critical_points"].said) == [0, 1]
    waits, _ = live.waits()
    assert [(w.robot, w.sector, w.by) for w in waits] == [(0, 1, ()), (1, 1, ())]
    assert waits[0].reason == "a ROS node has not granted it"
    # A permission waits while decisions are held.
    live.hold(True)
    ros.permit(1)
    until(lambda: live.waiting_decisions)
    for _ in range(20):
        sim.step()
    assert at(1) == pytest.approx(3.5, abs=0.01)
    assert live.step() == ("traffic1", 0, 1)
    live.hold(False)
    until(lambda: at(1) > 5.0)
    assert at(0) == pytest.approx(3.5, abs=0.01)
    # A hand permits the other robot, unless the sectors conflict.
    with pytest.raises(WorldError, match="cannot get sector 1: traffic1 holds"):
        live.grant("traffic0", None)
    ros.permit(1)
    until(lambda: mirrored.drivers[1].allowed > mirrored.drivers[1].head)
    with pytest.raises(WorldError, match="another program cannot be taken back"):
        live.revoke("traffic1", None)
    until(lambda: at(1) > 8.0)
    live.grant("traffic0", None)
    until(lambda: at(0) > 4.0)
    for _ in range(3):
        ros.permit(0)
    until(lambda: live.ending)
    assert live.ending == "completed"
    assert mirrored.finish(live.reason).ending is Ending.COMPLETED
