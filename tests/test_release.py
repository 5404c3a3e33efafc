"""Checks of `make release`, and the hooks before commits."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tools import release

ROOT = Path(__file__).resolve().parents[1]
TODAY = datetime.date(2026, 3, 4)
GOOD = (
    "# Changelog\n\nText.\n\n## 1.2.0 – 2026-03-02\n\n### Added\n\n- "
    "This.\n\n## 1.1.0 – 2026-01-02\n\n- That.\n"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is ready for release 1.2.0."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "src/botyard").mkdir(parents=True)
    (tmp_path / "src/botyard/version.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "botyard"\ndynamic = ["version"]\n'
    )
    (tmp_path / "CHANGELOG.md").write_text(GOOD, "utf-8")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    user = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(
        ["git", *user, *arguments], cwd=folder, check=True, capture_output=True
    )


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Add all")


def test_a_checkout_that_is_ready(checkout: Path) -> None:
    assert release.problems_of(checkout, TODAY) == []
    changelog = checkout / "CHANGELOG.md"
    changelog.write_text(
        GOOD.replace("## 1.2.0", "## Unreleased\n\n### Added\n\n## 1.2.0"), "utf-8"
    )
    commit(checkout)
    assert release.problems_of(checkout, TODAY) == [], (
        "an empty section of what is to come"
    )


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        (
            "src/botyard/version.py",
            "1.2.0",
            "1.2",
            'expected __version__ = "X.Y.Z", found "1.2"',
        ),
        (
            "src/botyard/version.py",
            "1.2.0",
            "1.3.0",
            'expected "1.3.0" (src/botyard/version.py) as the newest release, found 1.2.0',
        ),
        (
            "pyproject.toml",
            "dynamic",
            'version = "1.2.0"\ndynamic',
            'expected "version" in dynamic, and no version of its own',
        ),
        (
            "CHANGELOG.md",
            "## 1.2.0",
            "## Unreleased\n\n- New.\n\n## 1.2.0",
            '"Unreleased" to a section "1.2.0 – 2026-03-04"',
        ),
        (
            "CHANGELOG.md",
            "## 1.2.0 – 2026-03-02",
            "## Unreleased",
            "as the newest release, found 1.1.0",
        ),
        ("CHANGELOG.md", "2026-03-02", "2026-03-05", "2026-03-05 is in the future"),
        (
            "CHANGELOG.md",
            "2026-03-02",
            "2025-03-05",
            "expected the newest section first",
        ),
        ("CHANGELOG.md", "2026-03-02", "2026-02-30", 'found "1.2.0 – 2026-02-30"'),
        ("CHANGELOG.md", "- This.", "", 'section "1.2.0 – 2026-03-02" has no entries'),
    ],
)
def test_what_lacks_is_said(
    checkout: Path, file: str, old: str, new: str, text: str
) -> None:
    path = checkout / file
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    commit(checkout)
    assert any(text in problem for problem in release.problems_of(checkout, TODAY))


def test_what_is_not_committed_and_a_tag_that_there_is(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.0")
    (checkout / "new.txt").write_text("x")
    assert release.problems_of(checkout, TODAY) == [
        "git: commit or remove the uncommitted changes: new.txt",
        "git: the tag v1.2.0 exists already: increment the version in src/botyard/version.py",
    ]


def test_this_repository_has_the_form_that_a_release_needs() -> None:
    """Except for the entries since the last release, which `make release` requires."""
    assert release.version_problems(ROOT) == []
    version = release.version_of(ROOT)
    problems = release.changelog_problems(
        ROOT, version, datetime.datetime.now(datetime.UTC).date()
    )
    rest = [
        p
        for p in problems
        if "move the entries of" not in p and "as the newest release" not in p
    ]
    assert rest == []


def test_hooks_before_commits_are_the_fast_part_of_lint() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    (repository,) = config["repos"]
    assert repository["repo"] == "local", "nothing is downloaded"
    hooks = {hook["entry"] for hook in repository["hooks"]}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    found = re.search(r"^lint-fast:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert found
    lines = [
        line.strip().replace("$(BIN)", ".venv/bin") for line in found[1].splitlines()
    ]
    folders = (
        r" (?:src tests bench examples ros tools hatch_build\.py|\.github/workflows/\*\.yml"
        r"|\.github/ISSUE_TEMPLATE/(?:config|bug\.yml \.github/ISSUE_TEMPLATE/wish)\.yml|CITATION\.cff)$"
    )
    assert {re.sub(folders, "", line) for line in lines} == hooks, (
        "the target lint-fast of Makefile and the hooks of "
        ".pre-commit-config.yaml run the same commands"
    )
