"""The chart of a recorded traffic run below the time line:

bars are events of the run, and a click goes to its moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from botyard.interfaces.page.recorded import RecordingLine
from botyard.recording.player import Player
from botyard.recording.track import read_track
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import Outcome
from botyard.traffic.recorded import STEP_S, write_recording
from botyard.traffic.recordedchart import recorded_chart
from botyard.traffic.replay import lanes
from tests.page.pages import PageObject, page
from tests.page.serving import AUDIENCE, Served, served
from tests.traffic.test_recorded import run as traffic
from tests.traffic.test_recordedchart import waits_of
from tests.waiting import wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

Shown = tuple[Served, PageObject, Player, Outcome]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    out, path = (
        traffic("deadlock", 4, "bankers"),
        tmp_path_factory.mktemp("chart") / "run.mcap",
    )
    write_recording(out, path)
    return path, out


@pytest.fixture
def run(browser: Browser, recording: tuple[Path, Outcome]) -> Iterator[Shown]:
    player = Player(read_track(recording[0]))
    with served(player.sim, paused=True) as simulator:

        def begin() -> None:
            simulator.robot_servers.control.shows_recording = True
            simulator.desk.timeline = RecordingLine(
                player, simulator.hub, simulator.robot_servers.control, "run.mcap"
            )

        simulator.do(begin)
        with page(browser, simulator.url) as one:
            one.until("__sim.chart.rows.length")
            yield simulator, one, player, recording[1]


def at(one: PageObject, robot: int, time: float) -> tuple[float, float]:
    """Return the window position of a robot's row at a time, pixels, from the elements
    and the known layout.
    """
    box, bar = (
        one.tab.locator(place).bounding_box()
        for place in ("section[aria-label^=Chart] .rows", ".bar")
    )
    assert box is not None and bar is not None
    first, last = one.js("[__sim.timeline.span.first, __sim.timeline.span.last]")
    return bar["x"] + (time - first) / (last - first) * bar["width"], box[
        "y"
    ] + 18 + 24 * robot + 8


CANVAS = "document.querySelector('section[aria-label^=Chart] canvas')"


def color(one: PageObject, x: float, y: float) -> list[int]:
    """Return the colour of the chart at a window position: red, green, blue."""
    found: list[int] = one.js(
        f"(() => {{ const c = {CANVAS}, b = c.getBoundingClientRect(), k = c.width / b.width;"
        f" const at = [({x} - b.left) * k, ({y} - b.top) * k, 1, 1];"
        " return [...c.getContext('2d').getImageData(...at).data].slice(0, 3); })()"
    )
    return found


def variable(one: PageObject, name: str) -> list[int]:
    """Return a colour variable of the page."""
    text: str = one.js(
        f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()"
    )
    return [int(text[k : k + 2], 16) for k in (1, 3, 5)]


def longest_wait(out: Outcome) -> tuple[int, float, float]:
    waits = [(i, a, b) for i, bars in waits_of(out).items() for a, b in bars]
    return max(waits, key=lambda wait: wait[2] - wait[1])


def test_bars_are_the_events_of_the_run(run: Shown) -> None:
    """In the page's memory and as colours on its canvas, in both themes."""
    _, one, _, out = run
    rows: list[dict[str, Any]] = one.js(
        "__sim.chart.rows.map((r) => ({name: r.name, asks: [...r.asks], sectors: "
        "[...r.sectors.sector],"
        " grants: [...r.grants.sector], begin: [...r.sectors.begin]}))"
    )
    events = list(out.events.rows())
    begins, _ends = out.occupancy()
    for i, row in enumerate(rows):
        mine = [e for e in events if e["robot"] == i]
        assert row["name"] == f"traffic{i}"
        assert row["asks"] == pytest.approx(
            [e["t"] for e in mine if e["kind"] == "critical"], abs=1e-5
        )
        first = int(out.task.first[i])
        assert row["sectors"] == list(range(len(out.task.vehicles[i].ends)))
        assert row["begin"] == pytest.approx(
            begins[first : first + len(row["begin"])].tolist(), abs=1e-5
        )
        granted, entered = (
            {e["sector"]: e["t"] for e in mine if e["kind"] == kind}
            for kind in ("grant", "enter")
        )
        assert row["grants"] == [
            sector for sector, t in granted.items() if entered[sector] > t
        ]

    robot, begin, end = longest_wait(out)
    place = at(one, robot, begin + 0.3 * (end - begin))
    one.until(f"{CANVAS}.width > 400")
    light = variable(one, "bad")
    assert color(one, *place) == light
    assert color(one, *at(one, robot, begin - 0.2)) == variable(one, "accent")
    one.tab.get_by_role("button", name="Light or dark").click()
    one.until(
        "getComputedStyle(document.documentElement).getPropertyValue('--bad').trim() === '#ff7081'"
    )
    wait(lambda: color(one, *place) != light)
    assert color(one, *place) == variable(one, "bad") != light


def test_a_click_goes_to_its_moment(run: Shown) -> None:
    """The replayed world is the world of the run at this time, also with chart and time
    line zoomed.
    """
    simulator, one, player, out = run
    robot, begin, end = longest_wait(out)
    ways = [
        (Path2(lane), motion)
        for lane, motion in zip(lanes(out.task), motions(out), strict=True)
    ]

    def is_at(time: float, tolerance: float) -> bool:
        if abs(player.sim.time - time) > tolerance:
            return False
        now = np.array([round(player.sim.time / STEP_S) * STEP_S])
        wanted = [way.at(motion.place(now))[0] for way, motion in ways]
        return bool(np.abs(player.sim.poses[:, :2] - wanted).max() < 1e-6)

    for part in (0.5, 0.9):
        time = begin + part * (end - begin)
        one.tab.mouse.click(*at(one, robot, time))
        simulator.wait(lambda time=time: is_at(time, 2 * STEP_S))

    one.until(f"__sim.selection.names.join() === 'traffic{robot}'")
    # The wait comes from the supervisor's caution, so the text names no other robot.
    one.tab.get_by_text(
        f"traffic{robot} waits from {begin:.1f} s to {end:.1f} s"
    ).wait_for()
    found = recorded_chart(player.track)
    assert found is not None
    ends = {(i, t): until for i, t, until in found.chart.waits}
    held, since, others = max(
        found.chart.holders, key=lambda one: ends[one[:2]] - one[1]
    )
    middle = (since + ends[held, since]) / 2
    one.tab.mouse.click(*at(one, held, middle))
    simulator.wait(lambda: is_at(middle, 2 * STEP_S))
    one.until(
        "__sim.timeline.wanted === null"
        # A later moment could change the span of the bar before the next click.
    )
    names = ", ".join(f"traffic{other}" for other in others)
    said = f"traffic{held} waits for {names} from {since:.1f} s to {ends[held, since]:.1f} s"
    one.tab.get_by_text(said).wait_for()
    chart = one.tab.get_by_role("slider", name="Chart")
    chart.focus()
    for _ in range(4):
        one.tab.keyboard.press("+")
    one.until(
        "__sim.timeline.isZoomed && __sim.timeline.span.last - __sim.timeline.span.first < 10"
    )
    assert (
        float(one.tab.get_by_role("slider", name="Moment of").get_attribute("min") or 0)
        > 0.0
    )
    early = begin + 0.85 * (end - begin)
    one.tab.mouse.click(*at(one, 0, early))
    simulator.wait(lambda: is_at(early, 1.5 * STEP_S))


def test_it_is_worked_by_keys(run: Shown) -> None:
    """Up and down select a robot, left and right its next event."""
    simulator, one, player, out = run
    robot, _, _ = longest_wait(out)
    changes: list[float] = one.js(f"[...__sim.chart.rows[{robot}].changes]")
    one.tab.get_by_role("slider", name="Chart").focus()
    for _ in range(robot):
        one.tab.keyboard.press("ArrowDown")
    one.until(f"__sim.chart.row === {robot}")
    shown = 0.0
    for _ in range(3):
        shown = min(t for t in changes if t >= shown + STEP_S)
        one.tab.keyboard.press("ArrowRight")
        simulator.wait(lambda shown=shown: abs(player.sim.time - shown) < 1.01 * STEP_S)
        one.until(
            "__sim.timeline.wanted === null && __sim.timeline.time === __sim.world.frame.time"
        )
        one.until(f"Math.abs(__sim.timeline.time - {shown}) < {1.01 * STEP_S}")
        shown = one.js("__sim.timeline.time")

    one.tab.keyboard.press("ArrowLeft")
    simulator.wait(lambda: player.sim.time < shown)


def test_onlookers_see_it_and_move_nothing(run: Shown, browser: Browser) -> None:
    simulator, _one, player, out = run
    tick = simulator.do(lambda: player.sim.tick)
    with page(browser, f"{simulator.base}/#token={AUDIENCE}") as other:
        other.until("__sim.chart.rows.length === 4")
        robot, begin, end = longest_wait(out)
        other.tab.mouse.click(*at(other, robot, (begin + end) / 2))
        other.until(f"__sim.chart.row === {robot}")
        other.js(
            "__sim.connection.request({type: 'look', time: 5}).catch((e) => { "
            "window.refused = String(e); })"
        )
        other.until("window.refused")

    assert simulator.do(lambda: player.sim.tick) == tick
