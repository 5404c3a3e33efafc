"""SVG drawings against Chromium's picture of them."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from botyard.formats.base import Options, read_source
from botyard.formats.registry import read_world
from tests.formats.comparing import Canvas, Mask, check_same, drawn

WIDTH, HEIGHT = 400, 300
DENSITY = 2
"""Pixels of the picture for one of the drawing."""
OUTLINES = """path, rect, circle, ellipse, line, polyline, polygon {
  fill: none !important; stroke: #000 !important; stroke-width: 1px !important; vector-effect: non-scaling-stroke !important;
  stroke-linejoin: round !important; marker: none !important }"""
DRAWINGS = Path(__file__).parents[1] / "data" / "drawings"


class Place(NamedTuple):
    """The mapping from units of a drawing to the page: pixel = scale · unit + shift.

    y points down from the upper left corner of the view box.
    """

    height: float = HEIGHT
    scale: tuple[float, float] = (1.0, 1.0)
    shift: tuple[float, float] = (0.0, 0.0)


PLACES = {
    "a_view_box": Place(150, (2, 2)),
    "a_view_box_that_does_not_fit": Place(200, (1.5, 1.5), (50, 0)),
    "a_view_box_at_the_left": Place(200, (1.5, 1.5)),
    "a_view_box_that_is_cut": Place(200, (2, 2), (0, -50)),
    "a_view_box_that_is_stretched": Place(200, (2, 1.5)),
    "a_view_box_and_a_width": Place(150, (2, 2)),
    "centimetres": Place(150, (2, 2)),
}
"""Of the drawings with a view box; of all others a unit is a pixel."""
AS_THEY_ARE = {"fills_and_strokes"}
"""Drawings whose own fills and strokes matter; of all others the browser draws the
outlines.
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with `DENSITY` times the pixel density of the drawing."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        device_scale_factor=DENSITY,
        locale="en-US",
    )
    yield context.new_page()
    context.close()


def painted(page: Page, text: str) -> Mask:
    """Return the browser's picture."""
    page.goto("data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode())
    with Image.open(io.BytesIO(page.screenshot())) as image:
        return np.asarray(image.convert("L")) < 190


@pytest.mark.parametrize(
    "path", sorted(DRAWINGS.glob("*.svg")), ids=lambda path: path.stem
)
def test_a_drawing_is_what_a_browser_shows(path: Path, page: Page) -> None:
    text = path.read_text("utf-8")
    head, _, rest = text.partition(">")
    theirs = painted(
        page,
        text if path.stem in AS_THEY_ARE else f"{head}><style>{OUTLINES}</style>{rest}",
    )
    segments = read_world(
        read_source(path), Options(resolution=1.0)
    ).scene.segments.copy()
    height, (sx, sy), (tx, ty) = PLACES.get(path.stem, Place())
    segments[:, 0::2] = segments[:, 0::2] * sx + tx
    segments[:, 1::2] = -((height - segments[:, 1::2]) * sy + ty)
    canvas = Canvas((0.0, -float(HEIGHT)), (float(WIDTH), 0.0), DENSITY)
    ours = drawn(segments, canvas)[: theirs.shape[0], : theirs.shape[1]]
    check_same(ours, theirs, tolerance=3)


def test_there_are_drawings_of_every_kind() -> None:
    assert len(list(DRAWINGS.glob("*.svg"))) >= 30
    assert {path.stem for path in DRAWINGS.glob("*.svg")} >= {*PLACES, *AS_THEY_ARE}
