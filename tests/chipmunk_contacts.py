"""Chipmunk 2D (pymunk) as a contact solver for `tests.chipmunk`: bodies with mass,
movers without mass, walls.

Bodies have the names of the engine's bodies. All quantities are planar and in SI units.
The solver has one thread; equal calls give equal results.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botyard.engine.build import convexity
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import GRAVITY, DynamicsSpec

if TYPE_CHECKING:
    import pymunk

SLOP = 5e-4
"""Bodies may overlap so much where they rest against each other, m: it keeps contacts
from coming and going.
"""
ITERATIONS = 20
Wall = tuple[float, float, float, float]
"""x1, y1, x2, y2, m."""
STILL = 1e-6
"""Slower than this is at rest, m/s and rad/s: what friction leaves of a velocity is
rounding.
"""


@dataclass(frozen=True, slots=True)
class Touch:
    """Where one body touches another one or a wall.

    Attributes
    ----------
    x, y : float
        Where, m, in the world.
    depth : float
        How deep they overlap, m.
    speed : float
        How fast the body moves into the other one there, m/s, as if that stood still.
    """

    x: float
    y: float
    depth: float
    speed: float


@dataclass(slots=True)
class _Body:
    body: pymunk.Body
    shapes: list[pymunk.Shape]
    ground: pymunk.Body | None = None
    floor: tuple[pymunk.PivotJoint, pymunk.GearJoint] | None = None
    spec: DynamicsSpec | None = None
    reach: float = 0.0
    mass: float = 0.0
    inertia: float = 0.0
    is_beside: bool = False
    """Its centre of mass is not its origin."""


class ContactSolver:
    """Moves bodies with mass by substeps so that they do not overlap other bodies or
    walls.
    """

    def __init__(self) -> None:
        import pymunk

        self._pymunk = pymunk
        self._space = pymunk.Space()
        self._space.iterations = ITERATIONS
        self._space.collision_slop = SLOP
        self._bodies: dict[str, _Body] = {}
        self._walls: dict[Wall, pymunk.Shape] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._bodies

    # -- population

    def add_mass(
        self,
        name: str,
        parts: Sequence[Outline],
        spec: DynamicsSpec,
        inertia: float,
        center: tuple[float, float],
        reach: float,
        pose: Pose,
    ) -> None:
        """Add a body with mass.

        Parameters
        ----------
        inertia, center, reach : float, (float, float), float
            Moment of inertia, kg·m²; centre of mass in the body's frame, m; lever of
            floor friction, m.
        """
        pm = self._pymunk
        body = pm.Body(spec.mass, inertia)
        body.center_of_gravity = center
        body.position, body.angle = (pose.x, pose.y), pose.th
        shapes = self._shapes(body, parts, spec.friction, spec.restitution)
        one = _Body(
            body,
            shapes,
            spec=spec,
            reach=reach,
            mass=spec.mass,
            inertia=inertia,
            is_beside=center != (0.0, 0.0),
        )
        ground = pm.Body(body_type=pm.Body.KINEMATIC)
        pivot, gear = (
            pm.PivotJoint(ground, body, (0.0, 0.0), center),
            pm.GearJoint(ground, body, 0.0, 1.0),
        )
        for joint in (pivot, gear):
            # Only velocities count: without a bias the floor pulls no body back to its place.
            joint.max_bias = 0.0
            joint.max_force = 0.0

        one.ground, one.floor = ground, (pivot, gear)
        self._space.add(body, *one.shapes, pivot, gear)
        self._bodies[name] = one

    def add_mover(self, name: str, parts: Sequence[Outline], pose: Pose) -> None:
        """Add a body that moves at given velocities and pushes bodies with mass."""
        pm = self._pymunk
        body = pm.Body(body_type=pm.Body.KINEMATIC)
        body.position, body.angle = (pose.x, pose.y), pose.th
        one = _Body(body, self._shapes(body, parts, 1.0, 1.0))
        self._space.add(body, *one.shapes)
        self._bodies[name] = one

    def _shapes(
        self,
        body: pymunk.Body,
        parts: Sequence[Outline],
        friction: float,
        restitution: float,
    ) -> list[pymunk.Shape]:
        pm = self._pymunk
        shapes: list[pymunk.Shape] = []
        for part in parts:
            for convex in _convex_pieces(part):
                shape = pm.Poly(body, list(convex))
                shape.friction, shape.elasticity = friction, restitution
                shapes.append(shape)

        return shapes

    def remove(self, name: str) -> None:
        """Remove a body."""
        one = self._bodies.pop(name)
        self._space.remove(*(one.floor or ()), *one.shapes, one.body)

    def set_walls(self, walls: Collection[Wall]) -> None:
        """Replace the walls."""
        for gone in [wall for wall in self._walls if wall not in walls]:
            self._space.remove(self._walls.pop(gone))
        for wall in walls:
            if wall not in self._walls:
                shape = self._pymunk.Segment(
                    self._space.static_body, wall[:2], wall[2:], 0.0
                )
                shape.friction = shape.elasticity = 1.0
                self._space.add(shape)
                self._walls[wall] = shape

    @property
    def walls(self) -> int:
        """Number of walls."""
        return len(self._walls)

    # -- pose and motion

    def pose(self, name: str) -> Pose:
        """Return the pose of a body's origin; the heading is not wrapped."""
        body = self._bodies[name].body
        return Pose(*body.position, body.angle)

    def velocity(self, name: str) -> tuple[float, float, float]:
        """Return the velocity of a body's origin in world axes, m/s and rad/s."""
        one = self._bodies[name]
        body = one.body
        vx, vy = (
            body.velocity_at_local_point((0.0, 0.0)) if one.is_beside else body.velocity
        )
        return vx, vy, body.angular_velocity

    def momentum(self, name: str) -> tuple[float, float, float]:
        """Return momentum, N·s, and angular momentum about the centre of mass, N·m·s."""
        one = self._bodies[name]
        vx, vy = one.body.velocity
        return one.mass * vx, one.mass * vy, one.inertia * one.body.angular_velocity

    def place(self, name: str, pose: Pose) -> None:
        """Set the pose of a body; its velocity stays."""
        body = self._bodies[name].body
        body.position, body.angle = (pose.x, pose.y), pose.th
        self._space.reindex_shapes_for_body(body)

    def move(self, name: str, vx: float, vy: float, w: float) -> None:
        """Set the velocity of a body's origin in world axes, m/s and rad/s."""
        one = self._bodies[name]
        body = one.body
        if one.is_beside:
            cx, cy = body.center_of_gravity
            c, s = math.cos(body.angle), math.sin(body.angle)
            vx, vy = vx - w * (s * cx + c * cy), vy + w * (c * cx - s * cy)

        body.velocity = vx, vy
        body.angular_velocity = w

    def push(self, name: str, fx: float, fy: float, torque: float) -> None:
        """Apply a force at the centre of mass and a torque in the next step.

        They are in world axes, N and N·m.
        """
        body = self._bodies[name].body
        body.force, body.torque = (fx, fy), torque

    def roll(self, name: str, vx: float, vy: float, w: float, friction: float) -> None:
        """Set the velocity of the surface under a body, which drags it by friction.

        The surface is wheels or the floor at rest; world axes, m/s and rad/s.
        """
        one = self._bodies[name]
        if one.floor is None or one.ground is None or one.spec is None:
            return
        limit = friction * one.spec.mass * GRAVITY
        for joint, force in zip(one.floor, (limit, limit * one.reach), strict=True):
            if joint.max_force != force:
                joint.max_force = force

        if limit > 0.0:
            one.ground.position, one.ground.angle = one.body.position, one.body.angle
            one.ground.velocity, one.ground.angular_velocity = (vx, vy), w

    def damp(self, name: str, linear: float, angular: float) -> None:
        """Multiply the velocities by a factor."""
        body = self._bodies[name].body
        body.velocity = body.velocity * linear
        body.angular_velocity *= angular

    def step(self, dt: float) -> None:
        """Advance by `dt` s."""
        self._space.step(dt)

    def still(self, name: str) -> bool:
        """Return whether a body is at rest, and set rounding errors of its velocity to
        zero.
        """
        body = self._bodies[name].body
        if body.velocity.length > STILL or abs(body.angular_velocity) > STILL:
            return False
        body.velocity, body.angular_velocity = (0.0, 0.0), 0.0
        return True

    def touches(self, name: str) -> list[Touch]:
        """Return the contacts of a body since the last step."""
        found: list[Touch] = []
        body = self._bodies[name].body

        # The first shape of an arbiter and the start of its normal belong to the body.
        def note(
            arbiter: pymunk.Arbiter,
        ) -> None:
            points = arbiter.contact_point_set
            for p in points.points:
                speed = body.velocity_at_world_point(p.point_a).dot(points.normal)
                found.append(
                    Touch(p.point_a[0], p.point_a[1], max(0.0, -p.distance), speed)
                )

        body.each_arbiter(note)
        return found


def _convex_pieces(part: Outline) -> Iterable[Outline]:
    """Cut a polygon into convex polygons."""
    from pymunk.autogeometry import convex_decomposition

    if convexity(part) != 0.0:
        return (part,)
    area = sum(
        x0 * y1 - x1 * y0
        for (x0, y0), (x1, y1) in zip(part, (*part[1:], part[0]), strict=True)
    )
    turned = part if area > 0.0 else part[::-1]
    pieces = convex_decomposition([*turned, turned[0]], 0.0)
    return [tuple((float(x), float(y)) for x, y in piece[:-1]) for piece in pieces]


__all__ = ["ContactSolver", "Touch"]
