"""Reception of the world's map from a ROS topic (``-m ros:/map``).

A map_server, for example, publishes such a map. Only the first message counts.
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
"""Prefix of a map name that stands for a topic."""
TYPE: Final = "nav_msgs/OccupancyGrid"
_OVERHEAD: Final = 1 << 16
"""Largest number of bytes of a message besides its cells, of which each has one byte."""


class FirstMap:
    """Subscriber that keeps the first map that it receives.

    Parameters
    ----------
    name : str
        Name of the map: ``ros:`` and the topic's absolute name.
    types : Types
        Message types.
    budget : Budget
        Limits of the map's size.
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
        """Longest map message that is accepted, bytes."""
        self._types, self._budget, self._came = types, budget, came
        self._message: Any = None
        self._problem = ""

    @property
    def input(self) -> Input:
        """Subscription for transports that decode messages."""
        return Input(self.topic, TYPE, self.take, "the map", self.limit)

    def take(self, message: Any) -> None:
        """Accept a decoded map message.

        Parameters
        ----------
        message : nav_msgs/OccupancyGrid
            The message; only the first one counts.
        """
        # Later messages are ignored: the world keeps its map.
        if self._message is None:
            self._message = message
            self._came()

    def take_cdr(self, data: bytes) -> None:
        """Accept a map message as CDR bytes.

        Damaged bytes raise no error; if no valid map follows, the error of `scene`
        reports them.

        Parameters
        ----------
        data : bytes
            Message with the header of four bytes.
        """
        try:
            self.take(self._types.decode_cdr(data, TYPE))
        except PeerError as error:
            self._problem = f"; the received message is damaged: {error}"

    def scene(self, waited: float) -> Scene:
        """Return the received map as a scene.

        Parameters
        ----------
        waited : float
            Time that the caller has waited, s, for the error.

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
