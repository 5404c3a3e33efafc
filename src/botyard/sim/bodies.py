"""Operations on robots and boxes alike: placing, masses, forces, carrying, joints."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.devices.joints import Joint, Joints, joint_key
from botyard.devices.rays import RaySensor
from botyard.engine import commands as cmd
from botyard.engine.layout import Control
from botyard.engine.tables import NOBODY
from botyard.errors import WorldError
from botyard.model.dynamics import DynamicsSpec
from botyard.model.objects import Described
from botyard.sim.core import Core
from botyard.sim.journal import Attach, Describe, Detach, SetDynamics
from botyard.sim.placement import places_back

if TYPE_CHECKING:
    from botyard.api.arguments import PoseLike


class Bodies(Core):
    """Bodies of a simulation by name: robots and boxes of the map.

    Takes the parameters of `Core`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.described = Described()
        """Joints and sensors of description files."""
        self.rays: dict[str, RaySensor] = {}
        """Ray sensors of description files by name."""

    def put(self, name: str, pose: PoseLike, source: str = "api") -> None:
        """Teleport a robot or a box of the map to a true pose at the next step.

        The pose may overlap other things.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            The pose is not three finite numbers.
        CommandError
            The pose is out of bounds.
        """
        self._check_there(name)
        self.submit(name, cmd.SetPose(arguments.pose(pose)), source)

    def put_back(self, names: Sequence[str] | None = None, source: str = "api") -> None:
        """Return robots and boxes of the map to their starts at the next step.

        Time continues; `Simulation.reset` starts a new episode. A robot whose start is
        occupied goes to the nearest free place on a 1 m grid around it.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has one of these names.
        """
        if names is not None:
            names = [names] if isinstance(names, str) else names
            self._check_there(*names)

        boxes = {
            name: box.pose
            for name, box in zip(self.box_names, self.scene.boxes, strict=True)
        }
        starts = {name: robot.start for name, robot in self._robots.items()}
        if names is not None:
            boxes = {name: boxes[name] for name in names if name in boxes}
            starts = {name: starts[name] for name in names if name in starts}

        for name, pose in places_back(self._engine, starts, boxes).items():
            if name in boxes:
                self.put(name, pose, source)
            else:
                self._robots[name]._put_back(pose, source)

    def set_dynamics(self, name: str, spec: DynamicsSpec | None) -> None:
        """Give a robot or a box of the map a mass between two steps.

        With None the body loses its mass and is kinematic again.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            `spec` is not a DynamicsSpec.
        ModelError
            The outline of the body has no area.
        """
        self._check_thread()
        self._check_there(name)
        if spec is not None:
            arguments.instance(spec, "spec", DynamicsSpec)
        self._engine.set_dynamics(name, spec)
        if name in self._robots:
            robot = self._robots[name]
            # Robots are read-only for users, so that the change needs the setter of
            # `object`.
            object.__setattr__(robot, "spec", replace(robot.spec, dynamics=spec))

        # Boxes are part of the scene, which the engine has replaced.
        self._set_scene(self._engine.scene)
        self.feed.tell(Subject.MASS)
        self._note(None, SetDynamics, name, spec)

    def dynamics(self, name: str) -> DynamicsSpec | None:
        """Return mass, friction and damping of a robot or box; None without a mass.

        Raise UnknownNameError (a KeyError) if no body has that name.
        """
        self._check_there(name)
        return self._engine.specs[self._engine.rows[name]].dynamics

    def push(
        self,
        name: str,
        fx: float,
        fy: float = 0.0,
        torque: float = 0.0,
        source: str = "api",
    ) -> None:
        """Apply a force, N, and a torque, N·m, to a body with mass.

        The force acts at the centre of mass. Both last until the next command.

        They act from the next step on, in world axes. A body without mass ignores them.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        ArgumentError
            A value is not a finite number.
        """
        self._check_there(name)
        force = arguments.triple((fx, fy, torque), "fx", "fy", "torque")
        self.submit(name, cmd.Demand(Control.FORCE, force), source)

    def pull_to(self, name: str, pose: PoseLike, source: str = "api") -> None:
        """Let the PD controller of a body with mass move it to a pose (m, m, rad).

        It acts from the next step on; see `push`.
        """
        self._check_there(name)
        self.submit(name, cmd.Demand(Control.POSE, arguments.pose(pose)), source)

    def throw(
        self, name: str, vx: float, vy: float = 0.0, w: float = 0.0, source: str = "api"
    ) -> None:
        """Keep a body with mass at a velocity in world axes (m/s, rad/s).

        It acts from the next step on; see `push`.
        """
        self._check_there(name)
        twist = arguments.triple((vx, vy, w), "vx", "vy", "w")
        self.submit(name, cmd.Demand(Control.TWIST, twist), source)

    def describe(self, described: Described) -> None:
        """Add the joints and ray sensors of a description file.

        The bodies of the file are boxes of the scene. Raise KeyError if one is missing.
        """
        self._check_thread()
        # Checked before anything is added.
        for sensor in described.sensors:
            self._check_there(sensor.parent)
        self._note(None, Describe, described)
        # Kept for saved states, which must recreate the devices.
        self.described |= described
        self._describe_again(
            {Joints.name: [joint_key(joint) for joint in described.joints]}
        )
        self.feed.tell(Subject.DESCRIBED)

    def _describe_again(self, keys: Mapping[str, Collection[Hashable]]) -> None:
        """Create missing ray sensors and joints of description files.

        Only joints with the given keys are created.

        `keys` holds the keys of rows by name of their table.
        """
        rows, joints = self._engine.rows, self._engine.table(Joints)
        there, wanted = {row.key for row in joints.rows}, keys.get(joints.name, ())
        for joint in self.described.joints:
            if joint_key(joint) in wanted and joint_key(joint) not in there:
                Joint(joint, joints, rows.get(joint.parent, NOBODY))

        for sensor in self.described.sensors:
            if sensor.parent in rows and not (
                sensor.name in self.rays and self.rays[sensor.name].is_there
            ):
                self.rays[sensor.name] = RaySensor(sensor, self._devices, self._engine)

    @property
    def joints(self) -> Mapping[str, Sequence[Joint]]:
        """Joints of description files, by the bodies that carry their children."""
        joints: dict[str, list[Joint]] = {}
        for joint in cast(Sequence[Joint], self._engine.table(Joints).rows):
            joints.setdefault(joint.spec.parent, []).append(joint)
        return joints

    def attach(self, carrier: str, name: str) -> None:
        """Attach a body to a carrier at its present place.

        Sensors and collisions treat it as a part of its carrier.

        Raises
        ------
        UnknownNameError
            A KeyError: one of the bodies does not exist.
        WorldError
            The bodies are the same, one of them is already carried, or the attached body
            carries another one.
        """
        self._check_thread()
        self._check_there(carrier, name)
        engine = self._engine
        if (
            name == carrier
            or engine.carrier_of(name) is not None
            or engine.carrier_of(carrier) is not None
        ):
            raise WorldError(
                f"{carrier} cannot carry {name}: one of them is already carried, "
                "or both are the same body"
            )

        # Carriers cannot be carried, see `botyard.engine.state`.
        if carried := engine.carried_by(engine.rows[name]):
            raise WorldError(
                f"{carrier} cannot carry {name}, "
                f"which carries {engine.specs[carried[0]].name}"
            )

        self._note(None, Attach, carrier, name)
        engine.attach(carrier, name)

    def detach(self, name: str) -> None:
        """Release a carried body at its present place.

        Does nothing if the body is not carried.
        """
        self._check_thread()
        # Only a real change is noted in the journal.
        if self._engine.carrier_of(name) is not None:
            self._note(None, Detach, name)
            self._engine.detach(name)

    def wrench(self, name: str) -> tuple[float, float, float]:
        """Return net force, N, and torque, N·m, on a body with mass in the last step.

        The values are in world axes; zero for a body without mass.
        """
        self._check_there(name)
        dynamics = self._engine.dynamics
        return (
            (0.0, 0.0, 0.0)
            if dynamics is None
            else dynamics.wrench(self._engine.rows[name])
        )


__all__ = ["Bodies"]
