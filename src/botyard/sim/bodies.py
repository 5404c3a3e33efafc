"""Operations on robots and boxes alike: placing, masses, forces, carrying, joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.api.revisions import Subject
from botyard.engine import commands as cmd
from botyard.engine import demand
from botyard.engine.layout import Control
from botyard.errors import WorldError
from botyard.model.dynamics import DynamicsSpec
from botyard.sim.journal import Attach, Detach, SetDynamics
from botyard.sim.simulationcore import SimulationCore

if TYPE_CHECKING:
    from botyard.api.arguments import PoseLike


class Bodies(ReadOnly):
    """Bodies of a simulation by name: robots and boxes of the map."""

    core: SimulationCore
    """Internal API for ports, servers, recording and the page; it may change."""

    def __init__(self, core: SimulationCore) -> None:
        vars(self)["core"] = core

    def put(self, name: str, pose: PoseLike, source: str = "api") -> None:
        """Teleport a robot or a box of the map to a true pose at the next step.

        The pose may overlap other things.

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
        CommandError
            The pose is out of bounds.
        """
        core = self.core
        core.check_there(name)
        core.accept_command(name, cmd.SetPose(arguments.pose(pose)), source)

    def put_back(self, names: Sequence[str] | None = None, source: str = "api") -> None:
        """Return robots and boxes of the map to their starts at the next step.

        Time continues; `Simulation.reset` starts a new episode. A robot whose start is
        occupied is placed at the nearest free place on a 1 m grid around it.

        Parameters
        ----------
        names : sequence of str, optional
            Robots and boxes, or one name. Default: all of them.
        source : str
            Source of the commands, in the order of commands and in the journal.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has one of these names.
        """
        self.core.put_back(names, source)

    def hold(self, name: str, on: bool = True, source: str = "api") -> None:
        """Hold a robot or a box in place, for example to drag it with `put`.

        After the release it continues with its commands. A body is held as long as any
        source holds it; a source can release only its own hold.

        Parameters
        ----------
        name : str
            Robot, or box of the map.
        on : bool
            True holds the body, False releases the hold of `source`.
        source : str
            Source that holds the body.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            `on` is neither True nor False.
        """
        self.core.hold(name, on, source)

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
        core = self.core
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

    def dynamics(self, name: str) -> DynamicsSpec | None:
        """Return mass, friction and damping of a robot or box; None for a body without a mass.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        """
        core = self.core
        core.check_there(name)
        return core.engine.specs[core.engine.rows[name]].dynamics

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
        core = self.core
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
        core = self.core
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
        core = self.core
        core.check_there(name)
        twist = arguments.triple((vx, vy, w), "vx", "vy", "w")
        core.accept_command(name, demand.Demand(Control.TWIST, twist), source)

    def attach(self, carrier: str, name: str) -> None:
        """Attach a body to a carrier at its present place.

        Sensors and collisions treat it as a part of its carrier.

        Parameters
        ----------
        carrier, name : str
            Body that carries, and body that is carried. Carriers cannot be carried.

        Raises
        ------
        UnknownNameError
            A KeyError: one of the bodies does not exist.
        WorldError
            The bodies are the same, one of them is already carried, or the attached
            body carries another one.
        """
        core = self.core
        core.check_thread()
        core.check_there(carrier, name)
        engine = core.engine
        if (
            name == carrier
            or engine.carrier_of(name) is not None
            or engine.carrier_of(carrier) is not None
        ):
            raise WorldError(
                f"{carrier} cannot carry {name}: one of them is already carried, "
                "or both are the same body"
            )

        # Carriers cannot be carried, see `botyard.engine.columnchecks`.
        if carried := engine.carried_by(engine.rows[name]):
            raise WorldError(
                f"{carrier} cannot carry {name}, "
                f"which carries {engine.specs[carried[0]].name}"
            )

        core.note(None, Attach, carrier, name)
        engine.attach(carrier, name)

    def detach(self, name: str) -> None:
        """Release a carried body at its present place.

        The call does nothing if the body is not carried.
        """
        core = self.core
        core.check_thread()
        # Only a real change is noted in the journal.
        if core.engine.carrier_of(name) is not None:
            core.note(None, Detach, name)
            core.engine.detach(name)

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
        self.core.check_there(name)
        dynamics = self.core.engine.dynamics
        return (
            (0.0, 0.0, 0.0)
            if dynamics is None
            else dynamics.wrench(self.core.engine.rows[name])
        )


__all__ = ["Bodies"]
