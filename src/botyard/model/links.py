"""Robot model as links and joints, for ROS.

The description has frames of the sensors, wheels that turn, a gripper that moves, and the visual
shapes of the links.

The world is flat, so botyard's robot models have no heights. In the description for
ROS, bodies and cases of sensors get typical heights (constants below). Frames of
sensors are in the plane of the floor, like the transforms and points that botyard
publishes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

from botyard.geometry import IDENTITY, Outline, Pose
from botyard.model.devices import Device, DeviceSpec, find_device, names_of
from botyard.model.robot import RobotSpec
from botyard.model.rosmessages import Place
from botyard.numerics.elementary import hypot

BASE: Final = "base_link"
"""Name of the link of the body; its frame is the robot's frame (REP-105), on the floor."""
BODY_BOTTOM_M: Final = 0.05
BODY_TOP_M: Final = 0.22
"""Lower and upper height of a drawn body, m."""
CASE_HEIGHT_M: Final = 0.15
"""Height of the case of a laser, m, on top of the body."""
CASE_SIZE_M: Final = 0.1
"""Length and width of the case of a laser whose model has no size, m."""
WHEEL_WIDTH_M: Final = 0.04
PADDLE_BOTTOM_M: Final = 0.02
PADDLE_TOP_M: Final = 0.1
"""Lower and upper height of the drawn paddles of a gripper, m."""
MAX_SLABS: Final = 12
"""Largest number of boxes for one outline."""
ROUND_TOLERANCE: Final = 0.03
"""Tolerance for recognising a circle.

The distances of the corners from the centre may differ by at most this fraction of the
radius.
"""
MIN_ROUND_CORNERS: Final = 8
"""Smallest number of corners of an outline that is recognised as a circle."""
MAX_STEERING_RATE: Final = 10.0
"""Top speed of a steering joint without a limit, rad/s: URDF demands a number."""
MIN_SIZE_M: Final = 0.001
"""Smallest size of a box, m; some programs refuse flat boxes."""


class Shape(NamedTuple):
    """Visual shape of a link.

    Attributes
    ----------
    size : tuple of float
        Length, width and height of a box; radius and height of a cylinder; m.
    at : (float, float, float)
        Centre in the frame of the link, m.
    roll : float
        Rotation about the x axis, rad. Without it a cylinder stands upright.
    is_solid : bool
        Whether the shape is a part of the body that other bodies can touch.
    """

    size: tuple[float, ...]
    at: tuple[float, float, float]
    roll: float = 0.0
    is_solid: bool = True

    @property
    def is_cylinder(self) -> bool:
        """Whether the shape is a cylinder; otherwise it is a box."""
        return len(self.size) == 2


class Link(NamedTuple):
    """Rigid part of a robot with its own frame; `name` has no prefix."""

    name: str
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Joint that connects a link to its parent.

    Attributes
    ----------
    name : str
        Name in sensor_msgs/JointState.
    kind : str
        URDF's kind: ``fixed``, ``continuous`` (rotates about the axis without limits),
        ``revolute`` (rotates within limits) or ``prismatic`` (slides along the axis).
    parent, child : str
        Names of the two links.
    pose, z : Pose, float
        Frame of the child in the frame of the parent at position 0, m and rad.
    axis : (float, float, float)
        Unit vector in the child's frame.
    limits : (float, float)
        Minimum and maximum position of a prismatic joint, m, or a revolute one, rad.
    speed : float
        Top speed of such a joint, m/s or rad/s.
    """

    name: str
    kind: Literal["fixed", "continuous", "revolute", "prismatic"] = "fixed"
    parent: str
    child: str
    pose: Pose = IDENTITY
    z: float = 0.0
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] = (0.0, 0.0)
    speed: float = 0.0


class RobotModel(NamedTuple):
    """Links and joints of a robot, a tree whose root is the first link."""

    links: tuple[Link, ...]
    joints: tuple[Joint, ...]


# -- frames of devices


def places(devices: Iterable[tuple[str, DeviceSpec]]) -> Iterator[Place]:
    """Yield the number of each device among the devices of its kind.

    Parameters
    ----------
    devices : iterable of (str, DeviceSpec)
        Name and description of each device, in the order of the robot.

    Yields
    ------
    Place
        Number of the device, number of devices of its kind, and the end of its name,
        such as ``_2``, from which names of frames and topics are made.
    """
    listed = list(devices)
    count = Counter(spec.type for _, spec in listed)
    before = Counter[str]()
    for name, spec in listed:
        yield Place(
            before[spec.type],
            count[spec.type],
            name.removeprefix(spec.type),
            getattr(spec, "type_name", ""),
        )
        before[spec.type] += 1


def frames_of(kind: Device[Any, Any], place: Place, profile: str) -> list[str]:
    """Return the names of a device's frames in a name profile, without the robot's prefix.

    Parameters
    ----------
    kind : Device
        Kind of the device, which declares patterns of names.
    place : Place
        Place of the device among its kind, which fills the patterns.
    profile : str
        Name profile of ROS topics and frames, for example ``default``.
    """
    patterns = [f.name for f in kind.frames if not f.profiles or profile in f.profiles]
    patterns += [
        ros.frame for ros in kind.ros_messages if ros.frame and profile in ros.profiles
    ]
    # Several topics can share a frame; the order of first use stays.
    return [*dict.fromkeys(place.named(pattern) for pattern in patterns)]


# -- the parts of a robot


def wheel_joints(spec: RobotSpec) -> tuple[Joint, ...]:
    """Return the joints of the driven wheels: left and right, or four of them, front first.

    A position is the rotation of the wheel, rad, positive after the wheel has rolled forward.
    """
    return tuple(
        Joint(
            name=f"{name}_wheel_joint",
            kind="continuous",
            parent=BASE,
            child=f"{name}_wheel",
            pose=Pose(x, y),
            # The frame of the body is on the floor, so the axle is one radius above it.
            z=spec.wheel_radius,
            axis=(0.0, 1.0, 0.0),
        )
        for name, x, y in spec.kinematics.wheel_places
    )


def steering_joints(spec: RobotSpec) -> tuple[Joint, ...]:
    """Return the joints of the steered wheels, left before right; empty without them.

    Positions are angles of the wheels, rad, positive to the left. The wheels have no
    joints for rolling, because the state does not have their rotation.
    """
    kinematics, steering = spec.kinematics, spec.steering
    if steering is None:
        return ()
    angles, half = kinematics.wheel_angles(steering.limit), kinematics.half_track
    places = (half, -half) if len(angles) == 2 else (0.0,)
    sides = ("_left", "_right") if len(places) == 2 else ("",)
    end = "front" if steering.wheelbase > 0.0 else "rear"
    # The inner wheel turns farthest.
    most = max(map(abs, angles))
    return tuple(
        Joint(
            name=f"{end}{side}_steering_joint",
            kind="revolute",
            parent=BASE,
            child=f"{end}{side}_wheel",
            pose=Pose(steering.wheelbase, y),
            z=spec.wheel_radius,
            axis=(0.0, 0.0, 1.0),
            limits=(-most, most),
            speed=steering.rate or MAX_STEERING_RATE,
        )
        for side, y in zip(sides, places, strict=True)
    )


def trailer_joints(spec: RobotSpec) -> tuple[Joint, ...]:
    """Return the joints of the trailers at their hitches, from the front; empty without them.

    The frame of a trailer is at its hitch, and its axle is `length` behind it. Positions are
    angles of the trailer to the body in front, rad, positive to the left.
    """
    found, parent, behind = list[Joint](), BASE, 0.0
    for k, one in enumerate(spec.trailers, start=1):
        child = f"trailer_{k}"
        found.append(
            Joint(
                name=f"{child}_joint",
                kind="revolute",
                parent=parent,
                child=child,
                pose=Pose(-behind - one.hitch),
                axis=(0.0, 0.0, 1.0),
                limits=(-one.limit, one.limit),
                speed=MAX_STEERING_RATE,
            )
        )
        parent, behind = child, one.length
    return tuple(found)


def gripper_joints(spec: RobotSpec) -> tuple[Joint, ...]:
    """Return the joints of the left and the right paddle; empty without a gripper.

    Positions are distances from the middle line, m.
    """
    gripper = spec.gripper
    if gripper is None:
        return ()
    half = gripper.opening / 2.0
    return tuple(
        Joint(
            name=f"{side}_paddle_joint",
            kind="prismatic",
            parent=BASE,
            child=f"{side}_paddle",
            pose=Pose(spec.front),
            z=PADDLE_BOTTOM_M,
            axis=(0.0, sign, 0.0),
            limits=(0.0, half),
            speed=half / gripper.paddle_time,
        )
        for side, sign in (("left", 1.0), ("right", -1.0))
    )


def robot_model(
    spec: RobotSpec, profile: str = "default", footprint: str = ""
) -> RobotModel:
    """Return the links and joints of a robot.

    Parameters
    ----------
    spec : RobotSpec
        Robot.
    profile : str
        Name profile, which determines the frame names of devices.
    footprint : str
        Name of a root link below the body, such as ``base_footprint`` (REP-120); empty:
        no such link.
    """
    links = [
        Link(
            BASE,
            tuple(
                shape
                for part in (spec.outline, *spec.parts)
                for shape in body_shapes(part)
            ),
        )
    ]
    joints: list[Joint] = []
    if footprint:
        # The root must be the first link.
        links.insert(0, Link(footprint))
        joints.append(Joint(name=f"{BASE}_joint", parent=footprint, child=BASE))

    for joint in (*wheel_joints(spec), *steering_joints(spec), *gripper_joints(spec)):
        links.append(Link(joint.child, (_moving_part_shape(spec, joint),)))
        joints.append(joint)

    for one, joint in zip(spec.trailers, trailer_joints(spec), strict=True):
        outline = tuple((x - one.length, y) for x, y in one.outline)
        links.append(Link(joint.child, tuple(body_shapes(outline))))
        joints.append(joint)

    # A frame of a device may have the name of a link that exists already.
    taken = {link.name for link in links}
    devices = [*zip(names_of(spec.equipment), spec.equipment, strict=True)]
    for (_, device), place in zip(devices, places(devices), strict=True):
        kind = find_device(device.type)
        for name in frames_of(kind, place, profile):
            # A frame can belong to several devices, but URDF allows each link only
            # once.
            if name not in taken:
                taken.add(name)
                links.append(Link(name, _case_shapes(device)))
                joints.append(
                    Joint(
                        name=f"{name}_joint",
                        parent=BASE,
                        child=name,
                        pose=kind.mounting(device),
                    )
                )

    return RobotModel(tuple(links), tuple(joints))


def _moving_part_shape(spec: RobotSpec, joint: Joint) -> Shape:
    """Return the visual shape of a wheel or a paddle.

    A paddle lies outside of its joint position, so that closed paddles touch.
    """
    if joint.kind in ("continuous", "revolute"):
        # The roll of 90° lays the cylinder on its side, as a wheel.
        return Shape((spec.wheel_radius, WHEEL_WIDTH_M), (0.0, 0.0, 0.0), math.pi / 2.0)
    gripper = spec.gripper
    assert gripper is not None
    size = (gripper.reach, gripper.thickness, PADDLE_TOP_M - PADDLE_BOTTOM_M)
    return Shape(size, (size[0] / 2.0, joint.axis[1] * size[1] / 2.0, size[2] / 2.0))


def _case_shapes(device: DeviceSpec) -> tuple[Shape, ...]:
    """Return the visual shape of a laser's case; other sensors have no case."""
    size = getattr(device, "size", None)
    if device.type != "laser" or size is None:
        return ()
    # A model without a case size still gets a visible laser.
    length, width = (max(x, MIN_SIZE_M) if x > 0.0 else CASE_SIZE_M for x in size)
    return (
        Shape(
            (length, width, CASE_HEIGHT_M),
            (0.0, 0.0, BODY_TOP_M + CASE_HEIGHT_M / 2.0),
            is_solid=False,
        ),
    )


def body_shapes(outline: Outline) -> list[Shape]:
    """Return the visual shapes of a body with this outline.

    A circle becomes a cylinder. Another polygon becomes boxes side by side along x,
    each as wide as the polygon is at the middle of the box.

    Parameters
    ----------
    outline : tuple of (float, float)
        Corners in the frame of the body, m.

    Returns
    -------
    list of Shape
        At most `MAX_SLABS` boxes, or one cylinder, from `BODY_BOTTOM_M` to
        `BODY_TOP_M`.
    """
    height, middle = BODY_TOP_M - BODY_BOTTOM_M, (BODY_TOP_M + BODY_BOTTOM_M) / 2.0
    xs, ys = zip(*outline, strict=True)
    cx, cy = (min(xs) + max(xs)) / 2.0, (min(ys) + max(ys)) / 2.0
    radii = [hypot(x - cx, y - cy) for x, y in outline]
    # Discs are stored as polygons, but a single cylinder is simpler and looks better.
    if len(outline) >= MIN_ROUND_CORNERS and max(radii) - min(
        radii
    ) <= ROUND_TOLERANCE * max(radii):
        return [Shape((max(radii), height), (cx, cy, middle))]

    borders = sorted(set(xs))
    # Outlines with many corners would need as many boxes.
    if len(borders) - 1 > MAX_SLABS:
        borders = [
            min(xs) + (max(xs) - min(xs)) * i / MAX_SLABS for i in range(MAX_SLABS + 1)
        ]

    found = []
    for low, high in pairwise(borders):
        across = _width_at(outline, (low + high) / 2.0)
        if across is not None:
            size = (
                max(high - low, MIN_SIZE_M),
                max(across[1] - across[0], MIN_SIZE_M),
                height,
            )
            found.append(
                Shape(size, ((low + high) / 2.0, (across[0] + across[1]) / 2.0, middle))
            )

    # No box spans anything, because all corners lie on a line along y.
    if not found:
        found = [
            Shape(
                (MIN_SIZE_M, max(max(ys) - min(ys), MIN_SIZE_M), height),
                (cx, cy, middle),
            )
        ]

    return found


def _width_at(
    outline: Sequence[tuple[float, float]], x: float
) -> tuple[float, float] | None:
    """Return the extent of a polygon along y at a coordinate x.

    Parameters
    ----------
    outline : sequence of (float, float)
        Corners, m.
    x : float
        Coordinate of the line along y, m.

    Returns
    -------
    (float, float) or None
        Minimum and maximum y, m; None if the line misses the polygon.
    """
    ys = []
    for (x0, y0), (x1, y1) in zip(outline, (*outline[1:], outline[0]), strict=True):
        # The half-open intervals count a corner on the line only once.
        if (x0 <= x < x1) or (x1 <= x < x0):
            ys.append(y0 + (y1 - y0) * (x - x0) / (x1 - x0))

    return (min(ys), max(ys)) if ys else None


__all__ = [
    "BASE",
    "Joint",
    "Link",
    "RobotModel",
    "Shape",
    "body_shapes",
    "frames_of",
    "gripper_joints",
    "places",
    "robot_model",
    "steering_joints",
    "trailer_joints",
    "wheel_joints",
]
