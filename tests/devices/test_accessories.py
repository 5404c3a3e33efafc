"""Bumpers, gripper, battery, encoders, gyro, compass, table sensors:

from the engine's state to their readings.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from botyard.devices.battery import BATTERY, Battery, BatteryReading
from botyard.devices.bumpers import Bumpers, BumperSpec, pressed
from botyard.devices.compass import CompassSpec, bearing
from botyard.devices.electrics import Electrics
from botyard.devices.encoders import wheels
from botyard.devices.joints import JointCommand
from botyard.geometry import Pose
from botyard.model.accessories import GripperSpec
from botyard.model.library import load_robot, parse_robot
from botyard.model.objects import Described, JointSpec
from botyard.model.readings import Action, ChargeState
from botyard.model.robot import BatterySpec, PioneerSpec, RobotSpec
from botyard.model.scene import Area, Place, Scene
from botyard.protocols.pioneer.encoders import GYRO_SCALE, gyro_reading, ticks
from botyard.sim.simulation import Simulation
from tests.naive import contact_sectors

WALL = Scene(segments=np.array([[2.0, -9.0, 2.0, 9.0]]))


def equipped(scene: Scene = WALL, pose: Pose = Pose()) -> Simulation:
    sim = Simulation(scene, odometry_error="none", sensor_noise=False)
    sim.add_robot("p3dx-equipped", "r", pose=pose)
    return sim


# -- bumpers


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        (0, Bumpers(front=0b00100)),
        (80, Bumpers(front=0b00001)),
        (-80, Bumpers(front=0b10000)),
        (40, Bumpers(front=0b00010)),
        (180, Bumpers(rear=0b00100)),
        (-100, Bumpers(rear=0b00001)),
        (100, Bumpers(rear=0b10000)),
    ],
)
def test_segments_are_numbered_clockwise(degrees: float, expected: Bumpers) -> None:
    sector = int(math.floor(degrees / 360 * 64)) % 64
    assert pressed(BumperSpec(front=5, rear=5), 1 << sector) == expected


def test_a_robot_without_bumpers_has_none_pressed() -> None:
    assert pressed(BumperSpec(), (1 << 64) - 1) == Bumpers(0, 0)
    assert pressed(BumperSpec(front=7, rear=7), (1 << 64) - 1) == Bumpers(0x7F, 0x7F)


@pytest.mark.parametrize("heading", [0.0, 0.3, -0.5, 1.0, -1.2])
@pytest.mark.parametrize("back", [False, True])
def test_contacts_are_where_the_outline_meets_the_wall(
    heading: float, back: bool
) -> None:
    """The sectors agree with a dense sampling of the outline moved forward by a tiny
    distance.
    """
    sim = Simulation(WALL, odometry_error="none")
    robot = sim.add_robot(
        "peoplebot-sh", pose=Pose(1.0, 0.0, heading + (math.pi if back else 0.0))
    )
    robot.command(v=-0.5 if back else 0.5)
    sim.step(60)
    assert robot.stalled
    found = int(sim.snapshot.state.contact[0])
    truth = robot.truth
    expected = contact_sectors(robot.spec.outline, truth, 2.0 - 3e-5)
    near = (
        expected
        | (expected << 1)
        | (expected >> 1)
        | (expected << 63)
        | (expected >> 63)
    )
    assert found, "something was touched"
    assert found & ~near & ((1 << 64) - 1) == 0, "nothing else was"
    assert (
        expected
        & ~(found | (found << 1) | (found >> 1) | (found << 63) | (found >> 63))
        & ((1 << 64) - 1)
        == 0
    )
    assert bool(robot.bumpers.read().rear) == back
    assert bool(robot.bumpers.read().front) == (not back)


def test_a_bumper_stays_pressed_until_the_robot_moves() -> None:
    sim = Simulation(WALL, odometry_error="none")
    robot = sim.add_robot("peoplebot-sh", pose=Pose(1.0, 0.0, 0.0))
    robot.command(v=0.5)
    sim.step(40)
    robot.command(v=0.0)
    sim.step(5)
    assert (robot.stalled, robot.bumpers.read()) == (False, Bumpers(front=0b01110))
    robot.command(v=-0.2)
    sim.step(2)
    assert not robot.bumpers.read()


def test_robots_feel_each_other() -> None:
    sim = Simulation(odometry_error="none")
    a = sim.add_robot("peoplebot-sh", "a", pose=Pose(0, 0, 0))
    sim.add_robot("p3at", "b", pose=Pose(1.2, 0.45, 0))
    a.command(v=0.5)
    sim.step(60)
    assert a.stalled
    assert a.bumpers.read().front & 0b00011, "at its left"
    assert not a.bumpers.read().front & 0b11000


# -- gripper


def test_a_gripper_takes_a_box_along_and_lets_it_go() -> None:
    sim = equipped()
    robot, box = (
        sim.robots["r"],
        sim.add_robot("small-box", "box", pose=Pose(0.30, 0.02, 0.2)),
    )
    sim.step()
    state = robot.gripper_state
    assert (
        state.open,
        state.closed,
        state.outer_beam,
        state.inner_beam,
        state.lift_down,
    ) == (
        True,
        False,
        True,
        False,
        True,
    )
    robot.gripper.act(Action.CLOSE)
    sim.step()
    assert robot.gripper_state.paddles_move
    sim.step(10)
    state = robot.gripper_state
    assert (state.closed, state.left_touches, state.right_touches, state.open) == (
        True,
        True,
        True,
        False,
    )
    assert robot.gripper.holding == "box"
    assert state.outer_beam, "what it holds still breaks the beam"
    robot.command(v=0.4, w=0.3)
    sim.step(15)
    held = robot.truth
    c, s = math.cos(held.th), math.sin(held.th)
    assert (box.truth.x, box.truth.y) == pytest.approx(
        (held.x + 0.3 * c - 0.02 * s, held.y + 0.3 * s + 0.02 * c)
    )
    robot.command(v=0.0, w=0.0)
    robot.gripper.act(Action.OPEN)
    sim.step(20)
    put = box.truth
    assert robot.gripper.holding is None
    robot.command(v=-0.3)
    sim.step(10)
    assert box.truth == put, "it stays where it was put"
    assert not robot.gripper_state.outer_beam


def test_a_carried_box_bumps_into_things_and_is_seen_as_part_of_its_carrier() -> None:
    sim = equipped()
    robot, box = (
        sim.robots["r"],
        sim.add_robot("small-box", "box", pose=Pose(0.30, 0.0, 0.0)),
    )
    watcher = sim.add_robot("p3dx", "w", pose=Pose(1.5, 1.0, -math.pi / 2))
    robot.gripper.act(Action.CLOSE)
    sim.step(12)
    assert robot.gripper.holding == "box"
    ahead = np.abs(watcher.laser.read().angles - math.atan2(0.44, 0.95)).argmin()
    assert watcher.laser.read().ranges[ahead] > 1.15, "the wall"
    robot.command(v=0.5)
    sim.step(60)
    assert robot.stalled
    assert box.truth.x + 0.05 == pytest.approx(2.0, abs=1e-3), (
        "the box stands at the wall"
    )
    assert watcher.laser.read().ranges[ahead] == pytest.approx(
        math.hypot(0.44, 0.95), abs=0.02
    )


def test_paddles_close_on_nothing_and_stop_on_demand() -> None:
    sim = equipped()
    gripper = sim.robots["r"].gripper
    gripper.act(Action.CLOSE)
    sim.step(5)
    gripper.act(Action.STOP)
    sim.step(2)
    half = sim.robots["r"].gripper_state
    assert (half.open, half.closed, half.paddles_move) == (False, False, False)
    gripper.act(Action.CLOSE)
    sim.step(12)
    assert sim.robots["r"].gripper_state.closed, "against each other"
    assert gripper.holding is None


def test_things_that_do_not_fit_are_not_gripped() -> None:
    sim = equipped()
    sim.add_robot("box", "big", pose=Pose(0.6, 0.0, 0.0))
    sim.robots["r"].gripper.act(Action.CLOSE)
    sim.step(15)
    assert sim.robots["r"].gripper.holding is None


def test_lift_store_deploy_and_carry() -> None:
    sim = equipped()
    gripper = sim.robots["r"].gripper
    gripper.act(Action.LIFT_UP)
    sim.step(5)
    assert sim.robots["r"].gripper_state.lift_moves
    assert not (
        sim.robots["r"].gripper_state.lift_up or sim.robots["r"].gripper_state.lift_down
    )
    sim.step(20)
    assert sim.robots["r"].gripper_state.lift_up
    gripper.carry(-0.5)
    sim.step(20)
    assert not (
        sim.robots["r"].gripper_state.lift_up or sim.robots["r"].gripper_state.lift_down
    )
    gripper.act(Action.DEPLOY)
    sim.step(30)
    assert (
        sim.robots["r"].gripper_state.lift_down,
        sim.robots["r"].gripper_state.open,
    ) == (True, True)
    gripper.act(Action.STORE)
    sim.step(30)
    assert (
        sim.robots["r"].gripper_state.lift_up,
        sim.robots["r"].gripper_state.closed,
    ) == (True, True)
    gripper.act(Action.LIFT_DOWN)
    sim.step(5)
    gripper.act(Action.HALT)
    sim.step(3)
    assert not sim.robots["r"].gripper_state.lift_moves


def test_nothing_acts_while_time_stands_still() -> None:
    """Settling a paused world updates the sensors.

    Paddles, lift, battery and joints keep their states, and continue with time.
    """
    spec = load_robot("p3dx-equipped")
    sim = Simulation()
    spec = replace(spec, battery=replace(spec.battery, capacity_wh=10.0))
    robot = sim.add_robot(spec, "bob", pose=(0, 0, 0))
    assert robot.gripper is not None
    sim.core.describe(
        Described(joints=(JointSpec(name="arm", parent="bob", child="hand"),))
    )
    arm = sim.core.descriptions.joints["bob"][0]
    robot.gripper.act(Action.CLOSE)
    robot.gripper.act(Action.LIFT_UP)
    arm.command(JointCommand.VELOCITY, 1.0)
    sim.step()
    before = (robot.gripper.positions, robot.electrics.charge, arm.position)
    for _ in range(5):
        robot.command.set_pose(1, 0, 0)
        sim.settle()

    assert (robot.gripper.positions, robot.electrics.charge, arm.position) == before
    assert robot.truth.x == 1.0
    sim.step()
    after = (robot.gripper.positions, robot.electrics.charge, arm.position)
    assert (
        after[0][0] < before[0][0]
        and after[0][2] > before[0][2]
        and after[1] < before[1]
        and after[2] > before[2]
    )


def test_removing_what_is_held_or_who_holds() -> None:
    for gone in ("box", "r"):
        sim = equipped()
        sim.add_robot("small-box", "box", pose=Pose(0.30, 0.0, 0.0))
        sim.robots["r"].gripper.act(Action.CLOSE)
        sim.step(12)
        assert sim.robots["r"].gripper.holding == "box"
        sim.remove_robot(gone)
        sim.step(15)
        if gone == "box":
            assert sim.robots["r"].gripper.holding is None
            assert sim.robots["r"].gripper_state.closed, (
                "the paddles go on until they meet"
            )
        else:
            assert sim.snapshot.state.mask[sim.snapshot.rows["box"]] == 7, (
                "it is felt again"
            )


def test_wrong_grippers_are_refused() -> None:
    from botyard.errors import ModelError

    with pytest.raises(ModelError, match="gripper: reach must be positive"):
        GripperSpec(reach=0.0)
    with pytest.raises(ModelError, match="bumpers: front: expected 0 … 7, found 9"):
        BumperSpec(front=9)


# -- battery


def test_a_battery_drains_with_motion_and_charges_on_a_dock() -> None:
    battery = Battery(
        BatterySpec(
            capacity_wh=1.0, idle_power=10.0, motor_power=50.0, charge_power=100.0
        )
    )
    battery.advance(36.0, 0.0, False)
    assert battery.charge == pytest.approx(90.0), "10 W for 36 s are 0.1 Wh"
    battery.advance(36.0, 1.0, False)
    assert battery.charge == pytest.approx(30.0)
    assert battery.volts == pytest.approx(10.5 + 0.3 * 2.5)
    assert battery.charge_state is ChargeState.NOT_CHARGING
    seen = []
    for _ in range(200):
        battery.advance(0.36, 0.0, True)
        if battery.charge_state not in seen:
            seen.append(battery.charge_state)

    assert seen == [ChargeState.BULK, ChargeState.OVERCHARGE, ChargeState.FLOAT]
    assert 99.0 <= battery.charge <= 100.0


def test_an_empty_battery_switches_the_motors_off_and_a_dock_brings_them_back() -> None:
    dock = Place(kind="Dock", name="d", pose=Pose(50.0, 0.0, 0.0))
    spec = parse_robot(
        'extends = "p3dx"\nbattery = { capacity_wh = 0.05, motor_power = 100, charge_power = 400 }',
        "thirsty",
    )
    sim = Simulation(Scene(places=(dock,)), odometry_error="none")
    robot = sim.add_robot(spec, "r", pose=Pose())
    robot.command(v=0.5)
    sim.step(100)
    assert robot.electrics.battery.is_low
    assert robot.motors_inhibited == "the battery is empty"
    assert (robot.motors_on, robot.velocity.vx) == (False, 0.0)
    robot.command.set_pose(50.0, 0.1, 0.1)
    sim.step(20)
    assert robot.electrics.battery.on_dock
    assert robot.electrics.battery.charge_state is not ChargeState.NOT_CHARGING
    robot.command.enable()
    robot.command(v=0.5)
    sim.step(5)
    assert robot.velocity.vx > 0


def test_the_current_of_a_charging_battery_is_above_the_threshold_of_nav2() -> None:
    """A charger feeds the idle load and the battery; without one, nothing is measured."""
    (state,) = (m for m in BATTERY.ros if m.topic == "battery_state")
    spec = BatterySpec(
        capacity_wh=100.0, idle_power=12.0, charge_power=90.0, volts=12.0
    )
    for charge_state, current in (
        (ChargeState.NOT_CHARGING, math.nan),
        (ChargeState.BULK, 6.5),
        (ChargeState.OVERCHARGE, 6.5),
        (ChargeState.FLOAT, 0.0),
    ):
        reading = BatteryReading(12.0, 50.0, charge_state, True, False)
        found = state.fields(spec, reading)["current"]
        assert found == pytest.approx(current, nan_ok=True)


def test_a_dock_has_a_direction() -> None:
    dock = Place(kind="Dock", name="d", pose=Pose(0.0, 0.0, 0.0))
    sim = equipped(Scene(places=(dock,)), Pose(0.0, 0.0, math.pi / 2))
    sim.step()
    assert not sim.robots["r"].electrics.battery.on_dock
    sim.robots["r"].command.set_pose(0.0, 0.0, 0.2)
    sim.step()
    assert sim.robots["r"].electrics.battery.on_dock


def test_pretended_battery_states() -> None:
    e = Electrics.of(BatterySpec(capacity_wh=100.0))
    e.test_battery(115)
    assert e.volts == pytest.approx(11.5)
    e.battery.advance(1.0, 1.0, False)
    assert e.volts < 11.5, "a simulated battery goes on from there"
    e.test_battery(0)
    assert e.charge == 100.0


# -- encoders, gyro, compass, lines, joystick


def test_encoders_count_both_wheels() -> None:
    spec = PioneerSpec(ticks_per_mm=100.0, diff_conv=0.005)
    assert ticks(1.0, spec) == 100_000
    robot_spec = RobotSpec(name="r", pioneer=spec)
    left, right = wheels((0.0, 0.0, 1.0), (0.5, 0.0, 0.0), robot_spec.kinematics)
    assert [ticks(wheel.distance, spec) for wheel in (left, right)] == [
        -20_000,
        20_000,
    ], "half the track is 200 mm"
    assert (left.angle, right.rate) == pytest.approx((-2.0, 5.0))
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx", pose=Pose())
    robot.command(v=0.5)
    sim.step(50)
    robot.command(v=-0.5)
    sim.step(100)
    assert robot.state.path[0] == pytest.approx(robot.odom.x), (
        "ways back count backwards"
    )
    assert [
        wheel.distance for wheel in robot.devices["encoders"].read()
    ] == pytest.approx([robot.odom.x] * 2)
    robot.command(w=0.3)
    sim.step(20)
    left, right = robot.devices["encoders"].read()
    half = robot.spec.kinematics.half_track
    assert right.distance - left.distance == pytest.approx(2 * half * robot.odom.th)
    assert (left.speed, right.speed) == pytest.approx(
        (robot.velocity.vx - 0.3 * half, robot.velocity.vx + 0.3 * half)
    )


def test_encoders_do_not_jump_with_the_robot() -> None:
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot("p3dx", pose=Pose())
    robot.command(v=0.5)
    sim.step(10)
    before = robot.state.path
    robot.command(v=0.0)
    sim.step(20)
    rest = robot.state.path
    robot.command.set_pose(9.0, 9.0, 1.0)
    robot.command.reset_odometry()
    sim.step(3)
    assert robot.state.path == rest
    assert rest[0] > before[0]


@pytest.mark.parametrize(
    ("rate", "raw"),
    [
        (0.0, 512),
        (GYRO_SCALE * 10, 522),
        (-GYRO_SCALE * 10, 502),
        (99.0, 1023),
        (-99.0, 0),
    ],
)
def test_gyro_readings(rate: float, raw: int) -> None:
    assert gyro_reading(rate) == raw


@pytest.mark.parametrize(("th", "degrees"), [(0, 90), (90, 0), (180, 270), (-90, 180)])
def test_compass_counts_clockwise_from_north(th: float, degrees: float) -> None:
    assert math.degrees(bearing(math.radians(th))) == pytest.approx(degrees)


def test_tables_are_seen_from_below() -> None:
    table = Area(
        kind="Table", name="", corners=((0.5, 0.0), (2.0, 0.0), (2.0, 2.0), (0.5, 2.0))
    )
    sim = equipped(Scene(areas=(table,)))
    robot = sim.robots["r"]
    assert robot.digital_inputs == b"\xff" * 4
    robot.command.set_pose(0.4, 0.0, 0.0)
    sim.step()
    assert robot.digital_inputs[0] == 0xFE, "the left sensor alone is under the table"
    robot.command.set_pose(0.4, 1.0, 0.0)
    sim.step()
    assert robot.digital_inputs[0] == 0xFC and robot.devices["table_ir"].read() == (
        True,
        True,
    )
    newer = sim.add_robot("peoplebot-sh", "p", pose=Pose(0.4, 0.0, 0.0))
    assert newer.digital_inputs == b"\xff\xff\xff\xfd"


def test_lines_from_outside() -> None:
    e = Electrics.of(BatterySpec())
    e.write_inputs(mask=0x0F, states=0x05)
    e.write_inputs(mask=0xFF, states=0x11, byte=2)
    e.write_inputs(mask=0xFF, states=0x11, byte=9)
    assert e.inputs == [0xF5, 0xFF, 0x11, 0xFF]
    e.write_analog(3, 5000)
    e.write_analog(99, 1)
    assert e.analog == [0, 0, 0, 1023, 0, 0, 0, 0]
    e.joystick.set(-3.0, 0.5, 2.0, button1=True)
    assert (e.joystick.x, e.joystick.y, e.joystick.throttle, e.joystick.button1) == (
        -1.0,
        0.5,
        1.0,
        True,
    )


def test_the_red_button() -> None:
    sim = equipped()
    robot = sim.robots["r"]
    robot.command(v=0.5)
    sim.step(10)
    robot.press_estop()
    sim.step(2)
    assert (robot.velocity.vx, robot.motors_on) == (
        0.0,
        False,
    ) and robot.electrics.inhibited
    robot.press_estop(False)
    robot.command.enable()
    robot.command(v=0.2)
    sim.step(3)
    assert robot.velocity.vx > 0


def test_models_say_what_they_carry() -> None:
    assert load_robot("p3dx").gripper is None
    assert load_robot("peoplebot-sh").device("bumpers") == BumperSpec(front=5, rear=5)
    spec = load_robot("p3dx-equipped")
    assert spec.gripper is not None
    assert (spec.gyro, spec.compass, spec.pioneer.subclass) == (
        True,
        CompassSpec(),
        "p3dx",
    )


def test_ranges_can_be_rounded_as_the_original_does() -> None:
    sim = Simulation(
        Scene(segments=np.array([[2.013, -9.0, 2.013, 9.0]])),
        sensor_noise=False,
        range_step=0.02,
    )
    robot = sim.add_robot("p3dx", pose=Pose())
    assert robot.laser.read().ranges[90] == pytest.approx(2.02)
    assert robot.sonar is not None
    steps = robot.sonar.read().ranges / 0.02
    assert np.abs(steps - np.rint(steps)).max() < 1e-9
