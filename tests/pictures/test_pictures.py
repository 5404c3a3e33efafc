"""Pictures have the requested size for any world, and distant objects cost no more than
near ones.
"""

from __future__ import annotations

import io
import math
import random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from botyard.codec.messages import Channel, write_message
from botyard.errors import ArgumentError, WorldError
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject
from botyard.model.scene import Area, Place, Scene
from botyard.pictures import canvas, draw, still
from botyard.pictures import map as map_module
from botyard.pictures.canvas import MAX_ASPECT, MAX_PIXELS, MAX_WIDTH, Mask, fit
from botyard.pictures.clipping import clip_line, clip_polygon
from botyard.pictures.map import draw_map
from botyard.pictures.palette import theme
from botyard.sim.simulation import Simulation

BOX = (0.0, 0.0, 10.0, 6.0)


@pytest.mark.parametrize("wide", [1e-3, 1.0, 6e3, 1e9, 1e300])
@pytest.mark.parametrize("high", [1e-3, 1.0, 6e3, 1e9, 1e300])
def test_the_size_does_not_follow_the_world(wide: float, high: float) -> None:
    view = fit((-wide, 3.0, wide, 3.0 + high), 200)
    assert 1 <= view.width <= 200
    assert 1 <= view.height <= MAX_ASPECT * 200
    if wide / high < 1e6 and high / wide < 1e6:
        assert max(view.width / 200, view.height / (MAX_ASPECT * 200)) == 1.0, (
            "as large as it may be"
        )

    drawn = draw_map(Scene(), view, theme("light"))
    assert drawn.ground.shape == (view.height, view.width)


@pytest.mark.parametrize("width", [0, -1, MAX_WIDTH + 1])
def test_widths_that_are_refused(width: int) -> None:
    with pytest.raises(
        WorldError, match=f"from 1 to {MAX_WIDTH} pixels, found {width}"
    ):
        fit(BOX, width)

    with pytest.raises(WorldError, match="size: expected sides from 1 to"):
        fit(BOX, (width, 10))
    with pytest.raises(ArgumentError):
        Simulation().render(size=width)


@pytest.mark.parametrize("wide", [1e-9, 0.1, 1.0, 10.0, 1e9])
def test_pictures_have_so_many_pixels_at_the_most(
    wide: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canvas, "MAX_PIXELS", 4000)
    view = fit((0.0, 0.0, wide, 1.0), 300, margin=0.0)
    assert view.width * view.height <= 4400
    assert wide not in (1.0, 10.0) or view.width * view.height >= 3600
    with pytest.raises(WorldError, match="at most 4000"):
        fit((0.0, 0.0, wide, 1.0), (64, 63))
    assert MAX_PIXELS == 1e8


def test_a_given_size_shows_more_of_the_world_beside_the_area() -> None:
    view = fit((2.0, 1.0, 4.0, 3.0), (400, 100), margin=0.0)
    assert (view.width, view.height, view.scale) == (400, 100, 50.0)
    assert view.bounds == pytest.approx((-1.0, 1.0, 7.0, 3.0)), (
        "the area is in the middle"
    )
    assert view.pixel(2.0, 3.0) == pytest.approx((150.0, 0.0))


@pytest.mark.parametrize(
    "bounds",
    [(0.0, 0.0, math.inf, 1.0), (math.nan, 0.0, 1.0, 1.0), (-1e308, 0.0, 1e308, 1.0)],
)
def test_worlds_that_have_no_picture(bounds: tuple[float, float, float, float]) -> None:
    with pytest.raises(WorldError, match="a finite part of the world"):
        fit(bounds, 100)


class Counted(ImageDraw.ImageDraw):
    """A canvas that counts the drawn elements and their extent."""

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
    """Lines, polygons, points and names far beyond the picture cost as much as their
    visible part.
    """
    view = fit(BOX, 200)
    mask = Mask(view, (0, 0, 0, 255))
    mask._draw = counted = Counted(mask.image)  # type: ignore[assignment]
    far = ((-reach, -reach), (reach, -reach), (reach, reach), (-reach, reach))
    mask.line(far)
    mask.polygon(far, 100)
    mask.line([(5.0, -reach), (5.0, reach)], 3.0, 200)
    mask.polygon([(reach, reach), (reach + 1, reach), (reach, reach + 1)])
    mask.squares(np.array([(reach, reach), (1.0, 1.0), (-reach, 2.0)]), 0.5)
    mask.squares(np.array([(-reach, 4.0)]), 2 * reach)
    mask.dashes([(-reach, 0.5), (reach, 0.5)], 1.0, 6.0, 4.0)
    assert counted.far <= 2 * max(view.width, view.height) + 300
    assert counted.calls <= 6 + 2 * (view.width + 300) / 10
    (layer,) = mask.finish()

    def value(x: float, y: float) -> float:
        px, py = view.pixel(x, y)
        return layer.mask.getpixel((round(px) - layer.at[0], round(py) - layer.at[1]))  # type: ignore[return-value]

    assert value(9.0, 1.0) == 100, "within the large polygon"
    assert value(5.0, 3.0) == 200, "the line"
    assert value(1.25, 1.25) == 255
    assert value(9.0, 5.0) == 255, "a square that is larger than the picture"


def test_the_grid_has_not_more_lines_in_large_worlds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list[Counted]()
    monkeypatch.setattr(
        map_module.ImageDraw,
        "Draw",
        lambda image: made.append(Counted(image)) or made[-1],
    )
    for bounds in (
        (0.0, 0.0, 79.0, 20.0),
        (0.0, 0.0, 1e9, 1e3),
        (0.0, 0.0, 1.0, 1e9),
        (-1e7, -1e7, 1e7, 1e7),
    ):
        view = fit(bounds, 300)
        map_module._draw_grid(
            Image.new("RGB", (view.width, view.height)), view, theme("light")
        )
        assert (
            1
            <= made[-1].calls
            <= (view.width + view.height) / map_module.LEAST_GRID_PX + 2
        )


def test_clip_lines_and_polygons_are_what_is_in_the_box() -> None:
    rng = random.Random(1)
    box = (0.0, 0.0, 4.0, 3.0)
    for _ in range(300):
        a, b = ((rng.uniform(-5, 9), rng.uniform(-5, 9)) for _ in range(2))
        inside = [
            (x, y)
            for x, y in (
                (a[0] + k / 500 * (b[0] - a[0]), a[1] + k / 500 * (b[1] - a[1]))
                for k in range(501)
            )
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
    assert {(round(x, 9), round(y, 9)) for x, y in corners} == {
        (0.0, 1.0),
        (4.0, 1.0),
        (4.0, 2.0),
        (0.0, 2.0),
    }
    assert clip_polygon([(5.0, 5.0), (6.0, 5.0), (6.0, 6.0)], box) == []
    assert clip_polygon([], box) == []


def crowded() -> Simulation:
    """A scene with each kind of drawn object, near and far."""
    far = Place(kind="Goal", name="a\x1b[31m", pose=Pose(1e12, 0.0))
    line = Area(kind="F", name="", corners=((0.0, 0.0), (1e12, 1e12)))
    scene = Scene(
        segments=np.array([[0.0, 0.0, 8.0, 0.0], [8.0, 0.0, 8.0, 5.0]]),
        points=np.array([[1.0, 1.0], [1.5, 1.0]]),
        boxes=(BoxObject(name="b", pose=Pose(3.0, 3.0, 0.5), length=1.0, width=0.5),),
        places=(far, Place(kind="Dock", name="", pose=Pose(2.0, 2.0))),
        areas=(
            line,
            Area(kind="F", name="", corners=((0.0, 0.0), (2.0, 0.0), (0.0, 2.0))),
        ),
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
    write_message(file, "draw", moment, still.Still)
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
        image = sim.render(size=100)
        assert image.width <= 100
        assert image.height <= 400


def test_only_so_many_rings_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still, "MAX_RINGS", 3)
    moment = still.take(crowded())
    assert len(moment.scans) == 2
    assert {b.figure for b in moment.sonar} == {0}, (
        "the second robot's sonar ring is the fourth"
    )


def test_further_goals_are_marked_as_those_of_the_map() -> None:
    plain, marked = (
        Scene(),
        Scene(places=(Place(kind="Goal", name="", pose=Pose(1.0, 2.0, 0.5)),)),
    )
    area = (-5.0, -5.0, 5.0, 5.0)
    want = np.asarray(Simulation(marked).render(area=area, size=200))
    sim = Simulation(plain)
    for goals in ([(1.0, 2.0, 0.5)], np.array([[1.0, 2.0, 0.5]], np.float32)):
        np.testing.assert_array_equal(
            sim.render(area=area, size=200, goals=goals), want
        )

    two = np.asarray(sim.render(area=area, size=200, goals=[(1, 2), (-3, 1)]))
    assert (two != want).any() and (
        two != np.asarray(sim.render(area=area, size=200))
    ).any()
    assert sim.scene == plain, "the simulation is as it was"
    for wrong in (
        "ab",
        3.0,
        [(1,)],
        [(1, 2, 3, 4)],
        [(1, math.nan)],
        [(1, 2), (1, 2, 3)],
        None,
    ):
        with pytest.raises(ArgumentError, match="goals: expected"):
            sim.render(goals=wrong)  # type: ignore[arg-type]
