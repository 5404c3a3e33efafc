"""Car-like robots as programs, peers and files see them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import botyard
from botyard.engine.layout import ANGLE
from botyard.errors import (
    CommandError,
    ModelError,
    ModelFileError,
    StateError,
    WorldError,
)
from botyard.formats.stagemodels import ModelLibrary
from botyard.formats.stageworld import parse
from botyard.model.kinematics import Drive, Steering
from botyard.model.library import parse_robot
from botyard.model.links import steering_joints
from botyard.model.robotfile import to_table
from botyard.model.scene import Scene
from botyard.protocols.pioneer.commands import C
from botyard.protocols.ros_messages.cmdvel import Driver
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import PROFILES, names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.types import types
from botyard.sim.journal import Entry
from botyard.sim.resimulation import resimulate
from botyard.sim.simulation import Robot, Simulation
from tests.protocols.lines import Client

CAR = replace(botyard.load_robot("car"), lasers=())
FORKLIFT = replace(
    CAR,
    name="forklift",
    drive=Drive.TRICYCLE,
    track=None,
    steering=Steering(wheelbase=-1.4, limit=1.3, rate=0.7),
)


def angle(robot: Robot) -> float:
    sim = robot.simulation
    return float(sim.core.engine.state.steer[sim.core.engine.rows[robot.name], ANGLE])


def one(spec: botyard.RobotSpec = CAR, **options: object) -> Robot:
    return Simulation(odometry_error="none", **options).add_robot(spec, "ann")


# -- commands


def test_a_pioneer_client_drives_a_car() -> None:
    """RVEL and HEAD turn the car only while VEL moves it, on arcs that it can drive."""
    client = Client("car")
    ann = client.robot
    for number, argument in ((C.ENABLE, 1), (C.RVEL, 30)):
        client.send(number, argument)
    client.run(1.0)
    assert ann.truth == (0.0, 0.0, 0.0)

    client.send(C.VEL, 500)
    client.run(3.0)
    assert ann.velocity.vx == 0.5
    assert ann.velocity.w == pytest.approx(math.radians(30))
    # At this speed the turning circle is the limit.
    client.send(C.VEL, 200)
    client.run(3.0)
    assert ann.velocity.w == pytest.approx(0.2 / ann.spec.kinematics.turning_radius)

    client.send(C.VEL, 0)
    client.run(2.0)
    place = ann.truth
    client.send(C.DHEAD, 90)
    client.run(2.0)
    assert ann.truth == place
    client.send(C.VEL, 300)
    client.run(8.0)
    turned = math.remainder(ann.truth.th - place.th, 2 * math.pi)
    assert turned == pytest.approx(math.pi / 2, abs=0.01)
    assert abs(ann.velocity.w) < 0.02


def test_the_shipped_car_drives_its_turning_circle() -> None:
    """24° of steering at a wheelbase of 0.3302 m: 0.742 m (f1tenth_gym)."""
    robot = one()
    assert robot.spec.kinematics.turning_radius == pytest.approx(0.742, abs=5e-4)
    robot.command(v=0.5, steer=10.0)
    robot.simulation.step(20)
    assert robot.velocity.vx / robot.velocity.w == pytest.approx(0.742, abs=5e-4)


def test_the_shipped_car_reaches_its_top_speed_and_stops() -> None:
    robot = one()
    robot.command(v=20.0, w=0.0)
    robot.simulation.step(30)
    assert robot.velocity.vx == pytest.approx(5.04)
    before = robot.truth.x
    robot.command.stop()
    robot.simulation.step(30)
    # v² / (2 a), less half a step at top speed: a step moves at its final velocity.
    assert robot.truth.x - before == pytest.approx(
        5.04**2 / 5.0 - 5.04 * 0.1 / 2, abs=0.01
    )


def test_a_rear_axle_that_steers_left_turns_right() -> None:
    robot = one(FORKLIFT)
    robot.command(v=0.5, steer=0.5)
    robot.simulation.step(20)
    assert robot.velocity.w == pytest.approx(-0.5 * math.tan(0.5) / 1.4)


def test_steering_commands_are_checked() -> None:
    robot = one()
    with pytest.raises(CommandError, match=r"neither w nor vy .* found w=1\.0"):
        robot.command(v=0.5, w=1.0, steer=0.1)
    with pytest.raises(CommandError, match="steering: expected finite"):
        robot.command(steer=math.nan)
    plain = Simulation().add_robot("p3dx", "bob")
    with pytest.raises(CommandError, match=r"bob \(p3dx\) does not steer"):
        plain.command(v=0.5, steer=0.1)
    with pytest.raises(CommandError, match="cannot drive sideways"):
        robot.command(v=0.5, vy=0.1)


def test_a_fleet_steers_by_arrays() -> None:
    sim = Simulation()
    cars = sim.add_robots(CAR, [(0, 0, 0), (0, 5, 0)])
    plain = sim.add_robot("p3dx", pose=(0, 10, 0))
    sim.fleet.command(v=0.5, steer=[0.1, -0.2, 0.3])
    sim.step(5)
    assert [angle(car) for car in cars] == pytest.approx([0.1, -0.2])
    assert plain.velocity.w == 0.0 and plain.velocity.vx > 0.0
    with pytest.raises(CommandError, match="expected no w together"):
        sim.fleet.command(w=0.1, steer=0.1)
    sim.remove_robots([car.name for car in cars])
    with pytest.raises(CommandError, match="none of these robots steers"):
        sim.fleet.command(v=0.5, steer=0.1)


def test_late_commands_steer_late() -> None:
    robot = one(replace(CAR, commands=botyard.CommandSpec(latency=0.3)))
    robot.command(v=0.5, steer=0.2)
    robot.simulation.step(2)
    assert angle(robot) == 0.0
    again = Simulation(odometry_error="none")
    again.add_robot(robot.spec, "ann")
    again.restore(robot.simulation.save_state())
    for sim in (robot.simulation, again):
        sim.step(4)
    assert angle(robot) == pytest.approx(0.2)
    assert again.digest() == robot.simulation.digest()


# -- states, recordings, many worlds


def test_a_saved_state_continues_bit_for_bit() -> None:
    robot = one()
    sim = robot.simulation
    plain = sim.add_robot("p3dx", "bob", pose=(3, 3, 1))
    robot.command(v=1.0, steer=0.3)
    plain.command(v=0.2, w=0.3)
    sim.step(4)
    robot.command(v=-1.0, w=0.4)
    state = sim.save_state()
    clone = sim.clone()
    empty = Simulation(odometry_error="none")
    for spec, name in ((CAR, "ann"), (plain.spec, "bob")):
        empty.add_robot(spec, name)
    empty.restore(state)
    for world in (sim, clone, empty):
        world.step(10)
    assert sim.digest() == clone.digest() == empty.digest()


def test_a_state_without_cars_replaces_one_with_cars() -> None:
    plain = Simulation(odometry_error="none")
    plain.add_robot("p3dx", "bob")
    plain.step(2)
    mixed = one().simulation
    mixed.add_robot("p3dx", "bob")
    mixed.remove_robots(["ann"])
    mixed.restore(plain.save_state())
    assert mixed.core.engine.state.steer.shape == (0, 7)
    assert mixed.digest() == plain.digest()
    assert len(mixed.save_state()) == len(plain.save_state())


@pytest.mark.parametrize(
    ("column", "value"), [(ANGLE, 1.0), (ANGLE, math.nan), (3, 2.0), (4, 0.0)]
)
def test_a_state_with_bad_steering_is_refused(column: int, value: float) -> None:
    robot = one()
    sim = robot.simulation
    sim.step()
    good = sim.digest()
    sim.core.engine.state.steer[0, column] = value
    bad = sim.save_state()
    other = one().simulation
    other.step()
    with pytest.raises(StateError, match="steer"):
        other.restore(bad)
    assert other.digest() == good


def test_a_journal_repeats_a_run() -> None:
    def made() -> Simulation:
        return one().simulation

    sim, entries = made(), list[Entry]()
    sim.core.journal.listen(entries.append)
    digests = []
    for k in range(12):
        sim.robots["ann"].command(v=0.5, steer=0.1 * (k % 4 - 2))
        sim.step()
        digests.append(sim.digest())
    assert list(resimulate(made(), entries, 12))[:12] == digests


@pytest.mark.parametrize("by_angle", [False, True])
@pytest.mark.parametrize("latency", [0.0, 0.2])
def test_worlds_equal_simulations(by_angle: bool, latency: float) -> None:
    spec = replace(
        CAR,
        steering=replace(CAR.steering, by_angle=by_angle, offset=0.02),
        commands=botyard.CommandSpec(latency=latency),
        wheel_ratio=1.02,
    )
    plain = replace(botyard.load_robot("p3dx"), lasers=(), sonar=None)
    worlds = botyard.Worlds(
        [Scene()], [spec, plain], n=3, seeds=5, max_latency=latency or None
    )
    rng = np.random.default_rng(1)
    worlds.reset(poses=np.array([[[0, 0, 0.3], [5, 5, 1]]] * 3, np.float64))
    copies = [worlds.world(i) for i in range(3)]
    for _ in range(12):
        worlds.command[...] = 0.0
        worlds.command[..., 0] = rng.uniform(-1, 2, (3, 2))
        worlds.command[..., 2] = rng.uniform(-0.5, 0.5, (3, 2))
        for i, sim in enumerate(copies):
            v, _, w = worlds.command[i].T.copy()
            sim.fleet.command(v=v, w=w)
            sim.step(2)
        worlds.step(2)
    for i, sim in enumerate(copies):
        assert (worlds.pose[i] == sim.fleet.poses).all()
        again = worlds.world(i).core.engine.state
        for name, column in sim.core.engine.state._asdict().items():
            assert (getattr(again, name) == column).all(), name
        assert abs(sim.core.engine.state.steer[0, ANGLE]) > 0.0


def test_an_episode_starts_with_straight_wheels() -> None:
    robot = one()
    robot.command(v=1.0, steer=0.3)
    robot.simulation.step(5)
    assert angle(robot) > 0.0
    robot.simulation.reset()
    assert angle(robot) == 0.0
    worlds = botyard.Worlds([Scene()], [CAR], n=2)
    worlds.command[..., 0] = 1.0
    worlds.command[..., 2] = 1.0
    worlds.step(5)
    assert worlds.world(0).core.engine.state.steer[0, ANGLE] > 0.0
    worlds.reset()
    assert (worlds.world(0).core.engine.state.steer[0, ANGLE]) == 0.0


# -- ROS

TYPES = types()


def topics_of(robot: Robot) -> RobotTopics:
    names = names_of(robot.name, PROFILES["default"], True)
    return RobotTopics(robot.port("ros"), names, Messages(TYPES), TYPES, StepData())


def test_joint_states_and_transforms_have_the_steered_wheels() -> None:
    robot = one()
    topics = topics_of(robot)
    robot.command(v=0.5, steer=0.2)
    robot.simulation.step()
    (joints,) = (t for t in topics.topics() if t.name.endswith("joint_states"))
    joints.make(Stamp(1, 0))
    robot.simulation.step(2)
    message = joints.make(Stamp(1, 0))
    assert message.name == [
        "left_wheel_joint",
        "right_wheel_joint",
        "front_left_steering_joint",
        "front_right_steering_joint",
    ]
    inner, outer = CAR.kinematics.wheel_angles(0.2)
    assert message.position[2:].tolist() == pytest.approx([inner, outer])
    assert inner > outer > 0.0
    frames = topics.data.frames
    frames.forget()
    left = frames.placed(topics.frames)[3]
    assert left.child.endswith("front_left_wheel")
    assert left.values == pytest.approx(
        (0.3302, 0.13, 0.05, 0.0, 0.0, math.sin(inner / 2), math.cos(inner / 2))
    )


def test_ackermann_commands() -> None:
    robot = one()
    log = list[str]()
    driver = Driver(
        robot.port("ros"),
        lambda: robot.claim("ros"),
        lambda: robot.release("ros"),
        0.6,
        lambda: Stamp(10, 0),
        log.append,
    )

    def message(v: float, steer: float, rate: float = 0.0, sent: int = 10) -> object:
        drive = TYPES["ackermann_msgs/AckermannDrive"](steer, rate, v, 0.0, 0.0)
        time = TYPES["builtin_interfaces/Time"](sent, 0)
        header = TYPES["std_msgs/Header"](0, time, "")
        return TYPES["ackermann_msgs/AckermannDriveStamped"](header, drive)

    driver.ackermann_stamped(message(0.5, 0.2))
    robot.simulation.step(3)
    assert angle(robot) == pytest.approx(0.2)
    assert robot.velocity.vx > 0.0
    driver.ackermann_stamped(message(-0.5, -0.2, rate=1.0))
    robot.simulation.step()
    assert angle(robot) == pytest.approx(0.1)
    # An old command, and one with a value that is no number, change nothing.
    driver.ackermann_stamped(message(0.5, 0.4, sent=9))
    driver.ackermann_stamped(message(math.nan, 0.4))
    assert driver.refused == 1
    assert "ackermann_cmd refused" in log[0] and "finite" in log[1]
    robot.simulation.step(10)
    assert angle(robot) == pytest.approx(-0.2)
    # The watchdog stops the car, which keeps its angle.
    for _ in range(10):
        driver.tick()
        robot.simulation.step()
    assert robot.velocity.vx == 0.0
    assert angle(robot) == pytest.approx(-0.2)


# -- controllers


def followed(robot: Robot, name: str, seconds: float, **options: object) -> np.ndarray:
    sim = robot.simulation
    robot.set_controller(name, **options)
    return np.array(
        [tuple((sim.step(), robot.truth)[1]) for _ in range(int(seconds * 10))]
    )


def test_pure_pursuit_keeps_to_the_turning_circle() -> None:
    # A corner that no car can drive
    robot = one()
    way = followed(
        robot, "purepursuit", 30.0, points=[[0, 0], [4, 0], [4, 6]], speed=0.5
    )
    assert math.dist(way[-1, :2], (4, 6)) < 0.2
    turned = np.abs(np.diff(np.unwrap(way[:, 2])))
    far = np.hypot(*np.diff(way[:, :2], axis=0).T)
    assert (turned <= far / CAR.steering.wheelbase * math.tan(0.42) + 1e-3).all()
    # It returns to the path after the corner.
    assert abs(way[way[:, 1] > 4.0][:, 0] - 4.0).max() < 0.1


def test_pure_pursuit_turns_round_to_a_path_behind() -> None:
    robot = one()
    way = followed(robot, "purepursuit", 40.0, points=[[-2, 0.5], [-8, 0.5]], speed=0.5)
    assert math.dist(way[-1, :2], (-8, 0.5)) < 0.3


@pytest.mark.parametrize(
    "goal", [(3, 0), (2, 2), (-3, 0.1), (0.3, 0.5), (0, -0.7), (-0.5, 0.0)]
)
def test_waypoints_are_reached_from_any_side(goal: tuple[float, float]) -> None:
    robot = one()
    way = followed(robot, "waypoints", 60.0, points=[goal], reached=0.3, speed=0.5)
    assert min(math.dist(at[:2], goal) for at in way) < 0.31


@pytest.mark.parametrize("name", ["purepursuit", "waypoints", "dwa", "vfh", "wander"])
def test_controllers_drive_alike_if_turn_rates_carry_angles(name: str) -> None:
    """An angle to the left turns a forklift to the right."""
    options = {} if name == "wander" else {"points": [[0.5, 0.0], [3, 0], [5, 3]]}
    ways = []
    for by_angle in ("false", "true"):
        robot = one(
            parse_robot(
                f'extends = "forklift"\n[steering]\nby_angle = {by_angle}', "lift"
            )
        )
        ways.append(followed(robot, name, 30.0, **options))
    assert np.abs(ways[0] - ways[1]).max() < 0.05
    assert np.abs(np.diff(ways[0][:, 2])).max() > 0.01


def test_controllers_that_turn_on_the_spot_refuse_cars() -> None:
    robot = one(botyard.load_robot("car"))
    with pytest.raises(WorldError, match="ann"):
        robot.set_controller("orca", points=[[1, 1]])


# -- models and files


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('extends = "car"\n[steering]\nwheelbase = 0.0', "wheelbase must be at least"),
        ('extends = "car"\n[steering]\nlimit_deg = 95', "limit"),
        ('extends = "car"\n[steering]\nrate_deg = -1', "rate"),
        ('extends = "car"\n[steering]\nwheelbase = 0.1\nlimit_deg = 60', "inner wheel"),
        (
            'extends = "p3dx"\ndrive = "ackermann"',
            "drive ackermann: expected a table .steering., found none",
        ),
        (
            'extends = "car"\n[steering]\nby_angle = 1',
            "steering.by_angle: expected true or false, found 1",
        ),
        (
            'extends = "p3dx"\n[steering]\nwheelbase = 1\nlimit_deg = 20',
            "found Steering",
        ),
        ('extends = "car"\n[steering]\nwheel = 1', 'no key "wheel"'),
    ],
)
def test_wrong_steering_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        parse_robot(text, "mine")


def test_a_robot_file_has_the_steering() -> None:
    table = to_table(CAR)
    assert table["drive"] == "ackermann"
    assert table["steering"]["wheelbase"] == 0.3302
    assert table["steering"]["limit_deg"] == pytest.approx(24.0)
    assert "steering" not in to_table(botyard.load_robot("p3dx"))


def test_stage_cars_steer() -> None:
    def car(text: str) -> botyard.RobotSpec:
        return ModelLibrary(parse(f"define mine position ( {text} )", "a")).robot(
            "mine"
        )

    spec = car('wheelbase 0.5 drive "car"')
    assert (spec.drive, spec.steering.wheelbase) == (Drive.TRICYCLE, 0.5)
    assert car('drive "car"').steering.wheelbase == 1.0
    assert car('drive "diff" wheelbase 0.5').steering is None
    with pytest.raises(ModelFileError, match=r"a wheelbase from 0\.001 to 100 m"):
        car('drive "car" wheelbase 0')


@pytest.mark.parametrize(
    ("text", "drive"),
    [
        ('jackal ( drive "car" )', Drive.TRICYCLE),
        ('jackal ( drive "diff" )', Drive.DIFF),
        ('ridgeback ( drive "omni" )', Drive.OMNI),
        ('car ( drive "omni" )', Drive.OMNI),
        ('car ( drive "car" )', Drive.ACKERMANN),
        ('tugger ( drive "car" wheelbase 2 )', Drive.TRICYCLE),
    ],
)
def test_drives_of_stage_replace_the_drives_of_models(text: str, drive: Drive) -> None:
    spec = ModelLibrary(parse(f"define mine {text}", "a")).robot("mine")
    assert spec.drive is drive
    assert (spec.steering is not None) is spec.kinematics.steers
    assert spec.wheels is None


def test_a_wheelbase_of_stage_that_does_not_fit_names_its_line() -> None:
    library = ModelLibrary(parse("\ndefine mine car ( wheelbase 0.05 )", "a"))
    with pytest.raises(ModelFileError, match=r"a:2: robot mine: .* inner wheel"):
        library.robot("mine")


@pytest.mark.parametrize(
    ("text", "drive"),
    [
        ('extends = "jackal"\ndrive = "diff"', Drive.DIFF),
        ('extends = "car"\ndrive = "Omni"', Drive.OMNI),
        ('extends = "car"\ndrive = "tricycle"', Drive.TRICYCLE),
        ('extends = "jackal"\ndrive = "mecanum"', Drive.MECANUM),
        (
            'extends = "car"\ndrive = "skid"\n[wheels]\nwheelbase = 0.3',
            Drive.SKID,
        ),
    ],
)
def test_a_file_with_another_drive_does_not_inherit_its_parts(
    text: str, drive: Drive
) -> None:
    spec = parse_robot(text, "mine")
    assert spec.drive is drive
    assert (spec.steering is not None) is spec.kinematics.steers
    assert (spec.wheels is not None) is (drive in (Drive.SKID, Drive.MECANUM))


def test_a_description_has_the_steered_wheels() -> None:
    left, right = steering_joints(CAR)
    assert (left.name, right.name) == (
        "front_left_steering_joint",
        "front_right_steering_joint",
    )
    assert left.pose.y == -right.pose.y == pytest.approx(0.13)
    (rear,) = steering_joints(FORKLIFT)
    assert (rear.name, rear.child, rear.pose.x) == (
        "rear_steering_joint",
        "rear_wheel",
        -1.4,
    )
    assert steering_joints(botyard.load_robot("p3dx")) == ()


def test_encoders_count_the_wheels_of_the_fixed_axle() -> None:
    robot = one()
    robot.command(v=0.5, steer=0.3)
    robot.simulation.step(30)
    path = robot.simulation.core.engine.state.path[0]
    left, right = robot.spec.kinematics.wheel_speeds(*path.tolist())
    assert right > left > 0.0
    radius = path[0] / path[1]
    assert left / right == pytest.approx((radius - 0.13) / (radius + 0.13))
