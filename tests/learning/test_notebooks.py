"""The notebooks of the examples run from top to bottom in a Jupyter kernel, each in its
own folder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.waiting import PATIENCE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(path.name for path in (EXAMPLES / "notebooks").glob("*.ipynb"))


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    for folder in ("learning", "notebooks"):
        shutil.copytree(EXAMPLES / folder, tmp_path / folder)
    notebook = nbformat.read(tmp_path / "notebooks" / name, nbformat.NO_CONVERT)
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        resources={"metadata": {"path": tmp_path / "notebooks"}},
    )
    client.execute()
    pictures = [
        o
        for cell in notebook.cells
        for o in cell.get("outputs", ())
        if "image/png" in o.get("data", {})
    ]
    assert pictures, "a notebook shows pictures"
    assert not [
        o
        for cell in notebook.cells
        for o in cell.get("outputs", ())
        if o.get("name") == "stderr"
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_what_it_printed(name: str) -> None:
    cells = json.loads((EXAMPLES / "notebooks" / name).read_text("utf-8"))["cells"]
    assert not [
        cell for cell in cells if cell.get("outputs") or cell.get("execution_count")
    ]
