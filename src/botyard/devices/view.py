"""Read-only view of the world that a device's code gets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from copy import copy
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.devices.ranging import RangeDevices
from botyard.engine.kernels.identify import look
from botyard.engine.layout import F8, I8, State
from botyard.engine.rng import draws
from botyard.engine.simulation import Engine
from botyard.engine.tables import NOBODY, Row
from botyard.errors import (
    DeviceError,
)
from botyard.geometry import Pose, compose
from botyard.model.devices import DeviceSpec, Errors
from botyard.model.obstacles import Visible
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene

MAX_BEAMS: Final = 100_000
"""Largest number of beams of a device."""
NORMAL_PARTS: Final = 12
"""Number of uniform draws that are summed for one normal draw (Irwin–Hall)."""


@lru_cache(maxsize=4096)
def stream_of(name: str) -> int:
    """Return the number of a device's random stream, a hash of the device's name.

    Bit 63 is set, so that the number differs from the smaller numbers of lasers, sonar and
    odometry.

    Parameters
    ----------
    name : str
        Name of the device among the devices of its robot.
    """
    return (
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        | 1 << 63
    )


class View:
    """Read-only view of the present world for a device of a robot.

    Parameters
    ----------
    mounting : Pose
        Pose of the device in the frame of the robot: m, m, rad.
    colors : callable
        Returns the colour of each body by name.
    ranging : RangeDevices
        Range sensors of the world, which cast the device's beams.

    Attributes
    ----------
    engine : Engine
        Engine, for data that this class does not offer.
    body : str
        Name of the robot.
    robot : RobotSpec
        Model of the robot.
    name : str
        Name of the device among the robot's devices.
    errs : bool
        Whether sensors of this simulation have errors.
    memory : Row or None
        Saved state of the device, if its kind has columns.
    """

    def __init__(
        self,
        engine: Engine,
        body: str,
        robot: RobotSpec,
        name: str,
        mounting: Pose,
        *,
        errs: bool,
        colors: Callable[[], Mapping[str, str]],
        ranging: RangeDevices,
    ) -> None:
        self.engine = engine
        self.body = body
        self.robot = robot
        self.name = name
        self.errs = errs
        self.memory: Row[Any] | None = None
        self.part_of_robot: Any = None
        """Object of the robot that belongs to the device, such as `Laser`, `Gripper` or `Battery`.

        Only kinds with a `Device.part` have such an object.
        """
        self.models: list[tuple[Errors[Any], DeviceSpec, View]] = []
        """Error models applied to the device's readings."""
        self._stream = name
        self._mounting = mounting
        self._colors = colors
        self._ranging = ranging
        self.key: tuple[str, str, int] = (body, f"device {name}", 0)

    @property
    def row(self) -> int:
        """Row of the robot in `state`."""
        return self.engine.rows[self.body]

    @property
    def state(self) -> State:
        """State of all bodies, not to be written; see `botyard.engine.layout.State`."""
        return self.engine.state

    @property
    def scene(self) -> Scene:
        """Map of the world."""
        return self.engine.scene

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.engine.clock.time

    @property
    def robot_pose(self) -> Pose:
        """True pose of the robot, m and rad."""
        return Pose(*self.engine.state.pose[self.row].tolist())

    @property
    def pose(self) -> Pose:
        """True pose of the device in the world frame, m and rad."""
        return compose(self.robot_pose, self._mounting)

    @property
    def contact(self) -> int:
        """Touched sectors of the robot's outline as bits.

        Bit k is the k-th of 64 sectors, counter-clockwise from straight ahead.
        """
        return int(self.engine.state.contact[self.row])

    @property
    def names(self) -> dict[int, str]:
        """Names of all bodies by row."""
        return {row: body for body, row in self.engine.rows.items()}

    @property
    def colors(self) -> Mapping[str, str]:
        """Colour of each body by name."""
        return self._colors()

    @property
    def fiducials(self) -> I8:
        """Fiducial identifier of each body, (n,) int; 0: none, or hidden.

        Ghosts and carried bodies hide their identifiers.
        """
        engine = self.engine
        marks = np.array([s.returns.fiducial for s in engine.specs], np.int64)
        # Beacons are invisible to all other sensors by design; their mark shows
        # nevertheless.
        by_design = np.array([not s.returns.mask for s in engine.specs], np.bool_)
        shows = (engine.state.mask != 0) | (
            by_design & (engine.state.carrier == NOBODY)
        )
        shown: I8 = np.where(shows, marks, 0)
        return shown

    @property
    def blobs(self) -> NDArray[np.bool_]:
        """Whether blob finders can see each body, (n,) bool."""
        shows = np.array([s.returns.blob for s in self.engine.specs], np.bool_)
        both: NDArray[np.bool_] = shows & (self.engine.state.mask != 0)
        return both

    def sight(
        self,
        bearings: F8,
        reach: float,
        seen: NDArray[np.bool_] | None = None,
        walls: Visible = Visible.LASER,
    ) -> tuple[F8, I8]:
        """Cast rays from the device.

        Parameters
        ----------
        bearings : (k,) float64 array
            Directions in the world frame, rad.
        reach : float
            Length of the rays, m.
        seen : (n,) bool array, optional
            Bodies that rays can hit. Default: bodies that lasers detect. The robot itself is
            never hit.
        walls : Visible
            Classes of walls that rays can hit.

        Returns
        -------
        ranges : (k,) float64 array
            Ranges, m; `reach` if nothing is hit.
        rows : (k,) int64 array
            Row of the hit body; −1: a wall, −2: nothing.
        """
        engine, at = self.engine, self.pose
        if seen is None:
            # Without a choice of bodies the rays see what lasers see.
            seen = (engine.state.mask & int(Visible.LASER)) != 0
        # Kernels take contiguous arrays of these types only.
        bearings = np.ascontiguousarray(bearings, np.float64)
        ranges, rows = np.zeros(len(bearings)), np.zeros(len(bearings), np.int64)
        look(
            engine.packed,
            np.ascontiguousarray(seen, np.uint8),
            self.row,
            at.x,
            at.y,
            bearings,
            float(reach),
            int(walls),
            ranges,
            rows,
        )

        return ranges, rows

    @property
    def ranges(self) -> F8:
        """Ranges of the device's beams in this step, m; a copy.

        Raises
        ------
        KeyError
            The kind has no beams.
        """
        # Copy the ranges, because the buffer is used again in the step after the next.
        return self._ranging.read(self.engine, self.key).ranges.copy()

    # -- Random errors: they depend on the tick alone, not on the reader or number of
    # reads.

    def uniform(self, n: int, part: int = 0) -> F8:
        """Return draws of this tick, uniform in [−1, 1).

        They are zeros if sensors have no errors. Calls in one tick give the same draws.

        Parameters
        ----------
        n : int
            Number of draws.
        part : int
            Number of an independent sequence. A device that needs several sequences in
            a tick numbers them.

        Returns
        -------
        (n,) float64
            Draws.
        """
        # Exact sensors draw nothing, but readers still get arrays.
        if not self.errs:
            return np.zeros(n)
        engine = self.engine
        return draws(
            engine.seed_word,
            int(engine.state.uid[self.row]),
            stream_of(self._stream),
            engine.clock.tick,
            n,
            part,
        )

    def part(self, number: int, *, errs: bool | None = None) -> View:
        """Return a view that differs from this one only in its random stream.

        Parameters
        ----------
        number : int
            Number of the stream, which is hashed with the name of the device.
        errs : bool, optional
            Whether the new view draws errors. Default: the same as for this view.
        """
        # A shallow copy shares the engine and the caches.
        other = copy(self)
        other._stream = f"{self.name} {number}"
        other.errs = self.errs if errs is None else errs
        return other

    def measured(self, ranges: F8, bearings: F8) -> tuple[F8, F8]:
        """Apply the device's error models to true readings.

        Parameters
        ----------
        ranges, bearings : (n,) float64
            True ranges, m, and bearings in the frame of the sensor, rad.

        Returns
        -------
        tuple of two (n,) float64 arrays
            Measured ranges and bearings.

        Raises
        ------
        DeviceError
            A model raises, or returns other arrays.
        """
        for errors, spec, view in self.models:
            # Each model gets the results of the model before it.
            ranges, bearings = measured_by(errors, spec, view, ranges, bearings)
        return ranges, bearings

    def normal(self, n: int, part: int = 0) -> F8:
        """Return draws of this tick with mean 0 and standard deviation 1.

        Sums of twelve uniform draws (Irwin–Hall) are nearly normal. They are the same
        on every machine, and within ±6.

        Parameters
        ----------
        n : int
            Number of draws.
        part : int
            Number of an independent sequence, as for `uniform`.

        Returns
        -------
        (n,) float64
            Draws; zeros if sensors have no errors.
        """
        columns = self.uniform(n * NORMAL_PARTS, part).reshape(n, NORMAL_PARTS).T
        sums: F8 = columns[0]
        # One after the other, because the order of NumPy's own sums is not defined.
        for column in columns[1:]:
            sums = sums + column

        # A uniform draw in [−1, 1) has the variance 1/3, so that twelve have 4.
        return sums / 2.0


def measured_by(
    errors: Errors[Any], spec: DeviceSpec, view: View, ranges: F8, bearings: F8
) -> tuple[F8, F8]:
    """Apply one error model to true readings.

    Parameters
    ----------
    errors : Errors
        The model; its `measured` is not None.
    spec : DeviceSpec
        Description of the model.
    view : View
        View of the world with the random stream of the model.
    ranges, bearings : (n,) float64
        True ranges, m, and bearings, rad. The model gets copies.

    Returns
    -------
    tuple of two (n,) float64 arrays
        Measured ranges and bearings.

    Raises
    ------
    DeviceError
        The model raises, or does not return that many finite numbers.
    """
    assert errors.measured is not None
    try:
        # Pass copies, because the function could write into arrays of other readers.
        found = errors.measured(spec, view, ranges.copy(), bearings.copy())
        seem, turned = (np.asarray(values, np.float64) for values in found)
        if seem.shape != ranges.shape or turned.shape != bearings.shape:
            raise ValueError(
                f"expected {len(ranges)} ranges and bearings, found {seem.shape} "
                f"and {turned.shape}"
            )

        if not (np.isfinite(seem).all() and np.isfinite(turned).all()):
            raise ValueError(
                "expected finite ranges and bearings, found NaN or infinity"
            )
    except Exception as error:
        # The code may come from any package and raise anything.
        raise DeviceError(
            f'device "{view.name}" of robot {view.body}: its function `errors` raised '
            f"{error!r}"
        ) from error

    return seem, turned


__all__ = ["MAX_BEAMS", "View", "measured_by", "stream_of"]
