"""Checks of all columns of the state after every step.

The checks show at which step a repeated run starts to differ. Whole states are large,
so the recorder writes only one per second. A check of a step has sums over *cells*,
which are groups of words of the columns. Each word belongs to one cell: half of the
words to the first two or three cells, a quarter to the next two or three, and so on. A
cell with exactly one different word reveals this word and its recorded value. If few
words differ, all of them are found; if many differ, nearly always at least one (the
idea of an L0 sampler: Cormode and Firmani, "A unifying framework for l0-sampling
algorithms", 2014).

A word has 8 bytes of the result of `botyard.recording.comparing.Columns.copy`.

Layout of a message (little-endian): uint64 tick of its first step; uint32 steps between
checks, uint32 number of steps, uint32 bytes of the columns; for each cell and step a
uint64, the sum of the words; for each cell and step three bytes, the sum of their
hashes. Sums and products are modulo 2⁶⁴, sums of hashes modulo 2²⁴. `Cells` assigns
words to cells, and defines the hash.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.errors import RecordingError
from botyard.recording.comparing import WORD, Difference, Layout, differences_of_columns

SHORTEST_US: Final = 10_000
"""Minimum simulated time between checks, µs; a step that follows sooner gets no check."""
MAX_KEPT_BYTES: Final = 256 << 20
"""Memory for states of a repeated run that wait for their checks, bytes.

Differences in older states are not found.
"""
FEW_WORDS: Final = 1024
"""With fewer words than this there are three cells of each size, otherwise two."""
_HEAD: Final = struct.Struct("<QIII")
HASH_BITS: Final = 24
_PER_CELL: Final = 8 + HASH_BITS // 8
_ODD: Final = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64
)
"""Odd constants of xxHash, with as many zeros as ones."""
_HALF, _LOW = np.uint64(32), np.uint64(2**HASH_BITS - 1)

Words = NDArray[np.uint64]


class Cells:
    """Assignment of the words of all columns to cells.

    Parameters
    ----------
    count : int
        Number of words, at least 1.

    Attributes
    ----------
    order : (count,) array
        Indices of the words, cell by cell.
    begins : (cells,) array
        Start of each cell in `order`.
    """

    def __init__(self, count: int) -> None:
        number = np.arange(count, dtype=np.uint64)
        self._salt = (number + _ODD[2]) * _ODD[1]
        mixed = _mixed(self._salt ^ _ODD[0])
        # The level is the number of trailing zeros of a random number: 0 for half of
        # the words, 1 for a quarter, and so on.
        levels = max(1, count.bit_length() - 1)
        level = np.full(count, levels - 1)
        for k in range(levels - 1):
            level[
                (level == levels - 1) & ((mixed >> np.uint64(k)) & np.uint64(1) == 1)
            ] = k

        # With few words, two cells of each size leave too many cells with several
        # differences.
        width = 3 if count < FEW_WORDS else 2
        cell = width * level + ((mixed >> _HALF) * np.uint64(width) >> _HALF).astype(
            np.int64
        )
        self.order: NDArray[np.intp] = np.argsort(cell, kind="stable")
        self.begins: NDArray[np.intp] = np.flatnonzero(
            np.diff(cell[self.order], prepend=-1)
        )
        # Sort the salt like the words, so that the same slices fit both.
        self._salt = self._salt[self.order]

    def sums(self, words: Words) -> tuple[Words, NDArray[np.uint32]]:
        """Return the sums of words and of hashes of each cell.

        Parameters
        ----------
        words : (steps, count) uint64
            Words of each step.

        Returns
        -------
        (steps, cells) uint64
            Sums of the words of each cell, modulo 2⁶⁴.
        (steps, cells) uint32
            Sums of their hashes, modulo 2²⁴.
        """
        sorted_words = words[:, self.order]
        # Sums wrap modulo 2⁶⁴, so the difference of two sums stays exact.
        sums = np.add.reduceat(sorted_words, self.begins, axis=1)
        hashes = np.add.reduceat(_hash(sorted_words, self._salt), self.begins, axis=1)
        low: NDArray[np.uint32] = (hashes & _LOW).astype(np.uint32)
        return sums, low

    def recovered(
        self, cell: int, words: Words, more: np.uint64, more_hash: int
    ) -> tuple[int, np.uint64] | None:
        """Return the only word of a cell that differs, and its recorded value.

        Parameters
        ----------
        cell : int
            Index of the cell.
        words : (count,) array
            Current words.
        more, more_hash : int
            Recorded minus current sum: of the words of the cell, and of their hashes.

        Returns
        -------
        (int, uint64) or None
            Index of the word, and its recorded value; None if several words differ.
        """
        part = slice(
            self.begins[cell],
            self.begins[cell + 1] if cell + 1 < len(self.begins) else None,
        )
        numbers, salt = self.order[part], self._salt[part]
        now = words[numbers]
        # If only one word differs, the sums differ by as much as this word does.
        then = now + more
        grown = (_hash(then, salt) - _hash(now, salt)) & _LOW
        # Apply the difference to each word in turn: only for the word that differs the hashes
        # match.
        hits = np.flatnonzero((grown == np.uint64(more_hash)) & (then != now))
        return (int(numbers[hits[0]]), then[hits[0]]) if len(hits) == 1 else None


def _mixed(words: Words) -> Words:
    mixed: Words = words * _ODD[0]
    mixed ^= mixed >> _HALF
    mixed *= _ODD[1]
    mixed ^= mixed >> _HALF
    return mixed


def _hash(words: Words, salt: Words) -> Words:
    """Return `HASH_BITS` bits of each word and its index.

    Parameters
    ----------
    words : (…, n) uint64
        Words.
    salt : (n,) uint64
        A number for each index, so that equal words at two indices have different
        hashes.

    Returns
    -------
    (…, n) uint64
        Hashes below 2²⁴.
    """
    mixed: Words = words + salt
    # A product alone moves bits only upwards, so the highest bits would have no effect.
    mixed ^= mixed >> _HALF
    mixed *= _ODD[0]
    mixed ^= mixed >> _HALF
    mixed *= _ODD[1]
    mixed >>= np.uint64(64 - HASH_BITS)
    return mixed


@lru_cache(maxsize=4)
def cells_of(count: int) -> Cells:
    """Return the assignment of `count` words to cells."""
    return Cells(count)


def words_of(columns: bytes) -> Words:
    """Return the bytes of `Columns.copy` as 64-bit words.

    The result has at least one word, because `np.add.reduceat` refuses empty arrays.
    """
    return np.frombuffer(columns or bytes(WORD), "<u8").astype(np.uint64, copy=False)


class Check(NamedTuple):
    """Checks of several consecutive steps, as one message holds them.

    Attributes
    ----------
    ticks : range
        Checked steps.
    size : int
        Bytes of the columns.
    sums : (steps, cells) uint64
        Sums of the words of each cell.
    hashes : (steps, cells) uint32
        Sums of their hashes.
    """

    ticks: range
    size: int
    sums: Words
    hashes: NDArray[np.uint32]


def every(step_us: int) -> int:
    """Return the number of steps between two checks, for steps of `step_us` µs."""
    return max(1, -(-SHORTEST_US // step_us))


def encode(ticks: Sequence[int], columns: Sequence[bytes]) -> Iterator[bytes]:
    """Encode the columns of steps as messages.

    A new message starts when rows appear or disappear, or when steps are missing.

    Parameters
    ----------
    ticks : sequence of int
        Steps, ascending.
    columns : sequence of bytes
        Columns after each of these steps, as `Columns.copy` returns them.

    Yields
    ------
    bytes
        Message in the layout of this module.
    """
    begin, step = 0, 1
    for i in range(1, len(ticks) + 1):
        if i < len(ticks) and len(columns[i]) == len(columns[begin]):
            # The head of a message stores only one distance between steps.
            gap = ticks[i] - ticks[i - 1]
            if gap == step or (i == begin + 1 and gap > 0):
                step = gap
                continue

        words = np.stack([words_of(one) for one in columns[begin:i]])
        sums, hashes = cells_of(words.shape[1]).sums(words)
        head = _HEAD.pack(ticks[begin], step, i - begin, len(columns[begin]))
        # Order by cells: a value that stays the same from step to step compresses well.
        yield b"".join((head, sums.T.astype("<u8").tobytes(), _three_bytes(hashes.T)))
        begin, step = i, 1


def _three_bytes(hashes: NDArray[np.uint32]) -> bytes:
    return (
        np.ascontiguousarray(hashes, "<u4")
        .view(np.uint8)
        .reshape(-1, 4)[:, :3]
        .tobytes()
    )


def decode(data: bytes) -> Check:
    """Decode the checks of a message.

    Parameters
    ----------
    data : bytes
        Message in the layout of this module.

    Raises
    ------
    RecordingError
        The message has another form.
    """
    if len(data) > _HEAD.size:
        first, step, count, size = _HEAD.unpack_from(data)
        # The head comes from a file, so its counts must match the length exactly.
        cells, rest = (
            divmod(len(data) - _HEAD.size, _PER_CELL * count) if count else (0, 1)
        )
        if step and cells and not rest:
            at = _HEAD.size + WORD * count * cells
            sums = (
                np.frombuffer(data[_HEAD.size : at], "<u8")
                .astype(np.uint64)
                .reshape(cells, count)
                .T
            )
            hashes = np.zeros((count * cells, 4), np.uint8)
            hashes[:, :3] = np.frombuffer(data[at:], np.uint8).reshape(-1, 3)
            hashes = hashes.view("<u4").astype(np.uint32).reshape(cells, count).T
            return Check(range(first, first + step * count, step), size, sums, hashes)

    raise RecordingError(
        f"checks of states: the message has {len(data)} bytes, which does not match its "
        "header"
    )


class FirstDifference(NamedTuple):
    """First step in which columns differ.

    Attributes
    ----------
    after : int or None
        Last compared step before `tick`, without a difference; None if none was
        compared.
    tick : int
        Number of the step in which columns differ.
    found : tuple of Difference
        Differences that could be found.
    is_all : bool
        Whether these are all differences.
    """

    after: int | None
    tick: int
    found: tuple[Difference, ...]
    is_all: bool


class _Step(NamedTuple):
    tick: int
    columns: bytes
    layout: Layout


class Kept:
    """Columns of the latest steps of a repeated run.

    Parameters
    ----------
    step_us : int
        Simulated time of a step, µs.

    Attributes
    ----------
    compared : int
        Number of steps compared so far.
    """

    def __init__(self, step_us: int) -> None:
        self._every = every(step_us)
        self._steps: deque[_Step] = deque()
        self._size = 0
        self._same: int | None = None
        self.compared = 0

    def wants(self, tick: int) -> bool:
        """Return whether a recording can hold a check of this step."""
        return not tick % self._every

    def add(self, tick: int, columns: bytes, layout: Layout) -> None:
        """Add a step of the repeated run; drop the oldest steps if memory is short.

        Parameters
        ----------
        tick : int
            Number of the step, later than all before.
        columns : bytes
            Columns after the step, as `Columns.copy` returns them.
        layout : Layout
            Layout of these bytes.
        """
        self._steps.append(_Step(tick, columns, layout))
        self._size += len(columns)
        while self._size > MAX_KEPT_BYTES and len(self._steps) > 1:
            self._size -= len(self._steps.popleft().columns)

    def compare(self, check: Check) -> FirstDifference | None:
        """Compare the kept steps with a check.

        The columns of these steps, and of earlier ones, are discarded.

        Parameters
        ----------
        check : Check
            Recorded checks of several steps.

        Returns
        -------
        FirstDifference or None
            The first difference; None if all compared steps agree.
        """
        while self._steps and self._steps[0].tick <= check.ticks[-1]:
            step = self._steps.popleft()
            self._size -= len(step.columns)
            # The recorder skips a step whose state was changed afterwards.
            if step.tick not in check.ticks:
                continue
            self.compared += 1
            # With other rows the words do not correspond, so no value can be named.
            if len(step.columns) != check.size:
                return FirstDifference(self._same, step.tick, (), is_all=False)
            i, words = check.ticks.index(step.tick), words_of(step.columns)
            cells = cells_of(len(words))
            (sums,), (hashes,) = cells.sums(words[None])
            if len(sums) != check.sums.shape[1]:
                return FirstDifference(self._same, step.tick, (), is_all=False)
            more, more_hash = (
                check.sums[i] - sums,
                (check.hashes[i] - hashes) & np.uint32(_LOW),
            )
            if more.any() or more_hash.any():
                recorded, is_all = _recovered(cells, words, more, more_hash)
                then = recorded.astype("<u8").tobytes()[: check.size]
                found = tuple(differences_of_columns(step.layout, then, step.columns))
                return FirstDifference(self._same, step.tick, found, is_all)

            self._same = step.tick

        return None


def _recovered(
    cells: Cells, words: Words, more: Words, more_hash: NDArray[np.uint32]
) -> tuple[Words, bool]:
    """Return the recorded words as far as they can be found.

    Parameters
    ----------
    cells : Cells
        Assignment of words to cells.
    words : (count,) uint64
        Current words.
    more : (cells,) uint64
        Recorded sums minus current sums of the words.
    more_hash : (cells,) uint32
        Recorded sums minus current sums of their hashes.

    Returns
    -------
    recorded : (count,) uint64
        Recorded words; a word that cannot be found has its current value.
    is_all : bool
        Whether all different words were found.
    """
    recorded, is_all = words.copy(), True
    for cell in np.flatnonzero((more != 0) | (more_hash != 0)).tolist():
        one = cells.recovered(cell, words, more[cell], int(more_hash[cell]))
        if one is None:
            is_all = False
        else:
            recorded[one[0]] = one[1]

    return recorded, is_all


__all__ = [
    "Cells",
    "Check",
    "FirstDifference",
    "Kept",
    "cells_of",
    "decode",
    "encode",
    "every",
    "words_of",
]
