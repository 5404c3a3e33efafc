"""Results that must not depend on the step's duration:

odometry drift, exact ramps, Gaussian range errors.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import botyard
from botyard.engine.kernels.noise import gaussian
from botyard.errors import ModelError
from botyard.model.kinematics import Axes
from botyard.model.robot import OdometryDrift, RobotSpec
from botyard.sim.simulation import Simulation
from botyard.worlds.worlds import Worlds
from tests import naive

DRIFT = OdometryDrift(4e-3, 2e-3, 3e-3, 1e-3)
MANY = 400


def p3dx(**changes: object) -> RobotSpec:
    return replace(
        Simulation().add_robot("p3dx").spec, **{"odometry_error": Axes(), **changes}
    )


def errors(step: float, spec: RobotSpec, v: float, w: float) -> np.ndarray:
    """Return odometry errors of many robots after 10 s in the axes of each, m, m, rad;
    and the distance of each.
    """
    worlds = Worlds(botyard.Scene(), spec, MANY, seeds=np.arange(MANY), step=step)
    worlds.reset(poses=np.zeros((MANY, 1, 3)))
    worlds.command[:, 0] = v, 0.0, w
    worlds.step(round(10.0 / step))
    return worlds.odom[:, 0] - worlds.pose[:, 0]


# -- odometry


@pytest.mark.parametrize("step", [0.2, 0.1, 0.02])
def test_the_spread_of_drift_is_the_same_whatever_the_step(step: float) -> None:
    """Along a line of d m: var(heading) = α2 d, var(distance) = α3 d.

    With 400 robots a standard deviation is known to 3.5 %.
    """
    spec = p3dx(odometry_drift=DRIFT, limits=replace(p3dx().limits, accel=Axes()))
    off = errors(step, spec, 0.3, 0.0)
    assert np.std(off[:, 2]) == pytest.approx(math.sqrt(2e-3 * 3.0), rel=0.12)
    assert abs(off[:, 2].mean()) < 4.0 * math.sqrt(2e-3 * 3.0 / MANY)
    # The heading's error shortens the path by about d s / 4, where s is its variance after the
    # distance d.
    assert np.std(off[:, 0]) == pytest.approx(math.sqrt(3e-3 * 3.0), rel=0.12)


@pytest.mark.parametrize("step", [0.2, 0.05])
def test_turning_drifts_by_the_angle(step: float) -> None:
    spec = p3dx(odometry_drift=DRIFT, limits=replace(p3dx().limits, accel=Axes()))
    off = errors(step, spec, 0.0, 0.25)
    wrapped = np.arctan2(np.sin(off[:, 2]), np.cos(off[:, 2]))
    assert np.std(wrapped) == pytest.approx(math.sqrt(4e-3 * 2.5), rel=0.12)
    assert np.hypot(off[:, 0], off[:, 1]).mean() > 0.01, "α4: it seems to move"


def test_the_law_of_the_original_depends_on_the_step() -> None:
    """As documented: the default of the original's models, and only of them."""
    spreads = [
        np.std(errors(step, p3dx(odometry_error=Axes(0.1, 0.1, 0.1)), 0.0, 0.25)[:, 2])
        for step in (0.2, 0.02)
    ]
    assert spreads[0] > 2.0 * spreads[1]
    assert Simulation().add_robot("p3dx").spec.odometry_error != Axes()


def test_drift_is_a_normal_draw_and_none_without_errors() -> None:
    draws = np.array(
        [naive.py(gaussian)(np.uint64(5), np.uint64(k)) for k in range(4000)]
    )
    assert draws.tolist() == pytest.approx(
        [naive.gaussian(5, k) for k in range(4000)], abs=1e-12
    )
    assert draws.mean() == pytest.approx(
        0.0, abs=0.06
    ) and draws.std() == pytest.approx(1.0, abs=0.05)
    assert (abs(draws) < 1.0).mean() == pytest.approx(0.683, abs=0.03)
    for mode in ("none", "constant"):
        sim = Simulation(odometry_error=mode)
        robot = sim.add_robot(p3dx(odometry_drift=DRIFT), "r", pose=(0, 0, 0))
        robot.command(v=0.3)
        sim.step(50)
        assert robot.odom == pytest.approx(robot.truth)

    standing = Simulation().add_robot(p3dx(odometry_drift=DRIFT), "r", pose=(0, 0, 0))
    standing.simulation.step(50)
    assert standing.odom == (0.0, 0.0, 0.0)


def test_drift_is_read_from_a_file_and_refused_by_name() -> None:
    assert OdometryDrift(1.0, 2.0, 3.0, 4.0).as_tuple() == (1.0, 2.0, 3.0, 4.0)
    with pytest.raises(ModelError, match=r"odometry.drift: variances must be from 0"):
        OdometryDrift(-1.0)


# -- ramps


@pytest.mark.parametrize("step", [0.1, 0.05, 0.02])
def test_exact_ramps_go_the_integral_at_the_same_speeds(step: float) -> None:
    """4 s from rest at 0.5 m/s² to 1 m/s: 3 m, and 1 m to stop.

    The original's rule gives 3.05 m with steps of 0.1 s.
    """
    limits = replace(
        p3dx().limits, accel=Axes(0.5, 0.5, 0.5), decel=Axes(0.5, 0.5, 0.5)
    )
    robots = []
    for ramps in ("euler", "exact"):
        sim = Simulation(step=step)
        robots.append(
            sim.add_robot(p3dx(limits=limits, ramps=ramps), "r", pose=(0, 0, 0))
        )

    for robot in robots:
        robot.command(v=1.0)
    for _ in range(round(4.0 / step)):
        for robot in robots:
            robot.simulation.step()
        assert robots[0].velocity == robots[1].velocity

    assert robots[0].truth.x == pytest.approx(3.0 + 0.5 * step, abs=1e-9)
    assert robots[1].truth.x == pytest.approx(3.0, abs=1e-9)
    assert robots[1].odom.x == pytest.approx(3.0, abs=1e-9)
    for robot in robots:
        robot.command(v=0.0)
        robot.simulation.step(round(3.0 / step))
        assert robot.velocity.vx == 0.0

    assert robots[0].truth.x == pytest.approx(4.0, abs=1e-9)
    assert robots[1].truth.x == pytest.approx(4.0, abs=1e-9)


def test_exact_ramps_turn_as_far_and_end_moves_where_they_should() -> None:
    limits = replace(
        p3dx().limits, accel=Axes(0.5, 0.5, 0.5), decel=Axes(0.5, 0.5, 0.5)
    )
    sim = Simulation(step=0.1)
    robot = sim.add_robot(p3dx(limits=limits, ramps="exact"), "r", pose=(0, 0, 0))
    robot.command(w=0.8)
    sim.step(30)
    assert robot.truth.th == pytest.approx(
        0.8 * 3.0 - 0.8**2 / (2.0 * 0.5), abs=0.05 * 0.05 / 1.0 + 1e-9
    )
    robot.command.stop()
    sim.step(40)
    start = robot.truth
    robot.command.move(1.0)
    sim.step(100)
    assert math.dist(robot.truth[:2], start[:2]) == pytest.approx(1.0, abs=0.002)
    assert robot.velocity.vx == 0.0


def test_a_robot_that_brakes_exactly_meets_what_is_in_its_path() -> None:
    """It moves farther in a step than its final speed says, even if that is 0."""
    limits = replace(
        p3dx().limits, accel=Axes(5.0, 5.0, 5.0), decel=Axes(9.0, 9.0, 9.0)
    )
    walls = np.array([[2.0, -3.0, 2.0, 3.0]])
    sim = Simulation(botyard.Scene(segments=walls), step=0.2)
    robot = sim.add_robot(
        p3dx(limits=limits, ramps="exact", lasers=()), "r", pose=(0, 0, 0)
    )
    robot.command(v=1.7)
    front = robot.spec.front
    while robot.truth.x + front + 0.34 < 2.0:
        sim.step()
    robot.command(v=0.0)
    sim.step(10)
    assert robot.truth.x + front <= 2.0 + 1e-9


def test_worlds_give_the_bits_of_simulations() -> None:
    spec = p3dx(odometry_drift=DRIFT, ramps="exact")
    laser = replace(
        spec.lasers[0] if spec.lasers else botyard.load_laser("lms200"),
        range_deviation=0.02,
        range_share=0.01,
    )
    spec = replace(spec, lasers=(laser,))
    scene = botyard.Scene(
        segments=np.array([[4.0, -3, 4, 3], [-3, 3, 4, 3], [-3, -3, 4, -3]], float)
    )
    worlds = Worlds(scene, [spec, spec], 3, seeds=[5, 6, 7], sensors=("laser",))
    worlds.reset(poses=np.array([[0.0, 0.0, 0.0], [0.0, 1.5, 1.0]]))
    sims = []
    for seed in worlds.seeds.tolist():
        sim = Simulation(scene, seed=seed)
        for name, pose in zip(
            worlds.names, ((0.0, 0.0, 0.0), (0.0, 1.5, 1.0)), strict=True
        ):
            sim.add_robot(spec, name, pose=pose)

        sims.append(sim)

    dice = np.random.default_rng(3)
    for _ in range(8):
        command = dice.uniform(-1.0, 1.0, (2, 3)) * (1.0, 0.0, 1.0)
        worlds.command[:] = command
        worlds.step(4)
        for i, sim in enumerate(sims):
            for k, robot in enumerate(sim.robots.values()):
                robot.command(v=command[k, 0], w=command[k, 2])
            sim.step(4)
            assert (
                np.array([tuple(r.truth) for r in sim.robots.values()]).tobytes()
                == worlds.pose[i].tobytes()
            )
            assert (
                np.array([tuple(r.odom) for r in sim.robots.values()]).tobytes()
                == worlds.odom[i].tobytes()
            )
            scans = np.concatenate(
                [robot.laser.read().ranges for robot in sim.robots.values()]
            )
            assert (
                scans.astype(np.float32).tobytes()
                == worlds.ranges[i].astype(np.float32).tobytes()
            )


# -- ranges


@pytest.mark.parametrize(
    ("deviation", "share"), [(0.03, 0.0), (0.0, 0.02), (0.03, 0.02)]
)
@pytest.mark.parametrize("distance", [2.0, 6.0])
def test_gaussian_errors_of_ranges(
    deviation: float, share: float, distance: float
) -> None:
    """σ² = range_deviation² + (range_share · r)²."""
    walls = np.array([[distance, -90.0, distance, 90.0]])
    laser = replace(
        botyard.load_laser("lms200"),
        samples=1,
        fov=0.0,
        range_noise=0.0,
        angle_noise=0.0,
        range_deviation=deviation,
        range_share=share,
        range_max=30.0,
    )
    sim = Simulation(botyard.Scene(segments=walls), range_step=0.0)
    robot = sim.add_robot(p3dx(lasers=(laser,)), "r", pose=(0, 0, 0))
    found = []
    for _ in range(3000):
        sim.step()
        found.append(float(robot.laser.read().ranges[0]))

    found = np.array(found)
    sigma = math.hypot(deviation, share * distance)
    assert found.std() == pytest.approx(sigma, rel=0.06)
    assert found.mean() == pytest.approx(distance, abs=5.0 * sigma / math.sqrt(3000.0))
    assert (abs(found - distance) < sigma).mean() == pytest.approx(0.683, abs=0.04), (
        "uniform errors have 0.577"
    )


def test_ranges_without_noise_are_exact_and_bad_numbers_are_named() -> None:
    laser = replace(
        botyard.load_laser("lms200"),
        range_noise=0.0,
        angle_noise=0.0,
        range_deviation=0.5,
    )
    sim = Simulation(
        botyard.Scene(segments=np.array([[3.0, -9, 3, 9]])), sensor_noise=False
    )
    robot = sim.add_robot(p3dx(lasers=(laser,)), "r", pose=(0, 0, 0))
    ranges = robot.laser.read().ranges
    assert ranges[len(ranges) // 2] == pytest.approx(3.0, abs=0.001)
    for name, value in (("range_deviation", -0.1), ("range_share", 1.5)):
        with pytest.raises(ModelError, match=f"laser sicklms200: {name} must be"):
            replace(laser, **{name: value})
