"""Pictures show objects at their places in their colours.

Pictures of a sequence equal pictures drawn alone.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import botyard
from botyard.formats import armap
from botyard.formats.armapscene import to_scene
from botyard.geometry import Pose, transform_point
from botyard.model.colors import rgb
from botyard.model.scene import Scene
from botyard.pictures import bodyshapes, draw, painter
from botyard.pictures.options import picture_options
from botyard.pictures.painter import Painter
from botyard.pictures.palette import THEMES, robot_colors, theme
from botyard.pictures.still import Still, take
from botyard.pictures.trails import JUMP

RED = (255, 0, 0)
SIZE = (400, 300)
AREA = (-4.0, -3.0, 4.0, 3.0)
SCALE = 50.0
ROOT = Path(__file__).parents[2]


def walled() -> botyard.Simulation:
    scene = Scene(segments=np.array([[3.0, -2.0, 3.0, 2.0], [-3.0, 2.0, 3.0, 2.0]]))
    return botyard.Simulation(scene, seed=1, odometry_error="none", sensor_noise=False)


def at(x: float, y: float) -> tuple[int, int]:
    """Return the pixel of a place in a picture of `AREA`."""
    return round((x - AREA[0]) * SCALE), round((AREA[3] - y) * SCALE)


def near(
    image: Image.Image,
    pixel: tuple[int, int],
    color: tuple[int, ...],
    away: float = 60.0,
) -> bool:
    """Return whether a colour occurs within a pixel of a place."""
    x, y = pixel
    part = np.asarray(image.crop((x - 1, y - 1, x + 2, y + 2)), np.float64)
    return bool((np.abs(part - color[:3]).max(axis=2) < away).any())


def inside(corners: list[tuple[float, float]], x: float, y: float) -> bool:
    """Return whether a place is in a polygon:

    a ray to the right crosses an odd number of its edges.
    """
    pairs = zip(corners, corners[1:] + corners[:1], strict=True)
    return (
        sum(
            (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax)
            for (ax, ay), (bx, by) in pairs
        )
        % 2
        == 1
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_robot_is_where_it_is(seed: int) -> None:
    """A pixel away from edge and mark has the robot's colour inside the outline,
    otherwise the colour of the ground.
    """
    rng = np.random.default_rng(seed)
    pose = Pose(*rng.uniform((-3.0, -2.0, -4.0), (3.0, 2.0, 4.0)).tolist())
    sim = botyard.Simulation()
    robot = sim.add_robot("p3dx", pose=pose)
    image = np.asarray(sim.render(area=AREA, size=SIZE))
    corners = [transform_point(pose, x, y) for x, y in robot.spec.outline]
    nose = transform_point(pose, max(x for x, _ in robot.spec.outline) * 0.6, 0.0)
    counts = [0, 0]
    for row in range(0, 300, 2):
        for column in range(0, 400, 2):
            x, y = AREA[0] + (column + 0.5) / SCALE, AREA[3] - (row + 0.5) / SCALE
            distance = math.dist((x, y), pose[:2])
            if distance > robot.spec.radius + 0.1:
                continue
            turned = [
                (x + dx, y + dy) for dx in (-0.05, 0, 0.05) for dy in (-0.05, 0, 0.05)
            ]
            within = {inside(corners, *p) for p in turned}
            if len(within) == 2 or math.dist((x, y), nose) < 0.14:
                continue
            is_in = within.pop()
            counts[is_in] += 1
            if is_in:
                assert tuple(image[row, column]) == RED, (row, column)
            # Names stand at the upper right, so look at the lower left.
            elif distance < 0.3 and y < pose.y and x < pose.x:
                assert image[row, column].min() > 200, (row, column)

    assert counts[1] > 20
    assert near(Image.fromarray(image), at(*nose), theme("light").outline), (
        "the mark at its front"
    )


@pytest.mark.parametrize("name", THEMES)
def test_walls_and_ground_have_the_colors_of_the_theme(name: str) -> None:
    image = walled().render(area=AREA, size=SIZE, theme=name)
    colors = theme(name)
    for x, y in ((3.0, -1.5), (3.0, 0.25), (-2.5, 2.0), (1.25, 2.0)):
        assert near(image, at(x, y), colors.wall, 30.0), (x, y)
    assert image.getpixel(at(0.5, -2.5)) == colors.ground[:3]
    assert image.getpixel(at(0.0, -2.5)) == colors.grid_major[:3]
    assert image.getpixel(at(1.0, -2.5)) == colors.grid[:3]


def test_scans_reach_what_they_have_found_and_no_farther() -> None:
    sim = walled()
    robot = sim.add_robot("p3dx", "r", pose=(0.0, 0.0, 0.0), lasers=["lms200"])
    digest = sim.digest()
    image, without = (
        sim.render(area=AREA, size=SIZE, scans=scans) for scans in (["r"], False)
    )
    assert sim.digest() == digest, "looking changes nothing"
    assert sim.render(area=AREA, size=SIZE) == without, "nobody reads them"
    robot.laser.subscribe("test")
    sim.step()
    assert sim.render(area=AREA, size=SIZE) != without
    ground, fill = (
        np.array(theme("light").ground[:3]),
        np.array(theme("light").laser_fill[:3]),
    )
    blend = ground + (fill - ground) * theme("light").laser_fill[3] / 255
    for place in ((1.5, 0.5), (2.5, -1.6), (0.7, 1.6)):
        assert near(image, at(*place), tuple(blend), 6.0), place
    for place in ((3.5, 0.5), (0.5, 2.5), (-1.5, 0.5)):
        assert image.getpixel(at(*place)) == without.getpixel(at(*place)), (
            "behind walls, and behind the robot"
        )

    same = np.asarray(image) == np.asarray(without)
    (left, top), (right, bottom) = at(3.1, 1.5), at(4.0, -1.5)
    assert same[top:bottom, left:right].all(), "nothing is seen behind a wall"
    _, top = at(0.0, 2.1)
    assert same[:top, at(-2.0, 0.0)[0] : at(2.0, 0.0)[0]].all()


@pytest.mark.filterwarnings("error")
def test_beams_that_end_nowhere_are_drawn_as_of_no_length() -> None:
    sim = walled()
    sim.add_robot("p3dx", "ann", pose=(0.0, 0.0, 0.3), lasers=["lms200"])
    still = take(sim, ("ann",))
    (beams,) = still.scans
    unknown, none = beams.ranges.copy(), beams.ranges.copy()
    for first, value in ((20, math.inf), (60, math.nan), (90, -math.inf)):
        unknown[first : first + 10], none[first : first + 10] = value, 0.0
    pictures = [
        Painter(picture_options(area=AREA, size=SIZE)).draw(
            replace(still, scans=tuple(replace(beams, ranges=r) for r in scans))
        )
        for scans in ([unknown, unknown], [none, none, none[:0], none[:0]], [none])
    ]
    assert pictures[0].tobytes() == pictures[1].tobytes() != pictures[2].tobytes()


def test_of_many_scans_the_points_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = walled()
    robot = sim.add_robot("p3dx", "r", pose=(0.0, 0.0, 0.0), lasers=["lms200"])
    robot.laser.subscribe("test")
    sim.step()
    scan = robot.laser.read()
    still = take(sim)
    monkeypatch.setattr(painter, "MAX_FILLED", 0)
    # Walls are drawn over points, so remove them here.
    image = Painter(picture_options(area=AREA, size=SIZE)).draw(
        replace(still, scene=Scene())
    )
    assert image.getpixel(at(1.5, 0.5)) == theme("light").ground[:3], "no field"
    hits = 0
    for k in range(0, len(scan.ranges), 5):
        bearing, reach = scan.angle_min + k * scan.angle_increment, scan.ranges[k]
        x, y = transform_point(
            scan.frame_pose, reach * math.cos(bearing), reach * math.sin(bearing)
        )
        if reach < scan.range_max:
            hits += 1
            assert near(image, at(x, y), theme("light").laser_point, 80.0), (x, y)

    assert hits > 10
    dots = (
        np.abs(np.asarray(image, np.int16) - theme("light").laser_point[:3]).max(axis=2)
        < 80
    ).sum()
    assert hits < dots < 5 * len(scan.ranges), "nothing else is drawn"


def moments(sim: botyard.Simulation, count: int, steps: int = 2) -> list[Still]:
    found = []
    for _ in range(count):
        sim.step(steps)
        found.append(take(sim))

    return found


def test_a_followed_robot_stays_in_the_middle_and_walls_go_by() -> None:
    sim = walled()
    robot = sim.add_robot("p3dx", "bob", pose=(-2.0, 0.0, 0.3))
    other = sim.add_robot("amigo", "eve", pose=(0.0, -2.0, 0.0))
    assert other.name == "eve"
    robot.command(v=0.7, w=0.4)
    options = picture_options(follow="bob", area=(6.0, 4.5), size=SIZE)
    drawn = Painter(options)
    scale, seen = SIZE[0] / 6.0, 0
    for still in moments(sim, 30, 4):
        image = drawn.draw(still)
        assert image.size == SIZE
        x, y, _ = still.poses[0]
        for along in np.linspace(-2.0, 2.0, 9):
            for wx, wy in ((along, 2.0), (3.0, along)):
                column, row = (
                    round(200 + (wx - x) * scale),
                    round(150 - (wy - y) * scale),
                )
                if (
                    3 <= column < SIZE[0] - 3
                    and 3 <= row < SIZE[1] - 30
                    and math.dist((x, y), (wx, wy)) > 1.0
                ):
                    seen += 1
                    assert near(image, (column, row), theme("light").wall)

        assert near(image, (200, 150), RED, 10.0), "its color is in the middle"
        assert image == Painter(options).draw(still), (
            "the map that is drawn in advance is the one that is drawn now"
        )

    assert seen > 60


def test_every_part_of_a_map_can_be_drawn_also_with_places_beside_it() -> None:
    """Labels extend beyond their points:

    some are outside the picture, completely or in part.
    """
    sim = botyard.Simulation.load("office")
    robot = sim.add_robot("p3dx", "ann")
    for x, y in np.random.default_rng(2).uniform((-3.0, -3.0), (43.0, 28.0), (60, 2)):
        robot.command.set_pose(x, y)
        sim.step()
        assert sim.render(area=(x, y, x + 6.0, y + 4.0), size=(210, 140)).size == (
            210,
            140,
        )
        assert sim.render(follow="ann", area=(6.0, 4.0), size=(210, 140)).size == (
            210,
            140,
        )


def test_a_robot_that_has_gone_leaves_the_view_where_it_was() -> None:
    sim = walled()
    sim.add_robot("p3dx", "bob", pose=(-2.0, 0.0, 0.3))
    sim.add_robot("amigo", "eve", pose=(0.0, 0.0, 0.0))
    drawn = Painter(picture_options(follow="bob", size=SIZE))
    drawn.draw(take(sim))
    view = drawn._view
    sim.remove_robot("bob")
    sim.step()
    drawn.draw(take(sim))
    assert drawn._view == view


def test_trails_are_where_robots_were_and_end_where_they_jumped() -> None:
    sim = botyard.Simulation(step=0.1, odometry_error="none")
    robot = sim.add_robot("p3dx", "bob", pose=(-3.0, 1.0, 0.0))
    options = picture_options(area=AREA, size=SIZE, trails=20.0)
    drawn, bare = Painter(options), Painter(picture_options(area=AREA, size=SIZE))
    robot.command(v=0.5)
    for still in moments(sim, 40):
        drawn.see(still)
    robot.command.set_pose(0.0, -2.0, 0.0)
    for still in moments(sim, 20):
        drawn.see(still)
    image, without = drawn.draw(take(sim)), bare.draw(take(sim))
    assert robot.truth.x > 1.0
    changed = (
        np.abs(np.asarray(image, np.int16) - np.asarray(without, np.int16)).max(axis=2)
        > 8
    )
    rows, columns = np.nonzero(changed)
    assert set(rows) <= {at(0, 1.0)[1] + d for d in (-2, -1, 0, 1)} | {
        at(0, -2.0)[1] + d for d in (-2, -1, 0, 1)
    }
    assert columns.min() == pytest.approx(at(-3.0, 0)[0], abs=12)
    first = np.asarray(image)[at(0, -2.0)[1], at(0.5, 0)[0]]
    assert first[0] > first[1] + 40, "in its color"
    old, new = (
        np.asarray(image)[at(0, y)[1], at(x, 0)[0]].astype(int)
        for x, y in ((-2.0, 1.0), (0.6, -2.0))
    )
    assert old[1] > new[1], "what is older is fainter"
    assert math.dist((1.0, 1.0), (0.0, -2.0)) > JUMP


def test_a_simulation_with_a_history_knows_trails() -> None:
    sim = botyard.Simulation(step=0.1, odometry_error="none")
    sim.history.keep()
    robot = sim.add_robot("p3dx", "bob", pose=(-3.0, 1.0, 0.0))
    robot.command(v=0.5)
    sim.step(80)
    digest = sim.digest()
    image, bare = (
        np.asarray(sim.render(area=AREA, size=SIZE, trails=t), np.int16)
        for t in (4.0, 0.0)
    )
    assert sim.digest() == digest
    rows, columns = np.nonzero(np.abs(image - bare).max(axis=2) > 8)
    assert set(rows) <= {at(0, 1.0)[1] + d for d in (-2, -1, 0, 1)}
    assert columns.min() == pytest.approx(
        at(robot.truth.x - 4.0 * 0.5, 0)[0], abs=14
    ), "four seconds of it"
    assert columns.max() <= at(robot.truth.x, 0)[0]


def test_time_that_goes_back_begins_new_trails() -> None:
    sim = botyard.Simulation(step=0.1, odometry_error="none")
    robot = sim.add_robot("p3dx", "bob", pose=(-3.0, 1.0, 0.0))
    robot.command(v=0.5)
    stills = moments(sim, 30)
    drawn, bare = (
        Painter(picture_options(area=AREA, size=SIZE, trails=t)) for t in (20.0, 0.0)
    )
    for still in stills:
        drawn.see(still)
    assert drawn.draw(stills[-1]) != bare.draw(stills[-1])
    assert drawn.draw(stills[0]) == bare.draw(stills[0])


def test_robots_may_have_a_color_each() -> None:
    sim = walled()
    places = [(-2.0 + k % 5, 1.0 - k // 5) for k in range(10)]
    for k, (x, y) in enumerate(places):
        sim.add_robot("p3dx", f"r{k}", pose=(x, y, 0.0))
    image = sim.render(area=AREA, size=SIZE, colors="robot")
    found = [image.getpixel(at(x - 0.1, y)) for x, y in places]
    assert found == [rgb(robot_colors()[k % len(robot_colors())]) for k in range(10)]
    assert {
        sim.render(area=AREA, size=SIZE).getpixel(at(x - 0.1, y)) for x, y in places
    } == {RED}


def test_stalled_robots_say_so() -> None:
    sim = walled()
    robot = sim.add_robot("p3dx", "bob", pose=(2.5, 0.0, 0.0))
    robot.command(v=0.5)
    sim.step(40)
    assert robot.stalled
    image = np.asarray(sim.render(area=AREA, size=SIZE), np.int16)
    assert (np.abs(image - theme("light").stalled[:3]).max(axis=2) < 10).sum() > 20


def test_notebooks_show_pictures() -> None:
    sim = botyard.Simulation.load("office")
    robot = sim.add_robot("p3dx")
    for thing in (sim, robot, sim.scene, robot.spec):
        data = thing._repr_png_()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(data) > 1000


def test_the_page_has_the_colors_of_the_palette() -> None:
    done = subprocess.run(
        [sys.executable, "tools/web_palette.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_reflector_line_has_its_color(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 2 cm thick: an edge of another colour would hide it."""
    text = '2D-Map\nLineMinPos: -3000 -2000\nLineMaxPos: 3000 -2000\nNumLines: 1\nCairn: Reflector 0 0 0 "" ICON "" -2000 1000 2000 1000\n'
    text += "LINES\n-3000 -2000 3000 -2000\nDATA\n"
    scene = to_scene(armap.parse(text))

    def colored() -> int:
        image = np.asarray(draw.render_scene(scene, size=600), np.int16)[..., :3]
        return int((np.abs(image - rgb(scene.boxes[0].color)).max(axis=2) < 40).sum())

    assert colored() > 300
    monkeypatch.setattr(bodyshapes, "LINE_M", 0.0)
    assert colored() < 300, (
        "else an edge of the color of all edges would not be told from it"
    )
