"""Conversion of descriptions to their fields by name, for digests and pickles.

Digests and pickles by field name stay valid when a class changes.

A digest covers each field that the class had in the first state format (`FIRST`). It
also covers each later field that differs from its default. A new field with a default
therefore changes no digest. For classes of plug-ins a digest covers all fields.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from botyard.errors import StateError

_FIRST: Final = """
AprilTagSpec: type pose fov width tag_size min_pixels max_angle faces pixel_deviation missing
    update_rate
CliffSensorSpec: type positions
GnssSpec: type pose deviation drift drift_time multipath vertical update_rate
ImuSpec: type pose gyro_noise accel_noise gyro_bias accel_bias gyro_walk accel_walk has_orientation
    update_rate
InfraredSpec: type pose fov range_min range_max rays max_incidence noise range_deviation range_share
    missing update_rate
LedsSpec: type pose count radius
LineSensorSpec: type positions noise
OmniCameraSpec: type pose range_max range_deviation bearing_deviation missing occlusion update_rate
PheromonePenSpec: type pheromone position rate max_rate
PheromoneSensorSpec: type pheromone positions
RangeAndBearingSpec: type pose range_max bandwidth loss range_deviation bearing_deviation occlusion
    update_rate
UltrasonicSpec: type pose fov range_min range_max rays max_incidence noise range_deviation
    range_share missing update_rate
UwbSpec: type pose range_max height deviation hidden_bias hidden_deviation missing hidden_missing
    update_rate
ActuatorSpec: name parent at offer
Area: kind name corners
Axes: x y a
BatterySpec: type by_charge volts charge capacity_wh empty_volts idle_power motor_power charge_power shutdown_charge
BlobFinderSpec: type pose colors image range_max fov
BoxObject: name pose length width returns color parts dynamics
BumperSpec: type front rear
CommandSpec: latency jitter rate scale
CompassSpec: type
Described: bodies carried offers joints sensors views vehicles actuators
DynamicsSpec: mass inertia center friction floor_friction restitution linear_damping angular_damping controller
    traction
ElectricsSpec: type
EncodersSpec: type
FiducialFinderSpec: type pose range_min range_max range_max_id fov
Floor: color picture zones fields
FloorPicture: pixels resolution origin
FloorZone: name corners color slip speed_limit odometry_scale hole
Gains: p d
FourWheels: wheelbase track_factor slide slip errors
GeoReference: latitude longitude altitude
GpsSpec: type x y dop
GripperSpec: type reach opening thickness paddle_time lift_time
JointSpec: name parent child slides planar at child_at low high unlimited inertia damping gains
LaserSpec: type type_name pose size fov samples range_min range_max flipped range_noise angle_noise reflector
    update_rate measurement_rate latency jitter missing
MotionLimits: max_speed accel decel top_accel heading_speed
NormalErrorsSpec: type sensor range_bias range_deviation range_share bearing_deviation
OdometryDrift: turn_by_turn turn_by_distance distance_by_distance distance_by_turn
Offer: namespace passive low high children joint_names joint_positions
PheromoneField: name area cell half_life color full
PioneerSpec: class_name subclass dist_conv angle_conv vel_conv range_conv diff_conv vel2_div watchdog ticks_per_mm
Place: kind name pose has_heading
PoseController: linear angular force
PrismaticJointSpec: type joint low high inertia damping gains
RaySensorSpec: name parent rays range offer
ReflectorRule: max_range max_incidence strength
Returns: obstacle laser sonar fiducial blob
RevoluteJointSpec: type joint low high continuous inertia damping gains
RobotSpec: name description color drive outline parts limits odometry_error odometry_error_low perfect_odometry
    wheel_ratio commands lasers sonar devices pioneer battery returns gripper wheel_radius gyro dynamics
Scene: name source map_file segments special_walls traced points resolution boxes places areas view start
    georeference
SonarSpec: type type_name transducers fov range_min range_max noise rays update_rate measurement_rate latency jitter
    missing
SpecialWalls: first last returns
Steering: wheelbase limit rate offset by_angle
TableIrSpec: type positions in_io_packet
TracedCells: first last rows columns width height origin
TrailerSpec: outline hitch length limit
Transducer: pose connected range_min range_max fov noise
VehicleSpec: name chassis wheels max_power max_brake steering offer
ViewSpec: name parent is_light position orientation parameters offer
WanderingOdometrySpec: type x y a time
WheelSpec: x y radius steers drives
"""
FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(names.split())
    for name, names in re.findall(r"(\w+):([^:]*)(?=\n\w|$)", _FIRST.strip())
}
"""Names of the fields of each class of descriptions in the first state format, in their order.

Add a new class of descriptions with its current fields. Change a line only together
with the state format (`botyard.engine.state.VERSION`).
"""
_PLAIN: Final = frozenset({bool, int, float, str, bytes, type(None), np.ndarray})


class _DigestFields(NamedTuple):
    """Names of the fields of a class that a digest covers.

    The first fields always count. Later fields are kept with the digested form of their
    default.
    """

    first: tuple[str, ...]
    later: tuple[tuple[str, Any], ...]


@cache
def _digest_fields(kind: type[Any]) -> _DigestFields:
    here = {one.name: one for one in fields(kind)}
    first = FIRST.get(kind.__name__, tuple(here))
    later = tuple(
        (name, _default(here[name])) for name in sorted(here.keys() - set(first))
    )
    return _DigestFields(tuple(name for name in first if name in here), later)


def _default(field: Field[Any]) -> Any:
    """Return the default of a field as it enters digests; MISSING: the field has no default."""
    if field.default_factory is not MISSING:
        return digested(field.default_factory())
    return field.default if field.default is MISSING else digested(field.default)


def digested(value: Any) -> Any:
    """Return the content of a description as it enters digests: lists, mappings and values.

    Parameters
    ----------
    value : object
        Description, or lists, tuples and mappings of them. Arrays and plain values are
        returned as they are.

    Returns
    -------
    object
        Descriptions become mappings of field names to digested values, without later
        fields that have their default.
    """
    kind = type(value)
    # Most values are plain, so they are tested first.
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [digested(one) for one in value]
    if is_dataclass(kind):
        first, later = _digest_fields(kind)
        found = {name: digested(getattr(value, name)) for name in first}
        for name, default in later:
            if not _is_same(one := digested(getattr(value, name)), default):
                found[name] = one

        return found

    # Named tuples are digested like plain ones.
    if isinstance(value, tuple):
        return [digested(one) for one in value]
    if isinstance(value, Mapping):
        return {key: digested(one) for key, one in value.items()}
    return value


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two results of `digested` are equal, with signs of zeros."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            type(one) is type(other)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and one.tobytes() == other.tobytes()
        )

    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _is_same(one[key], other[key]) for key in one
        )

    # The text of a float differs for 0.0 and -0.0, and is equal for two NaNs.
    return type(one) is type(other) and repr(one) == repr(other)


# -- pickles


def set_fields(self: Any, values: Sequence[Any]) -> None:
    """Restore a pickled instance of a class that gained fields.

    Such a class uses this function as ``__setstate__``. Old pickles hold the values of
    `FIRST` in that order; fields without a value get their default.

    Parameters
    ----------
    self : object
        New instance of a description, whose fields are set.
    values : sequence
        Values without names, as many as fields in `FIRST` or in the present class.

    Raises
    ------
    ValueError
        The number of values fits neither.
    """
    here = fields(self)
    first = FIRST[type(self).__name__]
    # Pickle stores values without names, so only their number shows which format wrote
    # them.
    names = (
        first
        if len(values) == len(first) < len(here)
        else tuple(one.name for one in here)
    )
    given = dict(zip(names, values, strict=True))
    for one in here:
        if one.name not in given:
            given[one.name] = (
                one.default if one.default_factory is MISSING else one.default_factory()
            )

        # The dataclasses are frozen and refuse plain assignment.
        object.__setattr__(self, one.name, given[one.name])


class _Packed:
    """Replacement for a description in a pickle: its class, and its field values by name."""

    __slots__ = ("_kind", "_values")

    def __init__(self, kind: type[Any], values: Mapping[str, Any]) -> None:
        self._kind, self._values = kind, values

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._kind, self._values)


def _again(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return the description that a `_Packed` object in a pickle stands for.

    Parameters
    ----------
    kind : class
        Class of the description.
    values : mapping of str to object
        Values by name of the field. Missing fields get their default.

    Raises
    ------
    StateError
        The class has no such field: another version wrote the pickle.
    """
    here = {one.name for one in fields(kind) if one.init}
    unknown = sorted(values.keys() - here)
    if unknown:
        raise StateError(
            f"pickle: {kind.__name__} has no field {', '.join(unknown)}: another "
            "version of botyard wrote the file"
        )

    return kind(**values)


def packed(value: Any, known: dict[int, Any]) -> Any:
    """Return a replacement for a value in a pickle, in which fields are stored by name.

    Unpickling gives the original value back. Plain pickle stores dataclasses with slots
    by position, so a class with an additional field would misread the values.

    Parameters
    ----------
    value : value
        A description, or tuples and lists of descriptions.
    known : dict
        Objects packed before, by identity, so that an object that occurs twice stays one
        object. The caller keeps the objects alive.
    """
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([packed(one, known) for one in value])
    if not is_dataclass(kind) or issubclass(kind, enum.Enum):
        return value
    # An identity is valid only while its object lives; see `known`.
    if id(value) not in known:
        known[id(value)] = _Packed(
            kind,
            {
                f.name: packed(getattr(value, f.name), known)
                for f in fields(kind)
                if f.init
            },
        )

    return known[id(value)]


__all__ = ["FIRST", "digested", "packed"]
