"""Bodies and joints of AMBF description files."""

from __future__ import annotations

import math
from typing import Final

from botyard.errors import ModelError
from botyard.formats.adfscope import Mass, Scope
from botyard.formats.adftable import Table
from botyard.geometry import Outline, Pose, transform_point
from botyard.model.dynamics import DynamicsSpec, Gains, PoseController, area_moments
from botyard.model.objects import (
    JointSpec,
    Offer,
)
from botyard.model.obstacles import BoxObject, disc, rectangle
from botyard.names import shown
from botyard.numerics.elementary import atan2, total

COLOR: Final = "#b08050"
DEFAULT_GAIN: Final = 10.0
"""Proportional gain of controllers for which the file gives none."""
MIN_INERTIA: Final = 1e-4
"""Smallest moment of inertia of a revolute joint, kg·m², and mass of a prismatic one, kg."""


def read_body(scope: Scope, key: str, table: Table) -> tuple[BoxObject, Offer] | None:
    """Return the body that a table of the file describes.

    Parameters
    ----------
    scope : Scope
        File that is being read; the body's name and mass are added to it.
    key : str
        Key of the body in the file.
    table : Table
        Its description.

    Returns
    -------
    (BoxObject, Offer) or None
        Body, kinematic if it has no mass, and how it is published. None for an infinite
        plane.

    Raises
    ------
    FormatError
        The shape is unknown, or a value is out of range.
    """
    parts = _shapes(scope, table)
    if not parts:
        scope.note(table, "an infinite plane is ignored")
        return None

    name = scope.name(key, table)
    mass = table.number("mass", 0.0, 0.0, 1e9)
    # A body without mass does not move in AMBF.
    dynamics = None if mass == 0.0 else _dynamics(scope, table, mass)
    table.text("name")
    xs, ys = zip(*(c for part in parts for c in part), strict=True)
    box = BoxObject(
        name=name,
        pose=scope.pose(table, "location"),
        length=max(xs) - min(xs),
        width=max(ys) - min(ys),
        parts=parts,
        color=COLOR,
        dynamics=dynamics,
    )
    # These keys are read above only if the body has a mass. Reading them here keeps
    # them from being reported as unknown for other bodies.
    for unused in (
        "inertia",
        "friction",
        "restitution",
        "damping",
        "controller",
        "controller output type",
    ):
        table.get(unused)

    offer = scope.offer(table)
    scope.qualified.setdefault(f"{offer.namespace}{key}", name)
    inertia = table.table("inertia")
    about = (
        (0.0, 0.0, 0.0)
        if inertia is None
        else (
            inertia.number("ix", 0.0),
            inertia.number("iy", 0.0),
            inertia.number("iz", 0.0),
        )
    )
    moment = (
        0.0
        if dynamics is None
        else dynamics.inertia or mass * area_moments(parts).second
    )
    scope.masses[name] = Mass(mass, about, moment)
    scope.note_unread(table)
    return box, offer


def _dynamics(scope: Scope, table: Table, mass: float) -> DynamicsSpec:
    inertia, friction, damping = (
        table.table("inertia"),
        table.table("friction"),
        table.table("damping"),
    )
    controller, offset = table.table("controller"), table.table("inertial offset")
    iz = 0.0 if inertia is None else inertia.number("iz", 0.0, 0.0)
    if inertia is not None:
        inertia.get("ix"), inertia.get("iy")
    given = PoseController()
    if controller is not None:
        gains = []
        for axis in ("linear", "angular"):
            part = controller.table(axis)
            gains.append(
                Gains()
                if part is None
                else Gains(
                    part.number("P", DEFAULT_GAIN, 0.0), part.number("D", 0.0, 0.0)
                )
            )

        kind = table.text("controller output type", "FORCE").upper()
        if kind not in ("FORCE", "VELOCITY"):
            raise table.fail(
                "controller output type",
                f'expected FORCE or VELOCITY, found "{shown(kind)}"',
            )

        given = PoseController(linear=gains[0], angular=gains[1], force=kind == "FORCE")

    center = None
    if offset is not None:
        x, y, _ = offset.vector("position")
        center = (x, y)

    try:
        return DynamicsSpec(
            mass=mass,
            # In the file, an inertia of 0 means: computed from mass and shape.
            inertia=iz or None,
            center=center,
            friction=0.5 if friction is None else friction.number("static", 0.5, 0.0),
            restitution=table.number("restitution", 0.1, 0.0, 1.0),
            linear_damping=0.0
            if damping is None
            else min(damping.number("linear", 0.0, 0.0), 1.0),
            angular_damping=0.0
            if damping is None
            else min(damping.number("angular", 0.0, 0.0), 1.0),
            controller=given,
        )
    except ModelError as error:
        raise table.fail("mass", str(error)) from None


def _shapes(scope: Scope, table: Table) -> tuple[Outline, ...]:
    """Return the outlines of a body in the plane; empty for an infinite plane."""
    rows = table.rows("compound collision shape")
    if rows:
        found = [
            _shape(
                scope,
                row,
                row.text("shape"),
                row.table("geometry"),
                scope.pose(row, "offset"),
            )
            for row in rows
        ]
        return tuple(outline for outline in found if outline is not None)

    # AMBF uses the collision shape if there is one, otherwise the visible shape.
    for shape, geometry in (
        ("collision shape", "collision geometry"),
        ("shape", "geometry"),
    ):
        if shape in table:
            name, size = table.text(shape), table.table(geometry)
            offset = scope.pose(table, "collision offset")
            for other in (
                "shape",
                "geometry",
                "collision shape",
                "collision geometry",
                "offset",
            ):
                table.get(other)

            outline = _shape(scope, table, name, size, offset)
            return () if outline is None else (outline,)

    scope.note(
        table,
        "expected a shape other than a mesh, found none: the body becomes a box of "
        "0.5 m",
    )
    return (rectangle(0.5, 0.5),)


def _shape(
    scope: Scope, table: Table, name: str, size: Table | None, offset: Pose
) -> Outline | None:
    """Return the outline that a shape of the file has in the plane.

    Parameters
    ----------
    scope : Scope
        File that is being read.
    table : Table
        Description of the body, for errors.
    name : str
        Kind of the shape, for example ``box``.
    size : Table or None
        Its geometry, lengths in m.
    offset : Pose
        Pose of the shape in the frame of the body: m, m, rad.

    Returns
    -------
    outline or None
        Corners in the frame of the body, m. None for an infinite plane, which has a
        normal and an offset instead of lengths.

    Raises
    ------
    FormatError
        The kind is unknown, or the geometry is missing.
    """
    kind = name.strip().lower()
    if size is None:
        raise table.fail("", f"expected a geometry for the shape {name}, found none")
    around: Outline
    if kind in ("sphere", "cylinder", "cone", "capsule", "uppersphere"):
        radius = size.size("radius")
        axis = size.text("axis", "z").strip().lower()
        # A lying body shows its side to the plane.
        if kind in ("cylinder", "cone", "capsule") and axis in ("x", "y"):
            height = size.number("height", 2.0 * radius, 1e-4, 1e4)
            around = (
                rectangle(height, 2.0 * radius)
                if axis == "x"
                else rectangle(2.0 * radius, height)
            )
        else:
            around = disc(radius)
    elif kind == "plane" and "x" not in size:
        return None
    elif kind in ("box", "plane"):
        around = rectangle(size.size("x"), size.size("y"))
    else:
        raise table.fail(
            "",
            "expected a shape of box, sphere, cylinder, cone, capsule, plane, "
            f'found "{shown(name)}"',
        )

    return tuple(transform_point(offset, x, y) for x, y in around)


def read_joint(scope: Scope, key: str, table: Table) -> JointSpec:
    """Return the joint that a table of the file describes.

    Parameters
    ----------
    scope : Scope
        File that is being read; its bodies have been read.
    key : str
        Key of the joint in the file.
    table : Table
        Its description.

    Raises
    ------
    LeftOut
        A body that the joint connects does not exist.
    FormatError
        The type is unknown, or a value is out of range.
    """
    kind = table.text("type", "revolute").strip().lower()
    name = table.text("name", key.split(" ", 1)[-1])
    parent, child = (
        scope.body_name(table, "parent"),
        scope.body_name(table, "child"),
    )
    slides = kind in ("prismatic", "linear", "slider")
    if kind in (
        "spherical",
        "p2p",
        "cone twist",
        "cone-twist",
        "six dof",
        "spring",
        "torsion spring",
        "linear spring",
    ):
        scope.note(
            table,
            f"joints of type {shown(kind)} do not move in a plane: this one becomes "
            "a fixed joint",
        )
        kind = "fixed"
    elif kind not in ("revolute", "continuous", "hinge", "fixed") and not slides:
        raise table.fail(
            "type",
            f'expected revolute, continuous, prismatic or fixed, found "{shown(kind)}"',
        )

    axis = table.vector("parent axis", (0.0, 0.0, 1.0))
    for unused in (
        "child axis",
        "offset",
        "enable motor",
        "max motor impulse",
        "detached",
        "enable feedback",
        "passive",
        "limit",
    ):
        table.get(unused)

    size = math.sqrt(total(a * a for a in axis)) or 1.0
    # A joint moves its child in the plane if its axis is vertical within about 25°
    # (revolute), or horizontal within about 6° (prismatic).
    upright = abs(axis[2]) / size
    # Other joints are kept for clients, but do not move.
    planar = upright < 0.1 if slides else upright > 0.9
    px, py, _ = table.vector("parent pivot")
    cx, cy, _ = table.vector("child pivot")
    # A prismatic joint moves along x of its frame, so the frame is rotated to the
    # axis.
    heading = atan2(axis[1], axis[0]) if slides and planar else 0.0
    if not slides and axis[2] < 0.0:
        scope.note(
            table,
            "the axis of the joint points down: its angles are clockwise in the "
            "file, but counter-clockwise in botyard",
        )

    limits, gains, rates = (
        table.table("joint limits"),
        table.table("controller"),
        table.number("damping", 0.0, 0.0),
    )
    mass, about, moment = scope.masses.get(child, Mass())
    # The moment about the axis is approximated by a weighted sum of the moments
    # about x, y and z.
    inertia = total(abs(a) / size * i for a, i in zip(axis, about, strict=True))
    fixed = kind == "fixed"
    low = high = 0.0
    if limits is not None and not fixed:
        low, high = limits.number("low", -1e9), limits.number("high", 1e9)
        if low > high:
            scope.note(
                table,
                f"joint limits: {low:g} is above {high:g}, so the joint has no limits",
            )
            limits, low, high = None, 0.0, 0.0

    scope.note_unread(table)
    return JointSpec(
        name=name,
        parent=parent,
        child=child,
        slides=slides,
        planar=planar and not fixed,
        at=Pose(px, py, heading),
        child_at=Pose(cx, cy, heading),
        low=low,
        high=high,
        # "Continuous" joints rotate without limits, even if the file gives some.
        unlimited=not fixed and (limits is None or kind == "continuous"),
        inertia=max(mass if slides else inertia, MIN_INERTIA),
        damping=rates,
        gains=None
        if gains is None
        else Gains(gains.number("P", DEFAULT_GAIN, 0.0), gains.number("D", 0.0, 0.0)),
        mass=mass,
        moment=moment,
    )


__all__ = ["read_body", "read_joint"]
