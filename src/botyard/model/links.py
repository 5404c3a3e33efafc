"""A robot model as links and joints, for ROS: frames of its sensors, wheels that turn,
a gripper that moves, and what it looks like.

The world is flat, so models have no heights: bodies and cases of sensors are drawn with
usual ones (constants below). Frames of sensors are in the plane of the floor, as the
transforms and points that botyard publishes.
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
"""The link of the body; its frame is the robot's (REP-105), on the floor."""
BODY_BOTTOM_M: Final = 0.05
BODY_TOP_M: Final = 0.22
"""Between these heights a body is drawn."""
CASE_HEIGHT_M: Final = 0.15
"""Height of the case of a laser, on top of the body."""
CASE_SIZE_M: Final = 0.1
"""Length and width of the case of a laser that has none in its model."""
WHEEL_WIDTH_M: Final = 0.04
PADDLE_BOTTOM_M: Final = 0.02
PADDLE_TOP_M: Final = 0.1
"""Between these heights the paddles of a gripper are drawn."""
MAX_SLABS: Final = 12
"""Most boxes for one outline."""
ROUND_TOLERANCE: Final = 0.03
"""An outline is a circle if its corners are this near to one, as a share of its radius.
"""
MIN_ROUND_CORNERS: Final = 8
"""Fewer corners are no circle."""
MIN_SIZE_M: Final = 0.001
"""Least size of a box: some programs refuse flat ones."""


class Shape(NamedTuple):
    """What a link looks like.

    Attributes
    ----------
    size : tuple of float
        Length, width and height of a box; radius and height of a cylinder; m.
    at : (float, float, float)
        Its centre in the frame of the link, m.
    roll : float
        By which it is turned about the x axis, rad: a cylinder stands upright else.
    """

    size: tuple[float, ...]
    at: tuple[float, float, float]
    roll: float = 0.0

    @property
    def is_cylinder(self) -> bool:
        """Whether it is a cylinder; else it is a box."""
        return len(self.size) == 2


class Link(NamedTuple):
    """A rigid part with a frame of its own. `name`: without a prefix."""

    name: str
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A joint: how a link is mounted on its parent.

    Attributes
    ----------
    name : str
        Its name in sensor_msgs/JointState.
    kind : str
        URDF's: ``fixed``, ``continuous`` (it turns about the axis without end) or
        ``prismatic`` (it slides along it).
    parent, child : str
        Links.
    pose, z : Pose, float
        Frame of the child in that of the parent at position 0, m and rad.
    axis : (float, float, float)
        Unit vector in the child's frame.
    limits : (float, float)
        Least and greatest position of a prismatic joint, m.
    speed : float
        Greatest speed of a prismatic joint, m/s.
    """

    name: str
    kind: Literal["fixed", "continuous", "prismatic"] = "fixed"
    parent: str
    child: str
    pose: Pose = IDENTITY
    z: float = 0.0
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] = (0.0, 0.0)
    speed: float = 0.0


class RobotModel(NamedTuple):
    """Links and joints of a robot: a tree, the root of which is the first link."""

    links: tuple[Link, ...]
    joints: tuple[Joint, ...]


# -- frames of devices


def places(devices: Iterable[tuple[str, DeviceSpec]]) -> Iterator[Place]:
    """The place of each device (by name and description) among those of its kind."""
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
    """The frames of a device in a name profile, without the robot's prefix."""
    patterns = [f.name for f in kind.frames if not f.profiles or profile in f.profiles]
    patterns += [
        ros.frame for ros in kind.ros_messages if ros.frame and profile in ros.profiles
    ]
    return [*dict.fromkeys(place.named(pattern) for pattern in patterns)]


# -- the parts of a robot


def wheel_joints(spec: RobotSpec) -> tuple[Joint, Joint]:
    """Left and right driven wheel. Positions are positive where the wheel has rolled
    forward, rad.
    """
    half = spec.kinematics.half_track
    left, right = (
        Joint(
            name=f"{side}_wheel_joint",
            kind="continuous",
            parent=BASE,
            child=f"{side}_wheel",
            pose=Pose(0.0, y),
            z=spec.wheel_radius,
            axis=(0.0, 1.0, 0.0),
        )
        for side, y in (("left", half), ("right", -half))
    )
    return left, right


def gripper_joints(spec: RobotSpec) -> tuple[Joint, ...]:
    """Left and right paddle of the gripper, if there is one. Positions are distances
    from the middle line, m.
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
    """Links and joints of a robot.

    Parameters
    ----------
    spec : RobotSpec
        The robot.
    profile : str
        The name profile, which says what the frames of devices are called.
    footprint : str
        Name of a root link below the body, as ``base_footprint`` (REP-120); empty:
        none.
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
        links.insert(0, Link(footprint))
        joints.append(Joint(name=f"{BASE}_joint", parent=footprint, child=BASE))

    for joint in (*wheel_joints(spec), *gripper_joints(spec)):
        links.append(Link(joint.child, (_part(spec, joint),)))
        joints.append(joint)

    taken = {link.name for link in links}
    devices = [*zip(names_of(spec.equipment), spec.equipment, strict=True)]
    for (_, device), place in zip(devices, places(devices), strict=True):
        kind = find_device(device.type)
        for name in frames_of(kind, place, profile):
            if name not in taken:
                taken.add(name)
                links.append(Link(name, _case(device)))
                joints.append(
                    Joint(
                        name=f"{name}_joint",
                        parent=BASE,
                        child=name,
                        pose=kind.mounting(device),
                    )
                )

    return RobotModel(tuple(links), tuple(joints))


def _part(spec: RobotSpec, joint: Joint) -> Shape:
    """A wheel, or a paddle outside of its position."""
    if joint.kind == "continuous":
        return Shape((spec.wheel_radius, WHEEL_WIDTH_M), (0.0, 0.0, 0.0), math.pi / 2.0)
    gripper = spec.gripper
    assert gripper is not None
    size = (gripper.reach, gripper.thickness, PADDLE_TOP_M - PADDLE_BOTTOM_M)
    return Shape(size, (size[0] / 2.0, joint.axis[1] * size[1] / 2.0, size[2] / 2.0))


def _case(device: DeviceSpec) -> tuple[Shape, ...]:
    """The case of a laser; other sensors have none."""
    size = getattr(device, "size", None)
    if device.type != "laser" or size is None:
        return ()
    length, width = (max(x, MIN_SIZE_M) if x > 0.0 else CASE_SIZE_M for x in size)
    return (
        Shape(
            (length, width, CASE_HEIGHT_M), (0.0, 0.0, BODY_TOP_M + CASE_HEIGHT_M / 2.0)
        ),
    )


def body_shapes(outline: Outline) -> list[Shape]:
    """A polygon as boxes side by side along x, each as wide as the polygon in its
    middle; a circle as a cylinder.
    """
    height, middle = BODY_TOP_M - BODY_BOTTOM_M, (BODY_TOP_M + BODY_BOTTOM_M) / 2.0
    xs, ys = zip(*outline, strict=True)
    cx, cy = (min(xs) + max(xs)) / 2.0, (min(ys) + max(ys)) / 2.0
    radii = [hypot(x - cx, y - cy) for x, y in outline]
    if len(outline) >= MIN_ROUND_CORNERS and max(radii) - min(
        radii
    ) <= ROUND_TOLERANCE * max(radii):
        return [Shape((max(radii), height), (cx, cy, middle))]

    borders = sorted(set(xs))
    if len(borders) - 1 > MAX_SLABS:
        borders = [
            min(xs) + (max(xs) - min(xs)) * i / MAX_SLABS for i in range(MAX_SLABS + 1)
        ]

    found = []
    for low, high in pairwise(borders):
        across = _across(outline, (low + high) / 2.0)
        if across is not None:
            size = (
                max(high - low, MIN_SIZE_M),
                max(across[1] - across[0], MIN_SIZE_M),
                height,
            )
            found.append(
                Shape(size, ((low + high) / 2.0, (across[0] + across[1]) / 2.0, middle))
            )

    if not found:  # all corners on a line along y
        found = [
            Shape(
                (MIN_SIZE_M, max(max(ys) - min(ys), MIN_SIZE_M), height),
                (cx, cy, middle),
            )
        ]

    return found


def _across(
    outline: Sequence[tuple[float, float]], x: float
) -> tuple[float, float] | None:
    """Least and greatest y of a polygon at x; None: it is not there."""
    ys = []
    for (x0, y0), (x1, y1) in zip(outline, (*outline[1:], outline[0]), strict=True):
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
    "wheel_joints",
]
