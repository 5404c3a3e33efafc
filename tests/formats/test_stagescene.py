"""Whole worlds from Stage world files of both dialects:

walls, objects, robots, settings, and reports about the rest.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from botyard.errors import FormatError, WorldFileError
from botyard.formats import stageworld
from botyard.formats.base import Options, Source
from botyard.formats.registry import load_world, read_world
from botyard.formats.stagescene import to_world
from botyard.model.kinematics import Axes, Drive
from botyard.model.world import World
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate


def world(
    text: str, notes: list[str] | None = None, programs: tuple[str, ...] = ("wander",)
) -> World:
    options = Options(
        warn=(notes if notes is not None else []).append,
        is_program=programs.__contains__,
    )
    return to_world(stageworld.parse(text, "my.world"), "my.world", options)


FLOORPLAN = "define floorplan model ( gui_move 0 )\n"


def picture(path: Path, rows: list[str]) -> None:
    Image.fromarray(
        np.array([[0 if c == "#" else 255 for c in row] for row in rows], np.uint8)
    ).save(path)


# -- walls


def test_a_bitmap_is_scaled_to_the_size_and_its_dark_pixels_are_walls(
    tmp_path: Path,
) -> None:
    picture(tmp_path / "plan.png", ["....", ".#..", "....", "..#."])
    (tmp_path / "a.world").write_text(
        FLOORPLAN
        + 'floorplan ( bitmap "plan.png" size [4 3 0.5] pose [10 20 0 90] boundary 1 )'
    )
    scene = load_world(tmp_path / "a.world").scene
    # The light margin does not count. The upper dark pixel is 2 m × 1 m, and the whole picture is
    # rotated by 90° about (10, 20).
    cell = {(8.5, 18.0), (9.5, 18.0), (9.5, 20.0), (8.5, 20.0)}
    walls = scene.segments
    ends = {(round(x, 6), round(y, 6)) for x, y in walls[:8].reshape(-1, 2).tolist()}
    assert cell <= ends
    assert ends - cell == {(10.5, 20.0), (11.5, 20.0), (11.5, 22.0), (10.5, 22.0)}
    assert scene.bounds == pytest.approx((8.5, 18.0, 11.5, 22.0)), "the boundary"
    assert len(walls) == 12


def test_light_margins_and_all_channels_but_the_first_do_not_count(
    tmp_path: Path,
) -> None:
    """As in Stage: a margin on one side stretches the walls, and a red mark is free."""
    frame = np.full((20, 40), 255, np.uint8)
    frame[5:15, 10:30] = 0
    frame[6:14, 11:29] = 255
    left = frame[:, :30]
    for rows in (frame, left, frame[5:15, 10:30]):
        Image.fromarray(rows).save(tmp_path / "room.png")
        for boundary in ("", "boundary 1"):
            (tmp_path / "a.world").write_text(
                f'{FLOORPLAN}floorplan ( bitmap "room.png" size [8 4 1] {boundary} )'
            )
            scene = load_world(tmp_path / "a.world").scene
            assert scene.bounds == pytest.approx((-4.0, -2.0, 4.0, 2.0))
            inner = np.abs(scene.segments[:, 0]) < 3.99
            assert np.abs(scene.segments[inner, 0]).max() == pytest.approx(3.6), (
                "a pixel is 0.4 m wide"
            )

    (tmp_path / "b.world").write_text(
        f'{FLOORPLAN}floorplan ( bitmap "room.png" size [8 4 1] )'
    )
    colors = np.dstack([frame, frame, frame])
    colors[9:11, 18:20] = 220, 0, 0
    clear = np.dstack([colors, np.full(frame.shape, 0, np.uint8)])
    few = Image.fromarray(colors).quantize(8)
    for image in (Image.fromarray(colors), Image.fromarray(clear, "RGBA"), few):
        image.save(tmp_path / "room.png")
        assert len(load_world(tmp_path / "b.world").scene.segments) == 8, image.mode


def test_traced_bitmaps_are_the_image_cell_by_cell(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    dark = rng.random((40, 50)) < 0.3
    Image.fromarray(np.where(dark, 0, 255).astype(np.uint8)).save(tmp_path / "p.png")
    (tmp_path / "a.world").write_text(
        FLOORPLAN + 'floorplan ( bitmap "p.png" size [50 40 1] pose [25 20 0 0] )'
    )
    scene = load_world(tmp_path / "a.world").scene
    raster = scene.to_array(1.0)
    assert np.array_equal(raster.solid, dark[::-1]) and (raster.x, raster.y) == (
        0.0,
        0.0,
    )
    segments = scene.segments
    upright = segments[segments[:, 0] == segments[:, 2]]
    inside = np.zeros((40, 50), bool)
    for row in range(40):
        y = row + 0.5
        crossed = sorted(
            s[0] for s in upright.tolist() if min(s[1], s[3]) < y < max(s[1], s[3])
        )
        for a, b in zip(crossed[::2], crossed[1::2], strict=True):
            inside[row, round(a) : round(b)] = True

    assert (inside[::-1] == dark).all()


def test_what_is_dark_in_a_picture_is_solid_and_a_boundary_is_not(
    tmp_path: Path,
) -> None:
    """Pixels of any shape, rotated, behind other walls; walls without returns and
    obstacles have no solid pixels.
    """
    picture(tmp_path / "plan.png", ["#...", ".##.", "...#"])
    (tmp_path / "a.world").write_text(
        FLOORPLAN
        + 'floorplan ( bitmap "plan.png" size [8 3 1] pose [0 20 0 0] obstacle_return 0 laser_return 0 ranger_return -1 )'
        + 'floorplan ( bitmap "plan.png" size [8 3 1] pose [10 20 0 90] boundary 1 )'
    )
    raster = load_world(tmp_path / "a.world").scene.to_array(0.5)
    rows, columns = np.nonzero(raster.solid)
    there = {
        (raster.x + x / 2, raster.y + y / 2)
        for x, y in zip(columns.tolist(), rows.tolist(), strict=True)
    }
    block = {(9.5 + x / 2, 18.0 + y / 2) for x in range(2) for y in range(8)}
    assert block <= there and min(x for x, _ in there) == 8.5
    corners = {
        (x, y) for x, y in there if (x < 9.5 and y < 18.0) or (x >= 10.5 and y >= 22.0)
    }
    assert len(corners) == 16
    assert (
        not {(x, y) for x, y in there if 9.0 <= x < 11.0 and 16.5 <= y < 23.5}
        - block
        - corners
    )


def test_visibility_of_walls() -> None:
    notes: list[str] = []
    scene = world(
        FLOORPLAN
        + "floorplan ( size [2 2 1] )"
        + "floorplan ( size [2 2 1] pose [5 0 0 0] obstacle_return 0 ranger_return 0.5 )"
        + "floorplan ( size [2 2 1] pose [9 0 0 0] ranger_return -1 )",
        notes,
    ).scene
    assert len(scene.segments) == 12
    assert [(w.first, w.last) for w in scene.special_walls] == [(4, 8), (8, 12)]
    seen = [w.returns for w in scene.special_walls]
    assert (seen[0].obstacle, seen[0].laser, seen[0].sonar) == (False, 1, True)
    assert (seen[1].obstacle, seen[1].laser, seen[1].sonar) == (True, 0, False)
    assert notes == [
        "my.world:2: obstacle_return 0: robots see floorplan and drive through it"
    ]


def test_walls_that_robots_only_see_or_only_feel_are_so_in_the_simulation() -> None:
    scene = world(
        FLOORPLAN
        + "floorplan ( size [0.1 4 1] pose [3 0 0 0] obstacle_return 0 )"
        + "floorplan ( size [0.1 4 1] pose [5 0 0 0] ranger_return -1 )"
    ).scene
    sim = Simulation(scene, sensor_noise=False, odometry_error="none")
    robot = sim.add_robot("p3dx", pose=(0, 0, 0))
    ahead = robot.laser.ranges[90]
    assert ahead + robot.spec.lasers[0].pose.x == pytest.approx(2.95, abs=0.02), (
        "the laser sees the first one"
    )
    robot.command(v=1.0)
    sim.step(100)
    assert robot.stalled
    assert 4.0 < robot.truth.x < 5.0, (
        "it drove through the first one and stands at the second"
    )


# -- objects


def test_objects_are_boxes_or_what_their_blocks_say() -> None:
    scene = world("""
        define puck model ( size [0.08 0.08 0.1] gripper_return 1 fiducial_return 10 color "purple" )
        puck ( pose [1 2 0 90] )
        puck ( pose [3 4 0 0] name "mine" color_rgba [1 0.5 0 1] )
        model ( name "wedge" size [2 1 0.5] block ( points 3 point[0] [0 0] point[1] [10 0] point[2] [0 10] z [0 1] ) )
    """).scene
    first, mine, wedge = scene.boxes
    assert (first.name, mine.name, wedge.name) == ("puck", "mine", "wedge")
    assert (first.length, first.width) == pytest.approx((0.08, 0.08))
    assert first.returns.fiducial == 10
    assert mine.color == "#ff8000"
    assert first.pose.th == pytest.approx(math.pi / 2)
    assert wedge.outlines == (((-1.0, -0.5), (1.0, -0.5), (-1.0, 0.5)),), (
        "scaled to the size and centred"
    )


def test_a_thing_that_nobody_sees_or_feels_is_an_area() -> None:
    scene = world(
        'define zone model ( obstacle_return 0 ranger_return -1 ) zone ( name "source" size [2 2 0.01] pose [-7 -7 0 0] )'
    ).scene
    (area,) = scene.areas
    assert (area.kind, area.name) == ("zone", "source")
    assert area.corners[0] == (-8.0, -8.0)
    assert not scene.boxes


def test_children_belong_to_the_whole() -> None:
    (station,) = world("""
        define station model ( size [0.1 0.3 0.1]
          model ( size [0.1 0.05 0.2] pose [0 0.1 0 0] )
          model ( size [0.05 0.2 0.1] pose [0.01 0 0 0] fiducial_return 2 )
          model ( size [9 9 0.1] obstacle_return 0 ) )
        station ( pose [1 1 0 0] )
    """).scene.boxes
    assert len(station.outlines) == 3
    assert station.returns.fiducial == 2
    assert max(x for part in station.outlines for x, _ in part) < 0.1


def test_what_walls_carry_is_walls() -> None:
    scene = world("""
        model ( gui_move 0 size [2 2 1] pose [5 5 0 0] model ( size [0.2 0.2 1] pose [2 0 0 0] model ( size [0.1 0.1 1] pose [0 1 0 0] ) ) )
    """).scene
    assert not scene.boxes
    assert scene.bounds == pytest.approx((4.0, 4.0, 7.1, 6.05))
    assert len(scene.segments) == 3 * 4


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("ranger_return -1", (0, False)),
        ("ranger_return 0", (1, True)),
        ("ranger_return 0.5", (1, True)),
        ("ranger_return 1", (1, True)),
        ("ranger_return 2", (2, True)),
        ("laser_return 0", (0, True)),
    ],
)
def test_visibility_in_stage_4(text: str, seen: tuple[int, bool]) -> None:
    (box,) = world(f"model ( size [1 1 1] {text} )").scene.boxes
    assert (box.returns.laser, box.returns.sonar) == seen


def test_visibility_for_blob_finders_and_of_what_is_not_simulated() -> None:
    notes: list[str] = []
    found = world(
        "model ( blob_return 0 ) model ( blob_return 1 ) model ( speed_of_light 3 )",
        notes,
    ).scene.boxes
    assert [box.returns.blob for box in found] == [False, True, True]
    assert [note.partition(": ")[2] for note in notes] == [
        'the property "speed_of_light" is not simulated'
    ]


def test_a_small_picture_is_a_body_of_rectangles(tmp_path: Path) -> None:
    picture(tmp_path / "ghost.png", ["##", "#."])
    (tmp_path / "a.world").write_text(
        'define silly position ( size [1 1 0.5] bitmap "ghost.png" )\nsilly ( name "ghost" pose [5 6 0 0] color "blue" )'
    )
    (robot,) = load_world(tmp_path / "a.world").robots
    assert robot.name == "ghost"
    outlines = (robot.spec.outline, *robot.spec.parts)
    assert sorted((min(c), max(c)) for c in outlines) == [
        ((-0.5, -0.5), (0.0, 0.0)),
        ((-0.5, 0.0), (0.5, 0.5)),
    ]
    sim = Simulation.load(tmp_path / "a.world")
    sim.add_robot("p3dx", pose=(3.0, 6.25, 0.0))
    assert sim.robots["p3dx"].laser.ranges[90] < 2.0, "it is seen"


# -- robots


def test_robots_of_stage_4() -> None:
    notes: list[str] = []
    found = world(
        """
        define eye sensor ( range [0.1 5] fov 15 samples 1 )
        define ring ranger ( eye ( pose [0.1 0.1 0 90] ) eye ( pose [0.1 -0.1 0 -90] ) )
        define scanner ranger ( update_interval 200 size [0.15 0.15 0.2]
          sensor ( range [0 8] fov 180 samples 180 pose [0.01 0 0.1 0] noise [0.01 0 0.5] ) )
        define bot position ( drive "omni" size [0.4 0.3 0.2] origin [-0.05 0 0 0]
          velocity_bounds [-0.5 0.5 -0.2 0.2 0 0 -90 90] acceleration_bounds [-1 0.4 0 0 0 0 -45 90]
          odom_error [0.02 0.04 0 0.1] localization "odom" fiducial_return 7
          ring ( pose [0.02 0 0 0] ) scanner ( pose [0.1 0 0 10] )
          bumper ( bcount 2 bpose[0] [0.1 0.1 0 45] bpose[1] [-0.1 -0.1 0 -135] )
          gripper ( size [0.2 0.3 0.2] ) camera ( ) )
        bot ( name "a" pose [1 2 0 45] ctrl "wander" kjoules 360 joules_capacity 720000
              fiducial ( range_min 0.3 range_max 6 range_max_id 4.5 fov 90 pose [0.1 0 0 0] )
              blobfinder ( colors_count 2 colors [ "red" "blue" ] image [40 30] pan 10 ) )
        bot ( ctrl "nothing here" speed_of_light 3 )
        """,
        notes,
    )
    a, other = found.robots
    spec = a.spec
    assert (a.name, other.name) == ("a", "bot")
    assert a.pose is not None
    assert tuple(a.pose) == pytest.approx((1, 2, math.pi / 4))
    assert a.program is not None
    assert (a.program.name, other.program) == ("wander", None)
    assert spec.drive is Drive.OMNI
    assert spec.limits.max_speed.as_tuple() == pytest.approx((0.5, 0.2, math.pi / 2))
    assert spec.limits.accel.as_tuple() == pytest.approx((0.4, 0.0, math.pi / 2))
    assert spec.limits.decel.as_tuple() == pytest.approx((1.0, 0.0, math.pi / 4))
    assert spec.odometry_error.as_tuple() == pytest.approx((0.01, 0.02, 0.05)), (
        "drawn within ± half of E"
    )
    assert found.settings.odometry_error == "random_init"
    assert spec.outline[0] == pytest.approx((-0.25, -0.15))
    assert spec.sonar is not None
    assert [tuple(t.pose) for t in spec.sonar.transducers] == [
        pytest.approx((0.12, 0.1, math.pi / 2)),
        pytest.approx((0.12, -0.1, -math.pi / 2)),
    ]
    (laser,) = spec.lasers
    assert (laser.samples, laser.range_max, laser.range_noise) == (180, 8.0, 0.01)
    assert laser.angle_noise == pytest.approx(math.radians(0.5))
    assert (laser.update_rate, spec.sonar.update_rate) == (5.0, 0.0)
    assert laser.pose.th == pytest.approx(math.radians(10))
    assert laser.pose.x == pytest.approx(0.1 + 0.01 * math.cos(math.radians(10)))
    assert (spec.device("bumpers").front, spec.device("bumpers").rear) == (1, 1)
    assert spec.gripper is not None
    assert spec.gripper.reach == pytest.approx(0.132)
    assert spec.returns.fiducial == 7
    assert spec.device("fiducial_finder") is not None
    assert (
        spec.device("fiducial_finder").range_max,
        spec.device("fiducial_finder").fov,
    ) == (
        6.0,
        pytest.approx(math.pi / 2),
    )
    assert (
        spec.device("fiducial_finder").range_min,
        spec.device("fiducial_finder").range_max_id,
    ) == (0.3, 4.5)
    assert spec.device("blob_finder") is not None
    assert (spec.device("blob_finder").colors, spec.device("blob_finder").image) == (
        ("red", "blue"),
        (40, 30),
    )
    assert spec.device("blob_finder").pose.th == pytest.approx(math.radians(10))
    assert (spec.battery.capacity_wh, spec.battery.charge) == (200.0, 50.0)
    assert sorted(note.partition(": ")[2] for note in notes) == [
        '"camera" is not simulated',
        'ctrl "nothing": there is no such controller; the robot waits for a client',
        'the property "speed_of_light" is not simulated',
    ], "each thing once, though two robots have it"


def test_robots_of_stage_2_and_models_of_ours() -> None:
    found = world("""
        interval_sim 50
        name "my lab"
        position ( name "plain" size [0.5 0.4] max_speed [0.7 0 1] laser ( samples 91 ) pose [1 1 90] )
        p3dx ( name "pioneer" pose [2 2 0] color "blue" )
        box ( pose [4 4 0] )
        box-reflector ( pose [5 5 0] )
    """)
    plain, pioneer = found.robots
    assert plain.spec.limits.max_speed.as_tuple() == (0.7, 0.0, 1.0)
    assert plain.spec.lasers[0].samples == 91
    assert (pioneer.spec.color, len(pioneer.spec.lasers)) == ("blue", 1)
    assert [b.name for b in found.scene.boxes] == ["box", "box-reflector"]
    assert found.scene.boxes[1].returns.laser > 1
    assert (found.settings.step, found.settings.odometry_error, found.scene.name) == (
        0.05,
        None,
        "my lab",
    )


def test_units_of_length_and_angle() -> None:
    found = world(
        'unit_length "cm"\nunit_angle "radians"\n'
        'position ( size [40 30] pose [100 200 1.5] max_speed [50 0 1] laser ( range_max 800 fov 3 samples 7 ) color "blue" )'
    )
    (robot,) = found.robots
    assert robot.pose is not None
    assert tuple(robot.pose) == pytest.approx((1.0, 2.0, 1.5))
    assert robot.spec.outline[2] == pytest.approx((0.2, 0.15))
    assert robot.spec.limits.max_speed.as_tuple() == (0.5, 0.0, 1.0)
    assert (robot.spec.lasers[0].range_max, robot.spec.lasers[0].fov) == (
        8.0,
        pytest.approx(3.0),
    )
    assert (robot.spec.lasers[0].samples, robot.spec.color) == (7, "blue"), (
        "without a unit"
    )
    four = world(
        'unit_length "cm"\nunit_angle "radians"\nposition ( size [40 30 20] pose [100 200 50 1.5] )'
    ).robots[0]
    assert four.pose is not None
    assert tuple(four.pose) == pytest.approx((1.0, 2.0, 1.5)), "a height is ignored"
    with pytest.raises(FormatError, match=r"my.world:3: expected numbers"):
        world('unit_length "cm"\n\nposition ( pose [100 "far" 0 90] )')
    with pytest.raises(FormatError, match='expected "m" or "cm" or "mm", found inch'):
        world('unit_length "inch"')


def test_names_are_unique() -> None:
    """A number is added to a name that is taken, even if the world uses the name later."""
    found = world(
        "".join(
            f'position ( name "{name}" pose [{2 * i} 0 0 0] )\n'
            for i, name in enumerate(("a", "a", "a_002", "b"))
        )
    )
    names = [robot.name for robot in found.robots]
    assert names[:2] == ["a", "a_002"]
    assert names[3] == "b"
    assert len(set(names)) == 4


def test_settings() -> None:
    notes: list[str] = []
    s = world(
        "interval_sim 20 speedup 2 quit_time 30 paused 1 threads 3 resolution "
        "0.05 show_clock 1 gravity 9",
        notes,
    ).settings
    assert (s.step, s.speed, s.duration, s.paused, s.threads) == (
        0.02,
        2.0,
        30.0,
        True,
        3,
    )
    assert notes == ['my.world:1: the setting "gravity" is not used']
    for text, name, expected in (
        ("quit_time 0.5", "duration", 0.5),
        ("quit_time 0", "duration", None),
        ("quit_time -1", "duration", None),
        ("threads 0", "threads", 1),
        ("threads 999", "threads", 256),
        ("speedup 0.01", "speed", 0.01),
        ("speedup 1000", "speed", 1000.0),
        ("speedup 0.005", "speed", None),
        ("speedup 2000", "speed", None),
        ("speedup -1", "speed", None),
    ):
        assert getattr(world(text).settings, name) == expected, text

    s = world("speedup -1", notes).settings
    assert s.speed is None
    assert "in real time unless --fast is given" in notes[-1]


def test_the_window_says_what_is_shown_at_first() -> None:
    four = world(
        "window ( size [400 200] scale 20 center [1 2] ) model ( pose [0 0 0 0] )"
    )
    assert four.scene.view == (-9, -3, 11, 7), "20 pixels a metre"
    two = world("window ( size [700 740] scale 0.03 )")
    assert two.scene.view == pytest.approx((-10.5, -11.1, 10.5, 11.1)), "0.03 m a pixel"
    assert world("window ( show_data 1 )").scene.view is None
    for wrong, complaint in (
        ("size [1 1] scale 0", "greater than 0"),
        ("size [1] scale 30", "expected 2 numbers"),
    ):
        notes: list[str] = []
        assert world(f"window ( {wrong} )", notes).scene.view is None
        assert notes[0].startswith("my.world:1: ")
        assert complaint in notes[0]


def test_a_tuple_may_have_more_numbers_than_are_needed() -> None:
    """Stage reads as many numbers as it needs (worlds of patrolling_sim give a window
    three).
    """
    found = world(
        FLOORPLAN
        + "window ( size [400 200 1] scale 20 center [1 2 0] )"
        + "floorplan ( size [2 0.2 1] pose [2 0 0 90 0] )"
        + 'position ( name "r" size [0.4 0.4 0.4] velocity_bounds [-1 1 -1 1 -1 1 -90 90 0 0] '
        + "  odom_error [0.1 0.2 0 0.3 9] "
        + "  ranger ( sensor ( range [0 5 1] fov [180 1] samples 181 ) ) )"
    )
    assert found.scene.view == (-9, -3, 11, 7)
    assert found.scene.bounds == pytest.approx((1.9, -1.0, 2.1, 1.0)), (
        "the fourth number of five is the heading"
    )
    spec = found.robots[0].spec
    assert spec.limits.max_speed.a == pytest.approx(math.pi / 2)
    assert spec.odometry_error == Axes(0.05, 0.1, 0.15)
    assert (spec.lasers[0].range_max, spec.lasers[0].samples) == (5.0, 181)


def test_the_size_of_a_window_says_nothing_about_the_version() -> None:
    assert world("window ( size [700 740 1] scale 0.03 )").scene.view == pytest.approx(
        (-10.5, -11.1, 10.5, 11.1)
    )


@pytest.mark.parametrize(
    ("words", "odom"),
    [
        ("", (0.0, 0.0, 0.0)),
        ('localization "gps"', (0.0, 0.0, 0.0)),
        ('localization "gps" localization_origin [1 1 0 0]', (2.0, 1.0, 90.0)),
        ('localization "gps" localization_origin [0 0 0 0]', (3.0, 2.0, 90.0)),
        ('localization "odom" localization_origin [0 0 0 0]', (3.0, 2.0, 90.0)),
        ("localization_origin [3 0 0 90]", (2.0, 0.0, 0.0)),
    ],
)
def test_odometry_begins_where_its_origin_says(
    words: str, odom: tuple[float, float, float]
) -> None:
    """As in Stage, whose default is the start pose; also after a reset of the world."""
    notes: list[str] = []
    found = world(
        f'position ( name "r" pose [3 2 0 90] size [0.4 0.4 0.4] odom_error [0 0 0 0] {words} )',
        notes,
    )
    assert notes == []
    sim = Simulation(found.scene)
    populate(sim, found)
    robot = sim.robots["r"]

    def begun() -> tuple[float, float, float]:
        x, y, th = robot.odom
        assert robot.odom_in_world == pytest.approx(robot.truth)
        return x, y, math.degrees(th)

    assert begun() == pytest.approx(odom, abs=1e-12)
    robot.command(v=0.5)
    sim.step(20)
    moved = math.dist(robot.odom[:2], (odom[0], odom[1]))
    assert moved == pytest.approx(math.dist(robot.truth[:2], (3.0, 2.0)))
    assert moved > 0.3
    sim.reset()
    sim.step()
    assert begun() == pytest.approx(odom)
    robot.command(v=0.5)
    sim.step(5)
    sim.reset(seed=4)
    assert begun() == pytest.approx(odom)


def test_robots_of_stage_2_without_errors_know_where_they_are() -> None:
    sim = Simulation()
    populate(
        sim,
        world('position ( name "r" pose [3 2 90] size [0.4 0.4] localization "gps" )'),
    )
    assert sim.robots["r"].odom[:2] == (3.0, 2.0)


# -- files named by a world


def test_files_are_relative_to_the_world_that_was_asked_for(tmp_path: Path) -> None:
    """As in Stage; the folder of the file that names them comes second (worlds of
    stage_ros2).
    """
    (tmp_path / "parts/own").mkdir(parents=True)
    (tmp_path / "a.world").write_text(
        'include "parts/robots.inc"\nhall ( )\nshed ( )\nbot ( name "r" )\n'
    )
    (tmp_path / "parts/robots.inc").write_text(
        'include "parts/base.inc"\ninclude "own/maps.inc"\ndefine bot base ( color "blue" )\n'
    )
    (tmp_path / "parts/base.inc").write_text(
        "define base position ( size [0.4 0.4 0.4] )\n"
    )
    (tmp_path / "parts/own/maps.inc").write_text(
        'define hall model ( bitmap "hall.png" size [4 4 1] gui_move 0 )\n'
        'define shed model ( bitmap "shed.png" size [4 4 1] pose [9 0 0 0] gui_move 0 )\n'
    )
    picture(tmp_path / "hall.png", ["#"])
    picture(tmp_path / "parts/own/hall.png", [".", "#"])
    picture(tmp_path / "parts/own/shed.png", ["#"])
    found = load_world(tmp_path / "a.world")
    assert [r.name for r in found.robots] == ["r"]
    assert found.scene.bounds == (-2.0, -2.0, 11.0, 2.0)
    # A path at the root of an upload must be found in the same upload.
    source = Source(
        "a.world", (tmp_path / "a.world").read_bytes(), tmp_path / "a.world", tmp_path
    )
    assert read_world(source).scene.bounds == found.scene.bounds
    (tmp_path / "hall.png").unlink()
    (tmp_path / "parts/own/hall.png").unlink()
    with pytest.raises(
        WorldFileError, match=r'maps\.inc:1: bitmap "hall\.png": no such file'
    ):
        load_world(tmp_path / "a.world")


def test_files_of_another_computer_are_found_by_their_bare_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/bots.inc").write_text(
        'define bot position ( size [0.3 0.3 0.3] )\ndefine hall model ( bitmap "/home/me/hall.png" gui_move 0 )\n'
    )
    picture(tmp_path / "lib/hall.png", ["#"])
    (tmp_path / "a.world").write_text(
        'include "/home/me/ws/include/bots.inc"\nbot ( name "r" )\nhall ( size [2 2 1] )\n'
    )
    with pytest.raises(WorldFileError, match="no such file"):
        load_world(tmp_path / "a.world")
    monkeypatch.setenv("STAGEPATH", str(tmp_path / "lib"))
    found = load_world(tmp_path / "a.world")
    assert [r.name for r in found.robots] == ["r"]
    assert found.scene.bounds == (-1.0, -1.0, 1.0, 1.0)
    source = Source("sent.world", (tmp_path / "a.world").read_bytes())
    with pytest.raises(WorldFileError, match="no such file"):
        read_world(source)


def test_a_definition_that_nothing_uses_needs_no_picture(tmp_path: Path) -> None:
    text = 'define hall model ( bitmap "none.png" )\nposition ( name "r" )\n'
    assert len(read_world(Source("sent.world", text.encode())).robots) == 1


def test_names_are_unique_whatever_the_file_says() -> None:
    robots = world(
        'position ( name "a" ) position ( name "a" ) position ( ) position ( ) model ( name "a" )'
    )
    names = [r.name for r in robots.robots] + [b.name for b in robots.scene.boxes]
    assert len(set(names)) == len(names) == 5
    populate(Simulation(robots.scene), robots)


# -- errors


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hovercraft ( )", '"hovercraft" is not a model type'),
        ("define a b ( ) define b a ( ) a ( )", "is based on itself"),
        ("define a model ( size [1 1 1] a ( ) ) a ( )", "in a circle"),
        ("define a position ( size [1 1 1] a ( ) ) a ( )", "in a circle"),
        ('position ( bitmap "none.png" )', 'bitmap "none.png"'),
        ("model ( gui_move 0 size [1] )", "a length and a width"),
        ("interval_sim 0", "a step from 1 to 60000 ms"),
        ("model ( block ( points 1 point[0] [1 1] ) )", "at least 3 points"),
        ("position ( velocity_bounds [1 2] )", "expected 8 numbers"),
        ("position ( ranger ( sensor ( samples -3 ) ) )", "a whole number"),
        ("position ( color_rgba [2 0 0 1] )", "from 0 to 1"),
        ("model ( ranger ( ) nonsense ( ) )", '"nonsense" is not a model type'),
    ],
)
def test_errors_say_where(text: str, complaint: str) -> None:
    with pytest.raises(WorldFileError) as error:
        world(text)
    assert str(error.value).startswith("my.world:1: ")
    assert complaint in str(error.value)
    assert error.value.exit_code == 252
    with pytest.raises(WorldFileError) as error:
        world(f'# a comment\nname "w"\n\n{text}')
    assert str(error.value).startswith("my.world:4: "), "wherever it stands"


WORDS = (
    "define include a b position model floorplan ranger sensor fiducial "
    "blobfinder bumper gripper laser block zone p3dx box ( ( ) ) [ ] "
    '1 -2.5 0 "x" size pose origin color color_rgba bitmap boundary obstacle_return ranger_return fiducial_return points point[0] '
    "point[1] point[2] velocity_bounds odom_error samples range fov bcount "
    "bpose[0] name ctrl gui_move "
    "unit_length interval_sim speedup joules"
)
pieces = st.sampled_from([*WORDS.split(), "\n"])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(pieces | st.text(max_size=3), max_size=50))
def test_no_text_does_anything_but_be_refused_or_read(words: list[str]) -> None:
    try:
        found = world(" ".join(words))
    except FormatError as error:
        where = str(error)
    else:
        where = "my.world:"
        populate(Simulation(found.scene), found)

    assert where.startswith("my.world:")


def test_a_file_from_elsewhere_may_name_no_other(tmp_path: Path) -> None:
    picture(tmp_path / "p.png", ["#"])
    (tmp_path / "x.inc").write_text("define a model ( )")
    for text, complaint in (
        (f'include "{tmp_path}/x.inc"', "no such file"),
        (f'model ( gui_move 0 bitmap "{tmp_path}/p.png" )', "comes with this file"),
    ):
        with pytest.raises(WorldFileError, match=complaint):
            read_world(Source("sent.world", text.encode()))


# -- the samples


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "robots", "things", "walls"),
    [
        ("simple", 2, 0, True),
        ("everything", 14, 3, True),
        ("fasr", 20, 7, True),
        ("autolab", 30, 15, True),
        ("camera", 1, 0, True),
        ("lsp_test", 2, 0, True),
        ("pioneer_flocking", 100, 0, True),
        ("roomba", 1, 0, True),
        ("sensor_noise_demo", 1, 0, True),
    ],
)
def test_the_sample_worlds_load_and_run(
    shared: Path, name: str, robots: int, things: int, walls: bool
) -> None:
    notes: list[str] = []
    sim = Simulation.load(shared / f"data/worlds/{name}.world", warn=notes.append)
    assert (len(sim.robots), len(sim.scene.boxes), len(sim.scene.segments) > 50) == (
        robots,
        things,
        walls,
    )
    assert len({note.partition(": ")[2] for note in notes}) == len(notes), (
        "each thing once"
    )
    before = sim.poses
    for robot in sim.robots.values():
        for laser in robot.lasers:
            assert np.isfinite(laser.ranges).all()
        if robot.fiducial_finder is not None:
            robot.fiducial_finder.read()
        if robot.blob_finder is not None:
            robot.blob_finder.read()

    sim.step(30)
    moved = np.abs(sim.poses - before).max(axis=1)
    assert (moved > 0.02).sum() == len(sim.core.programs.by_robot), (
        "those with a known controller, and no others"
    )


@pytest.mark.shared
def test_walls_of_a_sample_against_its_picture(shared: Path) -> None:
    """Ray casts in the traced map against a march through the picture."""
    sim = Simulation.load(shared / "data/worlds/simple.world", sensor_noise=False)
    with Image.open(shared / "data/worlds/bitmaps/cave.png") as image:
        dark = np.asarray(image.convert("L"))[::-1] < 128
    rows, columns = dark.shape
    robot = sim.robots["r0"]
    x0, y0, th = robot.truth
    scan = robot.laser.read()
    for k in range(0, len(scan.ranges), 9):
        bearing = th + scan.angles[k]
        r = np.arange(0.0, 8.0, 0.002)
        x, y = x0 + r * math.cos(bearing), y0 + r * math.sin(bearing)
        i, j = (
            np.floor((x + 8) / 16 * columns).astype(int),
            np.floor((y + 8) / 16 * rows).astype(int),
        )
        inside = (i >= 0) & (i < columns) & (j >= 0) & (j < rows)
        hit = ~inside | dark[np.clip(j, 0, rows - 1), np.clip(i, 0, columns - 1)]
        expected = r[np.argmax(hit)] if hit.any() else 8.0
        other = math.dist((x0, y0), sim.robots["r1"].truth[:2])
        # Skip beams that may hit the other robot first.
        if expected < other - 0.5:
            assert scan.ranges[k] == pytest.approx(expected, abs=0.006), k
