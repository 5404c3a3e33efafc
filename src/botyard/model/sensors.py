"""Descriptions of range sensors: frozen, in SI units, without behaviour.

Frames: a sensor's pose is given in the robot's frame (x forward, y left, REP-103);
bearings are in the sensor's frame, counter-clockwise from its forward axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from botyard.errors import ModelError
from botyard.geometry import IDENTITY, Pose
from botyard.model.beams import DEFAULT_RULE, ReflectorRule
from botyard.model.devices import DeviceSpec
from botyard.model.parameters import check_types, parameter
from botyard.model.shapes import set_fields
from botyard.names import check_name

MAX_SAMPLES: Final = 100_000
"""Most rays of a laser."""
MAX_SONAR_RAYS: Final = 1_000
"""Most rays of a sonar transducer."""
MAX_DEVIATION_M: Final = 1e6
"""Greatest standard deviation of ranges, m."""
MAX_RATE_HZ: Final = 1e6
"""Greatest rate of sensors and of commands: simulated time has whole microseconds."""


MAX_LATENCY_S: Final = 60.0
"""Greatest latency of readings and commands, s."""


def check_latency(what: str, latency: float, jitter: float) -> None:
    """Refuse a latency and its jitter, s, that are out of range. Raises ModelError."""
    if not 0.0 <= latency <= MAX_LATENCY_S:
        raise ModelError(
            f"{what}: latency must be 0 … {MAX_LATENCY_S:g} s, found {latency:g}"
        )

    if not 0.0 <= jitter <= latency:
        raise ModelError(
            f"{what}: jitter must be 0 … the latency, {latency:g} s, found {jitter:g}"
        )


def _check_missing(what: str, share: float) -> None:
    if not 0.0 <= share <= 1.0:
        raise ModelError(f"{what}: missing must be a share of 0 … 1, found {share:g}")


def check_rate(what: str, rate: float, name: str = "update_rate") -> None:
    """Refuse a rate, Hz, that is out of range. Raises ModelError."""
    if not 0.0 <= rate <= MAX_RATE_HZ:
        raise ModelError(
            f"{what}: {name} must be 0 … {MAX_RATE_HZ:g} Hz, found {rate:g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaserSpec(DeviceSpec):
    """A scanning laser range finder.

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
        Nearer surfaces read `range_min`; rays that hit nothing read `range_max`; m.
    flipped : bool
        Mounted upside down: readings are served clockwise until a client configures the
        scan.
    range_noise : float
        Half-width of the uniform error of each range, m.
    range_deviation : float
        Standard deviation of the Gaussian error of each range, m. It comes in addition
        to the uniform one.
    range_share : float
        Part of this standard deviation that grows with the range, m for each m of
        range: σ² = range_deviation² + (range_share · r)².
    angle_noise : float
        Half-width of the uniform error of each ray's bearing, rad, drawn for every
        scan.
    reflector : ReflectorRule
        Treatment of bright returns.
    update_rate : float
        How often interfaces that publish by themselves (ROS) take a scan, Hz of
        simulated time; 0: in every step. Who asks for a reading (programs, Pioneer
        clients) gets that of the present state at any time, or the one that
        `measurement_rate` and `latency` say.
    measurement_rate : float
        How often it measures, Hz of simulated time; 0: in every step. In between all
        who read it get the last measurement, with its stamp; a latency begins with the
        measurement. Measurement k is k / rate after the beginning of time; in a
        simulation the first step at or after that. A laser with fewer measurements than
        steps takes them read or not.
    latency : float
        A reading can be had from so long after its measurement on, s of simulated time;
        in a simulation whole steps, to the nearest. Its stamp is that of the
        measurement. A laser with latency measures in every step, read or not.
    jitter : float
        Half-width of the uniform error of that time, s; drawn for each scan. Scans
        never overtake each other.
    missing : float
        Share of the rays, 0 … 1, that get no return although there is something: drawn
        for each ray of each scan. They read `range_max`.
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

    __setstate__ = set_fields

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        check_name(self.type_name, "laser model", ModelError)
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise ModelError(
                f"laser {self.type_name}: samples must be 1 … {MAX_SAMPLES}, found {self.samples}"
            )

        if not 0.0 <= self.range_min < self.range_max:
            raise ModelError(
                f"laser {self.type_name}: range must be [min, max] with 0 ≤ min "
                f"< max, found [{self.range_min}, {self.range_max}]"
            )

        if not 0.0 <= self.fov <= 2.0 * math.pi + 1e-9:
            raise ModelError(
                f"laser {self.type_name}: field of view must be within 0…360°, "
                f"found {self.fov:.3f} rad"
            )

        check_rate(f"laser {self.type_name}", self.update_rate)
        check_rate(f"laser {self.type_name}", self.measurement_rate, "measurement_rate")
        check_latency(f"laser {self.type_name}", self.latency, self.jitter)
        _check_missing(f"laser {self.type_name}", self.missing)
        for name, most in (("range_deviation", MAX_DEVIATION_M), ("range_share", 1.0)):
            if not 0.0 <= getattr(self, name) <= most:
                raise ModelError(
                    f"laser {self.type_name}: {name} must be from 0 to {most:g}, "
                    f"found {getattr(self, name):g}"
                )

    @property
    def increment(self) -> float:
        """Bearing step between neighbouring rays, rad; 0 for a single ray."""
        return self.fov / (self.samples - 1) if self.samples > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transducer:
    """One sonar transducer.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    connected : bool
        An unconnected slot always reads the greatest range.
    range_min, range_max, fov, noise : float or None
        As those of `SonarSpec`, where this one differs from the others of its ring.
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
    """A ring of sonar transducers.

    Attributes
    ----------
    type_name : str
        Name of the device type as reported to clients.
    transducers : tuple of Transducer
        In the order of their index on the wire.
    fov : float
        Opening angle of a transducer's cone, rad (used by the ``closest`` projection).
    range_min, range_max : float
        Nearer surfaces read `range_min`, none reads `range_max`; m. Bounds of those of
        all transducers.
    noise : float
        Half-width of the uniform error of readings other than `range_max`, m.
    rays : int
        Rays cast over the cone by each transducer, of which the shortest counts; 1 is
        the central ray alone (SEN-017, SEN-018). A transducer with a cone of its own
        has as many as keep their spacing.
    update_rate, measurement_rate : float
        As those of `LaserSpec`, Hz.
    latency, jitter, missing : float
        As those of `LaserSpec`, s, s, and of transducers.
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
                f"sonar {self.type_name}: rays must be 1 … {MAX_SONAR_RAYS}, found {self.rays}"
            )

        check_rate(f"sonar {self.type_name}", self.update_rate)
        check_rate(f"sonar {self.type_name}", self.measurement_rate, "measurement_rate")
        check_latency(f"sonar {self.type_name}", self.latency, self.jitter)
        _check_missing(f"sonar {self.type_name}", self.missing)
        for i, t in enumerate(self.transducers):
            low, high = self.limits_of(t)
            if t.connected and not self.range_min <= low < high <= self.range_max:
                raise ModelError(
                    f"sonar {self.type_name}: transducer {i}: range must be "
                    "within that of the ring, "
                    f"[{self.range_min}, {self.range_max}], found [{low}, {high}]"
                )

            if t.fov is not None and not 0.0 <= t.fov <= 2.0 * math.pi + 1e-9:
                raise ModelError(
                    f"sonar {self.type_name}: transducer {i}: expected a cone of "
                    f"0…360°, found {t.fov:.3f} rad"
                )

    def limits_of(self, transducer: Transducer) -> tuple[float, float]:
        """Range limits (min, max) of a transducer, m."""
        low, high = transducer.range_min, transducer.range_max
        return (
            self.range_min if low is None else low,
            self.range_max if high is None else high,
        )

    def rays_of(self, transducer: Transducer) -> int:
        """Number of rays over the cone of a transducer."""
        if self.rays == 1 or not transducer.connected:
            return 1
        if transducer.fov is None or not self.fov:
            return self.rays
        return min(
            MAX_SONAR_RAYS,
            max(1, round(transducer.fov / self.fov * (self.rays - 1)) + 1),
        )
