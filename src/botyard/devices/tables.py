"""Upward-looking infrared sensors that detect table tops (UNS-004).

Tables in maps are sectors of type ``Table`` (also ``Sim.Table``). They are not
obstacles in the plane.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from botyard.geometry import Pose, transform_point
from botyard.model.devices import Device, DeviceSpec, Field, PioneerFields, parameter
from botyard.model.scene import Scene, in_polygon

if TYPE_CHECKING:
    from botyard.devices.view import View

TABLES: Final = frozenset({"table", "sim.table", "tablesector"})
"""Types of map sectors that represent tables, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIrSpec(DeviceSpec):
    """Description of upward-looking infrared sensors that detect table tops.

    Attributes
    ----------
    positions : tuple of (float, float)
        Position of each sensor in the robot frame, m; the left one first. Clients receive
        two.
    in_io_packet : bool
        Whether the I/O packet reports the sensors, as on newer robots. Older robots report
        them among the digital inputs of the SIP.
    """

    type: str = field(default="table_ir", init=False)
    positions: tuple[tuple[float, float], ...] = parameter((), unit="m")
    in_io_packet: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the robot has no such sensor."""
        return not self.positions


def under_table(scene: Scene, spec: TableIrSpec, pose: Pose) -> tuple[bool, ...]:
    """Return for each sensor whether a table top is above it.

    Parameters
    ----------
    scene : Scene
        Map; tables are areas whose type is in `TABLES`.
    spec : TableIrSpec
        Positions of the sensors.
    pose : Pose
        True pose of the robot: m, m, rad.

    Returns
    -------
    tuple of bool
        One answer for each sensor.
    """
    # Map files spell the types in different cases.
    tables = [a.corners for a in scene.areas if a.kind.lower() in TABLES]
    points = [transform_point(pose, x, y) for x, y in spec.positions]
    return tuple(
        any(in_polygon(corners, x, y) for corners in tables) for x, y in points
    )


def _read(spec: TableIrSpec, view: View) -> tuple[bool, ...]:
    return under_table(view.scene, spec, view.robot_pose)


def _inputs(spec: TableIrSpec, found: tuple[bool, ...]) -> dict[int, int]:
    """Return the sensors' input bits for each byte (pioneer-protocol §5, field 16, and §10).

    The SIP has them in bits 0 and 1 of the first byte; the I/O packet has them in bits 1 and 0 of
    the last byte.
    """
    # The packet has two bits, for any number of sensors.
    left, right = (*found, False, False)[:2]
    return {3: 2 * left + right} if spec.in_io_packet else {0: left + 2 * right}


TABLE_IR: Final = Device(
    name="table_ir",
    about="table tops above the sensors",
    spec=TableIrSpec,
    read=_read,
    fields=(Field("sensor", kind=int), Field("table", kind=bool)),
    rows=enumerate,
    pioneer=PioneerFields(inputs=_inputs),
)
