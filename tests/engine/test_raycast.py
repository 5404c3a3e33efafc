from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.devices.ranging import RangeDevices
from botyard.engine import commands as cmd
from botyard.engine import wallgrid
from botyard.engine.bodyspec import BodySpec
from botyard.engine.kernels.beams import SECTORS, sector_of
from botyard.engine.kernels.grid import quadrant_clearance, wall_distance
from botyard.engine.simulation import Engine
from botyard.engine.wallgrid import build_grid, crowding
from botyard.formats.registry import load_scene
from botyard.geometry import Pose, compose
from botyard.model.beams import Bundle, ReflectorRule
from botyard.model.obstacles import Returns, Visible
from botyard.model.scene import Scene, SpecialWalls
from botyard.model.tracing import squares_to_segments
from botyard.sim.simulation import Simulation
from tests import naive
from tests.engine.worlds import HOOK, INVISIBLE, OCTAGON, random_segments, robot


def world(segments, bodies=(), **options) -> tuple[Engine, RangeDevices]:
    devices = RangeDevices()
    e = Engine(Scene(segments=segments), senses=(devices,), **options)
    e.add_bodies(list(bodies))
    return e, devices


def fan(count: int, fov: float, r_max: float = 8.0, **changes) -> Bundle:
    return Bundle(
        angle0=-fov / 2,
        step=fov / max(count - 1, 1),
        count=count,
        r_max=r_max,
        **changes,
    )


def ranges(
    e: Engine,
    devices: RangeDevices,
    body: str,
    *bundles: Bundle,
    senses: Visible = Visible.LASER,
) -> np.ndarray:
    devices.configure("x", body, 1, senses, bundles)
    return devices.read(e, "x").ranges.copy()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fov", [math.pi, 2 * math.pi])
def test_scans_equal_the_twin(seed: int, fov: float) -> None:
    rng = np.random.default_rng(seed)
    segments = random_segments(rng, 40)
    poses = [Pose(*rng.uniform((0, 0, -4), (10, 10, 4))) for _ in range(12)]
    bodies = [
        (robot(f"r{i}", (OCTAGON if i % 2 else HOOK,)), p) for i, p in enumerate(poses)
    ]
    e, devices = world(segments, bodies)
    for r_max in (3.0, 30.0):
        for i in range(4):
            found = ranges(e, devices, f"r{i}", fan(61, fov, r_max))
            others = [(b.parts[0], p) for k, (b, p) in enumerate(bodies) if k != i]
            expected = naive.scan(
                poses[i], np.linspace(-fov / 2, fov / 2, 61), segments, others, r_max
            )
            assert np.abs(found - expected).max() < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_few_beams_take_another_path_to_the_same_ranges(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    segments = random_segments(rng, 30)
    poses = [Pose(*rng.uniform((0, 0, -4), (8, 8, 4))) for _ in range(10)]
    bodies = [(robot(f"r{i}"), p) for i, p in enumerate(poses)]
    e, devices = world(segments, bodies)
    mounts = [Pose(*rng.uniform((-0.2, -0.2, -4), (0.2, 0.2, 4))) for _ in range(16)]
    found = ranges(
        e,
        devices,
        "r0",
        *(Bundle(mount=m, r_max=5.0) for m in mounts),
        senses=Visible.SONAR,
    )
    x, y, th = poses[0]
    for m, r in zip(mounts, found, strict=True):
        c, s = math.cos(th), math.sin(th)
        origin = (x + c * m.x - s * m.y, y + s * m.x + c * m.y, th + m.th)
        expected = naive.scan(
            origin, [0.0], segments, [(OCTAGON, p) for p in poses[1:]], 5.0
        )[0]
        assert r == pytest.approx(expected, abs=1e-9)


PLACES = (
    "anywhere",
    "end of a wall",
    "on a wall",
    "almost on a wall",
    "border of a cell",
    "outside",
)


@given(
    seed=st.integers(0, 2**32 - 1),
    walls=st.integers(0, 40),
    special=st.booleans(),
    beams=st.integers(10, 100),
    fov=st.sampled_from([0.3, math.pi, 1.5 * math.pi, 2 * math.pi]),
    r_max=st.sampled_from([0.05, 2.0, 8.0, 100.0]),
    place=st.sampled_from(PLACES),
    wobble=st.sampled_from([0.0, 0.02, 1.0]),
)
def test_walls_met_at_once_are_those_met_beam_by_beam(
    seed: int,
    walls: int,
    special: bool,
    beams: int,
    fov: float,
    r_max: float,
    place: str,
    wobble: float,
) -> None:
    """With few walls one bundle tests all walls at once; a bundle for each beam walks
    the grid.

    Both give the same bits.
    """
    rng = np.random.default_rng(seed)
    segments = np.concatenate(
        [random_segments(rng, walls), [(0.0, 0.0, 10.0, 0.0), (10.0, 0.0, 10.0, 3e4)]]
    )
    kinds = tuple(
        SpecialWalls(
            first=k,
            last=k + 1,
            returns=Returns(laser=int(rng.integers(0, 3)), sonar=bool(rng.integers(2))),
        )
        for k in range(len(segments) if special else 0)
    )
    scene = Scene(segments=segments, special_walls=kinds)
    h, wall = build_grid(scene).h, segments[rng.integers(len(segments))]
    x, y = {
        "anywhere": rng.uniform(0, 10, 2),
        "end of a wall": wall[:2],
        "on a wall": (wall[:2] + wall[2:]) / 2,
        "almost on a wall": (wall[:2] + wall[2:]) / 2 + rng.uniform(-1e-5, 1e-5, 2) * h,
        "border of a cell": np.round(rng.uniform(0, 10, 2) / h) * h,
        "outside": rng.uniform(-20, 30, 2),
    }[place]
    heading = rng.choice([rng.uniform(-math.pi, math.pi), 0.0, math.pi / 2])
    devices = RangeDevices()
    e = Engine(scene, senses=(devices,))
    e.add_bodies([(robot("r0"), Pose(x, y, heading))])
    step = fov / (beams - 1)
    one = Bundle(
        angle0=-fov / 2,
        step=step,
        count=beams,
        r_max=r_max,
        a_noise=wobble,
        r_noise=0.01,
    )
    each = [
        Bundle(angle0=-fov / 2 + step * k, r_max=r_max, a_noise=wobble, r_noise=0.01)
        for k in range(beams)
    ]
    found = []
    for bundles in ([one], each):
        devices.configure("x", "r0", 1, Visible.LASER, bundles)
        with np.errstate(divide="ignore", invalid="ignore"):
            readings = devices.read(e, "x")
        found.append((readings.ranges.copy(), readings.returns.copy()))

    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


def test_a_wall_seen_along_its_length_behind_another_one_is_not_met() -> None:
    """Its computed range is only rounding and could be anything."""
    for seed in range(60):
        angle, (x, y) = seed * 0.01, np.random.default_rng(seed).uniform(-3, 3, 2)
        d = np.array([math.cos(angle), math.sin(angle)])
        p, side = np.array([x, y]), np.array([-d[1], d[0]])
        near = np.concatenate([p + 2 * d - side, p + 2 * d + side])
        along = np.concatenate([p + 4 * d, p + 6 * d])
        devices = RangeDevices()
        e = Engine(Scene(segments=np.array([near, along])), senses=(devices,))
        e.add_bodies([(robot("r0"), Pose(x, y, angle))])
        devices.configure("x", "r0", 1, Visible.LASER, [fan(181, math.pi)])
        with np.errstate(
            divide="ignore",
            invalid="ignore",
            # Without the compiler, NumPy warns of parallel rays and walls.
        ):
            assert devices.read(e, "x").ranges[90] == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("first", [0, 1])
def test_a_wall_in_the_same_place_as_one_that_is_not_seen(first: int) -> None:
    wall = (3.0, -2.0, 3.0, 2.0)
    hidden = SpecialWalls(first=first, last=first + 1, returns=Returns(laser=0))
    devices = RangeDevices()
    e = Engine(
        Scene(segments=np.array([wall, wall]), special_walls=(hidden,)),
        senses=(devices,),
    )
    e.add_bodies([(robot("r0"), Pose(0.0, 0.0, 0.0))])
    devices.configure("x", "r0", 1, Visible.LASER, [fan(101, 0.4)])
    assert devices.read(e, "x").ranges[50] == pytest.approx(3.0)


def test_rays_from_outside_the_map_look_into_it() -> None:
    square = np.array([[0, 0, 4, 0], [4, 0, 4, 4], [4, 4, 0, 4], [0, 4, 0, 0]], float)
    for pose in (
        Pose(-5, 2, 0),
        Pose(9, 2, math.pi),
        Pose(2, -30, math.pi / 2),
        Pose(-7, -7, math.pi / 4),
    ):
        e, devices = world(square, [(robot("r0"), pose)])
        found = ranges(e, devices, "r0", fan(31, 1.0, 50.0))
        expected = naive.scan(pose, np.linspace(-0.5, 0.5, 31), square, [], 50.0)
        assert np.abs(found - expected).max() < 1e-9


def test_no_ray_slips_through_corners_and_lattice_points() -> None:
    """From the exact centre of a room of unit walls, along axes, diagonals and into the
    corners where walls meet.
    """
    n = 8
    walls = [(i, 0, i + 1, 0) for i in range(n)] + [(i, n, i + 1, n) for i in range(n)]
    walls += [(0, i, 0, i + 1) for i in range(n)] + [(n, i, n, i + 1) for i in range(n)]
    e, devices = world(np.array(walls, float), [(robot("r0"), Pose(n / 2, n / 2, 0))])
    found = ranges(e, devices, "r0", fan(721, 2 * math.pi, 100.0))
    assert found.max() <= n / 2 * math.sqrt(2) + 1e-9
    assert found.min() == pytest.approx(n / 2)


def test_symmetry_under_rotation_and_translation_of_the_world() -> None:
    rng = np.random.default_rng(5)
    segments = random_segments(rng, 30)
    base, devices = world(segments, [(robot("r0"), Pose(5, 5, 0.3))])
    before = ranges(base, devices, "r0", fan(91, math.pi, 20.0))
    turn, shift = 1.1, np.array([120.0, -45.0])
    c, s = math.cos(turn), math.sin(turn)
    moved = (segments.reshape(-1, 2) @ np.array([[c, s], [-s, c]]) + shift).reshape(
        -1, 4
    )
    x, y = np.array([5.0, 5.0]) @ np.array([[c, s], [-s, c]]) + shift
    other, devices2 = world(moved, [(robot("r0"), Pose(x, y, 0.3 + turn))])
    after = ranges(other, devices2, "r0", fan(91, math.pi, 20.0))
    assert np.abs(before - after).max() < 1e-9


def test_the_greatest_range_where_nothing_is() -> None:
    e, devices = world(np.zeros((0, 4)), [(robot("r0"), Pose(0, 0, 0))])
    assert set(ranges(e, devices, "r0", fan(11, math.pi, 7.5))) == {7.5}


def test_the_least_range_clamps_upwards() -> None:
    e, devices = world(np.array([[0.3, -1, 0.3, 1.0]]), [(robot("r0"), Pose(0, 0, 0))])
    assert ranges(e, devices, "r0", fan(1, 0.0, 8.0, r_min=0.5))[0] == 0.5


@pytest.mark.parametrize(
    ("returns", "laser", "sonar"),
    [
        (Returns(), 1, 1),
        (Returns(laser=0), 0, 1),
        (Returns(sonar=False), 1, 0),
        (INVISIBLE, 0, 0),
    ],
)
def test_visibility(returns: Returns, laser: int, sonar: int) -> None:
    box = BodySpec(
        name="box",
        parts=(((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)),),
        returns=returns,
    )
    e, devices = world(
        np.zeros((0, 4)), [(robot("r0"), Pose(0, 0, 0)), (box, Pose(3, 0, 0))]
    )
    assert ranges(e, devices, "r0", fan(1, 0), senses=Visible.LASER)[0] == (
        2.5 if laser else 8.0
    )
    assert ranges(e, devices, "r0", fan(1, 0), senses=Visible.SONAR)[0] == (
        2.5 if sonar else 8.0
    )


@pytest.mark.parametrize(
    ("distance", "angle", "bright", "reported"),
    [
        (3, 0.0, 2, 33),
        (3, 0.0, 33, 33),
        (3, 0.7, 2, 33),
        (3, 0.9, 2, 1),
        (31, 0.0, 33, 1),
        (3, 0.0, 1, 1),
        (3, 0.0, 7, 7),
    ],
)
def test_reflectors_within_range_and_incidence(
    distance: float, angle: float, bright: int, reported: int
) -> None:
    """The LMS-200's rule:

    bright returns only within 30 m and 45° of the normal; a return of 2 counts as 33.
    """
    plate = BodySpec(
        name="p",
        parts=(((-0.01, -2), (0.01, -2), (0.01, 2), (-0.01, 2)),),
        returns=Returns(laser=bright),
    )
    e, devices = world(
        np.zeros((0, 4)),
        [(robot("r0"), Pose(0, 0, 0)), (plate, Pose(distance, 0, angle))],
    )
    rule = ReflectorRule(max_range=30.0, max_incidence=math.pi / 4, strength=33)
    devices.configure("x", "r0", 1, Visible.LASER, [fan(1, 0, 40.0, reflector=rule)])
    assert devices.read(e, "x").returns[0] == reported


def test_the_closest_of_several_beams() -> None:
    e, devices = world(np.array([[2.0, 0.3, 2.0, 5.0]]), [(robot("r0"), Pose(0, 0, 0))])
    cone = math.radians(30)
    single = ranges(e, devices, "r0", Bundle(r_max=5.0), senses=Visible.SONAR)
    several = ranges(
        e, devices, "r0", fan(7, cone, 5.0, shortest=True), senses=Visible.SONAR
    )
    assert single[0] == 5.0
    assert several.shape == (1,)
    assert several[0] == pytest.approx(2.0 / math.cos(cone / 3))


def test_noise_is_bounded_repeatable_and_spares_what_is_out_of_range() -> None:
    wall = np.array([[2.0, -10, 2.0, 0.0]])
    bundle = fan(101, math.pi, 8.0, r_noise=0.05)

    def take(seed: int, ticks: int) -> np.ndarray:
        e, devices = world(wall, [(robot("r0"), Pose(0, 0, 0))], seed=seed)
        e.step(ticks)
        return ranges(e, devices, "r0", bundle)

    exact = ranges(
        *world(wall, [(robot("r0"), Pose(0, 0, 0))]), "r0", fan(101, math.pi, 8.0)
    )
    noisy = take(1, 3)
    hit = exact < 8.0
    assert (noisy[~hit] == 8.0).all()
    error = noisy[hit] - exact[hit]
    assert 0.02 < np.abs(error).max() <= 0.05
    assert np.array_equal(noisy, take(1, 3))
    assert not np.array_equal(noisy, take(2, 3))
    assert not np.array_equal(noisy, take(1, 4))


def test_angular_errors_move_edges_but_stay_small() -> None:
    wall = np.array([[2.0, -10, 2.0, 10.0]])
    exact = ranges(
        *world(wall, [(robot("r0"), Pose(0, 0, 0))]), "r0", fan(91, 2.0, 30.0)
    )
    wobbly = ranges(
        *world(wall, [(robot("r0"), Pose(0, 0, 0))]),
        "r0",
        fan(91, 2.0, 30.0, a_noise=0.0007),
    )
    difference = np.abs(wobbly - exact)
    angles = np.linspace(-1, 1, 91)
    bound = 2.0 / np.cos(np.abs(angles) + 0.0007) - 2.0 / np.cos(angles)
    assert difference.max() > 0
    assert (difference <= bound + 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_clearance_equals_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    occupied = rng.random((9, 13)) < 0.08
    start = np.concatenate([[0], np.cumsum(occupied.ravel())]).astype(np.int32)
    clear = np.zeros((4, 9, 13), np.uint8)
    quadrant_clearance(start, 13, 9, clear)
    assert np.array_equal(clear, naive.clearance(occupied))


def crowd_equals_the_twin(scene: Scene, poses: list[Pose]) -> None:
    """Compare lasers and sonar of robots that have driven about with every segment of
    the map and every other robot.
    """
    devices = RangeDevices()
    e = Engine(scene, senses=(devices,))
    e.add_bodies(
        [
            (robot(f"r{i}", (OCTAGON if i % 2 else HOOK,)), p)
            for i, p in enumerate(poses)
        ]
    )
    rng = np.random.default_rng(4)
    for i in range(len(poses)):
        e.queue_command(
            f"r{i}", cmd.SetVelocity(v=rng.uniform(-0.8, 0.8), w=rng.uniform(-1, 1))
        )

    e.step(15)
    walls = np.concatenate(
        [scene.segments, squares_to_segments(scene.points, scene.resolution)]
    )
    ring = [
        Bundle(mount=Pose(0.1 * math.cos(a), 0.1 * math.sin(a), a), r_max=5.0)
        for a in np.arange(16) * 0.4
    ]
    hits = 0
    for i in (0, 1, len(poses) // 2, len(poses) - 1):
        pose = Pose(*e.state.pose[e.rows[f"r{i}"]])
        # The engine's bodies include the boxes of the map.
        others = [
            (part, Pose(*e.state.pose[e.rows[spec.name]]))
            for spec in e.specs
            if spec.name != f"r{i}"
            for part in spec.parts
        ]
        for fov, r_max in ((math.pi, 8.0), (2 * math.pi, 30.0)):
            found = ranges(e, devices, f"r{i}", fan(37, fov, r_max))
            expected = naive.scan(
                pose, np.linspace(-fov / 2, fov / 2, 37), walls, others, r_max
            )
            assert np.abs(found - expected).max() < 1e-9
            hits += int(
                (
                    found
                    < naive.scan(
                        pose, np.linspace(-fov / 2, fov / 2, 37), walls, [], r_max
                    )
                    - 1e-6
                ).sum()
            )

        c, s = math.cos(pose.th), math.sin(pose.th)
        found = ranges(e, devices, f"r{i}", *ring, senses=Visible.SONAR)
        for bundle, r in zip(ring, found, strict=True):
            m = bundle.mount
            origin = (
                pose.x + c * m.x - s * m.y,
                pose.y + s * m.x + c * m.y,
                pose.th + m.th,
            )
            assert abs(r - naive.scan(origin, [0.0], walls, others, 5.0)[0]) < 1e-9

    assert hits > 10, "robots are in sight"


def cluster(scene: Scene, n: int, size: float) -> list[Pose]:
    """Return free places near the start of a map."""
    e = Engine(scene)
    rng = np.random.default_rng(2)
    x, y, _ = scene.start or Pose(0, 0, 0)
    poses: list[Pose] = []
    while len(poses) < n:
        pose = Pose(
            rng.uniform(x - size, x + size),
            rng.uniform(y - size, y + size),
            rng.uniform(-3, 3),
        )
        if e.is_free(robot("trial"), pose):
            poses.append(pose)

    return poses


def test_a_crowd_in_the_warehouse_equals_the_twin() -> None:
    scene = load_scene("warehouse")
    crowd_equals_the_twin(scene, cluster(scene, 40, 8.0))


@pytest.mark.slow_without_jit
def test_a_crowd_in_columbia_equals_the_twin(shared: Path) -> None:
    scene = load_scene(shared / "data/maps/columbia.map")
    crowd_equals_the_twin(scene, cluster(scene, 40, 8.0))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fov", [math.pi, 2 * math.pi])
def test_scans_in_a_crowd_equal_all_pairs(seed: int, fov: float) -> None:
    """Most bodies are behind others or behind walls and are skipped; no body that a
    beam meets may be among them.
    """
    rng = np.random.default_rng(200 + seed)
    segments = random_segments(rng, 25) * 2.5
    sizes = rng.choice([0.1, 0.3, 1.2], 120)
    bodies = []
    for i, size in enumerate(sizes):
        outline = tuple((size * x, size * y) for x, y in (HOOK if i % 3 else OCTAGON))
        bodies.append(
            (robot(f"r{i}", (outline,)), Pose(*rng.uniform((0, 0, -4), (25, 25, 4))))
        )

    e, devices = world(segments, bodies)
    mounts = [Pose(0.2, -0.1, 0.4), Pose(-0.3, 0.1, 2.0)]
    for i in range(0, 120, 12):
        others = [(b.parts[0], p) for k, (b, p) in enumerate(bodies) if k != i]
        for r_max in (5.0, 40.0):
            found = ranges(
                e, devices, f"r{i}", *(fan(91, fov, r_max, mount=m) for m in mounts)
            ).reshape(2, 91)
            for mount, scan in zip(mounts, found, strict=True):
                origin = compose(bodies[i][1], mount)
                expected = naive.scan(
                    origin, np.linspace(-fov / 2, fov / 2, 91), segments, others, r_max
                )
                assert np.abs(scan - expected).max() < 1e-9


def test_rings_of_more_than_sixty_four_beams() -> None:
    rng = np.random.default_rng(7)
    poses = [Pose(*rng.uniform((0, 0, -4), (8, 8, 4))) for _ in range(30)]
    e, devices = world(
        np.zeros((0, 4)), [(robot(f"r{i}"), p) for i, p in enumerate(poses)]
    )
    mounts = [
        Pose(0.1 * math.cos(a), 0.1 * math.sin(a), a)
        for a in np.linspace(-math.pi, math.pi, 150)
    ]
    found = ranges(e, devices, "r0", *(Bundle(mount=m, r_max=9.0) for m in mounts))
    others = [(OCTAGON, p) for p in poses[1:]]
    expected = [
        naive.scan(compose(poses[0], m), [0.0], np.zeros((0, 4)), others, 9.0)[0]
        for m in mounts
    ]
    assert np.abs(found - expected).max() < 1e-9
    assert (found < 9.0).sum() > 50


@given(
    st.floats(-math.pi, math.pi),
    st.floats(0.0, 1.0),
    st.floats(-1.0, 1.0),
    st.floats(1e-3, 1e3),
)
def test_what_is_no_wider_than_a_sector_lies_in_three(
    bearing: float, width: float, aside: float, distance: float
) -> None:
    half = width * 4.0 / SECTORS
    middle = sector_of(distance * math.cos(bearing), distance * math.sin(bearing))
    edge = sector_of(math.cos(bearing + aside * half), math.sin(bearing + aside * half))
    assert 0 <= middle < SECTORS
    assert (edge - middle) % SECTORS in (0, 1, SECTORS - 1)


@pytest.mark.parametrize("seed", range(3))
def test_walls_are_never_nearer_than_the_grid_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    segments = random_segments(rng, 12)
    grid = build_grid(Scene(segments=segments))
    for x, y in rng.uniform(-3, 13, (300, 2)):
        nearest = min(naive.segment_distance((x, y), s) for s in segments)
        least = naive.py(wall_distance)(
            grid.clear, grid.x0, grid.y0, grid.h, grid.nx, grid.ny, x, y
        )
        assert least <= nearest + 1e-9


def test_the_grid_of_a_large_world_with_few_walls_is_small() -> None:
    walls = [(0, 0, 200, 0), (200, 0, 200, 200), (200, 200, 0, 200), (0, 200, 0, 0)]
    grid = build_grid(Scene(segments=np.array(walls, float)))
    assert grid.nx * grid.ny < 5000
    dense = build_grid(Scene(segments=random_segments(np.random.default_rng(1), 3000)))
    assert dense.h == 0.1


@pytest.mark.parametrize("far", [0.0, 300.0, 1000.0, 1e5, 1e12])
def test_a_stray_point_far_away_costs_neither_memory_nor_the_fineness_of_the_grid(
    far: float,
) -> None:
    """The grid's memory is bounded for any extent, and cells near walls stay small
    within that bound.
    """
    rng = np.random.default_rng(1)
    office = rng.integers(0, 2000, (5000, 2)) * 0.02
    points = np.concatenate([office, [[far, far]]]) if far else office
    grid = build_grid(Scene(points=points, resolution=0.02))
    assert (
        sum(
            a.nbytes
            for a in (
                grid.start,
                grid.seg,
                grid.mask,
                grid.bright,
                grid.clear,
                grid.near,
            )
        )
        < 40e6
    )
    assert grid.nx * grid.ny <= 4.1e6
    if far <= 1000.0:
        assert crowding(grid) < 30.0


def test_a_map_that_is_mostly_empty_is_doubted() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.integers(0, 2000, (5000, 2)) * 0.02, [[1e5, 1e5]]])
    said: list[str] = []
    Simulation(Scene(points=points, resolution=0.02), warn=said.append)
    assert len(said) == 1 and "Does it hold a stray point far outside?" in said[0]
    Simulation(Scene(points=points[:-1], resolution=0.02), warn=said.append)
    assert len(said) == 1


def test_many_long_walls_cost_no_more_memory_than_they_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an entry in each cell along each wall, 100,000 walls across a square
    kilometre would have 130 million entries, 6 GB.
    """
    rng = np.random.default_rng(1)
    segments = rng.uniform(0.0, 1000.0, (300, 4))
    usual = build_grid(Scene(segments=segments))
    monkeypatch.setattr(wallgrid, "MAX_ENTRIES", 3000.0)
    grid = build_grid(Scene(segments=segments))
    assert len(usual.seg) > 100_000
    assert len(grid.seg) <= 3000 + 4 * len(segments), (
        "beside those of its own cells, each wall has one at most at either end"
    )
    pose = Pose(500.0, 500.0, 0.3)
    e, devices = world(segments, [(robot("r", (OCTAGON,)), pose)])
    assert len(e.grid.seg) == len(grid.seg)
    found = ranges(e, devices, "r", fan(61, 2 * math.pi, 300.0))
    assert (
        np.abs(
            found
            - naive.scan(pose, np.linspace(-math.pi, math.pi, 61), segments, [], 300.0)
        ).max()
        < 1e-9
    )
