"""``botyard replay``: show a recording, describe its contents, or verify its run."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from botyard.app.declaration import AMBF, PAGE, ROS
from botyard.app.options import OPTIONS, RunOptions
from botyard.cli import interrupts
from botyard.cli.logs import set_up_logging
from botyard.cli.options import max_read_option
from botyard.cli.runoptions import with_some_options
from botyard.cli.showing import show
from botyard.errors import ExitCode
from botyard.formats.budget import Budget
from botyard.names import shown
from botyard.processes.slow_notice import telling

if TYPE_CHECKING:
    from botyard.recording.player import Player

PROGRESS_S = 1.0
"""Wall time between two updates of the progress line on a terminal, s."""
_NOT_HERE: Final = frozenset(
    {"history", "start_dialog", "localization", "ros_map", "cmd_vel_timeout"}
)
_MORE: Final = frozenset(
    {
        "port",
        "bind_to_address",
        "read_only",
        "interface",
        "log_file",
        "log_format",
        "verbose",
        "less_verbose",
        "json",
        "metrics_port",
    }
)
SHOWN: Final = tuple(
    name
    for name, one in OPTIONS.items()
    if (one.section in (PAGE, ROS, AMBF) and name not in _NOT_HERE) or name in _MORE
)
"""Options of ``botyard run`` that ``botyard replay`` also has."""
REST: Final = frozenset({"pioneer", "discovery"})
"""Interfaces that ``run`` serves by default, but ``replay`` does not."""


@click.command(
    "replay",
    context_settings={
        "help_option_names": ["-h", "--help", "-help"],
        "max_content_width": 110,
    },
)
@click.argument("file", metavar="FILE")
@click.option(
    "--resimulate",
    "again",
    is_flag=True,
    help="Simulate the run again from its first state and its journal, and "
    "compare every digest and state. "
    "Status 0: all are equal; 1: the first difference is printed; 2: the recording cannot be read.",
)
@click.option(
    "--info", is_flag=True, help="Describe the contents of the file, and exit."
)
@click.option(
    "--pioneer",
    is_flag=True,
    help="Also serve the robots on ports of the Pioneer protocol (--port).",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 1000.0),
    default=1.0,
    show_default=True,
    help="Speed as a multiple of real time.",
)
@click.option("--loop", is_flag=True, help="Repeat from the start after the end.")
@click.option("--paused", is_flag=True, help="Start paused.")
@max_read_option
@with_some_options(*SHOWN)
def command(
    file: str,
    again: bool,
    info: bool,
    pioneer: bool,
    speed: float,
    loop: bool,
    paused: bool,
    max_read: tuple[str, ...],
    **options: Any,
) -> int:
    """Show a recording on the page, with a time line.

    Options serve it over ROS and other interfaces as well, describe its contents
    (--info), or verify its run (--resimulate).
    """
    budget = Budget().raised(max_read)
    if again:
        return _resimulate(file, budget)
    if info:
        return _describe(file, budget)
    from botyard.app.checks import check_options

    o = RunOptions(**options, history=0.0, no_network_discovery=not pioneer)
    check_options(o)
    interrupts.terminate_too()
    logs = set_up_logging(
        verbose=o.verbose, quiet=o.less_verbose, file=o.log_file, form=o.log_format
    )
    try:
        player = _player(file, budget)
        player.loop = loop
        return interrupts.run_loop(_show(player, file, o, pioneer, speed, paused))
    finally:
        logs.close()


def _player(file: str, budget: Budget) -> Player:
    """Return a player of a recording: of its states, or otherwise of its ROS messages.

    Raises
    ------
    RecordingError
        The recording cannot be read.
    """
    from botyard.cli.warmup import warm_up_with_progress
    from botyard.recording.fallback import open_player

    warm_up_with_progress(masses=False)
    with telling(f"reading {file}"):
        player = open_player(file, budget)
    for problem in player.track.problems:
        logging.getLogger("botyard").warning("%s: %s", shown(file), shown(problem, 700))
    return player


async def _show(
    player: Player, file: str, o: RunOptions, pioneer: bool, speed: float, paused: bool
) -> int:
    """Serve a recording until a signal or the page ends the program."""
    from botyard.app.compose import Parts
    from botyard.app.page import Page
    from botyard.interfaces.page.recorded import RecordingLine
    from botyard.servers.jobs.movies import RecordedMoments

    def prepare(parts: Parts) -> None:
        parts.control.shows_recording = True
        parts.robot_servers.is_serving = pioneer
        parts.hub.set_speed(speed)
        player.ended = parts.hub.pause
        parts.movies.moments = lambda: RecordedMoments(player.track)
        if paused:
            parts.hub.pause()

    def on_page(parts: Parts, page: Page) -> None:
        page.desk.timeline = RecordingLine(
            player, parts.hub, parts.control, Path(file).name
        )

    return await show(
        player.sim,
        o,
        lambda url: _ready(player, file, url, o.json),
        rest=() if pioneer else REST,
        prepare=prepare,
        on_page=on_page,
    )


def _ready(player: Player, file: str, page: str | None, as_json: bool) -> str:
    """Return the line that announces that the recording is served."""
    if as_json:
        return json.dumps(
            {
                "ready": True,
                "recording": file,
                "begin": player.begin,
                "end": player.end,
                "page": page,
            }
        )

    where = f"\npage: {page}" if page else ""
    return (
        f"botyard ready: {shown(file)}, simulated time {player.begin:g} s to "
        f"{player.end:g} s{where}"
    )


def _describe(path: str, budget: Budget) -> int:
    """Print the metadata, time range and message counts of a recording."""
    from botyard.recording.reader import Reader

    with Reader(path, budget) as file:
        counts: dict[str, int] = {}
        # Times of MCAP are uint64, ns: the first message replaces both.
        times = [2**64, 0]
        for message in file.messages():
            counts[message.channel.topic] = counts.get(message.channel.topic, 0) + 1
            times = [min(times[0], message.time), max(times[1], message.time)]

        for name, values in file.metadata.items():
            for key, value in values.items():
                click.echo(f"{shown(name, 40)} {shown(key, 40)}: {shown(value, 200)}")

        if counts:
            click.echo(
                f"simulated time: {times[0] / 1e9:.3f} s to {times[1] / 1e9:.3f} s"
            )

        for topic in sorted(counts):
            click.echo(f"{counts[topic]:9} {shown(topic, 100)}")
        for problem in file.problems:
            click.echo(f"{shown(path)}: {shown(problem, 500)}", err=True)

    return 0


def _resimulate(path: str, budget: Budget) -> int:
    """Simulate a recorded run again, and print whether the result equals the recording."""
    from botyard.recording.verify import resimulate

    began = said = time.monotonic()

    def progress(tick: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= PROGRESS_S and sys.stderr.isatty():
            said = now
            click.echo(f"\r{tick} steps", err=True, nl=False)

    proof = resimulate(path, budget, progress)
    for note in proof.notes:
        click.echo(f"{shown(path)}: {shown(note, 500)}", err=True)
    if proof.divergence is not None:
        click.echo(shown(str(proof.divergence), 1000))
        return ExitCode.PEER

    click.echo(
        f"equal: {proof.steps} steps, {proof.changes} changes; {proof.digests} "
        f"digests, {proof.states} states "
        f"and all columns of {proof.checks} steps compared "
        f"(tick {proof.begin} to {proof.end}, {time.monotonic() - began:.1f} s)"
    )
    return 0
