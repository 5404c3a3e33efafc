"""Joints of one degree of freedom against closed forms."""

from __future__ import annotations

import math

import pytest

from botyard.devices.joints import Joint, JointCommand
from botyard.errors import CommandError
from botyard.geometry import Pose
from botyard.model.dynamics import Gains
from botyard.model.objects import JointSpec

EFFORT, POSITION, VELOCITY = (
    JointCommand.EFFORT,
    JointCommand.POSITION,
    JointCommand.VELOCITY,
)


def joint(**more: object) -> Joint:
    return Joint(JointSpec(name="j", parent="a", child="b", **more))  # type: ignore[arg-type]


def run(j: Joint, seconds: float, dt: float = 0.01) -> Joint:
    for _ in range(round(seconds / dt)):
        j.advance(dt)
    return j


@pytest.mark.parametrize("dt", [0.1, 0.01, 0.001])
def test_an_effort_accelerates_it(dt: float) -> None:
    j = joint(inertia=0.5)
    j.command(EFFORT, 1.0)
    run(j, 1.0, dt)
    assert j.velocity == pytest.approx(2.0)
    assert j.position == pytest.approx(1.0, abs=0.003)
    assert j.effort == 1.0
    j.command(EFFORT, 0.0)
    run(j, 1.0, dt)
    assert j.velocity == pytest.approx(2.0), "without damping it goes on"


def test_damping_lets_it_come_to_a_speed() -> None:
    j = joint(inertia=0.1, damping=0.5)
    j.command(EFFORT, 1.0)
    run(j, 5.0)
    assert j.velocity == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("gains", [None, Gains(20.0, 4.0), Gains(1e5, 10.0)])
@pytest.mark.parametrize("dt", [0.1, 0.001])
def test_it_goes_to_a_position_whatever_the_gains(
    gains: Gains | None, dt: float
) -> None:
    j = joint(inertia=0.2, gains=gains)
    j.command(POSITION, 0.7)
    run(j, 6.0, dt)
    assert j.position == pytest.approx(0.7, abs=1e-3)
    assert j.velocity == pytest.approx(0.0, abs=1e-3)


def test_limits() -> None:
    j = joint(low=-0.5, high=0.3, unlimited=False)
    j.command(POSITION, 2.0)
    run(j, 5.0)
    assert j.position == pytest.approx(0.3, abs=1e-3)
    j.command(VELOCITY, -1.0)
    run(j, 2.0)
    assert (j.position, j.velocity) == (-0.5, 0.0)
    j.reset()
    assert j.position == 0.0
    assert joint(low=0.2, high=0.4, unlimited=False).position == 0.2


def test_an_endless_one_takes_the_short_way() -> None:
    j = joint()
    j.command(VELOCITY, 3.0)
    run(j, 1.0)
    j.command(POSITION, -3.0)
    run(j, 3.0)
    assert j.position == pytest.approx(2 * math.pi - 3.0, abs=1e-3)


def test_where_the_child_is() -> None:
    turn = joint(planar=True, at=Pose(1.0, 0.0, 0.0), child_at=Pose(-0.5, 0.0, 0.0))
    turn.position = math.pi / 2
    assert turn.pose == pytest.approx(Pose(1.0, 0.5, math.pi / 2))
    slide = joint(
        planar=True,
        slides=True,
        at=Pose(0.0, 0.0, math.pi / 2),
        child_at=Pose(0.0, 0.0, math.pi / 2),
    )
    slide.position = 0.4
    assert slide.pose == pytest.approx(Pose(0.0, 0.4, 0.0), abs=1e-12)
    wheel = joint(at=Pose(0.0, 0.2))
    wheel.position = 1.0
    assert wheel.pose == Pose(0.0, 0.2)


def test_only_finite_commands() -> None:
    for wrong in (math.nan, math.inf, 3e38):
        with pytest.raises(CommandError, match="joint j: expected a number within"):
            joint().command(EFFORT, wrong)

    light = joint(inertia=1e-9)
    light.command(EFFORT, 1e6)
    assert run(light, 1.0).velocity == 1e6
