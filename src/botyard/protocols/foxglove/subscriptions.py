"""Subscriptions of Foxglove's clients."""

from __future__ import annotations

from collections import deque


class Subscription:
    """Subscription of a client, with its waiting messages.

    Attributes
    ----------
    id : int
        Id that the client has chosen for the subscription.
    channel : int
        Id of the channel.
    queue : deque of bytes
        Waiting messages with their heads, oldest first. The session lists each waiting
        message also in the order of sending.
    """

    __slots__ = ("channel", "id", "queue")

    def __init__(self, ident: int, channel: int) -> None:
        self.id, self.channel = ident, channel
        self.queue: deque[bytes] = deque()


__all__ = ["Subscription"]
