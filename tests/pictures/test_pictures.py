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
from botyard.pictures.canvas import (
    MAX_ASPECT,
    MAX_PIXELS,
    MAX_WIDTH,
    Mask,
    View,
    fit,
)
from botyard.pictures.clipping import Box, clip_line, clip_polygon
from botyard.pictures.kernels.coverage import cover_polygons
from botyard.pictures.map import draw_map
from botyard.pictures.options import PictureOptions
from botyard.pictures.painter import Painter
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
    """A canvas that counts the drawn lines."""

    def __init__(self, image: Image.Image) -> None:
        super().__init__(image)
        self.calls = 0

    def line(self, xy, *args, **more):  # type: ignore[no-untyped-def]
        self.calls += 1
        super().line(xy, *args, **more)


@pytest.mark.parametrize("reach", [6e3, 1e9, 1e12])
def test_what_is_far_away_is_not_drawn(
    reach: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines, polygons and points far beyond the picture look as their visible part, and dashes
    are made for that part alone.
    """
    view = fit(BOX, 200)
    edges = list[int]()

    def counted(found: np.ndarray, *rest: object) -> None:
        edges.append(len(found))
        cover_polygons(found, *rest)

    monkeypatch.setattr(canvas, "cover_polygons", counted)
    mask = Mask(view, (0, 0, 0, 255))
    far = [(-reach, -reach), (reach, -reach), (reach, reach), (-reach, reach)]
    mask.line(far, closed=True)
    mask.polygon(far, 100)
    mask.line([(5.0, -reach), (5.0, reach)], 3.0, 200)
    mask.polygon([(reach, reach), (reach + 1, reach), (reach, reach + 1)])
    mask.squares(np.array([(reach, reach), (1.0, 1.0), (-reach, 2.0)]), 0.5)
    mask.squares(np.array([(-reach, 4.0)]), 2 * reach)
    mask.dashes([(-reach, 0.5), (reach, 0.5)], 1.0, 6.0, 4.0)
    assert sum(edges) <= 4 * (4 + (view.width + 2 * 256) / 10 + 2)
    (layer,) = mask.finish()

    def value(x: float, y: float) -> float:
        px, py = view.pixel(x, y)
        return layer.mask.getpixel((round(px) - layer.at[0], round(py) - layer.at[1]))  # type: ignore[return-value]

    assert value(9.0, 1.0) == 100, "within the large polygon"
    assert value(5.0, 3.0) == round(100 + 200 * (1 - 100 / 255)), "the line over it"
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


PICTURE = View(0.0, 40.0, 1.0, 60, 40)
"""A pixel a metre; y points up in the world, and down in the picture."""


def area(mask: Mask) -> float:
    return float(mask.coverage.sum())


@pytest.mark.parametrize("turn", [1, -1])
def test_shapes_cover_their_area(turn: int) -> None:
    corners = np.array([(10.2, 8.1), (30.7, 12.4), (24.3, 31.9), (12.8, 25.0)])[::turn]
    x, y = corners.T
    size = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    mask = Mask(PICTURE, (0, 0, 0, 255))
    mask.fill(corners)
    assert area(mask) == pytest.approx(size, rel=0.005)
    assert mask.coverage[20, 20] == 1.0

    for closed, want in ((False, 3 * 20 * 4.0), (True, 24**2 - 16**2)):
        mask = Mask(PICTURE, (0, 0, 0, 255))
        square = [(10, 10), (30, 10), (30, 30), (10, 30)][::turn]
        mask.stroke(square, 4.0, closed=closed)
        assert area(mask) == pytest.approx(want), "corners are sharp"

    mask = Mask(PICTURE, (0, 0, 0, 255))
    mask.stroke([(20, 20), (40, 20)], 6.0, ends="round")
    assert area(mask) == pytest.approx(120 + math.pi * 9, rel=0.01)
    mask = Mask(PICTURE, (0, 0, 0, 255))
    mask.circle(30.0, 20.0, 9.0, 2.0)
    assert area(mask) == pytest.approx(math.pi * (100 - 64), rel=0.02)


def test_shapes_of_one_call_are_one_and_of_two_lie_over_each_other() -> None:
    lines = [(10.0, 20.0), (30.0, 20.0), (20.0, 20.0), (40.0, 20.0)]
    mask = Mask(PICTURE, (0, 0, 0, 102))
    mask.stroke(lines, 2.0, starts=(0, 2))
    assert np.unique(mask.coverage) == pytest.approx([0.0, 0.4])
    assert area(mask) == pytest.approx(0.4 * 60)
    mask.stroke(lines[:2], 2.0)
    assert np.unique(mask.coverage.round(3)) == pytest.approx([0.0, 0.4, 0.64])


def test_shapes_beyond_each_edge_are_cut_there() -> None:
    for x0, y0, x1, y1 in (
        (-9, 5, 7, 9),
        (50, 5, 99, 9),
        (5, -9, 9, 7),
        (5, 33, 9, 99),
    ):
        wide, high = min(x1, 60) - max(x0, 0), min(y1, 40) - max(y0, 0)
        box, polygon = (Mask(PICTURE, (0, 0, 0, 255)) for _ in range(2))
        box.rectangle((x0, y0, x1, y1))
        polygon.fill([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
        assert area(box) == area(polygon) == pytest.approx(wide * high)


def test_dashes_continue_around_corners() -> None:
    mask = Mask(PICTURE, (0, 0, 0, 255))
    mask.dashes([(5.0, 35.0), (20.0, 35.0), (20.0, 5.0)], 2.0, 6.0, 4.0)
    # 45 m are four periods and half of a dash.
    assert area(mask) == pytest.approx(2.0 * (4 * 6 + 5), abs=1.1)
    assert mask.coverage[5, 20] == 1.0, "the dash that starts before the corner"
    assert mask.coverage[7, 20] == 0.0, "and ends behind it"


def names(
    points: list[tuple[float, float, str]],
) -> list[tuple[str, Box]]:
    """Return the names of places in a picture of 400 × 300 pixels, and their boxes."""
    places = tuple(Place(kind="Goal", name=n, pose=Pose(x, y)) for x, y, n in points)
    painter = Painter(PictureOptions(area=(0.0, 0.0, 20.0, 15.0), size=(400, 300)))
    painter.draw(still.boxes_of(Scene(places=places)))
    return painter.labels


def test_names_have_room() -> None:
    """A name near the edge is moved inside, and one that another covers is moved or left out."""
    (found,) = names([(19.8, 14.9, "Corridor East")])
    assert found[0] == "Corridor East" and found[1][2] <= 397 and found[1][1] >= 3
    crowd = names([(10.0, 7.0, "first"), (10.3, 7.1, "second"), (10.1, 7.0, "third")])
    assert crowd[0][0] == "first"
    for k, (_, a) in enumerate(crowd):
        for _, b in crowd[:k]:
            assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
    assert len(names([(10.0, 7.0, f"n{k}") for k in range(9)])) == 4, "no room for all"


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
