"""A map from a service of ROS 2."""

from __future__ import annotations

import asyncio

import pytest

from botyard.errors import PeerError
from botyard.model.scene import Scene
from botyard.protocols.dds.services import Call, ServiceServer
from botyard.protocols.ros_messages.types import types
from botyard.servers.ros.rosmap import map_of_ros2
from botyard.servers.ros.rtps import RtpsNode
from tests.interfaces.test_firstmap import TYPES, grid
from tests.servers.nearby import Nearby


def test_a_service_that_loses_a_response_is_asked_again() -> None:
    """A server of rmw_fastrtps drops responses to readers that it does not know yet."""
    calls: list[Call] = []

    async def run() -> Scene:
        node = RtpsNode(Nearby(178))

        def take(call: Call) -> None:
            calls.append(call)
            if len(calls) > 1:
                cells = TYPES.encode_cdr(grid(4, 3), "nav_msgs/OccupancyGrid")
                server.answer(call, cells, node.now())
                node.wake()

        server = ServiceServer(
            node.participant,
            "/map_server/map",
            "nav_msgs/srv/GetMap_Request",
            "nav_msgs/srv/GetMap_Response",
            take,
            refuse,
            node.now(),
            identity=bytes(16),
        )
        try:
            return await map_of_ros2("ros:/map_server/map", types(), Nearby(178))
        finally:
            node.close()

    scene = asyncio.run(run())
    assert len(calls) >= 2 and scene.bounds == pytest.approx((0.0, 0.0, 2.0, 0.5))


def refuse(problem: str) -> None:
    """Refuse no request."""
    raise PeerError(problem)
