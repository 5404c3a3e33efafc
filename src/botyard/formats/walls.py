"""Collectors of the static walls of a world, and of unique names."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from botyard.geometry import Pose
from botyard.model.obstacles import Returns, Visible
from botyard.model.scene import SpecialWalls
from botyard.model.tracing import TracedCells


@dataclass(slots=True)
class Walls:
    """Collector of the static walls of a scene.

    Attributes
    ----------
    segments : list of (n, 4) float64
        Walls x1, y1, x2, y2, m.
    special : list of SpecialWalls
        Rows of walls with limited visibility.
    traced : list of TracedCells
        Rows of walls that outline the dark pixels of pictures.
    count : int
        Number of walls so far.
    """

    segments: list[NDArray[np.float64]] = field(default_factory=list)
    special: list[SpecialWalls] = field(default_factory=list)
    traced: list[TracedCells] = field(default_factory=list)
    count: int = 0

    def add(self, segments: NDArray[np.float64], seen: Returns) -> None:
        """Add walls that have the same visibility."""
        first, self.count = self.count, self.count + len(segments)
        self.segments.append(segments)
        if seen.mask == Visible.ALL and seen.laser == 1:
            return
        # Walls in a row with one visibility are one entry.
        if self.special and (self.special[-1].last, self.special[-1].returns) == (
            first,
            seen,
        ):
            first = self.special.pop().first
        self.special.append(SpecialWalls(first=first, last=self.count, returns=seen))

    def trace(
        self, count: int, shape: tuple[int, ...], size: tuple[float, float], at: Pose
    ) -> None:
        """Mark the next `count` walls as the outlines of a raster's solid cells.

        Parameters
        ----------
        count : int
            Number of walls.
        shape : tuple of int
            Rows and columns of the raster.
        size : tuple of float
            Length along the rows and width across them, m.
        at : Pose
            Lower left corner of the raster, and direction of its rows.
        """
        (rows, columns), (length, width) = shape, size
        self.traced.append(
            TracedCells(
                first=self.count,
                last=self.count + count,
                rows=rows,
                columns=columns,
                width=length / columns,
                height=width / rows,
                origin=at,
            )
        )

    def merged(self) -> NDArray[np.float64]:
        """Return all walls collected so far, (n, 4), m."""
        return np.concatenate(self.segments) if self.segments else np.zeros((0, 4))


@dataclass(slots=True)
class Names:
    """Collector of names, which gives each object of a world a unique name."""

    _counts: dict[str, int] = field(default_factory=dict)

    def unique(self, base: str) -> str:
        """Return the requested name, with a number if it is taken."""
        # A counter per name avoids trying all smaller numbers for each of many robots.
        n = self._counts[base] = self._counts.get(base, 0) + 1
        name = base if n == 1 else f"{base}_{n:03d}"
        # The numbered name is taken from now on, in case the file uses it explicitly.
        if name != base:
            self._counts[name] = self._counts.get(name, 0) + 1
        return name


__all__ = ["Names", "Walls"]
