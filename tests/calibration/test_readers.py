"""A recording, a table, bags of ROS 1 and 2 and Pioneer packets of one run give the
same log.

Errors of damaged files name the place.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

import botyard.recording
from botyard.calibration import calibrate
from botyard.calibration.choice import Choice
from botyard.calibration.log import Log
from botyard.calibration.readers import read_log, read_truth
from botyard.errors import BudgetError, CalibrationError, FormatError
from botyard.formats.budget import Budget
from botyard.model.library import load_robot
from botyard.protocols.pioneer.commands import C, P
from botyard.protocols.pioneer.packet import command, frame
from botyard.protocols.pioneer.reports import LaserPart, Sip
from botyard.sim.simulation import Simulation
from tests.calibration.making import HALL

SPEC = load_robot("p3dx")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "run.mcap"
    sim = Simulation(HALL, seed=3, warn=None)
    robot = sim.add_robot("p3dx", name="bob", pose=(5.5, 4.5, 0.3))
    with sim.record(
        path,
        topics=["*/odom", "*/base_pose_ground_truth", "*/base_scan"],
        rate={"*/base_scan": 2.0, "*": 0.0},
    ):
        for k in range(60):
            if k % 20 == 5:
                robot.command(v=0.2 + 0.01 * k, w=0.5 - 0.02 * k)
            sim.step()

    sim.close()
    return path


def test_a_recording(recording: Path) -> None:
    log = read_log(recording, SPEC)
    run = botyard.recording.load(recording)
    assert log.robot == "bob"
    assert np.array_equal(log.odometry.values, run.odometry[:, 0])
    assert np.array_equal(log.truth.values, run.poses[:, 0])
    assert log.scans is not None
    assert log.scans.ranges.shape == (13, 181)
    assert log.scans.intensities is not None
    assert 0 < (log.scans.intensities > 1.0).sum() < 1000
    assert log.scans.bearings[[0, -1]] == pytest.approx([-np.pi / 2, np.pi / 2])
    # Commands have the times at which they were sent, not the times of the rows that
    # first
    # show them.
    assert log.commands.time == pytest.approx([0.5, 2.5, 4.5])
    assert log.commands.values[:, [0, 2]] == pytest.approx(
        np.array([[0.25, 0.4], [0.45, 0.0], [0.65, -0.4]])
    )


def same(a: Log, b: Log, tolerance: float = 1e-9, *, truth: bool = True) -> None:
    assert a.odometry.time == pytest.approx(b.odometry.time, abs=1e-6)
    assert a.odometry.values == pytest.approx(b.odometry.values, abs=tolerance)
    assert a.velocities.values == pytest.approx(b.velocities.values, abs=tolerance)
    if truth:
        assert a.truth.values == pytest.approx(b.truth.values, abs=tolerance)
    at = np.arange(0.75, 5.9, 0.5)
    for log in (a, b):
        assert len(log.commands)
    now = [
        log.commands.values[np.searchsorted(log.commands.time, at) - 1]
        for log in (a, b)
    ]
    assert now[0] == pytest.approx(now[1], abs=tolerance)


def test_a_recording_that_is_cut_short_says_so(recording: Path, tmp_path: Path) -> None:
    """The complete part is read, with a note that the rest is missing."""
    data, path = recording.read_bytes(), tmp_path / "cut.mcap"
    path.write_bytes(data[:-100])
    log = read_log(path, SPEC)
    assert "cut short" in log.problems[0]
    assert not read_log(recording, SPEC).problems
    assert any(
        "cut.mcap: the file was cut short" in note
        for note in calibrate([log], SPEC, hold_out=False).notes
    )
    path.write_bytes(data[:600])
    with pytest.raises(
        FormatError, match="expected a robot, found none: the file was cut short"
    ):
        read_log(path, SPEC)


def test_the_table_that_export_writes(recording: Path, tmp_path: Path) -> None:
    botyard.recording.export(botyard.recording.load(recording), tmp_path / "run.csv")
    same(read_log(tmp_path / "run.csv", SPEC), read_log(recording, SPEC))
    with pytest.raises(CalibrationError, match="robots: expected ann, found bob"):
        read_log(tmp_path / "run.csv", SPEC, Choice("ann"))


def write_bag(log: Log, path: Path, kind: str) -> Path:
    """Write the log as a ROS bag with stamps."""
    store = get_typestore(Stores.ROS1_NOETIC if kind == "bag" else Stores.LATEST)
    types = store.types
    encode = store.serialize_ros1 if kind == "bag" else store.serialize_cdr
    zero = np.zeros(36)

    def header(at: float) -> object:
        extra = {"seq": 0} if kind == "bag" else {}
        stamp = types["builtin_interfaces/msg/Time"](
            sec=int(at), nanosec=round(at % 1.0 * 1e9)
        )
        return types["std_msgs/msg/Header"](**extra, stamp=stamp, frame_id="odom")

    def pose(values: list[float]) -> object:
        x, y, th = values
        point = types["geometry_msgs/msg/Point"](x=x, y=y, z=0.0)
        z, w = (0.0, 0.0) if np.isnan(th) else (np.sin(th / 2), np.cos(th / 2))
        turn = types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=z, w=w)
        return types["geometry_msgs/msg/Pose"](position=point, orientation=turn)

    def twist(values: list[float]) -> object:
        vector = types["geometry_msgs/msg/Vector3"]
        return types["geometry_msgs/msg/Twist"](
            linear=vector(values[0], values[1], 0.0),
            angular=vector(0.0, 0.0, values[2]),
        )

    writer = (
        Writer1(path)
        if kind == "bag"
        else Writer2(path, version=9, storage_plugin=StoragePlugin[kind])
    )
    with writer as bag:

        def write(topic: str, name: str, rows: list[tuple[float, object]]) -> None:
            connection = bag.add_connection(topic, name, typestore=store)
            for at, message in rows:
                bag.write(connection, round(at * 1e9), bytes(encode(message, name)))

        odometry = []
        for at, p, v in zip(
            log.odometry.time.tolist(),
            log.odometry.values.tolist(),
            log.velocities.values.tolist(),
            strict=True,
        ):
            whole = types["geometry_msgs/msg/PoseWithCovariance"](
                pose=pose(p), covariance=zero
            )
            speed = types["geometry_msgs/msg/TwistWithCovariance"](
                twist=twist(v), covariance=zero
            )
            odometry.append(
                (
                    at,
                    types["nav_msgs/msg/Odometry"](
                        header=header(at),
                        child_frame_id="base",
                        pose=whole,
                        twist=speed,
                    ),
                )
            )

        write("/bob/odom", "nav_msgs/msg/Odometry", odometry)
        rows = list(
            zip(log.truth.time.tolist(), log.truth.values.tolist(), strict=True)
        )
        rows[5:5] = [
            (0.5 * (rows[4][0] + rows[5][0]), [0.0, 0.0, math.nan])
            # A pose of NaN means that the markers are not visible.
        ]
        write(
            "/vrpn_client/bob/pose",
            "geometry_msgs/msg/PoseStamped",
            [
                (
                    at,
                    types["geometry_msgs/msg/PoseStamped"](
                        header=header(at), pose=pose(p)
                    ),
                )
                for at, p in rows
            ],
        )
        commands = zip(
            log.commands.time.tolist(), log.commands.values.tolist(), strict=True
        )
        write(
            "/bob/cmd_vel",
            "geometry_msgs/msg/Twist",
            [(at, twist(v)) for at, v in commands],
        )
        assert log.scans is not None
        scans = []
        returns = (
            log.scans.ranges if log.scans.intensities is None else log.scans.intensities
        )
        for at, ranges, row in zip(
            log.scans.time.tolist(), log.scans.ranges, returns, strict=True
        ):
            scans.append(
                (
                    at,
                    types["sensor_msgs/msg/LaserScan"](
                        header=header(at),
                        angle_min=log.scans.angle_min,
                        angle_max=-log.scans.angle_min,
                        angle_increment=log.scans.increment,
                        time_increment=0.0,
                        scan_time=0.5,
                        range_min=0.0,
                        range_max=32.767,
                        ranges=ranges.astype(np.float32),
                        intensities=np.zeros(0, np.float32)
                        if log.scans.intensities is None
                        else row.astype(np.float32),
                    ),
                )
            )

        write("/bob/scan", "sensor_msgs/msg/LaserScan", scans)
        write("/rear/scan", "sensor_msgs/msg/LaserScan", scans[:2])

    found = (
        path
        if kind == "bag"
        else next(path.glob("*.mcap" if kind == "MCAP" else "*.db3"))
    )
    return found


@pytest.mark.parametrize("kind", ["bag", "SQLITE3", "MCAP"])
def test_bags(kind: str, recording: Path, tmp_path: Path) -> None:
    log = read_log(recording, SPEC)
    path = write_bag(log, tmp_path / ("a.bag" if kind == "bag" else "a"), kind)
    with pytest.raises(
        CalibrationError,
        match=r"topics of scans: expected one, found /bob/scan, /rear/scan; "
        r"choose with --topic scans=",
    ):
        read_log(path, SPEC)

    choice = Choice(topics={"scans": "/bob/scan"})
    found = read_log(path, SPEC, choice)
    same(found, log, 1e-7)
    assert found.scans is not None
    assert log.scans is not None
    assert found.scans.ranges == pytest.approx(log.scans.ranges, abs=1e-6)
    assert found.scans.intensities is not None
    assert np.array_equal(found.scans.intensities, log.scans.intensities)
    assert not found.has_exact_clock
    if kind != "bag":
        same(read_log(path.parent, SPEC, choice), log, 1e-7)
    with pytest.raises(CalibrationError, match="topics of true poses: expected /other"):
        read_log(path, SPEC, Choice(topics={"scans": "/bob/scan", "truth": "/other"}))
    with pytest.raises(BudgetError, match="entities"):
        read_log(path, SPEC, choice, Budget(entities=10))


def test_packets(recording: Path, tmp_path: Path) -> None:
    log = read_log(recording, SPEC)
    p, lines = SPEC.pioneer, []

    def line(at: float, who: str, data: bytes) -> None:
        lines.append(
            (
                at,
                {
                    "robot": "bob",
                    "session": 1,
                    "sim": at,
                    "wall": at,
                    "from": who,
                    "data": data.hex(),
                },
            )
        )

    for number in range(3):
        line(0.0, "client", frame(number))
        line(
            0.0, "robot", frame(number, b"bob\0Pioneer\0p3dx\0" if number == 2 else b"")
        )

    line(0.05, "client", command(C.OPEN))
    for at, (v, _, w) in zip(
        log.commands.time.tolist(), log.commands.values.tolist(), strict=True
    ):
        line(
            at,
            "client",
            command(C.VEL, round(v * 1000)) + command(C.RVEL, round(np.degrees(w))),
        )

    units = np.round(
        log.odometry.values * [1000 / p.dist_conv, 1000 / p.dist_conv, 1 / p.angle_conv]
    ).astype(int)
    for at, (x, y, th), (v, _, w) in zip(
        log.odometry.time.tolist(),
        units.tolist(),
        log.velocities.values.tolist(),
        strict=True,
    ):
        half = w / p.diff_conv
        # The robot is so far from the origin that the counters of 16 bits wrap.
        sip = Sip(
            x=(x + 65000) % 65536 - 32768,
            y=y,
            th=th,
            left_vel=round(v * 1000 - half),
            right_vel=round(v * 1000 + half),
        )
        line(at, "robot", sip.encode())

    assert log.scans is not None
    assert log.scans.intensities is not None
    for at, ranges, returns in zip(
        log.scans.time.tolist(), log.scans.ranges, log.scans.intensities, strict=True
    ):
        for first in range(0, 181, 32):
            some = [round(1000 * r) for r in ranges[first : first + 32]]
            # A reflectance of 0 is an ordinary surface.
            bright = [int(one) - 1 for one in returns[first : first + 32]]
            part = LaserPart(total=181, first=first, ranges_mm=some, reflectance=bright)
            line(at, "robot", part.encode(P.LASER2))

    path = tmp_path / "packets.jsonl"
    path.write_text(
        "".join(
            json.dumps(one) + "\n" for _, one in sorted(lines, key=lambda item: item[0])
        )
    )
    found = read_log(path, SPEC)
    # Compare from the first pose on, because packets have no frame.
    same_way = found.odometry.values - found.odometry.values[0]
    assert same_way[:, :2] == pytest.approx(
        log.odometry.values[:, :2] - log.odometry.values[0, :2], abs=2e-3
    )
    assert same_way[:, 2] == pytest.approx(
        log.odometry.values[:, 2] - log.odometry.values[0, 2], abs=2e-3
    )
    assert found.velocities.values == pytest.approx(log.velocities.values, abs=6e-3)
    assert found.commands.values == pytest.approx(log.commands.values, abs=0.01)
    assert found.scans is not None
    assert found.scans.ranges == pytest.approx(log.scans.ranges, abs=6e-4)
    assert found.scans.intensities is not None
    assert np.array_equal(found.scans.intensities, log.scans.intensities)
    assert found.scans.bearings == pytest.approx(log.scans.bearings, abs=1e-6)
    with pytest.raises(CalibrationError, match="robots: expected ann, found bob"):
        read_log(path, SPEC, Choice("ann"))


def test_units_of_columns_and_wheels(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "t [ms],X (mm),y [cm],Theta "
        "[deg],comment\n0,1000,50,90,a\n500,2000,,0,b\n1000,2000,50,-90,c\n"
    )
    truth = read_truth(path, SPEC)
    assert truth.time == pytest.approx([0.0, 1.0])
    assert truth.values == pytest.approx(
        np.array([[1.0, 0.5, np.pi / 2], [2.0, 0.5, -np.pi / 2]])
    )
    separation = SPEC.kinematics.track
    quarter = np.pi / 2 * separation / 2
    path.write_text(
        "time,left_wheel [m],right_wheel "
        f"[m]\n0,1,1\n1,2,2\n2,{2 - quarter},{2 + quarter}\n3,{3 - quarter},{3 + quarter}\n"
    )
    poses = read_log(path, SPEC).odometry.values
    assert poses == pytest.approx(
        np.array([[0, 0, 0], [1, 0, 0], [1, 0, np.pi / 2], [1, 1, np.pi / 2]]),
        abs=1e-12,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "x,y,heading\n1,2,3\n",
            r'a\.csv:1: expected a column "time \[s\]", found x, y, heading',
        ),
        (
            "time,x [furlong]\n1,2\n",
            r'a\.csv:1: column "x \[furlong\]": expected one of the units m, cm, mm',
        ),
        (
            "time,x,y,heading\n0,0,0,0\n1,2,tree,4\n",
            r'a\.csv:3: column "y": expected a number, found "tree"',
        ),
        ("time,x,y,heading\n1,2\n", r"a\.csv:2: expected 4 values, found 2"),
        ("time,x,x [mm],heading\n", r'a\.csv:1: expected one column "x", found two'),
        (
            "time,odom x,odom y\n1,2,3\n",
            r'a\.csv:1: expected the columns "odom x", "odom y", "odom heading", found only "odom x", "odom y"',
        ),
        ("", r"a\.csv:1: expected a column"),
        (
            "time,x,y\n0,0,0\n",
            r'expected the columns "x", "y", "heading", found only "x", "y"',
        ),
        (
            "time,x,y,heading\n0,0,0,0\n1,1e300,0,0\n",
            r"a\.csv: true poses: expected numbers within ±1e\+07, found 1e\+300 at 1\.000 s",
        ),
        (
            "time;x;y;heading\n0;0;0;0\n1,5;2,5;1.000,5;0\n",
            r'a\.csv:3: column "y": expected a number, found "1\.000\.5"',
        ),
        (
            "time,x,y,heading\n0,0,0,0\n",
            r"expected at least two true poses \(columns time, x, y, heading\), found 1",
        ),
    ],
)
def test_bad_tables_say_where(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises((FormatError, CalibrationError), match=words):
        read_truth(path, SPEC)


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_separators_of_tables(separator: str, tmp_path: Path) -> None:
    """The decimal sign may be a comma if the separator is another character."""
    path = tmp_path / "a.csv"
    rows = (
        ["timestamp", "x [mm]", "y", "heading"],
        ["0,5", "1500", "-2.25", "1e-1"],
        ["1.5", "0", "0", "0"],
    )
    text = "\n".join(separator.join(row) for row in rows)
    path.write_text(text.replace("0,5", "0.5") if separator == "," else text)
    truth = read_truth(path, SPEC)
    assert truth.time.tolist() == [0.5, 1.5]
    assert truth.values[0] == pytest.approx([1.5, -2.25, 0.1])


@pytest.mark.parametrize("name", ["a.bag", "a.db3", "a.mcap", "a.jsonl", "a.csv"])
def test_files_that_are_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with pytest.raises(FormatError):
        read_log(path, SPEC)
    path.write_bytes(b"\x89no log\0\xff" * 40)
    with pytest.raises((FormatError, CalibrationError), match=name):
        read_log(path, SPEC)
