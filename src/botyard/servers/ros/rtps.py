"""Sockets and timer of an RTPS participant, in the simulator's event loop.

See `botyard.protocols.rtps.participant` for the protocol.
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
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from botyard.control.census import ClientFacts
from botyard.control.error_barrier import ErrorBarrier
from botyard.errors import PeerError
from botyard.names import shown
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
"""Token bucket of processing time for received packets: sustained share of time.

Answers have limits of their own (`botyard.protocols.rtps.limits`). Published messages
are not charged, because peers do not cause them.
"""
BURST_S: Final = 0.05
"""Token bucket of processing time for received packets: burst, s."""
MAX_PACKETS: Final = 64
"""Maximum number of packets to read from a socket in one event loop iteration."""
ITERATION_BUDGET_S: Final = 0.01
"""Processing time of packets in an iteration of the event loop, s."""
# Largest UDP payload, rounded up.
MAX_PACKET_BYTES: Final = 65536
RECEIVE_BUFFER_BYTES: Final = 4 << 20
"""Receive buffer to request from the system, bytes."""
ENOUGH_BUFFER_BYTES: Final = 1 << 20
"""Receive buffer below which a line is logged, bytes."""
MAX_INDEX: Final = 100
"""Number of participants of one host and domain whose ports are tried."""
LAST_PORT: Final = 65535
MAX_COUNTED: Final = 1000
"""Number of byte counters above which counters of participants that have left are removed."""
POLL_S: Final = 0.002
"""Poll interval of sockets if the event loop cannot watch them, s."""
# Constants of Linux (linux/sockios.h, linux/in.h) that Python lacks.
_SIOCGIFADDR: Final = 0x8915
_IP_MULTICAST_ALL: Final = 49

log = logging.getLogger("botyard.ros")


def interface_addresses() -> list[str]:
    """Return the IPv4 addresses of this host's interfaces, loopback addresses last.

    Returns
    -------
    list of str
        Addresses in dotted form. On Linux the system lists the interfaces; other
        systems only resolve this host's name.
    """
    found: dict[str, None] = {}
    if sys.platform == "linux":
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            for _, name in socket.if_nameindex():
                # An interface may have no IPv4 address.
                with contextlib.suppress(OSError):
                    answer = fcntl.ioctl(
                        probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15])
                    )
                    # struct ifreq: a name of 16 bytes, then a sockaddr_in with the
                    # address at its byte 4 (netdevice(7)).
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
    """RTPS participant on the network; create it in a running event loop.

    Parameters
    ----------
    environment : Environment
        Domain and range of discovery.
    hosts : sequence of str
        Addresses of the interfaces to use. Empty: all interfaces, or only the loopback
        if the range is LOCALHOST and no static peer is on another host.

    Raises
    ------
    PeerError
        No port of the domain is available.

    Attributes
    ----------
    participant : Participant
        State machine of the protocol.
    """

    def __init__(self, environment: Environment, hosts: Sequence[str] = ()) -> None:
        self._loop = asyncio.get_running_loop()
        self._barrier = ErrorBarrier(log, "receiving")
        self._throttled_log = ThrottledLog(log)
        self._time = TokenBucket(SHARE, BURST_S, self._loop.time())
        self._sockets: list[socket.socket] = []
        self._group: list[socket.socket] = []
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._writing_at = 0.0
        self._received: Counter[bytes] = Counter()
        self._sent: Counter[tuple[str, int]] = Counter()
        self._is_closed = False
        own = interface_addresses()
        peers = _resolved(environment.peers)
        remote = [p for p in peers if p not in own and not p.startswith("127.")]
        is_local = environment.reach == "LOCALHOST"

        # Local participants may use any of this host's addresses as their source.
        self._only = frozenset([*own, *remote]) if is_local else frozenset()

        # These two ranges override the chosen network interfaces; the loopback reaches
        # no static peer on another host.
        if environment.reach == "OFF" or (is_local and not remote):
            hosts = [guids.LOOPBACK]
        used = [h for h in hosts or own if h != guids.LOOPBACK] or [guids.LOOPBACK]
        port = guids.unicast_port(environment.domain, 0)

        try:
            if environment.reach != "OFF":
                port = self._open(environment, used, is_everywhere=not hosts)
                self._join(environment.domain, [guids.LOOPBACK] if is_local else used)
        except OSError as error:
            self._close_sockets()
            raise PeerError(
                f"cannot join DDS domain {environment.domain}: {error.strerror or error}"
            ) from None

        # A GUID prefix starts with the vendor ID and has to be unique in the domain.
        prefix = wire.VENDOR + os.urandom(wire.PREFIX_BYTES - len(wire.VENDOR))
        now = self._loop.time()
        self.participant = Participant(
            prefix,
            [(host, port) for host in used],
            environment.announce_to(peers),
            now,
            time.time() - now,
            domain=environment.domain,
            hosts=own,
            user_data=ENCLAVE,
        )

        # A participant whose packets wait in the socket is not silent: defer its lease
        # check.
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
        """Open the sockets, and return the port of the unicast socket."""
        own = _udp()
        self._sockets.append(own)
        # A socket bound to one address receives no packets for other addresses of this
        # host, such as packets from outside.
        address = "" if is_everywhere or len(hosts) > 1 else hosts[0]
        ports = [
            guids.unicast_port(environment.domain, index) for index in range(MAX_INDEX)
        ]

        # In the highest domains, the port numbers of some participants exceed 65535.
        ports = [port for port in ports if port <= LAST_PORT]
        for port in ports:
            try:
                own.bind((address, port))
                break
            except OSError:
                if port == ports[-1]:
                    raise

        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        granted = own.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        # A small buffer loses bursts of fragments, for example of maps.
        if granted < ENOUGH_BUFFER_BYTES:
            log.debug("ROS 2: the system grants a receive buffer of %d bytes", granted)
        return port

    def _join(self, domain: int, hosts: Sequence[str]) -> None:
        """Join the multicast group on each interface, with a socket to send there."""
        many = _udp()
        self._sockets.append(many)
        # Several participants on one host share the multicast port.
        many.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # On Linux, a socket receives the group's packets of all interfaces by default.
        if sys.platform == "linux":
            many.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)

        # BSD and macOS need SO_REUSEPORT to share it; Linux does not.
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
                # Without multicast, unicast discovery still finds participants.
                log.info("ROS 2: no multicast on %s: %s", host, error.strerror or error)
                continue

            sender = _udp()
            self._group.append(sender)
            sender.setsockopt(
                socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(host)
            )
            # TTL 1 keeps discovery on the local network.
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)

    def _close_sockets(self) -> None:
        for sock in (*self._sockets, *self._group):
            sock.close()
        self._sockets, self._group = [], []

    # -- receiving

    def _watch(self, sock: socket.socket) -> None:
        try:
            self._loop.add_reader(sock, self._readable, sock)
        # The Proactor event loop of Windows cannot watch a UDP socket.
        except NotImplementedError:
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
                # The error (ICMP port unreachable) belongs to an earlier datagram of
                # this socket.
                continue

            # With range LOCALHOST, ignore packets from hosts that are no static peers.
            if self._only and source[0] not in self._only:
                continue
            self._received[packet[8:20]] += len(packet)
            # A malformed packet must not end the participant.
            self._barrier.run(feed, packet, source, now)
            if worked() - start > ITERATION_BUDGET_S:
                break

        if len(self._received) > MAX_COUNTED:
            # Peers can forge any number of prefixes.
            self._forget_counts()
        self._time.spend(now, worked() - start)
        self.wake()
        wait = self._time.wait(now)
        # Over budget: stop watching the socket. The system drops what its buffer cannot
        # hold.
        if wait and not self._is_closed:
            with contextlib.suppress(NotImplementedError):
                self._loop.remove_reader(sock)
                self._loop.call_later(wait, self._read_again, sock)

    def _read_again(self, sock: socket.socket) -> None:
        if not self._is_closed:
            self._watch(sock)

    def _forget_counts(self) -> None:
        """Forget the counts of participants that have left."""
        peers = self.participant.peers
        known = {peer.data.guid[:12] for peer in peers}
        used = {address for peer in peers for address in peer.addresses}
        self._received = Counter(
            {k: n for k, n in self._received.items() if k in known}
        )
        self._sent = Counter({k: n for k, n in self._sent.items() if k in used})

    def facts(self) -> Iterator[ClientFacts]:
        """Yield descriptions of the remote participants, for operators."""
        self._forget_counts()
        for peer in self.participant.peers:
            prefix = peer.data.guid[:12]
            yield ClientFacts(
                key=hash(prefix),
                protocol="ROS 2",
                address=peer.host or peer.origin,
                about=f"participant {prefix.hex()[-8:]}, matches {peer.matched} endpoints",
                received=self._received[prefix],
                # Several participants of a process may share an address.
                sent=sum(self._sent[address] for address in peer.addresses),
            )

    # -- sending

    @property
    def is_open(self) -> bool:
        """Whether the sockets are open."""
        return not self._is_closed

    def now(self) -> float:
        """Return the participant's clock, s."""
        return self._loop.time()

    def writing(self) -> float:
        """Return the time of a sample that is being written, s.

        All samples of one iteration of the event loop have the same time, and are sent
        at the end of the iteration.
        """
        if self._soon is None:
            self.wake()
        return self._writing_at

    def wake(self) -> None:
        """Schedule the sending of written data at the end of this iteration."""
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

        # Message timestamps are wall time, which may be adjusted during the run.
        self.participant.epoch = time.time() - now
        later = self._barrier.call(self.participant.due, now, otherwise=now)
        self._send()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(later, self._flush)

        for event in self.participant.take_events():
            # Users can act on these two kinds: the endpoints will not communicate.
            if event.kind in (EventKind.QOS, EventKind.REFUSED):
                self._throttled_log.log(
                    logging.WARNING, "ROS 2: %s: %s", event.kind.value, event.text
                )
            else:
                log.debug("ROS 2: %s: %s", event.kind.value, event.text)

    def _send(self) -> None:
        # Range OFF: there are no sockets, so discard the output.
        if not self._sockets:
            self.participant.out()
            return

        own = self._sockets[0]
        for datagram, address in self.participant.out():
            if address[0] == guids.GROUP:
                for sender in self._group:
                    # The network interface may no longer exist.
                    with contextlib.suppress(OSError):
                        sender.sendto(datagram, address)
            # A permitted peer may announce addresses of other hosts.
            elif not self._only or address[0] in self._only:
                self._sent[address] += len(datagram)
                # A full buffer or an unreachable peer counts as packet loss.
                with contextlib.suppress(OSError):
                    own.sendto(datagram, address)

    def close(self) -> None:
        """Announce the departure, and close the sockets."""
        if self._is_closed:
            return
        self.participant.announce_departure(self._loop.time())
        self._send()
        self._is_closed = True
        for handle in (self._timer, self._soon):
            if handle is not None:
                handle.cancel()

        for sock in self._sockets:
            self._unwatch(sock)
        self._close_sockets()


def _resolved(names: Sequence[str]) -> list[str]:
    """Return the IPv4 addresses of hosts; unknown hosts are logged and omitted."""
    found = []
    for name in names:
        try:
            found.append(socket.gethostbyname(name))
        # UnicodeError: the name is not a valid host name.
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            log.warning("ROS 2: static peer %s: %s", shown(name, 100), reason)

    return found
