"""Worker processes: the messages between a worker and its parent, and the worker's
side. A leaf.

Untrusted input (files of strangers) is parsed in a worker process with limits on memory
and processor time; the worker ends after one request (`botyard.servers.jobs.child_jobs`
is the parent's side). It is a new interpreter (spawned, never forked), so that it
inherits no threads and sockets of the simulator. It reads one request from its standard
input and writes its answers to its standard output.

Messages are data, never code: MessagePack, decoded by the types that the receiver
expects, and arrays of float64. Pickle would let a worker that a hostile file has taken
over run code in its parent.

Layout of a message: length of the head (8 bytes, little-endian), the head (MessagePack:
kind, shapes of the arrays, the body as MessagePack in which a number stands for an
array), then the arrays' numbers (little-endian, in C order).
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
"""Exit status of a worker that ran out of its memory limit."""
MAX_TOTAL_BYTES: Final = 2**40
"""Default limit of the bytes of all messages on a channel together."""

Array = NDArray[np.float64]
Types = Mapping[str, Any]
"""Type of the body of each kind of message."""


class Writable(Protocol):
    """A binary stream that messages are written to."""

    def write(self, data: Any, /) -> object:
        """Write bytes, or an object with the buffer protocol."""


class DamagedMessage(Exception):
    """The bytes received are not one of the expected messages."""


class Channel:
    """Reads messages from a stream, within a budget of bytes.

    Parameters
    ----------
    file : binary file
        The stream.
    types : mapping
        The expected kinds of messages, and the type of each one's body.
    max_bytes : int
        Limit of the bytes of all messages together.
    """

    def __init__(
        self, file: BinaryIO, types: Types, max_bytes: int = MAX_TOTAL_BYTES
    ) -> None:
        self._file = file
        self._types = types
        self._budget = max_bytes

    def read(self) -> tuple[str, Any] | None:
        """The next message: its kind and its body; None at the end of the stream.

        Raises
        ------
        DamagedMessage
            It is cut short, too large, of an unknown kind, or its body is not of its
            type.
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
        if any(n < 0 for n in shape):
            raise DamagedMessage("an array of negative size")
        self._take(8 * math.prod(shape))
        array = np.empty(shape)
        if array.size:
            self._fill(array.data.cast("B"))
        return array

    def _take(self, size: int) -> int:
        self._budget -= size
        if self._budget < 0:
            raise DamagedMessage("too large")
        return size

    def _fill(self, room: memoryview) -> None:
        while room:
            n = self._file.readinto(room)  # type: ignore[attr-defined]
            if not n:
                raise DamagedMessage("cut short")
            room = room[n:]


def write_message(file: Writable, kind: str, body: object) -> None:
    """Write a message; arrays of float64 may stand anywhere in its body."""
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
"""Sends an answer: its kind and its body."""


def serve(types: Types, work: Callable[[Any, Send], None]) -> None:
    """Read one request of one of `types`, do the work, exit. Exceptions of `work` are
    not caught: it reports its own failures.

    The first two arguments of the command line are the limits of memory, bytes, and of
    processor time, s.
    """
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "wb")
    # output that a library prints must not mix with the answers
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

    # without waiting for threads that libraries may have left
    os._exit(0)


def run_helper(work: Callable[[], object]) -> NoReturn:
    """Run `work` for the parent, which has started this process with a pipe as standard
    input; exit with status 0, or when the parent dies.

    An exception of `work` ends the process with a traceback and status 1.
    """
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the terminal sends it to both processes; the parent decides
    end_with_parent()
    work()
    sys.stdout.flush()
    os._exit(
        0
    )  # a thread may still read the standard input, and closing a stream that is being read would wait for it


def _limit(memory: int, seconds: int) -> None:
    """Limit memory (bytes) and processor time (s) of this process, where the system
    supports it, and lower its priority.
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
    """Exit when the other end of the standard input is closed, which means that the
    parent has died, even in the middle of C code.

    On Linux the kernel kills this process (SIGKILL); elsewhere it exits with status 1.
    """
    with contextlib.suppress(ImportError, AttributeError, OSError):
        fcntl = importlib.import_module("fcntl")
        # Linux signals a change of the pipe (O_ASYNC); a waiting thread would need the
        # GIL, which C code may hold
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETSIG, getattr(signal, "SIGKILL"))  # noqa: B009 - Windows has none
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        # it was closed before O_ASYNC was set
        if select.select([0], [], [], 0)[0]:
            os._exit(1)
        return

    threading.Thread(target=_watch_input, daemon=True).start()


def _watch_input() -> None:
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
