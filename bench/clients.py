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
from botyard.protocols.pioneer.packet import command, frame

SECONDS, WARM_UP, PATIENCE = 10.0, 3.0, 240.0
PORT = 20001
"""Port of the first robot."""
REAL_TIME = 0.99
"""Ratio of simulated to wall time that counts as real time."""
SPARE_FILES = 200
"""Number of files that the simulator opens besides a port and a client a robot."""
HEADER = b"\xfa\xfb\x56\x32"
"""Beginning of a SIP with 16 sonar readings."""


class Load(NamedTuple):
    """Number of clients, and what is wanted of the simulator.

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
    rate : float
        Reports of a client in a second.
    median, longest : float
        Gaps between two reports of a client, s.
    """

    cpu: float
    ready: float
    connected: float
    memory: float
    rate: float
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
    """All clients in one loop: drive, read, count SIPs and the gaps between them."""
    raise_file_limit()
    selector = selectors.DefaultSelector()
    orders = command(1, 1) + command(4, 1) + laser * command(230, 1) + command(11, 200)
    sockets = []
    for i in range(robots):
        s = socket.create_connection(("127.0.0.1", port + i), PATIENCE)
        for n in (0, 1, 2):
            s.sendall(frame(n))
        s.sendall(orders)
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ, i)
        sockets.append(s)

    def read(last: list[float], gaps: list[float]) -> int:
        """Read what has come; return the number of SIPs."""
        count = 0
        for key, _ in selector.select(0.05):
            n = os.read(key.fd, 65536).count(HEADER)
            if n:
                count += n
                moment = time.monotonic()
                if last[key.data]:
                    gaps.append(moment - last[key.data])
                last[key.data] = moment

        return count

    last = [0.0] * robots
    began = time.monotonic()
    while not all(last):
        assert time.monotonic() - began < PATIENCE, "some clients have no reports"
        read(last, [])
    print("connected", flush=True)
    gaps: list[float] = []
    began, count, told = time.monotonic(), 0, 0
    warm = False
    while (passed := time.monotonic() - began) < seconds + WARM_UP:
        count += read(last, gaps)
        if not warm and passed > WARM_UP:
            warm, count = True, 0
            gaps.clear()
        # Commands are spread over the second, as independent clients send them.
        while told < int(passed * robots):
            turn = 10 if told % 2 else -10
            sockets[told % robots].send(command(11, 200) + command(21, turn))
            told += 1

    gaps.sort()
    print(json.dumps([count / robots / seconds, gaps[len(gaps) // 2], gaps[-1]]))


def measure(load: Load, port: int) -> Seen:
    """Run a simulator and its clients."""
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
        # A robot needs a port and a connection.
        if load.clients > most:
            print(f"   the limit of open files allows {most} clients only")
            load = load._replace(clients=most, goal=load.goal * most / load.clients)
        seen = measure(load, PORT)
        # A simulated second takes longer than a second where the machine is too slow.
        share = seen.rate / 10.0
        per_second = seen.cpu / max(share, 1e-9)
        is_met = per_second <= load.goal
        if load.gap is not None:
            is_met = is_met and share >= REAL_TIME and seen.longest <= load.gap
        compared = ""
        if load.original is not None:
            yardstick.measure()
            scaled = load.original * yardstick.scale
            compared = f"{scaled:.2f} ({scaled / per_second:.1f} x)"
        print(
            f"   {load.clients:7}  {'yes' if load.laser else 'no':5}   "
            f"{per_second:11.3f}   {load.goal:5.3f} {'PASS' if is_met else 'missed':7}   "
            f"{compared:20}   {share:9.3f}   {seen.median * 1e3:8.0f} / "
            f"{seen.longest * 1e3:.0f}{'':11}   {seen.ready:6.1f}, "
            f"{seen.connected:.1f}{'':6} {seen.memory:6.0f}",
            flush=True,
        )

    print(f"   {yardstick}")
