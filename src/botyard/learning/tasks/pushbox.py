"""PushBox: robots push a box to a goal."""

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
    TeamTask,
)
from botyard.learning.tasks.geometry import between, distances, headings, seen_others
from botyard.learning.tasks.robots import Driving, lidar_robot
from botyard.model.dynamics import DynamicsSpec
from botyard.model.obstacles import BoxObject
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds

ROBOT_RADIUS_M: Final = 0.2
FAR_M: Final = 3.0
"""Unit of places in observations, m."""


class PushBox(TeamTask):
    """Robots push a box with mass to a goal, and may not pull it. There are no walls.

    Observation of each robot, float32, (10 + 4 k,) with k = min(robots − 1,
    `neighbours`): places of the box and of the goal, ahead and to the left, as shares
    of 3 m; cosine and sine of the heading of the box relative to the robot's; velocity
    of the box ahead and to the left, m/s; velocities forward and of rotation of the
    robot as shares of the greatest; of each of the k nearest others, nearest first:
    place ahead and to the left, as shares of 3 m, and velocity ahead and to the left in
    the robot's own axes, m/s. Action of each robot, (2,): velocities forward and of
    rotation, −1 … 1.

    The reward of each robot is the progress of the box towards the goal, m; a tenth of
    its own progress towards the box, m; and 0.01 less for each step. An episode ends
    when the middle of the box is within `goal_m` of the goal: each robot gets 5 more,
    and ``success`` in infos says it.

    Parameters
    ----------
    robots : int
        Number of robots.
    size : float
        Length and width of the box, m.
    mass : float
        Of the box, kg.
    friction : float
        Coefficient of friction of the box on the floor.
    least_m, most_m : float
        Least and greatest distance between box and goal at the beginning, m.
    neighbours : int
        How many others each robot sees.
    goal_m : float
        See above, m.
    max_steps : int
        Steps of an episode.
    """

    GOAL_REWARD: ClassVar[float] = 5.0
    STEP_COST: ClassVar[float] = 0.01
    APPROACH: ClassVar[float] = 0.1
    """How much a robot's progress towards the box counts."""
    LEAST_ARC_M: ClassVar[float] = 0.6
    """Least distance of robots on the circle on which they begin, m."""

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
        self.neighbours: int = min(
            arguments.whole(neighbours, "neighbours", low=0), count - 1
        )
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
        self._circle = max(
            size * math.sqrt(0.5) + ROBOT_RADIUS_M + 0.3,
            count * self.LEAST_ARC_M / (2.0 * math.pi),
        )  # around the box, m: wide enough for all robots
        spec = lidar_robot(0, radius=ROBOT_RADIUS_M)
        self.robots = (spec,) * count
        self.box_poses = self._begin_boxes
        self.poses = self._begin_robots
        self._drive = Driving(spec)

    def _begin_boxes(self, seeds: NDArray[np.uint64]) -> F8:
        """Where the box begins, the goal is at (0, 0): in any direction, with any
        heading.
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
        """Where robots begin: evenly on a circle around the box, which is turned at
        random, with any headings.
        """
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

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """See the class."""
        own = [20.0, 20.0, 20.0, 20.0, 1.0, 1.0, 5.0, 5.0, 2.0, 2.0]
        high = np.array(own + [20.0, 20.0, 5.0, 5.0] * self.neighbours, np.float32)
        highs = np.tile(high, (len(self.robots), 1))
        return -highs, highs

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Shares of the greatest velocities."""
        high = np.ones((len(self.robots), 2), np.float32)
        return -high, high

    def begin(self, w: Worlds) -> None:
        """Make the arrays of distances."""
        self._far: F8 = np.zeros(len(w))
        self._away: F8 = np.zeros((len(w), len(self.robots)))
        self._before = self._far, self._away

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """The goal is where it always is."""
        self._look(w)

    def _look(self, w: Worlds) -> None:
        box = w.box_pose[:, 0]
        self._far = np.sqrt(box[:, 0] * box[:, 0] + box[:, 1] * box[:, 1])
        self._away = distances(w.pose, w.box_pose)

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Take velocities."""
        self._drive(w.command, actions)
        self._before = self._far, self._away

    def rewards(self, w: Worlds, out: F8) -> None:
        """Progress of the box and towards it, the goal, the step."""
        self._look(w)
        far, away = self._before
        progress = far - self._far + self.GOAL_REWARD * self._is_there()
        out[:] = (
            progress[:, None] + self.APPROACH * (away - self._away) - self.STEP_COST
        )

    def _is_there(self) -> B1:
        there: B1 = self._far < self.goal_m
        return there

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """When the box is at the goal; after `max_steps`."""
        terminated[:] = self._is_there()
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """See the class."""
        own, box = w.pose, w.box_pose
        out[..., 0:2] = between(own, box) / FAR_M
        out[..., 2:4] = between(own, np.zeros(2)) / FAR_M
        turned = headings(own, box)
        out[..., 4:6] = turned
        c, s = turned[..., 0], turned[..., 1]
        ahead, left = w.box_vel[..., 0], w.box_vel[..., 1]
        out[..., 6], out[..., 7] = c * ahead - s * left, s * ahead + c * left
        self._drive.observe(w.vel, out[..., 8:10])
        out[..., 10:] = seen_others(w, self.neighbours, FAR_M)
        low, high = self.observation_bounds(w)
        np.clip(out, low, high, out=out)

    def marks(self, world: int) -> ArrayLike:
        """Where the box goes."""
        return [(0.0, 0.0)]

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """``success``: whether the box is at the goal; ``distance`` of the goal from
        the box, m.
        """
        return {"success": self._is_there(), "distance": self._far.copy()}


__all__ = ["PushBox"]
