"""AMBF objects without a body: sensors, cameras, lights, vehicles and actuators.

Source: ambf-messages.md §6, §10.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine import commands as cmd
from botyard.engine.layout import F8, Bodies
from botyard.errors import BotyardError
from botyard.geometry import Pose, compose
from botyard.interfaces.ambf.bodies import EngineBody, RobotBody, planar_wrench
from botyard.interfaces.ambf.objects import (
    DURING_STEPS,
    AmbfObject,
    finite,
    floats,
    parent_text,
)
from botyard.interfaces.ambf.surroundings import Surroundings
from botyard.model.objects import ActuatorSpec, Offer, VehicleSpec, ViewSpec, WheelSpec
from botyard.names import shown
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine, tan, total
from botyard.protocols.ambf.messages import FORCE, VELOCITY
from botyard.protocols.ambf.template import Template
from botyard.protocols.ros_messages.messages import Stamp, yaw_of

if TYPE_CHECKING:
    from botyard.devices.gripper import Gripper

MAX_NAMES: Final = 10_000
"""Limit of the names of hit bodies that are kept in encoded form."""
_NO_ARRAY: Final = bytes(4)
_NO_ARRAYS: Final = 5 * _NO_ARRAY
"""Empty arrays at the end of ambf_msgs/SensorState in ROS 1's format."""
HIT_TOLERANCE: Final = 0.05
"""Largest distance of a ray's end from the outline of the body that it hit, m.

Not zero, because ranges have noise.
"""


class SensorObject(AmbfObject):
    """Range sensor; the measurement of a ray is 1 − distance/range (§6).

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
        Subscribes to the sensor (True), or unsubscribes (False).
    """

    def __init__(
        self,
        ambf: Surroundings,
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
        """Rays, with cosines and sines of their directions."""
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
        """Encode the state.

        ROS 1's format is written without an object for each ray, because there are
        hundreds of rays.
        """
        if wire != "ros1":
            return self.ambf.types.encode_cdr(
                self.state(), f"ambf_msgs/{self.kind}State"
            )

        ranges, triggered, measured = self._measured()
        names, count, packed = self.sensed(ranges, triggered), len(ranges), self._packed
        # A bound on memory, in case bodies come and go under ever new names.
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
        """Return the template of the message in ROS 1's format up to its empty arrays."""
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
        """Make the state message; see `AmbfObject`."""
        ranges, triggered, measured = self._measured()
        reach = self._reach
        if self.kind == "Object":
            about = f"1 - distance/{reach:g} m of {len(ranges)} rays"
            return self.plain(self.ambf.messages.pose(self._mount), about, measured)

        text = self.ambf.types["std_msgs/String"]
        sensed = self.sensed(ranges, triggered)
        # An object for each name, not for each ray: a state may have hundreds of rays,
        # a thousand times a second.
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
        """Return the name of the body or map that each ray hits; empty without a hit."""
        # States of several generations or transports in one step share the search.
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
    """Return a mask of the points near the edges of a body's polygons.

    Near is within `HIT_TOLERANCE`.

    Parameters
    ----------
    bodies, row : Bodies, int
        The body.
    pose : (3,) float64
        Its pose, m, m, rad.
    x, y : (n,) float64
        The points relative to its origin, in the world's axes, m.
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


@lru_cache(maxsize=1024)
def _edges(corners: bytes, starts: bytes) -> tuple[F8, ...]:
    """Return the edges of polygons, from the bytes of a body's arrays.

    The results are their first corners, their vectors, and the vectors divided by their
    squared lengths. Bytes are hashable, so that the results can be cached.
    """
    verts, begins = (
        np.frombuffer(corners, np.float64).reshape(-1, 2),
        np.frombuffer(starts, np.int64),
    )
    following = np.arange(1, len(verts) + 1)
    # The last corner of each polygon is joined to its first.
    following[begins[1:] - 1] = begins[:-1]
    edges = verts[following] - verts
    # The lower bound avoids a division by zero for double corners.
    along = edges / np.maximum((edges * edges).sum(axis=1), 1e-18)[:, None]
    return tuple(
        np.ascontiguousarray(column)
        for part in (verts, edges, along)
        for column in part.T
    )


class ViewObject(AmbfObject):
    """Camera or light: a pose in its parent's frame.

    Commands with the position controller enabled set the pose.
    """

    def __init__(self, ambf: Surroundings, spec: ViewSpec) -> None:
        self.spec = spec
        self._position, self._turn = spec.position, spec.orientation
        super().__init__(
            ambf, spec.name, "Light" if spec.is_light else "Camera", spec.offer
        )

    def _pose(self) -> Any:
        types = self.ambf.types
        return types["geometry_msgs/Pose"](
            types["geometry_msgs/Point"](*self._position),
            types["geometry_msgs/Quaternion"](*self._turn),
        )

    def state(self) -> Any:
        """Make the state message; see `AmbfObject`."""
        if self.kind != "Object":
            return self.message(
                **parent_text(self.ambf, self.spec.parent), pose=self._pose()
            )

        return self.plain(self._pose())

    def take(self, message: Any) -> None:
        """Execute a command: set the pose."""
        if not message.enable_position_controller:
            return
        p, q = message.pose.position, message.pose.orientation
        values = (
            float(p.x),
            float(p.y),
            float(p.z),
            float(q.x),
            float(q.y),
            float(q.z),
            float(q.w),
        )
        norm = math.sqrt(total(v * v for v in values[3:]))
        # NaN would spread to every body that touches this one.
        if not finite(*values):
            self.complain("pose ignored: expected finite values")
            return

        self._position = values[:3]
        # A quaternion near zero, as clients send that leave it out, means no rotation.
        self._turn = (
            (values[3] / norm, values[4] / norm, values[5] / norm, values[6] / norm)
            if norm >= 0.1
            else (0.0, 0.0, 0.0, 1.0)
        )

    def reset(self) -> None:
        """Restore the initial pose."""
        self._position, self._turn = self.spec.position, self.spec.orientation


class VehicleObject(AmbfObject):
    """Vehicle: wheels under a body, each with power, brake and steering.

    A body with mass moves by the bicycle model. It has one wheel in the centre of the
    steered wheels and one in the centre of the others. Power and brakes are
    longitudinal forces, N, and wheels do not slip sideways. For a robot without mass,
    power is a fraction (−1 to 1) of the top speed of its wheels.
    """

    def __init__(self, ambf: Surroundings, spec: VehicleSpec, body: EngineBody) -> None:
        self.spec = spec
        self._body = body
        self._power = [0.0] * len(spec.wheels)
        self._brake = [0.0] * len(spec.wheels)
        self._steer = [0.0] * len(spec.wheels)
        self._stop = False
        self._templates: dict[str, Template] = {}
        super().__init__(ambf, spec.name, "Vehicle", spec.offer, quick=True)

    def quick(self, wire: str, stamp: Stamp) -> bytes:
        """Encode the state from a template of its message; see `AmbfObject`."""
        template = self._templates.get(wire)
        if template is None:
            template = self._templates[wire] = self._template(wire)
        mass, (x, y, th) = self._body.mass, self._body.pose()
        cos, sin = cosine_sine(th / 2.0)
        numbers = (
            0.0 if mass is None else mass.mass,
            0.0,
            0.0,
            self._body.inertia,
            x,
            y,
            0.0,
            0.0,
            0.0,
            sin,
            cos,
        )
        return template.fill(
            (*self.begin(wire, stamp), *self.ambf.moment(stamp), *numbers)
        )

    def _template(self, wire: str) -> Template:
        a, types = self.ambf, self.ambf.types
        encode = types.encode_ros1 if wire == "ros1" else types.encode_cdr
        point = types["geometry_msgs/Point"]

        def make(groups: Any) -> bytes:
            stamp, step, times, n = groups
            fields = {
                **a.identity(self.name),
                "header": self.header(stamp),
                "sim_step": step[0],
                "wall_time": times[0],
                "sim_time": times[1],
            }
            message = types["ambf_msgs/VehicleState"](
                **fields,
                mass=times[2],
                pInertia=point(*n[:3]),
                wheel_count=len(self.spec.wheels),
                pose=types["geometry_msgs/Pose"](
                    point(*n[3:6]), types["geometry_msgs/Quaternion"](*n[6:])
                ),
                wheel_offsets=[
                    a.messages.pose(Pose(w.x, w.y)) for w in self.spec.wheels
                ],
            )
            return encode(message, "ambf_msgs/VehicleState")

        return Template(make, [self.header_format(wire), "I", "fff", "10d"])

    def take(self, message: Any) -> None:
        """Execute a command for the wheels, or a wrench of the chassis."""
        low, high = self.spec.steering
        for into, given, least, most in (
            (
                self._power,
                message.wheel_power,
                -self.spec.max_power,
                self.spec.max_power,
            ),
            (self._brake, message.wheel_brake, 0.0, self.spec.max_brake),
            (self._steer, message.wheel_steering, low, high),
        ):
            for k, value in enumerate(list(given)[: len(into)]):
                if finite(float(value)):
                    into[k] = min(max(float(value), least), most)

        self._stop = bool(message.brake)
        wrench = planar_wrench(message, "chassis_wrench")
        moves = any(self._power) or any(self._brake) or self._stop or any(self._steer)
        # A wrench takes precedence over the wheels; a robot without mass cannot obey
        # it.
        if any(wrench) and finite(*wrench) and self._body.mass is not None:
            self._body.set_step_hook("vehicle", None)
            self._body.obey(FORCE, wrench)
        # A command of zeros keeps the hook if there is one, so that the brakes go on to
        # act.
        elif moves or self._body.has_step_hook("vehicle"):
            self._body.set_step_hook("vehicle", self._act)

    def cease(self) -> None:
        """Release power and brakes, and straighten the wheels."""
        for values in (self._power, self._brake, self._steer):
            values[:] = [0.0] * len(values)
        self._stop = False
        if self._body.has_step_hook("vehicle"):
            self._body.set_step_hook("vehicle", None)
            self._body.cease()

    def _act(self) -> None:
        """Move the body by the bicycle model; called before a step."""
        if self._body.mass is None:
            if isinstance(self._body, RobotBody):
                self._drive(self._body)
            return

        dt, mass = self.ambf.sim.dt, self._body.mass.mass
        pose, (v, _, _) = self._body.pose(), self._body.velocity()
        wheels = list(
            zip(self.spec.wheels, self._power, self._brake, self._steer, strict=True)
        )
        push = 0.0 if self._stop else total(p for w, p, _, _ in wheels if w.drives)
        v += push / mass * dt
        hold = (
            (
                len(wheels) * self.spec.max_brake
                if self._stop
                else total(b for _, _, b, _ in wheels)
            )
            / mass
            * dt
        )
        # Brakes stop the vehicle, but do not push it backwards.
        v = math.copysign(max(abs(v) - hold, 0.0), v)
        front = [(w, s) for w, _, _, s in wheels if w.steers]
        rear = [w.x for w in self.spec.wheels if not w.steers]
        turn, base = 0.0, 0.0
        if front:
            axle = total(rear) / len(rear) if rear else 0.0
            base = axle
            length = total(w.x for w, _ in front) / len(front) - axle
            # Without a wheelbase there is no turning circle.
            if abs(length) > 1e-6:
                turn = v * tan(total(s for _, s in front) / len(front)) / length

        # The rear axle, which does not slip sideways, is at `base` in front of the
        # body's origin.
        side = -turn * base
        c, s = cosine_sine(pose.th)
        self._body.obey(VELOCITY, (c * v - s * side, s * v + c * side, turn))

    def _drive(self, body: RobotBody) -> None:
        """Drive a differential robot without mass by the powers of its two wheels."""
        limits = body.robot.spec.limits.max_speed
        # Other vehicles without mass have no motion model.
        if len(self._power) == 2 and not any(w.steers for w in self.spec.wheels):
            half = abs(self.spec.wheels[0].y)
            left, right = (0.0 if self._stop else p * limits.x for p in self._power)
            body.issue_command(
                cmd.SetVelocity(
                    v=(left + right) / 2.0, w=(right - left) / (2.0 * half), vy=0.0
                )
            )


def robot_vehicle(robot: RobotBody, offer: Offer) -> VehicleSpec:
    """Return the vehicle of a differential robot's two driven wheels."""
    spec = robot.robot.spec
    half = spec.kinematics.half_track
    wheels = tuple(
        WheelSpec(x=0.0, y=y, radius=spec.wheel_radius) for y in (half, -half)
    )
    return VehicleSpec(
        name=robot.name,
        chassis=robot.body,
        wheels=wheels,
        max_power=1.0,
        max_brake=1.0,
        offer=offer,
    )


class ActuatorObject(AmbfObject):
    """Actuator that attaches a body to its parent (§6)."""

    def __init__(self, ambf: Surroundings, spec: ActuatorSpec) -> None:
        self.spec = spec
        self._held: str | None = None
        super().__init__(ambf, spec.name, "Actuator", spec.offer)

    @property
    def actuated(self) -> bool:
        """Whether it holds a body."""
        return (
            self._held is not None
            and self.ambf.sim.core.engine.carrier_of(self._held) is not None
        )

    def state(self) -> Any:
        """Make the state message; see `AmbfObject`."""
        text = self.ambf.types["std_msgs/String"]
        pose = self.ambf.messages.pose(self.spec.at)
        return self.message(
            type=text("CONSTRAINT"),
            **parent_text(self.ambf, self.spec.parent),
            pose=pose,
            actuated=self.actuated,
        )

    def take(self, message: Any) -> None:
        """Execute a command: attach a body, or release it."""
        if not message.actuate:
            self.cease()
            return

        if self.actuated:
            # Clients repeat their requests, so requests while it is active are ignored.
            return

        name = str(message.body_name.data)
        if getattr(message, "use_sensor_data", False):
            name = self.ambf.sensed_by(str(message.sensor_identifier.data)) or name
        sim = self.ambf.sim
        name = self.ambf.body_called(name) or name
        try:
            if name not in sim.core.engine.rows:
                self.complain(f'no body "{shown(name)}" to attach')
                return

            if message.use_offset:
                p = message.body_offset.position
                at = Pose(
                    float(p.x), float(p.y), yaw_of(message.body_offset.orientation)
                )
                there = compose(
                    self.ambf.pose_of(self.spec.parent), compose(self.spec.at, at)
                )
                if not self.place(name, there, DURING_STEPS):
                    return
                # Apply the pose before attaching, which keeps the present offset.
                sim.settle()

            sim.attach(self.spec.parent, name)
            self._held = name
        except BotyardError as error:
            self.complain(str(error))

    def cease(self) -> None:
        """Release the body."""
        if self._held is not None:
            self.ambf.sim.detach(self._held)
            self._held = None


class GripperObject(AmbfObject):
    """Gripper of a robot as an actuator.

    Actuated, it closes and grips an object between its paddles; released, it opens.
    """

    def __init__(
        self, ambf: Surroundings, name: str, parent: str, gripper: Gripper, offer: Offer
    ) -> None:
        self._parent, self._gripper = parent, gripper
        self._on = False
        super().__init__(ambf, name, "Actuator", offer)

    def state(self) -> Any:
        """Make the state message; see `AmbfObject`."""
        text = self.ambf.types["std_msgs/String"]
        pose = self.ambf.messages.pose(Pose(self._gripper.front))
        held = self._gripper.holding is not None
        return self.message(
            type=text("CONSTRAINT"),
            **parent_text(self.ambf, self._parent),
            pose=pose,
            actuated=held,
        )

    def take(self, message: Any) -> None:
        """Execute a command: close or open."""
        if bool(message.actuate) != self._on:
            self._on = bool(message.actuate)
            goal = 0.0 if self._on else math.inf
            self._gripper.move_to(goal, goal)

    def cease(self) -> None:
        """Do nothing: a robot must not drop its load because of a timeout."""


__all__ = [
    "ActuatorObject",
    "GripperObject",
    "SensorObject",
    "VehicleObject",
    "ViewObject",
    "robot_vehicle",
]
