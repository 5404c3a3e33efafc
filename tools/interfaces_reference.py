"""Writes docs/reference/interfaces.md from the registry of interfaces. Run by ``make
compatibility``; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

from botyard.app.builtin import INTERFACE_OPTIONS
from botyard.app.options import OPTIONS
from botyard.app.reference import interface_rows, option_rows

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/interfaces.md"
INTRODUCTION = """\
<!-- made by tools/interfaces_reference.py: change that, then run "make compatibility" -->
# Interfaces

How do programs and people reach a running simulator, and how do you switch each interface on?

- **At the start:** `--interface NAME:OPTION=VALUE,…` (in Python: `interfaces=["NAME:…"]` of
  `botyard.serve`). The options are short names of options of the run ([options](options.md)):
  `--interface ros2:domain=7` is `--ros2 --ros-domain-id 7`.
- **While it runs:** the page and the operation `SwitchInterface` ([control](control.md)) stop and
  start interfaces.
- **List:** `botyard interfaces` lists all, including interfaces of other packages, which start in
  the same way ([your own interface](../howto/interfaces.md)).

| interface | description | transport | port | starts with the run |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page as Markdown."""
    out = [INTRODUCTION]
    for name, carrier, port, started, _installed, about in interface_rows(
        built_in=True
    ):
        started = f"`{started}`" if started.startswith("botyard") else started
        out.append(f"| `{name}` | {about} | {carrier} | {port} | {started} |\n")

    for name, *_ in interface_rows(built_in=True):
        rows = option_rows(name)
        if not rows:
            continue
        out.append(
            f"\n## {name}\n\n| option | value | default | option of the run |\n|---|---|---|---|\n"
        )
        fields = INTERFACE_OPTIONS[name].fields
        for option, value, default, about in rows:
            flag = f"`--{OPTIONS[fields[option]].long}`" if option in fields else about
            out.append(f"| `{option}` | {value} | {default} | {flag} |\n")

    return "".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"written: {PAGE}")
