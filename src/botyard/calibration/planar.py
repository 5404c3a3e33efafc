"""Poses in the plane as arrays (…, 3): x, y (m), heading (rad)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def wrap(angle: F8) -> F8:
    """Return angles wrapped to [−π, π), rad."""
    found: F8 = (angle + np.pi) % (2.0 * np.pi) - np.pi
    return found


def rotate(xy: F8, heading: F8) -> F8:
    """Return vectors rotated counterclockwise.

    Parameters
    ----------
    xy : (…, 2) float64
        Vectors, of any unit.
    heading : (…) float64
        Angles, rad; both are broadcast.
    """
    c, s = np.cos(heading), np.sin(heading)
    return np.stack(
        [c * xy[..., 0] - s * xy[..., 1], s * xy[..., 0] + c * xy[..., 1]], axis=-1
    )


def compose(a: F8, b: F8) -> F8:
    """Return poses in the parent frame, given their poses in other frames.

    Parameters
    ----------
    a : (…, 3) float64
        The frames: m, m, rad.
    b : (…, 3) float64
        Poses in these frames: m, m, rad. Both are broadcast.

    Returns
    -------
    (…, 3) float64
        The poses `b` in the parent frame of `a`, with headings in [−π, π).
    """
    a, b = np.broadcast_arrays(a, b)
    xy = a[..., :2] + rotate(b[..., :2], a[..., 2])
    return np.concatenate([xy, wrap(a[..., 2:] + b[..., 2:])], axis=-1)


def between(a: F8, b: F8) -> F8:
    """Return poses relative to other poses.

    Parameters
    ----------
    a : (…, 3) float64
        The frames: m, m, rad.
    b : (…, 3) float64
        Poses in the same parent frame: m, m, rad. Both are broadcast.

    Returns
    -------
    (…, 3) float64
        The poses `b` in the frames `a`, with headings in [−π, π).
    """
    a, b = np.broadcast_arrays(a, b)
    xy = rotate(b[..., :2] - a[..., :2], -a[..., 2])
    return np.concatenate([xy, wrap(b[..., 2:] - a[..., 2:])], axis=-1)


def inverse(pose: F8) -> F8:
    """Return the inverse transforms: the pose of the parent's origin in each frame `pose`."""
    return between(pose, np.zeros(3))


def arc(twist: F8) -> F8:
    """Return the end points of motions with constant body twist (the exponential map of SE(2)).

    Parameters
    ----------
    twist : (…, 3) float64
        Distance forward and to the left, m, and rotation, rad, at constant velocities.

    Returns
    -------
    (…, 2) float64
        End points in the frame of the start, m.
    """
    th = twist[..., 2]
    # Series near 0, where the exact expressions lose all digits.
    small = np.abs(th) < 1e-4
    safe = np.where(small, 1.0, th)
    s = np.where(small, 1.0 - th * th / 6.0, np.sin(safe) / safe)
    c = np.where(small, th / 2.0, (1.0 - np.cos(safe)) / safe)
    return np.stack(
        [s * twist[..., 0] - c * twist[..., 1], c * twist[..., 0] + s * twist[..., 1]],
        axis=-1,
    )


def twist_of(pose: F8) -> F8:
    """Return the constant body twists that lead from the origin to poses.

    The function is the logarithm of SE(2), the inverse of `arc`.

    Parameters
    ----------
    pose : (…, 3) float64
        Poses: m, m, rad. Headings must be within (−2π, 2π), without which the twist is
        not unique.

    Returns
    -------
    (…, 3) float64
        Distance forward and to the left, m, and rotation, rad.
    """
    th = pose[..., 2]
    half = 0.5 * th
    small = np.abs(half) < 1e-4
    a = np.where(
        small, 1.0 - half * half / 3.0, half / np.tan(np.where(small, 1.0, half))
    )
    x, y = pose[..., 0], pose[..., 1]
    return np.stack([a * x + half * y, -half * x + a * y, th], axis=-1)


def interpolated(times: F8, poses: F8, at: F8) -> F8:
    """Return poses at other times, interpolated linearly.

    Times outside of the range get the first or the last pose.

    Parameters
    ----------
    times : (n,) array
        Ascending times, s.
    poses : (n, 3) array
        Poses at these times.
    at : (k,) array
        Times of the result, s.
    """
    heading = np.unwrap(poses[:, 2])
    columns = [
        np.interp(at, times, values) for values in (poses[:, 0], poses[:, 1], heading)
    ]
    columns[2] = wrap(columns[2])
    return np.stack(columns, axis=-1)


__all__ = [
    "arc",
    "between",
    "compose",
    "interpolated",
    "inverse",
    "rotate",
    "twist_of",
    "wrap",
]
