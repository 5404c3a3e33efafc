"""Undo and redo on the page, checked by the state of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from botyard.clients.pioneer import PioneerClient
from tests.page.pages import PageObject, page
from tests.page.serving import Served, served
from tests.page.test_hands import MAP, near, pose, where, world
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


@pytest.fixture
def run(browser: Browser) -> Iterator[tuple[Served, PageObject]]:
    with served(world()) as simulator, page(browser, simulator.url) as one:
        yield simulator, one


def test_a_drag_is_undone_and_done_again_by_keys(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    one.drag((3, 3), (5, 4))
    simulator.wait(lambda: near(where(simulator, "ann"), 5, 4))
    simulator.wait(lambda: simulator.sim.snapshot.state.held.sum() == 0)
    one.press("Control+z")
    simulator.wait(lambda: near(where(simulator, "ann"), 3, 3, slack=1e-6))
    one.press("Control+Shift+z")
    simulator.wait(lambda: near(where(simulator, "ann"), 5, 4))
    one.tab.get_by_text("redone: moving ann").wait_for()
    one.press("Control+z")
    one.press("Control+z")
    one.tab.get_by_text("nothing to undo").wait_for()


def test_the_button_of_a_message_brings_back_what_was_removed(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    port = simulator.do(lambda: simulator.robot_servers.port_of("ann"))
    one.press("Control+a")
    one.press("Delete")
    simulator.wait(lambda: not simulator.sim.robots)
    one.tab.locator(".toast").get_by_role("button", name="Undo").click()
    simulator.wait(
        lambda: (
            set(simulator.sim.robots) == {"ann", "bob"}
            and simulator.robot_servers.port_of("ann") == port
        )
    )
    assert near(pose(simulator, "ann"), 3, 3) and near(pose(simulator, "bob"), 6, 5, 1)
    assert one.tab.locator(".toast").get_by_role("button", name="Undo").count() == 0, (
        "what it offered was done"
    )


def test_positions_are_reset_after_a_question_while_clients_are_connected(
    run: tuple[Served, PageObject],
) -> None:
    simulator, one = run
    simulator.do(lambda: simulator.sim.put("bob", (9.0, 3.0, 0.0)))
    simulator.wait(lambda: near(where(simulator, "bob"), 9, 3))
    port = simulator.do(lambda: simulator.robot_servers.port_of("ann"))
    with PioneerClient("127.0.0.1", port, timeout=PATIENCE):
        one.until("__sim.session.stats.clients > 0")
        one.press("Control+p")
        one.button("Leave them").click()
        assert near(pose(simulator, "bob"), 9, 3)
        one.press("Control+p")
        one.button("Send all back").click()
        simulator.wait(lambda: near(where(simulator, "bob"), 6, 5, 1))
        one.tab.locator(".toast").get_by_role("button", name="Undo").click()
        simulator.wait(lambda: near(where(simulator, "bob"), 9, 3))


def test_a_map_that_was_dropped_is_taken_back(
    run: tuple[Served, PageObject], tmp_path: Path
) -> None:
    simulator, one = run
    simulator.do(lambda: simulator.sim.put("Box:1", (2.0, 2.0, 0.0)))
    simulator.wait(lambda: near(where(simulator, "Box:1"), 2, 2))
    (tmp_path / "small.map").write_text(MAP)
    one.press("Control+l")
    one.tab.locator("input[type=file]").set_input_files(str(tmp_path / "small.map"))
    simulator.wait(
        lambda: simulator.sim.scene.name != "room" and not simulator.sim.core.box_names
    )
    one.tab.locator(".toast").get_by_role("button", name="Undo").click()
    simulator.wait(
        lambda: (
            simulator.sim.scene.name == "room" and near(where(simulator, "Box:1"), 2, 2)
        )
    )
