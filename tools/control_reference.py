"""Writes docs/reference/control.md from the table of operations. Run by ``make
compatibility``; a test compares the two.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botyard.control import OPERATIONS, Level, Operation, python
from botyard.interfaces.ambf import ambf
from botyard.interfaces.page import operations
from botyard.interfaces.pioneer import requests as pioneer
from botyard.interfaces.ros import graph, simulation_interfaces

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/control.md"
ADAPTERS: Mapping[str, Mapping[str, str]] = {
    "Python": python.NOT_OFFERED,
    "page": operations.NOT_OFFERED,
    "Pioneer": pioneer.NOT_OFFERED,
    "ROS": graph.NOT_OFFERED,
    "simulation_interfaces": simulation_interfaces.NOT_OFFERED,
    "AMBF": ambf.NOT_OFFERED,
}
INTRODUCTION = """\
<!-- made by tools/control_reference.py: change that, then run "make compatibility" -->
# Operations on a running simulator

What can a client do to a running simulator, and through which interface? Each interface translates
requests into these operations of `botyard.control`.

Permission levels are {levels}; each includes the levels before it.
[Security](../explanation/security.md) lists the level of each caller. With `--read-only`, all
callers except the user have at most the level *drive*. A Python program executes operations as the
user:

```python
import botyard
from botyard.control import USER, Place

with botyard.serve(sim, port=0) as running:
    running.do(Place(to=(("ann", botyard.Pose(1.0, 2.0, 0.0)),)))
```

| operation | level | arguments | what it does | offered by |
|---|---|---|---|---|
"""


def _arguments(kind: type[Operation[Any]]) -> str:
    names = []
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        optional = field.default is not dataclasses.MISSING
        names.append(f"[{field.name}]" if optional else field.name)

    return ", ".join(f"`{n}`" for n in names) or "none"


def _about(kind: type[Operation[Any]]) -> str:
    # The column of arguments names the parameters already; units stand in the docstring.
    text = inspect.getdoc(kind).partition("\n\nParameters\n")[0]  # type: ignore[union-attr]
    about = " ".join(text.split())
    return f"{about}{f' Effect on other clients: {kind.tells}.' if kind.tells else ''}".replace(
        "|", "\\|"
    )


def page() -> str:
    """Return the whole page as Markdown."""
    levels = ", ".join(f"*{level.name.lower()}*" for level in Level)
    out = [INTRODUCTION.format(levels=levels)]
    for name, kind in OPERATIONS.items():
        there = ", ".join(
            adapter for adapter, missing in ADAPTERS.items() if name not in missing
        )
        out.append(
            f"| `{name}` | {kind.level.name.lower()} | {_arguments(kind)} | "
            f"{_about(kind)} | {there} |\n"
        )

    out.append("\n## Operations that an interface does not offer\n")
    for adapter, missing in ADAPTERS.items():
        reasons: dict[str, list[str]] = {}
        for name, why in missing.items():
            reasons.setdefault(why, []).append(f"`{name}`")
        out.append(f"\n### {adapter}\n\n| reason | operations |\n|---|---|\n")
        out += [f"| {why} | {', '.join(names)} |\n" for why, names in reasons.items()]

    return "".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"written: {PAGE}")
