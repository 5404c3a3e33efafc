"""Checks of the poses of every step, by which it is found out exactly where a run that is done again begins to differ.

States are recorded once a second, because they are large. A check of a step has eight bytes for each axis and one for each body, and yet
the first difference can be told from it: a byte that differs names the body, and if only one body differs, the sums tell its recorded pose.

Layout of a message (little-endian): uint64 tick of its first step; uint32 steps from one to the next, uint32 number of steps, uint32 number
of bodies; for each step three uint64, the sums of the 64-bit patterns of x, y and heading over all bodies; for each step and body, in the
order of the rows, a byte: a hash of the patterns of its pose. Sums and products are those of uint64, modulo 2⁶⁴.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.errors import RecordingError

SHORTEST_US: Final = 10_000
"""Least simulated time from one check to the next, µs: of shorter steps, some are left out."""
MAX_KEPT_BYTES: Final = 64 << 20
"""Poses of a run that is done again are kept until their checks are read, at most so many bytes: of older ones no difference is told."""
_HEAD: Final = struct.Struct("<QIII")
_AXES: Final = 3
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd numbers with as many zeros as ones, of which each pattern is multiplied by another one (those of xxHash)."""
_HALF, _TOP = np.uint64(32), np.uint64(56)

Poses = NDArray[np.float64]


class Check(NamedTuple):
    """Checks of some steps.

    Attributes
    ----------
    ticks : range
        Of which steps.
    sums : (steps, 3) uint64
        Sums of the patterns over all bodies.
    marks : (steps, bodies) uint8
        Hashes.
    """

    ticks: range
    sums: NDArray[np.uint64]
    marks: NDArray[np.uint8]


def every(step_us: int) -> int:
    """The number of steps from one check to the next, for steps of so many simulated µs."""
    return max(1, -(-SHORTEST_US // step_us))


def sums_of(poses: Poses) -> NDArray[np.uint64]:
    """Sums of the patterns over all bodies: (…, bodies, 3) → (…, 3)."""
    sums: NDArray[np.uint64] = _patterns(poses).sum(axis=-2, dtype=np.uint64)
    return sums


def marks_of(poses: Poses) -> NDArray[np.uint8]:
    """Hashes of poses: (…, bodies, 3) → (…, bodies)."""
    mixed: NDArray[np.uint64] = (_patterns(poses) * _FACTORS).sum(axis=-1, dtype=np.uint64)
    mixed ^= mixed >> _HALF
    mixed *= _FACTORS[0]
    return (mixed >> _TOP).astype(np.uint8)


def _patterns(poses: Poses) -> NDArray[np.uint64]:
    return np.ascontiguousarray(poses, "<f8").view(np.uint64)


def encode(ticks: Sequence[int], poses: Sequence[Poses]) -> Iterator[bytes]:
    """Messages of poses, (bodies, 3) each; one more wherever bodies have come or gone, or steps are missing."""
    begin, step = 0, 1
    for i in range(1, len(ticks) + 1):
        if i < len(ticks) and len(poses[i]) == len(poses[begin]):
            gap = ticks[i] - ticks[i - 1]
            if gap == step or (i == begin + 1 and gap > 0):
                step = gap
                continue
        stack = np.stack(poses[begin:i])
        head = _HEAD.pack(ticks[begin], step, i - begin, stack.shape[1])
        yield b"".join((head, sums_of(stack).astype("<u8").tobytes(), marks_of(stack).tobytes()))
        begin, step = i, 1


def decode(data: bytes) -> Check:
    """The checks of a message. RecordingError: it is something else."""
    if len(data) >= _HEAD.size:
        first, step, count, bodies = _HEAD.unpack_from(data)
        at = _HEAD.size + 8 * _AXES * count
        if step and count and len(data) == at + count * bodies:
            sums = np.frombuffer(data[_HEAD.size : at], "<u8").astype(np.uint64).reshape(count, _AXES)
            marks = np.frombuffer(data[at:], np.uint8).reshape(count, bodies)
            return Check(range(first, first + step * count, step), sums, marks)
    raise RecordingError(f"checks of poses: expected as many bytes as they announce, found {len(data)}")


class Apart(NamedTuple):
    """The first step whose poses differ.

    Attributes
    ----------
    after : int or None
        The last step before it that was compared, and came out the same; None: none was.
    tick : int
        The step.
    bodies : tuple of str
        The bodies whose poses differ, as far as that can be told; empty: other bodies are there.
    recorded : (3,) float64 or None
        The recorded pose of the only one; None: there are several.
    again : (3,) float64 or None
        Its pose of now.
    """

    after: int | None
    tick: int
    bodies: tuple[str, ...]
    recorded: Poses | None
    again: Poses | None


class Kept:
    """The poses of the last steps of a run that is done again.

    Parameters
    ----------
    step_us : int
        Simulated time of a step.

    Attributes
    ----------
    compared : int
        Steps that were compared so far.
    """

    def __init__(self, step_us: int) -> None:
        self._every = every(step_us)
        self._poses: deque[tuple[int, Poses, Mapping[str, int]]] = deque()
        self._size = 0
        self._same: int | None = None
        self.compared = 0

    def add(self, tick: int, poses: Poses, rows: Mapping[str, int]) -> None:
        """A step was done; its poses are copied. `rows`: the row of each body by its name."""
        if tick % self._every:
            return
        self._poses.append((tick, poses.copy(), rows))
        self._size += poses.nbytes
        while self._size > MAX_KEPT_BYTES and len(self._poses) > 1:
            self._size -= self._poses.popleft()[1].nbytes

    def compare(self, check: Check) -> Apart | None:
        """The first step whose poses differ from those recorded; None: there is none among those that are kept.

        Poses of the steps of the check, and before, are forgotten.
        """
        while self._poses and self._poses[0][0] <= check.ticks[-1]:
            tick, again, rows = self._poses.popleft()
            self._size -= again.nbytes
            if tick not in check.ticks:
                continue
            self.compared += 1
            i = check.ticks.index(tick)
            sums, marks = sums_of(again), marks_of(again)
            if len(marks) != check.marks.shape[1]:
                return Apart(self._same, tick, (), None, None)
            apart = np.flatnonzero(marks != check.marks[i])
            if len(apart) or (sums != check.sums[i]).any():
                recorded = _recovered(check, i, sums, apart, again) if len(apart) == 1 else None
                names = {row: name for name, row in rows.items()}
                bodies = tuple(names[row] for row in apart.tolist())
                return Apart(self._same, tick, bodies, recorded, None if recorded is None else again[apart[0]])
            self._same = tick
        return None


def _recovered(check: Check, i: int, sums: NDArray[np.uint64], rows: NDArray[np.intp], again: Poses) -> Poses | None:
    """The recorded pose of the only body that differs: the difference of the sums is that of its patterns."""
    row = int(rows[0])
    pattern = _patterns(again[row]) + (check.sums[i] - sums)
    pose = pattern.view(np.float64)
    return pose if marks_of(pose[None])[0] == check.marks[i, row] else None


__all__ = ["Apart", "Check", "Kept", "decode", "encode", "every", "marks_of", "sums_of"]
