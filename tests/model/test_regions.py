"""Overlap of an outline with a region, compared with a fine net of points of both."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.geometry import Outline, Pose
from botyard.model.regions import Disc, Region, overlaps, placed, reach
from botyard.model.scene import in_polygon

L: Outline = ((0.0, 0.0), (3.0, 0.0), (3.0, 1.0), (1.0, 1.0), (1.0, 3.0), (0.0, 3.0))
"""A concave outline."""
numbers = st.integers(-40, 40).map(lambda k: k / 10.0)
discs = st.builds(Disc, numbers, numbers, st.integers(1, 30).map(lambda k: k / 10.0))
boxes = st.tuples(numbers, numbers, st.integers(1, 30), st.integers(1, 30)).map(
    lambda b: (
        (b[0], b[1]),
        (b[0] + b[2] / 10, b[1]),
        (b[0] + b[2] / 10, b[1] + b[3] / 10),
        (b[0], b[1] + b[3] / 10),
    )
)
poses = st.builds(Pose, numbers, numbers, st.floats(-3.0, 3.0))
STEP = 0.02


def is_in(region: Region, x: float, y: float, grown: float = 0.0) -> bool:
    if isinstance(region, Disc):
        return math.hypot(x - region.x, y - region.y) <= region.radius + grown
    x0, y0, x1, y1 = reach(region)
    return x0 - grown <= x <= x1 + grown and y0 - grown <= y <= y1 + grown


def samples(outline: Outline) -> list[tuple[float, float]]:
    """Return points of its edges at most `STEP` apart."""
    found = []
    for (x0, y0), (x1, y1) in zip(outline, outline[1:] + outline[:1], strict=True):
        n = math.ceil(math.hypot(x1 - x0, y1 - y0) / STEP)
        found += [(x0 + (x1 - x0) * k / n, y0 + (y1 - y0) * k / n) for k in range(n)]

    return found


@given(st.one_of(discs, boxes), poses)
def test_regions_overlap_where_they_have_points_in_common(
    region: Region, pose: Pose
) -> None:
    """Cases within `STEP` of contact are left out, because samples cannot decide them."""
    outline = placed(L, pose)
    x0, y0, x1, y1 = reach(region)
    is_around = in_polygon(outline, (x0 + x1) / 2, (y0 + y1) / 2)
    edge = samples(outline)
    if is_around or any(is_in(region, x, y) for x, y in edge):
        assert overlaps(region, outline)
    elif not any(is_in(region, x, y, STEP) for x, y in edge):
        assert not overlaps(region, outline)


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        (Disc(2.0, 2.0, 0.9), False),
        (Disc(2.0, 2.0, 1.0), True),
        (Disc(0.5, 0.5, 0.0), True),
        (Disc(9.0, 9.0, 20.0), True),
        (((1.5, 1.5), (2.5, 1.5), (2.5, 2.5), (1.5, 2.5)), False),
        (((-5.0, -5.0), (9.0, -5.0), (9.0, 9.0), (-5.0, 9.0)), True),
        (((0.2, 0.2), (0.4, 0.2), (0.4, 0.4)), True),
        (((3.0, 1.0), (4.0, 1.0), (4.0, 2.0)), True),
        (((2.0, 2.0), (1.0, 0.5)), True),
        (((2.0, 2.0), (3.0, 2.0)), False),
        (((0.5, 0.5),), True),
        (((2.0, 2.0),), False),
        (((3.0, 0.5),), True),
        (((4.0, 0.0), (5.0, 0.0)), False),
    ],
)
def test_concave_touching_and_inside(region: Region, expected: bool) -> None:
    assert overlaps(region, L) is expected
