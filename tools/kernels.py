"""``python -m tools.kernels``: compile the kernels into the shared library that comes
with the package (`botyard.native.build`).

Small worlds run first without the compiler, so that each entry is called once: its
argument types are known from that call. Then each entry becomes an object file of its
own, several at a time, and all are linked. Object files are kept in the user's cache by
a hash of the modules that an entry's functions come from, and of all that these import,
so that only entries whose sources changed are compiled again.

``--first-run`` makes the entries that a run needs at its start; the others are compiled
when they are first used.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import multiprocessing
import os
import queue
import sys
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

os.environ["BOTYARD_KERNELS"] = "python"

from tools.kernel_sources import functions_of, sources_of
from tools.progress import Progress

from botyard.native.cache import cache_of, cache_root
from botyard.native.kernels import ENTRIES, Entry
from botyard.native.packages import CONVENTION, digest_of
from botyard.native.shipped import FOLDER, read_table, this_platform

COMPILERS: Final = ("numba", "llvmlite")
STAGES: Final = {"lower": 0.0, "optimise": 0.55, "emit": 0.8}
"""Share of an entry's work that is done when a stage starts, about."""


def call_entries(first_run: bool) -> None:
    """Call each entry once, in Python, to learn its argument types."""
    from botyard.cli.warmup import warm_up_rest
    from botyard.protocols.warmup import warm_up as warm_up_protocols
    from botyard.worlds.warmup import warm_up

    # 64-bit products of NumPy integers wrap around as intended; NumPy warns of it.
    warnings.simplefilter("ignore", RuntimeWarning)
    warm_up(masses=not first_run)
    warm_up_protocols()
    if not first_run:
        warm_up_rest()


def is_current(folder: Path, platform: str, first_run: bool) -> bool:
    """Return whether the library in a folder was made from these sources for this platform, and
    has all entries asked for.
    """
    _import_entries()
    try:
        table = read_table(folder)
    except ValueError:
        return False

    return (
        table is not None
        and table["platform"] == platform
        and table["convention"] == digest_of(CONVENTION)
        and all(
            table["sources"].get(e.package.name) == e.package.digest()
            for e in _wanted(first_run)
        )
        and (
            first_run
            or (
                table["whole"]
                and {t.partition("(")[0] for t in table["entries"]} == set(ENTRIES)
            )
        )
    )


def _wanted(first_run: bool) -> list[Entry[Any]]:
    """Return the entries of the packages that are asked for."""
    from botyard.engine.kernels.jit import PACKAGE

    return [e for e in ENTRIES.values() if not first_run or e.package == PACKAGE]


def _import_entries() -> None:
    """Fill the table of all entries."""
    import botyard.navigation.warmup
    import botyard.pictures.warmup
    import botyard.protocols.warmup
    import botyard.traffic.compare
    import botyard.worlds.warmup  # noqa: F401


def _sources() -> set[str]:
    """Return the digests of the sources of a library."""
    _import_entries()
    return {entry.package.digest() for entry in ENTRIES.values()}


# -- object files, and their cache


def cached_object(entry: Entry[Any], platform: str) -> Path | None:
    """Return the path of an entry's object in the user's cache, named after a hash of all its
    sources; None if there is no cache.
    """
    if not cache_of(entry.package).is_used:
        return None
    versions = [f"{name} {importlib.metadata.version(name)}" for name in COMPILERS]
    sources = digest_of([*CONVENTION, *sources_of(entry)])
    text = " ".join([entry.signature, platform, *versions, sources])
    return (
        cache_root()
        / "objects"
        / f"{entry.name}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.o"
    )


def _keep(path: Path | None, code: bytes) -> None:
    if path is not None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(code)
            os.replace(part, path)


def _start_worker(first_run: bool, messages: Any) -> None:
    """Prepare a process that compiles and reports which share of an entry is done."""
    call_entries(first_run)
    global _tell
    _tell = messages.put


_tell: Any = None


def compiled(name: str, platform: str) -> bytes:
    """Return the object file of an entry; runs in a process of `_start_worker`."""
    from numba.core import event

    from botyard.native.build import TARGETS, object_of

    entry = ENTRIES[name]
    count, functions = 0, len(functions_of(entry.function))

    class Listener(event.Listener):
        """Listener that counts the functions that Numba has compiled."""

        def on_start(self, _: Any) -> None:
            pass

        def on_end(self, _: Any) -> None:
            nonlocal count
            count += 1
            _tell((name, STAGES["optimise"] * min(1.0, count / functions)))

    with event.install_listener("numba:compile", Listener()):
        return object_of(
            entry, TARGETS[platform], lambda stage: _tell((name, STAGES[stage]))
        )


def compile_all(
    names: list[str], platform: str, first_run: bool, progress: Progress
) -> dict[str, bytes]:
    """Return the object files of these entries, from the cache or compiled now."""
    sources = _sources()
    weights = {name: len(functions_of(ENTRIES[name].function)) for name in names}
    files = {name: cached_object(ENTRIES[name], platform) for name in names}
    made = {
        name: path.read_bytes()
        for name, path in files.items()
        if path is not None and path.is_file()
    }
    shares = {name: float(name in made) for name in names}
    # Start the longest compilations first, so that none is left alone at the end.
    left = sorted(set(names) - made.keys(), key=lambda name: -weights[name])
    if not left:
        return made
    context = multiprocessing.get_context("spawn")
    processes = min(os.cpu_count() or 1, len(left))
    with context.Manager() as manager:
        messages = manager.Queue()
        with ProcessPoolExecutor(
            processes, context, _start_worker, (first_run, messages)
        ) as pool:
            jobs: dict[Future[bytes], str] = {
                pool.submit(compiled, name, platform): name for name in left
            }
            while jobs:
                with contextlib.suppress(queue.Empty):
                    name, share = messages.get(timeout=0.2)
                    shares[name] = max(shares[name], share)

                for job in [job for job in jobs if job.done()]:
                    name = jobs.pop(job)
                    made[name], shares[name] = job.result(), 1.0
                    # If a source changed meanwhile, the object may not match the name in the cache.
                    if _sources() == sources:
                        _keep(files[name], made[name])

                done = sum(weights[name] * shares[name] for name in names) / sum(
                    weights.values()
                )
                progress.show(
                    f"{100 * done:.0f} %, {len(made)} of {len(names)} compiled"
                )

    return made


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.kernels", description=__doc__
    )
    parser.add_argument(
        "--target",
        default=this_platform(),
        help="platform, such as linux-aarch64; default: this machine's platform",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        help="folder of the library; default: the folder in the package",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="compile again even if the library is current",
    )
    parser.add_argument(
        "--first-run",
        action="store_true",
        help="compile only the kernels that a run needs at its start",
    )
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="if the library cannot be built on this machine, print the reason and "
        "exit with status 0",
    )
    asked = parser.parse_args()
    if not asked.force and is_current(asked.folder, asked.target, asked.first_run):
        return 0
    progress = Progress("kernels")
    progress.show("starting the compiler")
    sources = _sources()
    call_entries(asked.first_run)
    from botyard.native.build import TARGETS, build, linker

    if asked.target not in TARGETS:
        print(f"{asked.target}: expected one of {', '.join(TARGETS)}", file=sys.stderr)
        return 0 if asked.if_possible else 2

    target = TARGETS[asked.target]
    try:
        linker(target)
    except RuntimeError as error:
        progress.end_line()
        print(
            f"kernels: {error}; without a library, the first start compiles the "
            "kernels",
            file=sys.stderr,
        )
        return 0 if asked.if_possible else 1

    names = sorted(name for name, entry in ENTRIES.items() if entry.kinds is not None)
    objects = compile_all(names, asked.target, asked.first_run, progress)
    if _sources() != sources:
        progress.end_line()
        print(
            "kernels: their sources have changed during the compilation; build them "
            "again",
            file=sys.stderr,
        )
        return 1

    made = build(
        [ENTRIES[n] for n in names],
        [objects[n] for n in names],
        target,
        asked.folder,
        not asked.first_run,
    )
    progress.done(f"{len(names)} compiled for {target.cpu}, in {made.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
