"""Build of the shared library of kernels.

Each entry becomes an object file of its own, which LLVM optimises for a named CPU. All
object files are linked.

Cross-compilation works because kernels are the same on all 64-bit little-endian
platforms, and LLVM generates code for each. `tools.kernels` calls each entry once
before the build, which records its argument types.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botyard.native.fatal import CODE as FATAL
from botyard.native.kernels import Entry
from botyard.native.packages import CONVENTION, digest_of
from botyard.native.shipped import TABLE, this_platform

os.environ["NUMBA_OPT"] = (
    # Numba's own passes would use this machine's CPU features. The variables must be
    # set before the import.
    "0"
)
# Intermediate code must not depend on the machine that builds.
os.environ["NUMBA_CPU_NAME"] = "generic"

import llvmlite.binding as llvm
from numba.core.compiler_lock import global_compiler_lock

from botyard.native import compiler

_llvm: Any = llvm
# Initialize all targets, for cross-compilation.
_llvm.initialize_all_targets()
_llvm.initialize_all_asmprinters()
_llvm.initialize_native_asmparser()
compiler.is_building = True


@dataclass(frozen=True, slots=True)
class Target:
    """Target platform for which a library is built.

    Attributes
    ----------
    platform : str
        Name, as returned by `botyard.native.shipped.this_platform`.
    triple : str
        Target triple of LLVM.
    cpu : str
        LLVM's name of the oldest processor that runs the code.
    file : str
        File name of the library.
    zig : str
        Target of `zig cc`.
    """

    platform: str
    triple: str
    cpu: str
    file: str
    zig: str


TARGETS: Final = {
    t.platform: t
    for t in (
        Target(
            "linux-x86_64",
            "x86_64-unknown-linux-gnu",
            "x86-64-v3",
            "kernels.so",
            "x86_64-linux-gnu.2.17",
        ),
        Target(
            "linux-aarch64",
            "aarch64-unknown-linux-gnu",
            "generic",
            "kernels.so",
            "aarch64-linux-gnu.2.17",
        ),
        Target(
            "darwin-x86_64",
            "x86_64-apple-macosx11.0",
            "x86-64-v3",
            "kernels.dylib",
            "x86_64-macos",
        ),
        Target(
            "darwin-aarch64",
            "arm64-apple-macosx11.0",
            "apple-m1",
            "kernels.dylib",
            "aarch64-macos",
        ),
        Target(
            "win32-x86_64",
            "x86_64-pc-windows-msvc",
            "x86-64-v3",
            "kernels.dll",
            "x86_64-windows-gnu",
        ),
    )
}
"""All supported platforms.

AArch64 uses the baseline (Raspberry Pi 4): newer features do not make kernels faster.
"""


PROCESSOR_FITS: Final = {
    "x86-64-v3": """
define i32 @botyard_processor_fits() "target-cpu"="x86-64" {
begin:
  %leaf0 = call {i32, i32, i32, i32} asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 0, i32 0)
  %last = extractvalue {i32, i32, i32, i32} %leaf0, 0
  %has7 = icmp uge i32 %last, 7
  br i1 %has7, label %first, label %no
first:
  %leaf1 = call {i32, i32, i32, i32} asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 1, i32 0)
  %c1 = extractvalue {i32, i32, i32, i32} %leaf1, 2
  %m1 = and i32 %c1, 953692673 ; SSE3, SSSE3, FMA, CX16, SSE4.1, SSE4.2, MOVBE, POPCNT, OSXSAVE, AVX, F16C
  %ok1 = icmp eq i32 %m1, 953692673
  br i1 %ok1, label %second, label %no
second:
  %xcr = call {i32, i32} asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %x = extractvalue {i32, i32} %xcr, 0
  %mx = and i32 %x, 6 ; the system saves SSE and AVX registers
  %okx = icmp eq i32 %mx, 6
  %leaf7 = call {i32, i32, i32, i32} asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 7, i32 0)
  %b7 = extractvalue {i32, i32, i32, i32} %leaf7, 1
  %m7 = and i32 %b7, 296 ; BMI1, AVX2, BMI2
  %ok7 = icmp eq i32 %m7, 296
  %leafe = call {i32, i32, i32, i32} asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 -2147483647, i32 0)
  %ce = extractvalue {i32, i32, i32, i32} %leafe, 2
  %me = and i32 %ce, 32 ; LZCNT
  %oke = icmp eq i32 %me, 32
  %ok = and i1 %okx, %ok7
  %all = and i1 %ok, %oke
  %answer = zext i1 %all to i32
  ret i32 %answer
no:
  ret i32 0
}
""",
}
"""Names of LLVM functions that check whether this processor can run the code.

They test the CPUID bits (Intel, Software Developer's Manual, volume 2A) of a level of
the x86-64 psABI. Other processors need no check.
"""
_ALWAYS: Final = "define i32 @botyard_processor_fits() { ret i32 1 }"


def symbol_of(entry: Entry[Any]) -> str:
    """Return the symbol name of an entry (a kernel that Python calls) in the library.

    Parameters
    ----------
    entry : Entry
        The entry. Its argument types are no part of the name.
    """
    # Symbols of C contain no dots.
    return "botyard_" + entry.name.removeprefix("botyard.").replace(".", "_")


def build(
    entries: Sequence[Entry[Any]],
    objects: Sequence[bytes],
    target: Target,
    folder: Path,
    whole: bool,
) -> Path:
    """Link a library of entries, and write the table (JSON) of its contents.

    Parameters
    ----------
    entries : sequence of Entry
        The entries; each was called once.
    objects : sequence of bytes
        `object_of` of each entry.
    target : Target
        The platform.
    folder : Path
        Folder for both files.
    whole : bool
        Whether these are all entries of their packages.

    Raises
    ------
    RuntimeError
        There is no linker, or it failed.
    """
    symbols = {entry.signature: symbol_of(entry) for entry in entries}
    # The check of the processor has the attribute target-cpu x86-64, because it must
    # run on any processor.
    common = _optimised(_common(target), target, COMMON_SYMBOLS)
    folder.mkdir(parents=True, exist_ok=True)

    # Work in the same folder, because `os.replace` works within one file system only.
    with tempfile.TemporaryDirectory(dir=folder) as work:
        made = _link([common, *objects], target, Path(work))
        packages = {entry.package.name: entry.package for entry in entries}
        table = {
            "platform": target.platform,
            "cpu": target.cpu,
            "file": target.file,
            # The digest detects a damaged or truncated library before it is loaded.
            "library": digest_of([made]),
            "convention": digest_of(CONVENTION),
            "sources": {name: package.digest() for name, package in packages.items()},
            "whole": whole,
            "entries": symbols,
        }
        (Path(work) / TABLE).write_text(json.dumps(table, indent=1), "utf-8")

        # Running processes keep the old, unlinked file mapped. The table follows last:
        # until then the old one does not match the new library, and the library is not
        # used.
        os.replace(made, folder / target.file)
        os.replace(Path(work) / TABLE, folder / TABLE)

    return folder / target.file


def object_of(
    entry: Entry[Any], target: Target, stage: Callable[[str], object] = lambda _: None
) -> bytes:
    """Return an object file with the code of an entry and of all kernels that it calls.

    Only the entry's symbol is visible.

    Parameters
    ----------
    entry : Entry
        The entry; it was called once.
    target : Target
        The platform.
    stage : callable
        Called before each stage: "lower" (Numba), "optimise" and "emit" (LLVM).

    Raises
    ------
    ValueError
        The entry was not called.
    """
    symbol = symbol_of(entry)
    if entry.kinds is None:
        raise ValueError(
            f"{entry.name} was not called, so its argument types are unknown"
        )

    stage("lower")
    with global_compiler_lock:
        library = compiler.with_wrapper(
            entry.function, entry.kinds, entry.result, symbol, rows=entry.takes_rows
        )
        text = str(library.get_llvm_str())

    return _optimised(_llvm.parse_assembly(text), target, [symbol], stage)


COMMON_SYMBOLS: Final = (
    "botyard_processor_fits",
    "botyard_fatal",
    "botyard_fatal_handler",
)
"""Names of the symbols that each library contains in addition to its entries."""


def _common(target: Target) -> Any:
    """Return the LLVM module that defines `COMMON_SYMBOLS`."""
    module = _llvm.parse_assembly(PROCESSOR_FITS.get(target.cpu, _ALWAYS))
    module.link_in(_llvm.parse_assembly(FATAL))
    return module


def _optimised(
    module: Any,
    target: Target,
    exported: Iterable[str],
    stage: Callable[[str], object] = lambda _: None,
) -> bytes:
    """Return an LLVM module as optimised object code, which shows only the symbols `exported`.

    Parameters
    ----------
    module : llvmlite.binding.ModuleRef
        Module; it is changed.
    target : Target
        The platform.
    exported : iterable of str
        Names of functions and variables that stay visible.
    stage : callable
        Called before each stage, see `object_of`.

    Returns
    -------
    bytes
        Object file of position-independent code.
    """
    machine = _llvm.Target.from_triple(target.triple).create_target_machine(
        # Shared libraries need position-independent code.
        cpu=target.cpu,
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    # Internal linkage lets LLVM inline and drop functions, and avoids clashes of
    # symbols.
    visible = set(exported)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in visible:
            value.linkage = "internal"

    options = _llvm.create_pipeline_tuning_options(speed_level=3)
    # Loop vectorization is off by default in llvmlite, and most kernels are loops over
    # arrays.
    options.loop_vectorization = True
    passes = _llvm.create_pass_builder(machine, options)
    stage("optimise")
    passes.getModulePassManager().run(module, passes)
    stage("emit")
    code: bytes = machine.emit_object(module)
    return code


def linker(target: Target) -> list[str]:
    """Return the command that links libraries for a target.

    The command runs the system's C compiler for this machine, or the compiler of the ``ziglang``
    wheel for any platform.

    Parameters
    ----------
    target : Target
        The platform.

    Raises
    ------
    RuntimeError
        The system has no linker that can be used.
    """
    # The system's compiler links for this machine only.
    system = shutil.which("cc")
    if system and sys.platform == "linux" and target.platform == this_platform():
        return [system]
    try:
        import ziglang
    except ImportError:
        raise RuntimeError(
            f"no linker for {target.platform}: install a C compiler (cc), or the ziglang package"
        ) from None

    return [sys.executable, "-m", ziglang.__name__, "cc", "-target", target.zig]


def _link(objects: Sequence[bytes], target: Target, work: Path) -> Path:
    """Link object files to a shared library, and return its path.

    Parameters
    ----------
    objects : sequence of bytes
        Object files.
    target : Target
        The platform.
    work : Path
        Folder for temporary files and the library.

    Raises
    ------
    RuntimeError
        There is no linker, or it failed; the message has its output.
    """
    made = work / target.file
    sources = [work / f"{number}.o" for number in range(len(objects))]
    for path, code in zip(sources, objects, strict=True):
        path.write_bytes(code)
    # Kernels call no function of the C library, so the link needs no system root.
    options = ["-shared", "-nostdlib", "-s"]

    # macOS links shared libraries with other options.
    if target.platform.startswith("darwin"):
        options = ["-dynamiclib", "-undefined", "dynamic_lookup"]
    command = [*linker(target), *options, "-o", str(made), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Do not raise on the exit status itself: that exception would hide the linker's own
    # message.
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} failed: {done.stderr.strip()}")
    return made


__all__ = ["TARGETS", "Target", "build", "linker", "object_of", "symbol_of"]
