"""The short help of ``botyard --help``: groups of commands and the most used options.

``botyard --help-all`` and ``botyard run --help`` list every option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "worlds": ("models", "maps", "convert", "scenario"),
    "robots": ("demo", "run", "drive", "discover", "traffic"),
    "recordings": ("replay", "export", "render", "snapshot", "packets"),
    "research": ("study", "bench", "calibrate", "compare"),
    "installation": ("doctor", "interfaces", "warmup"),
    "as in AMRISim": (
        "convertBitmapToArMap",
        "convertSfWorldToMap",
        "addSfWorldLinesToMap",
    ),
}
"""All commands in groups."""
OPTIONS: Final[Mapping[str, str]] = {
    "map": "map or world: a file, or a shipped map",
    "robot": "add a robot; repeatable",
    "start": "start pose of the next robot: mm, mm, degrees",
    "controller": "drive robots without a client: wander …",
    "port": "TCP port of the first robot",
    "ros2": "join ROS 2 (--ros1, --zenoh, --rosbridge …)",
    "fast": "step as fast as possible",
    "record": "record the run to an MCAP file",
    "no-gui": "do not serve the page",
    "seed": "seed of all random numbers",
}
"""Long names of the options that most users need, each with a few words."""
EXAMPLES: Final[Mapping[str, str]] = {
    "botyard": "asks for a map and robots on the page",
    "botyard demo office": "a show; botyard demo lists all",
    "botyard office -r p3dx -r amigo:bob": "two robots, on ports 8101 and 8102",
    "botyard office --controller wander": "a robot that drives itself",
}
"""Command lines, each with its effect."""


def write_overview(
    formatter: click.HelpFormatter, run: click.Command, ctx: click.Context
) -> None:
    """Write the help of ``botyard --help``.

    Parameters
    ----------
    formatter : click.HelpFormatter
        Output.
    run : click.Command
        Command ``run``.
    ctx : click.Context
        Context of the help.

    Raises
    ------
    KeyError
        An option of `OPTIONS` does not exist.
    """
    options = _options_of(run)
    formatter.write_usage("botyard", "[OPTIONS] [MAP]")
    formatter.write_usage("botyard", "COMMAND [ARGUMENTS]", "       ")
    formatter.write_paragraph()
    formatter.write(
        "Simulate mobile robots for ARIA, ROS 1 and ROS 2 programs, and for Python.\n"
    )
    with formatter.section("Options that most users need"):
        rows = [(_spelled(options[n], ctx), text) for n, text in OPTIONS.items()]
        formatter.write_dl([*rows, ("--help-all", "all options")])
    with formatter.section("Commands, each with --help"):
        formatter.write_dl([(title, ", ".join(GROUPS[title])) for title in GROUPS])
    width = max(map(len, EXAMPLES))
    with formatter.section("Examples"):
        formatter.write_dl([(f"{e:{width}}", EXAMPLES[e]) for e in EXAMPLES], width)


def _options_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by long name, without dashes."""
    return {
        spelling.removeprefix("--"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for spelling in parameter.opts
        if spelling.startswith("--")
    }


def _spelled(option: click.Option, ctx: click.Context) -> str:
    """Return the shortest and the longest spelling of an option, and its value."""
    long = max((o for o in option.opts if o.startswith("--")), key=len)
    short = [o for o in option.opts if len(o) == 2]
    value = "" if option.is_flag else f" {option.make_metavar(ctx)}"
    return ", ".join([*short, long]) + value


__all__ = ["EXAMPLES", "GROUPS", "OPTIONS", "write_overview"]
