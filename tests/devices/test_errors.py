"""Error models of odometry, ranges and bearings, of the package and of plug-ins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from botyard.devices.errors import NormalErrorsSpec, WanderingOdometrySpec
from botyard.devices.fiducials import FiducialFinderSpec
from botyard.errors import ModelError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model import devices
from botyard.model.devices import Device, DeviceSpec, Errors, Field, register
from botyard.model.kinematics import Axes
from botyard.model.library import parse_robot
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.scene import Scene
from botyard.sim.simulation import Robot, Simulation
from botyard.testing import check_device

WALL = Scene(segments=np.array([[3.0, -50, 3.0, 50]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlipSpec(DeviceSpec):
    type: str = field(default="slip", init=False)


def slip(spec: SlipSpec, view: object) -> tuple[float, float, float]:
    """Lose a fifth of the distance at full speed."""
    speed = float(view.state.vel[view.row, 0])
    return (-0.2 * min(1.0, speed / 0.5), 0.0, 0.0)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unregister the models of a test after it."""
    monkeypatch.setattr(devices, "_KNOWN", dict(devices._KNOWN))
    return


def robot(*specs: DeviceSpec, scene: Scene = WALL, **options: object) -> Robot:
    plain = find_robot("p3dx")
    lasers = tuple(
        replace(laser, range_noise=0.0, angle_noise=0.0) for laser in plain.lasers
    )
    return Simulation(scene, **options).add_robot(
        replace(plain, lasers=lasers, devices=specs), "r", pose=(0, 0, 0)
    )


def middle(one: Robot, steps: int) -> np.ndarray:
    """Return the middle reading of the laser after each step."""
    one.laser.subscribe("me")
    found = []
    for _ in range(steps):
        one.simulation.step()
        found.append(one.laser.ranges[90])

    return np.array(found)


def test_ranges_err_normally() -> None:
    exact = middle(robot(), 1)[0]
    ranges = middle(robot(NormalErrorsSpec(range_deviation=0.05, range_bias=0.2)), 400)
    assert ranges.mean() == pytest.approx(exact + 0.2, abs=0.01)
    assert ranges.std() == pytest.approx(0.05, rel=0.15)
    assert (
        np.ptp(
            middle(robot(NormalErrorsSpec(range_deviation=0.05), sensor_noise=False), 5)
        )
        == 0.0
    )


def test_everybody_gets_the_same_error_and_what_met_nothing_has_none() -> None:
    one = robot(NormalErrorsSpec(range_deviation=0.05))
    sim = one.simulation
    one.laser.subscribe("me")
    sim.step()
    first, last = sim.fleet.span("r", "laser", 0)
    assert one.laser.ranges.tolist() == sim.fleet.readings[0][first:last].tolist()
    far = one.laser.spec.range_max
    assert (one.laser.ranges[:3] == far).all() and one.laser.ranges.max() == far
    assert (
        robot(NormalErrorsSpec(range_deviation=9.0)).laser.ranges.min()
        >= one.laser.spec.range_min
    )
    unread = robot(NormalErrorsSpec(range_deviation=0.05))
    unread.simulation.step()
    assert unread.laser.ranges.tolist() == one.laser.ranges.tolist(), (
        "read in between or in the step"
    )


def test_a_model_is_of_the_sensor_that_it_names() -> None:
    plain, erring = robot(), robot(NormalErrorsSpec(sensor="sonar", range_bias=-0.5))
    assert erring.laser.ranges.tolist() == plain.laser.ranges.tolist()
    assert (erring.sonar.ranges < plain.sonar.ranges).any()
    with pytest.raises(ModelError, match='robot r has no sensor "lidar"'):
        robot(NormalErrorsSpec(sensor="lidar"))


def test_bearings_of_finders_err() -> None:
    mark = BoxObject(
        name="m", pose=Pose(2, 0, 0), length=0.2, width=0.2, returns=Returns(fiducial=7)
    )
    model = NormalErrorsSpec(
        sensor="fiducial_finder", bearing_deviation=0.02, range_deviation=0.1
    )
    one = robot(model, FiducialFinderSpec(), scene=Scene(boxes=(mark,)))
    found = []
    for _ in range(300):
        one.simulation.step()
        (fiducial,) = one.devices["fiducial_finder"].read()
        found.append((fiducial.range, fiducial.bearing))

    deviation = np.std(found, axis=0)
    assert deviation == pytest.approx([0.1, 0.02], rel=0.15)
    assert np.mean(found, axis=0) == pytest.approx([2.0, 0.0], abs=0.02)


def driven(spec: DeviceSpec | None, seconds: float = 20.0, **options: object) -> Robot:
    one = robot(*([spec] if spec else []), scene=Scene(), **options)
    one.command(v=0.5)
    one.simulation.step(round(seconds / one.simulation.dt))
    return one


def test_odometry_wanders() -> None:
    one = driven(WanderingOdometrySpec(x=0.1, y=0.0, a=0.0))
    assert abs(one.odom.x - one.truth.x) > 0.01
    assert one.odom.y == one.truth.y
    errors = []
    for _ in range(3000):
        one.simulation.step()
        errors.append(one.devices["wandering_odometry"].read()[0])

    assert np.std(errors) == pytest.approx(0.1, rel=0.4)
    assert abs(np.diff(errors)).max() < 0.1, "it wanders, and does not jump"
    assert one.state.odometry_error.x == errors[-1]


def test_a_client_switches_wandering_errors_off_and_on_again() -> None:
    one = driven(WanderingOdometrySpec(x=0.5))
    sim = one.simulation
    one.command.odometry_errors(False)
    sim.step()
    gap = one.odom.x - one.truth.x
    sim.step(20)
    assert one.odom.x - one.truth.x == pytest.approx(gap)
    one.command.odometry_errors(True)
    sim.step(20)
    assert one.odom.x - one.truth.x != pytest.approx(gap)
    assert (
        driven(WanderingOdometrySpec(x=0.5), odometry_error="none").state.odometry_error
        == Axes()
    )


def test_a_saved_world_wanders_on() -> None:
    one = driven(WanderingOdometrySpec(x=0.5))
    sim = one.simulation
    copy = sim.clone()
    for world in (sim, copy):
        world.step(30)
    assert copy.digest() == sim.digest()
    assert copy.robots["r"].odom == sim.robots["r"].odom


def test_a_robot_has_one_model_of_odometry() -> None:
    with pytest.raises(ModelError, match="another error model of odometry"):
        robot(WanderingOdometrySpec(), WanderingOdometrySpec())


def test_models_of_ones_own_and_in_robot_files() -> None:
    register(
        Device(
            name="slip",
            about="wheels slip when it is fast",
            spec=SlipSpec,
            read=slip,
            fields=(Field("x"), Field("y"), Field("a")),
            rows=lambda e: [e],
            errors=Errors(odometry=slip),
        )
    )
    spec = parse_robot(
        'extends = "p3dx"\n[slip]\n[normal_errors]\nsensor = "sonar"\nbearing_deviation_deg = 2.0',
        "r",
    )
    assert spec.device("normal_errors").bearing_deviation == pytest.approx(
        math.radians(2.0)
    )
    assert check_device(devices.find_device("slip")) == []
    one = driven(SlipSpec(), 60.0)
    assert one.odom.x == pytest.approx(0.8 * one.truth.x, rel=0.02)


def test_removed_robots_leave_no_models_behind() -> None:
    one = robot(NormalErrorsSpec(range_bias=1.0), WanderingOdometrySpec())
    sim = one.simulation
    assert {"odometry_error", "wandering_odometry"} <= set(sim.core.engine.tables)
    sim.remove_robot("r")
    assert not {"odometry_error", "wandering_odometry"} & set(sim.core.engine.tables)
    again = sim.add_robot(replace(one.spec, devices=()), "r", pose=(0, 0, 0))
    sim.step(3)
    assert again.laser.ranges.tolist() == robot().laser.ranges.tolist()
