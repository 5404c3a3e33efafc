"""Wheels of drives with four driven wheels: skid steering and Mecanum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from botyard.errors import ModelError
from botyard.model.parameters import check_types, parameter, range_problems

MIN_LENGTH: Final = 1e-3
"""Least distance of the front axle from the rear one, m."""
MAX_LENGTH: Final = 100.0
"""Greatest distance of the front axle from the rear one, m."""
MAX_TRACK_FACTOR: Final = 10.0
"""Greatest effective track as a multiple of the track."""
MAX_SLIP: Final = 0.9
"""Greatest share of the travel of a wheel that slip consumes."""
MAX_WHEEL_ERROR: Final = 0.5
"""Greatest proportional error of the diameter of a wheel."""
WHEELS: Final = ("front_left", "front_right", "rear_left", "rear_right")
"""Names of the wheels in their order."""
AHEAD: Final = (1.0, 1.0, -1.0, -1.0)
"""Signs of the places of the wheels along the body: front and rear."""
LEFT: Final = (1.0, -1.0, 1.0, -1.0)
"""Signs of the places of the wheels across the body: left and right."""
ROLLERS: Final = (-1.0, 1.0, 1.0, -1.0)
"""Signs with which a velocity to the left turns the wheels of a Mecanum drive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FourWheels:
    """Four driven wheels on two axles, front left, front right, rear left, rear right.

    Attributes
    ----------
    wheelbase : float
        Distance of the front axle from the rear one, m. The origin of the robot is in the
        middle.
    track_factor : float
        Effective track divided by the track: in a turn the wheels also scrub sideways, and
        turn farther by this factor (``wheel_separation_multiplier`` of ros_control).
    slide : float
        Place of the centre of rotation in front of the origin, m: a body that turns slides
        sideways by −slide · ω (x of the instantaneous centres of rotation in Mandow et al.,
        "Experimental kinematics for wheeled skid-steer mobile robots", IROS 2007). Drives
        that can move sideways have 0.
    slip : float
        Share of the travel of the wheels that slip consumes: odometry measures the travel
        of the wheels.
    errors : tuple of float
        Proportional error of the diameter of each wheel: true diameter divided by the
        nominal one, minus 1.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    wheelbase: float = parameter(unit="m", low=MIN_LENGTH, high=MAX_LENGTH)
    track_factor: float = parameter(1.0, low=1.0, high=MAX_TRACK_FACTOR, is_brief=True)
    slide: float = parameter(
        0.0, unit="m", low=-MAX_LENGTH, high=MAX_LENGTH, is_brief=True
    )
    slip: float = parameter(0.0, low=0.0, high=MAX_SLIP, is_brief=True)
    errors: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0, 0.0), low=-MAX_WHEEL_ERROR, high=MAX_WHEEL_ERROR, is_brief=True
    )

    def __post_init__(self) -> None:
        check_types(self)
        for problem in range_problems(self):
            raise ModelError(f"wheels: {problem}")
        if len(self.errors) != len(WHEELS):
            raise ModelError(
                f"wheels: errors: expected {len(WHEELS)} numbers, found {len(self.errors)}"
            )

    def speeds(
        self, v: float, vy: float, w: float, lever: float, has_rollers: bool
    ) -> tuple[float, ...]:
        """Return the speed of each wheel on the floor, m/s.

        A Mecanum wheel moves with v ∓ vy ∓ l·ω, a wheel of a skid-steered robot with
        v ∓ l·ω. The function also converts distances: m and rad to m.

        Parameters
        ----------
        v, vy : float
            Velocity forward and to the left, m/s.
        w : float
            Turn rate, rad/s, positive counter-clockwise.
        lever : float
            Lever l of a turn, m, see `botyard.model.kinematics.Kinematics.lever`.
        has_rollers : bool
            Whether the wheels are Mecanum wheels.
        """
        across = vy if has_rollers else 0.0
        return tuple(
            v + roller * across - left * lever * w
            for roller, left in zip(ROLLERS, LEFT, strict=True)
        )

    def velocity(
        self, speeds: tuple[float, ...], lever: float, has_rollers: bool
    ) -> tuple[float, float, float]:
        """Return the velocity of the body for given speeds of the wheels.

        It is the inverse of `speeds`. Four speeds that do not fit together give the
        velocity of least squares.

        Parameters
        ----------
        speeds : tuple of float
            Speeds of the four wheels on the floor, m/s; positive: forward.
        lever, has_rollers
            See `speeds`.

        Returns
        -------
        v, vy, w : float
            Velocity forward and to the left, m/s, and turn rate, rad/s.
        """
        along = across = turned = 0.0
        for speed, roller, left in zip(speeds, ROLLERS, LEFT, strict=True):
            along += speed
            across += roller * speed
            turned -= left * speed

        return (
            0.25 * along,
            0.25 * across if has_rollers else 0.0,
            0.25 * turned / lever,
        )

    def measured(self, lever: float, has_rollers: bool) -> tuple[float, ...]:
        """Return the matrix from a displacement of the body to its odometry, row by row.

        Wheels that slip, or have errors of their diameters, travel farther or less than the
        body. Odometry computes with the travel of all four as if it were exact.

        Parameters
        ----------
        lever, has_rollers
            See `speeds`.

        Returns
        -------
        tuple of float
            Nine numbers: a row for each measured motion (forward, left, turn), with a
            column for each true motion (forward, left, turn).
        """
        columns = []
        for unit in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):
            rolled = tuple(
                speed / ((1.0 + error) * (1.0 - self.slip))
                for speed, error in zip(
                    self.speeds(*unit, lever, has_rollers), self.errors, strict=True
                )
            )
            columns.append(self.velocity(rolled, lever, has_rollers))

        return tuple(columns[j][i] for i in range(3) for j in range(3))


__all__ = [
    "AHEAD",
    "LEFT",
    "MAX_LENGTH",
    "MAX_SLIP",
    "MAX_TRACK_FACTOR",
    "MAX_WHEEL_ERROR",
    "MIN_LENGTH",
    "ROLLERS",
    "WHEELS",
    "FourWheels",
]
