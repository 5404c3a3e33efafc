"""Baseline policies of the navigation benchmark, none of which learns.

One policy drives straight to the goal; the others use published methods of
`botyard.navigation`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.errors import CommandLineError, did_you_mean
from botyard.geometry import IDENTITY
from botyard.learning.benchmark import Policy, Setup
from botyard.learning.tasks.base import F4, F8
from botyard.learning.tasks.robots import WALKER_RADIUS_M
from botyard.navigation import crowds, local
from botyard.numerics import elementwise
from botyard.processes import codeload

SAFETY_M: Final = 0.1
"""Clearance that the baselines keep around the robot, m."""
TURN_GAIN: Final = 2.0
"""Turn rate per radian of bearing, 1/s."""
APPROACH_S: Final = 1.0
"""Time to the goal below which a robot slows down, s."""


class Baseline(ABC):
    """Base class of policies that turn observations into velocities.

    Parameters
    ----------
    setup : Setup
        Description of the worlds and of the robot.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @abstractmethod
    def act(self, observations: F4) -> NDArray[Any]:
        """Return the actions for observations, see `botyard.learning.benchmark.Policy.act`."""

    def ranges(self, observations: F4) -> F8:
        """Return the ranges that the lidar has measured.

        Parameters
        ----------
        observations : (n, r + 5) float32
            As `act` gets them.

        Returns
        -------
        (n, r) float64
            Ranges, m, from the right to the left end of the field of view. A ray that
            hits nothing has the maximum range.
        """
        return (
            observations[:, : len(self.setup.angles)].astype(np.float64)
            * self.setup.range_max
        )

    def goal(self, observations: F4) -> F8:
        """Return the position of the goal in the frame of the robot.

        Parameters
        ----------
        observations : (n, r + 5) float32
            As `act` gets them.

        Returns
        -------
        (n, 2) float64
            Distance ahead and to the left, m. The observed distance saturates at
            `Setup.far`: a goal beyond it appears at that distance, in the right
            direction.
        """
        r = len(self.setup.angles)
        own = observations[:, r : r + 3].astype(np.float64)
        return own[:, 1:] * (own[:, :1] * self.setup.far)

    def velocities(self, observations: F4) -> F8:
        """Return the current velocities of the robot.

        Parameters
        ----------
        observations : (n, r + 5) float32
            As `act` gets them.

        Returns
        -------
        (n, 2) float64
            Linear velocity, m/s, and angular velocity, rad/s.
        """
        r = len(self.setup.angles)
        return observations[:, r + 3 : r + 5].astype(np.float64) * [
            self.setup.max_v,
            self.setup.max_w,
        ]

    def actions(self, v: F8, w: F8) -> F8:
        """Return the actions that command given velocities.

        Parameters
        ----------
        v, w : (n,) float64
            Linear velocities, m/s, and angular velocities, rad/s.

        Returns
        -------
        (n, 2) float64
            Fractions of the maximum velocities, not clipped.
        """
        return np.stack([v / self.setup.max_v, w / self.setup.max_w], axis=1)

    def points(self, observations: F4) -> F8:
        """Return the points that the lidar hits.

        Parameters
        ----------
        observations : (n, r + 5) float32
            As `act` gets them.

        Returns
        -------
        (n, r, 2) float64
            Points in the frame of the robot, ahead and to the left, m; NaN for rays
            that hit nothing.
        """
        s = self.setup
        # A ray that hits nothing reads the maximum range. Without the factor, rounding
        # in the observation (float32) could turn it into a hit.
        return local.points_of(
            self.ranges(observations), s.angles, IDENTITY, 0.999 * s.range_max
        )


class Straight(Baseline):
    """Policy that drives straight to the goal and ignores all obstacles."""

    def act(self, observations: F4) -> NDArray[Any]:
        """Return the actions towards the goal, see `botyard.learning.benchmark.Policy.act`."""
        goal, s = self.goal(observations), self.setup
        bearing = elementwise.atan2(goal[:, 1], goal[:, 0])
        ahead = np.maximum(elementwise.cos(bearing), 0.0)
        w = np.clip(TURN_GAIN * bearing, -s.max_w, s.max_w)
        # The square slows the robot early in a turn: otherwise the robot would circle
        # around a near goal.
        return self.actions(s.max_v * ahead * ahead, w)


class DynamicWindow(Baseline):
    """Policy that uses the dynamic window approach, with the weights of the paper.

    Fox, Burgard, Thrun 1997.
    """

    ACCEL: Final = (1.0, 4.0)
    """Accelerations assumed for the window, m/s² and rad/s².

    The robot itself has no limits of acceleration, but the method needs finite ones.
    """

    def act(self, observations: F4) -> NDArray[Any]:
        """Return the actions by the dynamic window, see `botyard.learning.benchmark.Policy.act`."""
        s = self.setup
        found = local.dynamic_window(
            self.points(observations),
            self.goal(observations),
            self.velocities(observations),
            dt=s.dt,
            radius=s.radius + SAFETY_M,
            max_v=s.max_v,
            max_w=s.max_w,
            accel=self.ACCEL,
            brake=self.ACCEL,
        )
        return self.actions(found[:, 0], found[:, 1])


class FieldHistogram(Baseline):
    """Policy that uses VFH+ (Ulrich, Borenstein 1998) with the paper's weights.

    The policy integrates its heading from the observed turn rates.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._memory = local.Histograms(setup.worlds)
        self._heading: F8 = np.zeros(setup.worlds)

    def act(self, observations: F4) -> NDArray[Any]:
        """Return the actions by VFH+, see `botyard.learning.benchmark.Policy.act`."""
        s, goal, now = (
            self.setup,
            self.goal(observations),
            self.velocities(observations),
        )
        # The histogram compares directions with the direction chosen before, so it
        # needs a heading in a fixed frame. Observations contain none.
        self._heading = self._heading + now[:, 1] * s.dt
        away = np.sqrt(goal[:, 0] * goal[:, 0] + goal[:, 1] * goal[:, 1])
        found = local.vector_field_histogram(
            # Obstacles behind the goal must not block the direction towards it.
            local.before(self.points(observations), away + s.radius),
            elementwise.atan2(goal[:, 1], goal[:, 0]),
            self._heading,
            self._memory,
            radius=s.radius + SAFETY_M,
            turn_radius=np.abs(now[:, 0]) / s.max_w,
            window=2.0,
        )
        v, w = local.histogram_velocities(
            found, np.minimum(s.max_v, away / APPROACH_S), s.max_w
        )
        return self.actions(v, w)


class Orca(Baseline):
    """Policy that uses optimal reciprocal collision avoidance (van den Berg et al. 2011).

    The policy reads the walls and all true positions from `Setup.truth`, which no real
    robot knows.
    """

    HORIZON_S: Final = 2.0
    WALL_HORIZON_S: Final = 0.5

    def act(self, observations: F4) -> NDArray[Any]:
        """Return the actions by ORCA, see `botyard.learning.benchmark.Policy.act`."""
        s = self.setup
        w, n = s.truth, s.worlds
        bodies = w.pose.shape[1]
        # ORCA moves discs in any direction, but this robot has wheels. The method
        # steers a point ahead of the axle, which can move in any direction, and the
        # disc grows by that offset.
        ahead = np.zeros((n, bodies))
        ahead[:, 0] = crowds.AHEAD_SHARE * s.radius
        radius = np.full((n, bodies), WALKER_RADIUS_M)
        radius[:, 0] = s.radius + ahead[:, 0] + SAFETY_M
        position, velocity = crowds.discs(w.pose, w.vel, ahead)
        to = s.goals - position[:, 0]
        away = np.maximum(np.sqrt(to[:, 0] * to[:, 0] + to[:, 1] * to[:, 1]), 1e-9)
        preferred = to * (np.minimum(s.max_v, away / APPROACH_S) / away)[:, None]
        found = crowds.orca(
            position,
            velocity,
            radius,
            preferred,
            np.full(n, s.max_v),
            dt=s.dt,
            horizon=self.HORIZON_S,
            wall_horizon=self.WALL_HORIZON_S,
            walls=w.near_walls(position[:, :1], reach=3.0, count=8)[:, 0],
            chosen=np.stack([np.arange(n), np.zeros(n, np.int64)], axis=1),
        )
        own = crowds.commands(
            found, w.pose[:, 0, 2], ahead[:, 0], np.full(n, s.max_w), s.dt
        )
        return self.actions(own[:, 0], own[:, 2])


BASELINES: Final[dict[str, type[Baseline]]] = {
    "straight": Straight,
    "dwa": DynamicWindow,
    "vfh": FieldHistogram,
    "orca": Orca,
}
"""Baseline policies by the names that the command line accepts."""


def find_policy(name: str) -> Callable[[Setup], Policy]:
    """Return the class of a policy, given its name.

    Parameters
    ----------
    name : str
        A name of `BASELINES`, or the user's own class as ``module:Class`` or
        ``file.py:Class``, which is imported.

    Raises
    ------
    CommandLineError
        The name is unknown, or the import fails (the message names the user's line that
        caused it), or the object is not callable.
    """
    if name in BASELINES:
        return BASELINES[name]
    if not codeload.is_code(name):
        known = f"{', '.join(BASELINES)}, module:Class or file.py:Class"
        raise CommandLineError(
            f'no policy "{name}"{did_you_mean(name, BASELINES)} (known: {known})'
        )

    try:
        found: Callable[[Setup], Policy] = codeload.load_named(name)
    # The user's module may raise any exception when it is imported.
    except Exception as error:
        raise CommandLineError(f"policy {name}: {codeload.said_of(error)}") from error

    if not callable(found):
        raise CommandLineError(
            f"policy {name}: expected a class, found {arguments.found(found)}"
        )

    return found


__all__ = [
    "BASELINES",
    "Baseline",
    "DynamicWindow",
    "FieldHistogram",
    "Orca",
    "Straight",
    "find_policy",
]
