"""Reader of worlds of Saphira and SRIsim, ``.wld`` files (formats §5).

A line of four numbers is a wall; ``position x y th`` is the start pose of the robot. Units are mm
and degrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from botyard.errors import MapError
from botyard.formats.armapparts import ArMap, Cairn, ScanSource
from botyard.formats.base import Options, Source, Warn
from botyard.formats.budget import Budget, Meter
from botyard.names import shown


@dataclass(frozen=True, slots=True)
class SaphiraWorld:
    """Contents of a ``.wld`` file.

    Attributes
    ----------
    lines : list of four numbers
        Walls x1, y1, x2, y2, mm.
    home : tuple of three numbers or None
        x, y, th: mm, mm, degrees.
    """

    lines: list[tuple[float, float, float, float]] = field(default_factory=list)
    home: tuple[float, float, float] | None = None


def _numbers(words: list[str]) -> list[float] | None:
    """Return words as finite numbers; None if one of them is not a finite number."""
    try:
        values = [float(w) for w in words]
    except ValueError:
        return None

    return values if all(map(math.isfinite, values)) else None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False

    return True


def parse(
    text: str,
    path: str | None = None,
    budget: Budget = Budget(),
    warn: Warn | None = None,
) -> SaphiraWorld:
    """Parse the contents of a ``.wld`` file; lines that are neither a wall nor the home are
    ignored.

    A line that starts with a number but is not a wall is damaged.

    Parameters
    ----------
    text : str
        Contents of the file.
    path : str, optional
        File for messages.
    budget : Budget
        Limits.
    warn : callable, optional
        Called once, with the first damaged line and the number of such lines.

    Raises
    ------
    MapError
        There is no wall, or ``position`` lacks three numbers; the error names the line.
    BudgetError
        There are too many lines, or a wall is too far from the origin.
    """
    world = SaphiraWorld()
    home = None
    meter = Meter(budget, path or "world")
    # Each line can hold at most one wall, so the check bounds the memory before
    # parsing.
    meter.add("vertices", 2 * text.count("\n"))
    max_mm = 1000.0 * budget.extent
    damaged = ""
    lost = 0
    for number, line in enumerate(text.split("\n"), start=1):
        # A semicolon starts a comment.
        words = line.partition(";")[0].split()
        if words and words[0].lower() == "position":
            values = _numbers(words[1:4])
            if values is None or len(values) != 3:
                raise MapError(
                    'expected "position x y th" (mm, mm, degrees), '
                    f'found "{shown(line.strip())}"',
                    path,
                    number,
                )

            home = (values[0], values[1], values[2])
        elif len(words) == 4 and (values := _numbers(words)) is not None:
            if max(map(abs, values)) > max_mm:
                raise meter.error("extent", max(map(abs, values)) / 1000.0, number)
            world.lines.append((values[0], values[1], values[2], values[3]))
        elif words and _is_number(words[0]):
            lost += 1
            if not damaged:
                damaged = (
                    f"{path or 'world'}:{number}: wall skipped: expected four numbers, "
                    f'found "{shown(line.strip(), 40)}"'
                )

    if not world.lines:
        raise MapError("expected walls (lines of four numbers, mm), found none", path)
    if damaged and warn is not None:
        warn(
            damaged + (f", and {lost - 1} more lines like this one" if lost > 1 else "")
        )
    return SaphiraWorld(world.lines, home)


def to_armap(world: SaphiraWorld) -> ArMap:
    """Convert the contents of a ``.wld`` file to an ArMap.

    Walls become lines, and the home a RobotHome named ``Home`` (TOL-002).
    """
    cairns = []
    if world.home is not None:
        x, y, th = world.home
        cairns.append(
            Cairn(type="RobotHome", x=x, y=y, th=th, icon="ICON", name="Home")
        )

    return ArMap(
        category="2D-Map",
        sources=(ScanSource(lines=np.array(world.lines)),),
        cairns=tuple(cairns),
    )


def read(source: Source, options: Options) -> ArMap:
    """Read a ``.wld`` file as an ArMap.

    Raises
    ------
    MapError
        The file is invalid; the error names the file and the line.
    """
    return to_armap(parse(source.text, source.name, options.budget, options.warn))


__all__ = ["SaphiraWorld", "parse", "read", "to_armap"]
