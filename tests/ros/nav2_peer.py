"""A peer with Nav2's names for several robots: ``nav2_peer.py
JSON-LIST-OF-NAMESPACES``; prints ``RESULT JSON``.

It stands in for Nav2's programs, with their topics, frames, types and QoS: the map's
clients (transient local), RViz (``initialpose``), AMCL (best-effort scans, with frames
by tf at their stamps; it sends map → odom) and the controller (TwistStamped on
``cmd_vel``, stamped by /clock; poses by tf). Lifecycle and actions are internal to
Nav2. (Cyclone inspects annotations, so they are not postponed.)
"""

import json
import math
import sys
import time
from dataclasses import dataclass
from typing import Any

from cyclone_peer import (
    LATCHED,
    RELIABLE,
    Clock,
    Header,
    Pose,
    Quaternion,
    Time,
    Twist,
    TwistStamped,
    Vector3,
    participant,
)
from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl import types as idl
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

SENSOR_DATA = Qos(
    Policy.Reliability.BestEffort,
    Policy.History.KeepLast(5),
    Policy.DataRepresentation(
        use_cdrv0_representation=True, use_xcdrv2_representation=False
    ),
)
TF = RELIABLE + Qos(Policy.History.KeepLast(100))
PATIENCE_S = 100.0
SPEED, TURN, NEAR_M = 0.3, 0.6, 0.12


@dataclass
class PoseWithCovariance(
    IdlStruct, typename="geometry_msgs::msg::dds_::PoseWithCovariance_"
):
    pose: Pose
    covariance: idl.array[idl.float64, 36]


@dataclass
class TwistWithCovariance(
    IdlStruct, typename="geometry_msgs::msg::dds_::TwistWithCovariance_"
):
    twist: Twist
    covariance: idl.array[idl.float64, 36]


@dataclass
class PoseWithCovarianceStamped(
    IdlStruct, typename="geometry_msgs::msg::dds_::PoseWithCovarianceStamped_"
):
    header: Header
    pose: PoseWithCovariance


@dataclass
class Odometry(IdlStruct, typename="nav_msgs::msg::dds_::Odometry_"):
    header: Header
    child_frame_id: str
    pose: PoseWithCovariance
    twist: TwistWithCovariance


@dataclass
class Transform(IdlStruct, typename="geometry_msgs::msg::dds_::Transform_"):
    translation: Vector3
    rotation: Quaternion


@dataclass
class TransformStamped(
    IdlStruct, typename="geometry_msgs::msg::dds_::TransformStamped_"
):
    header: Header
    child_frame_id: str
    transform: Transform


@dataclass
class TFMessage(IdlStruct, typename="tf2_msgs::msg::dds_::TFMessage_"):
    transforms: idl.sequence[TransformStamped]


@dataclass
class LaserScan(IdlStruct, typename="sensor_msgs::msg::dds_::LaserScan_"):
    header: Header
    angle_min: idl.float32
    angle_max: idl.float32
    angle_increment: idl.float32
    time_increment: idl.float32
    scan_time: idl.float32
    range_min: idl.float32
    range_max: idl.float32
    ranges: idl.sequence[idl.float32]
    intensities: idl.sequence[idl.float32]


@dataclass
class MapMetaData(IdlStruct, typename="nav_msgs::msg::dds_::MapMetaData_"):
    map_load_time: Time
    resolution: idl.float32
    width: idl.uint32
    height: idl.uint32
    origin: Pose


@dataclass
class OccupancyGrid(IdlStruct, typename="nav_msgs::msg::dds_::OccupancyGrid_"):
    header: Header
    info: MapMetaData
    data: idl.sequence[idl.int8]


Planar = tuple[float, float, float]


def compose(a: Planar, b: Planar) -> Planar:
    c, s = math.cos(a[2]), math.sin(a[2])
    return a[0] + c * b[0] - s * b[1], a[1] + s * b[0] + c * b[1], a[2] + b[2]


def inverse(a: Planar) -> Planar:
    c, s = math.cos(a[2]), math.sin(a[2])
    return -(c * a[0] + s * a[1]), s * a[0] - c * a[1], -a[2]


def yaw(q: Quaternion) -> float:
    return math.atan2(
        2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z)
    )


def planar(pose: Pose) -> Planar:
    return pose.position.x, pose.position.y, yaw(pose.orientation)


def ns(stamp: Time) -> int:
    return stamp.sec * 10**9 + stamp.nanosec


class Frames:
    """tf2's buffer:

    transforms by their children, with stamps; static ones have none.
    """

    def __init__(self) -> None:
        self.fixed: dict[str, tuple[str, Planar]] = {}
        self.moving: dict[str, list[tuple[int, str, Planar]]] = {}

    def take(self, message: TFMessage, is_static: bool) -> None:
        for t in message.transforms:
            place = (
                t.transform.translation.x,
                t.transform.translation.y,
                yaw(t.transform.rotation),
            )
            if is_static:
                self.fixed[t.child_frame_id] = t.header.frame_id, place
            else:
                kept = self.moving.setdefault(t.child_frame_id, [])
                kept.append((ns(t.header.stamp), t.header.frame_id, place))
                del kept[:-500]

    def lookup(self, target: str, source: str, stamp: int | None) -> Planar | None:
        """Return the pose of `source` in `target` at a time (None: the latest).

        None where tf2 would refuse.
        """
        found: Planar = (0.0, 0.0, 0.0)
        while source != target:
            if source in self.fixed:
                parent, place = self.fixed[source]
            else:
                kept = self.moving.get(source, [])
                at = [k for k in kept if stamp is None or k[0] == stamp]
                if not at:
                    return None
                _, parent, place = at[-1]

            found, source = compose(place, found), parent

        return found


class Robot:
    """Nav2's programs for one robot.

    `name` is its namespace.
    """

    def __init__(self, name: str) -> None:
        def reader(topic: str, kind: Any, qos: Qos) -> Any:
            return DataReader(
                participant, Topic(participant, f"rt/{name}/{topic}", kind), qos
            )

        def writer(topic: str, kind: Any, qos: Qos) -> Any:
            return DataWriter(
                participant, Topic(participant, f"rt/{name}/{topic}", kind), qos
            )

        self.frames = Frames()
        self.map = reader("map", OccupancyGrid, LATCHED)
        self.scan = reader("scan", LaserScan, SENSOR_DATA)
        self.odom = reader("odom", Odometry, SENSOR_DATA)
        self.truth = reader("base_pose_ground_truth", Odometry, RELIABLE)
        self.tf, self.tf_static = (
            reader("tf", TFMessage, TF),
            reader("tf_static", TFMessage, LATCHED),
        )
        self.tf_out, self.cmd_vel = (
            writer("tf", TFMessage, TF),
            writer("cmd_vel", TwistStamped, RELIABLE),
        )
        self.grid: Any = None
        self.last_scan: Any = None
        self.last_truth: Any = None
        self.last_odom: Any = None
        self.correction: Planar | None = None
        self.goal: tuple[float, float] | None = None
        self.fits: list[float] = []
        self.reached = False
        self.fastest = (0.0, 0.0)
        self.mismatch = 0.0

    def receive(self) -> None:
        for message in self.tf_static.take(N=10):
            self.frames.take(message, True)
        for message in self.tf.take(N=100):
            self.frames.take(message, False)
        for message in self.map.take(N=1):
            self.grid = message
        for message in self.scan.take(N=5):
            self.last_scan = message
        for message in self.odom.take(N=5):
            self.last_odom = message
            self.measure(message)

        for message in self.truth.take(N=10):
            self.last_truth = message

    def measure(self, odom: Any) -> None:
        """Compare the values of odometry that controllers read:

        velocity, and the pose, which tf also has.
        """
        twist = odom.twist.twist
        self.fastest = (
            max(self.fastest[0], twist.linear.x),
            max(self.fastest[1], abs(twist.angular.z)),
        )
        place = self.frames.lookup("odom", "base_footprint", ns(odom.header.stamp))
        if place is not None:
            self.mismatch = max(
                self.mismatch,
                *(
                    abs(a - b)
                    for a, b in zip(place, planar(odom.pose.pose), strict=True)
                ),
            )

    def localize(self, others: list["Robot"]) -> None:
        """Act as AMCL: start from the initial pose and follow odometry.

        The fit of scans to the map shows whether all frames are right.
        """
        scan = self.last_scan
        if scan is None or self.grid is None or self.last_truth is None:
            return
        at = self.frames.lookup("odom", scan.header.frame_id, ns(scan.header.stamp))
        base = self.frames.lookup("odom", "base_footprint", ns(scan.header.stamp))
        if at is None or base is None:
            return
        if self.correction is None:
            self.correction = compose(
                planar(self.last_truth.pose.pose),
                inverse(base),
                # This message is the pose that a user clicks in RViz.
            )

        laser = compose(self.correction, at)
        hits = [
            (
                laser[0] + r * math.cos(laser[2] + a),
                laser[1] + r * math.sin(laser[2] + a),
            )
            for r, a in (
                (r, scan.angle_min + i * scan.angle_increment)
                for i, r in enumerate(scan.ranges)
            )
            if scan.range_min <= r <= scan.range_max
        ]
        near = [
            planar(other.last_truth.pose.pose)[:2]
            for other in others
            if other.last_truth
        ]
        hits = [
            hit
            for hit in hits
            if all(math.dist(hit, place) > 0.5 for place in near)
            # robots are not in the map
        ]
        if hits:
            self.fits.append(sum(map(self.is_wall, hits)) / len(hits))
        x, y, th = self.correction
        turn = Quaternion(0.0, 0.0, math.sin(th / 2), math.cos(th / 2))
        message = TransformStamped(
            Header(scan.header.stamp, "map"),
            "odom",
            Transform(Vector3(x, y, 0.0), turn),
        )
        self.tf_out.write(TFMessage([message]))
        if self.goal is None:
            middle = [
                r for r in scan.ranges[len(scan.ranges) // 4 : -len(scan.ranges) // 4]
            ]
            free = max(middle)
            bearing = (
                scan.angle_min
                + (middle.index(free) + len(scan.ranges) // 4) * scan.angle_increment
            )
            way = min(1.2, (free if math.isfinite(free) else scan.range_max) - 0.8)
            self.goal = (
                laser[0] + way * math.cos(laser[2] + bearing),
                laser[1] + way * math.sin(laser[2] + bearing),
            )

    def is_wall(self, point: tuple[float, float]) -> bool:
        info = self.grid.info
        column = int((point[0] - info.origin.position.x) / info.resolution)
        row = int((point[1] - info.origin.position.y) / info.resolution)
        around = (
            (r, c)
            for r in range(row - 2, row + 3)
            for c in range(column - 2, column + 3)
        )
        return any(
            0 <= r < info.height
            and 0 <= c < info.width
            and self.grid.data[r * info.width + c] > 50
            for r, c in around
        )

    def control(self, now: Time) -> None:
        """Act as the controller: turn to the goal, then drive there."""
        pose = self.frames.lookup("map", "base_footprint", None)
        if (
            self.goal is None or pose is None or ns(now) == 0
            # Without /clock there is no time yet.
        ):
            return

        dx, dy = self.goal[0] - pose[0], self.goal[1] - pose[1]
        self.reached = self.reached or math.hypot(dx, dy) < NEAR_M
        off = math.remainder(math.atan2(dy, dx) - pose[2], 2.0 * math.pi)
        v = 0.0 if self.reached or abs(off) > 0.3 else SPEED
        w = 0.0 if self.reached else max(-TURN, min(TURN, 2.0 * off))
        self.cmd_vel.write(
            TwistStamped(
                Header(now, "base_link"),
                Twist(Vector3(v, 0.0, 0.0), Vector3(0.0, 0.0, w)),
            )
        )

    def result(self) -> dict[str, Any]:
        believed = self.frames.lookup("map", "base_footprint", None)
        truth = self.last_truth and planar(self.last_truth.pose.pose)
        odom = self.last_odom
        return {
            "reached": self.reached,
            "fit": sorted(self.fits)[len(self.fits) // 10] if self.fits else 0.0,
            "scans": len(self.fits),
            "apart": math.dist(believed[:2], truth[:2]) if believed and truth else None,
            "links": sorted({*self.frames.fixed, *self.frames.moving}),
            "odometry": [odom.header.frame_id, odom.child_frame_id] if odom else None,
            "map": [self.grid.header.frame_id, self.last_scan.header.frame_id]
            if self.grid and self.last_scan
            else None,
            "fastest": self.fastest,
            "mismatch": self.mismatch,
            "covariance": max(map(abs, (*odom.pose.covariance, *odom.twist.covariance)))
            if odom
            else None,
        }


def main(names: list[str]) -> dict[str, Any]:
    robots = {name: Robot(name) for name in names}
    clock: Any = DataReader(
        participant, Topic(participant, "rt/clock", Clock), SENSOR_DATA
    )
    now, end = Time(0, 0), time.monotonic() + PATIENCE_S
    while time.monotonic() < end and not all(r.reached for r in robots.values()):
        for message in clock.take(N=10):
            now = message.clock
        for robot in robots.values():
            robot.receive()
            robot.localize([other for other in robots.values() if other is not robot])
            robot.control(now)

        time.sleep(0.05)

    return {name: robot.result() for name, robot in robots.items()}


if __name__ == "__main__":
    print("RESULT " + json.dumps(main(json.loads(sys.argv[1]))), flush=True)
