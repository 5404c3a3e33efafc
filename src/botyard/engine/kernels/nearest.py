"""The nearest robots of each robot, and all within a radius.

Robots at equal distances are in the order of their numbers. Allocates nothing; one
thread.
"""

from __future__ import annotations

import math

import numpy as np

from botyard.engine.kernels.jit import entry_kernel, kernel
from botyard.engine.kernels.strips import (
    FEW,
    LEAST_SIZE,
    LEAST_SQUARE,
    MARGIN,
    Strips,
    collect,
    cut_into_strips,
    rewind,
    sort_by_place,
    write_nearest,
)
from botyard.engine.layout import F8, I8
from botyard.numerics.elementary import cosine_sine

STRIP_SHARE = 0.5
"""Approximate width of a strip, as a fraction of the radius of a search."""
SIZE_PER_WANTED, LEAST_WANTED = 0.08, 25
"""Factors of the size of strips, see `size_for`.

Both were measured. With narrower strips, a search visits more strips; with wider ones,
it tests more points that are too far away.
"""
LIKELY = 0.6
"""Factor of the probable growth of the search circle from one point to the next.

The growth is this factor divided by the square root of the number of wanted points: the
more points a circle holds, the less its radius varies. In most cases, the next circle
is not larger than this.
"""
FLATTEST = 64.0
"""Highest ratio of the height of the points' area to its width that counts in `size_for`."""
ROOM_PER_WANTED = 3
"""Number of candidates per wanted point that a search holds."""


@kernel
def nearest_of_few(pose: F8, wanted: int, strips: Strips, near: I8, far: F8) -> None:
    """Find the nearest points of each point by comparing all pairs.

    Parameters
    ----------
    pose : (n, 2 or more) float64
        Positions in the first two columns, m.
    wanted : int
        Number of points to find, at most n − 1.
    strips : Strips
        Workspace for n points.
    near, far : (n, k) int64, (n, k) float64
        Output: numbers of the nearest points and their distances, m; k ≥ `wanted`.
    """
    away, who = strips.away, strips.who
    n = pose.shape[0]
    for i in range(n):
        for j in range(n):
            dx, dy = pose[i, 0] - pose[j, 0], pose[i, 1] - pose[j, 1]
            away[j], who[j] = dx * dx + dy * dy, j
        # Replace the point itself by the last entry of the list.
        away[i], who[i] = away[n - 1], n - 1
        write_nearest(away, who, n - 1, near[i], far[i], wanted)


@kernel
def size_for(pose: F8, order: I8, wanted: int) -> int:
    """Return the number of points per strip for searches of the nearest points.

    Parameters
    ----------
    pose : (n, 2 or more) float64
        Positions in the first two columns, m.
    order : (3, n) int64
        `Strips.order` after `sort_by_place`: row 0 by x, row 2 by y.
    wanted : int
        Number of points that each search finds.
    """
    n = pose.shape[0]
    a, b = n // 4, (3 * n) // 4
    # Measure the middle half of the points, because a far outlier says nothing about
    # the others.
    wide = pose[order[0, b], 0] - pose[order[0, a], 0]
    high = pose[order[2, b], 1] - pose[order[2, a], 1]
    flat = high / wide if FLATTEST * wide > high else FLATTEST
    square = SIZE_PER_WANTED * (LEAST_WANTED + wanted) * n * flat
    return int(min(max(math.sqrt(square), LEAST_SIZE), n))


@kernel
def nearest_of_many(pose: F8, wanted: int, strips: Strips, near: I8, far: F8) -> None:
    """Find the nearest points of each point, with the points sorted into strips.

    Let r be the radius of a circle around one point that holds enough other points. A
    circle around the next point, at distance d from the first one, also holds enough
    points if its radius is r + d.

    Parameters
    ----------
    pose, wanted, strips, near, far
        See `nearest_of_few`.
    """
    n = pose.shape[0]
    sort_by_place(pose, strips)
    cut_into_strips(pose, strips, size_for(pose, strips.order, wanted))
    x, y, item, start = strips.x, strips.y, strips.item, strips.start
    room = min(n, ROOM_PER_WANTED * (wanted + 1))
    likely = 1.0 + LIKELY / math.sqrt(wanted)
    # Use the circle that contains the first points.
    square = 0.0
    for p in range(1, wanted + 1):
        dx, dy = x[p] - x[0], y[p] - y[0]
        square = max(square, dx * dx + dy * dy)
    last_x, last_y, last_far = x[0], y[0], math.sqrt(square)
    for s in range(strips.shape[0]):
        rewind(strips)
        # Of the previous strip, the first point is nearer than the last one.
        q = start[max(s - 1, 0)]
        if s > 0:
            last_x, last_y, last_far = x[q], y[q], far[item[q], wanted - 1]
        for q in range(start[s], start[s + 1]):
            dx, dy = x[q] - last_x, y[q] - last_y
            sure = last_far + math.sqrt(dx * dx + dy * dy)
            found = np.int64(0)
            for reach in (min(sure, likely * last_far), sure):
                # Search in the larger circle only if the likely one has too few points.
                if found < wanted:
                    limit = reach * reach * MARGIN + LEAST_SQUARE
                    found = collect(strips, s, q, limit, wanted, room)

            i = item[q]
            write_nearest(strips.away, strips.who, found, near[i], far[i], wanted)
            last_x, last_y, last_far = x[q], y[q], far[i, wanted - 1]


@entry_kernel
def find_nearest(pose: F8, wanted: int, strips: Strips, near: I8, far: F8) -> None:
    """Find the nearest robots of each robot in each world.

    Parameters
    ----------
    pose : (w, n, 3) float64
        Poses of n robots in w worlds: m, m, rad.
    wanted : int
        Number of robots to find, at most n − 1.
    strips : Strips
        Workspace for n points.
    near : (w, n, k) int64
        Output: numbers of the nearest robots, k ≥ `wanted`. Other places stay
        unchanged.
    far : (w, n, k) float64
        Output: their distances, m.
    """
    for w in range(pose.shape[0]):
        if pose.shape[1] <= FEW:
            nearest_of_few(pose[w], wanted, strips, near[w], far[w])
        else:
            nearest_of_many(pose[w], wanted, strips, near[w], far[w])


@kernel
def sort_for_radius(pose: F8, radius: float, strips: Strips) -> None:
    """Sort points into strips for searches within a radius.

    Parameters
    ----------
    pose : (n, 2 or more) float64
        Positions in the first two columns, m.
    radius : float
        Greatest distance in the searches, m.
    strips : Strips
        Workspace for n points. Output: the strips.
    """
    sort_by_place(pose, strips)
    n = pose.shape[0]
    order = strips.order
    # Measure the middle half of the points, because a far outlier says nothing about
    # the others.
    half = pose[order[0, (3 * n) // 4], 0] - pose[order[0, n // 4], 0]
    ideal = STRIP_SHARE * radius * 0.5 * n
    size = n if ideal >= half * n else int(ideal / half)
    cut_into_strips(pose, strips, min(max(size, LEAST_SIZE), n))


@entry_kernel
def count_within(
    pose: F8, radius: float, most: int, strips: Strips, offsets: I8
) -> int:
    """Count the robots within a radius of each robot, and sort them into `strips`.

    Parameters
    ----------
    pose : (n, 3) float64
        Poses of n > 0 robots: m, m, rad.
    radius : float
        Greatest distance of centres, m.
    most : int
        Greatest sum of all counts: beyond it, the search ends, so that lists of the robots
        fit into memory.
    strips : Strips
        Output: strips of the n robots.
    offsets : (n + 1,) int64
        Output: sums of the counts of all robots before each one.

    Returns
    -------
    int
        Sum of all counts; −1 if it exceeds `most`.
    """
    sort_for_radius(pose, radius, strips)
    away, item, start = strips.away, strips.item, strips.start
    n = pose.shape[0]
    total = np.int64(0)
    for s in range(strips.shape[0]):
        rewind(strips)
        for q in range(start[s], start[s + 1]):
            limit = radius * radius * MARGIN + LEAST_SQUARE
            found = collect(strips, s, q, limit, n, n + 1)
            count = np.int64(0)
            for p in range(found):
                # Compare the root, because it is the distance that callers get.
                count += 1 if math.sqrt(away[p]) <= radius else 0
            offsets[item[q] + 1] = count
            total += count
            if total > most:
                return -1

    offsets[0] = 0
    for i in range(n):
        offsets[i + 1] += offsets[i]
    return int(offsets[n])


@entry_kernel
def list_within(radius: float, strips: Strips, offsets: I8, near: I8, far: F8) -> None:
    """List the robots that `count_within` has counted, the nearest first.

    Parameters
    ----------
    radius, strips, offsets
        As for `count_within`, which has filled them.
    near, far : (p,) int64, (p,) float64
        Output: numbers and distances, m.
    """
    item, start = strips.item, strips.start
    n = item.shape[0]
    for s in range(strips.shape[0]):
        rewind(strips)
        for q in range(start[s], start[s + 1]):
            limit = radius * radius * MARGIN + LEAST_SQUARE
            found = collect(strips, s, q, limit, n, n + 1)
            first, end = offsets[item[q]], offsets[item[q] + 1]
            # Points that are beyond the radius only by rounding are the last ones of
            # the list.
            write_nearest(
                strips.away,
                strips.who,
                found,
                near[first:end],
                far[first:end],
                end - first,
            )


@entry_kernel
def relate(pose: F8, vel: F8, near: I8, drift: F8, poses: F8, velocities: F8) -> None:
    """Write poses and velocities of near robots in the frame of each robot.

    Parameters
    ----------
    pose, vel : (w, n, 3) float64
        Poses, and velocities in the robots' own frames: m, m, rad; m/s, m/s, rad/s.
    near : (w, n, k) int64
        Numbers of near robots; −1: none.
    drift : (n, 2) float64
        Workspace: velocities in the frame of the world, m/s.
    poses, velocities : (w, n, k, 3) float64
        Output, 0 where there is no robot. Headings are in (−π, π].
    """
    for w in range(pose.shape[0]):
        for i in range(pose.shape[1]):
            c, s = cosine_sine(pose[w, i, 2])
            drift[i, 0] = c * vel[w, i, 0] - s * vel[w, i, 1]
            drift[i, 1] = s * vel[w, i, 0] + c * vel[w, i, 1]
        for i in range(pose.shape[1]):
            c, s = cosine_sine(pose[w, i, 2])
            for k in range(near.shape[2]):
                j = near[w, i, k]
                if j < 0:
                    for axis in range(3):
                        poses[w, i, k, axis] = velocities[w, i, k, axis] = 0.0
                    continue

                x, y = pose[w, j, 0] - pose[w, i, 0], pose[w, j, 1] - pose[w, i, 1]
                turn = pose[w, j, 2] - pose[w, i, 2]
                if turn > math.pi:
                    turn -= 2.0 * math.pi
                elif turn <= -math.pi:
                    turn += 2.0 * math.pi
                poses[w, i, k, 0], poses[w, i, k, 1] = c * x + s * y, c * y - s * x
                poses[w, i, k, 2] = turn
                x, y = drift[j, 0], drift[j, 1]
                velocities[w, i, k, 0] = c * x + s * y
                velocities[w, i, k, 1] = c * y - s * x
                velocities[w, i, k, 2] = vel[w, j, 2]


__all__ = ["count_within", "find_nearest", "list_within", "relate"]
