"""Range-and-bearing messages between robots in line of sight, as swarm robots have them.

A robot sends a short message in each step; robots near it receive the message together with range
and bearing of the sender (e-puck: Á. Gutiérrez et al., "Open e-puck range & bearing miniaturized
board", ICRA 2009). A message is sent in the step after the write, so that the order in which
programs write and read does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import F8, I8, U1
from botyard.engine.tables import Column, Table
from botyard.errors import ArgumentError
from botyard.geometry import IDENTITY, Pose, transform_point
from botyard.model.devices import (
    Command,
    Device,
    DeviceSpec,
    Field,
    Mark,
    RosMessage,
    parameter,
)
from botyard.model.obstacles import Visible
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.simulation import Engine

MAX_BYTES: Final = 32
"""Longest message, bytes."""
NOISE, LOSS, ORDER, REST = range(4)
"""Numbers of a device's random sequences.

`NOISE`: errors of range and bearing. `LOSS`: lost messages. `ORDER`: order in which
messages arrive. `REST`: whether a message arrives that the bandwidth holds only in part.
"""
OCCLUSIONS: Final = {"none": 0, "walls": 1, "all": 2}
"""Objects that hide robots from each other, by the word in files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAndBearingSpec(DeviceSpec):
    """Description of a range-and-bearing device, which sends and receives.

    Attributes
    ----------
    pose : Pose
        Mounting in the robot's frame, m and rad.
    range_max : float
        Greatest range at which it receives, m.
    bandwidth : float
        Data that it receives at most, bytes/s; 0: unlimited. Further messages of a step are
        lost, at random. A message that fits in part arrives with this probability.
    loss : float
        Fraction of messages that are lost, 0 to 1.
    range_deviation, bearing_deviation : float
        Standard deviations of range, m, and bearing, rad.
    occlusion : int
        Objects that hide robots: 0 none, 1 walls that lasers see, 2 also robots and boxes; in files
        ``none``, ``walls`` and ``all``.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="range_and_bearing", init=False)
    pose: Pose = parameter(IDENTITY)
    range_max: float = parameter(3.0, unit="m", low=1e-3, high=1e6, key="range")
    bandwidth: float = parameter(0.0, unit="bytes/s", low=0.0, high=1e12)
    loss: float = parameter(0.0, low=0.0, high=1.0)
    range_deviation: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    bearing_deviation: float = parameter(0.0, unit="rad", low=0.0, high=10.0)
    occlusion: int = parameter(2, words=OCCLUSIONS)
    update_rate: float = parameter(0.0, unit="Hz", low=0.0, high=1e6)


class Messages(Table):
    """Messages of all range-and-bearing devices.

    Attributes
    ----------
    data, sent : (n, 32) uint8
        Message to send from the next step on, and message that is sent in this step.
    length, sent_length : (n,) uint8
        Lengths of these messages, bytes; 0: nothing is sent.
    at : (n, 3) float64
        Mounting of the device: m, m, rad.
    """

    name = "range_and_bearing"
    optional = True
    measures = True
    columns: ClassVar[Mapping[str, Column]] = {
        "data": Column(np.uint8, MAX_BYTES),
        "length": Column(np.uint8, high=MAX_BYTES),
        "sent": Column(np.uint8, MAX_BYTES),
        "sent_length": Column(np.uint8, high=MAX_BYTES),
        "at": Column(np.float64, 3, saved=False),
    }
    data: U1
    length: U1
    sent: U1
    sent_length: U1
    at: F8

    def act(self, engine: Engine, dt: float) -> None:
        """Send the messages that were written before this step."""
        self.sent[:], self.sent_length[:] = self.data, self.length


class Received(NamedTuple):
    """Received message.

    Attributes
    ----------
    range, bearing : float
        Polar coordinates of the sender in the frame of the receiver: m, rad.
    data : bytes
        The message.
    """

    range: float
    bearing: float
    data: bytes


def payload(message: bytes) -> dict[str, Any]:
    """Return the columns that send a message: ``device.write(**payload(b"abc"))``.

    Parameters
    ----------
    message : bytes
        At most `MAX_BYTES`; empty: nothing is sent.

    Raises
    ------
    ArgumentError
        The message is too long, or not bytes.
    """
    if not isinstance(message, bytes) or len(message) > MAX_BYTES:
        raise ArgumentError(
            f"message: expected at most {MAX_BYTES} bytes, found {message!r:.100}"
        )
    return {
        "data": [*message, *bytes(MAX_BYTES - len(message))],
        "length": len(message),
    }


def in_sight(
    view: View, ranges: F8, bearings: F8, rows: I8, occlusion: int
) -> NDArray[np.bool_]:
    """Return which points nothing hides from a sensor, (n,) bool.

    Parameters
    ----------
    view : View
        View of the world from the sensor.
    ranges, bearings : (n,) float64
        Points: distance, m, and direction in the world, rad.
    rows : (n,) int64
        Row of the body of each point, which does not hide it.
    occlusion : int
        Value of `OCCLUSIONS`.
    """
    if not occlusion or not len(ranges):
        return np.ones(len(ranges), np.bool_)
    # No body hides a point if only walls do.
    seen = np.zeros(len(view.state.mask), np.bool_) if occlusion == 1 else None
    met, what = view.sight(bearings, float(ranges.max()) + 1e-3, seen, Visible.LASER)
    clear: NDArray[np.bool_] = (what == rows) | (met >= ranges - 1e-9)
    return clear


def receive(spec: RangeAndBearingSpec, view: View) -> list[Received]:
    """Return the messages that a device receives in this step, nearest first.

    Parameters
    ----------
    spec : RangeAndBearingSpec
        Description of the receiver.
    view : View
        View of the world from the receiver.
    """
    assert view.memory is not None
    table: Messages = view.memory.table
    others = np.flatnonzero((table.sent_length > 0) & (table.body != view.row))
    rows, mount, at = table.body[others], table.at[others], view.pose
    pose = view.state.pose[rows]
    c, s = elementwise.cosine_sine(pose[:, 2])
    dx = pose[:, 0] + c * mount[:, 0] - s * mount[:, 1] - at.x
    dy = pose[:, 1] + s * mount[:, 0] + c * mount[:, 1] - at.y
    ranges, bearings = elementwise.hypot(dx, dy), elementwise.atan2(dy, dx)
    near = np.flatnonzero(ranges <= spec.range_max)
    near = near[
        in_sight(view, ranges[near], bearings[near], rows[near], spec.occlusion)
    ]
    # By range, then by name: rows depend on the order in which robots were added.
    near = near[np.lexsort((view.state.uid[rows[near]], ranges[near]))]

    kept = _arriving(spec, view, table.sent_length[others[near]].astype(np.float64))
    noise = view.normal(2 * len(near), NOISE).reshape(-1, 2)
    turned = elementwise.wrap_angles(
        bearings[near] - at.th + spec.bearing_deviation * noise[:, 1]
    )
    seem = np.maximum(ranges[near] + spec.range_deviation * noise[:, 0], 0.0)
    return [
        Received(
            float(seem[k]),
            float(turned[k]),
            table.sent[other, : table.sent_length[other]].tobytes(),
        )
        for k, other in enumerate(others[near].tolist())
        if kept[k]
    ]


def _arriving(spec: RangeAndBearingSpec, view: View, sizes: F8) -> NDArray[np.bool_]:
    """Return which of the messages in sight arrive, by loss and bandwidth.

    Parameters
    ----------
    spec : RangeAndBearingSpec
        Description of the receiver.
    view : View
        View of the world from the receiver.
    sizes : (n,) float64
        Lengths of the messages, bytes, nearest first.
    """
    n = len(sizes)
    kept = np.ones(n, np.bool_)
    if view.errs:
        kept = 0.5 * (view.uniform(n, LOSS) + 1.0) >= spec.loss
    if not spec.bandwidth:
        return kept

    budget = spec.bandwidth * view.engine.clock.dt
    rest = 0.5 * (view.uniform(n, REST) + 1.0)
    # Without errors all draws are 0: the nearest messages come first, and a message that
    # fits only in part is lost.
    for k in np.argsort(view.uniform(n, ORDER), kind="stable").tolist():
        if not kept[k]:
            continue
        share = min(budget / sizes[k], 1.0)
        kept[k] = share >= 1.0 or bool(view.errs and rest[k] < share)
        budget = max(budget - sizes[k], 0.0)

    return kept


def _message(_: RangeAndBearingSpec, found: list[Received]) -> dict[str, Any]:
    return {
        "messages": [
            {
                "range": one.range,
                "bearing": one.bearing,
                "data": np.frombuffer(one.data, np.uint8),
            }
            for one in found
        ]
    }


def _marks(spec: RangeAndBearingSpec, found: list[Received]) -> list[Mark]:
    marks = []
    for one in found:
        c, s = cosine_sine(one.bearing)
        place = transform_point(spec.pose, one.range * c, one.range * s)
        marks.append(Mark(*place, one.data.hex()))
    return marks


RANGE_AND_BEARING: Final = Device(
    name="range_and_bearing",
    about="messages of robots in sight, with range and bearing",
    spec=RangeAndBearingSpec,
    read=receive,
    fields=(Field("range", "m"), Field("bearing", "rad"), Field("data", kind=str)),
    rows=lambda found: [(one.range, one.bearing, one.data.hex()) for one in found],
    table=Messages,
    start=lambda spec: {"at": tuple(spec.pose)},
    commands=(
        Command(
            name="message",
            limits=lambda _: (0.0, 255.0),
            columns=lambda value: payload(bytes([int(value)])),
            about="message of one byte",
        ),
        Command(
            name="silence",
            limits=lambda _: (0.0, 1.0),
            columns=lambda value: {} if value < 0.5 else {"length": 0},
            about="1: nothing is sent",
        ),
    ),
    ros=RosMessage(
        topic="range_and_bearing",
        type_name="botyard_msgs/RangeAndBearingArray",
        fields=_message,
        frame="range_and_bearing",
        definitions={
            "botyard_msgs/RangeAndBearing": "float64 range\nfloat64 bearing\nuint8[] data",
            "botyard_msgs/RangeAndBearingArray": "std_msgs/Header header\n"
            "botyard_msgs/RangeAndBearing[] messages",
        },
    ),
    marks=_marks,
)
"""Kind of device for range-and-bearing messages."""
