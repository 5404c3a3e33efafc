"""Limits of the data of Foxglove's clients."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 1 << 20
"""Longest message of a client, bytes."""
MAX_WAITING: Final = 16 << 20
"""Limit of the queued messages of a client, bytes.

The newest message is kept whatever its size.
"""
MAX_ADDRESS_WAITING: Final = 128 << 20
"""Limit of the queued messages of one address, and of its answers, bytes.

The clients of an address have equal parts of it.
"""
MAX_ANSWERS: Final = 1000
"""Limit of a client's queued answers; beyond it, the client is disconnected."""
MAX_ANSWER_SIZE: Final = 64 << 20
"""Limit of a client's queued answers, characters and bytes."""
MAX_KEPT: Final = 4 << 20
"""Memory limit of a client, bytes.

It covers subscriptions, calls, channels and names of parameters.
"""
MAX_ALL_KEPT: Final = 64 << 20
"""Memory limit of all clients, bytes; one address has a quarter of it."""
MAX_LISTED: Final = 1000
"""Limit of a client's subscriptions, advertised channels, or names of parameters."""
MAX_CALLS: Final = 100
"""Limit of a client's unanswered service calls."""
MAX_TEXT: Final = 300
"""Longest text of an error, characters."""


__all__ = ["MAX_MESSAGE", "MAX_WAITING"]
