"""Revision counters of data that changes rarely (robots, map, claims …).

Caches use them for invalidation. Data that changes with each step (poses, velocities, readings) has
no counter, because a cache reads it from each snapshot. Code that changes a subject calls
`Revisions.record_change`. Caches compare revisions once per cycle (`Revisions.last`), and the run
loop calls subscribers (`botyard.control.parts.RunLoop.follow`). Recording a change takes a
microsecond, and a step without changes takes no time.

Revisions are not part of the world's state: they are neither saved nor in the digest.
`Simulation.restore` increments the counters of all subjects that a saved state contains,
which invalidates all caches of these.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Subject(IntEnum):
    """Subjects with a revision counter."""

    BODIES = 0
    """Robots, obstacles or boxes were added, removed or replaced, or got other row numbers."""
    OUTLINES = 1
    """A body's outline changed: a gripper moved, or gripped or released an object."""
    MASS = 2
    """A body received, lost or changed its mass."""
    READINGS = 3
    """A range sensor was added, or its number of beams changed.

    Offsets in the array of all readings differ then.
    """
    MAP = 4
    """The map was replaced."""
    DESCRIBED = 5
    """Joints or ray sensors from a robot description file (URDF, SDF) were added."""
    SERVED = 6
    """The set of robots that clients can reach changed."""
    CLAIMS = 7
    """A source of commands claimed or released a robot."""
    PACE = 8
    """The simulation was paused or resumed, or runs at another speed."""
    PORTS = 9
    """A robot's network port was opened or closed."""
    CELLS = 10
    """The occupancy grid of the map is now available; computing it takes some time."""

    TIME = 11
    """Time jumped, because a state was restored."""


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
"""Subjects that `Simulation.restore` may change; the map is not one of them."""


class Revisions:
    """Revision counters of all subjects of one world.

    Attributes
    ----------
    revision : int
        Increases with each change of any subject.
    """

    __slots__ = ("_last", "revision")

    def __init__(self) -> None:
        self.revision = 0
        # A list, because caches read it in each step, and an index is faster than a key
        # of a dict.
        self._last = [0] * len(Subject)

    def record_change(self, *subjects: Subject) -> None:
        """Increment the counters of subjects that have changed."""
        self.revision += 1
        for subject in subjects:
            self._last[subject] = self.revision

    def last(self, subject: Subject, *others: Subject) -> int:
        """Return the revision of the last change of any of these subjects.

        Parameters
        ----------
        subject, *others : Subject
            Subjects that a cache depends on.

        Returns
        -------
        int
            Revision; 0: never changed. A cache is stale if it differs from the
            remembered one.
        """
        last = self._last
        latest = last[subject]
        # Caches call this in each step, mostly with one subject; `max` would take twice
        # as long.
        for other in others:
            if last[other] > latest:
                latest = last[other]

        return latest

    def changed_since(self, revision: int) -> frozenset[Subject]:
        """Return the subjects that changed after a revision.

        Parameters
        ----------
        revision : int
            Earlier value of `revision`, or result of `last`.
        """
        return frozenset(
            subject for subject in Subject if self._last[subject] > revision
        )


__all__ = ["SAVED", "Revisions", "Subject"]
