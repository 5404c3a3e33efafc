"""Robots and maps that several learning tasks use."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ArgumentError
from botyard.learning.tasks.base import F4, F8
from botyard.model.kinematics import Axes, MotionLimits
from botyard.model.mapbuilder import MapBuilder
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import LaserSpec
from botyard.model.world import thing
from botyard.numerics.elementary import cos, sin

WALKER_RADIUS_M: Final = 0.25
"""Radius of a pedestrian, m."""


def lidar_robot(
    rays: int = 181,
    *,
    radius: float = 0.2,
    range_max: float = 8.0,
    fov: float = math.pi,
) -> RobotSpec:
    """Return a round robot with a lidar, which reaches commanded velocities immediately.

    Its maximum velocities are 1 m/s and 2 rad/s.

    Parameters
    ----------
    rays : int
        Number of lidar rays; 0 for a robot without a lidar.
    radius : float
        Radius of the body, m.
    range_max : float
        Maximum range of the lidar, m.
    fov : float
        Field of view, rad.
    """
    outline = tuple(
        (radius * cos(math.pi * k / 6), radius * sin(math.pi * k / 6))
        for k in range(12)
    )
    lidar = (
        LaserSpec(
            type_name="lidar",
            samples=rays,
            fov=fov,
            range_max=range_max,
            range_noise=0.01,
        )
        if rays
        else None
    )
    # Accelerations of 0 mean immediate changes.
    limits = MotionLimits(max_speed=Axes(1.0, 0.0, 2.0), accel=Axes(), decel=Axes())
    return RobotSpec(
        name="lidar_robot",
        outline=outline,
        limits=limits,
        lasers=() if lidar is None else (lidar,),
    )


def walker() -> RobotSpec:
    """Return the model of a pedestrian: a disc that moves in any direction without delay."""
    outline = tuple(
        (WALKER_RADIUS_M * cos(math.pi * k / 6), WALKER_RADIUS_M * sin(math.pi * k / 6))
        for k in range(12)
    )
    return thing(outline)


def plaza(number: int, *, size: float = 10.0, pillars: int = 3) -> Scene:
    """Return a walled square with a few pillars at random positions.

    Parameters
    ----------
    number : int
        Number of the map, from 0; each number gives another map.
    size : float
        Edge length of the square, m. Its centre is the origin.
    pillars : int
        Number of pillars, 0.3 to 0.6 m wide and at least 1 m apart.
    """
    builder = MapBuilder(f"plaza {number}").rectangle(-size / 2, -size / 2, size, size)
    return builder.obstacles(
        pillars, seed=number + 1, size=(0.3, 0.6), clearance=1.0
    ).scene()


def clutter(number: int, *, size: float = 10.0, obstacles: int = 10) -> Scene:
    """Return a walled square with blocks and pillars at random positions.

    Parameters
    ----------
    number : int
        Number of the map, from 0; each number gives another map.
    size : float
        Edge length of the square, m. Its centre is the origin.
    obstacles : int
        Number of obstacles, 0.4 to 1.6 m wide and at least 0.7 m apart.
    """
    builder = MapBuilder(f"clutter {number}").rectangle(
        -size / 2, -size / 2, size, size
    )
    return builder.obstacles(
        obstacles, seed=number + 1, size=(0.4, 1.6), clearance=0.7
    ).scene()


def steered_by_angle(spec: RobotSpec) -> RobotSpec:
    """Return a robot model whose turn rates of commands are steering angles, if it steers.

    Parameters
    ----------
    spec : RobotSpec
        Model; one that does not steer is returned unchanged.
    """
    steering = spec.steering
    if steering is None or steering.by_angle:
        return spec
    return replace(spec, steering=replace(steering, by_angle=True))


class Driving:
    """Conversion between actions −1 … 1 and the commands of a robot.

    Actions are the linear and the angular velocity as fractions of their maximum. The
    second action of a car-like robot is its steering angle as a fraction of its limit.

    Parameters
    ----------
    spec : RobotSpec
        The robot.

    Raises
    ------
    ArgumentError
        The robot cannot drive or cannot turn, so that a maximum is 0; or it steers by turn
        rates, see `steered_by_angle`.
    """

    def __init__(self, spec: RobotSpec) -> None:
        speed = spec.kinematics.limits.max_speed
        if not (speed.x > 0.0 and speed.a > 0.0):
            raise ArgumentError(
                f"robot: expected a robot that drives and turns, found {spec.name}: "
                f"at most {speed.x:g} m/s, {speed.a:g} rad/s"
            )

        turn, steering = speed.a, spec.steering
        self.scale: F8 = np.array([speed.x, speed.a])
        """Maximum linear velocity, m/s, and turn rate, rad/s, or steering angle, rad."""
        if steering is not None:
            if not (steering.by_angle and steering.limit > 0.0):
                raise ArgumentError(
                    f"robot: expected a robot that steers by angles, found {spec.name} "
                    "(by_angle in its steering)"
                )
            # At top speed a car turns no faster than on its turning circle.
            turn = min(turn, speed.x / spec.kinematics.turning_radius)
            self.scale[1] = steering.limit

        self.speed: F8 = np.array([speed.x, turn])
        """Maximum linear and angular velocity, m/s and rad/s."""

    def __call__(self, command: F8, actions: NDArray[Any]) -> None:
        """Write the velocity commands for actions.

        Parameters
        ----------
        command : (…, 3) float64
            Output: forward velocity, m/s, and yaw rate, rad/s, or steering angle, rad, in
            columns 0 and 2. Column 1, the velocity to the left, stays unchanged.
        actions : (…, 2) array
            Linear and angular velocity, or steering angle, −1 … 1.
        """
        np.multiply(actions, self.scale, out=command[..., ::2])

    def observe(self, vel: F8, out: F4) -> None:
        """Write velocities as fractions of their maximum.

        Parameters
        ----------
        vel : (…, 3) float64
            Velocities in the frame of the robot: m/s, m/s, rad/s.
        out : (…, 2) float32
            Output: linear and angular velocity.
        """
        np.divide(vel[..., ::2], self.speed, out=out)


__all__ = [
    "WALKER_RADIUS_M",
    "Driving",
    "clutter",
    "lidar_robot",
    "plaza",
    "steered_by_angle",
    "walker",
]
