"""A map from ROS, got once before the simulator starts
(`botyard.interfaces.ros.firstmap`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Final

from botyard.formats.budget import Budget
from botyard.interfaces.ros.firstmap import TYPE, FirstMap
from botyard.model.scene import Scene
from botyard.protocols.dds.environment import Environment
from botyard.protocols.dds.naming import topic_name, type_name
from botyard.protocols.ros_messages.types import Types, full

MAP_TIMEOUT_S: Final = 15.0
"""So long a map is waited for, s."""
_NODE: Final = "/botyard_map"
_SERVICE: Final = "nav_msgs/srv/GetMap"
_NO_FIELDS: Final = b"\0\1\0\0" + bytes(4)
"""CDR of a request without fields: encapsulation, and the member that IDL demands
(``structure_needs_at_least_one_member``), padded.
"""


async def _waited(found: FirstMap, came: asyncio.Event) -> Scene:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAP_TIMEOUT_S):
            await came.wait()

    return found.scene(MAP_TIMEOUT_S)


async def map_of_ros1(
    name: str, types: Types, master_uri: str, bound: str, budget: Budget = Budget()
) -> Scene:
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
    from botyard.servers.ros.ros1 import Ros1

    came = asyncio.Event()
    found = FirstMap(name, types, budget, came.set)
    ros = Ros1(types, master_uri, bound=bound, sim_time=False)
    try:
        await ros.start()
        ros.listen(_NODE, found.input)
        return await _waited(found, came)
    finally:
        await ros.close()


async def map_of_ros2(
    name: str, types: Types, environment: Environment, budget: Budget = Budget()
) -> Scene:
    """The map of a ROS 2 topic over DDS, or of a service ``GetMap`` of that name
    (map_server has both: /map and /map_server/map).

    Raises
    ------
    MapError
        None came, or it is no map.
    PeerError
        The network cannot be used so.
    """
    from botyard.protocols.dds.services import ServiceClient
    from botyard.protocols.rtps.qos import Durability, Qos
    from botyard.servers.ros.rtps import RtpsNode

    came = asyncio.Event()
    found = FirstMap(name, types, budget, came.set)
    node = RtpsNode(environment)
    try:
        node.participant.reader(
            topic_name(found.topic),
            type_name(full(TYPE)),
            lambda sample: found.take_cdr(sample.payload),
            Qos(depth=1, durability=Durability.TRANSIENT_LOCAL),
            node.now(),
            limit=found.limit,
        )

        def call() -> None:
            if not came.is_set() and client.call(
                _NO_FIELDS, node.now(), found.take_cdr
            ):
                node.wake()

        # the response has one field, the map: its CDR is the map's
        client = ServiceClient(
            node.participant,
            found.topic,
            f"{_SERVICE}_Request",
            f"{_SERVICE}_Response",
            node.now(),
            identity=os.urandom(16),
            changed=call,
            limit=found.limit,
        )
        node.wake()
        return await _waited(found, came)
    finally:
        node.close()


__all__ = ["MAP_TIMEOUT_S", "map_of_ros1", "map_of_ros2"]
