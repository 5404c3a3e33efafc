"""File suffixes of maps, where several formats or readers use the same ones."""

from __future__ import annotations

from typing import Final

YAML: Final = (".yaml", ".yml")
BAGS: Final = (".bag", ".mcap", ".db3")
PICTURES: Final = (
    ".png",
    ".pgm",
    ".pbm",
    ".ppm",
    ".pnm",
    ".bmp",
    ".gif",
    ".jpg",
    ".jpeg",
    ".tif",
    ".tiff",
    ".webp",
)

__all__ = ["BAGS", "PICTURES", "YAML"]
