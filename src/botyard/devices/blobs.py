"""Blob finder: a camera that reports patches of given colours (formats §4.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from botyard.errors import ModelError
from botyard.geometry import IDENTITY, Pose, transform_point
from botyard.model.colors import rgb
from botyard.model.devices import Device, DeviceSpec, Field, Mark, RosMessage, parameter
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine, tan, total

if TYPE_CHECKING:
    from botyard.devices.view import View

BODY_HEIGHT: Final = 0.6
"""Height that a blob finder assumes for each body, m: bodies of a planar world have none."""
# Each column is a ray, so that the size bounds the time of a reading.
MAX_PIXELS: Final = 4096
"""Highest width and height of an image, pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFinderSpec(DeviceSpec):
    """Camera that reports blobs, which are patches of given colours (formats §4.3).

    Attributes
    ----------
    pose : Pose
        Mounting in the robot frame, m and rad; its heading is the pan angle.
    colors : tuple of str
        Colour of each channel, X11 names or ``#rrggbb``.
    image : tuple of int
        Width and height of the image, pixels.
    range_max : float
        Highest range of visible bodies, m.
    fov : float
        Horizontal field of view, rad.
    """

    type: str = field(default="blob_finder", init=False)
    pose: Pose = parameter(IDENTITY)
    colors: tuple[str, ...] = parameter(())
    image: tuple[int, int] = parameter((80, 60))
    range_max: float = parameter(12.0, unit="m", key="range")
    fov: float = parameter(math.radians(60), unit="rad")

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        if min(self.image) < 1 or max(self.image) > MAX_PIXELS:
            raise ModelError(
                f"blob finder: image must be 1 … {MAX_PIXELS} pixels wide and "
                f"high, found {self.image}"
            )

        # `not … >` also refuses NaN.
        if not self.range_max > 0.0:
            raise ModelError(
                f"blob finder: range must be positive, found {self.range_max}"
            )

        if not 0.0 < self.fov < math.pi:
            raise ModelError(
                "blob finder: field of view must be greater than 0 and less than 180°, "
                f"found {math.degrees(self.fov):.6g}°"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Patch of one colour in the image.

    Attributes
    ----------
    channel : int
        Index of the colour among the colours of the finder.
    color : str
        Name of the colour, as in the description of the finder.
    left, top, right, bottom : int
        Bounding box, pixels from the upper left corner, right and bottom included.
    range : float
        Distance of the visible body, m.
    bearing : float
        Bearing of the patch's centre in the sensor frame, rad counter-clockwise.
    """

    channel: int
    color: str
    left: int
    top: int
    right: int
    bottom: int
    range: float
    bearing: float

    @property
    def area(self) -> int:
        """Area of the bounding box, pixels."""
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


def find_blobs(spec: BlobFinderSpec, view: View) -> list[Blob]:
    """Return the patches that a blob finder reports, from left to right.

    Each column of the image is a ray through its centre. Neighbouring columns that see
    the same body form one patch.

    Parameters
    ----------
    spec : BlobFinderSpec
        Description of the finder.
    view : View
        View of the world from the finder.
    """
    width, height = spec.image
    # Columns have equal widths on the image plane, hence unequal angles.
    offsets = tan(spec.fov / 2) * (1.0 - (2.0 * np.arange(width) + 1.0) / width)
    bearings = elementwise.atan2(offsets, 1.0)
    ranges, rows = view.sight(view.pose.th + bearings, spec.range_max, view.blobs)

    # In reverse, so that the first of two channels with the same colour counts.
    channels = {rgb(c): i for i, c in reversed(list(enumerate(spec.colors)))}
    names, colors = view.names, view.colors
    # Focal length of the camera, pixels.
    focal = width / 2.0 / tan(spec.fov / 2)
    found = []

    # A patch ends where the next column sees another body.
    edges = np.flatnonzero(np.diff(rows)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), width], strict=True):
        row = int(rows[first])
        channel = (
            channels.get(rgb(colors.get(names.get(row, ""), ""))) if row >= 0 else None
        )
        # Other colours, and walls, are invisible to the finder.
        if channel is None:
            continue

        away = float(ranges[first:last].min())
        # Pinhole camera: apparent height falls with distance. The bound avoids a
        # division by zero.
        half = min(height / 2.0, focal * (BODY_HEIGHT / 2.0) / max(away, 1e-3))
        top, bottom = (
            math.floor(height / 2.0 - half),
            math.ceil(height / 2.0 + half) - 1,
        )
        found.append(
            Blob(
                channel=channel,
                color=spec.colors[channel],
                left=first,
                # A near body may be taller than the image.
                top=max(0, top),
                right=last - 1,
                bottom=min(height - 1, bottom),
                range=away,
                # The mean of columns, and not the middle of the angles: columns have
                # unequal angles.
                bearing=total(bearings[first:last].tolist()) / (last - first),
            )
        )

    return found


def _message(spec: BlobFinderSpec, found: list[Blob]) -> dict[str, Any]:
    width, height = spec.image
    return {
        "width": width,
        "height": height,
        "blobs": [dict(zip(_NAMES, row, strict=True)) for row in _rows(found)],
    }


_NAMES: Final = (
    "channel",
    "color",
    "left",
    "top",
    "right",
    "bottom",
    "range",
    "bearing",
)


def _rows(found: list[Blob]) -> list[tuple[Any, ...]]:
    return [tuple(getattr(b, name) for name in _NAMES) for b in found]


def _marks(spec: BlobFinderSpec, found: list[Blob]) -> list[Mark]:
    marks = []
    for blob in found:
        c, s = cosine_sine(blob.bearing)
        marks.append(
            Mark(
                *transform_point(spec.pose, blob.range * c, blob.range * s), blob.color
            )
        )

    return marks


BLOB_FINDER: Final = Device(
    name="blob_finder",
    about="coloured patches in sight",
    spec=BlobFinderSpec,
    read=find_blobs,
    fields=(
        Field("channel", kind=int),
        Field("color", kind=str),
        Field("left", "pixels", int),
        Field("top", "pixels", int),
        Field("right", "pixels", int),
        Field("bottom", "pixels", int),
        Field("range", "m"),
        Field("bearing", "rad"),
    ),
    rows=_rows,
    ros=RosMessage(
        topic="blobs",
        type_name="botyard_msgs/BlobArray",
        fields=_message,
        frame="camera",
        definitions={
            "botyard_msgs/Blob": (
                "int32 channel\nstring color\nuint32 left\nuint32 top\nuint32 "
                "right\nuint32 bottom\nfloat64 range\nfloat64 bearing"
            ),
            "botyard_msgs/BlobArray": "std_msgs/Header header\nuint32 "
            "width\nuint32 height\nbotyard_msgs/Blob[] blobs",
        },
    ),
    marks=_marks,
)
