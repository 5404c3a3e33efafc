"""Helpers for network addresses: loopback, and the host name to advertise."""

from __future__ import annotations

import ipaddress
import os
import socket


def is_loopback(address: str) -> bool:
    """Whether an address, or ``localhost``, is this machine's own."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def advertised_host(bound: str) -> str:
    """Host name to advertise to other machines: ROS_HOSTNAME, ROS_IP, else the bound
    address, or this machine's if bound to all.
    """
    named = os.environ.get("ROS_HOSTNAME") or os.environ.get("ROS_IP")
    if named:
        return named
    if bound in ("0.0.0.0", "::", ""):
        return _own_address()
    return bound


def _own_address() -> str:
    """Address of this machine's default route; loopback if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(
                ("192.0.2.1", 9)
            )  # sends nothing: a datagram socket only looks for a route (RFC 5737 address)
        except OSError:
            return "127.0.0.1"

        return str(probe.getsockname()[0])
