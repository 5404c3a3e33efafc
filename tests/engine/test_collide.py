from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.engine import commands as cmd
from botyard.engine.bodyspec import BodySpec
from botyard.engine.kernels.polygons import polygon_gap
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.geometry import Pose
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene
from tests import naive
from tests.engine.worlds import HOOK, OCTAGON, engine, random_segments, robot

WALL = np.array([[2.0, -3, 2.0, 3.0]])
PERFECT = {"odometry_error_mode": OdometryErrorMode.NONE}


def test_a_robot_stops_at_the_wall_and_stays_stalled() -> None:
    e = engine(WALL, [(0, 0, 0)], **PERFECT)
    e.queue_command("r0", cmd.SetVelocity(v=0.7))
    stalls = [bool(e.step().state.stall[0]) for _ in range(80)]
    first = stalls.index(True)
    assert all(stalls[first:]), (
        "stall does not flicker while the robot is held against the wall"
    )
    assert e.state.vel[0].tolist() == [0, 0, 0]
    gap = 2.0 - 0.2 - e.state.pose[0, 0]
    assert 0 < gap < 1e-4, "the outline, origin offset included, is at the wall"
    assert np.allclose(e.state.odom[0], e.state.pose[0], atol=1e-12), (
        "odometry does not run on"
    )


def test_backing_away_clears_the_stall_at_once() -> None:
    e = engine(WALL, [(1.7, 0, 0)], **PERFECT)
    e.queue_command("r0", cmd.SetVelocity(v=0.5))
    e.step(20)
    assert e.state.stall[0]
    e.queue_command("r0", cmd.SetVelocity(v=-0.5))
    e.step()
    assert not e.state.stall[0]
    assert e.state.vel[0, 0] < 0


def test_stall_ends_when_the_robot_stops_trying() -> None:
    e = engine(WALL, [(1.7, 0, 0)])
    e.queue_command("r0", cmd.SetVelocity(v=0.5))
    e.step(20)
    e.queue_command("r0", cmd.Stop())
    e.step()
    assert not e.state.stall[0]


def test_turning_in_place_is_never_stalled() -> None:
    e = engine(WALL, [(1.7999, 0, 0)])
    e.queue_command("r0", cmd.SetVelocity(w=1.0))
    e.step(40)
    assert not e.state.stall[0]
    assert abs(e.state.pose[0, 2]) > 1.0


def test_a_stalled_robot_may_turn_away_with_its_velocity_still_commanded() -> None:
    e = engine(WALL, [(1.5, 0, 0)])
    e.queue_command("r0", cmd.SetVelocity(v=0.3))
    e.step(20)
    assert e.state.stall[0]
    e.queue_command("r0", cmd.SetVelocity(w=0.6))
    e.step(50)
    assert abs(e.state.pose[0, 2]) > 1.0, "it does not hang at the wall for ever"
    assert not e.state.stall[0], "and drives off along its new heading"


def test_fast_robots_do_not_tunnel() -> None:
    for v in (3.0, 3.9):
        e = engine(WALL, [(0, 0, 0)], step_us=1_000_000)
        e.state.top_vel[:] = e.state.max_vel[:] = 10.0
        e.state.accel[:] = 0.0
        e.queue_command("r0", cmd.SetVelocity(v=v))
        e.step(3)
        assert e.state.stall[0]
        assert e.state.pose[0, 0] == pytest.approx(1.8, abs=1e-3)


def test_robots_stop_each_other() -> None:
    e = engine(np.zeros((0, 4)), [(0, 0, 0), (2, 0, math.pi)])
    for name in ("r0", "r1"):
        e.queue_command(name, cmd.SetVelocity(v=0.5))
    e.step(60)
    assert e.state.stall.tolist() == [1, 1]
    assert e.state.pose[1, 0] - e.state.pose[0, 0] == pytest.approx(0.4, abs=1e-4)


def test_what_is_no_obstacle_lets_pass() -> None:
    box = BodySpec(name="box", parts=(OCTAGON,), returns=Returns(obstacle=False))
    e = engine(np.zeros((0, 4)), [(0, 0, 0)])
    e.add_bodies([(box, Pose(1, 0, 0))])
    e.queue_command("r0", cmd.SetVelocity(v=0.5))
    e.step(60)
    assert e.state.pose[0, 0] > 1.5


def test_a_robot_that_overlaps_a_wall_can_leave_it_but_not_go_deeper() -> None:
    for heading, leaves in ((math.pi, True), (0.0, False)):
        e = engine(WALL, [(1.9, 0, 0)])
        e.queue_command("r0", cmd.SetPose(Pose(1.9, 0, heading)))
        e.queue_command("r0", cmd.SetVelocity(v=0.5))
        e.step(30)
        assert bool(e.state.stall[0]) != leaves
        assert (e.state.pose[0, 0] < 1.6) == leaves


@pytest.mark.parametrize("wall", [(-9.0, 1.0, 9.0, 1.0), (-9.0, -6.3, 9.0, 8.1)])
def test_a_robot_that_overlaps_a_wall_can_follow_it(
    wall: tuple[float, float, float, float],
) -> None:
    x1, y1, x2, y2 = wall
    heading = math.atan2(y2 - y1, x2 - x1)
    x, y = (
        (x1 + x2) / 2 + 0.17 * math.sin(heading),
        (y1 + y2) / 2 - 0.17 * math.cos(heading),
    )
    e = engine(np.array([wall]), [(x, y, heading)])
    e.queue_command("r0", cmd.SetVelocity(v=0.5))
    e.step(30)
    assert not e.state.stall[0]
    assert math.hypot(e.state.pose[0, 0] - x, e.state.pose[0, 1] - y) > 0.8


def test_a_sensor_that_sticks_out_counts() -> None:
    nose = ((0.2, -0.05), (0.5, -0.05), (0.5, 0.05), (0.2, 0.05))
    e = engine(WALL, [(0, 0, 0)], parts=(OCTAGON, nose))
    e.queue_command("r0", cmd.SetVelocity(v=0.5))
    e.step(80)
    assert e.state.pose[0, 0] == pytest.approx(1.5, abs=1e-4)


def test_a_body_wholly_within_another_is_a_collision() -> None:
    big = BodySpec(name="big", parts=(((-3, -3), (3, -3), (3, 3), (-3, 3)),))
    e = Engine(Scene())
    e.add_bodies([(big, Pose(0, 0, 0))])
    assert not e.is_free(robot("small"), Pose(0.5, 0.5, 0))
    assert e.is_free(robot("small"), Pose(5, 0.5, 0))
    assert not Engine(Scene(segments=np.array([[0.0, 0, 0.05, 0]]))).is_free(
        big, Pose(0, 0, 0)
    ), "a short wall inside"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parts", [(OCTAGON,), (HOOK,), (OCTAGON, HOOK)])
def test_free_places_equal_the_twin(seed: int, parts) -> None:
    rng = np.random.default_rng(seed)
    segments = random_segments(rng, 25, 8.0)
    others = [Pose(*rng.uniform((0, 0, -4), (8, 8, 4))) for _ in range(10)]
    e = engine(segments, others)
    free = 0
    for _ in range(60):
        pose = Pose(*rng.uniform((0, 0, -4), (8, 8, 4)))
        found = e.is_free(BodySpec(name="trial", parts=parts), pose)
        assert found != naive.overlaps(
            parts, pose, segments, [(OCTAGON, p) for p in others]
        )
        free += found

    assert 0 < free < 60


@pytest.mark.parametrize("seed", range(4))
def test_a_crowd_never_overlaps(seed: int) -> None:
    """Robots with random commands touch neither walls nor each other."""
    rng = np.random.default_rng(seed)
    room = np.array(
        [[0, 0, 6, 0], [6, 0, 6, 6], [6, 6, 0, 6], [0, 6, 0, 0], [2, 2, 4, 2.5]], float
    )
    e = Engine(Scene(segments=room))
    poses = []
    while len(poses) < 14:
        pose = Pose(*rng.uniform((0.5, 0.5, -3), (5.5, 5.5, 3)))
        if e.is_free(robot("trial"), pose):
            e.add_bodies([(robot(f"r{len(poses)}"), pose)])
            poses.append(pose)

    stalls = 0
    for k in range(60):
        for i in range(14):
            if k % 10 == 0:
                # Translate only: a robot that turns in place is allowed to overlap, see above.
                e.queue_command(
                    f"r{i}",
                    cmd.SetVelocity(v=rng.uniform(-1, 1), vy=rng.uniform(-1, 1), w=0.0),
                )

        e.step()
        stalls += int(e.state.stall.sum())

    assert stalls > 0
    for i in range(14):
        others = [(OCTAGON, Pose(*e.state.pose[j])) for j in range(14) if j != i]
        assert not naive.overlaps((OCTAGON,), Pose(*e.state.pose[i]), room, others)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_of_the_way_ahead_changes_nothing(seed: int) -> None:
    """A body looks for others only when one may have come near (`Bodies.leeway`).

    The result is the same as with a search in every step.
    """
    rng = np.random.default_rng(seed)
    walls = random_segments(rng, 25)
    starts = [Pose(*rng.uniform((0, 0, -3), (10, 10, 3))) for _ in range(30)]
    knowing, looking = (Engine(Scene(segments=walls), seed=seed) for _ in range(2))
    for e in (knowing, looking):
        e.add_bodies(
            [
                (robot(f"r{i}", (OCTAGON if i % 2 else HOOK,)), p)
                for i, p in enumerate(starts)
            ]
        )

    skipped = stalls = 0
    for k in range(120):
        for i in range(30):
            if rng.random() < 0.1:
                speed = cmd.SetVelocity(v=rng.uniform(-1, 1), w=rng.uniform(-1, 1))
                for e in (knowing, looking):
                    e.queue_command(f"r{i}", speed)

        # All robots stop at once, and the world is paused for a moment.
        if k % 11 == 5:
            for e in (knowing, looking):
                for i in range(1, 30):
                    e.queue_command(f"r{i}", cmd.SetVelocity(v=0.0, w=0.0))
                e.settle()

        # A command places one robot right next to another.
        if k % 37 == 36:
            x, y, _ = knowing.state.pose[1]
            for e in (knowing, looking):
                e.queue_command("r0", cmd.SetPose(Pose(x + 0.75, y, 0.0)))

        if k == 80:
            more = random_segments(rng, 10)
            for e in (knowing, looking):
                e.replace_scene(Scene(segments=more))

        skipped += int((knowing.bodies.leeway > 0.2).sum())
        looking.bodies.leeway[:] = 0.0
        knowing.step()
        looking.step()
        assert np.array_equal(knowing.state.pose, looking.state.pose), f"step {k}"
        assert np.array_equal(knowing.state.stall, looking.state.stall)
        stalls += int(knowing.state.stall.sum())

    assert skipped > 100
    assert stalls > 10


def test_one_that_only_turns_knows_that_others_come_nearer() -> None:
    """A robot searched without neighbours, then turned while another one approached:

    it drove through it.
    """
    e = engine(np.zeros((0, 4)), [(0, 0, 0), (3, 0, math.pi)], **PERFECT)
    e.queue_command("r0", cmd.SetVelocity(v=0.1))
    e.step(5)
    e.queue_command("r0", cmd.SetVelocity(v=0.0, w=1.0))
    e.queue_command("r1", cmd.SetVelocity(v=0.5, w=0.0))
    e.step(75)
    assert e.state.stall.tolist() == [0, 1], "the other one is beside it"
    e.queue_command("r0", cmd.SetVelocity(v=0.5, w=0.0))
    e.queue_command("r1", cmd.SetVelocity(v=0.0))
    assert abs(e.state.pose[0, 2]) < 1.0, "it looks at the other one"
    e.step(5)
    assert e.state.stall[0] == 1
    assert e.state.pose[0, 0] < 0.06


@pytest.mark.parametrize("seed", range(20))
def test_gaps_between_polygons(seed: int) -> None:
    """The gap is positive exactly where polygons are apart, and at most their distance."""
    rng = np.random.default_rng(seed)
    e = engine(
        WALL,
        [
            (9.0, 0, 0),
            (rng.uniform(8.4, 9.6), rng.uniform(-0.6, 0.6), rng.uniform(-3, 3)),
        ],
    )
    b = e.bodies
    corners = [b.world[b.vert_start[i] : b.vert_start[i + 1]] for i in range(2)]
    args = [(int(b.vert_start[i]), int(b.vert_start[i + 1])) for i in range(2)]
    gap = polygon_gap(
        b.world,
        b.edge,
        *args[0],
        args[0][0],
        float(b.turn[0]),
        b.world,
        *args[1],
        float(b.turn[1]),
    )
    apart = not naive.overlaps(
        (corners[0],), Pose(0, 0, 0), np.zeros((0, 4)), [(corners[1], Pose(0, 0, 0))]
    )
    assert (gap > 0) == apart
    if apart:
        points = [
            c[k] + t * (c[(k + 1) % len(c)] - c[k])
            for c in corners
            for k in range(len(c))
            for t in (0, 0.25, 0.5, 0.75)
        ]
        half = len(points) // 2
        nearest = min(
            math.hypot(*(p - q)) for p in points[:half] for q in points[half:]
        )
        assert gap <= nearest + 1e-12
