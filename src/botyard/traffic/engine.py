"""Exact event-driven engine.

The engine has no time step: event times are computed in closed form (mmrs.md §10).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import groupby
from time import perf_counter
from typing import Any, Final

import numpy as np

from botyard.errors import WorldError
from botyard.native.kinds import LastPack
from botyard.traffic.kernelarrays import build_world, position_limit
from botyard.traffic.kernels import events as k
from botyard.traffic.kernels import runarrays
from botyard.traffic.outcome import (
    Decisions,
    Ending,
    Outcome,
    Robots,
    join_events,
    who_waits,
)
from botyard.traffic.rules import Rules
from botyard.traffic.supervisors.base import Policy, Supervisor, take_answers
from botyard.traffic.task import Task

_PERMISSION: Final = 100
"""Kind of a message from the supervisor.

Messages to the supervisor have the kind of their event.
"""
_PROGRESS_INTERVAL: Final = 1 << 14
"""Number of messages between two progress reports."""


class Traffic:
    """A run of a task.

    Parameters
    ----------
    task : Task
        Robots, paths and conflicts.
    supervisor : Supervisor
        Grants permissions.
    rules : Rules
        Options of the run.
    grants : sequence of (float, int)
        Scripted permissions: time (s; less than 0: before the start) and robot.
    log : bool
        Whether all events are kept.
    asks : bool
        Whether robots ask for sectors, each at one braking distance (from full speed) before it. If
        False, permissions come from outside (`permit`): robots brake for the end of the permitted
        sectors and come to rest exactly there, also from lower speeds.

    Raises
    ------
    WorldError
        The supervisor rejects the task; a scripted grant names an unknown robot.
    """

    def __init__(
        self,
        task: Task,
        supervisor: Supervisor,
        rules: Rules = Rules(),
        *,
        grants: Sequence[tuple[float, int]] = (),
        log: bool = True,
        asks: bool = True,
    ) -> None:
        self.task = task
        self.supervisor = supervisor
        self.rules = rules
        self.now = 0.0
        self.is_idle = False
        self._decisions, self._deciding, self._longest = 0, 0.0, 0.0
        self._chunks: list[tuple[Any, ...]] = []
        self._random = np.random.Generator(np.random.PCG64(rules.seed))
        self._mail: list[tuple[float, int, int, int, int]] = []
        self._sent = 0
        self._answers: list[tuple[int, int]] = []
        self._pack: LastPack[runarrays.World] = LastPack()
        self._asks = asks
        self._left_out: dict[int, int] = {}
        """Number of special points at the end of each robot's path that are left out,
        see `withdraw`.
        """
        self._w = build_world(task, rules, asks=asks, log=log)
        supervisor.on_start(task, rules, self._answers.append)
        # A compiled policy decides inside the kernel, so messages cannot have a delay
        # there.
        self._set_policy(
            supervisor.policy() if rules.compiled and rules.is_instant else Policy()
        )
        for when, robot in grants:
            if not 0 <= robot < len(task):
                raise WorldError(
                    f"grants: expected a robot from 0 to {len(task) - 1}, found {robot}"
                )

            # Times below 0 all mean "before the start"; -1 sorts them before every
            # event.
            self._post(max(when, -1.0), _PERMISSION, robot, -1)

    def _set_policy(self, policy: Policy) -> None:
        w = self._w
        w.c[runarrays.POLICY] = policy.kind
        # A fixed order needs no numbers of requests: −1 turns their counter off.
        if policy.kind == runarrays.ORDER:
            w.c[runarrays.SEQUENCE] = -1
        if policy.rank is not None:
            w.c[runarrays.SEQUENCE] = -1
            w.sectors[:, runarrays.RANK] = policy.rank[w.sectors[:, runarrays.OWNER]]

        if policy.chain is not None:
            w.sectors[:, runarrays.CHAIN] = policy.chain
        if policy.after is not None:
            before, after = policy.after[:, 0], policy.after[:, 1]
            order = np.argsort(before, kind="stable")
            starts = np.searchsorted(
                before[order], np.arange(self.task.n_sectors + 1)
            ).astype(np.int32)
            np.add.at(w.sectors[:, runarrays.NEED], after, 1)
            self._w = w._replace(
                after=after[order].astype(np.int32), after_starts=starts
            )

    # -- messages

    def _post(self, when: float, kind: int, robot: int, sector: int) -> None:
        self._sent += 1
        heapq.heappush(self._mail, (when, self._sent, kind, robot, sector))

    def _send(self, kind: int, robot: int, sector: int) -> None:
        """Send a message over the simulated channel with latency, jitter and loss."""
        r = self.rules
        if r.loss and self._random.random() < r.loss:
            return
        delay = r.latency + (r.jitter * self._random.random() if r.jitter else 0.0)
        self._post(self.now + delay, kind, robot, sector)

    def _to_supervisor(self, kind: int, robot: int, sector: int) -> None:
        """Deliver a message to the supervisor, and measure the time of its decision."""
        s = self.supervisor
        begin = perf_counter()
        if kind == runarrays.CRITICAL:
            s.on_critical(robot, sector)
        elif kind == runarrays.RELEASE:
            s.on_release(robot, sector)
        else:
            s.on_finish(robot, sector)

        spent = perf_counter() - begin
        self._decisions += 1
        self._deciding += spent
        self._longest = max(self._longest, spent)
        if self._answers:
            self._send_grants()

    def _send_grants(self) -> None:
        """Send the permissions that the supervisor has granted."""
        answers = take_answers(self._answers, len(self.task))
        if not self.rules.is_instant:
            for robot, sector in answers:
                self._send(_PERMISSION, robot, sector)
            return

        # Grants of one decision are applied together: the robot plans its motion once.
        for robot, several in groupby(answers, key=lambda a: a[0]):
            self._allow(robot, max(sector for _, sector in several))

    def _allow(self, robot: int, sector: int) -> None:
        """Deliver a permission to a robot.

        The permission is for all sectors up to `sector`, or for one more sector if
        `sector` is −1.
        """
        count = 1 if sector < 0 else sector - int(self._w.i[robot, runarrays.ALLOWED])
        if count > 0:
            k.allow(self._pack(self._w), robot, count, self.now)

    # -- the run

    def run(
        self, progress: Callable[[float, int], None] = lambda _t, _n: None
    ) -> Outcome:
        """Run to the end. Call it once.

        Parameters
        ----------
        progress : callable
            Called at intervals with the simulated time, s, and the number of finished
            robots.

        Raises
        ------
        WorldError
            The supervisor grants a sector to an unknown robot.
        """
        self.start()
        return self.finish(self._advance(self.rules.time_limit, progress))

    def start(self) -> None:
        """Start the run.

        Log collisions at the start, and deliver the permissions scripted before it.
        """
        k.begin(self._pack(self._w))
        self._note_start_conflicts()
        self.now = -1.0
        while self._mail and self._mail[0][0] < 0.0:
            self._allow(heapq.heappop(self._mail)[3], -1)
        self.now = 0.0
        self._send_grants()

    def _note_start_conflicts(self) -> None:
        """Log a collision at time 0 for each pair of robots in conflicting sectors.

        The kernel checks only sectors that robots enter later.
        """
        pairs = np.unique(self.task.start_conflicts[:, [0, 2]], axis=0)
        c, n = self._w.c, len(pairs)
        c[runarrays.COLLISIONS] += n
        c[runarrays.EVENTS] += n
        if n and c[runarrays.LOGS]:
            kinds = np.full(n, runarrays.COLLISION, np.int8)
            self._chunks.append(
                (
                    np.zeros(n),
                    pairs[:, 0].astype(np.int32),
                    kinds,
                    pairs[:, 1].astype(np.int32),
                )
            )

    def advance(self, until: float) -> Ending | None:
        """Process the events up to a simulated time, for runs in real time.

        The run continues even when all robots stand still: a caller may grant a
        permission (`permit`).

        Parameters
        ----------
        until : float
            Simulated time, s; at most the time limit of the rules counts.

        Returns
        -------
        Ending or None
            The ending, or None if the run has not ended.
        """
        code = self._advance(min(until, self.rules.time_limit))
        self._flush()
        self.is_idle = code == runarrays.IDLE
        if code in (runarrays.TIME, runarrays.IDLE):
            self.now = max(self.now, until)
            return Ending.TIMEOUT if until >= self.rules.time_limit else None

        return Ending.COMPLETED if code == runarrays.ALL_DONE else Ending.COLLISION

    def permit(self, robot: int) -> None:
        """Grant a permission from outside for the next sector of a robot.

        Parameters
        ----------
        robot : int
            Number of the robot.

        Raises
        ------
        WorldError
            There is no such robot.
        """
        if not 0 <= robot < len(self.task):
            raise WorldError(
                f"permission: expected a robot from 0 to {len(self.task) - 1}, found {robot}"
            )

        self._allow(robot, -1)

    def withdraw(self, robot: int) -> int:
        """Withdraw the permissions that a robot does not need to come to rest.

        The robot comes to rest before the first sector border that its braking distance
        allows, or at the end of its path. It does not finish there: a new path
        (`resume`) may continue from this place.

        Parameters
        ----------
        robot : int
            Robot that does not ask, and has not finished.

        Returns
        -------
        int
            Last permitted sector.
        """
        w, v = self._w, self.task.vehicles[robot]
        places, speeds = np.zeros(len(self.task)), np.zeros(len(self.task))
        k.places(w, self.now, places, speeds)
        rest = places[robot] + speeds[robot] * speeds[robot] / (2.0 * v.deceleration)
        stops = np.append(v.ends[:-1] - v.radius, v.ends[-1])
        # The robot must not pass the limit for which it already brakes. The tolerance
        # covers rounding of the position of rest.
        sector = min(
            int(np.searchsorted(stops, rest - runarrays.PLACE_TOLERANCE)),
            int(w.i[robot, runarrays.ALLOWED]),
        )
        w.i[robot, runarrays.ALLOWED] = sector
        packed = self._pack(w)
        if sector == len(v.ends) - 1 and robot not in self._left_out:
            # The points at and behind the end of the path are left out, so that the
            # robot does not finish there.
            ahead = w.points[
                w.i[robot, runarrays.POINT] : w.i[robot, runarrays.LAST], 1
            ]
            end = int(np.argmax(ahead.astype(np.int64) & 3 == runarrays.FINISH))
            self._left_out[robot] = len(ahead) - end
            w.i[robot, runarrays.LAST] -= self._left_out[robot]
            k.begin(packed)

        k.allow(packed, robot, 0, self.now)
        return sector

    def is_done(self, robot: int) -> bool:
        """Whether a robot has finished."""
        return bool(self._w.i[robot, runarrays.DONE])

    def resume(self, before: Traffic, robot: int) -> None:
        """Continue from the state and log of another run; call this instead of `start`.

        The caller must not use `before` afterwards.

        Parameters
        ----------
        before : Traffic
            Run whose robots do not ask. Its task differs in the path of one robot,
            beyond the sectors that are permitted to this robot.
        robot : int
            Robot with the new path; it has not finished.
        """
        before._flush()
        old, w = before._w, self._w
        last, asked = w.i[:, runarrays.LAST].copy(), w.i[robot, runarrays.ASKED]
        old_last = old.i[:, runarrays.LAST].copy()
        for other, count in before._left_out.items():
            old_last[other] += count
        first, old_first = np.append(0, last[:-1]), np.append(0, old_last[:-1])
        self._left_out = {r: n for r, n in before._left_out.items() if r != robot}
        for other, count in self._left_out.items():
            last[other] -= count
        w.f[:], w.i[:], w.c[:], w.d[:] = old.f, old.i, old.c, old.d
        w.i[:, runarrays.LAST] = last
        # A longer path shifts the points of all robots behind it in the table.
        w.i[:, runarrays.POINT] = first + old.i[:, runarrays.POINT] - old_first
        w.i[robot, runarrays.ASKED] = asked
        v = self.task.vehicles[robot]
        if w.i[robot, runarrays.MODE] == runarrays.GOING:
            end = float(v.ends[-1]) if self.rules.stop_at_end else np.inf
            w.f[robot, runarrays.LIMIT] = position_limit(
                v, end, int(w.i[robot, runarrays.ALLOWED])
            )

        # Occupied sectors are renumbered for the same reason.
        owner = w.sectors[:, runarrays.OWNER]
        numbers, robots = np.arange(self.task.n_sectors) - w.first[owner], w.i[owner]
        w.sectors[:, runarrays.INSIDE] = (
            (robots[:, runarrays.TAIL] <= numbers)
            & (numbers <= robots[:, runarrays.HEAD])
            & (robots[:, runarrays.MODE] != runarrays.GONE)
        )
        self._chunks, self.now, self.is_idle = (
            before._chunks,
            before.now,
            before.is_idle,
        )
        # The queue holds event times of the old path, so plan the motion of all robots
        # again.
        packed = self._pack(w)
        k.begin(packed)
        k.allow(packed, robot, 0, self.now)

    def asked(self) -> list[tuple[int, int]]:
        """Return the robots that wait for a permission.

        Returns
        -------
        list of (int, int)
            Numbers of the robots, each with its number of missing permissions.
        """
        missing = (self._w.i[:, runarrays.ASKED] - self._w.i[:, runarrays.ALLOWED]) * (
            1 - self._w.i[:, runarrays.DONE]
        )
        return [(robot, n) for robot, n in enumerate(missing.tolist()) if n > 0]

    def _advance(
        self, until: float, progress: Callable[[float, int], None] = lambda _t, _n: None
    ) -> int:
        """Process the events up to a time; return the kernel's reason to stop."""
        w, packed, mail = self._w, self._pack(self._w), self._mail
        if w.c[runarrays.COLLISIONS] and not w.c[runarrays.GOES_ON]:
            return runarrays.COLLIDED
        c, d, instant, advance, calls = w.c, w.d, self.rules.is_instant, k.advance, 0
        while True:
            # Stop at the next message, because it may change what robots do afterwards.
            code = advance(packed, min(mail[0][0], until) if mail else until)
            if code == runarrays.NOTIFY:
                self.now = float(d[0])
                (self._to_supervisor if instant else self._send)(
                    int(c[runarrays.NOTICE]),
                    int(c[runarrays.NOTICE_ROBOT]),
                    int(c[runarrays.NOTICE_SECTOR]),
                )
                calls += 1
                if not calls % _PROGRESS_INTERVAL:
                    progress(self.now, int(c[runarrays.N_DONE]))
            elif code == runarrays.FULL:
                self._flush()
                progress(float(d[0]), int(c[runarrays.N_DONE]))
            elif (
                code in (runarrays.TIME, runarrays.IDLE)
                and mail
                and mail[0][0] <= until
            ):
                self.now, _, kind, robot, sector = heapq.heappop(mail)
                if kind == _PERMISSION:
                    self._allow(robot, sector)
                else:
                    self._to_supervisor(kind, robot, sector)
            # No robot moves, but a message later than `until` can still start one.
            elif code == runarrays.IDLE and mail:
                return runarrays.TIME
            else:
                return int(code)

    def finish(self, why: int | Ending) -> Outcome:
        """Return the outcome of the run; call it once, at the end.

        Parameters
        ----------
        why : int or Ending
            Reason of the end: a code of the kernel, or the ending that a caller gives to a run in
            real time.
        """
        self._flush()
        self.supervisor.on_end()
        if self._w.c[runarrays.LOST]:
            raise AssertionError(
                f"event buffer overflow: {self._w.c[runarrays.LOST]} events were lost"
            )

        return self._outcome(why)

    def _flush(self) -> None:
        w = self._w
        n = int(w.c[runarrays.OUT])
        if n:
            self._chunks.append(
                tuple(column[:n].copy() for column in (w.et, w.er, w.ek, w.es))
            )
            w.c[runarrays.OUT] = 0

    def _outcome(self, why: int | Ending) -> Outcome:
        f, i, c = self._w.f, self._w.i, self._w.c
        done = i[:, runarrays.DONE].astype(bool)
        codes = {
            runarrays.ALL_DONE: Ending.COMPLETED,
            runarrays.COLLIDED: Ending.COLLISION,
            runarrays.IDLE: Ending.DEADLOCK,
        }
        ending = why if isinstance(why, Ending) else codes.get(why, Ending.TIMEOUT)
        if c[runarrays.COLLISIONS] and ending is not Ending.TIMEOUT:
            ending = Ending.COLLISION
        state = i[
            :, [runarrays.ALLOWED, runarrays.ASKED, runarrays.TAIL, runarrays.HEAD]
        ].astype(np.int64)
        waiting, cycle = who_waits(self.task, state, done, ending, self.supervisor)
        if ending is Ending.TIMEOUT:
            time = self.now if isinstance(why, Ending) else self.rules.time_limit
        else:
            time = float(self._w.d[0])

        # A deadlock starts when the last robot has come to rest.
        if ending is Ending.DEADLOCK:
            time = max(time, float(f[~done, runarrays.REST].max(initial=0.0)))
        # These robots are still stopped at the end, so their last wait is not counted
        # yet.
        stands = ~done & (f[:, runarrays.REST] < time)
        waited = f[:, runarrays.WAIT] + np.where(
            stands, time - np.where(stands, f[:, runarrays.REST], 0.0), 0.0
        )
        robots = Robots(
            f[:, runarrays.FINISHED].copy(),
            waited,
            (i[:, runarrays.STOPS] + stands).astype(np.int64),
            done,
        )
        return Outcome(
            self.task,
            ending,
            time,
            join_events(self._chunks),
            int(c[runarrays.EVENTS]),
            robots,
            cycle,
            waiting,
            int(c[runarrays.COLLISIONS]),
            Decisions(self._decisions, self._deciding, self._longest),
        )

    @property
    def world(self) -> runarrays.World:
        """Arrays of the kernel, for inspection."""
        return self._w

    @property
    def tests(self) -> int:
        """Number of Banker's tests that compiled code has made."""
        return int(self._w.c[runarrays.TESTS])


__all__ = ["Rules", "Traffic"]
