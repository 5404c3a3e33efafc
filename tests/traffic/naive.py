"""A plain event-driven simulation of sector paths, and an exhaustive search for
solvable states.

It shares only the task with the engine: it searches all robots for the next event each
time, and knows only first come first served.
"""

from __future__ import annotations

import math

from botyard.traffic.task import Task

Event = tuple[float, int, str, int]


class Car:
    def __init__(self, task: Task, i: int) -> None:
        v = task.vehicles[i]
        self.v = v
        bd = v.velocity**2 / (2 * v.deceleration)
        points = []
        for s, end in enumerate(v.ends[:-1].tolist()):
            points += [
                (end + v.radius, 0, "release", s),
                (end - v.radius - bd, 1, "critical", s + 1),
                (end - v.radius, 2, "enter", s + 1),
            ]

        points.append((float(v.ends[-1]), 3, "finish", len(v.ends) - 1))
        self.points = sorted(points)
        self.t, self.x, self.s, self.goes = 0.0, 0.0, 0.0, True
        self.before = (0.0, 0.0, 0.0)
        self.granted, self.asked, self.done = 0, 0, False
        self.inside = {0}
        self.limit = math.inf

    def at(self, t: float) -> tuple[float, float]:
        """Return place and speed."""
        dt = t - self.t
        if self.goes:
            up = max(0.0, (self.v.velocity - self.s) / self.v.acceleration)
            a = min(dt, up)
            x = (
                self.x
                + self.s * a
                + self.v.acceleration * a * a / 2
                + (dt - a) * self.v.velocity
            )
            return x, min(self.v.velocity, self.s + self.v.acceleration * dt)

        a = min(dt, self.s / self.v.deceleration)
        return self.x + self.s * a - self.v.deceleration * a * a / 2, max(
            0.0, self.s - self.v.deceleration * dt
        )

    @property
    def rest(self) -> float:
        return self.x + self.s**2 / (2 * self.v.deceleration)

    def reach(self, place: float) -> float:
        d = place - self.x
        if d <= 0:
            return self.t
        if self.goes:
            a, s, top = self.v.acceleration, self.s, self.v.velocity
            run = (top * top - s * s) / (2 * a)
            return self.t + (
                (math.sqrt(s * s + 2 * a * d) - s) / a
                if d <= run
                else (top - s) / a + (d - run) / top
            )

        if place >= self.rest - 1e-9:
            return math.inf
        b, s = self.v.deceleration, self.s
        return self.t + (s - math.sqrt(max(0.0, s * s - 2 * b * d))) / b

    def next(self) -> float:
        return self.reach(self.points[0][0]) if self.points else math.inf

    def turn(self, t: float, goes: bool) -> None:
        # The robot stops and goes on at the same time, so undo the stop.
        if goes and t == self.t:
            self.t, self.x, self.s = self.before
        else:
            self.before = (self.t, self.x, self.s)
            x, s = self.at(t)
            if goes and s == 0.0 and self.points and abs(self.points[0][0] - x) < 1e-9:
                x = self.points[0][0]
            self.t, self.x, self.s = t, x, s

        self.goes = goes


def first_come_first_served(task: Task) -> list[Event]:
    """Return the events of a run up to its end or a deadlock.

    Sectors must be longer than braking distances.
    """
    cars = [Car(task, i) for i in range(len(task))]
    starts, others = task.conflicts
    held = {(i, 0) for i in range(len(task))}
    waiting: list[tuple[int, int]] = []
    events: list[Event] = []

    def conflicts(i: int, s: int) -> list[tuple[int, int]]:
        g = int(task.first[i]) + s
        return [task.robot_of(c) for c in others[starts[g] : starts[g + 1]].tolist()]

    def serve(t: float) -> None:
        for i, s in list(waiting):
            if any(c in held for c in conflicts(i, s)):
                continue
            waiting.remove((i, s))
            held.add((i, s))
            events.append((t, i, "grant", s))
            cars[i].granted = s
            if not cars[i].goes:
                cars[i].turn(t, True)
                events.append((t, i, "start", max(cars[i].inside)))

    while not all(c.done for c in cars):
        t, i = min((max(c.next(), 0.0), i) for i, c in enumerate(cars))
        if t == math.inf:
            break
        car = cars[i]
        _, _, kind, s = car.points.pop(0)
        if kind == "enter":
            car.inside.add(s)
        if kind == "release":
            car.inside.discard(s)
        events.append((t, i, kind, s))
        if kind == "critical":
            if car.granted < s:
                car.turn(t, False)
                events.append((t, i, "stop", max(car.inside)))
                waiting.append((i, s))
                serve(t)
        elif kind == "release":
            held.discard((i, s))
            serve(t)
        elif kind == "finish":
            car.done = True
            car.turn(t, False)
            events.append((t, i, "stop", max(car.inside)))

    return events


State = tuple[tuple[int, int], ...]


def can_end(task: Task, state: State) -> bool:
    """Return whether all robots can still reach their ends, by exhaustive search.

    A state is the oldest and newest sector of each robot.
    """
    starts, others = task.conflicts
    last = [len(v.ends) - 1 for v in task.vehicles]
    seen = {state}
    stack = [state]
    while stack:
        now = stack.pop()
        if all(head == last[i] for i, (_, head) in enumerate(now)):
            return True
        held = {
            int(task.first[i]) + s
            for i, (tail, head) in enumerate(now)
            for s in range(tail, head + 1)
        }
        for i, (tail, head) in enumerate(now):
            moves = []
            if tail < head:
                moves.append((tail + 1, head))
            if head < last[i]:
                g = int(task.first[i]) + head + 1
                if not any(
                    c in held for c in others[starts[g] : starts[g + 1]].tolist()
                ):
                    moves.append((tail, head + 1))

            for move in moves:
                after = (*now[:i], move, *now[i + 1 :])
                if after not in seen:
                    seen.add(after)
                    stack.append(after)

    return False
