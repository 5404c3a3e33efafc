"""Numbers of the Pioneer protocol: commands and packet types.

Source: pioneer-protocol §4, §5 to §10.
"""

from __future__ import annotations

from enum import IntEnum


class C(IntEnum):
    """Commands from a client to the robot.

    Names are as in the client libraries. Some of the numbers 33 to 38 and 61 to 69 have
    two meanings (pioneer-protocol §4.3, §4.4).
    """

    PULSE = 0
    OPEN = 1
    CLOSE = 2
    POLLING = 3
    ENABLE = 4
    SETA = 5
    SETV = 6
    SETO = 7
    MOVE = 8
    ROTATE = 9
    SETRV = 10
    VEL = 11
    HEAD = 12
    DHEAD = 13
    DROTATE = 14
    SAY = 15
    JOYINFO = 17
    CONFIG = 18
    ENCODER = 19
    RVEL = 21
    DCHEAD = 22
    SETRA = 23
    SONAR = 28
    STOP = 29
    DIGOUT = 30
    SETPBIOPORT = 31
    VEL2 = 32
    GRIPPER = 33
    KICK = 34
    ADSEL = 35
    GRIPPERVAL = 36
    GRIPPERPACREQUEST = 37
    OLD_LRF_PARMINC = 38
    IOREQUEST = 40
    PTUPOS = 41
    TTY2 = 42
    GETAUX = 43
    BUMPSTALL = 44
    TCM2 = 45
    JOYDRIVE = 47
    MOVINGBLINK = 49
    HOSTBAUD = 50
    AUX1BAUD = 51
    AUX2BAUD = 52
    ESTOP = 55
    ESTOP_ALT = 57
    GYRO = 58
    MESSAGE = 59
    TTY4 = 60
    OLD_LOADPARAM = 61
    BATTERYINFO = 62
    OLD_LOADWORLD = 63
    OLD_STEP = 64
    CALCOMP = 65
    TTY3 = 66
    GETAUX2 = 67
    OLD_SETORIGINTH = 68
    OLD_RESET_TO_ORIGIN = 69
    SOUND = 90
    PLAYLIST = 91
    SOUNDTOG = 92
    LATVEL = 110
    LATACCEL = 113
    SIM_SET_POSE = 224
    SIM_RESET = 225
    SIM_LRF_ENABLE = 230
    SIM_LRF_SET_FOV_START = 231
    SIM_LRF_SET_FOV_END = 232
    SIM_LRF_SET_RES = 233
    SIM_CTRL = 236
    SIM_STAT = 237
    SIM_MESSAGE = 238
    SIM_EXIT = 239
    BATTEST = 250
    DIGTEMPTEST = 251
    SPOOFANALOGTEMP = 252
    RESET = 253
    MAINTENANCE = 255


class Ctrl(IntEnum):
    """Operations of SIM_CTRL.

    AMRISim has the operations 1 to 8 (§9); operations from 200 are botyard's own
    (docs/reference/protocol.md).
    """

    LOAD_MAP = 1
    MASTER_LOAD_MAP = 2
    CLEAR_MASTER = 3
    ROTATE_LOGS = 4
    LOG_STATE = 5
    SIMINFO = 6
    GHOST = 7
    SNAPSHOT = 8
    ODOMETRY_ERROR = 200
    UNGHOST = 201
    DIGITAL_INPUT = 203
    ANALOG_INPUT = 204
    JOYSTICK = 205
    ESTOP_BUTTON = 206
    STEP_WORLD = 207
    RUN_WORLD = 208


class P(IntEnum):
    """Types of packets from the robot to a client."""

    SYNC0 = 0
    SYNC1 = 1
    SYNC2 = 2
    CONFIG = 0x20
    SIP = 0x32
    SIP_MOVING = 0x33
    LASER1 = 0x60
    LASER2 = 0x61
    SIMSTAT = 0x62
    SIMINFO = 0x63
    MAP_CHANGED = 0x66
    ENCODER = 0x90
    GYRO = 0x98
    GRIPPER = 0xE0
    IO = 0xF0
    JOYSTICK = 0xF8


OLD_LASER_COMMANDS = {
    C.ADSEL: C.SIM_LRF_ENABLE,
    C.GRIPPERVAL: C.SIM_LRF_SET_FOV_START,
    C.GRIPPERPACREQUEST: C.SIM_LRF_SET_FOV_END,
    C.OLD_LRF_PARMINC: C.SIM_LRF_SET_RES,
}
"""Old laser commands 35 to 38, which client libraries still send, with their meaning.

Real robots use 35 to 37 for other commands (pioneer-protocol §4.3).
"""

IGNORED_SILENTLY = frozenset(
    [
        20,
        26,
        C.SETPBIOPORT,
        C.MOVINGBLINK,
        C.HOSTBAUD,
        C.AUX1BAUD,
        C.AUX2BAUD,
        56,
        C.BATTERYINFO,
        *range(70, 88),
        *range(95, 99),
        120,
        123,
        124,
        *range(125, 130),
        149,
        150,
        *range(210, 221),
    ]
)
"""Commands that real robots know and clients send routinely.

They are ignored without a warning (pioneer-protocol §4.6).
"""


def command_name(number: int) -> str:
    """Return a command for the log: its number, and its name if it has one.

    Parameters
    ----------
    number : int
        Command number, 0 to 255.

    Returns
    -------
    str
        Such as ``11 (VEL)``, or the number alone for a command that is not in `C`.
    """
    try:
        return f"{number} ({C(number).name})"
    except ValueError:
        return str(number)
