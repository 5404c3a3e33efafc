"""Coverage and duration of each test: recorded once, and again when a file of the code or the
tests changes.

`coverage` records for every line the tests that execute it (dynamic contexts).
Processes that a test starts are not traced.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData
from tools.mutants.changes import Change

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutants"
"""Folder of the records; not committed."""
SUITE = (
    *(
        f"tests/{name}"
        for name in (
            "leaves",
            "native",
            "model",
            "formats",
            "protocols",
            "engine",
            "devices",
            "controllers",
            "determinism",
        )
    ),
    *(
        f"tests/test_{name}.py"
        for name in ("portable_numbers", "api", "api_errors", "state", "journal")
    ),
)
"""Tests that are run: those of the layers below the servers (`make test-layers`)."""


def pytest_runtest_logreport(report) -> None:  # type: ignore[no-untyped-def]
    """Hook of pytest (``-p tools.mutants.covered``): writes a line for each phase of
    each test.
    """
    with Path(os.environ["BOTYARD_TIMES"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([report.nodeid, report.duration, report.outcome]) + "\n")


def state_of(tests: list[str]) -> str:
    """Return a digest of all code and of all tests."""
    digest = hashlib.blake2b(repr((sys.version, tests)).encode(), digest_size=8)
    for path in sorted(
        [
            *(ROOT / "src").rglob("*.py"),
            *(ROOT / "src").rglob("*.toml"),
            *(ROOT / "tests").rglob("*.py"),
        ]
    ):
        digest.update(
            str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0"
        )

    return digest.hexdigest()


@dataclass
class Record:
    """Coverage and durations of a run of the tests.

    Attributes
    ----------
    seconds : dict of str to float
        Duration of each test that has passed, s.
    lines : dict of str to dict of int to set of str
        For each file, relative to the checkout, and line: the tests that execute it.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]

    def tests(self, change: Change) -> set[str]:
        """Return the tests that cover a mutant: they execute its statement, or, for code that
        runs at import, any line of the function or file.
        """
        lines = self.lines.get(change.path, {})

        def of(first: int, last: int) -> set[str]:
            return set().union(
                *(lines.get(line, set()) for line in range(first, last + 1))
            )

        found = of(*change.lines)
        if change.at_import:
            found |= (
                of(*change.function)
                if change.function != (0, 0)
                else set().union(*lines.values())
            )

        return found


def record(tests: list[str], jobs: int) -> Record:
    """Record the tests; return the last record if no file has changed since."""
    folder = KEPT / state_of(tests)
    data, times = folder / "coverage", folder / "times"
    if not (folder / "complete").exists():
        print("recording which tests execute which lines ...", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        settings = folder / "settings"
        settings.write_text("[run]\nsource_pkgs = botyard\nomit = */kernels/*\n")
        env = {**os.environ, "BOTYARD_TIMES": str(times), "COVERAGE_FILE": str(data)}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--tb=short",
            "-p",
            "no:cacheprovider",
            "-p",
            "tools.mutants.covered",
        ]
        command += [
            f"--cov-config={settings}",
            "--cov",
            "--cov-context=test",
            "--cov-report=",
        ]
        workers = ["-n", str(jobs), "--dist", "loadgroup"] if jobs > 1 else []
        done = subprocess.run(
            [*command, *workers, *tests], cwd=ROOT, env=env, check=False
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"the tests could not be run (status {done.returncode})")
        (folder / "complete").touch()

    return read(data, times)


def read(data: Path, times: Path) -> Record:
    """Return the record stored in its files."""
    seconds: dict[str, float] = {}
    bad = set()
    for line in times.read_text("utf-8").splitlines():
        name, duration, outcome = json.loads(line)
        seconds[name] = seconds.get(name, 0.0) + duration
        if outcome != "passed":
            bad.add(name)

    for name in bad:
        del seconds[name]
    found = CoverageData(str(data))
    found.read()
    lines: dict[str, dict[int, set[str]]] = {}
    for file in found.measured_files():
        of_file = lines.setdefault(Path(file).relative_to(ROOT).as_posix(), {})
        for line, contexts in found.contexts_by_lineno(file).items():
            names = {
                context.rpartition("|")[0].partition("@")[0] for context in contexts
            }
            of_file[line] = {name for name in names if name in seconds}

    return Record(seconds, lines)
