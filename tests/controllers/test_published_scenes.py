"""Controllers of published methods on the scenes of their papers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from botyard.controllers.crowd import stoppable_speed
from botyard.errors import WorldError
from botyard.formats.models import find_robot
from botyard.model.kinematics import Axes
from botyard.model.mapbuilder import MapBuilder
from botyard.model.scene import Scene
from botyard.model.world import thing
from botyard.navigation.crowds import Forces
from botyard.sim.simulation import Robot, Simulation

WALKER = thing(
    tuple(
        (0.25 * math.cos(math.pi * k / 6), 0.25 * math.sin(math.pi * k / 6))
        for k in range(12)
    )
)

P3DX = find_robot("p3dx")
NO_TURN = replace(P3DX, limits=replace(P3DX.limits, max_speed=Axes(1.0, 0.0, 0.0)))


def least_gap(sim: Simulation) -> float:
    """Return the least distance between robots as discs, m."""
    robots = list(sim.robots.values())
    return min(
        math.dist(a.truth[:2], b.truth[:2]) - a.spec.radius - b.spec.radius
        for a, b in itertools.combinations(robots, 2)
    )


def watch(sim: Simulation, seconds: float) -> tuple[float, int]:
    """Run a simulation and return the least gap between robots, m, and the number of
    stalls.
    """
    gap, stalls = math.inf, 0
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        gap = min(gap, least_gap(sim)) if len(sim.robots) > 1 else gap
        stalls += int(sim.fleet.stalled.sum())

    return gap, stalls


def on_a_circle(
    model: object, controller: str, count: int, radius: float, **options: object
) -> Simulation:
    """Robots that cross to the opposite side:

    the circle exchange of van den Berg et al. 2011, §6.
    """
    sim = Simulation(odometry_error="none")
    for k in range(count):
        a = 2 * math.pi * k / count
        x, y = radius * math.cos(a), radius * math.sin(a)
        robot = sim.add_robot(model, f"r{k}", pose=(x, y, a + math.pi))
        robot.set_controller(controller, points=[[-x, -y]], order="once", **options)

    return sim


def at_goals(sim: Simulation, count: int, radius: float) -> float:
    """Return the greatest distance of a robot of the circle from its goal, m."""
    return max(
        math.dist(
            sim.robots[f"r{k}"].truth[:2],
            (-radius * math.cos(a), -radius * math.sin(a)),
        )
        for k in range(count)
        for a in [2 * math.pi * k / count]
    )


@pytest.mark.parametrize(
    ("model", "controller", "seconds"),
    [(WALKER, "orca", 40), ("amigo", "orca", 60), (WALKER, "socialforce", 40)],
    ids=["walkers-orca", "amigo-orca", "walkers-socialforce"],
)
def test_circle_exchange_without_collision(
    model: object, controller: str, seconds: float
) -> None:
    sim = on_a_circle(model, controller, 10, 4.0, speed=0.6)
    gap, stalls = watch(sim, seconds)
    assert gap > 0.0 and stalls == 0
    assert at_goals(sim, 10, 4.0) < 0.5


def test_those_who_wait_for_each_other_in_a_ring_give_way() -> None:
    """Ten fast walkers reach the middle at once, side by side.

    None could go on unless another one gives way.
    """
    sim = on_a_circle(WALKER, "orca", 10, 5.0, speed=1.4)
    sim.step(80)
    assert np.abs(sim.fleet.velocities[:, :2]).max() < 0.2, "they stand"
    gap, _ = watch(sim, 40)
    assert gap > 0.0 and at_goals(sim, 10, 5.0) < 0.5


@pytest.mark.parametrize("controller", ["orca", "socialforce"])
def test_two_groups_pass_each_other_in_a_corridor(controller: str) -> None:
    sim = Simulation(
        MapBuilder("corridor").rectangle(-8, -1.5, 16, 3).scene(), odometry_error="none"
    )
    goals = {}
    for k in range(4):
        for side in (-1, 1):
            y = (k % 2 - 0.5) * 1.2 + 0.15 * side
            robot = sim.add_robot(
                WALKER, f"{side}.{k}", pose=(side * (5.0 + k // 2 * 1.2), y, 0.0)
            )
            # The robot in front drives the farthest, so that no robot stops in the path of another
            # one.
            goals[robot.name] = (
                -side * (6.2 - k // 2 * 1.2),
                y,
            )
            robot.set_controller(
                controller, points=[goals[robot.name]], order="once", speed=0.8
            )

    gap, stalls = watch(sim, 45)
    assert gap > 0.0 and stalls == 0
    assert all(
        math.dist(sim.robots[name].truth[:2], goal) < 0.5
        for name, goal in goals.items()
    )


@pytest.mark.parametrize("controller", ["orca", "socialforce"])
def test_two_streams_cross(controller: str) -> None:
    sim = Simulation(odometry_error="none")
    goals = {}
    for k in range(4):
        for name, start, goal in (
            (f"east{k}", (-5.0 - 1.1 * k, 0.1), (5.0, 0.1)),
            (f"north{k}", (0.1, -5.0 - 1.1 * k), (0.1, 5.0)),
        ):
            goal = (
                goal[0] - 1.1 * k if goal[0] > 1 else goal[0],
                goal[1] - 1.1 * k if goal[1] > 1 else goal[1],
            )
            robot = sim.add_robot(WALKER, name, pose=(*start, 0.0))
            robot.set_controller(controller, points=[goal], order="once", speed=0.8)
            goals[name] = goal

    gap, stalls = watch(sim, 40)
    assert gap > 0.0 and stalls == 0
    assert all(
        math.dist(sim.robots[name].truth[:2], goal) < 0.5
        for name, goal in goals.items()
    )


@pytest.mark.parametrize("crossing", [False, True], ids=["head-on", "crossing"])
@pytest.mark.parametrize("offset", [0.0, 0.15])
@pytest.mark.parametrize(("model", "far"), [("p3dx", 3.0), ("seekur", 4.5)])
def test_social_forces_stop_robots_with_slow_ramps_in_time(
    model: str, far: float, offset: float, crossing: bool
) -> None:
    """At the default speed; at the speed of a pedestrian they would brake too late."""
    sim = Simulation(odometry_error="none")
    starts = (
        (-far, 0.0, 0.0),
        (offset, -far, math.pi / 2) if crossing else (far, offset, math.pi),
    )
    goals = ((far, 0.0), (offset, far) if crossing else (-far, offset))
    for k, (start, goal) in enumerate(zip(starts, goals, strict=True)):
        sim.add_robot(model, f"r{k}", pose=start).set_controller(
            "socialforce", points=[goal], order="once"
        )

    gap, stalls = watch(sim, 50)
    assert gap > 0.1 and stalls == 0
    assert all(
        math.dist(sim.robots[f"r{k}"].truth[:2], goal) < 0.3
        for k, goal in enumerate(goals)
    )


def test_the_speed_at_which_forces_stop_a_robot_follows_from_its_ramp() -> None:
    forces = Forces()
    assert stoppable_speed(WALKER, forces) == 1.0, "no ramp"
    for deceleration in (0.2, 0.6):
        limits = replace(P3DX.limits, decel=Axes(deceleration, 0.0, 1.0))
        v = stoppable_speed(replace(P3DX, limits=limits), forces)
        assert 2 * v * v / (2 * deceleration) == pytest.approx(
            0.08 * math.log(25.0 * 0.5 / v)
        ), "both brake"

    assert stoppable_speed(P3DX, Forces(range=0.8)) > stoppable_speed(P3DX, forces)
    slow = replace(P3DX, limits=replace(P3DX.limits, max_speed=Axes(0.2, 0.0, 1.0)))
    assert stoppable_speed(slow, forces) == 0.2
    assert stoppable_speed(P3DX, Forces(strength=0.0)) == 1.0, (
        "nothing stops it at any speed"
    )


@pytest.mark.parametrize(
    ("model", "controller"),
    [
        (WALKER, "socialforce"),
        (WALKER, "orca"),
        ("p3dx", "socialforce"),
        ("p3dx", "dwa"),
        ("p3dx", "vfh"),
    ],
)
@pytest.mark.parametrize("pause", [0.0, 1e4])
def test_a_robot_stays_at_its_last_point(
    model: object, controller: str, pause: float
) -> None:
    """Robots that others push aside return to their goals, also after a pause."""
    sim = Simulation(odometry_error="none")
    lasers = ["lms200"] if model == "p3dx" else None
    one = sim.add_robot(model, "one", pose=(-1.0, 0.0, 0.0), lasers=lasers)
    points = [[0.0, 0.0], [5.0, 5.0]] if pause else [[0.0, 0.0]]
    one.set_controller(
        controller, points=points, order="back" if pause else "once", pause=pause
    )
    for k in range(2):
        y = -0.6 + 1.2 * k
        other = sim.add_robot(WALKER, f"o{k}", pose=(-4.0, y, 0.0))
        other.set_controller(
            "socialforce", points=[[4.0, y], [-4.0, y]], order="back", speed=0.6
        )

    away = []
    for _ in range(600):
        sim.step()
        away.append(math.dist(one.truth[:2], (0.0, 0.0)))

    assert max(away[80:]) < 0.8 and sum(away[80:]) / 520 < 0.3


def test_after_a_pause_at_a_random_place_the_robot_goes_on() -> None:
    sim = Simulation(
        MapBuilder("hall").rectangle(-4, -4, 8, 8).scene(),
        seed=2,
        odometry_error="none",
    )
    robot = sim.add_robot(WALKER, "one")
    robot.set_controller("orca", pause=2.0)
    way = []
    for _ in range(900):
        sim.step()
        way.append(robot.truth[:2])

    moved = np.hypot(*np.diff(way, axis=0).T) / sim.dt
    assert (moved < 0.2).sum() > 10, "it pauses, and goes to the very place meanwhile"
    assert moved[600:].max() > 0.9, "and goes on"


@pytest.mark.parametrize("controller", ["orca", "socialforce", "dwa", "vfh"])
def test_how_near_a_goal_is_reached_is_measured_at_the_robot(controller: str) -> None:
    """The disc that the method moves has its centre half a radius ahead."""
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx", "one", pose=(0.0, 0.0, 0.0), lasers=["lms200"])
    robot.set_controller(controller, points=[[3.0, 0.0]], order="once", reached=0.1)
    watch(sim, 20)
    assert math.dist(robot.truth[:2], (3.0, 0.0)) <= 0.1


def cluttered() -> tuple[Scene, tuple[float, float]]:
    """Pillars between a start and a goal, and walls around them."""
    builder = MapBuilder("pillars").rectangle(-1.5, -3, 9, 6)
    for x, y in ((1.5, 0.1), (2.8, -1.2), (2.9, 1.3), (4.2, 0.0), (5.2, -1.4)):
        builder.rectangle(x - 0.2, y - 0.2, 0.4, 0.4)
    return builder.scene(), (6.5, 0.0)


@pytest.mark.parametrize("controller", ["dwa", "vfh"])
def test_a_way_among_obstacles_by_laser(controller: str) -> None:
    scene, goal = cluttered()
    sim = Simulation(scene, odometry_error="none")
    robot = sim.add_robot("p3dx", "one", pose=(0.0, 0.0, 0.0), lasers=["lms200"])
    robot.set_controller(controller, points=[goal], order="once")
    _, stalls = watch(sim, 60)
    assert stalls == 0 and math.dist(robot.truth[:2], goal) < 0.4


@pytest.mark.parametrize("controller", ["dwa", "vfh"])
@pytest.mark.parametrize("th", [0.0, 1.57])
@pytest.mark.parametrize("width", [1.2, 1.5])
def test_along_a_corridor_by_laser(controller: str, width: float, th: float) -> None:
    sim = Simulation(
        MapBuilder("corridor").rectangle(-1, -width / 2, 9, width).scene(),
        odometry_error="none",
    )
    robot = sim.add_robot("p3dx", "one", pose=(0.0, 0.05, th), lasers=["lms200"])
    robot.set_controller(controller, points=[(6.0, 0.0)], order="once", speed=0.5)
    assert watch(sim, 20)[1] == 0 and math.dist(robot.truth[:2], (6.0, 0.0)) < 0.4


@pytest.mark.parametrize("controller", ["dwa", "vfh"])
def test_through_a_door_by_laser(controller: str) -> None:
    builder = (
        MapBuilder("door")
        .rectangle(-3, -3, 8, 6)
        .line((1, -3), (1, -0.6))
        .line((1, 0.6), (1, 3))
    )
    sim = Simulation(builder.scene(), odometry_error="none")
    robot = sim.add_robot("p3dx", "one", pose=(-1.5, 0.5, 0.0), lasers=["lms200"])
    robot.set_controller(controller, points=[(3.0, 0.0)], order="once")
    assert watch(sim, 20)[1] == 0 and math.dist(robot.truth[:2], (3.0, 0.0)) < 0.4


@pytest.mark.parametrize("controller", ["dwa", "vfh"])
def test_a_wall_without_a_way_around_is_not_touched(controller: str) -> None:
    sim = Simulation(
        MapBuilder("box").rectangle(-2, -2, 4, 4).scene(), odometry_error="none"
    )
    robot = sim.add_robot("p3dx", "one", pose=(-1.0, 0.0, 0.0), lasers=["lms200"])
    robot.set_controller(controller, points=[(4.0, 0.0)], order="once")
    assert watch(sim, 30)[1] == 0


def follow_path(
    points: list[tuple[float, float]],
    pose: tuple[float, float, float],
    seconds: float,
    **options: object,
) -> tuple[Robot, np.ndarray]:
    sim = Simulation(odometry_error="none", step=0.05)
    robot = sim.add_robot("p3dx", "one", pose=pose)
    robot.set_controller("purepursuit", points=points, **options)
    way = []
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        way.append((*robot.truth, robot.velocity.vx, robot.velocity.w))

    return robot, np.array(way)


def test_pure_pursuit_of_a_circle_has_its_curvature() -> None:
    circle = [
        (2 * math.cos(a), 2 * math.sin(a))
        for a in np.linspace(0, 2 * math.pi, 180, endpoint=False)
    ]
    _, way = follow_path(
        circle, (2.0, 0.0, math.pi / 2), 60, order="loop", speed=0.4, lookahead=0.6
    )
    late = way[400:]
    assert np.hypot(late[:, 0], late[:, 1]) == pytest.approx(2.0, abs=0.02), (
        "for more than a round"
    )
    assert late[:, 4] / late[:, 3] == pytest.approx(0.5, abs=0.03)


def test_pure_pursuit_of_a_line_converges_and_stops_at_its_end() -> None:
    robot, way = follow_path([(0, 0), (8, 0)], (0.0, 0.5, 0.0), 40, speed=0.4)
    assert abs(way[-1, 1]) < 0.02 and math.dist(robot.truth[:2], (8, 0)) < 0.15
    assert way[-1, 3] == 0.0 and way[:, 1].min() > -0.1, (
        "it hardly swings beyond the line"
    )


@pytest.mark.parametrize(
    ("model", "controller", "options", "message"),
    [
        (
            "p3dx",
            "orca",
            {"horizon": 0.0},
            r"one: controller orca: horizon: expected a number greater than 0 s, found 0\.0",
        ),
        (
            "p3dx",
            "orca",
            {"points": []},
            "points: expected at least 1, found 0",
        ),
        ("p3dx", "orca", {"order": "forth"}, "order: expected one of loop, back, once"),
        (
            "p3dx",
            "socialforce",
            {"range": 0.0},
            "one: controller socialforce: range: expected a number greater than 0 m",
        ),
        (
            "p3dx",
            "socialforce",
            {"speed": -1.0},
            "speed: expected a number greater than 0 m/s",
        ),
        (
            "p3dx",
            "socialforce",
            {"area": [0, 1, 2]},
            "area: expected four numbers x0, y0, x1, y1, m, found 3",
        ),
        (WALKER, "dwa", {}, "controller dwa: expected a robot with a laser"),
        (
            "p3dx",
            "dwa",
            {"heading": -1.0},
            "heading: expected a number of at least 0, found -1",
        ),
        (
            "p3dx",
            "vfh",
            {"window": 0.1},
            "controller vfh: window: expected a number greater than 0",
        ),
        (
            "p3dx",
            "purepursuit",
            {"points": [[0, 0]]},
            "points: expected at least 2, found 1",
        ),
        (
            "p3dx",
            "purepursuit",
            {"points": [[0, 0], [1, 1]], "order": "back"},
            "order: expected one of loop, once, found 'back'",
        ),
        (
            "p3dx",
            "purepursuit",
            {"points": [[0, 0], [1, math.nan]]},
            r"points\[1\]: y: expected a finite number, found nan",
        ),
        (
            "p3dx",
            "orca",
            {"points": 5},
            r"orca: points: expected a list of points \[x, y\], found 5",
        ),
        (
            "p3dx",
            "vfh",
            {"points": [[1]]},
            r"vfh: points\[0\]: expected two or three numbers",
        ),
        (
            "p3dx",
            "socialforce",
            {"points": [[1e308, 0]]},
            r"points\[0\]: x: expected a number from -1e\+07 to 1e\+07 m",
        ),
        (
            "p3dx",
            "orca",
            {"safety": 1e9},
            "safety: expected a number from 0 to 100 m, found 1000000000.0",
        ),
        (
            "p3dx",
            "dwa",
            {"clearance": math.inf},
            "clearance: expected a number of at least 0, found inf",
        ),
        ("p3dx", "dwa", {"clearance": math.nan}, "clearance: expected .* found nan"),
        ("p3dx", "dwa", {"velocity": math.nan}, "velocity: expected .* found nan"),
        (
            "p3dx",
            "socialforce",
            {"strength": math.inf},
            "strength: expected .* found inf",
        ),
        (
            "p3dx",
            "dwa",
            {"heading": 0, "clearance": 0, "velocity": 0},
            "expected at least one above 0",
        ),
        (
            "p3dx",
            "dwa",
            {"heading": "x"},
            "controller dwa: heading: expected a number of at least 0, found 'x'",
        ),
        (
            "p3dx",
            "orca",
            {"speed": "x"},
            "controller orca: speed: expected a number greater than 0 m/s, found 'x'",
        ),
        ("p3dx", "orca", {"speed": math.inf}, "speed: expected .* found inf"),
        ("p3dx", "orca", {"speed": True}, "speed: expected .* found True"),
        ("p3dx", "orca", {"reached": math.inf}, "reached: expected .* found inf"),
        (
            "p3dx",
            "orca",
            {"pause": -1},
            "pause: expected a number of at least 0 s, found -1",
        ),
        ("p3dx", "orca", {"safety": "x"}, "safety: expected .* found 'x'"),
        (
            "p3dx",
            "orca",
            {"points": ["12", "34"]},
            r"points\[0\]: expected two or three numbers",
        ),
        (
            "p3dx",
            "socialforce",
            {"relaxation": "x"},
            "controller socialforce: relaxation: expected .* found 'x'",
        ),
        ("p3dx", "vfh", {"window": math.inf}, "window: expected .* found inf"),
        (
            "p3dx",
            "purepursuit",
            {"points": [[0, 0], [1, 0]], "lookahead": math.nan},
            "lookahead: expected .* found nan",
        ),
        (NO_TURN, "vfh", {}, "expected a robot that drives and turns"),
        (NO_TURN, "orca", {}, "expected a robot that drives and turns"),
    ],
)
def test_wrong_options(
    model: object, controller: str, options: dict[str, object], message: str
) -> None:
    robot = Simulation().add_robot(
        model, "one", lasers=None if model is WALKER else ["lms200"]
    )
    with pytest.raises(WorldError, match=message):
        robot.set_controller(controller, **options)


@pytest.mark.parametrize(
    "controller", ["orca", "socialforce", "dwa", "vfh", "purepursuit"]
)
def test_states_go_on_where_they_were(controller: str) -> None:
    scene, _ = cluttered()
    options = (
        {"points": [[3.0, 0.0], [0.0, 0.5], [3.0, 2.0]]}
        if controller == "purepursuit"
        else {}
    )

    def world() -> Simulation:
        sim = Simulation(scene, seed=5)
        for k in range(2):
            robot = sim.add_robot(
                "p3dx", f"r{k}", pose=(0.0, -1.0 + 2.0 * k, 0.0), lasers=["lms200"]
            )
            robot.set_controller(controller, **options)

        return sim

    one = world()
    one.step(60)
    state = one.save_state()
    one.step(60)
    other = world()
    other.restore(state)
    other.step(60)
    assert np.array_equal(one.fleet.poses, other.fleet.poses)
    assert not np.array_equal(one.fleet.poses, world().fleet.poses), "it has moved"


@pytest.mark.parametrize("step", [0.1, 0.02])
def test_social_forces_take_a_walker_where_the_equation_says(step: float) -> None:
    """A lone walker: x = v0 (t − τ (1 − exp(−t / τ))).

    Velocities at the ends of steps of 0.1 s would put it 5 cm ahead.
    """
    sim = Simulation(odometry_error="none", step=step)
    robot = sim.add_robot(WALKER, "one", pose=(0.0, 0.0, 0.0))
    robot.set_controller("socialforce", points=[(20.0, 0.0)], order="once", speed=1.0)
    for _ in range(round(3.0 / step)):
        sim.step()
        t = sim.time
        assert math.hypot(*robot.truth[:2]) == pytest.approx(
            t - 0.5 * (1.0 - math.exp(-t / 0.5)), abs=0.01
        )


def test_social_forces_of_two_do_not_depend_on_the_step() -> None:
    ways = []
    for step in (0.1, 0.002):
        sim = Simulation(odometry_error="none", step=step, seed=3)
        for name, start, goal in (
            ("a", (-3.0, 0.0, 0.0), (6.0, 0.0)),
            ("b", (3.0, 0.9, math.pi), (-6.0, 0.9)),
        ):
            sim.add_robot(WALKER, name, pose=start).set_controller(
                "socialforce", points=[goal[:2]], order="once", speed=1.0
            )

        way = []
        for _ in range(40):
            sim.step(round(0.1 / step))
            way.append([robot.truth[:2] for robot in sim.robots.values()])

        ways.append(np.array(way))

    assert np.hypot(*(ways[0] - ways[1]).T).max() < 0.02, "it was more than 5 cm"
