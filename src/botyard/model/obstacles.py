"""Who sees and who feels an object: the visibility of walls, boxes and robot bodies, and boxes themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntFlag

from botyard.geometry import Pose


class Visible(IntFlag):
    """Class mask of a segment or body; a sensor sees it when its own bit is set (feature table GEN-008)."""

    NONE = 0
    OBSTACLE = 1
    LASER = 2
    SONAR = 4
    ALL = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """What sensors and bodies make of an object.

    Attributes
    ----------
    obstacle : bool
        Robots collide with it.
    laser : int
        0 invisible to lasers, 1 ordinary, 2 and more: bright, with that reflectance.
    sonar : bool
        Seen by sonar.
    """

    obstacle: bool = True
    laser: int = 1
    sonar: bool = True

    @property
    def mask(self) -> Visible:
        """The class mask that kernels test."""
        mask = Visible.NONE
        if self.obstacle:
            mask |= Visible.OBSTACLE
        if self.laser > 0:
            mask |= Visible.LASER
        if self.sonar:
            mask |= Visible.SONAR
        return mask


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxObject:
    """A box of a map: a rectangle that can be moved, but does not move by itself.

    Attributes
    ----------
    name : str
        Unique name, for example ``Box:1``.
    pose : Pose
        Centre and direction in the world.
    length, width : float
        Size along and across its direction, m.
    returns : Returns
        Visibility.
    color : str
        X11 colour name or ``#rrggbb``.
    """

    name: str
    pose: Pose
    length: float
    width: float
    returns: Returns = Returns()
    color: str = "light green"

    @property
    def outline(self) -> tuple[tuple[float, float], ...]:
        """Its four corners in its own frame, counter-clockwise, m."""
        hx, hy = self.length / 2.0, self.width / 2.0
        return ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))

    @property
    def radius(self) -> float:
        """Half its diagonal, m."""
        return math.hypot(self.length, self.width) / 2.0
