"""Links of SDF models: their poses, collision shapes, masses and lasers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from botyard.formats.budget import Meter
from botyard.formats.importers import solids
from botyard.formats.importers.sdfkeys import KEYS
from botyard.formats.importers.shapes import MAX_SIDE
from botyard.formats.importers.solids import Frame, Polyhedron, Rotation
from botyard.formats.importers.values import Value, blamed_on
from botyard.formats.importers.xmlfile import Element
from botyard.formats.notes import Notes
from botyard.geometry import Outline, Pose, compose, inverse, transform_point
from botyard.model.sensors import MAX_RATE_HZ, MAX_SAMPLES, LaserSpec
from botyard.names import shown
from botyard.units import from_deg

LIDARS: Final = ("ray", "gpu_ray", "lidar", "gpu_lidar")
MAX_LASERS: Final = 100
MAX_CHAIN: Final = 50
"""Largest number of frames in a chain of `relative_to` or `attached_to`."""
OWN: Final = frozenset({"", "__model__", "world", "__root__"})
"""Values of `relative_to` that mean the default: the frame of the parent element."""


@dataclass(slots=True)
class Parts:
    """Parts of a model.

    Attributes
    ----------
    solids : list of (Polyhedron, Frame)
        Convex collision shapes, and their poses in the world.
    cuts : list of outlines
        Outlines in which the horizontal plane cuts the shapes, in the world, m.
    lines : list of outlines
        Walls without thickness, in the world, m.
    lasers : tuple of LaserSpec
        Lasers, in the model's frame.
    mass : float
        Sum of the masses of all links, kg.
    """

    solids: list[tuple[Polyhedron, Frame]] = field(default_factory=list)
    cuts: list[Outline] = field(default_factory=list)
    lines: list[Outline] = field(default_factory=list)
    lasers: tuple[LaserSpec, ...] = ()
    mass: float = 0.0

    def shadows(self, frame: Frame) -> tuple[Outline, ...]:
        """Return the shapes as seen from above, in a model's frame, m."""
        found = (solids.shadow(solid, at) for solid, at in self.solids)
        return tuple(_moved(outline, frame.plane) for outline in found if outline)

    def in_frame(self, at: Pose) -> tuple[Outline, ...]:
        """Return the cuts in the frame of a pose, m."""
        return tuple(_moved(outline, at) for outline in self.cuts)


def _moved(outline: Outline, at: Pose) -> Outline:
    back = inverse(at)
    return tuple(transform_point(back, x, y) for x, y in outline)


class Bodies:
    """Reader of links.

    Parameters
    ----------
    meter : Meter
        Counts corners.
    notes : Notes
        Collects what is left out.
    height : float
        Height of the plane that cuts the shapes, m.
    """

    def __init__(self, meter: Meter, notes: Notes, height: float) -> None:
        self._meter = meter
        self._notes = notes
        self._height = height

    def link(
        self,
        link: Element,
        model: Frame,
        around: Sequence[Element],
        parts: Parts,
        owner: Element,
    ) -> None:
        """Add a link's shapes, mass and lasers to the parts of its model."""
        KEYS.check("link", link.keys(), self._notes)
        frame = model.compose(frame_of(link, [owner], self._notes))
        inertial = link.child("inertial")
        if inertial is not None:
            KEYS.check("inertial", inertial.keys(), self._notes)
        mass = None if inertial is None else inertial.given("mass")
        # A link without a mass has 1 kg (specification, inertial).
        parts.mass += 1.0 if mass is None else mass.number(0.0, 1e9)
        for collision in link.named("collision"):
            KEYS.check("collision", collision.keys(), self._notes)
            geometry = collision.child("geometry")
            if geometry is None:
                raise collision.fail("a geometry")
            KEYS.check("geometry", geometry.keys(), self._notes)
            at = frame.compose(frame_of(collision, [], self._notes, link))
            for shape in geometry.children:
                KEYS.check("shape", shape.keys(), self._notes)
                self.shape(shape, at, parts)
        for sensor in link.named("sensor"):
            self.sensor(sensor, frame, model, parts, link)

    def shape(self, shape: Element, at: Frame, parts: Parts) -> None:
        """Add a shape at a pose to the parts of its model; other elements have no effect."""

        def length(name: str) -> float:
            value = shape.given(name)
            if value is None:
                raise shape.fail(name)
            return value.number(0.0, MAX_SIDE, above=True)

        height = self._height
        if shape.tag == "box":
            self._solid(solids.box(*_sides(shape, "size", 3)), at, parts)
        elif shape.tag == "cylinder":
            radius, half = length("radius"), length("length") / 2.0
            made = solids.lathe([(radius, -half), (radius, half)])
            if at.is_upright:
                parts.solids.append((made, at))
                _keep(parts, solids.cut_round(radius, -half, half, at, height))
            else:
                self._solid(made, at, parts)
        elif shape.tag == "sphere":
            radius = length("radius")
            below = height - at.at[2]
            parts.solids.append((solids.ball(radius, radius, radius), at))
            if abs(below) < radius:
                cut = math.sqrt(radius * radius - below * below)
                upright = Frame(at.at)
                _keep(parts, solids.cut_round(cut, below, below, upright, height))
        elif shape.tag == "ellipsoid":
            self._solid(solids.ball(*_sides(shape, "radii", 3)), at, parts)
        elif shape.tag == "capsule":
            radius = length("radius")
            self._solid(
                solids.ball(radius, radius, radius, length("length")), at, parts
            )
        elif shape.tag == "cone":
            half = length("length") / 2.0
            made = solids.lathe([(length("radius"), -half), (0.0, half)])
            self._solid(made, at, parts)
        elif shape.tag == "polyline":
            self._polyline(shape, at, length("height"), parts)
        elif shape.tag == "plane":
            self._plane(shape, at, parts)

    def _solid(self, solid: Polyhedron, at: Frame, parts: Parts) -> None:
        parts.solids.append((solid, at))
        _keep(parts, solids.cut(solid, at, self._height))

    def _polyline(self, shape: Element, at: Frame, high: float, parts: Parts) -> None:
        corners = tuple(p.value().point() for p in shape.named("point"))
        if len(set(corners)) < 3:
            raise shape.fail("at least 3 points", str(len(set(corners))))
        self._meter.add("vertices", len(corners), shape.line)
        n = len(corners)
        prism = Polyhedron([(x, y, z) for z in (0.0, high) for x, y in corners], [])
        parts.solids.append((prism, at))
        if not at.is_upright:
            self._notes.add("polyline", shape, "a polyline that is tilted is left out")
            return
        z = (self._height - at.at[2]) * (1.0 if at.turn.z[2] > 0.0 else -1.0)
        if 0.0 <= z <= high:
            placed = [at.apply((x, y, 0.0))[:2] for x, y in corners]
            _keep(parts, tuple(placed[:n]))

    def _plane(self, shape: Element, at: Frame, parts: Parts) -> None:
        normal = shape.given("normal")
        n = (0.0, 0.0, 1.0) if normal is None else normal.numbers(3)
        x, y, z = at.turn.apply((n[0], n[1], n[2]))
        if abs(x) <= solids.LEVEL and abs(y) <= solids.LEVEL:
            # The floor, or a ceiling.
            return
        size = math.sqrt(x * x + y * y)
        if abs(z) > solids.LEVEL * size:
            self._notes.add("plane", shape, "a plane that is tilted is left out")
            return
        given = shape.given("size")
        half = (1.0 if given is None else given.numbers(2, bound=MAX_SIDE)[0]) / 2.0
        (px, py, _), dx, dy = at.at, -y / size * half, x / size * half
        parts.lines.append(((px - dx, py - dy), (px + dx, py + dy)))

    # -- lasers

    def sensor(
        self,
        sensor: Element,
        link: Frame,
        model: Frame,
        parts: Parts,
        owner: Element,
    ) -> None:
        """Add a laser to the parts of its model; other sensors get a note."""
        kind = sensor.attributes.get("type", "")
        if kind not in LIDARS:
            self._notes.add(
                f"sensor {kind}",
                sensor,
                f'a sensor "{shown(kind)}" is left out: only lidars are read',
            )
            return
        KEYS.check("sensor", sensor.keys(), self._notes)
        if len(parts.lasers) >= MAX_LASERS:
            raise sensor.fail(f"a robot of at most {MAX_LASERS} lasers", "more")
        rays = sensor.child("ray") or sensor.child("lidar")
        scan = None if rays is None else rays.child("scan")
        across = None if rays is None else (scan or rays).child("horizontal")
        span = None if rays is None else rays.child("range")
        noise = None if rays is None else rays.child("noise")
        for part, name in (
            (rays, "ray"),
            (scan, "scan"),
            (across, "horizontal"),
            (span, "range"),
            (noise, "noise"),
        ):
            if part is not None:
                KEYS.check(name, part.keys(), self._notes)

        low, high = (_number(across, k, 0.0, 10.0) for k in ("min_angle", "max_angle"))
        if not low <= high <= low + 2.0 * math.pi + 1e-3:
            raise (across or sensor).fail(
                "min_angle up to max_angle, at most a full turn apart",
                f"{low:g} to {high:g} rad",
            )
        count = None if across is None else across.given("samples")
        samples = 640 if count is None else count.whole(1, MAX_SAMPLES)
        spread = 0.0
        kinds = None if noise is None else noise.given("type")
        if noise is not None and (kinds is None or kinds.data != "none"):
            spread = _number(noise, "stddev", 0.0, 1e6)
        at = link.compose(frame_of(sensor, [], self._notes, owner))
        mount = compose(inverse(model.plane), at.plane)
        # The rays of a laser that is upside down turn clockwise as seen from above.
        flipped = at.turn.z[2] < 0.0
        bearing = (low + high) / (-2.0 if flipped else 2.0)
        rate = sensor.given("update_rate")
        with blamed_on(sensor.value()):
            laser = LaserSpec(
                type_name=kind,
                # A `LaserSpec` centres its rays on the forward axis, so the mount turns by the
                # middle of the angles in the file.
                pose=compose(mount, Pose(0.0, 0.0, bearing)),
                flipped=flipped,
                fov=min(high - low, 2.0 * math.pi),
                samples=samples,
                range_min=_number(span, "min", 0.0, 1e6),
                range_max=_number(span, "max", 10.0, 1e6, infinite=1e3),
                range_deviation=spread,
                update_rate=0.0 if rate is None else rate.number(0.0, MAX_RATE_HZ),
            )
        parts.lasers = (*parts.lasers, laser)


def _keep(parts: Parts, outline: Outline) -> None:
    if outline:
        parts.cuts.append(outline)


def _sides(shape: Element, name: str, count: int) -> tuple[float, float, float]:
    value = shape.given(name)
    if value is None:
        raise shape.fail(name)
    x, y, z = value.numbers(count, bound=MAX_SIDE)
    if not min(x, y, z) > 0.0:
        raise value.fail(f"{count} numbers greater than 0")
    return x, y, z


def _number(
    element: Element | None,
    name: str,
    otherwise: float,
    most: float,
    infinite: float | None = None,
) -> float:
    """Return the number of a child; an infinite one becomes `infinite`."""
    value = None if element is None else element.given(name)
    if value is None or not value.data:
        return otherwise
    if infinite is not None and str(value.data).lower().lstrip("+") == "inf":
        return infinite
    return value.number(-most, most)


def frame_of(
    element: Element,
    around: Sequence[Element],
    notes: Notes,
    parent: Element | None = None,
) -> Frame:
    """Return the pose of an element in its parent, or in the frame that it names.

    Parameters
    ----------
    element : Element
        Element with or without a pose.
    around : sequence of Element
        Elements whose frames and links `relative_to` can name.
    notes : Notes
        Collects frames that are not found.
    parent : Element, optional
        Parent of the element, which `relative_to` may also name.
    """
    own = OWN if parent is None else OWN | {parent.attributes.get("name", "")}
    frame = Frame()
    for _ in range(MAX_CHAIN):
        pose = element.child("pose")
        if element.tag == "frame":
            KEYS.check("frame", element.keys(), notes)
        if pose is not None and pose.text.strip():
            frame = _pose(pose).compose(frame)
        name = pose.attributes.get("relative_to", "") if pose is not None else ""
        # A frame without a pose of its own stands where it is attached.
        name = name or element.attributes.get("attached_to", "")
        # The old attribute `frame` had no effect in Gazebo.
        if name in own:
            return frame
        found = next(
            (
                child
                for parent in around
                for child in parent.children
                if child.tag in ("frame", "link", "model")
                and child.attributes.get("name") == name
            ),
            None,
        )
        if found is None:
            notes.add(
                f"frame {name}",
                element,
                f'the frame "{shown(name)}" is not found; the pose is read as a pose in the '
                "parent",
            )
            return frame
        element = found
    raise element.fail(
        f"a chain of at most {MAX_CHAIN} frames relative to each other",
        "a longer one, or a circle",
    )


def _pose(element: Element) -> Frame:
    value: Value = element.value()
    if element.attributes.get("rotation_format") == "quat_xyzw":
        x, y, z, *q = value.numbers(7)
        return Frame((x, y, z), Rotation.of_quaternion(q[0], q[1], q[2], q[3]))
    x, y, z, *angles = value.numbers(6)
    if element.attributes.get("degrees", "").strip().lower() in ("true", "1"):
        angles = [from_deg(a) for a in angles]
    return Frame((x, y, z), Rotation.of_angles(angles[0], angles[1], angles[2]))


__all__ = ["Bodies", "Parts", "frame_of"]
