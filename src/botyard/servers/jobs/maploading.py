"""Loads maps for a running simulator: reads them in processes of their own, waits for
its turn, puts them under the robots.

Maps are read by processes (`botyard.servers.jobs.child_jobs`), which a `Host` waits for
beside the step loop; it comes back between two steps. So no other client notices that a
map is being read, however bad it is, and nothing of it is left when it could not be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from botyard.control.fairqueue import FairQueue
from botyard.control.later import promise, resolve
from botyard.control.parts import Host, Replaced
from botyard.controllers.registry import controller_names, given_names
from botyard.engine.build import build_grid, crowding
from botyard.engine.layout import Grid
from botyard.errors import BotyardError, NotNowError, WorldError
from botyard.formats import reading
from botyard.formats.base import Options
from botyard.formats.budget import Budget
from botyard.formats.registry import client_maps
from botyard.geometry import Pose
from botyard.interfaces.ros.mapcells import MapCells
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.names import shown
from botyard.servers.jobs.background import GIVEN_UP
from botyard.servers.jobs.child_jobs import Job, JobLimits
from botyard.servers.jobs.masskernels import get_mass_kernels
from botyard.sim.simulation import Simulation

log = logging.getLogger("botyard.world")
T = TypeVar("T")

MAX_WAITING: Final = 16
"""Length of the queue of map requests; when it is full, the newest request of the
client with the most is refused.
"""
MAX_READERS: Final = 2
"""Maps that are read at the same time, for different clients, so that one that hangs
does not delay the others.
"""
MAX_ROBOTS: Final = 1000
"""Robots of a map that is loaded while the simulator runs (``--max-read robots=`` says
another number), …
"""
MAX_BOXES: Final = 1000
"""… its movable things, …"""
MAX_CORNERS: Final = 20_000
"""… and the corners of all these: putting them in place holds up a step."""
MAX_CROWDING: Final = 500.0
"""Most walls in an occupied grid cell on average in clients' maps: every ray and every
move checks them.
"""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world that was read and is ready to be put under the robots; without a path it
    came from no file of this machine.
    """

    path: Path | None
    modified: int
    world: World
    grid: Grid


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """A map that somebody waits for; without folders, `name` is a path, or what a file
    that was sent is called.
    """

    name: str
    done: Future[bool]
    folders: tuple[str, ...] | None = None
    path: str | None = None
    data: bytes | None = None
    before: Callable[[World], None] | None = None
    """Called when it has been read, just before it is put in place."""
    asked: Context = field(default_factory=copy_context)
    """Where it was asked for: the journal names who has asked, not who read it."""


class MapLoader:
    """Loads maps (`botyard.control.parts.Maps`).

    Parameters
    ----------
    sim : Simulation
        The world.
    host : Host
        For slow work.
    folders : sequence of Path
        Where clients may load maps from, besides the shipped ones.
    options : Options
        How map files are read.
    limits : JobLimits or None
        What a process that reads a map may take; None: that is done in this process,
        without limits of time and memory (null modem).
    """

    def __init__(
        self,
        sim: Simulation,
        host: Host,
        *,
        folders: Sequence[Path] = (),
        options: Options = Options(),
        limits: JobLimits | None = JobLimits(),
    ) -> None:
        self.sim = sim
        self._host = host
        self._folders = [f.resolve() for f in folders]
        self.populate: Callable[[World], object] = sim.populate
        """Adds the robots of a world."""
        self.cells = MapCells(
            sim, host, None if limits is None else lambda module: Job(module, limits)
        )
        """The map as cells, for those who publish it."""
        self._reading = reading.Limits.of(
            options, [*controller_names(), *given_names()]
        )
        self._limits = limits
        self._queue: FairQueue[_Wanted] = FairQueue(MAX_WAITING, MAX_READERS)
        self._jobs: set[Job] = set()
        self._read: set[_Wanted] = set()
        self._closed = False
        self._map: tuple[Path, int] | None = None
        self.replaced: Replaced | None = None
        """What the present map has replaced."""
        if sim.scene.source:
            path = Path(sim.scene.source).resolve()
            self._map = (path, reading.modified(path))

    def beside(self, job: Callable[[], T]) -> Future[T]:
        """What `job` returns, or raises; done in a thread that gives way to the steps,
        and that nobody waits for at the end.
        """
        result: Future[T] = promise()
        self._host.run_aside(job, lambda found, error: resolve(result, found, error))
        return result

    def names(self) -> list[tuple[str, bool]]:
        """The maps that may be loaded by name, and whether they came with the package.
        Looks into folders: beside the loop, please.
        """
        return client_maps(self._folders)

    def load(
        self,
        name: str,
        asker: Hashable = "others",
        before: Callable[[World], None] | None = None,
    ) -> Future[bool]:
        """Load a map by its name; True when it is in place, False when it was already.
        MapError and others: the old one stays.

        With `before` it is loaded anew in any case, and `before` is called with it just
        before it is put in place.
        """
        return self._want(
            asker,
            _Wanted(
                name, promise(), folders=tuple(map(str, self._folders)), before=before
            ),
        )

    def load_bytes(
        self,
        name: str,
        data: bytes,
        asker: Hashable = "others",
        before: Callable[[World], None] | None = None,
    ) -> Future[bool]:
        """Put a map in place whose file was sent; no file of it is kept. See `load`."""
        return self._want(asker, _Wanted(name, promise(), data=data, before=before))

    def reload(self) -> Future[bool]:
        """Read the present map's file again, changed or not (UNS-024). See `load`.

        Raises
        ------
        WorldError
            It did not come from a file.
        """
        source = self.sim.scene.source
        if not source or self._map is None:
            raise WorldError("the present map did not come from a file")
        return self._want("others", _Wanted(source, promise(), path=str(self._map[0])))

    def clear(self) -> None:
        """No map any more, for everybody."""
        self._put(Loaded(None, 0, World(scene=Scene()), build_grid(Scene())), "no map")

    def put_back(self, replaced: Replaced) -> Future[bool]:
        """Put a map in place again that another one has replaced, without robots. See
        `load`.
        """
        loaded = Loaded(
            replaced.path,
            replaced.modified,
            World(scene=replaced.scene),
            build_grid(Scene()),
        )
        wanted = _Wanted(replaced.scene.name, promise())

        def done(grid: Grid | None, error: Exception | None) -> None:
            if error is not None or grid is None:
                self._failed(wanted, error or WorldError("the map cannot be sorted"))
            else:
                self._place(wanted, replace(loaded, grid=grid))

        self._host.run_aside(lambda: build_grid(replaced.scene), done)
        return wanted.done

    def _want(self, source: Hashable, wanted: _Wanted) -> Future[bool]:
        if self._closed:
            raise NotNowError("the simulator has ended")
        refused = self._queue.add(source, wanted)
        if refused is not None:
            self._failed(refused, WorldError("too many maps are waiting to be loaded"))
        self._next()
        return wanted.done

    def _next(self) -> None:
        """Read what is next."""
        while not self._closed and (turn := self._queue.next()) is not None:
            self._begin(*turn)

    def _begin(self, source: Hashable, wanted: _Wanted) -> None:
        present = None
        if (
            wanted.folders is not None
            and wanted.before is None
            and self._map is not None
        ):
            present = (str(self._map[0]), self._map[1])

        request = reading.Request(
            name=wanted.path or wanted.name,
            limits=self._reading,
            folders=wanted.folders,
            data=wanted.data,
            present=present,
        )
        job = None if self._limits is None else Job(reading.MODULE, self._limits)
        if job is not None:
            self._jobs.add(job)

        def done(loaded: Loaded | None, error: Exception | None) -> None:
            self._queue.finished(source)
            self._read.discard(wanted)
            if job is not None:
                self._jobs.discard(job)
            if not self._closed:
                if error is not None:
                    self._failed(wanted, error)
                else:
                    self._place(wanted, loaded)

                self._next()

        self._read.add(wanted)
        self._host.run_aside(lambda: _loaded(request, job), done)

    def close(self) -> None:
        """Give up what is being read, and what waits: the simulation ends."""
        self._closed = True
        for wanted in (*self._queue.clear(), *self._read):
            resolve(wanted.done, error=NotNowError(GIVEN_UP))
        self._read.clear()
        self.cells.close()
        for job in self._jobs:
            job.kill()
        for job in self._jobs:
            job.wait()

    def _place(self, wanted: _Wanted, loaded: Loaded | None) -> None:
        """A world was read: put it in place, or say that it is there already."""
        if loaded is None:
            log.info(
                'map "%s" is unchanged and was not loaded again', shown(wanted.name)
            )
            resolve(wanted.done, False)
            return

        try:
            wanted.asked.run(self._put, loaded, wanted.name, wanted.before)
        except BotyardError as error:
            self._failed(wanted, error)
        except Exception as error:
            # a fault of ours costs this map, and nothing else
            log.exception("putting a map in place: internal error")
            self._failed(wanted, error)
        else:
            resolve(wanted.done, True)

    def _put(
        self, loaded: Loaded, name: str, before: Callable[[World], None] | None = None
    ) -> None:
        """A map is ready: put it under the robots."""
        if before is not None:
            before(loaded.world)
        present = self._present()
        self.sim.replace_scene(loaded.world.scene, loaded.grid)
        self.replaced = present
        if loaded.world.robots:
            self.populate(loaded.world)
        self._map = None if loaded.path is None else (loaded.path, loaded.modified)
        log.info("map %s is in place", loaded.path or shown(name))

    def _present(self) -> Replaced:
        """The map, and what there is with it."""
        sim = self.sim
        path, modified = self._map if self._map is not None else (None, 0)
        poses, rows = sim.snapshot.state.pose.tolist(), sim.snapshot.rows
        return Replaced(
            scene=sim.scene,
            path=path,
            modified=modified,
            poses={name: Pose(*poses[row]) for name, row in rows.items()},
            robots=dict(sim.robots),
            placements={name: sim.placements(name) for name in sim.robots},
        )

    def _failed(self, wanted: _Wanted, error: Exception) -> None:
        reason = (
            str(error)
            if isinstance(error, BotyardError)
            else f"internal error: {error!r}"
        )
        log.warning(
            'map "%s" was not loaded, the old one stays: %s',
            shown(wanted.name),
            shown(reason, 500),
        )
        resolve(
            wanted.done,
            error=error if isinstance(error, BotyardError) else WorldError(reason),
        )


def _loaded(request: reading.Request, job: Job | None) -> Loaded | None:
    """Read a map, and sort it for the engine; None if it is the present one, unchanged.
    Runs in another thread.

    Its walls are sorted into the grid here and not in the process that reads: kernels
    index by what is in a grid, without a check, and nothing that a stranger's file may
    have had a hand in is an index.
    """
    if job is None:
        found = reading.read(request, _warn)
    else:
        found = reading.receive_reading(
            job.run("read", request, reading.TYPES),
            request.limits.budget,
            _warn,
            _trace,
        )

    if found.world is None:
        return None
    _check_size(found.world, request.limits.budget)
    grid = build_grid(found.world.scene)
    walls = crowding(grid)
    if walls > MAX_CROWDING:
        raise WorldError(
            f"so many walls cross or crowd that {walls:.0f} share a place, and "
            f"at most {MAX_CROWDING:g} may: steps would be late"
        )

    world = found.world
    masses = (
        *(box.dynamics for box in world.scene.boxes),
        *(robot.spec.dynamics for robot in world.robots),
    )
    if any(one is not None for one in masses):
        # before the first body with mass is there, and the next step waits for them
        get_mass_kernels()

    return Loaded(found.path, found.modified, world, grid)


def _check_size(world: World, budget: Budget) -> None:
    """Refuse what could not be put into a running world without holding up its steps.

    Raises
    ------
    WorldError
        Too many robots, movable things, or corners of bodies.
    """
    specs = {id(r.spec): (*r.spec.parts, r.spec.outline) for r in world.robots}
    outlines = [part for r in world.robots for part in specs[id(r.spec)]] + [
        p for b in world.scene.boxes for p in b.outlines
    ]
    usual = Budget()
    for what, found, most in (
        (
            "robots",
            len(world.robots),
            MAX_ROBOTS if budget.robots == usual.robots else budget.robots,
        ),
        ("movable things", len(world.scene.boxes), MAX_BOXES),
        ("corners of robots and movable things", sum(map(len, outlines)), MAX_CORNERS),
    ):
        if found > most:
            raise WorldError(
                f"{found} {what}, and at most {most} are put into a running "
                "world: start the simulator with it"
            )


def _warn(text: str) -> None:
    log.warning("%s", text)


def _trace(text: str) -> None:
    log.debug("a reader has failed:\n%s", text)
