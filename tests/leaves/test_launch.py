"""Child processes end on request, or are killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from botyard.processes.launch import (
    PIPE,
    WITH_OUTPUT,
    Child,
    end_all,
    ending,
    last_lines,
)
from tests.waiting import PATIENCE, wait

posix = pytest.mark.skipif(os.name != "posix", reason="signals")
STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(1000)"
)


def child(code: str, **more: object) -> Child:
    return Child([sys.executable, "-c", code], **more)  # type: ignore[arg-type]


@posix
def test_a_child_that_does_not_end_is_killed_after_its_grace() -> None:
    with child(STUBBORN, output=PIPE) as one:
        assert one.output.readline() == b"ready\n"
        one.terminate()
        assert one.wait(0.05) is None
        one.end(0.05)
        assert one.status == -signal.SIGKILL


@posix
def test_several_children_share_one_grace() -> None:
    children = [child(STUBBORN, output=PIPE), child("input()", input=PIPE)]
    assert children[0].output.readline() == b"ready\n"
    end_all(children, 0.5)
    assert [ending(one.status or 0) for one in children] == ["Killed", "Terminated"]
    for one in children:
        one.close()


@posix
def test_the_children_of_a_child_end_with_its_group() -> None:
    code = (
        "import subprocess, sys; one = subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(1000)']); print(one.pid, flush=True); one.wait()"
    )
    with child(code, output=PIPE) as one:
        grandchild = int(one.output.readline())
        one.end(PATIENCE, group=True)

    def is_gone() -> bool:
        # An orphan that has ended stays a zombie until init reaps it.
        try:
            state = Path(f"/proc/{grandchild}/stat").read_text().rpartition(")")[2]
        except OSError:
            return True
        return state.split()[0] == "Z"

    wait(is_gone)


def test_what_a_dead_child_is_sent_is_dropped() -> None:
    with child("pass", input=PIPE) as one:
        assert one.wait(PATIENCE) == 0
        one.send(b"x" * 2**20)
        one.kill()
        one.end(0.0, group=True)
        assert one.status == 0


def test_output_goes_to_a_file_whose_last_lines_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import sys; print('a\\n\\nb'); sys.stdout.flush(); sys.exit('c')"
    with child(code, output=log, errors=WITH_OUTPUT) as one:
        assert ending(one.wait(PATIENCE) or 0) == "status 1"
    assert last_lines(log, 3) == ["", "b", "c"]
    assert last_lines(tmp_path / "none", 3) == []
