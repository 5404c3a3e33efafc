"""Robots that drive to goals around walls and others."""

from __future__ import annotations

import itertools
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from botyard.errors import ArgumentError, WorldError
from botyard.model.mapbuilder import MapBuilder
from botyard.model.scene import Scene
from botyard.navigation.planning import BLOCKED, Costmap, length
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.trips import Trip, TripState
from tests.journaled import watching


def two_rooms(*, door: float = 1.0, other: float = 0.0) -> Scene:
    """Return two rooms of 8 m × 8 m, with a door around (8, 1), and one around (8, 7)."""
    walls = MapBuilder("rooms")
    walls.rectangle(0.0, 0.0, 16.0, 8.0)
    walls.line((8.0, 0.0), (8.0, 1.0 - door / 2))
    walls.line((8.0, 1.0 + door / 2), (8.0, 7.0 - other / 2))
    walls.line((8.0, 7.0 + other / 2), (8.0, 8.0))
    return walls.scene()


def trip_of(robot: Robot) -> Trip:
    trip = robot.trip
    assert trip is not None
    return trip


def drive(sim: Simulation, seconds: float, *, until: TripState | None = None) -> None:
    """Step until all trips have a state, without a contact."""
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        assert not any(robot.stalled for robot in sim.robots.values())
        if until is not None and all(
            trip_of(robot).state is until for robot in sim.robots.values()
        ):
            return
    assert until is None, {n: r.trip for n, r in sim.robots.items()}


@pytest.mark.parametrize("model", ["p3dx", "amigo"])
def test_a_robot_drives_around_a_wall_and_turns_to_the_heading(model: str) -> None:
    sim = Simulation(two_rooms(), odometry_error="none")
    robot = sim.add_robot(model, "ann", pose=(2.0, 6.0, 1.0))
    assert robot.trip is None
    robot.go_to(14.0, 6.0, math.pi / 2, speed=0.4)
    sim.step()
    trip = trip_of(robot)
    assert trip.state == "driving" and trip.goal == (14.0, 6.0)
    assert trip.heading == math.pi / 2 and trip.goals_reached == 0
    # Through the door, not along the straight line.
    straight = math.hypot(6.0, 4.5) * 2
    assert straight < trip.distance_left < straight * 1.1
    assert length(np.array(trip.path)) == pytest.approx(trip.distance_left, abs=0.05)
    drive(sim, 90.0, until=TripState.TURNING)
    drive(sim, 30.0, until=TripState.ARRIVED)
    x, y, th = robot.truth
    assert math.hypot(x - 14.0, y - 6.0) <= 0.2
    assert abs(math.remainder(th - math.pi / 2, math.tau)) <= 0.1
    drive(sim, 2.0)
    assert robot.velocity.vx == 0.0 and trip_of(robot).state is TripState.ARRIVED
    assert trip_of(robot).replans == 0 and trip_of(robot).goals_reached == 1
    robot.set_controller(None)
    assert robot.trip is None


def test_goals_without_a_path_are_refused_until_the_map_opens() -> None:
    sim = Simulation(two_rooms(door=0.3))
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 6.0, 0.0))
    robot.go_to(14.0, 6.0)
    drive(sim, 2.0)
    trip = trip_of(robot)
    assert trip.state is TripState.NO_PATH and trip.path == ()
    nearest = re.search(
        r"no passage.*nearest free place is \((.*), (.*)\)", trip.message
    )
    assert nearest and float(nearest[1]) == pytest.approx(7.6, abs=0.1)
    assert robot.truth[:2] == pytest.approx((2.0, 6.0)), "it stands"
    sim.replace_scene(two_rooms())
    drive(sim, 1.0)
    assert trip_of(robot).state is TripState.DRIVING and not trip_of(robot).message
    robot.go_to(15.95, 6.0)
    sim.step()
    assert "does not fit at the goal" in trip_of(robot).message


def test_a_queue_of_goals_with_pauses_and_a_patrol() -> None:
    sim = Simulation(two_rooms(), odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
    goals = [[4.0, 2.0], [4.0, 4.0, 0.0], [2.0, 4.0]]
    robot.set_controller("go_to", points=goals, pause=1.0)
    paused = 0.0
    for _ in range(600):
        sim.step()
        paused += sim.dt * (trip_of(robot).state is TripState.PAUSED)
    assert trip_of(robot).state is TripState.ARRIVED
    assert trip_of(robot).goals_reached == 3 and paused == pytest.approx(2.0, abs=0.21)
    robot.set_controller("go_to", points=goals, order="loop")
    for _ in range(900):
        sim.step()
    assert trip_of(robot).goals_reached > 4


def test_a_blocked_door_makes_it_take_the_other_one() -> None:
    sim = Simulation(two_rooms(other=1.0), odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(5.0, 2.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(8.0, 1.0, 0.0)).go_to(8.0, 1.0)
    robot.go_to(11.0, 2.0)
    states = set()
    for _ in range(900):
        sim.step()
        assert not robot.stalled
        states.add(trip_of(robot).state)
    assert states == {TripState.DRIVING, TripState.BLOCKED, TripState.ARRIVED}
    assert trip_of(robot).replans >= 1
    # With the only door blocked it waits, and goes on when the door is free.
    sim = Simulation(two_rooms(), odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(5.0, 2.0, 0.0))
    bob = sim.add_robot("p3dx", "bob", pose=(8.0, 1.0, 0.0))
    robot.go_to(11.0, 2.0)
    sim.step(300)
    assert trip_of(robot).state is TripState.BLOCKED and robot.truth.x < 8.0
    bob.go_to(12.0, 6.0)
    sim.step(400)
    assert trip_of(robot).state is TripState.ARRIVED


def test_paths_lead_around_boxes() -> None:
    walls = MapBuilder("boxes")
    walls.rectangle(0.0, 0.0, 10.0, 6.0)
    walls.box(5.0, 2.5, 0.4, 4.0, 0.3)
    sim = Simulation(walls.scene(), odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
    robot.go_to(8.0, 2.0)
    drive(sim, 60.0, until=TripState.ARRIVED)
    assert trip_of(robot).replans == 0


def test_robots_that_meet_pass_each_other() -> None:
    sim = Simulation(two_rooms(), odometry_error="none", seed=4)
    ends = [(2.0 + 2.0 * (k // 3), 2.0 + 2.0 * (k % 3)) for k in range(6)]
    for k, (x, y) in enumerate(ends):
        robot = sim.add_robot("p3dx", f"r{k}", pose=(x, y, 0.0))
        goal = ends[-1 - k]
        robot.go_to(*goal, speed=0.4)
    drive(sim, 90.0, until=TripState.ARRIVED)


def test_two_meet_in_a_door() -> None:
    sim = Simulation(two_rooms(door=1.0), odometry_error="none", seed=4)
    sim.add_robot("p3dx", "ann", pose=(5.0, 1.0, 0.0)).go_to(11.0, 1.0)
    sim.add_robot("p3dx", "bob", pose=(11.0, 1.0, math.pi)).go_to(5.0, 1.0)
    drive(sim, 120.0, until=TripState.ARRIVED)


def test_a_run_goes_on_from_its_state_and_is_repeated_from_its_journal() -> None:
    def world() -> Simulation:
        sim = Simulation(two_rooms(other=1.0), seed=3)
        for k, goal in enumerate(((14.0, 2.0), (3.0, 6.0), (14.0, 4.0))):
            robot = sim.add_robot("p3dx", f"r{k}", pose=(2.0 + k, 2.0 + k, 0.0))
            robot.go_to(*goal, 0.5)
        # It stands in the door, so that others plan again.
        sim.add_robot("p3dx", "door", pose=(8.0, 1.0, 0.0))
        return sim

    with watching():
        world().step(300)

    one = world()
    digests = []
    one.step(250)
    state, twin = one.save_state(), one.clone()
    assert sum(trip_of(one.robots[f"r{k}"]).replans for k in range(3)) >= 1
    for _ in range(200):
        one.step()
        digests.append(one.digest())
    other = world()
    other.restore(state)
    for wanted in digests:
        twin.step()
        other.step()
        assert twin.digest() == other.digest() == wanted
    assert [r.trip for r in one.robots.values()] == [
        r.trip for r in other.robots.values()
    ]


def test_a_bad_state_is_refused() -> None:
    sim = Simulation(two_rooms())
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
    robot.go_to(4.0, 2.0)
    sim.step()
    controller = sim.core.programs.all["ann"][1].__self__._controller  # type: ignore[attr-defined]
    state = controller.get_state()
    for place, value in (
        (2, [[1.0, 2.0]]),
        (2, [[math.nan, 0.0], [1.0, 2.0]]),
        (3, [7.0, 0.1, 1.0]),
        (3, [0.0, -1.0, 1.0]),
        (5, ["flying", ""]),
        (0, [3, 1, False]),
    ):
        with pytest.raises((TypeError, ValueError)):
            controller.set_state([*state[:place], value, *state[place + 1 :]])
    controller.set_state(state)
    assert controller.get_state() == state


def test_a_client_drives_instead() -> None:
    sim = Simulation(two_rooms())
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
    robot.go_to(6.0, 2.0)
    sim.step(10)
    robot.claim("test")
    sim.step(30)
    x = robot.truth.x
    sim.step(20)
    assert robot.truth.x == pytest.approx(x)
    robot.release("test")
    drive(sim, 30.0, until=TripState.ARRIVED)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"x": math.nan}, r"points\[0\]: x: expected|points\[0\]"),
        ({"speed": 0.0}, "speed: expected"),
        ({"turned": -1.0}, "turned: expected"),
        ({"patience": 0.0}, "patience: expected"),
        ({"safety": -0.1}, "safety: expected"),
        ({"avoid": 3}, "avoid: expected"),
        ({"sped": 1.0}, 'no option "sped"; did you mean "speed"'),
    ],
)
def test_options_are_checked(options: dict[str, float], said: str) -> None:
    robot = Simulation().add_robot("p3dx")
    with pytest.raises(WorldError, match=said):
        robot.go_to(**{"x": 1.0, "y": 0.0, **options})


def test_a_goal_needs_coordinates() -> None:
    robot = Simulation().add_robot("p3dx")
    with pytest.raises((ArgumentError, WorldError), match="points"):
        robot.set_controller("go_to", points=[])


def test_a_world_without_walls_has_a_floor_everywhere() -> None:
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(-30.0, 5.0, math.pi))
    robot.go_to(-55.0, 3.0, speed=2.0)
    drive(sim, 120.0, until=TripState.ARRIVED)


DETOUR = [[2.0, 6.0], [3.0, 3.0], [5.0, 1.0], [14.0, 1.0], [14.0, 6.0]]
"""Path through the door, longer than the planned one."""


def test_a_given_path_is_followed_from_its_nearest_point_to_the_heading() -> None:
    with watching():
        sim = Simulation(two_rooms(), odometry_error="none")
        robot = sim.add_robot("p3dx", "ann", pose=(2.6, 4.0, 0.0))
        goal = {"points": [[14.0, 6.0, math.pi]], "path": DETOUR}
        robot.set_controller("go_to", **goal)
        sim.step()
        trip = trip_of(robot)
        assert trip.path == tuple(map(tuple, [*DETOUR[:-1], [14.0, 6.0]]))
        whole = length(np.array(DETOUR))
        assert trip.distance_left < whole - 1.5, "it joins behind the start"
        gone = []
        while trip_of(robot).state is TripState.DRIVING:
            sim.step(5)
            gone.append(robot.truth[:2])
        for corner in DETOUR[1:4]:
            assert min(math.dist(corner, at) for at in gone) < 0.25
        drive(sim, 30.0, until=TripState.ARRIVED)
        assert abs(math.remainder(robot.truth.th - math.pi, math.tau)) <= 0.1


def test_a_given_path_may_end_where_it_starts_and_survives_a_state() -> None:
    sim = Simulation(two_rooms(), odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
    round_trip = [[2.0, 2.0], [2.0, 4.0], [4.0, 4.0], [4.0, 2.0], [2.0, 2.0]]
    robot.set_controller("go_to", points=[[2.0, 2.0]], path=round_trip)
    sim.step(100)
    assert trip_of(robot).state is TripState.DRIVING
    clone = sim.clone()
    for one in (sim, clone):
        drive(one, 60.0, until=TripState.ARRIVED)
    assert clone.robots["ann"].truth == robot.truth
    for option in ({"points": [[2.0, 2.0], [3.0, 2.0]]}, {"path": []}):
        with pytest.raises(WorldError, match=r"points: expected (one|at least)"):
            robot.set_controller(
                "go_to", **{"points": [[2.0, 2.0]], "path": round_trip} | option
            )


def test_a_given_path_through_a_wall_is_refused_until_the_map_opens() -> None:
    sim = Simulation(two_rooms(door=0.3))
    robot = sim.add_robot("p3dx", "ann", pose=(2.0, 6.0, 0.0))
    robot.set_controller("go_to", points=[[14.0, 6.0]], path=DETOUR)
    drive(sim, 2.0)
    trip = trip_of(robot)
    assert trip.state is TripState.NO_PATH
    assert "through a wall between (5.000, 1.000) and (14.000, 1.000)" in trip.message
    assert robot.truth[:2] == pytest.approx((2.0, 6.0)), "it stands"
    sim.replace_scene(two_rooms())
    drive(sim, 90.0, until=TripState.ARRIVED)


def test_a_blocked_given_path_is_not_planned_again() -> None:
    sim = Simulation(two_rooms(other=1.0), odometry_error="none")
    robot = sim.add_robot("p3dx", "ann", pose=(5.0, 1.0, 0.0))
    sim.add_robot("p3dx", "bob", pose=(8.0, 1.0, 0.0))
    robot.set_controller("go_to", points=[[11.0, 1.0]], path=[[5.0, 1.0], [11.0, 1.0]])
    sim.step()
    while trip_of(robot).state is not TripState.BLOCKED:
        drive(sim, 1.0)
        assert sim.time < 60.0
    drive(sim, 10.0)
    trip = trip_of(robot)
    assert trip.state is TripState.BLOCKED and trip.replans == 0
    assert len(trip.path) == 2 and robot.truth.x < 8.0
    sim.remove_robot("bob")
    drive(sim, 40.0, until=TripState.ARRIVED)


def test_floors_are_kept_until_the_map_changes_and_hold_discs() -> None:
    sim = Simulation(two_rooms())
    floors = sim.core.floors
    floor = floors.of(0.3, [(1.0, 1.0)])
    assert floors.of(0.3, [(15.0, 7.0), (2.0, 2.0)]) is floor
    assert floors.of(0.4, [(1.0, 1.0)]) is not floor
    far = floors.of(0.3, [(100.0, 1.0)])
    assert far.is_free((100.0, 1.0)) and not floor.is_free((100.0, 1.0))
    walls = sim.scene.segments
    rng = np.random.default_rng(2)
    free = 0
    for x, y in rng.uniform((-1.0, -1.0), (17.0, 9.0), (400, 2)):
        gap = min(segment_gap(x, y, *wall) for wall in walls.tolist())
        if floor.is_free((x, y)):
            free += 1
            assert gap >= 0.3, "a disc anywhere in a free cell touches no wall"
        else:
            assert gap <= 0.3 + 0.05 * math.sqrt(2.0), "no more is blocked"
    assert free > 200
    sim.replace_scene(two_rooms(door=2.0))
    assert floors.of(0.3, [(1.0, 1.0)]) is not floor


def segment_gap(
    x: float, y: float, ax: float, ay: float, bx: float, by: float
) -> float:
    share = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / (
        (bx - ax) ** 2 + (by - ay) ** 2
    )
    share = min(1.0, max(0.0, share))
    return math.hypot(ax + share * (bx - ax) - x, ay + share * (by - ay) - y)


def test_polygons_block_the_cells_within_reach() -> None:
    costs = Costmap(np.zeros((40, 60), np.uint8), -1.0, -1.0, 0.1)
    corners = np.array([[0.0, 0.0], [2.0, 0.5], [2.0, 2.0], [0.5, 1.0]])
    found = costs.with_polygons([corners, corners + np.array([50.0, 0.0])], 0.25).costs
    edges = [*itertools.pairwise([*corners.tolist(), corners[0].tolist()])]
    for j, i in np.ndindex(found.shape):
        x, y = -1.0 + (i + 0.5) * 0.1, -1.0 + (j + 0.5) * 0.1
        gap = min(segment_gap(x, y, *a, *b) for a, b in edges)
        crossings = sum(
            (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax)
            for (ax, ay), (bx, by) in edges
        )
        assert (found[j, i] == BLOCKED) == (gap <= 0.25 or crossings % 2 == 1)
    assert not costs.costs.any(), "the costmap itself is unchanged"


def test_the_example_ends_with_all_robots_at_their_places(
    capsys: pytest.CaptureFixture[str],
) -> None:
    example = Path(__file__).resolve().parents[2] / "examples/go_to.py"
    runpy.run_path(str(example))
    assert "0.0 m left  {'arrived': 8}" in capsys.readouterr().out
