"""Warnings about probable mistakes in the placement of robots and in maps."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from botyard.engine.layout import Grid
from botyard.engine.simulation import Engine
from botyard.engine.wallgrid import crowding
from botyard.errors import PlacementWarning, did_you_mean
from botyard.model.floor import Floor
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene

FAR_OUTSIDE = 100.0
"""Distance from the bounds of the map, m, beyond which a robot's start gets a warning.
"""
MAX_CROWDING = 50.0
"""Mean number of walls per occupied grid cell above which a warning is given.

Ray casting is slow in such a map; about four walls per cell are usual.
"""
MAX_WARNED_ROBOTS = 5
"""Highest number of robots that warnings of one kind name; others are only counted."""


def doubtful_places(
    engine: Engine,
    names: Sequence[str],
    bounds: tuple[float, float, float, float] | None,
) -> Iterator[str]:
    """Yield warnings about robots that start in contact or far outside of the map.

    Parameters
    ----------
    engine : Engine
        Engine of the world.
    names : sequence of str
        Robots to check.
    bounds : tuple or None
        Least x and y, greatest x and y of the map, m; None: the map is empty.
    """
    rows = np.array([engine.rows[name] for name in names], np.int64)
    stuck = {names[i] for i in np.flatnonzero(engine.touching(rows)).tolist()}
    outside: set[str] = set()
    if bounds is not None:
        xy, limits = engine.state.pose[rows, :2], np.array(bounds)
        # Signed distance from the rectangle of the map, the larger of both axes
        beyond = (
            np.maximum(limits[:2] - xy, xy - limits[2:]).max(axis=1, initial=-math.inf)
            > FAR_OUTSIDE
        )
        outside = {names[i] for i in np.flatnonzero(beyond).tolist()}

    for doubtful, what in (
        (stuck, "touches something at its start: it may not be able to move"),
        (outside, f"starts more than {FAR_OUTSIDE:g} m outside of the map"),
    ):
        # Sorted, so that the same world gives the same warnings.
        for name in sorted(doubtful)[:MAX_WARNED_ROBOTS]:
            x, y, _ = engine.state.pose[engine.rows[name]].tolist()
            yield f"robot {name} at x={x:zg} m, y={y:zg} m {what}"

        if len(doubtful) > MAX_WARNED_ROBOTS:
            yield f"{len(doubtful) - MAX_WARNED_ROBOTS} more robots: each {what}"


def doubtful_fields(
    spec: RobotSpec, names: Sequence[str], floor: Floor | None
) -> Iterator[str]:
    """Yield a warning for each pheromone of devices that the floor does not have.

    Parameters
    ----------
    spec : RobotSpec
        Model of the robots, with pens and sensors.
    names : sequence of str
        Robots of this model, at least one.
    floor : Floor or None
        Floor of the world.
    """
    fields = [one.name for one in floor.fields] if floor is not None else []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    for device in spec.devices:
        # Kinds of other packages may also have this parameter.
        wanted = getattr(device, "pheromone", None)
        if isinstance(wanted, str) and wanted not in fields:
            yield (
                f"robot {names[0]}{more}: {device.type}: expected a pheromone field of "
                f"the floor ({', '.join(fields) or 'it has none'}), found "
                f'"{wanted}"{did_you_mean(wanted, fields)}'
            )


def doubtful_map(scene: Scene, grid: Grid) -> str | None:
    """Return a warning if the walls are too dense for fast ray casting, otherwise None.

    The cells of the grid grow with the extent of the map. One stray point far outside
    makes them so large that most walls share a few cells.

    Parameters
    ----------
    scene : Scene
        Map whose extent the warning names.
    grid : Grid
        Wall grid of the map, in which the walls of each cell are counted.
    """
    walls = crowding(grid)
    if walls <= MAX_CROWDING:
        return None
    x0, y0, x1, y1 = scene.bounds or (0.0, 0.0, 0.0, 0.0)
    return (
        f"the map spans {x1 - x0:g} m × {y1 - y0:g} m, but most of its walls "
        f"stand close together ({walls:.0f} in a cell of "
        f"{grid.h:.3g} m): sensors will be slow. Does it hold a stray point far outside?"
    )


def to_warnings(text: str) -> None:
    """Issue a Python warning at the line of the user's program that caused it.

    Parameters
    ----------
    text : str
        Warning to show. Python shows the same text only once per line of the program.
    """
    # The caller's line is the first frame outside of the package.
    level, frame = 1, sys._getframe(0)
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == "botyard"
    ):
        level, frame = level + 1, frame.f_back

    warnings.warn(text, PlacementWarning, stacklevel=level)


__all__ = ["doubtful_fields", "doubtful_map", "doubtful_places", "to_warnings"]
