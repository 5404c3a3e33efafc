"""The page's server: who is let in, what is served, and that no viewer slows a step."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import websockets
from websockets.sync.client import ClientConnection, connect

from botyard.protocols.webgui import frames, messages
from botyard.protocols.webgui.frames import Bit, Block
from botyard.servers import web
from botyard.simulation import Simulation
from tests.page.serving import AUDIENCE, TOKEN, Served, served
from tests.waiting import PATIENCE

pytestmark = pytest.mark.peer


@pytest.fixture
def run() -> Iterator[Served]:
    sim = Simulation.load("office", step=0.05)
    sim.add_robot("p3dx", "ann")
    sim.add_robot("amigo", "bob")
    with served(sim) as one:
        yield one


def dial(run: Served, origin: str | None = None, **options: Any) -> contextlib.AbstractContextManager[ClientConnection]:
    return connect(f"ws://127.0.0.1:{run.port}/ws", origin=origin or f"http://127.0.0.1:{run.port}", **options)


class Client:
    """A page without a browser."""

    def __init__(self, run: Served, token: str = TOKEN, view: dict[str, Any] | None = None, **options: Any) -> None:
        self._stack = contextlib.ExitStack()
        self.socket = self._stack.enter_context(dial(run, max_size=None, **options))
        self.pushed: list[dict[str, Any]] = []
        self.number = 0
        self.socket.send(json.dumps({"type": "hello", "token": token, "version": messages.VERSION, "view": view or {}}))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def receive(self) -> dict[str, Any] | bytes:
        data = self.socket.recv(5)
        if isinstance(data, bytes):
            self.socket.send(json.dumps({"type": "ack", "number": frames.decode(data)[0].number}))
            return data
        message = json.loads(data)
        self.pushed.append(message)
        return message

    def frame(self) -> tuple[frames.Header, dict[Block, bytes]]:
        while True:
            data = self.receive()
            if isinstance(data, bytes):
                header, blocks = frames.decode(data)
                return header, {b[0]: b[3] for b in blocks}

    def push(self, kind: str) -> dict[str, Any]:
        """The next message of a kind, also one that came before."""
        while True:
            for message in self.pushed:
                if message["type"] == kind:
                    self.pushed.remove(message)
                    return message
            self.receive()

    def ask(self, kind: str, **fields: Any) -> Any:
        self.number += 1
        self.socket.send(json.dumps({"type": kind, "id": self.number, **fields}))
        while True:
            message = self.receive()
            if isinstance(message, dict) and message.get("id") == self.number:
                if message["type"] == "error":
                    raise ValueError(message["message"])
                return message.get("result")


def fetch(
    run: Served, path: str, *, host: str | None = None, data: bytes | None = None, **headers: str
) -> tuple[int, Any, bytes]:
    request = urllib.request.Request(
        f"{run.base}{path}", data=data, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    if host:
        request.add_header("Host", host)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_a_page_is_told_everything(run: Served) -> None:
    with Client(run, view={"odometry": True, "velocity": True}) as client:
        assert client.push("welcome")["audience"] == AUDIENCE
        schema = client.push("schema")
        assert [b["name"] for b in schema["bodies"][:2]] == ["ann", "bob"]
        assert schema["robots"] == 2 and schema["bodies"][0]["port"] == run.port + 1
        assert {g["kind"] for g in schema["groups"]} == {"laser", "sonar"}
        header, blocks = client.frame()
        n = len(schema["bodies"])
        assert header.schema == schema["number"] and len(blocks[Block.POSE]) == 12 * n
        x, y, _ = struct.unpack_from("<3f", blocks[Block.POSE])
        truth = run.do(lambda: run.sim.robots["ann"].truth)
        assert x + schema["origin"][0] == pytest.approx(truth.x, abs=1e-4)
        assert y + schema["origin"][1] == pytest.approx(truth.y, abs=1e-4)
        assert struct.unpack_from("<2f", blocks[Block.ODOMETRY]) == pytest.approx((x, y), abs=1e-4)
        assert blocks[Block.STATE][0] & Bit.MOTORS and not blocks[Block.STATE][0] & Bit.CLIENT
        assert Block.READINGS not in blocks
        assert client.push("status")["viewers"] == 1


def test_the_sensors_of_the_selected_are_read_and_freed(run: Served) -> None:
    with Client(run, view={"selected": ["ann"]}) as client:
        schema = client.push("schema")
        while True:
            _, blocks = client.frame()
            if Block.READINGS in blocks:
                break
        laser = next(g for g in schema["groups"] if g["kind"] == "laser")
        assert laser["count"] == 181 and laser["unit"] == 0.001
        details = client.push("details")["robots"]
        assert details[0]["name"] == "ann" and "sonar" in details[0]["sensors"] and details[0]["nearest"] > 0
    run.wait(lambda: not run.sim.robots["ann"].laser.is_read)


def test_robots_that_come_and_go_change_the_schema(run: Served) -> None:
    with Client(run) as client:
        first = client.push("schema")
        (name,) = client.ask("add", model="p3at", x=5.0, y=5.0)
        while (schema := client.push("schema"))["number"] == first["number"]:
            pass
        assert [b["name"] for b in schema["bodies"]][:3] == ["ann", "bob", name]
        client.ask("remove", names=[name])
        while len((schema := client.push("schema"))["bodies"]) != len(first["bodies"]):
            pass
        header, blocks = client.frame()
        while header.schema != schema["number"]:
            header, blocks = client.frame()
        assert len(blocks[Block.POSE]) == 12 * len(schema["bodies"])


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("drive", {"name": "anne"}, 'no robot or box "anne"; did you mean "ann"'),
        ("drive", {"name": "Box:1"}, "no robot"),
        ("add", {"model": "nonesuch"}, 'no robot model "nonesuch"'),
        ("add", {"model": "/etc/passwd.toml"}, "by their names"),
        ("add", {"model": "p3dx", "name": "ann"}, "there already"),
        ("add", {"model": "p3dx", "name": "a\nb"}, "printable"),
        ("add", {"model": "p3dx", "count": 1001}, "1000"),
        ("remove", {"names": ["nobody"]}, "nobody"),
        ("map", {"name": "../../../etc/passwd"}, "no such map"),
        ("map", {"name": "/etc/passwd"}, "no such map"),
        ("interface", {"name": "telepathy", "on": True}, "no interface"),
        ("speed", {"factor": 0.001}, "0.01"),
        ("start", {"map": None, "robots": []}, "started already"),
        ("move", {"to": [{"name": "ann", "x": 5e8, "y": 0, "th": 0}]}, "5e+08"),
        ("debug", {"what": "rays", "name": "bob"}, "no laser"),
    ],
)
def test_what_cannot_be_done_is_said(run: Served, kind: str, fields: dict[str, Any], words: str) -> None:
    with Client(run) as client:
        with pytest.raises(ValueError, match=r".") as caught:
            client.ask(kind, **fields)
        assert words in str(caught.value)
        client.ask("catalog")  # it goes on


def test_a_fault_of_ours_ends_no_session(run: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.hub, "pause", lambda: 1 / 0)
    with Client(run) as client:
        with pytest.raises(ValueError, match="internal error"):
            client.ask("pause")
        client.ask("step")


def test_what_a_page_holds_is_let_go_when_it_leaves(run: Served) -> None:
    with Client(run) as client:
        client.ask("hold", names=["ann"], on=True)
        run.wait(lambda: run.sim.snapshot.state.held.sum() == 1)
        client.ask("drive", name="bob", v=0.3)
        run.wait(lambda: run.sim.robots["bob"].clients == ("page",))
    run.wait(lambda: run.sim.snapshot.state.held.sum() == 0)
    run.wait(lambda: run.sim.robots["bob"].clients == () and abs(run.sim.robots["bob"].velocity.vx) < 0.01)


def test_placing_while_time_stands_still(run: Served) -> None:
    with Client(run) as client:
        client.ask("pause")
        tick = run.do(lambda: run.sim.tick)
        client.ask("move", to=[{"name": "ann", "x": 4.0, "y": 9.0, "th": 1.0}])
        run.wait(lambda: abs(run.sim.robots["ann"].truth.x - 4.0) < 1e-9)
        header, _ = client.frame()
        assert run.do(lambda: run.sim.tick) == tick
        client.ask("step", count=3)
        run.wait(lambda: run.sim.tick == tick + 3)
        while not (header.flags & frames.PAUSED and header.tick == tick + 3):
            header, _ = client.frame()


def test_robots_of_one_model_keep_their_own_colours() -> None:
    sim = Simulation.load("office", step=0.05)
    spec = sim.add_robot("p3dx", "ann").spec
    sim.add_robot(replace(spec, color="NavyBlue"), "bob")
    sim.add_robot(replace(spec, color="gray90"), "cat")
    with served(sim) as one:
        models, bodies = one.do(lambda: (lambda s: (s["models"], s["bodies"]))(json.loads(one.desk.source.schema()[1])))
    colors = {b["name"]: models[b["model"]]["color"] for b in bodies}
    assert [colors[n] for n in ("ann", "bob", "cat")] == ["#ff0000", "#000080", "#e5e5e5"]


def test_a_run_is_the_same_with_and_without_viewers() -> None:
    def drive(viewers: int) -> bytes:
        sim = Simulation.load("office", step=0.05, seed=7)
        robot = sim.add_robot("p3dx", "ann")
        robot.command(v=0.3, w=0.2)
        with served(sim, interval=0.002, paused=True) as one:
            clients = [Client(one, view={"selected": ["ann"], "odometry": True}) for _ in range(viewers)]
            one.do(lambda: one.hub.step_and_pause(400))
            for client in clients:
                for _ in range(5):
                    client.frame()
            one.wait(lambda: sim.tick == 400)
            for client in clients:
                client.close()
            return one.do(lambda: sim.fleet.state.pose.tobytes() + sim.fleet.state.odom.tobytes())

    assert drive(0) == drive(3)


# -- who is let in


@pytest.mark.parametrize("token", ["", "wrong", AUDIENCE + "x"])
def test_a_wrong_token_is_refused(run: Served, token: str) -> None:
    with Client(run, token) as client, pytest.raises(websockets.ConnectionClosedError) as caught:
        client.receive()
    assert caught.value.rcvd is not None and caught.value.rcvd.code == 4401


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example"]
)
def test_pages_of_others_may_not_connect(run: Served, origin: str) -> None:
    with pytest.raises((websockets.InvalidStatus, websockets.ConnectionClosedError)), dial(run, origin) as socket:
        socket.recv(2)
    status, _, _ = fetch(run, "/healthz", Origin=origin)
    assert status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.1.5", "", "[::2]"]
)
def test_other_hosts_are_refused(run: Served, host: str) -> None:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    assert b" 403 " in asyncio.run(ask()).split(b"\r\n")[0]


def test_a_server_for_others_takes_addresses_and_its_names_only() -> None:
    guard = web.Guard(None, {"localhost", "lab.example"}, any_address=True)
    assert all(guard._is_good(h) for h in ("10.0.0.7:8100", "lab.example:8100", "[fe80::1]:8100", "localhost"))
    assert not any(guard._is_good(h) for h in ("evil.example", "10.0.0.7.evil.example:8100", ""))


def test_headers_and_what_is_served(run: Served) -> None:
    status, headers, body = fetch(run, "/healthz")
    assert status == 200 and json.loads(body)["status"] == "ok"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/pyproject.toml", "/assets/../../render.py", "/nothing"):
        assert fetch(run, path)[0] == 404, path
    assert fetch(run, "/upload")[0] in (404, 405)


def test_the_map_is_served_once_and_packed(run: Served) -> None:
    with Client(run) as client:
        url = client.push("map")["url"]
    status, headers, body = fetch(run, f"/{url}", Accept_Encoding="gzip")
    assert status == 200 and "max-age" in headers["cache-control"] and headers["content-encoding"] == "gzip"
    assert gzip.decompress(body)[:4] == frames.MAP_MAGIC
    assert fetch(run, "/map/0123.bin")[0] == 404


def test_the_world_can_be_fetched_and_sent_again(run: Served) -> None:
    assert fetch(run, "/scenario.zip")[0] == 401
    assert fetch(run, "/scenario.zip", Authorization=f"Bearer {AUDIENCE}")[0] == 401
    status, _, data = fetch(run, "/scenario.zip", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    run.do(lambda: run.yard.remove(["ann"]))
    assert fetch(run, "/upload?name=back.zip", data=data, Authorization=f"Bearer {TOKEN}")[0] == 200
    run.wait(lambda: set(run.sim.robots) == {"ann", "bob"})
    run.wait(lambda: run.yard.port_of("ann") > 0)
    assert len(run.sim.scene.segments) > 100


def test_uploads_need_the_token_and_have_a_limit(run: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    good = b"2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 7000\nNumLines: 1\nLINES\n0 0 9000 0\nDATA\n"
    assert fetch(run, "/upload?name=x.map", data=good)[0] == 401
    assert fetch(run, "/upload?name=x.map", data=good, Authorization=f"Bearer {AUDIENCE}")[0] == 401
    status, _, body = fetch(run, "/upload?name=x.map", data=b"nonsense", Authorization=f"Bearer {TOKEN}")
    assert status == 422 and b"2D-Map" in body
    assert run.do(lambda: run.sim.scene.name) == "office"
    status, _, body = fetch(run, "/upload?name=../../x.map", data=good, Authorization=f"Bearer {TOKEN}")
    assert status == 200 and json.loads(body) == {"map": "x.map"}
    assert run.do(lambda: len(run.sim.scene.segments)) == 1
    monkeypatch.setattr(web, "MAX_UPLOAD", 100)
    assert fetch(run, "/upload?name=x.map", data=good * 3, Authorization=f"Bearer {TOKEN}")[0] == 413


def test_there_are_no_more_viewers_than_that(run: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_VIEWERS", 2)
    with Client(run) as a, Client(run) as b:
        a.frame(), b.frame()
        with pytest.raises(websockets.ConnectionClosed), Client(run) as c:
            c.receive()
    run.wait(lambda: not run.desk.viewers)
    with Client(run) as d:
        d.frame()


def test_the_token_is_in_no_log(run: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Client(run) as client:
        client.frame()
        fetch(run, "/healthz")
    ours = [r.getMessage() for r in caplog.records if r.name.startswith(("botyard", "uvicorn"))]
    assert not any(TOKEN in line for line in ours)


# -- who is slow


def test_a_viewer_that_does_not_read_gets_little_and_the_world_goes_on(run: Served) -> None:
    with Client(run) as alive, dial(run) as dead:
        dead.send(json.dumps({"type": "hello", "token": TOKEN, "version": messages.VERSION}))
        run.wait(lambda: len(run.desk.viewers) == 2)
        before = run.do(lambda: run.sim.tick)
        for _ in range(20):
            alive.frame()
        assert run.do(lambda: run.sim.tick) >= before + 15
        sent = run.do(lambda: sorted(v.frames_sent for v in run.desk.viewers))
        assert sent[0] <= 3 and sent[1] >= 15
    run.wait(lambda: not run.desk.viewers)


def test_a_viewer_that_comes_late_gets_the_present_state(run: Served) -> None:
    with Client(run) as client:
        client.ask("pause")
    with Client(run) as late:
        header, _ = late.frame()
        assert header.flags & frames.PAUSED


def test_bytes_that_are_no_messages_hurt_nobody(run: Served) -> None:
    with Client(run) as good, dial(run) as bad:
        bad.send(b"\xff\xfe\x00")
        with pytest.raises(websockets.ConnectionClosed):
            bad.recv(5)
        good.frame()

        async def raw() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
            writer.write(b"\x00\x01garbage\r\n\r\n" * 50)
            await reader.read()
            writer.close()

        asyncio.run(raw())
        good.frame()
