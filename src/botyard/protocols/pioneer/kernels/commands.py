"""Kernel that executes plain commands of many clients from one buffer.

Nearly all packets of a client are velocities and keep-alives (plain commands). The
kernel takes the bytes of a client if they are complete packets of these commands, with
valid checksums. Otherwise it takes none of them, and the session parses all bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botyard.protocols.pioneer.kernels.jit import entry_kernel, inline_kernel
from botyard.protocols.pioneer.kernels.schedule import (
    DEADLINE,
    HEARD,
    PROMPT,
    SPOKE,
)

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]
B1 = NDArray[np.bool_]

HEADER_0, HEADER_1 = 0xFA, 0xFB
"""First two bytes of a packet."""
HEAD, TAIL, SHORTEST = 4, 2, 6
"""Sizes of the part before the arguments, of the checksum, and of a packet without
arguments, bytes.
"""
PULSE, VEL, RVEL, LATVEL = 0, 11, 21, 110
"""Commands that the kernel takes; see `botyard.protocols.pioneer.commands`."""
ARGUMENT: Final = 3
"""Size of an integer argument, bytes: type, then the number without sign."""
NEGATIVE: Final = 0x1B
"""Type of a negative argument."""
UNCHANGED: Final = 1 << 32
"""Value that stands for "no command" in the velocities of axes."""
AXES: Final = 3
"""Number of axes of a robot's velocity: forward, to the left, turn rate."""


@inline_kernel
def axis_of(number: int) -> int:
    """Return the axis of a velocity command; -1 for another command."""
    if number == VEL:
        return 0
    if number == LATVEL:
        return 1
    return 2 if number == RVEL else -1


@inline_kernel
def byte_at(data: U1, at: int) -> int:
    """Return a byte as a signed number.

    Numba would turn sums of signed and unsigned numbers into floats.
    """
    return int(np.int64(data[at]))


@inline_kernel
def has_valid_checksum(data: U1, first: int, end: int) -> bool:
    """Return whether the two bytes at `end` are the checksum of the bytes from `first` on.

    See `packet.checksum`.
    """
    total = 0
    for i in range(first, end - 1, 2):
        total += (byte_at(data, i) << 8) + byte_at(data, i + 1)
    if (end - first) & 1:
        total ^= byte_at(data, end - 1)
    return total & 0xFFFF == (byte_at(data, end) << 8) + byte_at(data, end + 1)


@inline_kernel
def take_packets(data: U1, size: int, motors: bool, wanted: I8) -> bool:
    """Take the packets of a client; return whether all of them are plain commands.

    `wanted` gets the last velocity of each axis, mm/s or deg/s.
    """
    for axis in range(AXES):
        wanted[axis] = UNCHANGED
    at = 0
    while at < size:
        if size - at < SHORTEST or data[at] != HEADER_0 or data[at + 1] != HEADER_1:
            return False
        # An invalid length is refused below: it leads beyond the end, or to a wrong
        # checksum.
        end = at + 3 + byte_at(data, at + 2)
        if end > size or end < at + SHORTEST:
            return False
        if not has_valid_checksum(data, at + 3, end - TAIL):
            return False
        number = byte_at(data, at + 3)
        if number != PULSE:
            axis = axis_of(number)
            # The session warns of motion commands while motors are off.
            if axis < 0 or not motors:
                return False
            value = 0
            if end - TAIL - at - HEAD >= ARGUMENT:
                value = byte_at(data, at + 5) + (byte_at(data, at + 6) << 8)
                if data[at + 4] == NEGATIVE:
                    value = -value
            wanted[axis] = value
        at = end

    return size > 0


@entry_kernel
def take_commands(
    numbers: I8,
    data: U1,
    sizes: I8,
    now: float,
    time_us: int,
    silence: float,
    times: I8,
    walls: F8,
    flags: I8,
    motors: I8,
    wanted: I8,
    taken: B1,
) -> None:
    """Take the plain commands of sessions, and record that their clients are alive.

    Parameters
    ----------
    numbers : (m,) array
        Rows of the sessions.
    data : (m, size) uint8
        Received bytes of each client.
    sizes : (m,) int64
        Number of received bytes of each client; 0 or less without any.
    now : float
        Wall time, s.
    time_us : int
        Simulated time, µs.
    silence : float
        Wall time without packets after which a client counts as silent, s.
    times, walls, flags, motors : arrays
        Columns of the roster, by row of the session.
    wanted : (m, 3) array
        Output: last velocity of each axis, forward and left, mm/s, and turn rate,
        deg/s; `UNCHANGED` for none.
    taken : (m,) array
        Output: False where the session must process the bytes.
    """
    for k in range(len(numbers)):
        i = numbers[k]
        taken[k] = flags[i] & PROMPT != 0 and take_packets(
            data[k], sizes[k], motors[i] != 0, wanted[k]
        )
        if taken[k]:
            times[i, HEARD] = time_us
            walls[i, SPOKE] = now
            walls[i, DEADLINE] = now + silence


__all__ = ["AXES", "UNCHANGED", "take_commands"]
