"""Controllers that avoid others by knowing where they are: ORCA and the social force
model, for robots and for walkers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from botyard.api import arguments
from botyard.controllers.base import finite
from botyard.controllers.route import GoalDriver
from botyard.engine.layout import F8
from botyard.model.robot import Drive, RobotSpec
from botyard.navigation import crowds
from botyard.numerics.elementary import cosine_sine, hypot, log
from botyard.sim.simulation import Robot

APPROACH_S: Final = 1.0
"""Nearer to its goal than what it goes in this time, a robot slows down, s."""
NEAR_WALLS: Final = 8
"""Walls that each looks at."""
WALL_REACH_M: Final = 3.0
"""Walls that are farther away than this beyond its edge are not looked at, m."""
SIDESTEP: Final = 0.02
"""Preferred directions are off by up to this angle's tangent, drawn for each robot: in
scenes of perfect symmetry nobody would give way.
"""
DEFAULT_SPEED: Final = 1.0
"""Preferred speed, m/s, where none is asked for."""
LEAST_SPEED: Final = 0.05
"""However slow the ramps and weak the forces, `stoppable_speed` is not less than this,
m/s.
"""
STANDING_SHARE: Final = 0.1
"""Who is slower than this share of its preferred speed stands."""
STANDING_S: Final = 2.0
JAM_GAP_M: Final = 0.5
"""Who has stood so long, so near to another one, gives way: in a ring of robots each of
which waits for the next one, all would stand for ever, and the papers say nothing of
that.
"""
GIVING_WAY_S: Final = 2.0
"""Longest time for which it goes elsewhere; time and direction are drawn."""


class CrowdController(GoalDriver, ABC):
    """Drives one robot among others. It knows the true poses and velocities of all
    bodies, and the map.

    Parameters
    ----------
    robot, seed
        See `botyard.controllers.base.ControllerFactory`.
    points : sequence of [x, y], optional
        Goals one after the other, m; without them random places that can be reached in
        a straight line.
    order : str
        ``loop``: from the last point to the first; ``back``: back and forth; ``once``:
        stop at the last point.
    pause : float
        Pause at a point; longest pause at a random place, s.
    reached : float
        Distance at which a goal counts as reached, m.
    speed : float
        Preferred speed, m/s.
    area : [x0, y0, x1, y1], optional
        Area of the random places, m.
    safety : float
        Distance from others and from walls that is kept beyond the body's edge, m.
    """

    speed_factor = 1.0
    """Greatest speed as a multiple of the preferred one."""

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        points: Sequence[Sequence[float]] | None = None,
        order: str = "loop",
        pause: float = 0.0,
        reached: float = 0.3,
        speed: float = DEFAULT_SPEED,
        area: Sequence[float] | None = None,
        safety: float = 0.05,
    ) -> None:
        super().__init__(
            robot,
            seed,
            points=points,
            order=order,
            pause=pause,
            reached=reached,
            speed=speed,
            area=area,
            safety=safety,
        )
        top = robot.spec.limits.max_speed.x
        self._speed = min(self._goals.speed, top)
        self._top = min(self._speed * self.speed_factor, top)
        self._aside = SIDESTEP * self._goals.draw_sign()
        self._standing_since = 0.0
        self._gives_way_until, self._turned = 0.0, 0.0

    @abstractmethod
    def velocity(
        self, position: F8, velocity: F8, radius: F8, preferred: F8, row: int, walls: F8
    ) -> F8:
        """The new velocity, (1, 2) m/s, of disc `row` of (1, n) discs."""

    def act(self) -> None:
        """Look at all, and command the robot for the next step."""
        robot, sim = self._robot, self._robot.simulation
        state, row = sim.snapshot.state, sim.snapshot.rows[robot.name]
        radius = sim.engine.bodies.radius
        ahead = np.where(state.drive == Drive.DIFF, crowds.AHEAD_SHARE * radius, 0.0)
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
        apart[row] = math.inf
        if has_goal:
            preferred = self._out_of_jams(
                preferred, velocity[0, row], float(np.nanmin(apart))
            )

        disc = (radius + ahead)[None]
        disc[0, row] += self._safety
        walls = sim.near_walls(
            position[0, row : row + 1],
            reach=WALL_REACH_M + float(disc[0, row]),
            count=NEAR_WALLS,
        )
        wanted = self.velocity(position, velocity, disc, preferred, row, walls)
        turn = min(robot.spec.limits.max_speed.a, math.pi)
        v, vy, w = crowds.commands(
            wanted,
            state.pose[row : row + 1, 2],
            ahead[row : row + 1],
            np.array([turn]),
            sim.dt,
        )[0].tolist()
        if robot.spec.drive is Drive.OMNI:
            robot.command(v=v, vy=vy, w=w)
        else:
            robot.command(v=v, w=w)

    def _preferred(self, x: float, y: float) -> tuple[F8, bool]:
        """The velocity, (1, 2), m/s, to the goal of a robot at (x, y); without one, to
        where it rests. Whether it has a goal.
        """
        goal = self._goals.goal(x, y)
        place = self._goals.resting_place() if goal is None else goal
        if place is None:
            return np.zeros((1, 2)), False
        dx, dy = place[0] - x, place[1] - y
        away = hypot(dx, dy)
        speed = min(self._speed, away / APPROACH_S)
        c, s = (dx / away, dy / away) if away > 0.0 else (0.0, 0.0)
        return np.array(
            [[speed * (c - self._aside * s), speed * (s + self._aside * c)]]
        ), goal is not None

    def _out_of_jams(self, preferred: F8, own: F8, gap: float) -> F8:
        """The preferred velocity, turned for a while after the robot has stood beside
        another one, `gap` m away.
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
            self._standing_since = now
        elif now - self._standing_since >= STANDING_S:
            self._turned = math.pi * self._goals.draw_sign()
            self._gives_way_until = self._standing_since = now + GIVING_WAY_S * abs(
                self._goals.draw_sign()
            )

        return preferred

    def get_state(self) -> list[Any]:
        """See `botyard.controllers.base.Controller`."""
        return [
            super().get_state(),
            self._standing_since,
            self._gives_way_until,
            self._turned,
        ]

    def set_state(self, state: Any) -> None:
        """See `botyard.controllers.base.Controller`."""
        goals, *times = state
        self._standing_since, self._gives_way_until, self._turned = map(finite, times)
        super().set_state(goals)

    def rest(self) -> None:
        """No sensor is read."""


class Orca(CrowdController):
    """Optimal reciprocal collision avoidance (van den Berg et al. 2011), see
    `botyard.navigation.crowds.orca`.

    Parameters
    ----------
    horizon, wall_horizon : float
        For how long others, and walls, are avoided, s.
    **options
        See `CrowdController`.
    """

    name = "orca"

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        points: Sequence[Sequence[float]] | None = None,
        order: str = "loop",
        pause: float = 0.0,
        reached: float = 0.3,
        speed: float = DEFAULT_SPEED,
        area: Sequence[float] | None = None,
        safety: float = 0.05,
        horizon: float = 3.0,
        wall_horizon: float = 0.5,
    ) -> None:
        super().__init__(
            robot,
            seed,
            points=points,
            order=order,
            pause=pause,
            reached=reached,
            speed=speed,
            area=area,
            safety=safety,
        )
        self._horizon = arguments.number(
            horizon, "horizon", low=0.0, above=True, unit="s"
        )
        self._wall_horizon = arguments.number(
            wall_horizon, "wall_horizon", low=0.0, above=True, unit="s"
        )

    def velocity(
        self, position: F8, velocity: F8, radius: F8, preferred: F8, row: int, walls: F8
    ) -> F8:
        """See `CrowdController`."""
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
    """Greatest speed, at most 1 m/s, at which two such robots that meet head-on both
    stop within the range of the forces, m/s.

    Forces are felt where they exceed what drives a robot on, A / m exp(−r / B) > v / τ:
    up to r = B ln(A τ / (m v)). To stop by a ramp d, both together need 2 v² / (2 d).
    The paper has no such limit: its pedestrians have no ramps.
    """
    limits = spec.limits
    ramps = [limits.decel.x, *([limits.decel.y] if spec.drive is Drive.OMNI else [])]
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

    # to a thousandth of a micrometre in a second
    for _ in range(30):
        middle = 0.5 * (slow + fast)
        slow, fast = (middle, fast) if stops(middle) else (slow, middle)

    return max(slow, LEAST_SPEED)


class SocialForce(CrowdController):
    """The social force model (Helbing, Farkas, Vicsek 2000), see
    `botyard.navigation.crowds.social_force`.

    Parameters
    ----------
    speed : float, optional
        Preferred speed, m/s; without it 1 m/s, or what `stoppable_speed` says: robots
        with slow ramps go slower than the paper's pedestrians.
    relaxation, strength, range : float
        τ, s; A / m, m/s²; B, m.
    **options
        See `CrowdController`.
    """

    name = "socialforce"
    speed_factor = 1.3

    def __init__(
        self,
        robot: Robot,
        seed: int,
        *,
        points: Sequence[Sequence[float]] | None = None,
        order: str = "loop",
        pause: float = 0.0,
        reached: float = 0.3,
        speed: float | None = None,
        area: Sequence[float] | None = None,
        safety: float = 0.05,
        relaxation: float = 0.5,
        strength: float = 25.0,
        range: float = 0.08,
    ) -> None:
        self._forces = crowds.Forces(
            relaxation=arguments.number(
                relaxation, "relaxation", low=0.0, above=True, unit="s"
            ),
            strength=arguments.number(strength, "strength", low=0.0, unit="m/s²"),
            range=arguments.number(range, "range", low=0.0, above=True, unit="m"),
        )
        if speed is None:
            speed = (
                stoppable_speed(robot.spec, self._forces) or DEFAULT_SPEED
            )  # one that cannot drive is refused below

        super().__init__(
            robot,
            seed,
            points=points,
            order=order,
            pause=pause,
            reached=reached,
            speed=speed,
            area=area,
            safety=safety,
        )
        self._asked: F8 = np.zeros((2, 2))
        """The velocity of the last step, and the model's at its end, m/s: a robot goes
        evenly in a step, the model does not.
        """

    def velocity(
        self, position: F8, velocity: F8, radius: F8, preferred: F8, row: int, walls: F8
    ) -> F8:
        """See `CrowdController`."""
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
        """See `botyard.controllers.base.Controller`."""
        return [*super().get_state(), *self._asked.ravel().tolist()]

    def set_state(self, state: Any) -> None:
        """See `botyard.controllers.base.Controller`. States of older versions end
        before these velocities.
        """
        super().set_state(state[:4])
        self._asked = np.array(
            [finite(one) for one in state[4:8]] or [0.0] * 4
        ).reshape(2, 2)


__all__ = ["Orca", "SocialForce", "stoppable_speed"]
