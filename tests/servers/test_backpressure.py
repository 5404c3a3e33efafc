"""A client that sends too much, reads too little, or comes a hundred times costs its
own session only.
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
from botyard.servers.pioneer.intake import (
    BURST,
    BYTES_PER_TURN,
    CHUNK,
    ITERATION_BUDGET_S,
    SHARED_BURST,
    Inlet,
    Intake,
)
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE, wait


class Sender:
    """A client, seen from the server."""

    def __init__(
        self, intake: Intake, told: list[tuple[str, bytes]], name: str
    ) -> None:
        self.name = name
        self.told = told
        self.reads = True
        self.inlet = Inlet(intake, self._work, self._pause, self._resume)

    def _work(self, data: bytes) -> None:
        self.told.append((self.name, data))

    def _pause(self) -> None:
        assert self.reads
        self.reads = False

    def _resume(self) -> None:
        assert not self.reads
        self.reads = True

    def all(self) -> bytes:
        return b"".join(data for name, data in self.told if name == self.name)


def in_loop(act: Callable[[], object]) -> None:
    async def main() -> None:
        result = act()
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(main())


def test_what_comes_slowly_is_worked_off_at_once() -> None:
    async def act() -> None:
        told: list[tuple[str, bytes]] = []
        a = Sender(Intake(lambda: 0.0), told, "a")
        a.inlet.take(b"x" * int(BURST))
        assert a.all() == b"x" * int(BURST)
        assert all(len(data) <= CHUNK for _, data in told)
        a.inlet.take(b"y" * int(SHARED_BURST))
        assert a.all()[int(BURST) :] == b"y" * int(SHARED_BURST), (
            "one alone may have what is for all"
        )
        assert a.reads
        a.inlet.take(b"z" * 100_000)
        assert b"z" not in a.all()
        assert not a.reads
        b = Sender(a.inlet._intake, told, "b")
        b.inlet.take(b"x" * int(BURST))
        assert b.all() == b"x" * int(BURST), "and others still have their own"

    in_loop(act)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=6))
def test_nothing_is_lost_and_nothing_overtaken(sizes: list[int]) -> None:
    async def act() -> None:
        told: list[tuple[str, bytes]] = []
        a = Sender(Intake(), told, "a")
        sent = b""
        for n, size in enumerate(sizes):
            # no more comes from a client that is not read
            while not a.reads:
                await asyncio.sleep(0.001)
            data = bytes([n]) * size
            sent += data
            a.inlet.take(data)

        while not a.reads:
            await asyncio.sleep(0.001)
        assert a.all() == sent

    in_loop(act)


def test_those_who_wait_take_turns() -> None:
    async def act() -> None:
        intake = Intake(lambda: 0.0)
        told: list[tuple[str, bytes]] = []
        a, b, c = (Sender(intake, told, n) for n in "abc")
        a.inlet.take(b"x" * 2 * int(SHARED_BURST))
        b.inlet.take(b"x" * 2 * int(SHARED_BURST))
        assert not (a.reads or b.reads)
        assert told == []
        c.inlet.take(b"small")
        assert told == [("c", b"small")], "who sends little does not wait"
        while not (a.reads and b.reads):
            await asyncio.sleep(0.001)
        turns = [name for name, data in told if name != "c"]
        slices = [
            "".join(turns[i : i + BYTES_PER_TURN // CHUNK])
            for i in range(0, len(turns), BYTES_PER_TURN // CHUNK)
        ]
        assert [set(s) for s in slices[:10]] == [{"a"}, {"b"}] * 5
        a.inlet.take(b"y" * 2 * int(SHARED_BURST))
        a.inlet.close()
        b.inlet.take(b"y" * 2 * int(SHARED_BURST))
        before = len(told)
        while not b.reads:
            await asyncio.sleep(0.001)
        assert {name for name, _ in told[before:]} == {"b"}, "who is gone has no turn"

    in_loop(act)


class Clock:
    """Time that only work takes."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("freed", [0.0, 1.0])
def test_what_costs_much_waits_however_few_bytes_it_has(freed: float) -> None:
    """The budget counts the time that the work took; steps that a client may ask for at
    any pace are not counted.
    """

    async def act() -> None:
        clock = Clock()
        intake = Intake(clock)
        done: list[bytes] = []

        def work(data: bytes) -> None:
            clock.now += 0.01 * (1.0 - freed)
            done.append(data)

        reads = [True]
        inlet = Inlet(
            intake, work, lambda: reads.append(False), lambda: reads.append(True)
        )
        inlet.take(b"x" * 10 * CHUNK)
        if freed:
            assert len(done) == 10
            return

        assert len(done) <= 5, (
            "what is its own, what is for all, and the one that showed what it costs"
        )
        assert not reads[-1]
        while not reads[-1]:
            await asyncio.sleep(0.001)
        assert b"".join(done) == b"x" * 10 * CHUNK
        inlet.take(b"y")
        assert not reads[-1], "it still owes what it has used"

    in_loop(act)


def test_who_hangs_up_while_it_waits_is_gone_at_once() -> None:
    async def act() -> None:
        intake = Intake()
        cut: list[str] = []
        worked: list[int] = []
        is_gone = [False]
        inlet = Inlet(
            intake,
            lambda data: worked.append(len(data)),
            lambda: None,
            lambda: None,
            lambda: is_gone[0],
            lambda: cut.append("a"),
        )
        inlet.take(b"x" * 10_000_000)
        is_gone[0] = True
        while not cut:
            await asyncio.sleep(0.001)
        assert sum(worked) < 1_000_000
        before = len(worked)
        inlet.take(b"more")
        await asyncio.sleep(0.05)
        assert len(worked) == before
        assert cut == ["a"]

    in_loop(act)


def sent_until_held_up(flood: socket.socket) -> int:
    """Bytes that the other side and the system take before they take no more for a
    while.
    """
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
    """Each has a little that is worked off as it comes; steps and reports come in
    between.
    """

    async def act() -> None:
        clock = Clock()
        intake = Intake(clock)
        told: list[tuple[str, bytes]] = []

        def work(name: str, data: bytes) -> None:
            clock.now += 0.4 * ITERATION_BUDGET_S
            told.append((name, data))

        reads: dict[str, bool] = {}

        def inlet(name: str) -> Inlet:
            return Inlet(
                intake,
                lambda data: work(name, data),
                lambda: reads.update({name: False}),
                lambda: reads.update({name: True}),
            )

        names = [f"{k:03}" for k in range(100)]
        inlets = [inlet(name) for name in names]
        for name, one in zip(names, inlets, strict=True):
            one.take(name.encode())
            one.take(b"!")

        assert len(told) == 3, "the third one was too much"
        gone, broken = inlets[50], inlets[60]
        gone.close()
        broken._work = lambda _: 1 / 0
        turns = most = 0
        names.remove("050")
        names.remove("060")
        whole = sum(len(name) + 1 for name in names)
        async with asyncio.timeout(PATIENCE):
            while sum(len(data) for _, data in told) < whole:
                before = len(told)
                await asyncio.sleep(0)
                most, turns = max(most, len(told) - before), turns + 1

        assert most == 3
        assert turns >= len(names) / 3
        for name in names:
            assert (
                b"".join(data for n, data in told if n == name) == name.encode() + b"!"
            ), "nothing is lost, in order"

        assert all(reads.get(name, True) for name in names)
        assert told[4:40] == [(name, name.encode() + b"!") for name in names[2:38]], (
            "who came first is first"
        )

    in_loop(act)


def test_many_who_end_at_the_same_moment_do_so_in_several_turns_of_the_loop() -> None:
    async def act() -> None:
        clock = Clock()
        intake = Intake(clock)
        ended: list[int] = []

        def end(k: int) -> None:
            clock.now += 0.4 * ITERATION_BUDGET_S
            ended.append(k)

        for k in range(30):
            intake.soon(lambda k=k: end(k))  # type: ignore[misc]
        assert ended == [0, 1, 2]
        while len(ended) < 30:
            before = len(ended)
            await asyncio.sleep(0)
            assert len(ended) - before <= 3

        assert ended == list(range(30))

    in_loop(act)
