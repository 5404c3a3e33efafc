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
from pathlib import Path

import botyard
from bench.common import cpu, free_port, map_path
from bench.reference import Yardstick
from botyard.engine.kernels.jit import PACKAGE
from botyard.formats.registry import load_scene
from botyard.native.shipped import is_shipped, library

BYTE_CODE = tempfile.TemporaryDirectory(prefix="bench-startup-")
STEP = "import botyard; s = botyard.Simulation.load('office'); r = s.add_robot('p3dx'); s.step()"
SERVE = ["-m", "botyard", "-m", "office", "-r", "p3dx", "--no-gui"]
WANTED = {
    "import and first step": 0.6,
    "ready": 0.8,
    "cold": 1.5,
    "simulator": 70.0,
    "supervisor": 15.0,
}
"""Seconds, and MB of resident memory, on a quiet machine."""
AMRISIM = "AMRISim: 0.5 … 2.3 s, 69 … 101 MB (measured beside the records of Stage)"


def environment(
    mode: str, cache: str | None = None, byte_code: str | None = None
) -> dict[str, str]:
    """Environment of a process with kernels of a mode (`botyard.native.packages.mode`)."""
    found = {
        **os.environ,
        "BOTYARD_KERNELS": mode,
        "PYTHONPYCACHEPREFIX": byte_code or BYTE_CODE.name,
    }
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**found, **({"NUMBA_CACHE_DIR": cache} if cache else {})}


def timed(args: list[str], env: dict[str, str]) -> float:
    """Seconds from the start to the end of a program."""
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
    """Resident memory of a process, MB."""
    return (
        int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])
        / 1024
    )


def served(env: dict[str, str]) -> tuple[float, float, float]:
    """Seconds until "ready"; MB of the simulator and of its supervisor, half a second
    later.
    """
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *SERVE, "-p", str(free_port(2))],
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
        time.sleep(0.5)
        workers = (
            Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        )
        found = seconds, resident(int(workers[0])), resident(process.pid)
        process.terminate()

    return found


def evict() -> None:
    """Drop the files of Python, botyard and all packages from the system's page cache,
    as after the machine has been started (Linux).
    """
    folders = {
        Path(BYTE_CODE.name),
        Path(sys.prefix),
        Path(sys.base_prefix, "lib"),
        Path(botyard.__file__).parents[1],
    }
    for path in (path for folder in folders for path in folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def row(name: str, value: float, unit: str = "s", wanted: float | None = None) -> None:
    """Print one figure."""
    judged = (
        ""
        if wanted is None
        else f"   {wanted:g} wanted: {'met' if value <= wanted else 'missed'}"
    )
    print(f"   {name:44} {value:7.2f} {unit}{judged}")


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
        env = environment(mode)
        timed(["-c", STEP], env)  # fills the caches
        served(env)
        print(
            "kernels of the library"
            if mode == "native"
            else "kernels of the user's cache"
        )
        row(
            "import botyard",
            min(timed(["-c", "import botyard"], env) for _ in range(3)),
        )
        first = min(timed(["-c", STEP], env) for _ in range(3))
        row("import and first step", first, wanted=aim.get("import and first step"))
        ready, simulator, supervisor = (
            min(column) for column in zip(*(served(env) for _ in range(3)), strict=True)
        )
        row('until "ready"', ready, wanted=aim.get("ready"))
        row("resident memory of the simulator", simulator, "MB", aim.get("simulator"))
        row(
            "resident memory of its supervisor", supervisor, "MB", aim.get("supervisor")
        )
        with tempfile.TemporaryDirectory() as folder:
            evict()
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
