"""Environment steps per CPU second of `botyard.Worlds`, with observation, reward and
resets, against navground, ir-sim and VMAS in turns.

The task: a round robot of 0.2 m in a walled square of 40 m with 100 walls of 1 … 3 m drives to a
goal, by random commands; 0.1 s a step. The observation is a lidar (8 m over 180°), direction and
distance of the goal, and the velocity, as float32; the reward is the progress, less when it
touches a wall. An episode ends at the goal, at a wall, or after 300 steps; then the robot starts
elsewhere. botyard adds errors of ranges and of odometry; the other simulators are exact. Each
figure is of a process of its own, the best of two.

``make bench-peers`` installs navground and ir-sim in ``.venv-peers``; VMAS, which needs
torch, is used where it is installed there. Those that are not there are skipped.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

from bench.common import memory
from bench.goal_task import EPISODE_STEPS, GOAL_M, Single, measure
from bench.peers import (
    FOV,
    ONE_THREAD,
    PEERS_PYTHON,
    R_MAX,
    RADIUS,
    SIZE,
    World,
)

REPEATS = 2


# -- botyard


def scene(seed: int) -> Any:
    """Return the map of a seed."""
    import numpy as np

    from botyard.model.scene import Scene

    return Scene(segments=np.array(World(0, seed).walls))


def disc(rays: int, *, bearing_noise: bool) -> Any:
    """Return a round robot with a lidar."""
    from botyard.model.kinematics import Axes, MotionLimits
    from botyard.model.robot import RobotSpec
    from botyard.model.sensors import LaserSpec

    error = 0.0007 if bearing_noise else 0.0
    lidar = (
        ()
        if not rays
        else (
            LaserSpec(
                type_name="lidar",
                samples=rays,
                fov=FOV,
                range_max=R_MAX,
                range_noise=0.005,
                angle_noise=error,
            ),
        )
    )
    return RobotSpec(
        name="disc",
        outline=tuple(
            (RADIUS * math.cos(math.pi * k / 6), RADIUS * math.sin(math.pi * k / 6))
            for k in range(12)
        ),
        limits=MotionLimits(max_speed=Axes(1.0, 0.0, 2.0), accel=Axes(), decel=Axes()),
        odometry_error=Axes(0.0075, 0.0075, 0.0075),
        lasers=lidar,
    )


def ours(
    n: int,
    rays: int,
    maps: int = 1,
    threads: int = 1,
    *,
    walls: bool = True,
    bearing_noise: bool = False,
) -> dict[str, float]:
    """Return environment steps of `Worlds` per CPU second and per second."""
    import numpy as np

    import botyard
    from botyard.model.scene import Scene

    before = memory()
    scenes = [scene(7 + k) for k in range(maps)] if walls else Scene()
    worlds = botyard.Worlds(
        scenes,
        disc(rays, bearing_noise=bearing_noise),
        n,
        threads=threads,
        map_pool=max(maps, 64),
    )
    # Reset until nearly all maps of the pool were used once, so that the measurement does not
    # include their construction.
    for _ in range(8 if maps > 1 else 1):
        worlds.reset(poses="free")

    goals = worlds.sample_free()[:, 0, :2]
    observed = np.zeros((n, rays + 5), np.float32)
    commands = np.random.default_rng(1).uniform(
        (0.0, 0.0, -1.0), (1.0, 0.0, 1.0), (16, n, 3)
    )
    far = np.hypot(*(goals - worlds.pose[:, 0, :2]).T)

    def step(k: int) -> None:
        nonlocal far
        worlds.command[:, 0] = commands[k % 16]
        worlds.step()
        pose, before_step = worlds.pose[:, 0], far
        to_goal = goals - pose[:, :2]
        far = np.sqrt(np.einsum("ij,ij->i", to_goal, to_goal))
        hit = worlds.contact[:, 0] != 0
        reward = before_step - far - hit
        done = hit | (far < GOAL_M) | (worlds.tick >= EPISODE_STEPS)
        chosen = np.flatnonzero(done)
        if len(chosen):
            worlds.reset(chosen, poses="free")
            goals[chosen] = worlds.sample_free(chosen)[:, 0, :2]
            to_goal[chosen] = goals[chosen] - pose[chosen, :2]
            far[chosen] = np.sqrt((to_goal[chosen] ** 2).sum(axis=1))

        observed[:, :rays] = worlds.ranges[:, 0]
        bearing = np.arctan2(to_goal[:, 1], to_goal[:, 0]) - pose[:, 2]
        observed[:, rays], observed[:, rays + 1], observed[:, rays + 2] = (
            far,
            np.cos(bearing),
            np.sin(bearing),
        )
        observed[:, rays + 3], observed[:, rays + 4] = (
            worlds.vel[:, 0, 0],
            worlds.vel[:, 0, 2],
        )
        assert reward.shape == (n,)

    found = measure(step, n)
    found["memory"] = memory() - before
    worlds.close()
    return found


def by_hand(n: int, rays: int, *, own_maps: bool) -> dict[str, float]:
    """Reference: environment steps per CPU second of one `Simulation` with `n` robots in place of
    `n` worlds, as users did before `Worlds` existed. Observation and reward are as in the
    benchmark of `Worlds`. Blocked robots reverse, because there are no resets.

    Each robot has a square of its own, or all share one and see nothing of each other.
    The same observation and reward; blocked robots go back, as there are no resets.
    """
    import numpy as np

    import botyard
    from botyard.model.obstacles import Returns
    from botyard.model.scene import Scene

    spec = disc(rays, bearing_noise=False)
    columns = math.isqrt(n - 1) + 1
    places = [(0.0, 0.0)] * n
    if own_maps:
        places = [
            ((SIZE + 1.0) * (k % columns), (SIZE + 1.0) * (k // columns))
            for k in range(n)
        ]
        walls = [
            np.array(World(0, 7 + k).walls) + np.array([x, y, x, y])
            for k, (x, y) in enumerate(places)
        ]
    else:
        spec = replace(
            spec, returns=Returns(obstacle=False, laser=0, sonar=False, blob=False)
        )
        walls = [np.array(World(0, 7).walls)]

    sim = botyard.Simulation(Scene(segments=np.concatenate(walls)), seed=1)
    draw = Single(rays)
    for k, (x, y) in enumerate(places):
        draw.walls = World(0, 7 + k * own_maps).walls
        px, py, th = draw.free()
        sim.add_robot(spec, pose=(px + x, py + y, th))

    goals = np.array(places) + np.random.default_rng(2).uniform(1.0, SIZE - 1.0, (n, 2))
    commands = np.random.default_rng(1).uniform((0.0, -1.0), (1.0, 1.0), (16, n, 2))
    observed = np.zeros((n, rays + 5), np.float32)
    far = np.zeros(n)

    def step(k: int) -> None:
        nonlocal far
        hit, (v, w) = sim.fleet.stalled, commands[k % 16].T
        sim.fleet.command(v=np.where(hit, -v, v), w=w)
        sim.step()
        pose, before = sim.fleet.poses, far
        to_goal = goals - pose[:, :2]
        far = np.sqrt(np.einsum("ij,ij->i", to_goal, to_goal))
        reward = before - far - hit
        observed[:, :rays] = sim.fleet.ranges("laser")
        bearing = np.arctan2(to_goal[:, 1], to_goal[:, 0]) - pose[:, 2]
        observed[:, rays], observed[:, rays + 1], observed[:, rays + 2] = (
            far,
            np.cos(bearing),
            np.sin(bearing),
        )
        observed[:, rays + 3 :] = sim.fleet.velocities[:, ::2]
        assert reward.shape == (n,)

    return measure(step, n) | {"memory": 0.0}


def gymnasium_env() -> dict[str, float]:
    """Return environment steps per CPU second of one Gymnasium environment:
    `botyard.learning.Navigate` on the maps of this comparison.
    """
    import numpy as np

    from botyard.learning import Environment, Navigate

    env = Environment(
        Navigate(
            robot=disc(181, bearing_noise=False),
            scenes=[scene(7 + k) for k in range(8)],
        )
    )
    env.reset(seed=1)
    actions = list(
        np.random.default_rng(1)
        .uniform((0.0, -0.5), (1.0, 0.5), (64, 2))
        .astype(np.float32)
    )

    def step(k: int) -> None:
        _, _, terminated, truncated, _ = env.step(actions[k % 64])
        if terminated or truncated:
            env.reset()

    return measure(step, 1) | {"memory": 0.0}


def resets(n: int = 1024) -> dict[str, float]:
    """Return µs of CPU time for each world that is reset to given poses, without sensors: for
    one world among `n`, and for a tenth of them.
    """
    import numpy as np

    import botyard

    worlds = botyard.Worlds(scene(7), disc(0, bearing_noise=False), n)
    free = worlds.sample_free()
    found = {}
    for name, count in (("one", 1), ("tenth", n // 10)):
        mask = np.zeros(n, bool)
        mask[:: n // count][:count] = True
        poses = free[np.flatnonzero(mask)]
        chosen = int(mask.sum())
        best = math.inf
        for _ in range(5):
            began = time.process_time()
            for _ in range(500):
                worlds.reset(mask, poses=poses)
            best = min(best, time.process_time() - began)

        found[name] = best / 500 / chosen * 1e6

    return found


# -- the table


def _apart(python: str, module: str, call: str) -> dict[str, float] | None:
    """Return the best of several runs of a call, each in a process of its own; print a failure
    and return None.
    """
    best: dict[str, float] | None = None
    for _ in range(REPEATS):
        code = f"import json; from bench.{module} import *; print(json.dumps({call}))"
        done = subprocess.run(
            [python, "-c", code],
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"   {call}: {done.stderr.strip().splitlines()[-1]}")
            return None

        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        if best is None or found.get("cpu", 0.0) > best.get("cpu", 0.0):
            best = found

    return best


ROWS = (
    ("181 rays, 1024 maps", "ours(1024, 181, 1024)", 60e3, 75e3),
    ("181 rays, 64 maps", "ours(1024, 181, 64)", None, None),
    ("181 rays, shared map", "ours(1024, 181)", 75e3, 85e3),
    (
        "181 rays, errors of bearing, too",
        "ours(1024, 181, bearing_noise=True)",
        None,
        None,
    ),
    ("181 rays, two threads", "ours(1024, 181, threads=2)", None, None),
    ("32 rays", "ours(1024, 32)", 250e3, 350e3),
    ("16 rays", "ours(1024, 16)", 350e3, 450e3),
    ("no rays, no walls", "ours(1024, 0, walls=False)", 1e6, 1.6e6),
    ("one world, 181 rays", "ours(1, 181)", None, None),
    ("one Gymnasium environment, 181 rays", "gymnasium_env()", 25e3, 35e3),
    (
        "by hand, a map each (elsewhere 58 k)",
        "by_hand(1024, 181, own_maps=True)",
        None,
        None,
    ),
    (
        "by hand, one map (elsewhere 69 k)",
        "by_hand(1024, 181, own_maps=False)",
        None,
        None,
    ),
)
"""Name, call, and the least and the wanted figure."""
PEERS = (
    ("navground, 181 rays", "theirs('navground', 181)", "181 rays, shared map"),
    ("ir-sim, 181 rays", "theirs('ir-sim', 181)", "181 rays, shared map"),
    ("VMAS, 181 rays", "vmas(64, 181)", "181 rays, shared map"),
    ("VMAS, no rays, no walls", "vmas(1024, 0)", "no rays, no walls"),
)


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    print(
        "   environment steps per CPU second     measured   (least, wanted)      "
        "    per s     MB more"
    )
    for name, call, least, wanted in ROWS:
        row = _apart(sys.executable, "worlds_batch", call)
        if row is not None:
            found[name] = row
            aims = (
                ""
                if least is None or wanted is None
                else f"({least / 1e3:.0f} k, {wanted / 1e3:.0f} k)"
            )
            print(
                f"   {name:37} {row['cpu'] / 1e3:8.1f} k   {aims:20} "
                f"{row['wall'] / 1e3:8.1f} k   {row['memory']:6.0f}",
                flush=True,
            )

    took = _apart(sys.executable, "worlds_batch", "resets()")
    if took is not None:
        print(
            f"   a reset of one world among 1024: {took['one']:.1f} µs; of a "
            f"tenth of them: {took['tenth']:.2f} µs each (5 µs, 2 µs)"
        )

    if not PEERS_PYTHON.exists():
        print(
            '   navground, ir-sim and VMAS are skipped: "make bench-peers" installs them'
        )
        return

    for name, call, against in PEERS:
        row = _apart(str(PEERS_PYTHON), "peer_worlds", call)
        if row is not None and against in found:
            ratio = found[against]["cpu"] / row["cpu"]
            print(
                f"   {name:37} {row['cpu'] / 1e3:8.2f} k   botyard ({against}): {ratio:.1f} x",
                flush=True,
            )


__all__ = ["by_hand", "gymnasium_env", "main", "ours", "resets"]
