"""Ultra-wideband ranging to anchors: ranges with noise, and a bias without line of sight.

Anchors are places of the map of type ``UwbAnchor``. The error model is Gaussian with line of
sight, and shifted and wider without (B. Alavi & K. Pahlavan, "Modeling of the TOA-based distance
measurement error using UWB indoor measurements", IEEE Communications Letters 10, 2006).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from botyard.geometry import IDENTITY, Pose, relative, transform_point
from botyard.model.devices import Device, DeviceSpec, Field, Mark, RosMessage, parameter
from botyard.numerics import elementwise

if TYPE_CHECKING:
    from botyard.devices.view import View

ANCHORS: Final = frozenset({"uwbanchor", "sim.uwbanchor"})
"""Types of the map's places that are anchors, in lower case."""
NOISE, LOSS = 0, 1
"""Numbers of a tag's random sequences: errors of ranges, and ranges that are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UwbSpec(DeviceSpec):
    """Description of an ultra-wideband tag.

    Attributes
    ----------
    pose : Pose
        Mounting of the tag in the robot's frame, m and rad.
    range_max : float
        Greatest range, m.
    height : float
        Height of the anchors above the tag, m. Ranges are distances in space, not in the
        plane.
    deviation : float
        Standard deviation with line of sight, m.
    hidden_bias, hidden_deviation : float
        Mean error and standard deviation without line of sight, m.
    missing, hidden_missing : float
        Fraction of ranges that fail with and without line of sight, 0 to 1.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="uwb", init=False)
    pose: Pose = parameter(IDENTITY)
    range_max: float = parameter(50.0, unit="m", low=1e-3, high=1e6, key="range")
    height: float = parameter(0.0, unit="m", low=-1e4, high=1e4)
    deviation: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    hidden_bias: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    hidden_deviation: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    missing: float = parameter(0.0, low=0.0, high=1.0)
    hidden_missing: float = parameter(0.0, low=0.0, high=1.0)
    update_rate: float = parameter(0.0, unit="Hz", low=0.0, high=1e6)


class UwbRange(NamedTuple):
    """Range to an anchor.

    Attributes
    ----------
    anchor : str
        Name of the anchor's place.
    range : float
        Measured range, m.
    x, y : float
        True position of the anchor in the frame of the tag, m. Real tags do not know it.
    """

    anchor: str
    range: float
    x: float
    y: float


def uwb_ranges(spec: UwbSpec, view: View) -> list[UwbRange]:
    """Return the ranges to the anchors of the map, in the order of the map.

    Parameters
    ----------
    spec : UwbSpec
        Description of the tag.
    view : View
        View of the world from the tag.
    """
    anchors = [p for p in view.scene.places if p.kind.lower() in ANCHORS]
    if not anchors:
        return []
    at = view.pose
    x, y = (np.array([getattr(p.pose, axis) for p in anchors]) for axis in "xy")
    dx, dy = x - at.x, y - at.y
    level = elementwise.hypot(dx, dy)
    true = elementwise.hypot(level, spec.height)
    # Rays are as long as needed; no ray is 0 long.
    met, _ = view.sight(elementwise.atan2(dy, dx), float(level.max()) + 1e-3)
    is_hidden = met < level - 1e-9

    # Each anchor has its own draws, whichever others are in range.
    noise = view.normal(len(anchors), NOISE)
    found = true + np.where(
        is_hidden,
        spec.hidden_bias * view.errs + spec.hidden_deviation * noise,
        spec.deviation * noise,
    )
    share = np.where(is_hidden, spec.hidden_missing, spec.missing)
    fails = view.errs & (0.5 * (view.uniform(len(anchors), LOSS) + 1.0) < share)
    return [
        UwbRange(
            anchor.name,
            max(0.0, float(found[k])),
            *relative(at, Pose(anchor.pose.x, anchor.pose.y))[:2],
        )
        for k, anchor in enumerate(anchors)
        if true[k] <= spec.range_max and not fails[k]
    ]


def _message(_: UwbSpec, found: list[UwbRange]) -> dict[str, Any]:
    return {"ranges": [{"anchor": r.anchor, "range": r.range} for r in found]}


def _marks(spec: UwbSpec, found: list[UwbRange]) -> list[Mark]:
    return [Mark(*transform_point(spec.pose, r.x, r.y), r.anchor) for r in found]


UWB: Final = Device(
    name="uwb",
    about="ranges to ultra-wideband anchors",
    spec=UwbSpec,
    read=uwb_ranges,
    fields=(Field("anchor", kind=str), Field("range", "m")),
    rows=lambda found: [(r.anchor, r.range) for r in found],
    ros=RosMessage(
        topic="uwb",
        type_name="botyard_msgs/UwbRangeArray",
        fields=_message,
        frame="uwb",
        definitions={
            "botyard_msgs/UwbRange": "string anchor\nfloat64 range",
            "botyard_msgs/UwbRangeArray": "std_msgs/Header header\n"
            "botyard_msgs/UwbRange[] ranges",
        },
    ),
    marks=_marks,
)
"""Kind of device for ultra-wideband tags."""
