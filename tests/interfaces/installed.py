"""Packages of `examples/plugins` as pip installs them:

modules and metadata on the path.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"


def install(package: str, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a package to a folder as an installer does, and put the folder on the path."""
    source = PLUGINS / package
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    metadata = (
        target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    )
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [
            f"[{group}]",
            *(f"{name} = {value}" for name, value in entries.items()),
        ]

    (metadata / "entry_points.txt").write_text("\n".join(lines))
    for module in source.glob("*.py"):
        (target / module.name).write_bytes(module.read_bytes())
        monkeypatch.delitem(sys.modules, module.stem, raising=False)

    monkeypatch.syspath_prepend(target)
    importlib.invalidate_caches()
