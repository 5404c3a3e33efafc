"""An exception in the code of one session ends only that session, wherever it is
raised.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable
from typing import Any

import pytest

from botyard.control import USER, ClearMap
from botyard.control.error_barrier import REPEAT_LOG_INTERVAL_S, ErrorBarrier
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.events import LogLine, SnapshotRequested
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.protocols.pioneer.session import Session
from botyard.servers.hub import Hub
from botyard.servers.pioneer import nullmodem
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.servers.throttledlog import ThrottledLog, watch_over
from botyard.servers.timeshare import TimeShare
from botyard.sim.simulation import Simulation
from tests.servers.senders import Sender

HELLO = frame(0) + frame(1) + frame(2) + command(1, 1) + command(230, 1)


def logged() -> tuple[logging.Logger, io.StringIO]:
    out = io.StringIO()
    log = logging.Logger("test")
    log.addHandler(logging.StreamHandler(out))
    return log, out


class Broken(Exception):
    pass


def raising(session: Session, name: str) -> None:
    """Make a method of a session raise from now on."""

    def broken(*_: object, **__: object) -> Any:
        raise Broken(name)

    object.__setattr__(session, name, broken)


def sips(line: nullmodem.Line) -> int:
    """Return the reports since the last call."""
    return sum(p.id == 0x32 for p in Parser().feed_bytes(line.take()))


POINTS = (
    "receive_data",
    "receive_eof",
    "attend",
    "handle_timer",
    "report",
    "send_report",
    "map_changed",
    "close",
    "next_timer",
    "data_to_send",
    "next_event",
)


@pytest.fixture
def world() -> tuple[NullModem, list[nullmodem.Line]]:
    sim = Simulation()
    for i in range(5):
        sim.add_robot("p3dx", f"r{i}")
    modem = NullModem(sim)
    lines = [modem.connect(f"r{i}") for i in range(5)]
    for line in lines:
        line.send(HELLO)
    modem.run(0.3)
    return modem, lines


def everything(modem: NullModem, line: nullmodem.Line) -> None:
    """Call all that loops do with a session."""
    line.send(command(11, 100))
    # the controller stops at a contact: it has work after each step
    line.send(command(44, 3))
    modem.run(0.3)
    # the world is paused: reports repeat
    modem.wait(0.5)
    line.connection.on_timer(modem.now)
    # another map: all clients are notified
    modem.control.do(USER, ClearMap())
    line.connection.report(modem.now)
    line.connection.close("the simulator is closing")
    line.hang_up()
    modem.run(0.2)


@pytest.mark.parametrize("point", POINTS)
def test_a_session_that_raises_anywhere_ends_alone(
    world: tuple[NullModem, list[nullmodem.Line]], point: str
) -> None:
    modem, (bad, *good) = world
    raising(bad.connection.session, point)
    for line in good:
        line.take()
    everything(modem, bad)
    assert bad.closed
    assert bad.connection.is_over
    assert bad.connection not in modem.desk.connections
    assert bad.connection not in modem._reporter.connections
    assert not modem.sim.robots["r0"].clients, "the robot is free"
    assert sum("internal error" in text for text in bad.log) == 1, bad.log
    for line in good:
        assert sips(line) >= 8, "the others had all their reports"
        assert not line.closed
        assert not any("internal error" in text for text in line.log)

    again = modem.connect("r0")
    again.send(HELLO)
    modem.run(0.3)
    assert sips(again) >= 2


@pytest.mark.parametrize("part", ["tap", "write", "request", "finish", "detach"])
def test_what_stands_around_a_session_may_raise_too(
    world: tuple[NullModem, list[nullmodem.Line]],
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modem, (bad, *good) = world
    connection = bad.connection

    def broken(*_: object) -> Any:
        raise Broken(part)

    if part == "tap":
        connection._tap = broken
    elif part == "write":
        connection._write = broken
    elif part == "request":
        monkeypatch.setattr(modem.desk, "request", broken)
        connection.session.emit(SnapshotRequested("x"))
    elif part == "finish":
        connection._finish = broken
    else:
        monkeypatch.setattr(modem.desk, "detach", broken)

    everything(modem, bad)
    assert connection.is_over
    assert not modem.sim.robots["r0"].clients
    assert sum("internal error" in text for text in bad.log) == 1, bad.log
    assert all(line.take() and not line.closed for line in good)


def test_the_trace_is_logged_once_and_nothing_is_called_again() -> None:
    log, out = logged()
    calls: list[str] = []

    def act() -> str:
        calls.append("act")
        raise Broken("why")

    def end() -> None:
        calls.append("end")
        raise Broken("even that")

    barrier = ErrorBarrier(log, "a peer", end)
    assert [barrier.call(act, otherwise="nothing") for _ in range(3)] == ["nothing"] * 3
    assert calls == ["act", "end"]
    text = out.getvalue()
    assert text.count("Traceback") == 1
    assert "Broken: why" in text


def test_what_goes_on_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    log, out = logged()
    barrier = ErrorBarrier(log, "a topic")

    def act(fails: bool) -> int:
        if fails:
            raise Broken("why")
        return 1

    assert [barrier.call(act, n != 2, otherwise=0) for n in range(5)] == [0, 0, 1, 0, 0]
    assert out.getvalue().count("internal error") == 1
    now[0] += REPEAT_LOG_INTERVAL_S
    barrier.run(act, True)
    text = out.getvalue()
    assert text.count("Traceback") == 1
    assert "internal error again (4 times more)" in text


def test_listeners_and_watchers_do_not_end_the_run() -> None:
    class Bad:
        def on_snapshot(self, now: float) -> None:
            raise Broken("a listener")

    class Good:
        steps = 0

        def on_snapshot(self, now: float) -> None:
            self.steps += 1

    def changed() -> None:
        raise Broken("a watcher")

    good = Good()

    async def go() -> int:
        hub = Hub(Simulation(), interval=None, duration=1.0)
        hub.attach(Bad())
        hub.attach(good)
        hub.watch(changed)
        return await hub.run()

    assert asyncio.run(go()) == 0
    assert good.steps == 10


def test_sessions_are_looked_after_although_that_failed_once() -> None:
    """One task serves wall time to all sessions."""

    async def go() -> list[float]:
        hub = Hub(Simulation(), interval=10.0)
        polls: list[float] = []

        def poll(now: float) -> None:
            polls.append(now)
            if len(polls) == 3:
                asyncio.get_running_loop().call_soon(hub.stop)
            raise Broken("once")

        hub.reporter.poll = poll  # type: ignore[method-assign]
        await asyncio.wait_for(hub.run(), 60.0)
        return polls

    assert len(asyncio.run(go())) >= 3


def test_bytes_that_cannot_be_worked_off_cost_their_client_alone() -> None:
    """An exception in one client's turn does not stop the turns of others."""

    async def go() -> tuple[Sender, bytes, bytes]:
        turns = TimeShare(0.2)
        told: list[tuple[str, bytes]] = []

        def bad(data: bytes) -> None:
            raise Broken("in a turn")

        one, other = Sender(turns, told, "bad", bad), Sender(turns, told, "good")
        turns.spend(0.06)
        much = b"x" * 100_000
        one.data_received(much)
        other.data_received(much)
        while len(other.all()) < len(much):
            await asyncio.sleep(0.001)
        one.data_received(b"z")
        third = Sender(turns, told, "third")
        # Other clients have turns first, so the data of `third` waits.
        third.data_received(much)
        while len(third.all()) < len(much):
            await asyncio.sleep(0.001)
        return one, one.all(), other.all()

    one, of_one, of_other = asyncio.run(asyncio.wait_for(go(), 100.0))
    assert one.ends == 1 and one.line.is_aborted
    assert not of_one and of_other == b"x" * 100_000


def in_loop(act: Callable[[], Any]) -> None:
    async def main() -> None:
        await act()

    asyncio.run(main())


def test_a_thousand_lines_are_one_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThrottledLog, "PERIOD", 0.05)
    log, out = logged()

    async def act() -> None:
        lines = ThrottledLog(log)
        for n in range(1000):
            lines.log(logging.WARNING, "client %d refused: %s", n, "100 %")
        assert out.getvalue() == "client 0 refused: 100 %\n"
        while out.getvalue().count("\n") < 2:
            await asyncio.sleep(0.01)
        assert (
            out.getvalue().splitlines()[1]
            == "client 999 refused: 100 % (and 998 more like this)"
        )
        await asyncio.sleep(0.2)
        lines.log(logging.WARNING, "client %d refused: %s", 1000, "so")
        assert out.getvalue().splitlines()[2] == "client 1000 refused: so"
        several = ThrottledLog(log, burst=3)
        for n in range(10):
            several.log(logging.INFO, "%d", n)
        assert out.getvalue().splitlines()[3:] == ["0", "1", "2"]

    in_loop(act)


def test_what_the_system_refuses_leaves_no_trace() -> None:
    log, out = logged()

    async def act() -> None:
        loop = asyncio.get_running_loop()
        watch_over(loop, log)
        for _ in range(100):
            loop.call_exception_handler(
                {
                    "message": "accept failed",
                    "exception": OSError(24, "Too many open files"),
                }
            )

        assert out.getvalue() == "accept failed: Too many open files\n"
        watch_over(loop, log)

        def bad() -> None:
            raise Broken("in a callback")

        for _ in range(3):
            loop.call_soon(bad)
        await asyncio.sleep(0.01)
        text = out.getvalue()
        assert text.count("Traceback") == 1
        assert "Broken: in a callback" in text

    in_loop(act)


def test_a_line_of_a_session_needs_no_format() -> None:
    """Names and texts may contain a percent sign."""
    sim = Simulation()
    sim.add_robot("p3dx", "50%d")
    modem = NullModem(sim, PioneerSettings())
    line = modem.connect("50%d")
    line.send(HELLO)
    line.connection.session.emit(LogLine(logging.INFO, "100 %s"))  # type: ignore[arg-type]
    modem.run(0.1)
    assert "50%d: session open" in line.log
    assert "50%d: 100 %s" in line.log
