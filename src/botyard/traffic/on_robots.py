"""Run of a task with robots of the 2-D engine.

Differential drives follow the paths by odometry or true pose, with wheel slip and
walls. The two engines meet only in this module.

A robot follows its path by pure pursuit (R. C. Coulter, "Implementation of the Pure
Pursuit Path Tracking Algorithm", CMU-RI-TR-92-01, 1992). It slows down in time to stop
before the first sector that it may not enter: v² = 2 · deceleration · distance. It
reports the point of the path that is nearest to its estimated position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import WorldError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.robot import RobotSpec
from botyard.numerics import elementwise
from botyard.numerics.elementary import atan2, hypot, sin
from botyard.sim.simulation import Robot, Simulation
from botyard.traffic.kernels import runarrays
from botyard.traffic.motion import Path2
from botyard.traffic.outcome import Ending, Outcome, Robots, events_of, who_waits
from botyard.traffic.points import Point, point_list, points_from_start
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.base import Supervisor, take_answers
from botyard.traffic.task import I8, Task, TaskError, Vehicle

LOOKAHEAD: Final = 0.5
"""Look-ahead distance of pure pursuit, m."""
PIVOT_ANGLE: Final = math.radians(50.0)
"""Bearing of the look-ahead point, rad, above which the robot turns in place first."""
PIVOT_GAIN: Final = 1.5
"""Proportional gain of the turn in place: turn rate per rad of bearing, 1/s."""
CREEP_SPEED: Final = 0.02
"""Speed added to the braking profile, so that a robot reaches its stop, m/s."""
STOP_MARGIN: Final = 0.05
"""Distance at which a robot stops before a sector that it may not enter, m."""
RESPONSE_STEPS: Final = 2.0
"""Number of steps by which a robot asks earlier, because the answer arrives in the next step."""
DEADLOCK_TIME: Final = 5.0
"""Standstill of all robots without a grant that counts as a deadlock, simulated s."""


@dataclass(slots=True, eq=False)
class _Driver:
    """State of a robot that follows its path; the attribute `at` is the robot's
    position along the path, m.
    """

    vehicle: Vehicle
    robot: Robot
    path: Path2
    points: list[Point]
    at: float = 0.0
    allowed: int = 0
    asked: int = 0
    tail: int = 0
    head: int = 0
    next: int = 0
    done: bool = False
    finished: float = 0.0
    waited: float = 0.0
    stops: int = 0
    stands: bool = True
    inside: set[int] = field(default_factory=set)
    nodes: tuple[str, ...] = ()

    @property
    def limit(self) -> float:
        """Position up to which the robot may drive, m along the path."""
        v = self.vehicle
        end = float(v.ends[-1])
        return (
            end
            if self.allowed >= self.asked
            else min(end, float(v.ends[self.allowed]) - v.radius - STOP_MARGIN)
        )


def _limited(spec: RobotSpec, v: Vehicle) -> RobotSpec:
    """Return a model with the motion limits of the task's vehicle."""
    limits = spec.limits
    return replace(
        spec,
        limits=replace(
            limits,
            max_speed=replace(limits.max_speed, x=v.velocity),
            accel=replace(limits.accel, x=v.acceleration),
            decel=replace(limits.decel, x=v.deceleration),
            top_accel=replace(limits.top_accel, x=max(v.acceleration, v.deceleration)),
        ),
    )


class RobotTraffic:
    """A run of a task with robots of a simulation.

    Parameters
    ----------
    task : Task
        The task; every robot needs a path (Geometry).
    supervisor : Supervisor
        Grants permissions; messages take no time, but are processed once a step.
    sim : Simulation, optional
        The world; by default an empty one with steps of 0.1 s.
    model : str
        Model of the robots that are added, named ``traffic0`` and so on, see `prefix`.
    knows : str
        Source of the robots' poses: ``odometry``, with its errors, or ``truth``.
    prefix : str
        Start of the robots' names. Runs in one world need different ones.
    robots : sequence of Robot, optional
        Robots of the world that drive the paths, one for each; they stand at the start
        of their path. By default robots of `model` are added.

    Raises
    ------
    TaskError
        A robot has no path, or a path shorter than its sectors.
    WorldError
        The supervisor rejects the task; the model is unknown.
    """

    def __init__(
        self,
        task: Task,
        supervisor: Supervisor,
        sim: Simulation | None = None,
        *,
        model: str = "p3dx",
        knows: str = "truth",
        prefix: str = "traffic",
        robots: Sequence[Robot] | None = None,
    ) -> None:
        if knows not in ("odometry", "truth"):
            raise WorldError(f'knows: expected odometry or truth, found "{knows}"')
        self.task = task
        self.supervisor = supervisor
        self.sim = sim or Simulation()
        self._by_odometry = knows == "odometry"
        self._prefix = prefix
        self._answers: list[tuple[int, int]] = []
        self.on_event: Callable[[float, int, int, int], None] = (
            lambda _t, _robot, _kind, _sector: None
        )
        """Called for every event: time, s, robot, index in `KINDS`, sector (for a
        collision, the other robot).
        """
        self.pass_on: Callable[[list[tuple[int, int]]], list[tuple[int, int]]] = (
            lambda grants: grants
        )
        """Called in each step with the supervisor's new grants, each a robot and a
        sector; returns the grants that take effect now.
        """
        self.refusal = ""
        """See `botyard.traffic.liverun.LiveRun.refusal`."""
        self._rows: list[tuple[float, int, int, int]] = []
        self._collisions = 0
        self._start_pairs: list[list[int]] = np.unique(
            task.start_conflicts[:, [0, 2]], axis=0
        ).tolist()
        self._standstill = 0.0
        self.drivers = [
            self._driver(i, v, model, None if robots is None else robots[i])
            for i, v in enumerate(task.vehicles)
        ]
        self._starts, self._others = (a.tolist() for a in task.conflicts)
        supervisor.on_start(
            task, replace(Rules(), compiled=False), self._answers.append
        )

    def _driver(self, i: int, v: Vehicle, model: str, robot: Robot | None) -> _Driver:
        if v.path is None:
            raise TaskError(
                f"robot {i} has no path in the plane (Geometry.Vehicle{i})",
                self.task.name,
            )

        path = Path2(v.path)
        # A centimetre covers paths whose corners were rounded when they were written.
        if path.length < float(v.ends[-1]) - 0.01:
            raise TaskError(
                f"Geometry.Vehicle{i}: expected a path of {v.ends[-1]:g} m, as "
                f"long as its sectors, found {path.length:g} m",
                self.task.name,
            )

        if robot is None:
            # The robot starts with the heading of the path, taken over its first 5 cm.
            a, b = path.at(np.array([v.start, v.start + 0.05]))
            start = Pose(float(a[0]), float(a[1]), atan2(b[1] - a[1], b[0] - a[0]))
            robot = self.sim.add_robot(
                _limited(find_robot(model), v), f"{self._prefix}{i}", pose=start
            )
        tail, head = v.occupied()
        # An answer takes steps to arrive, and the robot must stop before the border: it
        # asks this much earlier.
        late = STOP_MARGIN + RESPONSE_STEPS * v.velocity * self.sim.dt
        points = point_list(points_from_start(v, v.braking_distance + late))
        inside = set(range(tail, head + 1))
        return _Driver(
            v,
            robot,
            path,
            points,
            at=v.start,
            allowed=head,
            asked=head,
            tail=tail,
            head=head,
            inside=inside,
        )

    def _emit(self, robot: int, kind: int, sector: int) -> None:
        self._rows.append((self.sim.time, robot, kind, sector))
        self.on_event(self.sim.time, robot, kind, sector)

    # -- the run

    def run(
        self,
        time_limit: float = 3600.0,
        progress: Callable[[float, int], None] = lambda _t, _n: None,
    ) -> Outcome:
        """Run to the end.

        Parameters
        ----------
        time_limit : float
            Simulated time after which the run ends with a timeout, s.
        progress : callable
            Called every 100 steps with the simulated time, s, and the number of
            finished robots.

        Raises
        ------
        WorldError
            The supervisor grants a sector to an unknown robot.
        """
        ending = None if self.drivers else Ending.COMPLETED
        while ending is None:
            ending = self.step()
            if ending is None and self.sim.time >= time_limit:
                ending = Ending.TIMEOUT
            if not self.sim.tick % 100:
                progress(self.sim.time, sum(d.done for d in self.drivers))

        return self.finish(ending)

    def step(self) -> Ending | None:
        """Make one step of the simulation.

        The first call makes no step if robots start in conflicting sectors: this is a
        collision.

        Returns
        -------
        Ending or None
            The ending, or None if the run has not ended.
        """
        if self._start_pairs:
            for i, j in self._start_pairs:
                self._emit(i, runarrays.COLLISION, j)
            self._collisions, self._start_pairs = len(self._start_pairs), []
            return Ending.COLLISION

        self.act()
        self.sim.step()
        return self.observe()

    def act(self) -> None:
        """Take the supervisor's grants, and command all robots for the next step.

        With `observe`, it lets several runs share a world that other code steps.
        """
        self._take_grants()
        for d in self.drivers:
            v, w = self._command(d)
            d.robot.command(v=v, w=w)

    def observe(self) -> Ending | None:
        """Send the messages of the step that was made, and return the ending, see `step`."""
        moved = False
        for i, d in enumerate(self.drivers):
            moved |= self._update_progress(i, d)
        if self._collisions:
            return Ending.COLLISION
        if all(d.done for d in self.drivers):
            return Ending.COMPLETED
        if (
            moved
            or self._answers
            or not all(d.done or d.robot.motors_on for d in self.drivers)
        ):
            # Robots that wait for a switched-off robot are not in a deadlock.
            self._standstill = 0.0
        else:
            self._standstill += self.sim.dt

        return Ending.DEADLOCK if self._standstill >= DEADLOCK_TIME else None

    def _take_grants(self) -> None:
        for i, sector in self.pass_on(take_answers(self._answers, len(self.drivers))):
            self.allow(i, sector)

    def allow(self, i: int, sector: int) -> None:
        """Let a robot enter a sector, and all sectors before it.

        Parameters
        ----------
        i, sector : int
            Number of the robot, and of the sector on its path.
        """
        d = self.drivers[i]
        # A robot that did not wait continues without a start event.
        waits = d.allowed < d.asked
        for s in range(d.allowed + 1, sector + 1):
            self._emit(i, runarrays.GRANT, s)
        d.allowed = max(d.allowed, sector)
        if waits and d.allowed >= d.asked:
            self._emit(i, runarrays.START, d.head)

    @property
    def places(self) -> list[float]:
        """Where the robots are along their paths, m."""
        return [d.at for d in self.drivers]

    def why(self, i: int, sector: int) -> str:
        """Return an empty text: the supervisor says why it has not granted a sector."""
        return ""

    def least_allowed(self, i: int) -> int:
        """Return the first sector in which a robot can still come to rest.

        Parameters
        ----------
        i : int
            Number of the robot.
        """
        d = self.drivers[i]
        v, speed = d.vehicle, abs(d.robot.velocity.vx)
        # The commands of this step and of the next one are under way, so braking starts two steps
        # later.
        rest = d.at + speed * speed / (2.0 * v.deceleration) + 2.0 * speed * self.sim.dt
        stops = v.ends[:-1] - v.radius - STOP_MARGIN
        # A robot that stands a little within the margin has stopped for this border.
        return max(d.head, int(np.searchsorted(stops, rest - STOP_MARGIN)))

    def withdraw(self, i: int, last: int) -> None:
        """Take back the permissions of a robot for all sectors after `last` on its path.

        Parameters
        ----------
        i, last : int
            Number of the robot, and of the last sector that it may still enter; at
            least `least_allowed`.
        """
        d = self.drivers[i]
        if last >= d.allowed:
            return
        d.allowed = last
        # The robot has passed the point at which it asks, so it waits from now on.
        if d.asked > last:
            self._emit(i, runarrays.STOP, d.head)

    @property
    def state(self) -> I8:
        """State of the permissions, (n, 4); see `botyard.traffic.outcome.waiting_robots`."""
        return np.array(
            [(d.allowed, d.asked, d.tail, d.head) for d in self.drivers], np.int64
        ).reshape(-1, 4)

    @property
    def done(self) -> NDArray[np.bool_]:
        """Whether each robot has finished, (n,)."""
        return np.array([d.done for d in self.drivers], np.bool_)

    def _pose(self, d: _Driver) -> Pose:
        return d.robot.odom_in_world if self._by_odometry else d.robot.truth

    def _command(self, d: _Driver) -> tuple[float, float]:
        """Return forward speed, m/s, and turn rate, rad/s."""
        pose, v = self._pose(d), d.vehicle
        left = d.limit - d.at
        if d.done or left <= 0.0:
            return 0.0, 0.0
        x, y = d.path.at(np.array([min(d.at + LOOKAHEAD, d.path.length + LOOKAHEAD)]))[
            0
        ].tolist()
        # Pure pursuit needs the bearing of the look-ahead point relative to the
        # heading.
        aside = math.remainder(atan2(y - pose.y, x - pose.x) - pose.th, 2.0 * math.pi)
        if abs(aside) > PIVOT_ANGLE:
            return 0.0, PIVOT_GAIN * aside
        # The command takes effect in the next step, so one step of motion is already
        # spent.
        ahead = max(0.0, left - v.velocity * self.sim.dt)
        speed = min(v.velocity, math.sqrt(2.0 * v.deceleration * ahead) + CREEP_SPEED)
        # Near the end of the path the point is close; the limit keeps the turn rate
        # finite.
        return speed, 2.0 * speed * sin(aside) / max(hypot(x - pose.x, y - pose.y), 0.1)

    def _update_progress(self, i: int, d: _Driver) -> bool:
        """Update a robot's position, and send the messages of the points it has passed.

        Returns
        -------
        bool
            Whether the robot moves.
        """
        dt, pose = self.sim.dt, self._pose(d)
        # Noise of the odometry must not move the robot back over points that it has
        # passed.
        d.at = max(d.at, self._nearest(d, pose))
        moves = abs(d.robot.velocity.vx) > 1e-3 or abs(d.robot.velocity.w) > 1e-3
        if not d.done:
            d.waited += 0.0 if moves else dt
            d.stops += not moves and not d.stands
            d.stands = not moves

        while d.next < len(d.points) and d.at > d.points[d.next][0]:
            _, kind, sector = d.points[d.next]
            d.next += 1
            self._emit(i, kind, sector)
            if kind == runarrays.RELEASE:
                d.inside.discard(sector)
                d.tail = sector + 1
                self.supervisor.on_release(i, sector)
            elif kind == runarrays.CRITICAL:
                d.asked = sector
                if d.allowed < sector:
                    self._emit(i, runarrays.STOP, d.head)
                self.supervisor.on_critical(i, sector)
            else:
                d.head = sector
                d.inside.add(sector)
                self._check_conflicts(i, sector)

        if d.robot.state.stalled:
            self._check_contact(i, d)
        # The robot stops within 5 cm of the end, because the braking profile fades out
        # there.
        if not d.done and d.at >= float(d.vehicle.ends[-1]) - 0.05:
            d.done, d.finished = True, self.sim.time
            self._emit(i, runarrays.FINISH, d.head)
            self.supervisor.on_finish(i, d.head)

        return moves

    def _nearest(self, d: _Driver, pose: Pose) -> float:
        """Return the position along the path that is nearest to a pose.

        The search covers the path near the last position.

        Parameters
        ----------
        d : _Driver
            Robot with its path and last position.
        pose : Pose
            Estimated pose of the robot in the world: m, m, rad.

        Returns
        -------
        float
            Position, m along the path.
        """
        # A search of the whole path could jump to another branch where the path crosses
        # itself.
        step = d.vehicle.velocity * self.sim.dt
        places = np.linspace(
            max(0.0, d.at - 0.2), min(d.at + 2.0 * step + 0.2, d.path.length), 41
        )
        points = d.path.at(places)
        return float(
            places[
                int(
                    np.argmin(
                        elementwise.hypot(points[:, 0] - pose.x, points[:, 1] - pose.y)
                    )
                )
            ]
        )

    def _check_conflicts(self, i: int, sector: int) -> None:
        g = int(self.task.first[i]) + sector
        for c in self._others[self._starts[g] : self._starts[g + 1]]:
            j, other = self.task.robot_of(c)
            if other in self.drivers[j].inside:
                self._emit(i, runarrays.COLLISION, j)
                self._collisions += 1

    def _check_contact(self, i: int, d: _Driver) -> None:
        """Count a collision if another robot touches a stalled one."""
        for j, other in enumerate(self.drivers):
            gap = hypot(
                other.robot.truth.x - d.robot.truth.x,
                other.robot.truth.y - d.robot.truth.y,
            )
            # The margin of 10 cm covers bodies that are not disks.
            if j != i and gap < d.robot.spec.radius + other.robot.spec.radius + 0.1:
                self._emit(i, runarrays.COLLISION, j)
                self._collisions += 1
                return

    def finish(self, ending: Ending) -> Outcome:
        """Return the outcome of the run; call it once, at the end.

        Parameters
        ----------
        ending : Ending
            Reason of the end.
        """
        self.supervisor.on_end()
        events = events_of(self._rows)
        ds, done = self.drivers, self.done
        robots = Robots(
            np.array([d.finished for d in ds]),
            np.array([d.waited for d in ds]),
            np.array([d.stops for d in ds], np.int64),
            done,
        )
        waiting, cycle = who_waits(self.task, self.state, done, ending, self.supervisor)
        return Outcome(
            self.task,
            ending,
            self.sim.time,
            events,
            len(events),
            robots,
            cycle,
            waiting,
            self._collisions,
        )


__all__ = ["RobotTraffic"]
