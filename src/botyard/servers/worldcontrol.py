"""What clients may ask of the whole simulation: another map, a new log file, a picture, the end (pioneer-protocol §9).

One `WorldControl` serves all connections. Maps are read and pictures drawn by processes of their own (`botyard.servers.aside`), which a
`Host` waits for beside the step loop; it comes back between two steps. So no other client notices that a map is being read, however bad
it is, and nothing of it is left when it could not be.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from botyard.controllers.registry import controller_names
from botyard.engine.build import build_grid, crowding
from botyard.engine.layout import Grid
from botyard.errors import BotyardError, WorldError
from botyard.formats import reading
from botyard.formats.base import Options
from botyard.formats.budget import Budget
from botyard.formats.registry import client_maps
from botyard.model.scene import Scene
from botyard.model.world import World
from botyard.names import shown
from botyard.protocols.pioneer.events import (
    ExitRequested,
    LogRotationRequested,
    MapRequested,
    MasterCleared,
    Request,
    SnapshotRequested,
    StepsRequested,
)
from botyard.servers.aside import Job, JobLimits
from botyard.servers.fence import Fence
from botyard.servers.host import Host
from botyard.servers.mapcells import MapCells
from botyard.servers.packetlog import PacketLog
from botyard.servers.pictures import Pictures
from botyard.servers.turns import Turns
from botyard.sim.simulation import Simulation

if TYPE_CHECKING:
    from botyard.servers.connection import Connection
    from botyard.servers.lockstep import Lockstep

log = logging.getLogger("botyard.world")
T = TypeVar("T")

MAX_WAITING: Final = 16
"""Map requests that may wait for others; of more, the last of whoever has the most is refused."""
MAX_READERS: Final = 2
"""So many maps may be read at once, for different clients: one that hangs holds up nobody else."""
MAX_ROBOTS: Final = 1000
"""Robots of a map that is loaded while the simulator runs (``--max-read robots=`` says another number), …"""
MAX_BOXES: Final = 1000
"""… its movable things, …"""
MAX_CORNERS: Final = 20_000
"""… and the corners of all these: putting them in place holds up a step."""
MAX_CROWDING: Final = 500.0
"""Maps of clients may have so many walls in an occupied cell of the grid on average: every ray and every move looks at them."""
ROTATION_PAUSE: Final = 0.05
"""Clients may begin a new log file so often, s: five are kept, and a flood of these would keep the disk busy."""


Done = Callable[[str | None], None]
"""Told what came of a map: None when it is in place (or was already), else why not."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world that was read and is ready to be put under the robots; without a path it came from no file of this machine."""

    path: Path | None
    modified: int
    world: World
    grid: Grid


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A map that somebody waits for; without folders, `name` is a path, or what a file that was sent is called."""

    name: str
    connection: Connection | None
    done: Done | None
    folders: tuple[str, ...] | None = None
    path: str | None = None
    data: bytes | None = None


class WorldControl:
    """Decides about requests and carries them out.

    Parameters
    ----------
    sim : Simulation
        The world.
    host : Host
        For slow work, and for the end.
    folders : sequence of Path
        Where clients may load maps from, besides the shipped ones.
    options : Options
        How map files are read.
    rotate_logs : callable, optional
        Begins a new log file; None: there is none.
    allow_exit : bool
        Obey exits from other machines too.
    pictures : Path
        The folder that pictures go to.
    read_only : bool
        Nobody changes the world; those who could ask look at this.
    limits : JobLimits or None
        What a process that reads a map or draws a picture may take; None: that is done in this process, without limits of time and
        memory (null modem).
    """

    def __init__(
        self,
        sim: Simulation,
        host: Host,
        *,
        folders: Sequence[Path] = (),
        options: Options = Options(),
        rotate_logs: Callable[[], None] | None = None,
        allow_exit: bool = False,
        pictures: Path = Path(),
        read_only: bool = False,
        limits: JobLimits | None = JobLimits(),
    ) -> None:
        self.sim = sim
        self.master = False
        self._host = host
        self._folders = [f.resolve() for f in folders]
        self.lockstep: Lockstep | None = None
        """Lets clients step the world; None: they cannot."""
        self.packet_log: PacketLog | None = None
        """Records what passes in sessions that begin from now on."""
        self.populate: Callable[[World], object] = sim.populate
        """Adds the robots of a world."""
        self.cells = MapCells(lambda: sim.scene, host, limits)
        """The map as cells, for those who publish it."""
        self._reading = reading.Limits.of(options, controller_names())
        self._limits = limits
        self._rotate_logs = rotate_logs
        self.allow_exit = allow_exit
        self._pictures = Pictures(sim, host, pictures, limits)
        self.read_only = read_only
        self._connections: list[Connection] = []
        self._turns: Turns[_Wanted] = Turns(MAX_WAITING, MAX_READERS)
        self._jobs: set[Job] = set()
        self._closed = False
        self._fence = Fence(log, "putting a map in place")
        self._last_rotation = -math.inf
        self._map: tuple[Path, int] | None = None
        if sim.scene.source:
            path = Path(sim.scene.source).resolve()
            self._map = (path, reading.modified(path))

    def maps(self) -> list[tuple[str, bool]]:
        """The maps that may be loaded by name, and whether they came with the package."""
        return client_maps(self._folders)

    async def beside(self, job: Callable[[], T]) -> T:
        """What `job` returns, or raises; done in a thread that gives way to the steps, and that nobody waits for at the end."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: T | None, error: Exception | None) -> None:
            if future.done():  # nobody waits any more
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast(T, result))

        self._host.run_aside(job, done)
        return await future

    # -- who is there

    @property
    def connections(self) -> Sequence[Connection]:
        """All clients that are connected."""
        return tuple(self._connections)

    def attach(self, connection: Connection) -> None:
        """A client has come."""
        self._connections.append(connection)

    def detach(self, connection: Connection) -> None:
        """A client has gone."""
        if connection in self._connections:
            self._connections.remove(connection)
        if self.lockstep is not None:
            self.lockstep.leave(connection)

    # -- requests

    def request(self, connection: Connection, request: Request) -> None:
        """Carry out what a client asks for, or say why not."""
        if isinstance(request, MapRequested):
            self._map_requested(connection, request)
        elif isinstance(request, MasterCleared):
            self.master = False
            connection.log.info("every client may load maps again")
        elif isinstance(request, ExitRequested):
            self._exit(connection, request)
        elif isinstance(request, LogRotationRequested):
            self._new_log(connection)
        elif isinstance(request, SnapshotRequested):
            self._snapshot(connection, request.name)
        elif isinstance(request, StepsRequested):
            self._steps(connection, request.count)

    def _steps(self, connection: Connection, count: int | None) -> None:
        """Let a client step the world, or let it run free."""
        if self.lockstep is None:
            connection.log.warning("the world cannot be stepped here")
        elif count is None:
            self.lockstep.leave(connection)
        else:
            self.lockstep.step(connection, count)

    def _new_log(self, connection: Connection) -> None:
        now = connection.session.now
        if self._rotate_logs is None:
            connection.log.warning("a new log file was asked for, but the log does not go to a file")
        elif now - self._last_rotation < ROTATION_PAUSE:
            connection.log.warning("no new log file: the last one was begun a moment ago")
        else:
            self._last_rotation = now
            self._rotate_logs()

    def _exit(self, connection: Connection, request: ExitRequested) -> None:
        if not (connection.is_local or self.allow_exit):
            connection.log.warning("%s: not obeyed from another machine (--allow-client-exit)", request.command)
            return
        connection.log.warning("%s: the simulation ends with status %d", request.command, request.status)
        self._host.end_soon(request.status, request.crash)

    def _snapshot(self, connection: Connection, name: str) -> None:
        """Write a picture, as a client wishes."""

        def done(path: Path | None, why: str) -> None:
            if path is None:
                connection.log.warning("%s", why)
            else:
                connection.log.info("picture written to %s", path)

        try:
            self.write_picture(name, connection.session.now, done)
        except WorldError as error:
            connection.log.warning("%s", error)

    def write_picture(self, name: str, now: float, done: Callable[[Path | None, str], None]) -> None:
        """Write a picture of the world beside the log; `done` is told where, or why not. See `Pictures.write`."""
        self._pictures.write(name, now, done)

    # -- maps

    def _map_requested(self, connection: Connection, request: MapRequested) -> None:
        if self.master and not request.master:
            connection.log.warning('map "%s" not loaded: a client has reserved that (master mode)', shown(request.name))
            connection.map_changed(request.name, 0)
            return
        self.master = self.master or request.master
        self.load(request.name, connection)

    def load(
        self, name: str, connection: Connection | None = None, done: Done | None = None, asker: Hashable = "others"
    ) -> None:
        """Load a map for everybody; `connection` asked for it, or somebody else (`asker`). `done` is told what came of it."""
        source = connection if connection is not None else asker
        self._want(source, _Wanted(name, connection, done, folders=tuple(map(str, self._folders))))

    def load_bytes(self, name: str, data: bytes, done: Done, asker: Hashable = "others") -> None:
        """Put a map whose file a user at the page has sent; no file of it is kept."""
        self._want(asker, _Wanted(name, None, done, data=data))

    def reload(self, done: Done) -> None:
        """Read the present map's file again, changed or not (UNS-024)."""
        source = self.sim.scene.source
        if not source or self._map is None:
            done("the present map did not come from a file")
            return
        self._want("others", _Wanted(source, None, done, path=str(self._map[0])))

    def clear(self) -> None:
        """No map any more, for everybody."""
        self._put(Loaded(None, 0, World(scene=Scene()), build_grid(Scene())), "no map", None)

    def _want(self, source: Hashable, wanted: _Wanted) -> None:
        refused = self._turns.add(source, wanted)
        if refused is not None:
            self._failed(refused, "too many maps are waiting to be loaded")
        self._next()

    def _next(self) -> None:
        """Read what is next."""
        while not self._closed and (turn := self._turns.next()) is not None:
            self._begin(*turn)

    def _begin(self, source: Hashable, wanted: _Wanted) -> None:
        present = None
        if wanted.folders is not None and self._map is not None:
            present = (str(self._map[0]), self._map[1])
        request = reading.Request(
            name=wanted.path or wanted.name, limits=self._reading, folders=wanted.folders, data=wanted.data, present=present
        )  # fmt: skip
        job = None if self._limits is None else Job(reading.MODULE, self._limits)
        if job is not None:
            self._jobs.add(job)

        def done(loaded: Loaded | None, error: Exception | None) -> None:
            self._turns.over(source)
            if job is not None:
                self._jobs.discard(job)
            if not self._closed:
                self._read_done(wanted, loaded, error)
                self._next()

        self._host.run_aside(lambda: _loaded(request, job), done)

    def close(self) -> None:
        """Give up what is being read or drawn: the simulation ends."""
        self._closed = True
        self._turns.clear()
        self._pictures.close()
        self.cells.close()
        for job in self._jobs:
            job.kill()
        for job in self._jobs:
            job.wait()

    def _read_done(self, wanted: _Wanted, loaded: Loaded | None, error: Exception | None) -> None:
        if error is not None:
            reason = str(error) if isinstance(error, BotyardError) else repr(error)
        else:
            reason = self._fence.call(self._place, wanted, loaded, otherwise="internal error")
        if reason:
            self._failed(wanted, reason)

    def _place(self, wanted: _Wanted, loaded: Loaded | None) -> str:
        """A world was read: put it in place, or say that it is there already. Nothing, for what is to be said when it failed."""
        name, connection = wanted.name, wanted.connection
        if loaded is not None:
            self._put(loaded, name, connection)
        else:
            log.info('map "%s" is unchanged and was not loaded again', shown(name))
            if connection is not None:
                connection.map_changed(name, 0)
        if wanted.done is not None:
            wanted.done(None)
        return ""

    def _put(self, loaded: Loaded, name: str, connection: Connection | None) -> None:
        """A map is ready: put it under the robots, and tell everybody."""
        self.sim.replace_scene(loaded.world.scene, loaded.grid)
        if loaded.world.robots:
            self.populate(loaded.world)
        self._map = None if loaded.path is None else (loaded.path, loaded.modified)
        log.info("map %s is in place", loaded.path or shown(name))
        for other in tuple(self._connections):
            other.map_changed(name, 1, by_user=connection is None)

    def _failed(self, wanted: _Wanted, reason: str) -> None:
        log.warning('map "%s" was not loaded, the old one stays: %s', shown(wanted.name), shown(reason, 500))
        if wanted.connection is not None:
            wanted.connection.map_changed(wanted.name, 2)
        if wanted.done is not None:
            self._fence.run(wanted.done, reason)


def _loaded(request: reading.Request, job: Job | None) -> Loaded | None:
    """Read a map, and sort it for the engine; None if it is the present one, unchanged. Runs in another thread.

    Its walls are sorted into the grid here and not in the process that reads: kernels index by what is in a grid, without a check, and
    nothing that a stranger's file may have had a hand in is an index.
    """
    if job is None:
        found = reading.read(request, _warn)
    else:
        found = reading.receive_reading(job.run("read", request, reading.TYPES), request.limits.budget, _warn, _trace)
    if found.world is None:
        return None
    _check_size(found.world, request.limits.budget)
    grid = build_grid(found.world.scene)
    walls = crowding(grid)
    if walls > MAX_CROWDING:
        raise WorldError(
            f"so many walls cross or crowd that {walls:.0f} share a place, and at most {MAX_CROWDING:g} may: steps would be late"
        )
    return Loaded(found.path, found.modified, found.world, grid)


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
        ("robots", len(world.robots), MAX_ROBOTS if budget.robots == usual.robots else budget.robots),
        ("movable things", len(world.scene.boxes), MAX_BOXES),
        ("corners of robots and movable things", sum(map(len, outlines)), MAX_CORNERS),
    ):
        if found > most:
            raise WorldError(
                f"{found} {what}, and at most {most} are put into a running world: start the simulator with it"
            )


def _warn(text: str) -> None:
    log.warning("%s", text)


def _trace(text: str) -> None:
    log.debug("a reader has failed:\n%s", text)
