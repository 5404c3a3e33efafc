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

What `botyard` (`botyard run`) takes on the command line, in files (`--config`, by the long names), and, as keywords, from Python
(`botyard.serve`, see [howto/python.md](../howto/python.md)). A world may set those with a mark in the column "world"
([formats/scenario.md](../formats/scenario.md)); what is typed wins, then comes the file of `--config`, then the world. The command line
counts in ms, mm and degrees, Python in s, m and rad.
"""


def cell(text: str) -> str:
    """Text of a table's cell, escaped."""
    return text.replace("|", "\\|")


def row(option: Option) -> str:
    """The row of an option."""
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
    """The whole page."""
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
