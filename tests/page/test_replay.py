"""A recording on the page:

the time line moves the shown state, equal to the recorded bits, and no viewer can
change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from botyard.clients.pioneer import PioneerClient
from botyard.interfaces.page.recorded import RecordingLine
from botyard.recording.player import Player
from botyard.recording.track import read_track
from tests.page.pages import PageObject, page
from tests.page.serving import Served, served
from tests.page.test_hands import world
from tests.waiting import PATIENCE, wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]
STEPS = 200


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, int]]:
    """Return a recording of the driving robot ann, and the digests of its steps."""
    path, digests = tmp_path_factory.mktemp("replay") / "run.mcap", dict[int, int]()
    sim = world()
    sim.after_step(lambda _: digests.__setitem__(sim.tick, sim.digest()))
    with sim.record(path):
        sim.robots["ann"].command(v=0.2)
        sim.step(50)
        sim.add_robot("p3at", "late", pose=(10, 8, 0))
        sim.step(STEPS - 50)

    return path, digests


@pytest.fixture
def run(
    browser: Browser, recording: tuple[Path, dict[int, int]]
) -> Iterator[tuple[Served, PageObject, Player]]:
    player = Player(read_track(recording[0]))
    with served(player.sim, paused=True) as simulator:

        def begin() -> None:
            player.ended = simulator.hub.pause
            simulator.robot_servers.control.shows_recording = True
            simulator.desk.timeline = RecordingLine(
                player, simulator.hub, simulator.robot_servers.control, "run.mcap"
            )

        simulator.do(begin)
        with page(browser, simulator.url) as one:
            one.tab.get_by_role("slider", name="Moment of the recording").wait_for()
            yield simulator, one, player


def seek(one: PageObject, time: float) -> None:
    """Drag the bar to a simulated time, s."""
    one.tab.get_by_role("slider", name="Moment of the recording").evaluate(
        f"(bar) => {{ bar.focus(); bar.value = {time}; bar.dispatchEvent(new "
        f"Event('input', {{bubbles: true}})); }}"
    )
    one.until(f"__sim.world.frame && Math.abs(__sim.world.frame.time - {time}) < 1e-6")


def press(one: PageObject, button: str) -> None:
    one.tab.get_by_role("region", name="Time line").get_by_role(
        "button", name=button
    ).click()


def test_the_bar_moves_the_recording(
    run: tuple[Served, PageObject, Player], recording: tuple[Path, dict[int, int]]
) -> None:
    simulator, one, player = run
    digests = recording[1]

    def at(tick: int) -> bool:
        return simulator.do(
            lambda: (player.sim.tick, player.sim.digest()) == (tick, digests[tick])
        )

    for tick in (150, 37):
        seek(one, tick * player.sim.dt)
        one.until(f"__sim.world.rows.has('late') === {str(tick > 50).lower()}")
        wait(lambda tick=tick: simulator.do(lambda: player.sim.tick == tick))
        x = simulator.do(lambda: player.sim.robots["ann"].truth.x)
        one.until(
            "Math.abs(__sim.world.pose(__sim.world.rows.get('ann'))[0] + "
            f"__sim.world.schema.origin[0] - {x}) < 0.01"
        )

    one.press(",")
    one.until(f"Math.abs(__sim.world.frame.time - {36 * player.sim.dt}) < 1e-6")
    one.press(".")
    one.until(f"Math.abs(__sim.world.frame.time - {37 * player.sim.dt}) < 1e-6")
    one.until(
        "__sim.timeline.marks.map((m) => m.text).join() === 'ann: commands of api,late added'"
    )
    press(one, "Play")
    simulator.wait(lambda: player.sim.tick > 40)
    press(one, "Pause")
    simulator.wait(lambda: simulator.hub.is_paused)
    tick = simulator.do(lambda: player.sim.tick)
    simulator.do(lambda: player.go(tick))
    assert at(tick) and not player.corrections


def test_it_ends_or_begins_again(run: tuple[Served, PageObject, Player]) -> None:
    simulator, one, player = run
    seek(one, player.end - 0.5)
    press(one, "Play")
    simulator.wait(lambda: simulator.hub.is_paused and player.sim.tick == STEPS)
    press(one, "Loop")
    simulator.wait(lambda: player.loop)
    press(one, "Play")
    simulator.wait(lambda: 0 < player.sim.tick < STEPS and not simulator.hub.is_paused)


def test_nobody_changes_it(
    run: tuple[Served, PageObject, Player], recording: tuple[Path, dict[int, int]]
) -> None:
    simulator, one, player = run
    seek(one, 1.0)
    ann = simulator.do(lambda: player.sim.robots["ann"].truth)
    one.drag((ann.x, ann.y), (ann.x + 3, ann.y))
    assert one.tab.get_by_role("button", name="Add robot").is_disabled()
    one.press("Insert")
    one.tab.get_by_text("a recording is shown").first.wait_for()
    one.js(
        "__sim.connection.request({type: 'remove', names: ['ann']}).catch((e) => "
        "{ window.refused = String(e); })"
    )
    one.until("(window.refused || '').includes('a recording is shown')")
    assert simulator.do(lambda: player.sim.robots["ann"].truth) == ann
    port = simulator.do(lambda: simulator.robot_servers.port_of("ann"))
    simulator.do(simulator.hub.resume)
    with PioneerClient("127.0.0.1", port, timeout=PATIENCE) as client:
        client.enable()
        for _ in range(5):
            client.vel(-300)
            assert client.update(PATIENCE), "reports come"

    simulator.do(simulator.hub.pause)
    simulator.do(lambda: player.go(player.sim.tick))
    tick, digest = simulator.do(lambda: (player.sim.tick, player.sim.digest()))
    assert digest == recording[1][tick] and not player.corrections
