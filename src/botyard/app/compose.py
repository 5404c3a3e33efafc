"""Construction of the parts of a simulator, before any port opens or any step runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from botyard.control import Control
from botyard.control.driving import stop_expired_drivers
from botyard.control.holds import end_expired_holds
from botyard.control.world import LogFiles
from botyard.formats.base import Options
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.model.robot import RobotSpec
from botyard.model.world import Program
from botyard.protocols.ambf.stepping import WATCHDOG
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.servers.hub import Hub
from botyard.servers.jobs.child_jobs import JobLimits
from botyard.servers.jobs.maploading import MapLoader
from botyard.servers.jobs.masskernels import mass_kernels
from botyard.servers.jobs.movies import Movies
from botyard.servers.jobs.pictures import Pictures
from botyard.servers.jobs.recordings import Recordings
from botyard.servers.jobs.threads import LoopHost
from botyard.servers.lockstep import Lockstep
from botyard.servers.pioneer.robot_servers import RobotServers
from botyard.sim.simulation import Simulation
from botyard.traffic.live import LiveTraffic


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a simulator.

    Attributes
    ----------
    hub : Hub
        Run loop: runs the steps at the requested pace.
    control : Control
        Operations for all clients.
    robot_servers : RobotServers
        Robots, their ports, and interfaces.
    maps : MapLoader
        Loads maps.
    pictures : Pictures
        Draws the world.
    recordings : Recordings
        Records the run.
    movies : Movies
        Renders movies of the run.
    lockstep : Lockstep
        Steps the world for clients.
    work : LoopHost
        Runs blocking jobs in threads.
    """

    hub: Hub
    control: Control
    robot_servers: RobotServers
    maps: MapLoader
    pictures: Pictures
    recordings: Recordings
    movies: Movies
    lockstep: Lockstep
    work: LoopHost

    def close(self) -> None:
        """Close all ports, and cancel background jobs."""
        self.maps.close()
        self.pictures.close()
        self.recordings.close()
        self.movies.close()
        self.lockstep.close()
        self.robot_servers.close()

    async def ended(self) -> None:
        """Wait until the tasks and threads of all parts have ended and connections are closed.

        Call `close` first.
        """
        await self.hub.background.aclose()
        await self.work.ended()
        # Transports close over a few iterations of the event loop.
        for _ in range(5):
            await asyncio.sleep(0)


def compose(  # noqa: PLR0913 - a keyword for each setting of a part
    sim: Simulation,
    *,
    interval: float | None = 0.1,
    duration: float | None = None,
    settings: PioneerSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 8101,
    patient: bool = False,
    equip: Callable[[RobotSpec], RobotSpec] = lambda spec: spec,
    program: Program | None = None,
    read_only: bool = False,
    allow_exit: bool = False,
    folders: Sequence[Path] = (),
    reading: Options = Options(),
    limits: JobLimits | None = JobLimits(),
    pictures: Path = Path(),
    rotate_logs: Callable[[], None] | None = None,
    watchdog: float = WATCHDOG,
) -> Parts:
    """Create the parts of a simulator around a world, and connect them to each other.

    Parameters
    ----------
    sim : Simulation
        The world.
    interval, duration
        See `Hub`.
    settings, host, port, patient, equip, program
        See `RobotServers`.
    read_only, allow_exit
        See `Control`.
    folders, reading, limits
        See `MapLoader`.
    pictures : Path
        Folder for pictures and recordings that clients request.
    rotate_logs : callable, optional
        Function that rotates the log file; None: there is no log file.
    watchdog : float
        See `Lockstep`.
    """
    # The order follows the references between the parts: the hub paces the world, jobs
    # belong to the hub, and every other part hands its work to the jobs.
    hub = Hub(sim, interval=interval, duration=duration)
    work = LoopHost(hub)
    control = Control(sim, read_only=read_only, allow_exit=allow_exit)
    # Control is imported by every interface, so it must not import servers. The parts
    # that need a server are set here.
    control.clock = hub
    # A robot must stop when its driver no longer renews the command.
    hub.looks.append(lambda: stop_expired_drivers(control))
    # A body must move again when the person who held it has left the machine.
    hub.looks.append(lambda: end_expired_holds(control))
    control.mass_kernels = lambda: mass_kernels(work)
    control.end = work.end_soon
    control.stepper = lockstep = Lockstep(hub, watchdog)
    control.maps = maps = MapLoader(
        sim, work, folders=folders, options=reading, limits=limits
    )
    control.painter = painter = Pictures(sim, work, pictures, limits)
    # Without a log file there is nothing to rotate, and control then refuses the
    # operation.
    if rotate_logs is not None:
        control.logs = LogFiles(rotate_logs, time.monotonic)
    desk = PioneerRequests(control)
    hub.census.add(desk.facts)
    control.recordings = recordings = Recordings(
        sim, work, pictures, desk.taps, patient=interval is None
    )
    control.traffic = LiveTraffic(sim)
    control.filmer = movies = Movies(hub, work, pictures, limits)
    robot_servers = RobotServers(
        hub,
        desk,
        settings or PioneerSettings(),
        host=host,
        port=port,
        patient=patient,
        equip=equip,
        program=program,
    )
    # Set this last, because the map loader and the robot servers refer to each other.
    maps.populate = robot_servers.add_robots_of
    return Parts(
        hub, control, robot_servers, maps, painter, recordings, movies, lockstep, work
    )


__all__ = ["Parts", "compose"]
