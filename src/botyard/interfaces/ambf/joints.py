"""Joints as AMBF's clients see them: those of description files, wheels of robots, paddles and lift of grippers."""

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
from botyard.model.robot import Drive

if TYPE_CHECKING:
    from botyard.devices.gripper import Gripper
    from botyard.sim.simulation import Robot

GAIN: Final = 5.0
"""A wheel goes to a commanded angle with so much of the error as its speed, 1/s."""


class JointView(Protocol):
    """A joint."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def child(self) -> str:
        """What it moves."""
        ...

    def read(self) -> tuple[float, float, float]:
        """Position, velocity and effort: rad or m, rad/s or m/s, N·m or N."""
        ...

    def command(self, kind: JointCommand, value: float) -> None:
        """What it is to do."""
        ...

    def cease(self) -> None:
        """Nobody commands it any more."""
        ...


class FreeJoint:
    """A joint of a description file."""

    def __init__(self, joint: Joint) -> None:
        self.joint = joint
        self.name = joint.spec.name
        self.child = joint.spec.child

    def read(self) -> tuple[float, float, float]:
        """See `JointView`."""
        return self.joint.position, self.joint.velocity, self.joint.effort

    def command(self, kind: JointCommand, value: float) -> None:
        """See `JointView`."""
        self.joint.command(kind, value)

    def cease(self) -> None:
        """No effort any more."""
        self.joint.command(JointCommand.EFFORT, 0.0)


class RobotWithJoints(Protocol):
    """The body whose joints they are: a `botyard.interfaces.ambf.bodies.RobotBody`."""

    body: str
    robot: Robot
    ambf: Surroundings

    @property
    def mass(self) -> DynamicsSpec | None:
        """Its mass."""
        ...

    def pose(self) -> Pose:
        """Where it is."""
        ...

    def path(self) -> tuple[float, float]:
        """Way by odometry, forward, m, and turned, rad."""
        ...

    def velocity(self) -> tuple[float, float, float]:
        """In its own axes, m/s and rad/s."""
        ...

    def acts(self, key: str, act: Callable[[], None] | None) -> None:
        """Do something before every step; None: no longer."""
        ...

    def drive(self, command: cmd.Command) -> None:
        """Command it, in AMBF's name."""
        ...


class Wheels:
    """The two driven wheels of a robot with differential drive."""

    def __init__(self, body: RobotWithJoints) -> None:
        self._body = body
        spec = body.robot.spec
        self._radius = spec.wheel_radius
        self._half_track = spec.pioneer.half_track
        self._commands: list[tuple[JointCommand, float] | None] = [None, None]
        self.left = Wheel(self, 0, -1.0, "left_wheel", "wheel_l")
        self.right = Wheel(self, 1, 1.0, "right_wheel", "wheel_r")

    def angle(self, side: float) -> float:
        """How far a wheel has turned, rad."""
        forward, turned = self._body.path()
        return (forward + side * turned * self._half_track) / self._radius

    def speed(self, side: float) -> float:
        """How fast it turns, rad/s."""
        v, _, w = self._body.velocity()
        return (v + side * w * self._half_track) / self._radius

    def torque(self, index: int) -> float:
        """What was commanded of it, N·m."""
        command = self._commands[index]
        return command[1] if command is not None and command[0] == JointCommand.EFFORT else 0.0

    def command(self, index: int, kind: JointCommand, value: float) -> None:
        """What a wheel is to do."""
        if kind == JointCommand.EFFORT and value == 0.0 and self._commands[index] is None:
            return  # clients that do not drive it say this all the time
        self._commands[index] = kind, value
        self._body.acts("wheels", self._act)

    def cease(self) -> None:
        """They are driven no longer."""
        if self._commands != [None, None]:
            self._commands = [None, None]
            self._body.acts("wheels", None)

    def _act(self) -> None:
        """Before a step: drive as the wheels are to turn."""
        body = self._body
        commands = [c or (JointCommand.VELOCITY, 0.0) for c in self._commands]
        if all(kind == JointCommand.EFFORT for kind, _ in commands):
            if body.mass is not None:
                left, right = (value / self._radius for _, value in commands)
                th = body.pose().th
                along = left + right
                torque = (right - left) * self._half_track
                body.ambf.sim.push(body.body, along * math.cos(th), along * math.sin(th), torque, SOURCE)
            return  # what has no mass does not feel efforts
        rates = [self._rate(k, kind, value) for k, (kind, value) in enumerate(commands)]
        v = self._radius * (rates[0] + rates[1]) / 2.0
        w = self._radius * (rates[1] - rates[0]) / (2.0 * self._half_track)
        body.drive(cmd.SetVelocity(v=v, w=w, vy=0.0))

    def _rate(self, index: int, kind: JointCommand, value: float) -> float:
        if kind == JointCommand.VELOCITY:
            return value
        if kind == JointCommand.EFFORT:
            return 0.0
        return GAIN * (value - self.angle(-1.0 if index == 0 else 1.0))


class Wheel:
    """One of them."""

    def __init__(self, wheels: Wheels, index: int, side: float, name: str, child: str) -> None:
        self._wheels, self._index, self._side = wheels, index, side
        self.name, self.child = name, child

    def read(self) -> tuple[float, float, float]:
        """See `JointView`."""
        w = self._wheels
        return w.angle(self._side), w.speed(self._side), w.torque(self._index)

    def command(self, kind: JointCommand, value: float) -> None:
        """See `JointView`."""
        self._wheels.command(self._index, kind, value)

    def cease(self) -> None:
        """See `JointView`."""
        self._wheels.cease()


class GripperJoint:
    """A paddle (m from the middle line) or the lift (0 … 1) of a gripper: positions only; any other command closes or opens it."""

    def __init__(self, gripper: Gripper, index: int) -> None:
        self._gripper, self._index = gripper, index
        self.name = ("left_paddle", "right_paddle", "lift")[index]
        self.child = self.name

    def read(self) -> tuple[float, float, float]:
        """See `JointView`."""
        return self._gripper.positions[self._index], 0.0, 0.0

    def command(self, kind: JointCommand, value: float) -> None:
        """See `JointView`."""
        if kind != JointCommand.POSITION:
            if value == 0.0:
                return
            value = math.inf if value > 0.0 else 0.0
        goals: list[float | None] = [None, None, None]
        goals[self._index] = value
        self._gripper.move_to(*goals)

    def cease(self) -> None:
        """It stays where it is."""


def robot_joints(body: RobotWithJoints) -> list[JointView]:
    """The joints of a robot: wheels if it has two, the gripper's if it has one."""
    found: list[JointView] = []
    if body.robot.spec.drive is Drive.DIFF:
        wheels = Wheels(body)
        found += [wheels.left, wheels.right]
    if body.robot.gripper is not None:
        found += [GripperJoint(body.robot.gripper, k) for k in range(3)]
    return found


__all__ = ["FreeJoint", "GripperJoint", "JointView", "Wheel", "Wheels", "robot_joints"]
