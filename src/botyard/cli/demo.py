"""``botyard demo``: shows of about a minute, on the page or as a film."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from botyard.app.checks import check_can_be_written, check_options
from botyard.app.options import RunOptions
from botyard.cli import interrupts
from botyard.cli.listing import FORCE, print_table
from botyard.cli.logs import set_up_logging
from botyard.cli.pictureoptions import DURATION
from botyard.cli.runoptions import with_some_options
from botyard.demos.catalog import SHOWS, Show
from botyard.errors import CommandLineError, did_you_mean
from botyard.names import shown

if TYPE_CHECKING:
    from botyard.pictures.options import PictureOptions

SECONDS: Final = 60.0
"""Simulated time of a film by default, s."""
MOST_SECONDS: Final = 3600.0
SPEED: Final = 4.0
"""Simulated seconds per second of a film."""
FPS: Final = 12.5
"""Frame rate of a film, 1/s."""
WIDTH: Final = 640
"""Width of a film, pixels."""
SUFFIXES: Final = ("gif", "mp4", "webp")
SEED: Final = 1
"""Default seed: a show looks the same on all computers."""
PROGRESS_S: Final = 1.0
"""Wall time between two updates of the progress line on a terminal, s."""
OPTIONS: Final = (
    "seed",
    "port",
    "gui_port",
    "gui_address",
    "gui_host",
    "gui_token",
    "no_browser",
    "noninteractive",
    "duration",
    "verbose",
    "less_verbose",
)
"""Options of ``botyard run`` that ``botyard demo`` also has."""


class ShowParam(click.ParamType[str]):
    """Parameter type of click for the name of a show."""

    name = "NAME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name of a show, or fail with the similar names."""
        name = str(value)
        if name not in SHOWS:
            self.fail(
                f"expected one of {', '.join(SHOWS)}, "
                f'found "{shown(name, 100)}"{did_you_mean(name, SHOWS)}',
                param,
                ctx,
            )
        return name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the name of a show, with its sentence as help."""
        return [
            CompletionItem(name, help=show.sentence)
            for name, show in SHOWS.items()
            if name.startswith(incomplete)
        ]


@click.command("demo")
@click.argument("name", metavar="[NAME]", type=ShowParam(), required=False)
@click.option(
    "--headless",
    is_flag=True,
    help="Without the page: write a picture and a film.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("."),
    metavar="FOLDER",
    help="With --headless: folder for NAME.png and NAME.gif. [default: this folder]",
)
@click.option(
    "--film",
    type=click.Choice(SUFFIXES),
    default="gif",
    show_default=True,
    help="With --headless: format of the film (mp4 needs the extra movie).",
)
@click.option(
    "--seconds",
    type=DURATION,
    default=SECONDS,
    metavar="TIME",
    help="With --headless: simulated time, such as 20s. [default: 60s]",
)
@with_some_options(*OPTIONS)
@FORCE
def command(
    name: str | None,
    headless: bool,
    output: Path,
    film: str,
    seconds: float,
    **given: Any,
) -> int:
    """Show what botyard does, on the page or as a film.

    Without NAME, list the shows.
    """
    if name is None:
        if headless:
            raise CommandLineError(
                f"--headless: expected NAME, one of {', '.join(SHOWS)}, found none"
            )
        print_table(
            ("demo", "what it shows"), [(n, s.sentence) for n, s in SHOWS.items()]
        )
        return 0

    if headless:
        return _film(name, output, film, seconds, given)
    return _serve(name, given)


def _seed(given: dict[str, Any]) -> int:
    return SEED if given["seed"] is None else int(given["seed"])


def _serve(name: str, given: dict[str, Any]) -> int:
    """Serve a show with the page."""
    from botyard.cli.showing import show

    one, seed = SHOWS[name], _seed(given)
    o = RunOptions(**given)
    check_options(o)
    interrupts.terminate_too()
    logs = set_up_logging(verbose=o.verbose, quiet=o.less_verbose)
    try:
        _warm_up(name)
        sim = one.make(seed)
        return interrupts.run_loop(
            show(
                sim,
                o,
                lambda url: (
                    f"botyard demo {name}: {one.sentence}.\n"
                    f"{len(sim.robots)} robots, seed {seed}; Ctrl-C ends it\npage: {url}"
                ),
            )
        )
    finally:
        logs.close()


def _warm_up(name: str) -> None:
    """Load or compile the kernels, and show a progress line."""
    from botyard.cli.warmup import warm_up_with_progress

    # Only the show with the crate needs the kernels for bodies with mass.
    warm_up_with_progress(masses=name == "push")


def _film(
    name: str, folder: Path, suffix: str, seconds: float, given: dict[str, Any]
) -> int:
    """Write the picture and the film of a show."""
    from botyard.pictures.files import save_picture
    from botyard.pictures.filming import film_options, film_run

    if not 0.0 < seconds <= MOST_SECONDS:
        raise CommandLineError(
            f"--seconds: expected more than 0 and at most {MOST_SECONDS:g} s, "
            f"found {seconds:g} s"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandLineError(
            f'--output: cannot make the folder "{folder}": {error.strerror}'
        ) from None
    force = bool(given["force"])
    movie, still = folder / f"{name}.{suffix}", folder / f"{name}.png"
    for path in (movie, still):
        check_can_be_written("--output", path, force=force)
    _warm_up(name)
    progress = _Progress(seconds)
    try:
        picture = film_run(
            SHOWS[name].make(_seed(given)),
            movie,
            seconds,
            _picture_of(SHOWS[name]),
            film_options(speed=SPEED, fps=FPS),
            force=force,
            progress=progress,
        )
        save_picture(picture, still, force=force)
    except OSError as error:
        raise CommandLineError(f"--output: cannot write in {folder}: {error}") from None
    finally:
        progress.end()

    click.echo(f"{SHOWS[name].sentence}.\n{still} written\n{movie} written")
    return 0


def _picture_of(one: Show) -> PictureOptions:
    """Return the contents of a show's frames."""
    from botyard.pictures.options import picture_options

    return picture_options(
        area=one.area, scans=one.scans or False, trails=one.trails, size=WIDTH
    )


class _Progress:
    """Progress line on a terminal."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._said, self._is_shown = seconds, time.monotonic(), False

    def __call__(self, at: float) -> None:
        now = time.monotonic()
        if now - self._said >= PROGRESS_S and sys.stderr.isatty():
            self._said, self._is_shown = now, True
            click.echo(f"\r{at:.1f} s of {self._seconds:g} s", err=True, nl=False)

    def end(self) -> None:
        """End the line."""
        if self._is_shown:
            click.echo(err=True)
