"""The C kernel that rays per second are compared with: the same walk over the same grid, compiled here where gcc is present."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from botyard.engine.layout import Grid

SOURCE = Path(__file__).with_name("reference.c")
FLAGS = ["-O3", "-march=native", "-shared", "-fPIC"]


def build() -> ctypes.CDLL | None:
    """The compiled kernel; None without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    library = Path(tempfile.mkdtemp()) / "reference.so"
    subprocess.run([gcc, *FLAGS, str(SOURCE), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def caster(
    library: ctypes.CDLL, grid: Grid, poses: np.ndarray, angles: np.ndarray, r_max: float
) -> Callable[[], np.ndarray]:
    """A function that casts all beams from all poses and gives their ranges, m."""
    poses = np.ascontiguousarray(poses, np.float64)
    beams = np.ascontiguousarray(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    out = np.zeros((len(poses), len(angles)))

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return array.ctypes.data_as(ctypes.c_void_p)

    def cast() -> np.ndarray:
        library.cast(
            pointer(poses), len(poses), pointer(beams), len(angles), ctypes.c_double(r_max), ctypes.c_double(grid.x0),
            ctypes.c_double(grid.y0), ctypes.c_double(grid.h), grid.nx, grid.ny, pointer(grid.start), pointer(grid.seg),
            pointer(grid.clear), pointer(out),
        )  # fmt: skip
        return out

    return cast
