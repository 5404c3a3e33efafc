"""End to end: the program as a user starts it, real sockets, the package's client."""

from __future__ import annotations

import math
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from botyard.clients.ambf.client import Client
from botyard.clients.discovery import probe
from botyard.clients.pioneer import PioneerClient
from botyard.clients.trace import Trace, play
from botyard.errors import PeerError
from botyard.protocols.pioneer.packet import command, frame
from tests.golden import deviation
from tests.ports import free_port
from tests.running import BOTYARD, running
from tests.waiting import PATIENCE, wait


@pytest.mark.peer
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_robots_from_start_to_end(number: int) -> None:
    port = free_port()
    with running(
        "-m", "office", "-r", "p3dx", "-r", "amigo:bob", "-p", str(port), "--seed", "5"
    ) as (process, ready):
        assert ready["ready"] is True
        assert ready["seed"] == 5
        assert [(r["name"], r["model"], r["port"]) for r in ready["robots"]] == [
            ("p3dx", "p3dx", port),
            ("bob", "amigo", port + 1),
        ]
        with PioneerClient(port=port) as p3dx, PioneerClient(port=port + 1) as bob:
            assert (p3dx.name, p3dx.subclass, bob.subclass) == (
                "AMRISim",
                "p3dx",
                "amigo",
            )
            assert p3dx.request_config().trans_vel_top == 1000
            assert bob.request_config().trans_vel_top == 500
            p3dx.start_laser()
            p3dx.enable()
            p3dx.vel(200)
            for _ in range(12):
                assert p3dx.update()
                assert bob.update()

            assert p3dx.x_mm > 50
            assert abs(bob.x_mm) < 1
            assert len(p3dx.scan_mm) == len(p3dx.reflectance) == 181
            assert p3dx.scans > 0
            assert len(bob.sonar_mm) == 8
            deviation("second-client-refused")
            # A second client is refused, and neither the first client nor the other
            # robot
            # notices it.
            with pytest.raises(PeerError, match="another client"):
                PioneerClient(port=port, timeout=PATIENCE)
            assert p3dx.update()
            assert bob.update()

        # The same port serves another client afterwards.
        with PioneerClient(port=port) as again:
            assert again.update()
            assert not again.motors_on
            again.enable()
            assert again.update()
            assert again.update()
            assert again.motors_on

        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == 0


@pytest.mark.peer
def test_the_example_client_drives_around() -> None:
    port = free_port()
    example = Path(__file__).resolve().parents[2] / "examples/drive_pioneer.py"
    with running(
        "-m", "office", "-p", str(port), "--no-error", "--sensor-noise", "none"
    ) as (process, _):
        result = subprocess.run(
            [sys.executable, str(example), f"127.0.0.1:{port}", "10"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert process.poll() is None

    lines = [
        line.split() for line in result.stdout.splitlines() if line.startswith("x ")
    ]
    assert len(lines) >= 5
    assert math.hypot(float(lines[-1][1]), float(lines[-1][4])) > 300, (
        "it got somewhere"
    )


@pytest.mark.peer
def test_hostile_clients_cost_only_their_own_session() -> None:
    port = free_port()
    with (
        running("--nomap", "-r", "p3dx", "-r", "amigo", "-p", str(port)) as (
            process,
            _,
        ),
        PioneerClient(port=port + 1) as other,
    ):
        for data in (
            b"\xfa\xfb\x00",
            bytes(range(256)) * 50,
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xfa\xfb\xff" * 1000,
        ):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
                s.sendall(data)
                s.sendall(frame(0))
                s.settimeout(PATIENCE)
                assert s.recv(100)[:3] == b"\xfa\xfb\x03" or data.startswith(
                    b"\xfa\xfb\xff"
                )

            assert other.update()
            time.sleep(0.05)

        with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
            # This client disconnects in the middle of a packet.
            s.sendall(frame(0)[:4])

        time.sleep(0.05)
        with PioneerClient(port=port) as robot:
            assert robot.update()
        assert process.poll() is None


@pytest.mark.peer
def test_a_client_may_end_the_simulation_from_this_machine() -> None:
    port = free_port()
    with (
        running("--nomap", "-p", str(port)) as (process, _),
        PioneerClient(port=port) as robot,
    ):
        robot.send(239, 5)
        assert process.wait(timeout=PATIENCE) == 5


@pytest.mark.peer
def test_a_taken_port_is_one_clear_line_and_248() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        result = subprocess.run(
            [*BOTYARD, "--nomap", "-p", str(port)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert result.returncode == 248
    assert f"127.0.0.1:{port}" in result.stderr
    assert "choose another first port" in result.stderr
    assert (
        result.stderr.strip()
        .splitlines()[-2]
        .startswith("botyard: error: cannot listen on")
    )
    assert "Traceback" not in result.stderr


@pytest.mark.peer
def test_a_controller_drives_until_a_client_comes_and_after_it_has_gone() -> None:
    port = free_port()
    with running("-m", "office", "-p", str(port), "--controller", "wander") as (
        _,
        _ready,
    ):
        with PioneerClient(port=port) as robot:
            robot.send(237, 2)
            for _ in range(15):
                robot.update()
            assert robot.simstat is not None
            rest = (robot.simstat.x_mm, robot.simstat.y_mm, robot.simstat.th_deg)
            for _ in range(5):
                robot.update()
            assert (
                robot.simstat.x_mm,
                robot.simstat.y_mm,
                robot.simstat.th_deg,
            ) == rest, "the client commands nothing"

        def where() -> tuple[int, int, int]:
            with PioneerClient(port=port) as robot:
                robot.send(237, 1)
                while robot.simstat is None:
                    assert robot.update()
                return robot.simstat.x_mm, robot.simstat.y_mm, robot.simstat.th_deg

        # Without a client the robot drives.
        wait(lambda: where() != rest, pause=0.5)


@pytest.mark.peer
def test_a_client_that_never_reads_does_not_stop_the_others() -> None:
    port = free_port()
    with running(
        "-m",
        "office",
        "-r",
        "p3dx",
        "-r",
        "amigo",
        "-p",
        str(port),
        "--fast",
        "--duration",
        "100000",
    ) as (
        process,
        _,
    ):
        deaf = socket.create_connection(("127.0.0.1", port), PATIENCE)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for n in (0, 1, 2):
            deaf.sendall(frame(n))
        deaf.sendall(command(1, 1) + command(237, 2) + command(230, 2))
        with PioneerClient(port=port + 1) as other:
            for _ in range(150):
                assert other.update()

        assert process.poll() is None
        deaf.close()


@pytest.mark.peer
@pytest.mark.parametrize("address", ["127.0.0.2", "::1"])
def test_a_chosen_address_alone_is_served(address: str) -> None:
    """--bind-to-address (FRM-018), also IPv6 (FRM-020)."""
    if address == "::1":
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6")

    port = free_port()
    with running(
        "--nomap", "-r", "p3dx", "-p", str(port), "--bind-to-address", address
    ) as (_, ready):
        assert ready["robots"][0]["host"] == address
        with PioneerClient(address, port) as client:
            assert client.update()
        with pytest.raises(PeerError, match="no robot at"):
            PioneerClient("127.0.0.1", port, timeout=2)


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 8101), ("x" * 300, 8101), ("127.0.0.1", 99999)]
)
def test_an_address_that_cannot_be_has_no_robot(host: str, port: int) -> None:
    with pytest.raises(PeerError, match="no robot at"):
        PioneerClient(host, port)
    with pytest.raises(PeerError, match="no robot at"):
        play(Trace((), 0.0), host, port)
    with pytest.raises(PeerError, match="no simulator at"):
        Client("c", host, port).connect()
    assert probe(host, first=port, timeout=0.1) == []
