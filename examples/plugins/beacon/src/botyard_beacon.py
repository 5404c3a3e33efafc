"""A beacon finder; power by the log-distance model (Rappaport 2002, §4.9.1)."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from botyard.geometry import IDENTITY, Pose, transform_point
from botyard.model.devices import Device, DeviceSpec, Field, Mark, RosMessage, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconFinderSpec(DeviceSpec):
    """A beacon finder of a robot; robot files have these parameters."""

    type: str = field(default="beacon_finder", init=False)
    pose: Pose = parameter(IDENTITY)  # mounting pose
    range_max: float = parameter(20.0, unit="m", low=0.0)
    power: float = parameter(-40.0, unit="dBm")  # of a beacon 1 m away
    exponent: float = parameter(2.0, low=0.0)  # 2 in free space, 3 to 5 indoors
    obstruction: float = parameter(12.0, unit="dB", low=0.0)  # loss without sight
    range_noise: float = parameter(0.0, unit="m", low=0.0)  # standard deviation


class Beacon(NamedTuple):
    """A beacon: its mark, place in the finder's frame (m, rad), power (dBm)."""

    id: int
    range: float
    bearing: float
    power: float
    in_sight: bool


def read(spec: BeaconFinderSpec, view: Any) -> list[Beacon]:
    """Return the beacons within range, the strongest first."""
    marks, (x, y, th) = view.fiducials, view.pose
    dx, dy = (view.state.pose[:, :2] - (x, y)).T
    rows = np.flatnonzero((marks != 0) & (np.hypot(dx, dy) <= spec.range_max))
    rows = rows[rows != view.row]
    ranges, bearings = np.hypot(dx, dy)[rows], np.arctan2(dy, dx)[rows]
    met, body = view.sight(bearings, spec.range_max)
    seen = (body == rows) | (met >= ranges - 1e-9)
    power = spec.power - 10.0 * spec.exponent * np.log10(np.maximum(ranges, 0.01))
    power -= np.where(seen, 0.0, spec.obstruction)
    # Draws for all bodies: the error of a beacon does not depend on the other beacons.
    ranges += spec.range_noise * view.normal(len(marks))[rows]
    ranges, bearings = view.measured(np.maximum(ranges, 0.0), bearings - th)
    bearings = np.remainder(bearings + math.pi, 2.0 * math.pi) - math.pi
    columns = (c.tolist() for c in (marks[rows], ranges, bearings, power, seen))
    return sorted(map(Beacon, *columns), key=lambda beacon: -beacon.power)


def _mark(spec: BeaconFinderSpec, b: Beacon) -> Mark:
    at = (b.range * math.cos(b.bearing), b.range * math.sin(b.bearing))
    return Mark(*transform_point(spec.pose, *at), f"{b.id}: {b.power:.0f} dBm")


ONE = "int32 id\nfloat64 range\nfloat64 bearing\nfloat64 power\nbool in_sight"
ALL = "std_msgs/Header header\nbotyard_beacon/Beacon[] beacons"
BEACON_FINDER = Device(
    name="beacon_finder",
    about="beacons that are heard",
    spec=BeaconFinderSpec,
    read=read,
    fields=(
        *(Field("id", kind=int), Field("range", "m"), Field("bearing", "rad")),
        *(Field("power", "dBm"), Field("in_sight", kind=bool)),
    ),
    rows=list,
    ros=RosMessage(
        topic="beacons",
        type_name="botyard_beacon/BeaconArray",
        fields=lambda spec, found: {"beacons": [b._asdict() for b in found]},
        frame="beacon_finder",
        definitions={"botyard_beacon/Beacon": ONE, "botyard_beacon/BeaconArray": ALL},
    ),
    marks=lambda spec, found: [_mark(spec, b) for b in found],
)
