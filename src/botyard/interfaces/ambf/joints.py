"""Joints in AMBF's states and commands.

They are joints of description files, wheels of robots, and paddles and lift of
grippers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from botyard.devices.joints import Joint, JointCommand
from botyard.engine import commands as cmd
from botyard.geometry import Pose
from botyard.interfaces.ambf.objects import SOURCE
from botyard.interfaces.ambf.surroundings import Surroundings
from botyard.model.dynamics import DynamicsSpec
from botyard.numerics.elementary import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.gripper import Gripper
    from botyard.sim.simulation import Robot

WHEEL_POSITION_GAIN: Final = 5.0
"""Proportional gain of a wheel's position commands: turn rate per rad of error, 1/s."""


class JointView(Protocol):
    """Adapter of one joint."""

    @property
    def name(self) -> str:
        """Name of the joint."""
        ...

    @property
    def child(self) -> str:
        """Name of the body that the joint moves."""
        ...

    def read(self) -> tuple[float, float, float]:
        """Return position, velocity and effort: rad or m, rad/s or m/s, N·m or N."""
        ...

    def command(self, kind: JointCommand, value: float) -> None:
        """Command a position, velocity or effort, in the units of `read`."""
        ...

    def cease(self) -> None:
        """End the command."""
        ...


class FreeJoint:
    """Joint of a description file."""

    def __init__(self, joint: Joint) -> None:
        self.joint = joint
        self.name = joint.spec.name
        self.child = joint.spec.child

    def read(self) -> tuple[float, float, float]:
        """Return position, velocity and effort; see `JointView`."""
        return self.joint.position, self.joint.velocity, self.joint.effort

    def command(self, kind: JointCommand, value: float) -> None:
        """Command the joint; see `JointView`."""
        self.joint.command(kind, value)

    def cease(self) -> None:
        """End the command by zero effort; see `JointView`."""
        self.joint.command(JointCommand.EFFORT, 0.0)


class RobotWithJoints(Protocol):
    """Parts of `botyard.interfaces.ambf.enginebodies.RobotBody` that joints use."""

    body: str
    robot: Robot
    ambf: Surroundings

    @property
    def mass(self) -> DynamicsSpec | None:
        """Mass and friction; None for a kinematic robot."""
        ...

    def pose(self) -> Pose:
        """Return the pose in the world, m, m, rad."""
        ...

    def path(self) -> tuple[float, float]:
        """Return the distance travelled by odometry, m, and the angle turned, rad."""
        ...

    def velocity(self) -> tuple[float, float, float]:
        """Return the velocity in its own axes, m/s and rad/s."""
        ...

    def set_step_hook(self, key: str, act: Callable[[], None] | None) -> None:
        """Set a function that is called before every step; None removes it."""
        ...

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command with AMBF as its source."""
        ...


class Wheels:
    """The two driven wheels of a differential-drive robot."""

    def __init__(self, body: RobotWithJoints) -> None:
        self._body = body
        self._kinematics = body.robot.spec.kinematics
        self._commands: list[tuple[JointCommand, float] | None] = [None, None]
        self.left = Wheel(self, 0, "left_wheel", "wheel_l")
        self.right = Wheel(self, 1, "right_wheel", "wheel_r")

    def angle(self, index: int) -> float:
        """Return the angle that a wheel has turned, rad; wheel 0 is left, 1 right."""
        return self._kinematics.wheel_rates(*self._body.path())[index]

    def speed(self, index: int) -> float:
        """Return the turn rate of a wheel, rad/s."""
        v, _, w = self._body.velocity()
        return self._kinematics.wheel_rates(v, w)[index]

    def torque(self, index: int) -> float:
        """Return the commanded torque of a wheel, N·m."""
        command = self._commands[index]
        return (
            command[1]
            if command is not None and command[0] == JointCommand.EFFORT
            else 0.0
        )

    def command(self, index: int, kind: JointCommand, value: float) -> None:
        """Command a wheel."""
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
        """End the commands of both wheels."""
        if self._commands != [None, None]:
            self._commands = [None, None]
            self._body.set_step_hook("wheels", None)

    def _act(self) -> None:
        """Drive the robot as its wheels are commanded; called before a step."""
        body = self._body
        commands = [c or (JointCommand.VELOCITY, 0.0) for c in self._commands]
        if all(kind == JointCommand.EFFORT for kind, _ in commands):
            if body.mass is not None:
                left, right = (
                    value / self._kinematics.wheel_radius for _, value in commands
                )
                th = body.pose().th
                along = left + right
                torque = (right - left) * self._kinematics.half_track
                c, s = cosine_sine(th)
                body.ambf.sim.push(body.body, along * c, along * s, torque, SOURCE)

            # Efforts have no effect on a robot without mass.
            return

        v, w = self._kinematics.body_velocity(
            *(self._rate(k, *command) for k, command in enumerate(commands))
        )
        body.issue_command(cmd.SetVelocity(v=v, w=w, vy=0.0))

    def _rate(self, index: int, kind: JointCommand, value: float) -> float:
        if kind == JointCommand.VELOCITY:
            return value
        if kind == JointCommand.EFFORT:
            return 0.0
        return WHEEL_POSITION_GAIN * (value - self.angle(index))


class Wheel:
    """One of the two wheels."""

    def __init__(self, wheels: Wheels, index: int, name: str, child: str) -> None:
        self._wheels, self._index = wheels, index
        self.name, self.child = name, child

    def read(self) -> tuple[float, float, float]:
        """Return angle, turn rate and torque; see `JointView`."""
        w = self._wheels
        return w.angle(self._index), w.speed(self._index), w.torque(self._index)

    def command(self, kind: JointCommand, value: float) -> None:
        """Command the wheel; see `JointView`."""
        self._wheels.command(self._index, kind, value)

    def cease(self) -> None:
        """End the commands of both wheels; see `JointView`."""
        self._wheels.cease()


class GripperJoint:
    """Paddle (m from the middle) or lift (0 to 1) of a gripper.

    It is position-controlled. The sign of other commands opens or closes it.
    """

    def __init__(self, gripper: Gripper, index: int) -> None:
        self._gripper, self._index = gripper, index
        self.name = ("left_paddle", "right_paddle", "lift")[index]
        self.child = self.name

    def read(self) -> tuple[float, float, float]:
        """Return the position; velocity and effort are 0; see `JointView`."""
        return self._gripper.positions[self._index], 0.0, 0.0

    def command(self, kind: JointCommand, value: float) -> None:
        """Command a position, or a direction; see `JointView`."""
        if kind != JointCommand.POSITION:
            # Idle clients keep sending zero effort.
            if value == 0.0:
                return
            value = math.inf if value > 0.0 else 0.0

        goals: list[float | None] = [None, None, None]
        goals[self._index] = value
        self._gripper.move_to(*goals)

    def cease(self) -> None:
        """Do nothing: the joint stays at its position; see `JointView`."""


def robot_joints(body: RobotWithJoints) -> list[JointView]:
    """Return the joints of a robot: driven wheels and gripper."""
    found: list[JointView] = []
    if body.robot.spec.kinematics.has_two_wheels:
        wheels = Wheels(body)
        found += [wheels.left, wheels.right]

    if body.robot.gripper is not None:
        found += [GripperJoint(body.robot.gripper, k) for k in range(3)]
    return found


__all__ = ["FreeJoint", "GripperJoint", "JointView", "Wheel", "Wheels", "robot_joints"]
