"""Encoders of the driven wheels (UNS-011), which measure distances by odometry.

Their values do not jump when the robot is placed elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from botyard.model.devices import Device, DeviceSpec, Field, PioneerFields
from botyard.model.kinematics import Kinematics
from botyard.model.robotstate import wheel_path

if TYPE_CHECKING:
    from botyard.devices.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodersSpec(DeviceSpec):
    """Description of the encoders of the driven wheels.

    The description has no parameters: the robot's model defines wheels and scales.
    """

    type: str = field(default="encoders", init=False)


class Wheel(NamedTuple):
    """State of one wheel of a robot.

    Attributes
    ----------
    name : str
        ``left`` or ``right``; ``front_left`` … of a drive with four wheels.
    distance : float
        Signed distance since the robot was added, m.
    speed : float
        Forward speed, m/s.
    angle : float
        Rotation of the wheel that corresponds to `distance`, rad.
    rate : float
        Rotation rate of the wheel, rad/s.
    """

    name: str
    distance: float
    speed: float
    angle: float
    rate: float


def wheels(
    path: tuple[float, float, float],
    velocity: tuple[float, float, float],
    kinematics: Kinematics,
) -> list[Wheel]:
    """Return the state of the driven wheels of a robot.

    Parameters
    ----------
    path : (float, float, float)
        Signed distance forward and to the left, m, and rotation, rad.
    velocity : (float, float, float)
        Velocity forward and to the left, m/s, and turn rate, rad/s.
    kinematics : Kinematics
        Kinematics of the robot, for the places and the radius of its wheels.

    Returns
    -------
    list of Wheel
        Left, then right; of four wheels the front ones first.
    """
    # The formula is the same for distances and for speeds.
    distances, speeds = (
        kinematics.all_wheel_speeds(*path),
        kinematics.all_wheel_speeds(*velocity),
    )
    radius = kinematics.wheel_radius
    return [
        Wheel(name, distance, speed, distance / radius, speed / radius)
        for (name, _, _), distance, speed in zip(
            kinematics.wheel_places, distances, speeds, strict=True
        )
    ]


def _sides(found: list[Wheel]) -> tuple[float, float]:
    """Return the mean distances of the left and of the right wheels, m."""
    # Wheels alternate between left and right.
    left, right = found[::2], found[1::2]
    return (
        math.fsum(one.distance for one in left) / len(left),
        math.fsum(one.distance for one in right) / len(right),
    )


def _read(_: EncodersSpec, view: View) -> list[Wheel]:
    state, row, kinematics = view.state, view.row, view.robot.kinematics
    v, left, w = state.vel[row].tolist()
    return wheels(wheel_path(state, row, kinematics), (v, left, w), kinematics)


ENCODERS: Final = Device(
    name="encoders",
    about="distances travelled by the driven wheels",
    spec=EncodersSpec,
    read=_read,
    fields=(Field("wheel", kind=str), Field("distance", "m"), Field("speed", "m/s")),
    rows=lambda found: [wheel[:3] for wheel in found],
    pioneer=PioneerFields(wheels=lambda _, found: _sides(found)),
    on_page=False,
)
