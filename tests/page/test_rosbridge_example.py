"""The page of examples/rosbridge in a browser: it drives a robot, and draws its scan."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import botyard
from tests.recording.proving import prove
from tests.waiting import wait

FOLDER = Path(__file__).parents[2] / "examples/rosbridge"
DRAWN = """() => {
  const data = document.getElementById("scan").getContext("2d").getImageData(0, 0, 600, 600).data;
  return data.some((x, i) => i % 4 === 3 && x > 0 && data[i - 3] === 0); // black: not the robot, which is red
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def folder() -> Iterator[str]:
    """Address of the folder, as ``python -m http.server`` serves it."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(FOLDER))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.peer
def test_it_drives_a_robot(browser: Browser, folder: str, tmp_path: Path) -> None:
    """It drives the first or the requested robot, and reports a missing simulator.

    The run re-simulates from its recording.
    """
    path = tmp_path / "run.mcap"
    sim = botyard.Simulation.load("office", seed=1)
    robots = [
        sim.add_robot("p3dx", name, pose=(10.0, y, 0.0), lasers=["lms200"])
        for name, y in (("ann", 14.0), ("bob", 15.0))
    ]
    with botyard.serve(
        sim, port=0, page=False, discovery=False, rosbridge=0, record=str(path)
    ) as running:
        address = f"{folder}/drive.html?url=ws://localhost:{running.interfaces['rosbridge'].port}"
        for robot, more in zip(robots, ("", "&robot=bob"), strict=True):
            page = browser.new_page()
            page.goto(address + more)
            here = f"{robot.name}: x 0.00 m, y 0.00 m"
            expect(page.locator("#pose")).to_contain_text(here)
            page.wait_for_function(DRAWN)
            page.keyboard.down("ArrowUp")
            wait(lambda driven=robot: driven.truth.x > 10.3)
            page.keyboard.up("ArrowUp")
            expect(page.locator("#pose")).not_to_contain_text(here)
            page.close()

    prove(path, 10)
    page = browser.new_page()
    page.goto(address)
    expect(page.locator("#pose")).to_contain_text("not connected to ws://localhost")
    page.close()
