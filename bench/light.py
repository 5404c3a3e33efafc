"""CPU time of a simulator with one to ten robots in the shipped office, in real time.

The program runs as users start it, with its supervisor and its state file. A client in
another process drives each robot and reads its reports, ten a second. The last figure is
the loop of a Python program: step, command all, read all ranges.
"""

from __future__ import annotations

import contextlib
import json
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import botyard
from bench.common import cpu, free_port
from bench.reference import Yardstick
from botyard.protocols.pioneer.packet import command, frame

SECONDS, WARM_UP_S = 20.0, 3.0
ROUNDS = 2
STEPS = 2000


class Case(NamedTuple):
    """One run of the program: robots, clients, options, and the goal in CPU s a second."""

    robots: int
    clients: int
    has_laser: bool
    options: list[str]
    goal: float


SERVED = {
    "idle": Case(1, 0, False, ["--no-gui"], 0.001),
    "idle, with the page": Case(1, 0, False, [], 0.001),
    "driven": Case(1, 1, False, ["--no-gui"], 0.005),
    "driven, with laser": Case(1, 1, True, ["--no-gui"], 0.012),
    "ten driven, with laser": Case(10, 10, True, ["--no-gui"], 0.03),
}
LOOP_GOAL_US = 20.0
"""Goal of the loop of a Python program with ten robots, CPU µs."""
SIP = b"\xfa\xfb"


class Used(NamedTuple):
    """CPU time and wake-ups of processes since their start."""

    cpu: float
    wakeups: int


class Light(NamedTuple):
    """Figures of a run for each second: CPU time, s, wake-ups, and packets to each client."""

    cpu: float
    wakeups: float
    packets: float


def used(processes: list[int]) -> Used:
    """Return what all threads of these processes have used."""
    nanoseconds = wakeups = 0
    for task in (t for pid in processes for t in Path(f"/proc/{pid}/task").iterdir()):
        # A thread may end between the listing and the reading of its files.
        with contextlib.suppress(OSError):
            # In contrast to `stat`, this file does not count in ticks of 10 ms.
            nanoseconds += int((task / "schedstat").read_text().split()[0])
            status = (task / "status").read_text()
            wakeups += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    return Used(nanoseconds / 1e9, wakeups)


@contextlib.contextmanager
def served(robots: int, options: list[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Run the program; yield its processes and the ports of its robots."""
    with tempfile.TemporaryDirectory() as folder:
        log = ["--log-file", f"{folder}/log.txt", "--state-file", f"{folder}/state"]
        program = [sys.executable, "-m", "botyard", "-m", "office", "--json"]
        program += ["-r", "p3dx"] * robots + ["-p", str(free_port(robots))]
        with subprocess.Popen(
            [*program, "--noninteractive", *log, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                ready = json.loads(process.stdout.readline())
                ports = [robot["port"] for robot in ready["robots"]]
                yield [process.pid, ready["process"]], ports
            finally:
                process.terminate()


def drive(ports: list[int], seconds: float, has_laser: bool) -> None:
    """Drive a robot at each port; print "connected", and later packets per second."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    selector, clients = selectors.DefaultSelector(), []
    for port in ports:
        client = socket.create_connection(("127.0.0.1", port), 10)
        for n in (0, 1, 2):
            client.sendall(frame(n))
        # Send OPEN, start the motors and drive forward; a laser needs one more command.
        client.sendall(command(1, 1) + command(4, 1) + command(11, 200))
        if has_laser:
            client.sendall(command(230, 1))
        selector.register(client, selectors.EVENT_READ)
        clients.append(client)

    print("connected", flush=True)
    end, pulse, packets = time.monotonic() + seconds, 0.0, 0
    while (now := time.monotonic()) < end:
        for key, _ in selector.select(0.05):
            packets += key.fileobj.recv(65536).count(SIP)  # type: ignore[union-attr]
        if now - pulse > 1.0:
            pulse = now
            for i, client in enumerate(clients):
                client.sendall(command(11, 200) + command(21, 10 if i % 2 else -10))

    print(packets / seconds / len(ports), flush=True)


def measure(case: Case) -> Light:
    """Run the program with its clients, and measure what it costs."""
    with (
        served(case.robots, case.options) as (processes, ports),
        contextlib.ExitStack() as stack,
    ):
        driver, packets = None, 0.0
        if case.clients:
            values = ports[: case.clients], SECONDS + WARM_UP_S, case.has_laser
            code = f"from bench.light import drive; drive(*{values})"
            driver = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
                )
            )
            assert driver.stdout is not None
            assert driver.stdout.readline().strip() == "connected"
        time.sleep(WARM_UP_S)
        before, began = used(processes), time.monotonic()
        time.sleep(0.95 * SECONDS)
        after, seconds = used(processes), time.monotonic() - began
        if driver is not None:
            assert driver.stdout is not None
            packets = float(driver.stdout.readline())

    return Light(
        (after.cpu - before.cpu) / seconds,
        (after.wakeups - before.wakeups) / seconds,
        packets,
    )


def loop(robots: int) -> float:
    """Return the CPU time for each second of a Python program's loop of step, command and
    ranges, s.
    """
    sim = botyard.Simulation.load("office", seed=1)
    for _ in range(robots):
        sim.add_robot("p3dx")
    speeds, turns = np.full(robots, 0.2), np.full(robots, 0.1)

    def run() -> None:
        for _ in range(STEPS):
            sim.step()
            sim.fleet.command(v=speeds, w=turns)
            sim.fleet.ranges("sonar")

    return cpu(run, 3) / STEPS


def main() -> None:
    yardstick = Yardstick()
    yardstick.measure()
    print("   served, in real time            CPU s/s   wake-ups/s   packets/s   goal")
    for name, case in SERVED.items():
        found = min(measure(case) for _ in range(ROUNDS))
        print(
            f"   {name:30} {found.cpu:8.5f} {found.wakeups:12.1f} {found.packets:11.1f}"
            f"   {yardstick.judge(found.cpu, case.goal)}",
            flush=True,
        )
    for robots in (1, 10):
        microseconds = 1e6 * loop(robots)
        judged = yardstick.judge(microseconds, LOOP_GOAL_US) if robots == 10 else "–"
        print(
            f"   loop in Python, {robots:2} robots: {microseconds:6.1f} µs   {judged}"
        )
    yardstick.measure()
    print(f"   {yardstick}")
