"""Kernel that writes the reports of many sessions into one buffer of bytes.

Only pose, speeds, flags and ranges change in every period. Therefore
`botyard.protocols.pioneer.reportbuilder` builds each report once, and the kernel then
writes the fields that change. The bytes equal the output of `reportbuilder`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.protocols.pioneer.kernels.jit import entry_kernel, inline_kernel
from botyard.protocols.pioneer.kernels.schedule import PLAIN, SILENT

F8 = NDArray[np.float64]
I1 = NDArray[np.int8]
I2 = NDArray[np.int16]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]
U8 = NDArray[np.uint64]
B1 = NDArray[np.bool_]

HEAD: Final = 4
"""Offset of a packet's data, after header, length and packet type, bytes."""
TAIL: Final = 2
"""Length of the checksum, bytes."""
READINGS: Final = 32
"""Greatest number of laser readings in one packet."""

# Offsets of fields in the data of a SIP (pioneer-protocol §5).
X, Y, TH, LEFT, RIGHT, STALL, FLAGS, COUNT = 0, 2, 4, 6, 8, 11, 15, 18
SONAR, SONAR_SIZE = 19, 3
"""Offset of the first sonar reading in a SIP, and size of a reading."""
ROT_VEL, LAT_VEL = 8, 12
"""Offsets of fields from the end of the sonar readings, bytes."""
STALL_BITS: Final = 0x0101
"""Bits of a stall of both wheels."""

# Columns of `rows`, which describe the report of a session: row of the robot; offset of
# the report in the buffer; sizes of SIP and report; number, offset and count of the
# sonar ring's readings; constant flags; bits of contacts.
BODY, AT, SIP_SIZE, SIZE, RING, RING_AT, RING_COUNT, FLAG_BITS, BITS, COLUMNS = range(
    10
)
# Columns of `built`, the versions for which the description in `rows` was made: version
# of the session; index and version of the controller board; number of placements of
# robots; and whether the robot has devices.
SESSION_VERSION, BOARD_INDEX, BOARD_VERSION, PLACEMENTS, HAS_DEVICES, BUILT_COLUMNS = (
    range(6)
)
# Kinds of work before reports are written: build a report in Python, renew a
# description in `rows`, look up the bits of contacts.
NOT_PLAIN, CHANGED, TOUCHED = 1, 2, 4
# Columns of `scans`, which describe a scan of a session: offset of its packets; first
# reading and number of readings; packet type; order; number of the laser among all
# sensors; flag "robot was moved".
PACKETS, FIRST, LENGTH, MODE, REVERSE, DEVICE, MOVED, SCAN_COLUMNS = range(8)
# Columns of `units`, the units of a robot model: of distances, angles, wheel speeds and
# the wheels' turn rate, and the number of sonar units in a metre.
DISTANCE, ANGLE, VELOCITY, TURN, RANGE, UNITS = range(6)

MM: Final = 1000.0
DEGREES: Final = 180.0 / math.pi


class World(NamedTuple):
    """State of all bodies, and readings of all range sensors.

    Attributes
    ----------
    odom, vel : (n, 3) array
        Poses by odometry (m, m, rad), and velocities (m/s, m/s, rad/s), by row of the
        body.
    motors, stall : (n,) array
        1 if the motors are on, and 1 if the body is stalled, otherwise 0.
    ranges, returns : (r,) array
        Readings of all range sensors: ranges, m, and strengths of echoes. A strength is
        0 without an echo, 1 for an ordinary surface and greater for a reflector.
    taken : (d,) array
        Whether each range sensor has measured in the last step.
    """

    odom: F8
    vel: F8
    motors: I1
    stall: I1
    ranges: F8
    returns: I2
    taken: B1


@inline_kernel
def put_word(out: U1, at: int, value: int) -> None:
    """Write 16 bits, low byte first."""
    out[at] = value & 0xFF
    out[at + 1] = (value >> 8) & 0xFF


@inline_kernel
def rounded(value: float) -> int:
    """Return the nearest integer within 16 signed bits; NaN gives 0."""
    if value != value:
        return 0
    return int(np.rint(min(max(value, -32768.0), 32767.0)))


@inline_kernel
def wrapped(value: float) -> int:
    """Truncate towards zero; the caller uses the result modulo 2¹⁶. NaN gives 0."""
    return int(value) if abs(value) < 9e18 else 0


@inline_kernel
def unsigned(value: float) -> int:
    """Return the nearest integer within 16 unsigned bits; NaN gives 0."""
    return int(np.rint(min(value, 65535.0))) if value > 0.0 else 0


@inline_kernel
def put_checksum(out: U1, at: int, size: int) -> None:
    """Write the checksum of a packet of `size` bytes; see `packet.checksum`."""
    first, end = at + 3, at + size - TAIL
    total = 0
    for i in range(first, end - 1, 2):
        total += (int(out[i]) << 8) + int(out[i + 1])
    if (end - first) & 1:
        total ^= int(out[end - 1])
    # The checksum is the only big-endian number of the protocol.
    out[end] = (total >> 8) & 0xFF
    out[end + 1] = total & 0xFF


@inline_kernel
def put_sip(row: I8, units: F8, world: World, out: U1) -> int:
    """Write the fields of a SIP that change in every period; return whether the motors are on."""
    body, at = row[BODY], row[AT] + HEAD
    odom, vel, ranges = world.odom, world.vel, world.ranges
    put_word(out, at + X, wrapped(odom[body, 0] * MM / units[DISTANCE]))
    put_word(out, at + Y, wrapped(odom[body, 1] * MM / units[DISTANCE]))
    put_word(out, at + TH, rounded(odom[body, 2] / units[ANGLE]))
    forward, turn = vel[body, 0] * MM, vel[body, 2] / units[TURN]
    put_word(out, at + LEFT, rounded((forward - turn) / units[VELOCITY]))
    put_word(out, at + RIGHT, rounded((forward + turn) / units[VELOCITY]))
    motors = int(world.motors[body])
    put_word(out, at + FLAGS, row[FLAG_BITS] | motors)
    stalled = STALL_BITS if world.stall[body] else 0
    put_word(out, at + STALL, stalled | row[BITS])
    count, first = row[RING_COUNT], row[RING_AT]
    at += SONAR
    for i in range(count):
        put_word(out, at + 1, unsigned(ranges[first + i] * units[RANGE]))
        at += SONAR_SIZE

    put_word(out, at + ROT_VEL, rounded(vel[body, 2] * DEGREES * 10.0))
    put_word(out, at + LAT_VEL, rounded(vel[body, 1] * MM))
    put_checksum(out, row[AT], row[SIP_SIZE])
    return motors


@inline_kernel
def put_scan(body: int, scan: I8, world: World, out: U1) -> None:
    """Write the fields of a scan's packets that change in every period."""
    odom, ranges, returns = world.odom, world.ranges, world.returns
    at, count, first = scan[PACKETS], scan[LENGTH], scan[FIRST]
    # Sizes of a reading, and of the parts before and after the readings. Packets 0x60
    # start with the pose; packets 0x61 have longer readings, and end with device and
    # flags.
    short = scan[MODE] == 1
    size, before, after = (2, 11, 0) if short else (5, 5, 2)
    step = 1
    if scan[REVERSE]:
        first, step = first + count - 1, -1
    for part in range(0, count, READINGS):
        n = min(READINGS, count - part)
        to = at + HEAD + before
        for i in range(part, part + n):
            source = first + i * step
            put_word(out, to, unsigned(ranges[source] * MM))
            if not short:
                out[to + 2] = min(max(int(returns[source]) - 1, 0), 255)
            to += size

        if short:
            put_word(out, at + HEAD, rounded(odom[body, 0] * MM))
            put_word(out, at + HEAD + 2, rounded(odom[body, 1] * MM))
            put_word(out, at + HEAD + 4, rounded(odom[body, 2] * DEGREES))
        else:
            out[to + 1] = scan[MOVED]
        length = HEAD + before + n * size + after + TAIL
        put_checksum(out, at, length)
        at += length


@entry_kernel
def find_stale(
    numbers: I8,
    flags: I8,
    rows: I8,
    built: I8,
    versions: I8,
    boards: I8,
    buttons: I1,
    placements: int,
    contact: U8,
) -> int:
    """Return the kinds of work that sessions need before `write_reports`.

    Parameters
    ----------
    numbers : (m,) int64
        Rows of the sessions.
    flags, versions : (n,) int64
        Flags of the sessions, and versions of the constant parts of their reports.
    rows : (n, COLUMNS) int64
            Description of each session's report.
        built : (n, BUILT_COLUMNS) int64
            Versions for which `rows` was filled.
        boards : (b,) int64
            Versions of the controller boards.
        buttons : (b, 2) int8
            Joystick buttons of the boards, which change without a new version.
    placements : int
        Number of placements (teleports) of robots so far.
    contact : (bodies,) uint64
        Bits of the contacts of each body; 0 without contacts.

    Returns
    -------
    int
        Union of `NOT_PLAIN`, `CHANGED` and `TOUCHED` of all sessions.
    """
    work = 0
    for k in range(len(numbers)):
        i = numbers[k]
        if flags[i] & (PLAIN | SILENT) != PLAIN:
            work |= NOT_PLAIN
        # A row that was never filled has no board yet.
        elif (
            built[i, BOARD_INDEX] < 0
            or built[i, SESSION_VERSION] != versions[i]
            or built[i, BOARD_VERSION]
            != 2 * boards[built[i, BOARD_INDEX]] + buttons[built[i, BOARD_INDEX], 0]
            or built[i, PLACEMENTS] != placements
        ):
            work |= CHANGED
        elif built[i, HAS_DEVICES] and contact[rows[i, BODY]]:
            work |= TOUCHED

    return work


@entry_kernel
def write_reports(
    numbers: I8,
    rows: I8,
    scans: I8,
    units: F8,
    world: World,
    motors: I8,
    out: U1,
    made: B1,
) -> None:
    """Write the reports of sessions: SIP and scans, with checksums.

    Parameters
    ----------
    numbers : (m,) array
        Rows of the sessions.
    rows : (n, COLUMNS) array
            Description of each session's report.
        scans : (n, k, SCAN_COLUMNS) array
            Description of each session's scans. A scan of the length 0 is not sent.
        units : (n, UNITS) array
            Units of each session's robot model.
    world : World
        State after the step.
    motors : (n,) array
        Output: whether the motors are on.
    out : array
        Buffer of all reports, in which the constant fields are already written.
    made : (m,) array
        Output: whether the report was written. False for a session without a
        description, or if one of its sensors has not measured.
    """
    for k in range(len(numbers)):
        i = numbers[k]
        row = rows[i]
        made[k] = row[SIZE] > 0 and (row[RING_COUNT] == 0 or world.taken[row[RING]])
        for j in range(scans.shape[1]):
            if scans[i, j, LENGTH] > 0 and not world.taken[scans[i, j, DEVICE]]:
                made[k] = False

        if not made[k]:
            continue
        motors[i] = put_sip(row, units[i], world, out)
        for j in range(scans.shape[1]):
            if scans[i, j, LENGTH] > 0:
                put_scan(row[BODY], scans[i, j], world, out)


__all__ = ["World", "find_stale", "write_reports"]
