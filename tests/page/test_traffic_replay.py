"""The page that plays a traffic run, in a real browser:

the shown run equals the recorded one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from botyard.errors import WorldError
from botyard.traffic.engine import Traffic
from botyard.traffic.generate import generate
from botyard.traffic.motion import Path2, motions
from botyard.traffic.outcome import Outcome
from botyard.traffic.replay import lanes, replay_data, write_replay
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.registry import find_supervisor
from tests.traffic.tasks import random_task
from tests.waiting import PATIENCE


def outcome(
    family: str = "deadlock", supervisor: str = "fcfs", **rules: bool
) -> Outcome:
    return Traffic(
        generate(family, 4), find_supervisor(supervisor), Rules(**rules)
    ).run()


def test_who_waits_for_whom_and_when() -> None:
    out = outcome()
    data = replay_data(out)
    assert (
        data["title"]
        == "deadlock-4-1: deadlock at 12.167 s: robots 0 → 1 → 2 → 3 → 0 wait for each other"
    )
    for i, robot in enumerate(data["robots"]):
        (begin, end, others) = robot["waits"][-1]
        assert others == [(i + 1) % 4]
        assert begin == pytest.approx(11.083333)
        assert end == out.time
        assert robot["inside"][-1][2] == 3

    done = replay_data(outcome(supervisor="bankers", leaves=True))
    for robot in done["robots"]:
        assert robot["gone"]
        assert [s for _, _, s in robot["inside"]] == list(range(9))
        assert [s for _, _, s in robot["held"]] == list(range(1, 9))
        assert all(a <= b for a, b, _ in robot["inside"] + robot["held"])
        assert all(b <= robot["finished"] for _, b, _ in robot["waits"])


def test_paths_that_are_not_known_are_drawn_side_by_side() -> None:
    task = random_task(2)
    drawn = lanes(task)
    assert all(
        Path2(p).length > v.ends[-1] for p, v in zip(drawn, task.vehicles, strict=True)
    )
    assert len({p[0, 1] for p in drawn}) == len(task)


@pytest.mark.peer
@pytest.mark.xdist_group("browser")
def test_it_plays_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    out = outcome("warehouse", "bankers")
    write_replay(out, tmp_path / "run.html")
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    errors: list[str] = []
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.goto((tmp_path / "run.html").as_uri())
    assert page.title() == f"warehouse-4-1: {out.describe()}"
    for t in (0.0, 3.3, 17.0, out.time):
        page.evaluate(f"replay.at({t})")
        assert page.locator("#clock").inner_text() == f"{t:.1f} of {out.time:.1f} s"
        for i, motion in enumerate(motions(out)):
            place = float(motion.place(np.array([t]))[0])
            assert page.evaluate(f"replay.place({i}, {t})") == pytest.approx(
                place, abs=1e-3
            )
            x, y = Path2(lanes(out.task)[i]).at(np.array([place]))[0]
            assert page.evaluate(
                f"replay.point({i}, replay.place({i}, {t}))"
            ) == pytest.approx([x, y], abs=1e-3)

    page.evaluate("replay.at(0)")
    page.locator("#speed").select_option("50")
    page.get_by_role("button", name="Play").click()
    # The replay pauses at its end.
    page.get_by_role("button", name="Play").wait_for(timeout=1000 * PATIENCE)
    assert page.locator("#clock").inner_text().startswith(f"{out.time:.1f} of")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#clock").inner_text().startswith(f"{out.time - 1:.1f} of")
    page.close()
    assert errors == []


def test_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="cannot be written"):
        write_replay(outcome(), tmp_path / "no" / "run.html")
    silent = Traffic(generate("star", 3), find_supervisor("fcfs"), log=False).run()
    with pytest.raises(WorldError, match="events were kept"):
        write_replay(silent, tmp_path / "run.html")
