"""GNSS with errors and multipath, and ranges to ultra-wideband anchors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.gnss import GNSS, MULTIPATH_CELL, GnssSpec, multipath_at
from botyard.devices.gps import geodetic
from botyard.devices.uwb import UWB, UwbSpec
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.devices import DeviceSpec
from botyard.model.scene import Area, GeoReference, Place, Scene

ORIGIN = GeoReference(48.1, 11.5, 520.0)
EARTH = 6_371_000.0


def zone(kind: str) -> Area:
    """Return a sector that covers x > 0."""
    return Area(kind=kind, name="", corners=((0, -90), (90, -90), (90, 90), (0, 90)))


def robot_with(
    spec: DeviceSpec, scene: Scene, x: float = 0.0, y: float = 0.0, **options: Any
) -> tuple[Any, Any]:
    sim = botyard.Simulation(scene, **({"seed": 7} | options))
    robot = sim.add_robot(find_robot("p3dx").fitted(spec), "a", pose=(x, y, 0.0))
    return sim, robot


def metres(fix: Any) -> np.ndarray:
    """Return a fix as metres east, north and up of the origin (small angles)."""
    return np.array(
        [
            math.radians(fix.longitude - ORIGIN.longitude)
            * EARTH
            * math.cos(math.radians(ORIGIN.latitude)),
            math.radians(fix.latitude - ORIGIN.latitude) * EARTH,
            fix.altitude - ORIGIN.altitude,
        ]
    )


def fixes(spec: GnssSpec, count: int, **options: Any) -> np.ndarray:
    sim, robot = robot_with(spec, Scene(georeference=ORIGIN), **options)
    found = []
    for _ in range(count):
        sim.step()
        found.append(metres(robot.devices["gnss"].read()))
    return np.array(found)


# -- GNSS


def test_without_errors_a_fix_is_the_true_position() -> None:
    spec = GnssSpec(pose=Pose(0.3, 0.1, 0.0))
    sim, robot = robot_with(spec, Scene(georeference=ORIGIN), 5.0, -2.0)
    sim.step()
    fix = robot.devices["gnss"].read()
    assert fix[:3] == pytest.approx(geodetic(ORIGIN, 5.3, -1.9), abs=1e-12)
    assert fix.is_fixed and fix.variance == 0.0


def test_white_noise_has_its_deviation() -> None:
    found = fixes(GnssSpec(deviation=0.5), 500)
    assert found.std(axis=0) == pytest.approx([0.5, 0.5, 0.75], rel=0.12)
    # Independent from step to step.
    assert abs(np.corrcoef(found[1:, 0], found[:-1, 0])[0, 1]) < 0.15


def test_the_wandering_error_has_its_deviation_and_correlation_time() -> None:
    """Many receivers: σ is the same at all times, the correlation is exp(−t / T)."""
    sim = botyard.Simulation(Scene(georeference=ORIGIN), seed=3)
    model = find_robot("p3dx").fitted(GnssSpec(drift=2.0, drift_time=4.0))
    robots = [sim.add_robot(model, f"r{k}", pose=(0, 3.0 * k, 0)) for k in range(150)]
    true = np.array([3.0 * k for k in range(150)])

    def errors() -> np.ndarray:
        north = np.array([metres(r.devices["gnss"].read())[1] for r in robots])
        return north - true * (north[-1] - north[0]) / (north[-1] - north[0])

    sim.step()
    first = errors()
    assert first.std() == pytest.approx(2.0, rel=0.3)
    sim.step(40)
    later = errors()
    assert later.std() == pytest.approx(2.0, rel=0.3)
    assert np.corrcoef(first, later)[0, 1] == pytest.approx(math.exp(-1.0), abs=0.2)


def test_multipath_is_a_field_with_variance_one() -> None:
    places = np.random.default_rng(1).uniform(-500, 500, (800, 2))
    found = np.array([multipath_at(5, x, y) for x, y in places])
    assert found.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.12)
    assert found.std(axis=0) == pytest.approx([1, 1, 1], rel=0.08)
    # It is continuous, and differs at the distance of some cells and for another seed.
    here = np.array(multipath_at(5, 1.0, 2.0))
    assert np.abs(here - multipath_at(5, 1.0 + 1e-6, 2.0)).max() < 1e-4
    assert np.abs(here - multipath_at(5, 1.0 + 5 * MULTIPATH_CELL, 2.0)).max() > 0.05
    assert multipath_at(6, 1.0, 2.0) != multipath_at(5, 1.0, 2.0)


def test_multipath_acts_in_its_zones_alone_and_is_constant_at_rest() -> None:
    scene = Scene(georeference=ORIGIN, areas=(zone("MultipathSector"),))
    spec = GnssSpec(multipath=3.0)
    for x in (-5.0, 5.0):
        sim, robot = robot_with(spec, scene, x, 1.0)
        found = []
        for _ in range(3):
            sim.step()
            found.append(robot.devices["gnss"].read())
        assert len(set(found)) == 1
        east, north, up = (
            3.0 * e for e in multipath_at(sim.core.engine.seed_word, x, 1.0)
        )
        if x < 0:
            east = north = up = 0.0
        expected = geodetic(ORIGIN, x + east, 1.0 + north, 1.5 * up)
        assert found[0][:3] == pytest.approx(expected, abs=1e-12)


def test_a_bad_sector_gives_no_fix_and_messages_say_so() -> None:
    scene = Scene(georeference=ORIGIN, areas=(zone("BadGPSSector"),))
    (ros,) = GNSS.ros_messages
    spec = GnssSpec(deviation=0.5, drift=1.0)
    for x, status in ((-5.0, 0), (5.0, -1)):
        sim, robot = robot_with(spec, scene, x)
        sim.step()
        message = ros.fields(spec, robot.devices["gnss"].read())
        assert message["status"]["status"] == status
        assert message["position_covariance"][0] == pytest.approx(1.25)
        assert message["position_covariance"][8] == pytest.approx(1.25 * 1.5**2)
    sim, robot = robot_with(spec, Scene())
    assert robot.devices["gnss"].read() is None
    assert ros.fields(spec, None) is None


def test_a_restored_receiver_continues_to_wander() -> None:
    spec = GnssSpec(drift=2.0, drift_time=5.0)
    sim, robot = robot_with(spec, Scene(georeference=ORIGIN))
    sim.step(5)
    state = sim.save_state()
    sim.step(5)
    expected = robot.devices["gnss"].read()
    sim.restore(state)
    sim.step(5)
    assert sim.robots["a"].devices["gnss"].read() == expected


# -- UWB

HALL = Scene(
    # A wall hides the anchor in the east.
    segments=np.array([[5.0, -3.0, 5.0, 3.0]]),
    places=(
        Place(kind="UwbAnchor", name="east", pose=Pose(10.0, 0.0)),
        Place(kind="UwbAnchor", name="north", pose=Pose(3.0, 8.0)),
        Place(kind="Goal", name="no anchor", pose=Pose(1.0, 1.0)),
        Place(kind="UwbAnchor", name="far", pose=Pose(-80.0, 0.0)),
    ),
)


def uwb(count: int, spec: UwbSpec, **options: Any) -> list[list[Any]]:
    sim, robot = robot_with(spec, HALL, **options)
    found = []
    for _ in range(count):
        sim.step()
        found.append(robot.devices["uwb"].read())
    return found


def test_exact_ranges_are_distances_in_space_to_anchors_in_range() -> None:
    spec = UwbSpec(pose=Pose(0.0, 0.5, 1.0), height=2.0)
    (found,) = uwb(1, spec)
    assert [r.anchor for r in found] == ["east", "north"]
    assert [r.range for r in found] == pytest.approx(
        [math.sqrt(100 + 0.25 + 4), math.sqrt(9 + 7.5**2 + 4)]
    )
    # Marks of the page are in the robot's frame.
    marks = UWB.marks(spec, found)
    assert (marks[0].x, marks[0].y) == pytest.approx((10.0, 0.0))


def test_hidden_anchors_have_a_bias_and_a_deviation_of_their_own() -> None:
    spec = UwbSpec(deviation=0.05, hidden_bias=0.6, hidden_deviation=0.3)
    found = np.array([[r.range for r in one] for one in uwb(400, spec)])
    errors = found - [10.0, math.sqrt(73.0)]
    assert errors.mean(axis=0) == pytest.approx([0.6, 0.0], abs=0.05)
    assert errors.std(axis=0) == pytest.approx([0.3, 0.05], rel=0.12)
    (exact,) = uwb(1, spec, sensor_noise=False)
    assert exact[0].range == pytest.approx(10.0)


def test_ranges_fail_at_random() -> None:
    found = uwb(400, UwbSpec(missing=0.1, hidden_missing=0.5))
    shares = [
        sum(any(r.anchor == name for r in one) for one in found) / 400
        for name in ("east", "north")
    ]
    assert shares == pytest.approx([0.5, 0.9], abs=0.07)
    all_of = uwb(3, UwbSpec(missing=1.0, hidden_missing=1.0), sensor_noise=False)
    assert all(len(one) == 2 for one in all_of)


def test_another_anchor_does_not_change_the_errors_of_those_before() -> None:
    spec = UwbSpec(deviation=0.1)
    expected = uwb(3, spec)
    more = replace(
        HALL, places=(*HALL.places, Place(kind="UWBAnchor", name="n", pose=Pose(1, 1)))
    )
    sim, robot = robot_with(spec, more)
    sim.step(3)
    assert [r.range for r in robot.devices["uwb"].read()[:2]] == [
        r.range for r in expected[-1]
    ]
