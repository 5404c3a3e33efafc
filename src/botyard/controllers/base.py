"""Programs that drive a robot from within the simulator, through the public API alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from botyard.sim.simulation import Robot


class Controller(Protocol):
    """Something that is asked before every step what its robot should do.

    With ``get_state() -> value`` and ``set_state(value)`` the worlds that it is in can be saved and cloned
    (`botyard.Simulation.save_state`); a value is made of numbers, texts, lists and mappings of them.
    """

    def act(self) -> None:
        """Read the robot's sensors and command it."""
        ...

    def rest(self) -> None:
        """Somebody else drives the robot until `act` is called again: read no sensors meanwhile."""
        ...


ControllerFactory = Callable[..., Controller]
"""Makes a controller of a robot and the seed of the simulation; its options are keyword-only parameters.

The same seed must give the same behaviour.
"""


class Yielding:
    """Lets a controller drive only while no client commands the robot, and hands over cleanly.

    Parameters
    ----------
    robot : Robot
        The robot.
    controller : Controller
        What drives it.
    """

    def __init__(self, robot: Robot, controller: Controller) -> None:
        self._robot = robot
        self._controller = controller
        self._drives = False

    def act(self) -> None:
        """Let the controller act, unless somebody else is there."""
        if self._robot.clients:
            if self._drives:
                self._robot.command.stop()
                self._controller.rest()
            self._drives = False
            return
        self._drives = True
        if not self._robot.motors_on:
            self._robot.command.enable()  # a client that left has switched them off
        self._controller.act()

    def rest(self) -> None:
        """It drives the robot no longer."""
        if self._drives:
            self._controller.rest()
        self._drives = False

    def get_state(self) -> Any:
        """Whether it drives, and what the controller says of itself; None: it says nothing."""
        get = getattr(self._controller, "get_state", None)
        return None if get is None or not hasattr(self._controller, "set_state") else [self._drives, get()]

    def set_state(self, state: Any) -> None:
        """Go on from a state. Raises TypeError or ValueError, or what the controller raises, if it is none."""
        drives, own = state
        self._controller.set_state(own)  # type: ignore[attr-defined]
        self._drives = bool(drives)


def random_state(draw: random.Random) -> list[Any]:
    """The state of a generator as a value."""
    version, words, spare = draw.getstate()
    return [version, list(words), spare]


def set_random_state(draw: random.Random, state: Any) -> None:
    """Let a generator go on from `random_state`. Raises TypeError or ValueError if it is none."""
    version, words, spare = state
    draw.setstate((version, tuple(words), spare))


def finite(value: Any) -> float:
    """A number of a state. Raises TypeError or ValueError if it is none."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, found {number}")
    return number


def point(value: Any) -> tuple[float, float] | None:
    """A place of a state, m, or None. Raises TypeError or ValueError if it is neither."""
    if value is None:
        return None
    x, y = value if isinstance(value, Sequence) else ()
    return finite(x), finite(y)
