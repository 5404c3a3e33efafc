"""Functions called before every step: controllers of robots, and other functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from botyard.api.extensions import extension
from botyard.model.world import Program
from botyard.sim.trips import Trip

Act = Callable[[], None]
Controlling = str | Callable[..., Any] | Program
"""Values that select a controller; see `Robot.set_controller`."""


class Programs:
    """Functions called before every step, in the order of `acts`.

    Attributes
    ----------
    acts : list of callables
        All functions.
    all : mapping of str to (Program, callable)
        Programs with their functions by name of the driven robot, in order of calls;
        includes crashed programs.
    """

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.all: dict[str, tuple[Program, Act]] = {}
        self._crashed: set[str] = set()
        self._taken_off: list[Act] = []
        """Functions removed since the start of the present step."""

    @property
    def driving(self) -> dict[str, tuple[Program, Act]]:
        """Programs that drive robots, with their functions, by name of the robot."""
        # The usual case needs no copy of the mapping.
        if not self._crashed:
            return self.all
        return {
            robot: one for robot, one in self.all.items() if robot not in self._crashed
        }

    @property
    def crashed(self) -> dict[str, Program]:
        """Crashed programs that wait for the next episode, by name of the robot."""
        return {
            robot: program
            for robot, (program, _) in self.all.items()
            if robot in self._crashed
        }

    @property
    def by_robot(self) -> Mapping[str, Program]:
        """Programs that drive robots while no client does, by name of the robot."""
        return {robot: program for robot, (program, _) in self.driving.items()}

    def call(self) -> None:
        """Call all functions.

        A function added during the calls runs from the next step on. A function removed
        during the calls, for example with its robot, does not run any more.
        """
        self._taken_off.clear()
        # Loop over a copy, because a program may add or remove functions during the
        # calls.
        for act in tuple(self.acts):
            # The first test is fast, and nearly always enough.
            if not self._taken_off or act not in self._taken_off:
                act()

    def add(self, act: Act) -> None:
        """Call a function before every step."""
        self.acts.append(act)

    def take_off(self, act: Act) -> None:
        """Stop calling a function. The call does nothing for another function."""
        if act in self.acts:
            self.acts.remove(act)
            self._taken_off.append(act)

    def assign(self, robot: str, program: Program, act: Act) -> None:
        """Let a program drive a robot in place of its present program.

        Parameters
        ----------
        robot : str
            Name of the robot.
        program : Program
            Name and options of the program, for saved states and scenarios.
        act : callable
            Function to call before every step, without arguments.
        """
        self.end(robot)
        self.all[robot] = program, act
        self.add(act)

    def rest(self, robot: str) -> None:
        """End the sensor subscriptions of a robot's program; its next call may subscribe again.

        The call does nothing for a robot without a program.
        """
        _, act = self.all.get(robot, (None, None))
        # Functions of the user have no such method.
        rest = getattr(getattr(act, "__self__", None), "rest", None)
        if rest is not None:
            rest()

    def trip(self, robot: str) -> Trip | None:
        """Return the trip that a robot's program makes; None without a trip."""
        _, act = self.driving.get(robot, (None, None))
        # Functions of the user have no such attribute.
        trip: Trip | None = getattr(getattr(act, "__self__", None), "trip", None)
        return trip

    def end(self, robot: str) -> None:
        """End a robot's program and its sensor subscriptions, if it has a program."""
        self.rest(robot)
        self.drop(robot)

    def drop(self, robot: str) -> None:
        """End the program of a removed robot, whose sensors are already gone."""
        _, act = self.all.pop(robot, (None, None))
        self._crashed.discard(robot)
        if act is not None:
            self.take_off(act)

    def crash(self, robot: str) -> None:
        """Record that a robot's program has raised an exception.

        The program is not called until `again` restarts it.
        """
        if robot in self.all:
            self.take_off(self.all[robot][1])
            self._crashed.add(robot)
            self.rest(robot)

    def remember_crashed(self, robot: str, program: Program) -> None:
        """Give a robot a crashed program in place of its present program."""
        if self.crashed.get(robot) != program:
            self.end(robot)
            self.all[robot] = program, _nothing
            self._crashed.add(robot)

    def again(self) -> Iterator[tuple[str, Program]]:
        """Yield robots and their programs, crashed ones included, to restart them.

        The caller restarts each with `assign`. A program that the caller does not
        restart keeps its place. Robots that the caller has removed are left out.
        """
        for robot in tuple(self.all):
            if robot in self.all:
                # Moving the entry to the end keeps the order of iteration also for
                # programs that are not restarted.
                self.all[robot] = self.all.pop(robot)
                yield robot, self.all[robot][0]

    def arrange(self, robots: Sequence[str]) -> None:
        """Call the programs of all robots in this order, after the user's functions.

        Parameters
        ----------
        robots : sequence of str
            Names of exactly the robots that have a program, crashed ones included.
        """
        self.all = {robot: self.all[robot] for robot in robots}
        # A list, because callables need not be hashable.
        mine = [act for _, act in self.all.values()]
        acts = [act for _, act in self.driving.values()]
        self.acts = [act for act in self.acts if act not in mine] + acts

    @property
    def others(self) -> list[Act]:
        """Functions of the user, which are not programs of robots."""
        return [
            act
            for act in self.acts
            if not any(act == mine for _, mine in self.all.values())
        ]


def _nothing() -> None:
    """Do nothing: function of a program that has crashed in another simulation."""


@extension("is_controller")
def is_controller(name: str, allow_code: bool = False) -> bool:
    """Return whether a controller of that name exists.

    Parameters
    ----------
    name : str
        Name of a controller, ``module:name`` or ``file.py:name``.
    allow_code : bool
        Whether code that the name refers to is imported and counts. False: such a name
        counts only if the user has registered it.
    """
    raise NotImplementedError


@extension("program_of")
def program_of(controller: object, options: dict[str, Any]) -> Program:
    """Return the program for a name, a class, a function or a `Program`.

    Parameters
    ----------
    controller : str, class, function or Program
        Controller as `Robot.set_controller` takes it.
    options : dict
        Options of the controller by name.

    Raises
    ------
    ArgumentError
        The controller is of another type.
    """
    raise NotImplementedError


@extension("employ")
def employ(
    robot: Any, program: Program, *, anew: bool = False, state: object = None
) -> None:
    """Let a program drive a robot from the next step on.

    Parameters
    ----------
    robot : Robot
        Robot to drive.
    program : Program
        Controller with its options.
    anew : bool
        Whether an episode has just started, and the program with it. Errors then count
        as a crash of the controller, which is logged, and do not reach the caller.
    state : object
        State of the program as from its `get_state`; None: the program starts without one.

    Raises
    ------
    CommandLineError
        No controller has that name.
    WorldError
        An option is unknown, missing, or has an invalid value.
    """
    raise NotImplementedError


__all__ = [
    "Act",
    "Controlling",
    "Programs",
    "employ",
    "is_controller",
    "program_of",
]
