"""Arguments of the commands of a Pioneer client, with units, for the reference pages.

The table only describes the arguments that command handlers read;
`tests/protocols/test_arguments.py` compares the two.
Source: pioneer-protocol §4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from botyard.protocols.pioneer.commands import C, Ctrl


class Argument(NamedTuple):
    """Argument of a command.

    Attributes
    ----------
    name : str
        Meaning of the argument; empty: none.
    kind : str
        Form on the wire. ``int`` is a type byte, which states the sign, and a u16;
        ``text`` is a type byte, a length byte and characters. Other forms list the
        fields after the command number. Empty: no argument.
    unit : str
        Unit, or the values that are allowed.
    effect : str
        Effect of the command.
    """

    name: str
    kind: str
    unit: str
    effect: str


def _none(effect: str) -> Argument:
    return Argument("", "", "", effect)


def _int(name: str, unit: str, effect: str) -> Argument:
    return Argument(name, "int", unit, effect)


def _switch(effect: str) -> Argument:
    return _int("on", "0 or 1", effect)


def _request(packet: str) -> Argument:
    return _int("mode", "0 none, 1 one, 2 with each report", f"request {packet}")


def _text(effect: str) -> Argument:
    return Argument("text", "text", "", effect)


_RAMP: Final = "a value below 0 sets the deceleration"

ARGUMENTS: Final[Mapping[C, Argument]] = {
    C.PULSE: _none("keep the connection alive"),
    C.OPEN: _none("start the session after the handshake"),
    C.CLOSE: _none("end the session"),
    C.POLLING: _text(
        "order of the sonar; accepted, all transducers measure in each period"
    ),
    C.ENABLE: _switch("switch the motors on or off"),
    C.SETA: _int("acceleration", "mm/s²", f"set the ramp of the speed; {_RAMP}"),
    C.SETV: _int("speed", "mm/s", "limit the speed of MOVE and VEL"),
    C.SETO: Argument(
        "x, y, heading",
        "u8, then 3 × i16",
        "mm, mm, deg",
        "set odometry to a pose; without the three values to 0, 0, 0",
    ),
    C.MOVE: _int("distance", "mm", "drive a distance; below 0 backwards"),
    C.ROTATE: _int("turn rate", "deg/s", "turn; as RVEL"),
    C.SETRV: _int("turn rate", "deg/s", "limit the turn rate of HEAD, DHEAD and RVEL"),
    C.VEL: _int("speed", "mm/s", "drive; below 0 backwards"),
    C.HEAD: _int("heading", "deg", "turn to a heading of odometry"),
    C.DHEAD: _int("angle", "deg", "turn by an angle, counter-clockwise positive"),
    C.SAY: Argument("tones", "text", "pairs of u8: 20 ms, note", "log the tones"),
    C.JOYINFO: _request("joystick packets (0xF8)"),
    C.CONFIG: _none("request a CONFIG packet (0x20)"),
    C.ENCODER: _request("encoder packets (0x90)"),
    C.RVEL: _int("turn rate", "deg/s", "turn, counter-clockwise positive"),
    C.SETRA: _int("acceleration", "deg/s²", f"set the ramp of the turn rate; {_RAMP}"),
    C.SONAR: _switch("switch the sonar on or off"),
    C.STOP: _none("stop by the ramps"),
    C.DIGOUT: Argument("states, mask", "int as 2 × u8", "bits", "set digital outputs"),
    C.VEL2: Argument(
        "right, left",
        "int as 2 × i8",
        "vel2_div mm/s of the model (20 for most)",
        "set the speed of each wheel",
    ),
    C.GRIPPER: _int("action", "1 to 8, 15 to 17", "move the gripper, see below"),
    C.ADSEL: _int("port", "0 to 7", "select the analog input of the reports"),
    C.GRIPPERVAL: _int("value", "20 ms", "value of GRIPPER 16 or 17"),
    C.GRIPPERPACREQUEST: _request("gripper packets (0xE0)"),
    C.OLD_LRF_PARMINC: _int("spacing", "0.01 deg", "as SIM_LRF_SET_RES"),
    C.IOREQUEST: _request("I/O packets (0xF0)"),
    C.PTUPOS: Argument(
        "position, servo", "int as 2 × u8", "", "move a pan-tilt servo; kept and logged"
    ),
    C.TTY2: _text("log the text for a serial port"),
    C.GETAUX: _int("bytes", "", "read a serial port; nothing is connected to it"),
    C.BUMPSTALL: _int(
        "bumpers", "0 none, 1 front, 2 rear, 3 both", "select the bumpers that stall it"
    ),
    C.JOYDRIVE: _switch("let the joystick drive while its button 1 is pressed"),
    C.ESTOP: _none("stop at once, with the highest deceleration"),
    C.ESTOP_ALT: _none("as ESTOP"),
    C.GYRO: _int("on", "0 or 1", "request gyro packets (0x98) with each report"),
    C.MESSAGE: Argument("text", "u8, u8, 3 × u8, text", "", "log the text"),
    C.TTY4: _text("log the text for a serial port"),
    C.TTY3: _text("log the text for a serial port"),
    C.GETAUX2: _int("bytes", "", "read a serial port; nothing is connected to it"),
    C.SOUND: _int("number", "", "log the sound"),
    C.PLAYLIST: _int("number", "", "log the sound"),
    C.SOUNDTOG: _switch("log the switch of sounds"),
    C.LATVEL: _int("speed to the left", "mm/s", "drive sideways, if the drive can"),
    C.LATACCEL: _int("acceleration", "mm/s²", f"set the ramp sideways; {_RAMP}"),
    C.SIM_SET_POSE: Argument(
        "x, y, heading", "u8, then 3 × i32", "mm, mm, deg", "set the true pose"
    ),
    C.SIM_RESET: _none("put the robot back to its start, at rest"),
    C.SIM_LRF_ENABLE: _int(
        "mode", "0 off, 1 on, 2 with reflectance", "send scans of a laser"
    ),
    C.SIM_LRF_SET_FOV_START: _int("angle", "deg", "first ray of a laser"),
    C.SIM_LRF_SET_FOV_END: _int("angle", "deg", "last ray of a laser"),
    C.SIM_LRF_SET_RES: _int("spacing", "0.01 deg", "angle between two rays"),
    C.SIM_CTRL: Argument(
        "operation, data", "u8, i16, data", "", "operation on the simulator, see below"
    ),
    C.SIM_STAT: _int("mode", "0 never, 1 once, 2 always", "request SIMSTAT (0x62)"),
    C.SIM_MESSAGE: Argument("text", "u8, u8, text", "", "log the text"),
    C.SIM_EXIT: _int("status", "0 to 255", "end the simulation, if the client may"),
    C.BATTEST: _int("value", "0.1 V or %", "pretend a battery state; 0: the real one"),
    C.DIGTEMPTEST: _switch("pretend a temperature warning"),
    C.SPOOFANALOGTEMP: _int("temperature", "°C", "pretend a temperature"),
    C.RESET: _none("end the simulation with status 236, if the client may"),
    C.MAINTENANCE: _none("end the simulation with status 236, if the client may"),
}
"""Argument of each command that has an effect."""

DATA: Final[Mapping[Ctrl, Argument]] = {
    Ctrl.LOAD_MAP: Argument("map", "name", "", "load a map"),
    Ctrl.MASTER_LOAD_MAP: Argument(
        "map", "name", "", "load a map, and reserve that right until CLEAR_MASTER"
    ),
    Ctrl.CLEAR_MASTER: _none("let all clients load maps again"),
    Ctrl.ROTATE_LOGS: _none("start a new log file (--log-file)"),
    Ctrl.LOG_STATE: Argument("robot", "name, optional", "", "log the state of a robot"),
    Ctrl.SIMINFO: _none("request SIMINFO (0x63)"),
    Ctrl.GHOST: _none("make the robot a ghost: invisible, without collisions"),
    Ctrl.SNAPSHOT: Argument(
        "file",
        "name, optional",
        "",
        "write a picture of the world, at most one a second",
    ),
    Ctrl.ODOMETRY_ERROR: Argument("on", "u8", "0 or 1", "switch odometry errors"),
    Ctrl.UNGHOST: _none("end GHOST"),
    Ctrl.DIGITAL_INPUT: Argument(
        "byte, mask, states", "3 × u8", "bits", "set digital inputs"
    ),
    Ctrl.ANALOG_INPUT: Argument(
        "port, value", "u8, u16", "0 to 1023 for 0 to 5 V", "set an analog input"
    ),
    Ctrl.JOYSTICK: Argument(
        "x, y, throttle, buttons",
        "i8, i8, u8, u8",
        "%, %, %, bits",
        "move the joystick",
    ),
    Ctrl.ESTOP_BUTTON: Argument(
        "pressed", "u8", "0 or 1", "press or release the emergency stop button"
    ),
    Ctrl.STEP_WORLD: Argument(
        "steps", "u16, optional", "steps", "hold the world and make steps; default: 1"
    ),
    Ctrl.RUN_WORLD: _none("let the world go on by itself"),
}
"""Data of each operation of SIM_CTRL; a name is a u16 length and characters."""
