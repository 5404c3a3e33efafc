"""Log of one robot, independent of its file format.

A log has odometry, velocities, commands, scans and true poses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.calibration.planar import F8, interpolated
from botyard.errors import CalibrationError

MAX_SIZE: Final = 1e7
"""Maximum coordinate, heading and velocity of a log, m, rad, m/s, rad/s."""


def _no_times() -> F8:
    return np.zeros(0)


def _no_rows() -> F8:
    return np.zeros((0, 3))


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Rows of three numbers with times.

    Attributes
    ----------
    time : (n,) array
        Times in ascending order, s.
    values : (n, 3) array
        Poses: x, y (m), heading (rad); or velocities: vx, vy (m/s), yaw rate (rad/s).
    """

    time: F8 = field(default_factory=_no_times)
    values: F8 = field(default_factory=_no_rows)

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of(cls, time: F8, values: F8) -> Series:
        """Return a series of rows in any order, sorted by time.

        Rows that are not finite are dropped. Of rows with equal times, the last one
        stays.

        Parameters
        ----------
        time : (n,) array
            Times, s.
        values : (n, 3) array
            Poses or velocities, see the class.
        """
        time, values = (
            np.asarray(time, np.float64),
            np.asarray(values, np.float64).reshape(-1, 3),
        )
        good = np.isfinite(time) & np.isfinite(values).all(axis=1)
        time, values = time[good], values[good]
        order = np.argsort(time, kind="stable")
        time, values = time[order], values[order]
        # Interpolation needs strictly ascending times.
        last = np.append(np.diff(time) > 0.0, True) if len(time) else np.zeros(0, bool)
        return cls(time[last], values[last])

    def check_sizes(self, what: str) -> None:
        """Check that numbers are within `MAX_SIZE`: sums and squares would overflow.

        Parameters
        ----------
        what : str
            Source of the series, for the message.

        Raises
        ------
        CalibrationError
            A number is too large; the message has its time.
        """
        wild = np.flatnonzero((np.abs(self.values) > MAX_SIZE).any(axis=1))
        if len(wild):
            found, at = self.values[wild[0]], float(self.time[wild[0]])
            raise CalibrationError(
                f"{what}: expected numbers within ±{MAX_SIZE:g}, found "
                f"{found[np.abs(found).argmax()]:g} at {at:.3f} s"
            )

    def between(self, begin: float, end: float) -> Series:
        """Return the rows whose time is from `begin` to `end`, s."""
        some = (self.time >= begin) & (self.time <= end)
        return Series(self.time[some], self.values[some])

    def at(self, time: F8) -> F8:
        """Return poses at other times, interpolated linearly.

        Parameters
        ----------
        time : (k,) float64
            Times, s. Times outside of the series get its first or last pose.

        Returns
        -------
        (k, 3) float64
            Poses: m, m, rad.
        """
        return interpolated(self.time, self.values, time)

    def shifted(self, seconds: float) -> Series:
        """Return the series with `seconds` added to all times."""
        return Series(self.time + seconds, self.values)


@dataclass(frozen=True, slots=True, eq=False)
class ScanSeries:
    """Scans of a laser.

    Attributes
    ----------
    time : (n,) array
        Times in ascending order, s.
    ranges : (n, r) array
        Ranges, m; NaN for none. A range of `range_max` or more means no hit.
    angle_min, increment : float
        Bearing of the first beam in the laser's frame, and angle between beams, rad.
    intensities : (n, r) array or None
        Intensity of each return in the laser's own units; NaN for none. Ordinary
        surfaces have 1 in simulated scans.
    """

    time: F8
    ranges: F8
    angle_min: float
    increment: float
    intensities: F8 | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def bearings(self) -> F8:
        """Bearing of each beam in the laser's frame, rad."""
        found: F8 = self.angle_min + self.increment * np.arange(
            self.ranges.shape[1], dtype=np.float64
        )
        return found

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> ScanSeries:
        """Return a selection of the scans.

        Parameters
        ----------
        which : (n,) bool or (k,) int64
            Mask, or numbers in ascending order.
        """
        intensities = None if self.intensities is None else self.intensities[which]
        return replace(
            self,
            time=self.time[which],
            ranges=self.ranges[which],
            intensities=intensities,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Log of one robot.

    Attributes
    ----------
    source : str
        The file.
    robot : str
        Name of the robot in the file.
    odometry : Series
        Poses by odometry, in a frame with an arbitrary origin.
    velocities : Series
        Velocities that the robot measured; empty for none.
    commands : Series
        Commanded velocities, each valid until the next one.
    scans : ScanSeries or None
        Scans of the robot's laser.
    truth : Series
        True poses; empty for none.
    has_exact_clock : bool
        Whether the true poses have the same clock as the odometry.
    has_true_origin : bool
        Whether the true poses are poses of the robot's origin. Otherwise they are poses of
        markers at an unknown place on the robot.
    problems : tuple of str
        Parts of the file that could not be read, because it is damaged or truncated.
    """

    source: str
    robot: str = ""
    odometry: Series = field(default_factory=Series)
    velocities: Series = field(default_factory=Series)
    commands: Series = field(default_factory=Series)
    scans: ScanSeries | None = None
    truth: Series = field(default_factory=Series)
    has_exact_clock: bool = False
    has_true_origin: bool = False
    problems: tuple[str, ...] = ()

    def checked(self) -> Log:
        """Return this log if it has odometry and no number is too large.

        Raises
        ------
        CalibrationError
            The log has no odometry, or numbers that are too large.
        """
        if len(self.odometry) < 2:
            raise CalibrationError(
                f"{self.source}: expected at least 2 poses of odometry, found {len(self.odometry)}"
            )

        # Check each series by itself, so that the message names the wrong series.
        for what, rows in (
            ("odometry", self.odometry),
            ("velocities", self.velocities),
            ("commands", self.commands),
            ("true poses", self.truth),
        ):
            rows.check_sizes(f"{self.source}: {what}")

        return self

    @property
    def span(self) -> tuple[float, float]:
        """Times of the first and the last pose of odometry, s."""
        return float(self.odometry.time[0]), float(self.odometry.time[-1])

    def part(self, begin: float, end: float) -> Log:
        """Return the part of the log between two times, s."""
        scans = self.scans
        if scans is not None:
            scans = scans.chosen((scans.time >= begin) & (scans.time <= end))
        return replace(
            self,
            odometry=self.odometry.between(begin, end),
            velocities=self.velocities.between(begin, end),
            commands=self.commands.between(begin, end),
            scans=scans,
            truth=self.truth.between(begin, end),
        )


__all__ = ["Log", "ScanSeries", "Series"]
