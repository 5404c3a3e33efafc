"""The command ``botyard``: finds the subcommand, turns errors into one clear line and the exit code of the table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

import click

from botyard import __version__
from botyard.errors import BotyardError, ExitCode
from botyard.names import escaped

COMMANDS: Final[Mapping[str, str]] = {
    **{
        name: f"{name}:command"
        for name in (
            "run", "models", "maps", "convert", "scenario", "discover", "doctor", "packets", "drive", "traffic", "warmup",
        )
    },
    "convertBitmapToArMap": "convert:bitmap_tool",
    "convertSfWorldToMap": "convert:saphira_tool",
    "addSfWorldLinesToMap": "convert:saphira_lines_tool",
}  # fmt: skip
"""Where each command is: a module of this package, and its name there. It is imported when it is asked for."""


class _Commands(click.Group):
    """The commands; most programs need one of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        where = COMMANDS.get(cmd_name)
        if where is None:
            return None
        module, _, name = where.partition(":")
        found: click.Command = getattr(import_module(f"botyard.cli.{module}"), name)
        return found


def _with_subcommand(args: Sequence[str]) -> list[str]:
    """``botyard -m office`` means ``botyard run -m office``: an old command line needs only the new program name."""
    if args and args[0] in COMMANDS:
        return list(args)
    if list(args) in (["--version"], ["-v"], ["-version"]):
        return ["--version"]
    return ["run", *args]


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help", "-help"]})
@click.version_option(__version__, prog_name="botyard")
def program() -> None:
    """Simulate mobile robots that real robot software can connect to."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the status of the table (feature table, area EXIT)."""
    arguments = _with_subcommand(sys.argv[1:] if args is None else args)
    try:
        status = program.main(arguments, prog_name="botyard", standalone_mode=False)
    except click.UsageError as error:
        hint = f'"{error.ctx.command_path} --help" tells more' if error.ctx else '"botyard --help" tells more'
        _fail(f"{error.format_message()} ({hint})", ExitCode.COMMAND_LINE)
    except click.Abort:
        sys.exit(0)
    except BotyardError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        sys.exit(0)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; so do we, quietly
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, code: ExitCode) -> None:
    click.echo(f"botyard: error: {escaped(message)}", err=True)
    sys.exit(int(code))
