"""A ROS 2 peer on the package zenoh-ros2-sdk, which speaks rmw_zenoh.

It runs in a separate environment and prints ``RESULT JSON``.
"""

import json
import os
import sys
import time

import zenoh.ext
import zenoh_ros2_sdk.discovery as discovery
from rosbags.typesys import Stores, get_typestore
from zenoh_ros2_sdk import ROS2Publisher, ROS2ServiceClient, ROS2Subscriber
from zenoh_ros2_sdk.session import ZenohSession

STORE = get_typestore(Stores.ROS2_JAZZY)
ODOMETRY, SCAN, TWIST, MAP = (
    "nav_msgs/msg/Odometry",
    "sensor_msgs/msg/LaserScan",
    "geometry_msgs/msg/Twist",
    "nav_msgs/msg/OccupancyGrid",
)


def about(name):
    """Return definition and hash of a type."""
    return {
        "msg_definition": STORE.generate_msgdef(name, ros_version=2)[0],
        "type_hash": STORE.hash_rihs01(name),
    }


counts, last = {}, {}


def keep(topic):
    """Return a callback."""

    def take(message):
        counts[topic] = counts.get(topic, 0) + 1
        last[topic] = message

    return take


seconds = float(sys.argv[1])
subscribers = [
    ROS2Subscriber("/ann/odom", ODOMETRY, keep("odom"), **about(ODOMETRY)),
    ROS2Subscriber("/ann/base_scan", SCAN, keep("scan"), **about(SCAN)),
]
session = ZenohSession.get_instance()
history = zenoh.ext.HistoryConfig(detect_late_publishers=True)
map_key = f"0/map/nav_msgs::msg::dds_::OccupancyGrid_/{STORE.hash_rihs01(MAP)}"
map_reader = zenoh.ext.declare_advanced_subscriber(
    session.session,
    map_key,
    lambda s: keep("map")(s.payload.to_bytes()),
    history=history,
)
velocity = ROS2Publisher("/ann/cmd_vel", TWIST, **about(TWIST))
time.sleep(1.0)
vector = STORE.types["geometry_msgs/msg/Vector3"]
least = int(sys.argv[2])
begin = time.monotonic()


def rate():
    """Return the rate of turn, rad/s, as odometry says."""
    return last["odom"].twist.twist.angular.z if "odom" in last else 0.0


# Run for this time, and then until enough messages have arrived, and the robot turns: it
# stops when a busy machine delays the next velocity.
while (took := time.monotonic() - begin) < seconds or (
    (
        min(counts.get(k, 0) for k in ("odom", "scan")) < least
        or abs(rate() - 0.3) > 0.05
    )
    and took < seconds + 110.0
):
    velocity.publish(linear=vector(0.0, 0.0, 0.0), angular=vector(0.0, 0.0, 0.3))
    time.sleep(0.05)

turning = rate()
client = ROS2ServiceClient(
    "/botyard/pause",
    "std_srvs/srv/Trigger",
    request_definition="",
    response_definition="bool success\nstring message",
    type_hash="RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f",
)
answer = client.call()
time.sleep(0.5)
before = counts.get("odom", 0)
time.sleep(1.0)
wanted = set(sys.argv[3:])
begin = time.monotonic()
# Wait until all expected names are known.
while True:
    topics = {name for name, _ in discovery.get_topic_names_and_types()}
    services = {name for name, _ in discovery.get_service_names_and_types()}
    if wanted <= topics | services or time.monotonic() > begin + 110.0:
        break
    time.sleep(0.2)

grid = STORE.deserialize_cdr(last["map"], MAP) if "map" in last else None
print(
    "RESULT "
    + json.dumps(
        {
            "counts": counts,
            "turning": turning,
            "ranges": len(last["scan"].ranges) if "scan" in last else None,
            "frame": last["odom"].header.frame_id if "odom" in last else None,
            "map": None if grid is None else [grid.info.width, grid.info.height],
            "paused": None if answer is None else bool(answer.success),
            "while_paused": counts.get("odom", 0) - before,
            "topics": sorted(topics),
            "services": sorted(services),
        }
    ),
    flush=True,
)
# Exit at once: threads of the package would keep the process alive.
os._exit(0)
