"""Checks of poses find the first step and body that differ, and the recorded pose, as a naive comparison of all poses does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import RecordingError
from botyard.recording import checks
from botyard.recording.checks import Apart, Kept, Poses, decode, encode

values = st.floats(allow_nan=False, width=64) | st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52])


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[int], list[Poses]]:
    """Steps, some of which are missing, and their poses; now and then bodies come or go."""
    gaps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=1, max_size=12))
    ticks = np.cumsum([draw(st.integers(0, 100)), *gaps]).tolist()
    bodies = draw(st.integers(0, 4))
    poses = []
    for _ in ticks:
        bodies = draw(st.sampled_from([bodies] * 5 + [bodies + 1]))
        poses.append(np.array(draw(st.lists(values, min_size=3 * bodies, max_size=3 * bodies))).reshape(bodies, 3))
    return ticks, poses


def names(poses: Poses) -> dict[str, int]:
    return {str(row): row for row in range(len(poses))}


def compared(kept: Kept, ticks: list[int], recorded: list[Poses]) -> Apart | None:
    found = (kept.compare(decode(data)) for data in encode(ticks, recorded))
    return next((one for one in found if one is not None), None)


@given(runs(), st.data())
def test_the_first_difference_is_found(run: tuple[list[int], list[Poses]], data: st.DataObject) -> None:
    ticks, again = run
    recorded = [poses.copy() for poses in again]
    for _ in range(data.draw(st.integers(0, 3))):
        poses = data.draw(st.sampled_from(recorded))
        if poses.size:
            poses.flat[data.draw(st.integers(0, poses.size - 1))] = data.draw(values)
    kept = Kept(100_000)
    for tick, poses in zip(ticks, again, strict=True):
        kept.add(tick, poses, names(poses))
    found = compared(kept, ticks, recorded)
    bits = [(a.view(np.uint64) != b.view(np.uint64)).any(axis=1) for a, b in zip(recorded, again, strict=True)]
    first = next((i for i, rows in enumerate(bits) if rows.any()), None)
    if first is None:
        assert found is None and kept.compared == len(ticks)
        return
    assert found is not None and found.tick == ticks[first]
    assert found.after == (ticks[first - 1] if first else None)
    rows = np.flatnonzero(bits[first]).tolist()
    assert set(map(int, found.bodies)) <= set(rows)  # one in 256 is passed over: its byte is the same by chance
    if len(rows) == 1 == len(found.bodies):
        assert found.recorded is not None and found.recorded.tobytes() == recorded[first][rows[0]].tobytes()


def test_a_body_that_differs_is_named_nearly_always() -> None:
    again = np.random.default_rng(1).normal(size=(20_000, 3))
    recorded = np.nextafter(again, np.inf)
    same = np.count_nonzero(checks.marks_of(again) == checks.marks_of(recorded))
    assert same < 2 * len(again) / 256


def test_other_bodies_are_a_difference() -> None:
    kept = Kept(100_000)
    for tick in (1, 2):
        kept.add(tick, np.zeros((2, 3)), {"0": 0, "1": 1})
    found = compared(kept, [1, 2], [np.zeros((2, 3)), np.zeros((3, 3))])
    assert found is not None and (found.after, found.tick, found.bodies, found.recorded) == (1, 2, (), None)


def test_of_short_steps_some_are_left_out() -> None:
    assert [checks.every(us) for us in (1_000, 3_000, 10_000, 20_000, 100_000)] == [10, 4, 1, 1, 1]


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_KEPT_BYTES", 480)
    kept, poses = Kept(100_000), [np.full((2, 3), float(k)) for k in range(50)]
    for tick, one in enumerate(poses):
        kept.add(tick, one, names(one))
    assert compared(kept, list(range(50)), poses) is None and kept.compared == 10


@given(st.binary(max_size=200) | st.builds(lambda head: head + bytes(40), st.binary(min_size=20, max_size=20)))
def test_foreign_bytes_are_refused_or_small(data: bytes) -> None:
    try:
        found = decode(data)
    except RecordingError:
        return
    assert found.sums.nbytes + found.marks.nbytes <= len(data) and len(found.ticks) == len(found.sums)
