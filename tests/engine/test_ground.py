"""Zones of the floor: speed limits, slip and odometry scale against their formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.engine.kernels.ground import zone_effects
from botyard.engine.layout import OdometryErrorMode
from botyard.engine.simulation import Engine
from botyard.engine.velocities import SetVelocities
from botyard.engine.wallgrid import build_grid, zones_of
from botyard.formats.models import find_robot
from botyard.model.dynamics import DynamicsSpec
from botyard.model.floor import Floor, FloorZone
from botyard.model.floorlook import effects_at
from botyard.model.scene import Scene, in_polygon
from botyard.sim.simulation import Simulation


def square(x0: float, x1: float, **effects: float) -> FloorZone:
    return FloorZone(corners=((x0, -5), (x1, -5), (x1, 5), (x0, 5)), **effects)


def world(*zones: FloorZone, model: str = "p3dx", **options) -> Simulation:
    sim = Simulation(Scene(floor=Floor(zones=zones)), odometry_error="none", **options)
    sim.add_robot(model, "r", pose=(0.0, 0.0, 0.0))
    return sim


coordinate = st.floats(-10, 10).map(lambda v: round(v, 2))
zone = st.builds(
    FloorZone,
    corners=st.lists(
        st.tuples(coordinate, coordinate), min_size=3, max_size=7, unique=True
    ).map(tuple),
    speed_limit=st.none() | st.floats(0, 5),
    slip=st.none() | st.floats(0, 0.99),
    odometry_scale=st.none() | st.floats(0.1, 10),
)


@given(st.lists(zone, max_size=5), coordinate, coordinate)
@example([square(0, 1, slip=0.5), square(0, 1, slip=0.25)], 0.5, 0.0)
def test_effects_equal_the_twin(zones: list[FloorZone], x: float, y: float) -> None:
    floor = Floor(zones=tuple(zones))
    fields = zones_of(floor)
    found = zone_effects(
        fields["zones"], fields["zone_start"], fields["zone_verts"], x, y
    )
    assert tuple(found) == effects_at(floor, x, y)
    limits = [
        z.speed_limit
        for z in zones
        if z.speed_limit is not None and in_polygon(z.corners, x, y)
    ]
    assert found[0] == min(limits, default=math.inf)


def test_zones_without_an_effect_cost_the_engine_nothing() -> None:
    painted = FloorZone(corners=((0, 0), (1, 0), (1, 1)), color="red", hole=True)
    grid = build_grid(Scene(floor=Floor(zones=(painted,))))
    assert len(grid.zones) == 0
    engine = Engine(Scene(floor=Floor(zones=(painted,))))
    assert engine.bodies.ground.shape == (0, 3)


@pytest.mark.parametrize(
    "command",
    [
        cmd.SetVelocity(v=0.7),
        cmd.MoveBy(8.0),
        SetVelocities(rows=np.array([0]), v=np.array([0.7])),
    ],
    ids=["velocity", "move", "fleet"],
)
def test_a_speed_limit_holds_for_each_source_of_commands(command) -> None:
    sim = world(square(1.0, 2.0, speed_limit=0.1))
    if isinstance(command, SetVelocities):
        sim.core.accept_velocities(command)
    else:
        sim.core.accept_command("r", command)

    robot, limits = sim.robots["r"], []
    decel = robot.spec.limits.decel.x
    while robot.truth.x < 2.0:
        before, speed = robot.truth.x, robot.velocity[0]
        sim.step()
        if 1.0 < before < 2.0:
            limits.append(robot.velocity[0])
            # The robot brakes by its own ramp.
            assert robot.velocity[0] >= min(speed, 0.1) - 1e-9
            assert speed - robot.velocity[0] <= decel * sim.dt + 1e-9

    assert limits[-1] == pytest.approx(0.1)
    sim.step(30)
    assert robot.velocity[0] > 0.3, "the limit ends with the zone"


def test_a_speed_limit_of_zero_stops_and_reset_of_the_zone_releases() -> None:
    stop = FloorZone(name="gate", corners=square(0.3, 9).corners, speed_limit=0.0)
    sim = world(stop)
    robot = sim.robots["r"]
    robot.command(v=0.5)
    sim.step(60)
    assert robot.velocity[0] == 0.0
    assert 0.3 < robot.truth.x < 1.0
    sim.floor.remove_zone("gate")
    sim.step(20)
    assert robot.velocity[0] == pytest.approx(0.5)


def test_a_speed_limit_holds_for_the_speed_of_omnidirectional_robots() -> None:
    sim = world(square(-5, 50, speed_limit=0.2), model="seekur")
    robot = sim.robots["r"]
    robot.command(v=0.6, vy=0.8)
    sim.step(40)
    v, vy, _ = robot.velocity
    assert math.hypot(v, vy) == pytest.approx(0.2)
    assert vy / v == pytest.approx(0.8 / 0.6)


@pytest.mark.parametrize("slip", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("ramps", ["euler", "exact"])
def test_slip_shortens_the_motion_and_not_the_odometry(slip: float, ramps: str) -> None:
    spec = replace(find_robot("p3dx"), ramps=ramps)

    def run(*zones: FloorZone) -> tuple[np.ndarray, np.ndarray]:
        sim = Simulation(Scene(floor=Floor(zones=zones)), odometry_error="none")
        robot = sim.add_robot(spec, pose=(0.0, 0.0, 0.0))
        robot.command(v=0.5, w=0.2)
        sim.step(20)
        return np.array(robot.truth), np.array(robot.odom)

    plain, plain_odom = run()
    truth, odom = run(square(-9, 9, slip=slip))
    # The wheels turn alike, and odometry measures wheels.
    assert odom == pytest.approx(plain_odom, abs=1e-9)
    assert truth[2] == pytest.approx((1.0 - slip) * plain[2], abs=1e-9)
    # Both ends lie on arcs of one curvature: a chord is 2·r·sin(θ/2).
    if ramps == "exact" and slip == 0.0:
        assert truth == pytest.approx(plain, abs=1e-12)


def test_carpet_scales_the_odometry_and_not_the_motion() -> None:
    sim, plain = world(square(-9, 9, odometry_scale=1.25)), world()
    for one in (sim, plain):
        one.robots["r"].command(v=0.4, w=0.1)
        one.step(30)
    assert tuple(sim.robots["r"].truth) == tuple(plain.robots["r"].truth)
    ours, theirs = sim.core.engine.state.path[0], plain.core.engine.state.path[0]
    assert ours == pytest.approx(1.25 * theirs, rel=1e-12)


def test_a_distance_move_ends_by_the_odometry_of_the_floor() -> None:
    sim = world(square(-9, 9, odometry_scale=1.25))
    sim.robots["r"].command.move(1.0)
    sim.step(80)
    assert sim.robots["r"].truth.x == pytest.approx(0.8, abs=1e-3)


def test_perfect_odometry_stays_perfect_on_a_slippery_floor() -> None:
    sim = world(square(-9, 9, slip=0.5, odometry_scale=2.0))
    row = sim.core.engine.rows["r"]
    sim.core.engine.state.err_mode[row] = int(OdometryErrorMode.PERFECT)
    sim.robots["r"].command(v=0.4)
    sim.step(10)
    assert tuple(sim.robots["r"].odom) == tuple(sim.robots["r"].truth)


def test_a_body_with_mass_has_friction_in_place_of_slip() -> None:
    sim = world(square(-9, 9, slip=0.5, odometry_scale=1.1))
    sim.masses.set_dynamics("r", DynamicsSpec(mass=9.0))
    plain = world()
    plain.masses.set_dynamics("r", DynamicsSpec(mass=9.0))
    for one in (sim, plain):
        one.robots["r"].command(v=0.4)
        one.step(20)
    assert tuple(sim.robots["r"].truth) == tuple(plain.robots["r"].truth)
    path, reference = sim.core.engine.state.path[0, 0], plain.core.engine.state.path
    assert path == pytest.approx(1.1 * reference[0, 0])


def test_the_order_of_bodies_and_other_bodies_do_not_matter() -> None:
    zones = (square(0.5, 1.5, slip=0.3), square(1.0, 2.0, speed_limit=0.2))
    poses = {"a": (0.0, 0.0, 0.0), "b": (0.0, 2.0, 0.1), "c": (0.2, -2.0, 0.0)}
    found = []
    for names in ("abc", "cab"):
        sim = Simulation(Scene(floor=Floor(zones=zones)), seed=4)
        for name in names:
            sim.add_robot("p3dx", name, pose=poses[name]).command(v=0.5)
        sim.step(40)
        found.append({n: tuple(sim.robots[n].truth) for n in "abc"})
    assert found[0] == found[1]


def test_many_steps_at_once_are_the_same_as_single_ones() -> None:
    one, many = (world(square(0.5, 2.0, slip=0.3, speed_limit=0.2)) for _ in range(2))
    for sim in (one, many):
        sim.robots["r"].command(v=0.5)
    for _ in range(50):
        one.step()
    many.step(50)
    assert one.digest() == many.digest()
