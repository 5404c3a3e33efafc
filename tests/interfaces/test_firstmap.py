"""A map from a topic, without ROS: messages and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from botyard.errors import MapError
from botyard.formats.budget import Budget
from botyard.interfaces.ros.firstmap import TYPE, FirstMap
from botyard.protocols.ros_messages.types import types

TYPES = types()


def grid(width: int, height: int) -> Any:
    message = TYPES.filled("nav_msgs/msg/OccupancyGrid", {})
    message.info.width, message.info.height, message.info.resolution = (
        width,
        height,
        0.5,
    )
    cells = np.zeros(width * height, np.int8)
    cells[:width] = 100
    message.data = cells
    return message


def test_the_first_map_counts() -> None:
    came: list[int] = []
    found = FirstMap("ros:/map", TYPES, Budget(), lambda: came.append(1))
    assert (found.input.name, found.input.type_name) == ("/map", TYPE)
    found.take_cdr(TYPES.encode_cdr(grid(4, 3), TYPE))
    found.take(grid(100, 100))
    assert came == [1]
    assert found.scene(1.0).bounds == pytest.approx((0.0, 0.0, 2.0, 0.5))


def test_what_does_not_come_or_is_damaged_is_told() -> None:
    found = FirstMap("ros:/map", TYPES, Budget(), lambda: None)
    with pytest.raises(
        MapError,
        match=r"no nav_msgs/OccupancyGrid on /map within 15 s\. Is a map_server running",
    ):
        found.scene(15.0)

    found.take_cdr(b"\0\1\0\0\7")
    with pytest.raises(
        MapError, match="within 15 s; the received message is damaged: "
    ):
        found.scene(15.0)
    with pytest.raises(MapError, match="expected a topic"):
        FirstMap("ros:map", TYPES, Budget(), lambda: None)


def test_a_map_beyond_the_budget_is_refused() -> None:
    found = FirstMap("ros:/map", TYPES, Budget(cells=10), lambda: None)
    assert found.limit < 100_000
    found.take(grid(4, 3))
    with pytest.raises(MapError, match="cells"):
        found.scene(1.0)
