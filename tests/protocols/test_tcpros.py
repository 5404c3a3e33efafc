"""TCPROS and XML-RPC without sockets:

headers, frames, calls, sessions; our master against Debian's, call by call.
"""

from __future__ import annotations

import copy
import math
import os
import random
import re
import subprocess
import time
import tracemalloc
import xmlrpc.client
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.errors import PeerError
from botyard.protocols.tcpros import api, http, wire
from botyard.protocols.tcpros import master as master_module
from botyard.protocols.tcpros import xmlrpc as rpc
from botyard.protocols.tcpros.master import Master
from botyard.protocols.tcpros.parameterserver import Parameters, resolved
from botyard.protocols.tcpros.parameterserver import size as size_of
from botyard.protocols.tcpros.session import (
    Incoming,
    Requested,
    Subscribed,
    Subscription,
)
from tests.ports import free_port
from tests.waiting import PATIENCE

names = st.text(
    st.characters(codec="utf-8", exclude_characters="="), min_size=1, max_size=8
)
fields = st.dictionaries(names, st.text(max_size=20), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut bytes into pieces."""
    at = sorted(c % (len(data) + 1) for c in cuts)
    return [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]


# -- headers and frames


@given(fields)
def test_headers_come_back(header: dict[str, str]) -> None:
    (body,) = wire.Frames().feed_bytes(wire.encode_header(header))
    assert wire.decode_header(body) == header


@given(st.binary(max_size=80))
def test_no_bytes_are_a_header_or_refused(body: bytes) -> None:
    try:
        wire.decode_header(body)
    except PeerError:
        return


@given(
    st.lists(st.binary(max_size=30), max_size=6),
    st.lists(st.integers(0, 1000), max_size=8),
)
def test_frames_do_not_depend_on_how_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(wire.frame, bodies))
    frames = wire.Frames()
    assert [
        b for piece in pieces(stream, cuts) for b in frames.feed_bytes(piece)
    ] == bodies


def test_frames_that_nobody_sends_are_refused() -> None:
    with pytest.raises(PeerError, match="a frame of"):
        wire.Frames().feed_bytes(b"\xff\xff\xff\x7f")
    frames = wire.Frames()
    frames.feed_bytes(wire.frame(b""))
    with pytest.raises(PeerError, match="a frame of"):
        frames.feed_bytes(b"\xff\xff\xff\x7f")


def test_headers_have_bounds() -> None:
    with pytest.raises(PeerError, match="at most 64 fields"):
        wire.decode_header(b"".join(b"\x04\0\0\0%03d=" % i for i in range(100)))
    with pytest.raises(PeerError, match="at most 65536 bytes"):
        wire.Frames().feed_bytes((100 << 20).to_bytes(4, "little"))


def test_a_length_is_only_a_promise() -> None:
    """Memory is allocated for received bytes, not for the announced length."""
    frames = wire.Frames(limit=1 << 30)
    frames.feed_bytes(wire.frame(b"header"))
    tracemalloc.start()
    frames.feed_bytes((1 << 30).to_bytes(4, "little") + b"x" * 1000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000


# -- XML-RPC

plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(
        st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=8
    )
    | st.binary(max_size=8)
    | st.datetimes(datetime(1000, 1, 1)).map(lambda t: t.replace(microsecond=0))
)
values = st.recursive(
    plain,
    lambda v: (
        st.lists(v, max_size=4)
        | st.dictionaries(st.text("abc", max_size=3), v, max_size=3)
    ),
    max_leaves=8,
)
URI = "http://127.0.0.1:11311/"


def calls_of(server: http.Calls, data: bytes) -> list[http.Call]:
    """Return the calls that the bytes complete, each answered at once."""
    found = []
    server.feed_bytes(data)
    while (call := server.next_call()) is not None:
        found.append(call)
        server.answer(http.encode_response(0))

    return found


@given(
    st.text("abcD", min_size=1, max_size=6),
    st.lists(values, max_size=4),
    st.lists(st.integers(0, 5000), max_size=5),
)
def test_calls_come_back_however_the_stream_is_cut(
    method: str, args: list[object], cuts: list[int]
) -> None:
    data = http.ClientCall(URI, method, tuple(args)).request
    server = http.Calls()
    (found,) = [c for piece in pieces(data, cuts) for c in calls_of(server, piece)]
    assert (found.method, list(found.args), server.is_over) == (method, args, True)


def answered(data: bytes, cuts: list[int] = [], closes: bool = True) -> object:  # noqa: B006
    """Return the result that a caller gets of an answer."""
    asking = http.ClientCall(URI, "m", ())
    for piece in pieces(data, cuts):
        if piece and not asking.is_complete:
            asking.feed_bytes(piece)

    if closes and not asking.is_complete:
        asking.feed_bytes(b"")
    assert asking.is_complete
    return asking.value()


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[a : a + size] for a in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


@given(values, st.lists(st.integers(0, 5000), max_size=5))
def test_responses_come_back_however_they_are_framed(
    value: object, cuts: list[int]
) -> None:
    """A peer may keep the connection, send chunks, send 100 first, or close:

    the answer is complete in each case.
    """
    body = http.encode_response(value)
    for data, closes in (
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body, False),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"
            % len(body)
            + body,
            False,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + chunked(body, 40),
            False,
        ),
        (b"HTTP/1.0 200 OK\r\n\r\n" + body, True),
        (
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n"
            % len(body)
            + body
            + b"more",
            False,
        ),
    ):
        assert answered(data, cuts, closes) == value


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_connection_is_kept_when_the_caller_wants_that(version: bytes) -> None:
    body = rpc.encode_call("getPid", ("/me",))
    request = (
        b"POST /RPC2 HTTP/%s\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        % (version, len(body))
        + body
    )
    server = http.Calls()
    server.feed_bytes(request + (request if version == b"1.1" else b""))
    first = server.next_call()
    assert first == http.Call("getPid", ("/me",))
    assert server.next_call() is None, "the next one when the last one is answered"
    said = b"".join(server.answer(http.encode_response([1, "", 5])))
    assert answered(said) == [1, "", 5]
    if version == b"1.0":
        assert server.is_over and b"onnection: close" in said
        return

    assert server.next_call() == first
    assert not server.is_over and not server.is_idle


@given(st.binary(max_size=200))
def test_no_bytes_raise_out_of_the_parser(data: bytes) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data)
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data)
    for act in (
        lambda: calls_of(http.Calls(), data),
        lambda: answered(data),
        lambda: calls_of(http.Calls(), head + data),
        lambda: answered(ok + data),
    ):
        try:
            act()
        except PeerError:
            continue


TAGS = [
    "methodCall",
    "methodName",
    "params",
    "param",
    "value",
    "array",
    "data",
    "struct",
    "member",
    "name",
    "i4",
    "double",
    "nil",
    "x",
]


@given(
    st.lists(
        st.sampled_from(
            [f"<{t}>" for t in TAGS]
            + [f"</{t}>" for t in TAGS]
            + ["5", "x", "<!--", "<![CDATA[", "&lt;"]
        ),
        max_size=40,
    )
)
def test_no_tags_raise_out_of_the_reader(parts: list[str]) -> None:
    reader = rpc.Reader()
    try:
        for part in ["<methodCall><methodName>m</methodName><params>", *parts]:
            reader.feed(part.encode())
        reader.finish()
    except PeerError:
        return


def refused(request: bytes) -> http.HttpError:
    server = http.Calls()
    with pytest.raises(http.HttpError) as caught:
        calls_of(server, request)
    said = server.refuse(caught.value)
    reason = b"Method Not Allowed" if caught.value.status == 405 else b"Bad Request"
    assert said.startswith(b"HTTP/1.1 %d %s\r\n" % (caught.value.status, reason))
    assert server.is_over
    return caught.value


@pytest.mark.parametrize(
    ("data", "status", "complaint"),
    [
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            405,
            "expected POST",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            411,
            "expected Content-Length",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n",
            413,
            "at most",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
            415,
            "compressed",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\nContent-Length: 3\r\n\r\nabc",
            403,
            "web pages",
        ),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 400, "not HTTP"),
        (b"x" * 20000, 431, "not HTTP"),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
            400,
            "not XML-RPC",
        ),
        (b"\xff\xfe\r\n\r\n", 400, "not HTTP"),
    ],
)
def test_what_is_no_call_is_refused(data: bytes, status: int, complaint: str) -> None:
    error = refused(data)
    assert error.status == status and complaint in str(error)


def document(inside: str) -> bytes:
    return f"<?xml version='1.0'?><methodCall><methodName>m</methodName><params><param>{inside}</param></params></methodCall>".encode()


def read(data: bytes, piece: int = 1000) -> rpc.Document:
    reader = rpc.Reader()
    for at in range(0, len(data), piece):
        reader.feed(data[at : at + piece])
    return reader.finish()


LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<methodCall><methodName>&b;</methodName></methodCall>"""
NESTED = "<value><array><data>" * 3000 + "</data></array></value>" * 3000
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE m SYSTEM "file:///etc/passwd"><methodCall><methodName>m</methodName></methodCall>"""


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (LAUGHS.encode(), "document type"),
        (OUTSIDE.encode(), "document type"),
        (document(NESTED), "at most 32 nested arrays"),
        (
            document("<value><struct><member><name>a</name>" * 40),
            "at most 32 nested arrays",
        ),
        (
            document(
                "<value><array><data>" + "<value/>" * 30_000 + "</data></array></value>"
            ),
            "at most 20000 values",
        ),
        (document("<value><i8>99999999999</i8></value>"), "32 bits"),
        (document("<value><int>1e3</int></value>"), "32 bits"),
        (document("<value><int>" + "9" * 100_000 + "</int></value>"), "32 bits"),
        (document("<value><double>1_0</double></value>"), "expected a number"),
        (document("<value><boolean>yes</boolean></value>"), "0 or 1"),
        (document("<value><base64>a</base64></value>"), "base64"),
        (
            document("<value><dateTime.iso8601>now</dateTime.iso8601></value>"),
            "expected a time",
        ),
        (
            document("<value><i4>1</i4><i4>2</i4></value>"),
            "too many elements in <value>",
        ),
        (
            document("<value><struct><member><name>a</name></member></struct></value>"),
            "a name and a value",
        ),
        (
            document(
                "<value><struct><member><name>"
                + "a" * 300
                + "</name><value/></member></struct></value>"
            ),
            "at most 256 characters",
        ),
        (
            document("<value><i4 " + "a" * 10_000 + "='1'>1</i4></value>"),
            "expected tags of at most",
        ),
        (document("<value>" + "a" * (5 << 20) + "</value>"), "at most 4194304 bytes"),
        (b"<methodCall><params></params></methodCall>", "the name of a method"),
        (b"<a/>", "<a> in <document>"),
        (b"<methodCall><methodName>m", "not XML-RPC"),
        (b"", "not XML-RPC"),
        (document("<value>\x00</value>"), "not XML-RPC"),
        (document("<value>&lol;</value>"), "not XML-RPC"),
    ],
    ids=lambda v: "" if isinstance(v, bytes) else v,
)
def test_documents_beyond_a_limit_are_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(PeerError, match=re.escape(complaint)):
        read(data)


def test_limits_are_checked_before_the_rest_has_come() -> None:
    """A refused document costs only the bytes received so far:

    the reader raises in its middle.
    """
    reader = rpc.Reader()
    with pytest.raises(PeerError, match="at most 32 nested"):
        reader.feed(document(NESTED)[:2000])


def test_values_of_all_kinds_are_read() -> None:
    inside = """<value><array><data><value>plain</value><value><string>a&lt;b</string></value><value><i4>-5</i4></value>
    <value><int> 7 </int></value><value><boolean>1</boolean></value><value><double>-1.5e3</double></value><value><nil/></value>
    <value><base64>aGk=</base64></value><value><dateTime.iso8601>20260131T12:00:00</dateTime.iso8601></value><value><array><data/></array></value><value><struct/></value>
    <value/><value><double>nan</double></value><value><i8>12</i8></value></data></array></value>"""
    (found,) = read(document(inside), 7).values
    assert found[:7] == ["plain", "a<b", -5, 7, True, -1500.0, None]
    assert found[7:12] == [b"hi", datetime(2026, 1, 31, 12), [], {}, ""]
    assert math.isnan(found[12]) and found[13] == 12


def test_what_xml_cannot_hold_is_left_out_or_refused() -> None:
    assert (
        answered(
            b"HTTP/1.0 200 OK\r\n\r\n" + http.encode_response("a\x00\x1b\ud800b\n")
        )
        == "ab\n"
    )
    for bad in (2**31, object(), {1: 2}, {"a": {"b": [2**40]}}):
        with pytest.raises(PeerError, match=r"XML-RPC(:| has)"):
            http.encode_response(bad)


def test_a_long_answer_comes_in_pieces() -> None:
    value = [[f"/topic{i}", ["/node"]] for i in range(2000)]
    parts = list(rpc.response(value))
    assert len(parts) > 10 and max(map(len, parts)) < 100_000
    assert answered(b"HTTP/1.0 200 OK\r\n\r\n" + "".join(parts).encode()) == value


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"HTTP/1.1 404 no\r\n\r\n", "status 200, found 404"),
        (b"", "the connection ended"),
        (b"nonsense\r\n\r\n", "not a valid HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "the connection ended"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "compressed"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9, "interim"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + chunked(b" " * 200, 1),
            "chunks of a few bytes",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (5 << 20), "at most 4194304 bytes"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000, "not a valid HTTP response"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + rpc.encode_call("m", ()), "found a call"),
    ],
    ids=lambda v: "" if isinstance(v, bytes) else v,
)
def test_answers_that_are_none(data: bytes, complaint: str) -> None:
    with pytest.raises(PeerError, match=complaint):
        answered(data)


def test_faults_and_addresses() -> None:
    body = xmlrpc.client.dumps(
        xmlrpc.client.Fault(1, "no\nway"), methodresponse=True
    ).encode()
    with pytest.raises(PeerError, match=r"the peer reports: no\\nway"):
        answered(b"HTTP/1.0 200 OK\r\n\r\n" + body)
    assert http.address("http://[::1]:5/x") == ("::1", 5)
    assert http.address("rosrpc://host:6", "rosrpc") == ("host", 6)
    for bad in (
        "http://host",
        "ftp://host:1",
        "http://host:99999999",
        "",
        "http://:5",
        7,
        ["http://h:1"],
        "http://h\n:5/",
        "http://h:1/" + "a" * 2000,
    ):
        with pytest.raises(PeerError, match="expected an address"):
            http.address(bad)  # type: ignore[arg-type]


# -- arguments


@given(st.sampled_from([*api.MASTER, *api.SLAVE, "x"]), st.lists(values, max_size=5))
def test_no_arguments_raise_out_of_the_check(method: str, args: list[object]) -> None:
    for table in (api.MASTER, api.SLAVE):
        try:
            found = api.checked(table, method, tuple(args))
        except PeerError:
            continue

        assert all(isinstance(a, str) for a in found[:1]), "who calls is a text"


@pytest.mark.parametrize(
    ("method", "args", "complaint"),
    [
        (
            "registerPublisher",
            ("/n", "/t", "a/B", 5),
            "argument 4: expected an address",
        ),
        ("registerPublisher", ("/n", "/t", "a/B", ["http://h:1"]), "argument 4"),
        (
            "registerSubscriber",
            ("/n", "/t\n", "a/B", URI),
            "argument 2: expected a name",
        ),
        ("registerService", ("/n", "/s", URI, URI), "argument 3"),
        ("setParam", ("/n", 5, 5), "argument 2: expected the key"),
        ("setParam", ("/n", "k" * 2000, 5), "argument 2"),
        ("registerPublisher", ("/n\x1b[2J", "/t", "a/B", URI), "argument 1"),
        ("getPid", (), "expected at least 1 and at most 1 arguments, found 0"),
        ("getPid", ("/n", 1, 2), "found 3"),
        ("__init__", (), "expected a method of the API"),
        ("call", ("getPid", ()), "expected a method of the API"),
        ("words", (), "expected a method of the API"),
    ],
)
def test_arguments_that_are_not_what_is_expected(
    method: str, args: tuple[object, ...], complaint: str
) -> None:
    answer = Master(URI).call(method, args)
    assert answer[0] == -1 and complaint in answer[1]


# -- sessions

OFFER = SimpleNamespace(
    name="/pose",
    type_name="a/B",
    md5="123",
    definition="float64 x",
    latched=True,
    queue=5,
)
SERVICE = SimpleNamespace(name="/go", type_name="s/T", md5="456")


def incoming() -> Incoming:
    return Incoming("/node", {"/pose": OFFER}, {"/go": SERVICE})


def said(session: Incoming) -> dict[str, str]:
    (body,) = wire.Frames().feed_bytes(session.data_to_send())
    return wire.decode_header(body)


def test_a_subscriber_is_greeted() -> None:
    session = incoming()
    session.receive_data(
        wire.encode_header(
            {
                "callerid": "/me",
                "topic": "/pose",
                "type": "a/B",
                "md5sum": "123",
                "tcp_nodelay": "1",
            }
        )
    )
    assert session.next_event() == Subscribed(OFFER, "/me")
    header = said(session)
    assert (
        header["md5sum"],
        header["type"],
        header["latching"],
        header["callerid"],
    ) == ("123", "a/B", "1", "/node")
    assert not session.is_closing
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
def test_what_does_not_fit_is_refused_with_the_reason(
    header: dict[str, str], complaint: str
) -> None:
    session = incoming()
    session.receive_data(wire.encode_header({"callerid": "/me", **header}))
    assert session.is_closing and complaint in session.problem
    assert said(session)["error"] == session.problem
    session.receive_data(wire.frame(b"more"))
    assert session.next_event() is None


def test_any_type_and_sum_will_do_when_the_peer_says_so() -> None:
    session = incoming()
    session.receive_data(
        wire.encode_header({"topic": "/pose", "type": "*", "md5sum": "*"})
    )
    assert isinstance(session.next_event(), Subscribed)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_service_is_called(persistent: bool) -> None:
    session = incoming()
    header = {
        "service": "/go",
        "md5sum": "456",
        "callerid": "/me",
        **({"persistent": "1"} if persistent else {}),
    }
    session.receive_data(
        wire.encode_header(header) + wire.frame(b"one") + wire.frame(b"two")
    )
    assert session.next_event() == Requested(SERVICE, b"one")
    assert said(session) == {
        "callerid": "/node",
        "service": "/go",
        "type": "s/T",
        "md5sum": "456",
        "request_type": "s/TRequest",
        "response_type": "s/TResponse",
    }
    session.answer(b"yes")
    assert session.data_to_send() == b"\x01" + wire.frame(b"yes")
    assert session.is_closing is not persistent
    assert (session.next_event() == Requested(SERVICE, b"two")) is persistent
    session.receive_data(wire.frame(b"three"))
    assert (session.next_event() is not None) is persistent
    session.fail("no")
    assert session.data_to_send() == b"\x00" + wire.frame(b"no")


def test_a_probe_gets_the_header_and_no_more() -> None:
    session = incoming()
    session.receive_data(
        wire.encode_header({"service": "/go", "md5sum": "*", "probe": "1"})
    )
    assert said(session)["type"] == "s/T"
    assert session.is_closing and session.service is None


@given(
    st.lists(st.binary(max_size=60), max_size=5),
    st.sampled_from(
        [
            b"",
            wire.encode_header({"topic": "/pose"}),
            wire.encode_header({"service": "/go", "persistent": "1"}),
        ]
    ),
)
def test_no_bytes_raise_out_of_a_session(data: list[bytes], before: bytes) -> None:
    session = incoming()
    for piece in [before, *data]:
        session.receive_data(piece)
        while isinstance(event := session.next_event(), Requested):
            session.answer(event.body)
        session.data_to_send()

    assert session.problem.isprintable() and session.caller.isprintable()


def test_requests_wait_until_somebody_has_time_for_them() -> None:
    session = incoming()
    session.receive_data(
        wire.encode_header({"service": "/go", "persistent": "1"})
        + wire.frame(b"a") * 100
    )
    for _ in range(100):
        assert session.next_event() == Requested(SERVICE, b"a")
        session.answer(b"b")

    assert session.next_event() is None and not session.is_waited_for


def test_a_request_that_is_too_long_is_refused_as_a_request() -> None:
    session = incoming()
    session.receive_data(
        wire.encode_header({"service": "/go", "callerid": "/x\n\x1b[2Jforged"})
    )
    said(session)
    session.receive_data((1 << 20).to_bytes(4, "little"))
    assert session.next_event() is None and session.is_closing
    assert (
        session.data_to_send().startswith(b"\x00")
        and "at most 65536" in session.problem
    )
    assert session.caller == r"/x\n\x1b[2Jforged"


def test_what_a_subscriber_says_is_not_kept() -> None:
    session = incoming()
    session.receive_data(wire.encode_header({"topic": "/pose"}))
    tracemalloc.start()
    for _ in range(100):
        session.receive_data(b"\0\0\0\1" + b"x" * 10_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 20_000


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_no_bytes_raise_out_of_a_subscription_but_that_they_are_wrong(
    data: list[bytes], greeted: bool
) -> None:
    session = Subscription("/node", "/cmd", "a/B", "123", "")
    try:
        for piece in [
            wire.encode_header({"callerid": "/pub"}) if greeted else b"",
            *data,
        ]:
            session.receive_data(piece)
    except PeerError:
        return


def test_a_subscription() -> None:
    session = Subscription("/node", "/cmd", "a/B", "123", "text")
    (hello,) = wire.Frames().feed_bytes(session.hello)
    assert wire.decode_header(hello)["md5sum"] == "123"
    greeting = wire.encode_header({"callerid": "/pub", "md5sum": "123", "type": "a/B"})
    assert session.receive_data(greeting[:7]) == []
    assert session.receive_data(
        greeting[7:] + wire.frame(b"x") + wire.frame(b"y")[:3]
    ) == [b"x"]
    assert session.receive_data(wire.frame(b"y")[3:]) == [b"y"]
    assert session.caller == "/pub"
    for header, complaint in (
        ({"error": "go away"}, "refuses: go away"),
        ({"md5sum": "9"}, "md5sums do not match"),
    ):
        with pytest.raises(PeerError, match=complaint):
            Subscription("/node", "/cmd", "a/B", "123", "").receive_data(
                wire.encode_header(header)
            )


# -- the master


@pytest.mark.parametrize(
    ("name", "caller", "full"),
    [
        ("/a/b", "/n", "/a/b"),
        ("/a/b/", "/n", "/a/b"),
        ("a", "/n", "/a"),
        ("a", "/ns/n", "/ns/a"),
        ("~a", "/ns/n", "/ns/n/a"),
        ("//a", "/", "/a"),
    ],
)
def test_names_are_resolved(name: str, caller: str, full: str) -> None:
    assert resolved(name, caller) == full


@given(
    st.dictionaries(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(
            lambda p: "/" + "/".join(p)
        ),
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
        [
            "registerPublisher",
            "setParam",
            "getParam",
            "subscribeParam",
            "lookupNode",
            "nonsense",
            "system.multicall",
        ]
    ),
    st.lists(values, max_size=5),
)
def test_no_call_raises_out_of_the_master(method: str, args: list[object]) -> None:
    answer = Master("http://h:1/").call(method, tuple(args))
    assert isinstance(list(answer), list)


trees = st.recursive(
    st.integers(0, 9) | st.text("xy", max_size=3),
    lambda v: (
        st.dictionaries(st.sampled_from("abc"), v, max_size=2) | st.lists(v, max_size=2)
    ),
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["setParam", "deleteParam"]),
            st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/b", "/ab"]),
            trees,
        ),
        max_size=12,
    )
)
def test_what_parameters_take_is_counted(steps: list[tuple[str, str, object]]) -> None:
    """Differences maintain the counts, which always equal a new count.

    Values that were handed out never change.
    """
    master = Master(URI)
    for method, key, value in steps:
        before = master.call("getParam", ("/n", "/"))[2]
        kept = copy.deepcopy(before)
        master.call(method, ("/n", key, value) if method == "setParam" else ("/n", key))
        tree = master.parameters
        size = size_of(tree.get("/"))
        assert (tree.values, tree.text) == (size.values, size.text)
        assert before == kept


def test_parameters_have_bounds() -> None:
    master = Master(URI)

    def put(key: str, value: object) -> str:
        code, text, _ = master.call("setParam", ("/n", key, value))
        return "" if code == 1 else text

    deep: object = 1
    for _ in range(27):
        deep = {"a": deep}
    assert put("/a", deep) == ""
    assert "at most 28 levels" in put("/a/b", deep), "levels of the key count too"
    assert http.encode_response(master.call("getParam", ("/n", "/"))), (
        "what was set can be said"
    )
    assert read(
        rpc.encode_call(
            "paramUpdate", ("/n", "/", master.call("getParam", ("/n", "/"))[2])
        )
    ).method
    assert "at most 16000 values" in put("/many", list(range(16_000)))
    assert "at most 16000 values" in put("/text", "x" * (4 << 20))
    long = {"k" * 250: {"l" * 250: {"m" * 250: {"n" * 250: 1}}}}
    assert "a key of at most 1024" in put("/" + "o" * 100, long)
    assert (
        put("/many", list(range(10_000))) == put("/many", list(range(10_000))) == ""
    ), "setting again takes no more"
    assert master.call("deleteParam", ("/n", "/many"))[0] == 1
    assert put("/other", list(range(10_000))) == ""


def test_registrations_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_module, "MAX_ENTRIES", 20)
    monkeypatch.setattr(master_module, "MAX_OF_TOPIC", 5)
    monkeypatch.setattr(master_module, "MAX_TYPES", 10)
    master = Master(URI)
    codes = [
        master.call("registerSubscriber", (f"/n{i}", "/t", "*", f"http://h:{i + 1}/"))[
            0
        ]
        for i in range(8)
    ]
    assert codes == [1] * 5 + [-1] * 3
    for i in range(40):
        master.call("registerPublisher", ("/p", f"/t{i}", "a/B", "http://p:1/"))
    assert (
        sum(len(nodes) for _, nodes in master.call("getSystemState", ("/n",))[2][0])
        == 15
    )
    assert (
        "registrations is reached"
        in master.call("registerService", ("/q", "/s", "rosrpc://h:1", "http://q:1/"))[
            1
        ]
    )
    for i in range(40):
        master.call("unregisterPublisher", ("/p", f"/t{i}", "http://p:1/"))
        master.call("registerPublisher", ("/p", f"/u{i}", "a/B", "http://p:1/"))
        master.call("unregisterPublisher", ("/p", f"/u{i}", "http://p:1/"))

    assert len(master.call("getTopicTypes", ("/n",))[2]) <= 11
    assert master.call("lookupNode", ("/n", "/p"))[0] == -1, (
        "a node that has nothing is gone, and its room is free"
    )
    assert (
        master.call("registerService", ("/q", "/s", "rosrpc://h:1", "http://q:1/"))[0]
        == 1
    )


def test_a_node_that_begins_anew_elsewhere_has_nothing_of_before() -> None:
    """Other nodes' registrations of the same topics and services stay."""
    master = Master(URI)
    for node, uri in (("/one", "http://one:1/"), ("/other", "http://other:1/")):
        for method, name in (
            ("registerPublisher", "/a"),
            ("registerPublisher", "/b"),
            ("registerSubscriber", "/a"),
        ):
            assert master.call(method, (node, name, "a/B", uri))[0] == 1

        assert (
            master.call(
                "registerService",
                (node, f"/serve{node}", f"rosrpc://{node[1:]}:2", uri),
            )[0]
            == 1
        )

    assert (
        master.call("registerPublisher", ("/one", "/c", "a/B", "http://one:9/"))[0] == 1
    )
    publishers, subscribers, services = master.call("getSystemState", ("/n",))[2]
    assert sorted(publishers) == [
        ["/a", ["/other"]],
        ["/b", ["/other"]],
        ["/c", ["/one"]],
    ]
    assert subscribers == [["/a", ["/other"]]]
    assert services == [["/serve/other", ["/other"]]]
    assert master.call("lookupNode", ("/n", "/one"))[2] == "http://one:9/"
    assert ("http://one:1/", "shutdown") in [
        (notice.uri, notice.method) for notice in master.notices
    ]


def test_one_bad_address_poisons_nothing() -> None:
    master = Master(URI)
    master.call("registerSubscriber", ("/listener", "/t", "a/B", "http://listener:1/"))
    for bad in (5, None, [], {"a": 1}, "nonsense", "http://nowhere", True):
        assert master.call("registerPublisher", ("/bad", "/t", "a/B", bad))[0] == -1
    assert (
        master.call("registerPublisher", ("/good", "/t", "a/B", "http://good:1/"))[0]
        == 1
    )
    (notice,) = master.notices
    assert master.arguments(notice) == ("/master", "/t", ["http://good:1/"])


def test_registrations_of_one_address_have_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(master_module, "MAX_ENTRIES_EACH", 5)
    monkeypatch.setattr(master_module, "MAX_WATCHERS", 3)
    master = Master(URI)

    def code(method: str, *args: str, source: str = "") -> int:
        return int(next(iter(master.call(method, args, source))))

    def register(caller: str, topic: str, source: str) -> int:
        return code(
            "registerPublisher", caller, topic, "a/B", "http://p:1/", source=source
        )

    assert [register(f"/n{i % 2}", f"/t{i}", "10.0.0.1") for i in range(8)] == [
        1
    ] * 5 + [-1] * 3
    assert register("/n0", "/t0", "10.0.0.1") == 1, "what is there already"
    assert register("/o", "/t9", "10.0.0.2") == 1
    assert [register("/own", f"/t{i}", "") for i in range(20)] == [1] * 20
    master.call("unregisterPublisher", ("/n0", "/t0", "http://p:1/"), "10.0.0.1")
    assert [register("/n2", f"/u{i}", "10.0.0.1") for i in range(2)] == [1, -1]
    # A call for /n1 from another address removes the registrations of the old /n1.
    assert (
        code(
            "registerService",
            "/n1",
            "/s",
            "rosrpc://a:1",
            "http://q:1/",
            source="10.0.0.3",
        )
        == 1
    )
    assert [register("/n2", f"/u{i}", "10.0.0.1") for i in range(1, 4)] == [1, 1, -1]
    watch = [code("subscribeParam", "/w", "http://w:1/", f"/k{i}") for i in range(5)]
    assert watch == [1] * 3 + [-1] * 2
    master.call("unsubscribeParam", ("/w", "http://w:1/", "/k0"))
    assert code("subscribeParam", "/w", "http://w:1/", "/k9") == 1
    # A call by /w with another URI removes its earlier subscriptions.
    master.call(
        "subscribeParam",
        ("/w", "http://w:2/", "/k9"),
    )
    assert [
        code("subscribeParam", "/w", "http://w:2/", f"/k{i}") for i in range(3)
    ] == [1, 1, -1]


def test_little_is_kept_of_a_header() -> None:
    """A header may have 64 KiB, and there are thousands of connections."""
    session = Incoming("/node", {}, {"/go": SERVICE})
    fields = {
        "callerid": "/x" * 5000,
        "service": "/go",
        "md5sum": "*",
        "persistent": "1",
        "more": "y" * 50_000,
    }
    session.receive_data(wire.encode_header(fields))
    assert session.service is not None and not session.is_closing
    assert session.header is not None and sum(map(len, session.header.values())) < 300
    assert session.waiting == 0


def test_calls_in_calls_are_small() -> None:
    """``system.multicall`` is for removing registrations; it must not turn one call
    into a thousand long answers.
    """
    master = Master(URI)
    one = {
        "methodName": "registerPublisher",
        "params": ["/n", "/t", "a/B", "http://h:1/"],
    }
    long = {"methodName": "getSystemState", "params": ["/n"]}
    nested = {"methodName": "system.multicall", "params": [[one]]}
    answers = list(master.call("system.multicall", ([one, long, nested, 5],)))
    assert answers[0][0][0] == 1 and all("faultCode" in a for a in answers[1:])
    assert len(list(master.call("system.multicall", ([one] * 6000,)))) == 1


def test_notices_tell_what_is_so_when_they_are_said() -> None:
    master = Master(URI)
    master.call("subscribeParam", ("/n", "http://n:1/", "/a"))
    for value in range(3):
        master.call("setParam", ("/m", "/a/b", value))
    assert len(set(master.notices)) == 1, "the newest of each kind is enough"
    assert master.arguments(master.notices[0]) == ("/master", "/a/b/", 2)


def test_a_node_that_registers_again_replaces_the_old_one() -> None:
    master = Master("http://h:1/")
    master.call("registerPublisher", ("/n", "/t", "a/B", "http://one:1/"))
    master.call("registerPublisher", ("/n", "/t", "a/B", "http://two:1/"))
    assert [(n.uri, n.method) for n in master.notices] == [
        ("http://one:1/", "shutdown")
    ]
    assert master.call("lookupNode", ("/x", "/n"))[2] == "http://two:1/"


@pytest.mark.peer
def test_our_master_answers_like_debians(tmp_path: Path) -> None:
    """The same random calls to both give the same codes and values."""
    if not Path("/usr/bin/rosmaster").exists():
        if os.environ.get("CI"):
            pytest.fail(
                "Debian's rosmaster is missing, and in CI it must be there (make peers)"
            )

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
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with xmlrpc.client.ServerProxy(
            f"http://127.0.0.1:{port}/", allow_none=True, use_builtin_types=True
        ) as theirs:
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
                    assert _comparable(method, our[2]) == _comparable(
                        method, their[2]
                    ), (step, method, args)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _random_call(draw: random.Random) -> tuple[str, tuple[object, ...]]:
    node = draw.choice(["/a", "/b", "/ns/c"])
    # No node listens there, so the master's notices are lost.
    uri = f"http://127.0.0.1:1{len(node)}/"
    topic, kind = draw.choice(["/t", "/u/v", "/ns/w"]), draw.choice(["p/A", "p/B", "*"])
    key, value = (
        draw.choice(["/k", "/k/l", "/m", "rel", "~own", "/k/l/n"]),
        draw.choice([1, 2.5, "x", True, [1, 2], {"l": {"n": 5}}]),
    )
    return draw.choice(
        [
            ("registerPublisher", (node, topic, kind, uri)),
            ("unregisterPublisher", (node, topic, uri)),
            ("registerSubscriber", (node, topic, kind, uri)),
            ("unregisterSubscriber", (node, topic, uri)),
            ("registerService", (node, topic, "rosrpc://127.0.0.1:9", uri)),
            ("unregisterService", (node, topic, "rosrpc://127.0.0.1:9")),
            ("lookupNode", (node, node)),
            ("lookupService", (node, topic)),
            ("getSystemState", (node,)),
            ("getTopicTypes", (node,)),
            ("getPublishedTopics", (node, "")),
            ("setParam", (node, key, value)),
            ("getParam", (node, key)),
            ("hasParam", (node, key)),
            ("deleteParam", (node, key)),
            ("searchParam", (node, draw.choice(["k", "l", "own", "/m", "k/l"]))),
            ("getUri", (node,)),
        ]
    )


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


def test_the_size_of_a_value() -> None:
    """Values, characters, levels, and the longest key with a slash before each part."""
    assert size_of(7) == (1, 0, 0, 0)
    assert size_of("abc") == size_of(b"abc") == (1, 3, 0, 0)
    assert size_of([]) == (1, 0, 1, 0)
    assert size_of([1, "ab", [b"c"]]) == (5, 3, 2, 0)
    assert size_of({"ab": {"c": 1, "def": "xy"}, "": 2}) == (5, 3 + 2 + 4 + 2 + 1, 2, 7)


def test_who_watches_a_deleted_parameter_is_told_and_nobody_else() -> None:
    master = Master(URI)
    for key in ("/a", "/a/b", "/ab", "/c"):
        master.call("setParam", ("/m", key, 1)) if key != "/a" else None
        master.call(
            "subscribeParam",
            (key.replace("/", "n"), "http://n:1/" + key.replace("/", "n"), key),
        )

    master.notices.clear()
    assert master.call("deleteParam", ("/m", "/a"))[0] == 1
    assert [n.uri for n in master.notices] == ["http://n:1/na", "http://n:1/nanb"]
    assert [master.arguments(n) for n in master.notices] == [
        ("/master", "/a/", {}),
        ("/master", "/a/b/", {}),
    ]


def test_names_have_a_greatest_length() -> None:
    master = Master(URI)
    for length, code in ((api.MAX_KEY, 1), (api.MAX_KEY + 1, -1)):
        assert master.call("setParam", ("/n", "/" + "k" * (length - 1), 5))[0] == code
    for length, code in ((api.MAX_NAME, 1), (api.MAX_NAME + 1, -1)):
        assert (
            master.call(
                "registerPublisher", ("/n", "/" + "t" * (length - 1), "a/B", URI)
            )[0]
            == code
        )


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [1, ""],
        [1, "", 0, 0],
        ["1", "", 0],
        [True, "", 0],
        {"a": 1},
        (1, "", 0),
    ],
)
def test_what_is_no_answer_of_a_node(value: object) -> None:
    with pytest.raises(PeerError, match=r"expected \[code, status, value\]"):
        api.answer(value)
    assert api.answer([1, "ok\n", 7]) == (1, "ok\\n", 7)
