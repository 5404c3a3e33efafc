"""What a kind of device declares for files and interfaces, as plain data and functions;
see `botyard.model.devices.Device`.
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
"""Class of a kind's descriptions."""
R = TypeVar("R")
"""Class of its readings."""
View = Any
"""A `botyard.devices.view.View`, of a higher layer: devices' functions annotate it
themselves.
"""


class Field(NamedTuple):
    """A column of a reading.

    Attributes
    ----------
    name : str
        For example ``bearing``.
    unit : str
        ``m``, ``rad``, ``W`` …; empty: a plain number or a text.
    kind : type
        float, int, bool or str.
    """

    name: str
    unit: str = ""
    kind: type = float


class Mark(NamedTuple):
    """A marker on the page: x, y (m) in the robot's frame, and its label."""

    x: float
    y: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PioneerFields(Generic[S, R]):
    """What Pioneer clients see of a device.

    Attributes
    ----------
    report : callable or None
        Bits that a reading sets in fields of the standard information packet, by their
        names (`botyard.protocols.pioneer.reportbuilder.DEVICE_BITS`).
    config : callable or None
        Fields of the CONFIG packet, by their names
        (`botyard.protocols.pioneer.reports.Config`).
    simstat : callable or None
        Fields of the SIMSTAT packet, by their names
        (`botyard.protocols.pioneer.reportbuilder.DEVICE_SIMSTAT`).
    is_steady : callable or None
        Whether a device changes reports only when it is written to from outside: such
        reports can be built in batches.
    inputs : callable or None
        Digital inputs that a reading pulls to 0: masks of bits by their byte, 0 … 3.
    wheels : callable or None
        Ways of the left and the right wheel, m, which the encoder packet counts.
    is_by_touch : bool
        Its bits are in the field ``stall_bumpers`` only, and only while the robot is
        touched: such reports can be batched.
    """

    report: Callable[[S, R], Mapping[str, int]] | None = None
    config: Callable[[S], Mapping[str, int]] | None = None
    simstat: Callable[[S, R], Mapping[str, float]] | None = None
    is_steady: Callable[[S], bool] | None = None
    inputs: Callable[[S, R], Mapping[int, int]] | None = None
    wheels: Callable[[S, R], tuple[float, float]] | None = None
    is_by_touch: bool = False

    def changes_reports(self, spec: S) -> bool:
        """Whether its readings can change the robot's reports by themselves, without a
        contact or a write.
        """
        if self.inputs is not None:
            return True
        return not (
            self.report is None
            or self.is_by_touch
            or (self.is_steady is not None and self.is_steady(spec))
        )


class AriaKey(NamedTuple):
    """A line of ARIA's parameter files (formats §2) that sets a parameter of a device.

    Attributes
    ----------
    parameter : str
        Name of the parameter. Files have mm for metres and degrees for radians.
    section, key : str
        Section and keyword of the line.
    flag : str
        Keyword of a line before it, ``true`` or ``false``: whether there is any of it;
        else the parameter is 0. Empty: no such line.
    default : float
        Value where the line is missing, in the file's unit.
    """

    parameter: str
    section: str
    key: str
    flag: str = ""
    default: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors(Generic[S]):
    """The functions of an error model. It is a device, too: its kind has a name,
    parameters, and columns with its state.

    Attributes
    ----------
    odometry : callable or None
        The proportional errors (x, y, a) of the present step: odometry takes each axis
        of the displacement times 1 + error. Called once a step while a client has not
        switched errors off; it may write what it remembers (`View.memory`). A robot has
        one such model.
    measured : callable or None
        Ranges (n,), m, and bearings (n,), rad, as they are measured, from the true
        ones. A parameter ``sensor`` says of which sensor: ``laser``, ``sonar`` or the
        name of a device. Bearings count for devices that tell them (`View.measured`),
        not for beams.
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
    """A channel of a recording: its name, and the JSON schema of its messages."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[S]):
    """A number by which an actuator is commanded: by programs, the page, and ROS
    (std_msgs/Float64 on ``DEVICE/NAME_cmd``).

    Attributes
    ----------
    name : str
        Such as ``position``.
    limits : callable
        Least and greatest value, of a description.
    columns : callable
        What is written to columns of the table, of a value.
    unit : str
        ``rad``, ``m``, ``N`` …; empty: a plain number.
    about : str
        One line of description.
    profiles : tuple of str
        The name profiles of ROS that have it.
    """

    name: str
    limits: Callable[[S], tuple[float, float]]
    columns: Callable[[float], Mapping[str, Any]]
    unit: str = ""
    about: str = ""
    profiles: tuple[str, ...] = OWN

    def __post_init__(self) -> None:
        """Validate the name. ModelError: it is none."""
        if not self.name.isidentifier() or not self.name.isascii():
            raise ModelError(
                f'command: expected a name of letters, digits and _, found "{shown(self.name)}"'
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
