"""Where things are as robots see them, for many worlds at once."""

from __future__ import annotations

import math

import numpy as np

from botyard.learning.tasks.base import B1, F8
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds


def between(poses: F8, places: F8) -> F8:
    """Places, (…, 2) m, as poses, (…, 3), see them: how far ahead, and how far to the
    left; both are broadcast, m.
    """
    c, s = elementwise.cosine_sine(poses[..., 2])
    x, y = places[..., 0] - poses[..., 0], places[..., 1] - poses[..., 1]
    return np.stack([c * x + s * y, c * y - s * x], axis=-1)


def distances(places: F8, others: F8) -> F8:
    """Distances between places, (…, 2 or more), m."""
    x, y = others[..., 0] - places[..., 0], others[..., 1] - places[..., 1]
    apart: F8 = np.sqrt(x * x + y * y)
    return apart


def headings(poses: F8, others: F8) -> F8:
    """Cosines and sines of headings as seen by `poses`: how far `others` are turned to
    the left, (…, 2).
    """
    c, s = elementwise.cosine_sine(others[..., 2] - poses[..., 2])
    return np.stack([c, s], axis=-1)


def touching(w: Worlds) -> B1:
    """Which robots touch another one, (n, m): those that another one has stopped in the
    last step, and those that have stopped one.
    """
    other, m = w.other, len(w.names)
    # numbers from m on are those of boxes
    touches = (other >= 0) & (other < m)
    world, robot = np.nonzero(touches)
    touches[world, other[world, robot]] = True
    return touches


def seen_others(w: Worlds, count: int, unit: float) -> F8:
    """What each robot sees of the `count` nearest others, nearest first, (n, m, 4 ·
    count).

    Of each one the place ahead and to the left, divided by `unit`, m, and the velocity
    along these axes, m/s.
    """
    pose = w.pose
    n, m, _ = pose.shape
    if not count:
        return np.zeros((n, m, 0))
    apart = distances(pose[:, :, None], pose[:, None])
    apart[:, np.arange(m), np.arange(m)] = math.inf
    which = np.argsort(apart, axis=2, kind="stable")[:, :, :count]
    row = np.arange(n)[:, None, None]
    place = between(pose[:, :, None], pose[row, which]) / unit
    c, s = elementwise.cosine_sine(pose[..., 2])
    world = np.stack(
        [c * w.vel[..., 0] - s * w.vel[..., 1], s * w.vel[..., 0] + c * w.vel[..., 1]],
        axis=-1,
    )
    theirs = world[row, which]
    c, s = c[:, :, None], s[:, :, None]
    ahead, left = (
        c * theirs[..., 0] + s * theirs[..., 1],
        c * theirs[..., 1] - s * theirs[..., 0],
    )
    seen: F8 = np.concatenate(
        [place, ahead[..., None], left[..., None]], axis=-1
    ).reshape(n, m, 4 * count)
    return seen


__all__ = ["between", "distances", "headings", "seen_others", "touching"]
