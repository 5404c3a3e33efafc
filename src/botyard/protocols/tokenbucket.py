"""Token buckets, which limit sustained rate and burst, and budgets of work made of them. The caller reads the clock."""

from __future__ import annotations


class TokenBucket:
    """A token bucket: limits the sustained rate and the burst. It is full at first.

    Parameters
    ----------
    rate : float
        Tokens that flow in a second: the sustained rate.
    burst : float
        Tokens that it holds: what may be taken at once.
    now : float
        The caller's clock, s.
    """

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._since = burst, now

    def take(self, now: float, amount: float = 1.0) -> bool:
        """Take tokens if there are enough; whether there were."""
        self._fill(now)
        if self._level < amount:
            return False
        self._level -= amount
        return True

    def spend(self, now: float, amount: float) -> None:
        """Take tokens even if there are not enough: a cost that is known only afterwards, such as the time that work took, makes a debt."""
        self._fill(now)
        self._level -= amount

    def wait(self, now: float) -> float:
        """Until a debt is paid off, s; 0: there is none."""
        self._fill(now)
        return max(0.0, -self._level / self._rate)

    def _fill(self, now: float) -> None:
        if now > self._since:
            self._level = min(self._burst, self._level + (now - self._since) * self._rate)
        self._since = now


class Budget:
    """Seconds of work that somebody may cost, alone and together with others.

    Work begins only when none of the buckets is in debt; what it took is booked in all of them afterwards. So nobody has to guess what
    a request will cost, and a cheap one counts for little.

    Parameters
    ----------
    buckets : TokenBucket
        Its own, and those that it shares; they hold seconds of work.
    """

    __slots__ = ("buckets",)

    def __init__(self, *buckets: TokenBucket) -> None:
        self.buckets = buckets

    def spend(self, now: float, cost: float) -> None:
        """Work took so long, s."""
        for bucket in self.buckets:
            bucket.spend(now, cost)

    def wait(self, now: float) -> float:
        """Until the next work may begin, s; 0: at once."""
        return max((bucket.wait(now) for bucket in self.buckets), default=0.0)


class RateLimit:
    """How often each source gets something: a bucket of `burst` that fills with `rate` a second for each.

    Sources beyond `most` push out the one that was silent for longest, so memory is bounded. Time is an argument, s.
    """

    def __init__(self, rate: float = 5.0, burst: float = 5.0, most: int = 1024) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: dict[str, TokenBucket] = {}

    def allows(self, source: str, now: float) -> bool:
        """Whether `source` gets it now."""
        bucket = self._buckets.pop(source, None) or TokenBucket(self._rate, self._burst, now)
        self._buckets[source] = bucket
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now)


__all__ = ["Budget", "RateLimit", "TokenBucket"]
