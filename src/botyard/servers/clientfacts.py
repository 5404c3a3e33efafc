"""Descriptions of clients, with bytes and round-trip times as the system counts them."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from botyard.control.census import ClientFacts
from botyard.protocols.webgui.session import Viewer

TCP_INFO_BYTES: Final = 136
"""Length of Linux's ``struct tcp_info`` up to ``tcpi_bytes_received`` (since Linux 4.1)."""
RTT_AT: Final = 68
"""Offset in bytes of ``tcpi_rtt`` (round-trip time, µs) in ``struct tcp_info`` (linux/tcp.h)."""
BYTES_AT: Final = 120
"""Offset of ``tcpi_bytes_acked``, bytes; ``tcpi_bytes_received`` follows directly."""


class TcpFigures(NamedTuple):
    """Counts of a connection since its start; None: the system does not count them.

    Attributes
    ----------
    received, sent : int or None
        Bytes from the peer, and bytes that it has acknowledged.
    latency : float or None
        Smoothed round-trip time, s.
    """

    received: int | None = None
    sent: int | None = None
    latency: float | None = None


def tcp_figures(sock: Any) -> TcpFigures:
    """Return the counts of a TCP socket.

    The counts are the operating system's. They include bytes that the simulator reads and writes
    without asyncio.

    Parameters
    ----------
    sock : socket or None
        Connected socket; anything else has no counts.

    Returns
    -------
    TcpFigures
        Counts; without Linux's ``TCP_INFO`` all are None.
    """
    # macOS and Windows have other structures, which Python does not give access to.
    if sock is None or not sys.platform.startswith("linux"):
        return TcpFigures()
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except (OSError, AttributeError, ValueError):
        return TcpFigures()
    # An older kernel fills in a shorter structure.
    if len(info) < TCP_INFO_BYTES:
        return TcpFigures()
    (rtt,) = struct.unpack_from("=I", info, RTT_AT)
    acked, received = struct.unpack_from("=QQ", info, BYTES_AT)
    return TcpFigures(received, acked, rtt * 1e-6)


class TcpClient(Protocol):
    """Client on a TCP connection."""

    @property
    def peer(self) -> object:
        """Network address of the client; ``str`` of it is for display."""
        ...

    @property
    def socket(self) -> socket.socket | None:
        """Socket of the connection; None if there is none."""
        ...


class Ros1Connection(TcpClient, Protocol):
    """Connection with a node of ROS 1."""

    @property
    def caller(self) -> str:
        """Name of the node."""
        ...

    @property
    def dropped(self) -> int:
        """Number of messages that the node missed."""
        ...


class PioneerClient(TcpClient, Protocol):
    """Client of a robot's port."""

    @property
    def robot_name(self) -> str:
        """Name of the robot that the client is connected to; empty if it has none."""
        ...

    @property
    def dropped(self) -> int:
        """Number of reports of the robot that the client missed."""
        ...


def tcp_facts(client: TcpClient, protocol: str, **further: Any) -> ClientFacts:
    """Return the description of a client on TCP.

    Parameters
    ----------
    client : TcpClient
        Client to describe.
    protocol : str
        Name of its protocol for display, such as ``Pioneer``.
    **further
        Further fields of `ClientFacts`.
    """
    figures = tcp_figures(client.socket)._asdict()
    return ClientFacts(
        key=id(client),
        protocol=protocol,
        address=str(client.peer),
        **figures,
        **further,
    )


def pioneer_facts(client: PioneerClient) -> ClientFacts:
    """Return the description of a client of a robot's port."""
    return tcp_facts(client, "Pioneer", robot=client.robot_name, dropped=client.dropped)


class Onlooker(Protocol):
    """WebSocket of a viewer of the page."""

    @property
    def viewer(self) -> Viewer:
        """Session of the viewer."""
        ...

    @property
    def connection(self) -> TcpClient:
        """TCP connection below the WebSocket."""
        ...

    @property
    def dropped(self) -> int:
        """Number of frames of the page that the viewer missed."""
        ...


def viewer_facts(sockets: Iterable[Onlooker]) -> list[ClientFacts]:
    """Return descriptions of the viewers of the page that have presented their token."""
    return [
        tcp_facts(
            one.connection,
            "page",
            caller=id(one.viewer),
            about=f"page {one.viewer.number}{', watches' if one.viewer.read_only else ''}",
            dropped=one.dropped,
        )
        for one in sockets
        # A viewer whose token is not checked yet has number 0; the welcome message gives it
        # another.
        if one.viewer.number
    ]


def ros1_facts(
    connections: Iterable[Ros1Connection],
) -> Iterator[ClientFacts]:
    """Yield the descriptions of ROS 1 nodes: one for all connections of a node.

    Parameters
    ----------
    connections : iterable of Ros1Connection
        Connections of subscribers, of publishers and of clients of services.
    """
    nodes: dict[tuple[str, str], list[Ros1Connection]] = {}
    for one in connections:
        host = str(one.peer).rpartition(":")[0]
        nodes.setdefault((one.caller, host), []).append(one)
    for (name, host), lines in nodes.items():
        figures = [tcp_figures(one.socket) for one in lines]
        yield ClientFacts(
            key=hash((name, host)),
            protocol="ROS 1",
            address=host,
            about=name,
            received=_total(f.received for f in figures),
            sent=_total(f.sent for f in figures),
            latency=max((f.latency for f in figures if f.latency), default=None),
            dropped=sum(one.dropped for one in lines),
        )


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


__all__ = [
    "Ros1Connection",
    "TcpClient",
    "TcpFigures",
    "pioneer_facts",
    "ros1_facts",
    "tcp_facts",
    "tcp_figures",
    "viewer_facts",
]
