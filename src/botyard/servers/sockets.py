"""Socket helpers of all servers: used ports, errors, hang-up detection, keep-alive."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import select
import socket
from collections.abc import Iterable
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

MAX_STUCK: Final = 30.0
"""Time without reading after which a client is disconnected, s."""
BACKLOG: Final = 512
"""Length of the system's queue of connections to accept.

Many peers may connect at once, for example all nodes after a restart of a ROS master.
"""
READ_SIZE: Final = 16 << 10
"""Maximum number of bytes of one read, for peers whose bytes are queued."""


def file_limit() -> float:
    """Return the limit of open files of this process, which counts sockets too."""
    try:
        import resource
    # Windows has no such limit.
    except ImportError:
        return math.inf

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if soft == resource.RLIM_INFINITY else soft


Opened: TypeAlias = socket.socket | asyncio.Server | asyncio.BaseTransport
_opened: WeakKeyDictionary[Opened, str] = WeakKeyDictionary()
"""Listening sockets of this process, and the service of each."""


def note_port(opened: Opened, service: str) -> None:
    """Register the service of a listening socket for `reason_of`, until it closes.

    Parameters
    ----------
    opened : socket, asyncio.Server or transport
        Listening socket. Only a weak reference is kept.
    service : str
        Name of its service, such as ``robot bob``.
    """
    _opened[opened] = service


def _sockets_of(opened: Opened) -> Iterable[socket.socket]:
    if isinstance(opened, asyncio.Server):
        return [one for one in opened.sockets if one.fileno() >= 0]
    one = (
        opened if isinstance(opened, socket.socket) else opened.get_extra_info("socket")
    )
    return [] if one is None or one.fileno() < 0 else [one]


def _service_at(port: int, kind: socket.SocketKind) -> str:
    """Return the service of this process that uses a port; empty if none does."""
    found = (
        service
        for opened, service in list(_opened.items())
        for one in _sockets_of(opened)
        if one.type == kind and one.getsockname()[1] == port
    )
    return next(found, "")


def listening(host: str, ports: Iterable[int], service: str) -> socket.socket:
    """Return a socket that listens on the first free port of `ports`.

    Parameters
    ----------
    host : str
        Address to bind.
    ports : iterable of int
        Ports to try in order; 0 means any free port.
    service : str
        Name of the service in the list of used ports.

    Raises
    ------
    OSError
        None of the ports is free.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = OSError("no port given")
    for number in ports:
        # asyncio sends small messages at once only if the protocol is given: otherwise
        # an answer in two writes waits for the peer's delayed acknowledgement (40 ms).
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)

        try:
            # Reuse an address in TIME_WAIT after a restart. On Windows, the option
            # would let two servers share a port.
            if os.name == "posix":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, number))
            bound.listen(BACKLOG)
            bound.setblocking(False)
        except OSError as error:
            bound.close()
            last = error
        else:
            note_port(bound, service)
            return bound

    raise last


def reason_of(
    error: OSError, port: int, kind: socket.SocketKind = socket.SOCK_STREAM
) -> str:
    """Return the reason why a port is not available, as text for a message.

    Parameters
    ----------
    error : OSError
        Error of binding the port.
    port : int
        TCP or UDP port.
    kind : SocketKind
        Kind of the socket.

    Returns
    -------
    str
        Name of this simulator's own service that uses the port, or the system's reason.
    """
    service = _service_at(port, kind) if error.errno == errno.EADDRINUSE else ""
    if service:
        return f"{service} of this simulator uses this port"
    reason = error.strerror or str(error)
    # asyncio prefixes the address, which the caller's message already contains.
    return (
        reason.rpartition(": ")[2]
        if reason.startswith("error while attempting")
        else reason
    )


def read_in_pieces(transport: asyncio.BaseTransport) -> None:
    """Limit each read from a transport to `READ_SIZE` bytes.

    By default asyncio reads 256 KiB at once, more than the limits of some servers.

    Parameters
    ----------
    transport : asyncio.BaseTransport
        Transport; a transport without this setting is not changed.
    """
    if hasattr(transport, "max_size"):
        transport.max_size = READ_SIZE


def has_hung_up(fd: int) -> bool:
    """Return whether the peer has closed its side, even if bytes are still unread.

    Parameters
    ----------
    fd : int
        File descriptor of the socket; a negative one is closed.

    Returns
    -------
    bool
        False if the system does not support the check.
    """
    if fd < 0:
        return True
    if not hasattr(select, "POLLRDHUP"):
        return False
    look = select.poll()
    look.register(fd, select.POLLRDHUP)
    return bool(look.poll(0))


def has_unread(sock: socket.socket | None) -> bool:
    """Return whether unread bytes of the peer have arrived.

    Check this before a peer counts as silent, because a busy event loop reads late.

    Parameters
    ----------
    sock : socket, optional
        Connected socket; None or a closed one has no unread bytes.
    """
    if sock is None or sock.fileno() < 0:
        return False
    if hasattr(select, "poll"):
        look = select.poll()
        look.register(sock.fileno(), select.POLLIN)
        return bool(look.poll(0))

    return bool(select.select([sock], [], [], 0)[0])


def has_room(sock: socket.socket | None) -> bool:
    """Return whether the peer has read enough that more can be written.

    Check this before a peer counts as stuck.

    Parameters
    ----------
    sock : socket, optional
        Connected socket; None or a closed one has no room.
    """
    if sock is None or sock.fileno() < 0:
        return False
    if hasattr(select, "poll"):
        look = select.poll()
        look.register(sock.fileno(), select.POLLOUT)
        return bool(look.poll(0))

    return bool(select.select([], [sock], [], 0)[1])


def keep_alive(sock: socket.socket | None) -> None:
    """Enable keep-alive, so that a dead machine is detected within two minutes.

    The robot of a client on that machine then becomes free.

    Parameters
    ----------
    sock : socket, optional
        Connected TCP socket. The times are set where the system supports it: a first
        probe after 60 s of silence, then four at intervals of 15 s.
    """
    if sock is None:
        return
    # The connection may have been reset meanwhile.
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", 60),
            ("TCP_KEEPINTVL", 15),
            ("TCP_KEEPCNT", 4),
        ):
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


__all__ = [
    "MAX_STUCK",
    "READ_SIZE",
    "file_limit",
    "has_hung_up",
    "has_room",
    "has_unread",
    "keep_alive",
    "listening",
    "note_port",
    "read_in_pieces",
    "reason_of",
]
