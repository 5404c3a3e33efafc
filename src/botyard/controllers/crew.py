"""`employ`: assigns controllers to robots; they act before every step while no client commands the robot."""

from __future__ import annotations

from botyard.controllers.base import YieldToClients
from botyard.controllers.registry import make_controller
from botyard.model.world import Program
from botyard.sim import simulation
from botyard.sim.simulation import Robot


@simulation.employ.implementation
def employ(robot: Robot, program: Program) -> None:
    """Assign a controller to a robot, from the next step until the robot is removed or gets another controller.

    Raises
    ------
    CommandLineError, WorldError
        The controller is unknown, or its options are invalid.
    """
    sim = robot.simulation
    sim.drive(robot.name, YieldToClients(robot, make_controller(robot, program, sim.seed)).act, program)
