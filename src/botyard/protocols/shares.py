"""What peers make us keep, counted in bytes: of all together, and of each address, so that one address never takes all."""

from __future__ import annotations

from typing import Final

SHARES: Final = 4
"""One address may take the whole divided by this."""


class Shares:
    """Bytes that are kept for others.

    Parameters
    ----------
    limit : int
        Of all together.
    each : int
        Of one address; 0: `limit` divided by `SHARES`.

    Attributes
    ----------
    used : int
        Bytes of all together.
    """

    __slots__ = ("_each", "_limit", "_used_by", "used")

    def __init__(self, limit: int, each: int = 0) -> None:
        self._limit = limit
        self._each = each or limit // SHARES
        self._used_by: dict[str, int] = {}
        self.used = 0

    def take(self, whose: str, size: int, *, is_first_free: bool = False) -> bool:
        """Take room for an address, if there is some.

        Parameters
        ----------
        whose : str
            The address.
        size : int
            Bytes.
        is_first_free : bool
            The first of an address may be longer than its share, and the first of all longer than the whole: its size is limited elsewhere.
        """
        own = self._used_by.get(whose, 0)
        is_free = is_first_free and not own
        if own + size > self._each and not is_free:
            return False
        if self.used + size > self._limit and not (is_free and not self.used):
            return False
        self._used_by[whose] = own + size
        self.used += size
        return True

    def give_back(self, whose: str, size: int) -> None:
        """Give room back."""
        self.used -= size
        left = self._used_by[whose] - size
        if left:
            self._used_by[whose] = left
        else:
            del self._used_by[whose]


__all__ = ["SHARES", "Shares"]
