"""Models of real robots drive their data sheets.

The values stand here as the sources give them: m, rad and s. The files of the models have
their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest

from botyard.devices.rangebearing import payload
from botyard.model.floor import Floor, FloorZone
from botyard.model.kinematics import Drive
from botyard.model.library import load_robot
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.sim.simulation import Robot, Simulation


@dataclass(frozen=True)
class Sheet:
    """Data sheet of a robot.

    Attributes
    ----------
    size : (float, float)
        Length and width, m.
    top : (float, float, float)
        Top speeds forward, to the left, and of rotation, m/s and rad/s.
    brake : float
        Deceleration, m/s²; 0: none is published.
    radius : float
        Radius of the turning circle, m.
    wheel : float
        Top turn rate of a driven wheel on the spot, rad/s; 0: not published.
    scans : tuple of float
        Scan rate of each lidar, Hz.
    rays : tuple of int
        Number of rays of each lidar.
    """

    size: tuple[float, float]
    top: tuple[float, float, float]
    brake: float
    radius: float = 0.0
    wheel: float = 0.0
    scans: tuple[float, ...] = ()
    rays: tuple[int, ...] = ()


SHEETS = {
    # emanual.robotis.com; turtlebot3_description, turtlebot3_navigation2
    "turtlebot3-burger": Sheet(
        (0.14, 0.178), (0.22, 0.0, 2.84), 2.5, scans=(5.0,), rays=(360,)
    ),
    "turtlebot3-waffle": Sheet(
        (0.266, 0.306), (0.26, 0.0, 1.82), 2.5, scans=(5.0,), rays=(360,)
    ),
    # irobot_create_description, irobot_create_control; data sheet of the A1M8
    "create3": Sheet((0.328, 0.328), (0.306, 0.0, 1.9), 0.9),
    "turtlebot4": Sheet(
        (0.328, 0.328), (0.306, 0.0, 1.9), 0.9, scans=(5.5,), rays=(360,)
    ),
    # jackal_description, jackal_control
    "jackal": Sheet((0.42, 0.4156), (2.0, 0.0, 4.0), 20.0, scans=(40.0,), rays=(1081,)),
    # husky_description, husky_control
    "husky": Sheet((0.9874, 0.6852), (1.0, 0.0, 2.0), 3.0, scans=(50.0,), rays=(271,)),
    # ridgeback_description, ridgeback_control
    "ridgeback": Sheet(
        (0.96, 0.793), (1.0, 1.0, 4.0), 1.0, scans=(40.0, 40.0), rays=(1081, 1081)
    ),
    # mir_description
    "mir250": Sheet(
        (0.8, 0.58), (2.0, 0.0, 1.5), 2.0, scans=(12.5, 12.5), rays=(540, 540)
    ),
    # f1tenth_gym, vesc.yaml: 0.3302 m / tan(0.4189)
    "car": Sheet((0.58, 0.31), (5.04, 0.0, 6.8), 2.5, 0.742, rays=(1080,)),
    # typical of the class: 1.4 m / tan(80°) and 1.15 m / tan(80°)
    "forklift": Sheet(
        (3.15, 1.1), (1.5, 0.0, 0.8), 0.8, 0.247, scans=(12.5, 12.5), rays=(540, 540)
    ),
    "tugger": Sheet(
        (1.8, 0.85), (1.5, 0.0, 0.8), 0.8, 0.203, scans=(12.5, 12.5), rays=(540, 540)
    ),
    # Enki, Webots: 1200 steps/s at 1000 steps a turn
    "e-puck": Sheet(
        (0.074, 0.074), (0.1546, 0.0, 5.945), 0.0, wheel=1.2 * 2.0 * math.pi
    ),
    # Enki
    "thymio": Sheet((0.11, 0.11), (0.166, 0.0, 3.53), 0.0),
    # ARGoS
    "foot-bot": Sheet((0.17, 0.17), (0.3, 0.0, 4.286), 0.0),
    "khepera4": Sheet((0.1408, 0.1408), (0.8, 0.0, 15.18), 0.0),
    # champ_config, champ_base
    "quadruped": Sheet((0.5, 0.29), (0.5, 0.25, 1.0), 1.0, scans=(40.0,), rays=(1081,)),
}
NAMES = sorted(SHEETS)
STEP = 0.005
LONG = 30.0
"""Longest time until a robot has its top speed, s."""


def alone(name: str) -> Robot:
    """Return a robot in an empty plane, without errors."""
    spec = replace(load_robot(name), lasers=(), sonar=None)
    return Simulation(odometry_error="none", step=STEP).add_robot(spec, "ann")


def settle(robot: Robot) -> None:
    """Simulate until the velocity is constant."""
    sim, last = robot.simulation, (math.nan,) * 3
    while sim.time < LONG:
        now = (robot.velocity.vx, robot.velocity.vy, robot.velocity.w)
        if max(abs(a - b) for a, b in zip(now, last, strict=True)) < 1e-9:
            return
        last = now
        # The wheels of a slow axle turn for seconds.
        sim.step(100)
    raise AssertionError(f"{robot.name} has no constant velocity after {LONG:g} s")


def extent(spec: RobotSpec) -> tuple[float, float]:
    xs, ys = zip(
        *(p for part in (spec.outline, *spec.parts) for p in part), strict=True
    )
    return max(xs) - min(xs), max(ys) - min(ys)


@pytest.mark.parametrize("name", NAMES)
def test_size(name: str) -> None:
    # A polygon with the area of a disc is up to 1.5 % wider.
    assert extent(load_robot(name)) == pytest.approx(SHEETS[name].size, rel=0.015)


@pytest.mark.parametrize("name", NAMES)
def test_top_speed(name: str) -> None:
    robot, (vx, vy, _) = alone(name), SHEETS[name].top
    robot.command(v=10.0 * vx, w=0.0)
    settle(robot)
    assert robot.velocity.vx == pytest.approx(vx, rel=1e-3)
    robot.command(v=-10.0 * vx, w=0.0)
    settle(robot)
    assert robot.velocity.vx == pytest.approx(-vx, rel=1e-3)
    assert robot.truth.y == pytest.approx(0.0, abs=1e-9)
    if vy:
        robot.command(v=0.0, vy=10.0 * vy, w=0.0)
        settle(robot)
        assert robot.velocity.vy == pytest.approx(vy, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_turning_circle(name: str) -> None:
    """A car-like robot drives its smallest circle, and returns to its start; others turn on
    the spot at their top rate.
    """
    robot, sheet = alone(name), SHEETS[name]
    sim = robot.simulation
    if not sheet.radius:
        robot.command(v=0.0, w=10.0 * sheet.top[2])
        settle(robot)
        assert robot.velocity.w == pytest.approx(sheet.top[2], rel=1e-3)
        assert (robot.truth.x, robot.truth.y) == pytest.approx((0.0, 0.0), abs=1e-9)
        return

    robot.command(v=0.0, steer=10.0)
    sim.run(5.0)
    start = robot.truth
    robot.command(v=0.1, steer=10.0)
    settle(robot)
    turn = robot.velocity.w / robot.velocity.vx
    assert abs(1.0 / turn) == pytest.approx(sheet.radius, abs=5e-4)
    far = 0.0
    for _ in range(round(2.0 * math.pi / abs(robot.velocity.w) / STEP / 5.0) + 20):
        sim.step(5)
        far = max(far, math.hypot(robot.truth.x - start.x, robot.truth.y - start.y))
    assert far == pytest.approx(2.0 * sheet.radius, rel=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_top_turn_rate_of_cars(name: str) -> None:
    robot, sheet = alone(name), SHEETS[name]
    if sheet.radius:
        robot.command(v=sheet.top[0], w=10.0 * sheet.top[2])
        settle(robot)
        assert abs(robot.velocity.w) <= sheet.top[2] * (1.0 + 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_stopping_distance(name: str) -> None:
    """v² / (2 a); without a published deceleration the robot stops within one step."""
    robot, sheet = alone(name), SHEETS[name]
    v = sheet.top[0]
    robot.command(v=v, w=0.0)
    settle(robot)
    before = robot.truth.x
    robot.command.stop()
    robot.simulation.step()
    settle(robot)
    assert robot.velocity.vx == 0.0
    expected = v * v / (2.0 * sheet.brake) if sheet.brake else 0.0
    # Files of older models integrate a step at its final velocity.
    slack = 0.5 * v * STEP * (1.0 + 1e-9)
    assert robot.truth.x - before == pytest.approx(
        expected, abs=slack + 1e-3 * expected
    )


@pytest.mark.parametrize("name", [n for n in NAMES if SHEETS[n].scans])
def test_scan_rate(name: str) -> None:
    """A laser measures as often as the sheet says, whoever reads it."""
    sim = Simulation(step=STEP)
    robot = sim.add_robot(name, "ann")
    seen: list[set[float]] = [set() for _ in robot.lasers]
    seconds = 2.0
    for _ in range(round(seconds / STEP)):
        sim.step()
        for stamps, laser in zip(seen, robot.lasers, strict=True):
            stamps.add(laser.read().stamp)
    counts = [len(stamps) for stamps in seen]
    assert counts == pytest.approx([seconds * r for r in SHEETS[name].scans], abs=1.0)
    assert (
        tuple(len(laser.read().ranges) for laser in robot.lasers) == SHEETS[name].rays
    )


@pytest.mark.parametrize("name", NAMES)
def test_wheels(name: str) -> None:
    """Two wheels that reach the top speed forward reach the top turn rate on the spot."""
    spec, sheet = load_robot(name), SHEETS[name]
    if sheet.wheel:
        rates = spec.kinematics.wheel_rates(0.0, sheet.top[2])
        assert rates == pytest.approx((-sheet.wheel, sheet.wheel), rel=2e-3)
        assert sheet.wheel * spec.wheel_radius == pytest.approx(sheet.top[0], rel=1e-3)
    if not sheet.brake:
        left, right = spec.kinematics.wheel_speeds(0.0, sheet.top[2])
        assert (-left, right) == pytest.approx((sheet.top[0],) * 2, rel=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_devices_are_on_the_body(name: str) -> None:
    """Lasers and transducers lie within the outline, or at most 1 cm outside of it."""
    spec = load_robot(name)
    length = max(abs(x) for part in (spec.outline, *spec.parts) for x, _ in part)
    width = max(abs(y) for part in (spec.outline, *spec.parts) for _, y in part)
    poses = [laser.pose for laser in spec.lasers]
    poses += [t.pose for t in spec.sonar.transducers] if spec.sonar else []
    for pose in poses:
        assert abs(pose.x) <= length + 0.01 and abs(pose.y) <= width + 0.01, pose


IMUS = {
    # Pose, m; deviations of turn rate and acceleration at the rate of messages.
    "turtlebot3-burger": ((-0.032, 0.0), 2e-4, 1.7e-2, 200.0),
    "turtlebot3-waffle": ((0.0, 0.0), 2e-4, 1.7e-2, 200.0),
    "create3": ((0.0506, 0.0437), 0.0, 0.0, 0.0),
    "turtlebot4": ((0.0506, 0.0437), 0.0, 0.0, 0.0),
    "jackal": ((0.0, 0.0), 0.0, 0.0, 0.0),
    "husky": ((0.19, 0.0), 0.0, 0.0, 0.0),
    "ridgeback": ((0.2085, -0.2902), 0.0, 0.0, 0.0),
    "mir250": ((0.0, 0.0), 1.7e-4, 1.7e-4, 50.0),
}
CLIFFS = ((0.06, 0.145), (0.16, 0.045), (0.16, -0.045), (0.06, -0.145))
SPOTS = {
    "create3": ("cliff_sensor", CLIFFS),
    "turtlebot4": ("cliff_sensor", CLIFFS),
    "e-puck": ("line_sensor", ((0.03, 0.009), (0.03, 0.0), (0.03, -0.009))),
    "thymio": ("line_sensor", ((0.072, 0.012), (0.072, -0.012))),
    "foot-bot": (
        "line_sensor",
        ((0.063, 0.0116), (-0.063, 0.0116), (-0.063, -0.0116), (0.063, -0.0116)),
    ),
    "khepera4": (
        "line_sensor",
        ((0.0206, 0.059), (0.0614, 0.01), (0.0614, -0.01), (0.0206, -0.059)),
    ),
}


@pytest.mark.parametrize("name", IMUS)
def test_inertial_units(name: str) -> None:
    """On a circle the unit measures the turn rate and the acceleration of its place."""
    (x, y), rate_noise, accel_noise, rate = IMUS[name]
    robot, sheet = alone(name), SHEETS[name]
    v, w = 0.5 * sheet.top[0], 0.5 * sheet.top[2]
    robot.command(v=v, w=w)
    settle(robot)
    found = robot.simulation.robots["ann"].devices["imu"]
    spec = found.spec
    assert (spec.pose.x, spec.pose.y, spec.update_rate) == (x, y, rate)
    if rate:
        shares = (spec.gyro_noise, spec.accel_noise)
        assert [one * math.sqrt(rate) for one in shares] == pytest.approx(
            [rate_noise, accel_noise], rel=0.02
        )
    count = 400
    rates, axes = [], []
    for _ in range(count):
        robot.simulation.step()
        read = found.read()
        rates.append(read.turn_rate)
        axes.append(read.acceleration[:2])
    noise = 1.0 / math.sqrt(count * STEP)
    assert sum(rates) / count == pytest.approx(
        w, abs=1e-9 + 5.0 * spec.gyro_noise * noise
    )
    # Centripetal: towards the centre at (0, v / w) of the frame.
    expected = (-w * w * x, w * w * (v / w - y))
    means = [sum(axis) / count for axis in zip(*axes, strict=True)]
    # A mean over a step is a chord, shorter by (w dt)² / 24.
    slack = (
        1e-9 + 5.0 * spec.accel_noise * noise + (w * STEP) ** 2 * math.hypot(*expected)
    )
    assert means == pytest.approx(expected, abs=slack)


@pytest.mark.parametrize("name", SPOTS)
def test_sensors_of_the_floor(name: str) -> None:
    """Each spot, and no other one, sees a mark or a hole that is under it."""
    kind, spots = SPOTS[name]
    for k, (x, y) in enumerate(spots):
        corners = ((x - 1e-3, y - 1e-3), (x + 2e-3, y - 1e-3), (x - 1e-3, y + 2e-3))
        mark = FloorZone(corners=corners, color="#000000", hole=True)
        sim = Simulation(Scene(floor=Floor(color="#ffffff", zones=(mark,))), step=STEP)
        robot = sim.add_robot(name, "ann", pose=(0.0, 0.0, 0.0))
        sim.step()
        seen = robot.devices[kind].read()
        found = seen if kind == "cliff_sensor" else seen.brightness < 0.5
        assert list(found) == [i == k for i in range(len(spots))]


@pytest.mark.parametrize(
    ("name", "reach"), [("e-puck", 0.8), ("foot-bot", 6.0), ("khepera4", 3.0)]
)
def test_reach_of_messages(name: str, reach: float) -> None:
    sim = Simulation(step=STEP)
    ann = sim.add_robot(name, "ann", pose=(0.0, 0.0, 0.0))
    for k, share in enumerate((0.99, 1.01)):
        bob = sim.add_robot(
            name, f"bob{k}", pose=(0.0, (1 - 2 * k) * share * reach, 0.0)
        )
        bob.devices["range_and_bearing"].write(**payload(bytes([k])))
    sim.step(2)
    assert [one.data for one in ann.devices["range_and_bearing"].read()] == [b"\0"]


def test_ultrasonic_sensors_of_the_khepera() -> None:
    """Five rays of 0.25 to 2 m, at the front half of the disc."""
    sim = Simulation(step=STEP)
    robot = sim.add_robot("khepera4", "ann", pose=(0.0, 0.0, 0.0))
    kinds = [one.type for one in robot.spec.devices].count("ultrasonic")
    assert kinds == 5
    bearings = (90, 45, 0, -45, -90)
    names = [one for one in robot.devices if one.startswith("ultrasonic")]
    for bearing, device in zip(bearings, names, strict=True):
        angle = math.radians(bearing)
        sim = Simulation(step=STEP)
        robot = sim.add_robot("khepera4", "ann", pose=(0.0, 0.0, 0.0))
        place = ((0.0704 + 1.1) * math.cos(angle), (0.0704 + 1.1) * math.sin(angle))
        sim.add_robot("khepera4", "bob", pose=(*place, angle))
        sim.step()
        ranges = {one: robot.devices[one].read() for one in names}
        assert ranges.pop(device) == pytest.approx(1.1 - 0.0713, abs=2e-3)
        assert set(ranges.values()) == {2.0}


def test_swarm_robots_see_a_neighbour() -> None:
    """Infrared sensors of an e-puck measure a neighbour 3 cm ahead, and nothing behind."""
    sim = Simulation(step=STEP)
    ann = sim.add_robot("e-puck", "ann")
    sim.add_robot("e-puck", "bob", pose=(0.074 + 0.03, 0.0, 0.0))
    sim.step()
    assert ann.sonar is not None
    ranges = ann.sonar.read().ranges
    assert ranges[0] < 0.05 and ranges[7] < 0.05
    assert ranges[3] == ranges[4] == pytest.approx(0.05)


def test_lifting_forks_are_part_of_the_body() -> None:
    forklift = load_robot("forklift")
    assert forklift.drive is Drive.TRICYCLE
    assert forklift.front == 1.4 and len(forklift.parts) == 2
