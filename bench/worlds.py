"""Reading of worlds: large pictures, grids and scenarios. Wall seconds and memory, each in a
process of its own, compared with reading the bytes alone.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bench.common import apart

SIDE = 4000


def picture(kind: str) -> np.ndarray:
    """Return a picture of 16 million pixels: rooms, or dots, which have many more outlines."""
    rng = np.random.default_rng(1)
    if kind == "dots":
        return np.where(rng.random((SIDE, SIDE)) < 0.02, 0, 254).astype(np.uint8)
    dark = np.kron(rng.random((SIDE // 20, SIDE // 20)) < 0.15, np.ones((20, 20), bool))
    return np.where(dark, 0, 254).astype(np.uint8)


def read(path: str) -> dict[str, Any]:
    """Return the wall seconds and memory to read a file and to build its grid."""
    from botyard.engine.wallgrid import build_grid
    from botyard.formats.registry import load_scene

    # Compile the kernels before the measurement.
    build_grid(load_scene("office"))
    before = _memory()
    begin = time.perf_counter()
    data = Path(path).read_bytes()
    raw = time.perf_counter() - begin
    begin = time.perf_counter()
    scene = load_scene(path, resolution=0.05)
    loaded = time.perf_counter() - begin
    begin = time.perf_counter()
    build_grid(scene)
    grid = time.perf_counter() - begin
    after = _memory()
    return {
        "raw": raw,
        "load": loaded,
        "grid": grid,
        "bytes": len(data),
        "walls": len(scene.segments),
        "memory": after,
        "more": after - before,
    }


def _memory() -> float:
    """Return the peak memory so far, MB, of this process alone. getrusage also counts the memory
    of its parent before the fork.

    getrusage also counts the memory of its parent before the fork.
    """
    (line,) = [
        x
        for x in Path("/proc/self/status").read_text().splitlines()
        if x.startswith("VmHWM")
    ]
    return int(line.split()[1]) / 1024


def robots(path: str) -> dict[str, Any]:
    """Return the wall seconds and memory to read a scenario of many robots."""
    from botyard.sim.simulation import Simulation

    Simulation.load("office").add_robot("p3dx")
    begin = time.perf_counter()
    sim = Simulation.load(path)
    return {"load": time.perf_counter() - begin, "robots": len(sim.robots)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("rooms", "dots"):
            pixels = picture(kind)
            for name in ("png", "pgm"):
                path = Path(folder) / f"{kind}.{name}"
                Image.fromarray(pixels).save(path)
                _print(
                    f"{kind}.{name}, {SIDE} × {SIDE}",
                    apart("bench.worlds", f"read({str(path)!r})"),
                )

            ros = Path(folder) / f"{kind}.yaml"
            ros.write_text(
                f"image: {kind}.pgm\nresolution: 0.05\norigin: [0, 0, 0.3]\n"
            )
            _print(
                f"{kind}.yaml (ROS map)", apart("bench.worlds", f"read({str(ros)!r})")
            )

        cells = np.where(picture("rooms")[:3163, :3163] == 0, 100, 0)
        grid = Path(folder) / "grid.yaml"
        grid.write_text(
            "info:\n  resolution: 0.05\n  width: 3163\n  height: 3163\ndata: ["
            + ", ".join(map(str, cells.ravel().tolist()))
            + "]\n"
        )
        _print(
            "OccupancyGrid, 10⁷ cells as text",
            apart("bench.worlds", f"read({str(grid)!r})"),
        )
        crowd = Path(folder) / "crowd.yaml"
        entries = "".join(
            f"- {{name: r{i}, pose: [{i % 40}, {i // 40}, 0]}}\n" for i in range(1000)
        )
        crowd.write_text(f"botyard: 1\nrobots:\n{entries}")
        row = apart("bench.worlds", f"robots({str(crowd)!r})")
        print(f"   scenario of {row['robots']} robots: {row['load']:.2f} s")


def _print(name: str, row: dict[str, Any]) -> None:
    print(
        f"   {name:34} read {row['load']:5.2f} s "
        f"({row['load'] / max(row['raw'], 1e-4):6.0f} × the raw bytes), grid {row['grid']:5.2f} s, "
        f"{row['walls']:7d} walls, {row['memory']:4.0f} MB in all ({row['more']:+.0f})"
    )
