"""From a file name to a scene: which reader a map file needs, and where maps are looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from botyard.errors import MapError, did_you_mean
from botyard.formats import armap, rosmap
from botyard.formats.models import resource_folders, user_folders
from botyard.model.scene import Scene

Warn = Callable[[str], None]


def builtin_maps() -> dict[str, Path]:
    """Maps that come with the package: name without suffix → file."""
    root = resources.files("botyard") / "maps"
    files = sorted((Path(str(f)) for f in root.iterdir() if f.name.endswith(".map")), key=lambda p: p.stem)
    return {p.stem: p for p in files}


def _in_folder(folder: Path, name: str) -> Path | None:
    """A file of `folder` by its name in any case (MAP-017)."""
    if not folder.is_dir():
        return None
    lower = name.lower()
    try:
        return next((p for p in sorted(folder.iterdir()) if p.name.lower() == lower and p.is_file()), None)
    except OSError:  # a folder that may not be read
        return None


def find_map(name: str | Path) -> Path:
    """Find a map file: as a path (its last part in any case), in the user's folders, or among the maps of the package.

    Names of the package's maps may leave out ``.map``.

    Raises
    ------
    MapError
        Nothing of that name.
    """
    path = Path(name)
    if path.is_file():
        return path
    found = _in_folder(path.parent, path.name)
    if found is not None:
        return found
    if path.parent == Path():
        for folder in (*resource_folders(), *user_folders()):  # MAP-022
            found = _in_folder(folder, path.name) or _in_folder(folder / "maps", path.name)
            if found is not None:
                return found
        shipped = builtin_maps()
        stem = path.name.lower().removesuffix(".map")
        if stem in shipped:
            return shipped[stem]
        hint = did_you_mean(stem, shipped)
        raise MapError(f"no such map file, here or among the shipped maps ({', '.join(shipped)}){hint}", name)
    raise MapError("no such map file", name)


def find_client_map(name: str, folders: Sequence[Path]) -> Path:
    """Find a map that a client asked for: inside one of `folders`, whatever ``..`` or links say, or among the shipped ones.

    Parameters
    ----------
    name : str
        As the client gave it; relative names are looked for in each folder, the last part in any case.
    folders : sequence of Path
        Resolved folders.

    Raises
    ------
    MapError
        Nothing of that name there.
    """
    if not name or "\0" in name:
        raise MapError("expected the name of a map file, found none")
    for folder in folders:
        path = folder / name
        found = path if path.is_file() else _in_folder(path.parent, path.name)
        if found is not None and found.resolve().is_relative_to(folder):
            return found.resolve()
    shipped = builtin_maps()
    stem = name.lower().removesuffix(".map")
    if stem in shipped:
        return shipped[stem].resolve()
    raise MapError("no such map in the folders that clients may load from, nor among the shipped maps", name)


def client_maps(folders: Sequence[Path]) -> list[tuple[str, bool]]:
    """Names that `find_client_map` finds in `folders` and among the shipped maps, and whether they are shipped."""
    names: dict[str, bool] = {}
    for folder in folders:
        try:
            files = sorted(p for p in folder.iterdir() if p.is_file() and _looks_like_a_map(p))
        except OSError:
            continue
        names |= {p.name: False for p in files if p.resolve().is_relative_to(folder)}
    shipped = {stem: True for stem in builtin_maps() if f"{stem}.map" not in names}
    return [*shipped.items(), *names.items()]


def _looks_like_a_map(path: Path) -> bool:
    """Whether to offer a file as a map: other YAML files are common, so those are looked into."""
    suffix = path.suffix.lower()
    if suffix in rosmap.SUFFIXES:
        try:
            with path.open("rb") as file:
                head = file.read(4096)
        except OSError:
            return False
        return b"image:" in head and b"resolution:" in head
    return suffix == ".map"


def load_scene(name: str | Path, *, resolution: float = 0.02, warn: Warn | None = None) -> Scene:
    """Find and read a map.

    Parameters
    ----------
    name : str or Path
        A path, or the name of a map of the package (``office``).
    resolution : float
        Edge of the square that stands for a point whose file gives no resolution, m.
    warn : callable, optional
        Receives a line for everything that was skipped or doubted.

    Raises
    ------
    MapError
        Not found, unreadable, or of an unknown format; with file and line.
    """
    path = find_map(name)
    if path.suffix.lower() in rosmap.SUFFIXES:
        return rosmap.read(path)
    # every other map of today is an ArMap; its first line is checked, whatever its suffix is
    return _to_scene(armap.read(path), str(path), resolution, warn)


def parse_scene(text: str, name: str, *, resolution: float = 0.02, warn: Warn | None = None) -> Scene:
    """Read a map from the text of its file; see `load_scene`. `name` is the file's, for messages."""
    if Path(name).suffix.lower() in rosmap.SUFFIXES:
        raise MapError(
            "a ROS map is two files: put them into a folder that maps are loaded from, and load it by name", name
        )
    return _to_scene(armap.parse(text, name), name, resolution, warn)


def _to_scene(parsed: armap.ArMap, source: str, resolution: float, warn: Warn | None) -> Scene:
    if warn is not None:
        for text in parsed.warnings:
            warn(text)
    return armap.to_scene(parsed, source=source, resolution=resolution)
