"""Rulers, values under the pointer and the overview, with mouse, keys and fingers."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import Browser, expect

from botyard.model.floor import FloorZone
from botyard.sim.simulation import Simulation
from tests.page.pages import page
from tests.page.serving import served
from tests.page.test_cockpit import violations

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def world() -> Simulation:
    """Return a world with a robot and a zone, away from its origin."""
    sim = Simulation(step=0.1, seed=1)
    sim.add_wall((14, 16), (26, 16), (26, 24), (14, 24), (14, 16))
    sim.floor.set_zone(
        FloorZone(name="kitchen", corners=((15, 17), (17, 17), (17, 19), (15, 19)))
    )
    sim.add_robot("p3dx", "ann", pose=(20.0, 20.0, 0.0))
    return sim


def test_several_figures_are_drawn_and_deleted_one_by_one(browser: Browser) -> None:
    sim = world()
    with served(sim) as simulator, page(browser, simulator.url) as one:
        one.press("h")
        one.press("r")
        bar = one.tab.get_by_role("group", name="Measure")
        expect(bar).to_contain_text("drag, or click both ends")
        rows = bar.get_by_role("listitem")
        # The bar does not cover the corners.
        one.js("__sim.viewpoint.zoom(0.6)")
        # From an end of a wall to the robot, with which the ruler goes.
        one.drag((14.05, 16.05), (20.1, 20.1))
        expect(rows).to_have_text([re.compile("1: 7.211 m, 33.7°")])
        simulator.do(lambda: sim.put("ann", (17.0, 20.0, 0.0)))
        expect(rows).to_have_text([re.compile("1: 5.000 m, 53.1°")])
        # An angle by clicks, an area by keys.
        bar.get_by_role("button", name="Angle").click()
        for x, y in ((26, 16), (14, 16), (14, 24)):
            one.click(x, y)
        expect(rows.nth(1)).to_have_text(re.compile("2: 90.0°"))
        bar.get_by_role("button", name="Area").click()
        one.tab.get_by_label("snap").uncheck()
        one.tab.locator(".stage").focus()
        for keys in (
            ["Enter"],
            ["ArrowRight"] * 5 + ["Enter"],
            ["ArrowUp"] * 10 + ["Enter"],
        ):
            for key in keys:
                one.tab.keyboard.press(key)
        bar.get_by_role("button", name="Close the area").focus()
        one.tab.keyboard.press("Enter")
        scale = one.js("__sim.camera.scale")
        area = float(rows.nth(2).inner_text().split()[1])
        assert area == pytest.approx(0.5 * 60 * 120 / scale**2, rel=0.01)
        assert violations(one) == []
        bar.get_by_role("button", name="Delete angle 2").click()
        expect(rows).to_have_count(2)
        # They stay when the bar is closed.
        one.press("Escape")
        expect(bar).to_have_count(0)
        one.press("r")
        expect(rows).to_have_count(2)
        bar.get_by_role("button", name="Delete all").click()
        expect(rows).to_have_count(0)


def test_values_of_the_point_under_pointer_and_cross(browser: Browser) -> None:
    with served(world()) as simulator, page(browser, simulator.url) as one:
        one.press("h")
        one.press("Shift+V")
        card = one.tab.get_by_role("region", name="Values under the pointer")
        expect(card).to_contain_text("point at the world")
        one.tab.mouse.move(*one.at(16, 18))
        expect(card).to_contain_text("kitchen")
        expect(card).to_contain_text("2.00 m")
        x, y = map(float, re.findall(r"(\d+\.\d+), (\d+\.\d+) m", card.inner_text())[0])
        assert math.hypot(x - 16, y - 18) < 0.05
        one.tab.mouse.move(*one.at(20, 20))
        expect(card).not_to_contain_text("kitchen")
        # The cross of a tool.
        one.press("r")
        one.until("__sim.hand")
        one.press("ArrowRight")
        middle = one.js("__sim.camera.x + __sim.world.schema.origin[0]")
        scale = one.js("__sim.camera.scale")
        expect(card).to_contain_text(f"{middle + 12 / scale:.3f}")
        assert violations(one) == []
        one.tab.reload()
        one.until("window.__sim && __sim.world.frameVersion > 0")
        expect(card).to_be_visible()


def test_the_overview_shows_and_moves_the_view(browser: Browser) -> None:
    with served(world()) as simulator, page(browser, simulator.url) as one:
        one.press("Shift+O")
        inset = one.tab.get_by_role("button", name="Overview: click")
        expect(inset).to_be_visible()
        one.js("__sim.viewpoint.zoom(4)")
        box = inset.bounding_box()
        assert box is not None
        # The left upper quarter of the overview.
        one.tab.mouse.click(
            box["x"] + box["width"] / 4, box["y"] + box["height"] / 2 - 20
        )
        one.until("__sim.camera.x + __sim.world.schema.origin[0] < 18")
        assert one.js("__sim.camera.y + __sim.world.schema.origin[1] > 20.5")
        # A drag moves on.
        one.tab.mouse.move(box["x"] + 20, box["y"] + 70)
        one.tab.mouse.down()
        one.tab.mouse.move(box["x"] + 170, box["y"] + 70, steps=5)
        one.tab.mouse.up()
        one.until("__sim.camera.x + __sim.world.schema.origin[0] > 22")
        # From here on keys lead the focus.
        one.tab.keyboard.press("Tab")
        inset.focus()
        one.tab.keyboard.press("Enter")
        one.until("Math.abs(__sim.camera.x + __sim.world.schema.origin[0] - 20) < 0.1")
        assert violations(one) == []
        one.tab.set_viewport_size({"width": 390, "height": 800})
        expect(inset).to_be_hidden()


def test_fingers_measure_at_390_pixels(browser: Browser) -> None:
    with (
        served(world()) as simulator,
        page(browser, simulator.url, has_touch=True) as one,
    ):
        one.tab.set_viewport_size({"width": 390, "height": 800})
        one.press("j")
        one.press("h")
        one.press("r")
        one.until("__sim.hand")
        for x, y in ((16, 22), (16, 18)):
            one.tab.touchscreen.tap(*one.at(x, y))
        bar = one.tab.get_by_role("group", name="Measure")
        expect(bar.get_by_role("listitem")).to_have_count(1)
        length = float(bar.get_by_role("listitem").inner_text().split()[1])
        assert length == pytest.approx(4.0, abs=0.1)
        for each in bar.get_by_role("button").all():
            box = each.bounding_box()
            assert box is not None and box["height"] >= 30
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert violations(one) == []
