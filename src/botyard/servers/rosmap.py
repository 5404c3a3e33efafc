"""A map from ROS: what a map_server publishes, got once before the simulator starts (``-m ros:/map``)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from botyard.errors import MapError, PeerError
from botyard.formats.budget import Budget
from botyard.formats.occupancy import message_to_scene
from botyard.model.scene import Scene
from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.naming import topic_name
from botyard.protocols.ros_messages.robot import Input
from botyard.protocols.ros_messages.types import Types, full

SCHEME: Final = "ros:"
"""In front of a topic's name it stands for the map that is published there."""
PATIENCE: Final = 15.0
"""So long a map is waited for, s."""
_TYPE: Final = "nav_msgs/OccupancyGrid"
_NODE: Final = "/botyard_map"
_BESIDE: Final = 1 << 16
"""Bytes of a message beside the cells, of which each has one."""


class _Waiting:
    """Waits for the first map."""

    def __init__(self, name: str, types: Types, budget: Budget) -> None:
        self._budget = budget
        self.limit = budget.cells + _BESIDE
        """Longest message, bytes."""
        self.topic = name.removeprefix(SCHEME)
        self.name = name
        self.types = types
        self._first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.bad = ""

    def take(self, message: Any) -> None:
        """A map has come."""
        if not self._first.done():
            self._first.set_result(message)

    def take_cdr(self, data: bytes) -> None:
        """So have its bytes."""
        try:
            self.take(self.types.decode_cdr(data, _TYPE))
        except PeerError as error:
            self.bad = f"; what came is damaged: {error}"

    async def scene(self) -> Scene:
        """The map."""
        try:
            async with asyncio.timeout(PATIENCE):
                message = await self._first
        except TimeoutError:
            text = f"no {_TYPE} on {self.topic} within {PATIENCE:g} s{self.bad}"
            raise MapError(f"{text}. Does a map_server run?", self.name) from None
        return message_to_scene(message, self.name, self._budget)


def _checked(name: str) -> None:
    if not name.removeprefix(SCHEME).startswith("/"):
        raise MapError(f'expected a topic, for example {SCHEME}/map, found "{name}"', name)


async def map_of_ros1(name: str, types: Types, master_uri: str, bound: str, budget: Budget = Budget()) -> Scene:
    """The map of a ROS 1 topic.

    Parameters
    ----------
    name : str
        ``ros:`` and the topic's absolute name.
    bound : str
        Address to listen on for the master's news.
    budget : Budget
        What the map may ask for.

    Raises
    ------
    MapError
        None came, or it is no map.
    PeerError
        There is no master.
    """
    from botyard.servers.ros1 import Ros1

    _checked(name)
    ros, waiting = Ros1(types, master_uri, bound=bound, sim_time=False), _Waiting(name, types, budget)
    try:
        await ros.start()
        ros.listen(_NODE, Input(waiting.topic, _TYPE, waiting.take, "the map", waiting.limit))
        return await waiting.scene()
    finally:
        await ros.close()


async def map_of_ros2(name: str, types: Types, environment: Environment, budget: Budget = Budget()) -> Scene:
    """The map of a ROS 2 topic over DDS.

    Raises
    ------
    MapError
        None came, or it is no map.
    WorldError
        The extra is not installed.
    PeerError
        The network cannot be used so.
    """
    from botyard.servers.cyclone import Pipe

    _checked(name)
    pipe, waiting = Pipe(types, environment), _Waiting(name, types, budget)
    try:
        kind = full(_TYPE)
        pipe.reader(
            topic_name(waiting.topic),
            kind,
            waiting.take_cdr,
            reliable=True,
            transient=True,
            depth=1,
            limit=waiting.limit,
        )
        return await waiting.scene()
    finally:
        pipe.close()
