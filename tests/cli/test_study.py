"""``botyard study``: exit statuses, events, Ctrl-C, and the files that it keeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from botyard.studies.results import Folder
from tests.cli.test_cli import call
from tests.running import BOTYARD, is_running
from tests.waiting import PATIENCE, wait

LAB = """
import os, pathlib, time

HERE = pathlib.Path(__file__).parent

def drive(sim, params, seed):
    (HERE / f"pid-{os.getpid()}").touch()
    with (HERE / "calls").open("a") as file:
        file.write(f"{seed}\\n")
    if (HERE / "slow").exists():
        time.sleep(0.1 if seed <= 3 else 1000)
    if params["x"] == "bad":
        raise ValueError("no way")
    return {"y": seed}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.py").write_text(LAB)
    (tmp_path / "plan.yaml").write_text(
        "study: 1\nrun: lab.py:drive\ngrid: {x: [good]}\nseeds: 5\n"
    )
    return tmp_path / "plan.yaml"


def calls(plan: Path) -> int:
    return len((plan.parent / "calls").read_text().splitlines())


def test_a_study_its_resumption_and_what_is_repeated(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call("study", "check", str(plan), capsys=capsys)
    assert code == 0
    assert out.startswith("5 runs of plan: x (1 values) × seed (5)\none run takes ")
    assert not (plan.parent / "plan-results").exists()
    before = calls(plan)
    code, out, _ = call("study", str(plan), "-n", "2", capsys=capsys)
    assert (code, out.splitlines()[0]) == (0, "5 ok")
    assert Path(out.splitlines()[1].partition(":")[0]).exists()
    assert calls(plan) == before + 5
    code, _, err = call("study", str(plan), capsys=capsys)
    assert (code, "already holds 5 results: --resume continues" in err) == (255, True)
    plan.write_text(plan.read_text().replace("[good]", "[good, bad]"))
    code, out, err = call("study", str(plan), "--resume", "--json", capsys=capsys)
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert (events[0]["event"], events[0]["to_do"], events[0]["runs"]) == (
        "begin",
        5,
        10,
    )
    assert [(e["status"], e["error"]) for e in events[1:-1]] == [
        ("failed", "ValueError: no way")
    ] * 5
    assert (events[-1]["ok"], events[-1]["failed"], events[-1]["left"]) == (5, 5, 0)
    assert calls(plan) == before + 10
    code, out, err = call("study", str(plan), "--only", "failed", capsys=capsys)
    assert (
        code,
        "5 to do" in err,
        "failed: x=bad, seed=1: ValueError: no way (log: " in out,
    ) == (1, True, True)
    assert calls(plan) == before + 15
    code, out, _ = call("study", str(plan), "--force", capsys=capsys)
    assert (code, calls(plan)) == (1, before + 25)


def test_results_stay_where_the_plan_cannot_begin_anew(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("study", str(plan), capsys=capsys)[0] == 0
    parts = list(plan.parent.glob("*-results/parts/*"))
    plan.write_text(plan.read_text() + "files: [nowhere]\n")
    code, _, err = call("study", str(plan), "--force", capsys=capsys)
    assert (code, "expected an existing file" in err) == (255, True)
    assert parts and all(path.exists() for path in parts)


def test_nothing_of_the_users_is_overwritten(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan.parent / "table.parquet").write_bytes(b"mine")
    (plan.parent / "logs").mkdir()
    (plan.parent / "logs" / "mine.log").write_bytes(b"mine")
    code, _, err = call("study", str(plan), "-o", ".", "--force", capsys=capsys)
    assert (code, "was not written by botyard" in err) == (255, True)
    assert (plan.parent / "table.parquet").read_bytes() == b"mine"
    assert (plan.parent / "logs" / "mine.log").exists()


def test_what_is_wrong_is_said_in_one_line(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.write_text("study: 1\nrun: lab.py:drive\ngrd: {}\n")
    code, _, err = call("study", str(plan), capsys=capsys)
    assert (code, err) == (
        255,
        f'botyard: error: {plan}:3: there is no key "grd" here; did you mean "grid"?\n'
        "See: docs/howto/study.md\n",
    )
    plan.write_text("study: 1\nrun: lab.py:drive\ngrid: {x: [bad]}\n")
    code, _, err = call("study", "check", str(plan), capsys=capsys)
    assert (code, "the first run is not ok: failed: ValueError: no way" in err) == (
        255,
        True,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_keeps_what_has_ended_and_leaves_no_process(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan.parent / "slow").touch()
    process = subprocess.Popen(
        [*BOTYARD, "study", str(plan), "-n", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=plan.parent,
    )
    folder = Folder(plan.parent / "plan-results")
    try:
        wait(
            lambda: (
                len(folder.rows()) == 3
                and (plan.parent / "calls").exists()
                and calls(plan) == 5
            )
        )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()

    assert process.returncode == 130
    assert "the results so far are kept in plan-results; --resume continues" in err
    pids = [int(path.name.partition("-")[2]) for path in plan.parent.glob("pid-*")]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    assert len(folder.rows()) == 3
    (plan.parent / "slow").unlink()
    code, out, _ = call("study", str(plan), "--resume", capsys=capsys)
    assert (code, out.splitlines()[0]) == (0, "5 ok")
    assert calls(plan) == 7


@pytest.mark.skipif(os.name == "nt", reason="locks of folders are those of POSIX")
def test_two_studies_do_not_write_into_one_folder(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan.parent / "slow").touch()
    folder = Folder(plan.parent / "plan-results")
    process = subprocess.Popen(
        [*BOTYARD, "study", str(plan), "-n", "2"],
        stderr=subprocess.DEVNULL,
        cwd=plan.parent,
    )
    try:
        wait(lambda: len(folder.rows()) == 3)
        for option in ("--resume", "--force"):
            line = [*BOTYARD, "study", str(plan), option]
            second = subprocess.run(
                line, capture_output=True, text=True, cwd=plan.parent, timeout=PATIENCE
            )
            assert (
                second.returncode,
                "plan-results: another study is writing its results there"
                in second.stderr,
            ) == (255, True)

        assert len(folder.rows()) == 3
        assert call("study", "check", str(plan), "--no-run", capsys=capsys)[0] == 0, (
            "who only reads may"
        )
    finally:
        process.kill()
        process.wait()

    (plan.parent / "slow").unlink()
    assert call("study", str(plan), "--resume", capsys=capsys)[0] == 0


def test_a_folder_in_which_nothing_is_written_is_not_left(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.write_text(plan.read_text() + "files: [nowhere]\n")
    assert call("study", str(plan), capsys=capsys)[0] == 255
    assert not list(plan.parent.glob("plan-results"))
    (plan.parent / "plan-results").write_text("mine")
    code, _, err = call("study", str(plan), capsys=capsys)
    assert (code, "cannot write results" in err) == (255, True)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_workers_end_when_the_study_is_killed(plan: Path) -> None:
    (plan.parent / "slow").touch()
    process = subprocess.Popen(
        [*BOTYARD, "study", str(plan), "-n", "2"],
        stderr=subprocess.DEVNULL,
        cwd=plan.parent,
    )
    try:
        wait(lambda: (plan.parent / "calls").exists() and calls(plan) == 5)
    finally:
        process.kill()
        process.wait()

    pids = [int(path.name.partition("-")[2]) for path in plan.parent.glob("pid-*")]
    assert len(pids) == 2
    wait(lambda: not any(map(is_running, pids)))
