"""GPS receiver, which reports latitude, longitude and altitude in a georeferenced map.

Coordinates are WGS 84 (pioneer-protocol §13).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botyard.geometry import Pose, transform_point
from botyard.model.devices import (
    AriaKey,
    Device,
    DeviceSpec,
    Field,
    PioneerFields,
    RosMessage,
    parameter,
)
from botyard.model.scene import GeoReference, Scene, in_polygon
from botyard.numerics.elementary import atan2, cosine_sine, hypot

if TYPE_CHECKING:
    from botyard.devices.view import View

A: Final = 6378137.0
"""Semi-major axis of the WGS 84 ellipsoid, m."""
# Rounded to 0.1 mm, far below the error of a receiver.
B: Final = 6356752.3142
"""Semi-minor axis of the WGS 84 ellipsoid, m."""
# The square is written as a product, because powers may differ between platforms.
E2: Final = 1.0 - (B / A) * (B / A)
"""First eccentricity of the ellipsoid, squared."""
EP2: Final = (A / B) * (A / B) - 1.0
"""Second eccentricity of the ellipsoid, squared."""

# Names of sectors in map files, compared without case.
BAD_SECTORS: Final = frozenset({"badgpssector", "simbadgpssector"})
"""Types of map sectors without reception, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpsSpec(DeviceSpec):
    """Description of a GPS receiver.

    Attributes
    ----------
    x, y : float
        Position of the antenna in the robot frame, m.
    dop : float
        Dilution of precision.
    """

    type: str = field(default="gps", init=False)
    x: float = parameter(0.0, unit="m", key="position", index=0)
    y: float = parameter(0.0, unit="m", key="position", index=1)
    dop: float = parameter(1.0)

    @property
    def pose(self) -> Pose:
        """Pose of the antenna in the robot frame."""
        return Pose(self.x, self.y)


class Fix(NamedTuple):
    """Reading of a GPS receiver.

    Attributes
    ----------
    latitude, longitude : float
        Degrees north and east.
    altitude : float
        Altitude above the ellipsoid, m.
    dop : float
        Dilution of precision; 0 within a bad-GPS sector (no usable fix).
    """

    latitude: float
    longitude: float
    altitude: float
    dop: float


def geodetic(
    origin: GeoReference, east: float, north: float, up: float = 0.0
) -> tuple[float, float, float]:
    """Return latitude, longitude and altitude of a point near the origin of a map.

    The point is converted to Earth-centred coordinates and back by Bowring's formula
    (B. R. Bowring, *Survey Review* 23, 1976), whose error is far below a millimetre
    near the ground.

    Parameters
    ----------
    origin : GeoReference
        Place of the map's origin on the ellipsoid WGS 84.
    east, north, up : float
        Point in the local tangent plane of the origin, m.

    Returns
    -------
    tuple of float
        Latitude and longitude, °, and altitude above the ellipsoid, m.
    """
    lat, lon = math.radians(origin.latitude), math.radians(origin.longitude)
    (cos_lat, sin_lat), (cos_lon, sin_lon) = cosine_sine(lat), cosine_sine(lon)
    # Radius of curvature in the prime vertical
    n = A / math.sqrt(1.0 - E2 * sin_lat * sin_lat)
    x = (
        (n + origin.altitude) * cos_lat * cos_lon
        - sin_lon * east
        - cos_lon * sin_lat * north
        + cos_lon * cos_lat * up
    )
    y = (
        (n + origin.altitude) * cos_lat * sin_lon
        + cos_lon * east
        - sin_lon * sin_lat * north
        + sin_lon * cos_lat * up
    )
    # The ellipsoid is flattened along the axis of the Earth only.
    z = ((1.0 - E2) * n + origin.altitude) * sin_lat + cos_lat * north + sin_lat * up

    # Distance from the axis of the Earth, and parametric latitude (Bowring)
    p = hypot(x, y)
    theta = atan2(A * z, B * p)
    c, s = cosine_sine(theta)
    lat = atan2(z + EP2 * B * s * s * s, p - E2 * A * c * c * c)
    lon = atan2(y, x)
    c, s = cosine_sine(lat)
    n = A / math.sqrt(1.0 - E2 * s * s)

    # The usual p / cos(lat) − n degenerates at the poles; this form holds everywhere.
    altitude = p * c + z * s - A * A / n
    return math.degrees(lat), math.degrees(lon), altitude


def is_in_sector(scene: Scene, kinds: frozenset[str], x: float, y: float) -> bool:
    """Return whether a place is in a sector of certain types.

    Parameters
    ----------
    scene : Scene
        Map.
    kinds : frozenset of str
        Types of sectors, in lower case.
    x, y : float
        Place, m.
    """
    return any(
        # The cheap comparison of names comes first.
        a.kind.lower() in kinds and in_polygon(a.corners, x, y)
        for a in scene.areas
    )


def gps_fix(scene: Scene, spec: GpsSpec, pose: Pose) -> Fix | None:
    """Return the GPS reading of a robot (GPS-001 … GPS-007).

    Parameters
    ----------
    scene : Scene
        Map; its sectors of bad reception have the type ``BadGPSSector``.
    spec : GpsSpec
        Description of the receiver.
    pose : Pose
        True pose of the robot: m, m, rad.

    Returns
    -------
    Fix or None
        None if the map has no georeference.
    """
    # Without a georeference a map has no place on Earth.
    if scene.georeference is None:
        return None
    x, y = transform_point(pose, spec.x, spec.y)
    bad = is_in_sector(scene, BAD_SECTORS, x, y)
    # The position is exact: the dilution is only reported.
    return Fix(*geodetic(scene.georeference, x, y), dop=0.0 if bad else spec.dop)


def _read(spec: GpsSpec, view: View) -> Fix | None:
    return gps_fix(view.scene, spec, view.robot_pose)


def _message(_: GpsSpec, fix: Fix | None) -> Mapping[str, Any] | None:
    """Return a sensor_msgs/NavSatFix, with status −1 without a usable fix."""
    if fix is None:
        return None
    usable = fix.dop > 0.0
    # One metre of standard deviation for a dilution of precision of 1
    variance = fix.dop * fix.dop
    return {
        # STATUS_FIX or STATUS_NO_FIX; SERVICE_GPS
        "status": {"status": 0 if usable else -1, "service": 1},
        "latitude": fix.latitude,
        "longitude": fix.longitude,
        "altitude": fix.altitude,
        "position_covariance": [
            variance,
            0.0,
            0.0,
            0.0,
            variance,
            0.0,
            0.0,
            0.0,
            variance,
        ],
        # COVARIANCE_TYPE_APPROXIMATED or COVARIANCE_TYPE_UNKNOWN
        "position_covariance_type": 1 if usable else 0,
    }


def _simstat(_: GpsSpec, fix: Fix | None) -> dict[str, float]:
    """Return the GPS fields of the SIMSTAT packet (pioneer-protocol §8).

    Units are 10⁻⁷ °, cm, and 100 × dilution of precision. Bit 1 of the flags states
    that the map is georeferenced.
    """
    if fix is None:
        return {}
    return {
        # Bit 1: the map is georeferenced.
        "flags": 2,
        "lat_e7": fix.latitude * 1e7,
        "lon_e7": fix.longitude * 1e7,
        "alt_cm": fix.altitude * 100.0,
        "gps_quality": fix.dop * 100.0,
    }


def _rows(fix: Fix | None) -> list[tuple[float, ...]]:
    return (
        []
        if fix is None
        else [
            (
                # Rows are in SI units; degrees belong to protocols.
                math.radians(fix.latitude),
                math.radians(fix.longitude),
                fix.altitude,
                fix.dop,
            )
        ]
    )


GPS: Final = Device(
    name="gps",
    about="GPS fix, in georeferenced maps",
    spec=GpsSpec,
    read=_read,
    fields=(
        Field("latitude", "rad"),
        Field("longitude", "rad"),
        Field("altitude", "m"),
        Field("dop"),
    ),
    rows=_rows,
    ros=RosMessage(
        topic="fix",
        type_name="sensor_msgs/NavSatFix",
        fields=_message,
        frame="gps",
        period=1.0,
    ),
    pioneer=PioneerFields(simstat=_simstat),
    on_page=False,
    aria=(
        AriaKey("x", "GPS parameters", "GPSPX"),
        AriaKey("y", "GPS parameters", "GPSPY"),
    ),
    stage={
        "pioneer_gps_dop": "dop",
        "pioneer_gps_pos_x": "x",
        "pioneer_gps_pos_y": "y",
    },
)
