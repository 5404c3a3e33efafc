"""Controller that drives a robot behind another robot at a constant distance (`Follow`)."""

from __future__ import annotations

from typing import Any

from botyard.api import arguments
from botyard.controllers.route import checked_speed
from botyard.controllers.steering import halt, steer
from botyard.errors import ArgumentError
from botyard.geometry import distance
from botyard.sim.simulation import Robot


class Follow:
    """Controller that follows another robot.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    leader : str
        Name of the robot to follow. If empty, the robot that is nearest at the first
        step.
    distance : float
        Distance from the leader, centre to centre, m.
    speed : float
        Maximum speed, m/s.

    Raises
    ------
    ArgumentError
        A number is not above 0, or the robot is its own leader.
    """

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        leader: str = "",
        distance: float = 1.0,
        speed: float = 0.6,
    ) -> None:
        self._robot = robot
        self._leader = str(leader)
        self._distance = arguments.number(
            distance, "distance", low=0.0, above=True, unit="m"
        )
        self._speed = checked_speed(speed)
        if self._leader == robot.name:
            raise ArgumentError(f"leader: {robot.name} cannot follow itself")

    def act(self) -> None:
        """Drive towards the leader, or wait while it does not exist."""
        robot = self._robot
        others = robot.simulation.robots
        # Choose the leader at the first step, not in the constructor: the other robots
        # may be added after this one.
        if not self._leader:
            self._leader = self._nearest()
        ahead = others.get(self._leader)
        if ahead is None:
            halt(robot)
            return

        pose, goal = robot.truth, ahead.truth
        gap = distance(pose, goal) - self._distance
        if gap <= 0.0:
            halt(robot)
            return

        # The speed falls with the gap, so that the robot stops at the right distance.
        steer(robot, goal.x, goal.y, min(self._speed, gap))

    def _nearest(self) -> str:
        """Return the name of the nearest other robot that drives; empty for none.

        Of robots at equal distances, the first by name counts.
        """
        pose, robots = self._robot.truth, self._robot.simulation.robots
        away = {
            n: distance(pose, r.truth)
            for n, r in robots.items()
            if r is not self._robot and r.spec.kinematics.drives
        }
        # The name decides between equal distances, so that runs repeat.
        return min(away, key=lambda n: (away[n], n)) if away else ""

    def get_state(self) -> str:
        """Return the state of the controller, see `botyard.controllers.base.Controller`."""
        return self._leader

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`."""
        self._leader = str(state)

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""
