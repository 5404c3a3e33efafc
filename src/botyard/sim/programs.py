"""What is called before every step: programs that drive robots, and other functions of
the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from botyard.model.world import Program

Act = Callable[[], None]
Controlling = str | Callable[..., Any] | Program
"""What can drive a robot from within, see `Robot.set_controller`."""


class Programs:
    """Functions that are called before every step, in the order of `acts`.

    Attributes
    ----------
    acts : list of callables
        All of them.
    all : mapping of str to (Program, callable)
        Programs and what is called, by the names of the robots that they drive, in
        order; also those that have crashed.
    """

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.all: dict[str, tuple[Program, Act]] = {}
        self._crashed: set[str] = set()
        self._taken_off: list[Act] = []
        """Since the present step began."""

    @property
    def driving(self) -> dict[str, tuple[Program, Act]]:
        """Programs that drive robots, and what is called, by the names of the robots."""
        if not self._crashed:
            return self.all
        return {
            robot: one for robot, one in self.all.items() if robot not in self._crashed
        }

    @property
    def crashed(self) -> dict[str, Program]:
        """Programs that have crashed, and wait for the next episode, by the names of
        the robots.
        """
        return {
            robot: program
            for robot, (program, _) in self.all.items()
            if robot in self._crashed
        }

    def call(self) -> None:
        """Call all. One that is added meanwhile counts from the next step on; one that
        is taken off, as its robot is, is not called.
        """
        self._taken_off.clear()
        for act in tuple(self.acts):
            if not self._taken_off or act not in self._taken_off:
                act()

    def add(self, act: Act) -> None:
        """Call a function before every step."""
        self.acts.append(act)

    def take_off(self, act: Act) -> None:
        """Stop calling a function; nothing happens if it was not called."""
        if act in self.acts:
            self.acts.remove(act)
            self._taken_off.append(act)

    def drive(self, robot: str, program: Program, act: Act) -> None:
        """Let a program drive a robot, instead of its program so far."""
        self.end(robot)
        self.all[robot] = program, act
        self.add(act)

    def rest(self, robot: str) -> None:
        """Let the program that drives a robot, if there is one, end its subscriptions
        of the robot's sensors until it is called again.
        """
        _, act = self.all.get(robot, (None, None))
        rest = getattr(getattr(act, "__self__", None), "rest", None)
        if rest is not None:
            rest()

    def end(self, robot: str) -> None:
        """End the program that drives a robot, if there is one, and its subscriptions
        of the robot's sensors.
        """
        self.rest(robot)
        self.drop(robot)

    def drop(self, robot: str) -> None:
        """End the program that drives a robot which has been removed; its sensors have
        gone, too.
        """
        _, act = self.all.pop(robot, (None, None))
        self._crashed.discard(robot)
        if act is not None:
            self.take_off(act)

    def crash(self, robot: str) -> None:
        """The program that drives a robot, if there is one, has raised: it is not
        called until `again` begins it anew.
        """
        if robot in self.all:
            self.take_off(self.all[robot][1])
            self._crashed.add(robot)
            self.rest(robot)

    def remember_crashed(self, robot: str, program: Program) -> None:
        """A robot has a program that has crashed, instead of its program so far."""
        if self.crashed.get(robot) != program:
            self.end(robot)
            self.all[robot] = program, _nothing
            self._crashed.add(robot)

    def again(self) -> Iterator[tuple[str, Program]]:
        """Robots and their programs, also those that have crashed, in their order:
        whoever iterates begins each of them anew, by `drive`.

        One that was not begun anew keeps its place. Robots that are removed meanwhile
        are left out.
        """
        for robot in tuple(self.all):
            if robot in self.all:
                self.all[robot] = self.all.pop(robot)
                yield robot, self.all[robot][0]

    def arrange(self, robots: Sequence[str]) -> None:
        """Call the programs of all robots in this order, after the functions that are
        no programs.
        """
        self.all = {robot: self.all[robot] for robot in robots}
        mine = [act for _, act in self.all.values()]
        acts = [act for _, act in self.driving.values()]
        self.acts = [act for act in self.acts if act not in mine] + acts

    @property
    def others(self) -> list[Act]:
        """The functions that are no programs."""
        return [
            act
            for act in self.acts
            if not any(act == mine for _, mine in self.all.values())
        ]


def _nothing() -> None:
    """Stands for a program that has crashed in another simulation."""


__all__ = ["Act", "Programs"]
