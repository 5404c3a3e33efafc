"""Socket helpers of all servers: who has a port, errors, hang-up detection, keep-alive."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import select
import socket
from collections.abc import Iterable
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

MAX_STUCK: Final = 30.0
"""A client that has not read for this long, s, is disconnected."""
READ_SIZE: Final = 16 << 10
"""Bytes that asyncio reads at a time from a peer whose bytes are kept until its turn
comes.
"""


Opened: TypeAlias = socket.socket | asyncio.Server | asyncio.BaseTransport
_opened: WeakKeyDictionary[Opened, str] = WeakKeyDictionary()
"""What this process listens with, and for which of its services."""


def note_port(opened: Opened, service: str) -> None:
    """Note which service listens, for `reason_of`; it counts until it is closed."""
    _opened[opened] = service


def _sockets_of(opened: Opened) -> Iterable[socket.socket]:
    if isinstance(opened, asyncio.Server):
        return [one for one in opened.sockets if one.fileno() >= 0]
    one = (
        opened if isinstance(opened, socket.socket) else opened.get_extra_info("socket")
    )
    return [] if one is None or one.fileno() < 0 else [one]


def _service_at(port: int, kind: socket.SocketKind) -> str:
    """The service of this process that has a port; empty: none."""
    found = (
        service
        for opened, service in list(_opened.items())
        for one in _sockets_of(opened)
        if one.type == kind and one.getsockname()[1] == port
    )
    return next(found, "")


def reason_of(
    error: OSError, port: int, kind: socket.SocketKind = socket.SOCK_STREAM
) -> str:
    """Why a port cannot be had, for people."""
    service = _service_at(port, kind) if error.errno == errno.EADDRINUSE else ""
    if service:
        return f"{service} of this simulator has that port"
    reason = error.strerror or str(error)
    # asyncio puts the address in front, we do so ourselves
    return (
        reason.rpartition(": ")[2]
        if reason.startswith("error while attempting")
        else reason
    )


def read_in_pieces(transport: asyncio.BaseTransport) -> None:
    """Let at most `READ_SIZE` bytes come at a time: by itself asyncio hands over 256
    KiB, whatever limit a server has for what waits.
    """
    if hasattr(transport, "max_size"):
        transport.max_size = READ_SIZE


def has_hung_up(fd: int) -> bool:
    """Whether the other end of a socket has closed its side, although bytes may still
    be unread; False where the system cannot tell.
    """
    if fd < 0:
        return True
    if not hasattr(select, "POLLRDHUP"):
        return False
    look = select.poll()
    look.register(fd, select.POLLRDHUP)
    return bool(look.poll(0))


def has_unread(sock: socket.socket | None) -> bool:
    """Whether bytes of the other end have come and were not read: ask before calling it
    silent, for a busy loop reads late.
    """
    if sock is None or sock.fileno() < 0:
        return False
    if hasattr(select, "poll"):
        look = select.poll()
        look.register(sock.fileno(), select.POLLIN)
        return bool(look.poll(0))

    return bool(select.select([sock], [], [], 0)[0])


def has_room(sock: socket.socket | None) -> bool:
    """Whether the other end has read, so that more can be written: ask before saying
    that it does not read.
    """
    if sock is None or sock.fileno() < 0:
        return False
    if hasattr(select, "poll"):
        look = select.poll()
        look.register(sock.fileno(), select.POLLOUT)
        return bool(look.poll(0))

    return bool(select.select([], [sock], [], 0)[1])


def keep_alive(sock: socket.socket | None) -> None:
    """Let the system notice within two minutes that a silent client's machine is gone,
    so that its robot becomes free.
    """
    if sock is None:
        return
    with contextlib.suppress(OSError):  # it has been reset meanwhile
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
    "has_hung_up",
    "has_room",
    "has_unread",
    "keep_alive",
    "note_port",
    "read_in_pieces",
    "reason_of",
]
