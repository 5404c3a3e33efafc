"""Sources of the commands of all robots over the last minute (`CommandLog`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from botyard.engine.commands import Command
from botyard.sim.journal import Entry, Submit, SubmitEach, SubmitVelocities
from botyard.sim.simulation import Robot, Simulation

KEPT_S: Final = 60.0
"""Simulated time before the present for which commands are kept, s."""
GAP_S: Final = 1.0
"""Longest pause between two commands of one run (see `Run`), s of simulated time."""
MAX_RUNS: Final = 60
"""Largest number of runs (see `Run`) that are kept for a robot."""


@dataclass(slots=True)
class Run:
    """Run: consecutive commands of one source to a robot.

    Attributes
    ----------
    start, end : int
        Ticks of the first and of the last command.
    source : str
        Source of the commands in the journal, or name of the robot's controller.
    count : int
        Number of commands.
    """

    start: int
    end: int
    source: str
    count: int = 1


class CommandLog:
    """Listener of the journal that remembers which sources have commanded each robot.

    Parameters
    ----------
    sim : Simulation
        The world, which is only read.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._runs: dict[str, deque[Run]] = {}
        self._gap = max(2, round(GAP_S / sim.dt))
        self._stop: Callable[[], None] | None = None

    def watch(self, on: bool) -> None:
        """Start to listen, or stop and forget everything."""
        if on and self._stop is None:
            self._stop = self._sim.core.journal.listen(self._heard, self._heard_one)
        elif not on and self._stop is not None:
            self._stop()
            self._stop = None
            self._runs.clear()

    def _heard(self, entry: Entry) -> None:
        change = entry.change
        if isinstance(change, Submit):
            self._note(entry.tick, entry.source, change.name)
        elif isinstance(change, SubmitEach):
            for name in change.names:
                self._note(entry.tick, entry.source, name)
        elif isinstance(change, SubmitVelocities):
            names = tuple(self._sim.robots)
            for row in change.command.rows.tolist():
                if row < len(names):
                    self._note(entry.tick, entry.source, names[row])

    def _heard_one(
        self, tick: int, order: int, source: str, name: str, command: Command
    ) -> None:
        self._note(tick, source, name)

    def _note(self, tick: int, source: str, name: str) -> None:
        runs = self._runs.get(name)
        if runs is None:
            runs = self._runs[name] = deque(maxlen=MAX_RUNS)
        if source == "api":
            # All controllers share one source in the journal; the controller's name
            # says more.
            program = self._sim.core.programs.by_robot.get(name)
            source = source if program is None else program.name
        last = runs[-1] if runs else None
        if last is not None and last.start > tick:
            # Simulated time has jumped back, for example by a reset.
            runs.clear()
            last = None
        if last is None or last.source != source or tick - last.end > self._gap:
            runs.append(Run(tick, tick, source))
        else:
            last.end = max(last.end, tick)
            last.count += 1

    def keep(self, robots: frozenset[str]) -> None:
        """Forget the commands of all robots but `robots`, so that removed robots take no memory."""
        self._runs = {n: runs for n, runs in self._runs.items() if n in robots}

    def commander(self, robot: Robot) -> str:
        """Return the source of the last command of a robot; empty if no source is known."""
        runs = self._runs.get(robot.name)
        if runs:
            return runs[-1].source
        program = self._sim.core.programs.by_robot.get(robot.name)
        return "" if program is None or robot.clients else program.name

    def last(self, robot: str, source: str) -> float | None:
        """Return the simulated time since a source last commanded a robot, s; None without one."""
        for run in reversed(self._runs.get(robot, ())):
            if run.source == source:
                return max(0, self._sim.tick - run.end) * self._sim.dt
        return None

    def recent(self, robot: str) -> list[tuple[float, float, str, int]]:
        """Return a robot's runs of commands in the last minute, oldest first; see `Run`.

        Returns
        -------
        list of (start, end, source, count)
            Start and end as simulated times before the present, s.
        """
        now, dt = self._sim.tick, self._sim.dt
        return [
            (
                round(min((now - run.start) * dt, KEPT_S), 2),
                round((now - run.end) * dt, 2),
                run.source,
                run.count,
            )
            for run in self._runs.get(robot, ())
            if 0 <= (now - run.end) * dt < KEPT_S
        ]

    @property
    def robots(self) -> list[str]:
        """Robots with commands."""
        return list(self._runs)


__all__ = ["KEPT_S", "CommandLog", "Run"]
