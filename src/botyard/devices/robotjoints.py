"""Robot joints with one degree of freedom, such as a pan unit, a mast or an arm.

They are commanded by position, velocity or effort, and exert no force on the robot. See
`botyard.devices.joints` for their motion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botyard.devices.joints import FREE_GAINS, MAX_VALUE, JointCommand, Joints
from botyard.errors import ModelError
from botyard.model.devices import (
    Command,
    Device,
    DeviceSpec,
    Field,
    RosMessage,
    parameter,
)
from botyard.model.dynamics import Gains

if TYPE_CHECKING:
    from botyard.devices.view import View

# This minimum bounds accelerations, because the effort is divided by the inertia.
MIN_INERTIA: Final = 1e-6
"""Least inertia of a joint, kg·m² or kg."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevoluteJointSpec(DeviceSpec):
    """Description of a revolute joint of a robot.

    Attributes
    ----------
    joint : str
        Name in joint states.
    low, high : float
        Limits, rad.
    continuous : bool
        Whether the joint has no limits and takes the shorter direction to a position.
    inertia : float
        Inertia that an effort accelerates, kg·m².
    damping : float
        Viscous damping, N·m·s.
    gains : Gains or None
        Gains of the position controller, whose output is an effort; None: its output is a
        velocity.
    """

    type: str = field(default="revolute_joint", init=False)
    joint: str = parameter("joint")
    low: float = parameter(-math.pi, unit="rad", key="limits_deg", index=0)
    high: float = parameter(math.pi, unit="rad", key="limits_deg", index=1)
    continuous: bool = parameter(False, is_brief=True)
    inertia: float = parameter(0.01, unit="kg·m²", low=MIN_INERTIA, high=MAX_VALUE)
    damping: float = parameter(0.0, unit="N·m·s", low=0.0, high=MAX_VALUE)
    gains: Gains | None = None

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        _check_limits(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrismaticJointSpec(DeviceSpec):
    """Description of a prismatic joint of a robot.

    Attributes
    ----------
    joint : str
        Name in joint states.
    low, high : float
        Limits, m; they are required.
    inertia : float
        Mass that an effort accelerates, kg.
    damping : float
        Viscous damping, N·s/m.
    gains : Gains or None
        Gains of the position controller, whose output is an effort; None: its output is
        a velocity.
    """

    type: str = field(default="prismatic_joint", init=False)
    joint: str = parameter("joint")
    low: float = parameter(0.0, unit="m", key="limits", index=0)
    high: float = parameter(1.0, unit="m", key="limits", index=1)
    inertia: float = parameter(1.0, unit="kg", low=MIN_INERTIA, high=MAX_VALUE)
    damping: float = parameter(0.0, unit="N·s/m", low=0.0, high=MAX_VALUE)
    gains: Gains | None = None

    def __post_init__(self) -> None:
        DeviceSpec.__post_init__(self)
        _check_limits(self)


AnyJointSpec = RevoluteJointSpec | PrismaticJointSpec


def _check_limits(spec: AnyJointSpec) -> None:
    # Equal limits would be a rigid connection, not a joint.
    if not spec.low < spec.high:
        is_turn = isinstance(spec, RevoluteJointSpec)
        key = "limits_deg" if is_turn else "limits"
        low, high = (
            (math.degrees(spec.low), math.degrees(spec.high))
            if is_turn
            else (spec.low, spec.high)
        )
        raise ModelError(
            f"{spec.type}: {key} must be [low, high] with low < high, found "
            f"[{low:g}, {high:g}]"
        )


def _is_endless(spec: AnyJointSpec) -> bool:
    return isinstance(spec, RevoluteJointSpec) and spec.continuous


class RobotJoints(Joints):
    """State and commands of all joints of robots."""

    name = "robot_joint"
    optional = True


class JointState(NamedTuple):
    """Reading of a joint.

    Attributes
    ----------
    position, velocity, effort : float
        Position, rad or m; velocity, rad/s or m/s; effort, N·m or N.
    """

    position: float
    velocity: float
    effort: float


def _start(spec: AnyJointSpec) -> Mapping[str, Any]:
    """Return the initial state of a joint: at zero or the nearest limit, without a command."""
    gains, endless = spec.gains or FREE_GAINS, _is_endless(spec)
    # Infinite limits let one array operation clamp all joints.
    low, high = (-math.inf, math.inf) if endless else (spec.low, spec.high)
    return {
        # Zero may lie outside of the limits.
        "position": min(max(0.0, low), high),
        "low": low,
        "high": high,
        "endless": endless,
        "inertia": spec.inertia,
        "damping": spec.damping,
        "stiff": spec.gains is not None,
        "gain_p": gains.p,
        "gain_d": gains.d,
    }


def _read(_: AnyJointSpec, view: View) -> JointState:
    assert view.memory is not None
    table, row = view.memory.table, view.memory.number
    return JointState(
        float(table.position[row]), float(table.velocity[row]), float(table.effort[row])
    )


def _message(spec: AnyJointSpec, found: JointState) -> dict[str, Any]:
    """Return a sensor_msgs/JointState of this joint alone."""
    return {
        "name": [spec.joint],
        "position": [found.position],
        "velocity": [found.velocity],
        "effort": [found.effort],
    }


def _stroke(spec: AnyJointSpec) -> tuple[float, float]:
    # An endless joint may be commanded to turn several times.
    return (-MAX_VALUE, MAX_VALUE) if _is_endless(spec) else (spec.low, spec.high)


def _command(command: JointCommand, unit: str) -> Command[Any]:
    """Return the declaration of a joint command for effort, position or velocity.

    Parameters
    ----------
    command : JointCommand
        Commanded quantity.
    unit : str
        Unit of the value.
    """
    return Command(
        name=command.name.lower(),
        limits=_stroke
        if command is JointCommand.POSITION
        else lambda _: (-MAX_VALUE, MAX_VALUE),
        columns=lambda value: {"command": int(command), "value": value},
        unit=unit,
        about=f"{command.name.lower()} of the joint",
    )


def _kind(
    name: str, about: str, spec: type[Any], unit: str, effort: str
) -> Device[Any, JointState]:
    return Device(
        name=name,
        about=about,
        spec=spec,
        read=_read,
        fields=(
            Field("position", unit),
            Field("velocity", f"{unit}/s"),
            Field("effort", effort),
        ),
        rows=lambda found: [found],
        table=RobotJoints,
        start=_start,
        commands=(
            _command(JointCommand.POSITION, unit),
            _command(JointCommand.VELOCITY, f"{unit}/s"),
            _command(JointCommand.EFFORT, effort),
        ),
        ros=RosMessage(
            topic=name, type_name="sensor_msgs/JointState", fields=_message, frame=None
        ),
    )


REVOLUTE_JOINT: Final = _kind(
    "revolute_joint", "revolute joint", RevoluteJointSpec, "rad", "N·m"
)
PRISMATIC_JOINT: Final = _kind(
    "prismatic_joint", "prismatic joint", PrismaticJointSpec, "m", "N"
)


__all__ = [
    "PRISMATIC_JOINT",
    "REVOLUTE_JOINT",
    "JointState",
    "PrismaticJointSpec",
    "RevoluteJointSpec",
    "RobotJoints",
]
