"""The floor of a running simulation: colours, zones, and pheromone fields to read and write.

`Simulation.floor` is a `FloorView`. Costmaps of planners are in `botyard.sim.floors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botyard.api import arguments
from botyard.api.revisions import Subject
from botyard.engine.fields import MAX_LEVEL, FieldTable, field_of
from botyard.engine.layout import F8, I8
from botyard.errors import ArgumentError
from botyard.model.floor import Floor, FloorZone
from botyard.model.floorlook import (
    brightness,
    cells_at,
    colors_at,
    effects_at,
    holes_at,
)
from botyard.sim.core import Core, Member
from botyard.sim.journal import (
    ClearField,
    MarkFloor,
    RemoveZone,
    ReplaceFloor,
    SetZone,
)

MAX_POINTS: Final = 1_000_000
"""Largest number of points in one call."""


class Ground(NamedTuple):
    """The floor at one point.

    Attributes
    ----------
    color : (int, int, int)
        Red, green, blue, 0 to 255; black in a hole.
    brightness : float
        0 (black) to 1 (white).
    hole : bool
        Whether the floor has a hole.
    speed_limit : float
        Limit of the speed, m/s; infinite without one.
    slip : float
        Share of the wheels' motion that a robot does not make.
    odometry_scale : float
        Measured distance per distance that the wheels roll.
    levels : mapping of str to float
        Level of each pheromone field; 0 outside of it.
    """

    color: tuple[int, int, int]
    brightness: float
    hole: bool
    speed_limit: float
    slip: float
    odometry_scale: float
    levels: Mapping[str, float]


class FloorView:
    """Floor of a simulation.

    ================  ==============================================================
    `description`     the floor as data; `replace` puts down another one
    `set_zone`        adds a zone, or replaces the zone of the same name;
                      `remove_zone` removes it
    `at`, `under`     all about the floor at a point, or under a robot
    `colors`, `brightness`, `holes`
                      the floor at many points, as arrays
    `fields`          names of the pheromone fields
    `mark`, `clear`   write a pheromone field
    `levels`, `level` read it: all cells, or at points
    ================  ==============================================================

    Changes take effect at once, between two steps, and the journal has them.

    Parameters
    ----------
    core : Core
        Simulated world.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- Description

    @property
    def description(self) -> Floor:
        """Floor of the scene; a plain white one if the scene has none."""
        floor = self._core.scene.floor
        return Floor() if floor is None else floor

    def replace(self, floor: Floor | None) -> None:
        """Put down another floor.

        Walls and bodies stay. Pheromone fields with an unchanged description keep their
        levels.

        Parameters
        ----------
        floor : Floor or None
            New floor; None: a plain one.

        Raises
        ------
        ArgumentError
            `floor` is neither a Floor nor None.
        """
        self._core.check_thread()
        if floor is not None:
            arguments.instance(floor, "floor", Floor)
        self._change(floor)
        self._core.note(None, ReplaceFloor, floor)

    def set_zone(self, zone: FloorZone) -> None:
        """Add a zone on top of the others, or replace the zone of the same name in its place.

        Parameters
        ----------
        zone : FloorZone
            Zone with a name.

        Raises
        ------
        ArgumentError
            `zone` is not a FloorZone, or has no name.
        ModelError
            The floor has too many zones.
        """
        self._core.check_thread()
        arguments.instance(zone, "zone", FloorZone)
        if not zone.name:
            raise ArgumentError("zone: expected a zone with a name, found none")
        self._change(self.description.with_zone(zone))
        self._core.note(None, SetZone, zone)

    def remove_zone(self, name: str) -> None:
        """Remove the zones of a name.

        Raises
        ------
        UnknownNameError
            A KeyError: no zone has that name.
        """
        self._core.check_thread()
        zones = self.description.zones
        if not isinstance(name, str) or all(one.name != name for one in zones):
            raise arguments.unknown(name, [one.name for one in zones], "zone")
        self._change(self.description.without_zone(name))
        self._core.note(None, RemoveZone, name)

    def _change(self, floor: Floor | None) -> None:
        core = self._core
        core.engine.replace_floor(floor)
        core.scene = core.engine.scene
        core.feed.record_change(Subject.MAP)

    # -- Readings

    def at(self, x: float, y: float) -> Ground:
        """Return the floor at a point.

        Parameters
        ----------
        x, y : float
            Point in the frame of the world, m.

        Raises
        ------
        ArgumentError
            A coordinate is not a finite number.
        """
        point = np.array(
            [[arguments.number(x, "x", unit="m"), arguments.number(y, "y", unit="m")]]
        )
        floor = self._core.scene.floor
        color = colors_at(floor, point)
        red, green, blue = color[0].tolist()
        limit, slip, scale = effects_at(floor, *point[0].tolist())
        return Ground(
            color=(red, green, blue),
            brightness=float(brightness(color)[0]),
            hole=bool(holes_at(floor, point)[0]),
            speed_limit=limit,
            slip=slip,
            odometry_scale=scale,
            levels={name: float(self.level(name, point)[0]) for name in self.fields},
        )

    def under(self, robot: str | Member) -> Ground:
        """Return the floor under the origin of a robot or a box.

        Parameters
        ----------
        robot : str or Robot
            Name of the robot or box, or handle of the robot.

        Raises
        ------
        UnknownNameError
            A KeyError: no body has that name.
        """
        name = robot.name if isinstance(robot, Member) else robot
        self._core.check_there(name)
        x, y, _ = self._core.engine.state.pose[self._core.engine.rows[name]].tolist()
        return self.at(x, y)

    def colors(self, points: ArrayLike) -> NDArray[np.uint8]:
        """Return the colours of the floor at points: (n, 3) uint8, red, green, blue.

        Parameters
        ----------
        points : (n, 2) array
            Points x, y in the frame of the world, m.

        Raises
        ------
        ArgumentError
            The points are not such an array of finite numbers.
        """
        return colors_at(self._core.scene.floor, _points(points))

    def brightness(self, points: ArrayLike) -> F8:
        """Return the brightness of the floor at points, 0 to 1: (n,) float64.

        See `colors` for the parameters and errors.
        """
        return brightness(self.colors(points))

    def holes(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Return at which points the floor has a hole: (n,) bool.

        See `colors` for the parameters and errors.
        """
        return holes_at(self._core.scene.floor, _points(points))

    # -- Pheromone fields

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the pheromone fields."""
        return tuple(one.name for one in self.description.fields)

    def table(self, field: str) -> FieldTable:
        """Return the levels of a field in the engine, for code of the package.

        Raises
        ------
        UnknownNameError
            A KeyError: no field has that name.
        """
        found = field_of(self._core.engine, field) if isinstance(field, str) else None
        if found is None:
            raise arguments.unknown(field, self.fields, "pheromone field")
        return found

    def levels(self, field: str) -> F8:
        """Return a copy of all levels of a field.

        Parameters
        ----------
        field : str
            Name of the field.

        Returns
        -------
        (rows, columns) float64
            Row 0 is the lowest. Cell (row, column) covers the square from
            ``area[0] + column·cell``, ``area[1] + row·cell`` on.

        Raises
        ------
        UnknownNameError
            A KeyError: no field has that name.
        """
        table = self.table(field)
        levels: F8 = table.level[0].reshape(table.field.shape).copy()
        return levels

    def level(self, field: str, points: ArrayLike) -> F8:
        """Return the levels of a field at points, (n,) float64; 0 outside of it.

        Parameters
        ----------
        field : str
            Name of the field.
        points : (n, 2) array
            Points x, y in the frame of the world, m.

        Raises
        ------
        UnknownNameError
            A KeyError: no field has that name.
        ArgumentError
            The points are not such an array of finite numbers.
        """
        table = self.table(field)
        cells: I8 = cells_at(table.field, _points(points))
        return np.where(cells >= 0, table.level[0, cells], 0.0)

    def mark(self, field: str, points: ArrayLike, amount: ArrayLike = 1.0) -> None:
        """Raise the levels of the cells at points.

        Points outside of the field have no effect. Levels stay within 0 and 10⁹.

        Parameters
        ----------
        field : str
            Name of the field.
        points : (n, 2) array
            Points x, y in the frame of the world, m. A cell with several points gets the
            amounts of all.
        amount : float or (n,) array
            Amount for each point; a negative one lowers the level.

        Raises
        ------
        UnknownNameError
            A KeyError: no field has that name.
        ArgumentError
            The points or amounts are not such arrays of finite numbers, or an amount is
            larger than 10⁹.
        """
        self._core.check_thread()
        table, places = self.table(field), _points(points)
        amounts = _amounts(amount, len(places))
        table.deposit(cells_at(table.field, places), amounts)
        self._note(
            lambda: MarkFloor(
                field,
                tuple((x, y) for x, y in places.tolist()),
                tuple(amounts.tolist()),
            )
        )

    def clear(self, field: str) -> None:
        """Set all levels of a field to 0.

        Raises
        ------
        UnknownNameError
            A KeyError: no field has that name.
        """
        self._core.check_thread()
        self.table(field).clear()
        self._note(lambda: ClearField(field))

    def _note(self, make: Callable[[], MarkFloor | ClearField]) -> None:
        # Lists of points are made only if a journal is read.
        if self._core.journal.is_read:
            self._core.journal.note(self._core.tick, None, make())


def _points(points: ArrayLike) -> F8:
    """Return checked points, (n, 2) float64."""
    found = arguments.array(points, "points", 2)
    if len(found) > MAX_POINTS:
        raise ArgumentError(
            f"points: expected at most {MAX_POINTS}, found {len(found)}"
        )
    return found


def _amounts(amount: ArrayLike, count: int) -> F8:
    """Return an amount for each of `count` points, (count,) float64.

    Raises
    ------
    ArgumentError
        The amounts are not one finite number, or one for each point.
    """
    try:
        given = np.asarray(amount)
        number = given.dtype.kind in "iuf"
        found: F8 = np.broadcast_to(
            given.astype(np.float64) if number else np.full(1, np.nan), (count,)
        )
    except ValueError:
        found = np.full(1, np.nan)

    # NaN also fails the comparison.
    if len(found) != count or not bool((np.abs(found) <= MAX_LEVEL).all()):
        raise ArgumentError(
            f"amount: expected a number from {-MAX_LEVEL:g} to {MAX_LEVEL:g}, or one "
            f"for each of {count} points, found {arguments.found(amount)}"
        )
    return found


__all__ = ["FloorView", "Ground"]
