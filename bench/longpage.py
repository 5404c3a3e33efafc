"""The page over time: memory while twenty robots drive, and pictures while a table scrolls.

``python -m bench longpage`` runs a short form; ``python -m bench.longpage memory 60`` watches
the memory for an hour, ``rows 1000`` scrolls a table of a thousand robots. The browser is
Debian's Chromium, headless, 1440 × 900, without a graphics processor.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.common import judged
from bench.simulator_process import PORT, Simulator
from botyard.app.page import STATIC

ROBOTS = 20
"""Robots that drive while the memory is watched."""
PICTURES_PER_S = 60.0
MB_PER_H = 1.0
"""Goals: pictures while the table scrolls, and growth of each memory."""

SCROLL = """(seconds) => new Promise((done) => {
  const rows = document.querySelector('[role=grid]');
  const times = [];
  let step = 40;
  const end = performance.now() + 1000 * seconds;
  function next(now) {
    times.push(now);
    const before = rows.scrollTop;
    rows.scrollTop += step;
    if (rows.scrollTop === before) step = -step;
    if (now < end) requestAnimationFrame(next); else done(times);
  }
  requestAnimationFrame(next);
})"""


@contextlib.contextmanager
def page(*args: str) -> Iterator[tuple[Simulator, Any]]:
    """Start a simulator and a browser with its page."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None or not (STATIC / "index.html").is_file():
        sys.exit("the page's benchmark needs Chromium and the built page (make web)")
    port = str(PORT - 2)
    options = ("--gui-port", port, "--gui-token", "off", "--no-browser", *args)
    with Simulator(*options) as sim, sync_playwright() as driver:
        flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = driver.chromium.launch(executable_path=program, args=flags)
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(f"http://127.0.0.1:{port}/")
        while not tab.evaluate("Boolean(window.__sim && __sim.world.frameVersion > 0)"):
            tab.wait_for_timeout(200)
        tab.evaluate("__sim.panels.table || __sim.togglePanel('table')")
        yield sim, tab
        browser.close()


def rows(count: float = 1000, seconds: float = 20.0) -> None:
    """Scroll the table of many robots that drive, and print the pace of its pictures."""
    robots = [text for _ in range(int(count)) for text in ("-r", "p3dx")]
    drive = ("--controller", "wander", "--start", "random")
    with page("-m", "warehouse", *robots, *drive) as (_, tab):
        tab.wait_for_timeout(3000)
        idle = _gaps(tab.evaluate(_without_scrolling(), 3.0))
        gaps = _gaps(tab.evaluate(SCROLL, seconds))
        drawn = tab.evaluate("document.querySelectorAll('[role=rowgroup] > *').length")
    rate = 1000.0 / statistics.mean(gaps)
    print(
        f"table of {count:g} robots, {drawn} rows made: {rate:.1f} pictures a second while it "
        f"scrolls {judged(round(rate), PICTURES_PER_S, least=True)}; gaps "
        f"{statistics.median(gaps):.1f} ms median, {np.quantile(gaps, 0.99):.1f} ms 99 %, "
        f"{max(gaps):.0f} ms longest; without scrolling {1000 / statistics.mean(idle):.1f}"
    )


def _without_scrolling() -> str:
    return SCROLL.replace("let step = 40", "let step = 0")


def _gaps(times: list[float]) -> list[float]:
    return np.diff(times).tolist()


def memory(minutes: float = 1.0, speed: float = 4.0) -> None:
    """Watch the memory of simulator and page while robots drive, and print its growth.

    Parameters
    ----------
    minutes : float
        Duration.
    speed : float
        Simulated time per real time: 15 minutes are an hour of the robots.
    """
    robots = [text for _ in range(ROBOTS) for text in ("-r", "p3dx")]
    drive = ("--controller", "wander", "--start", "random")
    with page("-m", "warehouse", *robots, *drive) as (sim, tab):
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable")
        tab.evaluate("(factor) => __sim.session.ask({type: 'speed', factor})", speed)
        # Charts, sensors and trails of selected robots are kept as well.
        tab.evaluate(
            "__sim.selection.set(__sim.roster.bodies.slice(0, 5).map(b => b.name))"
        )
        begin = time.monotonic()
        samples: list[tuple[float, float, float]] = []
        while (now := time.monotonic() - begin) < 60.0 * minutes:
            session.send("HeapProfiler.collectGarbage")
            found = session.send("Performance.getMetrics")["metrics"]
            heap = {one["name"]: one["value"] for one in found}["JSHeapUsedSize"] / 1e6
            samples.append((now / 3600.0, sim.memory(), heap))
            tab.wait_for_timeout(1000 * min(15.0, 60.0 * minutes / 40))
        frames, simulated = tab.evaluate(
            "[__sim.world.frameVersion, __sim.clock.info.time]"
        )
        status, faults = sim.stop(), sim.faults()
    # Caches and histories fill up first.
    late = np.array(samples[len(samples) // 4 :])
    for name, values in (("simulator", late[:, 1]), ("page's heap", late[:, 2])):
        slope = float(np.polyfit(late[:, 0], values, 1)[0])
        print(
            f"{name}, {minutes:g} min, {ROBOTS} robots: {values[0]:.1f} … {values[-1]:.1f} MB "
            f"after the first quarter, {slope:+.2f} MB an hour {judged(slope, MB_PER_H)}"
        )
    print(
        f"{simulated / 60:.0f} min simulated, {frames} frames; exceptions {faults}, status {status}"
    )


def main() -> None:
    rows()
    memory()


if __name__ == "__main__":
    parts: dict[str, Callable[..., None]] = {"rows": rows, "memory": memory}
    parts[sys.argv[1]](*(float(text) for text in sys.argv[2:]))
