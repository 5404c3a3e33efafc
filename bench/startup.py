"""Cost of starting and of idling: import, first step, "ready", with kernels of the
library, of the user's cache, and of neither; resident memory of the simulator and of
the process that looks after it. Each in a process of its own; wall seconds, least of
three.

Python keeps the byte code of modules, whatever the environment says: pip writes it when
it installs (other installers do not: that is a row of its own). The first start ever
reads all files from the disk: they are dropped from the page cache before.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import botyard
from bench.common import cpu, free_port, judged, map_path
from bench.reference import Yardstick
from botyard.engine.kernels.jit import PACKAGE
from botyard.formats.registry import load_scene
from botyard.native.shipped import is_shipped, library

BYTE_CODE = tempfile.TemporaryDirectory(prefix="bench-startup-")
STEP = "import botyard; s = botyard.Simulation.load('office'); r = s.add_robot('p3dx'); s.step()"
SERVE = ["-m", "botyard", "-m", "office", "-r", "p3dx", "--no-gui"]
MANY = {1000: 1.2, 10_000: 5.0}
"""Robots of a run without a map, and the CPU seconds until it is "ready"."""
ADDED = {100_000: 5.0}
"""Robots of one call of `add_robots`, and its CPU seconds."""
ADD = """
import time, botyard
sim = botyard.Simulation(botyard.Scene())
poses = [(2.0 * (k % 400), 2.0 * (k // 400), 0.0) for k in range({count})]
begin = time.process_time()
sim.add_robots("p3dx", poses)
print(time.process_time() - begin)
"""
WANTED = {
    "import and first step": 0.6,
    "ready": 0.8,
    "cpu": 0.5,
    "cold": 1.5,
    "simulator": 70.0,
    "supervisor": 15.0,
}
"""Seconds, and MB of resident memory, on a quiet machine."""
AMRISIM = "AMRISim: 0.5 … 2.3 s, 69 … 101 MB (measured beside the records of Stage)"


def environment(
    mode: str, cache: str | None = None, byte_code: str | None = None
) -> dict[str, str]:
    """Return the environment of a process with kernels of a mode
    (`botyard.native.packages.mode`).
    """
    found = {
        **os.environ,
        "BOTYARD_KERNELS": mode,
        "PYTHONPYCACHEPREFIX": byte_code or BYTE_CODE.name,
    }
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**found, **({"NUMBA_CACHE_DIR": cache} if cache else {})}


def timed(args: list[str], env: dict[str, str]) -> float:
    """Return the seconds from the start to the end of a program."""
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, *args],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - begin


def resident(pid: int) -> float:
    """Return the resident memory of a process, MB."""
    return (
        int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])
        / 1024
    )


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks) / 1e9


def served(env: dict[str, str], *options: str) -> tuple[float, float, float, float]:
    """Return the seconds until "ready", by the clock and of CPU time, and the MB of the simulator
    and of its supervisor half a second later.
    """
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *(options or SERVE), "-p", str(free_port(2))],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b"ready" in line:
                break
        else:
            raise RuntimeError('the simulator ended before it was "ready"')

        seconds = time.perf_counter() - begin
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        worker = int(children.read_text().split()[0])
        used = cpu_of(process.pid) + cpu_of(worker)
        time.sleep(0.5)
        found = seconds, used, resident(worker), resident(process.pid)
        process.terminate()

    return found


ROUNDS = 3


FOLDERS = {
    Path(BYTE_CODE.name),
    Path(sys.prefix),
    Path(sys.base_prefix, "lib"),
    Path(botyard.__file__).parents[1],
}
"""Files of Python, botyard and all packages."""


def evict(folders: Iterable[Path]) -> None:
    """Drop files from the system's page cache, as after the machine has been started
    (Linux).
    """
    for path in (path for folder in folders for path in folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def row(name: str, value: float, unit: str = "s", wanted: float | None = None) -> None:
    """Print one figure."""
    print(f"   {name:44} {value:7.2f} {unit}   {judged(value, wanted)}".rstrip())


def warm(mode: str, aim: Mapping[str, float]) -> None:
    """Print figures of starts with all caches filled."""
    env = environment(mode)
    timed(["-c", STEP], env)  # fills the caches
    served(env)
    row(
        "import botyard",
        min(timed(["-c", "import botyard"], env) for _ in range(ROUNDS)),
    )
    first = min(timed(["-c", STEP], env) for _ in range(ROUNDS))
    row("import and first step", first, wanted=aim.get("import and first step"))
    ready, used, simulator, supervisor = (
        min(column)
        for column in zip(*(served(env) for _ in range(ROUNDS)), strict=True)
    )
    row('until "ready"', ready, wanted=aim.get("ready"))
    row('CPU time until "ready"', used, wanted=aim.get("cpu"))
    row("resident memory of the simulator", simulator, "MB", aim.get("simulator"))
    row("resident memory of its supervisor", supervisor, "MB", aim.get("supervisor"))


def many() -> None:
    """Print what starts with many robots cost."""
    env = environment("auto")
    for count, goal in MANY.items():
        options = ["-m", "botyard", "--nomap", "--no-gui", *(["-r", "p3dx"] * count)]
        row(
            f'CPU time until "ready", {count} robots',
            served(env, *options)[1],
            wanted=goal,
        )
    for count, goal in ADDED.items():
        done = subprocess.run(
            [sys.executable, "-c", ADD.format(count=count)],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        row(f"CPU time of add_robots, {count} robots", float(done.stdout), wanted=goal)


def cold(mode: str, aim: Mapping[str, float]) -> None:
    """Print figures of first starts, with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        evict(FOLDERS)
        row(
            "first start ever: files on disk, no cache",
            served(environment(mode, folder))[0],
            wanted=aim.get("cold"),
        )

    with tempfile.TemporaryDirectory() as folder:
        row(
            "the same, installed without byte code",
            served(environment(mode, folder, f"{folder}/byte-code"))[0],
        )


def main() -> None:
    """Print all figures."""
    yardstick = Yardstick()
    yardstick.measure()
    print(
        "reference: python -c pass "
        f"{min(timed(['-c', 'pass'], environment('auto')) for _ in range(3)):.3f} s; {AMRISIM}"
    )
    shipped = is_shipped(PACKAGE, whole=False)
    print(
        "kernels of the library: "
        f"{library().target if shipped else 'none; see python -m tools.kernels'}"
    )
    for mode in ["native"] * shipped + ["jit"]:
        aim = WANTED if mode == "native" else {}
        print(
            "kernels of the library"
            if mode == "native"
            else "kernels of the user's cache"
        )
        warm(mode, aim)
        cold(mode, aim)

    many()
    path, name = map_path()
    seconds, plain = (
        cpu(lambda: load_scene(path), 3),
        cpu(lambda: load_scene("office"), 3),
    )
    print(
        f"   reading {name}: {seconds:.3f} CPU s, {seconds / plain:.0f} x the shipped office"
    )
    yardstick.measure()
    print(f"   {yardstick}")
