"""Commands to the simulator itself: 224 to 239, and commands of the old SRIsim.

Source: pioneer-protocol §4.2, §4.4, §9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from botyard import units
from botyard.errors import CommandError, ExitCode
from botyard.geometry import Pose
from botyard.names import shown
from botyard.protocols.pioneer.commands import C, Ctrl, command_name
from botyard.protocols.pioneer.conversation import Conversation
from botyard.protocols.pioneer.events import (
    ExitRequested,
    Level,
    LogRotationRequested,
    MapRequested,
    MasterCleared,
    SnapshotRequested,
    StepsRequested,
)
from botyard.protocols.pioneer.packet import MAX_TEXT, Packet, Reader
from botyard.protocols.pioneer.reportbuilder import build_siminfo, build_simstat

Handler = Callable[[Conversation, Packet], None]


def _set_pose(session: Conversation, packet: Packet) -> None:
    """Set the true pose: type byte, then x, y (mm) and th (deg) as 32-bit integers."""
    r = packet.reader()
    # The type byte carries no information here: the numbers have a sign.
    r.u8()
    pose = Pose(units.from_mm(r.i32()), units.from_mm(r.i32()), units.from_deg(r.i32()))
    try:
        session.port.set_pose(pose)
    # The protocol has no answer to commands, so the log is the only place for an error.
    except CommandError as error:
        session.log(Level.WARNING, f"{command_name(packet.id)}: {error}")


def _reset(session: Conversation, packet: Packet) -> None:
    session.port.reset_pose()


def _stat(session: Conversation, packet: Packet) -> None:
    """Request SIMSTAT: no argument or 1 once, 2 before every SIP, 0 never."""
    mode = packet.integer() if packet.has_argument else 1
    if mode == 1:
        session.send(build_simstat(session.port, session.port.state()).encode())
    elif mode in (0, 2):
        session.simstat_always = mode == 2
    else:
        session.log(Level.WARNING, f"SIM_STAT: expected 0, 1 or 2, found {mode}")


def _message(session: Conversation, packet: Packet) -> None:
    r = packet.reader()
    r.u8()
    text = r.take(r.u8()).rstrip(b"\0").decode("latin-1")
    session.log(Level.INFO, f'the client says: "{shown(text, MAX_TEXT)}"')


def _exit(session: Conversation, packet: Packet) -> None:
    # An exit status has 8 bits.
    session.emit(ExitRequested(packet.integer() & 0xFF))


def _crash(session: Conversation, packet: Packet) -> None:
    """Execute RESET or MAINTENANCE: the controller restarts.

    The simulator exits as if it had crashed.
    """
    session.emit(
        ExitRequested(int(ExitCode.CRASH), command_name(packet.id), crash=True)
    )


# -- SIM_CTRL


def _counted_text(r: Reader) -> str:
    """Return a text: u16 length, and characters.

    Clients differ in whether the length includes a NUL at the end.

    Parameters
    ----------
    r : Reader
        Data of SIM_CTRL, positioned at the length; the text is read from it.

    Returns
    -------
    str
        Characters up to the first NUL, in Latin-1.
    """
    # A wrong length does no harm: the reader returns at most the bytes that are left.
    return r.take(r.u16()).partition(b"\0")[0].decode("latin-1")


def _load_map(session: Conversation, r: Reader) -> None:
    session.emit(MapRequested(_counted_text(r), master=False))


def _master_load_map(session: Conversation, r: Reader) -> None:
    session.emit(MapRequested(_counted_text(r), master=True))


def _clear_master(session: Conversation, r: Reader) -> None:
    session.emit(MasterCleared())


def _rotate_logs(session: Conversation, r: Reader) -> None:
    session.emit(LogRotationRequested())


def _log_state(session: Conversation, r: Reader) -> None:
    label = shown(_counted_text(r)) if r.remaining >= 2 else ""
    session.log(
        Level.INFO,
        "state of the robot, as the client "
        f"requested{(f' ({label})' if label else '')}:",
    )
    for line in session.port.describe():
        session.log(Level.INFO, f"  {line}")


def _siminfo(session: Conversation, r: Reader) -> None:
    s = session.settings
    session.send(
        build_siminfo(session.port, s.robot_name, s.version, s.siminfo_flags).encode()
    )


def _ghost(session: Conversation, r: Reader) -> None:
    session.port.set_ghost(True)
    session.log(
        Level.INFO, "the robot is a ghost now: invisible and without collisions"
    )


def _unghost(session: Conversation, r: Reader) -> None:
    session.port.set_ghost(False)
    session.log(Level.INFO, "the robot is no longer a ghost")


def _snapshot(session: Conversation, r: Reader) -> None:
    session.emit(SnapshotRequested(_counted_text(r) if r.remaining >= 2 else ""))


def _odometry_error(session: Conversation, r: Reader) -> None:
    on = r.u8() != 0
    session.port.set_odometry_errors(on)
    session.log(Level.INFO, f"odometry errors are {'on' if on else 'off'}")


def _digital_input(session: Conversation, r: Reader) -> None:
    """Set digital inputs: byte number, mask, states."""
    session.port.set_digital_inputs(byte=r.u8(), mask=r.u8(), states=r.u8())


def _analog_input(session: Conversation, r: Reader) -> None:
    """Set an analog input: port, then the reading as u16."""
    session.port.set_analog_input(r.u8(), r.u16())


def _joystick(session: Conversation, r: Reader) -> None:
    """Move the joystick: x, y as i8 and throttle as u8, in per cent; buttons as bits."""
    # Python evaluates the calls from left to right, which is the order of the bytes.
    x, y, throttle, buttons = r.i8() / 100.0, r.i8() / 100.0, r.u8() / 100.0, r.u8()
    session.port.move_joystick(x, y, throttle, bool(buttons & 1), bool(buttons & 2))


def _step_world(session: Conversation, r: Reader) -> None:
    """Run a number of steps (u16); one step without an argument."""
    session.emit(StepsRequested(r.u16() if r.remaining >= 2 else 1))


def _run_world(session: Conversation, r: Reader) -> None:
    session.emit(StepsRequested(None))


def _estop_button(session: Conversation, r: Reader) -> None:
    pressed = r.u8() != 0
    session.port.press_estop(pressed)
    session.log(
        Level.INFO, f"the E-stop button is {'pressed' if pressed else 'released'}"
    )


OPERATIONS: Final[dict[int, Callable[[Conversation, Reader], None]]] = {
    Ctrl.LOAD_MAP: _load_map,
    Ctrl.MASTER_LOAD_MAP: _master_load_map,
    Ctrl.CLEAR_MASTER: _clear_master,
    Ctrl.ROTATE_LOGS: _rotate_logs,
    Ctrl.LOG_STATE: _log_state,
    Ctrl.SIMINFO: _siminfo,
    Ctrl.GHOST: _ghost,
    Ctrl.SNAPSHOT: _snapshot,
    Ctrl.ODOMETRY_ERROR: _odometry_error,
    Ctrl.UNGHOST: _unghost,
    Ctrl.DIGITAL_INPUT: _digital_input,
    Ctrl.ANALOG_INPUT: _analog_input,
    Ctrl.JOYSTICK: _joystick,
    Ctrl.ESTOP_BUTTON: _estop_button,
    Ctrl.STEP_WORLD: _step_world,
    Ctrl.RUN_WORLD: _run_world,
}


def _ctrl(session: Conversation, packet: Packet) -> None:
    """Execute SIM_CTRL: type byte, operation as i16, and its data."""
    r = packet.reader()
    r.u8()
    operation = r.i16()
    # Ignore unknown operations, because clients of other versions may send more.
    act = OPERATIONS.get(operation)
    if act is None:
        session.log(
            Level.WARNING, f"SIM_CTRL: operation {operation} is unknown and was ignored"
        )
    else:
        act(session, r)


TABLE: Final[dict[int, Handler]] = {
    C.SIM_SET_POSE: _set_pose,
    C.SIM_RESET: _reset,
    C.SIM_CTRL: _ctrl,
    C.SIM_STAT: _stat,
    C.SIM_MESSAGE: _message,
    C.SIM_EXIT: _exit,
    C.RESET: _crash,
    C.MAINTENANCE: _crash,
}

# -- the old SRIsim


def _deprecated(session: Conversation, packet: Packet, better: C) -> None:
    # One line for each number, because a client may send the command in a loop.
    session.once(
        packet.id,
        Level.WARNING,
        f"command {packet.id} is an old command of SRIsim; {command_name(better)} "
        "does the same",
    )


def _end_sim(session: Conversation, packet: Packet) -> None:
    _deprecated(session, packet, C.SIM_EXIT)
    session.emit(ExitRequested(0, "OLD_END_SIM"))


def _set_origin(session: Conversation, packet: Packet) -> None:
    """Set one coordinate of the true pose, mm or degrees.

    Parameters
    ----------
    session : Conversation
        Session of the client.
    packet : Packet
        Command 66 (x), 67 (y) or 68 (heading), with an integer argument.
    """
    _deprecated(session, packet, C.SIM_SET_POSE)
    value = packet.integer()
    try:
        if packet.id == C.OLD_SETORIGINTH:
            session.port.set_pose_axis(2, units.from_deg(value))
        else:
            session.port.set_pose_axis(
                0 if packet.id == C.TTY3 else 1, units.from_mm(value)
            )
    except CommandError as error:
        session.log(Level.WARNING, f"{command_name(packet.id)}: {error}")


def _reset_to_origin(session: Conversation, packet: Packet) -> None:
    _deprecated(session, packet, C.SIM_RESET)
    session.port.reset_pose()


SRISIM: Final[dict[int, Handler]] = {
    C.BATTERYINFO: _end_sim,
    C.TTY3: _set_origin,
    C.GETAUX2: _set_origin,
    C.OLD_SETORIGINTH: _set_origin,
    C.OLD_RESET_TO_ORIGIN: _reset_to_origin,
}
"""Handlers of the commands to which ``--srisim-compat`` gives another meaning.

See pioneer-protocol §4.4.
"""
