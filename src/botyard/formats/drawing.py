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
Line = list[tuple[float, float]]
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


def to_world(layers: dict[str, list[Line]], source: Source, unit: float, options: Options, meter: Meter) -> World:
    """The lines of each layer as walls, in the order of the layers' visibility.

    Raises
    ------
    MapError
        There are none.
    """
    segments: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    special: list[SpecialWalls] = []
    count = lost = 0
    for name, lines in layers.items():
        seen = layer_returns(name)
        if seen is None:
            continue
        first = count
        for line in lines:
            points = np.asarray(line, np.float64) * unit
            far = float(np.abs(points).max(initial=0.0))
            if not far < math.inf:
                lost += 1
                continue
            meter.check("extent", far)
            if len(points) > 1:
                segments.append(np.concatenate([points[:-1], points[1:]], axis=1))
                count += len(points) - 1
        if seen != Returns():
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


__all__ = ["DEFAULT_UNIT", "MAX_SAGITTA", "Line", "chords", "layer_returns", "missing", "to_world"]
