"""The rosbridge protocol without sockets: values and encodings, operations, queues and
throttling with a fake clock, hostile bytes.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from botyard.errors import PeerError
from botyard.protocols.ros_messages.messages import Stamp
from botyard.protocols.ros_messages.types import types
from botyard.protocols.rosbridge import cbor, outbox, session
from botyard.protocols.rosbridge.bus import Answer
from botyard.protocols.rosbridge.encodings import Outgoing
from botyard.protocols.rosbridge.limits import MAX_CALLS, MAX_MESSAGE, MAX_SUBSCRIPTIONS
from botyard.protocols.rosbridge.operations import Id, SendActionGoal
from botyard.protocols.rosbridge.session import RosbridgeSession
from botyard.protocols.rosbridge.values import Values, json_of

cbor2 = pytest.importorskip("cbor2")
NOW = Stamp(7, 8)
VALUES = Values(types(), lambda: NOW)


class RequestHandler:
    """A `Bus` that records requests, knows the topics /a (plain) and /b (latched), and
    answers the service /echo at once.
    """

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.later: list[Answer] = []
        self.goals: list[SendActionGoal] = []

    def subscribe(self, client: RosbridgeSession, topic: str, type_name: str) -> None:
        if topic not in ("/a", "/b"):
            raise PeerError(f"no topic {topic}")
        self.said.append(("subscribe", topic, type_name))

    def unsubscribe(self, client: RosbridgeSession, topic: str) -> None:
        self.said.append(("unsubscribe", topic))

    def register_publisher(
        self, client: RosbridgeSession, topic: str, type_name: str
    ) -> None:
        self.said.append(("advertise", topic, type_name))

    def unregister_publisher(self, client: RosbridgeSession, topic: str) -> None:
        self.said.append(("unadvertise", topic))

    def publish(
        self, client: RosbridgeSession, topic: str, values: dict[str, Any], size: int
    ) -> None:
        self.said.append(("publish", topic, values))

    def call(
        self,
        client: RosbridgeSession,
        service: str,
        values: Any,
        size: int,
        answer: Answer,
    ) -> Callable[[], None]:
        if service == "/echo":
            answer(True, {"got": values})
        elif service == "/later":
            self.later.append(answer)
        else:
            raise PeerError(f"no service {service}")

        return lambda: self.said.append(("abandoned", service))

    def register_service(
        self, client: RosbridgeSession, service: str, type_name: str
    ) -> None:
        self.said.append(("offer", service))

    def unregister_service(self, client: RosbridgeSession, service: str) -> None:
        self.said.append(("withdraw", service))

    def responded(
        self, client: RosbridgeSession, ident: str, is_good: bool, values: Any
    ) -> None:
        self.said.append(("responded", ident, is_good, values))

    def send_goal(self, client: RosbridgeSession, wish: SendActionGoal) -> None:
        if wish.action != "/fly":
            raise PeerError(f"no action {wish.action}")
        self.goals.append(wish)

    def cancel_goal(self, client: RosbridgeSession, action: str, ident: Id) -> None:
        self.said.append(("cancel", action, ident))

    def register_action(
        self, client: RosbridgeSession, action: str, type_name: str
    ) -> None:
        self.said.append(("serve", action))

    def unregister_action(self, client: RosbridgeSession, action: str) -> None:
        self.said.append(("unserve", action))

    def publish_feedback(
        self, client: RosbridgeSession, ident: str, values: Any
    ) -> None:
        self.said.append(("feedback", ident, values))

    def end_goal(
        self,
        client: RosbridgeSession,
        ident: str,
        status: int,
        values: Any,
        is_good: bool,
    ) -> None:
        self.said.append(("result", ident, status, values, is_good))

    def release_client(self, client: RosbridgeSession) -> None:
        self.said.append(("leave",))


class Rig:
    """A session with a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.desk = RequestHandler()
        self.log: list[str] = []
        self.session = RosbridgeSession(
            self.desk, lambda: self.now, warn=self.log.append
        )

    def op(self, op: str, **fields: Any) -> None:
        self.session.receive_data(json.dumps({"op": op, **fields}).encode(), self.now)

    def out(self) -> list[Any]:
        found = []
        while wire := self.session.data_to_send():
            found.append(
                json.loads(wire) if isinstance(wire, str) else cbor2.loads(wire)
            )

        return found

    def deliver(
        self, n: int, topic: str = "/a", *, latched: bool = False, queue: int = 10
    ) -> None:
        self.session.deliver(topic, message(n), latched=latched, queue=queue)

    def pass_time(self, seconds: float) -> None:
        """Advance time with the timers that the session requests."""
        end = self.now + seconds
        while (when := self.session.next_timer()) is not None and when <= end:
            self.now = max(self.now, when)
            self.session.handle_timer(self.now)

        self.now = end


def message(n: int, size: int = 0) -> Outgoing:
    return Outgoing(
        lambda: {"data": n, "pad": "x" * size},
        lambda: b"\0\1\0\0" + bytes([n % 256]),
        NOW,
    )


def numbers(out: list[Any]) -> list[int]:
    return [m["msg"]["data"] for m in out]


# -- values


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=40) | st.dictionaries(st.text(), inner, max_size=40)
    ),
    max_leaves=50,
)


@given(PLAIN)
def test_cbor_is_what_another_decoder_reads(value: Any) -> None:
    found = cbor2.loads(cbor.encode(value))
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("kind", ["u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"])
def test_typed_arrays_of_cbor(kind: str) -> None:
    """RFC 8746:

    the tag encodes signed, float, little-endian and width, bit by bit; the bytes are
    the array's bytes.
    """
    array = np.array([0, 1, 100], kind)
    tagged = cbor2.loads(cbor.encode(array))
    is_float, is_signed, width = (
        kind[0] == "f",
        kind[0] == "i",
        {"1": 0, "2": 1, "4": 2, "8": 3}[kind[1]],
    )
    little = 0 if kind == "i1" else 1
    bits = (
        0b010_00000
        | (is_float << 4)
        | (is_signed << 3)
        | (little << 2)
        | (width - is_float)
    )
    assert tagged.tag == bits
    assert tagged.value == array.astype("<" + kind).tobytes()


def test_cbor_of_bytes_and_booleans() -> None:
    assert cbor2.loads(cbor.encode(np.array([1, 255], np.uint8))) == b"\x01\xff"
    assert cbor2.loads(cbor.encode(np.array([True, False]))) == [True, False]
    assert math.isnan(cbor2.loads(cbor.encode(math.nan)))
    with pytest.raises(TypeError, match="CBOR"):
        cbor.encode(object())


def test_json_of_messages() -> None:
    """ROS 2's form:

    no seq, {sec, nanosec}, base64 for uint8[], null for non-finite numbers, {} for an
    empty message.
    """
    scan = VALUES.message(
        {"header": {"frame_id": "f"}, "ranges": [1.5, None], "range_max": 2},
        "sensor_msgs/msg/LaserScan",
    )
    scan.ranges = np.array([1.5, math.inf, math.nan], np.float32)
    told = json.loads(json_of(VALUES.plain(scan, "sensor_msgs/msg/LaserScan")))
    assert told["header"] == {"stamp": {"sec": 7, "nanosec": 8}, "frame_id": "f"}
    assert told["ranges"] == [1.5, None, None] and told["range_max"] == 2.0
    image = VALUES.message({"data": [1, 2, 255]}, "sensor_msgs/msg/Image")
    assert (
        json.loads(json_of(VALUES.plain(image, "sensor_msgs/msg/Image")))["data"]
        == base64.b64encode(b"\1\2\xff").decode()
    )
    empty = VALUES.message({}, "std_srvs/srv/Empty_Request")
    assert VALUES.plain(empty, "std_srvs/srv/Empty_Request") == {}
    ros1 = types().blank("nav_msgs/Odometry")
    assert "seq" not in VALUES.plain(ros1, "nav_msgs/msg/Odometry")["header"]


@pytest.mark.parametrize(
    ("kind", "values", "read"),
    [
        (
            "std_msgs/msg/Header",
            {"stamp": "now"},
            lambda m: (m.stamp.sec, m.stamp.nanosec) == (7, 8),
        ),
        (
            "std_msgs/msg/Header",
            {"stamp": {"secs": 1, "nsecs": 2}},
            lambda m: (m.stamp.sec, m.stamp.nanosec) == (1, 2),
        ),
        (
            "geometry_msgs/msg/PoseStamped",
            {},
            lambda m: m.header.stamp.sec == 7 and m.pose.position.x == 0.0,
        ),
        (
            "sensor_msgs/msg/Image",
            {"data": base64.b64encode(b"ab").decode()},
            lambda m: m.data.tobytes() == b"ab",
        ),
        (
            "sensor_msgs/msg/LaserScan",
            {"ranges": [None, 1]},
            lambda m: math.isnan(m.ranges[0]) and m.ranges[1] == 1.0,
        ),
        (
            "geometry_msgs/msg/Point",
            [1, 2.5],
            lambda m: (m.x, m.y, m.z) == (1.0, 2.5, 0.0),
        ),
        ("std_msgs/msg/UInt64", {"data": 2**64 - 1}, lambda m: m.data == 2**64 - 1),
        ("std_msgs/msg/Int32", {"data": 3.0}, lambda m: m.data == 3),
        (
            "tf2_msgs/msg/TFMessage",
            {"transforms": [{}, {"child_frame_id": "c"}]},
            lambda m: m.transforms[1].child_frame_id == "c",
        ),
    ],
)
def test_values_of_clients(kind: str, values: Any, read: Callable[[Any], bool]) -> None:
    made = VALUES.message(values, kind)
    assert read(made)
    # Encoding succeeds only if all fields have the types that ROS expects.
    assert types().encode_cdr(made, kind)


@pytest.mark.parametrize(
    ("kind", "values", "error"),
    [
        (
            "geometry_msgs/msg/Twist",
            {"liner": {}},
            'no field "liner"; did you mean "linear"',
        ),
        (
            "geometry_msgs/msg/Twist",
            {"linear": {"x": "1"}},
            r"linear\.x: expected a number, found '1'",
        ),
        (
            "geometry_msgs/msg/Twist",
            {"linear": {"x": 10**400}},
            r"linear\.x: expected a number that a double",
        ),
        (
            "std_msgs/msg/Float32",
            {"data": -3.5e38},
            "data: expected a number that a float32 holds, found -3.5e",
        ),
        (
            "sensor_msgs/msg/LaserScan",
            {"ranges": [None, 1e39]},
            r"ranges\[1\]: expected a number that a float32 holds",
        ),
        (
            "std_msgs/msg/Int8",
            {"data": 128},
            "data: expected an integer from -128 to 127, found 128",
        ),
        ("std_msgs/msg/Bool", {"data": 1}, "data: expected true or false, found 1"),
        ("std_msgs/msg/String", {"data": None}, "data: expected a text"),
        (
            "std_msgs/msg/Header",
            {"stamp": {"sec": 2**31}},
            r"stamp\.sec: expected an integer",
        ),
        (
            "std_msgs/msg/Header",
            {"stamp": 5},
            'stamp: expected {sec, nanosec} or "now"',
        ),
        (
            "nav_msgs/msg/Odometry",
            {"pose": {"covariance": [0.0]}},
            r"pose\.covariance: expected 36 numbers, found 1",
        ),
        ("sensor_msgs/msg/Image", {"data": "?"}, "data: expected base64"),
        ("sensor_msgs/msg/LaserScan", {"ranges": ["x"]}, "ranges: Expected"),
        (
            "tf2_msgs/msg/TFMessage",
            {"transforms": [{}, 3]},
            r"transforms\[1\]: expected an object, found 3",
        ),
        ("geometry_msgs/msg/Point", [1, 2, 3, 4], "expected at most 3 values, found 4"),
        ("no_msgs/msg/Such", {}, 'no ROS message type "no_msgs/msg/Such"'),
    ],
)
def test_wrong_values_of_clients(kind: str, values: Any, error: str) -> None:
    with pytest.raises(PeerError, match=error):
        VALUES.message(values, kind)


# -- topics


def test_forms_of_a_message() -> None:
    """JSON, CBOR, CBOR-RAW and PNG have equal content; a PNG's pixels are the JSON
    text.
    """
    for compression in ("none", "cbor", "cbor-raw", "png", "unheard-of"):
        rig = Rig()
        rig.op("subscribe", topic="/a", compression=compression)
        rig.deliver(5)
        (told,) = rig.out()
        if compression == "png":
            pixels = Image.open(io.BytesIO(base64.b64decode(told["data"])))
            assert pixels.mode == "RGB"
            told = json.loads(pixels.tobytes())

        assert (told["op"], told["topic"]) == ("publish", "/a")
        assert told["msg"] == (
            {"secs": 7, "nsecs": 8, "bytes": b"\0\1\0\0\5"}
            if compression == "cbor-raw"
            else {"data": 5, "pad": ""}
        )


def test_a_message_is_encoded_once_for_all_clients() -> None:
    made: list[int] = []
    rigs = [Rig() for _ in range(3)]
    one = Outgoing(lambda: made.append(1) or {"data": 1}, bytes, NOW)  # type: ignore[func-returns-value]
    for rig in rigs:
        rig.op("subscribe", topic="/a")
        rig.session.deliver("/a", one, latched=False, queue=1)

    wires = [rig.session.data_to_send() for rig in rigs]
    assert len(made) == 1 and wires[0] is wires[1] is wires[2]


def test_throttling() -> None:
    """On average at most one message each interval; skipped ones are not encoded."""
    rig = Rig()
    rig.op("subscribe", topic="/a", throttle_rate=1000)
    told = []
    for n in range(100):
        rig.deliver(n)
        told += numbers(rig.out())
        rig.pass_time(0.1)

    assert told == [0, *range(9, 100, 10)]


def test_throttling_with_a_queue() -> None:
    """The last messages of a burst are sent one each interval."""
    rig = Rig()
    rig.op("subscribe", topic="/a", throttle_rate=1000, queue_length=3)
    for n in range(10):
        rig.deliver(n)
    assert numbers(rig.out()) == [0]
    for n in (7, 8, 9):
        rig.pass_time(1.0)
        assert numbers(rig.out()) == [n]

    assert rig.session.next_timer() is None


def test_the_last_message_of_a_latched_topic_is_not_throttled_away() -> None:
    rig = Rig()
    rig.op("subscribe", topic="/b", throttle_rate=1000)
    for n in range(3):
        rig.deliver(n, "/b", latched=True)
    assert numbers(rig.out()) == [0]
    rig.pass_time(1.0)
    assert numbers(rig.out()) == [2]


def test_a_client_that_does_not_read_gets_the_newest_of_each_topic() -> None:
    """No topic evicts another topic's messages unless the sum is too large."""
    rig = Rig()
    rig.op("subscribe", topic="/a", queue_length=5)
    rig.op("subscribe", topic="/b")
    for n in range(100):
        rig.deliver(n, "/a", queue=2)
        rig.deliver(n, "/b", queue=2)

    told = rig.out()
    assert numbers([m for m in told if m["topic"] == "/a"]) == [95, 96, 97, 98, 99]
    assert numbers([m for m in told if m["topic"] == "/b"]) == [98, 99]


def test_what_waits_for_a_client_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Throttled messages count; the newest message is kept whatever its size."""
    monkeypatch.setattr(outbox, "MAX_WAITING", 2000)
    for throttle in (0, 1000):
        rig = Rig()
        rig.op("subscribe", topic="/a", queue_length=100, throttle_rate=throttle)
        for n in range(50):
            rig.session.deliver("/a", message(n, 500), latched=False, queue=100)
        assert rig.session._out._size <= 2000
        rig.pass_time(100.0)
        told = numbers(rig.out())
        assert told[-1] == 49 and len(told) <= 4
        rig.session.deliver("/a", message(77, 5000), latched=False, queue=100)
        assert numbers(rig.out()) == [77] and rig.session._out._size == 0


def test_the_boldest_of_several_subscriptions_counts() -> None:
    rig = Rig()
    rig.op("subscribe", topic="/a", id="x", throttle_rate=1000)
    rig.op("subscribe", topic="/a", id="y", throttle_rate=100, compression="cbor")
    assert rig.desk.said == [("subscribe", "/a", "")]
    for n in range(5):
        rig.deliver(n)
        rig.pass_time(0.1)

    assert len(rig.out()) == 5
    rig.op("unsubscribe", topic="/a", id="y")
    for n in range(8):
        rig.deliver(n)
        rig.pass_time(0.1)

    assert len(rig.out()) == 1
    rig.op("unsubscribe", topic="/a")
    assert rig.desk.said[-1] == ("unsubscribe", "/a")
    rig.deliver(1)
    assert rig.out() == []


@given(st.text(min_size=1, max_size=500), st.integers(1, 200))
def test_fragments(text: str, size: int) -> None:
    """Each fragment has the requested length, above a minimum; together they are the
    message.
    """
    rig = Rig()
    rig.op("subscribe", topic="/a", fragment_size=size)
    rig.session.deliver(
        "/a", Outgoing(lambda: {"data": text}, bytes, NOW), latched=False, queue=1
    )
    told = rig.out()
    if told[0]["op"] == "fragment":
        assert [(m["num"], m["total"], m["id"]) for m in told] == [
            (k, len(told), told[0]["id"]) for k in range(len(told))
        ]
        assert all(len(m["data"]) == max(64, size) for m in told[:-1])
        told = [json.loads("".join(m["data"] for m in told))]

    assert told[0]["msg"] == {"data": text}


def test_fragments_of_a_client() -> None:
    """In any order; rosbridge's own `total` is a float. Incomplete ones are dropped."""
    rig = Rig()
    text = json.dumps({"op": "publish", "topic": "/a", "msg": {"data": "x" * 100}})
    pieces = [text[k : k + 30] for k in range(0, len(text), 30)]
    for k in reversed(range(len(pieces))):
        rig.op("fragment", id=1, data=pieces[k], num=k, total=float(len(pieces)))
    assert rig.desk.said == [("publish", "/a", {"data": "x" * 100})]
    rig.op("set_level", level="warning")
    rig.op("fragment", id=2, data="x", num=0, total=2)
    rig.pass_time(100.0)
    assert "missing" in rig.out()[0]["msg"] and rig.session.next_timer() is None
    for ident in range(40):
        rig.op("fragment", id=ident, data="x" * (MAX_MESSAGE // 4), num=0, total=2)
    assert rig.session._partial.size <= MAX_MESSAGE
    nested = json.dumps({"op": "fragment", "id": 1, "data": "", "num": 0, "total": 1})
    rig.op("fragment", id="n", data=nested, num=0, total=1)
    assert "another fragment" in rig.out()[-1]["msg"]


# -- services, errors


def test_services() -> None:
    rig = Rig()
    rig.op("call_service", service="/echo", args=[1], id="a")
    rig.op("call_service", service="/none", id="b")
    rig.op("call_service", service="/later", id="c", timeout=5)
    rig.op("call_service", service="/later", id="d")
    told = rig.out()
    assert told[0] == {
        "op": "service_response",
        "service": "/echo",
        "values": {"got": [1]},
        "result": True,
        "id": "a",
    }
    assert told[1]["result"] is False and told[1]["values"] == "no service /none"
    rig.pass_time(10.0)
    (late,) = rig.out()
    assert (
        late["id"] == "c" and late["result"] is False and late["values"] == "timed out"
    )
    rig.desk.later[0](True, {})
    assert rig.out() == []
    rig.desk.later[1](True, {})
    assert rig.out()[0]["id"] == "d"


def test_goals() -> None:
    """Feedback is left out while a client does not read; the result is not."""
    rig = Rig()
    rig.op("send_action_goal", action="/swim", action_type="x/Swim", id="g")
    (told,) = rig.out()
    assert told == {
        "op": "action_result",
        "action": "/swim",
        "id": "g",
        "values": "no action /swim",
        "status": 0,
        "result": False,
    }
    rig.op("send_action_goal", action="/fly", id="h", feedback=True)
    (wish,) = rig.desk.goals
    for n in range(500):
        rig.session.goal_feedback(wish, {"n": n})
    rig.op("cancel_action_goal", action="/fly", id="h")
    assert rig.desk.said == [("cancel", "/fly", "h")]
    rig.session.goal_ended(wish, 5, {"end": 1}, is_good=True)
    *feedback, result = rig.out()
    assert [m["values"]["n"] for m in feedback] == list(range(outbox.MAX_FEEDBACK))
    assert (result["status"], result["values"], result["result"], result["id"]) == (
        5,
        {"end": 1},
        True,
        "h",
    )


def test_errors_are_told_to_those_who_ask() -> None:
    """roslibpy raises at a status message that it did not request."""
    rig = Rig()
    rig.op("subscribe", topic="/nowhere")
    rig.session.receive_data(b"{", rig.now)
    assert rig.out() == [] and len(rig.log) == 2
    rig.op("set_level", level="error")
    rig.op("subscribe", topic="/nowhere", id="s")
    assert rig.out() == [
        {"op": "status", "level": "error", "msg": "no topic /nowhere", "id": "s"}
    ]
    # This request causes only a warning, which is below the level.
    rig.op("subscribe", topic="/a", compression="zip")
    assert rig.out() == []


def test_not_finite_numbers_of_python_clients() -> None:
    rig = Rig()
    rig.session.receive_data(
        b'{"op": "publish", "topic": "/a", "msg": {"x": NaN, "y": -Infinity}}', rig.now
    )
    ((_, _, values),) = rig.desk.said
    assert math.isnan(values["x"]) and values["y"] == -math.inf


def test_limits_of_a_client() -> None:
    rig = Rig()
    for _ in range(MAX_CALLS + 1):
        rig.op("call_service", service="/later", id="c")
    (told,) = rig.out()
    assert told["result"] is False and str(MAX_CALLS) in told["values"]
    assert len(rig.desk.later) == MAX_CALLS
    rig.session.receive_data(b" " * (MAX_MESSAGE + 1), rig.now)
    assert str(MAX_MESSAGE) in rig.log[-1]
    for n in range(outbox.MAX_ANSWERS + 1):
        assert not rig.session.is_closed, n
        rig.op("call_service", service="/echo")

    assert rig.session.is_closed
    rig.session.close()
    rig.session.close()
    rig.desk.later[0](True, {})
    assert rig.out() == []


def test_too_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_SUBSCRIPTIONS == 1000
    monkeypatch.setattr(session, "MAX_SUBSCRIPTIONS", 1)
    monkeypatch.setattr(session, "MAX_SAME_TOPIC", 2)
    rig = Rig()
    rig.op("subscribe", topic="/a")
    rig.op("subscribe", topic="/b")
    for n in range(5):
        rig.op("subscribe", topic="/a", id=n)
    assert rig.desk.said == [("subscribe", "/a", "")] and len(rig.log) == 5


NAMES = st.sampled_from(["/a", "/b", "/c", "/echo", "/later", ""]) | st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda i: st.lists(i) | st.dictionaries(st.text(), i),
    max_leaves=5,
)
FIELDS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(
            [
                "advertise",
                "unadvertise",
                "publish",
                "subscribe",
                "unsubscribe",
                "call_service",
                "service_response",
                "advertise_service",
                "unadvertise_service",
                "send_action_goal",
                "cancel_action_goal",
                "advertise_action",
                "unadvertise_action",
                "action_feedback",
                "action_result",
                "fragment",
                "set_level",
                "auth",
                "status",
                "png",
                "x",
            ]
        )
    },
    optional={
        "topic": NAMES,
        "service": NAMES,
        "action": NAMES,
        "type": NAMES,
        "id": JSON,
        "msg": JSON,
        "args": JSON,
        "values": JSON,
        "throttle_rate": st.integers(-5, 5000) | JSON,
        "queue_length": st.integers(-5, 200) | JSON,
        "fragment_size": st.integers(-5, 200) | JSON,
        "compression": st.sampled_from(["none", "png", "cbor", "cbor-raw"]) | JSON,
        "data": st.text(),
        "num": st.integers(0, 3),
        "total": st.integers(1, 3) | JSON,
        "level": st.sampled_from(["none", "error", "info"]),
        "status": st.integers(-1, 7) | JSON,
        "result": st.booleans(),
        "timeout": st.floats(),
    },
)


@given(
    st.lists(
        st.binary(max_size=200)
        | FIELDS.map(lambda f: json.dumps(f).encode())
        | st.floats(0, 100),
        max_size=20,
    )
)
def test_nothing_that_a_client_sends_raises(steps: list[Any]) -> None:
    """Bytes, operations with any fields, and time; the output is JSON or CBOR."""
    rig = Rig()
    rig.op("set_level", level="info")
    for n, step in enumerate(steps):
        if isinstance(step, float):
            rig.pass_time(step)
        else:
            rig.session.receive_data(step, rig.now)

        rig.deliver(n)
        rig.deliver(n, "/b", latched=True)
        for answer in rig.desk.later[:1]:
            answer(True, {"n": n})
        rig.out()

    assert not rig.session.is_closed
    rig.session.close()
    assert rig.desk.said[-1] == ("leave",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"NaN" + b"[" * 100_000,
        b'{"op":"publish","topic":"/a","msg":' + b'{"a":' * 100_000,
        b'{"op":"publish","topic":"/a","msg":{"x":"\\ud800","y":NaN}}',
        b'{"op":"call_service","service":"\\ud800","id":NaN}',
        b'{"op":"subscribe","topic":"/a","id":' + b"9" * 5000 + b"}",
        b'{"op":"publish","topic":"/a","msg":{"x":NaN,"y":' + b"9" * 5000 + b"}}",
        b'{"op":"call_service","service":"/echo","compression":"cbor","args":{"x":1'
        + b"0" * 30
        + b'},"id":-1'
        + b"0" * 30
        + b"}",
    ],
)
def test_hostile_json(data: bytes) -> None:
    rig = Rig()
    rig.op("set_level", level="info")
    rig.session.receive_data(data, rig.now)
    rig.out()
    assert not rig.session.is_closed
