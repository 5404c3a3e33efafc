"""Robot factories, maps loaded while clients drive, p2os over a socket (HSK-025,
HSK-026, SIM-024, HSK-029).
"""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path

import pytest

from botyard.clients.pioneer import PioneerClient
from botyard.protocols.pioneer.commands import C, Ctrl
from botyard.protocols.pioneer.packet import frame
from botyard.protocols.pioneer.simreports import MapChanged
from botyard.testing import P2osClient
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE, Stalls

pytestmark = pytest.mark.peer


def test_a_robot_for_every_client() -> None:
    port = free_port(4)
    with running(
        "-m", "office", "-r", "p3dx:fixed", "-R", "p3at", "-R", "amigo", "-p", str(port)
    ) as (_, ready):
        assert [r["port"] for r in ready["robots"]] == [port]
        assert [(f["model"], f["port"]) for f in ready["factories"]] == [
            ("p3at", port + 1),
            ("amigo", port + 2),
        ]
        with (
            PioneerClient(port=port + 1) as one,
            PioneerClient(port=port + 1) as two,
            PioneerClient(port=port + 2) as other,
        ):
            assert [c.subclass for c in (one, two, other)] == ["p3at", "p3at", "amigo"]
            for client in (one, two, other):
                client.send_raw(
                    frame(C.SIM_CTRL, struct.pack("<BH", 0x3B, Ctrl.SIMINFO))
                )
                while client.siminfo is None:
                    assert client.update()

            names = [
                c.siminfo.devices[0].name.partition(".pioneer")[0]
                for c in (one, two, other)
                if c.siminfo
            ]
            assert names == ["127.0.0.1", "127.0.0.1_002", "127.0.0.1_003"], (
                "called by the client's address (FRM-021)"
            )
            for client in (one, two, other):
                client.enable()
                client.send(237, 1)
                assert client.update()
                assert client.motors_on, "a new robot's motors are on"

            one.vel(200)
            for _ in range(15):
                assert one.update()
                assert two.update()

            assert one.x_mm > 50
            assert abs(two.x_mm) < 1, "each has its own"
            assert one.simstat is not None
            assert two.simstat is not None
            apart = abs(one.simstat.x_mm - two.simstat.x_mm) + abs(
                one.simstat.y_mm - two.simstat.y_mm
            )
            assert apart >= 500, "they start at different places"
            first = (one.simstat.x_mm, one.simstat.y_mm)

        deadline = time.monotonic() + PATIENCE
        # Wait until the place of the first robot is free again.
        while True:
            with PioneerClient(port=port + 1) as again:
                again.send(237, 1)
                again.update()
                assert (again.x_mm, again.y_mm) == (0, 0)
                assert again.simstat is not None
                if (again.simstat.x_mm, again.simstat.y_mm) == first:
                    break

            assert time.monotonic() < deadline, (
                "robots of clients that have left are gone"
            )


@pytest.mark.shared
@pytest.mark.parametrize("name", ["factory.disconnect", "factory.second"])
def test_recorded_factory_sessions(shared: Path, name: str) -> None:
    """The bytes of the recordings over sockets:

    the port serves at once after a disconnect, a second client gets a new robot.
    """
    events = [
        json.loads(line)
        for line in (shared / f"golden/{name}.jsonl").read_text().splitlines()[1:]
    ]
    hello = [
        bytes.fromhex(e["hex"])
        for e in events
        if e.get("dir") == "tx" and e["note"].startswith(("SYNC", "OPEN"))
    ][:4]
    port = free_port(2)
    with running("--nomap", "-R", "p3dx", "-p", str(port)):

        def client() -> tuple[socket.socket, float]:
            began = time.monotonic()
            sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            sock.settimeout(PATIENCE)
            for data in hello[:3]:
                sock.sendall(data)
                assert sock.recv(100)[:2] == b"\xfa\xfb"

            return sock, time.monotonic() - began

        first, _ = client()
        second, _ = client()
        for sock in (first, second):
            sock.sendall(hello[3])
            assert sock.recv(200)[3] == 0x32

        first.close()
        stalls = Stalls()
        third, seconds = client()
        assert seconds < 0.3 + stalls.end(), "the original answers after 0.1–0.2 s too"
        for sock in (second, third):
            sock.close()


def test_a_map_is_loaded_while_others_drive(tmp_path: Path) -> None:
    """A map of 200,000 points:

    all clients are notified, and no client's reports stop for two periods (SIM-024,
    HSK-027).
    """
    points = "\n".join(f"{20 * (i % 500)} {20 * (i // 500)}" for i in range(200_000))
    (tmp_path / "big.map").write_text(
        f"2D-Map\nLINES\n-9000 -9000 9000 -9000\nDATA\n{points}\n"
    )
    port = free_port(2)
    with (
        running(
            "--nomap",
            "-r",
            "p3dx",
            "-r",
            "amigo",
            "-p",
            str(port),
            "--map-dir",
            str(tmp_path),
        ),
        PioneerClient(port=port) as asks,
        PioneerClient(port=port + 1) as drives,
    ):
        drives.enable()
        drives.vel(100)
        for _ in range(5):
            asks.update()
            drives.update()

        name = b"BIG.map"
        asks.send_raw(
            frame(236, b"\x3b\x01\x00" + len(name).to_bytes(2, "little") + name)
        )
        last, gaps, told = time.monotonic(), [], {asks: 0, drives: 0}
        deadline = last + PATIENCE
        stalls = Stalls()
        while min(told.values()) == 0:
            assert time.monotonic() < deadline, "nobody was told"
            assert drives.update()
            now = time.monotonic()
            gaps.append(now - last)
            last = now
            asks.update(0.01)
            for client in told:
                told[client] = len([m for m in client.map_changes if m.loaded == 1])

        assert asks.map_changes == [MapChanged(loaded=1, name="BIG.map")]
        still = stalls.end()
        assert max(gaps) < 1.0 + still, (
            "ARIA wants a report a second at least; the longest gap was "
            f"{max(gaps):.2f} s ({still:.2f})"
        )
        assert drives.x_mm > 0


def test_p2os_over_a_socket() -> None:
    port = free_port(2)
    with running("--nomap", "-r", "p3dx", "-p", str(port)):
        sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)

        def receive(seconds: float) -> bytes:
            time.sleep(seconds)
            sock.setblocking(False)
            try:
                return sock.recv(65536)
            except BlockingIOError:
                return b""
            finally:
                sock.setblocking(True)

        client = P2osClient(sock.sendall, receive, 0.485)
        client.connect()
        assert client.names == ("AMRISim", "Pioneer", "p3dx")
        for _ in range(15):
            client.command(11, 300)
        assert client.x_mm > 50
        assert client.tainted == 0
        client.command(11, 0)
        sock.close()


def test_working_folder_and_log_file(tmp_path: Path) -> None:
    """--cwd, --log-file, SIM_CTRL 4:

    the log goes to a file in that folder, which is started anew five times on demand.
    """
    port = free_port(2)
    args = (
        "--nomap",
        "-r",
        "p3dx",
        "-p",
        str(port),
        "--cwd",
        str(tmp_path),
        "--log-file",
        "run.log",
    )
    with running(*args), PioneerClient(port=port) as client:
        for _ in range(7):
            client.send_raw(frame(236, b"\x3b\x04\x00"))
            client.update()

        client.send_raw(frame(236, b"\x3b\x08\x00"))
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "botyard.png").exists() and time.monotonic() < deadline:
            client.update()

    names = sorted(p.name for p in tmp_path.iterdir())
    # The lock of the log stays after the end, as the lock of a recording does.
    assert names == [
        ".run.log.lock",
        "botyard.png",
        "run.log",
        *(f"run.log-{i}" for i in range(1, 6)),
    ]
    assert "connected" not in (tmp_path / "run.log").read_text(), (
        "that line is long in an older file"
    )
