"""New names on the page: by key, from the table, for several robots, and refused with a reason."""

from __future__ import annotations

import contextlib
import json
import threading

import pytest
from playwright.sync_api import Browser, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import botyard
from botyard.clients.pioneer import PioneerClient
from tests.page.pages import page
from tests.page.serving import served
from tests.page.test_cockpit import fleet, names, violations
from tests.waiting import wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def drain(ros: ClientConnection) -> None:
    """Read all messages until the connection ends."""
    with contextlib.suppress(ConnectionClosed):
        for _ in ros:
            pass


def test_a_robot_is_renamed_by_key_and_from_the_table(browser: Browser) -> None:
    sim = fleet(3)
    with served(sim) as simulator, page(browser, simulator.url) as one:
        tab = one.tab
        first = next(iter(sim.robots))
        pose = simulator.do(lambda: sim.robots[first].truth)
        one.js(
            f"__sim.selection.set(['{first}']), __sim.viewpoint.followRobot('{first}')"
        )
        one.press("F2")
        field = tab.get_by_label("New name")
        expect(field).to_be_focused()
        assert not violations(one)
        # Typing replaces the old name, and Enter ends the dialog.
        tab.keyboard.type("lift 1")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog")).to_have_count(0)
        simulator.wait(lambda: "lift 1" in sim.robots)
        assert simulator.do(lambda: sim.robots["lift 1"].truth) == pose
        # It stays selected and followed, and its values are shown.
        wait(lambda: names(one) == ["lift 1"])
        one.until("__sim.viewpoint.follow === 'lift 1'")
        one.until("(__sim.readouts.details[0] ?? {}).name === 'lift 1'")
        one.press("Control+z")
        simulator.wait(lambda: first in sim.robots)
        one.press("Control+Shift+Z")
        simulator.wait(lambda: "lift 1" in sim.robots)
        # In the table: twice on the name.
        one.press("Shift+T")
        row = tab.get_by_role("row", name="lift 1")
        field = tab.get_by_label("New name")

        def opens() -> bool:
            row.get_by_role("gridcell").first.dblclick()
            return field.count() > 0

        # A busy machine may renew the row between the two clicks.
        wait(opens)
        expect(field).to_have_value("lift 1")
        # A name that is taken: the dialog stays with the reason.
        other = list(sim.robots)[1]
        tab.get_by_label("New name").fill(other)
        tab.get_by_role("dialog").get_by_role("button", name="Rename").click()
        expect(
            tab.get_by_text(f'a body named "{other}" already exists')
        ).to_be_visible()
        expect(tab.get_by_role("dialog")).to_have_count(1)
        tab.get_by_label("New name").fill("lift 2")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("row", name="lift 2")).to_be_visible()
        # Several: one step.
        one.press("Control+a")
        tab.get_by_role("button", name="Rename …").click()
        tab.get_by_label("New names").fill("cart-#")
        expect(tab.get_by_role("dialog")).to_contain_text("lift 2 → cart-")
        tab.keyboard.press("Enter")
        simulator.wait(lambda: set(sim.robots) == {"cart-1", "cart-2", "cart-3"})
        wait(lambda: sorted(names(one)) == ["cart-1", "cart-2", "cart-3"])
        one.press("Control+z")
        simulator.wait(lambda: "lift 2" in sim.robots and "cart-1" not in sim.robots)


def test_a_name_that_others_use_stays(browser: Browser) -> None:
    """A client at the port, a reader of a topic; then topic and port follow the robot."""
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(10.0, 16.0, 0.0))
    with (
        botyard.serve(
            sim, port=0, page=True, gui_port=0, discovery=False, rosbridge=0
        ) as running,
        page(browser, running.page or "") as one,
    ):
        tab = one.tab
        ports = dict(running.ports)

        def rename(old: str, new: str) -> None:
            one.js(f"__sim.selection.set(['{old}'])")
            one.press("F2")
            tab.get_by_label("New name").fill(new)
            tab.keyboard.press("Enter")

        with (
            PioneerClient(*running.ports["ann"]),
            connect(f"ws://127.0.0.1:{running.interfaces['rosbridge'].port}") as ros,
        ):
            ros.send(json.dumps({"op": "subscribe", "topic": "/bob/odom"}))
            ros.recv()
            # A client that does not read is disconnected.
            threading.Thread(target=drain, args=(ros,), daemon=True).start()
            rename("ann", "eve")
            reason = "ann keeps its name: a client (Pioneer, 127.0.0.1:"
            expect(tab.get_by_text(reason)).to_be_visible()
            tab.keyboard.press("Escape")
            one.until("__sim.panels.dialog === 'none'")
            rename("bob", "eve")
            reason = "bob keeps its name: a ROS node reads /bob/odom"
            expect(tab.get_by_text(reason)).to_be_visible()
            tab.keyboard.press("Escape")
            one.until("__sim.panels.dialog === 'none'")
        one.press("Shift+I")
        tab.get_by_label("Filter clients and topics").fill("bob")
        one.until(
            "(__sim.clients?.topics.find(t => t.name === '/bob/odom') ?? {}).readers === 0"
        )
        rename("bob", "eve")
        one.until("__sim.world.rows.has('eve')")
        wait(lambda: running.ports.get("eve") == ports["bob"])
        with connect(f"ws://127.0.0.1:{running.interfaces['rosbridge'].port}") as ros:
            ros.send(json.dumps({"op": "subscribe", "topic": "/eve/odom"}))
            message = json.loads(ros.recv())
            assert message["topic"] == "/eve/odom"
