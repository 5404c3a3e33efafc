"""Heat maps on the page: quantities, scale, files, looking back, and who else is counted for."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from botyard.sim.simulation import Simulation
from tests.page.pages import page
from tests.page.serving import AUDIENCE, served
from tests.page.test_cockpit import violations

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def world() -> Simulation:
    """Return a hall with a robot that drives in a circle."""
    sim = Simulation(step=0.1, seed=1)
    sim.add_wall((14, 16), (26, 16), (26, 24), (14, 24), (14, 16))
    sim.add_robot("p3dx", "ann", pose=(20.0, 19.0, 0.0))
    sim.robots["ann"].command.velocity(0.5, 0.5)
    return sim


def test_a_heat_map_is_shown_read_saved_and_reset(
    browser: Browser, tmp_path: Path
) -> None:
    sim = world()
    with served(sim, interval=0.02) as simulator, page(browser, simulator.url) as one:
        tab = one.tab
        one.press("h")
        simulator.wait(lambda: sim.tick > 5)
        assert not simulator.do(lambda: simulator.desk._heat._counts)
        one.press("Shift+H")
        heat = tab.get_by_role("region", name="Heat map")
        expect(heat).to_contain_text("visits")
        # Two rounds of the circle: its cells were entered twice.
        one.until("__sim.heat?.result?.most >= 2")
        simulator.do(simulator.hub.pause)
        counts = simulator.desk._heat._counts
        assert counts is not None
        duration = simulator.do(lambda: counts.duration)
        one.until(f"Math.abs(__sim.heat.result.duration - {duration}) < 1e-3")
        x, y = one.js(
            "(() => { const r = __sim.heat.result, k = r.values.indexOf(r.most);"
            " return [r.x + (k % r.columns + 0.5) * r.edge,"
            " r.y + (Math.floor(k / r.columns) + 0.5) * r.edge]; })()"
        )
        assert 18 < x < 22 and 18 < y < 22
        # The world is coloured there, and the card says how much it is.
        one.press("Shift+V")
        card = tab.get_by_role("region", name="Values under the pointer")
        tab.mouse.move(*one.at(x, y))
        expect(card).to_contain_text(f"{one.js('__sim.heat.result.most'):g} visits")
        simulator.do(lambda: sim.put("ann", (25.0, 17.0, 0.0)))
        one.until("Math.abs(__sim.world.pose(0)[0]) > 4")
        tab.screenshot(path=tmp_path / "page.png")
        px, py = one.at(x, y)
        red, green, blue = (
            Image.open(tmp_path / "page.png")
            .convert("RGB")
            .getpixel((round(px), round(py)))
        )  # type: ignore[misc]
        assert red > 200 and green > 200 and blue < 160, (
            "yellow is the end of the scale"
        )
        # By keys: another quantity, the logarithmic scale.
        heat.get_by_label("Quantity").focus()
        tab.keyboard.type("Time")
        one.until("__sim.heat.result.what === 'time'")
        expect(heat.get_by_role("img")).to_have_attribute(
            "aria-label",
            "Scale from 0 to "
            + f"{one.js('Number(__sim.heat.result.most.toPrecision(2))'):g} s",
        )
        heat.get_by_label("log scale").check()
        assert violations(one) == []
        # The files.
        with tab.expect_download() as got:
            heat.get_by_role("button", name="CSV").click()
        got.value.save_as(tmp_path / "time.csv")
        with open(tmp_path / "time.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        total = sum(float(row["time_s"]) for row in rows)
        assert total == pytest.approx(one.js("__sim.heat.result.duration"), rel=0.01)
        with tab.expect_download() as got:
            heat.get_by_role("button", name="PNG").click()
        got.value.save_as(tmp_path / "time.png")
        picture = Image.open(tmp_path / "time.png").convert("RGB")
        assert picture.width == 1200 and len(picture.getcolors(1 << 20) or ()) > 50
        # Coverage has a figure.
        heat.get_by_label("Quantity").select_option("visited")
        expect(heat).to_contain_text("% of")
        share = one.js("__sim.heat.result.share")
        assert 0.02 < share < 0.2
        heat.get_by_role("button", name="Reset").click()
        one.until("__sim.heat.result.area < 1")
        heat.get_by_role("button", name="Close").click()
        expect(heat).to_have_count(0)
        simulator.wait(lambda: simulator.desk._heat._stop is None)


def test_an_earlier_moment_has_the_heat_of_the_minutes_before(browser: Browser) -> None:
    sim = world()
    sim.history.keep()
    with served(sim, interval=0.05) as simulator, page(browser, simulator.url) as one:
        one.press("h")
        simulator.wait(lambda: sim.time > 10)
        one.press("Shift+H")
        heat = one.tab.get_by_role("region", name="Heat map")
        one.until("__sim.heat?.result")
        one.js("__sim.timeline.seek(4)")
        expect(heat).to_contain_text("in the minutes before")
        # The result of the present, which may still be there, has counted less.
        one.until("__sim.heat.result.duration < 5 && __sim.heat.result.total > 3")
        assert heat.locator("option[value=seen]").is_disabled()
        one.press("Escape")
        expect(heat).to_contain_text("counted for")


def test_onlookers_see_heat_maps_and_do_not_reset_them(browser: Browser) -> None:
    with (
        served(world()) as simulator,
        page(browser, f"{simulator.base}/#token={AUDIENCE}") as one,
    ):
        one.tab.set_viewport_size({"width": 390, "height": 800})
        one.press("j")
        one.press("Shift+H")
        one.until("__sim.heat?.result?.total > 0")
        heat = one.tab.get_by_role("region", name="Heat map")
        expect(heat.get_by_role("button", name="Reset")).to_be_disabled()
        assert "only watch" in one.js(
            "__sim.session.request({type: 'reset_heat'}).then(() => '', e => e.message)"
        )
        box = heat.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert violations(one) == []
