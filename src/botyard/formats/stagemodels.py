"""Robot models from Stage definitions, AMRISim's flavour (formats §3.4, §3.5).

A definition is a chain of bases down to a model type of Stage, or to a model of our own library: ``define mine p3dx ( … )`` works
although the file that defines ``p3dx`` for the original is not shipped. Each link of the chain changes what it names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from botyard.errors import FormatError, ModelError, ModelFileError, did_you_mean
from botyard.formats.stageworld import Entity, Property, WorldFile
from botyard.geometry import Pose
from botyard.model.library import load_laser, load_robot, parse_robot, robot_names
from botyard.model.obstacles import Returns
from botyard.model.robot import Axes, Drive, MotionLimits, Outline, PioneerSpec, RobotSpec
from botyard.model.sensors import LaserSpec, ReflectorRule, SonarSpec, Transducer
from botyard.units import from_deg, from_mm, wrap_angle

MODEL_TYPES = frozenset({"model", "position"})
"""Stage types that a robot or an object can be based on."""
LASERS = {"sicklms200": "lms200", "sicklms100": "lms100", "sicks300": "s300", "sicktim510": "tim510"}
"""The stock sensor definitions of AMRISim's model file, and our models of the same devices."""
IGNORED_CHILDREN = frozenset({"gps", "bumpers", "blobfinder", "fiducialfinder", "gripper", "bumpswitches", "messages"})
"""Children that a model may have and that the robot's description does not hold."""

# an undescribed `position` of Stage: formats §3.4, pioneer-protocol §11.5
_POSITION = RobotSpec(
    name="position",
    outline=((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    limits=MotionLimits(),
    odometry_error=Axes(0.03, 0.03, 0.05),
    pioneer=PioneerSpec(subclass=""),
)


@dataclass(slots=True)
class _Shape:
    """How a body's outline is described: resolved when everything is known."""

    size: tuple[float, float] = (1.0, 1.0)
    origin: Pose = Pose()
    polygons: list[Outline] = field(default_factory=list)
    given: bool = False

    def outline(self) -> Outline:
        """The first polygon scaled to the size and centred, moved by the origin (formats §3.4)."""
        length, width = self.size
        corners: Outline = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
        if self.polygons:
            corners = self.polygons[0]
        xs, ys = zip(*corners, strict=True)
        cx, cy = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
        dx, dy = max(max(xs) - min(xs), 1e-9), max(max(ys) - min(ys), 1e-9)
        o = self.origin
        c, s = math.cos(o.th), math.sin(o.th)
        scaled = [((x - cx) / dx * length, (y - cy) / dy * width) for x, y in corners]
        return tuple((o.x + c * x - s * y, o.y + s * x + c * y) for x, y in scaled)


class ModelLibrary:
    """The robot models that world files define.

    Parameters
    ----------
    world : WorldFile
        Definitions.
    stock : bool
        A base that the file does not define may be a model of our library.
    """

    def __init__(self, world: WorldFile, *, stock: bool = True) -> None:
        self._world = world
        self._stock = stock
        self._known: dict[str, RobotSpec] = {}

    def chain(self, name: str) -> tuple[list[Entity], str]:
        """The definitions behind `name`, root first, and the type that the root is based on.

        Raises
        ------
        ModelFileError
            Definitions that go round in a circle.
        """
        links: list[Entity] = []
        while name in self._world.definitions:
            entity = self._world.definitions[name]
            if entity in links:
                raise ModelFileError(f"definition {name} is based on itself", entity.path, entity.line)
            links.append(entity)
            name = entity.type_name
        return links[::-1], name

    @property
    def names(self) -> tuple[str, ...]:
        """Definitions that can be put into a world: those based on `position` or `model`, or on a model of our library."""
        return tuple(n for n in self._world.definitions if self.is_model(n))

    def is_model(self, name: str) -> bool:
        """Whether a definition can be put into a world (a sensor's cannot).

        Raises
        ------
        ModelFileError
            Definitions that go round in a circle.
        """
        return self._is_robot(self.chain(name)[1])

    def _is_robot(self, root: str) -> bool:
        return root in MODEL_TYPES or (self._stock and (root == "pioneer" or root in robot_names()))

    def robot(self, name: str) -> RobotSpec:
        """The model of a definition.

        Raises
        ------
        ModelFileError
            With file, line, what was expected and what was found.
        """
        if name not in self._known:
            links, root = self.chain(name)
            self._known[name] = self._build(name, links, root)
        return self._known[name]

    def instance(self, entity: Entity) -> RobotSpec:
        """The model of an entity that stands in the world itself, its own properties included."""
        links, root = self.chain(entity.type_name)
        return self._build(entity.type_name, [*links, entity], root)

    def _build(self, name: str, links: list[Entity], root: str) -> RobotSpec:
        where = links[0] if links else None
        if root == "position":
            spec, shape = _POSITION, _Shape()
        elif root == "model":
            spec, shape = replace(_POSITION, drive=Drive.NONE, odometry_error=Axes()), _Shape()
        elif self._is_robot(root):
            spec = _pioneer() if root == "pioneer" else load_robot(root)
            xs, ys = zip(*spec.outline, strict=True)
            shape = _Shape(
                size=(max(xs) - min(xs), max(ys) - min(ys)),
                origin=Pose((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2, 0.0),
                polygons=[spec.outline],
            )
        else:
            known = [*self._world.definitions, *MODEL_TYPES, *(robot_names() if self._stock else ())]
            raise ModelFileError(
                f'"{root}" is not a model type{did_you_mean(root, known)}',
                where.path if where else None, where.line if where else None,
            )  # fmt: skip
        spec = replace(spec, name=name)
        if not (root == "pioneer" or root in MODEL_TYPES):
            spec = replace(spec, description=f"{root}, changed")
        for entity in links:
            spec = self._apply(spec, shape, entity)
        if not spec.pioneer.subclass:  # a model that does not say what it is has its name
            spec = replace(spec, pioneer=replace(spec.pioneer, subclass=name))
        try:
            return replace(spec, outline=shape.outline())
        except ModelError as error:
            last = links[-1]
            raise ModelFileError(str(error), last.path, last.line) from None

    # -- properties of the body

    def _apply(self, spec: RobotSpec, shape: _Shape, entity: Entity) -> RobotSpec:
        _shape(shape, entity)
        for key, prop in entity.properties.items():
            change = _PROPERTIES.get(key)
            if change is not None:
                spec = change(spec, prop)
        for child in entity.children:
            spec = self._child(spec, child)
        return spec

    def _child(self, spec: RobotSpec, child: Entity) -> RobotSpec:
        links, root = self.chain(child.type_name)
        links = [*links, child]
        if root == "laser" or root in LASERS:
            return replace(spec, lasers=(*spec.lasers, _laser(links, root)))
        if root in ("ranger", "sonar", "pioneerSonar"):
            return replace(spec, sonar=_sonar(links, root))
        if root in IGNORED_CHILDREN or root in MODEL_TYPES:
            return spec
        known = [*self._world.definitions, *LASERS, "laser", "ranger", "pioneerSonar"]
        raise ModelFileError(
            f'"{root}" is not a type of sensor or model{did_you_mean(root, known)}', child.path, child.line
        )


@cache
def _pioneer() -> RobotSpec:
    """The base of the family, with the body of an undescribed model."""
    return parse_robot(
        'extends = "pioneer"\noutline = [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]\n[pioneer]\nsubclass = "pioneer"',
        "undescribed pioneer",
    )


_POLYGON = re.compile(r"polygon\[(\d+)\]\.point\[(\d+)\]")


def _shape(shape: _Shape, entity: Entity) -> None:
    props = entity.properties
    if "size" in props:
        shape.size = _positive(props["size"])
    if "origin" in props:
        shape.origin = _pose(props["origin"])
    points: dict[int, dict[int, tuple[float, float]]] = {}
    for key, prop in props.items():
        match = _POLYGON.fullmatch(key)
        if match:
            x, y = prop.numbers(2)
            points.setdefault(int(match[1]), {})[int(match[2])] = (x, y)
    if points:
        shape.polygons = [tuple(p[i] for i in sorted(p)) for _, p in sorted(points.items())]
        if any(len(p) < 3 for p in shape.polygons):
            raise ModelFileError("expected polygons of at least 3 points", entity.path, entity.line)


def _positive(prop: Property) -> tuple[float, float]:
    values = prop.numbers()
    if len(values) < 2 or min(values[:2]) < 0.0:
        raise prop.fail("a length and a width, not negative")
    return values[0], values[1]


def _pose(prop: Property) -> Pose:
    """x, y (m) and heading (deg); what is left out is 0, a height is left out too (Stage 4: x y z a)."""
    values = prop.numbers()
    if len(values) == 4:
        values = (values[0], values[1], values[3])
    x, y, th = (*values, 0.0, 0.0, 0.0)[:3]
    return Pose(x, y, wrap_angle(from_deg(th)))


def _axes(prop: Property) -> Axes:
    """Forward, left, turn: the last a plain number of rad (formats §3.4)."""
    x, y, a = (*prop.numbers(), 0.0, 0.0, 0.0)[:3]
    return Axes(x, y, a)


Change = Callable[[RobotSpec, Property], RobotSpec]


def _with(part: Any, name: str, value: object) -> Any:
    """A frozen description with one field changed, by the field's name."""
    return replace(part, **{name: value})


def _drive(spec: RobotSpec, prop: Property) -> RobotSpec:
    try:
        return replace(spec, drive={"diff": Drive.DIFF, "omni": Drive.OMNI}[prop.string()])
    except KeyError:
        raise prop.fail('"diff" or "omni"') from None


def _limit(name: str) -> Change:
    return lambda spec, prop: replace(spec, limits=_with(spec.limits, name, _axes(prop)))


def _default_speed(spec: RobotSpec, prop: Property) -> RobotSpec:
    return replace(spec, limits=replace(spec.limits, heading_speed=_axes(prop).a))


def _odom_error(spec: RobotSpec, prop: Property) -> RobotSpec:
    """Symmetric errors; the rotation's is read through the angle unit, degrees (pioneer-protocol §11.4)."""
    x, y, a = (*prop.numbers(), 0.0, 0.0, 0.0)[:3]
    return replace(spec, odometry_error=Axes(x, y, from_deg(a)), odometry_error_low=None)


def _odom_range(axis: str) -> Change:
    def change(spec: RobotSpec, prop: Property) -> RobotSpec:
        low, high = prop.numbers(2)
        e = spec.odometry_error
        lows = spec.odometry_error_low or Axes(-e.x, -e.y, -e.a)
        return replace(spec, odometry_error=replace(e, **{axis: high}), odometry_error_low=replace(lows, **{axis: low}))

    return change


def _pioneer_value(name: str, scale: float = 1.0) -> Change:
    return lambda spec, prop: replace(spec, pioneer=_with(spec.pioneer, name, prop.number() * scale))


def _pioneer_text(name: str) -> Change:
    return lambda spec, prop: replace(spec, pioneer=_with(spec.pioneer, name, prop.string()))


def _gps(name: str) -> Change:
    return lambda spec, prop: replace(spec, gps=_with(spec.gps, name, prop.number()))


def _returns(spec: RobotSpec, **values: bool | int) -> RobotSpec:
    r = spec.returns
    merged = {"obstacle": r.obstacle, "laser": r.laser, "sonar": r.sonar, **values}
    return replace(
        spec,
        returns=Returns(obstacle=bool(merged["obstacle"]), laser=int(merged["laser"]), sonar=bool(merged["sonar"])),
    )


_PROPERTIES: Mapping[str, Change] = {
    "color": lambda spec, prop: replace(spec, color=prop.string()),
    "drive": _drive,
    "max_speed": _limit("max_speed"),
    "default_speed": _default_speed,
    "accel": _limit("accel"),
    "decel": _limit("decel"),
    "max_accel": _limit("top_accel"),
    "odom_error": _odom_error,
    **{f"odom_error{r}_{a}": _odom_range(a) for r in ("", "_range") for a in ("x", "y", "a")},
    "localization": lambda spec, prop: replace(spec, perfect_odometry=prop.string() == "gps"),
    "obstacle_return": lambda spec, prop: _returns(spec, obstacle=prop.number() != 0),
    "laser_return": lambda spec, prop: _returns(spec, laser=int(prop.number())),
    "ranger_return": lambda spec, prop: _returns(spec, sonar=prop.number() > 0),
    "pioneer_robot_type": _pioneer_text("class_name"),
    "pioneer_robot_subtype": _pioneer_text("subclass"),
    "pioneer_diffconv": _pioneer_value("diff_conv"),
    "pioneer_angleconv": _pioneer_value("angle_conv"),
    "pioneer_distconv": _pioneer_value("dist_conv"),
    "pioneer_velconv": _pioneer_value("vel_conv"),
    "pioneer_rangeconv": _pioneer_value("range_conv"),
    "pioneer_vel2div": _pioneer_value("vel2_div"),
    "pioneer_watchdog": _pioneer_value("watchdog", from_mm(1.0)),  # ms to s, the same factor
    "pioneer_batterytype": lambda spec, prop: replace(
        spec, battery=replace(spec.battery, by_charge=prop.number() == 2)
    ),
    "pioneer_gps_dop": _gps("dop"),
    "pioneer_gps_pos_x": _gps("x"),
    "pioneer_gps_pos_y": _gps("y"),
}


# -- sensors


def _merged(links: list[Entity]) -> dict[str, Property]:
    """Properties of a chain, later ones over earlier ones."""
    return {k: p for entity in links for k, p in entity.properties.items()}


def _type_name(links: list[Entity], root: str) -> str:
    """The stock name of a device, or the definition next to the instance."""
    return links[-1].type_name if len(links) > 1 or root in LASERS else root


def _laser(links: list[Entity], root: str) -> LaserSpec:
    props = _merged(links)
    base = load_laser(LASERS[root]) if root in LASERS else LaserSpec(type_name="laser", samples=180, size=(0.15, 0.15))

    def number(key: str, otherwise: float) -> float:
        return props[key].number() if key in props else otherwise

    try:
        return LaserSpec(
            type_name=_type_name(links, root),
            pose=_pose(props["pose"]) if "pose" in props else Pose(),
            size=_positive(props["size"]) if "size" in props else base.size,
            fov=from_deg(props["fov"].number()) if "fov" in props else base.fov,
            samples=int(number("samples", base.samples)),
            range_min=number("range_min", base.range_min),
            range_max=number("range_max", base.range_max),
            flipped=number("reverse_scan", float(base.flipped)) != 0,
            range_noise=number("noise", base.range_noise),
            angle_noise=number("reading_angle_error", base.angle_noise),
            reflector=_reflector(props) if "laser_return_rules" in props else base.reflector,
        )
    except ModelError as error:
        raise ModelFileError(str(error), links[-1].path, links[-1].line) from None


def _reflector(props: Mapping[str, Property]) -> ReflectorRule:
    """The documented rules: bright things are plain beyond a range or an angle, and 2 may be reported as another number."""
    rule = ReflectorRule()
    for i in range(int(props["laser_return_rules"].number())):
        one = {k.rpartition(".")[2]: p for k, p in props.items() if k.startswith(f"laser_return_rule[{i}].")}
        condition = one["condition"].string() if "condition" in one else ""
        if condition == "outside_range" and "range" in one:
            rule = replace(rule, max_range=one["range"].number())
        elif condition == "outside_angle" and "angle" in one:
            rule = replace(rule, max_incidence=from_deg(one["angle"].number()) / 2.0)
        elif not condition and "detect" in one:
            rule = replace(rule, strength=int(one["detect"].number()))
    return rule


def _sonar(links: list[Entity], root: str) -> SonarSpec:
    props = _merged(links)
    stock = root == "pioneerSonar"
    count = int(props["scount"].number()) if "scount" in props else 0
    view = props["sview"].numbers(3) if "sview" in props else ((0.1, 5.0, 30.0) if stock else (0.0, 5.0, 5.0))
    views = [props[f"sview[{i}]"].numbers(3) if f"sview[{i}]" in props else view for i in range(count)]
    poses = [props.get(f"spose[{i}]") for i in range(count)]
    last = links[-1]
    if count < 1:
        raise ModelFileError("expected scount and spose[0] … of a ranger, found none", last.path, last.line)
    if None in poses:
        raise ModelFileError(f"scount is {count}, but spose[{poses.index(None)}] is missing", last.path, last.line)
    fov = max(v[2] for v in views)
    rays = 1
    if "projection_type" in props and props["projection_type"].string() == "closest":
        step = props["projection_res"].number() if "projection_res" in props else 6.0
        rays = max(1, round(fov / step) + 1)
    noise = props["noise"].number() if "noise" in props else (0.0005 if stock else 0.0)
    try:
        return SonarSpec(
            type_name=_type_name(links, root) if not stock else "pioneerSonar",
            transducers=tuple(
                Transducer(pose=_pose(p), connected=v[2] > 0.0) for p, v in zip(poses, views, strict=True) if p
            ),
            fov=from_deg(fov),
            range_min=views[0][0],
            range_max=views[0][1],
            noise=noise,
            rays=rays,
        )
    except FormatError:
        raise
    except ModelError as error:
        raise ModelFileError(str(error), last.path, last.line) from None
