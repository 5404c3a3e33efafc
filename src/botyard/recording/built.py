"""Identity of the program that computes a run: version and hash of sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from botyard.names import shown
from botyard.native.packages import digest_of
from botyard.version import __version__

PACKAGES: Final = ("devices", "engine", "model", "navigation", "sim")
"""Packages that a step of the world depends on, besides the modules of `botyard`."""


@cache
def build() -> str:
    """Return a hash of the sources that a step of the world depends on.

    The hash has 16 hexadecimal digits; it is empty if the sources cannot be read.
    """
    root = Path(__file__).resolve().parents[1]
    files = [
        *root.glob("*.py"),
        *(file for package in PACKAGES for file in (root / package).rglob("*.py")),
    ]
    try:
        return digest_of(sorted(files))
    except OSError:
        return ""


def computed_elsewhere(
    metadata: Mapping[str, Mapping[str, str]],
) -> tuple[str, str] | None:
    """Return the program that computed a recording, and the running one, as text.

    The result is None if both are the same.

    Parameters
    ----------
    metadata : mapping of str to mapping
        Metadata of the recording.
    """
    said = metadata.get("botyard", {})
    version, wrote = said.get("version", "?"), said.get("build", "")
    if (version, wrote) == (__version__, build()):
        return None
    # Early recordings have no hash; the version alone cannot show that they match.
    theirs = (
        _words(version, wrote)
        if wrote or version != __version__
        else f"an earlier build of botyard {__version__}"
    )
    return theirs, _words(__version__, build())


def _words(version: str, wrote: str) -> str:
    return f"botyard {shown(version, 40)}" + (
        f" (build {shown(wrote, 40)})" if wrote else ""
    )


__all__ = ["build", "computed_elsewhere"]
