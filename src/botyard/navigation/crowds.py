"""Collision avoidance between bodies of many worlds.

The methods are ORCA and the social force model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ArgumentError
from botyard.navigation.kernels import agents as kernels
from botyard.navigation.kernels.agents import Agents
from botyard.navigation.kernels.orca import OrcaRules
from botyard.navigation.kernels.orca import orca as orca_kernel
from botyard.navigation.kernels.socialforce import ForceRules
from botyard.navigation.kernels.socialforce import social_force as social_force_kernel
from botyard.numerics.elementary import cos
from botyard.units import from_deg

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

AHEAD_SHARE: Final = 0.5
"""Offset of a differential robot's disc from the axle, as a fraction of the robot's radius.

The centre of the disc is ahead of the axle by this distance.
"""
HEADING_GAIN: Final = 2.0
"""Turn rate of a holonomic body per radian between its heading and its motion, 1/s."""
FOLLOWED: Final = 0.02
"""Maximum relative error at which a velocity counts as following its command."""
REACH_M: Final = 10.0
"""Distance between centres beyond which bodies are ignored, m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forces:
    """Parameters of the social force model.

    Attributes
    ----------
    relaxation : float
        Time constant τ with which a pedestrian reaches the preferred velocity, s.
    strength : float
        Repulsion A / m, m/s² (2000 N / 80 kg).
    range : float
        Length B of the repulsion's decay, m.
    stiffness : float
        Stiffness of bodies in contact, k / m, 1/s² (1.2e5 kg/s² / 80 kg).
    friction : float
        Sliding friction of bodies in contact, κ / m, 1/(m s) (2.4e5 kg/(m s) / 80 kg).
    unseen : float
        Fraction of a force from outside of the field of view (Helbing & Molnár 1995:
        0.5).
    sight : float
        Half of the field of view, rad (Helbing & Molnár 1995: 100°).
    """

    relaxation: float = 0.5
    strength: float = 25.0
    range: float = 0.08
    stiffness: float = 1500.0
    friction: float = 3000.0
    unseen: float = 0.5
    sight: float = from_deg(100.0)


def discs(pose: F8, vel: F8, ahead: F8) -> tuple[F8, F8]:
    """Return positions and velocities of the discs that represent bodies.

    Parameters
    ----------
    pose, vel : (n, m, 3) float64
        Poses, and velocities in the frames of the bodies, as `Worlds.pose` and
        `Worlds.vel`.
    ahead : (n, m) float64
        Distance of each disc's centre ahead of the body's origin, m. It is 0 for
        holonomic bodies. For others it is a fraction of the radius, and the radius of
        the disc must be larger by this distance.

    Returns
    -------
    position, velocity : (n, m, 2) float64
        Positions and velocities in the frame of the world, m and m/s.
    """
    position, velocity = np.empty((*pose.shape[:2], 2)), np.empty((*pose.shape[:2], 2))
    kernels.discs(
        np.ascontiguousarray(pose),
        np.ascontiguousarray(vel),
        np.ascontiguousarray(ahead),
        position,
        velocity,
    )
    return position, velocity


def commands(velocity: F8, heading: F8, ahead: F8, max_w: F8, dt: float) -> F8:
    """Return the robot commands that give discs their velocities.

    Parameters
    ----------
    velocity : (k, 2) float64
        Velocities of the discs in the frame of the world, m/s.
    heading : (k,) float64
        Headings, rad.
    ahead : (k,) float64
        Offsets of the discs as for `discs`, m.
    max_w : (k,) float64
        Maximum yaw rates, rad/s.
    dt : float
        Duration of a step, s.

    Returns
    -------
    (k, 3) float64
        vx, vy and yaw rate in the frames of the bodies, m/s, m/s and rad/s.
    """
    result = np.empty((len(velocity), 3))
    kernels.commands(
        *(
            np.ascontiguousarray(a, np.float64)
            for a in (velocity, heading, ahead, max_w)
        ),
        HEADING_GAIN,
        dt,
        result,
    )
    return result


def orca(
    position: F8,
    velocity: F8,
    radius: F8,
    preferred: F8,
    max_speed: F8,
    *,
    dt: float,
    walls: F8 | None = None,
    chosen: I8 | None = None,
    horizon: float = 2.0,
    wall_horizon: float = 0.5,
    reach: float = REACH_M,
) -> F8:
    """Return new velocities by optimal reciprocal collision avoidance.

    The method is by van den Berg et al. 2011.

    Parameters
    ----------
    position, velocity : (n, m, 2) float64
        Positions and velocities of m discs in each of n worlds, m and m/s.
    radius : (n, m) float64
        Radii, m; NaN for a disc that does not exist.
    preferred : (k, 2) float64
        Velocities that agents would choose if they were alone, m/s.
    max_speed : (k,) float64
        Maximum speeds of agents, m/s.
    dt : float
        Duration of a step, s.
    walls : (k, w, 4) float64, optional
        Walls near each agent, as from `Worlds.near_walls`, m.
    chosen : (k, 2) int64, optional
        World and number of each agent. By default all discs are agents: k = n · m,
        world by world.
    horizon, wall_horizon : float
        Time ahead in which collisions with other discs, and with walls, are avoided, s.
    reach : float
        Bodies with centres farther away are ignored, m.

    Returns
    -------
    (k, 2) float64
        Velocities in the frame of the world, m/s.

    Raises
    ------
    ArgumentError
        An array has another shape, an agent does not exist, or a number is out of its
        range.
    """
    agents = _agents(position, velocity, radius, preferred, max_speed, walls, chosen)
    _check_positive(dt=dt, horizon=horizon, wall_horizon=wall_horizon, reach=reach)
    rows = agents.walls.shape[1] + radius.shape[1]
    rules = OrcaRules(float(horizon), float(wall_horizon), float(reach), float(dt))
    orca_kernel(agents, rules, np.empty((rows, 3)), np.empty((rows, 3)))
    return agents.result


def social_force(
    position: F8,
    velocity: F8,
    radius: F8,
    preferred: F8,
    max_speed: F8,
    *,
    dt: float,
    walls: F8 | None = None,
    chosen: I8 | None = None,
    forces: Forces = Forces(),
    reach: float = REACH_M,
    ends: F8 | None = None,
) -> F8:
    """Return new velocities by the social force model (Helbing, Farkas, Vicsek 2000).

    The arrays are as for `orca`. The model accelerates within a step. The returned
    velocities are the model's displacement divided by the duration of the step: an
    agent that keeps them for a step arrives where the model does. The model's velocity
    is then `ends`, which belongs in `velocity` of the next step.

    Parameters
    ----------
    position, velocity, radius, preferred, max_speed, dt, walls, chosen, reach
        See `orca`.
    forces : Forces
        Parameters of the model.
    ends : (k, 2) float64, optional
        Output: velocities of the model at the end of the step, m/s.

    Returns
    -------
    (k, 2) float64
        Velocities in the frame of the world, m/s.

    Raises
    ------
    ArgumentError
        An array has another shape, an agent does not exist, or a number is out of its
        range.
    """
    agents = _agents(position, velocity, radius, preferred, max_speed, walls, chosen)
    _check_positive(
        dt=dt, reach=reach, relaxation=forces.relaxation, range=forces.range
    )
    rules = ForceRules(
        forces.relaxation,
        forces.strength,
        forces.range,
        forces.stiffness,
        forces.friction,
        forces.unseen,
        cos(forces.sight),
        float(reach),
        float(dt),
    )
    # This kernel also returns the final velocities, in columns 2 and 3.
    agents = agents._replace(result=np.empty((len(agents.chosen), 4)))
    social_force_kernel(agents, rules)
    if ends is not None:
        ends[...] = agents.result[:, 2:]
    return np.ascontiguousarray(agents.result[:, :2])


def continued(velocity: F8, asked: F8, ends: F8) -> F8:
    """Return the velocities from which the social force model continues.

    Parameters
    ----------
    velocity : (…, 2) float64
        Velocities of the agents, m/s.
    asked : (…, 2) float64
        Result of `social_force` in the last step, m/s.
    ends : (…, 2) float64
        `ends` of that call. Agents that followed `asked` continue from these
        velocities. Other agents, for example blocked ones, continue from their own
        velocity.

    Returns
    -------
    (…, 2) float64
        Velocities, m/s.
    """
    # Compare velocity and command: a blocked agent must not keep the model's momentum.
    off = velocity - asked
    # With the small constant, an agent that stands on command counts as following.
    followed = (off * off).sum(axis=-1, keepdims=True) <= FOLLOWED * FOLLOWED * (
        1e-6 + (asked * asked).sum(axis=-1, keepdims=True)
    )
    return np.where(followed, ends, velocity)


def _agents(
    position: F8,
    velocity: F8,
    radius: F8,
    preferred: F8,
    max_speed: F8,
    walls: F8 | None,
    chosen: I8 | None,
) -> Agents:
    """Return the arguments of a method as checked arrays for a kernel.

    Compiled kernels do not check indices, so a wrong shape would read other memory. The
    parameters are as for `orca`.

    Returns
    -------
    Agents
        Contiguous arrays of float64, copied only if necessary. Its result is a new
        array of shape (k, 2).

    Raises
    ------
    ArgumentError
        An array has another shape, an agent does not exist, or a preferred velocity or
        maximum speed is not finite.
    """
    n, m = np.shape(radius) if np.ndim(radius) == 2 else (-1, -1)
    if n < 0:
        raise ArgumentError(
            f"radius: expected an array (n, m), found one of shape {np.shape(radius)}"
        )

    if chosen is None:
        # The divisor is at least 1, because worlds without discs are valid.
        numbers = np.stack(np.divmod(np.arange(n * m), max(m, 1)), axis=1)
    else:
        numbers = np.asarray(chosen, np.int64)
        if numbers.ndim != 2 or numbers.shape[1] != 2:
            raise ArgumentError(
                f"chosen: expected an array (k, 2), found one of shape {numbers.shape}"
            )

        if len(numbers) and not ((numbers >= 0).all() and (numbers < (n, m)).all()):
            wrong = numbers[((numbers < 0) | (numbers >= (n, m))).any(axis=1)][0]
            raise ArgumentError(
                f"chosen: expected worlds 0 … {n - 1} and bodies 0 … {m - 1}, found "
                f"world {wrong[0]}, body {wrong[1]}"
            )

    k = len(numbers)
    # A radius of NaN marks a body that does not exist; its position means nothing.
    if np.isnan(np.asarray(radius)[numbers[:, 0], numbers[:, 1]]).any():
        raise ArgumentError(
            "chosen: a body of radius NaN does not exist and cannot be an agent"
        )

    near = np.empty((k, 0, 4)) if walls is None else walls
    rows = np.shape(near)[1] if np.ndim(near) == 3 else 0
    wanted = {
        "position": (position, (n, m, 2)),
        "velocity": (velocity, (n, m, 2)),
        "radius": (radius, (n, m)),
        "preferred": (preferred, (k, 2)),
        "max_speed": (max_speed, (k,)),
        "walls": (near, (k, rows, 4)),
    }
    arrays = {}
    for name, (array, shape) in wanted.items():
        if np.shape(array) != shape:
            raise ArgumentError(
                f"{name}: expected an array of shape {shape}, found one of shape {np.shape(array)}"
            )

        arrays[name] = np.ascontiguousarray(array, np.float64)

    if not np.isfinite(arrays["preferred"]).all():
        raise ArgumentError("preferred: expected finite numbers, found NaN or infinity")
    is_speed = np.isfinite(arrays["max_speed"]) & (arrays["max_speed"] >= 0.0)
    if not is_speed.all():
        raise ArgumentError(
            "max_speed: expected finite numbers of at least 0 m/s, found "
            f"{arrays['max_speed'][~is_speed][0]:g}"
        )
    return Agents(
        chosen=np.ascontiguousarray(numbers), result=np.empty((k, 2)), **arrays
    )


def _check_positive(**numbers: float) -> None:
    """Check that numbers are positive.

    Parameters
    ----------
    **numbers : float
        Numbers by name, for the message.

    Raises
    ------
    ArgumentError
        A number is not above 0, or NaN.
    """
    for name, value in numbers.items():
        if not value > 0.0:
            raise ArgumentError(f"{name}: expected a positive number, found {value!r}")


__all__ = [
    "AHEAD_SHARE",
    "REACH_M",
    "Forces",
    "commands",
    "continued",
    "discs",
    "orca",
    "social_force",
]
