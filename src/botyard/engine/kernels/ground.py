"""Effects of the zones of the floor on bodies: speed limit, slip, odometry scale.

A zone acts on a body whose origin is inside. Worlds without such zones never call these
kernels.
"""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import kernel, merged_kernel
from botyard.engine.layout import (
    F8,
    I8,
    NO_CONTROL,
    NO_DRIVE,
    SCALE,
    SLIP,
    SPEED,
    Bodies,
    Grid,
    State,
)

FIRST_EFFECT = 4
"""Column of `Grid.zones` of the first effect; the columns before it are the bounds."""


@kernel
def is_inside(verts: F8, first: int, last: int, x: float, y: float) -> bool:
    """Return whether a point lies inside a polygon, by the even-odd rule.

    It is the rule of `botyard.model.scene.in_polygon`.

    Parameters
    ----------
    verts : (k, 2) float64
        Corners, m.
    first, last : int
        The polygon has the corners `first` … `last` − 1.
    x, y : float
        Point in the same frame, m.
    """
    found = False
    for v in range(first, last):
        w = v + 1 if v + 1 < last else first
        y1, y2 = verts[v, 1], verts[w, 1]
        if (y1 > y) != (y2 > y):
            x1, x2 = verts[v, 0], verts[w, 0]
            if x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
                found = not found

    return found


@kernel
def zone_effects(
    zones: F8, starts: I8, verts: F8, x: float, y: float
) -> tuple[float, float, float]:
    """Return the effects of the floor at a point.

    The lowest speed limit holds. Of slip and odometry scale, the last zone that has one
    decides.

    Parameters
    ----------
    zones, starts, verts
        `Grid.zones`, `Grid.zone_start` and `Grid.zone_verts`.
    x, y : float
        Point in the world, m.

    Returns
    -------
    tuple of float
        Speed limit, m/s, slip, and odometry scale.
    """
    limit, slip, scale = math.inf, 0.0, 1.0
    for k in range(zones.shape[0]):
        # Most bodies are outside of the bounds of most zones.
        if not (
            zones[k, 0] <= x <= zones[k, 2] and zones[k, 1] <= y <= zones[k, 3]
        ) or not is_inside(verts, starts[k], starts[k + 1], x, y):
            continue

        limit = min(limit, zones[k, FIRST_EFFECT + SPEED])
        # NaN: the zone has no such effect.
        if not math.isnan(zones[k, FIRST_EFFECT + SLIP]):
            slip = zones[k, FIRST_EFFECT + SLIP]
        if not math.isnan(zones[k, FIRST_EFFECT + SCALE]):
            scale = zones[k, FIRST_EFFECT + SCALE]

    return limit, slip, scale


@merged_kernel
def sense_ground(
    state: State, bodies: Bodies, grid: Grid, first: int, end: int
) -> None:
    """Write the effects of the floor on bodies with a drive.

    Parameters
    ----------
    state : State
        State of all bodies before they move.
    bodies : Bodies
        Shapes. Output: `ground`.
    grid : Grid
        Static world with the zones.
    first, end : int
        Rows: the first one, and the row after the last one.
    """
    ground, pose, drive = bodies.ground, state.pose, state.drive
    for i in range(first, end):
        if drive[i] != NO_DRIVE:
            ground[i, SPEED], ground[i, SLIP], ground[i, SCALE] = zone_effects(
                grid.zones, grid.zone_start, grid.zone_verts, pose[i, 0], pose[i, 1]
            )


@kernel
def rolled_share(control: int, ground: F8, i: int) -> float:
    """Return the distance that a body's odometry measures per true distance.

    Wheels that slip roll farther than the body moves.

    Parameters
    ----------
    control : int
        `Control` of the body. Bodies with mass have friction in place of slip.
    ground : (n, 3) float64
        `Bodies.ground`.
    i : int
        Row of the body.
    """
    if control != NO_CONTROL:
        return float(ground[i, SCALE])
    return float(ground[i, SCALE] / (1.0 - ground[i, SLIP]))


__all__ = ["is_inside", "rolled_share", "sense_ground", "zone_effects"]
