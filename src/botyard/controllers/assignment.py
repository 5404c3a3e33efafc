"""`employ` assigns controllers to robots.

A controller acts before every step while no client commands its robot.
"""

from __future__ import annotations

from botyard.controllers.base import CRASHES, failed
from botyard.errors import BotyardError
from botyard.model.drivechecks import check_drives
from botyard.model.world import Program
from botyard.sim import programs
from botyard.sim.simulation import Robot
from botyard.sim.statehead import Saveable


@programs.employ.implementation
def employ(
    robot: Robot, program: Program, *, anew: bool = False, state: object = None
) -> None:
    """Assign a controller to a robot from the next step on.

    The controller drives until the robot is removed or gets another controller. The
    method `rest` of the old controller is called before the new controller is made,
    because both may subscribe to sensors by the same name. If the new controller cannot
    be made, the old one continues.

    Parameters
    ----------
    robot : Robot
        The robot.
    program : Program
        Name and options of the controller.
    anew : bool
        Whether the robot's program is assigned again, because an episode has started.
        An error is then logged instead of raised, and the robot has no controller until
        the next episode.
    state : object
        State of the controller as from its `get_state`; None: it starts without one. An
        error of the controller is treated as `anew` says.

    Raises
    ------
    CommandLineError, WorldError
        The controller is unknown, or its options are not valid.
    """
    try:
        _employ(robot, program)
    except BotyardError as error:
        if not anew:
            raise
        failed(robot, error.__cause__ or error, "cannot start again")
        return
    owner = getattr(robot.simulation.core.programs.all[robot.name][1], "__self__", None)
    if state is None or not isinstance(owner, Saveable):
        return
    try:
        owner.set_state(state)
    except CRASHES as error:
        if not anew:
            raise
        failed(robot, error, "cannot continue")


def _employ(robot: Robot, program: Program) -> None:
    sim = robot.simulation
    # Import the registry here: all controllers take long to import, and many runs have
    # none.
    from botyard.controllers.registry import checked_factory, make

    # A robot that does not drive may have a program, for instance one that places it as
    # a box. A trailer may not: it follows the robot that pulls it.
    if robot.spec.is_trailer:
        check_drives(robot.name, robot.spec.kinematics)
    factory = checked_factory(robot, program)
    # Stop the old controller after the checks, so that an unknown controller or option
    # changes nothing.
    sim.core.programs.rest(robot.name)
    sim.core.assign_program(
        robot.name, make(robot, program, factory, sim.seed).act, program
    )
