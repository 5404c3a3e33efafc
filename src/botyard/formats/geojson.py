"""Reader of maps in GeoJSON (RFC 7946).

Lines and the borders of polygons are walls; points with a name are goals.

Coordinates are usually longitude and latitude (WGS 84); the map then gets a
georeference at their centre. If the file names another reference system (``crs`` of the
2008 format, which QGIS and ogr2ogr write), coordinates are in its unit, metres or feet.
Coordinates are metres if their values cannot be degrees, or if the user requests it
(``planar``). Coordinates of a national grid are moved to the origin.

Properties of a feature: ``name``; ``kind`` (of a point: ``Goal``, ``Dock``,
``RobotHome``), ``heading`` (degrees counter-clockwise from east); ``obstacle``,
``laser``, ``sonar`` (false: invisible to that sensor or without collisions).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botyard.errors import MapError
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.drawing import site_of
from botyard.formats.epsg import is_geographic, unit_length
from botyard.formats.jsonfile import brief, loads
from botyard.geometry import Pose
from botyard.model.obstacles import Returns
from botyard.model.scene import GeoReference, Place, Scene, SpecialWalls
from botyard.model.world import World
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine
from botyard.numerics.exponentials import exp
from botyard.units import from_deg, wrap_angle

_SEMI_MAJOR: Final = 6378137.0
_E2: Final = 0.00669437999014
"""First eccentricity of the WGS 84 ellipsoid, squared."""


_MERCATOR: Final = frozenset({3857, 3785, 900913, 102100})
"""EPSG codes of the Mercator projection of web maps.

Its metres are longer than metres on the ground.
"""
_DEPTHS: Final = {
    "LineString": 0,
    "MultiLineString": 1,
    "Polygon": 1,
    "MultiPolygon": 2,
}
_TYPES: Final = frozenset(
    {
        "FeatureCollection",
        "Feature",
        "GeometryCollection",
        "Point",
        "MultiPoint",
        *_DEPTHS,
    }
)


def fits(source: Source) -> bool:
    """Return whether a JSON file is GeoJSON."""
    return b'"Feature' in source.data or b'"coordinates"' in source.data


class _Collector:
    """Collector of lines and points from the nested objects of a file."""

    def __init__(self, name: str, meter: Meter) -> None:
        self._name = name
        self._meter = meter
        self.lines: dict[Returns, list[NDArray[np.float64]]] = {}
        self.points: list[tuple[NDArray[np.float64], dict[str, Any]]] = []
        self.unknown: set[str] = set()
        """Types of objects in the file that RFC 7946 does not define."""

    def fail(self, where: str, expected: str, found: Any) -> MapError:
        return MapError(
            f"{where}: expected {expected}, found {brief(found)}", self._name
        )

    def object(
        self, value: Any, where: str, properties: dict[str, Any], depth: int = 0
    ) -> None:
        self._meter.check("nesting", depth)
        if not isinstance(value, dict):
            raise self.fail(where, "a GeoJSON object", value)
        kind = value.get("type")
        # Extensions of GeoJSON are ignored inside of a file, but not as a whole file.
        if depth and isinstance(kind, str) and kind not in _TYPES:
            self.unknown.add(kind)
            return

        if kind == "FeatureCollection":
            for i, feature in enumerate(
                self._list(value.get("features"), f"{where}.features")
            ):
                self.object(feature, f"{where}.features[{i}]", {}, depth + 1)
        elif kind == "Feature":
            own = value.get("properties")
            if value.get("geometry") is not None:
                self.object(
                    value["geometry"],
                    f"{where}.geometry",
                    own if isinstance(own, dict) else {},
                    depth + 1,
                )
        elif kind == "GeometryCollection":
            for i, part in enumerate(
                self._list(value.get("geometries"), f"{where}.geometries")
            ):
                self.object(part, f"{where}.geometries[{i}]", properties, depth + 1)
        else:
            self._geometry(kind, value.get("coordinates"), where, properties)

    def _geometry(
        self, kind: Any, coordinates: Any, where: str, properties: dict[str, Any]
    ) -> None:
        if kind in ("Point", "MultiPoint"):
            single = (
                [coordinates] if kind == "Point" else self._list(coordinates, where)
            )
            # An empty array means a missing geometry (RFC 7946, section 3.1).
            single = [p for p in single if p != []]
            self.points += [
                (self._positions([p], where)[0], properties) for p in single
            ]
            return

        if not isinstance(kind, str) or kind not in _DEPTHS:
            raise self.fail(f"{where}.type", "a type of RFC 7946", kind)
        # Only an explicit false makes a wall invisible; other values are common in
        # exports.
        seen = Returns(
            obstacle=properties.get("obstacle") is not False,
            laser=int(properties.get("laser") is not False),
            sonar=properties.get("sonar") is not False,
        )
        for line in self._flat(coordinates, _DEPTHS[kind], where):
            positions = self._positions(line, where)
            if len(positions) > 1:
                self.lines.setdefault(seen, []).append(
                    np.concatenate([positions[:-1], positions[1:]], axis=1)
                )

    def _flat(self, coordinates: Any, depth: int, where: str) -> Iterator[Any]:
        if depth == 0:
            yield coordinates
            return

        for part in self._list(coordinates, where):
            yield from self._flat(part, depth - 1, where)

    def _list(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.fail(where, "an array", value)
        return value

    def _positions(self, line: Any, where: str) -> NDArray[np.float64]:
        """Return the positions of a GeoJSON array as a NumPy array, (n, 2)."""
        try:
            positions = np.array(
                [(float(p[0]), float(p[1])) for p in self._list(line, where)]
            ).reshape(-1, 2)
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            raise self.fail(f"{where}.coordinates", "positions [x, y]", line) from None

        if not np.isfinite(positions).all():
            raise self.fail(f"{where}.coordinates", "finite numbers", line)
        return positions


def _earth_centred(
    longitude: NDArray[np.float64], latitude: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return points of the ellipsoid in Earth-centred coordinates (ECEF), (n, 3), m.

    Angles are in rad.
    """
    (cos_lat, sin_lat), (cos_lon, sin_lon) = (
        elementwise.cosine_sine(latitude),
        elementwise.cosine_sine(longitude),
    )
    n = _SEMI_MAJOR / np.sqrt(1.0 - _E2 * sin_lat * sin_lat)
    return np.stack(
        [n * cos_lat * cos_lon, n * cos_lat * sin_lon, n * (1.0 - _E2) * sin_lat],
        axis=-1,
    )


def _project(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], GeoReference]:
    """Project longitudes and latitudes, (n, 2), degrees, to metres east and north.

    The plane is the tangent plane at the centre of the points. Return the points, (n, 2),
    m, and the centre.
    """
    longitude, latitude = (
        float(v) for v in (points.min(axis=0) + points.max(axis=0)) / 2.0
    )
    lon, lat = from_deg(longitude), from_deg(latitude)
    away = _earth_centred(*np.radians(points).T) - _earth_centred(
        np.array(lon), np.array(lat)
    )
    (cos_lat, sin_lat), (cos_lon, sin_lon) = cosine_sine(lat), cosine_sine(lon)
    x, y, z = away.T
    east, north = (
        y * cos_lon - x * sin_lon,
        z * cos_lat - sin_lat * (x * cos_lon + y * sin_lon),
    )
    return np.stack([east, north], axis=1), GeoReference(latitude, longitude, 0.0)


def _reference_system(root: Any, name: str, options: Options) -> int | None:
    """Return the EPSG code that the ``crs`` of a file names; None if there is none.

    The names of WGS 84 in degrees give 4326. None means that the file has no ``crs``,
    or one without a number.
    """
    crs = root.get("crs") if isinstance(root, dict) else None
    properties = crs.get("properties") if isinstance(crs, dict) else None
    text = properties.get("name") if isinstance(properties, dict) else None
    # The form of ``crs`` before 2008.
    code = properties.get("code") if isinstance(properties, dict) else None
    is_old = isinstance(crs, dict) and crs.get("type") == "EPSG"
    if is_old and text is None and type(code) is int:
        return code
    if isinstance(text, str):
        # OGC names of systems in degrees: CRS84, CRS83, CRS27.
        if re.search(r"\bCRS ?:?(84|83|27)h?\b", text, re.IGNORECASE):
            return 4326
        if match := re.search(
            r"\bEPSG[:/]{1,2}(?:[\d.]*[:/])?(\d{1,9})$",
            text.strip(),
            re.IGNORECASE | re.ASCII,
        ):
            return int(match[1])

    if crs is not None:
        options.warn(
            f"{name}: unknown crs {brief(text if text is not None else crs)}: the "
            "size of the coordinates decides between degrees and metres"
        )

    return None


def _are_degrees(points: NDArray[np.float64], code: int | None) -> bool:
    """Return whether coordinates are longitude and latitude.

    The EPSG code of their system decides, or otherwise their values.
    """
    if code is not None:
        return is_geographic(code)
    return bool((np.abs(points) <= (180.0, 90.0)).all())


def _unprojected(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return longitude and latitude, degrees, of web-map coordinates, m.

    Source: IOGP 373-7-2, method 1024, Popular Visualisation Pseudo-Mercator.
    """
    x, y = (points / _SEMI_MAJOR).T
    latitude = (
        2.0 * elementwise.atan2(np.array([exp(v) for v in y.tolist()]), np.ones(len(y)))
        - math.pi / 2.0
    )
    degrees: NDArray[np.float64] = np.degrees(np.stack([x, latitude], axis=1))
    return degrees


def read(source: Source, options: Options) -> World:
    """Read a GeoJSON file as a world.

    Raises
    ------
    MapError
        The file is invalid. The error names the path in the file, the expected and the
        found value.
    """
    meter = Meter(options.budget, source.name)
    text = source.text
    # The number of brackets is an upper bound, because each position has its own.
    meter.add("vertices", 2 * text.count("["))
    root = loads(text, meter)
    found = _Collector(source.name, meter)
    found.object(root, "$", {})
    if found.unknown:
        options.warn(
            f"{source.name}: ignored objects whose types RFC 7946 does not define: "
            f"{brief(sorted(found.unknown))}"
        )

    if not found.lines:
        raise MapError("expected lines or polygons, found none", source.name)
    walls, special, count = [], [], 0
    for seen, lines in found.lines.items():
        walls += lines
        first, count = count, count + sum(map(len, lines))
        if seen != Returns():
            special.append(SpecialWalls(first=first, last=count, returns=seen))

    # Walls and goals are projected together, so that they keep their relative position.
    points = np.concatenate(
        [*(s.reshape(-1, 2) for s in walls), *(p[None] for p, _ in found.points)]
    )
    code = (
        _reference_system(root, source.name, options)
        if options.planar is None
        else None
    )
    degrees = (
        _are_degrees(points, code) if options.planar is None else not options.planar
    )
    if (
        code in _MERCATOR
        and options.budget.extent < float(np.abs(points).max()) <= math.pi * _SEMI_MAJOR
    ):
        # Coordinates within the limit are metres of a robot's own map: some tools
        # require a projection in a file, and users then choose the web map's.
        meter.check("extent", float(np.ptp(points, axis=0).max()))
        points, degrees = _unprojected(points), True

    # Only projected coordinates have a known position on Earth.
    origin = None
    if degrees:
        points, origin = _project(points)
        across = float(np.ptp(points, axis=0).max())
        # Few robots work in an area this large, so the unit is probably wrong.
        if options.planar is None and across > 10_000.0:
            options.warn(
                f"{source.name}: read as degrees, the map is {across / 1000.0:.0f} "
                "km across; if its numbers are metres, use `botyard convert "
                "--planar`, or add a crs to the file"
            )

        meter.check("extent", across)
    else:
        points = points * (1.0 if code is None else unit_length(code))
        low, high = points.min(axis=0), points.max(axis=0)
        meter.check("extent", float((high - low).max()))
        points = points - site_of(
            (float(low[0]), float(low[1])),
            (float(high[0]), float(high[1])),
            source,
            options,
        )

    places = tuple(
        _place(p, about)
        for p, (_, about) in zip(points[2 * count :], found.points, strict=True)
    )
    start = next(
        (
            p.pose
            for kind in ("robothome", "dock")
            for p in places
            if p.kind.lower() == kind
        ),
        None,
    )
    scene = Scene(
        name=source.stem,
        source=source.name,
        segments=points[: 2 * count].reshape(-1, 4),
        special_walls=tuple(special),
        places=places,
        start=start,
        georeference=origin,
    )
    return World(scene=scene)


def _name(value: Any) -> str:
    return (
        str(value)
        if isinstance(value, str | float)
        or (isinstance(value, int) and abs(value) < 10**18)
        else ""
    )


def _place(at: NDArray[np.float64], properties: dict[str, Any]) -> Place:
    heading = properties.get("heading")
    headed = isinstance(heading, int | float) and abs(heading) < 1e9
    th = wrap_angle(from_deg(float(heading))) if headed and heading is not None else 0.0
    kind = properties.get("kind")
    return Place(
        kind=str(kind) if isinstance(kind, str) and kind else "Goal",
        name=_name(properties.get("name")),
        pose=Pose(float(at[0]), float(at[1]), th),
        has_heading=headed,
    )


__all__ = ["fits", "read"]
