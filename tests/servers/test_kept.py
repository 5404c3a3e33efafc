"""Memory that peers can make the simulator keep is limited:

the table, its page, and each field of each message.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from botyard.errors import PeerError
from botyard.protocols.ambf import link
from botyard.protocols.foxglove import operations as foxglove
from botyard.protocols.pioneer.packet import MAX_LENGTH, Parser
from botyard.protocols.rosbridge import operations as rosbridge
from botyard.protocols.rtps import limits
from botyard.protocols.rtps.discoverydata import EndpointData
from botyard.protocols.rtps.qos import Qos
from botyard.protocols.rtps.wire import MalformedError
from botyard.protocols.shares import Account, Shares, cost
from botyard.protocols.tcpros import wire, xmlrpc
from botyard.protocols.webgui import messages
from botyard.servers.memory_table import BUFFERS, markdown

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/limits.md"
PASSED_ON = {
    "rosbridge": {
        "Publish.msg": "a message is handed on",
        "CallService.args": "handed on, and not kept for the answer",
        "SendActionGoal.args": "handed on, and not kept for the result",
        "ServiceResponse.values": "handed on",
        "ActionFeedback.values": "handed on",
        "ActionResult.values": "handed on",
        "Fragment.data": "on the client's account until the last one comes",
        "SetLevel.level": "compared with the levels",
    },
    "foxglove": {"Parameter.value": "checked against the parameter's type"},
    "messages": {
        "Hello.token": "compared",
        "Add.name": "names of robots have 1 to 64 characters",
        "StartRobot.name": "names of robots have 1 to 64 characters",
        "Debug.name": "looked up",
        "Start.map": "looked up",
    },
}
"""Fields without a length, and why nothing of them is kept; their messages have a
length.
"""


def of_peers(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    """Return the structs of peers' messages."""
    seen: set[type] = set()
    roots = {
        "messages": [messages.Request],
        "operations": [module.Operation] if hasattr(module, "Operation") else [],
    }[module.__name__.rpartition(".")[2]]
    waiting: list[type] = [k for root in roots for k in root.__subclasses__()]
    while waiting:
        kind = waiting.pop()
        if kind in seen:
            continue
        seen.add(kind)
        waiting += kind.__subclasses__()
        for field in msgspec.structs.fields(kind):
            waiting += [
                k
                for k in inside(field.type)
                if isinstance(k, type) and issubclass(k, msgspec.Struct)
            ]

        yield kind


def inside(kind: Any) -> Iterator[Any]:
    """Return a type and all types in it."""
    yield kind
    for arg in typing.get_args(kind):
        yield from inside(arg)


def unbounded(kind: Any) -> bool:
    """Return whether a type accepts a text or value of any length."""
    if typing.get_origin(kind) is typing.Annotated:
        meta = kind.__metadata__
        if any(isinstance(m, msgspec.Meta) and m.max_length is not None for m in meta):
            return any(unbounded(arg) for arg in typing.get_args(kind.__origin__))
        return unbounded(kind.__origin__)

    if kind in (str, bytes, Any, dict, list):
        return True
    if typing.get_origin(kind) is typing.Literal:
        return False
    return any(unbounded(arg) for arg in typing.get_args(kind) if arg is not Ellipsis)


@pytest.mark.parametrize(
    "module", [rosbridge, foxglove, messages], ids=["rosbridge", "foxglove", "page"]
)
def test_each_field_of_a_message_has_a_limit(module: ModuleType) -> None:
    """Otherwise it has a comment that says why it is not kept."""
    name = module.__name__.split(".")[-1 if module is messages else -2]
    found = {
        f"{kind.__name__}.{field.name}"
        for kind in of_peers(module)
        for field in msgspec.structs.fields(kind)
        if unbounded(field.type)
    }
    assert found == PASSED_ON[name].keys()


def test_names_of_ros_2_have_a_limit() -> None:
    """Topic, type and user data of an endpoint, and its addresses."""
    about = EndpointData(
        b"\1\x0f" + bytes(10) + b"\0\0\1\4",
        "t",
        "T",
        Qos(),
        b"",
        tuple(("10.0.0.1", p) for p in range(1, 100)),
    )
    assert len(EndpointData.read(about.encode()).locators) == limits.MAX_LOCATORS
    for change in (
        {"topic": "x" * limits.MAX_NAME_BYTES},
        {"type_name": "x" * limits.MAX_NAME_BYTES},
    ):
        with pytest.raises(MalformedError):
            EndpointData.read(
                EndpointData(
                    about.guid, **{"topic": "t", "type_name": "T"} | change
                ).encode()
            )

    long = EndpointData(
        about.guid, "t", "T", Qos(), bytes(limits.MAX_USER_DATA_BYTES + 1)
    )
    assert EndpointData.read(long.encode()).user_data == b""


def test_what_ros_1_is_told_has_a_limit() -> None:
    """The header of a connection and an XML-RPC call have limits."""
    with pytest.raises(PeerError):
        wire.decode_header(
            b"".join(
                wire.encode_header({f"k{n}": "v"})[4:]
                for n in range(wire.MAX_FIELDS + 1)
            )
        )

    body = (
        b"<methodCall><methodName>"
        + b"x" * (xmlrpc.MAX_NAME + 1)
        + b"</methodName></methodCall>"
    )
    reader = xmlrpc.Reader()
    with pytest.raises(PeerError, match="a name"):
        reader.feed(body)


def test_frames_have_a_limit() -> None:
    """Frames of AMBF and packets of Pioneer have limits."""
    reader = link.FrameReader()
    with pytest.raises(PeerError):
        list(reader.feed_bytes((link.MAX_FRAME + 1).to_bytes(4, "little")))
    parser = Parser()
    parser.feed_bytes(b"\xfa\xfb" + bytes([MAX_LENGTH + 1]) * 100_000)
    assert len(parser._rest if hasattr(parser, "_rest") else b"") <= 300


def test_accounts_of_one_address_leave_room() -> None:
    """Three limits: of the client, of its address, and in total."""
    shares = Shares(1000, 400)
    one, two, other = (
        Account(shares, "a", 300),
        Account(shares, "a", 300),
        Account(shares, "b", 300),
    )
    assert one.take(300) and not one.take(1)
    assert two.take(100) and not two.take(1), "the address"
    assert other.take(300)
    third = Account(shares, "c", 300)
    assert third.take(300) and not Account(shares, "d", 300).take(1), "all"
    one.close()
    one.close()
    two.give_back(1000)
    assert shares.used == 600 and two.take(250)
    assert cost("ab", None, 3) == cost() + 2 and cost("ä") == cost() + 4


def test_the_table() -> None:
    """The limit of a client is at most the limit of an address, which is at most the total.

    docs/reference/limits.md contains the table.
    """
    assert {row.protocol.partition(":")[0] for row in BUFFERS} >= {
        "Pioneer",
        "page",
        "ROS 1",
        "ROS 2 over DDS",
        "rosbridge",
        "Foxglove",
        "AMBF without ROS",
        "VDA 5050",
    }
    for row in BUFFERS:
        assert 0 < row.client <= row.address <= row.together, row
    assert markdown() in PAGE.read_text("utf-8"), (
        "python -m botyard.servers.memory_table makes the table"
    )


def test_clients_of_one_address_share_what_waits_unread() -> None:
    """Each has an equal part, and more after others have left."""
    shares = Shares(10**9)
    crowd = [Account(shares, "a", 100) for _ in range(10)]
    assert (
        crowd[0].part(30, 100) == 10 and Account(shares, "b", 100).part(30, 100) == 30
    )
    for one in crowd[2:]:
        one.close()
        one.close()

    assert crowd[0].part(30, 100) == 30 and crowd[0].part(90, 100) == 50
