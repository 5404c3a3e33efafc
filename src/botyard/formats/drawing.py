"""Floor plans of drawing programs, SVG and DXF (extra "drawings"): every line, polyline, arc, curve and block is a wall.

Words in the name of a layer (SVG: a group's label or id) say who sees what is on it: ``glass`` or ``nolaser`` (lasers do not),
``nosonar``, ``reflector`` (bright for lasers), ``noobstacle`` (robots drive through), ``ignore`` (not there at all); so
``windows_glass`` is solid and seen by sonar alone. Layers that are off or frozen are not there either.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from botyard.errors import MapError
from botyard.extras import lacking
from botyard.formats.base import Options, Source
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene, SpecialWalls
from botyard.model.world import World

UNIT: Final = 0.01
"""Usual size of a unit of a drawing that does not say it, m: centimetres."""
SAG: Final = 0.005
"""Curves become chords that are nowhere farther from them than this, m."""
MAX_CHORDS: Final = 400
MAX_POINTS: Final = 5_000_000
Line = list[tuple[float, float]]
_WORD = re.compile(r"[a-z]+")


def layer_returns(name: str) -> Returns | None:
    """Who sees what is on a layer of this name; None: nobody, it is not there."""
    words = set(_WORD.findall(name.lower()))
    if words & {"ignore", "defpoints"}:
        return None
    laser = 0 if words & {"glass", "nolaser"} else 2 if "reflector" in words else 1
    return Returns(obstacle="noobstacle" not in words, laser=laser, sonar="nosonar" not in words)


def _chords(length: float, turn: float) -> int:
    """Into how many chords to cut a curve of a length, m, that turns by an angle, rad."""
    radius = length / max(turn, 1e-9)
    step = 2.0 * math.acos(max(0.0, 1.0 - SAG / max(radius, SAG)))
    return max(1, min(MAX_CHORDS, math.ceil(turn / max(step, 1e-3))))


def _to_world(layers: dict[str, list[Line]], source: Source, unit: float, options: Options) -> World:
    """The lines of each layer as walls, in the order of the layers' visibility."""
    segments: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    special: list[SpecialWalls] = []
    count = 0
    for name, lines in layers.items():
        seen = layer_returns(name)
        if seen is None:
            continue
        first = count
        for line in lines:
            points = np.asarray(line, np.float64) * unit
            if len(points) > 1 and np.isfinite(points).all():
                segments.append(np.concatenate([points[:-1], points[1:]], axis=1))
                count += len(points) - 1
        if count > MAX_POINTS:
            raise MapError(f"more than {MAX_POINTS:.0e} lines", source.name)
        if seen != Returns():
            special.append(SpecialWalls(first=first, last=count, returns=seen))
    if not segments:
        raise MapError("expected lines, polylines, arcs or curves, found none", source.name)
    walls = np.concatenate(segments)
    scene = Scene(name=source.stem, source=source.name, segments=walls, special_walls=tuple(special))
    options.warn(f"{source.name}: {count} walls from {len(layers)} layer{'s' if len(layers) > 1 else ''}")
    return World(scene=scene)


def _missing(source: Source) -> MapError:
    return MapError(lacking("a drawing", "drawings"), source.name)


# -- SVG


def read_svg(source: Source, options: Options) -> World:
    """An SVG drawing as a world of walls; y goes up, the drawing's lower left corner is the origin.

    Raises
    ------
    MapError
        It is not SVG, has no line in it, or the extra is not installed.
    """
    try:
        import svgelements as svg
    except ImportError:
        raise _missing(source) from None
    try:
        drawing = svg.SVG.parse(io.BytesIO(source.data), ppi=96)
    except Exception as error:  # of damaged files the library raises whatever comes
        raise MapError(f"not an SVG drawing: {error}", source.name) from None
    size = options.scale(UNIT, source.name, "a unit of the drawing")
    box = drawing.viewbox
    width, height = float(drawing.width or 0.0), float(drawing.height or 0.0)
    # the reader has scaled user units to pixels; back to what the drawing says
    unit = float(box.width) / width if box is not None and box.width and width else 1.0
    bottom = height if height else 0.0
    layers: dict[str, list[Line]] = {}
    try:
        _walk_svg(svg, drawing, "", layers, unit * size)
    except (ValueError, TypeError, ZeroDivisionError, AttributeError, RecursionError, OverflowError) as error:
        raise MapError(f"a shape of the drawing cannot be read: {error}", source.name) from None
    flipped = {n: [[(x, bottom - y) for x, y in line] for line in lines] for n, lines in layers.items()}
    return _to_world(flipped, source, unit * size, options)


def _walk_svg(svg: Any, element: Any, layer: str, layers: dict[str, list[Line]], unit: float) -> None:
    attributes = element.values.get("attributes", {}) if getattr(element, "values", None) else {}
    if attributes.get("display") == "none" or "display:none" in str(attributes.get("style", "")).replace(" ", ""):
        return
    if isinstance(element, svg.Group | svg.Use):  # SVG itself is a group too
        label = next((v for k, v in attributes.items() if k.endswith("}label")), attributes.get("id", ""))
        name = " ".join(filter(None, (layer, str(label))))
        for child in element:
            _walk_svg(svg, child, name, layers, unit)
    elif isinstance(element, svg.Shape):
        name = " ".join(filter(None, (layer, str(attributes.get("id", "")))))
        path = element if isinstance(element, svg.Path) else svg.Path(element)
        layers.setdefault(name, []).extend(_path_lines(svg, abs(path), unit))


def _path_lines(svg: Any, path: Any, unit: float) -> Iterable[Line]:
    line: list[tuple[float, float]] = []
    for part in path:
        if isinstance(part, svg.Move):
            if len(line) > 1:
                yield line
            line = [(part.end.x, part.end.y)]
        elif isinstance(part, svg.Line | svg.Close):
            if part.end is not None:
                line.append((part.end.x, part.end.y))
        else:
            chord = math.dist(part.start, part.end) if part.start is not None else 0.0
            box = part.bbox()
            reach = max(chord, box[2] - box[0], box[3] - box[1])
            n = max(4, _chords(reach * unit * math.pi, 2.0 * math.pi))
            for k in range(1, n + 1):
                point = part.point(k / n)
                line.append((point.x, point.y))
    if len(line) > 1:
        yield line


# -- DXF


_SKIPPED: Final = frozenset(
    {"TEXT", "MTEXT", "ATTRIB", "ATTDEF", "DIMENSION", "HATCH", "POINT", "IMAGE", "LEADER", "MULTILEADER"}
)
"""Entities that are about the drawing, not in it."""


def read_dxf(source: Source, options: Options) -> World:
    """A DXF drawing as a world of walls, in the units that its header names.

    Raises
    ------
    MapError
        It is not DXF, has no line in it, or the extra is not installed.
    """
    try:
        from ezdxf import disassemble, recover, units
        from ezdxf.enums import InsertUnits
    except ImportError:
        raise _missing(source) from None
    try:
        document, _ = recover.read(io.BytesIO(source.data))
    except Exception as error:  # of damaged files the library raises whatever comes, AssertionError among it
        raise MapError(f"not a DXF drawing: {error}", source.name) from None
    named = document.units
    if options.resolution is None and named and named != InsertUnits.Unitless:
        size = float(units.conversion_factor(InsertUnits(named), InsertUnits.Meters))
    else:
        size = options.scale(UNIT, source.name, "a unit of the drawing")
    layers: dict[str, list[Line]] = {}
    hidden = {layer.dxf.name for layer in document.layers if layer.is_off() or layer.is_frozen()}
    try:
        entities = disassemble.recursive_decompose(document.modelspace())
        for shape in disassemble.to_primitives(entities, max_flattening_distance=SAG / size):
            entity = shape.entity
            if entity.dxftype() in _SKIPPED or entity.dxf.layer in hidden:
                continue
            points = [(v.x, v.y) for v in shape.vertices()]
            if len(points) > 1:
                layers.setdefault(entity.dxf.layer, []).append(points)
    except Exception as error:  # as above
        raise MapError(f"an entity of the drawing cannot be read: {error}", source.name) from None
    return _to_world(layers, source, size, options)


__all__ = ["layer_returns", "read_dxf", "read_svg"]
