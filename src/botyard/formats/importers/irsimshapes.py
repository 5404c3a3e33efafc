"""Reader of the shapes of ir-sim's bodies: circles, rectangles, polygons, lines, compounds."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, NamedTuple

from botyard.formats.importers.builder import Builder
from botyard.formats.importers.irsimkeys import KEYS
from botyard.formats.importers.shapes import (
    MAX_SIDE,
    circle,
    moved,
    polygon,
    rectangle,
)
from botyard.formats.importers.values import Value
from botyard.geometry import Outline, Pose
from botyard.numerics.elementary import cos, sin
from botyard.units import from_deg

Table = Mapping[str, Value]
MAX_CORNERS: Final = 1000
"""Largest number of corners of a random polygon."""
PARTS: Final = ("circle", "rectangle", "polygon")
NAMES: Final = (*PARTS, "linestring", "compound")


class Body(NamedTuple):
    """Shape of a body in ir-sim's files.

    Attributes
    ----------
    outlines : tuple of outlines
        Polygons, or the points of one line, in the body's frame, m.
    is_line : bool
        Whether it is an open line.
    """

    outlines: tuple[Outline, ...]
    is_line: bool = False

    @property
    def solid(self) -> tuple[Outline, ...]:
        """Outlines as closed polygons; a line becomes a polygon that goes back along itself."""
        if not self.is_line:
            return self.outlines
        (line,) = self.outlines
        return ((*line, *line[-2:0:-1]) if len(line) > 2 else (*line, line[0]),)


class Shapes:
    """Reader of the shapes in a file.

    Parameters
    ----------
    builder : Builder
        Builder of the world, which collects the notes.
    draw : random.Random
        Source of random shapes.
    """

    def __init__(self, builder: Builder, draw: random.Random) -> None:
        self._builder = builder
        self._draw = draw

    def read(self, value: Value | None) -> Body:
        """Return the shape that a value of the file describes.

        Raises
        ------
        WorldFileError
            The shape is not valid.
        """
        # An object without a shape is a circle of 1 m; a circle without a radius is
        # smaller.
        if value is None or value.data is None:
            return Body((circle(1.0),))
        table = value.table()
        KEYS.check("shape", table, self._builder.notes)
        name = table["name"].text(*NAMES) if "name" in table else "circle"
        if name == "linestring":
            return Body((self._corners(value, table, 2),), is_line=True)
        if name != "compound":
            return Body((self._part(value, table, name),))
        parts = table["parts"].entries() if "parts" in table else []
        if not parts:
            raise value.fail("a compound with parts")
        return Body(tuple(self._compound_part(part) for part in parts))

    def _compound_part(self, value: Value) -> Outline:
        table = value.table()
        KEYS.check("shape", table, self._builder.notes)
        if "name" not in table:
            raise value.fail("a part with a name")
        outline = self._part(value, table, table["name"].text(*PARTS))
        return moved(outline, table["pose"].pose()) if "pose" in table else outline

    def _part(self, value: Value, table: Table, name: str) -> Outline:
        # The origin of a car is its rear axle.
        ahead = (
            table["wheelbase"].number(0.0, MAX_SIDE) / 2.0
            if "wheelbase" in table and table["wheelbase"].data is not None
            else 0.0
        )
        if name == "circle":
            x, y = table["center"].point() if "center" in table else (0.0, 0.0)
            return moved(circle(self._radius(table)), Pose(x + ahead, y))
        if name == "rectangle":
            length, width = (
                table[key].number(0.0, MAX_SIDE, above=True) if key in table else 1.0
                for key in ("length", "width")
            )
            return moved(rectangle(length, width), Pose(ahead))
        return self._corners(value, table, 3)

    def _radius(self, table: Table) -> float:
        if self._is_random(table):
            low, high = self._range(table, "radius_range", (0.1, 1.0))
            return self._draw.uniform(max(low, 1e-6), max(high, 1e-6))
        if "radius" not in table:
            return 0.2
        return table["radius"].number(0.0, MAX_SIDE, above=True)

    def _corners(self, value: Value, table: Table, least: int) -> Outline:
        if self._is_random(table):
            return self._random_polygon(table, is_line=least == 2)
        if "vertices" not in table:
            raise value.fail("a shape with vertices")
        return polygon(table["vertices"], least=least)

    def _is_random(self, table: Table) -> bool:
        if "random_shape" not in table or not table["random_shape"].flag():
            return False
        note_random(self._builder, table["random_shape"])
        return True

    def _range(
        self, table: Table, key: str, otherwise: tuple[float, float]
    ) -> tuple[float, float]:
        if key not in table:
            return otherwise
        low, high = table[key].numbers(2, bound=MAX_SIDE)
        if not 0.0 <= low <= high:
            raise table[key].fail("two numbers of 0 or more, the lower one first")
        return low, high

    def _random_polygon(self, table: Table, *, is_line: bool) -> Outline:
        """Draw corners around a centre, in the order of their bearings.

        Irregularity varies the angles between the corners, spikiness the radii.
        """
        draw = self._draw
        radius = draw.uniform(*self._range(table, "avg_radius_range", (0.1, 1.0)))
        uneven = min(
            1.0, draw.uniform(*self._range(table, "irregularity_range", (0.0, 1.0)))
        )
        spikes = min(
            1.0, draw.uniform(*self._range(table, "spikeyness_range", (0.0, 1.0)))
        )
        low, high = self._range(table, "num_vertices_range", (4.0, 10.0))
        count = draw.randint(
            max(3, min(MAX_CORNERS, int(low))), max(3, min(MAX_CORNERS, int(high)))
        )
        if table["is_convex"].flag() if "is_convex" in table else is_line:
            spikes = 0.0
        x, y = 0.0, 0.0
        if "center_range" in table:
            x0, y0, x1, y1 = table["center_range"].numbers(4)
            x, y = draw.uniform(x0, x1), draw.uniform(y0, y1)
        steps = [1.0 + uneven * draw.uniform(-0.9, 0.9) for _ in range(count)]
        whole = 0.0
        for step in steps:
            whole += step
        bearing = draw.uniform(0.0, 1.0)
        corners = []
        for step in steps:
            bearing += step / whole
            r = max(radius, 1e-3) * (1.0 + spikes * draw.uniform(-0.9, 0.9))
            th = from_deg(360.0 * bearing)
            corners.append((x + r * cos(th), y + r * sin(th)))
        return tuple(corners)


def note_random(builder: Builder, value: Value) -> None:
    """Add a note that random places and shapes are the same in each run."""
    builder.notes.add(
        "random",
        value,
        "random places and shapes are drawn once, with a fixed seed; ir-sim draws "
        "others in each run",
    )


__all__ = ["NAMES", "Body", "Shapes", "note_random"]
