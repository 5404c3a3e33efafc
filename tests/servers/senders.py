"""Clients of a `TimeShare` that need no sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from botyard.servers.sockets import READ_SIZE
from botyard.servers.streampeer import PIECE, Allowance, StreamPeer
from botyard.servers.timeshare import TimeShare

BURST = 4096
"""Bytes that a sender may send at once."""
LONGEST_S = 0.01
"""Longest work in an iteration of the event loop."""


class Clock:
    """A clock that only work advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Transport(asyncio.Transport):
    """A transport without a socket whose reading can be paused."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.1", 4)})
        self.reads = True
        self.is_aborted = False
        self.unsent = 0

    def pause_reading(self) -> None:
        assert self.reads
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads
        self.reads = True

    def set_write_buffer_limits(self, high: int | None = None, low: Any = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    close = abort


class Sender(StreamPeer):
    """A client seen from the server: each piece of its bytes costs some time."""

    max_waiting = READ_SIZE
    piece = PIECE

    def __init__(
        self,
        turns: TimeShare,
        told: list[tuple[str, bytes]],
        name: str,
        work: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        super().__init__(
            turns, logging.getLogger("t"), "a sender", Allowance(BURST, 0.01)
        )
        self.name = name
        self.told = told
        self.work = work
        self.ends = 0
        self.line = Transport()
        self.connection_made(self.line)

    def on_bytes(self, data: bytes) -> None:
        self.work(data)
        self.told.append((self.name, data))

    def closed(self) -> None:
        self.ends += 1

    def all(self) -> bytes:
        return b"".join(data for name, data in self.told if name == self.name)
