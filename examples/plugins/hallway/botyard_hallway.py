"""A controller: the robot keeps to the wall on its right.

botyard office -r p3dx:ann --controller hallway --controller-option distance=0.7
"""

from __future__ import annotations

import math

import numpy as np


class Hallway:
    """Follows the wall on the right, around corners in both directions.

    Parameters
    ----------
    robot : Robot
        A robot with a laser.
    distance : float
        Distance to the wall, m.
    speed : float
        Speed along the wall, m/s.
    """

    act_rate = 10.0

    def __init__(self, robot, distance: float = 0.7, speed: float = 0.4) -> None:
        self.robot, self.distance, self.speed = robot, distance, speed
        self.is_at_wall = False

    def act(self) -> None:
        # A sensor measures only for its subscribers; repeating this is free.
        self.robot.laser.subscribe("hallway")
        scan = self.robot.laser.read()
        ahead = self.nearest(scan, -0.4, 0.4)
        right = self.nearest(scan, -math.pi / 2, -0.4)
        if ahead < self.distance + 0.2:
            self.is_at_wall = True
            self.robot.command(v=0.0, w=0.8)
        elif not self.is_at_wall:
            self.robot.command(v=self.speed, w=0.0)
        else:
            # Turn left if the wall is too near, right if it ends or is too far.
            error = np.clip(self.distance - right, -0.5, 0.5)
            self.robot.command(v=self.speed, w=1.5 * float(error))

    @staticmethod
    def nearest(scan, low: float, high: float) -> float:
        """Return the smallest range between two angles, rad; left is positive."""
        return float(scan.ranges[(scan.angles >= low) & (scan.angles <= high)].min())

    def rest(self) -> None:
        """A client drives from now on."""
        self.robot.laser.subscribe("hallway", False)

    def get_state(self) -> dict[str, bool]:
        """Return what a saved world must remember."""
        return {"is_at_wall": self.is_at_wall}

    def set_state(self, value: dict[str, bool]) -> None:
        self.is_at_wall = value["is_at_wall"]
