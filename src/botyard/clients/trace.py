"""Replay of a recorded Pioneer client session (``--record-packets``) on any robot."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from botyard.errors import PeerError
from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.handshake import Stage, in_handshake, stage_after
from botyard.protocols.pioneer.packet import Packet, Parser, command, frame

PULSE_AFTER_S: Final = 1.0
"""Time without a packet of the recorded client after which a PULSE is sent, s.

The client may have been paused, and the robot's watchdog is 2 s.
"""
HANDSHAKE: Final = 3
"""Number of packets that a client sends in the handshake: SYNC0, SYNC1, SYNC2."""
ANSWER_TIMEOUT_S: Final = 5.0
"""Longest wait for an answer of the robot in the handshake, s."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Bytes that one side of a session sent at one time.

    Attributes
    ----------
    robot : str
        Name of the robot.
    session : int
        Number of the session, counted over all robots.
    sim, wall : float
        Simulated time, and wall time since the start of the recording, s.
    from_client : bool
        Whether the client, not the robot, sent the bytes.
    data : bytes
        Bytes of the stream: complete packets, or parts of them.
    order : int
        Number of earlier entries of this session; 0 if unknown.
    """

    robot: str
    session: int
    sim: float
    wall: float
    from_client: bool
    data: bytes
    order: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """Packets that the client of one session sent after the handshake.

    Attributes
    ----------
    sent : tuple of (float, bytes)
        Packets, each with the simulated time since the first of them, s.
    lasts : float
        Simulated time from the first packet to the end of the session, s.
    """

    sent: tuple[tuple[float, bytes], ...]
    lasts: float


def stage_before(first: Passed) -> Stage:
    """Return the stage of a session before its first recorded bytes.

    The handshake is missing if the recording started after it.

    Parameters
    ----------
    first : Passed
        First recorded bytes of the session.
    """
    return Stage.OPEN if first.order else Stage.SYNC0


def trace_of(passed: Iterable[Passed]) -> Trace:
    """Return the packets that the client sent in one session after the handshake.

    Parameters
    ----------
    passed : iterable of Passed
        Bytes of one session.

    Returns
    -------
    Trace
        Packets of the client with their times; empty if it sent none after the
        handshake.
    """
    parser, sent = Parser(), []
    stage: Stage | None = None
    begin: float | None = None
    last = 0.0
    for one in passed:
        last = one.sim
        stage = stage or stage_before(one)
        for packet in parser.feed_bytes(one.data) if one.from_client else ():
            is_handshake = in_handshake(stage, packet.id)
            stage = stage_after(stage, packet.id)
            if not is_handshake:
                # Times count from the first packet after the handshake.
                begin = one.sim if begin is None else begin
                sent.append((max(0.0, one.sim - begin), frame(packet.id, packet.data)))

    return Trace(tuple(sent), 0.0 if begin is None else max(0.0, last - begin))


class TracePlayer:
    """Player of the packets of a trace; it performs no input or output itself.

    The handshake waits for the robot's answers; the other packets keep their recorded
    times.

    Parameters
    ----------
    trace : Trace
        The session.
    speed : float
        Recorded seconds per second of `now`. The recorded times are simulated, so 1 is
        right for a robot at normal speed.

    Attributes
    ----------
    is_over : bool
        Whether the recorded time is over and everything has been sent.
    answers : list of Packet
        Packets of the robot after the handshake.
    """

    def __init__(self, trace: Trace, speed: float = 1.0) -> None:
        self._sent, self._lasts = trace.sent, trace.lasts
        self._speed = speed
        self._parser = Parser()
        self._began: float | None = None
        self._asked_at: float | None = None
        self._asked = 0
        self._next = 0
        self._quiet_since = 0.0
        self.is_over = False
        self.answers: list[Packet] = []

    def feed_bytes(self, data: bytes, now: float) -> list[Packet]:
        """Process bytes of the robot, and return the packets in them.

        Parameters
        ----------
        data : bytes
            Next bytes of the stream, cut anywhere.
        now : float
            Time of the caller's clock, s.
        """
        packets = self._parser.feed_bytes(data)
        for packet in packets:
            if self._began is not None:
                self.answers.append(packet)
            # Only the echo of the last SYNC counts; a robot may send earlier echoes
            # late.
            elif self._asked_at is not None and packet.id == self._asked:
                self._asked, self._asked_at = self._asked + 1, None
                if self._asked == HANDSHAKE:
                    self._began = self._quiet_since = now

        return packets

    def send(self, now: float) -> bytes:
        """Return the bytes that are due now.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        bytes
            Complete packets; empty if none is due. A PULSE fills long silences.

        Raises
        ------
        PeerError
            The robot does not answer in the handshake.
        """
        if self._began is None:
            if self._asked_at is None:
                self._asked_at = now
                return frame(self._asked)

            if now >= self._asked_at + ANSWER_TIMEOUT_S:
                raise PeerError(
                    f"expected an answer to packet {self._asked} within "
                    f"{ANSWER_TIMEOUT_S:g} s, found none"
                )

            return b""

        found = b""
        while self._next < len(self._sent) and now >= self._due():
            found += self._sent[self._next][1]
            self._next += 1

        self.is_over = self._next >= len(self._sent) and now >= self._due()
        if not found and now >= self._quiet_since + PULSE_AFTER_S and not self.is_over:
            found = command(C.PULSE)
        if found:
            self._quiet_since = now
        return found

    def next_time(self, now: float) -> float:
        """Return the time at which `send` must be called again, s.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        if self._began is None:
            return now if self._asked_at is None else self._asked_at + ANSWER_TIMEOUT_S
        return min(self._due(), self._quiet_since + PULSE_AFTER_S)

    def _due(self) -> float:
        """Return the time at which the next packet, or the end of the trace, is due, s."""
        assert self._began is not None
        at = self._sent[self._next][0] if self._next < len(self._sent) else self._lasts
        return self._began + at / self._speed


def play(
    trace: Trace,
    host: str,
    port: int,
    *,
    speed: float = 1.0,
    on_packet: Callable[[bool, Packet, float], None] | None = None,
) -> TracePlayer:
    """Replay a session on a robot over TCP.

    Parameters
    ----------
    trace : Trace
        The session.
    host, port : str, int
        Address of the robot.
    speed : float
        Recorded seconds per second of wall time.
    on_packet : callable, optional
        Called with each packet: whether this client sent it, the packet, and the time
        since the connection, s.

    Returns
    -------
    TracePlayer
        The player, with the robot's answers.

    Raises
    ------
    PeerError
        No robot listens; it does not answer in the handshake, or it closes the
        connection before the end of the trace.
    """
    player, ours = TracePlayer(trace, speed), Parser()
    try:
        connection = socket.create_connection((host, port), ANSWER_TIMEOUT_S)
    # UnicodeError: no valid host name; OverflowError: no valid port.
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PeerError(f"no robot at {host}:{port}: {reason}") from None

    began = time.monotonic()
    with connection:
        # Small packets must leave at once, or their recorded times are lost.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while not player.is_over:
                now = time.monotonic()
                data = player.send(now)
                if data:
                    connection.sendall(data)
                    if on_packet is not None:
                        for packet in ours.feed_bytes(data):
                            on_packet(True, packet, now - began)

                # A timeout of 0 would make the socket non-blocking.
                connection.settimeout(
                    max(1e-3, player.next_time(now) - time.monotonic())
                )
                try:
                    received = connection.recv(65536)
                except TimeoutError:
                    continue

                if not received:
                    raise PeerError(
                        "the robot closed the connection (it may have another client)"
                    )

                now = time.monotonic()
                for packet in player.feed_bytes(received, now):
                    if on_packet is not None:
                        on_packet(False, packet, now - began)
        except OSError as error:
            raise PeerError(
                f"the connection broke: {error.strerror or error}"
            ) from None

    return player


__all__ = ["Passed", "Trace", "TracePlayer", "play", "stage_before", "trace_of"]
