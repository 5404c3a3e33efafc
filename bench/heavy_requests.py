"""Service to honest clients while other clients load huge or bad maps and ask for pictures."""

from __future__ import annotations

import socket
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

from bench import badmaps
from bench.simulator_process import PORT, Honest, Simulator
from botyard.clients.pioneer import PioneerClient
from botyard.protocols.pioneer.packet import frame


def maps(points: int = 200_000) -> None:
    """One client loads a large map while other clients drive."""
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
    """Return the gaps of honest clients without any attack, as the baseline."""
    honest = Honest(list(range(PORT + 1, PORT + 1 + count)))
    honest.start()
    time.sleep(seconds)
    said = honest.end()
    time.sleep(1.0)
    return said


def _upload(page: str, name: str, data: bytes) -> tuple[int, str]:
    """Send a file as the page does; return status and answer."""
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
    """Load a map as a Pioneer client does; return the answer."""
    count = len(client.map_changes)
    client.send_raw(
        frame(236, b"\x3b\x01\x00" + len(name).to_bytes(2, "little") + name.encode())
    )
    while all(c.name != name for c in client.map_changes[count:]):
        client.update()
    return next(c.loaded for c in client.map_changes[count:] if c.name == name)


def uploads(rounds: int = 1) -> None:
    """Upload decompression bombs, slow and malformed files through the page and a client, while
    other clients drive.
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
    """One client puts a robot far away and asks for pictures without pause, while other clients
    drive.
    """
    far = b"".join(v.to_bytes(4, "little", signed=True) for v in (0, 6_000_000, 0))
    for what, wait in (("once a second", 1.05), ("as fast as the client can", 0.002)):
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
                f"pictures requested {what}: {len(files)} written, "
                f"{size / 1000.0:.0f} kB each; the others: {honest.end()}; memory "
                f"{before:.0f} MB before, {sim.memory():.0f} after, exceptions "
                f"{sim.faults()}, status {sim.stop()}",
                flush=True,
            )
