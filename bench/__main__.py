from __future__ import annotations

import platform
import sys
import time

from bench import clients, peers, rays, scenes, startup, steps

ALL = {
    "rays": rays.main,
    "scenes": scenes.main,
    "peers": peers.main,
    "clients": clients.main,
    "startup": startup.main,
    "steps": steps.main,
}


def main() -> None:
    import numba
    import numpy

    chosen = sys.argv[1:] or list(ALL)
    print(
        f"Python {platform.python_version()}, NumPy {numpy.__version__}, Numba {numba.__version__}, {platform.machine()}"
    )
    for name in chosen:
        if name not in ALL:
            sys.exit(f"unknown benchmark {name}; there are {', '.join(ALL)}")
        print(f"\n== {name}")
        began = time.perf_counter()
        ALL[name]()
        print(f"   ({time.perf_counter() - began:.0f} s)", flush=True)


main()
