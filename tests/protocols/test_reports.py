from __future__ import annotations

import itertools
import math
import struct
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard import units
from botyard.devices.gps import GpsSpec
from botyard.engine.commands import SetOdometry
from botyard.geometry import Pose
from botyard.model.kinematics import Axes, MotionLimits
from botyard.model.library import load_robot
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.robotstate import Timing
from botyard.model.scene import Area, GeoReference, Scene
from botyard.protocols.pioneer import reportbuilder
from botyard.protocols.pioneer.packet import Packet, Parser, command, frame
from botyard.protocols.pioneer.reportbuilder import (
    build_config,
    build_simstat,
    build_sip,
    scan_geometry,
)
from botyard.protocols.pioneer.reports import Config, LaserPart, Sip
from botyard.protocols.pioneer.simreports import SimStat
from botyard.servers.pioneer.nullmodem import NullModem
from botyard.sim.simulation import Simulation

i16, u16, u8, i8 = (
    st.integers(-32768, 32767),
    st.integers(0, 65535),
    st.integers(0, 255),
    st.integers(-128, 127),
)
i32 = st.integers(-(2**31), 2**31 - 1)
sips = st.builds(
    Sip,
    x=i16,
    y=i16,
    th=i16,
    left_vel=i16,
    right_vel=i16,
    battery=u8,
    stall_bumpers=u16,
    control=i16,
    flags=u16,
    compass=u8,
    sonar=st.lists(st.tuples(u8, u16), max_size=32),
    timer_low=u8,
    gripper=u8,
    analog=u8,
    digin=u8,
    digout=u8,
    battery10=u16,
    charge_state=u8,
    rot_vel10=i16,
    faults=u16,
    lat_vel=i16,
    temperature=i8,
    soc=i8,
    moving=st.booleans(),
)


@given(sips)
def test_sip_round_trip_and_size(sip: Sip) -> None:
    data = sip.encode()
    assert len(data) == 41 + 3 * len(sip.sonar)
    (packet,) = Parser().feed_bytes(data)
    assert Sip.decode(packet) == sip


def test_a_sip_cut_short_reads_as_zeros() -> None:
    """Complete fields are read, all later ones are 0, and sonar readings count only if
    complete (PIO-094).
    """
    sip = Sip(
        x=257,
        y=258,
        th=259,
        left_vel=260,
        right_vel=261,
        battery=7,
        stall_bumpers=262,
        control=263,
        flags=264,
        compass=9,
        sonar=[(1, 265), (2, 266)],
        timer_low=10,
        gripper=11,
        analog=12,
        digin=13,
        digout=14,
        battery10=267,
        charge_state=15,
        rot_vel10=268,
        faults=269,
        lat_vel=270,
        temperature=16,
        soc=17,
    )
    sizes = {
        "x": 2,
        "y": 2,
        "th": 2,
        "left_vel": 2,
        "right_vel": 2,
        "battery": 1,
        "stall_bumpers": 2,
        "control": 2,
        "flags": 2,
        "compass": 1,
        "sonar": 1 + 3 * 2,
        "timer_low": 1,
        "gripper": 1,
        "analog": 1,
        "digin": 1,
        "digout": 1,
        "battery10": 2,
        "charge_state": 1,
        "rot_vel10": 2,
        "faults": 2,
        "lat_vel": 2,
        "temperature": 1,
        "soc": 1,
    }
    ends = dict(zip(sizes, itertools.accumulate(sizes.values()), strict=True))
    (packet,) = Parser().feed_bytes(sip.encode())
    assert len(packet.data) == sum(sizes.values())
    for n in range(len(packet.data) + 1):
        short = Sip.decode(Packet(packet.id, packet.data[:n]))
        for name, end in ends.items():
            if name == "sonar":
                whole = max(0, min(2, (n - (end - 6)) // 3))
                assert list(short.sonar) == list(sip.sonar)[:whole], n
            else:
                assert getattr(short, name) == (
                    getattr(sip, name) if end <= n else 0
                ), (n, name)


@given(st.lists(u16, max_size=32), st.booleans(), u16, u16, u8, u8)
def test_laser_round_trip(
    ranges: list[int], second: bool, total: int, first: int, device: int, flags: int
) -> None:
    part = LaserPart(
        total=total,
        first=first,
        ranges_mm=ranges,
        reflectance=[r % 256 for r in ranges] if second else [],
        x_mm=-5,
        y_mm=6,
        th_deg=-90,
        device=device if second else 0,
        flags=flags if second else 0,
    )
    if second:
        part.x_mm = part.y_mm = part.th_deg = 0
    data = part.encode(0x61 if second else 0x60)
    assert len(data) == 6 + (7 + 5 * len(ranges) if second else 11 + 2 * len(ranges))
    (packet,) = Parser().feed_bytes(data)
    assert LaserPart.decode(packet) == part


def _kind(name: str) -> st.SearchStrategy[int]:
    return (
        st.integers(0, 2**32 - 1)
        if name == "flags"
        else u16
        if name in ("sim_ms", "real_ms", "last_ms")
        else i32
    )


@given(st.builds(SimStat, **{f.name: _kind(f.name) for f in fields(SimStat)}))
def test_simstat_round_trip_and_size(stat: SimStat) -> None:
    data = stat.encode()
    (packet,) = Parser().feed_bytes(data)
    assert len(packet.data) == 56
    assert SimStat.decode(packet) == stat


def test_config_round_trip_of_every_field() -> None:
    values = {
        f.name: f"text{k}" if f.type == "str" else k % 200
        for k, f in enumerate(fields(Config))
    }
    config = Config(**values)
    (packet,) = Parser().feed_bytes(config.encode())
    assert Config.decode(packet) == config
    assert len(fields(Config)) == 57


@pytest.mark.parametrize(
    ("start", "end", "increment", "count", "reverse"),
    [
        (-90, 90, 1.0, 181, False),
        (-90, 90, 0.5, 361, False),
        (-45, 45, 1.0, 91, False),
        (-135, 135, 0.25, 1081, False),
        (-10, 10, 5.0, 5, False),
        (-180, 180, 1.0, 361, False),
        (90, -90, 1.0, 181, True),
        (-90, 45, 1.0, 136, False),
        (0, 90, 1.0, 91, False),
        (-90, 90, 0.1, 1801, False),
        (-90, 90, 0.0, 0, False),
        (0, 0, 1.0, 1, False),
        # Numbers of readings round up where increments do not divide the field of view, and where
        # the field of view has fractions of a degree.
        (0, 10, 3.0, 5, False),
        (-50, 50, 0.6, 168, False),
        (100, 0, 8.0, 14, True),
        (0, 10.2, 1.0, 12, False),
        (-0.2, 0.2, 1.0, 2, False),
    ],
)
def test_number_of_readings(
    start: float, end: float, increment: float, count: int, reverse: bool
) -> None:
    lowest, step, n, backwards = scan_geometry(start, end, increment)
    assert (n, backwards) == (count, reverse)
    if n > 1:
        assert lowest == pytest.approx(min(start, end) * 3.141592653589793 / 180)
        assert step > 0


def report(model: str, **electrics: object):
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot(model)
    for key, value in electrics.items():
        if key == "volts":
            robot.electrics.test_battery(round(value * 10))
        elif key == "charge":
            robot.electrics.test_battery(value)
        else:
            setattr(robot.electrics, key, value)

    return sim, robot, robot.port("t")


def test_positions_wrap_as_16_bit_counters() -> None:
    """A client follows the counter across the wrap: 0.485 mm a unit wraps after 31.8 m
    (PIO-071).
    """
    sim, _robot, port = report("p3dx")
    for x, expected in (
        (15.89, 32762),
        (15.90, -32753),
        (31.78, -11),
        (31.80, 31),
        (-15.90, 32753),
    ):
        port.issue_command(SetOdometry(Pose(x, 0.0, 0.0)))
        sim.settle()
        assert build_sip(port, port.state(), sonar_on=False).x == expected


@pytest.mark.parametrize("clients", [1, 4])
def test_reports_are_in_the_models_own_units(clients: int) -> None:
    """Each field times its conversion equals the engine's value, for one client and for
    several served together (PIO-071 … 073, 081).
    """
    odd = {
        "dist_conv": 0.7,
        "angle_conv": 0.0021,
        "vel_conv": 1.3,
        "range_conv": 2.5,
        "diff_conv": 0.004,
    }
    model = load_robot("p3dx")
    spec = replace(model, name="odd", pioneer=replace(model.pioneer, **odd))
    wall = Scene(segments=np.array([[5.0, -9.0, 5.0, 9.0]]))
    sim = Simulation(wall, odometry_error="none", sensor_noise=False)
    for i in range(clients):
        sim.add_robot(spec, f"r{i}", pose=Pose(0.0, 3.0 * i, 0.0))
    modem = NullModem(sim)
    lines = [modem.connect(f"r{i}") for i in range(clients)]
    for line in lines:
        for data in (
            command(0),
            command(1),
            command(2),
            command(1, 1),
            command(11, 300),
            command(21, 17),
        ):
            line.send(data)

    modem.run(1.7)
    for robot, line in zip(sim.robots.values(), lines, strict=True):
        sip = [Sip.decode(p) for p in Parser().feed_bytes(line.take()) if p.id == 0x32][
            -1
        ]
        odom, v = robot.odom, robot.velocity
        assert v.vx > 0.25 and v.w > 0.2 and odom.y > 0.02
        assert sip.x == int(odom.x * 1000 / 0.7), "a counter: cut off"
        assert sip.y == int(odom.y * 1000 / 0.7)
        assert sip.th == round(odom.th / 0.0021)
        assert sip.right_vel == round((v.vx * 1000 + v.w / 0.004) / 1.3)
        assert sip.left_vel == round((v.vx * 1000 - v.w / 0.004) / 1.3)
        assert sip.rot_vel10 == round(math.degrees(v.w) * 10)
        ranges = robot.sonar.read().ranges
        assert min(ranges) < 5 and list(sip.sonar) == [
            (i, round(r * 1000 / 2.5)) for i, r in enumerate(ranges)
        ]


def test_wheel_velocities_are_in_velocity_units() -> None:
    """amigo: 0.6154 mm/s a unit; the client's mean of both wheels times that is the
    speed (§17).
    """
    sim, robot, port = report("amigo")
    robot.command(v=0.3, w=0.5)
    sim.step(60)
    sip = build_sip(port, port.state(), sonar_on=False)
    p = robot.spec.pioneer
    assert (sip.left_vel + sip.right_vel) / 2 * p.vel_conv == pytest.approx(300, abs=1)
    assert (
        sip.right_vel - sip.left_vel
    ) / 2 * p.vel_conv * p.diff_conv == pytest.approx(0.5, abs=0.02)
    assert sip.rot_vel10 == pytest.approx(286, abs=1)


def test_battery_temperature_and_faults() -> None:
    _, _, port = report("p3dx", volts=12.4, temperature=35, temperature_warning=True)
    sip = build_sip(port, port.state(), sonar_on=True)
    assert (sip.battery, sip.battery10, sip.soc, sip.temperature, sip.faults) == (
        124,
        124,
        0,
        35,
        2,
    )
    assert sip.flags == 31
    _, _, port = report("pioneer-lx", charge=80)
    sip = build_sip(port, port.state(), sonar_on=False)
    assert (sip.battery, sip.battery10, sip.soc, sip.temperature, sip.flags) == (
        0,
        0,
        80,
        -128,
        1,
    )


def test_config_reports_the_models_true_limits() -> None:
    for model in ("p3dx", "seekur", "amigo"):
        _sim, robot, port = report(model)
        c = build_config(robot.spec, port.state(), "AMRISim", "S.1")
        top = robot.spec.limits.max_speed
        assert (c.trans_vel_top, c.lat_vel_top) == (
            round(top.x * 1000),
            round(top.y * 1000),
        )
        assert c.trans_vel_max == c.trans_vel_top
        assert c.trans_acc == round(robot.spec.limits.accel.x * 1000)
        assert (c.front_sonar, c.rear_sonar) == ((1, 1) if robot.spec.sonar else (0, 0))


@pytest.mark.parametrize("clients", [1, 4])
def test_what_does_not_fit_into_a_field_is_its_limit(clients: int) -> None:
    """MOT-012, HIS-001:

    a robot at 90 m/s; wheels, turn rates and limits saturate, for one client and for
    several.
    """
    model = load_robot("p3dx")
    fast = MotionLimits(
        max_speed=Axes(90.0, 0.0, 80.0),
        accel=Axes(0.0, 0.0, 0.0),
        decel=Axes(0.0, 0.0, 0.0),
        heading_speed=1.0,
    )
    sim = Simulation(odometry_error="none")
    for i in range(clients):
        sim.add_robot(
            replace(model, name="fast", limits=fast),
            f"r{i}",
            pose=Pose(0.0, 300.0 * i, 0.0),
        )

    modem = NullModem(sim)
    lines = [modem.connect(f"r{i}") for i in range(clients)]
    for line in lines:
        for data in (command(0), command(1), command(2), command(1, 1), command(18)):
            line.send(data)
        config = next(
            Config.decode(p) for p in Parser().feed_bytes(line.take()) if p.id == 0x20
        )
        assert (config.trans_vel_top, config.rot_vel_top) == (
            65535,
            round(math.degrees(80.0)),
        )

    for robot in sim.robots.values():
        robot.command(v=-90.0)
    modem.run(0.2)
    for robot, line in zip(sim.robots.values(), lines, strict=True):
        assert robot.velocity.vx == -90.0
        sip = [Sip.decode(p) for p in Parser().feed_bytes(line.take()) if p.id == 0x32][
            -1
        ]
        assert (sip.left_vel, sip.right_vel) == (-32768, -32768)


@pytest.mark.parametrize("model", ["p3dx", "seekur"])
def test_config_follows_what_the_client_has_set(model: str) -> None:
    """Settings are the current ones, limits stay the model's (PIO-099)."""
    sim = Simulation()
    spec = sim.add_robot(model, "r").spec
    line = NullModem(sim).connect("r")
    modem = line._modem

    def asked() -> Config:
        line.take()
        line.send(command(18))
        return next(
            Config.decode(p) for p in Parser().feed_bytes(line.take()) if p.id == 0x20
        )

    for number in (0, 1, 2, 1):
        line.send(command(number))
    modem.run(0.1)
    fresh = asked()
    limits = spec.limits
    top, accel, decel = limits.max_speed, limits.accel, limits.decel

    def mm(value: float) -> int:
        return round(value * 1000)

    def deg(value: float) -> int:
        return round(math.degrees(value))

    assert (fresh.trans_vel_max, fresh.lat_vel_max, fresh.rot_vel_max) == (
        mm(top.x),
        mm(top.y),
        deg(top.a),
    )
    assert (fresh.trans_acc, fresh.lat_acc, fresh.rot_acc) == (
        mm(accel.x),
        mm(accel.y),
        deg(accel.a),
    )
    assert (fresh.trans_decel, fresh.lat_decel, fresh.rot_decel) == (
        mm(decel.x),
        mm(decel.y),
        deg(decel.a),
    )
    best = limits.top_accel
    tops = (mm(best.x), mm(best.y) if model == "seekur" else 0, deg(best.a))
    assert (fresh.trans_acc_top, fresh.lat_acc_top, fresh.rot_acc_top) == tops
    changes = (
        (6, 211),
        (10, 33),
        (5, 410),
        (5, -320),
        (113, 510),
        (113, -620),
        (23, 71),
        (23, -82),
    )
    for number, value in changes:
        line.send(command(number, value))
    modem.run(0.1)
    after = asked()
    assert (after.trans_vel_max, after.rot_vel_max) == (211, 33)
    assert (after.trans_acc, after.trans_decel, after.lat_acc, after.lat_decel) == (
        410,
        320,
        510,
        620,
    )
    assert (after.rot_acc, after.rot_decel) == (71, 82)
    names = (
        "trans_vel_top",
        "rot_vel_top",
        "lat_vel_top",
        "trans_acc_top",
        "rot_acc_top",
        "lat_acc_top",
        "lat_vel_max",
        "watchdog_ms",
    )
    assert [getattr(after, n) for n in names] == [getattr(fresh, n) for n in names]


def test_laser_packets_byte_by_byte() -> None:
    """The expected bytes are written by hand from §7 (LAS-001, LAS-002, LAS-009)."""
    part = LaserPart(
        total=0x0105,
        first=0x0020,
        ranges_mm=[1, 0x0302],
        reflectance=[7, 32],
        device=3,
        flags=1,
        x_mm=5,
        y_mm=-6,
        th_deg=90,
    )
    assert (
        part.encode(0x60)[3:-2].hex(" ")
        == "60 05 00 fa ff 5a 00 05 01 20 00 02 01 00 02 03"
    )
    assert (
        part.encode(0x61)[3:-2].hex(" ")
        == "61 05 01 20 00 02 01 00 07 00 00 02 03 20 00 00 03 01"
    )


@pytest.mark.parametrize("clients", [1, 4])
def test_scans_come_with_odometry_or_with_strengths(clients: int) -> None:
    """In both kinds of packets, for one client and for several served together
    (LAS-001, LAS-002, LAS-005).
    """
    bright = BoxObject(
        name="b",
        pose=Pose(4.0, 0.0, 0.0),
        length=0.2,
        width=1.0,
        returns=Returns(laser=2),
    )
    sim = Simulation(Scene(boxes=(bright,)), odometry_error="none", sensor_noise=False)
    for i in range(clients):
        sim.add_robot("p3dx", f"r{i}", pose=Pose(0.0, -3.0 * i, 0.0))
    modem = NullModem(sim)
    lines = [modem.connect(f"r{i}") for i in range(clients)]
    for line in lines:
        odometry = b"\0" + struct.pack("<hhh", 1500, -700, 30)
        for data in (
            command(0),
            command(1),
            command(2),
            command(1, 1),
            frame(7, odometry),
            command(230, 1),
        ):
            line.send(data)

    modem.run(0.5)
    for line in lines:
        parts = [
            LaserPart.decode(p)
            for p in Parser().feed_bytes(line.take())
            if p.id == 0x60
        ][-6:]
        assert [(p.x_mm, p.y_mm, p.th_deg, p.total, p.first) for p in parts] == [
            (1500, -700, 30, 181, 32 * k) for k in range(6)
        ]
        line.send(command(230, 2))

    modem.run(0.5)
    for i, line in enumerate(lines):
        parts = [
            LaserPart.decode(p)
            for p in Parser().feed_bytes(line.take())
            if p.id == 0x61
        ][-6:]
        strengths = [s for p in parts for s in p.reflectance]
        assert strengths[90] == (32 if i == 0 else 0), (
            "an LMS-200 reports bright things as 33 − 1"
        )
        assert {*strengths} <= {0, 32}
        assert [p.flags for p in parts] == [0] * 6


def test_simstat_byte_by_byte() -> None:
    """Written by hand from §8: each field in its place (SIM-011)."""
    stat = SimStat(
        flags=0x01020304,
        sim_ms=0x1112,
        real_ms=0x2122,
        last_ms=0x3132,
        x_mm=0x41424344,
        y_mm=-2,
        z_mm=3,
        th_deg=-4,
        lat_e7=5,
        lon_e7=-6,
        alt_cm=7,
        gps_quality=-8,
        error_x=9,
        error_y=-10,
        error_th=11,
    )
    assert stat.encode()[3:-2].hex(" ") == (
        "62 00 00 04 03 02 01 12 11 22 21 32 31 44 43 42 41 fe ff ff ff 03 00 00 "
        "00 fc ff ff ff 05 00 00 00 fa ff ff ff "
        "07 00 00 00 f8 ff ff ff 09 00 00 00 f6 ff ff ff 0b 00 00 00"
    )


def test_simstat_tells_steps_true_pose_and_errors() -> None:
    """A client gets the simulator's values:

    steps, the true pose and not odometry, errors by axis (SIM-014 … 016, ODO-008).
    """
    spec = replace(load_robot("p3dx"), odometry_error=Axes(0.001, 0.002, 0.003))
    sim = Simulation(odometry_error="constant", step=0.05)
    robot = sim.add_robot(spec, "r", pose=Pose(3.0, -2.0, 1.0))
    modem = NullModem(sim)
    line = modem.connect("r")
    for data in (command(0), command(1), command(2), command(1, 1), command(11, 300)):
        line.send(data)
    modem.run(1.5)
    sim.core.timing = Timing(sim=0.05, real=0.02, last=0.031)
    line.take()
    line.send(command(237, 1))
    (stat,) = (
        SimStat.decode(p) for p in Parser().feed_bytes(line.take()) if p.id == 0x62
    )
    assert (stat.sim_ms, stat.real_ms, stat.last_ms) == (50, 20, 31)
    true = robot.truth
    assert math.dist(true[:2], robot.odom[:2]) > 1.0
    assert (stat.x_mm, stat.y_mm, stat.z_mm, stat.th_deg) == (
        round(true.x * 1e3),
        round(true.y * 1e3),
        0,
        57,
    )
    assert (stat.error_x, stat.error_y) == (10_000_000, 20_000_000), (
        "mm in a metre, times 10⁷"
    )
    assert stat.error_th == pytest.approx(math.degrees(0.003) * 1e7, abs=1)
    assert stat.flags == 4


def test_simstat_tells_what_gps_reads() -> None:
    """Degrees × 10⁷, altitude in cm, 100 × the model's dilution of precision; 0 with
    bad reception (SIM-013, SIM-017, SIM-018).
    """
    bad = Area(
        kind="BadGPSSector", name="", corners=((90, -1), (110, -1), (110, 1), (90, 1))
    )
    scene = Scene(
        segments=np.array([[0.0, 0, 1, 0]]),
        georeference=GeoReference(42.807191, -71.578661, 72.5),
        areas=(bad,),
    )
    sim = Simulation(scene)
    sim.add_robot(
        load_robot("p3dx").fitted(GpsSpec(dop=2.5)), "r", pose=Pose(10.0, 0.0, 0.0)
    )
    port = sim.robots["r"].port("t")
    stat = build_simstat(port, port.state())
    assert (stat.lat_e7, stat.lon_e7) == (
        pytest.approx(428_071_910, abs=2),
        pytest.approx(-715_785_388, abs=2),
    )
    assert (stat.alt_cm, stat.gps_quality, stat.flags) == (7250, 250, 7)
    sim.put("r", Pose(100.0, 0.0, 0.0))
    sim.step()
    assert build_simstat(port, port.state()).gps_quality == 0


def test_simstat_of_a_world_without_and_with_a_map() -> None:
    _, _, port = report("p3dx")
    stat = build_simstat(port, port.state())
    assert (stat.flags, stat.gps_quality, stat.lat_e7) == (4, -1, 0)
    sim = Simulation(Scene(segments=np.array([[0.0, 5, 1, 5]])))
    port = sim.add_robot(load_robot("p3dx").fitted(GpsSpec()), "r").port("t")
    stat = build_simstat(port, port.state())
    assert (stat.flags, stat.gps_quality, stat.lat_e7) == (5, -1, 0), (
        "a map without a georeference"
    )
    sim = Simulation.load("office")
    port = sim.add_robot("p3dx").port("t")
    stat = build_simstat(port, port.state())
    assert (stat.flags, stat.gps_quality) == (7, 100)
    assert stat.lat_e7 == pytest.approx(48.1375e7, abs=2000)


def test_millimetres_and_degrees_go_back_as_they_came() -> None:
    """Conversions of a client's values round: 44°/s never comes back as 43."""
    for size in range(65536):
        for convert, back in ((units.from_mm, units.mm), (units.from_deg, units.deg)):
            value = back(convert(size))
            assert reportbuilder._u16(value) == size
            assert reportbuilder._i32(-value) == -size
            assert reportbuilder._i16(-value) == max(-32768, -size)
