"""Makes the page's colours from the palette of pictures: ``python
tools/web_palette.py`` writes them, ``--check`` compares.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/botyard/pictures/palette.toml"
TARGETS = {
    "ts": ROOT / "web/src/generated/palette.ts",
    "css": ROOT / "web/src/generated/palette.css",
}
THEMES = ("light", "dark")
HEAD = (
    "Made by tools/web_palette.py from src/botyard/pictures/palette.toml; do not edit."
)


def drawing(theme: Mapping[str, Any]) -> dict[str, str]:
    """Return the colours of a theme that are drawn, by their names in TypeScript."""
    return {
        re.sub(r"_(.)", lambda m: m[1].upper(), k): v
        for k, v in theme.items()
        if isinstance(v, str)
    }


def typescript(palette: Mapping[str, Any]) -> str:
    """Return the TypeScript of the colours of the drawing, and of the colours that distinguish
    robots.
    """
    names = drawing(palette["light"])
    parts = [
        f"// {HEAD}",
        "export interface Palette {\n"
        + "".join(f"  {name}: string;\n" for name in names)
        + "}",
    ]
    for theme in THEMES:
        rows = "".join(
            f'  {name}: "{value}",\n' for name, value in drawing(palette[theme]).items()
        )
        parts.append(f"export const {theme.upper()}: Palette = {{\n{rows}}};")

    robots = ", ".join(f'"{color}"' for color in palette["robots"])
    parts.append(f"export const ROBOT_COLORS = [{robots}];")
    return "\n\n".join(parts) + "\n"


def css(palette: Mapping[str, Any]) -> str:
    """Return the CSS of the colours of panels, texts and buttons."""
    parts = [f"/* {HEAD} */\n"]
    for theme, selector in zip(
        THEMES, (":root", ':root[data-theme="dark"]'), strict=True
    ):
        rows = "".join(
            f"  --{name.replace('_', '-')}: {value};\n"
            for name, value in palette[theme]["page"].items()
        )
        parts.append(f"{selector} {{\n{rows}}}\n")

    return "".join(parts)


def made() -> dict[Path, str]:
    """Return the contents of each file."""
    palette = tomllib.loads(SOURCE.read_text("utf-8"))
    return {TARGETS["ts"]: typescript(palette), TARGETS["css"]: css(palette)}


def main() -> int:
    for path, text in made().items():
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            print(
                f"{path} differs from the output of {Path(__file__).name}: run it "
                "and commit the result",
                file=sys.stderr,
            )
            return 1

    return 0


if __name__ == "__main__":
    sys.exit(main())
