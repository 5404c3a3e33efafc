"""Table of the memory that peers can make the simulator use.

The table has a row for each kind of buffer, with bytes for one client, for one address
and for all clients. Each number follows from the limits of the protocols.
`docs/reference/limits.md` shows the table, made by `markdown`. A test compares the
two tables, and requires a limit for each field of each message.
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
from botyard.protocols.ambf import link as ambf
from botyard.protocols.dds import services as dds
from botyard.protocols.foxglove import limits as foxglove
from botyard.protocols.ros_messages.limits import (
    MAX_INPUT,
    MAX_REQUEST,
    MAX_REQUESTS,
    MAX_WAITING,
)
from botyard.protocols.rosbridge import limits as rosbridge
from botyard.protocols.rosbridge import outbox
from botyard.protocols.rtps import limits as rtps
from botyard.protocols.shares import ENTRY_BYTES, SHARES
from botyard.protocols.tcpros import api, http, master, parameterserver, wire
from botyard.protocols.vda5050 import orders as vda
from botyard.protocols.webgui import messages
from botyard.protocols.webgui import session as page
from botyard.servers import vda5050
from botyard.servers.outlet import WRITE_BUFFER
from botyard.servers.pioneer import robotclient
from botyard.servers.ros import ros1input, ros1master, tcpros, xmlrpc, zenohcalls
from botyard.servers.sockets import READ_SIZE
from botyard.servers.streampeer import MAX_WAITING as MAX_WAITING_BYTES
from botyard.servers.web import http as web

CLIENTS: Final = 100
"""Maximum number of clients of rosbridge and of Foxglove; half from one address.

See `clients` in `app/builtin.py`.
"""
LINKS: Final = 64
"""Maximum number of clients of AMBF without ROS."""
LOCATOR_BYTES: Final = 128
"""Size of an endpoint's locator as a Python object, bytes."""
ENDPOINT_BYTES: Final = (
    4 * ENTRY_BYTES
    + 2 * rtps.MAX_NAME_BYTES
    + rtps.MAX_USER_DATA_BYTES
    + rtps.MAX_LOCATORS * LOCATOR_BYTES
)
"""Size of a remote ROS 2 endpoint, bytes.

It includes the data that the matching local endpoint stores about it.
"""
REGISTRATION_BYTES: Final = ENTRY_BYTES + 2 * api.MAX_NAME + http.MAX_URI
"""Size of a registration at the ROS 1 master, bytes: two names and a URI."""
MESSAGE_BYTES: Final = MAX_INPUT + ros1input.CHUNK
"""Size of an incomplete message from a ROS 1 publisher, bytes."""
ORDER_BYTES: Final = vda.MAX_NODES * 4 * ENTRY_BYTES + 2 * fleet.MAX_STATE
"""Size of a VDA 5050 order, bytes.

It includes the route, the names, and the texts of nodes and edges for state messages.
"""
CONFLICT_BYTES: Final = 256
"""Memory for a pair of edges of orders that conflict, in all tables that hold the pair, bytes."""


class BufferLimits(NamedTuple):
    """Memory limits of one kind of buffer: a row of the table.

    Attributes
    ----------
    protocol : str
        Name of the protocol.
    what : str
        Contents of the buffer.
    client, address, together : int
        Maximum size for one client, for one address, and for all clients, bytes.
    """

    protocol: str
    what: str
    client: int
    address: int
    together: int


def _of_clients(
    protocol: str, what: str, client: int, clients: int, each: int = 0
) -> BufferLimits:
    """Return the row of a buffer that each client has.

    `each` is the highest number of clients per address: by default half of all clients.
    """
    return BufferLimits(
        protocol, what, client, client * (each or clients // 2), client * clients
    )


BUFFERS: Final = (
    BufferLimits(
        "Pioneer",
        "queued bytes of a robot's client",
        *3 * (robotclient.MAX_AHEAD,),
    ),
    BufferLimits(
        "Pioneer",
        "unread reports of a robot's client",
        robotclient.MAX_UNSENT,
        robotclient.MAX_UNSENT,
        robotclient.MAX_UNSENT,
    ),
    _of_clients(
        "Pioneer",
        "bytes of connections without a handshake on a port",
        2 * READ_SIZE,
        robotclient.MAX_STRANGERS,
        robotclient.MAX_STRANGERS,
    ),
    _of_clients(
        "page",
        "a message of a connection without a token",
        messages.MAX_TEXT + READ_SIZE,
        MAX_STRANGERS,
        MAX_STRANGERS_EACH,
    ),
    _of_clients(
        "page",
        "unread messages of a viewer",
        page.MAX_BACKLOG,
        2 * MAX_VIEWERS,
        2 * MAX_VIEWERS,
    ),
    _of_clients(
        "page",
        "queued requests of a viewer",
        page.MAX_PENDING * ENTRY_BYTES + messages.MAX_TEXT,
        2 * MAX_VIEWERS,
        2 * MAX_VIEWERS,
    ),
    _of_clients(
        "page",
        "unread HTTP answers",
        web.MAX_UNSENT,
        MAX_GUESTS,
        MAX_GUESTS,
    ),
    _of_clients(
        "ROS 1: XML-RPC",
        "queued bytes",
        MAX_WAITING_BYTES + READ_SIZE,
        xmlrpc.MAX_CONNECTIONS,
        xmlrpc.MAX_EACH,
    ),
    BufferLimits(
        "ROS 1: XML-RPC",
        "calls in progress",
        xmlrpc.MAX_UNDER_WAY,
        xmlrpc.MAX_UNDER_WAY,
        xmlrpc.MAX_UNDER_WAY,
    ),
    BufferLimits(
        "ROS 1: XML-RPC",
        "long answers",
        xmlrpc.MAX_ANSWER,
        xmlrpc.MAX_LARGE * xmlrpc.MAX_ANSWER,
        xmlrpc.MAX_LARGE * xmlrpc.MAX_LARGE_SOURCES * xmlrpc.MAX_ANSWER,
    ),
    BufferLimits(
        "ROS 1: the master",
        "parameters",
        parameterserver.MAX_PARAMETER_TEXT,
        parameterserver.MAX_PARAMETER_TEXT,
        parameterserver.MAX_PARAMETER_TEXT,
    ),
    BufferLimits(
        "ROS 1: the master",
        "registrations from other machines",
        *2 * (master.MAX_ENTRIES_EACH * REGISTRATION_BYTES,),
        master.MAX_ENTRIES * REGISTRATION_BYTES,
    ),
    BufferLimits(
        "ROS 1: the master",
        "types of topics",
        *3 * (master.MAX_TYPES * (ENTRY_BYTES + 2 * api.MAX_NAME),),
    ),
    BufferLimits(
        "ROS 1: the master",
        "pending notifications of nodes",
        *2 * (ros1master.MAX_OWED_BYTES // SHARES,),
        ros1master.MAX_OWED_BYTES,
    ),
    BufferLimits(
        "ROS 1: TCPROS",
        "incomplete headers and requests",
        wire.MAX_HEADER + 2 * (MAX_WAITING_BYTES + READ_SIZE),
        *2 * (tcpros.MAX_HELD,),
    ),
    BufferLimits(
        "ROS 1: TCPROS",
        "unread answers",
        MAX_CELLS,
        tcpros.MAX_UNREAD + tcpros.MAX_ANSWERING * MAX_CELLS,
        tcpros.MAX_ALL_UNREAD + tcpros.MAX_ALL_ANSWERING * MAX_CELLS,
    ),
    _of_clients(
        "ROS 1: TCPROS",
        "buffer of a connection; queues of topics share their messages",
        2 * WRITE_BUFFER,
        tcpros.MAX_CONNECTIONS,
        tcpros.MAX_EACH,
    ),
    BufferLimits(
        "ROS 1: publishers",
        "an incomplete message of a topic",
        MESSAGE_BYTES,
        *2 * (ros1input.MAX_PUBLISHERS * MESSAGE_BYTES,),
    ),
    BufferLimits(
        "ROS 2 over Zenoh",
        "queued messages of a topic",
        *3 * (MAX_WAITING * MAX_INPUT,),
    ),
    BufferLimits(
        "ROS 2 over Zenoh",
        "queued requests of a service, and requests in progress",
        *3 * (2 * MAX_REQUESTS * MAX_REQUEST,),
    ),
    BufferLimits(
        "ROS 2 over Zenoh",
        "answers that wait for peers that do not read",
        *3 * (zenohcalls.MAX_ANSWERS + MAX_CELLS,),
    ),
    BufferLimits(
        "ROS 2 over DDS",
        "endpoints",
        rtps.MAX_PEER_ENDPOINTS * ENDPOINT_BYTES,
        rtps.MAX_ENDPOINTS * ENDPOINT_BYTES,
        rtps.MAX_ENDPOINTS * ENDPOINT_BYTES,
    ),
    BufferLimits(
        "ROS 2 over DDS",
        "samples after a missing one",
        *2 * (rtps.MAX_TOTAL_HELD_BYTES // SHARES,),
        rtps.MAX_TOTAL_HELD_BYTES,
    ),
    BufferLimits(
        "ROS 2 over DDS",
        "samples in fragments",
        *2 * (rtps.MAX_ASSEMBLY_BYTES // SHARES,),
        rtps.MAX_ASSEMBLY_BYTES,
    ),
    BufferLimits(
        "ROS 2 over DDS",
        "queued output of a participant",
        rtps.MAX_PEER_ADDRESSES * rtps.MAX_QUEUED_BYTES,
        *2 * (rtps.MAX_TOTAL_QUEUED_BYTES,),
    ),
    BufferLimits(
        "ROS 2 over DDS",
        "responses of a service to a missing reader",
        *3 * (dds.MAX_WAITING_BYTES,),
    ),
    BufferLimits(
        "rosbridge",
        "subscriptions, calls, fragments, offers",
        rosbridge.MAX_KEPT,
        rosbridge.MAX_ALL_KEPT // SHARES,
        rosbridge.MAX_ALL_KEPT,
    ),
    BufferLimits(
        "rosbridge",
        "unread messages",
        outbox.MAX_WAITING,
        outbox.MAX_ADDRESS_WAITING,
        CLIENTS * outbox.MAX_WAITING,
    ),
    BufferLimits(
        "rosbridge",
        "unread answers",
        outbox.MAX_ANSWER_SIZE,
        outbox.MAX_ADDRESS_WAITING,
        CLIENTS * outbox.MAX_ANSWER_SIZE,
    ),
    _of_clients(
        "rosbridge",
        "unread requests of other clients",
        outbox.MAX_REQUEST_SIZE,
        CLIENTS,
    ),
    BufferLimits(
        "Foxglove",
        "subscriptions, calls, channels, names",
        foxglove.MAX_KEPT,
        foxglove.MAX_ALL_KEPT // SHARES,
        foxglove.MAX_ALL_KEPT,
    ),
    BufferLimits(
        "Foxglove",
        "unread messages",
        foxglove.MAX_WAITING,
        foxglove.MAX_ADDRESS_WAITING,
        CLIENTS * foxglove.MAX_WAITING,
    ),
    BufferLimits(
        "Foxglove",
        "unread answers",
        foxglove.MAX_ANSWER_SIZE,
        foxglove.MAX_ADDRESS_WAITING,
        CLIENTS * foxglove.MAX_ANSWER_SIZE,
    ),
    _of_clients(
        "AMBF without ROS",
        "a frame, and unread states",
        ambf.MAX_FRAME + ambf_objects.MAX_WAITING,
        LINKS,
    ),
    BufferLimits(
        "VDA 5050",
        "queued orders of an AGV",
        *3 * (vda5050.MAX_ORDERS * vda5050.MAX_PAYLOAD,),
    ),
    BufferLimits(
        "VDA 5050",
        "queued instant actions of an AGV",
        *3 * (vda5050.MAX_ORDERS * vda5050.MAX_ACTIONS_PAYLOAD,),
    ),
    BufferLimits("VDA 5050", "the order of an AGV", *3 * (ORDER_BYTES,)),
    BufferLimits(
        "VDA 5050",
        "unread state of an AGV",
        *3 * (3 * fleet.MAX_STATE,),
    ),
    BufferLimits(
        "VDA 5050",
        "conflicts of the edges of all orders",
        *3 * (routes.MAX_CONFLICTS * CONFLICT_BYTES,),
    ),
)
"""All rows: everything that peers can make the simulator keep."""


def shown(size: int) -> str:
    """Return a number of bytes with its unit, rounded up.

    Parameters
    ----------
    size : int
        Number of bytes.

    Returns
    -------
    str
        Number in MiB, KiB or bytes: in the largest of these units that gives at least
        1.
    """
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of:
            return f"{-(-size // bytes_of):,} {unit}"

    return f"{size} bytes"


def markdown() -> str:
    """Return the table as it appears in `docs/reference/limits.md`."""
    rows = [
        "| protocol | buffer | per client | per address | total |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {k.protocol} | {k.what} | {shown(k.client)} | {shown(k.address)} | "
        f"{shown(k.together)} |"
        for k in BUFFERS
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")

__all__ = ["BUFFERS", "BufferLimits", "markdown"]
