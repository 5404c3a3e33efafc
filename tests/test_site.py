"""The site of the docs: it builds without a warning, and each link leads somewhere."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tools.docsite import apigroups, made

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# One worker builds the site, once.
pytestmark = pytest.mark.xdist_group("site")


class _Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif value and (tag, name) in {("a", "href"), ("img", "src")}:
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built version."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.docsite", "build", "--version", "1.2.3"]
    cache = ["--cache", str(out / "cache")]
    done = subprocess.run(
        [*command, *cache, "--out", str(out / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "site/1.2.3"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Page]:
    """All pages of the site."""
    return {p: _Page(p.read_text("utf-8")) for p in site.rglob("*.html")}


def test_links_and_anchors_lead_somewhere(site: Path, pages: dict[Path, _Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https"):
                assert re.fullmatch(r"[\w.:-]+", parts.netloc), f"{path}: {link}"
            if parts.scheme or parts.netloc:
                continue
            to = path
            if parts.path:
                to = (path.parent / unquote(parts.path)).resolve()
            if not to.is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and to in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[to].ids:
                    broken.append(f"{path.relative_to(site)}: no anchor {link}")
    assert broken == []


def test_each_page_can_be_reached_from_the_first(
    site: Path, pages: dict[Path, _Page]
) -> None:
    reached, wanted = set[Path](), [site / "index.html"]
    while wanted:
        path = wanted.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        for link in pages[path].links:
            parts = urlsplit(link)
            if parts.path and not parts.scheme:
                wanted.append((path.parent / unquote(parts.path)).resolve())
    of_docs = {
        site / p.relative_to(DOCS).with_suffix(".html")
        for p in DOCS.rglob("*.md")
        if not any(part.startswith("_") for part in p.relative_to(DOCS).parts)
    }
    assert of_docs <= reached


def test_the_search_finds_terms_without_a_server(site: Path) -> None:
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    for term in ("odometri", "sonar", "deadlock"):
        assert term in index["terms"], term
    names = index["docnames"]
    assert {"reference/api/robots", "howto/index", "tutorials/index"} <= set(names)
    assert 'src="_static/' in (site / "search.html").read_text("utf-8")


def test_pages_load_nothing_from_other_hosts(
    pages: dict[Path, _Page], site: Path
) -> None:
    for path in pages:
        text = path.read_text("utf-8")
        loaded = re.findall(
            r"<(?:script|link|img)[^>]*(?:src|href)=\"(https?:[^\"]*)", text
        )
        assert loaded == [], path


def test_versions_are_listed(site: Path) -> None:
    text = (site.parent / "versions.js").read_text("utf-8")
    assert '"version": "1.2.3"' in text
    assert "1.2.3/index.html" in (site.parent / "index.html").read_text("utf-8")


def test_each_public_name_is_on_one_page(pages: dict[Path, _Page], site: Path) -> None:
    listed = [name for names in apigroups.groups().values() for name in names]
    assert len(listed) == len(set(listed))
    assert apigroups.public_names() <= set(listed)
    for group, names in apigroups.groups().items():
        page = pages[site / f"reference/api/{group}.html"]
        missing = [n for n in names if n not in page.ids and "__version__" not in n]
        assert missing == [], group


def test_the_attributes_of_a_robot_are_on_its_page(site: Path) -> None:
    text = html.unescape((site / "reference/api/robots.html").read_text("utf-8"))
    for name in ("command", "laser", "lasers", "sonar", "odom", "truth", "gripper"):
        assert f'id="botyard.Robot.{name}"' in text, name


@pytest.mark.parametrize("group", sorted(apigroups.groups()))
def test_the_example_of_each_group_runs(group: str) -> None:
    text = (DOCS / f"reference/api/{group}.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, f"{group}.md", "exec"), {"__name__": group})


def test_made_parts_have_a_maker() -> None:
    used = {
        name
        for page in DOCS.rglob("*.md")
        for name in made.MARK.findall(page.read_text("utf-8"))
    }
    assert used == set(made.MAKERS)


def test_a_quotation_above_a_made_part_is_for_readers_of_the_file() -> None:
    text = "Above.\n\n> The site has a table\n> here.\n<!-- made: pioneer-fields -->\n"
    assert made.filled(text).startswith("Above.\n\n| packet | fields |")
