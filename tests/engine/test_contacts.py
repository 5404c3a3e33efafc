"""Contacts of bodies with mass:

state between steps, order of creation, single kernels, and Chipmunk 2D as a reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine.bodyspec import BodySpec
from botyard.engine.dynamics import build_shapes, join_shapes, keep_shapes
from botyard.engine.hulls import convex_pieces
from botyard.engine.kernels.manifolds import manifold
from botyard.engine.kernels.neighbours import heap_sort
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import DynamicsSpec, PoseController, area_moments
from botyard.model.obstacles import BoxObject, disc, rectangle
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from tests.chipmunk import ChipmunkDynamics
from tests.naive import py

pytestmark = pytest.mark.slow_without_jit
ROOM = np.array([[-3.0, -3, 5, -3], [5, -3, 5, 3], [5, 3, -3, 3], [-3, 3, -3, -3]])
HOOK: Outline = ((0.0, 0.0), (0.4, 0.0), (0.4, 0.3), (0.3, 0.3), (0.3, 0.1), (0.0, 0.1))


def box(
    name: str,
    x: float,
    y: float,
    th: float = 0.0,
    *,
    size: float = 0.4,
    mass: float = 2.0,
    **more: object,
) -> BoxObject:
    spec = DynamicsSpec(mass=mass, **more)  # type: ignore[arg-type]
    return BoxObject(
        name=name, pose=Pose(x, y, th), length=size, width=size, dynamics=spec
    )


def heap() -> Simulation:
    """Eight touching boxes that robots with and without mass and a force push against a
    wall.
    """
    boxes = [
        box(
            f"b{k}",
            0.4 * (k % 4),
            0.4 * (k // 4),
            floor_friction=0.3,
            mass=1.0 + 0.3 * k,
        )
        for k in range(8)
    ]
    sim = Simulation(Scene(boxes=tuple(boxes), segments=ROOM), step=0.02)
    sim.add_robot("p3dx", "a", pose=(-1.0, 0.1, 0)).command(v=0.5, w=0.1)
    heavy = sim.add_robot("p3dx", "h", pose=(-1.0, 0.9, 0))
    sim.masses.set_dynamics("h", DynamicsSpec(mass=9.0))
    heavy.command(v=0.4, w=-0.1)
    sim.masses.push("b7", 8.0, -30.0, 1.0)
    return sim


def changing(sim: Simulation) -> list[np.ndarray]:
    """Return all columns of bodies with mass that a step changes, and the used part of
    the table of contacts.
    """
    engine = sim.core.engine
    assert engine.dynamics is not None
    table = engine.dynamics.table
    n = int(table.size[0])
    return [
        *engine.state,
        *engine.dynamics.state,
        table.size,
        table.span,
        table.key[:n],
        table.impulse[:n],
    ]


def same(a: Simulation, b: Simulation) -> bool:
    return all(
        x.tobytes() == y.tobytes()
        for x, y in zip(changing(a), changing(b), strict=True)
    )


def go_on(sim: Simulation, fresh: Simulation) -> None:
    """Copy the columns of one world to another one with the same bodies."""
    for mine, theirs in zip(
        fresh.core.engine.state, sim.core.engine.state, strict=True
    ):
        mine[:] = theirs
    assert (
        sim.core.engine.dynamics is not None and fresh.core.engine.dynamics is not None
    )
    fresh.core.engine.dynamics.load(
        sim.core.engine.dynamics.state, sim.core.engine.dynamics.table
    )
    fresh.core.engine.clock.tick = sim.core.engine.clock.tick
    fresh.core.engine._advance(0)


# -- state is columns


def test_eight_touching_boxes_go_on_bit_for_bit_from_their_columns() -> None:
    whole = heap()
    # One step, so that its queued commands are carried out.
    whole.step()
    assert whole.core.engine.dynamics is not None
    assert whole.core.engine.dynamics.table.size[0] > 8, "they touch"
    for tick in range(60):
        if tick % 7 == 0:
            other = heap()
            # One step, so that the queued commands are carried out; the resulting state does not
            # matter.
            other.step()
            go_on(whole, other)
            for _ in range(5):
                whole.step()
                other.step()
                assert same(whole, other), tick
        else:
            whole.step()


def test_without_the_impulses_it_goes_on_otherwise() -> None:
    """The table of contacts is needed, and the test above can fail."""
    whole, other = heap(), heap()
    other.step()
    whole.step(30)
    go_on(whole, other)
    assert other.core.engine.dynamics is not None
    other.core.engine.dynamics.table.size[0] = 0
    whole.step()
    other.step()
    assert not same(whole, other)


_scenes = st.lists(
    st.tuples(
        st.floats(-2, 4),
        st.floats(-2, 2),
        st.floats(-3, 3),
        st.floats(0.2, 0.8),
        st.floats(0.5, 10),
        st.floats(0, 0.8),
        st.floats(0, 1),
        st.tuples(*3 * [st.floats(-3, 3)]),
        st.sampled_from(["push", "throw", "pull", "rest"]),
    ),
    min_size=1,
    max_size=9,
)


def random_world(
    things: Sequence[tuple], step: float, order: Callable[[list], list] = list
) -> Simulation:
    boxes = [
        box(f"b{k}", x, y, th, size=size, mass=mass, floor_friction=mu, restitution=e)
        for k, (x, y, th, size, mass, mu, e, _, _) in enumerate(things)
    ]
    sim = Simulation(Scene(boxes=tuple(order(boxes)), segments=ROOM), step=step)
    for name, y in order([("r0", 0.5), ("r1", -0.7)]):
        robot = sim.add_robot("p3dx", name, pose=(-2.0, y, 0))
        if name == "r1":
            sim.masses.set_dynamics(name, DynamicsSpec(mass=9.0))
        robot.command(v=0.6, w=0.2 * y)

    for k, (*_, (a, b, c), how) in enumerate(things):
        if how == "push":
            sim.masses.push(f"b{k}", 10 * a, 10 * b, c)
        elif how == "throw":
            sim.masses.throw(f"b{k}", a, b, c)
        elif how == "pull":
            sim.masses.pull_to(f"b{k}", (a, b, c))

    return sim


@settings(max_examples=20, deadline=None)
@given(_scenes, st.integers(1, 40), st.sampled_from([0.1, 0.01]))
def test_any_world_goes_on_from_its_columns_at_any_tick(
    things: list[tuple], ticks: int, step: float
) -> None:
    whole, other = random_world(things, step), random_world(things, step)
    other.step()
    whole.step(ticks)
    go_on(whole, other)
    for _ in range(4):
        whole.step()
        other.step()
        assert same(whole, other)


@settings(max_examples=20, deadline=None)
@given(
    _scenes,
    st.integers(1, 30),
    st.sampled_from([0.1, 0.01]),
    st.randoms(use_true_random=False),
)
def test_the_order_of_creation_does_not_matter(
    things: list[tuple], ticks: int, step: float, random
) -> None:
    def shuffled(names: list) -> list:
        names = list(names)
        random.shuffle(names)
        return names

    one, other = random_world(things, step), random_world(things, step, shuffled)
    one.step(ticks)
    other.step(ticks)
    for name, row in one.snapshot.rows.items():
        at = other.snapshot.rows[name]
        for a, b in zip(one.core.engine.state, other.core.engine.state, strict=True):
            # The column of steering has no rows in a world without cars.
            if len(a):
                assert a[row].tobytes() == b[at].tobytes(), name


def test_others_that_come_and_go_far_away_change_nothing() -> None:
    alone, other = heap(), heap()
    for k in range(40):
        if k == 10:
            other.add_robot("amigo", "aaa", pose=(50, 50, 0))
        if k == 20:
            other.remove_robot("aaa")
        if k == 25:
            other.masses.set_dynamics("b3", other.masses.dynamics("b3"))
            alone.masses.set_dynamics("b3", alone.masses.dynamics("b3"))

        alone.step()
        other.step()
        assert (
            other.snapshot.state.pose[: len(alone.snapshot.rows)].tobytes()
            == alone.snapshot.state.pose.tobytes()
        ), k


def test_tables_grow_with_what_there_is() -> None:
    """Sixty boxes on a few squares need more pairs, contacts, walls and corners than
    the initial tables hold.
    """
    boxes = [box(f"b{k}", 0.3 * (k % 8), 0.3 * (k // 8), 0.2 * k) for k in range(60)]
    segments = np.array([[0.02 * k - 1, -2.0, 0.02 * k - 1, 5.0] for k in range(200)])
    sim = Simulation(Scene(boxes=tuple(boxes), segments=segments), step=0.01)
    sim.step(2)
    assert sim.core.engine.dynamics is not None
    assert int(sim.core.engine.dynamics.table.size[0]) > 500
    key = sim.core.engine.dynamics.table.key[
        : int(sim.core.engine.dynamics.table.size[0])
    ].tolist()
    ordered = sorted(key, key=lambda k: (k[2] >> 63, k))
    assert key == ordered and len({tuple(k) for k in key}) == len(key), (
        "sorted, each contact once"
    )


def test_what_is_taken_into_a_hand_feels_no_force_any_more() -> None:
    sim = heap()
    sim.step(5)
    assert sim.masses.wrench("b7") != (0.0, 0.0, 0.0)
    sim.hold("b7")
    sim.step()
    assert sim.masses.wrench("b7") == (0.0, 0.0, 0.0)


# -- bodies at rest


def test_what_is_at_rest_sleeps_until_something_touches_it() -> None:
    boxes = [box(f"b{k}", 0.4 * k, 0.0, floor_friction=0.4) for k in range(3)]
    sim = Simulation(Scene(boxes=tuple(boxes)), step=0.02)
    sim.step(20)
    assert sim.core.engine.dynamics is not None
    assert sim.core.engine.dynamics.state.resting.all()
    rest = sim.snapshot.state.pose.copy()
    sim.step(50)
    assert (sim.snapshot.state.pose == rest).all()
    robot = sim.add_robot("p3dx", "r", pose=(-1.5, 0, 0))
    sim.step(5)
    assert sim.core.engine.dynamics.state.resting[:3].all(), (
        "somebody far away wakes nobody"
    )
    robot.command(v=0.5)
    sim.step(400)
    moved = sim.snapshot.state.pose[:3, 0] - rest[:, 0]
    assert (moved > 0.1).all(), "the last of the row, too"
    robot.command(v=-0.5)
    sim.step(50)
    assert sim.core.engine.dynamics.state.resting[:3].all()
    sim.masses.push("b1", 0.0, 20.0)
    sim.step(20)
    assert sim.snapshot.state.pose[1, 1] > 0.05


def test_a_stopped_robot_that_was_stuck_is_not_stalled_any_more() -> None:
    sim = Simulation(Scene(segments=ROOM), step=0.05)
    robot = sim.add_robot("p3dx", "r", pose=(4.5, 0, 0))
    sim.masses.set_dynamics("r", DynamicsSpec(mass=9.0))
    robot.command(v=0.5)
    sim.step(40)
    assert robot.stalled
    robot.command.stop()
    sim.step(100)
    assert not robot.stalled


def test_no_jitter_under_a_force_that_presses_on_a_wall() -> None:
    sim = Simulation(
        Scene(boxes=(box("a", 4.0, 0.0), box("b", 4.4, 0.0)), segments=ROOM), step=0.01
    )
    sim.masses.push("a", 50.0)
    sim.step(300)
    places = []
    for _ in range(50):
        sim.step()
        places.append(sim.snapshot.state.pose.copy())

    assert np.ptp(np.array(places), axis=0).max() < 1e-6
    assert sim.snapshot.state.pose[1, 0] == pytest.approx(4.8, abs=2e-3)


def test_a_slow_impact_gives_nothing_back_and_a_fast_one_does() -> None:
    for speed, back in ((0.005, 0.0), (1.0, -0.8)):
        sim = Simulation(
            Scene(boxes=(box("a", 4.79, 0.0, restitution=0.8),), segments=ROOM),
            step=0.01,
        )
        sim.masses.throw("a", speed)
        sim.step()
        sim.masses.push("a", 0.0)
        sim.step(300)
        assert sim.snapshot.state.vel[0, 0] == pytest.approx(back * speed, abs=1e-6)


# -- single kernels


def area(part: Outline) -> float:
    return (
        sum(
            x0 * y1 - x1 * y0
            for (x0, y0), (x1, y1) in zip(part, (*part[1:], part[0]), strict=True)
        )
        / 2.0
    )


@given(
    st.lists(
        st.tuples(st.floats(0.2, 2.0), st.floats(0.1, 1.0)), min_size=3, max_size=12
    ),
    st.booleans(),
)
def test_outlines_are_cut_into_convex_pieces_of_the_same_area(
    spokes: list[tuple[float, float]], reverse: bool
) -> None:
    total, angle = sum(step for _, step in spokes), 0.0
    corners = []
    for (
        radius,
        step,
        # Make a star around the origin, which does not cross itself.
    ) in spokes:
        corners.append((radius * math.cos(angle), radius * math.sin(angle)))
        angle += 2.0 * math.pi * step / total

    star = tuple(corners[::-1] if reverse else corners)
    if max(2.0 * math.pi * step / total for _, step in spokes) > 3.0:
        # If an angle between spokes reaches π, the origin lies outside the star.
        return
    pieces = convex_pieces(star)
    assert sum(map(area, pieces)) == pytest.approx(abs(area(star)), rel=1e-9)
    for piece in pieces:
        turns = [
            area((piece[k - 2], piece[k - 1], piece[k])) for k in range(len(piece))
        ]
        assert min(turns) > 0.0, "counter-clockwise, and nowhere straight"


def test_pieces_of_outlines_that_are_none() -> None:
    assert len(convex_pieces(HOOK)) == 2
    assert convex_pieces(HOOK[::-1]) == convex_pieces(HOOK)
    assert convex_pieces(((0, 0), (1, 0), (2, 0))) == (((0.0, 0.0), (2.0, 0.0)),), (
        "a line"
    )
    assert convex_pieces(((0, 0), (1, 1), (1, 0), (0, 1))), "one that crosses itself"
    assert convex_pieces(((0, 0), (1, 0), (1, 0), (1, 1), (0, 1))) == convex_pieces(
        rectangle_at(0, 0, 1, 1)
    )


def rectangle_at(x0: float, y0: float, x1: float, y1: float) -> Outline:
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def rows(*parts: Outline) -> tuple[np.ndarray, list[int]]:
    """Return corners with normals in the form of the kernels, and the start of each
    polygon.
    """
    found, starts = [], [0]
    for part in parts:
        at = np.array(part, float)
        along = np.roll(at, -1, axis=0) - at
        along /= np.hypot(along[:, 0], along[:, 1])[:, None]
        found.append(np.column_stack([at, along[:, 1], -along[:, 0]]))
        starts.append(starts[-1] + len(part))

    return np.concatenate(found), starts


@pytest.mark.parametrize(
    ("other", "normal", "depth", "points"),
    [
        (rectangle_at(0.9, 0.2, 2, 0.6), (1, 0), 0.1, {(0.95, 0.2), (0.95, 0.6)}),
        (rectangle_at(0.9, 0.5, 2, 2), (1, 0), 0.1, {(0.95, 0.5), (0.95, 1.0)}),
        (rectangle_at(0.2, -1, 0.5, 0.05), (0, -1), 0.05, {(0.2, 0.025), (0.5, 0.025)}),
        (((0.8, 0.5), (2, -0.5), (2, 1.5)), (1, 0), 0.2, {(0.9, 0.5)}),
        # The disc touches the end of a wall.
        (((0.5, 0.98), (0.5, 3.0)), (0, 1), 0.02, {(0.5, 0.99)}),
        (
            ((-1, 0.9), (3, 0.9)),
            (0, 1),
            0.1,
            {(0.0, 0.95), (1.0, 0.95)},
            # The box lies along a wall.
        ),
    ],
)
def test_where_two_polygons_touch(
    other: Outline,
    normal: tuple[float, float],
    depth: float,
    points: set[tuple[float, float]],
) -> None:
    square = rectangle_at(0, 0, 1, 1)
    for turned in (False, True):
        corners, (a, b, c) = rows(other, square) if turned else rows(square, other)
        point = np.zeros((4, 4))
        n, *_ = manifold(corners, a, b, b, c, point)
        assert n == len(points)
        sign = -1.0 if turned else 1.0
        assert tuple(sign * point[2, :2]) == pytest.approx(normal, abs=1e-12)
        assert {(round(x, 9), round(y, 9)) for x, y in point[:n, :2].tolist()} == points
        assert point[:n, 2].max() == pytest.approx(depth)


def test_what_does_not_touch_has_no_contact() -> None:
    square = rectangle_at(0, 0, 1, 1)
    for other in (
        rectangle_at(1.001, 0, 2, 1),
        ((1.01, 1.01), (2, 1), (2, 2)),
        ((1.2, 0.9), (2.0, 2.0), (0.9, 1.2)),
    ):
        corners, (a, b, c) = rows(square, other)
        assert manifold(corners, a, b, b, c, np.zeros((4, 4)))[0] == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30))
def test_sorting(pairs: list[tuple[int, int]]) -> None:
    key, item = (
        np.array([float(k) for k, _ in pairs]),
        np.array([i for _, i in pairs], np.int64),
    )
    py(heap_sort)(key, item, len(pairs))
    assert list(zip(key.tolist(), item.tolist(), strict=True)) == sorted(
        (float(k), i) for k, i in pairs
    )


def test_walls_around_a_place_count_once() -> None:
    """A wall has an entry in every cell that it touches."""
    sim = Simulation(
        Scene(segments=np.array([[0.0, 0, 10, 0], [20, 20, 21, 21], [3, 3, 4, 3]])),
        step=0.1,
    )
    boxes = (box("b", 2.0, 0.9, size=2.0), box("c", 50.0, 50.0))
    sim.replace_scene(Scene(segments=sim.scene.segments, boxes=boxes))
    sim.masses.throw("b", 0.01)
    sim.step()
    assert sim.core.engine.dynamics is not None
    work = sim.core.engine.dynamics._work
    near = {
        tuple(round(v, 9) for v in wall) for wall in work.wall.tolist() if any(wall)
    }
    flags = work.flags[:2, -2:]
    assert (flags[:, 1] - flags[:, 0]).sum() == 1 and near == {(0.0, 0.0, 10.0, 0.0)}
    grid = sim.core.engine.grid
    assert len(grid.seg) > 3, "or each wall has one entry alone"


def test_shapes_joined_and_kept_are_those_built_at_once() -> None:
    specs = [
        BodySpec(name="a", parts=(HOOK, rectangle(1.0, 1.0))),
        BodySpec(name="b", parts=(disc(0.3),), dynamics=DynamicsSpec(mass=1.0)),
        BodySpec(name="c", parts=(((0, 0), (0, 0)),)),
        BodySpec(name="d", parts=(HOOK,), dynamics=DynamicsSpec(mass=2.0)),
    ]
    whole = build_shapes(specs)
    joined = join_shapes(build_shapes(specs[:1]), build_shapes(specs[1:]))
    kept, wanted = (
        keep_shapes(whole, np.array([0, 3])),
        build_shapes([specs[0], specs[3]]),
    )
    for a, b in ((whole, joined), (kept, wanted)):
        for x, y in zip(a, b, strict=True):
            assert x.tobytes() == y.tobytes()


# -- energy


def energy(
    sim: Simulation, masses: Sequence[float], inertias: Sequence[float]
) -> float:
    vel = sim.snapshot.state.vel[: len(masses)]
    return float(
        (
            0.5 * np.array(masses) * (vel[:, :2] ** 2).sum(axis=1)
            + 0.5 * np.array(inertias) * vel[:, 2] ** 2
        ).sum()
    )


@settings(max_examples=20, deadline=None)
@given(_scenes)
def test_contacts_bring_no_energy(things: list[tuple]) -> None:
    """Any initial overlap and velocity:

    with restitution of at most 1 and no demands, energy only falls.
    """
    sim = random_world([(*t[:8], "throw") for t in things], 0.01)
    for name in ("r0", "r1"):
        sim.remove_robot(name)
    sim.step()
    for k in range(len(things)):
        sim.masses.push(f"b{k}", 0.0)
    masses = [t[4] for t in things]
    inertias = [t[4] * area_moments((rectangle(t[3], t[3]),)).second for t in things]
    before = math.inf
    for _ in range(40):
        sim.step()
        now = energy(sim, masses, inertias)
        assert now <= before * 1.02 + 1e-9
        before = now


# -- Chipmunk


def both(
    make: Callable[[], Simulation], seconds: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return poses after a time by our contacts and by Chipmunk's."""
    ours, theirs = make(), make()
    ChipmunkDynamics.take_over(theirs.core.engine)
    for sim in (ours, theirs):
        sim.step(round(seconds / sim.core.engine.clock.dt))
    return ours.snapshot.state.pose.copy(), theirs.snapshot.state.pose.copy()


def test_without_contacts_it_is_chipmunk_to_rounding() -> None:
    """Forces, motors, controllers, damping and floor friction: the same formulas in the
    same order.

    The substeps must have a constant length: Chipmunk loses some friction where it
    changes.
    """

    def make() -> Simulation:
        controller = PoseController()
        boxes = (
            box("a", 0, 0, mass=3.0),
            box("b", 10, 0, floor_friction=0.3),
            box("c", 20, 0, linear_damping=0.4, angular_damping=0.2),
            box("d", 30, 0, controller=controller),
            box("e", 40, 0, center=(0.1, -0.05)),
        )
        sim = Simulation(Scene(boxes=boxes), step=0.01)
        robot = sim.add_robot("p3dx", "r", pose=(50, 0, 0))
        sim.masses.set_dynamics("r", DynamicsSpec(mass=9.0))
        robot.command(v=0.4, w=0.3)
        sim.masses.push("a", 1.0, -0.5, 0.1)
        sim.masses.push("b", 10.0, 0.0, 0.5)
        sim.masses.throw("c", 0.5, 0.2, 1.0)
        sim.masses.pull_to("d", (30.1, 0.05, 0.3))
        sim.masses.push("e", 1.0, 0.0, 0.2)
        return sim

    ours, theirs = both(make, 2.0)
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("step", [0.1, 0.01])
@pytest.mark.parametrize(
    ("boxes", "seconds"), [(3, 3.0), (3, 9.0), (1, 9.0), (1, 14.0)]
)
def test_a_robot_pushes_boxes_as_in_chipmunk(
    boxes: int, seconds: float, step: float
) -> None:
    """On the move; one box also against the wall with the robot stuck (a row gives way
    sideways by chance).

    Each contact may lie anywhere within the slop of 0.5 mm, and a jam is found within 3
    mm and the path of 1.5 substeps (1.2 mm). Allowed are 1 cm and 0.01 rad.
    """

    def make() -> Simulation:
        things = tuple(
            box(f"b{k}", 0.5 + 0.45 * k, 0.0, floor_friction=0.3) for k in range(boxes)
        )
        sim = Simulation(Scene(boxes=things, segments=ROOM), step=step)
        sim.add_robot("p3dx", "r", pose=(-1, 0, 0)).command(v=0.4)
        return sim

    ours, theirs = both(make, seconds)
    assert ours[:, :2] == pytest.approx(theirs[:, :2], abs=0.01)
    assert ours[:, 2] == pytest.approx(theirs[:, 2], abs=0.01)


@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(6))
def test_two_that_meet_part_as_in_chipmunk(seed: int, e: float) -> None:
    """An off-centre impact of two boxes depends on its time and its contact points.

    The solvers may detect it up to 2 ms apart, and Chipmunk takes two points for nearly
    parallel edges. Tolerances: 3 cm, half a second after an impact at 1 m/s, and
    0.1 rad.
    """
    rng = np.random.default_rng(seed)
    y, th, mass = rng.uniform(-0.3, 0.3), rng.uniform(0.1, 0.6), rng.uniform(1, 4)

    def make() -> Simulation:
        boxes = (
            box("a", -0.6, 0.0, 0.0, restitution=math.sqrt(e), friction=0.3),
            box("b", 0.0, y, th, mass=mass, restitution=math.sqrt(e)),
        )
        sim = Simulation(Scene(boxes=boxes), step=0.01)
        sim.masses.throw("a", 1.0)
        sim.step(10)
        sim.masses.push("a", 0.0)
        return sim

    ours, theirs = both(make, 0.7)
    assert ours[:, :2] == pytest.approx(theirs[:, :2], abs=0.03)
    assert ours[:, 2] == pytest.approx(theirs[:, 2], abs=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_a_heap_of_boxes_comes_to_rest_as_in_chipmunk(seed: int) -> None:
    """Details are chaotic, so sums are compared:

    the rest position of the heap, the displacement of its boxes, no overlap.
    """
    rng = np.random.default_rng(seed)
    places = [
        (
            0.55 * (k % 4) + rng.uniform(0, 0.1),
            0.55 * (k // 4) - 0.8 + rng.uniform(0, 0.1),
        )
        for k in range(12)
    ]
    speeds = rng.uniform(-1, 1, (12, 3))

    def make() -> Simulation:
        boxes = tuple(
            box(f"b{k}", x, y, 0.2 * k, floor_friction=0.3)
            for k, (x, y) in enumerate(places)
        )
        sim = Simulation(Scene(boxes=boxes, segments=ROOM), step=0.02)
        for k, speed in enumerate(speeds.tolist()):
            sim.masses.throw(f"b{k}", *speed)
        sim.step(20)
        for k in range(12):
            sim.masses.push(f"b{k}", 0.0)
        return sim

    start = np.array(places)
    ours, theirs = both(make, 4.0)
    assert ours[:, :2].mean(axis=0) == pytest.approx(
        theirs[:, :2].mean(axis=0), abs=0.06
    )
    ways = [np.hypot(*(p[:, :2] - start).T).mean() for p in (ours, theirs)]
    assert ways[0] == pytest.approx(ways[1], rel=0.2)


# -- walls of several segments


def chain(corners: Sequence[tuple[float, float]], pieces: int) -> np.ndarray:
    """Return walls along a line through `corners`, each side cut into `pieces`.

    Every third piece is reversed.
    """
    ends = []
    for (ax, ay), (bx, by) in pairwise(corners):
        along = np.linspace(0.0, 1.0, pieces + 1)
        x, y = ax + along * (bx - ax), ay + along * (by - ay)
        ends += [[x[k], y[k], x[k + 1], y[k + 1]] for k in range(pieces)]

    return np.array([[*e[2:], *e[:2]] if k % 3 == 2 else e for k, e in enumerate(ends)])


@pytest.mark.parametrize("th", [0.0, 0.7, -2.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize(
    ("outline", "tilt"), [("box", 0.0), ("box", math.pi / 4), ("disc", 0.0)]
)
def test_a_wall_of_many_segments_is_slid_along_as_one(
    th: float, side: float, outline: str, tilt: float
) -> None:
    c, s = math.cos(th), math.sin(th)

    def slide(pieces: int) -> tuple[Pose, tuple[float, float, float]]:
        half = 0.2 * (abs(math.cos(tilt)) + abs(math.sin(tilt)))
        y = side * (half + 1e-4)
        spec = DynamicsSpec(mass=1.0, friction=0.0)
        thing = BoxObject(
            name="b",
            pose=Pose(-1.0 * c - y * s, -1.0 * s + y * c, th + tilt),
            length=0.4,
            width=0.4,
            dynamics=spec,
            parts=(disc(0.2),) if outline == "disc" else (),
        )
        walls = chain([(-3.0 * c, -3.0 * s), (5.0 * c, 5.0 * s)], pieces)
        sim = Simulation(Scene(segments=walls, boxes=(thing,)), step=0.1)
        sim.masses.throw("b", 1.0 * c, 1.0 * s)
        sim.step()
        # The force points into the wall.
        sim.masses.push("b", side * 20.0 * s, -side * 20.0 * c)
        sim.step(30)
        state = sim.snapshot.state
        return Pose(*state.pose[0].tolist()), tuple(state.vel[0].tolist())

    (whole, _), (cut, (vx, vy, _)) = slide(1), slide(20)
    ways = [c * there.x + s * there.y for there in (whole, cut)]
    # A polygon rocks on its corners, so its tolerance is larger.
    if outline == "disc":
        assert ways[1] == pytest.approx(ways[0], abs=1e-3)
    elif tilt == 0.0:
        assert tuple(cut) == pytest.approx(tuple(whole), abs=1e-6)
        assert math.hypot(vx, vy) == pytest.approx(1.0, abs=1e-6), (
            "nothing holds it back"
        )
    # The tilted box first turns until one side lies against the wall.
    else:
        assert ways[1] == pytest.approx(ways[0], abs=0.02)


@pytest.mark.parametrize("pieces", [1, 10])
@pytest.mark.parametrize("tilt", [0.0, 0.001, -0.001])
def test_what_slides_into_a_corner_stops_there(pieces: int, tilt: float) -> None:
    sim = Simulation(
        Scene(
            segments=chain([(-2.0, 0.0), (1.0, 0.0), (1.0, 2.0)], pieces),
            boxes=(box("b", 0.0, 0.201, tilt, friction=0.0),),
        ),
        step=0.05,
    )
    sim.masses.push("b", 8.0, -8.0)
    sim.step(100)
    assert tuple(sim.snapshot.state.pose[0]) == pytest.approx((0.8, 0.2, 0.0), abs=2e-3)
    assert abs(sim.snapshot.state.vel[0]).max() < 1e-3


@pytest.mark.parametrize("tilt", [0.0, 0.05, -0.05, 0.3, -0.3])
@pytest.mark.parametrize("up", [-0.002, 0.05, -0.15])
def test_an_outer_corner_pushes_to_its_side_alone(tilt: float, up: float) -> None:
    """A body pushed against the side of a pillar also meets its top, at a joint that is
    not a corner for it.
    """

    def pushed(walls: np.ndarray) -> np.ndarray:
        sim = Simulation(
            Scene(
                segments=walls,
                boxes=(box("b", 0.32, up, tilt, friction=0.0, mass=1.0),),
            ),
            step=0.01,
        )
        sim.masses.push("b", -5.0, 0.0)
        sim.step(30)
        return sim.snapshot.state.pose[0].copy()

    pillar = chain([(0.0, 0.0), (-1.0, 0.0), (-1.0, -1.0), (0.0, -1.0), (0.0, 0.0)], 1)
    alone = chain([(0.0, -1.0), (0.0, 0.0)], 1)
    assert tuple(pushed(pillar)) == pytest.approx(tuple(pushed(alone)), abs=0.01)
