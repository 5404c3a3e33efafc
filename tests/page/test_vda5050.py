"""Orders of VDA 5050 on the page, with a real broker and a master control."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.page.pages import page
from tests.page.test_cockpit import violations
from tests.page.test_traffic import shows
from tests.servers.test_vda5050 import Master, broker, crossing
from tests.waiting import PATIENCE, wait

__all__ = ["broker"]
pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def test_orders_are_seen(browser: Browser, broker: int, tmp_path: Path) -> None:
    """Base and horizon, what an AGV waits for, releases; time can be paused."""
    log = tmp_path / "log.txt"
    with log.open("w") as output:
        command = f"traffic vda5050 --broker 127.0.0.1:{broker} --speed 4 --page"
        command += " --gui-token off --no-browser"
        program = subprocess.Popen(
            [sys.executable, "-m", "botyard", *command.split()],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    def url() -> str:
        assert program.poll() is None, log.read_text()
        found = re.search(r"^page: (\S+)", log.read_text(), re.MULTILINE)
        return found[1] if found else ""

    master = Master(broker)
    try:
        wait(lambda: url() != "")
        master.wait(lambda: master.connections.keys() == {"agv0", "agv1"})
        with page(browser, url()) as one:
            one.press("Shift+Y")
            panel = one.tab.get_by_role("region", name="Traffic")
            waits = panel.get_by_role("list", name="Waiting robots")
            expect(panel).to_contain_text("No robot drives on sector paths")
            # Both may drive to the node before the crossing.
            master.order("agv0", crossing("a", True, 2))
            master.order("agv1", crossing("b", False, 2))
            one.until("__sim.world.count === 2")
            one.press("h")
            expect(waits).to_contain_text(
                "agv0 waits for sector 2, node a2 is in the horizon: "
                "the master control has not released it"
            )
            expect(waits).to_contain_text("agv1 waits for sector 2")
            expect(panel).to_contain_text("the master control: 0 of 2 robots arrived")
            expect(panel).to_contain_text("released: the base")
            # A released node is orange, a node of the horizon is not.
            assert shows(one, "badArea", -2.0, 0.0) and not shows(one, "badArea", 6, 0)
            # Nothing can be decided here.
            for name in ("Hold decisions", "Draw paths …", "End the run", "Grant 2"):
                expect(panel.get_by_role("button", name=name)).to_have_count(0)
            # The master control cannot return to an earlier moment.
            assert one.js("__sim.timeline.state") is None
            assert violations(one) == []
            # One is released while time stands still, and drives when time goes on.
            one.press(" ")
            expect(one.button("Go on")).to_be_visible()
            master.order("agv0", crossing("a", True, 4, 1, begin=1))
            master.wait(lambda: master.last("agv0").get("orderUpdateId") == 1)
            assert not master.last("agv0")["driving"]
            one.press(" ")
            expect(panel.get_by_role("list", name="Decisions")).to_contain_text(
                "the master control granted sector 3 to agv0"
            )
            expect(waits).to_contain_text("held by agv0")
            expect(panel).to_contain_text("1 of 2 robots arrived")
            master.wait(lambda: master.last("agv0").get("lastNodeId") == "a3")
            master.order("agv1", crossing("b", False, 4, 1, begin=1))
            expect(panel).to_contain_text("2 of 2 robots arrived")
            expect(panel).to_contain_text("completed")
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE) == 0, log.read_text()
        assert "completed" in log.read_text()
    finally:
        master.close()
        program.kill()
