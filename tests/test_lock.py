"""The lock file of the developers' environment satisfies pyproject.toml on every named
system and Python.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = (ROOT / "requirements-dev.lock").read_text("utf-8")
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
SYSTEMS = {
    "Linux": {
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "platform_system": "Linux",
    },
    "Linux on ARM": {
        "sys_platform": "linux",
        "platform_machine": "aarch64",
        "os_name": "posix",
        "platform_system": "Linux",
    },
    "macOS": {
        "sys_platform": "darwin",
        "platform_machine": "arm64",
        "os_name": "posix",
        "platform_system": "Darwin",
    },
    "Windows": {
        "sys_platform": "win32",
        "platform_machine": "AMD64",
        "os_name": "nt",
        "platform_system": "Windows",
    },
}


def plain(name: str) -> str:
    """Return the normalised form of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted() -> list[Requirement]:
    """Return all requirements of the package and its extras, including extras that they
    name.
    """
    extras = [
        text for rows in PROJECT["optional-dependencies"].values() for text in rows
    ]
    found = [Requirement(text) for text in [*PROJECT["dependencies"], *extras]]
    return [r for r in found if plain(r.name) != plain(PROJECT["name"])]


def locked(text: str) -> list[tuple[str, str, Marker | None, int]]:
    """Return name, version, marker and number of hashes of each entry."""
    found = []
    for entry in re.split(
        r"\n(?=[a-z0-9])",
        re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " "),
    ):
        head, *hashes = entry.split("--hash=")
        requirement = Requirement(head.strip())
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        found.append(
            (plain(requirement.name), pin.version, requirement.marker, len(hashes))
        )

    return found


def environment(system: str, python: str) -> dict[str, str]:
    return {
        **SYSTEMS[system],
        "python_version": python,
        "python_full_version": f"{python}.1",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }


def problems(text: str, where: dict[str, str]) -> list[str]:
    """Return the missing requirements of an environment."""
    pins = [
        (n, v)
        for n, v, marker, _ in locked(text)
        if marker is None or marker.evaluate(where)
    ]
    found = [
        f"{n} has two versions"
        for n, _ in set(pins)
        if sum(m == n for m, _ in pins) > 1
    ]
    versions = dict(pins)
    for r in wanted():
        if r.marker is not None and not r.marker.evaluate(where):
            continue
        version = versions.get(plain(r.name))
        if version is None:
            found.append(f"{r.name} is not there")
        elif version not in r.specifier:
            found.append(
                f"{r.name} is {version}, and pyproject.toml asks for {r.specifier}"
            )

    return found


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_lock_file_is_what_pyproject_asks_for(system: str, python: str) -> None:
    assert problems(LOCK, environment(system, python)) == [], "make lock"


def test_every_file_is_known_by_its_hash_and_no_registry_is_named() -> None:
    assert all(hashes > 0 for *_, hashes in locked(LOCK))
    assert not re.search(r"https?:|file:|index-url|find-links|extra-index", LOCK)


def extras(text: str) -> set[tuple[str, str]]:
    """Return the extras that entries name, as pairs of a package and an extra."""
    heads = re.findall(r"^([A-Za-z0-9._-]+)\[([^]]+)\]==", text, flags=re.MULTILINE)
    return {
        (plain(name), extra.strip()) for name, of in heads for extra in of.split(",")
    }


def unnamed_extras(text: str) -> list[str]:
    """Return extras that installed packages require of others, and that the lock file
    does not name.
    """
    names, named, found = {name for name, *_ in locked(text)}, extras(text), set()
    for one in metadata.distributions():
        name = plain(one.metadata["Name"])
        if name not in names:
            continue
        for line in one.requires or ():
            r = Requirement(line)
            asked = [
                {"extra": ""},
                *({"extra": extra} for of, extra in named if of == name),
            ]
            if plain(r.name) in names and (
                r.marker is None or any(r.marker.evaluate(where) for where in asked)
            ):
                found |= {
                    f"{name} asks for {r.name}[{x}]"
                    for x in r.extras
                    if (plain(r.name), x) not in named
                }

    return sorted(found)


def test_extras_are_named_else_pip_asks_for_the_newest_version_of_them_which_is_not_locked() -> (
    None
):
    assert unnamed_extras(LOCK) == []
    assert unnamed_extras(LOCK.replace("coverage[toml]==", "coverage==")) == [
        "pytest-cov asks for coverage[toml]"
    ]


def test_what_is_missing_or_out_of_range_is_seen() -> None:
    where = environment("Linux", "3.11")
    old = re.sub(r"^click==\S+", "click==7.0", LOCK, flags=re.MULTILINE)
    assert problems(old, where) == [
        "click is 7.0, and pyproject.toml asks for <9,>=8.1.7"
    ]
    assert problems(re.sub(r"^h11==[^#]*", "", LOCK, flags=re.MULTILINE), where) == [
        "h11 is not there"
    ]


def test_the_pythons_that_are_named_are_those_that_are_allowed() -> None:
    assert PYTHONS[0] == PROJECT["requires-python"].removeprefix(">=")
    assert all(f"{p}.0" in SpecifierSet(PROJECT["requires-python"]) for p in PYTHONS)
    assert [int(p.partition(".")[2]) for p in PYTHONS] == list(
        range(11, 11 + len(PYTHONS))
    )
