"""Consecutive saved states as keyframes and deltas.

A keyframe holds a whole state, a delta the changes since the previous state. A state is
the bytes of `Simulation.save_state`; `botyard.engine.state` defines them. Layout of a
frame, little-endian:

- keyframe: ``K``, then the state;
- delta: ``D``; checksum of the previous state (its last 8 bytes); three uint32: number
  of bytes at the start of the previous head that the new head shares, number at its
  end, and number of new bytes between them; the new bytes; a bit for each whole word (8
  bytes) of the columns, lowest bit first: whether it changed; the changed words; the
  bytes after the last whole word; checksum of the new state.

A state becomes a keyframe if its columns have another length than before, or if a delta
would not be smaller. A frame is therefore at most one byte longer than its state.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botyard.engine.state import CHECKSUM, MAGIC
from botyard.errors import StateError

KEYFRAME: Final = b"K"
DELTA: Final = b"D"
_LENGTH: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<III")
_BEGIN: Final = len(MAGIC) + _LENGTH.size
_WORD: Final = 8


class _Parts(NamedTuple):
    head: bytes
    columns: memoryview
    checksum: bytes


def encode(state: bytes, before: bytes | None) -> bytes:
    """Encode the frame of a state.

    Parameters
    ----------
    state : bytes
        State to encode: bytes of `Simulation.save_state`.
    before : bytes or None
        State of the previous frame; None makes a keyframe.

    Raises
    ------
    StateError
        `state` or `before` is not a state.
    """
    new = _parts(state)
    if before is not None:
        delta = _delta(_parts(before), new, len(state))
        if delta is not None:
            return delta

    return KEYFRAME + state


def decode(frame: bytes, before: bytes | None) -> bytes:
    """Decode the state of a frame.

    The state has at most as many bytes as the frame and the previous state together.

    Parameters
    ----------
    frame : bytes
        The frame. Damage is found when the state is restored: a state has a checksum.
    before : bytes or None
        State of the previous frame; None if there is none, or it is unknown.

    Raises
    ------
    StateError
        The bytes are not a frame, or are a delta to another state.
    """
    kind, body = frame[:1], memoryview(frame)[1:]
    if kind == KEYFRAME:
        _parts(bytes(body))
        return bytes(body)

    if kind != DELTA:
        raise StateError(
            f"frame of a state: expected a keyframe or a delta, found {kind!r}"
        )

    # Reading can start in the middle of a file, where the previous state is unknown.
    if before is None:
        raise StateError(
            "frame of a state: expected a keyframe, found a delta to an unknown state"
        )

    return _patched(_parts(before), body)


def is_keyframe(frame: bytes) -> bool:
    """Whether a frame holds a whole state."""
    return frame[:1] == KEYFRAME


def _parts(state: bytes) -> _Parts:
    if len(state) < _BEGIN + CHECKSUM or state[: len(MAGIC)] != MAGIC:
        raise StateError(
            "frame of a state: expected bytes of save_state, found other data"
        )

    end = _BEGIN + _LENGTH.unpack_from(state, len(MAGIC))[0]
    if end > len(state) - CHECKSUM:
        raise StateError(
            "frame of a state: expected the end of its head at most at byte "
            f"{len(state) - CHECKSUM}, found it at byte {end}"
        )

    return _Parts(
        state[_BEGIN:end], memoryview(state)[end:-CHECKSUM], state[-CHECKSUM:]
    )


def _delta(old: _Parts, new: _Parts, limit: int) -> bytes | None:
    """Return the delta between two states.

    Parameters
    ----------
    old, new : _Parts
        Parts of the previous and of the new state.
    limit : int
        Largest size of the delta, bytes.

    Returns
    -------
    bytes or None
        Frame in the layout of this module. None if it would be larger, or if the
        columns have another length.
    """
    # Rows appeared or disappeared, so the words no longer correspond.
    if len(old.columns) != len(new.columns):
        return None
    first, last = _common(old.head, new.head)
    middle = new.head[first : len(new.head) - last]
    whole = len(new.columns) // _WORD * _WORD
    here = np.frombuffer(new.columns[:whole], "<u8")
    # Compare words of 8 bytes: most values have this size, and fewer comparisons are
    # faster.
    changed = here != np.frombuffer(old.columns[:whole], "<u8")
    parts = (
        DELTA,
        old.checksum,
        _HEAD.pack(first, last, len(middle)),
        middle,
        np.packbits(changed, bitorder="little").tobytes(),
        here[changed].tobytes(),
        new.columns[whole:],
        new.checksum,
    )
    # A keyframe is not larger than such a delta, and needs no previous state.
    return None if sum(map(len, parts)) > limit else b"".join(parts)


def _common(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the lengths of the common start and end of two heads.

    Parameters
    ----------
    old, new : bytes
        Heads of two states.

    Returns
    -------
    first, last : int
        Number of equal bytes at the start and at the end. Their sum is at most the
        length of the shorter head.
    """
    size = min(len(old), len(new))
    one, two = np.frombuffer(old, np.uint8), np.frombuffer(new, np.uint8)
    first = _run(one[:size], two[:size])
    # The common start and end must not overlap, or a delta would copy bytes twice.
    rest = size - first
    return first, _run(one[len(one) - rest :][::-1], two[len(two) - rest :][::-1])


def _run(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> int:
    """Return the number of equal bytes at the start of two equally long arrays."""
    differ = one != two
    return int(differ.argmax()) if differ.any() else len(one)


def _patched(old: _Parts, delta: memoryview) -> bytes:
    """Return the state that a delta makes of the previous one.

    Parameters
    ----------
    old : _Parts
        Parts of the previous state.
    delta : memoryview
        Frame without its first byte.

    Raises
    ------
    StateError
        The delta belongs to another state, or is damaged.
    """
    words, rest = divmod(len(old.columns), _WORD)
    bits = (words + 7) // 8
    try:
        first, last, between = _HEAD.unpack_from(delta, CHECKSUM)
    except struct.error:
        raise StateError(
            f"frame of a state: expected a complete delta, found {len(delta)} bytes"
        ) from None

    if delta[:CHECKSUM] != old.checksum:
        raise StateError(
            "frame of a state: expected a delta to the previous state, found one to another state"
        )

    at = CHECKSUM + _HEAD.size
    mask = at + between
    # The lengths come from a file; check them before the slices below use them.
    if first + last > len(old.head) or mask + bits + rest + CHECKSUM > len(delta):
        raise StateError(
            "frame of a state: expected a delta as long as its header says, found a shorter one"
        )

    head = b"".join(
        (old.head[:first], delta[at:mask], old.head[len(old.head) - last :])
    )
    found = np.unpackbits(
        np.frombuffer(delta[mask : mask + bits], np.uint8),
        count=words,
        bitorder="little",
    )
    changed = found.view(np.bool_)
    values = delta[mask + bits : len(delta) - CHECKSUM - rest]
    count = int(np.count_nonzero(changed))
    if len(values) != _WORD * count:
        raise StateError(
            f"frame of a state: expected {_WORD * count} bytes of changed words in a delta, found "
            f"{len(values)}"
        )

    columns = np.frombuffer(old.columns[: words * _WORD], "<u8").copy()
    columns[changed] = np.frombuffer(values, "<u8")
    return b"".join(
        (
            MAGIC,
            _LENGTH.pack(len(head)),
            head,
            columns.tobytes(),
            delta[len(delta) - CHECKSUM - rest :],
        )
    )


__all__ = ["DELTA", "KEYFRAME", "decode", "encode", "is_keyframe"]
