"""Sensors that look down, each against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botyard.devices.floorsensors import (
    CLIFF_SENSOR,
    LINE_SENSOR,
    PHEROMONE_SENSOR,
    CliffSensorSpec,
    LineSensorSpec,
    PheromoneSensorSpec,
)
from botyard.devices.pheromonepen import PHEROMONE_PEN, PheromonePenSpec
from botyard.errors import ModelError
from botyard.formats.models import find_robot
from botyard.geometry import Pose
from botyard.model.floor import Floor, FloorPicture, FloorZone, PheromoneField
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from botyard.testing import check_device

SPOTS = ((0.3, 0.1), (0.0, 0.0), (-0.2, -0.15))
RNG = np.random.default_rng(8)
PIXELS = RNG.integers(0, 256, (20, 30, 4)).astype(np.uint8)
FLOOR = Floor(
    color="silver",
    picture=FloorPicture(pixels=PIXELS, resolution=0.1, origin=Pose(-1.5, -1.0, 0.0)),
    zones=(FloorZone(corners=((2, 0), (3, 0), (3, 1), (2, 1)), hole=True),),
    fields=(PheromoneField(name="trail", area=(-2, -2, 2, 2), cell=0.1, half_life=0),),
)


@pytest.mark.parametrize(
    "kind", [LINE_SENSOR, CLIFF_SENSOR, PHEROMONE_SENSOR, PHEROMONE_PEN]
)
def test_the_kind_keeps_its_promises(kind) -> None:
    assert check_device(kind) == []


def naive(x: float, y: float) -> tuple[tuple[int, int, int], bool]:
    """Return colour of the floor and whether it is a hole, one point at a time."""
    if 2 < x < 3 and 0 < y < 1:
        return (0, 0, 0), True
    column, row = math.floor((x + 1.5) / 0.1), math.floor((y + 1.0) / 0.1)
    if not (0 <= column < 30 and 0 <= row < 20):
        return (192, 192, 192), False
    *color, alpha = PIXELS[19 - row, column].tolist()
    return ((0, 0, 0), True) if alpha < 128 else (tuple(color), False)


@given(st.floats(-2, 3.5), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1))
def test_readings_equal_the_twin(x: float, y: float, th: float) -> None:
    sim = Simulation(Scene(floor=FLOOR), sensor_noise=False)
    spec = find_robot("p3dx").fitted(LineSensorSpec(positions=SPOTS, noise=0.3))
    spec = spec.fitted(CliffSensorSpec(positions=SPOTS))
    spec = spec.fitted(PheromoneSensorSpec(positions=SPOTS))
    robot = sim.add_robot(spec, pose=(x, y, th))
    points = [
        (
            x + math.cos(th) * u - math.sin(th) * v,
            y + math.sin(th) * u + math.cos(th) * v,
        )
        for u, v in SPOTS
    ]
    sim.floor.mark("trail", points, [1.0, 2.0, 4.0])
    # A point on a border may fall to either side by rounding.
    if any(abs(math.remainder(v, 0.1)) < 1e-9 for point in points for v in point):
        return
    seen = robot.devices["line_sensor"].read()
    for k, point in enumerate(points):
        color, hole = naive(*point)
        assert tuple(seen.colors[k].tolist()) == color
        assert seen.brightness[k] == pytest.approx(
            (0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]) / 255
        )
        assert robot.devices["cliff_sensor"].read()[k] is hole
    levels = robot.devices["pheromone_sensor"].read()
    for level, point, own in zip(levels, points, (1.0, 2.0, 4.0), strict=True):
        inside = abs(point[0]) < 2 and abs(point[1]) < 2
        assert level >= own if inside else level == 0.0


def test_noise_of_a_line_sensor_has_its_deviation() -> None:
    sim = Simulation(Scene(floor=Floor(color="gray50")), seed=3)
    spots = tuple((0.001 * k, 0.0) for k in range(1000))
    spec = find_robot("p3dx").fitted(LineSensorSpec(positions=spots, noise=0.05))
    sensor = sim.add_robot(spec, pose=(0, 0, 0)).devices["line_sensor"]
    first = sensor.read().brightness
    assert (sensor.read().brightness == first).all(), "one reading for each step"
    sim.step()
    both = np.concatenate([first, sensor.read().brightness])
    assert len(np.unique(both)) > 1900
    assert both.mean() == pytest.approx(127 / 255, abs=0.005)
    assert both.std() == pytest.approx(0.05, rel=0.07)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: LineSensorSpec(positions=()), "1 to 1000 points, found 0"),
        (lambda: CliffSensorSpec(positions=((0.0, 0.0),) * 1001), "found 1001"),
        (lambda: LineSensorSpec(noise=-1.0), "noise"),
        (lambda: PheromoneSensorSpec(pheromone=""), "name of a field"),
        (lambda: PheromonePenSpec(rate=20.0), "at most max_rate"),
    ],
)
def test_wrong_descriptions_are_refused(make, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        make()


def test_a_pheromone_that_the_floor_lacks_is_warned_about_once() -> None:
    said: list[str] = []
    model = find_robot("p3dx-nolaser")
    for spec in (
        PheromoneSensorSpec(pheromone="tral"),
        PheromonePenSpec(pheromone="trail"),
    ):
        model = model.fitted(spec)
    sim = Simulation(Scene(floor=FLOOR), warn=said.append)
    sim.add_robots(model, [(0.0, 0.0, 0.0), (5.0, 0.0, 0.0)], ["a", "b"])
    assert said == [
        "robot a and 1 more: pheromone_sensor: expected a pheromone field of the floor "
        '(trail), found "tral"; did you mean "trail"?'
    ]
    said.clear()
    Simulation(warn=said.append).add_robot(model, "c")
    assert [("it has none" in one, one.split(": ")[1]) for one in said] == [
        (True, "pheromone_sensor"),
        (True, "pheromone_pen"),
    ]
