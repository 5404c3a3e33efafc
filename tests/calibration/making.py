"""Logs of simulated robots whose true parameters are known."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from botyard.calibration.log import Log, ScanSeries, Series
from botyard.calibration.odometryvalues import ALPHAS
from botyard.model.beams import ReflectorRule
from botyard.model.devices import make_spec
from botyard.model.kinematics import Axes
from botyard.model.library import load_robot
from botyard.model.obstacles import Returns
from botyard.model.robot import CommandSpec, OdometryDrift, RobotSpec
from botyard.model.scene import Scene, SpecialWalls
from botyard.sim.simulation import Simulation

F8 = NDArray[np.float64]
STEP = 0.1
CLOCK_S = 5000.25
"""How much later the truth's clock is."""
MOCAP = np.array([0.001, 0.001, 0.002])
"""Standard deviations of measured poses: m, m, rad."""
_CORNERS = (
    [(0, 0), (12, 0), (12, 8), (7, 8), (7, 10), (0, 10), (0, 0)], [(3, 7), (4, 7), (4, 8), (3, 8), (3, 7)],
    [(9, 2), (10, 2.5), (9.5, 3.5), (9, 2)],
)  # fmt: skip
HALL = Scene(
    name="hall",
    segments=np.array(
        [(*a, *b) for line in _CORNERS for a, b in itertools.pairwise(line)], np.float64
    ),
    special_walls=(SpecialWalls(first=0, last=2, returns=Returns(laser=2)),),
)
"""The walls in the south and in the east are reflectors."""
MIDDLE = (5.5, 4.5)


@dataclass
class Known:
    """A robot with its log and its true values by name."""

    spec: RobotSpec
    log: Log
    truth: Series
    values: dict[str, float]


def known_robots(
    count: int,
    seconds: float,
    seed: int,
    *,
    scans: bool = True,
    turns: bool = True,
    given: dict[str, float] | None = None,
) -> list[Known]:
    """Return robots with random parameters that drive about in the middle of a hall.

    Given parameters are not random.
    """
    rng = np.random.default_rng(seed)
    base = load_robot("p3dx")
    sim = Simulation(HALL, seed=seed, warn=None)
    assert sim.dt == STEP
    specs, values = [], []
    for i in range(count):
        one = (
            _values(rng)
            | _rule(np.random.default_rng([seed, i]))
            | _wheels(np.random.default_rng([seed, i, 1]))
            | (given or {})
        )
        specs.append(_spec(base, one))
        values.append(one)
        sim.add_robot(specs[-1], name=f"r{i}", pose=(*MIDDLE, 0.3 * i)).ghost()

    robots = list(sim.robots.values())
    rows: dict[str, list[F8]] = {
        name: []
        for name in ("time", "pose", "odom", "vel", "scan", "bright", "scan time")
    }
    sent: list[list[tuple[float, float, float, float]]] = [[] for _ in range(count)]
    present = np.zeros((count, 2))
    for k in range(round(seconds / STEP)):
        if k % 10 == 0:
            for i, pose in enumerate(sim.poses):
                v, w = (
                    _command(rng, pose)
                    if turns
                    else (float(rng.uniform(-0.2, 0.25)), 0.0)
                )
                present[i] = v, w
                sent[i].append((sim.time, v, 0.0, w))

        sim.fleet.command(v=present[:, 0], w=present[:, 1])
        sim.step()
        for name, value in (
            ("time", sim.time),
            ("pose", sim.fleet.poses),
            ("odom", sim.fleet.odometry),
        ):
            rows[name].append(np.array(value))

        rows["vel"].append(np.array([tuple(robot.velocity) for robot in robots]))
        if scans and k % 10 == 0:
            rows["scan time"].append(np.array(sim.time))
            read = [robot.laser.read() for robot in robots]
            rows["scan"].append(np.array([scan.ranges for scan in read]))
            rows["bright"].append(
                np.array([scan.intensities for scan in read], np.float64)
            )

    sim.close()
    arrays = {name: np.array(value) for name, value in rows.items()}
    return [
        _known(arrays, i, specs[i], values[i], np.array(sent[i]), rng)
        for i in range(count)
    ]


def _values(rng: np.random.Generator) -> dict[str, float]:
    draw = rng.uniform
    return {
        "forward error": draw(-0.05, 0.05),
        "turning error": draw(-0.05, 0.05),
        "forward spread": draw(0.01, 0.08),
        "turning spread": draw(0.02, 0.1),
        "latency": float(rng.integers(0, 5)) * STEP,
        "accel x": draw(0.2, 1.0),
        "decel x": draw(0.2, 1.0),
        "accel a": draw(0.8, 4.0),
        "decel a": draw(0.8, 4.0),
        "range_bias": draw(-0.04, 0.04),
        "range_noise": draw(0.006, 0.04),
        "angle_noise": draw(0.001, 0.004),
        "range_share": draw(0.001, 0.005),
    }


def _rule(rng: np.random.Generator) -> dict[str, float]:
    """Return a random rule of reflectors.

    It has its own random numbers, so that the other values do not change.
    """
    return {
        "reflector max_range": rng.uniform(4.5, 7.0),
        "reflector max_incidence": rng.uniform(0.4, 0.7),
        "reflector strength": float(rng.integers(2, 200)),
    }


def _wheels(rng: np.random.Generator) -> dict[str, float]:
    return {"E_d": rng.uniform(0.97, 1.03)}


def _spec(base: RobotSpec, one: dict[str, float]) -> RobotSpec:
    rule = ReflectorRule(
        max_range=one["reflector max_range"],
        max_incidence=one["reflector max_incidence"],
        strength=int(one["reflector strength"]),
    )
    laser = replace(
        base.lasers[0],
        range_noise=one["range_noise"],
        angle_noise=one["angle_noise"],
        reflector=rule,
    )
    error = [
        Axes(
            *(
                one[f"{n} error"] + s * one[f"{n} spread"] if n else 0.0
                for n in ("forward", "", "turning")
            )
        )
        for s in (1.0, -1.0)
    ]
    limits = replace(
        base.limits,
        accel=Axes(one["accel x"], 0.0, one["accel a"]),
        decel=Axes(one["decel x"], 0.0, one["decel a"]),
    )
    laser = replace(laser, range_share=one["range_share"])
    errors = make_spec("normal_errors", range_bias=one["range_bias"])
    drift = OdometryDrift(*(one.get(name, 0.0) for name in ALPHAS))
    return replace(
        base,
        odometry_error=error[0],
        odometry_error_low=error[1],
        odometry_drift=drift,
        wheel_ratio=one["E_d"],
        limits=limits,
        lasers=(laser,),
        devices=(errors,),
        commands=CommandSpec(latency=one["latency"]),
    )


def _command(rng: np.random.Generator, pose: F8) -> tuple[float, float]:
    """Return a random command near the middle of the hall, otherwise a command back to
    it.
    """
    x, y = MIDDLE[0] - pose[0], MIDDLE[1] - pose[1]
    if np.hypot(x, y) < 1.5:
        return float(rng.uniform(-0.4, 0.5)), float(rng.uniform(-1.2, 1.2))
    aside = (np.arctan2(y, x) - pose[2] + np.pi) % (2 * np.pi) - np.pi
    return (
        (0.35, float(aside)) if abs(aside) < 1 else (0.05, float(np.sign(aside)) * 0.9)
    )


def _known(
    arrays: dict[str, F8],
    i: int,
    spec: RobotSpec,
    values: dict[str, float],
    sent: F8,
    rng: np.random.Generator,
) -> Known:
    time, laser = arrays["time"], spec.lasers[0]
    scans = None
    if len(arrays["scan"]):
        scans = ScanSeries(
            arrays["scan time"],
            arrays["scan"][:, i],
            -laser.fov / 2,
            laser.increment,
            arrays["bright"][:, i],
        )

    velocity = arrays["vel"][:, i] + rng.normal(0.0, 0.01, (len(time), 3))
    log = Log(
        source=f"log {i}",
        odometry=Series(time, arrays["odom"][:, i]),
        velocities=Series(time, velocity),
        commands=Series(sent[:, 0], sent[:, 1:]),
        scans=scans,
    )
    truth = Series(
        time + CLOCK_S,
        arrays["pose"][:, i] + rng.normal(0.0, 1.0, (len(time), 3)) * MOCAP,
    )
    return Known(spec, log, truth, values)


@cache
def twenty() -> list[Known]:
    """The twenty robots of the acceptance test."""
    return known_robots(20, 100.0, 4)
