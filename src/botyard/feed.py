"""One feed of changes: what was made of robots, the map, or who drives whom can be found out of date here. A leaf.

What every step changes (poses, velocities, readings) is not in it: that is the snapshot's. Whoever changes one of these subjects tells the
feed, at the place where all such changes pass; others compare revisions once a cycle (`Feed.last`), or are called by the run loop
(`botyard.control.parts.RunLoop.follow`). A change costs a microsecond, a step without changes nothing.

Revisions are no part of the world's state: they are neither saved nor in the digest. `Simulation.restore` raises those of all that a state
can change, so everybody looks again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Subject(IntEnum):
    """What changes seldom."""

    BODIES = 0
    """Robots, obstacles or boxes have come or gone, stand in other rows, or are others of the same name."""
    OUTLINES = 1
    """A body has another outline: a gripper has moved, or carries something."""
    MASS = 2
    """A body has got, lost or changed its mass."""
    READINGS = 3
    """A range sensor has come, or has other beams: readings stand elsewhere."""
    MAP = 4
    """Another map is in place."""
    DESCRIBED = 5
    """Joints or ray sensors of a description file have come."""
    SERVED = 6
    """Clients may reach other robots."""
    CLAIMS = 7
    """A robot has got or lost a source of commands."""
    PACE = 8
    """Time stands still, goes on, or goes at another speed."""
    PORTS = 9
    """A robot's port was opened or closed."""
    CELLS = 10
    """The map as cells is there, which takes some time."""


SAVED: Final = (
    Subject.BODIES,
    Subject.OUTLINES,
    Subject.MASS,
    Subject.READINGS,
    Subject.DESCRIBED,
    Subject.SERVED,
    Subject.CLAIMS,
)
"""What `Simulation.restore` may change; the map must be the same one."""


class Feed:
    """Revisions of all subjects; one feed belongs to one world.

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
        """These have changed."""
        self.revision += 1
        for subject in subjects:
            self._last[subject] = self.revision

    def last(self, *subjects: Subject) -> int:
        """The revision at which one of these changed last; 0: never. Another number means that there was a change."""
        last = self._last
        return max([last[subject] for subject in subjects])

    def changed_since(self, revision: int) -> frozenset[Subject]:
        """What has changed after a revision."""
        return frozenset(subject for subject in Subject if self._last[subject] > revision)


__all__ = ["SAVED", "Feed", "Subject"]
