"""Each layer is drawn at its objects by both renderers, and gone when switched off,
checked in the picture.
"""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from botyard.geometry import Pose
from botyard.model.scene import Area, Place, Scene
from botyard.sim.simulation import Simulation
from tests.page.pages import PageObject, page
from tests.page.serving import served

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("browser")]

ROOM = [[0, 0, 16, 0], [16, 0, 16, 10], [16, 10, 0, 10], [0, 10, 0, 0]]
ANN, BOB = Pose(4.0, 5.0, 0.0), Pose(11.25, 5.25, 0.5)


def world() -> Simulation:
    scene = Scene(
        name="room",
        segments=np.array(ROOM, float),
        places=(Place(kind="Goal", name="", pose=Pose(2.5, 8.5, 0.0)),),
        areas=(
            Area(
                kind="ForbiddenArea",
                name="",
                corners=((13, 1), (15, 1), (15, 2.5), (13, 2.5)),
            ),
        ),
    )
    sim = Simulation(scene, step=0.05, odometry_error="none", sensor_noise=False)
    sim.add_robot("p3at", "ann", pose=ANN)
    sim.add_robot("p3dx", "bob", pose=BOB)
    return sim


class Picture:
    """A picture of the stage."""

    def __init__(self, one: PageObject) -> None:
        one.js("__sim.painter.stage.drawNow()")
        stage = one.tab.locator(".stage")
        box = stage.bounding_box()
        assert box is not None
        self._one, self._x, self._y = one, box["x"], box["y"]
        with Image.open(io.BytesIO(stage.screenshot())) as picture:
            self.pixels = np.asarray(picture.convert("RGB"), dtype=np.int16)

    def differs(self, other: Picture, x: float, y: float, reach: int = 3) -> bool:
        """Return whether a pixel within `reach` of a point of the world (m) has another
        colour.
        """
        px, py = self._one.at(x, y)
        i, j = round(py - self._y), round(px - self._x)
        window = np.s_[
            max(0, i - reach) : i + reach + 1, max(0, j - reach) : j + reach + 1
        ]
        return bool(
            (np.abs(self.pixels[window] - other.pixels[window]).max(axis=2) > 24).any()
        )

    def contrast(self, x: float, y: float, reach: int = 3) -> int:
        """Return the contrast of the colours within `reach` pixels of a point of the
        world (m).
        """
        px, py = self._one.at(x, y)
        i, j = round(py - self._y), round(px - self._x)
        window = self.pixels[
            max(0, i - reach) : i + reach + 1, max(0, j - reach) : j + reach + 1
        ]
        return int((window.max(axis=(0, 1)) - window.min(axis=(0, 1))).max())

    def is_of(self, x: float, y: float) -> tuple[int, int, int]:
        """Return the colour of a point of the world (m)."""
        px, py = self._one.at(x, y)
        r, g, b = self.pixels[round(py - self._y), round(px - self._x)].tolist()
        return r, g, b


@pytest.mark.parametrize("renderer", ["webgl2", "canvas2d"])
def test_each_layer_by_its_picture(browser: Browser, renderer: str) -> None:
    """GUI-023 … GUI-029: a key changes the pixels of its layer, and no others."""
    sim = world()
    with (
        served(sim) as simulator,
        page(browser, simulator.url, renderer=renderer) as one,
    ):
        assert one.js("__sim.painter.renderer") == renderer
        simulator.wait(lambda: sim.time > 0.2)
        simulator.do(lambda: sim.robots["bob"].command(v=0.3))
        simulator.wait(
            lambda: (
                math.dist(sim.robots["bob"].truth[:2], BOB[:2]) > 1.2
                and sim.robots["bob"].velocity.vx > 0.25
            )
        )
        # A robot moved by hand keeps its odometry, so that the two poses differ.
        simulator.do(lambda: sim.put("ann", (5.5, 6.0, 0.0)))
        tick = simulator.do(lambda: sim.tick)
        simulator.wait(lambda: sim.tick > tick + 4)
        simulator.do(simulator.hub.pause)
        ann, bob = (
            simulator.do(lambda n=n: sim.robots[n].truth) for n in ("ann", "bob")
        )
        one.js("__sim.selection.set(['bob'])")
        one.until("__sim.painter.drawn.fans === 1 && __sim.painter.drawn.sonar === 1")
        one.until(
            f"Math.abs(__sim.world.frame.pose[3] + __sim.world.schema.origin[0] - {bob.x}) < 0.01"
        )
        behind = (ann.x - 0.1, ann.y)
        # This crossing of grid lines is far from all objects.
        on = (8.0, 5.0)
        trail = (BOB.x + 0.5 * math.cos(0.5), BOB.y + 0.5 * math.sin(0.5))
        places = {
            "wall": (8.0, 10.0),
            "grid": on,
            "goal": (2.5, 8.5),
            "area": (14.0, 1.0),
            "inside": behind,
            "odometry": (4.7, 5.4),
            "trail": trail,
            "velocity": (bob.x + 0.29 * math.cos(0.5), bob.y + 0.29 * math.sin(0.5)),
        }
        full = Picture(one)
        assert full.is_of(*behind)[0] > 150, "the body is red"

        def toggled(key: str, ready: str = "true") -> dict[str, bool]:
            before = Picture(one)
            one.press(key)
            one.until(ready)
            after = Picture(one)
            return {name: after.differs(before, *p) for name, p in places.items()}

        def shown(
            key: str,
            layer: str,
            name: str,
            *,
            also: tuple[str, ...] = (),
            ready: str = "true",
        ) -> None:
            """Switch off (or on) and back:

            both times the picture changes at this place only.
            """
            was_on = one.js(f"__sim.settings.layers.{layer}")
            before = Picture(one)
            changed = toggled(key, ready)
            assert changed[name], (key, name)
            on, off = (before, Picture(one)) if was_on else (Picture(one), before)
            assert on.contrast(*places[name]) > off.contrast(*places[name]), (
                key,
                name,
                "drawn when it is on",
            )
            others = [
                n for n, c in changed.items() if c and n != name and n not in also
            ]
            assert others == [], (key, others)
            assert toggled(key)[name], (key, name, "again")

        # Show the sensors of the selected robot first, so that their rays do not cover other
        # objects.
        for key, drawn in (("l", "fans"), ("n", "sonar")):
            before = Picture(one)
            one.press(key)
            one.until(f"__sim.painter.drawn.{drawn} === 0")
            assert any(
                Picture(one).differs(
                    before,
                    bob.x + r * math.cos(0.5 + a),
                    bob.y + r * math.sin(0.5 + a),
                    2,
                )
                for r in (0.8, 1.0, 1.2)
                for a in np.linspace(-1.5, 1.5, 31)
            ), key

        one.press("Escape")
        one.until("__sim.selection.names.length === 0")
        shown("g", "grid", "grid", also=("wall", "trail", "goal", "area", "odometry"))
        shown("m", "map", "wall")
        shown("k", "places", "goal")
        shown("y", "areas", "area")
        shown("o", "odometry", "odometry", also=("inside", "velocity"))
        shown("v", "velocity", "velocity", also=("inside",))
        # Bodies are drawn filled, then as outlines, then not at all.
        filled = Picture(one)
        one.press("f")
        hollow = Picture(one)
        assert (
            hollow.differs(filled, *behind, 0)
            and hollow.is_of(*behind)[0] - hollow.is_of(*behind)[1] < 60
        )
        one.press("d")
        nothing = Picture(one)
        assert nothing.differs(hollow, ann.x, ann.y, 16), "the outline was there"
        assert not nothing.differs(hollow, *on)
        one.press("d")
        one.press("f")
        assert not Picture(one).differs(filled, *behind, 0)
        # Names and true poses stand next to the robots.
        for key in ("b", "i"):
            before = Picture(one)
            one.press(key)
            after = Picture(one)
            assert after.differs(before, ann.x + 0.35, ann.y + 0.3, 16), key
            one.press(key)

        # A trail disappears when it is switched off, and starts again.
        changed = toggled("t")
        assert changed["trail"] and not changed["wall"]
        gone = Picture(one)
        one.press("t")
        assert not Picture(one).differs(gone, *trail)
        # Hide the models one by one.
        before = Picture(one)
        one.tab.get_by_text("Layers", exact=True).click()
        one.tab.get_by_label("p3at", exact=True).click()
        one.until("__sim.painter.drawn.bodies === 1")
        assert Picture(one).differs(before, *behind, 0)
