"""Limits of the data of rosbridge's clients."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 1 << 20
"""Longest operation of a client, bytes, whole or in fragments.

A longer operation is refused without parsing, and the client gets an error.
"""
MAX_FRAME: Final = 4 << 20
"""Longest WebSocket message, bytes; a longer message ends the connection.

The close status is then 1009 (RFC 6455).
"""
MAX_FRAGMENTS: Final = 10_000
"""Limit of the fragments of an operation."""
MAX_PARTIAL: Final = 16
"""Limit of a client's incomplete operations; the oldest is dropped."""
FRAGMENT_TIMEOUT_S: Final = 60.0
"""Timeout of an operation with missing fragments, s."""
MAX_SUBSCRIPTIONS: Final = 1000
"""Limit of the topics to which a client subscribes."""
MAX_SAME_TOPIC: Final = 100
"""Limit of a client's subscriptions to one topic."""
MAX_KEPT: Final = 4 << 20
"""Memory limit of a client, bytes.

It covers subscriptions, calls and fragments, and advertised topics, services and
actions.
"""
MAX_ALL_KEPT: Final = 64 << 20
"""Memory limit of all clients, bytes; one address has a quarter of it."""
MAX_CALLS: Final = 100
"""Limit of a client's unanswered service calls."""
MAX_CALL_TIMEOUT_S: Final = 86400.0
"""Longest timeout of a service call, s."""
MAX_TEXT: Final = 300
"""Longest text of an error, characters."""


__all__ = ["MAX_FRAME", "MAX_MESSAGE"]
