"""Scaling of the cost with the number of robots, rays per scan, points of the map and
clients. Tables, and a picture of them.

Each point is a process of its own, one thread, seed 1. Values that grow linearly are
divided by the number that they grow with, so that a bend shows. The picture needs
matplotlib (the extra `plots`) and goes to docs/explanation/scaling.svg.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench import clients
from bench.common import Row, apart, cpu, map_path, memory
from bench.rays import GHOST, scene_with_lasers
from botyard.engine.wallgrid import build_grid
from botyard.formats.registry import load_scene
from botyard.model.scene import Scene

PICTURE = Path(__file__).resolve().parent.parent / "docs/explanation/scaling.svg"
ROBOTS = {
    "none": (1, 10, 100, 1000, 10_000, 100_000),
    "sonar": (1, 10, 100, 1000, 10_000),
    "laser": (1, 10, 100, 1000, 10_000),
}
RAYS = (1, 4, 16, 64, 181, 361, 721, 1440)
POINTS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CLIENTS = (1, 10, 100, 500, 1000, 2000)
RESOLUTION = 0.02


def each(call: str, numbers: Sequence[int], line: Callable[[Row], str]) -> list[Row]:
    """Return the results of a function of this file for each number; print each when it is
    ready.
    """
    rows = []
    for n in numbers:
        rows.append(apart("bench.scaling", f"{call}({n})"))
        print(line(rows[-1]), flush=True)

    return rows


def scans(scene: Scene, rays: int, r_max: float, n: int = 300) -> float:
    """Return the CPU seconds of one ray: `n` robots, each with a laser that sees only the map."""
    engine, devices = scene_with_lasers(
        GHOST, r_max, scene=scene, scans=n, rays=rays, noise=0.005
    )
    return cpu(lambda: devices.sense(engine), 7) / (n * rays)


def by_rays(rays: int) -> Row:
    """Measure one number of rays per scan, in the map of the recorded figures."""
    return {"at": rays, "cost": scans(load_scene(map_path()[0]), rays, 8.0)}


def wall_points(n: int) -> Scene:
    """Return a map of `n` lattice points: walls of 2 … 8 m along the axes, as dense as in an
    office.
    """
    rng = np.random.default_rng(1)
    length = rng.integers(100, 400, 2 + n // 200)
    length = length[: int(np.searchsorted(np.cumsum(length), n)) + 1]
    # Side of the square in lattice steps.
    side = max(200, math.ceil(math.sqrt(n * 30)))
    at = rng.integers(0, side, (len(length), 2))
    upright = rng.random(len(length)) < 0.5
    along = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    points = np.repeat(at, length, axis=0)
    points[np.arange(len(along)), np.repeat(upright, length).astype(int)] += along
    return Scene(points=points[:n] * RESOLUTION, resolution=RESOLUTION)


def by_points(n: int) -> Row:
    """Measure one size of map: the time to build it, and rays in it."""
    before = memory()
    scene = wall_points(n)
    # Compile the kernels before the measurement.
    build_grid(wall_points(100))
    began = time.process_time()
    grid = build_grid(scene)
    built = time.process_time() - began
    size = sum(a.nbytes for a in grid if isinstance(a, np.ndarray)) / 1e6
    peak = memory() - before
    return {
        "at": n,
        "build": built,
        "grid": size,
        "peak": peak,
        "cost": scans(scene, 181, 8.0),
    }


def by_clients(n: int) -> Row:
    """Measure one number of clients."""
    seen = clients.measure(clients.Load(n, math.inf), clients.PORT)
    return {
        "at": n,
        "cost": seen.cpu / max(seen.ratio, 1e-9),
        "ratio": seen.ratio,
        "ready": seen.ready,
        "memory": seen.memory,
        "gap": seen.longest,
    }


def draw(
    robots: dict[str, list[Row]], rays: list[Row], points: list[Row], served: list[Row]
) -> None:
    """Draw the curves of all results."""
    try:
        import matplotlib
    except ImportError:
        print('   no picture: pip install "botyard[plots]"')
        return

    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = (
        # A fixed salt gives the same file for the same figures.
        "botyard"
    )
    from matplotlib import pyplot

    figure, ((a, b), (c, d)) = pyplot.subplots(
        2, 2, figsize=(10, 7), layout="constrained"
    )
    for sensor, rows in robots.items():
        a.loglog(
            [r["robots"] for r in rows],
            [r["cpu"] / 10 / r["robots"] * 1e6 for r in rows],
            "o-",
            label=sensor,
        )

    a.set(
        title="Robots (arena, 4 m² each)",
        xlabel="robots",
        ylabel="µs for a robot and step",
    )
    a.legend(title="sensor")
    b.semilogx([r["at"] for r in rays], [r["cost"] * 1e9 for r in rays], "o-")
    b.set(
        title="Rays per scan (8 m)",
        xlabel="rays",
        ylabel="ns for a ray",
        ylim=(0, None),
    )
    c.loglog(
        [r["at"] for r in points],
        [r["build"] for r in points],
        "o-",
        label="build, CPU s",
    )
    c.loglog(
        [r["at"] for r in points],
        [r["grid"] / 1e3 for r in points],
        "o-",
        label="grid, GB",
    )
    c.loglog(
        [r["at"] for r in points],
        [r["cost"] * 1e6 for r in points],
        "o-",
        label="a ray, µs",
    )
    c.set(title="Points of the map", xlabel="points")
    c.legend()
    d.semilogx(
        [r["at"] for r in served], [r["cost"] / r["at"] * 1e3 for r in served], "o-"
    )
    d.set(
        title="Clients (laser and sonar, 10 Hz)",
        xlabel="clients",
        ylabel="ms of CPU for a client and simulated s",
        ylim=(0, None),
    )
    for axes in (a, b, c, d):
        axes.grid(alpha=0.3)
    figure.savefig(PICTURE, metadata={"Date": None})
    print(f"   picture: {PICTURE}")


def main() -> None:
    print(
        "   arena, 4 m² a robot; sonar: 16 beams, 5 m; laser: 181 rays, 8 m; "
        "steps of 0.1 s; noise, odometry errors, snapshots"
    )
    print("   sensor   robots   CPU s/sim s   µs a robot and step   x real time     MB")
    robots: dict[str, list[Row]] = {}
    for sensor, numbers in ROBOTS.items():
        robots[sensor] = []
        for n in numbers:
            seconds = (
                min(20.0, max(1.0, 3000.0 / n))
                if sensor == "none"
                else min(10.0, max(0.3, 1000.0 / n))
            )
            row = apart(
                "bench.scenes",
                f"measure('arena', {sensor!r}, {n}, {round(seconds, 1)})",
            )
            robots[sensor].append(row)
            print(
                f"   {sensor:6} {n:8}   {row['cpu']:11.5f}   "
                f"{row['cpu'] / 10 / n * 1e6:19.2f}   {1 / row['cpu']:11.0f}"
                f"   {row['memory']:4.0f}",
                flush=True,
            )

    print(
        f"\n   {map_path()[1]}, 300 robots, 180°, 8 m, only the map\n   rays a scan   ns a ray"
    )
    rays = each("by_rays", RAYS, lambda r: f"   {r['at']:11}   {r['cost'] * 1e9:8.0f}")
    print(
        f"\n   walls of 2 … 8 m made of points, {RESOLUTION} m apart; 300 robots × 181 rays, 8 m"
    )
    print("     points   build CPU s   grid MB   peak MB   ns a ray")
    points = each(
        "by_points",
        POINTS,
        lambda r: (
            f"   {r['at']:8}   {r['build']:11.3f}   {r['grid']:7.1f}   "
            f"{r['peak']:7.0f}   {r['cost'] * 1e9:8.0f}"
        ),
    )
    print(
        f"\n   {map_path()[1]}, p3dx-sh with a 181-reading laser, one client each, real time wanted"
    )
    print(
        "   clients   CPU s/sim s   ms a client   real time   longest gap ms   ready s     MB"
    )
    served = each(
        "by_clients",
        CLIENTS,
        lambda r: (
            f"   {r['at']:7}   {r['cost']:11.3f}   "
            f"{r['cost'] / r['at'] * 1e3:11.2f}   {r['ratio']:9.3f}"
            f"   {r['gap'] * 1e3:14.0f}   {r['ready']:7.1f}   {r['memory']:4.0f}"
        ),
    )
    draw(robots, rays, points, served)
