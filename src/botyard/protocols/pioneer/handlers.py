"""What each command does: one small function a command, and the table that names them (pioneer-protocol §4).

Numbers on the wire are millimetres and degrees; they leave this module as metres and radians.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from botyard import units
from botyard.engine.commands import (
    Command,
    EmergencyStop,
    EnableMotors,
    MoveBy,
    SetLimits,
    SetOdometry,
    SetRamp,
    SetVelocity,
    Stop,
    TurnBy,
    TurnTo,
)
from botyard.geometry import Pose
from botyard.protocols.pioneer.commands import LASER_COMMANDS, QUIET, C
from botyard.protocols.pioneer.events import ExitRequested, Level
from botyard.protocols.pioneer.packet import Packet
from botyard.protocols.pioneer.reportbuilder import build_config, build_simstat

if TYPE_CHECKING:
    from botyard.protocols.pioneer.session import Session

Handler = Callable[["Session", Packet], None]

__all__ = ["QUIET", "TABLE"]


def _m(packet: Packet) -> float:
    """Argument in mm or mm/s, as m or m/s."""
    return units.from_mm(packet.integer())


def _rad(packet: Packet) -> float:
    """Argument in deg or deg/s, as rad or rad/s."""
    return units.from_deg(packet.integer())


def _signed_byte(value: int) -> int:
    return value - 256 if value > 127 else value


def _client_text(text: str) -> str:
    """Text of a client for the log: printable characters only, at most 127 of them."""
    return "".join(c if c.isprintable() else "?" for c in text[:127])


# -- session


def _pulse(session: Session, packet: Packet) -> None:
    """Nothing: every packet has already reset the watchdog. A second OPEN is as harmless."""


def _close(session: Session, packet: Packet) -> None:
    session.close("the client sent CLOSE")


def _config(session: Session, packet: Packet) -> None:
    s = session.settings
    session.send(build_config(session.port.spec, session.port.state(), s.robot_name, s.firmware).encode())


# -- motion


def _drive(session: Session, command: Command) -> None:
    """Queue a motion command; with motors off it will be ignored, and the log says so once."""
    if not session.motors_on and not session.warned_motors:
        session.warned_motors = True
        session.log(Level.WARNING, "motion commands are ignored while the motors are off (send ENABLE 1)")
    session.port.submit(command)


def _enable(session: Session, packet: Packet) -> None:
    session.motors_on = packet.integer() != 0
    session.port.submit(EnableMotors(session.motors_on))


def _vel(session: Session, packet: Packet) -> None:
    _drive(session, SetVelocity(v=_m(packet)))


def _rvel(session: Session, packet: Packet) -> None:
    _drive(session, SetVelocity(w=_rad(packet)))


def _latvel(session: Session, packet: Packet) -> None:
    _drive(session, SetVelocity(vy=_m(packet)))


def _vel2(session: Session, packet: Packet) -> None:
    """Wheel speeds: low byte right, high byte left."""
    low, high = packet.byte_pair()
    p = session.port.spec.pioneer
    right, left = _signed_byte(low) * p.vel2_div, _signed_byte(high) * p.vel2_div
    _drive(session, SetVelocity(v=units.from_mm((left + right) / 2.0), w=(right - left) / 2.0 * p.diff_conv))


def _move(session: Session, packet: Packet) -> None:
    _drive(session, MoveBy(_m(packet)))


def _head(session: Session, packet: Packet) -> None:
    _drive(session, TurnTo(_rad(packet)))


def _dhead(session: Session, packet: Packet) -> None:
    _drive(session, TurnBy(_rad(packet)))


def _stop(session: Session, packet: Packet) -> None:
    session.port.submit(Stop())


def _estop(session: Session, packet: Packet) -> None:
    session.port.submit(EmergencyStop())


def _setv(session: Session, packet: Packet) -> None:
    session.port.submit(SetLimits(v=abs(_m(packet))))


def _setrv(session: Session, packet: Packet) -> None:
    session.port.submit(SetLimits(w=abs(_rad(packet))))


def _ramp(session: Session, axis: int, value: float) -> None:
    """Positive: acceleration; negative: deceleration."""
    if value >= 0.0:
        session.port.submit(SetRamp(axis, accel=value))
    else:
        session.port.submit(SetRamp(axis, decel=-value))


def _seta(session: Session, packet: Packet) -> None:
    _ramp(session, 0, _m(packet))


def _setra(session: Session, packet: Packet) -> None:
    _ramp(session, 2, _rad(packet))


def _latacc(session: Session, packet: Packet) -> None:
    _ramp(session, 1, _m(packet))


def _seto(session: Session, packet: Packet) -> None:
    """Odometry to zero, or to x, y (mm) and th (deg) when they follow a type byte (PIO-008)."""
    pose = Pose()
    if len(packet.data) >= 7:
        r = packet.reader()
        r.u8()
        pose = Pose(units.from_mm(r.i16()), units.from_mm(r.i16()), units.from_deg(r.i16()))
    session.port.submit(SetOdometry(pose))


# -- devices


def _sonar(session: Session, packet: Packet) -> None:
    session.set_sonar(packet.integer() != 0)


def _digout(session: Session, packet: Packet) -> None:
    """Low byte states, high byte mask."""
    states, mask = packet.byte_pair()
    session.port.electrics.write_outputs(mask, states)


def _bumpstall(session: Session, packet: Packet) -> None:
    session.log(Level.DEBUG, f"BUMPSTALL {packet.integer()}: this robot has no bumpers")


def _laser(session: Session, packet: Packet) -> None:
    """Commands 230–233 and their old numbers 35–38; an extra byte selects the laser."""
    number = LASER_COMMANDS.get(C(packet.id), C(packet.id))
    index = packet.data[3] if len(packet.data) > 3 else 0
    if index >= len(session.lasers):
        session.log(Level.DEBUG, f"command {packet.id} for laser {index}: the robot has {len(session.lasers)} lasers")
        return
    laser = session.lasers[index]
    value = packet.integer()
    if number == C.SIM_LRF_ENABLE:
        laser.switch(value)
    elif number == C.SIM_LRF_SET_FOV_START:
        laser.set_start(value)
    elif number == C.SIM_LRF_SET_FOV_END:
        laser.set_end(value)
    else:
        laser.set_increment(value)


def _battest(session: Session, packet: Packet) -> None:
    session.port.electrics.test_battery(packet.integer())


def _digtemptest(session: Session, packet: Packet) -> None:
    session.port.electrics.temperature_warning = packet.integer() != 0


def _spoof_temperature(session: Session, packet: Packet) -> None:
    session.port.electrics.temperature = int(units.clamp(packet.integer(), -128, 127))


# -- simulator


def _sim_set_pose(session: Session, packet: Packet) -> None:
    """Type byte, then x, y (mm) and th (deg) as 32-bit integers; true pose only."""
    r = packet.reader()
    r.u8()
    session.port.set_pose(Pose(units.from_mm(r.i32()), units.from_mm(r.i32()), units.from_deg(r.i32())))


def _sim_reset(session: Session, packet: Packet) -> None:
    session.port.reset_pose()


def _sim_stat(session: Session, packet: Packet) -> None:
    """No argument or 1: one SIMSTAT now; 2: one before every SIP; 0: no more."""
    mode = packet.integer() if packet.has_argument else 1
    if mode == 1:
        session.send(build_simstat(session.port, session.port.state()).encode())
    elif mode in (0, 2):
        session.simstat_always = mode == 2
    else:
        session.log(Level.WARNING, f"SIM_STAT: expected 0, 1 or 2, found {mode}")


def _sim_message(session: Session, packet: Packet) -> None:
    r = packet.reader()
    r.u8()
    text = r.take(r.u8()).rstrip(b"\0").decode("latin-1")
    session.log(Level.INFO, f'the client says: "{_client_text(text)}"')


def _sim_exit(session: Session, packet: Packet) -> None:
    session.emit(ExitRequested(packet.integer() & 0xFF))


def _tty(session: Session, packet: Packet) -> None:
    session.log(Level.INFO, f'auxiliary serial output: "{_client_text(packet.string())}"')


def _message(session: Session, packet: Packet) -> None:
    """Type, length, three code bytes, text."""
    r = packet.reader()
    r.u8()
    text = r.take(r.u8())[3:].rstrip(b"\0").decode("latin-1")
    session.log(Level.INFO, f'the client says: "{_client_text(text)}"')


TABLE: Final[dict[int, Handler]] = {
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
    C.OLD_LRF_ENABLE: _laser,
    C.OLD_LRF_PARMSTART: _laser,
    C.OLD_LRF_PARMEND: _laser,
    C.OLD_LRF_PARMINC: _laser,
    C.TTY2: _tty,
    C.BUMPSTALL: _bumpstall,
    C.ESTOP: _estop,
    C.ESTOP_ALT: _estop,
    C.MESSAGE: _message,
    C.TTY4: _tty,
    C.LATVEL: _latvel,
    C.LATACCEL: _latacc,
    C.SIM_SET_POSE: _sim_set_pose,
    C.SIM_RESET: _sim_reset,
    C.SIM_LRF_ENABLE: _laser,
    C.SIM_LRF_SET_FOV_START: _laser,
    C.SIM_LRF_SET_FOV_END: _laser,
    C.SIM_LRF_SET_RES: _laser,
    C.SIM_STAT: _sim_stat,
    C.SIM_MESSAGE: _sim_message,
    C.SIM_EXIT: _sim_exit,
    C.BATTEST: _battest,
    C.DIGTEMPTEST: _digtemptest,
    C.SPOOFANALOGTEMP: _spoof_temperature,
}
