from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from botyard.devices.electrics import Electrics
from botyard.devices.gps import GpsSpec, geodetic, gps_fix
from botyard.devices.ranging import MAX_UNUSED_BEAMS
from botyard.devices.sonar import sonar_bundles
from botyard.geometry import Pose
from botyard.model.library import load_laser, load_robot
from botyard.model.robot import BatterySpec
from botyard.model.scene import Area, GeoReference, Scene
from botyard.model.sensors import SonarSpec, Transducer
from botyard.sim.simulation import Simulation

COLUMBIA = GeoReference(42.807191, -71.578661, 72.0)


@pytest.mark.parametrize(
    ("east", "north", "lat", "lon"),
    [
        (0, 0, 42.8071910, -71.5786610),
        (10, 0, 42.8071910, -71.57853875),
        (0, 10, 42.80728101, -71.5786610),
    ],
)
def test_gps_numbers_of_the_reference(
    east: float, north: float, lat: float, lon: float
) -> None:
    found = geodetic(COLUMBIA, east, north)
    assert found[:2] == pytest.approx((lat, lon), abs=1e-8)
    assert found[2] == pytest.approx(72.0, abs=0.01)
    above = geodetic(COLUMBIA, east, north, up=10.0)
    assert above[:2] == pytest.approx((lat, lon), abs=1e-8)
    assert above[2] == pytest.approx(82.0, abs=0.01)


def test_gps_up_is_altitude_even_at_a_pole() -> None:
    assert geodetic(COLUMBIA, 0, 0, 25.0)[2] == pytest.approx(97.0, abs=1e-3)
    assert geodetic(GeoReference(90.0, 0.0, 10.0), 0, 0)[2] == pytest.approx(
        10.0, abs=1e-3
    )


def test_gps_antenna_bad_sectors_and_no_georeference() -> None:
    bad = Area(
        kind="SimBadGPSSector", name="", corners=((5, -1), (7, -1), (7, 1), (5, 1))
    )
    scene = Scene(georeference=COLUMBIA, areas=(bad,))
    spec = GpsSpec(x=0.5, y=0.0, dop=1.5)
    ahead, behind = (
        gps_fix(scene, spec, Pose(4.8, 0, 0)),
        gps_fix(scene, spec, Pose(4.8, 0, math.pi)),
    )
    assert ahead is not None
    assert behind is not None
    assert (ahead.dop, behind.dop) == (0.0, 1.5), (
        "the antenna counts, not the robot's centre"
    )
    assert gps_fix(Scene(), spec, Pose()) is None


@pytest.mark.parametrize(
    ("box", "laser", "sonar"),
    [
        ("box", True, True),
        ("box-nolaser", False, True),
        ("box-nolaser-nosonar", False, False),
        ("box-reflector", True, True),
    ],
)
def test_boxes_are_seen_by_those_that_may(box: str, laser: bool, sonar: bool) -> None:
    """GEN-008, SEN-006, SEN-021, OBJ-002, OBJ-003:

    visible to the robot's laser and sonar, and solid in any case.
    """
    sim = Simulation(sensor_noise=False, odometry_error="none")
    robot = sim.add_robot("p3dx", pose=Pose())
    sim.add_robot(box, pose=Pose(1.5, 0.0, 0.0))
    scan = robot.laser.read()
    assert (scan.ranges[90] < 1.5) == laser
    assert (min(robot.sonar.read().ranges) < 1.5) == sonar
    assert (scan.intensities[90] > 1) == (box == "box-reflector"), "OBJ-004"
    robot.command(v=0.5)
    sim.step(60)
    assert robot.stalled


@pytest.mark.parametrize(("rays", "seen"), [(1, False), (7, True)])
def test_a_sonar_of_several_rays_reads_the_closest(rays: int, seen: bool) -> None:
    """SEN-017, SEN-018:

    an object off the axis but within the cone, for a ring of the model.
    """
    ring = SonarSpec(
        type_name="s",
        transducers=(Transducer(pose=Pose()),),
        fov=math.radians(30),
        range_max=5.0,
        rays=rays,
    )
    wall = Scene(segments=np.array([[2.0, 0.3, 2.0, 5.0]]))
    robot = Simulation(wall, sensor_noise=False).add_robot(
        replace(load_robot("p3dx"), sonar=ring), pose=Pose()
    )
    assert robot.sonar.read().ranges.tolist() == [
        pytest.approx(2.0 / math.cos(math.radians(10))) if seen else 5.0
    ]


def test_a_lasers_bearings_err_as_its_model_says() -> None:
    """SEN-003, SEN-004:

    ranges to a slanted wall vary with the angle's error alone, and not without noise.
    """
    wall = Scene(segments=np.array([[1.0, -9.0, 3.0, 9.0]]))
    spread = []
    for degrees, noise in ((1.0, True), (0.1, True), (1.0, False), (0.0, True)):
        spec = replace(
            load_laser("lms200"), range_noise=0.0, angle_noise=math.radians(degrees)
        )
        robot = Simulation(wall, sensor_noise=noise).add_robot(
            replace(load_robot("p3dx"), lasers=(spec,)), pose=Pose()
        )
        exact = Simulation(wall, sensor_noise=False).add_robot(
            replace(load_robot("p3dx"), lasers=(spec,)), pose=Pose()
        )
        spread.append(
            float(
                np.abs(robot.laser.read().ranges - exact.laser.read().ranges)[
                    60:120
                ].mean()
            )
        )

    assert spread[0] > 5 * spread[1] > 0
    assert spread[2:] == [0.0, 0.0]


def test_electrics() -> None:
    e = Electrics.of(BatterySpec())
    e.test_battery(121)
    assert e.volts == 12.1
    e.test_battery(0)
    assert e.volts == 13.0
    c = Electrics.of(BatterySpec(by_charge=True, charge=100))
    c.test_battery(40)
    assert (c.charge, c.volts) == (40, 13.0)
    e.write_outputs(mask=0x0F, states=0x05)
    assert e.digout == 0xF5
    e.write_outputs(mask=0xF0, states=0x00)
    assert e.digout == 0x05, "bits can be set and cleared"


def test_unconnected_transducers_read_the_greatest_range() -> None:
    sim = Simulation(
        Scene(
            segments=np.array(
                [[1.0, -9, 1.0, 9], [-1.5, -9, -1.5, 9], [-9, 1, 9, 1], [-9, -1, 9, -1]]
            )
        )
    )
    ranges = sim.add_robot("powerbot", pose=Pose()).sonar.read().ranges
    assert (ranges[[7, 15, 23, 31]] == 5.0).all()
    assert (np.delete(ranges, [7, 15, 23, 31]) < 5.0).all()


def test_a_ring_with_several_rays_takes_the_closest() -> None:
    from dataclasses import replace

    spec = load_robot("amigo").sonar
    assert spec is not None
    bundles = sonar_bundles(replace(spec, rays=6))
    assert all(b.shortest and b.count == 6 for b in bundles)
    assert bundles[0].angle0 == pytest.approx(-math.radians(15))


def test_a_sensor_without_reader_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = Simulation.load("office")
    robot = sim.add_robot("p3dx")
    calls = []
    monkeypatch.setattr(sim.core.devices, "_cast", lambda *a: calls.append(a))
    sim.step(5)
    assert calls == []
    robot.laser.subscribe("me")
    for _ in range(5):
        sim.step()
    assert len(calls) == 5
    sim.step(5)
    assert len(calls) == 7, (
        "what is measured between the first and the last of several steps nobody would see"
    )
    robot.laser.subscribe("me", False)
    sim.step(5)
    assert len(calls) == 7


def test_readings_belong_to_the_pose_after_the_move() -> None:
    sim = Simulation(Scene(segments=np.array([[5.0, -9, 5.0, 9]])), sensor_noise=False)
    robot = sim.add_robot("p3dx", pose=Pose())
    robot.laser.subscribe("me")
    robot.command(v=1.0)
    for _ in range(10):
        sim.step()
        assert robot.laser.read().ranges[90] == pytest.approx(
            5.0 - robot.truth.x, abs=1e-9
        )
        assert robot.laser.read().stamp == sim.time
    assert robot.truth.x > 0.1, "it has moved"


def test_reconfiguring_a_laser_keeps_its_readers() -> None:
    sim = Simulation.load("office")
    robot = sim.add_robot("p3dx")
    robot.laser.subscribe("me")
    robot.laser.configure(-0.5, 0.1, 11)
    sim.step()
    scan = robot.laser.read()
    assert len(scan.ranges) == 11
    assert scan.angles.tolist() == pytest.approx(np.linspace(-0.5, 0.5, 11).tolist())
    assert robot.laser.is_read
    robot.laser.configure(0.0, 0.0, 0)
    sim.step()
    assert len(robot.laser.read().ranges) == 0


def test_devices_of_removed_robots_go_with_them() -> None:
    sim = Simulation.load("office")
    for name in ("a", "b", "c"):
        sim.add_robot("p3dx", name).laser.subscribe("me")
    sim.step()
    sim.remove_robot("b")
    sim.step(2)
    assert list(sim.robots) == ["a", "c"]
    assert len(sim.robots["c"].laser.read().ranges) == 181
    assert {k[0] for k in sim.core.devices._devices} == {"a", "c"}
    sim.add_robot("amigo", "b")
    sim.step()
    assert sim.robots["b"].sonar is not None


def test_sectors_of_many_directions_are_those_of_each() -> None:
    from botyard.devices.fans import _sectors
    from botyard.engine.kernels.beams import sector_of

    angles = np.concatenate(
        [np.linspace(-10.0, 10.0, 4001), np.arange(-8, 9) * math.pi / 8]
    )
    x, y = (
        np.append(np.cos(angles), [0.0, -0.0, 1.0, -1.0]),
        np.append(np.sin(angles), [0.0, -0.0, -0.0, -0.0]),
    )
    assert _sectors(x, y).tolist() == [
        sector_of(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]


def test_rays_that_change_often_are_made_once_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client may send a thousand settings between two steps.

    Only the last ones are computed, and large ones are not cached.
    """
    from botyard.devices import fans

    sim = Simulation()
    robot = sim.add_robot("p3dx", "r")
    robot.laser.subscribe("me")
    sim.step()
    made: list[int] = []
    beams = fans._beams
    monkeypatch.setattr(
        fans,
        "_beams",
        lambda bundles: (made.append(bundles[0].count), beams(bundles))[1],
    )
    known = fans._known.cache_info().currsize
    for n in range(1000):
        robot.laser.configure(-1.0, 0.0001, 2500 + n)
    sim.step()
    assert made == [3499]
    assert len(robot.laser.read().ranges) == 3499
    assert fans._known.cache_info().currsize == known


def test_beams_that_clients_have_given_up_are_forgotten() -> None:
    """Each reconfiguration of a laser makes beams; unused ones are freed."""
    sim = Simulation()
    laser = sim.add_robot("p3dx", pose=Pose()).laser
    for k in range(40):
        laser.configure(-1.0, 1e-5, 3000 + k)
        assert len(laser.read().ranges) == 3000 + k

    assert (
        sum(len(kind.sector) for _, kind in sim.core.devices._kinds.values())
        < MAX_UNUSED_BEAMS + 2 * 3040
    )


def test_reading_begins_and_ends_between_steps() -> None:
    """Steps skip a sensor without readers.

    A new reader is served from the next step on, whatever readers came before.
    """
    sim = Simulation(seed=1)
    ann, bob = (
        sim.add_robot("p3dx", name, pose=(3.0 * k, 0.0, 0.0))
        for k, name in enumerate(("ann", "bob"))
    )
    sim.step(2)
    assert not sim.fleet.taken.any()
    bob.laser.subscribe("test")
    sim.step()
    assert sim.fleet.taken.sum() == 1
    sim.remove_robot("ann")
    sim.step()
    assert sim.fleet.taken.sum() == 1
    late = sim.add_robot("p3dx", "eve", pose=(0.0, 5.0, 0.0))
    late.laser.subscribe("test")
    sim.step()
    assert sim.fleet.taken.sum() == 2
    sim.remove_robots(["bob", "eve"])
    ann = sim.add_robot("p3dx", "ann")
    sim.step(2)
    assert not sim.fleet.taken.any()
    ann.laser.subscribe("test")
    sim.step()
    assert sim.fleet.taken.sum() == 1
    ann.laser.subscribe("test", False)
    sim.step()
    assert not sim.fleet.taken.any()
