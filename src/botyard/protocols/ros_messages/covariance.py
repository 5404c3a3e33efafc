"""Covariances of odometry, computed from its error model.

Odometry adds up displacements. Along each axis, a displacement is wrong by a factor 1 +
ε (pioneer-protocol §11.4). Let Δ be the displacement of a step in the frame of
odometry. The error of the pose is propagated by F = [[1, 0, −Δy], [0, 1, Δx], [0, 0,
1]], and grows by G ε, where the columns of G are the displacements along each axis.

The variances of errors that are drawn anew in every step add up: P ← F P Fᵀ + G E Gᵀ,
with E the mean squares of ε. Constant errors add up linearly: J ← F J + G, and give the
covariance J E Jᵀ. Source: R. Siegwart, *Autonomous Mobile Robots*, §5.2.4.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.model.robotport import Fleet
from botyard.numerics import elementwise

F8 = NDArray[np.float64]

MIN_VARIANCE: Final = 1e-6
"""Variance on the diagonal to which all others are added, m² and rad² (velocities: per s²).

It prevents singular matrices, which filters cannot use. It is the variance of height,
roll and pitch.
"""
_XX, _XY, _YY, _XT, _YT, _TT = range(6)
_PLACES: Final = {
    _XX: (0,),
    _XY: (1, 6),
    _YY: (7,),
    _XT: (5, 30),
    _YT: (11, 31),
    _TT: (35,),
}
"""Positions of the covariances of x, y and yaw (T) in the 6×6 matrix of a message, by rows."""
SIZE: Final = 36 * 8
"""Size of a covariance in a message, bytes."""


class OdometryCovariance:
    """Covariances of the odometry of robots: of poses, and of velocities.

    The covariance of a pose restarts at 0 when the robot's odometry is set. Odometry
    reports the true velocities, but their covariance is computed as if they had the
    same relative errors as displacements.
    """

    def __init__(self) -> None:
        self._robots: list[str] = []
        self._places: dict[str, int] = {}
        self._fleet: Fleet | None = None
        self._drawn = np.zeros((6, 0))
        """Matrix P of each robot, as the six numbers of a symmetric matrix; see the module."""
        self._kept = np.zeros((3, 3, 0))
        """Matrix J of each robot, see the module."""
        self._odom, self._path, self._frame = (
            np.zeros((0, 3)),
            np.zeros((0, 2)),
            np.zeros((0, 3)),
        )
        self._made: tuple[bytes, bytes] | None = None

    def add(self, fleet: Fleet, robot: str) -> None:
        """Add a robot, whose odometry is exact at first.

        Parameters
        ----------
        fleet : Fleet
            All robots, with state and error model.
        robot : str
            Name of the robot.
        """
        self._fleet = fleet
        self._places[robot] = len(self._robots)
        self._robots.append(robot)
        self._drawn = np.concatenate([self._drawn, np.zeros((6, 1))], axis=1)
        self._kept = np.concatenate([self._kept, np.zeros((3, 3, 1))], axis=2)
        self._odom = np.concatenate([self._odom, np.zeros((1, 3))])
        self._path = np.concatenate([self._path, np.zeros((1, 2))])
        self._frame = np.concatenate(
            # NaN differs from every frame, so the first step resets this robot.
            [self._frame, np.full((1, 3), np.nan)]
        )
        self._made = None

    def remove(self, robot: str) -> None:
        """Remove a robot.

        Parameters
        ----------
        robot : str
            Name of the robot.

        Raises
        ------
        KeyError
            The robot was not added.
        """
        at = self._places.pop(robot)
        self._robots.pop(at)
        self._places = {name: i for i, name in enumerate(self._robots)}
        self._drawn, self._kept = (
            np.delete(self._drawn, at, 1),
            np.delete(self._kept, at, 2),
        )
        self._odom, self._path, self._frame = (
            np.delete(a, at, 0) for a in (self._odom, self._path, self._frame)
        )
        self._made = None

    def advance(self) -> None:
        """Update all covariances; called after each step."""
        self._made = None
        if self._fleet is None or not self._robots:
            return

        rows = self._rows(self._fleet)
        state = self._fleet.state
        odom, path, frame = state.odom[rows], state.path[rows], state.odom_frame[rows]
        is_set = (frame != self._frame).any(axis=1)

        # Odometry that was just set is exact.
        self._drawn[:, is_set] = 0.0
        self._kept[:, :, is_set] = 0.0

        dx, dy = np.where(is_set, 0.0, (odom - self._odom)[:, :2].T)
        turn = np.where(is_set, 0.0, path[:, 1] - self._path[:, 1])
        self._grow(dx, dy, turn, self._odom[:, 2], rows)

        self._odom, self._path, self._frame = odom, path, frame

    def _rows(self, fleet: Fleet) -> NDArray[np.int64]:
        known = fleet.rows
        return np.array([known[name] for name in self._robots], np.int64)

    def _grow(
        self, dx: F8, dy: F8, turn: F8, heading: F8, rows: NDArray[np.int64]
    ) -> None:
        """Propagate the errors of all robots over one step; change P and J in place.

        The docstring of the module has the formulas.

        Parameters
        ----------
        dx, dy : (n,) float64
            Displacements in the frames of odometry, m; 0 where odometry was set.
        turn : (n,) float64
            Turns during the step, rad.
        heading : (n,) float64
            Headings before the step, rad.
        rows : (n,) int64
            Rows of the robots in the state.
        """
        assert self._fleet is not None
        squares, is_anew = self._fleet.odometry_variances
        along, across, about = np.where(is_anew[rows], squares[rows].T, 0.0)

        c, s = elementwise.cosine_sine(heading)
        forward, left = c * dx + s * dy, c * dy - s * dx
        fx, fy, lx, ly = (
            c * forward,
            s * forward,
            -s * left,
            c * left,
            # Nonzero elements of the first two columns of G; the third column is (0, 0,
            # turn).
        )

        p = self._drawn
        # F P Fᵀ + G E Gᵀ, written out for the six numbers of each robot.
        xx, xy, yy, xt, yt, tt = p.copy()
        p[_XX] = xx - 2.0 * dy * xt + dy * dy * tt + along * fx * fx + across * lx * lx
        p[_XY] = (
            xy + dx * xt - dy * yt - dx * dy * tt + along * fx * fy + across * lx * ly
        )
        p[_YY] = yy + 2.0 * dx * yt + dx * dx * tt + along * fy * fy + across * ly * ly
        p[_XT] = xt - dy * tt
        p[_YT] = yt + dx * tt
        p[_TT] = tt + about * turn * turn

        # J ← F J + G, in place; row 2 is the yaw, which F leaves unchanged.
        j = self._kept
        j[0] -= dy * j[2]
        j[1] += dx * j[2]
        j[0, 0] += fx
        j[1, 0] += fy
        j[0, 1] += lx
        j[1, 1] += ly
        j[2, 2] += turn

    def of(self, robot: str) -> tuple[bytes, bytes]:
        """Return the covariances of pose and velocity in the form of a message.

        Each has 36 float64 by rows, `SIZE` bytes.

        Parameters
        ----------
        robot : str
            Name of an added robot.

        Returns
        -------
        tuple of bytes
            Covariances of the pose (m², m rad and rad²) and of the velocity (per s²).
        """
        poses, velocities = self._made or self._make()
        at = SIZE * self._places[robot]
        return poses[at : at + SIZE], velocities[at : at + SIZE]

    def _make(self) -> tuple[bytes, bytes]:
        """Return the covariances of all poses and velocities, 36 float64 each.

        They are in the order of `_robots`, and kept until the next step.
        """
        assert self._fleet is not None
        rows = self._rows(self._fleet)
        # Add the constant errors here, and not in each step, because J holds their
        # whole effect.
        squares, is_anew = self._fleet.odometry_variances

        each = squares[rows]
        kept = np.where(is_anew[rows], 0.0, each.T)
        j = self._kept

        pairs = {
            _XX: (0, 0),
            _XY: (0, 1),
            _YY: (1, 1),
            _XT: (0, 2),
            _YT: (1, 2),
            _TT: (2, 2),
        }

        poses, velocities = np.zeros((len(rows), 36)), np.zeros((len(rows), 36))
        # Every seventh number is on the diagonal of a 6×6 matrix.
        poses[:, ::7] = velocities[:, ::7] = MIN_VARIANCE

        for which, (a, b) in pairs.items():
            value = (
                self._drawn[which]
                + kept[0] * j[a, 0] * j[b, 0]
                + kept[1] * j[a, 1] * j[b, 1]
                + kept[2] * j[a, 2] * j[b, 2]
            )
            for place in _PLACES[which]:
                poses[:, place] += value

        speed = self._fleet.state.vel[rows]
        velocities[:, (0, 7, 35)] += each * speed * speed
        self._made = poses.tobytes(), velocities.tobytes()
        return self._made


__all__ = ["MIN_VARIANCE", "SIZE", "OdometryCovariance"]
