"""ARIA parameter files (formats §2)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import ModelFileError
from botyard.formats.arparams import from_robot, parse, read, to_robot
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.devices import built_in_devices
from botyard.model.kinematics import Drive
from botyard.model.library import load_robot, robot_names
from botyard.units import deg, mm

SMALL = """ConfigVersion 2.0
; a comment
Section General settings
Class Pioneer      ; general type
Subclass mine      # also a comment
RobotWidth 300.0
robotlength 600
RobotLengthFront 200
RobotLengthRear 400
MaxVelocity 800
MaxRVelocity 120
Section Conversion factors
DistConvFactor 0.5
Unknown thing
Section Nobody knows
What ever
Section Sonar parameters
SonarNum 3
SonarUnit 0 100 50 90
SonarUnit 2 100 -50 -90 1 2 10 25 3000 1
Section Laser parameters
LaserX 25
LaserTh 180
LaserType lms1XX
LaserFlipped true
Section Laser 3 parameters
LaserType urg
LaserMaxRange 2000
"""


def test_a_small_file() -> None:
    spec = to_robot(parse(SMALL), "mine")
    assert (spec.name, spec.pioneer.class_name, spec.pioneer.subclass) == (
        "mine",
        "Pioneer",
        "mine",
    )
    assert spec.outline == ((-0.4, -0.15), (0.2, -0.15), (0.2, 0.15), (-0.4, 0.15))
    assert spec.pioneer.dist_conv == 0.5
    assert (spec.limits.max_speed.x, spec.limits.accel.x, spec.limits.decel.x) == (
        0.8,
        0.3,
        0.3,
    )
    assert math.degrees(spec.limits.max_speed.a) == pytest.approx(120)
    assert math.degrees(spec.limits.accel.a) == pytest.approx(100)
    assert spec.sonar is not None
    assert [t.connected for t in spec.sonar.transducers] == [True, False, True]
    assert spec.sonar.transducers[2].pose.y == -0.05
    assert (spec.sonar.range_max, spec.sonar.range_min) == (5.0, 0.2)
    assert [t.range_max for t in spec.sonar.transducers] == [None, None, 3.0], (
        "the long form is about its own transducer"
    )
    front, other = spec.lasers
    assert (front.type_name, front.pose.x, front.flipped) == ("sicklms100", 0.025, True)
    assert abs(front.pose.th) == pytest.approx(math.pi)
    assert (other.type_name, other.range_max) == ("hokuyourg", 2.0)


def test_ranges_of_the_long_form_are_those_of_its_transducers() -> None:
    text = (
        "Subclass t\nSonarNum 4\nSonarUnit 0 331 61 10 1 1 0 600 400 "
        "1\nSonarUnit 1 331 -61 -10 1 2 0 600 2500 1\n"
    )
    sonar = to_robot(
        parse(
            f"{text}SonarUnit 2 0 0 0 1 3 0 600 0 1\nSonarUnit 9 0 0 0 1 4 0 600 9000 1\n"
        ),
        "t",
    ).sonar
    assert sonar is not None
    assert [sonar.limits_of(t)[1] for t in sonar.transducers if t.connected] == [
        0.4,
        2.5,
        5.0,
    ]
    assert (sonar.range_min, sonar.range_max) == (0.04, 5.0), (
        "a number beyond SonarNum does not count"
    )


def test_units_are_repeated_lines() -> None:
    """PAR-003: one line for each transducer and each infrared unit.

    The two front units are table sensors, left first.
    """
    text = "Class Pioneer\nSubclass t\nTableSensingIR true\nNewTableSensingIR true\nSonarNum 3\n"
    text += "SonarUnit 0 100 50 90\nSonarUnit 2 100 -50 -90\n"
    text += "IRUnit 0 1 2 70 -40\nIRUnit 1 1 2 70 40\nIRUnit 2 1 2 -70 0\n"
    spec = to_robot(parse(text), "t")
    assert spec.table_ir.positions == ((0.07, 0.04), (0.07, -0.04))
    assert spec.sonar is not None
    assert [(t.pose.y, t.connected) for t in spec.sonar.transducers] == [
        (0.05, True),
        (0.0, False),
        (-0.05, True),
    ]


def test_every_conversion_and_place_of_a_file_counts() -> None:
    """PAR-007, PAR-010: every value differs from its default."""
    values = {
        "AngleConvFactor": 0.002,
        "DistConvFactor": 0.5,
        "VelConvFactor": 0.6,
        "RangeConvFactor": 0.3,
        "DiffConvFactor": 0.008,
        "Vel2Divisor": 30,
        "GPSPX": 120,
        "GPSPY": -80,
        "RobotLength": 700,
        "RobotWidth": 300,
        "MaxVelocity": 900,
        "MaxRVelocity": 77,
        "TransAccel": 210,
        "TransDecel": 220,
        "RotAccel": 23,
        "RotDecel": 24,
    }
    spec = to_robot(
        parse("Class Pioneer\n" + "".join(f"{k} {v}\n" for k, v in values.items())), "t"
    )
    p = spec.pioneer
    assert (
        p.angle_conv,
        p.dist_conv,
        p.vel_conv,
        p.range_conv,
        p.diff_conv,
        p.vel2_div,
    ) == (
        0.002,
        0.5,
        0.6,
        0.3,
        0.008,
        30,
    )
    assert (spec.gps.x, spec.gps.y) == (0.12, -0.08)
    assert sorted(spec.outline) == [
        (-0.35, -0.15),
        (-0.35, 0.15),
        (0.35, -0.15),
        (0.35, 0.15),
    ]
    limits = spec.limits
    assert (limits.max_speed.x, deg(limits.max_speed.a)) == (0.9, pytest.approx(77))
    assert (limits.accel.x, limits.decel.x) == (0.21, 0.22)
    assert (deg(limits.accel.a), deg(limits.decel.a)) == pytest.approx((23, 24))


def test_a_file_for_an_omnidirectional_robot_says_how_it_goes_sideways() -> None:
    """Lateral velocity and acceleration are read (PAR-012)."""
    seekur = load_robot("seekur")
    again = to_robot(parse(from_robot(seekur)), "seekur")
    assert again.drive is Drive.OMNI
    assert (
        again.limits.max_speed.y == pytest.approx(seekur.limits.max_speed.y)
        and again.limits.max_speed.y > 0
    )


def test_old_files() -> None:
    spec = to_robot(
        parse(
            "Class Pioneer\nSubclass old\nLaserPossessed true\nLaserX 17\nSonarNum 0\n"
        ),
        "old",
    )
    assert (spec.lasers[0].type_name, spec.lasers[0].pose) == (
        "sicklms200",
        Pose(0.017, 0.0, 0.0),
    )
    assert spec.sonar is None
    assert (
        to_robot(parse("Class Pioneer\nLaserPossessed false\nLaserType\n"), "x").lasers
        == ()
    )


def test_last_one_wins_and_blank_is_the_default() -> None:
    spec = to_robot(
        parse(
            "Subclass a\nRobotWidth 100\nRobotWidth 200 mm\nMaxVelocity\nDistConvFactor\n"
        ),
        "a",
    )
    assert spec.outline[2] == (0.25, 0.1)
    assert (spec.limits.max_speed.x, spec.pioneer.dist_conv) == (1.0, 1.0)


def test_angles_of_a_laser() -> None:
    text = (
        "Subclass a\nLaserType lms2xx\nLaserStartDegrees -45\nLaserEndDegrees "
        "45\nLaserIncrement 0.5\n"
    )
    laser = to_robot(parse(text), "a").lasers[0]
    assert (laser.samples, math.degrees(laser.fov)) == (181, pytest.approx(90))
    start_only = (
        "Subclass a\nLaserType lms2xx\nLaserStartDegrees -45\nLaserIncrement 1\n"
    )
    laser = to_robot(parse(start_only), "a").lasers[0]
    assert (laser.samples, math.degrees(laser.fov)) == (136, pytest.approx(135)), (
        "to where the laser's own scan ends"
    )


def test_an_omnidirectional_robot() -> None:
    spec = to_robot(
        parse("Subclass s\nHasLatVel true\nMaxLatVelocity 500\nLatAccel 200\n"), "s"
    )
    assert (
        spec.drive,
        spec.limits.max_speed.y,
        spec.limits.accel.y,
        spec.limits.decel.y,
    ) == (
        Drive.OMNI,
        0.5,
        0.2,
        0.3,
    )


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (
            "Subclass a\nRobotWidth wide\n",
            2,
            "RobotWidth: expected a number, found 'wide'",
        ),
        (
            "Subclass a\n\nDistConvFactor 0\n",
            3,
            "DistConvFactor: expected a number greater than 0, found '0'",
        ),
        (
            "Subclass a\nSonarNum 2\nSonarUnit 0 1 2\n",
            3,
            "SonarUnit: expected at least 4 numbers, found '0 1 2'",
        ),
        (
            "Subclass a\nSonarNum 2\nSonarUnit 900 1 2 3\n",
            3,
            "a sonar number from 0 to 254",
        ),
        (
            "Subclass a\nSection Laser parameters\nLaserType lidar9\n",
            3,
            "LaserType: expected one of lms2xx",
        ),
        (
            "Subclass a\nFrontBumpers maybe\n",
            2,
            "FrontBumpers: expected true or false, found 'maybe'",
        ),
        (
            "Subclass a\nRobotLength -5\nRobotWidth 100\n",
            2,
            "a length and a width greater than 0",
        ),
        ("Subclass a\nRobotWidth nan\n", 2, "expected a number"),
    ],
)
def test_errors_name_file_line_and_what_was_expected(
    tmp_path: Path, text: str, line: int, complaint: str
) -> None:
    path = tmp_path / "bad.p"
    path.write_text(text)
    with pytest.raises(ModelFileError) as error:
        find_robot(path)
    assert f"{path}:{line}: " in str(error.value)
    assert complaint in str(error.value)
    assert error.value.exit_code == 250


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.p"
    with pytest.raises(ModelFileError, match="cannot be read"):
        read(path)
    path.write_text("hello world\n")
    with pytest.raises(ModelFileError, match="expected a robot's parameter file"):
        read(path)
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(ModelFileError):
        read(path)


words = st.sampled_from(
    [
        "Subclass",
        "RobotWidth",
        "RobotLength",
        "SonarNum",
        "SonarUnit",
        "LaserType",
        "Section",
        "Laser",
        "IRUnit",
        "NumFrontBumpers",
        "FrontBumpers",
        "TableSensingIR",
        "lms2xx",
        "true",
        "0",
        "-1",
        "1e309",
        "nan",
        "7",
        ";",
        "#",
        "LaserIncrement",
        "LaserMaxRange",
    ]
    + ["\n"] * 3
)


@given(st.lists(words | st.text(max_size=6), max_size=40))
def test_no_text_does_anything_but_be_refused_or_read(pieces: list[str]) -> None:
    try:
        spec = to_robot(parse("Subclass a\n" + " ".join(pieces)), "a")
    except ModelFileError:
        return

    assert len(spec.outline) == 4


# Parameter files of ARIA have no drive that steers.
WRITTEN = [
    name
    for name in robot_names()
    if load_robot(name).drive and not load_robot(name).kinematics.steers
]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_we_write_reads_back(name: str) -> None:
    spec = load_robot(name)
    written = parse(from_robot(spec))
    back = to_robot(written, spec.name)
    ours, theirs = spec.pioneer, back.pioneer
    assert (
        ours.class_name,
        ours.subclass,
        ours.dist_conv,
        ours.diff_conv,
        ours.range_conv,
        ours.vel_conv,
    ) == (
        theirs.class_name,
        theirs.subclass,
        theirs.dist_conv,
        theirs.diff_conv,
        theirs.range_conv,
        theirs.vel_conv,
    )
    for device in built_in_devices():
        # ARIA's parameter files describe no other properties of devices.
        for line in device.aria:
            ours, theirs = (
                getattr(one.device(device.name), line.parameter, 0)
                for one in (spec, back)
            )
            assert theirs == pytest.approx(ours, abs=1e-9), line
            assert written.find(line.key, line.section) is not None, line

    # ARIA knows robots that move sideways, and robots that do not.
    sideways = spec.kinematics.moves_sideways
    assert back.drive is (Drive.OMNI if sideways else Drive.DIFF)
    assert (spec.sonar is None) == (back.sonar is None)
    if spec.sonar and back.sonar:
        assert [t.connected for t in back.sonar.transducers] == [
            t.connected for t in spec.sonar.transducers
        ]
        for a, b in zip(spec.sonar.transducers, back.sonar.transducers, strict=True):
            if a.connected:
                assert (b.pose.x, b.pose.y) == pytest.approx(
                    (a.pose.x, a.pose.y), abs=6e-4
                )

    for a, b in zip(spec.lasers, back.lasers, strict=True):
        assert abs(b.samples - a.samples) <= 1
        assert (mm(b.pose.x), mm(b.range_max)) == pytest.approx(
            (mm(a.pose.x), mm(a.range_max)), abs=1
        )
        assert deg(b.pose.th) == pytest.approx(deg(a.pose.th), abs=1e-3)
        assert b.flipped == a.flipped


@pytest.mark.shared
def test_all_real_files_give_robots(shared: Path) -> None:
    files = sorted((shared / "data/params").glob("*.p"))
    assert len(files) == 48
    for path in files:
        params = read(path)
        spec = find_robot(path)
        assert spec.name == path.stem
        assert (
            spec.pioneer.subclass.lower() == path.stem.lower()
            or path.stem.startswith("perfpb")
        )
        assert (len(spec.sonar.transducers) if spec.sonar else 0) == int(
            params.number("SonarNum", 0)
        )
        assert back_in_world(spec)


def back_in_world(spec: object) -> bool:
    from botyard.sim.simulation import Simulation

    sim = Simulation()
    robot = sim.add_robot(spec)
    sim.step()
    return robot.truth is not None


@pytest.mark.shared
def test_the_bumpers_of_real_files(shared: Path) -> None:
    spec = find_robot(shared / "data/params/peoplebot-sh.p")
    assert (spec.device("bumpers").front, spec.device("bumpers").rear) == (5, 5)
    assert spec.table_ir.positions == ((0.333, 0.233), (0.333, -0.233))
    assert spec.table_ir.in_io_packet
