from __future__ import annotations

import math

import numpy as np
import pytest

from botyard.engine import commands as cmd
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.geometry import Pose
from botyard.model.kinematics import Axes, Drive, Kinematics
from botyard.model.scene import Scene
from tests import naive
from tests.engine.worlds import OCTAGON

ERROR = Axes(0.02, 0.03, 0.04)
MODES = OdometryErrorMode


def fleet(mode: OdometryErrorMode, n: int = 1, seed: int = 1) -> Engine:
    from botyard.engine.bodyspec import BodySpec

    e = Engine(Scene(), odometry_error_mode=mode, seed=seed)
    e.add_bodies(
        [
            (
                BodySpec(
                    name=f"r{i}",
                    parts=(OCTAGON,),
                    kinematics=Kinematics(kind=Drive.OMNI),
                    odometry_error=ERROR,
                ),
                Pose(3.0 * i, 0, 0),
            )
            for i in range(n)
        ]
    )
    e.state.accel[:] = e.state.decel[:] = 0.0
    return e


def drive(e: Engine, steps: int, **velocity: float) -> None:
    for name in e.rows:
        e.queue_command(name, cmd.SetVelocity(**velocity))
    e.step(steps)


def test_none_equals_the_truth_from_the_start_pose() -> None:
    e = fleet(MODES.NONE)
    drive(e, 40, v=0.3, vy=0.1, w=0.4)
    assert np.allclose(e.state.odom[0], e.state.pose[0], atol=1e-12)
    assert e.state.err[0].tolist() == [0, 0, 0]


def test_constant_errs_by_the_full_proportion() -> None:
    e = fleet(MODES.CONSTANT)
    drive(e, 20, v=0.5)
    assert e.state.odom[0, 0] == pytest.approx(1.0 * (1 + ERROR.x), abs=1e-9)
    drive(e, 20, v=0.0, w=0.5)
    assert e.state.odom[0, 2] == pytest.approx(1.0 * (1 + ERROR.a), abs=1e-9)


def test_each_update_equals_the_twin() -> None:
    e = fleet(MODES.RANDOM_EACH_UPDATE, seed=7)
    uid = int(e.state.uid[0])
    x = y = th = 0.0
    for tick in range(30):
        drive(e, 1, v=0.4, vy=-0.2, w=0.7)
        key = naive.stream_key(7, uid, 1, tick)
        eps = [
            limit * naive.symmetric(key, k) for k, limit in enumerate(ERROR.as_tuple())
        ]
        dx, dy, dth = naive.exp(
            (0.4 * (1 + eps[0]), -0.2 * (1 + eps[1]), 0.7 * (1 + eps[2])), 0.1
        )
        x, y, th = (
            x + math.cos(th) * dx - math.sin(th) * dy,
            y + math.sin(th) * dx + math.cos(th) * dy,
            th + dth,
        )
        assert e.state.odom[0].tolist() == pytest.approx(
            [x, y, math.remainder(th, 2 * math.pi)], abs=1e-9
        )


def test_statistics_of_each_update() -> None:
    """The error of n equal steps is a sum of n uniform draws: mean 0, variance
    n·(ε·d)²/3 (χ² test over many robots).
    """
    n, steps, d = 400, 50, 0.05
    e = fleet(MODES.RANDOM_EACH_UPDATE, n)
    drive(e, steps, v=0.5)
    error = e.state.odom[:, 0] - steps * d
    variance = steps * (ERROR.x * d) ** 2 / 3
    assert abs(error.mean()) < 4 * math.sqrt(variance / n)
    chi2 = (error**2).sum() / variance
    assert abs(chi2 - n) < 4 * math.sqrt(2 * n)


def test_statistics_of_random_init() -> None:
    """One draw for each robot:

    the error grows in proportion, and is uniform over the robots.
    """
    n = 400
    e = fleet(MODES.RANDOM_INIT, n)
    first = e.state.err.copy()
    drive(e, 20, v=0.5)
    assert np.array_equal(e.state.err, first)
    assert np.allclose(e.state.odom[:, 0], 1.0 * (1 + first[:, 0]), atol=1e-9)
    for axis, limit in enumerate(ERROR.as_tuple()):
        scaled = first[:, axis] / limit
        assert np.abs(scaled).max() <= 1
        assert abs(scaled.mean()) < 4 * math.sqrt(1 / 3 / n)
        assert abs(scaled.var() - 1 / 3) < 4 * math.sqrt(4 / 45 / n)


def test_putting_a_robot_elsewhere_does_not_move_its_odometry() -> None:
    e = fleet(MODES.NONE)
    drive(e, 10, v=0.5)
    e.queue_command("r0", cmd.SetPose(Pose(9, 9, 1)))
    before = e.state.odom[0].copy()
    drive(e, 1, v=0.0)
    assert e.state.pose[0].tolist() == pytest.approx([9, 9, 1])
    assert np.allclose(before, e.state.odom[0])


def test_resetting_odometry_leaves_the_truth() -> None:
    e = fleet(MODES.NONE)
    drive(e, 10, v=0.5)
    drive(e, 1, v=0.0)
    pose = e.state.pose[0].copy()
    e.queue_command("r0", cmd.SetOdometry())
    e.step()
    assert e.state.odom[0].tolist() == [0, 0, 0]
    assert np.array_equal(pose, e.state.pose[0])
