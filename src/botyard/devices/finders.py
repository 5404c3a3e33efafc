"""Fiducial finders and blob finders: sensors that recognise what they see (formats §4.3).

Both are computed when they are read, of the present state. Walls that lasers see hide what is behind them, and so do bodies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.kernels.sight import look
from botyard.engine.layout import F8, I8
from botyard.engine.simulation import Engine
from botyard.engine.tables import NOBODY
from botyard.geometry import Pose, compose, relative
from botyard.model.colors import rgb
from botyard.model.obstacles import Visible
from botyard.model.sensors import BlobFinderSpec, FiducialFinderSpec

HEIGHT: Final = 0.6
"""Height of everything that a blob finder sees, m: a plane has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fiducial:
    """A mark that was found.

    Attributes
    ----------
    id : int
        What it says; 0 if it is too far away to be read.
    range, bearing : float
        Where its middle is, in the sensor's frame: m, rad counter-clockwise.
    pose : Pose
        The marked thing in the sensor's frame, m and rad.
    """

    id: int
    range: float
    bearing: float
    pose: Pose


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A patch of one colour in the image.

    Attributes
    ----------
    channel : int
        Index of the colour among those of the finder.
    color : str
        The colour.
    left, top, right, bottom : int
        Its bounding box, pixels from the upper left corner, the last ones included.
    range : float
        Distance of what is seen, m.
    bearing : float
        Direction of the patch's middle in the sensor's frame, rad counter-clockwise.
    """

    channel: int
    color: str
    left: int
    top: int
    right: int
    bottom: int
    range: float
    bearing: float

    @property
    def area(self) -> int:
        """Pixels."""
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


def _sight(engine: Engine, eye: int, at: Pose, bearings: F8, reach: float, seen: NDArray[np.uint8]) -> tuple[F8, I8]:
    """Range, m, and row of what lies in directions of the world; see `look`."""
    ranges, rows = np.zeros(len(bearings)), np.zeros(len(bearings), np.int64)
    look(
        engine.grid,
        engine.bodies,
        engine.state,
        seen,
        eye,
        at.x,
        at.y,
        bearings,
        reach,
        int(Visible.LASER),
        ranges,
        rows,
    )
    return ranges, rows


def find_fiducials(engine: Engine, name: str, spec: FiducialFinderSpec) -> list[Fiducial]:
    """The marks that the finder of a body sees, nearest first.

    A mark is found if the middle of its body is within range and field of view, and nothing stands between.
    """
    eye = engine.rows[name]
    state = engine.state
    at = compose(Pose(*state.pose[eye].tolist()), spec.pose)
    marks = np.array([s.returns.fiducial for s in engine.specs], np.int64)
    # ghosts, and what is carried, show none
    rows = np.flatnonzero((marks != 0) & ((state.mask != 0) | _unseen_marks(engine)))
    rows = rows[rows != eye]
    dx, dy = state.pose[rows, 0] - at.x, state.pose[rows, 1] - at.y
    ranges = np.hypot(dx, dy)
    bearings = np.arctan2(dy, dx)
    turned = np.remainder(bearings - at.th + math.pi, 2.0 * math.pi) - math.pi
    near = (ranges >= spec.range_min) & (ranges <= spec.range_max) & (np.abs(turned) <= spec.fov / 2 + 1e-9)
    rows, ranges, bearings, turned = rows[near], ranges[near], bearings[near], turned[near]
    if not len(rows):
        return []
    seen = ((state.mask & int(Visible.LASER)) != 0).astype(np.uint8)
    met, what = _sight(engine, eye, at, np.ascontiguousarray(bearings), spec.range_max, seen)
    clear = (what == rows) | (met >= ranges - 1e-9)
    found = []
    for i in np.argsort(ranges, kind="stable").tolist():
        if clear[i]:
            readable = ranges[i] <= spec.range_max_id
            pose = relative(at, Pose(*state.pose[rows[i]].tolist()))
            found.append(
                Fiducial(
                    id=int(marks[rows[i]]) if readable else 0,
                    range=float(ranges[i]),
                    bearing=float(turned[i]),
                    pose=pose,
                )
            )
    return found


def _unseen_marks(engine: Engine) -> NDArray[np.bool_]:
    """Bodies that nothing else sees by design: beacons."""
    unseen: NDArray[np.bool_] = np.array([not s.returns.mask for s in engine.specs], np.bool_)
    unseen &= engine.state.carrier == NOBODY
    return unseen


def find_blobs(engine: Engine, name: str, spec: BlobFinderSpec, colors: Mapping[str, str]) -> list[Blob]:
    """The patches of the finder's colours in its image, from left to right.

    Parameters
    ----------
    colors : mapping of str to str
        Colour of each body by name.

    Each column of the image is a ray through its middle; neighbouring columns that see the same body are one patch.
    """
    eye, state = engine.rows[name], engine.state
    at = compose(Pose(*state.pose[eye].tolist()), spec.pose)
    width, height = spec.image
    # columns are equally wide on the image plane
    offsets = np.tan(spec.fov / 2) * (1.0 - (2.0 * np.arange(width) + 1.0) / width)
    bearings = np.arctan(offsets)
    seen = np.array([s.returns.blob for s in engine.specs], np.uint8) * (state.mask != 0)
    ranges, rows = _sight(engine, eye, at, at.th + bearings, spec.range_max, seen.astype(np.uint8))
    channels = {rgb(c): i for i, c in reversed(list(enumerate(spec.colors)))}
    names = {row: body for body, row in engine.rows.items()}
    focal = width / 2.0 / math.tan(spec.fov / 2)  # pixels
    found = []
    edges = np.flatnonzero(np.diff(rows)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), width], strict=True):
        row = int(rows[first])
        channel = channels.get(rgb(colors.get(names.get(row, ""), ""))) if row >= 0 else None
        if channel is None:
            continue
        away = float(ranges[first:last].min())
        half = min(height / 2.0, focal * (HEIGHT / 2.0) / max(away, 1e-3))
        top, bottom = math.floor(height / 2.0 - half), math.ceil(height / 2.0 + half) - 1
        found.append(
            Blob(
                channel=channel,
                color=spec.colors[channel],
                left=first,
                top=max(0, top),
                right=last - 1,
                bottom=min(height - 1, bottom),
                range=away,
                bearing=float(bearings[first:last].mean()),
            )
        )
    return found
