"""The social force model of pedestrians.

The forces are equations (1) to (3) of Helbing, Farkas, Vicsek, "Simulating dynamical
features of escape panic", Nature 407, 2000:

    m dv_i/dt = m (v⁰_i e⁰_i − v_i) / τ + Σ_j f_ij + Σ_W f_iW
    f_ij = {A exp[(r_ij − d_ij) / B] + k g(r_ij − d_ij)} n_ij + κ g(r_ij − d_ij) Δv^t_ji
    t_ij
    f_iW = {A exp[(r_i − d_iW) / B] + k g(r_i − d_iW)} n_iW − κ g(r_i − d_iW) (v_i ·
    t_iW) t_iW

g(x) is x for bodies in contact, otherwise 0. From Helbing, Molnár, "Social force model
for pedestrian dynamics", Physical Review E 51, 1995, come the smaller weight of bodies
out of sight (c and φ) and the speed limit, a multiple of the preferred speed (v_max =
1.3 v⁰).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.agents import Agents
from botyard.navigation.kernels.jit import entry_kernel, kernel
from botyard.navigation.kernels.walls import nearest_on
from botyard.numerics.exponentials import exp

F8 = NDArray[np.float64]

NOTHING = 1e-12
"""Length below which a vector has no direction, m and m/s."""
SUBSTEP_S = 0.02
"""Maximum duration of an integration step, s: the forces of contacts are stiff."""
EXPONENT_LIMIT = 30.0
"""Maximum argument of the exponential. Deeper overlaps do not repel more."""


class ForceRules(NamedTuple):
    """Parameters of the model for the mass 1, so that forces are accelerations.

    Attributes
    ----------
    relaxation : float
        τ, s.
    strength, range : float
        A / m, m/s², and B, m.
    stiffness, friction : float
        k / m, 1/s², and κ / m, 1/(m s).
    unseen : float
        Fraction c of a force from outside of the field of view.
    sight_cosine : float
        Cosine of half of the field of view, φ.
    reach : float
        Bodies with centres farther away are ignored, m.
    dt : float
        Duration of a step, s.
    """

    relaxation: float
    strength: float
    range: float
    stiffness: float
    friction: float
    unseen: float
    sight_cosine: float
    reach: float
    dt: float


@kernel
def push(
    nx: float, ny: float, gap: float, vx: float, vy: float, rules: ForceRules
) -> tuple[float, float]:
    """Return the acceleration of an agent that one body or wall causes.

    Parameters
    ----------
    nx, ny : float
        Direction from the body to the agent, of length 1.
    gap : float
        Distance between the surfaces, m; below 0 for a contact.
    vx, vy : float
        Velocity of the body relative to the agent, m/s.
    rules : ForceRules
        Parameters.

    Returns
    -------
    ax, ay : float
        Acceleration, m/s².
    """
    size = rules.strength * exp(min(-gap / rules.range, EXPONENT_LIMIT))
    slide = 0.0
    # Contact: the bodies overlap, which adds stiffness and friction.
    if gap < 0.0:
        size += rules.stiffness * -gap
        slide = rules.friction * -gap * (vy * nx - vx * ny)

    return size * nx - slide * ny, size * ny + slide * nx


@kernel
def social_push(
    agents: Agents,
    rules: ForceRules,
    k: int,
    x: float,
    y: float,
    vx: float,
    vy: float,
    time: float,
) -> tuple[float, float]:
    """Return the acceleration of an agent that all other bodies and walls cause.

    Parameters
    ----------
    agents : Agents
        Discs and walls at the start of the step.
    rules : ForceRules
        Parameters.
    k : int
        Index of the agent.
    x, y : float
        Current position of the agent, m.
    vx, vy : float
        Current velocity of the agent, m/s.
    time : float
        Time since the start of the step, s. The others have moved straight on for it.

    Returns
    -------
    ax, ay : float
        Acceleration, m/s².
    """
    world, me = agents.chosen[k, 0], agents.chosen[k, 1]
    radius = agents.radius[world, me]
    px, py = agents.preferred[k, 0], agents.preferred[k, 1]
    wanted = math.sqrt(px * px + py * py)
    ax, ay = 0.0, 0.0
    for other in range(agents.radius.shape[1]):
        ox, oy = agents.velocity[world, other, 0], agents.velocity[world, other, 1]
        dx, dy = (
            x - agents.position[world, other, 0] - ox * time,
            y - agents.position[world, other, 1] - oy * time,
        )
        away2 = dx * dx + dy * dy
        if (
            other == me
            or not away2 <= rules.reach * rules.reach
            or math.isnan(agents.radius[world, other])
        ):
            continue

        away = math.sqrt(away2)
        nx, ny = (dx / away, dy / away) if away > NOTHING else (1.0, 0.0)
        fx, fy = push(
            nx, ny, away - radius - agents.radius[world, other], ox - vx, oy - vy, rules
        )
        # A body is seen if e · (−f) ≥ |f| cos φ (Helbing & Molnár 1995). A touching
        # body is felt in any case.
        if (
            away > radius + agents.radius[world, other]
            and wanted > NOTHING
            and -(px * nx + py * ny) < rules.sight_cosine * wanted
        ):
            fx, fy = fx * rules.unseen, fy * rules.unseen

        ax, ay = ax + fx, ay + fy

    for w in range(agents.walls.shape[1]):
        if math.isnan(agents.walls[k, w, 0]):
            break
        sx, sy = agents.walls[k, w, 0], agents.walls[k, w, 1]
        qx, qy = nearest_on(
            sx, sy, agents.walls[k, w, 2] - sx, agents.walls[k, w, 3] - sy, x, y
        )
        dx, dy = x - qx, y - qy
        is_new = True
        # Two walls that meet in a corner share it as their nearest point: it repels
        # only once.
        for before in range(w):
            sx, sy = agents.walls[k, before, 0], agents.walls[k, before, 1]
            bx, by = nearest_on(
                sx,
                sy,
                agents.walls[k, before, 2] - sx,
                agents.walls[k, before, 3] - sy,
                x,
                y,
            )
            is_new = is_new and abs(bx - qx) + abs(by - qy) > 1e-6

        if is_new:
            away = math.sqrt(dx * dx + dy * dy)
            nx, ny = (dx / away, dy / away) if away > NOTHING else (1.0, 0.0)
            fx, fy = push(nx, ny, away - radius, -vx, -vy, rules)
            ax, ay = ax + fx, ay + fy

    return ax, ay


@entry_kernel
def social_force(agents: Agents, rules: ForceRules) -> None:
    """Compute displacement divided by time, and final velocity, of all agents.

    Both are in `Agents.result`, (k, 4). An agent that drives with the first for the
    whole step arrives where the model does. Others move straight on meanwhile. The
    drive towards the preferred velocity is integrated exactly. Forces are constant in a
    substep, and positions follow the mean of the velocities at its ends.

    Parameters
    ----------
    agents : Agents
        Discs and walls, and the output: displacement divided by time, and final
        velocity, m/s.
    rules : ForceRules
        Parameters.
    """
    # The small constant keeps rounding from adding a substep to an exact multiple.
    substeps = max(1, int(math.ceil(rules.dt / SUBSTEP_S - 1e-9)))
    h = rules.dt / substeps
    # Exact integral of exp(−t / τ) over the substep: it is stable for any τ.
    grow = rules.relaxation * (1.0 - exp(-h / rules.relaxation))
    for k in range(agents.chosen.shape[0]):
        world, me = agents.chosen[k, 0], agents.chosen[k, 1]
        x0, y0 = agents.position[world, me, 0], agents.position[world, me, 1]
        x, y = x0, y0
        vx, vy = agents.velocity[world, me, 0], agents.velocity[world, me, 1]
        top = agents.max_speed[k]
        for step in range(substeps):
            ax, ay = social_push(agents, rules, k, x, y, vx, vy, step * h)
            was_x, was_y = vx, vy
            vx += grow * (ax + (agents.preferred[k, 0] - vx) / rules.relaxation)
            vy += grow * (ay + (agents.preferred[k, 1] - vy) / rules.relaxation)
            speed = math.sqrt(vx * vx + vy * vy)
            # The limit of the model, see `Agents.max_speed`.
            if speed > top:
                vx, vy = vx * (top / speed), vy * (top / speed)
            x, y = x + 0.5 * h * (was_x + vx), y + 0.5 * h * (was_y + vy)

        agents.result[k, 0], agents.result[k, 1] = (
            (x - x0) / rules.dt,
            (y - y0) / rules.dt,
        )
        agents.result[k, 2], agents.result[k, 3] = vx, vy
