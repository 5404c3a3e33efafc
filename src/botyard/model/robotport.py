"""What every protocol sees of a robot: an interface in SI units, without sockets, clocks or arrays of the engine.

A session is handed a `RobotPort` and needs nothing else of the program. Commands go into the engine's queue and take effect with the
next step; everything that is read comes from the last snapshot, so no protocol can disturb another (design §2). The interface stands
below both: protocols know nothing of the engine, and `botyard.sim.port.Port` and `botyard.sim.fleet.Fleet` are what implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose, Twist
from botyard.model.beams import Bundle
from botyard.model.devices import Device, DeviceSpec
from botyard.model.readings import Action, ChargeState, GripperState, LaserScan, SonarReadings
from botyard.model.robot import Axes, RobotSpec

T = TypeVar("T")


class RobotState(NamedTuple):
    """A robot after the last step.

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
        Way by odometry since the robot was made: forward, m, and turned, rad, each with its sign.
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
    """Step lengths: simulated, wanted in wall time, and measured in wall time for the last step; s."""

    sim: float = 0.1
    real: float = 0.1
    last: float = 0.1


class BodyColumns(Protocol):
    """What changes of all bodies, in columns; a row for each body, see `Fleet.rows`. Read-only."""

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
    def motors(self) -> NDArray[np.int8]:
        """1: the motors are on, (n,)."""
        ...

    @property
    def stall(self) -> NDArray[np.int8]:
        """1: something blocks it, (n,)."""
        ...

    @property
    def contact(self) -> NDArray[np.uint64]:
        """Bits of the sectors in which it was touched, (n,)."""
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
        """It tells its charge instead of volts."""
        ...

    @property
    def drains(self) -> bool:
        """Its charge changes by itself."""
        ...

    @property
    def on_dock(self) -> bool:
        """The robot stands at a charging station."""
        ...

    @property
    def is_low(self) -> bool:
        """It is nearly empty."""
        ...

    @property
    def charge_state(self) -> ChargeState:
        """What the charger does."""
        ...


class Electrics(Protocol):
    """Battery, lines and temperature of a robot's controller board; see `botyard.devices.electrics.Electrics`."""

    digout: int
    """Eight digital outputs."""
    analog_port: int
    """The analogue input that the SIP shows."""
    temperature: int
    """°C; −128: no sensor."""
    temperature_warning: bool
    """Fault flag of the board."""
    estop_pressed: bool
    """The red button is in."""
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
        """Positions that clients have told servos."""
        ...

    @property
    def may_drive(self) -> bool:
        """Whether the motors can be enabled: the red button is out, and the battery is not empty."""
        ...

    def test_battery(self, value: int) -> None:
        """Let the battery tell another value; 0: its own again."""
        ...

    def write_outputs(self, mask: int, states: int) -> None:
        """Digital outputs: those of `mask` become those of `states`."""
        ...

    def move_servo(self, servo: int, position: int) -> None:
        """Tell a servo a position."""
        ...


class Gripper(Protocol):
    """The gripper of a robot, to be commanded."""

    def act(self, action: Action) -> None:
        """Begin what a client asks for."""
        ...

    def carry(self, seconds: float) -> None:
        """Move the lift for a while: up for a positive time, s, down for a negative one."""
        ...


class DeviceReader(Protocol):
    """A further sensor of a robot; see `botyard.devices.view.DeviceReader`."""

    @property
    def spec(self) -> DeviceSpec:
        """Its description."""
        ...

    @property
    def kind(self) -> Device[Any, Any]:
        """Its kind, which says what interfaces show of it."""
        ...

    @property
    def name(self) -> str:
        """Its name among the devices of its robot."""
        ...

    def read(self) -> Any:
        """The reading in the present state."""
        ...

    def shown(self, what: str, make: Callable[[Any, Any], T]) -> T | None:
        """What an interface shows of the present reading; None if the kind's code raises."""
        ...


class Fleet(Protocol):
    """All robots of a simulation at once, as arrays: for sessions that are served together."""

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
        """Changes when robots stand in other rows, or readings elsewhere."""
        ...

    @property
    def is_exact(self) -> bool:
        """False when readings are rounded before anybody gets them."""
        ...

    @property
    def placed(self) -> tuple[Sequence[Hashable], Sequence[tuple[int, int]]]:
        """Keys (robot, kind, index) of all range sensors, and where in `readings` theirs are."""
        ...

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Which range sensors were read in the last step, in the order of `placed`."""
        ...

    def refresh(self) -> None:
        """Take all readings that are wanted in the present state, at once: bodies came or went since the last step."""
        ...

    def bundles(self, key: Hashable) -> tuple[Bundle, ...]:
        """The beams of a sensor: (robot, kind, index)."""
        ...

    def span(self, robot: str, kind: str, index: int) -> tuple[int, int] | None:
        """Where the readings of a robot's ``laser`` or ``sonar`` stand in `readings`; None if this step did not take them."""
        ...


class RobotPort(Protocol):
    """A robot as a session sees it; one port for each session."""

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
        """How often the robot was put somewhere by command or hand; it never decreases."""
        ...

    def claim(self) -> None:
        """The session begins to command the robot."""
        ...

    def release(self) -> None:
        """The session ends: the robot stops with motors off, unless another live source commands it; its sensors are unsubscribed."""
        ...

    def drive(self, v: float | None = None, w: float | None = None, vy: float | None = None) -> None:
        """Queue: velocities until told otherwise, m/s forward, rad/s, m/s to the left; None: as it is."""
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
        """Queue: greatest speed, m/s, and turn rate, rad/s; None: as it is."""
        ...

    def set_ramp(self, axis: int, accel: float | None = None, decel: float | None = None) -> None:
        """Queue: acceleration and deceleration of an axis (0 forward, 1 sideways, 2 turning), m/s² or rad/s²; None: as it is."""
        ...

    def set_odometry(self, pose: Pose) -> None:
        """Queue: odometry begins anew at a pose, m, m, rad."""
        ...

    def reset_limits(self) -> None:
        """Queue: speed limits and ramps of the model."""
        ...

    def reset_pose(self) -> None:
        """Queue: back to where the robot started, at rest, odometry zero."""
        ...

    def set_pose(self, pose: Pose) -> None:
        """Queue: put the robot at a true pose; odometry stays. CommandError if too many stand there."""
        ...

    def set_pose_axis(self, axis: int, value: float) -> None:
        """Queue: one coordinate of the true pose: 0 x (m), 1 y (m), 2 heading (rad). CommandError if too many stand there."""
        ...

    def state(self) -> RobotState:
        """The robot after the last step."""
        ...

    def subscribe_sonar(self, on: bool) -> None:
        """Begin or end to read the sonar in every step."""
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
        """Bytes of digital inputs, table sensors included; the first is the one of the SIP."""
        ...

    @property
    def devices(self) -> Mapping[str, DeviceReader]:
        """Further sensors by their names."""
        ...

    def subscribe_device(self, name: str, on: bool) -> None:
        """Begin or end to read one of them in every step."""
        ...

    def report_bits(self) -> Mapping[str, int]:
        """Bits that they set in fields of the standard information packet."""
        ...

    def set_ghost(self, on: bool) -> None:
        """Queue: nobody sees or feels the robot; or everybody again."""
        ...

    def set_odometry_errors(self, on: bool) -> None:
        """Queue: odometry errs as the simulation was told to, or not at all."""
        ...

    def move_joystick(self, x: float, y: float, throttle: float, button1: bool, button2: bool) -> None:
        """The joystick that is plugged into the robot: x, y from -1 to 1, throttle from 0 to 1."""
        ...

    def set_digital_inputs(self, byte: int, mask: int, states: int) -> None:
        """Lines of a byte of the digital inputs: those of `mask` become those of `states`."""
        ...

    def set_analog_input(self, port: int, value: int) -> None:
        """The reading of an analog input."""
        ...

    def press_estop(self, pressed: bool) -> None:
        """Push the red button in, or pull it out."""
        ...

    def describe(self) -> list[str]:
        """The whole state in words and numbers, line by line, for the log."""
        ...

    @property
    def n_lasers(self) -> int:
        """Number of lasers."""
        ...

    def configure_laser(self, index: int, angle_min: float, increment: float, count: int) -> None:
        """Set the rays of a laser: bearing of the first, spacing (rad, positive) and number."""
        ...

    def subscribe_laser(self, index: int, on: bool) -> None:
        """Begin or end to read a laser in every step."""
        ...

    def laser(self, index: int) -> LaserScan:
        """Scan of the last step."""
        ...
