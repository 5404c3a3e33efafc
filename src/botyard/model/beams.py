"""Beams of range sensors, and the rule by which they recognise retro-reflectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from botyard.geometry import IDENTITY, Pose
from botyard.model.parameters import check_types, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorRule:
    """How a laser reports retro-reflectors (objects whose laser return is greater than
    1).

    Attributes
    ----------
    max_range : float
        Beyond this range, m, a reflector looks like any other surface.
    max_incidence : float
        A reflector hit at a larger angle of incidence (from its normal) than this, rad,
        looks ordinary, too.
    strength : int
        The laser return reported for a reflector of return 2; others are reported as
        they are.
    """

    max_range: float = parameter(math.inf, unit="m", is_brief=True)
    max_incidence: float = parameter(math.pi, unit="rad", is_brief=True)
    strength: int = parameter(2, is_brief=True)

    def __post_init__(self) -> None:
        check_types(self)


DEFAULT_RULE: Final = ReflectorRule()
"""Every reflector is recognised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Beams from one origin.

    Attributes
    ----------
    mount : Pose
        Origin and direction in the body's frame, m and rad.
    angle0, step : float
        Bearing of the first beam and spacing, rad.
    count : int
        Number of beams.
    r_min, r_max : float
        Range limits, m.
    r_noise, a_noise : float
        Half-widths of the uniform errors of range, m, and of bearing, rad.
    r_std, r_share : float
        Standard deviation of the Gaussian error of range, m, and its part in proportion
        to the range, m for each m.
    missing : float
        Share of readings without a return although there is something, 0 … 1.
    shortest : bool
        Give one reading, the shortest of all beams, instead of one for each.
    reflector : ReflectorRule
        Treatment of bright returns.
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

    @property
    def n_readings(self) -> int:
        """Number of readings that it gives."""
        return 1 if self.shortest else self.count
