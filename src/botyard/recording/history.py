"""Recent minutes of a simulation in memory, as keyframes and deltas.

A caller can look back at them or continue from them. The module is in this layer, above
`sim`, because it uses `botyard.recording.frames`; `Simulation.history` finds it as an
extension. It does not know clients: `botyard.control.history` has the operation, and
`botyard.interfaces.page.past` shows a moment to a page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from botyard.api import arguments
from botyard.api.readonly import ReadOnly
from botyard.engine.snapshot import Snapshot
from botyard.errors import StateError
from botyard.model.scene import Scene
from botyard.recording import frames
from botyard.sim.branching import is_same_map
from botyard.sim.history import Moment, make_history
from botyard.sim.savedstates import sealed
from botyard.sim.simulation import Simulation
from botyard.sim.state import rebuild, settings_of
from botyard.sim.statehead import IN_ROSTER

MINUTES: Final = 10.0
"""Default simulated time that a history keeps, min."""
MEGABYTES: Final = 200.0
"""Memory for the kept moments, 10⁶ bytes; the limit that is reached first counts."""
FEW_ROBOTS: Final = 20
PERIOD_S, LONG_PERIOD_S = 0.2, 0.5
"""Simulated time between moments, s, with at most `FEW_ROBOTS` robots, and with more.

A longer time between moments costs less computing time and memory.
"""
FRAMES_PER_KEYFRAME: Final = 32
"""Number of frames between keyframes.

Access to a moment decodes half of them on average.
"""


@dataclass(slots=True)
class _Part:
    """Moments of one map, starting with a keyframe.

    Attributes
    ----------
    scene : Scene
        The map; its boxes are in the states.
    described : tuple
        Models, boxes and description files that the first state refers to. They are
        kept here because a world forgets old ones after some time.
    """

    scene: Scene
    described: tuple[object, ...]
    moments: list[Moment] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    size: int = 0


class History(ReadOnly):
    """Recent minutes of a simulation (`Simulation.history`), off until `keep`.

    Attributes
    ----------
    problem : str
        Reason why the last moment could not be kept, for example a controller that
        cannot be saved; empty if it was kept.
    size : int
        Bytes of the kept states, without maps.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._parts: deque[_Part] = deque()
        self._before: bytes | None = None
        self._count = 0
        """Number of the latest kept state, counted over all parts."""
        self._end: Callable[[], None] = _nothing
        self._limits = (0.0, 0.0)
        self._roster = -1
        self._next = 0
        self._map_bytes = 0
        self.problem = ""
        self.size = 0

    # -- on and off

    def keep(self, minutes: float = MINUTES, megabytes: float = MEGABYTES) -> None:
        """Keep the recent minutes from now on.

        Parameters
        ----------
        minutes : float
            Simulated time, min.
        megabytes : float
            Memory, 10⁶ bytes; the limit that is reached first counts.

        Raises
        ------
        ArgumentError
            An argument is not a number above 0.
        """
        minutes = arguments.number(minutes, "minutes", low=0.0, above=True, unit="min")
        megabytes = arguments.number(
            megabytes, "megabytes", low=0.0, above=True, unit="MB"
        )
        is_new = not self.is_on
        self._limits = (60.0 * minutes, 1e6 * megabytes)
        # A second call changes only the limits.
        if is_new:
            self._end = self._sim.after_step(self._stepped)
            self._next = self._sim.tick
            self._stepped()

    def stop(self) -> None:
        """Stop keeping moments, and forget all of them."""
        self._end()
        self._limits = (0.0, 0.0)
        self._clear()

    @property
    def is_on(self) -> bool:
        """Whether moments are kept."""
        return self._limits[0] > 0.0

    @property
    def _every(self) -> int:
        """Number of steps between moments."""
        period = PERIOD_S if len(self._sim.robots) <= FEW_ROBOTS else LONG_PERIOD_S
        return max(1, round(period / self._sim.dt))

    def _clear(self) -> None:
        self._parts.clear()
        self._before, self.size, self._map_bytes = None, 0, 0

    # -- what is kept

    def _stepped(self, _: Snapshot | None = None) -> None:
        """Keep the moment after a step, if one is due."""
        tick = self._sim.tick
        # Time has gone back: a state was restored or the world was reset.
        if self._parts and tick <= self._parts[-1].moments[-1].tick:
            self._drop_from(tick)
        elif tick < self._next:
            return

        self._next = tick + self._every
        try:
            self._count += 1
            self._append(self._sim.core.states.save_moment(self._count))
        except StateError as error:
            # The simulation continues, and a later moment can perhaps be saved.
            self.problem = str(error)
        else:
            self.problem = ""

    def _append(self, state: bytes) -> None:
        sim = self._sim
        part = self._parts[-1] if self._parts else None
        revision = sim.core.feed.last(*IN_ROSTER)
        # New robots or maps change what a state refers to, so a new part starts with a
        # keyframe.
        if (
            part is None
            or len(part.frames) >= FRAMES_PER_KEYFRAME
            or revision != self._roster
        ):
            part = _Part(sim.scene, sim.core.states.models())
            self._parts.append(part)
            self._count_maps()
            self._roster, self._before = revision, None

        frame = frames.encode(state, self._before)
        self._before = state
        part.moments.append(Moment(sim.tick, sim.time, self._count))
        part.frames.append(frame)
        part.size += len(frame)
        self.size += len(frame)
        self._shrink()

    def _shrink(self) -> None:
        """Forget the oldest moments beyond the limits; the last part always stays."""
        seconds, size = self._limits
        latest = self._parts[-1].moments[-1].time
        # Drop whole parts, because a delta is useless without its keyframe.
        while len(self._parts) > 1 and (
            self.size + self._map_bytes > size
            or latest - self._parts[1].moments[0].time >= seconds
        ):
            self.size -= self._parts.popleft().size
            self._count_maps()

    def _count_maps(self) -> None:
        """Count the bytes of all kept maps, except the map that the world holds anyway."""
        maps = {
            id(scene.segments): scene for scene in (part.scene for part in self._parts)
        }
        maps.pop(id(self._sim.scene.segments), None)
        self._map_bytes = sum(
            int(scene.segments.nbytes + scene.points.nbytes) for scene in maps.values()
        )

    def forget_after(self, time: float) -> None:
        """Forget the moments after a simulated time, s: the run continues differently
        from there.
        """
        while (
            self._parts and (latest := self._parts[-1].moments[-1]).time > time + 1e-9
        ):
            self._drop_from(latest.tick)

    def _drop_from(self, tick: int) -> None:
        """Forget the moments from a tick on."""
        while self._parts and self._parts[-1].moments[0].tick >= tick:
            self.size -= self._parts.pop().size
        self._before = None
        if self._parts:
            part = self._parts[-1]
            while part.moments[-1].tick >= tick:
                part.moments.pop()
                part.size -= len(part.frames[-1])
                self.size -= len(part.frames.pop())

        # The next moment starts with a keyframe.
        self._roster = -1

    # -- looking back

    @property
    def moments(self) -> Sequence[Moment]:
        """All kept moments, oldest first."""
        return [moment for part in self._parts for moment in part.moments]

    @property
    def span(self) -> tuple[Moment, Moment] | None:
        """Oldest and latest moment; None if no moment is kept."""
        return (
            (self._parts[0].moments[0], self._parts[-1].moments[-1])
            if self._parts
            else None
        )

    def moment(self, time: float) -> Moment:
        """Return the last moment at or before a simulated time.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        Moment
            The oldest moment if all moments are later.

        Raises
        ------
        StateError
            No moment is kept.
        """
        return self._at(time)[1]

    def neighbour_of(self, moment: Moment, by: int) -> Moment:
        """Return the moment that is `by` places after another one.

        Parameters
        ----------
        moment : Moment
            Moment to count from.
        by : int
            Number of places; negative: before it. Beyond the ends the oldest or the
            latest moment counts.

        Raises
        ------
        StateError
            No moment is kept.
        """
        found = self.moments
        if not found:
            raise StateError("history: no moment is kept")
        index = bisect_right([one.tick for one in found], moment.tick) - 1 + by
        return found[min(max(index, 0), len(found) - 1)]

    def _at(self, time: float) -> tuple[_Part, Moment]:
        time = arguments.number(time, "time", unit="s")
        if not self._parts:
            raise StateError(
                f"history: no moment is kept{f': {self.problem}' if self.problem else ''}"
            )

        parts = list(self._parts)
        # A tolerance of a nanosecond covers times that a client has rounded.
        part = parts[
            max(0, bisect_right([p.moments[0].time for p in parts], time + 1e-9) - 1)
        ]
        return part, part.moments[
            max(0, bisect_right([m.time for m in part.moments], time + 1e-9) - 1)
        ]

    def _state(self, time: float) -> tuple[_Part, bytes]:
        """Return the state of the last moment at or before a time.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        (_Part, bytes)
            Part of the moment, with its map and models, and the state for
            `Simulation.restore`.

        Raises
        ------
        StateError
            No moment is kept.
        """
        part, moment = self._at(time)
        state: bytes | None = None
        for frame in part.frames[: part.moments.index(moment) + 1]:
            state = frames.decode(frame, state)
        assert state is not None
        return part, sealed(state)

    def look(self, time: float, other: Simulation | None = None) -> Simulation:
        """Return the world of the last moment at or before a time, s.

        The world is a separate simulation, which shows that moment.

        Parameters
        ----------
        time : float
            Simulated time, s.
        other : Simulation, optional
            Earlier result of this method. The method sets it to the world of the
            moment, which is faster than creating a simulation.

        Raises
        ------
        StateError
            No moment is kept.
        """
        part, state = self._state(time)
        sim = self._sim
        if other is None:
            models: Any = part.described
            other = rebuild(
                type(sim),
                part.scene,
                models,
                sim.core.descriptions.described,
                settings_of(sim),
                state,
            )
            # The warnings were already shown when this moment was simulated.
            other.core.warn_by(_silent)
        else:
            if not is_same_map(other.scene, part.scene):
                other.replace_scene(part.scene)
            # The other world may not know these models.
            other.core.states.know(part.described)
            other.restore(state)

        other.settle()
        return other

    def go_on_from(self, time: float) -> Moment:
        """Continue the simulation from the last moment at or before a time.

        Later moments are forgotten. See `SavedStates.branch`.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        Moment
            Moment from which the simulation continues.

        Raises
        ------
        StateError
            No moment is kept.
        """
        part, state = self._state(time)
        moment = self.moment(time)
        self._sim.core.states.know(part.described)
        self._sim.core.states.branch(state, part.scene)
        self._drop_from(moment.tick + 1)
        self._next = moment.tick + self._every
        return moment


def _nothing() -> None:
    """Do nothing: placeholder for the end of a subscription."""


def _silent(text: str) -> None:
    """Ignore a warning."""


@make_history.implementation
def _make(sim: Simulation) -> History:
    """Return a history of a simulation."""
    return History(sim)


__all__ = [
    "FEW_ROBOTS",
    "FRAMES_PER_KEYFRAME",
    "LONG_PERIOD_S",
    "MEGABYTES",
    "MINUTES",
    "PERIOD_S",
    "History",
    "Moment",
]
