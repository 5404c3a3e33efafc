"""Mapping of Stage properties to fields of a robot's description (formats §3.4, §4.3).

One table serves both dialects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from botyard.errors import ModelError, ModelFileError
from botyard.formats.notes import Notes
from botyard.formats.stageworld import Entity, Property, WorldFile
from botyard.geometry import Pose
from botyard.model.devices import built_in_devices, make_spec
from botyard.model.kinematics import MAX_WHEELBASE, MIN_WHEELBASE, Axes, Drive, Steering
from botyard.model.obstacles import Returns
from botyard.model.robot import NO_DRIFT, RobotSpec
from botyard.names import shown
from botyard.units import from_deg, from_mm, wrap_angle

STAGE_2: Final = 2
STAGE_4: Final = 4
JOULES_PER_WH: Final = 3600.0

# Properties that have no effect here (drawing, windows, timing of sensors), or that
# other modules interpret.
_SILENT = re.compile(
    r"""gui_\w+|window|trail_\w+|show_\w+|alwayson|name|pose|mass|stack_children|noblocks|map_resolution
    |polygons|polygon\[\d+\].*|blocks?|points?|point\[\d+\]|size|size3|origin|bitmap|boundary
    |color_rgba|gripper_return|blobfinder_return|max_speed|ctrl|mask|watts_used|id|z|laser_return_rules?.*|add_noise|power_on
    |localization_origin|pioneer_max_readings_per_packet|pioneer_has(front|rear)array""",
    re.VERBOSE,
)


_DEFAULTS: Final[Mapping[str, float]] = {
    "velocity": 0.0,
    "friction": 0.0,
    "height": 0.0,
    "height_offset": 0.0,
    "update_interval": 100.0,
}
"""Default values of properties that are not simulated; other values cause a note."""


def dialect_of(world: WorldFile) -> int:
    """Return the Stage version that a file was written for (formats §4.4).

    The version is 4 if the file uses a feature of Stage 4, otherwise 2.
    """
    found = any(map(_is_of_stage_4, (*world.definitions.values(), *world.entities)))
    return STAGE_4 if found else STAGE_2


def _is_of_stage_4(entity: Entity) -> bool:
    props = entity.properties
    # Windows have the same properties in both versions.
    if entity.type_name == "window":
        return False
    if (
        "velocity_bounds" in props
        or "acceleration_bounds" in props
        or entity.type_name in ("sensor", "fiducial", "block")
    ):
        return True

    if (
        len(props["pose"].values if "pose" in props else ()) >= 4
        or len(props["size"].values if "size" in props else ()) >= 3
    ):
        return True

    return any(map(_is_of_stage_4, entity.children))


# -- units


_LENGTHS: Final = {
    **dict.fromkeys(
        (
            "pose",
            "origin",
            "localization_origin",
            "velocity",
            "max_speed",
            "default_speed",
            "accel",
            "decel",
        ),
        "LLA",
    ),
    **dict.fromkeys(
        (
            "size",
            "range",
            "range_min",
            "range_max",
            "range_max_id",
            "ssize",
            "wheelbase",
            "blength",
        ),
        "LLL",
    ),
    **dict.fromkeys(("velocity_bounds", "acceleration_bounds"), "LLLLLLAA"),
    **dict.fromkeys(("fov", "projection_res", "pan"), "AA"),
    "sview": "LLA",
    "view": "LLA",
    "spose": "LLA",
    "bpose": "LLLA",
}
_PLAIN_TURN: Final = frozenset({"max_speed", "default_speed", "accel", "decel"})
"""Properties whose rotation is always in rad, regardless of the unit of angles.

Source: formats §3.4.
"""
_INDEX = re.compile(r"\[\d+\]")


def to_metres_and_degrees(world: WorldFile) -> None:
    """Convert lengths and angles of a file with ``unit_length`` or ``unit_angle``.

    Source: formats §3.3.

    Raises
    ------
    ModelFileError
        A unit is unknown.
    """
    length = _unit(world, "unit_length", {"m": 1.0, "cm": 0.01, "mm": 0.001})
    angle = _unit(world, "unit_angle", {"degrees": 1.0, "radians": 1.0 / from_deg(1.0)})
    # The values are converted below, so the units must not be applied again.
    for key in ("unit_length", "unit_angle"):
        world.properties.pop(key, None)
    if length == 1.0 and angle == 1.0:
        return
    todo = [*world.definitions.values(), *world.entities]
    while todo:
        entity = todo.pop()
        todo += entity.children
        for key, prop in entity.properties.items():
            kinds = _LENGTHS.get(_INDEX.sub("", key))
            if kinds is None or any(isinstance(v, str) for v in prop.values):
                continue
            # A pose of four numbers has a height, the third, which is not used.
            turn = 1.0 if key in _PLAIN_TURN else angle
            scale = {"L": length, "A": turn}
            values = tuple(
                float(v) * scale[k]
                for v, k in zip(
                    prop.values, kinds.ljust(len(prop.values), kinds[-1]), strict=False
                )
            )
            entity.properties[key] = replace(prop, values=values)


def _unit(world: WorldFile, key: str, known: Mapping[str, float]) -> float:
    prop = world.properties.get(key)
    if prop is None:
        return 1.0
    try:
        return known[prop.string()]
    except KeyError:
        raise prop.fail(" or ".join(f'"{k}"' for k in known)) from None


# -- values


def positive(prop: Property) -> tuple[float, float]:
    """Return a length and a width, which must not be negative; a third number is ignored."""
    values = prop.numbers()
    if len(values) < 2 or min(values[:2]) < 0.0:
        raise prop.fail("a length and a width, not negative")
    return values[0], values[1]


def pose(prop: Property) -> Pose:
    """Return the pose that a property gives: x, y (m) and heading (degrees in the file).

    Missing values are 0. A height is ignored (Stage 4: x y z a).
    """
    values = prop.numbers()
    if len(values) >= 4:
        values = (values[0], values[1], values[3])
    x, y, th = (*values, 0.0, 0.0, 0.0)[:3]
    return Pose(x, y, wrap_angle(from_deg(th)))


def axes(prop: Property) -> Axes:
    """Return the values for forward, left and turn; the turn is always in rad (formats §3.4)."""
    x, y, a = (*prop.numbers(), 0.0, 0.0, 0.0)[:3]
    return Axes(x, y, a)


def merged(links: Iterable[Entity]) -> dict[str, Property]:
    """Return the properties of a chain of definitions; later ones override earlier ones."""
    return {k: p for entity in links for k, p in entity.properties.items()}


def color(props: Mapping[str, Property], fallback: str, draw: str = "") -> str:
    """Return the colour of a model, by name or by ``color_rgba``.

    For "random", the text `draw` selects the colour, so that a world always looks the
    same.
    """
    if "color_rgba" in props:
        values = props["color_rgba"].numbers()
        if len(values) < 3 or not all(0.0 <= v <= 1.0 for v in values):
            raise props["color_rgba"].fail("red, green, blue and alpha from 0 to 1")
        return "#" + "".join(f"{round(255 * v):02x}" for v in values[:3])

    if "color" not in props:
        return fallback
    name = props["color"].string()
    if name == "random":
        return _RANDOM[sum(map(ord, draw)) % len(_RANDOM)]
    return name


_RANDOM = (
    "red",
    "green",
    "blue",
    "orange",
    "purple",
    "cyan",
    "magenta",
    "gold",
    "sea green",
    "tomato",
    "navy",
    "sienna",
)


# -- properties of robots

Change = Callable[[RobotSpec, Property], RobotSpec]


def _with_field(part: Any, name: str, value: object) -> Any:
    """Return a copy of a description with one field changed."""
    return replace(part, **{name: value})


def _changed(spec: RobotSpec, prop: Property, **fields: Any) -> RobotSpec:
    """Return a copy of a model with fields that a property changes.

    Raises
    ------
    ModelFileError
        The fields do not fit the rest of the model.
    """
    try:
        return replace(spec, **fields)
    except ModelError as error:
        raise ModelFileError(str(error), prop.path, prop.line) from None


CAR_STEERING: Final = Steering(wheelbase=1.0, limit=from_deg(60.0))
"""Steered axle of a car without further keys: the wheelbase of Stage (formats §4.3).

Stage does not limit the angle; a real wheel is limited.
"""


def _drive(spec: RobotSpec, prop: Property) -> RobotSpec:
    kinds = {"diff": Drive.DIFF, "omni": Drive.OMNI, "car": Drive.TRICYCLE}
    kind = kinds.get(prop.string())
    if kind is None:
        raise prop.fail('"diff", "omni" or "car"')
    # A definition may extend a car with two steered wheels.
    if kind is Drive.TRICYCLE and spec.kinematics.steers:
        return spec
    axle = CAR_STEERING if kind is Drive.TRICYCLE else None
    return _changed(spec, prop, drive=kind, steering=axle, wheels=None)


def _wheelbase(spec: RobotSpec, prop: Property) -> RobotSpec:
    # For other drives the key has no meaning.
    if spec.steering is None:
        return spec
    try:
        axle = replace(spec.steering, wheelbase=prop.number())
    except ModelError:
        raise prop.fail(
            f"a wheelbase from {MIN_WHEELBASE:g} to {MAX_WHEELBASE:g} m"
        ) from None
    return _changed(spec, prop, steering=axle)


def _limit(name: str) -> Change:
    return lambda spec, prop: replace(
        spec, limits=_with_field(spec.limits, name, axes(prop))
    )


def _default_speed(spec: RobotSpec, prop: Property) -> RobotSpec:
    return replace(spec, limits=replace(spec.limits, heading_speed=axes(prop).a))


def _bounds(prop: Property) -> tuple[Axes, Axes]:
    """Return the absolute values of the minima and maxima of x, y and rotation, m and rad.

    The property has eight numbers: pairs for x, y, z (ignored) and rotation, degrees
    (formats §4.3).
    """
    x0, x1, y0, y1, _, _, a0, a1 = prop.numbers(8)
    return Axes(abs(x0), abs(y0), from_deg(abs(a0))), Axes(
        abs(x1), abs(y1), from_deg(abs(a1))
    )


def _velocity_bounds(spec: RobotSpec, prop: Property) -> RobotSpec:
    back, top = _bounds(prop)
    speed = Axes(max(back.x, top.x), max(back.y, top.y), max(back.a, top.a))
    return replace(
        spec, limits=replace(spec.limits, max_speed=speed, heading_speed=speed.a)
    )


def _acceleration_bounds(spec: RobotSpec, prop: Property) -> RobotSpec:
    decel, accel = _bounds(prop)
    return replace(
        spec, limits=replace(spec.limits, accel=accel, decel=decel, top_accel=accel)
    )


def _odom_error(spec: RobotSpec, prop: Property) -> RobotSpec:
    """Return the robot with symmetric errors of odometry.

    The error of rotation is converted by the angle unit, degrees (pioneer-protocol
    §11.4). Four numbers are Stage 4's x y z a, of which half is the limit (formats
    §4.3).
    """
    values = prop.numbers()
    if len(values) >= 4:
        x, y, _, a = (v / 2.0 for v in values[:4])
    else:
        x, y, a = (*values, 0.0, 0.0, 0.0)[:3]
        a = from_deg(a)

    return replace(spec, odometry_error=Axes(x, y, a), odometry_error_low=None)


def _odom_range(axis: str) -> Change:
    def change(spec: RobotSpec, prop: Property) -> RobotSpec:
        low, high = prop.numbers(2)
        # Without a lower limit so far, the errors are symmetric.
        e = spec.odometry_error
        lows = spec.odometry_error_low or Axes(-e.x, -e.y, -e.a)
        return replace(
            spec,
            odometry_error=replace(e, **{axis: high}),
            odometry_error_low=replace(lows, **{axis: low}),
        )

    return change


def _pioneer_value(name: str, scale: float = 1.0) -> Change:
    return lambda spec, prop: replace(
        spec, pioneer=_with_field(spec.pioneer, name, prop.number() * scale)
    )


def _pioneer_text(name: str) -> Change:
    return lambda spec, prop: replace(
        spec, pioneer=_with_field(spec.pioneer, name, prop.string())
    )


def _device(kind: str, name: str) -> Change:
    return lambda spec, prop: spec.fitted(
        _with_field(spec.device(kind) or make_spec(kind), name, prop.number())
    )


def _battery(name: str, scale: float = 1.0) -> Change:
    return lambda spec, prop: replace(
        spec, battery=_with_field(spec.battery, name, prop.number() * scale)
    )


PROPERTIES: Final[Mapping[str, Change]] = {
    "drive": _drive,
    "wheelbase": _wheelbase,
    "max_speed": _limit("max_speed"),
    "default_speed": _default_speed,
    "accel": _limit("accel"),
    "decel": _limit("decel"),
    "max_accel": _limit("top_accel"),
    # The protocol has no limit for decelerations that clients set, so the value is
    # ignored.
    "max_decel": lambda spec, prop: spec,
    "velocity_bounds": _velocity_bounds,
    "acceleration_bounds": _acceleration_bounds,
    "odom_error": _odom_error,
    **{
        f"odom_error{r}_{a}": _odom_range(a)
        for r in ("", "_range")
        for a in ("x", "y", "a")
    },
    "localization": lambda spec, prop: replace(
        spec, perfect_odometry=prop.string() == "gps"
    ),
    "pioneer_robot_type": _pioneer_text("class_name"),
    "pioneer_robot_subtype": _pioneer_text("subclass"),
    "pioneer_diffconv": _pioneer_value("diff_conv"),
    "pioneer_angleconv": _pioneer_value("angle_conv"),
    "pioneer_distconv": _pioneer_value("dist_conv"),
    "pioneer_velconv": _pioneer_value("vel_conv"),
    "pioneer_rangeconv": _pioneer_value("range_conv"),
    "pioneer_vel2div": _pioneer_value("vel2_div"),
    # The file has ms; the factor from ms to s is the same as from mm to m.
    "pioneer_watchdog": _pioneer_value("watchdog", from_mm(1.0)),
    "pioneer_batterytype": lambda spec, prop: replace(
        spec, battery=replace(spec.battery, by_charge=prop.number() == 2)
    ),
    "watts": _battery("idle_power"),
    **{
        prop: _device(d.name, name)
        for d in built_in_devices()
        for prop, name in d.stage.items()
    },
}


def with_origin(spec: RobotSpec, origin: Pose | None) -> RobotSpec:
    """Return a robot whose odometry is relative to a pose of the world.

    None means the robot's start pose. ``localization "gps"`` gives true poses, which are
    relative to the world's origin. For any other origin, odometry is integrated without
    errors instead.
    """
    if not spec.perfect_odometry:
        return replace(spec, odometry_origin=origin)
    if origin == Pose():
        return spec
    exact = replace(
        spec,
        perfect_odometry=False,
        odometry_error=Axes(),
        odometry_error_low=None,
        odometry_drift=NO_DRIFT,
    )
    return replace(exact, wheel_ratio=1.0, odometry_origin=origin)


def energy(spec: RobotSpec, props: Mapping[str, Property]) -> RobotSpec:
    """Return the robot with the battery that Stage 4's properties describe.

    Capacity and charge are in joules or kilojoules.
    """

    def joules(name: str) -> float | None:
        if f"kjoules{name}" in props:
            return 1000.0 * props[f"kjoules{name}"].number()
        return props[f"joules{name}"].number() if f"joules{name}" in props else None

    stored, capacity = joules(""), joules("_capacity")
    full = stored if capacity is None else capacity
    if full is None or full <= 0.0:
        return spec
    charge = 100.0 if stored is None else max(0.0, min(100.0, 100.0 * stored / full))
    return replace(
        spec,
        battery=replace(
            spec.battery,
            capacity_wh=full / JOULES_PER_WH,
            charge=charge,
            by_charge=True,
        ),
    )


_RETURNS: Final = (
    "obstacle_return",
    "laser_return",
    "ranger_return",
    "fiducial_return",
    "blob_return",
)
_ENERGY: Final = re.compile(r"k?joules(_capacity)?")


def returns(base: Returns, props: Mapping[str, Property], dialect: int) -> Returns:
    """Return the visibility of a model.

    In Stage 4, ``ranger_return`` holds for lasers and sonar: negative is invisible,
    more than 1 bright (formats §4.3).
    """

    def number(key: str) -> float:
        return props[key].number()

    laser, sonar = base.laser, base.sonar
    if "ranger_return" in props:
        sonar = number("ranger_return") > 0
        if dialect == STAGE_4:
            value = number("ranger_return")
            sonar, laser = value >= 0, 0 if value < 0 else 2 if value > 1 else 1

    if "laser_return" in props:
        laser = int(number("laser_return"))
    try:
        return Returns(
            obstacle=number("obstacle_return") != 0
            if "obstacle_return" in props
            else base.obstacle,
            laser=laser,
            sonar=sonar,
            fiducial=int(number("fiducial_return"))
            if "fiducial_return" in props
            else base.fiducial,
            blob=number("blob_return") != 0 if "blob_return" in props else base.blob,
        )
    except (ModelError, OverflowError, ValueError):
        where = next(iter(props.values()))
        raise ModelFileError(
            "laser_return, fiducial_return: expected whole numbers, found another value",
            where.path,
            where.line,
        ) from None


def note_unused(notes: Notes, entity: Entity, handled: Iterable[str] = ()) -> None:
    """Add a note for each property of an entity that is not simulated."""
    for key, prop in entity.properties.items():
        name = _INDEX.sub("", key)
        known = (
            key in PROPERTIES
            or key in _RETURNS
            or key == "color"
            or name in handled
            or _SILENT.fullmatch(key)
            or _ENERGY.fullmatch(key)
        )
        if key in _DEFAULTS and all(v == _DEFAULTS[key] for v in prop.values):
            continue
        if not known:
            notes.add(name, prop, f'the property "{shown(name)}" is not simulated')
