"""Recordings by the page's buttons, by what is in the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.page.pages import page
from tests.page.serving import served
from tests.page.test_hands import world
from tests.recording.test_recorder import again, read

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def test_a_recording_is_begun_and_ended(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        one.button("Record").click()
        one.until("__sim.session.stats.recording === 'botyard.mcap'")
        begun = simulator.sim.time
        simulator.wait(lambda: simulator.sim.time > begun + 1.0)
        one.button("Record").click()
        one.tab.get_by_text(f"recorded: {tmp_path / 'botyard.mcap'}").wait_for()
        one.until("__sim.session.stats.recording === ''")
        reader = read(tmp_path / "botyard.mcap")[3]
        assert reader.is_complete
    assert again(tmp_path / "botyard.mcap")[0] >= 1


def test_what_is_kept_is_saved(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        recordings = simulator.yard.control.recordings
        assert recordings is not None
        path = simulator.do(lambda: recordings.start("last", 60.0))
        one.button("save the last 60 s").click()
        one.tab.get_by_text(f"saved: {path}").wait_for()
        assert simulator.do(lambda: recordings.present) == (path, 60.0), "it goes on"
    assert read(path)[3].is_complete
