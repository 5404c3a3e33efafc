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
<!-- made by tools/interfaces_reference.py from the program: change that, then run "make compatibility" -->
# Interfaces

How programs and people reach a running simulator. `--interface NAME:OPTION=VALUE,…` starts one, with its options
(`interfaces=["NAME:…"]` of `botyard.serve`); the page and `SwitchInterface` ([control.md](control.md)) stop and start them while the
simulator runs. `botyard interfaces` lists them, with those of other packages, which are started in the same way
([howto/interfaces.md](../howto/interfaces.md)). Their options are options of the run ([options.md](options.md)) under shorter names:
`--interface ros2:domain=7` is `--ros2 --ros-domain-id 7`.

| interface | | carried by | port | from the start |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
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
            f"\n## {name}\n\n| option | value | default | is the run's |\n|---|---|---|---|\n"
        )
        fields = INTERFACE_OPTIONS[name].fields
        for option, value, default, about in rows:
            flag = f"`--{OPTIONS[fields[option]].long}`" if option in fields else about
            out.append(f"| `{option}` | {value} | {default} | {flag} |\n")

    return "".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"written: {PAGE}")
