"""Putting the outlines of bodies where the bodies are. Allocates nothing; any thread."""

from __future__ import annotations

import math

from botyard.engine.kernels.jit import inner_kernel
from botyard.engine.layout import F8, Bodies, State


@inner_kernel
def place_corners(verts: F8, v0: int, v1: int, x: float, y: float, th: float, into: F8, at: int) -> None:
    """Write the corners verts[v0:v1] of a body at the pose (`x`, `y`, `th`) to `into`, from row `at` on."""
    c, s = math.cos(th), math.sin(th)
    for v in range(v0, v1):
        vx, vy = verts[v, 0], verts[v, 1]
        into[at + v - v0, 0] = x + c * vx - s * vy
        into[at + v - v0, 1] = y + s * vx + c * vy


@inner_kernel
def place_outlines(state: State, bodies: Bodies) -> None:
    """Write the corners of all bodies in the world, `Bodies.world`, from their poses."""
    pose, verts, world = state.pose, bodies.verts, bodies.world
    for i in range(pose.shape[0]):
        v0, v1 = bodies.vert_start[bodies.part_start[i]], bodies.vert_start[bodies.part_start[i + 1]]
        place_corners(verts, v0, v1, pose[i, 0], pose[i, 1], pose[i, 2], world, v0)
