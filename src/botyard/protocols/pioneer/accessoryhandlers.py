"""Commands for accessories: lasers, gripper, I/O lines, encoders, joystick, sound.

The numbers 35 to 38 have two meanings: commands of an old simulated laser (table
`OLD_LASER`), or of a real robot's analogue port and gripper (table `REAL_ROBOT`). On a
robot with a gripper, the handlers of `OLD_LASER` choose the meaning by the preceding
commands. Source: pioneer-protocol §4.2, §4.3, §4.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from botyard.model.readings import Action
from botyard.names import shown
from botyard.protocols.pioneer.commands import OLD_LASER_COMMANDS, C, P, command_name
from botyard.protocols.pioneer.conversation import Conversation
from botyard.protocols.pioneer.events import Level
from botyard.protocols.pioneer.laserstate import MAX_READINGS
from botyard.protocols.pioneer.packet import MAX_TEXT, Packet

Handler = Callable[[Conversation, Packet], None]

LASER_SEQUENCE: Final = 1.0
"""Longest time between the commands for a laser's start angle and end angle, s.

A command 37 that comes later can be for the gripper.
"""
CARRY_UNIT: Final = 0.02
"""Unit in which GRIPPERVAL states the time that the lift moves, s."""


# -- lasers


def laser(session: Conversation, packet: Packet) -> None:
    """Execute commands 230 to 233, or 35 to 38; an extra byte selects the laser.

    Settings arrive in several commands: start angle, end angle and spacing, then the
    mode. Sources: §4.2, §4.3, §7.

    Parameters
    ----------
    session : Conversation
        Session of the client. `session.lasers` is changed.
    packet : Packet
        Command with a mode (0 to 2), an angle in degrees, or a spacing in hundredths of
        a degree. A fourth byte of the data is the index of the laser; without it, laser
        0.
    """
    number = OLD_LASER_COMMANDS.get(C(packet.id), C(packet.id))
    index = packet.data[3] if len(packet.data) > 3 else 0
    if index >= len(session.lasers):
        session.log(
            Level.DEBUG,
            f"command {packet.id} for laser {index} is ignored: the robot has "
            f"{len(session.lasers)} lasers",
        )
        return

    chosen = session.lasers[index]
    value = packet.integer()
    if number == C.SIM_LRF_ENABLE:
        chosen.switch(value)
    elif number == C.SIM_LRF_SET_FOV_START:
        chosen.set_start(value)
    elif number == C.SIM_LRF_SET_FOV_END:
        chosen.set_end(value)
    elif value == 0:
        # Without a spacing a scan would have infinitely many readings.
        session.log(
            Level.WARNING,
            "SIM_LRF_SET_RES: expected a number of hundredths of a degree other "
            "than 0, found 0: the command is ignored",
        )
    else:
        chosen.set_increment(value)

    if chosen.is_coarse:
        session.once(
            C.SIM_LRF_SET_RES,
            Level.WARNING,
            f"expected at most {MAX_READINGS} readings in a scan, found more: the "
            "readings are spread over the field of view",
        )


def _laser_start_or_gripper_value(session: Conversation, packet: Packet) -> None:
    """Execute command 36.

    On a robot with a gripper, directly after GRIPPER 16 (pressure) or 17 (lift time),
    the command means GRIPPERVAL. In all other cases, it sets the start angle of a
    laser.
    """
    if (
        session.port.gripper is not None
        and session.last_command == C.GRIPPER
        and session.gripper_wants is not None
    ):
        _gripper_value(session, packet)
        return

    session.last_laser_start = session.now
    laser(session, packet)


def _laser_end_or_gripper_request(session: Conversation, packet: Packet) -> None:
    """Execute command 37.

    On a robot with a gripper, a value of 0 to 2 without a start angle just before means
    GRIPPERPACREQUEST. In all other cases, the command sets the end angle of a laser.
    """
    alone = session.now - session.last_laser_start > LASER_SEQUENCE
    if session.port.gripper is not None and alone and 0 <= packet.integer() <= 2:
        _gripper_request(session, packet)
        return

    laser(session, packet)


# -- gripper


def _gripper(session: Conversation, packet: Packet) -> None:
    gripper = session.port.gripper
    session.gripper_wants = None
    if gripper is None:
        session.unsupported(packet)
        return

    try:
        action = Action(packet.integer())
    except ValueError:
        session.log(
            Level.WARNING, f"GRIPPER: expected 1–8 or 15–17, found {packet.integer()}"
        )
        return

    # Some actions wait for a value in the next command.
    gripper.act(action)
    if action in (Action.PRESSURE, Action.LIFT_CARRY):
        session.gripper_wants = action


def _gripper_value(session: Conversation, packet: Packet) -> None:
    """Use the argument as value of GRIPPER 16 (pressure) or 17 (lift time)."""
    gripper, wants = session.port.gripper, session.gripper_wants
    session.gripper_wants = None
    if gripper is None:
        session.unsupported(packet)
    elif wants is Action.LIFT_CARRY:
        gripper.carry(packet.integer() * CARRY_UNIT)


def _gripper_request(session: Conversation, packet: Packet) -> None:
    session.streams.request(P.GRIPPER, packet.integer())


# -- packets on request


def _encoder(session: Conversation, packet: Packet) -> None:
    session.streams.request(P.ENCODER, packet.integer())


def _io(session: Conversation, packet: Packet) -> None:
    session.streams.request(P.IO, packet.integer())


def _joyinfo(session: Conversation, packet: Packet) -> None:
    session.streams.request(P.JOYSTICK, packet.integer())


def _gyro(session: Conversation, packet: Packet) -> None:
    # Send no gyro packets to a client whose robot has no gyro: they would look like
    # measurements.
    if session.port.spec.gyro:
        session.streams.request(P.GYRO, 2 if packet.integer() else 0)
    else:
        session.once(
            packet.id,
            Level.INFO,
            "the client requests packets of a gyro, but this robot has no gyro",
        )


# -- other accessories


def _joydrive(session: Conversation, packet: Packet) -> None:
    session.joydrive = packet.integer() != 0


def _adsel(session: Conversation, packet: Packet) -> None:
    """Select the analogue input that the SIP shows."""
    electrics = session.port.electrics
    if 0 <= packet.integer() < len(electrics.analog):
        electrics.analog_port = packet.integer()
    else:
        session.log(
            Level.WARNING,
            f"ADSEL: expected 0 … {len(electrics.analog) - 1}, found {packet.integer()}",
        )


def _ptupos(session: Conversation, packet: Packet) -> None:
    """Move a servo: low byte position, high byte number of the servo."""
    position, servo = packet.byte_pair()
    session.port.electrics.move_servo(servo, position)
    session.log(
        Level.DEBUG, f"pan-tilt servo {servo} was commanded to position {position}"
    )


def _say(session: Conversation, packet: Packet) -> None:
    """Log a sound: pairs of duration (20 ms) and note."""
    tones = packet.data[2 : 2 + packet.data[1]] if len(packet.data) > 1 else b""
    pairs = [
        f"note {note} for {duration * 0.02:g} s"
        for duration, note in zip(tones[0::2], tones[1::2], strict=False)
    ]
    session.log(Level.INFO, f"sound: {', '.join(pairs) or 'silence'}")


def _sound(session: Conversation, packet: Packet) -> None:
    session.log(
        Level.INFO,
        f"sound: the client sent command {command_name(packet.id)} with "
        f"{packet.integer()}",
    )


def _polling(session: Conversation, packet: Packet) -> None:
    """Ignore the client's firing order of the sonar: all transducers fire in every period."""
    session.log(
        Level.DEBUG,
        f"sonar firing order {list(packet.string().encode('latin-1'))} has no "
        "effect: all transducers fire in every period",
    )


def _aux(session: Conversation, packet: Packet) -> None:
    """Ignore a read from an auxiliary serial port: nothing is connected to it."""
    session.once(
        packet.id,
        Level.INFO,
        f"command {command_name(packet.id)}: nothing is connected to that serial port",
    )


def _tty3(session: Conversation, packet: Packet) -> None:
    session.log(
        Level.INFO,
        f"serial output of the command {command_name(packet.id)}: "
        f'"{shown(packet.string(), MAX_TEXT)}"',
    )


TABLE: Final[dict[int, Handler]] = {
    C.POLLING: _polling,
    C.SAY: _say,
    C.JOYINFO: _joyinfo,
    C.ENCODER: _encoder,
    C.GRIPPER: _gripper,
    C.IOREQUEST: _io,
    C.PTUPOS: _ptupos,
    C.GETAUX: _aux,
    C.GETAUX2: _aux,
    C.JOYDRIVE: _joydrive,
    C.GYRO: _gyro,
    C.TTY3: _tty3,
    C.SOUND: _sound,
    C.PLAYLIST: _sound,
    C.SOUNDTOG: _sound,
}
OLD_LASER: Final[dict[int, Handler]] = {
    C.ADSEL: laser,
    C.GRIPPERVAL: _laser_start_or_gripper_value,
    C.GRIPPERPACREQUEST: _laser_end_or_gripper_request,
    C.OLD_LRF_PARMINC: laser,
}
REAL_ROBOT: Final[dict[int, Handler]] = {
    C.ADSEL: _adsel,
    C.GRIPPERVAL: _gripper_value,
    C.GRIPPERPACREQUEST: _gripper_request,
}
