"""Programs that drive a robot from within the simulator, through the public API alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from botyard.simulation import Robot


class Controller(Protocol):
    """Something that is asked before every step what its robot should do."""

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
