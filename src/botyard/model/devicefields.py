"""Parts of the declaration of a device kind: its columns, marks, commands and packet fields.

See `botyard.model.devices.Device`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.errors import ModelError
from botyard.model.rosmessages import OWN
from botyard.names import shown

S = TypeVar("S")
"""Type variable: class of the kind's descriptions."""
R = TypeVar("R")
"""Type variable: class of the kind's readings."""
View = Any
"""Type that stands for `botyard.devices.view.View`.

That class belongs to a higher layer and cannot be imported here. Functions of devices
annotate it themselves.
"""


class Field(NamedTuple):
    """Column of a device's reading.

    Attributes
    ----------
    name : str
        Name of the column, for example ``bearing``.
    unit : str
        Unit, ``m``, ``rad``, ``W`` …; empty: a plain number or a text.
    kind : type
        Type of the values: float, int, bool or str.
    """

    name: str
    unit: str = ""
    kind: type = float


class Mark(NamedTuple):
    """Marker that the page draws for a reading: x, y (m) in the robot's frame, and a label."""

    x: float
    y: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PioneerFields(Generic[S, R]):
    """Data that a device contributes to packets for Pioneer clients.

    Attributes
    ----------
    report : callable or None
        Bits that a reading sets in fields of the standard information packet, by field
        name (`botyard.protocols.pioneer.reportbuilder.DEVICE_BITS`).
    config : callable or None
        Fields of the CONFIG packet, by name
        (`botyard.protocols.pioneer.reports.Config`).
    simstat : callable or None
        Fields of the SIMSTAT packet, by name
        (`botyard.protocols.pioneer.reportbuilder.DEVICE_SIMSTAT`).
    is_steady : callable or None
        Whether a device changes reports only after a write from outside. Such reports
        can be built in batches.
    inputs : callable or None
        Digital inputs that a reading pulls to 0: bit masks by byte index, 0 to 3.
    wheels : callable or None
        Distances travelled by the left and the right wheel, m, which the encoder packet
        counts.
    is_by_touch : bool
        Whether the device sets bits in the field ``stall_bumpers`` only, and only while
        the robot is touched. Such reports can be batched.
    """

    report: Callable[[S, R], Mapping[str, int]] | None = None
    config: Callable[[S], Mapping[str, int]] | None = None
    simstat: Callable[[S, R], Mapping[str, float]] | None = None
    is_steady: Callable[[S], bool] | None = None
    inputs: Callable[[S, R], Mapping[int, int]] | None = None
    wheels: Callable[[S, R], tuple[float, float]] | None = None
    is_by_touch: bool = False

    def changes_reports(self, spec: S) -> bool:
        """Return whether a new reading can change reports without a contact or a write."""
        # An input can change with the state of the world, which no batch foresees.
        if self.inputs is not None:
            return True
        return not (
            self.report is None
            or self.is_by_touch
            or (self.is_steady is not None and self.is_steady(spec))
        )


class AriaKey(NamedTuple):
    """Line of ARIA's parameter files (formats §2) that sets a parameter of a device.

    Attributes
    ----------
    parameter : str
        Name of the parameter. Files have mm for metres and degrees for radians.
    section, key : str
        Section and keyword of the line.
    flag : str
        Keyword of an earlier line, ``true`` or ``false``, that enables the parameter.
        If it is ``false``, the parameter is 0. Empty: no such line.
    default : float
        Value if the line is missing, in the file's unit.
    """

    parameter: str
    section: str
    key: str
    flag: str = ""
    default: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors(Generic[S]):
    """Functions of an error model.

    An error model is also a device: its kind has a name, parameters, and columns with
    its state.

    Attributes
    ----------
    odometry : callable or None
        Proportional errors (x, y, a) of the current step: odometry multiplies each axis of the
        displacement by 1 + error. The function is called once a step while no client has switched
        errors off, and may write its own state (`View.memory`). A robot has at most one such model.
    measured : callable or None
        Measured ranges (n,), m, and bearings (n,), rad, computed from the true values.
        The parameter ``sensor`` selects the sensor: ``laser``, ``sonar`` or the name of
        a device. Bearings matter for devices that report them (`View.measured`), not
        for beams.
    """

    odometry: Callable[[S, View], tuple[float, float, float]] | None = None
    measured: (
        Callable[
            [S, View, NDArray[np.float64], NDArray[np.float64]],
            tuple[NDArray[np.float64], NDArray[np.float64]],
        ]
        | None
    ) = None


class Channel(NamedTuple):
    """Channel of a recording: its name, and the JSON schema of its messages."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[S]):
    """Command of an actuator, whose argument is a number.

    Programs and the page send it, and ROS sends it as std_msgs/Float64 on
    ``DEVICE/NAME_cmd``.

    Attributes
    ----------
    name : str
        Name of the command, for example ``position``.
    limits : callable
        Minimum and maximum value, for a description.
    columns : callable
        Values that are written to columns of the table, for a commanded value.
    unit : str
        Unit, ``rad``, ``m``, ``N`` …; empty: a plain number.
    about : str
        One line of description.
    profiles : tuple of str
        ROS name profiles that have the command.
    """

    name: str
    limits: Callable[[S], tuple[float, float]]
    columns: Callable[[float], Mapping[str, Any]]
    unit: str = ""
    about: str = ""
    profiles: tuple[str, ...] = OWN

    def __post_init__(self) -> None:
        """Check that the name is valid.

        Raises
        ------
        ModelError
            The name is not an ASCII identifier.
        """
        # The name becomes part of a ROS topic.
        if not self.name.isidentifier() or not self.name.isascii():
            raise ModelError(
                "command: expected a name of letters, digits and _, "
                f'found "{shown(self.name)}"'
            )


__all__ = [
    "AriaKey",
    "Channel",
    "Command",
    "Errors",
    "Field",
    "Mark",
    "PioneerFields",
    "View",
]
