"""Heat maps for the page: where robots have been, and what they have seen (`HeatMaps`)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from botyard.api.revisions import Subject
from botyard.errors import NotNowError
from botyard.interfaces.page.courses import SPACING_S, Courses, waiting
from botyard.interfaces.page.heatcounts import Cells, Counts
from botyard.interfaces.page.viewsource import drawn_devices
from botyard.numerics.elementwise import cosine_sine
from botyard.protocols.webgui import pushes
from botyard.sim.placement import bounding_radius, on_trial
from botyard.sim.simulation import Robot, Simulation

F8 = NDArray[np.float64]

MAX_BEAMS: Final = 400
"""Largest number of beams that are cast for a robot to find the cells that it sees."""
MAX_RANGE_M: Final = 30.0
"""Largest range of the beams that are cast, m."""
MAX_LOOKING: Final = 2
"""Largest number of robots whose beams are cast after one step; other robots follow
after the next steps.
"""
TURNED: Final = 0.1
"""Angle by which a robot turns before its beams are cast again, rad."""


class HeatMaps:
    """Counter of robots in the cells of the map, while pages show heat maps.

    Parameters
    ----------
    sim : Simulation
        The world, which is only read.
    courses : Courses
        Samples of the last minutes, for pages that show an earlier moment.
    """

    def __init__(self, sim: Simulation, courses: Courses) -> None:
        self._sim = sim
        self._courses = courses
        self._counts: Counts | None = None
        self._map = -1
        self._stop: Callable[[], None] | None = None
        self._names: tuple[str, ...] = ()
        self._at = np.zeros(0, np.int64)
        self._radii: F8 = np.zeros(0)
        self._beams: list[F8] = []
        # Pose at which the beams of each robot were cast last.
        self._looked: F8 = np.zeros((0, 3))
        self._time = sim.time
        self._made: dict[tuple[str, int], msgspec.Raw] = {}

    def watch(self, on: bool) -> None:
        """Start to count, or stop; the counts are kept."""
        if on and self._stop is None:
            self._time = self._sim.time
            self._names = ()
            self._sample()
            self._stop = self._sim.after_step(self._sample)
        elif not on and self._stop is not None:
            self._stop()
            self._stop = None

    def reset(self) -> None:
        """Set all counts to zero."""
        self._counts = None
        self._names = ()
        self._made.clear()

    def _current(self) -> Counts:
        """Return the counts for the present map."""
        revision = self._sim.core.feed.last(Subject.MAP)
        if self._counts is None or revision != self._map:
            self._map, self._names = revision, ()
            self._counts = Counts(self._cells())
        return self._counts

    def _cells(self) -> Cells:
        sim = self._sim
        places = [sim.core.places.home[:2], *sim.fleet.poses[:, :2].tolist()]
        return Cells.of(sim.scene, places)

    def _sample(self, _: object = None) -> None:
        """Count the robots after a step."""
        sim, counts = self._sim, self._current()
        self._made.clear()
        # Simulated time may have jumped back, for example by a reset.
        passed, self._time = max(0.0, sim.time - self._time), sim.time
        if tuple(sim.robots) != self._names:
            self._renumber()
        if not self._names:
            return
        poses = sim.fleet.poses
        self._at = counts.add(
            poses,
            self._at,
            np.asarray(sim.fleet.stalled != 0),
            waiting(sim),
            self._radii,
            passed,
        )
        self._look(counts, poses)

    def _renumber(self) -> None:
        """Store the names, radii and beams of a changed list of robots."""
        robots = list(self._sim.robots.values())
        self._names = tuple(self._sim.robots)
        self._at = np.full(len(robots), -1, np.int64)
        self._radii = np.array([bounding_radius(on_trial(r.spec)) for r in robots])
        self._beams = [_beams(self._sim, r) for r in robots]
        self._looked = np.full((len(robots), 3), np.inf)

    def _look(self, counts: Counts, poses: F8) -> None:
        """Cast the beams of robots that have moved since their beams were cast last."""
        off = np.abs(poses - self._looked)
        near = counts.cells.edge
        moved = (off[:, 0] > near) | (off[:, 1] > near) | (off[:, 2] > TURNED)
        rows = np.flatnonzero(moved)
        # Start with the robots that have moved farthest since their last casting, so
        # that each robot gets its turn.
        for row in rows[np.argsort(-off[rows, 0], kind="stable")][:MAX_LOOKING]:
            beams = self._beams[row]
            self._looked[row] = poses[row]
            if not len(beams):
                continue
            (x, y, th), (mx, my, bearings, reach) = poses[row], beams.T
            (c,), (s,) = cosine_sine([th])
            counts.see(x + c * mx - s * my, y + s * mx + c * my, th + bearings, reach)

    def answer(self, what: str, until: float | None) -> msgspec.Raw:
        """Return a heat map as an encoded `HeatResult`.

        Parameters
        ----------
        what : str
            Quantity, an attribute of `Counts`.
        until : float, optional
            Simulated time of an earlier moment, s: the map then shows the samples of
            the last minutes before it. None: the map shows all counts.

        Raises
        ------
        NotNowError
            `what` is ``seen`` and `until` is given: the beams of earlier moments are
            not kept.
        """
        key = what, -1 if until is None else round(until / SPACING_S)
        made = self._made.get(key)
        if made is None:
            if until is None:
                counts = self._current()
            elif what == "seen":
                raise NotNowError(
                    "the area that robots have seen is not known for earlier moments: return "
                    "to the present, or choose the visited area"
                )
            else:
                counts = self._past(until)
            made = self._made[key] = msgspec.Raw(
                pushes.encoder.encode(_result(what, counts))
            )
        return made

    def _past(self, until: float) -> Counts:
        """Return the counts of the last minutes before a moment."""
        names, values = self._courses.before(until)
        robots = self._sim.robots
        radii = np.array(
            [
                bounding_radius(on_trial(robots[n].spec)) if n in robots else 0.0
                for n in names
            ]
        )
        counts = Counts(self._cells())
        at = np.full(len(names), -1, np.int64)
        for sample in values:
            known = np.isfinite(sample[:, 0])
            poses = np.where(known[:, None], sample[:, :2], np.inf).astype(np.float64)
            poses[~known] = -1e12
            at = counts.add(
                poses, at, sample[:, 2] == 1.0, sample[:, 2] == 2.0, radii, SPACING_S
            )
        return counts


def _beams(sim: Simulation, robot: Robot) -> F8:
    """Return the beams of a robot: x, y, bearing in its frame, and range, shape (k, 4).

    Of more than `MAX_BEAMS` beams, every n-th is returned. Ranges are at most
    `MAX_RANGE_M`.
    """
    found: list[tuple[float, float, float, float]] = []
    for reader in drawn_devices(robot):
        for b in sim.fleet.bundles(reader.key):
            bearings = (b.mount.th + b.angle0 + k * b.step for k in range(b.count))
            reach = min(b.r_max, MAX_RANGE_M)
            found += [(b.mount.x, b.mount.y, th, reach) for th in bearings]
    beams = np.array(found).reshape(-1, 4)
    return beams[:: max(1, -(-len(beams) // MAX_BEAMS))]


def _result(what: str, counts: Counts) -> pushes.HeatResult:
    """Return a heat map as a message, cut to the rows and columns that are not all zero."""
    cells = counts.cells
    flat: NDArray[Any] = getattr(counts, what)
    values = flat.reshape(cells.solid.shape).astype("<f4")
    rows, columns = (np.flatnonzero(values.any(axis=axis)) for axis in (1, 0))
    part = (
        values[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        if len(rows)
        else values[:0, :0]
    )
    first_row, first_column = (int(k[0]) if len(k) else 0 for k in (rows, columns))
    area = cells.edge * cells.edge
    return pushes.HeatResult(
        what=what,
        x=cells.x + first_column * cells.edge,
        y=cells.y + first_row * cells.edge,
        edge=cells.edge,
        rows=part.shape[0],
        columns=part.shape[1],
        # Most cells are equal: the quickest level makes them small.
        values=base64.b64encode(zlib.compress(part.tobytes(), 1)).decode(),
        most=float(part.max(initial=0.0)),
        total=float(part.sum(dtype=np.float64)),
        duration=round(counts.duration, 3),
        share=counts.share(flat) if flat.dtype == np.bool_ else None,
        area=float(np.count_nonzero(flat)) * area,
        free=float(np.count_nonzero(cells.free)) * area,
    )


__all__ = ["HeatMaps"]
