"""Supervisor that enforces the order of a plan, whatever the delays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from botyard.traffic.kernels import runarrays
from botyard.traffic.supervisors.base import Policy, Supervisor, SupervisorError
from botyard.traffic.task import I8, Task

if TYPE_CHECKING:
    from botyard.traffic.rules import Rules


class FixedOrder(Supervisor):
    """Supervisor that grants a sector when all conflicting earlier ones were left (``order``).

    The order is the task's ("Order"), as a planner has found it, or the order of a run
    with the Banker's test. This is an action dependency graph at the level of sectors
    (W. Hönig, S. Kiesel, A. Tinka, J. Durham, N. Ayanian, "Persistent and Robust
    Execution of MAPF Schedules in Warehouses", IEEE RA-L 4(2), 2019). It is free of
    deadlock exactly if the graph has no cycle, which `on_start` checks. Cost:
    O(conflicts of a sector) for each message; compiled.

    Parameters
    ----------
    order : sequence of (robot, sector), optional
        Order in which sectors are entered; sectors without conflicts may be missing.
    """

    guarantee: ClassVar = "no collision; no deadlock (a plan with a cycle is refused)"

    def __init__(self, order: Sequence[tuple[int, int]] | None = None) -> None:
        self._given = order

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """Determine the order of the task, and check that it has no cycle."""
        super().on_start(task, rules, send)
        self._after = self._pairs(
            self._given if self._given is not None else task.order or self._found()
        )
        self._check()
        n = task.n_sectors
        self._need = np.zeros(n, np.int64)
        np.add.at(self._need, self._after[:, 1], 1)
        self._next: list[list[int]] = [[] for _ in range(n)]
        for before, after in self._after.tolist():
            self._next[before].append(after)
        self.allowed = [v.first_sector() for v in task.vehicles]
        self.asked = list(self.allowed)

    def _found(self) -> list[tuple[int, int]]:
        """Run the task with the Banker's test, and return the order in which sectors
        are entered.
        """
        from botyard.traffic.engine import Traffic
        from botyard.traffic.supervisors.reserving import Bankers

        events = Traffic(self.task, Bankers(), self.rules).run().events
        rows = events.kind == runarrays.ENTER
        return list(
            zip(events.robot[rows].tolist(), events.sector[rows].tolist(), strict=True)
        )

    def _pairs(self, order: Sequence[tuple[int, int]]) -> I8:
        """Return pairs of conflicting sectors that the order decides.

        Parameters
        ----------
        order : sequence of (robot, sector)
            Order in which sectors are entered.

        Returns
        -------
        (m, 2) int64
            Global numbers of the earlier and of the later sector.

        Raises
        ------
        SupervisorError
            A sector with conflicts is missing in the order.
        """
        task = self.task
        place = np.full(task.n_sectors, -1, np.int64)
        for i, v in enumerate(task.vehicles):
            # Sectors occupied at the start precede all other sectors.
            place[task.first[i] : task.first[i] + v.first_sector() + 1] = 0

        for at, (robot, sector) in enumerate(order):
            g = task.first[robot] + sector
            if place[g] < 0:
                place[g] = at + 1

        starts, others = task.conflicts
        mine = np.repeat(np.arange(task.n_sectors), np.diff(starts))
        missing = place[mine] < 0
        if missing.any():
            robot, sector = task.robot_of(int(mine[missing][0]))
            raise SupervisorError(
                f"order: expected sector {sector} of robot {robot}, which "
                "conflicts with others, found no entry for it"
            )

        later = place[others] < place[mine]
        pairs: I8 = np.stack([others[later], mine[later]], axis=1)
        return pairs

    def _check(self) -> None:
        """Reject an order with a cycle, or with a robot that waits for ever.

        The check is a topological sort.
        """
        task, leaves = self.task, self.rules.leaves
        n = task.n_sectors
        follow: list[list[int]] = [[] for _ in range(n)]
        count = np.zeros(n, np.int64)
        for i, v in enumerate(task.vehicles):
            first = int(task.first[i])
            # Each robot enters its own sectors in order, which adds edges to the graph.
            for s in range(v.first_sector() + 1, len(v.ends) - 1):
                follow[first + s].append(first + s + 1)
                count[first + s + 1] += 1

        for before, after in self._after.tolist():
            robot, sector = task.robot_of(before)
            v = task.vehicles[robot]
            if sector == len(v.ends) - 1 and not leaves:
                other, where = task.robot_of(after)
                raise SupervisorError(
                    f"order: robot {robot} stays in its last sector, so robot "
                    f"{other} can never enter its sector {where}"
                )

            # The rear leaves its sector when the front has come this far, so the front
            # must be permitted to get there.
            front = (
                int(np.searchsorted(v.ends[:-1] - v.radius, v.ends[sector] + v.radius))
                if sector < len(v.ends) - 1
                else sector
            )
            if front <= v.first_sector():
                continue
            need = int(task.first[robot]) + front
            follow[need].append(after)
            count[after] += 1

        ready = [g for g in range(n) if not count[g]]
        seen = 0
        while ready:
            g = ready.pop()
            seen += 1
            for f in follow[g]:
                count[f] -= 1
                if not count[f]:
                    ready.append(f)

        if seen < n:
            stuck = sorted({task.robot_of(g)[0] for g in range(n) if count[g]})
            raise SupervisorError(
                f"order: robots {', '.join(map(str, stuck[:20]))} would wait for "
                "each other in a cycle"
            )

    def on_critical(self, robot: int, sector: int) -> None:
        """Grant the requested sector as soon as the order allows it."""
        self.asked[robot] = max(self.asked[robot], sector)
        self._serve(robot)

    def on_release(self, robot: int, sector: int) -> None:
        """Record that the sector was left, and grant sectors that waited for it."""
        task = self.task
        freed = self._next[int(task.first[robot]) + sector]
        self._need[freed] -= 1
        for i in sorted({task.robot_of(g)[0] for g in freed}):
            self._serve(i)

    def on_hand_grant(self, robot: int, sector: int) -> None:
        """Record the sectors as granted, so that they are not granted again."""
        self.allowed[robot] = max(self.allowed[robot], sector)

    def _serve(self, robot: int) -> None:
        first = int(self.task.first[robot])
        while (
            self.allowed[robot] < self.asked[robot]
            and not self._need[first + self.allowed[robot] + 1]
        ):
            self.allowed[robot] += 1
            self.grant(robot, self.allowed[robot])

    def policy(self) -> Policy:
        """Return the policy with the pairs of the order."""
        return Policy(kind=runarrays.ORDER, after=self._after)


__all__ = ["FixedOrder"]
