"""TCPROS and XML-RPC without sockets: headers, frames, calls, sessions; and our master against Debian's, call by call."""

from __future__ import annotations

import os
import random
import subprocess
import time
import xmlrpc.client
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PeerError
from botyard.protocols.tcpros import wire
from botyard.protocols.tcpros import xmlrpc as rpc
from botyard.protocols.tcpros.master import Master, Parameters, resolved
from botyard.protocols.tcpros.session import Incoming, Requested, Subscribed, Subscription
from tests.ports import free_port
from tests.waiting import PATIENCE

names = st.text(st.characters(codec="utf-8", exclude_characters="="), min_size=1, max_size=8)
fields = st.dictionaries(names, st.text(max_size=20), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The same bytes in pieces."""
    at = sorted(c % (len(data) + 1) for c in cuts)
    return [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]


# -- headers and frames


@given(fields)
def test_headers_come_back(header: dict[str, str]) -> None:
    (body,) = wire.Frames().receive(wire.encode_header(header))
    assert wire.decode_header(body) == header


@given(st.binary(max_size=80))
def test_no_bytes_are_a_header_or_refused(body: bytes) -> None:
    try:
        wire.decode_header(body)
    except PeerError:
        return


@given(st.lists(st.binary(max_size=30), max_size=6), st.lists(st.integers(0, 1000), max_size=8))
def test_frames_do_not_depend_on_how_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(wire.frame, bodies))
    frames = wire.Frames()
    assert [b for piece in pieces(stream, cuts) for b in frames.receive(piece)] == bodies


def test_frames_that_nobody_sends_are_refused() -> None:
    with pytest.raises(PeerError, match="a frame of"):
        wire.Frames().receive(b"\xff\xff\xff\x7f")
    frames = wire.Frames()
    frames.receive(wire.frame(b""))
    with pytest.raises(PeerError, match="a frame of"):
        frames.receive(b"\xff\xff\xff\x7f")


# -- XML-RPC

plain = st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=8
)  # fmt: skip
values = st.recursive(
    plain, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text("abc", max_size=3), v, max_size=3), max_leaves=8
)


@given(
    st.text("abcD", min_size=1, max_size=6), st.lists(values, max_size=4), st.lists(st.integers(0, 5000), max_size=5)
)
def test_calls_come_back_however_the_stream_is_cut(method: str, args: list[object], cuts: list[int]) -> None:
    data = rpc.encode_call("http://127.0.0.1:11311/", method, tuple(args))
    calls = rpc.Calls()
    (found,) = [c for piece in pieces(data, cuts) for c in calls.receive(piece)]
    assert (found.method, list(found.args), found.keep_alive) == (method, args, False)


@given(values)
def test_responses_come_back(value: object) -> None:
    assert rpc.decode_response(rpc.encode_response(value)) == value


@given(st.binary(max_size=200))
def test_no_bytes_raise_out_of_the_parser(data: bytes) -> None:
    head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data)
    for act in (rpc.Calls().receive, rpc.decode_response, lambda d: rpc.Calls().receive(head + d)):
        try:
            act(data)
        except PeerError:
            continue


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "expected POST"),
        (b"POST / HTTP/1.1\r\n\r\n", "without Content-Length"),
        (b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", "at most"),
        (b"x" * 20000, "an HTTP head of more than"),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "not XML-RPC"),
    ],
)
def test_what_is_no_call_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(PeerError, match=complaint):
        rpc.Calls().receive(data)


def test_faults_and_addresses() -> None:
    body = xmlrpc.client.dumps(xmlrpc.client.Fault(1, "no"), methodresponse=True).encode()
    with pytest.raises(PeerError, match="the peer reports: no"):
        rpc.decode_response(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    with pytest.raises(PeerError, match="status 200"):
        rpc.decode_response(b"HTTP/1.1 404 no\r\n\r\n")
    assert rpc.address("http://[::1]:5/x") == ("::1", 5)
    assert rpc.address("rosrpc://host:6", "rosrpc") == ("host", 6)
    for bad in ("http://host", "ftp://host:1", "http://host:99999999", "", "http://:5"):
        with pytest.raises(PeerError, match="expected an address"):
            rpc.address(bad)


# -- sessions

OFFER = SimpleNamespace(name="/pose", type_name="a/B", md5="123", definition="float64 x", latched=True, queue=5)
SERVICE = SimpleNamespace(name="/go", type_name="s/T", md5="456")


def incoming() -> Incoming:
    return Incoming("/node", {"/pose": OFFER}, {"/go": SERVICE})


def said(session: Incoming) -> dict[str, str]:
    (body,) = wire.Frames().receive(session.data_to_send())
    return wire.decode_header(body)


def test_a_subscriber_is_greeted() -> None:
    session = incoming()
    session.receive_data(
        wire.encode_header({"callerid": "/me", "topic": "/pose", "type": "a/B", "md5sum": "123", "tcp_nodelay": "1"})
    )
    assert session.next_event() == Subscribed(OFFER, "/me")
    header = said(session)
    assert (header["md5sum"], header["type"], header["latching"], header["callerid"]) == ("123", "a/B", "1", "/node")
    assert session.wants_no_delay and not session.is_closing
    session.receive_data(b"whatever a subscriber says")
    assert session.next_event() is None


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ({"topic": "/other"}, "topic [/other] is not published by /node"),
        ({"topic": "/pose", "md5sum": "9"}, "the publisher has a/B [123]"),
        ({"topic": "/pose", "type": "x/Y"}, "the subscriber wants x/Y"),
        ({"service": "/other"}, "service [/other] is not served by /node"),
        ({"service": "/go", "md5sum": "9"}, "md5sums do not match: [9] vs. [456]"),
        ({}, "topic [] is not published"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(header: dict[str, str], complaint: str) -> None:
    session = incoming()
    session.receive_data(wire.encode_header({"callerid": "/me", **header}))
    assert session.is_closing and complaint in session.problem
    assert said(session)["error"] == session.problem
    session.receive_data(wire.frame(b"more"))
    assert session.next_event() is None


def test_any_type_and_sum_will_do_when_the_peer_says_so() -> None:
    session = incoming()
    session.receive_data(wire.encode_header({"topic": "/pose", "type": "*", "md5sum": "*"}))
    assert isinstance(session.next_event(), Subscribed)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_service_is_called(persistent: bool) -> None:
    session = incoming()
    header = {"service": "/go", "md5sum": "456", "callerid": "/me", **({"persistent": "1"} if persistent else {})}
    session.receive_data(wire.encode_header(header) + wire.frame(b"one"))
    assert session.next_event() == Requested(SERVICE, b"one")
    said(session)
    session.answer(b"yes")
    assert session.data_to_send() == b"\x01" + wire.frame(b"yes")
    assert session.is_closing is not persistent
    session.receive_data(wire.frame(b"two"))
    assert (session.next_event() is not None) is persistent
    session.fail("no")
    assert session.data_to_send() == b"\x00" + wire.frame(b"no")


def test_a_probe_gets_the_header_and_no_more() -> None:
    session = incoming()
    session.receive_data(wire.encode_header({"service": "/go", "md5sum": "*", "probe": "1"}))
    assert said(session)["type"] == "s/T"
    assert session.is_closing and session.service is None


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_bytes_raise_out_of_a_session(data: list[bytes]) -> None:
    session = incoming()
    for piece in data:
        session.receive_data(piece)
        session.data_to_send()


def test_a_subscription() -> None:
    session = Subscription("/node", "/cmd", "a/B", "123", "text")
    (hello,) = wire.Frames().receive(session.hello)
    assert wire.decode_header(hello)["md5sum"] == "123"
    greeting = wire.encode_header({"callerid": "/pub", "md5sum": "123", "type": "a/B"})
    assert session.receive_data(greeting[:7]) == []
    assert session.receive_data(greeting[7:] + wire.frame(b"x") + wire.frame(b"y")[:3]) == [b"x"]
    assert session.receive_data(wire.frame(b"y")[3:]) == [b"y"]
    assert session.caller == "/pub"
    for header, complaint in (({"error": "go away"}, "refuses: go away"), ({"md5sum": "9"}, "md5sums do not match")):
        with pytest.raises(PeerError, match=complaint):
            Subscription("/node", "/cmd", "a/B", "123", "").receive_data(wire.encode_header(header))


# -- the master


@pytest.mark.parametrize(
    ("name", "caller", "full"),
    [
        ("/a/b", "/n", "/a/b"), ("/a/b/", "/n", "/a/b"), ("a", "/n", "/a"), ("a", "/ns/n", "/ns/a"), ("~a", "/ns/n", "/ns/n/a"),
        ("//a", "/", "/a"),
    ],
)  # fmt: skip
def test_names_are_resolved(name: str, caller: str, full: str) -> None:
    assert resolved(name, caller) == full


@given(
    st.dictionaries(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda p: "/" + "/".join(p)),
        st.integers(),
        max_size=6,
    )
)
def test_parameters_are_a_tree(given_values: dict[str, int]) -> None:
    tree = Parameters()
    for key, value in given_values.items():
        tree.set(key, value)
    for key in tree.names():
        assert isinstance(tree.get(key), int)
    for key in list(tree.names()):
        tree.delete(key)
    assert tree.names() == []


@given(
    st.sampled_from(
        ["registerPublisher", "setParam", "getParam", "subscribeParam", "lookupNode", "nonsense", "system.multicall"]
    ),
    st.lists(values, max_size=5),
)
def test_no_call_raises_out_of_the_master(method: str, args: list[object]) -> None:
    answer = Master("http://h:1/").call(method, tuple(args))
    assert isinstance(answer, list)


def test_a_node_that_registers_again_replaces_the_old_one() -> None:
    master = Master("http://h:1/")
    master.call("registerPublisher", ("/n", "/t", "a/B", "http://one:1/"))
    master.call("registerPublisher", ("/n", "/t", "a/B", "http://two:1/"))
    assert [(n.uri, n.method) for n in master.notices] == [("http://one:1/", "shutdown")]
    assert master.call("lookupNode", ("/x", "/n"))[2] == "http://two:1/"


@pytest.mark.peer
def test_our_master_answers_like_debians(tmp_path: Path) -> None:
    """The same random calls to both: codes and values must be the same."""
    if not Path("/usr/bin/rosmaster").exists():
        if os.environ.get("CI"):
            pytest.fail("Debian's rosmaster is missing, and in CI it must be there (make peers)")
        pytest.skip("needs Debian's rosmaster (make peers)")
    port = free_port(2)
    env = {
        "PATH": "/usr/bin:/bin",
        "ROS_HOME": str(tmp_path),
        "ROS_LOG_DIR": str(tmp_path),
        "ROS_IP": "127.0.0.1",
        "HOME": str(tmp_path),
    }
    command = ["/usr/bin/rosmaster", "--core", "-p", str(port)]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}/", allow_none=True, use_builtin_types=True) as theirs:
            for _ in range(100):
                try:
                    theirs.getPid("/t")
                    break
                except OSError:
                    time.sleep(0.1)
            ours = Master(f"http://127.0.0.1:{port}/")
            draw = random.Random(3)
            for step in range(400):
                method, args = _random_call(draw)
                their = getattr(theirs, method)(*args)
                our = ours.call(method, args)
                assert our[0] == their[0], (step, method, args, our, their)
                if our[0] == 1:
                    assert _comparable(method, our[2]) == _comparable(method, their[2]), (step, method, args)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _random_call(draw: random.Random) -> tuple[str, tuple[object, ...]]:
    node = draw.choice(["/a", "/b", "/ns/c"])
    uri = f"http://127.0.0.1:1{len(node)}/"  # nobody is there: the master's notices are lost
    topic, kind = draw.choice(["/t", "/u/v", "/ns/w"]), draw.choice(["p/A", "p/B", "*"])
    key, value = (
        draw.choice(["/k", "/k/l", "/m", "rel", "~own", "/k/l/n"]),
        draw.choice([1, 2.5, "x", True, [1, 2], {"l": {"n": 5}}]),
    )
    return draw.choice(
        [
            ("registerPublisher", (node, topic, kind, uri)), ("unregisterPublisher", (node, topic, uri)),
            ("registerSubscriber", (node, topic, kind, uri)), ("unregisterSubscriber", (node, topic, uri)),
            ("registerService", (node, topic, "rosrpc://127.0.0.1:9", uri)), ("unregisterService", (node, topic, "rosrpc://127.0.0.1:9")),
            ("lookupNode", (node, node)), ("lookupService", (node, topic)), ("getSystemState", (node,)), ("getTopicTypes", (node,)),
            ("getPublishedTopics", (node, "")), ("setParam", (node, key, value)), ("getParam", (node, key)), ("hasParam", (node, key)),
            ("deleteParam", (node, key)), ("searchParam", (node, draw.choice(["k", "l", "own", "/m", "k/l"]))), ("getUri", (node,)),
        ]
    )  # fmt: skip


def _comparable(method: str, value: object) -> object:
    if method == "getSystemState":
        assert isinstance(value, list)
        return [sorted((n, sorted(who)) for n, who in part) for part in value]
    if method in ("getTopicTypes", "getPublishedTopics"):
        assert isinstance(value, list)
        return sorted(map(tuple, value))
    if method in ("registerPublisher", "registerSubscriber"):
        assert isinstance(value, list)
        return sorted(value)
    return value
