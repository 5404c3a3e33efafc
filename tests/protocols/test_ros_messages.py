"""ROS messages:

types and MD5 sums, both wire forms, templates against objects, names.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from botyard.devices.blobs import BlobFinderSpec
from botyard.devices.bumpers import BumperSpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.errors import PeerError, WorldError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.rosmessages import CLOUDS, point_cloud2
from botyard.model.scene import Scene
from botyard.protocols.ros_messages.cmdvel import Driver
from botyard.protocols.ros_messages.messages import Messages, Stamp
from botyard.protocols.ros_messages.naming import PROFILES, graph_name, names_of
from botyard.protocols.ros_messages.robot import RobotTopics
from botyard.protocols.ros_messages.stepdata import StepData
from botyard.protocols.ros_messages.typedefinitions import SERVICES
from botyard.protocols.ros_messages.types import Types, types
from botyard.sim.simulation import Robot, Simulation

TYPES = types()
STAMP = Stamp(12, 340_000_000)


def robot(profile: str = "default", **changes: object) -> tuple[Robot, RobotTopics]:
    sim = Simulation.load("office", seed=3)
    spec = replace(find_robot("p3dx-equipped"), **changes)
    one = sim.add_robot(spec, "ann", pose=(10.0, 14.0, 0.3))
    one.command(v=0.3, w=0.4)
    sim.step(5)
    port = one.port("ros")
    return one, RobotTopics(
        port, names_of("ann", profile, True), Messages(TYPES), TYPES, StepData()
    )


# -- types


def test_sums_are_those_of_ros() -> None:
    """MD5 sums of ROS's own tools (reference ros.md §3; rosmsg md5, rossrv md5)."""
    for name, md5 in {
        "nav_msgs/Odometry": "cd5e73d190d741a2f92e81eda573aca7",
        "sensor_msgs/LaserScan": "90c7ef2dc6895d81024acba2ac42f369",
        "tf2_msgs/TFMessage": "94810edda583a504dfda3829e70d7eec",
        "sensor_msgs/PointCloud2": "1158d486dd51d683ce2f1be655c3c181",
        "ackermann_msgs/AckermannDriveStamped": "1fd5d7f58889cefd44d29f6653240d0c",
    }.items():
        assert TYPES.definition(name)[1] == md5, name

    for name, md5 in {
        "std_srvs/Empty": "d41d8cd98f00b204e9800998ecf8427e",
        "std_srvs/SetBool": "09fb03525b03e7ea1fd3992bafd87e16",
        "std_srvs/Trigger": "937c9679a518e3a18d831e57125ea522",
        "nav_msgs/GetMap": "6cdd0a18e0aff5b0a3ca2326a89b54ff",
        "dynamic_reconfigure/Reconfigure": "bb125d226a21982a4a98760418dc2672",
        "roscpp/GetLoggers": "32e97e85527d4678a8f9279894bb64b0",
    }.items():
        assert TYPES.service(name).md5 == md5, name

    assert len({TYPES.service(n).md5 for n in SERVICES}) > 8


def test_fields_that_are_left_out_have_the_defaults_of_ros_2() -> None:
    """A pose omitted by a rosbridge client is a valid pose."""
    kinds = types()
    request = kinds.filled("simulation_interfaces/srv/SpawnEntity_Request", {})
    turn = request.initial_pose.pose.orientation
    assert (turn.x, turn.y, turn.z, turn.w) == (0.0, 0.0, 0.0, 1.0)
    assert kinds.filled("geometry_msgs/Quaternion", {"w": 0.5}).w == 0.5
    assert kinds.blank("geometry_msgs/Pose").orientation.w == 0.0, "not in ROS 1"


def test_unknown_types_and_distributions() -> None:
    with pytest.raises(WorldError, match='no ROS message type "a/B"'):
        TYPES["a/B"]
    with pytest.raises(WorldError, match="expected one of humble, jazzy, kilted"):
        Types("hydro")
    assert TYPES.knows("std_msgs/Bool") and not TYPES.knows("std_msgs/Boole")


@given(
    st.binary(max_size=200),
    st.sampled_from(
        [
            "geometry_msgs/Twist",
            "std_msgs/String",
            "nav_msgs/OccupancyGrid",
            "std_msgs/Bool",
        ]
    ),
)
def test_no_bytes_raise_anything_but_a_peers_error(data: bytes, name: str) -> None:
    for decode in (TYPES.decode_ros1, TYPES.decode_cdr):
        try:
            decode(data, name)
        except PeerError:
            continue


@pytest.mark.parametrize("more", [0, 1, 3, 4, 30])
def test_bytes_behind_a_message_in_cdr_are_ignored(more: int) -> None:
    """As Fast CDR does; ``serialize_message`` of rclpy returns more than the message."""
    said = TYPES.filled("std_msgs/String", {"data": "abc"})
    data = TYPES.encode_cdr(said, "std_msgs/String") + bytes(more)
    assert TYPES.decode_cdr(data, "std_msgs/String").data == "abc"
    with pytest.raises(PeerError, match="expected a message of type std_msgs/String"):
        TYPES.decode_cdr(data[: 8 - more % 4], "std_msgs/String")
    with pytest.raises(PeerError, match="expected a header of plain CDR, found 00 03"):
        TYPES.decode_cdr(b"\0\3" + data[2:], "std_msgs/String")


@pytest.mark.parametrize("distro", ["humble", "jazzy"])
def test_one_object_is_encoded_in_both_forms(distro: str) -> None:
    """Every topic's message, created from the ROS 1 classes, is valid CDR with the same
    values.
    """
    two = Types(distro)
    finders = {
        "devices": (
            FiducialFinderSpec(),
            BlobFinderSpec(colors=("red",)),
            BumperSpec(front=5, rear=5),
        )
    }
    _, topics = robot(**finders)
    for topic in topics.topics():
        message = topic.make(STAMP)
        one = TYPES.decode_ros1(
            TYPES.encode_ros1(message, topic.type_name), topic.type_name
        )
        other = two.decode_cdr(
            two.encode_cdr(message, topic.type_name), topic.type_name
        )
        assert flat(other) == flat(one), topic.name


def flat(message: object) -> object:
    """Return a message as plain values, without the fields of ROS 1 alone."""
    if isinstance(message, np.ndarray):
        return message.tolist()
    if isinstance(message, list):
        return [flat(m) for m in message]
    if hasattr(message, "__dataclass_fields__"):
        names = [
            f
            for f in message.__dataclass_fields__
            if not f.startswith("__") and f != "seq" and not f.isupper()
        ]
        return {n: flat(getattr(message, n)) for n in names}

    return "nan" if isinstance(message, float) and math.isnan(message) else message


def test_finders_say_what_they_see() -> None:
    """A marked red box ahead to the left, in both messages (UNS-026)."""
    box = BoxObject(
        name="m",
        pose=Pose(1.5, 0.4, 0.0),
        length=0.3,
        width=0.3,
        color="red",
        returns=Returns(fiducial=7),
    )
    finders = {
        "devices": (
            FiducialFinderSpec(),
            BlobFinderSpec(colors=("red",)),
            BumperSpec(front=5, rear=5),
        )
    }
    sim = Simulation(Scene(boxes=(box,)))
    one = sim.add_robot(replace(find_robot("p3dx"), **finders), "ann", pose=Pose())
    names = names_of("ann", "default", True)
    topics = RobotTopics(one.port("ros"), names, Messages(TYPES), TYPES, StepData())
    made = {t.name.rpartition("/")[2]: t.make(STAMP) for t in topics.topics()}
    (mark,) = made["fiducials"].fiducials
    assert mark.id == 7
    assert (mark.range, mark.bearing) == pytest.approx(
        (math.hypot(1.5, 0.4), math.atan2(0.4, 1.5))
    )
    (patch,), (seen,) = made["blobs"].blobs, one.blob_finder.read()
    assert (patch.color, patch.left, patch.right, patch.range) == (
        "red",
        seen.left,
        seen.right,
        seen.range,
    )
    assert patch.right < made["blobs"].width / 2, "to the left"


@pytest.mark.parametrize("profile", PROFILES)
def test_echoes_of_the_sonar_ring_have_a_frame_of_their_own_with_rosaria_only(
    profile: str,
) -> None:
    _, topics = robot(profile)
    clouds = [t.make(STAMP) for t in topics.topics() if "PointCloud" in t.type_name]
    frames = {cloud.header.frame_id.rpartition("/")[2] for cloud in clouds}
    assert ("sonar" in frames) == (profile == "rosaria")
    assert len(frames) == len(clouds[:1]), "all of them are in the same one"
    assert frames <= {"sonar", "base_link", "base_footprint"}


@pytest.mark.parametrize("th", [0.0, 0.5, -2.0, math.pi])
def test_a_pose_of_a_device_has_the_quaternion_of_its_heading(th: float) -> None:
    """A rotation about z by th is (cos th/2, 0, 0, sin th/2)."""
    pose = TYPES.made("geometry_msgs/PoseStamped", {"pose": Pose(1.0, -2.0, th)}).pose
    assert (pose.position.x, pose.position.y, pose.position.z) == (1.0, -2.0, 0.0)
    turn = pose.orientation
    assert (turn.w, turn.x, turn.y, turn.z) == pytest.approx(
        (math.cos(th / 2), 0.0, 0.0, math.sin(th / 2)), abs=1e-15
    )


def test_points_of_a_cloud_are_three_floats_that_follow_each_other() -> None:
    """In sensor_msgs/PointField, FLOAT32 is 7."""
    points = np.array([[1.0, 2.0, 3.0], [-4.0, 5.5, 0.25]], np.float32)
    cloud = TYPES.made("sensor_msgs/PointCloud2", point_cloud2(points))
    assert [(f.name, f.offset, f.datatype, f.count) for f in cloud.fields] == [
        ("x", 0, 7, 1),
        ("y", 4, 7, 1),
        ("z", 8, 7, 1),
    ]
    assert (cloud.height, cloud.width, cloud.point_step, cloud.row_step) == (
        1,
        2,
        12,
        24,
    )
    assert (cloud.is_bigendian, cloud.is_dense) == (False, True)
    assert bytes(cloud.data) == points.astype("<f4").tobytes()


# -- templates


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("wire", ["ros1", "cdr"])
@pytest.mark.parametrize("read", [True, False])
def test_quick_bytes_are_those_of_the_objects(
    profile: str, wire: str, read: bool
) -> None:
    one, topics = robot(profile)
    # Readings come from the step if a sensor has a reader, otherwise they are read on demand.
    if read:
        one.laser.subscribe("x")
        assert one.sonar is not None
        one.sonar.subscribe("x")
        one.simulation.step()

    encode = TYPES.encode_ros1 if wire == "ros1" else TYPES.encode_cdr
    decode = TYPES.decode_ros1 if wire == "ros1" else TYPES.decode_cdr
    quick = [t for t in topics.topics() if t.quick is not None]
    kinds = {t.type_name for t in topics.topics()} & {
        "nav_msgs/Odometry",
        "sensor_msgs/LaserScan",
        *CLOUDS,
    }
    assert kinds == {t.type_name for t in quick}, "the busiest types"
    for topic in quick:
        assert topic.quick is not None
        for _ in range(2):
            fast, slow = (
                topic.quick(wire, STAMP),
                encode(topic.make(STAMP), topic.type_name),
            )
            assert len(fast) == len(slow), topic.name
            a, b = (
                flat(decode(fast, topic.type_name)),
                flat(decode(slow, topic.type_name)),
            )
            assert a == b, topic.name
            one.simulation.step()
            topics.data.forget()


def test_diagnostics_name_the_worst() -> None:
    sim = Simulation(Scene(segments=np.array([[1.0, -2.0, 1.0, 2.0]])))
    one = sim.add_robot("p3dx", "ann", pose=Pose())
    topics = RobotTopics(
        one.port("ros"),
        names_of("ann", "default", True),
        Messages(TYPES),
        TYPES,
        StepData(),
    )

    def status() -> tuple[int, str]:
        (made,) = Messages(TYPES).diagnostics(STAMP, [topics.diagnostics()]).status
        assert (made.name, made.hardware_id) == ("ann", "ann")
        return made.level, made.message

    assert status() == (0, "OK")
    one.command(v=0.5)
    sim.step(40)
    assert status() == (1, "stalled")
    one.command.stop()
    one.command.set_pose(-5.0, 0.0, 0.0)
    sim.step(5)
    one.command.enable(False)
    sim.step()
    assert status() == (1, "motors off")
    one.press_estop()
    sim.step()
    assert status() == (1, "emergency stop")


@settings(max_examples=20)
@given(st.integers(2, 300), st.floats(-1.5, 0.5), st.floats(0.002, 0.02))
def test_a_scan_follows_the_lasers_configuration(
    count: int, first: float, step: float
) -> None:
    one, topics = SHARED
    one.laser.subscribe("x")
    one.laser.configure(first, step, count)
    one.simulation.step()
    topics.data.forget()
    topic = next(t for t in topics.topics() if t.type_name == "sensor_msgs/LaserScan")
    assert topic.quick is not None
    scan = TYPES.decode_ros1(topic.quick("ros1", STAMP), topic.type_name)
    assert len(scan.ranges) == len(scan.intensities) == count
    assert (scan.angle_min, scan.angle_increment) == pytest.approx(
        (first, step), rel=1e-5
    )


SHARED = robot()


def test_nothing_met_is_infinite_or_the_greatest_range() -> None:
    for profile, value in (("default", math.inf), ("stage", 32.766)):
        sim = Simulation()
        one = sim.add_robot("p3dx", "ann")
        topics = RobotTopics(
            one.port("x"),
            names_of("ann", profile, True),
            Messages(TYPES),
            TYPES,
            StepData(),
        )
        topic = next(
            t for t in topics.topics() if t.type_name == "sensor_msgs/LaserScan"
        )
        assert topic.quick is not None
        scan = TYPES.decode_cdr(topic.quick("cdr", STAMP), topic.type_name)
        assert scan.ranges[0] == pytest.approx(value, abs=0.01)


# -- names


@given(st.text(max_size=12))
def test_any_robots_name_is_a_legal_name_in_the_graph(name: str) -> None:
    clean = graph_name(name)
    assert clean[0].isalpha() or clean.startswith("r_")
    assert (
        all(c.isascii() and (c.isalnum() or c == "_") for c in clean)
        or not name.isascii()
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_names_of_two_robots_differ(profile: str) -> None:
    found = []
    for name in ("a", "b"):
        sim = Simulation()
        port = sim.add_robot("p3dx", name).port("x")
        topics = RobotTopics(
            port, names_of(name, profile, False), Messages(TYPES), TYPES, StepData()
        )
        transforms = {(topics.names.tf, t.child) for t in topics.static_transforms()}
        found.append({t.name for t in topics.topics()} | transforms)

    assert not found[0] & found[1]
    assert not any(t.child.startswith("/") for t in topics.static_transforms()), (
        "frames have no slash in front (tf2)"
    )


# -- cmd_vel


class Log(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


def twist(v: float, w: float = 0.0, vy: float = 0.0) -> object:
    vector = TYPES["geometry_msgs/Vector3"]
    return TYPES["geometry_msgs/Twist"](vector(v, vy, 0.0), vector(0.0, 0.0, w))


def driver(timeout: float = 0.6, ahead_us: int = 0) -> tuple[Robot, Driver, Log]:
    """Return a robot, its driver, and the warnings.

    The clock of stamps is `ahead_us` ahead of the simulation's.
    """
    one = Simulation().add_robot("p3dx", "ann")
    log, port = Log(), one.port("ros")

    def clock() -> Stamp:
        return Stamp.of_us(port.time_us + ahead_us)

    return (
        one,
        Driver(
            port,
            lambda: one.claim("ros"),
            lambda: one.release("ros"),
            timeout,
            clock,
            log,
        ),
        log,
    )


def stamped(stamp: Stamp, v: float) -> object:
    header = TYPES["std_msgs/Header"](0, TYPES["builtin_interfaces/Time"](*stamp), "")
    return TYPES["geometry_msgs/TwistStamped"](header, twist(v))


@given(
    age_us=st.integers(-3_000_000, 5_000_000),
    timeout_us=st.integers(0, 2_000_000),
    now_us=st.integers(6_000_000, 10**13),
)
@example(age_us=600_000, timeout_us=600_000, now_us=6_000_000)
@example(age_us=600_001, timeout_us=600_000, now_us=6_000_000)
def test_velocities_older_than_the_timeout_are_refused(
    age_us: int, timeout_us: int, now_us: int
) -> None:
    """For stamps of either clock.

    Stamp 0 means now; the newest command of both types counts.
    """
    one, d, log = driver(timeout_us / 1e6, now_us)
    d.twist(twist(0.2))
    for _ in range(2):
        d.stamped(stamped(Stamp.of_us(now_us - age_us), 0.3))
    is_old = 0 < timeout_us < age_us
    assert (d.refused, len(log)) == ((2, 1) if is_old else (0, 0)), (
        "each is counted, and the first logged"
    )
    one.simulation.step()
    assert d.is_active
    one.simulation.step(40)
    assert one.velocity.vx == pytest.approx(0.2 if is_old else 0.3)
    d.stamped(stamped(Stamp(0, 0), 0.1))
    one.simulation.step(40)
    assert one.velocity.vx == pytest.approx(0.1)


def test_a_robot_stops_when_commands_end() -> None:
    one, d, _ = driver()
    d.twist(twist(0.3))
    assert one.clients == ("ros",)
    for _ in range(6):
        one.simulation.step()
        d.tick()

    assert one.velocity.vx > 0.1 and d.is_active
    for _ in range(30):
        one.simulation.step()
        d.tick()

    assert one.velocity.vx == pytest.approx(0.0, abs=1e-9)
    assert one.clients == () and not d.is_active


def test_without_a_timeout_it_drives_on() -> None:
    one, d, _ = driver(0.0)
    d.twist(twist(0.3))
    for _ in range(50):
        one.simulation.step()
        d.tick()

    assert one.velocity.vx > 0.25
    d.end()
    one.simulation.step(20)
    assert one.velocity.vx == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nonsense_is_not_driven(bad: float) -> None:
    one, d, log = driver()
    d.twist(twist(bad))
    one.simulation.step(3)
    assert one.velocity.vx == 0.0 and "finite values" in log[0]


def test_motors_off_are_told_once() -> None:
    one, d, log = driver()
    d.enable(False)
    one.simulation.step()
    for _ in range(3):
        d.twist(twist(0.3))
    one.simulation.step()
    assert len(log) == 1 and "motors are off" in log[0]
    d.enable(True)
    one.simulation.step()
    d.twist(twist(0.3))
    one.simulation.step(3)
    assert one.velocity.vx > 0.0


def test_with_ros_1_alone_the_types_of_ros_2_are_not_read() -> None:
    """Reading takes half a second and would block the step at the first subscriber of a
    pose.
    """
    own = Types()
    sim = Simulation()
    robot = sim.add_robot("p3dx", "ann")
    topics = RobotTopics(
        robot.port("ros"),
        names_of("ann", "default", True),
        Messages(own),
        own,
        StepData(),
    )
    for topic in topics.topics():
        if topic.only in ("", "ros1") and topic.quick is not None:
            topic.wanted(True)

    sim.step()
    quick = [t for t in topics.topics() if t.quick is not None]
    assert len(quick) >= 3
    for topic in quick:
        assert topic.quick is not None
        topic.quick("ros1", Stamp(1, 2))

    assert own._two is None


def test_gps_is_a_fix_of_navsat() -> None:
    """Field by field (sensor_msgs/NavSatFix).

    Without a georeference there is no message, in other profiles no topic and no frame.
    """
    one, topics = robot()
    fix = one.gps
    (topic,) = [t for t in topics.topics() if t.type_name == "sensor_msgs/NavSatFix"]
    assert (topic.name, topic.about, topic.period) == (
        "/ann/fix",
        "GPS fix, in georeferenced maps",
        1.0,
    )
    made = topics._m
    status = made._types("sensor_msgs/NavSatStatus")(0, 1)
    spread = np.diag([fix.dop**2] * 3).reshape(-1)
    expected = made._types("sensor_msgs/NavSatFix")(
        made.header(STAMP, "ann/gps"),
        status,
        fix.latitude,
        fix.longitude,
        fix.altitude,
        spread,
        1,
    )
    for wire in ("ros1", "cdr"):
        encode = getattr(TYPES, f"encode_{wire}")
        mine, theirs = (
            encode(m, topic.type_name) for m in (topic.make(STAMP), expected)
        )
        assert mine[4:] == theirs[4:], "but for the number of the message"

    assert [f.child for f in topics.static_transforms()].count("ann/gps") == 1
    one.simulation.replace_scene(Scene())
    assert topic.make(STAMP) is None
    for profile in ("amrisim", "stage", "rosaria"):
        _, others = robot(profile)
        assert "sensor_msgs/NavSatFix" not in {t.type_name for t in others.topics()}
        assert not [f for f in others.static_transforms() if "gps" in f.child]
