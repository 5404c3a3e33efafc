"""Events of a running simulation for the page's timeline (`Marks`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from botyard.api.revisions import Subject
from botyard.control.parts import RunLoop
from botyard.names import shown
from botyard.protocols.webgui import pushes

MAX_MARKS: Final = 500
"""Largest number of events on a timeline; the latest events are kept."""
MAX_NAMED: Final = 3
"""Largest number of robot names in the text of an event; the text counts the others."""
STALL_PAUSE_S: Final = 5.0
"""Simulated time after a robot's stall in which a further stall makes no new event, s."""


class Marks:
    """Collector of the events of a running simulation for the timeline.

    Parameters
    ----------
    hub : RunLoop
        The run loop.
    own : str
        Source of the page's own commands, which does not count as a client.

    Attributes
    ----------
    all : sequence of Mark
        Events, oldest first; a new sequence object after each change.
    """

    def __init__(self, hub: RunLoop, own: str) -> None:
        self.all: Sequence[pushes.Mark] = ()
        self._sim, self._own = hub.sim, own
        self._kept: deque[pushes.Mark] = deque(maxlen=MAX_MARKS)
        self._robots, self._clients = self._now()
        self._scene = self._sim.scene
        self._stalled: dict[str, float] = {}
        hub.follow(
            self._jumped,
            Subject.TIME,
            # Handle jumps in time first: the added and removed robots after a jump are
            # no events.
        )
        hub.follow(self._bodies, Subject.BODIES)
        hub.follow(self._claims, Subject.CLAIMS)
        hub.follow(self._map, Subject.MAP)

    def _now(self) -> tuple[set[str], set[tuple[str, str]]]:
        """Return the names of the robots, and the pairs (robot, source that commands it)."""
        robots = self._sim.robots
        return set(robots), {
            (n, s)
            for n, robot in robots.items()
            for s in robot.clients
            if s != self._own
        }

    def _note(self, kind: str, text: str) -> None:
        self._kept.append(pushes.Mark(time=self._sim.time, kind=kind, text=text))
        self.all = tuple(self._kept)

    def _bodies(self) -> None:
        before, self._robots = self._robots, set(self._sim.robots)
        for what, names in (
            ("added", self._robots - before),
            ("removed", before - self._robots),
        ):
            if names:
                self._note(
                    "robot",
                    f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {what}",
                )

    def _claims(self) -> None:
        before, self._clients = self._clients, self._now()[1]
        for what, pairs in (
            ("commanded by", self._clients - before),
            ("left by", before - self._clients),
        ):
            for source in sorted({source for _, source in pairs}):
                names = {name for name, s in pairs if s == source}
                self._note(
                    "client",
                    f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {what} {source}",
                )

    def _map(self) -> None:
        # The subject also reports edits of the same map, which are no event.
        if self._sim.scene is not self._scene:
            self._scene = self._sim.scene
            self._note(
                "map",
                f"map {shown(self._sim.scene.name)}"
                if self._sim.scene.name
                else "no map",
            )

    def _jumped(self) -> None:
        """Drop the events after the time to which the simulation has jumped."""
        self._drop(lambda mark: mark.time <= self._sim.time)
        self._robots, self._clients = self._now()
        self._scene = self._sim.scene
        self._stalled.clear()
        self._note("branch", "the run continues from a restored state")

    def look(self, first: float) -> None:
        """Detect robots that stall, and drop events before the time `first`.

        Robots that stall again within `STALL_PAUSE_S` make no further event.

        Parameters
        ----------
        first : float
            Simulated time of the first kept moment, s; events before it cannot be
            shown.
        """
        # The page cannot show moments before this time, so their events are of no use.
        if self._kept and self._kept[0].time < first:
            self._drop(lambda mark: mark.time >= first)
        state, rows, time = (
            self._sim.snapshot.state,
            self._sim.snapshot.rows,
            self._sim.time,
        )
        if not state.stall.any():
            return
        names = {
            name
            for name in self._sim.robots
            if name in rows and state.stall[rows[name]]
        }
        new = {
            name
            for name in names
            if time - self._stalled.get(name, -STALL_PAUSE_S) >= STALL_PAUSE_S
        }
        recent = {
            name: at for name, at in self._stalled.items() if time - at < STALL_PAUSE_S
        }

        # Store the present time for each stalled robot, so that a long stall makes one
        # event only.
        self._stalled = recent | dict.fromkeys(names, time)
        if new:
            self._note(
                "stall", f"{_listed(new)} {'stalls' if len(new) == 1 else 'stall'}"
            )

    def _drop(self, stays: Callable[[pushes.Mark], bool]) -> None:
        self._kept = deque(
            (mark for mark in self._kept if stays(mark)), maxlen=MAX_MARKS
        )
        self.all = tuple(self._kept)


def _listed(names: Iterable[str]) -> str:
    """Return names as part of a sentence; names beyond the limit are only counted."""
    found = sorted(names)
    more = len(found) - MAX_NAMED
    return ", ".join(shown(name) for name in found[:MAX_NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )


__all__ = ["MAX_MARKS", "Marks"]
