"""Heat maps: what is counted in which cell, and nothing while no page shows one."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from botyard.errors import NotNowError
from botyard.interfaces.page.courses import Courses
from botyard.interfaces.page.heat import HeatMaps
from botyard.interfaces.page.heatcounts import MAX_CELLS, Cells, Counts
from botyard.model.scene import Scene
from botyard.protocols.webgui.pushes import HeatResult
from botyard.sim.simulation import Simulation


def halls() -> Simulation:
    """Return two halls of 6 m x 8 m without a door, with a robot in the left one."""
    sim = Simulation(step=0.1, seed=1)
    sim.add_wall((-6, -4), (6, -4), (6, 4), (-6, 4), (-6, -4))
    sim.add_wall((0.1, -4), (0.1, 4))
    sim.add_robot("p3dx", "ann", pose=(-4.9, -1.9, 0.0))
    return sim


def maps_of(sim: Simulation) -> HeatMaps:
    """Return the heat maps of a world; none is shown yet."""
    return HeatMaps(sim, Courses(sim))


def result(
    maps: HeatMaps, what: str, until: float | None = None
) -> tuple[HeatResult, NDArray[Any]]:
    """Return a heat map with its values."""
    found = msgspec.json.decode(bytes(maps.answer(what, until)), type=HeatResult)
    values = np.frombuffer(zlib.decompress(base64.b64decode(found.values)), "<f4")
    return found, values.reshape(found.rows, found.columns)


def test_visits_and_times_are_counted_where_the_robot_was() -> None:
    sim = halls()
    maps = maps_of(sim)
    sim.step(5)
    maps.watch(True)
    sim.robots["ann"].command.velocity(0.5, 0.0)
    sim.step(30)
    x = sim.robots["ann"].truth.x
    visits, values = result(maps, "visits")
    assert visits.edge == pytest.approx(0.2)
    assert (visits.x, visits.y) == pytest.approx((-5.0, -2.0))
    # One row of cells from the start to the present place, each entered once.
    assert values.tolist() == [[1.0] * (int((x + 5.0) / 0.2) + 1)]
    time, spent = result(maps, "time")
    assert spent.sum() == pytest.approx(3.0, abs=1e-5) == time.total
    assert time.duration == pytest.approx(3.0) and time.share is None
    # It goes back through the same cells.
    sim.robots["ann"].command.velocity(-0.5, 0.0)
    sim.step(60)
    assert result(maps, "visits")[0].most == 2.0


def test_stalls_and_waits_are_counted_in_seconds() -> None:
    sim = halls()
    ann = sim.robots["ann"]
    sim.add_robot("p3dx", "bob", pose=(-3.0, 2.0, 0.0))
    maps = maps_of(sim)
    maps.watch(True)
    ann.command.velocity(-1.0, 0.0)
    # No path leads to the other hall, so this robot waits.
    sim.robots["bob"].go_to(3.0, 0.0)
    sim.step(100)
    assert ann.state.stalled
    stalls, values = result(maps, "stalls")
    place = values[
        int((ann.truth.y - stalls.y) / 0.2), int((ann.truth.x - stalls.x) / 0.2)
    ]
    assert 5.0 < place == stalls.total < 10.0
    waits, values = result(maps, "waits")
    assert values.shape == (1, 1) and 9.0 < waits.total < 10.01
    assert (waits.x, waits.y) == pytest.approx((-3.0, 2.0), abs=0.2)


def test_coverage_is_the_share_of_the_free_area() -> None:
    sim = halls()
    maps = maps_of(sim)
    maps.watch(True)
    sim.robots["ann"].command.velocity(0.5, 0.0)
    sim.step(40)
    visited, values = result(maps, "visited")
    # The area of the hall that can be reached, and the way as wide as the robot.
    assert visited.free == pytest.approx(6.0 * 8.0, rel=0.06)
    assert visited.share == pytest.approx(visited.area / visited.free)
    assert 0.4 <= values.shape[0] * 0.2 <= 0.8
    seen, values = result(maps, "seen")
    assert seen.share is not None and 0.5 < seen.share < 1.0
    # Beams end at the wall between the halls.
    assert seen.x + seen.columns * seen.edge <= 0.1 + 2 * seen.edge


def test_nothing_is_counted_while_no_page_shows_a_heat_map() -> None:
    sim = halls()
    maps = maps_of(sim)
    maps.watch(True)
    sim.step(10)
    maps.watch(False)
    sim.step(50)
    assert result(maps, "time")[0].total == pytest.approx(1.0, abs=1e-5)
    maps.watch(True)
    sim.step(10)
    assert result(maps, "time")[0].total == pytest.approx(2.0, abs=1e-5)
    maps.reset()
    assert result(maps, "time")[0].total == 0.0
    sim.step(10)
    sim.add_wall((-2, 0), (-1, 0))
    sim.step(5)
    assert result(maps, "time")[0].total == pytest.approx(0.5, abs=1e-5), "a new map"


def test_an_earlier_moment_shows_the_samples_before_it() -> None:
    sim = halls()
    maps = maps_of(sim)
    sim.robots["ann"].command.velocity(0.5, 0.0)
    sim.step(40)
    early, late = (result(maps, "visits", until)[0] for until in (1.5, 4.0))
    assert 0 < early.total < late.total
    assert result(maps, "time", 4.0)[0].duration == pytest.approx(4.0, abs=0.6)
    with pytest.raises(
        NotNowError, match="the area that robots have seen is not known"
    ):
        maps.answer("seen", 1.0)


def test_large_and_empty_worlds_have_a_bounded_number_of_cells() -> None:
    empty = Cells.of(Scene(), [])
    assert empty.solid.size <= MAX_CELLS and not empty.free.any()
    sim = Simulation(step=0.1)
    sim.add_wall((-2000, -2000), (2000, 2000))
    large = Cells.of(sim.scene, [])
    assert large.solid.size <= 1.1 * MAX_CELLS
    # Robots outside count nowhere.
    counts = Counts(empty)
    pose, no = np.array([[1e6, 0.0]]), np.zeros(1, bool)
    at = counts.add(pose, np.array([-1]), no, no, np.array([0.3]), 1.0)
    assert at.tolist() == [-1] and not counts.time.any() and not counts.visited.any()
