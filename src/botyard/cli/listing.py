"""Tables and pictures that commands print and write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from PIL.Image import Image


def print_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table; as wide as the terminal, or 160 columns into a file."""
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console.width = 160
    console.print(table)


def write_pictures(folder: Path, pictures: Iterable[tuple[str, Image]]) -> None:
    """Write each picture as ``NAME.png`` into `folder` and print where."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, image in pictures:
        path = folder / f"{name}.png"
        image.save(path)
        click.echo(path)
