"""Real-time ratio with 50 laser robots, one TCP client each (181 readings at 10 Hz); the shipped warehouse.

The clients are another process, so that only the simulator is measured. Reference: the original program needs 0.37 CPU s for a simulated
second of this load (reference performance.md §5, measured on another map and machine, so only an order of magnitude here).
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time

from botyard.protocols.pioneer.packet import command, frame

ROBOTS, SECONDS = 50, 20.0


def serve(port: int) -> subprocess.Popen[str]:
    args = [
        sys.executable,
        "-m",
        "botyard",
        "-m",
        "warehouse",
        "--noninteractive",
        "--json",
        "--start",
        "random",
        "-p",
        str(port),
    ]
    process = subprocess.Popen(
        [*args, *["-r", "p3dx"] * ROBOTS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["ready"]
    return process


def load(port: int) -> None:
    """All clients in one loop: drive, read, count SIPs and the gaps between them."""
    selector = selectors.DefaultSelector()
    sockets = []
    for i in range(ROBOTS):
        s = socket.create_connection(("127.0.0.1", port + i), 10)
        for n in (0, 1, 2):
            s.sendall(frame(n))
        s.sendall(command(1, 1) + command(4, 1) + command(230, 1) + command(11, 200))
        selector.register(s, selectors.EVENT_READ, i)
        sockets.append(s)
    begin = time.monotonic()
    counts, last, gaps, pulse = [0] * ROBOTS, [0.0] * ROBOTS, [], begin
    header = b"\xfa\xfb\x56\x32"  # a SIP with 16 sonar readings
    while (now := time.monotonic()) - begin < SECONDS:
        for key, _ in selector.select(0.05):
            n = key.fileobj.recv(65536).count(header)  # type: ignore[union-attr]
            if n:
                moment = time.monotonic()
                if last[key.data] and now - begin > 2:
                    gaps.append(moment - last[key.data])
                counts[key.data] += n
                last[key.data] = moment
        if now - pulse > 1.0:
            pulse = now
            for i, s in enumerate(sockets):
                s.sendall(command(11, 200) + command(21, 10 if i % 2 else -10))
    gaps.sort()
    print(
        json.dumps(
            {"rate": sum(counts) / ROBOTS / SECONDS, "p50": gaps[len(gaps) // 2], "p99": gaps[len(gaps) * 99 // 100]}
        )
    )


def main() -> None:
    port = 21001
    process = serve(port)
    try:
        ticks = os.sysconf("SC_CLK_TCK")

        def used() -> float:
            with open(f"/proc/{process.pid}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / ticks

        before = used()
        code = f"from bench.clients import load; load({port})"
        result = json.loads(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        )
        cpu = (used() - before) / SECONDS
    finally:
        process.terminate()
        process.wait(10)
    print(f"{ROBOTS} p3dx with laser, one client each, {SECONDS:g} s, in real time")
    print(f"   SIPs per second and client {result['rate']:.2f} (real-time ratio {result['rate'] / 10:.3f})")
    print(f"   gap between SIPs: median {result['p50'] * 1e3:.0f} ms, 99 % {result['p99'] * 1e3:.0f} ms")
    print(f"   CPU s per simulated s {cpu:.3f}; the original's published 0.37: {0.37 / cpu:.1f} x less")
