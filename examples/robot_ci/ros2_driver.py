"""The program under test as a peer of ROS 2: drives ahead, and stops in front of what
its laser sees.

It needs no ROS 2, only its middleware (pip install cyclonedds); a node of rclpy is
tested in the same way.

python3 ros2_driver.py bob
"""

import sys
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    """A stamp."""

    sec: types.int32
    nanosec: types.uint32


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    """Stamp and frame."""

    stamp: Time
    frame_id: str


@dataclass
class LaserScan(IdlStruct, typename="sensor_msgs::msg::dds_::LaserScan_"):
    """A scan."""

    header: Header
    angle_min: types.float32
    angle_max: types.float32
    angle_increment: types.float32
    time_increment: types.float32
    scan_time: types.float32
    range_min: types.float32
    range_max: types.float32
    ranges: types.sequence[types.float32]
    intensities: types.sequence[types.float32]


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    """Three numbers."""

    x: float
    y: float
    z: float


@dataclass
class Twist(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    """A velocity."""

    linear: Vector3
    angular: Vector3


RELIABLE = Qos(
    Policy.Reliability.Reliable(duration(milliseconds=100)),
    Policy.History.KeepLast(5),
    Policy.DataRepresentation(
        use_cdrv0_representation=True, use_xcdrv2_representation=False
    ),
)
SENSOR = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1))


def main(robot: str) -> None:
    """Answer each scan by a velocity."""
    # CYCLONEDDS_URI sets the domain of ROS_DOMAIN_ID, see test_ros.py.
    node = DomainParticipant()
    scans = DataReader(
        node, Topic(node, f"rt/{robot}/base_scan", LaserScan), qos=SENSOR
    )
    commands = DataWriter(node, Topic(node, f"rt/{robot}/cmd_vel", Twist), qos=RELIABLE)
    for scan in scans.take_iter(timeout=duration(seconds=600)):
        middle = len(scan.ranges) // 2
        ahead = min(scan.ranges[middle - 15 : middle + 15])
        commands.write(
            Twist(
                Vector3(0.3 if ahead > 0.8 else 0.0, 0.0, 0.0), Vector3(0.0, 0.0, 0.0)
            )
        )


if __name__ == "__main__":
    main(sys.argv[1])
