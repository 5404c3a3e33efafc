"""`BulkSockets`: writes to many sockets, and reads from them, in few system calls.

Linux submits many of them with one call (``io_submit``, see io_submit(2)). When the
call returns, each non-blocking socket has sent or received its bytes, or refused. Two
threads share a large number of sockets, without the interpreter's lock. On other
systems, and where a sandbox forbids the call, each connection reads and writes its own
socket.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]

PORTION: Final = 256
"""Number of writes or reads of one call, about a millisecond.

Threads take portions in turn. A thread that the system delays then handles fewer
portions.
"""
MIN_SHARED: Final = 2 * PORTION
"""Number of writes or reads from which two threads are worth their overhead."""

_CALLS: Final = {
    "x86_64": {"setup": 206, "destroy": 207, "getevents": 208, "submit": 209},
    "aarch64": {"setup": 0, "destroy": 1, "submit": 2, "getevents": 4},
}
"""Numbers of system calls (Linux, asm/unistd.h)."""
_READ: Final = 0
"""Operation IOCB_CMD_PREAD of linux/aio_abi.h."""
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
"""Layout of a request: ``struct iocb`` of linux/aio_abi.h."""
_RESULT: Final = np.dtype(
    [("number", "<u8"), ("request", "<u8"), ("result", "<i8"), ("more", "<i8")]
)
"""Layout of a result: ``struct io_event`` of linux/aio_abi.h."""


class _Queue:
    """Queue of reads and writes in the kernel of the system; one thread uses it at a time."""

    def __init__(self, libc: Any, calls: dict[str, int]) -> None:
        self._libc, self._calls = libc, calls
        self._id = ctypes.c_ulong(0)
        self._results = np.zeros(PORTION, _RESULT)
        count = ctypes.c_long(PORTION)
        if self._call("setup", count, ctypes.byref(self._id)) < 0:
            raise OSError(
                ctypes.get_errno(),
                "io_setup failed: the system has no queue for transfers",
            )
        # A sandbox may forbid only `io_getevents`, so that transfers would start but
        # never report a result.
        none = ctypes.c_long(0)
        if self._call("getevents", self._id, none, none, None, None) < 0:
            failure = OSError(
                ctypes.get_errno(),
                "io_getevents failed: the system returns no results of transfers",
            )
            self.close()
            raise failure

    def _call(self, name: str, *args: Any) -> int:
        # ctypes releases the GIL during the call.
        result: int = self._libc.syscall(ctypes.c_long(self._calls[name]), *args)
        return result

    def close(self) -> None:
        """Free the queue."""
        self._call("destroy", self._id)

    def transfer_portions(
        self, firsts: Iterator[int], requests: NDArray[Any], taken: I8
    ) -> None:
        """Make the requests of portions, each given by the index of its first request.

        Parameters
        ----------
        firsts : iterator of int
            Index of the first request of each portion. Two threads may share the
            iterator.
        requests : (n,) structured
            All requests, as ``struct iocb``. Their buffers must stay
            unchanged until the call returns.
        taken : (n,) int64
            Output: number of bytes that each socket sent or received; −errno for an
            error.

        Raises
        ------
        OSError
            The system does not return the results.
        """
        for first in firsts:
            last = first + PORTION
            self._transfer(requests[first:last], taken[first:last])

    def _transfer(self, requests: NDArray[Any], taken: I8) -> None:
        """Make the requests, and store how many bytes each socket sent or received.

        Parameters
        ----------
        requests : (k,) structured
            Requests of one portion, as ``struct iocb``; ``number`` is the index in it.
        taken : (k,) int64
            Output: see `transfer_portions`.
        """
        size = requests.itemsize
        places = np.arange(len(requests), dtype=np.uint64) * np.uint64(size)
        places += np.uint64(requests.ctypes.data)
        done = 0
        while done < len(requests):
            count = ctypes.c_long(len(requests) - done)
            first = ctypes.c_void_p(places.ctypes.data + 8 * done)
            accepted = self._call("submit", self._id, count, first)
            # The kernel refuses a request, such as one to a closed socket.
            if accepted <= 0:
                taken[done] = -(ctypes.get_errno() or errno.EAGAIN)
                done += 1
                continue

            self._collect(accepted, taken)
            done += accepted

    def _collect(self, count: int, taken: I8) -> None:
        """Wait for the results of accepted requests, and store them.

        Parameters
        ----------
        count : int
            Number of requests that the system has accepted.
        taken : (k,) int64
            Output: result of each request, at its ``number``; see `transfer_portions`.
        """
        results, left = self._results, count
        while left:
            many = ctypes.c_long(left)
            to = ctypes.c_void_p(results.ctypes.data)
            found = self._call("getevents", self._id, many, many, to, None)
            # A signal interrupts the wait. Any other error would repeat for ever.
            if found < 0 and ctypes.get_errno() != errno.EINTR:
                raise OSError(
                    ctypes.get_errno(),
                    "io_getevents failed: the system returns no results of transfers",
                )
            found = max(found, 0)
            some = results[:found]
            taken[some["number"].astype(np.int64)] = some["result"]
            left -= found


class BulkSockets:
    """Writes to many sockets, or reads from many, in few system calls.

    Raises
    ------
    OSError
        The system does not offer the calls.
    """

    def __init__(self) -> None:
        calls = _CALLS.get(platform.machine())
        if sys.platform != "linux" or calls is None:
            raise OSError(errno.ENOSYS, "io_submit is not available on this system")
        self._libc, self._calls = ctypes.CDLL(None, use_errno=True), calls
        self._libc.syscall.restype = ctypes.c_long
        self._requests = np.zeros(0, _REQUEST)
        self._open()

    def _open(self) -> None:
        """Create the objects of this process: queues, a helper thread, a lock."""
        self._lock = threading.Lock()
        self._helper: ThreadPoolExecutor | None = None
        self._queues: list[_Queue] = []
        # With one processor a second thread only waits for the first one.
        for _ in range(1 if (os.cpu_count() or 1) == 1 else 2):
            self._queues.append(_Queue(self._libc, self._calls))

    def renew(self) -> None:
        """Recreate queues and helper in a forked process, which inherits neither."""
        # Without queues, each connection reads and writes its own socket.
        with contextlib.suppress(OSError):
            self._open()

    def close(self) -> None:
        """End the helper and free the queues."""
        if self._helper is not None:
            self._helper.shutdown()
        for queue in self._queues:
            queue.close()

    def send(self, sockets: I8, buffer: U1, at: I8, sizes: I8) -> I8:
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
            Number of bytes that each socket accepted; −errno for an error.
        """
        return self._transfer(_WRITE, sockets, buffer, at, sizes)

    def receive(self, sockets: I8, buffer: U1) -> I8:
        """Receive bytes of many sockets.

        Parameters
        ----------
        sockets : (n,) array
            Sockets that do not block.
        buffer : (n, size) array
            Output: a row for each socket, with at most `size` of its bytes.

        Returns
        -------
        (n,) array
            Number of bytes of each socket; 0 at the end of its stream, −errno for an
            error.
        """
        n, size = buffer.shape
        return self._transfer(
            _READ, sockets, buffer, size * np.arange(n), np.full(n, size)
        )

    def _transfer(
        self, operation: int, sockets: I8, buffer: U1, at: I8, sizes: I8
    ) -> I8:
        n = len(sockets)
        with self._lock:
            if n > len(self._requests):
                self._requests = np.zeros(2 * n, _REQUEST)
            requests = self._requests[:n]
            requests["operation"] = operation
            requests["number"] = np.arange(n) % PORTION
            requests["socket"] = sockets
            requests["address"] = np.uint64(buffer.ctypes.data) + at.astype(np.uint64)
            requests["size"] = sizes
            return self._share(requests)

    def _share(self, requests: NDArray[Any]) -> I8:
        """Make requests with one thread or two."""
        n = len(requests)
        # Result of all requests if no queue of the system is available.
        taken: I8 = np.full(n, -errno.ENOSYS)
        firsts = iter(range(0, n, PORTION))
        other: Future[None] | None = None
        if n >= MIN_SHARED and len(self._queues) > 1:
            if self._helper is None:
                self._helper = ThreadPoolExecutor(1, "sockets")
            # Both threads take portions from one iterator: the GIL makes `next` atomic.
            try:
                other = self._helper.submit(
                    self._queues[1].transfer_portions, firsts, requests, taken
                )
            except RuntimeError:
                # The system permits no further thread: use the present one from now on.
                self._helper.shutdown(wait=False, cancel_futures=True)
                self._queues = self._queues[:1]

        for queue in self._queues[:1]:
            queue.transfer_portions(firsts, requests, taken)
        if other is not None:
            other.result()
        return taken


_LOCK: Final = threading.Lock()
_shared: list[BulkSockets | None] = []


def bulk_sockets() -> BulkSockets | None:
    """Return the object of this process, which is created by the first call.

    Returns
    -------
    BulkSockets or None
        None if the system does not offer the calls; later calls do not try again.
    """
    with _LOCK:
        if not _shared:
            try:
                _shared.append(BulkSockets())
            except OSError:
                _shared.append(None)

        return _shared[0]


def _renew() -> None:
    _LOCK.release()
    for one in _shared:
        if one is not None:
            one.renew()


# A forked process has neither the helper, for which it would wait without end, nor the
# queues.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_renew
    )

__all__ = ["BulkSockets", "bulk_sockets"]
