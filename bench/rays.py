"""Rays per second: 1000 random free poses × 181 rays over 180°, seed 1; and the
brute-force NumPy twin as reference.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.common import cpu, judged, map_path, wall
from bench.reference import build, caster
from botyard.devices.ranging import RangeDevices
from botyard.engine.bodyspec import BodySpec
from botyard.engine.simulation import Engine
from botyard.formats.registry import load_scene
from botyard.geometry import Pose
from botyard.model.beams import Bundle
from botyard.model.obstacles import Returns, Visible
from botyard.model.scene import Scene
from botyard.model.tracing import squares_to_segments
from botyard.processes.parallel import Workers

SCANS, RAYS = 1000, 181
GHOST = Returns(obstacle=False, laser=0, sonar=False)
BODY = ((-0.15, -0.15), (0.15, -0.15), (0.15, 0.15), (-0.15, 0.15))


def brute(segments: np.ndarray, pose: Pose, r_max: float) -> np.ndarray:
    """Cast all rays against all segments at once."""
    angles = pose.th + np.linspace(-math.pi / 2, math.pi / 2, RAYS)
    dx, dy = np.cos(angles)[:, None], np.sin(angles)[:, None]
    ax, ay = segments[:, 0] - pose.x, segments[:, 1] - pose.y
    ex, ey = segments[:, 2] - segments[:, 0], segments[:, 3] - segments[:, 1]
    den = dx * ey - dy * ex
    with np.errstate(divide="ignore", invalid="ignore"):
        t, u = (ax * ey - ay * ex) / den, (ax * dy - ay * dx) / den
    return np.where((t >= 0) & (u >= 0) & (u <= 1), t, r_max).min(axis=1, initial=r_max)


def scene_with_lasers(
    returns: Returns,
    r_max: float,
    threads: int = 1,
    *,
    scene: Scene | None = None,
    scans: int = SCANS,
    rays: int = RAYS,
    noise: float = 0.0,
) -> tuple[Engine, RangeDevices]:
    """Return robots at random free places of a map, by default the map of the recorded figures,
    each with a laser over 180°.
    """
    scene = load_scene(map_path()[0]) if scene is None else scene
    devices = RangeDevices(Workers(threads, "rays"))
    engine = Engine(scene, senses=(devices,))
    x0, y0, x1, y1 = scene.bounds or (0, 0, 1, 1)
    rng = np.random.default_rng(1)
    trial = BodySpec(name="trial", parts=(BODY,))
    poses: list[Pose] = []
    while len(poses) < scans:
        pose = Pose(
            rng.uniform(x0, x1), rng.uniform(y0, y1), rng.uniform(-math.pi, math.pi)
        )
        if engine.is_free(trial, pose):
            poses.append(pose)

    engine.add_bodies(
        [
            (BodySpec(name=f"r{i}", parts=(BODY,), returns=returns), p)
            for i, p in enumerate(poses)
        ]
    )
    bundle = Bundle(
        angle0=-math.pi / 2,
        step=math.pi / max(rays - 1, 1),
        count=rays,
        r_max=r_max,
        r_noise=noise,
    )
    for i in range(scans):
        devices.configure(i, f"r{i}", 16, Visible.LASER, [bundle])
        devices.subscribe(i, "bench")

    return engine, devices


def interleaved(
    runs: dict[str, Callable[[], object]], rounds: int = 15
) -> dict[str, float]:
    """Return the CPU seconds of each run, the least of several rounds. The runs take turns, so
    that other load affects all alike.
    """
    best = dict.fromkeys(runs, math.inf)
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], cpu(run, 1, warm=False))

    return best


def main() -> None:
    library = build()
    print(
        f"{map_path()[1]}, {SCANS} random free poses x {RAYS} rays, seed 1, no "
        "noise, one thread unless said"
    )
    print(
        "   M rays per CPU s; the reference casts 5 of the scans by brute force in NumPy"
    )
    for r_max in (8.0, 30.0):
        size: dict[str, Any] = {"scans": SCANS, "rays": RAYS}
        engine, devices = scene_with_lasers(GHOST, r_max, **size)
        runs: dict[str, Callable[[], object]] = {
            "botyard": lambda e=engine, d=devices: d.sense(e)
        }
        angles = np.linspace(-math.pi / 2, math.pi / 2, RAYS)
        # The boxes of the map come first among the bodies, so look the robots up by name.
        stand = engine.state.pose[[engine.rows[f"r{i}"] for i in range(SCANS)]]
        if library is not None:
            runs["C"] = caster(library, engine.grid, stand, angles, r_max)
        times = interleaved(runs)
        seconds = times["botyard"]
        if library is not None:
            exact = caster(library, engine.grid, stand, angles, r_max)()
            worst = max(
                float(np.abs(devices.read(engine, i).ranges - row).max())
                for i, row in enumerate(exact)
            )
            print(
                f"   {r_max:4.0f} m  C reference kernel {SCANS * RAYS / times['C'] / 1e6:6.2f}   "
                f"botyard is {times['C'] / seconds:.2f} x as fast "
                f"{judged(times['C'] / seconds, 2.0, least=True)}, "
                f"difference {worst:.1e} m"
            )

        rate = SCANS * RAYS / seconds / 1e6
        segments = np.concatenate(
            [
                engine.scene.segments,
                squares_to_segments(engine.scene.points, engine.scene.resolution),
            ]
        )
        poses = [Pose(*p) for p in stand[:5]]
        reference = cpu(
            lambda s=segments, ps=poses, r=r_max: [brute(s, p, r) for p in ps], 3
        )
        slow = 5 * RAYS / reference / 1e6
        errors = [
            np.abs(brute(segments, p, r_max) - devices.read(engine, i).ranges).max()
            for i, p in enumerate(poses)
        ]
        head = f"   {r_max:4.0f} m"
        print(
            f"{head}  map only           {rate:6.2f}   {rate / slow:7.0f} x "
            f"brute force ({slow:.4f}), off by {max(errors):.1e} m"
        )
        crowd, crowd_devices = scene_with_lasers(Returns(), r_max, **size)
        seconds = cpu(lambda e=crowd, d=crowd_devices: d.sense(e), 10)
        crowded = SCANS * RAYS / seconds / 1e6
        print(
            f"{head}  and 999 robots     {crowded:6.2f}   {rate / crowded:7.2f} "
            "x the time of the map only"
        )
        cores = os.cpu_count() or 1
        if cores > 1:
            both, both_devices = scene_with_lasers(GHOST, r_max, threads=cores, **size)
            one = wall(lambda e=engine, d=devices: d.sense(e), 10)
            many = wall(lambda e=both, d=both_devices: d.sense(e), 10)
            print(
                f"   {r_max:4.0f} m  {cores} threads (wall)   "
                f"{SCANS * RAYS / many / 1e6:6.2f}   {one / many:7.2f} x one thread"
            )
