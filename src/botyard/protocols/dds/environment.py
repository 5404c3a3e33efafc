"""Domain and discovery range from ROS 2's environment variables (reference ros.md §4)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from botyard.errors import WorldError
from botyard.names import shown
from botyard.protocols.rtps.guids import (
    GROUP,
    LOOPBACK,
    Address,
    discovery_port,
    unicast_port,
)

RANGES: Final = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
DISTROS: Final = {
    "humble": "humble",
    "iron": "jazzy",
    "jazzy": "jazzy",
    "kilted": "kilted",
    "lyrical": "lyrical",
    "rolling": "lyrical",
}
"""Known distributions of ROS 2, each with the distribution whose message types are used."""
DEFAULT_DISTRO: Final = "jazzy"
ROS1_DISTROS: Final = frozenset(["kinetic", "melodic", "noetic"])
"""Distributions of ROS 1 that ``ROS_DISTRO`` may name; they do not concern ROS 2."""
LAST_DOMAIN: Final = 232
PARTICIPANTS: Final = 32
"""Number of participants that are tried on each host without multicast, as in rmw_cyclonedds."""
_UNSERVED: Final = {
    "ROS_DISCOVERY_SERVER": "a discovery server of Fast DDS",
    "ROS_SUPER_CLIENT": "a discovery server of Fast DDS",
    "ROS2_EASY_MODE": "the easy mode of Fast DDS",
    "FASTRTPS_DEFAULT_PROFILES_FILE": "a profile of Fast DDS",
    "FASTDDS_DEFAULT_PROFILES_FILE": "a profile of Fast DDS",
    "CYCLONEDDS_URI": "a configuration of Cyclone DDS",
}
"""Variables that configure DDS implementations and that botyard ignores, with their meaning."""
_UDP_TRANSPORTS: Final = frozenset(["DEFAULT", "UDPV4"])
"""Values of ``FASTDDS_BUILTIN_TRANSPORTS`` with which Fast DDS uses UDP over IPv4.

The values without UDP over IPv4 are NONE, DEFAULTv6, SHM, UDPv6, LARGE_DATA,
LARGE_DATAv6 and P2P (Fast DDS 3, enumeration ``BuiltinTransports``). Options may follow
after "?".
"""


def distro_of(name: str) -> tuple[str, str]:
    """Return the distribution whose message types are used, and a warning or an empty text.

    Parameters
    ----------
    name : str
        Value of ``ROS_DISTRO``; empty if the variable is not set.

    Returns
    -------
    tuple of (str, str)
        One of the values of `DISTROS`, and the warning. A distribution of ROS 1 gives
        `DEFAULT_DISTRO` without a warning.
    """
    known = DISTROS.get(name)
    if known is not None or not name or name in ROS1_DISTROS:
        return known or DEFAULT_DISTRO, ""
    expected = ", ".join(DISTROS)
    return (
        DEFAULT_DISTRO,
        f'ROS_DISTRO: expected one of {expected}, found "{shown(name)}": using {DEFAULT_DISTRO}',
    )


@dataclass(frozen=True, slots=True)
class Environment:
    """Settings from the environment variables.

    Attributes
    ----------
    domain : int
        DDS domain (``ROS_DOMAIN_ID``).
    reach : str
        ``ROS_AUTOMATIC_DISCOVERY_RANGE``, one of `RANGES`.
    peers : tuple of str
        Hosts that are contacted directly (``ROS_STATIC_PEERS``).
    """

    domain: int = 0
    reach: str = "SUBNET"
    peers: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, variables: Mapping[str, str] = os.environ, domain: int | None = None
    ) -> Environment:
        """Read the settings from environment variables, as rcl does.

        Parameters
        ----------
        variables : mapping of str to str
            Environment variables of the process.
        domain : int or None
            Domain in place of ``ROS_DOMAIN_ID``.

        Raises
        ------
        WorldError
            The domain is not valid.
        """
        if domain is None:
            # Limit the number of digits, because `int` is slow for long texts.
            text = variables.get("ROS_DOMAIN_ID", "").strip() or "0"
            if not re.fullmatch("[0-9]{1,9}", text):
                raise WorldError(
                    f'ROS_DOMAIN_ID: expected 0 … {LAST_DOMAIN}, found "{shown(text)}"'
                )

            domain = int(text)

        if not 0 <= domain <= LAST_DOMAIN:
            raise WorldError(
                f"ROS 2 domain: expected 0 … {LAST_DOMAIN}, found {domain}"
            )

        # rcl of Jazzy ignores both newer variables if this older one is 1. rcl of Kilted
        # no longer reads it, but it must not open this computer to the network.
        if variables.get("ROS_LOCALHOST_ONLY") == "1":
            return cls(domain, "LOCALHOST")
        reach = variables.get("ROS_AUTOMATIC_DISCOVERY_RANGE") or "SUBNET"
        # Like rcl, treat an unknown range as LOCALHOST; `unserved` warns about it.
        if reach not in RANGES:
            reach = "LOCALHOST"
        peers = tuple(
            p for p in re.split(r"[;,\s]+", variables.get("ROS_STATIC_PEERS", "")) if p
        )
        return cls(domain, reach, peers)

    def announce_to(self, peers: Iterable[str]) -> list[Address]:
        """Return the addresses at which a participant announces itself.

        Parameters
        ----------
        peers : iterable of str
            Addresses of the static peers, in numbers.

        Returns
        -------
        list of Address
            Multicast group first, then ports of `PARTICIPANTS` participants on each
            host. It is empty if discovery is off.
        """
        # Without announcements no peer can find this participant.
        if self.reach == "OFF":
            return []
        # Some systems have no multicast on the loopback interface, so its ports are
        # probed.
        hosts = [LOOPBACK] if self.reach == "LOCALHOST" else []
        hosts += [host for host in peers if host not in hosts]
        return [
            (GROUP, discovery_port(self.domain)),
            *(
                (host, unicast_port(self.domain, index))
                for host in hosts
                for index in range(PARTICIPANTS)
            ),
        ]

    @staticmethod
    def unserved(variables: Mapping[str, str] = os.environ) -> list[str]:
        """Return warnings about settings that are ignored, wrong, or hide all topics.

        Settings of other programs also count, because they usually have the same
        variables as the simulator.

        Parameters
        ----------
        variables : mapping of str to str
            Environment variables of the process.
        """
        found = [
            f"{name} names {what}, which is ignored"
            for name, what in _UNSERVED.items()
            if variables.get(name)
        ]
        reach = variables.get("ROS_AUTOMATIC_DISCOVERY_RANGE") or "LOCALHOST"
        if variables.get("ROS_LOCALHOST_ONLY") == "1":
            if reach != "LOCALHOST" or variables.get("ROS_STATIC_PEERS"):
                found.append(
                    "ROS_LOCALHOST_ONLY=1: ROS_AUTOMATIC_DISCOVERY_RANGE and "
                    "ROS_STATIC_PEERS are ignored, as in ROS 2 up to Jazzy; later "
                    "distributions ignore ROS_LOCALHOST_ONLY instead"
                )
        elif reach not in RANGES:
            found.append(
                f"ROS_AUTOMATIC_DISCOVERY_RANGE: expected one of {', '.join(RANGES)}, "
                f'found "{shown(reach)}": using LOCALHOST, as in ROS 2'
            )
        elif reach == "OFF":
            found.append(
                "ROS_AUTOMATIC_DISCOVERY_RANGE=OFF: no program finds the nodes, topics "
                "and services of the simulator; use LOCALHOST or SUBNET for both"
            )

        transports = variables.get("FASTDDS_BUILTIN_TRANSPORTS", "").strip()
        if transports and transports.partition("?")[0].upper() not in _UDP_TRANSPORTS:
            found.append(
                f"FASTDDS_BUILTIN_TRANSPORTS={shown(transports)}: programs with this value "
                "and Fast DDS find no topic or service of the simulator, which uses UDP "
                "over IPv4; use DEFAULT or UDPv4 for them"
            )

        if variables.get("ROS_SECURITY_ENABLE", "").strip().lower() == "true":
            found.append(
                "ROS_SECURITY_ENABLE: security enclaves are not supported; "
                "only programs without security can connect"
            )

        return found
