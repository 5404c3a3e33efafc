"""Base class of supervisors, and the compiled form of built-in ones.

`Policy` lets the engine run a built-in supervisor as compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from botyard.errors import WorldError
from botyard.traffic.kernels import runarrays
from botyard.traffic.task import I8, Task

if TYPE_CHECKING:
    from botyard.traffic.rules import Rules


class SupervisorError(WorldError):
    """A supervisor is unknown, or cannot be used with a task.

    Parameters
    ----------
    text : str
        Message.
    robots : tuple of int
        Robots that make the task unsuitable; empty if no robots do.
    """

    def __init__(self, text: str, robots: tuple[int, ...] = ()) -> None:
        super().__init__(text)
        self.robots = robots


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """Parameters of a supervisor for the compiled code.

    Attributes
    ----------
    kind : int
        One of the policies of `botyard.traffic.kernels.runarrays`; EXTERNAL: the
        supervisor's own methods are called.
    chain : (n_sectors,) int64 array or None
        By global number, the last sector of the same robot that is granted together
        with this one; None: only this one.
    rank : (n_robots,) int64 array or None
        Priorities, the lowest is served first; None: first come first served.
    after : (m, 2) int64 array or None
        Pairs of global numbers: the second is not granted before the first is released.
    """

    kind: int = runarrays.EXTERNAL
    chain: I8 | None = None
    rank: I8 | None = None
    after: I8 | None = None


class Supervisor:
    """Base class of supervisors; override what you need.

    Robots and sectors are numbered as in the task file. A robot that reaches the
    critical point of a sector without a permission for it brakes, and continues when
    the permission arrives.
    """

    guarantee: ClassVar[str] = ""
    """Guarantee of the supervisor about collisions and deadlocks, in a few words."""
    decides: ClassVar[bool] = True
    """Whether the supervisor ever grants a sector.

    If not, robots at rest wait for no other robot, and a deadlock has no cycle.
    """

    task: Task
    rules: Rules
    _send: Callable[[tuple[int, int]], None]

    def on_start(
        self, task: Task, rules: Rules, send: Callable[[tuple[int, int]], None]
    ) -> None:
        """Called at the start of a run. Overriding methods call this one first.

        Parameters
        ----------
        task, rules : Task, Rules
            Task and options of the run.
        send : callable
            Function that `grant` calls with robot and sector.

        Raises
        ------
        SupervisorError
            The supervisor cannot be used with this task.
        """
        self.task, self.rules, self._send = task, rules, send

    def on_critical(self, robot: int, sector: int) -> None:
        """Called when a robot asks for permission to enter a sector.

        The robot is then a braking distance before the sector.

        Parameters
        ----------
        robot : int
            Number of the robot in the task.
        sector : int
            Number of the sector on the path of that robot.
        """

    def on_release(self, robot: int, sector: int) -> None:
        """Called when a robot has left a sector.

        Parameters
        ----------
        robot : int
            Number of the robot in the task.
        sector : int
            Number of the sector on the path of that robot. The sector is free for other
            robots now.
        """

    def on_finish(self, robot: int, sector: int) -> None:
        """Called when a robot is at the end of its path.

        Parameters
        ----------
        robot : int
            Number of the robot in the task.
        sector : int
            Its last sector, which it leaves only with `Rules.leaves`.
        """

    def on_hand_grant(self, robot: int, sector: int) -> None:
        """Called when a user has granted a sector, and all sectors before it.

        A supervisor that keeps a record of held sectors enters them.

        Parameters
        ----------
        robot : int
            Number of the robot in the task.
        sector : int
            Number of the sector on the path of that robot.
        """

    def on_end(self) -> None:
        """Called at the end of a run."""

    def endangered(self, robot: int, sector: int) -> tuple[int, ...]:
        """Return the robots that could not finish any more after a grant.

        It explains to users why a sector without a robot is not granted.

        Parameters
        ----------
        robot : int
            Number of the robot that waits.
        sector : int
            Number of the sector that it needs.

        Returns
        -------
        tuple of int
            Numbers of robots; empty if the supervisor does not look ahead.
        """
        return ()

    def grant(self, robot: int, sector: int) -> None:
        """Permit a robot to enter a sector, and all sectors before it.

        Any of the methods above can call it, for any robot.

        Parameters
        ----------
        robot : int
            Number of the robot in the task.
        sector : int
            Number of the sector on the path of that robot. A permission cannot be taken
            back.
        """
        self._send((robot, sector))

    def policy(self) -> Policy:
        """Return the parameters of the compiled version; called after `on_start`."""
        return Policy()


def take_answers(answers: list[tuple[int, int]], robots: int) -> list[tuple[int, int]]:
    """Take the grants that a supervisor has made since the last call.

    Parameters
    ----------
    answers : list of (int, int)
        Robots and sectors of the grants; it is emptied.
    robots : int
        Number of robots of the task.

    Returns
    -------
    list of (int, int)
        Robots and sectors in the order of the grants.

    Raises
    ------
    WorldError
        A grant names an unknown robot.
    """
    # Clear the list first: a grant that is rejected below must not be returned by the
    # next call.
    taken = answers.copy()
    answers.clear()
    for robot, _ in taken:
        if not 0 <= robot < robots:
            raise WorldError(
                f"grant: expected a robot from 0 to {robots - 1}, "
                f"found {robot} from the supervisor"
            )

    return taken


__all__ = ["Policy", "Supervisor", "SupervisorError", "take_answers"]
