"""Old addresses of pages: each leads to the page that has the text now."""

from __future__ import annotations

import html
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).resolve().parents[2] / "docs/moved.toml"
PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>botyard: moved</title>
<meta http-equiv="refresh" content="0; url={to}">
<link rel="canonical" href="{to}">
</head>
<body><p>This page is now at <a href="{to}">{to}</a>.</p></body>
</html>
"""


def moves() -> Iterator[tuple[str, str, str]]:
    """Yield the old name, the new name and the anchor ("" or "#name") of each page."""
    for old, target in tomllib.loads(TABLE.read_text("utf-8"))["moved"].items():
        new, hash_sign, anchor = target.partition("#")
        yield old.removesuffix(".md"), new.removesuffix(".md"), hash_sign + anchor


def _write(app: Any, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    for old, new, anchor in moves():
        # An address that is a page of its own again, or leads nowhere, is an error.
        assert old not in app.env.found_docs, f"docs/moved.toml: {old}.md is there"
        assert new in app.env.found_docs, f"docs/moved.toml: no page {new}.md"
        path = Path(app.outdir) / f"{old}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        to = os.path.relpath(f"{new}.html", Path(old).parent).replace(os.sep, "/")
        path.write_text(PAGE.format(to=html.escape(to + anchor)), "utf-8")


def setup(app: Any) -> None:
    """Connect to the build."""
    app.connect("build-finished", _write)
