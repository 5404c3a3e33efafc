"""ORCA: van den Berg, Guy, Lin, Manocha, "Reciprocal n-body collision avoidance",
Robotics Research (STAR 70), 2011.

Each pair of robots shares the change of velocities that keeps them apart for a time.
For one robot that gives a half-plane of velocities for each neighbour (§4.1 of the
paper), and its new velocity is the one within all of them, and not faster than it can,
that is nearest to the preferred one (§4.2): a linear program. If there is none, it is
the one that violates the half-planes of robots least (§5.2, densely packed conditions).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.agents import Agents
from botyard.navigation.kernels.halfplanes import best_within, least_violating
from botyard.navigation.kernels.jit import entry_kernel, inline_kernel, kernel
from botyard.navigation.kernels.walls import nearest_on

F8 = NDArray[np.float64]

NOTHING = 1e-12
"""Shorter vectors have no direction, m and m/s."""


class OrcaRules(NamedTuple):
    """Parameters of ORCA.

    Attributes
    ----------
    horizon, wall_horizon : float
        Robots, and walls, are avoided for so long (τ of the paper), s.
    reach : float
        Robots whose middles are farther away are not looked at, m.
    dt : float
        Time of a step, s: robots that overlap are apart after it, if they can.
    """

    horizon: float
    wall_horizon: float
    reach: float
    dt: float


@kernel
def change_of(
    rx: float, ry: float, vx: float, vy: float, apart: float, horizon: float, dt: float
) -> tuple[float, float, float, float]:
    """The smallest change u of a relative velocity v that leaves the velocity obstacle
    of a neighbour, and the outward normal n there.

    The velocity obstacle holds all v that lead into the disc of radius `apart` around r
    within `horizon`: a cone that a disc around r / τ cuts off (§3). r: position of the
    neighbour, relative to the robot; v: velocity of the robot, relative to the
    neighbour.
    """
    away2 = rx * rx + ry * ry
    time = (
        horizon if away2 > apart * apart else dt
    )  # they overlap: only the disc counts, with the time of a step
    wx, wy = vx - rx / time, vy - ry / time
    w = math.sqrt(wx * wx + wy * wy)
    along = wx * rx + wy * ry
    if away2 <= apart * apart or (
        along < 0.0 and along * along > apart * apart * w * w
    ):  # the disc is nearest
        if w > NOTHING:
            nx, ny = wx / w, wy / w
        elif away2 > NOTHING * NOTHING:
            away = math.sqrt(away2)
            nx, ny = -rx / away, -ry / away
        else:
            # one within the other: away from both sides alike
            nx, ny = 1.0, 0.0

        size = apart / time - w
        return size * nx, size * ny, nx, ny

    leg = math.sqrt(away2 - apart * apart)
    if rx * wy - ry * wx > 0.0:  # the left edge of the cone
        dx, dy = (rx * leg - ry * apart) / away2, (rx * apart + ry * leg) / away2
        nx, ny = -dy, dx
    else:
        dx, dy = (rx * leg + ry * apart) / away2, (ry * leg - rx * apart) / away2
        nx, ny = dy, -dx

    outside = -(vx * nx + vy * ny)
    return outside * nx, outside * ny, nx, ny


@inline_kernel
def wall_plane(
    walls: F8,
    k: int,
    w: int,
    x: float,
    y: float,
    radius: float,
    horizon: float,
    out: F8,
) -> None:
    """Write the half-plane of velocities that reach a wall within `horizon` not at all.

    It is tangent to the wall's velocity obstacle at the point that is nearest to the
    velocity 0, which a robot among walls alone always has left (§5.3 of the paper:
    static obstacles).
    """
    ax, ay = walls[k, w, 0], walls[k, w, 1]
    px, py = nearest_on(ax, ay, walls[k, w, 2] - ax, walls[k, w, 3] - ay, x, y)
    nx, ny = x - px, y - py
    away = math.sqrt(nx * nx + ny * ny)
    if away > NOTHING:
        nx, ny = nx / away, ny / away
    else:
        nx, ny = 1.0, 0.0

    out[0], out[1], out[2] = nx, ny, (radius - away) / horizon


@entry_kernel
def orca(agents: Agents, rules: OrcaRules, planes: F8, work: F8) -> None:
    """New velocities of all chosen agents. `planes`, `work`: (w + m, 3) float64,
    workspaces for half-planes.
    """
    for k in range(agents.chosen.shape[0]):
        world, me = agents.chosen[k, 0], agents.chosen[k, 1]
        x, y = agents.position[world, me, 0], agents.position[world, me, 1]
        vx, vy = agents.velocity[world, me, 0], agents.velocity[world, me, 1]
        radius = agents.radius[world, me]
        count = 0
        for w in range(agents.walls.shape[1]):
            if math.isnan(agents.walls[k, w, 0]):
                break
            wall_plane(
                agents.walls, k, w, x, y, radius, rules.wall_horizon, planes[count]
            )
            count += 1

        hard = count
        for other in range(agents.radius.shape[1]):
            rx, ry = (
                agents.position[world, other, 0] - x,
                agents.position[world, other, 1] - y,
            )
            apart = radius + agents.radius[world, other]
            if (
                other == me
                or not rx * rx + ry * ry <= rules.reach * rules.reach
                or not apart > 0.0
            ):
                continue

            ux, uy, nx, ny = change_of(
                rx,
                ry,
                vx - agents.velocity[world, other, 0],
                vy - agents.velocity[world, other, 1],
                apart,
                rules.horizon,
                rules.dt,
            )
            # half of the change each: all v with (v − (v_own + u / 2)) · n ≥ 0
            planes[count, 0], planes[count, 1] = nx, ny
            planes[count, 2] = (vx + 0.5 * ux) * nx + (vy + 0.5 * uy) * ny
            count += 1

        top = agents.max_speed[k]
        ended, ox, oy = best_within(
            planes, count, top, agents.preferred[k, 0], agents.preferred[k, 1], False
        )
        if (
            ended < hard
        ):  # between walls that it overlaps: no wall is more than the others
            hard = 0

        if ended < count:
            ox, oy = least_violating(planes, hard, count, ended, top, ox, oy, work)
        agents.result[k, 0], agents.result[k, 1] = ox, oy
