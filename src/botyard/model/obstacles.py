"""Visibility of walls, boxes and robot bodies to sensors and collisions, and movable
boxes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from botyard.errors import ModelError
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.parameters import check_types, parameter
from botyard.names import shown
from botyard.numerics.elementary import cos, hypot, sin

MAX_BOX_M: Final = 1e9
"""Limit of the sides of boxes: maps have one that is smaller."""


class Visible(IntFlag):
    """Class mask of a segment or body; a sensor sees it when its own bit is set
    (feature table GEN-008).
    """

    NONE = 0
    OBSTACLE = 1
    LASER = 2
    SONAR = 4
    ALL = 7
    PUSHED = 8
    """It has mass: robots push it instead of being stopped by it."""

    def with_mass(self) -> Visible:
        """The mask of a body with mass: `PUSHED` instead of `OBSTACLE`."""
        return (
            (self & ~Visible.OBSTACLE) | Visible.PUSHED
            if self & Visible.OBSTACLE
            else self
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """Visibility of an object to sensors and collisions.

    Attributes
    ----------
    obstacle : bool
        Robots collide with it.
    laser : int
        0 invisible to lasers, 1 ordinary, 2 and more: bright, with that reflectance.
    sonar : bool
        Seen by sonar.
    fiducial : int
        Identifier that fiducial finders read; 0: none.
    blob : bool
        Blob finders detect its colour.
    """

    obstacle: bool = parameter(True, is_brief=True)
    laser: int = parameter(1, is_brief=True)
    sonar: bool = parameter(True, is_brief=True)
    fiducial: int = parameter(0, is_brief=True)
    blob: bool = parameter(True, is_brief=True)

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("laser", "fiducial"):
            value = getattr(self, name)
            if not -(2**31) <= value < 2**31:
                raise ModelError(
                    f"{name} return: expected a whole number of 32 bits, found "
                    f"{float(min(value, 10**300)):g}"
                )

    @property
    def mask(self) -> Visible:
        """The class mask that kernels test."""
        mask = Visible.NONE
        if self.obstacle:
            mask |= Visible.OBSTACLE
        if self.laser > 0:
            mask |= Visible.LASER
        if self.sonar:
            mask |= Visible.SONAR
        return mask


def rectangle(length: float, width: float) -> Outline:
    """A rectangle around the origin, counter-clockwise from its rear right corner; m."""
    hx, hy = length / 2.0, width / 2.0
    return ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))


def disc(radius: float, corners: int = 24) -> Outline:
    """A circle as the regular polygon of the same area, m."""
    r = radius * math.sqrt(2.0 * math.pi / corners / sin(2.0 * math.pi / corners))
    turn = 2.0 * math.pi / corners
    return tuple((r * cos(k * turn), r * sin(k * turn)) for k in range(corners))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxObject:
    """A movable object of a map, a box or another shape, that does not move by itself.

    Attributes
    ----------
    name : str
        Unique name, for example ``Box:1``.
    pose : Pose
        Centre and direction in the world.
    length, width : float
        Size along and across its direction, m.
    returns : Returns
        Visibility.
    color : str
        X11 colour name or ``#rrggbb``.
    parts : tuple of outlines
        Polygons of another shape than the rectangle, in its own frame, m.
    dynamics : DynamicsSpec or None
        Mass properties: it can be pushed; None: it stays where it is put.
    """

    name: str
    pose: Pose
    length: float
    width: float
    returns: Returns = Returns()
    color: str = "light green"
    parts: tuple[Outline, ...] = ()
    dynamics: DynamicsSpec | None = None

    def __post_init__(self) -> None:
        check_types(self)
        for what, side in (("length", self.length), ("width", self.width)):
            if not 0.0 <= side <= MAX_BOX_M:  # refuses NaN, too
                raise ModelError(
                    f"box {shown(self.name)}: {what} must be from 0 to "
                    f"{MAX_BOX_M:g} m, found {side:g}"
                )

    @property
    def outlines(self) -> tuple[Outline, ...]:
        """The polygons that it is made of, in its own frame, m: one rectangle if it is
        a box.
        """
        return self.parts or (rectangle(self.length, self.width),)

    @property
    def radius(self) -> float:
        """Distance from its origin to its farthest corner, m."""
        return max(hypot(x, y) for part in self.outlines for x, y in part)
