"""Two people with one simulator: what one drags is held, and each sees the other."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from botyard.sim.simulation import Simulation
from tests.page.pages import page
from tests.page.serving import served

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def world() -> Simulation:
    """Return a world with two robots."""
    sim = Simulation(step=0.1, seed=1)
    sim.add_wall((-6, -4), (6, -4), (6, 4), (-6, 4), (-6, -4))
    sim.add_robot("p3dx", "ann", pose=(-2.0, 0.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(2.0, 0.0, 0.0))
    return sim


def test_a_robot_in_the_hand_of_another_person_is_not_dragged(browser: Browser) -> None:
    """A second drag is refused with the name of the holder, until the first one ends."""
    sim = world()
    ann = sim.robots["ann"]
    with (
        served(sim) as simulator,
        page(browser, simulator.url) as one,
        page(browser, simulator.url) as other,
    ):
        for each in (one, other):
            each.press("h")
        one.drag((-2, 0), (-2, 2), drop=False)
        simulator.wait(lambda: abs(ann.truth.y - 2) < 0.1)
        other.until("Math.abs(__sim.world.pose(0)[1] - 2) < 0.1")
        other.drag((-2, 2), (0, -2))
        expect(other.tab.get_by_text("ann: page 1 holds it")).to_be_visible()
        other.until("__sim.world.dragged.size === 0")
        # A group goes with none of its robots while one of them is held.
        other.js("__sim.selection.set(['ann', 'bob'])")
        other.drag((2, 0), (4, 0))
        expect(
            other.tab.get_by_text("1 of 2 bodies: ann: page 1 holds it")
        ).to_be_visible()
        simulator.wait(
            lambda: [name for name in simulator.robot_servers.control.held] == ["ann"]
        )
        assert abs(simulator.do(lambda: ann.truth.x) + 2) < 0.1
        one.tab.mouse.up()
        simulator.wait(lambda: not simulator.robot_servers.control.held)
        other.js("__sim.selection.set([])")
        other.drag((-2, 2), (0, -2))
        simulator.wait(lambda: abs(ann.truth.y + 2) < 0.1)


def test_a_hold_ends_with_the_connection(browser: Browser) -> None:
    sim = world()
    with (
        served(sim) as simulator,
        page(browser, simulator.url) as one,
        page(browser, simulator.url) as other,
    ):
        for each in (one, other):
            each.press("h")
        one.drag((-2, 0), (-2, 2), drop=False)
        simulator.wait(lambda: "ann" in simulator.robot_servers.control.held)
        one.js("__sim.connection.close()")
        simulator.wait(lambda: not simulator.robot_servers.control.held)
        other.until("Math.abs(__sim.world.pose(0)[1] - 2) < 0.1")
        other.drag((-2, 2), (0, -2))
        simulator.wait(lambda: abs(sim.robots["ann"].truth.y + 2) < 0.1)
