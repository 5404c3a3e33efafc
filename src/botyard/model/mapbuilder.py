"""Builder of maps in Python: rooms, walls with doors, corridors and obstacles.

    from botyard.model.mapbuilder import MapBuilder

    b = MapBuilder("lab")
    b.room(0, 0, 12, 8, doors={"north": [(3, 1.2)]})
    b.corridor([(0, 8), (30, 8)], width=2.4)
    b.obstacles(10, seed=3)
    b.home(2, 2)
    sim = botyard.Simulation(b.scene())

Lengths are metres, angles radians. The same calls give the same map on every machine.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np

from botyard.api import arguments
from botyard.errors import WorldError
from botyard.geometry import Outline, distance
from botyard.model.obstacles import BoxObject, disc, rectangle
from botyard.model.scene import Area, Place, Scene
from botyard.numerics import elementwise
from botyard.numerics.elementary import cosine_sine, hypot

Point = tuple[float, float]
Door = tuple[float, float]
"""Distance from the start of a wall to the start of the door, and the door's width, m.
"""
SIDES: Final = ("south", "east", "north", "west")
MAX_TRIES: Final = 200
"""Largest number of attempts to find a free place for a random obstacle."""


@dataclass(slots=True)
class MapBuilder:
    """Builder of a map; methods return the builder for chaining.

    Attributes
    ----------
    name : str
        Name of the map.
    thickness : float
        Default thickness of walls, m; 0: a single line.

    Raises
    ------
    ArgumentError
        The constructor and all methods raise it for a value that is not a finite number
        or not a text, as the parameter demands.
    """

    name: str = "map"
    thickness: float = 0.1
    _segments: list[tuple[float, float, float, float]] = field(default_factory=list)
    _boxes: list[BoxObject] = field(default_factory=list)
    _places: list[Place] = field(default_factory=list)
    _areas: list[Area] = field(default_factory=list)
    _discs: list[tuple[float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        arguments.instance(self.name, "name", str)
        arguments.number(self.thickness, "thickness", low=0.0, unit="m")

    # -- lines

    def line(self, *points: Point) -> MapBuilder:
        """Draw a thin wall along points.

        Parameters
        ----------
        *points : (float, float)
            Points x, y, m, at least two. The line is not closed.

        Raises
        ------
        WorldError
            There are fewer than two points.
        """
        if len(points) < 2:
            raise WorldError(f"a line needs at least 2 points, found {len(points)}")
        return self._line(arguments.array(points, "points", 2).tolist())

    def _line(self, points: Sequence[Sequence[float]]) -> MapBuilder:
        """Draw a wall along points that are already validated."""
        for (x1, y1), (x2, y2) in pairwise(points):
            self._segments.append((x1, y1, x2, y2))
        return self

    def polygon(self, *corners: Point) -> MapBuilder:
        """Draw a closed line around a block.

        Parameters
        ----------
        *corners : (float, float)
            Corners x, y, m, at least three. The last one is joined to the first one.

        Raises
        ------
        WorldError
            There are fewer than three corners.
        """
        if len(corners) < 3:
            raise WorldError(
                f"a polygon needs at least 3 corners, found {len(corners)}"
            )

        return self._closed_line(arguments.array(corners, "corners", 2).tolist())

    def _closed_line(self, corners: Sequence[Sequence[float]]) -> MapBuilder:
        """Draw a closed line around corners that are already validated."""
        return self._line([*corners, corners[0]])

    def rectangle(self, x: float, y: float, width: float, height: float) -> MapBuilder:
        """Draw a rectangle: a block, or the walls of a hall.

        Parameters
        ----------
        x, y : float
            Lower left corner, m.
        width, height : float
            Size along x and along y, m.
        """
        x0, y0 = _numbers(x=x, y=y)
        width, height = _numbers(width=width, height=height)
        return self._closed_line(
            [(x0, y0), (x0 + width, y0), (x0 + width, y0 + height), (x0, y0 + height)]
        )

    def disc(self, x: float, y: float, radius: float, corners: int = 16) -> MapBuilder:
        """Draw a round pillar, as a polygon of the same area.

        Parameters
        ----------
        x, y : float
            Centre, m.
        radius : float
            Radius, m.
        corners : int
            Number of corners, at least 3.
        """
        x, y = _numbers(x=x, y=y)
        radius = arguments.number(radius, "radius", low=0.0, unit="m")
        corners = arguments.whole(corners, "corners", low=3)
        return self._closed_line([(x + px, y + py) for px, py in disc(radius, corners)])

    # -- walls

    def wall(
        self,
        start: Point,
        end: Point,
        *,
        doors: Sequence[Door] = (),
        thickness: float | None = None,
    ) -> MapBuilder:
        """Draw a straight wall with openings.

        Parameters
        ----------
        start, end : (float, float)
            End points of the middle line, m.
        doors : sequence of (float, float)
            Distance from `start` to the start of the door, and the door's width, m.
        thickness : float, optional
            Thickness, m; the wall extends by half of it to each side of the line.

        Raises
        ------
        WorldError
            Doors overlap, or extend beyond the wall.
        """
        thick = (
            self.thickness
            if thickness is None
            else arguments.number(thickness, "thickness", low=0.0, unit="m")
        )
        start, end = (
            _numbers(x=x, y=y)
            for x, y in arguments.array([start, end], "start and end", 2)
        )
        doors = [
            (at, width) for at, width in arguments.array(doors, "doors", 2).tolist()
        ]
        length = distance(start, end)
        edges = [0.0]
        for at, width in sorted(doors):
            # The tolerance admits doors whose ends coincide except for rounding.
            if at < edges[-1] - 1e-9 or width <= 0.0 or at + width > length + 1e-9:
                raise WorldError(
                    f"doors: no door of {width:g} m fits at {at:g} m into a wall of {length:g} m"
                )

            edges += [at, at + width]

        edges.append(length)
        # A wall without length has no direction; any unit vector serves.
        ux, uy = (
            ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
            if length
            else (1.0, 0.0)
        )
        # Half the thickness, perpendicular to the wall.
        hx, hy = -uy * thick / 2, ux * thick / 2
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            # Two doors may touch; there is no wall between them.
            if b - a < 1e-9:
                continue
            p = (start[0] + ux * a, start[1] + uy * a)
            q = (start[0] + ux * b, start[1] + uy * b)
            if thick <= 0.0:
                self._line([p, q])
            else:
                self._closed_line(
                    [
                        (p[0] - hx, p[1] - hy),
                        (q[0] - hx, q[1] - hy),
                        (q[0] + hx, q[1] + hy),
                        (p[0] + hx, p[1] + hy),
                    ]
                )

        return self

    def room(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        doors: Mapping[str, Sequence[Door]] | None = None,
    ) -> MapBuilder:
        """Draw four walls around a room, from its lower left corner.

        Parameters
        ----------
        x, y : float
            Lower left corner, m.
        width, height : float
            Size, m.
        doors : mapping of str to doors
            Doors by side, ``south``, ``east``, ``north``, ``west``. Distances count
            from the left or lower end.

        Raises
        ------
        WorldError
            A side does not exist, or a door does not fit.
        """
        openings = dict(
            arguments.instance({} if doors is None else doors, "doors", Mapping)
        )
        x, y = _numbers(x=x, y=y)
        width, height = _numbers(width=width, height=height)
        for side in openings:
            if side not in SIDES:
                raise WorldError(
                    f'doors: expected a side of {", ".join(SIDES)}, found "{side}"'
                )

        corners = ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
        self.wall(corners[0], corners[1], doors=openings.get("south", ()))
        self.wall(corners[1], corners[2], doors=openings.get("east", ()))
        # The north and west walls also run along the axes, so that distances of doors
        # count from the left or lower end.
        self.wall(corners[3], corners[2], doors=openings.get("north", ()))
        self.wall(corners[0], corners[3], doors=openings.get("west", ()))
        return self

    def corridor(self, points: Sequence[Point], width: float) -> MapBuilder:
        """Draw two thin walls along the middle line of a corridor.

        The ends of the corridor are open. At its corners, each wall's segments meet in one point.

        Parameters
        ----------
        points : sequence of (float, float)
            Middle line x, y, m, at least two points.
        width : float
            Distance between the two walls, m.

        Raises
        ------
        WorldError
            There are fewer than 2 points, or two successive points are the same.
        """
        path = arguments.array(points, "points", 2)
        width = arguments.number(width, "width", low=0.0, unit="m")
        if len(path) < 2:
            raise WorldError(f"a corridor needs at least 2 points, found {len(path)}")
        along = np.diff(path, axis=0)
        # A segment without length has no normal.
        lengths = elementwise.hypot(along[:, 0], along[:, 1])
        if not (lengths > 0.0).all():
            raise WorldError(
                "corridor: expected successive points that differ, found two equal ones"
            )
        normal = np.stack([-along[:, 1], along[:, 0]], axis=1) / lengths[:, None]
        before, after = (
            # At its ends a corridor has only one normal, which counts twice.
            np.vstack([normal[:1], normal]),
            np.vstack([normal, normal[-1:]]),
        )
        # At a corner, the mitre has the direction of the mean normal. Its length keeps
        # the distance to both sides.
        mitre = before + after
        # The limit keeps the tip of a sharp corner from extending without bound.
        mitre /= np.maximum(
            mitre[:, 0] * before[:, 0] + mitre[:, 1] * before[:, 1], 0.2
        )[:, None]
        for side in (-width / 2, width / 2):
            self._line((path + side * mitre).tolist())
        return self

    # -- objects and places

    def box(
        self,
        x: float,
        y: float,
        length: float,
        width: float,
        th: float = 0.0,
        *,
        name: str = "",
        color: str = "sandy brown",
    ) -> MapBuilder:
        """Add a movable box.

        Parameters
        ----------
        x, y : float
            Centre, m.
        length, width : float
            Size along and across its heading, m.
        th : float
            Heading, rad, counter-clockwise from the x axis.
        name : str
            Unique name. Empty: ``Box:1``, ``Box:2`` … in order of the boxes.
        color : str
            X11 colour name or ``#rrggbb``.

        Raises
        ------
        ModelError
            A side is negative or too large.
        """
        number = len(self._boxes) + 1
        place = arguments.pose((x, y, th), "box")
        self._boxes.append(
            BoxObject(
                name=name or f"Box:{number}",
                pose=place,
                length=length,
                width=width,
                color=color,
            )
        )
        return self

    def obstacles(
        self,
        count: int,
        *,
        seed: int = 1,
        size: tuple[float, float] = (0.3, 1.0),
        area: tuple[float, float, float, float] | None = None,
        clearance: float = 0.8,
    ) -> MapBuilder:
        """Draw solid blocks and pillars at random places, with clearance between them.

        Parameters
        ----------
        count : int
            Number of obstacles.
        seed : int
            Seed of the random draws.
        size : (minimum, maximum)
            Range of the lengths of their sides, m.
        area : x0, y0, x1, y1, optional
            Region for the obstacles, m; default: the bounds of the map so far.
        clearance : float
            Free space around each obstacle, to walls and to other obstacles, m.

        Raises
        ------
        WorldError
            There is no space for this number of obstacles.
        """
        count = arguments.whole(count, "count", low=0)
        seed = arguments.seed(seed)
        least, greatest = arguments.array([size], "size", 2)[0].tolist()
        clearance = arguments.number(clearance, "clearance", low=0.0, unit="m")
        # Python hashes a text for the seed, so the numbers are the same on all
        # machines.
        draw = random.Random(f"{seed} obstacles {self.name}")
        if area is None:
            bounds = self.scene().bounds
            if bounds is None:
                raise WorldError("obstacles: expected an area, as the map is empty")

            area = bounds

        x0, y0, x1, y1 = arguments.array([area], "area", 4)[0].tolist()
        # New obstacles are compared with each other as discs, so the array of walls needs
        # no update in the loop.
        walls = np.array(self._segments).reshape(-1, 4)
        for _ in range(count):
            for _ in range(MAX_TRIES):
                length, width = (
                    draw.uniform(least, greatest),
                    draw.uniform(least, greatest),
                )
                # Draw both values for every obstacle, so that each one uses the same number
                # of random draws.
                th, is_round = draw.uniform(0.0, math.pi), draw.random() < 0.3
                # A block may have any heading, so half of its diagonal counts.
                radius = length / 2 if is_round else hypot(length, width) / 2
                x = (
                    draw.uniform(x0 + radius, x1 - radius)
                    if x1 - x0 > 2 * radius
                    else math.nan
                )
                y = (
                    draw.uniform(y0 + radius, y1 - radius)
                    if y1 - y0 > 2 * radius
                    else math.nan
                )
                # NaN marks an obstacle that is larger than the area.
                if math.isfinite(x + y) and self._is_clear(
                    walls, x, y, radius + clearance
                ):
                    break
            else:
                raise WorldError(
                    f"no room for {count} obstacles: {len(self._discs)} were placed"
                )

            outline: Outline = (
                disc(radius, 16) if is_round else rectangle(length, width)
            )
            c, s = cosine_sine(th)
            self._closed_line(
                [(x + c * px - s * py, y + s * px + c * py) for px, py in outline]
            )
            self._discs.append((x, y, radius))

        return self

    def _is_clear(
        self,
        walls: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
        x: float,
        y: float,
        radius: float,
    ) -> bool:
        """Return whether a circle touches no wall, no place and no earlier obstacle.

        Parameters
        ----------
        walls : (n, 4) float64
            Walls x1, y1, x2, y2, m.
        x, y : float
            Centre of the circle, m.
        radius : float
            Radius with the clearance, m.
        """
        if any(hypot(x - px, y - py) < radius + r for px, py, r in self._discs):
            return False
        # Robots start and stop at places, so half a metre around them stays free.
        if any(hypot(x - p.pose.x, y - p.pose.y) < radius + 0.5 for p in self._places):
            return False
        if not len(walls):
            return True
        ax, ay, dx, dy = (
            walls[:, 0] - x,
            walls[:, 1] - y,
            walls[:, 2] - walls[:, 0],
            walls[:, 3] - walls[:, 1],
        )
        # Nearest point of each wall to the centre of the circle.
        share = np.clip(
            # The bound avoids a division by 0 for a wall without length.
            -(ax * dx + ay * dy) / np.maximum(dx * dx + dy * dy, 1e-12),
            0.0,
            1.0,
        )
        return bool(
            (elementwise.hypot(ax + share * dx, ay + share * dy) >= radius).all()
        )

    def place(
        self, kind: str, name: str, x: float, y: float, th: float | None = None
    ) -> MapBuilder:
        """Add a named place, for example a ``Goal``.

        Parameters
        ----------
        kind : str
            Type of the place, as map files name it: ``Goal``, ``GoalWithHeading``,
            ``Dock``, ``RobotHome`` or another one.
        name : str
            Name by which clients find it.
        x, y : float
            Position, m.
        th : float, optional
            Heading, rad. Default: the place has none.
        """
        pose = arguments.pose((x, y, 0.0 if th is None else th), name)
        self._places.append(
            Place(kind=kind, name=name, pose=pose, has_heading=th is not None)
        )
        return self

    def goal(
        self, name: str, x: float, y: float, th: float | None = None
    ) -> MapBuilder:
        """Add a goal; see `place` for the parameters."""
        return self.place("Goal" if th is None else "GoalWithHeading", name, x, y, th)

    def dock(self, name: str, x: float, y: float, th: float) -> MapBuilder:
        """Add a charging station.

        Robots start at the first one if the map has no home.

        Parameters
        ----------
        name : str
            Name by which clients find it.
        x, y : float
            Position of a docked robot, m.
        th : float
            Heading of a docked robot, rad.
        """
        return self.place("Dock", name, x, y, th)

    def home(self, x: float, y: float, th: float = 0.0) -> MapBuilder:
        """Add the start pose of robots.

        Parameters
        ----------
        x, y : float
            Position of the first robot, m. The others start around it.
        th : float
            Heading, rad.
        """
        return self.place("RobotHome", "Home", x, y, th)

    def scene(self) -> Scene:
        """Return the map as drawn so far. Later calls of the builder do not change it."""
        return Scene(
            name=self.name,
            segments=np.array(self._segments, np.float64).reshape(-1, 4),
            boxes=tuple(self._boxes),
            places=tuple(self._places),
            areas=tuple(self._areas),
            # Without a home, robots start at the first dock.
            start=next(
                (
                    p.pose
                    for kind in ("RobotHome", "Dock")
                    for p in self._places
                    if p.kind == kind
                ),
                None,
            ),
        )


def _numbers(**values: float) -> tuple[float, float]:
    """Return two numbers after a check that they are finite."""
    first, second = (arguments.number(value, name) for name, value in values.items())
    return first, second


def __getattr__(name: str) -> Any:
    # Before release 0.2 the generators were in this module; 0.3 removes these names.
    if name in ("GENERATORS", "hall", "maze", "office", "warehouse"):
        warnings.warn(
            f"{name} has moved to botyard.model.mapgenerators",
            DeprecationWarning,
            stacklevel=2,
        )
        # By name, because the generators import this module.
        return getattr(import_module("botyard.model.mapgenerators"), name)

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["MapBuilder"]
