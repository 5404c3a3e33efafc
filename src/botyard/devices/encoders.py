"""Encoders of the two driven wheels (UNS-011): distances travelled by odometry.

They do not jump when the robot is placed elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from botyard.model.devices import Device, DeviceSpec, Field, PioneerFields
from botyard.model.kinematics import Kinematics

if TYPE_CHECKING:
    from botyard.devices.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodersSpec(DeviceSpec):
    """Encoders of the driven wheels.

    They have no parameters: the robot defines wheels and scales.
    """

    type: str = field(default="encoders", init=False)


class Wheel(NamedTuple):
    """Wheel of a robot.

    Attributes
    ----------
    name : str
        ``left`` or ``right``.
    distance : float
        Signed distance since the robot was added, m.
    speed : float
        Forward speed, m/s.
    angle : float
        The same distance as rotation of the wheel, rad.
    rate : float
        Rotation rate of the wheel, rad/s.
    """

    name: str
    distance: float
    speed: float
    angle: float
    rate: float


def wheels(
    path: tuple[float, float], velocity: tuple[float, float], kinematics: Kinematics
) -> list[Wheel]:
    """Return the left and the right wheel of a robot.

    Parameters
    ----------
    path : (float, float)
        Signed distance, m, and rotation, rad.
    velocity : (float, float)
        Forward velocity, m/s, and turn rate, rad/s.
    kinematics : Kinematics
        Kinematics of the robot, for track width and wheel radius.
    """
    # One formula serves for distances and for speeds.
    distances, speeds = (
        kinematics.wheel_speeds(*path),
        kinematics.wheel_speeds(*velocity),
    )
    radius = kinematics.wheel_radius
    return [
        Wheel(name, distance, speed, distance / radius, speed / radius)
        for name, distance, speed in zip(
            ("left", "right"), distances, speeds, strict=True
        )
    ]


def _read(_: EncodersSpec, view: View) -> list[Wheel]:
    state, row, robot = view.state, view.row, view.robot
    forward, turned = state.path[row].tolist()
    v, _left, w = state.vel[row].tolist()
    return wheels((forward, turned), (v, w), robot.kinematics)


ENCODERS: Final = Device(
    name="encoders",
    about="distances travelled by the driven wheels",
    spec=EncodersSpec,
    read=_read,
    fields=(Field("wheel", kind=str), Field("distance", "m"), Field("speed", "m/s")),
    rows=lambda found: [wheel[:3] for wheel in found],
    pioneer=PioneerFields(
        wheels=lambda _, found: (found[0].distance, found[1].distance)
    ),
    on_page=False,
)
