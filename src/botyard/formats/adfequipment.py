"""Sensors, cameras, lights, vehicles and actuators of AMBF description files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from botyard.formats.adfscope import Scope
from botyard.formats.adftable import Table
from botyard.geometry import Pose, compose
from botyard.model.objects import (
    ActuatorSpec,
    RaySensorSpec,
    VehicleSpec,
    ViewSpec,
    WheelSpec,
)
from botyard.names import shown
from botyard.numerics.elementary import atan2, cos, hypot, sin


def read_sensor(scope: Scope, key: str, table: Table) -> RaySensorSpec | None:
    """Return the range sensor that a table of the file describes.

    Parameters
    ----------
    scope : Scope
        File that is being read.
    key : str
        Key of the sensor in the file.
    table : Table
        Its description.

    Returns
    -------
    RaySensorSpec or None
        None for another kind of sensor, and for one whose rays are all vertical.

    Raises
    ------
    LeftOut
        The parent body of the sensor does not exist, or a joint carries that body.
    FormatError
        The sensor has no rays, or a value is out of range.
    """
    kind = table.text("type", "Proximity").strip().lower()
    if kind not in ("proximity", "resistance"):
        scope.note(table, f"sensors of type {shown(kind)} are ignored")
        return None

    if kind == "resistance":
        scope.note(
            table,
            "resistance sensors detect objects like proximity sensors, but have no "
            "resistance in botyard",
        )

    parent = scope.mount_name(table)
    name = scope.name(key, table)
    mount = scope.pose(table, "location")
    rows = table.rows("array")
    # Older files describe one ray from the sensor's own position.
    if not rows and "direction" in table:
        rows = [table]

    array = [_ray(scope, row) for row in rows]
    rays = [ray for ray in array if ray is not None]
    if len(rays) < len(array):
        scope.note(table, f"{len(array) - len(rays)} vertical rays are ignored")
    fan = table.table("parametric")
    if fan is not None:
        rays += _fan(scope, fan)
    # Check the number of rays: each parametric sensor can request 100,000 of them.
    scope.meter.add("beams", len(rays))
    if not rays and array:
        return None
    if not rays:
        raise table.fail(
            "", "expected rays (array, parametric or direction), found none"
        )
    placed = tuple(compose(mount, ray) for ray in rays)
    offer = scope.offer(table, "sensors/")
    for unused in ("name", "visible size"):
        table.get(unused)
    spec = RaySensorSpec(
        name=name,
        parent=parent,
        rays=placed,
        range=table.number("range", 1.0, 1e-3, 1e4),
        offer=offer,
    )
    scope.note_unread(table)
    return spec


def _ray(scope: Scope, row: Table) -> Pose | None:
    """Return the pose of a ray in the plane; None for a vertical ray."""
    x, y, _ = row.vector("offset")
    dx, dy, _ = row.vector("direction", (1.0, 0.0, 0.0))
    if hypot(dx, dy) < 1e-9:
        return None
    return Pose(x, y, atan2(dy, dx))


def _fan(scope: Scope, fan: Table) -> list[Pose]:
    """Return the rays of a sensor whose rays are given by parameters.

    The rays are spread over the horizontal angle.

    Parameters
    ----------
    scope : Scope
        File that is being read.
    fan : Table
        Number of rays (``resolution``), angle between the first and the last one, rad,
        and distance of their starts from the sensor, m.

    Returns
    -------
    list of Pose
        Start and direction of each ray in the frame of the sensor: m, m, rad.
    """
    count = int(fan.number("resolution", 0.0, 1, 100_000)) if "resolution" in fan else 0
    if count < 1:
        raise fan.fail("resolution", "expected the number of rays, found none")
    angle, start = (
        fan.number("horizontal angle", 0.0, 0.0, 2.0 * math.pi),
        fan.number("start offset", 0.0),
    )
    if fan.number("vertical angle", 0.0):
        scope.note(fan, "the vertical angle is ignored")
    angles = (
        [-angle / 2.0 + angle * k / (count - 1) for k in range(count)]
        if count > 1
        else [0.0]
    )
    return [Pose(start * cos(a), start * sin(a), a) for a in angles]


def read_camera(scope: Scope, key: str, table: Table) -> ViewSpec:
    """Return the camera that a table of the file describes."""
    return _view(scope, key, table, is_light=False)


def read_light(scope: Scope, key: str, table: Table) -> ViewSpec:
    """Return the light that a table of the file describes."""
    return _view(scope, key, table, is_light=True)


def _view(scope: Scope, key: str, table: Table, *, is_light: bool) -> ViewSpec:
    parent = scope.body_name(table, "parent") if "parent" in table else ""
    name = scope.name(key, table)
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

    offer = scope.offer(table, "lights/" if is_light else "cameras/")
    scope.note_unread(table)
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


def read_vehicle(scope: Scope, key: str, table: Table) -> VehicleSpec:
    """Return the vehicle that a table of the file describes."""
    chassis = scope.body_name(table, "chassis")
    name = scope.name(key, table)
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
        offer=scope.offer(table, "vehicles/"),
    )
    table.get("name")
    scope.note_unread(table)
    return spec


def read_actuator(scope: Scope, key: str, table: Table) -> ActuatorSpec | None:
    """Return the actuator that a table describes; None for a kind that botyard does not have."""
    if table.text("type", "Constraint").strip().lower() != "constraint":
        scope.note(table, f"actuators of type {table.text('type')} are ignored")
        return None

    parent = scope.mount_name(table)
    name = scope.name(key, table)
    at, offer = scope.pose(table, "location"), scope.offer(table, "actuators/")
    # Known keys without an effect in a plane cause no warning.
    for unused in ("name", "visible size", "max impulse", "tau"):
        table.get(unused)
    scope.note_unread(table)
    return ActuatorSpec(name=name, parent=parent, at=at, offer=offer)


__all__ = ["read_actuator", "read_camera", "read_light", "read_sensor", "read_vehicle"]
