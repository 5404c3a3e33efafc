"""A child process for one job:

its resources are limited, it can be ended at any moment, and it leaves nothing behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from botyard.servers.jobs.child_jobs import MIB, Job, JobError, JobLimits
from tests.waiting import wait

ROOT = Path(__file__).resolve().parents[2]
TYPES = {"text": str}
AMPLE = JobLimits(time=100.0, memory=1024 * MIB)


@pytest.fixture(autouse=True)
def _find_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make this folder's modules importable in the child, and its temporary folders
    visible.
    """
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    )
    (tmp_path / "t").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))


def job(limits: JobLimits = AMPLE) -> Job:
    return Job("tests.servers.childjobs", limits)


def answers(how: str, limits: JobLimits = AMPLE) -> list[Any]:
    return [body for _, body in job(limits).run("how", how, TYPES)]


def children() -> list[int]:
    """Return the processes of this test; other workers of the suite have their own."""
    found, folder = [], os.fsencode(tempfile.gettempdir())
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line, environment = (
                    (entry / "cmdline").read_bytes(),
                    (entry / "environ").read_bytes(),
                )
            except OSError:
                continue

            if (
                b"tests.servers.childjobs" in line
                and b"importlib" in line
                and b"TMPDIR=" + folder in environment
            ):
                found.append(int(entry.name))

    return found


def test_answers_come_as_they_are_sent_and_nothing_is_left(tmp_path: Path) -> None:
    assert answers("nothing") == ["begun", "done"], "what a library prints is no answer"
    _, folder, _ = answers("litter")
    assert Path(folder).parent == tmp_path / "t"
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks at /proc")
def test_it_inherits_no_files_and_finds_no_modules_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # An empty part after the last colon stands for the working directory.
    monkeypatch.setenv(
        "PYTHONPATH",
        os.environ["PYTHONPATH"] + os.pathsep,
    )
    (tmp_path / "yaml.py").write_text("raise SystemExit('a stranger’s module was run')")
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        _, seen, _ = answers("look")
        files = seen[: seen.index("]")].count("'") // 2
        assert files <= 5, (
            f"its input, its answers twice, what it says, and the folder that is looked at: {seen}"
        )

    assert seen.endswith("True False False"), (
        "the terminal's interruptions do not reach it; no module is looked for here"
    )


@pytest.mark.parametrize("how", ["hang", "hold"])
def test_what_takes_too_long_is_ended(how: str) -> None:
    one = job(JobLimits(time=1.5))
    with pytest.raises(
        JobError,
        match=r"the job took more than 1\.5 s \(--job-time raises this limit\)",
    ):
        list(one.run("how", how, TYPES))

    assert children() == []


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems do not see to it"
)
def test_what_needs_too_much_memory_is_ended() -> None:
    with pytest.raises(
        JobError,
        match=r"the job needs more than 512 MiB of memory \(--job-memory raises this limit\)",
    ):
        answers("memory", JobLimits(time=100.0, memory=512 * MIB))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("killed", r"the child process of the job died \(Killed\)"),
        ("processor", "the job took more than 100 s"),
        ("raise", r"died \(status 1\): ValueError: something is wrong here"),
        ("nonsense", "sent an invalid answer"),
    ],
)
def test_what_dies_or_errs_is_told(how: str, why: str) -> None:
    with pytest.raises(JobError, match=why):
        answers(how)


def test_answers_without_end_are_cut_off() -> None:
    with pytest.raises(
        JobError, match="invalid answer: the message exceeds its size limit"
    ):
        for _ in job(JobLimits(time=100.0, memory=512 * MIB)).run(
            "how", "flood", TYPES
        ):
            pass


def test_it_can_be_ended_at_any_moment(tmp_path: Path) -> None:
    early = job()
    early.kill()
    with pytest.raises(JobError, match="the simulator is closing"):
        list(early.run("how", "nothing", TYPES))
    late = job()
    begun, ended = threading.Event(), []

    def work() -> None:
        try:
            for _ in late.run("how", "hold", TYPES):
                begun.set()
        except JobError as error:
            ended.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    late.kill()
    thread.join(60)
    assert ended == ["the simulator is closing"]
    assert children() == []
    assert list((tmp_path / "t").iterdir()) == []


def test_nobody_who_listens_no_longer_keeps_it() -> None:
    answers = job().run("how", "hang", TYPES)
    assert next(answers) == ("text", "begun")
    answers.close()
    assert children() == []


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="others need the interpreter for it"
)
def test_it_ends_with_whoever_has_asked_however_that_ends() -> None:
    code = (
        "from botyard.servers.jobs.child_jobs import *\n"
        "for kind, body in Job('tests.servers.childjobs', "
        "JobLimits(time=500.0)).run('how', 'hold', {'text': str}): print(body, flush=True)"
    )
    environment = os.environ | {"TMPDIR": tempfile.gettempdir()}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun\n"
        assert len(children()) == 1
        os.kill(parent.pid, signal.SIGKILL)

    wait(lambda: not children())
