"""Command handlers: one small function per command, and the dispatch table.

This module has the commands of every Pioneer robot, `accessoryhandlers` the commands of
its accessories, and `simhandlers` the commands of the simulator. The handlers convert
the millimetres and degrees of the packets to metres and radians. Source:
pioneer-protocol §4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from botyard import units
from botyard.geometry import Pose
from botyard.model.robotport import RobotPort
from botyard.names import shown
from botyard.protocols.pioneer import accessoryhandlers, simhandlers
from botyard.protocols.pioneer.accessoryhandlers import laser
from botyard.protocols.pioneer.commands import C, command_name
from botyard.protocols.pioneer.conversation import Conversation
from botyard.protocols.pioneer.events import Level
from botyard.protocols.pioneer.packet import MAX_TEXT, Packet
from botyard.protocols.pioneer.reportbuilder import build_config

Handler = Callable[[Conversation, Packet], None]


def _m(packet: Packet) -> float:
    """Return an argument in mm or mm/s as m or m/s."""
    return units.from_mm(packet.integer())


def _rad(packet: Packet) -> float:
    """Return an argument in deg or deg/s as rad or rad/s."""
    return units.from_deg(packet.integer())


def _signed_byte(value: int) -> int:
    return value - 256 if value > 127 else value


# -- session


def _pulse(session: Conversation, packet: Packet) -> None:
    """Do nothing: the arrival of the packet has already reset the watchdog.

    The function handles keep-alives (PULSE), and an OPEN in an open session.
    """


def _close(session: Conversation, packet: Packet) -> None:
    # Set the flag first, because the server reads it when the session ends.
    session.has_sent_close = True
    session.close("the client sent CLOSE")


def _config(session: Conversation, packet: Packet) -> None:
    s = session.settings
    session.send(
        build_config(
            session.port.spec, session.port.state(), s.robot_name, s.firmware
        ).encode()
    )


# -- motion


def _moved(session: Conversation) -> RobotPort:
    """Return the robot for a motion command.

    If the motors are off, log once in a session that such commands are ignored.
    """
    # One warning per session, because clients may send such a command in each cycle.
    if not session.motors_on and not session.warned_motors:
        session.warned_motors = True
        session.log(
            Level.WARNING,
            "motion commands are ignored while the motors are off (send ENABLE 1)",
        )

    return session.port


def _enable(session: Conversation, packet: Packet) -> None:
    on = packet.integer() != 0
    why = session.port.electrics.inhibited
    if on and why:
        session.log(Level.WARNING, f"the motors stay off: {why}")
    # The controller board may keep the motors off, for example while the E-stop is
    # pressed.
    session.motors_on = on and not why
    # Pass the command on even if the motors must stay off now: the controller board
    # decides.
    session.port.enable_motors(on)


def _vel(session: Conversation, packet: Packet) -> None:
    _moved(session).set_velocity(v=_m(packet))


def _rvel(session: Conversation, packet: Packet) -> None:
    _moved(session).set_velocity(w=_rad(packet))


def _latvel(session: Conversation, packet: Packet) -> None:
    _moved(session).set_velocity(vy=_m(packet))


def _vel2(session: Conversation, packet: Packet) -> None:
    """Set wheel speeds: low byte right, high byte left."""
    low, high = packet.byte_pair()
    p = session.port.spec.pioneer
    right, left = _signed_byte(low) * p.vel2_div, _signed_byte(high) * p.vel2_div
    _moved(session).set_velocity(
        # diff_conv converts half the difference of wheel speeds, mm/s, to a turn rate,
        # rad/s. Clients know it from the robot's parameter file.
        v=units.from_mm((left + right) / 2.0),
        w=(right - left) / 2.0 * p.diff_conv,
    )


def _move(session: Conversation, packet: Packet) -> None:
    _moved(session).move(_m(packet))


def _head(session: Conversation, packet: Packet) -> None:
    _moved(session).turn_to(_rad(packet))


def _dhead(session: Conversation, packet: Packet) -> None:
    _moved(session).turn_by(_rad(packet))


def _stop(session: Conversation, packet: Packet) -> None:
    session.port.stop()


def _estop(session: Conversation, packet: Packet) -> None:
    session.port.emergency_stop()


def _setv(session: Conversation, packet: Packet) -> None:
    # The limit has no direction, and clients send it with either sign.
    session.port.set_limits(v=abs(_m(packet)))


def _setrv(session: Conversation, packet: Packet) -> None:
    session.port.set_limits(w=abs(_rad(packet)))


def _ramp(session: Conversation, axis: int, value: float) -> None:
    """Set a ramp: a positive value is an acceleration, a negative one a deceleration.

    Parameters
    ----------
    session : Conversation
        Session of the client.
    axis : int
        0 forwards, 1 to the left, 2 turn.
    value : float
        Acceleration, m/s², or rad/s² for the turn. The sign selects the ramp that is
        set.
    """
    # Zero sets the acceleration, like every value without a minus sign.
    if value >= 0.0:
        session.port.set_ramp(axis, accel=value)
    else:
        session.port.set_ramp(axis, decel=-value)


def _seta(session: Conversation, packet: Packet) -> None:
    _ramp(session, 0, _m(packet))


def _setra(session: Conversation, packet: Packet) -> None:
    _ramp(session, 2, _rad(packet))


def _latacc(session: Conversation, packet: Packet) -> None:
    _ramp(session, 1, _m(packet))


def _seto(session: Conversation, packet: Packet) -> None:
    """Set odometry to zero, or to x, y (mm) and th (deg) if these follow a type byte."""
    pose = Pose()
    # Without the three values the command means zero, as in real robots.
    if len(packet.data) >= 7:
        r = packet.reader()
        r.u8()
        pose = Pose(
            units.from_mm(r.i16()), units.from_mm(r.i16()), units.from_deg(r.i16())
        )

    session.port.set_odometry(pose)


# -- devices


def _sonar(session: Conversation, packet: Packet) -> None:
    session.set_sonar(packet.integer() != 0)


def _digout(session: Conversation, packet: Packet) -> None:
    """Set digital outputs: low byte states, high byte mask."""
    states, mask = packet.byte_pair()
    session.port.electrics.write_outputs(mask, states)


def _bumpstall(session: Conversation, packet: Packet) -> None:
    """Set the bumpers that stall the robot: 0 none, 1 front, 2 rear, 3 both."""
    # Higher bits have no meaning, so they are ignored.
    session.bumpstall = packet.integer() & 3


def _battest(session: Conversation, packet: Packet) -> None:
    session.port.electrics.test_battery(packet.integer())


def _digtemptest(session: Conversation, packet: Packet) -> None:
    session.port.electrics.temperature_warning = packet.integer() != 0


def _spoof_temperature(session: Conversation, packet: Packet) -> None:
    # The SIP has a signed byte for the temperature.
    session.port.electrics.temperature = int(units.clamp(packet.integer(), -128, 127))


def _tty(session: Conversation, packet: Packet) -> None:
    session.log(
        Level.INFO,
        f"serial output of the command {command_name(packet.id)}: "
        f'"{shown(packet.string(), MAX_TEXT)}"',
    )


def _message(session: Conversation, packet: Packet) -> None:
    """Log a text of the client: type, length, three code bytes, text."""
    r = packet.reader()
    r.u8()
    # Latin-1 decodes any byte, so a text of a peer cannot raise.
    text = r.take(r.u8())[3:].rstrip(b"\0").decode("latin-1")
    session.log(Level.INFO, f'the client says: "{shown(text, MAX_TEXT)}"')


def table(laser_compat: bool = True, srisim_compat: bool = False) -> dict[int, Handler]:
    """Return the handlers by command number, for the user's compatibility options.

    See pioneer-protocol §4.3, §4.4.

    Parameters
    ----------
    laser_compat : bool
        Whether 35 to 38 are commands of an old simulated laser, as ARIA sends them, or
        commands of a real robot's analogue port and gripper.
    srisim_compat : bool
        Whether 62 and 66 to 69 are commands of the old SRIsim.

    Returns
    -------
    dict of int to callable
        Handler of each supported command number.
    """
    # Later tables replace earlier entries, so the order decides what a number with two
    # meanings does.
    handlers = BASE | accessoryhandlers.TABLE | simhandlers.TABLE
    handlers |= (
        accessoryhandlers.OLD_LASER if laser_compat else accessoryhandlers.REAL_ROBOT
    )
    # Add the table of SRIsim last, because its old meanings replace entries of the
    # others.
    if srisim_compat:
        handlers |= simhandlers.SRISIM
    return handlers


BASE: Final[dict[int, Handler]] = {
    C.PULSE: _pulse,
    C.OPEN: _pulse,
    C.CLOSE: _close,
    C.ENABLE: _enable,
    C.SETA: _seta,
    C.SETV: _setv,
    C.SETO: _seto,
    C.MOVE: _move,
    C.ROTATE: _rvel,
    C.SETRV: _setrv,
    C.VEL: _vel,
    C.HEAD: _head,
    C.DHEAD: _dhead,
    C.CONFIG: _config,
    C.RVEL: _rvel,
    C.SETRA: _setra,
    C.SONAR: _sonar,
    C.STOP: _stop,
    C.DIGOUT: _digout,
    C.VEL2: _vel2,
    C.TTY2: _tty,
    C.BUMPSTALL: _bumpstall,
    C.ESTOP: _estop,
    C.ESTOP_ALT: _estop,
    C.MESSAGE: _message,
    C.TTY4: _tty,
    C.LATVEL: _latvel,
    C.LATACCEL: _latacc,
    C.SIM_LRF_ENABLE: laser,
    C.SIM_LRF_SET_FOV_START: laser,
    C.SIM_LRF_SET_FOV_END: laser,
    C.SIM_LRF_SET_RES: laser,
    C.BATTEST: _battest,
    C.DIGTEMPTEST: _digtemptest,
    C.SPOOFANALOGTEMP: _spoof_temperature,
}
