"""A device's read-only view of the world, and the handle by which programs read a
device.
"""

from __future__ import annotations

import hashlib
import logging
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.devices.ranging import RangeDevices
from botyard.engine.kernels.identify import look
from botyard.engine.layout import F8, I8, State
from botyard.engine.rng import draws
from botyard.engine.simulation import Engine, empty_world
from botyard.engine.tables import NOBODY, Row, Table
from botyard.errors import (
    ArgumentError,
    BotyardError,
    DeviceError,
    ModelError,
    UnknownNameError,
    did_you_mean,
)
from botyard.geometry import Pose, compose
from botyard.model.beams import Bundle
from botyard.model.devices import Device, DeviceSpec, Errors, find_device
from botyard.model.obstacles import Visible
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.names import shown

R = TypeVar("R")
T = TypeVar("T")
log = logging.getLogger("botyard.devices")
MAX_ROWS: Final = 10_000
"""Most rows of a reading."""
MAX_BEAMS: Final = 100_000
"""Most beams of a device."""
NORMAL_PARTS: Final = 12
"""Uniform draws that are summed for one normal draw (Irwin–Hall)."""


@lru_cache(maxsize=4096)
def stream_of(name: str) -> int:
    """Random stream of a device, from a hash of its name; those of lasers, sonar and
    odometry are below 2⁶³.
    """
    return (
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        | 1 << 63
    )


class View:
    """The present state of the world for a device of a robot; read-only.

    Attributes
    ----------
    engine : Engine
        The engine, for what this class does not offer.
    body : str
        Name of the robot.
    robot : RobotSpec
        The robot's model.
    name : str
        Name of the device among those of the robot.
    errs : bool
        Whether sensors of this simulation have errors.
    memory : Row or None
        The device's saved state, if its kind has columns.
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
        """For kinds with a `Device.part`: the robot's object of that kind, such as
        `Laser`, `Gripper` or `Battery`.
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
        """All bodies; see `botyard.engine.layout.State`. Not to be written to."""
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
        """True pose of the device in the world, m and rad."""
        return compose(self.robot_pose, self._mounting)

    @property
    def contact(self) -> int:
        """Where the robot is touched: bit k is the k-th of 64 sectors of its body,
        counter-clockwise from straight ahead.
        """
        return int(self.engine.state.contact[self.row])

    @property
    def names(self) -> dict[int, str]:
        """Names of all bodies by their rows."""
        return {row: body for body, row in self.engine.rows.items()}

    @property
    def colors(self) -> Mapping[str, str]:
        """Colour of each body by its name."""
        return self._colors()

    @property
    def fiducials(self) -> I8:
        """Fiducial identifier of each body, (n,); 0: none, or hidden (ghosts and
        carried bodies show none).
        """
        engine = self.engine
        marks = np.array([s.returns.fiducial for s in engine.specs], np.int64)
        # beacons, which no other sensor detects by design, are detected by their mark
        by_design = np.array([not s.returns.mask for s in engine.specs], np.bool_)
        shows = (engine.state.mask != 0) | (
            by_design & (engine.state.carrier == NOBODY)
        )
        shown: I8 = np.where(shows, marks, 0)
        return shown

    @property
    def blobs(self) -> NDArray[np.bool_]:
        """Which bodies a blob finder detects, (n,)."""
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
            Directions in the world, rad.
        reach : float
            Length of the rays, m.
        seen : (n,) bool array, optional
            Which bodies rays can hit; without it, those that lasers detect. The robot
            itself is never hit.
        walls : Visible
            Classes of walls that rays can hit.

        Returns
        -------
        ranges : (k,) float64 array
            m; `reach` where nothing is hit.
        rows : (k,) int64 array
            Row of the body that is hit; −1: a wall, −2: nothing.
        """
        engine, at = self.engine, self.pose
        if seen is None:
            seen = (engine.state.mask & int(Visible.LASER)) != 0
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
        """Ranges of the device's beams in this step, m; a copy. KeyError: its kind has
        no beams.
        """
        return self._ranging.read(self.engine, self.key).ranges.copy()

    # -- random errors: the same for all readings of one tick, whoever reads, and
    # however often

    def uniform(self, n: int, part: int = 0) -> F8:
        """`n` draws of this tick, uniform in [−1, 1); zeros when sensors have no
        errors. `part` selects an independent sequence.
        """
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
        """The same view with a random stream of its own."""
        other = copy(self)
        other._stream = f"{self.name} {number}"
        other.errs = self.errs if errs is None else errs
        return other

    def measured(self, ranges: F8, bearings: F8) -> tuple[F8, F8]:
        """Apply the device's error models to true ranges, m, and bearings, rad, (n,)
        each.
        """
        for errors, spec, view in self.models:
            ranges, bearings = measured_by(errors, spec, view, ranges, bearings)
        return ranges, bearings

    def normal(self, n: int, part: int = 0) -> F8:
        """`n` normal draws, mean 0, deviation 1: sums of twelve uniform ones, so the
        same on every machine, and within ±6.
        """
        columns = self.uniform(n * NORMAL_PARTS, part).reshape(n, NORMAL_PARTS).T
        sums: F8 = columns[0]
        for column in columns[
            1:
        ]:  # one after the other: NumPy's own sums have an order of their own
            sums = sums + column

        return sums / 2.0


def measured_by(
    errors: Errors[Any], spec: DeviceSpec, view: View, ranges: F8, bearings: F8
) -> tuple[F8, F8]:
    """Apply one error model to true ranges, m, and bearings, rad, (n,) each.

    Raises
    ------
    DeviceError
        The model raises, or does not return as many finite numbers.
    """
    assert errors.measured is not None
    try:
        found = errors.measured(spec, view, ranges.copy(), bearings.copy())
        seem, turned = (np.asarray(values, np.float64) for values in found)
        if seem.shape != ranges.shape or turned.shape != bearings.shape:
            raise ValueError(
                f"expected {len(ranges)} ranges and bearings, found {seem.shape} and {turned.shape}"
            )

        if not (np.isfinite(seem).all() and np.isfinite(turned).all()):
            raise ValueError("expected finite ranges and bearings")
    except Exception as error:
        # of a package that may be anybody's: whatever it raises
        raise DeviceError(
            f'device "{view.name}" of robot {view.body}: errors: {error!r}'
        ) from error

    return seem, turned


def _check_beams(bundles: Sequence[Bundle]) -> None:
    """Check a kind's beams: kernels take finite numbers for granted."""
    for b in bundles:
        if not isinstance(b, Bundle):
            raise TypeError(f"expected a Bundle, found {type(b).__name__}")
        numbers = (
            *b.mount,
            b.angle0,
            b.step,
            b.r_min,
            b.r_max,
            b.r_noise,
            b.a_noise,
            b.r_std,
            b.r_share,
        )
        if not all(map(math.isfinite, numbers)) or not 0.0 <= b.r_min <= b.r_max:
            raise ValueError(
                f"expected finite numbers and ranges of 0 ≤ min ≤ max, found {b}"
            )

        if operator.index(b.count) < 0:
            raise ValueError(f"expected a number of beams, found {b.count}")

    count = sum(b.count for b in bundles)
    if count > MAX_BEAMS:
        raise ValueError(f"expected at most {MAX_BEAMS} beams, found {count}")


def _check_columns(table: type[Table] | None, values: Mapping[str, Any]) -> None:
    """Raise ArgumentError for what is no column of a table, or cannot stand in it."""
    columns = {} if table is None else table.columns
    for name, value in values.items():
        if name not in columns:
            known = f"columns: {', '.join(columns)}" if columns else "it has no columns"
            raise ArgumentError(
                f'there is no column "{shown(name)}"{did_you_mean(name, columns)} ({known})'
            )

        columns[name].check(name, value)


class DeviceReader(ReadOnly, Generic[R]):
    """The handle of a device of a robot: `read` returns its reading, of its kind's
    type. It costs nothing while nobody reads it.

    Attributes
    ----------
    spec : DeviceSpec
        Its description.
    kind : Device
        Its kind.
    name : str
        Its name among the devices of its robot.
    failure : Exception or None
        Exception of its kind's code in a step; from then on it is disabled, and `read`
        raises a `DeviceError`.
    """

    def __init__(self, spec: DeviceSpec, view: View) -> None:
        self.spec = spec
        self.kind: Device[Any, R] = find_device(spec.type)
        self.name: str = view.name
        self.failure: Exception | None = None
        self._view = view
        self._is_there = True
        self._logged: set[str] = set()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._view.body}: {self.name}>"

    def read(self) -> R:
        """The reading in the present state.

        Raises
        ------
        DeviceError
            The kind's code raises now, or has raised in an earlier step.
        UnknownNameError
            The robot was removed.
        """
        failure = self.failure
        if failure is None and self._view.memory is not None:
            failure = self._view.memory.table.failure
        if not self._is_there:
            raise UnknownNameError(
                f'robot "{self._view.body}" was removed from its simulation'
            )

        if failure is not None:
            raise self._error("it has failed in a step", failure) from failure
        try:
            return self.kind.read(self.spec, self._view)
        except BotyardError:
            raise
        except (
            Exception
        ) as error:  # of a package that may be anybody's: whatever it raises
            raise self._error("read", error) from error

    def rows(self, reading: R) -> list[tuple[Any, ...]]:
        """The rows of a reading, one value per field of the kind; at most `MAX_ROWS` of
        them.

        Raises
        ------
        DeviceError
            The kind's code raises, or returns rows of another length.
        """
        try:
            rows = [tuple(row) for row in islice(self.kind.rows(reading), MAX_ROWS)]
            for row in rows:
                if len(row) != len(self.kind.fields):
                    raise ValueError(
                        f"expected {len(self.kind.fields)} values in a row, found {len(row)}"
                    )
        except Exception as error:
            raise self._error("rows", error) from error

        return rows

    def record(self) -> list[dict[str, Any]]:
        """The present reading as plain data, as recordings hold it (`Device.record`).
        DeviceError: as for `read` and `rows`.
        """
        reading = self.read()
        return self.kind.named(self.rows(reading))

    def shown(self, what: str, make: Callable[[Any, R], T]) -> T | None:
        """The present reading converted for an interface; None if the kind's code
        raises, which is logged once.

        Parameters
        ----------
        what : str
            Name of the conversion, for the log.
        make : callable
            The conversion; its arguments: spec and reading.
        """
        try:
            return make(self.spec, self.read())
        except Exception as error:
            if what not in self._logged:
                self._logged.add(what)
                text = (
                    error
                    if isinstance(error, DeviceError)
                    else self._error(what, error)
                )
                log.exception("%s; interfaces do not get its readings", text)

            return None

    def fail(self, what: str, error: Exception) -> None:
        """Disable the device after an exception of its kind's code in a step; readers
        get a `DeviceError` from now on.
        """
        if self.failure is None:
            self.failure = error
            log.error("%s; it is disabled", self._error(what, error), exc_info=error)

    def _error(self, what: str, error: Exception) -> DeviceError:
        return DeviceError(
            f'device "{self.name}" of robot {self._view.body}: {what}: {error!r}'
        )

    def _restored(self) -> None:
        """The world was restored from a saved state: enable the device again."""
        self.failure = None
        if self._view.memory is not None:
            self._view.memory.table.failure = None

    def _leave(self) -> None:
        """Its robot was removed."""
        self._is_there = False

    def write(self, **values: Any) -> None:
        """Set columns of what it remembers, from outside of the world: how a program
        commands an actuator. The journal has it.

        Raises
        ------
        ArgumentError
            Its kind has no such column, or a value is none that the column can hold;
            then nothing is written.
        UnknownNameError
            The robot was removed.
        """
        if not self._is_there:
            raise UnknownNameError(
                f'robot "{self._view.body}" was removed from its simulation'
            )

        memory = self._view.memory
        _check_columns(None if memory is None else type(memory.table), values)
        if memory is not None:
            memory.write(**values)

    def command(self, name: str, value: float) -> None:
        """Command an actuator: one of the commands that its kind declares. The journal
        has it.

        Raises
        ------
        UnknownNameError
            A KeyError: it has no such command; the robot was removed.
        ArgumentError
            The value is not finite, or beyond the command's limits; then nothing is
            done.
        DeviceError
            The kind's code raises.
        """
        command = self.kind.command(name)
        try:
            low, high = command.limits(self.spec)
        except (
            Exception
        ) as error:  # of a package that may be anybody's: whatever it raises
            raise self._error(f"limits of {name}", error) from error

        value = arguments.number(value, name, low=low, high=high, unit=command.unit)
        try:
            columns = dict(command.columns(value))
        except Exception as error:
            raise self._error(name, error) from error

        self.write(**columns)

    def subscribe(self, reader: str, on: bool = True) -> None:
        """Subscribe `reader`, or end its subscription. Only kinds with beams are
        computed in every step for that.
        """
        if not self._is_there:
            raise UnknownNameError(
                f'robot "{self._view.body}" was removed from its simulation'
            )

        if self.kind.beams is not None:
            self._view._ranging.subscribe(self._view.key, reader, on)

    @property
    def key(self) -> tuple[str, str, int]:
        """Robot, kind and index, by which the fleet has the ranges of its beams."""
        return self._view.key

    @property
    def ranges(self) -> F8:
        """Ranges of its beams in the present state, m; a copy. KeyError: its kind has
        no beams.
        """
        return self._view.ranges

    @property
    def is_read(self) -> bool:
        """Whether its beams are cast in every step."""
        return self.kind.beams is not None and self._view._ranging.is_read(
            self._view.key
        )

    def _install(self, row: int) -> None:
        """Its robot was added: put its beams and columns into the engine. ModelError:
        the kind's code raises or returns bad values.
        """
        view, kind = self._view, self.kind
        if kind.beams is not None:
            try:
                bundles = list(kind.beams(self.spec, view.errs))
                _check_beams(bundles)
            except Exception as error:
                raise ModelError(
                    f'device "{self.name}" of robot {view.body}: beams: {error!r}'
                ) from error

            view._ranging.configure(
                view.key, view.body, stream_of(view.name), kind.senses, bundles
            )

        if kind.table is not None:
            try:
                values = {} if kind.start is None else dict(kind.start(self.spec))
                _check_columns(kind.table, values)
                view.memory = Row(
                    view.engine.optional_table(kind.table),
                    row,
                    memory_key(view.body, view.name),
                    **values,
                )
            except Exception as error:
                raise ModelError(
                    f'device "{self.name}" of robot {view.body}: table: {error!r}'
                ) from error


def memory_key(body: str, name: str) -> str:
    """Key of the row that holds the saved state of a robot's device."""
    return f"{body} {name}"


def has_columns(spec: DeviceSpec) -> bool:
    """Whether a device needs to be installed in the engine: it has beams, columns or
    errors.
    """
    kind = find_device(spec.type)
    return kind.beams is not None or kind.table is not None or kind.errors is not None


def warm_up() -> None:
    """Compile the kernel of views, or load it, without a world."""
    nothing = np.zeros(0)
    look(
        empty_world(),
        np.zeros(0, np.uint8),
        -1,
        0.0,
        0.0,
        nothing,
        0.0,
        0,
        nothing,
        np.zeros(0, np.int64),
    )


__all__ = [
    "MAX_BEAMS",
    "MAX_ROWS",
    "DeviceReader",
    "View",
    "has_columns",
    "measured_by",
    "memory_key",
    "stream_of",
]
