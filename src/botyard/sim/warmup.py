"""Compiling all kernels, or loading them from the cache.

``python -m botyard.sim.warmup`` compiles those for bodies with mass into the cache and ends, at the latest when its standard input does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Final

import numpy as np

from botyard.compiling import watch
from botyard.devices.ranging import warm_up as warm_up_ranging
from botyard.engine.build import build_grid
from botyard.engine.kernels.jit import CACHE_FOLDER, CACHES
from botyard.engine.kernels.masses import move_masses
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

_ONE_AT_A_TIME: Final = threading.Lock()


def warm_up(before_sensors: Callable[[], object] = lambda: None, *, masses: bool = True) -> None:
    """Compile all kernels, or load them from the cache, by running a small world.

    Parameters
    ----------
    before_sensors : callable
        Called before range sensors are used, for a caller who has them compiled elsewhere at the same time.
    masses : bool
        Also those for bodies with mass.
    """
    sim = Simulation()
    robot = sim.add_robot("p3dx", pose=Pose(2.0, 2.0, 0.0))
    sim.add_robot("box", pose=Pose(3.0, 1.0, 0.0))
    sim.step()
    sim.free_place(robot.spec, Pose(1.0, 1.0, 0.0))
    if masses:
        _move_a_mass()
    before_sensors()
    robot.laser.read()
    sim.replace_scene(Scene(segments=np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 0.0, 4.0, 4.0]])))


def warm_up_sensors_and_maps() -> None:
    """The part of `warm_up` that another process can do at the same time."""
    warm_up_ranging()
    build_grid(Scene(segments=np.array([[0.0, 0.0, 4.0, 0.0]])))


def _move_a_mass() -> None:
    sim = Simulation()
    sim.add_robot("box", "box", pose=Pose(3.0, 1.0, 0.0))
    sim.set_dynamics("box", DynamicsSpec(mass=9.0))
    sim.step()


def has_mass_kernels() -> bool:
    """Whether the kernels for bodies with mass are in this process, so that the first step with one takes no longer than others."""
    return bool(getattr(move_masses, "overloads", True))  # without the compiler they are plain functions


def get_mass_kernels() -> None:
    """Have the kernels for bodies with mass compiled, or load them: half a minute, or half a second. For a thread beside the steps.

    Another process compiles, if there is a cache that the two share: here, each step would have to wait for the interpreter.
    """
    with _ONE_AT_A_TIME:
        if has_mass_kernels():
            return
        if CACHES and not any(CACHE_FOLDER.rglob("masses.move_masses-*.nbc")):
            with contextlib.suppress(OSError), watch.elsewhere():
                _compile_elsewhere()  # should it fail, they are compiled here after all
        _move_a_mass()


def _compile_elsewhere() -> None:
    command = [sys.executable, "-m", "botyard.sim.warmup"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as helper:
        helper.wait()


def _help() -> None:
    """The other process."""

    def end_with_starter() -> None:
        sys.stdin.buffer.read()  # until the other end of the pipe is closed, which a process does however it ends
        os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both; the starter decides
    threading.Thread(target=end_with_starter, daemon=True).start()
    _move_a_mass()
    sys.stdout.flush()
    os._exit(0)  # the thread still reads, and closing a stream that is being read would wait for it


__all__ = ["get_mass_kernels", "has_mass_kernels", "warm_up", "warm_up_sensors_and_maps"]

if __name__ == "__main__":
    _help()
