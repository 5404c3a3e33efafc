"""Soak tests: memory, files and tasks of a simulator while clients come and go."""

from __future__ import annotations

import contextlib
import os
import random
import time
from pathlib import Path
from typing import Any

from bench.simulator_process import PORT, Simulator
from botyard.clients.pioneer import PioneerClient
from botyard.errors import PeerError
from botyard.protocols.pioneer.packet import command


def soak(minutes: float = 1.0) -> None:
    """Run robots whose clients come and go over TCP."""
    with Simulator(
        "-m",
        "office",
        "--start",
        "random",
        "--metrics-port",
        str(PORT - 1),
        *["-r", "p3dx"] * 25,
        "-R",
        "p3dx",
    ) as sim:
        rng = random.Random(1)
        (files_before, _), tasks_before = sim.held(), sim.tasks()
        clients: list[tuple[float, PioneerClient]] = []
        begin = time.monotonic()
        samples: list[tuple[float, tuple[int, int]]] = []
        visits, sampled = 0, begin

        def leave(entry: tuple[float, PioneerClient]) -> None:
            if rng.random() < 0.3:
                entry[1].send(2)
            entry[1].close()

        while (now := time.monotonic()) - begin < 60.0 * minutes:
            if len(clients) < 50:
                used = {c._socket.getpeername()[1] for _, c in clients}
                free = [p for p in range(PORT, PORT + 25) if p not in used]
                port = rng.choice(free) if free and rng.random() < 0.5 else PORT + 25
                with contextlib.suppress(PeerError):
                    c = PioneerClient(port=port, timeout=2.0)
                    c.enable()
                    c.vel(rng.randrange(-300, 300))
                    clients.append((now + rng.random() * 20.0, c))
                    visits += 1

            for entry in [e for e in clients if e[0] < now]:
                clients.remove(entry)
                leave(entry)

            for _, c in clients:
                with contextlib.suppress(PeerError, OSError):
                    c.send(0)
                    c._socket.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        while c._socket.recv(1 << 16):
                            pass

                    c._socket.settimeout(2.0)

            if now - sampled > max(5.0, 60.0 * minutes / 100):
                sampled = now
                samples.append((sim.memory(), sim.held()))

            time.sleep(0.05)

        for entry in clients:
            leave(entry)
        time.sleep(3.0)
        files, threads = sim.held()
        half = samples[len(samples) // 4 :]
        memory = [m for m, _ in half]
        print(
            f"{minutes:g} min over TCP, {visits} visits: memory "
            f"{min(memory):.1f} … {max(memory):.1f} MB after the first quarter "
            f"({100 * (memory[-1] / memory[0] - 1):+.1f} %), files and sockets "
            f"{files_before} before, {samples[0][1][0]} with clients, "
            f"{files} after; tasks {tasks_before} before, {sim.tasks()} after; threads {threads}; "
            f"exceptions {sim.faults()}, status {sim.stop()}"
        )


def day(hours: float = 1.0) -> None:
    """Run simulated time on null modems: 50 robots, with clients that come and go."""
    from bench.common import memory as most
    from botyard.servers.pioneer.nullmodem import NullModem
    from botyard.sim.simulation import Simulation

    def now() -> float:
        return (
            int(Path("/proc/self/statm").read_text().split()[1])
            * os.sysconf("SC_PAGE_SIZE")
            / 1e6
        )

    rng = random.Random(1)
    sim = Simulation.load("office")
    for i in range(50):
        sim.add_robot("p3dx", f"r{i}")
    modem = NullModem(sim)
    lines: dict[str, Any] = {}
    begin, samples, visits = time.monotonic(), [], 0
    while sim.time < 3600.0 * hours:
        name = f"r{rng.randrange(50)}"
        if name in lines:
            line = lines.pop(name)
            (
                line.hang_up
                if rng.random() < 0.5
                else lambda line=line: line.send(command(2, 1))
            )()
        else:
            lines[name] = line = modem.connect(name)
            for n in (0, 1, 2):
                line.send(command(n))
            line.send(
                command(1, 1)
                + command(4, 1)
                + command(11, rng.randrange(-300, 300))
                + command(230, 1)
            )
            visits += 1

        modem.run(1.0)
        for line in lines.values():
            line.take()
            line.send(command(0))

        if int(sim.time) % 300 == 0:
            samples.append(now())

    late = samples[max(1, len(samples) // 10) :] or samples or [now()]
    print(
        f"{hours:g} h simulated on null modems in {time.monotonic() - begin:.0f} "
        f"s, {visits} visits: memory {late[0]:.1f} MB after a "
        f"tenth, "
        f"{late[-1]:.1f} MB at the end ({100 * (late[-1] / late[0] - 1):+.1f} "
        f"%), most {most():.0f} MB"
    )
