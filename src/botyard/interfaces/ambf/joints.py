"""Joints that appear in AMBF's states and commands.

AMBF clients see as joints: the joints of description files, wheels of robots, and
paddles and lift of grippers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from botyard.devices.joints import Joint, JointCommand
from botyard.engine import commands as cmd
from botyard.engine.steering import SetSteering
from botyard.geometry import Pose
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.interfaces.ambf.objects import SOURCE
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import MAX_STEERING
from botyard.model.links import steering_joints
from botyard.numerics.elementary import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.gripper import Gripper
    from botyard.sim.simulation import Robot

WHEEL_POSITION_GAIN: Final = 5.0
"""Proportional gain of a wheel's position commands: turn rate per rad of error, 1/s."""


class JointView(Protocol):
    """Interface of a joint, as states and commands use it."""

    @property
    def name(self) -> str:
        """Name of the joint."""
        ...

    @property
    def child(self) -> str:
        """Name of the body that the joint moves."""
        ...

    def read(self) -> tuple[float, float, float]:
        """Return position (rad or m), velocity (rad/s or m/s) and effort (N·m or N)."""
        ...

    def command(self, kind: JointCommand, value: float) -> None:
        """Command a position, velocity or effort, in the units of `read`.

        The command holds until the next one or `cease`.

        Parameters
        ----------
        kind : JointCommand
            Position, velocity or effort.
        value : float
            Finite position (rad or m), velocity (rad/s or m/s) or effort (N·m or N).
        """
        ...

    def cease(self) -> None:
        """End the command of the joint."""
        ...


class FreeJoint:
    """Joint of a description file, as AMBF's states and commands use it."""

    def __init__(self, joint: Joint) -> None:
        self.joint = joint
        self.name = joint.spec.name
        self.child = joint.spec.child

    def read(self) -> tuple[float, float, float]:
        """Return position, velocity and effort of the joint; see `JointView.read`."""
        return self.joint.position, self.joint.velocity, self.joint.effort

    def command(self, kind: JointCommand, value: float) -> None:
        """Command the joint; see `JointView.command`."""
        self.joint.command(kind, value)

    def cease(self) -> None:
        """End the command of the joint by an effort of zero; see `JointView.cease`."""
        self.joint.command(JointCommand.EFFORT, 0.0)


class RobotWithJoints(Protocol):
    """Parts of `botyard.interfaces.ambf.enginebodies.RobotBody` that joints use."""

    body: str
    robot: Robot
    ambf: ObjectContext

    @property
    def mass(self) -> DynamicsSpec | None:
        """Mass and friction; None for a kinematic robot."""
        ...

    def pose(self) -> Pose:
        """Return the pose of the robot in the world, m, m, rad."""
        ...

    def path(self) -> tuple[float, float, float]:
        """Return distances by odometry, see `botyard.model.robotstate.wheel_path`."""
        ...

    def steering(self) -> float:
        """Return the measured steering angle of a robot that steers, rad."""
        ...

    def velocity(self) -> tuple[float, float, float]:
        """Return the velocity in the robot's own axes, m/s and rad/s."""
        ...

    def set_step_hook(self, key: str, act: Callable[[], None] | None) -> None:
        """Set a function that is called before every step; None removes it.

        Parameters
        ----------
        key : str
            Purpose; a later function replaces an earlier one with the same key.
        act : callable or None
            Function without arguments.
        """
        ...

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command with AMBF as its source."""
        ...


class Wheels:
    """The driven wheels of a robot: two on one axle, or four.

    A command lasts until the next one or `cease`. While one wheel has a command, wheels
    without a command have the target speed 0. A robot with four wheels drives at the
    velocity that fits the commands of its wheels
    best. The wheels of a robot that steers drive it along the arc of its
    steering angle.

    Parameters
    ----------
    body : RobotWithJoints
        The robot as an AMBF body.
    """

    def __init__(self, body: RobotWithJoints) -> None:
        self._body = body
        self._kinematics = body.robot.spec.kinematics
        names = [name for name, _, _ in self._kinematics.wheel_places]
        self._nothing: list[tuple[JointCommand, float] | None] = [None] * len(names)
        self._commands = [*self._nothing]
        self.all = [
            # Initials name the bodies: wheel_l, wheel_fl.
            Wheel(
                self,
                k,
                f"{name}_wheel",
                f"wheel_{''.join(word[0] for word in name.split('_'))}",
            )
            for k, name in enumerate(names)
        ]

    def angle(self, index: int) -> float:
        """Return the angle that a wheel has turned by odometry, rad.

        Parameters
        ----------
        index : int
            Number of the wheel, see `Kinematics.wheel_places`.
        """
        k = self._kinematics
        return k.all_wheel_speeds(*self._body.path())[index] / k.wheel_radius

    def speed(self, index: int) -> float:
        """Return the turn rate of a wheel, rad/s.

        Parameters
        ----------
        index : int
            Number of the wheel, see `Kinematics.wheel_places`.

        Returns
        -------
        float
            Rate that follows from the robot's velocity, positive forward.
        """
        k = self._kinematics
        return k.all_wheel_speeds(*self._body.velocity())[index] / k.wheel_radius

    def torque(self, index: int) -> float:
        """Return the commanded torque of a wheel, N·m.

        Parameters
        ----------
        index : int
            Number of the wheel, see `Kinematics.wheel_places`.

        Returns
        -------
        float
            0 unless the last command of the wheel was an effort.
        """
        command = self._commands[index]
        return (
            command[1]
            if command is not None and command[0] == JointCommand.EFFORT
            else 0.0
        )

    def command(self, index: int, kind: JointCommand, value: float) -> None:
        """Command a wheel.

        An effort of 0 without an earlier command is ignored.

        Parameters
        ----------
        index : int
            Number of the wheel, see `Kinematics.wheel_places`.
        kind : JointCommand
            Position, velocity or effort.
        value : float
            Finite value: rad, rad/s or N·m.
        """
        if (
            kind == JointCommand.EFFORT
            and value == 0.0
            and self._commands[index] is None
        ):
            # Idle clients keep sending zero effort, which must not take the robot from
            # other clients.
            return

        self._commands[index] = kind, value
        self._body.set_step_hook("wheels", self._act)

    def cease(self) -> None:
        """End the commands of all wheels."""
        if self._commands != self._nothing:
            self._commands = [*self._nothing]
            self._body.set_step_hook("wheels", None)

    def _act(self) -> None:
        """Drive the robot as its wheels are commanded; this runs before a step."""
        body = self._body
        commands = [c or (JointCommand.VELOCITY, 0.0) for c in self._commands]
        if all(kind == JointCommand.EFFORT for kind, _ in commands):
            if body.mass is not None:
                along, across, torque = self._kinematics.force_of(
                    tuple(
                        value / self._kinematics.wheel_radius for _, value in commands
                    )
                )
                c, s = cosine_sine(body.pose().th)
                body.ambf.sim.masses.push(
                    body.body,
                    along * c - across * s,
                    along * s + across * c,
                    torque,
                    SOURCE,
                )

            # Efforts have no effect on a robot without mass.
            return

        radius = self._kinematics.wheel_radius
        v, vy, w = self._kinematics.velocity_of(
            tuple(radius * self._rate(k, *c) for k, c in enumerate(commands))
        )
        # The steering joints, not the wheels, set the turn rate of a robot that steers.
        body.issue_command(
            cmd.SetVelocity(v=v)
            if self._kinematics.steers
            else cmd.SetVelocity(v=v, w=w, vy=vy)
        )

    def _rate(self, index: int, kind: JointCommand, value: float) -> float:
        """Return the turn rate of a wheel that its command requires, rad/s."""
        if kind == JointCommand.VELOCITY:
            return value
        if kind == JointCommand.EFFORT:
            return 0.0
        return WHEEL_POSITION_GAIN * (value - self.angle(index))


class Wheel:
    """One of the driven wheels of a robot, as a joint."""

    def __init__(self, wheels: Wheels, index: int, name: str, child: str) -> None:
        self._wheels, self._index = wheels, index
        self.name, self.child = name, child

    def read(self) -> tuple[float, float, float]:
        """Return angle, turn rate and torque of the wheel; see `JointView.read`."""
        w = self._wheels
        return w.angle(self._index), w.speed(self._index), w.torque(self._index)

    def command(self, kind: JointCommand, value: float) -> None:
        """Command the wheel; see `JointView.command`."""
        self._wheels.command(self._index, kind, value)

    def cease(self) -> None:
        """End the commands of all wheels; see `JointView.cease`."""
        self._wheels.cease()


class SteeringJoint:
    """Steered wheel of a car-like robot, as a joint.

    Its position is the angle of the wheel, rad, positive to the left. A position
    command steers; the other wheel follows by Ackermann geometry. A velocity or an
    effort steers as far as possible to the left (positive) or right (negative), at the
    model's rate; 0 is ignored.

    Parameters
    ----------
    body : RobotWithJoints
        The robot as an AMBF body.
    index : int
        Number of the wheel: 0 left, 1 right.
    """

    def __init__(self, body: RobotWithJoints, index: int) -> None:
        self._body, self._index = body, index
        joint = steering_joints(body.robot.spec)[index]
        self.name, self.child = joint.name.removesuffix("_joint"), joint.child

    def read(self) -> tuple[float, float, float]:
        """Return the angle of the wheel; velocity and effort are 0."""
        k = self._body.robot.spec.kinematics
        return k.wheel_angles(self._body.steering())[self._index], 0.0, 0.0

    def command(self, kind: JointCommand, value: float) -> None:
        """Steer; see `JointView.command`."""
        k = self._body.robot.spec.kinematics
        if kind != JointCommand.POSITION:
            # Idle clients keep sending zero effort.
            if value == 0.0:
                return
            value = math.copysign(MAX_STEERING, value)
        self._body.issue_command(SetSteering(k.axle_angle(self._index, value)))

    def cease(self) -> None:
        """Do nothing: the wheels keep their angle."""


class GripperJoint:
    """Paddle (m from the middle) or lift (0 to 1) of a gripper, as a joint.

    The joint is position-controlled. Of a velocity or an effort only the sign counts:
    positive opens or lifts, negative closes or lowers.

    Parameters
    ----------
    gripper : Gripper
        The robot's gripper.
    index : int
        0 and 1 for the paddles, 2 for the lift.
    """

    def __init__(self, gripper: Gripper, index: int) -> None:
        self._gripper, self._index = gripper, index
        self.name = ("left_paddle", "right_paddle", "lift")[index]
        self.child = self.name

    def read(self) -> tuple[float, float, float]:
        """Return the position of the paddle or lift; velocity and effort are 0."""
        return self._gripper.positions[self._index], 0.0, 0.0

    def command(self, kind: JointCommand, value: float) -> None:
        """Command a position, or the direction of a motion; see `JointView.command`.

        Parameters
        ----------
        kind : JointCommand
            A position is the goal. A velocity or an effort moves the paddle or lift to
            the end of its range by its sign: positive opens or lifts, negative closes
            or lowers. 0 is ignored.
        value : float
            Position: m from the middle for a paddle, 0 to 1 for the lift.
        """
        if kind != JointCommand.POSITION:
            # Idle clients keep sending zero effort.
            if value == 0.0:
                return
            value = math.inf if value > 0.0 else 0.0

        goals: list[float | None] = [None, None, None]
        goals[self._index] = value
        self._gripper.move_to(*goals)

    def cease(self) -> None:
        """Do nothing: the paddle or lift keeps its goal."""


def robot_joints(body: RobotWithJoints) -> list[JointView]:
    """Return the joints of a robot: driven wheels, steered wheels and gripper.

    Parameters
    ----------
    body : RobotWithJoints
        The robot as an AMBF body.

    Returns
    -------
    list of JointView
        Driven wheels, left before right and front before rear, of drives whose wheels
        are known; steered wheels; then the two paddles and the lift of a gripper.
    """
    found: list[JointView] = []
    spec = body.robot.spec
    if spec.kinematics.has_known_wheels:
        found += Wheels(body).all
    found += [SteeringJoint(body, k) for k in range(len(steering_joints(spec)))]

    if body.robot.gripper is not None:
        found += [GripperJoint(body.robot.gripper, k) for k in range(3)]
    return found


__all__ = [
    "FreeJoint",
    "GripperJoint",
    "JointView",
    "SteeringJoint",
    "Wheel",
    "Wheels",
    "robot_joints",
]
