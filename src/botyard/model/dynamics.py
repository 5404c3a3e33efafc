"""Mass properties of bodies that are pushed or driven by forces.

The module also computes the moments of their outlines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from botyard.errors import ModelError
from botyard.model.parameters import check_types, parameter, range_problems
from botyard.numerics.elementary import hypot
from botyard.numerics.elementary import total as sum_up

if TYPE_CHECKING:
    from botyard.geometry import Outline

GRAVITY: Final = 9.80665
"""Standard gravity, m/s²; gives the normal force on the floor."""
SUBSTEP: Final = 0.002
"""Longest integration step of forces, s."""


@dataclass(frozen=True, slots=True)
class Gains:
    """Proportional and derivative gains of a PD controller.

    Attributes
    ----------
    p, d : float
        Gains per m and per m/s, or per rad and per rad/s. The output is N or N·m, or
        m/s or rad/s if the output is a velocity.
    """

    p: float = 10.0
    d: float = 1.0

    def __post_init__(self) -> None:
        check_types(self)

    def force(
        self, error: float, velocity: float, mass: float, h: float, damping: float = 0.0
    ) -> float:
        """Return the output of the PD controller as a force or a torque.

        Error and velocity are predicted to the end of the step, which makes the
        controller stable for any gains. Source: Tan, Liu, Turk: Stable
        Proportional-Derivative Controllers, 2011.

        Parameters
        ----------
        error : float
            Distance or angle to the target, m or rad.
        velocity : float
            Present velocity, m/s or rad/s.
        mass : float
            Mass, kg, or moment of inertia, kg·m².
        h : float
            Duration of the step, s.
        damping : float
            Passive damping that acts on the mass in addition, N·s/m or N·m·s/rad.

        Returns
        -------
        float
            Force, N, or torque, N·m; positive: towards a positive error.
        """
        # The velocity u after the step is u = (v + h·F/m) / ease. It is inserted into F
        # = P·e − (D + h·P)·u, which is then solved for the force F.
        ease = 1.0 + h * damping / mass
        return (self.p * error * ease - (self.d + h * self.p) * velocity) / (
            ease + h * (self.d + h * self.p) / mass
        )

    def speed(self, error: float, h: float) -> float:
        """Return the output of the PD controller as a velocity.

        The result solves v = P·(e − h·v) − D·v for v.

        Parameters
        ----------
        error : float
            Distance or angle e to the target, m or rad.
        h : float
            Duration of the step, s.

        Returns
        -------
        float
            Velocity v, m/s or rad/s.
        """
        return self.p * error / (1.0 + self.d + h * self.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseController:
    """PD controller that moves a body with mass to a commanded pose.

    Source: ambf-messages.md §6.

    Attributes
    ----------
    linear, angular : Gains
        Gains for position and for heading.
    force : bool
        Whether the output is a force and a torque; otherwise it is the body's velocity.
    """

    linear: Gains = parameter(Gains(), is_brief=True)
    angular: Gains = parameter(Gains(), is_brief=True)
    force: bool = parameter(
        False, key="output", words={"velocity": False, "force": True}, is_brief=True
    )

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsSpec:
    """Description of the mass, inertia, friction and pose controller of a body.

    Attributes
    ----------
    mass : float
        Mass, kg, positive.
    inertia : float or None
        Moment of inertia about the vertical through the centre of mass, kg·m²; None: it
        follows from the outline, filled evenly.
    center : (float, float) or None
        Centre of mass in the body's frame, m; None: the origin for a driven body,
        otherwise the centroid of the outline.
    friction : float
        Coefficient of friction at the sides. In a contact, the product of both
        coefficients counts. Walls have 1.
    floor_friction : float
        Coefficient of friction on the floor (Coulomb). A driven body has wheels instead
        while its motors drive it, see `traction`.
    restitution : float
        Coefficient of restitution, 0 to 1: share of the impact speed that comes back.
        In a contact, the product of both coefficients counts. Walls have 1. A mover
        (a body without mass) gives a body at most the kinetic energy that the body would
        have at twice the mover's speed in the contact.
    linear_damping, angular_damping : float
        Share of the velocity that is lost in a second, 0 to 1, in addition to friction.
    controller : PoseController
        Controller for commanded poses.
    traction : float
        Coefficient of friction between the driven wheels and the floor. It limits the
        force of the motors.

    Raises
    ------
    ModelError
        A value is out of its range.
    """

    mass: float = parameter(low=1e-9, high=1e9, unit="kg")
    inertia: float | None = parameter(None, low=1e-12, high=1e12, unit="kg·m²")
    center: tuple[float, float] | None = parameter(None, unit="m")
    friction: float = parameter(0.5, low=0.0, high=1e3)
    floor_friction: float = parameter(0.0, low=0.0, high=1e3)
    restitution: float = parameter(0.0, low=0.0, high=1.0)
    linear_damping: float = parameter(0.0, low=0.0, high=1.0)
    angular_damping: float = parameter(0.0, low=0.0, high=1.0)
    controller: PoseController = PoseController()
    traction: float = parameter(0.8, low=0.0, high=1e3)

    def __post_init__(self) -> None:
        check_types(self)
        for problem in range_problems(self):
            raise ModelError(problem)


@dataclass(frozen=True, slots=True)
class AreaMoments:
    """Moments of a flat area of uniform density.

    Attributes
    ----------
    area : float
        Area, m².
    center : (float, float)
        Centroid, m.
    second : float
        Mean square distance from the centroid, m². Times the mass, it is the moment of
        inertia.
    reach : float
        Mean distance from the centroid, m: the lever arm of the torque of floor
        friction.
    """

    area: float
    center: tuple[float, float]
    second: float
    reach: float


@lru_cache(maxsize=1024)
def area_moments(parts: tuple[Outline, ...]) -> AreaMoments:
    """Return the moments of the area of polygons; overlapping parts count several times.

    Source: Green's theorem; Steger 1996.

    Parameters
    ----------
    parts : tuple of outlines
        Corners of each polygon in the frame of the body, m, in any sense of rotation.

    Raises
    ------
    ModelError
        The polygons have no area.
    """
    area = mx = my = polar = 0.0
    for part in parts:
        a = x = y = p = 0.0
        for (x0, y0), (x1, y1) in zip(part, (*part[1:], part[0]), strict=True):
            # Shoelace formula: `cross` is twice the signed area of the triangle with
            # the origin.
            cross = x0 * y1 - x1 * y0
            a += cross / 2.0
            x += (x0 + x1) * cross / 6.0
            y += (y0 + y1) * cross / 6.0
            p += (
                (x0 * x0 + x0 * x1 + x1 * x1 + y0 * y0 + y0 * y1 + y1 * y1)
                * cross
                / 12.0
            )

        # A clockwise polygon has negative moments; the sign makes them positive.
        turn = math.copysign(1.0, a)
        area, mx, my, polar = (
            area + turn * a,
            mx + turn * x,
            my + turn * y,
            polar + turn * p,
        )

    # Corners on a line have neither an area nor a centroid.
    if area <= 1e-12:
        raise ModelError(f"expected an outline with an area, found {area:g} m²")
    cx, cy = mx / area, my / area
    # Rounding can make the difference negative for thin shapes far from the origin.
    second = max(polar / area - cx * cx - cy * cy, 1e-12)
    return AreaMoments(area, (cx, cy), second, _mean_distance(parts, cx, cy))


def _mean_distance(
    parts: Iterable[Outline], cx: float, cy: float, cuts: int = 64
) -> float:
    """Return the mean distance of an area's points from a point, m.

    The area is divided into triangles with their apex at the point. Over such a
    triangle, the mean distance is 2/3 of the mean distance along the opposite edge.

    Parameters
    ----------
    parts : iterable of outlines
        Corners of each polygon, m.
    cx, cy : float
        The point, m.
    cuts : int
        Number of samples along each edge.
    """
    total = area = 0.0
    for part in parts:
        signed = reach = 0.0
        for (x0, y0), (x1, y1) in zip(part, (*part[1:], part[0]), strict=True):
            piece = ((x0 - cx) * (y1 - cy) - (x1 - cx) * (y0 - cy)) / 2.0
            # Midpoint rule along the edge.
            along = ((k + 0.5) / cuts for k in range(cuts))
            mean = (
                sum_up(
                    hypot(x0 - cx + u * (x1 - x0), y0 - cy + u * (y1 - y0))
                    for u in along
                )
                / cuts
            )
            signed += piece
            reach += piece * mean * 2.0 / 3.0

        turn = math.copysign(1.0, signed)
        total, area = total + turn * reach, area + turn * signed

    return total / area


__all__ = [
    "GRAVITY",
    "SUBSTEP",
    "AreaMoments",
    "DynamicsSpec",
    "Gains",
    "PoseController",
    "area_moments",
]
