"""The page as the cockpit of a fleet: each part by its effect, with mouse, keys and fingers."""

from __future__ import annotations

import gzip
import math
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from tools import build_web

from botyard.app.page import STATIC
from botyard.sim.simulation import Simulation
from tests.page.pages import PageObject, page
from tests.page.serving import Served, served

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

AXE = build_web.WEB / "node_modules/axe-core/axe.min.js"


def fleet(count: int = 6, map: str = "warehouse", **options: Any) -> Simulation:
    sim = Simulation.load(map, step=0.1, odometry_error="none", seed=3, **options)
    sim.add_robots("p3dx", sim.random_free_poses(count, clearance=0.5))
    return sim


def names(one: PageObject) -> list[str]:
    found: list[str] = one.js("[...__sim.selection.names]")
    return found


def violations(one: PageObject) -> list[str]:
    """Return what axe-core finds, with the elements."""
    if not one.js("typeof axe === 'object'"):
        one.js(AXE.read_text("utf-8"))
    found: list[str] = one.js(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.flatMap("
        "v => v.nodes.map(n => `${v.id}: ${n.html.slice(0, 200)} (${n.failureSummary})`)))"
    )
    return found


def test_an_emergency_stop_is_seen_and_acts_on_all_that_is_selected(
    browser: Browser,
) -> None:
    with served(fleet()) as simulator, page(browser, simulator.url) as one:
        robots = list(simulator.sim.robots.values())
        banner = one.tab.get_by_role("alert")
        simulator.do(lambda: robots[1].press_estop(True))
        expect(banner).to_contain_text(robots[1].name)
        # The world shows an octagon, the list a word.
        expect(one.tab.locator("aside li", has_text="stop")).to_have_count(1)
        one.press("h")
        x, y, _ = simulator.do(lambda: robots[1].truth)
        one.js("__sim.world.layers.labels = false, __sim.painter.stage.drawNow()")
        px, py = one.at(x, y)
        r = 9
        red = one.js(
            "(() => { const c = document.querySelector('.stage canvas.base');"
            f" const b = c.getBoundingClientRect(); const [x, y] = [{px} - b.left - {r}, {py} - b.top - {r}];"
            f" const d = c.getContext('2d').getImageData(x, y, {2 * r}, {2 * r}).data; let n = 0;"
            " for (let i = 0; i < d.length; i += 4) n += d[i] > 180 && d[i + 1] < 60; return n; })()"
        )
        assert red > 40
        # Two of three: mixed, in words.
        one.js(f"__sim.selection.set({[r.name for r in robots[:3]]!r})")
        values = one.tab.get_by_label("Values of the selected")
        expect(values).to_contain_text("mixed: 1 of 3")
        # The key and the button act on all that is selected.
        one.press("Shift+X")
        simulator.wait(
            lambda: (
                [r.electrics.estop_pressed for r in robots] == [True] * 3 + [False] * 3
            )
        )
        expect(values).to_contain_text("pressed")
        banner.get_by_role("button", name="Release").click()
        simulator.wait(lambda: not any(r.electrics.estop_pressed for r in robots))
        expect(banner).to_have_count(0)
        # Without a selection: all.
        one.press("Escape")
        one.tab.get_by_role("button", name="Emergency stop: all").click()
        simulator.wait(lambda: all(r.electrics.estop_pressed for r in robots))
        expect(banner).to_contain_text("all 6 robots")


def test_robots_differ_and_each_kind_is_counted(browser: Browser) -> None:
    sim = Simulation.load("visitors")
    with (
        served(sim) as simulator,
        page(browser, simulator.url, colors="auto") as one,
    ):
        bar = one.tab.locator("footer")
        expect(bar).to_contain_text("2 robots · 1 pedestrian · 1 moving obstacle")

        def colors() -> dict[str, str]:
            found: dict[str, str] = one.js(
                "Object.fromEntries(__sim.world.schema.bodies.map((b, i) => [b.name, __sim.world.color(i)]))"
            )
            return found

        # These robots differ already: they keep the colours of the file.
        before = colors()
        assert before["guide"] != before["pupil"] and before["pupil"] == "#0000ff"
        for name in ("tom", "kim"):
            simulator.do(lambda n=name: sim.add_robot("p3dx", n, pose=(6, 14, 0)))
        one.until("__sim.roster.ofKind('robot').length === 4")
        after = colors()
        assert len({after[n] for n in ("guide", "pupil", "tom", "kim")}) == 4
        # A robot that leaves changes no other robot's colour.
        simulator.do(lambda: sim.remove_robots(["tom"]))
        one.until("__sim.roster.ofKind('robot').length === 3")
        assert one.js("__sim.world.color(__sim.world.rows.get('kim'))") == after["kim"]


def test_labels_rings_and_fields_have_room(browser: Browser) -> None:
    sim = fleet(0)
    # A crowd, and one robot at the goal of a name.
    sim.add_robots(
        "p3dx", [(30 + 0.7 * (k % 6), 20 + 0.7 * (k // 6), 0) for k in range(30)]
    )
    sim.add_robot("p3dx", "alone", pose=(5, 35, 0))
    with served(sim) as simulator, page(browser, simulator.url) as one:
        simulator.do(simulator.hub.pause)
        one.press("Control+a")
        one.until("__sim.painter.drawn.fans > 0 && __sim.painter.drawn.points > 0")
        one.press("h")
        for zoom in (1.0, 3.0, 20.0):
            one.js(f"__sim.camera.zoom({zoom}), __sim.painter.stage.drawNow()")
            labels = one.js("__sim.painter.labels")
            size = one.js("[__sim.camera.width, __sim.camera.height]")
            rects = np.array([rect for _, rect in labels])
            assert len(labels) >= 1
            # No name is cut by the edge of the window, and none lies over another name.
            assert (rects[:, :2] >= 0).all() and (rects[:, 2:] <= size).all()
            for i in range(len(rects)):
                others = rects[i + 1 :]
                apart = (
                    (others[:, 0] >= rects[i, 2])
                    | (others[:, 2] <= rects[i, 0])
                    | (others[:, 1] >= rects[i, 3])
                    | (others[:, 3] <= rects[i, 1])
                )
                assert apart.all(), labels
        # Places at the right edge, as "Corridor East" of the office, are written inside.
        one.press("h")
        one.js(
            "__sim.viewpoint.zoom(1.3), __sim.viewpoint.pan(380, 0), __sim.painter.stage.drawNow()"
        )
        assert any(
            name.startswith(("Aisle", "Gate", "Packing"))
            for name, _ in one.js("__sim.painter.labels")
        )
        # At most a few fields lie over each other.
        assert one.js("__sim.painter.drawn.fans") <= 6


def test_many_are_added_at_places_that_are_shown_before(browser: Browser) -> None:
    sim = fleet(1)
    with served(sim) as simulator, page(browser, simulator.url) as one:
        tab = one.tab
        # Enter in "How many" adds; more than five are not selected.
        one.press("Insert")
        tab.get_by_role("option", name="p3dx ").first.wait_for()
        count = tab.get_by_role("spinbutton", name="How many")
        count.fill("7")
        count.press("Enter")
        simulator.wait(lambda: len(sim.robots) == 8)
        one.until("__sim.panels.dialog === 'none' && __sim.roster.robots === 8")
        assert names(one) == []
        # Random places, shown before, in an area that is drawn; "Others" are others.
        one.press("Insert")
        count.fill("12")
        tab.get_by_role("combobox", name="Places").select_option("random")
        tab.get_by_role("button", name="Show the places …").click()
        one.until("__sim.adding.places.length === 12 && !__sim.adding.busy")
        first = one.js("__sim.adding.places")
        assert one.js("__sim.world.preview.poses.length") == 12
        one.button("Others").click()
        one.until(f"!__sim.adding.busy && __sim.adding.places[0][0] !== {first[0][0]}")
        one.button("Draw the area").click()
        one.drag((40, 2), (55, 9))
        one.until(
            "!__sim.adding.busy && __sim.adding.places.length > 0 && __sim.adding.places.every("
            "([x, y]) => x > 40 && x < 55 && y > 2 && y < 9)"
        )
        wanted = one.js("__sim.adding.places")
        assert len(sim.robots) == 8
        tab.get_by_role("button", name="Add 12").click()
        simulator.wait(lambda: len(sim.robots) == 20)
        poses = simulator.do(
            lambda: [tuple(r.truth) for r in list(sim.robots.values())[8:]]
        )
        assert np.allclose(poses, wanted, atol=1e-6)
        # All of them are undone at once.
        one.press("Control+z")
        simulator.wait(lambda: len(sim.robots) == 8)
        # A line gives its heading; too many in a small area are fewer.
        one.press("Insert")
        count.fill("4")
        tab.get_by_role("combobox", name="Places").select_option("line")
        tab.get_by_role("button", name="Show the places …").click()
        one.drag((40, 2), (40, 8))
        one.until("__sim.adding.places.length === 4 && !__sim.adding.busy")
        assert all(
            abs(th - math.pi / 2) < 0.1 for *_, th in one.js("__sim.adding.places")
        )
        tab.get_by_label("Places of new bodies").get_by_role("combobox").select_option(
            "grid"
        )
        one.until("__sim.adding.batch.arrangement === 'grid' && !__sim.adding.busy")
        one.press("Escape")
        one.until("__sim.adding.batch === null && __sim.world.preview === null")
        assert len(sim.robots) == 8 and one.errors == []


def test_a_phone_and_a_small_window(browser: Browser) -> None:
    with served(fleet(3)) as simulator:
        for width, mobile in ((390, True), (1024, False)):
            with page(
                browser, simulator.url, has_touch=mobile, is_mobile=mobile
            ) as one:
                one.tab.set_viewport_size({"width": width, "height": 760})
                one.until(f"innerWidth === {width}")
                assert one.js("document.documentElement.scrollWidth") <= width
                # All of the toolbar is in the window, or in the menu.
                outside = one.js(
                    "[...document.querySelectorAll('header button, header select')].filter(b => !b.inert)"
                    ".map(b => b.getBoundingClientRect())"
                    ".filter(r => r.right > innerWidth || r.left < 0).length"
                )
                assert outside == 0
                small = one.js(
                    "[...document.querySelectorAll('header button, header select')].filter(b => !b.inert)"
                    ".map(b => b.getBoundingClientRect())"
                    ".filter(r => Math.min(r.width, r.height) < 43.5).length"
                )
                if mobile:
                    assert small == 0
                    assert "Tap a robot" in one.js(
                        "__sim.notices.toasts.map(t => t.text).join()"
                    )
                    one.button("More").tap()
                    one.tab.get_by_role("menuitemcheckbox", name="Log").tap()
                    one.tab.get_by_label("Least level").wait_for()
                    one.js("__sim.log.toggle(), __sim.panels.side = false")
                    _turn_by_finger(simulator, one)
                one.button("Help: all keys").click()
                help_ = one.tab.get_by_role("dialog", name="Help")
                expect(help_).to_contain_text("hold a body, then drag")
                one.tab.keyboard.press("Escape")


def _turn_by_finger(simulator: Served, one: PageObject) -> None:
    """A finger that rests on a robot before it moves turns it; otherwise it moves it."""
    robot = next(iter(simulator.sim.robots.values()))
    simulator.do(simulator.hub.pause)
    x, y, _ = simulator.do(lambda: robot.truth)
    one.js(
        f"__sim.viewpoint.goTo({x} - __sim.world.schema.origin[0], {y} - __sim.world.schema.origin[1])"
    )
    one.until("__sim.viewpoint.scale >= 40")
    (ax, ay), (bx, by) = one.at(x, y), one.at(x, y + 1.0)
    one.js(
        "(async () => { const s = document.querySelector('.stage');"
        " const fire = (type, x, y) => s.dispatchEvent(new PointerEvent(type, {bubbles: true, pointerId: 7, "
        "pointerType: 'touch', clientX: x, clientY: y, button: 0, isPrimary: true}));"
        f" fire('pointerdown', {ax}, {ay}); await new Promise(r => setTimeout(r, 600));"
        f" fire('pointermove', {bx}, {by}); fire('pointerup', {bx}, {by}); }})()"
    )
    simulator.wait(lambda: abs(robot.truth.th - math.pi / 2) < 0.02)
    assert math.dist(simulator.do(lambda: robot.truth[:2]), (x, y)) < 1e-6
    simulator.do(simulator.hub.resume)


def test_a_reload_and_a_link_keep_what_is_seen(browser: Browser) -> None:
    with served(fleet()) as simulator, page(browser, simulator.url) as one:
        chosen = one.js("__sim.roster.robotNames.slice(1, 3)")
        one.js(
            f"__sim.selection.set({chosen!r}), __sim.viewpoint.zoom(2.5), __sim.viewpoint.pan(120, 60)"
        )
        one.js("__sim.togglePanel('table'), __sim.panels.side = false")
        kept = "JSON.parse(sessionStorage.getItem('botyard-sight') ?? '{}')"
        one.until(f"{kept}.table === true && {kept}.side === false")
        sight = one.js("__sim.sight()")
        one.tab.wait_for_timeout(400)
        one.tab.reload()
        one.until("window.__sim?.selection.names.length === 2")
        again = one.js("__sim.sight()")
        assert again["selected"] == chosen
        assert [again[k] for k in ("x", "y", "scale")] == pytest.approx(
            [sight[k] for k in ("x", "y", "scale")]
        )
        assert one.js("[__sim.panels.table, __sim.panels.side]") == [True, False]
        # A link carries the view; the field holds it where there is no clipboard.
        one.entry("File", "Share this view …").click()
        link = one.tab.get_by_label("Link").input_value()
        one.tab.keyboard.press("Escape")
        with page(browser, link) as other:
            other.until("__sim.selection.names.length === 2")
            assert other.js("__sim.session.isOnlooker") is True
            seen = other.js("__sim.sight()")
            assert [seen[k] for k in ("x", "y", "scale")] == pytest.approx(
                [sight[k] for k in ("x", "y", "scale")], rel=1e-3
            )
        # A lost world is dated.
        one.js("__sim.connection.forget(), __sim.connection.lost('')")
        one.until("__sim.session.status === 'open'")
        assert names(one) == chosen


def test_a_lost_world_is_dated_and_comes_back_as_it_was(browser: Browser) -> None:
    with served(fleet(3)) as simulator:
        context = browser.new_context(viewport={"width": 1000, "height": 700})
        one = PageObject(context.new_page())
        one.open(simulator.url)
        one.js(
            "__sim.selection.set([__sim.roster.robotNames[2]]), __sim.viewpoint.zoom(3)"
        )
        one.until("__sim.readouts.details.length === 1")
        sight = one.js("__sim.sight()")
    one.until("__sim.session.status === 'lost'")
    expect(one.tab.get_by_role("alert")).to_contain_text("The world is shown as it was")
    one.until(
        "/as it was [1-9]\\d* s ago/.test(document.querySelector('.lost').innerText)"
    )
    again = simulator.__class__(fleet(3))
    again.port = simulator.port
    again.start()
    try:
        one.until("__sim.session.status === 'open' && __sim.world.frame?.time < 60")
        now = one.js("__sim.sight()")
        assert now == {**sight, "x": now["x"], "y": now["y"]}
        assert [now["x"], now["y"]] == pytest.approx([sight["x"], sight["y"]])
    finally:
        context.close()
        again.stop()


def test_charts_have_gaps_a_past_and_a_history(browser: Browser) -> None:
    sim = fleet(2)
    sim.history.keep(minutes=2)
    with served(sim, interval=0.02) as simulator:
        first, second = sim.robots.values()
        simulator.do(lambda: first.command(w=0.5))
        simulator.wait(lambda: sim.time > 8)
        with page(browser, simulator.url) as one:
            # The last minutes of a robot are there as soon as it is selected.
            one.js(f"__sim.selection.set(['{first.name}'])")
            course = f"__sim.readouts.histories.get('{first.name}')"
            one.until(f"{course}?.time[0] < 2 && {course}.time.length > 12")
            assert one.js(f"Math.max(...{course}.w.slice(4, 12))") == pytest.approx(
                math.degrees(0.5), abs=0.1
            )
            # While another robot is selected there are no values: that is a gap.
            one.js(f"__sim.selection.set(['{second.name}'])")
            one.tab.wait_for_timeout(1800)
            one.js(f"__sim.selection.set(['{first.name}'])")
            one.until(f"{course}.v.includes(null)")
            # Looking back, the chart ends at the moment that is shown.
            moment = simulator.do(lambda: sim.time) - 3
            one.js(f"__sim.timeline.seek({moment})")
            one.until(f"__sim.readouts.past?.course.time.at(-1) <= {moment} + 0.6")
            assert one.js("__sim.readouts.past.course.time.at(-1)") > moment - 1.1
            one.press("Escape")
            one.until("__sim.readouts.past === null")


def test_keys_alone_reach_everything_and_axe_finds_nothing(browser: Browser) -> None:
    sim = fleet(4)
    with served(sim) as simulator, page(browser, simulator.url) as one:
        tab, key = one.tab, one.tab.keyboard
        # Space pauses also after a click in a list, and does not press what was clicked.
        tab.locator("aside li button").first.click()
        assert len(names(one)) == 1
        key.press("Space")
        simulator.wait(lambda: simulator.hub.is_paused)
        one.until("__sim.clock.info.paused")
        key.press("Space")
        simulator.wait(lambda: not simulator.hub.is_paused)
        # The focus that keys lead presses.
        tab.locator("aside summary").nth(2).focus()
        key.press("Tab")
        key.press("Shift+Tab")
        key.press("Space")
        one.until("[...document.querySelectorAll('aside details')][2].open")
        assert not simulator.do(lambda: simulator.hub.is_paused)
        # The ruler: a cross that arrows move.
        one.press("Escape")
        one.press("r")
        expect(tab.get_by_role("group", name="Measure")).to_be_visible()
        one.js("__sim.measuring.snaps = false")
        for _ in range(3):
            key.press("ArrowRight")
        key.press("Enter")
        for _ in range(10):
            key.press("ArrowRight")
        key.press("Enter")
        length = float(one.js("__sim.measuring.rows[0].words").split()[0])
        assert length == pytest.approx(120 / one.js("__sim.camera.scale"), abs=1e-3)
        key.press("Escape")
        # Placing.
        one.press("Insert")
        key.type("seekurjr")
        tab.get_by_role("option", name="seekurjr").first.wait_for()
        tab.get_by_role("button", name="Place it …").focus()
        key.press("Enter")
        one.until("__sim.tools.tool === 'place'")
        tab.locator(".stage").focus()
        for one_key in ("ArrowDown", "ArrowDown", "a", "a", "Enter"):
            key.press(one_key)
        simulator.wait(lambda: "seekurjr" in sim.robots)
        assert simulator.do(lambda: sim.robots["seekurjr"].truth.th) == pytest.approx(
            math.radians(10), abs=1e-3
        )
        # Menus.
        one.button("File").focus()
        key.press("ArrowDown")
        assert (
            one.js("document.activeElement.textContent")
            .strip()
            .startswith("Open a map")
        )
        key.press("p")
        assert "Print" in one.js("document.activeElement.textContent")
        key.press("Escape")
        assert one.js("document.activeElement.ariaLabel") == "File"
        # The focus is seen, on the world too.
        tab.locator(".stage").focus()
        key.press("Shift+Tab")
        key.press("Tab")
        assert (
            one.js(
                "getComputedStyle(document.querySelector('.stage'), '::after').boxShadow"
            )
            != "none"
        )
        # No violation: the page, its panels and its dialogs, light and dark.
        one.press("Control+a")
        one.js(
            "__sim.togglePanel('table'), __sim.log.toggle(), "
            "document.querySelectorAll('aside details').forEach(d => d.open = true)"
        )
        one.until("document.querySelector('[role=grid]')")
        found: dict[str, list[str]] = {}
        for theme in ("light", "dark"):
            one.js(f"__sim.settings.setTheme('{theme}')")
            found[theme] = violations(one)
        for dialog in (
            "add",
            "map",
            "help",
            "share",
            "downloads",
            "record",
            "sequence",
        ):
            one.js(f"__sim.panels.open('{dialog}')")
            tab.locator("dialog").wait_for()
            found[dialog] = violations(one)
            one.js("__sim.panels.close()")
            one.until("!document.querySelector('dialog')")
        assert {k: v for k, v in found.items() if v} == {}


def test_the_table_of_the_fleet(browser: Browser) -> None:
    sim = fleet(8)
    with served(sim) as simulator, page(browser, simulator.url) as one:
        tab = one.tab
        robots = list(sim.robots.values())
        one.press("Shift+T")
        grid = tab.get_by_role("grid", name="Robots")
        expect(grid.get_by_role("row")).to_have_count(9)
        expect(grid).to_contain_text("100 %")
        # Values, filters, sort.
        simulator.do(lambda: robots[2].electrics.battery.write(charge=7.0))
        simulator.do(lambda: robots[4].press_estop(True))
        row = grid.get_by_role("row", name=robots[2].name)
        expect(row).to_contain_text("7 %")
        tab.get_by_role("button", name="low battery").click()
        expect(grid.get_by_role("row")).to_have_count(2)
        tab.get_by_role("button", name="low battery").click()
        tab.get_by_role("button", name="emergency stop", exact=True).click()
        expect(grid.get_by_role("row").nth(1)).to_contain_text(robots[4].name)
        tab.get_by_role("button", name="emergency stop", exact=True).click()
        tab.get_by_role("columnheader", name="Battery").get_by_role("button").click()
        expect(grid.get_by_role("row").nth(1)).to_contain_text(robots[2].name)
        # Selected with the world, both ways.
        grid.get_by_role("row").nth(1).click()
        assert names(one) == [robots[2].name]
        grid.get_by_role("row").nth(3).click(modifiers=["Shift"])
        assert len(names(one)) == 3
        one.press("Control+a")
        expect(grid.locator("[aria-selected=true]")).to_have_count(8)
        # The group: batteries, undone together; driven together.
        tab.get_by_label("Charge, percent").fill("55")
        tab.get_by_role("button", name="Set", exact=True).click()
        simulator.wait(lambda: {r.electrics.charge for r in robots} == {55.0})
        one.press("Control+z")
        simulator.wait(
            lambda: (
                robots[2].electrics.charge == 7.0
                and robots[0].electrics.charge == 100.0
            )
        )
        simulator.do(lambda: robots[4].press_estop(False))
        simulator.wait(lambda: not robots[4].electrics.estop_pressed)
        tab.get_by_label("drive together").check()
        tab.locator(".stage").focus()
        tab.keyboard.down("ArrowLeft")
        simulator.wait(lambda: sum(r.state.twist[2] > 0.5 for r in robots) >= 7)
        tab.keyboard.up("ArrowLeft")
        simulator.wait(lambda: all(abs(r.state.twist[2]) < 0.01 for r in robots))
        expect(grid).to_contain_text("page")
        # A typed pose.
        one.js(f"__sim.selection.set(['{robots[0].name}'])")
        bar = tab.get_by_role("group", name="The selected robots")
        for label, value in (
            ("x, m", "20"),
            ("y, m", "18"),
            ("heading, degrees", "90"),
        ):
            bar.get_by_label(label).fill(value)
        bar.get_by_role("button", name="Place", exact=True).click()
        simulator.wait(
            lambda: np.allclose(robots[0].truth, (20, 18, math.pi / 2), atol=1e-6)
        )


def test_a_thousand_rows_scroll(browser: Browser) -> None:
    """Only the rows in sight are made, however many there are."""
    sim = Simulation(step=0.1)
    sim.add_robots(
        "p3dx", [(2.0 * (k % 40), 2.0 * (k // 40), 0.0) for k in range(1000)]
    )
    with served(sim, paused=True) as simulator, page(browser, simulator.url) as one:
        one.press("Shift+T")
        one.until("document.querySelectorAll('[role=grid] [role=row]').length > 5")
        assert one.js("document.querySelectorAll('[role=grid] [role=row]').length") < 60
        one.js("document.querySelector('[role=grid]').scrollTop = 1e6")
        expect(one.tab.get_by_role("grid")).to_contain_text("p3dx_1000")
        assert one.js("document.querySelectorAll('[role=grid] [role=row]').length") < 60


def test_the_first_load_stays_small(chromium: str) -> None:
    """At most 130 kB of script, packed; what is opened later is loaded then."""
    index = (STATIC / "index.html").read_text("utf-8")
    # The script, and what it imports at once.
    first = re.findall(r'(?:src|href)="\./(assets/[^"]+\.js)"', index)
    packed = [len(gzip.compress((STATIC / one).read_bytes(), 9)) for one in first]
    assert 50_000 < sum(packed) <= 130_000
    assert list((STATIC / "assets").glob("FleetTable-*.js"))


def test_robots_are_sent_to_goals(browser: Browser) -> None:
    sim = fleet(0)
    sim.add_robots("p3dx", [(8.0, 18.0 + k, 0.0) for k in range(3)])
    one_robot, *others = sim.robots.values()
    with served(sim, interval=0.02) as simulator, page(browser, simulator.url) as one:
        # One robot: click, and a second goal with Shift; its path is shown.
        one.press("h")
        one.js(f"__sim.selection.set(['{one_robot.name}'])")
        simulator.do(simulator.hub.pause)
        one.press("Shift+G")
        one.click(12, 18)
        simulator.wait(lambda: one_robot.trip is not None)
        tab = one.tab
        tab.keyboard.down("Shift")
        one.click(14, 18)
        tab.keyboard.up("Shift")
        one.until(f"__sim.trips.all.get('{one_robot.name}')?.goals.length === 2")
        simulator.do(simulator.hub.resume)
        one.until(f"__sim.world.trips.get('{one_robot.name}')?.path.length >= 1")
        simulator.wait(
            lambda: one_robot.trip is not None and one_robot.trip.state == "arrived"
        )
        assert math.dist(simulator.do(lambda: one_robot.truth[:2]), (14, 18)) < 0.3
        one.until(f"!__sim.world.trips.has('{one_robot.name}')")
        # A drag chooses the heading.
        one.drag((12, 18), (12, 20))
        simulator.wait(
            lambda: (
                one_robot.trip is not None
                # The trip of the goal before it has arrived as well.
                and math.dist(one_robot.trip.goal[:2], (12, 18)) < 0.3
                and one_robot.trip.state == "arrived"
            )
        )
        assert simulator.do(lambda: one_robot.truth.th) == pytest.approx(
            math.pi / 2, abs=0.15
        )
        # Several get places of their own; one undo takes all back.
        tab.keyboard.press("Escape")
        one.press("Control+a")
        one.tab.get_by_role("button", name="Go there …").click()
        one.click(10, 18)
        simulator.wait(lambda: all(r.trip is not None for r in sim.robots.values()))
        goals = simulator.do(
            lambda: {r.trip.goal for r in sim.robots.values() if r.trip}
        )
        assert len(goals) == 3
        tab.keyboard.press("Escape")
        one.press("Control+z")
        simulator.wait(lambda: all(r.trip is None for r in others))
        # To the docks, each to its own.
        one.tab.get_by_role("button", name="Dock", exact=True).click()
        docks = {p.pose[:2] for p in sim.scene.places if "dock" in p.kind.lower()}
        simulator.wait(lambda: all(r.trip is not None for r in sim.robots.values()))
        assert (
            simulator.do(lambda: {r.trip.goal for r in sim.robots.values() if r.trip})
            == docks
        )
        # On patrol between two goals.
        one.js(f"__sim.selection.set(['{one_robot.name}'])")
        simulator.do(simulator.hub.pause)
        one.js(
            "__sim.trips.send([12, 18], null).then(() => __sim.trips.send([9, 18], null, true))"
        )
        one.until(f"__sim.trips.all.get('{one_robot.name}')?.goals.length === 2")
        one.tab.get_by_role("button", name="Patrol").click()
        simulator.wait(
            lambda: (
                sim.core.programs.by_robot[one_robot.name].options["order"] == "loop"
            )
        )
        simulator.do(simulator.hub.resume)
        simulator.wait(
            lambda: one_robot.trip is not None and one_robot.trip.goals_reached >= 3
        )
        one.tab.get_by_role("button", name="Stay here").click()
        simulator.wait(lambda: one_robot.trip is None)
