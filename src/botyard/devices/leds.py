"""Rings of coloured LEDs, and the omnidirectional camera that sees LEDs of other robots.

Foot-bots and e-pucks talk to each other by colours. An LED shows its colour in the step after the
write, so that the order in which programs write and read does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from botyard.api import arguments
from botyard.devices.rangebearing import OCCLUSIONS, in_sight
from botyard.engine.layout import F8, I4, I8
from botyard.engine.tables import Column, Table
from botyard.geometry import IDENTITY, Pose, transform_point
from botyard.model.colors import known_rgb
from botyard.model.devices import (
    Command,
    Device,
    DeviceSpec,
    Field,
    Mark,
    RosMessage,
    parameter,
)
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.simulation import Engine

MAX_LEDS: Final = 32
"""Highest number of LEDs of a ring."""
WHITE: Final = 0xFFFFFF
"""Highest colour: red, green and blue as bytes of one number."""
NOISE, LOSS = 0, 1
"""Numbers of a camera's random sequences: errors of readings, and LEDs that are missed."""


# -- rings of LEDs


@dataclass(frozen=True, slots=True, kw_only=True)
class LedsSpec(DeviceSpec):
    """Description of a ring of LEDs.

    Attributes
    ----------
    pose : Pose
        Centre of the ring in the robot's frame, m; its heading points to the first LED, rad.
    count : int
        Number of LEDs, counter-clockwise at equal angles.
    radius : float
        Radius of the ring, m.
    """

    type: str = field(default="leds", init=False)
    pose: Pose = parameter(IDENTITY)
    count: int = parameter(8, low=1, high=MAX_LEDS)
    radius: float = parameter(0.035, unit="m", low=0.0, high=100.0)

    @property
    def places(self) -> list[tuple[float, float]]:
        """Position of each LED in the robot's frame, m."""
        around = [
            cosine_sine(2.0 * math.pi * k / self.count) for k in range(self.count)
        ]
        return [
            transform_point(self.pose, self.radius * c, self.radius * s)
            for c, s in around
        ]


class Leds(Table):
    """Colours of all LEDs.

    Attributes
    ----------
    colors, shown : (n, 32) int32
        Colours to show from the next step on, and colours shown in this step; 0: off.
    count : (n,) int32
        Number of LEDs of each ring.
    places : (n, 64) float64
        x and y of each LED in the frame of its robot, m, alternately.
    """

    name = "leds"
    optional = True
    measures = True
    columns: ClassVar[Mapping[str, Column]] = {
        "colors": Column(np.int32, MAX_LEDS, low=0, high=WHITE),
        "shown": Column(np.int32, MAX_LEDS, low=0, high=WHITE),
        "count": Column(np.int32, start=1, low=1, high=MAX_LEDS, saved=False),
        "places": Column(np.float64, 2 * MAX_LEDS, saved=False),
    }
    colors: I4
    shown: I4
    count: I4
    places: F8

    def act(self, engine: Engine, dt: float) -> None:
        """Show the colours that were written before this step, of LEDs that exist."""
        exists = np.arange(MAX_LEDS) < self.count[:, None]
        self.shown[:] = np.where(exists, self.colors, 0)


def ring(*colors: str | int) -> dict[str, Any]:
    """Return the columns that show colours: ``device.write(**ring("red", 0, "blue"))``.

    Parameters
    ----------
    *colors : str or int
        Colour of each LED from the first one on: an X11 name, ``#rrggbb``, or a number with
        the bytes red, green and blue. LEDs with 0, and further ones, are off. A device shows
        as many colours as it has LEDs.

    Raises
    ------
    ArgumentError
        There are too many colours, a number is out of range, or a name is unknown.
    """
    arguments.whole(len(colors), "number of colors", low=0, high=MAX_LEDS)
    numbers = [
        number_of(color)
        if isinstance(color, str)
        else arguments.whole(color, "color", low=0, high=WHITE)
        for color in colors
    ]
    return {"colors": numbers + [0] * (MAX_LEDS - len(numbers))}


def number_of(color: str) -> int:
    """Return a known colour as a number with the bytes red, green and blue."""
    red, green, blue = known_rgb(color)
    return red << 16 | green << 8 | blue


def _read(spec: LedsSpec, view: View) -> tuple[int, ...]:
    assert view.memory is not None
    shown = view.memory.table.shown[view.memory.number]
    return tuple(shown[: spec.count].tolist())


def _as_ros(color: int) -> dict[str, float]:
    """Return a std_msgs/ColorRGBA."""
    red, green, blue = color >> 16, color >> 8 & 255, color & 255
    return {
        "r": red / 255.0,
        "g": green / 255.0,
        "b": blue / 255.0,
        "a": 1.0 if color else 0.0,
    }


LEDS: Final = Device(
    name="leds",
    about="colours of a ring of LEDs",
    spec=LedsSpec,
    read=_read,
    fields=(Field("led", kind=int), Field("color", kind=str)),
    rows=lambda shown: [(k, f"#{color:06x}") for k, color in enumerate(shown)],
    table=Leds,
    start=lambda spec: {
        "count": spec.count,
        "places": [
            *(axis for place in spec.places for axis in place),
            *[0.0] * (2 * (MAX_LEDS - spec.count)),
        ],
    },
    commands=(
        Command(
            name="color",
            limits=lambda _: (0.0, float(WHITE)),
            columns=lambda value: {"colors": [int(value)] * MAX_LEDS},
            about="one colour for all LEDs, 65536 red + 256 green + blue",
        ),
    ),
    ros=RosMessage(
        topic="leds",
        type_name="botyard_msgs/Leds",
        fields=lambda _, shown: {"colors": [_as_ros(color) for color in shown]},
        frame="leds",
        definitions={
            "botyard_msgs/Leds": "std_msgs/Header header\nstd_msgs/ColorRGBA[] colors"
        },
    ),
    marks=lambda spec, shown: [
        Mark(*place, f"#{color:06x}")
        for place, color in zip(spec.places, shown, strict=True)
        if color
    ],
)
"""Kind of device for rings of LEDs."""


# -- omnidirectional camera


@dataclass(frozen=True, slots=True, kw_only=True)
class OmniCameraSpec(DeviceSpec):
    """Description of an omnidirectional camera that sees lit LEDs of other robots.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    range_max : float
        Greatest range of an LED, m.
    range_deviation, bearing_deviation : float
        Standard deviations of range, m, and bearing, rad.
    missing : float
        Fraction of LEDs that are overlooked, 0 to 1.
    occlusion : int
        Objects that hide LEDs: 0 none, 1 walls that lasers see, 2 also other robots and boxes; in
        files ``none``, ``walls`` and ``all``.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="omni_camera", init=False)
    pose: Pose = parameter(IDENTITY)
    range_max: float = parameter(1.0, unit="m", low=1e-3, high=1e6, key="range")
    range_deviation: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    bearing_deviation: float = parameter(0.0, unit="rad", low=0.0, high=10.0)
    missing: float = parameter(0.0, low=0.0, high=1.0)
    occlusion: int = parameter(2, words=OCCLUSIONS)
    update_rate: float = parameter(0.0, unit="Hz", low=0.0, high=1e6)


class OmniBlob(NamedTuple):
    """Seen LED.

    Attributes
    ----------
    color : int
        Colour, a number with the bytes red, green and blue.
    range, bearing : float
        Polar coordinates in the frame of the camera: m, rad.
    """

    color: int
    range: float
    bearing: float


def find_leds(spec: OmniCameraSpec, view: View) -> list[OmniBlob]:
    """Return the lit LEDs of other robots that a camera sees, nearest first.

    Parameters
    ----------
    spec : OmniCameraSpec
        Description of the camera.
    view : View
        View of the world from the camera.
    """
    table = view.engine.tables.get(Leds.name)
    if not isinstance(table, Leds):
        return []
    at, state = view.pose, view.state
    lit = (table.shown > 0) & (table.body != view.row)[:, None]
    rings, leds = np.nonzero(lit)
    rows: I8 = table.body[rings]
    x, y = table.places[rings, 2 * leds], table.places[rings, 2 * leds + 1]
    c, s = elementwise.cosine_sine(state.pose[:, 2])
    dx = state.pose[rows, 0] + c[rows] * x - s[rows] * y - at.x
    dy = state.pose[rows, 1] + s[rows] * x + c[rows] * y - at.y
    ranges, bearings = elementwise.hypot(dx, dy), elementwise.atan2(dy, dx)
    near = np.flatnonzero(ranges <= spec.range_max)
    near = near[
        in_sight(view, ranges[near], bearings[near], rows[near], spec.occlusion)
    ]
    # By range, then by name and number: rows depend on the order of adding.
    near = near[np.lexsort((leds[near], state.uid[rows[near]], ranges[near]))]

    noise = view.normal(2 * len(near), NOISE).reshape(-1, 2)
    fails = view.errs & (0.5 * (view.uniform(len(near), LOSS) + 1.0) < spec.missing)
    turned = elementwise.wrap_angles(
        bearings[near] - at.th + spec.bearing_deviation * noise[:, 1]
    )
    seem = np.maximum(ranges[near] + spec.range_deviation * noise[:, 0], 0.0)
    colors = table.shown[rings[near], leds[near]].tolist()
    return [
        OmniBlob(color, r, bearing)
        for color, r, bearing, lost in zip(
            colors, seem.tolist(), turned.tolist(), fails.tolist(), strict=True
        )
        if not lost
    ]


def _blob_marks(spec: OmniCameraSpec, found: Sequence[OmniBlob]) -> list[Mark]:
    marks = []
    for blob in found:
        c, s = cosine_sine(blob.bearing)
        place = transform_point(spec.pose, blob.range * c, blob.range * s)
        marks.append(Mark(*place, f"#{blob.color:06x}"))
    return marks


OMNI_CAMERA: Final = Device(
    name="omni_camera",
    about="lit LEDs of other robots in sight, all around",
    spec=OmniCameraSpec,
    read=find_leds,
    fields=(Field("color", kind=str), Field("range", "m"), Field("bearing", "rad")),
    rows=lambda found: [(f"#{b.color:06x}", b.range, b.bearing) for b in found],
    ros=RosMessage(
        topic="omni_camera",
        type_name="botyard_msgs/OmniBlobArray",
        fields=lambda _, found: {
            "blobs": [
                {"color": _as_ros(b.color), "range": b.range, "bearing": b.bearing}
                for b in found
            ]
        },
        frame="omni_camera",
        definitions={
            "botyard_msgs/OmniBlob": "std_msgs/ColorRGBA color\nfloat64 range\n"
            "float64 bearing",
            "botyard_msgs/OmniBlobArray": "std_msgs/Header header\n"
            "botyard_msgs/OmniBlob[] blobs",
        },
    ),
    marks=_blob_marks,
)
"""Kind of device for omnidirectional cameras."""
