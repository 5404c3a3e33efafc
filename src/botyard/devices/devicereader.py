"""Handle by which programs read a device of a robot, and command it."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import numpy as np

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.devices.view import MAX_BEAMS, View, stream_of
from botyard.engine.kernels.identify import look
from botyard.engine.layout import F8
from botyard.engine.simulation import empty_world
from botyard.engine.tables import Row, Table
from botyard.errors import (
    ArgumentError,
    BotyardError,
    DeviceError,
    ModelError,
    UnknownNameError,
    did_you_mean,
)
from botyard.model.beams import Bundle
from botyard.model.devices import Device, DeviceSpec, find_device
from botyard.names import shown

R = TypeVar("R")
T = TypeVar("T")


log = logging.getLogger("botyard.devices")
# A kind of any package may yield rows without end, which must not fill the memory.
MAX_ROWS: Final = 10_000
"""Highest number of rows of a reading."""


class DeviceReader(ReadOnly, Generic[R]):
    """Handle of a robot's device: `read` returns a reading of the kind's type.

    A device costs nothing unless it is read.

    Parameters
    ----------
    spec : DeviceSpec
        Description of the device.
    view : View
        View of the world for the device.

    Attributes
    ----------
    spec : DeviceSpec
        Description of the device.
    kind : Device
        Kind of the device.
    name : str
        Name among the devices of the robot.
    failure : Exception or None
        Exception of the kind's code in a step. The device is disabled then, and `read`
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
        """Return the reading in the present state.

        Returns
        -------
        R
            Reading of the type that the kind documents.

        Raises
        ------
        DeviceError
            The kind's code raises now, or has raised in an earlier step.
        UnknownNameError
            The robot was removed.
        """
        failure = self.failure
        # A failed table affects all devices of its kind.
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
        # These errors name their cause already.
        except BotyardError:
            raise
        # The code may come from any package and raise anything.
        except Exception as error:
            raise self._error("read", error) from error

    def rows(self, reading: R) -> list[tuple[Any, ...]]:
        """Return at most `MAX_ROWS` rows of a reading, one value per field.

        Parameters
        ----------
        reading : R
            Result of `read`.

        Raises
        ------
        DeviceError
            The kind's code raises, or returns rows of another length.
        """
        try:
            # A kind of another package may yield rows without end.
            rows = [tuple(row) for row in islice(self.kind.rows(reading), MAX_ROWS)]
            for row in rows:
                if len(row) != len(self.kind.fields):
                    raise ValueError(
                        f"expected {len(self.kind.fields)} values in a row, "
                        f"found {len(row)}"
                    )
        except Exception as error:
            raise self._error("rows", error) from error

        return rows

    def record(self) -> list[dict[str, Any]]:
        """Return the present reading as plain data for recordings (see `Device.record`).

        Returns
        -------
        list of dict
            One item for each row, with a value for each field of the kind.

        Raises
        ------
        DeviceError
            As for `read` and `rows`.
        """
        reading = self.read()
        return self.kind.named(self.rows(reading))

    def shown(self, what: str, make: Callable[[Any, R], T]) -> T | None:
        """Return the present reading converted for an interface.

        Return None if the kind's code raises; the error is logged once.

        Parameters
        ----------
        what : str
            Name of the conversion, for the log.
        make : callable
            Converts a description and a reading.
        """
        try:
            # Code of the kind runs here, which may raise anything.
            return make(self.spec, self.read())
        except Exception as error:
            # Interfaces read in every step: one line per conversion is enough.
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
        """Disable the device after an exception of its kind's code in a step.

        Readers get a `DeviceError` from now on.

        Parameters
        ----------
        what : str
            Action that has failed, for the log.
        error : Exception
            Exception of the kind's code. Only the first one is kept.
        """
        # Only the first failure is logged; later ones are its consequences.
        if self.failure is None:
            self.failure = error
            log.error("%s; it is disabled", self._error(what, error), exc_info=error)

    def _error(self, what: str, error: Exception) -> DeviceError:
        return DeviceError(
            f'device "{self.name}" of robot {self._view.body}: {what}: {error!r}'
        )

    def _restored(self) -> None:
        """Enable the device again, after the world was restored from a saved state."""
        # The failure belongs to a state that was replaced.
        self.failure = None
        if self._view.memory is not None:
            self._view.memory.table.failure = None

    def _leave(self) -> None:
        """Mark the robot of the device as removed."""
        self._is_there = False

    def write(self, **values: Any) -> None:
        """Set values in the device's memory from a program outside of the simulation.

        Programs command actuators by this method. The journal records each call.

        Parameters
        ----------
        **values
            By name of the column: a number, or as many numbers as the column's width.

        Raises
        ------
        ArgumentError
            The kind has no such column, or the value does not fit the column. Nothing
            is written then.
        UnknownNameError
            The robot was removed.
        """
        if not self._is_there:
            raise UnknownNameError(
                f'robot "{self._view.body}" was removed from its simulation'
            )

        memory = self._view.memory
        # Check names also for a device without memory: it must refuse every name.
        _check_columns(None if memory is None else type(memory.table), values)
        if memory is not None:
            memory.write(**values)

    def command(self, name: str, value: float) -> None:
        """Command an actuator; the journal records the command.

        Parameters
        ----------
        name : str
            Name of the command, see `Device.commands`.
        value : float
            Value in the unit of the command.

        Raises
        ------
        UnknownNameError
            A KeyError: there is no such command, or the robot was removed.
        ArgumentError
            The value is not finite, or beyond the command's limits. Nothing is done
            then.
        DeviceError
            The kind's code raises.
        """
        command = self.kind.command(name)
        try:
            low, high = command.limits(self.spec)
        # The code may come from any package and raise anything.
        except Exception as error:
            raise self._error(f"limits of {name}", error) from error

        # Limits come from the spec, so that they are known only now.
        value = arguments.number(value, name, low=low, high=high, unit=command.unit)
        try:
            columns = dict(command.columns(value))
        except Exception as error:
            raise self._error(name, error) from error

        # The journal records the columns that the command sets.
        self.write(**columns)

    def subscribe(self, reader: str, on: bool = True) -> None:
        """Subscribe a reader, or end its subscription.

        Subscriptions matter for kinds with beams only: each step computes them then.

        Parameters
        ----------
        reader : str
            Name of the reader; each counts once.
        on : bool
            Whether to subscribe.

        Raises
        ------
        UnknownNameError
            The robot was removed.
        """
        if not self._is_there:
            raise UnknownNameError(
                f'robot "{self._view.body}" was removed from its simulation'
            )

        if self.kind.beams is not None:
            self._view._ranging.subscribe(self._view.key, reader, on)

    @property
    def key(self) -> tuple[str, str, int]:
        """Robot, kind and index, by which the fleet finds the ranges of its beams."""
        return self._view.key

    @property
    def ranges(self) -> F8:
        """Ranges of the device's beams in the present state, m; a copy.

        Raises
        ------
        KeyError
            The kind has no beams.
        """
        return self._view.ranges

    @property
    def is_read(self) -> bool:
        """Whether each step computes the device's beams."""
        return self.kind.beams is not None and self._view._ranging.is_read(
            self._view.key
        )

    def _install(self, row: int) -> None:
        """Put the beams and columns of a new robot's device into the engine.

        Parameters
        ----------
        row : int
            Row of the robot.

        Raises
        ------
        ModelError
            The kind's code raises or returns invalid values.
        """
        view, kind = self._view, self.kind
        if kind.beams is not None:
            try:
                # The description is wrong, not the call: a `ModelError` names the
                # robot.
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
                # Start values of other packages get the same checks as written ones.
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
    """Return the key of the row that holds the saved state of a robot's device.

    Parameters
    ----------
    body : str
        Name of the robot.
    name : str
        Name of the device among the devices of the robot.
    """
    return f"{body} {name}"


def has_columns(spec: DeviceSpec) -> bool:
    """Return whether a device keeps data in the engine: beams, columns or measurement errors.

    Parameters
    ----------
    spec : DeviceSpec
        Description of the device.
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


def _check_beams(bundles: Sequence[Bundle]) -> None:
    """Check the beams that the code of a device kind returned; kernels assume finite numbers.

    Parameters
    ----------
    bundles : sequence of Bundle
        Beams of a device.

    Raises
    ------
    TypeError
        An item is no bundle.
    ValueError
        A number is not finite or out of range, or there are more than `MAX_BEAMS`
        beams.
    """
    for b in bundles:
        # Device kinds from other packages may return anything.
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

        # A NaN would spread through kernels without any message.
        if not all(map(math.isfinite, numbers)) or not 0.0 <= b.r_min <= b.r_max:
            raise ValueError(
                f"expected finite numbers and ranges of 0 ≤ min ≤ max, found {b}"
            )

        # `index` refuses floats and accepts integers of NumPy.
        if operator.index(b.count) < 0:
            raise ValueError(f"expected 0 or more beams, found {b.count}")

    # Each bundle may be small, and their sum too large for a step.
    count = sum(b.count for b in bundles)
    if count > MAX_BEAMS:
        raise ValueError(f"expected at most {MAX_BEAMS} beams, found {count}")


def _check_columns(table: type[Table] | None, values: Mapping[str, Any]) -> None:
    """Check values for columns of a table.

    Parameters
    ----------
    table : type of Table or None
        Table of the kind; None: it has no columns.
    values : mapping of str to number or sequence
        Values by name of the column.

    Raises
    ------
    ArgumentError
        There is no column of a name, or a value does not fit.
    """
    columns = {} if table is None else table.columns
    for name, value in values.items():
        if name not in columns:
            known = (
                f"columns: {', '.join(columns)}"
                if columns
                else "this kind of device has no columns"
            )
            raise ArgumentError(
                f'there is no column "{shown(name)}"'
                f"{did_you_mean(name, columns)} ({known})"
            )

        columns[name].check(name, value)


__all__ = ["MAX_ROWS", "DeviceReader", "has_columns", "memory_key"]
