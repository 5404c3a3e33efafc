"""Writes docs/reference/options.md from the table of options. Run by ``make
compatibility``; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

from botyard.app.declaration import Option
from botyard.app.keywords import keyword_default, value_words
from botyard.app.kinds import Flag
from botyard.app.options import OPTIONS, SECTIONS

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/options.md"
INTRODUCTION = """\
<!-- made by tools/options_reference.py from the program: change that, then run "make compatibility" -->
# Options of a run

These are the options of `botyard run` (or just `botyard`): on the command line, in a file
(`--config`, with the long names), and as keywords of `botyard.serve` in Python (see
[howto/python.md](../howto/python.md)). A world file may set the options with a mark in the column
"world" ([formats/scenario.md](../formats/scenario.md)). The command line takes precedence over
the file of `--config`, and this file over the world file. The command line uses ms, mm and
degrees, Python s, m and rad.
"""


def cell(text: str) -> str:
    """Return the escaped text of a table's cell."""
    return text.replace("|", "\\|")


def row(option: Option) -> str:
    """Return the row of an option."""
    value = (
        ""
        if isinstance(option.kind, Flag)
        else f" {option.metavar}"
        if option.metavar
        else ""
    )
    names = ", ".join(
        f"`{f}`" for f in option.flags if "_" not in f or len(option.flags) == 1
    )
    default = f" [{option.default}]" if option.default not in (None, False, ()) else ""
    if option.keyword is None:
        python = option.instead
    else:
        python = (
            f"`{option.keyword}={keyword_default(option)!r}`: {value_words(option)}"
        )

    world = "✓" if option.world else ""
    return f"| {names}{cell(value)} | {cell(option.help)}{default} | {world} | {cell(python)} |\n"


def page() -> str:
    """Return the options reference as Markdown."""
    out = [INTRODUCTION]
    for section in SECTIONS:
        out.append(
            f"\n## {section}\n\n| option | | world | Python |\n|---|---|---|---|\n"
        )
        out += [
            row(o)
            for o in OPTIONS.values()
            if o.section == section and o.flags and not o.hidden
        ]

    return "".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"written: {PAGE}")
