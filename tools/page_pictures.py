"""Make the pictures of the page for the docs: ``python -m tools.page_pictures [NAME …]``.

Each picture is a screenshot of a running program, as a user starts it, in a window of
1280 × 800 pixels. Playwright drives the system's Chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs/images"
SIZE: Final = {"width": 1280, "height": 800}
PATIENCE_S: Final = 60.0
"""Longest wait for a program or for a state of the page, s."""
OFFICE: Final = (
    "-m office -r p3dx:ann -r p3at:bob -r amigo:carol --controller wander --seed 3"
)


@contextmanager
def botyard(command: str, folder: Path) -> Iterator[str]:
    """Run a program until the block ends; yield the URL of its page."""
    log = folder / "log.txt"
    with log.open("w") as output:
        program = subprocess.Popen(
            [sys.executable, "-m", "botyard", *command.split()],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"^page: (\S+)", log.read_text(), re.MULTILINE)):
            if program.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"botyard {command}:\n{log.read_text()}")
            time.sleep(0.1)
        yield found[1]
    finally:
        program.terminate()
        program.wait()


def wait(tab: Page, condition: str) -> None:
    """Wait until a condition in JavaScript holds."""
    # The page's Content Security Policy forbids Playwright's own waiting.
    end = time.monotonic() + PATIENCE_S
    while not tab.evaluate(condition):
        if time.monotonic() > end:
            raise TimeoutError(condition)
        time.sleep(0.1)


def choose(tab: Page, name: str) -> None:
    """Select a robot in the list."""
    tab.locator("li button", has_text=re.compile(rf"^\s*{name}\b")).first.click()


def keys(tab: Page, pressed: str) -> None:
    """Press keys while the world has the focus."""
    tab.locator(".stage").focus()
    for key in pressed.split():
        tab.keyboard.press(key)


def office(tab: Page) -> None:
    """Three robots in the office; one is selected, and has driven for a while."""
    choose(tab, "ann")
    wait(tab, "__sim.world.frame.time > 20")


def dark(tab: Page) -> None:
    """The same in the dark, with odometry and log."""
    choose(tab, "bob")
    keys(tab, "o l")
    wait(tab, "__sim.world.frame.time > 20")


def warehouse(tab: Page) -> None:
    """Two hundred robots in the warehouse."""
    wait(tab, "__sim.world.frame.time > 10")


def replay(tab: Page) -> None:
    """A recording in its middle, with the sensors of a selected robot."""
    choose(tab, "ann")
    wait(tab, "__sim.world.frame.time > 20")
    keys(tab, "Space")


def traffic(tab: Page) -> None:
    """A recorded run of traffic, with the activity of each robot."""
    wait(tab, "__sim.world.frame.time > 20")
    keys(tab, "Space")


def live(tab: Page) -> None:
    """A running task: waits, their reasons, and the supervisor's decisions."""
    keys(tab, "Shift+Y")
    wait(tab, "__sim.traffic?.waits.length > 2")
    keys(tab, "Space h")


RECORD: Final = """
import botyard
sim = botyard.Simulation.load("office", seed=3)
for name, model in (("ann", "p3dx"), ("bob", "p3at"), ("carol", "amigo")):
    sim.add_robot(model, name, controller="wander")
with sim.record("run.mcap"):
    sim.run(40)
"""
PICTURES: Final[
    dict[str, tuple[Sequence[Sequence[str]], str, str, Callable[[Page], None]]]
] = {
    "page-office": ((), f"{OFFICE}", "light", office),
    "page-dark": ((), f"{OFFICE}", "dark", dark),
    "page-warehouse": (
        (),
        f"-m warehouse {'-r amigo --start random ' * 200} --controller wander",
        "light",
        warehouse,
    ),
    "page-replay": (
        ([sys.executable, "-c", RECORD],),
        "replay run.mcap --speed 4",
        "light",
        replay,
    ),
    "page-traffic": (
        (
            f"{sys.executable} -m botyard traffic generate warehouse -n 12 -o task.yaml".split(),
            f"{sys.executable} -m botyard traffic run task.yaml --record run.mcap".split(),
        ),
        "replay run.mcap --speed 4",
        "light",
        traffic,
    ),
    "page-traffic-live": (
        (
            f"{sys.executable} -m botyard traffic generate warehouse -n 12 -o task.yaml".split(),
        ),
        "traffic run task.yaml --on-robots p3dx --page --supervisor fcfs",
        "light",
        live,
    ),
}
"""Preparations, command line, colour scheme and actions of each picture."""


def make(name: str, browser: Any, target: Path) -> None:
    """Write one picture.

    Parameters
    ----------
    name : str
        A key of `PICTURES`.
    browser : playwright Browser
        Chromium.
    target : Path
        Folder for the picture.
    """
    before, command, scheme, act = PICTURES[name]
    with tempfile.TemporaryDirectory() as place:
        for line in before:
            subprocess.run(line, cwd=place, check=True, stdout=subprocess.DEVNULL)
        plain = command.startswith(("replay", "traffic"))
        run = command if plain else f"{command} --noninteractive"
        run += " --no-browser"
        with botyard(run, Path(place)) as url:
            context = browser.new_context(viewport=SIZE, color_scheme=scheme)
            tab = context.new_page()
            tab.goto(url)
            wait(tab, "window.__sim?.world.frame != null")
            act(tab)
            # Hints fade out.
            wait(tab, "document.querySelectorAll('.toast').length === 0")
            tab.screenshot(path=target / f"{name}.png")
            context.close()


def main(names: Sequence[str]) -> None:
    """Write the pictures of these names, or all."""
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        for name in names or PICTURES:
            make(name, browser, IMAGES)
            print(IMAGES / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
