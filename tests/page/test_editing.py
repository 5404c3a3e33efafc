"""Walls, zones and places drawn on the page, with clients that stay connected."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import botyard
from botyard.clients.pioneer import PioneerClient
from tests.page.pages import page
from tests.page.serving import served
from tests.page.test_cockpit import violations
from tests.waiting import wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def test_the_map_is_edited_while_a_client_is_connected(browser: Browser) -> None:
    """A connected client senses the new wall; each edit is undone."""
    sim = botyard.Simulation(step=0.1, seed=1)
    sim.add_wall((-8, -8), (8, -8), (8, 8), (-8, 8), (-8, -8))
    ann = sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.0))
    with (
        served(sim) as simulator,
        page(browser, simulator.url) as one,
        PioneerClient("127.0.0.1", simulator.robot_servers.port_of("ann")) as client,
    ):
        tab = one.tab

        def front() -> float:
            assert client.update(5.0)
            return float(min(client.sonar_mm.get(3, 9e9), client.sonar_mm.get(4, 9e9)))

        wait(lambda: 4000 < front() < 9e9)
        one.press("h")
        tab.get_by_role("button", name="Edit the map").click()
        bar = tab.get_by_role("group", name="Edit the map")
        expect(bar).to_contain_text("drag a wall")

        def walls() -> Any:
            return sim.scene.segments.tolist()

        # A wall in front of the robot, snapped to 10 cm.
        one.drag((2.03, -1.02), (1.98, 1.04))
        simulator.wait(lambda: [2.0, -1.0, 2.0, 1.0] in walls())
        wait(lambda: front() < 2000)
        assert sim.robots["ann"] is ann and ann.clients == ("pioneer",)
        one.until("__sim.world.map.walls.length === 20")
        # Move it by its end and erase it.
        bar.get_by_role("button", name="Move").click()
        one.drag((2.0, 0.0), (4.0, 0.0))
        simulator.wait(lambda: [4.0, -1.0, 4.0, 1.0] in walls())
        one.until(
            "__sim.world.map.walls.some(x => x + __sim.world.map.origin[0] === 4)"
        )
        bar.get_by_role("button", name="Erase").click()
        one.click(4.0, 0.5)
        simulator.wait(lambda: len(walls()) == 4)
        # Undo goes back step by step.
        bar.get_by_role("button", name="Undo").click()
        simulator.wait(lambda: [4.0, -1.0, 4.0, 1.0] in walls())
        one.press("Control+z")
        simulator.wait(lambda: [2.0, -1.0, 2.0, 1.0] in walls())

        # A zone, a dock with a heading, and a goal by keys.
        bar.get_by_role("button", name="Zone").click()
        bar.get_by_label("Kind of zone").select_option("slow")
        one.drag((-4, -4), (-2, -2))
        simulator.wait(
            lambda: [z.name for z in sim.floor.description.zones] == ["slow 1"]
        )
        assert simulator.do(lambda: sim.floor.at(-3.0, -3.0).speed_limit) == 0.3
        bar.get_by_role("button", name="Dock").click()
        bar.get_by_label("Name").fill("bay")
        one.drag((-5, 3), (-5, 5))
        simulator.wait(lambda: [p.name for p in sim.scene.places] == ["bay"])
        (place,) = sim.scene.places
        assert place.kind == "Dock" and place.pose.th == pytest.approx(1.5708, abs=0.01)
        one.until("__sim.mapDocks === 1")
        bar.get_by_role("button", name="Goal").click()
        tab.locator(".stage").focus()
        tab.keyboard.press("ArrowUp")
        tab.keyboard.press("Enter")
        tab.keyboard.press("Enter")
        simulator.wait(lambda: [p.name for p in sim.scene.places] == ["bay", "goal 1"])
        assert violations(one) == []
        # The dock can be used at once, and the client is still there.
        assert client.update(5.0) and ann.clients == ("pioneer",)
        bar.get_by_role("button", name="Done").click()
        expect(bar).to_have_count(0)
