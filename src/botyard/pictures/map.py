"""Static parts of a picture as layers: grid, walls, points, areas and places."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from botyard.geometry import Pose
from botyard.model.scene import Scene
from botyard.pictures.canvas import Mask, View
from botyard.pictures.floor import draw_floor
from botyard.pictures.frame import Frame, Overlay, Words, overlay_of
from botyard.pictures.layers import Layer, merge, text
from botyard.pictures.palette import Theme

LEAST_GRID_PX: Final = 9.0
"""Smallest distance between two grid lines, pixels."""
NO_MAP: Final = (-100.0, -100.0, 100.0, 100.0)
"""Part of the plane that is shown as ground in a world without a map, m; the rest is grey."""
MAX_PLACES: Final = 2_000
"""Largest number of places (goals, docks, homes) to draw, and largest number of areas."""


class Map(NamedTuple):
    """Static parts of the world, drawn for one view.

    Attributes
    ----------
    view : View
        View of the layers.
    ground : (height, width) uint32 array
        Pixels of ground, grid and floor, in the size of the view.
    walls, places : Overlay
        `walls` lies below the robots; `places`, with areas and the map's edge, above them.
    """

    view: View
    ground: Words
    walls: Overlay
    places: Overlay


def draw_map(scene: Scene, view: View, theme: Theme) -> Map:
    """Draw the static parts of a scene: grid, walls, points, areas and places.

    Parameters
    ----------
    scene : Scene
        The map.
    view : View
        Part of the world.
    theme : Theme
        Colours.
    """
    ground, walls, places = (Frame(view.width, view.height) for _ in range(3))
    ground.image.paste(theme.ground, (0, 0, view.width, view.height))
    _draw_grid(ground.image, view, theme)
    # The floor is drawn over the grid, whose colours only suit the plain ground.
    draw_floor(ground.image, scene.floor, view)
    merge(draw_walls(scene, view, theme), walls.image)
    merge(
        [
            *_edge(scene, view, theme),
            *_areas(scene, view, theme),
            *_places(scene, view, theme),
        ],
        places.image,
    )
    return Map(view, ground.words, overlay_of(walls.words), overlay_of(places.words))


def nice_step(least: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least `least`.

    Parameters
    ----------
    least : float
        Least step, above 0, in any unit.
    """
    power = 10.0 ** math.floor(math.log10(least))
    head = least / power
    return (1 if head <= 1 else 2 if head <= 2 else 5 if head <= 5 else 10) * power


def _draw_grid(image: Image.Image, view: View, theme: Theme) -> None:
    """Draw the lines of the grid, and every fifth one darker.

    Lines are one metre apart, or farther in large worlds, so that they stay
    distinguishable.
    """
    x0, y0, x1, y1 = view.bounds
    step = max(1.0, nice_step(LEAST_GRID_PX / view.scale))
    draw = ImageDraw.Draw(image)
    # Draw dark lines after the pale ones, so that no pale line crosses over them.
    for major in (False, True):
        color = theme.grid_major if major else theme.grid
        for i in range(math.ceil(x0 / step), math.floor(x1 / step) + 1):
            if (i % 5 == 0) is major:
                x = math.floor(view.pixel(i * step, 0.0)[0] + 0.5)
                draw.line((x, 0, x, view.height), fill=color)

        for j in range(math.ceil(y0 / step), math.floor(y1 / step) + 1):
            if (j % 5 == 0) is major:
                y = math.floor(view.pixel(0.0, j * step)[1] + 0.5)
                draw.line((0, y, view.width, y), fill=color)


def draw_walls(scene: Scene, view: View, theme: Theme) -> list[Layer]:
    """Draw the points and walls of a scene.

    Parameters
    ----------
    scene : Scene
        Walls (n, 4) and points (n, 2), m.
    view : View
        Part of the world.
    theme : Theme
        Colours.
    """
    mask = Mask(view, theme.wall)
    mask.squares(scene.points, scene.resolution)
    # Walls are 5 cm wide, but stay visible in small scales.
    width = min(3.0, max(1.25, 0.05 * view.scale))
    x0, y0, x1, y1 = view.bounds
    rim = 4.0 / view.scale
    # Select the visible walls: a view that follows a robot shows few of a large map.
    a, b = scene.segments[:, :2], scene.segments[:, 2:]
    low, high = np.minimum(a, b), np.maximum(a, b)
    seen = (low <= (x1 + rim, y1 + rim)).all(axis=1) & (
        high >= (x0 - rim, y0 - rim)
    ).all(axis=1)
    ends = scene.segments[seen].reshape(-1, 2)
    mask.line(ends, width, starts=np.arange(0, len(ends), 2), ends="round")
    return mask.finish()


def _edge(scene: Scene, view: View, theme: Theme) -> list[Layer]:
    """Draw the edge of the map. If there is no map, paint the plane outside of `NO_MAP` grey."""
    bounds = scene.bounds
    (left, bottom), (right, top) = (
        view.pixel(*corner)
        for corner in ((bounds or NO_MAP)[:2], (bounds or NO_MAP)[2:])
    )
    if bounds is None:
        mask = Mask(view, theme.outside)
        if left > 0:
            mask.rectangle((0, 0, left, view.height))
        if right < view.width:
            mask.rectangle((right, 0, view.width, view.height))
        # Limit the next rectangles to the space between the first ones: where transparent
        # rectangles overlap, they would be darker.
        left, right = max(left, 0), min(right, view.width)
        if top > 0:
            mask.rectangle((left, 0, right, top))
        if bottom < view.height:
            mask.rectangle((left, bottom, right, view.height))
        return mask.finish()

    rim = 4.0 / view.scale
    x0, y0, x1, y1 = bounds[0] - rim, bounds[1] - rim, bounds[2] + rim, bounds[3] + rim
    mask = Mask(view, theme.beyond)
    mask.line([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], closed=True, corners="round")
    return mask.finish()


def _areas(scene: Scene, view: View, theme: Theme) -> list[Layer]:
    """Draw the map's sectors and forbidden areas."""
    areas = scene.areas[:MAX_PLACES]
    if not areas:
        return []
    line, fill = Mask(view, theme.bad_area), Mask(view, theme.area)
    for area in areas:
        closed = len(area.corners) > 2
        if closed:
            fill.polygon(area.corners)

        line.dashes(area.corners, 1.5, 6.0, 4.0, closed=closed)

    return [*fill.finish(), *line.finish()]


def _places(scene: Scene, view: View, theme: Theme) -> list[Layer]:
    """Draw the map's goals, docks and homes."""
    mask = Mask(view, theme.place)
    for place in scene.places[:MAX_PLACES]:
        x, y = view.pixel(place.pose.x, place.pose.y)
        # Symbols extend up to 50 pixels from their position.
        if -50 <= x <= view.width + 50 and -50 <= y <= view.height + 50:
            _draw_place(mask, place.kind.lower(), x, y)
            if place.has_heading:
                _draw_arrow(mask, x, y, place.pose, 16.0)

    return mask.finish()


def _draw_place(mask: Mask, kind: str, x: float, y: float) -> None:
    """Draw the symbol of a place. Kinds other than dock and home get the symbol of a goal.

    Parameters
    ----------
    mask : Mask
        Shapes in the colour of places.
    kind : str
        Kind of the place in lower case.
    x, y : float
        Position in the picture, pixels.
    """
    if "dock" in kind:
        mask.stroke(
            [(x - 6, y - 6), (x + 6, y - 6), (x + 6, y + 6), (x - 6, y + 6)],
            2.0,
            closed=True,
            corners="round",
        )
        mask.rectangle((x - 2, y - 2, x + 2, y + 2))
    elif "home" in kind:
        roof = [(x - 7, y + 1), (x, y - 7), (x + 7, y + 1)]
        walls = [(x - 5, y), (x - 5, y + 6), (x + 5, y + 6), (x + 5, y)]
        mask.stroke([*roof, *walls], 2.0, starts=(0, 3), corners="round")
    else:
        mask.circle(x, y, 5.0, 2.0)
        mask.circle(x, y, 1.5)


def _draw_arrow(mask: Mask, x: float, y: float, pose: Pose, length: float) -> None:
    """Draw an arrow that points along a heading.

    Parameters
    ----------
    mask : Mask
        Shapes in the colour of places.
    x, y : float
        Start in the picture, pixels.
    pose : Pose
        Pose with the heading, rad, counter-clockwise in the world.
    length : float
        Length, pixels.
    """
    tip = x + math.cos(pose.th) * length, y - math.sin(pose.th) * length
    barbs = [
        (tip[0] + math.cos(a) * 6, tip[1] - math.sin(a) * 6)
        for a in (pose.th + 2.6, pose.th - 2.6)
    ]
    mask.stroke([(x, y), tip, tip, barbs[0], tip, barbs[1]], 2.0, starts=(0, 2, 4))


def scale_bar(view: View, theme: Theme) -> list[Layer]:
    """Draw a bar of a round length in the lower left corner, with its length.

    Parameters
    ----------
    view : View
        Part of the world.
    theme : Theme
        Colours.

    Returns
    -------
    list of Layer
        Bar and text; empty in a picture that is too small.
    """
    step = nice_step(70.0 / view.scale)
    length, x, y = step * view.scale, 14.0, view.height - 14.0
    # A small picture has no space for the bar.
    if length + 60 > view.width or view.height < 60:
        return []
    bar = [(x, y - 5), (x, y), (x + length, y), (x + length, y - 5)]
    found: list[Layer] = []
    for color, width in ((theme.label_ground, 5.0), (theme.label, 1.5)):
        mask = Mask(view, color, (0, round(y) - 12, round(x + length) + 8, view.height))
        mask.stroke(bar, width, corners="round")
        found += mask.finish()

    words = (
        f"{step / 1000:g} km"
        if step >= 1000
        else f"{step:g} m"
        if step >= 1
        else f"{step * 100:g} cm"
    )
    return [
        *found,
        *text(
            words if step >= 0.01 else f"{step * 1000:g} mm",
            x + 4,
            y - 6,
            theme.label,
            theme.label_ground,
        ),
    ]


__all__ = [
    "MAX_PLACES",
    "NO_MAP",
    "Map",
    "draw_map",
    "draw_walls",
    "nice_step",
    "scale_bar",
]
