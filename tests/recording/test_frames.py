"""Frames of states:

any sequence of states is restored, costs no more than the states, and foreign bytes are
refused.
"""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from botyard.engine.state import CHECKSUM, MAGIC, join
from botyard.errors import StateError
from botyard.recording import frames
from botyard.sim.simulation import Simulation


def naive(frame: bytes, before: bytes) -> bytes:
    """Return the state of a frame, byte by byte, as in the module's docstring."""
    if frame[:1] == b"K":
        return frame[1:]
    size = struct.unpack("<I", before[8:12])[0]
    old_head, old = before[12 : 12 + size], before[12 + size : -8]
    assert frame[:1] == b"D" and frame[1:9] == before[-8:]
    first, last, between = struct.unpack("<III", frame[9:21])
    head = (
        old_head[:first]
        + frame[21 : 21 + between]
        + (old_head[-last:] if last else b"")
    )
    at = 21 + between
    words = len(old) // 8
    mask = frame[at : at + (words + 7) // 8]
    at += len(mask)
    columns = b""
    for word in range(words):
        if mask[word // 8] >> (word % 8) & 1:
            columns += frame[at : at + 8]
            at += 8
        else:
            columns += old[8 * word : 8 * word + 8]

    return MAGIC + struct.pack("<I", len(head)) + head + columns + frame[at:]


def numbers(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@st.composite
def sequences(draw: st.DrawFn) -> list[bytes]:
    """States of a world whose heads and columns change in places; some columns change
    their length.
    """
    head, columns = draw(st.binary(max_size=40)), draw(st.binary(max_size=200))
    found = [join(head, [numbers(columns)])]
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            at, old = draw(st.integers(0, len(head))), draw(st.integers(0, 5))
            head = head[:at] + draw(st.binary(max_size=5)) + head[at + old :]

        data = bytearray(columns)
        for _ in range(draw(st.integers(0, 3)) if data else 0):
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        columns = (
            bytes(data) if draw(st.integers(0, 5)) else draw(st.binary(max_size=200))
        )
        found.append(join(head, [numbers(columns)]))

    return found


@given(sequences())
@example([join(b"aaaa", []), join(b"aaa", []), join(b"aaaaaa", [])])
@example([join(b"", [numbers(bytes(16))]), join(b"", [numbers(bytes(16))])])
def test_states_come_back_from_their_frames(states: list[bytes]) -> None:
    made = [frames.encode(states[0], None)] + [
        frames.encode(new, old) for old, new in pairwise(states)
    ]
    assert frames.is_keyframe(made[0])
    before = None
    for frame, state in zip(made, states, strict=True):
        assert len(frame) <= len(state) + 1
        assert frames.decode(frame, before) == state == naive(frame, before or b"")
        before = state


def test_a_delta_has_what_has_changed_alone() -> None:
    columns = np.arange(1000, dtype=np.float64)
    old = join(b"head of the first", [columns])
    columns[[3, 700]] = -1.0
    delta = frames.encode(join(b"head of the second", [columns]), old)
    assert len(delta) == 1 + CHECKSUM + 12 + len("second") + 125 + 16 + CHECKSUM


def test_a_world_comes_back_from_frames_of_its_states() -> None:
    sim = Simulation()
    robots = sim.add_robots("p3dx", [(i, 0.0, 0.0) for i in range(10)])
    for robot in robots[:2]:
        robot.command(v=0.3, w=0.1)
    before, whole, total = None, 0, 0
    for k in range(20):
        sim.step()
        if k == 10:
            sim.add_robot("amigo")
        state = sim.save_state()
        frame = frames.encode(state, before)
        assert frames.is_keyframe(frame) == (k in (0, 10))
        got = frames.decode(frame, before)
        assert got == state
        whole, total, before = whole + len(state), total + len(frame), state

    other = Simulation()
    other.restore(got)
    assert other.digest() == sim.digest()
    assert total < whole / 4


@given(sequences(), st.data())
def test_damaged_frames_are_refused_or_stay_small(
    states: list[bytes], data: st.DataObject
) -> None:
    before = states[0]
    frame = frames.encode(states[-1], before)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(frame) - 1, 0)))
        frame = (
            frame[:at]
            + data.draw(st.binary(max_size=4))
            + frame[at + data.draw(st.integers(0, 4)) :]
        )

    try:
        state = frames.decode(frame, before)
    except StateError:
        return

    assert len(state) <= len(frame) + len(before)


def test_what_is_no_frame_is_said() -> None:
    one, two = join(b"one", [np.zeros(8)]), join(b"two", [np.zeros(8)])
    delta = frames.encode(two, one)
    for frame, before, text in (
        (b"", one, "expected a keyframe or a delta"),
        (b"Kabc", one, "expected bytes of save_state"),
        (delta, None, "a delta to an unknown state"),
        (delta, two, "found one to another state"),
        (delta[:12], one, "a complete delta, found"),
        (delta[:30], one, "found a shorter one"),
    ):
        with pytest.raises(StateError, match=text):
            frames.decode(frame, before)

    with pytest.raises(StateError, match="expected bytes of save_state"):
        frames.encode(b"nothing", None)
    with pytest.raises(StateError, match="the end of its head"):
        frames.encode(MAGIC + struct.pack("<I", 100) + bytes(20), None)
