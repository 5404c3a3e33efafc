"""Steered axle of a car-like drive."""

from __future__ import annotations

from dataclasses import dataclass

from botyard.errors import ModelError
from botyard.model.parameters import check_types, parameter, range_problems
from botyard.units import from_deg

MIN_WHEELBASE = 1e-3
"""Least distance of the steered axle from the fixed one, m."""
MAX_WHEELBASE = 100.0
"""Greatest distance of the steered axle from the fixed one, m."""
MAX_STEERING = from_deg(89.0)
"""Greatest steering angle, rad: at 90° the wheels would block the axle."""
MAX_STEERING_OFFSET = from_deg(30.0)
"""Greatest error of a steering angle, rad."""
MAX_STEERING_RATE = 1000.0
"""Greatest rate of a steering angle, rad/s; a larger value probably has another unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """Steered axle of a car-like drive.

    The origin of the robot is the centre of its fixed axle. The steering angle is the
    yaw of a virtual wheel in the middle of the steered axle, positive to the left
    (REP-103; ackermann_msgs/AckermannDrive).

    Attributes
    ----------
    wheelbase : float
        Distance of the steered axle in front of the fixed one, m; negative: behind it, as
        on a forklift. A steering angle to the left then turns the robot to the right.
    limit : float
        Greatest steering angle to both sides, rad.
    rate : float
        Greatest rate of the steering angle, rad/s; 0: unlimited.
    offset : float
        Error of the steering angle: true angle minus the angle that the robot measures,
        rad.
    by_angle : bool
        Whether the turn rate of velocity commands, such as ``angular.z`` of a Twist,
        carries the steering angle instead, rad (``cmd_angle_instead_rotvel`` of
        teb_local_planner).

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    wheelbase: float = parameter(unit="m", low=-MAX_WHEELBASE, high=MAX_WHEELBASE)
    limit: float = parameter(unit="rad", low=0.0, high=MAX_STEERING)
    rate: float = parameter(
        0.0, unit="rad/s", low=0.0, high=MAX_STEERING_RATE, is_brief=True
    )
    offset: float = parameter(
        0.0,
        unit="rad",
        low=-MAX_STEERING_OFFSET,
        high=MAX_STEERING_OFFSET,
        is_brief=True,
    )
    by_angle: bool = parameter(False, is_brief=True)

    def __post_init__(self) -> None:
        check_types(self)
        for problem in range_problems(self):
            raise ModelError(f"steering: {problem}")
        if abs(self.wheelbase) < MIN_WHEELBASE:
            raise ModelError(
                f"steering: wheelbase must be at least {MIN_WHEELBASE:g} m, found "
                f"{self.wheelbase:g}"
            )

        if self.limit + abs(self.offset) > MAX_STEERING:
            raise ModelError(
                "steering: limit and offset must be at most "
                f"{MAX_STEERING:g} rad together, found {self.limit:g} and {self.offset:g}"
            )


__all__ = [
    "MAX_STEERING",
    "MAX_STEERING_OFFSET",
    "MAX_STEERING_RATE",
    "MAX_WHEELBASE",
    "MIN_WHEELBASE",
    "Steering",
]
