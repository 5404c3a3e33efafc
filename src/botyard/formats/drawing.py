"""Floor plans of drawing programs, SVG and DXF (extra "drawings"): every line, polyline, arc, curve and block is a wall.

Words in the name of a layer (SVG: a group's label or id) set the visibility of what is on it: ``glass`` or ``nolaser`` (lasers do not),
``nosonar``, ``reflector`` (bright for lasers), ``noobstacle`` (robots drive through), ``ignore`` (not there at all); so
``windows_glass`` is solid and seen by sonar alone. Layers that are off or frozen are not there either.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from botyard.elementary import acos
from botyard.errors import MapError
from botyard.extras import lacking
from botyard.formats.base import Options, Source
from botyard.formats.budget import Meter
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene, SpecialWalls
from botyard.model.world import World

DEFAULT_UNIT: Final = 0.01
"""Default size of a drawing's unit where the file gives none, m: centimetres."""
MAX_SAGITTA: Final = 0.005
"""Greatest distance of a curve from the chords that approximate it, m."""
MAX_CHORDS: Final = 400
SITE_GRID: Final = 1000.0
"""Drawings that are far from their origin are moved by multiples of this, m: the last digits of coordinates stay."""
FloatPair = tuple[float, float]
Line = list[FloatPair]
_WORD = re.compile(r"[a-z]+")


def layer_returns(name: str) -> Returns | None:
    """Visibility of what is on a layer of this name; None: the layer is ignored."""
    words = set(_WORD.findall(name.lower()))
    if words & {"ignore", "defpoints"}:
        return None
    laser = 0 if words & {"glass", "nolaser"} else 2 if "reflector" in words else 1
    return Returns(obstacle="noobstacle" not in words, laser=laser, sonar="nosonar" not in words)


def chords(length: float, turn: float) -> int:
    """Number of chords for a curve of a length, m, that turns by an angle, rad."""
    radius = length / max(turn, 1e-9)
    step = 2.0 * acos(max(0.0, 1.0 - MAX_SAGITTA / max(radius, MAX_SAGITTA)))
    return max(1, min(MAX_CHORDS, math.ceil(turn / max(step, 1e-3))))


def site_of(low: FloatPair, high: FloatPair, source: Source, options: Options) -> FloatPair:
    """The offset that moves coordinates of a country's grid to the origin, m: whole kilometres, or 0 where nothing has to be moved.

    Surveyors' coordinates (UTM, Gauss–Krüger) are millions of metres from their origin, farther than a world reaches.

    Parameters
    ----------
    low, high : (float, float)
        Least and greatest x and y, m.
    """
    most = options.budget.extent
    across, far = max(high[0] - low[0], high[1] - low[1]), max(map(abs, (*low, *high)))
    if not across <= most or far <= most:
        return 0.0, 0.0
    x, y = (math.floor(v / SITE_GRID) * SITE_GRID for v in low)
    options.warn(f"{source.name}: {far:.0f} m from its origin: moved by ({-x:.0f}, {-y:.0f}) m")
    return x, y


def to_world(layers: dict[str, list[Line]], source: Source, unit: float, options: Options, meter: Meter) -> World:
    """The lines of each layer as walls, in the order of the layers' visibility.

    Raises
    ------
    MapError
        There are none.
    """
    kept: list[tuple[Returns, list[np.ndarray[Any, np.dtype[np.float64]]]]] = []
    lost = 0
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for name, lines in layers.items():
        seen = layer_returns(name)
        if seen is None:
            continue
        found = []
        for line in lines:
            points = np.asarray(line, np.float64).reshape(-1, 2) * unit
            if not np.isfinite(points).all():
                lost += 1
            elif len(points) > 1:
                low, high = np.minimum(low, points.min(axis=0)), np.maximum(high, points.max(axis=0))
                found.append(points)
        kept.append((seen, found))
    segments: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    special: list[SpecialWalls] = []
    count = 0
    site: FloatPair = (0.0, 0.0)
    if np.isfinite(low).all():
        site = site_of((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), source, options)
        meter.check("extent", float(max((high - low).max(), np.abs(low - site).max(), np.abs(high - site).max())))
    for seen, found in kept:
        first = count
        for points in found:
            points = points - site
            segments.append(np.concatenate([points[:-1], points[1:]], axis=1))
            count += len(points) - 1
        if seen != Returns() and count > first:
            special.append(SpecialWalls(first=first, last=count, returns=seen))
    if lost:
        options.warn(f"{source.name}: {lost} lines are left out: their corners are no finite numbers")
    if not segments:
        raise MapError("expected lines, polylines, arcs or curves, found none", source.name)
    walls = np.concatenate(segments)
    scene = Scene(name=source.stem, source=source.name, segments=walls, special_walls=tuple(special))
    options.warn(f"{source.name}: {count} walls from {len(layers)} layer{'s' if len(layers) > 1 else ''}")
    return World(scene=scene)


def missing(source: Source) -> MapError:
    """The error for an installation without the extra."""
    return MapError(lacking("a drawing", "drawings"), source.name)


__all__ = ["DEFAULT_UNIT", "MAX_SAGITTA", "Line", "chords", "layer_returns", "missing", "site_of", "to_world"]
