"""Conversion between an ArMap (millimetres, degrees) and a `Scene` (metres, radians).

Both directions follow the reference ``formats.md`` §1.4, §1.5.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from botyard.formats.armap import parse
from botyard.formats.armapparts import ArMap, Cairn, InfoLine, ScanSource
from botyard.formats.base import DEFAULT_POINT_SIZE, Options, Source
from botyard.geometry import Pose
from botyard.model.colors import hex_of
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Area, GeoReference, Place, Scene
from botyard.model.world import World
from botyard.names import shown
from botyard.numerics.elementary import atan2, cos, cosine_sine, hypot, sin
from botyard.units import from_deg, from_mm, wrap_angle

LINE_THICKNESS_MM = 20.0


@dataclass(frozen=True, slots=True)
class _SectorType:
    """Simulator properties of a sector or boundary type.

    Source: the documented rules of `formats.md` §1.5. The attributes of a type may have any
    order.
    """

    returns: Returns | None
    color: str | None
    is_line: bool


_YES, _NO = {"yes", "true"}, {"no", "false"}


def _laser_return(value: str, fallback: int) -> int:
    """Return the engine's laser return for the value of a ``Sim.LaserReflect``.

    The result is 0 for an invisible surface, 1 for an ordinary one, and n + 1 for a bright
    one with the reflectance n > 1.
    """
    text = value.lower()
    if text in _NO:
        return 0
    if text in _YES:
        return 1
    try:
        n = int(float(text))
    except (ValueError, OverflowError):
        return fallback

    # Packets report a bright surface as its laser return − 1 (pioneer-protocol §7).
    return min(n, 10**6) + 1 if n > 1 else max(n, 0)


def _sector_types(armap: ArMap) -> tuple[dict[str, _SectorType], set[str]]:
    """Return the sector types of a map by lower-case name, and the names of dock types."""
    sectors: dict[str, _SectorType] = {}
    docks = {"dock"}
    for info in armap.infos:
        if info.keyword != "MapInfo" or len(info.args) < 2:
            continue
        keys: dict[str, str] = {}
        for arg in info.args[1:]:
            key, _, value = arg.partition("=")
            # The first value of a repeated key counts.
            keys.setdefault(key.lower(), value)

        name = keys.get("name", "").lower()
        if info.args[0].lower() == "docktype":
            docks.add(name)
        elif info.args[0].lower() in ("sectortype", "boundarytype") and name:
            returns = None
            if "sim.obstacle" in keys:
                returns = Returns(
                    obstacle=keys["sim.obstacle"].lower() not in _NO,
                    laser=_laser_return(keys.get("sim.laserreflect", "1"), 1),
                    sonar=keys.get("sim.sonarreflect", "yes").lower() not in _NO,
                )

            color = keys.get("color0", "")
            sectors[name] = _SectorType(
                returns,
                f"#{color[2:].zfill(6)}"
                if re.fullmatch(r"0x[0-9a-fA-F]{1,6}", color)
                else None,
                info.args[0].lower() == "boundarytype",
            )

    return sectors, docks


def _base_type(kind: str) -> str:
    return kind.lower().removesuffix("withheading")


def _rectangle_box(cairn: Cairn, name: str, returns: Returns, color: str) -> BoxObject:
    """Return the movable box that a rectangle cairn describes.

    The cairn has two opposite corners; its rectangle is rotated about the map's origin.
    """
    corners = cairn.corners()
    assert cairn.from_to is not None
    x1, y1, x2, y2 = cairn.from_to
    cx, cy = (corners[0][0] + corners[2][0]) / 2, (corners[0][1] + corners[2][1]) / 2
    return BoxObject(
        name=name,
        pose=Pose(from_mm(cx), from_mm(cy), wrap_angle(from_deg(cairn.th))),
        # A box without size could not collide.
        length=max(from_mm(abs(x2 - x1)), 1e-3),
        width=max(from_mm(abs(y2 - y1)), 1e-3),
        returns=returns,
        color=color,
    )


def _line_box(cairn: Cairn, name: str, returns: Returns, color: str) -> BoxObject:
    """Return the box that a line cairn describes, 2 cm thick: a bright reflector, or a boundary."""
    assert cairn.from_to is not None
    x1, y1, x2, y2 = map(from_mm, cairn.from_to)
    return BoxObject(
        name=name,
        pose=Pose((x1 + x2) / 2, (y1 + y2) / 2, atan2(y2 - y1, x2 - x1)),
        length=max(hypot(x2 - x1, y2 - y1), 1e-3),
        width=from_mm(LINE_THICKNESS_MM),
        returns=returns,
        color=color,
    )


def _is_reflector(kind: str) -> bool:
    return kind in ("reflector", "sim.reflector") or kind.endswith(".reflect")


def _boxes(armap: ArMap, sectors: dict[str, _SectorType]) -> Iterator[BoxObject]:
    n_boxes = n_reflectors = 0
    for cairn in armap.cairns:
        kind = cairn.type.lower()
        if cairn.from_to is None:
            continue
        sector = sectors.get(kind)
        returns = sector.returns if sector else None
        if returns is None and kind == "sim.boxobstacle":
            returns = Returns()
        if returns is not None:
            n_boxes += 1
            color = (sector.color if sector else None) or (
                "magenta" if returns.laser > 1 else "light green"
            )
            make = _line_box if sector and sector.is_line else _rectangle_box
            yield make(cairn, f"Box:{n_boxes}", returns, color)
        elif _is_reflector(kind):
            n_reflectors += 1
            color = (sector.color if sector else None) or "magenta"
            yield _line_box(cairn, f"Reflector:{n_reflectors}", Returns(laser=2), color)


def _cairn_pose(cairn: Cairn) -> Pose:
    """Return the pose of a place in metres; for a sector, the pose of its centre."""
    heading = wrap_angle(from_deg(cairn.th))
    corners = cairn.corners()
    if corners:
        return Pose(
            from_mm((corners[0][0] + corners[2][0]) / 2),
            from_mm((corners[0][1] + corners[2][1]) / 2),
            heading,
        )

    return Pose(from_mm(cairn.x), from_mm(cairn.y), heading)


def _places(armap: ArMap, docks: set[str]) -> Iterator[Place]:
    for cairn in armap.cairns:
        base = _base_type(cairn.type)
        if base in ("goal", "robothome") or base in docks:
            # Homes and docks always have a heading; a goal has one only if its type
            # shows it.
            headed = cairn.type.lower().endswith("withheading") or base != "goal"
            yield Place(
                kind=cairn.type,
                name=cairn.name,
                pose=_cairn_pose(cairn),
                has_heading=headed,
            )


def _areas(armap: ArMap, sectors: dict[str, _SectorType]) -> Iterator[Area]:
    for cairn in armap.cairns:
        kind = cairn.type.lower()
        sector = sectors.get(kind)
        if (
            cairn.from_to is None
            or _is_reflector(kind)
            or kind == "sim.boxobstacle"
            or (sector and sector.returns)
        ):
            continue

        if kind.endswith("line") or (sector and sector.is_line):
            x1, y1, x2, y2 = map(from_mm, cairn.from_to)
            corners: tuple[tuple[float, float], ...] = ((x1, y1), (x2, y2))
        else:
            corners = tuple((from_mm(x), from_mm(y)) for x, y in cairn.corners())

        yield Area(kind=cairn.type, name=cairn.name, corners=corners)


def _start(places: tuple[Place, ...], docks: set[str]) -> Pose | None:
    """Return the start pose of robots: the first RobotHome, or otherwise the first Dock."""
    for wanted in ({"robothome"}, docks):
        for place in places:
            if _base_type(place.kind) in wanted:
                return place.pose

    return None


def to_scene(
    armap: ArMap, *, name: str = "", source: str = "", resolution: float = 0.02
) -> Scene:
    """Return the world that a map describes, in metres and radians.

    Parameters
    ----------
    armap : ArMap
        Map.
    name, source : str
        Display name of the map, and file that it comes from.
    resolution : float
        Edge of the square around each point, m, for maps that state no resolution.

    Notes
    -----
    Lines of no length are dropped. Boxes follow the documented rules of ``Sim.*``
    attributes (`formats.md` §1.5). A sector type with ``Sim.Obstacle`` makes each of
    its cairns a box; so do the legacy types ``Sim.BoxObstacle`` and reflectors.
    """
    sectors, docks = _sector_types(armap)
    lines = armap.lines / 1000.0
    # A line without length has no direction, which kernels need.
    lines = lines[(lines[:, :2] != lines[:, 2:]).any(axis=1)]
    places = tuple(_places(armap, docks))
    # The finest resolution of all sources counts, so that no source gets coarser
    # squares.
    steps = [
        s.resolution
        for s in armap.sources
        if s.resolution is not None and len(s.points)
    ]
    return Scene(
        name=name or (Path(source).stem if source else "map"),
        source=source,
        segments=lines,
        points=armap.points / 1000.0,
        resolution=from_mm(min(steps)) if steps else resolution,
        boxes=tuple(_boxes(armap, sectors)),
        places=places,
        areas=tuple(_areas(armap, sectors)),
        start=_start(places, docks),
        georeference=None if armap.origin is None else GeoReference(*armap.origin),
    )


def read(source: Source, options: Options = Options()) -> World:
    """Read a map file as a world.

    Raises
    ------
    MapError
        The file is not a map; the error names the file and the line.
    """
    parsed = parse(
        source.text,
        source.name,
        options.lines_chunk,
        options.points_chunk,
        options.budget,
    )
    for text in parsed.warnings:
        options.warn(text)
    return World(
        scene=to_scene(
            parsed,
            source=source.name,
            resolution=options.resolution or DEFAULT_POINT_SIZE,
        )
    )


# -- writing


def _mm(metres: float) -> float:
    """Return a length in mm, without the last digits that a unit conversion adds."""
    return round(metres * 1000.0, 6) + 0.0


def _deg(radians: float) -> float:
    return round(math.degrees(radians), 9) + 0.0


class _Writer:
    """Collector of the cairns and sector types that describe a scene."""

    def __init__(self) -> None:
        self.infos: list[InfoLine] = []
        self.cairns: list[Cairn] = []
        self.notes: list[str] = []
        self._types: dict[tuple[Returns, str], str] = {}
        self._taken: set[str] = set()

    def type_of(self, returns: Returns, color: str) -> str:
        """Return the name of the sector type with these attributes; create the type if needed."""
        key = (returns, color)
        if key not in self._types:
            name = f"Box{len(self._types) + 1}"
            # The reader adds 1 to reflectances above 1, see `_laser_return`.
            laser = returns.laser if returns.laser < 2 else max(2, returns.laser - 1)
            args = [
                "SectorType",
                f"Name={name}",
                f"Sim.Obstacle={_yes_or_no(returns.obstacle)}",
                f"Sim.LaserReflect={laser}",
                f"Sim.SonarReflect={_yes_or_no(returns.sonar)}",
            ]
            # The reader's default colours need no attribute.
            if color != ("magenta" if returns.laser > 1 else "light green"):
                args.append(f"Color0=0x{hex_of(color)[1:]}")

            self.infos.append(InfoLine("MapInfo", tuple(args)))
            self._types[key] = name

        return self._types[key]

    def box(self, box: BoxObject) -> None:
        """Write a movable box as a rectangle cairn, or as the line of a reflector."""
        if box.parts:
            self.notes.append(
                f"{shown(box.name)}: its shape is written as its bounding rectangle"
            )

        if (
            box.returns == Returns(laser=2)
            and abs(box.width * 1000.0 - LINE_THICKNESS_MM) < 1e-3
        ):
            hx, hy = (
                box.length / 2 * cos(box.pose.th),
                box.length / 2 * sin(box.pose.th),
            )
            ends = tuple(
                _mm(v)
                for v in (
                    box.pose.x - hx,
                    box.pose.y - hy,
                    box.pose.x + hx,
                    box.pose.y + hy,
                )
            )
            self._object("Reflector", ends, 0.0)
            return

        if box.returns.laser == 2:
            self.notes.append(
                f"{shown(box.name)}: a laser return of 2 is written as 3, because "
                "the format cannot store 2 for a box"
            )

        self._object(
            self.type_of(box.returns, box.color),
            _turned_corners(box),
            _deg(box.pose.th),
        )

    def _object(self, kind: str, from_to: tuple[float, ...], th: float) -> None:
        x1, y1, x2, y2 = from_to
        self.cairns.append(
            Cairn(type=kind, x=0.0, y=0.0, th=th, from_to=(x1, y1, x2, y2))
        )

    def area(self, area: Area) -> None:
        """Write a forbidden line or area, or another sector."""
        # ARIA knows forbidden lines and areas; other types need a declaration.
        if area.kind not in self._taken and area.kind.lower() not in (
            "forbiddenline",
            "forbiddenarea",
        ):
            self._taken.add(area.kind)
            # A declared type of a line must be a boundary, otherwise its ends become a
            # rectangle.
            sort = "BoundaryType" if len(area.corners) == 2 else "SectorType"
            self.infos.append(InfoLine("MapInfo", (sort, f"Name={area.kind}")))

        if len(area.corners) == 2:
            (x1, y1), (x2, y2) = area.corners
            ends, th = (x1, y1, x2, y2), 0.0
        else:
            if len(area.corners) != 4 or not _is_rectangle(area.corners):
                self.notes.append(
                    f"{shown(area.kind)} {shown(area.name)}: written as its bounding "
                    "rectangle"
                )

            ends, th = _turned_area(area)

        x1, y1, x2, y2 = map(_mm, ends)
        self.cairns.append(
            Cairn(
                type=area.kind,
                x=0.0,
                y=0.0,
                th=_deg(th),
                name=_plain(area.name),
                from_to=(x1, y1, x2, y2),
            )
        )

    def place(self, place: Place) -> None:
        """Write a goal, dock or home."""
        x, y, th = place.pose
        self.cairns.append(
            Cairn(
                type=place.kind,
                x=_mm(x),
                y=_mm(y),
                th=_deg(th),
                name=_plain(place.name),
            )
        )


def _yes_or_no(yes: bool) -> str:
    return "yes" if yes else "no"


def _plain(name: str) -> str:
    """Return a name without the characters that the format cannot escape."""
    return "".join(c for c in name if c.isprintable() and c != '"')


def _turned_corners(box: BoxObject) -> tuple[float, ...]:
    """Return two opposite corners of a box, mm, as a cairn stores them.

    The corners are rotated about the map's origin so that the sides are parallel to the
    axes.
    """
    c, s = cosine_sine(box.pose.th)
    x, y = c * box.pose.x + s * box.pose.y, c * box.pose.y - s * box.pose.x
    hx, hy = box.length / 2, box.width / 2
    return tuple(map(_mm, (x - hx, y - hy, x + hx, y + hy)))


def _is_rectangle(corners: Sequence[tuple[float, float]]) -> bool:
    """Return whether four corners form a rectangle, to a millionth of a metre."""
    a, b, c, d = (complex(*corner) for corner in corners)
    side, other = b - a, d - a
    square = abs((side.conjugate() * other).real) <= 1e-6 * max(
        abs(side) * abs(other), 1e-12
    )
    return square and abs(b + d - a - c) <= 1e-6


def _turned_area(area: Area) -> tuple[tuple[float, float, float, float], float]:
    """Return opposite corners of an area, m, as a cairn stores them, and the rotation angle, rad.

    The corners are rotated about the map's origin so that the first side is parallel to
    x.
    """
    (x1, y1), (x2, y2) = area.corners[:2]
    is_rectangle = len(area.corners) == 4 and _is_rectangle(area.corners)
    th = atan2(y2 - y1, x2 - x1) if is_rectangle else 0.0
    c, s = cosine_sine(th)
    corners = [(c * x + s * y, c * y - s * x) for x, y in area.corners]
    # A rotated rectangle is exact; any other polygon is replaced by its bounding box.
    if is_rectangle:
        return (*corners[0], *corners[2]), th
    xs, ys = zip(*corners, strict=True)
    return (min(xs), min(ys), max(xs), max(ys)), th


def from_scene(scene: Scene) -> tuple[ArMap, list[str]]:
    """Return an ArMap with the contents of a scene, and notes about data that it cannot hold.

    ``to_scene(from_scene(s)[0])`` is the same scene, to a millionth of a millimetre:
    walls, points, boxes, places, areas, home and georeference. Boxes get the names that
    the reader gives.
    """
    writer = _Writer()
    count = sum(w.last - w.first for w in scene.special_walls)
    if count:
        writer.notes.append(
            f"{count} walls with limited visibility are written as ordinary walls, "
            "because the format has no other kind"
        )

    for place in scene.places:
        writer.place(place)
    # Without a home or dock among the places, the start pose becomes a home.
    kinds = {p.kind.lower().removesuffix("withheading") for p in scene.places}
    if scene.start is not None and not kinds & {"robothome", "dock"}:
        writer.place(Place(kind="RobotHome", name="Home", pose=scene.start))
    for box in scene.boxes:
        writer.box(box)
    for area in scene.areas:
        writer.area(area)
    points = len(scene.points) > 0
    source = ScanSource(
        # Rounding removes the noise of the conversion to mm, and adding 0 turns −0 into
        # 0.
        lines=np.round(scene.segments * 1000.0, 6) + 0.0,
        points=np.round(scene.points * 1000.0, 6) + 0.0,
        resolution=_mm(scene.resolution) if points else None,
    )
    geo = scene.georeference
    made = ArMap(
        category="2D-Map-Ex" if writer.infos else "2D-Map",
        sources=(source,),
        origin=None if geo is None else (geo.latitude, geo.longitude, geo.altitude),
        infos=tuple(writer.infos),
        cairns=tuple(writer.cairns),
    )
    return made, [*writer.notes, *_round_trip_losses(scene, to_scene(made))]


def _round_trip_losses(scene: Scene, again: Scene) -> Iterator[str]:
    """Yield notes about data that is lost when the written map is read again."""
    pairs = list(zip(scene.boxes, again.boxes, strict=False))
    lost = {
        "names": [a for a, b in pairs if a.name != b.name],
        "masses": [a for a, _ in pairs if a.dynamics is not None],
        "fiducials": [a for a, _ in pairs if a.returns.fiducial],
        "visibility to blob finders": [a for a, _ in pairs if not a.returns.blob],
        "colours": [a for a, b in pairs if hex_of(a.color) != hex_of(b.color)],
    }
    for what, boxes in lost.items():
        if boxes:
            yield (
                f"boxes: {what} of {len(boxes)} ({shown(boxes[0].name)} …) are "
                "lost: the format cannot store them"
            )

    for kind, before, after in (
        ("places", scene.places, again.places),
        ("areas", scene.areas, again.areas),
    ):
        # `subtract` returns None, which counts as false: the call only removes the
        # place from the count.
        known = Counter((x.kind, x.name) for x in after)
        gone = [
            x
            for x in before
            if known[x.kind, x.name] < 1 or known.subtract([(x.kind, x.name)])
        ]
        if gone:
            yield (
                f"{kind}: {len(gone)} will differ after the file is read again "
                f"({shown(gone[0].kind)} {shown(gone[0].name)} …)"
            )

    heads = sum(
        a.has_heading != b.has_heading
        for a, b in zip(scene.places, again.places, strict=False)
    )
    if heads:
        yield (
            f"places: {heads} gain or lose a heading: in this format, the kind of a "
            "place decides whether it has one"
        )

    if scene.view is not None:
        yield "the initial view is lost"
