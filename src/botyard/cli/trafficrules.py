"""Options of ``botyard traffic`` for the rules of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from botyard.cli.options import SEED

if TYPE_CHECKING:
    from botyard.traffic.rules import Rules


def rules_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the rules of a run.

    Parameters
    ----------
    function : callable
        Function of the command; it receives the options as keyword arguments.
    """
    options = (
        click.option(
            "--time-limit",
            type=click.FloatRange(0.0),
            # About 11 days of simulated time: a run that needs more has no end.
            default=1e6,
            metavar="S",
            help="Maximum simulated time, after which the run ends as unfinished.",
        ),
        click.option(
            "--stop-at-end",
            is_flag=True,
            help="Robots stop exactly at the end of their path, instead of "
            "starting to brake there.",
        ),
        click.option(
            "--leaves",
            is_flag=True,
            help="Remove finished robots; otherwise they stay in their last sector.",
        ),
        click.option(
            "--on-collision",
            type=click.Choice(["end", "continue"]),
            default="end",
            show_default=True,
            help="End the run at a collision, or count it and let both robots brake.",
        ),
        click.option(
            "--original-braking",
            is_flag=True,
            help="Place critical points as the MMRS Simulator does: by the acceleration.",
        ),
        click.option(
            "--latency",
            type=click.FloatRange(0.0),
            default=0.0,
            metavar="S",
            help="Latency of each message.",
        ),
        click.option(
            "--jitter",
            type=click.FloatRange(0.0),
            default=0.0,
            metavar="S",
            help="Maximum random addition to the latency.",
        ),
        click.option(
            "--loss",
            type=click.FloatRange(0.0, 1.0),
            default=0.0,
            metavar="SHARE",
            help="Share of lost messages, from 0 to 1.",
        ),
        click.option(
            "--seed",
            type=SEED,
            default=1,
            show_default=True,
            help="Seed of all random numbers.",
        ),
    )

    # Decorators apply from the bottom up, so the reverse order keeps the order of the
    # help text.
    for option in reversed(options):
        function = option(function)
    return function


def rules_of(o: dict[str, Any]) -> Rules:
    """Return the rules that the options describe.

    Parameters
    ----------
    o : dict of str to object
        Values of `rules_options` by name; times in s.
    """
    from botyard.traffic.rules import Rules

    return Rules(
        time_limit=o["time_limit"],
        stop_at_end=o["stop_at_end"],
        leaves=o["leaves"],
        goes_on=o["on_collision"] == "continue",
        original_braking=o["original_braking"],
        latency=o["latency"],
        jitter=o["jitter"],
        loss=o["loss"],
        seed=o["seed"],
    )
