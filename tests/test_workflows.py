"""GitHub's workflows call existing targets on the Pythons of pyproject.toml, with
minimal permissions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_lock import PYTHONS

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(
    re.findall(
        r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def test_they_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "docs", "nightly", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_a_workflow(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow["concurrency"]) == {"group", "cancel-in-progress"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 360
        if name == "publish":
            # It has a permission of its own, and runs only if the owner asks for it.
            assert re.match(r"vars\.PUBLISH(_DOCS)? == 'true'", job["if"])
        else:
            assert "permissions" not in job
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), (
                    "actions are pinned by their commits"
                )
                if "checkout" in step["uses"]:
                    assert step["with"]["persist-credentials"] is False
            else:
                assert "${{ inputs" not in step["run"], (
                    "what somebody has typed is no part of a script"
                )
                named = set(
                    re.findall(r"^\s*make ([a-z][a-z-]*)", step["run"], re.MULTILINE)
                )
                assert named <= TARGETS


def test_every_python_is_tried_on_every_system() -> None:
    jobs = read(ROOT / ".github/workflows/ci.yml")["jobs"]
    assert all(job["strategy"]["matrix"]["python"] == PYTHONS for job in jobs.values())
    systems = {job["runs-on"].split("-")[0] for job in jobs.values()} | {
        s.split("-")[0] for s in jobs["others"]["strategy"]["matrix"]["system"]
    }
    assert systems >= {"ubuntu", "macos", "windows"}


def test_linux_does_what_ci_does() -> None:
    steps = read(ROOT / ".github/workflows/ci.yml")["jobs"]["linux"]["steps"]
    called = [
        re.match(r"make [a-z-]+", step["run"])[0] for step in steps if "run" in step
    ]  # type: ignore[index]
    assert called == re.findall(
        r"^make [a-z-]+", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE
    )


def test_every_night_does_what_takes_long() -> None:
    matrix = read(ROOT / ".github/workflows/nightly.yml")["jobs"]["nightly"][
        "strategy"
    ]["matrix"]
    assert (
        set(matrix["target"]) == {"test-long", "fuzz", "coverage", "mutants"} <= TARGETS
    )
