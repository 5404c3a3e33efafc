"""Steering towards a point, for differential and omnidirectional robots."""

from __future__ import annotations

import math

from botyard.numerics.elementary import atan2, cos, cosine_sine, hypot
from botyard.sim.simulation import Robot

HEADING_GAIN = 2.0
"""Proportional gain of the heading controller: turn rate per radian of bearing, 1/s."""


def steer(robot: Robot, x: float, y: float, speed: float) -> float:
    """Command a robot towards a point of the world, without overshoot.

    An omnidirectional robot moves straight to the point and turns meanwhile. A
    differential robot turns first.

    Returns
    -------
    float
        Distance from the point, m.
    """
    pose, dt = robot.truth, robot.simulation.dt
    dx, dy = x - pose.x, y - pose.y
    distance = hypot(dx, dy)
    # At the point itself, the bearing is noise.
    bearing = (
        math.remainder(atan2(dy, dx) - pose.th, 2.0 * math.pi)
        if distance > 1e-6
        else 0.0
    )
    kinematics = robot.spec.kinematics
    top = kinematics.limits.max_speed
    w = max(-top.a, min(top.a, HEADING_GAIN * bearing))
    if kinematics.moves_sideways:
        v = min(speed, top.x, distance / dt)
        # The body turns during the step: aim with its heading at half time.
        half = bearing - w * dt / 2.0
        c, s = cosine_sine(half)
        # Velocities are in the robot's frame.
        robot.command(v=v * c, vy=v * s, w=w)
    else:
        # Braking proportionally over the last metre avoids overshoot.
        near = distance * 1.5 if distance < 1.0 else math.inf
        c = max(0.0, cos(bearing))
        v = min(speed, top.x, near) * c * c if abs(bearing) < math.pi / 2 else 0.0
        robot.command(v=v, w=w)

    return distance


def halt(robot: Robot) -> None:
    """Command zero velocity."""
    robot.command(v=0.0, vy=0.0, w=0.0)
