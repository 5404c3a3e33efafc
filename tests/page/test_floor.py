"""Both renderers draw the floor: colour, picture, zones, pheromones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import Browser

from botyard.geometry import Pose
from botyard.model.floor import Floor, FloorPicture, FloorZone, PheromoneField
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation
from tests.page.pages import page
from tests.page.serving import served
from tests.page.test_layers import ROOM, Picture
from tests.waiting import wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]


def world() -> Simulation:
    pixels = np.zeros((2, 2, 3), np.uint8)
    # Red on top, blue below; the picture is turned by a quarter, so red is on the left.
    pixels[0], pixels[1] = (250, 0, 0), (0, 0, 250)
    floor = Floor(
        color="#00a000",
        picture=FloorPicture(
            pixels=pixels, resolution=1.5, origin=Pose(5.0, 3.0, math.pi / 2)
        ),
        zones=(
            FloorZone(name="a", corners=((8, 1), (10, 1), (10, 3)), color="#fafa00"),
            FloorZone(name="b", corners=((12, 1), (14, 1), (14, 3)), hole=True),
        ),
        fields=(
            PheromoneField(
                name="trail", area=(8, 5, 12, 9), cell=0.5, half_life=0.0, color="white"
            ),
        ),
    )
    sim = Simulation(Scene(segments=np.array(ROOM, float), floor=floor))
    sim.floor.mark("trail", [[9.2, 6.2]], 1.0)
    return sim


@pytest.mark.parametrize("renderer", ["webgl2", "canvas2d"])
def test_the_floor_by_its_picture(browser: Browser, renderer: str) -> None:
    sim = world()
    with (
        served(sim) as simulator,
        page(browser, simulator.url, renderer=renderer) as one,
    ):
        assert one.js("__sim.painter.renderer") == renderer
        one.until("__sim.world.map.floor?.picture?.image && __sim.world.fields.size")
        places = {
            "floor": ((1.3, 8.3), (0, 160, 0)),
            "left of the picture": ((2.7, 4.3), (250, 0, 0)),
            "right of the picture": ((4.3, 5.7), (0, 0, 250)),
            "zone": ((9.7, 1.3), (250, 250, 0)),
            "hole": ((13.7, 1.3), (0, 0, 0)),
            "beside the zone": ((8.3, 2.7), (0, 160, 0)),
        }

        def seen() -> dict[str, float]:
            picture = Picture(one)
            return {
                name: float(np.abs(np.subtract(picture.is_of(*at), color)).max())
                for name, (at, color) in places.items()
            }

        assert max(seen().values()) <= 6, seen()
        # The cell of the mark, and no other, is white to 85 %.
        picture = Picture(one)
        assert min(picture.is_of(9.25, 6.25)) > 190
        assert picture.is_of(9.75, 6.25) == picture.is_of(1.3, 8.3)
        one.press("z")
        assert Picture(one).is_of(9.25, 6.25) == picture.is_of(1.3, 8.3)
        one.press("z")
        one.press("u")
        assert max(Picture(one).is_of(*places["floor"][0])) > 240, "the plain ground"
        one.press("u")

        simulator.do(lambda: sim.floor.mark("trail", [[10.2, 7.2]], 1.0))
        wait(lambda: min(Picture(one).is_of(10.25, 7.25)) > 190)
        simulator.do(lambda: sim.floor.remove_zone("a"))
        one.until("__sim.world.map.floor.zones.length === 1")
        wait(lambda: seen()["zone"] > 200)
