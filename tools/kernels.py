"""``python -m tools.kernels``: compile all kernels into the shared library that comes with the package (`botyard.native.build`).

Small worlds run first without the compiler, so that each entry is called once: its argument types are known from that call. Then each is
compiled, several at a time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

os.environ["BOTYARD_KERNELS"] = "python"

from botyard.native.kernels import ENTRIES
from botyard.native.packages import CONVENTION, digest_of
from botyard.native.shipped import FOLDER, TABLE, read_table, this_platform

SLOWEST_ENTRIES: Final = ("advance_masses", "advance_world", "move_masses", "allow", "cast", "advance")
"""Entries that take longest to compile: they are begun first, so that all processes end at about the same time."""


def call_all() -> None:
    """Call each entry once, in Python, to learn its argument types."""
    from botyard.cli.warmup import warm_up_rest
    from botyard.sim.warmup import warm_up

    warnings.simplefilter("ignore", RuntimeWarning)  # 64-bit products of NumPy's integers wrap around, as they should
    warm_up()
    warm_up_rest()


def code_of(name: str) -> str:
    """LLVM code of an entry; run in a process of its own."""
    from botyard.native.build import module_of

    return module_of(ENTRIES[name])


def is_current(folder: Path, platform: str) -> bool:
    """Whether the library in a folder was made of these sources for this platform."""
    import botyard.navigation.warmup
    import botyard.pictures.warmup
    import botyard.sim.warmup
    import botyard.traffic.compare  # noqa: F401  # all entries

    try:
        table = read_table(folder)
    except ValueError:
        return False
    return (
        table is not None
        and table["platform"] == platform
        and table.get("convention") == digest_of(CONVENTION)
        and all(table["sources"].get(e.package.name) == e.package.digest() for e in ENTRIES.values())
        and {text.partition("(")[0] for text in table["entries"]} == set(ENTRIES)
    )


def _sources() -> set[str]:
    """Digests of the sources of a library."""
    import botyard.navigation.warmup
    import botyard.pictures.warmup
    import botyard.sim.warmup
    import botyard.traffic.compare  # noqa: F401  # all entries

    return {entry.package.digest() for entry in ENTRIES.values()}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.kernels", description=__doc__)
    parser.add_argument("--target", default=this_platform(), help="platform, such as linux-aarch64; default: this one")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the library is put; default: into the package"
    )
    parser.add_argument("--force", action="store_true", help="also if it is there and current")
    parser.add_argument("--if-possible", action="store_true", help="where it cannot be made, say so and succeed")
    asked = parser.parse_args()
    if not asked.force and is_current(asked.folder, asked.target):
        return 0
    began = time.monotonic()
    sources = _sources()
    call_all()
    from botyard.native.build import TARGETS, build, linker

    if asked.target not in TARGETS:
        print(f"{asked.target}: expected one of {', '.join(TARGETS)}", file=sys.stderr)
        return 0 if asked.if_possible else 2
    target = TARGETS[asked.target]
    try:
        linker(target)
    except RuntimeError as error:
        print(f"kernels: {error}; they are compiled at the first start", file=sys.stderr)
        return 0 if asked.if_possible else 1
    names = sorted(ENTRIES, key=lambda name: not name.endswith(SLOWEST_ENTRIES))
    modules = []
    processes = min(os.cpu_count() or 1, len(SLOWEST_ENTRIES))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), call_all) as pool:
        for name, code in zip(names, pool.map(code_of, names), strict=True):
            modules.append(code)
            print(
                f"\rkernels: {len(modules)} of {len(names)} compiled, {name.removeprefix('botyard.'):40}",
                end="",
                flush=True,
            )
    print(f"\rkernels: optimising for {target.platform}, {target.cpu}" + " " * 40, end="", flush=True)
    made = build([ENTRIES[name] for name in names], modules, target, asked.folder)
    if _sources() != sources:  # the table has the new digests, but the code is that of the old sources
        (asked.folder / TABLE).unlink()
        print("\nkernels: their sources were changed meanwhile; build them again", file=sys.stderr)
        return 1
    print(f"\rkernels: {made.name} and {TABLE} in {made.parent} ({time.monotonic() - began:.0f} s)" + " " * 20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
