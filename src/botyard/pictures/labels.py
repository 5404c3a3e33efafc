"""Drawing of names in a picture, in places where they cover no body and no other name.

A name without such a place is not drawn. A name near the edge of the picture is moved
inside. The page works in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from PIL import Image

from botyard.model.floor import FloorZone
from botyard.names import shown
from botyard.pictures.bodyshapes import reach
from botyard.pictures.canvas import View
from botyard.pictures.clipping import Box
from botyard.pictures.layers import paste, text, text_width
from botyard.pictures.map import MAX_PLACES
from botyard.pictures.palette import RGBA, Theme
from botyard.pictures.still import Still

MAX_LABEL: Final = 80
"""Longest label, characters."""
MAX_TRIED: Final = 400
"""Largest number of robots for whose names a place is searched."""
MAX_LABELS: Final = 80
"""Largest number of names in a picture."""
BODIES_FROM: Final = 6.0
AREAS_FROM: Final = 12.0
PLACES_FROM: Final = 14.0
"""Scales from which names of robots, areas and places are drawn, pixels per metre."""
_LINE: Final = 15.0
_ASCENT: Final = 11.0
"""Height of a line of text, and of its part above the baseline, pixels."""
_MARGIN: Final = 3.0
"""Smallest distance of a name from the edge of the picture, pixels."""
_CELL: Final = 64
"""Edge of a cell of the grid in which `Room` finds overlaps, pixels."""

Line = tuple[str, RGBA]
Corner = tuple[float, float, bool]
"""Place of a label: x, y, and whether x is the right edge.

x is otherwise the left edge, and y is the upper edge, pixels.
"""


class Room:
    """Occupied parts of a picture, to which names are not written."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Box]] = {}

    def add(self, box: Box) -> None:
        """Mark a box as occupied: left, top, right and lower edge, pixels."""
        for cell in _cells_of(box):
            self._cells.setdefault(cell, []).append(box)

    def is_free(self, box: Box) -> bool:
        """Return whether a box overlaps no occupied part."""
        return not any(
            box[0] < other[2]
            and box[2] > other[0]
            and box[1] < other[3]
            and box[3] > other[1]
            for cell in _cells_of(box)
            for other in self._cells.get(cell, ())
        )


def _words_of(zone: FloorZone) -> str:
    """Return the label of a zone: its name and its effects."""
    words = [zone.name]
    if zone.hole:
        words.append("hole")
    if zone.speed_limit is not None:
        words.append(f"{zone.speed_limit:g} m/s")
    if zone.slip is not None:
        words.append(f"slip {100 * zone.slip:.0f} %")
    if zone.odometry_scale is not None:
        words.append(f"odometry × {zone.odometry_scale:g}")
    return ", ".join(filter(None, words))


def _cells_of(box: Box) -> Iterator[tuple[int, int]]:
    x0, y0, x1, y1 = (int(edge // _CELL) for edge in box)
    for j in range(y0, y1 + 1):
        for i in range(x0, x1 + 1):
            yield i, j


class Labels:
    """Names that are drawn in one picture.

    Parameters
    ----------
    image : Image
        Picture (RGBA), which is changed.
    view : View
        Part of the world.
    colors : Theme
        Colours.

    Attributes
    ----------
    drawn : list of (str, Box)
        First line of each label, and its box, pixels.
    """

    def __init__(self, image: Image.Image, view: View, colors: Theme) -> None:
        self._image, self._view, self._colors = image, view, colors
        self._room = Room()
        self.drawn: list[tuple[str, Box]] = []

    def draw(self, still: Still) -> None:
        """Draw the names of robots, places and areas, if the scale is large enough."""
        view, scene = self._view, still.scene
        self._take(still)
        if view.scale >= BODIES_FROM:
            self._robots(still)
        if view.scale > PLACES_FROM:
            for place in scene.places[:MAX_PLACES]:
                x, y = view.pixel(place.pose.x, place.pose.y)
                self._name(place.name, x, y, 10.0, (3.0, -18.0), self._colors.place)
        if view.scale > AREAS_FROM:
            for area in scene.areas[:MAX_PLACES]:
                self._area(area.name, area.corners[0])
            for zone in scene.floor.zones if scene.floor else ():
                self._area(_words_of(zone), zone.corners[0])

    def _is_seen(self, x: float, y: float) -> bool:
        return 0 <= x <= self._view.width and 0 <= y <= self._view.height

    def _take(self, still: Still) -> None:
        """Mark the boxes of bodies and of symbols of places as occupied."""
        view = self._view
        for figure, (x, y) in zip(
            still.figures, view.pixels(still.poses[:, :2]).tolist(), strict=True
        ):
            r = max(3.0, 0.8 * reach(still.looks[figure.looks]) * view.scale)
            # Ignore bodies outside the picture: a huge box would fill too many cells.
            if -r < x < view.width + r and -r < y < view.height + r:
                self._room.add(
                    (
                        max(x - r, 0.0),
                        max(y - r, 0.0),
                        min(x + r, view.width),
                        min(y + r, view.height),
                    )
                )
        for place in still.scene.places[:MAX_PLACES]:
            x, y = view.pixel(place.pose.x, place.pose.y)
            if self._is_seen(x, y):
                self._room.add((x - 6, y - 6, x + 6, y + 6))

    def _robots(self, still: Still) -> None:
        """Draw the names of robots. Stalled robots come first and get the word "stalled"."""
        places = self._view.pixels(still.poses[:, :2]).tolist()
        rows = [
            row
            for row, figure in enumerate(still.figures)
            if figure.name
            and still.looks[figure.looks].drives
            and self._is_seen(*places[row])
        ]
        rows.sort(key=lambda row: (not still.figures[row].stalled, row))
        for row in rows[:MAX_TRIED]:
            figure, (x, y) = still.figures[row], places[row]
            name = f"● {figure.name}" if figure.is_driven else figure.name
            lines = [(name, self._colors.label)]
            if figure.stalled:
                lines.append(("stalled", self._colors.stalled))
            r = max(6.0, reach(still.looks[figure.looks]) * self._view.scale)
            side, up, down = r * 0.8 + 4, -r * 0.75 - _ASCENT, r * 0.75 - 4
            self._put(
                lines,
                [
                    (x + side, y + up, False),
                    (x + side, y + down, False),
                    (x - side, y + up, True),
                    (x - side, y + down, True),
                    (x + side, y - _LINE * len(lines) / 2, False),
                ],
            )

    def _area(self, name: str, corner: tuple[float, float]) -> None:
        x, y = self._view.pixel(*corner)
        self._name(name, x, y, 4.0, (-_LINE, 2.0), self._colors.bad_area)

    def _name(
        self,
        name: str,
        x: float,
        y: float,
        away: float,
        tops: Sequence[float],
        color: RGBA,
    ) -> None:
        """Draw the name of a place or area to the right of it, or to the left."""
        if name and self._is_seen(x, y):
            self._put(
                [(name, color)],
                [
                    (x - away if is_left else x + away, y + top, is_left)
                    for is_left in (False, True)
                    for top in tops
                ],
            )

    def _put(self, lines: Sequence[Line], corners: Sequence[Corner]) -> None:
        """Draw a label of one or more lines at the first place that is free, if there is one."""
        if len(self.drawn) >= MAX_LABELS:
            return
        lines = [(shown(words, MAX_LABEL), color) for words, color in lines]
        wide, high = max(text_width(words) for words, _ in lines), _LINE * len(lines)
        width, height = self._view.width, self._view.height
        if wide > width - 2 * _MARGIN or high > height - 2 * _MARGIN:
            return
        for x, y, is_left in corners:
            left = min(max(x - wide if is_left else x, _MARGIN), width - _MARGIN - wide)
            top = min(max(y, _MARGIN), height - _MARGIN - high)
            box = left, top, left + wide, top + high
            if not self._room.is_free(box):
                continue
            self._room.add(box)
            self.drawn.append((lines[0][0], box))
            for k, (words, color) in enumerate(lines):
                paste(
                    text(
                        words,
                        left,
                        top + _ASCENT + _LINE * k,
                        color,
                        self._colors.label_ground,
                    ),
                    self._image,
                )
            return


__all__ = ["MAX_LABEL", "MAX_LABELS", "MAX_TRIED", "Labels"]
