"""Contacts of bodies: the thing nearest to an outline, and a log (`Simulation.events`).

The engine stops a robot just before it would overlap something
(`botyard.engine.kernels.collide`), and reports a stall. The engine also reports the
obstacle if a caller has asked for it before the step (`Engine.met`). Otherwise the
nearest thing within `TOUCH_M` is taken for the obstacle. The distance is not zero,
because other bodies may have moved on in the same step.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from botyard.api.revisions import Subject
from botyard.engine.layout import WALL as WALL_ROW
from botyard.engine.snapshot import Snapshot
from botyard.geometry import Pose
from botyard.model.obstacles import Visible
from botyard.numerics.elementary import cosine_sine
from botyard.sim.core import Core

if TYPE_CHECKING:
    from botyard.sim.episodes import Episodes

F8 = NDArray[np.float64]

WALL: Final = "a wall"
"""Name of walls, where robots and boxes have their own names."""
TOUCH_M: Final = 0.02
"""Greatest distance between a robot's outline and its obstacle, m."""
MAX_CONTACTS: Final = 100_000
"""Highest number of contacts in a log; older ones are dropped."""


class Contact(NamedTuple):
    """Start of a contact between a robot and an obstacle.

    The robot was stopped, or it pressed on the obstacle if one of both has mass.

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


def placed(parts: Sequence[Sequence[tuple[float, float]]], pose: F8) -> F8:
    """Return edges of outlines at a pose, (n, 4): x1, y1, x2, y2, m."""
    c, s = cosine_sine(float(pose[2]))
    edges = []
    for part in parts:
        points = np.asarray(part, np.float64)
        x, y = (
            pose[0] + c * points[:, 0] - s * points[:, 1],
            pose[1] + s * points[:, 0] + c * points[:, 1],
        )
        edges.append(np.column_stack((x, y, np.roll(x, -1), np.roll(y, -1))))

    return np.concatenate(edges)


def edge_distance(a: F8, b: F8) -> float:
    """Return the least distance between edges `a` (n, 4) and `b` (m, 4), m.

    The distance is 0 if two edges cross, and inf if there are none.
    """
    # NumPy has no minimum of an empty array.
    if not len(a) or not len(b):
        return math.inf
    if _cross(a, b):
        return 0.0
    ends = [
        _point_distance(p[:, k : k + 2], q) for p, q in ((a, b), (b, a)) for k in (0, 2)
    ]
    return float(min(ends))


def _point_distance(points: F8, edges: F8) -> float:
    """Return the least distance of points (n, 2) from edges (m, 4), m."""
    begin, along = edges[:, :2], edges[:, 2:] - edges[:, :2]
    # The lower bound avoids a division by zero for edges of length zero.
    length = np.maximum((along * along).sum(axis=1), 1e-300)
    away = points[:, None, :] - begin[None, :, :]
    t = np.clip((away * along).sum(axis=2) / length, 0.0, 1.0)
    rest = away - t[:, :, None] * along
    return float(np.sqrt((rest * rest).sum(axis=2).min()))


def _cross(a: F8, b: F8) -> bool:
    """Return whether an edge of `a` crosses an edge of `b`."""
    p, r = a[:, None, :2], a[:, None, 2:] - a[:, None, :2]
    q, s = b[None, :, :2], b[None, :, 2:] - b[None, :, :2]
    w = q - p
    turn = r[..., 0] * s[..., 1] - r[..., 1] * s[..., 0]
    # Parallel edges divide by zero; the condition on `turn` excludes them.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (w[..., 0] * s[..., 1] - w[..., 1] * s[..., 0]) / turn
        u = (w[..., 0] * r[..., 1] - w[..., 1] * r[..., 0]) / turn
        return bool(
            ((turn != 0.0) & (t >= 0.0) & (t <= 1.0) & (u >= 0.0) & (u <= 1.0)).any()
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
    specs, state = core.engine.specs, core.snapshot.state
    pose, radius = state.pose, core.engine.bodies.radius
    mine = placed(specs[row].parts, pose[row])
    low, high = (
        mine.reshape(-1, 2).min(axis=0) - within,
        mine.reshape(-1, 2).max(axis=0) + within,
    )
    best, name = math.inf, WALL
    if (found := edge_distance(mine, _walls(core, low, high))) <= within:
        best = found
    away = np.abs(pose[:, :2] - pose[row, :2]).max(axis=1)
    for visible in (Visible.OBSTACLE, Visible.PUSHED):
        # Circles first: comparing outlines is expensive.
        near = (away <= radius + radius[row] + within) & (
            state.mask & int(visible) != 0
        )
        near[row] = False
        for k in np.flatnonzero(near).tolist():
            found = edge_distance(mine, placed(specs[k].parts, pose[k]))
            if found <= within and found < best:
                best, name = found, specs[k].name

        # A pushed body does not stop a robot, unless it is stuck itself: obstacles come
        # first.
        if best <= within:
            break

    return best, name


def _walls(core: Core, low: F8, high: F8) -> F8:
    """Return walls, and edges of point cells, that block robots near a box, (n, 4)."""
    scene = core.scene
    s, p, edge = scene.segments, scene.points, scene.resolution
    near = (
        (np.minimum(s[:, 0], s[:, 2]) <= high[0])
        & (np.maximum(s[:, 0], s[:, 2]) >= low[0])
        & (np.minimum(s[:, 1], s[:, 3]) <= high[1])
        & (np.maximum(s[:, 1], s[:, 3]) >= low[1])
    )
    for special in scene.special_walls:
        if not special.returns.mask & Visible.OBSTACLE:
            # Some walls are visible to sensors, but do not stop robots.
            near[special.first : special.last] = False

    walls: F8 = s[near]
    inside = (
        (p[:, 0] <= high[0])
        & (p[:, 0] + edge >= low[0])
        & (p[:, 1] <= high[1])
        & (p[:, 1] + edge >= low[1])
    )
    if not inside.any():
        return walls
    x, y = p[inside, 0], p[inside, 1]
    to_x, to_y = x + edge, y + edge
    sides = [
        (x, y, to_x, y),
        (x, to_y, to_x, to_y),
        (x, y, x, to_y),
        (to_x, y, to_x, to_y),
    ]
    return np.concatenate([walls, *(np.column_stack(side) for side in sides)])


def stopping(core: Core, row: int) -> str | None:
    """Return the name of the obstacle of a stalled body; None if it is gone."""
    met = core.engine.met(row)
    # The engine noted the obstacle itself.
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

    These are its obstacle, the robots that it stops, and bodies it presses on if one of
    the two has mass.
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
    episodes stay. If time goes back within an episode (`restore`, `history`), later
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

        The number of the episode does not suffice: each seed starts again from 0.
        """
        self._touched: dict[str, list[str]] = {}
        self.total = 0
        """Number of all contacts so far, also of dropped ones."""

    def look(self, snapshot: Snapshot) -> None:
        """Add the contacts of the step that has just ended."""
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
        # A copy: a step during the iteration may add entries.
        return iter(tuple(self._entries))

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no contacts"


__all__ = [
    "TOUCH_M",
    "WALL",
    "Contact",
    "ContactLog",
    "edge_distance",
    "nearest",
    "placed",
    "stopping",
    "touching",
]
