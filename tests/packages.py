"""Packages for a test:

modules and metadata in a folder on the path, as an installer writes them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    name: str,
    entries: Mapping[str, Mapping[str, str]],
    files: Mapping[str, str] = {},
) -> None:
    """Lay a package out in a folder and put that on the path.

    Parameters
    ----------
    folder : Path
        The folder, for example `tmp_path`. Several packages may lie in one.
    name : str
        Name of the distribution.
    entries : mapping
        Group of entry points → name → value.
    files : mapping
        Path below the folder → text.
    """
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    )
    lines = []
    for group, named in entries.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in named.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        monkeypatch.delitem(
            sys.modules,
            path.stem if path.parent == folder else path.parent.name,
            raising=False,
        )

    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
