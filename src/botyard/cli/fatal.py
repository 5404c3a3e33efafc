"""Fatal signals (a fault in compiled code) end the program with a status of ours, and leave a copy of the log (CRS-001, EXIT-012).

Python cannot do that: when such a signal comes, no Python code can run any more, and `faulthandler` writes its traces and lets the process
die of the signal. So the handler is machine code, a few dozen instructions that LLVM, which is there for the kernels anyway, makes of
the intermediate code below when the program starts. It calls only what POSIX allows in a handler: open, read, write, _exit. `faulthandler`,
enabled afterwards, hands on to it, because it takes what it finds for the handler before it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from llvmlite import binding, ir

from botyard.names import escaped

SIGNALS: Final = tuple(
    getattr(signal, n) for n in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT") if hasattr(signal, n)
)
"""Those that `faulthandler` knows."""
_BLOCK: Final = 65536
_BYTE, _INT, _SIZE = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_POINTER: Final = _BYTE.as_pointer()


def exit_at_fatal_signals(status: int, log_file: str | None) -> Callable[[], None]:
    """From now on, end with `status` at a fatal signal, and copy the log file to ``FILE-crash`` before.

    Parameters
    ----------
    status : int
        Exit status, 0 … 255.
    log_file : str, optional
        The log file. Its name is looked up when the signal comes, as it is begun anew now and then.

    Returns
    -------
    callable
        Restores what was before. Does nothing where the system has no POSIX signals.
    """
    if os.name != "posix":
        return lambda: None
    library = ctypes.CDLL(None)
    library.signal.restype = ctypes.c_void_p
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    code = _compiled(library, status, log_file)
    before = {number: library.signal(number, code.address) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            library.signal(number, handler)
        code.keep.clear()

    return restore


class _Code:
    """Machine code, and what must live as long as it."""

    def __init__(self, address: int, *keep: Any) -> None:
        self.address = address
        self.keep = list(keep)


def _compiled(library: Any, status: int, log_file: str | None) -> _Code:
    """The handler: ``void handler(int number)``; addresses are numbers in its code."""
    module = ir.Module("fatal")
    handler = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT]), "handler")
    block = ir.IRBuilder(handler.append_basic_block())

    def address(thing: Any) -> int:
        return ctypes.cast(thing, ctypes.c_void_p).value or 0

    def call(name: str, result: ir.Type, takes: list[ir.Type], *arguments: Any, more: bool = False) -> Any:
        kind = ir.FunctionType(result, takes, var_arg=more)
        return block.call(block.inttoptr(_SIZE(address(getattr(library, name))), kind.as_pointer()), arguments)

    def text(data: Any) -> Any:
        return block.inttoptr(_SIZE(address(data)), _POINTER)

    keep: list[Any] = []
    if log_file is not None:
        names = [ctypes.create_string_buffer(os.fsencode(os.path.abspath(log_file) + end)) for end in ("", "-crash")]
        buffer = ctypes.create_string_buffer(_BLOCK)
        keep += [*names, buffer]
        safe = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        source = call("open", _INT, [_POINTER, _INT], text(names[0]), _INT(os.O_RDONLY | safe), more=True)
        flags = _INT(os.O_WRONLY | os.O_CREAT | os.O_TRUNC | safe)
        target = call("open", _INT, [_POINTER, _INT], text(names[1]), flags, _INT(0o600), more=True)
        loop, copy, end = (handler.append_basic_block() for _ in range(3))
        block.branch(loop)
        block.position_at_end(loop)
        count = call("read", _SIZE, [_INT, _POINTER, _SIZE], source, text(buffer), _SIZE(_BLOCK))
        block.cbranch(block.icmp_signed(">", count, _SIZE(0)), copy, end)
        block.position_at_end(copy)
        call("write", _SIZE, [_INT, _POINTER, _SIZE], target, text(buffer), count)
        block.branch(loop)
        block.position_at_end(end)
    said = ctypes.create_string_buffer(_last_words(log_file).encode())
    keep.append(said)
    call("write", _SIZE, [_INT, _POINTER, _SIZE], _INT(2), text(said), _SIZE(len(said.raw) - 1))
    call("_exit", ir.VoidType(), [_INT], _INT(status))
    block.unreachable()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    return _Code(engine.get_function_address("handler"), engine, *keep)


def _last_words(log_file: str | None) -> str:
    kept = f"; the log is kept as {escaped(log_file)}-crash" if log_file is not None else ""
    return f"botyard: error: a fatal signal in compiled code{kept}\n"


__all__ = ["SIGNALS", "exit_at_fatal_signals"]
