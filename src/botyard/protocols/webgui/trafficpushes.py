"""Messages to the page about the run of traffic on sector paths.

They are a part of `botyard.protocols.webgui.pushes`. Robots are numbers in the list of
paths of the run, and sectors are numbers on the path of their robot.
"""

from __future__ import annotations

import msgspec


class PlannedPath(msgspec.Struct, kw_only=True):
    """Path of a robot with its sectors.

    Attributes
    ----------
    robot : str
        Name of the robot.
    points : list of (x, y)
        Corners of the path, m.
    ends : list of float
        End of each sector, m along the path.
    shared : list of int
        Sectors that conflict with sectors of other robots.
    nodes : list of str
        Names of the points, if they are nodes of an order of VDA 5050.
    """

    robot: str
    points: list[tuple[float, float]]
    ends: list[float]
    shared: list[int]
    nodes: list[str]


class TrafficPlan(msgspec.Struct, kw_only=True):
    """Paths and sectors of a run; they belong to `Traffic` with the same version.

    `supervisors` are the names from which a user may choose.
    """

    version: int
    paths: list[PlannedPath]
    supervisors: list[str]


class TrafficWait(msgspec.Struct, kw_only=True):
    """Robot that waits for a sector since a simulated time, s.

    `by` are the robots that hold sectors in conflict with it. `reason` says why it
    waits although no robot holds the sector.
    """

    robot: int
    sector: int
    by: list[int]
    since: float
    reason: str


class TrafficDecision(msgspec.Struct, kw_only=True):
    """Decision at a simulated time, s: ``grants`` or ``takes back``."""

    time: float
    robot: int
    sector: int
    what: str
    by: str


class Traffic(msgspec.Struct, kw_only=True, tag="traffic", tag_field="type"):
    """State of the run of traffic, for pages that show it.

    Attributes
    ----------
    version : int
        Version of the run and of its `TrafficPlan`; 0 before the first.
    time : float
        Simulated time, s.
    supervisor : str
        Name of the supervisor; empty without a run.
    orders : bool
        Whether permissions come with orders of VDA 5050, so that users decide nothing.
    held : bool
        Whether decisions of the supervisor wait for the user.
    queued : int
        Number of decisions that wait.
    ending : str
        How the run has ended, or that it is in a deadlock; empty while it goes on.
    ended : bool
        Whether it has ended.
    robots : list of (int, int, int)
        Of each robot: oldest and newest sector that it occupies, and the last one that
        it may enter. A robot at the end of its path has the last sector three times.
    done : int
        Number of robots at the end of their path.
    waits : list of TrafficWait
        Robots that wait, the longest wait first.
    circles : list of lists of int
        Deadlocks: in each, a robot waits for the next one, and the last for the first.
    decisions : list of TrafficDecision
        Decisions of the last minute, the newest first.
    """

    version: int
    time: float
    supervisor: str
    orders: bool
    held: bool
    queued: int
    ending: str
    ended: bool
    robots: list[tuple[int, int, int]]
    done: int
    waits: list[TrafficWait]
    circles: list[list[int]]
    decisions: list[TrafficDecision]
