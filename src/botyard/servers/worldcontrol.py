"""What clients may ask of the whole simulation: another map, a new log file, a picture, the end (pioneer-protocol §9).

One `WorldControl` serves all connections. Slow work is handed to a `Host`, which runs it beside the step loop and comes back between
two steps; so no other client notices that a map is being read.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from botyard.controllers.registry import is_controller
from botyard.engine.build import build_grid
from botyard.engine.layout import Grid
from botyard.errors import FormatError, WorldError
from botyard.formats.base import Options, Source, read_source
from botyard.formats.registry import client_maps, find_client_map, read_world
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
from botyard.servers.fence import Fence
from botyard.servers.packetlog import PacketLog
from botyard.simulation import Simulation

if TYPE_CHECKING:
    from botyard.servers.connection import Connection
    from botyard.servers.lockstep import Lockstep

log = logging.getLogger("botyard.world")

MAX_WAITING = 16
"""Map requests that may wait for others; more are refused."""
MAX_SNAPSHOTS = 1000
"""Pictures that clients may have written …"""
SNAPSHOT_PAUSE = 1.0
"""… and the least time between two of them, s of wall time: drawing one holds up the steps."""
ROTATION_PAUSE = 0.05
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
    """A map that somebody waits for."""

    name: str
    read: Callable[[], Loaded | None]
    connection: Connection | None
    done: Done | None


class Host(Protocol):
    """Where a `WorldControl` lives: an event loop, or a null modem."""

    def run_aside(
        self, job: Callable[[], Loaded | None], done: Callable[[Loaded | None, Exception | None], None]
    ) -> None:
        """Run `job` without holding up the steps, then call `done` with its result or its error, between two steps."""
        ...

    def end_soon(self, status: int, crash: bool) -> None:
        """End the simulation with an exit status, or as if it had died, after its sender has had time to say goodbye."""
        ...


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
        self._options = replace(options, warn=log.warning, is_program=is_controller)
        self._rotate_logs = rotate_logs
        self._allow_exit = allow_exit
        self._pictures = pictures
        self.read_only = read_only
        self._connections: list[Connection] = []
        self._waiting: deque[_Wanted] = deque()
        self._busy = False
        self._fence = Fence(log, "putting a map in place")
        self._snapshots = 0
        self._last_snapshot = -math.inf
        self._last_rotation = -math.inf
        self._map: tuple[Path, int] | None = None
        if sim.scene.source:
            path = Path(sim.scene.source).resolve()
            self._map = (path, _modified(path))

    def maps(self) -> list[tuple[str, bool]]:
        """The maps that may be loaded by name, and whether they came with the package."""
        return client_maps(self._folders)

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
        if not (connection.is_local or self._allow_exit):
            connection.log.warning("%s: not obeyed from another machine (--allow-client-exit)", request.command)
            return
        connection.log.warning("%s: the simulation ends with status %d", request.command, request.status)
        self._host.end_soon(request.status, request.crash)

    def _snapshot(self, connection: Connection, name: str) -> None:
        """Write a picture, as a client wishes."""
        try:
            path = self.write_picture(name, connection.session.now)
        except WorldError as error:
            connection.log.warning("%s", error)
        else:
            connection.log.info("picture written to %s", path)

    def write_picture(self, name: str, now: float) -> Path:
        """Write a picture of the world beside the log; `name` may choose its stem, never its folder, and no file is overwritten.

        Raises
        ------
        WorldError
            There were too many, or it cannot be written.
        """
        if self._snapshots >= MAX_SNAPSHOTS:
            raise WorldError(f"no more than {MAX_SNAPSHOTS} pictures are written in a run")
        if now - self._last_snapshot < SNAPSHOT_PAUSE:
            raise WorldError(f"no picture: the last one was less than {SNAPSHOT_PAUSE:g} s ago")
        self._last_snapshot = now
        stem = "".join(c for c in Path(name.replace("\\", "/")).stem if c.isalnum() or c in "-_") or "botyard"
        picture = self.sim.render()
        for n in count(1):
            path = self._pictures / f"{stem}{f'-{n}' if n > 1 else ''}.png"
            try:
                with path.open("xb") as file:  # a link is no way to somewhere else either
                    picture.save(file, "PNG")
            except FileExistsError:
                continue
            except OSError as error:
                raise WorldError(f"the picture {path} cannot be written: {error.strerror}") from None
            self._snapshots += 1
            return path.resolve()
        raise AssertionError  # numbers do not end

    # -- maps

    def _map_requested(self, connection: Connection, request: MapRequested) -> None:
        if self.master and not request.master:
            connection.log.warning('map "%s" not loaded: a client has reserved that (master mode)', shown(request.name))
            connection.map_changed(request.name, 0)
            return
        self.master = self.master or request.master
        self.load(request.name, connection)

    def load(self, name: str, connection: Connection | None = None, done: Done | None = None) -> None:
        """Load a map for everybody; `connection` asked for it, or a user at the page (None). `done` is told what came of it."""
        self._want(_Wanted(name, lambda: self._read(name), connection, done))

    def load_bytes(self, name: str, data: bytes, done: Done) -> None:
        """Put a map whose file a user at the page has sent; no file of it is kept."""
        self._want(_Wanted(name, lambda: self._read_bytes(name, data), None, done))

    def reload(self, done: Done) -> None:
        """Read the present map's file again, changed or not (UNS-024)."""
        source = self.sim.scene.source
        if not source or self._map is None:
            done("the present map did not come from a file")
            return
        path = self._map[0]
        self._want(_Wanted(source, lambda: self._read_file(path), None, done))

    def clear(self) -> None:
        """No map any more, for everybody."""
        self._put(Loaded(None, 0, World(scene=Scene()), build_grid(Scene())), "no map", None)

    def _want(self, wanted: _Wanted) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._failed(wanted, "too many maps are waiting to be loaded")
            return
        self._waiting.append(wanted)
        self._next()

    def _next(self) -> None:
        if self._busy or not self._waiting:
            return
        wanted = self._waiting.popleft()
        self._busy = True
        self._host.run_aside(wanted.read, lambda loaded, error: self._read_done(wanted, loaded, error))

    # these three may run in another thread

    def _read(self, name: str) -> Loaded | None:
        """Find and read a map; None if it is the present one, unchanged."""
        path = find_client_map(name, self._folders)
        if self._map is not None and self._map[0] == path and _modified(path) <= self._map[1]:
            return None
        return self._read_file(path)

    def _read_file(self, path: Path) -> Loaded:
        modified = _modified(path)
        world = read_world(read_source(path), self._options)
        return Loaded(path, modified, world, build_grid(world.scene))

    def _read_bytes(self, name: str, data: bytes) -> Loaded:
        world = read_world(Source(name, data), self._options)
        return Loaded(None, 0, world, build_grid(world.scene))

    def _read_done(self, wanted: _Wanted, loaded: Loaded | None, error: Exception | None) -> None:
        self._busy = False
        if error is not None:
            reason = str(error) if isinstance(error, FormatError) else repr(error)
        else:
            reason = self._fence.call(self._loaded, wanted, loaded, otherwise="internal error")
        if reason:
            self._failed(wanted, reason)
        self._next()

    def _loaded(self, wanted: _Wanted, loaded: Loaded | None) -> str:
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


def _modified(path: Path) -> int:
    """Time of the last change, ns; 0 if it cannot be told."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
