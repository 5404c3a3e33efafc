"""Fiducial finder: detects marked bodies in line of sight (formats §4.3).

The finder also reads the identifiers of near marks. The module is an example of a sensor in a
single file: description, reading, and conversion for each interface.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.geometry import IDENTITY, Pose, relative, transform_point
from botyard.model.devices import Device, DeviceSpec, Field, Mark, RosMessage, parameter
from botyard.numerics import elementwise

if TYPE_CHECKING:
    from botyard.devices.view import View

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiducialFinderSpec(DeviceSpec):
    """Description of a sensor that detects marked bodies in line of sight (formats §4.3).

    The sensor reads the identifiers of near marks.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot frame, m and rad.
    range_min, range_max : float
        Range of detection, m.
    range_max_id : float
        Range up to which identifiers can be read, m.
    fov : float
        Field of view, rad.
    """

    type: str = field(default="fiducial_finder", init=False)
    pose: Pose = parameter(IDENTITY)
    range_min: float = parameter(0.0, unit="m", key="range", index=0)
    range_max: float = parameter(8.0, unit="m", key="range", index=1)
    range_max_id: float = parameter(5.0, unit="m", key="range_id")
    fov: float = parameter(math.pi, unit="rad")

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        if not 0.0 <= self.range_min < self.range_max:
            raise ModelError(
                "fiducial finder: range must be [min, max] with 0 ≤ min < max, "
                f"found [{self.range_min}, {self.range_max}]"
            )

        # The tolerance allows a full circle that was given in degrees.
        if not 0.0 < self.fov <= 2.0 * math.pi + 1e-9:
            raise ModelError(
                "fiducial finder: field of view must be greater than 0 and at most 360°, "
                f"found {math.degrees(self.fov):.6g}°"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fiducial:
    """Detected fiducial mark.

    Attributes
    ----------
    id : int
        Identifier; 0 if the mark is too far away to be read.
    range, bearing : float
        Polar coordinates of the centre in the sensor frame: m, rad counter-clockwise.
    pose : Pose
        Marked body in the sensor frame, m and rad.
    """

    id: int
    range: float
    bearing: float
    pose: Pose


class Seen(NamedTuple):
    """Marked bodies within range and field of view.

    Attributes
    ----------
    rows : (n,) int64
        Rows of the bodies.
    marks : (n,) int64
        Identifiers.
    ranges, bearings : (n,) float64
        Polar coordinates of the centres in the sensor frame: m, rad.
    clear : (n,) bool
        Whether nothing occludes the centre.
    """

    rows: I8
    marks: I8
    ranges: F8
    bearings: F8
    clear: NDArray[np.bool_]


def marks_ahead(view: View, low: float, high: float, fov: float) -> Seen:
    """Return the marked bodies within range and field of view of a sensor, by row.

    Parameters
    ----------
    view : View
        View of the world from the sensor.
    low, high : float
        Range of the centres, m.
    fov : float
        Field of view, rad.
    """
    state, at, marks = view.state, view.pose, view.fiducials
    rows = np.flatnonzero(marks)
    # The finder does not detect its own robot.
    rows = rows[rows != view.row]
    dx, dy = state.pose[rows, 0] - at.x, state.pose[rows, 1] - at.y
    ranges = elementwise.hypot(dx, dy)
    bearings = elementwise.atan2(dy, dx)

    # Bearing in the sensor frame, wrapped to [−π, π)
    turned = np.remainder(bearings - at.th + math.pi, 2.0 * math.pi) - math.pi
    near = (
        (ranges >= low)
        & (ranges <= high)
        # The tolerance keeps a mark at the exact edge of a full circle.
        & (np.abs(turned) <= fov / 2 + 1e-9)
    )
    rows, ranges, bearings, turned = (
        rows[near],
        ranges[near],
        bearings[near],
        turned[near],
    )
    if not len(rows):
        return Seen(rows, rows, ranges, turned, np.zeros(0, np.bool_))
    # Rays only to marks in range: a ray for each body of the world would cost too much.
    met, what = view.sight(bearings, high)
    # Bodies without a laser return do not stop the ray; it then ends behind the mark.
    clear = (what == rows) | (met >= ranges - 1e-9)
    return Seen(rows, marks[rows], ranges, turned, clear)


def find_fiducials(spec: FiducialFinderSpec, view: View) -> list[Fiducial]:
    """Return the marks that the finder detects, nearest first.

    A mark is detected if the centre of its body is within range and field of view, and
    nothing occludes it.

    Parameters
    ----------
    spec : FiducialFinderSpec
        Description of the finder.
    view : View
        View of the world from the finder.
    """
    rows, marks, ranges, turned, clear = marks_ahead(
        view, spec.range_min, spec.range_max, spec.fov
    )
    if not len(rows):
        return []
    at, pose = view.pose, view.state.pose
    seem, turned = view.measured(ranges, turned)
    return [
        Fiducial(
            # The true range decides, so that noise does not make identifiers flicker.
            id=int(marks[i]) if ranges[i] <= spec.range_max_id else 0,
            range=float(seem[i]),
            bearing=float(turned[i]),
            pose=relative(at, Pose(*pose[rows[i]].tolist())),
        )
        # A stable sort keeps the order of rows for equal distances, in every run.
        for i in np.argsort(ranges, kind="stable").tolist()
        if clear[i]
    ]


def _message(_: FiducialFinderSpec, found: list[Fiducial]) -> dict[str, Any]:
    return {
        "fiducials": [
            {"id": f.id, "range": f.range, "bearing": f.bearing, "pose": f.pose}
            for f in found
        ]
    }


def _marks(spec: FiducialFinderSpec, found: list[Fiducial]) -> list[Mark]:
    return [
        Mark(*transform_point(spec.pose, f.pose.x, f.pose.y), str(f.id or "?"))
        for f in found
    ]


FIDUCIAL_FINDER: Final = Device(
    name="fiducial_finder",
    about="fiducial marks in sight",
    spec=FiducialFinderSpec,
    read=find_fiducials,
    fields=(
        Field("id", kind=int),
        Field("range", "m"),
        Field("bearing", "rad"),
        Field("x", "m"),
        Field("y", "m"),
        Field("th", "rad"),
    ),
    rows=lambda found: [(f.id, f.range, f.bearing, *f.pose) for f in found],
    ros=RosMessage(
        topic="fiducials",
        type_name="botyard_msgs/FiducialArray",
        fields=_message,
        frame="fiducial",
        definitions={
            "botyard_msgs/Fiducial": "int32 id\nfloat64 range\nfloat64 "
            "bearing\ngeometry_msgs/Pose pose",
            "botyard_msgs/FiducialArray": "std_msgs/Header "
            "header\nbotyard_msgs/Fiducial[] fiducials",
        },
    ),
    marks=_marks,
)
