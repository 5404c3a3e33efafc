"""Renders top-view pictures of the world with Pillow: for files, tests and machines without a browser.

`main` is a child process that draws one picture (see `botyard.child`), so that a client's picture does not delay the others.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Final

from PIL import Image

from botyard.child import Send, serve
from botyard.geometry import Outline, Pose, transform_point
from botyard.model.colors import rgb
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.names import shown
from botyard.pictures.canvas import Box, Canvas, Color
from botyard.pictures.still import Still, places

MODULE: Final = "botyard.pictures.draw"
TYPES: Final = {"png": bytes}
"""Messages that the child process sends: the picture as a PNG file."""
GRID: Final[Color] = (232, 232, 236)
WALL: Final[Color] = (60, 62, 68)
BEAM: Final[Color] = (186, 214, 240)
SONAR: Final[Color] = (190, 190, 190)
PLACE: Final[Color] = (34, 122, 84)
AREA: Final[Color] = (196, 120, 60)
NAME: Final[Color] = (20, 20, 20)
MAX_GRID_LINES: Final = 80
"""Most grid lines across a picture; in larger worlds they are ten times as far apart."""


def draw_grid(canvas: Canvas) -> None:
    """Draw grid lines every metre; every 10 m, 100 m … in large worlds."""
    x0, y0, x1, y1 = canvas.bounds
    step = 1.0
    while x1 - x0 > MAX_GRID_LINES * step or y1 - y0 > 4 * MAX_GRID_LINES * step:
        step *= 10.0
    for i in range(math.ceil(x0 / step), math.floor(x1 / step) + 1):
        canvas.line([(i * step, y0), (i * step, y1)], GRID)
    for j in range(math.ceil(y0 / step), math.floor(y1 / step) + 1):
        canvas.line([(x0, j * step), (x1, j * step)], GRID)


def draw_walls(canvas: Canvas, scene: Scene) -> None:
    """Draw the areas, points and walls of a scene."""
    for area in scene.areas:
        if len(area.corners) > 2:
            canvas.polygon(area.corners, None, AREA)
        else:
            canvas.line(area.corners, AREA)
    canvas.squares(scene.points.tolist(), scene.resolution, WALL)
    for x1, y1, x2, y2 in scene.segments.tolist():
        canvas.line([(x1, y1), (x2, y2)], WALL, 1.5)


def draw_box(canvas: Canvas, parts: Sequence[Outline], pose: Pose, color: str) -> None:
    """Draw a box of the map."""
    for part in parts:
        canvas.polygon([transform_point(pose, x, y) for x, y in part], rgb(color), WALL)


def draw_places(canvas: Canvas, scene: Scene) -> None:
    """Draw goals, docks and homes."""
    for place in scene.places:
        x, y, th = place.pose
        canvas.polygon([(x + 0.12, y), (x, y + 0.12), (x - 0.12, y), (x, y - 0.12)], PLACE)
        if place.has_heading:
            canvas.line([(x, y), (x + 0.4 * math.cos(th), y + 0.4 * math.sin(th))], PLACE, 1.5)
        canvas.text(x, y, shown(place.name or place.kind), PLACE)


def draw_robot(
    canvas: Canvas,
    parts: Sequence[Outline],
    pose: Pose,
    color: str,
    *,
    drives: bool = True,
    name: str = "",
    ghost: bool = False,
) -> None:
    """Draw a robot's body with a line in the direction of its heading.

    Parameters
    ----------
    parts : sequence of outlines
        In its frame, m; the last one is its body.
    drives : bool
        False for obstacles, whose heading is not marked.
    name : str
        Written beside a robot.
    ghost : bool
        Not seen by sensors and without collisions: only the outline is drawn.
    """
    for part in parts:
        corners = [transform_point(pose, x, y) for x, y in part]
        canvas.polygon(corners, None if ghost else rgb(color), (30, 30, 30))
    if not drives:
        return
    nose = max(x for x, _ in parts[-1])
    canvas.line([(pose.x, pose.y), transform_point(pose, nose, 0.0)], NAME, 1.5)
    if name:
        canvas.text(pose.x, pose.y, shown(name), NAME)


def render_scene(scene: Scene, *, width: int = 1000) -> Image.Image:
    """Draw a scene without robots; at most `width` pixels wide, see `Canvas`."""
    canvas = Canvas(scene.bounds or (-10.0, -10.0, 10.0, 10.0), width)
    draw_grid(canvas)
    draw_walls(canvas, scene)
    for box in scene.boxes:
        draw_box(canvas, box.outlines, box.pose, box.color)
    draw_places(canvas, scene)
    return canvas.finish()


def render_robot(spec: RobotSpec, *, width: int = 400) -> Image.Image:
    """Draw one robot model with its sensors, `width` pixels wide."""
    reach = max(spec.radius * 1.6, 0.5)
    canvas = Canvas((-reach, -reach, reach, reach), width, margin=0.0)
    ring = spec.sonar
    for t in ring.transducers if ring else ():
        half = ring.fov / 2 if ring else 0.0
        tip = Pose(t.pose.x, t.pose.y, t.pose.th)
        cone = [transform_point(Pose(tip.x, tip.y, tip.th + a), reach / 3, 0.0) for a in (-half, 0.0, half)]
        canvas.polygon([(tip.x, tip.y), *cone], (240, 240, 240), SONAR)
    draw_robot(canvas, (*spec.parts, spec.outline), Pose(), spec.color, drives=bool(spec.drive))
    for laser in spec.lasers:
        hx, hy = laser.size[0] / 2, laser.size[1] / 2
        case = [transform_point(laser.pose, x, y) for x, y in ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))]
        canvas.polygon(case, (90, 140, 200), (20, 40, 80))
    return canvas.finish()


def _extent(still: Still) -> Box:
    """Bounds of the picture, m: the map and everything that moves."""
    bounds, (x, y) = still.scene.bounds, still.poses[:, :2].T
    if bounds is None:
        half = 10.0
        cx, cy = (float(x.mean()), float(y.mean())) if len(x) else (0.0, 0.0)
        spread = max(half, float(abs(x - cx).max(initial=0)) + 2, float(abs(y - cy).max(initial=0)) + 2)
        return cx - spread, cy - spread, cx + spread, cy + spread
    if not len(x):
        return bounds
    low, high = (float(x.min()) - 0.5, float(y.min()) - 0.5), (float(x.max()) + 0.5, float(y.max()) + 0.5)
    return min(bounds[0], low[0]), min(bounds[1], low[1]), max(bounds[2], high[0]), max(bounds[3], high[1])


def render_still(still: Still, *, width: int = 1000) -> Image.Image:
    """Draw the world at one moment: map, boxes, robots and readings; at most `width` pixels wide, see `Canvas`."""
    canvas = Canvas(_extent(still), width)
    draw_grid(canvas)
    for scan in still.scans:
        canvas.polygon(places(still, scan), BEAM)
    for beam in still.sonar:
        canvas.line(places(still, beam), SONAR)
    draw_walls(canvas, still.scene)
    figures = [
        (still.looks[f.looks], f, Pose(*pose)) for f, pose in zip(still.figures, still.poses.tolist(), strict=True)
    ]
    for looks, _, pose in figures:
        if looks.is_box:
            draw_box(canvas, looks.parts, pose, looks.color)
    draw_places(canvas, still.scene)
    for looks, figure, pose in figures:
        if not looks.is_box:
            draw_robot(
                canvas, (*figure.parts, *looks.parts), pose, looks.color, drives=looks.drives, name=figure.name,
                ghost=figure.ghost,
            )  # fmt: skip
    return canvas.finish()


def png(still: Still) -> bytes:
    """Draw the world at one moment as a PNG file."""
    file = io.BytesIO()
    render_still(still).save(file, "PNG")
    return file.getvalue()


def _answer(still: Still, send: Send) -> None:
    send("png", png(still))


def main() -> None:
    """Entry point of the child process."""
    serve({"draw": Still}, _answer)


__all__ = ["MODULE", "TYPES", "main", "png", "render_robot", "render_scene", "render_still"]
