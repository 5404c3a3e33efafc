"""Learning task Follow: keep a distance from a moving robot."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.learning.tasks.base import B1, F4, F8, I8, START_STREAM, EpisodeDraws, Task
from botyard.learning.tasks.geometry import between, distances, headings
from botyard.learning.tasks.robots import Driving, lidar_robot
from botyard.model.mapbuilder import MapBuilder
from botyard.numerics import elementwise
from botyard.worlds.worlds import Worlds

HALL_M: Final = 12.0
"""Edge length of the hall, m."""
WALL_M: Final = 1.5
"""Minimum distance between the leader's waypoints and walls, m."""
WAYPOINTS: Final = 16
"""Number of waypoints that the leader visits in a cycle."""
NEAR_M: Final = 0.4
"""Distance from a waypoint at which the leader turns to the next one, m."""
BLOCKED_M: Final = 0.7
BLOCKED_SHARE: Final = 0.6
"""Fraction of the distance to keep, within which a follower ahead blocks the leader.

A blocked leader waits. The limit is the smaller of `BLOCKED_M` (m) and this fraction, so a follower
that blocks the leader never has the right distance.
"""


class Follow(Task):
    """Keep a distance from another robot, which drives between waypoints in a hall.

    Robot 0 follows. Robot 1 leads, and the task drives it.

    Observation, float32, (rays + 8,):

    - ranges divided by the lidar's maximum range;
    - position of the leader, ahead and to the left, as fractions of `lost_m`;
    - cosine and sine of its heading relative to the follower's;
    - linear and angular velocity of the leader, then of the follower, as fractions of
      their maximum.

    Action, (2,): linear and angular velocity, −1 … 1.

    The reward of a step is 0.1 at the right distance, minus 0.1 for each `distance_m`
    of error, and at least −0.1. A contact, or a leader farther away than `lost_m`,
    costs 5 and ends the episode. ``success`` in infos: the episode lasted `max_steps`,
    and for four fifths of them the error of the distance was less than a third.

    Parameters
    ----------
    rays : int
        Number of lidar rays.
    distance_m : float
        Distance to keep between the centres of both robots, m: 0.6 … 3. The robots are
        0.4 m wide and start at 0.8 … 1.2 times this distance.
    lost_m : float, optional
        Distance at which the leader is lost, m: at least twice `distance_m`. The
        default is 5 m, or twice `distance_m` if that is more.
    leader_speed : float
        Speed of the leader, m/s; the follower reaches 1 m/s.
    max_steps : int
        Maximum number of steps of an episode.
    """

    LOSS: ClassVar[float] = 5.0
    LOST_M: ClassVar[float] = 5.0
    RIGHT_SHARE: ClassVar[float] = 0.8
    RIGHT_ERROR: ClassVar[float] = 1.0 / 3.0
    """Maximum relative error of a distance that counts as right."""

    def __init__(
        self,
        *,
        rays: int = 32,
        distance_m: float = 1.2,
        lost_m: float | None = None,
        leader_speed: float = 0.5,
        max_steps: int = 300,
    ) -> None:
        follower, leader = (
            lidar_robot(arguments.whole(rays, "rays", low=1)),
            lidar_robot(0),
        )
        self.robots = follower, leader
        self.scenes = (
            MapBuilder("hall")
            .rectangle(-HALL_M / 2, -HALL_M / 2, HALL_M, HALL_M)
            .scene()
        )
        self.sensors = ("laser",)
        self.poses = self._starts
        self.distance_m: float = arguments.number(
            distance_m, "distance_m", low=0.6, high=3.0, unit="m"
        )
        least = 2.0 * self.distance_m
        self.lost_m: float = (
            max(self.LOST_M, least)
            if lost_m is None
            else arguments.number(lost_m, "lost_m", low=least, unit="m")
        )
        self.leader_speed: float = arguments.number(
            leader_speed, "leader_speed", low=0.0, high=1.0, unit="m/s"
        )
        self._blocked = min(BLOCKED_M, BLOCKED_SHARE * self.distance_m)
        self.max_steps = arguments.whole(max_steps, "max_steps", low=1)
        self._drive = Driving(follower)
        self._range = follower.lasers[0].range_max

    def _starts(self, seeds: NDArray[np.uint64]) -> F8:
        """Return start poses with random headings.

        The leader starts anywhere. The follower starts at about the right distance,
        nearer to the centre of the hall, where there is free space.

        Parameters
        ----------
        seeds : (k,) uint64
            Seeds of the episodes that start.

        Returns
        -------
        (k, 2, 3) float64
            Poses of follower and leader: m, m, rad.
        """
        draws, free = EpisodeDraws(seeds, START_STREAM), HALL_M / 2 - WALL_M
        leader = np.stack(
            [
                draws.uniform(-free, free),
                draws.uniform(-free, free),
                draws.uniform(-math.pi, math.pi),
            ],
            axis=-1,
        )
        # The follower is towards the centre, so that it never starts in a wall.
        inward = elementwise.atan2(-leader[:, 1], -leader[:, 0]) + draws.uniform(
            -0.5, 0.5
        )
        c, s = elementwise.cosine_sine(inward)
        apart = self.distance_m * draws.uniform(0.8, 1.2)
        heading = draws.uniform(-math.pi, math.pi)
        follower = np.stack(
            [leader[:, 0] + apart * c, leader[:, 1] + apart * s, heading], axis=-1
        )
        return np.stack([follower, leader], axis=1)

    def observation_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of observations, which the class describes."""
        rays = w.ranges.shape[2]
        low, high = np.zeros(rays + 8, np.float32), np.ones(rays + 8, np.float32)
        low[rays:], high[rays:] = -2.0, 2.0
        return low, high

    def action_bounds(self, w: Worlds) -> tuple[F4, F4]:
        """Return the bounds of actions: −1 … 1 of the maximum velocities."""
        return -np.ones(2, np.float32), np.ones(2, np.float32)

    def begin(self, w: Worlds) -> None:
        """Make the arrays of the leaders' waypoints."""
        n = len(w)
        self._way: F8 = np.zeros((n, WAYPOINTS, 2))
        self._next: I8 = np.zeros(n, np.int64)
        self._right: I8 = np.zeros(n, np.int64)
        self._far: F8 = np.zeros(n)
        self._row = np.arange(n)

    def on_reset(self, w: Worlds, mask: I8, rng: EpisodeDraws) -> None:
        """Draw the leaders' waypoints where an episode has started."""
        free = HALL_M / 2 - WALL_M
        self._way[mask] = rng.uniforms(2 * WAYPOINTS, -free, free).reshape(
            -1, WAYPOINTS, 2
        )
        self._next[mask] = self._right[mask] = 0
        self._far = distances(w.pose[:, 0], w.pose[:, 1])

    def act(self, w: Worlds, actions: NDArray[Any]) -> None:
        """Command the followers' velocities, and drive the leaders to their waypoints.

        A leader slows down while it turns.
        """
        self._drive(w.command[:, 0], actions)
        leader = w.pose[:, 1]
        to = between(leader, self._way[self._row, self._next])
        far = np.sqrt(to[:, 0] * to[:, 0] + to[:, 1] * to[:, 1])
        self._next[:] = np.where(far < NEAR_M, self._next + 1, self._next) % WAYPOINTS
        ahead = np.maximum(to[:, 0] / np.maximum(far, 1e-9), 0.0)
        other = between(leader, w.pose[:, 0])
        # Without the wait, the leader would push a follower that blocks it, which ends
        # the episode.
        waits = (other[:, 0] > 0.0) & (self._far < self._blocked)
        w.command[:, 1, 0] = np.where(waits, 0.0, self.leader_speed * ahead)
        w.command[:, 1, 2] = np.clip(
            2.0 * elementwise.atan2(to[:, 1], to[:, 0]), -1.5, 1.5
        )

    def reward(self, w: Worlds, out: F8) -> None:
        """Write the rewards: for the right distance, minus costs of contacts and a lost leader."""
        self._far = distances(w.pose[:, 0], w.pose[:, 1])
        error = np.abs(self._far - self.distance_m) / self.distance_m
        # At tick 0 the episode has just started: no step has been driven.
        self._right += (error < self.RIGHT_ERROR) & (w.tick > 0)
        out[:] = 0.1 * np.maximum(1.0 - error, -1.0) - self.LOSS * self._is_over(w)

    def _is_over(self, w: Worlds) -> B1:
        over: B1 = (
            (w.contact[:, 0] != 0) | (w.contact[:, 1] != 0) | (self._far > self.lost_m)
        )
        return over

    def done(self, w: Worlds, terminated: B1, truncated: B1) -> None:
        """End episodes on contact, when the leader is lost, or after `max_steps`."""
        terminated[:] = self._is_over(w)
        truncated[:] = ~terminated & (w.tick >= self.max_steps)

    def observe(self, w: Worlds, out: F4) -> None:
        """Write the observations, which the class describes."""
        rays = w.ranges.shape[2]
        np.minimum(w.ranges[:, 0] / np.float32(self._range), 1.0, out=out[:, :rays])
        follower, leader = w.pose[:, 0], w.pose[:, 1]
        out[:, rays : rays + 2] = np.clip(
            between(follower, leader) / self.lost_m, -2.0, 2.0
        )
        out[:, rays + 2 : rays + 4] = headings(follower, leader)
        self._drive.observe(w.vel[:, 1], out[:, rays + 4 : rays + 6])
        self._drive.observe(w.vel[:, 0], out[:, rays + 6 :])

    def info(self, w: Worlds) -> dict[str, NDArray[Any]]:
        """Return ``success`` (see the class) and ``distance`` (of the leader, m)."""
        kept = self._right >= self.RIGHT_SHARE * w.tick
        return {
            "success": kept & (w.tick >= self.max_steps) & ~self._is_over(w),
            "distance": self._far.copy(),
        }


__all__ = ["Follow"]
