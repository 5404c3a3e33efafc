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

MAX_FACTOR: Final = 1e3
"""Highest proportional error of odometry that a model may return."""


class OdometryErrors(Table):
    """Robots whose odometry has an error model of its own.

    Tables of the models hold their states.
    """

    name = "odometry_error"
    optional = True
    columns: ClassVar = {}

    def plan(self, engine: Engine) -> None:
        """Write odometry errors of this step, unless a client switched them off."""
        state = engine.state
        for row in self.rows:
            body = int(self.body[row.number])
            if state.err_mode[body] not in (
                OdometryErrorMode.NONE,
                OdometryErrorMode.PERFECT,
            ):
                # Constant errors keep the engine from drawing its own.
                state.err_mode[body] = OdometryErrorMode.CONSTANT
                state.err[body] = row.factors()  # type: ignore[attr-defined]


class _OdometryRow(Row[OdometryErrors]):
    """Odometry error model of one robot."""

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
    """Return a function that computes a model's odometry errors of a step.

    It returns zeros from the step on in which the model fails.
    """
    odometry = reader.kind.errors.odometry  # type: ignore[union-attr]

    def factors() -> tuple[float, float, float]:
        if reader.failure is None:
            try:
                x, y, a = map(float, odometry(reader.spec, view))  # type: ignore[misc]
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
    """Return the bearing of each reading in its sensor frame, rad.

    If several beams give one reading, it is the bearing of their centre.
    """
    found = [
        np.array([b.angle0 + b.step * (b.count - 1) / 2])
        if b.shortest
        else b.angle0 + b.step * np.arange(b.count)
        for b in bundles
    ]
    bearings: F8 = np.concatenate(found) if found else np.zeros(0)
    return bearings


def _distortion(
    reader: DeviceReader[Any], number: int
) -> Callable[[tuple[Bundle, ...], F8], None]:
    """Return a function that applies a model's errors to a sensor's ranges in place.

    Ranges stay within their limits, and beams that hit nothing do not change.
    """
    errors = reader.kind.errors
    view = reader._view.part(number)
    assert errors is not None

    def distort(bundles: tuple[Bundle, ...], ranges: F8) -> None:
        low = np.repeat([b.r_min for b in bundles], [b.n_readings for b in bundles])
        high = np.repeat([b.r_max for b in bundles], [b.n_readings for b in bundles])
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
    """Install the error models of a new robot.

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
            f'{reader.name}: robot "{view.body}" has a different error model of odometry'
        )

    key = memory_key(view.body, reader.name)
    _OdometryRow(table, row, key, _factors(reader, view))


__all__ = ["OdometryErrors", "attach_errors"]
