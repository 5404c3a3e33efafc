"""Two people with one simulator: what one drags is held, and each sees the other."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, expect

from botyard.sim.simulation import Simulation
from tests.page.pages import PageObject, page
from tests.page.serving import AUDIENCE, served
from tests.page.test_cockpit import violations

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
            other.tab.get_by_text("1 of 2 bodies failed: ann: page 1 holds it")
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
        # The connection ends after the last movement of the drag.
        other.until("Math.abs(__sim.world.pose(0)[1] - 2) < 0.1")
        one.js("__sim.connection.close()")
        simulator.wait(lambda: not simulator.robot_servers.control.held)
        other.drag((-2, 2), (0, -2))
        simulator.wait(lambda: abs(sim.robots["ann"].truth.y + 2) < 0.1)


def show(one: PageObject, name: str) -> Locator:
    """Show a person under a name; return the panel of people."""
    one.press("Shift+P")
    panel = one.tab.get_by_role("region", name="People")
    box = panel.get_by_role("checkbox")
    expect(box).to_be_disabled()
    panel.get_by_label("Your name").fill(name)
    box.focus()
    one.tab.keyboard.press("Space")
    expect(box).to_be_checked()
    return panel


def test_two_people_see_each_other_by_name_and_color(browser: Browser) -> None:
    """Pointers, selections and what is held are shown to those who show themselves."""
    sim = world()
    with (
        served(sim) as simulator,
        page(browser, simulator.url) as one,
        page(browser, simulator.url) as other,
    ):
        for each in (one, other):
            each.press("h")
        mine = show(one, "Eve")
        expect(mine).to_contain_text("no other person")
        # A page that shows nothing gets nothing.
        assert other.js("__sim.people") is None
        theirs = show(other, "<b>Ada</b>")
        expect(theirs).to_contain_text("Eve")
        expect(mine).to_contain_text("<b>Ada</b>")
        one.tab.mouse.move(*one.at(1.5, 2.5))
        other.until(
            "__sim.people.others[0].pointer && Math.hypot("
            "__sim.people.others[0].pointer[0] - 1.5, __sim.people.others[0].pointer[1] - 2.5) < 0.05"
        )
        # The pointer is drawn there, in the person's colour.
        other.js("__sim.world.layers.labels = false, __sim.painter.stage.drawNow()")
        x, y = other.js(
            "(p => __sim.camera.toScreen(p[0] - __sim.world.schema.origin[0],"
            " p[1] - __sim.world.schema.origin[1]))(__sim.people.others[0].pointer)"
        )
        pixel = other.js(
            f"[...document.querySelector('.stage canvas').getContext('2d')"
            f".getImageData({round(x) + 3}, {round(y) + 8}, 1, 1).data].slice(0, 3)"
        )
        assert pixel == [0, 114, 178]
        assert one.js("__sim.people.others[0].color") == 1
        # A selection, and a robot in the hand.
        one.js("__sim.selection.set(['bob'])")
        expect(theirs).to_contain_text("bob")
        one.js("__sim.selection.set([])")
        one.drag((-2, 0), (-2, 2), drop=False)
        expect(theirs).to_contain_text("holds ann")
        # The other page must show the robot where it is taken.
        other.until(
            "Math.abs(__sim.world.pose(__sim.world.rows.get('ann'))[1]"
            " + __sim.world.schema.origin[1] - 2) < 0.05"
        )
        other.drag((-2, 2), (0, 2))
        expect(other.tab.get_by_text("ann: Eve holds it")).to_be_visible()
        one.tab.mouse.up()
        expect(theirs).not_to_contain_text("holds")
        assert violations(one) == []
        # It goes on while the panel is closed, and ends with the option.
        theirs.get_by_role("button", name="Close").click()
        one.tab.mouse.move(*one.at(0, -2))
        other.until("Math.abs(__sim.people.others[0].pointer[1] + 2) < 0.05")
        mine.get_by_role("checkbox").uncheck()
        other.until("__sim.people.others.length === 0")
        assert (
            simulator.do(lambda: [v.person for v in simulator.desk.viewers]).count("")
            == 1
        )


def test_a_person_is_shown_again_after_a_lost_connection(browser: Browser) -> None:
    with (
        served(world()) as simulator,
        page(browser, simulator.url, has_touch=True) as one,
        page(browser, f"{simulator.base}/#token={AUDIENCE}") as onlooker,
    ):
        onlooker.tab.set_viewport_size({"width": 390, "height": 800})
        onlooker.press("j")
        panel = show(onlooker, "Onlooker")
        box = panel.bounding_box()
        assert box is not None and box["x"] + box["width"] <= 390
        assert violations(onlooker) == []
        mine = show(one, "Eve")
        expect(mine).to_contain_text("Onlooker")
        one.tab.touchscreen.tap(*one.at(0, 2))
        onlooker.until("__sim.people.others[0].pointer")
        onlooker.js("__sim.connection.close()")
        expect(mine).to_contain_text("no other person")
        onlooker.js("__sim.connection.open()")
        expect(mine).to_contain_text("Onlooker")
        onlooker.tab.reload()
        onlooker.until("window.__sim && __sim.world.frameVersion > 0")
        expect(mine).to_contain_text("no other person")
        onlooker.press("Shift+P")
        expect(
            onlooker.tab.get_by_role("region", name="People").get_by_label("Your name")
        ).to_have_value("Onlooker")
