"""Metrics for operators of a simulator."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request

import pytest

from botyard.clients.pioneer import PioneerClient
from tests.ports import free_port
from tests.running import running
from tests.waiting import PATIENCE


def get(port: int, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}{path}", timeout=PATIENCE
        ) as answer:
            return answer.status, answer.headers["content-type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", error.read().decode()


def values(text: str) -> dict[str, float]:
    for line in text.splitlines():
        assert re.fullmatch(
            r"# (HELP|TYPE) botyard_\w+ .+|botyard_\w+ -?[\d.e+-]+", line
        ), line

    return {
        k: float(v)
        for k, v in (
            line.split() for line in text.splitlines() if not line.startswith("#")
        )
    }


@pytest.mark.peer
def test_metrics_and_health_on_a_port_of_their_own() -> None:
    port = free_port(4)
    with running(
        "--nomap",
        "-r",
        "p3dx",
        "-p",
        str(port),
        "--no-gui",
        "--metrics-port",
        str(port + 2),
    ):
        status, kind, text = get(port + 2, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        first = values(text)
        assert (
            first["botyard_robots"],
            first["botyard_clients"],
            first["botyard_paused"],
        ) == (1, 0, 0)
        with PioneerClient(port=port) as robot:
            robot.send_raw(b"\xfa\xfb\x05garbage")
            for _ in range(5):
                robot.update()
            second = values(get(port + 2, "/metrics")[2])
            assert second["botyard_clients"] == 1
            assert second["botyard_parser_errors"] >= 1
            assert second["botyard_steps_total"] > first["botyard_steps_total"]

        status, kind, text = get(port + 2, "/healthz")
        assert (status, kind) == (200, "application/json")
        assert '"status": "ok"' in text
        assert get(port + 2, "/secrets")[0] == 404
        for bad in (b"\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"x" * 20000, b""):
            with socket.create_connection(
                ("127.0.0.1", port + 2), timeout=PATIENCE
            ) as sock:
                sock.sendall(bad)
                sock.shutdown(socket.SHUT_WR)
                sock.recv(1000)

        assert get(port + 2, "/healthz")[0] == 200


@pytest.mark.peer
def test_the_page_has_them_too() -> None:
    port = free_port(4)
    with running("--nomap", "-r", "p3dx", "-p", str(port), "--gui-port", str(port + 2)):
        assert values(get(port + 2, "/metrics")[2])["botyard_robots"] == 1
        status, _, text = get(port + 2, "/healthz")
        assert (status, '"viewers": 0' in text) == (200, True)
