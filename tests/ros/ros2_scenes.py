"""Requests of ROS 2 programs to robots, over any middleware.

`make` is the class of a participant: rclpy_peer.py has one on rclpy, zenoh_rmw_peer.py
one on Zenoh. Types, bytes and hashes are ROS 2's; nothing is the simulator's.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from action_msgs.msg import GoalStatus
from botyard_msgs.srv import AddRobot, RemoveRobot
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import OccupancyGrid, Odometry
from rcl_interfaces.msg import Log, ParameterEvent
from rclpy.parameter import Parameter
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_profile_sensor_data,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import (
    DeleteEntity,
    GetSimulationState,
    LoadWorld,
    SetSimulationState,
    SpawnEntity,
)
from std_msgs.msg import String
from std_srvs.srv import Empty, Trigger
from tf2_msgs.msg import TFMessage

PATIENCE_S = float(os.environ.get("PATIENCE_S", "100"))
# Constants of simulation_interfaces: results, and states of the simulation.
OK = 1
STOPPED, PLAYING, PAUSED = 0, 1, 2
LATCHED = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
MANY = QoSProfile(history=HistoryPolicy.KEEP_ALL)


def type_of(name: str) -> Any:
    """Return the class of a type, such as ``nav_msgs/msg/Odometry``."""
    package, kind, short = name.split("/")
    return getattr(importlib.import_module(f"{package}.{kind}"), short)


def hash_of(name: str) -> str:
    """The hash that rosidl gave to a type; one part of an action is in its file."""
    package, kind, short = name.split("/")
    path = Path(sys.prefix) / "share" / package / kind / f"{short.split('_')[0]}.json"
    hashes = json.loads(path.read_text())["type_hashes"]
    return next(h["hash_string"] for h in hashes if h["type_name"] == name)


@dataclass
class End:
    """A publisher or a subscription, as the graph shows it."""

    node: str
    kind: str
    digest: str
    is_kept: bool
    is_reliable: bool


class Got(list[tuple[float, Any]]):
    """Messages of a topic, with the times of their arrival; `stop` ends them."""

    stop: Callable[[], None]


class Spinning:
    """Waiting: the base of participants."""

    name: str

    def turn(self, seconds: float = 0.0) -> None:
        """Take messages that have arrived, or that arrive within a time."""
        raise NotImplementedError

    def wait(
        self, holds: Callable[[], Any], what: Any = "", seconds: float = PATIENCE_S
    ) -> Any:
        """Spin until a value is true, and return it.

        Time in which this process is stopped (SIGSTOP) does not count.
        """
        left, before = seconds, time.monotonic()
        while not (value := holds()):
            said = what() if callable(what) else what
            assert left > 0, f"{self.name}: {said}"
            self.turn(0.02)
            now = time.monotonic()
            left -= min(now - before, 1.0)
            before = now
        return value

    def done(self, future: Any, what: Any = "") -> Any:
        """Return the result of a future."""
        self.wait(future.done, what)
        return future.result()


# -- what is offered


def offers(
    peer: Any,
    node: str,
    topics: list[list[str]],
    inputs: list[list[str]],
    services: list[list[str]],
) -> int:
    """Nodes, names and types of the graph, hashes of types, and servers."""
    known: set[tuple[str, str, str]] = set()

    def absent() -> list[tuple[str, str, str]]:
        there, served = peer.graph()
        known.update(("topic", n, t) for n, of in there.items() for t in of)
        known.update(("service", n, t) for n, of in served.items() for t in of)
        wanted = [("topic", n, t) for n, t in topics + inputs]
        wanted += [("service", n, t) for n, t in services]
        return [entry for entry in wanted if entry not in known]

    peer.wait(lambda: not absent(), absent)
    peer.wait(lambda: (node, "/") in peer.nodes(), peer.nodes)
    seen = 0
    for name, kind in topics + inputs:
        ends = peer.ends(name, is_published=[name, kind] in topics)
        ours = [e for e in ends if e.kind == kind and e.node == node]
        assert ours, (name, kind, ends)
        for end in ours:
            assert end.digest == hash_of(kind), (name, end, hash_of(kind))
            seen += 1

    peer.wait_for_servers(services)
    return seen


def read_all(peer: Any, topics: list[list[str]], silent: Iterable[str]) -> None:
    """A message of every topic that publishes without being asked to."""
    got: dict[str, Got] = {}
    for name, kind in topics:
        if "/_action/" in name:
            continue
        (end,) = {
            (e.is_kept, e.is_reliable)
            for e in peer.ends(name)
            if e.node != peer.name and e.kind == kind
        }
        assert end[1], name
        qos = LATCHED if end[0] else qos_profile_sensor_data
        got[name] = peer.listen(name, type_of(kind), qos)

    wanted = set(got) - set(silent)
    peer.wait(
        lambda: all(got[n] for n in wanted), lambda: [n for n in wanted if not got[n]]
    )
    for messages in got.values():
        messages.stop()


def parameters(peer: Any, robot: str, other: float) -> None:
    """Do as ``ros2 param``: list, dump, get, describe, set; and hear of changes."""
    client = peer.parameters("/botyard")
    names = list(peer.done(client.list_parameters()).result.names)
    ours = [n for n in names if n.startswith(f"{robot}.")]
    assert "use_sim_time" in names and len(ours) > 3, names
    values = peer.done(client.get_parameters(names)).values
    dump = dict(zip(names, values, strict=True))
    types = peer.done(client.get_parameter_types(names)).types
    assert [v.type for v in values] == list(types) and 0 not in types
    assert dump["use_sim_time"].bool_value
    name = f"{robot}.trans_accel"
    (about,) = peer.done(client.describe_parameters([name])).descriptors
    assert about.name == name and about.floating_point_range and about.description
    assert about.floating_point_range[0].from_value < other
    events = peer.listen("/parameter_events", ParameterEvent)
    peer.wait(lambda: any(e.node == "botyard" for e in peer.ends("/parameter_events")))
    good, bad = (Parameter(name, value=value) for value in (other, -1.0))

    def changed() -> bool:
        return any(
            p.name == name and math.isclose(p.value.double_value, other)
            for _, e in events
            for p in e.changed_parameters
        )

    # Events of changes before the publisher knows its reader do not come.
    end = time.monotonic() + PATIENCE_S
    while not changed():
        for value in (Parameter(name, value=other + 0.01), good):
            (result,) = peer.done(client.set_parameters([value])).results
            assert result.successful, result
        assert time.monotonic() < end, events
    (result,) = peer.done(client.set_parameters([bad])).results
    assert not result.successful and result.reason
    assert not peer.done(
        client.set_parameters_atomically([good, bad])
    ).result.successful
    (value,) = peer.done(client.get_parameters([name])).values
    assert math.isclose(value.double_value, other)


def yaw(message: Odometry) -> float:
    """Return the heading of a robot in the plane."""
    q = message.pose.pose.orientation
    return math.atan2(2 * q.w * q.z, 1 - 2 * q.z * q.z)


def drive(peer: Any, robot: str, is_stamped: bool) -> float:
    """Turn by a quarter in a closed loop on simulated time; how far it is off."""
    odom = peer.listen(f"/{robot}/odom", Odometry, qos_profile_sensor_data)
    out = peer.writer(f"/{robot}/cmd_vel", TwistStamped if is_stamped else Twist)
    peer.wait(lambda: odom and out.readers() > 0, "no odometry")
    peer.wait(lambda: peer.stamp() is not None, "no /clock")
    goal = yaw(odom[-1][1]) + math.pi / 2

    def left() -> float:
        return math.remainder(goal - yaw(odom[-1][1]), 2 * math.pi)

    def control() -> None:
        twist = Twist()
        twist.angular.z = max(-0.8, min(0.8, 2.0 * left()))
        if is_stamped:
            stamped = TwistStamped(twist=twist)
            stamped.header.stamp = peer.stamp()
            out.publish(stamped)
        else:
            out.publish(twist)

    stop = peer.every(0.05, control)
    peer.wait(
        lambda: abs(left()) < 0.03 and abs(odom[-1][1].twist.twist.angular.z) < 0.02,
        lambda: left(),
    )
    stop()
    return left()


def at_once(
    make: Any,
    robot: str,
    topics: list[list[str]],
    inputs: list[list[str]],
    services: list[list[str]],
    silent: list[str],
    accel: float,
) -> Any:
    """All that does not change the world for others."""
    with make(f"peer_{robot}", use_sim_time=True) as peer:
        seen = offers(peer, "botyard", topics, inputs, services)
        read_all(peer, topics, silent)
        peer.check_events(robot)
        parameters(peer, robot, accel)
    off = []
    # A participant of Fast DDS has one type for each topic.
    for is_stamped in (False, True):
        with make(f"driver_{robot}", use_sim_time=True) as driver:
            off.append(drive(driver, robot, is_stamped))
    return {"hashes": seen, "off": off}


# -- worlds and time


def kept(peer: Any, robot: str) -> list[tuple[str, str]]:
    """Topics, with their types, that late readers get the last message of."""
    names = ["motors_state", "battery_recharge_state", "robot_description", "amcl_pose"]
    wanted = {"/map", "/tf_static", *(f"/{robot}/{name}" for name in names)}
    others = ("/rosout", "/parameter_events")

    def found() -> list[tuple[str, str]]:
        return sorted(
            {
                (name, end.kind)
                for name in peer.graph()[0]
                if name not in others and "/_action/" not in name
                for end in peer.ends(name)
                if end.node != peer.name and end.is_kept
            }
        )

    peer.wait(lambda: wanted <= {n for n, _ in found()}, found)
    assert wanted == {n for n, _ in found()}
    return found()


def late(make: Any, topics: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The messages that a new participant gets of latched topics."""
    with make("late") as peer:
        got = {n: peer.listen(n, type_of(k), LATCHED) for n, k in topics}
        peer.wait(
            lambda: all(got.values()), lambda: [n for n, m in got.items() if not m]
        )
        return {n: messages[-1][1] for n, messages in got.items()}


def set_state(peer: Any, state: int) -> None:
    """Play, pause or stop the simulation."""
    answer = peer.call(
        "/botyard/set_simulation_state",
        SetSimulationState,
        state=SimulationState(state=state),
    )
    assert answer.result.result == OK, answer
    found = peer.call("/botyard/get_simulation_state", GetSimulationState)
    assert found.state.state == state


def simulate(peer: Any, steps: int, cancel_after: int = 0) -> list[int]:
    """Steps that were done as the feedback said, until the goal ends, or is canceled
    after so many messages.
    """
    done: list[int] = []
    goal = peer.act(
        "/botyard/simulate_steps",
        SimulateSteps,
        lambda m: done.append(m.feedback.completed_steps),
        steps=steps,
    )
    if cancel_after:
        peer.wait(lambda: len(done) >= cancel_after, done)
        assert goal.cancel() == 1
    status, result = goal.end()
    wanted = GoalStatus.STATUS_CANCELED if cancel_after else GoalStatus.STATUS_SUCCEEDED
    assert status == wanted, status
    if not cancel_after:
        assert result.result.result == OK
    # rclpy drops feedback that it takes before the answer to the goal or after its end.
    assert len(done) > 2 and done == sorted(set(done)), done
    return done


def in_turn(make: Any, robot: str) -> Any:
    """Call all services that change the world."""
    with make("peer") as peer:
        topics = kept(peer, robot)
        maps = peer.listen("/map", OccupancyGrid, LATCHED)
        frames = peer.listen("/tf_static", TFMessage, LATCHED)
        first = late(make, topics)
        set_state(peer, PAUSED)
        assert late(make, topics).keys() == first.keys()
        clock = peer.listen("/clock", Clock, qos_profile_sensor_data)
        # Feedback comes at most a hundred times a second.
        simulate(peer, 1000)
        canceled = simulate(peer, 10**6, cancel_after=5)
        assert len(canceled) < 10**6 and clock
        assert goals_of_late_readers(make) == [
            GoalStatus.STATUS_SUCCEEDED,
            GoalStatus.STATUS_CANCELED,
        ]
        set_state(peer, STOPPED)
        assert late(make, topics).keys() == first.keys()

        # Loading leaves the world stopped.
        answer = peer.call("/botyard/load_world", LoadWorld, uri="botyard://warehouse")
        assert answer.result.result == OK, answer
        old = first["/map"].info
        peer.wait(lambda: maps[-1][1].info.width != old.width, "the old map")
        new = late(make, topics)
        assert new["/map"].info.width == maps[-1][1].info.width != old.width

        # Robots come and go while nothing steps, and while time runs.
        for name, state in (("cid", PAUSED), ("dan", PLAYING)):
            set_state(peer, state)
            come_and_go(make, peer, name, topics, frames)
        before = len(clock)
        peer.wait(lambda: len(clock) > before + 3, "time stands still")
        return {"latched": sorted(first)}


def goals_of_late_readers(make: Any) -> list[int]:
    """Return the statuses of an action's goals that a new participant gets."""
    topic = "/botyard/simulate_steps/_action/status"
    (message,) = late(make, [(topic, "action_msgs/msg/GoalStatusArray")]).values()
    return sorted(goal.status for goal in message.status_list)


def come_and_go(
    make: Any,
    peer: Any,
    robot: str,
    topics: list[tuple[str, str]],
    frames: list[Any],
) -> None:
    """Spawn a robot, read its latched topics, and delete it."""
    spawned = peer.call(
        "/botyard/spawn_entity", SpawnEntity, name=robot, uri="botyard://p3dx"
    )
    assert spawned.result.result == OK, spawned
    description = f"/{robot}/robot_description"
    found = late(make, [(description, "std_msgs/msg/String"), *topics])
    assert "<robot" in found[description].data

    def has_laser(message: TFMessage) -> bool:
        laser = f"{robot}/base_laser"
        return any(t.child_frame_id == laser for t in message.transforms)

    peer.wait(lambda: has_laser(frames[-1][1]), frames[-1])
    assert has_laser(found["/tf_static"])
    deleted = peer.call("/botyard/delete_entity", DeleteEntity, entity=robot)
    assert deleted.result.result == OK, deleted
    peer.wait(lambda: not peer.ends(f"/{robot}/odom"), "the robot stays")
    peer.wait(lambda: not has_laser(frames[-1][1]), "its frames stay")


def old_lines(make: Any, count: int) -> list[str]:
    """The log lines that a late reader gets."""
    late_reader = QoSProfile(
        depth=100,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
    with make("late") as peer:
        got = peer.listen("/rosout", Log, late_reader)
        peer.wait(lambda: len([m for _, m in got if m.name == "botyard"]) >= count, got)
        return [m.msg for _, m in got if m.name == "botyard"]


# -- coming and going


def churn(make: Any, robot: str, count: int) -> list[int]:
    """Return the exit codes of participants that join and read.

    Every second one is killed, the others leave normally.
    """
    ends = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            try:
                with make(f"guest{number}") as peer:
                    peer.first(f"/{robot}/robot_description", String)
                    odom = peer.listen(f"/{robot}/odom", Odometry)
                    peer.wait(lambda odom=odom: len(odom) > 2, "no odometry")
                    if number % 2:
                        os.kill(os.getpid(), signal.SIGKILL)
                os._exit(0)
            finally:
                os._exit(1)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return ends


def read_on(make: Any, robot: str, count: int) -> int:
    """Read a reliable stream; print READING when it flows, and go on after a stop."""
    with make("reader") as peer:
        odom = peer.listen(f"/{robot}/odom", Odometry, MANY)
        peer.wait(lambda: len(odom) > 5, "no odometry")
        print("READING", flush=True)
        before = 0
        while (now := len(odom)) < count or now == before:
            before = now
            peer.wait(lambda now=now: len(odom) > now, "the stream stops")
        return len(odom)


def driven(make: Any, robot: str, metres: float) -> float:
    """Return how far the robot has gone from where it was, when it is far enough."""
    with make("watching") as peer:
        odom = peer.listen(f"/{robot}/odom", Odometry)
        start = peer.wait(lambda: odom, "no odometry")[0][1].pose.pose.position

        def gone() -> float:
            at = odom[-1][1].pose.pose.position
            return math.dist((at.x, at.y), (start.x, start.y))

        return peer.wait(lambda: (far := gone()) > metres and far, gone)


def hold(make: Any, robot: str, width: int) -> int:
    """Read all that is large or often; print READING, and go on after a stop until a
    map of a width has come.
    """
    with make("holding") as peer:
        grids = peer.listen("/map", OccupancyGrid, LATCHED)
        odom = peer.listen(f"/{robot}/odom", Odometry, MANY)
        scans = peer.listen(f"/{robot}/base_scan", LaserScan, MANY)
        peer.wait(lambda: grids and odom and scans, "nothing to read")
        print("READING", flush=True)
        peer.wait(
            lambda: grids[-1][1].info.width == width,
            lambda: [g.info.width for _, g in grids],
        )
        before = len(odom)
        peer.wait(lambda: len(odom) > before + 10, "the stream stops")
        return len(grids)


def crowd(make: Any, robot: str, count: int, uris: list[str]) -> Any:
    """Add robots, load worlds, and remove the robots, while others may stand still;
    return sizes and sums of the maps, and the longest time without a message.
    """
    with make("crowding") as peer:
        grids = peer.listen("/map", OccupancyGrid, LATCHED)
        odom = peer.listen(f"/{robot}/odom", Odometry)
        peer.wait(lambda: grids and odom, "nothing to read")
        for uri in uris:
            before = len(grids)
            assert (
                peer.call("/botyard/load_world", LoadWorld, uri=uri).result.result == OK
            )
            peer.wait(lambda before=before: len(grids) > before, "no new map")
        # Loading leaves the world stopped.
        set_state(peer, PLAYING)
        last = len(odom)
        peer.wait(lambda: len(odom) > last + 20, "the stream stops")
        for number in range(count):
            name = f"guest{number}"
            answer = peer.call(
                "/botyard/add_robot",
                AddRobot,
                model="p3dx",
                name=name,
                anywhere=True,
            )
            assert answer.success, answer
        for number in range(count):
            assert peer.call(
                "/botyard/remove_robot", RemoveRobot, name=f"guest{number}"
            ).success
        end = len(odom)
        peer.wait(lambda: len(odom) > end + 20, "the stream stops")
        found = [
            [g.info.width, g.info.height, len(g.data), zlib.crc32(g.data)]
            for _, g in grids
        ]
        times = [at for at, _ in odom[last:]]
        return {"maps": found, "gap": max(b - a for a, b in pairwise(times))}


def seen(make: Any, count: int, wanted: list[str]) -> list[str]:
    """Return the robots whose odometry is offered when a number of messages of some has
    come.
    """
    with make("looking") as peer:
        got = [peer.listen(f"/{robot}/odom", Odometry) for robot in wanted]
        peer.wait(
            lambda: all(len(messages) >= count for messages in got),
            lambda: list(map(len, got)),
        )
        # Other readers' topics are in the graph as well.
        names = [n for n in peer.graph()[0] if n.endswith("/odom")]
        return sorted(n.split("/")[1] for n in names if peer.ends(n))


def survive(make: Any, robot: str) -> Any:
    """Read and call on while the simulator dies and comes again."""
    with make("faithful") as peer:
        clock = peer.listen("/clock", Clock, qos_profile_sensor_data)
        odom = peer.listen(f"/{robot}/odom", Odometry)
        maps = peer.listen("/map", OccupancyGrid, LATCHED)
        peer.call(f"/{robot}/enable_motors", Empty)
        peer.wait(lambda: len(odom) > 20 and maps, "nothing to read")
        last = clock[-1][1].clock
        print("READING", flush=True)
        peer.wait(
            lambda: nanoseconds(clock[-1][1].clock) < nanoseconds(last),
            "it does not come again",
        )
        before = len(odom)
        peer.wait(lambda: len(odom) > before + 20, "no odometry any more")
        assert peer.call("/botyard/resume", Trigger).success
        peer.wait(lambda: len(maps) > 1, "no map again")
        # The lease of the participant that died must end.
        peer.wait(lambda: len(peer.ends(f"/{robot}/odom")) == 1, "it still is there")
        return {"maps": len(maps)}


def nanoseconds(stamp: Any) -> int:
    """Return a stamp as one number."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


SCENES = {
    f.__name__: f
    for f in (
        at_once,
        in_turn,
        old_lines,
        churn,
        read_on,
        driven,
        hold,
        crowd,
        seen,
        survive,
    )
}


def run(make: Any, own: dict[str, Any]) -> None:
    """Run a function by the command line's name and arguments, and print its result.

    It is one of the program's own, or one of ros2_calls.py, ros2_commands.py or of this
    file.
    """
    from ros2_calls import CALLS
    from ros2_commands import commands

    name, given = sys.argv[1], json.loads(sys.argv[2])
    scenes = {**SCENES, **CALLS, "commands": commands}
    result = own[name](*given) if name in own else scenes[name](make, *given)
    print("RESULT " + json.dumps(result), flush=True)
    # Exit at once: middleware that is busy at the end of a program is not the subject
    # of the test.
    os._exit(0)
