"""``botyard render``: movies and pictures of recordings."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from botyard.app.checks import check_can_be_written
from botyard.cli.listing import FORCE
from botyard.cli.options import max_read_option
from botyard.cli.pictureoptions import DURATION, chosen_picture, with_picture_options
from botyard.errors import ArgumentError, CommandLineError
from botyard.formats.budget import Budget
from botyard.names import shown

PROGRESS_S = 1.0
"""Wall time between two updates of the progress line on a terminal, s."""


@click.command("render")
@click.argument("file", metavar="FILE")
@click.argument(
    "output", metavar="OUTPUT", type=click.Path(dir_okay=False, path_type=Path)
)
@click.option(
    "--from",
    "begin",
    type=DURATION,
    metavar="TIME",
    help="Start, simulated time: 10s, 2min. [default: start of FILE]",
)
@click.option(
    "--to",
    "end",
    type=DURATION,
    metavar="TIME",
    help="End, simulated time; a picture shows this moment. [default: end of FILE]",
)
@click.option(
    "--speed",
    type=float,
    default=1.0,
    show_default=True,
    help="Simulated seconds per second of the movie.",
)
@click.option(
    "--fps",
    type=float,
    help="Frames per second. [default: 25, at most one per step]",
)
@with_picture_options
@max_read_option
@FORCE
def command(
    file: str,
    output: Path,
    begin: float | None,
    end: float | None,
    speed: float,
    fps: float | None,
    max_read: tuple[str, ...],
    force: bool,
    **options: Any,
) -> int:
    """Render a recording of --record as a movie (.mp4, .gif, .webp) or a picture (.png
    ...).
    """
    from botyard.pictures.filming import film_options, render_recording

    picture = chosen_picture(**options)
    try:
        film = film_options(begin=begin, end=end, speed=speed, fps=fps)
    except ArgumentError as error:
        # The library's argument names differ from the option names.
        words = str(error).replace("begin:", "--from:", 1).replace("end:", "--to:", 1)
        raise CommandLineError(
            words if words.startswith("--") else f"--{words}"
        ) from None

    check_can_be_written("OUTPUT", output, force=force)
    said = time.monotonic()
    is_shown = False

    def progress(at: float) -> None:
        nonlocal said, is_shown
        now = time.monotonic()
        if now - said >= PROGRESS_S and sys.stderr.isatty():
            said, is_shown = now, True
            click.echo(f"\r{at:.1f} s", err=True, nl=False)

    budget = Budget().raised(max_read)
    try:
        notes = render_recording(
            file, output, picture, film, budget=budget, force=force, progress=progress
        )
    except ArgumentError as error:
        raise CommandLineError(str(error)) from None
    except (OSError, ValueError) as error:
        raise CommandLineError(f"OUTPUT: cannot write {output}: {error}") from None
    finally:
        if is_shown:
            # End the progress line.
            click.echo(err=True)

    for note in notes:
        click.echo(f"{shown(file)}: {shown(note, 500)}", err=True)
    click.echo(f"{output} written")
    return 0
