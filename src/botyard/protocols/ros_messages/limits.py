"""Limits of what ROS peers may send, over all transports. Lengths are checked before
decoding.
"""

from __future__ import annotations

from typing import Final

MAX_INPUT: Final = 64 << 10
"""Longest message of an input by default, bytes: a velocity has 48."""
MAX_REQUEST: Final = 64 << 10
"""Longest request of a service, bytes."""
MAX_TEXT: Final = 300
"""Errors and foreign texts are cut to this length, characters."""
MAX_WAITING: Final = 10
"""Queue length per topic for messages from a library's threads; the oldest are dropped
for new ones.
"""
MAX_REQUESTS: Final = 100
"""Queue length of a service's requests; further ones are not answered."""
MAX_LISTED: Final = 1000
"""Names in one request."""
