"""Commands to bodies: values that are queued and take effect at the next step.

All are in SI units: m, rad, s. `apply` writes a command into the state; only the step
calls it (design §2, rule 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.odometry import BEFORE_ALL_TICKS, draw_row_errors
from botyard.engine.layout import (
    F8,
    I8,
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
    """Command that can be queued for a body."""

    def apply(self, state: State, row: int) -> None:
        """Write the command into row `row` of `state`."""
        ...


def check_finite(what: str, *values: float) -> None:
    """Raise CommandError unless all values are finite numbers."""
    for value in values:
        try:
            finite = math.isfinite(value)
        # The value is not a number, is an array, or is an int beyond all floats.
        except (TypeError, ValueError, OverflowError):
            finite = False

        if not finite:
            raise CommandError(
                f"{what}: expected finite numbers, found {shown(repr(value))}"
            )


def check_pose(pose: Pose) -> None:
    """Refuse a true pose that is not finite, or farther out than `MAX_COORDINATE`.

    Raises
    ------
    CommandError
        States the pose found.
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
    """
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
            0.0 if v is None else v,
            0.0 if w is None else w,
            0.0 if vy is None else vy,
        )

    def apply(self, state: State, row: int) -> None:
        """Set the targets."""
        if not may_move(state, row):
            return
        if self.v is not None:
            state.mode_x[row] = Mode.VELOCITY
            state.target[row, 0] = self.v

        if self.vy is not None:
            state.target[row, 1] = self.vy
        if self.w is not None:
            state.mode_a[row] = Mode.VELOCITY
            state.target[row, 2] = self.w

        _engage(state, row)


@dataclass(frozen=True, slots=True)
class SetVelocities:
    """`SetVelocity` for many bodies at once; axes with None keep their targets.

    Attributes
    ----------
    rows : (n,) int64 array
        Rows of the bodies, each at most once.
    v, w, vy : (n,) float64 array, optional
        As in `SetVelocity`.
    """

    rows: I8
    v: F8 | None = None
    w: F8 | None = None
    vy: F8 | None = None

    def __post_init__(self) -> None:
        for values in (self.v, self.w, self.vy):
            # The sum of squares is the fastest test that passes usual values.
            if (
                values is not None
                and not math.isfinite(np.dot(values, values))
                and not np.isfinite(values).all()
            ):
                at = int(np.flatnonzero(~np.isfinite(values))[0])
                raise CommandError(
                    f"velocity: expected finite numbers, found {values[at]} at "
                    f"index {at}"
                )

    def checked(self, count: int) -> SetVelocities:
        """Return a copy after a check of rows for `count` bodies.

        Raises
        ------
        CommandError
            Rows are not whole numbers, are out of range or given twice, or another array has
            another length.
        """
        rows = np.array(self.rows)
        # Commands of clients reach this check: rows index the state without further
        # tests.
        fits = rows.ndim == 1 and (
            not rows.size
            or (rows.dtype.kind in "iu" and rows.min() >= 0 and rows.max() < count)
        )
        if not fits or (
            rows.size > 1
            and not (np.diff(rows) > 0).all()
            and len(np.unique(rows)) < len(rows)
        ):
            raise CommandError(
                f"rows: expected rows of {count} bodies, each at most once"
            )

        arrays = [
            None if a is None else np.array(a, np.float64)
            for a in (self.v, self.w, self.vy)
        ]
        if any(a is not None and a.shape != rows.shape for a in arrays):
            raise CommandError(
                f"velocity: expected {len(rows)} numbers, as many as rows"
            )

        return SetVelocities(rows.astype(np.int64, copy=False), *arrays)

    def for_body(self, index: int) -> SetVelocity:
        """Return the command for the body ``rows[index]`` alone."""
        return SetVelocity(
            *(None if a is None else float(a[index]) for a in (self.v, self.w, self.vy))
        )

    def without(self, row: int) -> SetVelocities:
        """Return the command without the body in `row`."""
        keep = self.rows != row
        return SetVelocities(
            self.rows[keep],
            *(None if a is None else a[keep] for a in (self.v, self.w, self.vy)),
        )

    def renumbered(self, removed: int) -> SetVelocities:
        """Return the command after the removal of a body's row: later rows move up."""
        left = self.without(removed)
        return replace(left, rows=left.rows - (left.rows > removed))

    def apply(self, state: State, rows_by_themselves: I8) -> None:
        """Set the targets of all rows except `rows_by_themselves`."""
        rows = self.rows
        # Consecutive rows are a slice of the state, which takes a third of the time of
        # an index array.
        n = len(rows)
        first = int(rows[0]) if n else 0
        where: I8 | slice = slice(first, first + n) if _are_consecutive(rows) else rows
        which: NDArray[np.bool_] | slice = slice(None)
        # Searches in bytes take a third of the time of NumPy's for few bodies.
        if (
            len(rows_by_themselves)
            or b"\0" in state.motors[where].tobytes()
            or state.estop[where].tobytes().count(0) < n
        ):
            may = (state.motors[where] != 0) & (state.estop[where] == 0)
            may &= ~np.isin(rows, rows_by_themselves)
            which, where = may, rows[may]
        for axis, values, mode in (
            (0, self.v, state.mode_x),
            (1, self.vy, None),
            (2, self.w, state.mode_a),
        ):
            if values is not None:
                state.target[where, axis] = values[which]
                if mode is not None:
                    mode[where] = Mode.VELOCITY

        control = state.control[where]
        if control.tobytes().count(NO_CONTROL) < len(control):
            state.control[rows[which][control != NO_CONTROL]] = Control.MOTORS


def _are_consecutive(rows: I8) -> bool:
    """Return whether rows follow one another; cached for arrays that stay."""
    global _consecutive
    known, answer = _consecutive
    if known is not rows:
        answer = np.array_equal(rows, rows[:1] + np.arange(len(rows)))
        # Others may change the array.
        if not rows.flags.writeable:
            _consecutive = rows, answer
    return answer


_consecutive: tuple[I8, bool] = np.zeros(0, np.int64), True
"""Latest array that nothing writes to, and the answer for it."""


@dataclass(frozen=True, slots=True)
class MoveBy:
    """Drive straight by `distance` m, signed, measured by odometry, and stop there."""

    distance: float

    def __post_init__(self) -> None:
        check_finite("distance", self.distance)

    def apply(self, state: State, row: int) -> None:
        """Set the remaining distance."""
        if may_move(state, row):
            state.mode_x[row] = Mode.POSITION
            state.target[row, 0] = self.distance
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class TurnTo:
    """Turn to `heading`, rad, in the odometry frame, in the shorter direction."""

    heading: float

    def __post_init__(self) -> None:
        check_finite("heading", self.heading)

    def apply(self, state: State, row: int) -> None:
        """Set the heading target."""
        if may_move(state, row):
            state.mode_a[row] = Mode.POSITION
            state.target[row, 2] = wrap(self.heading)
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class TurnBy:
    """Turn by `angle`, rad, relative to the heading when the command takes effect."""

    angle: float

    def __post_init__(self) -> None:
        check_finite("angle", self.angle)

    def apply(self, state: State, row: int) -> None:
        """Set the heading target."""
        if may_move(state, row):
            state.mode_a[row] = Mode.POSITION
            state.target[row, 2] = wrap(float(state.odom[row, 2]) + self.angle)
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop with the normal deceleration; ends distance moves and heading targets."""

    def apply(self, state: State, row: int) -> None:
        """Clear the targets; an emergency stop continues."""
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
        state.estop[row] = 1


@dataclass(frozen=True, slots=True)
class Halt:
    """Be at rest at once, without a ramp, as at the end of a client's session."""

    def apply(self, state: State, row: int) -> None:
        """Clear targets and velocities."""
        _engage(state, row)
        _clear_targets(state, row)
        state.vel[row] = 0.0
        state.estop[row] = 0
        state.stall[row] = 0


@dataclass(frozen=True, slots=True)
class EnableMotors:
    """Switch the motors on or off.

    Off also stops the robot and clears its targets.
    """

    on: bool

    def apply(self, state: State, row: int) -> None:
        """Set the flag."""
        state.motors[row] = int(self.on)
        if not self.on:
            _engage(state, row)
            _clear_targets(state, row)


@dataclass(frozen=True, slots=True)
class SetLimits:
    """Lower or restore the speed limits, up to the model's own; axes with None stay.

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
        """Set the limits."""
        for axis, value in ((0, self.v), (1, self.vy), (2, self.w)):
            if value is not None:
                state.max_vel[row, axis] = min(
                    abs(value), float(state.top_vel[row, axis])
                )

        if self.w is not None:
            # SETRV also caps the rate of heading targets (pioneer-protocol §11.1).
            state.heading_speed[row] = state.max_vel[row, 2]


@dataclass(frozen=True, slots=True)
class SetRamp:
    """Set acceleration or deceleration of one axis (0 x, 1 y, 2 rotation).

    They are in m/s² or rad/s², not negative; 0 is immediate.
    """

    axis: int
    accel: float | None = None
    decel: float | None = None

    def __post_init__(self) -> None:
        check_finite("ramp", *(x for x in (self.accel, self.decel) if x is not None))

    def apply(self, state: State, row: int) -> None:
        """Set the ramp."""
        if self.accel is not None:
            state.accel[row, self.axis] = abs(self.accel)
        if self.decel is not None:
            state.decel[row, self.axis] = abs(self.decel)


@dataclass(frozen=True, slots=True)
class RestoreLimits:
    """Restore speed limits and ramps of the model."""

    accel: Axes
    decel: Axes
    heading_speed: float

    def apply(self, state: State, row: int) -> None:
        """Set all limits."""
        state.max_vel[row] = state.top_vel[row]
        state.accel[row] = self.accel.as_tuple()
        state.decel[row] = self.decel.as_tuple()
        state.heading_speed[row] = self.heading_speed


@dataclass(frozen=True, slots=True)
class SetOdometry:
    """Set the odometry pose; the true pose stays."""

    pose: Pose = Pose()

    def __post_init__(self) -> None:
        check_finite("odometry pose", *self.pose)

    def apply(self, state: State, row: int) -> None:
        """Set the odometry."""
        state.odom[row] = (self.pose.x, self.pose.y, wrap(self.pose.th))
        state.odom_frame[row] = compose(
            Pose(*state.pose[row].tolist()), inverse(self.pose)
        )


@dataclass(frozen=True, slots=True)
class SetPose:
    """Teleport the body to a true pose, also onto other bodies (COL, MOT-014).

    Odometry stays.
    """

    pose: Pose

    def __post_init__(self) -> None:
        check_pose(self.pose)

    def apply(self, state: State, row: int) -> None:
        """Set the pose."""
        state.pose[row] = (self.pose.x, self.pose.y, wrap(self.pose.th))
        _put(state, row)


@dataclass(frozen=True, slots=True)
class SetPoseAxis:
    """Set one coordinate of the true pose (0 x, 1 y, 2 heading; m, m, rad).

    The body may overlap others. Odometry stays.
    """

    axis: int
    value: float

    def __post_init__(self) -> None:
        check_pose(Pose(self.value, 0.0, 0.0))

    def apply(self, state: State, row: int) -> None:
        """Set the coordinate."""
        state.pose[row, self.axis] = wrap(self.value) if self.axis == 2 else self.value
        _put(state, row)


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold the body in place, or release it (MOT-015).

    A held body stands still with any targets, and continues after the release.
    """

    on: bool

    def apply(self, state: State, row: int) -> None:
        """Set the flag."""
        state.held[row] = int(self.on)


@dataclass(frozen=True, slots=True)
class SetVisible:
    """Set which sensors see the body, and whether robots collide with it.

    `Visible.NONE` makes it a ghost: invisible and without collisions.
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
        if int(state.err_mode[row]) == OdometryErrorMode.PERFECT:
            return
        set_error_mode(state, row, self.mode, self.seed)


def set_error_mode(state: State, row: int, mode: OdometryErrorMode, seed: int) -> None:
    """Set the mode of a robot's odometry errors, and its present errors.

    The mode decides when errors are drawn (pioneer-protocol §11.4).
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
            BEFORE_ALL_TICKS,
        )


def _put(state: State, row: int) -> None:
    """Clear contacts after a teleport, and stop a body with mass."""
    state.contact[row] = 0
    if has_mass(state, row):
        state.vel[row] = 0.0


def has_mass(state: State, row: int) -> bool:
    """Return whether a body has mass."""
    return bool(state.control[row] != NO_CONTROL)


def _engage(state: State, row: int) -> None:
    """Return the control of a body with mass to its motors."""
    if has_mass(state, row):
        state.control[row] = Control.MOTORS


def _clear_targets(state: State, row: int) -> None:
    state.mode_x[row] = Mode.VELOCITY
    state.mode_a[row] = Mode.VELOCITY
    state.target[row] = 0.0
