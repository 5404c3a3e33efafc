"""The panel of traffic: waits, the circle of a deadlock, decisions by hand, drawn paths."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from botyard.traffic.generate import generate
from botyard.traffic.live import LiveTraffic
from botyard.traffic.on_robots import RobotTraffic
from botyard.traffic.supervisors.registry import find_supervisor
from tests.page.pages import PageObject, page
from tests.page.serving import Served, served
from tests.page.test_cockpit import violations
from tests.waiting import PATIENCE, wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def live(simulator: Served) -> LiveTraffic:
    traffic = simulator.robot_servers.control.traffic
    assert isinstance(traffic, LiveTraffic)
    return traffic


def shows(one: PageObject, color: str, x: float, y: float) -> bool:
    """Whether a point of the world has a colour of the palette, within 2 pixels."""
    found: bool = one.js(
        "(() => { const o = __sim.world.schema.origin, r = window.devicePixelRatio;"
        f" const [x, y] = __sim.camera.toScreen({x} - o[0], {y} - o[1]);"
        f" const want = __sim.world.palette.{color};"
        " const n = parseInt(want.slice(1), 16);"
        " const rgb = [n >> 16, (n >> 8) & 255, n & 255];"
        " return [...document.querySelectorAll('.stage canvas')].some((c) => {"
        "  const d = c.getContext('2d')?.getImageData((x - 2) * r, (y - 2) * r, 5, 5).data ?? [];"
        "  for (let k = 0; k < d.length; k += 4)"
        "   if (d[k + 3] > 200 && rgb.every((v, j) => Math.abs(v - d[k + j]) < 30)) return true;"
        "  return false; }); })()"
    )
    return found


@pytest.mark.parametrize("renderer", ["canvas2d", "webgl2"])
def test_a_deadlock_is_seen(browser: Browser, renderer: str) -> None:
    """Each wait with its reason, and a circle around the robots."""
    sim = Simulation(seed=1)
    with (
        served(sim, interval=0.02) as simulator,
        page(browser, simulator.url, renderer=renderer) as one,
    ):
        traffic = live(simulator)

        def start() -> None:
            run = RobotTraffic(generate("deadlock", 4), find_supervisor("fcfs"), sim)
            traffic.attach(run, "fcfs")

        simulator.do(start)
        one.until("__sim.world.count === 4")
        assert one.js("__sim.world.traffic === null"), "drawn with the panel alone"
        one.press("h")
        one.press("Shift+Y")
        panel = one.tab.get_by_role("region", name="Traffic")
        waits = panel.get_by_role("list", name="Waiting robots").get_by_role("listitem")
        expect(panel).to_contain_text(
            "Deadlock: traffic0 → traffic1 → traffic2 → traffic3 → traffic0"
        )
        for i in range(4):
            expect(
                waits.filter(has_text=f"traffic{i} waits for sector 4")
            ).to_contain_text(f"held by traffic{(i + 1) % 4}")
        simulator.wait(lambda: traffic.ending == "deadlock")
        one.press("h")
        d = simulator.do(
            lambda: traffic.present.drivers[0] if traffic.present else None
        )
        assert d is not None
        x, y, _ = simulator.do(lambda: d.robot.truth)
        # An arrow leaves the robot in the direction of the next one, and a ring surrounds it.
        other = simulator.do(lambda: sim.robots["traffic1"].truth)
        mid = x + 0.5 * (other.x - x), y + 0.5 * (other.y - y)
        one.until("__sim.world.traffic !== null")
        wait(lambda: shows(one, "stalled", *mid))
        assert violations(one) == []
        one.press("Shift+Y")
        one.until("__sim.world.traffic === null")
        wait(lambda: not shows(one, "stalled", *mid))


def test_paths_are_drawn_and_decided_by_hand(browser: Browser) -> None:
    """Click way points, run, hold, step, grant and take back, and undo."""
    sim = Simulation(Scene(name="yard"), seed=1)
    sim.add_robot("p3dx", "ann", pose=(-9.0, 0.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(0.0, -9.0, 1.57))
    with (
        served(sim, interval=0.02) as simulator,
        page(browser, simulator.url) as one,
    ):
        tab, traffic = one.tab, live(simulator)
        one.until("__sim.world.count === 2")
        one.press("Shift+Y")
        panel = tab.get_by_role("region", name="Traffic")
        expect(panel).to_contain_text("No robot drives on sector paths")
        one.press("h")
        panel.get_by_role("button", name="Draw paths").click()
        one.tab.wait_for_timeout(100)
        one.press("h")
        expect(panel.get_by_label("Robot of the path")).to_have_value("ann")
        one.click(1.0, 2.0)
        panel.get_by_role("button", name="Undo point").click()
        one.click(0.0, 0.0)
        one.click(2.5, 0.0)
        panel.get_by_label("Robot of the path").select_option("bob")
        one.click(0.0, 2.5)
        panel.get_by_label("Supervisor").select_option("fcfs")
        assert shows(one, "selection", -4.0, 0.0) or shows(one, "selection", -4.3, 0.0)
        panel.get_by_role("button", name="Run 2 paths").click()
        simulator.wait(lambda: traffic.present is not None)
        run = traffic.present
        assert run is not None
        ann, bob = run.drivers
        assert ann.path.corners.round(1).tolist() == [[-9, 0], [0, 0], [2.5, 0]]
        assert traffic.supervisor == "fcfs"

        # Decisions are held, and let through one by one.
        panel.get_by_role("button", name="Hold decisions").click()
        simulator.wait(lambda: traffic.is_held and traffic.waiting_decisions > 0)
        simulator.wait(
            lambda: abs(ann.robot.velocity.vx) + abs(bob.robot.velocity.vx) < 0.01
        )
        waits = panel.get_by_role("list", name="Waiting robots")
        expect(waits).to_contain_text("decided, but decisions are held")
        before = simulator.do(lambda: (ann.allowed, bob.allowed))
        panel.get_by_role("button", name="Next decision").click()
        simulator.wait(lambda: (ann.allowed, bob.allowed) != before)
        decisions = panel.get_by_role("list", name="Decisions")
        expect(decisions).to_contain_text("fcfs granted sector")
        first, second = ("ann", "bob") if ann.allowed > before[0] else ("bob", "ann")

        # The other robot cannot get the crossing, and the page says why.
        tab.locator("aside").get_by_text(second, exact=True).click()
        rows = panel.get_by_role("list", name="Selected robots")
        expect(rows).to_contain_text(f"{second} is in sector")
        while True:
            grant = rows.get_by_role("button", name="Grant")
            held = tab.get_by_text("holds its sector")
            allowed = simulator.do(lambda: (ann.allowed, bob.allowed))
            grant.click()
            expect(held.or_(decisions.get_by_text("by hand")).first).to_be_visible()
            if held.count():
                break
            simulator.wait(lambda: (ann.allowed, bob.allowed) != allowed)  # noqa: B023
        expect(held.first).to_contain_text(first)
        panel.get_by_role("button", name="Hold decisions").click()
        simulator.wait(lambda: not traffic.is_held)
        simulator.wait(lambda: traffic.ending == "completed")
        expect(panel).to_contain_text("2 of 2 robots arrived")
        assert simulator.do(lambda: abs(bob.robot.truth.y - 2.5)) < 0.2
        panel.get_by_role("button", name="Clear").click()
        simulator.wait(lambda: traffic.present is None)
        expect(panel).to_contain_text("No robot drives on sector paths")


def test_an_onlooker_sees_and_cannot_decide(browser: Browser) -> None:
    sim = Simulation(seed=1)
    with served(sim, interval=0.02) as simulator:
        traffic: Any = live(simulator)
        simulator.do(
            lambda: traffic.attach(
                RobotTraffic(generate("star", 3), find_supervisor("bankers"), sim),
                "bankers",
            )
        )
        link = simulator.url.replace("full-token", "audience-token")
        with page(browser, link) as one:
            one.press("Shift+Y")
            panel = one.tab.get_by_role("region", name="Traffic")
            expect(panel).to_contain_text("of 3 robots arrived")
            for name in ("Hold decisions", "Draw paths", "End the run"):
                expect(panel.get_by_role("button", name=name)).to_be_disabled()


def test_a_task_is_served(browser: Browser, tmp_path: Path) -> None:
    """The command shows the run, and prints its outcome at the end."""
    generate("star", 3).save(tmp_path / "task.json")
    with (tmp_path / "log.txt").open("w") as output:
        command = "traffic run task.json --on-robots p3dx --page --gui-token off"
        program = subprocess.Popen(
            [sys.executable, "-m", "botyard", *command.split(), "--no-browser"],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    log = tmp_path / "log.txt"

    def url() -> str:
        assert program.poll() is None, log.read_text()
        found = re.search(r"^page: (\S+)", log.read_text(), re.MULTILINE)
        return found[1] if found else ""

    try:
        wait(lambda: url() != "")
        with page(browser, url()) as one:
            one.press("Shift+Y")
            panel = one.tab.get_by_role("region", name="Traffic")
            expect(panel).to_contain_text("bankers: 0 of 3 robots arrived")
            expect(panel.get_by_role("list", name="Decisions")).to_contain_text(
                "bankers granted sector"
            )
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE) == 12, log.read_text()
        assert "ended as unfinished at" in log.read_text()
    finally:
        program.kill()
