"""Writer of ArMap files (``formats.md`` §1.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from botyard.formats.armapparts import (
    ArMap,
    Cairn,
    FloatArray,
    ScanSource,
)
from botyard.processes.safefile import MARK, write_text

_MARK_LINE: Final = f"Comment: {MARK}"
"""Header line that marks files written by this program.

All readers ignore it (formats §1.3).
"""


def _quote(word: str) -> str:
    return f'"{word}"' if not word or any(c.isspace() for c in word) else word


def _number(value: float) -> str:
    # Whole numbers are written without a fraction, as the original programs do.
    return str(int(value)) if value == int(value) else repr(float(value))


def _cairn_line(keyword: str, cairn: Cairn) -> str:
    words = [
        keyword,
        _quote(cairn.type),
        _number(cairn.x),
        _number(cairn.y),
        _number(cairn.th),
    ]
    words += [f'"{cairn.description}"', _quote(cairn.icon), f'"{cairn.name}"']
    if cairn.from_to is not None:
        words += [_number(v) for v in cairn.from_to]
    words += [_quote(e) for e in cairn.extra]
    return " ".join(words)


def _bounds(prefix: str, points: FloatArray) -> Iterator[str]:
    for keyword, corner in (
        ("MinPos", points.min(axis=0)),
        ("MaxPos", points.max(axis=0)),
    ):
        yield f"{prefix}{keyword}: {_number(float(corner[0]))} {_number(float(corner[1]))}"


def _source_headers(source: ScanSource, prefix: str) -> Iterator[str]:
    if len(source.points):
        yield from _bounds(prefix, source.points)
    yield f"{prefix}NumPoints: {len(source.points)}"
    if source.resolution is not None:
        yield f"{prefix}Resolution: {_number(source.resolution)}"
    if len(source.lines):
        yield from _bounds(prefix + "Line", source.lines.reshape(-1, 2))
        yield f"{prefix}NumLines: {len(source.lines)}"

    for keyword, rest in source.headers:
        yield f"{prefix}{keyword}: {rest}"


def _rows_text(rows: FloatArray) -> Iterable[str]:
    """Yield one line of text for each row of coordinates.

    Parameters
    ----------
    rows : (n, k) float64
        Coordinates, mm.
    """
    # Most maps have whole millimetres, which are faster to write and shorter.
    if np.array_equal(rows, np.rint(rows)):
        return (" ".join(map(str, row)) for row in rows.astype(np.int64).tolist())
    return (" ".join(map(_number, row)) for row in rows.tolist())


def dumps(armap: ArMap) -> str:
    """Return the map as text, in the order of `formats.md` §1.6.

    Bounds and counts are computed from the data. ``parse(dumps(m)) == m`` holds for
    every map that `parse` returns.

    Parameters
    ----------
    armap : ArMap
        Map in millimetres and degrees. Its texts must not contain double quotes,
        because the format has no escape for them.
    """
    out = [armap.category]
    prefixes = ["", *(s.name for s in armap.sources[1:])]
    if len(armap.sources) > 1 or armap.sources[0].name:
        out.append("Sources: " + " ".join(s.name for s in armap.sources))
    for source, prefix in zip(armap.sources, prefixes, strict=True):
        out += _source_headers(source, prefix)
    if armap.origin is not None:
        out.append(
            "OriginLatLongAlt: " + " ".join(repr(float(v)) for v in armap.origin)
        )

    out += [" ".join([f"{i.keyword}:", *map(_quote, i.args)]) for i in armap.infos]
    out += [_cairn_line("Cairn:", c) for c in armap.cairns]
    out += armap.inactive
    out += [_cairn_line("ChildCairn:", c) for c in armap.child_cairns]
    out += armap.remainder
    for tag, attribute in (("LINES", "lines"), ("DATA", "points")):
        for source, prefix in zip(armap.sources, prefixes, strict=True):
            rows: FloatArray = getattr(source, attribute)
            # The default source always gets its sections: readers expect them.
            if len(rows) or not prefix:
                out.append(f"{prefix}_{tag}" if prefix else tag)
                out += _rows_text(rows)

    return "\n".join(out) + "\n"


def write(armap: ArMap, path: str | Path, *, force: bool = False) -> None:
    """Write a map file, see `dumps`; its second line marks it as this program's.

    Parameters
    ----------
    armap : ArMap
        Map in millimetres and degrees.
    path : str or Path
        File to write.
    force : bool
        Whether to replace a file that this program did not write.

    Raises
    ------
    KeptFileError
        There is a file that this program did not write, and `force` is False.
    OSError
        The file cannot be written.
    """
    first, rest = dumps(armap).split("\n", 1)
    write_text(path, f"{first}\n{_MARK_LINE}\n{rest}", force=force)
