"""HTML tables that notebooks show for simulations and worlds."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

MAX_ROWS: Final = 12
"""Highest number of rows in a table; a line below it counts the omitted rows."""


def page(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    picture: bytes = b"",
) -> str:
    """Return a title, a picture and a table as HTML.

    All text is escaped. Numbers have three decimal places.

    Parameters
    ----------
    title : str
        Line above the table.
    heads : sequence of str
        Heads of the columns.
    rows : sequence of sequences
        Cells, as many as heads. At most `MAX_ROWS` rows are shown; the others are only
        counted, and need no content.
    picture : bytes
        PNG file; empty: no picture.
    """
    parts = [f"<p><b>{escape(title)}</b></p>"]
    if picture:
        parts.append(
            # A data URL: notebooks have no folder for pictures.
            f'<img style="max-width:100%" src="data:image/png;base64,{b64encode(picture).decode()}">'
        )

    if rows:
        parts.append(
            "<table>"
            + _row("th", heads)
            + "".join(_row("td", row) for row in rows[:MAX_ROWS])
            + "</table>"
        )

    # Notebooks keep their output: thousands of rows would make their files huge.
    if len(rows) > MAX_ROWS:
        parts.append(f"<p>and {len(rows) - MAX_ROWS} more</p>")
    return "".join(parts)


def _row(tag: str, cells: Iterable[object]) -> str:
    return (
        "<tr>"
        + "".join(f"<{tag}>{escape(_text(cell))}</{tag}>" for cell in cells)
        + "</tr>"
    )


def _text(value: object) -> str:
    # The option z shows −0.000 as 0.000.
    return f"{value:z.3f}" if isinstance(value, float) else str(value)


__all__ = ["MAX_ROWS", "page"]
