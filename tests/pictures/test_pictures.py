"""Pictures are as large as they are said to be, whatever the world is; what is far away costs no more than what is near."""

from __future__ import annotations

import io
import math
import random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from botyard.child import Channel, write_message
from botyard.errors import ArgumentError, WorldError
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Area, Place, Scene
from botyard.pictures import canvas, draw, still
from botyard.pictures.canvas import MAX_ASPECT, MAX_PIXELS, MAX_WIDTH, Canvas, clip_line, clip_polygon
from botyard.sim.simulation import Simulation

BOX = (0.0, 0.0, 10.0, 6.0)


@pytest.mark.parametrize("wide", [1e-3, 1.0, 6e3, 1e9, 1e300])
@pytest.mark.parametrize("high", [1e-3, 1.0, 6e3, 1e9, 1e300])
def test_the_size_does_not_follow_the_world(wide: float, high: float) -> None:
    picture = Canvas((-wide, 3.0, wide, 3.0 + high), 200)
    assert 1 <= picture.size[0] <= 200
    assert 1 <= picture.size[1] <= MAX_ASPECT * 200
    if wide / high < 1e6 and high / wide < 1e6:
        assert max(picture.size[0] / 200, picture.size[1] / (MAX_ASPECT * 200)) == 1.0, "as large as it may be"
    draw.draw_grid(picture)
    assert picture.finish().size == picture.size


@pytest.mark.parametrize("width", [0, -1, MAX_WIDTH + 1])
def test_widths_that_are_refused(width: int) -> None:
    with pytest.raises(WorldError, match=f"1 … {MAX_WIDTH} pixels wide, found {width}"):
        Canvas(BOX, width)
    with pytest.raises(ArgumentError):
        Simulation().render(width=width)


@pytest.mark.parametrize("wide", [1e-9, 0.1, 1.0, 10.0, 1e9])
def test_pictures_have_so_many_pixels_at_the_most(wide: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "MAX_PIXELS", 4000)
    size = Canvas((0.0, 0.0, wide, 1.0), 300, margin=0.0).size
    assert size[0] * size[1] <= 4400
    assert wide not in (1.0, 10.0) or size[0] * size[1] >= 3600
    assert MAX_PIXELS == 1e8


@pytest.mark.parametrize("bounds", [(0.0, 0.0, math.inf, 1.0), (math.nan, 0.0, 1.0, 1.0), (-1e308, 0.0, 1e308, 1.0)])
def test_worlds_that_have_no_picture(bounds: tuple[float, float, float, float]) -> None:
    with pytest.raises(WorldError, match="a finite part of the world"):
        Canvas(bounds, 100)


class Counted(ImageDraw.ImageDraw):
    """Counts what is drawn, and how far it reaches."""

    def __init__(self, image: Image.Image) -> None:
        super().__init__(image)
        self.calls = 0
        self.far = 0.0

    def line(self, xy, *args, **more):  # type: ignore[no-untyped-def]
        self._note(xy)
        super().line(xy, *args, **more)

    def polygon(self, xy, *args, **more):  # type: ignore[no-untyped-def]
        self._note(xy)
        super().polygon(xy, *args, **more)

    def rectangle(self, xy, *args, **more):  # type: ignore[no-untyped-def]
        self._note(np.array(xy).reshape(-1, 2))
        super().rectangle(xy, *args, **more)

    def text(self, xy, *args, **more):  # type: ignore[no-untyped-def]
        self._note([xy])
        super().text(xy, *args, **more)

    def _note(self, xy) -> None:  # type: ignore[no-untyped-def]
        self.calls += 1
        self.far = max(self.far, float(np.abs(np.array(xy, float)).max()))


@pytest.mark.parametrize("reach", [6e3, 1e9, 1e12])
def test_what_is_far_away_is_not_drawn(reach: float) -> None:
    """Lines, polygons, points and names of a scene reach far beyond the picture; each costs what is seen of it."""
    picture = Canvas(BOX, 200)
    picture._draw = counted = Counted(picture._image)
    far = ((-reach, -reach), (reach, -reach), (reach, reach), (-reach, reach))
    picture.line(far, (0, 0, 0))
    picture.line([(5.0, -reach), (5.0, reach)], (255, 0, 0), 3.0)
    picture.polygon(far, (200, 250, 200), (0, 0, 0))
    picture.polygon([(reach, reach), (reach + 1, reach), (reach, reach + 1)], (0, 0, 0))
    picture.squares([(reach, reach), (1.0, 1.0), (-reach, 2.0)], 0.5, (0, 0, 255))
    picture.squares([(-reach, 4.0)], 2 * reach, (0, 255, 255))
    picture.text(reach, 0.0, "far", (0, 0, 0))
    assert counted.far <= 2 * max(picture.size) + 300
    assert counted.calls <= 6
    image = picture.finish()
    scale = picture.scale / 2

    def pixel(x: float, y: float) -> tuple[int, ...]:
        return image.getpixel((round((x - picture.x0) * scale), round((picture.y1 - y) * scale)))

    assert pixel(9.0, 1.0) == (200, 250, 200), "within the large polygon"
    assert pixel(1.25, 1.25) == (0, 0, 255)
    assert pixel(9.0, 5.0) == (0, 255, 255), "a square that is larger than the picture"


def test_the_grid_has_not_more_lines_in_large_worlds() -> None:
    for bounds in ((0.0, 0.0, 79.0, 20.0), (0.0, 0.0, 1e9, 1e3), (0.0, 0.0, 1.0, 1e9), (-1e7, -1e7, 1e7, 1e7)):
        picture = Canvas(bounds, 300)
        picture._draw = counted = Counted(picture._image)
        draw.draw_grid(picture)
        assert 1 <= counted.calls <= 5 * draw.MAX_GRID_LINES + 2


def test_clip_lines_and_polygons_are_what_is_in_the_box() -> None:
    rng = random.Random(1)
    box = (0.0, 0.0, 4.0, 3.0)
    for _ in range(300):
        a, b = ((rng.uniform(-5, 9), rng.uniform(-5, 9)) for _ in range(2))
        inside = [
            (x, y)
            for x, y in ((a[0] + k / 500 * (b[0] - a[0]), a[1] + k / 500 * (b[1] - a[1])) for k in range(501))
            if box[0] <= x <= box[2] and box[1] <= y <= box[3]
        ]
        part = clip_line(a, b, box)
        if part is None:
            assert not inside
            continue
        assert all(-1e-9 <= x <= 4 + 1e-9 and -1e-9 <= y <= 3 + 1e-9 for x, y in part)
        if inside:
            step = math.dist(a, b) / 500
            assert math.dist(part[0], inside[0]) <= step + 1e-9
            assert math.dist(part[1], inside[-1]) <= step + 1e-9
    assert clip_polygon([(-9.0, -9.0), (9.0, -9.0), (9.0, 9.0), (-9.0, 9.0)], box) != []
    corners = clip_polygon([(-9.0, 1.0), (9.0, 1.0), (9.0, 2.0), (-9.0, 2.0)], box)
    assert {(round(x, 9), round(y, 9)) for x, y in corners} == {(0.0, 1.0), (4.0, 1.0), (4.0, 2.0), (0.0, 2.0)}
    assert clip_polygon([(5.0, 5.0), (6.0, 5.0), (6.0, 6.0)], box) == []
    assert clip_polygon([], box) == []


def crowded() -> Simulation:
    """A bit of everything that a picture shows, near and far."""
    far = Place(kind="Goal", name="a\x1b[31m", pose=Pose(1e12, 0.0))
    line = Area(kind="F", name="", corners=((0.0, 0.0), (1e12, 1e12)))
    scene = Scene(
        segments=np.array([[0.0, 0.0, 8.0, 0.0], [8.0, 0.0, 8.0, 5.0]]),
        points=np.array([[1.0, 1.0], [1.5, 1.0]]),
        boxes=(BoxObject(name="b", pose=Pose(3.0, 3.0, 0.5), length=1.0, width=0.5),),
        places=(far, Place(kind="Dock", name="", pose=Pose(2.0, 2.0))),
        areas=(line, Area(kind="F", name="", corners=((0.0, 0.0), (2.0, 0.0), (0.0, 2.0)))),
    )
    sim = Simulation(scene, seed=1)
    sim.add_robot("peoplebot", "ann", pose=(4.0, 2.0, 0.3))
    sim.add_robot("p3dx", "bob", pose=(6.0, 2.0, 1.3))
    sim.robots["bob"].ghost()
    for robot in sim.robots.values():
        robot.laser.subscribe("test")
        robot.sonar.subscribe("test")  # type: ignore[union-attr]
    sim.step(2)
    return sim


def test_a_moment_is_drawn_elsewhere_as_it_is_here() -> None:
    sim = crowded()
    moment = still.take(sim)
    here = draw.png(moment)
    file = io.BytesIO()
    write_message(file, "draw", moment)
    file.seek(0)
    sim.step(20)
    received = Channel(file, {"draw": still.Still}).read()
    assert received is not None
    assert draw.png(received[1]) == here
    assert draw.png(still.take(sim)) != here, "time has gone on"
    assert draw.png(moment) == here, "and has changed nothing of what was taken"


@pytest.mark.parametrize("away", [6_000.0, 1e7])
def test_a_robot_that_is_far_away(away: float) -> None:
    for scene in (None, Scene(segments=np.array([[0.0, 0.0, 8.0, 0.0]]))):
        sim = Simulation(scene)
        sim.add_robot("p3dx", pose=(0.0, away, 0.0))
        sim.add_robot("p3dx", pose=(1.0, 0.0, 0.0))
        image = sim.render(width=100)
        assert image.width <= 100
        assert image.height <= 400


def test_only_so_many_rings_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still, "MAX_RINGS", 3)
    moment = still.take(crowded())
    assert len(moment.scans) == 2
    assert {b.figure for b in moment.sonar} == {0}, "the second robot's sonar ring is the fourth"
