"""`StreamPeer`: the connection of an untrusted peer over a stream.

Bytes from the peer wait here until a `TimeShare` gives them a turn. While too many
wait, nothing is read, so that TCP flow control slows the peer down. Output waits in an
`Outlet`. One timer watches over the deadline, a peer that does not read, and a peer
that hangs up while it is not read. A deadline is checked after all bytes are read: a
peer with waiting bytes is not silent. An exception in the code for a peer ends this
connection only.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from typing import Final, NamedTuple, cast

from botyard.control.error_barrier import ErrorBarrier, Log, call_all_suppressing
from botyard.interfaces.http_admission import UNREAD_GRACE_S, source_of
from botyard.protocols.tokenbucket import TokenBucket
from botyard.servers.addresses import is_loopback
from botyard.servers.outlet import Outlet
from botyard.servers.sockets import (
    MAX_STUCK,
    has_hung_up,
    has_unread,
    read_in_pieces,
)
from botyard.servers.timeshare import TimeShare

CLOSE_TIMEOUT_S: Final = 3.0
"""Timeout to write the last data of a connection, s; then it is aborted."""
# A robot whose client has disconnected must stop soon.
HANGUP_POLL_S: Final = 0.05
"""Interval of checking whether a peer that is not read has hung up, s."""
LOOK_AGAIN_S: Final = 0.1
"""Delay before a late peer with unread bytes is checked again, s."""

MAX_WAITING: Final = 64 << 10
"""Back-pressure: reading from a peer pauses while this many of its bytes are queued."""
# The cost of a turn is known only afterwards, so a turn must be short.
PIECE: Final = 128
"""Number of bytes that one turn processes, for sessions whose commands may be costly."""
BYTE_BURST: Final = 1.0
"""Token bucket of a peer's own bytes: burst, in seconds of its rate."""
TIME_BURST_S: Final = 0.001
"""Token bucket of a peer's own time: burst, s.

A hundred peers that start at the same moment then take at most the time of one step.
"""

log = logging.getLogger("botyard")


class Peer(NamedTuple):
    """Address of a peer, and whether the peer is on this machine.

    Attributes
    ----------
    address : str
        Its address; empty if unknown.
    is_local : bool
        Whether it is on this machine.
    port : int
        Port number of the peer.
    """

    address: str
    is_local: bool
    port: int = 0

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> Peer:
        """Return the peer of a connection.

        Parameters
        ----------
        transport : asyncio.BaseTransport
            Transport of the connection.

        Returns
        -------
        Peer
            Peer. It is local if its address is a loopback address, or if both ends have
            the same address.
        """
        peer, own = (
            transport.get_extra_info("peername"),
            transport.get_extra_info("sockname"),
        )
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        here = str(own[0]) if isinstance(own, tuple) else ""
        return cls(
            address,
            # A program may use the external address of its own machine.
            bool(address) and (is_loopback(address) or address == here),
            int(peer[1]) if isinstance(peer, tuple) else 0,
        )

    def __str__(self) -> str:
        return f"{self.address}:{self.port}" if self.address else "?"


class Allowance:
    """Budget of one peer: for its bytes, which also limits later work, and for processing time.

    Parameters
    ----------
    rate : float
        Sustained rate of bytes, bytes/s.
    share : float
        Share of time for processing these bytes.
    """

    __slots__ = ("bytes", "time")

    def __init__(self, rate: float, share: float) -> None:
        self.bytes = TokenBucket(rate, BYTE_BURST * rate)
        self.time = TokenBucket(share, TIME_BURST_S)


class StreamPeer(asyncio.Protocol):
    """Connection of an untrusted peer; a `Worker` of a `TimeShare`.

    A protocol derives from this class. It overrides `opened`, `on_bytes`, `closed`, and
    other methods as needed. Its overrides may raise exceptions.

    Parameters
    ----------
    turns : TimeShare
        Scheduler of the peer's work.
    log : Logger or LoggerAdapter
        Log that receives exceptions of the overrides.
    what : str
        Name of the connection, for the log.
    own : Allowance, optional
        Budget within which the peer's bytes do not wait for other peers.

    Attributes
    ----------
    max_waiting : int
        Number of waiting bytes beyond which reading pauses.
    piece : int
        Number of bytes of one turn, between two measurements of the cost.
    max_stuck : float
        Time without reading after which the peer is disconnected, s.
    waits_for_reader : bool
        Whether the bytes of a peer wait while it does not read.
    """

    max_waiting = MAX_WAITING
    piece = 4096
    max_stuck = MAX_STUCK
    waits_for_reader = True

    def __init__(
        self, turns: TimeShare, log: Log, what: str, own: Allowance | None = None
    ) -> None:
        self.turns = turns
        self.barrier = ErrorBarrier(log, what, self.drop)
        self.loop = asyncio.get_running_loop()
        self.peer = Peer("", False)
        self.source = ""
        self.inbox = bytearray()
        """Bytes from the peer that wait for their turn."""
        self.own_time: TokenBucket | None = None
        self.own = own
        self.transport: asyncio.Transport | None = None
        self.outlet: Outlet | None = None
        self.is_leaving = False
        """Whether the connection is about to end: further input is discarded."""
        self.is_over = False
        """Whether the connection has ended."""
        self._is_paused = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

        # Times of the timer's next checks, s.
        self._late_at = self._stuck_at = self._hangup_at = math.inf

    # -- for the protocol

    def opened(self) -> None:
        """Handle a new connection."""

    def on_bytes(self, data: bytes) -> None:
        """Process a piece of the peer's bytes.

        Parameters
        ----------
        data : bytes
            At most `piece` bytes, which may be split anywhere.
        """

    def drained(self) -> None:
        """Handle a peer that has read what was written."""
        self.turns.wants(self)

    def overdue(self) -> None:
        """Handle the end of the deadline."""
        self.drop()

    def stuck(self) -> None:
        """Handle a peer that has not read for `max_stuck`."""
        self.drop()

    def closed(self) -> None:
        """Release what belongs to the connection; called once at its end."""

    # -- state

    @property
    def socket(self) -> socket.socket | None:
        """Socket of the connection."""
        return (
            None
            if self.transport is None
            else cast("socket.socket | None", self.transport.get_extra_info("socket"))
        )

    @property
    def is_held_up(self) -> bool:
        """Whether bytes from the peer wait for their turn."""
        return bool(self.inbox)

    @property
    def has_unread(self) -> bool:
        """Whether bytes from the peer wait, in the system's buffer or here.

        If they wait, the server causes the delay, and the peer does not count as
        silent.
        """
        return self.is_held_up or has_unread(self.socket)

    @property
    def is_reading_paused(self) -> bool:
        """Whether the peer is not read, because too many of its bytes wait."""
        return self._is_paused

    @property
    def deadline(self) -> float | None:
        """Deadline of the peer by the loop's clock, s; None: there is none."""
        return None if self._deadline == math.inf else self._deadline

    def give(self, seconds: float | None) -> None:
        """Set the deadline of the peer.

        Parameters
        ----------
        seconds : float or None
            Time from now, s; None: no deadline. After it, `overdue` is called.
        """
        self._deadline = math.inf if seconds is None else self.loop.time() + seconds
        # The time of the check is separate, because unread bytes postpone it without a
        # new deadline.
        self._late_at = self._deadline
        self._watch()

    # -- asyncio callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection (callback of `asyncio.Protocol`)."""
        self.transport = cast(asyncio.Transport, transport)
        # By default asyncio delivers 256 KiB at once, more than `max_waiting`.
        read_in_pieces(transport)
        self.outlet = Outlet(self.transport)
        self.peer = Peer.of(transport)
        self.source = source_of(self.peer.address)
        self.barrier.run(self.opened)

    def data_received(self, data: bytes) -> None:
        """Queue received bytes for the peer's turns (callback of `asyncio.Protocol`)."""
        # Read and discard: closing a socket with unread bytes resets the connection.
        if self.is_leaving:
            return
        if self.own is not None and (self.own_time is not None or not self.inbox):
            # Queued bytes use the peer's own budget only if all of them are within it.
            is_admitted = self.own.bytes.take(self.loop.time(), len(data))
            self.own_time = self.own.time if is_admitted else None

        self.inbox += data
        self.read_on()
        self.turns.wants(self)

    def pause_writing(self) -> None:
        """Handle a full write buffer: the peer does not read (callback of `asyncio.Protocol`)."""
        if self.outlet is not None:
            self.outlet.pause()
            self._stuck_at = self.loop.time() + self.max_stuck
            self._watch()

    def resume_writing(self) -> None:
        """Continue to write, because the peer reads again (callback of `asyncio.Protocol`)."""
        # The peer reads again, so the check is off until the next pause.
        self._stuck_at = math.inf
        if self.outlet is not None and self.outlet.resume() and not self.is_leaving:
            self.barrier.run(self.drained)

    def eof_received(self) -> bool:
        """Handle the end of the peer's stream (callback of `asyncio.Protocol`)."""
        # asyncio closes this side when all data is written. A peer that does not read
        # must not delay the end of its session.
        self._leave(CLOSE_TIMEOUT_S)
        self.turns.soon(self._close)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection (callback of `asyncio.Protocol`)."""
        self._let_go()
        # Hundreds of peers may disconnect at once, so their ends share the budget of an
        # iteration.
        self.turns.soon(self._close)

    # -- input

    def turn(self) -> bool:
        """Process a piece of the peer's bytes.

        Returns
        -------
        bool
            Whether to take another turn.
        """
        if (
            not self.inbox
            or self.is_leaving
            or self.outlet is None
            or (self.waits_for_reader and self.outlet.is_full)
        ):
            return False
        data = bytes(self.inbox[: self.piece])
        del self.inbox[: self.piece]
        self.read_on()
        self.on_bytes(data)
        return bool(self.inbox)

    def read_on(self) -> None:
        """Pause or resume reading, depending on the number of waiting bytes."""
        if self.transport is None or self.transport.is_closing():
            return
        if not self._is_paused and len(self.inbox) > self.max_waiting:
            self._is_paused = True
            self.transport.pause_reading()

            # asyncio reports a hang-up only of a peer that it reads.
            self._hangup_at = self.loop.time() + HANGUP_POLL_S
            self._watch()
        # Resume at half of the limit, so that reading does not toggle with each turn.
        elif self._is_paused and len(self.inbox) <= self.max_waiting // 2:
            self._is_paused = False
            self._hangup_at = math.inf
            self.transport.resume_reading()

    # -- end

    def finish(self, seconds: float | None = None) -> None:
        """Close the connection when all data is written.

        Parameters
        ----------
        seconds : float, optional
            Longest time to write, s; by default `CLOSE_TIMEOUT_S`. The connection is
            then aborted.
        """
        # Input ends before the output, so that no further answers are written.
        self._leave(CLOSE_TIMEOUT_S if seconds is None else seconds)
        if self.outlet is not None:
            self.outlet.finish()

    def linger(self, seconds: float) -> None:
        """Discard input until the peer closes, or until a time is over.

        To close a socket with unread bytes resets the connection, which would also
        destroy the bytes that the peer has not read yet.

        Parameters
        ----------
        seconds : float
            Longest wait, s.
        """
        self._leave(seconds)
        self.read_on()

    def drop(self) -> None:
        """Abort the connection at once."""
        self._let_go()
        # The transport is aborted even if the protocol's own end raises.
        call_all_suppressing(
            self._close,
            lambda: self.transport.abort() if self.transport is not None else None,
        )

    def _leave(self, seconds: float) -> None:
        self.is_leaving = True
        self.turns.forget(self)
        self.inbox.clear()
        # The deadline ends the connection even if the peer never closes its side.
        self.give(seconds)

    def _let_go(self) -> None:
        self.is_leaving = True
        self.turns.forget(self)
        self.inbox.clear()
        self._late_at = self._stuck_at = self._hangup_at = math.inf
        if self.outlet is not None:
            self.outlet.drop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        # Several events can end a connection, but its session ends once.
        if not self.is_over:
            self.is_over = True
            self.closed()

    # -- the timer

    def _watch(self) -> None:
        """Set the timer, unless it already expires early enough."""
        due = min(self._late_at, self._stuck_at, self._hangup_at)
        if due == math.inf or (self._timer is not None and self._timer.when() <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(due, self._check)

    def _check(self) -> None:
        self._timer = None
        now = self.loop.time()
        if now >= self._hangup_at:
            self._hangup_at = now + HANGUP_POLL_S
            sock = self.socket
            # Waiting bytes of a disconnected peer would only delay the end of its
            # session.
            if sock is not None and has_hung_up(sock.fileno()):
                log.info(
                    "%s: %s has hung up; %d bytes from it were discarded",
                    type(self).__name__,
                    self.peer,
                    len(self.inbox),
                )
                self.drop()
                return

        if now >= self._late_at:
            # The server causes this delay, but it must be limited: bytes of a flood
            # always wait.
            if (
                not self.is_leaving
                and self.has_unread
                and now < self._deadline + UNREAD_GRACE_S
            ):
                self._late_at = now + LOOK_AGAIN_S
            else:
                self._late_at = self._deadline = math.inf
                self.barrier.run(self.drop if self.is_leaving else self.overdue)

        if now >= self._stuck_at and self.outlet is not None:
            # The outlet knows when the peer last read, which may be after the pause.
            left = self.max_stuck - self.outlet.stuck(now)
            self._stuck_at = now + left if left > 0.0 else math.inf
            if left <= 0.0:
                self.barrier.run(self.stuck)

        self._watch()


__all__ = [
    "CLOSE_TIMEOUT_S",
    "HANGUP_POLL_S",
    "LOOK_AGAIN_S",
    "MAX_WAITING",
    "PIECE",
    "Allowance",
    "Peer",
    "StreamPeer",
]
