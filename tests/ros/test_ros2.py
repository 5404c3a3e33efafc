"""ROS 2 over DDS against independent peers."""

from __future__ import annotations

import json
import math
import re
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from botyard.protocols.ros_messages.types import types
from tests.ros.ros1 import PEER, output
from tests.ros.ros2 import HERE, STORE, Ros2World
from tests.waiting import wait

pytestmark = pytest.mark.xdist_group("ros2")
ODOMETRY, SCAN, CLOUD2 = (
    "nav_msgs/msg/Odometry",
    "sensor_msgs/msg/LaserScan",
    "sensor_msgs/msg/PointCloud2",
)
TF, MAP, CLOCK, BOOL = (
    "tf2_msgs/msg/TFMessage",
    "nav_msgs/msg/OccupancyGrid",
    "rosgraph_msgs/msg/Clock",
    "std_msgs/msg/Bool",
)
LOG = "rcl_interfaces/msg/Log"
GRAPH = "rmw_dds_common/msg/ParticipantEntitiesInfo"
ALL = {
    "/ann/odom": (ODOMETRY, "rv40"),
    "/ann/base_scan": (SCAN, "bv40"),
    "/ann/sonar_pointcloud2": (CLOUD2, "bv1"),
    "/tf": (TF, "rv40"),
    "/tf_static": (TF, "rt1"),
    "/map": (MAP, "rt1"),
    "/clock": (CLOCK, "bv40"),
    "/ann/motors_state": (BOOL, "rt1"),
}


def twist(v: float, w: float) -> bytes:
    """Return the CDR of geometry_msgs/msg/Twist, written by hand."""
    return b"\0\1\0\0" + struct.pack("<6d", v, 0, 0, 0, 0, w)


def test_fast_dds_reads_and_drives(world2: Ros2World) -> None:
    """ROS 2's default middleware gets every kind of topic, knows types by their hashes,
    and drives a robot.
    """
    world2.botyard("-m", "office", "-r", "p3dx:ann", "-r", "p3dx:bob", "--ros2")
    got, text = world2.fast(
        6,
        {**ALL, "ros_discovery_info": (GRAPH, "rt1")},
        {"/ann/cmd_vel": ("geometry_msgs/msg/Twist", twist(0.1, 0.5))},
    )
    assert set(ALL) <= set(got), text[-2000:]
    for topic in ("/ann/odom", "/ann/base_scan", "/tf", "/clock"):
        assert got[topic][0] >= 40, (topic, got[topic][0])
    odometry = got.last("/ann/odom", ODOMETRY)
    assert odometry.header.frame_id == "ann/odom"
    assert odometry.child_frame_id == "ann/base_link"
    assert odometry.twist.twist.angular.z == pytest.approx(0.5, abs=0.05)
    assert odometry.twist.twist.linear.x == pytest.approx(0.1, abs=0.02)
    scan = got.last("/ann/base_scan", SCAN)
    assert len(scan.ranges) == 181
    assert len(scan.intensities) == 181
    assert scan.angle_max - scan.angle_min == pytest.approx(math.pi, abs=1e-3)
    assert got.last("/ann/motors_state", BOOL).data
    grid = got.last("/map", MAP)
    assert len(grid.data) == grid.info.width * grid.info.height > 10_000
    parts = ("base_link", "left_wheel", "right_wheel")
    assert {t.child_frame_id for t in got.last("/tf", TF).transforms} == {
        f"{n}/{p}" for n in ("ann", "bob") for p in parts
    }
    assert "ann/base_laser" in {
        t.child_frame_id for t in got.last("/tf_static", TF).transforms
    }
    users = dict(re.findall(r"WRITER (rt/\S+) \S+ (\S+)", text))
    assert users["rt/ann/odom"] == f"typehash={STORE.hash_rihs01(ODOMETRY)};"
    assert users["rt/map"] == f"typehash={STORE.hash_rihs01(MAP)};"
    graph = got.last("ros_discovery_info", GRAPH)
    assert [n.node_name for n in graph.node_entities_info_seq] == ["botyard"]


def test_what_rviz_needs(world2: Ros2World) -> None:
    """A description of the robot for late readers, transforms of all of its links, and
    the pose that a user clicks.
    """
    world2.botyard(
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "--ros2",
        "--ros-names",
        "nav2",
        "--localization",
        "truth",
    )
    located = "geometry_msgs/msg/PoseWithCovarianceStamped"
    pose = types().filled(located, {})
    pose.header.frame_id = "map"
    (
        pose.pose.pose.position.x,
        pose.pose.pose.position.y,
        pose.pose.pose.orientation.w,
    ) = 3.5, 4.5, 1.0
    topics = {
        "/robot_description": ("std_msgs/msg/String", "rt1"),
        "/joint_states": ("sensor_msgs/msg/JointState", "bv10"),
        "/tf": (TF, "rv40"),
        "/tf_static": (TF, "rt1"),
        "/map": (MAP, "rt1"),
        "/amcl_pose": (located, "rt1"),
    }
    got, text = world2.fast(
        6, topics, {"/initialpose": (located, types().encode_cdr(pose, located))}
    )
    assert set(got) == set(topics), text[-2000:]
    robot = ElementTree.fromstring(
        got.last("/robot_description", "std_msgs/msg/String").data
    )
    links = {link.attrib["name"] for link in robot.iter("link")}
    sent = {
        t.child_frame_id
        for topic in ("/tf", "/tf_static")
        for t in got.last(topic, TF).transforms
    }
    assert links <= sent and {"odom", "base_link", "base_scan", "left_wheel"} <= sent
    moving = {
        joint.attrib["name"]
        for joint in robot.iter("joint")
        if joint.attrib["type"] != "fixed"
    }
    assert set(got.last("/joint_states", "sensor_msgs/msg/JointState").name) == moving
    believed = got.last("/amcl_pose", located).pose.pose.position
    assert (believed.x, believed.y) == pytest.approx((3.5, 4.5))


def test_typescript_rtps_reads(world2: Ros2World) -> None:
    """A third implementation of RTPS, which requires every policy to be explicit."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    wanted = {
        k: ALL[k]
        for k in ("/ann/odom", "/ann/base_scan", "/tf", "/tf_static", "/clock")
    }
    got, text = world2.fox(7, wanted)
    assert set(got) == set(wanted), text[-2000:]
    assert got["/ann/odom"][0] >= 40
    assert got.last("/ann/odom", ODOMETRY).header.frame_id == "ann/odom"
    assert "TOPIC /ann/battery_state" in text


def test_services_of_rmw_fastrtps(world2: Ros2World, fastdds_client: Path) -> None:
    """Its clients are answered while a client of rmw_cyclonedds calls another service."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    fast = world2.spawn(str(fastdds_client), "call", "60", "20", "/botyard/resume")
    assert (
        world2.cyclone("call", "/botyard/resume", "std_srvs/Trigger", [], 20)
        == [{"success": True, "message": ""}] * 20
    )
    wait(lambda: fast.poll() is not None)
    assert "ANSWERED 20 OTHERS 0" in output(fast)


def test_parameters_and_an_action_of_rmw_fastrtps(
    world2: Ros2World, fastdds_client: Path
) -> None:
    """Includes an answer that comes at the end of the goal, much later than the next
    request.
    """
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")

    def call(name: str, kind: str, **fields: Any) -> Any:
        package, sort, short = kind.split("/")
        request = types().encode_cdr(
            types().filled(f"{kind}_Request", fields), f"{kind}_Request"
        )
        text = world2.run(
            str(fastdds_client),
            "call",
            "60",
            "1",
            name,
            f"{package}::{sort}::dds_::{short}",
            request.hex(),
        )
        assert "ANSWERED 1 OTHERS 0" in text, text
        return types().decode_cdr(
            bytes.fromhex(text.partition("LAST ")[2]), f"{kind}_Response"
        )

    names = ["ann.trans_accel", "nobody.trans_accel"]
    limit, none = call(
        "/botyard/get_parameters", "rcl_interfaces/srv/GetParameters", names=names
    ).values
    assert (limit.type, limit.double_value) == (3, pytest.approx(0.3))
    assert none.type == 0
    assert (
        "ann.trans_accel"
        in call(
            "/botyard/list_parameters", "rcl_interfaces/srv/ListParameters"
        ).result.names
    )
    for service in ("set_parameters", "set_parameters_atomically"):
        for wanted, is_good in (
            (0.45 if service == "set_parameters" else 0.35, True),
            (-1.0, False),
        ):
            value = types().filled(
                "rcl_interfaces/msg/ParameterValue", {"type": 3, "double_value": wanted}
            )
            one = types().filled(
                "rcl_interfaces/msg/Parameter",
                {"name": "ann.trans_accel", "value": value},
            )
            kind = (
                "SetParametersAtomically"
                if service.endswith("atomically")
                else "SetParameters"
            )
            answer = call(
                f"/botyard/{service}", f"rcl_interfaces/srv/{kind}", parameters=[one]
            )
            (result,) = answer.results if kind == "SetParameters" else (answer.result,)
            assert (result.successful, bool(result.reason)) == (is_good, not is_good)
            if is_good:
                (limit,) = call(
                    "/botyard/get_parameters",
                    "rcl_interfaces/srv/GetParameters",
                    names=names[:1],
                ).values
                assert limit.double_value == pytest.approx(wanted)

    (about,) = call(
        "/botyard/describe_parameters",
        "rcl_interfaces/srv/DescribeParameters",
        names=names[:1],
    ).descriptors
    assert (about.type, about.name) == (
        3,
        "ann.trans_accel",
    ) and "m/s" in about.description
    call("/botyard/pause", "std_srvs/srv/Trigger")
    action, prefix = (
        "simulation_interfaces/action/SimulateSteps",
        "/botyard/simulate_steps/_action",
    )
    uuid = types().filled(
        "unique_identifier_msgs/msg/UUID", {"uuid": np.arange(16, dtype=np.uint8)}
    )
    goal = types().filled(f"{action}_Goal", {"steps": 200})
    assert call(
        f"{prefix}/send_goal", f"{action}_SendGoal", goal_id=uuid, goal=goal
    ).accepted
    result = call(f"{prefix}/get_result", f"{action}_GetResult", goal_id=uuid)
    assert (result.status, result.result.result.result) == (4, 1)
    got, _ = world2.fast(
        1, {f"{prefix}/status": ("action_msgs/msg/GoalStatusArray", "rt1")}, {}
    )
    (status,) = got.last(
        f"{prefix}/status", "action_msgs/msg/GoalStatusArray"
    ).status_list
    assert status.status == 4
    assert bytes(status.goal_info.goal_id.uuid) == bytes(range(16))


@pytest.mark.parametrize("distro", ["humble", "kilted", "lyrical"])
def test_distributions(world2: Ros2World, fastdds_client: Path, distro: str) -> None:
    """Topics, services, and nodes with identifiers in the length of the distribution."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2", "--ros-distro", distro)
    got, text = world2.fast(
        3, {"/ann/odom": (ODOMETRY, "rv10"), "ros_discovery_info": (GRAPH, "rt1")}, {}
    )
    assert got["/ann/odom"][0] >= 10, text[-2000:]
    store = get_typestore(
        {"humble": Stores.ROS2_HUMBLE}.get(distro, Stores.ROS2_KILTED)
    )
    graph = store.deserialize_cdr(bytes.fromhex(got["ros_discovery_info"][1]), GRAPH)
    assert len(graph.gid.data) == (24 if distro == "humble" else 16)
    (node,) = graph.node_entities_info_seq
    assert node.node_name == "botyard"
    assert ("typehash=" in text) == (distro != "humble")
    fast = world2.spawn(str(fastdds_client), "call", "60", "3", "/botyard/resume")
    wait(lambda: fast.poll() is not None)
    assert "ANSWERED 3 OTHERS 0" in output(fast)


def test_log_lines_are_kept_for_late_readers(world2: Ros2World) -> None:
    """An unsupported setting is a warning, and /rosout is transient local."""
    world2.botyard(
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "--ros2",
        ROS_DISCOVERY_SERVER="10.0.0.1:11811",
    )
    got, text = world2.fast(3, {"/rosout": (LOG, "rt1")}, {})
    assert "/rosout" in got, text[-2000:]
    line = got.last("/rosout", LOG)
    assert line.msg.startswith("ROS 2: ROS_DISCOVERY_SERVER names a discovery server")
    assert (line.level, line.name) == (30, "botyard")


def test_services_of_rmw_cyclonedds(world2: Ros2World) -> None:
    """Its clients are answered in order; requests without a client and malformed ones
    do no harm.
    """
    sim = world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    answers = world2.cyclone("call", "/botyard/pause", "std_srvs/Trigger", [])
    assert answers == [{"success": True, "message": ""}]
    assert len(set(world2.cyclone("clock", 1.0))) <= 1, "time stands still"
    assert (
        world2.cyclone("call", "/botyard/resume", "std_srvs/Trigger", [], 50)
        == [{"success": True, "message": ""}] * 50
    )
    times = world2.cyclone("clock", 1.0)
    assert times[-1] > times[0]
    (answer,) = world2.cyclone(
        "call",
        "/botyard/add_robot",
        "botyard_msgs/AddRobot",
        ["p3dx", "cid", False, [12.0, 14.0, 1.0]],
    )
    assert answer == {"success": True, "message": "", "name": "cid"}
    (answer,) = world2.cyclone(
        "call",
        "/botyard/add_robot",
        "botyard_msgs/AddRobot",
        ["p3xd", "dan", True, [0.0, 0.0, 0.0]],
    )
    assert not answer["success"]
    assert "p3xd" in answer["message"]
    got, _ = world2.fast(3, {"/cid/odom": (ODOMETRY, "rv11")}, {})
    assert got["/cid/odom"][0] > 10
    (answer,) = world2.cyclone(
        "call",
        "/botyard/get_parameters",
        "rcl_interfaces/GetParameters",
        [["ann.trans_accel", "use_sim_time"]],
    )
    limit, sim_time = answer["values"]
    assert (limit["type"], limit["double_value"]) == (3, pytest.approx(0.3))
    assert (sim_time["type"], sim_time["bool_value"]) == (1, True)
    bare = {
        "rq/ann/enable_motorsRequest": (
            "std_srvs/srv/Empty_Request",
            bytes.fromhex("0001000000"),
        )
    }
    rubbish = {
        "/ann/cmd_vel": ("geometry_msgs/msg/Twist", bytes.fromhex("00010000ffff"))
    }
    world2.fast(3, {}, bare | rubbish)
    wait(
        lambda: (
            "/ann/enable_motors: a request without the identity of a client"
            in output(sim)
        )
    )
    wait(lambda: "expected a message of type geometry_msgs/Twist" in output(sim))
    assert len(world2.cyclone("call", "/ann/enable_motors", "std_srvs/Empty", [])) == 1
    assert "internal error" not in output(sim)


def test_worlds_and_an_action_of_simulation_interfaces(world2: Ros2World) -> None:
    """A world is loaded and stopped.

    Steps are made with feedback until they are canceled.
    """
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    load = ("call", "/botyard/load_world", "simulation_interfaces/LoadWorld")
    (lost,) = world2.cyclone(*load, ["botyard://lost", "", False, False])
    assert lost["result"]["result"] == 2 and "lost" in lost["result"]["error_message"]
    (loaded,) = world2.cyclone(*load, ["botyard://warehouse", "", False, False])
    assert loaded["result"]["result"] == 1 and loaded["world"]["world_resource"][
        "uri"
    ].startswith("botyard://warehouse")
    seen = world2.cyclone("simulate", 30, 0)
    assert (seen["accepted"], seen["status"], seen["code"]) == (True, 4, 1)
    done = seen["done"]
    assert done[:8] == list(range(1, 9)) and done[-1] == 30 and done == sorted(done)
    assert seen["states"][-1] == 4
    seen = world2.cyclone("simulate", 10**6, 5)
    assert (seen["canceled"], seen["status"], seen["states"][-1]) == (0, 5, 5)
    assert seen["done"][:5] == sorted(seen["done"][:5]) and len(seen["done"]) < 10**6


def test_latched_messages_reach_cyclone_beside_a_volatile_reader(
    world2: Ros2World,
) -> None:
    """Both readers are in one process, created at the same time."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    assert world2.cyclone("read_both", "/ann/robot_description", 3) == [1] * 3


def test_the_graph_follows_robots(world2: Ros2World) -> None:
    """Every writer that ros_discovery_info names exists; names of a profile; a stamped
    velocity.
    """
    world2.botyard(
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "-r",
        "p3dx:bob",
        "--ros2",
        "--ros-names",
        "amrisim",
        ROS_DOMAIN_ID="7",
    )
    assert world2.cyclone("graph", "/AMRISim_ann", 3.0) == {}, "another domain"
    world2.env["ROS_DOMAIN_ID"] = "7"
    nodes = world2.cyclone("graph", "/AMRISim_ann")
    assert {"/botyard", "/AMRISim_ann", "/AMRISim_bob"} == set(nodes)
    for name, (readers, writers, there) in nodes.items():
        assert there == writers, (name, readers, writers, there)


def test_a_hundred_robots_come_and_go(world2: Ros2World) -> None:
    """A hundred robots appear, are seen and disappear; the simulator goes on."""
    sim = world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    before = world2.cyclone("graph", "/botyard")["/botyard"]
    for k in range(10):
        answers = world2.cyclone(
            "call",
            "/botyard/add_robot",
            "botyard_msgs/AddRobot",
            ["p3dx", "", True, [0.0, 0.0, 0.0]],
            10,
        )
        assert [a["success"] for a in answers] == [True] * 10, (k, answers, output(sim))

    nodes = world2.cyclone("graph", "/botyard")
    _, writers, there = nodes["/botyard"]
    assert there == writers >= before[1] + 100 * 10, (
        "each robot has more than ten topics"
    )
    got, _ = world2.fast(3, {"/ann/odom": (ODOMETRY, "rv11")}, {})
    assert got["/ann/odom"][0] > 10
    assert "internal error" not in output(sim)


def test_two_robots_by_ros2_and_one_by_stamped_twists(world2: Ros2World) -> None:
    """Plain velocities drive one robot, stamped ones another; both stop when their
    publisher falls silent.
    """
    world2.botyard("-m", "office", "-r", "p3dx:ann", "-r", "p3dx:bob", "--ros2")
    world2.cyclone_later("drive", "/ann/cmd_vel", 0.0, 0.4, 8.0)
    world2.cyclone_later("drive", "/bob/cmd_vel", 0.0, -0.4, 8.0, True)
    topics = {"/ann/odom": (ODOMETRY, "rv"), "/bob/odom": (ODOMETRY, "rv")}
    got, _ = world2.fast(5, topics, {})
    assert got.last("/ann/odom", ODOMETRY).twist.twist.angular.z == pytest.approx(
        0.4, abs=0.05
    )
    assert got.last("/bob/odom", ODOMETRY).twist.twist.angular.z == pytest.approx(
        -0.4, abs=0.05
    )
    got, _ = world2.fast(7, topics, {})
    assert got.last("/ann/odom", ODOMETRY).twist.twist.angular.z == 0.0
    assert got.last("/bob/odom", ODOMETRY).twist.twist.angular.z == 0.0


def test_a_reader_that_stops_reading(world2: Ros2World) -> None:
    """A reliable reader whose process is stopped delays no other client."""
    world2.botyard("-m", "office", "-r", "p3dx:ann", "--ros2")
    stuck = world2.spawn(
        str(world2.fastdds_peer),
        "60",
        "sub",
        "rt/ann/base_scan",
        "sensor_msgs::msg::dds_::LaserScan_",
        "rv",
    )
    wait(lambda: "WRITER rt/ann/base_scan" in output(stuck))
    # Wait until reader and writer are matched and messages flow.
    time.sleep(1.0)
    stuck.send_signal(signal.SIGSTOP)
    got, _ = world2.fast(
        8, {"/ann/base_scan": (SCAN, "rv61"), "/clock": (CLOCK, "rv61")}, {}
    )
    assert got["/ann/base_scan"][0] > 60
    assert got["/clock"][0] > 60
    stuck.send_signal(signal.SIGCONT)
    stuck.terminate()


PIONEER = """
import time
from botyard.clients.pioneer import PioneerClient
with PioneerClient("127.0.0.1", 8103) as robot:
    robot.enable()
    end = time.monotonic() + 12
    while time.monotonic() < end and robot.update():
        robot.rvel(17)
"""


def test_rospy_ros2_and_a_pioneer_client_drive_three_robots_at_once(
    world2: Ros2World, debian_ros: None
) -> None:
    """Clients of all kinds in one world, each with its robot."""
    sim = world2.botyard(
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "-r",
        "p3dx:bob",
        "-r",
        "p3dx:cid",
        "--ros2",
        "--ros-master",
        "embedded",
        "-p",
        "8101",
    )
    ros1 = {
        "PATH": "/usr/bin:/bin",
        "ROS_MASTER_URI": "http://127.0.0.1:11311",
        "ROS_IP": "127.0.0.1",
        "ROS_HOME": str(world2.folder),
    }
    world2.spawn(
        "/usr/bin/python3",
        str(PEER),
        "drive",
        json.dumps(["/ann/cmd_vel", 0.0, 0.5, 12]),
        **ros1,
    )
    world2.cyclone_later("drive", "/bob/cmd_vel", 0.0, -0.4, 12.0)
    world2.spawn(sys.executable, "-c", PIONEER)
    turns = {"ann": 0.5, "bob": -0.4, "cid": math.radians(17)}
    got, _ = world2.fast(6, {f"/{name}/odom": (ODOMETRY, "rv") for name in turns}, {})
    for name, turn in turns.items():
        assert got.last(
            f"/{name}/odom", ODOMETRY
        ).twist.twist.angular.z == pytest.approx(turn, abs=0.05), name

    assert "at the same time" not in output(sim), "no two of them command one robot"


def room_as_map() -> str:
    """Return the CDR of a map in hexadecimal: a room of 4 m × 3 m around the origin."""
    t = types()
    grid = t.filled("nav_msgs/msg/OccupancyGrid", {})
    grid.info.width, grid.info.height, grid.info.resolution = 80, 60, 0.05
    (
        grid.info.origin.position.x,
        grid.info.origin.position.y,
        grid.info.origin.orientation.w,
    ) = -2.0, -1.5, 1.0
    cells = np.zeros((60, 80), np.int8)
    cells[[0, -1], :] = cells[:, [0, -1]] = 100
    grid.data = cells.reshape(-1)
    return t.encode_cdr(grid, "nav_msgs/OccupancyGrid").hex()


@pytest.mark.parametrize("by", ["topic", "service"])
def test_a_map_comes_from_a_map_server(world2: Ros2World, by: str) -> None:
    """``-m ros:/map``: a latched map of Fast DDS, ROS 2's default middleware.

    ``-m ros:/map_server/map``: from its service.
    """
    data = room_as_map()
    if by == "service":
        arguments = json.dumps([60.0, "/map_server/map", data])
        world2.spawn(sys.executable, str(HERE / "rtps_node.py"), "give_map", arguments)
        world2.botyard(
            "-m", "ros:/map_server/map", "-r", "p3dx:ann", "--start", "0,0,0", "--ros2"
        )
        got, _ = world2.fast(6, {"/ann/base_scan": (SCAN, "rv1")}, {})
        assert got.last("/ann/base_scan", SCAN).ranges[0] == pytest.approx(
            1.45, abs=0.02
        )
        return

    world2.spawn(
        str(world2.fastdds_peer),
        "60",
        "latch",
        "rt/map",
        "nav_msgs::msg::dds_::OccupancyGrid_",
        data,
    )
    world2.botyard("-m", "ros:/map", "-r", "p3dx:ann", "--start", "0,0,0", "--ros2")
    got, _ = world2.fast(6, {"/ann/base_scan": (SCAN, "rv1")}, {})
    scan = got.last("/ann/base_scan", SCAN)
    assert scan.ranges[0] == pytest.approx(1.45, abs=0.02)
    assert scan.ranges[180] == pytest.approx(1.45, abs=0.02)
