"""Range finders with a cone: shortest range, incidence, limits, messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import botyard
from botyard.devices.rangefinders import InfraredSpec, UltrasonicSpec, cone
from botyard.errors import ModelError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.devices import find_device
from botyard.model.obstacles import Returns
from botyard.model.scene import Scene, SpecialWalls

FOV = math.radians(30)


def reading(spec: UltrasonicSpec, tilt: float = 0.0, **returns: Any) -> float:
    """Return the reading 2 m in front of a wall whose normal is turned by `tilt`."""
    c, s = math.cos(tilt), math.sin(tilt)
    ends = (2 * c - 50 * s, 2 * s + 50 * c), (2 * c + 50 * s, 2 * s - 50 * c)
    scene = Scene(
        segments=np.array([[*ends[0], *ends[1]]]),
        special_walls=(SpecialWalls(first=0, last=1, returns=Returns(**returns)),),
    )
    sim = botyard.Simulation(scene, sensor_noise=False)
    robot = sim.add_robot(find_robot("p3dx").fitted(spec), "a", pose=(0, 0, 0))
    sim.step()
    found: float = robot.devices[spec.type].read()
    return found


@pytest.mark.parametrize("tilt", [0.0, 0.1, 0.2, 0.4, 0.9])
def test_the_range_is_the_least_over_the_cone(tilt: float) -> None:
    """A wall turned out of the cone is nearest at the cone's edge."""
    spec = UltrasonicSpec(fov=FOV, rays=301, range_max=9.0)
    expected = 2.0 / math.cos(max(0.0, tilt - FOV / 2))
    assert reading(spec, tilt) == pytest.approx(expected, rel=1e-5)
    axis = UltrasonicSpec(fov=FOV, rays=1, range_max=9.0)
    assert reading(axis, tilt) == pytest.approx(2.0 / math.cos(tilt))


def test_an_oblique_wall_reflects_sound_away() -> None:
    """The least incidence in the cone is the tilt minus half of the cone."""
    spec = UltrasonicSpec(
        fov=FOV, rays=61, range_max=9.0, max_incidence=math.radians(20)
    )
    assert reading(spec, math.radians(34)) == pytest.approx(
        2.0 / math.cos(math.radians(19)), rel=1e-3
    )
    assert reading(spec, math.radians(36)) == 9.0
    # Rays with an incidence below the limit count although nearer ones are lost.
    assert reading(spec, math.radians(25)) == pytest.approx(
        2.0 / math.cos(math.radians(10)), rel=1e-3
    )


def test_each_sensor_detects_its_class_of_walls() -> None:
    sound, light = UltrasonicSpec(range_max=3.0), InfraredSpec(range_max=3.0)
    assert reading(sound, laser=0) == pytest.approx(2.0)
    assert reading(light, laser=0) == 3.0
    assert reading(sound, sonar=False) == 3.0
    assert reading(light, sonar=False) == pytest.approx(2.0)


def test_messages_have_the_cone_and_no_echo_is_infinite() -> None:
    for name, spec, radiation in (
        ("ultrasonic", UltrasonicSpec(), 0),
        ("infrared", InfraredSpec(), 1),
    ):
        (ros,) = find_device(name).ros_messages
        near, far = ros.fields(spec, 0.5), ros.fields(spec, spec.range_max)
        assert (near["radiation_type"], near["range"]) == (radiation, 0.5)
        assert near["field_of_view"] == spec.fov
        assert (near["min_range"], near["max_range"]) == (
            spec.range_min,
            spec.range_max,
        )
        assert far["range"] == math.inf


def test_errors_have_their_deviation() -> None:
    spec = UltrasonicSpec(
        range_max=9.0, range_deviation=0.02, range_share=0.01, missing=0.2
    )
    scene = Scene(segments=np.array([[2.0, -9.0, 2.0, 9.0]]))
    for changes in ({}, {"max_incidence": 1.0}):
        given = UltrasonicSpec(
            **{k: getattr(spec, k) for k in ("range_max", "range_deviation")},
            range_share=0.01,
            missing=0.2,
            **changes,
        )
        sim = botyard.Simulation(scene, seed=2)
        robot = sim.add_robot(find_robot("p3dx").fitted(given), "a", pose=(0, 0, 0))
        found = []
        for _ in range(600):
            sim.step()
            found.append(robot.devices["ultrasonic"].read())
        echoes = np.array([r for r in found if r < 9.0])
        assert 1 - len(echoes) / 600 == pytest.approx(0.2, abs=0.05)
        assert echoes.mean() == pytest.approx(2.0, abs=0.005)
        # σ² = 0.02² + (0.01 · 2)²
        assert echoes.std() == pytest.approx(0.0283, rel=0.12)
    assert cone(spec, False)[0].r_std == 0.0


def test_wrong_ranges_are_refused() -> None:
    with pytest.raises(ModelError, match="ultrasonic: range must be"):
        UltrasonicSpec(range_min=4.0)
    with pytest.raises(ModelError, match="infrared: rays"):
        InfraredSpec(rays=0)
    assert UltrasonicSpec(pose=Pose(0.1, 0.0, 1.0)).pose.x == 0.1
