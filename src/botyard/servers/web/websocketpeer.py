"""`WebSocketPeer`: the WebSocket of an untrusted client.

The task of the connection only reads. Output is written by callbacks, as long as the
client reads it and its budget allows.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod

from starlette.websockets import WebSocket

from botyard.control.error_barrier import ErrorBarrier
from botyard.interfaces.http_admission import Caller
from botyard.protocols.tokenbucket import Budget
from botyard.servers.web.http import WebSocketConnection


class WebSocketPeer(ABC):
    """WebSocket of one client.

    Parameters
    ----------
    socket : WebSocket
        WebSocket whose handshake has been accepted.
    barrier : ErrorBarrier
        Error barrier for the code of the client.
    """

    def __init__(self, socket: WebSocket, barrier: ErrorBarrier) -> None:
        self.caller: Caller = socket.state.caller
        self.connection: WebSocketConnection = socket.state.connection
        self.barrier = barrier
        self.loop = asyncio.get_running_loop()
        self.has_received = False
        """Whether a message waits for its turn."""
        self._socket = socket
        self._flushed = asyncio.Event()
        self._woken: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None

    # -- for the protocol

    @property
    def budget(self) -> Budget:
        """Budget of the work for the client."""
        return self.caller.budget

    @property
    @abstractmethod
    def may_receive(self) -> bool:
        """Whether the client has read enough to send its next message."""

    @abstractmethod
    def on_message(self, data: str | bytes) -> None:
        """Process a message from the client.

        Parameters
        ----------
        data : str or bytes
            One whole message, as text or binary.
        """

    @abstractmethod
    def flush(self) -> bool:
        """Write some messages while `connection.is_writable`.

        Return whether more messages wait.
        """

    # This method is not abstract, because not every client has timers.
    def alarmed(self) -> None:  # noqa: B027
        """Handle the timer that `wake_at` has set."""

    # -- the client

    async def serve(self) -> None:
        """Read messages until one side closes."""
        self.connection.changed = self.wake
        self.wake()
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                text = message.get("text")
                self.has_received = True

                # The socket returns without a pause while messages are queued; let other
                # tasks run.
                await asyncio.sleep(0)
                await self._take_turn()
                self.has_received = False
                if not self.connection.is_over:
                    data = message.get("bytes") or b"" if text is None else text
                    self.barrier.run(self.on_message, data)
        finally:
            self.connection.changed = None

            for handle in (self._woken, self._alarm):
                if handle is not None:
                    handle.cancel()

    async def _take_turn(self) -> None:
        """Wait until the client may send its next message."""
        # Check again after the sleep: other sockets of a client may share its budget.
        while wait := self.budget.wait(self.loop.time()):
            await asyncio.sleep(wait)
        while not (self.may_receive or self.connection.is_over):
            self._flushed.clear()
            await self._flushed.wait()

    def charged(self, act: object, *args: object) -> bool:
        """Call a function for the client, catch its errors, and charge its time.

        Parameters
        ----------
        act : callable
            Code of the client.
        *args : object
            Its arguments.

        Returns
        -------
        bool
            Result of `act`; False if it raised.
        """
        started = time.thread_time()
        result: object = self.barrier.call(act, *args, otherwise=False)  # type: ignore[arg-type]
        self.budget.spend(self.loop.time(), time.thread_time() - started)
        return bool(result)

    def wake(self) -> None:
        """Schedule the writing of waiting messages."""
        if self._woken is None:
            self._woken = self.loop.call_soon(self._flush)

    def wake_at(self, when: float) -> None:
        """Call `alarmed` at a time, s of the loop's clock, and write.

        Parameters
        ----------
        when : float
            Time of the event loop, s. It replaces an earlier one.
        """
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self.loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.charged(self.alarmed)
        self.wake()

    def _flush(self) -> None:
        self._woken = None
        # Sending does not yield to the event loop, so the rest is sent in later turns.
        if self.charged(self.flush) and not self.connection.is_over:
            wait = self.budget.wait(self.loop.time())
            self._woken = self.loop.call_later(wait, self._flush)
        self._flushed.set()


__all__ = ["WebSocketPeer"]
