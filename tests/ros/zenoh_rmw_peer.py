"""A program that speaks to the simulator as rmw_zenoh_cpp does: ``zenoh_rmw_peer.py WHAT
JSON-ARGUMENTS``, by the Python of an environment with rclpy (``make peers``), with the
packages of ZENOH_PACKAGES behind its own; prints ``RESULT JSON``.

Messages, their bytes and hashes are rosidl's and Fast CDR's, and the wire is zenoh's own
library. The layer between them follows these files of github.com/ros2/rmw_zenoh
(rmw_zenoh_cpp/):

- config/DEFAULT_RMW_ZENOH_SESSION_CONFIG.json5: the session
- src/detail/liveliness_utils.cpp: tokens of nodes and endpoints, QoS
- src/detail/rmw_publisher_data.cpp, rmw_subscription_data.cpp: caches, history, heartbeats
- src/detail/rmw_client_data.cpp, attachment_helpers.cpp: queries and attachments
"""

from __future__ import annotations

import contextlib
import os
import queue
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# The packages of another environment stand last: of these only zenoh is new here.
sys.path.append(os.environ["ZENOH_PACKAGES"])
import zenoh
import zenoh.ext
from action_msgs.srv import CancelGoal
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.qos import DurabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from ros2_scenes import LATCHED, PATIENCE_S, End, Got, Spinning, hash_of, run
from rosgraph_msgs.msg import Clock
from unique_identifier_msgs.msg import UUID

ROUTER = os.environ.get("ZENOH_ROUTER", "tcp/localhost:7447")
# Sequence number, nanoseconds, length of the identifier, identifier.
ATTACHMENT = struct.Struct("<qqB16s")
# Reliable, volatile, keep last 10: a policy that has ROS's default is empty.
PLAIN = "::,10:,:,:,,"
HEARTBEAT_S = 0.5
SETTINGS = {
    "mode": '"peer"',
    "connect/endpoints": f'["{ROUTER}"]',
    "listen/endpoints": '["tcp/localhost:0"]',
    "scouting/multicast/enabled": "false",
    "scouting/gossip/target": '{router: ["router", "peer"], peer: ["router"]}',
    "scouting/gossip/autoconnect_strategy": (
        '{peer: {to_router: "always", to_peer: "greater-zid"}}'
    ),
    "timestamping/enabled": "true",
    "queries_default_timeout": "600000",
    "transport/unicast/open_timeout": "60000",
    "transport/unicast/accept_timeout": "60000",
    "transport/unicast/accept_pending": "10000",
    "transport/unicast/max_sessions": "10000",
    "transport/link/tx/lease": "60000",
    "transport/link/tx/keep_alive": "2",
    "transport/link/tx/queue/congestion_control/block/wait_before_close": "60000000",
    "transport/shared_memory/enabled": "false",
}


def name_of(kind: Any) -> str:
    """Return the name of a class of rosidl, such as ``nav_msgs/msg/Odometry``."""
    package, sort, *_ = kind.__module__.split(".")
    return f"{package}/{sort}/{kind.__name__}"


def dds(name: str) -> str:
    """Return ``nav_msgs::msg::dds_::Odometry_`` for ``nav_msgs/msg/Odometry``."""
    package, sort, short = name.split("/")
    return f"{package}::{sort}::dds_::{short}_"


@dataclass(frozen=True)
class Token:
    """Content of the liveliness token of a node or an endpoint."""

    session: str
    sort: str
    space: str
    node: str
    name: str = ""
    kind: str = ""
    digest: str = ""
    qos: str = ""

    @classmethod
    def read(cls, key: str) -> Token:
        """Read a token; raise ValueError if rmw_zenoh would drop it."""
        parts = key.split("/")
        if len(parts) not in (9, 13) or "" in parts or parts[6] != "%":
            raise ValueError(f"not a token: {key}")
        _, _, session, _, _, sort, _, space, node, *end = parts
        if (sort == "NN") != (not end) or sort not in ("NN", "MP", "MS", "SS", "SC"):
            raise ValueError(f"not a token: {key}")
        if not end:
            return cls(session, sort, space.replace("%", "/"), node)
        name, kind, digest, qos = end
        package, group, space_of_dds, short = kind.split("::")
        if space_of_dds != "dds_" or not short.endswith("_"):
            raise ValueError(f"not a type: {key}")
        if not digest.startswith("RIHS01_") or len(digest) != 71:
            raise ValueError(f"not a hash: {key}")
        plain = f"{package}/{group}/{short[:-1]}"
        home = space.replace("%", "/")
        named = name.replace("%", "/")
        return cls(session, sort, home, node, named, plain, digest, qos)

    @property
    def policies(self) -> tuple[bool, bool]:
        """Whether the endpoint is transient local, and whether it is reliable."""
        reliability, durability, history, *rest = self.qos.split(":")
        assert len(rest) == 3 and history.count(",") == 1, self.qos
        # A policy that has ROS's default is empty: reliable, volatile, keep last 42.
        return durability == "1", reliability in ("", "1")


class Peer(Spinning):
    """A context of rmw_zenoh with one node: a session and a cache of the graph."""

    def __init__(
        self, name: str = "peer", domain: int | None = None, **parameters: Any
    ) -> None:
        self.name = name
        self._domain = int(os.environ.get("ROS_DOMAIN_ID", "0"))
        if domain is not None:
            self._domain = domain
        config = zenoh.Config()
        for key, value in SETTINGS.items():
            config.insert_json5(key, value)
        self._session = zenoh.open(config)
        self._id = str(self._session.zid())
        self._numbers = 0
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._tokens: dict[str, Token] = {}
        self._declared: list[Any] = []
        self._watch = self._session.liveliness().declare_subscriber(
            f"@ros2_lv/{self._domain}/**",
            lambda sample: self._events.put(lambda: self._learn(sample)),
            history=True,
        )
        self._node = self._token("NN", "")
        self._sequence = 0
        self._gid = os.urandom(16)
        self._time: Any = None
        self._acts: list[tuple[list[float], float, Callable[[], None]]] = []
        if parameters.get("use_sim_time"):
            self.subscribe("/clock", Clock, 0, self._tick)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        # A neighbour that stands still lets `close` run into its timeout.
        with contextlib.suppress(zenoh.ZError):
            self._session.close()

    def turn(self, seconds: float = 0.0) -> None:
        """Take what has arrived, or what arrives within a time."""
        try:
            act = self._events.get(timeout=seconds) if seconds else None
            while act is not None or not self._events.empty():
                (act or self._events.get())()
                act = None
        except queue.Empty:
            pass

    def done(self, future: Any, what: Any = "") -> Any:
        """Return a result: calls wait for it."""
        return future

    # -- the graph

    def _token(self, sort: str, tail: str) -> Any:
        number, self._numbers = self._numbers, self._numbers + 1
        key = f"@ros2_lv/{self._domain}/{self._id}/0/{number}/{sort}/%/%/{self.name}{tail}"
        made = self._session.liveliness().declare_token(key)
        self._declared.append(made)
        return made

    def _end(
        self, sort: str, name: str, kind: str, qos: str = PLAIN
    ) -> tuple[str, Any]:
        """Declare the token of an endpoint, and return the key of its data."""
        digest, chunk = hash_of(kind), name.replace("/", "%")
        token = self._token(sort, f"/{chunk}/{dds(kind)}/{digest}/{qos}")
        return f"{self._domain}/{name.strip('/')}/{dds(kind)}/{digest}", token

    def _learn(self, sample: Any) -> None:
        key = str(sample.key_expr)
        if sample.kind == zenoh.SampleKind.PUT:
            self._tokens[key] = Token.read(key)
        else:
            self._tokens.pop(key, None)

    def _found(self, *sorts: str, name: str | None = None) -> list[Token]:
        return [
            t
            for t in self._tokens.values()
            if t.sort in sorts and name in (None, t.name)
        ]

    def graph(self) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Return the types of topics and of services, by name."""
        self.turn()
        both: list[dict[str, set[str]]] = []
        for sorts in (("MP", "MS"), ("SS", "SC")):
            named: dict[str, set[str]] = {}
            for token in self._found(*sorts):
                named.setdefault(token.name, set()).add(token.kind)
            both.append(named)
        return both[0], both[1]

    def nodes(self) -> list[tuple[str, str]]:
        """Return names and namespaces of nodes."""
        self.turn()
        return [(t.node, t.space) for t in self._found("NN")]

    def ends(self, topic: str, is_published: bool = True) -> list[End]:
        """Return the publishers of a topic, or its subscriptions."""
        self.turn()
        found = self._found("MP" if is_published else "MS", name=topic)
        return [End(t.node, t.kind, t.digest, *t.policies) for t in found]

    def wait_for_servers(self, services: list[tuple[str, str]]) -> None:
        """Wait until clients of all services would find a server."""

        def absent() -> list[tuple[str, str]]:
            there = {(t.name, t.kind, t.digest) for t in self._found("SS")}
            return [(n, k) for n, k in services if (n, k, hash_of(k)) not in there]

        self.wait(lambda: not absent(), absent)

    # -- topics

    def subscribe(
        self, topic: str, kind: Any, kept: int, take: Callable[[Any], None]
    ) -> Callable[[], None]:
        """Pass the messages of a topic on, after so many old ones; return what ends this."""
        qos = f":1:,{kept}:,:,:,," if kept else PLAIN
        key, token = self._end("MS", topic, name_of(kind), qos)

        def come(sample: Any) -> None:
            data, attached = sample.payload.to_bytes(), sample.attachment
            self._events.put(lambda: decode(data, attached))

        def decode(data: bytes, attached: Any) -> None:
            # rmw_zenoh drops a message without a whole attachment.
            assert attached is not None, topic
            _, at, length, _ = ATTACHMENT.unpack(attached.to_bytes())
            assert at > 0 and length == 16, topic
            take(deserialize_message(data, kind))

        if kept:
            reader = zenoh.ext.declare_advanced_subscriber(
                self._session,
                key,
                come,
                history=zenoh.ext.HistoryConfig(
                    detect_late_publishers=True, max_samples=kept
                ),
                recovery=zenoh.ext.RecoveryConfig(
                    periodic_queries=None, heartbeat=True
                ),
                subscriber_detection=True,
            )
        else:
            reader = self._session.declare_subscriber(key, come)
        self._declared.append(reader)

        def stop() -> None:
            reader.undeclare()
            token.undeclare()

        return stop

    def listen(self, topic: str, kind: Any, qos: Any = 10) -> Got:
        """A list that gets the messages of a topic with the times of their arrival."""
        got = Got()
        durability = getattr(qos, "durability", None)
        kept = qos.depth if durability == DurabilityPolicy.TRANSIENT_LOCAL else 0
        got.stop = self.subscribe(
            topic, kind, kept, lambda m: got.append((time.monotonic(), m))
        )
        return got

    def first(self, topic: str, kind: Any, qos: Any = LATCHED) -> Any:
        """Return the first message that a new subscription gets."""
        got = self.listen(topic, kind, qos)
        return self.wait(lambda: got, f"nothing on {topic}")[0][1]

    def writer(self, topic: str, kind: Any) -> Writer:
        """Return a publisher."""
        key, _ = self._end("MP", topic, name_of(kind))
        made = self._session.declare_publisher(
            key, congestion_control=zenoh.CongestionControl.DROP
        )
        return Writer(self, made, topic, name_of(kind))

    def attachment(self) -> bytes:
        """Return a new attachment."""
        self._sequence += 1
        return ATTACHMENT.pack(self._sequence, time.time_ns(), 16, self._gid)

    # -- services

    def call(self, name: str, kind: Any, /, **fields: Any) -> Any:
        """Return the answer of a service."""
        return self.later(name, kind, kind.Request(**fields))()

    def later(self, name: str, kind: Any, request: Any) -> Callable[[], Any]:
        """Call a service, and return a function that waits for its answer."""
        named = name_of(kind)
        self.wait_for_servers([(name, named)])
        key, token = self._end("SC", name, named)
        asked = self.attachment()
        answers: list[Any] = []
        ended: list[None] = []
        self._session.get(
            key,
            zenoh.handlers.Callback(
                lambda reply: self._events.put(lambda: answers.append(reply)),
                # Only at its end it is known that no second server answers.
                lambda: self._events.put(lambda: ended.append(None)),
            ),
            payload=serialize_message(request),
            attachment=asked,
            target=zenoh.QueryTarget.ALL_COMPLETE,
            consolidation=zenoh.ConsolidationMode.NONE,
            timeout=10 * PATIENCE_S,
        )

        def answer() -> Any:
            self.wait(lambda: ended, f"no answer of {name}")
            token.undeclare()
            (reply,) = answers
            assert reply.ok is not None, reply.err.payload.to_string()
            number, at, *whose = ATTACHMENT.unpack(reply.ok.attachment.to_bytes())
            mine, _, *me = ATTACHMENT.unpack(asked)
            assert (number, whose) == (mine, me) and at > 0, name
            return deserialize_message(reply.ok.payload.to_bytes(), kind.Response)

        return answer

    # -- simulated time

    def _tick(self, message: Clock) -> None:
        self._time = message.clock
        now = message.clock.sec + 1e-9 * message.clock.nanosec
        for last, period, act in self._acts:
            if now >= last[0] + period:
                last[0] = now
                act()

    def stamp(self) -> Any:
        """Return the time of /clock; None before there is one."""
        return self._time

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """Call a function at intervals of simulated time; return what ends this."""
        entry = ([0.0], seconds, act)
        self._acts.append(entry)
        return lambda: self._acts.remove(entry)

    # -- parameters, actions, events

    def parameters(self, node: str) -> Parameters:
        """Return a client of a node's parameters."""
        return Parameters(self, node)

    def act(
        self, name: str, kind: Any, heard: Callable[[Any], None], **fields: Any
    ) -> Goal:
        """Return an accepted goal of an action."""
        return Goal(self, name, kind, heard, kind.Goal(**fields))

    def check_events(self, robot: str) -> None:
        """Matching of a publisher and of a subscription; both are of any QoS, as
        rmw_zenoh lets all match.
        """
        got = self.listen(f"/{robot}/odom", Odometry, LATCHED)
        self.wait(lambda: got, "a reader that asks for more than is kept")
        got.stop()
        writer = self.writer(f"/{robot}/cmd_vel", Twist)
        self.wait(lambda: writer.is_matched(), "no match")
        self.wait(lambda: writer.readers() == 1, "no reader")


class Writer:
    """A publisher."""

    def __init__(self, peer: Peer, made: Any, topic: str, kind: str) -> None:
        self._peer, self._made, self._topic, self._kind = peer, made, topic, kind

    def publish(self, message: Any) -> None:
        """Publish a message."""
        attached = self._peer.attachment()
        self._made.put(serialize_message(message), attachment=attached)

    def readers(self) -> int:
        """Return the number of subscriptions in the graph."""
        ends = self._peer.ends(self._topic, is_published=False)
        return sum(e.kind == self._kind for e in ends)

    def is_matched(self) -> bool:
        """Return whether a subscriber is there, as zenoh itself says."""
        return bool(self._made.matching_status.matching)


class Parameters:
    """Calls of a node's services of parameters, as rclpy's AsyncParameterClient."""

    def __init__(self, peer: Peer, node: str) -> None:
        self._peer, self._node = peer, node

    def _call(self, name: str, kind: Any, **fields: Any) -> Any:
        return self._peer.call(f"{self._node}/{name}", kind, **fields)

    def list_parameters(self) -> Any:
        """Return all names."""
        return self._call("list_parameters", ListParameters)

    def get_parameters(self, names: list[str]) -> Any:
        """Return values."""
        return self._call("get_parameters", GetParameters, names=names)

    def get_parameter_types(self, names: list[str]) -> Any:
        """Return types."""
        return self._call("get_parameter_types", GetParameterTypes, names=names)

    def describe_parameters(self, names: list[str]) -> Any:
        """Return descriptions."""
        return self._call("describe_parameters", DescribeParameters, names=names)

    def set_parameters(self, values: list[Any]) -> Any:
        """Set values one by one."""
        given = [v.to_parameter_msg() for v in values]
        return self._call("set_parameters", SetParameters, parameters=given)

    def set_parameters_atomically(self, values: list[Any]) -> Any:
        """Set all values or none."""
        given = [v.to_parameter_msg() for v in values]
        kind = SetParametersAtomically
        return self._call("set_parameters_atomically", kind, parameters=given)


class Goal:
    """A goal of an action that was accepted."""

    def __init__(
        self, peer: Peer, name: str, kind: Any, heard: Callable[[Any], None], goal: Any
    ) -> None:
        self._peer, self._name = peer, f"{name}/_action"
        self._id = UUID(uuid=list(os.urandom(16)))
        impl = kind.Impl

        def mine(message: Any) -> None:
            if bytes(message.goal_id.uuid) == bytes(self._id.uuid):
                heard(message)

        feedback = f"{self._name}/feedback"
        self._stop = peer.subscribe(feedback, impl.FeedbackMessage, 0, mine)
        send = impl.SendGoalService
        request = send.Request(goal_id=self._id, goal=goal)
        answer = peer.later(f"{self._name}/send_goal", send, request)()
        assert answer.accepted
        get = impl.GetResultService
        asked = get.Request(goal_id=self._id)
        self._result = peer.later(f"{self._name}/get_result", get, asked)

    def cancel(self) -> int:
        """Return how many goals get canceled."""
        request = CancelGoal.Request()
        request.goal_info.goal_id = self._id
        answer = self._peer.later(f"{self._name}/cancel_goal", CancelGoal, request)()
        return len(answer.goals_canceling)

    def end(self) -> tuple[int, Any]:
        """Return status and result of the goal, when it has ended."""
        end = self._result()
        self._stop()
        return end.status, end.result


if __name__ == "__main__":
    run(Peer, globals())
