"""Player of a recording: it shows any moment, and continues as recorded.

To show a moment, the player restores the last recorded state before it. From there it simulates at
most a second, with the recorded changes. To play, step the simulation; every viewer of simulations
can show it. If the simulation does not reproduce a recorded state (because the recorder left data
out), the player shows the recorded one, and logs this once. Changes by other clients are undone
before the next step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from botyard.api import arguments
from botyard.engine.snapshot import Snapshot
from botyard.errors import RecordingError
from botyard.names import shown
from botyard.recording.track import Moment, Track
from botyard.recording.verify import MAX_GAP_S, make
from botyard.sim.branching import is_same_map
from botyard.sim.journal import Entry, Submit, SubmitEach, SubmitVelocities, acting
from botyard.sim.resimulation import apply
from botyard.sim.simulation import Simulation

log = logging.getLogger("botyard.recording")
_EPSILON: Final = 1e-9
"""Tolerance of comparisons of times, s."""


class Player:
    """Plays a recording.

    Parameters
    ----------
    track : Track
        Recording to play.

    Raises
    ------
    BotyardError
        This program cannot restore the first state of the recording.

    Attributes
    ----------
    sim : Simulation
        Simulation that shows the recording; step it to play.
    loop : bool
        Start again at the end. Otherwise the last moment stays, and the next step
        starts again.
    corrections : int
        Number of recorded states that were not reproduced, and were restored.
    ended : callable
        Called at the last moment, unless the player loops.
    """

    def __init__(self, track: Track) -> None:
        self.track = track
        self.sim: Simulation = make(track.start, track.state(0), track.budget)
        # States can refer to models that appear later, so make all of them known.
        self.sim.core.states.know(track.models)
        self.loop = False
        self.corrections = 0
        self.ended: Callable[[], object] = _nothing
        self._max_steps = max(1, round(MAX_GAP_S / track.step))
        self._entry = track.moments[0].entries
        self._moment = 0
        """Index of the last state at or before the current tick."""
        self._is_replaying = False
        self._is_foreign = False
        self._warned = set[str]()
        self.sim.core.journal.listen(self._note_change)
        self.sim.before_step(self._before)
        self.sim.after_step(self._after)

    # -- what a viewer does

    @property
    def begin(self) -> float:
        """Simulated time of the first moment, s."""
        return self.track.begin * self.track.step

    @property
    def end(self) -> float:
        """Simulated time of the last moment, s."""
        return self.track.end * self.track.step

    def seek(self, time: float) -> None:
        """Go to the last step at or before a simulated time.

        Parameters
        ----------
        time : float
            Simulated time of the recording, s. Beyond the ends it goes to the first or
            the last step.

        Raises
        ------
        ArgumentError
            `time` is not a finite number.
        BotyardError
            The recorded state cannot be restored, or a change cannot be repeated.
        """
        self.go(
            int((arguments.number(time, "time", unit="s") + _EPSILON) / self.track.step)
        )

    def go(self, tick: int) -> None:
        """Go to the moment after a number of steps.

        Parameters
        ----------
        tick : int
            Number of steps of the recorded run. Beyond the ends it goes to the first or
            the last moment.

        Raises
        ------
        BotyardError
            The recorded state cannot be restored, or a change cannot be repeated.
        """
        track, sim = self.track, self.sim
        tick = min(max(tick, track.begin), track.end)
        index = track.before(tick)
        # Going forward within the same state needs no restore, which is slower than a
        # few steps.
        here = (
            self._moment == index
            and not self._is_foreign
            and track.moments[index].tick <= sim.tick <= tick
        )
        if not here:
            self._restore(index)
        self._run_to(tick)

    # -- the recording

    def _replay(self, act: Callable[[], Any]) -> None:
        """Call `act` so that its changes count as recorded ones, not as foreign ones."""
        before, self._is_replaying = self._is_replaying, True
        try:
            act()
        finally:
            self._is_replaying = before

    def _note_change(self, entry: Entry) -> None:
        """Mark the world as changed by a client; the next step first undoes the change."""
        if self._is_replaying:
            return
        self._is_foreign = True
        if (
            isinstance(entry.change, (Submit, SubmitEach, SubmitVelocities))
            and entry.source not in self._warned
        ):
            self._warned.add(entry.source)
            log.warning(
                "a recording is played: commands of %s have no effect",
                shown(entry.source, 60),
            )

    def _restore(self, index: int) -> None:
        """Set the simulation to a recorded state."""
        track, sim, moment = self.track, self.sim, self.track.moments[index]
        state = track.state(index)

        def act() -> None:
            scene = track.scenes[moment.scene]
            if not is_same_map(sim.scene, scene):
                sim.replace_scene(scene)
            sim.restore(state, programs=False, budget=track.budget)

        self._replay(act)
        self._moment, self._entry, self._is_foreign = index, moment.entries, False

    def _run_to(self, tick: int) -> None:
        """Simulate up to a tick without calls of the functions that observe steps."""
        if tick - self.sim.tick > self._max_steps:
            raise RecordingError(
                f"tick {self.sim.tick}: expected the next state within {self._max_steps} steps, found none"
            )

        def act() -> None:
            while self.sim.tick < tick:
                self._changes()
                self.sim.core.engine.step()
                self._compare()

        self._replay(act)

    def _changes(self) -> None:
        """Apply the recorded changes that belong to the current tick."""
        track, sim = self.track, self.sim
        while self._entry < len(track.entries):
            try:
                entry = track.entry(self._entry)
                if entry.tick > sim.tick:
                    return
                if entry.tick == sim.tick:
                    with acting(entry.source):
                        apply(entry.change, sim, entry.source)
            # A crafted entry can refer to missing objects in many forms. The next
            # recorded state corrects the world again.
            except Exception as error:
                self._count_correction(f"a recorded change cannot be repeated: {error}")

            self._entry += 1

    def _before(self) -> None:
        """Undo foreign changes, and apply the recorded ones, before a step."""
        # A step after the last moment starts the recording again.
        if self.sim.tick >= self.track.end:
            self._restore(0)
        elif self._is_foreign:
            self._undo_foreign()

        self._replay(self._changes)

    def _undo_foreign(self) -> None:
        """Restore the current moment as it was recorded, without foreign changes."""
        tick = self.sim.tick
        self._restore(self.track.before(tick))
        self._run_to(tick)

    def _after(self, snapshot: Snapshot) -> None:
        """Compare the world with the recording after a step, and report the end."""
        self._replay(self._compare)
        if self.sim.tick >= self.track.end and not self.loop:
            self.ended()

    def _compare(self) -> None:
        """Compare the world with a recorded state; restore it if they differ."""
        moments, sim = self.track.moments, self.sim
        while (
            self._moment + 1 < len(moments)
            and moments[self._moment + 1].tick <= sim.tick
        ):
            index, moment = self._moment + 1, moments[self._moment + 1]
            self._moment = index
            if moment.tick < sim.tick:
                # Several states can belong to one tick; only one of these states
                # follows all changes of the tick.
                continue

            if not self._leads_to(moment):
                self._restore(index)
            elif moment.entries == self._entry and moment.digest != sim.digest():
                self._restore(index)
                self._count_correction(
                    "the simulation does not reproduce a recorded state; the "
                    "player shows the recorded ones"
                )

    def _leads_to(self, moment: Moment) -> bool:
        """Return whether all changes recorded before a state were applied.

        Changes of the state's own tick may be missing. The result is False where the run restored
        an earlier state: the changes that this undid are recorded between the two states.
        """
        between = range(self._entry, moment.entries)
        return self._entry <= moment.entries and all(
            self.track.entry(k).tick == moment.tick
            for k in (*between[:1], *between[-1:])
        )

    def _count_correction(self, what: str) -> None:
        self.corrections += 1
        if self.corrections == 1:
            log.warning("tick %d: %s", self.sim.tick, shown(what, 300))


def _nothing() -> None:
    """Do nothing at the end of a recording."""


__all__ = ["Player"]
