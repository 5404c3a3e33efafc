"""Each tutorial is followed literally: an empty home, an empty folder, a network of
its own, and `botyard` on the PATH.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials.desk import desk
from tests.tutorials.environment import ROOT, installed

PAGES = sorted((ROOT / "docs/tutorials").glob("[0-9]*.md"))


@pytest.fixture(scope="session")
def botyard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a wheel of this checkout."""
    return installed(tmp_path_factory.mktemp("reader") / "botyard")


@pytest.mark.peer
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_reader_who_follows_the_page_sees_what_it_says(
    page: Path, botyard: Path, tmp_path: Path
) -> None:
    """Commands are run, files are written, and outputs are as printed."""
    with desk(tmp_path, botyard) as reader:
        reader.follow(page)
