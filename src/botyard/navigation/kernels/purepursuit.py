"""Pure pursuit, a method that lets a robot follow a path.

Coulter, "Implementation of the pure pursuit path tracking algorithm", CMU-RI-TR-92-01,
1992.

The robot drives on the arc to the point of the path that is one lookahead distance l
away. With that point at (x, y) in the robot's frame, x ahead, the curvature of the arc
is γ = 2 y / l² (the report uses x for the lateral offset).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import entry_kernel, inline_kernel, kernel
from botyard.numerics.elementary import cosine_sine

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

NOTHING = 1e-9
"""Distance below which a point counts as at the robot, m."""


@inline_kernel
def place_on(path: F8, count: int, at: float) -> tuple[float, float]:
    """Return the point of a path at a position.

    Parameters
    ----------
    path : (p, 2) float64
        Points of the path, m.
    count : int
        Number of points that are used, at least 2.
    at : float
        Position: number of the segment plus the fraction of it, 0 … `count` − 1.

    Returns
    -------
    x, y : float
        The point, m.
    """
    last = count - 1
    k = min(int(at), last - 1)
    share = at - k
    return path[k, 0] + share * (path[k + 1, 0] - path[k, 0]), path[k, 1] + share * (
        path[k + 1, 1] - path[k, 1]
    )


@kernel
def nearest_place(
    path: F8, count: int, at: float, ahead: float, x: float, y: float
) -> float:
    """Return the position on a path that is nearest to a point.

    Parameters
    ----------
    path : (p, 2) float64
        Points of the path, m.
    count : int
        Number of points that are used, at least 2.
    at : float
        Position at which the search starts.
    ahead : float
        Length of the path to search, m, rounded up to whole segments.
    x, y : float
        The point, m.

    Returns
    -------
    float
        Position: number of the segment plus the fraction of it, at least `at`.
    """
    best, where = math.inf, at
    gone = 0.0
    for k in range(int(min(at, count - 2.0)), count - 1):
        ax, ay = path[k, 0], path[k, 1]
        ex, ey = path[k + 1, 0] - ax, path[k + 1, 1] - ay
        length2 = ex * ex + ey * ey
        # On the first segment, positions before `at` are behind the robot's progress.
        first = max(at - k, 0.0)
        t = first
        if length2 > 0.0:
            t = min(1.0, max(first, ((x - ax) * ex + (y - ay) * ey) / length2))
        dx, dy = ax + t * ex - x, ay + t * ey - y
        if dx * dx + dy * dy < best:
            best, where = dx * dx + dy * dy, k + t
        gone += (1.0 - first) * math.sqrt(length2)
        if gone > ahead:
            break

    return where


@kernel
def goal_place(
    path: F8, count: int, at: float, reach: float, x: float, y: float
) -> float:
    """Return the first position at which a path leaves a circle.

    Parameters
    ----------
    path : (p, 2) float64
        Points of the path, m.
    count : int
        Number of points that are used, at least 2.
    at : float
        Position at which the search starts.
    reach : float
        Radius of the circle, m.
    x, y : float
        Centre of the circle, m.

    Returns
    -------
    float
        Position: number of the segment plus the fraction of it; the end of the path if
        it does not leave the circle.
    """
    for k in range(int(min(at, count - 2.0)), count - 1):
        ax, ay = path[k, 0] - x, path[k, 1] - y
        ex, ey = path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1]
        # |a + t e| = reach: the path leaves the circle at the greater solution t.
        a, half, c = (
            ex * ex + ey * ey,
            ax * ex + ay * ey,
            ax * ax + ay * ay - reach * reach,
        )
        root = half * half - a * c
        if a <= 0.0 or root < 0.0:
            continue
        t = (math.sqrt(root) - half) / a
        if max(at - k, 0.0) <= t <= 1.0:
            return k + t

    return count - 1.0


@entry_kernel
def pure_pursuit(
    paths: F8, counts: I8, poses: F8, lookahead: F8, progress: F8, result: F8
) -> None:
    """Compute the curvatures of the arcs of k robots to their paths.

    Parameters
    ----------
    paths : (k, p, 2) float64
        Points of the paths, m.
    counts : (k,) int64
        Number of points of each path, at least 2.
    poses : (k, 3) float64
        Poses of the robots, m, m, rad.
    lookahead : (k,) float64
        Lookahead distances, m.
    progress : (k,) float64
        Position of each robot on its path: number of a segment plus fraction of it.
        Updated: the nearest position within the next two lookahead distances. The limit
        lets a path cross itself.
    result : (k, 4) float64
        Output: the curvature, 1/m, positive to the left; the pursued point in the frame
        of the robot, m; its distance from the end of the path, m.
    """
    for k in range(poses.shape[0]):
        path, count = paths[k], counts[k]
        x, y = poses[k, 0], poses[k, 1]
        at = nearest_place(path, count, progress[k], 2.0 * lookahead[k], x, y)
        progress[k] = at
        nx, ny = place_on(path, count, at)
        off = math.sqrt((nx - x) * (nx - x) + (ny - y) * (ny - y))
        # A robot far from the path drives to the nearest point of it.
        if off >= lookahead[k]:
            gx, gy = nx, ny
        else:
            gx, gy = place_on(
                path, count, goal_place(path, count, at, lookahead[k], x, y)
            )

        c, s = cosine_sine(poses[k, 2])
        dx, dy = gx - x, gy - y
        ahead, left = c * dx + s * dy, c * dy - s * dx
        reach2 = dx * dx + dy * dy
        result[k, 0] = 2.0 * left / reach2 if reach2 > NOTHING * NOTHING else 0.0
        result[k, 1], result[k, 2] = ahead, left
        ex, ey = path[count - 1, 0] - x, path[count - 1, 1] - y
        result[k, 3] = math.sqrt(ex * ex + ey * ey)
