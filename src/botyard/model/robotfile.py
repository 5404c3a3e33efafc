"""What a robot file says, as a checked structure, and the way to a `RobotSpec` and back.

Lengths are metres; angles are degrees (files are written by people) and radians from here on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from botyard.errors import ModelError
from botyard.geometry import Pose
from botyard.model.accessories import GripperSpec, TableIrSpec
from botyard.model.devices import DeviceSpec, devices_of, is_device, pose_of, table_of
from botyard.model.dynamics import DynamicsSpec, Gains, PoseController
from botyard.model.obstacles import Returns
from botyard.model.robot import Axes, BatterySpec, Drive, MotionLimits, PioneerSpec, RobotSpec
from botyard.model.sensors import (
    LaserSpec,
    ReflectorRule,
    SonarSpec,
    Transducer,
)
from botyard.units import from_deg

Triple = tuple[float, float, float]
Pair = tuple[float, float]
LoadLaser = Callable[[str], LaserSpec]
_Number = float | UnsetType
"""A number whose default is that of the description that it goes into."""


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table that may hold nothing else."""


class ReflectorPart(Strict):
    """How a laser reports reflectors."""

    max_range: float = math.inf
    max_incidence_deg: float = 180.0
    strength: int = 2


class LaserFile(Strict):
    """A laser model."""

    kind: str
    type_name: str
    description: str = ""
    size: Pair = (0.0, 0.0)
    fov_deg: float = 180.0
    samples: int = 181
    range: Pair = (0.0, 8.0)
    range_noise: float = 0.0
    angle_noise: float = 0.0
    reflector: ReflectorPart = msgspec.field(default_factory=ReflectorPart)


class LaserMount(Strict):
    """A laser of the library by its `type`, or one whose `type` is only a name and that is described here."""

    type: str
    pose: Triple = (0.0, 0.0, 0.0)
    flipped: bool = False
    size: Pair | UnsetType = UNSET
    fov_deg: _Number = UNSET
    samples: int | UnsetType = UNSET
    range: Pair | UnsetType = UNSET
    range_noise: _Number = UNSET
    angle_noise: _Number = UNSET
    reflector: ReflectorPart | UnsetType = UNSET


class _Transducer(Strict, kw_only=True):
    """What one transducer of a ring has of its own."""

    index: int
    fov_deg: float | None = None
    range: Pair | None = None
    noise: float | None = None


class _Sonar(Strict):
    type_name: str
    transducers: list[Triple]
    fov_deg: float = 30.0
    range: Pair = (0.1, 5.0)
    noise: float = 0.0
    rays: int = 1
    unconnected: list[int] = []
    single: list[_Transducer] = []


class _Limits(Strict):
    max_speed: Triple
    accel: Triple
    decel: Triple
    top_accel: Triple = (2.0, 2.0, 360.0)
    heading_speed_deg: float = 100.0


class _Odometry(Strict):
    error: Triple = (0.0, 0.0, 0.0)
    error_low: Triple | None = None
    perfect: bool = False


class _Pioneer(Strict):
    class_: str = msgspec.field(name="class", default="Pioneer")
    subclass: str = ""
    dist_conv: float = 1.0
    angle_conv: float = 0.001534
    vel_conv: float = 1.0
    range_conv: float = 1.0
    diff_conv: float = 0.0056
    vel2_div: float = 20.0
    watchdog: float = 2.0
    ticks_per_mm: float = 128.0


class _Battery(Strict):
    kind: str = "voltage"
    volts: _Number = UNSET
    charge: _Number = UNSET
    capacity_wh: _Number = UNSET
    empty_volts: _Number = UNSET
    idle_power: _Number = UNSET
    motor_power: _Number = UNSET
    charge_power: _Number = UNSET
    shutdown_charge: _Number = UNSET


class ReturnsPart(Strict):
    """Who sees and feels a thing."""

    obstacle: bool = True
    laser: int = 1
    sonar: bool = True
    fiducial: int = 0
    blob: bool = True


class ControllerPart(Strict):
    """What takes a body with mass to a commanded pose: gains [P, D]."""

    linear: Pair = (10.0, 1.0)
    angular: Pair = (10.0, 1.0)
    output: str = "velocity"


class DynamicsPart(Strict, kw_only=True):
    """Mass and what goes with it."""

    mass: float
    inertia: _Number = UNSET
    center: Pair | UnsetType = UNSET
    friction: _Number = UNSET
    floor_friction: _Number = UNSET
    restitution: _Number = UNSET
    linear_damping: _Number = UNSET
    angular_damping: _Number = UNSET
    traction: _Number = UNSET
    controller: ControllerPart | UnsetType = UNSET


class _Gripper(Strict):
    reach: _Number = UNSET
    opening: _Number = UNSET
    thickness: _Number = UNSET
    paddle_time: _Number = UNSET
    lift_time: _Number = UNSET


class _TableIr(Strict):
    positions: list[Pair] = []
    in_io_packet: bool = False


class RobotFile(Strict, kw_only=True):
    """A robot model."""

    extends: str | None = None
    abstract: bool = False
    description: str = ""
    color: str = "red"
    drive: str = "diff"
    outline: list[Pair]
    parts: list[list[Pair]] = []
    lasers: list[LaserMount] = []
    sonar: _Sonar | None = None
    devices: list[dict[str, Any]] = []
    limits: _Limits | None = None
    odometry: _Odometry = msgspec.field(default_factory=_Odometry)
    pioneer: _Pioneer = msgspec.field(default_factory=_Pioneer)
    battery: _Battery = msgspec.field(default_factory=_Battery)
    returns: ReturnsPart = msgspec.field(default_factory=ReturnsPart)
    gripper: _Gripper | None = None
    table_ir: _TableIr = msgspec.field(default_factory=_TableIr)
    wheel_radius: float = 0.1
    gyro: bool = False
    dynamics: DynamicsPart | None = None


def gather_devices(table: Mapping[str, Any]) -> dict[str, Any]:
    """A robot file whose tables of devices, such as ``[bumpers]``, stand in its list ``[[devices]]``, before those that are there.

    In place of a table, ``true`` is a device with the usual parameters, ``false`` none.
    """
    own = {name for name in table if name not in RobotFile.__struct_fields__ and is_device(name)}
    if not own:
        return dict(table)
    plain = {name: value for name, value in table.items() if name not in own}
    short = [
        {**({} if value is True else value), "type": name} if value is True or isinstance(value, Mapping) else value
        for name, value in table.items()
        if name in own and value is not None and value is not False
    ]
    listed = table.get("devices", [])
    return plain | {"devices": [*short, *listed] if isinstance(listed, list) else listed}


def devices_table(devices: Sequence[DeviceSpec]) -> dict[str, Any]:
    """The keys of a robot file that describe devices: a table for the only one of its kind, else a list of tables."""
    kinds = [d.type for d in devices]
    if len(set(kinds)) == len(kinds):
        return {d.type: table_of(d) or True for d in devices}
    return {"devices": [{"type": d.type, **table_of(d)} for d in devices]}


def _axes(triple: Triple) -> Axes:
    """Forward, left and turn of a limits table, the last in degrees."""
    return Axes(triple[0], triple[1], from_deg(triple[2]))


def _sonar(file: _Sonar) -> SonarSpec:
    missing = set(file.unconnected)
    own = {t.index: t for t in file.single}
    for index in (*missing, *own):
        if not 0 <= index < len(file.transducers):
            raise ModelError(
                f"sonar {file.type_name}: expected a transducer of 0 … {len(file.transducers) - 1}, found {index}"
            )
    return SonarSpec(
        type_name=file.type_name,
        transducers=tuple(_transducer(t, i not in missing, own.get(i)) for i, t in enumerate(file.transducers)),
        fov=from_deg(file.fov_deg),
        range_min=file.range[0],
        range_max=file.range[1],
        noise=file.noise,
        rays=file.rays,
    )


def _transducer(pose: Triple, connected: bool, own: _Transducer | None) -> Transducer:
    if own is None:
        return Transducer(pose=pose_of(pose), connected=connected)
    low, high = own.range or (None, None)
    return Transducer(
        pose=pose_of(pose), connected=connected, range_min=low, range_max=high, noise=own.noise,
        fov=None if own.fov_deg is None else from_deg(own.fov_deg),
    )  # fmt: skip


def _limits(file: _Limits | None) -> MotionLimits:
    if file is None:
        return MotionLimits()
    return MotionLimits(
        max_speed=_axes(file.max_speed),
        accel=_axes(file.accel),
        decel=_axes(file.decel),
        top_accel=_axes(file.top_accel),
        heading_speed=from_deg(file.heading_speed_deg),
    )


def _battery(file: _Battery) -> BatterySpec:
    if file.kind not in ("voltage", "charge"):
        raise ModelError(f'battery kind must be "voltage" or "charge", found "{file.kind}"')
    values = _given(file)
    return BatterySpec(by_charge=values.pop("kind", "voltage") == "charge", **values)


def _given(file: msgspec.Struct) -> dict[str, Any]:
    """What a table of a file says; what it leaves out is left to the description's own defaults."""
    return {k: v for k, v in msgspec.structs.asdict(file).items() if v is not UNSET}


def laser_of(file: LaserFile, *, pose: Pose = Pose(), flipped: bool = False) -> LaserSpec:
    """The laser of a file, mounted.

    Raises
    ------
    ModelError
        Its values make no sense.
    """
    return LaserSpec(
        type_name=file.type_name,
        pose=pose,
        size=file.size,
        fov=from_deg(file.fov_deg),
        samples=file.samples,
        range_min=file.range[0],
        range_max=file.range[1],
        flipped=flipped,
        range_noise=file.range_noise,
        angle_noise=file.angle_noise,
        reflector=_reflector(file.reflector),
    )


def _reflector(part: ReflectorPart) -> ReflectorRule:
    return ReflectorRule(
        max_range=part.max_range, max_incidence=from_deg(part.max_incidence_deg), strength=part.strength
    )


def mounted_laser(mount: LaserMount, load: LoadLaser) -> LaserSpec:
    """A laser on a robot: `load` gives those of the library.

    Raises
    ------
    ModelError
        It is neither in the library nor described.
    """
    described = mount.samples is not UNSET and mount.range is not UNSET
    base = LaserSpec(type_name=mount.type) if described else load(mount.type)
    changes: dict[str, Any] = {"pose": pose_of(mount.pose), "flipped": mount.flipped or base.flipped}
    for key in ("size", "samples", "range_noise", "angle_noise"):
        if getattr(mount, key) is not UNSET:
            changes[key] = getattr(mount, key)
    if mount.fov_deg is not UNSET:
        changes["fov"] = from_deg(mount.fov_deg)
    if mount.range is not UNSET:
        changes["range_min"], changes["range_max"] = mount.range
    if mount.reflector is not UNSET:
        changes["reflector"] = _reflector(mount.reflector)
    return replace(base, **changes)


def returns_of(part: ReturnsPart) -> Returns:
    """What sensors and bodies make of a thing."""
    return Returns(obstacle=part.obstacle, laser=part.laser, sonar=part.sonar, fiducial=part.fiducial, blob=part.blob)


def dynamics_of(part: DynamicsPart | None, floor_friction: float = 0.0) -> DynamicsSpec | None:
    """Mass and what goes with it; `floor_friction` is that of a table that says nothing of it.

    Raises
    ------
    ModelError
        A value makes no sense.
    """
    if part is None:
        return None
    values = {"floor_friction": floor_friction} | _given(part)
    if "controller" in values:
        c = values["controller"]
        if c.output not in ("force", "velocity"):
            raise ModelError(f'controller output: expected "force" or "velocity", found "{c.output}"')
        values["controller"] = PoseController(
            linear=Gains(*c.linear), angular=Gains(*c.angular), force=c.output == "force"
        )
    return DynamicsSpec(**values)


def dynamics_table(spec: DynamicsSpec) -> dict[str, Any]:
    """The keys of `DynamicsPart`; `dynamics_of` them is `spec` again."""
    names = "mass friction floor_friction restitution linear_damping angular_damping traction"
    table = _fields(spec, names)
    if spec.inertia is not None:
        table["inertia"] = spec.inertia
    if spec.center is not None:
        table["center"] = list(spec.center)
    c = spec.controller
    if c != PoseController():
        table["controller"] = {
            "linear": [c.linear.p, c.linear.d], "angular": [c.angular.p, c.angular.d], "output": "force" if c.force else "velocity",
        }  # fmt: skip
    return table


def to_spec(file: RobotFile, name: str, load: LoadLaser) -> RobotSpec:
    """The robot of a file.

    Parameters
    ----------
    load : callable
        A laser of the library by its name.

    Raises
    ------
    ModelError
        Its values make no sense.
    """
    try:
        drive = Drive[file.drive.upper()]
    except KeyError:
        raise ModelError(f'model {name}: drive must be "diff", "omni" or "none", found "{file.drive}"') from None
    p = file.pioneer
    return RobotSpec(
        name=name,
        description=file.description,
        color=file.color,
        drive=drive,
        outline=tuple((float(x), float(y)) for x, y in file.outline),
        limits=_limits(file.limits),
        odometry_error=Axes(*file.odometry.error),
        odometry_error_low=None if file.odometry.error_low is None else Axes(*file.odometry.error_low),
        perfect_odometry=file.odometry.perfect,
        parts=tuple(tuple((float(x), float(y)) for x, y in part) for part in file.parts),
        lasers=tuple(mounted_laser(m, load) for m in file.lasers),
        sonar=None if file.sonar is None else _sonar(file.sonar),
        devices=devices_of(file.devices),
        pioneer=PioneerSpec(
            class_name=p.class_,
            subclass=p.subclass or name,
            dist_conv=p.dist_conv,
            angle_conv=p.angle_conv,
            vel_conv=p.vel_conv,
            range_conv=p.range_conv,
            diff_conv=p.diff_conv,
            vel2_div=p.vel2_div,
            watchdog=p.watchdog,
            ticks_per_mm=p.ticks_per_mm,
        ),
        battery=_battery(file.battery),
        returns=returns_of(file.returns),
        gripper=None if file.gripper is None else GripperSpec(**_given(file.gripper)),
        table_ir=TableIrSpec(positions=tuple(file.table_ir.positions), in_io_packet=file.table_ir.in_io_packet),
        wheel_radius=file.wheel_radius,
        gyro=file.gyro,
        dynamics=dynamics_of(file.dynamics),
    )


# -- and back


def _deg(angle: float) -> float:
    """Degrees, without the last digits that the conversion leaves; infinite stays so."""
    return round(math.degrees(angle), 9) + 0.0


def _triple(pose: Pose) -> list[float]:
    return [pose.x, pose.y, _deg(pose.th)]


def _limit(axes: Axes) -> list[float]:
    return [axes.x, axes.y, _deg(axes.a)]


def _laser_table(spec: LaserSpec) -> dict[str, Any]:
    rule = spec.reflector
    table: dict[str, Any] = {
        "type": spec.type_name, "pose": _triple(spec.pose), "flipped": spec.flipped, "size": list(spec.size), "fov_deg": _deg(spec.fov),
        "samples": spec.samples, "range": [spec.range_min, spec.range_max], "range_noise": spec.range_noise,
        "angle_noise": spec.angle_noise,
    }  # fmt: skip
    if rule != ReflectorRule():
        table["reflector"] = {"max_incidence_deg": _deg(rule.max_incidence), "strength": rule.strength}
        if math.isfinite(rule.max_range):
            table["reflector"]["max_range"] = rule.max_range
    return table


def _sonar_table(spec: SonarSpec) -> dict[str, Any]:
    table = {
        "type_name": spec.type_name, "transducers": [_triple(t.pose) for t in spec.transducers], "fov_deg": _deg(spec.fov),
        "range": [spec.range_min, spec.range_max], "noise": spec.noise, "rays": spec.rays,
        "unconnected": [i for i, t in enumerate(spec.transducers) if not t.connected],
    }  # fmt: skip
    single = []
    for i, t in enumerate(spec.transducers):
        own: dict[str, Any] = {"index": i}
        if t.fov is not None:
            own["fov_deg"] = _deg(t.fov)
        if t.range_min is not None or t.range_max is not None:
            own["range"] = list(spec.limits_of(t))
        if t.noise is not None:
            own["noise"] = t.noise
        if len(own) > 1:
            single.append(own)
    return table | {"single": single} if single else table


def returns_table(returns: Returns) -> dict[str, Any]:
    """The keys of `ReturnsPart` that are not the usual ones."""
    usual = Returns()
    names = ("obstacle", "laser", "sonar", "fiducial", "blob")
    return {n: getattr(returns, n) for n in names if getattr(returns, n) != getattr(usual, n)}


def _fields(value: Any, names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names.split()}


def to_table(spec: RobotSpec) -> dict[str, Any]:
    """The contents of a robot file; ``to_spec`` of them is `spec` again, to the last digits of angles."""
    low, battery, gripper = spec.odometry_error_low, spec.battery, spec.gripper
    table: dict[str, Any] = {
        "description": spec.description,
        "color": spec.color,
        "drive": spec.drive.name.lower(),
        "outline": [list(c) for c in spec.outline],
        "parts": [[list(c) for c in part] for part in spec.parts],
        "lasers": [_laser_table(laser) for laser in spec.lasers],
        "limits": {
            **{n: _limit(getattr(spec.limits, n)) for n in ("max_speed", "accel", "decel", "top_accel")},
            "heading_speed_deg": _deg(spec.limits.heading_speed),
        },
        "odometry": {"error": list(spec.odometry_error.as_tuple()), "perfect": spec.perfect_odometry},
        "pioneer": {
            "class": spec.pioneer.class_name,
            **_fields(
                spec.pioneer,
                "subclass dist_conv angle_conv vel_conv range_conv diff_conv vel2_div watchdog ticks_per_mm",
            ),
        },
        "battery": {
            "kind": "charge" if battery.by_charge else "voltage",
            **_fields(
                battery, "volts charge capacity_wh empty_volts idle_power motor_power charge_power shutdown_charge"
            ),
        },
        "returns": returns_table(spec.returns),
        "table_ir": {
            "positions": [list(p) for p in spec.table_ir.positions], "in_io_packet": spec.table_ir.in_io_packet,
        },
        "wheel_radius": spec.wheel_radius,
        "gyro": spec.gyro,
    }  # fmt: skip
    if spec.dynamics is not None:
        table["dynamics"] = dynamics_table(spec.dynamics)
    if low is not None:
        table["odometry"]["error_low"] = list(low.as_tuple())
    if spec.sonar is not None:
        table["sonar"] = _sonar_table(spec.sonar)
    if gripper is not None:
        table["gripper"] = _fields(gripper, "reach opening thickness paddle_time lift_time")
    return table | devices_table(spec.equipment)
