"""Service to honest clients under hostile load, in long runs (soak tests), and with
injected faults.

Each part starts the simulator as a user does and observes it from outside: gaps between
reports, memory, threads, sockets and files by /proc, its log. ``python -m bench
reliability`` runs short forms, ``python -m bench.reliability PART [AMOUNT]`` one of
them in full: hostile (packets), viewer, ros, peers (seconds of each attack), soak
(minutes), day (hours of simulated time), maps (points of the map), uploads (rounds),
pictures (seconds of each), faults.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import badmaps, hostilepage, hostilepeers, hostileros
from bench.common import reference_loop
from botyard.clients.pioneer import PioneerClient
from botyard.errors import PeerError
from botyard.protocols.pioneer.packet import Parser, command, frame
from botyard.protocols.pioneer.reports import Sip

PORT = int(os.environ.get("BENCH_PORT", "24101"))
IGNORED = (62, 224, 236, 239, 253, 255)
"""Commands that end the simulator or move robots: random packets must not hold them."""
SIP = b"\x32"
MARK = 0xA5
"""Value of the digital outputs that is set last: a report with it shows that all
packets before were processed.
"""


class Simulator:
    """The simulator as a process, observed from outside."""

    def __init__(
        self,
        *args: str,
        supervised: bool = False,
        folder: str | None = None,
        temporary: Path | None = None,
    ) -> None:
        command_line = [
            sys.executable,
            "-m",
            "botyard",
            "--noninteractive",
            *([] if "--gui-port" in args else ["--no-gui"]),
            "--json",
            "-p",
            str(PORT),
            *args,
        ]
        self.folder = folder or tempfile.mkdtemp(prefix="bench-")
        self.log = Path(self.folder) / "run.log"
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [
                *command_line,
                "-l",
                str(self.log),
                *(() if supervised else ("--no-crash-restart",)),
            ],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=self.folder,
            env=os.environ | ({} if temporary is None else {"TMPDIR": str(temporary)}),
        )
        assert self.process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.pid = self.process.pid if not supervised else self.worker()

    def worker(self) -> int:
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return int((found.stdout.split() or "0")[0])

    def memory(self) -> float:
        """Resident memory, MB."""
        return (
            int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            * os.sysconf("SC_PAGE_SIZE")
            / 1e6
        )

    def held(self) -> tuple[int, int]:
        """Open files and sockets, and threads."""
        return len(os.listdir(f"/proc/{self.pid}/fd")), len(
            os.listdir(f"/proc/{self.pid}/task")
        )

    def cpu(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waited(self) -> float:
        """Time that its main thread was runnable without a processor so far, s: the
        effect of other load on the machine.
        """
        return (
            int(
                Path(f"/proc/{self.pid}/task/{self.pid}/schedstat")
                .read_text()
                .split()[1]
            )
            / 1e9
        )

    def tasks(self) -> int:
        """Tasks of its event loop, by its metrics."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{PORT - 1}/metrics", timeout=10
        ) as answer:
            text = answer.read().decode()

        return int(text.partition("\nbotyard_tasks ")[2].split()[0])

    def faults(self) -> int:
        """Exceptions in its log and on its standard error."""
        text = "".join(
            f.read_text(errors="replace")
            for f in Path(self.folder).glob("run.log*")
            if f.is_file()
        )
        # not by its position, at which the simulator writes
        text += os.pread(self.errors.fileno(), 1 << 26, 0).decode(errors="replace")
        return text.count("Traceback") + text.count("internal error")

    def stop(self) -> int:
        self.process.terminate()
        status = self.process.wait(30)
        self.process.stdout.close()  # type: ignore[union-attr]
        return status

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        self.errors.close()
        if not os.environ.get("KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)


def opened(port: int) -> socket.socket:
    """A client that is connected and reads, with a laser."""
    s = socket.create_connection(("127.0.0.1", port), 10)
    for n in (0, 1, 2):
        s.sendall(frame(n))
        s.recv(1000)

    s.sendall(command(1, 1) + command(4, 1))
    return s


class Honest(threading.Thread):
    """Clients that drive and read, in a process's thread of their own; keeps the gaps
    between reports.
    """

    def __init__(self, ports: list[int]) -> None:
        super().__init__(daemon=True)
        self.sockets = [opened(p) for p in ports]
        self.gaps: list[float] = []
        self.since = 0.0
        self._stop_it = threading.Event()
        self._last = [0.0] * len(ports)

    def run(self) -> None:
        selector = selectors.DefaultSelector()
        for i, s in enumerate(self.sockets):
            selector.register(s, selectors.EVENT_READ, i)
        pulse = 0.0
        while not self._stop_it.is_set():
            for key, _ in selector.select(0.05):
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                if not data:
                    selector.unregister(key.fileobj)
                    continue

                now = time.monotonic()
                if b"\xfa\xfb" in data and self._last[key.data]:
                    self.gaps.append(now - self._last[key.data])
                self._last[key.data] = now

            if time.monotonic() - pulse > 0.5:
                pulse = time.monotonic()
                for i, s in enumerate(self.sockets):
                    with contextlib.suppress(OSError):
                        s.sendall(
                            command(0)
                            + command(11, 200)
                            + command(21, 10 if i % 2 else -10)
                        )

    def largest(self) -> float:
        """The largest gap so far, s: the one that lasts still counts too."""
        return max(*self.gaps, time.monotonic() - min(self._last))

    def end(self) -> str:
        self._stop_it.set()
        self.join()
        for s in self.sockets:
            s.close()
        gaps = np.sort(self.gaps)
        p50, p99, most = (
            1e3 * gaps[k] for k in (len(gaps) // 2, len(gaps) * 99 // 100, -1)
        )
        return f"{len(gaps)} reports, gap p50 {p50:.0f} ms, p99 {p99:.0f} ms, largest {most:.0f} ms"


# -- hostile load


def mutated(rng: random.Random) -> bytes:
    """A packet, intact or mutated."""
    number = rng.randrange(256)
    data = bytearray(
        command(
            number,
            rng.choice(
                [
                    None,
                    0,
                    1,
                    -1,
                    32767,
                    -32768,
                    255,
                    rng.randrange(-32768, 32768),
                    b"x" * rng.randrange(200),
                ]
            ),
        )
    )
    kind = rng.randrange(8)
    if kind == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    elif kind == 2:
        data[2] = rng.randrange(256)
    elif kind == 3:
        data[rng.randrange(len(data)) : 0] = rng.randbytes(rng.randrange(1, 20))
    elif kind == 4:
        data = bytearray(frame(number, rng.randbytes(rng.randrange(190))))
    elif kind == 5:
        data = bytearray(rng.randbytes(rng.randrange(1, 60)))

    return bytes(data)


def attack(first: int, count: int, packets: int, seed: int) -> None:
    """Hostile clients, in a process of their own: send as fast as they are read, and
    hardly read themselves.
    """
    rng = random.Random(seed)
    # without CLOSE: a closed session reads no more packets, so they would not count
    stock = [
        data
        for data in (mutated(rng) for _ in range(20_000))
        if all(p.id != 2 for p in Parser().receive(data))
    ]
    selector = selectors.DefaultSelector()

    def join(port: int) -> None:
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.sendall(frame(0) + frame(1) + frame(2) + command(1, 1))
        s.setblocking(False)
        selector.register(s, selectors.EVENT_WRITE, port)

    for port in range(first, first + count):
        join(port)
    sent, rest = 0, {}
    while sent < packets:
        for key, _ in selector.select(1.0):
            s, port = key.fileobj, key.data
            data = rest.pop(port, b"")
            if not data:
                k = rng.randrange(len(stock) - 50)
                data, n = b"".join(stock[k : k + 50]), 50
                sent += n

            try:
                rest[port] = data[s.send(data) :]  # type: ignore[union-attr]
                if rng.random() < 0.01:
                    s.recv(1 << 20)  # type: ignore[union-attr]
                if rng.random() < 0.001:
                    raise ConnectionError
            except BlockingIOError:
                rest[port] = data
            except OSError:
                selector.unregister(s)
                s.close()  # type: ignore[union-attr]
                rest.pop(port, None)
                for _ in range(50):
                    with contextlib.suppress(OSError):
                        join(port)
                        break

    ends = [
        (key.fileobj, rest.get(key.data, b"")) for key in selector.get_map().values()
    ]
    # packets in the buffers of sockets count when the simulator has read them: the
    # outputs are set behind them
    for s, data in ends:
        with contextlib.suppress(OSError):
            s.setblocking(True)  # type: ignore[union-attr]
            s.settimeout(600.0)  # type: ignore[union-attr]
            s.sendall(data + bytes(250) + command(30, 0xFF00 | MARK))  # type: ignore[union-attr]

    for s, _ in ends:
        parser = Parser()
        with contextlib.suppress(OSError):
            while data := s.recv(1 << 20):  # type: ignore[union-attr]
                if any(
                    p.id == SIP[0] and Sip.decode(p).digout == MARK
                    for p in parser.receive(data)
                ):
                    break

    print(sent)


def hostile(packets: int = 100_000) -> None:
    """Honest clients while hostile ones send."""
    ignored = [a for n in IGNORED for a in ("--ignore-command", str(n))]
    robots = ["-r", "p3dx"] * 150
    with Simulator(
        "-m",
        "office",
        "--start",
        "random",
        "--metrics-port",
        str(PORT - 1),
        *ignored,
        *robots,
    ) as sim:
        alone = Honest(list(range(PORT, PORT + 50)))
        alone.start()
        time.sleep(15.0)
        print(f"50 honest clients alone, 15 s: {alone.end()}")
        time.sleep(1.0)
        honest = Honest(list(range(PORT, PORT + 50)))
        honest.start()
        code = f"from bench.reliability import attack; attack({PORT + 50}, 100, {packets}, 1)"
        begin, used, waited = time.monotonic(), sim.cpu(), sim.waited()
        attackers = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        )
        memory: list[tuple[float, float]] = []
        while attackers.poll() is None:
            time.sleep(1.0)
            memory.append((time.monotonic() - begin, sim.memory()))

        took = time.monotonic() - begin
        sent = int((attackers.stdout.read() or "0") if attackers.stdout else 0)
        after = [m for t, m in memory if t > min(60.0, took / 2)] or [memory[-1][1]]
        print(
            f"{sent} packets of 100 hostile clients in {took:.0f} s "
            f"({sent / took:.0f}/s), CPU {(sim.cpu() - used) / took:.2f}, "
            f"{(sim.waited() - waited) / took:.2f} of the time in the run queue; "
            f"honest: {honest.end()}\n"
            f"memory {memory[0][1]:.0f} MB at first, {after[0]:.0f} MB then, "
            f"{after[-1]:.0f} MB at the end; exceptions {sim.faults()}; "
            f"status at the end {sim.stop()}"
        )


# -- the page


VIEWERS: tuple[tuple[str, str, int, float], ...] = (
    ("an onlooker asks for clearances and the catalog, 290 a second", "asks", 1, 290.0),
    ("30 onlookers, as fast as they are let", "asks", 30, 0.0),
    ("30 onlookers send messages without a byte and pings", "tiny", 30, 0.0),
    ("300 sockets that show no token", "hold", 300, 0.0),
    ("100 strangers ask for files, figures and sockets", "knock", 100, 0.0),
)


def viewer(seconds: float = 20.0) -> None:
    """Honest clients while viewers and strangers load the page's server; time until a
    viewer with the token gets in.
    """
    page, token = PORT - 2, "bench"
    options = (
        "--gui-port",
        str(page),
        "--gui-token",
        token,
        "--no-browser",
        "--start",
        "random",
    )
    with Simulator("-m", "office", *options, *["-r", "p3dx"] * 20) as sim:
        looks_on = asyncio.run(hostilepage.audience(page, token))
        for what, kind, count, rate in (("nobody else", "", 0, 0.0), *VIEWERS):
            honest = Honest(list(range(PORT, PORT + 20)))
            honest.start()
            code = (
                f"from bench.hostilepage import attack; attack({kind!r}, "
                f"{page}, {looks_on!r}, {seconds}, {count}, {rate})"
            )
            attackers = subprocess.Popen([sys.executable, "-c", code]) if kind else None
            begin, used, entered = time.monotonic(), sim.cpu(), []
            while time.monotonic() - begin < seconds:
                time.sleep(1.0)
                entered.append(hostilepage.enters(page, token))

            took, cpu = time.monotonic() - begin, sim.cpu() - used
            if attackers is not None:
                attackers.kill()
                attackers.wait()

            print(
                f"{what}: honest {honest.end()}; the token's holder sees the "
                f"world after {np.median(entered):.2f} s, at most "
                f"{max(entered):.2f} s; CPU {cpu / took:.2f}, memory "
                f"{sim.memory():.0f} MB, exceptions {sim.faults()}",
                flush=True,
            )
            time.sleep(6.0)  # what strangers began ends

        print(f"files {sim.held()[0]}, status at the end {sim.stop()}")


def ros(seconds: float = 20.0) -> None:
    """Honest clients while peers attack the ROS 1 ports; how long honest nodes wait for
    answers.
    """
    master = f"http://127.0.0.1:{PORT - 3}/"
    options = (
        "--ros-master",
        f"embedded:{PORT - 3}",
        "--start",
        "random",
        "--read-only",
    )
    robots = [a for i in range(20) for a in ("-r", f"p3dx:r{i}")]
    with Simulator("-m", "office", *options, *robots) as sim:
        while not _answers(lambda: hostileros.node_of(master)):
            time.sleep(0.1)
        node, _ = hostileros.node_of(master)
        for kind, (what, _, _) in (
            ("", ("nobody else", 0, None)),
            *hostileros.ATTACKS.items(),
        ):
            honest = Honest(list(range(PORT, PORT + 20)))
            honest.start()
            code = f"from bench.hostileros import attack; attack({kind!r}, {master!r}, {seconds})"
            attackers = subprocess.Popen([sys.executable, "-c", code]) if kind else None
            begin, used, memory = time.monotonic(), sim.cpu(), [sim.memory()]
            waits: list[float] = []
            while time.monotonic() - begin < seconds:
                for uri, method in ((master, "getPid"), (node, "getPublications")):
                    asked = time.monotonic()
                    waits.append(
                        time.monotonic() - asked
                        if _answers(lambda u=uri, m=method: hostileros.ask(u, m, "/me"))
                        else 60.0
                    )

                memory.append(sim.memory())
                time.sleep(0.5)

            took, cpu = time.monotonic() - begin, sim.cpu() - used
            if attackers is not None:
                attackers.kill()
                attackers.wait()

            print(
                f"{what}: honest {honest.end()}; an answer takes "
                f"{np.median(waits):.2f} s, at most {max(waits):.2f} s; "
                f"CPU {cpu / took:.2f}, memory {memory[0]:.0f} MB before, "
                f"{max(memory):.0f} MB at most, exceptions {sim.faults()}",
                flush=True,
            )
            time.sleep(6.0)  # what was begun ends

        print(
            f"memory {sim.memory():.0f} MB, files {sim.held()[0]}, log "
            f"{sim.log.stat().st_size} bytes, status at the end {sim.stop()}"
        )


def peers(seconds: float = 3.0) -> None:
    """An honest client while peers send what keeps the simulator busy or its memory
    full: a server for each attack.
    """
    print(
        "| attack | largest gap, ms | memory before, at most, MB | success of "
        "the attacker | exceptions |\n|---|---|---|---|---|"
    )
    for kind, (what, _) in hostilepeers.ATTACKS.items():
        with Simulator(
            "-m", "office", "-r", "p3dx", *hostilepeers.options(PORT)
        ) as sim:
            honest = Honest([PORT])
            honest.start()
            code = f"from bench.hostilepeers import attack; attack({kind!r}, {PORT}, {seconds})"
            environment = os.environ | {"PYTHONPATH": os.getcwd()}
            time.sleep(1.0)
            memory = [sim.memory()]
            attacker = subprocess.Popen(
                [sys.executable, "-c", code],
                stdout=subprocess.PIPE,
                text=True,
                cwd=sim.folder,
                env=environment,
            )
            while attacker.poll() is None:
                time.sleep(0.1)
                memory.append(sim.memory())

            time.sleep(1.0)
            assert attacker.stdout is not None
            said = (
                attacker.stdout.read().strip()
                or f"the attacker failed, status {attacker.returncode}"
            )
            attacker.stdout.close()
            gap = honest.largest()
            honest.end()
            status = sim.stop()
            if kind == "same":
                said += "; the first recording: " + _is_whole(
                    Path(sim.folder, "run.mcap")
                )

            _row(
                what,
                gap,
                memory,
                said + (f"; status {status}" if status else ""),
                sim.faults(),
            )

    _bad_orders(seconds)
    feed, due, most, left = hostilepeers.come_and_go(4, 4000)
    print(
        "| RTPS: 4 participants with 4000 readers each come and go | – | – | "
        f"largest call: `feed` {1e3 * feed:.1f} ms, "
        f"`due` {1e3 * due:.1f} ms of CPU; {most} readers matched, {left} left | – |"
    )


def _row(
    what: str, gap: float, memory: Sequence[float], said: str, faults: int
) -> None:
    print(
        f"| {what} | {1e3 * gap:.0f} | {memory[0]:.0f}, {max(memory):.0f} | {said} | {faults} |",
        flush=True,
    )


def _is_whole(recording: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "botyard", "replay", "--info", str(recording)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return (
        "whole"
        if done.returncode == 0
        else (done.stderr.strip().splitlines() or ["?"])[-1][:100]
    )


def _bad_orders(seconds: float) -> None:
    """Bad VDA 5050 orders for one AGV; the gap is the largest between answers of
    another one.
    """
    program = shutil.which(
        "mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    )
    if program is None:
        print("| VDA 5050: bad orders | not tried: Mosquitto is missing | | | |")
        return

    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        tempfile.TemporaryFile("w+") as errors,
    ):
        Path(folder, "broker.conf").write_text(
            f"listener {PORT} 127.0.0.1\nallow_anonymous true\npersistence false\n"
        )
        broker = subprocess.Popen(
            [program, "-c", f"{folder}/broker.conf"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not _answers(
                lambda: socket.create_connection(("127.0.0.1", PORT), 5).close()
            ):
                time.sleep(0.05)

            orders = hostilepeers.Orders(PORT)
            options = (
                "traffic",
                "vda5050",
                "--broker",
                f"127.0.0.1:{PORT}",
                "--agvs",
                "2",
            )
            agvs = subprocess.Popen(
                [sys.executable, "-m", "botyard", *options],
                stdout=errors,
                stderr=errors,
            )
            try:
                began = time.monotonic()
                while (
                    orders.online < 2
                    and agvs.poll() is None
                    and time.monotonic() < began + 60.0
                ):
                    time.sleep(0.05)

                statm = Path(f"/proc/{agvs.pid}/statm")
                page = os.sysconf("SC_PAGE_SIZE") / 1e6
                memory, over = (
                    [int(statm.read_text().split()[1]) * page],
                    threading.Event(),
                )

                def watch() -> None:
                    while not over.wait(0.1) and agvs.poll() is None:
                        with contextlib.suppress(OSError, IndexError):
                            memory.append(int(statm.read_text().split()[1]) * page)

                watcher = threading.Thread(target=watch, daemon=True)
                watcher.start()
                said = orders.attack(seconds)
                over.set()
                watcher.join()
                ended = (
                    ""
                    if agvs.poll() is None
                    else f"; it ended with status {agvs.returncode}"
                )
            finally:
                if agvs.poll() is None:
                    agvs.terminate()
                agvs.wait(30)

            text = os.pread(errors.fileno(), 1 << 26, 0).decode(errors="replace")
            faults = text.count("Traceback") + text.count("internal error")
            _row(
                "VDA 5050: bad orders (gap: answers of another AGV)",
                max(orders.gaps),
                memory,
                said + ended,
                faults,
            )
        finally:
            broker.terminate()
            broker.wait(30)


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except (OSError, ValueError, TypeError, IndexError):
        return False

    return True


# -- floods of one kind


def _flooded(
    what: str,
    seconds: float,
    robots: Sequence[str],
    honest: int,
    attack: Callable[[float], object],
) -> None:
    """Gaps of honest clients alone, and while `attack(seconds)` runs."""
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
    """Output of a process of attackers at its end."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from bench.reliability import {code.partition('(')[0]}; print({code})",
        ],
        capture_output=True,
        text=True,
        timeout=seconds + 300.0,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip()[-300:]


def send_for(first: int, count: int, seconds: float, kind: str) -> str:
    """Clients that send one kind of command as fast as it is read, in a process of
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
    return f"{count} clients got {sent / seconds / 1e3:.0f} kB/s through"


def come_and_go(port: int, at_once: int, a_second: float, seconds: float) -> str:
    """Clients of a factory, in a process of their own: a burst, and then clients that
    come and go at a rate.
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
    return f"{visits} visits, {served} had a robot, the last after {most:.1f} s"


def reconfigure(seconds: float = 20.0) -> None:
    """100 clients change the rays of their lasers as fast as they are read."""
    _flooded(
        "laser settings",
        seconds,
        ["-r", "p3dx"] * 150,
        50,
        lambda t: _beside(f"send_for({PORT + 50}, 100, {t}, 'reconfigure')", t),
    )


def poses(seconds: float = 20.0) -> None:
    """100 clients put their robots on top of each other, anywhere, and out of the
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
    """A thousand clients of a factory come at once, and go at once."""

    def attack(t: float) -> str:
        did = _beside(f"come_and_go({PORT + 50}, 950, 0, {t})", t)
        time.sleep(5.0)
        return did

    _flooded(
        "a thousand at once", seconds, ["-r", "p3dx"] * 50 + ["-R", "p3dx"], 50, attack
    )


# -- soak


def soak(minutes: float = 1.0) -> None:
    """Robots whose clients come and go over TCP."""
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
    """Simulated time on null modems: 50 robots, clients that come and go."""
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

    late = samples[max(1, len(samples) // 10) :] or samples
    print(
        f"{hours:g} h simulated on null modems in {time.monotonic() - begin:.0f} "
        f"s, {visits} visits: memory {late[0]:.1f} MB after a "
        f"tenth, "
        f"{late[-1]:.1f} MB at the end ({100 * (late[-1] / late[0] - 1):+.1f} "
        f"%), most {most():.0f} MB"
    )


# -- maps


def maps(points: int = 200_000) -> None:
    """A large map is loaded by a client while others drive."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        rng = np.random.default_rng(1)
        xy = rng.integers(-50_000, 50_000, (points, 2))
        text = "\n".join(f"{x} {y}" for x, y in xy.tolist())
        head = (
            "2D-Map\nMinPos: -50000 -50000\nMaxPos: 50000 50000\nNumPoints: "
            f"{points}\nResolution: 20\nDATA\n"
        )
        Path(folder, "large.map").write_text(head + text + "\n")
        Path(folder, "bad.map").write_text(head.replace("20", "fine") + text + "\n")
        corners = "-50000 -50000 50000 -50000\n50000 -50000 50000 50000\n"
        lines = (
            "2D-Map\nLineMinPos: -50000 -50000\nLineMaxPos: 50000 "
            f"50000\nNumLines: 2\nLINES\n{corners}"
        )
        Path(folder, "small.map").write_text(lines)
        with Simulator(
            "-m",
            "small.map",
            "--start",
            "random",
            *["-r", "p3dx"] * 50,
            "--cwd",
            folder,
            folder=tempfile.mkdtemp(dir=folder),
        ) as sim:
            print(f"49 honest clients alone, 15 s: {_alone(49)}", flush=True)
            for name in ("large.map", "bad.map"):
                honest = Honest(list(range(PORT + 1, PORT + 50)))
                honest.start()
                with PioneerClient(port=PORT) as asker:
                    time.sleep(3.0)
                    begin = time.monotonic()
                    asker.send_raw(
                        frame(
                            236,
                            b"\x3b\x01\x00"
                            + len(name).to_bytes(2, "little")
                            + name.encode(),
                        )
                    )
                    while not asker.map_changes:
                        asker.update()
                    took = time.monotonic() - begin
                    answer = asker.map_changes[0].loaded

                time.sleep(3.0)
                print(
                    f"{name}, {points} points: answer {answer} after {took:.1f} "
                    f"s; the others: {honest.end()}"
                )
                time.sleep(1.0)

            print(
                f"exceptions {sim.faults()}, memory {sim.memory():.0f} MB, status {sim.stop()}"
            )


# -- files and pictures


def _alone(count: int, seconds: float = 15.0) -> str:
    """Baseline: gaps of honest clients without any attack."""
    honest = Honest(list(range(PORT + 1, PORT + 1 + count)))
    honest.start()
    time.sleep(seconds)
    said = honest.end()
    time.sleep(1.0)
    return said


def _upload(page: str, name: str, data: bytes) -> tuple[int, str]:
    """Send a file as the page does: status and answer."""
    base, _, token = page.partition("/#token=")
    request = urllib.request.Request(
        f"{base}/upload?name={name}",
        data=data,
        method="POST",
        headers={"Authorization": f"Bearer {token}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace").splitlines()[0]


def _ask_for_map(client: PioneerClient, name: str) -> int:
    """Load a map as a client does: the answer."""
    count = len(client.map_changes)
    client.send_raw(
        frame(236, b"\x3b\x01\x00" + len(name).to_bytes(2, "little") + name.encode())
    )
    while all(c.name != name for c in client.map_changes[count:]):
        client.update()
    return next(c.loaded for c in client.map_changes[count:] if c.name == name)


def uploads(rounds: int = 1) -> None:
    """Decompression bombs, slow and malformed files, by the page and by a client, while
    others drive.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        files = badmaps.bad_maps()
        Path(folder, "tmp").mkdir()
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        corners = "-50000 -50000 50000 -50000\n50000 -50000 50000 50000\n"
        Path(folder, "small.map").write_text(
            "2D-Map\nLineMinPos: -50000 -50000\nLineMaxPos: 50000 "
            f"50000\nNumLines: 2\nLINES\n{corners}"
        )
        with Simulator(
            "-m",
            "small.map",
            "--start",
            "random",
            *["-r", "p3dx"] * 50,
            "--cwd",
            folder,
            "--gui-port",
            str(PORT - 1),
            folder=tempfile.mkdtemp(dir=folder),
            temporary=Path(folder) / "tmp",
        ) as sim:
            before = sim.memory()
            print(f"49 honest clients alone, 15 s: {_alone(49)}", flush=True)
            honest = Honest(list(range(PORT + 1, PORT + 50)))
            honest.start()
            with PioneerClient(port=PORT) as client:
                for _ in range(rounds):
                    for name, data in files.items():
                        begin = time.monotonic()
                        status, why = _upload(sim.ready["page"], name, data)
                        half = time.monotonic()
                        answer = _ask_for_map(client, name)
                        times = (
                            f"page {half - begin:.1f} s ({status}), client "
                            f"{time.monotonic() - half:.1f} s ({answer})"
                        )
                        print(
                            f"{name} ({len(data) / 1e6:.1f} MB): {times} {why[:150]}",
                            flush=True,
                        )
                        if status == 200 or answer == 1:
                            assert _ask_for_map(client, "small.map") == 1

            print(f"the others: {honest.end()}")
            after = sim.memory()
            with socket.create_connection(("127.0.0.1", PORT), 5) as asker:
                for n in (0, 1, 2):
                    asker.sendall(frame(n))
                    asker.recv(1000)

                asker.sendall(frame(236, b"\x3b\x01\x00\x08\x00ones.map"))
                time.sleep(1.0)
                begin = time.monotonic()
                status = sim.stop()
                ended = time.monotonic() - begin

            left = [p.name for p in (Path(folder) / "tmp").iterdir()]
            print(
                f"memory {before:.0f} MB before, {after:.0f} after; exceptions "
                f"{sim.faults()}; SIGTERM while a map is read: "
                f"status {status} after {ended:.1f} s; temporary files left: {left or 'none'}"
            )


def pictures(seconds: float = 20.0) -> None:
    """A client puts a robot far away and asks for pictures all the time, while others
    drive.
    """
    far = b"".join(v.to_bytes(4, "little", signed=True) for v in (0, 6_000_000, 0))
    for what, wait in (("one a second", 1.05), ("as fast as it can", 0.002)):
        with Simulator(
            "-m", "office", "--start", "random", *["-r", "p3dx"] * 50
        ) as sim:
            before = sim.memory()
            print(f"49 honest clients alone, 15 s: {_alone(49)}", flush=True)
            honest = Honest(list(range(PORT + 1, PORT + 50)))
            honest.start()
            with PioneerClient(port=PORT) as client:
                client.send_raw(frame(224, b"\x1b" + far))
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    client.send_raw(frame(236, b"\x3b\x08\x00"))
                    client.update()
                    time.sleep(wait)

            files = list(Path(sim.folder).glob("*.png"))
            size = sum(f.stat().st_size for f in files) / max(1, len(files))
            print(
                f"pictures asked for {what}: {len(files)} written, "
                f"{size / 1e3:.0f} kB each; the others: {honest.end()}; "
                f"memory {before:.0f} MB before, {sim.memory():.0f} after, "
                f"exceptions {sim.faults()}, status {sim.stop()}",
                flush=True,
            )


# -- faults


def _reports(port: int, seconds: float = 1.0) -> int:
    """How many reports a client gets."""
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

        return f"a client had reports again after {_until_served(PORT, time.monotonic()):.2f} s"


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
            f"the session goes on, {n} reports in the first 2 s (20 are due); "
            f"exceptions {sim.faults()}"
        )


def _full_disk() -> str:
    folder = tempfile.mkdtemp(prefix="bench-disk-")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
        check=False,
        capture_output=True,
    ).returncode:
        return "not tried: no right to mount"

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
                f"{free} bytes left on it; {n} reports in 2 s (20 are due), "
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
                f"answer {answer} (2: not loaded, the current one stays), {n} "
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
                        s.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                        )  # reset

                    s.sendall(hello[:n])
                    if how is not None:
                        s.shutdown(how)
                        while s.recv(4096):
                            pass

        time.sleep(0.5)
        n, more = _reports(PORT), sim.held()[0] - files
        return (
            f"{2 * len(hello) + 2} visits; {n} reports in a second for the "
            f"next client, {more} files more, exceptions {sim.faults()}"
        )


def _clock_jumps() -> str:
    """By the fake clock of a null modem: the session's clock jumps ahead by an hour."""
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
        reports += len(Parser().receive(session.data_to_send()))

    return (
        f"session closed: {session.is_closed}; {reports} reports in 8 steps, "
        "2 of them beside a jump"
    )


FAULTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    (
        "kill -9 of the worker",
        "clients connect again within 3 s, robots where they were",
        _killed,
    ),
    (
        "SIGSTOP for 5 s, SIGCONT",
        "sessions go on; lost time is given up, not caught up",
        _stopped,
    ),
    ("clock jumps by an hour and back", "no session ends by it", _clock_jumps),
    (
        "disk full (log, recording of packets, state)",
        "lines and state are lost, nothing else",
        _full_disk,
    ),
    ("port taken", "status 248, and how to choose another", _port_taken),
    ("map deleted under it", "the old map stays, the client is told", _map_deleted),
    (
        "client gone at every byte of the handshake",
        "the robot is free for the next one",
        _gone_half_way,
    ),
)


def faults() -> None:
    """Inject each fault; print what is promised and what is observed."""
    for what, promised, run in FAULTS:
        print(f"{what}\n    promised: {promised}\n    seen:     {run()}", flush=True)


def main() -> None:
    print(f"reference: NumPy workload {reference_loop():.3f} CPU s")
    hostile()
    viewer(5.0)
    ros(5.0)
    peers()
    soak()
    day()
    maps()
    uploads()
    pictures(5.0)
    faults()
    for flood in (reconfigure, poses, factory):
        flood(5.0)
    factory1000(15.0)


if __name__ == "__main__":
    parts: dict[str, Callable[..., None]] = {
        "hostile": hostile,
        "viewer": viewer,
        "ros": ros,
        "peers": peers,
        "soak": soak,
        "day": day,
        "maps": maps,
        "uploads": uploads,
        "pictures": pictures,
        "faults": faults,
        "reconfigure": reconfigure,
        "poses": poses,
        "factory": factory,
        "factory1000": factory1000,
    }
    parts[sys.argv[1]](
        *[
            float(a)
            if sys.argv[1] not in ("hostile", "maps", "uploads")
            else int(float(a))
            for a in sys.argv[2:]
        ]
    )
