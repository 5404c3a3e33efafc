"""Service to honest clients while peers of other protocols attack.

Attacks come through the page's WebSocket (``viewer``), ROS 1 (``ros``), RTPS, rosbridge,
AMBF and VDA 5050 (``peers``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench import hostilepage, hostilepeers, hostileros
from bench.simulator_process import PORT, Honest, Simulator

VIEWERS: tuple[tuple[str, str, int, float], ...] = (
    (
        (
            "a read-only viewer requests clearances and the catalogue, 290 times a "
            "second"
        ),
        "asks",
        1,
        290.0,
    ),
    ("30 read-only viewers send requests as fast as they may", "asks", 30, 0.0),
    ("30 read-only viewers send empty messages and pings", "tiny", 30, 0.0),
    ("300 connections that show no token", "hold", 300, 0.0),
    (
        "100 clients without a token request files, figures and sockets",
        "knock",
        100,
        0.0,
    ),
)


def viewer(seconds: float = 20.0) -> None:
    """Measure honest clients while viewers and strangers load the page's server, and the time
    until a viewer with the token gets in.
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
            # Work that strangers started must end before the next attack is measured.
            time.sleep(6.0)

        print(f"files {sim.held()[0]}, status at the end {sim.stop()}")


def ros(seconds: float = 20.0) -> None:
    """Measure honest clients while peers attack the ROS 1 ports, and how long honest nodes wait
    for answers.
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
            # Work that the attack left unfinished must end before the memory is compared.
            time.sleep(6.0)

        print(
            f"memory {sim.memory():.0f} MB, files {sim.held()[0]}, log "
            f"{sim.log.stat().st_size} bytes, status at the end {sim.stop()}"
        )


def peers(seconds: float = 3.0) -> None:
    """Measure an honest client while peers send messages that keep the simulator busy or fill
    its memory; each attack has a server of its own.
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
    """Send bad VDA 5050 orders to one AGV; print the largest gap between answers of another
    AGV.
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
