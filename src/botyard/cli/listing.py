"""Tables and pictures for the output of commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from botyard.names import shown

if TYPE_CHECKING:
    from PIL.Image import Image


FORCE = click.option(
    "--force", is_flag=True, help="Replace files that botyard did not write."
)
"""Option ``--force`` of all commands that write files."""


def print_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table with a bold first column.

    The table is as wide as the terminal, or 160 columns when written to a file. Cells
    are plain text: markup in them is not interpreted.

    Parameters
    ----------
    titles : iterable of str
        Head of each column.
    rows : iterable of iterable of str
        Cells of each row; long ones are folded.
    """
    table = Table(box=None, pad_edge=False)
    for n, title in enumerate(titles):
        table.add_column(title, overflow="fold", style="" if n else "bold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        # In a file or pipe, rich would fold the table at 80 columns.
        console.width = 160
    console.print(table)


def file_stem(name: str) -> str:
    """Return a file name, without suffix, for a name that comes from a file.

    The result never leaves the folder and never names a hidden file.

    Parameters
    ----------
    name : str
        Name from a file, with any characters.

    Returns
    -------
    str
        Letters, digits and `` -_.+()`` of the name, with ``_`` for other characters; at
        least ``_``.
    """
    stem = "".join(
        c if c.isalnum() or c in " -_.+()" else "_" for c in shown(name)
    ).strip(" .")
    return stem or "_"


def write_pictures(
    folder: Path, pictures: Iterable[tuple[str, Image]], *, force: bool = False
) -> None:
    """Write each picture as ``NAME.png`` into a folder and print its path.

    Parameters
    ----------
    folder : Path
        The folder; it is created if needed.
    pictures : iterable of (str, Image)
        Names and pictures.
    force : bool
        Replace pictures that botyard did not write.

    Raises
    ------
    KeptFileError
        A picture exists that botyard did not write, and `force` is False.
    """
    from botyard.pictures.files import save_picture

    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for name, image in pictures:
        stem = first = file_stem(name)
        n = 2
        while (
            stem.casefold() in taken
            # Two names may map to one file name, also on file systems that ignore case.
        ):
            stem, n = f"{first}_{n}", n + 1

        taken.add(stem.casefold())
        path = folder / f"{stem}.png"
        save_picture(image, path, force=force)
        click.echo(path)
