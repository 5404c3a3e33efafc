"""A process that does one piece of work for another one: what passes between the two, and the work's side of it. A leaf.

Work on what a stranger has sent is done in a process of its own, which may take so much memory and time and is gone afterwards
(`botyard.servers.aside` is the other side). It is a new interpreter, never a copy of the simulator's, whose threads and sockets it must
not have. It reads one request from its standard input and writes its answers to its standard output.

Nothing that comes back is code: a message is MessagePack, read by the types that the receiver expects, and arrays of float64. Pickle would
let a process that a hostile file has taken over run what it likes in the one that has asked.

Layout of a message: length of the head (8 bytes, little-endian), the head (MessagePack: kind, shapes of the arrays, the body as
MessagePack in which a number stands for an array), then the arrays' numbers (little-endian, in C order).
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
"""Exit status of a process that needed more memory than it may have."""
MOST: Final = 2**40
"""Bytes of all messages, where the receiver does not say less."""

Array = NDArray[np.float64]
Types = Mapping[str, Any]
"""What the body of each kind of message is."""


class Writable(Protocol):
    """Where messages go."""

    def write(self, data: Any, /) -> object:
        """Write bytes, or what has some."""


class DamagedMessage(Exception):
    """What came is no message, or not one of those that are expected."""


class Channel:
    """Reads messages.

    Parameters
    ----------
    file : binary file
        Where they come from.
    types : mapping
        The kinds that are expected, and the type of each one's body.
    most : int
        All together may have so many bytes.
    """

    def __init__(self, file: BinaryIO, types: Types, most: int = MOST) -> None:
        self._file = file
        self._types = types
        self._room = most

    def read(self) -> tuple[str, Any] | None:
        """The next message: its kind and its body; None: there are no more.

        Raises
        ------
        DamagedMessage
            It is cut short, too large, of an unknown kind, or its body is not of its type.
        """
        prefix = self._file.read(8)
        if not prefix:
            return None
        if len(prefix) < 8:
            raise DamagedMessage("cut short")
        head = bytearray(self._take(int.from_bytes(prefix, "little")))
        self._fill(memoryview(head))
        try:
            kind, shapes, body = msgspec.msgpack.decode(head, type=tuple[str, list[tuple[int, ...]], msgspec.Raw])
            arrays = [self._array(shape) for shape in shapes]

            def hook(wanted: Any, value: Any) -> Any:
                """Types that say themselves how they are made of a message; else the number of an array."""
                return wanted.of_message(value) if hasattr(wanted, "of_message") else arrays[value]

            if kind not in self._types:
                raise DamagedMessage("of an unknown kind")
            return kind, msgspec.msgpack.decode(body, type=self._types[kind], dec_hook=hook)
        except (msgspec.MsgspecError, ValueError, TypeError, IndexError) as error:
            raise DamagedMessage(str(error)) from None

    def _array(self, shape: tuple[int, ...]) -> Array:
        if any(n < 0 for n in shape):
            raise DamagedMessage("an array of no size")
        self._take(8 * math.prod(shape))
        array = np.empty(shape)
        if array.size:
            self._fill(array.data.cast("B"))
        return array

    def _take(self, size: int) -> int:
        self._room -= size
        if self._room < 0:
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
    head = msgspec.msgpack.encode((kind, [a.shape for a in arrays], msgspec.Raw(encoded)))
    file.write(len(head).to_bytes(8, "little"))
    file.write(head)
    for array in arrays:
        if array.size:
            file.write(array.data.cast("B"))


# -- the work's side

Send = Callable[[str, object], None]
"""Sends an answer: its kind, and its body."""


def serve(types: Types, work: Callable[[Any, Send], None]) -> None:
    """Read a request of one of `types`, do the work, end. What the work raises is not caught: it says itself what went wrong.

    The first two arguments of the command line are the most memory, bytes, and the most processor time, s, that it may take.
    """
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer

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
    os._exit(0)  # whatever threads of libraries are still there


def run_helper(work: Callable[[], object]) -> NoReturn:
    """Do some work for the process that has started this one with a pipe as standard input; end with status 0, or with that process.

    What the work raises ends it with a trace and status 1.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both; the starter decides
    end_with_parent()
    work()
    sys.stdout.flush()
    os._exit(0)  # a thread may still read the standard input, and closing a stream that is being read would wait for it


def _limit(memory: int, seconds: int) -> None:
    """Take no more memory and processor time than that, where the system can see to it; be less urgent than who waits for it."""
    with contextlib.suppress(ImportError, AttributeError):
        resource = importlib.import_module("resource")
        wanted = {"RLIMIT_AS": memory, "RLIMIT_CPU": seconds, "RLIMIT_CORE": 0}
        for name, most in wanted.items():
            with contextlib.suppress(AttributeError, ValueError, OSError):
                kind = getattr(resource, name)
                hard = resource.getrlimit(kind)[1]
                least = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(kind, (least, least))
    with contextlib.suppress(AttributeError, OSError):
        os.nice(5)


def end_with_parent() -> None:
    """End when the other end of the standard input is closed: when the parent has died, whatever this process is busy with then.

    Linux ends it by SIGKILL, elsewhere it has the exit status 1.
    """
    with contextlib.suppress(ImportError, AttributeError, OSError):
        fcntl = importlib.import_module("fcntl")
        # Linux: the system sends a signal when a pipe changes; a thread that waits for it would need the interpreter, which code in C keeps
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETSIG, getattr(signal, "SIGKILL"))  # noqa: B009 - Windows has none
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([0], [], [], 0)[0]:  # closed before that
            os._exit(1)
        return
    threading.Thread(target=_watch_input, daemon=True).start()


def _watch_input() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(1)


__all__ = [
    "MOST",
    "OUT_OF_MEMORY",
    "Channel",
    "DamagedMessage",
    "Send",
    "end_with_parent",
    "run_helper",
    "serve",
    "write_message",
]
