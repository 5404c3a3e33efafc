"""Faults injected into a running simulator: kills, stops, full disks, clock jumps."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.simulator_process import PORT, Simulator
from botyard.clients.pioneer import PioneerClient
from botyard.errors import PeerError
from botyard.protocols.pioneer.packet import Parser, command, frame


def _reports(port: int, seconds: float = 1.0) -> int:
    """Return how many reports a client gets."""
    with PioneerClient(port=port) as c:
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            n += c.update()
        return n


def _until_served(port: int, begin: float) -> float:
    while time.monotonic() - begin < 60.0:
        try:
            with PioneerClient(port=port, timeout=1.0) as c:
                if c.update():
                    return time.monotonic() - begin
        except PeerError:
            time.sleep(0.02)

    return float("nan")


def _killed() -> str:
    with Simulator("-m", "office", "-r", "p3dx", "-r", "p3dx", supervised=True) as sim:
        with PioneerClient(port=PORT) as c:
            for _ in range(15):
                c.update()
            os.kill(sim.pid, signal.SIGKILL)

        return (
            "a client received reports again after "
            f"{_until_served(PORT, time.monotonic()):.2f} s"
        )


def _stopped() -> str:
    with Simulator("-m", "office", "-r", "p3dx") as sim, PioneerClient(port=PORT) as c:
        c.update()
        os.kill(sim.pid, signal.SIGSTOP)
        time.sleep(5.0)
        os.kill(sim.pid, signal.SIGCONT)
        begin, n = time.monotonic(), 0
        while time.monotonic() - begin < 2.0:
            n += c.update()
        return (
            f"the session continues, {n} reports in the first 2 s (20 expected); "
            f"exceptions {sim.faults()}"
        )


def _full_disk() -> str:
    folder = tempfile.mkdtemp(prefix="bench-disk-")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
        check=False,
        capture_output=True,
    ).returncode:
        return "not tried: mounting needs root"

    try:
        sim = Simulator(
            "-m",
            "office",
            "-r",
            "p3dx",
            "--log-packets-received",
            "--record-packets",
            "talk.jsonl",
            folder=folder,
            supervised=True,
        )
        try:
            with PioneerClient(port=PORT) as c:
                for _ in range(30):
                    c.send_raw(command(50, 1) * 200)
                    c.update()

                n = _count(c, 2.0)

            free = shutil.disk_usage(folder).free
            return (
                f"{free} bytes left on the disk; {n} reports in 2 s (20 expected), "
                f"status at the end {sim.stop()}"
            )
        finally:
            if sim.process.poll() is None:
                sim.stop()
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _count(c: PioneerClient, seconds: float) -> int:
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        n += c.update()
    return n


def _port_taken() -> str:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", PORT))
        taken.listen()
        done = subprocess.run(
            [sys.executable, "-m", "botyard", "--nomap", "--no-gui", "-p", str(PORT)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return f"status {done.returncode}: {done.stderr.strip().splitlines()[-1][:100]}"


def _map_deleted() -> str:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder, "a.map")
        path.write_text(
            "2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 0\nNumLines: 1\nLINES\n0 0 9000 0\n"
        )
        with (
            Simulator("-m", str(path), "-r", "p3dx") as sim,
            PioneerClient(port=PORT) as c,
        ):
            path.unlink()
            c.send_raw(frame(236, b"\x3b\x01\x00\x05\x00a.map"))
            while not c.map_changes:
                c.update()
            answer, n = c.map_changes[0].loaded, _count(c, 1.0)
            return (
                f"answer {answer} (2: not loaded, the current map stays), {n} "
                f"reports in the next second; exceptions {sim.faults()}"
            )


def _gone_half_way() -> str:
    hello = frame(0) + frame(1) + frame(2) + command(1, 1) + command(4, 1)
    with Simulator("--nomap", "-r", "p3dx") as sim:
        files, _ = sim.held()
        for n in range(len(hello) + 1):
            for how in (socket.SHUT_WR, None):
                with socket.create_connection(("127.0.0.1", PORT), 5) as s:
                    if how is None:
                        # A linger time of 0 s makes the system send RST instead of FIN.
                        s.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                        )

                    s.sendall(hello[:n])
                    if how is not None:
                        s.shutdown(how)
                        while s.recv(4096):
                            pass

        time.sleep(0.5)
        n, more = _reports(PORT), sim.held()[0] - files
        return (
            f"{2 * len(hello) + 2} visits; {n} reports in a second for the next "
            f"client, {more} more open files, exceptions {sim.faults()}"
        )


def _clock_jumps() -> str:
    """Let the session's clock jump ahead by an hour, by the fake clock of a null modem."""
    from botyard.protocols.pioneer.conversation import PioneerSettings
    from botyard.protocols.pioneer.session import Session
    from botyard.sim.simulation import Simulation

    sim = Simulation()
    robot = sim.add_robot("p3dx")
    session = Session(robot.port("pioneer"), PioneerSettings(), 0.0)
    session.receive_data(frame(0) + frame(1) + frame(2) + command(1, 1), 0.0)
    session.data_to_send()
    reports = 0
    for now in (0.1, 0.2, 3600.2, 3600.3, 3600.4, 5.0, 5.1, 5.2):
        session.receive_data(command(0), now)
        sim.step()
        if session.is_due(now):
            session.report(now)
        if session.handle_timer(now):
            session.report(now)
        reports += len(Parser().feed_bytes(session.data_to_send()))

    return (
        f"session closed: {session.is_closed}; {reports} reports in 8 steps, 2 of "
        "them at a jump"
    )


FAULTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    (
        "kill -9 of the worker",
        "clients connect again within 3 s, and robots are at their former places",
        _killed,
    ),
    (
        "SIGSTOP for 5 s, SIGCONT",
        "sessions continue; lost time is skipped, not caught up",
        _stopped,
    ),
    ("wall clock jumps by an hour, and back", "the jump ends no session", _clock_jumps),
    (
        "disk full (log, recording of packets, state)",
        "log lines and state are lost, but no session",
        _full_disk,
    ),
    (
        "port taken",
        "status 248, and a message that says how to choose another port",
        _port_taken,
    ),
    (
        "map file deleted while it is loaded",
        "the old map stays, and the client gets an answer",
        _map_deleted,
    ),
    (
        "client disconnects after each byte of the handshake",
        "the robot is free for the next client",
        _gone_half_way,
    ),
)


def faults() -> None:
    """Inject each fault; print the promised and the observed behaviour."""
    for what, promised, run in FAULTS:
        print(f"{what}\n    promised: {promised}\n    seen:     {run()}", flush=True)
