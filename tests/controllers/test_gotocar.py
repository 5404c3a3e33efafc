"""go_to of cars and of robots with trailers: planned arcs, reverse, headings, others."""

from __future__ import annotations

import math
import re
from functools import partial

import numpy as np
import pytest

import botyard
from botyard.controllers.goto import GoTo
from botyard.controllers.gotocar import CarGoTo, go_to, train_radius
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.model.library import parse_robot
from botyard.model.robot import RobotSpec
from botyard.model.trailers import TrailerSpec
from botyard.sim.floors import Floors
from botyard.sim.simulation import Robot, Simulation
from botyard.sim.trips import Trip, TripState


def rectangle(x0: float, y0: float, x1: float, y1: float) -> list[list[float]]:
    return [[x0, y0, x1, y0], [x1, y0, x1, y1], [x1, y1, x0, y1], [x0, y1, x0, y0]]


ROOM = rectangle(0.0, 0.0, 6.0, 6.0)
WALL = rectangle(2.8, 0.0, 3.2, 3.0)


def car() -> RobotSpec:
    return parse_robot('extends = "car"\n[odometry]\nerror = [0, 0, 0]', "car")


def tug(trailers: int = 1) -> RobotSpec:
    behind = (
        "\n[[trailers]]\nhitch = 0.3\nlength = 0.4\n"
        "outline = [[-0.15, -0.15], [0.15, -0.15], [0.15, 0.15], [-0.15, 0.15]]\n"
    )
    return parse_robot(f'extends = "p3dx-nolaser"\n{behind * trailers}', "tug")


def room(
    *walls: list[list[float]], start: Pose = Pose(1.0, 1.0, 0.0)
) -> tuple[Simulation, Robot]:
    scene = botyard.Scene(
        segments=np.array([*ROOM, *(w for one in walls for w in one)])
    )
    sim = Simulation(scene, odometry_error="none", step=0.05)
    return sim, sim.add_robot(car(), name="c", pose=start)


def drive(sim: Simulation, robot: Robot, seconds: float) -> list[float]:
    """Run until the trip ends, and return the forward velocities."""
    speeds = []
    for _ in range(int(seconds / sim.dt)):
        sim.step()
        speeds.append(robot.velocity.vx)
        assert not robot.stalled
        trip = robot.trip
        if trip is not None and trip.state in (TripState.ARRIVED, TripState.NO_PATH):
            break
    return speeds


def trip_of(robot: Robot) -> Trip:
    trip = robot.trip
    assert trip is not None
    return trip


def test_the_registry_chooses_by_the_drive() -> None:
    sim, robot = room()
    assert isinstance(go_to(robot, 0, points=[(2, 2)]), CarGoTo)
    other = sim.add_robot("p3dx-nolaser", name="d", pose=(4, 4, 0))
    assert type(go_to(other, 0, points=[(2, 2)])) is GoTo
    with pytest.raises(WorldError, match="speeed"):
        robot.set_controller("go_to", points=[(2, 2)], speeed=1.0)


def test_a_car_drives_round_a_wall_to_a_heading() -> None:
    sim, robot = room(WALL)
    robot.go_to(5.0, 1.0, -math.pi / 2, speed=1.0)
    drive(sim, robot, 40.0)
    assert trip_of(robot).state is TripState.ARRIVED
    x, y, th = robot.truth
    assert math.hypot(x - 5.0, y - 1.0) <= 0.1
    assert math.remainder(th + math.pi / 2, 2 * math.pi) == pytest.approx(0.0, abs=0.1)
    # The path is longer than a straight line: round the wall.
    assert trip_of(robot).goals_reached == 1


def test_a_car_parks_in_reverse() -> None:
    # A bay 0.9 m wide, open to the top, whose front the car must face.
    bay = [[2.5, 0.0, 2.5, 1.2], [3.4, 0.0, 3.4, 1.2]]
    sim, robot = room(bay, start=Pose(1.5, 3.0, 0.0))
    robot.go_to(2.95, 0.4, math.pi / 2, speed=0.8)
    speeds = drive(sim, robot, 60.0)
    assert trip_of(robot).state is TripState.ARRIVED
    assert min(speeds) < -0.05
    assert robot.truth.th == pytest.approx(math.pi / 2, abs=0.1)


def test_a_car_refuses_a_goal_without_a_path() -> None:
    sim, robot = room(rectangle(3.5, 3.5, 5.0, 5.0))
    robot.go_to(4.2, 4.2)
    sim.step()
    assert trip_of(robot).state is TripState.NO_PATH
    assert trip_of(robot).message
    sim.run(1.0)
    assert robot.velocity.vx == 0.0


@pytest.mark.parametrize("goal", [(1e6, 1e6), (-8000.0, 8000.0)])
def test_a_car_refuses_a_far_goal_without_a_search(
    goal: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object, **__: object) -> None:
        pytest.fail("expected no search")

    monkeypatch.setattr(Floors, "of", search)
    robot = Simulation(step=0.05).add_robot("car", "ann")
    robot.go_to(*goal)
    robot.simulation.step(2)
    assert trip_of(robot).state is TripState.NO_PATH
    assert "the goal is too far from the robot" in trip_of(robot).message


def test_a_car_waits_for_a_robot_and_plans_around_it() -> None:
    sim, robot = room(start=Pose(0.8, 3.0, 0.0))
    other = sim.add_robot("p3dx-nolaser", name="o", pose=(3.2, 3.0, 1.57))
    robot.go_to(5.2, 3.0, speed=0.8, patience=2.0)
    for _ in range(int(60.0 / sim.dt)):
        sim.step()
        assert not robot.stalled
        if trip_of(robot).state is TripState.ARRIVED:
            break
    assert trip_of(robot).state is TripState.ARRIVED
    assert trip_of(robot).replans >= 1
    assert other.truth.x == pytest.approx(3.2)


@pytest.mark.parametrize("by_angle", ["false", "true"])
@pytest.mark.parametrize("model", ["forklift", "tugger"])
@pytest.mark.parametrize("goal", [(5.0, 3.0), (5.0, 3.0, math.pi), (-5.0, 0.0)])
def test_vehicles_that_steer_slowly_stay_on_their_paths(
    model: str, goal: tuple[float, ...], by_angle: str
) -> None:
    sim = Simulation(odometry_error="none", step=0.1)
    spec = parse_robot(
        f'extends = "{model}"\n[steering]\nby_angle = {by_angle}', "slow"
    )
    robot = sim.add_robot(spec, name="s", pose=(0.0, 0.0, 0.0))
    robot.go_to(*goal)
    sim.step()
    path = np.array(trip_of(robot).path)
    off = 0.0
    while trip_of(robot).state is TripState.DRIVING and sim.time < 40.0:
        sim.step()
        gaps = path - (robot.truth.x, robot.truth.y)
        off = max(off, float(np.hypot(*gaps.T).min()))
    assert trip_of(robot).state is TripState.ARRIVED
    # Wheels that turn by 80° take 2 s, in which an unhurried robot drives 0.1 m.
    assert off < 0.25


def test_saved_states_continue_a_trip() -> None:
    sim, robot = room(WALL)
    robot.go_to(5.0, 1.0, -math.pi / 2, speed=1.0)
    sim.run(2.0)
    twin = sim.clone()
    sim.run(2.0)
    twin.run(2.0)
    assert twin.digest() == sim.digest()


def test_the_tightest_arc_of_a_train() -> None:
    box = ((-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1))
    one = TrailerSpec(outline=box, hitch=0.5, length=1.0, limit=0.5)
    radius = train_radius((one,), 0.2)
    behind = math.sqrt(radius**2 + 0.25 - 1.0)
    assert math.atan(0.5 / radius) + math.atan(1.0 / behind) == pytest.approx(0.5)
    assert train_radius((), 0.7) == 0.7
    assert train_radius((one, one), 0.2) > radius


def test_a_robot_with_trailers_drives_forward_to_its_goal() -> None:
    scene = botyard.Scene(segments=np.array(rectangle(0.0, 0.0, 10.0, 10.0)))
    sim = Simulation(scene, odometry_error="none", step=0.05)
    robot = sim.add_robot(tug(2), name="t", pose=(3.0, 2.0, 0.0))
    robot.go_to(3.0, 6.0, speed=0.5)
    speeds = drive(sim, robot, 60.0)
    assert trip_of(robot).state is TripState.ARRIVED
    assert min(speeds) >= 0.0


def tugger(trailers: int) -> RobotSpec:
    """Return the shipped tugger with trailers as the docs show them."""
    tables = [
        f"""[[trailers]]
outline = [[-0.6, -0.4], [0.6, -0.4], [0.6, 0.4], [-0.6, 0.4]]
hitch = {0.7 if k else 0.45}
length = 1.1
limit_deg = 70"""
        for k in range(trailers)
    ]
    return parse_robot("\n".join(['extends = "tugger"', *tables]), "tug")


@pytest.mark.parametrize("trailers", [1, 2, 3])
@pytest.mark.parametrize(
    ("world", "start", "goal"),
    [
        # The gate, with its heading, next to the start: the train turns round.
        ("warehouse", (6.0, 16.0, math.pi / 2), (3.5, 13.6, math.pi)),
        ("warehouse", (6.0, 16.0, math.pi / 2), (20.7, 19.0)),
        ("depot", (10.0, 3.0, 0.0), (24.0, 10.5)),
    ],
)
def test_a_tugger_with_trailers_reaches_goals_in_shipped_worlds(
    world: str, start: Pose, goal: tuple[float, ...], trailers: int
) -> None:
    sim = Simulation.load(world, step=0.05, odometry_error="none")
    for name in list(sim.robots):
        sim.remove_robot(name)
    robot = sim.add_robot(tugger(trailers), name="t", pose=start)
    robot.go_to(*goal, speed=1.0)
    train = list(sim.robots.values())
    assert len(train) == 1 + trailers
    speeds = []
    for _ in range(int(60.0 / sim.dt)):
        sim.step()
        speeds.append(robot.velocity.vx)
        assert not any(one.stalled for one in train)
        if trip_of(robot).state is TripState.ARRIVED:
            break
    assert trip_of(robot).state is TripState.ARRIVED
    assert trip_of(robot).replans == 0
    assert min(speeds) >= 0.0
    if len(goal) == 3:
        error = math.remainder(robot.truth.th - goal[2], 2 * math.pi)
        assert error == pytest.approx(0.0, abs=0.1)


def refused(spec: RobotSpec, width: float, ahead: bool = True) -> str:
    """Return the message of a trip in a corridor: around its corner to the left, or back."""
    start = Pose(4.2, 1.0 + width / 2, 0.0)
    goal = (7.2 - width / 2, 8.5) if ahead else (start.x - 1.0, start.y)
    lines = [
        *rectangle(0.0, 0.0, 10.0, 10.0),
        *rectangle(0.0, 1.0 + width, 7.2 - width, 10.0),
        [0.0, 1.0, 10.0, 1.0],
        [7.2, 0.0, 7.2, 10.0],
    ]
    sim = Simulation(
        botyard.Scene(segments=np.array(lines)), odometry_error="none", step=0.05
    )
    robot = sim.add_robot(spec, name="t", pose=start)
    robot.go_to(*goal)
    sim.step()
    assert trip_of(robot).state is TripState.NO_PATH
    message = trip_of(robot).message
    place = f" to the goal, ({goal[0]:.3f}, {goal[1]:.3f})"
    assert place in message
    return message.replace(place, "")


def towing(limit: float) -> RobotSpec:
    return parse_robot(
        'extends = "p3dx-nolaser"\n[[trailers]]\nhitch = 0.3\nlength = 1.2\n'
        f"limit_deg = {limit}\n"
        "outline = [[-0.3, -0.2], [0.3, -0.2], [0.3, 0.2], [-0.3, 0.2]]\n",
        "towing",
    )


def test_the_message_names_the_width_that_trailers_sweep() -> None:
    spec = towing(80.0)
    said = re.fullmatch(
        r"no path: the trailers sweep more than the free floor on the way; in the tightest "
        r"turn, of radius (\S+) m, the last trailer runs (\S+) m farther inside, and the "
        r"train sweeps (\S+) m",
        refused(spec, 1.2),
    )
    assert said
    radius, off, width = map(float, said.groups())
    bend = math.radians(80.0) / 1.1
    behind = math.sqrt(radius**2 + 0.3**2 - 1.2**2)
    assert math.atan(0.3 / radius) + math.atan(1.2 / behind) == pytest.approx(
        bend, abs=1e-3
    )
    assert off == pytest.approx(radius - behind, abs=2e-3)
    # From the inner side of the trailer to the outermost corner of the robot.
    outer = max(math.hypot(x, y - radius) for x, y in spec.outline)
    assert width == pytest.approx(outer - (behind - 0.2), abs=2e-3)


def test_the_message_names_the_limit_of_the_hitches() -> None:
    assert refused(towing(20.0), 1.2) == (
        "no path: the hitches of the trailers bend too little for a path; the robot alone "
        "turns on a radius of 0.055 m, the train on 4.759 m, because hitches bend up to "
        "20 degrees"
    )


def test_the_message_names_the_reverse_that_trains_do_not_drive() -> None:
    assert refused(tugger(1), 1.6, ahead=False) == (
        "no path: a robot with trailers does not reverse, and no other path leads"
    )


def test_the_message_names_the_turning_circle_of_the_robot() -> None:
    # The body is longer than the corridor is wide.
    for trailers in (0, 1):
        assert refused(tugger(trailers), 1.6) == (
            "no path: the turning circle of the robot is too wide for a path; the circle has a "
            "radius of 0.223 m"
        )


def test_trailers_take_no_commands_and_no_controllers() -> None:
    sim = Simulation()
    sim.add_robot(tug(), "t", pose=(0.0, 0.0, 0.0))
    trailer = sim.robots["t_trailer_1"]
    # Zero is harmless for every robot.
    trailer.command(v=0.0)
    for drive_it in (
        partial(trailer.command, v=1.0),
        partial(trailer.command.velocity, 0.0, 1.0),
        partial(trailer.command.move, 1.0),
        partial(trailer.command.turn_to, 1.0),
        partial(trailer.command.turn_by, 1.0),
        partial(trailer.set_controller, "wander"),
        partial(trailer.go_to, 1.0, 1.0),
    ):
        with pytest.raises(WorldError, match="found t_trailer_1, which does not"):
            drive_it()


def test_trailers_that_start_in_a_wall_or_in_a_robot_are_warned_about() -> None:
    said: list[str] = []
    wall = np.array([[-0.7, -1.0, -0.7, 1.0]])
    sim = Simulation(botyard.Scene(segments=wall), warn=said.append)
    sim.add_robot(tug(), "t", pose=(0.0, 0.0, 0.0))
    sim.add_robot("p3dx", "x", pose=(5.0, 5.0, 0.0))
    sim.add_robot(tug(), "u", pose=(5.7, 5.0, 0.0))
    assert [one.split(" at ")[0] for one in said] == [
        "robot t_trailer_1",
        "robot u_trailer_1",
    ]


def test_a_semitrailer_that_lies_on_its_tractor_is_no_contact() -> None:
    spec = parse_robot(
        'extends = "tugger"\n' + "[[trailers]]\nhitch = -0.3\nlength = 0.8\n"
        "outline = [[-0.6, -0.4], [0.6, -0.4], [0.6, 0.4], [-0.6, 0.4]]\n" * 2,
        "semi",
    )
    said: list[str] = []
    sim = Simulation(warn=said.append)
    robot = sim.add_robot(spec, "t", pose=(0.0, 0.0, 0.0))
    assert said == []
    sim.add_robot("p3dx", "x", pose=(-1.6, 0.0, 0.0))
    assert [one.split(" at ")[0] for one in said] == ["robot x"]
    said.clear()
    sim.add_robot(spec, "u", pose=(0.3, 0.0, 0.0))
    assert len(said) == 3
    robot.command(v=1.0, steer=0.2)
    sim.remove_robot("u")
    sim.remove_robot("x")
    sim.run(2.0)
    assert robot.truth.x > 0.5
