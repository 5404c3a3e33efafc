"""Checks find the first step with different columns, and the differences, as a naive
comparison of all values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.errors import RecordingError
from botyard.recording import checks
from botyard.recording.checks import FirstDifference, Kept, decode, encode
from botyard.recording.comparing import Difference, Layout

POSE, MODE = np.dtype("<f8"), np.dtype("u1")
values = st.floats(width=64) | st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, 2.0])


def layout(bodies: int) -> Layout:
    """Return a layout of two columns."""
    return Layout(
        (("mode_x", MODE, (bodies,)), ("pose", POSE, (bodies, 3))),
        {"": [f"r{k}" for k in range(bodies)]},
    )


def columns(modes: Any, poses: Any) -> bytes:
    data = np.asarray(modes, MODE).tobytes()
    return data + bytes(-len(data) % 8) + np.asarray(poses, POSE).tobytes()


def compared(
    ticks: list[int], recorded: list[bytes], again: list[bytes], bodies: int
) -> tuple[FirstDifference | None, Kept]:
    kept = Kept(100_000)
    for tick, one in zip(ticks, again, strict=True):
        kept.add(tick, one, layout(bodies))
    found = (kept.compare(decode(data)) for data in encode(ticks, recorded))
    return next((one for one in found if one is not None), None), kept


@given(
    gaps=st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=1, max_size=9),
    bodies=st.integers(1, 70),
    seed=st.integers(0, 2**32),
    pokes=st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 69), st.integers(0, 3), values),
        max_size=3,
    ),
)
def test_the_first_difference_is_found(
    gaps: list[int], bodies: int, seed: int, pokes: list[tuple[int, int, int, float]]
) -> None:
    rng, ticks = np.random.default_rng(seed), np.cumsum([7, *gaps]).tolist()
    modes, poses = (
        rng.integers(0, 3, (len(ticks), bodies)),
        rng.normal(size=(len(ticks), bodies, 3)),
    )
    again = [columns(m, p) for m, p in zip(modes, poses, strict=True)]
    expected = dict[int, set[tuple[str, str]]]()
    for step, body, axis, value in pokes:
        step, body = step % len(ticks), body % bodies
        if axis == 3:
            modes[step, body] = 3
        else:
            poses[step, body, axis] = value

        expected.setdefault(step, set()).add(
            (f"r{body}", "mode_x" if axis == 3 else f"pose.{'xya'[axis]}")
        )

    recorded = [columns(m, p) for m, p in zip(modes, poses, strict=True)]
    apart, kept = compared(ticks, recorded, again, bodies)
    first = min(expected, default=None)
    if first is None:
        assert apart is None and kept.compared == len(ticks)
        return

    assert apart is not None
    assert (apart.after, apart.tick) == (
        ticks[first - 1] if first else None,
        ticks[first],
    )
    said = {(one.body, one.column) for one in apart.found}
    assert said <= expected[first] and (said == expected[first] or not apart.is_all)
    for one in apart.found:
        same = dict(
            zip(("mode_x", "pose.x", "pose.y", "pose.a"), range(-1, 3), strict=True)
        )[one.column]
        row = int(one.body[1:])
        value = modes[first, row] if same < 0 else poses[first, row, same]
        assert (
            np.asarray(one.recorded, POSE).tobytes()
            == np.asarray(value, POSE).tobytes()
        )

    assert len(expected[first]) > 1 or apart.is_all


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_each_bit_that_differs_alone_is_told(value: float) -> None:
    poses = np.full((40, 3), value)
    for row, bit in ((row, bit) for row in range(0, 40, 3) for bit in range(64)):
        other = poses.copy()
        other.view(np.uint64)[row, bit % 3] ^= np.uint64(1 << bit)
        modes = np.zeros(40)
        apart, _ = compared([1], [columns(modes, other)], [columns(modes, poses)], 40)
        assert apart is not None and apart.is_all, (row, bit)
        assert [(one.body, one.column) for one in apart.found] == [
            (f"r{row}", f"pose.{'xya'[bit % 3]}")
        ]


@pytest.mark.parametrize("share", [1.0, 0.3, 0.01])
def test_of_many_that_differ_some_are_told(share: float) -> None:
    told = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        modes, poses = np.zeros(1000), rng.normal(size=(1000, 3))
        other = np.where(
            rng.random((1000, 3)) < share, np.nextafter(poses, np.inf), poses
        )
        apart, _ = compared([1], [columns(modes, other)], [columns(modes, poses)], 1000)
        assert apart is not None and not apart.is_all
        for one in apart.found:
            row, axis = int(one.body[1:]), "xya".index(one.column[-1])
            assert (one.recorded, one.again) == (other[row, axis], poses[row, axis])

        told.append(bool(apart.found))

    assert sum(told) >= 50


@given(count=st.integers(1, 3000))
@settings(max_examples=40)
def test_each_word_is_in_one_cell_and_cells_get_smaller(count: int) -> None:
    cells = checks.Cells(count)
    assert sorted(cells.order.tolist()) == list(range(count))
    sizes = np.diff(np.append(cells.begins, count))
    assert (sizes > 0).all() and len(sizes) <= 3 * count.bit_length()
    words = np.arange(2 * count, dtype=np.uint64).reshape(2, count)
    sums, hashes = cells.sums(words)
    assert sums.shape == hashes.shape == (2, len(sizes))
    assert sums[1].sum() == words[1].sum()


def test_other_rows_are_a_difference() -> None:
    two, three = columns([0] * 2, np.zeros((2, 3))), columns([0] * 3, np.zeros((3, 3)))
    apart, _ = compared([1, 2], [two, three], [two, two], 2)
    assert apart == FirstDifference(1, 2, (), is_all=False)


def test_of_short_steps_some_are_left_out() -> None:
    assert [checks.every(us) for us in (1_000, 3_000, 10_000, 20_000, 100_000)] == [
        10,
        4,
        1,
        1,
        1,
    ]
    assert [Kept(3_000).wants(tick) for tick in range(9)] == [
        True,
        False,
        False,
        False,
    ] * 2 + [True]


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_KEPT_BYTES", 500)
    steps = [columns([k], np.full((1, 3), float(k))) for k in range(50)]
    apart, kept = compared(list(range(50)), steps, steps, 1)
    assert apart is None and kept.compared == 500 // 32


def test_a_column_is_named_with_its_row() -> None:
    apart, _ = compared(
        [4], [columns([1, 2], np.zeros((2, 3)))], [columns([1, 0], np.zeros((2, 3)))], 2
    )
    assert apart == FirstDifference(
        None, 4, (Difference("r1", "mode_x", 2, 0),), is_all=True
    )


@given(
    st.binary(max_size=200)
    | st.builds(lambda head: head + bytes(48), st.binary(min_size=20, max_size=20))
)
def test_foreign_bytes_are_refused_or_small(data: bytes) -> None:
    try:
        found = decode(data)
    except RecordingError:
        return

    assert found.sums.nbytes + found.hashes.nbytes <= len(data) and len(
        found.ticks
    ) == len(found.sums)
    kept = Kept(100_000)
    kept.add(found.ticks[0], bytes(32), layout(1))
    kept.compare(found)
