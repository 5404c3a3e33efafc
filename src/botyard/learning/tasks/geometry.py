"""Relative positions, headings and velocities of robots, for many worlds at once."""

from __future__ import annotations

import numpy as np

from botyard.learning.tasks.base import B1, F8
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds


def between(poses: F8, places: F8) -> F8:
    """Return positions relative to poses: distances ahead and to the left.

    Parameters
    ----------
    poses : (…, 3) array
        The frames: m, m, rad.
    places : (…, 2) array
        Positions in the frame of the world, m. Both arrays are broadcast; further
        columns of `places` are ignored, so that poses fit as well.

    Returns
    -------
    (…, 2) float64
        Distance ahead and to the left, m (REP-103).
    """
    c, s = elementwise.cosine_sine(poses[..., 2])
    x, y = places[..., 0] - poses[..., 0], places[..., 1] - poses[..., 1]
    return np.stack([c * x + s * y, c * y - s * x], axis=-1)


def distances(places: F8, others: F8) -> F8:
    """Return distances between positions.

    Parameters
    ----------
    places, others : (…, 2) or (…, 3) array
        Positions, or poses whose headings are ignored, m. Both are broadcast.

    Returns
    -------
    (…) float64
        Distances, m.
    """
    x, y = others[..., 0] - places[..., 0], others[..., 1] - places[..., 1]
    apart: F8 = np.sqrt(x * x + y * y)
    return apart


def headings(poses: F8, others: F8) -> F8:
    """Return cosine and sine of the difference between headings.

    Parameters
    ----------
    poses, others : (…, 3) array
        Poses: m, m, rad. Both are broadcast.

    Returns
    -------
    (…, 2) float64
        Cosine and sine of the angle from the heading in `poses` to the one in `others`,
        counterclockwise.
    """
    c, s = elementwise.cosine_sine(others[..., 2] - poses[..., 2])
    return np.stack([c, s], axis=-1)


def touching(w: Worlds) -> B1:
    """Return whether each robot touches another robot.

    A contact counts for both robots: the one that was stopped, and the one that stopped
    it.

    Parameters
    ----------
    w : Worlds
        Worlds after a step.

    Returns
    -------
    (n, m) bool
        Contacts with other robots. Walls and boxes do not count.
    """
    other, m = w.other, len(w.names)
    # In this array, boxes have the numbers from m on.
    touches = (other >= 0) & (other < m)
    world, robot = np.nonzero(touches)
    touches[world, other[world, robot]] = True
    return touches


def seen_others(w: Worlds, count: int, unit: float) -> F8:
    """Return the nearest other robots as each robot observes them.

    Parameters
    ----------
    w : Worlds
        n worlds with m robots.
    count : int
        Number of other robots that each robot observes; 0: none.
    unit : float
        Length by which positions are divided, m.

    Returns
    -------
    (n, m, 4 · count) float64
        For each of the robots, nearest first: position ahead and to the left, in units,
        and velocity along the same axes, m/s.
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
