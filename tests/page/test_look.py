"""The look of the page, its start, reload and return:

renderers, start dialog, windows, sizes.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Playwright, expect

from botyard.clients.pioneer import PioneerClient
from botyard.interfaces.page.status import Question
from botyard.sim.simulation import Simulation
from botyard.ui import window
from tests.page.conftest import missing
from tests.page.pages import PageObject, page
from tests.page.serving import TOKEN, served
from tests.ports import free_port
from tests.running import BOTYARD
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

GOLDEN = Path(__file__).with_name("office.png")


def office(robots: int = 3) -> Simulation:
    sim = Simulation.load(
        "office", step=0.05, odometry_error="none", sensor_noise=False
    )
    for k, model in enumerate(["p3dx", "amigo", "p3at", "seekur"][:robots]):
        sim.add_robot(model, f"r{k}", pose=(4 + 4 * k, 10.0 - k, 0.7 * k))
    return sim


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int16)


def base_canvas(one: PageObject) -> np.ndarray:
    """Return the renderer's picture without the text layer."""
    one.js(
        "(() => { for (const l of ['labels', 'places', 'areas', 'trails']) "
        "__sim.world.layers[l] = false;"
        " __sim.world.selected.clear(); __sim.world.hovered = -1; "
        "__sim.painter.stage.drawNow(); })()"
    )
    data = one.js(
        "new Promise(done => { __sim.painter.stage.drawNow(); const c = "
        "document.querySelector('.stage canvas');"
        " const d = document.createElement('canvas'); d.width = c.width; d.height = c.height;"
        " d.getContext('2d').drawImage(c, 0, 0); done(d.toDataURL('image/png').split(',')[1]); })"
    )
    import base64

    picture = pixels(base64.b64decode(data))
    # Cut off the scale bar, whose letters depend on the machine's fonts.
    return picture[:-60]


@pytest.mark.parametrize("renderer", ["webgl2", "canvas2d"])
def test_both_renderers_show_the_world(browser: Browser, renderer: str) -> None:
    with (
        served(office()) as simulator,
        page(browser, simulator.url, renderer=renderer) as one,
    ):
        # Without this check the suite could pass on the fallback unnoticed.
        assert one.js("__sim.painter.renderer") == renderer
        one.js("__sim.selection.set(['r0', 'r1'])")
        one.until(
            "__sim.painter.drawn.fans === 1 && __sim.painter.drawn.sonar === 2 "
            "&& __sim.painter.drawn.bodies >= 5"
        )
        picture = pixels(one.tab.locator(".stage").screenshot())
        # The picture is not blank.
        assert picture.std() > 10
        for name in ("r0", "r2"):
            x, y, _ = simulator.do(lambda n=name: simulator.sim.robots[n].truth)
            box = one.tab.locator(".stage").bounding_box()
            assert box is not None
            px, py = one.at(x - 0.1, y)
            red, green, blue = picture[round(py - box["y"]), round(px - box["x"])]
            assert red > 150 and green < 90 and blue < 90, (name, red, green, blue)


def test_a_world_without_a_map_has_an_edge(browser: Browser) -> None:
    """200 m by 200 m, and grey outside (GEN-004), also with another camera origin."""
    sim = Simulation()
    sim.add_robot("p3dx", "r0", pose=(90.0, 0.0, 0.0))
    with served(sim) as simulator, page(browser, simulator.url) as one:
        for _ in range(3):
            one.tab.mouse.move(*one.at(90.0, 0.0))
            one.tab.mouse.wheel(0, 400)

        one.until("__sim.world.frameVersion > 2")
        one.js("__sim.painter.stage.drawNow()")
        picture = pixels(one.tab.locator(".stage").screenshot())
        box = one.tab.locator(".stage").bounding_box()
        assert box is not None

        def color(x: float, y: float) -> tuple[int, ...]:
            px, py = one.at(x, y)
            return tuple(picture[round(py - box["y"]), round(px - box["x"])].tolist())

        inside, outside = color(98.6, 1.4), color(101.4, 1.4)
        assert min(inside) > 225
        assert max(outside) < 215


def test_both_renderers_show_the_same(browser: Browser) -> None:
    pictures = []
    with served(office()) as simulator:
        simulator.do(simulator.hub.pause)
        for renderer in ("webgl2", "canvas2d"):
            with page(browser, simulator.url, renderer=renderer) as one:
                one.js("__sim.selection.set(['r0'])")
                one.until("__sim.painter.drawn.fans === 1")
                pictures.append(base_canvas(one))

    a, b = pictures
    assert a.shape == b.shape
    # Renderers antialias lines differently, so compare after a small blur.
    small = [
        np.asarray(Image.fromarray(p.astype(np.uint8)).reduce(4), dtype=np.int16)
        for p in (a, b)
    ]
    different = (np.abs(small[0] - small[1]).max(axis=2) > 60).mean()
    assert different < 0.02


def test_the_2d_back_end_draws_its_golden_picture(browser: Browser) -> None:
    with served(office()) as simulator:
        simulator.do(simulator.hub.pause)
        with page(browser, simulator.url) as one:
            one.js("__sim.selection.set(['r0', 'r1'])")
            one.until(
                "__sim.painter.drawn.fans === 1 && __sim.painter.drawn.sonar === 2"
            )
            picture = base_canvas(one)

    if os.environ.get("BOTYARD_NEW_GOLDEN"):
        Image.fromarray(picture.astype(np.uint8)).quantize(64).save(
            GOLDEN, optimize=True
        )

    golden = pixels(GOLDEN.read_bytes())
    assert golden.shape == picture.shape
    assert (np.abs(golden - picture).max(axis=2) > 40).mean() < 0.01


def test_the_page_comes_back_with_the_simulator(browser: Browser) -> None:
    with served(office()) as first:
        context = browser.new_context(viewport={"width": 900, "height": 600})
        one = PageObject(context.new_page())
        one.open(first.url)

    one.until("__sim.session.status === 'lost'")
    one.tab.get_by_text("Connection lost, trying again").first.wait_for()
    second = office(4)
    again = first.__class__(second)
    again.port = first.port
    again.start()
    try:
        one.until("__sim.session.status === 'open' && __sim.roster.robots === 4", 15)
        one.until("__sim.world.frame && __sim.world.frame.time < 60")
    finally:
        context.close()
        again.stop()


def test_a_wrong_token_is_explained(browser: Browser) -> None:
    with served(office()) as simulator:
        context = browser.new_context()
        one = PageObject(context.new_page())
        one.tab.goto(f"{simulator.base}/#token=wrong")
        one.tab.get_by_text("The simulator refused this page").wait_for()
        one.tab.get_by_text("wrong token").wait_for()
        context.close()


def test_the_token_leaves_the_address_and_a_reload_still_works(
    browser: Browser,
) -> None:
    with served(office()) as simulator, page(browser, simulator.url) as one:
        assert TOKEN not in one.tab.url
        one.tab.reload()
        one.until("window.__sim?.session.status === 'open'")


def test_a_small_window_and_fingers(browser: Browser) -> None:
    with (
        served(office()) as simulator,
        page(browser, simulator.url, has_touch=True, is_mobile=True) as one,
    ):
        one.tab.set_viewport_size({"width": 390, "height": 780})
        one.until("__sim.camera.width === 390")
        one.js("__sim.panels.side = false")
        one.press("h")
        x, y = one.at(4, 10)
        one.tab.touchscreen.tap(x, y)
        one.until("__sim.selection.names.join() === 'r0'")
        assert one.js("document.documentElement.scrollWidth") <= 390
        simulator.wait(lambda: simulator.sim.robots["r0"].laser.is_read)


@contextmanager
def simulator_process(
    *args: str, line: str = "#token=", **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the program and wait for the line with the page's address."""
    process = subprocess.Popen(
        [*BOTYARD, "run", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        end = time.monotonic() + PATIENCE
        found = ""
        while not found and time.monotonic() < end:
            said = process.stdout.readline()
            assert said or process.poll() is None, (
                process.stderr.read() if process.stderr else ""
            )
            found = (re.search(r"http://\S+", said) or [""])[0]

        yield process, found
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

        process.communicate(timeout=PATIENCE)


def test_the_start_dialog_starts_a_world_that_clients_can_use(browser: Browser) -> None:
    port = free_port(10)
    with (
        simulator_process(
            "--start-dialog", "-p", str(port), "--gui-port", str(port + 9)
        ) as (process, url),
    ):
        context = browser.new_context(viewport={"width": 1100, "height": 750})
        one = PageObject(context.new_page())
        one.tab.goto(url)
        one.tab.get_by_text("Which world?").wait_for()
        one.tab.get_by_role("radio", name="warehouse").check()
        one.tab.get_by_label("How many").fill("2")
        one.button("Another model …").click()
        one.tab.get_by_role("searchbox", name="Model").fill("amigo")
        one.tab.keyboard.press("Enter")
        one.button("Start").click()
        one.until(
            "__sim.panels.dialog === 'none' && __sim.roster.robots === 3 && "
            "__sim.maps.name === 'warehouse'"
        )
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("botyard ready: p3dx (p3dx) on 127.0.0.1:")
        with PioneerClient("127.0.0.1", port + 2) as client:
            assert client.subclass == "amigo"
        context.close()


def test_a_cancelled_start_dialog_ends_the_program(browser: Browser) -> None:
    port = free_port(10)
    with simulator_process(
        "--start-dialog", "-p", str(port), "--gui-port", str(port + 9)
    ) as (process, url):
        context = browser.new_context()
        one = PageObject(context.new_page())
        one.tab.goto(url)
        one.button("Cancel and end").click()
        assert process.wait(PATIENCE) == 0
        context.close()


def test_missing_models_are_asked_about_and_end_it_when_refused(
    browser: Browser, tmp_path: Path
) -> None:
    """The folder of the environment variable is missing:

    continue without it, or end with 234.
    """
    port = free_port(10)
    arguments = ("--nomap", "-r", "p3dx", "-p", str(port), "--gui-port", str(port + 9))
    with simulator_process(*arguments, AMRISIM=str(tmp_path / "gone")) as (
        process,
        url,
    ):
        context = browser.new_context()
        one = PageObject(context.new_page())
        one.open(url)
        dialog = one.tab.get_by_role("dialog", name="Go on without the models?")
        expect(dialog).to_contain_text(f"that does not exist: {tmp_path / 'gone'}")
        # The dialog stays open until it is answered: a second Escape closes a dialog in any case,
        # and keys do not reach the world behind it.
        for key in ("Escape", "Escape", "Control+a", "Backspace"):
            one.tab.keyboard.press(key)
        expect(dialog).to_be_visible()
        assert one.js("__sim.selection.names.length") == 0
        # Keys do not reach the world either between the browser's closing of the dialog and its
        # return.
        key = "new KeyboardEvent('keydown', {key: 'a', ctrlKey: true})"
        script = (
            "(document.querySelector('dialog').close(), "
            f"dispatchEvent({key}), __sim.selection.names.length)"
        )
        assert one.js(script) == 0
        expect(dialog).to_be_visible()
        one.tab.reload()
        one.button("End").click()
        assert process.wait(PATIENCE) == 234
        context.close()


def test_who_goes_on_without_the_models_is_not_asked_again(browser: Browser) -> None:
    with served(office(1)) as simulator:
        simulator.desk.question = Question(
            "AMRISIM names a folder that is not there: <b>", 234
        )
        with page(browser, simulator.url) as one:
            expect(one.tab.get_by_text("not there: <b>")).to_be_visible()
            one.button("Go on without").click()
            expect(one.tab.get_by_role("dialog")).to_have_count(0)
            one.tab.reload()
            one.until("window.__sim?.session.stats && __sim.session.status === 'open'")
            assert one.js("__sim.session.stats.question") == ""
            expect(one.tab.get_by_role("dialog")).to_have_count(0)


def test_a_model_that_is_not_there_is_said_in_the_dialog(browser: Browser) -> None:
    port = free_port(10)
    arguments = (
        "--start-dialog",
        "-r",
        "p4dx",
        "-p",
        str(port),
        "--gui-port",
        str(port + 9),
    )
    with simulator_process(*arguments) as (process, url):
        context = browser.new_context()
        one = PageObject(context.new_page())
        one.tab.goto(url)
        one.button("Start").click()
        one.tab.get_by_text('no robot model "p4dx"').wait_for()
        one.button("Remove p4dx").click()
        one.button("Another model …").click()
        one.tab.get_by_role("searchbox", name="Model").fill("p3dx")
        one.tab.keyboard.press("Enter")
        one.button("Start").click()
        one.until("__sim.panels.dialog === 'none' && __sim.roster.robots === 1")
        assert process.poll() is None
        context.close()


def test_no_graphics_and_lite_graphics(browser: Browser) -> None:
    for option, code in (
        (
            "--no-graphics",
            "document.querySelector('canvas') === null && __sim.roster.robots === 1",
        ),
        (
            "--lite-graphics",
            "!__sim.settings.layers.grid && !__sim.settings.layers.trails && "
            "__sim.roster.robots === 1",
        ),
    ):
        port = free_port(10)
        arguments = (
            "-m",
            "office",
            "-r",
            "p3dx",
            "-p",
            str(port),
            "--gui-port",
            str(port + 9),
            option,
        )
        with simulator_process(*arguments) as (_, url):
            context = browser.new_context()
            one = PageObject(context.new_page())
            one.tab.goto(url)
            one.until(f"window.__sim?.session.welcome && ({code})")
            context.close()


@pytest.fixture
def display(chromium: str) -> Iterator[str]:
    """A virtual display without a graphics processor."""
    if shutil.which("Xvfb") is None:
        missing("Xvfb")
    read, write = os.pipe()
    server = subprocess.Popen(
        [
            "Xvfb",
            "-displayfd",
            str(write),
            "-screen",
            "0",
            "1280x800x24",
            "-nolisten",
            "tcp",
        ],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    assert number
    yield f":{number}"
    server.terminate()
    server.wait(PATIENCE)


def test_a_window_without_a_graphics_processor_falls_back_to_the_2d_canvas(
    playwright: Playwright, chromium: str, display: str
) -> None:
    headed = playwright.chromium.launch(
        executable_path=chromium,
        headless=False,
        args=["--no-sandbox"],
        ignore_default_args=["--enable-unsafe-swiftshader"],
        env={**os.environ, "DISPLAY": display},
    )
    try:
        with (
            served(office()) as simulator,
            page(headed, simulator.url, renderer="auto") as one,
        ):
            assert one.js("__sim.painter.renderer") == "canvas2d"
            one.drag((4, 10), (5, 10.5))
            simulator.wait(lambda: abs(simulator.sim.robots["r0"].truth.x - 5) < 0.1)
    finally:
        headed.close()


@pytest.mark.parametrize("mode", ["fullscreen", "maximize", "minimize"])
def test_a_window_of_its_own_and_its_end(
    chromium: str, display: str, mode: str
) -> None:
    """The options of AMRISim; the simulator ends when its window is closed."""
    port = free_port(10)
    arguments = [
        "-m",
        "office",
        "-r",
        "p3dx",
        "-p",
        str(port),
        "--gui-port",
        str(port + 9),
        f"--{mode}-gui",
    ]
    with simulator_process(*arguments, DISPLAY=display) as (process, url):
        base = url.partition("#")[0]
        end = time.monotonic() + PATIENCE
        children: list[str] = []
        while time.monotonic() < end and not children:
            found = subprocess.run(
                ["pgrep", "-P", str(process.pid)], capture_output=True, text=True
            )
            children = found.stdout.split()
            time.sleep(0.1)

        command = (
            Path(f"/proc/{children[0]}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode()
        )
        assert f"--app={base}" in command or "botyard.ui.window" in command
        wait_for_viewer(base, process)
        os.kill(int(children[0]), signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def wait_for_viewer(base: str, process: subprocess.Popen[str]) -> None:
    """Wait until the window shows the page and the simulator has a viewer."""
    import urllib.request

    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with urllib.request.urlopen(f"{base}healthz", timeout=PATIENCE) as answer:
            if json.loads(answer.read())["viewers"]:
                return

        assert process.poll() is None
        time.sleep(0.2)

    raise AssertionError("no viewer connected: the window did not show the page")


def test_without_a_browser_the_address_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from botyard.errors import WorldError

    monkeypatch.setattr(window, "BROWSERS", ())
    monkeypatch.setattr(window, "PLACES", ())
    monkeypatch.setattr(window, "_has_toolkit", lambda: False)
    with pytest.raises(WorldError, match="open its URL in any browser"):
        window.open_window("http://127.0.0.1:1/", "normal")


def test_a_minimised_window_is_asked_for(tmp_path: Path) -> None:
    window._remember_placement(tmp_path, "minimized")
    kept: dict[str, Any] = json.loads((tmp_path / "Default/Preferences").read_text())
    assert kept["browser"]["window_placement"]["minimized"] is True


@pytest.mark.parametrize("height", [700, 701])
@pytest.mark.parametrize("renderer", ["canvas2d", "webgl2"])
def test_canvases_are_not_stretched(
    browser: Browser, renderer: str, height: int
) -> None:
    """A canvas whose size on the page is not its number of pixels is blurred."""
    with (
        served(Simulation.load("office", seed=1)) as simulator,
        page(browser, simulator.url, renderer=renderer) as one,
    ):
        one.tab.set_viewport_size({"width": 1001, "height": height})
        one.until("__sim.camera.width > 0 && __sim.world.frame !== null")
        sizes = one.tab.evaluate(
            "[...document.querySelectorAll('.stage canvas:not([hidden])')].map(c => {"
            " const b = c.getBoundingClientRect();"
            " return [c.width, b.width, c.height, b.height]; })"
        )
        for pixels, width, rows, tall in sizes:
            assert (pixels, rows) == (width, tall), sizes
