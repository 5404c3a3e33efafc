"""Commands to bodies: values that are queued and take effect at the next step.

All are in SI units: m, rad, s. `apply` writes a command into the state. Only the step
calls it, because only the engine writes the state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.odometry import BEFORE_ALL_TICKS, draw_row_errors
from botyard.engine.layout import (
    NO_CONTROL,
    Control,
    Mode,
    OdometryErrorMode,
    State,
)
from botyard.errors import CommandError
from botyard.geometry import Pose, compose, inverse
from botyard.model.kinematics import Axes
from botyard.model.obstacles import Visible
from botyard.names import shown

MAX_COORDINATE = 1e7
"""Largest coordinate of a true pose, m: the limit of bins and of protocols' integers.
"""


class Command(Protocol):
    """Command to a body, which is queued until the next step."""

    def apply(self, state: State, row: int) -> None:
        """Write the command into row `row` of `state`.

        Parameters
        ----------
        state : State
            State of all bodies. In-place: the row.
        row : int
            Row of the body.
        """
        ...


def check_finite(what: str, *values: float) -> None:
    """Refuse values that are not finite numbers.

    Parameters
    ----------
    what : str
        Name of the quantity, with which the message starts.
    *values : float
        Values in any unit. Callers may pass any object, as commands come from clients.

    Raises
    ------
    CommandError
        A value is not finite, or not a number.
    """
    for value in values:
        try:
            # A NaN in a target would spread through poses to all other bodies.
            finite = math.isfinite(value)
        # The conversion fails if the value is not a number, is an array, or is an int
        # beyond all floats.
        except (TypeError, ValueError, OverflowError):
            finite = False

        if not finite:
            raise CommandError(
                f"{what}: expected finite numbers, found {shown(repr(value))}"
            )


def check_pose(pose: Pose) -> None:
    """Refuse a true pose that is not finite, or farther out than `MAX_COORDINATE`.

    Parameters
    ----------
    pose : Pose
        True pose: m, m, rad. The heading may be any finite angle.

    Raises
    ------
    CommandError
        A number is not finite, or a coordinate is beyond the bound.
    """
    check_finite("pose", *pose)
    if max(abs(pose.x), abs(pose.y)) > MAX_COORDINATE:
        raise CommandError(
            f"pose: expected coordinates within ±{MAX_COORDINATE:g} m, found "
            f"x={pose.x:g}, y={pose.y:g}"
        )


def may_move(state: State, row: int) -> bool:
    """Return whether motion commands take effect.

    They do with motors on and no emergency stop in progress (pioneer-protocol §4.1).

    Parameters
    ----------
    state : State
        State of all bodies.
    row : int
        Row of the body.
    """
    # Return a bool, because flags are integers: kernels read them from arrays.
    return bool(state.motors[row]) and not state.estop[row]


@dataclass(frozen=True, slots=True)
class SetVelocity:
    """Drive with a velocity until the next command; axes with None keep their target.

    Attributes
    ----------
    v : float, optional
        Forward, m/s; ends a distance move.
    w : float, optional
        Turn rate, rad/s; ends a heading target.
    vy : float, optional
        Leftward, m/s; for omnidirectional robots only.
    """

    v: float | None = None
    w: float | None = None
    vy: float | None = None

    def __post_init__(self) -> None:
        v, w, vy = self.v, self.w, self.vy
        check_finite(
            "velocity",
            # 0 stands for an axis that is not commanded, and is always valid.
            0.0 if v is None else v,
            0.0 if w is None else w,
            0.0 if vy is None else vy,
        )

    def apply(self, state: State, row: int) -> None:
        """Set the targets of the given axes, unless the robot may not move."""
        if not may_move(state, row):
            return
        if self.v is not None:
            # A velocity ends a distance move of the same axis only: a heading target
            # continues.
            state.mode_x[row] = Mode.VELOCITY
            state.target[row, 0] = self.v

        if self.vy is not None:
            state.target[row, 1] = self.vy
        if self.w is not None:
            state.mode_a[row] = Mode.VELOCITY
            state.target[row, 2] = self.w

        _engage(state, row)


@dataclass(frozen=True, slots=True)
class MoveBy:
    """Drive straight by a distance, measured by odometry, and stop there.

    Attributes
    ----------
    distance : float
        Distance, m; a negative one drives backwards.
    """

    distance: float

    def __post_init__(self) -> None:
        check_finite("distance", self.distance)

    def apply(self, state: State, row: int) -> None:
        """Set the remaining distance, unless the robot may not move."""
        if may_move(state, row):
            state.mode_x[row] = Mode.POSITION
            state.target[row, 0] = self.distance
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class TurnTo:
    """Turn to a heading in the odometry frame, in the shorter direction.

    Attributes
    ----------
    heading : float
        Heading, rad, counter-clockwise; any finite angle.
    """

    heading: float

    def __post_init__(self) -> None:
        check_finite("heading", self.heading)

    def apply(self, state: State, row: int) -> None:
        """Set the heading target, unless the robot may not move."""
        if may_move(state, row):
            state.mode_a[row] = Mode.POSITION
            state.target[row, 2] = wrap(self.heading)
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class TurnBy:
    """Turn by an angle relative to the heading when the command takes effect.

    Attributes
    ----------
    angle : float
        Angle, rad, counter-clockwise. The robot takes the shorter direction: angles
        beyond π do not give several turns.
    """

    angle: float

    def __post_init__(self) -> None:
        check_finite("angle", self.angle)

    def apply(self, state: State, row: int) -> None:
        """Set the heading target, unless the robot may not move."""
        if may_move(state, row):
            state.mode_a[row] = Mode.POSITION
            state.target[row, 2] = wrap(float(state.odom[row, 2]) + self.angle)
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop with the normal deceleration; ends distance moves and heading targets."""

    def apply(self, state: State, row: int) -> None:
        """Clear the targets; an emergency stop continues."""
        # A stop must also end a force that acts from outside.
        _engage(state, row)
        if not state.estop[row]:
            _clear_targets(state, row)


@dataclass(frozen=True, slots=True)
class EmergencyStop:
    """Stop with the highest deceleration.

    Motion commands are ignored until the robot is at rest (MOT-010).
    """

    def apply(self, state: State, row: int) -> None:
        """Clear the targets and latch the stop."""
        _engage(state, row)
        _clear_targets(state, row)
        # The stop is latched, because further commands of this step may follow in the
        # queue.
        state.estop[row] = 1


@dataclass(frozen=True, slots=True)
class Halt:
    """Be at rest at once, without a ramp, as at the end of a client's session."""

    def apply(self, state: State, row: int) -> None:
        """Clear targets and velocities."""
        _engage(state, row)
        _clear_targets(state, row)
        state.vel[row] = 0.0
        # The next session must find a robot that obeys.
        state.estop[row] = 0
        state.stall[row] = 0


@dataclass(frozen=True, slots=True)
class EnableMotors:
    """Switch the motors on or off.

    Off also stops the robot and clears its targets.

    Attributes
    ----------
    on : bool
        Whether the motors are on.
    """

    on: bool

    def apply(self, state: State, row: int) -> None:
        """Switch the motors; off also clears the targets."""
        state.motors[row] = int(self.on)
        # Switching on keeps the targets at 0: the robot must not jump.
        if not self.on:
            _engage(state, row)
            _clear_targets(state, row)


@dataclass(frozen=True, slots=True)
class SetLimits:
    """Lower or restore the speed limits, up to the model's own; axes with None keep theirs.

    Attributes
    ----------
    v, vy : float, optional
        Forward and lateral, m/s.
    w : float, optional
        Rotation, rad/s; also the rate of heading targets.
    """

    v: float | None = None
    vy: float | None = None
    w: float | None = None

    def __post_init__(self) -> None:
        check_finite(
            "speed limit", *(x for x in (self.v, self.vy, self.w) if x is not None)
        )

    def apply(self, state: State, row: int) -> None:
        """Set the limits; a limit above the model's own means the model's."""
        for axis, value in ((0, self.v), (1, self.vy), (2, self.w)):
            if value is not None:
                # Clients send signed limits; only the magnitude counts.
                state.max_vel[row, axis] = min(
                    abs(value), float(state.top_vel[row, axis])
                )

        if self.w is not None:
            # SETRV also caps the rate of heading targets (pioneer-protocol §11.1).
            state.heading_speed[row] = state.max_vel[row, 2]


@dataclass(frozen=True, slots=True)
class SetRamp:
    """Set acceleration or deceleration of one axis.

    Attributes
    ----------
    axis : int
        0 x, 1 y, 2 rotation.
    accel, decel : float, optional
        Ramps, m/s² or rad/s². 0 is immediate; the sign does not matter. None leaves one
        unchanged.
    """

    axis: int
    accel: float | None = None
    decel: float | None = None

    def __post_init__(self) -> None:
        check_finite("ramp", *(x for x in (self.accel, self.decel) if x is not None))

    def apply(self, state: State, row: int) -> None:
        """Set the acceleration, the deceleration, or both."""
        if self.accel is not None:
            # The kernel expects positive ramps, and applies the sign itself.
            state.accel[row, self.axis] = abs(self.accel)
        if self.decel is not None:
            state.decel[row, self.axis] = abs(self.decel)


@dataclass(frozen=True, slots=True)
class RestoreLimits:
    """Restore speed limits and ramps of the model.

    Attributes
    ----------
    accel, decel : Axes
        Ramps of the model: m/s², m/s², rad/s².
    heading_speed : float
        Limit of the turn rate of heading targets, rad/s.
    """

    accel: Axes
    decel: Axes
    heading_speed: float

    def apply(self, state: State, row: int) -> None:
        """Set all limits and ramps of the model."""
        state.max_vel[row] = state.top_vel[row]
        state.accel[row] = self.accel.as_tuple()
        state.decel[row] = self.decel.as_tuple()
        state.heading_speed[row] = self.heading_speed


@dataclass(frozen=True, slots=True)
class SetOdometry:
    """Set the odometry pose; the true pose stays unchanged.

    Attributes
    ----------
    pose : Pose
        New pose in the odometry frame: m, m, rad.
    """

    pose: Pose = Pose()

    def __post_init__(self) -> None:
        check_finite("odometry pose", *self.pose)

    def apply(self, state: State, row: int) -> None:
        """Set the odometry; the origin of its frame moves, and the true pose stays unchanged."""
        # Heading is wrapped, as turns compare it with wrapped targets.
        state.odom[row] = (self.pose.x, self.pose.y, wrap(self.pose.th))
        # The frame moves so that the new odometry and the true pose describe the same
        # place.
        state.odom_frame[row] = compose(
            Pose(*state.pose[row].tolist()), inverse(self.pose)
        )


@dataclass(frozen=True, slots=True)
class SetPose:
    """Teleport the body to a true pose, also onto other bodies (COL, MOT-014).

    Odometry stays unchanged.

    Attributes
    ----------
    pose : Pose
        True pose in the frame of the world: m, m, rad.
    """

    pose: Pose

    def __post_init__(self) -> None:
        check_pose(self.pose)

    def apply(self, state: State, row: int) -> None:
        """Set the true pose, and stop a body with mass."""
        state.pose[row] = (self.pose.x, self.pose.y, wrap(self.pose.th))
        _put(state, row)


@dataclass(frozen=True, slots=True)
class SetPoseAxis:
    """Set one coordinate of the true pose (0 x, 1 y, 2 heading; m, m, rad).

    The body may overlap others. Odometry stays unchanged.

    Attributes
    ----------
    axis : int
        0 x, 1 y, 2 heading.
    value : float
        New coordinate, m or rad.
    """

    axis: int
    value: float

    def __post_init__(self) -> None:
        # One check serves all axes, since a heading beyond the bound makes no sense
        # either.
        check_pose(Pose(self.value, 0.0, 0.0))

    def apply(self, state: State, row: int) -> None:
        """Set the coordinate of the true pose."""
        state.pose[row, self.axis] = wrap(self.value) if self.axis == 2 else self.value
        _put(state, row)


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold the body in place, or release it (MOT-015).

    A held body stands still whatever its targets are. It continues after the release.

    Attributes
    ----------
    on : bool
        Whether the body is held.
    """

    on: bool

    def apply(self, state: State, row: int) -> None:
        """Mark the body as held, or as released."""
        state.held[row] = int(self.on)


@dataclass(frozen=True, slots=True)
class SetVisible:
    """Set which sensors see the body, and whether robots collide with it.

    `Visible.NONE` makes it a ghost: invisible and without collisions.

    Attributes
    ----------
    mask : Visible
        Classes of sensors that see the body, and `OBSTACLE` if it stops others.
    """

    mask: Visible

    def apply(self, state: State, row: int) -> None:
        """Set the class mask.

        A body with mass can still be pushed, and stops no other body.
        """
        is_heavy = has_mass(state, row)
        state.mask[row] = int(self.mask.with_mass() if is_heavy else self.mask)


@dataclass(frozen=True, slots=True)
class SetOdometryErrors:
    """Set when the errors of odometry are drawn.

    Attributes
    ----------
    mode : OdometryErrorMode
        New mode.
    seed : int
        Seed of the run, 64 bits: `RANDOM_INIT` draws the same errors as at the creation of
        the body.
    """

    mode: OdometryErrorMode
    seed: int

    def apply(self, state: State, row: int) -> None:
        """Set mode and errors; odometry that the model makes perfect stays so."""
        # A client must not spoil odometry that the model defines as exact.
        if int(state.err_mode[row]) == OdometryErrorMode.PERFECT:
            return
        set_error_mode(state, row, self.mode, self.seed)


def set_error_mode(state: State, row: int, mode: OdometryErrorMode, seed: int) -> None:
    """Set the mode of a robot's odometry errors, and its present errors.

    The mode decides when errors are drawn (pioneer-protocol §11.4).

    Parameters
    ----------
    state : State
        State of all bodies. In-place: `err_mode` and `err` of the row.
    row : int
        Row of the robot.
    mode : OdometryErrorMode
        New mode.
    seed : int
        Seed of the run, 64 bits, for `RANDOM_INIT`.
    """
    state.err_mode[row] = int(mode)
    state.err[row] = 0.0
    if mode is OdometryErrorMode.CONSTANT:
        # A symmetric range stems from one constant, which is its upper end. Any other
        # range gives its mean.
        low, high = state.err_lo[row], state.err_hi[row]
        state.err[row] = np.where(low == -high, high, (low + high) / 2.0)
    elif mode is OdometryErrorMode.RANDOM_INIT:
        draw_row_errors(
            state.uid,
            state.err_lo,
            state.err_hi,
            state.err,
            row,
            np.uint64(seed),
            # Use the number of a draw that no step makes, so that the errors do not
            # repeat errors of a step.
            BEFORE_ALL_TICKS,
        )


def _put(state: State, row: int) -> None:
    """Clear contacts after a teleport, and stop a body with mass."""
    state.contact[row] = 0
    # The velocity belongs to the motion that the teleport interrupts.
    if has_mass(state, row):
        state.vel[row] = 0.0


def has_mass(state: State, row: int) -> bool:
    """Return whether a body has mass.

    Parameters
    ----------
    state : State
        State of all bodies.
    row : int
        Row of the body.
    """
    return bool(state.control[row] != NO_CONTROL)


def _engage(state: State, row: int) -> None:
    """Let the motors of a body with mass drive it again, in place of a force or a goal pose."""
    if has_mass(state, row):
        # Give control back to the motors: a force or goal pose would fight the new
        # command.
        state.control[row] = Control.MOTORS


def _clear_targets(state: State, row: int) -> None:
    state.mode_x[row] = Mode.VELOCITY
    state.mode_a[row] = Mode.VELOCITY
    state.target[row] = 0.0
