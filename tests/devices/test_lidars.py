"""Lidars with timing and optics: sweeps, materials, intensities, echoes, data sheets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.laser import LASER, laser_bundle
from botyard.engine.kernels.lidar import remission, signal
from botyard.engine.wallgrid import build_grid, wall_materials
from botyard.errors import ModelError
from botyard.formats.models import find_robot
from botyard.geometry import Pose, compose
from botyard.interfaces.page.viewsource import _group
from botyard.model.library import laser_names, load_laser, parse_robot
from botyard.model.materials import CODES, MATERIALS, WHITE, Material
from botyard.model.obstacles import BoxObject, Returns
from botyard.model.robotfile import to_table
from botyard.model.scene import Scene, SpecialWalls
from botyard.model.sensors import LaserSpec
from botyard.worlds.robot_sets import slots_of
from tests import naive

WALLS = np.array(
    [(-5, -5, 5, -5), (5, -5, 5, 5), (5, 5, -5, 5), (-5, 5, -5, -5)], np.float64
)
BOX = BoxObject(name="box", pose=Pose(2.0, 1.0, 0.4), length=0.6, width=0.4)
SWEEP = 0.1


def lidar(**changes: Any) -> LaserSpec:
    given = {
        "type_name": "lidar",
        "samples": 180,
        "fov": math.radians(358),
        "range_max": 20.0,
        "pose": Pose(0.1, 0.05, 0.3),
    }
    return LaserSpec(**(given | changes))


def world(
    spec: LaserSpec,
    scene: Scene | None = None,
    pose: tuple[float, float, float] = (0.2, -0.3, 0.7),
    **options: Any,
) -> tuple[botyard.Simulation, Any]:
    scene = Scene(segments=WALLS, boxes=(BOX,)) if scene is None else scene
    sim = botyard.Simulation(scene, seed=4, **options)
    model = replace(find_robot("p3dx"), lasers=(spec,))
    return sim, sim.add_robot(model, "a", pose=pose)


def moving(spec: LaserSpec, v: float = 0.6, w: float = 1.2) -> tuple[Any, Any]:
    """Return a robot that drives along an arc at a constant velocity."""
    sim, robot = world(spec)
    robot.command(v=v, w=w)
    sim.step(30)
    return sim, robot


def wall(*, x: float, material: str = "", laser: int = 1) -> Scene:
    """Return a scene of one wall across the x axis."""
    returns = Returns(laser=laser, material=material)
    return Scene(
        segments=np.array([(x, -50.0, x, 50.0)]),
        special_walls=(SpecialWalls(first=0, last=1, returns=returns),),
    )


# -- timing


@pytest.mark.parametrize("sign", [1, -1])
def test_rays_of_a_sweep_start_where_the_robot_was_at_their_times(sign: int) -> None:
    """Each ray equals the naive ray of the pose at its time; the scan has these times."""
    spec = lidar(time_increment=sign * SWEEP / 180)
    _, robot = moving(spec)
    scan, now, twist = robot.laser.read(), robot.truth, robot.velocity
    assert scan.time_increment == pytest.approx(sign * SWEEP / 180)
    bodies = [(BOX.outlines[0], BOX.pose)]
    for k in range(len(scan.ranges)):
        ago = 3.0 - (scan.stamp + k * scan.time_increment)
        assert 0.0 <= ago <= SWEEP
        then = compose(Pose(*now), Pose(*naive.exp(tuple(twist), -ago)))
        at = compose(then, spec.pose)
        (expected,) = naive.scan(
            at, [scan.angles[k]], WALLS.tolist(), bodies, spec.range_max
        )
        assert scan.ranges[k] == pytest.approx(expected, abs=1e-9)


def test_a_filter_undoes_the_distortion() -> None:
    """With the poses at the times of the rays, all points lie on the walls again."""
    spec = lidar(time_increment=SWEEP / 180, pose=Pose())
    sim, robot = world(spec, Scene(segments=WALLS))
    robot.command(v=0.6, w=1.2)
    sim.step(30)
    scan, now, twist = robot.laser.read(), Pose(*robot.truth), tuple(robot.velocity)

    def off_the_walls(moved: bool) -> float:
        worst = 0.0
        for k, (r, bearing) in enumerate(zip(scan.ranges, scan.angles, strict=True)):
            ago = (sim.time - scan.stamp - k * scan.time_increment) * moved
            at = compose(now, Pose(*naive.exp(twist, -ago)))
            x, y = (
                at.x + r * math.cos(at.th + bearing),
                at.y + r * math.sin(at.th + bearing),
            )
            worst = max(worst, abs(max(abs(x), abs(y)) - 5.0))
        return worst

    assert off_the_walls(moved=False) > 0.1
    assert off_the_walls(moved=True) < 1e-9


def test_a_robot_at_rest_has_no_distortion() -> None:
    for spec in (lidar(), lidar(time_increment=SWEEP / 180)):
        sim, robot = world(spec)
        sim.step(3)
        scan = robot.laser.read()
        if not spec.time_increment:
            expected = scan
            assert (scan.stamp, scan.time_increment) == (pytest.approx(0.3), 0.0)
    assert scan.stamp == pytest.approx(0.3 - SWEEP * 179 / 180)
    np.testing.assert_allclose(scan.ranges, expected.ranges, atol=1e-12)


def test_errors_of_a_lidar_are_those_of_other_lasers() -> None:
    """Range, bearing and missing draws do not depend on the kernel that casts the rays."""
    noisy = {"range_noise": 0.02, "angle_noise": 0.01, "missing": 0.1}
    found = []
    for more in ({}, {"white_range": 1e4}):
        _, robot = moving(lidar(**noisy, **more))
        found.append(robot.laser.read())
    np.testing.assert_allclose(found[1].ranges, found[0].ranges, atol=1e-12)
    assert (found[1].intensities == found[0].intensities).all()
    assert (found[0].intensities == 0).any()


def test_threads_and_other_readers_do_not_change_a_sweep() -> None:
    spec = lidar(
        samples=2000, time_increment=SWEEP / 2000, white_range=6.0, range_noise=0.01
    )
    scans = []
    for threads in (1, 2):
        sim = botyard.Simulation(Scene(segments=WALLS), seed=4, threads=threads)
        model = replace(find_robot("p3dx"), lasers=(spec,))
        robots = [
            sim.add_robot(model, f"r{k}", pose=(k - 1.0, 0.5 * k, 0.3))
            for k in range(3)
        ]
        for robot in robots:
            robot.laser.subscribe("test")
            robot.command(v=0.3, w=0.5)
        sim.step(5)
        scans.append([robot.laser.read().ranges for robot in robots])
    assert all((a == b).all() for a, b in zip(*scans, strict=True))


def test_a_restored_state_continues_with_the_same_sweeps() -> None:
    spec = lidar(time_increment=SWEEP / 180, white_range=6.0, measurement_rate=4.0)
    sim, robot = moving(spec)
    state = sim.save_state()
    sim.step(7)
    expected = robot.laser.read()
    sim.restore(state)
    sim.step(7)
    again = sim.robots["a"].laser.read()
    assert again.stamp == expected.stamp
    assert (again.ranges == expected.ranges).all()


def test_clients_that_configure_rays_keep_the_pace_of_the_sweep() -> None:
    spec = lidar(time_increment=SWEEP / 180)
    sim, robot = moving(spec)
    robot.laser.configure(-1.0, 2 * spec.increment, 20)
    sim.step()
    scan = robot.laser.read()
    assert scan.time_increment == pytest.approx(2 * spec.time_increment)
    assert scan.stamp == pytest.approx(sim.time - 19 * scan.time_increment)


# -- materials


def test_remission_is_lamberts_law_and_a_glossy_lobe() -> None:
    for angle in (0.0, 0.3, 1.2):
        assert remission(0.5, 0.0, math.cos(angle)) == pytest.approx(
            0.5 * math.cos(angle)
        )
        lobe = max(0.0, math.cos(2 * angle)) ** 256
        assert remission(0.1, 0.6, math.cos(angle)) == pytest.approx(
            math.cos(angle) * (0.1 + 0.6 * 129.0 * lobe)
        )
    assert signal(1.0, 12.0, 12.0) == 1.0
    assert signal(0.25, 12.0, 6.0) == pytest.approx(1.0)


@pytest.mark.parametrize(("material", "reach"), [("white", 12.0), ("black", 4.0)])
def test_surfaces_are_seen_up_to_the_range_of_their_remission(
    material: str, reach: float
) -> None:
    """Without errors the limit is sharp: R √(ρ / 0.9), which is R / 3 for a black target."""
    spec = lidar(samples=1, fov=0.0, pose=Pose(), white_range=12.0, range_max=20.0)
    for x, seen in ((reach - 0.01, True), (reach + 0.01, False)):
        sim, robot = world(
            spec,
            wall(x=0.2 + x, material=material),
            sensor_noise=False,
            pose=(0.2, 0.0, 0.0),
        )
        sim.step()
        scan = robot.laser.read()
        assert scan.ranges[0] == pytest.approx(x if seen else 20.0)
        assert (scan.intensities[0] > 0) == seen


def test_a_wall_is_lost_where_rays_are_too_oblique() -> None:
    spec = lidar(samples=171, fov=math.radians(170), pose=Pose(), white_range=12.0)
    sim, robot = world(spec, wall(x=8.0), sensor_noise=False, pose=(0.0, 0.0, 0.0))
    sim.step()
    scan = robot.laser.read()
    cosines = np.cos(scan.angles)
    # r = 8 / cos α, and the signal is cos α (12 / r)².
    seen = cosines * (12.0 * cosines / 8.0) ** 2 >= 1.0
    assert (scan.intensities > 0).tolist() == seen.tolist()
    assert seen.any() and not seen.all()


def test_weak_echoes_are_lost_at_random() -> None:
    """The share of rays with an echo is the signal: 1/9 · (12/8)² = 1/4 on a black wall."""
    spec = lidar(samples=400, fov=1e-6, pose=Pose(), white_range=12.0)
    sim, robot = world(spec, wall(x=8.0, material="black"), pose=(0.0, 0.0, 0.0))
    shares = []
    for _ in range(10):
        sim.step()
        shares.append((robot.laser.read().intensities > 0).mean())
    # The standard deviation of the mean of 4000 draws is 0.007.
    assert np.mean(shares) == pytest.approx(0.25, abs=0.03)
    assert len(set(shares)) > 1


def test_glass_is_seen_head_on_and_otherwise_what_stands_behind() -> None:
    glass = Scene(
        segments=np.array([(3.0, -50.0, 3.0, 50.0), (6.0, -50.0, 6.0, 50.0)]),
        special_walls=(
            SpecialWalls(first=0, last=1, returns=Returns(material="glass")),
        ),
    )
    spec = lidar(samples=3, fov=1.0, pose=Pose(), white_range=30.0)
    sim, robot = world(spec, glass, sensor_noise=False, pose=(0.0, 0.0, 0.0))
    sim.step()
    left, ahead, right = robot.laser.read().ranges
    assert ahead == pytest.approx(3.0)
    assert left == right == pytest.approx(6.0 / math.cos(0.5))


def test_several_echoes_come_nearest_first_and_weaker() -> None:
    scene = Scene(
        segments=np.array([(3.0, -50.0, 3.0, 50.0), (6.0, -50.0, 6.0, 50.0)]),
        special_walls=(
            SpecialWalls(first=0, last=1, returns=Returns(material="mesh")),
        ),
    )
    spec = lidar(
        samples=3, fov=0.2, pose=Pose(), white_range=30.0, echoes=3, intensity=1000.0
    )
    sim, robot = world(spec, scene, sensor_noise=False, pose=(0.0, 0.0, 0.0))
    robot.laser.subscribe("test")
    sim.step()
    scan = robot.laser.read()
    assert scan.echoes.shape == scan.echo_intensities.shape == (3, 3)
    assert scan.ranges.tolist() == scan.echoes[0].tolist()
    assert scan.echoes[:, 1].tolist() == pytest.approx([3.0, 6.0, 20.0])
    mesh = MATERIALS["mesh"]
    assert scan.echo_intensities[:, 1].tolist() == [
        round(1000 * mesh.matt / WHITE),
        round(1000 * mesh.clear**2),
        0,
    ]
    assert sim.fleet.ranges("laser").shape == (1, 3)


def test_intensity_follows_incidence_and_reflectors_outshine_it() -> None:
    spec = lidar(samples=91, fov=math.pi / 2, pose=Pose(), intensity=500.0)
    for laser in (1, 4):
        sim, robot = world(spec, wall(x=5.0, laser=laser), pose=(0.0, 0.0, 0.0))
        sim.step()
        scan = robot.laser.read()
        expected = 500.0 * (
            np.cos(scan.angles) if laser == 1 else 4.0 + 0 * scan.angles
        )
        assert np.abs(scan.intensities - expected).max() <= 0.5
        # Pioneer clients and the page get the laser return.
        assert scan.returns.tolist() == [laser] * 91


def test_bodies_have_materials_and_the_map_may_change_them() -> None:
    dark = replace(BOX, pose=Pose(8.0, 0.0, 0.0), returns=Returns(material="velvet"))
    spec = lidar(samples=1, fov=0.0, pose=Pose(), white_range=12.0)
    for box, seen in ((dark, False), (replace(dark, returns=Returns()), True)):
        sim, robot = world(
            spec, Scene(boxes=(box,)), sensor_noise=False, pose=(0.0, 0.0, 0.0)
        )
        sim.step()
        assert (robot.laser.read().intensities[0] > 0) == seen


def test_materials_of_walls_are_in_the_order_of_the_grid() -> None:
    scene = Scene(
        segments=WALLS,
        special_walls=(
            SpecialWalls(first=1, last=2, returns=Returns(material="glass")),
            SpecialWalls(first=3, last=4, returns=Returns(laser=2, material="black")),
        ),
    )
    grid, codes = build_grid(scene), wall_materials(scene)
    assert len(codes) == len(grid.seg)
    assert ((codes == CODES["black"]) == (grid.bright == 2)).all()
    # Wall 1 is the one at x = 5 m: it goes up, and no other wall does.
    assert ((codes == CODES["glass"]) == (grid.seg[:, 3] > 1.0)).all()
    assert not len(wall_materials(Scene(segments=WALLS)))


def test_materials_conserve_light() -> None:
    for name, shares in MATERIALS.items():
        assert all(0.0 <= share <= 1.0 for share in shares) and sum(shares) <= 1.0, name
    assert next(iter(MATERIALS)) == "" and MATERIALS["black"] == Material(0.1)


# -- descriptions


def test_lidars_are_written_to_robot_files_and_read_back() -> None:
    text = 'extends = "p3dx"\nlasers = [{ type = "lms111", pose = [0.1, 0, 0] }]'
    spec = parse_robot(text, "r")
    assert spec.lasers[0] == replace(load_laser("lms111"), pose=Pose(0.1, 0.0, 0.0))
    from botyard.model.library import robot_of

    assert robot_of(to_table(spec), "r").lasers == spec.lasers


def test_the_time_of_a_scan_is_that_of_the_measurement_rate() -> None:
    sim = botyard.Simulation(step=0.05)
    robot = sim.add_robot("p3dx", lasers=["rplidar-a1"])
    assert robot.laser.read().scan_time == pytest.approx(1.0 / 5.5)
    robot.set_parameters(range_rate=2.0)
    assert robot.laser.read().scan_time == 0.5
    # A rate above the rate of steps has no effect.
    robot.set_parameters(range_rate=100.0)
    assert robot.laser.read().scan_time == 0.05


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time_increment": 0.1}, "a sweep must take at most 10 s"),
        (
            {"samples": 360, "time_increment": 0.01, "measurement_rate": 5.5},
            r"at most the 0\.1818 s between two measurements .* 3\.59 s",
        ),
        ({"echoes": 2}, "echoes need a white_range"),
        ({"echoes": 9, "white_range": 5.0}, "echoes"),
        ({"white_range": -1.0}, "white_range"),
        ({"intensity": 1e6}, "intensity"),
    ],
)
def test_wrong_lidars_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        lidar(**changes)
    with pytest.raises(ModelError, match=r'expected one of white.*found "glas".*glass'):
        Returns(material="glas")


SHEETS = {
    # name: rays a turn, turns a second, range of a white surface (m), echoes
    "lds01": (360, 5, 3.5, 1),
    "rplidar-a1": (360, 5.5, 12.0, 1),
    "ust10lx": (1440, 40, 10.0, 1),
    "rplidar-a2": (400, 10, 12.0, 1),
    "rplidar-a3": (1600, 10, 25.0, 1),
    "rplidar-s1": (920, 10, 40.0, 1),
    "rplidar-s2": (3200, 10, 30.0, 1),
    "rplidar-s3": (3200, 10, 40.0, 1),
    "rplidar-c1": (500, 10, 12.0, 1),
    "urg04lx": (1024, 10, 5.6, 1),
    "utm30lx": (1440, 40, 30.0, 1),
    "utm30lx-ew": (1440, 40, 30.0, 3),
    "tim551": (360, 15, 10.0, 1),
    "tim561": (1080, 15, 10.0, 1),
    "tim571": (1080, 15, 25.0, 1),
    "tim781": (1080, 15, 25.0, 1),
    "lms111": (720, 50, 20.0, 2),
    "vlp16": (1800, 10, 100.0, 1),
}


@pytest.mark.parametrize("name", SHEETS)
def test_lidars_keep_their_data_sheets(name: str) -> None:
    """A measured scan shows rays, spacing, pace, rate and range of the data sheet."""
    per_turn, rate, reach, echoes = SHEETS[name]
    spec = load_laser(name)
    sim = botyard.Simulation(wall(x=-30.0), step=0.01)
    robot = sim.add_robot(replace(find_robot("p3dx"), lasers=(spec,)), "a")
    stamps = []
    for _ in range(101):
        sim.step()
        stamps.append(robot.laser.view().stamp)
    scan = robot.laser.read()
    # At steps of 10 ms each measurement is a new one up to 100 Hz.
    assert len(set(stamps)) == pytest.approx(rate, abs=1)
    assert scan.angle_increment == pytest.approx(2 * math.pi / per_turn, rel=1e-3)
    assert abs(scan.time_increment) == pytest.approx(1 / (rate * per_turn), rel=1e-4)
    assert (spec.white_range, spec.echoes, scan.range_max) == (reach, echoes, reach)
    assert name in laser_names()


def test_worlds_measure_at_one_instant() -> None:
    model = replace(find_robot("p3dx"), lasers=(load_laser("utm30lx-ew"),))
    ((spec,),) = slots_of(model)
    assert spec.lasers == (load_laser("utm30lx-ew").without_optics(),)
    assert slots_of(find_robot("p3dx"))[0][0] is find_robot("p3dx")


def test_the_page_draws_first_echoes_and_marks_reflectors_alone() -> None:
    """Its group has as many readings as rays; what is bright is no reflector yet."""
    bundle = laser_bundle(load_laser("utm30lx-ew"))
    assert (bundle.n_readings, _group(0, "laser", (bundle,)).count) == (3 * 1081, 1081)


def test_messages_have_timing_and_all_echoes() -> None:
    spec = lidar(
        samples=3,
        fov=0.2,
        pose=Pose(),
        white_range=30.0,
        echoes=2,
        time_increment=0.01,
    )
    mesh = SpecialWalls(first=0, last=1, returns=Returns(material="mesh"))
    scene = Scene(
        segments=np.array([(3.0, -0.2, 3.0, 50.0), (6.0, -50.0, 6.0, 50.0)]),
        special_walls=(mesh,),
    )
    sim, robot = world(spec, scene, sensor_noise=False, pose=(0, 0, 0))
    sim.step()
    scan = robot.laser.read()
    topics = {ros.topic: ros for ros in LASER.ros_messages if ros.applies}
    message = topics["echoes{others}"].fields(spec, scan)
    assert message["time_increment"] == 0.01
    assert [len(one["echoes"]) for one in message["ranges"]] == [1, 2, 2]
    assert message["ranges"][1]["echoes"] == pytest.approx([3.0, 6.0])
    assert not topics["echoes{others}"].applies(lidar())
    # The age of a scan is the age of its first ray.
    assert sim.fleet.age_us(("a", "laser", 0)) == 20_000
