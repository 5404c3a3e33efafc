"""Controller that drives a robot ahead in free space and avoids obstacles (`Wander`)."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from botyard.controllers.base import finite, random_state, set_random_state
from botyard.controllers.steering import command_turn
from botyard.engine.layout import F8, I8
from botyard.sim.simulation import Robot

CRUISE_SPEED = 0.4
"""Speed in free space, m/s."""
TURN_RATE = 0.8
"""Turn rate near an obstacle, rad/s."""
TURN_DISTANCE = 0.55
"""Distance from the body's edge below which the robot turns away, m."""
BACKING_SPEED = -0.2
"""Speed in reverse after a collision, m/s."""
SLOWDOWN_DISTANCE = 1.5
"""Distance from the body's edge below which the robot slows down, m."""


class Wander:
    """Controller that drives one robot by its laser, or by its sonar without a laser.

    A robot that has neither drives without obstacle avoidance.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    """

    def __init__(self, robot: Robot, seed: int) -> None:
        self._robot = robot
        self._random = random.Random(f"{seed} wander {robot.name}")
        self._turning = 0.0
        self._backing = 0
        self._drift = 0.0
        self._speed = min(CRUISE_SPEED, robot.spec.kinematics.limits.max_speed.x)
        self._turning_speed = BACKING_SPEED if robot.spec.kinematics.steers else 0.0
        self._margin = robot.spec.radius
        self._scale = self._scale_of(robot)
        self._reads = False
        self._rays = -1
        self._sides: list[I8] = []

    def act(self) -> None:
        """Read the ranges, and command the robot for the next step."""
        robot = self._robot
        if not self._reads:
            self._read(True)
        if robot.stalled and not self._backing:
            # Back for 8 to 16 steps. The number is random, so that two robots do not
            # collide again and again.
            self._backing = self._random.randint(8, 16)
            self._turning = self._random.choice((-TURN_RATE, TURN_RATE))

        if self._backing:
            self._backing -= 1
            turning = self._turning if self._backing < 6 else 0.0
            command_turn(robot, BACKING_SPEED, turning)
            return

        left, ahead, right = self._look()
        if min(left, ahead, right) < TURN_DISTANCE * self._scale:
            # The robot keeps the chosen direction: otherwise it would oscillate in a
            # corner.
            if self._turning == 0.0:
                self._turning = TURN_RATE if left > right else -TURN_RATE
            # A car-like robot turns only while it drives: it backs away.
            command_turn(robot, self._turning_speed, self._turning)
            return

        self._turning = 0.0
        if self._random.random() < 0.05:
            self._drift = self._random.uniform(-0.3, 0.3)
        slowdown = min(1.0, ahead / (SLOWDOWN_DISTANCE * self._scale))
        command_turn(robot, self._speed * slowdown, self._drift)

    @staticmethod
    def _scale_of(robot: Robot) -> float:
        """Return a factor, at most 1, by which all distances of this module are multiplied.

        It is below 1 for a robot whose sensor sees less far than `SLOWDOWN_DISTANCE`.
        """
        spec = robot.spec
        sensor = spec.lasers[0] if spec.lasers else spec.sonar
        reach = math.inf if sensor is None else sensor.range_max - spec.radius
        return min(1.0, max(reach, 0.01) / SLOWDOWN_DISTANCE)

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            State of the random generator; turn rate, rad/s; number of steps left to
            drive backwards; and turn rate in free space, rad/s.
        """
        return [random_state(self._random), self._turning, self._backing, self._drift]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`."""
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
        """Subscribe to the robot's laser or sonar, or unsubscribe.

        Parameters
        ----------
        on : bool
            Whether to subscribe.
        """
        self._reads = on
        # A client may have changed the number of rays meanwhile.
        self._rays = -1
        if self._robot.lasers:
            self._robot.laser.subscribe("wander", on)
        elif self._robot.sonar is not None:
            self._robot.sonar.subscribe("wander", on)

    def _look(self) -> tuple[float, float, float]:
        """Return the minimum range to the left, ahead and to the right.

        Returns
        -------
        (float, float, float)
            Ranges, m, measured from the edge of the body's disc; infinite without a
            sensor. The ranges to the left and right are increased by up to 0.25 m, so
            that obstacles there matter less.
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
        less = 0.25 * self._scale
        return free[0] + less, free[1], free[2] + less

    def _divide(self, angles: F8) -> None:
        """Sort rays by their bearing into three sectors: left, ahead and right.

        Parameters
        ----------
        angles : (r,) float64
            Bearings of the rays in the frame of the robot, rad, positive to the left.
            Rays to the back are in no sector.
        """
        # 0.35 rad is 20°, 1.2 rad is about 69°.
        left, right = (
            (angles >= 0.35) & (angles < 1.2),
            (angles <= -0.35) & (angles > -1.2),
        )
        self._sides = [
            np.flatnonzero(side) for side in (left, np.abs(angles) < 0.35, right)
        ]
        self._rays = len(angles)
