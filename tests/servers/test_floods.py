"""What comes by libraries' threads and by connections of our own, when it is too much:
bounds, short queues, parts of the time.
"""

from __future__ import annotations

import asyncio
import logging
import socket
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
from botyard.protocols.ros_messages.graphoffers import Service
from botyard.protocols.ros_messages.limits import MAX_REQUESTS, MAX_WAITING
from botyard.protocols.ros_messages.reconfigure import PARAMETERS, Reconfigure
from botyard.protocols.ros_messages.types import types
from botyard.protocols.rtps.events import EventKind
from botyard.servers import vda5050
from botyard.servers.ros import rtps
from botyard.servers.ros.ros2zenoh import _Inbox, _Serving
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
    """Its threads may bring more than the loop can take: the newest stay, and each
    topic has its part of the time.
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
    """Zenoh takes hundreds of megabytes; what services are asked is looked at before it
    waits for the loop.
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
