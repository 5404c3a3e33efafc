"""Robots that controllers drive while no client does."""

from __future__ import annotations

from typing import Any

from botyard.sim.programs import Controlling, employ, program_of
from botyard.sim.robot import BaseRobot
from botyard.sim.trips import Trip


class ControlledRobot(BaseRobot):
    """Robot with a controller, see `botyard.sim.simulation.Robot`."""

    def set_controller(self, controller: Controlling | None, **options: Any) -> None:
        """Let a controller drive the robot from the next step on.

        Clients have priority.

        Parameters
        ----------
        controller : str, class, function or None
            Name of a controller (``go_to``, ``wander``, ``walk``, ``follow``,
            ``waypoints``, ``orca``, ``socialforce``, ``dwa``, ``vfh``, ``purepursuit``,
            or of an installed package);
            ``module:name`` or ``file.py:name``; a class, made with ``(robot, seed, **options)``
            or ``(robot, **options)``, whose ``act()`` is called before every step; a function,
            called with ``(robot, **options)`` before every step. None: remove the controller,
            and stop the robot.
        **options
            Options of the controller.

        Raises
        ------
        ArgumentError
            The controller is of another type.
        CommandLineError
            No controller has that name.
        WorldError
            An option is unknown, missing, or has an invalid value.
        """
        programs = self._core.programs
        if controller is None:
            # Without a program the robot may follow the user's own commands: do not
            # stop it.
            has_driven = self.name in programs.driving
            programs.end(self.name)
            if has_driven and not self.clients:
                self.command.stop()
        else:
            employ(self, program_of(controller, options))
            self.take_over()

    def go_to(
        self, x: float, y: float, theta: float | None = None, **options: Any
    ) -> None:
        """Drive to a goal on a shortest path between the walls, from the next step on.

        The robot avoids other bodies on its way, and plans again if it is blocked. This
        is the controller ``go_to`` (`set_controller`), which also takes several goals
        and patrols. A client that connects drives the robot instead. `trip` reports the
        state.

        Parameters
        ----------
        x, y : float
            Goal, m.
        theta : float, optional
            Heading at the goal, rad. The default is any heading.
        **options
            ``speed``, ``safety``, ``reached`` and others, see
            `botyard.controllers.goto.GoTo`.

        Raises
        ------
        ArgumentError
            A number or an option is not valid.
        WorldError
            The robot does not drive, or there is no such option.
        """
        goal = [x, y] if theta is None else [x, y, theta]
        self.set_controller("go_to", points=[goal], **options)

    @property
    def trip(self) -> Trip | None:
        """Trip of the robot to goals, see `go_to`; None if it makes none."""
        return self._core.programs.trip(self.name)


__all__ = ["ControlledRobot"]
