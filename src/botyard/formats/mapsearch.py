"""Search for map files: by path, in the package, and in the folders of the user."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from botyard.errors import (
    MapError,
    NoSuchMapError,
    did_you_mean,
)
from botyard.formats.base import Source
from botyard.formats.models import resource_folders, user_folders
from botyard.formats.suffixes import YAML

LISTED_SUFFIXES: Final = frozenset(
    {".map", ".world", ".wld", ".geojson", ".dxf", *YAML}
)
"""Suffixes of the files that a listing shows as maps.

Files with other suffixes are often not maps.
"""


def _shipped() -> Iterator[Path]:
    root = resources.files("botyard") / "maps"
    yield from (
        Path(str(f)) for f in root.iterdir() if f.name.endswith((".map", ".yaml"))
    )


def builtin_maps() -> dict[str, Path]:
    """Return the files of the package's maps and scenarios, by name without suffix."""
    return {p.stem: p for p in sorted(_shipped(), key=lambda p: p.stem)}


def _shipped_map(name: str) -> Path | None:
    stem = name.lower().removesuffix(".map").removesuffix(".yaml")
    return builtin_maps().get(stem)


def _in_folder(folder: Path, name: str) -> Path | None:
    """Return the file of a folder whose name equals a name except for case (MAP-017).

    Parameters
    ----------
    folder : Path
        Folder to search; folders in it are not searched.
    name : str
        Name of the file.

    Returns
    -------
    Path or None
        None if there is no such file, or the folder cannot be read.
    """
    if not os.path.isdir(folder):
        return None
    lower = name.lower()
    try:
        return next(
            (
                p
                for p in sorted(folder.iterdir())
                if p.name.lower() == lower and p.is_file()
            ),
            None,
        )
    except OSError:
        # The folder may not be readable.
        return None


def find_map(name: str | Path) -> Path:
    """Return the file of a map, given a path or a name.

    Parameters
    ----------
    name : str or Path
        Path, whose last part may be in any case; a file name in the user's folders; or
        the name of a map of the package, which needs no suffix. These are tried in this
        order.

    Raises
    ------
    MapError
        There is no such file.
    """
    path = Path(name)
    # `Path.is_file` raises for a name that is too long, and for a folder that may not
    # be read; `os.path.isfile` does not.
    if os.path.isfile(path):
        return path
    found = _in_folder(path.parent, path.name)
    if found is not None:
        return found
    if path.parent == Path():
        for folder in (*resource_folders(), *user_folders()):  # MAP-022
            found = _in_folder(folder, path.name) or _in_folder(
                folder / "maps", path.name
            )
            if found is not None:
                return found

        shipped = _shipped_map(path.name)
        if shipped is not None:
            return shipped
        names = builtin_maps()
        hint = did_you_mean(path.name.lower(), names)
        raise MapError(
            "no such map file, here or among the shipped maps "
            f"({', '.join(names)}){hint}",
            name,
        )

    raise MapError(f"no such map file{_obstacle(path)}", name)


def _obstacle(path: Path) -> str:
    """Return the reason why a path cannot be looked up, such as ``: Permission denied``.

    The text is empty if the file simply does not exist.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as error:
        return f": {error.strerror}"

    return ""


def find_client_map(name: str, folders: Sequence[Path]) -> Path:
    """Return the file of a map that a client requested.

    The search is confined to `folders` (``..`` and links are resolved first) and to the
    shipped maps.

    Parameters
    ----------
    name : str
        Name in the client's request. A relative name is searched for in each folder;
        its last part may be in any case.
    folders : sequence of Path
        Resolved folders.

    Raises
    ------
    NoSuchMapError
        There is no such map.
    """
    # The operating system would raise ValueError for a null character.
    if not name or "\0" in name:
        raise NoSuchMapError("expected the name of a map file, found none")
    for folder in folders:
        path = folder / name
        found = path if os.path.isfile(path) else _in_folder(path.parent, path.name)
        # Resolving follows links, which could lead out of the folder.
        if found is not None and found.resolve().is_relative_to(folder):
            return found.resolve()

    shipped = _shipped_map(name)
    if shipped is not None:
        return shipped.resolve()
    raise NoSuchMapError(
        "no such map in the folders that clients may load from, nor among the "
        "shipped maps",
        name,
    )


def client_maps(folders: Sequence[Path]) -> list[tuple[str, bool]]:
    """Return the names that `find_client_map` finds, and whether they are shipped.

    Parameters
    ----------
    folders : sequence of Path
        Resolved folders from which clients may load maps.

    Returns
    -------
    list of (str, bool)
        Shipped maps first. Names of files in several folders occur once.
    """
    names: dict[str, bool] = {}
    for folder in folders:
        try:
            files = sorted(
                p for p in folder.iterdir() if p.is_file() and _looks_like_a_map(p)
            )
        except OSError:
            continue

        # A link to a file elsewhere is not offered, because it would be refused.
        names |= {p.name: False for p in files if p.resolve().is_relative_to(folder)}

    shipped = {
        stem: True for stem, path in builtin_maps().items() if path.name not in names
    }
    return [*shipped.items(), *names.items()]


def _looks_like_a_map(path: Path) -> bool:
    """Return whether a listing shows a file as a map.

    The content of YAML files is checked, because many are not maps.
    """
    suffix = path.suffix.lower()
    if suffix in YAML:
        try:
            with path.open("rb") as file:
                # The sniffers only need the start of a file.
                head = Source(path.name, file.read(65536), path)
        except OSError:
            return False

        from botyard.formats import occupancy, rosmap, scenariokeys

        return rosmap.fits(head) or scenariokeys.fits(head) or occupancy.fits(head)

    return suffix in LISTED_SUFFIXES
