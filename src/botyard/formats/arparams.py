"""ARIA parameter files (``.p``), old and new (formats §2).

The module reads and writes them, and converts them to and from `RobotSpec`. Values of
files are in millimetres and degrees; a `RobotSpec` is in metres and radians.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from botyard.errors import ModelError, ModelFileError
from botyard.formats.base import read_bytes
from botyard.formats.budget import Budget, Meter
from botyard.geometry import Pose
from botyard.model.devices import (
    DeviceSpec,
    built_in_devices,
    is_default,
    make_spec,
    parameters_of,
)
from botyard.model.kinematics import Axes, Drive, MotionLimits
from botyard.model.library import load_laser
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.model.sensors import LaserSpec, SonarSpec, Transducer
from botyard.names import shown
from botyard.processes.safefile import MARK
from botyard.units import deg, from_deg, from_mm, mm, wrap_angle

MULTIPLE: Final = frozenset({"sonarunit", "irunit"})
"""Keywords that may occur several times; of any other keyword, the last line is used."""
MAX_SONAR: Final = 255
SONAR_RANGE: Final = 5.0
"""Default range limit of a transducer, m."""
MIN_SONAR_RANGE: Final = 0.05
"""Smallest range limit of a transducer, m."""
MAX_LASERS: Final = 8
MAX_SAMPLES: Final = 100_000

LASERS: Final = {
    "lms2xx": "lms200",
    "lms1xx": "lms100",
    "lms5xx": "lms500",
    "s3series": "s3series",
    "tim3xx": "tim3xx",
    "tim5xx": "tim3xx",
    "tim510": "tim3xx",
    "tim551": "tim3xx",
    "tim561": "tim3xx",
    "tim571": "tim3xx",
    "urg": "urg",
    "urg2.0": "urg",
    "szseries": "sz",
}
"""Names of botyard's laser models by ARIA's laser types in lower case (formats §2.3)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Line of a parameter file: section (lower case), keyword as written, value, line number."""

    section: str
    keyword: str
    value: str
    line: int


@dataclass(slots=True)
class ArParams:
    """Contents of an ARIA parameter file.

    Attributes
    ----------
    path : str
        File for messages.
    entries : list of Entry
        All lines with a keyword, in file order.
    """

    path: str
    entries: list[Entry] = field(default_factory=list)
    _by_keyword: dict[str, list[Entry]] = field(default_factory=dict, repr=False)

    def find(self, keyword: str, section: str | None = None) -> Entry | None:
        """Return the last entry of a keyword, in a given section or in all sections.

        Old files have no sections: their entries match every section.
        """
        for entry in reversed(self._by_keyword.get(keyword.lower(), ())):
            if section is None or entry.section in ("", section.lower()):
                return entry

        return None

    def all(self, keyword: str) -> list[Entry]:
        """Return all entries of a keyword, in file order."""
        return self._by_keyword.get(keyword.lower(), [])

    def add(self, entry: Entry) -> None:
        """Append an entry to the file."""
        self.entries.append(entry)
        self._by_keyword.setdefault(entry.keyword.lower(), []).append(entry)

    def fail(self, entry: Entry, expected: str) -> ModelFileError:
        """Return an error about an entry; the caller raises it."""
        return ModelFileError(
            f"{entry.keyword}: expected {expected}, found '{shown(entry.value)}'",
            self.path,
            entry.line,
        )

    def number(self, keyword: str, default: float, section: str | None = None) -> float:
        """Return the value of a keyword as a number; `default` if absent or blank."""
        entry = self.find(keyword, section)
        if entry is None or not entry.value:
            return default
        return self._numbers(entry, 1)[0]

    def text(self, keyword: str, default: str = "", section: str | None = None) -> str:
        """Return the value of a keyword; `default` if it is absent or blank."""
        entry = self.find(keyword, section)
        return default if entry is None or not entry.value else entry.value

    def flag(
        self, keyword: str, default: bool = False, section: str | None = None
    ) -> bool:
        """Return the value of a keyword as true or false (also 1 and 0)."""
        entry = self.find(keyword, section)
        if entry is None or not entry.value:
            return default
        # Text after the value is ignored.
        word = entry.value.split()[0].lower()
        if word not in ("true", "false", "1", "0"):
            raise self.fail(entry, "true or false")
        return word in ("true", "1")

    def _numbers(self, entry: Entry, least: int) -> list[float]:
        words = entry.value.split()
        try:
            values = [float(w) for w in words[: max(least, 1)]]
        except ValueError:
            values = []

        if len(values) < least or not all(map(math.isfinite, values)):
            raise self.fail(
                entry, "a number" if least == 1 else f"at least {least} numbers"
            )

        return values


def parse(
    text: str, path: str | Path = "parameters.p", budget: Budget = Budget()
) -> ArParams:
    """Parse the contents of an ARIA parameter file.

    Raises
    ------
    ModelFileError
        The text has no keyword of a robot's parameter file.
    """
    params = ArParams(str(path))
    Meter(budget, str(path), ModelFileError).add("entities", text.count("\n"))
    section = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        # Both marks start a comment in ARIA's files.
        line = raw.partition(";")[0].partition("#")[0].strip()
        if not line:
            continue
        keyword, _, value = (
            line.partition(" ")
            if "\t" not in line
            else line.replace("\t", " ").partition(" ")
        )
        keyword, value = keyword.strip('"'), value.strip()
        if keyword.lower() == "section":
            section = value.lower()
        # The version of the file does not affect the result.
        elif keyword.lower() != "configversion":
            params.add(Entry(section, keyword, value.strip('"'), number))

    # Any text could be a parameter file, so one of these keywords must occur.
    if not any(
        params.find(k)
        for k in ("Class", "Subclass", "RobotRadius", "AngleConvFactor", "SonarNum")
    ):
        raise ModelFileError(
            "expected a robot's parameter file, with one of the keywords Class, Subclass, "
            "RobotRadius, AngleConvFactor and SonarNum, found none of them",
            path,
        )

    return params


def read(path: str | Path, budget: Budget = Budget()) -> ArParams:
    """Read an ARIA parameter file.

    Raises
    ------
    ModelFileError
        The file cannot be read, or is not a parameter file.
    """
    data = read_bytes(path, Meter(budget, str(path), ModelFileError), ModelFileError)
    return parse(data.decode("utf-8", errors="replace"), path, budget)


# -- from a file to a robot


def to_robot(params: ArParams, name: str) -> RobotSpec:
    """Return the robot model that a parameter file describes (formats §2.3).

    The body is the rectangle of length and width around the centre of rotation. Top
    speeds come from the file. An acceleration of 0, which means the value stored in the
    robot's firmware, becomes 0.3 m/s² or 100°/s².

    Raises
    ------
    ModelFileError
        A value is invalid; the error names the file and the line.
    """
    n = params.number
    length, width = n("RobotLength", 500.0), n("RobotWidth", 400.0)
    # Newer files give the parts in front of and behind the centre of rotation.
    front, rear = (
        n("RobotLengthFront", 0.0) or length / 2.0,
        n("RobotLengthRear", 0.0) or length / 2.0,
    )
    if min(front + rear, width) <= 0.0:
        entry = (
            params.find("RobotLength") or params.find("RobotWidth") or params.entries[0]
        )
        raise params.fail(entry, "a length and a width greater than 0")

    x0, x1, y = -from_mm(rear), from_mm(front), from_mm(width) / 2.0
    try:
        return RobotSpec(
            name=name,
            description=f"from {Path(params.path).name}",
            drive=Drive.OMNI if params.flag("HasLatVel") else Drive.DIFF,
            outline=((x0, -y), (x1, -y), (x1, y), (x0, y)),
            limits=_limits(params),
            odometry_error=Axes(0.0075, 0.0075, 0.000131),
            lasers=tuple(_lasers(params)),
            sonar=_sonar(params),
            pioneer=_pioneer(params, name),
            devices=(*_devices(params), *_table_sensors(params)),
        )
    except ModelError as error:
        raise ModelFileError(str(error), params.path) from None


def _pioneer(params: ArParams, name: str) -> PioneerSpec:
    factors = {
        "dist_conv": ("DistConvFactor", 1.0),
        "angle_conv": ("AngleConvFactor", 0.001534),
        "vel_conv": ("VelConvFactor", 1.0),
        "range_conv": ("RangeConvFactor", 1.0),
        "diff_conv": ("DiffConvFactor", 0.0056),
        "vel2_div": ("Vel2Divisor", 20.0),
    }
    values = {}
    for key, (keyword, default) in factors.items():
        values[key] = params.number(keyword, default)
        if values[key] <= 0.0:
            raise params.fail(
                params.find(keyword) or params.entries[0], "a number greater than 0"
            )

    return PioneerSpec(
        class_name=params.text("Class", "Pioneer"),
        subclass=params.text("Subclass", name),
        **values,
    )


def _limits(params: ArParams) -> MotionLimits:
    n = params.number

    # In ARIA, 0 means the value that the robot's firmware stores.
    def ramp(keyword: str, default: float) -> float:
        return abs(n(keyword, 0.0)) or default

    top = Axes(
        from_mm(n("MaxVelocity", 0.0) or 1000.0),
        from_mm(n("MaxLatVelocity", 0.0)) if params.flag("HasLatVel") else 0.0,
        from_deg(n("MaxRVelocity", 0.0) or 100.0),
    )
    # A robot that cannot move sideways has no lateral acceleration.
    lateral = top.y > 0.0
    accel = Axes(
        from_mm(ramp("TransAccel", 300.0)),
        from_mm(ramp("LatAccel", 300.0)) * lateral,
        from_deg(ramp("RotAccel", 100.0)),
    )
    decel = Axes(
        from_mm(ramp("TransDecel", 300.0)),
        from_mm(ramp("LatDecel", 300.0)) * lateral,
        from_deg(ramp("RotDecel", 100.0)),
    )
    return MotionLimits(
        max_speed=top,
        accel=accel,
        decel=decel,
        heading_speed=min(top.a, from_deg(n("RotVelMax", 0.0) or 100.0)),
    )


def _sonar(params: ArParams) -> SonarSpec | None:
    """Return the sonar transducers of the file, by their numbers.

    A number without a line is an unconnected transducer. The ninth field of a long line is the
    range limit of its transducer, mm; the default is 5 m.
    """
    number = int(params.number("SonarNum", 0.0))
    poses: dict[int, Pose] = {}
    ranges: dict[int, float] = {}
    for entry in params.all("SonarUnit"):
        index, x, y, th = params._numbers(entry, 4)
        if not 0 <= index < MAX_SONAR:
            raise params.fail(entry, f"a sonar number from 0 to {MAX_SONAR - 1}")
        poses[int(index)] = Pose(from_mm(x), from_mm(y), wrap_angle(from_deg(th)))
        words = entry.value.split()
        reach = (
            from_mm(float(words[8]))
            if len(words) >= 9 and re.fullmatch("[0-9]{1,9}", words[8])
            else 0.0
        )
        ranges[int(index)] = max(reach, MIN_SONAR_RANGE) if reach else SONAR_RANGE

    count = min(max(number, 0), MAX_SONAR)
    if not count:
        return None
    # Lines of units whose number is SonarNum or above are ignored.
    used = [ranges[i] for i in range(count) if i in ranges] or [SONAR_RANGE]
    # The minimum range must stay below the smallest range limit.
    nearest, farthest = min(0.2, min(used) / 10.0), max(used)
    return SonarSpec(
        type_name="pioneerSonar",
        transducers=tuple(
            Transducer(
                pose=poses.get(i, Pose()),
                connected=i in poses,
                range_max=None if ranges.get(i, farthest) == farthest else ranges[i],
            )
            for i in range(count)
        ),
        fov=from_deg(15.0),
        range_min=nearest,
        range_max=farthest,
        noise=0.0005,
    )


def _lasers(params: ArParams) -> Iterable[LaserSpec]:
    for i in range(1, MAX_LASERS + 1):
        section = "laser parameters" if i == 1 else f"laser {i} parameters"
        # Only the first laser may come from an old file without sections.
        if i > 1 and not any(e.section == section for e in params.entries):
            continue
        kind = params.text("LaserType", "", section)
        if not kind and params.flag("LaserPossessed", False, section):
            # Older files have no type; robots of their time had this laser.
            kind = "lms2xx"

        if not kind:
            continue
        model = LASERS.get(kind.lower())
        if model is None:
            entry = params.find("LaserType", section)
            assert entry is not None
            raise params.fail(entry, f"one of {', '.join(LASERS)}")

        def number(keyword: str, default: float, section: str = section) -> float:
            return params.number(keyword, default, section)

        pose = Pose(
            from_mm(number("LaserX", 0.0)),
            from_mm(number("LaserY", 0.0)),
            wrap_angle(from_deg(number("LaserTh", 0.0))),
        )
        spec = load_laser(
            model, pose=pose, flipped=params.flag("LaserFlipped", False, section)
        )
        farthest = from_mm(number("LaserMaxRange", 0.0))
        # 0 means the range of the laser's own model.
        if farthest > spec.range_min:
            spec = replace(spec, range_max=farthest)
        yield _angles(spec, number)


def _angles(spec: LaserSpec, number: Callable[[str, float], float]) -> LaserSpec:
    """Return a laser with the start, end and increment angles that the file gives.

    The scan is centred on the direction in which the laser is mounted.
    """
    half = deg(spec.fov) / 2.0
    start, end = number("LaserStartDegrees", -half), number("LaserEndDegrees", half)
    step = number("LaserIncrement", deg(spec.increment))
    span = abs(end - start)
    # Invalid or extremely fine angles leave the model's scan unchanged.
    if not (0.0 < span <= 360.0 and step >= span / MAX_SAMPLES):
        return spec
    return replace(spec, fov=from_deg(span), samples=round(span / step) + 1)


def _devices(params: ArParams) -> Iterable[DeviceSpec]:
    """Yield the devices whose kinds declare keywords of parameter files."""
    for device in built_in_devices():
        if not device.aria:
            continue
        values = {}
        for line in device.aria:
            hint, one = parameters_of(device.spec)[line.parameter]
            value = (
                params.number(line.key, line.default)
                if not line.flag or params.flag(line.flag)
                else 0.0
            )
            value = (
                from_mm(value)
                if one.unit == "m"
                else from_deg(value)
                if one.unit == "rad"
                else value
            )
            # Files may hold values that botyard's devices do not support.
            values[line.parameter] = hint(min(max(hint(value), one.low), one.high))

        spec = make_spec(device.name, **values)
        if not spec.is_empty and not is_default(spec):
            yield spec


def _table_sensors(params: ArParams) -> Iterator[DeviceSpec]:
    """Yield the two foremost infrared units of a table sensor, left one first."""
    if not params.flag("TableSensingIR"):
        return
    points = [
        (from_mm(v[3]), from_mm(v[4]))
        for v in (params._numbers(e, 5) for e in params.all("IRUnit"))
    ]
    foremost = sorted(points, key=lambda p: -p[0])[:2]
    if foremost:
        # Table sensors are ordered from left to right.
        positions = tuple(sorted(foremost, key=lambda p: -p[1]))
        yield make_spec(
            "table_ir",
            positions=positions,
            in_io_packet=params.flag("NewTableSensingIR"),
        )


# -- from a robot to a file


def _integer(metres: float) -> int:
    return round(mm(metres))


def from_robot(spec: RobotSpec) -> str:
    """Return the parameter file that clients of a robot need (PAR-012).

    The file has the values that a client needs to scale reports and to place sensors.
    """
    xs, ys = zip(*spec.outline, strict=True)
    p, top = spec.pioneer, spec.limits.max_speed
    half = max(max(ys), -min(ys))
    ir = spec.device("table_ir")
    positions, in_io_packet = (
        ((), False) if ir is None else (ir.positions, ir.in_io_packet)
    )
    lines = [
        "ConfigVersion 2.0",
        f"; {MARK}",
        "",
        "Section General settings",
        f"Class {p.class_name}",
        f"Subclass {p.subclass}",
        f"RobotRadius {_integer(spec.radius)}",
        f"RobotDiagonal {_integer(half)}",
        f"RobotWidth {_integer(max(ys) - min(ys))}",
        f"RobotLength {_integer(max(xs) - min(xs))}",
        f"RobotLengthFront {_integer(max(xs))}",
        f"RobotLengthRear {_integer(-min(xs))}",
        # ARIA's "holonomic" means that the robot can turn on the spot.
        "Holonomic true",
        f"MaxRVelocity {round(deg(top.a))}",
        f"MaxVelocity {_integer(top.x)}",
        f"MaxLatVelocity {_integer(top.y)}",
        "HasMoveCommand true",
        f"RequestIOPackets {_flag(in_io_packet)}",
        "RequestEncoderPackets false",
        "",
        "Section Conversion factors",
        f"AngleConvFactor {p.angle_conv:g}",
        f"DistConvFactor {p.dist_conv:g}",
        f"VelConvFactor {p.vel_conv:g}",
        f"RangeConvFactor {p.range_conv:g}",
        # The factor follows from the track width, so it has any number of digits.
        f"DiffConvFactor {p.diff_conv!r}",
        f"Vel2Divisor {p.vel2_div:g}",
        "",
        "Section Accessories the robot has",
        f"TableSensingIR {_flag(bool(positions))}",
        f"NewTableSensingIR {_flag(in_io_packet)}",
        *_device_lines(spec, "Accessories the robot has"),
        "",
        "Section IR parameters",
        f"IRNum {len(positions)}",
        *(
            f"IRUnit {i} 1 2 {_integer(x)} {_integer(y)}"
            for i, (x, y) in enumerate(positions)
        ),
        "",
        "Section Movement control parameters",
        "SettableVelMaxes true",
        "SettableAccsDecs true",
        f"TransAccel {_integer(spec.limits.accel.x)}",
        f"TransDecel {_integer(spec.limits.decel.x)}",
        f"RotAccel {round(deg(spec.limits.accel.a))}",
        f"RotDecel {round(deg(spec.limits.decel.a))}",
        f"HasLatVel {_flag(spec.kinematics.moves_sideways)}",
        "",
        "Section GPS parameters",
        *_device_lines(spec, "GPS parameters"),
        "",
        "Section Sonar parameters",
        f"SonarNum {len(spec.sonar.transducers) if spec.sonar else 0}",
        *_sonar_lines(spec),
    ]
    for i, laser in enumerate(spec.lasers, start=1):
        lines += ["", *_laser_lines(i, laser)]
    return "\n".join(lines) + "\n"


def _device_lines(spec: RobotSpec, section: str) -> list[str]:
    """Return the lines of a section that device kinds declare.

    Clients expect them even for devices that the robot lacks.
    """
    lines = []
    for device in built_in_devices():
        here = spec.device(device.name)
        for line in device.aria:
            if line.section == section:
                value = getattr(here, line.parameter, 0)
                unit = parameters_of(device.spec)[line.parameter][1].unit
                number = (
                    _integer(value)
                    if unit == "m"
                    else round(deg(value))
                    if unit == "rad"
                    else value
                )
                lines += [f"{line.flag} {_flag(value > 0)}"] if line.flag else []
                lines.append(f"{line.key} {number}")

    return lines


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _sonar_lines(spec: RobotSpec) -> list[str]:
    units = enumerate(spec.sonar.transducers) if spec.sonar else ()
    return [
        f"SonarUnit {i} {_integer(t.pose.x)} {_integer(t.pose.y)} {round(deg(t.pose.th))}"
        for i, t in units
        if t.connected
    ]


def _laser_lines(number: int, laser: LaserSpec) -> list[str]:
    # Several types stand for the same model; the reverse order keeps the first of them.
    kinds = {model: kind for kind, model in reversed(LASERS.items())}
    by_type = {load_laser(model).type_name: kind for model, kind in kinds.items()}
    # Of the two types that each of these models has, the table would choose the wrong one.
    by_type |= {"sicks300": "s3series", "sicktim510": "tim510"}
    return [
        "Section Laser parameters"
        if number == 1
        else f"Section Laser {number} parameters",
        "LaserAutoConnect true",
        f"LaserX {_integer(laser.pose.x)}",
        f"LaserY {_integer(laser.pose.y)}",
        f"LaserTh {deg(laser.pose.th):zg}",
        f"LaserFlipped {_flag(laser.flipped)}",
        f"LaserType {by_type.get(laser.type_name, 'lms2xx')}",
        f"LaserMaxRange {_integer(laser.range_max)}",
        f"LaserStartDegrees {-deg(laser.fov) / 2:g}",
        f"LaserEndDegrees {deg(laser.fov) / 2:g}",
        f"LaserIncrement {deg(laser.increment):g}",
    ]
