"""What peers can make the simulator keep: one table in bytes, for one client, for one
address and for all together.

Each number follows from the limits that the protocols apply.
`docs/explanation/security.md` shows the table, which `markdown` makes. A test compares
them, and asks each field of each message for its limit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from botyard.interfaces.ambf import link as ambf_objects
from botyard.interfaces.http_admission import (
    MAX_GUESTS,
    MAX_STRANGERS,
    MAX_STRANGERS_EACH,
)
from botyard.interfaces.page.requests import MAX_VIEWERS
from botyard.interfaces.ros.mapcells import MAX_CELLS
from botyard.interfaces.vda5050 import fleet, routes
from botyard.protocols import vda5050 as vda
from botyard.protocols.ambf import link as ambf
from botyard.protocols.dds import services as dds
from botyard.protocols.foxglove import session as foxglove
from botyard.protocols.ros_messages.limits import (
    MAX_INPUT,
    MAX_REQUEST,
    MAX_REQUESTS,
    MAX_WAITING,
)
from botyard.protocols.rosbridge import outbox
from botyard.protocols.rosbridge import session as rosbridge
from botyard.protocols.rtps import limits as rtps
from botyard.protocols.shares import ENTRY_BYTES, SHARES
from botyard.protocols.tcpros import api, http, master, wire
from botyard.protocols.webgui import messages
from botyard.protocols.webgui import session as page
from botyard.servers import vda5050
from botyard.servers.outlet import WRITE_BUFFER
from botyard.servers.pioneer import intake, tcp
from botyard.servers.ros import ros1input, ros1master, tcpros, xmlrpc
from botyard.servers.sockets import READ_SIZE
from botyard.servers.web import http as web

CLIENTS: Final = 100
"""Clients of rosbridge and of Foxglove (`clients` in `app/builtin.py`), of one address
half of them.
"""
LINKS: Final = 64
"""The same of AMBF without ROS."""
LOCATOR_BYTES: Final = 128
"""An address of an endpoint, as Python keeps it."""
ENDPOINT_BYTES: Final = (
    4 * ENTRY_BYTES
    + 2 * rtps.MAX_NAME_BYTES
    + rtps.MAX_USER_DATA_BYTES
    + rtps.MAX_LOCATORS * LOCATOR_BYTES
)
"""A remote endpoint of ROS 2 with what the endpoint of ours that it matches knows of
it.
"""
REGISTRATION_BYTES: Final = ENTRY_BYTES + 2 * api.MAX_NAME + http.MAX_URI
"""A registration at the ROS 1 master: two names and an address."""
MESSAGE_BYTES: Final = MAX_INPUT + ros1input.CHUNK
"""A message of a publisher of ROS 1 that is not complete."""
ORDER_BYTES: Final = vda.MAX_NODES * 4 * ENTRY_BYTES + 2 * fleet.MAX_STATE
"""An order of VDA 5050 with its route, its names, and its nodes and edges as texts of
states.
"""
CONFLICT_BYTES: Final = 256
"""A conflict of two edges of orders, in all tables of the run."""


class Kept(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    protocol, what : str
    client, address, together : int
        Most bytes that one client, one address, and all clients make the simulator
        keep.
    """

    protocol: str
    what: str
    client: int
    address: int
    together: int


def _of_clients(
    protocol: str, what: str, client: int, clients: int, each: int = 0
) -> Kept:
    """A row whose clients are counted: `each` of an address, by default half."""
    return Kept(
        protocol, what, client, client * (each or clients // 2), client * clients
    )


KEPT: Final = (
    Kept(
        "Pioneer",
        "bytes of a robot's client that wait",
        intake.MAX_QUEUED,
        intake.MAX_QUEUED,
        intake.MAX_QUEUED,
    ),
    Kept(
        "Pioneer",
        "reports that it has not read",
        tcp.MAX_UNSENT,
        tcp.MAX_UNSENT,
        tcp.MAX_UNSENT,
    ),
    _of_clients(
        "Pioneer",
        "bytes of strangers, of a port",
        tcp.MAX_EARLY,
        tcp.MAX_STRANGERS,
        tcp.MAX_STRANGERS,
    ),
    _of_clients(
        "page",
        "a message of a stranger",
        messages.MAX_TEXT + READ_SIZE,
        MAX_STRANGERS,
        MAX_STRANGERS_EACH,
    ),
    _of_clients(
        "page",
        "messages that a viewer has not read",
        page.MAX_BACKLOG,
        2 * MAX_VIEWERS,
        2 * MAX_VIEWERS,
    ),
    _of_clients(
        "page",
        "requests of it that wait",
        page.MAX_PENDING * ENTRY_BYTES + messages.MAX_TEXT,
        2 * MAX_VIEWERS,
        2 * MAX_VIEWERS,
    ),
    _of_clients(
        "page",
        "answers by HTTP that are not read",
        web.MAX_UNSENT,
        MAX_GUESTS,
        MAX_GUESTS,
    ),
    _of_clients(
        "ROS 1: XML-RPC",
        "bytes that wait",
        xmlrpc.MAX_WAITING + READ_SIZE,
        xmlrpc.MAX_CONNECTIONS,
        xmlrpc.MAX_EACH,
    ),
    Kept(
        "ROS 1: XML-RPC",
        "calls under way",
        xmlrpc.MAX_UNDER_WAY,
        xmlrpc.MAX_UNDER_WAY,
        xmlrpc.MAX_UNDER_WAY,
    ),
    Kept(
        "ROS 1: XML-RPC",
        "long answers",
        xmlrpc.MAX_ANSWER,
        xmlrpc.MAX_LARGE * xmlrpc.MAX_ANSWER,
        xmlrpc.MAX_LARGE * xmlrpc.MAX_LARGE_SOURCES * xmlrpc.MAX_ANSWER,
    ),
    Kept(
        "ROS 1: the master",
        "parameters",
        master.MAX_PARAMETER_TEXT,
        master.MAX_PARAMETER_TEXT,
        master.MAX_PARAMETER_TEXT,
    ),
    Kept(
        "ROS 1: the master",
        "registrations, apart from those of this machine",
        *2 * (master.MAX_ENTRIES_EACH * REGISTRATION_BYTES,),
        master.MAX_ENTRIES * REGISTRATION_BYTES,
    ),
    Kept(
        "ROS 1: the master",
        "types of topics",
        *3 * (master.MAX_TYPES * (ENTRY_BYTES + 2 * api.MAX_NAME),),
    ),
    Kept(
        "ROS 1: the master",
        "calls that are owed to nodes",
        *2 * (ros1master.MAX_OWED_BYTES // SHARES,),
        ros1master.MAX_OWED_BYTES,
    ),
    Kept(
        "ROS 1: TCPROS",
        "headers and requests that are not complete",
        wire.MAX_HEADER + 2 * (tcpros.MAX_WAITING + READ_SIZE),
        *2 * (tcpros.MAX_HELD,),
    ),
    Kept(
        "ROS 1: TCPROS",
        "answers that it has not read",
        MAX_CELLS,
        tcpros.MAX_UNREAD + tcpros.MAX_ANSWERING * MAX_CELLS,
        tcpros.MAX_ALL_UNREAD + tcpros.MAX_ALL_ANSWERING * MAX_CELLS,
    ),
    _of_clients(
        "ROS 1: TCPROS",
        "states in its connection; what waits in queues of topics is kept once for all",
        2 * WRITE_BUFFER,
        tcpros.MAX_CONNECTIONS,
        tcpros.MAX_EACH,
    ),
    Kept(
        "ROS 1: publishers",
        "a message of a topic that has begun",
        MESSAGE_BYTES,
        *2 * (ros1input.MAX_PUBLISHERS * MESSAGE_BYTES,),
    ),
    Kept(
        "ROS 2 over Zenoh",
        "messages of a topic that wait",
        *3 * (MAX_WAITING * MAX_INPUT,),
    ),
    Kept(
        "ROS 2 over Zenoh",
        "requests of a service that wait, and that are answered",
        *3 * (2 * MAX_REQUESTS * MAX_REQUEST,),
    ),
    Kept(
        "ROS 2 over DDS",
        "endpoints",
        rtps.MAX_PEER_ENDPOINTS * ENDPOINT_BYTES,
        rtps.MAX_ENDPOINTS * ENDPOINT_BYTES,
        rtps.MAX_ENDPOINTS * ENDPOINT_BYTES,
    ),
    Kept(
        "ROS 2 over DDS",
        "samples behind a missing one",
        *2 * (rtps.MAX_TOTAL_HELD_BYTES // SHARES,),
        rtps.MAX_TOTAL_HELD_BYTES,
    ),
    Kept(
        "ROS 2 over DDS",
        "samples in fragments",
        *2 * (rtps.MAX_ASSEMBLY_BYTES // SHARES,),
        rtps.MAX_ASSEMBLY_BYTES,
    ),
    Kept(
        "ROS 2 over DDS",
        "what waits for it",
        rtps.MAX_PEER_ADDRESSES * rtps.MAX_QUEUED_BYTES,
        *2 * (rtps.MAX_TOTAL_QUEUED_BYTES,),
    ),
    Kept(
        "ROS 2 over DDS",
        "responses of a service whose reader is not there",
        *3 * (dds.MAX_WAITING_BYTES,),
    ),
    Kept(
        "rosbridge",
        "subscriptions, calls, fragments, offers",
        rosbridge.MAX_KEPT,
        rosbridge.MAX_ALL_KEPT // SHARES,
        rosbridge.MAX_ALL_KEPT,
    ),
    Kept(
        "rosbridge",
        "messages that it has not read",
        outbox.MAX_WAITING,
        outbox.MAX_ADDRESS_WAITING,
        CLIENTS * outbox.MAX_WAITING,
    ),
    Kept(
        "rosbridge",
        "answers that it has not read",
        outbox.MAX_ANSWER_SIZE,
        outbox.MAX_ADDRESS_WAITING,
        CLIENTS * outbox.MAX_ANSWER_SIZE,
    ),
    _of_clients(
        "rosbridge",
        "requests of others that it has not read",
        outbox.MAX_REQUEST_SIZE,
        CLIENTS,
    ),
    Kept(
        "Foxglove",
        "subscriptions, calls, channels, names",
        foxglove.MAX_KEPT,
        foxglove.MAX_ALL_KEPT // SHARES,
        foxglove.MAX_ALL_KEPT,
    ),
    Kept(
        "Foxglove",
        "messages that it has not read",
        foxglove.MAX_WAITING,
        foxglove.MAX_ADDRESS_WAITING,
        CLIENTS * foxglove.MAX_WAITING,
    ),
    Kept(
        "Foxglove",
        "answers that it has not read",
        foxglove.MAX_ANSWER_SIZE,
        foxglove.MAX_ADDRESS_WAITING,
        CLIENTS * foxglove.MAX_ANSWER_SIZE,
    ),
    _of_clients(
        "AMBF without ROS",
        "a frame, and states that it has not read",
        ambf.MAX_FRAME + ambf_objects.MAX_WAITING,
        LINKS,
    ),
    Kept(
        "VDA 5050",
        "orders of an AGV that wait",
        *3 * (vda5050.MAX_ORDERS * vda5050.MAX_PAYLOAD,),
    ),
    Kept("VDA 5050", "the order of an AGV", *3 * (ORDER_BYTES,)),
    Kept(
        "VDA 5050",
        "a state of an AGV that the broker has not read",
        *3 * (3 * fleet.MAX_STATE,),
    ),
    Kept(
        "VDA 5050",
        "conflicts of the edges of all orders",
        *3 * (routes.MAX_CONFLICTS * CONFLICT_BYTES,),
    ),
)
"""All that peers make the simulator keep."""


def shown(size: int) -> str:
    """A number of bytes for people, rounded up."""
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of:
            return f"{-(-size // bytes_of):,} {unit}"

    return f"{size} bytes"


def markdown() -> str:
    """The table as `docs/explanation/security.md` shows it."""
    rows = [
        "| protocol | what is kept | of a client | of an address | of all |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {k.protocol} | {k.what} | {shown(k.client)} | {shown(k.address)} | "
        f"{shown(k.together)} |"
        for k in KEPT
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")

__all__ = ["KEPT", "Kept", "markdown"]
