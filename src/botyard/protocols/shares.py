"""Memory accounts of peers, in bytes.

There is a limit for all peers together, and one for each address, so that one address
cannot use all memory.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

ENTRY_BYTES: Final = 512
"""Approximate memory of an entry (a subscription, a call …) besides its texts, bytes.

It covers Python objects and their places in tables.
"""
SHARES: Final = 4
"""The limit for all addresses, divided by this number, is the limit for one address."""


class Shares:
    """Memory limit of all peers and of each address.

    Parameters
    ----------
    limit : int
        Limit of all peers together, bytes.
    each : int
        Limit of one address, bytes; 0 means `limit` divided by `SHARES`.

    Attributes
    ----------
    used : int
        Bytes in use by all peers together.
    clients : Counter of str
        Number of accounts of each address.
    """

    __slots__ = ("_each", "_limit", "_used_by", "clients", "used")

    def __init__(self, limit: int, each: int = 0) -> None:
        self._limit = limit
        self._each = each or limit // SHARES
        self._used_by: dict[str, int] = {}
        self.clients: Counter[str] = Counter()
        self.used = 0

    def take(self, whose: str, size: int, *, is_first_free: bool = False) -> bool:
        """Reserve memory for an address; return whether there is enough.

        Parameters
        ----------
        whose : str
            Address of the peer.
        size : int
            Number of bytes.
        is_first_free : bool
            Whether an address without reserved memory may exceed the limit of one
            address, and also the limit of all peers if no memory at all is reserved.
            The caller then limits `size`.

        Returns
        -------
        bool
            False if there is not enough; nothing is reserved then.
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
        """Release memory of an address.

        Parameters
        ----------
        whose : str
            Address of the peer.
        size : int
            Number of bytes, at most the bytes that the address has reserved.

        Raises
        ------
        KeyError
            The address has no memory.
        """
        self.used -= size
        left = self._used_by[whose] - size
        if left:
            self._used_by[whose] = left
        # Addresses without memory are removed, so that the table stays small.
        else:
            del self._used_by[whose]


class Account:
    """Memory account of one client, whose bytes also count towards the limit of its address.

    Parameters
    ----------
    shares : Shares
        Limits of all clients.
    whose : str
        The client's address.
    limit : int
        Limit of this client, bytes.
    """

    __slots__ = ("_is_open", "_limit", "_shares", "_whose", "used")

    def __init__(self, shares: Shares, whose: str, limit: int) -> None:
        self._shares, self._whose, self._limit = shares, whose, limit
        self._is_open = True
        shares.clients[whose] += 1
        self.used = 0

    def part(self, most: int, address: int) -> int:
        """Return the client's limit of a kind of buffer, bytes.

        It is at most `most`, and at most an equal part of `address` for each client of
        the address.

        Parameters
        ----------
        most : int
            Largest part of one client, bytes.
        address : int
            Size that all clients of one address share equally, bytes.
        """
        return min(most, address // max(1, self._shares.clients[self._whose]))

    def take(self, size: int) -> bool:
        """Reserve memory; return whether there is enough.

        Parameters
        ----------
        size : int
            Number of bytes.

        Returns
        -------
        bool
            Whether the limits of client, address and all peers allow it. Otherwise
            nothing is reserved.
        """
        if self.used + size > self._limit or not self._shares.take(self._whose, size):
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        """Release memory of the client.

        Parameters
        ----------
        size : int
            Number of bytes. A number above the client's reserved memory releases all of
            it.
        """
        size = min(size, self.used)
        if size:
            self.used -= size
            self._shares.give_back(self._whose, size)

    def close(self) -> None:
        """Release all memory after the client has disconnected.

        Further calls have no effect.
        """
        self.give_back(self.used)
        if self._is_open:
            self._is_open = False
            self._shares.clients -= Counter({self._whose: 1})


def cost(*texts: object) -> int:
    """Return the approximate memory of an entry with these texts, bytes.

    Objects other than texts count as part of the entry.

    Parameters
    ----------
    *texts : object
        Contents of the entry. Only texts and bytes have a variable size.
    """
    return ENTRY_BYTES + sum(
        # Python stores texts beyond ASCII with up to 4 bytes for each character.
        len(text) if text.isascii() else 4 * len(text)
        for text in texts
        if isinstance(text, (str, bytes))
    )


__all__ = ["ENTRY_BYTES", "SHARES", "Account", "Shares", "cost"]
