"""``python -m tests.tutorials.desk PAGE … [--write]``: follow pages, print what they do
not say, and with ``--write`` put the outputs into them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.networks import Network
from tests.tutorials.environment import ROOT, environment, installed, variables
from tests.tutorials.following import Reader, corrected

ROS2: Final = ROOT / ".venv-ros2/jazzy"
"""An environment with rclpy, which ``make peers`` makes."""


@contextmanager
def desk(folder: Path, botyard: Path, notes: bool = False) -> Iterator[Reader]:
    """Give a reader terminals in an environment and a network of their own.

    The folder ``ros2``, which a page about ROS 2 makes, is there.
    """
    network = Network()
    try:
        env = variables(folder / "home", environment(folder / "env", botyard))
        reader = Reader(folder, env, network, notes)
        (reader.work / "ros2").symlink_to(ROS2)
        yield reader
    finally:
        network.close()


def main() -> None:
    """Follow pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="desk") as root:
        botyard = installed(Path(root, "botyard"))
        for page in map(Path.absolute, given.pages):
            folder = Path(root, page.stem)
            folder.mkdir()
            with desk(folder, botyard, notes=True) as reader:
                try:
                    reader.follow(page)
                except AssertionError as error:
                    print(f"{page}: {error}")
            for line, (_, lines) in reader.found.items():
                print(f"{page}:{line}:", *lines, sep="\n", flush=True)
            if given.write:
                text = corrected(page.read_text("utf-8"), reader.found)
                page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
