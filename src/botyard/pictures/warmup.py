"""Warm-up of all drawing kernels."""

from __future__ import annotations

import numpy as np

from botyard.pictures.frame import overlay_of
from botyard.pictures.kernels.coverage import cover_boxes, cover_polygons
from botyard.pictures.kernels.outlines import line_edges, polygon_edges
from botyard.pictures.kernels.pixels import (
    lay_over,
    mark_fields,
    tint_fields,
    to_yuv420,
)


def warm_up() -> None:
    """Compile or load all drawing kernels: call each of them once."""
    words, marks = np.zeros((2, 2), np.uint32), np.zeros((2, 2), np.uint8)
    mark_fields(np.zeros((3, 2)), np.array([0, 3]), np.array([1]), marks)
    tint_fields(marks, np.array([0, 2]), 0, np.zeros(256, np.int64), words)
    lay_over(*overlay_of(words), 0, 0, words)
    none = np.zeros((0, 2)), np.zeros(0, np.int64)
    line_edges(*none, 1.0, False, False, False, np.zeros((0, 5)))
    polygon_edges(none[0], np.zeros((0, 5)))
    cover_polygons(
        np.zeros((0, 5)),
        1.0,
        np.zeros(0, np.int64),
        np.zeros(0),
        np.zeros(4),
        np.zeros((2, 2), np.float32),
    )
    cover_boxes(np.zeros((0, 4)), 1.0, np.zeros((2, 2), np.float32))
    to_yuv420(words, marks, np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.uint8))


__all__ = ["warm_up"]
