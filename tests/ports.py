"""Free TCP ports on loopback for tests that start servers."""

from __future__ import annotations

import itertools
import os
import socket

_counter = itertools.count(os.getpid() % 97)
SPAN = 1500
# Browsers refuse to connect to this port.
UNSAFE = 10080


def free_port(count: int = 2) -> int:
    """Return the first of `count` adjacent free ports.

    Each worker of a parallel run has its own range below the system's ephemeral ports,
    so that two tests never race for a port.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw") or 0)
    for k in itertools.islice(_counter, 300):
        port = 10_000 + worker % 14 * SPAN + k * 10 % SPAN
        if port <= UNSAFE < port + count:
            continue
        try:
            for i in range(count):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", port + i))
        except OSError:
            continue

        return port

    raise RuntimeError("no free ports")
