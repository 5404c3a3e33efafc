"""Description of a world for a test, and the ports of its robots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botyard.api import arguments
from botyard.sim.simulation import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Description of a world for a test.

    Attributes
    ----------
    map : str, Path, Simulation or None
        Map, world or scenario; None: an empty plane.
    robots : mapping of str to model
        Robots to add, by name: a model, placed on a free place, or (model, pose).
    seed : int
        Seed of all random numbers.
    speed : float
        Speed as a multiple of real time; inf: as fast as possible.
    lockstep : bool
        Whether time only advances when a client steps it.
    ros1, ros2 : bool
        Serve ROS 1 through a master of the test's own; serve ROS 2 in a domain of the test's own.
    record : str
        ``always``, ``on-failure`` or ``never``.
    options : mapping
        Other options of `botyard.serve`.
    """

    map: str | Path | Simulation | None = None
    robots: Mapping[str, Any] | Sequence[str] = ()
    seed: int = 1
    speed: float = 1.0
    lockstep: bool = False
    ros1: bool = False
    ros2: bool = False
    record: str = "on-failure"
    options: Mapping[str, Any]


class Ports(dict[str, int]):
    """Ports of robots for Pioneer clients, by name."""

    def __missing__(self, name: str) -> int:
        raise arguments.unknown(name, self, "robot with a port")


__all__ = ["Settings"]
