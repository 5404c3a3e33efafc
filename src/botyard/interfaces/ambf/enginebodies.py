"""AMBF objects for bodies that the engine moves (robots and boxes), and for the map's walls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from botyard.engine import commands as cmd
from botyard.engine.demand import Demand
from botyard.engine.layout import ANGLE, Control
from botyard.geometry import Pose
from botyard.interfaces.ambf.bodies import ZERO, Body, joints_below
from botyard.interfaces.ambf.joints import FreeJoint, JointView, robot_joints
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.interfaces.ambf.objects import (
    DURING_STEPS,
    SAME_PLACE,
    SAME_TURN,
    SOURCE,
    finite,
)
from botyard.model.dynamics import DynamicsSpec
from botyard.model.objects import Offer
from botyard.model.robotstate import wheel_path
from botyard.numerics.elementary import cosine_sine, hypot
from botyard.protocols.ambf.messages import FORCE, POSITION, VELOCITY
from botyard.protocols.ros_messages.messages import yaw_of
from botyard.sim.simulation import Robot


class EngineBody(Body):
    """AMBF object for a body of the engine: a robot or a box.

    Parameters
    ----------
    ambf : ObjectContext
        Shared parts of all AMBF objects.
    body : str
        Name of the body in the engine, which is also the name of the object.
    offer : Offer
        Namespace, rates and lists of its state.
    joints : sequence of JointView
        Joints below the body.
    """

    def __init__(
        self,
        ambf: ObjectContext,
        body: str,
        offer: Offer,
        joints: Sequence[JointView] = (),
    ) -> None:
        self.body = body
        super().__init__(ambf, body, offer, joints)

    def pose(self) -> Pose:
        """Return the pose of the body; see `Body.pose`."""
        poses, _, rows = self.ambf.numbers
        x, y, th = poses[rows[self.body]]
        return Pose(x, y, th)

    def velocity(self) -> tuple[float, float, float]:
        """Return the velocity of the body; see `Body.velocity`."""
        _, velocities, rows = self.ambf.numbers
        vx, vy, w = velocities[rows[self.body]]
        return vx, vy, w

    def wrench(self) -> tuple[float, float, float]:
        """Return the net force and torque on the body; see `Body.wrench`."""
        return self.ambf.sim.masses.wrench(self.body)

    @property
    def mass(self) -> DynamicsSpec | None:
        """Mass properties of the body; see `Body.mass`."""
        return self.ambf.sim.masses.dynamics(self.body)

    @property
    def inertia(self) -> float:
        """Moment of inertia of the body; see `Body.inertia`."""
        dynamics = self.ambf.sim.core.engine.dynamics
        return (
            0.0
            if dynamics is None
            else dynamics.inertia(self.ambf.sim.core.engine.rows[self.body])
        )

    def quantities(
        self,
    ) -> tuple[Sequence[float], Sequence[float], Sequence[float], float, float]:
        """Return all quantities of the body's state; see `Body.quantities`."""
        poses, velocities, rows = self.ambf.numbers
        row, dynamics = rows[self.body], self.ambf.sim.core.engine.dynamics
        mass, inertia, wrench = (
            (0.0, 0.0, ZERO) if dynamics is None else dynamics.mass_and_wrench(row)
        )
        return poses[row], velocities[row], wrench, mass, inertia

    def set_step_hook(self, key: str, act: Callable[[], None] | None) -> None:
        """Set a function that is called before every step; None removes it.

        Parameters
        ----------
        key : str
            Purpose, such as ``twist``, ``wheels`` or ``vehicle``; a later function
            replaces an earlier one with the same key.
        act : callable or None
            Function without arguments.
        """
        self.ambf.set_step_hook((self.channel.path, key), act)

    def has_step_hook(self, key: str) -> bool:
        """Return whether a function is set; see `set_step_hook`."""
        return self.ambf.has_step_hook((self.channel.path, key))

    def act_on(self, kind: int, message: Any) -> None:
        """Validate the type of a command, and execute it.

        Parameters
        ----------
        kind : int
            0 force, 1 position, 2 velocity (ambf-messages.md §5); other numbers are
            logged and ignored.
        message : object
            Decoded command with ``wrench``, ``pose`` and ``twist``.
        """
        wanted = {
            FORCE: planar_wrench,
            POSITION: self._pose_of,
            VELOCITY: self._twist_of,
        }.get(kind)
        if wanted is None:
            self.complain(f"command ignored: expected type 0, 1 or 2, found {kind}")
            return

        self.obey(kind, wanted(message))

    def obey(self, kind: int, values: tuple[float, float, float]) -> None:
        """Execute a force, a pose or a velocity, in world axes.

        Values that are not finite are logged and ignored.

        Parameters
        ----------
        kind : int
            `FORCE`, `POSITION` or `VELOCITY`.
        values : (float, float, float)
            Force x, y, N, and torque, N·m; or pose x, y, m, and th, rad; or velocity
            vx, vy, m/s, and w, rad/s.
        """
        if not finite(*values):
            self.complain(
                f"command ignored: expected finite values, found {values}", "not finite"
            )
        elif self.mass is None:
            self.move(kind, values)
        else:
            self._demand(kind, values)

    @staticmethod
    def _pose_of(message: Any) -> tuple[float, float, float]:
        p, q = message.pose.position, message.pose.orientation
        norm = math.sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
        # A quaternion near zero means no rotation: clients that do not set it send
        # zeros.
        return float(p.x), float(p.y), yaw_of(q) if norm >= 0.1 else 0.0

    @staticmethod
    def _twist_of(message: Any) -> tuple[float, float, float]:
        t = message.twist
        return float(t.linear.x), float(t.linear.y), float(t.angular.z)

    def _demand(self, kind: int, values: tuple[float, float, float]) -> None:
        """Command a body with mass, unless the present command is the same."""
        sim = self.ambf.sim
        control = (Control.FORCE, Control.POSE, Control.TWIST)[kind]
        row = sim.core.engine.rows[self.body]
        state = sim.core.engine.state
        # Clients repeat the same command at high rates; the engine keeps it until it
        # changes.
        if (
            state.control[row] == control
            and tuple(state.demand[row].tolist()) == values
        ):
            return

        if (
            control is Control.FORCE
            and not any(values)
            and int(state.control[row]) == Control.MOTORS
        ):
            # Idle clients keep sending a zero force. It must not replace the control of
            # the robot by its motors.
            return

        self.issue_command(Demand(control, values))

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command with AMBF as its source.

        Parameters
        ----------
        command : Command
            Command of the engine; it takes effect at the start of the next step.
        """
        self.ambf.sim.core.accept_command(self.body, command, SOURCE)

    def move(self, kind: int, values: tuple[float, float, float]) -> None:
        """Command a body without mass.

        Forces have no effect, a pose is set at once, and a velocity lasts until the
        next command.

        Parameters
        ----------
        kind : int
            `FORCE`, `POSITION` or `VELOCITY`.
        values : (float, float, float)
            Finite values in world axes; see `obey`.
        """
        # The engine has no velocity for bodies without mass, so each step moves them.
        if kind == VELOCITY:
            self.set_step_hook("twist", lambda: self._advance(values))
            return

        self.set_step_hook("twist", None)
        if kind == POSITION:
            self.put(Pose(*values))

    def _advance(self, twist: tuple[float, float, float]) -> None:
        if any(twist):
            pose, dt = self.pose(), self.ambf.sim.dt
            there = Pose(
                pose.x + twist[0] * dt, pose.y + twist[1] * dt, pose.th + twist[2] * dt
            )
            if not self.place(self.body, there, DURING_STEPS):
                # The body was removed, or placing is denied, so end the motion.
                self.set_step_hook("twist", None)

    def put(self, wanted: Pose) -> None:
        """Set the pose of the body, unless it is the present pose.

        Parameters
        ----------
        wanted : Pose
            Pose in the world, m, m, rad. A pose within `SAME_PLACE` and `SAME_TURN` of
            the present one changes nothing, because clients repeat their commands.
        """
        there = self.pose()
        turned = math.remainder(wanted.th - there.th, 2.0 * math.pi)
        if (
            hypot(wanted.x - there.x, wanted.y - there.y) >= SAME_PLACE
            or abs(turned) >= SAME_TURN
        ):
            self.place(self.body, wanted)

    def cease(self) -> None:
        """End commanded forces and velocities; a body with mass then coasts."""
        super().cease()
        self.set_step_hook("twist", None)
        sim = self.ambf.sim
        if self._is_demanded():
            sim.masses.push(self.body, 0.0, 0.0, 0.0, SOURCE)

    def _is_demanded(self) -> bool:
        """Return whether a commanded force, pose or velocity is in effect."""
        engine = self.ambf.sim.core.engine
        row = engine.rows.get(self.body)
        return row is not None and int(engine.state.control[row]) in (
            Control.FORCE,
            Control.POSE,
            Control.TWIST,
        )


class RobotBody(EngineBody):
    """AMBF object for a robot."""

    def __init__(self, ambf: ObjectContext, robot: Robot, offer: Offer) -> None:
        self.robot = robot
        self._port = robot.port(SOURCE)
        self._drives = False
        super().__init__(ambf, robot.name, offer)
        self.joints = tuple(robot_joints(self))

    def path(self) -> tuple[float, float, float]:
        """Return the distances by odometry, see `botyard.model.robotstate.wheel_path`."""
        snapshot = self.ambf.sim.snapshot
        return wheel_path(
            snapshot.state, snapshot.rows[self.body], self.robot.spec.kinematics
        )

    def steering(self) -> float:
        """Return the measured steering angle of a robot that steers, rad."""
        snapshot = self.ambf.sim.snapshot
        return float(snapshot.state.steer[snapshot.rows[self.body], ANGLE])

    @property
    def userdata(self) -> tuple[str, Sequence[float]]:
        """Battery voltage of the robot, V, in the user data field."""
        return "battery, V", (self._port.electrics.volts,)

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command, and claim the robot for AMBF until `cease`.

        Parameters
        ----------
        command : Command
            Command of the engine; it takes effect at the start of the next step.
        """
        # Claim the robot at the first command only: a subscriber does not drive it.
        if not self._drives:
            self.robot.claim(SOURCE)
            self._drives = True

        self._port.issue_command(command)

    def move(self, kind: int, values: tuple[float, float, float]) -> None:
        """Command a robot without mass.

        The robot drives a velocity within the limits of its drive; see
        `EngineBody.move`.
        """
        if kind == VELOCITY:
            self.set_step_hook("twist", lambda: self._roll(values))
            return

        if self.has_step_hook("twist"):
            self.set_step_hook("twist", None)
            self._stop()

        if kind == POSITION:
            self.put(Pose(*values))

    def _roll(self, twist: tuple[float, float, float]) -> None:
        th = self.pose().th
        cos, sin = cosine_sine(th)
        # Velocities of commands are in world axes, velocities of drives in the robot's
        # axes.
        v, vy = twist[0] * cos + twist[1] * sin, twist[1] * cos - twist[0] * sin
        self.issue_command(cmd.SetVelocity(v=v, w=twist[2], vy=vy))

    def _stop(self) -> None:
        if self._drives:
            self._drives = False
            # A robot under a commanded force, pose or velocity must coast afterwards,
            # so it gets no stop command.
            if not self._is_demanded():
                self._port.issue_command(cmd.Stop())
            self.robot.release(SOURCE)

    def cease(self) -> None:
        """End all commands, and release the robot; see `Body.cease`."""
        super().cease()
        self._stop()


class BoxBody(EngineBody):
    """AMBF object for a box of the map or a body of a description file."""

    def __init__(self, ambf: ObjectContext, body: str, offer: Offer) -> None:
        super().__init__(
            ambf, body, offer, [FreeJoint(j) for j in joints_below(ambf, body)]
        )


class MapBody(Body):
    """AMBF object for the map's walls, which form one fixed body."""

    def pose(self) -> Pose:
        """Return the pose of the map: the origin of the world."""
        return Pose()


def planar_wrench(message: Any, field: str = "wrench") -> tuple[float, float, float]:
    """Return the planar part of a wrench: force x, y, N, and torque z, N·m.

    Parameters
    ----------
    message : object
        Decoded command.
    field : str
        Name of its field of type geometry_msgs/Wrench.

    Returns
    -------
    (float, float, float)
        Force and torque in the axes of the message. The other three components, which
        have no meaning in a plane, are dropped.
    """
    wrench = getattr(message, field)
    return float(wrench.force.x), float(wrench.force.y), float(wrench.torque.z)


__all__ = ["BoxBody", "EngineBody", "MapBody", "RobotBody", "planar_wrench"]
