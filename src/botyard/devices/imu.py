"""Inertial measurement unit: turn rate and acceleration with noise, bias and its walk.

The error model is the usual one (IEEE Std 952-1997, annex C; O. J. Woodman, "An introduction
to inertial navigation", UCAM-CL-TR-696, 2007): white noise with a density, a turn-on bias,
and a bias that performs a random walk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from botyard.devices.drawing import normals
from botyard.engine.layout import F8, I1
from botyard.engine.tables import Column, Table
from botyard.geometry import IDENTITY, Pose
from botyard.model.devices import Device, DeviceSpec, Field, RosMessage, parameter
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.simulation import Engine

GRAVITY: Final = 9.80665
"""Standard gravity, m/s² (CGPM 1901), which an accelerometer at rest measures upwards."""
WALK_PART, START_PART = 1, 2
"""Numbers of the random sequences of walks and of turn-on biases; 0 is white noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImuSpec(DeviceSpec):
    """Description of an inertial measurement unit.

    The axes are x forward, y left, z up (REP-103). A planar robot rotates about z alone.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    gyro_noise, accel_noise : float
        Density of the white noise, rad/s/√Hz and m/s²/√Hz.
    gyro_bias, accel_bias : float
        Standard deviation of the turn-on bias, rad/s and m/s².
    gyro_walk, accel_walk : float
        Density of the random walk of the bias, rad/s²/√Hz and m/s³/√Hz.
    has_orientation : bool
        Whether it reports a heading: the integral of its turn rate.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="imu", init=False)
    pose: Pose = parameter(IDENTITY)
    gyro_noise: float = parameter(0.0, unit="rad/s", low=0.0, high=1e3)
    accel_noise: float = parameter(0.0, unit="m/s²", low=0.0, high=1e3)
    gyro_bias: float = parameter(0.0, unit="rad/s", low=0.0, high=1e3)
    accel_bias: float = parameter(0.0, unit="m/s²", low=0.0, high=1e3)
    gyro_walk: float = parameter(0.0, unit="rad/s²", low=0.0, high=1e3)
    accel_walk: float = parameter(0.0, unit="m/s³", low=0.0, high=1e3)
    has_orientation: bool = parameter(True, key="orientation")
    update_rate: float = parameter(0.0, unit="Hz", low=0.0, high=1e6)


class Imus(Table):
    """State of all inertial measurement units.

    Attributes
    ----------
    velocity : (n, 2) float64
        Velocity of each unit in the world at the end of the last step, m/s.
    acceleration : (n, 2) float64
        Mean acceleration of the last step along the axes of the unit, m/s².
    bias : (n, 3) float64
        Biases of the turn rate, rad/s, and of the acceleration along x and y, m/s².
    turned : (n,) float64
        Error of the integrated turn rate, rad.
    is_on : (n,) int8
        0 or 1: whether the unit took part in a step; before that, its velocity is unknown.
    at : (n, 3) float64
        Mounting of the unit: m, m, rad.
    noise, start, walk : (n, 2) float64
        White noise, turn-on bias and walk, of turn rate and of acceleration.
    """

    name = "imu"
    optional = True
    measures = True
    columns: ClassVar[Mapping[str, Column]] = {
        "velocity": Column(np.float64, 2),
        "acceleration": Column(np.float64, 2),
        "bias": Column(np.float64, 3),
        "turned": Column(np.float64),
        "is_on": Column(np.int8, low=0, high=1),
        "at": Column(np.float64, 3, saved=False),
        "noise": Column(np.float64, 2, saved=False),
        "start": Column(np.float64, 2, saved=False),
        "walk": Column(np.float64, 2, saved=False),
    }
    velocity: F8
    acceleration: F8
    bias: F8
    turned: F8
    is_on: I1
    at: F8
    noise: F8
    start: F8
    walk: F8

    def act(self, engine: Engine, dt: float) -> None:
        """Measure the acceleration of the step that has just ended, and let biases walk.

        Parameters
        ----------
        engine : Engine
            Engine that has this table, after all bodies have moved.
        dt : float
            Duration of the step, s.
        """
        state = engine.state
        heading, twist = state.pose[self.body, 2], state.vel[self.body]
        c, s = elementwise.cosine_sine(heading)
        # Velocity of the mounting point: v + ω × r.
        ahead = twist[:, 0] - twist[:, 2] * self.at[:, 1]
        left = twist[:, 1] + twist[:, 2] * self.at[:, 0]
        now = np.stack([c * ahead - s * left, s * ahead + c * left], axis=1)
        # The velocity before the first step is unknown.
        known = self.is_on[:, None] != 0
        change = np.where(known, (now - self.velocity) / dt, 0.0)
        self.velocity[:] = now
        # A mean over the step belongs to the heading in its middle.
        c, s = elementwise.cosine_sine(heading - 0.5 * dt * twist[:, 2] + self.at[:, 2])
        self.acceleration[:, 0] = c * change[:, 0] + s * change[:, 1]
        self.acceleration[:, 1] = c * change[:, 1] - s * change[:, 0]

        # Draws take longer than all the rest: units without an error make none.
        if self.walk.any():
            draws = normals(engine, self, 3, WALK_PART) * self.walk[:, (0, 1, 1)]
            self.bias += math.sqrt(dt) * draws
        if not known.all():
            begun = normals(engine, self, 3, START_PART) * self.start[:, (0, 1, 1)]
            self.bias[:] = np.where(known, self.bias, begun)
        rate = self.bias[:, 0]
        if self.noise[:, 0].any():
            white = normals(engine, self, 1)[:, 0] * self.noise[:, 0]
            # White noise of density d has the deviation d / √dt in a mean over dt.
            rate = rate + white / math.sqrt(dt)
        self.turned += rate * dt
        self.is_on[:] = 1


class ImuReading(NamedTuple):
    """Reading of an inertial measurement unit.

    Attributes
    ----------
    turn_rate : float
        Turn rate about z, rad/s.
    acceleration : tuple of float
        Specific force along x, y and z, m/s²: without acceleration it is (0, 0, g).
    heading : float or None
        Integrated heading in the world, rad; None without an orientation.
    variances : tuple of float
        Variance of the white noise of turn rate, rad²/s², and of acceleration, m²/s⁴.
    """

    turn_rate: float
    acceleration: tuple[float, float, float]
    heading: float | None
    variances: tuple[float, float] = (0.0, 0.0)


def _read(spec: ImuSpec, view: View) -> ImuReading:
    assert view.memory is not None
    table, n = view.memory.table, view.memory.number
    rate = float(view.state.vel[view.row, 2])
    ax, ay = table.acceleration[n].tolist()
    az, turned, variances = GRAVITY, 0.0, (0.0, 0.0)
    if view.errs:
        # The same draw as in the step, so that the heading is the integral of the rates.
        dt = view.engine.clock.dt
        white = (view.normal(4) / math.sqrt(dt)).tolist()
        of_rate, of_x, of_y = table.bias[n].tolist()
        rate += of_rate + spec.gyro_noise * white[0]
        ax += of_x + spec.accel_noise * white[1]
        ay += of_y + spec.accel_noise * white[2]
        az += spec.accel_noise * white[3]
        turned = float(table.turned[n])
        variances = (
            spec.gyro_noise * spec.gyro_noise / dt,
            spec.accel_noise * spec.accel_noise / dt,
        )

    heading = (
        math.remainder(view.pose.th + turned, 2 * math.pi)
        if spec.has_orientation
        else None
    )
    return ImuReading(rate, (ax, ay, az), heading, variances)


def _diagonal(value: float) -> list[float]:
    """Return a 3 × 3 matrix of one value in its diagonal, row by row."""
    return [value if k % 4 == 0 else 0.0 for k in range(9)]


def _message(_: ImuSpec, found: ImuReading) -> dict[str, Any]:
    """Return a sensor_msgs/Imu; the covariance −1 marks a missing orientation.

    Covariances of zeros are unknown: the error of an integrated heading has no bound.
    """
    c, s = cosine_sine((found.heading or 0.0) / 2.0)
    x, y, z = found.acceleration
    of_rate, of_acceleration = found.variances
    return {
        "orientation": {"z": s, "w": c},
        "orientation_covariance": [
            -1.0 if found.heading is None else 0.0,
            *(0.0 for _ in range(8)),
        ],
        "angular_velocity": {"z": found.turn_rate},
        "angular_velocity_covariance": _diagonal(of_rate),
        "linear_acceleration_covariance": _diagonal(of_acceleration),
        "linear_acceleration": {"x": x, "y": y, "z": z},
    }


def _start(spec: ImuSpec) -> dict[str, Any]:
    return {
        "at": tuple(spec.pose),
        "noise": (spec.gyro_noise, spec.accel_noise),
        "start": (spec.gyro_bias, spec.accel_bias),
        "walk": (spec.gyro_walk, spec.accel_walk),
    }


IMU: Final = Device(
    name="imu",
    about="turn rate, acceleration and heading of an inertial measurement unit",
    spec=ImuSpec,
    read=_read,
    fields=(
        Field("turn_rate", "rad/s"),
        Field("x", "m/s²"),
        Field("y", "m/s²"),
        Field("z", "m/s²"),
        Field("heading", "rad"),
    ),
    rows=lambda found: [
        (
            found.turn_rate,
            *found.acceleration,
            math.nan if found.heading is None else found.heading,
        )
    ],
    table=Imus,
    start=_start,
    ros=RosMessage(
        topic="imu",
        type_name="sensor_msgs/Imu",
        fields=_message,
        frame="imu",
        about="turn rate, acceleration and heading",
    ),
)
"""Kind of device for inertial measurement units."""
