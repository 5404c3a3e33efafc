"""Controllers that avoid bodies whose positions they know, for robots and walkers.

The methods are ORCA and the social force model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final, Unpack

import numpy as np

from botyard.api import arguments
from botyard.controllers.base import finite
from botyard.controllers.route import GoalDriver, GoalOptions
from botyard.engine.layout import F8
from botyard.model.kinematics import MUST_TURN
from botyard.model.robot import RobotSpec
from botyard.navigation import crowds
from botyard.numerics.elementary import cosine_sine, hypot
from botyard.numerics.exponentials import log
from botyard.sim.simulation import Robot

APPROACH_S: Final = 1.0
"""Time to the goal below which a robot slows down, s."""
NEAR_WALLS: Final = 8
"""Maximum number of walls that each robot considers."""
WALL_REACH_M: Final = 3.0
"""Distance from the body's edge beyond which walls are ignored, m."""
SIDESTEP: Final = 0.02
"""Maximum tangent of the angle by which a preferred direction deviates from the goal's direction.

Each robot draws its own angle, because no robot would give way in a perfectly symmetric scene.
"""
DEFAULT_SPEED: Final = 1.0
"""Default of the preferred speed, m/s."""
LEAST_SPEED: Final = 0.05
"""Minimum of `stoppable_speed`, for slow ramps and weak forces, m/s."""
STANDING_SHARE: Final = 0.1
"""Fraction of the preferred speed below which a robot counts as standing."""
STANDING_S: Final = 2.0
"""Time of standing near another body after which a robot counts as jammed, s."""
JAM_GAP_M: Final = 0.5
"""Distance from another body below which a standing robot can be jammed, m.

A robot that stands there for `STANDING_S` gives way. Otherwise a ring of robots, each
of which waits for the next one, would stand for ever. The papers do not treat this
case.
"""
GIVING_WAY_S: Final = 2.0
"""Maximum time for which a jammed robot gives way, s.

Time and direction are random.
"""


class CrowdController(GoalDriver, ABC):
    """Controller of one robot among others.

    The controller knows the true poses and velocities of all bodies, and the map.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    **options
        See `GoalOptions`.
    """

    DEFAULTS = GoalDriver.DEFAULTS | GoalOptions(speed=DEFAULT_SPEED)
    speed_factor = 1.0
    """Maximum speed as a multiple of the preferred speed."""

    def __init__(
        self,
        robot: Robot,
        seed: int,
        **options: Unpack[GoalOptions],
    ) -> None:
        super().__init__(robot, seed, **options)
        top = self._limits.max_speed.x
        self._speed = min(self._goals.speed, top)
        # A robot that evades another body may exceed its preferred speed.
        self._top = min(self._speed * self.speed_factor, top)
        self._aside = SIDESTEP * self._goals.draw_sign()
        self._standing_since = 0.0
        self._gives_way_until, self._turned = 0.0, 0.0

    @abstractmethod
    def velocity(
        self, position: F8, velocity: F8, radius: F8, preferred: F8, row: int, walls: F8
    ) -> F8:
        """Return the new velocity of the robot's disc, which the avoidance method computes.

        Parameters
        ----------
        position, velocity : (1, n, 2) float64
            Positions and velocities of the discs of all n bodies, m and m/s, in the
            frame of the world.
        radius : (1, n) float64
            Radii of the discs, m; the radius of the robot's own disc includes the
            clearance.
        preferred : (1, 2) float64
            Velocity that the robot would choose if it were alone, m/s.
        row : int
            Index of the robot's disc.
        walls : (1, w, 4) float64
            End points of the nearest walls, m; NaN for unused rows.

        Returns
        -------
        (1, 2) float64
            Velocity in the frame of the world, m/s.
        """

    def act(self) -> None:
        """Read the true state, and command the robot for the next step."""
        robot, sim = self._robot, self._robot.simulation
        state, row = sim.snapshot.state, sim.snapshot.rows[robot.name]
        radius = self.radii()
        ahead = np.where(MUST_TURN[state.drive], crowds.AHEAD_SHARE * radius, 0.0)
        position, velocity = crowds.discs(
            state.pose[None], state.vel[None], ahead[None]
        )
        x, y = float(position[0, row, 0]), float(position[0, row, 1])
        preferred, has_goal = self._preferred(
            float(state.pose[row, 0]), float(state.pose[row, 1])
        )
        dx, dy = position[0, :, 0] - x, position[0, :, 1] - y
        apart = (
            np.sqrt(dx * dx + dy * dy) - (radius + ahead) - (radius[row] + ahead[row])
        )
        # The distance of the robot from itself must not count.
        apart[row] = math.inf
        if has_goal:
            preferred = self._out_of_jams(
                preferred, velocity[0, row], float(np.nanmin(apart))
            )

        disc = (radius + ahead)[None]
        # Only the robot's own disc grows: if all discs grew, robots would keep twice
        # the clearance.
        disc[0, row] += self._safety
        walls = self.near_walls(
            position[0, row], WALL_REACH_M + float(disc[0, row]), float(ahead[row])
        )
        wanted = self.velocity(position, velocity, disc, preferred, row, walls)
        # Limit the turn rate to π rad/s: in a long step `dt`, a faster robot could turn
        # by more than half a turn.
        turn = min(self._limits.max_speed.a, math.pi)
        v, vy, w = crowds.commands(
            wanted,
            state.pose[row : row + 1, 2],
            ahead[row : row + 1],
            np.array([turn]),
            sim.dt,
        )[0].tolist()
        if robot.spec.kinematics.moves_sideways:
            robot.command(v=v, vy=vy, w=w)
        else:
            robot.command(v=v, w=w)

    def radii(self) -> F8:
        """Return the radii of all bodies, (n,), m; NaN for bodies to ignore."""
        radii: F8 = self._robot.simulation.core.engine.bodies.radius
        return radii

    def near_walls(self, centre: F8, reach: float, ahead: float) -> F8:
        """Return the walls that the robot's disc avoids.

        Parameters
        ----------
        centre : (2,) float64
            Centre of the disc, m.
        reach : float
            Greatest distance of a wall, m.
        ahead : float
            Distance of the disc's centre ahead of the axle, m.

        Returns
        -------
        (1, w, 4) float64
            End points of the nearest walls, m; NaN for unused rows.
        """
        return self._robot.simulation.near_walls(
            centre[None], reach=reach, count=NEAR_WALLS
        )

    def _preferred(self, x: float, y: float) -> tuple[F8, bool]:
        """Return the preferred velocity of a robot.

        The velocity leads to the goal. Without a goal it leads to the position where
        the robot rests, so that a robot that was pushed away returns.

        Parameters
        ----------
        x, y : float
            Position of the robot, m.

        Returns
        -------
        velocity : (1, 2) float64
            The velocity, m/s; 0 at the goal itself.
        has_goal : bool
            Whether the robot drives to a goal now; False while it pauses or has none.
        """
        goal = self._goals.goal(x, y)
        place = self._goals.resting_place() if goal is None else goal
        if place is None:
            return np.zeros((1, 2)), False
        dx, dy = place[0] - x, place[1] - y
        away = hypot(dx, dy)
        speed = min(self._speed, away / APPROACH_S)
        # A robot at its goal has no preferred direction.
        c, s = (dx / away, dy / away) if away > 0.0 else (0.0, 0.0)
        return np.array(
            [[speed * (c - self._aside * s), speed * (s + self._aside * c)]]
        ), goal is not None

    def _out_of_jams(self, preferred: F8, own: F8, gap: float) -> F8:
        """Return the preferred velocity, turned for a while if the robot is jammed.

        Parameters
        ----------
        preferred : (1, 2) float64
            Preferred velocity, m/s.
        own : (2,) float64
            Current velocity of the robot's disc, m/s.
        gap : float
            Distance from the nearest body, m; NaN or infinite without bodies.
        """
        now = self._robot.simulation.time
        x, y = preferred[0].tolist()
        is_standing = (
            hypot(*own.tolist()) < STANDING_SHARE * hypot(x, y) and gap < JAM_GAP_M
        )
        if now < self._gives_way_until:
            c, s = cosine_sine(self._turned)
            return np.array([[c * x - s * y, s * x + c * y]])

        if not is_standing:
            # The robot moves, or no body is near, so the time of standing restarts.
            self._standing_since = now
        elif now - self._standing_since >= STANDING_S:
            # Time and direction are random, so that two robots that block each other
            # choose differently.
            self._turned = math.pi * self._goals.draw_sign()
            self._gives_way_until = self._standing_since = now + GIVING_WAY_S * abs(
                self._goals.draw_sign()
            )

        return preferred

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`.

        Returns
        -------
        list
            State of the goals; start of standing, s; end of giving way, s; and the
            angle by which the robot gives way, rad.
        """
        return [
            super().get_state(),
            self._standing_since,
            self._gives_way_until,
            self._turned,
        ]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`."""
        goals, *times = state
        self._standing_since, self._gives_way_until, self._turned = map(finite, times)
        super().set_state(goals)

    def rest(self) -> None:
        """Do nothing: the controller reads no sensor."""


class Orca(CrowdController):
    """Controller that uses optimal reciprocal collision avoidance (van den Berg et al. 2011).

    See `botyard.navigation.crowds.orca`.

    Parameters
    ----------
    horizon, wall_horizon : float
        Time ahead in which collisions are avoided, s: with other bodies, and with
        walls.
    **options
        See `GoalOptions`.

    Raises
    ------
    ArgumentError
        A time is not above 0, or an option is not valid.
    WorldError
        The robot does not drive.
    """

    name = "orca"

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        horizon: float = 3.0,
        wall_horizon: float = 0.5,
        **options: Unpack[GoalOptions],
    ) -> None:
        super().__init__(robot, seed, **options)
        self._horizon = arguments.number(
            horizon, "horizon", low=0.0, above=True, unit="s"
        )
        self._wall_horizon = arguments.number(
            wall_horizon, "wall_horizon", low=0.0, above=True, unit="s"
        )

    def velocity(
        self, position: F8, velocity: F8, radius: F8, preferred: F8, row: int, walls: F8
    ) -> F8:
        """Return the new velocity by ORCA, see `CrowdController.velocity`."""
        return crowds.orca(
            position,
            velocity,
            radius,
            preferred,
            np.array([self._top]),
            dt=self._robot.simulation.dt,
            walls=walls,
            chosen=np.array([[0, row]]),
            horizon=self._horizon,
            wall_horizon=self._wall_horizon,
        )


def stoppable_speed(spec: RobotSpec, forces: crowds.Forces) -> float:
    """Return the maximum speed at which two robots that meet head-on can stop.

    The model slows a robot where the repulsive force exceeds the force towards the
    goal: A / m exp(−r / B) > v / τ, so up to the distance r = B ln(A τ / (m v)). Both
    robots must stop within this distance. With deceleration d they need 2 v² / (2 d)
    together. The paper has no such limit, because its pedestrians have no limits of
    deceleration.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robots, with its limits of speed and deceleration.
    forces : Forces
        Parameters of the social force model.

    Returns
    -------
    float
        The speed, m/s, from `LEAST_SPEED` to 1 m/s, and at most the robot's maximum
        speed.
    """
    limits = spec.kinematics.limits
    ramps = [
        limits.decel.x,
        *([limits.decel.y] if spec.kinematics.moves_sideways else []),
    ]
    ramp = min((d for d in ramps if d > 0.0), default=math.inf)
    slow, fast = 0.0, min(DEFAULT_SPEED, limits.max_speed.x)

    def stops(v: float) -> bool:
        return v * v / ramp <= forces.range * log(
            forces.strength * forces.relaxation / v
        )

    if (
        not forces.strength > 0.0
        or math.isinf(ramp)
        or fast <= LEAST_SPEED
        or stops(fast)
    ):
        return fast

    # 30 bisections of at most 1 m/s leave an error of 1 nm/s.
    for _ in range(30):
        middle = 0.5 * (slow + fast)
        slow, fast = (middle, fast) if stops(middle) else (slow, middle)

    return max(slow, LEAST_SPEED)


class SocialForce(CrowdController):
    """Controller that uses the social force model (Helbing, Farkas, Vicsek 2000).

    See `botyard.navigation.crowds.social_force`.

    Parameters
    ----------
    speed : float, optional
        Preferred speed, m/s. The default is 1 m/s, or `stoppable_speed` if that is
        less: robots that brake slowly drive slower than the paper's pedestrians.
    relaxation, strength, range : float
        Parameters of the model: relaxation time τ, s; strength of the repulsive force
        per mass, A / m, m/s²; its range B, m.
    **options
        See `GoalOptions`.

    Raises
    ------
    ArgumentError
        A parameter of the model or an option is not valid.
    WorldError
        The robot does not drive.
    """

    name = "socialforce"
    DEFAULTS = CrowdController.DEFAULTS | GoalOptions(speed=None)
    speed_factor = 1.3

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        relaxation: float = 0.5,
        strength: float = 25.0,
        range: float = 0.08,
        **options: Unpack[GoalOptions],
    ) -> None:
        self._forces = crowds.Forces(
            relaxation=arguments.number(
                relaxation, "relaxation", low=0.0, above=True, unit="s"
            ),
            strength=arguments.number(strength, "strength", low=0.0, unit="m/s²"),
            range=arguments.number(range, "range", low=0.0, above=True, unit="m"),
        )
        if options.get("speed") is None:
            # `stoppable_speed` is 0 for a robot that cannot drive. With the default
            # speed instead, the constructor below reports that the robot does not
            # drive.
            options["speed"] = (
                stoppable_speed(robot.spec, self._forces) or DEFAULT_SPEED
            )

        super().__init__(robot, seed, **options)
        self._asked: F8 = np.zeros((2, 2))
        """Commanded velocity of the last step, and the model's velocity at the end of
        that step, m/s.

        They differ: within a step, the robot keeps its velocity, but the model
        accelerates.
        """

    def velocity(
        self, position: F8, velocity: F8, radius: F8, preferred: F8, row: int, walls: F8
    ) -> F8:
        """Return the new velocity by the social force model, see `CrowdController.velocity`."""
        # If the robot followed the last command, the model continues from the velocity
        # that it computed for the end of that step. Otherwise it continues from the
        # robot's velocity.
        velocity[0, row] = crowds.continued(velocity[0, row], *self._asked)
        ends = np.empty((1, 2))
        wanted = crowds.social_force(
            position,
            velocity,
            radius,
            preferred,
            np.array([self._top]),
            dt=self._robot.simulation.dt,
            walls=walls,
            chosen=np.array([[0, row]]),
            forces=self._forces,
            ends=ends,
        )
        self._asked = np.concatenate([wanted, ends])
        return wanted

    def get_state(self) -> list[Any]:
        """Return the state of the controller, see `botyard.controllers.base.Controller`."""
        return [*super().get_state(), *self._asked.ravel().tolist()]

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller, see `botyard.controllers.base.Controller`.

        Parameters
        ----------
        state : list
            The state, as from `get_state`. States of older versions lack the last four
            values, the velocities of the last step.

        Raises
        ------
        TypeError, ValueError
            The state is not valid.
        """
        super().set_state(state[:4])
        self._asked = np.array(
            [finite(one) for one in state[4:8]] or [0.0] * 4
        ).reshape(2, 2)


__all__ = ["Orca", "SocialForce", "stoppable_speed"]
