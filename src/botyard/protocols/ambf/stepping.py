"""When the world may step, and how often things are published: the clocks of AMBF's interface (ambf-messages.md §4, §7), sans-I/O.

All times are those of a clock that the caller reads, s.
"""

from __future__ import annotations

from typing import Final

from botyard.model.objects import HIGH, LOW

WATCHDOG: Final = 0.5
"""Without a command for so long, an object and the world fall back to what they do alone, s."""
CATCH_UP: Final = 0.02
"""States that come late by less than this are made up for, s: timers wake up late, and steps come in bursts."""
SKIPS: Final = 10
"""Steps for a toggle before any command has said how many."""


class Stepping:
    """Whether the world may make its next step: free, or so many steps for each toggle of ``step_clock``.

    A toggle that comes while the steps of the one before are not done is kept and not lost, as it is in the original; and the first
    command that throttles lets nothing through by itself. `original` does both as the original does.

    Parameters
    ----------
    watchdog : float
        The world runs free again after so long without a command, s; 0: never.
    original : bool
        A toggle that comes early is lost, and after the first throttled command up to n steps are made without one.
    """

    def __init__(self, watchdog: float = WATCHDOG, *, original: bool = False) -> None:
        self._watchdog = watchdog
        self._original = original
        self.throttled = False
        self.skips = SKIPS
        self._clock = False
        self._left = 0
        self._done = 0
        self._may = True
        self._last: float | None = None

    def command(self, throttle: bool, clock: bool, skips: int, now: float) -> None:
        """A command for the world has come: ``enable_step_throttling``, ``step_clock``, ``n_skip_steps``."""
        toggled, self._clock = clock != self._clock, clock
        begins = throttle and not self.throttled
        self.throttled, self.skips, self._last = throttle, skips, now
        if self._original:
            if not throttle:
                self._may = True
            elif not self._may:
                self._may = toggled
            return
        if not throttle or begins:
            self._left = 0
        if throttle and toggled:
            self._left += skips

    def hold(self, now: float) -> None:
        """Hold the world without a toggle."""
        if not self.throttled:
            self._left = 0
        self.throttled, self._last = True, now

    def grant(self, steps: int) -> None:
        """Let so many further steps be made."""
        self._left += steps

    def tick(self, now: float) -> bool:
        """Look at the watchdog; True if it has ended the throttling now."""
        if not self.throttled or not self._watchdog or self._last is None or now - self._last <= self._watchdog:
            return False
        self.throttled, self._may, self._left, self._done = False, True, 0, 0
        return True

    @property
    def may_step(self) -> bool:
        """Whether the next step may be made."""
        if not self.throttled:
            return True
        return self._may if self._original else self._left > 0

    def stepped(self) -> None:
        """A step was made."""
        if not self.throttled:
            return
        if not self._original:
            self._left -= 1
            return
        self._done += 1
        if self._done == self.skips:
            self._may, self._done = False, 0


class Pace:
    """How often an object's state is published: seldom when idle, often while it is commanded.

    Parameters
    ----------
    low, high : float
        Rates, Hz.
    watchdog : float
        Without a command for so long it is idle again, s.
    """

    def __init__(self, low: float = LOW, high: float = HIGH, watchdog: float = WATCHDOG) -> None:
        self._low, self._high, self._watchdog = low, high, watchdog
        self._last: float | None = None
        self._due = 0.0

    @property
    def is_commanded(self) -> bool:
        """Whether somebody commands it."""
        return self._last is not None

    def command(self, now: float) -> None:
        """A command has come."""
        if self._last is None:
            self._due = now
        self._last = now

    def said(self, now: float) -> None:
        """A state was sent all the same, for a step that a client had asked for: the next one is due a period later."""
        self._due = max(self._due, now + self._period)

    @property
    def _period(self) -> float:
        return 1.0 / (self._high if self._last is not None else self._low)

    def expired(self, now: float) -> bool:
        """True once, when commands have ceased for too long: what was commanded is to be reset."""
        if self._last is None or now - self._last <= self._watchdog:
            return False
        self._last = None
        return True

    def is_due(self, now: float) -> bool:
        """Whether a state is to be sent now; then the next one is due a period after this one was."""
        if now < self._due - 1e-9:
            return False
        self._due = max(self._due + self._period, now - CATCH_UP)
        return True


__all__ = ["HIGH", "LOW", "SKIPS", "WATCHDOG", "Pace", "Stepping"]
