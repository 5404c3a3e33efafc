"""`Simulation.show`: the live page in a notebook, through a proxy, and in a script.

The outputs of real cells are put into pages of other origins, as front ends of Jupyter
do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image
from playwright.sync_api import Browser, Error, Frame, Playwright
from playwright.sync_api import Page as Tab

import botyard
from botyard.ui.embedding import live_html, still_html
from botyard.ui.show import LivePage
from tests.page.conftest import FLAGS, missing
from tests.ports import free_port
from tests.waiting import PATIENCE, wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

POSES = (
    "(() => { const w = window.__sim && __sim.world; if (!w || !w.schema) return {};"
    " return Object.fromEntries([...w.rows].map(([name, row]) =>"
    " [name, w.frame.pose[3 * row] + w.schema.origin[0]])); })()"
)
"""The x of each body on a page, m, by name."""


class Site:
    """Pages of another origin, by path; their text can change."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = site.pages.get(self.path)
                self.send_response(404 if text is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def url(self, path: str = "/") -> str:
        """Return the address of a page."""
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site that is not botyard's."""
    with closing(Site()) as one:
        yield one


class Notebook:
    """A notebook in a real kernel; its event loop runs in a thread of its own.

    Playwright keeps an event loop in the thread of the test.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._notebook = nbformat.v4.new_notebook()
        # Outputs may come late on a busy machine: the default gives up after 4 s.
        self._client = NotebookClient(
            self._notebook, timeout=int(PATIENCE), iopub_timeout=int(PATIENCE)
        )
        self._kernel = self._client.async_setup_kernel()
        self._wait(self._kernel.__aenter__())

    def _wait(self, what: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def run(self, source: str) -> int:
        """Run a new cell; return its number."""
        number = len(self._notebook.cells)
        cell = nbformat.v4.new_code_cell(source)
        self._notebook.cells.append(cell)
        self._wait(self._client.async_execute_cell(cell, number))
        return number

    def printed(self, cell: int) -> str:
        """Return the text that a cell has printed."""
        return str(self._notebook.cells[cell].outputs[0]["text"])

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        """Return the data of a cell's outputs, by media type."""
        return [one.get("data", {}) for one in self._notebook.cells[cell].outputs]

    def html(self, cell: int) -> str:
        """Return the outputs as JupyterLab shows them: HTML before pictures, by its rules."""
        outputs = "".join(f"<div>{o['text/html']}</div>" for o in self.outputs(cell))
        return (
            f"<style>.jp img {{display: block}}</style><div class='jp'>{outputs}</div>"
        )

    def picture(self, cell: int) -> Image.Image:
        """Return the picture of a cell, as viewers without HTML show it."""
        [data] = [o["image/png"] for o in self.outputs(cell) if "image/png" in o]
        return Image.open(BytesIO(b64decode(data)))

    def close(self) -> None:
        """End the kernel, unless it has ended."""
        if not self._loop.is_closed():
            self._wait(self._kernel.__aexit__(None, None, None))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


@contextmanager
def tab_at(browser: Browser, url: str) -> Iterator[Tab]:
    """A tab in a fresh profile."""
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    try:
        tab = context.new_page()
        tab.goto(url)
        yield tab
    finally:
        context.close()


def until(tab: Tab, holds: Callable[[], Any]) -> Any:
    """Wait until a condition holds; the tab lives meanwhile."""

    def holds_now() -> Any:
        tab.wait_for_timeout(30)
        return holds()

    return wait(holds_now)


def framed(tab: Tab) -> Frame:
    """Return the frame with the page; wait until it shows a world."""
    until(tab, lambda: tab.locator("iframe").count())
    frame: Frame = until(tab, lambda: tab.frames[1] if len(tab.frames) > 1 else None)
    until(tab, lambda: frame.evaluate(POSES))
    return frame


def test_a_notebook_shows_the_page_live_and_keeps_a_picture(
    browser: Browser, site: Site
) -> None:
    with closing(Notebook()) as notebook:
        cell = notebook.run(
            "import botyard\n"
            "sim = botyard.Simulation.load('office', seed=1)\n"
            "ann = sim.add_robot('p3dx', 'ann', pose=(10.0, 14.0, 0.0))\n"
            "sim.show(port=0)"
        )
        site.pages["/"] = notebook.html(cell)
        with tab_at(browser, site.url()) as tab:
            frame = framed(tab)
            assert frame.evaluate(POSES)["ann"] == pytest.approx(10.0, abs=0.01)
            assert not tab.locator("img").filter(visible=True).count()
            before = notebook.picture(cell)

            told = notebook.run("ann.command(v=0.4); sim.run(5.0); print(ann.truth.x)")
            x = float(notebook.printed(told))
            assert x > 11.5
            until(tab, lambda: abs(frame.evaluate(POSES)["ann"] - x) < 0.01)
            # A robot that no step has followed yet.
            notebook.run("sim.add_robot('p3dx', 'bob', pose=(12.0, 16.0, 0.0));")
            until(tab, lambda: "bob" in frame.evaluate(POSES))
            # A second output has the same server, and the first one goes on.
            again = notebook.run("sim.show()")
            address = frame.url.partition("#")[0]
            assert address.split("/")[3] in notebook.html(again)
            after = notebook.picture(again)
            assert after.size == before.size and after.tobytes() != before.tobytes()

            notebook.run("sim.run(1.0)")
            assert notebook.picture(again).tobytes() != after.tobytes()
            last = notebook.picture(again)
            notebook.close()
            # The picture stands where the page was, as when the file is opened again.
            site.pages["/"] = notebook.html(again)
            tab.reload()
            picture = tab.locator("img").last
            until(tab, lambda: picture.evaluate("i => i.naturalWidth") == last.width)
            assert picture.is_visible() and not tab.locator("iframe").count()


MARIMO = """
import marimo

app = marimo.App()


@app.cell
def _():
    import botyard

    sim = botyard.Simulation.load("office", seed=1)
    ann = sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    sim.show(port=0)
    return ann, sim


@app.cell
def _(ann, sim):
    import time
    from pathlib import Path

    while not Path("go").exists():
        time.sleep(0.02)
    ann.command(v=0.4)
    sim.run(5.0)
    return


if __name__ == "__main__":
    app.run()
"""
"""A notebook whose second cell waits for the file `go`."""


@contextmanager
def marimo_app(folder: Path) -> Iterator[str]:
    """Serve the notebook of a folder with the real marimo; its address."""
    port = free_port(1)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "marimo", "--quiet", "run", "notebook.py"),
            *("--headless", "--no-token", "--port", str(port)),
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert process.poll() is None
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    try:
        wait(answers)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait(PATIENCE)


def test_marimo_shows_the_page_live(browser: Browser, tmp_path: Path) -> None:
    if find_spec("marimo") is None:
        missing("marimo")
    (tmp_path / "notebook.py").write_text(MARIMO)
    twin = botyard.Simulation.load("office", seed=1)
    ann = twin.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    ann.command(v=0.4)
    twin.run(5.0)
    with marimo_app(tmp_path) as url, tab_at(browser, url) as tab:

        def is_at(x: float) -> bool:
            """Return whether a frame within marimo's frame shows the robot there."""
            for frame in tab.frames:
                # A frame that still loads has no context.
                with suppress(Error):
                    found = frame.evaluate(POSES).get("ann", math.nan)
                    if abs(found - x) < 0.01:
                        return not frame.parent_frame.locator("img:visible").count()
            return False

        until(tab, lambda: is_at(10.0))
        (tmp_path / "go").touch()
        until(tab, lambda: is_at(ann.truth.x))


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Iterator[botyard.Simulation]:
    """A world that is shown outside of a notebook."""
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0), lasers=["lms200"])
    sim.show(port=0)
    capsys.readouterr()
    yield sim
    sim.close()


def live(sim: botyard.Simulation) -> LivePage:
    """Return the page of a world that is shown."""
    page = sim._live
    assert isinstance(page, LivePage)
    return page


def output(sim: botyard.Simulation, url: str | None = None) -> str:
    """Return the HTML that a notebook gets."""
    page = live(sim)
    picture = still_html("still", sim._repr_png_())
    return live_html(page.port, page.path, 480, "still", url) + picture


def test_a_page_of_another_origin_needs_the_token_to_frame_or_read(
    browser: Browser, site: Site, shown: botyard.Simulation
) -> None:
    page = live(shown)
    own = f"http://127.0.0.1:{page.port}/"
    token = page.path.partition("/")[0]
    site.pages["/"] = "<p>a foreign page"
    with tab_at(browser, site.url()) as tab:

        def loads(address: str) -> bool:
            """Frame an address; return whether the page of botyard appears."""
            tab.evaluate(
                "src => new Promise(done => { const f = document.createElement('iframe');"
                " f.onload = () => done(); f.src = src; document.body.append(f); })",
                address,
            )
            frame = tab.frames[-1]
            return frame.url.startswith(own) and bool(frame.locator("#app").count())

        # The token of the page itself does not suffice.
        access = page.address.partition("#")[2]
        assert not loads(f"{own}#{access}")
        assert not loads(f"{own}{token[:-1]}x/#{access}")
        assert loads(own + page.path)
        for path in ("", "metrics", "icon.svg", f"{token}/icon.svg"):
            assert tab.evaluate(
                "url => fetch(url).then(() => 'read', () => 'refused')", own + path
            ) == ("refused")
        assert (
            tab.evaluate(
                "url => new Promise(done => { const s = new WebSocket(url);"
                " s.onopen = () => done('open'); s.onerror = () => done('refused'); })",
                f"ws://127.0.0.1:{page.port}/ws",
            )
            == "refused"
        )


def test_only_a_path_with_the_token_is_relaxed(shown: botyard.Simulation) -> None:
    page = live(shown)
    token = page.path.partition("/")[0]

    def policy(path: str, host: str = "") -> str:
        request = Request(f"http://127.0.0.1:{page.port}/{path}")
        if host:
            request.add_header("Host", host)
        with urlopen(request) as answer:
            return str(answer.headers["content-security-policy"])

    assert "frame-ancestors 'none'" in policy("")
    assert "frame-ancestors 'none'" in policy("icon.svg")
    assert "frame-ancestors" not in policy(f"{token}/")
    assert "frame-ancestors" not in policy(f"{token}/icon.svg", "hub.example.org")
    with pytest.raises(HTTPError, match="403"):
        policy("icon.svg", "hub.example.org")
    with pytest.raises(HTTPError, match="404"):
        policy(f"{token[::-1]}/")


def test_the_page_of_a_served_simulator_refuses_frames(
    browser: Browser, site: Site
) -> None:
    sim = botyard.Simulation.load("office", seed=1)
    with botyard.serve(sim, port=0, gui_port=0) as running:
        address = running.page
        site.pages["/"] = f'<iframe src="{address}"></iframe>'
        with tab_at(browser, site.url()) as tab:
            until(tab, lambda: tab.frames[1].url == "chrome-error://chromewebdata/")


@contextmanager
def jupyter_proxy(lab: str, target: int, prefix: str) -> Iterator[int]:
    """A server at one port: a notebook, and `target` below a path, as jupyter-server-proxy.

    Host and Origin of the browser go on unchanged.
    """
    server = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def pump(a: socket.socket, b: socket.socket) -> None:
        with suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        for one in (a, b):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return
            head += data
        method, path, rest = head.split(b" ", 2)
        if not path.startswith(prefix.encode()):
            is_lab = path == b"/user/bob/lab"
            body = lab.encode() if is_lab else b"not found"
            client.sendall(
                b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n"
                % (b"200 OK" if is_lab else b"404 Not Found", len(body))
                + body
            )
            client.shutdown(socket.SHUT_RDWR)
            return
        # One request a connection, because later ones are not rewritten.
        if b"upgrade: websocket" not in rest.lower():
            rest = rest.replace(b"Connection: keep-alive", b"Connection: close")
        far = socket.create_connection(("127.0.0.1", target))
        opened.append(far)
        far.sendall(b" ".join((method, b"/" + path[len(prefix) :], rest)))
        threading.Thread(target=pump, args=(far, client), daemon=True).start()
        pump(client, far)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                opened.append(client)
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        # A closed socket alone does not end a call of `accept`.
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in (server, *opened):
            one.close()


def test_a_remote_notebook_reaches_the_page_through_the_proxy_of_jupyter(
    playwright: Playwright, chromium: str, shown: botyard.Simulation
) -> None:
    config = json.dumps({"baseUrl": "/user/bob/"})
    lab = (
        f'<script id="jupyter-config-data" type="application/json">{config}</script>'
        f"<h1>Jupyter</h1>{output(shown)}"
    )
    prefix = f"/user/bob/proxy/{live(shown).port}/"
    # The name of another computer: the browser may not try this one's ports.
    rules = "--host-resolver-rules=MAP hub.example.org 127.0.0.1"
    browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, rules])
    try:
        with (
            jupyter_proxy(lab, live(shown).port, prefix) as port,
            tab_at(browser, f"http://hub.example.org:{port}/user/bob/lab") as tab,
        ):
            frame = framed(tab)
            assert frame.url.startswith(f"http://hub.example.org:{port}{prefix}")
            ann = shown.robots["ann"]
            ann.command(v=0.4)
            shown.run(5.0)
            until(tab, lambda: abs(frame.evaluate(POSES)["ann"] - ann.truth.x) < 0.01)
    finally:
        browser.close()


def test_a_remote_notebook_without_a_proxy_shows_the_picture(
    playwright: Playwright, chromium: str, site: Site, shown: botyard.Simulation
) -> None:
    site.pages["/"] = output(shown)
    rules = "--host-resolver-rules=MAP hub.example.org 127.0.0.1"
    browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, rules])
    try:
        with tab_at(browser, "about:blank") as tab:
            asked: list[str] = []
            tab.on("response", lambda answer: asked.append(answer.url))
            tab.goto(f"http://hub.example.org:{site.port}/")
            proxy = f"http://hub.example.org:{site.port}/proxy/{live(shown).port}/"
            until(tab, lambda: any(url.startswith(proxy) for url in asked))
            assert tab.locator("img").last.is_visible()
            assert not any(f":{live(shown).port}/" in url for url in asked)

            # The user knows the address.
            site.pages["/"] = output(shown, f"http://127.0.0.1:{live(shown).port}/")
            tab.goto(f"http://hub.example.org:{site.port}/")
            assert "ann" in framed(tab).evaluate(POSES)
    finally:
        browser.close()


def test_a_page_follows_maps_sensors_and_restored_states(
    browser: Browser, shown: botyard.Simulation
) -> None:
    with tab_at(browser, live(shown).address) as tab:

        def on_page(code: str) -> None:
            until(tab, lambda: tab.evaluate(f"Boolean(window.__sim && ({code}))"))

        on_page("__sim.world.rows.has('ann')")
        state = shown.save_state()
        shown.robots["ann"].laser.subscribe("me")
        shown.step(20)
        on_page("__sim.world.frame.time === 2 && __sim.world.schema.groups.length")
        shown.add_wall((9.0, 12.0), (12.0, 12.0))
        shown.step()
        walls = len(shown.scene.segments)
        on_page(f"__sim.world.map.walls.length === {4 * walls}")
        shown.remove_robot("ann")
        shown.step()
        on_page("!__sim.world.rows.has('ann')")
        shown.replace_scene(botyard.load_scene("office"))
        shown.restore(state)
        shown.step()
        on_page("__sim.world.rows.has('ann') && __sim.world.frame.time === 0.1")


def test_a_script_prints_one_address_until_the_world_is_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx")
    robot.set_controller("wander")
    alone = sim.clone()
    sim.show(port=0)
    sim.show()
    first, second = capsys.readouterr().out.splitlines()
    assert first == second == f"botyard shows the world on {live(sim).address}"
    sim.run(5.0)
    alone.run(5.0)
    # The page changes no bit of the run.
    assert sim.digest() == alone.digest()
    running = live(sim).running
    sim.close()
    assert not running.is_running
    with pytest.raises(URLError):
        urlopen(first.split()[-1].partition("#")[0])

    sim.show(port=0)
    assert live(sim).running.is_running
    running = live(sim).running
    del sim, robot
    gc.collect()
    wait(lambda: not running.is_running)


def test_steps_keep_the_pace_of_show_at_most(shown: botyard.Simulation) -> None:
    shown.show(speed=10.0)
    before = time.perf_counter()
    shown.run(4.0)
    # Never less, however slow the machine is; only the first step is free.
    assert time.perf_counter() - before >= 0.38
    with pytest.raises(botyard.ArgumentError, match="speed: expected a number greater"):
        shown.show(speed=0.0)
    with pytest.raises(botyard.ArgumentError, match="url: expected an address"):
        shown.show(url="hub.example.org")


def test_a_port_in_use_is_an_error_in_a_script_and_a_picture_in_a_notebook() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(botyard.BotyardError, match=f"{port}"):
            botyard.Simulation().show(port=port)
        with closing(Notebook()) as notebook:
            cell = notebook.run(
                f"import botyard\nbotyard.Simulation().show(port={port})"
            )
            assert notebook.picture(cell).width > 100
            assert "onload" not in str(notebook.outputs(cell))


def test_an_interrupted_script_ends_with_its_page(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(
        "import botyard, time\n"
        "sim = botyard.Simulation.load('office')\n"
        "sim.show(port=0)\n"
        "while True:\n"
        "    time.sleep(0.1)\n"
        "    sim.step()\n"
    )
    env = {k: v for k, v in os.environ.items() if "DISPLAY" not in k}
    with subprocess.Popen(
        [sys.executable, "-u", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].partition("#")[0]
        with urlopen(url) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
    with pytest.raises(URLError):
        urlopen(url)
