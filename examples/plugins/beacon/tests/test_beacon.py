"""The beacon finder: what it hears, how strongly, and through what."""

from __future__ import annotations

import math

import numpy as np
import pytest
from botyard_beacon import BEACON_FINDER, Beacon, BeaconFinderSpec

from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Scene
from botyard.sim.simulation import Robot, Simulation
from botyard.testing import check_device


def beacon(x: float, y: float, mark: int) -> BoxObject:
    returns = Returns(fiducial=mark, obstacle=False, laser=0, sonar=False)
    return BoxObject(
        name=f"b{mark}", pose=Pose(x, y, 0.0), length=0.1, width=0.1, returns=returns
    )


def hearing(
    spec: BeaconFinderSpec, *beacons: BoxObject, walls: tuple = (), **options: object
) -> Robot:
    scene = Scene(boxes=beacons, segments=np.array(walls, float).reshape(-1, 4))
    return Simulation(scene, **options).add_robot(
        find_robot("p3dx").fitted(spec), "r", pose=(0, 0, 0.5)
    )


def heard(
    spec: BeaconFinderSpec, *beacons: BoxObject, **options: object
) -> list[Beacon]:
    return hearing(spec, *beacons, **options).devices["beacon_finder"].read()


def test_it_is_a_device() -> None:
    assert check_device(BEACON_FINDER, BeaconFinderSpec(range_noise=0.05)) == []


def test_power_falls_with_distance() -> None:
    near, far = heard(BeaconFinderSpec(), beacon(1, 0, 1), beacon(10, 0, 2))
    assert (near.id, near.power, near.range, near.bearing) == (
        1,
        pytest.approx(-40.0),
        pytest.approx(1),
        -0.5,
    )
    assert (far.id, far.power) == (2, pytest.approx(-60.0)), "20 dB a decade"


def test_walls_weaken_it() -> None:
    wall = ((2, -1, 2, 1),)
    (found,) = heard(BeaconFinderSpec(), beacon(10, 0, 3), walls=wall)
    assert (found.in_sight, found.power) == (False, pytest.approx(-72.0))
    assert heard(BeaconFinderSpec(), beacon(10, 0, 3))[0].in_sight


def test_it_hears_within_its_range_all_around() -> None:
    assert heard(BeaconFinderSpec(range_max=5.0), beacon(6, 0, 1)) == []
    (behind,) = heard(BeaconFinderSpec(), beacon(-1, 0, 1))
    assert behind.bearing == pytest.approx(math.pi - 0.5)


def test_errors_have_the_deviation_that_is_asked_for() -> None:
    robot = hearing(BeaconFinderSpec(range_noise=0.2), beacon(5, 0, 1))
    ranges = []
    for _ in range(400):
        robot.simulation.step()
        ranges.append(robot.devices["beacon_finder"].read()[0].range)

    assert np.mean(ranges) == pytest.approx(5.0, abs=0.05)
    assert np.std(ranges) == pytest.approx(0.2, rel=0.2)
    exact = hearing(
        BeaconFinderSpec(range_noise=0.2), beacon(5, 0, 1), sensor_noise=False
    )
    assert exact.devices["beacon_finder"].read()[0].range == pytest.approx(5.0)
