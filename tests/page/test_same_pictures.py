"""Python's picture of a world is the page's: at most 1 % of pixels differ by more than 16
levels, outside of texts, which depend on the machine's fonts.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from botyard.pictures.options import PictureOptions
from botyard.pictures.painter import Painter
from botyard.pictures.still import take
from botyard.sim.simulation import Simulation
from tests.page.pages import PageObject, page
from tests.page.serving import served
from tests.waiting import wait

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

LEVELS, SHARE = 16, 0.01


def office() -> Simulation:
    """Walls, a laser scan, sonar, and a stalled robot."""
    sim = Simulation.load("office", seed=1, odometry_error="none")
    for k, model in enumerate(["p3dx", "amigo", "p3at", "seekur", "peoplebot"]):
        sim.add_robot(model, f"r{k}", pose=(4 + 4 * k, 10.0 - k, 0.7 * k))
    sim.robots["r0"].laser.subscribe("test")
    sim.robots["r2"].sonar.subscribe("test")  # type: ignore[union-attr]
    sim.step(3)
    return sim


def warehouse() -> Simulation:
    """Twenty robots, four of whose lasers are read."""
    sim = Simulation.load("warehouse", seed=2)
    poses = sim.random_free_poses(20, index=3)
    for robot in sim.add_robots("p3dx", poses)[::5]:
        robot.laser.subscribe("test")
    sim.step(3)
    return sim


def cars() -> Simulation:
    """Cars with their wheels turned, and the boxes of a car park."""
    sim = Simulation.load("carpark", seed=3)
    sim.step(40)
    return sim


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB"), np.int16)


def of_page(one: PageObject) -> np.ndarray:
    """Return the picture of the page's canvas."""
    data = one.js(
        "(__sim.painter.stage.drawNow(),"
        " document.querySelector('.stage canvas').toDataURL('image/png').split(',')[1])"
    )
    return pixels(Image.open(io.BytesIO(base64.b64decode(data))))


def masked(
    shape: tuple[int, ...], boxes: Iterable[Sequence[float]], margin: float = 4.0
) -> np.ndarray:
    """Return which pixels texts cover: boxes of names, and the number at the scale bar."""
    mask = np.zeros(shape[:2], bool)
    for left, top, right, bottom in boxes:
        mask[
            max(int(top - margin), 0) : int(bottom + margin) + 1,
            max(int(left - margin), 0) : int(right + margin) + 1,
        ] = True
    mask[-36:-16, 12:62] = True
    return mask


def compared(
    one: PageObject, sim: Simulation, theme: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both pictures of the same part of the world, and the pixels of texts."""
    one.tab.mouse.move(0, 0)
    theirs = of_page(one)
    area = one.js(
        "(() => { const o = __sim.world.schema.origin, b = __sim.camera.box();"
        " return [b[0] + o[0], b[1] + o[1], b[2] + o[0], b[3] + o[1]]; })()"
    )
    height, width, _ = theirs.shape
    painter = Painter(
        PictureOptions(area=tuple(area), size=(width, height), theme=theme)
    )
    ours = pixels(painter.draw(take(sim)))
    labels = one.js("__sim.painter.labels")
    texts = [box for _, box in [*labels, *painter.labels]]
    return ours, theirs, masked(theirs.shape, texts)


def difference(one: PageObject, sim: Simulation, theme: str) -> float:
    """Return the share of pixels outside of texts that differ."""
    ours, theirs, texts = compared(one, sim, theme)
    differs = np.abs(ours - theirs).max(axis=2) > LEVELS
    assert (~texts).mean() > 0.8, "most of the picture is compared"
    assert theirs[~texts].std() > 5, "the picture is not blank"
    return float(differs[~texts].mean())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("world", [office, warehouse, cars])
def test_python_draws_what_the_page_draws(
    browser: Browser, world: object, theme: str
) -> None:
    sim = world()  # type: ignore[operator]
    with (
        served(sim, paused=True) as simulator,
        page(browser, simulator.url, color_scheme=theme) as one,
    ):
        one.until("__sim.world.frame && __sim.painter.drawn.bodies > 0")
        reads = [r for r in sim.robots.values() if r.lasers and r.laser.is_read]
        one.until(f"__sim.painter.drawn.fans >= {len(reads)}")
        for zoom in (1.0, 2.5):
            one.js(f"__sim.camera.zoom({zoom})")
            # The page may still get parts of the world.
            wait(
                lambda: difference(one, sim, theme) <= SHARE,
                what=lambda: f"{difference(one, sim, theme):.2%} of pixels differ",
            )
