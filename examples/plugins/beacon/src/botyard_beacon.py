"""A beacon finder: range, bearing and received power of beacons, and whether they are
in line of sight.

Beacons are the things and robots of a world with a mark (``fiducial`` in their
returns). Radio passes walls and bodies, which weaken it; so a beacon is heard through
them, unless the finder wants line of sight. Power follows the log-distance model (T. S.
Rappaport, *Wireless Communications*, 2nd ed., §4.9.1): P(d) = P(1 m) − 10 n log10(d / 1
m), less what is in the way. `finder` makes kinds with other functions.

This file is all there is to a sensor: what robot files call its parameters, how it
reads, and what ROS and the page show of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import IDENTITY, Pose, transform_point
from botyard.model.devices import Device, DeviceSpec, Field, Mark, RosMessage, parameter

if TYPE_CHECKING:
    from botyard.devices.view import View

NEAREST: Final = 0.01
"""Distance below which the received power is constant, m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconFinderSpec(DeviceSpec):
    """A beacon finder of a robot.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    range_max : float
        Greatest distance of a beacon that is heard, m.
    fov : float
        Field of view, rad.
    power : float
        Received power of a beacon 1 m away, dBm.
    exponent : float
        n of the model: 2 in free space, 3 … 5 indoors.
    obstruction : float
        Loss when a body or wall is in between, dB.
    sensitivity : float
        Least received power of a beacon that is heard, dBm.
    needs_sight : bool
        Only beacons in line of sight are heard.
    range_noise, bearing_noise, power_noise : float
        Deviations of the normal errors: m, rad, dB.
    """

    type: str = field(default="beacon_finder", init=False)
    pose: Pose = parameter(IDENTITY)
    range_max: float = parameter(20.0, unit="m", low=0.0)
    fov: float = parameter(
        2.0 * math.pi, unit="rad", low=0.0, high=2.0 * math.pi + 1e-9
    )
    power: float = parameter(-40.0, unit="dBm")
    exponent: float = parameter(2.0, low=0.0, high=10.0)
    obstruction: float = parameter(12.0, unit="dB", low=0.0)
    sensitivity: float = parameter(-90.0, unit="dBm")
    needs_sight: bool = parameter(False)
    range_noise: float = parameter(0.0, unit="m", low=0.0)
    bearing_noise: float = parameter(0.0, unit="rad", low=0.0, high=math.pi)
    power_noise: float = parameter(0.0, unit="dB", low=0.0)


class Beacon(NamedTuple):
    """A beacon that is heard.

    Attributes
    ----------
    id : int
        Its mark.
    range, bearing : float
        Where it seems to be in the finder's frame: m, rad counter-clockwise.
    power : float
        Received power, dBm.
    in_sight : bool
        Whether nothing is in the way.
    """

    id: int
    range: float
    bearing: float
    power: float
    in_sight: bool


Power = Callable[
    [BeaconFinderSpec, NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]
]
"""Received power (dBm) from the finder, distances (m), and which are in line of sight.
"""


def log_distance(
    spec: BeaconFinderSpec, ranges: NDArray[np.float64], in_sight: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the signal strength by the log-distance model; see the module."""
    fall = 10.0 * spec.exponent * np.log10(np.maximum(ranges, NEAREST))
    return spec.power - fall - np.where(in_sight, 0.0, spec.obstruction)


def find_beacons(
    spec: BeaconFinderSpec, view: View, power: Power = log_distance
) -> list[Beacon]:
    """Return the beacons that are heard, the strongest first."""
    state, at, marks = view.state, view.pose, view.fiducials
    rows = np.flatnonzero(marks)
    rows = rows[rows != view.row]
    dx, dy = state.pose[rows, 0] - at.x, state.pose[rows, 1] - at.y
    ranges, bearings = np.hypot(dx, dy), np.arctan2(dy, dx)
    turned = np.remainder(bearings - at.th + math.pi, 2.0 * math.pi) - math.pi
    near = (ranges <= spec.range_max) & (np.abs(turned) <= spec.fov / 2 + 1e-9)
    rows, ranges, bearings, turned = (
        rows[near],
        ranges[near],
        bearings[near],
        turned[near],
    )
    if not len(rows):
        return []
    met, what = view.sight(bearings, spec.range_max)
    in_sight = (what == rows) | (met >= ranges - 1e-9)
    # Errors are drawn for each body, so that the error of a body does not depend on which other
    # bodies are heard.
    n = len(marks)
    strength = (
        power(spec, ranges, in_sight) + spec.power_noise * view.normal(n, part=2)[rows]
    )
    seems = np.maximum(0.0, ranges + spec.range_noise * view.normal(n)[rows])
    turned = turned + spec.bearing_noise * view.normal(n, part=1)[rows]
    seems, turned = view.measured(seems, turned)
    heard = (strength >= spec.sensitivity) & (in_sight | (not spec.needs_sight))
    return [
        Beacon(
            int(marks[rows[i]]),
            float(seems[i]),
            math.remainder(float(turned[i]), 2.0 * math.pi),
            float(strength[i]),
            bool(in_sight[i]),
        )
        for i in np.argsort(-strength, kind="stable").tolist()
        if heard[i]
    ]


def _message(_: BeaconFinderSpec, found: list[Beacon]) -> dict[str, Any]:
    return {"beacons": [b._asdict() for b in found]}


def _marks(spec: BeaconFinderSpec, found: list[Beacon]) -> list[Mark]:
    return [
        Mark(
            *transform_point(
                spec.pose, b.range * math.cos(b.bearing), b.range * math.sin(b.bearing)
            ),
            f"{b.id}: {b.power:.0f} dBm",
        )
        for b in found
    ]


def finder(
    name: str, spec: type[BeaconFinderSpec], power: Power
) -> Device[BeaconFinderSpec, list[Beacon]]:
    """Return a kind of beacon finder with its own power function.

    Parameters
    ----------
    name : str
        Name of the kind.
    spec : type
        Its description, derived from `BeaconFinderSpec`, with that name as its type.
    power : callable
        See `Power`.
    """
    return Device(
        name=name,
        about="beacons that are heard",
        spec=spec,
        read=lambda one, view: find_beacons(one, view, power),
        fields=(
            Field("id", kind=int),
            Field("range", "m"),
            Field("bearing", "rad"),
            Field("power", "dBm"),
            Field("in_sight", kind=bool),
        ),
        rows=list,
        ros=RosMessage(
            topic="beacons" if name == "beacon_finder" else name,
            type_name="botyard_beacon/BeaconArray",
            fields=_message,
            frame=name,
            definitions={
                "botyard_beacon/Beacon": "int32 id\nfloat64 range\nfloat64 "
                "bearing\nfloat64 power\nbool in_sight",
                "botyard_beacon/BeaconArray": "std_msgs/Header "
                "header\nbotyard_beacon/Beacon[] beacons",
            },
        ),
        marks=_marks,
    )


BEACON_FINDER: Final = finder("beacon_finder", BeaconFinderSpec, log_distance)
