"""State of a Pioneer session on which command handlers act."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from botyard.model.readings import Action
from botyard.model.robotport import RobotPort
from botyard.protocols.pioneer.commands import IGNORED_SILENTLY, command_name
from botyard.protocols.pioneer.events import Event, Level, LogLine
from botyard.protocols.pioneer.laserstate import LaserState
from botyard.protocols.pioneer.packet import Packet
from botyard.protocols.pioneer.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class PioneerSettings:
    """Settings of the protocol that the user chooses, mostly by options of the command line.

    Attributes
    ----------
    robot_name : str
        Name reported in SYNC2 and CONFIGpac; some clients look for ``MobileSim``.
    firmware : str
        Firmware version in CONFIGpac; it starts with ``S.``, which marks a simulator.
    ignore_commands : frozenset of int
        Command numbers that are dropped (``--ignore-command``).
    warn_unsupported : bool
        Whether to log every unsupported command, not only the first of each number.
    version : str
        Version of the simulator, in SIMINFO.
    siminfo_flags : int
        Flags of SIMINFO: bit 0 interactive page, bit 1 restarted after a crash.
    laser_compat : bool
        Whether commands 35 to 38 are commands of old simulated lasers, or of real
        robots (``--no-srisim-laser-compat``).
    srisim_compat : bool
        Whether commands 62 and 66 to 69 are commands of the old SRIsim
        (``--srisim-compat``).
    gripper_layout : str
        Bit layout of the gripper's byte in the SIP: ``aria`` or ``p2os``.
    log_packets : bool
        Whether to log every received packet (``--log-packets-received``).
    log_movement : bool
        Whether to log the velocity and pose of every report (``--log-movement-sent``).
    """

    robot_name: str = "AMRISim"
    firmware: str = "S.0"
    ignore_commands: frozenset[int] = frozenset()
    warn_unsupported: bool = False
    version: str = "0"
    siminfo_flags: int = 0
    laser_compat: bool = True
    srisim_compat: bool = False
    gripper_layout: str = "aria"
    log_packets: bool = False
    log_movement: bool = False


class Conversation:
    """State of a session on which command handlers act; see `Session`.

    It holds the robot, the client's requests, and queued output.

    Parameters
    ----------
    port, settings, now
        See `botyard.protocols.pioneer.session.Session`.

    Attributes
    ----------
    sonar_on, simstat_always : bool
        Whether the client has requested sonar readings, and a SIMSTAT with every SIP.
    motors_on, warned_motors : bool
        Whether the motors are on, and whether a warning that they are off was logged.
    lasers : list of LaserState
        The client's settings of each laser.
    streams : Streams
        Packets to which the client has subscribed.
    bumpstall : int
        Bumpers whose contact counts as a stall: bit 0 front, bit 1 rear.
    joydrive : bool
        Whether the joystick drives the robot.
    last_command : int
        Number of the last command that the session processed itself.
    gripper_wants : Action or None
        Gripper action that waits for its argument.
    last_laser_start, now : float
        Wall times, s, of the last command for a laser's start angle, and of the
        present.
    has_sent_close : bool
        Whether the client has sent CLOSE; it may continue to send for a while.
    """

    def __init__(self, port: RobotPort, settings: PioneerSettings, now: float) -> None:
        self.port = port
        self.settings = settings

        self.sonar_on = False
        self.simstat_always = False
        self.motors_on = port.state().motors
        self.warned_motors = False

        self.lasers = [LaserState(port, i) for i in range(port.n_lasers)]
        self.streams = Streams(port)
        self.bumpstall = 0
        self.joydrive = False

        self.last_command = -1
        self.gripper_wants: Action | None = None
        self.last_laser_start = -math.inf
        self.now = now
        self.has_sent_close = False

        self._out = bytearray()
        self._events: deque[Event] = deque()
        self._first_sonar = 0
        self._version = 0
        self._warned: set[int] = set()

    def send(self, data: bytes) -> None:
        """Queue packets for the client.

        Parameters
        ----------
        data : bytes
            Complete packets. They wait until `Session.data_to_send`.
        """
        self._out += data

    def emit(self, event: Event) -> None:
        """Queue an event for the program that runs the session.

        Parameters
        ----------
        event : Event
            Event or request for the program that runs the session
            (`Session.next_event`).
        """
        self._events.append(event)

    def log(self, level: Level, text: str) -> None:
        """Queue a log line.

        Parameters
        ----------
        level : Level
            Severity of the line.
        text : str
            The line. Text that a client has sent must have been escaped by
            `names.shown`.
        """
        self._events.append(LogLine(level, text))

    def set_sonar(self, on: bool) -> None:
        """Turn sonar reports on or off.

        Parameters
        ----------
        on : bool
            Whether SIPs contain sonar readings. A ring of more than 32 transducers,
            which needs several SIPs, starts with its first transducers again.
        """
        self.sonar_on = on
        # A new version makes cached SIPs invalid, which contain the flags of the sonar
        # arrays.
        self._version += 1
        self._first_sonar = 0
        self.port.subscribe_sonar(on)

    def close(self, reason: str) -> None:
        """End the session.

        Parameters
        ----------
        reason : str
            Reason, for the log.
        """
        raise NotImplementedError

    def unsupported(self, packet: Packet) -> None:
        """Warn once per session that a command is not supported.

        With the setting `warn_unsupported`, each such command is logged.

        Parameters
        ----------
        packet : Packet
            The command. Only its number is logged.
        """
        always = self.settings.warn_unsupported
        # Client libraries send such commands routinely, so each number is logged once
        # in a session.
        if not always and (packet.id in IGNORED_SILENTLY or packet.id in self._warned):
            return
        self._warned.add(packet.id)
        self.log(
            Level.WARNING,
            f"command {command_name(packet.id)} is not supported and was ignored",
        )

    def once(self, key: int, level: Level, text: str) -> None:
        """Log a line about a command, once per session and command number.

        Parameters
        ----------
        key : int
            Command number. Each number is logged once in a session, by this method or
            by `unsupported`.
        level : Level
            Severity of the line.
        text : str
            The line, without text of the client.
        """
        if key not in self._warned:
            self._warned.add(key)
            self.log(level, text)


__all__ = ["Conversation", "PioneerSettings"]
