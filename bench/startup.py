"""Import time, first step cold and cached, start-up to "ready"; each in a process of its own, wall seconds, least of three.

Python keeps the byte code of modules, as it does for a user, whatever the environment says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from bench.common import cpu, map_path
from bench.reference import Yardstick
from botyard.formats.registry import load_scene

BYTE_CODE = tempfile.TemporaryDirectory(prefix="bench-startup-")
STEP = "import botyard; s = botyard.Simulation.load('office'); r = s.add_robot('p3dx'); s.step(); r.laser.read()"
SERVE = [
    "-m",
    "botyard",
    "-m",
    "office",
    "-r",
    "p3dx",
    "-r",
    "amigo",
    "--noninteractive",
    "--no-crash-restart",
    "-p",
    "21401",
]


FLOORS = {"cached": 1.5, "cold": 10.0}
"""To "ready", s, on the machine of the records."""


def timed(args: list[str], cache: str | None = None, until: str | None = None) -> float:
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {}), "PYTHONPYCACHEPREFIX": BYTE_CODE.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *args], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    if until is None:
        process.wait()
    else:
        for line in process.stdout:
            if until in line:
                break
    seconds = time.perf_counter() - begin
    process.terminate()
    process.wait()
    return seconds


def main() -> None:
    yardstick = Yardstick()
    yardstick.measure()
    timed(["-c", STEP])  # fills the caches
    timed(SERVE, until="ready")
    nothing = min(timed(["-c", "pass"]) for _ in range(3))
    print(f"reference: python -c pass {nothing:.3f} s")
    rows = [
        ("import botyard", lambda: timed(["-c", "import botyard"])),
        ("import numpy, numba", lambda: timed(["-c", "import numpy, numba"])),
        ("first step and scan, cached", lambda: timed(["-c", STEP])),
        ('botyard until "ready", cached', lambda: timed(SERVE, until="ready")),
    ]
    for name, run in rows:
        best = min(run() for _ in range(3))
        wanted = f"   floor {yardstick.judge(best, FLOORS['cached'])}" if "ready" in name else ""
        print(f"   {name:32} {best:6.2f} s   {best / nothing:6.1f} x reference{wanted}")
    path, name = map_path()
    seconds, plain = cpu(lambda: load_scene(path), 3), cpu(lambda: load_scene("office"), 3)
    print(f"   reading {name}: {seconds:.3f} CPU s, {seconds / plain:.0f} x the shipped office")
    with tempfile.TemporaryDirectory() as folder:
        cold = timed(["-c", STEP], folder)
    print(f"   first step and scan, cold cache    {cold:5.1f} s   {cold / nothing:6.0f} x reference")
    with tempfile.TemporaryDirectory() as folder:
        cold = timed(SERVE, folder, until="ready")
    yardstick.measure()
    wanted = yardstick.judge(cold, FLOORS["cold"])
    print(f'   botyard until "ready", cold cache {cold:5.1f} s   {cold / nothing:6.0f} x reference   floor {wanted}')
    print(f"   {yardstick}")
