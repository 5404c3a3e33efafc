"""Movable boxes on maps, and visibility of objects to sensors and in collisions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from botyard.errors import ModelError, did_you_mean
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.materials import MATERIALS
from botyard.model.parameters import check_types, parameter
from botyard.names import shown
from botyard.numerics.elementary import cos, hypot, sin

MAX_BOX_M: Final = 1e9
"""Largest side of a box, m; the largest valid map is smaller."""


class Visible(IntFlag):
    """Classes of walls and bodies, as bits; a sensor detects an object if they share a bit.

    Source: feature table, row GEN-008.
    """

    NONE = 0
    OBSTACLE = 1
    LASER = 2
    SONAR = 4
    ALL = 7
    PUSHED = 8
    """Class of bodies with mass, which robots push and which do not stop them as a wall does."""

    def with_mass(self) -> Visible:
        """Return the classes of the same body with mass: `PUSHED` replaces `OBSTACLE`."""
        return (
            (self & ~Visible.OBSTACLE) | Visible.PUSHED
            if self & Visible.OBSTACLE
            else self
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """Visibility of an object to sensors and in collisions.

    Attributes
    ----------
    obstacle : bool
        Whether robots collide with it.
    laser : int
        Laser return: 0 invisible, 1 ordinary, 2 and more: bright. Pioneer packets report
        a bright surface with the reflectance `laser` − 1.
    sonar : bool
        Whether sonar sees it.
    fiducial : int
        Identifier that fiducial finders read; 0: none.
    blob : bool
        Whether blob finders detect its colour.
    material : str
        Material of its surface, a name of `botyard.model.materials.MATERIALS`, for lasers
        whose model has a `white_range`; empty: white and matt.

    Raises
    ------
    ModelError
        `laser` or `fiducial` does not fit into a signed 32-bit integer, or the material is
        unknown.
    """

    obstacle: bool = parameter(True, is_brief=True)
    laser: int = parameter(1, is_brief=True)
    sonar: bool = parameter(True, is_brief=True)
    fiducial: int = parameter(0, is_brief=True)
    blob: bool = parameter(True, is_brief=True)
    material: str = parameter("", is_brief=True)

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("laser", "fiducial"):
            value = getattr(self, name)
            # The limit comes from Stage's 32-bit fields. The message formats a float of
            # bounded size, because a huge integer would fill the screen.
            if not -(2**31) <= value < 2**31:
                raise ModelError(
                    f"{name} return: expected a whole number of 32 bits, found "
                    f"{float(min(value, 10**300)):g}"
                )

        if self.material not in MATERIALS:
            raise ModelError(
                f"material: expected one of {', '.join(filter(None, MATERIALS))}, "
                f'found "{shown(self.material)}"{did_you_mean(self.material, MATERIALS)}'
            )

    @property
    def mask(self) -> Visible:
        """Classes of the object as a bit mask, which kernels test."""
        mask = Visible.NONE
        if self.obstacle:
            mask |= Visible.OBSTACLE
        if self.laser > 0:
            mask |= Visible.LASER
        if self.sonar:
            mask |= Visible.SONAR
        return mask


def rectangle(length: float, width: float) -> Outline:
    """Return the corners of a rectangle around the origin, counter-clockwise from the rear right.

    Parameters
    ----------
    length, width : float
        Size along x and along y, m.
    """
    hx, hy = length / 2.0, width / 2.0
    return ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))


def disc(radius: float, corners: int = 24) -> Outline:
    """Return the corners of a regular polygon that has the area of a circle around the origin.

    Parameters
    ----------
    radius : float
        Radius of the circle, m. The corners lie farther out, so that the areas agree.
    corners : int
        Number of corners, at least 3.

    Returns
    -------
    tuple of (float, float)
        Corners, m, counter-clockwise from the x axis.
    """
    # The radius grows so that the polygon has the area of the circle.
    r = radius * math.sqrt(2.0 * math.pi / corners / sin(2.0 * math.pi / corners))
    turn = 2.0 * math.pi / corners
    return tuple((r * cos(k * turn), r * sin(k * turn)) for k in range(corners))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxObject:
    """Movable object of a map: a box or another shape, without a drive.

    Attributes
    ----------
    name : str
        Unique name, for example ``Box:1``.
    pose : Pose
        Centre and heading in the world.
    length, width : float
        Size along and across its heading, m.
    returns : Returns
        Visibility.
    color : str
        X11 colour name or ``#rrggbb``.
    parts : tuple of outlines
        Polygons, m, in the object's frame, if the shape is not a rectangle.
    dynamics : DynamicsSpec or None
        Mass properties, with which robots can push it; None: it never moves by contact.

    Raises
    ------
    ModelError
        A side is negative, larger than `MAX_BOX_M`, or not a number.
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
            # The chained comparison also refuses NaN.
            if not 0.0 <= side <= MAX_BOX_M:
                raise ModelError(
                    f"box {shown(self.name)}: {what} must be from 0 to "
                    f"{MAX_BOX_M:g} m, found {side:g}"
                )

    @property
    def outlines(self) -> tuple[Outline, ...]:
        """Polygons of the object in its own frame, m; a box has one rectangle."""
        return self.parts or (rectangle(self.length, self.width),)

    @property
    def radius(self) -> float:
        """Distance from the object's origin to its farthest corner, m."""
        return max(hypot(x, y) for part in self.outlines for x, y in part)
