"""Controllers: programs that drive a robot from within the simulator.

Controllers use the public API alone.
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
from botyard.engine.kernels.delayrings import is_cycle
from botyard.names import shown
from botyard.processes.codeload import said_of
from botyard.sim.simulation import Robot
from botyard.sim.trips import Trip

log = logging.getLogger("botyard.controllers")


class Unreturned(BaseException):
    """Exception that is raised in a controller that does not return when the simulator must end.

    The class is not an `Exception`, so that few handlers catch it.
    """

    def __init__(self) -> None:
        super().__init__("it did not return when the simulator had to end")


CRASHES: Final = (Exception, SystemExit, Unreturned)
"""Types of exceptions that end a controller but not the simulator.

`SystemExit` is one of them: a controller that calls ``sys.exit`` ends only itself.
"""
MAX_RATE_HZ: Final = 1e6
"""Highest `act_rate`, Hz."""


class Controller(Protocol):
    """Interface of an object that drives one robot and is called before every step.

    The method `rest` is optional.

    If `act` raises an exception, also by ``sys.exit``, the exception is logged, and the robot
    stops. The controller is not called again; `Simulation.reset` makes a new controller. Other
    controllers are not affected.

    An attribute `act_rate`, Hz, of a controller or its class sets a slower cycle: `act`
    is called on the first step at or after k / `act_rate` seconds of simulated time, k
    = 0, 1, …. With 0, or without the attribute, `act` is called before every step.

    A world can be saved and cloned (`botyard.Simulation.save_state`) if its controllers
    also have ``get_state() -> value`` and ``set_state(value)``. A value consists of
    numbers, texts, lists and mappings.
    """

    def act(self) -> None:
        """Read the robot's sensors and command the robot."""
        ...

    def rest(self) -> None:
        """Unsubscribe from the robot's sensors, because a client drives it now."""
        ...


ControllerFactory = Callable[..., Controller]
"""Factory ``(robot, seed, *, options…)`` of a controller.

Options are keyword-only parameters. The same seed gives the same behaviour.
"""


class FunctionController:
    """Controller that calls a function ``(robot, **options)`` before every step.

    Parameters
    ----------
    function : callable
        The function. It may have an attribute `act_rate`, see `Controller`.
    robot : Robot
        The robot that it drives.
    options : dict
        Further arguments of the function, by name.
    """

    def __init__(
        self, function: Callable[..., object], robot: Robot, options: dict[str, Any]
    ) -> None:
        self._function, self._robot, self._options = function, robot, options
        self.act_rate = getattr(function, "act_rate", 0.0)

    def act(self) -> None:
        """Call the user's function."""
        self._function(self._robot, **self._options)

    def rest(self) -> None:
        """Do nothing: the function manages its own subscriptions."""


class YieldToClients:
    """Wrapper that lets a controller drive only while no client commands the robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    controller : Controller
        The controller that drives it.

    Raises
    ------
    ArgumentError
        The controller's `act_rate` is not a number from 0 to `MAX_RATE_HZ`.
    """

    def __init__(self, robot: Robot, controller: Controller) -> None:
        self._robot = robot
        self._controller = controller
        self._drives = False
        self._is_resting = False
        """Whether the controller's `rest` has run since the controller last acted."""
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
                # Stop once, when a client takes over: later commands are the client's.
                self._robot.command.stop()
            self.rest()
            return

        # Cycles count simulated time, so that they fall on the same steps at any speed.
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
        """Stop the robot of a controller that raised an exception."""
        failed(self._robot, error, "ends until the next reset")

    def rest(self) -> None:
        """Stop driving the robot, and call the controller's `rest` once."""
        self._drives = False
        if not self._is_resting:
            # Set the flag first: a controller that raises an exception must not be
            # called again.
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

    @property
    def trip(self) -> Trip | None:
        """State of the controller's trip to goals; None for a controller without trips."""
        trip = getattr(self._controller, "trip", None)
        return trip if isinstance(trip, Trip) else None

    def get_state(self) -> Any:
        """Return whether the controller drives at the moment, and the controller's state.

        Returns
        -------
        [bool, value] or None
            None if the controller lacks ``get_state`` or ``set_state``, so that its
            world cannot be saved.
        """
        get = getattr(self._controller, "get_state", None)
        return (
            None
            if get is None or not hasattr(self._controller, "set_state")
            else [self._drives, get()]
        )

    def set_state(self, state: Any) -> None:
        """Restore the state of the controller.

        Parameters
        ----------
        state : [bool, value]
            The state, as from `get_state`. A state that raises an exception changes
            nothing.

        Raises
        ------
        TypeError, ValueError
            The state is not valid. The controller may raise other exceptions.
        """
        # The controller validates its state first: if it raises, nothing has changed.
        drives, own = state
        self._controller.set_state(own)  # type: ignore[attr-defined]
        self._drives = bool(drives)


def failed(robot: Robot, error: BaseException, how: str) -> None:
    """End a controller that raised an exception, until the next reset.

    The exception is logged, and the robot stops if it still exists.

    Parameters
    ----------
    robot : Robot
        The robot of the controller.
    error : BaseException
        The exception.
    how : str
        Consequence for the controller, for the message: "ends until the next reset".
    """
    said = said_of(error, foreign=True)
    log.error(
        "the controller of robot %s %s, and the robot stops: %s",
        shown(robot.name),
        how,
        said,
        exc_info=error,
    )
    # The controller itself may have removed the robot.
    if not robot._is_removed:
        robot.simulation.core.programs.crash(robot.name)
        robot.command.stop()


class Call(NamedTuple):
    """Call of a user's controller that has not returned yet.

    Attributes
    ----------
    frame : FrameType
        Frame of the calling function: it identifies the call.
    robot : str
        Name of the robot.
    """

    frame: FrameType
    robot: str

    @property
    def what(self) -> str:
        """Description of the call for messages."""
        return f"the controller of robot {shown(self.robot)}"

    @property
    def error(self) -> BaseException:
        """Exception that ends only this controller when it is raised in the call."""
        return Unreturned()


_CALLERS: Final[dict[CodeType, Callable[[FrameType], str]]] = {
    YieldToClients.act.__code__: lambda frame: frame.f_locals["self"]._robot.name,
    YieldToClients._rest.__code__: lambda frame: frame.f_locals["self"]._robot.name,
}
"""Code of the functions that call users' controllers, for `call_in`.

They treat `Unreturned` as a crash of the controller.

Each value is a function that finds the robot's name in the frame of the calling function.
"""


def called_by(function: Callable[..., Any], robot: Callable[[FrameType], str]) -> None:
    """Register another function that calls users' controllers.

    Parameters
    ----------
    function : callable
        The function; it treats `Unreturned` as a crash of the controller.
    robot : callable
        Finds the name of the robot in the function's frame.
    """
    _CALLERS[function.__code__] = robot


def call_in(frame: FrameType | None) -> Call | None:
    """Return the call of a controller that encloses a thread's current frame.

    Parameters
    ----------
    frame : FrameType or None
        Current frame of the thread; None for a thread without one.

    Returns
    -------
    Call or None
        The innermost call. None means that the thread is not in a controller.
    """
    # The user's code may be many calls deep.
    while frame is not None:
        robot = _CALLERS.get(frame.f_code)
        if robot is not None:
            return Call(frame, robot(frame))
        frame = frame.f_back

    return None


def end_call(thread: int, call: Call) -> None:
    """Raise `Unreturned` in a thread if a controller's call has not returned yet.

    While C code runs in the call, the exception is not raised before that code returns.

    Parameters
    ----------
    thread : int
        Identity of the thread.
    call : Call
        The call.
    """
    now = call_in(sys._current_frames().get(thread))
    # If the call has returned meanwhile, the exception would hit the simulator itself.
    if now is not None and now.frame is call.frame:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(Unreturned)
        )


def random_state(draw: random.Random) -> list[Any]:
    """Return the state of a random generator as a value.

    Parameters
    ----------
    draw : Random
        The generator.

    Returns
    -------
    list
        Version, list of words, and a spare Gaussian number or None; it can be written
        as JSON.
    """
    version, words, spare = draw.getstate()
    return [version, list(words), spare]


def set_random_state(draw: random.Random, state: Any) -> None:
    """Restore a random generator from `random_state`.

    Parameters
    ----------
    draw : Random
        The generator; changed.
    state : list
        The state, as from `random_state`.

    Raises
    ------
    TypeError, ValueError
        The state is not valid.
    """
    version, words, spare = state
    draw.setstate((version, tuple(words), spare))


def finite(value: Any) -> float:
    """Convert a value of a state to a finite number.

    Parameters
    ----------
    value : object
        Number, or string that `float` accepts.

    Raises
    ------
    TypeError, ValueError
        The value is not a finite number.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, found {number}")
    return number


def point(value: Any) -> tuple[float, float] | None:
    """Convert a value of a state to a point (x, y), m, or None.

    Parameters
    ----------
    value : sequence or None
        Two numbers, m; None for no point.

    Raises
    ------
    TypeError, ValueError
        The value is neither two finite numbers nor None.
    """
    if value is None:
        return None
    x, y = value if isinstance(value, Sequence) else ()
    return finite(x), finite(y)
