"""Reader of ArMap, the map format of ARIA, MobileMapper and AMRISim.

Layout and rules: reference ``formats.md`` §1. `ArMap` has the file's units;
`armapscene` converts them to metres and radians.
The reader makes no silent guesses: `ArMap.warnings` lists skipped parts, and a file
that cannot be a map raises `MapError` with file and line.
"""

from __future__ import annotations

import io
import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from botyard.errors import MapError
from botyard.formats.armapparts import (
    INFO_KEYWORDS,
    ArMap,
    Cairn,
    FloatArray,
    InfoLine,
    ScanSource,
)
from botyard.formats.armapwriter import _MARK_LINE
from botyard.formats.base import read_source
from botyard.formats.budget import Budget, Meter
from botyard.names import shown
from botyard.units import from_mm

_INFO_BY_LOWER = {k.lower(): k for k in INFO_KEYWORDS}
_SECTION = re.compile(
    r"^[ \t]*(?:(\S+)_)?(LINES|DATA)[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_CATEGORY = re.compile(r"2D-Map(-Ex([0-9]*))?", re.IGNORECASE)
_CHUNK_CHARS = 1 << 14
"""Number of characters that are parsed at a time."""
_MIN_ROW_CHARS = 8
"""Approximate number of characters of a short row of numbers."""
_MAX_PLAUSIBLE_EXTENT_MM = 2e6
_MAX_WARNINGS = 100


def split_arguments(text: str) -> list[str]:
    """Split a text at blanks; double quotes group words and are removed.

    There are no escapes (`formats.md` §1.4).
    """
    words: list[str] = []
    word: list[str] = []
    quoted = started = False
    for ch in text:
        if ch == '"':
            quoted = not quoted
            started = True
        elif ch.isspace() and not quoted:
            if started:
                words.append("".join(word))
                word, started = [], False
        else:
            word.append(ch)
            started = True

    if started:
        words.append("".join(word))
    return words


class _Reader:
    """Reader of one map file, with the parts found so far."""

    def __init__(
        self, path: str | None, lines_chunk: int, points_chunk: int, meter: Meter
    ) -> None:
        self._chunks = {"LINES": lines_chunk, "DATA": points_chunk}
        self._meter = meter
        self.path = path
        self._announced: dict[tuple[str, str], tuple[int, float]] = {}
        self._found: dict[tuple[str, str], int] = {}
        self.sources: dict[str, ScanSource] = {"": ScanSource()}
        self._headers: dict[str, list[tuple[str, str]]] = {}
        self._rows_of: dict[tuple[str, str], list[FloatArray]] = {}
        self.origin: tuple[float, float, float] | None = None
        self.infos: list[InfoLine] = []
        self.cairns: list[Cairn] = []
        self.child_cairns: list[Cairn] = []
        self.inactive: list[str] = []
        self.remainder: list[str] = []
        self.warnings: list[str] = []

    def warn(self, line: int, text: str) -> None:
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(f"{self.path or 'map'}:{line}: {text}")
        elif len(self.warnings) == _MAX_WARNINGS:
            self.warnings.append(
                f"{self.path or 'map'}:{line}: {text}; further remarks about this file "
                "are not shown"
            )

    def error(self, line: int, text: str) -> MapError:
        return MapError(text, self.path, line)

    # -- header

    def header_line(self, number: int, line: str) -> None:
        """Process one header line, before the first data section."""
        text = line.strip()
        if not text or text == _MARK_LINE:
            return
        if text.startswith("_"):
            self.inactive.append(text)
            return

        # A blank or a tab may separate a keyword from its value.
        word, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        keyword, rest = word.lower().rstrip(":"), rest.strip()
        # A line without a keyword is kept for the writer.
        if not word.endswith(":"):
            self.remainder.append(text)
        elif keyword == "cairn":
            self._cairn(number, rest, self.cairns)
        elif keyword == "childcairn":
            self._cairn(number, rest, self.child_cairns)
        elif keyword in _INFO_BY_LOWER:
            self.infos.append(
                InfoLine(_INFO_BY_LOWER[keyword], tuple(split_arguments(rest)))
            )
        elif keyword == "sources":
            self._declare_sources(number, rest)
        elif keyword == "originlatlongalt":
            self.origin = self._origin(number, rest)
        elif not self._source_header(number, keyword, rest):
            self.remainder.append(text)

    def _numbers(
        self, number: int, rest: str, count: int, what: str
    ) -> tuple[float, ...]:
        words = rest.split()
        try:
            values = tuple(float(w) for w in words[:count])
        except ValueError:
            values = ()

        if len(values) != count or not all(map(math.isfinite, values)):
            raise self.error(
                number, f'{what}: expected {count} numbers, found "{shown(rest)}"'
            )

        return values

    def _origin(self, number: int, rest: str) -> tuple[float, float, float]:
        lat, lon, alt = self._numbers(
            number,
            rest,
            3,
            "OriginLatLongAlt: latitude, longitude (°) and altitude (m)",
        )
        if abs(lat) > 90 or abs(lon) > 360:
            raise self.error(
                number,
                "OriginLatLongAlt: expected a latitude within ±90° and a longitude within ±360°, "
                f'found "{shown(rest)}"',
            )

        return lat, lon, alt

    def _declare_sources(self, number: int, rest: str) -> None:
        names = rest.split()
        if not names or len({n.lower() for n in names}) != len(names):
            raise self.error(
                number,
                f'Sources: expected a list of different names, found "{shown(rest)}"',
            )

        # The first name is the default source, whose keywords have no prefix.
        self.sources = {"": replace(self.sources[""], name=names[0])}
        for name in names[1:]:
            self.sources[name.lower()] = ScanSource(name=name)

    def _source_header(self, number: int, keyword: str, rest: str) -> bool:
        """Process a header line of a scan source; return False for another line."""
        for plain in _HEADERS:
            if not keyword.endswith(plain):
                continue
            prefix = keyword[: -len(plain)]
            if prefix not in self.sources:
                # Some programs put an underscore between the name of the source and the
                # keyword.
                prefix = prefix.removesuffix("_")
            source = self.sources.get(prefix)
            if source is None:
                continue
            if plain == "resolution":
                (value,) = self._numbers(number, rest, 1, "Resolution (mm)")
                if value <= 0:
                    raise self.error(
                        number,
                        "Resolution: expected millimetres above 0, "
                        f'found "{shown(rest)}"',
                    )

                self.sources[prefix] = replace(source, resolution=value)
            elif plain in _COUNTS:
                self._announce(number, rest, (prefix, _COUNTS[plain]))
            elif plain in _KEPT:
                self._headers.setdefault(prefix, []).append((_KEPT[plain], rest))

            # The other keywords are bounds, which follow from the data; the writer
            # recomputes them.
            return True

        return False

    def _announce(self, number: int, rest: str, which: tuple[str, str]) -> None:
        """Store the number of rows that the header announces for a section."""
        try:
            self._announced[which] = number, float(rest.split()[0])
        except (ValueError, IndexError):
            items = "lines" if which[1] == "LINES" else "points"
            self.warn(number, f'expected the number of {items}, found "{shown(rest)}"')

    def compare(self, has_data: bool) -> None:
        """Compare the announced numbers of rows with the rows found, to detect truncated files.

        The announced numbers are only hints (`formats.md` §1.3). But points are the last
        section, so missing points mean that the file is truncated. Missing lines mean the
        same if no points follow; otherwise an editor has removed them.

        Raises
        ------
        MapError
            Rows are missing. The error names the line that announces more.
        """
        for (prefix, kind), (number, announced) in self._announced.items():
            found = self._found.get((prefix, kind), 0)
            # Only rows that are missing at the end of the file are an error.
            if found == announced:
                continue
            name = self.sources[prefix].name if prefix else ""
            what = (
                f"{(name + ': ' if name else '')}{announced:.10g} "
                f"{('lines' if kind == 'LINES' else 'points')} are announced"
            )
            if found < announced and (kind == "DATA" or not has_data):
                hint = (
                    "the file seems to be truncated; if it was edited, change or "
                    "remove this line"
                )
                raise self.error(number, f"{what}, found {found}: {hint}")

            self.warn(number, f"{what}, found {found}")

        # All programs that write maps write a DATA section.
        if not has_data:
            self.warnings.append(
                f"{self.path or 'map'}: there is no DATA section; the file may be incomplete"
            )

    def _cairn(self, number: int, rest: str, into: list[Cairn]) -> None:
        args = split_arguments(rest)
        # A single bad line must not make a large map unusable.
        if len(args) < 7:
            self.warn(
                number,
                f"cairn skipped: expected at least 7 arguments, found {len(args)}",
            )
            return

        from_to: tuple[float, float, float, float] | None = None
        try:
            x, y, th = (float(a) for a in args[1:4])
            extra = args[7:]
            if len(args) >= 11:
                x1, y1, x2, y2 = (float(a) for a in args[7:11])
                from_to, extra = (x1, y1, x2, y2), args[11:]
        except ValueError as error:
            # The message of Python's error ends with the text.
            self.warn(
                number,
                "cairn skipped: expected a number, found "
                f"{shown(str(error).rpartition(': ')[2], 100)}",
            )
            return

        if not all(map(math.isfinite, (x, y, th, *(from_to or ())))):
            self.warn(
                number, f"cairn skipped: expected finite numbers, found {shown(rest)}"
            )
            return

        into.append(
            Cairn(
                type=args[0],
                x=x,
                y=y,
                th=th,
                description=args[4],
                icon=args[5],
                name=args[6],
                from_to=from_to,
                extra=tuple(extra),
            )
        )

    # -- data

    def section(self, number: int, tag: re.Match[str], body: str) -> None:
        """Process a ``LINES`` or ``DATA`` section; `number` is the line of its tag."""
        prefix, kind = (tag[1] or "").lower(), tag[2].upper()
        if prefix not in self.sources:
            self.warn(
                number,
                f'section {shown(tag[0].strip())}: source "{shown(tag[1])}" is not in '
                "the Sources list; it is read nevertheless",
            )
            # The rows are valid, so they are read in spite of the missing declaration.
            self.sources[prefix] = ScanSource(name=tag[1])
            # If there are several sources, each needs a name.
            if not self.sources[""].name:
                self.sources[""] = replace(self.sources[""], name="Default")

        columns = 4 if kind == "LINES" else 2
        # Each row has a line end before it.
        self._meter.add(
            "vertices", columns // 2 * (body.count("\n") - body.endswith("\n"))
        )
        rows = self._rows(number, body, columns, self._chunks[kind], (prefix, kind))
        self._rows_of.setdefault((prefix, kind), []).append(rows)

    def build_sources(self) -> tuple[ScanSource, ...]:
        """Return the scan sources of the file with their lines, points and headers."""
        return tuple(
            replace(
                source,
                lines=np.concatenate(
                    [source.lines, *self._rows_of.get((prefix, "LINES"), ())]
                ),
                points=np.concatenate(
                    [source.points, *self._rows_of.get((prefix, "DATA"), ())]
                ),
                headers=tuple(self._headers.get(prefix, ())),
            )
            for prefix, source in self.sources.items()
        )

    def _rows(
        self, number: int, body: str, columns: int, chunk: int, which: tuple[str, str]
    ) -> FloatArray:
        parts = [np.zeros((0, columns))]
        skipped: list[int] = []
        for part, lines in _pieces(body, min(_CHUNK_CHARS, chunk * _MIN_ROW_CHARS)):
            if part.strip():
                try:
                    parts.append(
                        np.loadtxt(
                            io.StringIO(part),
                            comments=None,
                            usecols=range(columns),
                            ndmin=2,
                        )
                    )
                # A single bad row makes NumPy refuse the whole chunk.
                except (ValueError, IndexError):
                    parts.append(
                        _rows_one_by_one(number + lines, part, columns, skipped)
                    )

        if skipped:
            more = (
                f"; {len(skipped)} rows of this section are skipped in total"
                if len(skipped) > 1
                else ""
            )
            self.warn(skipped[0], f"row skipped: expected {columns} numbers{more}")

        rows = np.concatenate(parts)
        self._found[which] = self._found.get(which, 0) + len(rows) + len(skipped)
        # NumPy also parses "nan" and "inf".
        sane = np.isfinite(rows).all(axis=1)
        if not sane.all():
            self.warn(
                number,
                f"{int((~sane).sum())} rows of this section skipped: expected "
                "finite numbers",
            )
            rows = rows[sane]

        if len(rows) and from_mm(float(np.abs(rows).max())) > self._meter.budget.extent:
            self._refuse_far_row(number, body, columns)
        return rows

    def _refuse_far_row(self, number: int, body: str, columns: int) -> None:
        """Raise the budget error for the first row that lies beyond the allowed extent."""
        limit = self._meter.budget.extent
        for line_number, line in enumerate(body.split("\n"), start=number):
            try:
                row = [abs(from_mm(float(w))) for w in line.split()[:columns]]
            except ValueError:
                continue

            if len(row) == columns and limit < max(row) < math.inf:
                raise self._meter.error("extent", max(row), line_number)


def _rows_one_by_one(
    number: int, body: str, columns: int, skipped: list[int]
) -> FloatArray:
    """Parse rows one at a time, if not all rows of a chunk are valid.

    Invalid rows are skipped, and their lines added to `skipped` (`formats.md` §1.6).
    """
    rows: list[list[float]] = []
    for line_number, line in enumerate(body.split("\n"), start=number):
        words = line.split()
        if not words:
            continue
        try:
            row = [float(w) for w in words[:columns]]
        except ValueError:
            row = []

        if len(row) == columns:
            rows.append(row)
        else:
            skipped.append(line_number)

    return np.array(rows, dtype=np.float64).reshape(-1, columns)


_COUNTS = {"numpoints": "DATA", "numlines": "LINES"}
_KEPT = {
    "pointsaresorted": "PointsAreSorted",
    "linesaresorted": "LinesAreSorted",
    "display": "Display",
}
_HEADERS = sorted(
    ("resolution", "minpos", "maxpos", "lineminpos", "linemaxpos", *_COUNTS, *_KEPT),
    key=len,
)
"""Keywords of a scan source; the name of the source may precede each as a prefix.

Short keywords are first, so that the longest prefix is found.
"""


def _pieces(text: str, size: int, begin: int = 0) -> Iterator[tuple[str, int]]:
    """Yield chunks of whole lines of a text, each with the number of lines before it.

    The generator yields the GIL between chunks. C code holds the GIL while it parses a
    chunk, and the simulation loop, which releases the GIL at every packet, would wait
    for that time.
    """
    lines = 0
    while begin <= len(text):
        end = text.find("\n", min(begin + size, len(text)))
        end = len(text) if end < 0 else end
        piece = text[begin:end]
        yield piece, lines
        lines += piece.count("\n") + 1
        begin = end + 1
        time.sleep(0.0)


def _tags(text: str, begin: int) -> list[tuple[int, re.Match[str]]]:
    """Return the tag lines of sections, each with the position of its chunk in the text."""
    found: list[tuple[int, re.Match[str]]] = []
    for piece, _ in _pieces(text, _CHUNK_CHARS, begin):
        found += ((begin, tag) for tag in _SECTION.finditer(piece))
        begin += len(piece) + 1

    return found


def parse(
    text: str,
    path: str | None = None,
    lines_chunk: int = 10_000,
    points_chunk: int = 100_000,
    budget: Budget = Budget(),
) -> ArMap:
    """Parse the contents of an ArMap file.

    Parameters
    ----------
    text : str
        Contents of the file, with any line ends.
    path : str, optional
        File for messages.
    lines_chunk, points_chunk : int
        Number of rows that are parsed at a time. Other threads of the process can run
        between chunks.
    budget : Budget
        Limits.

    Raises
    ------
    MapError
        The first line does not belong to an ArMap, an essential header line is
        malformed, or rows are missing. The error names the line.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    first, _, _ = text.partition("\n")
    category = _CATEGORY.fullmatch(first.strip())
    if category is None:
        found = shown(first.strip(), 40)
        raise MapError(
            'not an ArMap: expected "2D-Map" (or 2D-Map-Ex…) in the first line, '
            f'found "{found}"',
            path,
            1,
        )

    meter = Meter(budget, path or "map")
    reader = _Reader(path, lines_chunk, points_chunk, meter)
    if category[2] and float(category[2]) > 4:
        reader.warn(
            1,
            f"category {shown(first.strip())} is newer than 2D-Map-Ex4; it is read "
            "as 2D-Map-Ex4",
        )

    # Header lines end at the first tag; numbers of lines continue through the sections.
    tags = _tags(text, len(first) + 1)
    starts = [piece + tag.start() for piece, tag in tags] + [len(text)]
    head_end = starts[0]
    meter.add("entities", text.count("\n", 0, head_end) + len(tags))
    for number, line in enumerate(text[len(first) + 1 : head_end].split("\n"), start=2):
        reader.header_line(number, line)
    number = 1 + text.count("\n", 0, head_end)
    for (piece, tag), start, end in zip(tags, starts, starts[1:], strict=False):
        reader.section(number, tag, text[piece + tag.end() : end])
        number += text.count("\n", start, end)

    reader.compare(any(tag[2].upper() == "DATA" for _, tag in tags))
    result = ArMap(
        category=first.strip(),
        sources=reader.build_sources(),
        origin=reader.origin,
        infos=tuple(reader.infos),
        cairns=tuple(reader.cairns),
        child_cairns=tuple(reader.child_cairns),
        inactive=tuple(reader.inactive),
        remainder=tuple(reader.remainder),
    )
    for what, data in (
        ("lines", result.lines.reshape(-1, 2)),
        ("points", result.points),
    ):
        if not len(data):
            continue
        extent = float((data.max(axis=0) - data.min(axis=0)).max())
        meter.check("extent", from_mm(extent))
        if extent > _MAX_PLAUSIBLE_EXTENT_MM:
            reader.warnings.append(
                f"{path or 'map'}: the {what} extend over more than 2 km: expected "
                "coordinates in mm"
            )

    return replace(result, warnings=tuple(reader.warnings))


def read(path: str | Path, budget: Budget = Budget()) -> ArMap:
    """Read an ArMap file.

    Raises
    ------
    MapError
        The file cannot be opened or is not a map.
    """
    return parse(read_source(path, budget).text, str(path), budget=budget)
