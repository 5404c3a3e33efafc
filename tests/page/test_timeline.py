"""The page's time line:

looking back changes nothing; going on from a moment changes the engine, and clients
stay connected.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from botyard.clients.pioneer import PioneerClient
from botyard.model.scene import Scene
from tests.page.pages import PageObject, page
from tests.page.serving import Served, served
from tests.page.test_hands import near, pose, where, world
from tests.waiting import PATIENCE, wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


@pytest.fixture
def run(browser: Browser) -> Iterator[tuple[Served, PageObject]]:
    """A world in which ann drives from (3, 3), with the last minutes kept."""
    sim = world()
    sim.history.keep()
    sim.step(20)
    sim.robots["ann"].command(v=0.4)
    with served(sim) as simulator, page(browser, simulator.url) as one:
        one.tab.get_by_role("slider", name="Look back").wait_for()
        yield simulator, one


def seek(one: PageObject, time: float) -> None:
    """Drag the bar to a simulated time, s."""
    one.tab.get_by_role("slider", name="Look back").evaluate(
        f"(bar) => {{ bar.focus(); bar.value = {time}; bar.dispatchEvent(new "
        f"Event('input', {{bubbles: true}})); }}"
    )
    one.until(
        f"__sim.timeline.looked && Math.abs(__sim.timeline.looked.time - {time}) < 0.25"
    )
    one.until(
        "__sim.world.frame && Math.abs(__sim.world.frame.time - __sim.timeline.looked.time) < 1e-9"
    )


def shown_x(one: PageObject, name: str) -> float:
    """Return x of a body as drawn on the page, m."""
    x = one.js(
        f"__sim.world.pose(__sim.world.rows.get('{name}'))[0] + __sim.world.schema.origin[0]"
    )
    assert isinstance(x, (int, float))
    return float(x)


def test_a_page_looks_back_while_the_world_goes_on(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    simulator.wait(lambda: where(simulator, "ann").x > 4.0)
    seek(one, 1.0)
    assert shown_x(one, "ann") == pytest.approx(3.0, abs=0.02)
    x = pose(simulator, "ann").x
    simulator.wait(lambda: where(simulator, "ann").x > x + 0.3)
    assert shown_x(one, "ann") == pytest.approx(3.0, abs=0.02)
    # The page shows a past state, in which no body can be moved.
    one.drag((3, 3), (3, 8))
    one.press(".")
    one.until("__sim.timeline.looked.time > 1.1")
    one.press(",")
    one.until("__sim.timeline.looked.time < 1.1")
    one.press("Escape")
    one.until("!__sim.timeline.isLooking && __sim.world.frame.time > 3")
    assert shown_x(one, "ann") > x and abs(pose(simulator, "ann").y - 3.0) < 0.1


def test_the_world_goes_on_from_there_and_clients_keep_their_connection(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    simulator.wait(lambda: where(simulator, "ann").x > 4.0)
    port = simulator.do(lambda: simulator.robot_servers.port_of("ann"))
    simulator.do(lambda: simulator.sim.add_robot("p3at", "late", pose=(10, 8, 0)))
    simulator.wait(lambda: "late" in simulator.robot_servers.servers)
    with PioneerClient("127.0.0.1", port, timeout=PATIENCE) as client:
        simulator.wait(lambda: simulator.sim.robots["ann"].clients == ("pioneer",))
        one.until("__sim.session.stats.clients > 0")
        simulator.do(lambda: simulator.sim.step(40))
        one.until(
            "__sim.timeline.marks.map((m) => m.text).join() === 'late is "
            "added,ann is commanded by pioneer'"
        )
        one.press("<")
        one.until(
            "__sim.timeline.looked && Math.abs(__sim.timeline.looked.time - "
            "__sim.timeline.marks[1].time) < 0.25"
        )
        seek(one, 1.0)
        one.press("Enter")
        one.tab.get_by_text("late: not there yet").wait_for()
        one.tab.get_by_role("dialog").get_by_role(
            "button", name="Go on from here"
        ).click()
        simulator.wait(
            lambda: "late" not in simulator.sim.robots and simulator.sim.time < 10.0
        )
        simulator.wait(lambda: near(where(simulator, "ann"), 3, 3))
        assert simulator.do(lambda: simulator.sim.robots["ann"].clients) == ("pioneer",)
        client.enable()

        def driven() -> bool:
            client.vel(200)
            assert client.update(PATIENCE), "reports come as before"
            return simulator.do(lambda: where(simulator, "ann").x > 3.2)

        wait(driven)
        one.until("!__sim.timeline.isLooking && !__sim.world.rows.has('late')")
        one.until("__sim.timeline.marks.map((m) => m.kind).join() === 'branch'")


def test_another_map_is_shown_as_it_was(run: tuple[Served, PageObject]) -> None:
    simulator, one = run
    simulator.do(lambda: simulator.sim.replace_scene(Scene(name="empty")))
    one.until("__sim.maps.name !== 'room'")
    simulator.wait(lambda: simulator.sim.history.moments[-1].time > 1.6)
    seek(one, 0.5)
    one.until(
        "__sim.maps.name === 'room' && __sim.world.map.walls.length === 16 && "
        "__sim.world.rows.has('Box:1')"
    )
    one.press("Enter")
    simulator.wait(
        lambda: (
            simulator.sim.scene.name == "room"
            and "Box:1" in simulator.sim.core.box_names
        )
    )
    one.until(
        "!__sim.timeline.isLooking && __sim.maps.name === 'room' && __sim.world.rows.has('Box:1')"
    )
    # The last such button is the one of the message.
    one.tab.get_by_role(
        "button",
        name="Undo",
        exact=True,
    ).last.click()
    simulator.wait(lambda: simulator.sim.scene.name == "empty")
    one.until("__sim.maps.name === '' && !__sim.world.rows.has('Box:1')")
