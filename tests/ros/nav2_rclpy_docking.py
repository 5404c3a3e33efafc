"""Nav2's docking_server, route_server and behavior_server for one robot, with the nodes of
nav2_rclpy_peer.py: ``nav2_rclpy_docking.py PARAMETERS STAMPED DOCK``, as that file; DOCK is
"x y yaw".

Sources, in github.com/ros-navigation/navigation2 (path and commit):

- opennav_docking/src/docking_server.cpp (011e0b3): actions dock_robot and undock_robot;
  staging pose, perception, approach, wait for the charger; cmd_vel with a queue of 1, at
  controller_frequency, on stamps of the clock; the robot's pose in fixed_frame; defaults
  of parameters.
- opennav_docking/src/navigator.cpp (0537cb2): the staging pose by navigate_to_pose.
- opennav_docking/src/simple_charging_dock.cpp (00fe819): battery_state decides, by a
  current above charging_threshold; staging_pose and dock_pose are latched.
- nav2_route/src/route_server.cpp (013e148) and route_tracker.cpp (0537cb2): actions
  compute_route and compute_and_track_route; route_graph is latched; the robot's pose in
  route_frame at tracker_update_rate; nodes are reached within their radii.
- nav2_behaviors/plugins/spin.cpp (0254af6), back_up.cpp (01b38c2), drive_on_heading.hpp and
  timed_behavior.hpp (0254af6): the recoveries spin and backup as actions, with the codes of
  nav2_msgs/action, at cycle_frequency, by the pose in local_frame; the bring-up remaps
  their cmd_vel to cmd_vel_nav.

It shares nothing with the simulator.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Generator
from typing import Any

from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, PoseStamped, TwistStamped
from nav2_msgs.action import (
    BackUp,
    ComputeAndTrackRoute,
    ComputeRoute,
    DockRobot,
    FollowPath,
    NavigateToPose,
    Spin,
    UndockRobot,
)
from nav2_msgs.msg import RouteEdge, RouteNode
from nav2_rclpy_peer import (
    LATCHED,
    Bringup,
    Buffer,
    Planar,
    Server,
    Velocity,
    compose,
    inverse,
    planar,
    set_pose,
)
from nav_msgs.msg import Odometry, Path
from rclpy.action import ActionClient, ActionServer
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.task import Future
from sensor_msgs.msg import BatteryState
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import SetSimulationState, StepSimulation
from visualization_msgs.msg import Marker, MarkerArray

# Of DockRobot's feedback and results.
STAGING, PERCEPTION, CONTROLLING, WAITING = 1, 2, 3, 4
FAILED_TO_STAGE, FAILED_TO_CONTROL, FAILED_TO_CHARGE = 903, 905, 906
# Of Spin's and BackUp's results.
SPIN_TIMEOUT, BACK_UP_TIMEOUT, BACK_UP_INVALID_INPUT = 701, 711, 713
PLUGIN = "simple_charging_dock"
# Of simulation_interfaces: a result, and a state of the simulation.
OK, PAUSED = 1, 2
LONGEST_S = 200.0
"""Longest wait, s of simulated time."""
BOUNDARY_M, RADIUS_M = 1.0, 2.0
"""Defaults of boundary_radius_to_achieve_node and radius_to_achieve_node."""


class FailedError(Exception):
    """Docking failed, with a code."""


class Worker(Server):
    """A server whose actions are loops: each turn of a loop is one period."""

    def __init__(self, name: str, context: Any, rate: float, **more: Any) -> None:
        super().__init__(name, context, **more)
        self._job: Generator[None, None, Any] | None = None
        self._ended = Future()
        self.create_timer(1.0 / rate, self._turn)

    def value(self, name: str, default: Any) -> Any:
        """Return a parameter of the file, or the default of Nav2's source."""
        found = self.get_parameter_or(name, None)
        return default if found is None or found.value is None else found.value

    def start(self, job: Generator[None, None, Any]) -> Future:
        """Start a loop, and return the future of its result."""
        self._job, self._ended = job, Future()
        return self._ended

    async def run(self, job: Generator[None, None, Any]) -> Any:
        """Return the result of a loop."""
        return await self.start(job)

    def _turn(self) -> None:
        if self._job is None or not self.is_active:
            return
        try:
            next(self._job)
        except StopIteration as end:
            self._job = None
            self._ended.set_result(end.value)

    def wait_for(self, future: Any) -> Generator[None, None, Any]:
        """Wait for the result of a future."""
        while not future.done():
            yield
        return future.result()


class Docking(Worker):
    """docking_server with SimpleChargingDock."""

    def __init__(self, context: Any, stamped: bool, frames: Buffer) -> None:
        super().__init__(
            "docking_server", context, 50.0, enable_stamped_cmd_vel=stamped
        )
        self.frames = frames
        self.states: list[int] = []
        self.currents: list[float] = []
        self.commands = 0
        self._charges = False

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._velocity = Velocity(self, "cmd_vel", 1)
        self._staging = self.create_publisher(PoseStamped, "staging_pose", LATCHED)
        self._docks = self.create_publisher(PoseStamped, "dock_pose", LATCHED)
        self.create_subscription(BatteryState, "battery_state", self._on_battery, 10)
        self._navigator = ActionClient(self, NavigateToPose, "navigate_to_pose")
        self._dock_action = ActionServer(self, DockRobot, "dock_robot", self._dock)
        self._undock_action = ActionServer(
            self, UndockRobot, "undock_robot", self._undock
        )
        return super().on_configure(state)

    def _on_battery(self, battery: BatteryState) -> None:
        self.currents.append(battery.current)
        self._charges = battery.current > self.value(
            f"{PLUGIN}.charging_threshold", 0.5
        )

    async def _dock(self, goal: Any) -> DockRobot.Result:
        result = DockRobot.Result(success=False)
        try:
            await self.run(self._docking(goal))
        except FailedError as error:
            result.error_code = error.args[0]
            goal.abort()
            return result
        result.success = True
        goal.succeed()
        return result

    async def _undock(self, goal: Any) -> UndockRobot.Result:
        await self.run(self._undocking())
        goal.succeed()
        return UndockRobot.Result(success=not self._charges)

    def _say(self, goal: Any, state: int) -> None:
        if self.states[-1:] != [state]:
            self.states.append(state)
        goal.publish_feedback(DockRobot.Feedback(state=state))

    def _pose(self) -> Planar:
        """Return the robot's pose in the fixed frame."""
        found = self.frames.lookup(
            self.value("fixed_frame", "odom"), self.value("base_frame", "base_link")
        )
        assert found is not None
        return found

    def _told(self, publisher: Any, frame: str, at: Planar) -> PoseStamped:
        pose = PoseStamped()
        pose.header.frame_id = frame
        pose.header.stamp = self.get_clock().now().to_msg()
        set_pose(pose.pose, at)
        publisher.publish(pose)
        return pose

    def _send(self, speed: float, turn: float) -> None:
        command = TwistStamped()
        command.header.stamp = self.get_clock().now().to_msg()
        command.twist.linear.x = speed
        command.twist.angular.z = max(-1.0, min(1.0, turn))
        self._velocity.publish(command)
        self.commands += speed != 0.0

    def _docking(self, goal: Any) -> Generator[None, None, None]:
        request = goal.request
        frame, dock = request.dock_pose.header.frame_id, planar(request.dock_pose.pose)
        offset = self.value(f"{PLUGIN}.staging_x_offset", -0.7)
        staging = self._told(self._staging, frame, compose(dock, (offset, 0.0, 0.0)))
        self._say(goal, STAGING)
        sent = yield from self.wait_for(
            self._navigator.send_goal_async(NavigateToPose.Goal(pose=staging))
        )
        done = yield from self.wait_for(sent.get_result_async())
        if done.result.error_code:
            raise FailedError(FAILED_TO_STAGE)

        self._say(goal, PERCEPTION)
        fixed = self.value("fixed_frame", "odom")
        map_to_fixed = self.frames.lookup(frame, fixed)
        assert map_to_fixed is not None
        target = compose(inverse(map_to_fixed), dock)
        self._told(self._docks, fixed, target)

        start = self.now()
        threshold = self.value(f"{PLUGIN}.docking_threshold", 0.05)
        while not self._charges and math.dist(self._pose()[:2], target[:2]) > threshold:
            self._say(goal, CONTROLLING)
            if self.now() - start > self.value("dock_approach_timeout", 30.0):
                raise FailedError(FAILED_TO_CONTROL)
            ahead = compose(inverse(target), self._pose())
            # Towards a point on the axis of the dock, in front of the robot.
            off = math.atan2(-ahead[1], 0.3) - ahead[2]
            self._send(min(0.15, 0.05 - 0.5 * ahead[0]), 2.0 * off)
            yield
        start = self.now()
        while not self._charges:
            self._say(goal, WAITING)
            if self.now() - start > self.value("wait_charge_timeout", 5.0):
                raise FailedError(FAILED_TO_CHARGE)
            yield
        self._send(0.0, 0.0)

    def _undocking(self) -> Generator[None, None, None]:
        offset = self.value(f"{PLUGIN}.staging_x_offset", -0.7)
        target = compose(self._pose(), (offset, 0.0, 0.0))
        while True:
            ahead = compose(inverse(target), self._pose())
            if ahead[0] < self.value("undock_linear_tolerance", 0.05):
                break
            # Backwards, on the axis of the dock.
            self._send(-0.15, 2.0 * (math.atan2(ahead[1], 0.3) - ahead[2]))
            yield
        self._send(0.0, 0.0)
        while self._charges:
            yield


class Route(Worker):
    """route_server on a graph that is a chain of nodes."""

    def __init__(self, context: Any, frames: Buffer) -> None:
        # The default of tracker_update_rate.
        super().__init__("route_server", context, 50.0)
        self.frames = frames
        self.nodes: dict[int, tuple[float, float]] = {}
        self.reached: list[int] = []

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._graph = self.create_publisher(MarkerArray, "route_graph", LATCHED)
        self._compute = ActionServer(self, ComputeRoute, "compute_route", self._route)
        self._track = ActionServer(
            self, ComputeAndTrackRoute, "compute_and_track_route", self._tracked
        )
        return super().on_configure(state)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        self._graph.publish(MarkerArray(markers=[Marker(id=i) for i in self.nodes]))
        return super().on_activate(state)

    def _chain(self, request: Any, message: Any) -> list[int]:
        """Fill a message with the route, and return its nodes."""
        ids = [i for i in self.nodes if request.start_id <= i <= request.goal_id]
        message.path.header.frame_id = self.value("route_frame", "map")
        for a, b in itertools.pairwise(ids):
            (ax, ay), (bx, by) = self.nodes[a], self.nodes[b]
            message.route.edges.append(RouteEdge(edgeid=10 * a + b))
            # The default of path_density.
            count = max(1, math.ceil(math.dist((ax, ay), (bx, by)) / 0.05))
            for k in range(count):
                pose = PoseStamped()
                x, y = ax + (bx - ax) * k / count, ay + (by - ay) * k / count
                set_pose(pose.pose, (x, y, math.atan2(by - ay, bx - ax)))
                message.path.poses.append(pose)
        message.route.nodes = [RouteNode(nodeid=i) for i in ids]
        return ids

    async def _route(self, goal: Any) -> ComputeRoute.Result:
        result = ComputeRoute.Result()
        self._chain(goal.request, result)
        goal.succeed()
        return result

    async def _tracked(self, goal: Any) -> ComputeAndTrackRoute.Result:
        await self.run(self._tracking(goal))
        goal.succeed()
        return ComputeAndTrackRoute.Result()

    def _tracking(self, goal: Any) -> Generator[None, None, None]:
        feedback = ComputeAndTrackRoute.Feedback(rerouted=True)
        ids = self._chain(goal.request, feedback)
        for last, following in zip([0, *ids], ids, strict=False):
            feedback.last_node_id, feedback.next_node_id = last, following
            goal.publish_feedback(feedback)
            feedback.rerouted = False
            radius = BOUNDARY_M if following in (ids[0], ids[-1]) else RADIUS_M
            while True:
                pose = self.frames.lookup(
                    self.value("route_frame", "map"),
                    self.value("base_frame", "base_link"),
                )
                if pose and math.dist(pose[:2], self.nodes[following]) <= radius:
                    break
                yield
            self.reached.append(following)


class Behaviors(Worker):
    """behavior_server: spin and backup, which behavior trees use for recoveries."""

    def __init__(self, context: Any, stamped: bool, frames: Buffer) -> None:
        # The default of cycle_frequency.
        super().__init__(
            "behavior_server", context, 10.0, enable_stamped_cmd_vel=stamped
        )
        self.frames = frames

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        self._velocity = Velocity(self, "cmd_vel_nav", 1)
        self._spin_action = ActionServer(self, Spin, "spin", self._spin)
        self._back_up_action = ActionServer(self, BackUp, "backup", self._back_up)
        return super().on_configure(state)

    async def _spin(self, goal: Any) -> Spin.Result:
        return await self._recover(goal, Spin.Result(), self._turning(goal))

    async def _back_up(self, goal: Any) -> BackUp.Result:
        return await self._recover(goal, BackUp.Result(), self._reversing(goal))

    async def _recover(
        self, goal: Any, result: Any, job: Generator[None, None, int]
    ) -> Any:
        start = self.now()
        result.error_code = await self.run(job)
        nanoseconds = round(1e9 * (self.now() - start))
        spent = result.total_elapsed_time
        spent.sec, spent.nanosec = divmod(nanoseconds, 10**9)
        (goal.abort if result.error_code else goal.succeed)()
        return result

    def _pose(self) -> Planar:
        found = self.frames.lookup(
            self.given("local_frame"), self.given("robot_base_frame")
        )
        assert found is not None
        return found

    def _send(self, speed: float, turn: float) -> None:
        command = TwistStamped()
        command.header.stamp = self.get_clock().now().to_msg()
        command.twist.linear.x, command.twist.angular.z = speed, turn
        self._velocity.publish(command)

    def _late(self, goal: Any) -> Callable[[], bool]:
        """Return whether the time that a goal allows is over."""
        allowed = goal.request.time_allowance
        end = self.now() + allowed.sec + 1e-9 * allowed.nanosec
        return lambda: self.now() > end

    def _turning(self, goal: Any) -> Generator[None, None, int]:
        """Turn on the spot, with the defaults of Nav2's parameters."""
        angle, is_late = goal.request.target_yaw, self._late(goal)
        last, turned, code = self._pose()[2], 0.0, 0
        while (left := abs(angle) - abs(turned)) >= 1e-6:
            if is_late():
                code = SPIN_TIMEOUT
                break
            speed = min(max(math.sqrt(2 * 3.2 * left), 0.4), 1.0)
            self._send(0.0, math.copysign(speed, angle))
            yield
            now = self._pose()[2]
            turned += math.remainder(now - last, 2 * math.pi)
            last = now
            goal.publish_feedback(Spin.Feedback(angular_distance_traveled=turned))
        self._send(0.0, 0.0)
        return code

    def _reversing(self, goal: Any) -> Generator[None, None, int]:
        """Drive backwards."""
        target, is_late = goal.request.target, self._late(goal)
        if target.y or target.z:
            return BACK_UP_INVALID_INPUT
        start, code = self._pose()[:2], 0
        while (gone := math.dist(start, self._pose()[:2])) < abs(target.x):
            if is_late():
                code = BACK_UP_TIMEOUT
                break
            goal.publish_feedback(BackUp.Feedback(distance_traveled=gone))
            self._send(-abs(goal.request.speed), 0.0)
            yield
        self._send(0.0, 0.0)
        return code


class Docks(Bringup):
    """A bring-up with these servers, and a behavior tree that uses them."""

    def __init__(self, parameters: str, stamped: bool) -> None:
        super().__init__(parameters, stamped)
        self.docking = Docking(self.context, stamped, self.frames)
        self.route = Route(self.context, self.frames)
        self.behaviors = Behaviors(self.context, stamped, self.frames)
        # The simulator locates the robot here.
        self.servers = [s for s in self.servers if s is not self.amcl]
        more = [self.docking, self.route, self.behaviors]
        self.servers += more
        for node in more:
            self._executor.add_node(node)
        self._stepper = self.user.create_client(
            StepSimulation, "/botyard/step_simulation"
        )
        self._is_paused = False

    def pause(self) -> None:
        """Pause the simulation; from here on `wait` steps it.

        Each node works through a step before the next one: a busy machine would delay the
        commands of a robot that drives on.
        """
        paused = SimulationState(state=PAUSED)
        name = "/botyard/set_simulation_state"
        answer = self.call(name, SetSimulationState, state=paused)
        assert answer.result.result == OK, answer
        self._is_paused = True

    def wait(self, holds: Callable[[], Any], what: Any) -> Any:
        """Spin until a value is true, and return it; step a paused simulation."""
        if not self._is_paused:
            return super().wait(holds, what)
        end = self._clock()[1] + LONGEST_S
        while not (value := holds()):
            assert self._clock()[1] < end, what() if callable(what) else what
            self._step()
        return value

    def _clock(self) -> tuple[float, float]:
        """Return the least and the greatest time that a node or the transforms have, s."""
        times = [node.now() for node in self.servers]
        times.append(self.frames.newest(self.monitor.given("base_frame_id")))
        return min(times), max(times)

    def _step(self) -> None:
        """Step the simulation once, until all nodes have worked."""
        smoother, monitor = self.smoother, self.monitor
        before = self._clock()[1]
        sent, taken = smoother.sent, monitor.passed + monitor.stopped
        while self._clock()[0] <= before:
            done = self._stepper.call_async(StepSimulation.Request(steps=1))
            super().wait(done.done, "no step")
            # A time that got lost comes again with the next step.
            end = time.monotonic() + 1.0
            while self._clock()[0] <= before and time.monotonic() < end:
                self._executor.spin_once(timeout_sec=0.01)

        def has_worked() -> bool:
            new = monitor.passed + monitor.stopped - taken
            return new >= smoother.sent - sent and not any(
                timer.is_ready() for node in self.servers for timer in node.timers
            )

        super().wait(has_worked, "a node does not work")

    def ask(self, action: str, kind: Any, goal: Any, take: Any = None) -> Any:
        """Send a goal, and return the future of its result."""
        client = ActionClient(self.user, kind, action)
        self.wait(client.server_is_ready, f"no {action}")
        sent = client.send_goal_async(goal, take)
        self.wait(sent.done, f"no answer of {action}")
        return sent.result().get_result_async()

    def work(self, dock: Planar) -> dict[str, Any]:
        """Follow a route to the dock's staging pose, dock, charge and undock."""
        truths: list[Odometry] = []
        self.user.create_subscription(
            Odometry, "base_pose_ground_truth", truths.append, 10
        )
        self.wait(lambda: truths and self.frames.lookup("map", "base_link"), "no tf")
        sx, sy = planar(truths[-1].pose.pose)[:2]
        end = compose(dock, (-1.5, 0.0, 0.0))
        self.route.nodes = {1: (sx, sy), 2: (sx, end[1]), 3: (end[0], end[1])}
        request = {"start_id": 1, "goal_id": 3}
        planned = self.ask("compute_route", ComputeRoute, ComputeRoute.Goal(**request))
        self.wait(planned.done, "no route")
        paths: list[Path] = []
        said: list[int] = []

        def take(message: Any) -> None:
            said.append(message.feedback.next_node_id)
            paths.append(message.feedback.path)

        tracked = self.ask(
            "compute_and_track_route",
            ComputeAndTrackRoute,
            ComputeAndTrackRoute.Goal(**request),
            take,
        )
        self.wait(lambda: paths, "no route is tracked")
        assert len(planned.result().result.path.poses) == len(paths[0].poses)
        goal = FollowPath.Goal(path=paths[0], controller_id="FollowPath")
        followed = self.ask("follow_path", FollowPath, goal)
        self.wait(
            lambda: tracked.done() and followed.done(),
            lambda: (self.route.reached, planar(truths[-1].pose.pose)),
        )

        wanted = DockRobot.Goal(use_dock_id=False, dock_type=PLUGIN)
        wanted.dock_pose.header.frame_id = "map"
        set_pose(wanted.dock_pose.pose, dock)
        docked = self.ask("dock_robot", DockRobot, wanted)
        self.wait(
            docked.done,
            lambda: (self.docking.states, planar(truths[-1].pose.pose), dock),
        )
        at = planar(truths[-1].pose.pose)
        result = docked.result().result
        current = self.docking.currents[-1]
        undocked = self.ask("undock_robot", UndockRobot, UndockRobot.Goal())
        self.wait(
            undocked.done,
            lambda: (planar(truths[-1].pose.pose), self.docking.currents[-3:]),
        )
        away = planar(truths[-1].pose.pose)
        return {
            "recovered": self.recover(truths),
            "may_skip_checks": hasattr(BackUp.Goal(), "disable_collision_checks"),
            "said": said,
            "reached": self.route.reached,
            "docked": [result.success, result.error_code],
            "states": self.docking.states,
            "current": current,
            "apart": math.dist(at[:2], dock[:2]),
            "undocked": undocked.result().result.success,
            "away": math.dist(away[:2], dock[:2]),
            "commands": self.docking.commands,
        }

    def recover(self, truths: list[Odometry]) -> list[Planar]:
        """Back up and spin as Nav2's default behavior tree asks; return how far each moved
        the robot, in the frame of its start. Then ask for what fails, with Nav2's codes.
        """
        self.pause()
        ten = Duration(sec=10)
        back = {"target": Point(x=0.3), "speed": 0.15, "time_allowance": ten}
        spin = {"target_yaw": 1.57, "time_allowance": ten}
        short = {"time_allowance": Duration(nanosec=200_000_000)}
        moves = []
        for action, kind, fields, code in (
            ("backup", BackUp, back, 0),
            ("spin", Spin, spin, 0),
            ("backup", BackUp, {**back, "target": Point(y=1.0)}, BACK_UP_INVALID_INPUT),
            ("backup", BackUp, {**back, **short}, BACK_UP_TIMEOUT),
            ("spin", Spin, {**spin, **short}, SPIN_TIMEOUT),
        ):
            goal = kind.Goal(**fields)
            if hasattr(goal, "disable_collision_checks"):
                # Kilted's field. This server has no costmap.
                goal.disable_collision_checks = True
            self.wait(lambda: stands(truths[-1]), "it drives on")
            start = planar(truths[-1].pose.pose)
            gone: list[float] = []

            def take(message: Any, gone: list[float] = gone) -> None:
                (name,) = message.feedback.get_fields_and_field_types()
                gone.append(getattr(message.feedback, name))

            ended = self.ask(action, kind, goal, take)
            self.wait(ended.done, lambda: planar(truths[-1].pose.pose))
            self.wait(lambda: stands(truths[-1]), "it drives on")
            found = ended.result()
            assert found.result.error_code == code, (action, found)
            status = GoalStatus.STATUS_ABORTED if code else GoalStatus.STATUS_SUCCEEDED
            assert found.status == status, (action, found)
            if not code:
                spent = found.result.total_elapsed_time
                assert spent.sec < 10 and spent.sec + spent.nanosec > 0, spent
                assert gone == sorted(gone) and len(gone) > 10, gone
                moves.append(compose(inverse(start), planar(truths[-1].pose.pose)))
        return moves


def stands(odometry: Odometry) -> bool:
    """Return whether the robot stands still."""
    twist = odometry.twist.twist
    return abs(twist.linear.x) < 1e-3 and abs(twist.angular.z) < 1e-3


def main(parameters: str, stamped: bool, dock: str) -> dict[str, Any]:
    """Bring the nodes up, drive, and return what was seen."""
    nav2 = Docks(parameters, stamped)
    states = nav2.start()
    x, y, th = map(float, dock.split())
    return {**nav2.work((x, y, th)), "active": states}


if __name__ == "__main__":
    found = main(sys.argv[1], sys.argv[2] == "stamped", sys.argv[3])
    print("RESULT " + json.dumps(found), flush=True)
    os._exit(0)
