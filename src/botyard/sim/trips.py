"""Trips of robots to goals, as their controller reports them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ORDERS: Final = ("loop", "back", "once")
"""Orders of several goals.

``loop``: after the last goal, continue with the first one. ``back``: drive back and forth.
``once``: stop at the last goal.
"""


class TripState(StrEnum):
    """States of a trip."""

    DRIVING = "driving"
    TURNING = "turning"
    """The robot is at the goal and turns to its heading."""
    PAUSED = "paused"
    """The robot pauses at a goal."""
    BLOCKED = "blocked"
    """The robot has made no progress for a while."""
    NO_PATH = "no path"
    """No path leads to the goal; see `Trip.message`. The robot stands."""
    ARRIVED = "arrived"
    """The robot has reached the last goal. It stands."""


@dataclass(frozen=True, slots=True)
class Trip:
    """Trip of a robot to goals (`Robot.go_to`).

    Attributes
    ----------
    state : TripState
        State of the trip; also a text, such as ``driving``.
    goal : (float, float)
        Present goal, m.
    heading : float or None
        Heading at the goal, rad; None for any.
    goals_reached : int
        Number of goals that were reached.
    path : tuple of (float, float)
        Corners of the planned path to the goal, m; empty without a path.
    distance_left : float
        Length of the path in front of the robot, m; 0 without a path.
    replans : int
        Number of paths that were planned because the robot was blocked.
    started : float
        Simulated time of the start, s.
    message : str
        Why there is no path; empty otherwise.
    """

    state: TripState
    goal: tuple[float, float]
    heading: float | None
    goals_reached: int
    path: tuple[tuple[float, float], ...]
    distance_left: float
    replans: int
    started: float
    message: str


__all__ = ["ORDERS", "Trip", "TripState"]
