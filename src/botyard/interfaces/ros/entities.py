"""Entities of simulation_interfaces: robots, moving obstacles and boxes of the map.

This module describes them, returns their states, and applies filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any, Final

import numpy as np

from botyard.control import Control
from botyard.control.site import BodyInfo
from botyard.engine.hulls import convex_hull
from botyard.errors import PeerError
from botyard.geometry import Outline, Pose, Twist
from botyard.model.obstacles import BoxObject
from botyard.model.regions import Disc, Region, overlaps, placed, reach
from botyard.model.robot import RobotSpec
from botyard.model.world import THING
from botyard.names import shown
from botyard.numerics.elementary import cosine_sine
from botyard.protocols.ros_messages.limits import MAX_LISTED
from botyard.protocols.ros_messages.messages import Messages, Stamp, yaw_of
from botyard.protocols.ros_messages.regex import Pattern
from botyard.protocols.ros_messages.simulation_interfaces import (
    ALL_TAGS,
    PACKAGE,
    Category,
    Code,
    Refused,
    Shape,
)
from botyard.protocols.ros_messages.types import Types
from botyard.sim.simulation import Robot

PEDESTRIAN: Final = "walk"
"""Name of the controller that moves an obstacle like a pedestrian."""
FRAMES: Final = frozenset(["", "map", "world"])
"""Accepted names of the world's frame in requests.

``world`` is its name in the standard. ``map`` has the same origin (see /tf_static), and
an empty name means ``world``.
"""
NORM_TOLERANCE: Final = 0.01
"""Tolerance of a quaternion's squared norm around 1, as in tf2."""
MAX_BOUND_M: Final = 1e9
"""Limit to which coordinates of bounds are clipped, m.

No body is that far away, and larger numbers overflow in products.
"""


class Entities:
    """Description, state and search of entities, for the services of simulation_interfaces.

    Parameters
    ----------
    types, messages : Types, Messages
        Message types and factory.
    control : Control
        The control surface.
    stamp : callable
        Returns the time stamp of the present state.
    """

    def __init__(
        self,
        types: Types,
        messages: Messages,
        control: Control,
        stamp: Callable[[], Stamp],
    ) -> None:
        self._types = types
        self._m = messages
        self._control = control
        self._sim = control.sim
        self._stamp = stamp

    def _make(self, kind: str, /, **fields: Any) -> Any:
        return self._types.two(f"{PACKAGE}/{kind}")(**fields)

    def names(self) -> list[str]:
        """Return the names of all entities: robots and boxes."""
        return [*self._sim.robots, *self._sim.core.box_names]

    def known(self, name: Any) -> str:
        """Return a name from a request as a string, if an entity has this name.

        Parameters
        ----------
        name : object
            Name in a request.

        Raises
        ------
        Refused
            No entity has this name.
        """
        if (
            str(name) not in self._sim.robots
            and str(name) not in self._sim.core.box_names
        ):
            raise Refused(Code.NOT_FOUND, f'no robot or object "{shown(name)}"')
        return str(name)

    # -- descriptions

    def _spec(self, name: str) -> RobotSpec | BoxObject:
        robot: Robot | None = self._sim.robots.get(name)
        return (
            robot.spec
            if robot is not None
            else self._sim.scene.boxes[self._sim.core.box_names.index(name)]
        )

    def _kind(self, name: str) -> BodyInfo:
        """Return category, description and tags of an entity.

        They are the information that a client has set, or otherwise information from
        the model.
        """
        said = self._control.info(name)
        if said is not None:
            return said
        spec = self._spec(name)
        if isinstance(spec, BoxObject):
            category = (
                Category.STATIC_OBJECT
                if spec.dynamics is None
                else Category.DYNAMIC_OBJECT
            )
            return BodyInfo(category, "box of the map", ("box",))

        about = spec.pioneer.subclass or spec.name
        # Moving obstacles also have a drive, but are not robots.
        if spec.drive and spec.name != THING:
            category = Category.ROBOT
        elif spec.drive or spec.dynamics is not None:
            program = self._sim.core.programs.by_robot.get(name)
            category = (
                Category.HUMAN
                if program is not None and program.name == PEDESTRIAN
                else Category.DYNAMIC_OBJECT
            )
        else:
            category = Category.STATIC_OBJECT

        return BodyInfo(category, about, (spec.name,))

    def info(self, name: str) -> Any:
        """Return the EntityInfo of an entity.

        Parameters
        ----------
        name : str
            Name of an existing entity, as `known` returns it.
        """
        kind = self._kind(name)
        category = self._make("EntityCategory", category=int(kind.category))
        return self._make(
            "EntityInfo",
            category=category,
            description=kind.description,
            tags=list(kind.tags),
        )

    def bounds(self, name: str) -> Any:
        """Return the Bounds of an entity: a box in the entity's own frame."""
        return self.box(self._spec(name))

    def box(self, spec: RobotSpec | BoxObject) -> Any:
        """Return the Bounds of a model: a box along the axes of the model.

        Parameters
        ----------
        spec : RobotSpec or BoxObject
            Model; its outlines are in its own frame, m.

        Returns
        -------
        simulation_interfaces/Bounds
            Box along the axes of the model, m: upper right corner, then lower left
            corner.
        """
        corners = np.array(
            [corner for outline in _outlines(spec) for corner in outline]
        )
        # `tolist` gives Python numbers, which the encoders of messages expect.
        (x0, y0), (x1, y1) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
        return self._make(
            "Bounds",
            type=int(Shape.BOX),
            points=[self._m.vector(x1, y1), self._m.vector(x0, y0)],
        )

    # -- states

    def state(self, name: str) -> Any:
        """Return the EntityState of an entity: its true pose and velocity in the frame of the map.

        Parameters
        ----------
        name : str
            Name of an entity of the engine.

        Returns
        -------
        simulation_interfaces/EntityState
            Pose and twist in the frame ``map``, m, rad, m/s, rad/s. The acceleration is
            zero, because the engine keeps none.
        """
        m, snapshot = self._m, self._sim.snapshot
        row = snapshot.rows[name]
        x, y, yaw = snapshot.state.pose[row].tolist()
        v, vy, w = snapshot.state.vel[row].tolist()

        # ROS wants the twist in the frame of the header; the engine has it in the
        # body's frame.
        cos, sin = cosine_sine(yaw)
        still = self._types["geometry_msgs/Accel"](
            m.vector(0.0, 0.0), m.vector(0.0, 0.0)
        )
        return self._make(
            "EntityState",
            header=m.header(self._stamp(), "map"),
            pose=m.pose(Pose(x, y, yaw)),
            twist=m.twist(Twist(v * cos - vy * sin, v * sin + vy * cos, w)),
            # The engine keeps no accelerations.
            acceleration=still,
        )

    # -- filters

    def filtered(self, filters: Any) -> list[str]:
        """Return the names of the entities that pass all filters of a request.

        Parameters
        ----------
        filters : EntityFilters
            Filter by name, category, tags and bounds; an empty part matches all
            entities.

        Returns
        -------
        list of str
            Names, in the order of the entities.

        Raises
        ------
        Refused
            A filter is invalid, too long, or of a kind that is not supported.
        """
        # Each entity is compared with each tag and category, so limit their number.
        if len(filters.categories) > MAX_LISTED or len(filters.tags.tags) > MAX_LISTED:
            raise Refused(
                Code.OPERATION_FAILED,
                f"filters: expected at most {MAX_LISTED} tags and {MAX_LISTED} categories, found "
                f"{len(filters.tags.tags)} and {len(filters.categories)}",
            )

        names = self.names()
        try:
            # botyard's own regular-expression engine takes linear time: a client's
            # pattern must not stall the simulator.
            pattern = Pattern(str(filters.filter))
            if filters.filter:
                names = [n for n in names if pattern.search(n)]
        except PeerError as error:
            raise Refused(Code.OPERATION_FAILED, f"filter: {error}") from None

        categories = {int(c.category) for c in filters.categories}
        # After the filter by name, descriptions are made for few entities only.
        if categories or filters.tags.tags:
            kinds = {n: self._kind(n) for n in names}
            names = [
                n for n in names if not categories or kinds[n].category in categories
            ]
            names = [n for n in names if has_tags(filters.tags, kinds[n].tags)]

        region = _region(filters.bounds)
        # Test the geometry last, because this test takes longest.
        return names if region is None else list(self._inside(names, region))

    def _inside(self, names: list[str], region: Region) -> Iterator[str]:
        """Yield the entities that overlap with a region.

        A fast test of bounding squares excludes most entities before the exact test.
        """
        snapshot = self._sim.snapshot
        specs = [self._spec(n) for n in names]
        # Many bodies share a spec, so compute each size once. No corner is farther from
        # the origin than √2 times the largest coordinate, so twice it is a safe bound.
        sizes = {
            id(s): max(max(abs(x), abs(y)) for o in _outlines(s) for x, y in o) * 2.0
            for s in specs
        }
        poses = snapshot.state.pose[[snapshot.rows[n] for n in names]].reshape(-1, 3)
        size = np.array([sizes[id(s)] for s in specs])
        x0, y0, x1, y1 = reach(region)
        x, y = poses[:, 0], poses[:, 1]
        # One comparison of arrays leaves out most bodies before the exact test.
        near = (x + size >= x0) & (x - size <= x1) & (y + size >= y0) & (y - size <= y1)

        for name, spec, pose in compress(
            zip(names, specs, poses.tolist(), strict=True), near
        ):
            where = Pose(*pose)
            if any(
                overlaps(region, placed(outline, where)) for outline in _outlines(spec)
            ):
                yield name


def _outlines(spec: RobotSpec | BoxObject) -> tuple[Outline, ...]:
    return (
        (spec.parts or (spec.outline,))
        if isinstance(spec, RobotSpec)
        else spec.outlines
    )


def wanted_pose(header: Any, pose: Any, code: Code) -> Pose:
    """Return the pose that a request contains, in the world's frame.

    Parameters
    ----------
    header : std_msgs/Header
        Header, whose frame must be ``world`` or ``map``.
    pose : geometry_msgs/Pose
        Position, m, and a unit quaternion, of which only the rotation about z counts.
    code : Code
        Result code of the error.

    Returns
    -------
    Pose
        Position, m, and heading, rad.

    Raises
    ------
    Refused
        With `code`: the frame is unknown, a number is not finite, or the quaternion is
        not of length 1.
    """
    if str(header.frame_id) not in FRAMES:
        raise Refused(
            code,
            f'pose: expected the frame "world" or "map", found "{shown(header.frame_id)}"',
        )

    turn = [float(getattr(pose.orientation, axis)) for axis in "xyzw"]
    place = [float(getattr(pose.position, axis)) for axis in "xyz"]
    if not all(map(math.isfinite, (*turn, *place))):
        raise Refused(
            code,
            "pose: expected finite numbers, found position "
            f"{', '.join(f'{v:g}' for v in place)}, orientation "
            f"{', '.join(f'{v:g}' for v in turn)}",
        )

    # The comparison is negated, so that NaN is refused.
    if (
        not abs(
            turn[0] * turn[0]
            + turn[1] * turn[1]
            + turn[2] * turn[2]
            + turn[3] * turn[3]
            - 1.0
        )
        <= NORM_TOLERANCE
    ):
        raise Refused(
            code,
            f"pose: expected a quaternion of length 1, found {', '.join(f'{q:g}' for q in turn)}",
        )

    # The height is ignored, because the world is flat.
    return Pose(place[0], place[1], yaw_of(pose.orientation))


def has_tags(wanted: Any, tags: Iterable[str]) -> bool:
    """Return whether tags match a TagsFilter; an empty filter matches all.

    Parameters
    ----------
    wanted : simulation_interfaces/TagsFilter
        Filter of a request: all tags must match, or at least one, by its
        ``filter_mode``.
    tags : iterable of str
        Tags of the entity or world.
    """
    if not wanted.tags:
        return True
    found = [tag in tags for tag in wanted.tags]
    return all(found) if int(wanted.filter_mode) == ALL_TAGS else any(found)


def _region(bounds: Any) -> Region | None:
    """Return the region of Bounds in the plane; None for Bounds without limits.

    Heights are ignored, because they are not simulated.

    Raises
    ------
    Refused
        The type is not supported, or the points do not match the type.
    """
    kind, points = int(bounds.type), bounds.points
    if kind == Shape.EMPTY:
        return None
    if kind not in (Shape.BOX, Shape.CONVEX_HULL, Shape.SPHERE):
        raise Refused(
            Code.FEATURE_UNSUPPORTED,
            f"bounds: expected a type from 0 to {max(Shape):d}, found {kind}",
        )

    # A hull needs three points; a box and a sphere have exactly two.
    if len(points) > MAX_LISTED or (
        len(points) < 3 if kind == Shape.CONVEX_HULL else len(points) != 2
    ):
        wanted = f"3 to {MAX_LISTED}" if kind == Shape.CONVEX_HULL else "2"
        raise Refused(
            Code.OPERATION_FAILED,
            f"bounds: expected {wanted} points, found {len(points)}",
        )

    values = np.array([(p.x, p.y) for p in points], np.float64)
    if np.isnan(values).any():
        raise Refused(
            Code.OPERATION_FAILED, "bounds: expected numbers as coordinates, found NaN"
        )
    # Infinite bounds are valid: they mean an open side.
    corners = np.clip(values, -MAX_BOUND_M, MAX_BOUND_M).tolist()

    # The second point of a sphere holds its radius in x.
    if kind == Shape.SPHERE:
        (x, y), (radius, _) = corners
        if radius < 0.0:
            raise Refused(
                Code.OPERATION_FAILED,
                f"bounds: expected a radius of at least 0, found {radius:g}",
            )

        return Disc(x, y, radius)

    if kind == Shape.BOX:
        (xa, ya), (xb, yb) = corners
        return (xa, ya), (xb, ya), (xb, yb), (xa, yb)

    return convex_hull(tuple(map(tuple, corners)))


__all__ = ["Entities", "has_tags", "wanted_pose"]
