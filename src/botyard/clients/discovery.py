"""Discovery of simulators and robots in the network.

A UDP broadcast finds hosts, and a scan of their TCP ports finds robots
(pioneer-protocol §14).
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
    """Robot that was found at a port, with its names from the handshake.

    The names are empty if the robot already has a client.

    Attributes
    ----------
    port : int
        TCP port.
    name, class_name, subclass : str
        Names from SYNC2 (pioneer-protocol §3).
    """

    port: int
    name: str = ""
    class_name: str = ""
    subclass: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether the robot already has a client."""
        return not self.subclass


@dataclass(slots=True)
class FoundHost:
    """Computer that answered the broadcast, and its robots.

    Attributes
    ----------
    address : str
        IPv4 address in numbers.
    robots : list of FoundRobot
        Robots in the order of their ports.
    """

    address: str
    robots: list[FoundRobot] = field(default_factory=list)


def find_hosts(
    seconds: float = 2.0,
    *,
    port: int = PORT,
    targets: tuple[str, ...] = ("<broadcast>", "127.0.0.1"),
) -> list[str]:
    """Return the addresses of the hosts that answer a broadcast within `seconds`.

    Parameters
    ----------
    seconds : float
        Time to wait for answers, s. The call always takes this long.
    port : int
        UDP port of the requests.
    targets : tuple of str
        Addresses of the requests; ``<broadcast>`` reaches the local network.

    Returns
    -------
    list of str
        At most `MAX_HOSTS` IPv4 addresses in numbers, in the order of their answers.

    Raises
    ------
    PeerError
        No request could be sent to any target.
    """
    found: dict[str, None] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        # The system refuses broadcasts without this option.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        # Hosts answer to the port of the request, so any free local port will do.
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

    The scan tries at most `max_ports` ports; each port has its own `timeout`, s.

    Parameters
    ----------
    host : str
        Name or address of the host.
    first : int
        First TCP port.
    max_ports : int
        Greatest number of ports to try.
    timeout : float
        Timeout of the connection and of each answer, s.

    Returns
    -------
    list of FoundRobot
        Robots in the order of their ports; empty if the first port is closed.
    """
    robots = []
    for port in range(first, first + max_ports):
        robot = FoundRobot(port)
        try:
            with socket.create_connection((host, port), timeout) as sock:
                sock.settimeout(timeout)
                # Also list a robot that does not answer: its open port shows that it
                # exists.
                with contextlib.suppress(OSError):
                    _handshake(sock, robot)
        # UnicodeError: no valid host name; OverflowError: past the last port.
        except (OSError, UnicodeError, OverflowError):
            # Simulators use successive ports, so the first closed port follows the port
            # of the last robot.
            break

        robots.append(robot)

    return robots


def _handshake(sock: socket.socket, robot: FoundRobot) -> None:
    """Do the handshake (SYNC0 to SYNC2) to read the robot's names, but do not send OPEN."""
    parser = Parser()
    for number in range(3):
        sock.sendall(command(number))
        while not (packets := parser.feed_bytes(data := sock.recv(512))):
            if not data:
                return

        if number == 2 and packets[-1].id == 2:
            r = packets[-1].reader()
            robot.name, robot.class_name, robot.subclass = r.text(), r.text(), r.text()
