"""The chart of a recorded run shows exactly its events, and ignores inconsistent ones."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.recording.own_channels import pack_json
from botyard.recording.track import Track, read_track
from botyard.sim.simulation import Simulation
from botyard.traffic.outcome import KINDS, Outcome
from botyard.traffic.recorded import BEGIN, END, write_recording
from botyard.traffic.recordedchart import MAX_OCCUPIED, MAX_ROBOTS, recorded_chart
from tests.traffic.test_recorded import run

Bars = dict[int, list[tuple[float, float]]]


def waits_of(out: Outcome) -> Bars:
    """Return for each robot the times at which it stood still before its end:

    a naive twin.
    """
    found, since = defaultdict(list), dict[int, float]()
    for row in out.events.rows():
        i, t = row["robot"], row["t"]
        has_finished = out.robots.done[i] and t > out.robots.finished[i] - 1e-6
        if row["kind"] == "stop" and not has_finished:
            since[i] = t
        elif row["kind"] == "start" and i in since:
            found[i].append((since.pop(i), t))

    for i, t in since.items():
        found[i].append((t, out.time))
    return {i: [bar for bar in bars if bar[1] > bar[0]] for i, bars in found.items()}


@pytest.mark.parametrize(
    ("family", "name"), [("crossings", "bankers"), ("deadlock", "fcfs")]
)
def test_bars_are_those_of_the_run(family: str, name: str, tmp_path: Path) -> None:
    out, path = run(family, 4, name), tmp_path / "run.mcap"
    write_recording(out, path)
    found = recorded_chart(read_track(path))
    assert found is not None
    chart = found.chart
    assert (found.names, chart.title) == (
        tuple(f"traffic{i}" for i in range(4)),
        out.describe(),
    )
    assert chart.end == pytest.approx(out.time)
    waits = defaultdict(list)
    for i, begin, end in chart.waits:
        waits[i].append((begin, end))
    wanted = {i: bars for i, bars in waits_of(out).items() if bars}
    assert waits.keys() == wanted.keys()
    for i, bars in wanted.items():
        assert np.array(waits[i]) == pytest.approx(np.array(bars))
    begins, ends = out.occupancy()
    for i, sector, begin, end in chart.sectors:
        g = int(out.task.first[i]) + sector
        assert begin == pytest.approx(begins[g]) and (
            end == pytest.approx(ends[g]) or end == chart.end
        )

    asked = [
        (row["robot"], row["t"])
        for row in out.events.rows()
        if row["kind"] == "critical"
    ]
    assert chart.asks == asked
    known = {(i, begin) for i, begin, _ in chart.waits}
    assert chart.holders and all(
        (i, t) in known and i not in others for i, t, others in chart.holders
    )
    listed = {(a, b) for a, _, b, _ in out.task.listed.tolist()}
    assert all(
        (i, other) in listed or (other, i) in listed
        for i, _, others in chart.holders
        for other in others
    )
    # If robots still wait, the run ended in a deadlock and they have not moved since they stopped.
    if out.waiting:
        last = {i: others for i, _, others in chart.holders}
        assert {i: last[i] for i in out.waiting} == {
            i: others for i, (_, others) in out.waiting.items()
        }

    granted = {
        (r["robot"], r["sector"]): r["t"]
        for r in out.events.rows()
        if r["kind"] == "grant"
    }
    assert chart.grants and all(
        begin == granted[i, sector] for i, sector, begin, _ in chart.grants
    )


def test_recordings_without_traffic_have_none(tmp_path: Path) -> None:
    sim = Simulation()
    with sim.record(tmp_path / "run.mcap") as recording:
        recording.event("grant", "of a program", robot="bob")
        sim.step(3)

    assert recorded_chart(read_track(tmp_path / "run.mcap")) is None


values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.integers(0, 5)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
events = st.dictionaries(
    st.sampled_from(
        [
            "event",
            "t",
            "robot",
            "sector",
            "other",
            "text",
            "robots",
            "occupied",
            "waits_for",
        ]
    ),
    st.sampled_from([*KINDS, BEGIN, END]) | values,
)


def track_of(said: list[dict[str, Any]]) -> Track:
    return cast(
        Track, SimpleNamespace(said=[pack_json(one) for one in said], end=50, step=0.1)
    )


@given(st.lists(events, max_size=20))
def test_events_of_strangers_are_left_out(said: list[dict[str, Any]]) -> None:
    """Nothing raises; the chart has only known robots and valid times."""
    found = recorded_chart(track_of(said))
    if found is None:
        return
    chart = found.chart
    assert 0 < len(found.names) <= MAX_ROBOTS
    for bar in (*chart.goes, *chart.waits, *chart.sectors, *chart.grants):
        assert bar[0] < len(found.names) and 0.0 <= bar[-2] <= bar[-1] <= chart.end
    assert all(
        other < len(found.names) for _, _, others in chart.holders for other in others
    )


def test_what_an_event_costs_is_limited() -> None:
    said: list[dict[str, Any]] = [
        {"event": BEGIN, "robots": ["a"], "occupied": [[0, 10**5]], "text": ""},
        {"event": "enter", "robot": 0, "sector": 1, "t": 1.0},
        {"event": "enter", "robot": 10**9, "sector": 1, "t": 1.0},
    ]
    found = recorded_chart(track_of(said))
    assert (
        found is not None
        and found.names == ("a",)
        and len(found.chart.sectors) <= MAX_OCCUPIED + 1
    )
