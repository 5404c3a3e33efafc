"""State file for the restart after a crash, written while the simulator runs (CRS-003).

The JSON file is written under a temporary name and then renamed, so it is complete at
whatever time the program dies. A thread writes it: a disk that is full or blocks
prevents a restart, but does not stop the simulation.
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

import numpy as np

from botyard.controllers.assignment import employ
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
from botyard.sim.simulation import Simulation

# A crash then costs at most about a second of movement.
WRITE_INTERVAL_S: Final = 1.0
"""Interval of wall time to write the state if it has changed, s."""
REST_WRITE_INTERVAL_S: Final = 10.0
"""Interval of writing while only the time changes in a world without viewers, s."""
ORPHAN_STOP_DELAY_S: Final = 2.0
"""Time after a restart at which robots stop if their clients have not reconnected, s.

It equals the watchdog timeout of most clients.
"""
# A damaged file must not fill the memory at the restart.
MAX_FILE: Final = 256 * 2**20
"""Maximum size of a state file, bytes."""

log = logging.getLogger("botyard")


class SavedRobots:
    """Saved state of a simulator's robots; only entries of moved robots are renewed.

    Parameters
    ----------
    robot_servers : RobotServers
        Robots of the running simulator, and their ports.
    """

    def __init__(self, robot_servers: RobotServers) -> None:
        self._robot_servers = robot_servers
        self._known: tuple[object, ...] = ()
        self._stays: list[str] = []
        self._others: list[str] = []
        self._saved: list[SavedRobot] = []
        self._rows = self._other_rows = np.zeros(0, np.int64)
        self._poses = np.zeros((0, 3))

    def __call__(self) -> tuple[list[SavedRobot], dict[str, Pose]]:
        """Return the state of permanent robots, and the poses of factories' robots."""
        servers = self._robot_servers
        sim = servers.hub.sim
        snapshot = sim.snapshot
        known = sim.core.feed.revision, dict(sim.core.programs.by_robot)
        if known != self._known:
            self._known = known

            # Robots of factories are not permanent: factories create them for their
            # clients.
            self._stays = [
                n
                for n, r in sim.robots.items()
                if n in servers.servers or not r.spec.drive or r.spec.name == THING
            ]
            stays, rows = frozenset(self._stays), snapshot.rows
            self._others = [n for n in sim.robots if n not in stays]
            self._rows = np.array([rows[n] for n in self._stays], np.int64)
            self._other_rows = np.array([rows[n] for n in self._others], np.int64)
            self._poses = snapshot.state.pose[self._rows]
            poses = map(Pose, *self._poses.T.tolist())
            self._saved = list(map(self._save, self._stays, poses))
        else:
            poses_now = snapshot.state.pose[self._rows]
            # An exact comparison is enough: a robot at rest keeps the same bits.
            moved = np.flatnonzero((poses_now != self._poses).any(axis=1))

            # Copy the list: the writer thread may still read the previous one.
            self._poses, self._saved = poses_now, self._saved.copy()
            for i, pose in zip(moved.tolist(), poses_now[moved].tolist(), strict=True):
                old = self._saved[i]
                self._saved[i] = SavedRobot(
                    name=old.name,
                    model=old.model,
                    pose=Pose(*pose),
                    port=old.port,
                    program=old.program,
                )

        others = snapshot.state.pose[self._other_rows].tolist()
        visitors = {
            n: Pose(*pose) for n, pose in zip(self._others, others, strict=True)
        }
        return self._saved, visitors

    def _save(self, name: str, pose: Pose) -> SavedRobot:
        sim = self._robot_servers.hub.sim
        return SavedRobot(
            name=name,
            model=sim.robots[name].spec.name,
            pose=pose,
            port=self._robot_servers.port_of(name),
            program=sim.core.programs.by_robot.get(name),
        )


def state_of(
    robot_servers: RobotServers,
    page: Sequence[Any] = (),
    saved: SavedRobots | None = None,
) -> SavedState:
    """Return the current state of a simulator.

    Parameters
    ----------
    robot_servers : RobotServers
        Robots of the running simulator, and their ports.
    page : sequence
        State of the page; see `SavedState`.
    saved : SavedRobots, optional
        Saved state of the robots at the last call; it is updated in place, which makes
        repeated calls cheaper.
    """
    sim, hub = robot_servers.hub.sim, robot_servers.hub
    poses, rows = sim.snapshot.state.pose, sim.snapshot.rows
    robots, visitors = (saved or SavedRobots(robot_servers))()
    return SavedState(
        tick=sim.tick,
        map=sim.scene.source,
        speed=hub.speed,
        paused=hub.is_paused,
        robots=robots,
        visitors=visitors,
        boxes={n: Pose(*poses[rows[n]].tolist()) for n in sim.core.box_names},
        factories=[f.address[1] for f in robot_servers.factories],
        page=page,
        world=_world_of(sim),
    )


def _world_of(sim: Simulation) -> bytes:
    try:
        return sim.save_state()
    # A controller cannot save its state; the file then holds the poses only.
    except StateError:
        return b""


def read_state(
    path: str | os.PathLike[str], warn: Callable[[str], None]
) -> SavedState | None:
    """Read a state file.

    Parameters
    ----------
    path : path-like
        File of at most `MAX_FILE` bytes.
    warn : callable
        Receives the reason if the file is unusable.

    Returns
    -------
    SavedState or None
        None after a warning: the simulator then starts without the former state.
    """
    try:
        return decode_state(read_own(path, MAX_FILE))
    # msgspec's errors are ValueErrors; deep nesting raises RecursionError.
    except (OSError, ValueError, BotyardError, RecursionError) as error:
        # The text of an OSError repeats the path, which the message has already.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        warn(f"cannot restore the state before the crash from {path}: {reason}")
        return None


def write_state(state: SavedState, path: str | os.PathLike[str]) -> None:
    """Write a state file atomically.

    Only its owner can read it, because it holds the page's tokens.

    Parameters
    ----------
    state : SavedState
        State to write; see `state_of`.
    path : path-like
        The file; an older state is replaced.

    Raises
    ------
    OSError
        The file cannot be written, or its path holds something other than a regular
        file.
    """
    replace_own(path, encode_state(state))


def restore(robot_servers: RobotServers, state: SavedState) -> dict[str, int]:
    """Restore the state of a simulator.

    Call this when the map and the robots of the command line and the map are in place.
    Failures to restore a robot or box are logged. The traffic of a scenario is not started
    again.

    Parameters
    ----------
    robot_servers : RobotServers
        The simulator. Robots and boxes that the state lacks are removed.
    state : SavedState
        State before the crash.

    Returns
    -------
    dict of str to int
        Former ports of robots by name.
    """
    sim, traffic = robot_servers.hub.sim, robot_servers.control.traffic
    # Its paths start at the poses of the file, and a robot would first drive back there.
    if traffic is not None:
        traffic.end()
    wanted = {r.name for r in state.robots}
    gone = [n for n in sim.robots if n not in wanted] + [
        n for n in sim.core.box_names if n not in state.boxes
    ]
    # Remove robots before others are added, so that names and ports are free.
    robot_servers.remove(gone)

    for robot in state.robots:
        try:
            if robot.name not in sim.robots:
                found = robot_servers.add(robot.model, robot.name, robot.pose)
                if (
                    robot.program is not None
                    and robot.name not in sim.core.programs.by_robot
                ):
                    employ(found, robot.program)
            else:
                sim.put(robot.name, robot.pose, "restart")
        except BotyardError as error:
            log.warning("cannot restore the pose of %s: %s", robot.name, error)

    boxes = set(sim.core.box_names)
    for name, pose in state.boxes.items():
        if name not in boxes:
            log.warning("cannot restore the box %s: the map has no such box", name)
            continue

        try:
            sim.put(name, pose, "restart")
        except BotyardError as error:
            log.warning("cannot restore the pose of the box %s: %s", name, error)

    # Restore poses first, because `restore` of the world's state may fail.
    _go_on(robot_servers, state)
    # Snapshot and sensors must show the restored poses before the first client
    # connects.
    sim.settle()

    for factory in robot_servers.factories:
        # Robots of factories appear again at their former poses when their clients
        # reconnect.
        factory.remembered.update(state.visitors)
    robot_servers.hub.set_speed(state.speed)
    if state.paused:
        robot_servers.hub.pause()
    log.warning(
        "restarted after a crash, at %.1f s of simulated time; robots at their former poses: %d",
        sim.time,
        len(wanted & set(sim.robots)),
    )
    return {r.name: r.port for r in state.robots if r.port}


def _go_on(robot_servers: RobotServers, state: SavedState) -> None:
    """Restore odometry, batteries, limits, holds and velocities in the same world.

    Clients that were connected before the crash are not connected any more, so the
    simulation forgets them. Robots that they drove stop after `ORPHAN_STOP_DELAY_S`,
    unless a client connects.
    """
    sim = robot_servers.hub.sim
    if not state.world:
        return
    # List the robots before `restore`, which also adds the robots of the saved state.
    before = set(sim.robots)
    try:
        sim.restore(state.world)
    except BotyardError as error:
        log.warning(
            "restored the poses of robots, but not the rest of the state: %s", error
        )
        return

    # The saved state also holds robots of factories, which are created again when their
    # clients reconnect.
    sim.remove_robots([name for name in sim.robots if name not in before])
    driven = []
    for name, robot in sim.robots.items():
        for source in robot.clients:
            robot.release(source)
            driven.append(name)

        # Holds by clients end, as the clients are disconnected; holds by the program
        # stay.
        for source in sim.core.holders(name):
            if source != API:
                sim.hold(name, False, source)

    if driven:
        asyncio.get_running_loop().call_later(ORPHAN_STOP_DELAY_S, _stop, sim, driven)


def _stop(sim: Simulation, names: Sequence[str]) -> None:
    for name in names:
        # A client that has reconnected drives the robot itself.
        if name in sim.robots and not sim.robots[name].clients:
            sim.robots[name].command.stop()


class StateKeeper:
    """Periodic writer of a running simulator's state.

    Parameters
    ----------
    robot_servers : RobotServers
        The running simulator.
    path : path-like
        State file, written about once a second.
    page : sequence
        See `SavedState`.
    supervisor : int, optional
        Process ID of the supervisor; the simulation ends when this process has ended.
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
        self._saved = SavedRobots(robot_servers)
        self._supervisor = supervisor
        self._failed = False
        self._latest: SavedState | None = None
        self._last_version: tuple[object, ...] = ()
        self._next_at_rest = 0.0
        self._wake = threading.Semaphore(0)
        self._ended = False
        self._writing = threading.Lock()
        # This is a daemon thread, because a disk that blocks must not keep the process
        # alive.
        threading.Thread(target=self._write, name="state", daemon=True).start()
        self._look()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Stop writing."""
        self._task.cancel()
        self._ended = True
        self._wake.release()

    def forget(self) -> None:
        """Stop writing and remove the file, because the simulation ended on purpose."""
        self.close()
        # If the disk blocks, the writer thread keeps the lock, and the file remains.
        if self._writing.acquire(timeout=WRITE_INTERVAL_S):
            with contextlib.suppress(OSError):
                remove_own(self._path)
            self._writing.release()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(WRITE_INTERVAL_S)
            # POSIX assigns another parent to this process when the supervisor dies.
            if (
                self._supervisor is not None
                and os.name == "posix"
                and os.getppid() != self._supervisor
            ):
                log.warning("the supervisor process is gone: the simulation ends")
                self._robot_servers.hub.stop()

            self._look()

    def _look(self) -> None:
        """Pass the present state to the writer thread if it has changed."""
        hub, robot_servers = self._robot_servers.hub, self._robot_servers
        snapshot, now = hub.sim.snapshot, asyncio.get_running_loop().time()
        version = (snapshot, hub.sim.core.feed.revision)
        if version == self._last_version:
            return
        if (
            now < self._next_at_rest
            and version[1:] == self._last_version[1:]
            # Save each state of a watched world: a viewer would notice a jump of time
            # after a restart.
            and not (hub.is_watched or snapshot.state.vel.any())
        ):
            return

        self._last_version = version
        self._next_at_rest = now + REST_WRITE_INTERVAL_S
        self._latest = state_of(robot_servers, self._page, self._saved)
        self._wake.release()

    def _write(self) -> None:
        while True:
            self._wake.acquire()
            with self._writing:
                # Write under the lock, so that no file appears after `forget` has
                # removed it.
                if self._ended:
                    return
                # Only the latest state is written: a slow disk skips earlier ones.
                state, self._latest = self._latest, None
                if state is not None:
                    self._try_to_write(state)

    def _try_to_write(self, state: SavedState) -> None:
        try:
            write_state(state, self._path)
            self._failed = False
        except Exception as error:
            # No error of a disk may end the thread.
            # A full disk stays full, so the message appears once.
            if not self._failed:
                reason = error.strerror if isinstance(error, OSError) else repr(error)
                log.warning(
                    "no restart after a crash is possible: cannot write the state file %s: %s",
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
