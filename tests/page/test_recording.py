"""Recordings made by the page's buttons, checked by the content of the files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from playwright.sync_api import Browser, expect

from botyard.control import StartRecording
from botyard.recording import own_channels
from botyard.recording.reader import Message
from tests.page.pages import PageObject, page
from tests.page.serving import Served, served
from tests.page.test_hands import world
from tests.recording.test_recorder import again, read, said

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

CHOOSE = "Choose what is recorded …"


def test_a_recording_is_begun_and_ended(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        one.button("Record").click()
        one.until("__sim.session.stats.recording === 'botyard.mcap'")
        begun = simulator.sim.time
        simulator.wait(lambda: simulator.sim.time > begun + 1.0)
        one.button("Record").click()
        one.tab.get_by_text(f"recorded: {tmp_path / 'botyard.mcap'}").wait_for()
        with one.tab.expect_download() as download:
            one.tab.locator(".toast").get_by_role("button", name="Download").click()
        assert download.value.suggested_filename == "botyard.mcap"
        assert (
            Path(download.value.path()).read_bytes()
            == (tmp_path / "botyard.mcap").read_bytes()
        )
        one.until("__sim.session.stats.recording === ''")
        reader = read(tmp_path / "botyard.mcap")[3]
        assert reader.is_complete

    assert again(tmp_path / "botyard.mcap")[0] >= 1


def test_what_is_kept_is_saved(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        recordings = simulator.robot_servers.control.recordings
        assert recordings is not None
        path = simulator.do(
            lambda: recordings.start(StartRecording(recording="last", last=60.0))
        )
        one.button("save the last 60 s").click()
        one.tab.get_by_text(f"saved: {path}").wait_for()
        assert simulator.do(lambda: recordings.present) == (path, 60.0), "it goes on"

    assert read(path)[3].is_complete


def recorded(simulator: Served, one: PageObject, path: Path) -> set[str]:
    """Let a started recording go on for a while and end it.

    Returns the topics in its file, without those that repeat the run.
    """
    one.until(f"__sim.session.stats.recording === '{path.name}'")
    assert one.entry("File", CHOOSE).is_disabled()
    one.tab.keyboard.press("Escape")
    begun = simulator.do(lambda: simulator.sim.time)
    simulator.wait(lambda: simulator.sim.time > begun + 1.5)
    one.button("Record").click()
    one.tab.get_by_text(f"recorded: {path}").wait_for()
    one.until("__sim.session.stats.recording === ''")
    return {m.channel.topic for m in read(path)[0]} - own_channels.TYPES.keys()


def test_topics_and_robots_are_chosen(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sim = world()
    # Used as a pattern, this name would also match bob.
    sim.add_robot(
        "p3dx",
        "b?b",
        pose=(3.0, 6.0, 0.0),
    )
    sim.robots["ann"].laser.subscribe("test")
    with served(sim) as simulator, page(browser, simulator.url) as one:
        dialog = one.tab.get_by_role("dialog", name="Record the run")
        one.button("Record").click()
        usual = recorded(simulator, one, tmp_path / "botyard.mcap")
        assert {
            "/ann/base_scan",
            "/ann/odom",
            "/bob/odom",
            "/b_b/odom",
            "/tf",
            "/map",
        } <= usual
        assert "/b_b/base_scan" not in usual, "nobody reads it"

        one.entry("File", CHOOSE).click()
        dialog.get_by_role("radio", name="Without scans").check()
        one.button("Start recording").click()
        dialog.wait_for(state="detached")
        assert recorded(simulator, one, tmp_path / "botyard-2.mcap") == usual - {
            "/ann/base_scan"
        }

        one.entry("File", CHOOSE).click()
        dialog.get_by_role("radio", name="All topics").check()
        one.button("Start recording").click()
        every = recorded(simulator, one, tmp_path / "botyard-3.mcap")
        assert usual | {"/b_b/base_scan", "/b_b/sonar", "/bob/sonar"} <= every


def test_the_last_minutes_are_kept_and_saved(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        dialog = one.tab.get_by_role("dialog", name="Record the run")
        one.entry("File", CHOOSE).click()
        dialog.get_by_role("radio", name="Keep the last").check()
        dialog.get_by_role("spinbutton", name="Minutes that are kept").fill("0.5")
        one.button("Start recording").click()
        dialog.wait_for(state="detached")
        one.until("__sim.session.stats.kept === 30")
        assert not list(tmp_path.glob("*.mcap")), "it is in memory"
        one.button("save the last 30 s").click()
        one.tab.get_by_text("saved: ").wait_for()
        (path,) = tmp_path.glob("*.mcap")
        assert read(path)[0]
        one.button("Record").click()
        one.until("__sim.session.stats.recording === ''")


def test_rates_are_chosen(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        dialog = one.tab.get_by_role("dialog", name="Record the run")
        one.entry("File", CHOOSE).click()
        dialog.get_by_role("radio", name="These topics").check()
        dialog.get_by_role("textbox", name="Patterns of topics").fill(
            "/ann/odom */odom, /tf /tf"
        )
        rates = dialog.get_by_role("group", name="Rates").get_by_role("spinbutton")
        expect(rates).to_have_count(3)
        dialog.get_by_role("spinbutton", name="Rate of /ann/odom").fill("-1")
        expect(one.button("Start recording")).to_be_disabled()
        dialog.get_by_role("spinbutton", name="Rate of /ann/odom").fill("0")
        dialog.get_by_role("spinbutton", name="Rate of */odom").fill("5")
        one.button("Start recording").click()
        dialog.wait_for(state="detached")
        recorded(simulator, one, tmp_path / "botyard.mcap")
        messages = read(tmp_path / "botyard.mcap")[0]
        # Odometry is sampled after each step of 0.05 s, bob's five times a second,
        # transforms three times as often as usual.
        assert steps(messages, "/ann/odom") == {50_000_000}
        assert steps(messages, "/bob/odom") == {200_000_000}
        assert min(steps(messages, "/tf")) >= 300_000_000

        one.entry("File", CHOOSE).click()
        dialog.get_by_role("spinbutton", name="Rate", exact=True).fill("0")
        one.button("Start recording").click()
        dialog.wait_for(state="detached")
        recorded(simulator, one, tmp_path / "botyard-2.mcap")
        messages = read(tmp_path / "botyard-2.mcap")[0]
        assert steps(messages, "/tf") == steps(messages, "/bob/odom") == {50_000_000}


def steps(messages: list[Message], topic: str) -> set[int]:
    """Return the intervals between messages of a topic, ns.

    The first one is left out, because it comes when the recording starts.
    """
    times = [m.time for m in messages if m.channel.topic == topic][1:]
    return {after - before for before, after in pairwise(times)}


def test_what_is_kept_is_saved_when_a_robot_stalls(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(world()) as simulator, page(browser, simulator.url) as one:
        dialog = one.tab.get_by_role("dialog", name="Record the run")
        one.entry("File", CHOOSE).click()
        box = dialog.get_by_role(
            "checkbox", name="Also save them two seconds after a robot stalls"
        )
        expect(box).to_be_disabled()
        dialog.get_by_role("radio", name="Keep the last").check()
        box.check()
        one.button("Start recording").click()
        dialog.wait_for(state="detached")
        one.until("__sim.session.stats.kept === 600")
        ann = simulator.sim.robots["ann"]
        # Let ann drive against the wall.
        simulator.do(lambda: (ann.command.set_pose(15.0, 3.0), ann.command(v=0.5)))
        simulator.wait(lambda: (tmp_path / "botyard.mcap").exists())
        one.button("Record").click()
        one.until("__sim.session.stats.recording === ''")

    messages, *_, reader = read(tmp_path / "botyard.mcap")
    assert reader.is_complete and any(
        e["event"] == "stall" and e["robots"] == ["ann"] for e in said(messages)
    )


def test_the_choice_is_made_by_keys_and_wrong_patterns_are_told(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sim = world()
    sim.add_robot("p3dx", "b?b", pose=(3.0, 6.0, 0.0))
    with served(sim) as simulator, page(browser, simulator.url) as one:
        keyboard, dialog = (
            one.tab.keyboard,
            one.tab.get_by_role("dialog", name="Record the run"),
        )
        opener, choice = (
            one.button("File"),
            one.tab.get_by_role("menuitem", name=CHOOSE),
        )
        opener.focus()
        keyboard.press("ArrowDown")
        keyboard.press("c")
        expect(choice).to_be_focused()
        keyboard.press("Enter")
        dialog.wait_for()
        keyboard.press("Escape")
        dialog.wait_for(state="detached")
        opener.focus()
        keyboard.press("ArrowDown")
        keyboard.press("c")
        keyboard.press("Enter")
        dialog.get_by_role("group", name="Topics").get_by_role("radio").first.focus()
        for _ in range(3):
            keyboard.press("ArrowDown")
        keyboard.press("Tab")
        patterns = dialog.get_by_role("textbox", name="Patterns of topics")
        expect(patterns).to_be_focused()
        patterns.fill("")
        expect(one.button("Start recording")).to_be_disabled()
        expect(dialog.get_by_text("no topics")).to_be_visible()
        patterns.fill("/tf odom")
        keyboard.press("Enter")
        one.tab.get_by_text(
            "start with / or a wildcard, such as */odom, found 'odom'"
        ).wait_for()
        assert (
            dialog.is_visible()
            and simulator.do(lambda: simulator.robot_servers.control.recordings.present)
            is None
        )  # type: ignore[union-attr]
        patterns.fill("/tf */odom")
        dialog.get_by_role("radio", name="All robots").focus()
        keyboard.press("ArrowDown")
        expect(dialog.get_by_text("no robots")).to_be_visible()
        keyboard.press("Tab")
        boxes = dialog.get_by_role("group", name="These robots").get_by_role("checkbox")
        expect(boxes).to_have_count(3)
        expect(boxes.first).to_be_focused()
        dialog.get_by_role("checkbox", name="b?b").focus()
        keyboard.press("Space")
        keyboard.press("Enter")
        dialog.wait_for(state="detached")
        path = tmp_path / "botyard.mcap"
        assert recorded(simulator, one, path) == {"/tf", "/b_b/odom"}
        assert list(tmp_path.iterdir()) == [path], "what was refused has left nothing"
        frames = set()
        with path.open("rb") as file:
            reader = make_reader(file, decoder_factories=[DecoderFactory()])
            for *_, message in reader.iter_decoded_messages(topics=["/tf"]):
                frames.update(
                    transform.child_frame_id for transform in message.transforms
                )

        assert frames and all(name.startswith("b_b/") for name in frames), frames
