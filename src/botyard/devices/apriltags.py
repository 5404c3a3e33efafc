"""Camera that estimates the poses of AprilTags, with the errors of its pixels.

The tags are the fiducial marks of bodies. A tag of the size s at the distance r has sides of
p = f s / r pixels, with the focal length f. If an edge errs by σ pixels:

- The bearing errs by σ / f.
- The distance errs by r σ / p = r² σ / (f s).
- The tag's angle θ to the line of sight follows from p cos θ. It errs by
  (σ / p) / max(sin θ, √(σ / p)): a tag seen head-on hardly changes its shape when it turns.

These follow from the pinhole camera (R. Hartley & A. Zisserman, *Multiple View Geometry*, §6.1)
by differentiation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from botyard.devices.fiducials import marks_ahead
from botyard.geometry import IDENTITY, Pose, relative, transform_point
from botyard.model.devices import Device, DeviceSpec, Field, Mark, RosMessage, parameter
from botyard.numerics.elementary import cosine_sine, sin, tan

if TYPE_CHECKING:
    from botyard.devices.view import View

NOISE, LOSS = 0, 1
"""Numbers of a camera's random sequences: errors of pixels, and tags that are missed."""
FACES: Final = {"one": 1, "two": 2, "four": 4}
"""Numbers of tags around a marked body, by the word in files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AprilTagSpec(DeviceSpec):
    """Description of a camera that detects AprilTags.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    fov : float
        Horizontal field of view, rad.
    width : int
        Width of the image, pixels.
    tag_size : float
        Edge of a tag, m.
    min_pixels : float
        Least width of a tag in the image that can be decoded, pixels. It bounds the range.
    max_angle : float
        Greatest angle between the normal of a tag and the line to the camera, rad.
    faces : int
        Number of equal tags around a marked body, the first one facing ahead: 1, 2 or 4.
    pixel_deviation : float
        Standard deviation of the position of an edge in the image, pixels.
    missing : float
        Fraction of detections that fail, 0 to 1.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="april_tags", init=False)
    pose: Pose = parameter(IDENTITY)
    fov: float = parameter(
        math.radians(60), unit="rad", low=0.01, high=math.radians(170)
    )
    width: int = parameter(640, low=1, high=100_000)
    tag_size: float = parameter(0.16, unit="m", low=1e-3, high=100.0)
    min_pixels: float = parameter(20.0, unit="pixels", low=0.1, high=1e5)
    max_angle: float = parameter(
        math.radians(70), unit="rad", low=0.0, high=math.pi / 2
    )
    faces: int = parameter(1, words=FACES)
    pixel_deviation: float = parameter(0.0, unit="pixels", low=0.0, high=1e3)
    missing: float = parameter(0.0, low=0.0, high=1.0)
    update_rate: float = parameter(0.0, unit="Hz", low=0.0, high=1e6)

    @property
    def focal(self) -> float:
        """Focal length, pixels."""
        return self.width / 2.0 / tan(self.fov / 2.0)

    @property
    def range_max(self) -> float:
        """Greatest range at which a tag seen head-on can be decoded, m."""
        return self.focal * self.tag_size / self.min_pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class AprilTag:
    """Detected tag.

    Attributes
    ----------
    id : int
        Identifier.
    pose : Pose
        Estimated pose in the frame of the camera, m and rad. The heading is the normal of the
        tag.
    pixels : float
        Width of the tag in the image, pixels.
    deviations : tuple of float
        Standard deviations along the line of sight and across it, m, and of the heading, rad.
    """

    id: int
    pose: Pose
    pixels: float
    deviations: tuple[float, float, float]


def deviations_of(
    spec: AprilTagSpec, r: float, angle: float
) -> tuple[float, float, float]:
    """Return the standard deviations of a pose along and across the line of sight; see the module.

    Parameters
    ----------
    spec : AprilTagSpec
        Description of the camera.
    r : float
        Range, m.
    angle : float
        Angle between the normal of the tag and the line to the camera, rad.

    Returns
    -------
    tuple of float
        m, m, rad.
    """
    share = spec.pixel_deviation * r / (spec.focal * spec.tag_size)
    turned = max(abs(sin(angle)), math.sqrt(share))
    return (
        r * share,
        r * spec.pixel_deviation / spec.focal,
        share / turned if share else 0.0,
    )


def find_tags(spec: AprilTagSpec, view: View) -> list[AprilTag]:
    """Return the tags that a camera detects, nearest first.

    A tag is detected if nothing hides the centre of its body, it faces the camera, and it is
    large enough in the image.

    Parameters
    ----------
    spec : AprilTagSpec
        Description of the camera.
    view : View
        View of the world from the camera.
    """
    seen = marks_ahead(view, 1e-3, spec.range_max, spec.fov)
    order = np.argsort(seen.ranges, kind="stable")
    noise, lost = view.normal(3 * len(order), NOISE), view.uniform(len(order), LOSS)
    found = []
    for k, i in enumerate(order.tolist()):
        fails = view.errs and 0.5 * (float(lost[k]) + 1.0) < spec.missing
        if not seen.clear[i] or fails:
            continue
        r, bearing = float(seen.ranges[i]), float(seen.bearings[i])
        body = relative(view.pose, Pose(*view.state.pose[seen.rows[i]].tolist()))
        # The face that is turned to the camera.
        back = bearing + math.pi
        step = 2.0 * math.pi / spec.faces
        heading = body.th + step * round((back - body.th) / step)
        if spec.faces == 1:
            heading = body.th
        angle = math.remainder(heading - back, 2.0 * math.pi)
        if abs(angle) > spec.max_angle:
            continue
        pixels = spec.focal * spec.tag_size * cosine_sine(angle)[0] / r
        if pixels < spec.min_pixels:
            continue

        deviations = deviations_of(spec, r, angle)
        along, across, turned = (
            d * float(e)
            for d, e in zip(deviations, noise[3 * k : 3 * k + 3], strict=True)
        )
        c, s = cosine_sine(bearing)
        far = r + along
        found.append(
            AprilTag(
                id=int(seen.marks[i]),
                pose=Pose(
                    c * far - s * across,
                    s * far + c * across,
                    math.remainder(heading + turned, 2.0 * math.pi),
                ),
                pixels=pixels,
                deviations=deviations,
            )
        )

    return found


def _covariance(tag: AprilTag) -> list[float]:
    """Return the covariance of a pose, 6 × 6, row by row: x, y, z and turns about them."""
    along, across, turned = (d * d for d in tag.deviations)
    r2 = tag.pose.x * tag.pose.x + tag.pose.y * tag.pose.y
    c, s = tag.pose.x / math.sqrt(r2), tag.pose.y / math.sqrt(r2)
    found = [0.0] * 36
    found[0] = c * c * along + s * s * across
    found[1] = found[6] = c * s * (along - across)
    found[7] = s * s * along + c * c * across
    found[35] = turned
    return found


def _message(spec: AprilTagSpec, found: list[AprilTag]) -> dict[str, Any]:
    return {
        "tags": [
            {
                "id": tag.id,
                "size": spec.tag_size,
                "pixels": tag.pixels,
                "pose": {"pose": tag.pose, "covariance": _covariance(tag)},
            }
            for tag in found
        ]
    }


def _marks(spec: AprilTagSpec, found: list[AprilTag]) -> list[Mark]:
    return [
        Mark(*transform_point(spec.pose, tag.pose.x, tag.pose.y), str(tag.id))
        for tag in found
    ]


APRIL_TAGS: Final = Device(
    name="april_tags",
    about="AprilTags in sight, with pose errors",
    spec=AprilTagSpec,
    read=find_tags,
    fields=(
        Field("id", kind=int),
        Field("x", "m"),
        Field("y", "m"),
        Field("th", "rad"),
        Field("pixels", "pixels"),
    ),
    rows=lambda found: [(tag.id, *tag.pose, tag.pixels) for tag in found],
    ros=RosMessage(
        topic="april_tags",
        type_name="botyard_msgs/AprilTagArray",
        fields=_message,
        frame="april_tags",
        definitions={
            "botyard_msgs/AprilTag": "int32 id\nfloat64 size\nfloat64 pixels\n"
            "geometry_msgs/PoseWithCovariance pose",
            "botyard_msgs/AprilTagArray": "std_msgs/Header header\n"
            "botyard_msgs/AprilTag[] tags",
        },
    ),
    marks=_marks,
)
"""Kind of device for cameras that detect AprilTags."""
