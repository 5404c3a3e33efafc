"""Protocols of the part that runs traffic on sector paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from botyard.model.world import SectorPaths


class Permit(NamedTuple):
    """Change of the permissions of a robot on a sector path.

    Attributes
    ----------
    robot : str
        Name of the robot.
    before, after : int
        Last sector of its path that it may enter, before and after the change.
    """

    robot: str
    before: int
    after: int


class TrafficPart(Protocol):
    """Interface of the run of traffic on sector paths (`botyard.traffic.live`).

    All methods except `run` and `end` raise `NotNowError` if no run is going on.
    """

    @property
    def version(self) -> int:
        """Counter that changes with each run and with its paths; 0 before the first run."""
        ...

    @property
    def paths(self) -> Mapping[str, Sequence[Sequence[float]]]:
        """Points of the present paths by the names of robots, m."""
        ...

    @property
    def supervisor(self) -> str:
        """Name of the supervisor."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether decisions of the supervisor wait for the user."""
        ...

    def left(self) -> SectorPaths | None:
        """Return what is left of the paths, to run it again later; None if nothing is."""
        ...

    def run(
        self,
        paths: Mapping[str, Sequence[Sequence[float]]],
        supervisor: str,
        speed: float,
    ) -> None:
        """Let robots drive along paths under a supervisor, in place of the present run.

        Raises
        ------
        WorldError
            A robot cannot drive its path, or the supervisor rejects the paths.
        """
        ...

    def end(self) -> None:
        """End the run; its robots stop."""
        ...

    def hold(self, on: bool) -> None:
        """Hold the decisions of the supervisor, or let them take effect again."""
        ...

    def step(self) -> Permit:
        """Let the next decision take effect, and hold the others."""
        ...

    def grant(self, robot: str, sector: int | None) -> Permit:
        """Grant a sector to a robot, by default the next one, and all sectors before it.

        Raises
        ------
        WorldError
            Another robot holds a sector in conflict with it; or the robot has no such
            sector.
        """
        ...

    def revoke(self, robot: str, sector: int | None) -> Permit:
        """Take back the permission for a sector, by default the nearest one, and for all after it.

        Raises
        ------
        WorldError
            The robot has no such permission, or can no longer stop before the sector.
        """
        ...


__all__ = [
    "Permit",
    "TrafficPart",
]
