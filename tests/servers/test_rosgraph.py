"""The graph offered to ROS, by a transport that only records."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from botyard.app.compose import compose
from botyard.control import USER, SendRobots, SetPoseEstimate
from botyard.engine.commands import EnableMotors
from botyard.errors import WorldError
from botyard.geometry import Pose
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.members import ROS
from botyard.interfaces.ros.transport import EncodedMessage
from botyard.model.library import load_laser, load_robot
from botyard.model.rosmessages import OWN
from botyard.protocols.dds.naming import type_name as dds_name
from botyard.protocols.ros_messages.graphoffers import Input, Service, Topic
from botyard.protocols.ros_messages.messages import yaw_of
from botyard.protocols.ros_messages.naming import PROFILES
from botyard.protocols.ros_messages.reconfigure import PARAMETERS, Reconfigure
from botyard.protocols.ros_messages.typenames import service_name
from botyard.protocols.ros_messages.types import types
from botyard.protocols.rtps.qos import Durability, Qos
from botyard.protocols.rtps.samples import Sample
from botyard.servers.hub import Hub
from botyard.servers.ros.ros2 import Ros2
from botyard.servers.ros.rtps import RtpsNode
from botyard.sim.simulation import Simulation
from tests.servers.nearby import Nearby


@dataclass(eq=False)
class Paper:
    """A recorded publication, input or service."""

    topic: Topic | Input | None = None
    is_wanted: bool = False
    replays_latched: bool = False
    is_open: bool = True
    reader_count: int = 0
    sent: list[EncodedMessage] = field(default_factory=list)

    @property
    def type_name(self) -> str:
        return "" if self.topic is None else self.topic.type_name

    def send(self, message: EncodedMessage) -> None:
        self.sent.append(message)

    def close(self) -> None:
        assert self.is_open
        self.is_open = False


class Recorder:
    """A transport that records."""

    def __init__(self, wire: str = "cdr") -> None:
        self.wire = wire
        self.mixes_types = wire == "cdr"
        self.papers: list[tuple[str, Paper]] = []
        self.changed: Callable[[], None] = lambda: None

    def advertise(
        self,
        node: str,
        topic: Topic,
        fresh: Callable[[], EncodedMessage | None],
        changed: Callable[[], None],
    ) -> Paper:
        self.changed = changed
        return self._paper(topic.name, topic)

    def listen(self, node: str, entry: Input) -> Paper:
        return self._paper(entry.name, entry)

    def serve(self, node: str, service: Service) -> Paper:
        return self._paper(service.name)

    def _paper(self, name: str, topic: Topic | Input | None = None) -> Paper:
        paper = Paper(topic)
        self.papers.append((name, paper))
        return paper

    def __getitem__(self, name: str) -> Paper:
        (paper,) = [p for n, p in self.papers if n == name and p.is_open]
        return paper

    @property
    def names(self) -> list[str]:
        return [n for n, p in self.papers if p.is_open]


def made(robots: int = 2) -> tuple[Simulation, Hub, RosGraph]:
    sim = Simulation.load("office", seed=1)
    for k in range(robots):
        sim.add_robot("p3dx", f"r{k}", pose=(10.0 + k, 14.0, 0.0))
    parts = compose(sim)
    graph = RosGraph(parts.hub, parts.control, parts.maps.cells, types())
    return sim, parts.hub, graph


def resting(sim: Simulation) -> bool:
    """Return whether no laser has a reader."""
    return not any(
        sim.core.devices.is_read(laser._key)
        for robot in sim.robots.values()
        for laser in robot.lasers
    )


def step(sim: Simulation, graph: RosGraph) -> None:
    sim.step(1)
    graph.on_snapshot(0.0)


def test_nothing_is_made_for_nobody() -> None:
    """Sensors behind topics without readers rest; with a reader they work; after it has
    left they rest again.
    """

    async def run() -> None:
        sim, _, graph = made()
        paper = Recorder()
        graph.add(paper)
        step(sim, graph)
        assert all(not p.sent for _, p in paper.papers)
        assert resting(sim)
        scan = paper["/r0/base_scan"]
        scan.is_wanted = True
        paper.changed()
        for _ in range(10):
            step(sim, graph)
        assert len(scan.sent) >= 5
        assert all(p is scan or not p.sent for _, p in paper.papers)
        assert not resting(sim)
        scan.is_wanted = False
        paper.changed()
        count = len(scan.sent)
        step(sim, graph)
        assert len(scan.sent) == count
        assert resting(sim)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wire", "goal"), [("cdr", "/r0/goal_pose"), ("ros1", "/r0/move_base_simple/goal")]
)
def test_poses_that_users_choose_are_published_once(wire: str, goal: str) -> None:
    """As RViz publishes them; ROS's own goals are not repeated, nor goals behind others."""

    async def run() -> None:
        sim, _, graph = made()
        control = graph._context.control
        paper = Recorder(wire)
        graph.add(paper)
        for name in (goal, "/r0/initialpose", "/r1/initialpose"):
            paper[name].is_wanted = True
        paper.changed()
        step(sim, graph)
        send = SendRobots(robots=("r0",), goals=((12.0, 9.0, 0.5),))
        control.do(USER, send)
        control.do(ROS, send)
        control.do(USER, replace(send, goals=((13.0, 9.0),), queue=True))
        at = Pose(3.0, 4.0, 1.0)
        control.do(USER, SetPoseEstimate(robot="r0", pose=at))
        step(sim, graph)
        step(sim, graph)
        (sent,) = [one.message for one in paper[goal].sent]
        assert sent.header.frame_id == "map"
        assert (sent.pose.position.x, sent.pose.position.y) == (12.0, 9.0)
        assert yaw_of(sent.pose.orientation) == pytest.approx(0.5)
        (sent,) = [one.message for one in paper["/r0/initialpose"].sent]
        assert (sent.pose.pose.position.x, sent.pose.pose.position.y) == (3.0, 4.0)
        assert yaw_of(sent.pose.pose.orientation) == pytest.approx(1.0)
        assert sent.pose.covariance[7] == 0.25
        assert not paper["/r1/initialpose"].sent

        # Without a heading, the robot arrives in the direction to the goal.
        x, y, _ = sim.robots["r0"].truth
        control.do(USER, SendRobots(robots=("r0",), goals=((x, y - 2.0),)))
        assert yaw_of(paper[goal].sent[-1].message.pose.orientation) == pytest.approx(
            -math.pi / 2
        )
        graph.close()
        with pytest.raises(WorldError, match="initialpose"):
            control.do(USER, SetPoseEstimate(robot="r0", pose=at))

    asyncio.run(run())


def test_a_robot_that_botyard_locates_takes_the_estimate_itself() -> None:
    async def run() -> None:
        sim = Simulation.load("office", seed=1)
        sim.add_robot("p3dx", "r0", pose=(10.0, 14.0, 0.0))
        parts = compose(sim)
        cells = parts.maps.cells
        graph = RosGraph(parts.hub, parts.control, cells, types(), is_localized=True)
        paper = Recorder()
        graph.add(paper)
        assert isinstance(paper["/r0/initialpose"].topic, Input), "no topic besides"
        paper["/r0/amcl_pose"].is_wanted = True
        paper.changed()
        parts.control.do(USER, SetPoseEstimate(robot="r0", pose=Pose(8.0, 9.0, 0.2)))
        step(sim, graph)
        found = paper["/r0/amcl_pose"].sent[-1].message.pose.pose
        assert (found.position.x, found.position.y) == pytest.approx((8.0, 9.0))

    asyncio.run(run())


@pytest.mark.parametrize("profile", ["default", "nav2", "stage"])
def test_transforms_of_a_step_come_before_its_scans(profile: str) -> None:
    """Programs transform a scan when it arrives."""
    sim = Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "r0", pose=(10.0, 14.0, 0.0))
    parts = compose(sim)
    graph = RosGraph(
        parts.hub,
        parts.control,
        parts.maps.cells,
        types(),
        profile=PROFILES[profile],
    )
    paper = Recorder()
    graph.add(paper)
    order: list[str] = []
    kinds = ("tf2_msgs/TFMessage", "sensor_msgs/LaserScan")
    for name, one in paper.papers:
        if isinstance(one.topic, Topic) and one.type_name in kinds:
            one.is_wanted = True
            one.send = lambda _, name=name: order.append(name)  # type: ignore[method-assign]
    paper.changed()
    for _ in range(3):
        order.clear()
        step(sim, graph)
    assert order[0] == "/tf" and len(order) == 2, order


@cache
def published(
    scan_rate: float | None, update_rate: float, steps: int
) -> tuple[dict[str, dict[int, Any]], list[int]]:
    """Return scans and points of eight robots in steps of 20 ms, by their times, µs,
    and the number of sensors measured in each step.
    """
    sim = Simulation.load("office", seed=1, step=0.02)
    model = load_robot("p3dx")
    assert model.sonar is not None
    laser, sonar = load_laser("lms200"), replace(model.sonar, update_rate=update_rate)
    model = replace(
        model, lasers=(replace(laser, update_rate=update_rate),), sonar=sonar
    )
    for k in range(8):
        sim.add_robot(model, f"r{k}", pose=(10.0 + k, 14.0, 0.0)).command(w=0.5)
    parts = compose(sim)
    graph = RosGraph(
        parts.hub, parts.control, parts.maps.cells, types(), scan_rate=scan_rate
    )
    paper, kinds = (
        Recorder(),
        {
            "base_scan": "sensor_msgs/LaserScan",
            "sonar_pointcloud2": "sensor_msgs/PointCloud2",
        },
    )
    graph.add(paper)
    wanted = {f"/r{k}/{name}": kind for k in range(8) for name, kind in kinds.items()}
    for name in wanted:
        paper[name].is_wanted = True
    paper.changed()
    found: dict[str, dict[int, Any]] = {name: {} for name in wanted}
    measured = []
    for _ in range(steps):
        step(sim, graph)
        measured.append(int(sim.fleet.taken.sum()))
        for name, kind in wanted.items():
            if paper[name].sent:
                found[name][sim.snapshot.time_us] = types().decode_cdr(
                    paper[name].sent.pop().cdr, kind
                )

            assert not paper[name].sent

    return found, measured


@pytest.mark.parametrize(
    ("scan_rate", "update_rate", "period"),
    [
        (10.0, 0.0, 0.1),
        (15.0, 0.0, 1 / 15),
        (None, 12.5, 0.08),
        (4.0, 40.0, 0.25),
        (1e6, 0.0, 0.02),
        (0.0, 5.0, 0.02),
    ],
)
def test_scans_have_a_rate_of_their_own(
    scan_rate: float | None, update_rate: float, period: float
) -> None:
    """The rate of the option, otherwise of the model, is exact on average.

    Sensors rest in between, and scans equal the scans of a run that measures each step.
    """

    async def run() -> None:
        steps = 100
        every, all_measured = published(None, 0.0, steps)
        found, measured = published(scan_rate, update_rate, steps)
        assert all_measured[1:] == [16] * (steps - 1)
        if period > 0.02:
            assert max(measured[1:]) < 16, "not all in the same step"
            assert sum(measured) == sum(map(len, found.values())), (
                "nothing is measured that is not sent"
            )

        for name, sent in found.items():
            assert abs(len(sent) - steps * 0.02 / period) < 2.0
            # The first message comes at once, so its interval is not compared.
            times = [*sent]
            assert all(
                abs(b - a - period * 1e6) < 20_000 for a, b in pairwise(times[1:])
            )
            for time_us, message in sent.items():
                other = every[name][time_us]
                if "scan" in name:
                    assert message.scan_time == pytest.approx(period, abs=1e-6)
                    assert other.scan_time == pytest.approx(0.02)
                    assert np.array_equal(message.ranges, other.ranges)
                else:
                    assert bytes(message.data) == bytes(other.data)

    asyncio.run(run())


@pytest.mark.parametrize("by_model", [True, False])
@pytest.mark.parametrize(
    ("scan_rate", "latency"), [(None, 0.0), (None, 0.04), (50.0, 0.04), (5.0, 0.0)]
)
def test_a_measurement_is_published_once_with_its_stamp(
    scan_rate: float | None, latency: float, by_model: bool
) -> None:
    """It is published when available, at 12.5 Hz in steps of 20 ms.

    Less frequent topics have the latest one.
    """

    async def run() -> None:
        sim = Simulation.load("office", seed=1, step=0.02)
        laser = load_laser("lms200")
        if by_model:
            laser = replace(laser, measurement_rate=12.5, latency=latency)
        robot = sim.add_robot(
            replace(load_robot("p3dx"), lasers=(laser,)), "r0", pose=(10.0, 14.0, 0.0)
        )
        robot.command(w=0.5)
        if not by_model:
            robot.set_parameters(range_rate=12.5, range_latency=latency)
        parts = compose(sim)
        graph = RosGraph(
            parts.hub, parts.control, parts.maps.cells, types(), scan_rate=scan_rate
        )
        paper = Recorder()
        graph.add(paper)
        scan = paper["/r0/base_scan"]
        scan.is_wanted = True
        paper.changed()
        found, measured = {}, {}
        for _ in range(60):
            step(sim, graph)
            tick = sim.tick
            measured[robot.laser.read().stamp] = robot.laser.read().ranges.astype(
                np.float32
            )
            for sent in scan.sent:
                message = types().decode_cdr(sent.cdr, "sensor_msgs/LaserScan")
                stamp = round(
                    message.header.stamp.sec + message.header.stamp.nanosec * 1e-9, 6
                )
                found[tick] = stamp
                assert np.array_equal(message.ranges, measured[stamp])
                if scan_rate is None:
                    assert message.scan_time == pytest.approx(0.08)

            scan.sent.clear()

        stamps = [*found.values()]
        assert stamps == sorted(set(stamps)), "each once"
        assert all(round(stamp / 0.08, 6).is_integer() for stamp in stamps)
        if scan_rate != 5.0:
            ticks = range(4, 61 - 2 * bool(latency), 4)
            assert {tick: stamp for tick, stamp in found.items() if stamp} == {
                tick + round(latency / 0.02): round(0.02 * tick, 6) for tick in ticks
            }
        else:
            assert len(stamps) in (6, 7)

    asyncio.run(run())


def test_slow_latched_topics_are_looked_at_once_in_a_period() -> None:
    """The first message comes at once, also for a late subscriber; a change within one
    period.
    """

    async def run() -> None:
        sim, _, graph = made(1)
        paper = Recorder()
        graph.add(paper)
        step(sim, graph)
        late = paper["/r0/robot_description"]
        assert isinstance(late.topic, Topic)
        versions = iter(range(1000))
        late.topic.version = lambda: next(versions)
        assert late.topic.period == pytest.approx(1.0)
        late.is_wanted = True
        paper.changed()
        step(sim, graph)
        assert len(late.sent) == 1
        times = []
        for _ in range(100):
            before = len(late.sent)
            step(sim, graph)
            times += [sim.snapshot.time_us] * (len(late.sent) - before)

        assert len(times) == pytest.approx(100 * sim.dt, abs=1)
        assert all(b - a == 1_000_000 for a, b in pairwise(times[1:]))

    asyncio.run(run())


def test_everything_is_offered_once_and_taken_back() -> None:
    """Robots before a transport and after it, a transport that leaves, types of the
    other ROS left out.
    """

    async def run() -> None:
        sim, _, graph = made()
        two, one = Recorder(), Recorder("ros1")
        graph.add(two)
        typed = [(name, paper.type_name) for name, paper in two.papers]
        assert len(typed) == len(set(typed))
        velocities = [kind for name, kind in typed if name == "/r1/cmd_vel"]
        assert velocities == ["geometry_msgs/Twist", "geometry_msgs/TwistStamped"]
        assert "/r1/odom" in two.names
        assert "/r1/set_parameters" not in two.names
        graph.add(one)
        assert "/r1/set_parameters" in one.names
        assert one["/r1/cmd_vel"].type_name == "geometry_msgs/Twist", (
            "a topic of ROS 1 has one type"
        )
        sim.add_robot("p3dx", "late", pose=(14.0, 14.0, 0.0))
        step(sim, graph)
        assert "/late/odom" in two.names
        assert "/late/odom" in one.names
        sim.remove_robots(["r0"])
        step(sim, graph)
        assert not [n for n in two.names if n.startswith("/r0/")]
        graph.remove(two)
        assert two.names == []
        assert "/late/odom" in one.names
        graph.close()
        assert one.names == []

    asyncio.run(run())


def test_latched_topics_are_said_again_only_when_they_change() -> None:
    """The motors' state, to a transport that stores the last message itself."""

    async def run() -> None:
        sim, _, graph = made(1)
        paper = Recorder()
        graph.add(paper)
        state = paper["/r0/motors_state"]
        state.is_wanted = True
        paper.changed()
        for _ in range(5):
            step(sim, graph)
        assert len(state.sent) == 1
        was = state.sent[0].message.data
        sim.robots["r0"].port("other").issue_command(EnableMotors(not was))
        for _ in range(5):
            step(sim, graph)
        assert [m.message.data for m in state.sent] == [was, not was]

    asyncio.run(run())


def test_a_transport_that_comes_later_gets_what_is_latched() -> None:
    """Also when the first transport has had it and nothing changes."""

    async def run() -> None:
        sim, _, graph = made(1)
        first, second = Recorder(), Recorder()
        graph.add(first)
        first["/map"].is_wanted = True
        first.changed()
        step(sim, graph)
        assert len(first["/map"].sent) == 1
        graph.add(second)
        second["/map"].is_wanted = True
        second.changed()
        step(sim, graph)
        assert len(second["/map"].sent) == 1
        step(sim, graph)
        assert len(second["/map"].sent) == 1

    asyncio.run(run())


def test_latched_topics_are_sent_while_nothing_steps() -> None:
    """Description and frames of a robot that is added while time is paused."""

    async def run() -> None:
        sim, hub, graph = made(1)
        paper = Recorder()
        graph.add(paper)
        frames = paper["/tf_static"]
        frames.is_wanted = True
        paper.changed()
        hub.pause()
        before = len(frames.sent)
        sim.add_robot("p3dx", "late", pose=(12.0, 14.0, 0.0))
        hub.settle()
        described = paper["/late/robot_description"]
        described.is_wanted = True
        paper.changed()
        sim.add_robot("p3dx", "later", pose=(14.0, 14.0, 0.0))
        hub.settle()
        assert len(described.sent) == 1 and "<robot" in described.sent[0].message.data
        assert len(frames.sent) > before
        seen = {f.child_frame_id for f in frames.sent[-1].message.transforms}
        assert {"late/base_laser", "later/base_laser"} <= seen
        assert sim.tick == 0

    asyncio.run(run())


def test_dds_is_switched_off_and_on_again() -> None:
    """In one process:

    the second participant offers and receives the same as the first.
    """

    async def run() -> None:
        sim, _, graph = made(1)
        place = Nearby(domain=77)
        for _ in range(2):
            ros = Ros2(graph.types, place)
            graph.add(ros)
            peer = RtpsNode(place)
            part = peer.participant
            odometry: list[Sample] = []
            part.reader(
                "rt/r0/odom",
                dds_name("nav_msgs/msg/Odometry"),
                odometry.append,
                Qos(),
                peer.now(),
            )
            maps: list[Sample] = []
            latched = Qos(durability=Durability.TRANSIENT_LOCAL)
            part.reader(
                "rt/map",
                dds_name("nav_msgs/msg/OccupancyGrid"),
                maps.append,
                latched,
                peer.now(),
            )
            driver = part.writer(
                "rt/r0/cmd_vel", dds_name("geometry_msgs/msg/Twist"), Qos(), peer.now()
            )
            for _ in range(500):
                if len(odometry) > 5 and maps and turning(sim):
                    break
                driver.write(twist(), peer.now())
                peer.wake()
                step(sim, graph)
                await asyncio.sleep(0.02)

            assert (
                graph.types.decode_cdr(
                    odometry[-1].payload, "nav_msgs/Odometry"
                ).header.frame_id
                == "r0/odom"
            )
            assert maps
            assert turning(sim) > 0.0
            peer.close()
            graph.remove(ros)
            await ros.close()
            for _ in range(50):
                step(sim, graph)
            assert turning(sim) == 0.0, "nobody commands it any more"

    asyncio.run(run())


def twist() -> bytes:
    """Return the CDR of a turn to the left."""
    kind, vector = types()["geometry_msgs/Twist"], types()["geometry_msgs/Vector3"]
    return types().encode_cdr(
        kind(vector(0.0, 0.0, 0.0), vector(0.0, 0.0, 0.5)), "geometry_msgs/Twist"
    )


def turning(sim: Simulation) -> float:
    """Return the yaw rate of the first robot, rad/s."""
    return sim.robots["r0"].port("other").state().twist.w


@pytest.mark.parametrize("profile", PROFILES)
def test_names_that_come_to_one_in_ros_are_told_apart(
    profile: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ROS allows fewer characters, and the simulator has names of its own."""

    async def run() -> None:
        sim, hub, first = made(0)
        first.close()
        graph = RosGraph(
            hub,
            first._context.control,
            first._context.cells,
            types(),
            profile=PROFILES[profile],
        )
        robots = [
            "a b",
            "a_b",
            "a-b",
            "a_b_2",
            "\u673a\u5668",
            "\u4eba\u4e00",
            "r___",
            "botyard",
            "1",
            "r_1",
        ]
        for k, name in enumerate(robots):
            sim.add_robot("p3dx", name, pose=(3.0 * k, 0.0, 0.0))
        transport = Recorder()
        graph.add(transport)
        names = [
            (name, paper.type_name)
            for name, paper in transport.papers
            if not name.startswith("/tf")
        ]
        assert len(names) == len(set(names)), "nobody shares a topic or a service"
        sim.step()
        frames = [(r.names.tf, t.child) for r in graph._robots for t in r.transforms()]
        assert len(frames) == len(set(frames)) >= len(robots)
        each = len(PARAMETERS) if profile in (*OWN, "rosaria") else 0
        assert len(graph._world_offers.values()) == 1 + len(robots) * each
        # Numbered names do not depend on the names of the world, so no name is changed.
        if PROFILES[profile].numbered:
            assert not caplog.text
        else:
            assert (
                'ROS: "a_b" would have the same ROS names as "a b", so it is called a_b_2 in ROS'
                in caplog.text
            )
            assert (
                'ROS: "botyard" would have the same ROS names as the simulator, so it is called botyard_2 in ROS'
                in caplog.text
            )

        before = caplog.text
        sim.remove_robot("a b")
        sim.step()
        graph._sync()
        assert caplog.text == before, "those that stay keep their names"
        graph.close()

    asyncio.run(run())


def test_an_action_tells_of_each_step_and_ends_when_its_client_wants() -> None:
    """SimulateSteps in a paused world:

    feedback and states are published between the steps.
    """

    async def run() -> None:
        sim, hub, graph = made()
        hub.pause()
        paper, kinds = Recorder(), types()
        graph.add(paper)
        services = {
            s.name.rpartition("/")[2]: s
            for s in graph._world.services
            if "/simulate_steps/" in s.name
        }
        feedback, status = (
            paper[f"/botyard/simulate_steps/_action/{end}"]
            for end in ("feedback", "status")
        )
        feedback.is_wanted = status.is_wanted = True
        paper.changed()

        def ask(end: str, **fields: Any) -> Any:
            return services[end].serve(
                kinds.filled(f"{service_name(services[end].type_name)}_Request", fields)
            )

        def send(number: int, steps: int) -> Any:
            goal = kinds.filled(
                "simulation_interfaces/action/SimulateSteps_Goal", {"steps": steps}
            )
            uuid = kinds.filled(
                "unique_identifier_msgs/msg/UUID",
                {"uuid": np.full(16, number, np.uint8)},
            )
            assert ask("send_goal", goal_id=uuid, goal=goal).accepted
            return uuid, asyncio.wrap_future(ask("get_result", goal_id=uuid))

        _, result = send(1, 50)
        done = await result
        assert (done.status, done.result.result.result, sim.tick) == (4, 1, 50)
        said = [m.message.feedback for m in feedback.sent]
        steps = [f.completed_steps for f in said]
        assert steps[:8] == list(range(1, 9)) and steps == sorted(set(steps))
        assert (steps[-1], said[-1].remaining_steps) == (50, 0)
        assert [m.message.status_list[0].status for m in status.sent] == [1, 2, 4]
        assert all(m.cdr for m in (*feedback.sent, *status.sent))

        uuid, result = send(2, 10**6)
        while sim.tick < 60:
            await asyncio.sleep(0)
        info = kinds.filled("action_msgs/msg/GoalInfo", {"goal_id": uuid})
        assert ask("cancel_goal", goal_info=info).return_code == 0
        assert (await result).status == 5 and sim.tick < 10**5 and hub.is_paused
        for number, steps, is_paused, text in (
            (3, 0, True, "steps"),
            (4, 2**40, True, "steps"),
            (5, 3, False, "paused"),
        ):
            hub.pause() if is_paused else hub.resume()
            done = await send(number, steps)[1]
            assert (done.status, done.result.result.result) == (
                6,
                4,
            ) and text in done.result.result.error_message

        hub.pause()
        _, result = send(20, 10**6)
        await asyncio.sleep(0)
        hub.resume()
        assert (await result).status == 6, "somebody let time go on"
        graph.close()

    asyncio.run(run())


def test_parameters_come_and_go_with_their_robots() -> None:
    async def run() -> None:
        sim, hub, graph = made(1)
        hub.pause()
        paper = Recorder()
        graph.add(paper)
        events = paper["/parameter_events"]
        events.is_wanted = True
        paper.changed()
        step(sim, graph)
        assert not events.sent
        sim.add_robot("p3dx", "eve", pose=(14.0, 14.0, 0.0))
        graph._follow()
        assert {p.name for p in events.sent[0].message.new_parameters} == {
            f"eve.{p.name}" for p in PARAMETERS
        }, "while time stands still"
        sim.remove_robot("eve")
        graph._follow()
        assert len(events.sent[1].message.deleted_parameters) == len(PARAMETERS)
        sim.robots["r0"].port("pioneer").set_ramp(0, accel=0.125)
        for _ in range(12):
            step(sim, graph)
        (change,) = events.sent[2].message.changed_parameters
        assert (change.name, change.value.double_value, len(events.sent)) == (
            "r0.trans_accel",
            0.125,
            3,
        ), "by whatever way"
        graph.close()

    asyncio.run(run())


def test_a_limit_is_read_as_it_was_set() -> None:
    """Also before the next step; and later the limit in force is read."""
    sim = Simulation.load("office", seed=1)
    sim.add_robot("p3dx", "r0")
    limits = Reconfigure(sim.robots["r0"].port("ros"), "/r0/", types())
    accel = next(p for p in PARAMETERS if p.name == "trans_accel")
    for value in (0.25, 0.5):
        limits.change(accel, value)
        assert limits.values()["trans_accel"] == value
    sim.step()
    assert limits.values()["trans_accel"] == 0.5
    sim.robots["r0"].port("pioneer").set_ramp(0, accel=0.125)
    sim.step()
    assert limits.values()["trans_accel"] == 0.125


def nav2(
    robots: int,
    *,
    is_localized: bool = False,
    has_map: bool | None = None,
    frames: str | None = None,
) -> tuple[Simulation, RosGraph]:
    """A world as Nav2's bring-up expects it."""
    sim, hub, first = made(robots)
    first.close()
    profile = PROFILES["nav2"].with_frames(frames)
    return sim, RosGraph(
        hub,
        first._context.control,
        first._context.cells,
        types(),
        profile=profile,
        is_localized=is_localized,
        has_map=has_map,
    )


def test_nav2_has_plain_names_for_one_robot_and_namespaces_for_several() -> None:
    async def run() -> None:
        for count, prefixes in ((1, ["/"]), (2, ["/r0/", "/r1/"])):
            _, graph = nav2(count)
            transport = Recorder()
            graph.add(transport)
            for prefix in prefixes:
                assert {
                    f"{prefix}{n}"
                    for n in ("scan", "odom", "tf", "tf_static", "robot_description")
                } <= set(transport.names)

            assert ("/tf" in transport.names) == (count == 1)
            graph.close()

        _, graph = nav2(2, frames="prefixed")
        transport = Recorder()
        graph.add(transport)
        assert {"/tf", "/tf_static", "/r0/scan"} <= set(transport.names)
        assert "/r0/tf" not in transport.names
        for name, paper in (("r0", "/r0/odom"), ("r1", "/r1/odom")):
            topic = transport[paper].topic
            assert isinstance(topic, Topic)
            message = topic.make(graph.stamp())
            assert (message.header.frame_id, message.child_frame_id) == (
                f"{name}/odom",
                f"{name}/base_footprint",
            )

        graph.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("is_localized", "has_map", "expected"),
    [
        (False, None, False),
        (True, None, True),
        (False, True, True),
        (True, False, False),
    ],
)
def test_the_map_and_the_localization_are_left_to_others(
    is_localized: bool, has_map: bool | None, expected: bool
) -> None:
    """AMCL, slam_toolbox and map_server would conflict:

    map → odom, the input ``initialpose`` and the map are offered only on request.
    """

    async def run() -> None:
        _, graph = nav2(2, is_localized=is_localized, has_map=has_map)
        transport = Recorder()
        graph.add(transport)
        assert {"/r0/map", "/r1/map"} & set(transport.names) == (
            {"/r0/map", "/r1/map"} if expected else set()
        )
        assert ("/static_map" in transport.names) == expected
        assert (
            isinstance(transport["/r0/initialpose"].topic, Input)
            == ("/r1/amcl_pose" in transport.names)
            == is_localized
        )
        tf = transport["/r0/tf"].topic
        assert isinstance(tf, Topic)
        pairs = {
            (t.header.frame_id, t.child_frame_id)
            for t in tf.make(graph.stamp()).transforms
        }
        assert (("map", "odom") in pairs) == is_localized
        assert ("odom", "base_footprint") in pairs
        graph.close()

    asyncio.run(run())


def test_a_pose_that_is_said_is_believed_and_nonsense_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        sim, graph = nav2(1, is_localized=True)
        transport = Recorder()
        graph.add(transport)
        said, believed = transport["/initialpose"].topic, transport["/amcl_pose"]
        assert isinstance(said, Input)
        believed.is_wanted = True
        transport.changed()
        step(sim, graph)
        message = believed.sent[-1].message
        assert (message.pose.pose.position.x, message.header.frame_id) == (
            pytest.approx(10.0),
            "map",
        )
        message.pose.pose.position.x = 12.5
        said.take(message)
        step(sim, graph)
        assert believed.sent[-1].message.pose.pose.position.x == pytest.approx(12.5)
        assert sim.robots["r0"].truth.x == pytest.approx(10.0), (
            "nobody is moved by what it believes"
        )
        for x, frame in ((float("nan"), "map"), (1.0, "odom")):
            message.pose.pose.position.x, message.header.frame_id = x, frame
            said.take(message)
            step(sim, graph)
            assert graph._robots[0].frames.pose.x == pytest.approx(12.5)

        assert caplog.text.count("initialpose: expected finite numbers") == 2
        graph.close()

    asyncio.run(run())


def test_time_jumps_back_when_the_world_goes_on_from_an_earlier_moment(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """/clock jumps back and /diagnostics counts it; topics keep their rates, and
    commands act.
    """

    async def run() -> None:
        sim, hub, graph = made(1)
        sim.history.keep()
        paper = Recorder()
        graph.add(paper)
        for topic in ("/clock", "/r0/odom", "/diagnostics"):
            paper[topic].is_wanted = True
        paper.changed()
        inputs = [
            p.topic
            for n, p in paper.papers
            if n == "/r0/cmd_vel" and p.type_name == "geometry_msgs/Twist"
        ]
        command = inputs[0]
        assert isinstance(command, Input)
        ahead = graph.types.decode_cdr(twist(), "geometry_msgs/Twist")

        def steps(n: int) -> dict[str, list[Any]]:
            before = {
                name: len(paper[name].sent)
                for name in ("/clock", "/r0/odom", "/diagnostics")
            }
            for _ in range(n):
                hub.step_once()
            return {
                name: [m.message for m in paper[name].sent[count:]]
                for name, count in before.items()
            }

        def resets(message: Any) -> list[str]:
            (world,) = [s for s in message.status if s.name == "simulator"]
            return [v.value for v in world.values if v.key == "reset"]

        first = steps(60)
        command.take(ahead)
        steps(4)
        assert turning(sim) > 0.4 and sim.robots["r0"].clients == ("ros",)
        sim.history.go_on_from(0.4)
        assert sim.robots["r0"].clients == ("ros",)
        then = steps(60)
        assert [
            m.clock.sec + m.clock.nanosec / 1e9 for m in then["/clock"][:2]
        ] == pytest.approx([0.5, 0.6])
        assert {name: len(sent) for name, sent in then.items()} == {
            name: len(sent) for name, sent in first.items()
        }
        assert {r for m in first["/diagnostics"] for r in resets(m)} == {"0"}
        assert resets(then["/diagnostics"][0]) == ["1"]
        assert turning(sim) == 0.0 and sim.robots["r0"].clients == (), (
            "nobody has commanded it since"
        )
        command.take(ahead)
        steps(5)
        assert turning(sim) > 0.4

    asyncio.run(run())
