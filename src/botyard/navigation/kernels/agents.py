"""Data of agents that avoid each other, and the robots' commands for their velocities.

A differential robot cannot move sideways, but a point ahead of its axle can. The disc
that avoids others is centred at that point, and its radius is larger by the offset
(Snape, van den Berg, Guy, Manocha, "Smooth and collision-free navigation for multiple
robots under differential-drive constraints", IROS 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.navigation.kernels.jit import entry_kernel
from botyard.numerics.elementary import atan2, cosine_sine

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


class Agents(NamedTuple):
    """Discs in n worlds, with m discs in each; k of all discs are agents to steer.

    Attributes
    ----------
    position, velocity : (n, m, 2) float64
        Positions and velocities of all discs in the frame of the world, m and m/s.
    radius : (n, m) float64
        Radii of all discs, m; NaN for a disc that does not exist.
    chosen : (k, 2) int64
        World and number of each agent.
    preferred : (k, 2) float64
        Velocities that agents would choose if they were alone, m/s.
    max_speed : (k,) float64
        Maximum speeds of agents, m/s.
    walls : (k, w, 4) float64
        End points of the walls near each agent, m; NaN for unused rows.
    result : (k, 2) float64; (k, 4) for the social force model
        Output: new velocities, m/s.
    """

    position: F8
    velocity: F8
    radius: F8
    chosen: I8
    preferred: F8
    max_speed: F8
    walls: F8
    result: F8


@entry_kernel
def discs(pose: F8, vel: F8, ahead: F8, position: F8, velocity: F8) -> None:
    """Compute the discs that represent bodies in collision avoidance.

    Parameters
    ----------
    pose, vel : (n, m, 3) float64
        Poses, m, m, rad, and velocities in the frames of the bodies, m/s, m/s, rad/s.
    ahead : (n, m) float64
        Distance of the disc's centre ahead of the body's origin, m.
    position, velocity : (n, m, 2) float64
        Output: centres of the discs and their velocities in the frame of the world, m
        and m/s.
    """
    for i in range(pose.shape[0]):
        for j in range(pose.shape[1]):
            c, s = cosine_sine(pose[i, j, 2])
            # A point ahead of the axle also moves sideways when the body turns.
            vx, vy = vel[i, j, 0], vel[i, j, 1] + ahead[i, j] * vel[i, j, 2]
            position[i, j, 0], position[i, j, 1] = (
                pose[i, j, 0] + ahead[i, j] * c,
                pose[i, j, 1] + ahead[i, j] * s,
            )
            # From the body's frame into the frame of the world.
            velocity[i, j, 0], velocity[i, j, 1] = c * vx - s * vy, s * vx + c * vy


@entry_kernel
def commands(
    velocity: F8, heading: F8, ahead: F8, max_w: F8, gain: float, dt: float, result: F8
) -> None:
    """Compute the robot commands that give discs their velocities.

    Parameters
    ----------
    velocity : (k, 2) float64
        Velocities of the discs in the frame of the world, m/s.
    heading : (k,) float64
        Headings of the robots, rad.
    ahead : (k,) float64
        Offsets of the discs, see `discs`, m; 0 for a holonomic robot.
    max_w : (k,) float64
        Maximum yaw rates, rad/s.
    gain : float
        Yaw rate of a holonomic robot per radian to its direction of motion, 1/s.
    dt : float
        Duration of a step, s.
    result : (k, 3) float64
        Output: vx, vy and yaw rate, m/s, m/s, rad/s. A robot that cannot turn fast
        enough drives slower.
    """
    for k in range(velocity.shape[0]):
        x, y = velocity[k, 0], velocity[k, 1]
        c, s = cosine_sine(heading[k])
        forward, left = c * x + s * y, c * y - s * x
        if ahead[k] > 0.0:
            turn = left / ahead[k]
            # Both velocities shrink by one factor, so that the robot stays on its arc.
            scale = max_w[k] / abs(turn) if abs(turn) > max_w[k] else 1.0
            result[k, 0], result[k, 1], result[k, 2] = (
                forward * scale,
                0.0,
                turn * scale,
            )
        else:
            turn = 0.0
            # A body that hardly moves keeps its heading: the direction of noise means
            # nothing.
            if x * x + y * y > 1e-6:
                turn = min(max_w[k], max(-max_w[k], gain * atan2(left, forward)))
            # The body turns during the step, so the heading at half time gives the
            # right displacement.
            c, s = cosine_sine(0.5 * turn * dt)
            result[k, 0], result[k, 1], result[k, 2] = (
                c * forward + s * left,
                c * left - s * forward,
                turn,
            )
