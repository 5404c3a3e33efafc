"""Rosbridge at the graph of a simulator, without sockets:

topics, inputs, services, rosapi, clients among themselves, read-only.
"""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest

import botyard
from botyard.app.compose import compose
from botyard.interfaces.ros import rosbridge, rosbridge_actions
from botyard.interfaces.ros.graph import RosGraph
from botyard.interfaces.ros.rosbridge import Rosbridge
from botyard.protocols.ros_messages.naming import PROFILES
from botyard.protocols.ros_messages.types import types
from botyard.protocols.rosbridge.limits import MAX_KEPT
from botyard.protocols.rosbridge.outbox import MAX_REQUEST_SIZE
from botyard.protocols.rosbridge.session import RosbridgeSession

cbor2 = pytest.importorskip("cbor2")


class Client:
    """A client without a socket."""

    def __init__(self, world: World) -> None:
        self.log: list[str] = []
        self.session = RosbridgeSession(
            world.bridge, lambda: world.sim.time, warn=self.log.append
        )

    def op(self, op: str, **fields: Any) -> None:
        self.session.receive_data(json.dumps({"op": op, **fields}).encode(), 0.0)

    def out(self) -> list[Any]:
        found = []
        while wire := self.session.data_to_send():
            found.append(
                json.loads(wire) if isinstance(wire, str) else cbor2.loads(wire)
            )

        return found

    def call(self, service: str, args: Any = None) -> Any:
        """Return the values of a response, or the text of a failure."""
        self.op("call_service", service=service, args=args, id="call")
        (told,) = [m for m in self.out() if m["op"] == "service_response"]
        assert told["result"] is not isinstance(told["values"], str)
        return told["values"]

    def get(self, topic: str) -> list[Any]:
        return [
            m["msg"] for m in self.out() if m["op"] == "publish" and m["topic"] == topic
        ]


class World:
    """Ann in an empty plane, with rosbridge."""

    def __init__(self, read_only: bool = False) -> None:
        self.sim = botyard.Simulation(seed=1)
        self.sim.add_robot("p3dx", "ann", pose=(1.0, 2.0, 0.0), lasers=["lms200"])
        self.parts = compose(self.sim, read_only=read_only)
        self.graph = RosGraph(
            self.parts.hub, self.parts.control, self.parts.maps.cells, types()
        )
        self.bridge = Rosbridge(types(), self.graph.stamp)
        self.graph.add(self.bridge)

    def step(self, n: int = 1) -> None:
        for _ in range(n):
            self.sim.step()
            self.graph.on_snapshot(0.0)

    def client(self) -> Client:
        return Client(self)


@pytest.fixture
def world() -> World:
    return World()


def test_topics_and_inputs(world: World) -> None:
    """A robot is driven, and its odometry shows its pose.

    ROS 1 and ROS 2 names of types, and names without a slash, are accepted.
    """
    one = world.client()
    one.op("subscribe", topic="/ann/odom", type="nav_msgs/Odometry")
    one.op(
        "subscribe", topic="ann/odom", type="nav_msgs/msg/Odometry", compression="cbor"
    )
    one.op("subscribe", topic="/ann/base_scan", compression="cbor")
    for _ in range(20):
        one.op(
            "publish", topic="/ann/cmd_vel", msg={"linear": {"x": 0.3}, "angular": {}}
        )
        world.step()

    assert world.sim.robots["ann"].truth.x > 1.3
    told = one.out()
    for name in ("/ann/odom", "ann/odom"):
        xs = [
            m["msg"]["pose"]["pose"]["position"]["x"]
            for m in told
            if m["topic"] == name
        ]
        assert len(xs) >= 10 and xs[-1] == pytest.approx(
            world.sim.robots["ann"].odom.x, abs=1e-9
        )

    scan = next(m["msg"] for m in told if m["topic"] == "/ann/base_scan")
    assert scan["ranges"].tag == 85 and len(scan["ranges"].value) == 4 * 181
    assert one.log == []


def test_an_input_of_two_types(world: World) -> None:
    """cmd_vel takes Twist and TwistStamped:

    a client publishes the type that it has advertised.
    """
    one = world.client()
    one.op("advertise", topic="/ann/cmd_vel", type="geometry_msgs/TwistStamped")
    one.op("publish", topic="/ann/cmd_vel", msg={"twist": {"linear": {"x": 0.3}}})
    world.step(5)
    assert world.sim.robots["ann"].truth.x > 1.0
    one.op("publish", topic="/ann/cmd_vel", msg={"linear": {}})
    assert 'no field "linear"' in one.log.pop()
    one.op("advertise", topic="/ann/cmd_vel", type="std_msgs/String")
    assert "expected geometry_msgs/msg/Twist" in one.log.pop()
    one.op("unadvertise", topic="/ann/cmd_vel")
    one.op("publish", topic="/ann/cmd_vel", msg={"linear": {}})
    assert one.log == []


def test_what_is_the_same_in_all_encodings(world: World) -> None:
    """CBOR-RAW is the CDR of ROS 2."""
    clients = {c: world.client() for c in ("none", "cbor", "cbor-raw", "png")}
    for compression, one in clients.items():
        one.op("subscribe", topic="/ann/odom", compression=compression)
    world.step()
    raw = clients["cbor-raw"].get("/ann/odom")[0]
    message = types().decode_cdr(raw["bytes"], "nav_msgs/Odometry")
    plain = clients["none"].get("/ann/odom")[0]
    assert plain["pose"]["pose"]["position"]["x"] == message.pose.pose.position.x
    assert plain["pose"]["covariance"] == message.pose.covariance.tolist()
    stamp = plain["header"]["stamp"]
    assert (stamp["sec"], stamp["nanosec"]) == (raw["secs"], raw["nsecs"])
    assert clients["cbor"].get("/ann/odom")[0]["pose"]["pose"] == plain["pose"]["pose"]
    assert clients["png"].out()[0]["op"] == "png"


def test_sensors_without_subscribers_rest(world: World) -> None:
    def is_read() -> bool:
        return any(
            world.sim.core.devices.is_read(laser._key)
            for laser in world.sim.robots["ann"].lasers
        )

    one, other = world.client(), world.client()
    for client in (one, other):
        client.op("subscribe", topic="/ann/base_scan")
    world.step()
    assert is_read()
    one.op("unsubscribe", topic="/ann/base_scan")
    world.step()
    assert is_read()
    other.session.close()
    world.step()
    assert not is_read()


def test_latched_topics(world: World) -> None:
    """A late subscriber gets the last message at once; a change goes to all subscribers
    once.
    """
    one = world.client()
    one.op("subscribe", topic="/ann/motors_state")
    assert one.get("/ann/motors_state") == [{"data": True}]
    world.step(3)
    assert one.out() == []
    other = world.client()
    other.op("subscribe", topic="/ann/motors_state", throttle_rate=60_000)
    third = world.client()
    third.op("subscribe", topic="/ann/motors_state")
    wire = other.session.data_to_send()
    assert wire is third.session.data_to_send(), "it is encoded once for all who come"
    assert json.loads(wire)["msg"] == {"data": True}
    one.call("/ann/disable_motors")
    world.step(2)
    assert one.get("/ann/motors_state") == [{"data": False}]


def test_a_robot_that_comes_back(world: World) -> None:
    """Subscriptions outlive robots.

    A topic may be subscribed to before its robot exists, if its type is given.
    """
    one = world.client()
    one.op("subscribe", topic="/bob/odom")
    assert "expected the field type, found none" in one.log.pop()
    one.op("subscribe", topic="/bob/odom", type="nav_msgs/Odometry")
    for _ in range(2):
        world.sim.add_robot("p3dx", "bob", pose=(5.0, 5.0, 0.0))
        world.step(3)
        assert len(one.get("/bob/odom")) >= 2
        world.sim.remove_robot("bob")
        world.step(3)
        one.out()
        world.step(2)
        assert one.out() == []

    assert one.log == []


def test_services(world: World) -> None:
    """Services of ROS 1's world, of simulation_interfaces, and invalid ones."""
    one = world.client()
    assert one.call("/botyard/set_pose", {"name": "ann", "pose": {"x": 4.0, "y": 5.0}})[
        "success"
    ]
    world.step()
    assert world.sim.robots["ann"].truth.x == 4.0
    assert (
        one.call("botyard/set_pose", ["ann", [6.0, 5.0, 0.0]])
        == "pose: expected an object, found [6.0, 5.0, 0.0]"
    )
    state = one.call("/botyard/get_entity_state", ["ann"])["state"]
    assert state["pose"]["position"]["x"] == 4.0
    assert one.call("/botyard/no_such") == 'rosbridge: no service "/botyard/no_such"'
    assert "expected a request of at most" in one.call(
        "/botyard/set_pose", {"name": "x" * 300_000}
    )
    assert one.log == []


def test_rosapi(world: World) -> None:
    one = world.client()
    listed = one.call("rosapi/topics")
    kinds = dict(zip(listed["topics"], listed["types"], strict=True))
    assert (
        kinds["/ann/odom"] == "nav_msgs/msg/Odometry"
        and kinds["/ann/cmd_vel"] == "geometry_msgs/msg/Twist"
    )
    raw = one.call("/rosapi/topics_and_raw_types")
    texts = dict(zip(raw["topics"], raw["typedefs_full_text"], strict=True))
    assert (
        "MSG: geometry_msgs/PoseWithCovariance" in texts["/ann/odom"]
        and "seq" not in texts["/ann/odom"]
    )
    assert one.call("/rosapi/topic_type", {"topic": "/ann/odom"}) == {
        "type": "nav_msgs/msg/Odometry"
    }
    assert (
        "/ann/odom"
        in one.call("/rosapi/topics_for_type", ["nav_msgs/Odometry"])["topics"]
    )
    assert one.call("/rosapi/publishers", ["/ann/odom"]) == {"publishers": ["/botyard"]}
    assert one.call("/rosapi/subscribers", ["/ann/cmd_vel"]) == {
        "subscribers": ["/botyard"]
    }
    assert {"/botyard/pause", "/rosapi/topics"} <= set(
        one.call("/rosapi/services")["services"]
    )
    assert one.call("/rosapi/service_type", ["/botyard/pause"]) == {
        "type": "std_srvs/srv/Trigger"
    }
    assert one.call("/rosapi/services_for_type", ["std_srvs/Trigger"])["services"] == [
        "/botyard/pause",
        "/botyard/resume",
    ]
    assert one.call("/rosapi/service_node", ["/botyard/pause"]) == {"node": "/botyard"}
    assert one.call("/rosapi/service_providers", ["/none"]) == {"providers": []}
    assert {"/botyard", "/rosapi"} <= set(one.call("/rosapi/nodes")["nodes"])
    details = one.call("/rosapi/node_details", ["/botyard"])
    assert (
        "/ann/cmd_vel" in details["subscribing"]
        and "/ann/odom" in details["publishing"]
        and "/botyard/pause" in details["services"]
    )
    assert one.call("/rosapi/get_ros_version") == {"version": 2, "distro": "jazzy"}
    world.step(10)
    assert one.call("/rosapi/get_time") == {"time": {"sec": 1, "nanosec": 0}}
    header, *_ = (
        d
        for d in one.call("/rosapi/message_details", ["sensor_msgs/LaserScan"])[
            "typedefs"
        ]
        if d["type"] == "std_msgs/msg/Header"
    )
    assert header["fieldnames"] == ["stamp", "frame_id"] and header[
        "fieldarraylen"
    ] == [-1, -1]
    (request,) = one.call("/rosapi/service_request_details", ["std_srvs/srv/SetBool"])[
        "typedefs"
    ]
    assert request["fieldtypes"] == ["bool"]
    assert (
        len(
            one.call("/rosapi/service_response_details", ["std_srvs/SetBool"])[
                "typedefs"
            ]
        )
        == 1
    )
    assert "no ROS message type" in one.call("/rosapi/message_details", ["x/Y"])
    assert "expected a text" in one.call("/rosapi/topic_type", {"topic": 5})


def test_parameters(world: World) -> None:
    one = world.client()
    name = "/botyard:ann.trans_accel"
    assert name in one.call("/rosapi/get_param_names")["names"]
    assert one.call("/rosapi/set_param", [name, "1"])["successful"]
    world.step()
    assert one.call("/rosapi/get_param", [name]) == {
        "value": "1.0",
        "successful": True,
        "reason": "",
    }
    assert not one.call("/rosapi/set_param", [name, "-1"])["successful"]
    assert one.call("/rosapi/has_param", ["/botyard:nothing"]) == {"exists": False}
    assert one.call("/rosapi/get_param", ["/botyard:nothing", "7"])["value"] == "7"
    assert "expected node:parameter" in one.call("/rosapi/get_param", ["x"])
    assert "no service" in one.call("/rosapi/get_param", ["/x:y"])
    assert not one.call("/rosapi/delete_param", [name])["successful"]
    assert "expected an integer" in one.call("/rosapi/set_param", [name, "9" * 400])


def test_services_of_clients_are_no_parameter_services(world: World) -> None:
    """They need not answer: their parameters are neither listed nor requested."""
    one, other = world.client(), world.client()
    other.op(
        "advertise_service",
        service="/x/list_parameters",
        type="rcl_interfaces/ListParameters",
    )
    other.op(
        "advertise_service",
        service="/x/get_parameters",
        type="rcl_interfaces/GetParameters",
    )
    assert "/botyard:ann.trans_accel" in one.call("/rosapi/get_param_names")["names"]
    assert "no service" in one.call("/rosapi/get_param", ["/x:y"])
    assert other.out() == []


def test_clients_talk_to_each_other(world: World) -> None:
    """A topic unknown to the simulator, and messages of other clients for a robot."""
    one, other = world.client(), world.client()
    one.op("publish", topic="/talk", msg={"data": "x"})
    assert "is not advertised" in one.log.pop()
    one.op("advertise", topic="/talk", type="std_msgs/String")
    other.op("advertise", topic="/talk", type="std_msgs/Int32")
    assert "expected std_msgs/msg/String" in other.log.pop()
    other.op("subscribe", topic="/talk")
    other.op("subscribe", topic="/ann/cmd_vel", compression="cbor-raw")
    one.op("publish", topic="talk", msg={"data": "hello"})
    one.op("publish", topic="/talk", msg={"dat": "hello"})
    one.op("publish", topic="/ann/cmd_vel", msg={"linear": {"x": 0.25}})
    told = other.out()
    assert (
        told[0] == {"op": "publish", "topic": "/talk", "msg": {"data": "hello"}}
        and len(told) == 2
    )
    assert (
        types().decode_cdr(told[1]["msg"]["bytes"], "geometry_msgs/Twist").linear.x
        == 0.25
    )
    assert 'no field "dat"' in one.log.pop()
    one.session.close()
    other.op("unsubscribe", topic="/talk")
    assert "/talk" not in world.bridge.channels


def test_services_of_clients(world: World) -> None:
    """Calls and answers are forwarded.

    A provider that leaves fails its calls. Names of the simulator are taken.
    """
    provider, one = world.client(), world.client()
    provider.op(
        "advertise_service", service="/add", type="example_interfaces/AddTwoInts"
    )
    for taken in ("/botyard/pause", "/rosapi/topics", "/add"):
        one.op("advertise_service", service=taken, type="std_srvs/Trigger")
        assert "another node" in one.log.pop()

    one.op("call_service", service="add", args={"a": 1}, id="mine")
    (request,) = provider.out()
    assert (request["op"], request["service"], request["args"]) == (
        "call_service",
        "/add",
        {"a": 1},
    )
    one.op("service_response", service="/add", id=request["id"], values={})
    assert "no waiting call has the id" in one.log.pop()
    provider.op(
        "service_response",
        service="/add",
        id=request["id"],
        values={"sum": 3},
        result=True,
    )
    (response,) = one.out()
    assert (response["id"], response["values"], response["result"]) == (
        "mine",
        {"sum": 3},
        True,
    )
    assert "/add" in one.call("/rosapi/services")["services"]
    one.op("call_service", service="/add", id="lost")
    provider.session.close()
    (response,) = one.out()
    assert response["result"] is False and "no longer exists" in response["values"]
    assert world.bridge._requests == {}


def test_calls_that_are_never_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that time out, and calls of clients that have left, no longer count.

    A late answer is dropped.
    """
    monkeypatch.setattr(rosbridge, "MAX_REQUESTS", 2)
    provider = world.client()
    provider.op("advertise_service", service="/slow", type="std_srvs/Trigger")
    for end in (lambda c: c.session.close(), lambda c: c.session.handle_timer(10.0)):
        for _ in range(3):
            caller = world.client()
            caller.op("call_service", service="/slow", timeout=1.0)
            (request,) = provider.out()
            end(caller)
            assert world.bridge._requests == {}

        provider.op("service_response", service="/slow", id=request["id"], values={})
        assert "no waiting call has the id" in provider.log.pop()
        assert [m["values"] for m in caller.out()] in ([], ["timed out"])


def test_limits_of_clients(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_ADVERTISED", "MAX_OFFERED", "MAX_REQUESTS"):
        monkeypatch.setattr(rosbridge, name, 2)
    for name in ("MAX_ACTIONS", "MAX_SERVED_GOALS", "MAX_SENT_GOALS"):
        monkeypatch.setattr(rosbridge_actions, name, 2)
    one, other = world.client(), world.client()
    for n in range(3):
        one.op("advertise", topic=f"/t{n}", type="std_msgs/String")
        # Advertise the first two topics once more, which must not count.
        one.op("advertise", topic=f"/t{min(n, 1)}", type="std_msgs/String")
        one.op("advertise_service", service=f"/s{n}", type="std_srvs/Trigger")
        one.op("advertise_action", action=f"/a{n}", type="x/Fly")
        other.op("call_service", service="/s0", id=n)
        other.op("send_action_goal", action="/a0", id=f"goal {n}")

    assert len(one.log) == 3 and "/t2" not in world.bridge.channels
    assert [m["id"] for m in other.out()] == [2, "goal 2"]
    monkeypatch.setattr(rosbridge_actions, "MAX_SENT_GOALS", 3)
    third = world.client()
    third.op("send_action_goal", action="/a0", id="g")
    assert [m["id"] for m in third.out()] == ["g"], "its server has as many as it may"


def test_read_only() -> None:
    """Robots may be driven, the world cannot be changed."""
    world = World(read_only=True)
    one = world.client()
    assert "no service" in one.call("/botyard/set_pose", {"name": "ann"})
    one.op("publish", topic="/ann/set_pose", msg={})
    assert "is not advertised" in one.log.pop()
    one.op("publish", topic="/ann/cmd_vel", msg={"linear": {"x": 0.3}})
    world.step(5)
    assert world.sim.robots["ann"].truth.x > 1.0


def test_the_transport_goes(world: World) -> None:
    """Topics among clients remain, topics of the graph end."""
    one = world.client()
    one.op("subscribe", topic="/ann/odom")
    world.graph.remove(world.bridge)
    world.step()
    assert one.out() == [] and world.bridge.services == {}
    assert list(world.bridge.channels) == ["/ann/odom"]
    one.session.close()
    assert world.bridge.channels == {}


def test_goals(world: World) -> None:
    """A client without an active goal, with another type, or with an invalid goal gets
    an error.

    rosapi lists actions.
    """
    one = world.client()
    assert one.call("/rosapi/action_servers") == {
        "action_servers": ["/botyard/simulate_steps"]
    }

    def send(action: str, **fields: Any) -> Any:
        one.op("send_action_goal", action=action, id="g", **fields)
        (told,) = one.out()
        assert (
            told["op"],
            told["action"],
            told["id"],
            told["result"],
            told["status"],
        ) == (
            "action_result",
            action,
            "g",
            False,
            0,
        )
        return told["values"]

    steps = "/botyard/simulate_steps"
    assert "no action" in send("/fly")
    assert "expected simulation_interfaces/action/SimulateSteps" in send(
        steps, action_type="x/Fly"
    )
    assert 'no field "step"' in send(steps, args={"step": 1})
    assert "goal.steps: expected an integer" in send(steps, args=["x"], feedback=True)
    assert not world.bridge.channels[f"{steps}/_action/feedback"].readers
    one.op("cancel_action_goal", action=steps, id="g")
    assert "no unfinished goal has this id" in one.log.pop()


def test_actions_of_clients(world: World) -> None:
    """Goals, feedback, cancelling and results are forwarded.

    The other side is notified when a client leaves. Names of the simulator are taken.
    """
    server, one = world.client(), world.client()
    server.op("advertise_action", action="fib", type="example_interfaces/Fibonacci")
    for taken in ("/fib", "/botyard/simulate_steps"):
        one.op("advertise_action", action=taken, type="example_interfaces/Fibonacci")
        assert "serves the action" in one.log.pop()

    assert one.call("/rosapi/action_servers")["action_servers"] == [
        "/botyard/simulate_steps",
        "/fib",
    ]

    def send(ident: str, **fields: Any) -> str:
        """Return the id by which the server knows the goal."""
        one.op("send_action_goal", action="/fib", id=ident, args={"order": 5}, **fields)
        (asked,) = server.out()
        assert (asked["op"], asked["action"], asked["args"]) == (
            "send_action_goal",
            "fib",
            {"order": 5},
        )
        assert asked["action_type"] == "example_interfaces/action/Fibonacci"
        return str(asked["id"])

    def end() -> tuple[Any, ...]:
        (told,) = one.out()
        assert (told["op"], told["action"]) == ("action_result", "/fib")
        return told["id"], told["status"], told["result"], told["values"]

    first, second = send("a", feedback=True), send("b")
    for known in (first, second):
        server.op(
            "action_feedback", action="fib", id=known, values={"sequence": [0, 1]}
        )

    (told,) = one.out()
    assert told == {
        "op": "action_feedback",
        "action": "/fib",
        "id": "a",
        "values": {"sequence": [0, 1]},
    }
    one.op("cancel_action_goal", action="fib", id="b")
    assert server.out() == [{"op": "cancel_action_goal", "action": "fib", "id": second}]
    server.op(
        "action_result", action="fib", id=second, values={}, status=5, result=True
    )
    assert end() == ("b", 5, True, {})
    one.op("action_result", id=first, values={}, status=4)
    assert "no unfinished goal has the id" in one.log.pop()
    server.op("action_result", id=first, status=6, result=False)
    assert end() == ("a", 6, False, None)
    server.op("action_result", id=first, status=4)
    assert "no unfinished goal has the id" in server.log.pop()

    one.op("send_action_goal", action="/fib", action_type="x/Fly", id="c")
    assert "expected example_interfaces/action/Fibonacci" in end()[3]
    send("d")
    one.op("send_action_goal", action="/fib", id="d")
    assert "expected an id without an unfinished goal" in end()[3]
    server.op("unadvertise_action", action="fib")
    assert end() == ("d", 0, False, "the action fib no longer exists")
    server.op("advertise_action", action="/fib", type="example_interfaces/Fibonacci")
    one.op("send_action_goal", action="fib", id="e")
    (asked,) = server.out()
    one.session.close()
    assert server.out() == [
        {"op": "cancel_action_goal", "action": "/fib", "id": asked["id"]}
    ]
    other = world.client()
    other.op("send_action_goal", action="fib", id="f")
    server.session.close()
    (told,) = other.out()
    assert (told["id"], told["result"]) == ("f", False)
    assert not world.bridge._actions._goals and not world.bridge._actions._actions


def test_a_goal_that_is_cancelled_before_it_begins(world: World) -> None:
    """Its result reports no failure.

    The action's name is valid with and without the slash.
    """

    async def run() -> list[Any]:
        one = world.client()
        one.op(
            "send_action_goal",
            action="/botyard/simulate_steps",
            id="g",
            args={"steps": 1},
        )
        one.op("cancel_action_goal", action="botyard/simulate_steps", id="g")
        assert one.log == []
        while not (told := one.out()):
            await asyncio.sleep(0)
        return told

    (told,) = asyncio.run(asyncio.wait_for(run(), 30.0))
    assert (told["op"], told["id"], told["status"]) == ("action_result", "g", 5)
    assert told["values"] == {"result": {"result": 1, "error_message": ""}}


def test_names_and_transforms_of_stage_ros() -> None:
    """Robots are numbered, as are lasers of a robot; base_footprint lies between odom
    and base_link.
    """
    parts = compose(botyard.Simulation(seed=1))
    sim = parts.hub.sim
    sim.add_robot("p3dx", "alice", lasers=["lms200", "lms100"])
    sim.add_robot("p3dx", "bob", pose=(2.0, 0.0, 0.0), lasers=["lms200"])
    graph = RosGraph(
        parts.hub, parts.control, parts.maps.cells, types(), profile=PROFILES["stage"]
    )
    bridge = Rosbridge(types(), graph.stamp)
    graph.add(bridge)
    one = RosbridgeSession(bridge, lambda: sim.time, warn=lambda _text: None)

    def told(op: str, **fields: Any) -> list[Any]:
        one.receive_data(json.dumps({"op": op, **fields}).encode(), 0.0)
        sim.step()
        graph.on_snapshot(0.0)
        found = []
        while wire := one.data_to_send():
            found.append(json.loads(wire))
        return found

    (answer,) = told("call_service", service="/rosapi/topics")
    topics = {
        t
        for t in answer["values"]["topics"]
        if t.startswith(("/robot", "/alice", "/bob"))
    }
    assert topics == {
        f"/robot_{name}"
        for name in (
            "0/base_scan_0",
            "0/base_scan_1",
            "0/odom",
            "0/base_pose_ground_truth",
            "0/cmd_vel",
            "1/base_scan",
            "1/odom",
            "1/base_pose_ground_truth",
            "1/cmd_vel",
        )
    }
    pairs = set()
    for topic in ("/tf", "/tf_static"):
        for message in told("subscribe", topic=topic):
            pairs |= {
                (t["header"]["frame_id"], t["child_frame_id"])
                for t in message["msg"]["transforms"]
            }

    for robot, lasers in (("robot_0", ["_0", "_1"]), ("robot_1", [""])):
        chain = [("odom", "base_footprint"), ("base_footprint", "base_link")]
        chain += [("base_link", f"base_laser_link{laser}") for laser in lasers]
        assert {(f"{robot}/{a}", f"{robot}/{b}") for a, b in chain} <= pairs

    answers = told("subscribe", topic="/robot_0/base_scan_1")
    (scan,) = [m["msg"] for m in answers if m["topic"] == "/robot_0/base_scan_1"]
    assert scan["header"]["frame_id"] == "robot_0/base_laser_link_1"
    sim.remove_robot("alice")
    sim.add_robot("p3dx", "carol", pose=(4.0, 0.0, 0.0))
    (answer,) = [
        m
        for m in told("call_service", service="/rosapi/topics")
        if m["op"] == "service_response"
    ]
    assert {"/robot_0/odom", "/robot_1/odom"} <= set(answer["values"]["topics"]), (
        "a number that is free again"
    )


def lists_alive() -> int:
    """Return the number of live lists."""
    gc.collect()
    return sum(type(thing) is list for thing in gc.get_objects())


@pytest.mark.parametrize("kind", ["service", "action"])
def test_arguments_are_not_kept_until_the_answer(world: World, kind: str) -> None:
    """A provider reads requests and never answers:

    only the names of the callers are kept.
    """
    provider, caller = world.client(), world.client()
    provider.op(f"advertise_{kind}", **{kind: "/mine"}, type="std_srvs/srv/SetBool")
    before = lists_alive()
    for number in range(50):
        args = {"x": [[] for _ in range(1000)]}
        if kind == "service":
            caller.op("call_service", service="/mine", id=str(number), args=args)
        else:
            caller.op(
                "send_action_goal",
                action="/mine",
                action_type="std_srvs/srv/SetBool",
                id=str(number),
                args=args,
            )

        assert len(provider.out()) == 1

    del args
    assert lists_alive() < before + 1000
    assert not caller.session.is_closed and caller.out() == []


@pytest.mark.parametrize("kind", ["service", "action"])
def test_callers_do_not_cut_a_provider_off(world: World, kind: str) -> None:
    """More calls come than it has read:

    calls of one address fail, other callers' calls and answers go on.
    """
    provider, flood = world.client(), [world.client() for _ in range(3)]
    for one in flood:
        one.session.source = "10.0.0.1"
    honest = world.client()
    honest.session.source = "10.0.0.2"
    provider.op(f"advertise_{kind}", **{kind: "/mine"}, type="std_srvs/srv/SetBool")

    def call(one: Client, ident: str, size: int) -> None:
        args = {"data": True, "x": "y" * size}
        if kind == "service":
            one.op("call_service", service="/mine", id=ident, args=args)
        else:
            one.op(
                "send_action_goal",
                action="/mine",
                action_type="std_srvs/srv/SetBool",
                id=ident,
                args=args,
            )

    for number in range(90):
        for one in flood:
            call(one, str(number), 200_000)

    call(honest, "mine", 1000)
    assert not provider.session.is_closed
    told = [m for one in flood for m in one.out()]
    assert told and not any(m["result"] for m in told)
    asked = provider.out()
    assert len(asked) == 270 - len(told) + 1
    assert sum(len(str(m["args"])) for m in asked) <= MAX_REQUEST_SIZE
    if kind == "service":
        provider.op(
            "service_response",
            id=asked[-1]["id"],
            service="/mine",
            values={},
            result=True,
        )
    else:
        provider.op(
            "action_result",
            id=asked[-1]["id"],
            action="/mine",
            values={},
            status=4,
            result=True,
        )

    (done,) = honest.out()
    assert done["id"] == "mine" and done["result"]


def test_a_goal_is_cancelled_once(world: World) -> None:
    """Repeated cancelling sends the server nothing more to read."""
    provider, caller = world.client(), world.client()
    provider.op("advertise_action", action="/mine", type="std_srvs/srv/SetBool")
    caller.op(
        "send_action_goal",
        action="/mine",
        action_type="std_srvs/srv/SetBool",
        id="g",
        args={},
    )
    for _ in range(5000):
        caller.op("cancel_action_goal", action="/mine", id="g")
    assert not provider.session.is_closed
    assert [m["op"] for m in provider.out()] == [
        "send_action_goal",
        "cancel_action_goal",
    ]


def test_large_answers_of_others_do_not_cut_a_caller_off(world: World) -> None:
    """Answers fail when too many of them are unread."""
    provider, caller = world.client(), world.client()
    provider.op("advertise_service", service="/mine", type="std_srvs/srv/SetBool")
    for number in range(60):
        caller.op("call_service", service="/mine", id=str(number))
    for asked in provider.out():
        provider.op(
            "service_response",
            id=asked["id"],
            service="/mine",
            values={"x": "y" * 900_000},
            result=True,
        )

    assert not caller.session.is_closed
    results = [m["result"] for m in caller.out()]
    assert len(results) == 60 and True in results and False in results


def test_what_a_client_makes_us_keep_is_counted_in_bytes(world: World) -> None:
    """Subscriptions, fragments, offers and goals share one account, which is empty
    after the client has left.
    """
    one = world.client()
    account = one.session._account
    refused = 0
    for topic in range(200):
        for ident in range(90):
            one.op(
                "subscribe",
                topic=f"/{topic}",
                type="std_msgs/String",
                id=f"{ident:>250}",
            )
            refused += "memory limit" in one.log[-1] if one.log else 0

        one.log.clear()

    assert refused and account.used <= MAX_KEPT
    for topic in range(200):
        if resolved := world.bridge.channels.get(f"/{topic}"):
            one.op("unsubscribe", topic=resolved.name)

    assert account.used == 0
    one.op("advertise_service", service="/a", type="std_srvs/srv/SetBool")
    one.op("advertise_action", action="/b", type="std_srvs/srv/SetBool")
    one.op("advertise", topic="/c", type="std_msgs/String")
    one.op("advertise", topic="/c", type="std_msgs/String")
    one.op("call_service", service="/a", id="1")
    one.op("send_action_goal", action="/b", action_type="std_srvs/srv/SetBool", id="2")
    one.op("fragment", id="3", num=0, total=5, data="x")
    assert account.used > 6 * 512
    for number in (1, 2):
        one.op("fragment", id="3", num=number, total=5, data="x" * 500)
    one.op("unadvertise", topic="/c")
    one.op("unadvertise_service", service="/a")
    one.op("unadvertise_action", action="/b")
    one.session.handle_timer(1000.0)
    assert account.used == 0
    one.op("advertise_service", service="/a", type="std_srvs/srv/SetBool")
    one.session.close()
    assert account.used == 0 and world.bridge._shares.used == 0


def filled(bridge: Rosbridge, kind: str, number: float, text: str) -> dict[str, Any]:
    """Return a message whose numbers are all equal, as are its texts."""
    return {
        field: _filled(bridge, what, number, text)
        for field, what in bridge.values.fields(kind)
    }


def _filled(bridge: Rosbridge, kind: Any, number: float, text: str) -> Any:
    sort, what = int(kind[0]), kind[1]
    if sort == 1:
        return {
            "string": text,
            "wstring": text,
            "bool": True,
            "float32": min(max(number, -3e38), 3e38),
            "float64": number,
        }.get(what[0], 1)

    if sort == 2:
        return filled(bridge, what, number, text)
    return [_filled(bridge, what[0], number, text)] * (
        what[1] if sort == 3 and what[1] else 1
    )


ASIDE = (
    "load_",
    "unload_",
    "recording",
    "step",
    "set_simulation_state",
    "spawnables",
    "available_worlds",
)
"""Services whose work is done beside the loop, or that take long."""


@pytest.mark.parametrize("number", [1e308, -1e308, 1e200, 3e7])
def test_huge_numbers_are_errors_of_their_request(
    world: World, number: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Each service and input gives an answer, and no exception ends the caller's
    session.
    """
    one = world.client()

    async def scene() -> None:
        for text in ("ann", "zoe", "p3dx"):
            for name, service in sorted(world.bridge.services.items()):
                if "/_action/" in name or any(part in name for part in ASIDE):
                    continue
                request = filled(
                    world.bridge, f"{service.type_name}_Request", number, text
                )
                one.op("call_service", service=name, args=request, id=name)
                await asyncio.sleep(0)
                one.out()
                assert not one.session.is_closed, name

        for channel in list(world.bridge.channels.values()):
            for entry in channel.inputs:
                one.op(
                    "publish",
                    topic=channel.name,
                    msg=filled(world.bridge, entry.type_name, number, "ann"),
                )
                assert not one.session.is_closed, channel.name

        world.step(5)

    asyncio.run(scene())
    internal = [
        r.getMessage()
        for r in caplog.records
        if "internal error" in r.getMessage() or r.exc_info
    ]
    assert not internal


def test_a_place_outside_of_the_world_is_refused(world: World) -> None:
    """The engine's rule holds for every caller."""
    one = world.client()
    pose = {"x": 1e308, "y": 0.0, "theta": 0.0}
    for service, args in (
        ("/botyard/add_robot", {"model": "p3dx", "name": "z", "pose": pose}),
        ("/botyard/set_pose", {"name": "ann", "pose": pose}),
    ):
        said = one.call(service, args)
        assert not said["success"] and "within ±1e+07 m" in said["message"]

    assert list(world.sim.robots) == ["ann"]
