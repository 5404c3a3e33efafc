"""Contacts of bodies: the nearest obstacle of a body, and a log (`Simulation.events`).

The engine stops a robot just before it would overlap something
(`botyard.engine.kernels.collide`), and reports a stall. The engine also reports the
obstacle if a caller has requested it before the step (`Engine.met`). Otherwise the
nearest thing within `TOUCH_M` counts as the obstacle. The distance is not zero,
because other bodies may have moved on in the same step.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, overload

import numpy as np

from botyard.api.revisions import Subject
from botyard.engine.kernels.clearance import find_nearest_thing
from botyard.engine.layout import WALL as WALL_ROW
from botyard.engine.snapshot import Snapshot
from botyard.geometry import Pose
from botyard.model.obstacles import Visible
from botyard.sim.core import Core

if TYPE_CHECKING:
    from botyard.sim.episodes import Episodes

WALL: Final = "a wall"
"""Name of any wall in contacts; robots and boxes appear with their own names."""
TOUCH_M: Final = 0.02
"""Greatest distance between a robot's outline and its obstacle, m."""
MAX_CONTACTS: Final = 100_000
"""Highest number of contacts in a log; older ones are dropped."""


class Contact(NamedTuple):
    """Start of a contact between a robot and an obstacle.

    The robot was stopped, or it pressed on the obstacle if one of the two has mass.

    Attributes
    ----------
    time : float
        Simulated time in the episode, s.
    robot, other : str
        Name of the robot that was driving; name of a robot, a box, or `WALL`.
    pose : Pose
        True pose of the robot.
    episode : int
        Number of the episode, see `Simulation.reset`.
    """

    time: float
    robot: str
    other: str
    pose: Pose
    episode: int = 0

    def __str__(self) -> str:
        return (
            f"{self.time:.2f} s: {self.robot} touched {self.other} at "
            f"({self.pose.x:.2f}, {self.pose.y:.2f}) m"
        )


def nearest(core: Core, row: int, within: float) -> tuple[float, str]:
    """Return the obstacle nearest to the outline of a body.

    If there is no obstacle, the nearest body with mass is returned.

    Parameters
    ----------
    core : Core
        Simulated world.
    row : int
        Row of the body.
    within : float
        Radius of the search, m.

    Returns
    -------
    (float, str)
        Distance, m, and name; (inf, `WALL`) if nothing is within reach.
    """
    engine, distance = core.engine, np.full(1, math.inf)
    # A pushed body does not stop a robot, unless it is stuck itself: obstacles come
    # first.
    for visible, walls in ((Visible.OBSTACLE, True), (Visible.PUSHED, False)):
        thing = find_nearest_thing(
            engine.packed, row, within, int(visible), walls, distance
        )
        if thing >= 0:
            return float(distance[0]), engine.specs[thing].name
        if thing == WALL_ROW:
            return float(distance[0]), WALL

    return math.inf, WALL


def stopping(core: Core, row: int) -> str | None:
    """Return the name of the obstacle of a stalled body.

    Parameters
    ----------
    core : Core
        Simulated world.
    row : int
        Row of the body, which was stalled in the last step.

    Returns
    -------
    str or None
        Name of a robot or a box, or `WALL`. None: the obstacle has moved farther away
        than `TOUCH_M`.
    """
    met = core.engine.met(row)
    # The engine has noted which obstacle it was, so no search is needed.
    if met is not None:
        return WALL if met == WALL_ROW else core.engine.specs[met].name
    away, name = nearest(core, row, TOUCH_M)
    return name if away <= TOUCH_M else None


def pressing(core: Core) -> dict[str, list[str]]:
    """Return the names that bodies press on, by body.

    Pairs in which at least one body has mass count. Each name occurs once, in no
    defined order.
    """
    found: dict[str, list[str]] = {}
    dynamics, specs = core.engine.dynamics, core.engine.specs
    if dynamics is not None:
        for pair in dynamics.pressing(WALL, {spec.uid: spec.name for spec in specs}):
            for one, other in (pair, pair[::-1]):
                others = found.setdefault(one, [])
                if other not in others:
                    others.append(other)

    return found


def touching(core: Core, name: str) -> tuple[str, ...]:
    """Return the names of everything that a robot touches now.

    The names are its obstacle, the robots that it stops, and bodies it presses on, if one of
    the two has mass.

    Parameters
    ----------
    core : Core
        Simulated world.
    name : str
        Name of the robot.

    Returns
    -------
    tuple of str
        Names without repetitions, the robot's own obstacle first; `WALL` for walls.
    """
    snapshot = core.snapshot
    core.engine.note_contacts()
    rows, stall = snapshot.rows, snapshot.state.stall
    stops = stopping(core, rows[name]) if stall[rows[name]] else None
    found = [] if stops is None else [stops]
    for other, row in rows.items():
        if (
            other != name
            and stall[row]
            and other not in found
            and stopping(core, row) == name
        ):
            found.append(other)

    found += [other for other in pressing(core).get(name, ()) if other not in found]
    return tuple(found)


class ContactLog(Sequence[Contact]):
    """Contacts of robots since the log started, in order of time.

    An entry is added when a robot starts to touch something. Entries of earlier
    episodes stay. If time is set back within an episode (`restore`, `history`), later
    entries are dropped.

    Parameters
    ----------
    core : Core
        Simulated world.
    episodes : Episodes
        Episodes of the world.
    """

    def __init__(self, core: Core, episodes: Episodes) -> None:
        self._core, self._episodes = core, episodes
        core.engine.note_contacts()
        self._revision = core.feed.last(Subject.TIME)
        self._entries: deque[Contact] = deque(maxlen=MAX_CONTACTS)
        self._begun: deque[int] = deque(maxlen=MAX_CONTACTS)
        """Number of started episodes at each entry.

        The number of the episode does not suffice: each new seed starts again from 0.
        """
        self._touched: dict[str, list[str]] = {}
        self.total = 0
        """Number of all contacts since the log started, dropped ones included."""

    def look(self, snapshot: Snapshot) -> None:
        """Add the contacts of the step that has just ended.

        Parameters
        ----------
        snapshot : Snapshot
            State after the step. Stalls, poses and time are read from it.
        """
        core, stall = self._core, snapshot.state.stall
        # A reset or a restored state breaks the comparison with the previous step.
        if core.feed.last(Subject.TIME) != self._revision:
            self._go_back(snapshot.time)
        pressed = pressing(core)
        # In most steps of most worlds nothing touches.
        if not pressed and not stall.any():
            self._touched.clear()
            return

        before, self._touched = self._touched, {}
        for name in core.robots:
            row = snapshot.rows[name]
            others = pressed.get(name, [])
            stops = stopping(core, row) if stall[row] else None
            if stops is not None and stops not in others:
                others = [stops, *others]
            if others:
                self._touched[name] = others
            for other in others:
                # A lasting contact is one entry.
                if other not in before.get(name, ()):
                    self.total += 1
                    pose = Pose(*snapshot.state.pose[row].tolist())
                    self._entries.append(
                        Contact(snapshot.time, name, other, pose, self._episodes.number)
                    )
                    self._begun.append(self._episodes.begun)

    def _go_back(self, time: float) -> None:
        """Drop entries from `time` (s) on after time was set and a step was made.

        The touching pairs before that step are unknown.
        """
        self._revision = self._core.feed.last(Subject.TIME)
        self._touched.clear()
        while (
            self._entries
            and self._begun[-1] == self._episodes.begun
            and self._entries[-1].time >= time
        ):
            self._entries.pop()
            self._begun.pop()

    @overload
    def __getitem__(self, index: int) -> Contact: ...
    @overload
    def __getitem__(self, index: slice) -> list[Contact]: ...
    def __getitem__(self, index: int | slice) -> Contact | list[Contact]:
        return (
            list(self._entries)[index]
            if isinstance(index, slice)
            else self._entries[index]
        )

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Contact]:
        # Iterate over a copy: a step during the iteration may add entries.
        return iter(tuple(self._entries))

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no contacts"


__all__ = [
    "TOUCH_M",
    "WALL",
    "Contact",
    "ContactLog",
    "nearest",
    "stopping",
    "touching",
]
