"""Supervisors that reserve sectors.

The policies are first come, first served; priority; chains; and the Banker's test. A
robot holds a sector from the grant until it has left it. No other robot gets a sector
that conflicts with a held one, so no collision can happen. The supervisors differ in
the further conditions of a grant, and so in whether a deadlock (circular wait) is
possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from botyard.traffic.kernels import runarrays
from botyard.traffic.supervisors.base import Policy, Supervisor, SupervisorError
from botyard.traffic.task import I8, Task

if TYPE_CHECKING:
    from botyard.traffic.rules import Rules


class Nobody(Supervisor):
    """Supervisor that grants nothing: every robot stops before its second sector (``none``)."""

    guarantee: ClassVar = "no collision; no robot leaves its first sector"
    decides: ClassVar = False

    # The engine carries out these policies itself, without calls into Python.
    def policy(self) -> Policy:
        """Return the policy that grants nothing."""
        return Policy(kind=runarrays.NOBODY)


class Dummy(Supervisor):
    """Supervisor that grants every request at once (``dummy``), as in the original program.

    Whether robots collide depends on the task alone.
    """

    guarantee: ClassVar = "none; robots never wait"

    def on_critical(self, robot: int, sector: int) -> None:
        """Grant the requested sector."""
        self.grant(robot, sector)

    def policy(self) -> Policy:
        """Return the policy that grants every request."""
        return Policy(kind=runarrays.EVERYTHING)


class FirstComeFirstServed(Supervisor):
    """Supervisor that grants a sector when no robot holds a conflicting one (``fcfs``).

    Requests are served in order. Collisions are impossible; deadlock (circular wait) is
    possible. Cost: O(conflicts of a sector) for each message; compiled.
    """

    guarantee: ClassVar = "no collision; can deadlock"
    kind: ClassVar = runarrays.RESERVE

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """Record the sectors that each robot holds at the start."""
        super().on_start(task, rules, send)
        self.allowed = [v.first_sector() for v in task.vehicles]
        self.asked = list(self.allowed)
        self.tail = [v.occupied()[0] for v in task.vehicles]
        # Each robot holds the sectors that it occupies at the start, without a request.
        self.held = {
            (i, s)
            for i, head in enumerate(self.allowed)
            for s in range(self.tail[i], head + 1)
        }
        self._ranks: dict[tuple[int, int], int] = {}
        self._count = 0
        starts, others = task.conflicts
        self._conflicts = (starts.tolist(), others.tolist())

    def conflicts(self, robot: int, sector: int) -> list[tuple[int, int]]:
        """Return the sectors that conflict with a sector.

        Parameters
        ----------
        robot, sector : int
            Number of the robot, and of the sector on its path.

        Returns
        -------
        list of (int, int)
            Robots, and sectors on their paths.
        """
        starts, others = self._conflicts
        g = int(self.task.first[robot]) + sector
        return [self.task.robot_of(c) for c in others[starts[g] : starts[g + 1]]]

    def last_of_chain(self, robot: int, sector: int) -> int:
        """Return the last sector that is granted together with a sector.

        Parameters
        ----------
        robot, sector : int
            Number of the robot, and of the first sector to grant.

        Returns
        -------
        int
            Number of a sector on the same path, at least `sector`.
        """
        # Only chained supervisors grant more than one sector at a time.
        return sector

    def may(self, robot: int, sector: int) -> bool:
        """Return whether a robot can get a sector and the rest of its chain.

        Parameters
        ----------
        robot, sector : int
            Number of the robot, and of the next sector that it needs.
        """
        last = self.last_of_chain(robot, sector)
        return not any(
            c in self.held
            for s in range(sector, last + 1)
            for c in self.conflicts(robot, s)
        )

    def rank(self, robot: int) -> int:
        """Return the priority of a waiting robot; the lowest is served first."""
        return self._ranks.get((robot, self.allowed[robot] + 1), 0)

    def on_critical(self, robot: int, sector: int) -> None:
        """Queue the request, and grant all sectors that the robot can get now."""
        # Messages can arrive out of order over a channel with jitter.
        self.asked[robot] = max(self.asked[robot], sector)
        if self.allowed[robot] < sector:
            self._count += 1
            self._ranks[robot, sector] = self._count
            # A robot may have requested several sectors before an answer arrives.
            while self._serve(robot):
                pass

    def on_release(self, robot: int, sector: int) -> None:
        """Free the sector, and serve the waiting robots."""
        self.held.discard((robot, sector))
        # Releases can also arrive out of order, hence the maximum.
        self.tail[robot] = max(self.tail[robot], sector + 1)
        self._retry()

    def on_hand_grant(self, robot: int, sector: int) -> None:
        """Record that the robot holds the sectors."""
        self.held.update((robot, s) for s in range(self.allowed[robot] + 1, sector + 1))
        self.allowed[robot] = max(self.allowed[robot], sector)

    def on_finish(self, robot: int, sector: int) -> None:
        """Do nothing: the robot keeps its last sector until it leaves it."""

    def _retry(self) -> None:
        """Serve all waiting robots once, by rank.

        A robot that got a sector and waits for more is queued again.
        """
        waiting = [i for i in range(len(self.asked)) if self.allowed[i] < self.asked[i]]
        # The number of the robot breaks ties, so that runs repeat.
        waiting.sort(key=lambda i: (self.rank(i), i))
        while waiting:
            i = waiting.pop(0)
            # A robot that was served waits for its next sector behind robots that
            # waited longer.
            if self._serve(i) and self.allowed[i] < self.asked[i]:
                waiting.append(i)
                waiting.sort(key=lambda j: (self.rank(j), j))

    def _serve(self, robot: int) -> bool:
        sector = self.allowed[robot] + 1
        if sector > self.asked[robot] or not self.may(robot, sector):
            return False
        for s in range(sector, self.last_of_chain(robot, sector) + 1):
            self.held.add((robot, s))
            self.allowed[robot] = s
            self.grant(robot, s)

        return True

    def policy(self) -> Policy:
        """Return the policy of this class for compiled code."""
        return Policy(kind=self.kind)


class Priority(FirstComeFirstServed):
    """Supervisor like `FirstComeFirstServed` that serves the lowest priority number
    first (``priority``).

    Parameters
    ----------
    priorities : sequence of int, optional
        Priority of each robot; by default its number.
    """

    guarantee: ClassVar = (
        "no collision; can deadlock; the robot of the lowest number is served first"
    )

    def __init__(self, priorities: Sequence[int] | None = None) -> None:
        self._given = priorities

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """Check that there is a priority for each robot."""
        super().on_start(task, rules, send)
        self._priorities = (
            list(range(len(task))) if self._given is None else list(self._given)
        )
        if len(self._priorities) != len(task):
            raise SupervisorError(
                f"priorities: expected one for each of {len(task)} robots, found "
                f"{len(self._priorities)}"
            )

    def rank(self, robot: int) -> int:
        """Return the priority number of a robot; the lowest is served first."""
        return self._priorities[robot]

    # Without a list, the robot's number is its priority.

    def policy(self) -> Policy:
        """Return the policy with the priorities of the robots."""
        return Policy(kind=self.kind, rank=np.array(self._priorities, np.int64))


def chain_ends(task: Task) -> I8:
    """Return, for each sector, the last sector of the chain that starts there.

    A chain is a row of conflicting sectors. It ends with the first sector without
    conflicts, where a robot can wait without blocking others; a sector without
    conflicts is a chain of its own.

    Returns
    -------
    (n_sectors,) int64
        By the global number of a sector, the last sector of its chain, as its number on
        the path of the same robot.
    """
    starts, _ = task.conflicts
    critical = np.diff(starts) > 0
    out = np.zeros(task.n_sectors, np.int64)
    for i in range(len(task)):
        first, last = int(task.first[i]), int(task.first[i + 1]) - 1
        end = last - first
        # The loop runs from the end to the start: each sector gets the chain end of the
        # next one.
        for g in range(last, first - 1, -1):
            if not critical[g]:
                end = g - first
            elif g == last:
                end = last - first

            out[g] = end

    return out


class Chained(FirstComeFirstServed):
    """Supervisor that grants all sectors of a chain of conflicting ones together (``chained``).

    A robot never stops inside a chain, so it never waits while it holds a sector that
    others need. A circular wait is impossible if paths start and end in sectors without
    conflicts (hold and wait is one of the four conditions of Coffman, Elphick and
    Shoshani, "System Deadlocks", ACM Computing Surveys 3(2), 1971). Fewer robots move
    at once than with the Banker's test. Cost: O(length of a chain × conflicts) for each
    message; compiled.
    """

    guarantee: ClassVar = (
        "no collision; no deadlock if paths start and end in sectors without conflicts"
    )

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """Compute the chains of the task."""
        super().on_start(task, rules, send)
        self._ends = chain_ends(task)

    def last_of_chain(self, robot: int, sector: int) -> int:
        """Return the last sector of the chain that starts with a sector."""
        return int(self._ends[self.task.first[robot] + sector])

    def policy(self) -> Policy:
        """Return the policy with the chains of the task."""
        return Policy(kind=self.kind, chain=self._ends)


class Bankers(FirstComeFirstServed):
    """Supervisor that keeps an order in which all robots can still finish (``bankers``).

    The Banker's algorithm (E. W. Dijkstra, "Een algorithme ter voorkoming van de
    dodelijke omarming", EWD108, 1965; for several resources A. N. Habermann,
    "Prevention of System Deadlocks", CACM 12(7), 1969) with sectors as resources of one
    unit. Robot i can finish when no other robot holds a sector that conflicts with the
    rest of its path. A finished robot stays in its last sector, so it counts as
    finished only when no other robot still needs this sector. Provably free of deadlock
    if the start is safe, which `on_start` checks. Cost of a test: O(n² · sectors ·
    conflicts) at worst, about linear in practice; compiled.
    """

    guarantee: ClassVar = "no collision; no deadlock"
    kind: ClassVar = runarrays.BANKERS

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """Check that all robots can finish from the start."""
        super().on_start(task, rules, send)
        self._done: set[int] = set()
        # The Banker keeps safe states safe; it cannot repair an unsafe start.
        stuck = self.unsafe(self.allowed, self.held)
        if stuck:
            raise SupervisorError(
                "bankers: the start is not safe: robots "
                f"{', '.join(map(str, stuck[:20]))} cannot all finish, in any "
                'order ("botyard traffic check" shows more)',
                tuple(stuck),
            )

    def unsafe(self, allowed: Sequence[int], held: set[tuple[int, int]]) -> list[int]:
        """Return the robots that cannot finish from a state; empty if it is safe.

        Parameters
        ----------
        allowed : sequence of int
            Last sector that each robot may enter.
        held : set of (int, int)
            Robots and sectors that are granted and not left yet. It stays unchanged.

        Returns
        -------
        list of int
            Robots that cannot finish in any order, in ascending order.
        """
        # The search simulates robots that finish one after the other and release their
        # sectors.
        held, left = (
            set(held),
            [i for i in range(len(self.task)) if i not in self._done],
        )
        ended: set[int] = set(self._done)
        progress = True
        while left and progress:
            progress = False
            # The copy lets the loop remove robots.
            for i in tuple(left):
                last = len(self.task.vehicles[i].ends) - 1
                rest = range(allowed[i] + 1, last + 1)
                if any(c in held for s in rest for c in self.conflicts(i, s)):
                    continue
                # A robot that stays must not block the last sector of a robot that
                # still moves.
                if not self.rules.leaves and any(
                    j not in ended and s >= self.tail[j]
                    for j, s in self.conflicts(i, last)
                ):
                    continue

                # A robot that can finish releases all of its sectors.
                held -= {(i, s) for s in range(self.tail[i], allowed[i] + 1)}
                if not self.rules.leaves:
                    held.add((i, last))
                ended.add(i)
                left.remove(i)
                progress = True

        return left

    def may(self, robot: int, sector: int) -> bool:
        """Return whether all robots can still finish after this grant."""
        conflicts = self.conflicts(robot, sector)
        if any(c in self.held for c in conflicts):
            return False
        # A sector without conflicts does not change the safety of the state.
        if not conflicts:
            return True
        return not self.endangered(robot, sector)

    def endangered(self, robot: int, sector: int) -> tuple[int, ...]:
        """Return the robots that could not finish any more after a grant."""
        # Grant on trial: the state afterwards must let all robots finish.
        allowed = list(self.allowed)
        allowed[robot] = sector
        return tuple(self.unsafe(allowed, self.held | {(robot, sector)}))

    def on_finish(self, robot: int, sector: int) -> None:
        """Record that the robot has finished."""
        self._done.add(robot)


__all__ = [
    "Bankers",
    "Chained",
    "Dummy",
    "FirstComeFirstServed",
    "Nobody",
    "Priority",
    "chain_ends",
]
