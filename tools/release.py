"""Check that the checkout is ready for a release: ``python tools/release.py`` prints everything
that is missing; ``make release`` runs it first.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_SECTION = re.compile(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(rf"({_VERSION.pattern}) – (\d{{4}}-\d{{2}}-\d{{2}})")


def version_of(root: Path) -> str:
    """Return the version, from the one place that has it; "" if it is not there."""
    found = re.search(
        r'^__version__ = "(.*)"$',
        (root / "src/botyard/version.py").read_text("utf-8"),
        re.MULTILINE,
    )
    return found[1] if found else ""


def version_problems(root: Path) -> list[str]:
    """Return the problems of the version: it must stand in ``version.py`` alone."""
    problems = []
    version = version_of(root)
    if not _VERSION.fullmatch(version):
        problems.append(
            f'src/botyard/version.py: expected __version__ = "X.Y.Z", found "{version}"'
        )

    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    if "version" in project or "version" not in project.get("dynamic", ()):
        problems.append(
            'pyproject.toml: expected "version" in dynamic, and no version of its own'
        )

    return problems


def changelog_problems(root: Path, version: str, today: datetime.date) -> list[str]:
    """Return the problems of the changelog: the release must be its newest section, with a date
    and entries, and no entry may be unreleased.
    """
    problems = []
    sections = _SECTION.findall((root / "CHANGELOG.md").read_text("utf-8"))
    if sections and sections[0][0] == "Unreleased":
        if "\n- " in f"\n{sections[0][1]}":
            problems.append(
                f'CHANGELOG.md: move the entries of "Unreleased" to a section "{version} – {today}"'
            )

        sections = sections[1:]

    dates = []
    for title, text in sections:
        found = _TITLE.fullmatch(title)
        try:
            dates.append(datetime.date.fromisoformat(found[2] if found else ""))
        except ValueError:
            problems.append(
                f'CHANGELOG.md: expected a section "X.Y.Z – YYYY-MM-DD", found "{title}"'
            )
            continue

        if "\n- " not in f"\n{text}":
            problems.append(f'CHANGELOG.md: section "{title}" has no entries')

    if dates != sorted(dates, reverse=True):
        problems.append(
            "CHANGELOG.md: expected the newest section first, found dates in another order"
        )

    if dates and dates[0] > today:
        problems.append(f"CHANGELOG.md: {dates[0]} is in the future")
    newest = sections[0][0].partition(" – ")[0] if sections else "none"
    if newest != version:
        problems.append(
            f'CHANGELOG.md: expected "{version}" (src/botyard/version.py) as the newest release, found {newest}'
        )

    return problems


def tree_problems(root: Path, version: str) -> list[str]:
    """Return the problems of the checkout: all changes must be committed, and the version must
    have no tag yet.
    """

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    problems = []
    changed = git("status", "--porcelain").splitlines()
    if changed:
        problems.append(
            "git: commit or remove the uncommitted changes: "
            f"{', '.join(c.split()[-1] for c in changed[:5])}"
        )

    if git("tag", "--list", f"v{version}"):
        problems.append(
            f"git: the tag v{version} exists already: increment the version in "
            "src/botyard/version.py"
        )

    return problems


def problems_of(root: Path, today: datetime.date) -> list[str]:
    """Return everything that is missing for a release."""
    version = version_of(root)
    return [
        *version_problems(root),
        *changelog_problems(root, version, today),
        *tree_problems(root, version),
    ]


def main() -> int:
    """Print everything that is missing. Return 1 if anything is."""
    problems = problems_of(ROOT, datetime.datetime.now(datetime.UTC).date())
    for problem in problems:
        print(problem, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
