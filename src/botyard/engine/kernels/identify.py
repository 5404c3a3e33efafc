"""Ray casting that identifies the hit body, for fiducial and blob finders.

It is plain and short; range sensors have their own kernels.
"""

from __future__ import annotations

from botyard.engine.kernels.beams import away_from_zero
from botyard.engine.kernels.gridwalk import aim, segment_range, stride
from botyard.engine.kernels.jit import entry_kernel, inline_kernel
from botyard.engine.layout import F8, I8, U1, WALL, Bodies, Grid, World
from botyard.numerics.elementary import cosine_sine

NOTHING = -2
"""Value in place of a body's row or `WALL`: nothing was hit."""


@inline_kernel
def wall_hit(
    grid: Grid, gx: float, gy: float, dx: float, dy: float, best: float, mask: int
) -> tuple[float, int]:
    """Return the range of a ray to a wall, cells, at most `best`, and the entry that it hits.

    Parameters
    ----------
    grid : Grid
        Static world.
    gx, gy : float
        Origin of the ray from the lower left corner of the grid, cells.
    dx, dy : float
        Direction of the ray, a unit vector without zeros, see `away_from_zero`.
    best : float
        Present range of the ray, cells.
    mask : int
        `Visible` classes of the walls that end the ray.

    Returns
    -------
    tuple of (float, int)
        Range, cells, and the number of the wall's entry in `Grid.seg`; −1 for no wall.
    """
    nx, ny, start, seg, classes, clear = (
        grid.nx,
        grid.ny,
        grid.start,
        grid.seg,
        grid.mask,
        grid.clear_flat,
    )

    # This is a simple version of `gridwalk.walk_beams` for single rays.
    walk = aim(gx, gy, dx, dy, nx, ny, best)
    sx, sy, base, quadrant, ix, iy, t = (
        walk[6],
        walk[7],
        walk[8],
        walk[9],
        walk[10],
        walk[11],
        walk[12],
    )

    entry = -1
    while t < best:
        cell = base + ix * sx + iy * sy
        side = int(clear[quadrant + cell])
        # Test each entry of a cell that has some. From any other cell, jump over the
        # free square.
        if side == 0:
            for n in range(start[cell], start[cell + 1]):
                if int(classes[n]) & mask:
                    r = segment_range(
                        seg[n, 0] - gx,
                        seg[n, 1] - gy,
                        seg[n, 2],
                        seg[n, 3],
                        dx,
                        dy,
                        best,
                    )
                    if r < best:
                        best, entry = r, n

            side = 1

        ix, iy, t = stride(walk, ix, iy, side, nx, ny)

    return best, entry


@inline_kernel
def wall_ahead(
    grid: Grid, gx: float, gy: float, dx: float, dy: float, best: float, mask: int
) -> float:
    """Return the range of a ray to a wall, cells, at most `best`; see `wall_hit`."""
    return wall_hit(grid, gx, gy, dx, dy, best, mask)[0]


@inline_kernel
def body_ahead(
    bodies: Bodies,
    row: int,
    rx: float,
    ry: float,
    x: float,
    y: float,
    dx: float,
    dy: float,
    best: float,
) -> tuple[float, float, float]:
    """Return the range of a ray to the outline of a body, at most `best`, and the edge hit.

    Parameters
    ----------
    bodies : Bodies
        Outlines of all bodies.
    row : int
        Row of the body.
    rx, ry : float
        Position of the body from the origin of the ray, m.
    x, y : float
        Origin of the ray, m.
    dx, dy : float
        Direction of the ray, a unit vector without zeros.
    best : float
        Present range of the ray, m.

    Returns
    -------
    tuple of float
        Range, m, and the vector along the edge that is hit, m; zeros for no edge.
    """
    corners, radius = bodies.world, bodies.radius[row]
    along = rx * dx + ry * dy
    ex = ey = 0.0
    # The ray misses the circle around the body, points away from it, or ends
    # before it: there is no outline to test.
    if abs(rx * dy - ry * dx) > radius or along < -radius or along - radius >= best:
        return best, ex, ey

    for p in range(bodies.part_start[row], bodies.part_start[row + 1]):
        v0, v1 = bodies.vert_start[p], bodies.vert_start[p + 1]
        ax, ay = corners[v1 - 1, 0] - x, corners[v1 - 1, 1] - y
        for v in range(v0, v1):
            bx, by = corners[v, 0] - x, corners[v, 1] - y
            r = segment_range(ax, ay, bx - ax, by - ay, dx, dy, best)
            if r < best:
                best, ex, ey = r, bx - ax, by - ay
            ax, ay = bx, by

    return best, ex, ey


@entry_kernel
def look(
    world: World,
    seen: U1,
    eye: int,
    x: float,
    y: float,
    bearings: F8,
    reach: float,
    mask: int,
    ranges: F8,
    rows: I8,
) -> None:
    """Find the nearest thing in each of some directions.

    Parameters
    ----------
    world : World
        Arrays of the world.
    seen : (n,) uint8 array
        1: the body can be hit.
    eye : int
        Row of the body that looks; it does not see itself.
    x, y : float
        Origin of the rays, m.
    bearings : (k,) float64 array
        Directions in the world frame, rad.
    reach : float
        Length of the rays, m.
    mask : int
        `Visible` classes of the walls that end a ray.
    ranges : (k,) float64 array
        Output, m; `reach` if nothing is hit.
    rows : (k,) int64 array
        Output: row of the hit body, `WALL` or `NOTHING`.
    """
    grid, bodies, pose = world.grid, world.bodies, world.state.pose
    h = grid.h
    gx, gy = (x - grid.x0) / h, (y - grid.y0) / h
    for k in range(bearings.shape[0]):
        c, s = cosine_sine(bearings[k])
        dx, dy = away_from_zero(c), away_from_zero(s)
        hit = NOTHING
        best = wall_ahead(grid, gx, gy, dx, dy, reach / h, mask)
        if best < reach / h:
            hit = WALL
        best *= h

        for other in range(pose.shape[0]):
            # The device sees neither its own body nor bodies that the caller excludes.
            if other == eye or seen[other] == 0:
                continue

            rx, ry = pose[other, 0] - x, pose[other, 1] - y
            r, _, _ = body_ahead(bodies, other, rx, ry, x, y, dx, dy, best)
            if r < best:
                best, hit = r, other

        ranges[k], rows[k] = best, hit
