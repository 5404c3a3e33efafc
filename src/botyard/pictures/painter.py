"""Drawing of consecutive moments of a world; static parts are drawn only once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from botyard.geometry import Outline, Pose
from botyard.model.colors import rgb
from botyard.model.scene import Scene
from botyard.pictures.bodyshapes import heading_mark, is_line, reach
from botyard.pictures.canvas import Mask, View, fit
from botyard.pictures.clipping import Box, Point
from botyard.pictures.floor import draw_fields
from botyard.pictures.frame import Frame, Words, image_of, word_of
from botyard.pictures.kernels.pixels import lay_over, mark_fields, tint_fields
from botyard.pictures.labels import Labels
from botyard.pictures.layers import Layer, paste
from botyard.pictures.map import Map, draw_map, scale_bar
from botyard.pictures.options import PictureOptions
from botyard.pictures.palette import Theme, robot_colors, theme
from botyard.pictures.still import Beams, Figure, Looks, Still, ends
from botyard.pictures.trails import BANDS, Trails

Array = NDArray[np.float64]
FOLLOWED_M: Final = 12.0
"""Width of the view around a followed robot, m."""
FOLLOWED_ASPECT: Final = 0.625
"""Ratio of height to width of the view around a followed robot."""
MAX_FILLED: Final = 50
"""Largest number of scans that are drawn as filled areas; with more, only hits are drawn."""
MAX_TILE: Final = 40_000_000
"""Largest number of map pixels to draw in advance around a moving view."""
DOT: Final = 2.5
"""Least radius of a body that is drawn with its shape, pixels; smaller ones become dots."""


class Painter:
    """Draws pictures of consecutive moments.

    Parameters
    ----------
    options : PictureOptions
        Contents of the pictures. If they follow no robot, all show the part of the world
        that the first picture shows.
    check : callable
        Called with width and height, pixels, before a picture is drawn. It raises an
        error to refuse the size; `draw` does not catch this error.
    """

    def __init__(
        self,
        options: PictureOptions,
        check: Callable[[int, int], None] = lambda _width, _height: None,
    ) -> None:
        self._options = options
        self._check = check
        self._theme = theme(options.theme)
        self._trails = Trails(options.trails)
        self._view: View | None = None
        self._map: tuple[Scene, Map] | None = None
        self._frame: Frame | None = None
        self.labels: list[tuple[str, Box]] = []
        """Names in the last picture, and their boxes, pixels."""

    def see(self, still: Still) -> None:
        """Record the positions of robots for their trails, without drawing.

        Parameters
        ----------
        still : Still
            Moment of the world. If its time is before the last moment, trails are cleared.
        """
        poses = still.poses[:, :2].tolist()
        self._trails.add(
            still.time,
            [
                (f.name, (x, y))
                for f, (x, y) in zip(still.figures, poses, strict=True)
                if f.name and still.looks[f.looks].drives
            ],
        )

    def draw(self, still: Still) -> Image.Image:
        """Return the picture of a moment (RGB); see `paint`.

        Parameters
        ----------
        still : Still
            Moment of the world. If its time is before the last moment, trails are cleared.

        Raises
        ------
        WorldError
            The picture shows no finite part of the world.
        """
        return image_of(self.paint(still)).convert("RGB")

    def paint(self, still: Still) -> Words:
        """Return the pixels of the picture of a moment.

        The next picture of the same size overwrites the returned array.

        Parameters
        ----------
        still : Still
            Moment of the world. If its time is before the last moment, trails are cleared.

        Returns
        -------
        (height, width) uint32
            Opaque pixels, see `frame.Words`.

        Raises
        ------
        WorldError
            The picture shows no finite part of the world.
        """
        if self._options.colors == "robot":
            still = _one_color_each(still)
        self.see(still)

        view = self._view = self._view_of(still)
        self._check(view.width, view.height)
        chart, dx, dy = self._chart(still.scene, view)

        # Reuse the memory: the page faults of a new large frame take time.
        if self._frame is None or self._frame.image.size != (view.width, view.height):
            self._frame = Frame(view.width, view.height)

        words, image = self._frame.words, self._frame.image
        np.copyto(words, chart.ground[dy : dy + view.height, dx : dx + view.width])
        draw_fields(image, still.fields, view)
        _draw_readings(self._frame, still, view, self._theme)

        # The order follows the page: walls over readings, robots over walls, labels
        # on top.
        lay_over(*chart.walls, dx, dy, words)
        self._draw_trails(image, still, view)
        _draw_bodies(image, still, view, self._theme)
        lay_over(*chart.places, dx, dy, words)
        labels = Labels(image, view, self._theme)
        labels.draw(still)
        self.labels = labels.drawn
        paste(scale_bar(view, self._theme), image)
        return words

    # -- the view

    def _view_of(self, still: Still) -> View:
        o = self._options
        if o.follow is None:
            # All frames of a fixed view have the size of the first one.
            if self._view is None:
                self._view = (
                    fit(extent(still), o.size)
                    if o.area is None
                    else fit(_box(o.area), o.size, 0.0)
                )

            return self._view

        wide, high = o.area or (FOLLOWED_M, FOLLOWED_M * FOLLOWED_ASPECT)
        at = [i for i, f in enumerate(still.figures) if f.name == o.follow]
        if at:
            x, y = still.poses[at[0], :2].tolist()
        # The robot no longer exists, so the view stays at its last position.
        elif self._view is not None:
            return self._view
        else:
            x0, y0, x1, y1 = extent(still)
            x, y = (x0 + x1) / 2, (y0 + y1) / 2

        view = fit(
            (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2), o.size, 0.0
        )
        # Move the view by whole pixels only, so that walls do not flicker.
        left, top = round(view.left * view.scale), round(view.top * view.scale)
        return view._replace(left=left / view.scale, top=top / view.scale)

    def _chart(self, scene: Scene, view: View) -> tuple[Map, int, int]:
        """Return the drawn map, and the left and top edge of the view in it, pixels.

        Parameters
        ----------
        scene : Scene
            The map.
        view : View
            Part of the world that the picture shows.
        """
        if self._map is not None and self._map[0] is scene:
            chart = self._map[1]
            dx = round((view.left - chart.view.left) * view.scale)
            dy = round((chart.view.top - view.top) * view.scale)
            inside = (
                0 <= dx <= chart.view.width - view.width
                and 0 <= dy <= chart.view.height - view.height
            )
            if chart.view.scale == view.scale and inside:
                return chart, dx, dy

        # For a moving view, draw a map with three times its width and height: it serves many
        # frames.
        moves = (
            self._options.follow is not None
            and 9 * view.width * view.height <= MAX_TILE
        )
        dx, dy = (view.width, view.height) if moves else (0, 0)
        around = View(
            view.left - dx / view.scale,
            view.top + dy / view.scale,
            view.scale,
            view.width + 2 * dx,
            view.height + 2 * dy,
        )
        chart = draw_map(scene, around, self._theme)
        self._map = scene, chart
        return chart, dx, dy

    # -- moving parts

    def _draw_trails(self, image: Image.Image, still: Still, view: View) -> None:
        if not self._options.trails:
            return
        for figure, (x, y, _) in zip(still.figures, still.poses.tolist(), strict=True):
            bands = (
                self._trails.bands(figure.name, still.time, x, y) if figure.name else []
            )
            pieces = [
                (0.15 + 0.6 * (band + 1) / BANDS, piece)
                for band, found in bands
                for piece in found
            ]
            if not pieces:
                continue
            box = _pixel_box(
                view.pixels(np.concatenate([piece for _, piece in pieces])), 3
            )
            if _is_outside(box, view):
                continue
            mask = Mask(view, (*rgb(still.looks[figure.looks].color), 255), box)
            for opacity, piece in pieces:
                mask.line(piece, 1.5, round(255 * opacity))
            paste(mask.finish(), image)


def _one_color_each(still: Still) -> Still:
    """Return a copy of a moment in which each robot has its own colour, as on the page."""
    own, colors = list(still.looks), robot_colors()
    figures = []
    for row, figure in enumerate(still.figures):
        if figure.name:
            own.append(
                replace(still.looks[figure.looks], color=colors[row % len(colors)])
            )
            figure = replace(figure, looks=len(own) - 1)

        figures.append(figure)

    return replace(still, looks=tuple(own), figures=tuple(figures))


def _box(area: Sequence[float]) -> Box:
    x0, y0, x1, y1 = area
    return x0, y0, x1, y1


def extent(still: Still) -> Box:
    """Return the bounds of a picture of the whole world, m: the map and all bodies.

    Parameters
    ----------
    still : Still
        Moment of the world.

    Returns
    -------
    tuple of float
        Smallest x, smallest y, largest x, largest y, m.
    """
    bounds, (x, y) = still.scene.bounds, still.poses[:, :2].T
    if bounds is None:
        half = 10.0
        cx, cy = (float(x.mean()), float(y.mean())) if len(x) else (0.0, 0.0)
        # Without a map, show a square of at least 20 m around the robots.
        spread = max(
            half,
            float(abs(x - cx).max(initial=0)) + 2,
            float(abs(y - cy).max(initial=0)) + 2,
        )
        return cx - spread, cy - spread, cx + spread, cy + spread

    if not len(x):
        return bounds
    low, high = (
        (float(x.min()) - 0.5, float(y.min()) - 0.5),
        (float(x.max()) + 0.5, float(y.max()) + 0.5),
    )
    return (
        min(bounds[0], low[0]),
        min(bounds[1], low[1]),
        max(bounds[2], high[0]),
        max(bounds[3], high[1]),
    )


def _pixel_box(places: Array, rim: int) -> tuple[int, int, int, int]:
    """Return the box around positions of a picture, whole pixels.

    Edges are limited to ±1 million pixels.

    Parameters
    ----------
    places : (n, 2) float64
        Positions in the picture, pixels; n is at least 1.
    rim : int
        Margin, pixels.
    """
    low = np.clip(np.floor(places.min(axis=0)) - rim, -1e6, 1e6).astype(int).tolist()
    high = (
        np.clip(np.ceil(places.max(axis=0)) + rim + 1, -1e6, 1e6).astype(int).tolist()
    )
    return low[0], low[1], high[0], high[1]


def _is_outside(box: tuple[int, int, int, int], view: View) -> bool:
    """Return whether a box (left, top, right, lower edge) is outside the view."""
    return box[2] <= 0 or box[3] <= 0 or box[0] >= view.width or box[1] >= view.height


# -- readings


def _draw_readings(frame: Frame, still: Still, view: View, colors: Theme) -> None:
    """Draw the readings of lasers as filled areas, or only their hits if there are many.

    Sonar readings are drawn as lines.

    Parameters
    ----------
    frame : Frame
        Picture, which is changed.
    still : Still
        Moment of the world.
    view : View
        Part of the world.
    colors : Theme
        Colours.
    """
    found = [
        (beams, view.pixels(ends(still, beams)))
        for beams in still.scans
        if len(beams.ranges)
    ]
    # Remove scans outside the view, so that they do not count towards `MAX_FILLED`.
    fans = [
        (beams, at, box)
        for beams, at in found
        if not _is_outside(box := _pixel_box(at, 1), view)
    ]
    if len(fans) <= MAX_FILLED:
        _fill_fans(frame, fans, view, colors)
    else:
        _dot_fans(frame.image, fans, view, colors)

    if still.sonar:
        sonar = Mask(view, colors.sonar)
        beams = np.concatenate([ends(still, beam) for beam in still.sonar])
        sonar.line(beams, starts=np.arange(0, len(beams), 2))
        paste(sonar.finish(), frame.image)


Fan = tuple[Beams, Array, tuple[int, int, int, int]]
"""Readings of one laser, the points to draw, and their bounding box, pixels.

The points are the position of the sensor, then the ends of its beams.
"""


def _fill_fans(frame: Frame, fans: Sequence[Fan], view: View, colors: Theme) -> None:
    """Fill the area that each scan covers, and draw a line along the surfaces it hit.

    Overlapping areas are darker.
    """
    if not fans:
        return

    boxes = np.clip([box for _, _, box in fans], 0, [view.width, view.height] * 2)
    (x0, y0), (x1, y1) = (
        boxes[:, :2].min(axis=0).tolist(),
        boxes[:, 2:].max(axis=0).tolist(),
    )

    begins = np.cumsum([0, *(len(at) for _, at, _ in fans)])
    # `mark_fields` expects 1 for clockwise: bearings that increase turn counter-clockwise,
    # also in the picture.
    turns = np.array([-1 if beams.step > 0.0 else 1 for beams, _, _ in fans])

    marks = np.zeros((view.height, view.width), np.uint8)
    mark_fields(np.concatenate([at for _, at, _ in fans]), begins, turns, marks)

    # n layers of the same opacity cover 1 - (1 - opacity)^n of the ground.
    share = 1.0 - colors.laser_fill[3] / 255
    opacities = np.array([round(256 * (1.0 - share**n)) for n in range(256)])
    tint_fields(
        marks, np.array([y0, y1]), word_of(colors.laser_fill), opacities, frame.words
    )

    edge = Mask(view, colors.laser_edge, (x0, y0, x1, y1))
    for beams, at, _ in fans:
        # The beams without a range end at the sensor (see `ends`).
        reach = np.where(np.isfinite(beams.ranges), beams.ranges, 0.0)
        near, far = np.minimum(reach[1:], reach[:-1]), np.maximum(reach[1:], reach[:-1])
        # Interrupt the line where the range jumps: there is a gap between two objects.
        breaks = np.flatnonzero(far - near > 0.3 + 0.08 * near) + 1
        edge.stroke(at[1:], 1.0, starts=np.append(0, breaks))
    paste(edge.finish(), frame.image)


def _dot_fans(
    image: Image.Image, fans: Sequence[Fan], view: View, colors: Theme
) -> None:
    """Draw the points that many scans hit as squares of 2 × 2 pixels."""
    # A range close to `range_max` means that the beam hit no object.
    hits = [
        at[1:][(beams.ranges > 0.0) & (beams.ranges < 0.999 * beams.range_max)]
        for beams, at, _ in fans
    ]
    x, y = np.concatenate(hits).T
    seen = (x >= 0) & (x < view.width - 1) & (y >= 0) & (y < view.height - 1)
    column, row = x[seen].astype(int), y[seen].astype(int)
    dots = np.zeros((view.height, view.width), np.uint8)
    for dx in (0, 1):
        for dy in (0, 1):
            dots[row + dy, column + dx] = 0xD0

    Layer(colors.laser_point, (0, 0), Image.fromarray(dots)).paste(image)


# -- robots and boxes


def _draw_bodies(image: Image.Image, still: Still, view: View, colors: Theme) -> None:
    """Draw boxes of the map, and robots above them."""
    figures = list(zip(still.figures, still.poses.tolist(), strict=True))
    for is_box in (True, False):
        for figure, pose in figures:
            looks = still.looks[figure.looks]
            if looks.is_box is is_box:
                draw_body(image, looks, figure, Pose(*pose), view, colors)


def draw_body(
    image: Image.Image,
    looks: Looks,
    figure: Figure,
    pose: Pose,
    view: View,
    colors: Theme,
) -> None:
    """Draw the parts of a body at its pose, and a mark at the front of a robot.

    Parameters
    ----------
    image : Image
        Picture (RGBA), which is changed.
    looks : Looks
        Appearance of the model.
    figure : Figure
        The body, with its state.
    pose : Pose
        Pose in the frame of the world, m and rad.
    view : View
        Part of the world.
    colors : Theme
        Colours.
    """
    parts = [*figure.parts, *looks.parts]
    # The last part is the main body, whose front gets the mark.
    marks = [heading_mark(looks.parts[-1])] if looks.drives else []
    shapes = [*parts, *marks, *figure.marks]
    places = view.pixels(
        _placed([corner for shape in shapes for corner in shape], pose)
    )
    box = _pixel_box(places, 3)
    if _is_outside(box, view):
        return

    fill = (*rgb(looks.color), 255)
    line = (
        colors.stalled if figure.stalled else fill if is_line(looks) else colors.outline
    )

    if reach(looks) * view.scale < DOT:
        x, y = view.pixel(pose.x, pose.y)
        # A pale dot would be lost on a pale ground.
        for color, half in ((line, DOT + 1), (line if figure.stalled else fill, DOT)):
            dot = Mask(view, color, box)
            dot.rectangle((x - half, y - half, x + half, y + half))
            paste(dot.finish(), image)
        return

    inside, edge = Mask(view, fill, box), Mask(view, line, box)
    first = np.cumsum([0, *(len(shape) for shape in shapes)])
    if not figure.ghost:
        for k in range(len(parts)):
            inside.fill(places[first[k] : first[k + 1]])
    edge.stroke(
        places[: first[len(parts)]],
        2.5 if figure.stalled else 1.2,
        starts=first[: len(parts)],
        closed=True,
    )
    for k in range(len(parts), len(shapes)):
        edge.fill(places[first[k] : first[k + 1]])
    paste([*inside.finish(), *edge.finish()], image)


def _placed(outline: Sequence[Point] | Outline, pose: Pose) -> Array:
    """Transform an outline to the world, m.

    Parameters
    ----------
    outline : sequence of (float, float)
        Points in the body's frame, m.
    pose : Pose
        Pose of the body, m and rad.

    Returns
    -------
    (n, 2) float64
        Points in the frame of the world, m.
    """
    x, y = np.asarray(outline, np.float64).reshape(-1, 2).T
    c, s = math.cos(pose.th), math.sin(pose.th)
    return np.stack([pose.x + c * x - s * y, pose.y + s * x + c * y], axis=1)


__all__ = [
    "MAX_FILLED",
    "Painter",
    "draw_body",
    "extent",
]
