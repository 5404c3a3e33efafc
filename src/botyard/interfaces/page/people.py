"""Users of pages as other users see them (`People`).

Pages show the pointers, selections and held bodies of the other users.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Final

from botyard.names import shown
from botyard.protocols.webgui import pushes
from botyard.protocols.webgui.messages import MAX_PERSON
from botyard.protocols.webgui.session import Viewer

PERIOD: Final = 0.1
"""Least wall time between two messages, s; pages may report their pointers more often."""
MAX_SELECTED: Final = 50
"""Largest number of a user's selected bodies that other users see."""


class People:
    """Users who show themselves to each other. Users who do not are neither shown nor see others.

    Parameters
    ----------
    held : mapping
        `Site.held` of the control surface: for each held body a tuple, whose first item
        is the client that holds it.
    """

    def __init__(self, held: Mapping[str, tuple[Any, ...]]) -> None:
        self._held = held
        self._people: dict[Viewer, tuple[int, tuple[float, float] | None]] = {}
        self._sent = b""
        self._next = -math.inf

    def show(
        self, viewer: Viewer, name: str, pointer: tuple[float, float] | None
    ) -> None:
        """Show a user to the other users, or end this.

        Parameters
        ----------
        viewer : Viewer
            Page of the user.
        name : str
            Name of the user; empty to end showing the user.
        pointer : (float, float), optional
            Position of the pointer in the world, m; None if it is not over the map.
        """
        viewer.person = shown(name.strip(), MAX_PERSON)
        if not viewer.person:
            self.left(viewer)
            return
        taken = {color for color, _ in self._people.values()}
        color, _ = self._people.get(viewer) or (
            next(k for k in itertools.count() if k not in taken),
            None,
        )
        self._people[viewer] = color, pointer

    def left(self, viewer: Viewer) -> None:
        """Forget a page that has left."""
        if self._people.pop(viewer, None) is not None:
            # Send the next message in any case, even if it equals the last one.
            self._sent = b""

    def tell(self, now: float) -> None:
        """Send the list of users to the pages that show it, if it has changed.

        Parameters
        ----------
        now : float
            Wall time, s.
        """
        if not self._people or now < self._next:
            return
        self._next = now + PERIOD
        message = pushes.encoder.encode(pushes.People(people=self._all()))
        if message != self._sent:
            self._sent = message
            for viewer in self._people:
                viewer.send_encoded(message, again_soon=True)

    def _all(self) -> list[pushes.Person]:
        holds: dict[Any, list[str]] = {}
        for body, (caller, *_) in self._held.items():
            holds.setdefault(caller.key, []).append(body)
        return [
            pushes.Person(
                page=viewer.number,
                name=viewer.person,
                color=color,
                pointer=pointer,
                selected=list(viewer.view.selected[:MAX_SELECTED]),
                holds=holds.get(viewer, [])[:MAX_SELECTED],
            )
            for viewer, (color, pointer) in self._people.items()
        ]


__all__ = ["People"]
