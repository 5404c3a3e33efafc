"""`Outlet`: buffered writes to a peer that may read slowly or not at all.

Writes never block, and the buffers are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from typing import Final

from botyard.servers.sockets import has_room

WRITE_BUFFER: Final = 32 << 10
"""High-water mark of a transport's write buffer, bytes."""
SEND_BUFFER: Final = 128 << 10
"""Size of the socket's send buffer (SO_SNDBUF), bytes.

By default it grows to megabytes for each peer that does not read.
"""
CHUNK: Final = 32 << 10
"""Chunk size of writes, bytes.

Longer data is split without a copy (`memoryview`), so many connections can share its memory.
"""


class Outlet:
    """Buffered writer to a transport, at the rate at which its peer reads.

    The protocol forwards `pause_writing` and `resume_writing` to this object.

    Parameters
    ----------
    transport : asyncio.Transport
        Transport to write to.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._pieces: deque[memoryview] = deque()
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        self._is_last = False
        self._unsent = 0
        """Number of unsent bytes of the transport at the last check."""
        self.is_paused = False
        self.since = 0.0
        """Time at which the peer stopped reading, by the loop's clock, s."""
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER
                )

    @property
    def is_full(self) -> bool:
        """Whether written data still waits to be sent."""
        return self.is_paused or bool(self._pieces)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write data; the transport sends it as the peer reads.

        Parameters
        ----------
        data : bytes-like
            The data, which must not change until it is sent. If the transport is
            closing, it is dropped.
        """
        if self._transport.is_closing() or not len(data):
            return
        # This short path serves nearly all writes.
        if not self.is_full and len(data) <= CHUNK:
            self._transport.write(data)
            return

        view = memoryview(data)
        self._pieces += (view[at : at + CHUNK] for at in range(0, len(view), CHUNK))
        self._go_on()

    @property
    def unread(self) -> int:
        """Number of bytes that were written and are still waiting."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._pieces))

    def pause(self) -> None:
        """Handle a full buffer of the transport."""
        if not self.is_paused:
            self.is_paused, self.since = True, self._loop.time()
            self._unsent = self._transport.get_write_buffer_size()

    def resume(self) -> bool:
        """Continue to send after the transport's buffer has drained; return whether all
        was sent.
        """
        self.is_paused = False
        self._go_on()
        return not self.is_full

    def stuck(self, now: float) -> float:
        """Return for how long the peer has not read, s.

        Parameters
        ----------
        now : float
            Time of the event loop, s.

        Returns
        -------
        float
            0 if the peer has read since the last check, or if the socket has room again
            and only the event loop has not written yet.
        """
        if not self.is_paused:
            return 0.0
        unsent = self._transport.get_write_buffer_size()
        if unsent < self._unsent or has_room(self._socket):
            self.since, self._unsent = now, unsent
        return now - self.since

    def finish(self) -> None:
        """Close the transport when all data is written."""
        self._is_last = True
        self._go_on()

    def drop(self) -> None:
        """Discard waiting data."""
        self._pieces.clear()

    def _go_on(self) -> None:
        while self._pieces and not self.is_paused and not self._transport.is_closing():
            self._transport.write(self._pieces.popleft())
        if self._is_last and not self._pieces:
            # `close` still sends the data in the transport's own buffer.
            self._transport.close()


__all__ = ["WRITE_BUFFER", "Outlet"]
