"""Bodies that avoid one another: what the kernels of crowds take, and commands of
robots that follow from velocities.

A differential robot cannot go sideways, but a point ahead of its axle can: the disc
that avoids others is around that point, and as much larger (Snape, van den Berg, Guy,
Manocha, "Smooth and collision-free navigation for multiple robots under
differential-drive constraints", IROS 2010).
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
    """Discs in n worlds with m of them each, and k of them that are to be steered.

    Attributes
    ----------
    position, velocity : (n, m, 2) float64
        Of all discs, m and m/s, in the frame of the world.
    radius : (n, m) float64
        Of all discs, m; NaN: it is not there.
    chosen : (k, 2) int64
        World and number of those that are steered.
    preferred : (k, 2) float64
        Velocities that they would have if they were alone, m/s.
    max_speed : (k,) float64
        Their greatest speeds, m/s.
    walls : (k, w, 4) float64
        Ends of the walls near each, m; NaN: there are no more.
    result : (k, 2) float64; (k, 4) of the social force model
        Written: their new velocities, m/s.
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
    """The discs of bodies.

    Parameters
    ----------
    pose, vel : (n, m, 3) float64
        Poses, m, m, rad, and velocities in the frames of the bodies, m/s, m/s, rad/s.
    ahead : (n, m) float64
        How far the middle of the disc is ahead of the body's origin, m.
    position, velocity : (n, m, 2) float64
        Written: middles of the discs, and their velocities, m and m/s, in the frame of
        the world.
    """
    for i in range(pose.shape[0]):
        for j in range(pose.shape[1]):
            c, s = cosine_sine(pose[i, j, 2])
            vx, vy = vel[i, j, 0], vel[i, j, 1] + ahead[i, j] * vel[i, j, 2]
            position[i, j, 0], position[i, j, 1] = (
                pose[i, j, 0] + ahead[i, j] * c,
                pose[i, j, 1] + ahead[i, j] * s,
            )
            velocity[i, j, 0], velocity[i, j, 1] = c * vx - s * vy, s * vx + c * vy


@entry_kernel
def commands(
    velocity: F8, heading: F8, ahead: F8, max_w: F8, gain: float, dt: float, result: F8
) -> None:
    """Commands with which discs have these velocities.

    Parameters
    ----------
    velocity : (k, 2) float64
        Velocities of the discs in the frame of the world, m/s.
    heading, ahead, max_w : (k,) float64
        Headings of the robots, rad; see `discs`, where 0 means that a robot goes
        sideways, too; greatest turn rates, rad/s.
    gain : float
        Turn rate per angle to the direction in which a robot goes that goes sideways,
        1/s.
    dt : float
        Time of a step, s.
    result : (k, 3) float64
        Written: velocities forward, leftward and of rotation, m/s, m/s, rad/s. Who
        cannot turn so fast goes slower.
    """
    for k in range(velocity.shape[0]):
        x, y = velocity[k, 0], velocity[k, 1]
        c, s = cosine_sine(heading[k])
        forward, left = c * x + s * y, c * y - s * x
        if ahead[k] > 0.0:
            turn = left / ahead[k]
            scale = max_w[k] / abs(turn) if abs(turn) > max_w[k] else 1.0
            result[k, 0], result[k, 1], result[k, 2] = (
                forward * scale,
                0.0,
                turn * scale,
            )
        else:
            turn = 0.0
            if x * x + y * y > 1e-6:
                turn = min(max_w[k], max(-max_w[k], gain * atan2(left, forward)))
            c, s = cosine_sine(
                0.5 * turn * dt
            )  # it turns on the way: the heading of the middle counts
            result[k, 0], result[k, 1], result[k, 2] = (
                c * forward + s * left,
                c * left - s * forward,
                turn,
            )
