"""Addresses from which a page fetches files: unguessable, and for a short time."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

OFFER_TIME_S: Final = 60.0
"""Lifetime of the address of a file for download, s."""
MAX_OFFERS: Final = 100
"""Limit of such addresses at a time."""


class Downloads:
    """Files offered for download, each at an address of its own."""

    def __init__(self) -> None:
        self._offers: dict[str, tuple[Path, float]] = {}

    def offer(self, path: Path, now: float) -> str:
        """Return a new address for a file; `now` is wall time, s."""
        ticket = secrets.token_urlsafe(24)
        # Keeps the newest addresses, with room for one more.
        self._offers = {
            t: (p, end)
            for t, (p, end) in [*self._offers.items()][1 - MAX_OFFERS :]
            if end > now
        }
        self._offers[ticket] = path, now + OFFER_TIME_S
        return ticket

    def file_of(self, ticket: str, now: float) -> Path | None:
        """Return the file of an address; None if it is unknown or has expired."""
        path, end = self._offers.get(ticket, (None, 0.0))
        return path if now < end else None


__all__ = ["MAX_OFFERS", "OFFER_TIME_S", "Downloads"]
