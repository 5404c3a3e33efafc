"""A simulation and its clients in one thread, without sockets and with a clock that is
only a number: for tests and experiments.

    modem = NullModem(sim)
    line = modem.connect("p3dx")
    line.send(command(0))
    modem.run(0.2)
    line.received  # bytes from the robot

Wall time advances with simulated time unless told otherwise, so a whole session with
its watchdogs and time-outs takes milliseconds. A `manipulator` may change, cut or drop
what passes from client to robot, to see what a bad line does.
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
        Everything that the robot has sent and nobody has taken.
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
        logger = logging.Logger(
            f"nullmodem.{robot}", logging.INFO
        )  # as the program logs by default
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
        """Let the robot receive `data` now."""
        self.connection.receive(self._manipulate(data), self._modem.now)

    def hang_up(self) -> None:
        """Close the client's side."""
        self.connection.receive_eof()

    def take(self) -> bytes:
        """What has arrived since the last call."""
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
        """With what status a client has ended the simulation, None: it has not."""
        return self._modem.exit_status


class NullModem:
    """Runs a simulation on a fake clock.

    Parameters
    ----------
    sim : Simulation
        The world.
    settings : PioneerSettings, optional
        Choices about the protocol.
    folders : sequence of Path
        Where clients may load maps from.
    read_only : bool
        Clients change nothing of the world.
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

    def run_aside(
        self, job: Callable[[], T], done: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run slow work at once: there is nobody to hold up."""
        try:
            result = job()
        except (
            Exception
        ) as error:  # the caller says what was wrong, as it does with a real loop
            done(None, error)
        else:
            done(result, None)

    def end_soon(self, status: int, crash: bool) -> None:
        """Remember that a client has ended the simulation."""
        self.exit_status = status

    def connect(self, robot: str, manipulator: Manipulator | None = None) -> Line:
        """Connect a client to a robot."""
        line = Line(self, robot, manipulator)
        self._lines.append(line)
        self._reporter.attach(line.connection)
        return line

    def run(self, seconds: float, *, wall_per_sim: float = 1.0) -> None:
        """Let simulated time pass, with `wall_per_sim` seconds of wall time for each
        second of it.
        """
        for _ in range(max(1, round(seconds / self.sim.dt))):
            self.wait(self.sim.dt * wall_per_sim)
            self.sim.step()
            self._reporter.on_snapshot(self.now)

    def wait(self, seconds: float) -> None:
        """Let wall time pass while the simulation stands still; timers fire at their
        times.
        """
        end = self.now + seconds
        while (due := self._next_timer()) <= end:
            self.now = max(self.now, due)
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
