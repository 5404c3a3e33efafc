"""Token buckets, which limit sustained rate and burst, and budgets of processor time.
The caller reads the clock.
"""

from __future__ import annotations


class TokenBucket:
    """A token bucket: limits the sustained rate and the burst. It is full at first.

    Parameters
    ----------
    rate : float
        Sustained rate, tokens per second.
    burst : float
        Capacity, tokens: the burst.
    now : float
        The caller's clock, s.
    """

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._since = burst, now

    def take(self, now: float, amount: float = 1.0) -> bool:
        """Take tokens if there are enough; False if not."""
        self._fill(now)
        if self._level < amount:
            return False
        self._level -= amount
        return True

    def spend(self, now: float, amount: float) -> None:
        """Take tokens even if there are not enough, which makes a debt: for costs that
        are known only afterwards (processor time).
        """
        self._fill(now)
        self._level -= amount

    def wait(self, now: float) -> float:
        """Time until a debt is paid off, s; 0: there is none."""
        self._fill(now)
        return max(0.0, -self._level / self._rate)

    def _fill(self, now: float) -> None:
        if now > self._since:
            self._level = min(
                self._burst, self._level + (now - self._since) * self._rate
            )

        self._since = now


class Budget:
    """A budget of processor time, of several token buckets: a client's own, and those
    that it shares with others.

    Work begins only when none of the buckets is in debt; its measured time is charged
    to all of them afterwards, so that costs need not be estimated.

    Parameters
    ----------
    buckets : TokenBucket
        Own and shared buckets; tokens are seconds of work.
    """

    __slots__ = ("buckets",)

    def __init__(self, *buckets: TokenBucket) -> None:
        self.buckets = buckets

    def spend(self, now: float, cost: float) -> None:
        """Charge the time that work took, s."""
        for bucket in self.buckets:
            bucket.spend(now, cost)

    def wait(self, now: float) -> float:
        """Time until the next work may begin, s; 0: at once."""
        return max((bucket.wait(now) for bucket in self.buckets), default=0.0)


class RateLimit:
    """A token bucket per source.

    Memory is bounded: beyond `max_sources`, the least recently active source is
    dropped. Time is an argument, s.
    """

    def __init__(
        self, rate: float = 5.0, burst: float = 5.0, max_sources: int = 1024
    ) -> None:
        self._rate, self._burst, self._max_sources = rate, burst, max_sources
        self._buckets: dict[str, TokenBucket] = {}

    def allows(self, source: str, now: float) -> bool:
        """Whether `source` has a token now; takes it."""
        bucket = self._buckets.pop(source, None) or TokenBucket(
            self._rate, self._burst, now
        )
        self._buckets[source] = bucket
        if len(self._buckets) > self._max_sources:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now)


__all__ = ["Budget", "RateLimit", "TokenBucket"]
