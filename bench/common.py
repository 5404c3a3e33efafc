from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, float]
"""Figures of one measurement by name."""
SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


def judged(value: float, goal: float | None, *, least: bool = False) -> str:
    """Return a goal in brackets, and whether a figure meets it.

    Parameters
    ----------
    value : float
        Figure, in the unit of the goal.
    goal : float or None
        Most that it may be; None gives an empty text.
    least : bool
        Whether the goal is the least that it may be.
    """
    if goal is None:
        return ""
    is_met = value >= goal if least else value <= goal
    return f"(goal: {goal:g}, {'met' if is_met else 'missed'})"


def cpu(
    run: Callable[[], object],
    rounds: int = 5,
    clock: Callable[[], float] = time.process_time,
    *,
    warm: bool = True,
) -> float:
    """Return the CPU seconds of a call, the least of several rounds after a warm-up."""
    if warm:
        run()
    best = float("inf")
    for _ in range(rounds):
        begin = clock()
        run()
        best = min(best, clock() - begin)

    return best


def wall(run: Callable[[], object], rounds: int = 5) -> float:
    """Return the wall seconds of a call, the least of several rounds: for runs on several
    threads.
    """
    return cpu(run, rounds, time.perf_counter)


def apart(module: str, call: str) -> Any:
    """Return the result of a call of a module's function, in a process of its own."""
    code = f"import json; from {module} import *; print(json.dumps({call}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def free_port(count: int) -> int:
    """Return the first of some free ports in a row."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            first = 0
            for n in range(count):
                probe = stack.enter_context(socket.socket())
                probe.bind(("127.0.0.1", first + n if first else 0))
                first = first or probe.getsockname()[1]
            return first


def map_path() -> tuple[str, str]:
    """Return the path and the name of the map of the recorded figures, columbia.map, where the
    shared data is; otherwise of the shipped warehouse.
    """
    columbia = SHARED / "data/maps/columbia.map"
    return (
        (str(columbia), "columbia.map")
        if columbia.exists()
        else ("warehouse", "shipped warehouse (no columbia.map here)")
    )


def reference_loop() -> float:
    """Return the CPU seconds of a fixed NumPy workload, as a unit for comparisons between
    machines.
    """
    a = np.random.default_rng(1).random((400, 400))
    return cpu(lambda: [a @ a for _ in range(10)], 7)


def memory() -> float:
    """Return the peak resident memory of this process, MB (Linux; NaN on other systems).
    `ru_maxrss` would count the memory of the parent process before the fork.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")

    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
