"""Attacks of peers on the simulator's ROS 1 ports, for ``python -m bench.reliability
ros``; each is a process of its own.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
import time
import xmlrpc.client
from collections.abc import Callable
from urllib.parse import urlsplit

from botyard.protocols.tcpros import wire
from botyard.protocols.tcpros import xmlrpc as rpc

NAMED = "http://127.0.0.1:1/"


def ask(uri: str, method: str, *args: object, timeout: float = 60.0) -> object:
    """Make an XML-RPC call as an honest node does."""
    where = urlsplit(uri)
    connection = http.client.HTTPConnection(
        str(where.hostname), where.port or 0, timeout=timeout
    )
    try:
        connection.request(
            "POST", "/", rpc.encode_call(method, args), {"Content-Type": "text/xml"}
        )
        (value,), _ = xmlrpc.client.loads(
            connection.getresponse().read(), use_builtin_types=True
        )
        return value
    finally:
        connection.close()


def node_of(master: str) -> tuple[str, int]:
    """Return the simulator's node: its XML-RPC address and its TCPROS port."""
    uri = str(ask(master, "lookupNode", "/bench", "/botyard")[2])  # type: ignore[index]
    service = str(ask(master, "lookupService", "/bench", "/r0/enable_motors")[2])  # type: ignore[index]
    return uri, int(service.rpartition(":")[2].strip("/"))


def _request(body: bytes, length: int | None = None) -> bytes:
    return (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        % (len(body) if length is None else length)
        + body
    )


def _call(method: str, *args: object) -> bytes:
    return _request(rpc.encode_call(method, args))


def _connect(uri_or_port: str | int) -> socket.socket:
    port = (
        uri_or_port if isinstance(uri_or_port, int) else urlsplit(uri_or_port).port or 0
    )
    return socket.create_connection(("127.0.0.1", port), 10.0)


def _again(until: float, act: Callable[[], None]) -> None:
    """Repeat an action until the end; ignore errors of sockets."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            act()
            continue

        time.sleep(0.01)


def _all_of_it(target: str, data: bytes, until: float) -> None:
    """Send the same bytes repeatedly, each time by a new connection, and read the
    answer.
    """

    def act() -> None:
        with _connect(target) as s:
            s.sendall(data)
            while s.recv(1 << 16) and time.monotonic() < until:
                pass

    _again(until, act)


def _large_calls(master: str, _node: str, _tcp: int, until: float) -> None:
    body = b"<methodCall><methodName>setParam</methodName><params><param><value><array><data>"
    body += b"<value><i4>1</i4></value>" * 600_000
    _all_of_it(master, _request(body[: 15 << 20]), until)


def _values(master: str, _node: str, _tcp: int, until: float) -> None:
    """Set and get as many parameters as the master accepts."""
    _all_of_it(
        master,
        _call("setParam", "/x", "/many", [1] * 15_000)
        + _call("getParam", "/x", "/many"),
        until,
    )


def _nested(master: str, _node: str, _tcp: int, until: float) -> None:
    inside = "<value><array><data>" * 3000 + "</data></array></value>" * 3000
    params = f"<param><value>/x</value></param><param><value>/deep</value></param><param>{inside}</param>"
    body = f"<methodCall><methodName>setParam</methodName><params>{params}</params></methodCall>".encode()
    _all_of_it(master, _request(body) + _call("getParam", "/x", "/"), until)


def _small_calls(_master: str, node: str, _tcp: int, until: float) -> None:
    """Make small calls as fast as possible."""
    data = _call("getBusInfo", "/x") * 200

    def act() -> None:
        with _connect(node) as s:
            s.settimeout(5.0)
            while time.monotonic() < until:
                s.sendall(data)
                s.recv(1 << 20)

    _again(until, act)


def _half_calls(master: str, _node: str, _tcp: int, until: float) -> None:
    """Make two hundred calls that announce 4 MB and stop after one."""
    held = []
    for _ in range(200):
        with contextlib.suppress(OSError):
            s = _connect(master)
            s.settimeout(0.5)
            held.append(s)
            s.sendall(
                _request(
                    b"<methodCall><methodName>m</methodName><params><param><value>"
                    + b"x" * (1 << 20),
                    4 << 20,
                )
            )

    while time.monotonic() < until:
        time.sleep(0.1)
    for s in held:
        s.close()


def _headers(_master: str, _node: str, tcp: int, until: float) -> None:
    """Send headers and requests that announce 100 MB, with as many bytes as the node accepts."""
    greeting = wire.encode_header(
        {"service": "/r0/enable_motors", "md5sum": "*", "persistent": "1"}
    )

    def act(first: bytes) -> None:
        with _connect(tcp) as s:
            s.settimeout(1.0)
            s.sendall(first + struct.pack("<I", 100 << 20))
            for _ in range(100):
                s.sendall(b"x" * (1 << 20))

    def both() -> None:
        act(b"")
        act(greeting)

    _again(until, both)


def _idle(_master: str, _node: str, tcp: int, until: float) -> None:
    """Hold idle connections."""
    held: list[socket.socket] = []
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            held.append(_connect(tcp))
        if len(held) >= 1000:
            held.pop(0).close()
        time.sleep(0.001)


def _map_readers(_master: str, _node: str, tcp: int, until: float) -> None:
    """Subscribe to the map and the odometry without ever reading, as often as the node admits."""
    held = []
    for topic in ("/map", "/r0/odom") * 1000:
        with contextlib.suppress(OSError):
            s = _connect(tcp)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(
                wire.encode_header({"callerid": "/x", "topic": topic, "md5sum": "*"})
            )
            held.append(s)

        if time.monotonic() > until:
            break

    while time.monotonic() < until:
        time.sleep(0.1)


def _map_requests(_master: str, _node: str, tcp: int, until: float) -> None:
    """Request the map, which is long, without reading the answers."""

    def act() -> None:
        with _connect(tcp) as s:
            s.settimeout(1.0)
            header = wire.encode_header(
                {"service": "/static_map", "md5sum": "*", "persistent": "1"}
            )
            s.sendall(header + wire.frame(b"") * 10_000)
            time.sleep(1.0)

    _again(until, act)


def _updates(_master: str, node: str, _tcp: int, until: float) -> None:
    """Send ``publisherUpdate`` with 2000 addresses."""
    uris = [f"http://127.0.0.1:1/{i}" for i in range(2000)]
    _all_of_it(
        node, _call("publisherUpdate", "/master", "/r0/cmd_vel", uris) * 5, until
    )


def _publishers(master: str, _node: str, _tcp: int, until: float) -> None:
    """Register two thousand publishers of a robot's velocity at addresses that do not exist."""
    calls = [
        _call(
            "registerPublisher",
            f"/x{i}",
            "/r0/cmd_vel",
            "geometry_msgs/Twist",
            f"http://127.0.0.1:1/{i}",
        )
        for i in range(2000)
    ]
    number = 0

    def act() -> None:
        nonlocal number
        with _connect(master) as s:
            s.settimeout(5.0)
            s.sendall(b"".join(calls[number : number + 20]))
            s.recv(1 << 20)
            number = (number + 20) % 2000

    _again(until, act)


def _poison(master: str, node: str, _tcp: int, until: float) -> None:
    """Send malformed addresses, names that forge log lines, XML entities that expand, and
    shutdown.
    """
    evil = "/x"
    laughs = (
        b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "'
        + b"a" * 1000
        + b'"><!ENTITY b "'
        + b"&a;" * 1000
        + b'">'
    )
    laughs += b"]><methodCall><methodName>&b;</methodName></methodCall>"
    calls = _call(
        "registerPublisher", evil, "/r0/cmd_vel", "geometry_msgs/Twist", 5
    ) + _call("registerService", evil, "/s\n", NAMED, NAMED)
    for until_now in iter(lambda: min(until, time.monotonic() + 0.2), until):
        _all_of_it(master, calls, until_now)
        _all_of_it(master, _request(laughs), until_now)
        _all_of_it(node, _call("shutdown", "/x\n2026 ERROR forged", "why\n"), until_now)


ATTACKS: dict[str, tuple[str, int, Callable[[str, str, int, float], None]]] = {
    "large": ("calls of 15 MB", 8, _large_calls),
    "values": ("calls with 15,000 values, set and got", 8, _values),
    "nested": ("values nested 3,000 deep", 8, _nested),
    "small": ("small calls without a pause", 8, _small_calls),
    "half": ("200 half calls of 1 of 4 MB each", 1, _half_calls),
    "headers": ("TCPROS frames that announce 100 MB", 5, _headers),
    "idle": ("connections that send nothing", 2, _idle),
    "readers": ("2,000 subscribers that do not read", 1, _map_readers),
    "requests": ("requests for the map, with unread answers", 5, _map_requests),
    "updates": ("publisherUpdate with 2,000 addresses", 4, _updates),
    "publishers": ("2,000 publishers with addresses that no node has", 2, _publishers),
    "poison": ("invalid addresses, XML entities, forged names, shutdown", 2, _poison),
}
"""Description, number of threads, and function of each attack: of the master's address,
the node's, its TCPROS port, and the end time.
"""


def attack(kind: str, master: str, seconds: float) -> None:
    """Run an attack, in a process of its own."""
    node, tcp = node_of(master)
    _, count, act = ATTACKS[kind]
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=act, args=(master, node, tcp, until), daemon=True)
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 5.0)
