from __future__ import annotations

import platform
import sys
import time

from bench import (
    ambf,
    calibration,
    changes,
    clients,
    history,
    light,
    longpage,
    masses,
    neighbours,
    page,
    peers,
    rays,
    record,
    reliability,
    render,
    replay,
    ros,
    ros2,
    rosbridge,
    rtps,
    scaling,
    scenes,
    spans,
    startup,
    study,
    threads,
    traffic,
    worlds,
    worlds_batch,
)

ALL = {
    "rays": rays.main,
    "spans": spans.main,
    "scenes": scenes.main,
    "changes": changes.main,
    "peers": peers.main,
    "clients": clients.main,
    "light": light.main,
    "page": page.main,
    "longpage": longpage.main,
    "ros": ros.main,
    "ros2": ros2.main,
    "rosbridge": rosbridge.main,
    "rtps": rtps.main,
    "ambf": ambf.main,
    "masses": masses.main,
    "neighbours": neighbours.main,
    "history": history.main,
    "startup": startup.main,
    "record": record.main,
    "reliability": reliability.main,
    "render": render.main,
    "replay": replay.main,
    "study": study.main,
    "calibration": calibration.main,
    "threads": threads.main,
    "traffic": traffic.main,
    "worlds": worlds.main,
    "worlds_batch": worlds_batch.main,
    "scaling": scaling.main,
}


def main() -> None:
    import numba
    import numpy

    # Options behind the last benchmark belong to that benchmark.
    first_option = next(
        (k for k, text in enumerate(sys.argv) if k and text.startswith("-")),
        len(sys.argv),
    )
    names, options = sys.argv[1:first_option], sys.argv[first_option:]
    if options and len(names) != 1:
        sys.exit("options need one benchmark: python -m bench NAME OPTION …")
    # Leave "scaling" out by default: it takes minutes and rewrites a picture of the documentation.
    chosen = names or [name for name in ALL if name != "scaling"]
    print(
        f"Python {platform.python_version()}, NumPy {numpy.__version__}, Numba "
        f"{numba.__version__}, {platform.machine()}"
    )
    for name in chosen:
        if name not in ALL:
            sys.exit(f'unknown benchmark "{name}"; the benchmarks are {", ".join(ALL)}')
        print(f"\n== {name}")
        began = time.perf_counter()
        sys.argv = [f"python -m bench {name}", *options]
        ALL[name]()
        print(f"   ({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
