"""Goals and pose estimates of the page reach programs of ROS."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser
from websockets.sync.client import connect

import botyard
from tests.page.pages import page
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def test_they_are_published(browser: Browser) -> None:
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    with (
        botyard.serve(
            sim, port=0, page=True, gui_port=0, discovery=False, rosbridge=0
        ) as running,
        connect(f"ws://127.0.0.1:{running.interfaces['rosbridge'].port}") as ros,
        page(browser, str(running.page)) as one,
    ):
        for topic in ("/ann/goal_pose", "/ann/initialpose"):
            ros.send(json.dumps({"op": "subscribe", "topic": topic}))
        ros.send(json.dumps({"op": "call_service", "service": "/rosapi/topics"}))
        while json.loads(ros.recv(PATIENCE))["op"] != "service_response":
            pass
        one.js("__sim.selection.set(['ann'])")
        one.button("Pose estimate …").click()
        one.drag((12.0, 14.0), (12.0, 16.0))
        found = json.loads(ros.recv(PATIENCE))
        assert found["topic"] == "/ann/initialpose"
        pose = found["msg"]["pose"]["pose"]
        assert pose["position"]["x"] == pytest.approx(12.0, abs=0.1)
        assert pose["orientation"]["z"] == pytest.approx(0.7071, abs=0.02)
        assert one.js("__sim.tools.tool") == "select", "one estimate is enough"
        one.press("Shift+G")
        one.click(13.0, 14.0)
        found = json.loads(ros.recv(PATIENCE))
        assert found["topic"] == "/ann/goal_pose"
        assert found["msg"]["pose"]["position"]["x"] == pytest.approx(13.0, abs=0.1)
