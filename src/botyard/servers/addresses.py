"""Network addresses, as far as servers and the command line must tell them apart."""

from __future__ import annotations

import ipaddress


def is_loopback(address: str) -> bool:
    """Whether an address, or ``localhost``, is this machine's own."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"
