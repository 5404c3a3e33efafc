"""HTML pages of reports; each is one file that includes its style and its figures."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

from botyard.names import shown
from botyard.processes.safefile import MARK

MAX_NAME: Final = 80
"""Longest name that a report shows, characters."""
_STYLE: Final = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}
td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
.w td,.w th{white-space:normal}.w span{white-space:nowrap}
th{border-bottom:2px solid #888}td.t,th.t{text-align:left}img{max-width:100%;margin:.5em}.i{color:#777;font-size:85%}"""


def document(title: str, parts: Iterable[str]) -> str:
    """Return an HTML page with a title and parts in HTML.

    Parameters
    ----------
    title : str
        Title and heading; characters of HTML are escaped.
    parts : iterable of str
        Parts of the body as HTML; they are not escaped.
    """
    name = escaped(title)
    head = (
        f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><!-- {MARK} "
        f"--><title>{name}</title>\n"
        f"<style>{_STYLE}</style></head><body><h1>{name}</h1>"
    )
    return "\n".join([head, *parts, "</body></html>\n"])


def escaped(text: str, limit: int = MAX_NAME) -> str:
    """Return a text with at most `limit` characters, with characters of HTML escaped.

    Parameters
    ----------
    text : str
        Text from any source.
    limit : int
        Greatest length, characters before the escaping.
    """
    return html.escape(shown(text, limit))


def plain_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    limit: int = 300,
    is_last_text: bool = False,
) -> str:
    """Return an HTML table whose cells are texts.

    On narrow pages, cells wrap, but not inside the interval after a number ("5 (4 … 6)").
    Columns of texts are aligned to the left, columns of numbers to the right.

    Parameters
    ----------
    heads : sequence of str
        Headings of the columns.
    rows : iterable of sequence of str
        Cells, as any text; they are escaped.
    texts : int
        Number of columns at the left that contain texts.
    limit : int
        Greatest length of a cell, characters.
    is_last_text : bool
        Whether the last column contains texts too.
    """

    def row(cells: Sequence[str], tag: str) -> str:
        found = []
        for n, cell in enumerate(cells):
            if n < texts or (is_last_text and n == len(cells) - 1):
                found.append(f"<{tag} class=t>{escaped(cell, limit)}</{tag}>")
            # A number and its interval may take two lines.
            else:
                parts = escaped(cell, limit).replace(" (", "</span> <span>(")
                found.append(f"<{tag}><span>{parts}</span></{tag}>")

        return f"<tr>{''.join(found)}</tr>"

    return f"<table class=w>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


def image(figure: Any, name: str) -> str:
    """Return a matplotlib figure as a picture inside the page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure. It is not closed.
    name : str
        Alternative text for readers who do not see the picture.
    """
    import matplotlib

    data = io.BytesIO()
    # With a fixed salt for element ids, and no date, equal figures give equal bytes.
    with matplotlib.rc_context({"svg.hashsalt": "botyard"}):
        figure.savefig(data, format="svg", metadata={"Date": None, "Creator": MARK})
    text = base64.b64encode(data.getvalue()).decode()
    return (
        f"<img alt='{html.escape(shown(name, MAX_NAME), quote=True)}' "
        f"src='data:image/svg+xml;base64,{text}'>"
    )


__all__ = ["MAX_NAME", "document", "escaped", "image", "plain_table"]
