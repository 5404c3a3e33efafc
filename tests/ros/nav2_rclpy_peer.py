"""Nav2's programs for one robot, on rclpy: ``nav2_rclpy_peer.py PARAMETERS STAMPED``, by
the Python of an environment of ``make peers``; prints ``RESULT JSON``.

Each node has Nav2's name, lifecycle, topics, QoS, frames and parameters. Sources, in
github.com/ros-navigation/navigation2 (path and commit):

- lifecycle_manager.cpp (02dfb32): configure, then activate, node by node.
- amcl_node.cpp (0051083): QoS of scan, map, initialpose and amcl_pose; map → odom is sent
  for each scan, post-dated by transform_tolerance; updates after update_min_d, update_min_a.
- obstacle_layer.cpp (021483b), costmap_2d_ros.cpp (0062e22): best-effort scans, transformed
  at their stamps; the robot's pose is at most transform_tolerance old.
- controller_server.cpp (011e9cf): follow_path, 20 Hz, cmd_vel with a queue of 1.
- velocity_smoother.cpp (013f94b): 20 Hz, ramps, stamps that go on between commands.
- collision_monitor_node.cpp, scan.cpp (0148fcb): a stop without scans for source_timeout.
- navigate_to_pose.cpp (0046752): navigate_to_pose, feedback, goals in the map's frame.
- simple_charging_dock.cpp (00fe819): battery_state, and joint_states for stalls.

It shares nothing with the simulator. Plans are straight: the world is not the subject.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import (
    PoseStamped,
    PoseWithCovarianceStamped,
    TransformStamped,
    Twist,
    TwistStamped,
)
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from nav2_msgs.action import FollowPath, NavigateToPose
from nav_msgs.msg import OccupancyGrid, Odometry, Path
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import (
    DurabilityPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_profile_sensor_data,
)
from rclpy.task import Future
from sensor_msgs.msg import BatteryState, JointState, LaserScan
from tf2_msgs.msg import TFMessage

PATIENCE_S = 60.0
RESOLUTION_M = 0.05
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
TF = QoSProfile(depth=100)
Planar = tuple[float, float, float]


def compose(a: Planar, b: Planar) -> Planar:
    """Return the pose b of a's frame in the frame of a."""
    c, s = math.cos(a[2]), math.sin(a[2])
    return a[0] + c * b[0] - s * b[1], a[1] + s * b[0] + c * b[1], a[2] + b[2]


def inverse(a: Planar) -> Planar:
    """Return the pose of a's parent in a."""
    c, s = math.cos(a[2]), math.sin(a[2])
    return -(c * a[0] + s * a[1]), s * a[0] - c * a[1], -a[2]


def yaw(q: Any) -> float:
    """Return the heading of a quaternion, rad."""
    return math.atan2(
        2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z)
    )


def planar(pose: Any) -> Planar:
    """Return a pose in the plane: m, m, rad."""
    return pose.position.x, pose.position.y, yaw(pose.orientation)


def set_pose(pose: Any, at: Planar) -> None:
    """Write a pose in the plane into a message."""
    pose.position.x, pose.position.y = at[0], at[1]
    pose.orientation.z, pose.orientation.w = math.sin(at[2] / 2), math.cos(at[2] / 2)


def seconds(stamp: Any) -> float:
    """Return a stamp in seconds."""
    return float(stamp.sec) + 1e-9 * float(stamp.nanosec)


class Buffer:
    """tf2's buffer: between two transforms it interpolates, outside it refuses.

    As tf2_ros' listener, it has a node and a thread of its own.
    """

    def __init__(self, context: Any) -> None:
        node = rclpy.create_node("transform_listener", context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
        self._fixed: dict[str, tuple[str, Planar]] = {}
        self._moving: dict[str, list[tuple[float, str, Planar]]] = {}
        node.create_subscription(TFMessage, "tf", self._take, TF)
        node.create_subscription(TFMessage, "tf_static", self._keep, LATCHED)
        threading.Thread(target=self._executor.spin, daemon=True).start()

    @staticmethod
    def _read(one: Any) -> Planar:
        move = one.transform.translation
        return move.x, move.y, yaw(one.transform.rotation)

    def _keep(self, message: TFMessage) -> None:
        for one in message.transforms:
            self._fixed[one.child_frame_id] = one.header.frame_id, self._read(one)

    def _take(self, message: TFMessage) -> None:
        for one in message.transforms:
            kept = self._moving.setdefault(one.child_frame_id, [])
            at = seconds(one.header.stamp)
            kept.append((at, one.header.frame_id, self._read(one)))
            del kept[:-600]

    def newest(self, child: str) -> float:
        """Return the stamp of the last transform of a frame, s."""
        return self._moving[child][-1][0] if child in self._moving else -math.inf

    def lookup(
        self, target: str, source: str, at: float | None = None
    ) -> Planar | None:
        """Return the pose of source in target at a time, s; None: at the latest."""
        found: Planar = (0.0, 0.0, 0.0)
        while source != target:
            if source in self._fixed:
                parent, place = self._fixed[source]
            else:
                kept = list(self._moving.get(source, []))
                if not kept or (at is not None and not kept[0][0] <= at <= kept[-1][0]):
                    return None
                later = next(
                    (k for k in kept if at is not None and k[0] >= at), kept[-1]
                )
                _, parent, place = later
                before = [k for k in kept if at is not None and k[0] <= at]
                if before and at is not None and before[-1][0] < at:
                    first = before[-1]
                    share = (at - first[0]) / (later[0] - first[0])
                    a, b = first[2], place
                    turn = math.remainder(b[2] - a[2], 2 * math.pi)
                    place = (
                        a[0] + share * (b[0] - a[0]),
                        a[1] + share * (b[1] - a[1]),
                        a[2] + share * turn,
                    )
            found, source = compose(place, found), parent
        return found


class Server(LifecycleNode):
    """A lifecycle node of Nav2, with the parameters of a file."""

    def __init__(self, name: str, context: Any, **more: Any) -> None:
        # Nav2's nodes declare parameters one by one; the file names some of them.
        overrides = [Parameter(k, value=v) for k, v in more.items()]
        super().__init__(
            name,
            context=context,
            parameter_overrides=overrides,
            automatically_declare_parameters_from_overrides=True,
        )
        self.is_active = False

    def given(self, name: str) -> Any:
        """Return a parameter that the file must set."""
        return self.get_parameter(name).value

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        self.is_active = True
        return super().on_activate(state)

    def now(self) -> float:
        """Return the time of /clock, s."""
        return 1e-9 * self.get_clock().now().nanoseconds


def hits(scan: LaserScan) -> np.ndarray:
    """Return the points of a scan in the laser's frame, shape (n, 2), m."""
    ranges = np.asarray(scan.ranges)
    angles = scan.angle_min + scan.angle_increment * np.arange(len(ranges))
    is_hit = (scan.range_min <= ranges) & (ranges <= scan.range_max)
    return ranges[is_hit, None] * np.stack(
        [np.cos(angles[is_hit]), np.sin(angles[is_hit])], axis=1
    )


def moved(points: np.ndarray, at: Planar) -> np.ndarray:
    """Return points of a frame in the parent of the frame."""
    c, s = math.cos(at[2]), math.sin(at[2])
    return points @ np.array([[c, s], [-s, c]]) + np.array(at[:2])


class Amcl(Server):
    """Locate the robot by scans on the map, from an initial pose on."""

    def __init__(self, context: Any, frames: Buffer) -> None:
        super().__init__("amcl", context)
        self.frames = frames
        self.correction: Planar | None = None
        self._field: np.ndarray | None = None
        self._info: Any = None
        self._updated: Planar | None = None
        self.dropped = self.updates = 0
        self._waiting: list[LaserScan] = []
        self._base, self._odom = (
            self.given("base_frame_id"),
            self.given("odom_frame_id"),
        )
        self._map = self.given("global_frame_id")

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._pose = self.create_publisher(
            PoseWithCovarianceStamped, "amcl_pose", LATCHED
        )
        self._tf = self.create_publisher(TFMessage, "tf", TF)
        self.create_subscription(OccupancyGrid, "map", self._on_map, LATCHED)
        self.create_subscription(
            PoseWithCovarianceStamped, "initialpose", self._on_initial, 10
        )
        self.create_subscription(
            LaserScan, self.given("scan_topic"), self._on_scan, qos_profile_sensor_data
        )
        return super().on_configure(state)

    def _on_map(self, grid: OccupancyGrid) -> None:
        assert grid.header.frame_id == self._map
        self._info = grid.info
        walls = np.asarray(grid.data).reshape(grid.info.height, grid.info.width) == 100
        distance = np.where(walls, 0, 9)
        for step in range(1, 9):
            padded = np.pad(walls, 1)
            walls = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2]
            walls |= padded[1:-1, 2:] | padded[1:-1, 1:-1]
            distance = np.where(walls, np.minimum(distance, step), distance)
        sigma = 0.1 / grid.info.resolution
        self._field = np.exp(-(distance**2) / (2 * sigma**2))

    def _on_initial(self, message: PoseWithCovarianceStamped) -> None:
        base = self.frames.lookup(self._odom, self._base)
        if self.is_active and base is not None:
            self.correction = compose(planar(message.pose.pose), inverse(base))
            self._updated = None

    def _fit(self, points: np.ndarray, laser: Planar) -> float:
        info, field = self._info, self._field
        assert field is not None
        origin = np.array([info.origin.position.x, info.origin.position.y])
        cells = ((moved(points, laser) - origin) / info.resolution).astype(int)
        inside = (cells >= 0).all(1) & (cells < [info.width, info.height]).all(1)
        cells = cells[inside]
        return float(field[cells[:, 1], cells[:, 0]].sum()) / max(len(points), 1)

    def _on_scan(self, scan: LaserScan) -> None:
        # tf2_ros' message filter keeps ten scans until their transform is there.
        self._waiting.append(scan)
        waiting, self._waiting = self._waiting, []
        for one in waiting[-10:]:
            if self._located(one):
                self._update(one)
            else:
                self._waiting.append(one)

    def _located(self, scan: LaserScan) -> bool:
        at = seconds(scan.header.stamp)
        return self.frames.lookup(self._odom, scan.header.frame_id, at) is not None

    def _update(self, scan: LaserScan) -> None:
        if self._field is None or self.correction is None:
            return
        at = seconds(scan.header.stamp)
        base = self.frames.lookup(self._odom, self._base, at)
        laser = self.frames.lookup(self._odom, scan.header.frame_id, at)
        if base is None or laser is None:
            self.dropped += 1
            return
        last = self._updated
        if last is None or (
            math.dist(last[:2], base[:2]) > self.given("update_min_d")
            or abs(math.remainder(base[2] - last[2], 2 * math.pi))
            > self.given("update_min_a")
        ):
            self._match(hits(scan), base, laser)
            self._updated = base
            self.updates += 1
            out = PoseWithCovarianceStamped()
            out.header.stamp, out.header.frame_id = scan.header.stamp, self._map
            set_pose(out.pose.pose, compose(self.correction, base))
            self._pose.publish(out)
        self._send(scan)

    def _match(self, points: np.ndarray, base: Planar, laser: Planar) -> None:
        """Search around the pose, in steps that get smaller."""
        points = points[:: max(1, len(points) // self.given("max_beams"))]
        for step, turn in ((0.1, 0.05), (0.05, 0.02), (0.02, 0.01)):
            correction = self.correction
            assert correction is not None
            believed = compose(correction, base)
            best = (self._fit(points, compose(correction, laser)), correction)
            for x in (-step, 0.0, step):
                for y in (-step, 0.0, step):
                    for w in (-turn, 0.0, turn):
                        pose = (believed[0] + x, believed[1] + y, believed[2] + w)
                        trial = compose(pose, inverse(base))
                        fit = self._fit(points, compose(trial, laser))
                        best = max(best, (fit, trial))
            self.correction = best[1]

    def _send(self, scan: LaserScan) -> None:
        correction = self.correction
        assert correction is not None
        one = TransformStamped()
        late = seconds(scan.header.stamp) + self.given("transform_tolerance")
        one.header.stamp.sec = int(late)
        one.header.stamp.nanosec = int(late % 1.0 * 1e9)
        one.header.frame_id, one.child_frame_id = self._map, self._odom
        one.transform.translation.x, one.transform.translation.y = correction[:2]
        one.transform.rotation.z = math.sin(correction[2] / 2)
        one.transform.rotation.w = math.cos(correction[2] / 2)
        self._tf.publish(TFMessage(transforms=[one]))


class Costmap:
    """The local costmap: cells with hits around the robot, in the frame of odometry."""

    def __init__(self, node: Any, frames: Buffer) -> None:
        self._frames = frames
        self.cells: set[tuple[int, int]] = set()
        self.scans = self.dropped = 0
        self._waiting: list[LaserScan] = []
        node.create_subscription(
            LaserScan, "scan", self._waiting.append, qos_profile_sensor_data
        )

    def update(self, now: float) -> None:
        """Enter the scans whose transforms are there; drop those that wait too long."""
        for scan in list(self._waiting):
            at = seconds(scan.header.stamp)
            laser = self._frames.lookup("odom", scan.header.frame_id, at)
            if laser is not None:
                found = moved(hits(scan), laser) / RESOLUTION_M
                self.cells = {(int(x), int(y)) for x, y in np.floor(found)}
                self.scans += 1
            elif now - at > 0.3:
                self.dropped += self.scans > 0
            else:
                continue
            self._waiting.remove(scan)

    def is_blocked(self, at: Planar, reach: float) -> bool:
        """Return whether a hit is within a distance of a place."""
        cells = np.array([*self.cells] or [(9**9, 9**9)]) * RESOLUTION_M
        return bool((np.hypot(*(cells - at[:2]).T) < reach).any())


class Velocity:
    """nav2_util's publisher of velocities: stamped or not."""

    def __init__(self, node: Server, topic: str, qos: Any) -> None:
        self._is_stamped = node.given("enable_stamped_cmd_vel")
        kind = TwistStamped if self._is_stamped else Twist
        self._out = node.create_publisher(kind, topic, qos)

    def publish(self, command: TwistStamped) -> None:
        """Send a velocity."""
        self._out.publish(command if self._is_stamped else command.twist)

    @staticmethod
    def listen(node: Server, topic: str, take: Callable[[TwistStamped], None]) -> None:
        """Subscribe to a topic of velocities."""
        if node.given("enable_stamped_cmd_vel"):
            node.create_subscription(TwistStamped, topic, take, 1)
        else:
            node.create_subscription(
                Twist, topic, lambda m: take(TwistStamped(twist=m)), 1
            )


class Controller(Server):
    """follow_path by pure pursuit, on the local costmap."""

    def __init__(self, context: Any, stamped: bool, frames: Buffer) -> None:
        super().__init__("controller_server", context, enable_stamped_cmd_vel=stamped)
        self.frames = frames
        self.costmap = Costmap(self, frames)
        self.late = self.cycles = 0
        self.fastest = 0.0
        self._goal: Any = None
        self._ended: Any = None

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._velocity = Velocity(self, "cmd_vel_nav", 1)
        self.create_subscription(Odometry, self.given("odom_topic"), self._on_odom, 10)
        self.create_timer(1.0 / self.given("controller_frequency"), self._cycle)
        self._action = ActionServer(self, FollowPath, "follow_path", self._follow)
        return super().on_configure(state)

    def _on_odom(self, odom: Odometry) -> None:
        self.fastest = max(self.fastest, odom.twist.twist.linear.x)

    async def _follow(self, goal: Any) -> FollowPath.Result:
        self._goal, self._ended = goal, Future()
        await self._ended
        goal.succeed()
        return FollowPath.Result()

    def _cycle(self) -> None:
        now = self.now()
        if not self.is_active or now == 0.0:
            return
        self.cycles += 1
        self.costmap.update(now)
        if self._goal is None:
            return
        pose = self.frames.lookup("map", "base_link")
        if pose is None or now - self.frames.newest("base_footprint") > 0.3:
            self.late += 1
            return
        path = [planar(p.pose) for p in self._goal.request.path.poses]
        end = path[-1]
        command = TwistStamped()
        command.header.stamp = self.get_clock().now().to_msg()
        command.header.frame_id = "base_link"
        left = math.dist(pose[:2], end[:2])
        off = math.remainder(end[2] - pose[2], 2 * math.pi)
        if left < 0.1 and abs(off) < 0.1:
            self._velocity.publish(command)
            self._goal = None
            self._ended.set_result(True)
            return
        nearest = min(range(len(path)), key=lambda i: math.dist(path[i][:2], pose[:2]))
        ahead = self.given("FollowPath.lookahead_dist")
        rest = path[nearest:]
        carrot = next((p for p in rest if math.dist(p[:2], pose[:2]) >= ahead), end)
        if left >= 0.1:
            heading = math.atan2(carrot[1] - pose[1], carrot[0] - pose[0])
            off = math.remainder(heading - pose[2], 2 * math.pi)
            if abs(off) < 0.5:
                speed = self.given("FollowPath.desired_linear_vel")
                command.twist.linear.x = min(speed, 0.1 + left)
        command.twist.angular.z = max(-1.0, min(1.0, 2.0 * off))
        self._velocity.publish(command)
        feedback = FollowPath.Feedback()
        feedback.distance_to_goal, feedback.speed = left, command.twist.linear.x
        self._goal.publish_feedback(feedback)


class Smoother(Server):
    """Ramps: velocity_smoother, open loop."""

    def __init__(self, context: Any, stamped: bool) -> None:
        super().__init__("velocity_smoother", context, enable_stamped_cmd_vel=stamped)
        self._command: TwistStamped | None = None
        self._at = 0.0
        self._last = (0.0, 0.0)
        self.steepest = 0.0
        self.sent = 0

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._velocity = Velocity(self, "cmd_vel_smoothed", 10)
        Velocity.listen(self, "cmd_vel_nav", self._take)
        self.create_timer(1.0 / 20.0, self._cycle)
        return super().on_configure(state)

    def _take(self, command: TwistStamped) -> None:
        self._command, self._at = command, self.now()

    def _cycle(self) -> None:
        if not self.is_active or self._command is None:
            return
        wanted = self._command.twist.linear.x, self._command.twist.angular.z
        if self.now() - self._at > 1.0:
            # It falls silent at rest, so that docking_server has cmd_vel for itself.
            if self._last == (0.0, 0.0):
                self._command = None
                return
            wanted = 0.0, 0.0
        up, down = self.given("max_accel"), self.given("max_decel")
        out = []
        for now, goal, axis in zip(self._last, wanted, (0, 2), strict=True):
            speeds_up = abs(goal) >= abs(now) and now * goal >= 0.0
            step = (up[axis] if speeds_up else -down[axis]) / 20.0
            out.append(now + max(-step, min(step, goal - now)))
        self.steepest = max(self.steepest, 20.0 * abs(out[0] - self._last[0]))
        self._last = out[0], out[1]
        command = TwistStamped()
        command.header.frame_id = self._command.header.frame_id
        command.header.stamp = self.get_clock().now().to_msg()
        command.twist.linear.x, command.twist.angular.z = out
        self._velocity.publish(command)
        self.sent += 1


class Monitor(Server):
    """collision_monitor: no velocity without scans and transforms, or into a wall."""

    def __init__(
        self, context: Any, stamped: bool, frames: Buffer, costmap: Costmap
    ) -> None:
        super().__init__("collision_monitor", context, enable_stamped_cmd_vel=stamped)
        self.frames, self.costmap = frames, costmap
        self.passed = self.stopped = 0

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._velocity = Velocity(self, self.given("cmd_vel_out_topic"), 10)
        Velocity.listen(self, self.given("cmd_vel_in_topic"), self._take)
        return super().on_configure(state)

    def _take(self, command: TwistStamped) -> None:
        if not self.is_active:
            return
        now = self.now()
        self.costmap.update(now)
        base = self.frames.lookup("odom", self.given("base_frame_id"))
        ahead = base and compose(base, (command.twist.linear.x * 1.2, 0.0, 0.0))
        is_old = now - self.frames.newest(self.given("base_frame_id")) > 0.2
        if base is None or is_old or self.costmap.is_blocked(ahead, 0.18):
            self.stopped += 1
            command.twist = Twist()
        else:
            self.passed += 1
        self._velocity.publish(command)


class Navigator(Server):
    """bt_navigator: navigate_to_pose with a planner whose plans are straight."""

    def __init__(self, context: Any, frames: Buffer) -> None:
        super().__init__("bt_navigator", context)
        self.frames = frames

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._follow = ActionClient(self, FollowPath, "follow_path")
        self._action = ActionServer(
            self, NavigateToPose, "navigate_to_pose", self._navigate
        )
        self._plan = self.create_publisher(Path, "plan", 1)
        return super().on_configure(state)

    async def _navigate(self, goal: Any) -> NavigateToPose.Result:
        base = self.given("robot_base_frame")
        start = self.frames.lookup(self.given("global_frame"), base)
        assert start is not None
        end = planar(goal.request.pose.pose)
        path = Path()
        path.header.frame_id = self.given("global_frame")
        count = max(2, int(math.dist(start[:2], end[:2]) / RESOLUTION_M))
        for k in range(count):
            pose, share = PoseStamped(), (k + 1) / count
            x, y = (
                a + share * (b - a) for a, b in zip(start[:2], end[:2], strict=True)
            )
            set_pose(pose.pose, (x, y, end[2]))
            path.poses.append(pose)
        self._plan.publish(path)

        def relay(message: Any) -> None:
            feedback = NavigateToPose.Feedback()
            feedback.distance_remaining = message.feedback.distance_to_goal
            goal.publish_feedback(feedback)

        handle = await self._follow.send_goal_async(
            FollowPath.Goal(path=path, controller_id="FollowPath"), relay
        )
        await handle.get_result_async()
        goal.succeed()
        return NavigateToPose.Result()


class Bringup:
    """Nav2's bring-up, and a program that uses it."""

    def __init__(self, parameters: str, stamped: bool) -> None:
        self.context = context = rclpy.Context()
        rclpy.init(context=context, args=["--ros-args", "--params-file", parameters])
        self._executor = SingleThreadedExecutor(context=context)
        self.user = rclpy.create_node("user", context=context)
        # Nav2's programs have one each; Python is too slow to take all messages five times.
        self.frames = Buffer(context)
        self.amcl = Amcl(context, self.frames)
        self.controller = Controller(context, stamped, self.frames)
        self.smoother = Smoother(context, stamped)
        costmap = self.controller.costmap
        self.monitor = Monitor(context, stamped, self.frames, costmap)
        self.navigator = Navigator(context, self.frames)
        self.servers: list[Server] = [
            self.amcl,
            self.controller,
            self.smoother,
            self.monitor,
            self.navigator,
        ]
        for node in (*self.servers, self.user):
            self._executor.add_node(node)

    def wait(self, holds: Callable[[], Any], what: Any) -> Any:
        """Spin until a value is true, and return it."""
        end = time.monotonic() + PATIENCE_S
        while not (value := holds()):
            assert time.monotonic() < end, what() if callable(what) else what
            self._executor.spin_once(timeout_sec=0.02)
        return value

    def call(self, name: str, kind: Any, **fields: Any) -> Any:
        """Return the answer of a service."""
        client = self.user.create_client(kind, name)
        self.wait(client.service_is_ready, f"no server of {name}")
        future = client.call_async(kind.Request(**fields))
        self.wait(future.done, f"no answer of {name}")
        return future.result()

    def start(self) -> list[int]:
        """Act as lifecycle_manager: return the state of each node at the end."""
        states = []
        for node in self.servers:
            name = node.get_name()
            for step in (
                Transition.TRANSITION_CONFIGURE,
                Transition.TRANSITION_ACTIVATE,
            ):
                wanted = Transition(id=step)
                done = self.call(f"{name}/change_state", ChangeState, transition=wanted)
                assert done.success, (name, step)
            states.append(self.call(f"{name}/get_state", GetState).current_state.id)
        return states

    def drive(self) -> dict[str, Any]:
        """Locate the robot from a pose that is a little wrong, and go to goals."""
        truths: list[Odometry] = []
        poses: list[PoseWithCovarianceStamped] = []
        scans: list[LaserScan] = []
        extras: dict[str, Any] = {}
        listen = self.user.create_subscription
        listen(Odometry, "base_pose_ground_truth", truths.append, 10)
        listen(PoseWithCovarianceStamped, "amcl_pose", poses.append, LATCHED)
        listen(LaserScan, "scan", scans.append, qos_profile_sensor_data)
        for name, kind in (
            ("battery_state", BatteryState),
            ("joint_states", JointState),
        ):
            listen(kind, name, lambda m, n=name: extras.setdefault(n, m), 10)
        initial = self.user.create_publisher(
            PoseWithCovarianceStamped, "initialpose", 10
        )
        self.wait(lambda: truths and scans and len(extras) == 2, lambda: [*extras])
        first = planar(truths[-1].pose.pose)

        sent_at = [0.0]

        def locate() -> Any:
            if time.monotonic() < sent_at[0] + 1.0:
                return poses
            sent_at[0] = time.monotonic()
            message = PoseWithCovarianceStamped()
            message.header.frame_id = "map"
            wrong = (first[0] + 0.12, first[1] - 0.08, first[2] + 0.05)
            set_pose(message.pose.pose, wrong)
            initial.publish(message)
            return poses

        # A click in RViz also gets lost while AMCL is not there.
        amcl = self.amcl
        self.wait(
            locate,
            lambda: (
                amcl.correction,
                amcl.updates,
                self.frames.newest("base_footprint"),
                seconds(scans[-1].header.stamp),
            ),
        )
        self.wait(lambda: self.frames.lookup("map", "base_link"), "no tf")
        client = ActionClient(self.user, NavigateToPose, "navigate_to_pose")
        self.wait(client.server_is_ready, "no action")
        apart, reached, remaining = [], [], []
        for way in (0.6, -0.6):
            goal = NavigateToPose.Goal()
            goal.pose.header.frame_id = "map"
            at = compose(first, (max(way, 0.0), 0.0, 0.0 if way > 0.0 else math.pi))
            set_pose(goal.pose.pose, at)
            sent = client.send_goal_async(
                goal, lambda m: remaining.append(m.feedback.distance_remaining)
            )
            self.wait(sent.done, "no answer to a goal")
            result = sent.result().get_result_async()
            self.wait(result.done, lambda at=at: (planar(truths[-1].pose.pose), at))
            true = planar(truths[-1].pose.pose)
            believed = self.frames.lookup("map", "base_footprint")
            assert believed is not None
            apart.append(math.dist(believed[:2], true[:2]))
            reached.append(math.dist(at[:2], true[:2]))
        return {
            "apart": apart,
            "reached": reached,
            "remaining": [len(remaining), min(remaining)],
            "poses": len(poses),
            "battery": extras["battery_state"].percentage,
            "joints": len(extras["joint_states"].name),
        }


def main(parameters: str, stamped: bool) -> dict[str, Any]:
    """Bring Nav2's nodes up, drive, and return what was seen."""
    nav2 = Bringup(parameters, stamped)
    states = nav2.start()
    seen = nav2.drive()
    costmap, monitor = nav2.controller.costmap, nav2.monitor
    return {
        **seen,
        "active": [state == State.PRIMARY_STATE_ACTIVE for state in states],
        "updates": nav2.amcl.updates,
        "dropped": [nav2.amcl.dropped, costmap.dropped],
        "scans": costmap.scans,
        "cells": len(costmap.cells),
        "cycles": nav2.controller.cycles,
        "late": nav2.controller.late,
        "monitor": [monitor.passed, monitor.stopped],
        "fastest": nav2.controller.fastest,
        "steepest": nav2.smoother.steepest,
    }


if __name__ == "__main__":
    print(
        "RESULT " + json.dumps(main(sys.argv[1], sys.argv[2] == "stamped")), flush=True
    )
    # Exit at once: middleware that is busy at the end of a program is not the subject.
    os._exit(0)
