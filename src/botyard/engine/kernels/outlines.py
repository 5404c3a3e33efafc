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
    """Write corners verts[v0:v1] of a body at (`x`, `y`) to `into` from row `at`.

    `c` and `s` are cosine and sine of the heading.
    """
    for v in range(v0, v1):
        vx, vy = verts[v, 0], verts[v, 1]
        into[at + v - v0, 0] = x + c * vx - s * vy
        into[at + v - v0, 1] = y + s * vx + c * vy


@merged_kernel
def place_outlines(state: State, bodies: Bodies, forget: bool) -> None:
    """Write `Bodies.world` for bodies whose pose or mask has changed.

    `Bodies.placed` holds the previous values.

    A step keeps both up to date. Differences come from placements, and from bodies that
    become solid or stop being so. They invalidate the known distances between bodies
    (`Bodies.leeway`), and so does `forget`.
    """
    pose, placed, part_start, vert_start = (
        state.pose,
        bodies.placed,
        bodies.part_start,
        bodies.vert_start,
    )
    mask, verts, world, leeway, control = (
        state.mask,
        bodies.verts,
        bodies.world,
        bodies.leeway,
        state.control,
    )
    for i in range(pose.shape[0]):
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
            forget = forget or control[i] == NO_CONTROL or mask[i] != placed[i, 5]
            placed[i, 5] = mask[i]
            v0, v1 = vert_start[part_start[i]], vert_start[part_start[i + 1]]
            place_corners(verts, v0, v1, x, y, c, s, world, v0)

    if forget:
        for i in range(pose.shape[0]):
            leeway[i] = 0.0
