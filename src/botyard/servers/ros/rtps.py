"""The sockets and the timer of an RTPS participant
(`botyard.protocols.rtps.participant`), in the simulator's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from typing import Final

from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import PeerError
from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.naming import ENCLAVE
from botyard.protocols.rtps import guids, wire
from botyard.protocols.rtps.events import EventKind
from botyard.protocols.rtps.participant import Participant
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.sockets import has_unread
from botyard.servers.throttledlog import ThrottledLog
from botyard.servers.workclock import worked

SHARE: Final = 0.2
"""Token bucket of processing time for received packets: sustained share of time. What
is sent in answer has limits of its own (`botyard.protocols.rtps.limits`), and what the
simulator publishes is not the peers' doing.
"""
BURST_S: Final = 0.05
"""The same: burst, s."""
MAX_PACKETS: Final = 64
"""Most packets of one socket that are looked at in one iteration of the event loop."""
ITERATION_BUDGET_S: Final = 0.01
"""The same: processing time, s."""
MAX_PACKET_BYTES: Final = 65536
RECEIVE_BUFFER_BYTES: Final = 4 << 20
"""Receive buffer that is asked for, bytes."""
ENOUGH_BUFFER_BYTES: Final = 1 << 20
"""Less than this is worth a line in the log, bytes."""
MAX_INDEX: Final = 100
"""Participants of one host and domain whose ports are tried."""
LAST_PORT: Final = 65535
POLL_S: Final = 0.002
"""How often sockets are looked at where the event loop cannot watch them, s."""
_SIOCGIFADDR: Final = 0x8915
_IP_MULTICAST_ALL: Final = 49

log = logging.getLogger("botyard.ros")


def interface_addresses() -> list[str]:
    """IPv4 addresses of this host's interfaces, the loopback's last."""
    found: dict[str, None] = {}
    if sys.platform == "linux":
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):  # it has none
                    answer = fcntl.ioctl(
                        probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15])
                    )
                    found[socket.inet_ntoa(answer[20:24])] = None
    else:
        with contextlib.suppress(OSError):
            infos = socket.getaddrinfo(
                socket.gethostname(), None, socket.AF_INET, socket.SOCK_DGRAM
            )
            found.update((str(info[4][0]), None) for info in infos)

    others = [host for host in found if not host.startswith("127.")]
    return [*others, guids.LOOPBACK]


def _udp() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    return sock


class RtpsNode:
    """A participant on the network; made in a running event loop.

    Parameters
    ----------
    environment : Environment
        Domain and range of discovery.
    hosts : sequence of str
        Addresses of the interfaces to use; empty: all, or the loopback where the range
        is LOCALHOST.

    Raises
    ------
    PeerError
        No port of the domain can be had.

    Attributes
    ----------
    participant : Participant
    """

    def __init__(self, environment: Environment, hosts: Sequence[str] = ()) -> None:
        self._loop = asyncio.get_running_loop()
        self._fence = ErrorBarrier(log, "receiving")
        self._throttled_log = ThrottledLog(log)
        self._time = TokenBucket(SHARE, BURST_S, self._loop.time())
        self._sockets: list[socket.socket] = []
        self._group: list[socket.socket] = []
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._writing_at = 0.0
        self._is_closed = False
        own = interface_addresses()
        self._only = frozenset(own) if environment.reach == "LOCALHOST" else frozenset()
        if environment.reach in ("LOCALHOST", "OFF"):
            hosts = [guids.LOOPBACK]
        used = [h for h in hosts or own if h != guids.LOOPBACK] or [guids.LOOPBACK]
        port = guids.unicast_port(environment.domain, 0)
        try:
            if environment.reach != "OFF":
                port = self._open(environment, used, is_everywhere=not hosts)
        except OSError as error:
            self._close_sockets()
            raise PeerError(
                f"DDS domain {environment.domain} cannot be entered: {error.strerror or error}"
            ) from None

        prefix = wire.VENDOR + os.urandom(wire.PREFIX_BYTES - len(wire.VENDOR))
        now = self._loop.time()
        self.participant = Participant(
            prefix,
            [(host, port) for host in used],
            environment.announce_to(_resolved(environment.peers)),
            now,
            time.time() - now,
            domain=environment.domain,
            hosts=own,
            user_data=ENCLAVE,
        )
        self.participant.judge_after(
            lambda: any(has_unread(sock) for sock in self._sockets)
        )
        for sock in self._sockets:
            self._watch(sock)
        self.wake()

    # -- sockets

    def _open(
        self, environment: Environment, hosts: Sequence[str], is_everywhere: bool
    ) -> int:
        """Open the sockets; the port of the one for unicast."""
        own = _udp()
        self._sockets.append(own)
        # bound to one address, it does not see what comes for another one, such as from
        # outside
        address = "" if is_everywhere or len(hosts) > 1 else hosts[0]
        ports = [
            guids.unicast_port(environment.domain, index) for index in range(MAX_INDEX)
        ]
        ports = [
            port for port in ports if port <= LAST_PORT
        ]  # the last domains have fewer
        for port in ports:
            try:
                own.bind((address, port))
                break
            except OSError:
                if port == ports[-1]:
                    raise

        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        granted = own.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        if granted < ENOUGH_BUFFER_BYTES:
            log.debug("ROS 2: the system grants a receive buffer of %d bytes", granted)
        self._join(environment.domain, hosts)
        return port

    def _join(self, domain: int, hosts: Sequence[str]) -> None:
        """Join the multicast group on each interface, and make a socket that sends to
        it there.
        """
        many = _udp()
        self._sockets.append(many)
        many.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if (
            sys.platform == "linux"
        ):  # only what comes over the interfaces that this socket has joined on
            many.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)

        if hasattr(socket, "SO_REUSEPORT") and sys.platform != "linux":
            many.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        many.bind(
            (
                guids.GROUP if sys.platform == "linux" else "",
                guids.discovery_port(domain),
            )
        )
        for host in hosts:
            try:
                membership = socket.inet_aton(guids.GROUP) + socket.inet_aton(host)
                many.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            except OSError as error:
                # participants are still met by unicast
                log.info("ROS 2: no multicast on %s: %s", host, error.strerror or error)
                continue

            sender = _udp()
            self._group.append(sender)
            sender.setsockopt(
                socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(host)
            )
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)

    def _close_sockets(self) -> None:
        for sock in (*self._sockets, *self._group):
            sock.close()
        self._sockets, self._group = [], []

    # -- receiving

    def _watch(self, sock: socket.socket) -> None:
        try:
            self._loop.add_reader(sock, self._readable, sock)
        except (
            NotImplementedError
        ):  # the event loop of Windows cannot say when a datagram has come
            self._poll(sock)

    def _poll(self, sock: socket.socket) -> None:
        if not self._is_closed:
            self._readable(sock)
            self._loop.call_later(POLL_S, self._poll, sock)

    def _unwatch(self, sock: socket.socket) -> None:
        with contextlib.suppress(NotImplementedError):
            self._loop.remove_reader(sock)

    def _readable(self, sock: socket.socket) -> None:
        start = worked()
        now = self._loop.time()
        feed = self.participant.feed
        for _ in range(MAX_PACKETS):
            try:
                packet, source = sock.recvfrom(MAX_PACKET_BYTES)
            except BlockingIOError:
                break
            except OSError:
                # what an earlier datagram of ours ran into
                continue

            if self._only and source[0] not in self._only:
                continue
            self._fence.run(feed, packet, source, now)
            if worked() - start > ITERATION_BUDGET_S:
                break

        self._time.spend(now, worked() - start)
        self.wake()
        wait = self._time.wait(now)
        if wait and not self._is_closed:
            with contextlib.suppress(NotImplementedError):
                self._loop.remove_reader(sock)
                self._loop.call_later(wait, self._read_again, sock)

    def _read_again(self, sock: socket.socket) -> None:
        if not self._is_closed:
            self._watch(sock)

    # -- sending

    def now(self) -> float:
        """The participant's clock, s."""
        return self._loop.time()

    def writing(self) -> float:
        """The time of a sample that is being written, s: one for all of this iteration
        of the event loop, at whose end they are sent.
        """
        if self._soon is None:
            self.wake()
        return self._writing_at

    def wake(self) -> None:
        """Something was written: it is sent at the end of this iteration of the event
        loop, all together.
        """
        if self._soon is None and not self._is_closed:
            self._writing_at = self._loop.time()
            self._soon = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

        if self._is_closed:
            return
        now = self._loop.time()
        self.participant.epoch = time.time() - now
        later = self._fence.call(self.participant.due, now, otherwise=now)
        self._send()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(later, self._flush)
        for event in self.participant.take_events():
            if event.kind in (EventKind.QOS, EventKind.REFUSED):
                self._throttled_log.log(
                    logging.WARNING, "ROS 2: %s: %s", event.kind.value, event.text
                )
            else:
                log.debug("ROS 2: %s: %s", event.kind.value, event.text)

    def _send(self) -> None:
        if not self._sockets:  # OFF
            self.participant.out()
            return

        own = self._sockets[0]
        for datagram, address in self.participant.out():
            if address[0] == guids.GROUP:
                for sender in self._group:
                    with contextlib.suppress(OSError):  # an interface that has gone
                        sender.sendto(datagram, address)
            else:
                with contextlib.suppress(
                    OSError
                ):  # a full buffer, or nobody there: as if lost on the way
                    own.sendto(datagram, address)

    def close(self) -> None:
        """Say that we leave, and close the sockets."""
        if self._is_closed:
            return
        self.participant.leave(self._loop.time())
        self._send()
        self._is_closed = True
        for handle in (self._timer, self._soon):
            if handle is not None:
                handle.cancel()

        for sock in self._sockets:
            self._unwatch(sock)
        self._close_sockets()


def _resolved(names: Sequence[str]) -> list[str]:
    """IPv4 addresses of hosts; those that cannot be found are left out."""
    found = []
    for name in names:
        try:
            found.append(socket.gethostbyname(name))
        except OSError as error:
            log.warning("ROS 2: static peer %s: %s", name, error.strerror or error)

    return found
