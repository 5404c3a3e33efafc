"""Beams of range sensors, and the rule by which a laser reports a reflector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from botyard.geometry import IDENTITY, Pose
from botyard.model.parameters import check_types, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorRule:
    """Conditions under which a laser reports a retro-reflector.

    A retro-reflector is an object whose laser return is greater than 1.

    Attributes
    ----------
    max_range : float
        Beyond this range, m, a reflector looks like any other surface.
    max_incidence : float
        At a larger angle of incidence, rad, a reflector also looks like any other
        surface. The angle is measured from the surface normal.
    strength : int
        Laser return reported for a reflector of return 2. Other returns are reported
        unchanged.
    """

    max_range: float = parameter(math.inf, unit="m", is_brief=True)
    max_incidence: float = parameter(math.pi, unit="rad", is_brief=True)
    # Defaults report every reflector unchanged.
    strength: int = parameter(2, is_brief=True)

    def __post_init__(self) -> None:
        check_types(self)


DEFAULT_RULE: Final = ReflectorRule()
"""Rule by which a laser recognises every reflector, at any range and angle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optics:
    """Timing and optics of a scanning lidar, which its own kernel simulates.

    Attributes
    ----------
    pace : float
        Delay of a beam for each rad by which its bearing exceeds the bearing of another
        beam, s/rad; negative for a lidar that turns clockwise; 0: all beams at one instant.
    white_range : float
        Range at which a white surface is just detected head-on, m; 0: each surface is
        detected.
    intensity : float
        Intensity reported for a white surface head-on; 0: laser returns are reported.
    echoes : int
        Highest number of echoes of a beam.
    max_incidence : float
        Greatest angle of incidence, rad, at which a surface returns an echo. A beam that meets
        a surface at a larger one is reflected away, as sound is.
    errs : bool
        Whether weak echoes are lost at random. Otherwise they are lost if the signal is
        below the threshold.
    """

    pace: float = 0.0
    white_range: float = 0.0
    intensity: float = 0.0
    echoes: int = 1
    max_incidence: float = math.pi / 2
    errs: bool = True


PLAIN_OPTICS: Final = Optics()
"""Optics of a sensor that measures all its beams at one instant, on surfaces of any material."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Group of beams of a range sensor with a common origin.

    Attributes
    ----------
    mount : Pose
        Origin and direction in the body's frame, m and rad.
    angle0, step : float
        Bearing of the first beam, and spacing of the beams, rad.
    count : int
        Number of beams.
    r_min, r_max : float
        Range limits, m.
    r_noise, a_noise : float
        Half-widths of the uniform errors of range, m, and of bearing, rad.
    r_std, r_share : float
        Standard deviation of the Gaussian range error: a constant part, m, and a part
        proportional to the range, m per m.
    missing : float
        Fraction of readings, 0 to 1, that return nothing although the beam hits an
        object.
    shortest : bool
        Whether the group gives one reading, the shortest of all beams, instead of one
        per beam.
    reflector : ReflectorRule
        Conditions for reporting bright returns.
    optics : Optics
        Timing and optics of a lidar.
    """

    mount: Pose = IDENTITY
    angle0: float = 0.0
    step: float = 0.0
    count: int = 1
    r_min: float = 0.0
    r_max: float = 8.0
    r_noise: float = 0.0
    a_noise: float = 0.0
    r_std: float = 0.0
    r_share: float = 0.0
    missing: float = 0.0
    shortest: bool = False
    reflector: ReflectorRule = ReflectorRule()
    optics: Optics = PLAIN_OPTICS

    @property
    def n_readings(self) -> int:
        """Number of readings: one for each echo of each beam, or 1 if `shortest`."""
        return 1 if self.shortest else self.count * self.optics.echoes

    @property
    def time_increment(self) -> float:
        """Time from one beam to the next, s; negative for a lidar that turns clockwise."""
        return self.optics.pace * self.step

    @property
    def lead(self) -> float:
        """Time by which the first beam precedes the end of the sweep, s."""
        return max(0.0, self.time_increment * (self.count - 1))
