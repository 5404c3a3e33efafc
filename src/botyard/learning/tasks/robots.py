"""Robots and maps of tasks."""

from __future__ import annotations

import math

from botyard.elementary import cos, sin
from botyard.model.mapbuilder import MapBuilder
from botyard.model.robot import Axes, MotionLimits, RobotSpec
from botyard.model.scene import Scene
from botyard.model.sensors import LaserSpec


def lidar_robot(rays: int = 181, *, radius: float = 0.2, range_max: float = 8.0, fov: float = math.pi) -> RobotSpec:
    """A round robot with a lidar, which does at once what it is told: 1 m/s, 2 rad/s.

    Parameters
    ----------
    rays : int
        Rays of the lidar.
    radius, range_max : float
        Of the body, and of the lidar, m.
    fov : float
        Field of view, rad.
    """
    outline = tuple((radius * cos(math.pi * k / 6), radius * sin(math.pi * k / 6)) for k in range(12))
    lidar = LaserSpec(type_name="lidar", samples=rays, fov=fov, range_max=range_max, range_noise=0.01)
    limits = MotionLimits(max_speed=Axes(1.0, 0.0, 2.0), accel=Axes(), decel=Axes())
    return RobotSpec(name="lidar_robot", outline=outline, limits=limits, lasers=(lidar,))


def clutter(number: int, *, size: float = 10.0, obstacles: int = 10) -> Scene:
    """A walled square with blocks and pillars at random places; another one for each number. `size`: its edge, m."""
    builder = MapBuilder(f"clutter {number}").rectangle(-size / 2, -size / 2, size, size)
    return builder.obstacles(obstacles, seed=number + 1, size=(0.4, 1.6), clearance=0.7).scene()


__all__ = ["clutter", "lidar_robot"]
