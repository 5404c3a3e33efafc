"""Wander: drive ahead in free space, turn away from near obstacles, back off when
stalled.
"""

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
"""Turn rate when an obstacle is near, rad/s."""
TURN_DISTANCE = 0.55
"""Distance beyond the body's edge at which the robot turns away, m."""
SLOWDOWN_DISTANCE = 1.5
"""Distance beyond the body's edge at which the robot begins to slow down, m."""


class Wander:
    """Drives one robot by its laser; without one by its sonar; without both blindly."""

    def __init__(self, robot: Robot, seed: int) -> None:
        self._robot = robot
        self._random = random.Random(f"{seed} wander {robot.name}")
        self._turning = 0.0
        self._backing = 0
        self._drift = 0.0
        self._speed = min(CRUISE_SPEED, robot.spec.limits.max_speed.x)
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
            self._backing = self._random.randint(8, 16)
            self._turning = self._random.choice((-TURN_RATE, TURN_RATE))

        if self._backing:
            self._backing -= 1
            robot.command(v=-0.2, w=self._turning if self._backing < 6 else 0.0)
            return

        left, ahead, right = self._look()
        if min(left, ahead, right) < TURN_DISTANCE:
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
        """See `Controller`."""
        return [random_state(self._random), self._turning, self._backing, self._drift]

    def set_state(self, state: Any) -> None:
        """See `Controller`."""
        draw, turning, backing, drift = state
        set_random_state(self._random, draw)
        self._turning, self._backing, self._drift = (
            finite(turning),
            int(backing),
            finite(drift),
        )
        self._rays = -1

    def rest(self) -> None:
        """Read no sensors until `act` is called again."""
        self._read(False)

    def _read(self, on: bool) -> None:
        """Subscribe to the laser or sonar, or unsubscribe."""
        self._reads = on
        # a client may have changed the rays meanwhile
        self._rays = -1
        if self._robot.lasers:
            self._robot.laser.subscribe("wander", on)
        elif self._robot.sonar is not None:
            self._robot.sonar.subscribe("wander", on)

    def _look(self) -> tuple[float, float, float]:
        """Least range to the left, ahead, and to the right of the body, m beyond its
        radius.
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

        # obstacles beside the robot matter less than those before it
        free = [
            float(ranges[side].min(initial=math.inf)) - self._margin
            for side in self._sides
        ]
        return free[0] + 0.25, free[1], free[2] + 0.25

    def _divide(self, angles: F8) -> None:
        """Divide rays by their bearings, rad, into sectors to the left, ahead and to
        the right.
        """
        left, right = (
            (angles >= 0.35) & (angles < 1.2),
            (angles <= -0.35) & (angles > -1.2),
        )
        self._sides = [
            np.flatnonzero(side) for side in (left, np.abs(angles) < 0.35, right)
        ]
        self._rays = len(angles)
