"""Floor plans in DXF (extra "drawings"); for the visibility of layers see `botyard.formats.drawing`.

ezdxf reads the file. A few hundred bytes of it can stand for billions of lines (blocks in blocks, rows and columns of a block, circles
as large as the solar system), so blocks are counted before they are taken apart, and curves are measured before they are cut into chords.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from botyard.errors import FormatError, MapError
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.formats.drawing import DEFAULT_UNIT, MAX_SAGITTA, Line, missing, to_world
from botyard.model.world import World
from botyard.names import shown

_SKIPPED: Final = frozenset(
    {
        "TEXT", "MTEXT", "ATTRIB", "ATTDEF", "DIMENSION", "ARC_DIMENSION", "LARGE_RADIAL_DIMENSION", "HATCH", "MPOLYGON", "POINT", "IMAGE",
        "WIPEOUT", "VIEWPORT", "LEADER", "MULTILEADER", "MLEADER", "TOLERANCE",
    }
)  # fmt: skip
"""Entities that annotate the drawing and are no geometry of it."""
_BINARY: Final = b"AutoCAD Binary DXF"
_END: Final = b"EOF"
MAX_DEGREE: Final = 25
"""Highest degree of splines: the time to evaluate one grows with its square; drawing programs use up to 11."""
MAX_FIT_POINTS: Final = 1000
"""Fit points of a spline without control points: these are computed with a matrix of the square of that size."""
FIT_CELLS_PER_ENTITY: Final = 20
"""Cells of that matrix that cost as much time as an entity."""
COPY_COST: Final = 20
"""Cost of copying an entity of an inserted block, in entities: about 0.2 ms."""
_CURVES: Final = frozenset({"CIRCLE", "ARC", "ELLIPSE", "SPLINE", "HELIX"})
_PARTS: Final = {
    "vertices": 10, "lwpoints": 10, "attribs": 10,
    "control_points": 1, "fit_points": 1, "knots": 1, "weights": 1, "faces": 1, "edges": 1,
}  # fmt: skip
"""Attributes of the library's entities whose length the file controls, and the cost of copying one element, in entities."""


def read(source: Source, options: Options) -> World:
    """A DXF drawing as a world of walls, in the units that its header names.

    Raises
    ------
    MapError
        It is not DXF, cut off, too large, has no line in it, or the extra is not installed.
    """
    try:
        from ezdxf import recover, units
        from ezdxf.enums import InsertUnits
    except ImportError:
        raise missing(source) from None
    meter = Meter(options.budget, source.name)
    _check_end(source.data, source.name)
    # a tag is two lines, or at least six bytes, and an entity has at least two tags
    tags = len(source.data) // 6 if source.data.startswith(_BINARY) else source.data.count(b"\n") // 2
    meter.check("entities", tags // 2)
    try:
        document, _ = recover.read(io.BytesIO(source.data))
        named = document.units
        known = not options.resolution and bool(named) and named != InsertUnits.Unitless
        size = float(units.conversion_factor(InsertUnits(named), InsertUnits.Meters)) if known else 0.0
        hidden = {layer.dxf.name for layer in document.layers if layer.is_off() or layer.is_frozen()}
        _drop_skipped(document)
        _count_blocks(document, meter)
        if not known:
            size = options.scale(DEFAULT_UNIT, source.name, "a unit of the drawing")
        layers: dict[str, list[Line]] = {}
        for layer, points in _lines(document.modelspace(), hidden, size, meter):
            layers.setdefault(layer, []).append(points)
    except FormatError:
        raise
    except (
        Exception
    ) as error:  # the library raises all kinds of exceptions for damaged files, AssertionError among them
        reason = shown(error, 200) if str(error) else type(error).__name__
        raise MapError(f"not a DXF drawing that can be read: {reason}", source.name) from None
    return to_world(layers, source, size, options, meter)


def _check_end(data: bytes, name: str) -> None:
    """Every DXF ends with ``EOF`` (DXF reference, "Group codes in DXF files"): one that does not has been cut off."""
    if not data[-1000:].rstrip(b"\0 \t\r\n\x1a").endswith(_END):
        line = None if data.startswith(_BINARY) else data.count(b"\n") + 1
        what = "it has been cut off" if b"SECTION" in data[:4000] else "it is no DXF drawing"
        raise MapError(f"expected EOF at the end of the file, found none: {what}", name, line)


def _drop_skipped(document: Any) -> None:
    """Remove skipped entities from blocks: the library would copy them each time a block is inserted."""
    for block in document.blocks:
        space = block.entity_space
        space.entities = [e for e in space.entities if e.dxftype() not in _SKIPPED]


def _parts_of(entity: Any) -> int:
    """Cost of copying an entity's points, knots, faces and the like, in entities."""
    total = 0
    for name, weight in _PARTS.items():
        value = getattr(entity, name, None)
        with contextlib.suppress(TypeError):
            total += 0 if value is None else weight * len(value)
    if entity.dxftype() == "MESH":
        total += int(entity.faces.tag_count())  # corners of all faces
    return total


def _count_blocks(document: Any, meter: Meter) -> None:
    """Count what all inserted blocks expand to, before any of them is expanded.

    Raises
    ------
    MapError
        A block is inserted in itself; `BudgetError`: too many, too deep.
    """
    contents: dict[str, list[tuple[str, int]]] = {}
    numbers: dict[str, int] = {}

    def look_at(name: str, entities: Iterable[Any]) -> None:
        inserts: list[tuple[str, int]] = []
        numbers[name] = 0
        for entity in entities:
            numbers[name] += COPY_COST + _parts_of(entity) if name else 1
            if entity.dxftype() == "INSERT" and entity.dxf.name is not None:
                rows, columns = int(entity.dxf.row_count), int(entity.dxf.column_count)
                times = 1 if entity.mcount <= 1 else max(rows, 1) * max(columns, 1)
                inserts.append((document.blocks.key(entity.dxf.name), times))
        contents[name] = inserts

    for block in document.blocks:
        look_at(document.blocks.key(block.name), block)
    look_at("", document.modelspace())  # no block has an empty name

    totals: dict[str, tuple[int, int]] = {}  # of each block: uses of blocks, entities
    path: list[tuple[str, Iterator[tuple[str, int]]]] = [("", iter(contents[""]))]
    inside = {""}
    while path:
        name, rest = path[-1]
        following = next(((n, t) for n, t in rest if n in contents and n not in totals), None)
        if following is not None:
            if following[0] in inside:
                raise MapError(f'the block "{shown(following[0])}" is inserted in itself', meter.path)
            path.append((following[0], iter(contents[following[0]])))
            inside.add(following[0])
            meter.check("nesting", len(path))
            continue
        path.pop()
        inside.discard(name)
        uses = sum(t * (1 + totals[n][0]) for n, t in contents[name] if n in totals)
        things = numbers[name] + sum(t * (1 + totals[n][1]) for n, t in contents[name] if n in totals)
        totals[name] = uses, things
        if not name:
            meter.check("references", uses)
            meter.check("entities", things)


def _lines(entities: Iterable[Any], hidden: set[str], size: float, meter: Meter) -> Iterator[tuple[str, Line]]:
    """The layer and the corners of each line of the drawing, in its units."""
    from ezdxf.disassemble import make_primitive

    for entity in _parts(entities, meter):
        if entity.dxf.layer in hidden or not _is_usable(entity, size, meter):
            continue
        shape = make_primitive(entity, MAX_SAGITTA / size)
        curve = (
            entity.dxftype() in _CURVES
        )  # checked by `_is_usable`; computing its path would flatten it a second time
        if not curve and (
            shape.is_empty or (shape.path is not None and not _is_near(shape.path.control_vertices(), size, meter))
        ):
            continue
        work = _work(entity) if curve else 0
        points: list[tuple[float, float]] = []
        for v in shape.vertices():  # of curves they are made one by one
            if points:
                meter.add("vertices", 2)
            if work:
                meter.add("entities", work)
            points.append((v.x, v.y))
        if len(points) > 1:
            yield entity.dxf.layer, points


def _work(entity: Any) -> int:
    """Cost of computing a point of a curve, in entities: for a spline about its degree."""
    kind = entity.dxftype()
    return 1 + int(entity.dxf.degree) if kind in ("SPLINE", "HELIX") else 2 if kind == "ELLIPSE" else 1


def _parts(entities: Iterable[Any], meter: Meter) -> Iterator[Any]:
    """Simple entities: blocks, multiple lines and other compound entities are expanded."""
    from ezdxf.protocols import SupportsVirtualEntities

    stack = [iter(entities)]
    while stack:
        entity = next(stack[-1], None)
        if entity is None:
            stack.pop()
            continue
        kind = entity.dxftype()
        if kind in _SKIPPED:
            continue
        meter.add("entities", 1 if len(stack) == 1 else COPY_COST + _parts_of(entity))
        if kind == "INSERT" and entity.mcount > 1:
            stack.append(iter(entity.multi_insert()))
        elif isinstance(entity, SupportsVirtualEntities):
            meter.add("references", 1)
            stack.append(iter(entity.__virtual_entities__()))
            meter.check("nesting", len(stack))
        else:
            yield entity


def _is_usable(entity: Any, size: float, meter: Meter) -> bool:
    """Whether a curve can be approximated by chords: it is finite, within the allowed extent, and not too complex.

    Raises
    ------
    MapError
        It is not.
    """
    kind, dxf = entity.dxftype(), entity.dxf
    if kind in ("CIRCLE", "ARC"):
        far = abs(dxf.radius) + abs(dxf.center.x) + abs(dxf.center.y)
    elif kind == "ELLIPSE":
        far = dxf.major_axis.magnitude * max(1.0, abs(dxf.ratio)) + abs(dxf.center.x) + abs(dxf.center.y)
    elif kind in ("SPLINE", "HELIX"):
        if not 1 <= dxf.degree <= MAX_DEGREE:
            raise MapError(f"a spline of degree {dxf.degree}: expected 1 … {MAX_DEGREE}", meter.path)
        if not len(entity.control_points) and len(entity.fit_points) > MAX_FIT_POINTS:
            raise MapError(
                f"a spline of {len(entity.fit_points)} fit points: expected at most {MAX_FIT_POINTS}", meter.path
            )
        meter.add("entities", len(entity.fit_points) * len(entity.fit_points) // FIT_CELLS_PER_ENTITY)
        far = (
            sum(map(abs, (*map(float, entity.knots), *map(float, entity.weights)))) * 0.0
        )  # NaN if one is NaN or infinite
        for points in (entity.control_points, entity.fit_points):
            far += max((abs(float(v)) for p in points for v in tuple(p)[:2]), default=0.0)
    else:
        return True
    if not math.isfinite(far):
        return False
    meter.check("extent", far * size)
    return True


def _is_near(corners: Iterable[Any], size: float, meter: Meter) -> bool:
    """Whether points are finite; a budget error if one is beyond the allowed extent."""
    far = 0.0
    for corner in corners:
        x, y = abs(corner.x), abs(corner.y)
        if not x + y < math.inf:
            return False
        far = max(far, x, y)
    meter.check("extent", far * size)
    return True


__all__ = ["read"]
