"""Reader of AMBF description files (ADF, YAML).

They contain bodies, joints, sensors, vehicles, actuators, cameras and lights.
Properties that a plane cannot represent (heights, axes that are not vertical, meshes)
are reported and ignored (ambf-messages.md §9).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from botyard.errors import FormatError, ModelError, WorldError, WorldFileError
from botyard.formats.base import Options, Source, read_source
from botyard.formats.budget import Meter
from botyard.formats.jsonfile import brief
from botyard.formats.yamlfile import YamlFile
from botyard.geometry import Outline, Pose, compose, transform_point
from botyard.model.dynamics import DynamicsSpec, Gains, PoseController, area_moments
from botyard.model.objects import (
    HIGH,
    LOW,
    NAMESPACE,
    ActuatorSpec,
    Described,
    JointSpec,
    Offer,
    RaySensorSpec,
    VehicleSpec,
    ViewSpec,
    WheelSpec,
)
from botyard.model.obstacles import BoxObject, disc, rectangle
from botyard.names import check_name, shown
from botyard.numerics.elementary import atan2, cos, hypot, sin, total

T = TypeVar("T")

COLOR: Final = "#b08050"
DEFAULT_GAIN: Final = 10.0
"""Default proportional gain of controllers."""
MIN_INERTIA: Final = 1e-4
"""Smallest inertia of joints, kg·m² or kg."""
_LISTS: Final = (
    "bodies",
    "joints",
    "sensors",
    "actuators",
    "vehicles",
    "cameras",
    "lights",
)
_APPEARANCE: Final = frozenset(
    {
        "mesh",
        "color",
        "rgba",
        "components",
        "visible",
        "size",
        "high",
        "low",
        "resolution",
        "path",
        "scale",
        "collision",
        "margin",
        "type",
        "shaders",
        "texture",
        "normal",
        "map",
        "cleanup",
        "ambf",
        "version",
        "comment",
        "material",
        "constant",
        "linear",
        "quadratic",
        "attenuation",
        "plugins",
        "monitor",
        "publish",
        "image",
        "depth",
        "preprocess",
        "frame_limit",
        "mouse",
        "control",
        "multipass",
    }
)
"""Words of keys that only describe appearance; such keys are ignored without a warning.
"""


def _is_appearance(key: str) -> bool:
    return all(word in _APPEARANCE for word in key.split())


class _LeftOut(Exception):
    """An object of the file is left out; the text is the reason."""


class _Table:
    """Mapping of the file that remembers which keys were read."""

    def __init__(self, reader: _Reader, data: Any, where: str) -> None:
        if not isinstance(data, dict):
            raise reader.fail(where, f"expected keys and values, found {brief(data)}")
        self._reader = reader
        # Keys of YAML may be numbers.
        self._data = {str(k): v for k, v in data.items()}
        self.where = where
        self._seen: set[str] = set()

    def __contains__(self, key: str) -> bool:
        # A key without a value counts as absent.
        return self._data.get(key) is not None

    def fail(self, key: str, reason: str) -> FormatError:
        return self._reader.fail(f"{self.where}.{key}" if key else self.where, reason)

    def get(self, key: str) -> Any:
        self._seen.add(key)
        return self._data.get(key)

    def number(
        self, key: str, default: float, low: float = -1e9, high: float = 1e9
    ) -> float:
        value = self.get(key)
        if value is None:
            return default
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.fail(key, f"expected a number, found {brief(value)}") from None

        if not low <= number <= high:
            raise self.fail(
                key, f"expected a number from {low:g} to {high:g}, found {number:g}"
            )
        return number

    def size(self, key: str) -> float:
        """Return a required length, m."""
        if key not in self:
            raise self.fail("", f"expected {key}, a length in m")
        return self.number(key, 0.0, 1e-4, 1e4)

    def flag(self, key: str, default: bool | None = None) -> bool | None:
        value = self.get(key)
        if value is None:
            return default
        # Many files write 0 and 1 for false and true.
        if isinstance(value, bool | int):
            return bool(value)
        raise self.fail(key, f"expected true or false, found {brief(value)}")

    def text(self, key: str, default: str = "") -> str:
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, dict | list):
            raise self.fail(key, f"expected a text, found {brief(value)}")
        return str(value)

    def table(self, key: str) -> _Table | None:
        value = self.get(key)
        return (
            None
            if value is None
            else _Table(self._reader, value, f"{self.where}.{key}")
        )

    def vector(
        self, key: str, default: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> tuple[float, float, float]:
        part = self.table(key)
        if part is None:
            return default
        x, y, z = (part.number(k, d) for k, d in zip("xyz", default, strict=True))
        return x, y, z

    def rotation(self, key: str) -> tuple[float, float, float]:
        part = self.table(key)
        if part is None:
            return 0.0, 0.0, 0.0
        return part.number("r", 0.0), part.number("p", 0.0), part.number("y", 0.0)

    def rows(self, key: str) -> list[_Table]:
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fail(key, f"expected a list, found {brief(value)}")
        return [
            _Table(self._reader, v, f"{self.where}.{key}[{i}]")
            for i, v in enumerate(value)
        ]

    def unread(self) -> list[str]:
        return [k for k in self._data if k not in self._seen and not _is_appearance(k)]


class _Mass(NamedTuple):
    """Mass of a body and its moments of inertia.

    Attributes
    ----------
    mass : float
        Mass, kg.
    about : (float, float, float)
        Moments of inertia about the axes, as the file gives them, kg·m².
    moment : float
        Moment of inertia about the vertical, kg·m².
    """

    mass: float = 0.0
    about: tuple[float, float, float] = (0.0, 0.0, 0.0)
    moment: float = 0.0


class _Reader:
    def __init__(
        self, source: Source, options: Options, others: dict[str, str]
    ) -> None:
        self._source = source
        self._warn = options.warn
        self._meter = Meter(options.budget, source.name, WorldFileError)
        self._yaml = YamlFile(source.text, self._meter, WorldFileError, unique=False)
        self._root = _Table(
            self, self._yaml.data if self._yaml.data is not None else {}, "$"
        )
        if not any(key in self._root for key in _LISTS):
            raise WorldFileError(
                f"expected an AMBF description with one of {', '.join(_LISTS)}, "
                "found none",
                source.name,
                1,
            )

        self._namespace = self._root.text("namespace", NAMESPACE)
        self._names: dict[str, str] = {}
        self._qualified = others
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._carried: set[str] = set()
        self._masses: dict[str, _Mass] = {}

    def fail(self, where: str, reason: str) -> FormatError:
        return self._yaml.fail(where, reason)

    def _note(self, table: _Table, text: str) -> None:
        self._warn(f"{self._source.name}: {table.where.removeprefix('$.')}: {text}")

    def _note_unread(self, table: _Table) -> None:
        for key in table.unread():
            self._note(table, f'"{key}" is not read')

    def _listed(self, key: str) -> Iterator[tuple[str, _Table]]:
        # An empty list is often written as a key without a value.
        names = self._root.get(key) or []
        if not isinstance(names, list):
            raise self._root.fail(
                key, f"expected a list of names, found {brief(names)}"
            )

        for name in map(str, names):
            if name not in self._root:
                raise self._root.fail(
                    key, f'"{shown(name)}" is listed, but not described'
                )

            table = self._root.table(name)
            assert table is not None
            yield name, table

    def run(self) -> Described:
        for key in ("soft bodies", "multibody"):
            if key in self._root:
                self._warn(
                    f'{self._source.name}: "{key}" is ignored: botyard does not '
                    "support it"
                )

        boxes: list[BoxObject] = []
        offers: dict[str, Offer] = {}
        for key, table in self._listed("bodies"):
            body = self._body(key, table)
            if body is not None:
                boxes.append(body[0])
                offers[body[0].name] = body[1]

        # Joints come before sensors and actuators, because they decide which bodies are
        # carried.
        joints = self._build_all("joints", self._joint)
        self._carried = {joint.child for joint in joints}
        made = Described(
            bodies=tuple(box for box in boxes if box.name not in self._carried),
            carried=tuple(box.name for box in boxes if box.name in self._carried),
            offers=offers,
            joints=joints,
            sensors=self._build_all("sensors", self._sensor),
            views=(
                *self._build_all("cameras", self._camera),
                *self._build_all("lights", self._light),
            ),
            vehicles=self._build_all("vehicles", self._vehicle),
            actuators=self._build_all("actuators", self._actuator),
        )
        for known in [
            k for k, name in self._qualified.items() if name in self._carried
        ]:
            # Objects of other files cannot be mounted on a carried body.
            del self._qualified[known]

        return made

    def _build_all(
        self, kind: str, make: Callable[[str, _Table], T | None]
    ) -> tuple[T, ...]:
        """Return the objects of one list.

        As in AMBF, an object that refers to a missing body is noted and left out.
        """
        made = []
        for key, table in self._listed(kind):
            try:
                one = make(key, table)
            except _LeftOut as reason:
                self._note(table, f"{reason}: it is left out")
                continue

            if one is not None:
                made.append(one)

        return tuple(made)

    # -- names and poses

    def _name(self, key: str, table: _Table, base: str = "") -> str:
        """Return the object's name, without blanks; a number makes it unique (§3)."""
        # The key has the kind in front of the name, as in "BODY base".
        wanted = table.text("name", key.split(" ", 1)[-1]).replace(" ", "") or "object"
        name, n = base + wanted, self._numbers.get(base + wanted, 2)
        while name in self._taken:
            name, n = f"{base}{wanted}{n}", n + 1
        # All lower numbers are taken.
        self._numbers[base + wanted] = n
        try:
            check_name(name, "object")
        except WorldError as error:
            raise table.fail("name", str(error)) from None

        self._taken.add(name)
        self._names[key] = name
        return name

    def _offer(self, table: _Table, sub: str = "") -> Offer:
        rates = table.table("publish frequency")
        low, high = (
            (LOW, HIGH)
            if rates is None
            else (
                rates.number("low", LOW, 0.1, 1e4),
                rates.number("high", HIGH, 0.1, 1e4),
            )
        )
        space = table.text("namespace", self._namespace + sub)
        return Offer(
            namespace=space if space.endswith("/") else f"{space}/",
            passive=bool(table.flag("passive", False)),
            low=low,
            high=high,
            children=table.flag("publish children names"),
            joint_names=table.flag("publish joint names"),
            joint_positions=table.flag("publish joint positions"),
        )

    def _pose(self, table: _Table, key: str) -> Pose:
        part = table.table(key)
        if part is None:
            return Pose()
        # Older files give sensors and actuators only a position.
        x, y = (
            part.vector("position")[:2]
            if "position" in part
            else (part.number("x", 0.0), part.number("y", 0.0))
        )
        roll, pitch, yaw = part.rotation("orientation")
        if abs(roll) > 1e-6 or abs(pitch) > 1e-6:
            self._note(table, f"{key}: roll and pitch are ignored")
        return Pose(x, y, math.remainder(yaw, 2.0 * math.pi))

    # -- bodies

    def _body(self, key: str, table: _Table) -> tuple[BoxObject, Offer] | None:
        parts = self._shapes(table)
        if not parts:
            self._note(table, "an infinite plane is ignored")
            return None

        name = self._name(key, table)
        mass = table.number("mass", 0.0, 0.0, 1e9)
        # A body without mass does not move in AMBF.
        dynamics = None if mass == 0.0 else self._dynamics(table, mass)
        table.text("name")
        xs, ys = zip(*(c for part in parts for c in part), strict=True)
        box = BoxObject(
            name=name,
            pose=self._pose(table, "location"),
            length=max(xs) - min(xs),
            width=max(ys) - min(ys),
            parts=parts,
            color=COLOR,
            dynamics=dynamics,
        )
        # These keys are read above only if the body has a mass; otherwise they must not
        # be reported as unknown.
        for unused in (
            "inertia",
            "friction",
            "restitution",
            "damping",
            "controller",
            "controller output type",
        ):
            table.get(unused)

        offer = self._offer(table)
        self._qualified.setdefault(f"{offer.namespace}{key}", name)
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
        self._masses[name] = _Mass(mass, about, moment)
        self._note_unread(table)
        return box, offer

    def _dynamics(self, table: _Table, mass: float) -> DynamicsSpec:
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

            given = PoseController(
                linear=gains[0], angular=gains[1], force=kind == "FORCE"
            )

        center = None
        if offset is not None:
            x, y, _ = offset.vector("position")
            center = (x, y)

        try:
            return DynamicsSpec(
                mass=mass,
                # An inertia of 0 stands for the inertia of the shape.
                inertia=iz or None,
                center=center,
                friction=0.5
                if friction is None
                else friction.number("static", 0.5, 0.0),
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

    def _shapes(self, table: _Table) -> tuple[Outline, ...]:
        """Return the outlines of a body in the plane; empty for a floor."""
        rows = table.rows("compound collision shape")
        if rows:
            found = [
                self._shape(
                    row,
                    row.text("shape"),
                    row.table("geometry"),
                    self._pose(row, "offset"),
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
                offset = self._pose(table, "collision offset")
                for other in (
                    "shape",
                    "geometry",
                    "collision shape",
                    "collision geometry",
                    "offset",
                ):
                    table.get(other)

                outline = self._shape(table, name, size, offset)
                return () if outline is None else (outline,)

        self._note(
            table, "has no shape besides a possible mesh: it becomes a box of 0.5 m"
        )
        return (rectangle(0.5, 0.5),)

    def _shape(
        self, table: _Table, name: str, size: _Table | None, offset: Pose
    ) -> Outline | None:
        """Return the outline of a shape; None for an infinite plane.

        An infinite plane has a normal and an offset instead of lengths.
        """
        kind = name.strip().lower()
        if size is None:
            raise table.fail("", f"expected a geometry for the shape {name}")
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

    # -- joints

    def _body_name(self, table: _Table, key: str) -> str:
        """Return the unique name of the body that a key refers to.

        As in AMBF, it is a body of this file by its key. Otherwise it is a body of any
        file by its namespace and key, or by a part of these.

        Raises
        ------
        _LeftOut
            There is no such body.
        """
        value = table.text(key)
        if not value:
            raise _LeftOut(f'it names no body as its "{key}"')
        if value in self._names:
            return self._names[value]
        for known, name in self._qualified.items():
            if value == known:
                return name

        for known, name in self._qualified.items():
            if value in known:
                return name

        raise _LeftOut(f'{key}: there is no body "{shown(value)}"')

    def _mount_name(self, table: _Table) -> str:
        """Return the parent of a sensor or an actuator.

        The parent must stand freely, because the engine gives a joint's child no place.
        """
        parent = self._body_name(table, "parent")
        if parent in self._carried:
            raise _LeftOut(
                f'parent: botyard cannot mount objects on "{shown(parent)}", which a '
                "joint moves"
            )

        return parent

    def _joint(self, key: str, table: _Table) -> JointSpec | None:
        kind = table.text("type", "revolute").strip().lower()
        name = table.text("name", key.split(" ", 1)[-1])
        parent, child = (
            self._body_name(table, "parent"),
            self._body_name(table, "child"),
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
            self._note(
                table,
                f"joints of type {shown(kind)} do not move in a plane: it becomes a fixed joint",
            )
            kind = "fixed"
        elif kind not in ("revolute", "continuous", "hinge", "fixed") and not slides:
            raise table.fail(
                "type",
                "expected revolute, continuous, prismatic or fixed, "
                f'found "{shown(kind)}"',
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
        # A joint moves its child in the plane if its axis is vertical (revolute) or
        # horizontal (prismatic), within about 25° or 6°.
        upright = abs(axis[2]) / size
        # Other joints are kept for clients, but do not move.
        planar = upright < 0.1 if slides else upright > 0.9
        px, py, _ = table.vector("parent pivot")
        cx, cy, _ = table.vector("child pivot")
        # A prismatic joint moves along x of its frame, so the frame is rotated to the
        # axis.
        heading = atan2(axis[1], axis[0]) if slides and planar else 0.0
        if not slides and axis[2] < 0.0:
            self._note(
                table,
                "its axis points down: its angles are clockwise in the file, but "
                "counter-clockwise here",
            )

        limits, gains, rates = (
            table.table("joint limits"),
            table.table("controller"),
            table.number("damping", 0.0, 0.0),
        )
        mass, about, moment = self._masses.get(child, _Mass())
        # The moment about the axis is approximated by a weighted sum of the moments
        # about x, y and z.
        inertia = total(abs(a) / size * i for a, i in zip(axis, about, strict=True))
        fixed = kind == "fixed"
        low = high = 0.0
        if limits is not None and not fixed:
            low, high = limits.number("low", -1e9), limits.number("high", 1e9)
            if low > high:
                self._note(
                    table,
                    f"joint limits: {low:g} is above {high:g}, so the joint has no limits",
                )
                limits, low, high = None, 0.0, 0.0

        self._note_unread(table)
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
            else Gains(
                gains.number("P", DEFAULT_GAIN, 0.0), gains.number("D", 0.0, 0.0)
            ),
            mass=mass,
            moment=moment,
        )

    # -- sensors, cameras, lights, vehicles, actuators

    def _sensor(self, key: str, table: _Table) -> RaySensorSpec | None:
        kind = table.text("type", "Proximity").strip().lower()
        if kind not in ("proximity", "resistance"):
            self._note(table, f"sensors of type {shown(kind)} are ignored")
            return None

        if kind == "resistance":
            self._note(
                table,
                "a resistance sensor: it detects objects like a proximity sensor, "
                "but has no resistance",
            )

        parent = self._mount_name(table)
        name = self._name(key, table)
        mount = self._pose(table, "location")
        rows = table.rows("array")
        # Older files describe one ray from the sensor's own position.
        if not rows and "direction" in table:
            rows = [table]

        array = [self._ray(row) for row in rows]
        rays = [ray for ray in array if ray is not None]
        if len(rays) < len(array):
            self._note(table, f"{len(array) - len(rays)} vertical rays are ignored")
        fan = table.table("parametric")
        if fan is not None:
            rays += self._fan(fan)
        # Counted before the rays are stored: a parametric sensor can request any
        # number.
        self._meter.add("beams", len(rays))
        if not rays and array:
            return None
        if not rays:
            raise table.fail("", "expected rays, as array, parametric or direction")
        placed = tuple(compose(mount, ray) for ray in rays)
        offer = self._offer(table, "sensors/")
        for unused in ("name", "visible size"):
            table.get(unused)
        spec = RaySensorSpec(
            name=name,
            parent=parent,
            rays=placed,
            range=table.number("range", 1.0, 1e-3, 1e4),
            offer=offer,
        )
        self._note_unread(table)
        return spec

    def _ray(self, row: _Table) -> Pose | None:
        """Return a ray in the plane; None for a vertical one."""
        x, y, _ = row.vector("offset")
        dx, dy, _ = row.vector("direction", (1.0, 0.0, 0.0))
        if hypot(dx, dy) < 1e-9:
            return None
        return Pose(x, y, atan2(dy, dx))

    def _fan(self, fan: _Table) -> list[Pose]:
        """Return the rays of a parametric sensor.

        They are spread over the horizontal angle and start at the start offset.
        """
        count = (
            int(fan.number("resolution", 0.0, 1, 100_000)) if "resolution" in fan else 0
        )
        if count < 1:
            raise fan.fail("resolution", "expected the number of rays")
        angle, start = (
            fan.number("horizontal angle", 0.0, 0.0, 2.0 * math.pi),
            fan.number("start offset", 0.0),
        )
        if fan.number("vertical angle", 0.0):
            self._note(fan, "the vertical angle is ignored")
        angles = (
            [-angle / 2.0 + angle * k / (count - 1) for k in range(count)]
            if count > 1
            else [0.0]
        )
        return [Pose(start * cos(a), start * sin(a), a) for a in angles]

    def _camera(self, key: str, table: _Table) -> ViewSpec:
        return self._view(key, table, is_light=False)

    def _light(self, key: str, table: _Table) -> ViewSpec:
        return self._view(key, table, is_light=True)

    def _view(self, key: str, table: _Table, *, is_light: bool) -> ViewSpec:
        parent = self._body_name(table, "parent") if "parent" in table else ""
        name = self._name(key, table)
        x, y, z = table.vector("location")
        # A camera has a target point, a light has a direction.
        aim = table.vector("look at" if not is_light else "direction", (0.0, 0.0, 0.0))
        dx, dy = (aim[0], aim[1]) if is_light else (aim[0] - x, aim[1] - y)
        yaw = atan2(dy, dx) if hypot(dx, dy) > 1e-9 else 0.0
        # Clients read these values from the parameter server; botyard itself does not
        # use them.
        known = (
            "clipping plane",
            "field view angle",
            "orthographic view width",
            "stereo",
            "spot exponent",
            "cutoff angle",
            "shadow quality",
        )
        parameters: dict[str, Any] = {}
        for word in known:
            value = table.get(word)
            if isinstance(value, int | float | str | bool):
                parameters[word.replace(" ", "_")] = value
            elif isinstance(value, Mapping):
                parameters |= {
                    f"{k}_plane"
                    if word == "clipping plane"
                    else f"{word}_{k}".replace(" ", "_"): v
                    for k, v in value.items()
                }

        for unused in (
            "up",
            "controlling devices",
            "name",
            "look at",
            "direction",
            "cast shadows",
        ):
            table.get(unused)

        offer = self._offer(table, "lights/" if is_light else "cameras/")
        self._note_unread(table)
        # A rotation about z only, as a quaternion.
        half = yaw / 2.0
        return ViewSpec(
            name=name,
            parent=parent,
            is_light=is_light,
            position=(x, y, z),
            orientation=(0.0, 0.0, sin(half), cos(half)),
            parameters=parameters,
            offer=offer,
        )

    def _vehicle(self, key: str, table: _Table) -> VehicleSpec:
        chassis = self._body_name(table, "chassis")
        name = self._name(key, table)
        wheels = []
        for row in table.rows("wheels"):
            x, y, _ = row.vector("offset")
            front = bool(row.flag("front", False))
            steers = front if "steering limits" not in row else True
            limits = row.table("steering limits")
            if limits is not None:
                limits.get("low"), limits.get("high")
            wheels.append(
                WheelSpec(
                    x=x, y=y, radius=row.number("radius", 0.1, 1e-3, 1e3), steers=steers
                )
            )

        if not wheels:
            raise table.fail("wheels", "expected wheels, found none")
        limits = table.table("steering limits")
        steering = (
            (-0.6, 0.6)
            if limits is None
            else (limits.number("low", -0.6), limits.number("high", 0.6))
        )
        spec = VehicleSpec(
            name=name,
            chassis=chassis,
            wheels=tuple(wheels),
            max_power=table.number("max engine power", 100.0, 0.0),
            max_brake=table.number("max brake power", 100.0, 0.0),
            steering=steering,
            offer=self._offer(table, "vehicles/"),
        )
        table.get("name")
        self._note_unread(table)
        return spec

    def _actuator(self, key: str, table: _Table) -> ActuatorSpec | None:
        if table.text("type", "Constraint").strip().lower() != "constraint":
            self._note(table, f"actuators of type {table.text('type')} are ignored")
            return None

        parent = self._mount_name(table)
        name = self._name(key, table)
        at, offer = self._pose(table, "location"), self._offer(table, "actuators/")
        # Known keys without an effect in a plane cause no warning.
        for unused in ("name", "visible size", "max impulse", "tau"):
            table.get(unused)
        self._note_unread(table)
        return ActuatorSpec(name=name, parent=parent, at=at, offer=offer)


def read_adf(
    path: str | Path, options: Options = Options(), others: dict[str, str] | None = None
) -> Described:
    """Read a description file.

    Parameters
    ----------
    path : str or Path
        File to read.
    options : Options
        Limits, and receiver of notes about ignored parts.
    others : dict of str to str, optional
        Names of the bodies of files read before, by namespace and key; the bodies of
        this file are added.

    Raises
    ------
    FormatError
        The file is invalid. The error names the line, the expected and the found value.
    """
    return parse_adf(read_source(path, options.budget), options, others)


def parse_adf(
    source: Source, options: Options = Options(), others: dict[str, str] | None = None
) -> Described:
    """Parse a description in memory; see `read_adf`."""
    return _Reader(source, options, {} if others is None else others).run()


__all__ = ["parse_adf", "read_adf"]
