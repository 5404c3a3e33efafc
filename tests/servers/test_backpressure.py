"""A client that sends too much, reads too little, or connects a hundred times affects
only its own session.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.clients.pioneer import PioneerClient
from botyard.protocols.pioneer.packet import command, frame
from botyard.servers import streampeer
from botyard.servers.sockets import READ_SIZE
from botyard.servers.streampeer import PIECE
from botyard.servers.timeshare import BURST_S, TimeShare
from tests.ports import free_port
from tests.running import running
from tests.servers.senders import BURST, LONGEST_S, Clock, Sender
from tests.waiting import PATIENCE, wait


def in_loop(act: Callable[[], object]) -> None:
    async def main() -> None:
        result = act()
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(main())


def test_what_comes_slowly_is_worked_off_at_once() -> None:
    """Other clients may flood:

    each has its own budget, and a single one the shared budget.
    """

    async def act() -> None:
        clock = Clock()
        turns = TimeShare(0.2, clock, LONGEST_S)
        told: list[tuple[str, bytes]] = []

        def work(data: bytes) -> None:
            clock.now += len(data) * 1e-7

        a = Sender(turns, told, "a", work)
        a.data_received(b"x" * BURST)
        assert a.all() == b"x" * BURST
        assert all(len(data) <= PIECE for _, data in told)
        a.data_received(b"y" * BURST)
        assert not a.inbox, "one alone may have what is for all"
        turns.spend(2 * BURST_S)
        a.data_received(b"z" * BURST)
        assert len(a.inbox) == BURST, "it is used up"
        b = Sender(turns, told, "b", work)
        b.data_received(b"x" * 1000)
        assert b.all() == b"x" * 1000, "and others still have their own"
        a.drop()
        assert (a.ends, a.line.is_aborted, turns.is_idle) == (1, True, True)

    in_loop(act)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=6))
def test_nothing_is_lost_and_nothing_overtaken(sizes: list[int]) -> None:
    async def act() -> None:
        told: list[tuple[str, bytes]] = []
        a = Sender(TimeShare(0.2), told, "a")
        sent = b""
        for n, size in enumerate(sizes):
            # A client whose socket is not read can send no more.
            while not a.line.reads:
                await asyncio.sleep(0.001)
            data = bytes([n]) * size
            sent += data
            a.data_received(data)

        while a.inbox:
            await asyncio.sleep(0.001)
        assert a.all() == sent and a.line.reads

    in_loop(act)


def test_those_who_wait_take_turns() -> None:
    async def act() -> None:
        clock = Clock()
        turns = TimeShare(0.5, clock, LONGEST_S)
        told: list[tuple[str, bytes]] = []

        def work(_: bytes) -> None:
            clock.now += 0.001

        a, b = (Sender(turns, told, n, work) for n in "ab")
        turns.spend(1.1 * BURST_S)
        for one in (a, b):
            one.data_received(b"x" * 2 * READ_SIZE)
        assert not (a.line.reads or b.line.reads) and not told
        c = Sender(turns, told, "c", work)
        c.data_received(b"small")
        assert told == [("c", b"small")], "who sends little does not wait"
        while len(told) < 50:
            await asyncio.sleep(0.001)
        order = "".join(name for name, _ in told[1:41])
        assert order in ("ab" * 20, "ba" * 20)
        a.drop()
        before = len(told)
        while len(told) < before + 10:
            await asyncio.sleep(0.001)
        assert {name for name, _ in told[before:]} == {"b"}, "who is gone has no turn"

    in_loop(act)


@pytest.mark.parametrize("freed", [0.0, 1.0])
def test_what_costs_much_waits_however_few_bytes_it_has(freed: float) -> None:
    """The budget counts the time of the work.

    Steps that a client may request at any rate are not counted.
    """

    async def act() -> None:
        clock = Clock()
        told: list[tuple[str, bytes]] = []

        def work(data: bytes) -> None:
            clock.now += 0.01 * (1.0 - freed)

        a = Sender(TimeShare(0.5, clock, LONGEST_S), told, "a", work)
        a.data_received(b"x" * 10 * PIECE)
        if freed:
            assert len(told) == 10
            return

        assert len(told) <= 2, "one shows what it costs, and one is over the limit"
        while a.inbox:
            await asyncio.sleep(0.001)
        assert a.all() == b"x" * 10 * PIECE
        a.data_received(b"y")
        assert a.inbox, "it still owes what it has used"

    in_loop(act)


def test_who_hangs_up_while_it_waits_is_gone_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its disconnection is noticed although nothing is read from it."""
    monkeypatch.setattr(streampeer, "HANGUP_POLL_S", 0.01)

    async def act() -> None:
        ours, theirs = socket.socketpair()
        told: list[tuple[str, bytes]] = []
        a = Sender(TimeShare(0.2), told, "a", lambda _: time.sleep(0.0005))
        a.line._extra["socket"] = ours  # type: ignore[attr-defined]
        with ours, theirs:
            a.data_received(b"x" * 10_000_000)
            await asyncio.sleep(0.05)
            assert not a.ends, "it is still there"
            theirs.close()
            async with asyncio.timeout(PATIENCE):
                while not a.ends:
                    await asyncio.sleep(0.001)

        assert len(a.all()) < 10_000_000 and a.line.is_aborted
        before = len(told)
        a.data_received(b"more")
        await asyncio.sleep(0.05)
        assert (len(told), a.ends, a._timer) == (before, 1, None)

    in_loop(act)


def test_deadlines_are_one_timer_and_count_after_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No timer without a deadline; a later deadline moves it; a client that has sent
    data is not late.
    """
    monkeypatch.setattr(streampeer, "LOOK_AGAIN_S", 0.005)

    async def act() -> None:
        turns = TimeShare(0.2)
        a = Sender(turns, [], "a")
        assert a._timer is None
        a.give(0.02)
        first = a._timer
        a.give(0.1)
        assert a._timer is first, "a timer that comes too early looks and waits on"
        a.give(0.01)
        assert a._timer is not first
        turns.spend(1000.0)
        a.own = a.own_time = None
        a.data_received(b"x")
        await asyncio.sleep(0.05)
        assert not a.ends and a.inbox, "its bytes wait for us"
        a.inbox.clear()
        async with asyncio.timeout(PATIENCE):
            while not a.ends:
                await asyncio.sleep(0.001)

        assert a._timer is None

    in_loop(act)


def test_the_last_words_are_written_but_not_for_ever() -> None:
    async def act() -> None:
        a = Sender(TimeShare(0.2), [], "a")
        assert a.outlet is not None
        a.pause_writing()
        a.outlet.write(b"x")
        a.finish(0.02)
        a.data_received(b"more")
        assert not a.inbox and not a.line.is_aborted
        async with asyncio.timeout(PATIENCE):
            while not a.ends:
                await asyncio.sleep(0.001)

        assert a.line.is_aborted

    in_loop(act)


def sent_until_held_up(flood: socket.socket) -> int:
    """Return the number of bytes that the peer and the system accept before they block."""
    flood.settimeout(0.1)
    sent = 0
    try:
        while sent < 500_000_000:
            sent += flood.send(command(11, 100) * 20_000)
    except TimeoutError:
        pass

    return sent


@pytest.mark.peer
def test_a_flood_is_held_up_and_the_others_go_on(tmp_path: Path) -> None:
    port = free_port(3)
    with (
        running("--nomap", "-r", "p3dx", "-r", "p3dx", "--no-gui", "-p", str(port)) as (
            process,
            _,
        ),
        PioneerClient(port=port + 1) as other,
        socket.create_connection(("127.0.0.1", port), PATIENCE) as flood,
    ):
        for n in (0, 1, 2):
            flood.sendall(frame(n))
        flood.sendall(command(1, 1))
        assert sent_until_held_up(flood) < 100_000_000, (
            "the server keeps little: the system's own buffers fill up"
        )
        for _ in range(10):
            assert other.update()
        flood.settimeout(PATIENCE)
        flood.recv(1 << 16)
        reports = 0
        while reports < 5:
            reports += flood.recv(1 << 16).count(b"\xfa\xfb")
        assert process.poll() is None


@pytest.mark.peer
def test_a_hundred_connections_to_one_robot() -> None:
    port = free_port(3)
    with (
        running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)) as (process, _),
        PioneerClient(port=port) as first,
    ):
        others = [
            socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(100)
        ]
        for s in others:
            assert s.recv(10) == b"", "refused at once"
        for _ in range(5):
            assert first.update()
        for s in others:
            s.close()
        assert process.poll() is None


@pytest.mark.peer
def test_half_a_goodbye_is_one() -> None:
    port = free_port(3)
    with running("--nomap", "-r", "p3dx", "--no-gui", "-p", str(port)):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
            for n in (0, 1, 2):
                s.sendall(frame(n))
            s.sendall(command(1, 1))
            s.settimeout(PATIENCE)
            s.recv(100)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass

        with PioneerClient(port=port) as robot:
            assert robot.update()


@pytest.mark.peer
def test_a_talkative_client_leaves_room_in_the_log(tmp_path: Path) -> None:
    port, file = free_port(3), tmp_path / "a.log"
    text = b"\x0chello there\0"
    with running(
        "--nomap", "-r", "p3dx:ann", "--no-gui", "-p", str(port), "-l", str(file)
    ):
        with PioneerClient(port=port) as robot:
            for _ in range(10):
                robot.send_raw(frame(238, b"\x2b" + text) * 300)
                robot.update()

            time.sleep(0.5)

            robot.send_raw(frame(238, b"\x2b\x05last\0"))
            wait(lambda: robot.update() and "last" in file.read_text())

        log = file.read_text()
        left_out = sum(
            map(
                int,
                re.findall(r"ann: (\d+) log lines about this client were dropped", log),
            )
        )
        assert left_out > 100
        assert log.count("hello there") + left_out >= 2990


def test_many_who_begin_at_the_same_moment_are_worked_off_in_several_turns_of_the_loop() -> (
    None
):
    """Each sends a little that is processed at once; steps and reports run in between."""

    async def act() -> None:
        clock = Clock()
        turns = TimeShare(0.2, clock, LONGEST_S)
        told: list[tuple[str, bytes]] = []

        def work(_: bytes) -> None:
            clock.now += 0.4 * LONGEST_S

        names = [f"{k:03}" for k in range(100)]
        senders = {name: Sender(turns, told, name, work) for name in names}
        for name, one in senders.items():
            one.data_received(name.encode())
            one.data_received(b"!")

        assert len(told) == 3, "the third one was too much"
        senders["050"].drop()
        senders["060"].work = lambda _: 1 / 0
        rounds = most = 0
        names.remove("050")
        names.remove("060")
        whole = sum(len(name) + 1 for name in names)
        async with asyncio.timeout(PATIENCE):
            while sum(len(data) for _, data in told) < whole:
                before = len(told)
                await asyncio.sleep(0)
                most, rounds = max(most, len(told) - before), rounds + 1

        assert most == 3
        assert rounds >= len(names) / 3
        for name in names:
            assert senders[name].all() == name.encode() + b"!", "in order"

        assert senders["060"].ends == 1
        first = [name for name, _ in told[4:40]]
        assert first == sorted(first), "who came first is first"

    in_loop(act)


def test_many_who_end_at_the_same_moment_do_so_in_several_turns_of_the_loop() -> None:
    async def act() -> None:
        clock = Clock()
        turns = TimeShare(0.2, clock, LONGEST_S)
        ended: list[int] = []

        def end(k: int) -> None:
            clock.now += 0.4 * LONGEST_S
            ended.append(k)

        for k in range(30):
            turns.soon(lambda k=k: end(k))  # type: ignore[misc]
        assert ended == [0, 1, 2]
        while len(ended) < 30:
            before = len(ended)
            await asyncio.sleep(0)
            assert len(ended) - before <= 3

        assert ended == list(range(30))

    in_loop(act)
