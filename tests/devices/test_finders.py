"""Fiducial and blob finders:

found and hidden objects, and the kernel against a plain twin.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.devices.blobs import BODY_HEIGHT, Blob, BlobFinderSpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.engine.kernels.identify import NOTHING, WALL, look
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject, Returns, Visible
from botyard.model.scene import Scene, SpecialWalls
from botyard.sim.simulation import Robot, Simulation

FINDER = FiducialFinderSpec(range_min=0.5, range_max=6.0, range_max_id=4.0, fov=math.pi)
BLOBS = BlobFinderSpec(
    colors=("red", "blue"), image=(80, 60), fov=math.radians(60), range_max=10.0
)


def box(
    name: str,
    x: float,
    y: float,
    th: float = 0.0,
    *,
    mark: int = 0,
    color: str = "gray",
    **returns: object,
) -> BoxObject:
    return BoxObject(
        name=name,
        pose=Pose(x, y, th),
        length=0.4,
        width=0.4,
        color=color,
        returns=Returns(fiducial=mark, **returns),
    )


def eye(
    *boxes: BoxObject,
    walls: tuple = (),
    special: tuple = (),
    pose: tuple = (0, 0, 0),
    fiducial_finder: FiducialFinderSpec = FINDER,
    blob_finder: BlobFinderSpec = BLOBS,
) -> Robot:
    scene = Scene(
        boxes=boxes,
        segments=np.array(walls, float).reshape(-1, 4),
        special_walls=special,
    )
    model = replace(find_robot("p3dx"), devices=(fiducial_finder, blob_finder))
    return Simulation(scene).add_robot(model, "eye", pose=pose)


# -- fiducials


def test_marks_are_found_and_read() -> None:
    robot = eye(
        box("near", 2, 1, 0.5, mark=7),
        box("far", 5, 0, mark=9),
        box("plain", 1, -1),
        pose=(0, 0, 0.2),
    )
    near, far = robot.fiducial_finder.read()
    assert (near.id, far.id) == (7, 0), "beyond range_max_id it cannot be read"
    assert near.range == pytest.approx(math.hypot(2, 1))
    assert near.bearing == pytest.approx(math.atan2(1, 2) - 0.2)
    assert near.pose.th == pytest.approx(0.3)
    assert math.hypot(*near.pose[:2]) == pytest.approx(near.range)


def test_out_of_range_or_view_they_are_not_found() -> None:
    marks = [
        box(f"m{i}", *p, mark=1)
        for i, p in enumerate(((0.3, 0), (7, 0), (-1, 0), (0, 2.0)))
    ]
    found = eye(*marks).fiducial_finder.read()
    assert [round(f.bearing, 3) for f in found] == [round(math.pi / 2, 3)], (
        "at the edge of 180°"
    )
    narrow = eye(
        *marks, fiducial_finder=replace(FINDER, fov=1.0)
    ).fiducial_finder.read()
    assert narrow == []


def test_walls_and_bodies_hide_marks_and_glass_does_not() -> None:
    mark = box("m", 4, 0, mark=5)
    wall = ((2, -1, 2, 1),)
    assert eye(mark).fiducial_finder.read()
    assert not eye(mark, walls=wall).fiducial_finder.read()
    glass = (SpecialWalls(first=0, last=1, returns=Returns(laser=0)),)
    assert eye(mark, walls=wall, special=glass).fiducial_finder.read()
    assert not eye(mark, box("between", 2, 0)).fiducial_finder.read()
    assert eye(mark, box("clear", 2, 0, laser=0)).fiducial_finder.read()


def test_robots_are_marks_and_ghosts_are_not() -> None:
    robot = eye()
    sim = robot.simulation
    spec = replace(robot.spec, returns=Returns(fiducial=33))
    other = sim.add_robot(spec, "other", pose=(3, 1, math.pi))
    (found,) = robot.fiducial_finder.read()
    assert (found.id, found.pose.x) == (33, pytest.approx(3))
    assert [f.id for f in other.fiducial_finder.read()] == [], "the eye has no mark"
    other.ghost()
    sim.step()
    assert robot.fiducial_finder.read() == []


def test_a_beacon_that_nothing_else_sees_is_found() -> None:
    beacon = box("b", 3, 0, mark=2, obstacle=False, laser=0, sonar=False)
    robot = eye(beacon)
    assert [f.id for f in robot.fiducial_finder.read()] == [2]
    assert robot.laser.ranges.min() > 5.0


def test_a_mounted_finder_looks_from_where_it_is() -> None:
    back = replace(FINDER, pose=Pose(-0.2, 0, math.pi), fov=1.0)
    (found,) = eye(
        box("m", -3, 0, mark=1), box("n", 3, 0, mark=2), fiducial_finder=back
    ).fiducial_finder.read()
    assert (found.id, found.range, found.bearing) == (
        1,
        pytest.approx(2.8),
        pytest.approx(0.0, abs=1e-9),
    )


def test_a_robot_without_finders_has_none() -> None:
    robot = Simulation().add_robot("p3dx")
    assert robot.fiducial_finder is None and robot.blob_finder is None
    assert [*robot.port("x").devices] == [
        "battery",
        "sonar",
        "laser",
        "electrics",
        "encoders",
        "gps",
    ]
    port = eye(box("m", 2, 0, mark=1, color="red")).port("x")
    assert [
        len(port.devices[name].read()) for name in ("fiducial_finder", "blob_finder")
    ] == [1, 1]
    with pytest.raises(AttributeError, match="fiducial_finger"):
        robot.fiducial_finger  # noqa: B018


# -- blobs


def patch(robot: Robot) -> Blob:
    (found,) = robot.blob_finder.read()
    return found


def test_a_patch_is_where_the_thing_is() -> None:
    blob = patch(eye(box("b", 4, 0, color="#0000ff")))
    assert (blob.channel, blob.color) == (1, "blue")
    assert blob.range == pytest.approx(3.8, abs=0.01)
    focal = 40 / math.tan(math.radians(30))
    half = focal * 0.2 / 3.8
    assert (blob.left, blob.right) == (round(40 - half), round(40 + half) - 1)
    assert blob.bottom - blob.top + 1 == pytest.approx(
        2 * focal * BODY_HEIGHT / 2 / 3.8, abs=2
    )
    assert blob.bearing == pytest.approx(0.0, abs=1e-9)
    assert blob.area > 0


def test_left_is_left() -> None:
    found = eye(
        box("l", 4, 1, color="red"), box("r", 4, -1, color="blue")
    ).blob_finder.read()
    assert [b.color for b in found] == ["red", "blue"], "from left to right"
    assert found[0].bearing > 0 > found[1].bearing


def test_other_colours_walls_and_distance() -> None:
    assert eye(box("g", 4, 0, color="green")).blob_finder.read() == []
    assert (
        eye(box("r", 4, 0, color="red"), walls=((2, -3, 2, 3),)).blob_finder.read()
        == []
    )
    assert eye(box("r", 14, 0, color="red")).blob_finder.read() == []
    assert eye(box("r", 4, 0, color="red", blob=False)).blob_finder.read() == []
    hidden = eye(box("r", 4, 0, color="red"), box("g", 2, 0, color="green"))
    assert hidden.blob_finder.read() == []
    assert patch(eye(box("r", 4, 0, color="Red1"))).channel == 0, "X11's names"


def test_two_things_of_one_colour_are_two_patches_and_one_behind_a_post_is_two() -> (
    None
):
    assert (
        len(
            eye(
                box("a", 4, 0.5, color="red"), box("b", 4, -0.5, color="red")
            ).blob_finder.read()
        )
        == 2
    )
    post = BoxObject(
        name="p", pose=Pose(2, 0, 0), length=0.05, width=0.05, color="gray"
    )
    assert len(eye(box("a", 4, 0, color="red"), post).blob_finder.read()) == 2


# -- the kernel against a plain twin


def twin(
    robot: Robot, bearings: np.ndarray, reach: float, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Test every ray against every wall and every edge of every body."""
    engine = robot.simulation.core.engine
    x, y, _ = robot.truth
    edges = [(*s, WALL) for s in robot.simulation.scene.segments.tolist()]
    for row, spec in enumerate(engine.specs):
        if row == engine.rows[robot.name] or not seen[row]:
            continue
        px, py, th = engine.state.pose[row]
        c, s = math.cos(th), math.sin(th)
        for part in spec.parts:
            corners = [(px + c * a - s * b, py + s * a + c * b) for a, b in part]
            edges += [(*corners[i - 1], *corners[i], row) for i in range(len(corners))]

    ranges, rows = np.full(len(bearings), reach), np.full(len(bearings), NOTHING)
    for k, bearing in enumerate(bearings):
        dx, dy = math.cos(bearing), math.sin(bearing)
        for x1, y1, x2, y2, row in edges:
            ex, ey = x2 - x1, y2 - y1
            cross = dx * ey - dy * ex
            if abs(cross) < 1e-12:
                continue
            t = ((x1 - x) * ey - (y1 - y) * ex) / cross
            u = ((x1 - x) * dy - (y1 - y) * dx) / cross
            if 0 <= t < ranges[k] and -1e-9 <= u <= 1 + 1e-9:
                ranges[k], rows[k] = t, row

    return ranges, rows


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_look_against_its_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walls = rng.uniform(-8, 8, (rng.integers(0, 12), 4))
    boxes = [
        box(f"b{i}", *rng.uniform(-8, 8, 2), rng.uniform(-3, 3))
        for i in range(rng.integers(0, 8))
    ]
    robot = eye(
        *boxes, walls=tuple(map(tuple, walls)), pose=tuple(rng.uniform(-4, 4, 3))
    )
    engine = robot.simulation.core.engine
    bearings = rng.uniform(-math.pi, math.pi, 30)
    seen = (rng.random(len(engine.specs)) < 0.8).astype(np.uint8)
    ranges, rows = np.zeros(30), np.zeros(30, np.int64)
    x, y, _ = robot.truth
    look(
        engine.packed,
        seen,
        engine.rows["eye"],
        x,
        y,
        bearings,
        7.0,
        int(Visible.LASER),
        ranges,
        rows,
    )
    expected, expected_rows = twin(robot, bearings, 7.0, seen)
    assert ranges == pytest.approx(expected, abs=1e-9)
    assert (rows == expected_rows).all()
