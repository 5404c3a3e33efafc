"""Learning task PushBox: robots push a box to a goal."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.geometry import Pose
from botyard.learning.tasks.base import (
    B1,
    F4,
    F8,
    I8,
    START_STREAM,
    EpisodeDraws,
)
from botyard.learning.tasks.geometry import between, distances, headings
from botyard.learning.tasks.team import DrivenTeam
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds

ROBOT_RADIUS_M: Final = 0.2
FAR_M: Final = 3.0
"""Length by which positions in observations are divided, m."""


class PushBox(DrivenTeam):
    """Robots push a box with mass to a goal. They cannot pull it.

    There are no walls.

    Observation of each robot, float32, (10 + 4 k,) with k = min(robots − 1,
    `neighbours`):

    - positions of the box and of the goal, ahead and to the left, as fractions of 3 m;
    - cosine and sine of the box's heading relative to the robot's;
    - velocity of the box ahead and to the left, m/s;
    - linear and angular velocity of the robot as fractions of their maximum;
    - for each of the k nearest robots, nearest first: position ahead and to the left,
      as fractions of 3 m, and velocity ahead and to the left in the observing robot's
      axes, m/s.

    Action of each robot, (2,): linear and angular velocity, −1 … 1.

    The reward of each robot is the progress of the box towards the goal, m, plus a
    tenth of its own progress towards the box, m, minus 0.01 for each step. An episode
    ends when the centre of the box is within `goal_m` of the goal. Each robot then gets
    5, and infos have ``success``.

    Parameters
    ----------
    robots : int
        Number of robots.
    size : float
        Length and width of the box, m.
    mass : float
        Mass of the box, kg.
    friction : float
        Coefficient of friction between box and floor.
    least_m, most_m : float
        Minimum and maximum distance between box and goal at the start, m.
    neighbours : int
        Maximum number of other robots that each robot observes.
    goal_m : float
        Distance at which the goal counts as reached, m.
    max_steps : int
        Maximum number of steps of an episode.
    """

    GOAL_REWARD: ClassVar[float] = 5.0
    STEP_COST: ClassVar[float] = 0.01
    APPROACH: ClassVar[float] = 0.1
    """Weight of a robot's progress towards the box in its reward."""
    LEAST_ARC_M: ClassVar[float] = 0.6
    """Minimum distance between robots on the circle of start positions, m."""

    OWN_BOUNDS = (20.0, 20.0, 20.0, 20.0, 1.0, 1.0, 5.0, 5.0, 2.0, 2.0)

    def __init__(
        self,
        *,
        robots: int = 2,
        size: float = 0.6,
        mass: float = 10.0,
        friction: float = 0.3,
        least_m: float = 1.0,
        most_m: float = 2.5,
        neighbours: int = 2,
        goal_m: float = 0.25,
        max_steps: int = 400,
    ) -> None:
        count = arguments.whole(robots, "robots", low=1, high=1000)
        size = arguments.number(size, "size", low=0.1, high=10.0, unit="m")
        self._set_team(count, neighbours, ROBOT_RADIUS_M)
        self.goal_m: float = arguments.number(
            goal_m, "goal_m", low=0.0, above=True, unit="m"
        )
        self.least_m: float = arguments.number(
            least_m, "least_m", low=self.goal_m, high=1000.0, unit="m"
        )
        self.most_m: float = arguments.number(
            most_m, "most_m", low=self.least_m, high=1000.0, unit="m"
        )
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        dynamics = DynamicsSpec(
            mass=arguments.number(mass, "mass", low=0.1, high=1e4, unit="kg"),
            floor_friction=arguments.number(friction, "friction", low=0.0, high=10.0),
        )
        self.boxes = (
            BoxObject(
                name="box", pose=Pose(), length=size, width=size, dynamics=dynamics
            ),
        )
        # Radius of the circle of start positions around the box, m. It clears the
        # corners of the box, and is wide enough for all robots.
        self._circle = max(
            size * math.sqrt(0.5) + ROBOT_RADIUS_M + 0.3,
            count * self.LEAST_ARC_M / (2.0 * math.pi),
        )
        self.box_poses = self._begin_boxes
        self.poses = self._begin_robots

    def _begin_boxes(self, seeds: NDArray[np.uint64]) -> F8:
        """Return start poses of the box.

        The goal is at (0, 0). Direction from the goal and heading are random.

        Parameters
        ----------
        seeds : (k,) uint64
            Seeds of the episodes that start.

        Returns
        -------
        (k, 1, 3) float64
            Pose of the box in each world: m, m, rad.
        """
        rng = EpisodeDraws(seeds, START_STREAM)
        far, (c, s) = (
            rng.uniform(self.least_m, self.most_m),
            elementwise.cosine_sine(rng.uniform(-math.pi, math.pi)),
        )
        return np.stack([far * c, far * s, rng.uniform(-math.pi, math.pi)], axis=-1)[
            :, None
        ]

    def _begin_robots(self, seeds: NDArray[np.uint64]) -> F8:
        """Return start poses of robots: evenly spaced on a circle around the box.

        A random angle turns the circle, and headings are random.

        Parameters
        ----------
        seeds : (k,) uint64
            Seeds of the episodes that start.

        Returns
        -------
        (k, m, 3) float64
            Poses of the robots: m, m, rad.
        """
        # Robots and boxes need different streams: both functions draw from the first
        # number.
        rng, count = EpisodeDraws(seeds, START_STREAM + 1), len(self.robots)
        angles = rng.uniform(-math.pi, math.pi)[
            :, None
        ] + 2.0 * math.pi / count * np.arange(count)
        c, s = elementwise.cosine_sine(angles)
        middle = self._begin_boxes(seeds)
        return np.stack(
            [
                middle[..., 0] + self._circle * c,
                middle[..., 1] + self._circle * s,
                rng.uniforms(count, -math.pi, math.pi),
            ],
            axis=-1,
        )

    def begin(self, w: Worlds) -> None:
        """Make the arrays of distances between robots, box and goal."""
        self._far: F8 = np.zeros(len(w))
        self._away: F8 = np.zeros((len(w), len(self.robots)))
        self._before = self._far, self._away

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Measure the distances between robots, box and goal. The goal is at (0, 0)."""
        self._look(w)

    def _look(self, w: Worlds) -> None:
        box = w.box_pose[:, 0]
        self._far = np.sqrt(box[:, 0] * box[:, 0] + box[:, 1] * box[:, 1])
        self._away = distances(w.pose, w.box_pose)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Write the commanded velocities of the robots."""
        self._drive(w.command, actions)
        self._before = self._far, self._away

    def rewards(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for progress of the box and of robots, minus the cost of a step."""
        self._look(w)
        far, away = self._before
        # The box's progress is the same for all robots, because they push together.
        progress = far - self._far + self.GOAL_REWARD * self.succeeded()
        out[:] = (
            progress[:, None] + self.APPROACH * (away - self._away) - self.STEP_COST
        )

    def succeeded(self) -> B1:
        """Return whether the box of each world is at the goal."""
        there: B1 = self._far < self.goal_m
        return there

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        own, box = w.pose, w.box_pose
        out[..., 0:2] = between(own, box) / FAR_M
        out[..., 2:4] = between(own, np.zeros(2)) / FAR_M
        turned = headings(own, box)
        out[..., 4:6] = turned
        c, s = turned[..., 0], turned[..., 1]
        ahead, left = w.box_vel[..., 0], w.box_vel[..., 1]
        # The box's velocity is in its own frame: turn it into the robot's.
        out[..., 6], out[..., 7] = c * ahead - s * left, s * ahead + c * left
        self.observe_team(w, out, FAR_M)

    def marks(self, world: int) -> ArrayLike:
        """Return the goal of the box, which images of the world mark."""
        return [(0.0, 0.0)]

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (the box is at the goal) and ``distance`` (of the box, m)."""
        return {"success": self.succeeded(), "distance": self._far.copy()}


__all__ = ["PushBox"]
