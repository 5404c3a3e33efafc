"""A program whose ROS master is missing asks on its page how to continue, with the real
program and a real browser.
"""

from __future__ import annotations

import xmlrpc.client
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.page.pages import PageObject, page
from tests.ports import free_port
from tests.running import running
from tests.waiting import wait

pytestmark = pytest.mark.peer


class Masterless:
    """The program, its page, and the address of its missing master."""

    def __init__(self, one: PageObject, master: int) -> None:
        self.page = one
        self.uri = f"http://127.0.0.1:{master}/"
        self.port = master

    def topics(self) -> list[str]:
        """Return the published topics that the master knows."""
        with xmlrpc.client.ServerProxy(self.uri) as master:
            state: Any = master.getSystemState("/test")
        return [name for name, _ in state[2][0]]

    def is_there(self) -> bool:
        """Return whether a master runs."""
        try:
            with xmlrpc.client.ServerProxy(self.uri) as master:
                return bool(master.getPid("/test"))
        except OSError:
            return False


@pytest.fixture
def masterless(browser: Browser) -> Iterator[Masterless]:
    master = free_port()
    options = (
        "--nomap",
        "-r",
        "p3dx:ann",
        "-p",
        str(free_port()),
        "--gui-port",
        str(free_port()),
    )
    wanted = ("--ros-master", f"http://127.0.0.1:{master}/", "--ros-wait")
    with running(*options, *wanted) as (_, ready), page(browser, ready["page"]) as one:
        yield Masterless(one, master)


def test_a_master_is_started_and_interfaces_switched(masterless: Masterless) -> None:
    tab, m = masterless.page.tab, masterless
    dialog = tab.get_by_role("dialog", name="No ROS master")
    expect(dialog).to_contain_text(f"There is no ROS master at {m.uri}")
    assert not m.is_there()
    m.page.button("Start one here").click()
    wait(m.is_there)
    wait(lambda: "/ann/odom" in m.topics())
    expect(dialog).to_have_count(0)

    # Interfaces can be switched while the simulator runs (ROS-020).
    tab.get_by_text("Interfaces", exact=True).click()
    own = tab.get_by_role("checkbox", name="rosmaster")
    # The page shows the change a little later.
    expect(own).to_be_checked()
    own.click()
    wait(lambda: not m.is_there())
    expect(dialog).to_have_count(1)
    m.page.button("Go on without").click()
    expect(tab.get_by_role("checkbox", name="ros1")).not_to_be_checked()
    expect(dialog).to_have_count(0)
    expect(own).not_to_be_checked()
    own.click()
    wait(m.is_there)
    wait(lambda: "/ann/odom" in m.topics())
    expect(tab.get_by_role("checkbox", name="ros1")).to_be_checked()


def test_it_is_waited_for(masterless: Masterless) -> None:
    tab, m = masterless.page.tab, masterless
    m.page.button("Wait").click()
    expect(tab.get_by_role("dialog")).to_have_count(0)
    # This simulator uses other names: a master asks the older of two nodes with one name to leave.
    with running(
        "--nomap",
        "-p",
        str(free_port(3)),
        "--no-gui",
        "--ros-master",
        f"embedded:{m.port}",
        "--ros-names",
        "stage",
    ):
        wait(lambda: m.is_there() and "/ann/odom" in m.topics())

    wait(lambda: not m.is_there())
    expect(tab.get_by_role("dialog", name="No ROS master")).to_have_count(1)
    m.page.button("End …").click()
    m.page.button("End it").click()
    wait(lambda: m.page.js("document.querySelector('.lost') !== null"))
