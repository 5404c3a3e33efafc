"""Read-only view of the world for a device."""

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
"""Highest number of beams of a device."""
NORMAL_PARTS: Final = 12
"""Number of uniform draws that are summed for one normal draw (Irwin–Hall)."""


@lru_cache(maxsize=4096)
def stream_of(name: str) -> int:
    """Return the random stream of a device, a hash of its name.

    Bit 63 keeps it apart from the streams of lasers, sonar and odometry, which are
    lower.
    """
    return (
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        | 1 << 63
    )


class View:
    """Read-only view of the present world for a device of a robot.

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
        """The robot's object, such as `Laser`, `Gripper` or `Battery`.

        Only for kinds with a `Device.part`.
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
        """The map."""
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
        """Fiducial identifier of each body, (n,); 0: none, or hidden.

        Ghosts and carried bodies hide theirs.
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
        """Whether a blob finder detects each body, (n,)."""
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

        Raises KeyError if the kind has no beams.
        """
        return self._ranging.read(self.engine, self.key).ranges.copy()

    # -- Random errors: they depend on the tick alone, not on the reader or number of
    # reads.

    def uniform(self, n: int, part: int = 0) -> F8:
        """Return `n` draws of this tick, uniform in [−1, 1).

        They are zeros if sensors have no errors.

        `part` selects an independent sequence.
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
        """Return the same view with a random stream of its own."""
        # A shallow copy shares the engine and the caches.
        other = copy(self)
        other._stream = f"{self.name} {number}"
        other.errs = self.errs if errs is None else errs
        return other

    def measured(self, ranges: F8, bearings: F8) -> tuple[F8, F8]:
        """Apply the device's error models to ranges, m, and bearings, rad, (n,)."""
        for errors, spec, view in self.models:
            ranges, bearings = measured_by(errors, spec, view, ranges, bearings)
        return ranges, bearings

    def normal(self, n: int, part: int = 0) -> F8:
        """Return `n` normal draws with mean 0 and standard deviation 1.

        Sums of twelve uniform draws are the same on every machine, and within ±6.
        """
        columns = self.uniform(n * NORMAL_PARTS, part).reshape(n, NORMAL_PARTS).T
        sums: F8 = columns[0]
        # One after the other, because the order of NumPy's own sums is not defined.
        for column in columns[1:]:
            sums = sums + column

        return sums / 2.0


def measured_by(
    errors: Errors[Any], spec: DeviceSpec, view: View, ranges: F8, bearings: F8
) -> tuple[F8, F8]:
    """Apply one error model to true ranges, m, and bearings, rad, (n,) each.

    Raises
    ------
    DeviceError
        The model raises, or does not return that many finite numbers.
    """
    assert errors.measured is not None
    try:
        found = errors.measured(spec, view, ranges.copy(), bearings.copy())
        seem, turned = (np.asarray(values, np.float64) for values in found)
        if seem.shape != ranges.shape or turned.shape != bearings.shape:
            raise ValueError(
                f"expected {len(ranges)} ranges and bearings, found {seem.shape} "
                f"and {turned.shape}"
            )

        if not (np.isfinite(seem).all() and np.isfinite(turned).all()):
            raise ValueError("expected finite ranges and bearings")
    except Exception as error:
        # The code may come from any package and raise anything.
        raise DeviceError(
            f'device "{view.name}" of robot {view.body}: its function `errors` raised '
            f"{error!r}"
        ) from error

    return seem, turned


__all__ = ["MAX_BEAMS", "View", "measured_by", "stream_of"]
