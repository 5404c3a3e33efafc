"""ROS 1 against real peers: Debian's master, tools, rospy, rosbag, tf2,
dynamic_reconfigure.
"""

from __future__ import annotations

import math
import os
import socket
import struct
import subprocess
import sys
import xmlrpc.client
from pathlib import Path

import pytest
from rosbags.highlevel import AnyReader

import botyard
from botyard.clients.pioneer import PioneerClient
from botyard.control import SendRobots, SetPoseEstimate
from botyard.geometry import Pose
from botyard.protocols.ros_messages.types import types
from botyard.protocols.tcpros import wire
from tests.recording.proving import prove
from tests.ros.ros1 import Ros1World, output, read, stop
from tests.waiting import PATIENCE, Stalls, wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("ros1")]
TWO = ("-m", "office", "-r", "p3dx-equipped:ann", "-r", "amigo:bob", "--ros1")


def test_tools_see_topics_services_and_the_node(world: Ros1World) -> None:
    world.master()
    world.botyard(*TWO)
    wait(
        lambda: (
            "/bob/pose" in world.known()[0]
            and "/bob/set_parameters" in world.known()[2]
        )
    )
    listed = world.tool("rostopic", "list", "-v")
    for line in (
        "* /ann/pose [nav_msgs/Odometry] 1 publisher",
        "* /ann/base_scan [sensor_msgs/LaserScan] 1 publisher",
        "* /ann/bumper_state [rosaria/BumperState] 1 publisher",
        "* /tf [tf2_msgs/TFMessage] 1 publisher",
        "* /clock [rosgraph_msgs/Clock] 1 publisher",
        "* /map [nav_msgs/OccupancyGrid] 1 publisher",
        "* /ann/cmd_vel [geometry_msgs/Twist] 1 subscriber",
        "* /bob/sonar [sensor_msgs/PointCloud] 1 publisher",
    ):
        assert line in listed, line

    assert "/bob/base_scan" not in listed, "the amigo has no laser"
    assert world.tool("rostopic", "type", "/ann/pose").strip() == "nav_msgs/Odometry"
    assert "xmlrpc reply from" in world.tool("rosnode", "ping", "-c", "2", "/botyard")
    info = world.tool("rosnode", "info", "/botyard")
    assert (
        " * /ann/base_pose_ground_truth [nav_msgs/Odometry]" in info and "Pid:" in info
    )
    services = world.tool("rosservice", "list").split()
    assert {
        "/ann/enable_motors",
        "/botyard/pause",
        "/reset_positions",
        "/static_map",
    } <= set(services)
    assert (
        world.tool("rosservice", "type", "/ann/enable_motors").strip()
        == "std_srvs/Empty"
    )
    assert world.tool("rosparam", "get", "/use_sim_time").strip() == "true"
    assert "linear" in world.tool("rostopic", "echo", "-n", "1", "/ann/odom")
    rate = world.spawn("/usr/bin/rostopic", "hz", "-w", "10", "/ann/base_scan")
    wait(lambda: "average rate" in output(rate))
    stop(rate)


def test_a_program_of_ros_gets_goals_and_estimates_of_the_page(
    world: Ros1World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the names of RViz, by Debian's rostopic."""
    world.master()
    monkeypatch.setenv("ROS_MASTER_URI", world.uri)
    monkeypatch.setenv("ROS_IP", "127.0.0.1")
    sim = botyard.Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "ann", pose=(10.0, 14.0, 0.0))
    for topic, operation, line in (
        (
            "/ann/move_base_simple/goal",
            SendRobots(robots=("ann",), goals=((12.0, 9.0),)),
            "x: 12.0",
        ),
        (
            "/ann/initialpose",
            SetPoseEstimate(robot="ann", pose=Pose(3.0, 4.5, 1.0)),
            "y: 4.5",
        ),
    ):
        with botyard.serve(sim, port=0, page=False, discovery=False, ros1=True) as run:
            wait(lambda t=topic: t in world.known()[0])
            echo = world.spawn("/usr/bin/rostopic", "echo", "-n", "1", topic)

            def arrived(operation=operation, echo=echo, line=line) -> bool:  # type: ignore[no-untyped-def]
                run.do(operation)
                return line in output(echo)

            wait(arrived)


def test_messages_say_what_is_so(world: Ros1World) -> None:
    world.master()
    world.botyard(*TWO, "--start", "4500,9500,90", "--sensor-noise", "none")
    topics = [
        ("/ann/pose", "nav_msgs/Odometry"),
        ("/ann/odom", "nav_msgs/Odometry"),
        ("/ann/base_pose_ground_truth", "nav_msgs/Odometry"),
        ("/ann/base_scan", "sensor_msgs/LaserScan"),
        ("/ann/sonar", "sensor_msgs/PointCloud"),
        ("/ann/sonar_pointcloud2", "sensor_msgs/PointCloud2"),
        ("/ann/motors_state", "std_msgs/Bool"),
        ("/ann/battery_voltage", "std_msgs/Float64"),
        ("/ann/battery_state_of_charge", "std_msgs/Float32"),
        ("/ann/battery_recharge_state", "std_msgs/Int8"),
        ("/ann/battery_state", "sensor_msgs/BatteryState"),
        ("/ann/fix", "sensor_msgs/NavSatFix"),
        ("/tf", "tf2_msgs/TFMessage"),
        ("/tf_static", "tf2_msgs/TFMessage"),
        ("/clock", "rosgraph_msgs/Clock"),
        ("/map", "nav_msgs/OccupancyGrid"),
        ("/diagnostics", "diagnostic_msgs/DiagnosticArray"),
    ]
    found = world.rospy(
        "listen", [(*t, 20 if t[0] == "/ann/pose" else 1) for t in topics], 3.0
    )
    assert set(found) == {name for name, _ in topics}
    first = {name: entry["first"] for name, entry in found.items()}
    assert found["/ann/pose"]["count"] >= 20
    assert {
        found[n]["count"]
        for n in (
            "/ann/motors_state",
            "/map",
            "/tf_static",
            "/ann/battery_recharge_state",
        )
    } == {1}, "latched"
    assert found["/map"]["latching"] == "1"
    odom = first["/ann/pose"]
    assert (odom["header"]["frame_id"], odom["child_frame_id"]) == (
        "ann/odom",
        "ann/base_link",
    )
    assert odom["pose"]["pose"]["orientation"] == {
        "x": 0.0,
        "y": 0.0,
        "z": 0.0,
        "w": 1.0,
    }
    assert odom["pose"]["covariance"][0] == 1e-3
    truth = first["/ann/base_pose_ground_truth"]
    assert truth["header"]["frame_id"] == "map"
    place = truth["pose"]["pose"]
    assert (place["position"]["x"], place["position"]["y"]) == pytest.approx((4.5, 9.5))
    assert 2 * math.atan2(
        place["orientation"]["z"], place["orientation"]["w"]
    ) == pytest.approx(math.pi / 2)
    scan = first["/ann/base_scan"]
    assert (len(scan["ranges"]), scan["header"]["frame_id"]) == (181, "ann/base_laser")
    assert scan["angle_increment"] == pytest.approx(math.pi / 180)
    mounted = next(
        t
        for t in first["/tf_static"]["transforms"]
        if t["child_frame_id"] == "ann/base_laser"
    )
    ahead = scan["ranges"][90] + mounted["transform"]["translation"]["x"]
    assert ahead == pytest.approx(13.0 - 9.5, abs=0.02), "the wall of the corridor"
    points = first["/ann/sonar"]["points"]
    assert points and all(math.hypot(p["x"], p["y"]) < 5.3 for p in points)
    assert first["/ann/sonar_pointcloud2"]["width"] == len(points)
    assert first["/ann/motors_state"]["data"] is True
    assert first["/ann/battery_state"]["percentage"] == pytest.approx(1.0, abs=0.01)
    assert first["/ann/fix"]["latitude"] == pytest.approx(48.1375, abs=0.001)
    grid = first["/map"]["info"]
    assert (grid["resolution"], grid["width"] * grid["resolution"]) == pytest.approx(
        (0.05, 40.0), abs=0.2
    )
    frames = {
        (t["header"]["frame_id"], t["child_frame_id"])
        for t in first["/tf"]["transforms"]
    }
    moved = [(f"{n}/odom", f"{n}/base_link") for n in ("ann", "bob")]
    rolled = [
        (f"{n}/base_link", f"{n}/{side}_wheel")
        for n in ("ann", "bob")
        for side in ("left", "right")
    ]
    gripped = [("ann/base_link", f"ann/{side}_paddle") for side in ("left", "right")]
    assert frames == {*moved, *rolled, *gripped}
    assert ("ann/base_link", "ann/base_laser") in {
        (t["header"]["frame_id"], t["child_frame_id"])
        for t in first["/tf_static"]["transforms"]
    }
    assert {s["name"] for s in first["/diagnostics"]["status"]} == {
        "simulator",
        "ann",
        "bob",
    }
    assert world.rospy("transform", "ann/odom", "ann/base_laser")["translation"][
        "x"
    ] == pytest.approx(mounted["transform"]["translation"]["x"], abs=0.02)
    stalls = Stalls()
    simulated, waited = world.rospy("sim_time", 2.0)
    still = stalls.end()
    assert simulated == pytest.approx(2.0, abs=0.4)
    assert 1.6 <= waited <= 2.4 + still, "simulated time goes as that of the wall does"


def test_robots_are_driven_and_stop_when_nothing_comes(world: Ros1World) -> None:
    world.master()
    world.botyard(*TWO)
    wait(lambda: "/bob/cmd_vel" in world.known()[1])
    assert world.rospy("drive", "/ann/cmd_vel", 0.4, 0.0, 3.0)
    world.rospy("sim_time", 1.5)
    first = world.rospy("listen", [["/ann/odom", "nav_msgs/Odometry"]], 0.5)[
        "/ann/odom"
    ]
    assert 0.5 < first["first"]["pose"]["pose"]["position"]["x"] < 1.6
    assert first["last"]["twist"]["twist"]["linear"]["x"] == pytest.approx(
        0.0, abs=1e-6
    ), "it stopped"
    assert world.rospy("drive", "/bob/cmd_vel_stamped", 0.2, 0.0, 1.5, True)
    bob = world.rospy("listen", [["/bob/odom", "nav_msgs/Odometry"]], 0.8)["/bob/odom"][
        "last"
    ]
    assert bob["pose"]["pose"]["position"]["x"] > 0.15
    world.rospy("call", "/ann/disable_motors", "std_srvs/Empty")
    assert (
        world.rospy("listen", [["/ann/motors_state", "std_msgs/Bool"]], 0.7)[
            "/ann/motors_state"
        ]["last"]["data"]
        is False
    )
    world.rospy("drive", "/ann/cmd_vel", 0.4, 0.0, 0.6)
    still = world.rospy("listen", [["/ann/odom", "nav_msgs/Odometry"]], 0.7)[
        "/ann/odom"
    ]["last"]
    assert still["pose"]["pose"]["position"]["x"] == pytest.approx(
        first["last"]["pose"]["pose"]["position"]["x"], abs=0.02
    )
    assert world.rospy("many_calls", "/ann/enable_motors", 200) == 200
    assert "/ann/cmd_vel" in world.known()[1]


def test_a_pioneer_client_and_ros_on_one_robot(world: Ros1World) -> None:
    world.master()
    simulator = world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1")
    driving = world.rospy_later("drive", "/ann/cmd_vel", 0.3, 0.0, 60.0)
    with PioneerClient("127.0.0.1", world.robots) as client:

        def both_command() -> bool:
            client.vel(100)
            client.update()
            return "ROS and pioneer command it at the same time" in output(simulator)

        wait(both_command)

    stop(driving)
    # The client has left. Topics continue (unlike in the original simulator, MobileSim), and ROS
    # may still drive.
    topics = [
        ["/ann/sonar", "sensor_msgs/PointCloud", 8],
        ["/ann/pose", "nav_msgs/Odometry", 8],
    ]
    found = world.rospy("listen", topics, 1.0)
    assert found["/ann/sonar"]["count"] >= 8 and found["/ann/pose"]["count"] >= 8


def test_rosbag_records_everything(world: Ros1World) -> None:
    world.master()
    world.botyard(*TWO)
    wait(lambda: "/bob/pose" in world.known()[0])
    bag = world.folder / "t.bag"
    record = world.spawn("/usr/bin/rosbag", "record", "-a", "-O", str(bag))
    # Wait for all topics, and then for three seconds of simulated time.
    wait(
        lambda: (
            {"/ann/pose", "/bob/odom", "/ann/base_scan", "/clock"} <= world.known()[1]
        )
    )
    world.rospy("sim_time", 3.0)
    stop(record)
    wait(bag.exists)
    info = world.tool("rosbag", "info", str(bag))
    assert "nav_msgs/Odometry" in info and "cd5e73d190d741a2f92e81eda573aca7" in info
    with AnyReader([bag]) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
        scan = next(
            reader.deserialize(raw, c.msgtype)
            for c, _, raw in reader.messages()
            if c.topic == "/ann/base_scan"
        )

    assert counts["/ann/pose"] > 15 and counts["/bob/odom"] > 15
    assert len(scan.ranges) == 181


def test_the_master_is_restarted(world: Ros1World) -> None:
    master = world.master()
    simulator = world.botyard(*TWO)
    wait(lambda: "/bob/pose" in world.known()[0])
    stop(master)
    wait(lambda: "lost the master" in output(simulator))
    world.master()
    wait(lambda: "/bob/pose" in world.known()[0] and "/ann/cmd_vel" in world.known()[1])
    assert world.ask("getParam", "/use_sim_time")[2] is True
    found = world.rospy(
        "listen",
        [["/ann/motors_state", "std_msgs/Bool"], ["/ann/pose", "nav_msgs/Odometry"]],
        1.0,
    )
    assert len(found) == 2
    assert world.rospy("drive", "/ann/cmd_vel", 0.3, 0.0, 1.0)
    assert (
        world.rospy("listen", [["/ann/odom", "nav_msgs/Odometry"]], 0.6)["/ann/odom"][
            "last"
        ]["pose"]["pose"]["position"]["x"]
        > 0.1
    )


def test_without_a_master_the_exit_status_says_so_or_it_is_waited_for(
    world: Ros1World,
) -> None:
    args = [
        sys.executable,
        "-m",
        "botyard",
        "-m",
        "office",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-p",
        str(world.robots),
    ]
    done = subprocess.run(
        [*args, "--ros-master", world.uri],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 235
    assert f"no ROS master: {world.uri} cannot be reached" in done.stderr
    world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1", "--ros-wait")
    world.master()
    wait(lambda: "/ann/pose" in world.known()[0])


def test_rosnode_kill_and_ctrl_c_leave_nothing_at_the_master(world: Ros1World) -> None:
    world.master()
    first = world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1")
    wait(lambda: "/ann/pose" in world.known()[0])
    world.tool("rosnode", "kill", "/botyard")
    wait(
        lambda: (
            world.known() == (set(), set(), set())
            or world.known()[0] <= {"/rosout_agg"}
        )
    )
    with PioneerClient("127.0.0.1", world.robots) as client:
        assert client.update(), "the simulator is still there"
    stop(first)
    second = world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1")
    wait(lambda: "/ann/pose" in world.known()[0])
    stop(second)
    assert not any(
        t.startswith(("/ann", "/botyard", "/tf"))
        for names in world.known()
        for t in names
    )


def test_wrong_types_are_refused_with_a_reason(world: Ros1World) -> None:
    world.master()
    simulator = world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1")
    wait(lambda: "/ann/enable_motors" in world.known()[2])
    assert world.rospy("listen", [["/ann/pose", "std_msgs/Bool", 0]], 1.0) == {}
    assert "md5sum" in world.rospy(
        "call", "/ann/enable_motors", "std_srvs/Trigger"
    ) or "md5" in output(simulator)
    later = world.rospy_later("talk", "/ann/cmd_vel", "go", 60.0)
    wait(lambda: "/ann/cmd_vel" in output(simulator))
    stop(later)
    assert world.rospy("drive", "/ann/cmd_vel", 0.2, 0.0, 0.5)


def test_dynamic_reconfigure(world: Ros1World) -> None:
    world.master()
    world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1")
    wait(lambda: "/ann/set_parameters" in world.known()[2])
    before, after, described = world.rospy(
        "reconfigure", "/ann", {"trans_accel": 1.5, "rot_decel": 2.5}
    )
    assert before["trans_accel"] == pytest.approx(0.3)
    assert (after["trans_accel"], after["rot_decel"], after["trans_decel"]) == (
        1.5,
        2.5,
        before["trans_decel"],
    )
    assert described == [
        "trans_accel",
        "trans_decel",
        "lat_accel",
        "lat_decel",
        "rot_accel",
        "rot_decel",
    ]


def test_services_of_the_world(world: Ros1World) -> None:
    world.master()
    world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1")
    wait(lambda: "/static_map" in world.known()[2])
    assert world.rospy("call", "/botyard/pause", "std_srvs/Trigger") == {
        "success": True,
        "message": "",
    }
    done = world.service(
        "/botyard/add_robot",
        "botyard_msgs/AddRobot",
        model="amigo",
        name="new",
        anywhere=False,
        pose=pose2d(9, 14, 1),
    )
    assert (done.success, done.name) == (True, "new")
    done = world.service(
        "/botyard/set_pose", "botyard_msgs/SetPose", name="ann", pose=pose2d(20, 14, 0)
    )
    assert done.success
    assert world.service("/botyard/step", "botyard_msgs/Step", steps=3).success
    wait(lambda: "/new/pose" in world.known()[0])
    found = world.rospy("listen", [["/ann/motors_state", "std_msgs/Bool"]], 0.5)
    assert found, "a latched topic says its last while time stands still"
    assert world.rospy("call", "/botyard/resume", "std_srvs/Trigger")["success"]
    truth = world.rospy(
        "listen",
        [[f"/{n}/base_pose_ground_truth", "nav_msgs/Odometry"] for n in ("ann", "new")],
        1.0,
    )
    assert truth["/ann/base_pose_ground_truth"]["last"]["pose"]["pose"]["position"][
        "x"
    ] == pytest.approx(20.0)
    assert truth["/new/base_pose_ground_truth"]["last"]["pose"]["pose"]["position"][
        "x"
    ] == pytest.approx(9.0)
    bad = world.service(
        "/botyard/add_robot",
        "botyard_msgs/AddRobot",
        model="/etc/x.toml",
        name="",
        anywhere=True,
        pose=pose2d(0, 0, 0),
    )
    assert (bad.success, "the name of a model" in bad.message) == (False, True)
    bad = world.service("/botyard/set_speed", "botyard_msgs/SetSpeed", factor=-1.0)
    assert not bad.success
    assert world.service(
        "/botyard/remove_robot", "botyard_msgs/RemoveRobot", name="new"
    ).success
    wait(lambda: "/new/pose" not in world.known()[0])
    assert world.service(
        "/botyard/load_map", "botyard_msgs/LoadMap", name="warehouse"
    ).success
    wait(
        lambda: (
            world.rospy("call", "/static_map", "nav_msgs/GetMap")["map"]["info"][
                "width"
            ]
            > 1000
        )
    )
    world.rospy("call", "/reset_positions", "std_srvs/Empty")
    back = world.rospy(
        "listen", [["/ann/base_pose_ground_truth", "nav_msgs/Odometry"]], 0.6
    )
    assert back["/ann/base_pose_ground_truth"]["last"]["pose"]["pose"]["position"][
        "x"
    ] == pytest.approx(4.5)


def pose2d(x: float, y: float, theta: float) -> object:
    return types()["geometry_msgs/Pose2D"](float(x), float(y), float(theta))


def test_a_hundred_robots_come_and_go(world: Ros1World) -> None:
    world.master()
    world.botyard("-m", "warehouse", "-r", "p3dx:r", "--ros1")
    wait(lambda: "/botyard/remove_robot" in world.known()[2])
    for i in range(100):
        x, y = 4.0 + i % 10 * 1.1, 5.5 + i // 10 * 0.05
        assert world.service(
            "/botyard/add_robot",
            "botyard_msgs/AddRobot",
            model="amigo",
            name=f"a{i}",
            anywhere=True,
            pose=pose2d(x, y, 0),
        ).success

    wait(lambda: sum(t.endswith("/pose") for t in world.known()[0]) == 101)
    found = world.rospy(
        "listen",
        [["/a99/odom", "nav_msgs/Odometry"], ["/tf", "tf2_msgs/TFMessage"]],
        1.5,
    )
    children = [t["child_frame_id"] for t in found["/tf"]["last"]["transforms"]]
    assert sum(name.endswith("/base_link") for name in children) == 101
    for i in range(100):
        assert world.service(
            "/botyard/remove_robot", "botyard_msgs/RemoveRobot", name=f"a{i}"
        ).success

    wait(lambda: sum(t.endswith("/pose") for t in world.known()[0]) == 1)


def test_a_subscriber_that_does_not_read_harms_nobody(world: Ros1World) -> None:
    world.master()
    simulator = world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1", "--fast")
    wait(lambda: "/ann/base_scan" in world.known()[0])
    with xmlrpc.client.ServerProxy(world.ask("lookupNode", "/botyard")[2]) as node:
        _, _, (_, host, port) = node.requestTopic(
            "/stuck", "/ann/base_scan", [["TCPROS"]]
        )

    text, md5 = types().definition("sensor_msgs/LaserScan")
    with socket.create_connection((host, port), timeout=PATIENCE) as stuck:
        stuck.sendall(
            wire.encode_header(
                {
                    "callerid": "/stuck",
                    "topic": "/ann/base_scan",
                    "type": "sensor_msgs/LaserScan",
                    "md5sum": md5,
                    "message_definition": text,
                }
            )
        )
        header = wire.decode_header(read(stuck, struct.unpack("<I", read(stuck, 4))[0]))
        assert header["topic"] == "/ann/base_scan"
        before = memory(simulator.pid)
        topics = [
            ["/ann/base_scan", "sensor_msgs/LaserScan", 1000],
            ["/clock", "rosgraph_msgs/Clock", 1000],
        ]
        found = world.rospy("listen", topics, 4.0)
        assert found["/clock"]["count"] >= 1000
        assert memory(simulator.pid) - before < 60
        # After the pause the slow subscriber gets complete messages: old ones are missing, none is
        # broken.
        for _ in range(50):
            scan = types().decode_ros1(
                read(stuck, struct.unpack("<I", read(stuck, 4))[0]),
                "sensor_msgs/LaserScan",
            )
            assert len(scan.ranges) == 181


def memory(pid: int) -> float:
    """Return the used memory, MB."""
    (line,) = [
        x
        for x in Path(f"/proc/{pid}/status").read_text().splitlines()
        if x.startswith("VmRSS")
    ]
    return int(line.split()[1]) / 1024


# -- names of other programs


@pytest.mark.parametrize(
    ("profile", "node", "topics", "frame"),
    [
        (
            "amrisim",
            "/AMRISim_ann",
            {"pose", "sonar", "sonar_pointcloud2", "motors_state"},
            "odom",
        ),
        (
            "stage",
            "/stageros",
            {"/odom", "/base_scan", "/base_pose_ground_truth", "/clock"},
            "odom",
        ),
        (
            "rosaria",
            "/RosAria",
            {
                "pose",
                "battery_voltage",
                "sonar",
                "sicklms200_1_laserscan",
                "motors_state",
            },
            "odom",
        ),
    ],
)
def test_names_of_other_programs(
    world: Ros1World, profile: str, node: str, topics: set[str], frame: str
) -> None:
    world.master()
    world.botyard("-m", "office", "-r", "p3dx:ann", "--ros1", "--ros-names", profile)
    wanted = {"/tf"} | {t if t.startswith("/") else f"{node}/{t}" for t in topics}
    wait(lambda: wanted <= world.known()[0])
    wait(
        lambda: (
            (f"{node}/cmd_vel" if profile != "stage" else "/cmd_vel")
            in world.known()[1]
        )
    )
    wait(
        lambda: (
            ("/reset_positions" if profile == "stage" else f"{node}/enable_motors")
            in world.known()[2]
        )
    )
    assert "/map" not in world.known()[0]
    odometry = "/odom" if profile == "stage" else f"{node}/pose"
    message = world.rospy("listen", [[odometry, "nav_msgs/Odometry"]], 3.0)[odometry]
    assert message["first"]["header"]["frame_id"] == frame
    assert message["first"]["child_frame_id"] == (
        "" if profile == "stage" else "base_link"
    )
    assert message["caller"] == node
    stamp = message["first"]["header"]["stamp"]
    assert (stamp < 1000) == (profile == "stage"), "simulated time, or that of the wall"


# -- our master


def test_the_embedded_master_serves_rospy_programs(world: Ros1World) -> None:
    world.botyard(
        "-m", "office", "-r", "p3dx:ann", "--ros-master", f"embedded:{world.port}"
    )
    wait(lambda: "/ann/pose" in world.known()[0])
    assert "* /ann/pose [nav_msgs/Odometry] 1 publisher" in world.tool(
        "rostopic", "list", "-v"
    )
    talker = world.rospy_later("talk", "/chatter", "hello", 60.0)
    topics = [
        ["/chatter", "std_msgs/String"],
        ["/ann/base_scan", "sensor_msgs/LaserScan", 11],
    ]
    found = world.rospy("listen", topics, 2.0)
    stop(talker)
    assert found["/chatter"]["last"]["data"] == "hello", (
        "two rospy programs find each other"
    )
    assert found["/ann/base_scan"]["count"] > 10
    assert "/botyard" in world.tool("rosnode", "list")
    assert "Publications" in world.tool("rosnode", "info", "/botyard")
    wait(lambda: "/chatter" not in world.known()[0])
    given = {"/t/a": 1, "/t/b/c": [1.5, "x"], "/t/d": True, "/t/e": {"f": -3}}
    result = world.rospy("params", given)
    assert result == {
        "got": given,
        "has": False,
        "default": 5,
        "names": ["/t/a", "/t/b/c", "/t/d", "/t/e/f"],
        "search": None,
    }
    assert world.rospy("drive", "/ann/cmd_vel", 0.3, 0.0, 1.0)
    before, after, _ = world.rospy("reconfigure", "/ann", {"trans_accel": 2.0})
    assert after["trans_accel"] == 2.0 != before["trans_accel"]
    assert world.rospy("transform", "ann/odom", "ann/base_link")["rotation"][
        "w"
    ] == pytest.approx(1.0, abs=0.2)


def test_the_rospy_example_drives(world: Ros1World) -> None:
    """examples/ros1/avoid.py as a user runs it; its recording re-simulates."""
    path = world.folder / "run.mcap"
    simulator = world.botyard(
        "-m",
        "office",
        "-r",
        "p3dx:ann",
        "--ros-master",
        f"embedded:{world.port}",
        "--record",
        str(path),
    )
    truth = [["/ann/base_pose_ground_truth", "nav_msgs/Odometry"]]
    before = world.rospy("listen", truth, 1.0)
    example = Path(__file__).resolve().parents[2] / "examples/ros1/avoid.py"
    said = world.tool("/usr/bin/python3", str(example), "8")
    assert "Traceback" not in said
    after = world.rospy("listen", truth, 1.0)
    start, end = (
        m["/ann/base_pose_ground_truth"]["last"]["pose"]["pose"]["position"]
        for m in (before, after)
    )
    assert math.dist((start["x"], start["y"]), (end["x"], end["y"])) > 0.5
    stop(simulator)
    prove(path, 20)


def test_a_map_comes_from_a_map_server(world: Ros1World) -> None:
    """``-m ros:/map`` (TODO-016):

    a room of 4 m × 3 m around the origin; /map remains the map_server's.
    """
    world.master()
    width, height = 80, 60
    cells = [
        100 if x in (0, width - 1) or y in (0, height - 1) else 0
        for y in range(height)
        for x in range(width)
    ]
    server = world.rospy_later("serve_map", cells, width, 0.05, -2.0, -1.5, 60.0)
    world.botyard("-m", "ros:/map", "-r", "p3dx:ann", "--start", "0,0,0", "--ros1")
    wait(lambda: "/ann/base_scan" in world.known()[0])
    scan = world.rospy("listen", [["/ann/base_scan", "sensor_msgs/LaserScan"]], 1.5)[
        "/ann/base_scan"
    ]["first"]
    assert scan["ranges"][0] == pytest.approx(1.45, abs=0.02), "the wall to the right"
    assert scan["ranges"][180] == pytest.approx(1.45, abs=0.02)
    publishers = dict(world.ask("getSystemState")[2][0])["/map"]
    assert publishers != [] and "/botyard" not in publishers
    assert "/static_map" not in world.known()[2]
    stop(server)


def test_a_map_that_does_not_come(world: Ros1World) -> None:
    process = world.spawn(
        sys.executable,
        "-m",
        "botyard",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-m",
        "ros:/map",
        "-p",
        str(world.robots),
        env={**os.environ},
    )
    assert process.wait(PATIENCE) == 255
    assert "expected --ros1 or --ros2" in output(process)
    env = {**os.environ, "ROS_MASTER_URI": world.uri}
    process = world.spawn(
        sys.executable,
        "-m",
        "botyard",
        "--noninteractive",
        "--no-crash-restart",
        "--no-gui",
        "-m",
        "ros:/map",
        "--ros1",
        env=env,
    )
    assert process.wait(PATIENCE) == 235
    assert "cannot be reached" in output(process)
