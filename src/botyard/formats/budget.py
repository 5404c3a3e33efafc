"""Resource limits for reading files.

Each reader checks them before it spends memory or time. Files are untrusted, and a few
lines can expand to billions of objects (YAML aliases, inserted blocks of a drawing, a
zip bomb, a huge count). A reader counts with a `Meter` before it creates objects. The
error names the exceeded limit, the found number, and the option that raises the limit.
There is no time limit: the counted numbers bound the time of each reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Final

from botyard.errors import (
    ArgumentError,
    BudgetError,
    CommandLineError,
    FormatError,
    MapError,
    budget_error,
    did_you_mean,
)
from botyard.model.scene import MAX_EXTENT_M
from botyard.names import shown

OPTION: Final = "--max-read"
"""Command-line option that raises a limit: ``--max-read cells=500000000``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits for reading one map, world or scenario with all files that it refers to.

    Attributes
    ----------
    bytes : int
        Bytes of one file.
    unpacked : int
        Bytes of all files of an archive after decompression.
    members : int
        Files in an archive.
    files : int
        Files that one file refers to: includes, pictures, models.
    entities : int
        Entities that a file describes: values of YAML, models of Stage, objects of a
        drawing, features of GeoJSON, lines of a header.
    nesting : int
        Depth of nested structures.
    references : int
        Uses of shared definitions: aliases of YAML, inserted blocks of DXF, ``use`` of
        SVG.
    records : int
        Records of a recording or of a bag (MCAP), of any kind, for each complete
        reading.
    recorded : int
        Decompressed bytes of a recording's messages, for each complete reading.
    cells : int
        Pixels of pictures and cells of grids.
    vertices : int
        Points and ends of lines: two for a wall, one for each corner of an outline and
        for each scan point.
    robots : int
        Robots and movable objects.
    beams : int
        Beams of all lasers, sonar rings and ray sensors of all robots.
    extent : float
        Width and height of the world, and distance of all its parts from its origin, m.

    Raises
    ------
    ArgumentError
        A limit is not a number of at least 0.
    """

    bytes: int = 2**29
    unpacked: int = 2**29
    members: int = 2_000
    files: int = 1_000
    entities: int = 5_000_000
    nesting: int = 100
    references: int = 1_000_000
    records: int = 50_000_000
    recorded: int = 2**34
    cells: int = 200_000_000
    vertices: int = 20_000_000
    robots: int = 20_000
    beams: int = 50_000_000
    extent: float = MAX_EXTENT_M

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            # A bool is an int in Python, but not a limit.
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value < math.inf:
                raise ArgumentError(
                    f"{field.name}: expected a number of 0 or more, "
                    f"found {shown(repr(value), 40)}"
                )

    def raised(self, texts: Iterable[str]) -> Budget:
        """Return a copy with some limits replaced.

        Parameters
        ----------
        texts : iterable of str
            Texts ``name=number``, as after ``--max-read``; 1e9 and 1_000_000 are also
            numbers.

        Raises
        ------
        CommandLineError
            There is no such limit, or its value is not a number of at least 0.
        """
        given: dict[str, float] = {}
        for text in texts:
            name, _, number = text.partition("=")
            name = name.strip()
            if name not in WHAT:
                hint = did_you_mean(name, WHAT)
                raise CommandLineError(
                    f"{OPTION}: expected NAME=NUMBER with one of {', '.join(WHAT)}, "
                    f'found "{shown(text)}"{hint}'
                )

            try:
                value = float(number)
            except ValueError:
                value = math.nan

            # Counts beyond 64 bits do not fit into NumPy. The chained comparison also
            # refuses NaN.
            if not 0 <= value < 2**63:
                raise CommandLineError(
                    f"{OPTION} {name}: expected a number of 0 or more, "
                    f'found "{shown(number.strip(), 40)}"'
                )

            # All limits except the extent are counts.
            given[name] = value if name == "extent" else int(value)

        return replace(self, **given)  # type: ignore[arg-type]


WHAT: Final = {
    "bytes": "bytes in a file",
    "unpacked": "bytes unpacked from an archive",
    "members": "files in an archive",
    "files": "referenced files",
    "entities": "entities described",
    "nesting": "nested levels",
    "references": "uses of shared definitions",
    "records": "records",
    "recorded": "bytes of messages",
    "cells": "pixels or cells",
    "vertices": "points and corners",
    "robots": "robots",
    "beams": "beams of sensors",
    "extent": "m across, or from the origin",
}
"""Noun for the counted items of each limit, for messages."""


class Meter:
    """Counter of the objects that a reader creates, with limits from a budget.

    One meter counts for a file and for all files that it refers to.

    Parameters
    ----------
    budget : Budget
        Limits.
    path : str
        File for messages.
    error : type of FormatError
        Error class of the format. Budget errors are also instances of it and have its
        exit status.
    """

    __slots__ = ("_count", "_error", "budget", "path")

    def __init__(
        self, budget: Budget, path: str, error: type[FormatError] = MapError
    ) -> None:
        self.budget: Budget = budget
        self.path: str = path
        self._error = error
        self._count: dict[str, float] = {}

    def add(
        self,
        limit: str,
        number: float,
        line: int | None = None,
        path: str | None = None,
    ) -> None:
        """Count further items of a limit, before they are created.

        Parameters
        ----------
        limit : str
            Name of a limit of `Budget`.
        number : float
            Number of items.
        line : int, optional
            Line of the file, for the error.
        path : str, optional
            File for the error. Default: the file of the meter.

        Raises
        ------
        BudgetError
            The total exceeds the limit.
        """
        total = self._count.get(limit, 0) + number
        self._count[limit] = total
        self.check(limit, total, line, path)

    def check(
        self, limit: str, found: float, line: int | None = None, path: str | None = None
    ) -> None:
        """Check a single number against its limit, without counting it.

        Parameters
        ----------
        limit : str
            Name of a limit of `Budget`.
        found : float
            Number to compare; NaN exceeds each limit.
        line : int, optional
            Line of the file, for the error.
        path : str, optional
            File for the error. Default: the file of the meter.

        Raises
        ------
        BudgetError
            The number exceeds the limit, or is NaN.
        """
        allowed = getattr(self.budget, limit)
        # The negated comparison also refuses NaN.
        if not found <= allowed:
            raise self.error(limit, found, line, path)

    def error(
        self, limit: str, found: float, line: int | None = None, path: str | None = None
    ) -> BudgetError:
        """Return the error for an exceeded limit.

        The message has the found number, the limit, and the option that raises it.
        """
        allowed = getattr(self.budget, limit)
        reason = (
            f"too large: found {found:.10g} {WHAT[limit]}, expected at most "
            f"{allowed:.10g} ({OPTION} {limit}=NUMBER raises this limit)"
        )
        return budget_error(self._error)(
            reason, self.path if path is None else path, line, limit=limit, found=found
        )


__all__ = ["OPTION", "WHAT", "Budget", "Meter"]
