"""The kit that checks sessions of other packages finds their faults."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from botyard.control import Place
from botyard.errors import BotyardError
from botyard.geometry import Pose
from botyard.interfaces.interface import Carrier, Door, Interface
from botyard.testing import check_protocol


class Good:
    """A session that echoes lines; `p` places a robot."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.is_closed = False
        self.line, self.out = b"", b""
        self.timer: float | None = None

    def receive_data(self, data: bytes, now: float) -> None:
        if self.is_closed:
            return
        *lines, self.line = (self.line + data).split(b"\n")
        self.line = self.line[:100]
        for line in lines:
            self.take(line[:100], now)

    def take(self, line: bytes, now: float) -> None:
        try:
            if line == b"p":
                self.place()
            self.out += line + b"\n"
        except BotyardError:
            self.out += b"no\n"

    def place(self) -> None:
        self.door.do(Place(to=(("ann", Pose(5.0, 5.0, 0.0)),)))

    def data_to_send(self) -> bytes:
        out, self.out = self.out, b""
        return out

    def next_timer(self) -> float | None:
        return None if self.is_closed else self.timer

    def handle_timer(self, now: float) -> None:
        self.timer = now + 1.0

    def on_snapshot(self, now: float) -> None:
        if not self.is_closed:
            self.out += b""

    def close(self) -> None:
        self.is_closed, self.line, self.out = True, b"", b""


class Raises(Good):
    def take(self, line: bytes, now: float) -> None:
        line.decode()
        super().take(line, now)


class Deaf(Good):
    def take(self, line: bytes, now: float) -> None:
        pass


class Cut(Good):
    """A faulty session that takes pieces for lines."""

    def receive_data(self, data: bytes, now: float) -> None:
        if not self.is_closed:
            self.take(data[:100], now)


class Hoards(Good):
    def receive_data(self, data: bytes, now: float) -> None:
        if self.is_closed:
            return
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            self.take(line, now)


class Talks(Good):
    def take(self, line: bytes, now: float) -> None:
        if line == b"q" and len(self.out) < 1_000_000:
            self.out += b"." * 300_000
        super().take(line, now)


class Spins(Good):
    def take(self, line: bytes, now: float) -> None:
        super().take(line, now)
        self.timer = now

    def handle_timer(self, now: float) -> None:
        self.timer = now


class Undead(Good):
    def close(self) -> None:
        self.is_closed = False


class Chatters(Good):
    """A faulty session that writes after its end."""

    def on_snapshot(self, now: float) -> None:
        self.out += b"step\n"


class Shares(Good):
    """A faulty session whose counter all sessions share."""

    last = b""

    def take(self, line: bytes, now: float) -> None:
        self.out += Shares.last[:1] + line + b"\n"
        Shares.last = line or Shares.last

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        if door.caller.key == "one":
            Shares.last = b""


class Varies(Good):
    numbers = itertools.count()

    def take(self, line: bytes, now: float) -> None:
        self.out += b"%d\n" % next(Varies.numbers)


class Bypasses(Good):
    def place(self) -> None:
        self.door.sim.put("ann", Pose(5.0, 5.0, 0.0))


class Impersonates(Good):
    def place(self) -> None:
        if self.door.caller.level > 1:
            self.door.sim.put("ann", Pose(5.0, 5.0, 0.0), "page")


def problems(session: Any) -> list[str]:
    interface = Interface(name="one", about="", carrier=Carrier.TCP, session=session)
    return check_protocol(interface, [b"hello\nworld\n", b"p\nq\n"])


def test_nothing_is_found_in_a_good_one() -> None:
    assert problems(Good) == []


@pytest.mark.parametrize(
    ("session", "told"),
    [
        (Raises, "raised UnicodeDecodeError"),
        (Deaf, "expected an example that gets an answer"),
        (Cut, "cut into 12 pieces"),
        (Hoards, "for a stream of 524288 bytes (zeros)"),
        (Talks, "bytes have an answer of"),
        (Spins, "a timer ends more than"),
        (Undead, "not closed after close"),
        (Chatters, "answers after its end"),
        (Shares, "another client changes the answer"),
        (Varies, "different answers in the same world"),
        (Bypasses, "may only watch changes the world"),
        (Impersonates, "in the name of page"),
    ],
)
def test_what_is_wrong_is_found(session: Any, told: str) -> None:
    found = problems(session)
    assert any(told in problem for problem in found), found


def test_one_without_a_session_cannot_be_checked() -> None:
    assert check_protocol(Interface(name="own", about="", carrier=Carrier.OWN), []) == [
        "expected an interface with sessions, found none"
    ]
