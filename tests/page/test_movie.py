"""The page's "Save as movie":

the simulator makes the chosen movie, shows progress, and can be cancelled.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageSequence
from playwright.sync_api import Browser

from tests.page.pages import page
from tests.page.serving import AUDIENCE, served
from tests.page.test_hands import world
from tests.waiting import PATIENCE, wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def test_a_part_of_the_time_line_is_saved(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sim = world()
    sim.history.keep()
    sim.robots["ann"].command(v=0.2)
    sim.step(100)
    with served(sim, paused=True) as simulator, page(browser, simulator.url) as one:
        one.until("__sim.timeline.state")
        one.button("Save as movie").click()
        dialog = one.tab.get_by_role("dialog", name="Save as movie or picture")
        assert dialog.get_by_label(
            "to", exact=False
        ).first.input_value() == f"{sim.time:.1f}".removesuffix(".0")
        dialog.get_by_label("from").fill("1")
        dialog.get_by_label("to", exact=False).first.fill("3")
        dialog.get_by_label("format").select_option("webp")
        dialog.get_by_label("width").fill("320")
        one.button("Make the movie").click()
        one.tab.get_by_text("the simulator has written").wait_for()
        with Image.open(tmp_path / "botyard.webp") as movie:
            # Two seconds have one frame every 0.2 s, with both ends.
            assert movie.width <= 320 and len(list(ImageSequence.Iterator(movie))) == 11

        one.tab.reload()
        one.until(
            "window.__sim && __sim.timeline.state && __sim.world.frameVersion > 0"
        )
        one.button("Save as movie").click()
        with one.tab.expect_download() as download:
            dialog.get_by_role("button", name="Download botyard.webp").click()
        assert (
            Path(download.value.path()).read_bytes()
            == (tmp_path / "botyard.webp").read_bytes()
        )
        dialog.get_by_label("speed").fill("0.1")
        dialog.get_by_label("width").fill("1900")
        one.button("Make the movie").click()
        one.tab.get_by_role("progressbar", name="Movie").wait_for()
        one.until("__sim.session.stats.drawn > 0.3")
        one.button("Give the movie up").click()
        one.tab.get_by_text("the movie was cancelled").wait_for()
        wait(
            lambda: simulator.do(lambda: simulator.desk.control.filmer.present is None),
            PATIENCE,
        )  # type: ignore[union-attr]
        assert [path.name for path in tmp_path.iterdir()] == ["botyard.webp"]
        with page(browser, f"{simulator.base}/#token={AUDIENCE}") as other:
            other.until("__sim.timeline.state")
            assert not other.button("Save as movie").count()
            other.js(
                "__sim.connection.request({type: 'write_movie', begin: 0, end: "
                "1}).catch((e) => { window.refused = String(e); })"
            )
            other.until("(window.refused || '').includes('only watch')")
