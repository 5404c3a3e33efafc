"""Each command that may wait says why. Here the threshold for the message is zero."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from botyard.interfaces.ros import traffic
from botyard.processes import slow_notice
from botyard.protocols.ros_messages.types import types
from botyard.protocols.vda5050.states import Vehicle5050
from botyard.servers import vda5050
from botyard.servers.ros import ros2zenoh, rosmap, xmlrpc
from tests.cli.test_cli import FAST, call
from tests.ports import free_port
from tests.waiting import PATIENCE


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_notice, "SLOW_AFTER_S", 0.0)


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("maps", "generate", "warehouse", "--aisles", "3000", "hall.map"),
            "generating hall.map",
        ),
        (("convert", "office", "other.yaml", "--to", "scenario"), "converting office"),
        (("maps", "list", "office"), "reading office"),
        (("scenario", "check", "office"), "reading office"),
        (("-m", "office", "-r", "p3dx", "--no-gui", *FAST, "0"), "reading office"),
        (
            ("traffic", "generate", "ring", "-n", "12"),
            "generating a task for 12 robots",
        ),
    ],
)
def test_long_work(
    args: tuple[str, ...],
    words: str,
    soon: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if args[-1] == "0":
        args = (*args[:-1], str(free_port(2)))
    _, _, err = call(*args, capsys=capsys)
    assert f"botyard: {words}" in err


def test_quick_work_needs_no_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, err = call(
        "maps", "generate", "warehouse", str(tmp_path / "hall.map"), capsys=capsys
    )
    assert err == ""


def test_a_map_from_ros(
    soon: None,
    silent: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(xmlrpc, "CALL_TIMEOUT", 0.1)
    uri = f"http://127.0.0.1:{silent}/"
    _, _, err = call(
        "-m",
        "ros:/map",
        "--ros-master",
        uri,
        "-r",
        "p3dx",
        "--no-gui",
        *FAST,
        str(free_port(2)),
        capsys=capsys,
    )
    assert (
        f"waiting up to {rosmap.MAP_TIMEOUT_S:g} s for the map on /map of ROS 1, "
        f"whose master is {uri}" in err
    )


@pytest.mark.parametrize("more", [("--ros-wait",), ()])
def test_a_ros_master(
    more: tuple[str, ...],
    soon: None,
    silent: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(xmlrpc, "CALL_TIMEOUT", 0.1)
    uri = f"http://127.0.0.1:{silent}/"
    args = (
        "--nomap",
        "-r",
        "p3dx",
        "--no-gui",
        "--ros-master",
        uri,
        *more,
        *FAST,
        str(free_port(2)),
    )
    _, _, err = call(*args, capsys=capsys)
    assert f"waiting for the ROS master at {uri}" in err


def test_a_supervisor_over_ros(
    soon: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = iter([False] * 3)
    monkeypatch.setattr(
        traffic.TrafficNode, "has_supervisor", property(lambda _: next(looks, True))
    )
    task = tmp_path / "task.json"
    assert (
        call("traffic", "generate", "ring", "-n", "2", "-o", str(task), capsys=capsys)[
            0
        ]
        == 0
    )
    master = (
        "--ros-master",
        f"embedded:{free_port()}",
        "--wait-for-supervisor",
        "--idle-limit",
        "0.01",
    )
    code, _, err = call("traffic", "run", str(task), *master, capsys=capsys)
    assert (code, "waiting for a supervisor: a subscriber of" in err) == (11, True), err


def test_an_mqtt_broker_that_says_nothing(
    soon: None, silent: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fleet = vda5050.MqttFleet([Vehicle5050("acme", "one")], SimpleNamespace())  # type: ignore[arg-type]

    async def run() -> None:
        stop = asyncio.Event()
        task = asyncio.ensure_future(fleet.run("127.0.0.1", silent, stop=stop))
        async with asyncio.timeout(PATIENCE):
            while "does not answer as an MQTT broker" not in caplog.text:
                await asyncio.sleep(0.01)

        stop.set()
        assert await task is None

    asyncio.run(run())


def test_orders_that_do_not_come(
    soon: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    fleet = vda5050.MqttFleet([Vehicle5050("acme", "one")], SimpleNamespace())  # type: ignore[arg-type]
    for name in ("_connect", "_disconnect"):
        monkeypatch.setattr(fleet, name, lambda *_: None)
    sent = SimpleNamespace(is_published=lambda: True)
    monkeypatch.setattr(fleet, "_send", lambda messages: [sent for _ in messages])
    fleet._connected.add(0)

    async def run() -> None:
        stop = asyncio.Event()
        task = asyncio.ensure_future(fleet.run("broker", 1, stop=stop))
        async with asyncio.timeout(PATIENCE):
            while (
                "waiting for an order for each of 1 AGVs: uagv/v2/acme/one/order"
                not in caplog.text
            ):
                await asyncio.sleep(0.01)

        stop.set()
        await task

    asyncio.run(run())


def test_a_zenoh_router(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zenoh")
    caplog.set_level(logging.INFO)
    port = free_port()
    monkeypatch.delenv(ros2zenoh.CONFIGURATION, raising=False)
    monkeypatch.setattr(ros2zenoh, "ROUTER", f"tcp/127.0.0.1:{port}")
    monkeypatch.setattr(ros2zenoh, "ROUTER_PORT", port)
    monkeypatch.setattr(ros2zenoh, "ROUTER_POLL_S", 0.02)

    async def said(words: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while words not in caplog.text:
                await asyncio.sleep(0.02)

    async def run() -> None:
        node = ros2zenoh.Ros2Zenoh(types(), 0)
        await said(f"waiting for a Zenoh router at tcp/127.0.0.1:{port}")
        router = ros2zenoh.Ros2Zenoh(types(), 0, router=True)
        await said("found the Zenoh router")
        assert caplog.text.count("waiting for a Zenoh router") == 1
        await node.close()
        await router.close()

    asyncio.run(run())
