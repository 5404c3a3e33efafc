"""Map from ROS, received once before the simulator starts.

See `botyard.interfaces.ros.firstmap` for the message.
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
from botyard.protocols.ros_messages.typenames import full
from botyard.protocols.ros_messages.types import Types

MAP_TIMEOUT_S: Final = 15.0
"""Longest wait for a map, s."""
ASK_AGAIN_S: Final = 1.0
"""Time after which a service that has not answered is called again, s.

It doubles with each call, because a large map takes its time. A server of rmw_fastrtps
drops its response if it has not discovered the client's reader.
"""
_NODE: Final = "/botyard_map"
_SERVICE: Final = "nav_msgs/srv/GetMap"
_NO_FIELDS: Final = b"\0\1\0\0" + bytes(4)
"""CDR of a request without fields.

It is the encapsulation header and, padded, the member that IDL demands
(``structure_needs_at_least_one_member``).
"""


async def _waited(found: FirstMap, came: asyncio.Event) -> Scene:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAP_TIMEOUT_S):
            await came.wait()

    return found.scene(MAP_TIMEOUT_S)


async def map_of_ros1(
    name: str, types: Types, master_uri: str, bound: str, budget: Budget = Budget()
) -> Scene:
    """Return the map of a ROS 1 topic.

    Parameters
    ----------
    name : str
        ``ros:`` and the absolute name of the topic.
    types : Types
        Message types of the ROS distribution.
    master_uri : str
        URI of the master.
    bound : str
        Address to listen on for notifications of the master.
    budget : Budget
        Limits of the map.

    Raises
    ------
    MapError
        No map arrived in time, or it is invalid.
    PeerError
        The master cannot be reached.
    """
    # Import ROS here, because most runs load no map from ROS.
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
    """Return the map of a ROS 2 topic over DDS, or of a ``GetMap`` service.

    map_server has both: /map and /map_server/map.

    Parameters
    ----------
    name : str
        ``ros:`` and the name of the topic or the service.
    types : Types
        Message types of the ROS distribution.
    environment : Environment
        Domain and range of discovery.
    budget : Budget
        Reading budget of the map.

    Raises
    ------
    MapError
        No map arrived in time, or it is invalid.
    PeerError
        The network does not support DDS.
    """
    from botyard.protocols.dds.services import ServiceClient
    from botyard.protocols.rtps.qos import Durability, Qos
    from botyard.servers.ros.rtps import RtpsNode

    came, there = asyncio.Event(), asyncio.Event()
    found = FirstMap(name, types, budget, came.set)
    node = RtpsNode(environment)

    async def ask() -> None:
        await there.wait()
        pause = ASK_AGAIN_S
        # The topic may have delivered the map before.
        while not came.is_set():
            if client.call(_NO_FIELDS, node.now(), found.take_cdr):
                node.wake()
            await asyncio.sleep(pause)
            pause *= 2.0

    asking = asyncio.create_task(ask())
    try:
        node.participant.reader(
            topic_name(found.topic),
            type_name(full(TYPE)),
            lambda sample: found.take_cdr(sample.payload),
            Qos(depth=1, durability=Durability.TRANSIENT_LOCAL),
            node.now(),
            limit=found.limit,
        )

        # The response's only field is the map, so its CDR is also a map's CDR.
        client = ServiceClient(
            node.participant,
            found.topic,
            f"{_SERVICE}_Request",
            f"{_SERVICE}_Response",
            node.now(),
            identity=os.urandom(16),
            changed=lambda: there.set() if client.server() else None,
            limit=found.limit,
        )
        node.wake()
        return await _waited(found, came)
    finally:
        asking.cancel()
        node.close()


__all__ = ["MAP_TIMEOUT_S", "map_of_ros1", "map_of_ros2"]
