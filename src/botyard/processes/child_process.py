"""Messages between a worker process and its parent, and the worker's side.

Untrusted files are parsed in a worker process with limits on memory and CPU time. The
worker ends after one request (`botyard.servers.jobs.child_jobs` is the parent's side).
It is a new interpreter (spawned, not forked), so that it inherits no threads or sockets
of the simulator. It reads one request from standard input and writes its answers to
standard output.

Messages are data, never code: MessagePack, decoded with the types that the receiver
expects, and float64 arrays. With pickle, a worker that a hostile file has taken over
could run code in its parent.

Layout of a message: length of the header (8 bytes, little-endian); header (MessagePack:
kind, shapes of the arrays, and the body as MessagePack in which an index stands for
each array); then the numbers of all arrays (little-endian, C order).
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, BinaryIO, Final, NoReturn, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

OUT_OF_MEMORY: Final = 71
"""Exit status of a worker that exceeded its memory limit."""
MAX_TOTAL_BYTES: Final = 2**40
"""Default limit of all messages on a channel together, bytes."""

Array = NDArray[np.float64]
Types = Mapping[str, Any]
"""Type of the body for each kind of message."""


class Writable(Protocol):
    """Binary stream that messages are written to."""

    def write(self, data: Any, /) -> object:
        """Write bytes, or an object with the buffer protocol."""


class DamagedMessage(Exception):
    """The received bytes are not one of the expected messages."""


class Channel:
    """Reader of messages from a stream, within a byte budget.

    Parameters
    ----------
    file : binary file
        The stream.
    types : mapping
        Expected kinds of messages, and the type of the body of each kind.
    max_bytes : int
        Limit of all messages together, bytes.
    """

    def __init__(
        self, file: BinaryIO, types: Types, max_bytes: int = MAX_TOTAL_BYTES
    ) -> None:
        self._file = file
        self._types = types
        self._budget = max_bytes

    def read(self) -> tuple[str, Any] | None:
        """Return the kind and body of the next message.

        None at the end of the stream.

        Raises
        ------
        DamagedMessage
            The message is truncated, too large, of an unknown kind, or its body does
            not match
            its type.
        """
        prefix = self._file.read(8)
        if not prefix:
            return None
        if len(prefix) < 8:
            raise DamagedMessage("cut short")
        head = bytearray(self._take(int.from_bytes(prefix, "little")))
        self._fill(memoryview(head))
        try:
            kind, shapes, body = msgspec.msgpack.decode(
                head, type=tuple[str, list[tuple[int, ...]], msgspec.Raw]
            )
            arrays = [self._array(shape) for shape in shapes]

            def hook(wanted: Any, value: Any) -> Any:
                """Types with an `of_message` constructor decode themselves; any other
                value is the index of an array.
                """
                return (
                    wanted.of_message(value)
                    if hasattr(wanted, "of_message")
                    else arrays[value]
                )

            if kind not in self._types:
                raise DamagedMessage("of an unknown kind")
            return kind, msgspec.msgpack.decode(
                body, type=self._types[kind], dec_hook=hook
            )
        except (msgspec.MsgspecError, ValueError, TypeError, IndexError) as error:
            raise DamagedMessage(str(error)) from None

    def _array(self, shape: tuple[int, ...]) -> Array:
        """Read an array.

        Its size counts against the budget before memory is allocated.
        """
        if any(n < 0 for n in shape):
            raise DamagedMessage("an array of negative size")
        self._take(8 * math.prod(shape))
        array = np.empty(shape)
        if array.size:
            self._fill(array.data.cast("B"))
        return array

    def _take(self, size: int) -> int:
        """Charge bytes to the budget."""
        self._budget -= size
        if self._budget < 0:
            raise DamagedMessage("too large")
        return size

    def _fill(self, room: memoryview) -> None:
        """Read exactly as many bytes as the buffer holds."""
        while room:
            n = self._file.readinto(room)  # type: ignore[attr-defined]
            if not n:
                raise DamagedMessage("cut short")
            room = room[n:]


def write_message(file: Writable, kind: str, body: object) -> None:
    """Write a message; its body may contain float64 arrays anywhere."""
    arrays: list[Array] = []

    def plain(value: object) -> object:
        if isinstance(value, np.ndarray):
            arrays.append(np.ascontiguousarray(value, np.float64))
            return len(arrays) - 1

        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, PurePath):
            return str(value)
        raise NotImplementedError(f"{type(value).__name__} cannot be sent")

    encoded = msgspec.msgpack.encode(body, enc_hook=plain)
    head = msgspec.msgpack.encode(
        (kind, [a.shape for a in arrays], msgspec.Raw(encoded))
    )
    file.write(len(head).to_bytes(8, "little"))
    file.write(head)
    for array in arrays:
        if array.size:
            file.write(array.data.cast("B"))


# -- the worker's side

Send = Callable[[str, object], None]
"""Function that sends an answer: its kind and its body."""


def serve(types: Types, work: Callable[[Any, Send], None]) -> None:
    """Read one request, do the work, and exit (main function of a worker).

    The first two command-line arguments are the limits of memory, bytes, and of CPU
    time, s. Exceptions of `work` are not caught: it reports its own failures.
    """
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "wb")
    # Output printed by a library must not mix with the answers.
    os.dup2(2, 1)

    def send(kind: str, body: object) -> None:
        write_message(answers, kind, body)
        answers.flush()

    try:
        request = Channel(sys.stdin.buffer, types).read()
        if request is None:
            return
        end_with_parent()
        work(request[1], send)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)

    # Do not wait for threads that libraries may have left.
    os._exit(0)


def run_helper(work: Callable[[], object]) -> NoReturn:
    """Run `work` for the parent process.

    Exit with status 0, or when the parent dies.

    The parent holds a pipe to standard input. An exception of `work` ends the process
    with a traceback and status 1.
    """
    signal.signal(
        signal.SIGINT,
        signal.SIG_IGN,
        # The terminal sends SIGINT to both processes; the parent decides.
    )
    end_with_parent()
    work()
    sys.stdout.flush()
    os._exit(
        0
        # A thread may still read standard input; closing a stream during a read would
        # block.
    )


def _limit(memory: int, seconds: int) -> None:
    """Limit memory (bytes) and CPU time (s) of this process, and lower its priority.

    Limits that the system does not support are skipped.
    """
    with contextlib.suppress(ImportError, AttributeError):
        resource = importlib.import_module("resource")
        wanted = {"RLIMIT_AS": memory, "RLIMIT_CPU": seconds, "RLIMIT_CORE": 0}
        for name, limit in wanted.items():
            with contextlib.suppress(AttributeError, ValueError, OSError):
                kind = getattr(resource, name)
                hard = resource.getrlimit(kind)[1]
                allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (allowed, allowed))

    with contextlib.suppress(AttributeError, OSError):
        os.nice(5)


def end_with_parent() -> None:
    """End this process when the parent dies, even in the middle of C code.

    The parent's death closes the other end of standard input. On Linux, the kernel then
    kills this process (SIGKILL); elsewhere it exits with status 1.
    """
    with contextlib.suppress(ImportError, AttributeError, OSError):
        fcntl = importlib.import_module("fcntl")
        # Linux sends a signal when the pipe changes (O_ASYNC). A waiting thread would
        # need the GIL, which C code may hold.
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETSIG, getattr(signal, "SIGKILL"))  # noqa: B009 - Windows has none
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        # The pipe was closed before O_ASYNC was set.
        if select.select([0], [], [], 0)[0]:
            os._exit(1)
        return

    threading.Thread(target=_watch_input, daemon=True).start()


def _watch_input() -> None:
    """Exit when standard input closes (thread)."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass

    os._exit(1)


__all__ = [
    "MAX_TOTAL_BYTES",
    "OUT_OF_MEMORY",
    "Channel",
    "DamagedMessage",
    "Send",
    "end_with_parent",
    "run_helper",
    "serve",
    "write_message",
]
