"""Masses of bodies, and the forces and velocities that move bodies with mass.

`Simulation.masses` is a `Masses`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.engine import demand
from botyard.engine.layout import Control
from botyard.model.dynamics import DynamicsSpec
from botyard.sim.core import Core
from botyard.sim.journal import SetDynamics

if TYPE_CHECKING:
    from botyard.api.arguments import PoseLike


class Masses:
    """Masses of robots and boxes, by name of the body.

    ==============================  ================================================
    `dynamics`, `set_dynamics`      mass, friction and damping of a body
    `push`, `pull_to`, `throw`      move a body with mass until the next command
    `wrench`                        force and torque on it in the last step
    ==============================  ================================================

    Parameters
    ----------
    core : Core
        Simulated world.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def dynamics(self, name: str) -> DynamicsSpec | None:
        """Return mass, friction and damping of a robot or box; None for a body without a mass.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        """
        core = self._core
        core.check_there(name)
        return core.engine.specs[core.engine.rows[name]].dynamics

    def set_dynamics(self, name: str, spec: DynamicsSpec | None) -> None:
        """Give a robot or a box of the map a mass between two steps.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        spec : DynamicsSpec or None
            Mass, friction and damping. With None the body loses its mass and is
            kinematic again.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            `spec` is not a DynamicsSpec.
        ModelError
            The outline of the body has no area.
        """
        core = self._core
        core.check_thread()
        core.check_there(name)
        if spec is not None:
            arguments.instance(spec, "spec", DynamicsSpec)
        core.engine.set_dynamics(name, spec)
        if name in core.robots:
            robot = core.robots[name]
            # Robots are read-only for users, so that the change needs the setter of
            # `object`.
            object.__setattr__(robot, "spec", replace(robot.spec, dynamics=spec))

        # Boxes are part of the scene, which the engine has replaced.
        core.scene = core.engine.scene
        core.feed.record_change(Subject.MASS)
        core.note(None, SetDynamics, name, spec)

    def push(
        self,
        name: str,
        fx: float,
        fy: float = 0.0,
        torque: float = 0.0,
        source: str = "api",
    ) -> None:
        """Apply a force and a torque to a body with mass.

        They act from the next step on, and last until the next command. A body without
        mass ignores them.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        fx, fy : float
            Force at the centre of mass in world axes, N.
        torque : float
            Torque, N·m, positive counterclockwise.
        source : str
            Source of the command, in the order of commands and in the journal.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            A value is not a finite number.
        """
        core = self._core
        core.check_there(name)
        force = arguments.triple((fx, fy, torque), "fx", "fy", "torque")
        core.accept_command(name, demand.Demand(Control.FORCE, force), source)

    def pull_to(self, name: str, pose: PoseLike, source: str = "api") -> None:
        """Let the PD controller of a body with mass move it to a pose.

        The pose is the goal from the next step on, until the next command. A body without mass
        ignores it.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        pose : Pose or tuple
            Pose in the frame of the world: x, y in m, heading in rad.
        source : str
            Source of the command, in the order of commands and in the journal.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            The pose is not three finite numbers.
        """
        core = self._core
        core.check_there(name)
        core.accept_command(
            name, demand.Demand(Control.POSE, arguments.pose(pose)), source
        )

    def throw(
        self, name: str, vx: float, vy: float = 0.0, w: float = 0.0, source: str = "api"
    ) -> None:
        """Keep a body with mass at a velocity.

        It has the velocity from the next step on, until the next command. A body without mass
        ignores it.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        vx, vy : float
            Velocity in world axes, m/s.
        w : float
            Turn rate, rad/s, positive counterclockwise.
        source : str
            Source of the command, in the order of commands and in the journal.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            A value is not a finite number.
        """
        core = self._core
        core.check_there(name)
        twist = arguments.triple((vx, vy, w), "vx", "vy", "w")
        core.accept_command(name, demand.Demand(Control.TWIST, twist), source)

    def wrench(self, name: str) -> tuple[float, float, float]:
        """Return the net force and torque on a body with mass in the last step.

        Returns
        -------
        fx, fy : float
            Force in world axes, N; 0 for a body without mass.
        torque : float
            Torque, N·m, positive counterclockwise; 0 for a body without mass.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        """
        self._core.check_there(name)
        dynamics = self._core.engine.dynamics
        return (
            (0.0, 0.0, 0.0)
            if dynamics is None
            else dynamics.wrench(self._core.engine.rows[name])
        )


__all__ = ["Masses"]
