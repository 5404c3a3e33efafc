"""Handler of fatal signals, such as a segmentation fault in compiled code.

It copies the log and exits with a documented status (CRS-001, EXIT-012).

A handler in Python cannot do that: no Python code runs after such a signal, and
`faulthandler` writes tracebacks and lets the signal kill the process. The handler is
therefore machine code of a few dozen instructions. It is part of the library shipped
with the package (`botyard.native.shipped`). Without that library, LLVM compiles it at
program start.

The handler calls only async-signal-safe functions: open, read, write, _exit.
`faulthandler`, enabled afterwards, chains to it as the previously installed handler.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from botyard.names import escaped
from botyard.native.packages import mode
from botyard.native.shipped import library

SIGNALS: Final = tuple(
    getattr(signal, n)
    for n in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT")
    if hasattr(signal, n)
)
"""Signals that the handler covers, the same ones as `faulthandler` covers."""
# A static buffer, since memory cannot be allocated in a signal handler.
_BLOCK: Final = 65536
"""Size of the buffer for copying the log, bytes."""
WORDS: Final = (
    "open",
    "read",
    "write",
    "_exit",
    "log",
    "copy",
    "read_flags",
    "write_flags",
    "block",
    "block_size",
    "message",
    "message_size",
    "status",
)
"""Parameters of the handler in memory, 64 bits each.

The parameters are addresses of functions and of texts, flags and sizes. `log` is 0 without a log
file.
"""


def _load(word: str) -> str:
    at = WORDS.index(word)
    return (
        f"  %{word} = load i64, ptr getelementptr ([{len(WORDS)} x i64], ptr "
        f"@botyard_fatal, i64 0, i64 {at})"
    )


CODE: Final = f"""
@botyard_fatal = global [{len(WORDS)} x i64] zeroinitializer

define void @botyard_fatal_handler(i32 %number) {{
begin:
{chr(10).join(map(_load, WORDS))}
  %do_open = inttoptr i64 %open to ptr
  %do_read = inttoptr i64 %read to ptr
  %do_write = inttoptr i64 %write to ptr
  %do_exit = inttoptr i64 %_exit to ptr
  %text = inttoptr i64 %message to ptr
  %code = trunc i64 %status to i32
  %has_log = icmp ne i64 %log, 0
  br i1 %has_log, label %open_both, label %leave
open_both:
  %log_name = inttoptr i64 %log to ptr
  %copy_name = inttoptr i64 %copy to ptr
  %flags0 = trunc i64 %read_flags to i32
  %flags1 = trunc i64 %write_flags to i32
  %bytes = inttoptr i64 %block to ptr
  %source = call i32 (ptr, i32, ...) %do_open(ptr %log_name, i32 %flags0)
  %target = call i32 (ptr, i32, ...) %do_open(ptr %copy_name, i32 %flags1, i32 384) ; 0600
  br label %again
again:
  %count = call i64 %do_read(i32 %source, ptr %bytes, i64 %block_size)
  %more = icmp sgt i64 %count, 0
  br i1 %more, label %keep, label %leave
keep:
  %kept = call i64 %do_write(i32 %target, ptr %bytes, i64 %count)
  br label %again
leave:
  %written = call i64 %do_write(i32 2, ptr %text, i64 %message_size)
  call void %do_exit(i32 %code)
  unreachable
}}
"""
"""LLVM assembly code of the handler ``void botyard_fatal_handler(int number)`` and its
parameters.
"""


def exit_at_fatal_signals(status: int, log_file: str | None) -> Callable[[], None]:
    """Install the handler of fatal signals.

    At a fatal signal it copies the log file to ``FILE-crash`` and exits with `status`.

    Parameters
    ----------
    status : int
        Exit status, 0 … 255.
    log_file : str, optional
        The log file. The handler opens it by name when the signal arrives, because logs
        are rotated.

    Returns
    -------
    callable
        Restores the previous handlers. Nothing is installed if the system has no POSIX
        signals, or if both library and LLVM are missing.
    """
    # Windows has no signals of this kind.
    code = _code() if os.name == "posix" else None
    if code is None:
        return lambda: None
    words, handler, keep = code
    # The C library's own functions: Python's wrappers are not async-signal-safe.
    system = ctypes.CDLL(None)
    parameters: dict[str, Any] = {
        name: getattr(system, name) for name in ("open", "read", "write", "_exit")
    }

    if log_file is not None:
        # A link or a FIFO in the place of a log must neither redirect the copy nor
        # block.
        safe = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        parameters |= {
            # Absolute, because the process may change its folder before it crashes.
            "log": ctypes.create_string_buffer(os.fsencode(os.path.abspath(log_file))),
            "copy": ctypes.create_string_buffer(
                os.fsencode(os.path.abspath(log_file) + "-crash")
            ),
            "read_flags": os.O_RDONLY | safe,
            "write_flags": os.O_WRONLY | os.O_CREAT | os.O_TRUNC | safe,
            "block": ctypes.create_string_buffer(_BLOCK),
            "block_size": _BLOCK,
        }

    message = _message(log_file).encode()
    parameters |= {
        "message": ctypes.create_string_buffer(message),
        # The text is made now: nothing can be formatted in a signal handler.
        "message_size": len(message),
        "status": status,
    }

    for k, name in enumerate(WORDS):
        value = parameters.get(name, 0)
        words[k] = (
            value
            if isinstance(value, int)
            else ctypes.cast(value, ctypes.c_void_p).value or 0
        )

    # Addresses have 64 bits; the default of ctypes is int.
    system.signal.restype = ctypes.c_void_p
    system.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    # signal(2) and not Python's `signal.signal`, which defers to the interpreter.
    before = {number: system.signal(number, handler) for number in SIGNALS}
    keep += [parameters]

    def restore() -> None:
        for number, old in before.items():
            # Install the previous handlers again, so that tests leave no trace.
            system.signal(number, old)
        keep.clear()

    return restore


def _code() -> tuple[Any, int, list[Any]] | None:
    """Return the handler's parameters and its address, and the objects that must stay alive.

    None means that neither the shipped library nor LLVM is available.
    """
    kind = ctypes.c_int64 * len(WORDS)
    # Preferred, because it needs no LLVM at program start.
    shipped = library().code if mode() in ("auto", "native") else None
    if shipped is not None:
        handler = ctypes.cast(shipped.botyard_fatal_handler, ctypes.c_void_p).value
        assert handler is not None
        return kind.in_dll(shipped, "botyard_fatal"), handler, []

    try:
        from llvmlite import binding
    except ImportError:
        return None

    llvm: Any = binding
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(CODE), machine)
    engine.finalize_object()
    words = kind.from_address(engine.get_global_value_address("botyard_fatal"))
    return words, engine.get_function_address("botyard_fatal_handler"), [engine]


def _message(log_file: str | None) -> str:
    kept = (
        f"; the log is kept as {escaped(log_file)}-crash"
        if log_file is not None
        else ""
    )
    return f"botyard: error: a fatal signal in compiled code{kept}\n"


__all__ = ["CODE", "SIGNALS", "WORDS", "exit_at_fatal_signals"]
