"""Reference for rays per second: a C kernel with the same walk over the same grid,
compiled where gcc is present.

It was also measured on the machine on which Stage and AMRISim were: by the ratio of its
speeds their figures, and the limits that were set by them, are scaled to this machine.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.common import cpu, map_path
from botyard.engine.layout import Grid
from botyard.engine.wallgrid import build_grid
from botyard.formats.registry import load_scene

SOURCE = Path(__file__).with_name("reference.c")
FLAGS = ["-O3", "-march=native", "-shared", "-fPIC"]
RECORDED = 6.7
"""M rays per CPU s of the kernel on the machine of the records, columbia.map, 8 m."""


def build() -> ctypes.CDLL | None:
    """Return the compiled kernel; None without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    library = Path(tempfile.mkdtemp()) / "reference.so"
    subprocess.run([gcc, *FLAGS, str(SOURCE), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def caster(
    library: ctypes.CDLL,
    grid: Grid,
    poses: np.ndarray,
    angles: np.ndarray,
    r_max: float,
) -> Callable[[], np.ndarray]:
    """Return a function that casts all beams from all poses and returns their ranges, m."""
    poses = np.ascontiguousarray(poses, np.float64)
    beams = np.ascontiguousarray(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    out = np.zeros((len(poses), len(angles)))

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return array.ctypes.data_as(ctypes.c_void_p)

    def cast() -> np.ndarray:
        library.cast(
            pointer(poses),
            len(poses),
            pointer(beams),
            len(angles),
            ctypes.c_double(r_max),
            ctypes.c_double(grid.x0),
            ctypes.c_double(grid.y0),
            ctypes.c_double(grid.h),
            grid.nx,
            grid.ny,
            pointer(grid.start),
            pointer(grid.seg),
            pointer(grid.clear),
            pointer(out),
        )
        return out

    return cast


class Yardstick:
    """Speed of this machine against the machine of the recorded figures, by the C kernel;
    measured repeatedly, as the load of machines changes.
    """

    def __init__(self) -> None:
        self.speeds: list[float] = []
        """M rays per CPU s of the kernel, of each measurement."""
        self._cast: Callable[[], np.ndarray] | None = None
        library = build()
        if library is not None and map_path()[1].startswith("columbia"):
            grid = build_grid(load_scene(map_path()[0]))
            self._poses = free_poses(grid)
            self._cast = caster(
                library, grid, self._poses, np.linspace(-np.pi / 2, np.pi / 2, 181), 8.0
            )

    def measure(self) -> None:
        """Measure the kernel now, if gcc and columbia.map are there."""
        if self._cast is not None:
            self.speeds.append(len(self._poses) * 181 / cpu(self._cast, 5) / 1e6)

    @property
    def scale(self) -> float:
        """Return the factor from times of the other machine to times here; 1 if it is not
        known.
        """
        return RECORDED / self.speeds[-1] if self.speeds else 1.0

    def judge(self, seconds: float, floor: float) -> str:
        """Return a limit that was set in seconds of the other machine, scaled to this one, and
        whether a time measured here meets it.
        """
        return f"{floor * self.scale:7.4f} {'met' if seconds <= floor * self.scale else 'missed'}"

    def __str__(self) -> str:
        if not self.speeds:
            return "not scaled: needs gcc and columbia.map"
        low, high = min(self.speeds), max(self.speeds)
        return (
            f"scaled by the C kernel: {low:.2f} … {high:.2f} M rays per CPU s "
            f"here, {RECORDED} where the others were measured"
        )


def free_poses(grid: Grid) -> np.ndarray:
    """Return 1000 poses with 0.3 m of free space around them."""
    rng = np.random.default_rng(1)
    poses: list[tuple[float, float, float]] = []
    while len(poses) < 1000:
        x, y = rng.uniform(0, grid.nx), rng.uniform(0, grid.ny)
        if grid.clear[:, int(y), int(x)].min() > 4:
            poses.append(
                (grid.x0 + x * grid.h, grid.y0 + y * grid.h, rng.uniform(-np.pi, np.pi))
            )

    return np.array(poses)
