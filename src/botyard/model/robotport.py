"""Interface between protocols and robots, in SI units.

The interface contains no sockets, clocks or arrays of the engine. A session gets a `RobotPort` and
needs nothing else of the program. Commands are queued and take effect in the next step.
Readings come from the last snapshot, so protocols cannot disturb each other (design
§2). `botyard.sim.port.Port` and `botyard.sim.fleet.Fleet` implement the interface;
protocols do not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose
from botyard.model.beams import Bundle
from botyard.model.equipmentport import DeviceReader, Electrics, Gripper
from botyard.model.readings import (
    GripperState,
    LaserScan,
    SonarReadings,
)
from botyard.model.robot import RobotSpec
from botyard.model.robotstate import BodyColumns, RobotState, Timing


class Fleet(Protocol):
    """Interface of all robots of a simulation, as arrays, for sessions that are served in
    batches.
    """

    @property
    def state(self) -> BodyColumns:
        """State of all bodies in the last snapshot."""
        ...

    @property
    def rows(self) -> Mapping[str, int]:
        """Row of each robot in `state`, by name."""
        ...

    @property
    def readings(self) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
        """Ranges, m, and laser returns of all range sensors after the last step."""
        ...

    @property
    def layout(self) -> int:
        """Version of the layout of rows and readings.

        The version changes when rows of robots or offsets of readings change.
        """
        ...

    @property
    def odometry_variances(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Mean squares of the proportional odometry errors, and their redraw flags.

        The first array is (n, 3), by axis; the second, (n,), is true if the errors are
        drawn again in every step.
        """
        ...

    @property
    def is_exact(self) -> bool:
        """Whether readings are served exactly, without rounding."""
        ...

    @property
    def boards(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Versions, (n,), and joystick buttons, (n, 2), of all controller boards.

        A version or a button changes whenever the reports of the board do.
        """
        ...

    def board_of(self, robot: str) -> int:
        """Return the index of a robot's board; it is valid for one `layout`."""
        ...

    @property
    def placements(self) -> int:
        """Number of times that any robot was placed; see `RobotPort.teleports`."""
        ...

    @property
    def placed(self) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Keys of all range sensors, and their slices of `readings`.

        A key is (robot, kind, index).
        """
        ...

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Whether each range sensor measured in the last step, (n,), in the order of `placed`."""
        ...

    @property
    def measured(self) -> Mapping[Hashable, tuple[int, int]]:
        """Slices of `readings`, by key, of the range sensors that measured in the last step.

        The object stays the same while these sensors are the same.
        """
        ...

    def age_us(self, key: Hashable) -> int:
        """Return the age of a range sensor's available reading.

        Parameters
        ----------
        key : hashable
            Key (robot, kind, index) of the sensor.

        Returns
        -------
        int
            Simulated time since the measurement, µs; 0: measured after the last step.
        """
        ...

    def refresh(self) -> None:
        """Measure with all subscribed sensors in the current state.

        This is needed after bodies were added or removed between steps.
        """
        ...

    def measure(self, keys: Iterable[Hashable]) -> None:
        """Let range sensors measure now, unless they have measured in the last step.

        Keys are (robot, kind, index).
        """
        ...

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """Return the beams of a sensor, by its key (robot, kind, index)."""
        ...

    def span(self, robot: str, kind: str, index: int) -> tuple[int, int] | None:
        """Return the slice of a sensor in `readings`, by its key.

        The result is None if the sensor did not measure in the last step.
        """
        ...


class RobotPort(Protocol):
    """Interface of one robot for one session; each session has a port of its own."""

    @property
    def name(self) -> str:
        """Unique name of the robot."""
        ...

    @property
    def spec(self) -> RobotSpec:
        """Model of the robot."""
        ...

    @property
    def fleet(self) -> Fleet:
        """All robots of the simulation, as arrays."""
        ...

    @property
    def electrics(self) -> Electrics:
        """Controller board of the robot: battery, digital lines and temperature."""
        ...

    @property
    def time_us(self) -> int:
        """Simulated time of the last snapshot, µs."""
        ...

    @property
    def timing(self) -> Timing:
        """Durations of a step: simulated, requested and measured."""
        ...

    @property
    def has_map(self) -> bool:
        """Whether the world has a map."""
        ...

    @property
    def teleports(self) -> int:
        """Number of times that a command or a user placed the robot."""
        ...

    # -- the session
    def claim(self) -> None:
        """Register the session as a source of the robot's commands."""
        ...

    def release(self) -> None:
        """End the session: unsubscribe its sensors and stop the robot with motors off.

        The robot keeps moving if another live source commands it.
        """
        ...

    # -- commands, which take effect in the next step
    def set_velocity(
        self, v: float | None = None, w: float | None = None, vy: float | None = None
    ) -> None:
        """Queue velocities that hold until the next command; None: unchanged.

        Parameters
        ----------
        v, vy : float or None
            Velocities forward and to the left, m/s.
        w : float or None
            Yaw rate, rad/s.
        """
        ...

    def set_velocities(
        self,
        rows: NDArray[np.int64],
        v: NDArray[np.float64] | None = None,
        w: NDArray[np.float64] | None = None,
        vy: NDArray[np.float64] | None = None,
    ) -> None:
        """Queue velocities of many robots, as `set_velocity` on the port of each.

        Parameters
        ----------
        rows : (n,) int64
            Rows of the robots (`Fleet.rows`).
        v, w, vy : (n,) float64, optional
            See `set_velocity`. None: unchanged for all.
        """
        ...

    def set_steering(
        self, steer: float, v: float | None = None, rate: float | None = None
    ) -> None:
        """Steer a car-like robot to an angle, and drive; other robots ignore it.

        Parameters
        ----------
        steer : float
            Steering angle, rad, positive to the left.
        v : float, optional
            Forward velocity, m/s; None keeps it.
        rate : float, optional
            Limit of the rate of the angle, rad/s; 0: the model's own; None keeps it.
        """
        ...

    def move(self, distance: float) -> None:
        """Queue a straight move by a signed distance, m, by odometry."""
        ...

    def turn_to(self, heading: float) -> None:
        """Queue a turn to a heading in the odometry frame, rad."""
        ...

    def turn_by(self, angle: float) -> None:
        """Queue a turn by an angle, rad."""
        ...

    def stop(self) -> None:
        """Queue a stop with the normal deceleration."""
        ...

    def emergency_stop(self) -> None:
        """Queue an emergency stop with the largest deceleration."""
        ...

    def enable_motors(self, on: bool) -> None:
        """Queue switching the motors on or off."""
        ...

    def set_limits(self, v: float | None = None, w: float | None = None) -> None:
        """Queue limits of speed.

        Parameters
        ----------
        v : float or None
            Greatest forward speed, m/s; None: unchanged.
        w : float or None
            Greatest turn rate, rad/s; None: unchanged.
        """
        ...

    def set_ramp(
        self, axis: int, accel: float | None = None, decel: float | None = None
    ) -> None:
        """Queue acceleration and deceleration of an axis.

        Parameters
        ----------
        axis : int
            0: forward, 1: to the left, 2: rotation.
        accel, decel : float or None
            Magnitudes, m/s²; of axis 2 rad/s². None: unchanged.
        """
        ...

    def set_odometry(self, pose: Pose) -> None:
        """Queue setting the odometry to a pose, m, m, rad."""
        ...

    def reset_limits(self) -> None:
        """Queue restoring the speed limits and accelerations of the model."""
        ...

    def reset_pose(self) -> None:
        """Queue a return to the start pose, at rest, with the odometry of the start."""
        ...

    def set_pose(self, pose: Pose) -> None:
        """Queue placing the robot at a true pose; odometry stays.

        Parameters
        ----------
        pose : Pose
            Pose in the frame of the world: m, m, rad.

        Raises
        ------
        CommandError
            There are too many bodies at that place.
        """
        ...

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue a change of one coordinate of the true pose.

        Parameters
        ----------
        axis : int
            0: x, 1: y, 2: heading.
        value : float
            Coordinate, m; heading, rad.

        Raises
        ------
        CommandError
            There are too many bodies at that place.
        """
        ...

    # -- readings, which come from the last snapshot
    def state(self) -> RobotState:
        """Return the state of the robot after the last step."""
        ...

    def subscribe_sonar(self, on: bool) -> None:
        """Subscribe to the sonar of the robot, or unsubscribe."""
        ...

    def sonar(self) -> SonarReadings | None:
        """Return the sonar readings of the last step; None without a sonar."""
        ...

    @property
    def gripper(self) -> Gripper | None:
        """Gripper of the robot, for commands; None for a robot without a gripper."""
        ...

    def gripper_state(self) -> GripperState | None:
        """Return the switches of the gripper; None for a robot without gripper."""
        ...

    def digital_inputs(self) -> bytes:
        """Return the bytes of digital inputs, including table sensors.

        The first byte is the one in the SIP.
        """
        ...

    @property
    def devices(self) -> Mapping[str, DeviceReader]:
        """Further sensors of the robot by name."""
        ...

    def subscribe_device(self, name: str, on: bool) -> None:
        """Subscribe to a further sensor, or unsubscribe."""
        ...

    def report_bits(self) -> Mapping[str, int]:
        """Return the bits that devices set in the standard information packet, by field."""
        ...

    # -- changes of the robot from outside
    def set_ghost(self, on: bool) -> None:
        """Queue making the robot invisible and free of collisions, or normal again."""
        ...

    def set_odometry_errors(self, on: bool) -> None:
        """Queue switching odometry errors on (in the simulation's mode) or off."""
        ...

    def move_joystick(
        self, x: float, y: float, throttle: float, button1: bool, button2: bool
    ) -> None:
        """Move the joystick that is plugged into the robot.

        Parameters
        ----------
        x, y : float
            Deflections to the right and forward, −1 to 1.
        throttle : float
            Fraction of the top speed, 0 to 1.
        button1, button2 : bool
            Whether the buttons are pressed.
        """
        ...

    def set_digital_inputs(self, byte: int, mask: int, states: int) -> None:
        """Set digital inputs of one byte.

        Parameters
        ----------
        byte : int
            Index of the byte; 0 is the one in the SIP.
        mask : int
            Bits of the inputs to set; the others keep their states.
        states : int
            New states of these bits.
        """
        ...

    def set_analog_input(self, port: int, value: int) -> None:
        """Set the reading of an analogue input."""
        ...

    def press_estop(self, pressed: bool) -> None:
        """Press or release the emergency stop button of the robot."""
        ...

    def describe(self) -> list[str]:
        """Return the whole state of the robot as lines of text, for the log."""
        ...

    @property
    # -- lasers
    def n_lasers(self) -> int:
        """Number of lasers of the robot."""
        ...

    def configure_laser(
        self, index: int, angle_min: float, increment: float, count: int
    ) -> None:
        """Set the rays of a laser.

        Parameters
        ----------
        index : int
            Index of the laser.
        angle_min, increment : float
            Bearing of the first ray, and positive spacing, rad.
        count : int
            Number of rays.
        """
        ...

    def subscribe_laser(self, index: int, on: bool) -> None:
        """Subscribe to a laser of the robot, or unsubscribe."""
        ...

    def laser(self, index: int) -> LaserScan:
        """Return the scan that a laser of the robot had in the last step."""
        ...
