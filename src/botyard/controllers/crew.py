"""Who drives which robot: programs are employed for robots and act before every step while no client commands them."""

from __future__ import annotations

from botyard.controllers.base import Yielding
from botyard.controllers.registry import make_controller
from botyard.model.world import Program
from botyard.sim import simulation
from botyard.sim.simulation import Robot


@simulation.employ.implementation
def employ(robot: Robot, program: Program) -> None:
    """Let a program drive a robot from the next step on, until the robot is removed or another program is employed for it.

    Raises
    ------
    CommandLineError, WorldError
        There is no such controller, or it cannot use its options.
    """
    sim = robot.simulation
    sim.drive(robot.name, Yielding(robot, make_controller(robot, program, sim.seed)).act, program)
