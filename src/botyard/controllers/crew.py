"""`employ`: assigns controllers to robots; they act before every step while no client
commands the robot.
"""

from __future__ import annotations

from botyard.controllers.base import failed
from botyard.controllers.registry import checked_factory, make
from botyard.errors import BotyardError
from botyard.model.world import Program
from botyard.sim import simulation
from botyard.sim.simulation import Robot


@simulation.employ.implementation
def employ(robot: Robot, program: Program, *, anew: bool = False) -> None:
    """Assign a controller to a robot, from the next step until the robot is removed or
    gets another controller.

    The controller so far rests before the new one is made, which may subscribe to
    sensors by the same name. If that fails, the one so far goes on.

    Parameters
    ----------
    anew : bool
        An episode has begun: what goes wrong is logged, and ends the controller until
        the next episode.

    Raises
    ------
    CommandLineError, WorldError
        The controller is unknown, or its options are invalid.
    """
    try:
        _employ(robot, program)
    except BotyardError as error:
        if not anew:
            raise
        failed(robot, error.__cause__ or error, "cannot begin anew")


def _employ(robot: Robot, program: Program) -> None:
    sim = robot.simulation
    factory = checked_factory(robot, program)
    sim.rest_program(robot.name)
    sim.drive(robot.name, make(robot, program, factory, sim.seed).act, program)
