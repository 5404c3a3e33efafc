"""The static map as cells, for ROS: not more than a message may have, whatever the world's extent, and made beside the steps if many."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import numpy as np

from botyard.control.parts import Host
from botyard.errors import BotyardError, WorldError
from botyard.feed import Subject
from botyard.model import raster
from botyard.model.raster import Raster, RasterRequest, rasterise
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

log = logging.getLogger("botyard.ros")

CELL: Final = 0.05
"""Edge of a cell, m …"""
MAX_CELLS: Final = 16_000_000
"""… of a map that needs no more of them than so many; in larger ones they are twice, four times … as large."""
QUICK: Final = 1_000_000
"""So many cells, …"""
QUICK_THINGS: Final = 20_000
"""… and walls and points, are drawn at once."""


class Job(Protocol):
    """A piece of work that a process does (`botyard.servers.aside`)."""

    def run(self, kind: str, request: object, types: Any) -> Iterator[tuple[str, Any]]:
        """Begin it; what it says."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...

    def wait(self) -> None:
        """Wait until it has ended."""
        ...


class MapCells:
    """The cells of the map that is in place.

    Parameters
    ----------
    sim : Simulation
        Has the map, and tells of another one.
    host : Host
        Where work is done beside the steps.
    job : callable or None
        Makes the piece of work for a process that makes large ones, by the name of its module; None: they are made in this one.
    """

    def __init__(self, sim: Simulation, host: Host, job: Callable[[str], Job] | None) -> None:
        self._sim = sim
        self._host = host
        self._new_job = job
        self._map = -1
        self._raster: Raster | None = None
        self._begun = False
        self._job: Job | None = None

    @property
    def version(self) -> int:
        """Changes with the map, and when its cells are there."""
        return self._sim.feed.last(Subject.MAP, Subject.CELLS)

    def get(self) -> Raster | None:
        """The cells; none for an empty world. None: they are being made, and `version` changes when they are there."""
        revision = self._sim.feed.last(Subject.MAP)
        if revision != self._map:
            self._map, self._raster, self._begun = revision, None, False
        if self._raster is None and not self._begun:
            self._begun = True
            scene = self._sim.scene
            cell = _cell(scene)
            if _count(raster.extent(scene), cell) <= QUICK and len(scene.segments) + len(scene.points) <= QUICK_THINGS:
                self._raster = _made(scene, cell, None)
            else:
                self._job = job = None if self._new_job is None else self._new_job(raster.MODULE)
                self._host.run_aside(
                    lambda: _made(scene, cell, job), lambda made, error: self._done(revision, made, error)
                )
        return self._raster

    def close(self) -> None:
        """What is being made is given up."""
        if self._job is not None:
            self._job.kill()
            self._job.wait()

    def _done(self, revision: int, made: Raster | None, error: Exception | None) -> None:
        if revision != self._map:  # another map has come meanwhile
            return
        if made is None:
            log.warning(
                "the map is not published as cells: %s", error if isinstance(error, BotyardError) else repr(error)
            )
            made = _empty()
        elif made.resolution > CELL:
            log.warning("the map is so large that it is published in cells of %g m", made.resolution)
        self._raster = made
        self._sim.feed.tell(Subject.CELLS)


def _count(extent: tuple[float, float], cell: float) -> float:
    return (extent[0] / cell + 3.0) * (extent[1] / cell + 3.0)


def _cell(scene: Scene) -> float:
    """The edge of a cell, m, of which there are not too many."""
    extent, cell = raster.extent(scene), CELL
    while _count(extent, cell) > MAX_CELLS:
        cell *= 2.0
    return cell


def _empty() -> Raster:
    return Raster(np.zeros((0, 0), np.bool_), 0.0, 0.0, CELL)


def _made(scene: Scene, cell: float, job: Job | None) -> Raster:
    """The cells of a map; may run in another thread.

    Raises
    ------
    BotyardError, ValueError
        They could not be made.
    """
    if not len(scene.segments) + len(scene.points):
        return _empty()
    if job is None:
        return rasterise(scene, cell)
    answers = [body for _, body in job.run("rasterise", RasterRequest(scene, cell), raster.TYPES)]
    if len(answers) != 1:
        raise WorldError("the process for it has not answered")
    made: Raster = answers[0].raster
    return made


__all__ = ["CELL", "MAX_CELLS", "MapCells"]
