"""Client that behaves like Player's p2os driver, for tests of robots and simulators.

Source: pioneer-protocol §3, §5, §15. It synchronises with pauses of 200 ms, and
restarts with CLOSE after each unexpected answer. It sends OPEN without an argument. It
sends one command at a time and then blocks until the next report. It reads positions
modulo 4096 units, and discards changes of more than 100 mm per report. Two functions
provide the transport, so it works on a null modem as well as on a socket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from botyard.errors import PeerError
from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.packet import Packet, Parser, command
from botyard.protocols.pioneer.reports import Sip

SYNC_PAUSE = 0.2
"""Time between two packets of the handshake, s."""
MAX_JUMP_MM = 100.0
"""Maximum change of position per report that the client accepts, mm."""
WRAP = 4096
"""Modulus of positions, counter units."""
MAX_LENGTH = 198
"""Maximum length byte of a packet that the client accepts."""


@dataclass(slots=True)
class P2osClient:
    """Client that behaves like Player's p2os driver.

    Parameters
    ----------
    send : callable
        Send bytes to the robot.
    receive : callable
        Wait for a time, s, on any clock, and return the received bytes.
    dist_conv : float
        mm per position unit.

    Attributes
    ----------
    x_mm, y_mm : float
        Position according to the reports.
    tainted : int
        Number of reports whose change of position was discarded.
    restarts : int
        Number of restarts of the handshake.
    sip : Sip or None
        Last report; None before the first one.
    """

    send: Callable[[bytes], None]
    receive: Callable[[float], bytes]
    dist_conv: float = 1.0
    names: tuple[str, str, str] = ("", "", "")
    x_mm: float = 0.0
    y_mm: float = 0.0
    tainted: int = 0
    restarts: int = 0
    sip: Sip | None = None
    _parser: Parser = field(default_factory=Parser)
    _pending: list[Packet] = field(default_factory=list)
    _last: tuple[int, int] | None = None

    def connect(self, tries: int = 4, first: int = 0) -> None:
        """Perform the handshake and send OPEN.

        Parameters
        ----------
        tries : int
            Maximum number of handshakes.
        first : int
            Number of the first SYNC packet; the driver does not always start with 0.

        Raises
        ------
        PeerError
            The robot does not follow the handshake.
        """
        number = first
        while number < 3:
            self.send(command(number))
            packets = self._take(SYNC_PAUSE)
            answer = next((p for p in packets if p.id == number), None)
            if answer is None:
                self.restarts += 1
                if self.restarts >= tries:
                    raise PeerError(
                        f"expected an answer to SYNC{number}, found packets "
                        f"{[p.id for p in packets]}"
                    )

                # CLOSE resets the robot to the start of the handshake.
                self.send(command(C.CLOSE))
                number = 0
                continue

            if number == 2:
                r = answer.reader()
                self.names = (r.text(), r.text(), r.text())

            number += 1

        self.send(command(C.OPEN))
        self._take(SYNC_PAUSE)
        self.command(C.PULSE)
        self.command(C.ENABLE, 1)

    def command(self, number: int, argument: int | None = None) -> Sip:
        """Send one command and block until the next report.

        Parameters
        ----------
        number : int
            Command number, one of `commands.C`.
        argument : int, optional
            Integer argument in the unit of the command.

        Raises
        ------
        PeerError
            No report arrives within two seconds.
        """
        self.send(command(number, argument))
        return self.report()

    def report(self) -> Sip:
        """Return the next report.

        Raises
        ------
        PeerError
            No report arrives within two seconds.
        """
        for _ in range(20):
            while self._pending:
                packet = self._pending.pop(0)
                # Packet ids of reports (pioneer-protocol §5); the driver ignores all
                # others here.
                if 0x30 <= packet.id <= 0x34:
                    return self._parse(packet)

            self._pending = self._take(0.1)

        raise PeerError("no report for two seconds")

    def _take(self, seconds: float) -> list[Packet]:
        """Return the packets received within a time, s.

        Raises
        ------
        PeerError
            A packet is longer than the client accepts.
        """
        packets = self._parser.feed_bytes(self.receive(seconds))
        for packet in packets:
            if len(packet.data) + 3 > MAX_LENGTH:
                raise PeerError(
                    f"packet {packet.id} has length {len(packet.data) + 3}, "
                    f"expected at most {MAX_LENGTH}"
                )

        return packets

    def _parse(self, packet: Packet) -> Sip:
        """Decode a report and update the position.

        Parameters
        ----------
        packet : Packet
            Packet of type 0x30 to 0x34.
        """
        sip = self.sip = Sip.decode(packet)
        now = (sip.x % WRAP, sip.y % WRAP)
        if self._last is not None:
            dx, dy = (
                (b - a + WRAP // 2) % WRAP - WRAP // 2
                for a, b in zip(self._last, now, strict=True)
            )
            if max(abs(dx), abs(dy)) * self.dist_conv > MAX_JUMP_MM:
                self.tainted += 1
            else:
                self.x_mm += dx * self.dist_conv
                self.y_mm += dy * self.dist_conv

        self._last = now
        return sip
