"""The static map as cells:

messages have a limit of cells, and slow work is done next to the steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from botyard.interfaces.ros import mapcells
from botyard.interfaces.ros.mapcells import CELL_SIZE, MapCells
from botyard.model import raster
from botyard.model.mapbuilder import MapBuilder
from botyard.model.raster import rasterise
from botyard.model.rasterjob import RasterAnswer
from botyard.model.scene import Scene
from botyard.servers.hub import Hub
from botyard.servers.jobs.child_jobs import Job, JobLimits
from botyard.servers.jobs.threads import LoopHost
from botyard.sim.simulation import Simulation
from tests.waiting import PATIENCE

WALLS = np.array([[0.0, 0.0, 10.0, 0.0], [10.0, 0.0, 10.0, 4.02]])


class Host:
    """Waits for the test before it works."""

    def __init__(self) -> None:
        self.jobs: list[
            tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]
        ] = []

    def run_in_background(
        self, job: Callable[[], Any], done: Callable[[Any, Exception | None], None]
    ) -> None:
        self.jobs.append((job, done))

    def work(self) -> None:
        job, done = self.jobs.pop(0)
        try:
            result = job()
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def end_soon(self, status: int, crash: bool) -> None:
        raise AssertionError


def made(scene: Scene) -> tuple[Simulation, Host, MapCells]:
    sim, host = Simulation(scene), Host()
    return sim, host, MapCells(sim, host, None)


def test_small_maps_are_there_at_once() -> None:
    sim, host, cells = made(Scene(segments=WALLS))
    version, found = cells.version, cells.get()
    assert found is not None
    np.testing.assert_array_equal(found.solid, rasterise(sim.scene, CELL_SIZE).solid)
    assert cells.get() is found
    assert cells.version == version
    sim.replace_scene(Scene())
    assert cells.version != version
    empty = cells.get()
    assert empty is not None
    assert empty.solid.size == 0
    assert not host.jobs


def test_a_map_without_anything_solid_is_free_and_a_hall_is_not_filled() -> None:
    _, _, cells = made(
        Scene.from_array(np.zeros((4, 6), np.bool_), CELL_SIZE, (1.0, 2.0))
    )
    found = cells.get()
    assert (
        found is not None
        and found.solid.shape == (4, 6)
        and not found.solid.any()
        and (found.x, found.y) == (1, 2)
    )
    _, _, cells = made(MapBuilder().rectangle(0, 0, 2, 1).scene())
    found = cells.get()
    assert (
        found is not None and found.solid[0].all() and not found.solid[1:-1, 1:-1].any()
    )


def test_large_ones_come_later_and_only_the_present_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapcells, "INLINE_SHAPES", 1)
    sim, host, cells = made(Scene(segments=WALLS))
    assert cells.get() is None
    assert cells.get() is None
    assert len(host.jobs) == 1, "made once"
    before = cells.version
    sim.replace_scene(Scene(segments=WALLS + 1.0))
    assert cells.get() is None
    host.work()
    assert cells.get() is None, "those were of the map before"
    between = cells.version
    host.work()
    found = cells.get()
    assert found is not None
    assert (found.x, found.resolution) == (1.0, CELL_SIZE)
    assert len({before, between, cells.version}) == 3, "so that it is published"


@pytest.mark.parametrize("far", [1e3, 1e5, 1e12])
def test_cells_do_not_follow_the_extent(
    far: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mapcells, "MAX_CELLS", 40_000)
    monkeypatch.setattr(mapcells, "INLINE_CELLS", 100)
    _, host, cells = made(
        Scene(
            segments=np.concatenate([WALLS, [[far, far, far, far - 1.0]]]),
            points=np.array([[-far, 0.0]]),
        )
    )
    cells.get()
    host.work()
    found = cells.get()
    assert found is not None
    assert 2_000 < found.solid.size <= 40_000
    assert found.solid.any()
    assert found.resolution > CELL_SIZE
    assert f"published with cells of {found.resolution:g} m" in caplog.text


def test_many_long_walls_are_drawn_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    scene = Scene(segments=rng.uniform(0.0, 30.0, (400, 4)))
    whole = rasterise(scene, 0.1).solid
    most = 0
    repeat = np.repeat

    def watched(*args: Any) -> Any:
        nonlocal most
        found = repeat(*args)
        most = max(most, len(found))
        return found

    monkeypatch.setattr(raster, "MAX_POINTS_AT_ONCE", 3000)
    monkeypatch.setattr(np, "repeat", watched)
    np.testing.assert_array_equal(rasterise(scene, 0.1).solid, whole)
    assert 1000 < most <= 3000 + 2000, "a portion, or one wall"


def test_a_process_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapcells, "INLINE_SHAPES", 1)
    scene = Scene(segments=WALLS)

    async def get(limits: JobLimits) -> Any:
        cells = MapCells(
            Simulation(scene),
            LoopHost(Hub(Simulation())),
            lambda module: Job(module, limits),
        )
        async with asyncio.timeout(PATIENCE):
            while (found := cells.get()) is None:
                await asyncio.sleep(0.01)

        return found

    found, here = (
        asyncio.run(get(JobLimits(time=PATIENCE))),
        rasterise(scene, CELL_SIZE),
    )
    np.testing.assert_array_equal(found.solid, here.solid)
    assert found[1:] == here[1:]
    assert asyncio.run(get(JobLimits(time=0.001))).solid.size == 0, (
        "it may not take so long: no cells"
    )
    with pytest.raises(ValueError, match="reshape"):
        _ = RasterAnswer(2, 3, b"12345", 0.0, 0.0, 1.0).raster
