"""Trailers: hitches, jackknife limits, collisions, placing, states, journals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botyard.engine import commands as cmd
from botyard.engine.bodyspec import BodySpec
from botyard.engine.simulation import Engine
from botyard.errors import ModelError, WorldError
from botyard.geometry import Pose
from botyard.model.dynamics import DynamicsSpec
from botyard.model.kinematics import Drive
from botyard.model.library import parse_robot
from botyard.model.robot import RobotSpec
from botyard.model.robotfile import to_table
from botyard.model.trailers import TrailerSpec, trailer_name
from botyard.sim.simulation import Simulation
from tests.engine.trains import BOX, headings_after, trailer, train


def drive(e: Engine, steps: int, **velocity: float) -> None:
    e.queue_command("t", cmd.SetVelocity(**velocity))
    e.step(steps)


def hitch_gaps(e: Engine, trailers: tuple[TrailerSpec, ...]) -> list[float]:
    """Return how far the two ends of each hitch are apart, m."""
    found = []
    for k, one in enumerate(trailers):
        (x, y, th), (x1, y1, th1) = e.state.pose[k], e.state.pose[k + 1]
        found.append(
            math.hypot(
                x - one.hitch * math.cos(th) - x1 - one.length * math.cos(th1),
                y - one.hitch * math.sin(th) - y1 - one.length * math.sin(th1),
            )
        )
    return found


@settings(max_examples=25)
@given(
    st.floats(-1.5, 1.5),
    st.floats(-1.0, 1.0),
    st.floats(-0.3, 0.8),
    st.floats(0.4, 2.0),
)
def test_the_first_trailer_is_exact(
    v: float, w: float, hitch: float, length: float
) -> None:
    one = trailer(hitch, length, limit=2.9)
    # Long steps: the exact solution does not depend on them.
    e = train([one], step_us=200_000)
    drive(e, 3, v=v, w=w)
    if e.state.stall[0]:
        return
    expected = headings_after([0.0, 0.0], [one], (v, 0.0, w), 0.6)
    assert math.remainder(e.state.pose[1, 2] - expected[1], 2 * math.pi) == (
        pytest.approx(0.0, abs=1e-10)
    )
    assert hitch_gaps(e, (one,)) == pytest.approx([0.0], abs=1e-12)


@pytest.mark.parametrize("v", [1.0, -0.3])
@pytest.mark.parametrize("hitch", [0.0, 0.5])
def test_three_trailers_are_within_the_stated_bound(v: float, hitch: float) -> None:
    trailers = (trailer(hitch), trailer(hitch), trailer(hitch))
    e = train(trailers)
    w = 0.3 * v
    drive(e, 20, v=v, w=w)
    assert not e.state.stall.any()
    expected = headings_after([0.0] * 4, trailers, (v, 0.0, w), 2.0)
    errors = [
        math.remainder(a - b, 2 * math.pi)
        for a, b in zip(e.state.pose[:, 2], expected, strict=True)
    ]
    # The bound of docs/howto/cars.md: 5e-4 rad.
    assert errors == pytest.approx([0.0] * 4, abs=5e-4)
    assert hitch_gaps(e, trailers) == pytest.approx([0.0] * 3, abs=1e-12)


def test_an_omnidirectional_robot_pulls_sideways() -> None:
    one = trailer(0.5, 0.6, limit=2.9)
    e = train([one], kind=Drive.OMNI)
    drive(e, 10, v=0.4, vy=0.3, w=0.2)
    expected = headings_after([0.0, 0.0], [one], (0.4, 0.3, 0.2), 1.0)
    assert e.state.pose[1, 2] == pytest.approx(expected[1], abs=1e-10)


def test_a_circle_has_the_radius_of_the_geometry() -> None:
    # In a steady turn R1² = R0² + a² − d².
    one = trailer(0.5, 0.6)
    e = train([one], start=Pose(0.0, -2.0, 0.0))
    drive(e, 600, v=1.0, w=0.5)
    x, y, _ = e.state.pose[1]
    assert math.hypot(x, y) == pytest.approx(math.sqrt(4.0 + 0.25 - 0.36), abs=1e-4)


def test_velocities_and_displacements_of_trailers() -> None:
    e = train([trailer(), trailer()])
    drive(e, 3, v=1.0, w=0.0)
    along = np.array([[1.0, 0.0, 0.0]] * 2)
    assert e.state.vel[1:] == pytest.approx(along)
    assert e.state.disp[1:] == pytest.approx(0.1 * along)
    drive(e, 1, v=0.0)
    assert not e.state.vel.any()


def test_a_jackknifed_train_stops_at_its_limit_and_leaves_it_forwards() -> None:
    one = trailer(0.5, 0.6, limit=0.5)
    e = train([one])
    drive(e, 20, v=-0.5, w=0.3)
    bend = math.remainder(e.state.pose[0, 2] - e.state.pose[1, 2], 2 * math.pi)
    assert abs(bend) == pytest.approx(0.5, abs=1e-9)
    assert e.state.stall.tolist() == [1, 1]
    assert not e.state.vel.any()
    before = e.state.pose.copy()
    e.step(5)
    assert e.state.pose == pytest.approx(before, abs=1e-9)
    drive(e, 10, v=0.5, w=0.0)
    assert e.state.stall.tolist() == [0, 0]
    assert e.state.pose[0, 0] > before[0, 0]


def test_a_robot_on_the_spot_stops_at_the_limit() -> None:
    e = train([trailer(0.0, 0.6, limit=0.5)])
    drive(e, 30, w=0.5)
    assert e.state.pose[0, 2] == pytest.approx(0.5, abs=1e-6)
    assert e.state.stall.tolist() == [1, 1]


def test_each_trailer_collides_with_walls() -> None:
    # The robot passes the corner of the wall; its trailer cuts it.
    walls = np.array([[0.2, 0.35, -3.0, 0.35]])
    one = trailer(0.5, 1.2)
    e = train([one], walls=walls)
    drive(e, 100, v=0.5, w=0.4)
    assert e.state.stall.tolist() == [1, 1]
    corners = e.bodies.world[4:8]
    assert corners[:, 1].max() < 0.35
    assert corners[:, 1].max() > 0.35 - 0.02
    # It is not the robot that touches.
    assert not e.touching(np.array([0, 1])).any()


def test_trailers_stop_robots_and_are_stopped_by_them() -> None:
    e = train([trailer()])
    x = e.state.pose[1, 0]
    other = BodySpec(
        name="a", parts=(BOX,), kinematics=replace(e.specs[0].kinematics, track=0.5)
    )
    e.add_bodies([(other, Pose(x, -2.0, math.pi / 2))])
    e.queue_command("a", cmd.SetVelocity(v=1.0, w=0.0))
    e.step(30)
    # The nose of the robot, 0.3 m ahead of it, is at the trailer's side.
    assert e.state.stall[2] == 1
    assert e.state.pose[2, 1] == pytest.approx(-0.5, abs=1e-3)
    # Backwards, the train meets a robot behind it.
    e = train([trailer()])
    e.add_bodies([(other, Pose(-2.5, 0.0, 0.0))])
    drive(e, 30, v=-0.5, w=0.0)
    assert e.state.stall.tolist() == [1, 1, 0]
    assert e.state.pose[1, 0] == pytest.approx(-2.5 + 0.6, abs=1e-3)


def test_bodies_of_one_train_do_not_stop_each_other() -> None:
    # The outlines overlap at the hitch.
    e = train([trailer(0.2, 0.2)])
    drive(e, 10, v=0.5, w=0.1)
    assert not e.state.stall.any()


def test_a_placed_robot_takes_its_trailers_along() -> None:
    trailers = (trailer(), trailer())
    e = train(trailers)
    drive(e, 20, v=0.5, w=0.5)
    bends = np.diff(e.state.pose[:, 2])
    e.queue_command("t", cmd.SetVelocity(v=0.0, w=0.0))
    e.queue_command("t", cmd.SetPose(Pose(5.0, 3.0, 2.0)))
    e.step(1)
    assert np.remainder(np.diff(e.state.pose[:, 2]) - bends + 1, 2 * math.pi) == (
        pytest.approx(1.0)
    )
    assert hitch_gaps(e, trailers) == pytest.approx([0.0, 0.0], abs=1e-12)
    # A trailer that is placed elsewhere turns about its hitch, within its limit.
    e.queue_command(trailer_name("t", 2), cmd.SetPose(Pose(0.0, 0.0, 2.2)))
    e.step(1)
    assert e.state.pose[2, 2] == pytest.approx(2.2)
    assert hitch_gaps(e, trailers) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_train_at_rest_keeps_its_bits() -> None:
    e = train([trailer(), trailer()])
    drive(e, 13, v=0.7, w=0.3)
    drive(e, 2, v=0.0, w=0.0)
    before = e.state.pose.copy()
    e.step(5)
    assert np.array_equal(before, e.state.pose)


def test_a_removed_trailer_leaves_the_rest() -> None:
    e = train([trailer(), trailer()])
    e.remove_body(trailer_name("t", 1))
    assert e.trailers_of("t") == []
    assert e.bodies.train.shape == (0, 2)
    drive(e, 5, v=1.0)
    assert e.state.pose[1, 0] == pytest.approx(-2.2)


TUG = """
extends = "p3dx"
[limits]
accel = [0, 0, 0]
decel = [0, 0, 0]

[[trailers]]
hitch = 0.3
length = 0.5
outline = [[-0.2, -0.2], [0.2, -0.2], [0.2, 0.2], [-0.2, 0.2]]

[[trailers]]
hitch = 0.3
length = 0.5
limit_deg = 60
outline = [[-0.2, -0.2], [0.2, -0.2], [0.2, 0.2], [-0.2, 0.2]]
"""


def tug() -> RobotSpec:
    return parse_robot(TUG, "tug")


def test_a_robot_file_and_back() -> None:
    spec = tug()
    assert [one.limit for one in spec.trailers] == pytest.approx(
        [math.radians(80), math.radians(60)]
    )
    assert (
        parse_robot("", "x")
        if False
        else to_table(spec)["trailers"][1]["limit_deg"] == pytest.approx(60)
    )
    with pytest.raises(ModelError, match="at most 3 trailers, found 4"):
        replace(spec, trailers=spec.trailers * 2)
    with pytest.raises(ModelError, match="a drive and without dynamics"):
        replace(spec, dynamics=DynamicsSpec(mass=9.0))
    with pytest.raises(ModelError, match="length"):
        replace(spec.trailers[0], length=0.0)
    with pytest.raises(ModelError, match="outline needs at least 3"):
        replace(spec.trailers[0], outline=((0.0, 0.0), (1.0, 0.0)))


def test_robots_of_a_model_bring_their_trailers() -> None:
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot(tug(), name="a", pose=(0, 0, 0))
    assert list(sim.robots) == ["a", "a_trailer_1", "a_trailer_2"]
    assert sim.robots["a_trailer_2"].truth.x == pytest.approx(-1.6)
    # Clients do not claim trailers.
    assert sim.core.unserved == {"a_trailer_1", "a_trailer_2"}
    robot.command(v=0.5)
    sim.run(2.0)
    assert sim.robots["a_trailer_1"].truth.x == pytest.approx(0.2)
    sim.add_robot("p3dx", name="b_trailer_1", pose=(5, 5, 0))
    with pytest.raises(WorldError, match="a trailer needs this name"):
        sim.add_robot(tug(), name="b", pose=(5, 0, 0))
    with pytest.raises(ModelError, match="no trailer and has no trailers"):
        sim.masses.set_dynamics("a", DynamicsSpec(mass=9.0))
    sim.remove_robot("a")
    assert list(sim.robots) == ["b_trailer_1"]


def test_lidars_see_trailers() -> None:
    sim = Simulation(odometry_error="none", sensor_noise=False)
    sim.add_robot(tug(), name="a", pose=(0, 0, 0))
    seer = sim.add_robot(
        "p3dx", name="s", pose=(-0.8, -3.0, math.pi / 2), lasers=["lms200"]
    )
    sim.step()
    ranges = np.asarray(seer.laser.view().ranges)
    # The side of the first trailer is at y = -0.2; the laser is mounted ahead.
    ahead = ranges[len(ranges) // 2]
    assert ahead == pytest.approx(2.8 - seer.laser.view().frame_pose.x, abs=0.02)


def test_saved_states_and_journals_with_trailers() -> None:
    sim = Simulation(odometry_error="none")
    robot = sim.add_robot(tug(), name="a", pose=(0, 0, 0))
    robot.command(v=0.5, w=0.3)
    sim.run(1.0)
    saved = sim.save_state()
    sim.run(1.0)
    again = Simulation(odometry_error="none")
    # A world that has the model alone makes the trailers.
    again.add_robot(tug(), name="other", pose=(0, 0, 0))
    again.restore(saved)
    assert list(again.robots) == list(sim.robots)
    again.run(1.0)
    assert again.digest() == sim.digest()
    twin = again.clone()
    twin.step()
    again.step()
    assert twin.digest() == again.digest()
