"""ORCA: optimal reciprocal collision avoidance.

van den Berg, Guy, Lin, Manocha, "Reciprocal n-body collision avoidance", Robotics
Research (STAR 70), 2011.

Each pair of robots shares the change of velocity that keeps them apart for a time. For
one robot, each neighbour leaves a half-plane of velocities (§4.1 of the paper). The new
velocity is the one nearest to the preferred velocity, within all half-planes and the
maximum speed (§4.2): a linear program. If no velocity satisfies all half-planes, the
new velocity violates the robots' half-planes least (§5.2, densely packed conditions).
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
"""Length below which a vector has no direction, m and m/s."""


class OrcaRules(NamedTuple):
    """Parameters of ORCA.

    Attributes
    ----------
    horizon, wall_horizon : float
        Time for which robots, and walls, are avoided (τ of the paper), s.
    reach : float
        Robots with centres farther away are ignored, m.
    dt : float
        Duration of a step, s. Robots that overlap separate within it, if they can.
    """

    horizon: float
    wall_horizon: float
    reach: float
    dt: float


@kernel
def change_of(
    rx: float, ry: float, vx: float, vy: float, apart: float, horizon: float, dt: float
) -> tuple[float, float, float, float]:
    """Return the smallest change u of a relative velocity v that avoids a collision.

    The velocity obstacle contains all v that lead into a disc around r within the
    horizon: a cone, cut off by a disc around r / τ (§3).

    Parameters
    ----------
    rx, ry : float
        Position r of the neighbour relative to the robot, m.
    vx, vy : float
        Velocity v of the robot relative to the neighbour, m/s.
    apart : float
        Sum of the two radii, m, above 0.
    horizon : float
        Time τ for which the neighbour is avoided, s.
    dt : float
        Duration of a step, s: the time in which overlapping robots separate.

    Returns
    -------
    ux, uy : float
        The change u, m/s. It points inwards, against n, if v is outside of the
        obstacle.
    nx, ny : float
        Outward normal n of the velocity obstacle at v + u, of length 1.
    """
    away2 = rx * rx + ry * ry
    # Overlapping robots: only the disc counts, with the duration of a step as its time.
    time = horizon if away2 > apart * apart else dt
    wx, wy = vx - rx / time, vy - ry / time
    w = math.sqrt(wx * wx + wy * wy)
    along = wx * rx + wy * ry
    # The disc is nearer than the edges of the cone.
    if away2 <= apart * apart or (
        along < 0.0 and along * along > apart * apart * w * w
    ):
        # Two robots at one position and with one velocity have no normal: both move
        # apart in fixed directions.
        if w > NOTHING:
            nx, ny = wx / w, wy / w
        elif away2 > NOTHING * NOTHING:
            away = math.sqrt(away2)
            nx, ny = -rx / away, -ry / away
        else:
            nx, ny = 1.0, 0.0

        size = apart / time - w
        return size * nx, size * ny, nx, ny

    # Length of the tangent from the robot to the disc: the edge of the cone.
    leg = math.sqrt(away2 - apart * apart)
    # The left edge of the cone is the nearer one.
    if rx * wy - ry * wx > 0.0:
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
    """Compute the half-plane of velocities that do not reach a wall in time.

    The half-plane is tangent to the wall's velocity obstacle at the point nearest to
    velocity 0. A robot among walls alone can therefore always stop (§5.3 of the paper:
    static obstacles).

    Parameters
    ----------
    walls : (k, w, 4) float64
        End points of walls near each agent, m.
    k, w : int
        Indices of the agent and of the wall.
    x, y : float
        Position of the agent, m.
    radius : float
        Radius of the agent, m.
    horizon : float
        Time for which the wall is avoided, s.
    out : (3,) float64
        Output: the half-plane (nx, ny, c), c in m/s.
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
    """Compute new velocities of all agents.

    Parameters
    ----------
    agents : Agents
        Discs and walls, and the output.
    rules : OrcaRules
        Parameters.
    planes, work : (w + m, 3) float64
        Workspace for half-planes, one per wall and disc.
    """
    for k in range(agents.chosen.shape[0]):
        world, me = agents.chosen[k, 0], agents.chosen[k, 1]
        x, y = agents.position[world, me, 0], agents.position[world, me, 1]
        vx, vy = agents.velocity[world, me, 0], agents.velocity[world, me, 1]
        radius = agents.radius[world, me]
        count = 0
        for w in range(agents.walls.shape[1]):
            # Unused rows are the last ones.
            if math.isnan(agents.walls[k, w, 0]):
                break
            wall_plane(
                agents.walls, k, w, x, y, radius, rules.wall_horizon, planes[count]
            )
            count += 1

        # Walls do not evade, so their half-planes are never relaxed in favour of
        # robots.
        hard = count
        for other in range(agents.radius.shape[1]):
            rx, ry = (
                agents.position[world, other, 0] - x,
                agents.position[world, other, 1] - y,
            )
            apart = radius + agents.radius[world, other]
            # A comparison with NaN is false, so `not` also skips discs that do not
            # exist.
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
            # Each robot takes half of the change: all v with (v − (v_own + u / 2)) · n
            # ≥ 0.
            planes[count, 0], planes[count, 1] = nx, ny
            planes[count, 2] = (vx + 0.5 * ux) * nx + (vy + 0.5 * uy) * ny
            count += 1

        top = agents.max_speed[k]
        ended, ox, oy = best_within(
            planes, count, top, agents.preferred[k, 0], agents.preferred[k, 1], False
        )
        # The robot overlaps walls that contradict each other, so walls may be violated
        # as well.
        if ended < hard:
            hard = 0
        if ended < count:
            ox, oy = least_violating(planes, hard, count, ended, top, ox, oy, work)
        agents.result[k, 0], agents.result[k, 1] = ox, oy
