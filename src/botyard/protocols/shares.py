"""What peers make us keep, counted in bytes: of all together, and of each address, so
that one address never takes all.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

ENTRY_BYTES: Final = 512
"""What an entry takes beside its texts, bytes: objects of Python and their places in
tables.
"""
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
    clients : Counter of str
        Clients of each address that have an account.
    """

    __slots__ = ("_each", "_limit", "_used_by", "clients", "used")

    def __init__(self, limit: int, each: int = 0) -> None:
        self._limit = limit
        self._each = each or limit // SHARES
        self._used_by: dict[str, int] = {}
        self.clients: Counter[str] = Counter()
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
            The first of an address may be longer than its share, and the first of all
            longer than the whole: its size is limited elsewhere.
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


class Account:
    """What one client makes us keep, also on the account of its address.

    Parameters
    ----------
    shares : Shares
        Of all clients.
    whose : str
        The client's address.
    limit : int
        Bytes of this client.
    """

    __slots__ = ("_is_open", "_limit", "_shares", "_whose", "used")

    def __init__(self, shares: Shares, whose: str, limit: int) -> None:
        self._shares, self._whose, self._limit = shares, whose, limit
        self._is_open = True
        shares.clients[whose] += 1
        self.used = 0

    def part(self, most: int, address: int) -> int:
        """What may wait unread for the client, of `most` bytes for one and `address`
        for all of its address.
        """
        return min(most, address // max(1, self._shares.clients[self._whose]))

    def take(self, size: int) -> bool:
        """Take room, if there is some."""
        if self.used + size > self._limit or not self._shares.take(self._whose, size):
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        """Give room back."""
        size = min(size, self.used)
        if size:
            self.used -= size
            self._shares.give_back(self._whose, size)

    def close(self) -> None:
        """Give all of it back: the client has gone."""
        self.give_back(self.used)
        if self._is_open:
            self._is_open = False
            self._shares.clients -= Counter({self._whose: 1})


def cost(*texts: object) -> int:
    """Bytes that an entry with these texts takes in memory, about; what is no text
    counts as part of the entry.
    """
    return ENTRY_BYTES + sum(
        len(text) if text.isascii() else 4 * len(text)
        for text in texts
        if isinstance(text, (str, bytes))
    )


__all__ = ["ENTRY_BYTES", "SHARES", "Account", "Shares", "cost"]
