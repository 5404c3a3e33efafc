"""Solids in space: their poses, and the outlines in which a horizontal plane cuts them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from botyard.formats.importers.shapes import CORNERS, circle
from botyard.geometry import Outline, Pose
from botyard.numerics.elementary import atan2, cosine_sine
from botyard.units import from_deg

Point = tuple[float, float, float]
LEVEL: Final = 1e-9
"""Largest sine of a tilt that counts as none.

Files hold rounded angles, and a tilt of 1e-9 moves a wall of 1 km by 1 µm.
"""


class Rotation(NamedTuple):
    """Rows of a rotation matrix."""

    x: Point
    y: Point
    z: Point

    @classmethod
    def of_angles(cls, roll: float, pitch: float, yaw: float) -> Rotation:
        """Return the rotation by fixed-axis roll, pitch and yaw, rad (SDF, REP-103)."""
        cr, sr = cosine_sine(roll)
        cp, sp = cosine_sine(pitch)
        cy, sy = cosine_sine(yaw)
        return cls(
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )

    @classmethod
    def of_quaternion(cls, x: float, y: float, z: float, w: float) -> Rotation:
        """Return the rotation of a quaternion, which need not have unit length.

        Source: Diebel, *Representing Attitude*, 2006, eq. 125.
        """
        n = math.sqrt(x * x + y * y + z * z + w * w)
        if not n:
            return cls((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
        x, y, z, w = x / n, y / n, z / n, w / n
        return cls(
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )

    def apply(self, p: Point) -> Point:
        """Return a rotated point."""
        x, y, z = (row[0] * p[0] + row[1] * p[1] + row[2] * p[2] for row in self)
        return x, y, z

    def after(self, other: Rotation) -> Rotation:
        """Return the rotation by `other`, then by this one."""
        columns = [self.apply((other.x[i], other.y[i], other.z[i])) for i in range(3)]
        a, b, c = columns
        return Rotation((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2]))


UPRIGHT: Final = Rotation((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Identity rotation."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Pose in space: transform from a body's frame to its parent's.

    Attributes
    ----------
    at : tuple of float
        Position, m.
    turn : Rotation
        Orientation.
    """

    at: Point = (0.0, 0.0, 0.0)
    turn: Rotation = UPRIGHT

    def apply(self, p: Point) -> Point:
        """Return a point in the parent's frame."""
        x, y, z = self.turn.apply(p)
        return x + self.at[0], y + self.at[1], z + self.at[2]

    def compose(self, inner: Frame) -> Frame:
        """Return the pose of an inner frame in this frame's parent."""
        return Frame(self.apply(inner.at), self.turn.after(inner.turn))

    @property
    def is_upright(self) -> bool:
        """Whether its z axis is vertical, up or down."""
        return abs(self.turn.x[2]) <= LEVEL and abs(self.turn.y[2]) <= LEVEL

    @property
    def plane(self) -> Pose:
        """Pose in the plane: position and heading of the x axis, m and rad."""
        return Pose(self.at[0], self.at[1], atan2(self.turn.y[0], self.turn.x[0]))


class Polyhedron(NamedTuple):
    """Convex solid: corners, m, and edges as pairs of their indices."""

    corners: Sequence[Point]
    edges: Sequence[tuple[int, int]]


def box(x: float, y: float, z: float) -> Polyhedron:
    """Return a box around the origin, by its sides, m."""
    corners = [
        (sx * x / 2.0, sy * y / 2.0, sz * z / 2.0)
        for sx in (-1, 1)
        for sy in (-1, 1)
        for sz in (-1, 1)
    ]
    edges = [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]
    return Polyhedron(corners, edges)


def lathe(rings: Sequence[tuple[float, float]]) -> Polyhedron:
    """Return a solid of revolution about the z axis, as a polyhedron.

    Parameters
    ----------
    rings : sequence of (radius, z)
        Circles, from the lowest to the highest, m.
    """
    n = CORNERS[0]
    corners: list[Point] = []
    edges = []
    for k, (radius, z) in enumerate(rings):
        for i in range(n):
            c, s = cosine_sine(from_deg(360.0 * i / n))
            corners.append((radius * c, radius * s, z))
            edges.append((k * n + i, k * n + (i + 1) % n))
            if k:
                edges.append(((k - 1) * n + i, k * n + i))
    return Polyhedron(corners, edges)


def ball(x: float, y: float, z: float, stretch: float = 0.0) -> Polyhedron:
    """Return an ellipsoid of these radii, m.

    The two halves are apart by `stretch` along z: a capsule.
    """
    rings = 12
    found = []
    for k in range(rings + 1):
        c, s = cosine_sine(from_deg(-90.0 + 180.0 * k / rings))
        half = 0.5 * stretch if 2 * k >= rings else -0.5 * stretch
        found.append((c, z * s + half))
        if 2 * k == rings and stretch:
            found.insert(-1, (c, -0.5 * stretch))
    unit = lathe(found)
    return Polyhedron([(x * a, y * b, c) for a, b, c in unit.corners], unit.edges)


def cut(solid: Polyhedron, frame: Frame, height: float) -> Outline:
    """Return the outline in which a horizontal plane cuts a convex solid; empty: no cut.

    Parameters
    ----------
    solid : Polyhedron
        Solid in its own frame.
    frame : Frame
        Its pose in the world.
    height : float
        Height of the plane, m.

    Returns
    -------
    tuple of (float, float)
        Corners counter-clockwise, m.
    """
    corners = [frame.apply(p) for p in solid.corners]
    found = []
    for i, j in solid.edges:
        (x0, y0, z0), (x1, y1, z1) = corners[i], corners[j]
        if (z0 <= height) != (z1 <= height):
            t = (height - z0) / (z1 - z0)
            found.append((x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
    return hull(found)


def slab(solid: Polyhedron, frame: Frame, low: float, high: float) -> Outline:
    """Return the outline of what lies between two heights, as seen from above; empty: nothing.

    Parameters
    ----------
    solid : Polyhedron
        Convex solid in its own frame.
    frame : Frame
        Its pose.
    low, high : float
        Heights, m.

    Returns
    -------
    tuple of (float, float)
        Corners counter-clockwise, m.
    """
    corners = [frame.apply(p) for p in solid.corners]
    found = [(x, y) for x, y, z in corners if low <= z <= high]
    for i, j in solid.edges:
        (x0, y0, z0), (x1, y1, z1) = corners[i], corners[j]
        for height in (low, high):
            if (z0 <= height) != (z1 <= height):
                t = (height - z0) / (z1 - z0)
                found.append((x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
    return hull(found)


def shadow(solid: Polyhedron, frame: Frame) -> Outline:
    """Return the outline of a convex solid as seen from above."""
    return hull([frame.apply(p)[:2] for p in solid.corners])


def cut_round(
    radius: float, low: float, high: float, frame: Frame, height: float
) -> Outline:
    """Return the cut of an upright cylinder between two heights of its own frame."""
    up = frame.turn.z[2] > 0.0
    z = (height - frame.at[2]) * (1.0 if up else -1.0)
    if not low <= z <= high:
        return ()
    return tuple((x + frame.at[0], y + frame.at[1]) for x, y in circle(radius))


def hull(points: Sequence[tuple[float, float]]) -> Outline:
    """Return the convex hull of points, counter-clockwise; empty: it has no area.

    Source: Andrew, *Another efficient algorithm for convex hulls in two dimensions*,
    1979 (monotone chain).
    """
    found = sorted(set(points))
    if len(found) < 3:
        return ()

    def chain(order: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        kept: list[tuple[float, float]] = []
        for x, y in order:
            while len(kept) > 1:
                (ax, ay), (bx, by) = kept[-2], kept[-1]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                    break
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    around = tuple(chain(found) + chain(found[::-1]))
    return around if len(around) > 2 else ()


__all__ = [
    "Frame",
    "Polyhedron",
    "Rotation",
    "ball",
    "box",
    "cut",
    "cut_round",
    "hull",
    "lathe",
    "shadow",
    "slab",
]
