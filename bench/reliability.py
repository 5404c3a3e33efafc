"""Service to honest clients under hostile load, in long runs (soak tests), and with
injected faults.

Each part starts the simulator as a user does and observes it from outside: gaps between
reports, memory, threads, sockets and files by /proc, its log. ``python -m bench
reliability`` runs short forms, ``python -m bench.reliability PART [AMOUNT]`` one of
them in full: hostile (packets), viewer, ros, peers (seconds of each attack), soak
(minutes), day (hours of simulated time), maps (points of the map), uploads (rounds),
pictures (seconds of each), faults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.common import reference_loop
from bench.fault_injection import faults
from bench.floods import crowd, factory, factory1000, poses, reconfigure
from bench.heavy_requests import maps, pictures, uploads
from bench.peer_attacks import peers, ros, viewer
from bench.random_packets import hostile
from bench.soak import day, soak


def main() -> None:
    print(f"reference: NumPy workload {reference_loop():.3f} CPU s")
    hostile()
    viewer(5.0)
    ros(5.0)
    peers()
    soak()
    day()
    maps()
    uploads()
    pictures(5.0)
    faults()
    for flood in (reconfigure, poses, factory, crowd):
        flood(5.0)
    factory1000(15.0)


if __name__ == "__main__":
    parts: dict[str, Callable[..., None]] = {
        "hostile": hostile,
        "viewer": viewer,
        "ros": ros,
        "peers": peers,
        "soak": soak,
        "day": day,
        "maps": maps,
        "uploads": uploads,
        "pictures": pictures,
        "faults": faults,
        "reconfigure": reconfigure,
        "poses": poses,
        "factory": factory,
        "factory1000": factory1000,
        "crowd": crowd,
    }
    parts[sys.argv[1]](
        *[
            float(a)
            if sys.argv[1] not in ("hostile", "maps", "uploads")
            else int(float(a))
            for a in sys.argv[2:]
        ]
    )
