"""The public API as the README shows it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import botyard
import botyard.errors
from botyard.engine.commands import SetVelocity, Stop
from botyard.sim.moved import MOVED


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    sim = botyard.Simulation.load("office", seed=1)
    robot = sim.add_robot("p3dx", name="bob", lasers=["lms200"])
    while sim.time < 3:
        scan = robot.laser.read()
        robot.command(v=0.3, w=0.5 if scan.ranges.min() < 0.6 else 0.0)
        sim.step()

    assert robot.truth.x > sim.scene.start.x + 0.5
    assert robot.odom.x > 0.5
    sim.render(tmp_path / "out.png", size=400)
    assert (tmp_path / "out.png").stat().st_size > 1000


def test_every_public_name_is_there() -> None:
    for name in botyard.__all__:
        assert getattr(botyard, name) is not None
    assert set(botyard.__all__) <= set(dir(botyard))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = botyard.nothing


def test_commands_by_verb() -> None:
    sim = botyard.Simulation(odometry_error="none")
    robot = sim.add_robot("seekur")
    robot.command.velocity(0.3, 0.1, 0.2)
    sim.step(30)
    assert tuple(robot.velocity) == pytest.approx((0.3, 0.2, 0.1), abs=1e-6)
    robot.command.stop()
    sim.step(30)
    robot.command.move(1.0)
    x = robot.odom
    sim.step(80)
    assert math.dist(robot.odom[:2], x[:2]) == pytest.approx(1.0, abs=1e-3)
    robot.command.turn_by(0.5)
    sim.step(120)
    robot.command.stop()
    sim.step(5)
    robot.command.set_pose(5, 5, 1)
    robot.command.reset_odometry()
    sim.step()
    assert robot.truth == pytest.approx((5, 5, 1))
    assert robot.odom == (0, 0, 0)


def test_many_robots_at_once_do_what_each_would_alone() -> None:
    """`add_robots` and `fleet.command` give the same bits as `add_robot` and `command`."""
    rng = np.random.default_rng(3)
    poses = np.column_stack(
        [np.arange(12) % 4 * 2.0, np.arange(12) // 4 * 2.0, rng.uniform(-3, 3, 12)]
    )
    names = [f"n{i}" for i in range(12)]
    together, single = botyard.Simulation(seed=5), botyard.Simulation(seed=5)
    assert [r.name for r in together.add_robots("p3dx", poses, names)] == names
    for name, pose in zip(names, poses, strict=True):
        single.add_robot("p3dx", name=name, pose=pose)
    for k in range(40):
        if k % 8 == 0:
            v, w = rng.uniform(-0.5, 0.5, 12), rng.uniform(-1, 1, 12)
            together.fleet.command(v, w)
            for robot, *speed in zip(single.robots.values(), v, w, strict=True):
                robot.command(*speed)

        together.step()
        single.step()

    assert len(together.fleet) == 12
    for i, robot in enumerate(single.robots.values()):
        assert tuple(together.fleet.poses[i]) == tuple(robot.truth)
        assert tuple(together.fleet.odometry[i]) == tuple(robot.odom)
        assert together.fleet.velocities[i, 0] == robot.velocity[0]
        assert bool(together.fleet.stalled[i]) == robot.stalled

    # The other components of the velocity keep their values.
    together.fleet.command(w=0.0)
    together.step(30)
    assert np.allclose(
        together.fleet.velocities[:, 0][~together.fleet.stalled],
        v[~together.fleet.stalled],
        atol=0.02,
    )
    assert np.allclose(together.fleet.velocities[:, 2], 0.0)


def test_the_last_command_counts_for_one_or_for_all() -> None:
    sim = botyard.Simulation(odometry_error="none")
    robots = sim.add_robots("p3dx", [(0, 0, 0), (0, 3, 0)])
    sim.fleet.command(v=0.1)
    robots[1].command(v=0.4)
    sim.step(40)
    assert sim.fleet.velocities[:, 0] == pytest.approx([0.1, 0.4])
    robots[0].command(v=0.4)
    sim.fleet.command(v=[0.2, 0.3])
    sim.step(40)
    assert sim.fleet.velocities[:, 0] == pytest.approx([0.2, 0.3])


def test_many_robots_all_or_none() -> None:
    sim = botyard.Simulation()
    sim.add_robot("p3dx", name="bob")
    with pytest.raises(botyard.WorldError, match="bob"):
        sim.add_robots("p3dx", [(1, 1, 0), (3, 3, 0)], ["ann", "bob"])
    with pytest.raises(botyard.WorldError, match="2 poses, found 1"):
        sim.add_robots("p3dx", [(1, 1, 0), (3, 3, 0)], ["ann"])
    with pytest.raises(botyard.ArgumentError, match=r"poses\[1\]: y"):
        sim.add_robots("p3dx", [(1, 1, 0), (3, math.nan, 0)])
    assert list(sim.robots) == ["bob"]
    with pytest.raises(ValueError, match="shape"):
        sim.fleet.command(v=[1.0, 2.0])
    with pytest.raises(botyard.CommandError):
        sim.fleet.command(v=math.nan)


def test_places_for_many_robots_are_free_and_apart() -> None:
    sim = botyard.Simulation.load("office")
    for _ in range(30):
        sim.add_robot("p3dx")
    assert sim.poses.shape == (30, 3)
    distances = [
        math.dist(a[:2], b[:2]) for i, a in enumerate(sim.poses) for b in sim.poses[:i]
    ]
    assert min(distances) >= 1.0 - 1e-9
    assert sim.robots["p3dx"].truth == pytest.approx(sim.scene.start)
    sim.step()
    assert not any(r.stalled for r in sim.robots.values())


def test_errors_of_the_api() -> None:
    sim = botyard.Simulation()
    with pytest.raises(botyard.ModelError, match="did you mean"):
        sim.add_robot("p3dxx")
    with pytest.raises(botyard.MapError, match="no such map"):
        botyard.Simulation.load("nowhere.map")
    with pytest.raises(botyard.WorldError, match="expected one of none"):
        botyard.Simulation(odometry_error="sometimes")
    with pytest.raises(botyard.WorldError, match="60 s"):
        botyard.Simulation(step=0.0)
    amigo = sim.add_robot("amigo")
    with pytest.raises(botyard.WorldError, match="no laser"):
        _ = amigo.laser
    with pytest.raises(botyard.CommandError, match="finite"):
        amigo.command(v=math.nan)
    with pytest.raises(botyard.ArgumentError, match="finite"):
        sim.add_robot("p3dx", pose=(0, math.inf, 0))
    for far in (1e8, -1e300):
        with pytest.raises(botyard.CommandError, match=r"within ±1e\+07 m"):
            amigo.command.set_pose(far, 0)

    assert repr(amigo).startswith("<Robot amigo: amigo at x=0.000 m")


def test_boxes_stand_in_the_way() -> None:
    sim = botyard.Simulation()
    robot = sim.add_robot("p3dx", pose=(0, 0, 0))
    sim.add_robot("box", pose=(1.0, 0, 0))
    robot.command(v=0.5)
    sim.step(60)
    assert robot.stalled
    assert robot.truth.x == pytest.approx(1.0 - 0.25 - 0.2109, abs=1e-3)


def test_pictures_show_ghosts_hollow_and_grippers_with_what_they_hold() -> None:
    sim = botyard.Simulation()
    robot = sim.add_robot("p3dx-equipped", "r", pose=(0.0, 0.0, 0.0))
    sim.add_robot("small-box", pose=(0.3, 0.0, 0.0))
    sim.add_robot("p3at", "g", pose=(0.0, 3.0, 0.0))

    def color(x: float, y: float) -> tuple[int, ...]:
        image = sim.render(size=2000)
        scale = 2000 / 21.0
        return image.getpixel(
            (round((x - (image_x0)) * scale), round((image_y1 - y) * scale))
        )

    mean = sim.poses.mean(axis=0)
    image_x0, image_y1 = mean[0] - 10.5, mean[1] + 10.5
    assert color(-0.1, 3.1)[0] > 200
    assert color(-0.1, 3.1)[1] < 60, "red"
    sim.robots["g"].ghost()
    robot.gripper.act(2)
    sim.step(12)
    assert sim.robots["g"].is_ghost
    assert min(color(-0.1, 3.1)) > 200, "hollow"
    assert not sim.robots["small-box"].is_ghost, "it is carried"
    assert color(0.3, 0.0)[0] > 200
    assert 120 < color(0.3, 0.0)[1] < 200, "orange, between the paddles"


def test_free_places_are_free_and_apart() -> None:
    from botyard.formats.models import find_robot

    for model in ("p3dx", "seekur"):
        sim = botyard.Simulation.load("office")
        spec = find_robot(model)
        places = sim.core.places.near(spec, sim.core.places.home, 25)
        assert len(set(places)) == 25
        one_by_one = botyard.Simulation.load("office")
        for place in places:
            assert one_by_one.core.places.one_near(spec, place) == place, (
                "free, with all those before it in place"
            )
            one_by_one.add_robot(spec, pose=place)

    empty = botyard.Simulation()
    assert empty.core.places.near(find_robot("p3dx"), empty.core.places.home, 1) == [
        empty.core.places.home
    ]


def walled(*walls: tuple[float, float, float, float]) -> botyard.Simulation:
    return botyard.Simulation(
        botyard.Scene(
            segments=np.array(walls, np.float64), start=botyard.Pose(0.0, 0.0, 0.0)
        )
    )


def test_robots_start_where_they_can_be_reached_from_the_home() -> None:
    """Robots start in the room of the home while it has space, then behind doors that
    are wide enough.
    """
    sim = walled(
        (-1.5, -0.5, 3.5, -0.5),
        (-1.5, 0.5, 3.5, 0.5),
        (-1.5, -0.5, -1.5, 0.5),
        (3.5, -0.5, 3.5, 0.5),
    )
    places = [sim.add_robot("p3dx").truth for _ in range(6)]
    assert {(p.x, p.y) for p in places[:5]} == {
        (-1.0, 0.0),
        (0.0, 0.0),
        (1.0, 0.0),
        (2.0, 0.0),
        (3.0, 0.0),
    }
    assert abs(places[5].y) >= 1.0, "the room is full"
    for half, is_reached in ((0.1, False), (0.4, True)):
        sim = walled((0.5, -100.0, 0.5, -half), (0.5, half, 0.5, 100.0))
        places = [sim.add_robot("p3dx").truth for _ in range(5)]
        assert ((1.0, 0.0, 0.0) in places) == is_reached
        assert (-1.0, 0.0, 0.0) in places


@pytest.mark.shared
def test_robots_of_a_sample_map_start_in_the_building(shared: Path) -> None:
    sim = botyard.Simulation.load(shared / "data/maps/ActivMediaLab.map")
    x0, y0, x1, y1 = sim.scene.bounds
    for _ in range(5):
        place = sim.add_robot("p3dx").truth
        assert x0 < place.x < x1 and y0 < place.y < y1, place


def test_readings_that_are_kept_stay_as_they_were() -> None:
    """A list of scans holds each scan, not the last one many times.

    A caller that writes to a scan changes nothing else.
    """
    sim = botyard.Simulation.load("office")
    robot = sim.add_robot("p3dx", lasers=["lms200"])
    robot.command(v=0.3, w=0.4)
    scans, rings = [], []
    for _ in range(6):
        sim.step()
        scans.append(robot.laser.read())
        rings.append(robot.sonar.read())

    assert len({scan.ranges.tobytes() for scan in scans}) == 6
    assert len({ring.ranges.tobytes() for ring in rings}) == 6
    scans[-1].ranges[:] = 0.0
    assert robot.laser.ranges.min() > 0.0


def test_the_fleets_ranges_are_those_of_each_robot() -> None:
    """`fleet.ranges` (n, R) equals the ranges of each robot, NaN where there are none,
    while robots are added and removed.
    """
    sim = botyard.Simulation.load("office", seed=4)
    for k, model in enumerate(("p3dx", "amigo", "p3at", "seekur")):
        sim.add_robot(model, f"r{k}", pose=(10.0 + 1.5 * k, 14.0, 0.3 * k))
    sim.add_robot("box", "crate", pose=(8.0, 14.0, 0.0))
    names = list(sim.robots)

    def check() -> None:
        for kind in ("laser", "sonar"):
            found = sim.fleet.ranges(kind)
            assert found.shape[0] == len(sim.robots)
            for row, robot in zip(found, sim.robots.values(), strict=True):
                sensor = (
                    robot.sonar
                    if kind == "sonar"
                    else robot.lasers[0]
                    if robot.lasers
                    else None
                )
                wanted = (
                    []
                    if sensor is None
                    else (sensor.ranges if kind == "sonar" else sensor.read().ranges)
                )
                np.testing.assert_array_equal(row[: len(wanted)], wanted)
                assert np.isnan(row[len(wanted) :]).all()

    check()
    sim.step(3)
    check()
    kept = sim.fleet.ranges("sonar")
    before = kept.copy()
    sim.robots["r0"].command(0.3, 0.2)
    sim.step(5)
    np.testing.assert_array_equal(kept, before)
    check()
    sim.remove_robot(names[1])
    sim.add_robot("p3dx", "late", pose=(9.0, 12.0, 1.0))
    check()
    assert sim.fleet.ranges("laser", 7).shape == (len(sim.robots), 0)
    with pytest.raises(
        botyard.ArgumentError, match="kind: expected one of laser, sonar"
    ):
        sim.fleet.ranges("radar")

    empty = botyard.Simulation()
    assert empty.fleet.ranges().shape == (0, 0)


def test_the_old_name_of_placement_warnings_is_deprecated() -> None:
    for module in (botyard, botyard.errors):
        with pytest.warns(DeprecationWarning, match="PlacementWarning"):
            assert module.DoubtWarning is botyard.PlacementWarning


def test_a_simulation_has_few_public_names() -> None:
    names = {name for name in dir(botyard.Simulation) if not name.startswith("_")}
    assert len(names) <= 48, f"put names for ports and servers into core: {names}"
    text = botyard.Simulation.__doc__ or ""
    # Each name must be in a group of the docstring; calls that a group mentions count as well.
    assert not names - set(re.findall(r"`(\w+)`", text))
    # An instance has no more names than its fleet and its internal API.
    sim = botyard.Simulation()
    more = {name for name in dir(sim) if not name.startswith("_")} - names
    assert more == {"core", "fleet"}


def test_old_names_of_a_simulation_work_and_warn() -> None:
    sim = botyard.Simulation.load("office")
    ann = sim.add_robot("p3dx", "ann")
    for old, new in MOVED.items():
        assert old not in dir(botyard.Simulation)
        with pytest.warns(DeprecationWarning, match=rf"{old} has a new name: {new}"):
            value = getattr(sim, old)
        if not new.startswith("botyard."):
            found: Any = sim
            for part in new.split("."):
                found = getattr(found, part)
            assert value == found
        with pytest.raises(
            AttributeError, match=f"Simulation.{old} cannot be assigned"
        ):
            setattr(sim, old, value)

    sim.add_box(
        botyard.BoxObject(
            name="crate", pose=botyard.Pose(1, 1, 0), length=0.5, width=0.5
        )
    )
    with pytest.warns(DeprecationWarning, match="masses.set_dynamics"):
        sim.set_dynamics("crate", botyard.DynamicsSpec(mass=2.0))  # type: ignore[attr-defined]
    assert sim.masses.dynamics("crate") == botyard.DynamicsSpec(mass=2.0)
    with pytest.warns(DeprecationWarning, match="world_of"):
        assert sim.world().robots[0].name == "ann"  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="core.accept_command"):
        sim.submit("ann", SetVelocity(v=0.5))  # type: ignore[attr-defined]
    sim.run(2.0)
    assert ann.velocity.vx > 0.1
    with pytest.warns(DeprecationWarning, match="Commands.submit .* issue_command"):
        ann.command.submit(SetVelocity(v=-0.5))  # type: ignore[attr-defined]
    sim.run(4.0)
    assert ann.velocity.vx < -0.1
    with pytest.warns(DeprecationWarning, match="Port.submit .* issue_command"):
        ann.port("me").submit(Stop())
    sim.run(4.0)
    assert ann.velocity.vx == 0.0
    with pytest.warns(DeprecationWarning, match="Port.drive .* set_velocity"):
        ann.port("me").drive(v=0.5)
    sim.run(1.0)
    assert ann.velocity.vx > 0.1


def test_a_function_before_steps_ends_with_the_result_of_before_step() -> None:
    sim, calls = botyard.Simulation(), list[float]()
    end = sim.before_step(lambda: calls.append(sim.time))
    sim.step(2)
    end()
    end()
    sim.step()
    assert calls == [0.0, 0.1]
    # Once the callables are removed, the world can be cloned again.
    assert sim.clone().tick == 3
