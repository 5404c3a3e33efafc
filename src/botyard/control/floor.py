"""Operations on the floor: zones, and pheromone fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from botyard.api.arguments import place
from botyard.control.caller import Caller
from botyard.control.operation import (
    Operation,
    argument,
    boolean,
    each,
    name,
    optional,
    real,
    text,
)
from botyard.control.site import Site
from botyard.model.floor import MAX_SLIP, FloorZone

MAX_ZONE_CORNERS: Final = 1000
"""Largest number of corners of a zone."""
TOLD: Final = "the page draws the floor again"


def _point(value: Any, what: str, /) -> tuple[float, float]:
    x, y, _ = place(value, what)
    return x, y


@dataclass(frozen=True, kw_only=True)
class SetZone(Operation[None]):
    """Add a zone to the floor, or replace the zone of the same name.

    Parameters
    ----------
    zone : str
        Name of the zone; not empty.
    corners : tuple of (x, y)
        Corners of its polygon, m.
    color : str
        Colour; empty: none.
    slip : float, optional
        Share of the wheels' motion that robots do not make.
    speed_limit : float, optional
        Limit of the speed, m/s.
    odometry_scale : float, optional
        Measured distance per distance that wheels roll.
    hole : bool
        Whether the floor has a hole here.
    """

    zone: str = argument(text(200))
    corners: tuple[tuple[float, float], ...] = argument(each(_point, MAX_ZONE_CORNERS))
    color: str = argument(text(100), "")
    slip: float | None = argument(optional(real(0.0, MAX_SLIP)), None)
    speed_limit: float | None = argument(optional(real(0.0, 1e3, "m/s")), None)
    odometry_scale: float | None = argument(optional(real(0.1, 10.0)), None)
    hole: bool = argument(boolean, False)
    tells = TOLD

    def perform(self, control: Site, caller: Caller) -> None:
        """Set the zone.

        Raises
        ------
        ModelError
            There are fewer than three corners, or too many zones.
        ArgumentError
            The name is empty.
        """
        control.sim.floor.set_zone(
            FloorZone(
                name=self.zone,
                corners=self.corners,
                color=self.color,
                slip=self.slip,
                speed_limit=self.speed_limit,
                odometry_scale=self.odometry_scale,
                hole=self.hole,
            )
        )


@dataclass(frozen=True, kw_only=True)
class RemoveZone(Operation[None]):
    """Remove a zone from the floor.

    Parameters
    ----------
    zone : str
        Name of the zone.
    """

    zone: str = argument(text(200))
    tells = TOLD

    def perform(self, control: Site, caller: Caller) -> None:
        """Remove the zone.

        Raises
        ------
        UnknownNameError
            No zone has this name.
        """
        control.sim.floor.remove_zone(self.zone)


@dataclass(frozen=True, kw_only=True)
class MarkFloor(Operation[None]):
    """Raise the levels of a pheromone field at points.

    Parameters
    ----------
    field : str
        Name of the field.
    points : tuple of (x, y)
        Points in the world, m.
    amount : float
        Amount at each point; a negative one lowers the level.
    """

    field: str = argument(name)
    points: tuple[tuple[float, float], ...] = argument(each(_point))
    amount: float = argument(real(), 1.0)
    tells = "the page shows the field, as far as the layer is on"

    def perform(self, control: Site, caller: Caller) -> None:
        """Raise the levels.

        Raises
        ------
        UnknownNameError
            No field has this name.
        """
        control.sim.floor.mark(self.field, self.points, self.amount)


@dataclass(frozen=True, kw_only=True)
class ClearField(Operation[None]):
    """Set all levels of a pheromone field to 0.

    Parameters
    ----------
    field : str
        Name of the field.
    """

    field: str = argument(name)
    tells = MarkFloor.tells

    def perform(self, control: Site, caller: Caller) -> None:
        """Clear the field.

        Raises
        ------
        UnknownNameError
            No field has this name.
        """
        control.sim.floor.clear(self.field)


__all__ = ["ClearField", "MarkFloor", "RemoveZone", "SetZone"]
