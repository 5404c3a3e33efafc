"""Files of the checkout that pages link: each gets a page of the site that shows it.

So links from ``docs/`` to examples and tests work without a network, and show the file
of the very version.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT: Final = Path(__file__).resolve().parents[2]
SCHEME: Final = "checkout:"
PAGES: Final[dict[str, str]] = {
    "README.md": "index",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
}
"""Files of the checkout that are pages of the site."""

LINK: Final = re.compile(r"\]\(((?:\.\./)+[^)\s#]*)((?:#[^)\s]*)?)\)")
MAX_BYTES: Final = 200_000


def page_of(path: str) -> str:
    """Return the name of the page that shows a file or folder."""
    return f"files/{path}"


def _rewrite(app: Any, docname: str, source: list[str]) -> None:
    """Mark the links that leave ``docs/``."""
    folder = Path(app.env.doc2path(docname)).parent

    def marked(found: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / found[1]))
        if path.is_relative_to(ROOT / "docs") or not path.is_relative_to(ROOT):
            return found[0]
        inside = path.relative_to(ROOT).as_posix()
        if inside in PAGES:
            page = app.env.doc2path(PAGES[inside])
            return f"]({os.path.relpath(page, folder)}{found[2]})"
        if not path.exists():
            return found[0]
        return f"]({SCHEME}{inside})"

    source[0] = LINK.sub(marked, source[0])


def _resolve(app: Any, doctree: nodes.document, docname: str) -> None:
    """Let marked links lead to the pages of their files."""
    for node in doctree.findall(nodes.reference):
        target = node.get("refuri", "")
        if target.startswith(SCHEME):
            path = target.removeprefix(SCHEME)
            app.env.botyard_files.setdefault(docname, set()).add(path)
            node["refuri"] = app.builder.get_relative_uri(docname, page_of(path))
            node["internal"] = True


def _collect(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page of each file that is linked, and of what linked folders hold."""
    linked = {path for paths in app.env.botyard_files.values() for path in paths}
    wanted = sorted(linked)
    while wanted:
        path = wanted.pop()
        body = _folder(ROOT / path) if (ROOT / path).is_dir() else _file(ROOT / path)
        if (ROOT / path).is_dir():
            inside = {p.relative_to(ROOT).as_posix() for p in _members(ROOT / path)}
            wanted += sorted(inside - linked)
            linked |= inside
        title = html.escape(path)
        yield (
            page_of(path),
            {"title": title, "body": f"<h1><code>{title}</code></h1>\n{body}"},
            "page.html",
        )


def _members(folder: Path) -> list[Path]:
    return sorted(
        p
        for p in folder.iterdir()
        if not p.name.startswith((".", "__pycache__"))
        and p.name != "node_modules"
        and (p.is_dir() or p.stat().st_size < MAX_BYTES)
    )


def _folder(path: Path) -> str:
    items = "".join(
        f'<li><a href="{html.escape(f"{path.name}/{p.name}.html")}">'
        f"<code>{html.escape(p.name)}{'/' if p.is_dir() else ''}</code></a></li>"
        for p in _members(path)
    )
    return f"<ul>{items}</ul>"


def _file(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return f"<p>{path.stat().st_size} bytes, not text.</p>"
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    code = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return f'<div class="highlight"><pre>{code}</pre></div>'


def _init(app: Any, env: Any, docnames: list[str]) -> None:
    if not hasattr(env, "botyard_files"):
        env.botyard_files = {}


def _purge(app: Any, env: Any, docname: str) -> None:
    if hasattr(env, "botyard_files"):
        env.botyard_files.pop(docname, None)


def _config(app: Any, config: Any) -> None:
    config.myst_url_schemes = {
        **dict.fromkeys(("http", "https", "mailto")),
        SCHEME.rstrip(":"): None,
    }


def setup(app: Any) -> None:
    """Connect to the build."""
    app.connect("config-inited", _config, priority=100)
    app.connect("env-before-read-docs", _init)
    app.connect("env-purge-doc", _purge)
    # After the made parts are filled in, because they also have links.
    app.connect("source-read", _rewrite, priority=600)
    app.connect("doctree-resolved", _resolve)
    app.connect("html-collect-pages", _collect)
