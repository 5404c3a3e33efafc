"""Free TCP ports on loopback for tests that start servers."""

from __future__ import annotations

import itertools
import os
import socket

_counter = itertools.count(os.getpid() % 97)
SPAN = 1500
UNSAFE = 10080  # browsers refuse to open it


def free_port(count: int = 2) -> int:
    """The first of `count` neighbouring free ports.

    Each worker of a parallel run has a range of its own, below the ports that the
    system gives out by itself, so that two tests never race for one.
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
