"""Outlines of bodies in the world from their poses. Allocates nothing; any thread."""

from __future__ import annotations

from botyard.engine.kernels.jit import inline_kernel, merged_kernel
from botyard.engine.layout import F8, NO_CONTROL, Bodies, State
from botyard.numerics.elementary import cosine_sine


@inline_kernel
def place_corners(
    verts: F8,
    v0: int,
    v1: int,
    x: float,
    y: float,
    c: float,
    s: float,
    into: F8,
    at: int,
) -> None:
    """Write the corners of a body at a pose.

    Parameters
    ----------
    verts : (n_verts, 2) float64
        Corners in the frames of the bodies, m.
    v0, v1 : int
        Corners of the body: verts[v0:v1].
    x, y : float
        Place of the body in the frame of the world, m.
    c, s : float
        Cosine and sine of the body's heading.
    into : (m, 2) float64
        Output: corners in the frame of the world, m, from row `at` on.
    at : int
        First row of `into`.
    """
    for v in range(v0, v1):
        vx, vy = verts[v, 0], verts[v, 1]
        into[at + v - v0, 0] = x + c * vx - s * vy
        into[at + v - v0, 1] = y + s * vx + c * vy


@merged_kernel
def place_outlines(state: State, bodies: Bodies, first: int, end: int) -> bool:
    """Write `Bodies.world` for bodies whose pose or mask has changed.

    A step keeps both up to date. Differences come from placements, and from bodies that
    become solid or stop being so. They invalidate the known distances between bodies,
    see `forget_leeways`.

    Parameters
    ----------
    state : State
        State of all bodies.
    bodies : Bodies
        Shapes. In-place: `world`, `placed`, which holds the previous values.
    first, end : int
        Rows: the first one, and the row after the last one.

    Returns
    -------
    bool
        Whether the known distances are invalid.
    """
    pose, placed, part_start, vert_start = (
        state.pose,
        bodies.placed,
        bodies.part_start,
        bodies.vert_start,
    )
    mask, verts, world, control = (
        state.mask,
        bodies.verts,
        bodies.world,
        state.control,
    )
    is_invalid = False

    for i in range(first, end):
        x, y, th = pose[i, 0], pose[i, 1], pose[i, 2]
        if (
            x != placed[i, 0]
            or y != placed[i, 1]
            or th != placed[i, 2]
            or mask[i] != placed[i, 5]
        ):
            c, s = cosine_sine(th)
            placed[i, 0], placed[i, 1], placed[i, 2], placed[i, 3], placed[i, 4] = (
                x,
                y,
                th,
                c,
                s,
            )

            # A body with mass stops no other body: its pose does not affect the leeway
            # of others, but its mask may.
            is_invalid = (
                is_invalid or control[i] == NO_CONTROL or mask[i] != placed[i, 5]
            )
            placed[i, 5] = mask[i]
            v0, v1 = vert_start[part_start[i]], vert_start[part_start[i + 1]]
            place_corners(verts, v0, v1, x, y, c, s, world, v0)

    return is_invalid


@merged_kernel
def forget_leeways(bodies: Bodies) -> None:
    """Invalidate the known distances between bodies.

    Parameters
    ----------
    bodies : Bodies
        Shapes. Output: `leeway`.
    """
    leeway = bodies.leeway
    for i in range(leeway.shape[0]):
        leeway[i] = 0.0
