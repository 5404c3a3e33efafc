"""Condition and requirements of a run of a test world (`RobotWorld.run_until`)."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Final

from botyard.numerics.elementary import hypot
from botyard.testing.conditions import Condition, Scenery

POLL_S: Final = 0.02
"""Period of polling programs and simulator, s."""


class Failure(AssertionError):
    """A requirement of a test does not hold."""


class RunState:
    """State of one `RobotWorld.run_until`: its condition and requirements.

    Parameters
    ----------
    scenery : Scenery
        The world and its true history.
    condition : callable or None
        Condition to wait for; None to wait for the deadline.
    deadline : float
        Simulated time of the run, s.
    guarded : list of str
        Robots that must not touch anything.
    clearance : float or None
        Least distance of the guarded robots (of all, if there are none), m.
    always : callable or sequence of callable
        Conditions that must hold after each step.

    Attributes
    ----------
    over : Event
        Set when the run is over.
    error : exception or None
        Error of a condition, or the violated requirement.
    since, took : float
        Simulated time at the start of the run, and its duration, s.
    """

    def __init__(
        self,
        scenery: Scenery,
        condition: Condition | None,
        deadline: float,
        guarded: list[str],
        clearance: float | None,
        always: Condition | Sequence[Condition],
    ) -> None:
        self._scenery, self._condition, self._deadline = scenery, condition, deadline
        self._guarded, self._clearance = guarded, clearance
        self._always = [always] if callable(always) else list(always)
        self.over = threading.Event()
        self.error: BaseException | None = None
        self.since = self.took = 0.0
        self._seen = 0

    def begin(self) -> None:
        """Prepare the conditions before the first step, in the simulator's thread."""
        scenery = self._scenery
        self.since, self._seen = scenery.sim.time, len(scenery.truth.contacts)
        if self._clearance is not None:
            for name in self._guarded or scenery.sim.robots:
                scenery.truth.watch_clearance(name, self._clearance)
                # Each run measures its own minimum.
                scenery.truth[name].clearance = math.inf

        for condition in (self._condition, *self._always):
            begin = getattr(condition, "begin", None)
            if begin is not None:
                begin(scenery)

    def look(self) -> bool:
        """Evaluate the conditions after a step; return whether the run is over."""
        if self.over.is_set():
            return True
        try:
            done = self._holds()
        # Store the error, which the test's thread raises: raised here, it would end the
        # simulator.
        except BaseException as error:
            self.error = error
            done = True

        if done:
            self.took = self._scenery.sim.time - self.since
            self.over.set()

        return done

    def _holds(self) -> bool:
        """Return whether the condition holds or the time of the run is over.

        Raise Failure if a requirement is violated.
        """
        scenery = self._scenery
        sim, truth = scenery.sim, scenery.truth
        # Check only contacts of this run: earlier ones have been reported or accepted.
        for contact in truth.contacts[self._seen :]:
            self._seen += 1
            if contact.robot in self._guarded or contact.other in self._guarded:
                raise Failure(str(contact))

        if self._clearance is not None:
            for name in self._guarded or sim.robots:
                found = truth[name].clearance
                if found < self._clearance:
                    raise Failure(
                        f"{sim.time:.2f} s: {name}: expected a clearance of "
                        f"{self._clearance:g} m, found {found:.3f} m"
                    )

        for condition in self._always:
            if not condition(scenery):
                raise Failure(
                    f"{sim.time:.2f} s: the condition is no longer true: "
                    f"{condition_text(condition)}"
                )

        if self._condition is not None and self._condition(scenery):
            return True
        # The tolerance absorbs the rounding of summed time steps.
        if sim.time - self.since < self._deadline - 1e-9:
            return False
        if self._condition is None:
            return True
        raise Failure(
            f"the condition was not true within {self._deadline:g} s: "
            f"{condition_text(self._condition)}"
        )


def condition_text(condition: Condition) -> str:
    """Return the description of a condition."""
    text = str(condition)
    return getattr(condition, "__name__", text) if text.startswith("<") else text


def _inner_radius(outline: Sequence[tuple[float, float]]) -> float:
    """Return the radius of the largest disc around the centre inside an outline, m.

    Parameters
    ----------
    outline : sequence of (float, float)
        Corners in the robot's frame, m; the last corner is joined to the first.
    """
    found = math.inf
    for (ax, ay), (bx, by) in zip(outline, [*outline[1:], outline[0]], strict=True):
        dx, dy = bx - ax, by - ay
        # The bound keeps an edge of length 0 from a division by zero.
        t = max(0.0, min(1.0, -(ax * dx + ay * dy) / max(dx * dx + dy * dy, 1e-300)))
        found = min(found, hypot(ax + t * dx, ay + t * dy))

    return found


__all__ = ["POLL_S", "Failure", "RunState"]
