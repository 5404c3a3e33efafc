"""Tables of the reference that are made from tables of the program."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import Final

from sphinx.pycode import ModuleAnalyzer
from tools.docsite.api import fields, sections
from tools.docsite.apigroups import find, groups

from botyard.interfaces import metrics
from botyard.protocols.pioneer import accessoryreports, reports, simreports
from botyard.protocols.pioneer.arguments import ARGUMENTS, DATA, Argument
from botyard.protocols.pioneer.commands import P
from botyard.recording import own_channels

LAYOUTS: Final[Mapping[type, str]] = {
    reports.Sip: "SIP",
    reports.Config: "CONFIG",
    reports.LaserPart: "LASER1, LASER2",
    simreports.SimStat: "SIMSTAT",
    simreports.SimInfo: "SIMINFO",
    simreports.MapChanged: "MAP_CHANGED",
    accessoryreports.Encoders: "ENCODER",
    accessoryreports.Gyro: "GYRO",
    accessoryreports.GripperReport: "GRIPPER",
    accessoryreports.Io: "IO",
    accessoryreports.JoystickReport: "JOYSTICK",
}
"""Class of each packet with fields, and its name in the reference."""


def _argument(argument: Argument) -> str:
    return " | ".join(
        (
            argument.name,
            argument.kind,
            argument.unit.replace("|", "\\|"),
            argument.effect,
        )
    )


def commands_of_pioneer() -> str:
    """Return a row for each command of the Pioneer protocol."""
    rows = [
        f"| `{number.name} {int(number)}` | {_argument(argument)} |"
        for number, argument in sorted(ARGUMENTS.items())
    ]
    head = [
        "| command | argument | form | unit or values | effect |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def operations_of_pioneer() -> str:
    """Return a row for each operation of SIM_CTRL."""
    rows = [
        f"| `{number.name} {int(number)}` | {_argument(argument)} |"
        for number, argument in sorted(DATA.items())
    ]
    head = [
        "| operation | data | form | unit or values | effect |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def packets_of_pioneer() -> str:
    """Return a row for each type of packet from the robot."""
    rows = [f"| `{kind.name}` | 0x{int(kind):02X} |" for kind in P]
    return "\n".join(["| packet | type |", "|---|---|", *rows])


def fields_of_pioneer() -> str:
    """Return a row for each field of a packet, with its unit, of the docstrings."""
    rows = []
    for kind, name in LAYOUTS.items():
        described = sections(inspect.cleandoc(kind.__doc__ or ""))["Attributes"]
        # Fields that are described together have a row together.
        for text, some in groupby(fields(described), itemgetter(2)):
            shown = ", ".join(f"`{field}`" for field, _, _ in some)
            # Numbers of sections are for readers of the code.
            about = re.sub(r" \(§[^)]*\)", "", " ".join(text.split()))
            rows.append(f"| {name} | {shown} | {about} |")
    head = ["| packet | fields | value and unit |", "|---|---|---|"]
    return "\n".join([*head, *rows])


def metrics_table() -> str:
    """Return a row for each metric."""
    world = SimpleNamespace(time=0.0, tick=0, robots=())
    hub = SimpleNamespace(
        sim=world,
        step_time=0.0,
        ratio=0.0,
        overruns=0,
        is_paused=False,
        dropped_frames=0,
        dropped_reports=0,
    )
    rows = [
        f"| `botyard_{name}` | {kind} | {about} |"
        for name, kind, about, _ in metrics.figures(hub, (), 0)  # type: ignore[arg-type]
    ]
    return "\n".join(["| metric | type | meaning |", "|---|---|---|", *rows])


def channels_table() -> str:
    """Return a row for each channel of botyard's own in a recording."""
    docs = ModuleAnalyzer.for_module(own_channels.__name__).find_attr_docs()
    about = {
        topic: " ".join(" ".join(lines).split())
        for (of, name), lines in docs.items()
        if not of and isinstance(topic := getattr(own_channels, name), str)
    }
    rows = [
        f"| `{topic}` | `{kind}` | {about[topic]} |"
        for topic, kind in own_channels.TYPES.items()
    ]
    return "\n".join(["| channel | type | meaning |", "|---|---|---|", *rows])


def names_table() -> str:
    """Return the rows of all public names with their pages."""
    rows = []
    for group, names in groups().items():
        for full in names:
            name = full.rpartition(".")[2]
            about = sections(inspect.getdoc(find(full)) or "")[""].partition("\n\n")[0]
            text = " ".join(about.split()).replace("|", "\\|")
            if name.startswith("__"):
                continue
            rows.append((group, f"| [`{full}`]({group}.md#{name.lower()}) | {text} |"))
    return "\n".join(["| name | group |", "|---|---|", *(row for _, row in rows)])
