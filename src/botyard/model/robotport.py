"""The robot interface of all protocols (ports and adapters): SI units, without sockets,
clocks or arrays of the engine.

A session gets a `RobotPort` and needs nothing else of the program. Commands are queued
and take effect with the next step; readings come from the last snapshot, so protocols
cannot disturb each other (design §2). `botyard.sim.port.Port` and
`botyard.sim.fleet.Fleet` implement the interface; protocols do not know the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose, Twist
from botyard.model.beams import Bundle
from botyard.model.devices import Device, DeviceSpec
from botyard.model.kinematics import Axes
from botyard.model.readings import (
    Action,
    ChargeState,
    GripperState,
    LaserScan,
    SonarReadings,
)
from botyard.model.robot import RobotSpec

T = TypeVar("T")


class RobotState(NamedTuple):
    """State of a robot after the last step.

    Attributes
    ----------
    pose_world : Pose
        True pose.
    pose_odom : Pose
        Pose by odometry.
    twist : Twist
        Velocity in the robot's frame.
    motors, stalled, estop : bool
        Motors enabled; blocked while translating; emergency stop in progress.
    limits, accel, decel : Axes
        Speed limits and ramps in force; m/s, m/s² and rad.
    odometry_error : Axes
        Proportional errors of odometry in force.
    path : (float, float)
        Signed distance, m, and rotation, rad, by odometry since the robot was added.
    """

    pose_world: Pose
    pose_odom: Pose
    twist: Twist
    motors: bool
    stalled: bool
    estop: bool
    limits: Axes
    accel: Axes
    decel: Axes
    odometry_error: Axes
    path: tuple[float, float]


class Timing(NamedTuple):
    """Step lengths: simulated, wanted in wall time, and measured in wall time for the
    last step; s.
    """

    sim: float = 0.1
    real: float = 0.1
    last: float = 0.1


class BodyColumns(Protocol):
    """Dynamic state of all bodies as arrays with a row for each body, see `Fleet.rows`.
    Read-only.
    """

    @property
    def pose(self) -> NDArray[np.float64]:
        """True poses, (n, 3): m, m, rad."""
        ...

    @property
    def odom(self) -> NDArray[np.float64]:
        """Poses by odometry, (n, 3): m, m, rad."""
        ...

    @property
    def vel(self) -> NDArray[np.float64]:
        """Velocities in the bodies' frames, (n, 3): m/s, m/s, rad/s."""
        ...

    @property
    def path(self) -> NDArray[np.float64]:
        """Signed way by odometry, (n, 2): forward, m, and turned, rad."""
        ...

    @property
    def odom_frame(self) -> NDArray[np.float64]:
        """Origins of odometry in the world, as of when odometry was last set, (n, 3):
        m, m, rad.
        """
        ...

    @property
    def motors(self) -> NDArray[np.int8]:
        """1: the motors are on, (n,)."""
        ...

    @property
    def stall(self) -> NDArray[np.int8]:
        """1: it is stalled by an obstacle, (n,)."""
        ...

    @property
    def contact(self) -> NDArray[np.uint64]:
        """Bit mask of the sectors in contact, (n,)."""
        ...


class Joystick(Protocol):
    """A joystick that is plugged into a robot."""

    @property
    def x(self) -> float:
        """−1 … 1, to the right."""
        ...

    @property
    def y(self) -> float:
        """−1 … 1, forward."""
        ...

    @property
    def throttle(self) -> float:
        """0 … 1: share of the top speed."""
        ...

    @property
    def button1(self) -> bool:
        """The first button is pressed."""
        ...

    @property
    def button2(self) -> bool:
        """The second button is pressed."""
        ...


class Battery(Protocol):
    """The battery of a robot."""

    @property
    def by_charge(self) -> bool:
        """It reports its charge instead of its voltage."""
        ...

    @property
    def drains(self) -> bool:
        """It is simulated: its charge changes with time."""
        ...

    @property
    def on_dock(self) -> bool:
        """The robot is at a charging station."""
        ...

    @property
    def is_low(self) -> bool:
        """Its charge is too low to drive."""
        ...

    @property
    def charge_state(self) -> ChargeState:
        """State of the charger."""
        ...


class Electrics(Protocol):
    """Battery, lines and temperature of a robot's controller board; see
    `botyard.devices.electrics.Electrics`.
    """

    digout: int
    """Eight digital outputs."""
    analog_port: int
    """The analogue input that the SIP shows."""
    temperature: int
    """°C; −128: no sensor."""
    temperature_warning: bool
    """Fault flag of the board."""
    estop_pressed: bool
    """The emergency stop button is pressed."""
    version: int
    """Grows with every change."""

    @property
    def battery(self) -> Battery:
        """The battery."""
        ...

    @property
    def joystick(self) -> Joystick:
        """The joystick that is plugged in."""
        ...

    @property
    def volts(self) -> float:
        """Voltage of the battery, V."""
        ...

    @property
    def charge(self) -> float:
        """Charge of the battery, per cent."""
        ...

    @property
    def analog(self) -> list[int]:
        """Readings of the analogue inputs."""
        ...

    @property
    def servos(self) -> Mapping[int, int]:
        """Commanded positions of servos by number."""
        ...

    @property
    def inhibited(self) -> str:
        """Why the motors cannot be enabled; "": they can."""
        ...

    def test_battery(self, value: int) -> None:
        """Override the reported battery value for tests; 0 ends the override."""
        ...

    def write_outputs(self, mask: int, states: int) -> None:
        """Set the digital outputs in `mask` to the bits of `states`."""
        ...

    def move_servo(self, servo: int, position: int) -> None:
        """Command a servo to a position."""
        ...


class Gripper(Protocol):
    """Commands of a robot's gripper."""

    def act(self, action: Action) -> None:
        """Start an action."""
        ...

    def carry(self, seconds: float) -> None:
        """Move the lift for a while: up for a positive time, s, down for a negative
        one.
        """
        ...

    @property
    def positions(self) -> tuple[float, float, float]:
        """Where left and right paddle are, m from the middle line, and the lift, 0 … 1."""
        ...


class DeviceReader(Protocol):
    """A further sensor of a robot; see `botyard.devices.view.DeviceReader`."""

    @property
    def spec(self) -> DeviceSpec:
        """Its description."""
        ...

    @property
    def kind(self) -> Device[Any, Any]:
        """Its kind, which declares what interfaces show of it."""
        ...

    @property
    def name(self) -> str:
        """Its name among the devices of its robot."""
        ...

    @property
    def key(self) -> tuple[str, str, int]:
        """Robot, kind and index, by which `Fleet` has the ranges of its beams."""
        ...

    def read(self) -> Any:
        """The reading in the present state."""
        ...

    def shown(self, what: str, make: Callable[[Any, Any], T]) -> T | None:
        """The present reading converted for an interface; None if the kind's code
        raises.
        """
        ...


class Fleet(Protocol):
    """All robots of a simulation as arrays, for sessions that are served in batches."""

    @property
    def state(self) -> BodyColumns:
        """State of the last snapshot."""
        ...

    @property
    def rows(self) -> Mapping[str, int]:
        """Row of each robot in `state`."""
        ...

    @property
    def readings(self) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
        """Ranges (m) and returns of all range sensors after the last step."""
        ...

    @property
    def layout(self) -> int:
        """Version of the layout: changes when rows of robots or offsets of readings
        change.
        """
        ...

    @property
    def odometry_variances(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Mean squares of the proportional errors of odometry by axis, (n, 3), and
        whether they are drawn anew in every step, (n,).
        """
        ...

    @property
    def is_exact(self) -> bool:
        """False when readings are rounded before they are served."""
        ...

    @property
    def placed(self) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Keys (robot, kind, index) of all range sensors, and the slice of each one's
        `readings`.
        """
        ...

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Which range sensors were measured in the last step, (n,) bool in the order of
        `placed`.
        """
        ...

    @property
    def measured(self) -> Mapping[Hashable, tuple[int, int]]:
        """Slices of `readings` of all range sensors measured in the last step, by their
        keys; the same object while these are the same.
        """
        ...

    def age_us(self, key: Hashable) -> int:
        """How long ago the reading of a range sensor that can be had was measured, µs
        of simulated time; 0: after the last step.
        """
        ...

    def refresh(self) -> None:
        """Measure with all subscribed sensors in the present state: needed after bodies
        were added or removed between steps.
        """
        ...

    def measure(self, keys: Iterable[Hashable]) -> None:
        """Measure with these range sensors (robot, kind, index) in the present state,
        unless the step did.
        """
        ...

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """The beams of a sensor: (robot, kind, index)."""
        ...

    def span(self, robot: str, kind: str, index: int) -> tuple[int, int] | None:
        """The slice of a sensor in `readings`, by its key; None if it was not measured
        in this step.
        """
        ...


class RobotPort(Protocol):
    """A robot for a session; each session has its own port."""

    @property
    def name(self) -> str:
        """Unique name of the robot."""
        ...

    @property
    def spec(self) -> RobotSpec:
        """Its model."""
        ...

    @property
    def fleet(self) -> Fleet:
        """All robots of its simulation."""
        ...

    @property
    def electrics(self) -> Electrics:
        """Battery, digital lines and temperature."""
        ...

    @property
    def time_us(self) -> int:
        """Simulated time of the last snapshot, µs."""
        ...

    @property
    def timing(self) -> Timing:
        """Step lengths."""
        ...

    @property
    def has_map(self) -> bool:
        """Whether the world has a map."""
        ...

    @property
    def teleports(self) -> int:
        """Number of times that the robot was placed by a command or by hand; never
        decreases.
        """
        ...

    def claim(self) -> None:
        """Register the session as a source of the robot's commands."""
        ...

    def release(self) -> None:
        """The session ends: unsubscribe its sensors; the robot stops with motors off,
        unless another live source commands it.
        """
        ...

    def drive(
        self, v: float | None = None, w: float | None = None, vy: float | None = None
    ) -> None:
        """Queue: velocities until the next command, m/s forward, rad/s, m/s to the
        left; None: unchanged.
        """
        ...

    def move(self, distance: float) -> None:
        """Queue: drive straight by a signed distance, m, by odometry."""
        ...

    def turn_to(self, heading: float) -> None:
        """Queue: turn to a heading in the odometry frame, rad."""
        ...

    def turn_by(self, angle: float) -> None:
        """Queue: turn by an angle, rad."""
        ...

    def stop(self) -> None:
        """Queue: come to rest with the normal deceleration."""
        ...

    def emergency_stop(self) -> None:
        """Queue: stop as hard as possible."""
        ...

    def enable_motors(self, on: bool) -> None:
        """Queue: motors on or off."""
        ...

    def set_limits(self, v: float | None = None, w: float | None = None) -> None:
        """Queue: limits of speed, m/s, and turn rate, rad/s; None: unchanged."""
        ...

    def set_ramp(
        self, axis: int, accel: float | None = None, decel: float | None = None
    ) -> None:
        """Queue: acceleration and deceleration of an axis (0 forward, 1 lateral, 2
        rotation), m/s² or rad/s²; None: unchanged.
        """
        ...

    def set_odometry(self, pose: Pose) -> None:
        """Queue: set the odometry to a pose, m, m, rad."""
        ...

    def reset_limits(self) -> None:
        """Queue: restore speed limits and ramps of the model."""
        ...

    def reset_pose(self) -> None:
        """Queue: return the robot to its start pose, at rest, with odometry zero."""
        ...

    def set_pose(self, pose: Pose) -> None:
        """Queue: place the robot at a true pose; odometry stays. CommandError: too many
        bodies at that place.
        """
        ...

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue: one coordinate of the true pose: 0 x (m), 1 y (m), 2 heading (rad).
        CommandError: too many bodies there.
        """
        ...

    def state(self) -> RobotState:
        """State of the robot after the last step."""
        ...

    def subscribe_sonar(self, on: bool) -> None:
        """Subscribe to the sonar, or unsubscribe."""
        ...

    def sonar(self) -> SonarReadings | None:
        """Sonar readings of the last step; None for a robot without sonar."""
        ...

    @property
    def gripper(self) -> Gripper | None:
        """The gripper, to be commanded."""
        ...

    def gripper_state(self) -> GripperState | None:
        """Switches of the gripper."""
        ...

    def digital_inputs(self) -> bytes:
        """Bytes of digital inputs, table sensors included; the first is the one of the
        SIP.
        """
        ...

    @property
    def devices(self) -> Mapping[str, DeviceReader]:
        """Further sensors by their names."""
        ...

    def subscribe_device(self, name: str, on: bool) -> None:
        """Subscribe to one of them, or unsubscribe."""
        ...

    def report_bits(self) -> Mapping[str, int]:
        """Bits that the devices set in fields of the standard information packet, by
        field.
        """
        ...

    def set_ghost(self, on: bool) -> None:
        """Queue: make the robot invisible and without collisions (a ghost), or normal
        again.
        """
        ...

    def set_odometry_errors(self, on: bool) -> None:
        """Queue: switch odometry errors on (in the simulation's mode) or off."""
        ...

    def move_joystick(
        self, x: float, y: float, throttle: float, button1: bool, button2: bool
    ) -> None:
        """The joystick that is plugged into the robot: x, y from -1 to 1, throttle from
        0 to 1.
        """
        ...

    def set_digital_inputs(self, byte: int, mask: int, states: int) -> None:
        """Set the digital inputs in `mask` of one byte to the bits of `states`."""
        ...

    def set_analog_input(self, port: int, value: int) -> None:
        """Set the reading of an analogue input."""
        ...

    def press_estop(self, pressed: bool) -> None:
        """Press or release the emergency stop button."""
        ...

    def describe(self) -> list[str]:
        """The whole state as lines of text, for the log."""
        ...

    @property
    def n_lasers(self) -> int:
        """Number of lasers."""
        ...

    def configure_laser(
        self, index: int, angle_min: float, increment: float, count: int
    ) -> None:
        """Set the rays of a laser: bearing of the first, spacing (rad, positive) and
        number.
        """
        ...

    def subscribe_laser(self, index: int, on: bool) -> None:
        """Subscribe to a laser, or unsubscribe."""
        ...

    def laser(self, index: int) -> LaserScan:
        """Scan of the last step."""
        ...
