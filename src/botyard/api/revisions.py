"""Revision counters of what changes seldom (robots, map, claims …), so that cached
results can be invalidated. A leaf.

What every step changes (poses, velocities, readings) has no counter: that is the
snapshot's. Code that changes a subject calls `Feed.tell`; caches compare revisions once
per cycle (`Feed.last`), and subscribers are called by the run loop
(`botyard.control.parts.RunLoop.follow`). A change costs a microsecond, a step without
changes nothing.

Revisions are no part of the world's state: they are neither saved nor in the digest.
`Simulation.restore` increments those of all subjects that a state can change, which
invalidates all caches.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Subject(IntEnum):
    """Subjects with a revision counter."""

    BODIES = 0
    """Robots, obstacles or boxes were added, removed, renumbered, or replaced by others
    of the same name.
    """
    OUTLINES = 1
    """The outline of a body has changed: a gripper has moved, or carries something."""
    MASS = 2
    """A body has got, lost or changed its mass."""
    READINGS = 3
    """A range sensor was added or has other beams: offsets of readings have changed."""
    MAP = 4
    """The map was replaced."""
    DESCRIBED = 5
    """Joints or ray sensors of a description file were added."""
    SERVED = 6
    """The set of robots that clients can reach has changed."""
    CLAIMS = 7
    """A source of commands has claimed or released a robot."""
    PACE = 8
    """The simulation was paused, continued, or runs at another speed."""
    PORTS = 9
    """A robot's network port was opened or closed."""
    CELLS = 10
    """The occupancy grid of the map has been computed, which takes some time."""

    TIME = 11
    """Time has jumped: a state was restored."""


SAVED: Final = (
    Subject.BODIES,
    Subject.OUTLINES,
    Subject.MASS,
    Subject.READINGS,
    Subject.DESCRIBED,
    Subject.SERVED,
    Subject.CLAIMS,
    Subject.TIME,
)
"""Subjects that `Simulation.restore` may change; the map must be the same one."""


class Revisions:
    """Revision counters of all subjects of one world.

    Attributes
    ----------
    revision : int
        Grows with every change of any subject.
    """

    __slots__ = ("_last", "revision")

    def __init__(self) -> None:
        self.revision = 0
        self._last = [0] * len(Subject)

    def tell(self, *subjects: Subject) -> None:
        """Record that these subjects have changed."""
        self.revision += 1
        for subject in subjects:
            self._last[subject] = self.revision

    def last(self, *subjects: Subject) -> int:
        """Revision of the last change of any of these; 0: never. A cache is stale when
        it differs from the remembered one.
        """
        last = self._last
        return max([last[subject] for subject in subjects])

    def changed_since(self, revision: int) -> frozenset[Subject]:
        """The subjects that have changed after a revision."""
        return frozenset(
            subject for subject in Subject if self._last[subject] > revision
        )


__all__ = ["SAVED", "Revisions", "Subject"]
