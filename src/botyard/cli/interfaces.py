"""``botyard interfaces``: list the interfaces of botyard and of other packages."""

from __future__ import annotations

import click

from botyard.app.reference import interface_rows, option_rows
from botyard.cli.listing import print_table


@click.command("interfaces")
@click.argument("names", nargs=-1)
def command(names: tuple[str, ...]) -> None:
    """List all interfaces, or the options of the NAMED ones.

    Includes interfaces of other packages. botyard run --interface NAME starts one.
    """
    if not names:
        print_table(
            (
                "interface",
                "transport",
                "port",
                "starts with the run",
                "installed",
                "description",
            ),
            interface_rows(),
        )
        return

    for name in names:
        rows = option_rows(name)
        if rows:
            print_table((f"option of {name}", "value", "default", "description"), rows)
        else:
            click.echo(f"{name} has no options")
