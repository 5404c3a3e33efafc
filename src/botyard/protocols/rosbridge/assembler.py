"""Assembly of operations that a rosbridge client sends in fragments.

Source: ROSBRIDGE_PROTOCOL.md, section 3.1.1.
"""

from __future__ import annotations

from collections.abc import Callable

from botyard.errors import PeerError
from botyard.protocols.rosbridge.limits import (
    FRAGMENT_TIMEOUT_S,
    MAX_FRAGMENTS,
    MAX_MESSAGE,
    MAX_PARTIAL,
)
from botyard.protocols.rosbridge.operations import Fragment
from botyard.protocols.shares import cost


class _Partial:
    """Operation with missing fragments."""

    def __init__(self, total: int, now: float) -> None:
        self.total, self.since = total, now
        self.size = self.room = 0
        self.pieces: dict[int, str] = {}


class Assembler:
    """Incomplete operations of one client.

    Parameters
    ----------
    keep : callable
        Reserves a number of bytes in the client's memory account, or raises a
        `PeerError`.
    forget : callable
        Releases a number of bytes.
    """

    def __init__(
        self, keep: Callable[[int], None], forget: Callable[[int], None]
    ) -> None:
        self._keep, self._forget = keep, forget
        self._partial: dict[str | int, _Partial] = {}

    def add(self, piece: Fragment, now: float) -> bytes | None:
        """Return the whole operation if this was its last fragment, otherwise None.

        Parameters
        ----------
        piece : Fragment
            Fragment of an operation. Fragments may arrive in any order.
        now : float
            Wall time, s.

        Raises
        ------
        PeerError
            Numbers are out of range, the fragments are together longer than
            `MAX_MESSAGE`, or the client has no memory left.
        """
        total = int(piece.total) if 1 <= piece.total <= MAX_FRAGMENTS else 0
        if not 0 <= piece.num < total:
            raise PeerError(
                "rosbridge: fragment: expected num of 0 … total-1 and total of "
                f"1 … {MAX_FRAGMENTS}, "
                f"found {piece.num} of {piece.total:g}"
            )

        partial = self._partial.get(piece.id)
        if partial is None or partial.total != total:
            # Limit the incomplete operations, which would otherwise fill the memory.
            while len(self._partial) >= MAX_PARTIAL:
                self._drop(next(iter(self._partial)))
            # Another total means that a new operation uses the same id.
            self._drop(piece.id)
            partial = self._partial[piece.id] = _Partial(total, now)

        # A repeated fragment is ignored.
        if piece.num not in partial.pieces:
            room = cost(piece.data)
            self._keep(room)
            # `size` counts characters, `room` the bytes of memory.
            partial.size += len(piece.data)
            partial.room += room
            partial.pieces[piece.num] = piece.data

        while self.size > MAX_MESSAGE:
            oldest = next(iter(self._partial))
            self._drop(oldest)
            if oldest == piece.id:
                raise PeerError(
                    f"rosbridge: fragments: expected at most {MAX_MESSAGE} characters"
                )

        if len(partial.pieces) < total:
            return None
        self._drop(piece.id)
        return "".join(partial.pieces[k] for k in range(total)).encode(
            "utf-8", "replace"
        )

    @property
    def size(self) -> int:
        """Characters of all incomplete operations."""
        return sum(p.size for p in self._partial.values())

    def deadlines(self) -> list[float]:
        """Return the wall times at which incomplete operations time out, s."""
        return [p.since + FRAGMENT_TIMEOUT_S for p in self._partial.values()]

    def drop_late(self, now: float) -> list[str | int]:
        """Drop the operations that have timed out, and return their ids.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        late = [
            i for i, p in self._partial.items() if now >= p.since + FRAGMENT_TIMEOUT_S
        ]
        for ident in late:
            self._drop(ident)
        return late

    def clear(self) -> None:
        """Drop all operations; closing the client's account releases their memory."""
        self._partial.clear()

    def _drop(self, ident: str | int) -> None:
        found = self._partial.pop(ident, None)
        if found is not None:
            self._forget(found.room)


__all__ = ["Assembler"]
