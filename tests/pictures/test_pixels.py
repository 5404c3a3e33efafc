"""Drawing kernels against plain formulas for each pixel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ImageDraw

from botyard.pictures.frame import Frame, image_of, overlay_of, word_of, words_of
from botyard.pictures.kernels.pixels import (
    lay_over,
    mark_fields,
    tint_fields,
    to_yuv420,
)

Corners = list[tuple[float, float]]
places = st.floats(-40.0, 60.0, allow_nan=False) | st.sampled_from(
    [0.5, 3.5, -1e9, 1e9, 1e300, -1e300]
)


def winding(corners: Corners, x: float, y: float) -> int:
    """Return the winding number of a polygon about a place, clockwise as rows go down.

    Sunday, "Inclusion of a Point in a Polygon", 2001.
    """
    count = 0
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (ay <= y) != (by <= y):
            crossing = (
                ax + (y - ay) * ((bx - ax) / (by - ay))
                if ay < by
                else bx + (y - by) * ((ax - bx) / (ay - by))
            )
            if crossing <= x:
                count += 1 if ay > by else -1

    return count


@given(
    polygons=st.lists(
        st.lists(st.tuples(places, places), min_size=3, max_size=9), max_size=4
    )
)
@settings(max_examples=150)
def test_fields_are_counted_at_the_middle_of_each_pixel(
    polygons: list[Corners],
) -> None:
    height, width = 13, 17
    marks = np.zeros((height, width), np.uint8)
    begins = np.cumsum([0, *map(len, polygons)])
    turns = np.array([1 - 2 * (k % 2) for k in range(len(polygons))], np.int64)
    corners = np.array([c for p in polygons for c in p], np.float64).reshape(-1, 2)
    mark_fields(corners, begins, turns, marks)
    counts = np.cumsum(marks, axis=1, dtype=np.uint8)
    for row in range(height):
        for column in range(width):
            expected = sum(
                t * winding(p, column + 0.5, row + 0.5)
                for t, p in zip(turns.tolist(), polygons, strict=True)
            )
            # If an edge passes the centre within rounding, both colours are right.
            if all(
                abs(d) > 1e-6
                for p in polygons
                for d in distances(p, column + 0.5, row + 0.5)
            ):
                assert counts[row, column] == expected % 256, (row, column)


def distances(corners: Corners, x: float, y: float) -> list[float]:
    """Return the distances of edges from a place along its row."""
    found = []
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        if min(ay, by) - 1e-6 <= y <= max(ay, by) + 1e-6 and ay != by:
            crossing = ax + (y - ay) * ((bx - ax) / (by - ay))
            # Crossings of such large coordinates have errors that grow with them.
            size = max(abs(ax), abs(bx), 1.0) * 1e-9
            found.append(
                0.0
                if not math.isfinite(crossing) or abs(crossing - x) < size
                else crossing - x
            )

    return found


def test_a_scan_that_goes_round_the_other_way_has_the_same_field() -> None:
    angles = np.linspace(0.0, 5.0, 40)
    star = np.stack(
        [30 + (9 + 5 * np.cos(7 * angles)) * np.cos(angles), 20 - 12 * np.sin(angles)],
        axis=1,
    )
    both = []
    for turn, corners in ((-1, star), (1, star[::-1])):
        marks, words = (
            np.zeros((40, 60), np.uint8),
            np.full((40, 60), word_of((255, 255, 255, 255)), np.uint32),
        )
        around = np.ascontiguousarray(np.vstack([[30.0, 20.0], corners]))
        mark_fields(around, np.array([0, len(around)]), np.array([turn]), marks)
        opacities = np.array([0, 128, *[256] * 254])
        tint_fields(
            marks, np.array([0, 40]), word_of((10, 20, 30, 7)), opacities, words
        )
        assert not marks.any(), "ready for the next picture"
        both.append(words)

    assert (both[0] == both[1]).all()
    half, none = word_of((133, 138, 143, 255)), word_of((255, 255, 255, 255))
    assert set(np.unique(both[0]).tolist()) == {half, none}
    assert 200 < (both[0] == half).sum() < 500


def blended(below: Any, above: Any, opacity: Any) -> Any:
    return (
        np.asarray(below, np.float64) * (1 - opacity)
        + np.asarray(above, np.float64) * opacity
    )


@given(
    seed=st.integers(0, 2**32),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    rim=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_what_is_laid_over_is_blended_channel_by_channel(
    seed: int, size: tuple[int, int], rim: tuple[int, int]
) -> None:
    rng = np.random.default_rng(seed)
    below = rng.integers(0, 256, (*size, 4), dtype=np.uint8)
    below[..., 3] = 255
    above = rng.integers(0, 256, (size[0] + 3, size[1] + 3, 4), dtype=np.uint8)
    above[..., 3] = rng.choice([0, 0, 1, 127, 128, 254, 255], above.shape[:2])
    above[above[..., 3] == 0] = 0
    words = below.view(np.uint32)[..., 0].copy()
    lay_over(
        *overlay_of(np.ascontiguousarray(above.view(np.uint32)[..., 0])),
        rim[1],
        rim[0],
        words,
    )
    part = above[rim[0] : rim[0] + size[0], rim[1] : rim[1] + size[1]]
    found = words[..., None].view(np.uint8)
    expected = blended(below[..., :3], part[..., :3], part[..., 3:] / 255)
    assert np.abs(found[..., :3] - expected).max() <= 1.5
    assert (found[..., 3] >= 254).all()
    solid = part[..., 3] == 255
    assert (found[solid] == part[solid]).all()
    hidden = part[..., 3] == 0
    assert (found[hidden] == below[hidden]).all()


@pytest.mark.parametrize("size", [(2, 2), (5, 7), (6, 4), (1, 1)])
def test_colours_of_video_are_those_of_bt_601(size: tuple[int, int]) -> None:
    height, width = size
    rgb = np.random.default_rng(3).integers(0, 256, (height, width, 4), dtype=np.uint8)
    up, wide = (height + 1) // 2, (width + 1) // 2
    planes = [
        np.zeros((2 * up, 2 * wide + 3), np.uint8),
        *(np.zeros((up, wide + 1), np.uint8) for _ in range(2)),
    ]
    to_yuv420(rgb.view(np.uint32)[..., 0].copy(), *planes)
    r, g, b = np.moveaxis(
        np.pad(rgb, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")[..., :3]
        / 255,
        2,
        0,
    )
    luma = 0.299 * r + 0.587 * g + 0.114 * b
    assert np.abs(planes[0][:, : 2 * wide] - (16 + 219 * luma)).max() <= 0.51
    for plane, color, share in ((planes[1], b, 0.114), (planes[2], r, 0.299)):
        whole = 128 + 224 * (color - luma) / (1 - share) / 2
        mean = whole.reshape(up, 2, wide, 2).mean(axis=(1, 3))
        assert np.abs(plane[:, :wide] - mean).max() <= 0.51

    assert not planes[0][:, 2 * wide :].any(), "beyond a line nothing is written"


def test_pillow_and_kernels_draw_on_the_same_pixels() -> None:
    frame = Frame(5, 4)
    ImageDraw.Draw(frame.image).point((3, 2), fill=(1, 2, 3, 255))
    frame.image.paste((9, 8, 7, 255), (0, 0, 1, 1))
    assert frame.words[2, 3] == word_of((1, 2, 3, 0))
    frame.words[0, 1] = word_of((4, 5, 6, 0))
    assert [frame.image.getpixel(at) for at in ((0, 0), (1, 0))] == [
        (9, 8, 7, 255),
        (4, 5, 6, 255),
    ]
    assert (words_of(frame.image) == frame.words).all()
    assert image_of(words_of(frame.image)) == frame.image
