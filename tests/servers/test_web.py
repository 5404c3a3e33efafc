"""The page's server: admission, content, and no viewer that slows a step."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import socket
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import websockets
from starlette.requests import Request
from starlette.responses import Response
from websockets.sync.client import ClientConnection, connect

from botyard.interfaces import http_admission
from botyard.interfaces.page import catalog, downloads, inspector, requests
from botyard.interfaces.page.status import Question
from botyard.protocols.webgui import frames, messages, pushes
from botyard.protocols.webgui.frames import Bit, Block
from botyard.protocols.webgui.session import Tokens
from botyard.servers.web import http, page, pageguard
from botyard.servers.web.staticfiles import StaticFiles
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import world_of
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


def dial(
    run: Served, origin: str | None = None, **options: Any
) -> contextlib.AbstractContextManager[ClientConnection]:
    return connect(
        f"ws://127.0.0.1:{run.port}/ws",
        origin=origin or f"http://127.0.0.1:{run.port}",
        **options,
    )


class Client:
    """A page without a browser."""

    def __init__(
        self,
        run: Served,
        token: str = TOKEN,
        view: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._stack = contextlib.ExitStack()
        self.socket = self._stack.enter_context(dial(run, max_size=None, **options))
        self.pushed: list[dict[str, Any]] = []
        self.number = 0
        self.socket.send(
            json.dumps(
                {
                    "type": "hello",
                    "token": token,
                    "version": messages.VERSION,
                    "view": view or {},
                }
            )
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def receive(self) -> dict[str, Any] | bytes:
        data = self.socket.recv(PATIENCE)
        if isinstance(data, bytes):
            self.socket.send(
                json.dumps({"type": "ack", "number": frames.decode(data)[0].number})
            )
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
        """Return the next message of a kind, possibly one already received."""
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
    run: Served,
    path: str,
    *,
    host: str | None = None,
    data: bytes | None = None,
    **headers: str,
) -> tuple[int, Any, bytes]:
    request = urllib.request.Request(
        f"{run.base}{path}",
        data=data,
        headers={k.replace("_", "-"): v for k, v in headers.items()},
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
        assert struct.unpack_from("<2f", blocks[Block.ODOMETRY]) == pytest.approx(
            (x, y), abs=1e-4
        )
        assert (
            blocks[Block.STATE][0] & Bit.MOTORS
            and not blocks[Block.STATE][0] & Bit.CLIENT
        )
        assert Block.READINGS not in blocks
        assert client.push("status")["viewers"] == 1


@pytest.mark.parametrize("token", ["ab-C_1", "a+b&c=d#e%f", "für mich"])
def test_the_address_bears_any_token(run: Served, token: str) -> None:
    fragment = urllib.parse.urlsplit(run.server.url(token)).fragment
    assert urllib.parse.parse_qs(fragment) == {"token": [token]}


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
        assert (
            details[0]["name"] == "ann"
            and "sonar" in details[0]["sensors"]
            and details[0]["nearest"] > 0
        )

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
        ("drive", {"name": "anne"}, 'no robot is named "anne"; did you mean "ann"'),
        ("drive", {"name": "Box:1"}, "no robot"),
        ("add", {"model": "nonesuch"}, 'no robot model "nonesuch"'),
        ("add", {"model": "/etc/passwd.toml"}, "not a file"),
        ("add", {"model": "p3dx", "name": "ann"}, "already exists"),
        ("add", {"model": "p3dx", "name": "a\nb"}, "printable"),
        ("add", {"model": "p3dx", "count": 1001}, "1000"),
        ("remove", {"names": ["nobody"]}, "nobody"),
        ("map", {"name": "../../../etc/passwd"}, "no such map"),
        ("map", {"name": "/etc/passwd"}, "no such map"),
        ("interface", {"name": "telepathy", "on": True}, "no interface"),
        ("speed", {"factor": 0.001}, "0.01"),
        ("start", {"map": None, "robots": []}, "already running"),
        ("move", {"to": [{"name": "ann", "x": 5e8, "y": 0, "th": 0}]}, "5e+08"),
        ("debug", {"what": "rays", "name": "bob"}, "with a laser"),
        (
            "start_recording",
            {"topics": ["/tf", "odom"]},
            "start with / or a wildcard, such as */odom, found 'odom'",
        ),
        ("start_recording", {"topics": ["/tf"] * 101}, "length <= 100"),
        ("start_recording", {"topics": ["/" * 201]}, "length <= 200"),
        ("start_recording", {"robots": [""]}, "length >= 1"),
        ("start_recording", {"robots": ["ann"] * 101}, "length <= 100"),
        ("start_recording", {"rates": [["/tf", -1.0]]}, ">= 0.0"),
        ("start_recording", {"rates": [["/tf", 2e6]]}, "<= 1000000.0"),
        (
            "start_recording",
            {"rates": [["odom", 1.0]]},
            "start with / or a wildcard, such as */odom, found 'odom'",
        ),
        ("start_recording", {"rates": [["/tf", 1.0]] * 101}, "length <= 100"),
        ("start_recording", {"on_stall": True}, "on_stall: expected `last`"),
    ],
)
def test_what_cannot_be_done_is_said(
    run: Served, kind: str, fields: dict[str, Any], words: str
) -> None:
    with Client(run) as client:
        with pytest.raises(ValueError, match=r".") as caught:
            client.ask(kind, **fields)
        assert words in str(caught.value)
        # The session goes on after the error.
        client.ask("catalog")


@pytest.mark.parametrize(
    "others", [["nobody", "ann", "Box:1"], ["Box:1", "ann", "nobody"]]
)
def test_one_that_is_gone_keeps_nothing_from_the_others(
    run: Served, others: list[str]
) -> None:
    """Another page, or its client, may have been faster."""
    sim = run.sim
    with Client(run) as client:
        there = [
            {"name": n, "x": 9.0, "y": 14.0 + k, "th": 0.0}
            for k, n in enumerate(others)
        ]
        with pytest.raises(ValueError, match=r'1 of 3 bodies failed: .*"nobody"'):
            client.ask("move", to=there)
        run.wait(lambda: sim.robots["ann"].truth.x == 9.0)
        run.wait(
            lambda: (
                {b.name: b.pose.x for b in world_of(sim).scene.boxes}["Box:1"] == 9.0
            )
        )
        with pytest.raises(ValueError, match="nobody"):
            client.ask("hold", names=others, on=True)
        run.wait(lambda: client_holds(run, "ann") and client_holds(run, "Box:1"))
        with pytest.raises(ValueError, match="nobody"):
            client.ask("hold", names=others, on=False)
        with pytest.raises(ValueError, match="nobody"):
            client.ask("reset", names=others)
        run.wait(lambda: sim.robots["ann"].truth.x != 9.0)
        assert len(client.ask("clone", names=others)) == 1
        with pytest.raises(ValueError, match="nobody"):
            client.ask("remove", names=others)
        assert run.do(
            lambda: (
                "ann" in sim.robots,
                "bob" in sim.robots,
                "Box:1" in sim.core.box_names,
            )
        ) == (
            False,
            True,
            False,
        )


def client_holds(run: Served, name: str) -> bool:
    return name in run.desk.control.held


def test_a_fault_of_ours_ends_no_session(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run.hub, "pause", lambda: 1 / 0)
    with Client(run) as client:
        with pytest.raises(ValueError, match="internal error"):
            client.ask("pause")
        client.ask("step")


def test_a_question_is_answered_once_and_by_nobody_who_only_looks_on(
    run: Served,
) -> None:
    run.desk.question = Question("the models are not there", 234)
    with Client(run) as one, Client(run, AUDIENCE) as onlooker:
        assert one.push("status")["question"] == "the models are not there"
        with pytest.raises(ValueError, match="may only watch"):
            onlooker.ask("reply", go_on=False)
        one.ask("reply", go_on=True)
        while one.push("status")["question"]:
            pass
        with pytest.raises(ValueError, match="the question is already answered"):
            one.ask("reply", go_on=False)
        assert run.do(lambda: run.hub.exit_status) == 0


def test_a_refused_question_ends_the_simulator_with_its_status(run: Served) -> None:
    run.desk.question = Question("the models are not there", 234)
    with Client(run) as one:
        one.ask("reply", go_on=False)
        run._thread.join(PATIENCE)

    assert run.hub.exit_status == 234


def test_what_a_page_holds_is_let_go_when_it_leaves(run: Served) -> None:
    with Client(run) as client:
        client.ask("hold", names=["ann"], on=True)
        run.wait(lambda: run.sim.snapshot.state.held.sum() == 1)
        client.ask("drive", name="bob", v=0.3)
        run.wait(lambda: run.sim.robots["bob"].clients == ("page",))

    run.wait(lambda: run.sim.snapshot.state.held.sum() == 0)
    run.wait(
        lambda: (
            run.sim.robots["bob"].clients == ()
            and abs(run.sim.robots["bob"].velocity.vx) < 0.01
        )
    )


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
        models, bodies = one.do(
            lambda: (lambda s: (s["models"], s["bodies"]))(
                json.loads(one.desk.source.schema()[1])
            )
        )

    colors = {b["name"]: models[b["model"]]["color"] for b in bodies}
    assert [colors[n] for n in ("ann", "bob", "cat")] == [
        "#ff0000",
        "#000080",
        "#e5e5e5",
    ]


def test_a_run_is_the_same_with_and_without_viewers() -> None:
    def drive(viewers: int) -> bytes:
        sim = Simulation.load("office", step=0.05, seed=7)
        robot = sim.add_robot("p3dx", "ann")
        robot.command(v=0.3, w=0.2)
        with served(sim, interval=0.002, paused=True) as one:
            clients = [
                Client(one, view={"selected": ["ann"], "odometry": True})
                for _ in range(viewers)
            ]
            one.do(lambda: one.hub.step_and_pause(400))
            for client in clients:
                for _ in range(5):
                    client.frame()

            one.wait(lambda: sim.tick == 400)
            for client in clients:
                client.close()
            return one.do(
                lambda: sim.fleet.state.pose.tobytes() + sim.fleet.state.odom.tobytes()
            )

    assert drive(0) == drive(3)


# -- admission


@pytest.mark.parametrize("token", ["", "wrong", AUDIENCE + "x"])
def test_a_wrong_token_is_refused(run: Served, token: str) -> None:
    with (
        Client(run, token) as client,
        pytest.raises(websockets.ConnectionClosedError) as caught,
    ):
        client.receive()

    assert caught.value.rcvd is not None and caught.value.rcvd.code == 4401


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost.evil.example",
    ],
)
def test_pages_of_others_may_not_connect(run: Served, origin: str) -> None:
    with (
        pytest.raises((websockets.InvalidStatus, websockets.ConnectionClosedError)),
        dial(run, origin) as socket,
    ):
        socket.recv(2)

    status, _, _ = fetch(run, "/healthz", Origin=origin)
    assert status == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "192.168.1.5",
        "",
        "[::2]",
    ],
)
def test_other_hosts_are_refused(run: Served, host: str) -> None:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
        writer.write(
            f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
        return answer

    assert b" 403 " in asyncio.run(ask()).split(b"\r\n")[0]


def test_a_server_for_others_takes_addresses_and_its_names_only() -> None:
    guard = pageguard.Guard(
        None, {"localhost", "lab.example"}, any_address=True, tokens=Tokens(TOKEN)
    )
    assert all(
        guard._is_good(h)
        for h in ("10.0.0.7:8100", "lab.example:8100", "[fe80::1]:8100", "localhost")
    )
    assert not any(
        guard._is_good(h) for h in ("evil.example", "10.0.0.7.evil.example:8100", "")
    )


def test_headers_and_what_is_served(run: Served) -> None:
    status, headers, body = fetch(run, "/healthz")
    assert status == 200 and json.loads(body)["status"] == "ok"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    for path in (
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/pyproject.toml",
        "/assets/../../render.py",
        "/nothing",
    ):
        assert fetch(run, path)[0] == 404, path

    assert fetch(run, "/upload")[0] in (404, 405)


def test_the_page_is_read_and_packed_once(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<p>one" + "x" * 3000)
    (tmp_path / "assets/a-123.js").write_text("let a = 1;")
    files = StaticFiles(tmp_path)

    def get(path: str, **headers: str) -> Response:
        found = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        scope = {"type": "http", "path_params": {"path": path}, "headers": found}
        return asyncio.run(files.answer(Request(scope)))

    first = get("", accept_encoding="gzip")
    assert first.status_code == 200 and gzip.decompress(bytes(first.body)).startswith(
        b"<p>one"
    )
    assert (
        first.headers["content-type"].startswith("text/html")
        and first.headers["cache-control"] == "no-cache"
    )
    assert get("", accept_encoding="gzip").body is first.body
    assert get("", if_none_match=first.headers["etag"]).status_code == 304
    assert bytes(get("index.html").body).startswith(b"<p>one")
    script = get("assets/a-123.js", accept_encoding="gzip")
    assert (
        script.body == b"let a = 1;" and "immutable" in script.headers["cache-control"]
    )
    (tmp_path / "secret").write_text("not of the page")
    for path in (
        "secret",
        "../secret",
        "assets/../index.html",
        "assets",
        "/etc/passwd",
        "assets/",
    ):
        assert get(path).status_code == 404, path

    (tmp_path / "index.html").write_text("<p>two")
    assert get("").body == b"<p>two"


def test_the_map_is_served_once_and_packed(run: Served) -> None:
    with Client(run) as client:
        url = client.push("schema")["map"]["url"]
    status, headers, body = fetch(run, f"/{url}", Accept_Encoding="gzip")
    assert (
        status == 200
        and "max-age" in headers["cache-control"]
        and headers["content-encoding"] == "gzip"
    )
    assert gzip.decompress(body)[:4] == frames.MAP_MAGIC
    assert fetch(run, "/map/0123.bin")[0] == 404


def test_the_name_of_a_replaced_map_leads_to_the_present_one(run: Served) -> None:
    """A page asks for a map while the next edit of the map replaces it."""
    with Client(run) as client:
        url = client.push("schema")["map"]["url"]
        before = fetch(run, f"/{url}")
        run.do(lambda: run.sim.add_wall((1.0, 1.0), (2.0, 1.0)))
        again = client.push("schema")["map"]["url"]
        assert again != url and before[0] == 200
        status, _, body = fetch(run, f"/{url}")
        assert (status, body) == (200, fetch(run, f"/{again}")[2]) != (200, before[2])


def test_what_was_written_is_downloaded_by_those_who_may_write(
    run: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address comes by the authenticated WebSocket.

    Only files that this run has written have one.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("not of this run")
    with Client(run) as client, Client(run, token=AUDIENCE) as onlooker:
        path = client.ask("snapshot")
        assert client.push("files")["paths"] == [path]
        url = client.ask("download", file=path)
        status, headers, body = fetch(run, f"/{url}", Accept_Encoding="gzip")
        assert (status, body) == (200, Path(path).read_bytes()) and body.startswith(
            b"\x89PNG"
        )
        assert (
            "content-encoding" not in headers and headers["cache-control"] == "no-store"
        )
        assert (
            headers["content-disposition"]
            == f"attachment; filename*=UTF-8''{Path(path).name}"
        )
        for other in (
            str(tmp_path / "secret.txt"),
            "secret.txt",
            f"{path}/../secret.txt",
            "",
        ):
            with pytest.raises(
                ValueError, match="expected a file that this run has written"
            ):
                client.ask("download", file=other)

        with pytest.raises(ValueError, match="may only watch"):
            onlooker.ask("download", file=path)
        assert not [m for m in onlooker.pushed if m["type"] == "files"]
        with Client(run) as late:
            assert late.push("files")["paths"] == [path], "also those who come later"
        for wrong in ("file/x", f"{url}x", "file/", f"file/{Path(path).name}"):
            assert fetch(run, f"/{wrong}", Authorization=f"Bearer {TOKEN}")[0] == 404, (
                wrong
            )

        run.do(lambda: setattr(run.robot_servers.control, "read_only", True))
        with pytest.raises(ValueError, match="read-only"):
            client.ask("download", file=path)
        run.do(lambda: setattr(run.robot_servers.control, "read_only", False))
        monkeypatch.setattr(downloads, "OFFER_TIME_S", -1.0)
        assert fetch(run, f"/{client.ask('download', file=path)}")[0] == 404, (
            "the address was good for a minute"
        )
        Path(path).unlink()
        with pytest.raises(ValueError, match="the file no longer exists"):
            client.ask("download", file=path)


def test_addresses_of_files_are_few(
    run: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(downloads, "MAX_OFFERS", 3)
    with Client(run) as client:
        path = client.ask("snapshot")
        urls = [client.ask("download", file=path) for _ in range(4)]
        assert [fetch(run, f"/{url}")[0] for url in urls] == [404, 200, 200, 200]


def test_the_world_can_be_fetched_and_sent_again(run: Served) -> None:
    assert fetch(run, "/scenario.zip")[0] == 401
    assert fetch(run, "/scenario.zip", Authorization=f"Bearer {AUDIENCE}")[0] == 401
    status, _, data = fetch(run, "/scenario.zip", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    run.do(lambda: run.robot_servers.remove(["ann"]))
    assert (
        fetch(run, "/upload?name=back.zip", data=data, Authorization=f"Bearer {TOKEN}")[
            0
        ]
        == 200
    )
    run.wait(lambda: set(run.sim.robots) == {"ann", "bob"})
    run.wait(lambda: run.robot_servers.port_of("ann") > 0)
    assert len(run.sim.scene.segments) > 100


def test_uploads_need_the_token_and_have_a_limit(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = b"2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 7000\nNumLines: 1\nLINES\n0 0 9000 0\nDATA\n"
    assert fetch(run, "/upload?name=x.map", data=good)[0] == 401
    assert (
        fetch(run, "/upload?name=x.map", data=good, Authorization=f"Bearer {AUDIENCE}")[
            0
        ]
        == 401
    )
    status, _, body = fetch(
        run, "/upload?name=x.map", data=b"nonsense", Authorization=f"Bearer {TOKEN}"
    )
    assert status == 422 and b"2D-Map" in body
    assert run.do(lambda: run.sim.scene.name) == "office"
    status, _, body = fetch(
        run, "/upload?name=../../x.map", data=good, Authorization=f"Bearer {TOKEN}"
    )
    assert status == 200 and json.loads(body) == {"map": "x.map"}
    assert run.do(lambda: len(run.sim.scene.segments)) == 1
    monkeypatch.setattr(page, "MAX_UPLOAD", 100)
    assert (
        fetch(
            run, "/upload?name=x.map", data=good * 3, Authorization=f"Bearer {TOKEN}"
        )[0]
        == 413
    )


def test_there_are_no_more_viewers_than_that(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_VIEWERS", 2)
    with Client(run, AUDIENCE) as a, Client(run, AUDIENCE) as b:
        a.frame(), b.frame()
        with (
            pytest.raises(
                websockets.ConnectionClosed, match="limit of 2 read-only pages"
            ),
            Client(run, AUDIENCE) as c,
        ):
            c.receive()

        # A full audience keeps out no user with write access.
        with Client(run) as steers:
            steers.frame()

    run.wait(lambda: not run.desk.viewers)
    with Client(run) as d:
        d.frame()


def test_the_token_is_in_no_log(run: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Client(run) as client:
        client.frame()
        fetch(run, "/healthz")

    ours = [
        r.getMessage()
        for r in caplog.records
        if r.name.startswith(("botyard", "uvicorn"))
    ]
    assert not any(TOKEN in line for line in ours)


# -- unauthenticated clients


def knock(run: Served, data: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", run.port), PATIENCE)
    sock.sendall(data)
    return sock


def upgrade(run: Served) -> bytes:
    return (
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{run.port}\r\nUpgrade: "
        "websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()


def ended(sock: socket.socket) -> bool:
    """Wait for the other side to end; return whether it has."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False

    return True


@pytest.mark.parametrize("kind", ["silent", "half a request", "websocket"])
def test_sockets_without_a_token_keep_nobody_out(run: Served, kind: str) -> None:
    data = {
        "silent": b"",
        "half a request": b"GET / HTTP/1.1\r\nHost: ",
        "websocket": upgrade(run),
    }[kind]
    others = [knock(run, data) for _ in range(3 * http_admission.MAX_STRANGERS_EACH)]
    with Client(run) as client:
        client.frame()
        assert fetch(run, "/healthz")[0] == 200

    assert (
        run.do(lambda: run.server.gate.strangers) <= http_admission.MAX_STRANGERS_EACH
    )
    # The oldest connections had to leave.
    assert all(ended(one) for one in others[: http_admission.MAX_STRANGERS_EACH])
    for one in others:
        one.close()


@pytest.mark.parametrize(
    "kind",
    [
        "silent",
        "half a request",
        "half a body",
        "websocket",
        "no hello",
        "half a frame",
        "unread",
        "second",
    ],
)
def test_nothing_that_a_stranger_begins_lives_for_ever(
    run: Served, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(http_admission, "REQUEST_TIME", 0.3)
    monkeypatch.setattr(http_admission, "RESPONSE_TIME", 0.3)
    monkeypatch.setattr(http, "REQUEST_TIME", 0.3)
    head = f"HTTP/1.1\r\nHost: 127.0.0.1:{run.port}\r\n"
    data = {
        "silent": b"",
        "half a request": f"GET / {head}".encode(),
        "half a body": f"POST /upload {head}Content-Length: 1000\r\n\r\nxx".encode(),
        "websocket": upgrade(run),
        # A ping comes instead of the hello.
        "no hello": upgrade(run) + b"\x89\x80\0\0\0\0",
        "half a frame": upgrade(run) + b"\x81\xfe\x10\x00",
        "unread": f"GET /healthz {head}\r\n".encode() * 200,
        "second": f"GET /healthz {head}\r\nGET /healthz {head}".encode(),
    }[kind]
    with knock(run, data) as one:
        assert ended(one)
    run.wait(lambda: run.server.gate.strangers == 0)


def test_a_viewer_stays_when_its_time_as_a_stranger_is_over(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_admission, "REQUEST_TIME", 0.3)
    monkeypatch.setattr(http, "REQUEST_TIME", 0.3)
    with Client(run) as client, knock(run) as stranger:
        client.frame()
        assert ended(stranger)
        client.ask("catalog")
        run.do(lambda: run.server.gate.sweep(run._loop.time() + 1e6))
        client.ask("catalog")


def test_what_comes_at_once_is_worked_off_in_pieces(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original = http.WebSocketsSansIOProtocol.data_received

    def received(self: Any, data: bytes) -> None:
        sizes.append(len(data))
        original(self, data)

    monkeypatch.setattr(http.WebSocketsSansIOProtocol, "data_received", received)
    hello = json.dumps(
        {"type": "hello", "token": TOKEN, "version": messages.VERSION}
    ).encode()
    with knock(run, upgrade(run)) as sock:
        assert b"101" in sock.recv(4096)
        sock.sendall(b"\x81\xfe" + struct.pack(">H", len(hello)) + bytes(4) + hello)
        run.wait(lambda: len(run.desk.viewers) == 1)
        # Send empty messages, which cost the server much and the client little.
        sock.sendall(b"\x81\x80\0\0\0\0" * 5000)
        run.wait(lambda: sum(sizes) > 5000 * 6)
        with Client(run) as other:
            other.frame()

    assert max(sizes) <= http.CHUNK and len(sizes) > 10


def test_a_message_in_very_many_parts_ends_the_connection(run: Served) -> None:
    with knock(run, upgrade(run)) as sock:
        assert b"101" in sock.recv(4096)
        sock.sendall(b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * 200)
        assert ended(sock)


def test_refused_requests_leave_few_lines_and_no_escape(
    run: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(60):
            assert fetch(run, "/healthz", host="evil\x1b[31m.example")[0] in (400, 403)
            assert (
                fetch(run, "/healthz", Origin="http://evil.example/" + "x" * 500)[0]
                == 403
            )

    lines = [r.getMessage() for r in caplog.records if r.name == "botyard.page"]
    assert 1 <= len(lines) <= 60 and all(
        line.isprintable() and len(line) < 200 for line in lines
    )


# -- uploads

MAP = b"2D-Map\nLineMinPos: 0 0\nLineMaxPos: 9000 7000\nNumLines: 1\nLINES\n0 0 9000 0\nDATA\n"


def sending(
    run: Served, announced: int, data: bytes = b"", token: str = TOKEN
) -> socket.socket:
    head = (
        "POST /upload?name=x.map HTTP/1.1\r\nHost: "
        f"127.0.0.1:{run.port}\r\nAuthorization: Bearer {token}\r\n"
    )
    return knock(run, f"{head}Content-Length: {announced}\r\n\r\n".encode() + data)


def status(sock: socket.socket) -> int:
    return int(sock.recv(4096).split()[1])


def test_an_upload_is_refused_by_what_it_announces(run: Served) -> None:
    with sending(run, page.MAX_UPLOAD + 1) as sock:
        assert status(sock) == 413
    with sending(run, page.MAX_UPLOAD, token=AUDIENCE) as sock:
        assert status(sock) == 401


def test_one_upload_at_a_time_and_one_that_stops_blocks_nobody(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sending(run, 100, b"2D-") as slow:
        run.wait(lambda: len(run.server._uploading) == 1)
        assert (
            fetch(run, "/upload?name=x.map", data=MAP, Authorization=f"Bearer {TOKEN}")[
                0
            ]
            == 409
        )
        with Client(run) as client:
            client.frame()
        # The client leaves half way through the upload.
        slow.close()

    run.wait(lambda: not run.server._uploading)
    monkeypatch.setattr(page, "UPLOAD_PAUSE", 0.2)
    with sending(run, 100, b"2D-") as slow:
        assert status(slow) == 408
    assert (
        fetch(run, "/upload?name=x.map", data=MAP, Authorization=f"Bearer {TOKEN}")[0]
        == 200
    )


def test_an_upload_without_a_length_is_bounded_as_it_comes(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_UPLOAD", 100)
    head = (
        "POST /upload?name=x.map HTTP/1.1\r\nHost: "
        f"127.0.0.1:{run.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    )
    with knock(
        run,
        f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
        + b"40\r\n"
        + b"x" * 64
        + b"\r\n" * 1,
    ) as sock:
        sock.sendall(b"40\r\n" + b"x" * 64 + b"\r\n")
        assert status(sock) == 413


# -- content shared by all viewers


def test_the_catalog_is_made_once_for_all_who_ask(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    original = catalog.find_robot
    monkeypatch.setattr(
        catalog, "find_robot", lambda name: made.append(name) or original(name)
    )
    monkeypatch.setattr(catalog, "CATALOG_AGE", 1e6)
    with Client(run, AUDIENCE) as one, Client(run) as other:
        answers = [one.ask("catalog") for _ in range(20)] + [other.ask("catalog")]
    assert len(made) == len(set(made)) == len(answers[0]["models"])
    assert all(a == answers[0] for a in answers) and {
        m["name"] for m in answers[0]["maps"]
    } >= {"office"}


def test_what_the_map_says_is_made_once_until_there_is_another(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    for name in ("clearances", "occupied_cells"):
        original = getattr(inspector, name)
        monkeypatch.setattr(
            inspector, name, lambda *a, _n=name, _o=original: made.append(_n) or _o(*a)
        )

    box = {"x0": 0.0, "y0": 0.0, "x1": 20.0, "y1": 20.0}
    with Client(run, AUDIENCE) as one, Client(run) as other:
        first = one.ask("debug", what="clearance", **box)
        assert len(first["squares"]) > 100
        for _ in range(10):
            assert other.ask("debug", what="clearance", **box) == first
            one.ask("debug", what="grid", **box)

        assert made == ["clearances", "occupied_cells"]
        other.ask("map", name="warehouse")
        assert one.ask("debug", what="clearance", **box) != first
        assert made == ["clearances", "occupied_cells", "clearances"]


def test_an_onlooker_cannot_buy_more_work_than_its_share(
    run: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(http_admission.WORK, False, ((0.1, 0.05), (0.1, 0.05)))
    began: list[float] = []

    def works(*_: Any) -> pushes.DebugResult:
        began.append(time.perf_counter())
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        return pushes.DebugResult()

    monkeypatch.setattr(inspector.Inspector, "answer", works)
    with Client(run, AUDIENCE) as client:
        for number in range(100):
            client.socket.send(
                json.dumps({"type": "debug", "id": number + 1, "what": "clearance"})
            )

        run.wait(lambda: len(began) >= 12)
        # Each answer took 20 ms or more, so the share of time allows this many starts. On a slow
        # machine time passes as fast.
        assert 0.02 * len(began) <= 0.05 + 0.1 * (began[-1] - began[0]) + 0.04
        with Client(run) as steers:
            steers.ask("catalog")


# -- slow viewers


def test_a_viewer_that_does_not_read_gets_little_and_the_world_goes_on(
    run: Served,
) -> None:
    with Client(run) as alive, dial(run) as dead:
        dead.send(
            json.dumps({"type": "hello", "token": TOKEN, "version": messages.VERSION})
        )
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
