"""Wander: drive ahead in free space, and avoid obstacles."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from botyard.controllers.base import finite, random_state, set_random_state
from botyard.engine.layout import F8, I8
from botyard.sim.simulation import Robot

CRUISE_SPEED = 0.4
"""Speed in free space, m/s."""
TURN_RATE = 0.8
"""Turn rate near an obstacle, rad/s."""
TURN_DISTANCE = 0.55
"""Distance from the body's edge below which the robot turns away, m."""
SLOWDOWN_DISTANCE = 1.5
"""Distance from the body's edge below which the robot slows down, m."""


class Wander:
    """Controller that drives one robot by its laser, or by its sonar without a laser.

    Without both the robot drives blindly.
    """

    def __init__(self, robot: Robot, seed: int) -> None:
        self._robot = robot
        self._random = random.Random(f"{seed} wander {robot.name}")
        self._turning = 0.0
        self._backing = 0
        self._drift = 0.0
        self._speed = min(CRUISE_SPEED, robot.spec.kinematics.limits.max_speed.x)
        self._margin = robot.spec.radius
        self._reads = False
        self._rays = -1
        self._sides: list[I8] = []

    def act(self) -> None:
        """Read the ranges, and command the robot for the next step."""
        robot = self._robot
        if not self._reads:
            self._read(True)
        if robot.stalled and not self._backing:
            # 8 to 16 steps: a random number, so that two robots do not collide again
            # and again.
            self._backing = self._random.randint(8, 16)
            self._turning = self._random.choice((-TURN_RATE, TURN_RATE))

        if self._backing:
            self._backing -= 1
            robot.command(v=-0.2, w=self._turning if self._backing < 6 else 0.0)
            return

        left, ahead, right = self._look()
        if min(left, ahead, right) < TURN_DISTANCE:
            # It keeps its direction once chosen: otherwise it would oscillate in a
            # corner.
            if self._turning == 0.0:
                self._turning = TURN_RATE if left > right else -TURN_RATE
            robot.command(v=0.0, w=self._turning)
            return

        self._turning = 0.0
        if self._random.random() < 0.05:
            self._drift = self._random.uniform(-0.3, 0.3)
        robot.command(
            v=self._speed * min(1.0, ahead / SLOWDOWN_DISTANCE), w=self._drift
        )

    def get_state(self) -> list[Any]:
        """Return the state, see `botyard.controllers.base.Controller`."""
        return [random_state(self._random), self._turning, self._backing, self._drift]

    def set_state(self, state: Any) -> None:
        """Restore a state, see `botyard.controllers.base.Controller`."""
        draw, turning, backing, drift = state
        set_random_state(self._random, draw)
        self._turning, self._backing, self._drift = (
            finite(turning),
            int(backing),
            finite(drift),
        )
        self._rays = -1

    def rest(self) -> None:
        """Unsubscribe from the sensors until `act` is called again."""
        self._read(False)

    def _read(self, on: bool) -> None:
        """Subscribe to the laser or sonar, or unsubscribe."""
        self._reads = on
        # A client may have changed the number of rays meanwhile.
        self._rays = -1
        if self._robot.lasers:
            self._robot.laser.subscribe("wander", on)
        elif self._robot.sonar is not None:
            self._robot.sonar.subscribe("wander", on)

    def _look(self) -> tuple[float, float, float]:
        """Return the minimum range to the left, ahead and to the right, m.

        Ranges are measured from the body's radius.
        """
        robot = self._robot
        if robot.lasers:
            scan = robot.laser.view()
            ranges = scan.ranges
            if len(ranges) != self._rays:
                self._divide(scan.angles + scan.frame_pose.th)
        elif robot.sonar is not None:
            ranges = robot.sonar.view().ranges
            if len(ranges) != self._rays:
                self._divide(
                    np.array([t.pose.th for t in robot.sonar.spec.transducers])
                )
        else:
            return math.inf, math.inf, math.inf

        # Obstacles at the sides matter less than obstacles ahead.
        free = [
            float(ranges[side].min(initial=math.inf)) - self._margin
            for side in self._sides
        ]
        return free[0] + 0.25, free[1], free[2] + 0.25

    def _divide(self, angles: F8) -> None:
        """Divide rays by bearing, rad, into sectors left, ahead and right."""
        # 0.35 rad is 20°, 1.2 rad is about 69°.
        left, right = (
            (angles >= 0.35) & (angles < 1.2),
            (angles <= -0.35) & (angles > -1.2),
        )
        self._sides = [
            np.flatnonzero(side) for side in (left, np.abs(angles) < 0.35, right)
        ]
        self._rays = len(angles)
