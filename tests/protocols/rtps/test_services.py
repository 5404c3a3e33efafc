"""One server for clients of rmw_fastrtps and rmw_cyclonedds, and our clients with
servers of both, on the simulated network.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.protocols.dds import naming
from botyard.protocols.dds.services import (
    MAX_WAITING_BYTES,
    RESPONSE_TIMEOUT_S,
    Call,
    ServiceClient,
    ServiceServer,
)
from botyard.protocols.rtps import parameters, wire
from botyard.protocols.rtps.parameters import Identity
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.samples import Sample
from tests.protocols.rtps.network import Network, Node
from tests.protocols.rtps.test_delivery import networks, wait

CDR = b"\0\1\0\0"
REQUEST, RESPONSE = "std_srvs/srv/Trigger_Request", "std_srvs/srv/Trigger_Response"
NAME = "/ann/stop"
QOS = Qos(depth=10)


class Server:
    """A server that echoes requests and counts them."""

    def __init__(self, node: Node, network: Network) -> None:
        self.refused: list[str] = []
        self.calls: list[Call] = []
        self._network = network
        self.service = ServiceServer(
            node.part,
            NAME,
            REQUEST,
            RESPONSE,
            self._take,
            self.refused.append,
            network.now,
            identity=b"s" * 16,
        )

    def _take(self, call: Call) -> None:
        self.calls.append(call)
        self.service.answer(call, CDR + b"re:" + call.body[4:], self._network.now)


class Client:
    """A client that behaves like one of the two, written independently."""

    def __init__(
        self, node: Node, network: Network, kind: str, mark: bytes = b""
    ) -> None:
        self.kind, self._network = kind, network
        self.got: list[bytes] = []
        part = node.part
        user = b"clientid=" + mark + b";" if kind == "cyclone" else b""
        self.reader = part.reader(
            naming.response_topic(NAME),
            naming.type_name(RESPONSE),
            self._take,
            QOS,
            network.now,
            user_data=user,
        )
        self.writer = part.writer(
            naming.request_topic(NAME),
            naming.type_name(REQUEST),
            QOS,
            network.now,
            user_data=user,
        )

    def ask(self, text: bytes) -> None:
        """Send a request."""
        if self.kind == "cyclone":
            head = struct.pack("<Qq", 7, len(self.got) + 1)
            self.writer.write(CDR + head + text, self._network.now)
        else:
            related = parameters.related_identity(
                Identity(self.reader.guid, wire.UNKNOWN_NUMBER)
            )
            self.writer.write(CDR + text, self._network.now, related)

    def _take(self, sample: Sample) -> None:
        if self.kind == "cyclone":
            assert sample.related is None
            assert sample.payload[4:20] == struct.pack("<Qq", 7, len(self.got) + 1)
            self.got.append(sample.payload[20:])
        else:
            assert sample.related == Identity(self.reader.guid, self.writer.number)
            self.got.append(sample.payload[4:])


@given(networks)
@settings(max_examples=15)
def test_one_server_for_both(network: Network) -> None:
    """Each client gets its own responses and none of another client."""
    node = network.add()
    server = Server(node, network)
    clients = [
        Client(network.add(), network, kind, b"%d" % k)
        for k, kind in enumerate(["cyclone", "fast"] * 2)
    ]
    shared = network.add()
    clients += [
        Client(shared, network, "cyclone", b"a.1"),
        Client(shared, network, "cyclone", b"a.2"),
    ]
    for client in clients:
        wait(network, lambda c=client: c.writer.matched and c.reader.matched)
    wait(
        network,
        lambda: (
            len(server.service.writer.matched)
            == len(server.service.reader.matched)
            == len(clients)
        ),
    )
    for number in range(3):
        for k, client in enumerate(clients):
            client.ask(b"%d %d  " % (k, number))
        wait(network, lambda n=number: all(len(c.got) > n for c in clients))

    for k, client in enumerate(clients):
        assert [g[:6] for g in client.got] == [b"re:%d %d" % (k, n) for n in range(3)]
    assert len(server.calls) == 18
    assert not server.refused


@given(networks, st.booleans())
@settings(max_examples=15)
def test_clients_of_ours(network: Network, is_cyclone: bool) -> None:
    """With a server of ours, and with one like Cyclone's."""
    node, other = network.add(), network.add()
    client = ServiceClient(
        node.part, NAME, REQUEST, RESPONSE, network.now, identity=b"c" * 16
    )
    assert not client.call(CDR + b"x", network.now, print), "there is no server"
    server = Server(other, network)
    wait(
        network,
        lambda: (
            client.server()
            and server.service.writer.matched
            and server.service.reader.matched
        ),
    )
    if is_cyclone:
        from dataclasses import replace

        guid = server.service.reader.guid
        client.writer.matched[guid] = replace(
            client.writer.matched[guid], vendor=wire.VENDOR_CYCLONE
        )

    got: list[bytes] = []
    for number in range(5):
        assert client.call(CDR + b"%d   " % number, network.now, got.append)
        wait(network, lambda n=number: len(got) > n)

    assert got == [CDR + b"re:%d   \0" % n for n in range(5)]
    assert [call.header is not None for call in server.calls] == [is_cyclone] * 5
    client.close(network.now)
    server.service.close(network.now)
    wait(
        network,
        lambda: not node.part.peers[0].endpoints and not other.part.peers[0].endpoints,
    )


def test_a_request_of_neither_kind_is_refused() -> None:
    """The request has neither an identity nor a mark."""
    network = Network()
    server = Server(network.add(), network)
    # The writer announces no user data, which would mark a client.
    stranger = network.add().part.writer(
        naming.request_topic(NAME), naming.type_name(REQUEST), QOS, network.now
    )
    wait(network, lambda: stranger.matched)
    stranger.write(CDR + bytes(20), network.now)
    wait(network, lambda: server.refused)
    assert "without the identity of a client" in server.refused[0]
    assert not server.calls


@pytest.mark.parametrize("comes_after", [0.5, 25.0, 32.0])
def test_a_response_waits_for_its_reader(comes_after: float) -> None:
    """It waits for many periods of Fast DDS's heartbeats, and is then dropped."""
    network = Network()
    server = Server(network.add(), network)
    node = network.add()
    writer = node.part.writer(
        naming.request_topic(NAME), naming.type_name(REQUEST), QOS, network.now
    )
    wait(network, lambda: writer.matched)
    soon = node.part.guid[:12] + b"\0\0\2\4"
    related = parameters.related_identity(Identity(soon, wire.UNKNOWN_NUMBER))
    writer.write(CDR + b"x", network.now, related)
    network.run(comes_after)
    got: list[Sample] = []
    reader = node.part.reader(
        naming.response_topic(NAME),
        naming.type_name(RESPONSE),
        got.append,
        QOS,
        network.now,
    )
    assert reader.guid == soon
    network.run(2.0)
    assert len(got) == (comes_after < RESPONSE_TIMEOUT_S)
    assert not server.service._waiting or comes_after > RESPONSE_TIMEOUT_S


def test_a_response_goes_to_who_has_asked() -> None:
    """No client can make a server answer another client's reader."""
    network = Network()
    server = Server(network.add(), network)
    victim, other = Client(network.add(), network, "fast"), network.add()
    writer = other.part.writer(
        naming.request_topic(NAME), naming.type_name(REQUEST), QOS, network.now
    )
    wait(
        network,
        lambda: (
            writer.matched
            and victim.reader.matched
            and len(server.service.reader.matched) == 2
        ),
    )
    writer.write(
        CDR + b"x   ",
        network.now,
        parameters.related_identity(Identity(victim.reader.guid, 1)),
    )
    wait(network, lambda: server.refused)
    assert "another participant" in server.refused[0]
    assert not server.calls and not victim.got


def test_responses_that_wait_are_bounded() -> None:
    """Requests name readers that never come; the next request finds the earlier ones
    dropped.
    """
    network = Network()
    node = network.add()
    server = Server(node, network)
    server.service._take_call = lambda call: server.service.answer(
        call, CDR + bytes(100_000), network.now
    )
    client = network.add()
    writer = client.part.writer(
        naming.request_topic(NAME),
        naming.type_name(REQUEST),
        Qos(depth=1000),
        network.now,
    )
    wait(network, lambda: writer.matched)
    nobody = parameters.related_identity(
        Identity(client.part.guid[:12] + b"\0\0\7\4", 1)
    )
    for _ in range(200):
        writer.write(CDR + b"x   ", network.now, nobody)
        network.run(0.001)

    waiting = server.service._waiting
    assert 5 << 20 < sum(len(entry[2]) for entry in waiting) <= MAX_WAITING_BYTES
    network.run(RESPONSE_TIMEOUT_S + 0.1)
    writer.write(CDR + b"x   ", network.now, nobody)
    network.run(0.1)
    assert len(server.service._waiting) == 1
