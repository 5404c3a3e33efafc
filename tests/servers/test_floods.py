"""Floods through libraries' threads and our own connections:

bounds, short queues, shares of time.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import MapError, WorldError
from botyard.formats.budget import Budget
from botyard.formats.occupancy import message_to_scene
from botyard.protocols.ambf.link import FrameReader
from botyard.protocols.ros_messages.graphoffers import Service, Topic
from botyard.protocols.ros_messages.limits import MAX_REQUESTS, MAX_WAITING
from botyard.protocols.ros_messages.reconfigure import PARAMETERS, Reconfigure
from botyard.protocols.ros_messages.types import types
from botyard.protocols.rtps.events import EventKind
from botyard.servers import vda5050
from botyard.servers.ros import rtps
from botyard.servers.ros.ros2zenoh import _Inbox, _Publication, _Serving
from botyard.servers.ros.zenohcalls import MAX_ANSWERS, Declared, SessionThread
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.timeshare import TimeShare
from botyard.sim.simulation import Simulation
from tests.servers.nearby import Nearby
from tests.waiting import PATIENCE

TYPES = types()
log = logging.getLogger("test")


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.002)


# -- Zenoh


def test_what_zenoh_brings_waits_in_short_queues() -> None:
    """Its threads may deliver more than the loop can take:

    the newest messages stay, and each topic has its share of time.
    """

    async def main() -> None:
        soon: list[Any] = []
        ros: Any = SimpleNamespace(
            turns=TimeShare(1.0, lambda: 0.0),
            soon=lambda act, *args: soon.append((act, args)),
        )
        taken: list[int] = []
        inbox: _Inbox[int] = _Inbox(
            ros, "a", MAX_WAITING, taken.append, ErrorBarrier(log, "x")
        )
        for n in range(100_000):
            inbox.put(n)
        assert len(soon) == 1, "the loop is woken once"
        act, args = soon.pop()
        act(*args)
        await until(lambda: len(taken) == MAX_WAITING)
        assert taken == list(range(100_000 - MAX_WAITING, 100_000))
        inbox.put(7)
        ((act, args),) = soon
        act(*args)
        await until(lambda: taken[-1] == 7)

    asyncio.run(main())


def test_requests_of_zenoh_that_are_too_long_do_not_wait() -> None:
    """Zenoh accepts hundreds of megabytes; requests are checked before they are queued
    for the loop.
    """
    soon: list[Any] = []
    dropped: list[Any] = []

    class Query:
        def __init__(
            self, payload: int, attachment: int = 33, parameters: str = ""
        ) -> None:
            self.payload = bytes(payload) if payload else None
            self.attachment, self.parameters = bytes(attachment), parameters

        def drop(self) -> None:
            dropped.append(self)

    ros: Any = MagicMock()
    ros.soon = lambda act, *args: soon.append((act, args))
    service = Service("/s", "std_srvs/Empty", lambda _: None, "a service")
    serving = _Serving(ros, "/n", service)
    serving._come(Query(1000))
    for query in (
        long := [Query(1 << 20), Query(10, 1 << 20), Query(10, 33, "x" * (1 << 20))]
    ):
        serving._come(query)

    assert dropped == long and len(serving._inbox._waiting) == 1
    assert len(soon) == 4
    waiting = [Future[Any]() for _ in range(MAX_REQUESTS + 5)]
    futures = iter(waiting)
    service = Service("/s", "std_srvs/Empty", lambda _: next(futures), "a slow service")
    slow = _Serving(ros, "/n", service)
    dropped.clear()
    for _ in range(MAX_REQUESTS + 5):
        slow._take(Query(0))
    assert len(dropped) == 5
    waiting[0].cancel()
    waiting[0].set_running_or_notify_cancel()
    slow._take(Query(0))
    assert len(dropped) == 6, "the one whose response was given up, alone"


class Stuck:
    """A session whose calls wait for a peer that stands still."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.called: list[str] = []

    def liveliness(self) -> Stuck:
        return self

    def declare_token(self, key: str) -> Any:
        assert self.free.wait(PATIENCE)
        self.called.append(key)
        return SimpleNamespace(undeclare=lambda: self.called.append(f"-{key}"))

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            assert self.free.wait(PATIENCE)
            self.called.append(name)
            return MagicMock()

        return call


def test_a_peer_of_zenoh_that_stands_still_does_not_hold_the_loop() -> None:
    """Declarations, kept messages and answers wait in a thread, in order; answers up to
    a number of bytes.
    """
    session = Stuck()
    failed: list[Exception] = []
    thread = SessionThread(failed.append)
    ros: Any = MagicMock()
    ros.thread, ros.session = thread, session
    ros.declare = lambda declare: Declared(thread, declare)
    ros.token = lambda key: Declared(
        thread, lambda: session.liveliness().declare_token(key)
    )
    ros.tokens.end = lambda *args: f"token {args[2]}"
    ros.types = TYPES
    kept = Topic("/k", "std_msgs/Bool", MagicMock(), "kept", version=lambda: 1)
    lines = Topic("/l", "std_msgs/Bool", MagicMock(), "kept", queue=7, is_kept=True)
    plain = Topic("/p", "std_msgs/Bool", MagicMock(), "not kept")
    made = [_Publication(ros, "/n", t, MagicMock()) for t in (kept, lines, plain)]
    assert [m.is_wanted for m in made] == [True, True, False]
    for publication in made:
        publication.send(SimpleNamespace(cdr=b"x"))  # type: ignore[arg-type]
    grid = TYPES.filled(
        "nav_msgs/OccupancyGrid", {"data": np.zeros(MAX_ANSWERS // 3, np.int8)}
    )
    service = Service("/s", "nav_msgs/GetMap", lambda _: None, "a service")
    serving = _Serving(ros, "/n", service)
    answer = TYPES.filled("nav_msgs/srv/GetMap_Response", {"map": grid})
    queries = [MagicMock() for _ in range(4)]
    for query in queries:
        serving._answer(query, answer)
    assert [q.drop.called for q in queries] == [False, False, True, True]
    made[0].close()
    assert session.called == []

    session.free.set()
    thread.end(lambda: session.called.append("end"))
    thread._thread.join(PATIENCE)
    first = session.called.index("token /k")
    assert session.called[-2:] == ["-token /k", "end"] and first == 0
    assert [q.reply.called for q in queries] == [True, True, False, False]
    config = ros.zenoh.ext.CacheConfig
    assert [c.args for c in config.call_args_list] == [(1,), (7,)]
    made_with = ros.zenoh.ext.declare_advanced_publisher.call_args.kwargs
    assert made_with["sample_miss_detection"] is ros.zenoh.ext.MissDetectionConfig()
    put = ros.zenoh.ext.declare_advanced_publisher().put
    assert put.call_count == 2 and not failed


def test_errors_of_zenoh_do_not_end_its_thread() -> None:
    failed: list[Exception] = []
    thread = SessionThread(failed.append)
    broken = Declared(thread, lambda: 1 / 0)
    broken.undeclare()
    ended = threading.Event()
    assert thread.answer(2 * MAX_ANSWERS, ended.set), "one of any length"
    assert ended.wait(PATIENCE)
    assert [type(error) for error in failed] == [ZeroDivisionError]
    thread.end(lambda: None)


# -- DDS


def test_packets_of_dds_take_a_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flood waits in the socket's buffer when its share is used up; the loop goes on."""
    spent = [0.0]

    def slow() -> float:
        spent[0] += 1000.0
        return spent[0]

    monkeypatch.setattr(rtps, "worked", slow)

    async def main() -> None:
        node = rtps.RtpsNode(Nearby(domain=78))
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                for _ in range(3 * rtps.MAX_PACKETS):
                    peer.sendto(b"rubbish", node._sockets[0].getsockname())
                await until(lambda: node.participant.count(EventKind.MALFORMED) > 0)
                for _ in range(20):
                    await asyncio.sleep(0)

            assert node.participant.count(EventKind.MALFORMED) <= rtps.MAX_PACKETS
        finally:
            node.close()

    asyncio.run(main())


# -- AMBF's link


def test_frames_that_announce_much_are_refused_before_they_come() -> None:
    with pytest.raises(Exception, match="expected a frame of"):
        list(FrameReader().feed_bytes((1 << 30).to_bytes(4, "little") + b"\3"))


# -- VDA 5050


def test_orders_wait_in_a_short_queue() -> None:
    lost: list[int] = []
    inbox = vda5050.Inbox(lost.append, 100)
    inbox.put(b"x" * 101)
    for n in range(50):
        inbox.put(b"%d" % n)
    assert [inbox.next() for _ in range(5)] == [b"0", b"1", b"2", b"3", None]
    assert lost == [47]
    inbox.put(b"next")
    assert inbox.next() == b"next"
    inbox.put(b"x" * 101)
    assert (inbox.next(), lost) == (None, [47, 1])


# -- limits of robots, maps


def test_limits_are_changed_all_or_none_and_settled_once() -> None:
    """A request may name a limit thousands of times."""
    sim = Simulation()
    robot = sim.add_robot("p3dx", "ann")
    settled: list[int] = []
    limits = Reconfigure(robot.port("ros"), "/ann/", TYPES, lambda: settled.append(1))
    double = TYPES["dynamic_reconfigure/DoubleParameter"]

    def put(*pairs: tuple[str, float]) -> Any:
        config = limits.config({})
        config.doubles = [double(n, v) for n, v in pairs]
        return limits._set(
            TYPES["dynamic_reconfigure/ReconfigureRequest"](config=config)
        )

    answer = put(*[("trans_accel", 0.1 + k / 1e5) for k in range(3000)], ("x\n", 5.0))
    assert len(settled) == 1
    assert {d.name: d.value for d in answer.config.doubles}[
        "trans_accel"
    ] == pytest.approx(0.12999)
    sim.step()
    assert limits.values()["trans_accel"] == pytest.approx(0.12999)
    before = limits.values()
    for bad in (float("nan"), float("inf"), -1.0, 1e9):
        with pytest.raises(WorldError, match="expected 0"):
            put((PARAMETERS[0].name, 0.5), (PARAMETERS[4].name, bad))

    sim.step()
    assert limits.values() == before


def grid(width: int, height: int, cells: int, resolution: float = 0.05) -> Any:
    message = TYPES.blank("nav_msgs/OccupancyGrid")
    message.info.width, message.info.height, message.info.resolution = (
        width,
        height,
        resolution,
    )
    message.info.origin.orientation.w = 1.0
    message.data = np.zeros(cells, np.int8)
    return message


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (grid(10**6, 10**6, 0), "expected 1000000 × 1000000 cells, found 0"),
        (
            grid(np.uint32(65536), np.uint32(65536), 0),
            "expected 65536 × 65536 cells, found 0",
        ),  # type: ignore[arg-type]
        (grid(10, 10, 100, 1e9), "expected a resolution"),
        (grid(10, 10, 100, float("nan")), "expected a resolution"),
        (grid(100, 100, 10_000), "cells"),
        (grid(30, 30, 900, 9999.0), "m across"),
    ],
)
def test_maps_from_ros_have_bounds(message: Any, complaint: str) -> None:
    with pytest.raises(MapError, match=complaint):
        message_to_scene(message, "ros:/map", Budget(cells=1000))


def test_seldom_is_throttled_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        seldom = ThrottledLog(log)
        for _ in range(1000):
            seldom.log(logging.WARNING, "the same")

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert len(caplog.records) == 1
