"""``botyard discover``: find simulators and robots in the network."""

from __future__ import annotations

import json

import click

from botyard.clients.discovery import find_hosts, probe
from botyard.errors import PeerError
from botyard.names import shown
from botyard.processes.slow_notice import telling


@click.command("discover")
@click.option(
    "--seconds",
    # Answers arrive within milliseconds; more than a minute can only be a mistake.
    type=click.FloatRange(0.1, 60),
    default=2.0,
    show_default=True,
    help="Time to wait for answers, s.",
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    default=8101,
    show_default=True,
    help="First port to try.",
)
@click.option(
    "--no-probe",
    is_flag=True,
    help="Only list computers, do not connect to their robots.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(seconds: float, port: int, no_probe: bool, as_json: bool) -> None:
    """Find computers that serve robots, and the robots behind their ports.

    Finds real robots, AMRISim and botyard.
    """
    with telling(
        f"waiting {seconds:g} s for answers",
        after=3.0,
        # The default time is short enough to need no progress message.
    ):
        hosts = find_hosts(seconds)

    with telling("asking the computers found for their robots"):
        # A probe briefly occupies the only connection of a robot. --no-probe avoids
        # this on real robots.
        found = {host: [] if no_probe else probe(host, first=port) for host in hosts}

    if as_json:
        listed = {
            h: [
                {
                    "port": r.port,
                    "class": r.class_name,
                    "subclass": r.subclass,
                    "busy": r.is_busy,
                }
                for r in rs
            ]
            for h, rs in found.items()
        }
        click.echo(json.dumps(listed))
        return

    # With --json, an empty object is a valid answer. Otherwise, print the most frequent
    # cause for the user.
    if not hosts:
        raise PeerError(
            "no computer answered; robots that listen on the loopback address "
            "are found only from their own computer"
        )

    for host, robots in found.items():
        click.echo(shown(host))
        for r in robots:
            click.echo(
                f"  port {r.port}: "
                + (
                    "in use by a client"
                    if r.is_busy
                    else shown(f"{r.class_name} {r.subclass} ({r.name})", 200)
                )
            )
