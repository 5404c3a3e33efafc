"""Commands to bodies. They are values, which are queued and take effect at the
beginning of the next step.

All are in SI units: m, rad, s. `apply` writes a command into the state; only the step
calls it (design §2, rule 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from botyard.engine.kernels.motion import wrap
from botyard.engine.kernels.odometry import BEFORE_ALL_TICKS, draw_row_errors
from botyard.engine.layout import F8, I8, Control, Mode, OdometryErrorMode, State
from botyard.errors import CommandError
from botyard.geometry import Pose, compose, inverse
from botyard.model.kinematics import Axes, Drive
from botyard.model.obstacles import Visible
from botyard.names import shown

_NO_MASS: Final = int(Control.NONE)
"""A plain number: comparing a NumPy scalar with a member of an enumeration takes 4 µs,
as long as all the rest of a command.
"""
_NO_DRIVE: Final = int(Drive.NONE)
MAX_COORDINATE = 1e7
"""Largest coordinate of a true pose, m; bins and the integers of protocols are not made
for more.
"""


class Command(Protocol):
    """Anything that can be queued for a body."""

    def apply(self, state: State, row: int) -> None:
        """Write the command into row `row` of `state`."""
        ...


def _check_finite(what: str, *values: float) -> None:
    for value in values:
        try:
            finite = math.isfinite(value)
        except (
            TypeError,
            ValueError,
            OverflowError,
        ):  # no number at all, an array, or an int beyond all floats
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
        With what was found.
    """
    _check_finite("pose", *pose)
    if max(abs(pose.x), abs(pose.y)) > MAX_COORDINATE:
        raise CommandError(
            f"pose: expected coordinates within ±{MAX_COORDINATE:g} m, found "
            f"x={pose.x:g}, y={pose.y:g}"
        )


def _may_move(state: State, row: int) -> bool:
    """Motion commands count only with motors on and no emergency stop in progress
    (pioneer-protocol §4.1).
    """
    return bool(state.motors[row]) and not state.estop[row]


@dataclass(frozen=True, slots=True)
class SetVelocity:
    """Drive with a velocity until the next command; axes that are None keep their
    target.

    Attributes
    ----------
    v : float, optional
        Forward, m/s; ends a distance move.
    w : float, optional
        Turn rate, rad/s; ends a heading target.
    vy : float, optional
        Leftward, m/s; only omnidirectional robots obey.
    """

    v: float | None = None
    w: float | None = None
    vy: float | None = None

    def __post_init__(self) -> None:
        v, w, vy = self.v, self.w, self.vy
        _check_finite(
            "velocity",
            0.0 if v is None else v,
            0.0 if w is None else w,
            0.0 if vy is None else vy,
        )

    def apply(self, state: State, row: int) -> None:
        """Set the targets."""
        if not _may_move(state, row):
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
    """`SetVelocity` for many bodies at once; axes that are None keep their targets.

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
            if values is not None and not np.isfinite(values).all():
                at = int(np.flatnonzero(~np.isfinite(values))[0])
                raise CommandError(
                    f"velocity: expected finite numbers, found {values[at]} at index {at}"
                )

    def checked(self, count: int) -> SetVelocities:
        """A copy, if its rows are those of `count` bodies.

        Raises
        ------
        CommandError
            Rows are not whole numbers, are out of range or given twice, or other arrays
            have another length.
        """
        rows = np.array(self.rows)
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
        """The command for the body ``rows[index]`` by itself."""
        return SetVelocity(
            *(None if a is None else float(a[index]) for a in (self.v, self.w, self.vy))
        )

    def without(self, row: int) -> SetVelocities:
        """The command for all of its bodies but the one in `row`."""
        keep = self.rows != row
        return SetVelocities(
            self.rows[keep],
            *(None if a is None else a[keep] for a in (self.v, self.w, self.vy)),
        )

    def renumbered(self, removed: int) -> SetVelocities:
        """The command after the body in row `removed` was removed: later rows move up."""
        left = self.without(removed)
        return replace(left, rows=left.rows - (left.rows > removed))

    def apply(self, state: State, rows_by_themselves: I8) -> None:
        """Set the targets of all rows but those in `rows_by_themselves`."""
        rows = self.rows
        # consecutive rows are a slice of the state, which takes a third of the time of
        # an index array
        first = int(rows[0]) if len(rows) else 0
        where: I8 | slice = (
            slice(first, first + len(rows))
            if np.array_equal(rows, first + np.arange(len(rows)))
            else rows
        )
        may = (state.motors[where] != 0) & (state.estop[where] == 0)
        if len(rows_by_themselves):
            may &= ~np.isin(rows, rows_by_themselves)
        which: NDArray[np.bool_] | slice = slice(None)
        if not may.all():
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

        massive = state.control[where] != _NO_MASS
        state.control[rows[which][massive]] = Control.MOTORS


@dataclass(frozen=True, slots=True)
class MoveBy:
    """Drive straight by `distance` m, signed, measured by odometry, and stop there."""

    distance: float

    def __post_init__(self) -> None:
        _check_finite("distance", self.distance)

    def apply(self, state: State, row: int) -> None:
        """Set the distance that remains."""
        if _may_move(state, row):
            state.mode_x[row] = Mode.POSITION
            state.target[row, 0] = self.distance
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class TurnTo:
    """Turn to `heading`, rad, in the odometry frame, the short way."""

    heading: float

    def __post_init__(self) -> None:
        _check_finite("heading", self.heading)

    def apply(self, state: State, row: int) -> None:
        """Set the heading target."""
        if _may_move(state, row):
            state.mode_a[row] = Mode.POSITION
            state.target[row, 2] = wrap(self.heading)
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class TurnBy:
    """Turn by `angle`, rad, relative to the heading at the moment the command takes
    effect.
    """

    angle: float

    def __post_init__(self) -> None:
        _check_finite("angle", self.angle)

    def apply(self, state: State, row: int) -> None:
        """Set the heading target."""
        if _may_move(state, row):
            state.mode_a[row] = Mode.POSITION
            state.target[row, 2] = wrap(float(state.odom[row, 2]) + self.angle)
            _engage(state, row)


@dataclass(frozen=True, slots=True)
class Stop:
    """Come to rest with the normal deceleration; ends distance moves and heading
    targets.
    """

    def apply(self, state: State, row: int) -> None:
        """Clear the targets (an emergency stop goes on)."""
        _engage(state, row)
        if not state.estop[row]:
            _clear_targets(state, row)


@dataclass(frozen=True, slots=True)
class EmergencyStop:
    """Stop as hard as possible; motion commands are ignored until the robot is at rest
    (MOT-010).
    """

    def apply(self, state: State, row: int) -> None:
        """Clear the targets and latch."""
        _engage(state, row)
        _clear_targets(state, row)
        state.estop[row] = 1


@dataclass(frozen=True, slots=True)
class Halt:
    """Be at rest at once, without a ramp (what the end of a client's session does)."""

    def apply(self, state: State, row: int) -> None:
        """Clear targets and velocities."""
        _engage(state, row)
        _clear_targets(state, row)
        state.vel[row] = 0.0
        state.estop[row] = 0
        state.stall[row] = 0


@dataclass(frozen=True, slots=True)
class EnableMotors:
    """Switch the motors on or off; off brings the robot to rest and forgets its
    targets.
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
    """Lower (or restore) the speed limits; axes that are None stay. Never above the
    model's own.

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
        _check_finite(
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
            state.heading_speed[row] = state.max_vel[row, 2]


@dataclass(frozen=True, slots=True)
class SetRamp:
    """Set acceleration or deceleration of one axis (0 x, 1 y, 2 rotation): m/s² or
    rad/s², not negative; 0 is immediate.
    """

    axis: int
    accel: float | None = None
    decel: float | None = None

    def __post_init__(self) -> None:
        _check_finite("ramp", *(x for x in (self.accel, self.decel) if x is not None))

    def apply(self, state: State, row: int) -> None:
        """Set the ramp."""
        if self.accel is not None:
            state.accel[row, self.axis] = abs(self.accel)
        if self.decel is not None:
            state.decel[row, self.axis] = abs(self.decel)


@dataclass(frozen=True, slots=True)
class RestoreLimits:
    """Speed limits and ramps of the model, as at creation."""

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
        _check_finite("odometry pose", *self.pose)

    def apply(self, state: State, row: int) -> None:
        """Set the odometry."""
        state.odom[row] = (self.pose.x, self.pose.y, wrap(self.pose.th))
        state.odom_frame[row] = compose(
            Pose(*state.pose[row].tolist()), inverse(self.pose)
        )


@dataclass(frozen=True, slots=True)
class SetPose:
    """Teleport the body to a true pose, whatever stands there; odometry stays (COL,
    MOT-014).
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
    """Set one coordinate of the true pose (0 x, 1 y, 2 heading; m, m, rad), whatever
    stands there; odometry stays.
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
    """Hold the body by hand, or let go: while held it stands still, whatever its
    targets; then it goes on (MOT-015).
    """

    on: bool

    def apply(self, state: State, row: int) -> None:
        """Set the flag."""
        state.held[row] = int(self.on)


@dataclass(frozen=True, slots=True)
class SetVisible:
    """Set which sensors see the body and whether robots collide with it;
    `Visible.NONE`: none, nobody (a ghost).
    """

    mask: Visible

    def apply(self, state: State, row: int) -> None:
        """Set the class mask; a body with mass goes on being pushed, and stops nobody."""
        has_mass = _has_mass(state, row)
        state.mask[row] = int(self.mask.with_mass() if has_mass else self.mask)


@dataclass(frozen=True, slots=True)
class SetOdometryErrors:
    """Set when the errors of odometry are drawn.

    Attributes
    ----------
    mode : OdometryErrorMode
        The new mode.
    seed : int
        Seed of the run, 64 bits: `RANDOM_INIT` draws the same errors as at the creation
        of the body.
    """

    mode: OdometryErrorMode
    seed: int

    def apply(self, state: State, row: int) -> None:
        """Set mode and errors; odometry that the model makes perfect stays so."""
        if int(state.err_mode[row]) == OdometryErrorMode.PERFECT:
            return
        set_error_mode(state, row, self.mode, self.seed)


def set_error_mode(state: State, row: int, mode: OdometryErrorMode, seed: int) -> None:
    """Set when errors are drawn, and the errors until then (pioneer-protocol §11.4)."""
    state.err_mode[row] = int(mode)
    state.err[row] = 0.0
    if mode is OdometryErrorMode.CONSTANT:
        # a symmetric range was made of one constant, which is its upper end; of any
        # other the middle is taken
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


_MAX_DEMAND: Final = {
    Control.FORCE: 1e9,
    Control.POSE: MAX_COORDINATE,
    Control.TWIST: 1e5,
}
"""Greatest demands: N and N·m; m; m/s and rad/s. Beyond them the contact solver has no
precision left.
"""


@dataclass(frozen=True, slots=True)
class Demand:
    """Drive a body with mass by a force, to a pose or with a velocity, until the next
    command; one without mass ignores it.

    A force pushes from outside. A pose and a velocity are driven: they count for a
    robot only while its motors are on.

    Attributes
    ----------
    control : Control
        `FORCE`, `POSE` or `TWIST`: what the values mean.
    values : (float, float, float)
        In the world's axes, see `Control`.
    """

    control: Control
    values: tuple[float, float, float]

    def __post_init__(self) -> None:
        what, most = self.control.name.lower(), _MAX_DEMAND[self.control]
        _check_finite(what, *self.values)
        if max(map(abs, self.values)) > most:
            raise CommandError(
                f"{what}: expected values within ±{most:g}, found {max(self.values, key=abs):g}"
            )

    def apply(self, state: State, row: int) -> None:
        """Set the demand."""
        is_pushed = self.control is Control.FORCE or state.drive[row] == _NO_DRIVE
        if _has_mass(state, row) and (is_pushed or _may_move(state, row)):
            state.control[row] = self.control
            state.demand[row] = self.values


def _put(state: State, row: int) -> None:
    """After a teleport: nothing touches the body, and one with mass is at rest."""
    state.contact[row] = 0
    if _has_mass(state, row):
        state.vel[row] = 0.0


def _has_mass(state: State, row: int) -> bool:
    return bool(state.control[row] != _NO_MASS)


def _engage(state: State, row: int) -> None:
    """Let a body with mass be driven by its motors from now on."""
    if _has_mass(state, row):
        state.control[row] = Control.MOTORS


def _clear_targets(state: State, row: int) -> None:
    state.mode_x[row] = Mode.VELOCITY
    state.mode_a[row] = Mode.VELOCITY
    state.target[row] = 0.0
