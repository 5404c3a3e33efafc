"""Clients of Nav2's actions, as fleet programs are: ``rclpy_nav2.py WHAT JSON-ARGUMENTS``,
as rclpy_peer.py.

Types are nav2_msgs as rosidl compiled its definitions. Codes come from its files
(github.com/ros-navigation/navigation2, branch jazzy: nav2_msgs/action).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from botyard_msgs.srv import SetSpeed
from geometry_msgs.msg import PoseStamped
from nav2_msgs import action as nav2
from nav2_msgs.action import ComputePathToPose, FollowPath, NavigateToPose
from nav_msgs.msg import Odometry, Path
from rclpy.action import ActionClient
from rclpy_peer import Peer
from ros2_scenes import OK, PLAYING, hash_of, run, set_state
from simulation_interfaces.srv import (
    DeleteEntity,
    LoadWorld,
    ResetSimulation,
    SpawnEntity,
)
from std_srvs.srv import Trigger

SUCCEEDED = GoalStatus.STATUS_SUCCEEDED
CANCELED, ABORTED = GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_ABORTED


def pose_at(x: float, y: float, th: float = 0.0, frame: str = "map") -> PoseStamped:
    """Return a pose as a client writes it."""
    pose = PoseStamped()
    pose.header.frame_id = frame
    pose.pose.position.x, pose.pose.position.y = x, y
    pose.pose.orientation.z, pose.pose.orientation.w = (
        math.sin(th / 2),
        math.cos(th / 2),
    )
    return pose


class Goal:
    """A goal that was sent: its answer, feedback and result."""

    def __init__(self, peer: Peer, client: ActionClient, goal: Any) -> None:
        self._peer = peer
        self.feedback: list[Any] = []
        sent = client.send_goal_async(goal, lambda m: self.feedback.append(m.feedback))
        self.handle = peer.done(sent, "no answer to a goal")
        assert self.handle.accepted
        self._result = self.handle.get_result_async()

    @property
    def is_open(self) -> bool:
        """Whether the goal has not ended."""
        return not self._result.done()

    def ended(self) -> tuple[int, Any]:
        """Return the state and the result, when the goal has ended."""
        found = self._peer.done(self._result, lambda: self.feedback[-1:])
        return found.status, found.result


class Robot:
    """A robot's actions and its true pose."""

    def __init__(self, peer: Peer, name: str) -> None:
        self.name, self._peer = name, peer
        self._odom = peer.listen(f"/{name}/base_pose_ground_truth", Odometry)
        self.plans = peer.listen(f"/{name}/plan", Path)
        self._clients: dict[str, ActionClient] = {}

    def send(self, action: str, kind: Any, **fields: Any) -> Goal:
        """Send a goal, when the action's server is there."""
        if action not in self._clients:
            client = ActionClient(self._peer.node, kind, f"/{self.name}/{action}")
            self._peer.wait(client.server_is_ready, f"no {action} of {self.name}")
            self._clients[action] = client
        return Goal(self._peer, self._clients[action], kind.Goal(**fields))

    def run(self, action: str, kind: Any, **fields: Any) -> tuple[int, Any]:
        """Return the state and the result of a goal."""
        return self.send(action, kind, **fields).ended()

    def go(self, x: float, y: float, th: float = 0.0, frame: str = "map") -> Goal:
        """Send a goal of navigate_to_pose."""
        pose = pose_at(x, y, th, frame)
        return self.send("navigate_to_pose", NavigateToPose, pose=pose)

    @property
    def poses(self) -> list[Any]:
        """True poses, with the times of their arrival."""
        return self._odom

    @property
    def state(self) -> Odometry:
        """Last message of the true pose."""
        self._peer.wait(lambda: self._odom, f"no pose of {self.name}")
        return self._odom[-1][1]

    @property
    def place(self) -> tuple[float, float]:
        """True position, m."""
        at = self.state.pose.pose.position
        return at.x, at.y

    def stands(self) -> bool:
        """Return whether the robot does not move."""
        twist = self.state.twist.twist
        return abs(twist.linear.x) + abs(twist.angular.z) < 1e-3

    def waits(self, holds: Callable[[], Any], what: Any = "") -> Any:
        """Spin until a value is true."""
        return self._peer.wait(holds, what)


def near(place: tuple[float, float], goal: tuple[float, float]) -> None:
    """Check that a place is within Nav2's default tolerance of a goal, 0.25 m."""
    assert math.dist(place, goal) < 0.25, (place, goal)


def types(peer: Peer, robot: str) -> list[str]:
    """Check the hashes of all actions' feedback, and return the names of the actions."""
    found = []
    for name in (
        "NavigateToPose",
        "ComputePathToPose",
        "FollowPath",
        "NavigateThroughPoses",
    ):
        if not hasattr(nav2, name):
            continue
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:]
        topic = f"/{robot}/{snake}/_action/feedback"
        peer.wait(lambda t=topic: peer.node.get_publishers_info_by_topic(t), topic)
        (end,) = peer.node.get_publishers_info_by_topic(topic)
        kind = f"nav2_msgs/action/{name}_FeedbackMessage"
        assert end.topic_type == kind
        assert str(end.topic_type_hash) == hash_of(kind), kind
        found.append(snake)
    return found


def fleet(names: list[str]) -> dict[str, Any]:
    """Both robots drive at once: goals, feedback, results, a cancel, a preemption."""
    with Peer("fleet", use_sim_time=True) as peer:
        found = types(peer, names[0])
        robots = [Robot(peer, name) for name in names]
        starts = [robot.place for robot in robots]
        goals = [(x, y + 1.5) for x, y in starts]
        sent = [r.go(*g, math.pi / 2) for r, g in zip(robots, goals, strict=True)]
        lefts = []
        for robot, goal, one in zip(robots, goals, sent, strict=True):
            status, result = one.ended()
            assert (status, result.error_code) == (SUCCEEDED, 0), result
            near(robot.place, goal)
            left = [f.distance_remaining for f in one.feedback]
            assert len(left) > 10 and 1.0 < left[0] < 2.0 and left[-1] < 0.3, left
            assert all(b < a + 0.05 for a, b in itertools.pairwise(left)), left
            assert one.feedback[-1].current_pose.header.frame_id == "map"
            assert one.feedback[-1].navigation_time.sec >= 2
            assert robot.plans[-1][1].header.frame_id == "map"
            lefts.append(left)

        # One is canceled, and the other one drives on.
        ann, bob = robots
        first, other = ann.go(*starts[0]), bob.go(*starts[1])
        peer.wait(lambda: len(first.feedback) > 5 and not ann.stands(), "no feedback")
        answer = peer.done(first.handle.cancel_goal_async(), "no answer to a cancel")
        assert len(answer.goals_canceling) == 1
        assert first.ended()[0] == CANCELED
        peer.wait(ann.stands, "it drives after a cancel")
        assert math.dist(ann.place, starts[0]) > 0.3
        assert other.ended()[0] == SUCCEEDED
        near(bob.place, starts[1])

        # A second goal takes the place of the first one.
        old = ann.go(*goals[0])
        peer.wait(lambda: old.feedback, "no feedback")
        new = ann.go(*starts[0], 1.0)
        status, result = old.ended()
        # As nav2_util's simple_action_server.hpp: aborted, with an empty result.
        assert (status, result.error_code) == (ABORTED, 0), result
        assert new.ended()[0] == SUCCEEDED
        near(ann.place, starts[0])
        return {"actions": found, "left": [len(left) for left in lefts]}


def unreachable(
    name: str, wall: list[float], outside: list[float], closet: list[float]
) -> dict[str, Any]:
    """Goals that no path leads to, with Nav2's codes."""
    codes = {}
    with Peer("failing", use_sim_time=True) as peer:
        robot = Robot(peer, name)
        before = robot.place
        for what, place, frame in (
            ("wall", wall, "map"),
            ("outside", outside, "map"),
            ("closet", closet, "map"),
            ("frame", closet, "odom"),
        ):
            status, result = robot.go(*place, frame=frame).ended()
            assert status == ABORTED and result.error_msg, (what, result)
            pose = pose_at(*place, frame=frame)
            ended, plan = robot.run(
                "compute_path_to_pose", ComputePathToPose, goal=pose
            )
            assert ended == ABORTED and plan.error_msg and not plan.path.poses
            path = Path(poses=[pose_at(*before), pose_at(*place)])
            path.header.frame_id = frame
            ended, followed = robot.run("follow_path", FollowPath, path=path)
            assert ended == ABORTED and followed.error_msg, (what, followed)
            codes[what] = [result.error_code, plan.error_code, followed.error_code]
        ended, followed = robot.run("follow_path", FollowPath)
        codes["empty"] = [followed.error_code]
        assert ended == ABORTED and math.dist(robot.place, before) < 0.01
    return codes


def refused(robot: Robot, place: tuple[float, float]) -> None:
    """Send goals that are none, and check that each is refused at once."""
    x, y = place
    path = Path(poses=[pose_at(x, y), pose_at(math.inf, y)])
    path.header.frame_id = "map"
    sent = [
        robot.go(math.nan, y),
        robot.go(x, 1e30),
        robot.go(x, -math.inf),
        robot.go(x, y, math.nan),
        robot.go(x, y, frame="odom"),
        robot.send("follow_path", FollowPath, path=path),
        robot.send("follow_path", FollowPath),
    ]
    for one in sent:
        status, result = one.ended()
        assert status == ABORTED and result.error_code and result.error_msg, result


def disturbed(names: list[str], starts: list[tuple[float, float]]) -> list[str]:
    """Disturb goals of two robots by refused goals, a pause, cancels, new goals, a reset,
    a new world and the removal of a robot; return how the goals ended. The robots have
    starts in the world.
    """
    with Peer("disturbing", use_sim_time=True) as peer:
        ann, bob = (Robot(peer, name) for name in names)
        (ax, ay), (bx, by) = starts
        there, other = ann.go(ax, ay + 1.5), bob.go(bx, by + 1.5)
        peer.wait(lambda: there.feedback and other.feedback, "no feedback")
        refused(ann, (ax, ay))
        assert there.is_open and other.is_open
        peer.wait(lambda: not ann.stands(), "it does not drive")

        # Without steps.
        assert peer.call("/botyard/pause", Trigger).success
        second = ann.go(ax, ay)
        assert there.ended()[0] == ABORTED
        peer.done(second.handle.cancel_goal_async())
        assert second.ended()[0] == CANCELED
        third = ann.go(ax, ay + 1.0)
        refused(ann, (ax, ay))
        assert third.is_open and other.is_open
        assert peer.call("/botyard/resume", Trigger).success
        peer.wait(lambda: third.feedback and not ann.stands(), "no feedback")

        said = []
        for name, kind, fields in (
            ("reset_simulation", ResetSimulation, {}),
            ("load_world", LoadWorld, {"uri": "botyard://office"}),
        ):
            goals = [r.go(r.place[0], r.place[1] + 0.5) for r in (ann, bob)]
            goal, mate = goals
            peer.wait(lambda g=goal, m=mate: g.feedback and m.feedback, "no feedback")
            # The world is read meanwhile.
            peer.call("/botyard/set_speed", SetSpeed, factor=0.05)
            answer = peer.call(f"/botyard/{name}", kind, **fields)
            assert answer.result.result == OK, answer
            for one in goals:
                status, result = one.ended()
                assert status == ABORTED, (name, status)
                said.append(result.error_msg)
            peer.call("/botyard/set_speed", SetSpeed, factor=5.0)
            if kind is LoadWorld:
                # It leaves the world stopped.
                set_state(peer, PLAYING)
            seen = [len(robot.poses) for robot in (ann, bob)]
            peer.wait(
                lambda s=seen: min(len(ann.poses) - s[0], len(bob.poses) - s[1]) > 20,
                "no poses",
            )
            for robot, start in zip((ann, bob), starts, strict=True):
                assert math.dist(robot.place, start) < 1e-6, (name, robot.place, start)

        spawned = peer.call(
            "/botyard/spawn_entity", SpawnEntity, name="cid", uri="botyard://p3dx"
        )
        assert spawned.result.result == OK, spawned
        cid = Robot(peer, "cid")
        # Along a corridor of the office.
        last = cid.go(-0.5, 13.9)
        peer.wait(
            lambda: last.feedback, lambda: (last.is_open or last.ended(), cid.place)
        )
        deleted = peer.call("/botyard/delete_entity", DeleteEntity, entity="cid")
        assert deleted.result.result == OK, deleted
        status, result = last.ended()
        assert status == ABORTED, status
        return [*said, result.error_msg]


def path(name: str, there: list[float], spacing: float) -> dict[str, Any]:
    """Plan, then follow the path with poses at a spacing, as Nav2's behavior tree does;
    back by navigate_through_poses, where it is offered.
    """
    with Peer("tree", use_sim_time=True) as peer:
        robot = Robot(peer, name)
        start = robot.place
        goal = pose_at(*there, -1.0)
        status, plan = robot.run("compute_path_to_pose", ComputePathToPose, goal=goal)
        assert (status, plan.error_code) == (SUCCEEDED, 0), plan
        corners = [(p.pose.position.x, p.pose.position.y) for p in plan.path.poses]
        assert corners[-1] == tuple(there[:2]) and math.dist(corners[0], start) < 0.01
        other = pose_at(*there), pose_at(*start)
        status, back = robot.run(
            "compute_path_to_pose",
            ComputePathToPose,
            start=other[0],
            goal=other[1],
            use_start=True,
        )
        assert status == SUCCEEDED
        lengths = [
            sum(
                math.dist(
                    (a.pose.position.x, a.pose.position.y),
                    (b.pose.position.x, b.pose.position.y),
                )
                for a, b in itertools.pairwise(one.path.poses)
            )
            for one in (plan, back)
        ]

        dense = Path(header=plan.path.header)
        for a, b in itertools.pairwise(corners):
            count = max(1, math.ceil(math.dist(a, b) / spacing))
            for k in range(count):
                share = k / count
                x, y = (u + share * (v - u) for u, v in zip(a, b, strict=True))
                dense.poses.append(pose_at(x, y, frame=""))
        dense.poses.append(plan.path.poses[-1])
        sent = robot.send(
            "follow_path",
            FollowPath,
            path=dense,
            controller_id="FollowPath",
            goal_checker_id="general_goal_checker",
        )
        places = []
        peer.wait(
            lambda: places.append(robot.place) or sent._result.done(),
            lambda: sent.feedback[-1:],
        )
        status, result = sent.ended()
        assert (status, result.error_code) == (SUCCEEDED, 0), result
        near(robot.place, (there[0], there[1]))
        left = [f.distance_to_goal for f in sent.feedback]
        assert left[0] > 0.9 * lengths[0] and left[-1] < 0.3
        assert max(f.speed for f in sent.feedback) > 0.2
        apart = max(min(math.dist(p, c) for c in corners) for p in places)
        passed = 0
        if hasattr(nav2, "NavigateThroughPoses"):
            kind = nav2.NavigateThroughPoses
            middle = corners[len(corners) // 2]
            poses = [pose_at(*middle), pose_at(*start)]
            through = robot.send("navigate_through_poses", kind, poses=poses)
            assert through.ended()[0] == SUCCEEDED
            near(robot.place, start)
            passed = len({f.number_of_poses_remaining for f in through.feedback})
        return {
            "lengths": lengths,
            "poses": len(dense.poses),
            "apart": apart,
            "passed": passed,
        }


def all_actions(
    names: list[str],
    starts: list[tuple[float, float]],
    places: list[Any],
    there: list[float],
) -> dict[str, Any]:
    """Use the actions of two robots; the last function replaces the world."""
    return {
        "fleet": fleet(names),
        "codes": unreachable(names[0], *places),
        "path": path(names[1], there, 0.01),
        "ends": disturbed(names, starts),
    }


if __name__ == "__main__":
    run(Peer, globals())
