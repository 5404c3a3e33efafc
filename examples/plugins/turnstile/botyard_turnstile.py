"""A traffic supervisor: one robot moves at a time, in the order of their requests.

botyard traffic compare -s turnstile,bankers -f ring,deadlock -n 4
"""

from __future__ import annotations

from collections.abc import Callable

from botyard.traffic import Rules, Supervisor, Task


class Turnstile(Supervisor):
    """The robot that asked first drives to the end of its path, then the next one."""

    guarantee = "no collision and no deadlock if paths start and end in free sectors"

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        super().on_start(task, rules, send)
        # Requests in their order, and the robot that may move.
        self.requests: list[tuple[int, int]] = []
        self.turn: int | None = None

    def on_critical(self, robot: int, sector: int) -> None:
        self.requests.append((robot, sector))
        self.serve()

    def on_finish(self, robot: int, sector: int) -> None:
        self.turn = None
        self.serve()

    def serve(self) -> None:
        """Grant the requests of the robot that may move."""
        if self.turn is None and self.requests:
            self.turn = self.requests[0][0]
        for robot, sector in [r for r in self.requests if r[0] == self.turn]:
            self.requests.remove((robot, sector))
            self.grant(robot, sector)
