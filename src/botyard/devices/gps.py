"""GPS: from a pose in a georeferenced map to latitude, longitude and altitude (WGS 84; pioneer-protocol §13)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from botyard.geometry import Pose, transform_point
from botyard.model.robot import GpsSpec
from botyard.model.scene import GeoReference, Scene, in_polygon

A: Final = 6378137.0
"""Semi-major axis of the WGS 84 ellipsoid, m."""
B: Final = 6356752.3142
"""Semi-minor axis, m."""
E2: Final = 1.0 - (B / A) ** 2
"""First eccentricity squared."""
EP2: Final = (A / B) ** 2 - 1.0
"""Second eccentricity squared."""

_BAD_SECTORS = frozenset({"badgpssector", "simbadgpssector"})


class Fix(NamedTuple):
    """A GPS reading.

    Attributes
    ----------
    latitude, longitude : float
        Degrees north and east.
    altitude : float
        m above the ellipsoid.
    dop : float
        Dilution of precision; 0 within a bad-GPS sector (no usable fix).
    """

    latitude: float
    longitude: float
    altitude: float
    dop: float


def geodetic(origin: GeoReference, east: float, north: float, up: float = 0.0) -> tuple[float, float, float]:
    """Latitude, longitude (°) and altitude (m) of a point `east`, `north`, `up` metres from `origin`.

    Local tangent plane to Earth-centred coordinates and back by Bowring's formula (B. R. Bowring, *Survey Review* 23, 1976), whose
    error is far below a millimetre near the ground.
    """
    lat, lon = math.radians(origin.latitude), math.radians(origin.longitude)
    sin_lat, cos_lat, sin_lon, cos_lon = math.sin(lat), math.cos(lat), math.sin(lon), math.cos(lon)
    n = A / math.sqrt(1.0 - E2 * sin_lat * sin_lat)
    x = (n + origin.altitude) * cos_lat * cos_lon - sin_lon * east - cos_lon * sin_lat * north + cos_lon * cos_lat * up
    y = (n + origin.altitude) * cos_lat * sin_lon + cos_lon * east - sin_lon * sin_lat * north + sin_lon * cos_lat * up
    z = ((1.0 - E2) * n + origin.altitude) * sin_lat + cos_lat * north + sin_lat * up
    p = math.hypot(x, y)
    theta = math.atan2(A * z, B * p)
    lat = math.atan2(z + EP2 * B * math.sin(theta) ** 3, p - E2 * A * math.cos(theta) ** 3)
    lon = math.atan2(y, x)
    n = A / math.sqrt(1.0 - E2 * math.sin(lat) ** 2)
    # p / cos(lat) loses its meaning at the poles; this form holds everywhere
    altitude = p * math.cos(lat) + z * math.sin(lat) - A * A / n
    return math.degrees(lat), math.degrees(lon), altitude


def gps_fix(scene: Scene, spec: GpsSpec, pose: Pose) -> Fix | None:
    """What the receiver of a robot at `pose` reads; None without a georeference (GPS-001 … GPS-007)."""
    if scene.georeference is None:
        return None
    x, y = transform_point(pose, spec.x, spec.y)
    bad = any(a.kind.lower() in _BAD_SECTORS and in_polygon(a.corners, x, y) for a in scene.areas)
    return Fix(*geodetic(scene.georeference, x, y), dop=0.0 if bad else spec.dop)
