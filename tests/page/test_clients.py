"""The panel of clients, ROS topics and sources of commands, with clients of each kind."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import botyard
from botyard.clients.pioneer import PioneerClient
from tests.page.pages import page
from tests.page.test_cockpit import violations
from tests.waiting import wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def drain(ros: ClientConnection) -> None:
    """Read all messages until the connection ends."""
    with contextlib.suppress(ConnectionClosed):
        for _ in ros:
            pass


def test_clients_topics_and_who_drove_it(browser: Browser) -> None:
    """Each client is listed with its traffic, and each command with its source."""
    sim = botyard.Simulation.load("office", seed=1)
    ann = sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0), lasers=["lms200"])
    sim.add_robot("p3dx", "bob", pose=(10.0, 16.0, 0.0))
    with (
        botyard.serve(
            sim, port=0, page=True, gui_port=0, discovery=False, rosbridge=0
        ) as running,
        page(browser, running.page or "") as one,
        PioneerClient(*running.ports["ann"]) as pioneer,
        connect(f"ws://127.0.0.1:{running.interfaces['rosbridge'].port}") as ros,
    ):
        tab = one.tab
        # A client that does not read is disconnected.
        threading.Thread(target=drain, args=(ros,), daemon=True).start()
        ros.send(json.dumps({"op": "subscribe", "topic": "/bob/odom"}))
        twist = {"linear": {"x": 0.1}}
        kind = "geometry_msgs/Twist"
        ros.send(json.dumps({"op": "advertise", "topic": "/bob/cmd_vel", "type": kind}))
        pioneer.enable()
        pioneer.vel(100)

        # By key: the panel is loaded when it is opened.
        one.press("Shift+I")
        panel = tab.get_by_role("region", name="Clients and topics")

        def row(words: str) -> Any:
            return panel.locator("tbody tr", has_text=words)

        pioneer_row = row("Pioneer")
        for word in ("127.0.0.1:", "ann", "B/s", " ms", "drive, "):
            expect(pioneer_row).to_contain_text(word)
        expect(row("rosbridge")).to_contain_text("kB/s")
        expect(row("page 1")).to_have_count(1)
        # A rate is measured: the bytes that the client has really received.
        out = one.js("__sim.clients.clients.find(c => c.protocol === 'Pioneer').sent")
        assert 100 < out < 100_000
        pioneer_row.get_by_role("button", name="ann").click()
        one.until("__sim.selection.names.join() === 'ann'")
        # The sensors of selected robots are read for the page.
        one.js("__sim.selection.set([])")

        # The filter works in the simulator.
        tab.get_by_label("Filter clients and topics").fill("bob")
        expect(row("Pioneer")).to_have_count(0)
        tab.get_by_role("tab", name="ROS topics").click()
        odom = row("/bob/odom")
        expect(odom).to_contain_text("nav_msgs/Odometry")
        expect(odom.locator("td").nth(4)).to_have_text("1")
        one.until(
            "(__sim.clients.topics.find(t => t.name === '/bob/odom') ?? {}).rate > 5"
        )
        # An input counts its messages.
        ros.send(json.dumps({"op": "publish", "topic": "/bob/cmd_vel", "msg": twist}))
        one.until(
            "(__sim.clients.topics.find(t => t.name === '/bob/cmd_vel') ?? {}).count === 1"
        )
        # A look at a topic without readers subscribes to it, and ends with the panel.
        tab.get_by_label("Filter clients and topics").fill("ann")
        tab.get_by_role("button", name="Look at /ann/base_scan").click()
        message = tab.get_by_role("region", name="Last message of /ann/base_scan")
        expect(message).to_contain_text("angle_min")
        expect(message).to_contain_text(" more")
        assert ann.lasers[0].is_read
        assert violations(one) == []

        # The strips show both sources, with the colours of a legend.
        tab.get_by_label("Filter clients and topics").fill("")
        tab.get_by_role("tab", name="Who drove it?").click()
        expect(panel).to_contain_text("pioneer")
        expect(panel).to_contain_text("ros")
        strip = panel.get_by_role("img")
        expect(strip).to_have_count(2)
        assert violations(one) == []
        tab.get_by_role("button", name="Close the panel").click()
        expect(panel).to_have_count(0)
        wait(lambda: not ann.lasers[0].is_read)

        # A client that leaves is gone from the list.
        one.press("Shift+I")
        one.until("__sim.clients.clients.some(c => c.protocol === 'Pioneer')")
        pioneer.close()
        one.until("!__sim.clients.clients.some(c => c.protocol === 'Pioneer')")
