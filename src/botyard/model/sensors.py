"""Descriptions of range sensors: frozen dataclasses in SI units, without behaviour.

The pose of a sensor is in the robot's frame (x forward, y left, REP-103). Bearings are
in the sensor's frame, counter-clockwise from its forward axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from botyard.errors import ModelError
from botyard.geometry import IDENTITY, Pose
from botyard.model.beams import DEFAULT_RULE, ReflectorRule
from botyard.model.devices import DeviceSpec
from botyard.model.parameters import check_types, parameter
from botyard.model.shapes import set_fields
from botyard.names import check_name

MAX_SAMPLES: Final = 100_000
"""Largest number of rays of a laser."""
MAX_SONAR_RAYS: Final = 1_000
"""Largest number of rays of a sonar transducer."""
MAX_DEVIATION_M: Final = 1e6
"""Largest standard deviation of ranges, m."""
MAX_RATE_HZ: Final = 1e6
"""Largest rate of sensors and of commands, Hz.

Simulated time has whole microseconds.
"""


MAX_SWEEP_S: Final = 10.0
"""Longest duration of a sweep of a lidar, s."""
MAX_INTENSITY: Final = 10_000.0
"""Highest intensity of a white surface; brighter reflectors must fit into 16 bits."""
MAX_ECHOES: Final = 8
"""Highest number of echoes of a ray."""
MAX_LATENCY_S: Final = 60.0
"""Largest latency of readings and commands, s."""


def check_latency(what: str, latency: float, jitter: float) -> None:
    """Check that a latency and its jitter are within their ranges.

    Parameters
    ----------
    what : str
        Start of the error message.
    latency : float
        Time from a measurement or a command until it takes effect, s.
    jitter : float
        Half-width of the uniform error of the latency, s.

    Raises
    ------
    ModelError
        The latency is not within 0 and `MAX_LATENCY_S`, or the jitter exceeds the
        latency.
    """
    if not 0.0 <= latency <= MAX_LATENCY_S:
        raise ModelError(
            f"{what}: latency must be 0 … {MAX_LATENCY_S:g} s, found {latency:g}"
        )

    # A larger jitter would deliver readings before their measurement.
    if not 0.0 <= jitter <= latency:
        raise ModelError(
            f"{what}: jitter must be 0 … the latency, {latency:g} s, found {jitter:g}"
        )


def _check_missing(what: str, share: float) -> None:
    if not 0.0 <= share <= 1.0:
        raise ModelError(f"{what}: missing must be from 0 to 1, found {share:g}")


def check_rate(what: str, rate: float, name: str = "update_rate") -> None:
    """Check that a rate is within its range.

    Parameters
    ----------
    what : str
        Start of the error message.
    rate : float
        Rate, Hz; 0: in every step.
    name : str
        Name of the parameter in the error message.

    Raises
    ------
    ModelError
        The rate is not within 0 and `MAX_RATE_HZ`.
    """
    if not 0.0 <= rate <= MAX_RATE_HZ:
        raise ModelError(
            f"{what}: {name} must be 0 … {MAX_RATE_HZ:g} Hz, found {rate:g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaserSpec(DeviceSpec):
    """Description of a scanning laser range finder.

    Attributes
    ----------
    type_name : str
        Name of the device type as reported to clients (SIMINFO), for example
        ``sicklms200``.
    pose : Pose
        Mounting in the robot's frame, m and rad.
    size : tuple of float
        Length and width of its case, m; part of the robot's outline. ``(0, 0)``: no
        case.
    fov : float
        Angle between the first and the last ray, rad.
    samples : int
        Number of rays. Their spacing is fov/(samples − 1); the first is at −fov/2
        (pioneer-protocol §7, SEN-002).
    range_min, range_max : float
        Range limits, m. A nearer surface reads `range_min`; a ray that hits nothing
        reads `range_max`.
    flipped : bool
        Whether it is mounted upside down. Readings are then served clockwise until a
        client configures the scan.
    range_noise : float
        Half-width of the uniform error of each range, m.
    range_deviation : float
        Standard deviation of the Gaussian error of each range, m, in addition to the
        uniform error.
    range_share : float
        Part of this standard deviation that grows with the range, m per m of range:
        σ² = range_deviation² + (range_share · r)².
    angle_noise : float
        Half-width of the uniform error of each ray's bearing, rad, drawn for every
        scan.
    reflector : ReflectorRule
        Conditions for reporting bright returns.
    update_rate : float
        Publishing rate of interfaces such as ROS, Hz of simulated time; 0: in every
        step. Readings on request (programs, Pioneer clients) do not depend on it: they
        show the current state, or the measurement that `measurement_rate` and `latency`
        determine.
    measurement_rate : float
        Rate of measurements, Hz of simulated time; 0: in every step. Between two
        measurements all readers get the last one, with its stamp, and a latency starts
        with the measurement. Measurement k takes place at simulated time k / rate, in
        the first step at or after it. A laser with fewer measurements than steps
        measures even if nothing reads it.
    latency : float
        Time from a measurement until its reading is available, s of simulated time,
        rounded to whole steps. The stamp is the time of the measurement. A laser with a
        latency measures in every step, even if nothing reads it.
    jitter : float
        Half-width of the uniform error of the latency, s, drawn for each scan. Scans
        never overtake each other.
    missing : float
        Fraction of the rays, 0 to 1, that return nothing although they hit an object;
        drawn for each ray of each scan. Such rays read `range_max`.
    time_increment : float
        Time from one ray to the next, s, as in a LaserScan message; negative for a lidar that
        turns clockwise. The rays of a scan are then cast along the motion of the robot, and
        the sweep ends at the time of the measurement. 0: all rays at one instant.
    white_range : float
        Range at which the lidar just detects a white, matt surface that it hits head-on, m.
        Dark, oblique and glossy surfaces are lost at shorter ranges, see
        `botyard.model.materials`. 0: the lidar detects each surface.
    intensity : float
        Intensity that is reported for a white surface head-on; others are in proportion to
        the remitted light, compensated for distance. 0: the laser return is reported.
    echoes : int
        Highest number of echoes of a ray, nearest first; 1: the strongest echo alone.
        Glass and mesh give an echo and let the ray pass.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    type: str = field(default="laser", init=False)
    type_name: str
    pose: Pose = IDENTITY
    size: tuple[float, float] = parameter((0.0, 0.0), unit="m")
    fov: float = parameter(math.pi, unit="rad")
    samples: int = 181
    range_min: float = parameter(0.0, unit="m", key="range", index=0)
    range_max: float = parameter(8.0, unit="m", key="range", index=1)
    flipped: bool = False
    range_noise: float = 0.0
    range_deviation: float = parameter(0.0, unit="m", is_brief=True)
    range_share: float = parameter(0.0, is_brief=True)
    angle_noise: float = 0.0
    reflector: ReflectorRule = DEFAULT_RULE
    update_rate: float = parameter(0.0, unit="Hz")
    measurement_rate: float = parameter(0.0, unit="Hz", is_brief=True)
    latency: float = parameter(0.0, unit="s", is_brief=True)
    jitter: float = parameter(0.0, unit="s", is_brief=True)
    missing: float = parameter(0.0, is_brief=True)
    time_increment: float = parameter(
        0.0, unit="s", low=-MAX_SWEEP_S, high=MAX_SWEEP_S, is_brief=True
    )
    white_range: float = parameter(0.0, unit="m", low=0.0, high=1e6, is_brief=True)
    intensity: float = parameter(0.0, low=0.0, high=MAX_INTENSITY, is_brief=True)
    echoes: int = parameter(1, low=1, high=MAX_ECHOES, is_brief=True)

    # States of older versions lack the fields that were added later.
    __setstate__ = set_fields

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        check_name(self.type_name, "laser model", ModelError)
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise ModelError(
                f"laser {self.type_name}: samples must be from 1 to {MAX_SAMPLES}, "
                f"found {self.samples}"
            )

        if not 0.0 <= self.range_min < self.range_max:
            raise ModelError(
                f"laser {self.type_name}: range must be [min, max] with 0 ≤ min "
                f"< max, found [{self.range_min}, {self.range_max}]"
            )

        # The tolerance admits 360° that were converted from degrees with a rounding
        # error.
        if not 0.0 <= self.fov <= 2.0 * math.pi + 1e-9:
            raise ModelError(
                f"laser {self.type_name}: field of view must be from 0° to 360°, "
                f"found {self.fov:.3f} rad"
            )

        check_rate(f"laser {self.type_name}", self.update_rate)
        check_rate(f"laser {self.type_name}", self.measurement_rate, "measurement_rate")
        check_latency(f"laser {self.type_name}", self.latency, self.jitter)
        _check_missing(f"laser {self.type_name}", self.missing)
        # The proportional part is a fraction of the range, so it is at most 1.
        for name, most in (("range_deviation", MAX_DEVIATION_M), ("range_share", 1.0)):
            if not 0.0 <= getattr(self, name) <= most:
                raise ModelError(
                    f"laser {self.type_name}: {name} must be from 0 to {most:g}, "
                    f"found {getattr(self, name):g}"
                )

        if abs(self.time_increment) * self.samples > MAX_SWEEP_S:
            raise ModelError(
                f"laser {self.type_name}: a sweep must take at most {MAX_SWEEP_S:g} s, "
                f"found {self.samples} rays every {self.time_increment:g} s"
            )

        # The first ray of a scan follows the last ray of the scan before.
        sweep = abs(self.time_increment) * (self.samples - 1)
        if sweep * self.measurement_rate > 1.0:
            raise ModelError(
                f"laser {self.type_name}: a sweep must take at most the "
                f"{1.0 / self.measurement_rate:.4g} s between two measurements "
                f"(measurement_rate {self.measurement_rate:g} Hz), found {self.samples} "
                f"rays every {self.time_increment:g} s: {sweep:.4g} s"
            )

        if self.echoes > 1 and not self.white_range:
            raise ModelError(
                f"laser {self.type_name}: echoes need a white_range, found none"
            )

    @property
    def increment(self) -> float:
        """Angle between neighbouring rays, rad; 0 for a single ray."""
        return self.fov / (self.samples - 1) if self.samples > 1 else 0.0

    def without_optics(self) -> LaserSpec:
        """Return the same laser with all rays at one instant, which detects each surface."""
        return replace(
            self, time_increment=0.0, white_range=0.0, intensity=0.0, echoes=1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transducer:
    """Description of one sonar transducer.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    connected : bool
        Whether it is connected. An unconnected transducer always reads the largest range.
    range_min, range_max, fov, noise : float or None
        Values that replace the values of the ring, see `SonarSpec`; None: as the ring.
    """

    pose: Pose
    connected: bool = True
    range_min: float | None = None
    range_max: float | None = None
    fov: float | None = parameter(None, unit="rad")
    noise: float | None = None

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SonarSpec(DeviceSpec):
    """Description of a ring of sonar transducers.

    Attributes
    ----------
    type_name : str
        Name of the device type as reported to clients.
    transducers : tuple of Transducer
        Transducers, in the order of their index on the wire.
    fov : float
        Opening angle of a transducer's cone, rad (used by the ``closest`` projection).
    range_min, range_max : float
        Range limits, m, which also bound the limits of each transducer. A nearer
        surface reads `range_min`; a transducer that hits nothing reads `range_max`.
    noise : float
        Half-width of the uniform error of readings other than `range_max`, m.
    rays : int
        Number of rays that each transducer casts over its cone, of which the shortest
        counts; 1: only the central ray (SEN-017, SEN-018). A transducer with its own
        cone has as many rays as keep the spacing.
    update_rate, measurement_rate : float
        Rates, Hz, see `LaserSpec`.
    latency, jitter, missing : float
        Latency and jitter, s, and fraction of transducers without a return, see
        `LaserSpec`.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    type: str = field(default="sonar", init=False)
    type_name: str
    transducers: tuple[Transducer, ...]
    fov: float = parameter(math.radians(30), unit="rad")
    range_min: float = parameter(0.1, unit="m", key="range", index=0)
    range_max: float = parameter(5.0, unit="m", key="range", index=1)
    noise: float = 0.0
    rays: int = 1
    update_rate: float = parameter(0.0, unit="Hz")
    measurement_rate: float = parameter(0.0, unit="Hz", is_brief=True)
    latency: float = parameter(0.0, unit="s", is_brief=True)
    jitter: float = parameter(0.0, unit="s", is_brief=True)
    missing: float = parameter(0.0, is_brief=True)

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        check_name(self.type_name, "sonar model", ModelError)
        # A robot without sonar has no ring at all.
        if not self.transducers:
            raise ModelError(
                f"sonar {self.type_name}: at least one transducer is needed, found none"
            )

        if not 0.0 <= self.range_min < self.range_max:
            raise ModelError(
                f"sonar {self.type_name}: range must be [min, max] with 0 ≤ min "
                f"< max, found [{self.range_min}, {self.range_max}]"
            )

        if not 1 <= self.rays <= MAX_SONAR_RAYS:
            raise ModelError(
                f"sonar {self.type_name}: rays must be from 1 to {MAX_SONAR_RAYS}, "
                f"found {self.rays}"
            )

        check_rate(f"sonar {self.type_name}", self.update_rate)
        check_rate(f"sonar {self.type_name}", self.measurement_rate, "measurement_rate")
        check_latency(f"sonar {self.type_name}", self.latency, self.jitter)
        _check_missing(f"sonar {self.type_name}", self.missing)
        for i, t in enumerate(self.transducers):
            low, high = self.limits_of(t)
            # Clients get one pair of limits for the whole ring.
            if t.connected and not self.range_min <= low < high <= self.range_max:
                raise ModelError(
                    f"sonar {self.type_name}: transducer {i}: range must be "
                    "within the range of the ring, "
                    f"[{self.range_min}, {self.range_max}], found [{low}, {high}]"
                )

            if t.fov is not None and not 0.0 <= t.fov <= 2.0 * math.pi + 1e-9:
                raise ModelError(
                    f"sonar {self.type_name}: transducer {i}: expected a cone from "
                    f"0° to 360°, found {t.fov:.3f} rad"
                )

    def limits_of(self, transducer: Transducer) -> tuple[float, float]:
        """Return the range limits of a transducer.

        Parameters
        ----------
        transducer : Transducer
            Transducer of this ring. Limits that it lacks are the limits of the ring.

        Returns
        -------
        low, high : float
            Least and greatest range, m.
        """
        low, high = transducer.range_min, transducer.range_max
        return (
            self.range_min if low is None else low,
            self.range_max if high is None else high,
        )

    def rays_of(self, transducer: Transducer) -> int:
        """Return the number of rays over the cone of a transducer."""
        if self.rays == 1 or not transducer.connected:
            return 1
        if transducer.fov is None or not self.fov:
            return self.rays
        return min(
            # The spacing of the ring's rays is kept, so a wider cone has more rays.
            MAX_SONAR_RAYS,
            max(1, round(transducer.fov / self.fov * (self.rays - 1)) + 1),
        )
