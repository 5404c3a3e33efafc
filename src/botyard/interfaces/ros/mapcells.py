"""Static map as an occupancy grid of bounded size for ROS (`MapCells`).

Large maps are rasterised in the background.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import numpy as np

from botyard.api.revisions import Subject
from botyard.control.parts import Host
from botyard.errors import BotyardError, WorldError
from botyard.model import rasterjob
from botyard.model.raster import Raster, extent, is_drawn, rasterise
from botyard.model.rasterjob import RasterRequest
from botyard.model.scene import Scene
from botyard.sim.simulation import Simulation

log = logging.getLogger("botyard.ros")

CELL_SIZE: Final = 0.05
"""Least edge of a cell, m. It is doubled until the grid has at most `MAX_CELLS` cells."""
MAX_CELLS: Final = 16_000_000
"""Largest number of cells of the grid."""
INLINE_CELLS: Final = 1_000_000
"""Largest number of cells of a map that is rasterised immediately.

Larger maps are rasterised in the background, so that no step is delayed.
"""
INLINE_SHAPES: Final = 20_000
"""Largest number of walls and points of a map that is rasterised immediately."""


class Job(Protocol):
    """Interface of a job in a child process (`botyard.servers.jobs.child_jobs`)."""

    def run(self, kind: str, request: object, types: Any) -> Iterator[tuple[str, Any]]:
        """Start the job, and yield its messages.

        Parameters
        ----------
        kind : str
            Name of the request.
        request : object
            The request, of a type that msgspec encodes.
        types : object
            Types of the messages by kind.

        Yields
        ------
        (str, object)
            Kind of the message, and its content.
        """
        ...

    def kill(self) -> None:
        """Kill the child process."""
        ...

    def wait(self) -> None:
        """Wait until the child process has ended."""
        ...


class MapCells:
    """Occupancy grid of the present map.

    Parameters
    ----------
    sim : Simulation
        The simulation with the map.
    host : Host
        Runs background work.
    job : callable or None
        Creates the child process that rasterises a large map, given the name of its
        module. With None, a thread of this process does this work.
    """

    def __init__(
        self, sim: Simulation, host: Host, job: Callable[[str], Job] | None
    ) -> None:
        self._sim = sim
        self._host = host
        self._new_job = job
        self._map = -1
        self._raster: Raster | None = None
        self._begun = False
        self._job: Job | None = None

    @property
    def version(self) -> int:
        """Number that changes with the map, and when the map's grid is ready."""
        return self._sim.core.feed.last(Subject.MAP, Subject.CELLS)

    def get(self) -> Raster | None:
        """Return the occupancy grid of the map; it is empty for an empty world.

        Small maps are rasterised at once, larger maps in the background. The cells grow
        with the map, so that their number stays bounded.

        Returns
        -------
        Raster or None
            None means that the grid is being computed; `version` changes when it is
            ready.
        """
        revision = self._sim.core.feed.last(Subject.MAP)
        if revision != self._map:
            # An older map may still be rasterised in the background; `_done` ignores
            # its result.
            self._map, self._raster, self._begun = revision, None, False

        if self._raster is None and not self._begun:
            self._begun = True
            scene = self._sim.scene
            cell = _cell(scene)
            if (
                _count(extent(scene), cell) <= INLINE_CELLS
                and len(scene.segments) + len(scene.points) <= INLINE_SHAPES
            ):
                self._raster = _rasterise(scene, cell, None)
            else:
                self._job = job = (
                    None if self._new_job is None else self._new_job(rasterjob.MODULE)
                )
                self._host.run_in_background(
                    lambda: _rasterise(scene, cell, job),
                    lambda made, error: self._done(revision, made, error),
                )

        return self._raster

    def close(self) -> None:
        """Cancel the computation of the grid."""
        if self._job is not None:
            self._job.kill()
            self._job.wait()

    def _done(
        self, revision: int, made: Raster | None, error: Exception | None
    ) -> None:
        # The map has changed in the meantime.
        if revision != self._map:
            return
        if made is None:
            log.warning(
                "the map is not published as cells: %s",
                error if isinstance(error, BotyardError) else repr(error),
            )

            # Store an empty grid, so that the failed work is not tried again in every
            # step.
            made = _empty()
        elif made.resolution > CELL_SIZE:
            log.warning(
                "the map is large: it is published with cells of %g m",
                made.resolution,
            )

        self._raster = made
        self._sim.core.feed.record_change(Subject.CELLS)


def _count(extent: tuple[float, float], cell: float) -> float:
    # The border of the grid takes up to three more cells in each direction.
    return (extent[0] / cell + 3.0) * (extent[1] / cell + 3.0)


def _cell(scene: Scene) -> float:
    """Return the edge of a cell, m, with which the grid has at most `MAX_CELLS`."""
    size, cell = extent(scene), CELL_SIZE
    while _count(size, cell) > MAX_CELLS:
        # The edge is doubled, so that a few iterations are enough for a map of any
        # size.
        cell *= 2.0
    return cell


def _empty() -> Raster:
    return Raster(np.zeros((0, 0), np.bool_), 0.0, 0.0, CELL_SIZE)


def _rasterise(scene: Scene, cell: float, job: Job | None) -> Raster:
    """Return the occupancy grid of a map; this function may run in another thread.

    Raises
    ------
    BotyardError, ValueError
        The work failed.
    """
    if not is_drawn(scene):
        return _empty()
    if job is None:
        return rasterise(scene, cell)
    answers = [
        body
        for _, body in job.run("rasterise", RasterRequest(scene, cell), rasterjob.TYPES)
    ]
    if len(answers) != 1:
        raise WorldError("the child process that rasterises the map sent no result")
    made: Raster = answers[0].raster
    return made


__all__ = ["CELL_SIZE", "MAX_CELLS", "MapCells"]
