"""Limits of the data of ROS peers, on all transports.

Lengths are checked before decoding.
"""

from __future__ import annotations

from typing import Final

MAX_INPUT: Final = 64 << 10
"""Default limit of a message to the simulator, bytes; a velocity command has 48 bytes."""
MAX_REQUEST: Final = 64 << 10
"""Longest request of a service, bytes."""
MAX_TEXT: Final = 300
"""Length to which errors and texts of peers are cut, characters."""
MAX_WAITING: Final = 10
"""Number of messages of a topic that may wait between a library's thread and the run loop.

If there are more, the oldest are dropped.
"""
MAX_REQUESTS: Final = 100
"""Number of requests of a service that may wait; further requests are not answered."""
MAX_LISTED: Final = 1000
"""Limit of the names in one request."""
