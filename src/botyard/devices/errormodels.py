"""Application of error models to odometry and ranges.

Odometry is changed before bodies move, ranges after beams were cast (see
`botyard.model.devices.Errors`). An error model is a device of the robot. Its errors go
into the engine's own columns (`State.err`) or into the readings, so that all readers
get the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

import numpy as np

from botyard.devices.devicereader import DeviceReader, memory_key
from botyard.devices.ranging import RangeDevices
from botyard.devices.view import View, measured_by
from botyard.engine.layout import F8, OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.engine.tables import Row, Table
from botyard.errors import DeviceError, ModelError
from botyard.model.beams import Bundle

# A bound that keeps odometry finite for all lengths of runs.
MAX_FACTOR: Final = 1e3
"""Highest proportional error of odometry that a model may return."""


class OdometryErrors(Table):
    """Table of the robots whose odometry has an error model; it acts in each step.

    Tables of the error models hold their states.
    """

    name = "odometry_error"
    optional = True
    columns: ClassVar = {}

    def plan(self, engine: Engine) -> None:
        """Write the odometry errors of this step, except for robots whose errors are switched off.

        Parameters
        ----------
        engine : Engine
            Engine that has these robots. In-place: `err` and `err_mode` of its state.
        """
        state = engine.state
        for row in self.rows:
            body = int(self.body[row.number])
            # Clients may have asked for exact odometry, which has precedence.
            if state.err_mode[body] not in (
                OdometryErrorMode.NONE,
                OdometryErrorMode.PERFECT,
            ):
                # Constant errors keep the engine from drawing its own.
                state.err_mode[body] = OdometryErrorMode.CONSTANT
                state.err[body] = row.factors()  # type: ignore[attr-defined]


class _OdometryRow(Row[OdometryErrors]):
    """Robot whose odometry has an error model."""

    def __init__(
        self,
        table: OdometryErrors,
        body: int,
        key: str,
        factors: Callable[[], tuple[float, float, float]],
    ) -> None:
        self.factors = factors
        super().__init__(table, body, key)


def _factors(
    reader: DeviceReader[Any], view: View
) -> Callable[[], tuple[float, float, float]]:
    """Return a function that computes the odometry errors of a robot for one step.

    After the error model has raised an exception, the function returns zeros.

    Parameters
    ----------
    reader : DeviceReader
        Error model, a device of the robot.
    view : View
        View of the world with the random stream of the model.
    """
    odometry = reader.kind.errors.odometry  # type: ignore[union-attr]

    def factors() -> tuple[float, float, float]:
        if reader.failure is None:
            try:
                x, y, a = map(float, odometry(reader.spec, view))  # type: ignore[misc]
                # The comparison is false for NaN, which is refused as well.
                if max(abs(x), abs(y), abs(a)) <= MAX_FACTOR:
                    return x, y, a
                # Handled below like an exception of the model itself.
                raise ValueError(
                    f"expected errors within ±{MAX_FACTOR:g}, found {(x, y, a)}"
                )
            # The code may come from any package and raise anything.
            except Exception as error:
                # The robot continues without errors rather than stopping the world.
                reader.fail("odometry", error)

        return 0.0, 0.0, 0.0

    return factors


def _bearings(bundles: Iterable[Bundle]) -> F8:
    """Return the bearing of each reading of a sensor in the sensor frame, rad.

    If several beams give one reading, the bearing is the centre of their bearings.
    """
    found = [
        np.array([b.angle0 + b.step * (b.count - 1) / 2])
        if b.shortest
        else np.tile(b.angle0 + b.step * np.arange(b.count), b.optics.echoes)
        for b in bundles
    ]
    bearings: F8 = np.concatenate(found) if found else np.zeros(0)
    return bearings


def _distortion(
    reader: DeviceReader[Any], number: int
) -> Callable[[tuple[Bundle, ...], F8], None]:
    """Return a function that applies an error model to the ranges of a sensor, in place.

    Ranges stay within their limits, and beams that hit nothing do not change.

    Parameters
    ----------
    reader : DeviceReader
        Error model, a device of the robot.
    number : int
        Number of the sensor among the model's sensors; each has a random stream of its
        own.

    Returns
    -------
    callable
        Takes the sensor's beams and its ranges, m.
    """
    errors = reader.kind.errors
    view = reader._view.part(number)
    assert errors is not None

    def distort(bundles: tuple[Bundle, ...], ranges: F8) -> None:
        low = np.repeat([b.r_min for b in bundles], [b.n_readings for b in bundles])
        high = np.repeat([b.r_max for b in bundles], [b.n_readings for b in bundles])
        # Test before the distortion, which may push ranges over the limit.
        met = ranges < high
        if reader.failure is None:
            try:
                erring, _ = measured_by(
                    errors, reader.spec, view, ranges, _bearings(bundles)
                )
            except DeviceError as error:
                reader.fail("errors", error)
            else:
                # A beam that hit nothing has no range to distort.
                ranges[met] = np.clip(erring, low, high)[met]

    return distort


def attach_errors(
    readers: Iterable[DeviceReader[Any]],
    lasers: int,
    has_sonar: bool,
    engine: Engine,
    ranging: RangeDevices,
) -> None:
    """Connect the error models of a new robot to its odometry and sensors.

    Parameters
    ----------
    readers : iterable of DeviceReader
        All devices of the robot.
    lasers : int
        Number of the robot's lasers.
    has_sonar : bool
        Whether the robot has a sonar ring.
    engine, ranging : Engine, RangeDevices
        Engine and range sensors of the world.

    Raises
    ------
    ModelError
        A model refers to a sensor that the robot does not have.
    """
    readers = list(readers)
    for reader in readers:
        errors, body = reader.kind.errors, reader._view.body
        if errors is None:
            continue
        if errors.odometry is not None:
            _install_odometry(reader, engine)
        if errors.measured is None:
            continue
        # Kinds of other packages need not have the field.
        sensor = getattr(reader.spec, "sensor", "laser")
        keys = [(body, "laser", i) for i in range(lasers)] if sensor == "laser" else []
        keys += [(body, "sonar", 0)] if sensor == "sonar" and has_sonar else []
        others = [one for one in readers if one.name == sensor]
        if not keys and not others:
            raise ModelError(f'{reader.name}: robot {body} has no sensor "{sensor}"')
        keys += [one._view.key for one in others if one.kind.beams is not None]

        # Without sensor noise the simulation is exact, so that models do not apply.
        if reader._view.errs:
            # Each sensor has its own random stream, so that their errors are
            # independent.
            for number, key in enumerate(keys):
                ranging.distort(key, _distortion(reader, number))
            for one in others:
                one._view.models.append(
                    # The streams 0 … len(keys) − 1 belong to the sensors above.
                    (errors, reader.spec, reader._view.part(len(keys)))
                )


def _install_odometry(reader: DeviceReader[Any], engine: Engine) -> None:
    # Odometry has its own error setting, independent of sensor noise.
    view = reader._view.part(0, errs=True)
    view.memory = reader._view.memory
    table = engine.optional_table(OdometryErrors)
    row = engine.rows[view.body]
    # `State.err` has room for one model per robot.
    if (table.body == row).any():
        raise ModelError(
            f'{reader.name}: robot "{view.body}" already has another error model of odometry'
        )

    key = memory_key(view.body, reader.name)
    _OdometryRow(table, row, key, _factors(reader, view))


__all__ = ["OdometryErrors", "attach_errors"]
