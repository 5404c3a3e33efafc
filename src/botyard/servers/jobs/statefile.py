"""State file for the restart after a crash: written while the simulator runs (CRS-003).

The file is JSON, written beside itself and renamed, so that it is whole whenever the
program dies. A thread writes it: a disk that is full or stuck costs the restart, not
the simulation.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from botyard.controllers.crew import employ
from botyard.errors import BotyardError, StateError
from botyard.formats.crashstate import (
    SavedRobot,
    SavedState,
    decode_state,
    encode_state,
)
from botyard.geometry import Pose
from botyard.model.world import THING
from botyard.processes.safefile import read_own, remove_own, replace_own
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.sim.journal import API
from botyard.sim.simulation import Robot, Simulation

WRITE_INTERVAL_S: Final = 1.0
"""Write interval, s of wall time, if something has changed."""
ORPHAN_STOP_DELAY_S: Final = 2.0
"""After a restart, robots whose clients have not come back within this time, s, stop;
it is the watchdog of most clients.
"""
MAX_FILE: Final = 256 * 2**20
"""Largest state file, bytes."""

log = logging.getLogger("botyard")


def state_of(robot_servers: RobotServers, page: Sequence[Any] = ()) -> SavedState:
    """The present state of a simulator."""
    sim, hub = robot_servers.hub.sim, robot_servers.hub
    poses, rows = sim.snapshot.state.pose.tolist(), sim.snapshot.rows

    def saved(name: str, robot: Robot) -> SavedRobot:
        return SavedRobot(
            name=name,
            model=robot.spec.name,
            pose=Pose(*poses[rows[name]]),
            port=robot_servers.port_of(name),
            program=sim.programs.get(name),
        )

    stays = {
        n: r
        for n, r in sim.robots.items()
        if n in robot_servers.servers or not r.spec.drive or r.spec.name == THING
    }
    return SavedState(
        tick=sim.tick,
        map=sim.scene.source,
        speed=hub.speed,
        paused=hub.is_paused,
        robots=[saved(name, robot) for name, robot in stays.items()],
        visitors={n: Pose(*poses[rows[n]]) for n in sim.robots if n not in stays},
        boxes={n: Pose(*poses[rows[n]]) for n in sim.box_names},
        factories=[f.address[1] for f in robot_servers.factories],
        page=page,
        world=_world_of(sim),
    )


def _world_of(sim: Simulation) -> bytes:
    try:
        return sim.save_state()
    except (
        StateError
    ):  # of a controller that cannot say its state: places are kept all the same
        return b""


def read_state(
    path: str | os.PathLike[str], warn: Callable[[str], None]
) -> SavedState | None:
    """Read a state file. Returns None, after a warning, if it cannot be used."""
    try:
        return decode_state(read_own(path, MAX_FILE))
    except (
        OSError,
        ValueError,
        BotyardError,
        RecursionError,
    ) as error:  # msgspec's errors are ValueErrors
        reason = error.strerror if isinstance(error, OSError) else str(error)
        warn(f"the state before the crash cannot be used, {path}: {reason}")
        return None


def write_state(state: SavedState, path: str | os.PathLike[str]) -> None:
    """Write a state file atomically, readable only by its owner, since it holds the
    page's tokens.

    Raises
    ------
    OSError
        It cannot be written, or something other than a regular file is in its place.
    """
    replace_own(path, encode_state(state))


def restore(robot_servers: RobotServers, state: SavedState) -> dict[str, int]:
    """Put everything where it was; the ports that robots had, by their names. What
    cannot be brought back is logged.

    The map is in place, and so are the robots that the command line and the map bring.
    """
    sim = robot_servers.hub.sim
    wanted = {r.name for r in state.robots}
    gone = [n for n in sim.robots if n not in wanted] + [
        n for n in sim.box_names if n not in state.boxes
    ]
    robot_servers.remove(gone)
    for robot in state.robots:
        try:
            if robot.name not in sim.robots:
                found = robot_servers.add(robot.model, robot.name, robot.pose)
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

    _go_on(robot_servers, state)
    sim.settle()
    for factory in robot_servers.factories:
        factory.remembered.update(state.visitors)
    robot_servers.hub.set_speed(state.speed)
    if state.paused:
        robot_servers.hub.pause()
    log.warning(
        "started again after a crash, at %.1f s of simulated time; robots where they were: %d",
        sim.time,
        len(wanted & set(sim.robots)),
    )
    return {r.name: r.port for r in state.robots if r.port}


def _go_on(robot_servers: RobotServers, state: SavedState) -> None:
    """Odometry, batteries, limits, what is held, and how everything moved: as it was,
    where the world is the same one.

    Clients are gone: they are forgotten, and robots that they drove stop when their
    time is out.
    """
    sim = robot_servers.hub.sim
    if not state.world:
        return
    before = set(sim.robots)
    try:
        sim.restore(state.world)
    except BotyardError as error:
        log.warning(
            "robots are where they were, but nothing else is as it was: %s", error
        )
        return

    sim.remove_robots(
        [name for name in sim.robots if name not in before]
    )  # visitors' come with their clients
    driven = []
    for name, robot in sim.robots.items():
        for source in robot.clients:
            robot.release(source)
            driven.append(name)

        for source in sim.holders(name):
            if source != API:
                sim.hold(name, False, source)

    if driven:
        asyncio.get_running_loop().call_later(ORPHAN_STOP_DELAY_S, _stop, sim, driven)


def _stop(sim: Simulation, names: Sequence[str]) -> None:
    for name in names:
        if name in sim.robots and not sim.robots[name].clients:
            sim.robots[name].command.stop()


class StateKeeper:
    """Writes the state of a running simulator.

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    path : path-like
        The file.
    page : sequence
        See `SavedState`.
    supervisor : int, optional
        Process that waits for this one; when it is gone, the simulation ends.
    """

    def __init__(
        self,
        robot_servers: RobotServers,
        path: str | os.PathLike[str],
        page: Sequence[Any] = (),
        supervisor: int | None = None,
    ) -> None:
        self._robot_servers = robot_servers
        self._path = Path(path).absolute()
        self._page = page
        self._supervisor = supervisor
        self._failed = False
        self._latest: SavedState | None = None
        self._last_version: tuple[object, ...] = ()
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
        if self._writing.acquire(timeout=WRITE_INTERVAL_S):  # else the disk is stuck
            with contextlib.suppress(OSError):
                remove_own(self._path)
            self._writing.release()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(WRITE_INTERVAL_S)
            if (
                self._supervisor is not None
                and os.name == "posix"
                and os.getppid() != self._supervisor
            ):
                log.warning(
                    "the process that would start the simulator again is gone: the simulation ends"
                )
                self._robot_servers.hub.stop()

            self._look()

    def _look(self) -> None:
        """Hand over what has changed."""
        hub, robot_servers = self._robot_servers.hub, self._robot_servers
        version = (hub.sim.snapshot, hub.sim.feed.revision)
        if version != self._last_version:
            self._last_version = version
            self._latest = state_of(robot_servers, self._page)
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
        except Exception as error:
            # whatever a disk does must not end the thread
            if not self._failed:
                reason = error.strerror if isinstance(error, OSError) else repr(error)
                log.warning(
                    "after a crash nothing can be brought back: cannot write %s: %s",
                    self._path,
                    reason,
                )

            self._failed = True


__all__ = [
    "SavedRobot",
    "SavedState",
    "StateKeeper",
    "read_state",
    "restore",
    "state_of",
    "write_state",
]
