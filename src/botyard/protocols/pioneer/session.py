"""Session of one client with one robot, on the robot's side; sans-I/O.

Input is passed to `receive_data`, `receive_eof`, `is_due` and `handle_timer`. Output is
returned by `data_to_send`, and events by `next_event`. Time is an argument: `now` is
wall time in seconds from any origin; simulated time is read from the robot's snapshot.
No bytes of the client raise an error.

The handshake is in `botyard.protocols.pioneer.handshake`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from botyard.errors import DeniedError
from botyard.model.devices import DeviceSpec, find_device
from botyard.model.robotport import RobotPort
from botyard.model.robotstate import RobotState
from botyard.protocols.pioneer import handlers
from botyard.protocols.pioneer.commands import C, P, command_name
from botyard.protocols.pioneer.conversation import Conversation, PioneerSettings
from botyard.protocols.pioneer.events import Event, Level, SessionClosed, SessionOpened
from botyard.protocols.pioneer.handshake import STAGE_AFTER_SYNC, Stage, in_handshake
from botyard.protocols.pioneer.kernels.schedule import (
    BOARD,
    DEADLINE,
    EXTRA,
    HEARD,
    NEVER,
    OPEN,
    PLAIN,
    PROMPT,
    REPEAT,
    REPEAT_PERIOD,
    SENT,
    SILENT,
    SPOKE,
    WATCHDOG,
)
from botyard.protocols.pioneer.packet import Packet, Parser, frame
from botyard.protocols.pioneer.reportbuilder import (
    build_simstat,
    build_sip,
    is_stalled_by,
)
from botyard.protocols.pioneer.reports import READINGS_PER_PACKET, sync2
from botyard.protocols.pioneer.roster import STAMPS, Roster
from botyard.protocols.pioneer.simreports import MapChanged

REPEAT_AFTER: Final = 0.15
"""Shortest wall time without a SIP after which the last state is repeated, s."""
UNREAD_LOOK_US: Final = 300_000
"""Simulated time by which the watchdog waits longer if bytes of the client are unprocessed, µs."""
HANDSHAKE_PACKETS: Final = 10
"""Number of packets within which a client must complete the handshake."""
HANDSHAKE_SECONDS: Final = 10.0
"""Wall time within which a client must complete the handshake, s."""
SILENCE_SECONDS: Final = 60.0
"""Wall time without packets of the client after which it gets no more SIPs, s."""
PLAIN_COMMANDS: Final = frozenset((C.PULSE, C.VEL, C.RVEL, C.LATVEL))
"""Commands that a kernel can execute without the session.

See `botyard.protocols.pioneer.commandbatch`.
"""


def repeat_after(step: float) -> float:
    """Return the wall time, s, after which the state is repeated if no step follows."""
    # A slow simulation must not repeat a state just before its next step.
    return max(REPEAT_AFTER, 1.5 * step)


def _has_none() -> bool:
    return False


class Session(Conversation):
    """Session of one client, from connection to close.

    Parameters
    ----------
    port : RobotPort
        Robot that the client commands.
    settings : PioneerSettings
        Settings of the user.
    now : float
        Wall time, s.
    """

    def __init__(self, port: RobotPort, settings: PioneerSettings, now: float) -> None:
        self.roster: Roster[Session] = Roster(1)
        """Table with timers and flags of the session; see `enter`."""
        self.row = self.roster.add(self)
        """Row of the session in `roster`."""
        super().__init__(port, settings, now)
        self.stage = Stage.SYNC0
        self.parser = Parser()
        self._table = handlers.table(settings.laser_compat, settings.srisim_compat)
        self._bumped = self._joydriving = self._claimed = self._has_robot = False
        self._began = now
        self._handshake_packets = 0
        self.has_unread: Callable[[], bool] = _has_none
        """Whether received bytes of the client wait to be processed."""
        spec = port.spec
        watchdog_us = spec.pioneer.watchdog * 1e6
        time_us = port.time_us
        self.roster.times[self.row] = 0, time_us, time_us, watchdog_us or NEVER
        self.roster.walls[self.row, [SENT, SPOKE]] = now
        self._has_plain_model = not (
            settings.log_movement
            or spec.gripper is not None
            or not all(self._is_plain_device(device) for device in spec.equipment)
            or (
                spec.sonar is not None
                and len(spec.sonar.transducers) > READINGS_PER_PACKET
            )
        )
        # Packets that are logged must be processed one by one.
        self._has_plain_commands = not (
            settings.log_packets or settings.ignore_commands & PLAIN_COMMANDS
        )
        self._silent = False
        self._errors_seen = 0
        self._known_version = 0
        self._note()

    # -- the row

    def enter(self, roster: Roster[Session]) -> None:
        """Move to another roster, which serves several sessions together."""
        old, old_row = self.roster, self.row
        row = roster.add(self)
        roster.take_over(row, old, old_row)
        old.remove(old_row)
        self.roster, self.row = roster, row

    def move_to_own_roster(self) -> None:
        """Move to a roster without other sessions."""
        self.enter(Roster(1))

    def _note(self) -> None:
        """Write timers and flags of the session into its row of the roster."""
        roster, row = self.roster, self.row
        flags = 0
        if self.stage is Stage.OPEN:
            flags = OPEN
            if self.bumpstall or self.joydrive:
                flags |= BOARD
            if self._silent:
                flags |= SILENT
            if self.simstat_always or self.streams.wanted:
                flags |= EXTRA
            if self._has_plain_model:
                flags |= PLAIN
            if (
                self._has_plain_commands
                and self.parser.is_empty
                and not self._silent
                # After GRIPPER the session must see the next command, which may be its
                # value.
                and self.last_command != C.GRIPPER
            ):
                flags |= PROMPT
        roster.flags[row] = flags
        roster.walls[row, DEADLINE] = self._deadline()
        version = self.report_version
        if version != self._known_version:
            self._known_version = version
            roster.versions[row] = next(STAMPS)

    @property
    def _heard(self) -> float:
        """Wall time of the client's last packet, s, as stored in the roster."""
        return float(self.roster.walls[self.row, SPOKE])

    @_heard.setter
    def _heard(self, now: float) -> None:
        self.roster.walls[self.row, SPOKE] = now

    @property
    def motors_on(self) -> bool:
        """Whether the motors were on in the last report."""
        return bool(self.roster.motors[self.row])

    @motors_on.setter
    def motors_on(self, on: bool) -> None:
        self.roster.motors[self.row] = on

    # -- input

    def receive_data(self, data: bytes, now: float) -> None:
        """Process bytes from the client.

        Parameters
        ----------
        data : bytes
            Next bytes of the client's stream, cut anywhere. No bytes raise.
        now : float
            Wall time, s.
        """
        if self.is_closed:
            return
        self.now = now
        try:
            for packet in self.parser.feed_bytes(data):
                self._packet(packet, now)
        finally:
            self._note()
        # Log one line for all errors of a chunk: noise on a serial line must not flood
        # the log.
        errors = self.parser.counts.errors
        if errors != self._errors_seen:
            self._errors_seen = errors
            self.log(
                Level.WARNING,
                f"a packet with bad checksum or length was dropped ({errors} so far)",
            )

    def receive_eof(self) -> None:
        """Handle the end of the client's stream: it has closed the connection."""
        self.close("the client disconnected")

    def is_due(self, now: float) -> bool:
        """Check the watchdog after a step; return whether a report is due.

        If so, the caller must call `report` or `send_report`. `Roster.due` does the
        same for many sessions.
        """
        due, asking, _ = self.roster.due(
            self.port.time_us, now, repeat_after(self.port.timing.real), self.row
        )
        if len(asking):
            self.attend()
        return len(due) > 0

    def attend(self) -> None:
        """Check the watchdog, and run the controller board's functions, after a step."""
        if self.stage is not Stage.OPEN:
            return
        times = self.roster.times[self.row]
        timeout_us = int(times[WATCHDOG])
        is_silent = self.port.time_us - int(times[HEARD]) > timeout_us
        # Commands may have arrived in time, but a busy server has not processed them
        # yet. Then wait, and check again only after a while, because a check after each
        # step would make the server even busier.
        if is_silent and self.has_unread():
            times[HEARD] += UNREAD_LOOK_US
        elif is_silent:
            times[HEARD] = NEVER
            self.port.stop()
            self.log(
                Level.WARNING,
                f"watchdog: no command for {timeout_us / 1e6:g} s of simulated "
                "time, the robot stops",
            )

        if self.bumpstall or self.joydrive:
            self._run_board_functions()

    def handle_timer(self, now: float) -> bool:
        """Handle timeouts; return whether the caller must call `report` or `send_report`."""
        try:
            return self._handle_timer(now)
        finally:
            self._note()

    def _handle_timer(self, now: float) -> bool:
        if self.stage is Stage.CLOSED:
            return False
        # Unprocessed data shows that the client is not silent, so restart its timeouts.
        if self._is_time_over(now) and self.has_unread():
            self._began = self._heard = now
        if self.stage is not Stage.OPEN:
            if self.stage is Stage.READY:
                if now - self._heard >= SILENCE_SECONDS:
                    self.close(f"the client sent no OPEN within {SILENCE_SECONDS:g} s")
            elif now - self._began >= HANDSHAKE_SECONDS:
                self.close(f"no complete handshake within {HANDSHAKE_SECONDS:g} s")

            return False

        if not self._silent and now - self._heard >= SILENCE_SECONDS:
            self._silent = True
            self.log(
                Level.WARNING,
                f"the client has sent nothing for {SILENCE_SECONDS:g} s: it gets no "
                "more reports until it sends a command",
            )

        # Reports follow steps; the timer only fills pauses.
        if now < self.roster.walls[self.row, REPEAT]:
            return False
        self.roster.walls[self.row, REPEAT] = now + REPEAT_PERIOD
        return True

    def _is_time_over(self, now: float) -> bool:
        """Return whether the client has been silent for too long."""
        if self.stage in (Stage.READY, Stage.OPEN):
            return not self._silent and now - self._heard >= SILENCE_SECONDS
        return now - self._began >= HANDSHAKE_SECONDS

    # -- output

    def next_timer(self) -> float | None:
        """Return the wall time at which to call `handle_timer`, s; None for never."""
        when = self._deadline()
        if self.stage is Stage.OPEN:
            when = min(when, float(self.roster.walls[self.row, REPEAT]))
        return None if when == math.inf else when

    def _deadline(self) -> float:
        """Return the time of the next timeout, s."""
        if self.stage is Stage.CLOSED or self._silent:
            return math.inf
        if self.stage in (Stage.READY, Stage.OPEN):
            return self._heard + SILENCE_SECONDS
        return self._began + HANDSHAKE_SECONDS

    def data_to_send(self) -> bytes:
        """Take the bytes for the client.

        Returns
        -------
        bytes
            Complete packets in the order of their production; empty if none waits.
        """
        if not self._out:
            return b""
        out = bytes(self._out)
        self._out.clear()
        return out

    def next_event(self) -> Event | None:
        """Take the oldest event; None if there is none."""
        return self._events.popleft() if self._events else None

    @property
    def has_robot(self) -> bool:
        """Whether the handshake is complete, so that the session owns the robot."""
        return self._has_robot

    @property
    def silent_since(self) -> float:
        """Wall time of the client's last packet, s."""
        return self._heard

    @property
    def watchdog_fired(self) -> bool:
        """Whether the watchdog has stopped the robot since the last packet."""
        return bool(self.roster.times[self.row, HEARD] == NEVER)

    @property
    def is_closed(self) -> bool:
        """Whether the session is over."""
        return self.stage is Stage.CLOSED

    def map_changed(self, name: str, loaded: int, *, by_user: bool = False) -> None:
        """Notify the client of the result of a map change (pioneer-protocol §8).

        Before the handshake is complete, nothing is sent.

        Parameters
        ----------
        name : str
            File name as it was requested.
        loaded : int
            1 if the map was loaded, 0 if not, 2 if it could not be; see `MapChanged`.
        by_user : bool
            Whether a user of the page, not a client, has changed the map.
        """
        if self.stage in (Stage.READY, Stage.OPEN):
            self.send(MapChanged(by_user=by_user, loaded=loaded, name=name).encode())

    # -- for the command handlers

    def close(self, reason: str) -> None:
        """End the session: turn sonar and lasers off, and release the robot.

        A session that never owned the robot leaves it unchanged, because another client
        may own it.
        """
        if self.stage is Stage.CLOSED:
            return
        was_taken, self.stage = self.has_robot, Stage.CLOSED
        if was_taken:
            for laser in self.lasers:
                laser.switch(0)
            self.set_sonar(False)
            self.port.release()

        self._note()
        self.emit(SessionClosed(reason))

    # -- packets

    def _packet(self, packet: Packet, now: float) -> None:
        # An earlier packet in the same data may have closed the session.
        if self.stage is Stage.CLOSED:
            return
        if self.settings.log_packets:
            self.log(
                Level.INFO,
                f"received command {command_name(packet.id)}, data "
                f"{packet.data.hex(' ') or 'none'}",
            )

        # Any packet shows that the client is alive, not only motion commands.
        self._heard = now
        self.roster.times[self.row, HEARD] = self.port.time_us
        if self._silent:
            self._silent = False
            self.log(Level.INFO, "the client sends commands again")

        if in_handshake(self.stage, packet.id):
            self._sync(packet)
        elif self.stage is Stage.READY and packet.id == C.OPEN:
            self._open()
        # The user may disable commands (``--ignore-command``).
        elif packet.id in self.settings.ignore_commands:
            self.once(
                packet.id,
                Level.DEBUG,
                f"command {command_name(packet.id)} is ignored: the user has disabled it",
            )
        else:
            self._command(packet)

    def _sync(self, packet: Packet) -> None:
        # Count wrong packets also, so that a peer with another protocol cannot keep the
        # port busy.
        self._handshake_packets += 1
        following = STAGE_AFTER_SYNC.get(packet.id)
        if following is None:
            self.log(
                Level.WARNING, f"command {packet.id} before the handshake was ignored"
            )
        elif packet.id == P.SYNC2:
            pioneer = self.port.spec.pioneer
            self.send(
                sync2(self.settings.robot_name, pioneer.class_name, pioneer.subclass)
            )
            self.stage = following
            # The client now owns the robot, although SIPs are sent only after OPEN.
            self._has_robot = True
            self.set_sonar(True)
        else:
            self.send(frame(packet.id))
            self.stage = following

        if self._handshake_packets > HANDSHAKE_PACKETS:
            self.close(f"no complete handshake within {HANDSHAKE_PACKETS} packets")

    def _claim(self) -> None:
        """Claim the robot at OPEN or the first command.

        A program that only reads the robot's names in the answer to SYNC2 thus changes
        nothing.
        """
        if not self._claimed:
            self._claimed = True
            self.port.claim()

    def _open(self) -> None:
        self._claim()
        self.stage = Stage.OPEN
        # A session that opens while time is paused gets its first report by the timer.
        self.roster.walls[self.row, REPEAT] = self.now + repeat_after(
            self.port.timing.real
        )
        self.emit(SessionOpened())

    def _command(self, packet: Packet) -> None:
        self._claim()
        handler: handlers.Handler | None = self._table.get(packet.id)
        if handler is not None:
            try:
                handler(self, packet)
            except DeniedError as error:
                self.once(
                    packet.id,
                    Level.WARNING,
                    f"{command_name(packet.id)} is denied: {error}",
                )
        else:
            self.unsupported(packet)

        self.last_command = packet.id

    # -- functions of the controller board

    def _run_board_functions(self) -> None:
        """Run the board's functions: stop on contact, and joystick driving."""
        if self.bumpstall and self.port.spec.devices:
            bumped = is_stalled_by(
                self.port.report_bits().get("stall_bumpers", 0), self.bumpstall
            )
            # Stop the robot only when a contact starts, so that the client can then
            # drive it away.
            if bumped and not self._bumped:
                self.port.stop()
            self._bumped = bumped

        if not self.joydrive:
            return
        stick = self.port.electrics.joystick
        if stick.button1:
            top = self.port.state().limits
            self.port.set_velocity(
                v=stick.y * stick.throttle * top.x, w=-stick.x * stick.throttle * top.a
            )
        # Stop the robot once when the button is released; then the client drives it
        # again.
        elif self._joydriving:
            self.port.stop()

        self._joydriving = stick.button1

    # -- reports

    def report(self, now: float) -> None:
        """Build and send one period's output of this session."""
        # A silent client gets no SIPs, so building one would waste time.
        if self._silent:
            self.roster.walls[self.row, SENT] = now
            return

        state = self.port.state()
        self.motors_on = state.motors
        self.send_report(
            now,
            self._sip(state),
            b"".join(laser.report(state) for laser in self.lasers),
        )

    def send_report(self, now: float, sip: bytes, scans: bytes) -> None:
        """Send one period's packets: SIMSTAT, SIP, packets on request, and laser packets.

        See pioneer-protocol §2.

        Parameters
        ----------
        now : float
            Wall time, s.
        sip : bytes
            Complete SIP.
        scans : bytes
            Complete laser packets, or none.
        """
        self.roster.walls[self.row, SENT] = now
        if self.simstat_always:
            self.send(build_simstat(self.port, self.port.state()).encode())
        self.send(sip)
        if self.streams.wanted:
            self.send(self.streams.report(self.port.state()))
            # Update the flags: packets that were requested once are no longer due.
            self._note()
        self.send(scans)

    @staticmethod
    def _is_plain_device(spec: DeviceSpec) -> bool:
        """Return whether a device changes no field of reports except contacts."""
        pioneer = find_device(spec.type).pioneer
        return pioneer is None or not pioneer.changes_reports(spec)

    @property
    def is_plain(self) -> bool:
        """Whether the kernel of `batch` can make the session's reports."""
        return self._has_plain_model and not self._silent

    @property
    def report_version(self) -> int:
        """Version of the constant parts of reports that the client determines."""
        version = self._version
        for laser in self.lasers:
            version += laser.version
        return version

    def _sip(self, state: RobotState) -> bytes:
        """Return the SIP as bytes, with at most 32 sonar readings.

        Parameters
        ----------
        state : RobotState
            State after the step.
        """
        sip = build_sip(
            self.port,
            state,
            sonar_on=self.sonar_on,
            first_sonar=self._first_sonar,
            bumpstall=self.bumpstall,
            gripper_layout=self.settings.gripper_layout,
        )
        if self.settings.log_movement:
            left, right = sip.left_vel, sip.right_vel
            self.log(
                Level.INFO,
                f"sent x={sip.x} y={sip.y} th={sip.th}, wheels {left} and "
                f"{right}, stall {sip.stall_bumpers}",
            )

        # A SIP has at most 32 sonar readings, so larger rings are sent in several SIPs.
        ring = self.port.spec.sonar
        n = len(ring.transducers) if ring else 0
        self._first_sonar = (
            self._first_sonar + READINGS_PER_PACKET
            if self._first_sonar + READINGS_PER_PACKET < n
            else 0
        )
        return sip.encode()
