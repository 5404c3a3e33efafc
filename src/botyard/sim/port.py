"""Adapter between the session of a protocol and a simulated robot.

Implements `botyard.model.robotport.RobotPort`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from botyard.devices.devicereader import DeviceReader
from botyard.engine import commands as cmd
from botyard.engine.layout import F8, I8
from botyard.engine.steering import SetSteering
from botyard.engine.velocities import SetVelocities
from botyard.geometry import Pose
from botyard.model.devices import DeviceSpec, PioneerFields
from botyard.model.readings import GripperState, LaserScan, SonarReadings
from botyard.model.robotstate import RobotState, Timing
from botyard.sim.commands import Commands
from botyard.sim.fleet import Fleet
from botyard.sim.robot import BaseRobot


def _bits(
    pioneer: PioneerFields[Any, Any], spec: DeviceSpec, reading: Any
) -> dict[str, int]:
    """Return the report bits of a device, by name, as integers."""
    assert pioneer.report is not None
    return {
        str(name): operator.index(value)
        for name, value in pioneer.report(spec, reading).items()
    }


class Port:
    """Robot as the session of a protocol sees it.

    Implements `botyard.model.robotport.RobotPort`.
    """

    def __init__(self, robot: BaseRobot, source: str, fleet: Fleet) -> None:
        self._robot = robot
        self._source = source
        self._commands = Commands(robot, source)
        self.name: str = robot.name
        self.spec = robot.spec
        self.electrics = robot.electrics
        self.gripper = robot.gripper
        self.fleet = fleet
        self.n_lasers: int = len(robot.lasers)
        self._has_switched_off = False
        """Whether this session switched off motors that were on.

        Pioneer clients switch the motors off before they disconnect.
        """
        self._reporting: (
            list[tuple[DeviceReader[Any], Callable[[Any, Any], dict[str, int]]]] | None
        ) = None

    @property
    def time_us(self) -> int:
        """Simulated time of the last snapshot, µs."""
        return self._robot._core.snapshot.time_us

    @property
    def timing(self) -> Timing:
        """Lengths of a step in simulated and real time."""
        return self._robot._core.timing

    @property
    def has_map(self) -> bool:
        """Whether the world has a map."""
        return not self._robot._core.scene.is_empty

    @property
    def teleports(self) -> int:
        """Number of times that the robot was placed at a pose."""
        return self._robot._teleports

    def claim(self) -> None:
        """Register the session as a source of commands, and reset odometry and limits."""
        self._robot.claim(self._source)
        self.issue_command(cmd.SetOdometry())
        self.reset_limits()

    def release(self) -> None:
        """End the session.

        The robot stops, its motors go off and its odometry is reset, unless another
        live source commands it. A robot with a controller returns to it with the motors
        on, unless another client than this session has switched them off.
        """
        robot = self._robot
        # The session has not claimed the robot, or has already released it.
        if self._source not in robot._claims:
            return
        robot.release(self._source)
        for laser in robot.lasers:
            laser.restore()
        # Another session may still drive the robot.
        if not robot._claims:
            on = robot.name in robot._core.programs.driving and (
                robot.motors_on or self._has_switched_off
            )
            for command in (cmd.Halt(), cmd.EnableMotors(on), cmd.SetOdometry()):
                self.issue_command(command)
            # A controller or client that takes over may then enable the motors again.
            robot._is_left_off = not on and (robot.motors_on or self._has_switched_off)
            self.reset_limits()

    def issue_command(self, command: cmd.Command) -> None:
        """Queue a command for the next step."""
        self._commands.issue_command(command)

    def submit(self, command: cmd.Command) -> None:
        """Queue a command; the old name of `issue_command`, for one release."""
        warnings.warn(
            "Port.submit has a new name: issue_command",
            DeprecationWarning,
            stacklevel=2,
        )
        self.issue_command(command)

    def set_velocity(
        self, v: float | None = None, w: float | None = None, vy: float | None = None
    ) -> None:
        """Queue a command of velocities. Omitted velocities stay unchanged.

        Parameters
        ----------
        v, w, vy : float, optional
            Forward, m/s; turn rate, rad/s, positive counterclockwise; to the left, m/s.

        Raises
        ------
        CommandError
            A value is not a finite number.
        """
        self.issue_command(cmd.SetVelocity(v=v, w=w, vy=vy))

    def set_steering(
        self, steer: float, v: float | None = None, rate: float | None = None
    ) -> None:
        """Queue a steering angle and a velocity; robots without steering ignore it.

        Parameters
        ----------
        steer : float
            Steering angle, rad, positive to the left.
        v : float, optional
            Forward velocity, m/s; None keeps it.
        rate : float, optional
            Limit of the rate of the angle, rad/s; 0: the model's own; None keeps it.

        Raises
        ------
        CommandError
            A value is not a finite number.
        """
        self.issue_command(SetSteering(steer, v, rate))

    def set_velocities(
        self, rows: I8, v: F8 | None = None, w: F8 | None = None, vy: F8 | None = None
    ) -> None:
        """Queue velocities of many robots, as `set_velocity` on the port of each."""
        self._robot._core.accept_checked_velocities(
            SetVelocities(rows, v=v, w=w, vy=vy), self._source
        )

    def drive(
        self, v: float | None = None, w: float | None = None, vy: float | None = None
    ) -> None:
        """Queue velocities; the old name of `set_velocity`, for one release."""
        warnings.warn(
            "Port.drive has a new name: set_velocity", DeprecationWarning, stacklevel=2
        )
        self.set_velocity(v, w, vy)

    def move(self, distance: float) -> None:
        """Queue a straight drive by a signed distance, m."""
        self._commands.move(distance)

    def turn_to(self, heading: float) -> None:
        """Queue a turn to a heading in the odometry frame, rad."""
        self._commands.turn_to(heading)

    def turn_by(self, angle: float) -> None:
        """Queue a turn by an angle, rad."""
        self._commands.turn_by(angle)

    def stop(self) -> None:
        """Queue a stop with normal deceleration."""
        self._commands.stop()

    def emergency_stop(self) -> None:
        """Queue a stop with the highest deceleration."""
        self._commands.emergency_stop()

    def enable_motors(self, on: bool) -> None:
        """Queue a command that switches the motors on or off."""
        self._has_switched_off = not on and (
            self._has_switched_off or self._robot.motors_on
        )
        self._commands.enable(on)

    def set_limits(self, v: float | None = None, w: float | None = None) -> None:
        """Queue limits of speed. Omitted limits stay unchanged.

        Parameters
        ----------
        v : float, optional
            Greatest forward speed, m/s, up to the limit of the model.
        w : float, optional
            Greatest turn rate, rad/s, also of turns to a heading.
        """
        self.issue_command(cmd.SetLimits(v=v, w=w))

    def set_ramp(
        self, axis: int, accel: float | None = None, decel: float | None = None
    ) -> None:
        """Queue the acceleration and deceleration of an axis.

        Omitted values stay unchanged.

        Parameters
        ----------
        axis : int
            0: forward, 1: to the left, 2: turning.
        accel, decel : float, optional
            Magnitudes, not negative, m/s²; of axis 2 rad/s². With 0 the velocity
            changes immediately.
        """
        self.issue_command(cmd.SetRamp(axis, accel=accel, decel=decel))

    def set_odometry(self, pose: Pose) -> None:
        """Queue a command that sets the odometry to a pose.

        Parameters
        ----------
        pose : Pose
            Pose of the robot in the odometry frame: m, m, rad.
        """
        self.issue_command(cmd.SetOdometry(pose))

    def reset_limits(self) -> None:
        """Queue the speed limits and ramps of the model."""
        limits = self.spec.limits
        self.issue_command(
            cmd.RestoreLimits(limits.accel, limits.decel, limits.heading_speed)
        )

    def reset_pose(self) -> None:
        """Queue a return to the start pose, at rest and with the odometry of a new robot.

        See `Simulation.put_back`.
        """
        self._robot._core.put_back([self.name], self._source)

    def set_pose(self, pose: Pose) -> None:
        """Queue placing the robot at a true pose.

        Parameters
        ----------
        pose : Pose
            Pose in the frame of the world: m, m, rad.

        Raises
        ------
        CommandError
            Too many bodies are there, or the pose is out of bounds.
        """
        self._robot._core.overlap_limit.enter(self.name, pose.x, pose.y)
        self._commands.set_pose(*pose)

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue one coordinate of the true pose.

        Parameters
        ----------
        axis : int
            0: x, 1: y, 2: heading.
        value : float
            Coordinate, m; heading, rad.

        Raises
        ------
        CommandError
            Too many bodies are there, or the pose is out of bounds.
        """
        # A turn in place cannot crowd other bodies.
        if axis < 2:
            x, y = self._robot._core.overlap_limit.place(self.name)
            self._robot._core.overlap_limit.enter(
                self.name, value if axis == 0 else x, value if axis == 1 else y
            )

        self.issue_command(cmd.SetPoseAxis(axis, value))

    def state(self) -> RobotState:
        """Return the state of the robot after the last step."""
        return self._robot.state

    def gripper_state(self) -> GripperState | None:
        """Return the switches of the gripper, or None without a gripper."""
        return self._robot.gripper_state

    def digital_inputs(self) -> bytes:
        """Return the bytes of the digital inputs."""
        return self._robot.digital_inputs

    @property
    def devices(self) -> Mapping[str, DeviceReader[Any]]:
        """Further sensors by name."""
        return self._robot.devices

    def subscribe_device(self, name: str, on: bool) -> None:
        """Subscribe to a device, or unsubscribe from it.

        Parameters
        ----------
        name : str
            Name of the device, a key of `devices`.
        on : bool
            True: the device measures in every step. False: this session needs it no
            longer.
        """
        self._robot.devices[name].subscribe(self._source, on)

    def report_bits(self) -> Mapping[str, int]:
        """Return bits that devices set in the standard information packet.

        Returns
        -------
        mapping of str to int
            Bits by name of the packet's field, for example ``FLAGS``. Bits of several
            devices in one field are combined.
        """
        bits: dict[str, int] = {}
        # Devices of a robot never change: look up their kinds once.
        if self._reporting is None:
            self._reporting = [
                (reader, partial(_bits, pioneer))
                for reader in self._robot.devices.values()
                for pioneer in [reader.kind.pioneer]
                if pioneer is not None and pioneer.report is not None
            ]

        for reader, make in self._reporting:
            for name, value in (reader.shown("pioneer.report", make) or {}).items():
                # Several devices may share a field, such as FLAGS.
                bits[name] = bits.get(name, 0) | value

        return bits

    def set_ghost(self, on: bool) -> None:
        """Queue a switch to a ghost (invisible, without collisions) or back."""
        self._robot.ghost(on, self._source)

    def set_odometry_errors(self, on: bool) -> None:
        """Queue a command that switches errors of odometry on or off."""
        self._commands.odometry_errors(on)

    def move_joystick(
        self, x: float, y: float, throttle: float, button1: bool, button2: bool
    ) -> None:
        """Move the joystick that is plugged into the robot.

        Parameters
        ----------
        x, y, throttle : float
            Deflections, as in `Joystick.set`.
        button1, button2 : bool
            Whether each button is pressed.
        """
        self.electrics.joystick.set(x, y, throttle, button1, button2)

    def set_digital_inputs(self, byte: int, mask: int, states: int) -> None:
        """Set digital inputs of one byte.

        Parameters
        ----------
        byte : int
            Index of the byte.
        mask : int
            Bits to set; the other inputs keep their states.
        states : int
            New states of these bits.
        """
        self.electrics.write_inputs(byte=byte, mask=mask, states=states)

    def set_analog_input(self, port: int, value: int) -> None:
        """Set the reading of an analogue input."""
        self.electrics.write_analog(port, value)

    def press_estop(self, pressed: bool) -> None:
        """Press or release the emergency stop button."""
        self._robot.press_estop(pressed, self._source)

    def describe(self) -> list[str]:
        """Return the whole state as lines of text."""
        return self._robot.describe()

    def subscribe_sonar(self, on: bool) -> None:
        """Subscribe to the sonar, or unsubscribe from it."""
        if self._robot.sonar is not None:
            self._robot.sonar.subscribe(self._source, on)

    def sonar(self) -> SonarReadings | None:
        """Return the sonar readings of the last step, or None without a sonar."""
        return None if self._robot.sonar is None else self._robot.sonar.view()

    def configure_laser(
        self, index: int, angle_min: float, increment: float, count: int
    ) -> None:
        """Set the rays of a laser.

        Parameters
        ----------
        index : int
            Number of the laser, from 0.
        angle_min, increment : float
            Bearing of the first ray in the frame of the laser and spacing of rays, rad,
            counterclockwise.
        count : int
            Number of rays, 0 to 100,000.

        Raises
        ------
        ArgumentError
            A value is not finite, or the number is out of range.
        """
        self._robot.lasers[index].configure(angle_min, increment, count)

    def subscribe_laser(self, index: int, on: bool) -> None:
        """Subscribe to a laser, or unsubscribe from it."""
        self._robot.lasers[index].subscribe(self._source, on)

    def laser(self, index: int) -> LaserScan:
        """Return the scan of the last step."""
        return self._robot.lasers[index].view()
