"""Fuzzer: searches for inputs that break botyard: ``python tools/fuzz.py --minutes 5``
(``make fuzz``).

Two searches run at once, each with new random examples: the property tests, with
Hypothesis, round after round; and the targets of atheris (``tests/**/fuzz_*.py``),
guided by coverage. Corpus and failing examples are kept in ``.hypothesis-fuzz``: the
next run goes on from there, and tries first what has failed. Status 1: something was
found, and how to reproduce it is printed; 2: nothing was found, but a part of the
search was killed before its time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(os.environ.get("BOTYARD_FUZZ_KEPT", ROOT / ".hypothesis-fuzz"))

KILL_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP")
    if hasattr(signal, name)
)
"""Signals by which other processes end one; those of faults (SIGSEGV, SIGABRT …) are
findings.
"""
INTERRUPT_STATUS = 72
"""Exit status of libFuzzer after such a signal (FuzzerOptions.h, InterruptExitCode)."""
ARTIFACT_KINDS = ("crash", "timeout", "oom", "leak")
"""Prefixes of libFuzzer's files with failing inputs."""
STOP_GRACE_S = 15.0
"""Time after the end of the search for a target to stop by itself, s."""


def targets() -> list[Path]:
    """Return the fuzz targets for atheris."""
    return sorted((ROOT / "tests").rglob("fuzz_*.py"))


def start_target(target: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Start a target in the background for `seconds`; keep its corpus and its log."""
    folder = KEPT / target.stem
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    limits = [
        f"-max_total_time={max(1, round(seconds))}",
        "-max_len=400",
        "-len_control=0",
        "-print_final_stats=1",
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [
                sys.executable,
                str(target),
                *limits,
                f"-artifact_prefix={folder}/",
                str(corpus),
            ],
            cwd=folder,
            env=environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def ended(process: subprocess.Popen[bytes], latest: float) -> int:
    """Wait until the time `latest` for a target's exit status. A target that is late on a busy
    machine is stopped, which is no failure.
    """
    try:
        return process.wait(timeout=max(0.0, latest - time.time()))
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return 0


def was_killed(status: int) -> bool:
    """Return whether another process or the system killed a process, as opposed to a fault of
    its own.
    """
    return status in (*(-s for s in KILL_SIGNALS), INTERRUPT_STATUS)


def artifacts(folder: Path, since: float) -> list[Path]:
    """Return the failing inputs of a target in this run, oldest first."""
    made = [
        (p.stat().st_mtime, p)
        for kind in ARTIFACT_KINDS
        for p in folder.glob(f"{kind}-*")
    ]
    return [p for t, p in sorted(made) if t >= since]


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which this checkout's modules and tests are found first."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def explore(paths: list[str], end: float, jobs: int) -> tuple[list[str], str]:
    """Run the property tests, round after round, until `end`. Returns ids of those that
    failed, and what was killed, if anything.
    """
    failed: list[str] = []
    rounds = 0
    while time.time() < end and not failed:
        rounds += 1
        print(f"round {rounds} of the property tests ...", flush=True)
        env = environment(
            BOTYARD_HYPOTHESIS="fuzz",
            BOTYARD_FUZZ_UNTIL=str(end),
            BOTYARD_FUZZ_SEED=str(random.randrange(1 << 30)),
        )
        workers = ["-n", str(jobs)] if jobs > 1 else []
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-m",
            "property",
            "-q",
            "--tb=short",
            "-rf",
            "-p",
            "no:cacheprovider",
            *workers,
            *paths,
        ]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if was_killed(done.returncode) and not failed:
            return [], f"the property tests (status {done.returncode})"
        if done.returncode not in (0, 5) or failed:
            print(done.stdout, done.stderr, sep="\n")
            failed = failed or [f"pytest (status {done.returncode})"]
        else:
            print(done.stdout.strip().splitlines()[-1], flush=True)

    return failed, ""


def main() -> int:
    """Search; return 1 if a failure was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=5.0,
        help="duration of the search, min; a test that runs at the end is completed",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=max(1, (os.cpu_count() or 1) - 1),
        help="number of processes for property tests",
    )
    parser.add_argument(
        "--no-targets",
        action="store_true",
        help="run only property tests, without targets of atheris",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        default=["tests"],
        help="files or folders whose property tests are run",
    )
    args = parser.parse_args()
    end = time.time() + 60.0 * args.minutes
    running: dict[Path, subprocess.Popen[bytes]] = {}
    if not args.no_targets and importlib.util.find_spec("atheris") is None:
        print("atheris has no wheel for this platform: property tests only")
    elif not args.no_targets:
        running = {
            target: start_target(target, end - time.time()) for target in targets()
        }

    found = []
    # File systems may store times in whole seconds, so allow a second.
    begun = time.time() - 1.0
    try:
        failed, cut = explore(args.paths, end, args.jobs)
        killed = [cut] if cut else []
        found += [
            f"{name}\n  BOTYARD_HYPOTHESIS=fuzz {sys.executable} -m pytest '{name}'"
            for name in failed
        ]
        for target, process in running.items():
            status = ended(process, end + STOP_GRACE_S)
            folder = KEPT / target.stem
            said = (folder / "log").read_text("utf-8", "replace").splitlines()
            print("\n".join(said[-12:] if status else said[-4:]))
            crashes = artifacts(folder, begun)
            if was_killed(status) and not crashes:
                killed.append(f"{target.name} (status {status})")
            elif status:
                found.append(
                    f"{target.name}\n  {sys.executable} {target} {crashes[-1] if crashes else ''}"
                )
    finally:
        for process in running.values():
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()

    if found:
        print("found, each with the command that repeats it:\n" + "\n".join(found))
        return 1

    print(
        "nothing was found"
        + (
            f"; ended from outside before the time was over: {', '.join(killed)}"
            if killed
            else ""
        )
    )
    return 2 if killed else 0


if __name__ == "__main__":
    sys.exit(main())
