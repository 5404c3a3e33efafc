"""The page and pictures draw the wheels of a car-like robot at their angles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import Browser

from botyard.model.wheelplaces import steered_places
from botyard.sim.simulation import Simulation
from tests.page.pages import page
from tests.page.serving import served
from tests.page.test_layers import Picture
from tests.waiting import wait

ANGLE = 0.35
AREA = (-0.3, -0.4, 0.8, 0.4)


def world() -> Simulation:
    """Return a car that has turned its wheels to the left."""
    sim = Simulation()
    car = sim.add_robot("car", "ann", pose=(0.0, 0.0, 0.0))
    car.command(steer=ANGLE)
    while sim.fleet.state.steer[0, 0] != ANGLE:
        sim.step()
    return sim


def points(
    sim: Simulation,
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return points of the steered wheels, and points that only straight wheels cover."""
    kinematics = sim.robots["ann"].spec.kinematics
    radius = 0.85 * kinematics.wheel_radius
    covered, free = [], []
    angles = kinematics.wheel_angles(ANGLE)
    for (x, y), angle in zip(steered_places(kinematics), angles, strict=True):
        for sign in (1.0, -1.0):
            covered.append(
                (
                    x + sign * radius * math.cos(angle),
                    y + sign * radius * math.sin(angle),
                )
            )
            free.append((x + sign * radius, y - sign * 0.2 * radius))
    return covered, free


def test_pictures_show_the_angles() -> None:
    sim = world()
    image = np.asarray(sim.render(area=AREA, size=1600).convert("RGB")).astype(int)
    scale = image.shape[1] / (AREA[2] - AREA[0])
    covered, free = points(sim)
    dark, light = (
        [
            image[round((AREA[3] - y) * scale), round((x - AREA[0]) * scale)].max()
            for x, y in places
        ]
        for places in (covered, free)
    )
    assert max(dark) < 60 < 90 < min(light), (dark, light)


@pytest.mark.peer
@pytest.mark.xdist_group("browser")
def test_the_page_shows_the_angles(browser: Browser) -> None:
    sim = world()
    with served(sim) as simulator, page(browser, simulator.url) as one:
        one.until("__sim.world.frame?.steering.size === 1")
        covered, free = points(sim)
        one.js("__sim.viewpoint.restore(0.2, 0, 500, true)")

        def seen() -> tuple[int, int]:
            picture = Picture(one)
            dark = max(max(picture.is_of(*at)) for at in covered)
            return dark, min(max(picture.is_of(*at)) for at in free)

        wait(lambda: seen()[0] < 60 < 90 < seen()[1])


@pytest.mark.peer
@pytest.mark.xdist_group("browser")
def test_arrows_drive_a_car_on_arcs(browser: Browser) -> None:
    """The arrow to the left alone turns nothing; with the arrow up the car turns."""
    sim = Simulation(step=0.05)
    ann = sim.add_robot("car", "ann", pose=(0.0, 0.0, 0.0))
    with served(sim) as simulator, page(browser, simulator.url) as one:
        one.click(0, 0)
        keys = one.tab.keyboard
        keys.down("ArrowLeft")
        simulator.wait(lambda: ann.clients == ("page",))
        start = simulator.do(lambda: sim.time)
        simulator.wait(lambda: sim.time > start + 0.5)
        assert simulator.do(lambda: ann.truth) == (0.0, 0.0, 0.0)
        keys.down("ArrowUp")
        simulator.wait(lambda: ann.truth.th > 0.5 and ann.truth.y > 0.1)
        v = simulator.do(lambda: ann.velocity)
        assert 0 < v.w <= v.vx / ann.spec.kinematics.turning_radius + 1e-9
        keys.up("ArrowUp")
        keys.up("ArrowLeft")
        simulator.wait(lambda: ann.velocity == (0.0, 0.0, 0.0))
