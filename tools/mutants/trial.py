"""Trial of one mutant: a process of its own imports the mutated module and runs tests
until one fails.

The process is forked from one that has imported third-party packages (the compiler,
pytest) and nothing of botyard, so a mutant costs little more than its tests. The
mutated text is supplied by an import hook: no file changes. Processor time, memory and
size of files are limited; temporary files are in a folder of its own, which is also its working
directory. Needs fork (not on Windows).
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

MAX_MEMORY = 6 << 30
"""Address space of a mutant, bytes (RLIMIT_AS)."""
MAX_FILE_SIZE = 256 << 20
"""Size of a file that it may write, bytes (RLIMIT_FSIZE)."""
STARTUP_CPU_S = 10.0
"""Processor time for everything but the tests, s."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a trial.

    Attributes
    ----------
    verdict : str
        ``killed`` (a test has failed), ``import`` (no test could be run), ``limit`` (of
        time or memory, or the process died) or ``survived``.
    test : str
        The test that has failed, or how the process ended.
    """

    verdict: str
    test: str = ""


OTHERS = (
    "numba",
    "numpy",
    "pytest",
    "hypothesis",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "_hypothesis_pytestplugin",
    "msgspec",
    "yaml",
    "PIL.Image",
    "PIL.ImageDraw",
    "platformdirs",
    "click",
    "shapely",
    "ezdxf",
    "rosbags.typesys",
    "starlette.applications",
    "uvicorn",
    "websockets",
    "rich",
    "pymunk",
    "asyncio",
    "email",
    "sqlite3",
    "xml.dom.minidom",
    "http.server",
)
"""Third-party modules that the tests import, as far as they are installed."""


def load_others() -> None:
    """Import `OTHERS`, once for all mutants."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in OTHERS:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from `text` instead of its file."""

    text = b""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.text, self.path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, path: Path, text: bytes) -> None:
        self.module, self.path = module, path
        self.loader = _Loader(module, str(path))
        self.loader.text = text

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        folder = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self.loader, submodule_search_locations=folder
        )


class _Watcher:
    """Pytest plugin that collects the tests that have failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report) -> None:  # type: ignore[no-untyped-def]
        if report.failed:
            self.failed.append(report.nodeid)


def module_name(path: str) -> str:
    """Return the name of the module of a file of ``src``."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Trial:
    """A running trial. Made by a process with a single thread: a fork copies one thread
    only, but the locks of all.

    Parameters
    ----------
    root : Path
        The checkout.
    path : str
        The file, relative to it; ``text`` is its mutated text, or None: no mutant.
    tests : list of str
        Ids of tests.
    seconds : float
        How long they take without a mutant, when each line is traced. Their limit of
        processor time is twice that, plus `STARTUP_CPU_S`; on the clock it is ten times
        as long, for a machine may be busy.
    stop : bool
        Whether to stop at the first failure; else `Outcome.test` has a line for each.
    """

    def __init__(
        self,
        root: Path,
        path: str,
        text: bytes | None,
        tests: list[str],
        seconds: float,
        stop: bool = True,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="botyard-mutant-"))
        limit = STARTUP_CPU_S + 2.0 * seconds
        self.until = time.monotonic() + 10.0 * limit
        sys.stdout.flush()
        self.child = os.fork()
        if self.child == 0:
            try:
                _child(root, path, text, tests, self.folder, limit, stop)
            finally:
                os._exit(99)

    def poll(self) -> Outcome | None:
        """Return the outcome; None while the trial runs."""
        done, status = os.waitpid(self.child, os.WNOHANG)
        if done:
            self._clean()
        elif time.monotonic() < self.until:
            return None
        else:
            status = self.end()

        outcome = _outcome(status, self.folder / "outcome")
        shutil.rmtree(self.folder, ignore_errors=True)
        return outcome

    def end(self) -> int:
        """Kill the process and return its wait status."""
        os.kill(self.child, signal.SIGKILL)
        status = os.waitpid(self.child, 0)[1]
        self._clean()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status

    def _clean(self) -> None:
        """Kill processes that the trial's tests have left behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child, signal.SIGKILL)

    def wait(self) -> Outcome:
        """Wait for the outcome and return it."""
        pause = 0.002
        while (outcome := self.poll()) is None:
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)

        return outcome


def _child(
    root: Path,
    path: str,
    text: bytes | None,
    tests: list[str],
    folder: Path,
    limit: float,
    stop: bool,
) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = str(folder)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_SIZE, MAX_FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.pycache_prefix = str(root / ".mutants" / "compiled")
    sys.path[:0] = [str(root), str(root / "src")]
    if text is not None:
        sys.meta_path.insert(0, _Finder(module_name(path), root / path, text))
    import pytest

    watcher = _Watcher()
    # Switch off pytest's rewriting of asserts, which would compile the tests again for each mutant.
    options = [
        "-q",
        "--assert=plain",
        "--tb=no",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:anyio",
        f"--basetemp={folder / 'pytest'}",
    ]
    options += [
        f"--rootdir={root}",
        "-c",
        str(root / "pyproject.toml"),
        *(["-x"] if stop else []),
    ]
    status = int(
        pytest.main(
            [*options, *(f"{root}/{test}" for test in tests)], plugins=[watcher]
        )
    )
    (folder / "outcome").write_text(json.dumps([status, watcher.failed]))
    os._exit(0)


def _outcome(status: int, file: Path) -> Outcome:
    code = os.waitstatus_to_exitcode(status)
    try:
        result, failed = json.loads(file.read_text())
    except (OSError, ValueError):
        return Outcome(
            "limit",
            f"ended by signal {-code}" if code < 0 else f"ended with status {code}",
        )

    if failed:
        return Outcome("killed", "\n".join(failed))
    if result in (0, 5):
        return Outcome("survived")
    return Outcome("import", f"pytest ended with status {result}")
