"""AMBF objects for range sensors, and the bodies that their rays hit."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.layout import F8, Bodies
from botyard.geometry import Pose
from botyard.interfaces.ambf.objectcontext import ObjectContext
from botyard.interfaces.ambf.objects import (
    AmbfObject,
    floats,
    parent_text,
)
from botyard.model.objects import Offer
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ambf.template import Template
from botyard.protocols.ros_messages.messages import Stamp

MAX_NAMES: Final = 10_000
"""Largest number of names of hit bodies that a sensor keeps in encoded form."""
_NO_ARRAY: Final = bytes(4)
_NO_ARRAYS: Final = 5 * _NO_ARRAY
"""Bytes of the empty arrays at the end of ambf_msgs/SensorState in ROS 1's format."""
HIT_TOLERANCE: Final = 0.05
"""Largest distance of a ray's end from the outline of the body that it hit, m.

The distance is not zero, because ranges have noise.
"""


class SensorObject(AmbfObject):
    """AMBF object for a range sensor.

    The measurement of a ray is 1 − distance/range (ambf-messages.md §6).

    Parameters
    ----------
    parent : str
        Body that carries the sensor.
    mount : Pose
        Pose of the sensor in the body's frame, m, m, rad.
    rays : callable
        Returns origins and directions of the rays in the body's frame, (n, 3), m and
        rad.
    read : callable
        Returns the ranges of the rays, (n,), m.
    reach : float
        Length of the rays, m.
    subscribe : callable
        Called with True to subscribe to the sensor, and with False to unsubscribe.
    """

    def __init__(
        self,
        ambf: ObjectContext,
        name: str,
        parent: str,
        mount: Pose,
        rays: Callable[[], F8],
        read: Callable[[], F8],
        reach: float,
        subscribe: Callable[[bool], None],
        offer: Offer,
    ) -> None:
        self._parent, self._mount = parent, mount
        self._rays, self._read, self._reach, self._subscribe = (
            rays,
            read,
            reach,
            subscribe,
        )
        self._hits: tuple[int, list[str]] = (-1, [])
        self._templates: dict[int, Template] = {}
        self._packed: dict[str, bytes] = {}
        self._directions: tuple[F8, F8, F8] | None = None
        """Rays of the sensor for which the cosines and sines of the directions were computed."""
        super().__init__(ambf, name, "Sensor", offer, quick=ambf.generation != "master")

    def wanted(self, on: bool) -> None:
        """Subscribe to the sensor only while its state has a subscriber."""
        self._subscribe(on)

    def cease(self) -> None:
        """Do nothing: sensors take no commands."""

    def _measured(self) -> tuple[F8, Any, F8]:
        """Return ranges, m, a mask of the hits, and 1 − distance/range; each (n,)."""
        ranges, reach = np.asarray(self._read(), np.float64), self._reach
        # A ray without a hit has the full range; the tolerance covers rounding errors.
        triggered = ranges < reach - 1e-9
        return (
            ranges,
            triggered,
            np.where(triggered, 1.0 - np.minimum(ranges, reach) / reach, 0.0),
        )

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state of the sensor.

        ROS 1's format is written without an object for each ray, because there are
        hundreds of rays.
        """
        if wire != "ros1":
            return self.ambf.types.encode_cdr(
                self.state(), f"ambf_msgs/{self.kind}State"
            )

        ranges, triggered, measured = self._measured()
        names, count, packed = self.sensed(ranges, triggered), len(ranges), self._packed
        # Bound the memory: a client may add and remove bodies under ever new names.
        if len(packed) > MAX_NAMES:
            packed.clear()
        for name in dict.fromkeys(names):
            if name not in packed:
                text = name.encode()
                packed[name] = struct.pack("<I", len(text)) + text

        template = self._templates.get(count)
        if template is None:
            template = self._templates[count] = self._template(count)
        head = template.fill((*self.begin(wire, stamp), *self.ambf.moment(stamp)))
        size = struct.pack("<I", count)
        return b"".join(
            (
                head[: -len(_NO_ARRAYS)],
                size,
                triggered.astype(np.uint8).tobytes(),
                struct.pack("<If", 1, self._reach),
                size,
                measured.astype("<f4").tobytes(),
                size,
                *[packed[name] for name in names],
                _NO_ARRAY,
            )
        )

    def _template(self, count: int) -> Template:
        """Return the template of the message in ROS 1's format, without the arrays at its end."""
        a, types = self.ambf, self.ambf.types
        text = types["std_msgs/String"]

        def make(groups: Any) -> bytes:
            stamp, step, times = groups
            fields = {
                **a.identity(self.name),
                "header": self.header(stamp),
                "sim_step": step[0],
                "wall_time": times[0],
                "sim_time": times[1],
            }
            message = types["ambf_msgs/SensorState"](
                **fields,
                type=text("PROXIMITY"),
                **parent_text(a, self._parent),
                pose=a.messages.pose(self._mount),
                count=count,
                triggered=np.zeros(0, np.bool_),
                range=floats(()),
                measurement=floats(()),
                sensed_objects=[],
                sensed_objects_map=np.zeros(0, np.uint8),
            )
            return types.encode_ros1(message, "ambf_msgs/SensorState")

        return Template(make, [self.header_format("ros1"), "I", "ff"])

    def state(self) -> Any:
        """Return the state message; see `AmbfObject.state`."""
        ranges, triggered, measured = self._measured()
        reach = self._reach
        if self.kind == "Object":
            about = f"1 - distance/{reach:g} m of {len(ranges)} rays"
            return self.plain(self.ambf.messages.pose(self._mount), about, measured)

        text = self.ambf.types["std_msgs/String"]
        sensed = self.sensed(ranges, triggered)
        # Create an object for each name, not for each ray: a state may have hundreds of
        # rays, a thousand times a second.
        texts = {name: text(name) for name in dict.fromkeys(sensed)}
        return self.message(
            type=text("PROXIMITY"),
            **parent_text(self.ambf, self._parent),
            pose=self.ambf.messages.pose(self._mount),
            count=len(ranges),
            triggered=triggered,
            range=floats([reach]),
            measurement=floats(measured),
            sensed_objects=[texts[name] for name in sensed],
            sensed_objects_map=np.zeros(0, np.uint8),
        )

    def first_sensed(self) -> str | None:
        """Return the body that the first hitting ray hits; None if no ray hits a body."""
        ranges = np.asarray(self._read(), np.float64)
        names = self.sensed(ranges, ranges < self._reach - 1e-9)
        return next((n for n in names if n and n != self.ambf.map_name), None)

    def sensed(self, ranges: F8, triggered: Any) -> list[str]:
        """Return the name of the body or map that each ray hits.

        The result is computed once for each step, because several transports may need
        the state.

        Parameters
        ----------
        ranges : (n,) float64
            Range of each ray, m.
        triggered : (n,) bool
            Whether each ray hits anything.

        Returns
        -------
        list of str
            Name for each ray; empty without a hit. A hit counts as a hit of the map if
            no body's outline is near.
        """
        # The search was already done in this step, for the state on another transport.
        sim = self.ambf.sim
        if self._hits[0] == sim.tick:
            return self._hits[1]

        # End points of the rays, in the world's axes.
        x, y, th = self.ambf.pose_of(self._parent)
        rays = self._rays()
        if self._directions is None or rays is not self._directions[0]:
            self._directions = rays, *elementwise.cosine_sine(rays[:, 2])
        _, cosines, sines = self._directions
        c, s = cosine_sine(th)
        ahead, left = rays[:, 0] + ranges * cosines, rays[:, 1] + ranges * sines
        at_x, at_y = x + c * ahead - s * left, y + s * ahead + c * left
        walls = self.ambf.map_name
        names = [walls if hit else "" for hit in np.asarray(triggered).tolist()]
        engine = sim.core.engine

        # Only bodies whose circle contains an end point are compared edge by edge.
        poses, parent = engine.state.pose, engine.rows.get(self._parent, -1)
        dx, dy = poses[:, 0, None] - at_x, poses[:, 1, None] - at_y
        reach = engine.bodies.radius + HIT_TOLERANCE
        close = dx * dx + dy * dy < (reach * reach)[:, None]
        close &= np.asarray(triggered) & (engine.state.mask != 0)[:, None]

        for row in np.flatnonzero(close.any(axis=1)).tolist():
            if row != parent:
                hits = np.flatnonzero(close[row])
                for k in hits[
                    _near_outline(
                        engine.bodies, row, poses[row], -dx[row, hits], -dy[row, hits]
                    )
                ].tolist():
                    names[k] = engine.specs[row].name

        self._hits = sim.tick, names
        return names


def _near_outline(
    bodies: Bodies, row: int, pose: F8, x: F8, y: F8
) -> NDArray[np.bool_]:
    """Return a mask of the points within `HIT_TOLERANCE` of the outline of a body.

    Parameters
    ----------
    bodies : Bodies
        Outlines of all bodies of the engine.
    row : int
        Row of the body.
    pose : (3,) float64
        Pose of the body, m, m, rad.
    x, y : (n,) float64
        Points relative to the origin of the body, in the world's axes, m.
    """
    starts = bodies.vert_start[bodies.part_start[row] : bodies.part_start[row + 1] + 1]
    ax, ay, ex, ey, bx, by = _edges(
        bodies.verts[starts[0] : starts[-1]].tobytes(), (starts - starts[0]).tobytes()
    )
    c, s = cosine_sine(float(pose[2]))
    px, py = (c * x + s * y)[:, None] - ax, (c * y - s * x)[:, None] - ay

    # Distance of a point from a segment: the foot of the perpendicular, clipped to the
    # ends.
    along = np.minimum(np.maximum(px * bx + py * by, 0.0), 1.0)
    px, py = px - along * ex, py - along * ey
    near: NDArray[np.bool_] = (px * px + py * py).min(
        axis=1
    ) <= HIT_TOLERANCE * HIT_TOLERANCE
    return near


# Bodies of the same shape share an entry of the cache.
@lru_cache(maxsize=1024)
def _edges(corners: bytes, starts: bytes) -> tuple[F8, ...]:
    """Return the edges of polygons, from the bytes of a body's arrays.

    Bytes are hashable, so that the results can be cached.

    Parameters
    ----------
    corners : bytes
        Corners of all polygons, (n, 2) float64, m.
    starts : bytes
        Index of the first corner of each polygon, and n at the end, int64.

    Returns
    -------
    ax, ay : (n,) float64
        First corner of each edge, m.
    ex, ey : (n,) float64
        Vector to the second corner, m.
    bx, by : (n,) float64
        That vector divided by its squared length, 1/m: its dot product with a point's
        offset is the position along the edge, from 0 to 1.
    """
    verts, begins = (
        np.frombuffer(corners, np.float64).reshape(-1, 2),
        np.frombuffer(starts, np.int64),
    )
    following = np.arange(1, len(verts) + 1)
    # The last corner of each polygon is joined to its first.
    following[begins[1:] - 1] = begins[:-1]
    edges = verts[following] - verts

    # The lower bound avoids a division by zero for two equal corners.
    along = edges / np.maximum((edges * edges).sum(axis=1), 1e-18)[:, None]
    return tuple(
        np.ascontiguousarray(column)
        for part in (verts, edges, along)
        for column in part.T
    )


__all__ = ["SensorObject"]
