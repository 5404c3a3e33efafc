"""Token buckets, and budgets of CPU time.

A bucket limits the sustained rate and the burst. The caller reads the clock.
"""

from __future__ import annotations

import math


class TokenBucket:
    """Token bucket, which is full at first.

    Parameters
    ----------
    rate : float
        Sustained rate, tokens per second.
    burst : float
        Capacity, tokens.
    now : float, optional
        Time of the caller's clock, s. By default the bucket is full until its first
        use.
    """

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: float, now: float = -math.inf) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._since = burst, now

    def take(self, now: float, amount: float = 1.0) -> bool:
        """Take tokens if there are enough; return whether they were taken.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        amount : float
            Tokens. An amount above the burst is never available.
        """
        self._fill(now)
        if self._level < amount:
            return False
        self._level -= amount
        return True

    def spend(self, now: float, amount: float) -> None:
        """Take tokens even if there are not enough, which makes a debt.

        Use it for costs that are known only afterwards, such as CPU time.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        amount : float
            Tokens. The debt has no limit, and is paid off with `rate`.
        """
        self._fill(now)
        self._level -= amount

    def wait(self, now: float) -> float:
        """Return the time until a debt is paid off, s; 0 without a debt.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        """
        self._fill(now)
        return max(0.0, -self._level / self._rate)

    def _fill(self, now: float) -> None:
        # A clock that is set back adds no tokens.
        if now > self._since:
            self._level = min(
                self._burst, self._level + (now - self._since) * self._rate
            )

        self._since = now


class Budget:
    """Budget of CPU time from several token buckets, own and shared.

    Work starts only when none of the buckets is in debt. Its measured time is then
    charged to all of them, so that costs need not be estimated.

    Parameters
    ----------
    buckets : TokenBucket
        Own and shared buckets; tokens are seconds of work.
    """

    __slots__ = ("buckets",)

    def __init__(self, *buckets: TokenBucket) -> None:
        self.buckets = buckets

    def spend(self, now: float, cost: float) -> None:
        """Charge the time of finished work, s.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.
        cost : float
            Measured duration of the work, s.
        """
        # The time counts in full in each bucket.
        for bucket in self.buckets:
            bucket.spend(now, cost)

    def wait(self, now: float) -> float:
        """Return the time until the next work may start, s; 0 for at once.

        Parameters
        ----------
        now : float
            Time of the caller's clock, s.

        Returns
        -------
        float
            The longest wait of all buckets, s.
        """
        return max((bucket.wait(now) for bucket in self.buckets), default=0.0)


class RateLimit:
    """Token bucket for each source.

    Memory is bounded: beyond `max_sources`, the least recently active source is
    dropped. Time is an argument, s.

    Parameters
    ----------
    rate : float
        Sustained rate of each source, events per second.
    burst : float
        Events that a source may cause at once.
    max_sources : int
        Limit of the sources that are remembered. A source that is dropped starts with a
        full bucket again.
    """

    def __init__(
        self, rate: float = 5.0, burst: float = 5.0, max_sources: int = 1024
    ) -> None:
        self._rate, self._burst, self._max_sources = rate, burst, max_sources
        self._buckets: dict[str, TokenBucket] = {}

    def allows(self, source: str, now: float) -> bool:
        """Return whether a source has a token now, and take it.

        Parameters
        ----------
        source : str
            Address of the source, or another key.
        now : float
            Time of the caller's clock, s.
        """
        bucket = self._buckets.pop(source, None) or TokenBucket(
            self._rate, self._burst, now
        )
        # The source is moved to the end, because the dict is in the order of activity.
        self._buckets[source] = bucket
        if len(self._buckets) > self._max_sources:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now)


__all__ = ["Budget", "RateLimit", "TokenBucket"]
