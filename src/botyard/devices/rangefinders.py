"""Single range finders with a cone: ultrasonic and infrared sensors.

A cone is filled with rays, of which the shortest counts. Sound is reflected away by a smooth
surface that it meets at a large angle, so that a wall can be lost although it is near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botyard.errors import ModelError
from botyard.geometry import IDENTITY, Pose
from botyard.model.beams import PLAIN_OPTICS, Bundle, Optics
from botyard.model.devices import Device, DeviceSpec, Field, RosMessage, parameter
from botyard.model.obstacles import Visible

if TYPE_CHECKING:
    from botyard.devices.view import View

MAX_RAYS: Final = 1000
"""Highest number of rays of a cone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UltrasonicSpec(DeviceSpec):
    """Description of an ultrasonic range finder.

    The defaults are the HC-SR04: 0.02 to 4 m, 15° (its data sheet, Elecfreaks).

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    fov : float
        Opening angle of the cone, rad.
    range_min, range_max : float
        Range limits, m. A nearer surface reads `range_min`; without an echo the reading is
        `range_max`.
    rays : int
        Number of rays over the cone, edges included; 1: only its axis.
    max_incidence : float
        Greatest angle of incidence, rad, at which a surface returns an echo.
    noise : float
        Half-width of the uniform error of a range, m.
    range_deviation, range_share : float
        Standard deviation of its Gaussian error, m, and the part that grows with the range,
        see `botyard.model.sensors.LaserSpec`.
    missing : float
        Fraction of readings without an echo, 0 to 1.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="ultrasonic", init=False)
    pose: Pose = parameter(IDENTITY)
    fov: float = parameter(math.radians(15), unit="rad", low=0.0, high=math.pi)
    range_min: float = parameter(0.02, unit="m", key="range", index=0)
    range_max: float = parameter(4.0, unit="m", key="range", index=1)
    rays: int = parameter(15, low=1, high=MAX_RAYS)
    max_incidence: float = parameter(math.pi / 2, unit="rad", low=0.0, high=math.pi / 2)
    noise: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    range_deviation: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    range_share: float = parameter(0.0, low=0.0, high=1.0)
    missing: float = parameter(0.0, low=0.0, high=1.0)
    update_rate: float = parameter(0.0, unit="Hz", low=0.0, high=1e6)

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        if not 0.0 <= self.range_min < self.range_max:
            raise ModelError(
                f"{self.type}: range must be [min, max] with 0 ≤ min < max, "
                f"found [{self.range_min}, {self.range_max}]"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraredSpec(UltrasonicSpec):
    """Description of an infrared range finder, which detects what lasers detect.

    Its attributes are the ones of `UltrasonicSpec`. The default ranges are from the data sheet of
    the Sharp GP2Y0A21YK0F: 0.1 to 0.8 m.
    """

    type: str = field(default="infrared", init=False)
    fov: float = parameter(math.radians(5), unit="rad", low=0.0, high=math.pi)
    range_min: float = parameter(0.1, unit="m", key="range", index=0)
    range_max: float = parameter(0.8, unit="m", key="range", index=1)
    rays: int = parameter(5, low=1, high=MAX_RAYS)


def cone(spec: UltrasonicSpec, errs: bool) -> list[Bundle]:
    """Return the beams of a range finder: one bundle, of which the shortest beam counts.

    Parameters
    ----------
    spec : UltrasonicSpec
        Description of the range finder.
    errs : bool
        Whether readings have errors.
    """
    share = 1.0 if errs else 0.0
    return [
        Bundle(
            mount=spec.pose,
            # A single ray is the axis; two or more include both edges of the cone.
            angle0=-spec.fov / 2 if spec.rays > 1 else 0.0,
            step=spec.fov / (spec.rays - 1) if spec.rays > 1 else 0.0,
            count=spec.rays,
            r_min=spec.range_min,
            r_max=spec.range_max,
            r_noise=share * spec.noise,
            r_std=share * spec.range_deviation,
            r_share=share * spec.range_share,
            missing=share * spec.missing,
            shortest=spec.rays > 1,
            optics=PLAIN_OPTICS
            if spec.max_incidence >= math.pi / 2
            else Optics(max_incidence=spec.max_incidence, errs=errs),
        )
    ]


def _read(_: UltrasonicSpec, view: View) -> float:
    return float(view.ranges[0])


def _message(radiation: int, spec: UltrasonicSpec, found: float) -> dict[str, Any]:
    """Return a sensor_msgs/Range; it is infinite without an echo (REP-117)."""
    share = spec.range_share * found
    return {
        "radiation_type": radiation,
        "field_of_view": spec.fov,
        "min_range": spec.range_min,
        "max_range": spec.range_max,
        "range": found if found < spec.range_max else math.inf,
        "variance": spec.range_deviation * spec.range_deviation
        + share * share
        + spec.noise * spec.noise / 3.0,
    }


def _finder(
    name: str,
    about: str,
    spec: type[UltrasonicSpec],
    senses: Visible,
    radiation: int,
) -> Device[Any, Any]:
    """Return a kind of range finder.

    Parameters
    ----------
    name, about : str
        Name of the kind, which is also its ROS topic and frame, and its description.
    spec : type
        Class of its parameters.
    senses : Visible
        Class of obstacles that return its waves.
    radiation : int
        Its `radiation_type` in sensor_msgs/Range.
    """
    return Device(
        name=name,
        about=about,
        spec=spec,
        read=_read,
        fields=(Field("range", "m"),),
        rows=lambda found: [(found,)],
        beams=cone,
        senses=senses,
        ros=RosMessage(
            topic=name,
            type_name="sensor_msgs/Range",
            fields=lambda one, found: _message(radiation, one, found),
            frame=name,
        ),
        layer="sonar",
    )


ULTRASONIC: Final = _finder(
    "ultrasonic",
    "range of an ultrasonic sensor",
    UltrasonicSpec,
    Visible.SONAR,
    # ULTRASOUND of sensor_msgs/Range
    0,
)
"""Kind of device for ultrasonic range finders."""
INFRARED: Final = _finder(
    "infrared",
    "range of an infrared sensor",
    InfraredSpec,
    Visible.LASER,
    # INFRARED of sensor_msgs/Range
    1,
)
"""Kind of device for infrared range finders."""
