"""Each tutorial, and the page on ROS, is followed literally: an empty home, an empty
folder, a network of its own, and `botyard` on the PATH.
"""

from __future__ import annotations

import os
from pathlib import Path
from shutil import which

import pytest

from tests.networks import missing_namespaces
from tests.tutorials.desk import ROS2, desk
from tests.tutorials.environment import ROOT, installed, variables

PAGES = [
    *sorted((ROOT / "docs/tutorials").glob("[0-9]*.md")),
    ROOT / "docs/howto/ros.md",
]


def missing(page: str) -> str | None:
    """Return what a page needs that is not here."""
    if "ros2/bin/python" in page and not (ROS2 / ".interfaces").exists():
        return "ROS 2's wheels"
    if (
        "$ mosquitto" in page
        and which("mosquitto", path=variables(Path())["PATH"]) is None
    ):
        return "Mosquitto"
    return missing_namespaces()


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
    if (lacks := missing(page.read_text("utf-8"))) is not None:
        if os.environ.get("CI"):
            pytest.fail(f"the page needs {lacks}, and in CI it must be followed")
        pytest.skip(f"needs {lacks} (make peers)")
    with desk(tmp_path, botyard) as reader:
        reader.follow(page)
