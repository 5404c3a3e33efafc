"""AMBF's objects for clients without ROS: sessions without a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from botyard import Simulation
from botyard.app.builtin import AMBF
from botyard.control import Control
from botyard.interfaces.ambf import link as module
from botyard.interfaces.ambf.link import Link, LinkSession
from botyard.interfaces.interface import Door, caller_of
from botyard.protocols.ambf.link import (
    MAX_FRAME,
    FrameReader,
    Kind,
    frame,
    parse_topics,
)
from botyard.protocols.ros_messages.graphoffers import Input, Topic
from botyard.protocols.ros_messages.types import types

TYPES = types()
BOOL = "std_msgs/Bool"
YES = TYPES.encode_ros1(TYPES[BOOL](data=True), BOOL)


class Said:
    """A message that a topic publishes."""

    def __init__(self, data: bytes) -> None:
        self.ros1 = data


class World:
    """A link with a state and a command, and the records of wake-ups and log lines of
    its clients.
    """

    def __init__(self) -> None:
        self.link = Link(TYPES, "2.0")
        self.control = Control(Simulation())
        self.taken: list[Any] = []
        self.changes = 0
        self.woken = 0
        self.said: list[str] = []
        topic = Topic("/a/State", BOOL, lambda _stamp: None, "")
        self.state: Any = self.link.advertise("/n", topic, lambda: None, self._changed)
        self.link.listen("/n", Input("/a/Command", BOOL, self.taken.append, ""))

    def _changed(self) -> None:
        self.changes += 1

    def _wake(self) -> None:
        self.woken += 1

    def come(self) -> LinkSession:
        door = Door(
            self.control,
            caller_of(AMBF, "me", object()),
            {},
            self._wake,
            self.said.append,
        )
        return self.link.session(door)

    def publish(self, data: bytes) -> None:
        self.state.send(Said(data))


def read(session: LinkSession) -> Iterator[tuple[Kind, int, bytes]]:
    yield from FrameReader().feed_bytes(session.data_to_send())


def names(session: LinkSession) -> list[str]:
    ((_, _, data),) = read(session)
    return [t.name for t in parse_topics(data)[1]]


def test_who_comes_is_told_what_there_is() -> None:
    world = World()
    one = world.come()
    ((kind, _, data),) = read(one)
    assert kind is Kind.TOPICS
    assert json.loads(data)["topics"] == [
        [1, "/a/State", BOOL, "state"],
        [2, "/a/Command", BOOL, "command"],
    ]
    assert one.data_to_send() == b""
    assert world.link.topics() is world.link.topics(), "it is the same for all who come"


def test_changes_of_one_moment_are_told_once() -> None:
    world = World()
    one = world.come()
    one.data_to_send()
    handles = [
        world.link.listen("/n", Input(f"/b{i}", BOOL, print, "")) for i in range(3)
    ]
    handles[0].close()
    assert world.woken == 1
    assert names(one) == ["/a/State", "/a/Command", "/b1", "/b2"]
    assert one.data_to_send() == b""


def test_states_are_sent_to_those_who_read_them() -> None:
    world = World()
    one, other = world.come(), world.come()
    for session in (one, other):
        session.data_to_send()
    world.publish(b"nobody")
    assert not world.state.is_wanted
    one.receive_data(frame(Kind.READ, 1) * 2, 0.0)
    assert world.state.is_wanted and world.changes == 2
    before = world.woken
    world.publish(b"x")
    world.publish(b"y")
    assert world.woken == before + 1, "it is woken once for all that waits"
    assert [(k, n, d) for k, n, d in read(one)] == [
        (Kind.MESSAGE, 1, b"x"),
        (Kind.MESSAGE, 1, b"y"),
    ]
    assert other.data_to_send() == b""
    one.receive_data(
        frame(Kind.LEAVE, 1) + frame(Kind.LEAVE, 1) + frame(Kind.READ, 99), 0.0
    )
    assert not world.state.is_wanted
    one.receive_data(frame(Kind.READ, 1), 0.0)
    one.close()
    one.close()
    assert not world.state.is_wanted and world.link.clients == [other]


def test_one_that_does_not_read_loses_states_and_nothing_grows() -> None:
    world = World()
    one = world.come()
    one.receive_data(frame(Kind.READ, 1), 0.0)
    size = 10_000
    for _ in range(3 * module.MAX_WAITING // size):
        world.publish(bytes(size))
    waiting = len(one.data_to_send())
    assert module.MAX_WAITING <= waiting < module.MAX_WAITING + 2 * size
    world.publish(b"new")
    assert [d for _, _, d in read(one)] == [b"new"], "it goes on when it has read"


def test_commands_come_in_pieces_of_any_size() -> None:
    world = World()
    one = world.come()
    for byte in frame(Kind.MESSAGE, 2, YES) * 3:
        one.receive_data(bytes([byte]), 0.0)
    assert [m.data for m in world.taken] == [True, True, True]
    one.receive_data(frame(Kind.MESSAGE, 77, YES), 0.0)
    assert not one.is_closed, "its topic has gone meanwhile"


def test_a_long_command_in_small_pieces_costs_no_more_than_its_length() -> None:
    """Otherwise each piece would copy all earlier ones:

    8000 pieces of a megabyte copy gigabytes.
    """
    reader = FrameReader()
    data = frame(Kind.MESSAGE, 2, bytes(MAX_FRAME - 100))
    made = sum(
        len(list(reader.feed_bytes(data[at : at + 128])))
        for at in range(0, len(data) - 128, 128)
    )
    assert made == 0
    assert isinstance(reader._rest, bytearray) and reader._needed == len(data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xff\xff\xff\xff\x00", "expected a frame of 1"),
        (frame(Kind.TOPICS, 0, b"{}"), "only the simulator sends"),
    ],
)
def test_what_makes_no_sense_ends_the_connection(data: bytes, told: str) -> None:
    world = World()
    one, other = world.come(), world.come()
    one.receive_data(data + frame(Kind.MESSAGE, 2, YES), 0.0)
    assert one.is_closed and not world.taken
    assert told in world.said[0] and "ambf client me" in world.said[0]
    assert world.link.clients == [other]
    one.receive_data(frame(Kind.MESSAGE, 2, YES), 0.0)
    assert not world.taken
    assert one.next_timer() is None


def test_a_command_that_is_damaged_is_passed_over() -> None:
    world = World()
    one = world.come()
    one.receive_data(frame(Kind.MESSAGE, 2, b"") + frame(Kind.MESSAGE, 2, YES), 0.0)
    assert [m.data for m in world.taken] == [True]
    assert "command for /a/Command ignored: " in world.said[0] and not one.is_closed
