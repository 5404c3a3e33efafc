"""Rays in the worlds of a batch, without sensors."""

from __future__ import annotations

from botyard.engine.kernels.beams import away_from_zero
from botyard.engine.kernels.gridwalk import segment_range
from botyard.engine.kernels.identify import wall_ahead
from botyard.engine.kernels.jit import inline_kernel, rows_kernel
from botyard.engine.layout import F8, I8, U2, Bodies, Grid
from botyard.numerics.elementary import cosine_sine


@inline_kernel
def body_ahead(
    bodies: Bodies,
    pose: F8,
    row: int,
    x: float,
    y: float,
    dx: float,
    dy: float,
    best: float,
) -> float:
    """Return the range of a ray to the outline of a body, m, at most `best`.

    Parameters
    ----------
    bodies : Bodies
        Outlines. The kernel reads `verts` (corners in body frames), so that `pose` may
        differ from the poses of the last step.
    pose : (n, 3) float64
        Poses of all bodies in the frame of the world: m, m, rad.
    row : int
        Row of the body.
    x, y : float
        Origin of the ray in the frame of the world, m.
    dx, dy : float
        Direction of the ray, a unit vector.
    best : float
        Present range of the ray, m.
    """
    rx, ry, radius = pose[row, 0] - x, pose[row, 1] - y, bodies.radius[row]
    along = rx * dx + ry * dy
    # The ray misses the circle around the body, points away from it, or ends before it.
    if abs(rx * dy - ry * dx) > radius or along < -radius or along - radius >= best:
        return best

    c, s = cosine_sine(pose[row, 2])
    # Direction of the ray in the body frame, like the origin below.
    ux, uy = c * dx + s * dy, c * dy - s * dx
    ox, oy = -c * rx - s * ry, s * rx - c * ry
    for p in range(bodies.part_start[row], bodies.part_start[row + 1]):
        v0, v1 = bodies.vert_start[p], bodies.vert_start[p + 1]
        ax, ay = bodies.verts[v1 - 1, 0] - ox, bodies.verts[v1 - 1, 1] - oy
        for v in range(v0, v1):
            bx, by = bodies.verts[v, 0] - ox, bodies.verts[v, 1] - oy
            best = segment_range(ax, ay, bx - ax, by - ay, ux, uy, best)
            ax, ay = bx, by

    return best


@rows_kernel
def cast_rays(
    grid: Grid,
    bodies: Bodies,
    rows: I8,
    pose: F8,
    classes: U2,
    xy: F8,
    bearings: F8,
    ranges: F8,
    reach: float,
    mask: int,
) -> None:
    """Write the ranges of rays to the nearest walls and bodies of a world.

    Parameters
    ----------
    grid : Grid
        Static world.
    bodies : Bodies
        Outlines of all bodies.
    rows : (j,) int64
        Rows of the bodies to test.
    pose, classes : (n, 3) float64, (n,) uint16
        Poses, m, m, rad, and `State.mask` of all bodies.
    xy : (k, 2) float64
        Origins of the rays in the frame of the world, m.
    bearings : (k,) float64
        Directions in the frame of the world, rad.
    ranges : (k,) float64
        Output: ranges, m; `reach` where a ray meets nothing.
    reach : float
        Greatest range, m.
    mask : int
        `Visible` classes of walls and bodies that rays meet.
    """
    for k in range(bearings.shape[0]):
        c, s = cosine_sine(bearings[k])
        gx, gy = (xy[k, 0] - grid.x0) / grid.h, (xy[k, 1] - grid.y0) / grid.h
        dx, dy = away_from_zero(c), away_from_zero(s)
        best = min(
            wall_ahead(grid, gx, gy, dx, dy, reach / grid.h, mask) * grid.h, reach
        )
        for j in range(rows.shape[0]):
            if int(classes[rows[j]]) & mask:
                best = body_ahead(
                    bodies, pose, rows[j], xy[k, 0], xy[k, 1], dx, dy, best
                )

        # Adding 0 turns the −0 of a ray that starts at a wall into 0.
        ranges[k] = best + 0.0


__all__ = ["cast_rays"]
