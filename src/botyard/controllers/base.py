"""Controllers: programs that drive a robot from within the simulator, through the
public API alone.
"""

from __future__ import annotations

import ctypes
import logging
import math
import random
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, Protocol

from botyard.api import arguments
from botyard.engine.kernels.latency import is_cycle
from botyard.names import shown
from botyard.processes.codeload import said_of
from botyard.sim.simulation import Robot

log = logging.getLogger("botyard.controllers")


class Unreturned(BaseException):
    """Raised in a controller that does not return when the simulator is to end. No
    `Exception`, so that few catch it.
    """

    def __init__(self) -> None:
        super().__init__("it did not return when the simulator was to end")


CRASHES: Final = (Exception, SystemExit, Unreturned)
"""What ends a controller and nothing else: a user's program that exits ends itself, not
the simulator.
"""
MAX_RATE_HZ: Final = 1e6
"""Highest `act_rate`."""


class Controller(Protocol):
    """Drives one robot; called before every step. Its `rest` may be missing.

    An exception that `act` raises, also that of ``sys.exit``, is logged; the robot
    stops, and its controller is not called any more until `Simulation.reset` begins it
    anew. Nobody else notices.

    An attribute `act_rate`, Hz, of a controller or its class makes its cycles longer
    than steps: `act` is called on the first step at or after k / `act_rate` seconds of
    simulated time, k = 0, 1, …; 0, or none: before every step.

    A world can be saved and cloned (`botyard.Simulation.save_state`) if its controllers
    also offer ``get_state() -> value`` and ``set_state(value)``; a value is made of
    numbers, texts, lists and mappings of them.
    """

    def act(self) -> None:
        """Read the robot's sensors and command it."""
        ...

    def rest(self) -> None:
        """Another client drives the robot until `act` is called again: unsubscribe from
        its sensors.
        """
        ...


ControllerFactory = Callable[..., Controller]
"""Factory ``(robot, seed, *, options…)`` of a controller. Options are keyword-only
parameters; same seed, same behaviour.
"""


class FunctionController:
    """A function ``(robot, **options)`` that is called before every step.

    Parameters
    ----------
    function : callable
        The function.
    robot : Robot
        Its robot.
    options : dict
        Further arguments.
    """

    def __init__(
        self, function: Callable[..., object], robot: Robot, options: dict[str, Any]
    ) -> None:
        self._function, self._robot, self._options = function, robot, options
        self.act_rate = getattr(function, "act_rate", 0.0)

    def act(self) -> None:
        """Call it."""
        self._function(self._robot, **self._options)

    def rest(self) -> None:
        """Nothing: what it has subscribed to is its own affair."""


class YieldToClients:
    """Wraps a controller so that it drives only while no client commands the robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    controller : Controller
        What drives it.

    Raises
    ------
    ArgumentError
        Its `act_rate` is no number from 0 to `MAX_RATE_HZ`.
    """

    def __init__(self, robot: Robot, controller: Controller) -> None:
        self._robot = robot
        self._controller = controller
        self._drives = False
        self._is_resting = False
        """It was told to rest since it was made, or called last."""
        self._rate = arguments.number(
            getattr(controller, "act_rate", 0.0),
            "act_rate",
            low=0.0,
            high=MAX_RATE_HZ,
            unit="Hz",
        )

    def act(self) -> None:
        """Let the controller act, unless a client commands the robot."""
        if self._robot.clients:
            if self._drives:
                self._robot.command.stop()
            self.rest()
            return

        if self._rate:
            sim = self._robot.simulation
            if not is_cycle(sim.tick, self._rate, sim.dt):
                return

        self._drives, self._is_resting = True, False
        try:
            self._controller.act()
        except CRASHES as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """The controller has raised: its robot stops, and all others go on."""
        failed(self._robot, error, "ends until the next reset")

    def rest(self) -> None:
        """Stop driving the robot."""
        self._drives = False
        if not self._is_resting:
            self._is_resting = True
            self._rest()

    def _rest(self) -> None:
        rest = getattr(self._controller, "rest", None)
        if rest is None:
            return
        try:
            rest()
        except CRASHES as error:
            log.exception(
                "the controller of robot %s cannot rest: %s",
                shown(self._robot.name),
                said_of(error),
            )

    def get_state(self) -> Any:
        """Return whether it drives, and the controller's state; None if the controller
        has no state.
        """
        get = getattr(self._controller, "get_state", None)
        return (
            None
            if get is None or not hasattr(self._controller, "set_state")
            else [self._drives, get()]
        )

    def set_state(self, state: Any) -> None:
        """Restore a state. Raises TypeError or ValueError, or what the controller
        raises, if it is invalid.
        """
        drives, own = state
        self._controller.set_state(own)  # type: ignore[attr-defined]
        self._drives = bool(drives)


def failed(robot: Robot, error: BaseException, how: str) -> None:
    """A controller has raised: log that, end it until the next reset, and stop its
    robot, if it was not removed.
    """
    said = said_of(error, foreign=True)
    log.error(
        "the controller of robot %s %s, and the robot stops: %s",
        shown(robot.name),
        how,
        said,
        exc_info=error,
    )
    if not robot._is_removed:  # by the controller itself
        robot.simulation.crash_program(robot.name)
        robot.command.stop()


class Call(NamedTuple):
    """A call of a user's controller that goes on.

    Attributes
    ----------
    frame : FrameType
        That of the caller: the same one as long as the call is the same.
    robot : str
        Name of the robot.
    """

    frame: FrameType
    robot: str

    @property
    def what(self) -> str:
        """What is called, in words."""
        return f"the controller of robot {shown(self.robot)}"

    @property
    def error(self) -> BaseException:
        """What ends the controller, and it alone, when it is raised in the call."""
        return Unreturned()


_CALLERS: Final[dict[CodeType, Callable[[FrameType], str]]] = {
    YieldToClients.act.__code__: lambda frame: frame.f_locals["self"]._robot.name,
    YieldToClients._rest.__code__: lambda frame: frame.f_locals["self"]._robot.name,
}
"""Functions that call users' controllers and treat `Unreturned` as a crash, with how to
know the robot.
"""


def called_by(function: Callable[..., Any], robot: Callable[[FrameType], str]) -> None:
    """Another function calls users' controllers; `robot` finds the name of the robot in
    its frame.
    """
    _CALLERS[function.__code__] = robot


def call_in(frame: FrameType | None) -> Call | None:
    """The call of a controller in which a thread is, by its present frame; None: it is
    in none.
    """
    while frame is not None:
        robot = _CALLERS.get(frame.f_code)
        if robot is not None:
            return Call(frame, robot(frame))
        frame = frame.f_back

    return None


def end_call(thread: int, call: Call) -> None:
    """Raise `Unreturned` in a thread, by its identity, if it is still in this call; not
    while that is in C code.
    """
    now = call_in(sys._current_frames().get(thread))
    if now is not None and now.frame is call.frame:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(Unreturned)
        )


def random_state(draw: random.Random) -> list[Any]:
    """Return the state of a random generator as a value."""
    version, words, spare = draw.getstate()
    return [version, list(words), spare]


def set_random_state(draw: random.Random, state: Any) -> None:
    """Restore a random generator from `random_state`. Raises TypeError or ValueError if
    the state is invalid.
    """
    version, words, spare = state
    draw.setstate((version, tuple(words), spare))


def finite(value: Any) -> float:
    """Convert a value of a state to a finite number. Raises TypeError or ValueError if
    it is none.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, found {number}")
    return number


def point(value: Any) -> tuple[float, float] | None:
    """Convert a value of a state to a point (x, y), m, or None. Raises TypeError or
    ValueError if it is neither.
    """
    if value is None:
        return None
    x, y = value if isinstance(value, Sequence) else ()
    return finite(x), finite(y)
