"""Service to honest clients under floods of one kind of request."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from bench.simulator_process import PORT, Honest, Simulator, opened
from botyard.protocols.pioneer.packet import command, frame


def _flooded(
    what: str,
    seconds: float,
    robots: Sequence[str],
    honest: int,
    attack: Callable[[float], object],
) -> None:
    """Measure the gaps of honest clients alone, and while `attack(seconds)` runs."""
    with Simulator(
        "-m", "office", "--start", "random", "--metrics-port", str(PORT - 1), *robots
    ) as sim:
        alone = Honest(list(range(PORT, PORT + honest)))
        alone.start()
        time.sleep(min(seconds, 10.0))
        print(f"{what}: {honest} honest clients alone: {alone.end()}", flush=True)
        time.sleep(1.0)
        clients = Honest(list(range(PORT, PORT + honest)))
        clients.start()
        begin, used, waited = time.monotonic(), sim.cpu(), sim.waited()
        did = attack(seconds)
        took = time.monotonic() - begin
        lines = sim.log.read_text(errors="replace").count("\n")
        print(
            f"    {did}; {took:.0f} s, CPU {(sim.cpu() - used) / took:.2f}, "
            f"{(sim.waited() - waited) / took:.2f} of the time in the run queue; "
            f"honest: {clients.end()}; memory {sim.memory():.0f} MB, "
            f"{lines} lines in the log, exceptions {sim.faults()}, status {sim.stop()}",
            flush=True,
        )


def _beside(code: str, seconds: float) -> str:
    """Return the output of a process of attackers when it ends."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from bench.floods import {code.partition('(')[0]}; print({code})",
        ],
        capture_output=True,
        text=True,
        timeout=seconds + 300.0,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip()[-300:]


def send_for(first: int, count: int, seconds: float, kind: str) -> str:
    """Let clients send one kind of command as fast as the simulator reads it, in a process of
    their own.
    """
    rng = random.Random(1)

    def packets() -> bytes:
        if kind == "reconfigure":
            return (
                command(231, rng.randrange(-180, 0))
                + command(232, rng.randrange(1, 181))
                + command(233, rng.randrange(1, 300))
            )

        x, y = rng.choice(
            [
                (6000, 14200),
                (rng.randrange(0, 50_000), rng.randrange(0, 30_000)),
                (-(2**31), 2**31 - 1),
            ]
        )
        return frame(
            224,
            b"\0"
            + x.to_bytes(4, "little", signed=True)
            + y.to_bytes(4, "little", signed=True)
            + b"\0\0\0\0",
        )

    sockets = [opened(port) for port in range(first, first + count)]
    for s in sockets:
        s.sendall(command(230, 1))
        s.setblocking(False)

    stock = [b"".join(packets() for _ in range(50)) for _ in range(200)]
    rest: dict[socket.socket, bytes] = {}
    sent, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for s in sockets:
            data = rest.pop(s, b"") or rng.choice(stock)
            with contextlib.suppress(BlockingIOError):
                n = s.send(data)
                sent, data = sent + n, data[n:]

            if data:
                rest[s] = data
            with contextlib.suppress(BlockingIOError):
                s.recv(1 << 20)

        time.sleep(0.001)

    for s in sockets:
        s.close()
    return f"the simulator read {sent / seconds / 1000.0:.0f} kB/s of {count} clients"


def come_and_go(port: int, at_once: int, a_second: float, seconds: float) -> str:
    """Let clients of a factory come and go, in a process of their own: first a burst of
    clients, then clients at a rate.
    """
    hello = (
        frame(0) + frame(1) + frame(2) + command(1, 1) + command(4, 1) + command(230, 1)
    )
    selector = selectors.DefaultSelector()
    visits, served, most, turn = 0, 0, 0.0, 0.0
    born: dict[socket.socket, float] = {}

    def come() -> None:
        nonlocal visits
        s = socket.create_connection(("127.0.0.1", port), 30)
        s.sendall(hello)
        s.setblocking(False)
        born[s] = time.monotonic()
        selector.register(s, selectors.EVENT_READ)
        visits += 1

    def go(s: socket.socket) -> None:
        selector.unregister(s)
        born.pop(s, None)
        s.close()

    known: set[socket.socket] = set()
    for _ in range(at_once):
        come()
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        for key, _ in selector.select(0.01):
            s: socket.socket = key.fileobj  # type: ignore[assignment]
            try:
                data = s.recv(1 << 16)
            except OSError:
                data = b""

            if not data:
                go(s)
                known.discard(s)
            elif s not in known:
                known.add(s)
                served += 1
                most = max(most, time.monotonic() - born[s])
                if a_second:
                    go(s)
                    known.discard(s)

        if a_second and time.monotonic() - turn > 1.0 / a_second:
            turn = time.monotonic()
            with contextlib.suppress(OSError):
                come()

    for s in list(born):
        go(s)
    return (
        f"{visits} visits, {served} of them got a robot, the last one after "
        f"{most:.1f} s"
    )


RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which `close` resets the connection."""


def misbehave(first: int, count: int, seconds: float) -> str:
    """Let many clients send velocities, rubbish, halves of packets and floods, read nothing,
    and leave at any time, in a process of their own.
    """
    rng = random.Random(1)
    drive = command(11, 200) + command(21, 10)
    hello = frame(0) + frame(1) + frame(2) + command(1, 1) + command(4, 1)
    sockets: dict[int, socket.socket | None] = dict.fromkeys(
        range(first, first + count)
    )
    visits = sent = left = 0

    def rubbish() -> bytes:
        kind = rng.randrange(4)
        if kind == 0:
            return rng.randbytes(rng.randrange(1, 300))
        if kind == 1:
            return (drive * 3)[: rng.randrange(1, 40)]
        if kind == 2:
            return drive * 1000
        return drive + command(18) + frame(rng.randrange(256))

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for port in rng.sample(sorted(sockets), max(1, count // 8)):
            s = sockets[port]
            with contextlib.suppress(OSError):
                if s is None:
                    s = sockets[port] = socket.create_connection(("127.0.0.1", port), 5)
                    s.setblocking(False)
                    # A small buffer is full after some reports.
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    s.sendall(hello)
                    visits += 1
                elif rng.random() < 0.1:
                    if rng.random() < 0.5:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    s.close()
                    sockets[port], left = None, left + 1
                else:
                    sent += s.send(drive if rng.random() < 0.7 else rubbish())
                    if port % 3:
                        s.recv(1 << 16)

        time.sleep(0.002)

    for s in sockets.values():
        if s is not None:
            s.close()
    return f"{visits} visits, {left} left at once, {sent / seconds / 1000:.0f} kB/s"


def crowd(seconds: float = 20.0) -> None:
    """300 clients that are read together misbehave in each way, among 50 honest ones."""
    _flooded(
        "crowd",
        seconds,
        ["-r", "p3dx"] * 350,
        50,
        lambda t: _beside(f"misbehave({PORT + 50}, 300, {t})", t),
    )


def reconfigure(seconds: float = 20.0) -> None:
    """100 clients send changes of their laser settings as fast as the simulator reads them."""
    _flooded(
        "laser settings",
        seconds,
        ["-r", "p3dx"] * 150,
        50,
        lambda t: _beside(f"send_for({PORT + 50}, 100, {t}, 'reconfigure')", t),
    )


def poses(seconds: float = 20.0) -> None:
    """100 clients put their robots on top of each other, at random places, and out of the
    world.
    """
    _flooded(
        "poses",
        seconds,
        ["-r", "p3dx"] * 150,
        50,
        lambda t: _beside(f"send_for({PORT + 50}, 100, {t}, 'poses')", t),
    )


def factory(seconds: float = 20.0) -> None:
    """Clients of a factory come and go 18 times a second."""
    _flooded(
        "factory",
        seconds,
        ["-r", "p3dx"] * 50 + ["-R", "p3dx"],
        50,
        lambda t: _beside(f"come_and_go({PORT + 50}, 0, 18, {t})", t),
    )


def factory1000(seconds: float = 40.0) -> None:
    """A thousand clients of a factory come at once, and leave at once."""

    def attack(t: float) -> str:
        did = _beside(f"come_and_go({PORT + 50}, 950, 0, {t})", t)
        time.sleep(5.0)
        return did

    _flooded(
        "a thousand clients at once",
        seconds,
        ["-r", "p3dx"] * 50 + ["-R", "p3dx"],
        50,
        attack,
    )
