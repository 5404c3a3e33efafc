"""Parts of pages that are made from the program at each build."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from tools import gallery
from tools.docsite import api, apigroups, commands, models, tables

MARK: Final = re.compile(r"^(?:> .*\n)*<!-- made: ([\w-]+) -->$", re.MULTILINE)
"""Where a made part stands in a page.

A quotation directly above it is for readers of the file, who do not see the part.
"""

MAKERS: Final[Mapping[str, Callable[[], str]]] = {
    **{f"api-{group}": partial(api.page, group) for group in apigroups.groups()},
    "api-names": tables.names_table,
    "commands": commands.commands_page,
    "command-groups": commands.groups_page,
    "options": commands.options_page,
    "exit-statuses": commands.exit_page,
    "error-pages": commands.error_pages,
    "extras": commands.extras_page,
    "pioneer-commands": tables.commands_of_pioneer,
    "pioneer-operations": tables.operations_of_pioneer,
    "pioneer-packets": tables.packets_of_pioneer,
    "pioneer-fields": tables.fields_of_pioneer,
    "metrics": tables.metrics_table,
    "channels": tables.channels_table,
    "models": models.catalogue,
    "lidars": models.lidars,
    "demos": gallery.demos,
    "examples": gallery.scripts,
    "teleops": gallery.teleops,
    "worlds": gallery.worlds,
}
"""Function of each part; it returns Markdown."""


def filled(text: str) -> str:
    """Return the text of a page with its made parts."""
    return MARK.sub(lambda found: MAKERS[found[1]](), text)


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def _outdated(app: Any, env: Any, *changes: set[str]) -> Iterable[str]:
    """Return the pages with made parts: the program may have changed."""
    return [
        name
        for name in env.found_docs
        if MARK.search(env.doc2path(name).read_text("utf-8"))
    ]


def setup(app: Any) -> None:
    """Connect to the build."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _outdated)
