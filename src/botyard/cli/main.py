"""Command ``botyard``: find the subcommand, and report errors in one line.

Each kind of error has its own exit status (feature table, area EXIT).
"""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from botyard.cli import interrupts
from botyard.cli.options import MapParam
from botyard.cli.overview import write_overview
from botyard.errorpages import with_page
from botyard.errors import BotyardError, ExitCode, MapError
from botyard.names import shown
from botyard.version import __version__

COMMANDS: Final[Mapping[str, str]] = {
    **{
        name: f"{name}:command"
        for name in (
            "run",
            "demo",
            "models",
            "maps",
            "convert",
            "scenario",
            "discover",
            "doctor",
            "packets",
            "drive",
            "traffic",
            "warmup",
            "interfaces",
            "replay",
            "export",
            "render",
            "snapshot",
            "study",
            "bench",
            "calibrate",
            "compare",
        )
    },
    "convertBitmapToArMap": "convert:bitmap_tool",
    "convertSfWorldToMap": "convert:saphira_tool",
    "addSfWorldLinesToMap": "convert:saphira_lines_tool",
}
"""Module of this package and object for each command; imported on first use."""


class _Commands(click.Group):
    """Group of all commands, which imports only the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name; None: unknown."""
        where = COMMANDS.get(cmd_name)
        if where is None:
            return None
        module, _, name = where.partition(":")
        found: click.Command = getattr(import_module(f"botyard.cli.{module}"), name)
        return found

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of a command line, completed by the default command."""
        # Without a word, the shell completes a command or a map: see `shell_complete`.
        if args or not extra.get("resilient_parsing"):
            args = _with_subcommand(args)
        return super().make_context(info_name, args, parent, **extra)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the short help of ``botyard --help``."""
        run = self.get_command(ctx, "run")
        assert run is not None
        write_overview(formatter, run, ctx)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a command, or a map or an option of ``run``, the default command."""
        found = super().shell_complete(ctx, incomplete)
        run = self.get_command(ctx, "run")
        assert run is not None
        if incomplete.startswith("-"):
            return found + run.shell_complete(click.Context(run), incomplete)
        return found + MapParam().shell_complete(ctx, run.params[0], incomplete)


HELPS: Final = frozenset({"-h", "--help", "-help"})
"""Options that print the short help, if no command is named."""
HELP_ALL: Final = "--help-all"
"""Option that prints all options of the default command."""
VERSIONS: Final = frozenset({"--version", "-version", "-v"})
"""Options that print the version, regardless of the rest of the command line."""
OTHER_WORDS: Final[Mapping[str, str]] = {
    "serve": "run",
    "server": "run",
    "start": "run",
    "simulate": "run",
    "sim": "run",
    "robots": "models",
    "list": "maps",
    "world": "maps",
    "worlds": "maps",
    "check": "scenario check",
    "generate": "maps generate",
    "info": "doctor",
    "compile": "warmup",
    "teleop": "drive",
    "plugins": "interfaces",
    "record": "run --record",
    "show": "demo",
    "tour": "demo",
    "draw": "render",
    "movie": "render",
    "picture": "snapshot",
    "benchmark": "bench",
    "fit": "calibrate",
    "diff": "compare",
    "experiment": "study",
    "sweep": "study",
    "help": "--help",
    "version": "--version",
}
"""Words that users of other programs type, and the commands that they mean."""


def _with_subcommand(args: Sequence[str]) -> list[str]:
    """Return the arguments with ``run`` inserted if they start with no subcommand.

    An AMRISim command line such as ``-m office`` thus only needs the new program name.
    """
    if VERSIONS & set(args):
        return ["--version"]
    if args and args[0] in COMMANDS:
        return list(args)
    if HELP_ALL in args:
        return ["run", "--help"]
    if HELPS & set(args):
        return ["--help"]
    return ["run", *args]


@click.group(cls=_Commands, context_settings={"help_option_names": sorted(HELPS)})
@click.version_option(__version__, prog_name="botyard")
def program() -> None:
    """Simulate mobile robots that real robot software can connect to."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and exit with the status that corresponds to its result.

    The exit statuses are in the feature table, area EXIT.

    Parameters
    ----------
    args : sequence of str, optional
        Arguments without the program's name; by default the process's own.
    """
    typed = sys.argv[1:] if args is None else args
    interrupts.command()
    show_all_characters()

    try:
        status = program.main(list(typed), prog_name="botyard", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:  # its message is the help
        click.echo(error.format_message(), err=True)
        interrupts.exit_program(int(ExitCode.COMMAND_LINE))
    except click.UsageError as error:
        text = _no_command(typed) or _of_usage(error, typed)
        _fail(error, text, ExitCode.COMMAND_LINE)
    except (interrupts.Interrupted, KeyboardInterrupt, click.Abort):
        interrupts.exit_interrupted()
    except BotyardError as error:
        _fail(error, f"{error}{_of_command(error, typed)}", error.exit_code)
    except BrokenPipeError:
        # The reader of the output has closed its pipe (for example, head): end without
        # a message.
        sys.stderr.close()
        interrupts.exit_program(0)
    except Exception:
        # After Ctrl-C, an error during cleanup is not worth a message.
        if interrupts.was_interrupted():
            interrupts.exit_interrupted()
        raise

    interrupts.exit_program(status if isinstance(status, int) else 0)


def show_all_characters() -> None:
    """Escape characters that the terminal's encoding lacks.

    Otherwise the name of a robot or file could raise an error when it is printed.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in (
            "strict",
            "surrogateescape",
        ):
            stream.reconfigure(errors="backslashreplace")


def _no_command(typed: Sequence[str]) -> str:
    """Return an error message if the first word resembles a command.

    Otherwise empty text.
    """
    near = _near_command(typed[0]) if typed and typed[0] not in COMMANDS else ""
    if not near:
        return ""
    from botyard.formats.mapsearch import find_map

    try:
        # A map of this name takes precedence: ``botyard office`` runs a map.
        find_map(typed[0])
    except MapError:
        return f'No such command: {shown(typed[0])}; did you mean "botyard {near}"? ("botyard --help" lists all commands)'

    return ""


def _near_command(word: str) -> str:
    """Return the command that a mistyped word probably means; empty: no command is similar."""
    if not word.isalpha():
        return ""
    near = difflib.get_close_matches(
        word.lower(), [*COMMANDS, *OTHER_WORDS], n=1, cutoff=0.6
    )
    return OTHER_WORDS.get(near[0], near[0]) if near else ""


def _of_usage(error: click.UsageError, typed: Sequence[str]) -> str:
    """Return the error message for an invalid command line."""
    if isinstance(error, click.NoSuchOption):
        return _of_option(error, typed)
    hint = (
        f'see "{error.ctx.command_path} --help"'
        if error.ctx
        else 'see "botyard --help"'
    )
    return f"{error.format_message()} ({hint})"


def _of_option(error: click.NoSuchOption, typed: Sequence[str]) -> str:
    """Return the error message for an unknown option.

    The message has the typed word and the closest option.
    """
    known: list[str] = []
    where = "botyard"
    if error.ctx is not None:
        known = [
            o
            for p in error.ctx.command.get_params(error.ctx)
            for o in (*p.opts, *p.secondary_opts)
        ]
        where = error.ctx.command_path

    word = next(
        (
            w
            # click names the shortest prefix only; find the word that the user typed.
            for w in (a.partition("=")[0] for a in typed)
            if w.startswith(error.option_name) and w not in known
        ),
        error.option_name,
    )
    near = difflib.get_close_matches(
        word.lstrip("-").lower(), [o.lstrip("-") for o in known], n=1, cutoff=0.6
    )
    meant = [o for o in known if near and o.lstrip("-") == near[0]]
    hint = (
        f"; did you mean {max(meant, key=lambda o: o.startswith('--') == word.startswith('--'))}?"
        if meant
        else ""
    )
    return f'No such option: {shown(word)}{hint} ("{where} --help" lists the options)'


def _of_command(error: BotyardError, typed: Sequence[str]) -> str:
    """Return a hint for a first word that is neither a map nor a command."""
    if not isinstance(error, MapError) or not typed or not typed[0].isalpha():
        return ""
    # This command accepts file names as well as subcommands.
    if typed[0] in COMMANDS:
        group = program.get_command(click.Context(program), typed[0])
        word = next((w for w in typed[1:] if not w.startswith("-")), "").lower()
        inner = (
            list(group.commands)
            if isinstance(group, click.Group) and word.isalpha()
            else []
        )
        near = next(iter(difflib.get_close_matches(word, inner, n=1, cutoff=0.6)), "")
        return (
            f'; did you mean the command "botyard {typed[0]} {near}"?'
            if near and near != word
            else ""
        )

    near = _near_command(typed[0])
    return f'; did you mean the command "botyard {near}"?' if near else ""


def _fail(error: Exception, message: str, code: ExitCode) -> NoReturn:
    """Print an error message, and exit; after Ctrl-C, report the interruption instead."""
    if interrupts.was_interrupted():
        interrupts.exit_interrupted()
    click.echo(f"botyard: error: {with_page(error, message)}", err=True)
    interrupts.exit_program(int(code))
