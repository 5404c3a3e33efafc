"""CPU of the simulator and gaps between reports with 50 … 1000 laser robots, one TCP
client each (181 readings at 10 Hz).

The clients are another process, so that only the simulator is measured. Map:
columbia.map with p3dx-sh where the shared data is, which is the recorded load of the
original program (0.37 CPU s for a simulated second at 50 clients, 0.74 at 100; it
cannot hold 200; reference performance.md §5); else the shipped warehouse.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import time

from bench.common import map_path, reference_loop
from bench.reference import Yardstick
from botyard.protocols.pioneer.packet import checksum, command, frame

SECONDS, WARM_UP = 10.0, 3.0
RECORDED = {50: 0.37, 100: 0.74}
"""CPU s for a simulated second of the original."""
FLOOR = {100: 0.09}
"""The same, set for botyard."""
IN_REAL_TIME = {500, 1000}
"""Numbers of clients that are to be served in real time (0.99 of it)."""
HEADER = b"\xfa\xfb\x56\x32"
"""Beginning of a SIP with 16 sonar readings."""


def serve(port: int, robots: int) -> tuple[subprocess.Popen[str], float]:
    """The simulator, up to its "ready" line, and how long that took."""
    began = time.monotonic()
    args = [
        sys.executable,
        "-m",
        "botyard",
        "-m",
        map_path()[0],
        "--noninteractive",
        "--no-crash-restart",
        "--json",
        "--start",
        "random",
        "-p",
        str(port),
    ]
    process = subprocess.Popen(
        [*args, *["-r", "p3dx-sh"] * robots],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["ready"]
    return process, time.monotonic() - began


def load(port: int, robots: int) -> None:
    """All clients in one loop: drive, read, count SIPs and the gaps between them."""
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2
    )
    assert checksum(b"") == 0
    selector = selectors.DefaultSelector()
    sockets = []
    for i in range(robots):
        s = socket.create_connection(("127.0.0.1", port + i), 10)
        for n in (0, 1, 2):
            s.sendall(frame(n))
        s.sendall(command(1, 1) + command(4, 1) + command(230, 1) + command(11, 200))
        selector.register(s, selectors.EVENT_READ, i)
        sockets.append(s)

    print("connected", flush=True)
    begin = time.monotonic()
    counts, last, gaps, pulse = [0] * robots, [0.0] * robots, [], begin
    while (now := time.monotonic()) - begin < SECONDS + WARM_UP:
        for key, _ in selector.select(0.05):
            n = key.fileobj.recv(65536).count(HEADER)  # type: ignore[union-attr]
            if n:
                moment = time.monotonic()
                if now - begin > WARM_UP:
                    if last[key.data]:
                        gaps.append(moment - last[key.data])
                    counts[key.data] += n

                last[key.data] = moment

        if now - pulse > 1.0:
            pulse = now
            for i, s in enumerate(sockets):
                s.sendall(command(11, 200) + command(21, 10 if i % 2 else -10))

    gaps.sort()
    rate = sum(counts) / robots / SECONDS
    print(
        json.dumps(
            {
                "rate": rate,
                "p50": gaps[len(gaps) // 2],
                "p99": gaps[len(gaps) * 99 // 100],
                "max": gaps[-1],
            }
        ),
        flush=True,
    )


def measure(port: int, robots: int) -> tuple[float, float, dict[str, float], float]:
    """CPU s per simulated s, start-up s, reports that clients received and gaps between
    them, and memory of the simulator, MB.
    """
    process, ready = serve(port, robots)
    ticks = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        with open(f"/proc/{process.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    try:
        code = f"from bench.clients import load; load({port}, {robots})"
        clients = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        )
        assert clients.stdout is not None
        assert clients.stdout.readline().strip() == "connected"
        time.sleep(WARM_UP)
        before, began = used(), time.monotonic()
        result = json.loads(clients.stdout.readline())
        cpu = (used() - before) / (time.monotonic() - began)
        clients.wait(10)
        with open(f"/proc/{process.pid}/statm") as f:
            memory = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    finally:
        process.terminate()
        process.wait(30)

    return cpu, ready, result, memory


def main() -> None:
    unit = reference_loop()
    yardstick = Yardstick()
    print(
        f"{map_path()[1]}, p3dx-sh with a 181-reading laser, one client each, "
        f"seed 1, {SECONDS:g} s in real time after {WARM_UP:g} s"
    )
    print(
        f"   reference: ten 400 x 400 matrix products, {unit * 1e3:.2f} ms; the "
        "original: as recorded on such a machine"
    )
    print(
        "   clients   CPU s/sim s   the original   ratio   real time   SIP gap "
        "p50 / p99 / max ms   ready s     MB   floor"
    )
    for i, robots in enumerate((50, 100, 200, 500, 1000)):
        cpu, ready, seen, memory = measure(21001 + 2000 * i, robots)
        # a simulated second takes longer than a second where the machine is too slow
        share = seen["rate"] / 10.0
        per_second = cpu / max(share, 1e-9)
        yardstick.measure()
        recorded = RECORDED.get(robots)
        compared = (
            f"{recorded:12.2f}   {recorded * yardstick.scale / per_second:4.1f} x"
            if recorded
            else f"{'–':>12}   {'':6}"
        )
        wanted = yardstick.judge(per_second, FLOOR[robots]) if robots in FLOOR else "–"
        if robots in IN_REAL_TIME:
            wanted = f"0.99 of real time {'met' if share >= 0.99 else 'missed'}"
        print(
            f"   {robots:7}   {per_second:11.3f}   {compared}   {share:9.3f}   "
            f"{seen['p50'] * 1e3:8.0f} / {seen['p99'] * 1e3:.0f} / "
            f"{seen['max'] * 1e3:.0f}{'':12}   {ready:7.1f} {memory:6.0f}   {wanted}",
            flush=True,
        )

    print(f"   {yardstick}")
