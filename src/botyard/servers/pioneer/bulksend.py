"""`BulkSender`: small pieces of one buffer to many sockets, in few system calls.

Linux submits many writes with one call (``io_submit``, see io_submit(2)). A socket that
does not block has taken its bytes, or refused them, when the call returns. Two threads
share a large number of sockets, without the interpreter's lock. On other systems, and
where a sandbox forbids the call, there is no such sender, and each connection writes
for itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]

PORTION: Final = 256
"""Number of writes of one call, about a millisecond.

Threads take portions in turn. A thread that the system delays then does fewer of them.
"""
MIN_SHARED: Final = 2 * PORTION
"""Number of writes from which two threads are worth their overhead."""

_CALLS: Final = {
    "x86_64": {"setup": 206, "destroy": 207, "getevents": 208, "submit": 209},
    "aarch64": {"setup": 0, "destroy": 1, "submit": 2, "getevents": 4},
}
"""Numbers of system calls (Linux, asm/unistd.h)."""
_WRITE: Final = 1
"""Operation IOCB_CMD_PWRITE of linux/aio_abi.h."""
_REQUEST: Final = np.dtype(
    [
        ("number", "<u8"),
        ("key", "<u4"),
        ("flags", "<i4"),
        ("operation", "<u2"),
        ("priority", "<i2"),
        ("socket", "<u4"),
        ("address", "<u8"),
        ("size", "<u8"),
        ("offset", "<i8"),
        ("unused", "<u8"),
        ("more_flags", "<u4"),
        ("event", "<u4"),
    ]
)
"""``struct iocb`` of linux/aio_abi.h."""
_RESULT: Final = np.dtype(
    [("number", "<u8"), ("request", "<u8"), ("result", "<i8"), ("more", "<i8")]
)
"""``struct io_event`` of linux/aio_abi.h."""


class _Queue:
    """A queue of writes in the system; one thread uses it at a time."""

    def __init__(self, libc: Any, calls: dict[str, int]) -> None:
        self._libc, self._calls = libc, calls
        self._id = ctypes.c_ulong(0)
        self._results = np.zeros(PORTION, _RESULT)
        count = ctypes.c_long(PORTION)
        if self._call("setup", count, ctypes.byref(self._id)) < 0:
            raise OSError(ctypes.get_errno(), "no queue of writes")
        # A sandbox may forbid this call alone, which would lose the results of writes.
        none = ctypes.c_long(0)
        if self._call("getevents", self._id, none, none, None, None) < 0:
            failure = OSError(ctypes.get_errno(), "no results of writes")
            self.close()
            raise failure

    def _call(self, name: str, *args: Any) -> int:
        # ctypes releases the GIL during the call.
        result: int = self._libc.syscall(ctypes.c_long(self._calls[name]), *args)
        return result

    def close(self) -> None:
        """Free the queue."""
        self._call("destroy", self._id)

    def write_portions(
        self, firsts: Iterator[int], requests: NDArray[Any], taken: I8
    ) -> None:
        """Make the writes of portions, by the index of the first write of each."""
        for first in firsts:
            last = first + PORTION
            self._write(requests[first:last], taken[first:last])

    def _write(self, requests: NDArray[Any], taken: I8) -> None:
        """Make the writes, and store how many bytes each socket took."""
        size = requests.itemsize
        places = np.arange(len(requests), dtype=np.uint64) * np.uint64(size)
        places += np.uint64(requests.ctypes.data)
        done = 0
        while done < len(requests):
            count = ctypes.c_long(len(requests) - done)
            first = ctypes.c_void_p(places.ctypes.data + 8 * done)
            accepted = self._call("submit", self._id, count, first)
            # A request that the system does not accept, such as one to a closed socket.
            if accepted <= 0:
                taken[done] = -(ctypes.get_errno() or errno.EAGAIN)
                done += 1
                continue

            self._collect(accepted, taken)
            done += accepted

    def _collect(self, count: int, taken: I8) -> None:
        results, left = self._results, count
        while left:
            many = ctypes.c_long(left)
            to = ctypes.c_void_p(results.ctypes.data)
            found = self._call("getevents", self._id, many, many, to, None)
            # A signal interrupts the wait. Any other error would repeat for ever.
            if found < 0 and ctypes.get_errno() != errno.EINTR:
                raise OSError(ctypes.get_errno(), "no results of writes")
            found = max(found, 0)
            some = results[:found]
            taken[some["number"].astype(np.int64)] = some["result"]
            left -= found


class BulkSender:
    """Sender of many pieces at once.

    Raises
    ------
    OSError
        The system does not offer the calls.
    """

    def __init__(self) -> None:
        calls = _CALLS.get(platform.machine())
        if sys.platform != "linux" or calls is None:
            raise OSError(errno.ENOSYS, "no calls for many writes at once")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall.restype = ctypes.c_long
        self._queues = [_Queue(libc, calls)]
        # With one processor a second thread only waits for the first one.
        if (os.cpu_count() or 1) > 1:
            self._queues.append(_Queue(libc, calls))
        self._helper: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._requests = np.zeros(0, _REQUEST)

    def close(self) -> None:
        """End the helper and free the queues."""
        if self._helper is not None:
            self._helper.shutdown()
        for queue in self._queues:
            queue.close()

    def __call__(self, sockets: I8, buffer: U1, at: I8, sizes: I8) -> I8:
        """Send pieces of a buffer.

        Parameters
        ----------
        sockets : (n,) array
            Sockets that do not block.
        buffer : array
            Bytes of all pieces.
        at, sizes : (n,) array
            Offset and size of each piece.

        Returns
        -------
        (n,) array
            Number of bytes that each socket took; −errno for an error.
        """
        with self._lock:
            return self._send(sockets, buffer, at, sizes)

    def _send(self, sockets: I8, buffer: U1, at: I8, sizes: I8) -> I8:
        n = len(sockets)
        if n > len(self._requests):
            self._requests = np.zeros(2 * n, _REQUEST)
            self._requests["operation"] = _WRITE
        requests = self._requests[:n]
        requests["number"] = np.arange(n) % PORTION
        requests["socket"] = sockets
        requests["address"] = np.uint64(buffer.ctypes.data) + at.astype(np.uint64)
        requests["size"] = sizes
        taken: I8 = np.zeros(n, np.int64)
        firsts = iter(range(0, n, PORTION))
        if n < MIN_SHARED or len(self._queues) == 1:
            self._queues[0].write_portions(firsts, requests, taken)
            return taken

        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, "reports")
        # Both threads take portions from one iterator: the GIL makes `next` atomic.
        try:
            other = self._helper.submit(
                self._queues[1].write_portions, firsts, requests, taken
            )
        except RuntimeError:
            # The system permits no further thread: send with this one from now on.
            self._helper.shutdown(wait=False, cancel_futures=True)
            self._queues = self._queues[:1]
            self._queues[0].write_portions(firsts, requests, taken)
            return taken

        self._queues[0].write_portions(firsts, requests, taken)
        other.result()
        return taken


_LOCK: Final = threading.Lock()
_shared: list[BulkSender | None] = []


def bulk_sender() -> BulkSender | None:
    """Return the sender of this process; None if the system does not offer the calls."""
    with _LOCK:
        if not _shared:
            try:
                _shared.append(BulkSender())
            except OSError:
                _shared.append(None)

        return _shared[0]


__all__ = ["BulkSender", "bulk_sender"]
