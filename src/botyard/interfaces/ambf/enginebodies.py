"""AMBF bodies that the engine moves: robots and boxes; and the map's walls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from botyard.engine import commands as cmd
from botyard.engine.demand import Demand
from botyard.engine.layout import Control
from botyard.geometry import Pose
from botyard.interfaces.ambf.bodies import ZERO, Body, joints_below
from botyard.interfaces.ambf.joints import FreeJoint, JointView, robot_joints
from botyard.interfaces.ambf.objects import (
    DURING_STEPS,
    SAME_PLACE,
    SAME_TURN,
    SOURCE,
    finite,
)
from botyard.interfaces.ambf.surroundings import Surroundings
from botyard.model.dynamics import DynamicsSpec
from botyard.model.objects import Offer
from botyard.numerics.elementary import cosine_sine, hypot
from botyard.protocols.ambf.messages import FORCE, POSITION, VELOCITY
from botyard.protocols.ros_messages.messages import yaw_of
from botyard.sim.simulation import Robot


class EngineBody(Body):
    """Body of the engine: a robot or a box."""

    def __init__(
        self,
        ambf: Surroundings,
        body: str,
        offer: Offer,
        joints: Sequence[JointView] = (),
    ) -> None:
        self.body = body
        super().__init__(ambf, body, offer, joints)

    def pose(self) -> Pose:
        """Return the pose; see `Body`."""
        poses, _, rows = self.ambf.numbers
        x, y, th = poses[rows[self.body]]
        return Pose(x, y, th)

    def velocity(self) -> tuple[float, float, float]:
        """Return the velocity; see `Body`."""
        _, velocities, rows = self.ambf.numbers
        vx, vy, w = velocities[rows[self.body]]
        return vx, vy, w

    def wrench(self) -> tuple[float, float, float]:
        """Return the net wrench; see `Body`."""
        return self.ambf.sim.wrench(self.body)

    @property
    def mass(self) -> DynamicsSpec | None:
        """Mass and friction; see `Body`."""
        return self.ambf.sim.dynamics(self.body)

    @property
    def inertia(self) -> float:
        """Moment of inertia; see `Body`."""
        dynamics = self.ambf.sim.core.engine.dynamics
        return (
            0.0
            if dynamics is None
            else dynamics.inertia(self.ambf.sim.core.engine.rows[self.body])
        )

    def quantities(
        self,
    ) -> tuple[Sequence[float], Sequence[float], Sequence[float], float, float]:
        """Return all quantities of the state; see `Body`."""
        poses, velocities, rows = self.ambf.numbers
        row, dynamics = rows[self.body], self.ambf.sim.core.engine.dynamics
        mass, inertia, wrench = (
            (0.0, 0.0, ZERO) if dynamics is None else dynamics.mass_and_wrench(row)
        )
        return poses[row], velocities[row], wrench, mass, inertia

    def set_step_hook(self, key: str, act: Callable[[], None] | None) -> None:
        """Set a function that is called before every step; None removes it."""
        self.ambf.set_step_hook((self.channel.path, key), act)

    def has_step_hook(self, key: str) -> bool:
        """Return whether a function is set; see `set_step_hook`."""
        return self.ambf.has_step_hook((self.channel.path, key))

    def act_on(self, kind: int, message: Any) -> None:
        """Validate the type of a command, and execute it."""
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
        """Execute a force, a pose or a velocity, in world axes."""
        if not finite(*values):
            self.complain("command ignored: expected finite values")
        elif self.mass is None:
            self.move(kind, values)
        else:
            self._demand(kind, values)

    @staticmethod
    def _pose_of(message: Any) -> tuple[float, float, float]:
        p, q = message.pose.position, message.pose.orientation
        norm = math.sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
        # A quaternion near zero, as clients send that leave it out, means no rotation.
        return float(p.x), float(p.y), yaw_of(q) if norm >= 0.1 else 0.0

    @staticmethod
    def _twist_of(message: Any) -> tuple[float, float, float]:
        t = message.twist
        return float(t.linear.x), float(t.linear.y), float(t.angular.z)

    def _demand(self, kind: int, values: tuple[float, float, float]) -> None:
        """Command a body with mass, if the command differs from the present one."""
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
            # Idle clients keep sending a zero force, which must not take the robot from
            # its motors.
            return

        self.issue_command(Demand(control, values))

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command with AMBF as its source."""
        self.ambf.sim.core.accept_command(self.body, command, SOURCE)

    def move(self, kind: int, values: tuple[float, float, float]) -> None:
        """Command a body without mass.

        Forces have no effect, a pose is set at once, and a velocity lasts until the
        next command.
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
                # The body has gone, or placing is denied: the motion ends.
                self.set_step_hook("twist", None)

    def put(self, wanted: Pose) -> None:
        """Set its pose, unless it is the present one."""
        there = self.pose()
        turned = math.remainder(wanted.th - there.th, 2.0 * math.pi)
        if (
            hypot(wanted.x - there.x, wanted.y - there.y) >= SAME_PLACE
            or abs(turned) >= SAME_TURN
        ):
            self.place(self.body, wanted)

    def cease(self) -> None:
        """End forces and velocities; a body with mass coasts."""
        super().cease()
        self.set_step_hook("twist", None)
        sim = self.ambf.sim
        if self._is_demanded():
            sim.push(self.body, 0.0, 0.0, 0.0, SOURCE)

    def _is_demanded(self) -> bool:
        """Return whether a force, a pose or a velocity drives it."""
        engine = self.ambf.sim.core.engine
        row = engine.rows.get(self.body)
        return row is not None and int(engine.state.control[row]) in (
            Control.FORCE,
            Control.POSE,
            Control.TWIST,
        )


class RobotBody(EngineBody):
    """Robot as an AMBF body."""

    def __init__(self, ambf: Surroundings, robot: Robot, offer: Offer) -> None:
        self.robot = robot
        self._port = robot.port(SOURCE)
        self._drives = False
        super().__init__(ambf, robot.name, offer)
        self.joints = tuple(robot_joints(self))

    def path(self) -> tuple[float, float]:
        """Return the distance travelled by odometry, m, and the angle turned, rad."""
        snapshot = self.ambf.sim.snapshot
        forward, turned = snapshot.state.path[snapshot.rows[self.body]].tolist()
        return forward, turned

    @property
    def userdata(self) -> tuple[str, Sequence[float]]:
        """Battery voltage, V."""
        return "battery, V", (self._port.electrics.volts,)

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command, and claim the robot for AMBF until `cease`."""
        # The robot is claimed by the first command, not by a mere subscription.
        if not self._drives:
            self.robot.claim(SOURCE)
            self._drives = True

        self._port.issue_command(command)

    def move(self, kind: int, values: tuple[float, float, float]) -> None:
        """Command a robot without mass.

        A velocity is driven within the limits of its drive; see `EngineBody.move`.
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
        # Velocities of commands are in world axes, velocities of drives in the robot's.
        v, vy = twist[0] * cos + twist[1] * sin, twist[1] * cos - twist[0] * sin
        self.issue_command(cmd.SetVelocity(v=v, w=twist[2], vy=vy))

    def _stop(self) -> None:
        if self._drives:
            self._drives = False
            # With a force, the robot coasts instead.
            if not self._is_demanded():
                self._port.issue_command(cmd.Stop())
            self.robot.release(SOURCE)

    def cease(self) -> None:
        """End all commands, and stop driving; see `Body`."""
        super().cease()
        self._stop()


class BoxBody(EngineBody):
    """Box of the map, or body of a description file."""

    def __init__(self, ambf: Surroundings, body: str, offer: Offer) -> None:
        super().__init__(
            ambf, body, offer, [FreeJoint(j) for j in joints_below(ambf, body)]
        )


class MapBody(Body):
    """The map's walls, as one fixed body."""

    def pose(self) -> Pose:
        """Return the origin of the world."""
        return Pose()


def planar_wrench(message: Any, field: str = "wrench") -> tuple[float, float, float]:
    """Return the planar part of a wrench: force x, y, N, and torque z, N·m."""
    wrench = getattr(message, field)
    return float(wrench.force.x), float(wrench.force.y), float(wrench.torque.z)


__all__ = ["BoxBody", "EngineBody", "MapBody", "RobotBody", "planar_wrench"]
