"""What a supervisor is, and how a built-in one tells the engine that it can be carried out by compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from botyard.errors import WorldError
from botyard.traffic.kernels import events as k
from botyard.traffic.task import I8, Task

if TYPE_CHECKING:
    from botyard.traffic.rules import Rules


class SupervisorError(WorldError):
    """A supervisor cannot be used with a task, or there is none of a name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """What compiled code needs to know of a supervisor.

    Attributes
    ----------
    kind : int
        One of the policies of `botyard.traffic.kernels.events`; EXTERNAL: the supervisor's own methods are called.
    chain : (n_sectors,) int64 array or None
        By global number, up to which sector of the same robot is granted together with this one; None: only this one.
    rank : (n_robots,) int64 array or None
        Who is served first, the lowest; None: who has asked first.
    after : (m, 2) int64 array or None
        Pairs of global numbers: the second is not granted before the first is released.
    """

    kind: int = k.EXTERNAL
    chain: I8 | None = None
    rank: I8 | None = None
    after: I8 | None = None


class Supervisor:
    """Grants permissions; override what you need.

    Robots and sectors are numbered as in the task file. A robot that reaches the critical point of a sector without a permission for it
    brakes, and goes on when the permission comes.
    """

    guarantee: ClassVar[str] = ""
    """What it promises, in a few words."""
    decides: ClassVar[bool] = True
    """Whether it ever grants anything; else robots that stand still wait for nobody, and a deadlock has no circle."""

    task: Task
    rules: Rules
    _send: Callable[[tuple[int, int]], None]

    def on_start(self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]) -> None:
        """A run begins. Who overrides this calls it first.

        Parameters
        ----------
        task, rules : Task, Rules
            What is run, and how.
        send : callable
            For `grant`.

        Raises
        ------
        SupervisorError
            The task cannot be supervised so.
        """
        self.task, self.rules, self._send = task, rules, send

    def on_critical(self, robot: int, sector: int) -> None:
        """A robot is a braking distance before a sector and asks whether it may enter."""

    def on_release(self, robot: int, sector: int) -> None:
        """A robot has left a sector."""

    def on_finish(self, robot: int, sector: int) -> None:
        """A robot is at the end of its path, in its last sector."""

    def on_end(self) -> None:
        """The run is over."""

    def grant(self, robot: int, sector: int) -> None:
        """Permit a robot to enter a sector, and all before it. May be called from any of the methods above, for any robot."""
        self._send((robot, sector))

    def policy(self) -> Policy:
        """How compiled code can do the same; called after `on_start`."""
        return Policy()


def take_answers(answers: list[tuple[int, int]], robots: int) -> list[tuple[int, int]]:
    """What a supervisor has granted since the last time: robot and sector.

    Raises
    ------
    WorldError
        To a robot that is not there.
    """
    taken = answers.copy()
    answers.clear()
    for robot, _ in taken:
        if not 0 <= robot < robots:
            raise WorldError(f"the supervisor grants a sector to robot {robot}: there are {robots}")
    return taken


__all__ = ["Policy", "Supervisor", "SupervisorError", "take_answers"]
