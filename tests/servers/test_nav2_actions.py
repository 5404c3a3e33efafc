"""Actions of Nav2 on the simulator's planner, by a recorder in place of a transport."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from botyard.app.compose import compose
from botyard.control import USER, ClearMap, Reset, Stop, UnloadWorld
from botyard.geometry import Pose
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.nav2 import MAX_PLAN_POSES
from botyard.model.mapbuilder import MapBuilder
from botyard.protocols.ros_messages import nav2
from botyard.protocols.ros_messages.actions import Status
from botyard.protocols.ros_messages.messages import Messages, yaw_of
from botyard.protocols.ros_messages.nav2 import Code
from botyard.protocols.ros_messages.typenames import service_name
from botyard.protocols.ros_messages.types import Types, types
from botyard.sim.simulation import Simulation
from tests.servers.test_rosgraph import Recorder, resting

TO_POSE = "NavigateToPose"


class Client:
    """Client of the actions of one robot."""

    def __init__(self, *, distro: str = "jazzy", has_nav2: bool = True) -> None:
        walls = MapBuilder("rooms")
        walls.rectangle(0.0, 0.0, 10.0, 6.0)
        walls.line((5.0, 0.0), (5.0, 4.0))
        self.sim = Simulation(walls.scene(), odometry_error="none")
        self.robot = self.sim.add_robot("p3dx", "ann", pose=(2.0, 2.0, 0.0))
        self.types: Types = types(distro)
        parts = self.parts = compose(self.sim)
        self.hub, self.control = parts.hub, parts.control
        self.graph = RosGraph(
            self.hub,
            parts.control,
            parts.maps.cells,
            self.types,
            has_nav2=has_nav2,
        )
        self.paper = Recorder()
        self.graph.add(self.paper)
        self._count = 0

    @property
    def offered(self) -> list[str]:
        return [s.name for m in self.graph._members.values() for s in m.services]

    def listen(self, topic: str) -> Any:
        paper = self.paper[topic]
        paper.is_wanted = True
        self.paper.changed()
        return paper

    def pose(self, x: float, y: float, th: float = 0.0, frame: str = "map") -> Any:
        messages = Messages(self.types)
        return self.types["geometry_msgs/PoseStamped"](
            messages.header(self.graph.stamp(), frame), messages.pose(Pose(x, y, th))
        )

    def ask(self, action: str, end: str, **fields: Any) -> Any:
        services = {s.name: s for m in self.graph._members.values() for s in m.services}
        service = services[f"/ann/{action}/_action/{end}"]
        kind = f"{service_name(service.type_name)}_Request"
        return service.serve(self.types.filled(kind, fields))

    def send(self, action: str, kind: str, **fields: Any) -> tuple[Any, Any]:
        """Send a goal; return its UUID and the future of its result."""
        self._count += 1
        goal = self.types.filled(f"nav2_msgs/action/{kind}_Goal", fields)
        uuid = self.types.filled(
            "unique_identifier_msgs/msg/UUID",
            {"uuid": np.full(16, self._count, np.uint8)},
        )
        assert self.ask(action, "send_goal", goal_id=uuid, goal=goal).accepted
        return uuid, asyncio.wrap_future(self.ask(action, "get_result", goal_id=uuid))

    async def until(self, ends: Callable[[], bool], seconds: float = 60.0) -> None:
        """Step until a condition holds, or fail."""
        for _ in range(round(seconds / self.sim.dt)):
            # Goals start in the loop, between two steps.
            await asyncio.sleep(0)
            if ends():
                return
            self.sim.step()
            self.graph.on_snapshot(0.0)
        raise AssertionError(f"not in {seconds} s: {self.robot.trip}")


def play(act: Callable[[Client], Any], **options: Any) -> None:
    async def run() -> None:
        client = Client(**options)
        client.hub.pause()
        try:
            await act(client)
        finally:
            client.graph.close()
            client.parts.close()

    asyncio.run(run())


def test_a_robot_navigates_to_a_pose_and_reports_its_progress() -> None:
    async def act(client: Client) -> None:
        feedback = client.listen("/ann/navigate_to_pose/_action/feedback")
        plan = client.listen("/ann/plan")
        _, result = client.send(
            "navigate_to_pose", TO_POSE, pose=client.pose(8, 2, 1.5)
        )
        await client.until(result.done)
        done = await result
        assert done.status == Status.SUCCEEDED
        assert (done.result.error_code, done.result.error_msg) == (0, "")
        x, y, th = client.robot.truth
        assert math.hypot(x - 8.0, y - 2.0) <= 0.2 and th == pytest.approx(1.5, abs=0.1)
        said = [m.message.feedback for m in feedback.sent]
        left = [one.distance_remaining for one in said]
        assert left[0] > 7.0 and left[-1] < 0.3
        assert all(b <= a + 0.05 for a, b in itertools.pairwise(left))
        assert said[-1].current_pose.header.frame_id == "map"
        assert said[-1].navigation_time.sec >= 10
        assert said[-1].number_of_recoveries == 0
        path = next(m.message for m in plan.sent if len(m.message.poses))
        points = [(p.pose.position.x, p.pose.position.y) for p in path.poses]
        assert points[-1] == (8.0, 2.0) and max(y for _, y in points) > 4.0
        gaps = [math.dist(a, b) for a, b in itertools.pairwise(points)]
        assert max(gaps) <= 0.1 + 1e-9

    play(act)


def test_a_goal_is_canceled_and_a_new_one_takes_its_place() -> None:
    async def act(client: Client) -> None:
        uuid, result = client.send("navigate_to_pose", TO_POSE, pose=client.pose(8, 2))
        await client.until(lambda: client.robot.truth.x > 2.5)
        info = client.types.filled("action_msgs/msg/GoalInfo", {"goal_id": uuid})
        assert (
            client.ask("navigate_to_pose", "cancel_goal", goal_info=info).return_code
            == 0
        )
        await client.until(result.done)
        assert (await result).status == Status.CANCELED and client.robot.trip is None
        await client.until(lambda: resting(client.sim))

        _, first = client.send("navigate_to_pose", TO_POSE, pose=client.pose(8, 2))
        await client.until(lambda: client.robot.trip is not None)
        _, second = client.send(
            "navigate_through_poses",
            "NavigateThroughPoses",
            poses=[client.pose(3, 3), client.pose(3, 5)],
        )
        await client.until(first.done)
        done = await first
        # As Nav2's servers: with an empty result.
        assert done.status == Status.ABORTED and done.result.error_code == 0
        await client.until(second.done)
        assert (await second).status == Status.SUCCEEDED
        assert client.robot.truth.y == pytest.approx(5.0, abs=0.2)

    play(act)


def test_goals_that_cannot_be_reached_are_aborted_with_the_code_of_nav2() -> None:
    async def act(client: Client) -> None:
        for pose, code, text in (
            (client.pose(5.0, 2.0), Code.GOAL_OCCUPIED, "does not fit at the goal"),
            (client.pose(8.0, 2.0, frame="odom"), Code.TF_ERROR, 'frame "map"'),
            (client.pose(math.nan, 2.0), Code.UNKNOWN, "finite"),
        ):
            _, result = client.send("navigate_to_pose", TO_POSE, pose=pose)
            await client.until(result.done)
            done = await result
            assert done.status == Status.ABORTED and done.result.error_code == code
            assert text in done.result.error_msg

        _, result = client.send("navigate_to_pose", TO_POSE, pose=client.pose(8, 2))
        await client.until(lambda: client.robot.trip is not None)
        client.robot.set_controller("wander")
        await client.until(result.done)
        assert "another controller" in (await result).result.error_msg
        assert "ann" in client.sim.core.programs.driving, "it goes on"
        _, result = client.send("navigate_to_pose", TO_POSE, pose=client.pose(8, 2))
        await client.until(lambda: client.robot.trip is not None)
        client.sim.remove_robot("ann")
        await client.until(result.done)
        assert (await result).status == Status.ABORTED

    play(act)


def test_a_path_is_computed_without_driving() -> None:
    async def act(client: Client) -> None:
        for fields, first in (
            ({}, (2.0, 2.0)),
            ({"use_start": True, "start": client.pose(1, 1)}, (1.0, 1.0)),
        ):
            goal = client.pose(8, 2, -1.0)
            _, result = client.send(
                "compute_path_to_pose", "ComputePathToPose", goal=goal, **fields
            )
            await client.until(result.done)
            done = await result
            assert done.status == Status.SUCCEEDED and done.result.error_code == 0
            poses = [p.pose for p in done.result.path.poses]
            assert (poses[0].position.x, poses[0].position.y) == first
            assert yaw_of(poses[-1].orientation) == pytest.approx(-1.0)
            assert client.robot.trip is None
        for goal, code in (
            (client.pose(5, 2), Code.GOAL_OCCUPIED),
            (client.pose(8, 2, frame="odom"), Code.PLANNER_TF_ERROR),
        ):
            _, result = client.send(
                "compute_path_to_pose", "ComputePathToPose", goal=goal
            )
            await client.until(result.done)
            assert (await result).result.error_code == code

    play(act)


def path_of(client: Client, *corners: tuple[float, float], frame: str = "map") -> Any:
    """Return a nav_msgs/Path with a pose every 5 cm."""
    poses = [
        client.pose(*(np.array(a) + share * (np.array(b) - a)))
        for a, b in itertools.pairwise(corners)
        for share in np.arange(0.0, 1.0, 0.05 / math.dist(a, b))
    ]
    path = client.types.filled(
        "nav_msgs/msg/Path", {"poses": [*poses, client.pose(*corners[-1], 1.5)]}
    )
    path.header = Messages(client.types).header(client.graph.stamp(), frame)
    return path


def test_a_path_is_followed_to_its_end() -> None:
    async def act(client: Client) -> None:
        feedback = client.listen("/ann/follow_path/_action/feedback")
        plan = client.listen("/ann/plan")
        corners = (2.0, 2.0), (2.0, 5.2), (8.0, 5.2), (8.0, 2.0)
        _, result = client.send(
            "follow_path", "FollowPath", path=path_of(client, *corners)
        )
        await client.until(result.done)
        done = await result
        assert done.status == Status.SUCCEEDED and done.result.error_code == 0
        assert client.robot.truth.th == pytest.approx(1.5, abs=0.1)
        said = [m.message.feedback for m in feedback.sent]
        assert (
            11.0 < said[0].distance_to_goal < 13.0 and said[-1].distance_to_goal < 0.3
        )
        assert max(one.speed for one in said) == pytest.approx(0.5, abs=0.05)
        followed = next(m.message for m in plan.sent if len(m.message.poses))
        # The corners are the path's, and the topic has a pose every 10 cm.
        assert len(followed.poses) == 32 + 60 + 32 + 1

    play(act)


def test_paths_that_cannot_be_followed_are_aborted_with_the_controllers_codes() -> None:
    async def act(client: Client) -> None:
        wall = path_of(client, (2.0, 2.0), (8.0, 2.0))
        huge = path_of(client, (2.0, 2.0), (3.0, 2.0))
        huge.poses = huge.poses * 600
        crooked = path_of(client, (2.0, 2.0), (3.0, 2.0))
        for k, pose in enumerate(crooked.poses):
            pose.pose.position.y += k % 2
        crooked.poses = crooked.poses * 100
        nowhere = path_of(client, (2.0, 2.0), (3.0, 2.0))
        nowhere.poses[3].pose.position.x = math.nan
        for path, code, text in (
            (wall, Code.NO_VALID_CONTROL, "through a wall"),
            (
                client.types.filled("nav_msgs/msg/Path", {}),
                Code.INVALID_PATH,
                "found 0",
            ),
            (huge, Code.INVALID_PATH, "found 12600"),
            (crooked, Code.INVALID_PATH, "path: expected a list of at most 1000"),
            (nowhere, Code.INVALID_PATH, "finite"),
            (
                path_of(client, (2.0, 2.0), (3.0, 2.0), frame="odom"),
                Code.CONTROLLER_TF_ERROR,
                'frame "map"',
            ),
        ):
            _, result = client.send("follow_path", "FollowPath", path=path)
            await client.until(result.done)
            done = await result
            assert done.status == Status.ABORTED and done.result.error_code == code
            assert text in done.result.error_msg
            assert not client.robot.trip

        client.sim.add_robot("p3dx", "bob", pose=(3.5, 2.0, 0.0))
        path = path_of(client, (2.0, 2.0), (4.5, 2.0))
        _, result = client.send("follow_path", "FollowPath", path=path)
        await client.until(result.done)
        done = await result
        assert done.result.error_code == Code.FAILED_TO_MAKE_PROGRESS
        assert client.robot.trip is None and client.robot.truth.x < 3.5

    play(act)


def test_the_codes_of_unreachable_goals_are_the_planners() -> None:
    async def act(client: Client) -> None:
        for pose, code in (
            (client.pose(5.0, 2.0), Code.GOAL_OCCUPIED),
            (client.pose(-3.0, 3.0), Code.NO_VALID_PATH),
        ):
            for action, kind, fields in (
                ("navigate_to_pose", TO_POSE, {"pose": pose}),
                ("navigate_through_poses", "NavigateThroughPoses", {"poses": [pose]}),
            ):
                _, result = client.send(action, kind, **fields)
                await client.until(result.done)
                assert (await result).result.error_code == code
        _, result = client.send(
            "navigate_through_poses",
            "NavigateThroughPoses",
            poses=[client.pose(3.0, 2.0), client.pose(4.0, 2.0, frame="odom")],
        )
        await client.until(result.done)
        assert (await result).result.error_code == Code.THROUGH_TF_ERROR

    play(act)


def test_humble_has_results_without_codes() -> None:
    async def act(client: Client) -> None:
        _, result = client.send("navigate_to_pose", TO_POSE, pose=client.pose(3, 2))
        await client.until(result.done)
        done = await result
        assert done.status == Status.SUCCEEDED and not hasattr(
            done.result, "error_code"
        )

    play(act, distro="humble")


def test_without_the_option_there_are_no_actions() -> None:
    async def act(client: Client) -> None:
        assert not any("navigate" in name for name in client.offered)

    play(act, has_nav2=False)
    assert "NavigateThroughPoses" not in nav2.actions("kilted")
    assert set(nav2.actions("humble")) == set(nav2.actions("jazzy"))
    assert "FollowPath" in nav2.actions("kilted")
    assert "FollowPath" not in nav2.actions("rolling")
    # Messages of errors are newer than their codes.
    assert nav2.actions("iron")["NavigateToPose"][1] == "uint16 error_code"
    assert "progress_checker_id" not in nav2.actions("humble")["FollowPath"][0]


async def driving(client: Client, x: float = 8.0) -> tuple[Any, Any]:
    """Send a goal and wait until the robot drives; return the UUID and the result."""
    uuid, result = client.send("navigate_to_pose", TO_POSE, pose=client.pose(x, 2))
    await client.until(lambda: client.robot.velocity.vx > 0.1)
    return uuid, result


def cancel(client: Client, uuid: Any) -> None:
    info = client.types.filled("action_msgs/msg/GoalInfo", {"goal_id": uuid})
    answer = client.ask("navigate_to_pose", "cancel_goal", goal_info=info)
    assert answer.return_code == 0


async def without_steps(result: Any) -> Any:
    """Return a result that must come although no step follows."""
    for _ in range(100):
        await asyncio.sleep(0)
        if result.done():
            return await result
    raise AssertionError("no result without steps")


def test_a_refused_goal_leaves_the_present_one() -> None:
    async def act(client: Client) -> None:
        uuid, result = await driving(client)
        program = client.sim.core.programs.all["ann"]
        empty = client.types.filled("nav_msgs/msg/Path", {})
        for action, kind, fields in (
            ("navigate_to_pose", TO_POSE, {"pose": client.pose(3, 2, frame="odom")}),
            ("navigate_to_pose", TO_POSE, {"pose": client.pose(math.nan, 2)}),
            ("navigate_to_pose", TO_POSE, {"pose": client.pose(3, 2, math.nan)}),
            ("navigate_to_pose", TO_POSE, {"pose": client.pose(1e6, 0)}),
            ("follow_path", "FollowPath", {"path": empty}),
        ):
            _, refused = client.send(action, kind, **fields)
            assert (await without_steps(refused)).status == Status.ABORTED
            assert not result.done()
            assert client.sim.core.programs.all["ann"] is program
        cancel(client, uuid)
        assert (await without_steps(result)).status == Status.CANCELED
        assert "ann" not in client.sim.core.programs.all

    play(act)


@pytest.mark.parametrize("far", [math.inf, math.nan, 1e300, 1e6, -31.0])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_that_are_no_place_on_the_map_have_codes(far: float) -> None:
    async def act(client: Client) -> None:
        floors = client.sim.core.floors
        is_place = math.isfinite(far)
        wrong, right = client.pose(far, 2.0), client.pose(3.0, 2.0)
        path = path_of(client, (2.0, 2.0), (3.0, 2.0))
        path.poses = [*path.poses, wrong]
        unknown = Code.PLANNER_UNKNOWN
        for action, kind, fields, code in (
            (
                "navigate_to_pose",
                TO_POSE,
                {"pose": wrong},
                Code.GOAL_OUTSIDE_MAP if is_place else Code.UNKNOWN,
            ),
            (
                "compute_path_to_pose",
                "ComputePathToPose",
                {"goal": wrong},
                Code.GOAL_OUTSIDE_MAP if is_place else unknown,
            ),
            (
                "compute_path_to_pose",
                "ComputePathToPose",
                {"goal": right, "start": wrong, "use_start": True},
                Code.START_OUTSIDE_MAP if is_place else unknown,
            ),
            ("follow_path", "FollowPath", {"path": path}, Code.INVALID_PATH),
        ):
            _, result = client.send(action, kind, **fields)
            done = await without_steps(result)
            assert (done.status, done.result.error_code) == (Status.ABORTED, code)
            assert ("outside of the map" if is_place else "finite") in (
                done.result.error_msg
            )
            assert client.robot.trip is None
        assert not floors._floors.values(), "no costmap has been made"

    play(act)


def test_a_robot_far_from_the_map_has_no_path() -> None:
    async def act(client: Client) -> None:
        client.robot.command.set_pose(1e6, 0.0, 0.0)
        client.sim.step()
        for action, kind, field in (
            ("navigate_to_pose", TO_POSE, "pose"),
            ("compute_path_to_pose", "ComputePathToPose", "goal"),
        ):
            _, result = client.send(action, kind, **{field: client.pose(3.0, 2.0)})
            done = await without_steps(result)
            assert done.result.error_code == Code.START_OUTSIDE_MAP

    play(act)


def test_paths_without_a_map_are_bounded() -> None:
    async def act(client: Client) -> None:
        client.control.do(USER, ClearMap())
        codes = []
        for x in (1e5, 300.0):
            _, result = client.send(
                "compute_path_to_pose", "ComputePathToPose", goal=client.pose(x, 2.0)
            )
            done = await without_steps(result)
            codes.append(done.result.error_code)
        assert codes == [Code.GOAL_OUTSIDE_MAP, Code.NONE]
        # Trips of other interfaces may lead far.
        plan = client.listen("/ann/plan")
        client.robot.go_to(1e6, 2.0)
        await client.until(lambda: any(len(m.message.poses) for m in plan.sent))
        path = plan.sent[-1].message
        assert MAX_PLAN_POSES < len(path.poses) < MAX_PLAN_POSES + 10
        assert path.poses[-1].pose.position.x == 1e6

    play(act)


def test_a_cancel_and_a_new_goal_at_once_end_the_goal_as_canceled() -> None:
    async def act(client: Client) -> None:
        uuid, first = await driving(client)
        # The new goal is served before the cancel.
        _, second = client.send("navigate_to_pose", TO_POSE, pose=client.pose(3, 3))
        cancel(client, uuid)
        assert (await without_steps(first)).status == Status.CANCELED
        await client.until(second.done)
        assert (await second).status == Status.SUCCEEDED

    play(act)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (Reset(), "reset"),
        (Reset(names=("ann",)), "reset"),
        (Stop(), "reset"),
        (ClearMap(), "replaced"),
        (UnloadWorld(), "replaced"),
    ],
)
def test_goals_end_with_their_world(operation: Any, text: str) -> None:
    async def act(client: Client) -> None:
        _, result = await driving(client)
        client.control.do(USER, Reset(names=()))
        client.control.do(USER, Reset(spawned=True, starts=False))
        await asyncio.sleep(0)
        assert not result.done(), "they put no robot back"
        client.control.do(USER, operation)
        done = await without_steps(result)
        assert done.status == Status.ABORTED and text in done.result.error_msg
        assert "ann" not in client.sim.core.programs.all and client.robot.trip is None

    play(act)
