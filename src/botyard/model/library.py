"""The library of robot and sensor models: TOML files of the package, or the user's own, read and checked.

A robot file may say ``extends = "other"``: tables are merged key by key, everything else is replaced. Lengths are metres;
angles are degrees where the key or the comment in the file says so (they are written by people) and radians from here on.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from botyard.errors import ModelError, did_you_mean
from botyard.geometry import Pose
from botyard.model.accessories import BumperSpec, GripperSpec, TableIrSpec
from botyard.model.obstacles import Returns
from botyard.model.robot import Axes, BatterySpec, Drive, GpsSpec, MotionLimits, PioneerSpec, RobotSpec
from botyard.model.sensors import LaserSpec, ReflectorRule, SonarSpec, Transducer
from botyard.units import from_deg, wrap_angle

Triple = tuple[float, float, float]
Pair = tuple[float, float]
_Number = float | UnsetType
"""A number whose default is that of the description that it goes into."""


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class _Reflector(_Strict):
    max_range: float = math.inf
    max_incidence_deg: float = 180.0
    strength: int = 2


class _LaserFile(_Strict):
    kind: str
    type_name: str
    description: str = ""
    size: Pair = (0.0, 0.0)
    fov_deg: float = 180.0
    samples: int = 181
    range: Pair = (0.0, 8.0)
    range_noise: float = 0.0
    angle_noise: float = 0.0
    reflector: _Reflector = msgspec.field(default_factory=_Reflector)


class _LaserMount(_Strict):
    type: str
    pose: Triple = (0.0, 0.0, 0.0)
    flipped: bool = False


class _Sonar(_Strict):
    type_name: str
    transducers: list[Triple]
    fov_deg: float = 30.0
    range: Pair = (0.1, 5.0)
    noise: float = 0.0
    rays: int = 1
    unconnected: list[int] = []


class _Limits(_Strict):
    max_speed: Triple
    accel: Triple
    decel: Triple
    top_accel: Triple = (2.0, 2.0, 360.0)
    heading_speed_deg: float = 100.0


class _Odometry(_Strict):
    error: Triple = (0.0, 0.0, 0.0)
    error_low: Triple | None = None
    perfect: bool = False


class _Pioneer(_Strict):
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


class _Battery(_Strict):
    kind: str = "voltage"
    volts: _Number = UNSET
    charge: _Number = UNSET
    capacity_wh: _Number = UNSET
    empty_volts: _Number = UNSET
    idle_power: _Number = UNSET
    motor_power: _Number = UNSET
    charge_power: _Number = UNSET
    shutdown_charge: _Number = UNSET


class _Gps(_Strict):
    position: Pair = (0.0, 0.0)
    dop: float = 1.0


class _Returns(_Strict):
    obstacle: bool = True
    laser: int = 1
    sonar: bool = True


class _Bumpers(_Strict):
    front: int = 0
    rear: int = 0


class _Gripper(_Strict):
    reach: _Number = UNSET
    opening: _Number = UNSET
    thickness: _Number = UNSET
    paddle_time: _Number = UNSET
    lift_time: _Number = UNSET


class _TableIr(_Strict):
    positions: list[Pair] = []
    in_io_packet: bool = False


class _RobotFile(_Strict, kw_only=True):
    extends: str | None = None
    abstract: bool = False
    description: str = ""
    color: str = "red"
    drive: str = "diff"
    outline: list[Pair]
    lasers: list[_LaserMount] = []
    sonar: _Sonar | None = None
    limits: _Limits | None = None
    odometry: _Odometry = msgspec.field(default_factory=_Odometry)
    pioneer: _Pioneer = msgspec.field(default_factory=_Pioneer)
    battery: _Battery = msgspec.field(default_factory=_Battery)
    gps: _Gps = msgspec.field(default_factory=_Gps)
    returns: _Returns = msgspec.field(default_factory=_Returns)
    bumpers: _Bumpers = msgspec.field(default_factory=_Bumpers)
    gripper: _Gripper | None = None
    table_ir: _TableIr = msgspec.field(default_factory=_TableIr)
    gyro: bool = False
    compass: bool = False


def _builtin(folder: str) -> dict[str, str]:
    """Names and texts of the package's own model files."""
    root = resources.files("botyard.model") / "builtin" / folder
    return {f.name.removesuffix(".toml"): f.read_text("utf-8") for f in root.iterdir() if f.name.endswith(".toml")}


@cache
def _robot_texts() -> dict[str, str]:
    return _builtin("robots")


@cache
def _sensor_texts() -> dict[str, str]:
    return _builtin("sensors")


def _parse_toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{name}: not a TOML file: {error}") from None


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`: tables are merged, all else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def laser_names() -> tuple[str, ...]:
    """Names of the laser models of the library, sorted."""
    return tuple(sorted(_sensor_texts()))


def _convert(raw: object, kind: type[Any], name: str) -> Any:
    try:
        return msgspec.convert(raw, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ModelError(f"model {name}: {error}") from None


def _resolve(raw: dict[str, Any], name: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """Apply ``extends`` until the root; `abstract` and `description` are not inherited."""
    parent = raw.get("extends")
    if parent is None:
        return raw
    if parent in seen or parent == name:
        raise ModelError(f"model {name}: extends goes round in a circle: {' → '.join((*seen, name, str(parent)))}")
    texts = _robot_texts()
    if parent not in texts:
        raise ModelError(f'model {name}: extends = "{parent}": no such robot model{did_you_mean(str(parent), texts)}')
    base = _resolve(_parse_toml(texts[parent], f"robots/{parent}.toml"), parent, (*seen, name))
    base = {k: v for k, v in base.items() if k not in ("abstract", "description")}
    return _merge(base, raw)


def _pose(triple: Triple) -> Pose:
    return Pose(triple[0], triple[1], wrap_angle(from_deg(triple[2])))


def _axes(triple: Triple) -> Axes:
    """Forward, left and turn of a limits table, the last in degrees."""
    return Axes(triple[0], triple[1], from_deg(triple[2]))


def load_laser(type_: str, *, pose: Pose = Pose(), flipped: bool = False) -> LaserSpec:
    """Read a laser model of the library and mount it.

    Parameters
    ----------
    type_ : str
        Model name, for example ``lms200``.
    pose : Pose
        Mounting in the robot's frame, m and rad.
    flipped : bool
        Mounted upside down.

    Raises
    ------
    ModelError
        No such model, or its file is wrong.
    """
    texts = _sensor_texts()
    if type_ not in texts:
        raise ModelError(f'no laser model "{type_}"{did_you_mean(type_, texts)}')
    file: _LaserFile = _convert(_parse_toml(texts[type_], f"sensors/{type_}.toml"), _LaserFile, type_)
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
        reflector=ReflectorRule(
            max_range=file.reflector.max_range,
            max_incidence=from_deg(file.reflector.max_incidence_deg),
            strength=file.reflector.strength,
        ),
    )


def _sonar(file: _Sonar) -> SonarSpec:
    missing = set(file.unconnected)
    return SonarSpec(
        type_name=file.type_name,
        transducers=tuple(
            Transducer(pose=_pose(t), connected=i not in missing) for i, t in enumerate(file.transducers)
        ),
        fov=from_deg(file.fov_deg),
        range_min=file.range[0],
        range_max=file.range[1],
        noise=file.noise,
        rays=file.rays,
    )


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


def _robot(file: _RobotFile, name: str) -> RobotSpec:
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
        lasers=tuple(load_laser(m.type, pose=_pose(m.pose), flipped=m.flipped) for m in file.lasers),
        sonar=None if file.sonar is None else _sonar(file.sonar),
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
        gps=GpsSpec(x=file.gps.position[0], y=file.gps.position[1], dop=file.gps.dop),
        returns=Returns(obstacle=file.returns.obstacle, laser=file.returns.laser, sonar=file.returns.sonar),
        bumpers=BumperSpec(front=file.bumpers.front, rear=file.bumpers.rear),
        gripper=None if file.gripper is None else GripperSpec(**_given(file.gripper)),
        table_ir=TableIrSpec(positions=tuple(file.table_ir.positions), in_io_packet=file.table_ir.in_io_packet),
        gyro=file.gyro,
        compass=file.compass,
    )


def parse_robot(text: str, name: str) -> RobotSpec:
    """Read a robot model from the text of a TOML file; `name` becomes its model name.

    Raises
    ------
    ModelError
        With the key, what was expected and what was found.
    """
    try:
        return _robot(_convert(_resolve(_parse_toml(text, name), name), _RobotFile, name), name)
    except ModelError as error:
        if name in str(error):
            raise
        raise ModelError(f"model {name}: {error}") from None


@cache
def _load_builtin(name: str) -> RobotSpec:
    return parse_robot(_robot_texts()[name], name)


@cache
def robot_names() -> tuple[str, ...]:
    """Names of the robot models of the library that can be put into a world, sorted."""
    return tuple(sorted(n for n, t in _robot_texts().items() if not tomllib.loads(t).get("abstract", False)))


ALIASES = {"p3dx_noerr": "p3dx-no-error"}
"""Other names of models: the documentation of the original and its file do not always agree (ODO-011)."""


@cache
def _by_lower_name() -> dict[str, str]:
    return {name.lower(): name for name in robot_names()} | ALIASES


def load_robot(model: str | Path) -> RobotSpec:
    """Find a robot model by the name of the library (any case), or read it from a ``.toml`` file.

    Raises
    ------
    ModelError
        Unknown model (with the nearest known name), unreadable file, or a wrong description.
    """
    name = str(model)
    if name.lower().endswith(".toml"):
        path = Path(model)
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise ModelError(f"{path}: cannot read the robot model: {error.strerror}") from None
        return parse_robot(text, path.stem)
    known = _by_lower_name()
    if name.lower() not in known:
        raise ModelError(f'no robot model "{name}"{did_you_mean(name, known)} ("botyard models" lists them)')
    return _load_builtin(known[name.lower()])
