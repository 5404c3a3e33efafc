from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.geometry import Pose
from botyard.model.library import load_robot
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.events import Level, LogLine
from botyard.protocols.pioneer.handshake import Stage
from botyard.protocols.pioneer.laserstate import MAX_READINGS
from botyard.protocols.pioneer.packet import Parser, checksum, command, frame
from botyard.protocols.pioneer.reports import LaserPart, Sip
from botyard.protocols.pioneer.simreports import SimStat
from botyard.servers.pioneer.nullmodem import Line, NullModem
from botyard.sim.simulation import Simulation


def world(
    model: str = "p3dx", settings: PioneerSettings | None = None, **options
) -> tuple[NullModem, Line]:
    sim = Simulation.load(
        "office", **{"odometry_error": "none", "sensor_noise": False, **options}
    )
    sim.add_robot(model, "r", pose=Pose(6.0, 14.2, 0.0))
    modem = NullModem(sim, settings)
    return modem, modem.connect("r")


def opened(
    model: str = "p3dx", settings: PioneerSettings | None = None, **options
) -> tuple[NullModem, Line]:
    modem, line = world(model, settings, **options)
    for n in (0, 1, 2, 1):
        line.send(frame(n))
    modem.run(0.1)
    line.take()
    return modem, line


def packets(line: Line) -> list:
    return Parser().feed_bytes(line.take())


def sips(line: Line) -> list[Sip]:
    return [Sip.decode(p) for p in packets(line) if p.id == 0x32]


def robot(modem: NullModem):
    return modem.sim.robots["r"]


# -- handshake


def test_handshake_with_a_reported_name() -> None:
    modem, line = world(settings=PioneerSettings(robot_name="MobileSim"))
    for n in (0, 1, 2):
        line.send(frame(n))
    assert [p.id for p in packets(line)] == [0, 1, 2]
    modem.run(0.5)
    assert packets(line) == [], "no SIP before OPEN"
    line.send(frame(2))
    r = packets(line)[0].reader()
    assert [r.text(), r.text(), r.text()] == ["MobileSim", "Pioneer", "p3dx"]


def test_the_name_is_the_originals_unless_told_otherwise() -> None:
    """HSK-003 … 005: name, class and subclass, in this order."""
    for model, names in (
        ("p3dx", ["AMRISim", "Pioneer", "p3dx"]),
        ("patrolbot-sh", ["AMRISim", "Pioneer", "patrolbot-sh"]),
    ):
        _, line = world(model)
        for n in (0, 1, 2):
            line.send(frame(n))
        r = packets(line)[-1].reader()
        assert [r.text(), r.text(), r.text()] == names


def test_bad_packets_are_dropped_and_told() -> None:
    """FRM-007, FRM-010:

    a wrong checksum, and a length above 200 with a right one, are not executed.
    """
    modem, line = opened()
    bad = bytearray(command(11, 300))
    bad[-1] ^= 1
    line.send(bytes(bad))
    assert any(
        "a packet with bad checksum or length was dropped (1 so far)" in text
        for text in line.log
    )
    # The payload has 198 or 199 bytes, so the length byte is 201 or 202.
    for size in (198, 199):
        payload = bytes((11, 0x3B, 44, 1)) + bytes(size - 3)
        line.send(
            b"\xfa\xfb"
            + bytes((len(payload) + 2,))
            + payload
            + checksum(payload).to_bytes(2, "big")
        )

    modem.run(0.5)
    assert robot(modem).velocity.vx == 0
    # The largest accepted length is 200.
    payload = bytes((11, 0x3B, 44, 1)) + bytes(197 - 3)
    line.send(
        b"\xfa\xfb"
        + bytes((len(payload) + 2,))
        + payload
        + checksum(payload).to_bytes(2, "big")
    )
    modem.run(0.5)
    assert robot(modem).velocity.vx > 0


def test_the_next_session_begins_afresh() -> None:
    """HSK-015, HSK-018: motors stay off until ENABLE and lasers are off.

    A robot that had no client has its motors on.
    """
    modem, line = opened()
    line.send(command(230, 1))
    line.send(command(11, 200))
    modem.run(1.0)
    assert robot(modem).velocity.vx > 0, "fresh: its motors are on"
    assert any(p.id == 0x60 for p in packets(line))
    line.hang_up()
    line = modem.connect("r")
    for n in (0, 1, 2, 1):
        line.send(frame(n))
    line.send(command(11, 200))
    modem.run(1.0)
    assert robot(modem).velocity.vx == 0
    assert {p.id for p in packets(line)} == {0, 1, 2, 0x32}
    line.send(command(4, 1))
    modem.run(0.1)
    line.send(command(11, 200))
    modem.run(1.0)
    assert robot(modem).velocity.vx > 0


def test_a_session_begins_with_odometry_at_zero_wherever_the_robot_was_driven_before() -> (
    None
):
    """HSK-014: at the start, not only at the end of the previous session."""
    modem, line = world()
    robot(modem).command.velocity(0.3)
    modem.run(1.0)
    robot(modem).command.velocity(0.0)
    modem.run(1.0)
    assert robot(modem).odom.x > 0.1, "nobody's session has ended here"
    for n in (0, 1, 2, 1):
        line.send(frame(n))
    modem.run(0.3)
    found = sips(line)
    assert found and (found[-1].x, found[-1].y, found[-1].th) == (0, 0, 0)
    assert robot(modem).odom.x == 0.0 and robot(modem).truth.x > 6.1


def test_the_watchdog_watches_again_after_it_has_stopped_the_robot() -> None:
    """HSK-021: any packet restarts it, and silence stops the robot again."""
    modem, line = opened()
    for times in (1, 2, 3):
        line.send(command(11, 300))
        modem.run(1.5)
        assert robot(modem).velocity.vx > 0
        modem.run(2.5)
        assert robot(modem).velocity.vx == 0
        assert sum("watchdog" in text for text in line.log) == times


@pytest.mark.parametrize(
    ("seconds", "stops"), [(0.5, True), (5.0, False), (0.0, False)]
)
def test_each_model_has_its_own_watchdog(seconds: float, stops: bool) -> None:
    """HSK-022: the watchdog has the model's time, and 0 switches it off."""
    spec = load_robot("p3dx")
    sim = Simulation(odometry_error="none")
    sim.add_robot(replace(spec, pioneer=replace(spec.pioneer, watchdog=seconds)), "r")
    modem = NullModem(sim)
    line = modem.connect("r")
    for n in (0, 1, 2, 1):
        line.send(frame(n))
    line.send(command(11, 300))
    modem.run(4.0)
    assert (robot(modem).velocity.vx == 0) == stops


def test_asking_for_names_changes_nothing() -> None:
    """A program that lists the robots and leaves after SYNC2 neither switches motors
    off nor changes odometry.
    """
    modem, line = world()
    robot(modem).command.velocity(0.2)
    modem.run(1.0)
    before = robot(modem).state
    for n in (0, 1, 2):
        line.send(frame(n))
    line.hang_up()
    modem.run(0.5)
    after = robot(modem).state
    assert (after.motors, after.twist) == (before.motors, before.twist)
    assert after.pose_odom.x > before.pose_odom.x


def test_names_of_the_handshake_are_cut_to_19_characters() -> None:
    """HSK-006: only CONFIGpac has the full names."""
    spec = load_robot("p3dx")
    sim = Simulation()
    sim.add_robot(
        replace(
            spec, pioneer=replace(spec.pioneer, subclass="a-very-long-name-of-a-robot")
        ),
        "r",
    )
    line = NullModem(sim, PioneerSettings(robot_name="x" * 40)).connect("r")
    for number in (0, 1, 2):
        line.send(command(number))
    r = Parser().feed_bytes(line.take())[-1].reader()
    assert [r.text(), r.text(), r.text()] == [
        "x" * 19,
        "Pioneer",
        "a-very-long-name-of",
    ]


@pytest.mark.parametrize("argument", [None, 1])
def test_open_with_and_without_argument(argument: int | None) -> None:
    modem, line = world()
    for n in (0, 1, 2):
        line.send(frame(n))
    line.send(command(1, argument))
    modem.run(0.3)
    assert len(sips(line)) == 3


def test_out_of_order_numbers_are_adopted_and_the_handshake_can_restart() -> None:
    _modem, line = world()
    for n in (1, 0, 0, 2, 0, 1, 2):
        line.send(frame(n))
    assert [p.id for p in packets(line)] == [1, 0, 0, 2, 0, 1, 2]
    assert not line.closed


def test_the_handshake_is_limited_in_packets_and_time() -> None:
    _modem, line = world()
    for _ in range(11):
        line.send(frame(0))
    assert line.closed
    modem, line = world()
    modem.wait(9.9)
    assert not line.closed
    modem.wait(0.2)
    assert line.closed
    assert any("handshake" in text for text in line.log)


def test_a_client_that_never_opens_does_not_keep_the_robot() -> None:
    modem, line = world()
    for n in (0, 1, 2):
        line.send(frame(n))
    modem.wait(59.0)
    assert not line.closed
    modem.wait(2.0)
    assert line.closed


def test_a_fault_of_ours_costs_one_session_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modem, line = opened()
    modem.sim.add_robot("amigo", "other")
    other = modem.connect("other")
    for n in (0, 1, 2, 1):
        other.send(frame(n))
    monkeypatch.setattr(line.connection.session, "send_report", lambda *_: 1 / 0)
    modem.run(0.5)
    assert line.closed
    assert any("internal error" in text for text in line.log)
    assert len(sips(other)) == 5
    assert robot(modem).clients == ()


def test_commands_before_the_handshake_do_nothing() -> None:
    modem, line = world()
    line.send(command(11, 300))
    modem.run(0.5)
    assert robot(modem).velocity.vx == 0


# -- reports and time


def test_a_report_for_every_tenth_of_a_second() -> None:
    modem, line = opened()
    modem.run(10.0)
    assert len(sips(line)) == 100


@pytest.mark.parametrize(
    ("step", "expected"), [(0.02, 100), (0.25, 40), (0.04, 100), (1.0, 10)]
)
def test_other_steps_keep_the_rate_or_give_one_a_step(
    step: float, expected: int
) -> None:
    modem, line = opened(step=step)
    modem.run(10.0)
    assert abs(len(sips(line)) - expected) <= 1


def test_paused_simulations_repeat_the_last_state() -> None:
    modem, line = opened()
    modem.wait(2.0)
    repeats = sips(line)
    assert len(repeats) == pytest.approx(19, abs=1)
    assert len({s.x for s in repeats}) == 1


def test_a_session_that_opens_in_a_paused_simulation_gets_reports() -> None:
    """No client times out, even if no step follows its OPEN."""
    modem, line = world()
    for n in (0, 1, 2, 1):
        line.send(frame(n))
    modem.wait(0.1)
    line.take()
    modem.wait(2.0)
    repeats = sips(line)
    assert len(repeats) == pytest.approx(19, abs=1) and modem.sim.tick == 0
    modem.run(1.0)
    assert len(sips(line)) == pytest.approx(10, abs=1), "then steps set the pace"


def test_slow_motion_keeps_ten_reports_a_second_of_wall_time() -> None:
    modem, line = opened()
    modem.run(1.0, wall_per_sim=10.0)
    assert len(sips(line)) == pytest.approx(100, abs=10)


def test_real_time_has_no_repeats() -> None:
    modem, line = opened()
    modem.run(5.0, wall_per_sim=1.04)
    assert len(sips(line)) == 50


def test_faster_than_real_time_is_limited_and_keeps_scans_whole() -> None:
    modem, line = opened()
    line.send(command(230, 1))
    # 100 simulated seconds take 1 s of wall time.
    modem.run(100.0, wall_per_sim=0.01)
    received = packets(line)
    assert 90 <= sum(p.id == 0x32 for p in received) <= 101
    parts = [LaserPart.decode(p) for p in received if p.id == 0x60]
    assert sum(len(p.ranges_mm) for p in parts) % 181 == 0
    expected = 0
    for p in parts:
        assert p.first == expected
        expected = (p.first + len(p.ranges_mm)) % p.total


def test_the_order_within_a_period() -> None:
    modem, line = opened()
    line.send(command(237, 2))
    line.send(command(230, 2))
    modem.run(0.1)
    assert [p.id for p in packets(line)] == [0x62, 0x32] + [0x61] * 6


def test_a_silent_client_gets_no_reports_until_it_speaks() -> None:
    modem, line = opened()
    modem.run(59.0)
    line.take()
    modem.run(5.0)
    assert 5 <= len(sips(line)) <= 15
    assert any("60 s" in text for text in line.log)
    line.send(command(0))
    modem.run(1.0)
    assert len(sips(line)) == 10


def test_the_watchdog_counts_simulated_time() -> None:
    modem, line = opened()
    line.send(command(11, 300))
    modem.run(1.0)
    modem.wait(20.0)
    modem.run(0.5)
    assert robot(modem).velocity.vx > 0, "wall time alone does not fire it"
    modem.run(1.5)
    assert robot(modem).velocity.vx == 0


# -- commands


@pytest.mark.parametrize(
    ("number", "argument", "expected"),
    [
        (11, 300, (0.3, 0, 0)),
        (11, -300, (-0.3, 0, 0)),
        (21, 30, (0, 0, math.radians(30))),
        (9, -20, (0, 0, math.radians(-20))),
        (32, (10 << 8) + 10, (0.2, 0, 0)),
        (32, (-5 << 8) + 5, (0, 0, 0.1 * 1000 * 0.0056)),
        (32, (5 << 8) + (-5 & 0xFF), (0, 0, -0.1 * 1000 * 0.0056)),
        (110, 200, (0, 0, 0)),
        (11, 5000, (1.0, 0, 0)),
    ],
)
def test_velocities(
    number: int, argument: int, expected: tuple[float, float, float]
) -> None:
    modem, line = opened()
    line.send(command(number, argument))
    for _ in range(8):
        line.send(command(0))
        modem.run(0.5)

    assert tuple(robot(modem).velocity) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("mm_s", [200, -200])
def test_lateral_velocity_of_an_omnidirectional_robot(mm_s: int) -> None:
    """To the left, and to the right with a negative argument."""
    modem, line = opened("seekur")
    line.send(command(113, 1000))
    line.send(command(110, mm_s))
    modem.run(0.3)
    assert robot(modem).velocity == pytest.approx((0.0, mm_s / 1000, 0.0))
    assert sips(line)[-1].lat_vel == mm_s


def test_setv_and_setrv_limit_velocities_and_are_reported() -> None:
    modem, line = opened()
    for number, value in ((6, 250), (10, 40), (5, 500), (5, -400), (23, 90), (23, -80)):
        line.send(command(number, value))
    line.send(command(11, 900))
    modem.run(1.5)
    state = robot(modem).state
    assert state.twist.vx == pytest.approx(0.25)
    assert (state.limits.x, state.limits.a) == pytest.approx((0.25, math.radians(40)))
    assert (state.accel.x, state.decel.x) == (0.5, 0.4)
    assert (state.accel.a, state.decel.a) == pytest.approx(
        (math.radians(90), math.radians(80))
    )


@pytest.mark.parametrize("number", [55, 57])
def test_both_emergency_stops_brake_as_hard_as_can_be_and_forget(number: int) -> None:
    """ESTOP and its other number, against STOP (PIO-024, PIO-025):

    9.999 m/s² instead of the model's 0.3.
    """
    after = {}
    for stop in (29, number):
        modem, line = opened()
        line.send(command(11, 1000))
        for _ in range(5):
            line.send(command(0))
            modem.run(1.0)

        line.send(command(stop))
        modem.run(0.2)
        after[stop] = robot(modem).velocity.vx
        line.send(command(0))
        modem.run(1.0)
        assert robot(modem).velocity.vx < after[stop] or after[stop] == 0

    assert after[29] > 0.8
    assert after[number] == 0


def test_lateral_ramps() -> None:
    """LATACCEL sets the ramps of lateral motion, up and down separately, and no others
    (PIO-029, MOT-009).
    """
    modem, line = opened("seekur")
    before = robot(modem).state
    line.send(command(113, 500))
    line.send(command(113, -250))
    line.send(command(110, 200))
    seen = []
    for argument in (200, 0):
        line.send(command(110, argument))
        for _ in range(8):
            modem.run(0.1)
            seen.append(robot(modem).velocity.vy)

    assert seen[:5] == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2]), "0.5 m/s²"
    assert seen[8:] == pytest.approx(
        [0.175, 0.15, 0.125, 0.1, 0.075, 0.05, 0.025, 0.0]
    ), "0.25 m/s²"
    after = robot(modem).state
    assert (after.accel.x, after.accel.a, after.decel.x) == (
        before.accel.x,
        before.accel.a,
        before.decel.x,
    )


def test_moves_and_headings() -> None:
    modem, line = opened()
    for number, argument in ((8, -500), (12, 90), (13, -45)):
        line.send(command(number, argument))
        for _ in range(18):
            line.send(command(0))
            modem.run(0.5)

    assert robot(modem).odom.x == pytest.approx(-0.5, abs=1e-3)
    assert math.degrees(robot(modem).odom.th) == pytest.approx(45, abs=0.1)


def test_odometry_can_be_set_to_a_pose() -> None:
    modem, line = opened()
    line.send(
        frame(
            7,
            bytes([0])
            + b"".join(v.to_bytes(2, "little", signed=True) for v in (1000, -500, 90)),
        )
    )
    modem.run(0.1)
    assert robot(modem).odom == pytest.approx((1.0, -0.5, math.pi / 2))
    line.send(command(7))
    modem.run(0.1)
    sip = sips(line)[-1]
    assert (sip.x, sip.y, sip.th) == (0, 0, 0)


def test_motors() -> None:
    modem, line = opened()
    line.send(command(4, 0))
    line.send(command(11, 300))
    modem.run(0.5)
    assert robot(modem).velocity.vx == 0
    assert sips(line)[-1].flags & 1 == 0
    assert sum("motors are off" in text for text in line.log) == 1
    line.send(command(4, 1))
    modem.run(0.3)
    assert robot(modem).velocity.vx == 0, (
        "what was commanded with motors off is forgotten"
    )
    assert sips(line)[-1].flags & 1 == 1


@pytest.mark.parametrize("number", [8, 11, 12, 13, 21, 32, 110])
def test_motion_commands_without_motors_are_warned_of(number: int) -> None:
    """MOVE, VEL, HEAD, DHEAD, RVEL, VEL2 and LATVEL:

    one warning in a session, at the default log level.
    """
    modem, line = opened("seekur")
    session = line.connection.session
    for data in (command(4, 0), command(number, 20), command(number, 20)):
        session.receive_data(data, modem.now)
    events = [*iter(session.next_event, None)]
    warnings = [
        e.text for e in events if isinstance(e, LogLine) and e.level is Level.WARNING
    ]
    assert warnings == [
        "motion commands are ignored while the motors are off (send ENABLE 1)"
    ]
    modem.run(0.5)
    assert robot(modem).velocity == (0, 0, 0)


def test_set_pose_reset_and_the_moved_flag() -> None:
    modem, line = opened()
    line.send(command(230, 2))
    modem.run(0.2)
    flags = [LaserPart.decode(p).flags for p in packets(line) if p.id == 0x61]
    assert flags == [1] * 6 + [0] * 6, "the first scan after switching on"
    data = bytes([0]) + b"".join(
        v.to_bytes(4, "little", signed=True) for v in (20_000, 14_200, 180)
    )
    line.send(frame(224, data))
    modem.run(0.2)
    assert [LaserPart.decode(p).flags for p in packets(line) if p.id == 0x61] == [
        1
    ] * 6 + [0] * 6
    assert robot(modem).truth == pytest.approx((20.0, 14.2, math.pi))
    assert robot(modem).odom == (0, 0, 0)
    line.send(command(225))
    modem.run(0.1)
    assert robot(modem).truth == pytest.approx((6.0, 14.2, 0.0))


@pytest.mark.parametrize(
    "drive", [command(11, 300), command(8, 5000), command(13, 170), command(21, 50)]
)
def test_reset_also_stops_the_robot(drive: bytes) -> None:
    modem, line = opened()
    line.send(drive)
    modem.run(1.0)
    assert any(robot(modem).velocity)
    line.send(command(225))
    modem.run(1.0)
    assert robot(modem).truth == pytest.approx((6.0, 14.2, 0.0), abs=1e-9)
    assert robot(modem).odom == (0, 0, 0)
    assert not any(robot(modem).velocity), "nor does it go on with what it was told"


def test_sonar_switch() -> None:
    modem, line = opened()
    line.send(command(28, 0))
    modem.run(0.1)
    sip = sips(line)[-1]
    assert (sip.flags, len(sip.sonar)) == (1, 0)
    assert not robot(modem).sonar.is_read
    line.send(command(28, 1))
    modem.run(0.1)
    sip = sips(line)[-1]
    assert (sip.flags, len(sip.sonar)) == (31, 16)
    assert robot(modem).sonar.is_read


@pytest.mark.parametrize("numbers", [(36, 37, 38, 35), (231, 232, 233, 230)])
def test_old_and_new_laser_commands(numbers: tuple[int, ...]) -> None:
    modem, line = opened()
    for n, value in zip(numbers, (-45, 45, 50, 2), strict=True):
        line.send(command(n, value))
    modem.run(0.1)
    parts = [LaserPart.decode(p) for p in packets(line) if p.id == 0x61]
    assert parts[0].total == 181
    scan = robot(modem).laser.read()
    assert math.degrees(scan.angle_min) == pytest.approx(-45)
    assert [r for p in parts for r in p.ranges_mm] == [
        round(r * 1000) for r in scan.ranges.tolist()
    ]


def test_a_scan_begins_and_ends_where_the_client_says() -> None:
    """HIS-007, LAS-007: a scan may lie on one side only."""
    modem, line = opened()
    for n, value in ((231, -30), (232, 75), (233, 100), (230, 1)):
        line.send(command(n, value))
    modem.run(0.1)
    ranges = [
        r for p in packets(line) if p.id == 0x60 for r in LaserPart.decode(p).ranges_mm
    ]
    scan = robot(modem).laser.read()
    assert (
        len(ranges),
        math.degrees(scan.angle_min),
        math.degrees(scan.angle_max),
    ) == (
        106,
        pytest.approx(-30),
        pytest.approx(75),
    )
    assert ranges == [round(r * 1000) for r in scan.ranges.tolist()]


def test_the_first_scan_after_switching_on_says_that_the_robot_has_moved() -> None:
    """Clients that merge scans need it (§7)."""
    modem, line = opened()
    for mode, moved in ((2, True), (2, False), (0, None), (2, True)):
        line.take()
        line.send(command(230, mode))
        modem.run(0.3)
        parts = [LaserPart.decode(p) for p in packets(line) if p.id == 0x61]
        flags = [bool(part.flags & 1) for part in parts if part.first == 0]
        assert flags == ([] if moved is None else [moved, *[False] * (len(flags) - 1)])
        assert bool(flags) == bool(mode)


def test_flipped_scans_until_configured() -> None:
    modem, line = opened("patrolbot-sh")
    line.send(command(230, 1))
    modem.run(0.1)
    flipped = [
        r for p in packets(line) if p.id == 0x60 for r in LaserPart.decode(p).ranges_mm
    ]
    scan = [round(r * 1000) for r in robot(modem).laser.read().ranges.tolist()]
    assert flipped == scan[::-1] != scan
    line.send(command(231, -90))
    line.send(command(232, 90))
    modem.run(0.1)
    assert [
        r for p in packets(line) if p.id == 0x60 for r in LaserPart.decode(p).ranges_mm
    ] == scan


def test_reflectors_arrive_with_their_strength() -> None:
    """The reflector at the east end of the corridor, seen by an LMS-200: strength 32."""
    modem, line = opened()
    modem.sim.robots["r"].command.set_pose(37.5, 14.2, 0.0)
    line.send(command(230, 2))
    modem.run(0.2)
    strengths = [
        s
        for p in packets(line)
        if p.id == 0x61
        for s in LaserPart.decode(p).reflectance
    ][-181:]
    assert set(strengths) == {0, 32}
    assert strengths[90] == 32


def test_a_laser_that_is_not_there() -> None:
    modem, line = opened("amigo")
    line.send(command(230, 1))
    modem.run(0.3)
    assert {p.id for p in packets(line)} == {0x32}


def test_unsupported_commands_are_logged_once_a_number() -> None:
    _modem, line = opened()
    for _ in range(3):
        line.send(command(33, 1))
        line.send(command(62, 1))

    assert [t for t in line.log if "not supported" in t] == [
        "r: command 33 (GRIPPER) is not supported and was ignored"
    ]
    _, loud = opened(settings=PioneerSettings(warn_unsupported=True))
    for _ in range(3):
        loud.send(command(33, 1))
    assert sum("not supported" in t for t in loud.log) == 3


def test_ignored_commands() -> None:
    modem, line = opened(settings=PioneerSettings(ignore_commands=frozenset([11])))
    line.send(command(11, 300))
    modem.run(0.5)
    assert robot(modem).velocity.vx == 0


def test_text_of_clients_reaches_the_log_without_control_characters() -> None:
    _, line = opened()
    text = b"hello\x1b[31m\nworld"
    line.send(frame(238, bytes([0, len(text)]) + text))
    for number in (42, 60):
        line.send(command(number, b"aux\x07"))
    line.send(frame(59, bytes([0x2B, 8]) + b"abcmore\0"))
    assert r'r: the client says: "hello\x1b[31m\nworld"' in line.log
    assert r'r: serial output of the command 42 (TTY2): "aux\x07"' in line.log
    assert r'r: serial output of the command 60 (TTY4): "aux\x07"' in line.log
    assert 'r: the client says: "more"' in line.log, (
        "three bytes of code stand before the text"
    )


def test_spoofed_values() -> None:
    modem, line = opened()
    for number, value in ((250, 115), (251, 1), (252, 40), (30, (0xFF << 8) | 0x0F)):
        line.send(command(number, value))
    modem.run(0.1)
    sip = sips(line)[-1]
    assert (sip.battery, sip.faults, sip.temperature, sip.digout) == (115, 2, 40, 0x0F)


def test_spoofed_charge() -> None:
    """Percent for batteries that report their charge; 0 ends it (PIO-030, PIO-092)."""
    sim = Simulation(odometry_error="none")
    sim.add_robot("pioneer-lx", "r")
    modem = NullModem(sim)
    line = modem.connect("r")
    for n in (0, 1, 2, 1):
        line.send(frame(n))
    modem.run(0.1)
    real = sips(line)[-1].soc
    for value, expected in ((40, 40), (150, 100), (-5, 0), (1, 1), (0, real)):
        line.send(command(250, value))
        modem.run(0.1)
        assert sips(line)[-1].soc == expected, value


def test_simstat_modes() -> None:
    modem, line = opened()
    for argument, now, later in (
        (None, 1, 0),
        (1, 1, 0),
        (2, 0, 3),
        (0, 0, 0),
        (7, 0, 0),
    ):
        line.send(command(237, argument))
        assert sum(p.id == 0x62 for p in packets(line)) == now
        modem.run(0.3)
        assert sum(p.id == 0x62 for p in packets(line)) == later

    assert any("expected 0, 1 or 2, found 7" in t for t in line.log)
    line.send(command(237, 1))
    stat = SimStat.decode(packets(line)[0])
    assert (stat.x_mm, stat.y_mm, stat.flags) == (6000, 14200, 7)


def test_exit_is_an_event_for_the_server() -> None:
    _, line = opened()
    line.send(command(239, 3))
    assert line.exit_status == 3


# -- end of sessions, other sources


def test_another_live_source_keeps_the_robot_going() -> None:
    modem, line = opened()
    other = robot(modem).port("page")
    other.claim()
    line.send(command(11, 300))
    modem.run(1.0)
    line.hang_up()
    modem.run(0.5)
    assert robot(modem).velocity.vx == pytest.approx(0.3)
    assert robot(modem).state.motors
    other.release()
    modem.run(0.1)
    assert robot(modem).velocity.vx == 0
    assert not robot(modem).state.motors


def test_the_end_of_a_session_frees_its_sensors() -> None:
    modem, line = opened()
    line.send(command(230, 1))
    modem.run(0.2)
    assert robot(modem).laser.is_read
    line.hang_up()
    assert not robot(modem).laser.is_read
    assert not robot(modem).sonar.is_read
    line.send(command(11, 300))
    modem.run(0.2)
    assert robot(modem).velocity.vx == 0, "nothing is heard after the end"


def test_many_sessions_leave_nothing_behind() -> None:
    modem, line = world()
    for _ in range(200):
        for n in (0, 1, 2, 1):
            line.send(frame(n))
        line.send(command(230, 1))
        modem.run(0.1)
        line.hang_up()
        line = modem.connect("r")

    assert modem._lines == [line]
    assert robot(modem).clients == ()
    assert sum(len(d.readers) for d in modem.sim.core.devices._devices.values()) == 0


# -- random input


streams = st.lists(
    st.builds(frame, st.integers(0, 255), st.binary(max_size=40))
    | st.binary(max_size=30),
    max_size=10,
).map(b"".join)


@given(streams)
def test_arbitrary_bytes_never_raise_and_do_not_kill_the_session(data: bytes) -> None:
    modem, line = opened("powerbot")
    line.send(data)
    modem.run(0.3)
    assert all(math.isfinite(v) for v in (*robot(modem).truth, *robot(modem).odom))
    if not line.closed:
        line.take()
        # 260 zeros complete any packet that is still incomplete.
        line.send(bytes(260))
        line.send(command(237, 1))
        modem.run(0.1)
        assert any(p.id == 0x62 for p in packets(line))


def test_a_line_that_drops_and_garbles_bytes() -> None:
    import random

    rng = random.Random(3)

    def bad(data: bytes) -> bytes:
        return bytes(
            b ^ (1 << rng.randrange(8)) if rng.random() < 0.05 else b
            for b in data
            if rng.random() > 0.03
        )

    modem, clean = opened()
    clean.hang_up()
    line = modem.connect("r", bad)
    session = line.connection.session
    following = {Stage.SYNC0: 0, Stage.SYNC1: 1, Stage.SYNC2: 2, Stage.READY: 1}
    while session.stage in following:
        line.send(frame(following[session.stage]))
    for _ in range(300):
        line.send(command(11, 200))
        modem.run(0.1)
        if line.closed:
            break

    assert line.connection.session.parser.counts.packets > 100


def test_a_scan_has_a_bound_and_the_log_says_so() -> None:
    """One client requests 36,001 rays in every step, and a thousand packets."""
    modem, line = opened()
    for number, value in ((231, -180), (232, 180), (233, 1), (230, 1)):
        line.send(command(number, value))
    modem.run(0.1)
    parts = [LaserPart.decode(p) for p in packets(line) if p.id == 0x60]
    assert parts[0].total == MAX_READINGS
    scan = robot(modem).laser.read()
    assert math.degrees(scan.angle_min) == pytest.approx(-180)
    assert math.degrees(scan.angle_max) == pytest.approx(180), (
        "the field of view is the client's"
    )
    assert (
        sum("expected at most 3601 readings in a scan" in text for text in line.log)
        == 1
    )
    line.send(command(233, 10))
    modem.run(0.1)
    assert math.degrees(robot(modem).laser.read().angle_increment) == pytest.approx(0.1)
