"""Temporary addresses, impossible to guess, from which a page downloads files."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

OFFER_TIME_S: Final = 60.0
"""Lifetime of the address of a file for download, s."""
MAX_OFFERS: Final = 100
"""Largest number of download addresses at a time."""


class Downloads:
    """Files that pages can download, each at its own address."""

    def __init__(self) -> None:
        self._offers: dict[str, tuple[Path, float]] = {}

    def offer(self, path: Path, now: float) -> str:
        """Return a new address for a file.

        If there are more than `MAX_OFFERS` addresses, the oldest are dropped.

        Parameters
        ----------
        path : Path
            The file.
        now : float
            Wall time, s. The address expires `OFFER_TIME_S` later.

        Returns
        -------
        str
            Random text for the URL; it is the only protection of the file.
        """
        ticket = secrets.token_urlsafe(24)
        # Keep the newest addresses that have not expired, at most one less than the
        # limit.
        self._offers = {
            t: (p, end)
            for t, (p, end) in [*self._offers.items()][1 - MAX_OFFERS :]
            if end > now
        }
        self._offers[ticket] = path, now + OFFER_TIME_S
        return ticket

    def file_of(self, ticket: str, now: float) -> Path | None:
        """Return the file that belongs to a download address.

        Parameters
        ----------
        ticket : str
            Text that `offer` has returned, or anything a client sends.
        now : float
            Wall time, s.

        Returns
        -------
        Path or None
            The file; None if the address is unknown or has expired.
        """
        path, end = self._offers.get(ticket, (None, 0.0))
        return path if now < end else None


__all__ = ["MAX_OFFERS", "OFFER_TIME_S", "Downloads"]
