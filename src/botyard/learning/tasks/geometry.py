"""Relative positions, headings and velocities of robots, for many worlds at once."""

from __future__ import annotations

import numpy as np

from botyard.learning.tasks.base import B1, F8
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds


def between(poses: F8, places: F8) -> F8:
    """Return positions in the frames of poses: distance ahead and to the left, m.

    Parameters
    ----------
    poses : (…, 3) array
        The frames: m, m, rad.
    places : (…, 2) array
        Positions, m. Both arrays are broadcast.
    """
    c, s = elementwise.cosine_sine(poses[..., 2])
    x, y = places[..., 0] - poses[..., 0], places[..., 1] - poses[..., 1]
    return np.stack([c * x + s * y, c * y - s * x], axis=-1)


def distances(places: F8, others: F8) -> F8:
    """Return distances between positions, (…, 2 or more), m."""
    x, y = others[..., 0] - places[..., 0], others[..., 1] - places[..., 1]
    apart: F8 = np.sqrt(x * x + y * y)
    return apart


def headings(poses: F8, others: F8) -> F8:
    """Return cosine and sine of the headings of `others` relative to `poses`, (…, 2).

    Angles are counterclockwise.
    """
    c, s = elementwise.cosine_sine(others[..., 2] - poses[..., 2])
    return np.stack([c, s], axis=-1)


def touching(w: Worlds) -> B1:
    """Return whether each robot touches another one, (n, m).

    A contact counts for both robots: the one that was stopped, and the one that stopped
    it.
    """
    other, m = w.other, len(w.names)
    # Numbers from m are boxes.
    touches = (other >= 0) & (other < m)
    world, robot = np.nonzero(touches)
    touches[world, other[world, robot]] = True
    return touches


def seen_others(w: Worlds, count: int, unit: float) -> F8:
    """Return the observations of the `count` nearest other robots, (n, m, 4 · count).

    The nearest robot is first. Each has its position ahead and to the left, divided by
    `unit` (m), and its velocity along the same axes, m/s.
    """
    n, m, _ = w.pose.shape
    if not count:
        return np.zeros((n, m, 0))
    near = w.nearest(count)
    seen: F8 = np.concatenate(
        [near.poses[..., :2] / unit, near.velocities[..., :2]], axis=-1
    ).reshape(n, m, 4 * count)
    return seen


__all__ = ["between", "distances", "headings", "seen_others", "touching"]
