"""The page names the target of an action, asks before deletion, shows a lost
connection, and shows foreign text as text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from botyard.geometry import Pose
from botyard.interfaces.page.status import Question
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Area, Place, Scene
from botyard.sim.simulation import Simulation
from tests.page.pages import PageObject, page
from tests.page.serving import TOKEN, Served, served
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

ROOM = np.array([[0, 0, 16, 0], [16, 0, 16, 10], [16, 10, 0, 10], [0, 10, 0, 0]], float)
EVIL = '<img src=x onerror="window.hacked=1">\x1b[31m\n\u202e' + "long" * 100


def world(robots: int = 3) -> Simulation:
    sim = Simulation(
        Scene(name="room", segments=ROOM), step=0.05, odometry_error="none"
    )
    for k in range(robots):
        sim.add_robot("p3dx", f"r{k}", pose=(2 + 1.5 * k, 3, 0))
    return sim


@pytest.fixture
def run(browser: Browser) -> Iterator[tuple[Served, PageObject]]:
    with served(world()) as simulator, page(browser, simulator.url) as one:
        yield simulator, one


def toast(one: PageObject, text: str) -> None:
    """Wait for a message; it is in the browser's top layer, as dialogs are."""
    found = one.tab.locator(".toasts:popover-open .toast", has_text=text).first
    found.wait_for()


# -- actions on the selection


def test_the_red_button_is_for_all_that_are_selected(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    robots = list(simulator.sim.robots.values())
    one.press("Control+a")
    one.button("Emergency stop: 3 robots").click()
    simulator.wait(lambda: all(r.electrics.estop_pressed for r in robots))
    toast(one, "emergency stop: 3 robots")
    one.button("Release 3").click()
    simulator.wait(lambda: not any(r.electrics.estop_pressed for r in robots))
    one.button("Motors off: 3").click()
    simulator.wait(lambda: not any(r.motors_on for r in robots))
    one.button("Motors on: 3").click()
    simulator.wait(lambda: all(r.motors_on for r in robots))


def test_one_robot_that_cannot_keeps_nothing_from_the_others(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    robots = simulator.sim.robots
    simulator.do(lambda: robots["r0"].press_estop(True))
    simulator.wait(lambda: robots["r0"].electrics.estop_pressed)
    one.press("Control+a")
    one.button("Motors off: 3").click()
    simulator.wait(lambda: not any(r.motors_on for r in robots.values()))
    one.button("Motors on: 3").click()
    simulator.wait(lambda: robots["r1"].motors_on and robots["r2"].motors_on)
    toast(one, "1 of 3 robots failed: r0: the motors cannot be enabled")
    assert not simulator.do(lambda: robots["r0"].motors_on)


def test_obstacles_among_the_selected_do_not_hinder_a_stop(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    simulator.do(lambda: simulator.robot_servers.add("box", "crate", Pose(8, 8, 0)))
    one.until("__sim.roster.bodies.some(b => b.name === 'crate')")
    one.js("__sim.selection.set(['crate', 'r0', 'r2'])")
    one.button("Emergency stop: 2 robots").click()
    simulator.wait(
        lambda: (
            [r.electrics.estop_pressed for r in list(simulator.sim.robots.values())[:3]]
            == [True, False, True]
        )
    )


def test_things_of_the_map_among_the_selected_hinder_neither_a_stop_nor_clones(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    simulator.do(
        lambda: simulator.sim.replace_scene(
            Scene(
                name="room",
                segments=ROOM,
                boxes=(
                    BoxObject(name="Box:1", pose=Pose(9, 8, 0), length=0.5, width=0.5),
                ),
            )
        )
    )
    one.until("__sim.roster.bodies.some(b => b.name === 'Box:1')")
    one.js("__sim.notices.toasts = [], __sim.selection.set(['Box:1', 'r0', 'r1'])")
    one.press("x")
    toast(one, "stop: 2 robots")
    one.press("Control+d")
    toast(one, "1 of 3 are of the map: only robots are cloned")
    simulator.wait(lambda: len(simulator.sim.robots) == 5)
    assert not one.js("__sim.notices.toasts.some(t => t.bad)")


# -- typed values


@pytest.mark.parametrize(
    ("typed", "comes"),
    [("seekur", "seekur"), ("SEEKURJR", "seekurjr"), ("peopleb", "peoplebot")],
)
def test_a_model_that_is_typed_is_the_one_that_comes(
    run: tuple[Served, PageObject], typed: str, comes: str
) -> None:
    simulator, one = run
    one.press("Insert")
    one.tab.get_by_role("listbox", name="Models").get_by_role("option").first.wait_for()
    one.tab.get_by_role("searchbox", name="Model").fill(typed)
    one.button(f"Add {comes}").click()
    simulator.wait(lambda: len(simulator.sim.robots) == 4)
    assert (
        simulator.do(lambda: list(simulator.sim.robots.values())[-1].spec.name) == comes
    )


@pytest.mark.parametrize("end", ["Add seekur", "Enter"])
def test_what_is_typed_before_the_models_are_there_counts_too(
    run: tuple[Served, PageObject], end: str
) -> None:
    simulator, one = run
    one.js("""(() => {
      const load = __sim.session.loadCatalog.bind(__sim.session);
      __sim.session.loadCatalog = async () => { await new Promise((r) => (window.goOn = r)); await load(); };
    })()""")
    one.press("Insert")
    one.tab.get_by_text("Loading …", exact=True).wait_for()
    one.tab.get_by_role("searchbox", name="Model").fill("seekur")
    if end == "Enter":
        one.tab.keyboard.press("Enter")
    one.js("goOn()")
    if end != "Enter":
        one.button(end).click()
    simulator.wait(lambda: len(simulator.sim.robots) == 4)
    assert (
        simulator.do(lambda: list(simulator.sim.robots.values())[-1].spec.name)
        == "seekur"
    )


def test_a_model_that_is_not_there_is_not_added(run: tuple[Served, PageObject]) -> None:
    _, one = run
    one.press("Insert")
    one.tab.get_by_role("searchbox", name="Model").fill("no such thing")
    one.tab.get_by_text('No model is called "no such thing".').wait_for()
    expect(one.button("Add")).to_be_disabled()


def test_what_cannot_be_added_is_said_and_what_was_typed_stays(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.press("Insert")
    one.tab.get_by_role("searchbox", name="Model").fill("seekur")
    many, name = (
        one.tab.get_by_label("How many"),
        one.tab.get_by_role("textbox", name="Name"),
    )
    name.fill("r1")
    for wrong in ("0", "1001", "-1", "1.5", ""):
        many.fill(wrong)
        expect(one.tab.locator("dialog button.main")).to_be_disabled()

    many.fill("2")
    # Several robots get numbers: their places are chosen in place of a name.
    expect(name).to_have_count(0)
    one.tab.get_by_role("combobox", name="Places").wait_for()
    many.fill("1")
    one.button("Add seekur").click()
    toast(one, 'a body named "r1" already exists')
    expect(name).to_have_value("r1")
    name.fill("fred")
    one.button("Add seekur").click()
    simulator.wait(lambda: "fred" in simulator.sim.robots)
    one.until("__sim.panels.dialog === 'none'")


# -- deletion is announced


def test_removing_many_is_asked_about_and_few_are_said(browser: Browser) -> None:
    with served(world(8)) as simulator, page(browser, simulator.url) as one:
        one.js("__sim.selection.set(['r0', 'r1'])")
        one.press("Backspace")
        toast(one, "2 removed")
        simulator.wait(lambda: len(simulator.sim.robots) == 6)
        one.press("Control+a")
        one.until("__sim.selection.names.length === 6")
        one.press("Backspace")
        dialog = one.tab.get_by_role("dialog", name="Remove 6?")
        dialog.get_by_text("r2, r3, r4, r5, r6, r7").wait_for()
        # The dialog puts the focus on "Keep them".
        one.tab.keyboard.press("Enter")
        one.until("__sim.panels.dialog === 'none'")
        assert simulator.do(lambda: len(simulator.sim.robots)) == 6
        one.press("Delete")
        one.tab.get_by_role("button", name="Remove 6", exact=True).click()
        simulator.wait(lambda: not simulator.sim.robots)
        toast(one, "6 removed")


# -- tokens


def test_a_new_token_in_the_address_of_the_same_tab_is_taken_up(
    browser: Browser,
) -> None:
    with served(world()) as simulator:
        context = browser.new_context()
        one = PageObject(context.new_page())
        one.tab.goto(f"{simulator.base}/#token=wrong")
        one.tab.get_by_text("The simulator refused this page").wait_for()
        one.tab.goto(
            simulator.url
            # A changed fragment acts like a pasted address: the page is not reloaded.
        )
        one.until("__sim.session.status === 'open' && __sim.world.frame")
        assert TOKEN not in one.tab.url
        one.tab.reload()
        one.until("window.__sim?.session.status === 'open'")
        context.close()


def test_a_token_can_be_pasted_where_there_is_none(browser: Browser) -> None:
    with served(world()) as simulator:
        context = browser.new_context()
        one = PageObject(context.new_page())
        one.tab.goto(simulator.base)
        field = one.tab.get_by_role("textbox", name="Token")
        expect(one.button("Connect")).to_be_disabled()
        field.fill("not it")
        expect(one.button("Connect")).to_be_disabled()
        field.fill("wrong")
        one.button("Connect").click()
        field.wait_for()
        # The field also takes the whole address, as the program prints it.
        field.fill(simulator.url)
        one.button("Connect").click()
        one.until("__sim.session.status === 'open' && __sim.world.frame")
        assert field.count() == 0
        one.tab.reload()
        one.until("window.__sim?.session.status === 'open'")
        context.close()


# -- messages, the wheel, files


def test_messages_lie_above_dialogs(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    # Record the elements of the top layer: the latest one covers the others.
    one.js("""(() => {
      window.layer = [];
      for (const [kind, show] of [[HTMLDialogElement, "showModal"], [HTMLElement, "showPopover"]]) {
        const shown = kind.prototype[show];
        kind.prototype[show] = function () { layer.push(show); return shown.call(this); };
      }
    })()""")
    one.press("?")
    one.tab.get_by_role("dialog", name="Help").wait_for()
    one.js("__sim.notices.say('look at this', false, 60)")
    toast(one, "look at this")
    assert one.js("layer.at(-1)") == "showPopover"
    one.tab.keyboard.press("Escape")
    one.until("__sim.panels.dialog === 'none'")
    # A dialog that opens after the message does not hide it.
    one.press("Insert")
    one.tab.get_by_role("dialog", name="Add a robot or an obstacle").wait_for()
    one.until(
        "layer.filter((s) => s === 'showModal').length === 2 && layer.at(-1) === 'showPopover'"
    )
    toast(one, "look at this")
    # A dialog that the simulator opens in place of another one does not hide it either.
    simulator.desk.question = Question("is that so?", 234)
    one.tab.get_by_text("is that so?").wait_for()
    one.until(
        "layer.filter((s) => s === 'showModal').length === 3 && layer.at(-1) === 'showPopover'"
    )
    toast(one, "look at this")


def test_the_wheel_zooms_where_the_view_follows(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    one.tab.mouse.dblclick(*one.at(2, 3))
    one.until("__sim.viewpoint.follow === 'r0' && __sim.selection.isSelected(0)")
    scale, heading = (
        one.js("__sim.camera.scale"),
        simulator.do(lambda: simulator.sim.robots["r0"].truth.th),
    )
    one.tab.mouse.move(*one.at(2, 3))
    one.tab.mouse.wheel(0, -300)
    one.until(f"__sim.camera.scale > 1.2 * {scale}")
    assert simulator.do(lambda: simulator.sim.robots["r0"].truth.th) == heading
    assert one.js("__sim.viewpoint.follow") == "r0"


def test_a_picture_and_what_describes_it_are_dropped_together(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    drop = """() => {
      const data = new DataTransfer();
      const pixels = new Uint8Array(20 * 10).fill(254);
      pixels.fill(0, 0, 40);
      data.items.add(new File([new TextEncoder().encode("P5\\n20 10\\n255\\n"), pixels], "floor.pgm"));
      data.items.add(new File([
        "image: floor.pgm\\nresolution: 0.5\\norigin: [0, 0, 0]\\nnegate: 0\\noccupied_thresh: 0.65\\nfree_thresh: 0.196\\n"
      ], "lab.yaml"));
      document.querySelector(".page").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    one.tab.evaluate(drop)
    simulator.wait(
        lambda: (
            simulator.sim.scene.bounds is not None
            and simulator.sim.scene.name != "room"
        )
    )
    toast(one, "lab.yaml loaded")
    x0, y0, x1, y1 = simulator.do(lambda: simulator.sim.scene.bounds)
    assert (x1 - x0, y1 - y0) == pytest.approx((10.0, 1.0), abs=0.6)


def test_a_file_that_is_too_large_is_not_sent(run: tuple[Served, PageObject]) -> None:
    _, one = run
    one.tab.evaluate(
        "() => __sim.upload([{name: 'big.map', size: 65 * 2 ** 20, arrayBuffer: "
        "() => { throw new Error('it was read'); }}])"
    )
    toast(one, "big.map: 65 MiB; at most 64 MiB are taken")


# -- lost connections


def test_a_lost_connection_looks_lost(browser: Browser) -> None:
    with served(world()) as simulator:
        context = browser.new_context(viewport={"width": 1000, "height": 700})
        one = PageObject(context.new_page())
        one.open(simulator.url)
        one.tab.get_by_text("sim/real 1").wait_for()
        one.js("__sim.selection.set(['r0'])")
        expect(one.button("Emergency stop")).to_be_enabled()
        assert (
            one.js("getComputedStyle(document.querySelector('.stage')).filter")
            == "none"
        )

    one.tab.get_by_text("Connection lost, trying again").first.wait_for()
    bar = one.tab.locator("footer")
    expect(bar).to_contain_text("connection lost, trying again")
    expect(bar).to_contain_text("sim/real –")
    assert "grayscale" in one.js(
        "getComputedStyle(document.querySelector('.stage')).filter"
    )
    assert one.button("Pause").is_disabled()
    assert one.button("Emergency stop").is_disabled(), "it would stop nothing"
    assert "grayscale" in one.js(
        "getComputedStyle(document.querySelector('aside')).filter"
    )
    context.close()


def test_a_simulator_that_stands_still_is_not_taken_for_alive(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    go = threading.Event()
    simulator._loop.call_soon_threadsafe(go.wait, PATIENCE)
    try:
        one.tab.get_by_text("Connection lost, trying again").first.wait_for()
    finally:
        go.set()

    one.until("__sim.session.status === 'open'")
    assert one.tab.get_by_text("Connection lost, trying again").count() == 0


# -- foreign text


def test_names_of_files_and_things_are_text_escaped_and_cut(browser: Browser) -> None:
    scene = Scene(
        name=EVIL,
        segments=ROOM,
        boxes=(BoxObject(name=EVIL, pose=Pose(8, 5, 0), length=1.0, width=0.6),),
        places=(Place(kind="Goal", name=EVIL, pose=Pose(4, 6, 0)),),
        areas=(
            Area(
                kind="ForbiddenArea",
                name=EVIL,
                corners=((1.0, 7.0), (3.0, 7.0), (3.0, 9.0), (1.0, 9.0)),
            ),
        ),
    )
    sim = Simulation(scene, step=0.05)
    sim.add_robot("p3dx", "<b>r0</b>&amp;", pose=(2, 3, 0))
    with served(sim) as simulator, page(browser, simulator.url) as one:
        one.js(
            "(async () => { window.drawn = []; const f = "
            "CanvasRenderingContext2D.prototype.fillText;"
            " CanvasRenderingContext2D.prototype.fillText = function (t, ...a) { "
            "drawn.push(t); return f.call(this, t, ...a); }; })()"
        )
        one.press("Control+a")
        one.js("__sim.selection.set(__sim.roster.bodies.map(b => b.name))")
        one.tab.mouse.move(*one.at(8, 5))
        one.js("__sim.notices.say(__sim.roster.bodies[1].name, true, 60)")
        one.until("drawn.length > 3")
        text = one.tab.locator("body").inner_text()
        assert "<b>r0</b>&amp;" in text
        assert (
            "<img src=x" in text
            and "\\x1b[31m" in text
            and "longlonglong" * 20 not in text
        )
        assert "\x1b" not in text and "\u202e" not in text
        assert (
            one.tab.locator("img[src=x]").count() == 0
            and one.js("window.hacked") is None
        )
        drawn = json.loads(one.js("JSON.stringify(drawn)"))
        assert any(t.startswith("<img") for t in drawn)
        assert all(t.isprintable() and len(t) <= 80 for t in drawn)
