"""Raster over the bounds of a map, with a margin of cells around them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from botyard.geometry import Pose


@dataclass(frozen=True, slots=True)
class Frame:
    """Raster over the bounds of a map, and its margin.

    Attributes
    ----------
    x0, y0, cell : float
        Lower left corner of the bounds, and edge of a cell, m.
    columns, rows : int
        Number of cells over the bounds.
    left, low, right, high : int
        Number of columns and rows of the margin on each side.
    is_cut : bool
        Whether the map has a margin that was left out.
    """

    x0: float
    y0: float
    cell: float
    columns: int
    rows: int
    left: int
    low: int
    right: int
    high: int
    is_cut: bool = False

    @property
    def has_margin(self) -> bool:
        """Whether there are cells around the bounds."""
        return self.left + self.low + self.right + self.high > 0

    @property
    def without_margin(self) -> Frame:
        """The frame with the cells over the bounds alone."""
        return replace(self, left=0, low=0, right=0, high=0, is_cut=self.has_margin)

    def holds(self, place: Pose) -> bool:
        """Return whether a place is within the bounds."""
        across, up = (place.x - self.x0) / self.cell, (place.y - self.y0) / self.cell
        return 0.0 <= across <= self.columns and 0.0 <= up <= self.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns, with the margin."""
        return self.low + self.rows + self.high, self.left + self.columns + self.right

    @property
    def corner(self) -> tuple[float, float]:
        """Lower left corner of the margin, m."""
        return self.x0 - self.left * self.cell, self.y0 - self.low * self.cell

    @property
    def bounds(self) -> tuple[slice, slice]:
        """Slices of the rows and columns over the bounds."""
        return slice(self.low, self.low + self.rows), slice(
            self.left, self.left + self.columns
        )


__all__ = ["Frame"]
