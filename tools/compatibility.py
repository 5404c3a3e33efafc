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
<!-- made from compatibility.toml: change that file, then run "make compatibility" -->
# Where botyard differs from AMRISim, on purpose

For developers of botyard; users read [from AMRISim](../howto/from-amrisim.md) and its neighbours.
botyard was compared with recordings of AMRISim. The two programs agree in all points that this
table does not list. Framing, order of fields, counts and indices are equal. Sonar and laser
ranges without noise differ by at most 40 mm (for at most 3 % of the rays by more), velocities in
a step by at most 15 mm/s and 1.5°/s, and the ends of MOVE and HEAD by at most 15 mm and 1.5°. A
test that relies on a difference names its key.

| key | AMRISim | botyard | reason |
|---|---|---|---|
"""
FEATURES = """
## Feature table

This table lists the features of AMRISim and the wishes of its users. Priorities: M must, S
should, C could. A row with the state "works" names its tests. A row with the state "later" is
planned. A row with the state "left out" gives the reason, also where the feature does not apply.

"""


def cell(text: str) -> str:
    """Return the escaped text of a table's cell."""
    return text.replace("|", "\\|")


def tests(names: str) -> str:
    """Return test ids as short links to their files."""
    parts = (name.partition("::") for name in names.split())
    return ", ".join(
        f"[{test.removeprefix('test_')}](../../{path})" for path, _, test in parts
    )


def page(data: dict) -> str:
    """Return the whole page as Markdown."""
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
    """Return the rows of compatibility.toml."""
    return tomllib.loads(SOURCE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(read()), "utf-8")
    print(f"written: {PAGE}")
