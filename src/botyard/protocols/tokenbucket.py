"""So much a second, and so much at once: what bounds how often somebody may do something (a token bucket). The caller reads the clock."""

from __future__ import annotations


class TokenBucket:
    """A bucket that is full at first.

    Parameters
    ----------
    rate : float
        What flows in, a second.
    burst : float
        What it holds.
    now : float
        The caller's clock, s.
    """

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._since = burst, now

    def take(self, now: float, amount: float = 1.0) -> bool:
        """Take so much, if it is there."""
        self._level = min(self._burst, self._level + (now - self._since) * self._rate)
        self._since = now
        if self._level < amount:
            return False
        self._level -= amount
        return True


__all__ = ["TokenBucket"]
