"""The same workload in navground (C++ core), ir-sim (Python, shapely) and botyard, in
turns; each run is a process of its own.

World: a walled square of 40 m, 100 walls of 1 … 3 m, N round differential-drive robots
of 0.2 m radius, all from one seed; steps of 0.1 s. Each robot has a lidar: 181 rays
over 180°, 8 m, exact, that sees other robots; in botyard with noise and odometry errors
on. Commands are open loop: ±0.5 m/s changing sign every 3 s, turn rates drawn anew in
±1 rad/s every 3 s. The first scans of each are compared with exact ones, so that all do
the same work.

``make bench-peers`` installs the two others in a virtual environment of their own,
``.venv-peers``; without it they are skipped.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SIZE, RADIUS, DT = 40.0, 0.2, 0.1
RAYS, FOV, R_MAX = 181, math.pi, 8.0
COMMAND_STEPS = 30
"""Steps between two changes of the commands."""
CPU_SECONDS, WARM_UP = 4.0, 3
PEERS_PYTHON = Path(__file__).resolve().parent.parent / ".venv-peers/bin/python"
ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    )
}
RECORDED = {
    "navground": {10: 1.82, 100: 1.62, 1000: 0.92},
    "ir-sim": {10: 0.25, 100: 0.09, 1000: 0.014},
}

Segment = tuple[float, float, float, float]


def distance(x: float, y: float, s: Segment) -> float:
    """Return the distance from a point to a segment, m."""
    dx, dy = s[2] - s[0], s[3] - s[1]
    u = min(1.0, max(0.0, ((x - s[0]) * dx + (y - s[1]) * dy) / (dx * dx + dy * dy)))
    return math.hypot(x - s[0] - u * dx, y - s[1] - u * dy)


class World:
    """Walls, start poses and commands for `n` robots."""

    def __init__(self, n: int, seed: int = 7) -> None:
        self.n, self.seed = n, seed
        draw = random.Random(seed)
        self.walls: list[Segment] = [
            (0, 0, SIZE, 0),
            (SIZE, 0, SIZE, SIZE),
            (SIZE, SIZE, 0, SIZE),
            (0, SIZE, 0, 0),
        ]
        for _ in range(100):
            x, y, a, h = (
                draw.uniform(2, 38),
                draw.uniform(2, 38),
                draw.uniform(0, math.pi),
                draw.uniform(0.5, 1.5),
            )
            self.walls.append(
                (
                    x - h * math.cos(a),
                    y - h * math.sin(a),
                    x + h * math.cos(a),
                    y + h * math.sin(a),
                )
            )

        self.poses: list[tuple[float, float, float]] = []
        while len(self.poses) < n:
            x, y = draw.uniform(0.6, SIZE - 0.6), draw.uniform(0.6, SIZE - 0.6)
            free = all(distance(x, y, s) > 0.35 for s in self.walls)
            if free and all(
                (x - px) ** 2 + (y - py) ** 2 > 0.36 for px, py, _ in self.poses
            ):
                self.poses.append((x, y, draw.uniform(-math.pi, math.pi)))

    def commands(self, step: int) -> list[tuple[float, float]] | None:
        """Return the command (m/s, rad/s) of each robot at steps where commands change,
        otherwise None.
        """
        k, rest = divmod(step, COMMAND_STEPS)
        draw = random.Random(self.seed * 1_000_003 + k)
        return (
            None
            if rest
            else [
                (0.5 if (i + k) % 2 == 0 else -0.5, draw.uniform(-1, 1))
                for i in range(self.n)
            ]
        )

    def exact_scan(self, i: int) -> list[float]:
        """Return the exact first scan of robot `i`."""
        x, y, th = self.poses[i]
        ranges = []
        for k in range(RAYS):
            a = th - FOV / 2 + k * FOV / (RAYS - 1)
            dx, dy, best = math.cos(a), math.sin(a), R_MAX
            for ax, ay, bx, by in self.walls:
                ex, ey, px, py = bx - ax, by - ay, ax - x, ay - y
                den = dx * ey - dy * ex
                if den:
                    t, u = (px * ey - py * ex) / den, (px * dy - py * dx) / den
                    if 0 <= t < best and 0 <= u <= 1:
                        best = t

            for j, (ox, oy, _) in enumerate(self.poses):
                along = (ox - x) * dx + (oy - y) * dy
                room = along * along - (ox - x) ** 2 - (oy - y) ** 2 + RADIUS**2
                if j != i and along > 0 and room >= 0:
                    best = min(best, along - math.sqrt(room))

            ranges.append(best)

        return ranges


Step = Callable[[int], None]
Scan = Callable[[int], list[float]]


def botyard(world: World) -> tuple[Step, Scan]:
    """Return a simulation of `world`, and the calls to be measured."""
    import numpy as np

    from botyard.model.kinematics import Axes, MotionLimits
    from botyard.model.robot import RobotSpec
    from botyard.model.scene import Scene
    from botyard.model.sensors import LaserSpec
    from botyard.sim.simulation import Simulation

    corners = 24
    spec = RobotSpec(
        name="disc",
        outline=tuple(
            (RADIUS * math.cos(a), RADIUS * math.sin(a))
            for a in (2 * math.pi * k / corners for k in range(corners))
        ),
        limits=MotionLimits(max_speed=Axes(1.0, 0.0, 2.0), accel=Axes(), decel=Axes()),
        odometry_error=Axes(0.0075, 0.0075, 0.0075),
        lasers=(
            LaserSpec(
                type_name="lidar",
                samples=RAYS,
                fov=FOV,
                range_max=R_MAX,
                range_noise=0.005,
            ),
        ),
    )
    sim = Simulation(Scene(segments=np.array(world.walls)), seed=1)
    robots = sim.add_robots(spec, world.poses)
    for robot in robots:
        robot.laser.subscribe("bench")

    def step(k: int) -> None:
        commands = world.commands(k)
        if commands is not None:
            sim.fleet.command(*np.array(commands).T)
        sim.step()

    return step, lambda i: [float(r) for r in robots[i].laser.ranges]


def navground(world: World) -> tuple[Step, Scan]:
    """Return navground's step and scan, with commands put directly into the robots, and sensing
    without behaviours.
    """
    from navground import core, sim

    w = sim.World()
    for ax, ay, bx, by in world.walls:
        w.add_wall(core.LineSegment((ax, ay), (bx, by)))
    agents, lidars = [], []
    for x, y, th in world.poses:
        drive = core.kinematics.TwoWheelsDifferentialDriveKinematics(
            max_speed=1.0,
            wheel_axis=0.3,
            max_angular_speed=2.0,
            max_forward_speed=1.0,
            max_backward_speed=1.0,
        )
        agent = sim.Agent(radius=RADIUS, kinematics=drive, control_period=0.0)
        agent.pose = core.Pose2((x, y), th)
        agent.behavior = core.behaviors.DummyBehavior(drive, RADIUS)
        agent.behavior.environment_state_type = "Sensing"
        lidar = sim.state_estimations.LidarStateEstimation(
            range=R_MAX, start_angle=-FOV / 2, field_of_view=FOV, resolution=RAYS
        )
        agent.state_estimations = [lidar]
        w.add_agent(agent)
        agents.append(agent)
        lidars.append(lidar)

    w._prepare()
    w.update_dry(DT, False)
    last: list[tuple[float, float]] = []

    def step(k: int) -> None:
        last[:] = world.commands(k) or last
        for agent, (v, turn) in zip(agents, last, strict=True):
            agent.last_cmd = core.Twist2((v, 0.0), turn, frame=core.Frame.relative)
        w.actuate(DT)
        w.update_dry(DT, False)

    return step, lambda i: [
        float(r) for r in lidars[i].read_ranges(agents[i].behavior.environment_state)
    ]


def irsim_world(
    walls: Any, states: Sequence[Sequence[float]], rays: int, at_contact: str
) -> Any:
    """Return the environment of ir-sim for a world with a robot at each state."""
    import irsim
    import yaml

    lidar = {
        "type": "lidar2d",
        "range_min": 0,
        "range_max": R_MAX,
        "angle_range": FOV,
        "number": rays,
        "noise": False,
    }
    described = {
        "world": {
            "height": SIZE,
            "width": SIZE,
            "step_time": DT,
            "sample_time": DT,
            "collision_mode": at_contact,
        },
        "robot": [
            {
                "kinematics": {"name": "diff"},
                "shape": {"name": "circle", "radius": RADIUS},
                "state": list(state),
                "vel_min": [-1, -2],
                "vel_max": [1, 2],
                "sensors": [lidar],
            }
            for state in states
        ],
        "obstacle": [
            {
                "shape": {"name": "linestring", "vertices": [[ax, ay], [bx, by]]},
                "state": [0, 0, 0],
            }
            for ax, ay, bx, by in walls
        ],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(described, file)
        file.flush()
        return irsim.make(file.name, headless=True, log_level="ERROR")


def irsim(world: World) -> tuple[Step, Scan]:
    """Return ir-sim's step and scan, with a world described in YAML; robots that touch
    something slide along it.
    """
    env = irsim_world(world.walls, world.poses, RAYS, "contact")
    everyone = list(range(world.n))
    for robot in env.robot_list[:10]:
        robot.sensor_step()
    last: list[tuple[float, float]] = []

    def step(k: int) -> None:
        last[:] = world.commands(k) or last
        env.step([list(c) for c in last], action_id=everyone)

    return step, lambda i: [float(r) for r in env.get_lidar_scan(i)["ranges"]]


def measure(peer: str, n: int) -> dict[str, float]:
    """Return million rays per CPU second of one peer, and the median error of its first scans,
    m.
    """
    world = World(n)
    step, scan = {"botyard": botyard, "navground": navground, "ir-sim": irsim}[peer](
        world
    )
    errors = []
    for i in range(min(n, 5)):
        pairs = zip(scan(i), world.exact_scan(i), strict=True)
        errors.append(
            statistics.median(
                abs(min(r if math.isfinite(r) else R_MAX, R_MAX) - e) for r, e in pairs
            )
        )

    for k in range(WARM_UP):
        step(k)
    began, steps = time.process_time(), 0
    while steps < 2 or (steps < 300 and time.process_time() - began < CPU_SECONDS):
        step(WARM_UP + steps)
        steps += 1

    seconds = time.process_time() - began
    return {
        "rays": steps * n * RAYS / seconds / 1e6,
        "cpu": seconds / (steps * DT),
        "off": statistics.median(errors),
    }


def main() -> None:
    theirs = PEERS_PYTHON.exists()
    if not theirs:
        print('   navground and ir-sim are skipped: "make bench-peers" installs them')
    print(
        "   robots   M rays per CPU s: botyard   navground (recorded)   ir-sim "
        "(recorded)   botyard / navground   scans off by, m"
    )
    for n in (10, 100, 1000):
        best: dict[str, dict[str, float]] = {}
        for _ in range(2):
            for peer in ("botyard", *(("navground", "ir-sim") if theirs else ())):
                python = sys.executable if peer == "botyard" else str(PEERS_PYTHON)
                code = (
                    "import json; from bench.peers import measure; "
                    f"print(json.dumps(measure({peer!r}, {n})))"
                )
                done = subprocess.run(
                    [python, "-c", code],
                    env={**os.environ, **ONE_THREAD},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    print(f"   {peer}: {done.stderr.strip().splitlines()[-1]}")
                    continue

                result = json.loads(done.stdout.splitlines()[-1])
                if peer not in best or result["rays"] > best[peer]["rays"]:
                    best[peer] = result

        ours = best["botyard"]["rays"]
        cells = [
            f"{best[p]['rays']:9.3f} ({RECORDED[p][n]})"
            if p in best
            else f"{'–':>9} ({RECORDED[p][n]})"
            for p in ("navground", "ir-sim")
        ]
        ratio = (
            f"{ours / best['navground']['rays']:.1f} x" if "navground" in best else "–"
        )
        off = ", ".join(f"{p} {r['off']:.4f}" for p, r in best.items())
        print(
            f"   {n:6}   {ours:26.2f}   {cells[0]:>20}   {cells[1]:>17}   {ratio:>19}   {off}",
            flush=True,
        )
