"""A supervisor of one's own: conflict zones are given out in turns, like the right of
way at a junction with stop signs.

    botyard traffic run task.json --supervisor
    examples/traffic/round_robin.py:RoundRobin
    botyard traffic compare -s bankers,examples/traffic/round_robin.py:RoundRobin

It never lets two robots into conflicting sectors. It can deadlock, as anything can that
grants a sector at a time and looks at nothing else; "compare" shows where.
"""

from __future__ import annotations

from collections.abc import Callable

from botyard.traffic import Rules, Supervisor, Task


class RoundRobin(Supervisor):
    """Among those who wait, the robot after the one that was served last is first."""

    guarantee = "no collision; can deadlock"

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """A run starts: every robot holds the sector in which it stands."""
        super().on_start(task, rules, send)
        self.held = {
            (i, vehicle.first_sector()) for i, vehicle in enumerate(task.vehicles)
        }
        self.waiting: set[tuple[int, int]] = set()
        self.last = -1

    def conflicts(self, robot: int, sector: int) -> list[tuple[int, int]]:
        """Return the robots and sectors that conflict with one sector."""
        starts, others = self.task.conflicts
        g = self.task.first[robot] + sector
        return [
            self.task.robot_of(c) for c in others[starts[g] : starts[g + 1]].tolist()
        ]

    def on_critical(self, robot: int, sector: int) -> None:
        """A robot asks for a sector."""
        self.waiting.add((robot, sector))
        self.serve()

    def on_release(self, robot: int, sector: int) -> None:
        """A robot has left one."""
        self.held.discard((robot, sector))
        self.serve()

    def serve(self) -> None:
        """Grant what can be granted, in turns."""
        n = len(self.task)
        for robot, sector in sorted(
            self.waiting, key=lambda w: ((w[0] - self.last - 1) % n, w[1])
        ):
            if not any(c in self.held for c in self.conflicts(robot, sector)):
                self.waiting.remove((robot, sector))
                self.held.add((robot, sector))
                self.last = robot
                self.grant(robot, sector)
