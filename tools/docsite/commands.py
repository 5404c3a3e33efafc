"""Reference of the command line, from the tables of click and of `botyard.app`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from botyard.app.declaration import Option
from botyard.app.keywords import keyword_default, value_words
from botyard.app.kinds import Flag
from botyard.app.options import OPTIONS, SECTIONS
from botyard.cli import main
from botyard.cli.overview import GROUPS
from botyard.errorpages import PAGES
from botyard.errors import BotyardError, ExitCode
from botyard.extras import EXTRAS

STATUSES: Final = {
    ExitCode.OK: "Success.",
    ExitCode.PEER: "A client command found no robot or simulator, or a check failed.",
    ExitCode.UNREADABLE: "A recording cannot be read.",
    ExitCode.MODELS_MISSING: "The folder that `AMRISIM` or `MOBILESIM` names does not exist.",
    ExitCode.ROS_MASTER: "The ROS 1 master cannot be reached or started.",
    ExitCode.CRASH: "An error in botyard itself, or RESET of a client.",
    ExitCode.CWD: "The working folder (`--cwd`) cannot be entered.",
    ExitCode.TCP_PORT: "A TCP port is taken or not allowed.",
    ExitCode.ROBOT_INIT: "A robot model is unknown or wrong.",
    ExitCode.PARAMETER_FILE: "A parameter file of a robot cannot be read.",
    ExitCode.DAEMON: "The process cannot run in the background.",
    ExitCode.WORLD_INIT: "The world cannot be created.",
    ExitCode.MAP_LOAD: "A map cannot be found or read.",
    ExitCode.TEMP_FILE: "A temporary file cannot be written.",
    ExitCode.COMMAND_LINE: "The command line is wrong, or a file must not be replaced.",
}
"""Meaning of each exit status, for the reference."""


def cell(text: str) -> str:
    """Return the escaped text of a cell."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def _commands(
    group: click.Group, ctx: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=ctx)
        yield command, inner
        if isinstance(command, click.Group):
            yield from _commands(command, inner)


def _default(option: click.Option) -> str:
    shown = option.default
    if option.is_flag or shown is None or shown == () or option.show_default is False:
        return ""
    if "UNSET" in repr(shown) or callable(shown):
        return ""
    return f"`{shown}`" if str(shown) else ""


def _prose(help_text: str) -> str:
    """Return a help text as Markdown; a paragraph after \\b keeps its lines."""
    out = []
    for paragraph in re.split(r"\n\s*\n", help_text.replace("\f", "").strip()):
        if paragraph.lstrip().startswith("\b"):
            lines = paragraph.lstrip().removeprefix("\b").strip("\n")
            out.append(f"```text\n{lines}\n```")
        else:
            # Indented lines would be a block of code.
            out.append("\n".join(line.strip() for line in paragraph.splitlines()))
    return "\n\n".join(re.sub(r"(?<!`)<(?=\w)", r"\\<", text) for text in out)


def _section(command: click.Command, ctx: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(ctx))
    out = [
        f"## {ctx.command_path}\n",
        f"```text\n{ctx.command_path} {usage}\n```\n",
        _prose(command.help or "") + "\n",
    ]
    if ctx.command_path == "botyard run":
        return "\n".join(
            [*out, "The options have a page of their own: [options](options.md).\n"]
        )
    rows = []
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        spelled = ", ".join(
            f"`{o}`" for o in (*parameter.opts, *parameter.secondary_opts)
        )
        value = "" if parameter.is_flag else parameter.make_metavar(ctx)
        rows.append(
            f"| {spelled} {cell(value)} | {_default(parameter)} | {cell(parameter.help or '')} |"
        )
    if rows:
        out += ["| option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(out)


def commands_page() -> str:
    """Return a section for each command, with its options."""
    ctx = click.Context(main.program, info_name="botyard")
    return "\n".join(_section(c, inner) for c, inner in _commands(main.program, ctx))


def groups_page() -> str:
    """Return a table of the commands by purpose."""
    rows = []
    for title, names in GROUPS.items():
        links = ", ".join(
            f"[{n}](#botyard-{n.lower().replace(' ', '-')})" for n in names
        )
        rows.append(f"| {title} | {links} |")
    return "\n".join(["| | commands |", "|---|---|", *rows])


def _option_row(option: Option) -> str:
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
    return f"| {names} {cell(value)} | {cell(option.help)}{default} | {world} | {cell(python)} |\n"


def options_page() -> str:
    """Return the tables of the options of a run, by section."""
    out = []
    for section in SECTIONS:
        out.append(
            f"\n## {section}\n\n| option | | world | Python |\n|---|---|---|---|\n"
        )
        out += [
            _option_row(o)
            for o in OPTIONS.values()
            if o.section == section and o.flags and not o.hidden
        ]
    return "".join(out)


def _errors() -> Iterator[type[BotyardError]]:
    wanted = [BotyardError]
    while wanted:
        kind = wanted.pop()
        yield kind
        wanted += kind.__subclasses__()


def exit_page() -> str:
    """Return the table of exit statuses."""
    # Their modules define errors that nothing else here imports.
    import botyard.cli.crash  # noqa: F401

    rows = []
    for code in ExitCode:
        kinds = {
            kind.__name__
            for kind in _errors()
            if kind.exit_code is code and kind.__module__.startswith("botyard")
        }
        errors = ", ".join(f"`{name}`" for name in sorted(kinds))
        rows.append(f"| {int(code)} | {STATUSES[code]} | {errors} |")
    return "\n".join(["| status | meaning | errors |", "|---|---|---|", *rows])


def error_pages() -> str:
    """Return the table of messages and their pages."""
    rows = [
        f"| `{row.kind}` | {f'`{row.words.strip()}`' if row.words else ''} | [{row.page}](../{row.page}) |"
        for row in PAGES
    ]
    return "\n".join(["| error | words | page |", "|---|---|---|", *rows])


def extras_page() -> str:
    """Return the table of extras."""
    rows = [
        f"| `{name}` | {one.purpose} | {', '.join(f'`{m}`' for m in one.modules)} |"
        for name, one in EXTRAS.items()
    ]
    return "\n".join(["| extra | for | modules |", "|---|---|---|", *rows])
