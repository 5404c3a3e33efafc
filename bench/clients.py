"""CPU of the simulator and gaps between reports with 10 … 10,000 robots, one TCP client
each (reports at 10 Hz, a command a second).

The clients are another process on the same cores, so that only the simulator's time is
counted. With lasers (181 readings): columbia.map with p3dx-sh where the shared data is,
which is the recorded load of the original program; else the shipped warehouse. Without
lasers: an open square with walls, 4 m² a robot; the 16 sonar beams stay on, as after
each handshake.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.common import map_path
from bench.reference import Yardstick
from botyard.protocols.pioneer.commands import P
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.protocols.pioneer.reports import Sip

SECONDS, WARM_UP, PATIENCE = 10.0, 3.0, 240.0
PORT = 20001
"""Port of the first robot."""
REAL_TIME = 0.99
"""Ratio of simulated to wall time that counts as real time."""
SPARE_FILES = 200
"""Number of files that the simulator opens besides a port and a client a robot."""
CLOCKS, CLOCK_RATE = 5, 10
"""Number of robots that turn in place, and their turn rate, deg/s.

Their headings show how much simulated time passes: an overloaded simulator also repeats
reports, so that the number of reports does not.
"""
HEADER = b"\xfa\xfb\x56\x32"
"""Beginning of a SIP with 16 sonar readings."""


class Load(NamedTuple):
    """Number of clients, and the limits that the simulator must keep with them.

    Attributes
    ----------
    clients : int
        Number of clients.
    goal : float
        Wanted CPU time for a simulated second, s.
    laser : bool
        Whether each client reads a laser.
    original : float or None
        Recorded CPU time of the original program for a simulated second, s.
    gap : float or None
        Wanted longest gap between two reports, s; the run must then be in real time.
    """

    clients: int
    goal: float
    laser: bool = True
    original: float | None = None
    gap: float | None = None


LOADS = [
    Load(10, 0.022, original=0.09),
    Load(50, 0.045, original=0.40),
    Load(200, 0.14, original=1.8),
    Load(1000, 0.7, gap=0.2),
    Load(2000, 1.4),
    Load(10_000, 1.0, laser=False),
]


class Seen(NamedTuple):
    """Result of a run.

    Attributes
    ----------
    cpu : float
        CPU time of the simulator for a second, s.
    ready, connected : float
        Time until the simulator was ready, and then until all clients had reports, s.
    memory : float
        Memory of the simulator, MB.
    ratio : float
        Simulated time for each second of wall time, s.
    median, longest : float
        Gaps between two reports of a client, s.
    """

    cpu: float
    ready: float
    connected: float
    memory: float
    ratio: float
    median: float
    longest: float


def raise_file_limit() -> int:
    """Raise the limit of open files to its maximum, and return it."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def arena(robots: int, folder: str) -> str:
    """Write the map of an open square with walls, and return its path."""
    edge = math.ceil(math.sqrt(robots)) * 1000
    corners = [(-edge, -edge), (edge, -edge), (edge, edge), (-edge, edge)]
    walls = zip(corners, corners[1:] + corners[:1], strict=True)
    path = Path(folder, "arena.map")
    lines = "\n".join(f"{a} {b} {c} {d}" for (a, b), (c, d) in walls)
    path.write_text(f"2D-Map\nNumLines: 4\nLINES\n{lines}\nDATA\n")
    return str(path)


def serve(world: str, port: int, robots: int) -> subprocess.Popen[str]:
    """Start the simulator, and wait for its "ready" line."""
    args = ["--noninteractive", "--no-crash-restart", "--json", "--start", "random"]
    process = subprocess.Popen(
        [sys.executable, "-m", "botyard", "-m", world, *args, "-p", str(port)]
        + ["-r", "p3dx-sh"] * robots,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["ready"]
    return process


def drive(port: int, robots: int, laser: bool, seconds: float) -> None:
    """Drive all clients in one loop: send commands, read, count SIPs and the gaps between them."""
    raise_file_limit()
    selector = selectors.DefaultSelector()
    orders = command(1, 1) + command(4, 1) + laser * command(230, 1)
    sockets = []
    for i in range(robots):
        s = socket.create_connection(("127.0.0.1", port + i), PATIENCE)
        for n in (0, 1, 2):
            s.sendall(frame(n))
        s.sendall(orders)
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ, i)
        sockets.append(s)

    clocks = [Clock() for _ in range(min(CLOCKS, robots))]

    def read(last: list[float], gaps: list[float]) -> None:
        """Read the data that has arrived at all sockets."""
        for key, _ in selector.select(0.05):
            data = os.read(key.fd, 65536)
            if key.data < len(clocks):
                clocks[key.data].read(data)
            if HEADER in data:
                moment = time.monotonic()
                if last[key.data]:
                    gaps.append(moment - last[key.data])
                last[key.data] = moment

    last = [0.0] * robots
    began = time.monotonic()
    while not all(last):
        assert time.monotonic() - began < PATIENCE, "some clients have no reports"
        read(last, [])
    print("connected", flush=True)
    gaps: list[float] = []
    began, told = time.monotonic(), 0
    before: list[float] = []
    while (passed := time.monotonic() - began) < seconds + WARM_UP:
        read(last, gaps)
        if not before and passed > WARM_UP:
            before = [clock.passed for clock in clocks]
            measured_from = time.monotonic()
            gaps.clear()
        # Commands are spread over the second, as independent clients send them.
        while told < int(passed * robots):
            i, turn = told % robots, CLOCK_RATE if told % 2 else -CLOCK_RATE
            orders = command(11, 200) + command(21, turn)
            # The clock's robot stands still only if another robot is at its place.
            if i < len(clocks):
                orders = command(21, CLOCK_RATE)
            sockets[i].send(orders)
            told += 1

    took = time.monotonic() - measured_from
    turned = [c.passed - b for c, b in zip(clocks, before, strict=True)]
    gaps.sort()
    print(json.dumps([max(turned) / took, gaps[len(gaps) // 2], gaps[-1]]))


class Clock:
    """Simulated time, read from the heading of a robot that turns in place."""

    def __init__(self) -> None:
        self._parser = Parser()
        self._last: int | None = None
        self.passed = 0.0
        """Simulated time so far, s."""

    def read(self, data: bytes) -> None:
        """Read the bytes that a client received."""
        for packet in self._parser.feed_bytes(data):
            if packet.id == P.SIP:
                now = Sip.decode(packet).th
                if self._last is not None:
                    # A SIP of a p3dx reports the heading in units of 1/4096 turn.
                    turned = (now - self._last + 2048) % 4096 - 2048
                    self.passed += turned * 360 / 4096 / CLOCK_RATE
                self._last = now


def measure(load: Load, port: int) -> Seen:
    """Run a simulator and its clients, and return the figures of the run."""
    ticks = os.sysconf("SC_CLK_TCK")
    with tempfile.TemporaryDirectory() as folder:
        world = map_path()[0] if load.laser else arena(load.clients, folder)
        began = time.monotonic()
        process = serve(world, port, load.clients)
        ready = time.monotonic() - began

    def used() -> float:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / ticks

    call = f"drive({port}, {load.clients}, {load.laser}, {SECONDS})"
    code = f"from bench.clients import drive; {call}"
    with process:
        try:
            began = time.monotonic()
            with subprocess.Popen(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
            ) as clients:
                assert clients.stdout is not None
                assert clients.stdout.readline().strip() == "connected"
                connected = time.monotonic() - began
                time.sleep(WARM_UP)
                before, began = used(), time.monotonic()
                found = json.loads(clients.stdout.readline())
                cpu = (used() - before) / (time.monotonic() - began)

            pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
            memory = int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6
        finally:
            process.terminate()

    return Seen(cpu, ready, connected, memory, *found)


def main() -> None:
    most = (raise_file_limit() - SPARE_FILES) // 2
    yardstick = Yardstick()
    print(
        f"{map_path()[1]}, p3dx-sh with a 181-reading laser, one client each; arena "
        f"without lasers; seed 1, {SECONDS:g} s after {WARM_UP:g} s"
    )
    print(
        "   clients  laser   CPU s/sim s   goal            the original, scaled   "
        "real time   SIP gap p50 / max ms   ready, connected s     MB"
    )
    for load in LOADS:
        # Each client needs two open files of this process: a port and a connection.
        if load.clients > most:
            print(f"   the limit of open files allows {most} clients only")
            load = load._replace(clients=most, goal=load.goal * most / load.clients)
        seen = measure(load, PORT)
        # If the machine is too slow for real time, a simulated second takes longer than a second.
        per_second = seen.cpu / max(seen.ratio, 1e-9)
        is_met = per_second <= load.goal
        if load.gap is not None:
            is_met = is_met and seen.ratio >= REAL_TIME and seen.longest <= load.gap
        compared = ""
        if load.original is not None:
            yardstick.measure()
            scaled = load.original * yardstick.scale
            compared = f"{scaled:.2f} ({scaled / per_second:.1f} x)"
        print(
            f"   {load.clients:7}  {'yes' if load.laser else 'no':5}   "
            f"{per_second:11.3f}   {load.goal:5.3f} {'PASS' if is_met else 'missed':7}   "
            f"{compared:20}   {seen.ratio:9.3f}   {seen.median * 1e3:8.0f} / "
            f"{seen.longest * 1e3:.0f}{'':11}   {seen.ready:6.1f}, "
            f"{seen.connected:.1f}{'':6} {seen.memory:6.0f}",
            flush=True,
        )

    print(f"   {yardstick}")
