"""What a simulator that is started again after a crash has to know: kept in a file while it runs (CRS-003).

The file is JSON, written beside itself and renamed, so that it is whole whenever the program dies. A thread writes it: a disk that is
full or stuck costs the restart, not the simulation.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from botyard.controllers.crew import employ
from botyard.errors import BotyardError, StateError
from botyard.geometry import Pose
from botyard.model.world import THING, Program
from botyard.names import MAX_NAME, check_name
from botyard.safefile import MARK, read_own, remove_own, replace_own
from botyard.servers.yard import Yard
from botyard.sim.journal import API
from botyard.sim.simulation import Robot, Simulation

PERIOD: Final = 1.0
"""The file is written so often, s of wall time, if something has changed."""
VERSION: Final = 1
ORPHANS: Final = 2.0
"""Robots whose clients have not come back so long after a crash stop, s: the watchdog of most clients."""
MAX_FILE: Final = 256 * 2**20
"""A state has at most so many bytes; a larger file is none."""
MAX_THINGS: Final = 1_000_000
"""It tells of at most so many robots, and as many boxes."""
MAX_TICK: Final = 10**12
"""Most steps that a simulator can have done: 30 years of 1 ms."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Triple = tuple[float, float, float]

log = logging.getLogger("botyard")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRobot:
    """A robot, or an obstacle that was added.

    Attributes
    ----------
    name, model : str
        What it is called, and what it is.
    pose : Pose
        Where it is, m and rad.
    port : int
        Where clients reach it; 0: nowhere.
    program : Program or None
        What drives it while no client does.
    """

    name: str
    model: str
    pose: Pose
    port: int = 0
    program: Program | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """A running simulator.

    Attributes
    ----------
    tick : int
        Steps that were done.
    map : str
        Where the map came from; empty: none.
    speed : float
        See `botyard.servers.hub.Hub`.
    paused : bool
        Time stands still.
    robots : sequence of SavedRobot
        Robots and added obstacles, in order.
    visitors : mapping of str to Pose
        Robots that factories have made for clients: their names are the clients' addresses.
    boxes : mapping of str to Pose
        Boxes of the map.
    factories : sequence of int
        The factories' ports.
    page : sequence
        The page's port, and its two tokens; empty without a page.
    world : bytes
        All that changes, see `Simulation.save_state`; empty: the rest has to do.
    """

    tick: int
    map: str
    speed: float
    paused: bool
    robots: Sequence[SavedRobot] = ()
    visitors: Mapping[str, Pose] = field(default_factory=dict)
    boxes: Mapping[str, Pose] = field(default_factory=dict)
    factories: Sequence[int] = ()
    page: Sequence[Any] = ()
    world: bytes = b""


def state_of(yard: Yard, page: Sequence[Any] = ()) -> SavedState:
    """The present state of a simulator."""
    sim, hub = yard.hub.sim, yard.hub
    poses, rows = sim.snapshot.state.pose.tolist(), sim.snapshot.rows

    def saved(name: str, robot: Robot) -> SavedRobot:
        return SavedRobot(
            name=name, model=robot.spec.name, pose=Pose(*poses[rows[name]]), port=yard.port_of(name), program=sim.programs.get(name)
        )  # fmt: skip

    stays = {n: r for n, r in sim.robots.items() if n in yard.servers or not r.spec.drive or r.spec.name == THING}
    return SavedState(
        tick=sim.tick,
        map=sim.scene.source,
        speed=hub.speed,
        paused=hub.is_paused,
        robots=[saved(name, robot) for name, robot in stays.items()],
        visitors={n: Pose(*poses[rows[n]]) for n in sim.robots if n not in stays},
        boxes={n: Pose(*poses[rows[n]]) for n in sim.box_names},
        factories=[f.address[1] for f in yard.factories],
        page=page,
        world=_world_of(sim),
    )


def _world_of(sim: Simulation) -> bytes:
    try:
        return sim.save_state()
    except StateError:  # of a controller that cannot say its state: places are kept all the same
        return b""


class _Program(msgspec.Struct):
    """What drives a robot, as it stands in the file."""

    name: Name
    options: dict[str, Any]


class _Robot(msgspec.Struct):
    """A robot, as it stands in the file."""

    name: Name
    model: Name
    pose: Triple
    port: Port
    program: _Program | None


class _State(msgspec.Struct):
    """The file."""

    version: Literal[1]
    tick: Annotated[int, Meta(ge=0, le=MAX_TICK)]
    map: Annotated[str, Meta(max_length=4096, pattern=r"^[^\x00]*$")]
    speed: Annotated[float, Meta(ge=0.0, le=1000.0)]
    paused: bool
    robots: Annotated[list[_Robot], Meta(max_length=MAX_THINGS)]
    visitors: Annotated[dict[Name, Triple], Meta(max_length=MAX_THINGS)]
    boxes: Annotated[dict[Name, Triple], Meta(max_length=MAX_THINGS)]
    factories: Annotated[list[Port], Meta(max_length=MAX_THINGS)]
    page: Annotated[list[int | str], Meta(max_length=3)]
    world: bytes = b""


def read_state(path: str | os.PathLike[str], warn: Callable[[str], None]) -> SavedState | None:
    """What a file holds; None, and a warning, if that cannot be used: whatever is in it, nothing else comes of it."""
    try:
        file = msgspec.json.decode(read_own(path, MAX_FILE), type=_State)
        ports = [r.port for r in file.robots if r.port] + [p for p in file.factories if p]
        if len(set(ports)) < len(ports):
            raise ValueError("a port is there twice")
        return SavedState(
            tick=file.tick,
            map=file.map,
            speed=file.speed,
            paused=file.paused,
            robots=list(map(_saved_robot, file.robots)),
            visitors={name: Pose(*pose) for name, pose in file.visitors.items()},
            boxes={name: Pose(*pose) for name, pose in file.boxes.items()},
            factories=file.factories,
            page=msgspec.convert(file.page, tuple[Port, str, str]) if file.page else (),
            world=file.world,
        )
    except (OSError, ValueError, BotyardError, RecursionError) as error:  # msgspec's errors are ValueErrors
        reason = error.strerror if isinstance(error, OSError) else str(error)
        warn(f"the state before the crash cannot be used, {path}: {reason}")
        return None


def _saved_robot(r: _Robot) -> SavedRobot:
    program = r.program
    drives = None if program is None else Program(name=check_name(program.name, "controller"), options=program.options)
    name, model = check_name(r.name), check_name(r.model, "robot model")
    return SavedRobot(name=name, model=model, pose=Pose(*r.pose), port=r.port, program=drives)


def write_state(state: SavedState, path: str | os.PathLike[str]) -> None:
    """Write a file, for its owner only: the page's tokens are in it. Whoever reads it sees the old or the new one.

    Raises
    ------
    OSError
        It cannot be written, or something else than a file is in its place.
    """
    world = base64.b64encode(state.world).decode()
    told = {"version": VERSION, **asdict(replace(state, world=b"")), "world": world, "about": MARK}
    replace_own(path, json.dumps(told, default=str).encode())


def restore(yard: Yard, state: SavedState) -> dict[str, int]:
    """Put everything where it was; the ports that robots had, by their names. What cannot be brought back is logged.

    The map is in place, and so are the robots that the command line and the map bring.
    """
    sim = yard.hub.sim
    wanted = {r.name for r in state.robots}
    gone = [n for n in sim.robots if n not in wanted] + [n for n in sim.box_names if n not in state.boxes]
    yard.remove(gone)
    for robot in state.robots:
        try:
            if robot.name not in sim.robots:
                found = yard.add(robot.model, robot.name, robot.pose)
                if robot.program is not None and robot.name not in sim.programs:
                    employ(found, robot.program)
            else:
                sim.put(robot.name, robot.pose, "restart")
        except BotyardError as error:
            log.warning("%s is not where it was: %s", robot.name, error)
    boxes = set(sim.box_names)
    for name, pose in state.boxes.items():
        if name not in boxes:
            log.warning("the box %s is not there any more", name)
            continue
        try:
            sim.put(name, pose, "restart")
        except BotyardError as error:
            log.warning("the box %s is not where it was: %s", name, error)
    _go_on(yard, state)
    sim.settle()
    for factory in yard.factories:
        factory.remembered.update(state.visitors)
    yard.hub.set_speed(state.speed)
    if state.paused:
        yard.hub.pause()
    log.warning(
        "started again after a crash, at %.1f s of simulated time; robots where they were: %d",
        sim.time, len(wanted & set(sim.robots)),
    )  # fmt: skip
    return {r.name: r.port for r in state.robots if r.port}


def _go_on(yard: Yard, state: SavedState) -> None:
    """Odometry, batteries, limits, what is held, and how everything moved: as it was, where the world is the same one.

    Clients are gone: they are forgotten, and robots that they drove stop when their time is out.
    """
    sim = yard.hub.sim
    if not state.world:
        return
    before = set(sim.robots)
    try:
        sim.restore(state.world)
    except BotyardError as error:
        log.warning("robots are where they were, but nothing else is as it was: %s", error)
        return
    sim.remove_robots([name for name in sim.robots if name not in before])  # visitors' come with their clients
    driven = []
    for name, robot in sim.robots.items():
        for source in robot.clients:
            robot.release(source)
            driven.append(name)
        for source in sim.holders(name):
            if source != API:
                sim.hold(name, False, source)
    if driven:
        asyncio.get_running_loop().call_later(ORPHANS, _stop, sim, driven)


def _stop(sim: Simulation, names: Sequence[str]) -> None:
    for name in names:
        if name in sim.robots and not sim.robots[name].clients:
            sim.robots[name].command.stop()


class StateKeeper:
    """Writes the state of a running simulator.

    Parameters
    ----------
    yard : Yard
        The running simulator.
    path : path-like
        The file.
    page : sequence
        See `SavedState`.
    supervisor : int, optional
        Process that waits for this one; when it is gone, the simulation ends.
    """

    def __init__(
        self, yard: Yard, path: str | os.PathLike[str], page: Sequence[Any] = (), supervisor: int | None = None
    ) -> None:
        self._yard = yard
        self._path = Path(path).absolute()
        self._page = page
        self._supervisor = supervisor
        self._failed = False
        self._latest: SavedState | None = None
        self._said: tuple[object, ...] = ()
        self._wake = threading.Semaphore(0)
        self._ended = False
        self._writing = threading.Lock()
        threading.Thread(target=self._write, name="state", daemon=True).start()
        self._look()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Write no more."""
        self._task.cancel()
        self._ended = True
        self._wake.release()

    def forget(self) -> None:
        """The simulation has ended on purpose: nothing is to be brought back."""
        self.close()
        if self._writing.acquire(timeout=PERIOD):  # else the disk is stuck
            with contextlib.suppress(OSError):
                remove_own(self._path)
            self._writing.release()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            if self._supervisor is not None and os.name == "posix" and os.getppid() != self._supervisor:
                log.warning("the process that would start the simulator again is gone: the simulation ends")
                self._yard.hub.stop()
            self._look()

    def _look(self) -> None:
        """Hand over what has changed."""
        hub, yard = self._yard.hub, self._yard
        said = (hub.sim.snapshot, hub.sim.feed.revision)
        if said != self._said:
            self._said = said
            self._latest = state_of(yard, self._page)
            self._wake.release()

    def _write(self) -> None:
        while True:
            self._wake.acquire()
            with self._writing:
                if self._ended:
                    return
                state, self._latest = self._latest, None
                if state is not None:
                    self._try_to_write(state)

    def _try_to_write(self, state: SavedState) -> None:
        try:
            write_state(state, self._path)
            self._failed = False
        except Exception as error:  # whatever a disk does must not end the thread
            if not self._failed:
                reason = error.strerror if isinstance(error, OSError) else repr(error)
                log.warning("after a crash nothing can be brought back: cannot write %s: %s", self._path, reason)
            self._failed = True


__all__ = ["SavedRobot", "SavedState", "StateKeeper", "read_state", "restore", "state_of", "write_state"]
