"""Actuated joints with one degree of freedom (ambf-messages.md §6).

They are commanded by effort, position or velocity. A joint moves its child in the frame
of its parent, and exerts no force on the parent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from botyard.devices.devicetable import DeviceTable
from botyard.engine.layout import F8, I1, I8
from botyard.engine.tables import NOBODY, Column, Row, cell
from botyard.errors import CommandError
from botyard.geometry import Pose, compose, inverse
from botyard.model.dynamics import SUBSTEP, Gains
from botyard.model.objects import Described, JointSpec
from botyard.model.robot import RobotSpec
from botyard.units import TWO_PI, wrap_angle

if TYPE_CHECKING:
    from botyard.engine.simulation import Engine

MAX_VALUE: Final = 1e6
"""Limit of a joint's speed, rad/s or m/s, and of commanded values."""
FREE_GAINS: Final = Gains()
"""Gains of position controllers whose descriptions have no gains.

The output of these controllers is a velocity.
"""


class JointCommand(IntEnum):
    """Quantity that a joint command sets; values as in ``RigidBodyCmd.joint_cmds_types``."""

    EFFORT = 0
    POSITION = 1
    VELOCITY = 2


class Joints(DeviceTable):
    """State and commands of all joints of description files.

    Attributes
    ----------
    position, velocity, effort : (n,) float64
        Position, rad or m; velocity, rad/s or m/s; effort, N·m or N.
    command : (n,) int8
        Commanded quantity, a `JointCommand`.
    value : (n,) float64
        Commanded value.
    low, high : (n,) float64
        Limits, rad or m; infinite for a joint without limits.
    endless : (n,) int8
        0 or 1: whether the joint is continuous. It has no limits, and takes the shorter
        direction to a position.
    inertia, damping : (n,) float64
        See `JointSpec`.
    stiff : (n,) int8
        0 or 1: whether the output of the position controller is an effort, otherwise a
        velocity.
    gain_p, gain_d : (n,) float64
        Gains of the position controller.
    """

    name = "joint"
    may_lack_rows = True
    columns: ClassVar = {
        **{
            name: Column(np.float64)
            for name in ("position", "velocity", "effort", "value")
        },
        **{
            # Endless joints have infinite limits.
            name: Column(np.float64, saved=False, unbounded=True)
            for name in ("low", "high")
        },
        **{
            name: Column(np.float64, saved=False)
            for name in ("inertia", "damping", "gain_p", "gain_d")
        },
        **{name: Column(np.int8, saved=False) for name in ("endless", "stiff")},
        "command": Column(np.int8, low=0, high=max(JointCommand)),
    }
    position: F8
    velocity: F8
    effort: F8
    value: F8
    low: F8
    high: F8
    inertia: F8
    damping: F8
    gain_p: F8
    gain_d: F8
    command: I1
    endless: I1
    stiff: I1

    @classmethod
    def keys(cls, robots: Mapping[str, RobotSpec], described: Described) -> set[str]:
        """Return the keys of the table's rows: one for each joint of a description file."""
        return {joint_key(joint) for joint in described.joints}

    def act(self, engine: Engine, dt: float) -> None:
        """Advance all joints by `dt` s.

        Parameters
        ----------
        engine : Engine
            Engine that has these joints.
        dt : float
            Duration of the step, s.
        """
        if len(self):
            self.advance(np.arange(len(self)), dt)

    def advance(self, rows: I8, dt: float) -> None:
        """Advance joints in substeps of at most `SUBSTEP` (s).

        Parameters
        ----------
        rows : (k,) int64
            Rows of the joints.
        dt : float
            Time, s.
        """
        # Joints without effort and velocity do not move, which is the usual case.
        idle = (
            (self.command[rows] == JointCommand.EFFORT)
            & (self.value[rows] == 0.0)
            & (self.velocity[rows] == 0.0)
        )

        # An effort of the previous step must not remain visible.
        self.effort[rows[idle]] = 0.0
        rows = rows[~idle]
        if not len(rows):
            return

        # The tolerance keeps rounding from adding a substep.
        count = max(1, math.ceil(dt / SUBSTEP - 1e-9))
        h = dt / count
        command, value, low, high = (
            self.command[rows],
            self.value[rows],
            self.low[rows],
            self.high[rows],
        )
        inertia, damping = self.inertia[rows], self.damping[rows]
        wraps = self.endless[rows] != 0

        # Masks instead of branches: all joints advance in one array operation.
        by_speed = command == JointCommand.VELOCITY
        to_place = command == JointCommand.POSITION
        stiff = to_place & (self.stiff[rows] != 0)
        free = to_place & ~stiff
        gains = (
            np.where(stiff, self.gain_p[rows], FREE_GAINS.p),
            np.where(stiff, self.gain_d[rows], FREE_GAINS.d),
        )
        position, velocity, effort = (
            self.position[rows],
            self.velocity[rows],
            np.zeros(len(rows)),
        )

        for _ in range(count):
            error = value - position
            # A continuous joint takes the shorter direction.
            error = np.where(wraps, _wrapped(error), error)
            effort = np.where(
                stiff, _force(gains, error, velocity, inertia, h, damping), value
            )

            # Implicit in the damping, so that large damping is stable.
            pushed = (velocity + h * effort / inertia) / (1.0 + h * damping / inertia)
            velocity = np.where(
                by_speed, value, np.where(free, _speed(gains, error, h), pushed)
            )
            velocity = np.clip(velocity, -MAX_VALUE, MAX_VALUE)
            position = position + h * velocity

            # A joint stops at its limit without bouncing.
            beyond = (position < low) | (position > high)
            position, velocity = (
                np.clip(position, low, high),
                np.where(beyond, 0.0, velocity),
            )

        self.position[rows], self.velocity[rows] = position, velocity
        # A joint that is driven by velocity has no effort of its own.
        self.effort[rows] = np.where(by_speed | free, 0.0, effort)


def _wrapped(angle: F8) -> F8:
    """Return angles wrapped to [−π, π), rad."""
    wrapped: F8 = np.remainder(angle + math.pi, TWO_PI) - math.pi
    return wrapped


def _force(
    gains: tuple[F8, F8], error: F8, velocity: F8, inertia: F8, h: float, damping: F8
) -> F8:
    """Return the effort of position controllers for many joints, as `Gains.force` does for one.

    Parameters
    ----------
    gains : tuple of two (k,) float64 arrays
        Gains p and d.
    error : (k,) float64
        Goal minus position, rad or m.
    velocity : (k,) float64
        Present velocity, rad/s or m/s.
    inertia : (k,) float64
        Moment of inertia, kg·m², or mass, kg.
    h : float
        Duration of a substep, s.
    damping : (k,) float64
        Viscous damping, N·m·s or N·s/m.

    Returns
    -------
    (k,) float64
        Effort, N·m or N.
    """
    p, d = gains
    # Implicit in position and velocity, so that stiff gains stay stable.
    ease = 1.0 + h * damping / inertia
    force: F8 = (p * error * ease - (d + h * p) * velocity) / (
        ease + h * (d + h * p) / inertia
    )
    return force


def _speed(gains: tuple[F8, F8], error: F8, h: float) -> F8:
    """Return the velocity of position controllers for many joints, as `Gains.speed` does for one.

    Parameters
    ----------
    gains : tuple of two (k,) float64 arrays
        Gains p and d.
    error : (k,) float64
        Goal minus position, rad or m.
    h : float
        Duration of a substep, s.

    Returns
    -------
    (k,) float64
        Velocity, rad/s or m/s.
    """
    speed: F8 = gains[0] * error / (1.0 + gains[1] + h * gains[0])
    return speed


def joint_key(spec: JointSpec) -> str:
    """Return the unique key of a joint: its parent and its name.

    Parameters
    ----------
    spec : JointSpec
        Description of the joint.
    """
    return f"{spec.parent} {spec.name}"


class Joint(Row[Joints]):
    """One joint of a description file, with its state and command.

    Attributes
    ----------
    position, velocity, effort : float
        Position, rad or m; velocity, rad/s or m/s; effort, N·m or N.

    Parameters
    ----------
    spec : JointSpec
        Description of the joint.
    table : Joints, optional
        Table that holds its columns. Default: a table of its own.
    body : int
        Row of the body that carries its child.
    """

    position: float = cell(float)
    velocity: float = cell(float)
    effort: float = cell(float)

    def __init__(
        self, spec: JointSpec, table: Joints | None = None, body: int = NOBODY
    ) -> None:
        self.spec = spec
        self._start = 0.0 if spec.unlimited else min(max(0.0, spec.low), spec.high)
        gains = spec.gains or FREE_GAINS
        super().__init__(
            Joints() if table is None else table,
            body,
            joint_key(spec),
            position=self._start,
            inertia=spec.inertia,
            damping=spec.damping,
            low=-math.inf if spec.unlimited else spec.low,
            high=math.inf if spec.unlimited else spec.high,
            endless=spec.unlimited and not spec.slides,
            stiff=spec.gains is not None,
            gain_p=gains.p,
            gain_d=gains.d,
        )

    def command(self, kind: JointCommand, value: float) -> None:
        """Set the command that the joint follows from the next step on.

        Parameters
        ----------
        kind : JointCommand
            Commanded quantity.
        value : float
            Effort, N·m or N; position, rad or m; or velocity, rad/s or m/s. A position
            beyond the limits means the limit.

        Raises
        ------
        CommandError
            The value is not finite, or beyond ±`MAX_VALUE`.
        """
        # The comparison is false for NaN, which is refused as well.
        if not abs(value) <= MAX_VALUE:
            raise CommandError(
                f"joint {self.spec.name}: expected a number within ±{MAX_VALUE:g}, "
                f"found {value:g}"
            )

        if kind == JointCommand.POSITION and not self.spec.unlimited:
            # A goal beyond the limits leads to the limit, as on a real joint.
            value = min(max(value, self.spec.low), self.spec.high)
        self.write(command=int(kind), value=value)

    def reset(self) -> None:
        """Return the joint to its initial position, at rest and without a command."""
        self.write(
            position=self._start,
            velocity=0.0,
            effort=0.0,
            command=int(JointCommand.EFFORT),
            value=0.0,
        )

    def advance(self, dt: float) -> None:
        """Advance this joint alone by some time.

        Parameters
        ----------
        dt : float
            Time, s.
        """
        self.table.advance(np.array([self.number]), dt)

    @property
    def pose(self) -> Pose:
        """Pose of the joint's child body in the frame of its parent."""
        spec = self.spec
        moved = Pose()
        if spec.planar:
            # A joint out of the plane does not move its child in a planar world.
            moved = (
                Pose(self.position)
                if spec.slides
                else Pose(0.0, 0.0, wrap_angle(self.position))
            )

        return compose(compose(spec.at, moved), inverse(spec.child_at))


__all__ = ["Joint", "JointCommand", "Joints", "joint_key"]
