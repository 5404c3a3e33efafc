"""Discovers simulators and robots in the network, as client libraries do: UDP
broadcast, then a port scan (pioneer-protocol §14).
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
"""Most hosts that are listed; anybody may answer a broadcast, under any address."""


@dataclass(slots=True)
class FoundRobot:
    """A robot: its port, and its names from the handshake, which are empty if it has a
    client already.
    """

    port: int
    name: str = ""
    class_name: str = ""
    subclass: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether it has a client already."""
        return not self.subclass


@dataclass(slots=True)
class FoundHost:
    """A host that answered, and its robots."""

    address: str
    robots: list[FoundRobot] = field(default_factory=list)


def find_hosts(
    seconds: float = 2.0,
    *,
    port: int = PORT,
    targets: tuple[str, ...] = ("<broadcast>", "127.0.0.1"),
) -> list[str]:
    """Addresses of the hosts that answer a broadcast within `seconds`.

    Raises
    ------
    PeerError
        No request could be sent to any target.
    """
    found: dict[str, None] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.bind(("", 0))
        sent = 0
        for target in targets:
            with contextlib.suppress(
                OSError
            ):  # a machine without network cannot broadcast, but it has a loopback
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
                # time-out, or the port is closed
                continue

            if is_reply(data) and len(found) < MAX_HOSTS:
                found[address[0]] = None

    return list(found)


def probe(
    host: str, *, first: int = 8101, max_ports: int = 32, timeout: float = 2.0
) -> list[FoundRobot]:
    """Robots on at most `max_ports` successive ports of a host, up to the first closed
    port. `timeout` in s for each port.
    """
    robots = []
    for port in range(first, first + max_ports):
        robot = FoundRobot(port)
        try:
            with socket.create_connection((host, port), timeout) as sock:
                sock.settimeout(timeout)
                with contextlib.suppress(OSError):
                    _handshake(sock, robot)
        except OSError:
            break

        robots.append(robot)

    return robots


def _handshake(sock: socket.socket, robot: FoundRobot) -> None:
    """Send SYNC0 to SYNC2 to learn the robot's names, without opening the robot."""
    parser = Parser()
    for number in range(3):
        sock.sendall(command(number))
        while not (packets := parser.receive(data := sock.recv(512))):
            if not data:
                return

        if number == 2 and packets[-1].id == 2:
            r = packets[-1].reader()
            robot.name, robot.class_name, robot.subclass = r.text(), r.text(), r.text()
