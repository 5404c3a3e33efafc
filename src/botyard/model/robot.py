"""Description of a robot model: body, limits, odometry, sensors and protocol constants.

Descriptions are frozen and in SI units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from botyard.api.extensions import extension
from botyard.errors import ModelError
from botyard.geometry import Outline, Pose
from botyard.model.accessories import GripperSpec
from botyard.model.devices import (
    CARRIED,
    STANDARD,
    DeviceSpec,
    is_default,
    is_device,
    standard_device,
)
from botyard.model.drivechecks import check_drive
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import (
    DEFAULT_TRACK,
    Axes,
    Drive,
    FourWheels,
    Kinematics,
    MotionLimits,
    Steering,
)
from botyard.model.obstacles import Returns
from botyard.model.parameters import check_types, parameter, range_problems
from botyard.model.sensors import (
    MAX_LATENCY_S,
    MAX_RATE_HZ,
    LaserSpec,
    SonarSpec,
    check_latency,
)
from botyard.model.shapes import set_fields
from botyard.model.trailers import TrailerSpec
from botyard.names import check_name
from botyard.numerics.elementary import hypot
from botyard.units import from_mm, mm

MAX_SCALE = 100.0
"""Largest factor by which a robot may scale velocity commands."""
MIN_TRACK = 0.001
"""Smallest distance between the driven wheels, m."""
MAX_TRACK = 1000.0
"""Largest distance between the driven wheels, m."""
EULER_RAMPS: Final = "euler"
EXACT_RAMPS: Final = "exact"
MAX_DRIFT: Final = 1e3
"""Largest variance in an `OdometryDrift`."""


@dataclass(frozen=True, slots=True)
class OdometryDrift:
    """Gaussian errors of odometry, with variances proportional to distance and angle.

    Variances of independent errors add up, so the statistics do not depend on the time
    step. The parameters are α1 to α4 of Thrun, Burgard and Fox, "Probabilistic
    Robotics" (2005), section 5.4. Here the variances are proportional to the amounts of
    motion; the book squares the amounts, which would depend on the time step.

    Attributes
    ----------
    turn_by_turn, turn_by_distance : float
        Variance of the heading, rad², per rad of rotation (α1), and per m of distance
        (α2).
    distance_by_distance, distance_by_turn : float
        Variance of the distance, m², per m of distance (α3), and per rad of rotation
        (α4).

    Raises
    ------
    ModelError
        A variance is out of its range.
    """

    turn_by_turn: float = 0.0
    turn_by_distance: float = 0.0
    distance_by_distance: float = 0.0
    distance_by_turn: float = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        for value in self.as_tuple():
            # The chained comparison also refuses NaN.
            if not 0.0 <= value <= MAX_DRIFT:
                raise ModelError(
                    f"odometry.drift: variances must be from 0 to {MAX_DRIFT:g}, "
                    f"found {value:g}"
                )

    def as_tuple(self) -> tuple[float, float, float, float]:
        """Return the variances α1 to α4."""
        return (
            self.turn_by_turn,
            self.turn_by_distance,
            self.distance_by_distance,
            self.distance_by_turn,
        )


NO_DRIFT: Final = OdometryDrift()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """Delay, rate and scale of the commands on their path to the motors.

    Attributes
    ----------
    latency : float
        Time from a motion command until it takes effect, s of simulated time, rounded
        to whole steps. Velocities, distance moves, headings and stops are delayed.
        Changes of limits, the switch of the motors, and changes of the robot from
        outside are not.
    jitter : float
        Half-width of the uniform error of the latency, s, drawn for each command.
        Commands never overtake each other.
    rate : float
        Rate of the robot's control cycles, Hz of simulated time; 0: each step is a
        cycle. A command takes effect in the first cycle after its latency. Cycle k
        takes place at simulated time k / rate, in the first step at or after it.
    scale : Axes
        Factors of a velocity command by axis, applied before the limits. Odometry ends
        distance moves and headings, so they stay exact.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    latency: float = parameter(
        0.0, unit="s", low=0.0, high=MAX_LATENCY_S, is_brief=True
    )
    jitter: float = parameter(0.0, unit="s", low=0.0, high=MAX_LATENCY_S, is_brief=True)
    rate: float = parameter(0.0, unit="Hz", low=0.0, high=MAX_RATE_HZ, is_brief=True)
    scale: Axes = parameter(Axes(1.0, 1.0, 1.0), is_brief=True)

    def __post_init__(self) -> None:
        check_types(self)
        for problem in range_problems(self):
            raise ModelError(f"commands: {problem}")
        check_latency("commands", self.latency, self.jitter)
        for value in self.scale.as_tuple():
            # The negated comparison also refuses NaN.
            if not abs(value) <= MAX_SCALE:
                raise ModelError(
                    f"commands: scale must be within ±{MAX_SCALE:g}, found {value:g}"
                )


PLAIN_COMMANDS = CommandSpec()
"""Description without delay, rate or scale: commands take effect immediately and unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PioneerSpec:
    """Identity and integer scales of a robot in the Pioneer serial protocol.

    Source: pioneer-protocol §16.

    Attributes
    ----------
    class_name, subclass : str
        Answer to SYNC2; the subclass, in lower case, names the client's parameter file.
    dist_conv : float
        mm per position unit of the SIP.
    angle_conv : float
        rad per heading unit.
    vel_conv : float
        mm/s per wheel velocity unit.
    range_conv : float
        mm per sonar unit.
    diff_conv : float
        rad/s of rotation per mm/s of half the difference of wheel speeds: the inverse
        of half the track in mm. `RobotSpec.track` sets it.
    vel2_div : float
        mm/s per VEL2 unit.
    watchdog : float
        Timeout after which the robot stops without a message from its client, s of
        simulated time; 0: no timeout.
    ticks_per_mm : float
        Encoder ticks per mm of wheel travel.
    """

    class_name: str = parameter("Pioneer", key="class")
    subclass: str = parameter("p3dx", left_out="")
    dist_conv: float = 1.0
    angle_conv: float = 0.001534
    vel_conv: float = 1.0
    range_conv: float = 1.0
    diff_conv: float = 0.0056
    vel2_div: float = 20.0
    watchdog: float = 2.0
    ticks_per_mm: float = 128.0

    def __post_init__(self) -> None:
        check_types(self)
        # Clients accept an empty name, which `check_name` refuses. For it, a
        # placeholder is checked.
        check_name(self.class_name or " - ", "class of robots", ModelError)
        check_name(self.subclass or " - ", "subclass of robots", ModelError)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatterySpec(DeviceSpec):
    """Description of a battery: its reports and, if it has a capacity, how it drains and charges.

    Attributes
    ----------
    by_charge : bool
        Whether clients get the state of charge and no voltage (battery type 2).
    volts : float
        Terminal voltage of the full battery, V.
    charge : float
        State of charge at the start, %.
    capacity_wh : float
        Energy of the full battery, Wh; 0: the battery never changes.
    empty_volts : float
        Terminal voltage of the empty battery, V; the voltage falls linearly with the
        charge.
    idle_power, motor_power : float
        Power drawn at rest with motors off, and by the motors at full speed, W.
    charge_power : float
        Charging power on a dock, W.
    shutdown_charge : float
        State of charge, %, below which the motors are switched off.
    """

    type: str = field(default="battery", init=False)
    by_charge: bool = parameter(
        False, key="kind", words={"voltage": False, "charge": True}
    )
    volts: float = 13.0
    charge: float = 100.0
    capacity_wh: float = 0.0
    empty_volts: float = 10.5
    idle_power: float = 12.0
    motor_power: float = 60.0
    charge_power: float = 90.0
    shutdown_charge: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotSpec:
    """Description of a robot model.

    Attributes
    ----------
    name : str
        Model name, as used on the command line.
    description : str
        One line for listings.
    color : str
        X11 colour name.
    drive : Drive
        Kinematics.
    outline : tuple of (float, float)
        Body polygon, m, around the centre of rotation at (0, 0).
    parts : tuple of outlines
        Further polygons of the body, m.
    limits : MotionLimits
        Speeds and accelerations.
    ramps : str
        Integration of a step with changing velocity. ``euler``: the whole step at the
        velocity at its end, as in AMRISim, so distances depend on the time step.
        ``exact``: the velocity changes linearly within the step. Speeds at the ends of
        steps are the same.
    odometry_error : Axes
        Proportional error of odometry: each axis has a random factor within ± this
        value (pioneer-protocol §11.4), drawn for each step. This is AMRISim's error
        model. Its statistics depend on the time step: errors of shorter steps average
        out more.
    odometry_error_low : Axes or None
        Smallest errors, if they are not the negatives of the largest.
    odometry_drift : OdometryDrift
        Random errors whose statistics do not depend on the time step.
    perfect_odometry : bool
        Whether odometry is the true pose (Stage's ``localization "gps"``).
    odometry_origin : Pose or None
        World pose of the origin of odometry when the robot starts, m, m, rad; None: its
        start pose, so that odometry starts at zero. Perfect odometry has the origin of
        the world, and in episodes of many worlds odometry starts at zero.
    wheel_ratio : float
        Diameter of the right wheel divided by the diameter of the left, which odometry
        takes for 1 (UMBmark's E_d). Only robots with two driven wheels on one axle may
        have another ratio.
    commands : CommandSpec
        Delay, rate and scale of commands.
    lasers : tuple of LaserSpec
        Lasers, by index.
    sonar : SonarSpec or None
        Sonar ring.
    devices : tuple of DeviceSpec
        Further sensors and contact switches, of the kinds of `botyard.model.devices`. A
        default device (`botyard.model.devices.STANDARD`) is listed only if it differs
        from the default. ``spec.NAME`` is ``spec.device("NAME")``.
    pioneer : PioneerSpec
        Constants of the Pioneer protocol.
    battery : BatterySpec
        Battery.
    returns : Returns
        Visibility of the body.
    gripper : GripperSpec or None
        Gripper.
    wheel_radius : float
        Radius of the driven wheels, m.
    track : float or None
        Distance between the left and the right driven wheel, m; None: it follows from
        ``pioneer.diff_conv``.
    gyro : bool
        Whether it has a gyro that clients may request.
    dynamics : DynamicsSpec or None
        Mass properties, with which forces move it; None: its motion is purely
        kinematic.
    steering : Steering or None
        Steered axle of the drives ackermann and tricycle; None for all others.
    wheels : FourWheels or None
        Wheels of the drives skid and mecanum; None for all others.
    trailers : tuple of TrailerSpec
        Passive trailers behind the robot, from the front.
    is_trailer : bool
        Whether this is the model of a trailer, see `trailer_spec`.

    Raises
    ------
    ModelError
        A value is invalid.
    """

    name: str
    description: str = ""
    color: str = "red"
    drive: Drive = parameter(
        Drive.DIFF,
        words={
            "diff": Drive.DIFF,
            "omni": Drive.OMNI,
            "ackermann": Drive.ACKERMANN,
            "tricycle": Drive.TRICYCLE,
            "skid": Drive.SKID,
            "mecanum": Drive.MECANUM,
            "none": Drive.NONE,
        },
    )
    outline: Outline = parameter(
        ((-0.25, -0.2), (0.25, -0.2), (0.25, 0.2), (-0.25, 0.2)),
        unit="m",
        is_required=True,
    )
    parts: tuple[Outline, ...] = ()
    limits: MotionLimits = field(default_factory=MotionLimits)
    ramps: str = parameter(
        EULER_RAMPS,
        words={word: word for word in (EULER_RAMPS, EXACT_RAMPS)},
        is_brief=True,
    )
    odometry_error: Axes = parameter(Axes(), key="odometry.error")
    odometry_error_low: Axes | None = parameter(None, key="odometry.error_low")
    odometry_drift: OdometryDrift = parameter(
        NO_DRIFT, key="odometry.drift", is_brief=True
    )
    perfect_odometry: bool = parameter(False, key="odometry.perfect")
    odometry_origin: Pose | None = parameter(None, key="odometry.origin", is_brief=True)
    wheel_ratio: float = parameter(1.0, key="odometry.wheel_ratio", is_brief=True)
    commands: CommandSpec = parameter(PLAIN_COMMANDS, is_brief=True)
    lasers: tuple[LaserSpec, ...] = ()
    sonar: SonarSpec | None = None
    devices: tuple[DeviceSpec, ...] = ()
    pioneer: PioneerSpec = field(default_factory=PioneerSpec)
    battery: BatterySpec = field(default_factory=BatterySpec)
    returns: Returns = Returns()
    gripper: GripperSpec | None = None
    wheel_radius: float = 0.1
    track: float | None = parameter(
        None, unit="m", low=MIN_TRACK, high=MAX_TRACK, is_brief=True
    )
    gyro: bool = False
    dynamics: DynamicsSpec | None = None
    steering: Steering | None = parameter(None, is_brief=True)
    wheels: FourWheels | None = parameter(None, is_brief=True)
    trailers: tuple[TrailerSpec, ...] = parameter((), is_brief=True)
    is_trailer: bool = parameter(False, is_brief=True)

    # States of older versions lack the fields that were added later.
    __setstate__ = set_fields

    def __post_init__(self) -> None:
        check_types(self)
        check_name(self.name, "robot model", ModelError)
        # Files check the word on reading; programs can pass any text.
        if self.ramps not in (EULER_RAMPS, EXACT_RAMPS):
            raise ModelError(
                f"robot {self.name}: ramps must be {EULER_RAMPS} or "
                f"{EXACT_RAMPS}, found {self.ramps!r}"
            )

        check_drive(self)
        # Clients turn by the conversion factor, so it must follow the track.
        if self.track is not None:
            if not MIN_TRACK <= self.track <= MAX_TRACK:
                raise ModelError(
                    f"robot {self.name}: track must be from {MIN_TRACK:g} to "
                    f"{MAX_TRACK:g} m, found {self.track:g}"
                )

            object.__setattr__(
                self,
                "pioneer",
                # Wheels that scrub count by their effective track.
                replace(self.pioneer, diff_conv=1.0 / mm(self.kinematics.lever)),
            )

        for device in self.devices:
            if device.type in CARRIED:
                raise ModelError(
                    f"robot {self.name}: devices: expected no {device.type} in this "
                    f"list, because it is set in the field {CARRIED[device.type]}"
                )

        if len(self.outline) < 3:
            raise ModelError(
                f"robot {self.name}: outline needs at least 3 corners, "
                f"found {len(self.outline)}"
            )

        for i, part in enumerate((self.outline, *self.parts)):
            field = f"parts[{i - 1}]" if i else "outline"
            if any(not math.isfinite(v) for corner in part for v in corner):
                raise ModelError(
                    f"robot {self.name}: {field}: expected finite numbers, found {part}"
                )

            # A body at a single point could not collide.
            if len(set(map(tuple, part))) < 2:
                raise ModelError(
                    f"robot {self.name}: {field}: expected at least two different "
                    f"corners, found all at {part[0]}"
                )

    @property
    def kinematics(self) -> Kinematics:
        """Kinematics of the robot: its drive, wheels and motion limits."""
        # The factor is the inverse of half the track in mm (pioneer-protocol §16).
        track, factor = self.track, self.pioneer.diff_conv
        if track is None:
            track = 2.0 * from_mm(1.0 / factor) if factor > 0.0 else DEFAULT_TRACK
        return Kinematics(
            kind=self.drive,
            limits=self.limits,
            track=track,
            wheel_radius=self.wheel_radius,
            steering=self.steering,
            wheels=self.wheels,
        )

    def device(self, kind: str) -> Any:
        """Return the description of the robot's first device of a kind.

        Parameters
        ----------
        kind : str
            Name of the kind, for example ``gps`` or ``laser``.

        Returns
        -------
        DeviceSpec or None
            Kinds that every robot has (`STANDARD`) give their default. None: the model
            has no such device.
        """
        if kind in CARRIED:
            return next(iter(self._carried(kind)), None)
        return next(
            (d for d in self.devices if d.type == kind),
            standard_device(kind) if kind in STANDARD else None,
        )

    def _carried(self, kind: str) -> tuple[DeviceSpec, ...]:
        has = getattr(self, CARRIED[kind])
        return has if isinstance(has, tuple) else () if has is None else (has,)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Return the description of a device by its kind: ``spec.gps`` is
            ``spec.device("gps")``.
            """
            # Python looks up special methods before the class is complete; those must
            # fail fast.
            if name.startswith("_") or not is_device(name):
                raise AttributeError(
                    f"'{type(self).__name__}' object has no attribute '{name}'",
                    name=name,
                    obj=self,
                )

            return self.device(name)

    @property
    def equipment(self) -> tuple[DeviceSpec, ...]:
        """Descriptions of all devices of the robot.

        They are the devices with a field of their own, such as `lasers`, the standard
        devices, and `devices`.
        """
        # The order is fixed, because it numbers several devices of a kind.
        own = {d.type for d in self.devices}
        carried = (device for kind in CARRIED for device in self._carried(kind))
        return (
            *carried,
            *(standard_device(kind) for kind in STANDARD if kind not in own),
            *self.devices,
        )

    def fitted(self, device: DeviceSpec) -> RobotSpec:
        """Return a copy of the model with this device, which replaces all devices of its kind.

        Parameters
        ----------
        device : DeviceSpec
            Device to fit. One that is empty or a default only removes the others of its
            kind.
        """
        if device.type in CARRIED:
            name = CARRIED[device.type]
            changes: dict[str, Any] = {
                name: (device,) if isinstance(getattr(self, name), tuple) else device
            }
            return replace(self, **changes)

        # An empty or default device is what a robot has without an entry in the list.
        others = tuple(d for d in self.devices if d.type != device.type)
        return replace(
            self,
            devices=others
            if device.is_empty or is_default(device)
            else (*others, device),
        )

    def trailer_spec(self, k: int) -> RobotSpec:
        """Return the model of a trailer of this robot, which is a body without a drive.

        Parameters
        ----------
        k : int
            Number of the trailer, from 1.
        """
        return RobotSpec(
            name=f"{self.name}_trailer",
            description=f"trailer {k} of {self.name}",
            color=self.color,
            drive=Drive.NONE,
            outline=self.trailers[k - 1].outline,
            returns=self.returns,
            is_trailer=True,
        )

    @property
    def front(self) -> float:
        """Distance from the centre of rotation to the front of the body, m."""
        return max(x for part in (self.outline, *self.parts) for x, _ in part)

    @property
    def radius(self) -> float:
        """Distance from the centre of rotation to the farthest corner of the body, m.

        The cases of sensors are not included.
        """
        return max(hypot(x, y) for part in (self.outline, *self.parts) for x, y in part)

    def _repr_png_(self) -> bytes:
        """Return a PNG picture of the robot, which notebooks show."""
        return robot_png(self)


# Pictures belong to a higher layer, which fills in this function.
@extension("robot_png")
def robot_png(spec: RobotSpec) -> bytes:
    """Return a picture of a robot's model as a PNG file."""
    raise NotImplementedError
