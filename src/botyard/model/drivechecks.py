"""Check of the parts of a robot model that depend on its kind of drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from botyard.errors import ModelError, WorldError
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Drive, FourWheels, Kinematics, Steering
from botyard.model.trailers import MAX_TRAILERS, TrailerSpec
from botyard.numerics.elementary import tan

MAX_WHEEL_RATIO = 2.0
"""Largest ratio of the diameters of two wheels; its inverse is the smallest."""
DRIVES_WITH: Final[Mapping[str, tuple[Drive, ...]]] = {
    "steering": (Drive.ACKERMANN, Drive.TRICYCLE),
    "wheels": (Drive.SKID, Drive.MECANUM),
}
"""Drives that have a part of a robot model, by the name of the part; all others lack it."""


class DriveParts(Protocol):
    """Parts of a robot model that `check_drive` compares; see `RobotSpec`."""

    @property
    def name(self) -> str: ...
    @property
    def drive(self) -> Drive: ...
    @property
    def wheel_ratio(self) -> float: ...
    @property
    def kinematics(self) -> Kinematics: ...
    @property
    def steering(self) -> Steering | None: ...
    @property
    def wheels(self) -> FourWheels | None: ...
    @property
    def trailers(self) -> tuple[TrailerSpec, ...]: ...
    @property
    def dynamics(self) -> DynamicsSpec | None: ...


def check_drive(spec: DriveParts) -> None:
    """Check that wheels and steering of a robot model fit its kind of drive.

    Parameters
    ----------
    spec : DriveParts
        Model of the robot.

    Raises
    ------
    ModelError
        A part is missing, does not belong to the drive, or is out of its range.
    """
    if not 1.0 / MAX_WHEEL_RATIO <= spec.wheel_ratio <= MAX_WHEEL_RATIO:
        raise ModelError(
            f"robot {spec.name}: odometry.wheel_ratio must be from "
            f"{1.0 / MAX_WHEEL_RATIO:g} to {MAX_WHEEL_RATIO:g}, "
            f"found {spec.wheel_ratio:g}"
        )

    # UMBmark's model of unequal wheels needs two wheels on one axle.
    if spec.wheel_ratio != 1.0 and not spec.kinematics.measures_by_pair:
        raise ModelError(
            f"robot {spec.name}: odometry.wheel_ratio needs two driven wheels (drive "
            f"diff, skid or ackermann), found the drive {spec.drive.name.lower()}"
        )

    drive = spec.drive.name.lower()
    for part, found in (("steering", spec.steering), ("wheels", spec.wheels)):
        is_needed = spec.drive in DRIVES_WITH[part]
        if is_needed and found is None:
            raise ModelError(
                f"robot {spec.name}: drive {drive}: expected a table [{part}], found none"
            )
        if found is not None and not is_needed:
            names = " and ".join(one.name.lower() for one in DRIVES_WITH[part])
            raise ModelError(
                f"robot {spec.name}: expected {part} with the drives {names} alone, "
                f"found {found!r} with the drive {drive}"
            )

    wheels = spec.wheels
    if wheels is not None and wheels.slide and spec.kinematics.moves_sideways:
        raise ModelError(
            f"robot {spec.name}: wheels: expected slide with the drive skid alone, "
            f"found {wheels.slide:g} m"
        )

    if len(spec.trailers) > MAX_TRAILERS:
        raise ModelError(
            f"robot {spec.name}: expected at most {MAX_TRAILERS} trailers, found "
            f"{len(spec.trailers)}"
        )
    # Trailers follow their hitch exactly and have no mass, so they need a body that the
    # engine moves without forces.
    if spec.trailers and (spec.dynamics is not None or not spec.kinematics.drives):
        raise ModelError(
            f"robot {spec.name}: trailers: expected a robot with a drive and without "
            f"dynamics, found {'one with dynamics' if spec.dynamics else 'no drive'}"
        )

    steering = spec.steering
    if (
        steering is not None
        and spec.drive is Drive.ACKERMANN
        and spec.kinematics.half_track * tan(steering.limit) >= abs(steering.wheelbase)
    ):
        raise ModelError(
            f"robot {spec.name}: expected a steering limit at which the inner wheel "
            f"turns by less than 90°, found {steering.limit:g} rad with a wheelbase "
            f"of {steering.wheelbase:g} m and a track of {spec.kinematics.track:g} m"
        )


def check_drives(name: str, kinematics: Kinematics, *, turns: bool = False) -> None:
    """Check that a robot of the world has a drive: trailers and boxes have none.

    Parameters
    ----------
    name : str
        Name of the robot.
    kinematics : Kinematics
        Kinematics of its model.
    turns : bool
        Whether it must also turn.

    Raises
    ------
    WorldError
        The robot has no drive, or cannot turn.
    """
    if not kinematics.drives or (turns and kinematics.limits.max_speed.a <= 0.0):
        what = "drives and turns" if turns else "drives"
        raise WorldError(f"expected a robot that {what}, found {name}, which does not")


__all__ = ["DRIVES_WITH", "MAX_WHEEL_RATIO", "check_drive", "check_drives"]
