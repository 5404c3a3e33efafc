"""Runs in processes:

results, and handling of runs that fail, hang, die or take too much.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from botyard.errors import CommandLineError
from botyard.studies import table
from botyard.studies.local import LocalStudy
from botyard.studies.messages import Done
from botyard.studies.plan import read_plan
from botyard.studies.results import Part, Row, read_rows
from botyard.studies.study import Study
from botyard.studies.table import write_csv
from tests.running import is_running
from tests.waiting import wait

LAB = """
import os, pathlib, signal, sys, time

HERE = pathlib.Path(__file__).parent

def called(name):
    with (HERE / "calls").open("a") as file:
        file.write(f"{name}\\n")

def drive(sim, params, seed):
    x = params["x"]
    called(f"{x}/{seed}")
    print("said", x)
    if x == "raises":
        raise ValueError(f"no way\\nfor {seed}")
    if x == "nothing":
        return None
    if x == "hangs":
        while True:
            time.sleep(0.1)
    if x == "clings":
        while True:
            try:
                time.sleep(0.1)
            except BaseException:
                pass
    if x == "dies" or (x == "dies once" and not (HERE / "died").exists()):
        if x == "dies once":
            (HERE / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if x == "exits":
        sys.exit(3)
    if x == "reads":
        return {"y": sys.stdin.read()}
    if x == "halves":
        return {"y": "\\udc80"}
    if x == "fails":
        import pytest
        pytest.fail("no more")
    if x == "large":
        return {"y": 10**400}
    if x == "speechless":
        class Odd(Exception):
            def __str__(self):
                raise self
        raise Odd
    if x == "comes back twice":
        if os.fork():
            os.wait()
    if x in ("leaves a heir", "leaves an heir in a session of its own"):
        pid = os.fork()
        if not pid:
            if "session" in x:
                os.setsid()
            time.sleep(600)
        (HERE / "heirs").open("a").write(f"{pid}\\n")
        os.kill(os.getpid(), signal.SIGKILL)
    if x == "pool":
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.map(time.sleep, [600])
    if x == "writes into pipes":
        for number in os.listdir("/proc/self/fd"):
            try:
                if "pipe" in os.readlink(f"/proc/self/fd/{number}"):
                    os.write(int(number), b"words\\n")
            except OSError:
                pass
        time.sleep(600)
    if x == "eats":
        return {"y": len(bytearray(500 * 2**20))}
    return {"y": f"{x}:{seed}", "z": seed / 3, "good": True}

def step(sim, params, seed):
    robot = sim.add_robot("p3dx", pose=(0, 0, 0))
    robot.command(v=0.3)
    while params["x"] == "for ever" or sim.time < 2:
        sim.step()
    if params["x"] == "raises":
        raise RuntimeError("late")
    return {"way": robot.truth.x}
"""


def study_of(folder: Path, text: str) -> Study:
    if not (folder / "lab.py").exists():
        (folder / "lab.py").write_text(LAB)
    (folder / "plan.yaml").write_text("study: 1\n" + text, "utf-8")
    return Study.open(read_plan(folder / "plan.yaml"), folder / "results")


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return sorted(path.read_text().splitlines()) if path.exists() else []


def by_x(study: Study) -> dict[str, Row]:
    return {str(row.values["x"]): row for row in study.rows.values()}


def test_one_and_two_workers_write_the_same_table(tmp_path: Path) -> None:
    text = "run: lab.py:drive\ngrid: {x: [1, raises, 2.5, [1, 2], true]}\nseeds: 7\nunits: {z: m}\n"
    tables = []
    for workers in (1, 2):
        study = study_of(tmp_path, text)
        seen: list[Done] = []
        study = study.carry_out(study.left(), workers, seen.append)
        assert len(seen) == 35
        tables.append(
            (
                study.write_table().read_bytes(),
                write_csv(study.table(), tmp_path / "t.csv").read_bytes(),
            )
        )
        study.folder.clear()

    assert tables[0] == tables[1]
    lines = tables[0][1].decode().splitlines()
    assert lines[0] == "key,x,seed,status,error,y,z [m],good"
    assert len(lines) == 36
    assert lines[8].partition(",")[2] == "raises,1,failed,ValueError: no way for 1,,,"


def test_parquet_has_types_and_units(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    study = study_of(
        tmp_path, "run: lab.py:drive\ngrid: {x: [1, raises]}\nunits: {z: m}\n"
    )
    study = study.carry_out(study.left(), 1)
    read = parquet.read_table(study.write_table())
    assert read.column("z").to_pylist() == [1 / 3, None]
    assert read.schema.field("z").metadata == {b"unit": b"m"}
    assert [
        str(read.schema.field(name).type) for name in ("x", "seed", "good", "z")
    ] == [
        "string",
        "int64",
        "bool",
        "double",
    ]


def test_without_pyarrow_the_table_is_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(
        tmp_path, "run: lab.py:drive\ngrid: {x: [1, =a, raises]}\nunits: {z: m}\n"
    )
    study = study.carry_out(study.left(), 1)
    monkeypatch.setattr(table, "is_there", lambda module: module != "pyarrow")
    path = study.write_table()
    lines = [line.partition(",")[2] for line in path.read_text("utf-8").splitlines()]
    assert path.name == "table.csv"
    assert lines == [
        "x,seed,status,error,y,z [m],good",
        f"1,1,ok,,1:1,{1 / 3},true",
        f"'=a,1,ok,,'=a:1,{1 / 3},true",
        "raises,1,failed,ValueError: no way for 1,,,",
    ]


@pytest.mark.skipif(os.name == "nt", reason="process groups of POSIX")
def test_a_program_ends_with_the_worker_that_is_killed(tmp_path: Path) -> None:
    """The program has its own session, kills the worker that started it, and would run
    forever.
    """
    (tmp_path / "program.py").write_text(
        "import os, pathlib, signal, time\npathlib.Path('pid').write_text(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1000)\n"
    )
    text = (
        f"program: {{command: [{sys.executable}, program.py], ready: "
        f"[bob]}}\nrobots: {{bob: p3dx}}\nmeasures: [time]\n"
    )
    study = study_of(tmp_path, text + "limits: {simulated: 5, retries: 0}\n")
    study = study.carry_out(study.left(), 1)
    assert study.counts()["lost"] == 1
    pid = int((tmp_path / "pid").read_text())
    wait(lambda: not is_running(pid))


def test_failures_are_rows_with_logs_and_the_worker_goes_on(tmp_path: Path) -> None:
    study = study_of(
        tmp_path, "run: lab.py:drive\ngrid: {x: [raises, nothing, exits, 1]}\n"
    )
    study = study.carry_out(study.left(), 1)
    rows = by_x(study)
    assert {x: (row.status, row.error) for x, row in rows.items()} == {
        "raises": ("failed", "ValueError: no way for 1"),
        "nothing": (
            "failed",
            "BadResultError: expected a dict of results, found NoneType",
        ),
        "exits": ("failed", "SystemExit: 3"),
        "1": ("ok", ""),
    }
    log = study.folder.log(rows["raises"].key).read_text()
    assert log.startswith("said raises\n")
    assert "Traceback" in log
    assert "in drive" in log
    assert not study.folder.log(rows["1"].key).exists()
    assert len(study.folder.parts) == 1


def test_resume_does_what_is_left_and_a_growing_grid_what_is_new(
    tmp_path: Path,
) -> None:
    text = "run: lab.py:drive\ngrid: {x: [1, raises]}\nseeds: 2\n"
    study = study_of(tmp_path, text)
    study = study.carry_out(study.left()[:3], 1)
    study = study_of(tmp_path, text)
    assert study.counts() == {"ok": 2, "failed": 1, "timeout": 0, "lost": 0, "left": 1}
    study = study.carry_out(study.left(), 2)
    assert calls(tmp_path) == ["1/1", "1/2", "raises/1", "raises/2"]
    study = study_of(
        tmp_path,
        text.replace("[1, raises]", "[2, raises, 1]").replace("seeds: 2", "seeds: 3"),
    )
    study = study.carry_out(study.left(), 2)
    assert calls(tmp_path) == sorted(
        f"{x}/{s}" for x in ("1", "2", "raises") for s in (1, 2, 3)
    )
    assert [run.values["x"] for run in study.left(only_failed=True)] == ["raises"] * 3
    smaller = study_of(tmp_path, text.replace("[1, raises]", "[2]"))
    assert smaller.counts() == {
        "ok": 2,
        "failed": 0,
        "timeout": 0,
        "lost": 0,
        "left": 0,
    }
    assert len(smaller.table()) == 2


def test_a_later_good_row_counts_and_a_piece_of_a_line_does_not(tmp_path: Path) -> None:
    text = "run: lab.py:drive\ngrid: {x: [1, dies once]}\nlimits: {retries: 0}\n"
    study = study_of(tmp_path, text)
    study = study.carry_out(study.left(), 1)
    assert by_x(study)["dies once"].status == "lost"
    study = study.carry_out(study.left(only_failed=True), 1)
    assert study.counts()["ok"] == 2
    study.folder.new_session()
    part = study.folder.part("000009-00000000", "001")
    one = Part(part)
    one.add(next(iter(study.rows.values())))
    one.close()
    part.write_bytes(
        part.read_bytes() + msgspec.json.encode(next(iter(study.rows.values())))[:-5]
    )
    assert len(list(read_rows(part))) == 1
    part.write_bytes(b"{}\n")
    with pytest.raises(CommandLineError, match=r"001\.jsonl:1: expected a row"):
        study.folder.rows()


def test_the_run_of_a_killed_worker_is_repeated_and_then_lost(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        "run: lab.py:drive\ngrid: {x: [1, dies, 2, dies once, 3]}\nlimits: "
        "{retries: 2}\nseeds: 1\n",
    )
    study = study.carry_out(study.left(), 2)
    rows = by_x(study)
    assert rows["dies"].status == "lost"
    assert rows["dies"].error == "the process of the run died (Killed), 3 times"
    assert [rows[x].status for x in ("1", "2", "3", "dies once")] == ["ok"] * 4
    assert calls(tmp_path) == [
        "1/1",
        "2/1",
        "3/1",
        *["dies once/1"] * 2,
        *["dies/1"] * 3,
    ]
    assert study.folder.log(rows["dies"].key).exists()


def test_what_hangs_is_ended_and_the_others_are_done(tmp_path: Path) -> None:
    """Also runs that catch every exception; other runs of the group go to another
    worker.
    """
    study = study_of(
        tmp_path,
        "run: lab.py:drive\ngrid: {x: [1, 2, hangs, 3, clings, 4]}\nlimits: {wall: 0.6}\n",
    )
    study = study.carry_out(study.left(), 1)
    rows = by_x(study)
    for x in ("hangs", "clings"):
        assert (rows[x].status, rows[x].error) == (
            "timeout",
            "the run took more than 0.6 s of wall time",
        )
        assert study.folder.log(rows[x].key).read_text().startswith(f"said {x}\n")

    assert [rows[str(x)].status for x in (1, 2, 3, 4)] == ["ok"] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_what_takes_too_much_memory_fails_alone(tmp_path: Path) -> None:
    study = study_of(
        tmp_path, "run: lab.py:drive\ngrid: {x: [eats, 1]}\nlimits: {memory: 200}\n"
    )
    study = study.carry_out(study.left(), 1)
    rows = by_x(study)
    assert (rows["eats"].status, rows["eats"].error) == (
        "failed",
        "MemoryError: more than 200 MiB",
    )
    assert rows["1"].status == "ok"
    assert len(study.folder.parts) == 1
    study = study_of(
        tmp_path, "run: lab.py:drive\ngrid: {x: [eats, 1]}\nlimits: {memory: 1000}\n"
    )
    study = study.carry_out(study.left(only_failed=True), 1)
    assert by_x(study)["eats"].result == {"y": 500 * 2**20}


def test_a_world_for_a_function_its_limit_and_its_recording(tmp_path: Path) -> None:
    text = (
        "run: lab.py:step\nmap: office\ngrid: {x: [fine, raises, for "
        "ever]}\nlimits: {simulated: 5}\nrecord: on-failure\n"
    )
    study = study_of(tmp_path, text)
    study = study.carry_out(study.left(), 2)
    rows = by_x(study)
    assert rows["fine"].result["way"] > 0.3
    assert (rows["for ever"].status, rows["for ever"].error) == (
        "timeout",
        "more than 5 s were simulated",
    )
    assert rows["raises"].status == "failed"
    there = {x: study.folder.recording(row.key).exists() for x, row in rows.items()}
    assert there == {"fine": False, "raises": True, "for ever": True}
    assert (
        study.folder.recording(rows["raises"].key)
        .read_bytes()
        .startswith(b"\x89MCAP0\r\n")
    )


def kill_a_worker(local: LocalStudy) -> None:
    """Kill a worker that lives; one that was killed may still be in the list."""
    for pid in local.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return
    raise AssertionError("no worker lives")


def test_a_killed_worker_of_many_runs_loses_none(tmp_path: Path) -> None:
    study = study_of(tmp_path, "run: lab.py:drive\ngrid: {x: [1]}\nseeds: 300\n")
    seen: list[str] = []

    def done(event: Done) -> None:
        seen.append(event.key)
        if len(seen) in (20, 90):
            kill_a_worker(local)

    local = LocalStudy(study.plan, study.folder, 2, done)
    local.carry_out(study.left())
    study = Study(study.plan, study.folder, study.runs, study.folder.rows())
    assert study.counts()["ok"] == 300
    assert len(local.pids) == 0


def test_what_cannot_be_loaded_ends_the_study(tmp_path: Path) -> None:
    study = study_of(tmp_path, "run: lab.py:drives\n")
    with pytest.raises(
        CommandLineError, match='cannot run the plan: ImportError: there is no "drives"'
    ):
        study.carry_out(study.left(), 2)

    (tmp_path / "lab.py").write_text("import os\nprint('bye', flush=True)\nos._exit(3)")
    study = study_of(tmp_path, "run: lab.py:drive\n")
    with pytest.raises(
        CommandLineError, match=r"before they are ready \(status 3\):\nbye"
    ):
        study.carry_out(study.left(), 1)


def test_a_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/lab.py").write_text(
        "import helper\ndef drive(sim, params, seed):\n    from pack import "
        "late\n    return {'y': helper.A + late.B}"
    )
    (tmp_path / "code/helper.py").write_text("A = 1")
    (tmp_path / "code/pack").mkdir()
    (tmp_path / "code/pack/late.py").write_text("B = 2")
    (tmp_path / "yaml.py").write_text(
        "raise RuntimeError"
        # A module in the plan's folder must not shadow an installed one.
    )
    (tmp_path / "code/msgspec.py").write_text("raise RuntimeError")
    (tmp_path / "plan.yaml").write_text("study: 1\nrun: code/lab.py:drive\n")
    study = Study.open(read_plan(tmp_path / "plan.yaml"), tmp_path / "results")
    (row,) = study.carry_out(study.left(), 1).rows.values()
    assert row.result == {"y": 3}


def test_what_runs_raise_read_and_return_is_theirs_alone(tmp_path: Path) -> None:
    text = (
        "run: lab.py:drive\ngrid: {x: [reads, halves, fails, speechless, large, 1]}\n"
    )
    study = study_of(tmp_path, text)
    study = study.carry_out(study.left(), 1)
    rows = by_x(study)
    assert {
        x: (row.status, row.error.partition(":")[0]) for x, row in rows.items()
    } == {
        "reads": ("ok", ""),
        "halves": ("failed", "BadResultError"),
        "fails": ("failed", "Failed"),
        "speechless": ("failed", "Odd"),
        "large": ("ok", ""),
        "1": ("ok", ""),
    }
    assert rows["reads"].result == {"y": ""}
    assert len(study.folder.parts) == 1
    assert str(10**400) in write_csv(study.table(), tmp_path / "t.csv").read_text()
    study.write_table()


def test_seeds_keep_all_their_digits(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for seeds in ([2**64 - 1, 3], [2**64 - 1, -3], [-3, 2**63 - 1]):
        study = study_of(
            tmp_path, f"run: lab.py:drive\ngrid: {{x: [1]}}\nseeds: {seeds}\n"
        )
        study = study.carry_out(study.left(), 1)
        assert [
            int(seed)
            for seed in parquet.read_table(study.write_table())
            .column("seed")
            .to_pylist()
        ] == seeds


@pytest.mark.skipif(sys.platform != "linux", reason="processes that are forked")
def test_processes_that_runs_leave_behind_hold_nothing_up(tmp_path: Path) -> None:
    """They hold the pipe that signals the worker's end; processes of the worker's
    session end with it.
    """
    odd = (
        "leaves a heir, leaves an heir in a session of its own, pool, comes "
        "back twice, writes into pipes"
    )
    study = study_of(
        tmp_path,
        f"run: lab.py:drive\ngrid: {{x: [{odd}, 1]}}\nlimits: {{wall: 2, retries: 0}}\n",
    )
    study = study.carry_out(study.left(), 1)
    heir, other = (int(line) for line in (tmp_path / "heirs").read_text().splitlines())
    os.kill(other, signal.SIGKILL)
    assert {x: row.status for x, row in by_x(study).items()} == {
        "leaves a heir": "lost",
        "leaves an heir in a session of its own": "lost",
        "pool": "timeout",
        "comes back twice": "ok",
        "writes into pipes": "lost",
        "1": "ok",
    }
    wait(lambda: not is_running(heir))
    assert sum(len(list(read_rows(part))) for part in study.folder.parts) == 6


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="a device that is always full"
)
def test_a_full_disk_ends_the_study_and_loses_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path, "run: lab.py:drive\ngrid: {x: [1, 2, 3]}\n")
    monkeypatch.setattr(type(study.folder), "part", lambda *_: Path("/dev/full"))
    with pytest.raises(CommandLineError, match="cannot write results: OSError"):
        study.carry_out(study.left(), 1)
    assert calls(tmp_path) == ["1/1"]
    assert study.folder.rows() == {}
