"""Pictures of the world from above, with Pillow: for files, tests and machines without a browser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from PIL import Image, ImageDraw

from botyard.geometry import Pose, transform_point
from botyard.model.colors import rgb
from botyard.model.obstacles import Outline
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.names import shown

if TYPE_CHECKING:
    from botyard.simulation import Simulation

Point = tuple[float, float]
Box = tuple[float, float, float, float]

GROUND: Final = (255, 255, 255)
GRID: Final = (232, 232, 236)
WALL: Final = (60, 62, 68)
BEAM: Final = (186, 214, 240)
SONAR: Final = (190, 190, 190)
PLACE: Final = (34, 122, 84)
AREA: Final = (196, 120, 60)
OVERSAMPLE: Final = 2
"""Pictures are drawn this much larger and reduced, which smooths the lines."""


class Canvas:
    """A picture of a part of the world, in metres.

    Parameters
    ----------
    bounds : tuple of four floats
        Least x, least y, greatest x, greatest y, m.
    width : int
        Width of the finished picture, pixels.
    margin : float
        Free space around the bounds, m.
    """

    def __init__(self, bounds: Box, width: int, margin: float = 0.5) -> None:
        x0, y0, x1, y1 = bounds[0] - margin, bounds[1] - margin, bounds[2] + margin, bounds[3] + margin
        self.x0, self.y1 = x0, y1
        self.size = (width, max(1, round(width * (y1 - y0) / (x1 - x0))))
        self.scale = width * OVERSAMPLE / (x1 - x0)
        self.bounds: Box = (x0, y0, x1, y1)
        self._image = Image.new("RGB", (self.size[0] * OVERSAMPLE, self.size[1] * OVERSAMPLE), GROUND)
        self._draw = ImageDraw.Draw(self._image)

    def pixel(self, x: float, y: float) -> Point:
        """Place of a point of the world in the enlarged picture."""
        return (x - self.x0) * self.scale, (self.y1 - y) * self.scale

    def line(self, points: Iterable[Point], color: tuple[int, int, int], width: float = 1.0) -> None:
        """A line through points of the world; `width` in pixels of the finished picture."""
        self._draw.line([self.pixel(*p) for p in points], fill=color, width=max(1, round(width * OVERSAMPLE)))

    def polygon(
        self, points: Sequence[Point], fill: tuple[int, int, int] | None, outline: tuple[int, int, int] | None = None
    ) -> None:
        """A closed polygon."""
        self._draw.polygon([self.pixel(*p) for p in points], fill=fill, outline=outline, width=OVERSAMPLE)

    def squares(self, corners: Iterable[Sequence[float]], edge: float, color: tuple[int, int, int]) -> None:
        """Small squares from their lower left corners."""
        for x, y in corners:
            (left, bottom), (right, top) = self.pixel(x, y), self.pixel(x + edge, y + edge)
            self._draw.rectangle((left, top, max(right, left + 1), max(bottom, top + 1)), fill=color)

    def text(self, x: float, y: float, text: str, color: tuple[int, int, int]) -> None:
        """Text to the right of a point of the world."""
        px, py = self.pixel(x, y)
        self._draw.text((px + 6 * OVERSAMPLE, py - 6 * OVERSAMPLE), shown(text), fill=color, font_size=11 * OVERSAMPLE)

    def finish(self) -> Image.Image:
        """The picture."""
        return self._image.resize(self.size, Image.Resampling.LANCZOS)


def draw_grid(canvas: Canvas) -> None:
    """Lines every metre, or every ten in large worlds."""
    x0, y0, x1, y1 = canvas.bounds
    step = 1.0 if x1 - x0 <= 80 else 10.0
    for i in range(math.ceil(x0 / step), math.floor(x1 / step) + 1):
        canvas.line([(i * step, y0), (i * step, y1)], GRID)
    for j in range(math.ceil(y0 / step), math.floor(y1 / step) + 1):
        canvas.line([(x0, j * step), (x1, j * step)], GRID)


def draw_scene(canvas: Canvas, scene: Scene, boxes: Iterable[tuple[Sequence[Point], str]] | None = None) -> None:
    """Walls, points, boxes and places of a scene.

    Parameters
    ----------
    boxes : iterable of (corners in the world, colour), optional
        Where the movable boxes are now; without it, where the scene says.
    """
    for area in scene.areas:
        if len(area.corners) > 2:
            canvas.polygon(area.corners, None, AREA)
        else:
            canvas.line(area.corners, AREA)
    canvas.squares(scene.points.tolist(), scene.resolution, WALL)
    for x1, y1, x2, y2 in scene.segments.tolist():
        canvas.line([(x1, y1), (x2, y2)], WALL, 1.5)
    if boxes is None:
        boxes = [
            ([transform_point(b.pose, x, y) for x, y in part], b.color) for b in scene.boxes for part in b.outlines
        ]
    for corners, color in boxes:
        canvas.polygon(corners, rgb(color), WALL)
    for place in scene.places:
        x, y, th = place.pose
        canvas.polygon([(x + 0.12, y), (x, y + 0.12), (x - 0.12, y), (x, y - 0.12)], PLACE)
        if place.has_heading:
            canvas.line([(x, y), (x + 0.4 * math.cos(th), y + 0.4 * math.sin(th))], PLACE, 1.5)
        canvas.text(x, y, place.name or place.kind, PLACE)


def draw_robot(
    canvas: Canvas,
    spec: RobotSpec,
    pose: Pose,
    name: str = "",
    *,
    parts: Iterable[Outline] = (),
    ghost: bool = False,
) -> None:
    """A robot's body with a mark in the direction of its heading; a box has none.

    Parameters
    ----------
    name : str
        Written beside a robot.
    parts : iterable of outlines
        What else belongs to its outline, in its frame: paddles of a gripper, sensor cases.
    ghost : bool
        Nobody sees or feels it: only its contour is drawn.
    """
    for part in (*parts, *spec.parts, spec.outline):
        corners = [transform_point(pose, x, y) for x, y in part]
        canvas.polygon(corners, None if ghost else rgb(spec.color), (30, 30, 30))
    if not spec.drive:
        return
    nose = max(x for x, _ in spec.outline)
    canvas.line([(pose.x, pose.y), transform_point(pose, nose, 0.0)], (20, 20, 20), 1.5)
    if name:
        canvas.text(pose.x, pose.y, name, (20, 20, 20))


def render_scene(scene: Scene, *, width: int = 1000) -> Image.Image:
    """A picture of a scene without robots."""
    canvas = Canvas(scene.bounds or (-10.0, -10.0, 10.0, 10.0), width)
    draw_grid(canvas)
    draw_scene(canvas, scene)
    return canvas.finish()


def render_robot(spec: RobotSpec, *, width: int = 400) -> Image.Image:
    """A picture of one robot model with its sensors."""
    reach = max(spec.radius * 1.6, 0.5)
    canvas = Canvas((-reach, -reach, reach, reach), width, margin=0.0)
    ring = spec.sonar
    for t in ring.transducers if ring else ():
        half = ring.fov / 2 if ring else 0.0
        tip = Pose(t.pose.x, t.pose.y, t.pose.th)
        cone = [transform_point(Pose(tip.x, tip.y, tip.th + a), reach / 3, 0.0) for a in (-half, 0.0, half)]
        canvas.polygon([(tip.x, tip.y), *cone], (240, 240, 240), SONAR)
    draw_robot(canvas, spec, Pose())
    for laser in spec.lasers:
        hx, hy = laser.size[0] / 2, laser.size[1] / 2
        case = [transform_point(laser.pose, x, y) for x, y in ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))]
        canvas.polygon(case, (90, 140, 200), (20, 40, 80))
    return canvas.finish()


def render_simulation(sim: Simulation, *, width: int = 1000) -> Image.Image:
    """A picture of a simulation as it is now: map, boxes, robots, and the readings of sensors that somebody reads."""
    snapshot = sim.snapshot
    x, y = sim.poses[:, 0], sim.poses[:, 1]
    bounds = sim.scene.bounds
    if bounds is None:
        half = 10.0
        cx, cy = (float(x.mean()), float(y.mean())) if len(x) else (0.0, 0.0)
        spread = max(half, float(abs(x - cx).max(initial=0)) + 2, float(abs(y - cy).max(initial=0)) + 2)
        bounds = (cx - spread, cy - spread, cx + spread, cy + spread)
    elif len(x):
        low, high = (float(x.min()) - 0.5, float(y.min()) - 0.5), (float(x.max()) + 0.5, float(y.max()) + 0.5)
        bounds = (min(bounds[0], low[0]), min(bounds[1], low[1]), max(bounds[2], high[0]), max(bounds[3], high[1]))
    canvas = Canvas(bounds, width)
    draw_grid(canvas)
    for robot in sim.robots.values():
        for laser in robot.lasers:
            if laser.is_read:
                scan = laser.read()
                origin = _mounted(robot.truth, scan.frame_pose)
                ends = [
                    transform_point(origin, r * math.cos(a), r * math.sin(a))
                    for r, a in zip(scan.ranges.tolist(), scan.angles.tolist(), strict=True)
                ]
                canvas.polygon([(origin.x, origin.y), *ends], BEAM)
        if robot.sonar is not None and robot.sonar.is_read:
            for t, r in zip(robot.sonar.spec.transducers, robot.sonar.read().ranges.tolist(), strict=True):
                origin = _mounted(robot.truth, t.pose)
                canvas.line([(origin.x, origin.y), transform_point(origin, r, 0.0)], SONAR)
    boxes = []
    for name, box in zip(sim.box_names, sim.scene.boxes, strict=True):
        pose = Pose(*snapshot.state.pose[snapshot.rows[name]].tolist())
        boxes += [([transform_point(pose, px, py) for px, py in part], box.color) for part in box.outlines]
    draw_scene(canvas, sim.scene, boxes)
    for robot in sim.robots.values():
        gripper = robot.gripper
        draw_robot(
            canvas,
            robot.spec,
            robot.truth,
            robot.name,
            parts=gripper.paddles if gripper else (),
            ghost=robot.is_ghost,
        )
    return canvas.finish()


def _mounted(body: Pose, mount: Pose) -> Pose:
    x, y = transform_point(body, mount.x, mount.y)
    return Pose(x, y, body.th + mount.th)
