"""What is called before every step: programs that drive robots, and other functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from botyard.model.world import Program

Act = Callable[[], None]


class Programs:
    """Functions that are called before every step, in the order of `acts`.

    Attributes
    ----------
    acts : list of callables
        All of them.
    driving : mapping of str to (Program, callable)
        Those that are programs, by the names of the robots that they drive.
    """

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.driving: dict[str, tuple[Program, Act]] = {}
        self._taken_off: list[Act] = []
        """Since the present step began."""

    def call(self) -> None:
        """Call all. One that is added meanwhile counts from the next step on; one that is taken off, as its robot is, is not called."""
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
        self.driving[robot] = program, act
        self.add(act)

    def end(self, robot: str) -> None:
        """End the program that drives a robot, if there is one, and its subscriptions of the robot's sensors."""
        rest = getattr(getattr(self.drop(robot), "__self__", None), "rest", None)
        if rest is not None:
            rest()

    def drop(self, robot: str) -> Act | None:
        """End the program that drives a robot which has been removed; its sensors have gone, too. Returns its function."""
        _, act = self.driving.pop(robot, (None, None))
        if act is not None:
            self.take_off(act)
        return act

    def arrange(self, robots: Sequence[str]) -> None:
        """Call the programs of all driven robots in this order, after the functions that are no programs."""
        self.driving = {robot: self.driving[robot] for robot in robots}
        acts = [act for _, act in self.driving.values()]
        self.acts = [act for act in self.acts if act not in acts] + acts

    @property
    def others(self) -> list[Act]:
        """The functions that are no programs."""
        return [act for act in self.acts if not any(act == mine for _, mine in self.driving.values())]


__all__ = ["Act", "Programs"]
