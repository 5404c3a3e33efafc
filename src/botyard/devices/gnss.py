"""GNSS receiver with noise, wandering errors, and multipath in zones of the map.

The `gps` of every robot is exact. This receiver errs as real ones do:

- White noise of each fix.
- An error that wanders: atmosphere and satellites change slowly (first-order Gauss–Markov
  process; A. Gelb, *Applied Optimal Estimation*, §3.8).
- Multipath in map sectors of type ``MultipathSector``. Reflections depend on the place, so that
  the error is a field over the map: a receiver at rest has a constant error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from botyard.devices.drawing import normals
from botyard.devices.gps import BAD_SECTORS, geodetic, is_in_sector
from botyard.engine.layout import F8, I1
from botyard.engine.rng import draws
from botyard.engine.tables import Column, Table
from botyard.geometry import IDENTITY, Pose
from botyard.model.devices import Device, DeviceSpec, Field, RosMessage, parameter
from botyard.numerics.exponentials import exp

if TYPE_CHECKING:
    from botyard.devices.view import View
    from botyard.engine.simulation import Engine

MULTIPATH_SECTORS: Final = frozenset({"multipathsector", "simmultipathsector"})
"""Types of map sectors with multipath, in lower case."""
MULTIPATH_CELL: Final = 2.0
"""Distance over which the multipath error changes, m.

It is of the order of ten wavelengths of 0.19 m (L1).
"""
_MULTIPATH_WORD: Final = 0x6D756C7469
"""Word that separates the draws of the multipath field from all others."""
_WORD: Final = 0xFFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class GnssSpec(DeviceSpec):
    """Description of a GNSS receiver with errors.

    Attributes
    ----------
    pose : Pose
        Mounting of the antenna in the robot's frame, m and rad.
    deviation : float
        Standard deviation of the white noise along east and north, m.
    drift : float
        Standard deviation of the wandering error, m.
    drift_time : float
        Correlation time of the wandering error, s.
    multipath : float
        Standard deviation of the error in sectors of type ``MultipathSector``, m.
    vertical : float
        Factor of all these deviations for the altitude.
    update_rate : float
        Rate of messages of interfaces, Hz of simulated time; 0: in every step.
    """

    type: str = field(default="gnss", init=False)
    pose: Pose = parameter(IDENTITY)
    deviation: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    drift: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    drift_time: float = parameter(60.0, unit="s", low=1e-3, high=1e9)
    multipath: float = parameter(0.0, unit="m", low=0.0, high=1e6)
    vertical: float = parameter(1.5, low=0.0, high=100.0)
    update_rate: float = parameter(5.0, unit="Hz", low=0.0, high=1e6)


class GnssErrors(Table):
    """Wandering errors of all receivers.

    Attributes
    ----------
    error : (n, 3) float64
        Errors along east, north and up, in standard deviations.
    is_on : (n,) int8
        0 or 1: whether the receiver took part in a step; the first step draws its errors.
    time : (n,) float64
        Correlation time, s.
    """

    name = "gnss"
    optional = True
    columns: ClassVar[Mapping[str, Column]] = {
        "error": Column(np.float64, 3),
        "is_on": Column(np.int8, low=0, high=1),
        "time": Column(np.float64, saved=False, start=1.0),
    }
    error: F8
    is_on: I1
    time: F8

    def act(self, engine: Engine, dt: float) -> None:
        """Let the errors wander: e ← φ e + √(1 − φ²) N(0, 1) with φ = exp(−dt / time).

        Parameters
        ----------
        engine : Engine
            Engine that has this table.
        dt : float
            Duration of the step, s.
        """
        # The process is stationary from the first step on.
        kept = np.array([exp(-dt / time) for time in self.time.tolist()])
        phi = np.where(self.is_on != 0, kept, 0.0)[:, None]
        drawn = normals(engine, self, 3, 1)
        self.error[:] = phi * self.error + np.sqrt(1.0 - phi * phi) * drawn
        self.is_on[:] = 1


class GnssFix(NamedTuple):
    """Reading of a GNSS receiver.

    Attributes
    ----------
    latitude, longitude : float
        Degrees north and east (WGS 84).
    altitude : float
        Altitude above the ellipsoid, m.
    is_fixed : bool
        Whether there is a fix; not within a sector of type ``BadGPSSector``.
    variance : float
        Variance that the receiver states for east and north, m²: of noise and wandering. It
        does not know of multipath.
    vertical_variance : float
        Variance of the altitude, m².
    """

    latitude: float
    longitude: float
    altitude: float
    is_fixed: bool
    variance: float
    vertical_variance: float


def multipath_at(
    seed: int | np.uint64, x: float, y: float
) -> tuple[float, float, float]:
    """Return the multipath error at a place, in standard deviations.

    Normal draws at the corners of a lattice of `MULTIPATH_CELL` are interpolated bilinearly,
    and scaled so that the variance is 1 everywhere. All receivers share the field.

    Parameters
    ----------
    seed : int or uint64
        Seed of the world.
    x, y : float
        Place, m.

    Returns
    -------
    tuple of float
        Errors along east, north and up.
    """
    ix, iy = math.floor(x / MULTIPATH_CELL), math.floor(y / MULTIPATH_CELL)
    u, v = x / MULTIPATH_CELL - ix, y / MULTIPATH_CELL - iy
    found, square = np.zeros(3), 0.0
    for dx, dy, share in (
        (0, 0, (1 - u) * (1 - v)),
        (1, 0, u * (1 - v)),
        (0, 1, (1 - u) * v),
        (1, 1, u * v),
    ):
        drawn = draws(
            seed, (ix + dx) & _WORD, (iy + dy) & _WORD, _MULTIPATH_WORD, 36
        ).reshape(3, 12)
        # One after the other, because the order of NumPy's own sums is not defined.
        for k in range(12):
            found += share * drawn[:, k] / 2.0
        square += share * share

    east, north, up = (found / math.sqrt(square)).tolist()
    return east, north, up


def _read(spec: GnssSpec, view: View) -> GnssFix | None:
    assert view.memory is not None
    origin, at = view.scene.georeference, view.pose
    if origin is None:
        return None
    error = np.zeros(3)
    if view.errs:
        wandering = view.memory.table.error[view.memory.number]
        error = spec.deviation * view.normal(3) + spec.drift * wandering
        if spec.multipath and is_in_sector(view.scene, MULTIPATH_SECTORS, at.x, at.y):
            error += spec.multipath * np.array(
                multipath_at(view.engine.seed_word, at.x, at.y)
            )

    east, north, up = error.tolist()
    variance = spec.deviation * spec.deviation + spec.drift * spec.drift
    return GnssFix(
        *geodetic(origin, at.x + east, at.y + north, spec.vertical * up),
        not is_in_sector(view.scene, BAD_SECTORS, at.x, at.y),
        variance,
        spec.vertical * spec.vertical * variance,
    )


def _message(_: GnssSpec, fix: GnssFix | None) -> Mapping[str, Any] | None:
    """Return a sensor_msgs/NavSatFix, with status −1 without a fix."""
    if fix is None:
        return None
    across, up = fix.variance, fix.vertical_variance
    return {
        # STATUS_FIX or STATUS_NO_FIX; SERVICE_GPS
        "status": {"status": 0 if fix.is_fixed else -1, "service": 1},
        "latitude": fix.latitude,
        "longitude": fix.longitude,
        "altitude": fix.altitude,
        "position_covariance": [across, 0.0, 0.0, 0.0, across, 0.0, 0.0, 0.0, up],
        # COVARIANCE_TYPE_DIAGONAL_KNOWN or COVARIANCE_TYPE_UNKNOWN
        "position_covariance_type": 2 if fix.is_fixed else 0,
    }


def _rows(fix: GnssFix | None) -> list[tuple[Any, ...]]:
    if fix is None:
        return []
    # Rows are in SI units; degrees belong to protocols.
    return [(math.radians(fix.latitude), math.radians(fix.longitude), *fix[2:])]


GNSS: Final = Device(
    name="gnss",
    about="GNSS fix with errors and multipath, in georeferenced maps",
    spec=GnssSpec,
    read=_read,
    fields=(
        Field("latitude", "rad"),
        Field("longitude", "rad"),
        Field("altitude", "m"),
        Field("fixed", kind=bool),
        Field("variance", "m²"),
        Field("vertical_variance", "m²"),
    ),
    rows=_rows,
    table=GnssErrors,
    start=lambda spec: {"time": spec.drift_time},
    ros=RosMessage(
        topic="gnss",
        type_name="sensor_msgs/NavSatFix",
        fields=_message,
        frame="gnss",
        about="GNSS fix with errors",
    ),
)
"""Kind of device for GNSS receivers with errors."""
