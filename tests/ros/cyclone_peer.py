"""A ROS 2 peer that behaves as rmw_cyclonedds_cpp, on Cyclone's serialiser.

``cyclone_peer.py FUNCTION JSON-ARGUMENTS`` prints ``RESULT JSON``. It shares only the
middleware with the simulator: its types are its own classes, their bytes are Cyclone's.
(Cyclone inspects annotations, so they are not postponed.)
"""

import json
import os
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl import types as idl
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

RELIABLE = Qos(
    Policy.Reliability.Reliable(duration(milliseconds=100)),
    Policy.History.KeepLast(10),
    Policy.DataRepresentation(
        use_cdrv0_representation=True, use_xcdrv2_representation=False
    ),
)
MANY = RELIABLE + Qos(Policy.History.KeepLast(10000))
LATCHED = RELIABLE + Qos(Policy.Durability.TransientLocal)


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float
    y: float
    z: float


@dataclass
class Twist(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    linear: Vector3
    angular: Vector3


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: idl.int32
    nanosec: idl.uint32


@dataclass
class Clock(IdlStruct, typename="rosgraph_msgs::msg::dds_::Clock_"):
    clock: Time


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time
    frame_id: str


@dataclass
class TwistStamped(IdlStruct, typename="geometry_msgs::msg::dds_::TwistStamped_"):
    header: Header
    twist: Twist


@dataclass
class Gid(IdlStruct, typename="rmw_dds_common::msg::dds_::Gid_"):
    data: idl.array[idl.uint8, 16]


@dataclass
class NodeInfo(IdlStruct, typename="rmw_dds_common::msg::dds_::NodeEntitiesInfo_"):
    node_namespace: idl.bounded_str[256]
    node_name: idl.bounded_str[256]
    reader_gid_seq: idl.sequence[Gid]
    writer_gid_seq: idl.sequence[Gid]


@dataclass
class ParticipantInfo(
    IdlStruct, typename="rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"
):
    gid: Gid
    node_entities_info_seq: idl.sequence[NodeInfo]


@dataclass
class EmptyRequest(IdlStruct, typename="std_srvs::srv::dds_::Empty_Request_"):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    structure_needs_at_least_one_member: idl.uint8


@dataclass
class EmptyResponse(IdlStruct, typename="std_srvs::srv::dds_::Empty_Response_"):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    structure_needs_at_least_one_member: idl.uint8


@dataclass
class TriggerRequest(IdlStruct, typename="std_srvs::srv::dds_::Trigger_Request_"):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    structure_needs_at_least_one_member: idl.uint8


@dataclass
class TriggerResponse(IdlStruct, typename="std_srvs::srv::dds_::Trigger_Response_"):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    success: bool
    message: str


@dataclass
class Pose2D(IdlStruct, typename="geometry_msgs::msg::dds_::Pose2D_"):
    x: float
    y: float
    theta: float


@dataclass
class AddRobotRequest(IdlStruct, typename="botyard_msgs::srv::dds_::AddRobot_Request_"):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    model: str
    name: str
    anywhere: bool
    pose: Pose2D


@dataclass
class AddRobotResponse(
    IdlStruct, typename="botyard_msgs::srv::dds_::AddRobot_Response_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    success: bool
    message: str
    name: str


@dataclass
class ParameterValue(IdlStruct, typename="rcl_interfaces::msg::dds_::ParameterValue_"):
    type: idl.uint8
    bool_value: bool
    integer_value: idl.int64
    double_value: float
    string_value: str
    byte_array_value: idl.sequence[idl.uint8]
    bool_array_value: idl.sequence[bool]
    integer_array_value: idl.sequence[idl.int64]
    double_array_value: idl.sequence[float]
    string_array_value: idl.sequence[str]


@dataclass
class GetParametersRequest(
    IdlStruct, typename="rcl_interfaces::srv::dds_::GetParameters_Request_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    names: idl.sequence[str]


@dataclass
class GetParametersResponse(
    IdlStruct, typename="rcl_interfaces::srv::dds_::GetParameters_Response_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    values: idl.sequence[ParameterValue]


@dataclass
class Result(IdlStruct, typename="simulation_interfaces::msg::dds_::Result_"):
    result: idl.uint8
    error_message: str


@dataclass
class Resource(IdlStruct, typename="simulation_interfaces::msg::dds_::Resource_"):
    uri: str
    resource_string: str


@dataclass
class WorldResource(
    IdlStruct, typename="simulation_interfaces::msg::dds_::WorldResource_"
):
    name: str
    world_resource: Resource
    description: str
    tags: idl.sequence[str]


@dataclass
class LoadWorldRequest(
    IdlStruct, typename="simulation_interfaces::srv::dds_::LoadWorld_Request_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    uri: str
    resource_string: str
    fail_on_unsupported_element: bool
    ignore_missing_or_unsupported_assets: bool


@dataclass
class LoadWorldResponse(
    IdlStruct, typename="simulation_interfaces::srv::dds_::LoadWorld_Response_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    result: Result
    world: WorldResource


@dataclass
class Uuid(IdlStruct, typename="unique_identifier_msgs::msg::dds_::UUID_"):
    uuid: idl.array[idl.uint8, 16]


@dataclass
class StepsGoal(
    IdlStruct, typename="simulation_interfaces::action::dds_::SimulateSteps_Goal_"
):
    steps: idl.uint64


@dataclass
class StepsResult(
    IdlStruct, typename="simulation_interfaces::action::dds_::SimulateSteps_Result_"
):
    result: Result


@dataclass
class StepsFeedback(
    IdlStruct, typename="simulation_interfaces::action::dds_::SimulateSteps_Feedback_"
):
    completed_steps: idl.uint64
    remaining_steps: idl.uint64


@dataclass
class GoalInfo(IdlStruct, typename="action_msgs::msg::dds_::GoalInfo_"):
    goal_id: Uuid
    stamp: Time


@dataclass
class SendGoalRequest(
    IdlStruct,
    typename="simulation_interfaces::action::dds_::SimulateSteps_SendGoal_Request_",
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    goal_id: Uuid
    goal: StepsGoal


@dataclass
class SendGoalResponse(
    IdlStruct,
    typename="simulation_interfaces::action::dds_::SimulateSteps_SendGoal_Response_",
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    accepted: bool
    stamp: Time


@dataclass
class GetResultRequest(
    IdlStruct,
    typename="simulation_interfaces::action::dds_::SimulateSteps_GetResult_Request_",
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    goal_id: Uuid


@dataclass
class GetResultResponse(
    IdlStruct,
    typename="simulation_interfaces::action::dds_::SimulateSteps_GetResult_Response_",
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    status: idl.int8
    result: StepsResult


@dataclass
class CancelGoalRequest(
    IdlStruct, typename="action_msgs::srv::dds_::CancelGoal_Request_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    goal_info: GoalInfo


@dataclass
class CancelGoalResponse(
    IdlStruct, typename="action_msgs::srv::dds_::CancelGoal_Response_"
):
    rmw_guid: idl.uint64
    rmw_seq: idl.int64
    return_code: idl.int8
    goals_canceling: idl.sequence[GoalInfo]


@dataclass
class Feedback(
    IdlStruct,
    typename="simulation_interfaces::action::dds_::SimulateSteps_FeedbackMessage_",
):
    goal_id: Uuid
    feedback: StepsFeedback


@dataclass
class GoalStatus(IdlStruct, typename="action_msgs::msg::dds_::GoalStatus_"):
    goal_info: GoalInfo
    status: idl.int8


@dataclass
class GoalStatusArray(IdlStruct, typename="action_msgs::msg::dds_::GoalStatusArray_"):
    status_list: idl.sequence[GoalStatus]


SERVICES = {
    "simulation_interfaces/LoadWorld": (LoadWorldRequest, LoadWorldResponse),
    "simulation_interfaces/SimulateSteps_SendGoal": (SendGoalRequest, SendGoalResponse),
    "simulation_interfaces/SimulateSteps_GetResult": (
        GetResultRequest,
        GetResultResponse,
    ),
    "action_msgs/CancelGoal": (CancelGoalRequest, CancelGoalResponse),
    "rcl_interfaces/GetParameters": (GetParametersRequest, GetParametersResponse),
    "std_srvs/Empty": (EmptyRequest, EmptyResponse),
    "std_srvs/Trigger": (TriggerRequest, TriggerResponse),
    "botyard_msgs/AddRobot": (AddRobotRequest, AddRobotResponse),
}


@dataclass
class WorldState(IdlStruct, typename="ambf_msgs::msg::dds_::WorldState_"):
    header: Header
    graphics_loop_freq: idl.uint64
    dynamic_loop_freq: idl.uint64
    n_devices: idl.uint8
    sim_step: idl.uint32
    wall_time: idl.float32
    sim_time: idl.float32


@dataclass
class WorldCmd(IdlStruct, typename="ambf_msgs::msg::dds_::WorldCmd_"):
    enable_step_throttling: bool
    step_clock: bool
    n_skip_steps: idl.uint8


@dataclass
class Text(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str


@dataclass
class Point(IdlStruct, typename="geometry_msgs::msg::dds_::Point_"):
    x: float
    y: float
    z: float


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float
    y: float
    z: float
    w: float


@dataclass
class Pose(IdlStruct, typename="geometry_msgs::msg::dds_::Pose_"):
    position: Point
    orientation: Quaternion


@dataclass
class Wrench(IdlStruct, typename="geometry_msgs::msg::dds_::Wrench_"):
    force: Vector3
    torque: Vector3


@dataclass
class RigidBodyState(IdlStruct, typename="ambf_msgs::msg::dds_::RigidBodyState_"):
    header: Header
    sim_step: idl.uint32
    identifier: Text
    name: Text
    wall_time: idl.float32
    sim_time: idl.float32
    mass: idl.float32
    pInertia: Point
    pose: Pose
    twist: Twist
    wrench: Wrench
    children_names: idl.sequence[str]
    joint_names: idl.sequence[str]
    joint_positions: idl.sequence[idl.float32]
    joint_velocities: idl.sequence[idl.float32]
    joint_efforts: idl.sequence[idl.float32]


participant = DomainParticipant(int(os.environ.get("ROS_DOMAIN_ID", "0")))


def drive(
    topic: str, v: float, w: float, seconds: float, stamped: bool = False
) -> None:
    """Publish a velocity, twenty times a second."""
    writer: Any = DataWriter(
        participant,
        Topic(participant, f"rt{topic}", TwistStamped if stamped else Twist),
        RELIABLE,
    )
    twist = Twist(Vector3(v, 0.0, 0.0), Vector3(0.0, 0.0, w))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        writer.write(TwistStamped(Header(Time(0, 0), ""), twist) if stamped else twist)
        time.sleep(0.05)


def latch(topic: str, text: str, times: int, seconds: float) -> None:
    """Offer a text, repeated to a length, to late readers as well."""
    writer: Any = DataWriter(
        participant, Topic(participant, f"rt{topic}", Text), LATCHED
    )
    writer.write(Text(text * times))
    time.sleep(seconds)


def read(topic: str, latched: bool, count: int, seconds: float = 110.0) -> list[str]:
    """Read a number of texts."""
    reader: Any = DataReader(
        participant,
        Topic(participant, f"rt{topic}", Text),
        LATCHED if latched else RELIABLE,
    )
    texts: list[str] = []
    end = time.monotonic() + seconds
    while len(texts) < count and time.monotonic() < end:
        texts += [m.data for m in reader.take(N=100)]
        time.sleep(0.01)

    return texts


def read_both(topic: str, times: int, seconds: float = 30.0) -> list[int]:
    """Return the number of latched texts that each of several participants gets in
    turn.

    Each creates a volatile and a latched reader of a topic at the same time.
    """
    counts = []
    for _ in range(times):
        one = DomainParticipant(int(os.environ.get("ROS_DOMAIN_ID", "0")))
        of = Topic(one, f"rt{topic}", Text)
        both: list[Any] = [DataReader(one, of, RELIABLE), DataReader(one, of, LATCHED)]
        counts.append(0)
        end = time.monotonic() + seconds
        while not counts[-1] and time.monotonic() < end:
            counts[-1] += len(both[1].take(N=100))
            time.sleep(0.01)
            # Lost messages never arrive, so stop soon after both readers are matched.
            if all(reader.get_matched_publications() for reader in both):
                end = min(end, time.monotonic() + 5.0)

    return counts


def serve(name: str, count: int, seconds: float = 110.0) -> int:
    """Answer a number of calls of a Trigger, as a server of rmw_cyclonedds_cpp."""
    reader: Any = DataReader(
        participant, Topic(participant, f"rq{name}Request", TriggerRequest), RELIABLE
    )
    writer: Any = DataWriter(
        participant, Topic(participant, f"rr{name}Reply", TriggerResponse), RELIABLE
    )
    served = 0
    end = time.monotonic() + seconds
    while served < count and time.monotonic() < end:
        for request in reader.take(N=10):
            # A client that has left is reported by a sample without data.
            if not request.sample_info.valid_data:
                continue
            writer.write(
                TriggerResponse(request.rmw_guid, request.rmw_seq, True, "cyclone")
            )
            served += 1

        time.sleep(0.002)

    time.sleep(1.0)
    return served


def clock(seconds: float) -> list[float]:
    """Return the clocks received within a time."""
    reader: Any = DataReader(
        participant, Topic(participant, "rt/clock", Clock), RELIABLE
    )
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        times += [m.clock.sec + m.clock.nanosec * 1e-9 for m in reader.take(N=100)]
        time.sleep(0.02)

    return times


def lockstep(body: str, toggles: int, skips: int) -> dict[str, Any]:
    """Step AMBF's world; return the number of steps, the time, and the last state of a
    body.
    """
    writer: Any = DataWriter(
        participant, Topic(participant, "rt/ambf/env/World/Command", WorldCmd), RELIABLE
    )
    reader: Any = DataReader(
        participant, Topic(participant, "rt/ambf/env/World/State", WorldState), RELIABLE
    )
    bodies: Any = DataReader(
        participant,
        Topic(participant, f"rt/ambf/env/{body}/State", RigidBodyState),
        RELIABLE,
    )
    end = time.monotonic() + 110.0
    while not (
        writer.get_matched_subscriptions() and reader.get_matched_publications()
    ):
        assert time.monotonic() < end
        time.sleep(0.02)

    time.sleep(0.5)
    seen = [-1]
    last: list[Any] = []

    def look() -> int:
        seen.extend(m.sim_step for m in reader.take(N=100))
        last.extend(bodies.take(N=100))
        return max(seen)

    writer.write(WorldCmd(True, False, skips))
    time.sleep(0.3)
    first, begin = look(), time.monotonic()
    for k in range(1, toggles + 1):
        writer.write(WorldCmd(True, k % 2 == 1, skips))
        while look() < first + k * skips:
            assert time.monotonic() < end
            time.sleep(0.0005)

    took = time.monotonic() - begin
    time.sleep(0.1)
    look()
    state = last[-1]
    return {
        "steps": max(seen) - first,
        "took": took,
        "name": state.name.data,
        "joints": list(state.joint_names),
        "x": state.pose.position.x,
        "mass": state.mass,
        "step": state.sim_step - first,
    }


def graph(wanted: str, seconds: float = 110.0) -> dict[str, Any]:
    """Return our nodes by `ros_discovery_info`:

    counts of readers and writers, and how many of them exist.
    """
    info: Any = DataReader(
        participant, Topic(participant, "ros_discovery_info", ParticipantInfo), LATCHED
    )
    ends: Any = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
    nodes: dict[str, Any] = {}
    there: set[bytes] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        there |= {s.key.bytes for s in ends.take(N=1000) if s.sample_info.valid_data}
        for message in info.take(N=10):
            nodes = {
                f"{n.node_namespace.rstrip('/')}/{n.node_name}": (
                    len(n.reader_gid_seq),
                    len(n.writer_gid_seq),
                    [bytes(g.data) for g in n.writer_gid_seq],
                )
                for n in message.node_entities_info_seq
            }

        if wanted in nodes and set(nodes[wanted][2]) <= there:
            break
        time.sleep(0.1)

    return {
        name: [readers, writers, len(set(gids) & there)]
        for name, (readers, writers, gids) in nodes.items()
    }


def call(
    name: str, kind: str, fields: list[Any], times: int = 1
) -> list[dict[str, Any]]:
    """Call a service, as a client of rmw_cyclonedds_cpp; fields of a pose are a list."""
    client = Client(name, kind)
    plain = [
        Pose2D(*f) if isinstance(f, list) and len(f) == 3 else f for f in fields
    ] or [0]
    return [client.plain(client.ask(*plain)) for _ in range(times)]


def recreate(name: str, count: int, patience: float) -> dict[str, Any]:
    """Make a client of a Trigger, call once as soon as there is a server, and drop the
    client; return the longest time of an answer, s, and how many did not come in time.
    """
    slowest, lost = 0.0, 0
    for _ in range(count):
        client = Client(name, "std_srvs/Trigger", pause=0.0)
        number, start = client.send(0), time.monotonic()
        while client.answer(number) is None and time.monotonic() < start + patience:
            time.sleep(0.002)
        if number in client.answers:
            slowest = max(slowest, time.monotonic() - start)
        else:
            lost += 1
    return {"calls": count, "lost": lost, "slowest": slowest}


def simulate(steps: int, cancel_after: int) -> dict[str, Any]:
    """Send a goal of SimulateSteps, canceled after a number of feedback messages (0:
    never).

    Returns the results of all endpoints of the action.
    """
    name, kind = (
        "/botyard/simulate_steps/_action/",
        "simulation_interfaces/SimulateSteps_",
    )
    feedback: Any = DataReader(
        participant, Topic(participant, f"rt{name}feedback", Feedback), MANY
    )
    status: Any = DataReader(
        participant, Topic(participant, f"rt{name}status", GoalStatusArray), LATCHED
    )
    send, result = (
        Client(f"{name}send_goal", f"{kind}SendGoal"),
        Client(f"{name}get_result", f"{kind}GetResult"),
    )
    cancel = Client(f"{name}cancel_goal", "action_msgs/CancelGoal")
    end = time.monotonic() + 110.0
    while not (
        feedback.get_matched_publications() and status.get_matched_publications()
    ):
        assert time.monotonic() < end
        time.sleep(0.02)

    key, canceled = os.urandom(16), None
    goal = Uuid(list(key))
    accepted = send.ask(goal, StepsGoal(steps)).accepted
    number = result.send(goal)
    done: list[int] = []
    states: list[int] = []
    answer = None
    while answer is None or len(states) < 3:
        assert time.monotonic() < end, (len(done), states, answer)
        done += [
            f.feedback.completed_steps
            for f in feedback.take(N=1000)
            if bytes(f.goal_id.uuid) == key
        ]
        for message in status.take(N=100):
            states += [
                s.status
                for s in message.status_list
                if bytes(s.goal_info.goal_id.uuid) == key
            ]

        if cancel_after and len(done) >= cancel_after and canceled is None:
            canceled = cancel.ask(GoalInfo(goal, Time(0, 0))).return_code
        answer = answer or result.answer(number)
        time.sleep(0.002)

    return {
        "accepted": accepted,
        "done": done,
        "states": states,
        "status": answer.status,
        "code": answer.result.result.result,
        "canceled": canceled,
    }


class Client:
    """A client of a service, like one of rmw_cyclonedds_cpp."""

    def __init__(self, name: str, kind: str, pause: float = 0.3) -> None:
        self.request, response = SERVICES[kind]
        # Servers pair the endpoints of a client by this identifier.
        mark = ".".join(f"{b:x}" for b in os.urandom(16))
        qos = RELIABLE + Qos(Policy.Userdata(f"clientid={mark};".encode()))
        self.writer: Any = DataWriter(
            participant, Topic(participant, f"rq{name}Request", self.request), qos
        )
        self.reader: Any = DataReader(
            participant, Topic(participant, f"rr{name}Reply", response), qos
        )
        end = time.monotonic() + 110.0
        while time.monotonic() < end and not (
            self.writer.get_matched_subscriptions()
            and self.reader.get_matched_publications()
        ):
            time.sleep(0.02)

        assert time.monotonic() < end, f"no server of {name}"
        time.sleep(pause)
        self.guid = struct.unpack("<Q", os.urandom(8))[0]
        self.sequence = 0
        self.answers: dict[int, Any] = {}

    def send(self, *fields: Any) -> int:
        """Send a request; return its number."""
        self.sequence += 1
        self.writer.write(self.request(self.guid, self.sequence, *fields))
        return self.sequence

    def answer(self, number: int) -> Any:
        """Return the answer to a request, if it has come."""
        self.answers.update(
            {a.rmw_seq: a for a in self.reader.take(N=10) if a.rmw_guid == self.guid}
        )
        return self.answers.get(number)

    def ask(self, *fields: Any) -> Any:
        """Send a request, and wait for its answer."""
        number = self.send(*fields)
        end = time.monotonic() + 110.0
        while (answer := self.answer(number)) is None:
            assert time.monotonic() < end, "no answer"
            time.sleep(0.002)

        return answer

    @staticmethod
    def plain(answer: Any) -> dict[str, Any]:
        """Return the fields of an answer."""
        return {
            k: v
            for k, v in vars(answer).items()
            if k not in ("rmw_guid", "rmw_seq", "sample_info")
        }


if __name__ == "__main__":
    print(
        "RESULT "
        + json.dumps(globals()[sys.argv[1]](*json.loads(sys.argv[2])), default=vars),
        flush=True,
    )
