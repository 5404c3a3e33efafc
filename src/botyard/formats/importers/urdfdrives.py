"""Drives of URDF robots, by their joints, plugins and controllers."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from botyard.formats.importers.axles import (
    SAME,
    WheelJoints,
    axle,
    spread,
    with_wheelbase,
)
from botyard.formats.importers.controlfile import ControlDrive
from botyard.formats.importers.drives import (
    WIDE,
    Driven,
    car,
    limits,
    middle_angle,
    turn_rate,
    with_four_wheels,
)
from botyard.formats.importers.sdfrobots import TOP, PluginDrive
from botyard.formats.importers.urdftree import Moving, Tree
from botyard.formats.importers.xmlfile import Element
from botyard.formats.notes import Notes, Position
from botyard.geometry import Pose
from botyard.model.kinematics import MAX_STEERING, Drive
from botyard.model.links import MAX_STEERING_RATE
from botyard.names import shown

NEAR: Final = 0.01
"""Greatest height above the floor at which a wheel's shape counts as standing on it, m."""
MANY: Final = 8
"""Largest number of names in a note."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """Wheels of a robot.

    Attributes
    ----------
    fixed : tuple of Moving
        Joints of wheels that do not steer.
    steering : tuple of Moving
        Joints that steer.
    """

    fixed: tuple[Moving, ...]
    steering: tuple[Moving, ...]


def find_wheels(tree: Tree, commanded: Collection[str], floor: float) -> Wheels:
    """Return the driven and the steered wheels of a robot.

    Wheels of casters are left out: they are below an upright joint without limits, or their
    names contain ``caster`` or ``swivel``.

    Parameters
    ----------
    tree : Tree
        Links and joints.
    commanded : collection of str
        Names of joints that a program commands; empty: the file does not say which.
    floor : float
        Height of the floor in the frame of the root link, m.
    """
    rolling = [
        j for j in tree.moving.values() if j.rolls and _has_wheel(j, tree, floor)
    ]
    steering = []
    for joint in tree.moving.values():
        carries = any(joint.name in j.above for j in rolling) or _has_wheel(
            joint, tree, floor
        )
        if joint.turns and carries and not _is_caster(joint, commanded):
            steering.append(joint)
    fixed = [
        j
        for j in rolling
        if "caster" not in j.name.lower()
        and not any(tree.moving[a].turns for a in j.above)
        and (not commanded or j.name in commanded)
    ]
    return Wheels(tuple(fixed), tuple(steering))


def _is_caster(joint: Moving, commanded: Collection[str]) -> bool:
    if commanded:
        return joint.name not in commanded
    name = f"{joint.name} {joint.child}".lower()
    if "steer" in name:
        return False
    return joint.kind == "continuous" or "caster" in name or "swivel" in name


def _has_wheel(joint: Moving, tree: Tree, floor: float) -> bool:
    """Return whether the link of a joint is a wheel: it reaches the floor, or is named so."""
    if "wheel" in joint.child.lower():
        return True
    corners = (
        frame.apply(p)[2]
        for solid, frame in tree.solids.get(joint.child, ())
        for p in solid.corners
    )
    return min(corners, default=math.inf) <= floor + NEAR


def radius_of(joints: Sequence[Moving], tree: Tree, floor: float) -> float | None:
    """Return the mean radius of wheels, m: the heights of their joints; None: no wheels."""
    heights = [j.frame.at[2] - floor for j in joints]
    found = [h for h in heights if h > 1e-3]
    return sum(found) / len(found) if found else None


def by_plugin(
    drive: PluginDrive, tree: Tree, floor: float, notes: Notes
) -> tuple[Driven, Pose]:
    """Return the drive of a plugin and the origin of the robot."""
    driven, joints, given = drive.driven, drive.joints, drive.given
    _note_absent((*joints.rolling, *joints.steering), tree, drive.plugin, notes)
    rolling = [tree.moving[n] for n in joints.rolling if n in tree.moving]
    if driven.wheel_radius is None:
        driven = driven._replace(wheel_radius=radius_of(rolling, tree, floor))
    return _placed(
        driven,
        joints,
        tree,
        notes,
        has_base=bool({"wheel_base", "wheelbase"} & given),
        has_limit=bool({"steering_limit", "max_steer"} & given),
        has_rate="max_steering_speed" in given,
    )


def by_controller(
    drive: ControlDrive, tree: Tree, floor: float, notes: Notes
) -> tuple[Driven, Pose]:
    """Return the drive of a controller of ros2_control and the origin of the robot."""
    driven, joints = drive.driven, drive.joints
    _note_absent((*joints.rolling, *joints.steering), tree, drive.where, notes)
    rolling = [tree.moving[n] for n in joints.rolling if n in tree.moving]
    if driven.wheel_radius is None:
        driven = driven._replace(wheel_radius=radius_of(rolling, tree, floor))
    return _placed(
        driven,
        joints,
        tree,
        notes,
        has_base=True,
        has_limit=drive.has_limit,
        has_rate=False,
    )


def by_joints(
    wheels: Wheels, tree: Tree, floor: float, robot: Element, notes: Notes
) -> tuple[Driven, Pose]:
    """Return the drive that the wheels suggest, and the origin of the robot.

    Two wheels next to each other are a differential drive, and steered wheels make a car
    or a tricycle. A robot without wheels gets an omnidirectional drive.
    """
    fixed, steering = wheels.fixed, wheels.steering
    track = _track(fixed)
    radius = radius_of(fixed or steering, tree, floor)
    rates = [j.limit("velocity") for j in fixed]
    known = [r for r in rates if r]
    top, turn = TOP
    if known and radius:
        top = min(known) * radius
        turn = 2.0 * top / track if track else turn
    else:
        notes.add(
            "top speed",
            robot,
            f"the file states no top speed: {top:g} m/s and {turn:g} rad/s are assumed",
        )
    if steering and fixed:
        joints = WheelJoints(
            tuple(j.name for j in fixed), tuple(j.name for j in steering)
        )
        driven = car(
            limits(top, 0.0, turn_rate(top, WIDE, 1.0)),
            1.0,
            WIDE,
            track=track,
            has_pair=len(steering) > 1,
            wheel_radius=radius,
        )
        return _placed(
            driven, joints, tree, notes, has_base=False, has_limit=False, has_rate=False
        )
    if track is not None:
        names = tuple(j.name for j in fixed)
        driven = Driven(
            Drive.DIFF, limits(top, 0.0, turn), None, None, radius, four=Drive.SKID
        )
        return _placed(
            driven,
            WheelJoints(names),
            tree,
            notes,
            has_base=False,
            has_limit=False,
            has_rate=False,
        )
    notes.add(
        "no wheels",
        robot,
        f'"{shown(robot.attributes.get("name", ""))}" has fewer than two driven wheels: its '
        "body slides in all directions; legs and arms do not move",
    )
    return Driven(Drive.OMNI, limits(top, top, turn)), Pose()


def _track(joints: Sequence[Moving]) -> float | None:
    """Return the distance of the left wheels from the right ones, m; None: no pair."""
    ys = [j.frame.at[1] for j in joints]
    left, right = [y for y in ys if y > SAME], [y for y in ys if y < -SAME]
    if not left or not right:
        # A pair may stand to one side of the frame of the root link.
        spread = max(ys) - min(ys) if ys else 0.0
        return spread if spread > SAME else None
    return sum(left) / len(left) - sum(right) / len(right)


def _placed(
    driven: Driven,
    joints: WheelJoints,
    tree: Tree,
    notes: Notes,
    *,
    has_base: bool,
    has_limit: bool,
    has_rate: bool,
) -> tuple[Driven, Pose]:
    """Return a drive with the wheelbase and the limits of its joints, and the robot's origin."""
    places = {name: joint.frame.at[:2] for name, joint in tree.moving.items()}
    along, across = spread(joints, places)
    driven = with_four_wheels(driven, along, across)
    if driven.track is None:
        rolling = [tree.moving[n] for n in joints.rolling if n in tree.moving]
        driven = driven._replace(track=_track(rolling))
    if driven.steering is not None:
        # Without a track, two steered wheels became a tricycle; now the track is known.
        driven = with_wheelbase(driven, driven.steering.wheelbase)
    origin, base = axle(driven, joints, places)
    if driven.steering is None:
        return driven, origin
    if base is not None:
        size = driven.steering.wheelbase if has_base else abs(base)
        driven = with_wheelbase(driven, math.copysign(size, base))
    steered = [tree.moving[n] for n in joints.steering if n in tree.moving]
    driven = _limited(driven, steered, notes, has_limit=has_limit, has_rate=has_rate)
    return driven, origin


def _limited(
    driven: Driven,
    steered: Sequence[Moving],
    notes: Notes,
    *,
    has_limit: bool,
    has_rate: bool,
) -> Driven:
    """Return a drive with the limits of its steered joints."""
    axle_of = driven.steering
    assert axle_of is not None
    limit, rate = axle_of.limit, axle_of.rate
    ends = [e for j in steered for e in (j.limit("lower"), j.limit("upper"))]
    angles = [abs(e) for e in ends if e]
    if angles and not has_limit:
        for joint in steered:
            most = max(abs(joint.limit(end) or 0.0) for end in ("lower", "upper"))
            if most > MAX_STEERING:
                notes.add(
                    f"limit {joint.name}",
                    joint.element,
                    f'joint "{shown(joint.name)}": the limit {most:.4g} is cut to '
                    f"{MAX_STEERING:.4g} rad, 89°",
                )
        # A joint's limit is the angle of the wheel on the inner side of a turn.
        inner = min(max(angles), MAX_STEERING)
        track = driven.track if driven.kind is Drive.ACKERMANN else None
        limit = middle_angle(inner, abs(axle_of.wheelbase), track or 0.0)
    rates = [r for j in steered if (r := j.limit("velocity"))]
    if rates and not has_rate:
        rate = min(rates)
    # botyard writes this rate into URDF files for a steering axle without a limit of
    # its rate.
    rate = 0.0 if rate >= MAX_STEERING_RATE else rate
    top = driven.limits.max_speed
    turn = top.a
    if top.a == turn_rate(top.x, axle_of.limit, axle_of.wheelbase):
        turn = turn_rate(top.x, limit, axle_of.wheelbase)
    return car(
        limits(top.x, 0.0, turn, driven.limits.accel.as_tuple()),
        axle_of.wheelbase,
        limit,
        rate=rate,
        track=driven.track,
        has_pair=driven.has_pair,
        by_angle=axle_of.by_angle,
        wheel_radius=driven.wheel_radius,
    )


def _note_absent(
    names: Sequence[str], tree: Tree, where: Position, notes: Notes
) -> None:
    absent = [n for n in names if n not in tree.moving]
    if absent:
        listed = ", ".join(f'"{shown(n)}"' for n in absent[:MANY])
        notes.add(
            "absent joints",
            where,
            f"joints that the drive names do not exist or do not move: {listed}",
        )


__all__ = ["Wheels", "by_controller", "by_joints", "by_plugin", "find_wheels"]
