"""Limits of the data of ROS peers, on all transports.

Lengths are checked before decoding.
"""

from __future__ import annotations

from typing import Final

MAX_INPUT: Final = 64 << 10
"""Default limit of an input's message, bytes; a velocity command has 48."""
MAX_REQUEST: Final = 64 << 10
"""Longest request of a service, bytes."""
MAX_TEXT: Final = 300
"""Length to which errors and texts of peers are cut, characters."""
MAX_WAITING: Final = 10
"""Queue length per topic for messages from a library's threads.

The oldest messages are dropped.
"""
MAX_REQUESTS: Final = 100
"""Queue length of a service's requests; further requests are not answered."""
MAX_LISTED: Final = 1000
"""Limit of the names in one request."""
