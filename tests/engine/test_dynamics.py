"""Bodies with mass against closed forms, and their interaction with robots without
mass.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.errors import ArgumentError, CommandError, ModelError
from botyard.geometry import Outline, Pose
from botyard.model.dynamics import (
    GRAVITY,
    DynamicsSpec,
    Gains,
    PoseController,
    area_moments,
)
from botyard.model.obstacles import BoxObject, disc, rectangle
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import world_of

pytestmark = pytest.mark.slow_without_jit
WALL = np.array([[4.0, -3.0, 4.0, 3.0]])


def box(
    name: str,
    x: float = 0.0,
    y: float = 0.0,
    *,
    mass: float = 2.0,
    size: float = 1.0,
    **more: object,
) -> BoxObject:
    spec = DynamicsSpec(mass=mass, **more)  # type: ignore[arg-type]
    return BoxObject(name=name, pose=Pose(x, y), length=size, width=size, dynamics=spec)


def world(
    *boxes: BoxObject, step: float = 0.01, walls: np.ndarray | None = None
) -> Simulation:
    segments = np.zeros((0, 4)) if walls is None else walls
    return Simulation(Scene(boxes=boxes, segments=segments), step=step)


def pose(sim: Simulation, name: str) -> Pose:
    return Pose(*sim.snapshot.state.pose[sim.snapshot.rows[name]].tolist())


def velocity(sim: Simulation, name: str) -> tuple[float, float, float]:
    """Return the velocity in world axes."""
    vx, vy, w = sim.snapshot.state.vel[sim.snapshot.rows[name]].tolist()
    c, s = math.cos(pose(sim, name).th), math.sin(pose(sim, name).th)
    return c * vx - s * vy, s * vx + c * vy, w


# -- closed forms


@pytest.mark.parametrize("step", [0.1, 0.01, 0.001])
def test_a_force_accelerates_a_mass_and_a_torque_an_inertia(step: float) -> None:
    sim = world(box("b", inertia=0.5), step=step)
    sim.masses.push("b", 3.0, -1.0, 0.25)
    sim.step(round(1.0 / step))
    assert velocity(sim, "b") == pytest.approx((1.5, -0.5, 0.5), rel=1e-9)
    there = pose(sim, "b")
    h = min(
        step,
        0.002,
        # The solver moves bodies with the velocity before each substep, so positions lag by half a
        # substep.
    )
    assert (there.x, there.y, there.th) == pytest.approx(
        (0.75, -0.25, 0.25), abs=0.75 * h + 1e-9
    )
    assert sim.masses.wrench("b") == pytest.approx((3.0, -1.0, 0.25))
    sim.masses.push("b", 0.0)
    sim.step()
    assert sim.masses.wrench("b") == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    before = pose(sim, "b")
    sim.step(round(1.0 / step))
    assert pose(sim, "b").x - before.x == pytest.approx(1.5, rel=1e-6), "it coasts"


@pytest.mark.parametrize(("mu", "speed"), [(0.2, 1.0), (0.5, 2.0), (0.8, 0.3)])
def test_friction_of_the_floor_stops_it_after_v2_by_2_mu_g(
    mu: float, speed: float
) -> None:
    sim = world(box("b", floor_friction=mu))
    sim.masses.throw("b", speed)
    sim.step()
    start = pose(sim, "b").x
    sim.masses.push("b", 0.0)
    sim.step(200)
    assert velocity(sim, "b") == (0.0, 0.0, 0.0)
    assert pose(sim, "b").x - start == pytest.approx(
        speed**2 / (2 * mu * GRAVITY), abs=0.0025 * speed
    )
    sim.masses.push("b", 0.99 * mu * 2.0 * GRAVITY)
    rest = pose(sim, "b")
    sim.step(100)
    assert pose(sim, "b").x == pytest.approx(rest.x, abs=1e-6), (
        "less than friction does not move it"
    )
    sim.masses.push("b", 1.5 * mu * 2.0 * GRAVITY)
    sim.step(100)
    assert velocity(sim, "b")[0] == pytest.approx(0.5 * mu * GRAVITY, rel=1e-3)


def test_damping_loses_a_part_of_the_velocity_in_a_second() -> None:
    sim = world(box("b", linear_damping=0.3, angular_damping=0.6))
    sim.masses.throw("b", 1.0, 0.0, 2.0)
    sim.step()
    sim.masses.push("b", 0.0)
    first = velocity(sim, "b")
    sim.step(100)
    assert math.hypot(*velocity(sim, "b")[:2]) == pytest.approx(
        0.7 * math.hypot(*first[:2]), rel=1e-6
    )
    assert velocity(sim, "b")[2] == pytest.approx(0.4 * first[2], rel=1e-6)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_an_impact_keeps_momentum_and_gives_back_what_restitution_says(
    e: float,
) -> None:
    """Two discs head on, the second of them at rest: v1' = v·(m1 − e·m2)/(m1 + m2), v2'
    = v·m1·(1 + e)/(m1 + m2).
    """
    m1, m2, v, root = 1.0, 3.0, 1.0, math.sqrt(e)

    def ball(name: str, x: float, mass: float) -> BoxObject:
        spec = DynamicsSpec(mass=mass, restitution=root, friction=0.0)
        return BoxObject(
            name=name,
            pose=Pose(x),
            length=0.4,
            width=0.4,
            parts=(rectangle(0.4, 0.4),),
            dynamics=spec,
        )

    sim = world(ball("a", 0.0, m1), ball("b", 1.0, m2))
    sim.masses.throw("a", v)
    sim.step()
    sim.masses.push("a", 0.0)
    sim.step(100)
    va, vb = velocity(sim, "a")[0], velocity(sim, "b")[0]
    assert m1 * va + m2 * vb == pytest.approx(m1 * v, rel=1e-9)
    assert va == pytest.approx(v * (m1 - e * m2) / (m1 + m2), abs=0.02)
    assert vb == pytest.approx(v * m1 * (1 + e) / (m1 + m2), abs=0.02)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-2, 2), st.floats(-2, 2), st.floats(-2, 2), st.floats(0.2, 5)
        ),
        min_size=2,
        max_size=6,
    ),
    st.floats(0, 1),
)
def test_without_walls_and_floor_friction_momentum_is_kept(
    throws: list[tuple[float, ...]], e: float
) -> None:
    places = [(0.8 * (k % 3), 0.8 * (k // 3)) for k in range(len(throws))]
    boxes = [
        box(f"b{k}", *place, mass=t[3], size=0.6, restitution=e)
        for k, (place, t) in enumerate(zip(places, throws, strict=True))
    ]
    sim = world(*boxes)
    for k, (vx, vy, w, _) in enumerate(throws):
        sim.masses.throw(f"b{k}", vx, vy, w)
    sim.step()
    for k in range(len(throws)):
        sim.masses.push(f"b{k}", 0.0)

    def momentum() -> np.ndarray:
        return np.sum(
            [
                np.array(velocity(sim, f"b{k}")[:2]) * throws[k][3]
                for k in range(len(throws))
            ],
            axis=0,
        )

    first = momentum()
    for _ in range(50):
        sim.step()
        assert momentum() == pytest.approx(first, abs=1e-9)


def test_moments_of_areas() -> None:
    assert area_moments((rectangle(2.0, 1.0),)).second == pytest.approx(
        (4.0 + 1.0) / 12.0
    )
    circle = area_moments((disc(0.7, 200),))
    assert circle.second == pytest.approx(0.7**2 / 2.0, rel=1e-4)
    assert circle.reach == pytest.approx(0.7 * 2.0 / 3.0, rel=1e-4)
    ell: Outline = ((0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2))
    for outline in (ell, ell[::-1]):
        found = area_moments((outline,))
        assert found.area == pytest.approx(3.0)
        assert found.center == pytest.approx((5.0 / 6.0, 5.0 / 6.0))

    assert area_moments(
        (rectangle(1.0, 1.0), ((1, -0.5), (2, -0.5), (2, 0.5), (1, 0.5)))
    ).center == pytest.approx((0.75, 0.0))
    with pytest.raises(ModelError, match="outline with an area"):
        area_moments((((0, 0), (1, 0), (2, 0)),))
    for wrong in ({"mass": 0.0}, {"mass": math.nan}, {"mass": 1.0, "restitution": 1.5}):
        with pytest.raises(ModelError, match="expected"):
            DynamicsSpec(**wrong)


def test_a_concave_body_with_its_mass_beside_its_origin() -> None:
    ell: Outline = ((0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2))
    thing = BoxObject(
        name="l",
        pose=Pose(),
        length=2,
        width=2,
        parts=(ell,),
        dynamics=DynamicsSpec(mass=3.0),
    )
    sim = world(thing)
    sim.masses.push("l", 0.0, 0.0, 1.0)
    sim.step(100)
    there = pose(sim, "l")
    c, s, k = math.cos(there.th), math.sin(there.th), 5.0 / 6.0
    assert (there.x + k * (c - s), there.y + k * (s + c)) == pytest.approx(
        (k, k), abs=1e-6
    ), "turns about its centre of mass"
    inertia = 3.0 * area_moments((ell,)).second
    assert velocity(sim, "l")[2] == pytest.approx(1.0 / inertia, rel=1e-6)
    in_notch = BoxObject(
        name="s",
        pose=Pose(1.5, 1.5),
        length=0.5,
        width=0.5,
        dynamics=DynamicsSpec(mass=1.0),
    )
    sim = world(thing, in_notch)
    sim.step(50)
    assert pose(sim, "s") == Pose(1.5, 1.5), "what stands in the notch is not touched"


# -- controllers


@pytest.mark.parametrize(
    "controller",
    [
        PoseController(),
        PoseController(linear=Gains(40.0, 20.0), angular=Gains(10.0, 4.0), force=True),
        PoseController(linear=Gains(1e6, 1e3), angular=Gains(1e6, 1e3), force=True),
        PoseController(linear=Gains(1e5, 0.0), angular=Gains(1e5, 0.0)),
    ],
)
@pytest.mark.parametrize("step", [0.1, 0.001])
def test_a_controller_takes_it_to_a_pose_whatever_its_gains(
    controller: PoseController, step: float
) -> None:
    sim = world(box("b", controller=controller), step=step)
    sim.masses.pull_to("b", (1.0, -0.5, 3.0))
    sim.step(round(6.0 / step))
    there = pose(sim, "b")
    assert (there.x, there.y) == pytest.approx((1.0, -0.5), abs=0.01)
    assert there.th == pytest.approx(3.0, abs=0.01)
    sim.masses.pull_to("b", (1.0, -0.5, -3.0))
    sim.step(5)
    assert math.remainder(pose(sim, "b").th - 3.0, 2.0 * math.pi) > 0.0, (
        "the short way round"
    )


# -- robots without mass


@pytest.mark.parametrize("step", [0.1, 0.02])
def test_a_robot_pushes_a_box_until_it_is_at_the_wall(step: float) -> None:
    sim = world(box("b", 1.5, mass=5.0, floor_friction=0.4), step=step, walls=WALL)
    robot = sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    robot.command(v=0.5)
    sim.step(round(3.0 / step))
    assert not robot.stalled
    front = robot.spec.front
    assert pose(sim, "b").x - 0.5 == pytest.approx(robot.truth.x + front, abs=0.01), (
        "it goes before the robot"
    )
    sim.step(round(10.0 / step))
    assert robot.stalled
    assert robot.velocity.vx == 0.0
    assert pose(sim, "b").x + 0.5 == pytest.approx(4.0, abs=0.005)
    assert robot.truth.x + front == pytest.approx(3.0, abs=0.02)
    assert robot.odom.x == pytest.approx(robot.truth.x, rel=0.01), (
        "odometry stands still, too"
    )
    stuck = robot.truth
    robot.command(v=-0.5)
    sim.step(round(1.5 / step))
    assert robot.truth.x < stuck.x - 0.2
    assert not robot.stalled


def test_a_box_without_mass_stops_a_robot_as_before() -> None:
    plain = replace(box("b", 1.5), dynamics=None)
    sim = world(plain, step=0.1)
    assert sim.core.engine.dynamics is None
    robot = sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    robot.command(v=0.5)
    sim.step(50)
    assert robot.stalled
    assert pose(sim, "b") == Pose(1.5)
    sim.masses.push("b", 100.0)
    sim.step(5)
    assert pose(sim, "b") == Pose(1.5), "forces do not move what has no mass"


def test_what_robots_do_far_from_masses_does_not_depend_on_them() -> None:
    def run(*boxes: BoxObject) -> np.ndarray:
        sim = world(*boxes, step=0.1, walls=WALL)
        for k in range(3):
            sim.add_robot("p3dx", f"r{k}", pose=(0, 2.0 * k, 0)).command(
                v=0.4, w=0.1 * k
            )

        sim.step(60)
        return sim.fleet.poses

    assert (run() == run(box("b", -20.0))).all()


def test_sensors_see_it_and_robots_are_not_placed_in_it() -> None:
    sim = world(box("b", 2.0), step=0.1)
    assert sim.core.places.one_near(_p3dx(), Pose(2.0)) != Pose(2.0)
    robot = sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    robot.laser.read()
    sim.step()
    ahead = robot.laser.read().ranges
    assert ahead[len(ahead) // 2] == pytest.approx(
        1.5 - robot.spec.lasers[0].pose.x, abs=0.1
    )


def _p3dx() -> RobotSpec:
    return Simulation().add_robot("p3dx").spec


def test_pushing_presses_bumpers() -> None:
    sim = world(box("b", 1.0, mass=3.0, floor_friction=0.3), step=0.1)
    robot = sim.add_robot("powerbot", "r", pose=(0, 0, 0))
    assert robot.spec.device("bumpers").front
    robot.command(v=0.5)
    sim.step(20)
    assert sim.snapshot.state.contact[sim.snapshot.rows["r"]] != 0
    robot.command(v=-0.5)
    sim.step(20)
    assert sim.snapshot.state.contact[sim.snapshot.rows["r"]] == 0


def test_a_row_of_boxes_is_pushed_and_nothing_overlaps() -> None:
    boxes = [
        box(f"b{k}", 1.2 + 0.7 * k, mass=2.0, size=0.6, floor_friction=0.3)
        for k in range(4)
    ]
    sim = world(*boxes, step=0.1, walls=np.array([[8.0, -5, 8.0, 5]]))
    robot = sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    robot.command(v=0.6)
    for _ in range(200):
        sim.step()
        xs = [pose(sim, f"b{k}").x for k in range(4)]
        assert all(b - a > 0.58 for a, b in pairwise(xs))

    assert xs[-1] == pytest.approx(7.7, abs=0.03)
    assert robot.stalled


def test_a_fast_box_does_not_get_through_a_wall() -> None:
    for step in (0.1, 0.01):
        sim = world(box("b", 0.0, size=0.1, restitution=0.0), step=step, walls=WALL)
        sim.masses.throw("b", 40.0)
        sim.step()
        sim.masses.push("b", 0.0)
        sim.step(20)
        assert pose(sim, "b").x < 4.0


# -- robots with mass


def test_a_robot_with_mass_is_pushed_by_forces_and_driven_by_its_motors() -> None:
    sim = world(step=0.01)
    robot = sim.add_robot(
        replace(_p3dx(), dynamics=DynamicsSpec(mass=9.0)), "r", pose=(0, 0, 0)
    )
    sim.masses.push("r", 4.5)
    sim.step(100)
    assert robot.velocity.vx == pytest.approx(0.5, rel=1e-6)
    sim.masses.push("r", 0.0)
    sim.step(50)
    assert robot.velocity.vx == pytest.approx(0.5, rel=1e-6), "it rolls freely"
    robot.command(v=0.3, w=0.5)
    sim.step(300)
    assert robot.velocity.vx == pytest.approx(0.3, abs=0.01)
    assert robot.velocity.w == pytest.approx(0.5, abs=0.02)
    assert robot.velocity.vy == pytest.approx(0.0, abs=0.01)
    assert robot.odom_in_world.x == pytest.approx(robot.truth.x, abs=0.1)
    robot.command.stop()
    sim.step(300)
    rest = robot.truth
    sim.step(100)
    assert robot.truth == rest


@pytest.mark.parametrize(
    ("command", "moves"),
    [
        (cmd.SetVelocity(v=0.3), True),
        (cmd.MoveBy(2.0), True),
        (cmd.TurnTo(2.0), True),
        (cmd.TurnBy(-2.0), True),
        (cmd.Stop(), False),
        (cmd.EmergencyStop(), False),
    ],
)
def test_each_command_of_motion_takes_a_pushed_robot_to_its_motors(
    command: cmd.Command, moves: bool
) -> None:
    sim = world(step=0.01)
    sim.add_robot(
        replace(_p3dx(), dynamics=DynamicsSpec(mass=9.0)), "r", pose=(0, 0, 0)
    )
    sim.masses.push("r", 0.0, 9.0)
    sim.step(50)
    assert velocity(sim, "r")[1] == pytest.approx(0.5, rel=1e-6), (
        "wheels that roll freely do not hold it"
    )
    sim.core.accept_command("r", command)
    sim.step(100)
    vx, vy, w = velocity(sim, "r")
    assert abs(vy) < 0.2, "its wheels do not slide on sideways"
    assert (abs(vx) + abs(w) > 0.05) is moves


def test_motors_push_no_harder_than_their_wheels_hold() -> None:
    sim = world(box("b", 1.0, mass=100.0, floor_friction=0.5), step=0.05)
    robot = sim.add_robot(
        replace(_p3dx(), dynamics=DynamicsSpec(mass=9.0)), "r", pose=(0, 0, 0)
    )
    robot.command(v=0.5)
    sim.step(200)
    assert robot.stalled
    assert pose(sim, "b").x == pytest.approx(1.0, abs=0.01), (
        "a Pioneer does not push 100 kg"
    )
    light = world(box("b", 1.0, mass=2.0, floor_friction=0.5), step=0.05)
    robot = light.add_robot(
        replace(_p3dx(), dynamics=DynamicsSpec(mass=9.0)), "r", pose=(0, 0, 0)
    )
    robot.command(v=0.5)
    light.step(100)
    assert not robot.stalled
    assert pose(light, "b").x > 2.0


def test_mass_comes_and_goes_while_it_runs(tmp_path: object) -> None:
    sim = world(replace(box("b", 1.0), dynamics=None), step=0.05)
    robot = sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    robot.command(v=0.4)
    sim.step(60)
    assert robot.stalled
    sim.masses.set_dynamics("b", DynamicsSpec(mass=2.0))
    assert sim.masses.dynamics("b") == DynamicsSpec(mass=2.0)
    assert world_of(sim).scene.boxes[0].dynamics == DynamicsSpec(mass=2.0)
    sim.step(40)
    assert not robot.stalled
    moved = pose(sim, "b").x
    assert moved > 1.2
    sim.masses.set_dynamics("b", None)
    assert sim.core.engine.dynamics is None
    sim.step(40)
    assert pose(sim, "b").x == pytest.approx(moved, abs=0.02)
    sim.masses.set_dynamics("r", DynamicsSpec(mass=9.0))
    sim.masses.push("r", -20.0)
    sim.step(20)
    assert robot.velocity.vx < -0.5
    assert robot.spec.dynamics == DynamicsSpec(mass=9.0)
    with pytest.raises(KeyError):
        sim.masses.set_dynamics("nobody", None)
    with pytest.raises(ArgumentError, match="finite"):
        sim.masses.push("r", math.nan)


# -- other events of bodies


def test_put_somewhere_it_is_at_rest_and_held_it_stands_still() -> None:
    sim = world(box("b"), step=0.01)
    sim.masses.throw("b", 1.0)
    sim.step(10)
    sim.masses.push("b", 0.0)
    sim.put("b", (5.0, 5.0, 1.0))
    sim.step(10)
    assert pose(sim, "b") == pytest.approx(Pose(5.0, 5.0, 1.0))
    sim.masses.push("b", 2.0)
    sim.hold("b")
    sim.step(50)
    assert pose(sim, "b") == pytest.approx(Pose(5.0, 5.0, 1.0))
    sim.hold("b", False)
    sim.step(50)
    assert pose(sim, "b").x > 5.05
    sim.put_back()
    sim.settle()
    assert pose(sim, "b") == Pose(0.0, 0.0, 0.0)


def test_a_hand_that_drags_a_box_pushes_another() -> None:
    sim = world(box("a", 0.0), box("b", 1.2), step=0.05)
    sim.hold("a")
    for k in range(20):
        sim.put("a", (0.05 * k, 0.0, 0.0))
        sim.step()

    assert pose(sim, "a").x == pytest.approx(0.95)
    assert pose(sim, "b").x >= 1.94


def test_bodies_come_and_go_and_the_map_changes_under_them() -> None:
    sim = world(box("b", 1.0), step=0.05, walls=WALL)
    robot = sim.add_robot(
        replace(_p3dx(), dynamics=DynamicsSpec(mass=9.0)), "r", pose=(0, 2, 0)
    )
    sim.masses.throw("b", 0.5)
    sim.masses.push("r", 9.0)
    sim.step(10)
    v = robot.velocity.vx
    sim.add_robot("amigo", "x", pose=(0, -2, 0))
    sim.masses.push("b", 0.0)
    sim.masses.push("r", 0.0)
    sim.step(5)
    assert robot.velocity.vx == pytest.approx(v, rel=0.1), (
        "others that come do not stop it"
    )
    assert velocity(sim, "b")[0] == pytest.approx(0.5, rel=1e-6)
    sim.remove_robot("x")
    sim.replace_scene(Scene(segments=np.array([[6.0, -9, 6.0, 9]])))
    assert "b" not in sim.snapshot.rows
    sim.step(400)
    assert robot.truth.x == pytest.approx(6.0 - robot.spec.front, abs=0.3), (
        "the new wall stops it"
    )


def test_ghosts_touch_nothing() -> None:
    sim = world(box("b", 1.0), step=0.05)
    robot = sim.add_robot("p3dx", "r", pose=(0, 0, 0))
    robot.ghost()
    robot.command(v=0.5)
    sim.step(60)
    assert pose(sim, "b") == Pose(1.0)


def test_the_same_again_bit_for_bit() -> None:
    def run() -> bytes:
        boxes = [
            box(
                f"b{k}",
                1.0 + 0.5 * (k % 3),
                0.6 * k - 1,
                mass=1.0 + k,
                size=0.4,
                floor_friction=0.2,
            )
            for k in range(6)
        ]
        sim = world(*boxes, step=0.05, walls=WALL)
        for k in range(3):
            sim.add_robot("p3dx", f"r{k}", pose=(-1.0, k - 1.0, 0)).command(
                v=0.5, w=0.1 * (k - 1)
            )

        sim.step(120)
        return sim.snapshot.state.pose.tobytes()

    assert run() == run()


def test_what_no_world_has() -> None:
    sim = world(box("b", mass=1e-9, inertia=1e-9), box("c", 3.0))
    for demand in (
        lambda: sim.masses.push("b", 1e10),
        lambda: sim.masses.throw("b", 1e6),
        lambda: sim.masses.pull_to("b", (1e8, 0, 0)),
    ):
        with pytest.raises(CommandError, match="expected values within"):
            demand()

    sim.masses.push("b", 1e9)
    for _ in range(5):
        sim.step()
        there = pose(sim, "b")
        assert math.hypot(there.x, there.y) <= 2e7

    sim.masses.push("b", 0.0)
    sim.put("b", (0.0, 0.0, 0.0))
    sim.step(3)
    assert pose(sim, "b") == pytest.approx(Pose(0.0, 0.0, 0.0))
    assert pose(sim, "c") == Pose(3.0)


def test_what_has_no_area_has_no_mass() -> None:
    sim = world()
    flat = replace(
        _p3dx(),
        outline=((0, 0), (1, 0), (2, 0)),
        parts=(),
        lasers=(),
        dynamics=DynamicsSpec(mass=1.0),
    )
    with pytest.raises(ModelError, match="outline with an area"):
        sim.add_robot(flat, "r", pose=(0, 0, 0))
    assert not sim.snapshot.rows
    sim.step(3)
