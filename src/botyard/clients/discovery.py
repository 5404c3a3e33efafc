"""Discovery of simulators and robots in the network.

It works as in client libraries: a UDP broadcast, then a port scan (pioneer-protocol
§14).
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass, field
from typing import Final

from botyard.errors import PeerError
from botyard.protocols.discovery import PORT, REQUEST, is_reply
from botyard.protocols.pioneer.packet import Parser, command

MAX_HOSTS: Final = 256
"""Largest number of hosts to list.

Any machine can answer a broadcast, under any address.
"""


@dataclass(slots=True)
class FoundRobot:
    """Robot with its port, and with its names from the handshake.

    The names are empty if the robot already has a client.
    """

    port: int
    name: str = ""
    class_name: str = ""
    subclass: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether it already has a client."""
        return not self.subclass


@dataclass(slots=True)
class FoundHost:
    """Host that answered, and its robots."""

    address: str
    robots: list[FoundRobot] = field(default_factory=list)


def find_hosts(
    seconds: float = 2.0,
    *,
    port: int = PORT,
    targets: tuple[str, ...] = ("<broadcast>", "127.0.0.1"),
) -> list[str]:
    """Return the addresses of the hosts that answer a broadcast within `seconds`.

    Raises
    ------
    PeerError
        No request could be sent to any target.
    """
    found: dict[str, None] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        # The system refuses broadcasts without this option.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        # Hosts answer to the port of the request, so any free one is right.
        sock.bind(("", 0))
        sent = 0
        for target in targets:
            # A machine without a network cannot broadcast, but it has a loopback.
            with contextlib.suppress(OSError):
                sock.sendto(REQUEST, (target, port))
                sent += 1

        if not sent:
            raise PeerError("no discovery request can be sent: there is no network")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                data, address = sock.recvfrom(512)
            except OSError:
                # The wait timed out, or the port is closed.
                continue

            if is_reply(data) and len(found) < MAX_HOSTS:
                found[address[0]] = None

    return list(found)


def probe(
    host: str, *, first: int = 8101, max_ports: int = 32, timeout: float = 2.0
) -> list[FoundRobot]:
    """Find robots on successive ports of a host, up to the first closed port.

    It tries at most `max_ports` ports; `timeout` in s is for each port.
    """
    robots = []
    for port in range(first, first + max_ports):
        robot = FoundRobot(port)
        try:
            with socket.create_connection((host, port), timeout) as sock:
                sock.settimeout(timeout)
                # A robot that does not answer is listed also: its open port shows that
                # it exists.
                with contextlib.suppress(OSError):
                    _handshake(sock, robot)
        # UnicodeError: no valid host name; OverflowError: past the last port.
        except (OSError, UnicodeError, OverflowError):
            # Simulators use successive ports, so the first closed one is behind the
            # last robot.
            break

        robots.append(robot)

    return robots


def _handshake(sock: socket.socket, robot: FoundRobot) -> None:
    """Send SYNC0 to SYNC2 to get the robot's names, without opening the robot."""
    parser = Parser()
    for number in range(3):
        sock.sendall(command(number))
        while not (packets := parser.feed_bytes(data := sock.recv(512))):
            if not data:
                return

        if number == 2 and packets[-1].id == 2:
            r = packets[-1].reader()
            robot.name, robot.class_name, robot.subclass = r.text(), r.text(), r.text()
