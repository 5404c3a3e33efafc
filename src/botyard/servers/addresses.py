"""Helpers for network addresses: loopback, and the host name to advertise."""

from __future__ import annotations

import ipaddress
import os
import socket


def is_loopback(address: str) -> bool:
    """Return whether a host name or address is a loopback address.

    Parameters
    ----------
    address : str
        IPv4 or IPv6 address, also in brackets, or a host name. The only name regarded as loopback
        is ``localhost``; other names are not resolved.
    """
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def advertised_host(bound: str) -> str:
    """Return the host name to advertise to other machines.

    Parameters
    ----------
    bound : str
        Address that the server listens on.

    Returns
    -------
    str
        ROS_HOSTNAME or ROS_IP; otherwise the bound address, or this machine's address
        if bound to all interfaces.
    """
    named = os.environ.get("ROS_HOSTNAME") or os.environ.get("ROS_IP")
    if named:
        return named
    if bound in ("0.0.0.0", "::", ""):
        return _own_address()
    return bound


def _own_address() -> str:
    """Return the address of this machine's default route; loopback if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # `connect` of a datagram socket sends nothing; it only looks up the route.
            # 192.0.2.1 is an address for documentation (RFC 5737).
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"

        return str(probe.getsockname()[0])
