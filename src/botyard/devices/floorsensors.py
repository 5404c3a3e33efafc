"""Sensors that look down at the floor: line sensors, cliff sensors, pheromone sensors.

Each has several spots, which are points in the frame of the robot. A spot reads the
floor at its point alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.model.devices import (
    Device,
    DeviceSpec,
    Field,
    RosMessage,
    parameter,
)
from botyard.model.floorlook import brightness, cells_at, colors_at, holes_at
from botyard.names import is_name
from botyard.numerics.elementary import cosine_sine

if TYPE_CHECKING:
    from botyard.devices.view import View

Spots = tuple[tuple[float, float], ...]
MAX_SPOTS: Final = 1000
"""Largest number of spots of a sensor."""
LINE_SPOTS: Final[Spots] = ((0.03, 0.01), (0.03, 0.0), (0.03, -0.01))
"""Default spots of line sensors and pheromone sensors, m: three in a row, left to right."""
CLIFF_SPOTS: Final[Spots] = (
    (0.0, 0.15),
    (0.14, 0.06),
    (0.14, -0.06),
    (0.0, -0.15),
)
"""Default spots of cliff sensors, m: left, front left, front right, right."""


def _check_spots(what: str, spots: Spots) -> None:
    """Raise ModelError for no spots, or too many."""
    if not 1 <= len(spots) <= MAX_SPOTS:
        raise ModelError(
            f"{what}: positions: expected 1 to {MAX_SPOTS} points, found {len(spots)}"
        )


def spots_in_world(spots: Spots, view: View) -> NDArray[np.float64]:
    """Return the points in the world that the spots of a sensor look at, (n, 2) m.

    Parameters
    ----------
    spots : tuple of (float, float)
        Points in the frame of the robot, m.
    view : View
        View of the world from the sensor.
    """
    x, y, th = view.robot_pose
    c, s = cosine_sine(th)
    at = np.array(spots, np.float64)
    return np.stack(
        [x + (c * at[:, 0] - s * at[:, 1]), y + (s * at[:, 0] + c * at[:, 1])], axis=1
    )


# -- line sensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSensorSpec(DeviceSpec):
    """Description of a sensor that measures brightness and colour of the floor.

    Attributes
    ----------
    positions : tuple of (float, float)
        Spots in the frame of the robot, m.
    noise : float
        Standard deviation of the brightness, which is 0 (black) to 1 (white).
    """

    type: str = field(default="line_sensor", init=False)
    positions: tuple[tuple[float, float], ...] = parameter(
        LINE_SPOTS, unit="m", low=-1e3, high=1e3
    )
    noise: float = parameter(0.0, low=0.0, high=1.0)

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        _check_spots("line sensor", self.positions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LineReading:
    """Reading of a line sensor with n spots.

    Attributes
    ----------
    brightness : (n,) float64
        Brightness, 0 to 1, with noise.
    colors : (n, 3) uint8
        True red, green and blue; a hole is black.
    """

    brightness: NDArray[np.float64]
    colors: NDArray[np.uint8]


def read_line(spec: LineSensorSpec, view: View) -> LineReading:
    """Return brightness and colour of the floor under each spot of a line sensor.

    The brightness is the luma of the colour under each spot (ITU-R BT.601), plus
    `noise` times a normal draw, cut to 0 … 1.

    Parameters
    ----------
    spec : LineSensorSpec
        Description of the sensor.
    view : View
        View of the world.
    """
    colors = colors_at(view.scene.floor, spots_in_world(spec.positions, view))
    seen = brightness(colors) + spec.noise * view.normal(len(colors))
    return LineReading(brightness=np.clip(seen, 0.0, 1.0), colors=colors)


LINE_SENSOR: Final = Device(
    name="line_sensor",
    about="brightness and colour of the floor under points",
    spec=LineSensorSpec,
    read=read_line,
    fields=(
        Field("spot", kind=int),
        Field("brightness"),
        Field("red", kind=int),
        Field("green", kind=int),
        Field("blue", kind=int),
    ),
    rows=lambda seen: [
        (k, bright, *color)
        for k, (bright, color) in enumerate(
            zip(seen.brightness.tolist(), seen.colors.tolist(), strict=True)
        )
    ],
    ros=RosMessage(
        topic="line_sensor",
        type_name="std_msgs/Float32MultiArray",
        fields=lambda _, seen: _multi_array("spot", seen.brightness.tolist()),
        frame=None,
    ),
)


def _multi_array(label: str, data: list[Any]) -> Mapping[str, Any]:
    """Return the fields of a one-dimensional multi-array message of ROS.

    Parameters
    ----------
    label : str
        Label of the dimension.
    data : list of number
        Values.
    """
    return {
        "layout": {
            "dim": [{"label": label, "size": len(data), "stride": len(data)}],
            "data_offset": 0,
        },
        "data": data,
    }


# -- cliff sensor


@dataclass(frozen=True, slots=True, kw_only=True)
class CliffSensorSpec(DeviceSpec):
    """Description of sensors that detect holes in the floor.

    Attributes
    ----------
    positions : tuple of (float, float)
        Spots in the frame of the robot, m.
    """

    type: str = field(default="cliff_sensor", init=False)
    positions: tuple[tuple[float, float], ...] = parameter(
        CLIFF_SPOTS, unit="m", low=-1e3, high=1e3
    )

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        _check_spots("cliff sensor", self.positions)


def read_cliff(spec: CliffSensorSpec, view: View) -> tuple[bool, ...]:
    """Return for each spot of a cliff sensor whether it is over a hole in the floor.

    Parameters
    ----------
    spec : CliffSensorSpec
        Description of the sensor.
    view : View
        View of the world.
    """
    found = holes_at(view.scene.floor, spots_in_world(spec.positions, view))
    return tuple(found.tolist())


CLIFF_SENSOR: Final = Device(
    name="cliff_sensor",
    about="holes in the floor under points",
    spec=CliffSensorSpec,
    read=read_cliff,
    fields=(Field("spot", kind=int), Field("cliff", kind=bool)),
    rows=lambda found: list(enumerate(found)),
    ros=RosMessage(
        topic="cliff",
        type_name="std_msgs/UInt8MultiArray",
        fields=lambda _, found: _multi_array("spot", [int(one) for one in found]),
        frame=None,
    ),
)


# -- pheromone sensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PheromoneSensorSpec(DeviceSpec):
    """Description of a sensor of the level of a pheromone.

    Attributes
    ----------
    pheromone : str
        Name of the field of the floor. On a floor without it, all levels are 0.
    positions : tuple of (float, float)
        Spots in the frame of the robot, m.
    """

    type: str = field(default="pheromone_sensor", init=False)
    pheromone: str = "trail"
    positions: tuple[tuple[float, float], ...] = parameter(
        LINE_SPOTS, unit="m", low=-1e3, high=1e3
    )

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        _check_spots("pheromone sensor", self.positions)
        if not is_name(self.pheromone):
            raise ModelError(
                "pheromone sensor: pheromone: expected the name of a field, found "
                f'"{self.pheromone[:80]}"'
            )


def read_pheromone(spec: PheromoneSensorSpec, view: View) -> tuple[float, ...]:
    """Return the level of a pheromone under each spot; 0 outside of its field.

    Parameters
    ----------
    spec : PheromoneSensorSpec
        Description of the sensor.
    view : View
        View of the world.
    """
    # Robot files are also read by a process that has no use for the engine.
    from botyard.engine.fields import field_of

    table = field_of(view.engine, spec.pheromone)
    if table is None:
        return (0.0,) * len(spec.positions)
    cells = cells_at(table.field, spots_in_world(spec.positions, view))
    levels = np.where(cells >= 0, table.level[0, cells], 0.0)
    return tuple(levels.tolist())


PHEROMONE_SENSOR: Final = Device(
    name="pheromone_sensor",
    about="level of a pheromone under points",
    spec=PheromoneSensorSpec,
    read=read_pheromone,
    fields=(Field("spot", kind=int), Field("level")),
    rows=lambda found: list(enumerate(found)),
    ros=RosMessage(
        topic="pheromone",
        type_name="std_msgs/Float32MultiArray",
        fields=lambda _, found: _multi_array("spot", list(found)),
        frame=None,
    ),
)

__all__ = [
    "CLIFF_SENSOR",
    "LINE_SENSOR",
    "PHEROMONE_SENSOR",
    "CliffSensorSpec",
    "LineReading",
    "LineSensorSpec",
    "PheromoneSensorSpec",
    "read_cliff",
    "read_line",
    "read_pheromone",
    "spots_in_world",
]
