"""`FirstMap`: waits for the first map on a topic (``-m ros:/map``).

A map_server publishes such a map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botyard.errors import MapError, PeerError
from botyard.formats.budget import Budget
from botyard.formats.occupancy import message_to_scene
from botyard.model.scene import Scene
from botyard.protocols.ros_messages.graphoffers import Input
from botyard.protocols.ros_messages.types import Types

SCHEME: Final = "ros:"
"""Prefix of map names that are topics."""
TYPE: Final = "nav_msgs/OccupancyGrid"
_OVERHEAD: Final = 1 << 16
"""Limit of a message's bytes in addition to its cells, which have one byte each."""


class FirstMap:
    """Subscriber that keeps the first message.

    Parameters
    ----------
    name : str
        ``ros:`` and the topic's absolute name.
    types : Types
        Message types.
    budget : Budget
        Reading budget of the map.
    came : callable
        Called when the map has been received.

    Raises
    ------
    MapError
        The name is not a topic's name.
    """

    def __init__(
        self, name: str, types: Types, budget: Budget, came: Callable[[], None]
    ) -> None:
        self.topic = name.removeprefix(SCHEME)
        if not self.topic.startswith("/"):
            raise MapError(
                f'expected a topic, for example {SCHEME}/map, found "{name}"', name
            )

        self.name = name
        self.limit = budget.cells + _OVERHEAD
        """Longest message, bytes."""
        self._types, self._budget, self._came = types, budget, came
        self._message: Any = None
        self._problem = ""

    @property
    def input(self) -> Input:
        """Subscription for transports that decode messages."""
        return Input(self.topic, TYPE, self.take, "the map", self.limit)

    def take(self, message: Any) -> None:
        """Take a decoded message."""
        # Later messages are ignored: the world keeps its map.
        if self._message is None:
            self._message = message
            self._came()

    def take_cdr(self, data: bytes) -> None:
        """Take a message as CDR bytes."""
        try:
            self.take(self._types.decode_cdr(data, TYPE))
        except PeerError as error:
            self._problem = f"; the received message is damaged: {error}"

    def scene(self, waited: float) -> Scene:
        """Convert the received map; `waited`, s, is for the error message.

        Raises
        ------
        MapError
            No map was received, or it is invalid.
        """
        if self._message is None:
            text = f"no {TYPE} on {self.topic} within {waited:g} s{self._problem}"
            raise MapError(f"{text}. Is a map_server running?", self.name)

        return message_to_scene(self._message, self.name, self._budget)


__all__ = ["SCHEME", "TYPE", "FirstMap"]
