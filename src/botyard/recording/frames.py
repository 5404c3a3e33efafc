"""Saved states one after the other, as frames: a keyframe has a whole state, a delta
what has changed since the state before.

Layout of a frame, little-endian; a state is the bytes of `Simulation.save_state`, whose
layout `botyard.engine.state` has:

- keyframe: ``K``, then the state;
- delta: ``D``; checksum of the state before (its last 8 bytes); three uint32: bytes of
  its head that the new head begins with, bytes of it that the new head ends with, and
  how many new bytes are between them; these; a bit for each whole word (8 bytes) of the
  columns, the lowest of a byte first: whether it has changed; the words that have; the
  bytes behind the last whole word; checksum of the new state.

A state whose columns have another length than before, or of which a delta would save
nothing, becomes a keyframe: a frame has at most one byte more than its state.
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
    """The frame of a state.

    Parameters
    ----------
    state : bytes
        The state.
    before : bytes or None
        The state of the frame before; None: make a keyframe.

    Raises
    ------
    StateError
        One of them is not a state.
    """
    new = _parts(state)
    if before is not None:
        delta = _delta(_parts(before), new, len(state))
        if delta is not None:
            return delta

    return KEYFRAME + state


def decode(frame: bytes, before: bytes | None) -> bytes:
    """The state of a frame. It has at most as many bytes as the frame and the state
    before have together.

    Parameters
    ----------
    frame : bytes
        The frame. Whoever restores the state finds out whether it is damaged: a state
        has a checksum.
    before : bytes or None
        The state of the frame before; None: there is none, or it is not known.

    Raises
    ------
    StateError
        It is not a frame, or a delta to another state.
    """
    kind, body = frame[:1], memoryview(frame)[1:]
    if kind == KEYFRAME:
        _parts(bytes(body))
        return bytes(body)

    if kind != DELTA:
        raise StateError(
            f"frame of a state: expected a keyframe or a delta, found {kind!r}"
        )

    if before is None:
        raise StateError(
            "frame of a state: it is a delta, and the state before is not known"
        )

    return _patched(_parts(before), body)


def is_keyframe(frame: bytes) -> bool:
    """Whether a frame has a whole state."""
    return frame[:1] == KEYFRAME


def _parts(state: bytes) -> _Parts:
    if len(state) < _BEGIN + CHECKSUM or state[: len(MAGIC)] != MAGIC:
        raise StateError(
            "frame of a state: expected bytes of save_state, found something else"
        )

    end = _BEGIN + _LENGTH.unpack_from(state, len(MAGIC))[0]
    if end > len(state) - CHECKSUM:
        raise StateError(
            f"frame of a state: its head ends at byte {end}, and it has {len(state)}"
        )

    return _Parts(
        state[_BEGIN:end], memoryview(state)[end:-CHECKSUM], state[-CHECKSUM:]
    )


def _delta(old: _Parts, new: _Parts, limit: int) -> bytes | None:
    """What has changed; None: columns have another length, or it has at least `limit`
    bytes.
    """
    if len(old.columns) != len(new.columns):
        return None
    first, last = _common(old.head, new.head)
    middle = new.head[first : len(new.head) - last]
    whole = len(new.columns) // _WORD * _WORD
    here = np.frombuffer(new.columns[:whole], "<u8")
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
    return None if sum(map(len, parts)) > limit else b"".join(parts)


def _common(old: bytes, new: bytes) -> tuple[int, int]:
    """Lengths of the beginning and of the end that two heads have in common; together
    at most the shorter head.
    """
    size = min(len(old), len(new))
    one, two = np.frombuffer(old, np.uint8), np.frombuffer(new, np.uint8)
    first = _run(one[:size], two[:size])
    rest = size - first
    return first, _run(one[len(one) - rest :][::-1], two[len(two) - rest :][::-1])


def _run(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> int:
    """How many bytes at the beginning of two arrays of one length are equal."""
    differ = one != two
    return int(differ.argmax()) if differ.any() else len(one)


def _patched(old: _Parts, delta: memoryview) -> bytes:
    words, rest = divmod(len(old.columns), _WORD)
    bits = (words + 7) // 8
    try:
        first, last, between = _HEAD.unpack_from(delta, CHECKSUM)
    except struct.error:
        raise StateError(f"frame of a state: a delta of {len(delta)} bytes") from None

    if delta[:CHECKSUM] != old.checksum:
        raise StateError("frame of a state: it is a delta to another state")
    at = CHECKSUM + _HEAD.size
    mask = at + between
    if first + last > len(old.head) or mask + bits + rest + CHECKSUM > len(delta):
        raise StateError("frame of a state: a delta is too short for what it announces")
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
            f"frame of a state: {count} words have changed in a delta with "
            f"{len(values)} bytes of them"
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
