"""The documentation's examples: every file format has a page whose example loads and runs, and Python code in the how-tos runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from botyard.formats.base import read_source
from botyard.formats.registry import FORMATS, format_of
from botyard.simulation import Simulation

DOCS = Path(__file__).resolve().parent.parent / "docs"
_EXAMPLE = re.compile(r"^```\w+ (example\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", [f.name for f in FORMATS])
def test_every_format_has_a_page_whose_example_runs(name: str, tmp_path: Path) -> None:
    text = (DOCS / "formats" / f"{name}.md").read_text("utf-8")
    found = _EXAMPLE.search(text)
    assert found, "no example"
    path = tmp_path / found[1]
    path.write_text(found[2], "utf-8")
    if name == "rosmap":
        Image.fromarray(np.pad(np.full((8, 8), 254, np.uint8), 1)).save(tmp_path / "example.pgm")
    assert format_of(read_source(path)).name == name
    sim = Simulation.load(path)
    assert len(sim.scene.segments)
    sim.step(10)
    assert f"({name}.md)" in (DOCS / "formats/README.md").read_text("utf-8")


def test_the_code_of_the_map_page_runs() -> None:
    text = (DOCS / "howto/make-maps.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    sim = names["sim"]
    assert isinstance(sim, Simulation)
    sim.step()
    assert len(sim.scene.boxes) == 1


@pytest.mark.parametrize("page", sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")))
def test_links_within_the_documentation_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:")):
            assert ((DOCS / page).parent / target).exists(), target
