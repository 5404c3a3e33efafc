"""Pictures show the floor where it is."""

from __future__ import annotations

import math

import numpy as np

from botyard.geometry import Pose
from botyard.interfaces.page.floor import FIELD_PERIOD, field_columns, quantised
from botyard.model.floor import Floor, FloorPicture, FloorZone, PheromoneField
from botyard.model.floorlook import colors_at
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

AREA = (0.0, 0.0, 8.0, 6.0)


def world() -> Simulation:
    pixels = np.zeros((3, 4, 3), np.uint8)
    pixels[:] = np.arange(12, dtype=np.uint8).reshape(3, 4, 1) * 20
    zones = (
        FloorZone(corners=((5, 1), (7, 1), (7, 3)), color="#fafa00"),
        FloorZone(corners=((5, 4), (7, 4), (7, 5), (5, 5)), hole=True),
    )
    picture = FloorPicture(pixels=pixels, resolution=0.5, origin=Pose(2.5, 1.5, 1.0))
    fields = (PheromoneField(name="t", area=(0, 4, 2, 6), cell=0.25, color="blue"),)
    floor = Floor(color="#00a000", picture=picture, zones=zones, fields=fields)
    return Simulation(Scene(floor=floor))


def test_a_picture_has_the_colours_that_sensors_see() -> None:
    sim = world()
    image = np.asarray(sim.render(area=AREA, size=800).convert("RGB"))
    height, width, _ = image.shape
    rng = np.random.default_rng(5)
    points = rng.uniform((0.2, 0.2), (7.8, 5.8), (400, 2))
    near = [
        colors_at(sim.scene.floor, points + 0.02 * np.array([math.cos(a), math.sin(a)]))
        for a in np.linspace(0, 6, 12)
    ]
    # Pixels at edges mix two colours.
    clear = (np.ptp(np.stack(near), axis=0) == 0).all(axis=1)
    # The scale bar covers the lower left corner.
    clear &= (points > (2.0, 0.6)).any(axis=1)
    assert clear.sum() > 200
    column = (points[:, 0] / AREA[2] * width).astype(int)
    row = ((AREA[3] - points[:, 1]) / AREA[3] * height).astype(int)
    found = image[row, column].astype(int)
    assert (np.abs(found - near[0])[clear].max(axis=1) <= 2).all()


def test_a_picture_shows_the_levels_of_pheromones() -> None:
    sim = world()
    plain = np.asarray(sim.render(area=AREA, size=800).convert("RGB")).astype(int)
    sim.floor.mark("t", [[0.3, 4.3], [1.8, 5.8]], [1.0, 0.3])
    marked = np.asarray(sim.render(area=AREA, size=800).convert("RGB")).astype(int)
    changed = np.abs(marked - plain).max(axis=2)
    rows, columns = np.nonzero(changed)
    # 100 pixels a metre: two cells of 25 × 25 pixels.
    assert len(rows) == 2 * 25 * 25
    assert {(r // 25, c // 25) for r, c in zip(rows, columns, strict=True)} == {
        (6, 1),
        (0, 7),
    }
    assert changed[160, 35] > changed[10, 185] > 0


def test_frames_of_the_page_have_the_fields_now_and_then() -> None:
    sim = world()
    sim.floor.mark("t", [[0.3, 4.3], [1.8, 5.8]], [1.0, 0.001])
    shown = quantised(sim.floor.table("t"))
    assert shown.shape == (8, 8)
    assert shown[1, 1] == 255 and shown[7, 7] == 1 and np.count_nonzero(shown) == 2

    class Hub:
        def __init__(self, paused: bool) -> None:
            self.sim, self.is_paused = sim, paused

    counts = [len(field_columns(Hub(False), k, always=False)) for k in range(70)]
    assert sum(counts) == 70 / FIELD_PERIOD
    assert field_columns(Hub(True), 3, always=False)
    assert field_columns(Hub(False), 3, always=True)
    sim.floor.replace(Floor())
    assert not field_columns(Hub(True), 0, always=True)


def test_a_large_field_is_shown_by_the_highest_level_of_each_block() -> None:
    field = PheromoneField(name="t", area=(0, 0, 60, 30), cell=0.1, half_life=0.0)
    sim = Simulation(Scene(floor=Floor(fields=(field,))))
    sim.floor.mark("t", [[0.05, 0.05], [59.95, 29.95]])
    shown = quantised(sim.floor.table("t"))
    assert shown.shape == (100, 200)
    assert [tuple(at) for at in np.argwhere(shown)] == [(0, 0), (99, 199)]
