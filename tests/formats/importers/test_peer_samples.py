"""Sample files in the wheels of peers: the maps that worlds of ir-sim refer to.

ir-sim's wheel has no worlds, and navground's has no files of worlds or maps.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.formats.importers.checks import load

PACKAGES = Path(__file__).parents[3] / ".venv-zenoh/lib"
MAPS = "python*/site-packages/irsim/world/map/**/*.png"


def test_each_map_of_irsim_becomes_walls_of_its_dark_pixels(tmp_path: Path) -> None:
    maps = sorted(PACKAGES.glob(MAPS))
    if not maps and not os.environ.get("CI"):
        pytest.skip("needs ir-sim (make peers)")
    assert len(maps) >= 10
    for path in maps:
        file = tmp_path / "w.yaml"
        file.write_text(f"world: {{width: 50, height: 50, obstacle_map: {path}}}\n")
        found = load(file).scene.to_array(0.5).solid
        grey = np.asarray(Image.open(path).convert("L"))
        dark = np.argwhere(grey[::-1] < 128)
        assert len(dark) and found.any(), path
        # A cell of 0.5 m is solid where the picture has dark pixels in it, or, since
        # pixels lie across its border, in a neighbouring cell.
        rows, columns = (dark * 100 / np.array(grey.shape)).astype(int).T
        near = np.zeros((103, 103), bool)
        for dy in (0, 1, 2):
            for dx in (0, 1, 2):
                near[rows + dy, columns + dx] = True
        solid = np.argwhere(found)
        assert near[solid[:, 0] + 1, solid[:, 1] + 1].all(), path
        cells = len(np.unique(100 * rows + columns))
        assert 0.8 * cells <= len(solid) <= 1.5 * cells, path
