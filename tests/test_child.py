"""Messages between a child process that does a piece of work and its parent."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from botyard.codec.messages import (
    VERSION,
    Channel,
    DamagedMessage,
    NotDataError,
    write_message,
)
from botyard.geometry import Pose
from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Body:
    name: str
    walls: NDArray[np.float64]
    pose: Pose | None = None
    data: bytes = b""


TYPES = {"body": Body, "text": str, "end": None}


def message(kind: str, body: object) -> bytes:
    file = io.BytesIO()
    write_message(file, kind, body, TYPES[kind])
    return file.getvalue()


def received(data: bytes, most: int = 2**20) -> list[tuple[str, object]]:
    channel = Channel(io.BytesIO(data), TYPES, most)
    found = []
    while (one := channel.read()) is not None:
        found.append(one)
    return found


def test_descriptions_and_arrays_come_back_as_they_were() -> None:
    walls = np.arange(12.0).reshape(3, 4)
    sent = Body("größe", walls.T, Pose(1.0, float("inf"), 0.25), b"\0\xff")
    (kind, body), (second, text), last = received(
        message("body", sent) + message("text", "a") + message("end", None)
    )
    assert (kind, second, text, last) == ("body", "text", "a", ("end", None))
    assert isinstance(body, Body)
    assert (body.name, body.pose, body.data) == (sent.name, sent.pose, sent.data)
    np.testing.assert_array_equal(body.walls, walls.T)
    # The received array belongs to the receiver, so it is writable.
    body.walls[0, 0] = 5.0
    (_, body), *_ = received(
        message("body", Body(np.str_("a"), np.zeros((0, 4)), Pose(np.float64(2.0))))
    )
    assert isinstance(body, Body)
    assert body.walls.shape == (0, 4)
    assert body.pose == Pose(2.0)


def test_a_message_that_is_cut_short_is_said_to_be_so() -> None:
    whole = message("body", Body("a", np.ones((2, 4))))
    assert received(b"") == []
    for n in range(1, len(whole)):
        with pytest.raises(DamagedMessage, match="ends within"):
            received(whole[:n])


def head(
    kind: object, shapes: Any, body: bytes, numbers: str = "<f8", version: int = VERSION
) -> bytes:
    arrays = [[numbers, s] for s in shapes] if isinstance(shapes, list) else shapes
    data = msgspec.msgpack.encode((version, kind, arrays, msgspec.Raw(body)))
    return len(data).to_bytes(4, "little") + data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff" * 8, "at most 1048576 bytes"),
        ((2**20 - 3).to_bytes(4, "little"), "exceeds its size limit"),
        (head("body", [[2**47, 2**47]], b"\xc0"), "exceeds its size limit"),
        (head("body", [[2**17 + 1]], b"\xc0"), "exceeds its size limit"),
        (head("body", [[-1]], b"\xc0"), "expected an array of numbers"),
        (head("body", [[0]], b"\xc0", "|O"), "expected an array of numbers"),
        (head("body", [], b"\xc0", version=VERSION + 1), "another version"),
        (head("other", [], b"\xc0"), 'expected a message of kind .* found "other"'),
        (head("text", [], b"\x05"), "Expected `str`"),
        (
            head("body", [], msgspec.msgpack.encode({"name": "a", "walls": 3})),
            "expected one of 0 arrays, found 3",
        ),
        (
            head("body", [], msgspec.msgpack.encode({"name": "a", "walls": "x"})),
            "Expected `int",
        ),
        (head(5, [], b"\xc0"), "Expected"),
        (head("body", "x", b"\xc0"), "Expected"),
    ],
)
def test_nonsense_is_refused_before_memory_is_taken_for_it(
    data: bytes, why: str
) -> None:
    with pytest.raises(DamagedMessage, match=why):
        received(data)


@given(st.binary(max_size=60), st.integers(0, 70))
def test_bytes_of_any_kind_raise_nothing_else(noise: bytes, at: int) -> None:
    whole = message("body", Body("a", np.ones((1, 4))))
    for data in (noise, whole[:at] + noise + whole[at + len(noise) :]):
        with contextlib.suppress(DamagedMessage):
            received(data)


def test_what_is_no_description_cannot_be_sent() -> None:
    with pytest.raises(NotDataError, match="found function"):
        message("body", Body("a", test_what_is_no_description_cannot_be_sent))  # type: ignore[arg-type]


@pytest.mark.parametrize("closes", [False, True])
def test_a_helper_ends_with_its_work_or_with_its_starter(closes: bool) -> None:
    """A child ends with its work or its parent, on Linux even within C code that holds
    the interpreter lock.
    """
    endless = (
        "10 ** int('1000000000')"
        if sys.platform == "linux"
        else "__import__('time').sleep(1000)"
    )
    work = f"print('busy', flush=True); {endless if closes else 'None'}"
    with helper(f"exec({work!r})") as one:
        assert one.stdin is not None and one.stdout is not None
        assert one.stdout.readline() == b"busy\n"
        if closes:
            one.stdin.close()
        assert one.wait(PATIENCE) in ((-9, 1) if closes else (0,))


def test_a_helper_does_not_mind_ctrl_c() -> None:
    with helper("__import__('signal').raise_signal(2)") as one:
        assert one.wait(PATIENCE) == 0


def helper(work: str) -> subprocess.Popen[bytes]:
    code = f"from botyard.processes.child_process import run_helper\nrun_helper(lambda: {work})"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
