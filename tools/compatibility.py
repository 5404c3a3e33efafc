"""Writes docs/reference/compatibility.md from compatibility.toml next to it. Run by
``make compatibility``; a test compares the two.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs/reference"
SOURCE, PAGE = FOLDER / "compatibility.toml", FOLDER / "compatibility.md"
STATES = ("works", "partly", "later", "left out")

INTRODUCTION = """\
<!-- made by tools/compatibility.py from compatibility.toml: change that file, then run "make compatibility" -->
# Where botyard differs from AMRISim, on purpose

botyard was compared with recordings of the original program. Everything that is not in this table is meant to be the same: framing, field
order, counts and indices exactly; sonar and laser ranges without noise within 40 mm (at most 3 % of the rays beyond); velocities per
step within 15 mm/s and 1.5°/s; the ends of MOVE and HEAD within 15 mm and 1.5°. A test that relies on a difference names its key.

| key | AMRISim | botyard | reason |
|---|---|---|---|
"""
FEATURES = """
## Feature table

What of the original, and of its users' wishes, works. Priorities: M must, S should, C could. Every row that works names tests; "later" rows
belong to work that is planned, "left out" rows say why (also where a row does not apply).

"""


def cell(text: str) -> str:
    """Text of a table's cell, escaped."""
    return text.replace("|", "\\|")


def tests(names: str) -> str:
    """Test ids as short links to their files."""
    parts = (name.partition("::") for name in names.split())
    return ", ".join(
        f"[{test.removeprefix('test_')}](../../{path})" for path, _, test in parts
    )


def page(data: dict) -> str:
    """The whole page."""
    out = [INTRODUCTION]
    out += [
        f"| `{key}` | {' | '.join(map(cell, texts))} |\n"
        for key, texts in data["deviations"].items()
    ]
    out += ["\n## Seen and kept\n\n", data["kept"], FEATURES]
    areas: dict[str, list[tuple[str, list[str]]]] = {}
    for row, values in data["features"].items():
        areas.setdefault(row.partition("-")[0], []).append((row, values))
    out += [f"| area | {' | '.join(STATES)} |\n|---|---|---|---|---|\n"]
    for area, rows in areas.items():
        counts = Counter(values[1] for _, values in rows)
        out += [
            f"| [{area}](#{area.lower()}) | {' | '.join(str(counts[s] or '') for s in STATES)} |\n"
        ]

    for area, rows in areas.items():
        rows.sort()
        out += [
            f"\n### {area}\n\n| row | | feature | state | tests | remark "
            "|\n|---|---|---|---|---|---|\n"
        ]
        for row, (priority, state, feature, names, note) in rows:
            out += [
                f"| {row} | {priority} | {cell(feature)} | {state} | "
                f"{tests(names)} | {cell(note)} |\n"
            ]

    return "".join(out)


def read() -> dict:
    """The data."""
    return tomllib.loads(SOURCE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(read()), "utf-8")
    print(f"written: {PAGE}")
