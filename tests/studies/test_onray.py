"""Studies on Ray:

a real cluster of two nodes, one of which is killed; the data sent to it, and errors
when it cannot be sent.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from botyard.cli.study import run
from botyard.errors import CommandLineError
from botyard.studies import bundle, onray, raytask
from botyard.studies.bundle import copy_files
from botyard.studies.groups import GROUP_S, MAX_GROUP, Pace, group_size, take_group
from botyard.studies.messages import Item
from botyard.studies.onray import RayStudy
from botyard.studies.plan import LimitKeys, read_plan
from botyard.studies.raymessages import (
    Ended,
    Order,
    Refused,
    TaskGroup,
    decode_told,
    encode,
)
from botyard.studies.results import Folder
from botyard.studies.run_hash import files_of
from botyard.studies.study import Study
from botyard.version import __version__
from tests.cli.test_cli import call
from tests.running import BOTYARD, is_running
from tests.studies.raycluster import token_env
from tests.waiting import PATIENCE, wait

CALLS = """
import os, pathlib, signal, sys, time
import helper

def called(*what):
    with open(r"CALLS", "a") as file:
        print(os.getpid(), *what, file=file)
"""
LAB = (
    CALLS
    + """
def step(sim, params, seed):
    called(params["x"], seed)
    print("said", params["x"])
    robot = sim.add_robot("p3dx", pose=(1, 2, 0))
    robot.command(v=0.3)
    while params["x"] == "for ever" or sim.time < 2:
        sim.step()
    if params["x"] == "raises":
        raise FileNotFoundError(f"there is no {pathlib.Path(__file__).parent / 'it'}")
    if params["x"] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
    return {"way": robot.truth.x / 3, "seed squared": seed * seed, "good": helper.GOOD, "name": f"é{seed}"}
"""
)
SLOW = (
    CALLS
    + """
def drive(sim, params, seed):
    called(seed)
    time.sleep(0.05 if seed <= 3 or pathlib.Path(r"CALLS").with_name("go").exists() else 1000)
    return {"y": seed}
"""
)
PLAN = """study: 1
run: lab.py:step
map: lab.yaml
grid: {x: [fine, raises, dies, for ever]}
seeds: 5
limits: {simulated: 5, retries: 0}
record: on-failure
"""
MAP = "botyard: 1\nwalls:\n- [[0, 0], [6, 0], [6, 4], [0, 4], [0, 0]]\n"


class RayCluster:
    """The other end of `tests.studies.raycluster`."""

    def __init__(self) -> None:
        self.env = token_env()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.studies.raycluster", "1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **self.env},
        )
        self._address = ""

    def _said(self, word: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()

        pytest.fail("the cluster has ended")

    @property
    def address(self) -> str:
        self._address = self._address or self._said("address ")
        return self._address

    def kill_second_node(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self._said("removed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    if sys.platform != "linux":
        pytest.skip("nodes with addresses of their own on one computer: Linux")
    if importlib.util.find_spec("ray") is None:
        if os.environ.get("CI"):
            pytest.fail("Ray is missing, and in CI it must be there (the extra ray)")
        pytest.skip("Ray is missing: the extra ray")

    one = RayCluster()
    try:
        yield one
    finally:
        # The process ends when its input ends.
        one.process.communicate(timeout=PATIENCE)


def write_lab(folder: Path, plan: str, lab: str) -> Path:
    (folder / "lab.py").write_text(lab.replace("CALLS", str(folder / "calls")), "utf-8")
    (folder / "helper.py").write_text("GOOD = True\n", "utf-8")
    (folder / "lab.yaml").write_text(MAP, "utf-8")
    (folder / "plan.yaml").write_text(plan, "utf-8")
    return folder / "plan.yaml"


def calls(folder: Path) -> list[list[str]]:
    path = folder / "calls"
    return (
        [line.split() for line in path.read_text("utf-8").splitlines()]
        if path.exists()
        else []
    )


def started(
    plan: Path, cluster: RayCluster, *options: str, **env: str
) -> subprocess.Popen[str]:
    """Start a study on Ray.

    The cluster's address is an argument unless RAY_ADDRESS is set.
    """
    address = () if "RAY_ADDRESS" in env else (cluster.address,)
    return subprocess.Popen(
        [*BOTYARD, "study", str(plan), "--ray", *address, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=plan.parent,
        env={**os.environ, **cluster.env, **env},
    )


def said_by(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the output of a process until it ends."""
    try:
        return process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.peer
@pytest.mark.xdist_group("ray")
def test_ctrl_c_keeps_what_has_ended_and_resuming_does_the_rest(
    cluster: RayCluster, tmp_path: Path
) -> None:
    plan = write_lab(tmp_path, "study: 1\nrun: lab:drive\nseeds: 6\n", SLOW)
    process = started(plan, cluster)
    folder = Folder(tmp_path / "plan-results")
    try:
        wait(lambda: len(folder.rows()) == 3 and len(calls(tmp_path)) == 5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()

    assert process.returncode == 130
    assert "the results so far are kept in plan-results; --resume continues" in err
    assert len(folder.rows()) == 3
    wait(lambda: not any(is_running(int(pid)) for pid, _ in calls(tmp_path)))
    (tmp_path / "go").touch()
    process = started(plan, cluster, "--resume", "-n", "1", RAY_ADDRESS=cluster.address)
    out, err = said_by(process)
    assert (process.returncode, out.splitlines()[0]) == (0, "6 ok"), err
    assert sorted(seed for _, seed in calls(tmp_path)) == [
        "1",
        "2",
        "3",
        "4",
        "4",
        "5",
        "5",
        "6",
    ]
    assert len({pid for pid, _ in calls(tmp_path)[5:]}) == 1


@pytest.mark.peer
@pytest.mark.xdist_group("ray")
def test_who_has_no_token_runs_nothing(cluster: RayCluster, tmp_path: Path) -> None:
    """Ray's ports listen on all addresses of the computer."""
    plan = write_lab(tmp_path, "study: 1\nrun: lab:drive\n", SLOW)
    process = started(
        plan, cluster, RAY_AUTH_TOKEN="0" * 64, RAY_NUM_REDIS_GET_RETRIES="2"
    )
    _, err = said_by(process)
    assert process.returncode == 255
    assert "or requires a token (RAY_AUTH_MODE=token and RAY_AUTH_TOKEN" in err
    assert calls(tmp_path) == []


@pytest.mark.peer
@pytest.mark.xdist_group("ray")
def test_what_a_node_cannot_load_ends_the_study(
    cluster: RayCluster, tmp_path: Path
) -> None:
    """A module with a computed name, which is therefore not sent."""
    lab = SLOW.replace(
        "import helper",
        "import importlib; helper = importlib.import_module('help' + 'er')",
    )
    plan = write_lab(tmp_path, "study: 1\nrun: lab.py:drive\n", lab)
    process = started(plan, cluster)
    _, err = said_by(process)
    assert process.returncode == 255
    assert (
        "plan.yaml: cannot run the plan: ModuleNotFoundError: No module named 'helper'"
        in err
    )


@pytest.mark.peer
@pytest.mark.xdist_group("ray")
def test_the_table_is_that_of_one_computer_also_when_a_node_is_killed(
    cluster: RayCluster, tmp_path: Path
) -> None:
    """The last test, because the cluster has only one node afterwards."""
    local, remote = tmp_path / "local", tmp_path / "remote"
    for folder in (local, remote):
        folder.mkdir()
    study = Study.open(read_plan(write_lab(local, PLAN, LAB)), local / "results")
    study = study.carry_out(study.left(), 2)
    expected = study.write_table().read_bytes()
    plan = write_lab(remote, PLAN, LAB.replace("CALLS", str(local / "calls")))
    (local / "calls").unlink()
    process = started(plan, cluster)
    folder = Folder(remote / "plan-results")
    try:
        wait(lambda: len(folder.rows()) >= 6)
        at_the_time = len(folder.rows())
        cluster.kill_second_node()
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()

    assert process.returncode == 1, err
    assert at_the_time < 20
    assert out.splitlines()[0] == "5 ok, 5 failed, 5 timeout, 5 lost"
    assert (folder.path / "table.parquet").read_bytes() == expected
    rows = folder.rows()
    assert {row.error for row in rows.values() if row.status == "failed"} == {
        "FileNotFoundError: there is no it"
    }
    for row in rows.values():
        log, recording = folder.log(row.key), folder.recording(row.key)
        assert log.exists() == (row.status != "ok")
        if row.status in ("failed", "timeout"):
            assert log.read_text("utf-8").startswith(f"said {row.values['x']}\n")
            assert (
                recording.read_bytes()[:6] + recording.read_bytes()[-6:]
                == b"\x89MCAP0MCAP0\r\n"[:6] + b"CAP0\r\n"
            )
        elif row.status == "ok":
            assert not recording.exists()


# -- without a cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "study"


def test_the_files_for_kubernetes_and_slurm_are_whole() -> None:
    """They are valid, consistent, require tokens, and use botyard's command lines."""
    claim, job = yaml.safe_load_all((EXAMPLES / "rayjob.yaml").read_text("utf-8"))
    kustomization = yaml.safe_load((EXAMPLES / "kustomization.yaml").read_text("utf-8"))
    assert [(EXAMPLES / name).is_file() for name in kustomization["resources"]] == [
        True
    ]
    (files,) = kustomization["configMapGenerator"]
    plan = read_plan(EXAMPLES / "plan.yaml")
    assert {str(path.relative_to(EXAMPLES)) for path in files_of(plan)} | {
        "plan.yaml"
    } == set(files["files"])
    head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in head["volumes"]}
    assert volumes["study"]["configMap"]["name"] == files["name"]
    assert (
        volumes["results"]["persistentVolumeClaim"]["claimName"]
        == claim["metadata"]["name"]
    )
    mounts = {
        mount["name"]: mount["mountPath"]
        for mount in head["containers"][0]["volumeMounts"]
    }
    script = (EXAMPLES / "slurm.sh").read_text("utf-8")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    (line,) = re.findall(r"^botyard study (.*)$", script, re.MULTILINE)
    assert "RAY_AUTH_MODE=token" in script
    assert job["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    entry = job["spec"]["entrypoint"].removeprefix("botyard study ")
    for text, address in ((line, "$address"), (entry, "auto")):
        parameters = run.make_context("run", shlex.split(text)).params
        assert (parameters["ray"], parameters["resume"]) == (address, True)

    assert parameters["plan"] == Path(mounts["study"], "plan.yaml")
    assert parameters["output"].is_relative_to(mounts["results"])
    for group in (
        job["spec"]["rayClusterSpec"]["headGroupSpec"],
        *job["spec"]["rayClusterSpec"]["workerGroupSpecs"],
    ):
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]

    version = job["spec"]["rayClusterSpec"]["rayVersion"]
    assert f"FROM rayproject/ray:{version}-py" in (
        EXAMPLES.parents[1] / "deploy/Containerfile.ray"
    ).read_text("utf-8")


def test_only_files_that_the_plan_names_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "pack/__init__.py",
        "pack/sub/lab.py",
        "lab.yaml",
        "a.csv",
        "secret.txt",
        "data/1.bin",
        "data/2.bin",
        "run.sh",
        "beside.py",
        "own/beneath.py",
    ):
        path = tmp_path / "plan" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MAP if name == "lab.yaml" else "", "utf-8")

    (tmp_path / "plan" / "run.sh").chmod(0o755)
    (tmp_path / "plan" / "pack/sub/lab.py").write_text("import own.beneath\n", "utf-8")
    (tmp_path / "outside.yaml").write_text(MAP, "utf-8")
    plan = tmp_path / "plan" / "plan.yaml"
    text = (
        "study: 1\nrun: pack.sub.lab:f\nmap: $m\nrobots: {a: $p}\ngrid: {m: "
        "[lab.yaml, office], p: [data/1.bin, p3dx]}\n"
    )
    plan.write_text(text + "files: [a.csv, run.sh]\n", "utf-8")
    expected = [
        "a.csv",
        "data/1.bin",
        "lab.yaml",
        "own/beneath.py",
        "pack/__init__.py",
        "pack/sub/lab.py",
        "run.sh",
    ]
    copied = copy_files(read_plan(plan), tmp_path / "copy")
    assert [str(path) for path in copied] == expected
    assert (
        sorted(
            str(p.relative_to(tmp_path / "copy"))
            for p in (tmp_path / "copy").rglob("*")
            if p.is_file()
        )
        == expected
    )
    assert os.access(tmp_path / "copy" / "run.sh", os.X_OK)
    plan.write_text(text.replace("office", "../outside.yaml"), "utf-8")
    with pytest.raises(
        CommandLineError,
        match=r"expected files in the plan's folder, .* found \.\./outside\.yaml",
    ):
        copy_files(read_plan(plan), tmp_path / "other")

    plan.write_text(text.replace("office", str(tmp_path / "outside.yaml")), "utf-8")
    assert len(copy_files(read_plan(plan), tmp_path / "other")) == 5
    monkeypatch.setattr(bundle, "MAX_SENT_BYTES", 10)
    with pytest.raises(
        CommandLineError,
        match=r"expected at most 0 MiB of files .* found more with lab\.yaml",
    ):
        copy_files(read_plan(plan), tmp_path / "more")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://somewhere:10001", 'expected host:port, found "ray://somewhere:10001"'),
        ("plan.yaml", 'expected host:port, found "plan.yaml"'),
        ("127.0.0.1:1", "--ray 127.0.0.1:1: no cluster answers"),
    ],
)
def test_no_cluster_is_said_at_once(
    address: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(onray, "is_there", lambda _module: True)
    plan = write_lab(tmp_path, "study: 1\nrun: lab.py:drive\n", SLOW)
    code, _, err = call("study", str(plan), "--ray", address, capsys=capsys)
    assert (code, words in err, err.count("\n")) == (255, True, 3), err
    kept = tmp_path / "results" / "logs" / f"{7:016x}.log"
    kept.parent.mkdir(parents=True)
    kept.touch()
    more = "-o", str(tmp_path / "results"), "--force", "--ray", address
    assert call("study", str(plan), *more, capsys=capsys)[0] == 255
    assert kept.exists(), "results are there as long as it cannot begin anew"


def test_without_the_extra_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onray, "is_there", lambda module: module != "ray")
    plan = read_plan(write_lab(tmp_path, "study: 1\nrun: lab.py:drive\n", SLOW))
    with pytest.raises(
        CommandLineError, match='--ray needs the extra "ray", which is not installed'
    ):
        RayStudy(plan, Folder(tmp_path / "results"))


@pytest.fixture
def node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., list[Any]]]:
    """Run a node's task in this process."""
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "lab.py").write_text(
        "import time\ndef f(sim, params, seed):\n    time.sleep(0.02)\n    return {'y': seed}\n"
    )
    monkeypatch.chdir(tmp_path / "plan")
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join(
            [
                str(tmp_path / "plan"),
                *os.environ.get("PYTHONPATH", "").split(os.pathsep),
            ]
        ),
    )

    def said(
        seeds: range, seconds: float = 100.0, version: str = __version__
    ) -> list[Any]:
        order = Order(
            version=version,
            plan="plan.yaml",
            setup={"run": "lab.py:f"},
            limits=LimitKeys(),
            record="never",
        )
        group = TaskGroup(
            items=[Item(f"{seed:064x}", {}, seed) for seed in seeds],
            period=0.1,
            seconds=seconds,
        )
        return [
            told
            for data in raytask.carry_out_group(encode(order), encode(group))
            for told in decode_told(data)
        ]

    try:
        yield said
    finally:
        raytask._end()
        assert list(tmp_path.glob("botyard-study-*")) == []


def test_a_task_says_each_row_once_and_its_worker_serves_the_next(
    node: Callable[..., list[Any]],
) -> None:
    for seeds in (range(1, 20), range(5, 40)):
        rows = [told.row for told in node(seeds) if isinstance(told, Ended)]
        assert [(row.seed, row.result) for row in rows] == [
            (seed, {"y": seed}) for seed in seeds
        ]
        (runner,) = raytask._runners.values()
        (pid,) = runner.study.pids
        assert is_running(pid)

    assert raytask._without_folder.__doc__
    assert str(Path.cwd()) not in os.environ["PYTHONPATH"].split(os.pathsep)


def test_a_task_that_takes_too_long_leaves_the_rest_to_others(
    node: Callable[..., list[Any]],
) -> None:
    rows = [told for told in node(range(300), seconds=0.0) if isinstance(told, Ended)]
    assert 1 <= len(rows) < 300


def test_a_node_with_another_version_refuses(node: Callable[..., list[Any]]) -> None:
    refused = [
        told for told in node(range(3), version="0.0.1") if isinstance(told, Refused)
    ]
    assert (
        f"expected botyard 0.0.1 as in the study, found botyard {__version__}"
        in refused[0].text
    )


def test_groups_take_a_second_and_at_the_end_all_workers_have_some() -> None:
    pace = Pace()
    # Before the first figures, a group has one run.
    assert group_size(1000, 4, pace) == 1
    pace.add(0.01)
    assert group_size(100_000, 4, pace) == GROUP_S / 0.01
    assert (
        group_size(100_000_000, 10_000, pace) == 5000
        # So many workers would ask for too many groups in a second, so groups are larger.
    )
    assert group_size(80, 4, pace) == 10
    assert group_size(0, 4, pace) == 1
    for _ in range(100):
        pace.add(1e-9)
    assert group_size(10**9, 4, pace) == MAX_GROUP
    waiting = deque(range(7))
    groups = []
    while waiting:
        groups.append(take_group(waiting, 2, pace))
    assert groups == [[0, 1], [2, 3], [4], [5], [6]]
