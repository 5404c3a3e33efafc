"""Loader of maps for a running simulator.

Child processes read the maps (`botyard.servers.jobs.child_jobs`). A `Host` waits for
them in a thread and returns to the event loop between two steps. So other clients are
not delayed while a map is read, however bad the map is, and a map that cannot be loaded
changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from botyard.control.fairqueue import FairQueue
from botyard.control.later import promise, resolve
from botyard.control.parts import Host, Replaced
from botyard.engine.layout import Grid
from botyard.engine.wallgrid import build_grid, crowding
from botyard.errors import BotyardError, NotNowError, WorldError
from botyard.formats import reading
from botyard.formats.base import Options
from botyard.formats.budget import Budget
from botyard.formats.mapsearch import client_maps
from botyard.geometry import Pose
from botyard.interfaces.ros.mapcells import MapCells
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.names import shown
from botyard.servers.jobs.background import GIVEN_UP
from botyard.servers.jobs.child_jobs import Job, JobLimits
from botyard.servers.jobs.masskernels import get_mass_kernels
from botyard.sim.simulation import Simulation
from botyard.sim.worldfiles import populate

log = logging.getLogger("botyard.world")
T = TypeVar("T")

# Each queued request may hold an uploaded file, so the queue also bounds memory.
MAX_WAITING: Final = 16
"""Length of the queue of map requests.

When the queue is full, it refuses the newest request of the client with the most
requests.
"""
MAX_READERS: Final = 2
"""Maximum number of concurrent reader processes, each for a different client.

A map that blocks its reader therefore does not delay maps of other clients.
"""
MAX_ROBOTS: Final = 1000
"""Maximum number of robots of a map that is loaded at run time.

The option ``--max-read robots=`` sets another limit.
"""
MAX_BOXES: Final = 1000
"""Maximum number of movable objects of a map that is loaded at run time."""
MAX_CORNERS: Final = 20_000
"""Maximum number of corners of all robots and movable objects of such a map.

Placing them delays one step.
"""
MAX_CROWDING: Final = 500.0
"""Maximum average number of walls in an occupied grid cell of clients' maps.

Each ray and each move checks all walls of a cell.
"""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world that was read and is ready for the simulation.

    Attributes
    ----------
    path : Path or None
        Its file; None if the world was not read from a file on this machine.
    modified : int
        Modification time of the file (see `botyard.formats.reading`).
    world : World
        The world.
    grid : Grid
        Index of its walls, built in advance.
    """

    path: Path | None
    modified: int
    world: World
    grid: Grid


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """Request to load a map that waits for its turn.

    Without folders, `name` is a path or the name of an uploaded file.
    """

    name: str
    done: Future[bool]
    folders: tuple[str, ...] | None = None
    path: str | None = None
    data: bytes | None = None
    before: Callable[[World], None] | None = None
    """Callback after reading, immediately before the map replaces the current one."""
    look: Future[World] | None = None
    """Future of the world if it is only read, and does not replace the current one."""
    asked: Context = field(default_factory=copy_context)
    """Context of the request, in which the map is placed: the journal then names the client."""

    def fail(self, error: BotyardError) -> None:
        """Answer the request with an error."""
        if self.look is None:
            resolve(self.done, error=error)
        else:
            resolve(self.look, error=error)


class MapLoader:
    """Loader of maps (`botyard.control.parts.Maps`).

    Parameters
    ----------
    sim : Simulation
        The world.
    host : Host
        Runs slow work in threads.
    folders : sequence of Path
        Folders from which clients may load maps, in addition to the shipped maps.
    options : Options
        Options for reading map files.
    limits : JobLimits or None
        Resource limits of a child process that reads a map. None: the simulator's own process reads
        maps, without limits of time and memory. A null modem, which has one client, uses this.
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
        # Absolute paths, because readers run in other processes and the working
        # directory may change.
        self._folders = [f.resolve() for f in folders]
        self.populate: Callable[[World], object] = partial(populate, sim)
        """Function that adds the robots of a loaded world to the simulation."""
        self.cells = MapCells(
            sim, host, None if limits is None else lambda module: Job(module, limits)
        )
        """Map as occupancy cells, for publishers."""
        self._options = options
        self._limits = limits
        self._queue: FairQueue[_Wanted] = FairQueue(MAX_WAITING, MAX_READERS)
        self._jobs: set[Job] = set()
        self._read: set[_Wanted] = set()
        self._closed = False
        self._map: tuple[Path, int] | None = None
        self.replaced: Replaced | None = None
        """Map that was in place before the current one."""
        # The modification time at the start lets the first request for the same map be
        # skipped.
        if sim.scene.source:
            path = Path(sim.scene.source).resolve()
            self._map = (path, reading.modified(path))

    def run_in_thread(self, job: Callable[[], T]) -> Future[T]:
        """Run a job in a thread that yields to the steps.

        At shutdown the simulator does not wait for the thread.

        Parameters
        ----------
        job : callable
            Job without access to the world.

        Returns
        -------
        Future
            Future of its result, resolved between two steps.
        """
        result: Future[T] = promise()
        self._host.run_in_background(
            job, lambda found, error: resolve(result, found, error)
        )
        return result

    def names(self) -> list[tuple[str, bool]]:
        """Return the maps that clients may load by name, and whether each is shipped.

        This scans folders, so call it outside the event loop.
        """
        return client_maps(self._folders)

    def load(
        self,
        name: str,
        asker: Hashable = "others",
        before: Callable[[World], None] | None = None,
    ) -> Future[bool]:
        """Load a map by its name.

        Parameters
        ----------
        name : str
            Name of a shipped map, or a file in one of the allowed folders.
        asker : hashable
            Client that requests the map. Clients take turns.
        before : callable, optional
            Called with the new world immediately before the map is replaced. With it,
            the current map is also loaded again.

        Returns
        -------
        Future
            True when the map has replaced the current one, False if it is the current
            one. The future fails with an error such as `MapError`; the current map is
            then unchanged.
        """
        return self._want(
            asker,
            _Wanted(
                name, promise(), folders=tuple(map(str, self._folders)), before=before
            ),
        )

    def look(self, name: str, asker: Hashable = "others") -> Future[World]:
        """Read a map or world by its name; the current map stays.

        Parameters
        ----------
        name : str
            Name of a shipped map, or a file in one of the allowed folders.
        asker : hashable
            Client that requests the map. Clients take turns.

        Returns
        -------
        Future
            The world. The future fails with an error such as `MapError`.
        """
        look: Future[World] = promise()
        folders = tuple(map(str, self._folders))
        self._want(asker, _Wanted(name, promise(), folders=folders, look=look))
        return look

    def load_bytes(
        self,
        name: str,
        data: bytes,
        asker: Hashable = "others",
        before: Callable[[World], None] | None = None,
    ) -> Future[bool]:
        """Load a map from the bytes of an uploaded file, which is not stored.

        Parameters
        ----------
        name : str
            Name of the file; its suffix determines the format.
        data : bytes
            Contents of the file.
        asker, before
            See `load`.

        Returns
        -------
        Future
            See `load`.
        """
        return self._want(asker, _Wanted(name, promise(), data=data, before=before))

    def reload(self) -> Future[bool]:
        """Read the current map's file again, even if it is unchanged (UNS-024).

        See `load` for the result.

        Raises
        ------
        WorldError
            The current map was not read from a file.
        """
        source = self.sim.scene.source
        if not source or self._map is None:
            raise WorldError("the current map did not come from a file")
        return self._want("others", _Wanted(source, promise(), path=str(self._map[0])))

    def clear(self) -> None:
        """Remove the map."""
        # An empty grid is cheap, so no thread is needed.
        self._put(Loaded(None, 0, World(scene=Scene()), build_grid(Scene())), "no map")

    def put_back(self, replaced: Replaced) -> Future[bool]:
        """Restore a map that another map has replaced, without its robots.

        Parameters
        ----------
        replaced : Replaced
            The map, still in memory: no file is read.

        Returns
        -------
        Future
            See `load`.
        """
        loaded = Loaded(
            replaced.path,
            replaced.modified,
            World(scene=replaced.scene),
            # A placeholder; `done` replaces it with the grid of the walls.
            build_grid(Scene()),
        )
        wanted = _Wanted(replaced.scene.name, promise())

        def done(grid: Grid | None, error: Exception | None) -> None:
            if error is not None or grid is None:
                self._failed(
                    wanted, error or WorldError("the map's walls cannot be indexed")
                )
            else:
                self._place(wanted, replace(loaded, grid=grid))

        # The grid of a large map takes longer than a step.
        self._host.run_in_background(lambda: build_grid(replaced.scene), done)
        return wanted.done

    def _want(self, source: Hashable, wanted: _Wanted) -> Future[bool]:
        if self._closed:
            raise NotNowError("the simulator has ended")
        refused = self._queue.add(source, wanted)
        # The queue may refuse an older request of a greedy client instead of this one.
        if refused is not None:
            self._failed(refused, WorldError("too many maps are waiting to be loaded"))
        self._next()
        return wanted.done

    def _next(self) -> None:
        """Start to read queued maps while readers are free."""
        while not self._closed and (turn := self._queue.next()) is not None:
            self._begin(*turn)

    def _begin(self, source: Hashable, wanted: _Wanted) -> None:
        present = None
        # `present` lets the reader skip a map that has not changed; `before` requires a
        # load.
        if (
            wanted.folders is not None
            and wanted.before is None
            and wanted.look is None
            and self._map is not None
        ):
            present = (str(self._map[0]), self._map[1])

        request = reading.Request(
            name=wanted.path or wanted.name,
            limits=_limits_of(self._options),
            folders=wanted.folders,
            data=wanted.data,
            present=present,
        )
        # Without limits the simulator has one client (a null modem). A slow map delays no other
        # client, so no child process is needed.
        job = None if self._limits is None else Job(reading.MODULE, self._limits)
        if job is not None:
            self._jobs.add(job)

        def done(loaded: Loaded | None, error: Exception | None) -> None:
            # Free the reader's place in the queue first, so that an error below does
            # not block it.
            self._queue.finished(source)
            self._read.discard(wanted)
            if job is not None:
                self._jobs.discard(job)
            # After `close` the futures are already resolved.
            if not self._closed:
                if error is not None:
                    self._failed(wanted, error)
                elif wanted.look is not None and loaded is not None:
                    resolve(wanted.look, loaded.world)
                else:
                    self._place(wanted, loaded)

                self._next()

        self._read.add(wanted)
        self._host.run_in_background(lambda: _loaded(request, job), done)

    def close(self) -> None:
        """Cancel all readers and queued requests, because the simulation ends."""
        # Set this first: resolved futures run callbacks, which may request another map.
        self._closed = True
        for wanted in (*self._queue.clear(), *self._read):
            wanted.fail(NotNowError(GIVEN_UP))
        self._read.clear()
        self.cells.close()
        for job in self._jobs:
            # Kill all readers before waiting for the first one, so that they end at the
            # same time.
            job.kill()
        for job in self._jobs:
            job.wait()

    def _place(self, wanted: _Wanted, loaded: Loaded | None) -> None:
        """Put a world in place, or report that it is already there."""
        if loaded is None:
            log.info(
                'map "%s" is unchanged and was not loaded again', shown(wanted.name)
            )
            resolve(wanted.done, False)
            return

        try:
            # Run in the context of the request, so that the journal names the client.
            wanted.asked.run(self._put, loaded, wanted.name, wanted.before)
        except BotyardError as error:
            self._failed(wanted, error)
        except Exception as error:
            # A bug in the loader costs this map only, never the simulation.
            log.exception("putting a map in place: internal error")
            self._failed(wanted, error)
        else:
            resolve(wanted.done, True)

    def _put(
        self, loaded: Loaded, name: str, before: Callable[[World], None] | None = None
    ) -> None:
        """Replace the map and add the robots of the new world."""
        if before is not None:
            before(loaded.world)
        # Store the current map first: `_present` reads the scene that is replaced
        # below.
        present = self._present()
        self.sim.replace_scene(loaded.world.scene, loaded.grid)
        self.replaced = present
        # Add robots after the scene is replaced, because they are placed among its
        # walls.
        if loaded.world.robots:
            self.populate(loaded.world)
        self._map = None if loaded.path is None else (loaded.path, loaded.modified)
        log.info("map %s is in place", loaded.path or shown(name))

    def _present(self) -> Replaced:
        """Return the current map, with the current poses of its bodies, for `put_back`."""
        sim = self.sim
        path, modified = self._map if self._map is not None else (None, 0)
        poses, rows = sim.snapshot.state.pose.tolist(), sim.snapshot.rows
        return Replaced(
            scene=sim.scene,
            path=path,
            modified=modified,
            poses={name: Pose(*poses[row]) for name, row in rows.items()},
            robots=dict(sim.robots),
            placements={name: sim.core.placements(name) for name in sim.robots},
        )

    def _failed(self, wanted: _Wanted, error: Exception) -> None:
        reason = (
            str(error)
            if isinstance(error, BotyardError)
            else f"internal error: {error!r}"
        )
        # A map that was only looked at is no event: the client gets the reason.
        if wanted.look is None:
            log.warning(
                'map "%s" was not loaded, the current map stays: %s',
                shown(wanted.name),
                shown(reason, 500),
            )
        wanted.fail(error if isinstance(error, BotyardError) else WorldError(reason))


def _limits_of(options: Options) -> reading.Limits:
    """Return the limits of a reader in a process of its own."""
    # Controllers take long to import, and few runs load a second map.
    from botyard.controllers.registry import controller_names, given_names

    return reading.Limits.of(options, [*controller_names(), *given_names()])


def _loaded(request: reading.Request, job: Job | None) -> Loaded | None:
    """Read a map and build its grid; return None if it is the current one, unchanged.

    This runs in a thread. The grid is built here and not in the child process: kernels
    use the contents of a grid as indices without a check. So no index may come from a
    process that an untrusted file could have compromised.
    """
    # Without a child process a crash of a parser ends the simulator; see `limits` of
    # `MapLoader`.
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
    # Check the size before the grid is built, so that an oversized map is refused
    # sooner.
    _check_size(found.world, request.limits.budget)
    grid = build_grid(found.world.scene)
    walls = crowding(grid)
    if walls > MAX_CROWDING:
        raise WorldError(
            f"walls are too dense: {walls:.0f} share a grid cell on average, "
            f"expected at most {MAX_CROWDING:g} in a map that is loaded into a "
            "running world"
        )

    world = found.world
    masses = (
        *(box.dynamics for box in world.scene.boxes),
        *(robot.spec.dynamics for robot in world.robots),
    )
    if any(one is not None for one in masses):
        # Compile now: otherwise the step after the first body with mass waits for the
        # compiler.
        get_mass_kernels()

    return Loaded(found.path, found.modified, world, grid)


def _check_size(world: World, budget: Budget) -> None:
    """Raise an error if loading this world would delay the steps.

    Raises
    ------
    WorldError
        The world has too many robots, movable objects, or corners of bodies.
    """
    # Robots of a model share one specification, so its outlines are collected once.
    specs = {id(r.spec): (*r.spec.parts, r.spec.outline) for r in world.robots}
    outlines = [part for r in world.robots for part in specs[id(r.spec)]] + [
        p for b in world.scene.boxes for p in b.outlines
    ]
    usual = Budget()

    for what, found, most in (
        (
            "robots",
            len(world.robots),
            # The user's own limit wins; the default of files is too high for a running
            # world.
            MAX_ROBOTS if budget.robots == usual.robots else budget.robots,
        ),
        ("movable objects", len(world.scene.boxes), MAX_BOXES),
        ("corners of robots and movable objects", sum(map(len, outlines)), MAX_CORNERS),
    ):
        if found > most:
            raise WorldError(
                f"found {found} {what}, expected at most {most} in a map that is "
                "loaded into a running world: start the simulator with this map"
            )


def _warn(text: str) -> None:
    log.warning("%s", text)


def _trace(text: str) -> None:
    log.debug("a map reader failed:\n%s", text)
