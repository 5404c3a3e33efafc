"""The command ``botyard``: finds the subcommand, turns errors into one clear line and the exit code of the table."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from botyard import __version__
from botyard.cli import convert, discover, doctor, drive, maps, models, packets, run, scenario, traffic, warmup
from botyard.errors import BotyardError, ExitCode

COMMANDS: dict[str, click.Command] = {
    "run": run.command,
    "models": models.command,
    "maps": maps.command,
    "convert": convert.command,
    "scenario": scenario.command,
    "discover": discover.command,
    "doctor": doctor.command,
    "packets": packets.command,
    "drive": drive.command,
    "traffic": traffic.command,
    "warmup": warmup.command,
    **convert.TOOLS,
}


def _with_subcommand(args: Sequence[str]) -> list[str]:
    """``botyard -m office`` means ``botyard run -m office``: an old command line needs only the new program name."""
    if args and args[0] in COMMANDS:
        return list(args)
    if list(args) in (["--version"], ["-v"], ["-version"]):
        return ["--version"]
    return ["run", *args]


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help", "-help"]})
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
    click.echo(f"botyard: error: {message}", err=True)
    sys.exit(int(code))
