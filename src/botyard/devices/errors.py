"""Built-in error models of ranges and bearings (Gaussian) and of odometry.

Odometry errors follow a Gauss–Markov process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.tables import Column, Table
from botyard.model.devices import Device, DeviceSpec, Errors, Field, parameter
from botyard.numerics.exponentials import exp

if TYPE_CHECKING:
    from botyard.devices.view import View

F8 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalErrorsSpec(DeviceSpec):
    """Description of Gaussian errors of readings, which add to the sensor's own errors.

    Attributes
    ----------
    sensor : str
        ``laser`` (all lasers), ``sonar``, or the name of a device.
    range_bias : float
        Mean error of ranges, m.
    range_deviation : float
        Standard deviation of ranges, m.
    range_share : float
        Increase of the standard deviation for each m of range.
    bearing_deviation : float
        Standard deviation of bearings, rad; for devices that report bearings, not for
        lasers.
    """

    type: str = field(default="normal_errors", init=False)
    sensor: str = parameter("laser")
    range_bias: float = parameter(0.0, unit="m")
    range_deviation: float = parameter(0.0, unit="m", low=0.0)
    range_share: float = parameter(0.0, low=0.0)
    bearing_deviation: float = parameter(0.0, unit="rad", low=0.0, high=math.pi)


def _normal(
    spec: NormalErrorsSpec, view: View, ranges: F8, bearings: F8
) -> tuple[F8, F8]:
    """Return ranges and bearings with Gaussian errors.

    Parameters
    ----------
    spec : NormalErrorsSpec
        Description of the model.
    view : View
        View of the world, which draws the errors.
    ranges, bearings : (n,) float64
        True ranges, m, and bearings, rad.
    """
    n = len(ranges)
    erring = (
        ranges
        + spec.range_bias
        # Both parts use one draw, so that they add up as deviations, not as variances.
        + (spec.range_deviation + spec.range_share * ranges) * view.normal(n)
    )
    turned = (
        bearings + spec.bearing_deviation * view.normal(n, part=1)
        # The second sequence is drawn only if needed, which does not change the first
        # one.
        if spec.bearing_deviation
        else bearings
    )

    return erring, turned


NORMAL_ERRORS: Final = Device(
    name="normal_errors",
    about="normal errors of a sensor",
    spec=NormalErrorsSpec,
    read=lambda spec, _view: spec,
    fields=(
        Field("sensor", kind=str),
        Field("range_deviation", "m"),
        Field("bearing_deviation", "rad"),
    ),
    rows=lambda spec: [(spec.sensor, spec.range_deviation, spec.bearing_deviation)],
    errors=Errors(measured=_normal),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WanderingOdometrySpec(DeviceSpec):
    """Description of proportional odometry errors that vary slowly about zero.

    They follow a first-order Gauss–Markov process, as errors from slip, load and tyres
    do.

    Attributes
    ----------
    x, y, a : float
        Standard deviation of the proportional error of each axis.
    time : float
        Correlation time of the errors, s.
    """

    type: str = field(default="wandering_odometry", init=False)
    x: float = parameter(0.02, low=0.0, high=1.0)
    y: float = parameter(0.02, low=0.0, high=1.0)
    a: float = parameter(0.05, low=0.0, high=1.0)
    time: float = parameter(10.0, unit="s", low=1e-3, high=1e9)


class Wandering(Table):
    """Present odometry errors of all robots with `WanderingOdometrySpec`.

    Attributes
    ----------
    error : (n, 3) float64
        Errors of x, y and rotation, in standard deviations.
    """

    name = "wandering_odometry"
    optional = True
    columns: ClassVar = {"error": Column(np.float64, 3)}
    error: F8


def _wander(spec: WanderingOdometrySpec, view: View) -> tuple[float, float, float]:
    """Advance the odometry errors of a robot by one step, and return them.

    e ← e·φ + √(1 − φ²)·N(0, 1) with φ = exp(−dt / time) keeps the standard deviation at
    1 (A. Gelb, *Applied Optimal Estimation*, §3.8).

    Parameters
    ----------
    spec : WanderingOdometrySpec
        Description of the model.
    view : View
        View of the world from the robot.

    Returns
    -------
    tuple of float
        Proportional errors of x, y and rotation.
    """
    assert view.memory is not None
    error = view.memory.table.error[view.memory.number]
    phi = exp(-view.engine.clock.dt / spec.time)
    error *= phi
    # In place, because `error` is a view of the table.
    error += math.sqrt(1.0 - phi * phi) * view.normal(3)
    # The state is in units of standard deviations, so that the spec may scale it.
    x, y, a = error.tolist()
    return spec.x * x, spec.y * y, spec.a * a


# Reading must not advance the process: only a step does.
def _present(spec: WanderingOdometrySpec, view: View) -> tuple[float, float, float]:
    assert view.memory is not None
    x, y, a = view.memory.table.error[view.memory.number].tolist()
    return spec.x * x, spec.y * y, spec.a * a


WANDERING_ODOMETRY: Final[Device[Any, Any]] = Device(
    name="wandering_odometry",
    about="proportional errors of odometry",
    spec=WanderingOdometrySpec,
    read=_present,
    fields=(Field("x"), Field("y"), Field("a")),
    rows=lambda errors: [errors],
    table=Wandering,
    errors=Errors(odometry=_wander),
)
