"""The first map that comes on a topic: what a map_server publishes (``-m ros:/map``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botyard.errors import MapError, PeerError
from botyard.formats.budget import Budget
from botyard.formats.occupancy import message_to_scene
from botyard.model.scene import Scene
from botyard.protocols.ros_messages.robot import Input
from botyard.protocols.ros_messages.types import Types

SCHEME: Final = "ros:"
"""In front of a topic's name it stands for the map that is published there."""
TYPE: Final = "nav_msgs/OccupancyGrid"
_BESIDE: Final = 1 << 16
"""Bytes of a message beside the cells, of which each has one."""


class FirstMap:
    """Takes messages until the first map has come.

    Parameters
    ----------
    name : str
        ``ros:`` and the topic's absolute name.
    types : Types
        Message types.
    budget : Budget
        What the map may ask for.
    came : callable
        Called when it has come.

    Raises
    ------
    MapError
        The name is no topic's.
    """

    def __init__(self, name: str, types: Types, budget: Budget, came: Callable[[], None]) -> None:
        self.topic = name.removeprefix(SCHEME)
        if not self.topic.startswith("/"):
            raise MapError(f'expected a topic, for example {SCHEME}/map, found "{name}"', name)
        self.name = name
        self.limit = budget.cells + _BESIDE
        """Longest message, bytes."""
        self._types, self._budget, self._came = types, budget, came
        self._message: Any = None
        self._problem = ""

    @property
    def input(self) -> Input:
        """What listens to the topic, for transports that decode messages."""
        return Input(self.topic, TYPE, self.take, "the map", self.limit)

    def take(self, message: Any) -> None:
        """A map has come."""
        if self._message is None:
            self._message = message
            self._came()

    def take_cdr(self, data: bytes) -> None:
        """So have its bytes."""
        try:
            self.take(self._types.decode_cdr(data, TYPE))
        except PeerError as error:
            self._problem = f"; what came is damaged: {error}"

    def scene(self, waited: float) -> Scene:
        """The map, after so long, s.

        Raises
        ------
        MapError
            None has come, or it is no map.
        """
        if self._message is None:
            text = f"no {TYPE} on {self.topic} within {waited:g} s{self._problem}"
            raise MapError(f"{text}. Does a map_server run?", self.name)
        return message_to_scene(self._message, self.name, self._budget)


__all__ = ["SCHEME", "TYPE", "FirstMap"]
