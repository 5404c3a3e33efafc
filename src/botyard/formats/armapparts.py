"""Contents of an ArMap in its own units, millimetres and degrees (``formats.md`` §1)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from botyard.numerics.elementary import cosine_sine
from botyard.units import from_deg

FloatArray = NDArray[np.float64]
INFO_KEYWORDS = (
    "MapInfo",
    "MetaInfo",
    "TaskInfo",
    "RouteInfo",
    "SchedTaskInfo",
    "SchedInfo",
    "CairnInfo",
    "CustomInfo",
    "MacroInfo",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cairn:
    """Object of the map: a ``Cairn:`` line (`formats.md` §1.4).

    Attributes
    ----------
    type : str
        Type, for example ``Goal`` or ``Sim.BoxObstacle``.
    x, y, th : float
        Pose, mm and degrees.
    description, icon, name : str
        Texts; `icon` is ``ICON`` or ``ID=n``.
    from_to : tuple of four floats or None
        Opposite corners or end points fromX, fromY, toX, toY, mm, before the rotation
        by `th` about the map's origin.
    extra : tuple of str
        Further arguments.
    """

    type: str
    x: float
    y: float
    th: float
    description: str = ""
    icon: str = "ICON"
    name: str = ""
    from_to: tuple[float, float, float, float] | None = None
    extra: tuple[str, ...] = ()

    def corners(self) -> tuple[tuple[float, float], ...]:
        """Return the corners of the cairn's rectangle in map coordinates, mm.

        Each corner is rotated by `th` about the origin (0, 0), not about the
        rectangle's centre (`formats.md` §1.4).

        Returns
        -------
        tuple of (float, float)
            Four corners, mm; empty without `from_to`.
        """
        if self.from_to is None:
            return ()
        x1, y1, x2, y2 = self.from_to
        c, s = cosine_sine(from_deg(self.th))
        return tuple(
            (c * x - s * y, s * x + c * y)
            for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))
        )


@dataclass(frozen=True, slots=True)
class InfoLine:
    """``MapInfo:`` or similar line of a map file: keyword without colon, arguments without
    quotes.
    """

    keyword: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanSource:
    """Contribution of a scan source: lines, points and their header lines.

    Attributes
    ----------
    name : str
        Name; empty for the default source, whose keywords and sections have no prefix.
    lines : (n, 4) float64 array
        x1, y1, x2, y2, mm.
    points : (m, 2) float64 array
        x, y, mm.
    resolution : float or None
        Grid step of the points, mm.
    headers : tuple of (str, str)
        Other header lines of the source (``LinesAreSorted``, ``Display`` …), keyword
        and rest, kept for the writer.
    """

    name: str = ""
    lines: FloatArray = field(default_factory=lambda: np.zeros((0, 4)))
    points: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    resolution: float | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ScanSource)
            and (self.name, self.resolution, self.headers)
            == (other.name, other.resolution, other.headers)
            and np.array_equal(self.lines, other.lines)
            and np.array_equal(self.points, other.points)
        )

    # Arrays have no hash.
    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArMap:
    """Whole map file in its own units, without loss.

    Attributes
    ----------
    category : str
        First line, for example ``2D-Map-Ex2``.
    sources : tuple of ScanSource
        Scan sources, the default source first.
    origin : tuple or None
        OriginLatLongAlt: degrees, degrees, metres.
    infos : tuple of InfoLine
        MapInfo, RouteInfo … lines in file order.
    cairns, child_cairns : tuple of Cairn
        Objects; child cairns belong to composite maps and are not simulated.
    inactive : tuple of str
        Lines that start with ``_``, verbatim.
    remainder : tuple of str
        Unknown header lines, verbatim.
    warnings : tuple of str
        Parts that the reader skipped or doubted, with line numbers. Not part of
        equality.
    """

    category: str = "2D-Map"
    sources: tuple[ScanSource, ...] = (ScanSource(),)
    origin: tuple[float, float, float] | None = None
    infos: tuple[InfoLine, ...] = ()
    cairns: tuple[Cairn, ...] = ()
    child_cairns: tuple[Cairn, ...] = ()
    inactive: tuple[str, ...] = ()
    remainder: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def lines(self) -> FloatArray:
        """Lines of all sources, (n, 4), mm."""
        return np.concatenate([s.lines for s in self.sources])

    @property
    def points(self) -> FloatArray:
        """Points of all sources, (m, 2), mm."""
        return np.concatenate([s.points for s in self.sources])
