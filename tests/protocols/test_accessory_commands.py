"""Commands for a robot's accessories, and the packets that answer them
(pioneer-protocol §4.3, §4.6, §5, §10).
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.geometry import Pose
from botyard.model.readings import GripperState
from botyard.model.scene import Area, Place, Scene
from botyard.protocols.pioneer import gripperbits
from botyard.protocols.pioneer.accessoryreports import (
    Encoders,
    GripperReport,
    Gyro,
    Io,
    JoystickReport,
)
from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.packet import Parser
from botyard.protocols.pioneer.reports import Config
from tests.protocols.lines import Client

WALL = Scene(segments=np.array([[2.0, -9.0, 2.0, 9.0]]))

# -- layouts

u8, u16, i32 = (
    st.integers(0, 255),
    st.integers(0, 65535),
    st.integers(-(2**31), 2**31 - 1),
)
reports = st.one_of(
    st.builds(Encoders, left=i32, right=i32),
    st.builds(Gyro, readings=st.lists(st.tuples(st.integers(0, 1023), u8), max_size=8)),
    st.builds(JoystickReport, button1=u8, button2=u8, x=u16, y=u16, throttle=u16),
    st.builds(
        Io,
        inputs=st.binary(max_size=8),
        outputs=st.binary(max_size=4),
        analog=st.lists(u16, max_size=16),
    ),
    st.builds(GripperReport, kind=u8, switches=u8, grasp_time=u8),
)


@given(reports)
def test_packets_survive_the_wire(report: object) -> None:
    (packet,) = Parser().feed_bytes(report.encode())
    assert type(report).decode(packet) == report


def test_layouts_byte_by_byte() -> None:
    """The expected bytes are written by hand from §10."""
    assert Encoders(left=1, right=-2).encode()[3:-2] == bytes.fromhex(
        "90 01000000 feffffff"
    )
    assert Gyro(readings=[(512, 128), (530, 9)]).encode()[3:-2] == bytes.fromhex(
        "98 02 0002 80 1202 09"
    )
    assert JoystickReport(button1=1, x=512, y=1023, throttle=5).encode()[
        3:-2
    ] == bytes.fromhex("f8 01 00 0002 ff03 0500")
    assert Io(inputs=b"\xff\xfe", outputs=b"\x0f", analog=[1023]).encode()[
        3:-2
    ] == bytes.fromhex("f0 02 fffe 01 0f 01 ff03")
    assert GripperReport(kind=2, switches=0x31).encode()[3:-2] == bytes.fromhex(
        "e0 02 31 00"
    )


# -- streams

KINDS = {19: 0x90, 40: 0xF0, 17: 0xF8}


@pytest.mark.parametrize("number", KINDS)
def test_packets_once_always_and_never(number: int) -> None:
    c = Client()
    c.run(0.3)
    c.send(number, 1)
    assert len(c.get(KINDS[number], 0.5)) == 1, "one"
    c.send(number, 2)
    assert len(c.get(KINDS[number], 0.5)) == 5, "one with every SIP"
    c.send(number, 0)
    assert c.get(KINDS[number], 0.5) == []


def test_they_follow_their_sip() -> None:
    c = Client("p3dx-equipped")
    for number in (19, 40, 17, 58):
        c.send(number, 2)
    c.send(36, -90)
    c.send(35, 2)
    ids = [p.id for p in c.run(0.1)]
    first = ids.index(0x32)
    assert ids[first : first + 6] == [0x32, 0x90, 0x98, 0xF8, 0xF0, 0x61]


def test_encoders_agree_with_odometry() -> None:
    c = Client()
    c.send(19, 2)
    c.send(11, 300)
    c.send(21, 20)
    c.run(3.0)
    c.send(11, 0)
    c.send(21, 0)
    packets = c.run(3.0)
    last = Encoders.decode([p for p in packets if p.id == 0x90][-1])
    p = c.robot.spec.pioneer
    turned = (last.right - last.left) / p.ticks_per_mm / 2 * p.diff_conv
    assert math.remainder(turned - c.robot.odom.th, 2 * math.pi) == pytest.approx(
        0, abs=1e-4
    )
    assert (last.left + last.right) / 2 / p.ticks_per_mm / 1000 == pytest.approx(
        c.robot.state.path[0], abs=1e-5
    )


def test_gyro_follows_the_turn_rate() -> None:
    c = Client("p3dx-equipped")
    c.send(58, 1)
    c.send(21, 50)
    c.run(3.0)
    gyro = Gyro.decode(c.get(0x98)[-1])
    assert len(gyro.readings) == 4
    assert (gyro.readings[0][0] - 512) * 1.626 == pytest.approx(50, abs=1.0)
    c.send(58, 0)
    assert c.get(0x98, 0.3) == []


def test_a_robot_without_gyro_says_so_once() -> None:
    c = Client("p3dx")
    for _ in range(3):
        c.send(58, 1)
    assert c.get(0x98, 0.3) == []
    assert sum("gyro" in text for text in c.log) == 1


def test_io_lines() -> None:
    c = Client()
    c.send(30, 0x0F05)
    c.ctrl(203, bytes((0, 0x03, 0x01)))
    c.ctrl(204, b"\x02\x00\x02")
    c.send(40, 1)
    packets = c.run(0.2)
    io = Io.decode(next(p for p in packets if p.id == 0xF0))
    assert (io.inputs, io.outputs, list(io.analog)) == (
        b"\xfd\xff\xff\xff",
        b"\xf5",
        [0, 0, 512, 0, 0, 0, 0, 0],
    )
    sip = c.sip()
    assert (sip.digin, sip.digout) == (0xFD, 0xF5)


def test_analog_port_of_the_sip() -> None:
    c = Client(laser_compat=False)
    c.ctrl(204, b"\x03\xff\x03")
    c.send(35, 3)
    sip = c.sip()
    assert (sip.timer_low, sip.analog) == (3, 255)
    c.send(35, 99)
    assert any("ADSEL: expected 0 … 7, found 99" in text for text in c.log)
    assert c.sip().timer_low == 3


def test_table_sensors_in_the_sip() -> None:
    table = Area(kind="Table", name="", corners=((-1, -1), (1, -1), (1, 1), (-1, 1)))
    assert Client("p3dx-equipped", Scene(areas=(table,))).sip().digin == 0xFC
    assert Client("p3dx", Scene(areas=(table,))).sip().digin == 0xFF


# -- joystick


def test_joystick_packets_and_driving() -> None:
    c = Client()
    c.send(17, 2)
    # Push the stick half way forward, with button 1.
    c.ctrl(205, bytes((0, 50, 100, 1)))
    report = JoystickReport.decode(c.get(0xF8, 0.2)[-1])
    assert (report.button1, report.x, report.y, report.throttle) == (1, 512, 768, 1023)
    assert c.sip().flags & 1 << 9, "the joystick's button"
    assert c.robot.velocity.vx == 0, "driving was not allowed"
    c.send(47, 1)
    for _ in range(30):
        c.send(0)
        c.run(0.1)

    assert c.robot.velocity.vx == pytest.approx(0.5, abs=0.01)
    top = c.robot.state.limits.a
    # Push the stick half way to the right, with the throttle at 40 %.
    c.ctrl(205, bytes((50, 0, 40, 1)))
    for _ in range(30):
        c.send(0)
        c.run(0.1)

    turning = -0.5 * 0.4 * top
    assert (c.robot.velocity.vx, c.robot.velocity.w) == pytest.approx(
        (0.0, turning), abs=0.01
    )
    c.ctrl(205, bytes((0, 50, 100, 0)))
    c.run(1.5)
    assert c.robot.velocity.vx == 0, "the button is a dead man's handle"


def test_who_may_drive_by_joystick_may_drive_by_commands_too() -> None:
    c = Client()
    c.send(47, 1)
    c.send(11, 300)
    c.run(1.5)
    assert c.robot.velocity.vx == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("buttons", range(4))
def test_each_button_of_the_joystick_is_its_own(buttons: int) -> None:
    c = Client()
    c.send(17, 2)
    c.ctrl(205, bytes((0, 0, 100, buttons)))
    report = JoystickReport.decode(c.get(0xF8, 0.2)[-1])
    assert (report.button1, report.button2) == (buttons & 1, buttons >> 1)


# -- bumpers


def test_bumper_bits_and_stall() -> None:
    c = Client("peoplebot-sh", WALL, pose=Pose(1.0, 0.0, 0.0))
    c.send(11, 500)
    sip = c.sip(3.5)
    assert sip.stall_bumpers & 0x0101 == 0x0101
    assert sip.stall_bumpers >> 9 == 0b01110
    assert sip.stall_bumpers & 0xFE == 0
    c.send(11, 0)
    assert c.sip().stall_bumpers == 0b01110 << 9, "still pressed, but not stalled"


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("mode", range(4))
def test_bumpstall(mode: int, forward: bool) -> None:
    """A pressed bumper of the chosen ring stalls the robot:

    the stall flags stay and the motion ends (§4.1).
    """
    stalls, way = bool(mode & (1 if forward else 2)), 1 if forward else -1
    c = Client("peoplebot-sh", WALL, pose=Pose(1.0, 0.0, 0.0 if forward else math.pi))
    c.send(44, mode)
    c.send(11, 500 * way)
    c.run(3.5)
    c.send(11, 0)
    assert bool(c.sip(0.3).stall_bumpers & 0x0101) == stalls
    c.send(11, -200 * way)
    c.run(0.5)
    assert c.robot.velocity.vx * way < 0, "it can back away"
    assert c.sip().stall_bumpers == 0


def test_bumpstall_gives_the_motion_up() -> None:
    c = Client("peoplebot-sh", WALL, pose=Pose(1.0, 0.0, 0.0))
    c.send(44, 1)
    c.send(11, 500)
    c.run(3.5)
    c.robot.command.set_pose(0.0, 0.0)
    c.send(0)
    c.run(1.0)
    assert c.robot.velocity.vx == 0, "the command that led to the bump is forgotten"


# -- gripper


def state(**values: bool) -> GripperState:
    return GripperState(**dict.fromkeys(GripperState._fields, False) | values)


def test_bits_of_both_layouts() -> None:
    """The expected bytes are written by hand from §10.1."""
    resting = state(open=True, lift_down=True)
    assert (gripperbits.aria(resting), gripperbits.p2os(resting)) == (0b0011_0000, 0x21)
    closed = state(
        closed=True,
        left_touches=True,
        right_touches=True,
        lift_up=True,
        inner_beam=True,
        outer_beam=True,
    )
    assert (gripperbits.aria(closed), gripperbits.p2os(closed)) == (0b0000_1101, 0x12)
    moving = state(paddles_move=True, lift_moves=True)
    assert (gripperbits.aria(moving), gripperbits.p2os(moving)) == (0b1111_0011, 0x44)
    assert gripperbits.p2os_inputs(closed, 0xFF) == 0xFF
    assert gripperbits.p2os_inputs(resting, 0xFF) == 0xF9


def test_a_gripper_by_commands() -> None:
    c = Client("p3dx-equipped")
    c.sim.add_robot("small-box", "box", pose=Pose(0.3, 0.0, 0.0))
    assert c.sip().gripper == 0b0011_0100, "open, lift down, outer beam broken"
    c.send(33, 2)
    assert c.sip(0.2).gripper & 0x80, "moving"
    assert c.sip(1.5).gripper & 0x30 == 0, "both paddles press on the box"
    assert c.robot.gripper.holding == "box"
    c.send(33, 4)
    assert c.sip(0.5).gripper & 0x42 == 0x42, "the lift moves, at neither end"
    assert c.sip(2.5).gripper & 0x42 == 0
    c.send(33, 1)
    assert c.sip(1.5).gripper & 0x31 == 0x30
    assert c.robot.gripper.holding is None


def test_gripper_byte_for_p2os() -> None:
    c = Client("p3dx-equipped", gripper_layout="p2os")
    c.sim.add_robot("small-box", "box", pose=Pose(0.3, 0.0, 0.0))
    sip = c.sip()
    assert (sip.gripper, sip.digin & 0b110) == (0x21, 0b010)


def test_gripper_packets() -> None:
    c = Client("p3dx-equipped")
    c.send(37, 2)
    assert len(c.get(0xE0, 0.5)) == 5
    report = GripperReport.decode(c.get(0xE0)[-1])
    assert (report.kind, report.switches) == (2, 0b0011_0000)
    c.send(37, 0)
    assert c.get(0xE0, 0.5) == []


def test_37_is_a_lasers_end_angle_behind_36() -> None:
    c = Client("p3dx-equipped")
    for number, value in ((36, -2), (37, 2), (38, 100), (35, 2)):
        c.send(number, value)
    packets = c.run(0.3)
    assert {p.id for p in packets} >= {0x61}
    assert (
        int.from_bytes(next(p for p in packets if p.id == 0x61).data[:2], "little") == 5
    )
    assert not any(p.id == 0xE0 for p in packets)
    c.send(37, 30)
    c.run(2.0)
    assert int.from_bytes(c.get(0x61)[-1].data[:2], "little") == 33, (
        "values that no gripper request has are the laser's"
    )


def test_36_is_the_grippers_behind_33_17() -> None:
    c = Client("p3dx-equipped")
    c.send(33, 17)
    # Move the lift up for one second.
    c.send(36, 50)
    c.run(3.0)
    lift = c.robot.gripper_state
    assert not (lift.lift_up or lift.lift_down)
    assert c.robot.laser._bundle.count == 181, "no laser was touched"
    c.send(33, 17)
    c.send(0)
    c.send(36, -45)
    c.run(0.3)
    assert math.degrees(c.robot.laser._bundle.angle0) == pytest.approx(-45), (
        "not directly behind: the laser's"
    )


def test_on_a_robot_without_gripper_they_are_always_the_lasers() -> None:
    c = Client("p3dx")
    c.send(37, 2)
    c.run(0.2)
    assert c.robot.laser._bundle.count == 93
    c.send(33, 1)
    assert any("33 (GRIPPER) is not supported" in text for text in c.log)


def test_without_laser_compatibility_the_numbers_are_free() -> None:
    c = Client("p3dx-equipped", laser_compat=False)
    c.send(33, 17)
    c.send(36, 50)
    c.run(3.0)
    lift = c.robot.gripper_state
    assert not (lift.lift_up or lift.lift_down), "36 is the time of the lift"
    c.send(36, -45)
    c.send(37, 2)
    c.send(38, 50)
    assert len(c.get(0xE0, 0.3)) == 3
    assert c.robot.laser._bundle.count == 181
    assert any(
        "command 38 (OLD_LRF_PARMINC) is not supported" in text for text in c.log
    )
    assert not any("command 33" in text or "command 36" in text for text in c.log)


def test_a_wrong_gripper_action_is_named() -> None:
    c = Client("p3dx-equipped")
    c.send(33, 9)
    assert any("GRIPPER: expected 1–8 or 15–17, found 9" in text for text in c.log)


# -- the SIP's other fields


@pytest.mark.parametrize(
    ("th", "byte"), [(90, 180), (0, 45), (-90, 90), (180, 135), (88, 1)]
)
def test_compass_byte(th: float, byte: int) -> None:
    assert (
        Client("p3dx-equipped", pose=Pose(0, 0, math.radians(th))).sip().compass == byte
    )
    assert Client("p3dx", pose=Pose(0, 0, math.radians(th))).sip().compass == 0


def test_charging_shows() -> None:
    dock = Scene(places=(Place(kind="Dock", name="", pose=Pose()),))
    c = Client("p3dx-equipped", dock)
    c.send(250, 115)
    sip = c.sip()
    assert sip.flags & 1 << 10, "charger power is good"
    assert (sip.charge_state, sip.battery10) == (1, 115)
    away = Client("p3dx-equipped", dock, pose=Pose(3.0, 0.0, 0.0)).sip()
    assert (away.flags & 1 << 10, away.charge_state) == (0, 0)


def test_an_empty_battery_refuses_to_drive() -> None:
    c = Client("p3dx-equipped")
    c.send(250, 105)
    c.send(11, 200)
    c.run(0.5)
    assert not c.sip().flags & 1
    c.send(4, 1)
    assert any("the motors stay off: the battery is empty" in text for text in c.log)
    assert not c.sip().flags & 1


def test_the_estop_button() -> None:
    c = Client()
    c.send(11, 300)
    c.run(1.0)
    c.ctrl(206, b"\x01")
    sip = c.sip(0.3)
    assert sip.flags & (1 << 5 | 1) == 1 << 5
    assert sip.left_vel == 0
    c.send(4, 1)
    assert any("the E-stop button is pressed" in text for text in c.log)
    c.ctrl(206, b"\x00")
    c.send(4, 1)
    c.send(11, 300)
    sip = c.sip(0.5)
    assert sip.flags & (1 << 5 | 1) == 1
    assert sip.left_vel > 0


def test_config_names_what_is_there() -> None:
    c = Client("p3dx-equipped")
    c.send(18, 1)
    config = Config.decode(c.get(0x20)[0])
    assert (
        config.has_gripper,
        config.front_bumpers,
        config.rear_bumpers,
        config.has_gyro,
        config.ticks_mm,
    ) == (
        1,
        5,
        5,
        1,
        128,
    )


# -- commands that are only logged


@pytest.mark.parametrize(
    ("number", "argument", "said"),
    [
        (15, bytes((25, 60, 50, 72)), "r: sound: note 60 for 0.5 s, note 72 for 1 s"),
        (90, 3, "command 90 (SOUND) with 3"),
        (91, 1, "command 91 (PLAYLIST) with 1"),
        (92, 0, "command 92 (SOUNDTOG) with 0"),
        (66, b"hi\x07", '66 (TTY3): "hi\\x07"'),
        (43, 5, "nothing is connected"),
        (67, 5, "nothing is connected"),
    ],
)
def test_sounds_and_serial_text(number: int, argument: int | bytes, said: str) -> None:
    c = Client()
    c.send(number, argument)
    assert any(said in text for text in c.log), c.log


@pytest.mark.parametrize("argument", [None, b"", b"\x01\x02", bytes(range(1, 17))])
def test_an_order_of_firing_is_taken_and_changes_nothing(
    argument: bytes | None,
) -> None:
    """POLLING (PIO-037) is accepted, and all transducers still fire in every period,
    also with all warnings enabled.
    """
    c, other = Client(scene=WALL, warn_unsupported=True), Client(scene=WALL)
    c.send(3, argument)
    said = list(c.log)
    assert not any("not supported" in text for text in said)
    sip = c.sip()
    assert len(sip.sonar) == 16
    assert sip == other.sip()


def test_pan_tilt_positions_are_kept() -> None:
    c = Client()
    c.send(41, 0x0296)
    assert c.robot.electrics.servos == {2: 0x96}


def test_quiet_numbers_are_quiet_unless_asked() -> None:
    quiet = [
        20,
        26,
        31,
        49,
        50,
        51,
        52,
        56,
        62,
        *range(70, 88),
        *range(95, 99),
        120,
        *range(123, 130),
        149,
        150,
        *range(210, 221),
    ]
    c = Client()
    for number in quiet:
        c.send(number, 1)
    assert not any("not supported" in text for text in c.log)
    loud = Client(warn_unsupported=True)
    for number in quiet:
        loud.send(number, 1)
        loud.send(number, 1)

    assert sum("not supported" in text for text in loud.log) == 2 * len(quiet)
    assert len(c.get(0x32, 0.3)) == 3, "and nothing else happens"


@pytest.mark.parametrize("number", [14, 22, 34, 45, 61, 63, 64, 65, 116, 229, 254])
def test_unsupported_numbers_are_named_once(number: int) -> None:
    c = Client()
    c.send(number, 1)
    c.send(number, 1)
    (line,) = (text for text in c.log if "is not supported and was ignored" in text)
    assert re.search(rf"\bcommand {number}\b", line), "with its number"


def test_several_lasers_by_index() -> None:
    c = Client("p3dx-with-rear-laser")
    from botyard.protocols.pioneer.packet import frame, int_argument

    for number, value in ((231, -45), (232, 45), (233, 100), (230, 2)):
        c.line.send(frame(number, int_argument(value) + b"\x01"))
    packets = c.get(0x61)
    assert {p.data[-2] for p in packets} == {1}, "the device byte"
    assert int.from_bytes(packets[0].data[:2], "little") == 91
    c.send(230, 1)
    ids = [p.id for p in c.run(0.1)]
    assert ids.count(0x60) == 6
    assert ids.count(0x61) == 3
    c.line.send(frame(230, int_argument(1) + b"\x07"))
    assert c.run(0.1), "a laser that is not there changes nothing"


def test_poses_of_both_lasers_count() -> None:
    c = Client("p3dx-with-rear-laser", WALL)
    rear, front = c.robot.lasers[1].read(), c.robot.lasers[0].read()
    assert front.ranges[90] == pytest.approx(2.0)
    assert rear.ranges[90] == rear.range_max, "it looks the other way"
    assert rear.frame_pose.x == -0.155


def test_an_increment_of_nothing_is_refused() -> None:
    """SIM_LRF_SET_RES 0 would stop all scans silently:

    it is ignored with a log line.
    """
    c = Client("p3dx-equipped")
    c.send(C.SIM_LRF_ENABLE, 2)
    c.send(C.SIM_LRF_SET_RES, 200)
    c.run(0.3)
    readings = int.from_bytes(c.get(0x61)[-1].data[:2], "little")
    assert readings > 1
    c.send(C.SIM_LRF_SET_RES, 0)
    assert int.from_bytes(c.get(0x61, 0.5)[-1].data[:2], "little") == readings
    assert any(
        "SIM_LRF_SET_RES: expected a number of hundredths of a degree other than 0"
        in text
        for text in c.log
    )
