"""Structure of robot files, and conversion of their contents to robot models.

`botyard.model.filetables` converts regular tables; only irregular parts have code here.
Lengths are metres. Angles are degrees in files, because people write them, and radians
inside the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from botyard.errors import ModelError
from botyard.geometry import Pose
from botyard.model.devices import (
    CARRIED,
    STANDARD,
    DeviceSpec,
    device_names,
    standard_device,
)
from botyard.model.devicetables import devices_of, table_of
from botyard.model.dynamics import DynamicsSpec
from botyard.model.filetables import (
    FileTable,
    Pair,
    Triple,
    file_table,
    pose_of,
    triple_of,
)
from botyard.model.obstacles import Returns
from botyard.model.robot import PioneerSpec, RobotSpec
from botyard.model.sensors import LaserSpec, SonarSpec, Transducer
from botyard.model.tablecheck import Strict, TableError, checked

LoadLaser = Callable[[str], LaserSpec]


# -- keys of files that are not fields of descriptions


class _LaserKeys(Strict, kw_only=True):
    kind: str
    description: str = ""


class _MountKeys(Strict, kw_only=True):
    type: str


class _TransducerKeys(Strict, kw_only=True):
    index: int
    range: Pair | None = None


_LASER: Final = FileTable(
    LaserSpec, name="LaserFile", base=_LaserKeys, apart=("pose", "flipped")
)
"""Conversion for the table of a laser model."""
LASER_MOUNT: Final = FileTable(
    LaserSpec, name="LaserMount", base=_MountKeys, apart=("type_name",)
)
"""Conversion for the table of a laser that is mounted on a robot.

Its `type` names a laser of the library. If the table describes the laser fully, `type`
is only a name.
"""
_SINGLE: Final = FileTable(
    Transducer,
    name="Single",
    base=_TransducerKeys,
    apart=("pose", "connected", "range_min", "range_max"),
)
"""Conversion for the table of a single transducer, whose settings differ from the ring's."""

if TYPE_CHECKING:
    _Single: TypeAlias = Any
    _Sonar: TypeAlias = Any
    LaserMount: TypeAlias = msgspec.Struct
    DynamicsTable: TypeAlias = msgspec.Struct
    ReturnsTable: TypeAlias = msgspec.Struct
else:
    _Single = _SINGLE.type
    LaserMount = LASER_MOUNT.type
    DynamicsTable = file_table(DynamicsSpec).type
    ReturnsTable = file_table(Returns).type


class _SonarKeys(Strict, kw_only=True):
    transducers: list[Triple]
    unconnected: tuple[int, ...] = ()
    single: tuple[_Single, ...] = ()


_SONAR: Final = FileTable(
    SonarSpec, name="Sonar", base=_SonarKeys, apart=("transducers",)
)
if not TYPE_CHECKING:
    _Sonar = _SONAR.type


class _RobotKeys(Strict, kw_only=True):
    extends: str | None = None
    abstract: bool = False
    lasers: tuple[LaserMount, ...] = ()
    sonar: _Sonar | None = None
    devices: tuple[dict[str, Any], ...] = ()


_ROBOT: Final = FileTable(
    RobotSpec,
    name="RobotFile",
    base=_RobotKeys,
    apart=("name", "lasers", "sonar", "devices", "is_trailer"),
)
LaserFile: Final = _LASER.type
RobotFile: Final = _ROBOT.type


# -- devices


def gather_devices(table: Mapping[str, Any]) -> dict[str, Any]:
    """Move device tables, such as ``[bumpers]``, to the front of ``[[devices]]``.

    Instead of a table, the value may be ``true``, for a device with default
    parameters, or ``false``, for no device.

    Parameters
    ----------
    table : mapping
        Contents of a robot file, not validated yet. The function does not change it.

    Raises
    ------
    TableError
        The value of such a key is neither a table nor a truth value.
    """
    # Keys that the schema knows stay; some, such as "battery", share their name with a
    # device.
    own = {*table} & {*device_names()} - {*CARRIED, *RobotFile.__struct_fields__}
    if not own:
        return dict(table)
    plain = {name: value for name, value in table.items() if name not in own}
    short = []
    for name, value in table.items():
        if name in own and value is not None and value is not False:
            try:
                short.append(
                    {
                        **({} if value is True else checked(value, dict[str, Any])),
                        "type": name,
                    }
                )
            except TableError as error:
                raise error.inside(name) from None

    # A value of another type stays as it is; the check of the whole file reports it.
    listed = table.get("devices", [])
    return plain | {
        "devices": [*short, *listed] if isinstance(listed, list) else listed
    }


def devices_table(devices: Sequence[DeviceSpec]) -> dict[str, Any]:
    """Return the keys of a robot file that describe the robot's devices.

    Devices before the first one whose kind occurs several times get a table each, with the
    kind as its key. All further devices go into the list ``[[devices]]``. A reader puts such
    tables before the list, so the order is kept. A file that extends another replaces the
    other's list and each of its tables.

    Parameters
    ----------
    devices : sequence of DeviceSpec
        Devices without a field of their own in `RobotSpec`.
    """
    counts = Counter(d.type for d in devices)
    own = list(takewhile(lambda d: counts[d.type] == 1, devices))
    listed = [{"type": d.type, **table_of(d)} for d in devices[len(own) :]]
    return {d.type: table_of(d) or True for d in own} | (
        {"devices": listed} if listed else {}
    )


# -- lasers and sonar


def laser_of(file: Any, *, pose: Pose = Pose(), flipped: bool = False) -> LaserSpec:
    """Return the mounted laser that a file describes.

    Parameters
    ----------
    file : LaserFile
        Validated contents of the file of a laser model.
    pose : Pose
        Mounting in the frame of the robot: m, m, rad.
    flipped : bool
        Whether it is mounted upside down.

    Raises
    ------
    ModelError
        A value is invalid.
    """
    return _LASER.read(file, pose=pose, flipped=flipped)


def mounted_laser(mount: Any, load: LoadLaser, where: str = "") -> LaserSpec:
    """Return the laser that a table of a robot file mounts on a robot (`LaserMount`).

    Parameters
    ----------
    mount : LaserMount
        Table of the laser.
    load : callable
        Finds a laser model of the library by name.
    where : str
        Prefix of keys in error messages.

    Raises
    ------
    ModelError
        The laser is neither in the library nor fully described.
    """
    # A mount with its own number of rays and range needs no model from the library.
    described = mount.samples is not UNSET and mount.range is not UNSET
    base = LaserSpec(type_name=mount.type) if described else load(mount.type)
    values = {"pose": Pose()} | LASER_MOUNT.values(mount, where)
    # Once the model is upside down, a mount cannot turn it back.
    return replace(
        base, **values | {"flipped": values.get("flipped", False) or base.flipped}
    )


def _sonar(file: Any) -> SonarSpec:
    missing, own = (
        set(file.unconnected),
        {t.index: (n, t) for n, t in enumerate(file.single)},
    )
    for key, indices in (("unconnected", missing), ("single", own)):
        for index in indices:
            if not 0 <= index < len(file.transducers):
                raise ModelError(
                    f"sonar {file.type_name}: {key}: expected the index of one of "
                    f"{len(file.transducers)} transducers, from 0, found {index}"
                )

    def transducer(i: int, pose: Triple) -> Transducer:
        if i not in own:
            return Transducer(pose=pose_of(pose), connected=i not in missing)
        n, single = own[i]
        low, high = single.range or (None, None)
        values = _SINGLE.values(single, f"sonar.single[{n}].")
        return Transducer(
            pose=pose_of(pose),
            connected=i not in missing,
            range_min=low,
            range_max=high,
            **values,
        )

    return _SONAR.read(
        file,
        "sonar.",
        transducers=tuple(transducer(i, t) for i, t in enumerate(file.transducers)),
    )


def _sonar_table(spec: SonarSpec) -> dict[str, Any]:
    table = _SONAR.write(spec) | {
        "transducers": [triple_of(t.pose) for t in spec.transducers],
        "unconnected": [i for i, t in enumerate(spec.transducers) if not t.connected],
    }
    single = []
    for i, t in enumerate(spec.transducers):
        has_range = t.range_min is not None or t.range_max is not None
        own = _SINGLE.write(t) | (
            {"range": list(spec.limits_of(t))} if has_range else {}
        )
        if own:
            single.append({"index": i, **own})

    return table | {"single": single} if single else table


# -- robots


def to_spec(file: Any, name: str, load: LoadLaser) -> RobotSpec:
    """Return the robot model that the contents of a robot file (`RobotFile`) describe.

    Parameters
    ----------
    file : RobotFile
        Validated contents of the file.
    name : str
        Model name.
    load : callable
        Finds a laser of the library by name.

    Raises
    ------
    ModelError
        A value is invalid.
    """
    values = _ROBOT.values(file)
    # ARIA clients look up their parameter file by the subclass, so it is never empty.
    pioneer = values.get("pioneer", PioneerSpec(subclass=""))
    values["pioneer"] = replace(pioneer, subclass=pioneer.subclass or name)
    return RobotSpec(
        name=name,
        lasers=tuple(
            mounted_laser(m, load, f"lasers[{i}].") for i, m in enumerate(file.lasers)
        ),
        sonar=None if file.sonar is None else _sonar(file.sonar),
        devices=devices_of(file.devices),
        **values,
    )


def to_table(spec: RobotSpec, *, defaults: bool = False) -> dict[str, Any]:
    """Return the contents of the robot file that describes a model.

    `to_spec` converts them back to `spec`, except for rounding of the last digit of
    angles.

    Parameters
    ----------
    spec : RobotSpec
        The model.
    defaults : bool
        Whether keys with default values are also written. A file that extends another
        model needs them to override the other's values.
    """
    table = _ROBOT.write(spec, defaults=defaults) | {
        "lasers": [
            {"type": laser.type_name, **LASER_MOUNT.write(laser)}
            for laser in spec.lasers
        ]
    }
    if spec.sonar is not None:
        table["sonar"] = _sonar_table(spec.sonar)
    # A standard device without parameters adds nothing to the file.
    usual = {name for name in STANDARD if not table_of(standard_device(name))}
    return table | devices_table(
        [d for d in spec.equipment if d.type not in {*CARRIED, *usual}]
    )
