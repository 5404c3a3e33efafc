"""Subscriptions of Foxglove's clients."""

from __future__ import annotations

from collections import deque


class Subscription:
    """Subscription of a client, with its waiting messages.

    Attributes
    ----------
    id : int
        The client's id of the subscription.
    channel : int
        Id of the channel.
    queue : deque of bytes
        Messages with their heads, oldest first. Each message also has its place in the
        order of all messages of the session.
    """

    __slots__ = ("channel", "id", "queue")

    def __init__(self, ident: int, channel: int) -> None:
        self.id, self.channel = ident, channel
        self.queue: deque[bytes] = deque()


__all__ = ["Subscription"]
