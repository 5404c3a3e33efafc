"""A program of ROS 2, at its default settings: ``rclpy_peer.py WHAT JSON-ARGUMENTS``,
by the Python of an environment of ``make peers``; prints ``RESULT JSON``.

It shares nothing with the simulator: types, bytes, identifiers and hashes are ROS 2's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import rclpy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.action import ActionClient
from rclpy.clock import ClockType
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import (
    DurabilityPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_profile_sensor_data,
)
from ros2_scenes import (
    LATCHED,
    MANY,
    End,
    Got,
    Spinning,
    hash_of,
    nanoseconds,
    run,
    type_of,
)
from tf2_msgs.msg import TFMessage


class Peer(Spinning):
    """A participant of its own, with one node."""

    def __init__(
        self, name: str = "peer", domain: int | None = None, **parameters: Any
    ) -> None:
        self.name = name
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        overrides = [Parameter(key, value=value) for key, value in parameters.items()]
        self.node = rclpy.create_node(
            name, context=self._context, parameter_overrides=overrides
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)

    def turn(self, seconds: float = 0.0) -> None:
        """Take messages that have arrived, or that arrive within a time."""
        self._executor.spin_once(timeout_sec=seconds)

    # -- topics and services

    def call(self, name: str, kind: Any, /, **fields: Any) -> Any:
        """Return the answer of a service."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client = self._clients[name]
        self.wait(client.service_is_ready, f"no server of {name}")
        future = client.call_async(kind.Request(**fields))
        return self.done(future, f"no answer of {name}")

    def listen(self, topic: str, kind: Any, qos: Any = 10, **more: Any) -> Got:
        """A list that gets the messages of a topic with the times of their arrival."""
        got = Got()
        reader = self.node.create_subscription(
            kind, topic, lambda m: got.append((time.monotonic(), m)), qos, **more
        )
        got.stop = lambda: self.node.destroy_subscription(reader)
        return got

    def first(self, topic: str, kind: Any, qos: Any = LATCHED) -> Any:
        """Return the first message that a new subscription gets."""
        got = self.listen(topic, kind, qos)
        return self.wait(lambda: got, f"nothing on {topic}")[0][1]

    def writer(self, topic: str, kind: Any) -> Any:
        """Return a publisher."""
        made = self.node.create_publisher(kind, topic, 1)
        made.readers = made.get_subscription_count
        return made

    # -- the graph

    def graph(self) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Return the types of topics and of services, by name."""
        return (
            {n: set(t) for n, t in self.node.get_topic_names_and_types()},
            {n: set(t) for n, t in self.node.get_service_names_and_types()},
        )

    def nodes(self) -> list[tuple[str, str]]:
        """Return names and namespaces of nodes."""
        return self.node.get_node_names_and_namespaces()

    def ends(
        self, topic: str, is_published: bool = True, is_dds: bool = False
    ) -> list[End]:
        """Return the publishers of a topic, or its subscriptions.

        The topic's name may be one of DDS, such as ``rq/ann/stopRequest``.
        """
        node = self.node
        found = (
            node.get_publishers_info_by_topic(topic, is_dds)
            if is_published
            else node.get_subscriptions_info_by_topic(topic, is_dds)
        )
        return [
            End(
                e.node_name,
                e.topic_type,
                str(e.topic_type_hash),
                e.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
                e.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
            )
            for e in found
        ]

    def wait_for_servers(self, services: list[tuple[str, str]]) -> None:
        """Wait until clients of all services would find a server, and the graph has the
        hashes of its types.
        """

        def absent() -> list[str]:
            return [n for n, t in services if not self._is_served(n, t)]

        self.wait(lambda: not absent(), absent)
        # An action client joins the services of an action; see `simulate`.
        plain = [(n, t) for n, t in services if "/_action/" not in n]
        clients = [self.node.create_client(type_of(t), n) for n, t in plain]
        self.wait(
            lambda: all(c.service_is_ready() for c in clients),
            lambda: [c.srv_name for c in clients if not c.service_is_ready()],
        )
        for client in clients:
            self.node.destroy_client(client)

    def _is_served(self, name: str, kind: str) -> bool:
        requests = self.ends(f"rq{name}Request", is_published=False, is_dds=True)
        replies = self.ends(f"rr{name}Reply", is_dds=True)
        return all(
            {e.digest for e in ends} == {hash_of(f"{kind}_{part}")}
            for ends, part in ((requests, "Request"), (replies, "Response"))
        )

    # -- simulated time

    def stamp(self) -> Any:
        """Return the time of /clock; None before there is one."""
        assert self.node.get_parameter("use_sim_time").value
        now = self.node.get_clock().now()
        return now.to_msg() if now.nanoseconds > 0 else None

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """Call a function at intervals of simulated time; return what ends this."""
        timer = self.node.create_timer(seconds, act, clock=self.node.get_clock())
        assert timer.clock.clock_type == ClockType.ROS_TIME
        return lambda: self.node.destroy_timer(timer)

    # -- parameters, actions, events

    def parameters(self, node: str) -> AsyncParameterClient:
        """Return a client of a node's parameters."""
        client = AsyncParameterClient(self.node, node)
        self.wait(client.services_are_ready, "no services of parameters")
        return client

    def act(
        self, name: str, kind: Any, heard: Callable[[Any], None], **fields: Any
    ) -> Goal:
        """Return an accepted goal of an action."""
        client = ActionClient(self.node, kind, name)
        self.wait(client.server_is_ready, "no action")
        handle = self.done(client.send_goal_async(kind.Goal(**fields), heard))
        assert handle.accepted
        return Goal(self, client, handle)

    def check_events(self, robot: str) -> None:
        """Events: a reader that fits and one that asks for more than is offered, a
        writer that fits.
        """
        events: list[str] = []

        def note(name: str) -> Callable[[Any], None]:
            return lambda event: events.append(
                f"{name} {getattr(event, 'current_count', '')}"
            )

        reading = SubscriptionEventCallbacks(
            incompatible_qos=note("too much"), matched=note("reads")
        )
        writing = PublisherEventCallbacks(
            incompatible_qos=note("too little"), matched=note("writes")
        )
        odom = f"/{robot}/odom"
        too_much = self.listen(odom, Odometry, LATCHED, event_callbacks=reading)
        self.wait(lambda: "too much " in events, events)
        sensor = qos_profile_sensor_data
        fitting = self.listen(odom, Odometry, sensor, event_callbacks=reading)
        self.wait(lambda: fitting and "reads 1" in events, events)
        self.node.create_publisher(
            Twist, f"/{robot}/cmd_vel", 1, event_callbacks=writing
        )
        self.wait(lambda: "writes 1" in events, events)
        assert not too_much and "too little " not in events, events
        # No writer can keep this deadline.
        hurried = QoSProfile(depth=1, deadline=Duration(seconds=1))
        before = events.count("too much ")
        self.listen(odom, Odometry, hurried, event_callbacks=reading)
        self.wait(lambda: events.count("too much ") > before, events)


class Goal:
    """A goal of an action that was accepted."""

    def __init__(self, peer: Peer, client: ActionClient, handle: Any) -> None:
        self._peer, self._client, self._handle = peer, client, handle
        self._result = handle.get_result_async()

    def cancel(self) -> int:
        """Return how many goals get canceled."""
        answer = self._peer.done(self._handle.cancel_goal_async())
        return len(answer.goals_canceling)

    def end(self) -> tuple[int, Any]:
        """Return status and result of the goal, when it has ended."""
        end = self._peer.done(self._result)
        self._client.destroy()
        return end.status, end.result


# -- transforms


class Frames:
    """Which transforms are known at a time, as tf2's buffer knows them: between two of
    its messages, a transform is interpolated.
    """

    def __init__(self, peer: Peer) -> None:
        self._parents: dict[str, str] = {}
        self._spans: dict[str, list[int]] = {}
        many = QoSProfile(depth=1000)
        self._reader = peer.node.create_subscription(TFMessage, "/tf", self._take, many)
        peer.node.create_subscription(TFMessage, "/tf_static", self._keep, LATCHED)

    def _keep(self, message: TFMessage) -> None:
        for one in message.transforms:
            self._parents[one.child_frame_id] = one.header.frame_id

    def _take(self, message: TFMessage) -> None:
        self._keep(message)
        for one in message.transforms:
            now = nanoseconds(one.header.stamp)
            span = self._spans.setdefault(one.child_frame_id, [now, now])
            span[1] = max(span[1], now)

    def chain(self, frame: str, stamp: int) -> list[str]:
        """The frames from one up to the first that is not known at a time."""
        # An executor asks its readers in turn, so a transform that came just before a
        # scan may still wait.
        while (taken := self._reader.handle.take_message(TFMessage, False)) is not None:
            self._take(taken[0])
        found = [frame]
        while frame in self._parents and frame != "map":
            first, last = self._spans.get(frame, (stamp, stamp))
            if not first <= stamp <= last:
                break
            frame = self._parents[frame]
            found.append(frame)
        return found


def transforms(count: int, worlds: list[list[Any]]) -> Any:
    """For each domain with a topic of readings: the chain of frames from a reading's up,
    at its stamp when it comes, and for how many readings it was another.
    """
    out = []
    peers = []
    for domain, topic, kind in worlds:
        peer = Peer("listener", domain)
        frames, chains = Frames(peer), []

        def take(message: Any, frames: Any = frames, chains: Any = chains) -> None:
            stamp = nanoseconds(message.header.stamp)
            chains.append(frames.chain(message.header.frame_id, stamp))

        peer.node.create_subscription(type_of(kind), topic, take, MANY)
        peers.append((peer, chains))

    def whole(chains: list[list[str]]) -> list[list[str]]:
        """The chains since there was the first whole one."""
        begins = (k for k, chain in enumerate(chains) if chain[-1] == "map")
        return chains[next(begins, len(chains)) :]

    for peer, chains in peers:
        peer.wait(
            lambda chains=chains: (
                [p.turn() for p, _ in peers] and len(whole(chains)) >= count
            ),
            lambda chains=chains: chains[-3:],
        )
    for _, chains in peers:
        since = whole(chains)
        out.append([since[0], sum(chain != since[0] for chain in since)])
    return out


if __name__ == "__main__":
    run(Peer, globals())
