"""Worlds in ``.zip`` archives: a main file together with the files that it needs."""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from botyard.errors import (
    BotyardError,
    FormatError,
    MapError,
)
from botyard.formats.base import Format, Options, Source, read_source
from botyard.formats.budget import Budget, Meter
from botyard.formats.suffixes import BAGS, PICTURES, YAML
from botyard.model.world import World
from botyard.names import shown

BUNDLE: Final = ".zip"
MAPS: Final = (".map", ".wld", ".geojson", ".json", ".dxf", ".svg", *BAGS)
"""Suffixes of maps that worlds and scenarios refer to."""
MAX_NAMING: Final = 100
"""Largest number of candidates for the main file that are searched for each other's names."""
_NAMING_BYTES: Final = 2**20
"""Number of bytes at the start of each candidate that are searched for names."""
_CHUNK_BYTES: Final = 1 << 20
"""Number of bytes that are decompressed at a time."""


Read = Callable[[Source, Options], World]
"""Type of a function that reads a file of any format, such as
`botyard.formats.registry.read_world`.
"""


def read_bundle(
    source: Source, options: Options, read: Read, formats: Sequence[Format]
) -> World:
    """Read the world in an archive, which is unpacked into a temporary folder.

    References to files outside of that folder are refused.

    Parameters
    ----------
    source : Source
        Contents of the ``.zip``.
    options : Options
        Options for reading the main file, and limits of all files together.
    read : callable
        Reads a source of any format.
    formats : sequence of Format
        All formats.

    Raises
    ------
    MapError
        The archive is damaged, or does not have exactly one main file.
    FormatError
        The main file is invalid. In messages the archive's name replaces the temporary
        folder.
    """
    meter = Meter(options.budget, source.name)
    try:
        # Counts entries of the central directory before zipfile spends memory on it.
        meter.check("members", source.data.count(_MEMBER) // 2)
        with (
            zipfile.ZipFile(io.BytesIO(source.data)) as archive,
            tempfile.TemporaryDirectory(prefix="botyard-") as name,
        ):
            # The temporary folder may be behind a link, which later checks would
            # refuse.
            folder = Path(name).resolve()
            for member in archive.infolist():
                meter.add("members", 1)
                if not member.is_dir():
                    _unpack(archive, member, folder, meter)

            return _read_unpacked(source, folder, options, read, formats)
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        ValueError,
        RuntimeError,
        OSError,
        EOFError,
    ) as error:
        # An OSError also has the name of a temporary file, which helps no user.
        reason = error.strerror if isinstance(error, OSError) else error
        raise MapError(
            f"not a .zip that can be unpacked: {shown(reason, 200)}", source.name
        ) from None


def _read_unpacked(
    source: Source,
    folder: Path,
    options: Options,
    read: Read,
    formats: Sequence[Format],
) -> World:
    """Read the world among the files of an archive that were unpacked into a folder.

    In messages, the archive's name replaces the temporary folder.
    """

    def rename(text: str) -> str:
        return text.replace(f"{folder}/", f"{source.name}/").replace(
            str(folder), source.name
        )

    renamed = replace(options, warn=lambda text: options.warn(rename(text)))
    try:
        main = _main_file(
            sorted(p for p in folder.rglob("*") if p.is_file()),
            source.name,
            options.budget,
            formats,
        )
        inner = read_source(main, options.budget)
        inside = Source(
            f"{source.name}/{shown(main.relative_to(folder), 200)}",
            inner.data,
            main,
            folder,
        )
        return read(inside, renamed)
    except FormatError as error:
        error.rewrite(rename)
        raise
    except BotyardError as error:
        error.args = tuple(rename(a) if isinstance(a, str) else a for a in error.args)
        raise


_MEMBER: Final = b"PK\x01\x02"


def _unpack(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, meter: Meter
) -> None:
    """Unpack one file of the archive.

    Bytes are counted as they are decompressed, because the size that the archive states
    may be wrong.

    Parameters
    ----------
    archive : ZipFile
        Open archive.
    member : ZipInfo
        File to unpack. Folders in its name are made, without leaving `folder`.
    folder : Path
        Folder for the files of the archive.
    meter : Meter
        Limits of bytes and of the depth of folders.

    Raises
    ------
    MapError
        The file is compressed by another method than deflate.
    BudgetError
        There are too many bytes or folders.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Other methods may allocate memory without a bound.
        raise MapError(
            f'"{shown(member.filename)}": expected a file that is stored or compressed by '
            f"deflate, found compression method {member.compress_type}",
            meter.path,
        )

    # Dots are removed, so that no file lands outside of the folder.
    parts = [
        p
        for p in member.filename.replace("\\", "/").split("/")
        if p not in ("", ".", "..")
    ]
    if not parts:
        return
    meter.check("nesting", len(parts))
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as packed, path.open("wb") as out:
        while piece := packed.read(_CHUNK_BYTES):
            meter.add("unpacked", len(piece))
            out.write(piece)


def _not_named(files: Sequence[Path], budget: Budget) -> list[Path]:
    """Return the files whose name occurs in none of the others.

    A world names its models and maps, so such files are not the main file of an archive.
    """
    texts = {path: read_source(path, budget).data[:_NAMING_BYTES] for path in files}
    return [
        path
        for path in files
        if not any(
            # A model is named by its folder.
            (path.parent if path.name == "model.sdf" else path).name.encode() in text
            for other, text in texts.items()
            if other != path
        )
    ]


def _main_file(
    files: Sequence[Path], name: str, budget: Budget, formats: Sequence[Format]
) -> Path:
    """Return the main file of an archive: its only world, scenario or map, in this order.

    Parameters
    ----------
    files : sequence of Path
        All files of the archive, sorted.
    name : str
        Name of the archive in error messages.
    budget : Budget
        Limits for reading the files, whose contents show formats and references.
    formats : sequence of Format
        All formats.

    Raises
    ------
    MapError
        There is no such file, or the first of these kinds that occurs has several files.
    """
    known = {suffix for one in formats for suffix in one.suffixes}
    worlds = tuple(sorted(known.difference(YAML, MAPS, PICTURES)))

    def is_world(path: Path) -> bool:
        source = read_source(path, budget)
        return any(
            source.suffix in one.suffixes and one.fits(source) for one in formats
        )

    foreign: list[Path] = []
    # The order follows references: worlds and scenarios refer to maps, and maps to
    # pictures.
    for suffixes in (worlds, YAML, MAPS, PICTURES):
        found = [
            p
            for p in files
            if p.suffix.lower() in suffixes and not p.name.startswith(".")
        ]
        if suffixes == worlds:
            # Archives also have files of other programs, such as package.xml.
            foreign = [p for p in found if not is_world(p)]
            found = [p for p in found if p not in foreign]
        if suffixes == YAML:
            from botyard.formats import rosmap

            # The YAML file of a map that a scenario uses is not the main file.
            mains = [p for p in found if not rosmap.fits(read_source(p, budget))]
            found = mains or found

        if 1 < len(found) <= MAX_NAMING:
            found = _not_named(found, budget) or found
        if len(found) == 1:
            return found[0]
        if found:
            raise MapError(
                "expected one map or world in the archive, found "
                f"{', '.join(shown(p.name) for p in found[:5])}",
                name,
            )

    if len(foreign) == 1:
        # The reader says why it does not know the file.
        return foreign[0]
    raise MapError("expected a map or a world in the archive, found none", name)
