"""Handles of robots by name, and the stand-in for the world of a removed robot."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from botyard.api import arguments
from botyard.errors import UnknownNameError

R = TypeVar("R")


class Removed:
    """Stand-in for the simulation of a removed or renamed robot.

    Every access raises `UnknownNameError`.

    Parameters
    ----------
    robot : str
        Name of the robot.
    now : str
        Its new name; empty: it was removed.
    """

    def __init__(self, robot: str, now: str = "") -> None:
        self._robot = robot
        self._now = now

    def __getattr__(self, name: str) -> NoReturn:
        if self._now:
            raise UnknownNameError(
                f'robot "{self._robot}" was renamed: use robots["{self._now}"]'
            )
        raise UnknownNameError(
            f'robot "{self._robot}" was removed from its simulation; '
            "add_robot makes another one"
        )


class Robots(dict[str, R]):
    """Robots by name; missing keys raise UnknownNameError (a KeyError) with a hint."""

    def __missing__(self, name: str) -> NoReturn:
        raise arguments.unknown(name, self, "robot")


__all__ = ["Removed", "Robots"]
