"""Reader of floor plans in DXF (extra "drawings").

`botyard.formats.drawing` describes the visibility of layers. ezdxf reads the file. A
few hundred bytes can describe billions of lines (nested blocks, rows and columns of a
block, circles of the size of the solar system). So blocks are counted before they are
expanded, and curves are measured before they are divided into chords.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from botyard.errors import FormatError, MapError
from botyard.formats.base import MAX_LISTED, Options, Source, reason_of
from botyard.formats.budget import Meter
from botyard.formats.drawing import (
    DEFAULT_UNIT,
    MAX_SAGITTA,
    Area,
    FloatPair,
    Line,
    chords,
    clipped,
    layer_returns,
    missing,
    to_world,
)
from botyard.formats.dxfblocks import COPY_COST, copy_cost, count_blocks
from botyard.formats.dxfcurves import _is_near, is_usable, point_cost, spline_points
from botyard.model.world import World
from botyard.names import shown
from botyard.numerics.elementary import hypot

_SKIPPED: Final = frozenset(
    {
        "TEXT",
        "MTEXT",
        "ATTRIB",
        "ATTDEF",
        "DIMENSION",
        "ARC_DIMENSION",
        "LARGE_RADIAL_DIMENSION",
        "HATCH",
        "MPOLYGON",
        "POINT",
        "IMAGE",
        "WIPEOUT",
        "VIEWPORT",
        "LEADER",
        "MULTILEADER",
        "MLEADER",
        "TOLERANCE",
    }
)
"""Entities that annotate the drawing and are not part of its geometry."""
_BINARY: Final = b"AutoCAD Binary DXF\r\n\x1a\0"
"""First bytes of a binary DXF file (DXF reference, "Binary DXF Files")."""
_END: Final = b"EOF"
_ZERO: Final = "0"
"""Name of the layer whose entities in a block get the layer of the INSERT."""
_DIGITS: Final = 6
"""Number of decimals to which corners are compared.

Adjacent faces compute the same corner with different rounding.
"""
_CURVES: Final = frozenset({"CIRCLE", "ARC", "ELLIPSE", "SPLINE", "HELIX"})


Edge = tuple[FloatPair, FloatPair]
Face = tuple[Line, list[bool]]
"""Face of a surface: its corners, and whether the edge from each corner to the next is visible."""


def read(source: Source, options: Options) -> World:
    """Read a DXF drawing as a world of walls, in the units that its header names.

    Raises
    ------
    MapError
        The file is not DXF, is truncated, is too large, or contains no line; or the
        extra is not installed.
    """
    try:
        from ezdxf import units
        from ezdxf.enums import InsertUnits
    except ImportError:
        raise missing(source) from None

    meter = Meter(options.budget, source.name)
    _check_end(source.data, source.name)
    # A tag has two lines, or at least six bytes, and an entity at least two tags. The
    # bound limits the memory of the library.
    tags = (
        len(source.data) // 6
        if source.data.startswith(_BINARY)
        else source.data.count(b"\n") // 2
    )
    meter.check("entities", tags // 2)
    try:
        document = _document(source.data)
        named = document.units
        known = not options.resolution and bool(named) and named != InsertUnits.Unitless
        size = (
            float(units.conversion_factor(InsertUnits(named), InsertUnits.Meters))
            if known
            else 0.0
        )
        _drop_skipped(document)
        count_blocks(document, meter)
        if not known:
            size = options.scale(DEFAULT_UNIT, source.name, "a unit of the drawing")
        layers: dict[str, list[Line]] = {}
        reader = _Reader(document, size, meter)
        for layer, lines in reader.lines(document.modelspace()):
            layers.setdefault(layer, []).extend(lines)
    except FormatError:
        raise
    except Exception as error:
        # The library raises exceptions of all kinds for damaged files, including
        # AssertionError.
        raise MapError(
            f"not a DXF drawing that can be read: {reason_of(error)}", source.name
        ) from None

    if reader.left_out:
        kinds = ", ".join(
            f"{n} {shown(kind, 80)}"
            for kind, n in sorted(reader.left_out.items())[:MAX_LISTED]
        )
        options.warn(f"{source.name}: ignored entities that have no lines: {kinds}")

    return to_world(layers, source, size, options, meter)


def _document(data: bytes) -> Any:
    """Return the library's document of a DXF file, which may be text or binary."""
    from ezdxf import recover
    from ezdxf.document import Drawing
    from ezdxf.lldxf.tagger import binary_tags_loader

    if data.startswith(_BINARY):
        document = Drawing.load(binary_tags_loader(data))
        document.audit()
        return document

    document, _ = recover.read(io.BytesIO(data))
    return document


def _check_end(data: bytes, name: str) -> None:
    """Check that the file ends with ``EOF``; a file without it is truncated.

    Source: DXF reference, "Group codes in DXF files".
    """
    if not data[-1000:].rstrip(b"\0 \t\r\n\x1a").endswith(_END):
        line = None if data.startswith(_BINARY) else data.count(b"\n") + 1
        what = (
            "it is truncated"
            if b"SECTION" in data[:4000]
            else "it is not a DXF drawing"
        )
        raise MapError(
            f"expected EOF at the end of the file, found none: {what}", name, line
        )


def _drop_skipped(document: Any) -> None:
    """Remove entities that are never read from blocks, and frames of fitted curves.

    The library would copy them each time a block is inserted.
    """
    for block in document.blocks:
        space = block.entity_space
        space.entities = [e for e in space.entities if e.dxftype() not in _SKIPPED]
        for entity in space.entities:
            if entity.dxftype() == "POLYLINE" and (
                entity.is_2d_polyline or entity.is_3d_polyline
            ):
                # Control points of a fitted curve are not part of its line.
                entity.vertices[:] = [
                    v
                    for v in entity.vertices
                    if not v.dxf.flags & v.SPLINE_FRAME_CONTROL_POINT
                ]


class _Clip(NamedTuple):
    """Border at which XCLIP cuts an inserted block (clip)."""

    area: Area
    outside: bool


class _Part(NamedTuple):
    """Simple entity of the drawing, with its layer and the clips of the blocks around it."""

    entity: Any
    layer: str
    clips: tuple[_Clip, ...]


class _Reader:
    """Converter of the entities of a drawing to lines.

    Parameters
    ----------
    document : ezdxf Drawing
        Drawing, whose layers may be off or frozen.
    size : float
        Size of a unit of the drawing, m.
    meter : Meter
        Limits.

    Attributes
    ----------
    left_out : dict of str to int
        Kinds of entities that have no lines, and their numbers.
    """

    def __init__(self, document: Any, size: float, meter: Meter) -> None:
        self._size = size
        self._meter = meter
        # Names of layers are not case-sensitive.
        self._key = document.layers.key
        self._frozen = {
            self._key(layer.dxf.name) for layer in document.layers if layer.is_frozen()
        }
        self._off = {
            self._key(layer.dxf.name) for layer in document.layers if layer.is_off()
        }
        self.left_out: dict[str, int] = {}

    def lines(self, entities: Iterable[Any]) -> Iterator[tuple[str, list[Line]]]:
        """Yield the layer and the lines of each simple entity, in drawing units."""
        for part in self._parts(entities):
            lines = self._lines_of(part.entity)
            for clip in part.clips:
                lines = clipped(lines, [clip.area], self._meter, outside=clip.outside)
            if lines:
                yield part.layer, lines

    def _parts(self, entities: Iterable[Any]) -> Iterator[_Part]:
        """Yield simple entities; blocks, MLINEs and other compound entities are expanded.

        Entities of a block on layer 0 are on the layer of its INSERT. An INSERT on a
        frozen layer is ignored with its contents. On a layer that is off, only the
        entities of that layer are ignored.
        """
        from ezdxf.protocols import SupportsVirtualEntities

        stack: list[tuple[Iterator[Any], str, tuple[_Clip, ...]]] = [
            (iter(entities), _ZERO, ())
        ]
        while stack:
            members, outer, clips = stack[-1]
            entity = next(members, None)
            if entity is None:
                stack.pop()
                continue

            kind, dxf = entity.dxftype(), entity.dxf
            if kind in _SKIPPED or (dxf.is_supported("invisible") and dxf.invisible):
                continue
            self._meter.add(
                "entities", 1 if len(stack) == 1 else COPY_COST + copy_cost(entity)
            )
            own = dxf.layer if dxf.is_supported("layer") else _ZERO
            layer = outer if self._key(own) == _ZERO else own
            if kind == "INSERT":
                # A frozen or ignored INSERT hides its whole contents.
                if self._key(layer) in self._frozen or layer_returns(layer) is None:
                    continue
                # Rows and columns of a block are expanded one by one, so that the meter
                # can stop it.
                if entity.mcount > 1:
                    stack.append((iter(entity.multi_insert()), outer, clips))
                    continue
                block = entity.block()
                if block is not None and block.block.is_xref:
                    self._leave_out(
                        f'INSERT of another file ("{block.block.dxf.xref_path}")'
                    )
                # The clips of all enclosing blocks apply.
                clips = (*clips, *_clips_of(entity))

            if isinstance(entity, SupportsVirtualEntities):
                self._meter.add("references", 1)
                stack.append((iter(entity.__virtual_entities__()), layer, clips))
                self._meter.check("nesting", len(stack))
            elif self._key(layer) not in self._frozen | self._off:
                yield _Part(entity, layer, clips)

    def _leave_out(self, kind: str) -> None:
        self.left_out[kind] = self.left_out.get(kind, 0) + 1

    def _lines_of(self, entity: Any) -> list[Line]:
        """Return the lines of a simple entity, in drawing units."""
        from ezdxf.disassemble import make_primitive

        kind = entity.dxftype()
        if kind in ("3DFACE", "MESH") or (
            kind in ("LWPOLYLINE", "POLYLINE") and _has_faces(entity)
        ):
            return self._outlines(entity)

        if not is_usable(entity, self._size, self._meter):
            return []
        shape = make_primitive(entity, MAX_SAGITTA / self._size)
        curve = kind in _CURVES
        # `is_usable` has checked curves; computing their paths would flatten them a
        # second time.
        if not curve and shape.is_empty:
            self._leave_out(kind)
            return []

        if (
            not curve
            and shape.path is not None
            and not _is_near(shape.path.control_vertices(), self._size, self._meter)
        ):
            return []

        work = point_cost(entity) if curve else 0
        points: Line = []
        distance = MAX_SAGITTA / self._size
        # Points of curves are computed one by one, so that the meter can stop the work.
        for v in (
            spline_points(entity, distance)
            if kind in ("SPLINE", "HELIX")
            else shape.vertices()
        ):
            if points:
                self._meter.add("vertices", 2)
            if work:
                self._meter.add("entities", work)
            points.append((v.x, v.y))

        return [points] if len(points) > 1 else []

    def _outlines(self, entity: Any) -> list[Line]:
        """Return the edges of an entity that has faces, seen from above, each once.

        An edge between two faces of a band (a polyline with a width) lies inside the band
        and is left out.
        """
        polyline = entity.dxftype() in ("LWPOLYLINE", "POLYLINE")
        band = polyline and bool(getattr(entity, "is_2d_polyline", True))
        faces: dict[Edge, int] = {}
        seen: set[Edge] = set()
        for corners, visible in self._band(entity) if band else _faces(entity):
            self._meter.add("entities", 2 * len(corners))
            rounded = [(round(x, _DIGITS), round(y, _DIGITS)) for x, y in corners]
            edges = [
                (a, b) if a < b else (b, a)
                for a, b in itertools.pairwise([*rounded, *rounded[:1]])
            ]
            seen.update(
                edge for edge, shows in zip(edges, visible, strict=False) if shows
            )
            for edge in set(edges):
                faces[edge] = faces.get(edge, 0) + 1

        lines = [
            [a, b]
            for (a, b), n in faces.items()
            if a != b and (a, b) in seen and not (band and n == 2)
        ]
        self._meter.add("vertices", 2 * len(lines))
        if not all(
            math.isfinite(v) for line in lines for corner in line for v in corner
        ):
            return []

        return lines

    def _band(self, entity: Any) -> Iterator[Face]:
        """Yield the faces of a polyline that has a width."""
        from ezdxf.render.trace import TraceBuilder

        if entity.dxftype() == "LWPOLYLINE":
            corners = [(x, y, bulge) for x, y, _, _, bulge in entity.lwpoints]
            elevation = entity.dxf.elevation
        else:
            corners = [
                (v.dxf.location.x, v.dxf.location.y, v.dxf.bulge)
                for v in entity.vertices
            ]
            elevation = entity.dxf.elevation.z

        radius = 0.0
        for (x0, y0, bulge), (x1, y1, _) in itertools.pairwise(
            [*corners, *corners[:1]]
        ):
            if bulge:
                radius = max(
                    radius,
                    hypot(x1 - x0, y1 - y0)
                    # Radius of an arc from its chord and bulge, the tangent of a
                    # quarter of its angle.
                    * (1.0 + bulge * bulge)
                    / (4.0 * abs(bulge)),
                )

        if not math.isfinite(radius):
            return
        segments = chords(radius * self._size * math.tau, math.tau)
        self._meter.add(
            "entities", sum(segments if bulge else 4 for _, _, bulge in corners)
        )
        for face in TraceBuilder.from_polyline(entity, segments=segments).faces_wcs(
            entity.ocs(), elevation
        ):
            yield [(v.x, v.y) for v in face], [True] * len(face)


def _clips_of(insert: Any) -> list[_Clip]:
    """Return the border at which XCLIP cuts an inserted block: one clip or none."""
    from ezdxf.xclip import XClip

    clip = XClip(insert)
    if not (clip.has_clipping_path and clip.is_clipping_enabled):
        return []
    path = clip.get_wcs_clipping_path()
    border = [(float(v.x), float(v.y)) for v in path.inner_polygon()]
    return [_Clip([border], path.is_inverted_clip)] if len(border) > 2 else []


def _has_faces(polyline: Any) -> bool:
    """Return whether a polyline is a mesh, or a band with a width."""
    if polyline.dxftype() == "LWPOLYLINE" or polyline.is_2d_polyline:
        return bool(polyline.has_width)
    return not polyline.is_3d_polyline


def _faces(entity: Any) -> Iterator[Face]:
    """Yield the faces of a mesh or a 3DFACE, and which of their edges are visible."""
    from ezdxf.render.mesh import MeshBuilder

    if entity.dxftype() == "3DFACE":
        corners = entity.wcs_vertices()
        # A triangle has its third corner twice; the edge between the two does not
        # exist.
        shows = list(entity.get_edges_visibility())
        yield (
            [(v.x, v.y) for v in corners],
            shows if len(corners) == 4 else [*shows[:2], shows[3]],
        )
    elif entity.dxftype() == "POLYLINE" and entity.is_poly_face_mesh:
        for face in entity.indexed_faces()[1]:
            yield (
                [(v.dxf.location.x, v.dxf.location.y) for v in face],
                list(map(face.is_edge_visible, range(len(face)))),
            )
    else:
        mesh = (
            MeshBuilder.from_mesh(entity)
            if entity.dxftype() == "MESH"
            else MeshBuilder.from_polyface(entity)
        )
        for points in mesh.faces_as_vertices():
            yield [(v.x, v.y) for v in points], [True] * len(points)


__all__ = ["read"]
