"""Simulation and clients in one thread, without sockets, on a fake clock.

This is for tests and experiments:

    modem = NullModem(sim)
    line = modem.connect("p3dx")
    line.send(command(0))
    modem.run(0.2)
    line.received  # bytes from the robot

Wall time advances with simulated time by default, so a whole session with its watchdogs
and time-outs takes milliseconds. A `manipulator` may change, truncate or drop bytes
from client to robot, to imitate a bad line.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from botyard.control import Control
from botyard.interfaces.pioneer.reporting import Reporter
from botyard.interfaces.pioneer.requests import PioneerRequests
from botyard.protocols.pioneer.conversation import PioneerSettings
from botyard.protocols.pioneer.session import Session
from botyard.servers.jobs.maploading import MapLoader
from botyard.servers.jobs.pictures import Pictures
from botyard.servers.pioneer.connection import Connection, RobotLog
from botyard.sim.simulation import Simulation

T = TypeVar("T")
Manipulator = Callable[[bytes], bytes]


class Line:
    """A client's end of a connection.

    Attributes
    ----------
    received : bytearray
        Bytes from the robot that `take` has not returned yet.
    closed : bool
        Whether the robot's side has closed the connection.
    log : list of str
        Lines that the session logs: information, warnings, errors.
    """

    def __init__(
        self, modem: NullModem, robot: str, manipulator: Manipulator | None
    ) -> None:
        self.received = bytearray()
        self.closed = False
        self.log: list[str] = []
        self._modem = modem
        self._manipulate = manipulator or (lambda data: data)
        # INFO is the default level of the program's log.
        logger = logging.Logger(f"nullmodem.{robot}", logging.INFO)
        logger.addHandler(_ListHandler(self.log))
        session = Session(
            modem.desk.port(modem.sim.robots[robot]), modem.settings, modem.now
        )
        self.connection = Connection(
            session,
            self.received.extend,
            self._finish,
            RobotLog(logger, {"robot": robot}),
            modem.desk,
        )

    def send(self, data: bytes) -> None:
        """Deliver bytes to the robot now.

        Parameters
        ----------
        data : bytes
            Part of the client's stream. The `manipulator` may change it before it
            arrives.
        """
        self.connection.receive_data(self._manipulate(data), self._modem.now)

    def hang_up(self) -> None:
        """Close the client's side."""
        self.connection.receive_eof()

    def take(self) -> bytes:
        """Return the bytes that have arrived since the last call."""
        data = bytes(self.received)
        self.received.clear()
        return data

    def _finish(self) -> None:
        self.closed = True
        self._modem._reporter.detach(self.connection)
        if self in self._modem._lines:
            self._modem._lines.remove(self)

    @property
    def exit_status(self) -> int | None:
        """Exit status with which a client ended the simulation; None if none did."""
        return self._modem.exit_status


class NullModem:
    """Simulation on a fake clock, with clients that need no sockets.

    Parameters
    ----------
    sim : Simulation
        The world.
    settings : PioneerSettings, optional
        Settings of the Pioneer protocol for all sessions.
    folders : sequence of Path
        Folders from which clients may load maps.
    read_only : bool
        Refuse all changes of the world by clients.
    """

    def __init__(
        self,
        sim: Simulation,
        settings: PioneerSettings | None = None,
        *,
        folders: Sequence[Path] = (),
        read_only: bool = False,
    ) -> None:
        self.sim = sim
        self.exit_status: int | None = None
        self.now = 1000.0
        self.settings = settings or PioneerSettings()
        self.control = control = Control(sim, read_only=read_only)
        self.maps = control.maps = MapLoader(sim, self, folders=folders, limits=None)
        control.painter = Pictures(sim, self, limits=None, clock=lambda: self.now)
        control.end = self.end_soon
        self.desk = PioneerRequests(control)
        self._lines: list[Line] = []
        self._reporter = Reporter()

    def run_in_background(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run slow work immediately; no other client waits for this thread.

        Parameters
        ----------
        job : callable
            Function without arguments that does the work.
        done : callable
            Receives the result and None, or None and the error.
        """
        try:
            result = job()
        # As with a real event loop, the caller reports the error.
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def end_soon(self, status: int, crash: bool) -> None:
        """Store the exit status with which a client ended the simulation.

        Parameters
        ----------
        status : int
            Exit status of the simulation, readable as `exit_status`.
        crash : bool
            Whether it counts as a crash; not used here.
        """
        self.exit_status = status

    def connect(self, robot: str, manipulator: Manipulator | None = None) -> Line:
        """Connect a client to a robot, and return the client's end.

        Parameters
        ----------
        robot : str
            Name of the robot.
        manipulator : callable, optional
            Receives the bytes of each `Line.send`, and returns the bytes that arrive.

        Returns
        -------
        Line
            Client's end, connected but without a handshake.

        Raises
        ------
        KeyError
            No robot has this name.
        """
        line = Line(self, robot, manipulator)
        self._lines.append(line)
        self._reporter.attach(line.connection)
        return line

    def run(self, seconds: float, *, wall_per_sim: float = 1.0) -> None:
        """Advance simulated time.

        Parameters
        ----------
        seconds : float
            Simulated time to pass, s.
        wall_per_sim : float
            Wall time for each second of simulated time, s.
        """
        for _ in range(max(1, round(seconds / self.sim.dt))):
            self.wait(self.sim.dt * wall_per_sim)
            self.sim.step()
            self._reporter.on_snapshot(self.now)

    def wait(self, seconds: float) -> None:
        """Advance wall time without simulation steps; timers fire at their times.

        Parameters
        ----------
        seconds : float
            Wall time to pass, s.
        """
        end = self.now + seconds
        while (due := self._next_timer()) <= end:
            # The reporter trusts that no session sets a timer in the past, as a test may.
            self._reporter.wake = self.now = max(self.now, due)
            self._reporter.poll(self.now)

        self.now = end

    def _next_timer(self) -> float:
        times = (line.connection.next_timer() for line in self._lines)
        return min((t for t in times if t is not None), default=math.inf)


class _ListHandler(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
