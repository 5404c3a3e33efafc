"""Steering of robots towards a point."""

from __future__ import annotations

import math
from typing import Final

from botyard.numerics.elementary import atan2, cos, cosine_sine, hypot
from botyard.sim.simulation import Robot

HEADING_GAIN = 2.0
"""Proportional gain of the heading controller: turn rate per radian of bearing, 1/s."""
# The value is below 1: with 1, rounding could make a robot on the circle change its
# direction in each step.
INSIDE: Final = 0.9
"""Share of a turning circle's radius within which a point counts as inside the circle."""


def steer(robot: Robot, x: float, y: float, speed: float) -> float:
    """Command a robot towards a point of the world so that it does not overshoot.

    An omnidirectional robot moves straight to the point and turns meanwhile. A
    differential robot turns first. A car-like robot drives arcs, and backs away from a
    point within its turning circle.

    Parameters
    ----------
    robot : Robot
        The robot.
    x, y : float
        The point, m.
    speed : float
        Maximum speed, m/s; the model's own limits apply as well.

    Returns
    -------
    float
        Distance from the point, m, before the step.
    """
    pose, dt = robot.truth, robot.simulation.dt
    dx, dy = x - pose.x, y - pose.y
    distance = hypot(dx, dy)
    # A point at the robot's own position has no meaningful bearing.
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
        # The body turns during the step, so use its heading in the middle of the step.
        half = bearing - w * dt / 2.0
        c, s = cosine_sine(half)
        # Velocities are in the robot's frame.
        robot.command(v=v * c, vy=v * s, w=w)
    elif kinematics.steers:
        # The factor 1.5 1/s makes the robot brake over the last metre.
        c, s = cosine_sine(bearing)
        v, curvature = _arc_to(kinematics.turning_radius, distance * c, distance * s)
        v *= min(speed, top.x, distance * 1.5)
        command_turn(robot, v, v * curvature)
    else:
        # A speed proportional to the distance over the last metre avoids overshoot.
        near = distance * 1.5 if distance < 1.0 else math.inf
        c = max(0.0, cos(bearing))
        v = min(speed, top.x, near) * c * c if abs(bearing) < math.pi / 2 else 0.0
        robot.command(v=v, w=w)

    return distance


def _arc_to(radius: float, ahead: float, left: float) -> tuple[float, float]:
    """Return the direction and the curvature of a car-like robot's arc to a point.

    A point within the turning circle is not on any arc ahead: the robot backs away from
    it and turns towards it.

    Parameters
    ----------
    radius : float
        Radius of the turning circle, m.
    ahead, left : float
        The point in the frame of the robot, m.

    Returns
    -------
    direction, curvature : float
        Direction: 1 forward, −1 in reverse. Curvature, 1/m, positive to the left.
    """
    tightest, side = 1.0 / radius, math.copysign(1.0, left)
    if hypot(ahead, abs(left) - radius) < INSIDE * radius:
        return -1.0, -side * tightest
    # An arc to a point behind the robot would be a detour around the whole circle.
    if ahead < 0.0:
        return 1.0, side * tightest
    curvature = 2.0 * left / max(ahead * ahead + left * left, 1e-12)
    return 1.0, max(-tightest, min(tightest, curvature))


def command_turn(robot: Robot, v: float, w: float) -> None:
    """Command velocities to a robot that cannot move sideways, or whose `vy` stays.

    Parameters
    ----------
    robot : Robot
        The robot. The turn rates of its commands may carry steering angles
        (`Steering.by_angle`).
    v, w : float
        Forward velocity, m/s, and turn rate, rad/s.
    """
    steering = robot.spec.steering
    if steering is not None and steering.by_angle:
        w = robot.spec.kinematics.steering_angle(v, w)
    robot.command(v=v, w=w)


def halt(robot: Robot) -> None:
    """Command a robot to zero velocity.

    Parameters
    ----------
    robot : Robot
        The robot. It brakes within the limits of its model.
    """
    robot.command(v=0.0, vy=0.0, w=0.0)
