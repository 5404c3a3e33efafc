"""``botyard replay``: what a recording holds, and the proof that its run comes out again."""

from __future__ import annotations

import sys
import time

import click

from botyard.cli.options import max_read_option
from botyard.errors import ExitCode
from botyard.formats.budget import Budget
from botyard.names import shown

PROGRESS_S = 1.0
"""Wall time between two lines of progress at a terminal, s."""


@click.command("replay")
@click.argument("file", metavar="FILE")
@click.option(
    "--resimulate", "again", is_flag=True,
    help="Do the run again from its first state and its journal, and compare every digest and state. "
    "Status 0: all are equal; 1: one differs, and it is said which; 2: the recording cannot be read.",
)  # fmt: skip
@max_read_option
def command(file: str, again: bool, max_read: tuple[str, ...]) -> int:
    """Say what is in a recording of --record, or do its run again."""
    budget = Budget().raised(max_read)
    return _resimulate(file, budget) if again else _describe(file, budget)


def _describe(path: str, budget: Budget) -> int:
    from botyard.recording.reader import Reader

    with Reader(path, budget) as file:
        counts: dict[str, int] = {}
        times = [2**64, 0]
        for message in file.messages():
            counts[message.channel.topic] = counts.get(message.channel.topic, 0) + 1
            times = [min(times[0], message.time), max(times[1], message.time)]
        for name, values in file.metadata.items():
            for key, value in values.items():
                click.echo(f"{shown(name, 40)} {shown(key, 40)}: {shown(value, 200)}")
        if counts:
            click.echo(f"simulated time: {times[0] / 1e9:.3f} s to {times[1] / 1e9:.3f} s")
        for topic in sorted(counts):
            click.echo(f"{counts[topic]:9} {shown(topic, 100)}")
        for problem in file.problems:
            click.echo(f"{shown(path)}: {shown(problem, 500)}", err=True)
    return 0


def _resimulate(path: str, budget: Budget) -> int:
    from botyard.recording.proof import resimulate

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
        f"equal: {proof.steps} steps, {proof.changes} changes; {proof.digests} digests and {proof.states} states compared "
        f"(tick {proof.begin} to {proof.end}, {time.monotonic() - began:.1f} s)"
    )
    return 0
