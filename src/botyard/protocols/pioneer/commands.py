"""Numbers of the Pioneer protocol: commands of clients and packet types of robots (pioneer-protocol §4, §5–10)."""

from __future__ import annotations

from enum import IntEnum


class C(IntEnum):
    """Commands, client to robot. Names as in the client libraries."""

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
    SAY = 15
    JOYINFO = 17
    CONFIG = 18
    ENCODER = 19
    RVEL = 21
    SETRA = 23
    SONAR = 28
    STOP = 29
    DIGOUT = 30
    VEL2 = 32
    GRIPPER = 33
    OLD_LRF_ENABLE = 35
    OLD_LRF_PARMSTART = 36
    OLD_LRF_PARMEND = 37
    OLD_LRF_PARMINC = 38
    IOREQUEST = 40
    TTY2 = 42
    BUMPSTALL = 44
    ESTOP = 55
    ESTOP_ALT = 57
    MESSAGE = 59
    TTY4 = 60
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


class P(IntEnum):
    """Packet types, robot to client."""

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


LASER_COMMANDS = {
    C.OLD_LRF_ENABLE: C.SIM_LRF_ENABLE,
    C.OLD_LRF_PARMSTART: C.SIM_LRF_SET_FOV_START,
    C.OLD_LRF_PARMEND: C.SIM_LRF_SET_FOV_END,
    C.OLD_LRF_PARMINC: C.SIM_LRF_SET_RES,
}
"""Old laser commands, which client libraries still send, and what they mean (§4.3)."""

# numbers that real robots know and a client may send in passing; ignoring them needs no word (§4.6, PIO-068)
QUIET = frozenset(
    [20, 26, 31, 49, 50, 51, 52, 56, 58, 62, *range(70, 88), *range(95, 99), 120, 123, 124, *range(125, 130), 149, 150,
     *range(210, 221)]
)  # fmt: skip
