"""Fixed-step loop of the original program, to compare with its recordings.

The option ``--compat`` selects it. It reproduces the quirks of mmrs.md §4–§7:

* ten steps a second,
* critical points are computed from the acceleration,
* permissions are counted, not bound to sectors, and arrive at least one step after the
  request,
* collisions are checked only for the last sector that a robot has entered in a step, by
  the conflicts that the other robot's sectors list, and do not end the run,
* a robot that has finished coasts on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from botyard.errors import WorldError
from botyard.traffic.kernels import runarrays
from botyard.traffic.outcome import Ending, Outcome, Robots, events_of, who_waits
from botyard.traffic.points import Point, point_list, special_points
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.base import Supervisor, take_answers
from botyard.traffic.task import Task, Vehicle

DT: Final = 0.1
"""Length of a step, s."""
_PER_SECOND: Final = 10


@dataclass(slots=True, eq=False)
class Car:
    """State of a robot, as in the original program.

    Attributes
    ----------
    x, v : float
        Position along the path, m, and speed, m/s.
    moving : bool
        Motion flag: True while the robot may drive, False while it brakes or stands.
    permits : int
        Unused permissions.
    occupied : deque of int
        Occupied sectors, the oldest first.
    """

    vehicle: Vehicle
    points: list[Point]
    x: float = 0.0
    v: float = 0.0
    moving: bool = True
    permits: int = 0
    occupied: deque[int] = field(default_factory=lambda: deque([0]))
    next: int = 0
    done: bool = False
    finish_reported: bool = False
    finished: float = 0.0
    received: int = 0
    asked: int = 0
    stops: int = 0
    waited: float = 0.0


class CompatTraffic:
    """A run of a task that reproduces the original program.

    Parameters
    ----------
    task : Task
        Robots, paths and conflicts.
    supervisor : Supervisor
        Grants permissions; it receives the messages of a step during this step.
    latency_steps : int
        Delay of permissions: the answer to a message of step k arrives right after step
        k + `latency_steps`.
    grants : sequence of (int, int)
        Scripted permissions: step after which the permission arrives (−1: before the
        first), and robot.
    max_steps : int
        Step limit: the run ends with a time-out.
    watch : callable, optional
        Called after each step, before permissions arrive, with the step's number and
        the robots.

    Raises
    ------
    WorldError
        The supervisor rejects the task; a scripted grant names an unknown robot.
    """

    def __init__(
        self,
        task: Task,
        supervisor: Supervisor,
        *,
        latency_steps: int = 1,
        grants: Sequence[tuple[int, int]] = (),
        max_steps: int = 10_000_000,
        watch: Callable[[int, list[Car]], None] = lambda _k, _cars: None,
    ) -> None:
        self.task = task
        self.supervisor = supervisor
        self._latency = latency_steps
        self._max_steps = max_steps
        self._watch = watch
        self._answers: list[tuple[int, int]] = []
        self._mail: dict[int, list[int]] = {}
        self._rows: list[tuple[float, int, int, int]] = []
        self._collisions = 0
        self.step = -1
        # Conflicts are not symmetric here: the original looks only in the other
        # sector's list.
        self._listed = {tuple(row) for row in task.listed.tolist()}
        self.cars = [Car(v, _points(v), x=v.start) for v in task.vehicles]
        for step, robot in grants:
            if not 0 <= robot < len(task):
                raise WorldError(
                    f"grants: expected a robot from 0 to {len(task) - 1}, found {robot}"
                )

            self._mail.setdefault(max(step, -1), []).append(robot)

        supervisor.on_start(
            task,
            replace(Rules(), original_braking=True, goes_on=True),
            self._answers.append,
        )
        self._post(-1)

    def _emit(self, step: int, robot: int, kind: int, sector: int) -> None:
        self._rows.append(((step + 1) / _PER_SECOND, robot, kind, sector))

    def _post(self, step: int) -> None:
        """Queue the permissions that the supervisor has granted."""
        for robot, _ in take_answers(self._answers, len(self.cars)):
            self._mail.setdefault(
                step + (self._latency if step >= 0 else 0), []
            ).append(robot)

    def run(
        self, progress: Callable[[float, int], None] = lambda _t, _n: None
    ) -> Outcome:
        """Run to the end; call this once. See `botyard.traffic.engine.Traffic.run`."""
        self.start()
        ending: Ending | None = Ending.TIMEOUT if self.cars else Ending.COMPLETED
        while self.cars and self.step + 1 < self._max_steps:
            if (ending := self._one_step()) is not None:
                break
            if self.is_idle:
                ending = Ending.COLLISION if self._collisions else Ending.DEADLOCK
                break

            # Report about every 1000 s of simulated time.
            if not self.step % 10_000:
                progress(
                    (self.step + 1) / _PER_SECOND, sum(car.done for car in self.cars)
                )

        return self.finish(ending or Ending.TIMEOUT)

    def start(self) -> None:
        """Deliver the permissions that arrive before the first step."""
        self._deliver(-1)

    def advance(self, until: float) -> Ending | None:
        """Make the steps up to a simulated time.

        See `botyard.traffic.engine.Traffic.advance`.

        Parameters
        ----------
        until : float
            Simulated time, s; only whole steps are made.

        Returns
        -------
        Ending or None
            The ending, or None if the run has not ended.
        """
        while (self.step + 2) / _PER_SECOND <= until:
            if self.step + 1 >= self._max_steps:
                return Ending.TIMEOUT
            if not self.cars or (ending := self._one_step()) is not None:
                return ending if self.cars else Ending.COMPLETED

        return None

    def permit(self, robot: int) -> None:
        """Grant a permission from outside; it takes effect after the next step.

        Parameters
        ----------
        robot : int
            Number of the robot. As in the original program, the permission is not bound
            to a sector.

        Raises
        ------
        WorldError
            The robot does not exist.
        """
        if not 0 <= robot < len(self.cars):
            raise WorldError(
                f"permission: expected a robot from 0 to {len(self.cars) - 1}, found {robot}"
            )

        self._mail.setdefault(self.step + 1, []).append(robot)

    def asked(self) -> list[tuple[int, int]]:
        """Return the robots that wait for a permission.

        Returns
        -------
        list of (int, int)
            Numbers of the robots, each with 1, its number of missing permissions.
        """
        return [
            (i, 1) for i, car in enumerate(self.cars) if not (car.moving or car.done)
        ]

    @property
    def is_idle(self) -> bool:
        """Whether all robots stand still, and no permission is queued."""
        return not self._mail and all(
            car.v == 0.0 and not car.moving for car in self.cars
        )

    def _one_step(self) -> Ending | None:
        self.step += 1
        step, flags = self.step, [car.moving for car in self.cars]
        for i, car in enumerate(self.cars):
            self._step(step, i, car)
        self._emit_flag_changes(step, flags)
        self._watch(step, self.cars)
        if all(car.done for car in self.cars):
            return Ending.COMPLETED
        self._deliver(step)
        return None

    def finish(self, ending: Ending) -> Outcome:
        """Return the outcome of the run; call it once, at the end.

        Parameters
        ----------
        ending : Ending
            Ending of the run, as `advance` returned it or as the caller decided.
        """
        self.supervisor.on_end()
        return self._outcome(ending, self.step)

    def _step(self, step: int, i: int, car: Car) -> None:
        vehicle = car.vehicle
        if car.done:
            car.moving = False
        # Speed changes before position, as in the original's loop.
        if car.moving and car.v < vehicle.velocity:
            car.v = min(vehicle.velocity, car.v + DT * vehicle.acceleration)
        elif not car.moving and car.v > 0.0:
            car.v = max(0.0, car.v - DT * vehicle.deceleration)
            car.stops += car.v == 0.0 and not car.done
        elif not car.moving and not car.done:
            car.waited += DT

        car.x += DT * car.v
        entered = -1
        # The original compares with ">": a robot exactly on a point has not passed it.
        while car.next < len(car.points) and car.x > car.points[car.next][0]:
            _, kind, sector = car.points[car.next]
            car.next += 1
            self._emit(step, i, kind, sector)
            if kind == runarrays.CRITICAL:
                car.asked = sector
                if car.permits > 0:
                    car.permits -= 1
                else:
                    car.moving = False

                self.supervisor.on_critical(i, sector)
            elif kind == runarrays.ENTER:
                car.occupied.append(sector)
                entered = sector
            else:
                car.occupied.popleft()
                self.supervisor.on_release(i, sector)

        self._post(step)
        if entered >= 0:
            self._look_for_collisions(step, i, entered)
        if not car.done and car.x >= float(vehicle.ends[-1]):
            car.done, car.moving, car.finished = True, False, (step + 1) / _PER_SECOND
            self.supervisor.on_finish(i, len(vehicle.ends) - 1)
            self._post(step)

    def _look_for_collisions(self, step: int, i: int, entered: int) -> None:
        # Only the last sector that was entered in this step is checked, as in the
        # original.
        for j, other in enumerate(self.cars):
            if j != i and any(
                (j, sector, i, entered) in self._listed for sector in other.occupied
            ):
                self._emit(step, i, runarrays.COLLISION, j)
                self._collisions += 1
                self.cars[i].moving = other.moving = False

    def _emit_flag_changes(self, step: int, before: Sequence[bool]) -> None:
        """Emit events of robots that finished or changed their motion flag."""
        for i, (car, was) in enumerate(zip(self.cars, before, strict=True)):
            if car.done and not car.finish_reported:
                car.finish_reported = True
                self._emit(step, i, runarrays.FINISH, len(car.vehicle.ends) - 1)

            if car.moving != was:
                self._emit(
                    step,
                    i,
                    runarrays.START if car.moving else runarrays.STOP,
                    car.occupied[-1],
                )

    def _deliver(self, step: int) -> None:
        """Deliver the permissions that arrive right after a step."""
        flags = [car.moving for car in self.cars]
        for robot in self._mail.pop(step, ()):
            car = self.cars[robot]
            car.received += 1
            self._emit(step, robot, runarrays.GRANT, car.received)
            if car.moving:
                car.permits += 1
            else:
                car.moving = True

        self._emit_flag_changes(step, flags)

    def _outcome(self, ending: Ending, step: int) -> Outcome:
        events = events_of(self._rows)
        cars = self.cars
        done = np.array([car.done for car in cars], np.bool_)
        robots = Robots(
            np.array([car.finished for car in cars]),
            np.array([car.waited for car in cars]),
            np.array([car.stops for car in cars], np.int64),
            done,
        )
        state: Any = [
            (
                min(car.received, car.asked),
                car.asked,
                car.occupied[0] if car.occupied else car.asked,
                max(car.occupied, default=car.asked),
            )
            for car in cars
        ]
        rows = np.array(state, np.int64).reshape(-1, 4)
        waiting, cycle = who_waits(self.task, rows, done, ending, self.supervisor)
        return Outcome(
            self.task,
            ending,
            (step + 1) / _PER_SECOND,
            events,
            len(events),
            robots,
            cycle,
            waiting,
            self._collisions,
        )


def _points(v: Vehicle) -> list[Point]:
    """Return the special points of a vehicle, sorted by position."""
    # The original computes the critical point from the acceleration, not the
    # deceleration.
    found = point_list(
        special_points(v, v.velocity * v.velocity / (2.0 * v.acceleration))
    )
    return sorted(
        found, key=lambda p: (p[0], p[2] if p[1] != runarrays.RELEASE else p[2] + 1)
    )


__all__ = ["DT", "Car", "CompatTraffic"]
