"""Worlds for tests: random walls and robots, and the data of them for naive twins."""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.bodyspec import BodySpec
from botyard.engine.layout import Grid
from botyard.engine.simulation import Engine
from botyard.engine.wallgrid import grid_of_segments
from botyard.geometry import Pose
from botyard.model.kinematics import Drive, Kinematics
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene

OCTAGON = (
    (-0.2, 0.2),
    (0.1, 0.2),
    (0.2, 0.1),
    (0.2, -0.1),
    (0.1, -0.2),
    (-0.2, -0.2),
    (-0.3, -0.1),
    (-0.3, 0.1),
)
HOOK = ((0.0, 0.0), (0.4, 0.0), (0.4, 0.3), (0.3, 0.3), (0.3, 0.1), (0.0, 0.1))


def random_segments(rng: np.random.Generator, n: int, size: float = 10.0) -> np.ndarray:
    """Walls of 0.2 … 3 m, some parallel to an axis on round coordinates, where ties and
    corners are.
    """
    start = rng.uniform(0, size, (n, 2))
    angle = rng.uniform(0, 2 * math.pi, n)
    length = rng.uniform(0.2, 3.0, n)
    segments = np.concatenate(
        [start, start + length[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)],
        axis=1,
    )
    aligned = rng.random(n) < 0.5
    segments[aligned] = np.round(segments[aligned], 1)
    segments[aligned, 3] = segments[aligned, 1]
    keep = (segments[:, :2] != segments[:, 2:]).any(axis=1)
    return segments[keep]


def grid_of(segments: np.ndarray) -> Grid:
    n = len(segments)
    return grid_of_segments(segments, np.full(n, 7, np.uint16), np.ones(n, np.int16))


def robot(name: str, parts=(OCTAGON,), **changes) -> BodySpec:
    return BodySpec(
        name=name, parts=tuple(parts), kinematics=Kinematics(kind=Drive.OMNI), **changes
    )


def engine(segments: np.ndarray, poses, parts=(OCTAGON,), **options) -> Engine:
    e = Engine(Scene(segments=segments), **options)
    e.add_bodies([(robot(f"r{i}", parts), Pose(*p)) for i, p in enumerate(poses)])
    return e


INVISIBLE = Returns(obstacle=False, laser=0, sonar=False)
