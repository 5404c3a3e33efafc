"""Nav2's bring-up around nav2_loopback_sim: a map_server, and a user of its names:
``rclpy_loopback.py WHAT JSON-ARGUMENTS``, as rclpy_peer.py.

Names, types, QoS and frames come from nav2_loopback_sim of
github.com/ros-navigation/navigation2: README.md (0537cb2) for parameters and topics,
nav2_loopback_sim/loopback_simulator.py (0006349) for the node, QoS and the service
/map_server/map, launch/loopback_simulation.launch.py (0f5945f) for the node's name.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, Twist, TwistStamped
from nav2_rclpy_peer import Buffer, compose, hits, moved, planar, seconds, set_pose
from nav_msgs.msg import OccupancyGrid, Odometry
from nav_msgs.srv import GetMap
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy_peer import Peer
from ros2_scenes import run
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan

NODE = "/loopback_simulator"
PARAMETERS = {
    "update_duration": float,
    "base_frame_id": str,
    "odom_frame_id": str,
    "map_frame_id": str,
    "scan_frame_id": str,
    "enable_stamped_cmd_vel": bool,
    "scan_publish_dur": float,
    "publish_map_odom_tf": bool,
    "publish_clock": bool,
    "scan_range_min": float,
    "scan_range_max": float,
    "scan_angle_min": float,
    "scan_angle_max": float,
    "scan_angle_increment": float,
    "scan_use_inf": bool,
}
"""The table of the README."""
FIELDS = {1: "bool_value", 3: "double_value", 4: "string_value"}
SENSOR = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
WIDTH, HEIGHT, CELL = 200, 120, 0.05


def room() -> OccupancyGrid:
    """Return a map of one room, 10 m × 6 m."""
    cells = np.zeros((HEIGHT, WIDTH), np.int8)
    cells[[0, -1]] = 100
    cells[:, [0, -1]] = 100
    grid = OccupancyGrid()
    grid.header.frame_id = "map"
    grid.info.width, grid.info.height, grid.info.resolution = WIDTH, HEIGHT, CELL
    grid.info.origin.orientation.w = 1.0
    grid.data = cells.ravel().tolist()
    return grid


def values(peer: Peer) -> dict[str, Any]:
    """Return the parameters of the simulator's node; try to change two."""
    client = AsyncParameterClient(peer.node, NODE)
    peer.wait(client.services_are_ready, "no parameters")
    names = list(peer.done(client.list_parameters()).result.names)
    found = {}
    for name, value in zip(
        names, peer.done(client.get_parameters(names)).values, strict=True
    ):
        found[name] = getattr(value, FIELDS[value.type])
    for name, kind in PARAMETERS.items():
        assert isinstance(found.get(name), kind), (name, found)
    changes = [
        Parameter("speed_factor", value=2.0),
        Parameter("odom_frame_id", value="a"),
    ]
    results = peer.done(client.set_parameters(changes)).results
    assert [r.successful for r in results] == [True, False], results
    (value,) = peer.done(client.get_parameters(["speed_factor"])).values
    assert value.double_value == 2.0
    peer.done(client.set_parameters([Parameter("speed_factor", value=1.0)]))
    return found


def bringup(is_stamped: bool) -> dict[str, Any]:
    """Serve the map, place the robot, drive it, and place it again."""
    with Peer("user") as peer:
        node = peer.node
        server = node.create_service(
            GetMap, "/map_server/map", lambda _, answer: _answered(answer)
        )
        print("SERVING", flush=True)
        peer.wait(
            lambda: ("loopback_simulator", "/") in node.get_node_names_and_namespaces(),
            node.get_node_names_and_namespaces,
        )
        found = values(peer)
        frames = Buffer(peer._context)
        odom = peer.listen("odom", Odometry)
        scans = peer.listen("scan", LaserScan, SENSOR)
        clock = peer.listen("/clock", Clock)
        initial = node.create_publisher(PoseWithCovarianceStamped, "initialpose", 10)
        base = found["base_frame_id"]

        def place(at: tuple[float, float, float]) -> None:
            def there() -> bool:
                message = PoseWithCovarianceStamped()
                message.header.frame_id = "map"
                set_pose(message.pose.pose, at)
                # A click in RViz also gets lost before the simulator is there.
                initial.publish(message)
                now = frames.lookup("map", base)
                return now is not None and math.dist(now[:2], at[:2]) < 1e-3

            peer.wait(there, lambda: (frames.lookup("map", base), at))

        first = (3.0, 2.0, 0.0)
        place(first)
        # Scans of the place before may still come.
        placed = frames.newest(base)
        peer.wait(
            lambda: (
                odom and clock and scans and seconds(scans[-1][1].header.stamp) > placed
            ),
            "no messages",
        )
        before = planar(odom[-1][1].pose.pose)

        # Beams end at the walls of the map that the server gave.
        scan = scans[-1][1]
        at = frames.lookup("map", scan.header.frame_id)
        assert at is not None and scan.header.frame_id == found["scan_frame_id"]
        x, y = moved(hits(scan), at).T
        off = np.minimum.reduce([x, WIDTH * CELL - x, y, HEIGHT * CELL - y])
        assert len(off) > 100 and np.abs(off).max() < 2 * CELL, np.abs(off).max()
        assert scan.range_max == np.float32(found["scan_range_max"])

        kind = TwistStamped if is_stamped else Twist
        velocity = node.create_publisher(kind, "cmd_vel", 1)

        def drive(speed: float) -> None:
            message = kind()
            twist = message.twist if is_stamped else message
            if is_stamped:
                message.header.stamp = clock[-1][1].clock
            twist.linear.x = speed
            velocity.publish(message)

        def gone() -> float:
            return planar(odom[-1][1].pose.pose)[0] - before[0]

        peer.wait(lambda: drive(0.3) or gone() > 0.8, lambda: gone())
        peer.wait(
            lambda: drive(0.0) or odom[-1][1].twist.twist.linear.x == 0.0,
            "it drives on",
        )
        # The newest transform may be one message older than odometry.
        last = odom[-1][1]
        peer.wait(lambda: frames.newest(base) >= seconds(last.header.stamp), "no tf")
        by_odom, by_map = planar(last.pose.pose), frames.lookup("map", base)
        assert by_map is not None
        assert math.dist(by_map[:2], compose(first, (gone(), 0.0, 0.0))[:2]) < 0.02
        assert last.header.frame_id == found["odom_frame_id"]
        assert last.child_frame_id == base

        # A pose moves the robot; odometry goes on.
        place((7.0, 4.0, math.pi / 2))
        again = planar(odom[-1][1].pose.pose)
        assert math.dist(again[:2], by_odom[:2]) < 0.01
        node.destroy_service(server)
        return {"parameters": found, "gone": gone(), "nodes": node.get_node_names()}


def _answered(answer: GetMap.Response) -> GetMap.Response:
    answer.map = room()
    return answer


if __name__ == "__main__":
    run(Peer, globals())
