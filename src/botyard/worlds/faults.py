"""Messages for worlds of a batch that could not be advanced.

A message describes the `Fault` and the first number that is out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.engine.batchchecks import MAX_COORDINATE, MAX_TARGET
from botyard.engine.batchlayout import Fault
from botyard.engine.kernels.delayrings import CYCLE_EXCESS, delay_steps
from botyard.engine.kernels.latency_checks import MAX_RATE_HZ, MAX_SCALE
from botyard.model.drivechecks import MAX_WHEEL_RATIO
from botyard.model.kinematics import MAX_SPEED, MEASURES_BY_PAIR
from botyard.model.sensors import MAX_LATENCY_S
from botyard.sim.parameters import BEAMS, COLUMNS

FAULTS: Final = {
    Fault.POSE: "a pose is not finite, or out of bounds",
    Fault.VELOCITY: "a command or a velocity is not finite, or out of bounds",
    Fault.LIMITS: "a limit of speeds or accelerations, or an error of odometry, "
    "is negative, too large or not finite",
    Fault.SENSOR: (
        "ranges or errors of a sensor are negative, too large or not finite, or the "
        "minimum range is above the maximum range"
    ),
    Fault.KIND: "its state does not belong to these worlds",
    Fault.CONTACTS: (
        "its bodies with mass have more contacts than the batch has room for; a "
        "single Simulation has room for more"
    ),
    Fault.LATENCY: "a latency is negative, not finite, or beyond max_latency, "
    "which is set when the worlds are made, "
    "a jitter is above its latency, or a scale is too large",
    Fault.MAP: "its state names another map than map 0, the only map of these worlds",
    Fault.RATE: (
        "a rate is negative, too large or not finite; or it is below the rate of "
        "steps: set max_latency to 0 or more when you make the worlds"
    ),
}
"""Text for each fault; `words` adds the number that is wrong."""
Values = Callable[[str], NDArray[Any]]
"""Function that returns an array of one world by name.

Names are parameters of `Worlds.param`, ``pose``, ``vel``, ``command`` or ``drive``.
"""
Check = tuple[str, NDArray[Any], float | NDArray[Any], float | NDArray[Any]]
"""Name of an array, the array, and the least and greatest value of each element."""


def words(
    fault: Fault,
    values: Values,
    owners: Callable[[str], Sequence[str]],
    late_steps: int | None,
    dt: float,
) -> str:
    """Describe the fault of a world, with the first number that is out of range if any.

    Parameters
    ----------
    fault : Fault
        Fault of the world.
    values : callable
        Returns arrays of the world.
    owners : callable
        Returns names of the owners of each row of an array.
    late_steps : int or None
        Highest latency, steps; None: the worlds have no latency.
    dt : float
        Simulated time of a step, s.

    Returns
    -------
    str
        Text in `FAULTS`, and in brackets the first wrong number with its owner and range.
    """
    found = FAULTS[fault]
    for name, array, low, high in _checks(fault, values, late_steps, dt):
        # NaN fails both comparisons.
        wrong = np.argwhere(~((array >= low) & (array <= high)))
        if len(wrong):
            at = tuple(wrong[0])
            least, most = (
                float(np.broadcast_to(bound, array.shape)[at]) for bound in (low, high)
            )
            return (
                f"{found} ({name} of {owners(name)[at[0]]}: expected "
                f"{least:g} … {most:g}, found {float(array[at]):g})"
            )

    return found


def _checks(
    fault: Fault, values: Values, late_steps: int | None, dt: float
) -> Iterator[Check]:
    """Yield the arrays that may be out of range with a fault.

    `botyard.engine.batchchecks.fault_of` finds faults by the same bounds.

    Parameters
    ----------
    fault, values, late_steps, dt
        See `words`.

    Yields
    ------
    tuple of (str, array, bounds, bounds)
        Name of an array, the array, and the least and greatest value of each element.
    """
    if fault == Fault.POSE:
        most = np.array([MAX_COORDINATE, MAX_COORDINATE, math.pi])
        yield "pose", values("pose"), -most, most
    elif fault == Fault.VELOCITY:
        yield "command", values("command"), -MAX_TARGET, MAX_TARGET
        yield "vel", values("vel"), -MAX_SPEED, MAX_SPEED
    elif fault == Fault.LIMITS:
        for name, (_, low, high) in COLUMNS.items():
            yield name, values(name), low, high
        yield (
            "wheel_ratio",
            values("wheel_ratio"),
            1.0 / MAX_WHEEL_RATIO,
            MAX_WHEEL_RATIO,
        )
        is_pair = MEASURES_BY_PAIR.take(values("drive"), mode="clip")
        least, most = (
            np.where(is_pair, 0.0, 1.0),
            np.where(is_pair, math.inf, 1.0),
        )
        yield "wheel_ratio", values("wheel_ratio"), least, most
    elif fault == Fault.SENSOR:
        for name, (_, high) in BEAMS.items():
            yield name, values(name), 0.0, high
        yield "range_min", values("range_min"), 0.0, values("range_max")
    elif fault == Fault.LATENCY:
        for of in ("command", "range"):
            latency, jitter = values(f"{of}_latency"), values(f"{of}_jitter")
            yield f"{of}_latency", latency, 0.0, MAX_LATENCY_S
            yield f"{of}_jitter", jitter, 0.0, latency
            yield (
                f"{of}_latency",
                latency,
                0.0,
                _greatest_latencies(latency, jitter, late_steps, dt),
            )

        yield "command_scale", values("command_scale"), -MAX_SCALE, MAX_SCALE
    elif fault == Fault.RATE:
        # Without a buffer only rates of at least one cycle per step are possible.
        slowest = 0.0 if late_steps is not None else 1.0 / (dt * CYCLE_EXCESS)
        for name in ("command_rate", "range_rate"):
            rate = values(name)
            yield name, rate, 0.0, MAX_RATE_HZ
            # Rate 0 means every step, and is always valid.
            yield name, np.where(rate == 0.0, slowest, rate), slowest, MAX_RATE_HZ


def _greatest_latencies(
    latency: NDArray[Any], jitter: NDArray[Any], late_steps: int | None, dt: float
) -> NDArray[np.float64]:
    """Return the greatest latency, s, that leaves room for each jitter.

    A latency that has room is returned unchanged.

    Parameters
    ----------
    latency, jitter : (k,) float64
        Latencies and jitters, s.
    late_steps : int or None
        Highest latency with jitter, steps; None: no latency is possible.
    dt : float
        Simulated time of a step, s.
    """
    most = -1 if late_steps is None else late_steps
    # One by one: `delay_steps` is a kernel for scalars, and this runs only for
    # messages.
    has_room = [
        one <= 0.0 or delay_steps(one, more, 1.0, dt) <= most
        for one, more in zip(latency.tolist(), jitter.tolist(), strict=True)
    ]
    return np.where(has_room, latency, np.maximum(0.0, most * dt - jitter))


__all__ = ["FAULTS", "words"]
