"""A client with the habits of Player's p2os driver, for tests of robots and simulators
(pioneer-protocol §3, §5, §15).

It synchronises with pauses of 200 ms and starts over with a CLOSE whenever an answer is
not the one it waits for; it opens without an argument; it sends one command at a time
and then blocks for a report; it reads positions modulo 4096 units and throws away
changes of more than 100 mm in one report. Transport is given by two functions, so it
works on a null modem as on a socket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from botyard.errors import PeerError
from botyard.protocols.pioneer.commands import C
from botyard.protocols.pioneer.packet import Packet, Parser, command
from botyard.protocols.pioneer.reports import Sip

SYNC_PAUSE = 0.2
"""Between two packets of the handshake, s."""
MAX_JUMP_MM = 100.0
"""A change of position beyond this in one report is not believed."""
WRAP = 4096
"""Positions are read modulo this many units."""
MAX_LENGTH = 198
"""Packets with a greater length byte are refused."""


@dataclass(slots=True)
class P2osClient:
    """The client.

    Parameters
    ----------
    send : callable
        Takes bytes for the robot.
    receive : callable
        Waits so many seconds (of whatever time) and returns what has come.
    dist_conv : float
        mm per position unit.

    Attributes
    ----------
    x_mm, y_mm : float
        Position by the reports.
    tainted : int
        Reports whose change of position was thrown away.
    restarts : int
        How often the handshake was started over.
    sip : Sip or None
        Last report.
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
        """Handshake and OPEN; `first` is the number that it begins with (the driver is
        not picky after a restart).

        Raises
        ------
        PeerError
            The robot does not follow.
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
                        f"no answer to SYNC{number}, found {[p.id for p in packets]}"
                    )

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
        """Send one command and block for the next report.

        Raises
        ------
        PeerError
            None comes for two seconds.
        """
        self.send(command(number, argument))
        return self.report()

    def report(self) -> Sip:
        """The next report."""
        for _ in range(20):
            while self._pending:
                packet = self._pending.pop(0)
                if 0x30 <= packet.id <= 0x34:
                    return self._parse(packet)

            self._pending = self._take(0.1)

        raise PeerError("no report for two seconds")

    def _take(self, seconds: float) -> list[Packet]:
        packets = self._parser.receive(self.receive(seconds))
        for packet in packets:
            if len(packet.data) + 3 > MAX_LENGTH:
                raise PeerError(
                    f"packet {packet.id} has length {len(packet.data) + 3}; more "
                    f"than {MAX_LENGTH} are refused"
                )

        return packets

    def _parse(self, packet: Packet) -> Sip:
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
